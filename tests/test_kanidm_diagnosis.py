"""Kanidm, diagnosed: what each supplier answers, what entries show, and what is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from kanidm_samples import DAY, DOMAIN, Cid, Entry, backup, collected, entry_id, origin, text_of

from workbench import Case, Problem
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.codes import codes_of
from workbench.diagnosis.output_keys import undocumented
from workbench.diagnosis.pair_matrix_text import decision_words
from workbench.replication.entry.diagnosis.state_comparison import verdicts_by_entry
from workbench.systems import system_named
from workbench.topology.topology import topology

SAMPLES = Path(__file__).parent / "samples" / "kanidm"
SETS = ("synth-healthy", "synth-missed", "synth-offline8d")


def of(*folders: Path, case: Path) -> dict[str, Any]:
    made = Case.create(case)
    made.load(list(folders))
    found = diagnose(made)
    assert not undocumented(found)
    codes = codes_of(system_named("kanidm"))
    for one in found["findings"]:
        assert one["severity"] in codes[one["code"]].severities, one
    return found


def codes(found: dict[str, Any]) -> set[tuple[str, str | None]]:
    return {(one["code"], one["server"]) for one in found["findings"]}


def pair(found: dict[str, Any], supplier: str, consumer: str) -> dict[str, Any]:
    return next(row for row in found["pairs"] if (row["supplier"], row["consumer"]) == (supplier, consumer))


@pytest.mark.parametrize("name", SETS)
def test_the_given_sets_are_as_they_were_worked_out(name: str, tmp_path: Path) -> None:
    folder = SAMPLES / name
    told, found = json.loads((folder / "expected.json").read_text()), of(folder, case=tmp_path / "case")

    def times(ranges: dict[str, list[str]]) -> dict[str, list[int]]:
        return {origin: [int(cid[:32]) for cid in ends] for origin, ends in ranges.items()}

    assert len(found["pairs"]) == len(told["pairs"])
    for key, one in told["pairs"].items():
        row = pair(found, *key.split("->"))
        assert (row["decision"], row["message"]) == (one["status"], one["message"]), key
        assert times(row["lag"]) == one.get("lag_range", {})
        assert times(row["advance"]) == one.get("adv_range", {})
        assert times(row["owed"]) == {o: list(ends) for o, ends in one.get("ranges", {}).items()}
    wanted = {(key[-7], *one) for key, rows in told["missed"].items() for one in rows}
    assert {(r["server"], r["entry"], r["attribute"], r["position"]) for r in found["missing"]} == wanted
    assert len(found["missing"]) == len(wanted), "each once"
    assert all(row["held_by"] == ["A", "B"] and row["target"].startswith("user") for row in found["missing"])
    assert [one["evidence"] for one in found["servers"]] == [["change_state", "ruv"]] * 3


def test_a_set_without_loss_has_no_finding(tmp_path: Path) -> None:
    found = of(SAMPLES / "synth-healthy", case=tmp_path / "case")
    assert (found["findings"], found["missing"], found["pending"], found["unknown"]) == ([], [], [], [])


RUV: list[Cid] = [(0, "a"), (0, "b"), (0, "c"), (100, "a"), (100, "b"), (100, "c")]
BASE = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(20)}


def test_a_deletion_that_was_missed_is_told(tmp_path: Path) -> None:
    gone = {**BASE, 3: Entry(gone=(100, "a"))}
    folder = collected(
        tmp_path / "in", backup("a", 200, RUV, gone), backup("b", 200, RUV, gone), backup("c", 200, RUV, BASE)
    )
    found = of(folder, case=tmp_path / "case")
    (row,) = found["missing"]
    assert (row["server"], row["operation"], row["attribute"]) == ("C", "delete", None)
    assert (row["position"], row["target"], row["entry"]) == (text_of(100, "a"), "entry0003", entry_id(3))
    (one,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
    assert one["fix"][0]["repair"] == "delete the entries concerned on C, too, or refresh C from A"
    assert row["held_by"] == ["A", "B"]


def test_what_was_created_long_ago_and_is_not_shown_may_be_forgotten(tmp_path: Path) -> None:
    now = 30 * DAY
    ruv = [*RUV, *((now, name) for name in "abc")]
    late = Entry((now - 100, "a"), {"mail": (now - 100, "a")})
    folder = collected(
        tmp_path / "in",
        backup("a", now, ruv, {**BASE, 50: late}),
        backup("b", now, ruv, {number: one for number, one in BASE.items() if number != 7}),
    )
    found = of(folder, case=tmp_path / "case")
    assert {(row["server"], row["target"], row["attribute"]) for row in found["missing"]} == {
        ("B", "entry0050", "class"),
        ("B", "entry0050", "mail"),
    }
    (row,) = found["unknown"]
    assert (row["server"], row["origin"], row["count"], row["why"]) == ("B", origin("a"), 2, "forgotten")


def test_what_is_owed_waits_and_is_counted(tmp_path: Path) -> None:
    new = {**BASE, 3: Entry((0, "a"), {"mail": (150, "a"), "name": (160, "a")}), 4: Entry(gone=(170, "a"))}
    ahead = [*RUV, (150, "a"), (160, "a"), (170, "a")]
    folder = collected(tmp_path / "in", backup("a", 200, ahead, new), backup("b", 200, RUV, BASE))
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == found["stranded"] == []
    (row,) = found["pending"]
    assert (row["server"], row["origin"], row["count"], row["suppliers"]) == ("B", origin("a"), 3, ["A"])
    ends = {"first": text_of(150, "a"), "last": text_of(170, "a")}
    assert {key: row[key] for key in ends} == ends
    sends = pair(found, "A", "B")
    assert (sends["decision"], sends["message"]) == ("Ok", "V1")
    assert sends["to_send"] == {origin("a"): {"count": 3, **ends}}
    assert sends["owed"] == {origin("a"): [text_of(100, "a"), text_of(170, "a")]}
    assert pair(found, "B", "A")["message"] == "NoChangesAvailable"
    assert codes(found) == {("PENDING_CHANGES", "B")}


def test_other_domains_are_compared_with_nothing(tmp_path: Path) -> None:
    other = DOMAIN.replace("e8", "aa")
    folder = collected(tmp_path / "in", backup("a", 200, RUV, BASE), backup("b", 200, RUV, {90: BASE[0]}, other))
    found = of(folder, case=tmp_path / "case")
    assert (
        {row["decision"] for row in found["pairs"]} == {row["message"] for row in found["pairs"]} == {"DomainMismatch"}
    )
    assert found["missing"] == found["pending"] == found["unknown"] == []
    assert ("UNRELATED_DATA", "A") in codes(found)


def test_servers_that_only_have_gone_different_ways(tmp_path: Path) -> None:
    apart = collected(tmp_path / "in", backup("a", 200, [(0, "a"), (9, "a")]), backup("b", 200, [(0, "b"), (9, "b")]))
    assert ("NO_OVERLAP", "A") in codes(of(apart, case=tmp_path / "case"))


def test_each_behind_the_other_is_diverged(tmp_path: Path) -> None:
    left = backup("a", 200, [(100, "a"), (150, "a"), (0, "b"), (10, "b")])
    right = backup("b", 200, [(100, "b"), (150, "b"), (0, "a"), (10, "a")])
    found = of(collected(tmp_path / "in", left, right), case=tmp_path / "case")
    assert {row["decision"] for row in found["pairs"]} == {"Critical"}
    assert {code for code, _ in codes(found)} >= {"DIVERGED", "STALLED_BUT_GREEN"}
    assert sum(one["code"] == "DIVERGED" for one in found["findings"]) == 1


def test_a_lagging_consumer_has_to_be_refreshed_and_loses_what_only_it_holds(tmp_path: Path) -> None:
    now = 20 * DAY
    kept = [(now - 7 * DAY + 60, "a"), (now, "a"), (now - 7 * DAY + 60, "b"), (now, "b")]
    own = {**BASE, 9: Entry((0, "a"), {"mail": (90, "c")})}
    old = backup("c", 100, [(0, "a"), (0, "b"), (0, "c"), (90, "c")], own)
    folder = collected(tmp_path / "in", backup("a", now, kept, BASE), backup("b", now, kept, BASE), old)
    found = of(folder, case=tmp_path / "case")
    assert codes(found) >= {
        ("REFRESH_REQUIRED", "C"),
        ("SUPPLIER_BEHIND", "C"),
        ("STRANDED_CHANGE", "C"),
        ("STALLED_BUT_GREEN", "A"),
        ("STALLED_BUT_GREEN", "B"),
    }
    one = next(one for one in found["findings"] if one["code"] == "REFRESH_REQUIRED")
    assert one["severity"] == "error" and "13.0 days behind what A, B still remember" in one["summary"]
    assert "throws away 1 change that C has and A lacks" in one["fix"][0]["caution"]
    assert [(row["server"], row["entry"], row["attribute"]) for row in found["stranded"]] == [
        ("C", entry_id(9), "mail")
    ]


def test_restored_clocks_and_quiet_origins(tmp_path: Path) -> None:
    now = 20 * DAY
    others = [*RUV, (now - 90, "a"), (now, "b"), (now + 3600, "c"), (5, "d")]
    restored = [*RUV, (now - 50, "b")]
    folder = collected(tmp_path / "in", backup("a", now, restored, BASE), backup("b", now, others, BASE))
    found = of(folder, case=tmp_path / "case")
    told = codes(found)
    assert ("ROLLED_BACK", "A") in told
    (ahead,) = (one for one in found["findings"] if one["code"] == "CLOCK_AHEAD")
    assert (ahead["origin"], ahead["items"]) == (origin("c"), [text_of(now + 3600, "c")])
    stale = [one["origin"] for one in found["findings"] if one["code"] == "STALE_ORIGIN"]
    assert stale == [origin("d")]
    jumps = {(one["server"], one["origin"]) for one in found["findings"] if one["code"] == "IDLE_ORIGIN_JUMP"}
    assert ("B", origin("a")) in jumps and ("A", origin("a")) not in jumps


def test_tombstones_that_somebody_has_not_seen_are_held(tmp_path: Path) -> None:
    now = 10 * DAY
    dead = {**BASE, 1: Entry(gone=(100, "a")), 2: Entry(gone=(200, "a")), 3: Entry(gone=(now - 5, "a"))}
    full = [*RUV, (200, "a"), *((now - 5, name) for name in "abc")]
    behind = [*RUV, (now - 5, "b"), (now - 5, "c")]
    folder = collected(
        tmp_path / "in", backup("a", now, full, dead), backup("b", now, full, dead), backup("c", now, behind, BASE)
    )
    found = of(folder, case=tmp_path / "case")
    reapable = {
        one["server"]: one["evidence"][0]["tombstones"]
        for one in found["findings"]
        if one["code"] == "TOMBSTONE_REAPABLE"
    }
    assert reapable == {"A": 2, "B": 2}
    for one in (one for one in found["findings"] if one["code"] == "TOMBSTONE_HELD"):
        # The first of the two C claims to have, and shows the entry: it missed the deletion, and would keep the entry.
        assert "C is without 2 of the tombstones" in one["summary"]
        assert one["items"] == [text_of(100, "a"), text_of(200, "a")]
    assert {one for one in codes(found) if one[0] == "TOMBSTONE_HELD"} == {
        ("TOMBSTONE_HELD", "A"),
        ("TOMBSTONE_HELD", "B"),
    }


def test_conflicts_are_counted_and_named(tmp_path: Path) -> None:
    entries = {**BASE, 60: Entry((50, "b"), source=2), 61: Entry((50, "b"), source=3)}
    folder = collected(tmp_path / "in", backup("a", 200, RUV, entries), backup("b", 200, RUV, entries))
    found = of(folder, case=tmp_path / "case")
    for name in "AB":
        (one,) = (one for one in found["findings"] if (one["code"], one["server"]) == ("ENTRY_CONFLICT", name))
        assert "2 entries" in one["summary"]
        assert {row["source"] for row in one["evidence"]} == {entry_id(2), entry_id(3)}


def test_of_a_server_whose_entries_were_not_collected_nothing_is_claimed(tmp_path: Path) -> None:
    empty = backup("b", 200, RUV)
    folder = collected(tmp_path / "in", backup("a", 200, RUV, BASE), empty)
    found = of(folder, case=tmp_path / "case")
    assert {(row["server"], row["why"], row["count"]) for row in found["unknown"]} == {("B", "no_entries", None)}
    assert found["missing"] == []


def test_an_origin_that_every_vector_has_forgotten_is_neither_waited_for_nor_held(tmp_path: Path) -> None:
    """A server that was refreshed long ago made its changes as an origin that stands in no vector any more."""
    now = 20 * DAY
    ruv = [(now - DAY, "a"), (now, "a"), (now - DAY, "b"), (now, "b")]
    old = {**BASE, 3: Entry((0, "a"), {"mail": (50, "d")}), 4: Entry(gone=(60, "d"))}
    at_a = {**old, 5: Entry((0, "a"), {"mail": (now, "a")})}
    at_b = {number: one for number, one in old.items() if number != 4}
    folder = collected(tmp_path / "in", backup("a", now, ruv, at_a), backup("b", now, ruv, at_b))
    found = of(folder, case=tmp_path / "case")
    assert found["pending"] == found["stranded"] == found["unknown"] == []
    assert [(row["server"], row["attribute"]) for row in found["missing"]] == [("B", "mail")]
    assert codes(found) == {("MISSED_CHANGE", "B"), ("TOMBSTONE_REAPABLE", "A")}


def test_of_what_an_origin_did_before_it_was_forgotten_nobody_can_tell(tmp_path: Path) -> None:
    now = 20 * DAY
    ruv = [(now - DAY, "a"), (now, "a"), (now - DAY, "b"), (now, "b")]
    lacks = {**BASE, 3: Entry((0, "a"), {"mail": (40, "a")})}
    shows = {**BASE, 3: Entry((0, "a"), {"mail": (50, "d")})}
    folder = collected(tmp_path / "in", backup("a", now, ruv, lacks), backup("b", now, ruv, shows))
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == found["pending"] == []
    assert [(row["server"], row["origin"], row["why"]) for row in found["unknown"]] == [("A", origin("d"), "forgotten")]


def test_an_old_tombstone_is_not_that_of_the_entry_that_was_made_anew(tmp_path: Path) -> None:
    now = 20 * DAY
    ruv = [(0, "a"), (now - 60, "a"), (now, "b"), (0, "b"), (0, "c")]
    anew = Entry((now - DAY, "a"), {"mail": (now - DAY, "a")})
    changed = Entry((now - DAY, "a"), {"mail": (now - 60, "a")})
    folder = collected(
        tmp_path / "in",
        backup("a", now, ruv, {**BASE, 3: anew}),
        backup("b", now, ruv, {**BASE, 3: changed}),
        backup("c", 8 * DAY, [*RUV, (5 * DAY, "c")], {**BASE, 3: Entry(gone=(100, "a"))}),
    )
    found = of(folder, case=tmp_path / "case")
    assert {(row["server"], row["attribute"], row["operation"]) for row in found["missing"]} == {("A", "mail", None)}
    untold = {(row["server"], row["from"], row["why"]) for row in found["unknown"]}
    assert untold == {("A", text_of(100, "a"), "forgotten"), ("B", text_of(100, "a"), "forgotten")}


def test_an_entry_that_was_made_twice_is_a_conflict_and_no_loss(tmp_path: Path) -> None:
    first = Entry((50, "a"), {"mail": (60, "a")})
    second = Entry((55, "b"), {"name": (70, "b")})
    folder = collected(
        tmp_path / "in", backup("a", 200, RUV, {**BASE, 30: first}), backup("b", 200, RUV, {**BASE, 30: second})
    )
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == []
    (row,) = found["unknown"]
    assert (row["server"], row["origin"], row["count"], row["why"]) == ("B", origin("a"), 2, "made_twice")
    (one,) = (one for one in found["findings"] if one["code"] == "ENTRY_CONFLICT")
    assert one["evidence"][0] == {
        "entry": entry_id(30),
        "target": "entry0030",
        "A": text_of(50, "a"),
        "B": text_of(55, "b"),
    }


def test_a_clock_ahead_rolls_nobody_back(tmp_path: Path) -> None:
    """A was read first and wrote on; of C it holds a change from tomorrow."""
    ahead = [*RUV, (DAY, "c")]
    folder = collected(
        tmp_path / "in",
        backup("a", 200, ahead, BASE),
        backup("b", 500, [*ahead, (400, "a")], BASE),
        backup("c", DAY, ahead, BASE),
    )
    found = of(folder, case=tmp_path / "case")
    assert [code for code, _ in codes(found)] == ["CLOCK_AHEAD"]


def test_a_server_that_was_restored_has_to_be_refreshed(tmp_path: Path) -> None:
    folder = collected(
        tmp_path / "in",
        backup("a", 500, [*RUV, (500, "b")], BASE),
        backup("b", 600, [*RUV, (300, "a"), (500, "b")], BASE),
    )
    (one,) = (one for one in of(folder, case=tmp_path / "case")["findings"] if one["code"] == "ROLLED_BACK")
    assert one["server"] == "A" and "refresh it" in one["fix"][0]["repair"]


def test_what_a_restored_server_refuses_nobody_would_send_it(tmp_path: Path) -> None:
    old, new = {1: Entry((0, "a"), {"mail": (0, "a")})}, {1: Entry((0, "a"), {"mail": (100, "b")})}
    ruv = [(0, "a"), (0, "b"), (200, "a")]
    folder = collected(tmp_path / "in", backup("a", 300, [*ruv, (100, "b")], new), backup("b", 300, ruv, old))
    found = of(folder, case=tmp_path / "case")
    (one,) = found["pending"]
    assert (one["server"], one["count"], one["suppliers"]) == ("B", 1, [])
    (told,) = (one for one in found["findings"] if one["code"] == "ROLLED_BACK")
    assert "entries of other servers still show 1 change of these" in told["summary"]
    (waits,) = (finding for finding in found["findings"] if finding["code"] == "PENDING_CHANGES")
    assert waits["fix"][0]["repair"] == "do what ROLLED_BACK says of B"
    there, back = pair(found, "A", "B"), pair(found, "B", "A")
    assert there["decision"] == "Ok" and (decision_words(there), decision_words(back)) == ("REFUSED", "OK")


def test_the_vector_and_the_entries_are_of_one_moment(tmp_path: Path) -> None:
    """Of a server that was restored since its backup, the backup claims what the database does not hold."""
    after = backup("b", 300, RUV, BASE)
    newer = {**BASE, 3: Entry((0, "a"), {"mail": (250, "a")})}
    folder = collected(tmp_path / "in", backup("a", 400, [*RUV, (250, "a")], newer), after)
    (folder / "B.before.json").write_text(json.dumps(backup("b", 260, [*RUV, (250, "a")], newer)))
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == found["unknown"] == []
    assert [(row["server"], row["count"]) for row in found["pending"]] == [("B", 1)]


def test_a_list_of_entries_proves_no_loss(tmp_path: Path) -> None:
    """It shows no changes of attributes, and is of another moment than what else tells the vector."""
    folder = collected(tmp_path / "in", backup("a", 200, RUV, BASE))
    lines = [f"{n}: v3 - {{ Uuid([{entry_id(n)}]), created: {text_of(0, 'a')}, Iname([e{n}]), }}" for n in range(5)]
    (folder / "B.txt").write_text("\n".join(lines))
    spoken = {"domain_uuid": DOMAIN, "ranges": backup_ranges(RUV)}
    (folder / "B.jsonl").write_text(json.dumps({"Incremental": {"V1": spoken}}) + "\n")
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == []
    assert {(row["server"], row["why"]) for row in found["unknown"]} == {("B", "no_entries")}
    assert pair(found, "A", "B")["message"] == "NoChangesAvailable"


def backup_ranges(ruv: list[Cid]) -> dict[str, Any]:
    """What a consumer says that it claims."""
    found: dict[str, Any] = {}
    for one in backup("a", 0, ruv)["repl_meta"]["V1"]["ruv"]:
        found.setdefault(one["s"], {"m": one["t"]})["x"] = one["t"]
    return found


def test_files_called_alike_everywhere_are_of_the_server_that_the_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / "ldap-one"
    folder.mkdir()
    (folder / "backup-2026-01-04T22:00:00.123Z.json").write_text(json.dumps(backup("a", 200, RUV, BASE)))
    (folder / "backup-2026-01-05T22:00:00.123Z.json").write_text(json.dumps(backup("a", 300, RUV, BASE)))
    found = of(folder, case=tmp_path / "case")
    assert [one["name"] for one in found["servers"]] == ["ldap-one"]
    assert found["findings"] == []


def test_of_a_backup_that_was_cut_what_is_lacking_is_not_missing(tmp_path: Path) -> None:
    whole = backup("b", 200, RUV, BASE)
    folder = collected(tmp_path / "in", backup("a", 200, RUV, BASE))
    text = json.dumps(whole)
    (folder / "B.json").write_text(text[: text.index(entry_id(12)) + 90])
    found = of(folder, case=tmp_path / "case")
    assert found["missing"] == []
    assert {(row["server"], row["why"]) for row in found["unknown"]} == {("B", "not_read")}
    assert ("UNREADABLE_INPUT", "B") in codes(found)


def test_of_an_entry_whose_end_was_missed_no_other_change_is_present(tmp_path: Path) -> None:
    changed = {**BASE, 3: Entry((0, "a"), {"mail": (90, "b")})}
    gone = {**BASE, 3: Entry(gone=(100, "a"))}
    folder = collected(
        tmp_path / "in", backup("a", 200, RUV, gone), backup("b", 200, RUV, changed), backup("c", 200, RUV, BASE)
    )
    found = of(folder, case=tmp_path / "case")
    assert {(row["server"], row["operation"]) for row in found["missing"]} == {("B", "delete"), ("C", "delete")}
    case = Case.open(tmp_path / "case")
    told = {one.server: one.verdict for one in verdicts_by_entry(case, topology(case), text_of(90, "b"))}
    assert told == {"A": "present", "B": "present", "C": "missing"}


# --- verified by Spark


def test_verify_finds_the_same_from_all_states_of_entries(spark: Any, tmp_path: Path) -> None:
    made = Case.create(tmp_path / "case")
    made.load([SAMPLES / "synth-missed"])
    by_digests, verified = diagnose(made), diagnose(made, spark=spark)
    assert len(verified["missing"]) == len(by_digests["missing"]) > 0
    assert (by_digests.pop("run")["evidence"], verified.pop("run")["evidence"]) == ("digests", "positions")
    assert by_digests == verified


def test_digests_that_hide_a_loss_are_found_out(spark: Any, tmp_path: Path) -> None:
    made = Case.create(tmp_path / "case")
    made.load([SAMPLES / "synth-missed"])
    paths = {
        one.server: made.evidence / "digests" / part["name"]
        for one in made.inputs
        for part in one.parts
        if part["table"] == "digests"
    }
    whole = pq.read_table(paths["A"])
    for server in "BC":
        pq.write_table(whole.set_column(1, "server", pa.array([server] * len(whole))), paths[server])
    assert diagnose(made)["missing"] == [], "the digests are believed: that is what makes them fast"
    with pytest.raises(Problem, match=r"disagree on what C\.json\.gz lacks of origin"):
        diagnose(made, spark=spark)


def test_the_suffix_of_a_server_is_its_domain_where_it_is_known(tmp_path: Path) -> None:
    other = DOMAIN.replace("e8", "aa")
    silent = backup("c", 200, RUV, BASE)
    del silent["db_d_uuid"]
    folder = collected(tmp_path / "in", backup("a", 200, RUV, BASE), backup("b", 200, RUV, BASE, other), silent)
    run = CliRunner().invoke(main, ["diagnose", str(folder), "--json", "-"])
    servers = json.loads(run.stdout)["servers"]
    assert {one["name"]: one["suffix"] for one in servers} == {"A": DOMAIN, "B": other, "C": None}


def test_a_change_that_a_later_one_replaces_is_waited_for_too(tmp_path: Path) -> None:
    ruv: list[Cid] = [(0, "a"), (0, "b"), (0, "c")]

    def at(name: str, *last: Cid) -> dict[str, Any]:
        return backup(name, 300, [*ruv, *last], {1: Entry((0, "a"), {"mail": (*last, (0, "a"))[0]})})

    folder = collected(tmp_path / "in", at("a", (50, "a")), at("b", (70, "b")), at("c"))
    found = of(folder, case=tmp_path / "case")
    told = {(row["server"], row["origin"]): (row["count"], row["available"]) for row in found["pending"]}
    assert told == {("A", origin("b")): (1, 1), ("C", origin("a")): (1, 1), ("C", origin("b")): (1, 1)}


def test_own_changes_that_are_younger_than_the_files_are_not_called_on_their_way(tmp_path: Path) -> None:
    base: dict[int, Entry] = {1: Entry((0, "a"), {"mail": (0, "a")})}
    ruv: list[Cid] = [(0, "a"), (0, "b")]
    later = {**base, 2: Entry((100, "b"), {"mail": (100, "b")})}
    folder = collected(tmp_path / "in", backup("a", 300, [*ruv, (100, "b")], later), backup("b", 90, ruv, base))
    (waits,) = of(folder, case=tmp_path / "case")["findings"]
    assert waits["summary"].endswith(
        "A would send them; B made them after its files were written, or was restored and refuses them"
    )
    assert waits["fix"][0]["repair"] == "collect B once more"


def test_an_old_value_is_not_written_again_where_a_newer_one_waits(tmp_path: Path) -> None:
    """B shows the value that C missed, and both wait for a later one of A: written once more on B it would win over that."""
    old = {**BASE, 1: Entry((0, "a"), {"mail": (100, "b")}), 2: Entry((0, "a"), {"mail": (99, "b")})}
    for name, newer in {"change": Entry((0, "a"), {"mail": (150, "a")}), "deletion": Entry(gone=(150, "a"))}.items():
        folder = collected(
            tmp_path / name,
            backup("a", 200, [*RUV, (150, "a")], {**BASE, 1: newer, 2: old[2]}),
            backup("b", 200, RUV, old),
            backup("c", 200, RUV, {**BASE, 2: old[2]}),
        )
        found = of(folder, case=tmp_path / f"{name}-case")
        (one,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
        (fix,) = one["fix"]
        assert fix["repair"] == (
            "write nothing of mail of entry0001 again: A has what replaces it; wait until it has come to C and B"
        )
        assert "B shows is an old one" in fix["caution"]
    # What nothing replaces is written again, after that.
    folder = collected(
        tmp_path / "two",
        backup("a", 200, [*RUV, (150, "a")], {**BASE, 1: Entry((0, "a"), {"mail": (150, "a")}), 2: old[2]}),
        backup("b", 200, RUV, old),
        backup("c", 200, RUV, BASE),
    )
    found = of(folder, case=tmp_path / "two-case")
    (one,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
    assert [fix["repair"].split(" of ")[0] for fix in one["fix"]] == ["write nothing", "write the present values"]
    assert "stands in the place of 1 change:" in one["fix"][0]["why"]


def test_servers_of_different_versions_send_each_other_nothing_until_all_are_of_one(tmp_path: Path) -> None:
    """B is of an older version than A: what A sends is refused there, and what D of the version of B sends is not."""
    new = {**BASE, 3: Entry((0, "a"), {"mail": (150, "a")})}
    ahead = backup("a", 200, [*RUV, (150, "a")], new)
    old = {**backup("b", 200, RUV, BASE), "version": "1.9"}
    found = of(collected(tmp_path / "in", ahead, old), case=tmp_path / "case")
    assert found["missing"] == found["stranded"] == []
    (row,) = found["pending"]
    assert (row["server"], row["count"], row["suppliers"], row["through"]) == ("B", 1, [], [])
    assert pair(found, "A", "B")["delivers"] is False and decision_words(pair(found, "A", "B")) == "REFUSED"
    (one,) = (one for one in found["findings"] if one["code"] == "VERSIONS_DIFFER")
    said = "servers are of versions 1.9 (B) and 1.10 (A): nothing goes between"
    assert one["server"] == "B" and one["summary"].startswith(said) and one["root"].startswith(said)
    assert one["fix"][0]["repair"] == "bring B to version 1.10", "1.9 is before 1.10"
    (one,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert "no session delivers it while A and B are of different versions" in one["summary"]
    assert one["fix"][0]["repair"].startswith("do what VERSIONS_DIFFER says")

    third = {**backup("d", 200, [*RUV, (150, "a")], new), "version": "1.9"}
    found = of(collected(tmp_path / "three", ahead, old, third), case=tmp_path / "case-3")
    assert [one["suppliers"] for one in found["pending"]] == [["D"]]
    same = {**old, "version": "1.10"}
    found = of(collected(tmp_path / "same", ahead, same), case=tmp_path / "case-same")
    assert [one["suppliers"] for one in found["pending"]] == [["A"]]
    assert {one["code"] for one in found["findings"]} == {"PENDING_CHANGES"}
    # With nothing to send it is told all the same.
    still = {**backup("a", 200, RUV, BASE), "version": "1.11"}
    found = of(collected(tmp_path / "still", still, old), case=tmp_path / "case-still")
    assert {one["code"] for one in found["findings"]} == {"VERSIONS_DIFFER"}
