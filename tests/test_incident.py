"""An incident at hand: what pages ask again and again is the same as the diagnosis says."""

from __future__ import annotations

import gzip
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from incident_samples import EVERY, FOLDER, case_of, incident_of

from workbench import Case, Problem, diagnose
from workbench.diagnosis.incident import CASE, Incident, open_case
from workbench.model import NotOfThisSystem
from workbench.topology.history import moment_of
from workbench.views.changelog_timeline import BINS, changes_between, lanes
from workbench.views.entry_diff import entries_that_differ, entry_on_both
from workbench.views.overview import LISTS, grid, mesh, pair_of, suffixes
from workbench.views.parameters import offers
from workbench.views.pending_operations import at_work, examples, of_example
from workbench.views.verdict_style import MISSING, NOTHING, PENDING, UNKNOWN, worst

LOST, LAGS = "missed_behind_equal_vectors", "lag_behind_disabled_links"


@pytest.mark.parametrize("name", EVERY)
def test_map_and_grid_are_the_diagnosis_in_another_order(name: str) -> None:
    incident = incident_of(name)
    found = diagnose(case_of(name))
    for suffix in suffixes(incident):
        cells = {
            (row["server"], head["origin"]): cell
            for shown in [grid(incident, suffix)]
            for row in shown["rows"]
            for head, cell in zip(shown["origins"], row["cells"], strict=True)
        }
        for server in found["servers"]:
            for origin, span in server["vector"].items() if server["suffix"] == suffix else ():
                cell = cells[server["name"], origin]
                assert (cell["min"], cell["max"]) == (span["min"], span["max"])
                carries_time = not incident.system.streaming
                assert (cell["max_at"] is None) == (span["max"] is None or not carries_time)
        for list_, verdict in LISTS:
            for row in found[list_]:
                if row["suffix"] == suffix:
                    cell = cells[row["server"], row["origin"]]
                    assert verdict in cell["says"]
                    assert worst([cell["verdict"], verdict]) == cell["verdict"]
        shown = mesh(incident, suffix)
        assert {one["name"] for one in shown["servers"]} >= {
            one["name"] for one in found["servers"] if one["suffix"] == suffix
        }
        assert len(shown["links"]) == sum(one["suffix"] == suffix for one in found["links"])
        for link in shown["links"]:
            pair = pair_of(incident, link["supplier"], link["consumer"], suffix)
            assert pair is None or pair["title"] == f"{link['supplier']} → {link['consumer']}"


def test_a_link_with_nothing_to_send_is_not_shown_as_well_while_its_consumer_lacks_changes() -> None:
    links = {(one["supplier"], one["consumer"]): one for one in mesh(incident_of(LOST), "dc=example,dc=com")["links"]}
    assert links["s1", "s3"]["verdict"] == MISSING
    assert "12 changes that s1 holds and will not send" in links["s1", "s3"]["says"]
    assert links["s3", "s1"]["verdict"] != MISSING


@pytest.mark.parametrize("name", EVERY)
def test_a_cell_tells_what_log_and_diagnosis_tell(name: str) -> None:
    incident = incident_of(name)
    for replica in incident.topology.replicas:
        seen = replica.log.facts["by_origin"] if replica.log else {}
        for origin in {*replica.vector, *seen}:
            cell = incident.cell(replica.server, origin, replica.suffix)
            assert cell["changes"] == seen.get(origin, {}).get("count", 0)
            for end, of_log in (("first", "min"), ("last", "max")):
                position = seen.get(origin, {}).get(of_log)
                assert cell[end] == (position and incident.system.show(position))
            for list_ in ("missing", "pending", "unknown", "stranded"):
                here = (replica.server, origin, replica.suffix)
                rows = [row for row in incident.found[list_] if (row["server"], row["origin"], row["suffix"]) == here]
                assert cell[list_] == rows
    with pytest.raises(Problem, match="no server is named nobody"):
        incident.cell("nobody", "1")


@pytest.mark.parametrize("name", EVERY)
def test_the_bars_of_a_lane_add_up_to_its_log(name: str) -> None:
    incident = incident_of(name)
    (suffix,) = suffixes(incident)
    logs = {one.server: one.log for one in incident.topology.replicas}
    whole = lanes(incident, suffix)
    lacked = {server: set() for server in logs}
    for row in incident.found["missing"]:
        if row["rule"] == "entries_lack":
            lacked[row["server"]].add(row["position"])
    for lane in whole["lanes"]:
        log = logs[lane["server"]]
        assert (
            sum(lane["counts"]) == sum(one["count"] for one in log.facts["by_origin"].values())
            if log
            else not lane["log"]
        )
        missing = sum(row["server"] == lane["server"] for row in incident.found["missing"])
        assert sum(lane["missing"].values()) == missing
    for origin in {None} | {origin for log in logs.values() if log for origin in log.facts["by_origin"]}:
        shown = lanes(incident, suffix, origin)
        for lane in shown["lanes"]:
            log = logs[lane["server"]]
            counts = (
                [one["count"] for name, one in log.facts["by_origin"].items() if origin in (None, name)] if log else []
            )
            assert sum(lane["counts"]) == sum(counts)
            for at in range(BINS):  # what a bar counts is what a click on it shows
                edges = shown["edges"][at : at + 2]
                rows = changes_between(incident, lane["server"], suffix, origin, *edges, 10_000)
                # What the entries lack is missing although the log holds it: it is in the bar all the same.
                assert (
                    sum(row["verdict"] != "missing" or row["position"] in lacked[lane["server"]] for row in rows)
                    == (lane["counts"][at])
                )
                assert {row["origin"] for row in rows} <= ({origin} if origin else {row["origin"] for row in rows})


def test_a_cut_in_time_shows_what_lies_in_it_and_an_empty_one_is_refused() -> None:
    incident = incident_of(LOST)
    (suffix,) = suffixes(incident)
    cut = lanes(incident, suffix, since="2026-11-20T15:04:20Z", until="2026-11-20T15:04:30Z")
    assert sum(cut["lanes"][2]["missing"].values()) == 12
    assert sum(sum(one["counts"]) for one in cut["lanes"]) < 60
    with pytest.raises(Problem, match="ends before it begins"):
        lanes(incident, suffix, since="2026-11-20T15:04:30Z", until="2026-11-20T15:04:20Z")
    with pytest.raises(Problem, match="is not a time"):
        lanes(incident, suffix, since="yesterday")


def test_one_change_is_marked_where_it_was_made_and_where_it_arrived() -> None:
    incident = incident_of(LOST)
    marked = lanes(incident, next(iter(suffixes(incident))), position="6b006176000000010000")
    assert 0 < marked["made"] < 1
    came = {one["server"]: one for one in marked["arrivals"]}
    assert came["s2"]["at"] is not None
    assert came["s3"]["at"] is None


def test_two_servers_differ_in_the_entries_of_the_missed_changes_and_in_no_other() -> None:
    incident = incident_of(LOST)
    found = entries_that_differ(incident, "s1", "s3")
    missed = {row["target"].lower() for row in incident.found["missing"]}
    assert {row["target"].lower() for row in found.first} == missed
    assert found.total == len(missed) == 7
    assert all(row["one"] and not row["other"] for row in found.first)
    assert entries_that_differ(incident, "s1", "s1").total == 0
    named = entries_that_differ(incident, "s1", "s3", "K1U00004")
    assert [row["target"] for row in named.first] == ["uid=k1u00004,ou=people,dc=example,dc=com"]
    states = entry_on_both(incident, "s1", "s3", named.first[0]["entry"])
    assert sum(not one["same"] for one in states) == named.first[0]["one"]
    assert {one["one_position"][12:16] for one in states if one["one_position"]} == {"0001"}
    with pytest.raises(Problem, match="the entries of s2 were not collected"):
        entries_that_differ(incident, "s1", "s2")


def test_spark_finds_the_same_differing_entries(spark: object) -> None:
    incident = incident_of(LOST)
    for named in ("", "k1u0000", "%", "nobody"):
        told: list[tuple[int, int]] = []
        by_spark = entries_that_differ(incident, "s1", "s3", named, 5, spark, lambda *one, told=told: told.append(one))
        assert by_spark == entries_that_differ(incident, "s1", "s3", named, 5)
        assert told == sorted(told)
        assert len(told) > 1


@pytest.mark.parametrize("name", EVERY)
def test_operations_at_work_are_those_of_the_logs(name: str) -> None:
    incident = incident_of(name)
    (suffix,) = suffixes(incident)
    if incident.system.pending is None:
        with pytest.raises(NotOfThisSystem, match="32_transactions"):
            at_work(incident, incident.topology.replicas[0].server, suffix)
        return
    for server in {one.server for one in incident.topology.replicas}:
        shown = at_work(incident, server, suffix)
        begun = {
            row["position"]
            for row in incident.case.arrow("operations").to_pylist()
            if (row["server"], row["step"], row["snapshot"]) == (server, "begin", incident.then_label)
        }
        assert shown["count"] == len(begun)
        assert {one["position"] for one in shown["operations"]} <= begun
        for one in shown["operations"]:
            assert one["end"] is None or 0 <= one["begin"] <= one["end"] <= shown["span"]
            assert (one["how"] is None) == (one["end"] is None)
        for track in shown["tracks"]:
            last: dict[str, str] = {}
            for move in track["moves"]:
                assert move["max"] > last.get(move["origin"], "")
                last[move["origin"]] = move["max"]


def test_the_worked_examples_show_what_each_rule_set_loses() -> None:
    incident = incident_of(LOST)
    assert list(examples(incident)) == ["1", "2.1", "2.1 beside another writer", "2.2", "2.3"]
    (differing,) = of_example(incident, "2.2")["differ"]
    assert differing["before_359"] == differing["since_359"] > differing["primary_csn"]
    first = of_example(incident, "1")
    assert not first["differ"]  # in the end; the claim that came too early is a move
    moves = {track["rules"]: [move["max"] for move in track["moves"]] for track in first["tracks"]}
    assert moves["since_359"][0] == "66000003000000010000" > moves["primary_csn"][0]
    with pytest.raises(Problem, match="there is no example 3"):
        of_example(incident, "3")


def test_going_back_shows_what_an_earlier_snapshot_shows() -> None:
    incident = incident_of(LOST)
    assert incident.then_label == "2-during"
    late = incident.found["missing"]
    incident.go_to("1-before")
    assert incident.then_label == "1-before"
    assert late
    assert incident.found["case"]["snapshots"] == ["1-before"]
    incident.go_to(None)
    assert incident.found["missing"] == late


def test_a_case_is_found_by_its_name_by_the_environment_or_is_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = case_of("dead_origin")
    assert open_case(named.folder).name == "dead_origin"
    monkeypatch.setenv(CASE, str(named.folder))
    assert Incident().case.name == "dead_origin"
    monkeypatch.setenv(CASE, str(tmp_path))
    with pytest.raises(Problem, match="this is not a case"):
        open_case()
    monkeypatch.delenv(CASE)
    monkeypatch.setattr("workbench.demo.FOLDER", tmp_path / "demo")
    made = Incident("")
    assert made.found["missing"]
    assert made.when("6b006176000000010000") == "2026-11-20 15:04:22"
    assert made.when("no position") is None
    assert moment_of(made.found["run"]["at"]) > moment_of("2026-11-20") - timedelta(days=1)


def test_where_no_vector_was_collected_nothing_is_called_present(tmp_path: Path) -> None:
    source = FOLDER / LOST / "2-during"
    for names in (["s1.errors.log.gz"], ["s1.changelog.ldif.gz"]):
        folder = tmp_path / names[0] / "now"
        folder.mkdir(parents=True)
        for name in names:
            shutil.copy(source / name, folder / name)
        case = Case.create(tmp_path / names[0] / "case")
        case.load([folder])
        incident = Incident(case)
        (server,) = mesh(incident, suffixes(incident)[0])["servers"]
        assert server["verdict"] in (NOTHING, UNKNOWN)
        assert "present" not in server["says"]
        assert offers(incident)["server"].options == ("*", "s1")
    with pytest.raises(Problem, match="the case holds no evidence"):
        _ = Incident(Case.create(tmp_path / "empty")).system


def test_the_server_with_a_vector_is_shown_first(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    for name in ("s1.replica.ldif", "s1.changelog.ldif.gz", "s1.agreements.ldif", "s2.errors.log.gz"):
        shutil.copy(FOLDER / LOST / "2-during" / name, folder / name)
    case = Case.create(tmp_path / "case")
    case.load([folder])
    incident = Incident(case)
    assert suffixes(incident)[0] == "dc=example,dc=com"
    assert "s1" in [one["name"] for one in mesh(incident, suffixes(incident)[0])["servers"]]
    assert offers(incident)["suffix"].first == "dc=example,dc=com"


def test_where_lists_are_cut_numbers_say_so_and_no_server_seems_well() -> None:
    incident = incident_of(LOST)
    whole = grid(incident, "dc=example,dc=com")
    incident.__dict__["found"] = diagnose(incident.then, limit=2)
    cut = grid(incident, "dc=example,dc=com")
    for before, after in zip(whole["rows"], cut["rows"], strict=True):
        for was, now in zip(before["cells"], after["cells"], strict=True):
            if was["verdict"] in (MISSING, PENDING):
                assert now["verdict"] == was["verdict"]
                assert "at least" in now["says"] or "some" in now["says"] or now["says"] == was["says"]
    (link,) = (one for one in mesh(incident, "dc=example,dc=com")["links"] if one["name"] == "s1-to-s3")
    assert "lacks at least 2 changes" in link["says"]


def test_a_great_entry_differs_only_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [
        {"entry": "g", "attribute": "member", "value": f"uid=u{n:05d}", "state": "present"} for n in range(3_000)
    ]
    rows = [{**one, "mark": "vucsn", "position": "6b006176000000010000"} for one in members]
    sides = {
        "s1": pa.Table.from_pylist(rows),
        "s3": pa.Table.from_pylist([*rows[:0:-1], {**rows[0], "value": "uid=other"}]),
    }
    monkeypatch.setattr("workbench.views.entry_diff.states_of", lambda incident, server: server)
    monkeypatch.setattr(
        "workbench.views.entry_diff.rows_where", lambda parts, columns, where: sides[parts].select(columns)
    )
    shown = entry_on_both(incident_of(LOST), "s1", "s3", "g")
    assert [row["value"] for row in shown if not row["same"]] == ["uid=other", "uid=u00000"]


def test_operations_are_counted_and_their_ends_found_whatever_else_the_logs_hold() -> None:
    incident = incident_of(LAGS)
    (suffix,) = suffixes(incident)
    whole = at_work(incident, "s1", suffix)
    ends = {one["position"]: one["how"] for one in whole["operations"]}
    middle = f"{moment_of(whole['from']) + timedelta(seconds=whole['span'] / 2):%Y-%m-%dT%H:%M:%S.%fZ}"
    first = at_work(incident, "s1", suffix, until=middle)
    assert 0 < first["count"] < whole["count"]
    assert {one["position"]: one["how"] for one in first["operations"]}.items() <= ends.items()
    second = at_work(incident, "s1", suffix, since=middle)
    assert first["count"] + second["count"] == whole["count"]


def test_a_long_access_log_before_the_operations_takes_none_of_their_ends(tmp_path: Path) -> None:
    now = tmp_path / "now"
    shutil.copytree(FOLDER / LAGS / "during", now)
    log = now / "s1.access.log.gz"
    rotated = []
    for number in range(5_000):
        at = f"[20/Nov/2026:{5 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000000000 +0000] conn=7 op={number}"
        rotated.append(f'{at} MOD dn="uid=u{number},ou=people,dc=example,dc=com"')
        rotated.append(
            f"{at} RESULT err=0 tag=103 nentries=0 wtime=0.1 optime=0.1 etime=0.2 csn={0x6AFF0000 + number:08x}000000010000"
        )
    text = gzip.decompress(log.read_bytes())
    log.write_bytes(gzip.compress("".join(f"{line}\n" for line in rotated).encode() + text))
    case = Case.create(tmp_path / "case")
    case.load([now])
    incident, shorter = Incident(case), incident_of(LAGS)
    (suffix,) = suffixes(incident)
    assert sum(row["server"] == "s1" for row in case.arrow("applied").to_pylist()) > 5_000
    for key in ("operations", "count", "span", "tracks"):
        assert at_work(incident, "s1", suffix)[key] == at_work(shorter, "s1", suffix)[key]
