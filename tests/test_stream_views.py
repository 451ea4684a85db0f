"""What pictures of a stream show, against what the output of the diagnosis says of the same logs."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from incident_samples import incident_of
from stream_files import bulk, bulk_incident, case_of_logs, history, log_of, without

from widgets import FleetDifference, TransactionLanes
from workbench.case.case import Case
from workbench.diagnosis.incident import Incident
from workbench.model import NotOfThisSystem, Problem
from workbench.views import stream_lanes, stream_views
from workbench.views.stream_lanes import Wanted, lanes
from workbench.views.stream_views import fleet_grid, heat


def lane(incident: Incident, position: str) -> dict:
    return next(one for one in lanes(incident, Wanted("main"))["lanes"] if one["position"] == position)


def test_a_bulk_comes_in_pieces_that_may_be_applied_before_its_commit() -> None:
    incident = bulk_incident()
    one = lane(incident, "1")
    assert (one["outcome"], one["seen"], one["ahead"], one["undo"], one["meanwhile"]) == ("committed", 10, 8, 0, 2)
    assert [(mark["segment"], mark["rows"], mark["state"]) for mark in one["marks"]] == [
        (1, 4, "kept"),
        (2, 4, "kept"),
        (3, 2, "kept"),
    ]
    places = [mark["order"] for mark in one["marks"]]
    assert places == sorted(places)
    assert places[0] == 0


def test_what_was_applied_of_a_rolled_back_one_must_be_taken_back() -> None:
    one = lane(bulk_incident(), "3")
    assert (one["outcome"], one["ahead"], one["undo"], one["verdict"]) == ("rolled_back", 6, 6, "stranded")
    assert [(mark["rows"], mark["state"], mark["back"]) for mark in one["marks"]] == [
        (3, "cancelled", None),
        (3, "cancelled", None),
        (0, "cancelled", "transaction"),
    ]


def test_of_a_failed_statement_the_rest_of_the_transaction_stays() -> None:
    one = lane(bulk_incident(), "5")
    assert (one["outcome"], one["seen"], one["kept"], one["undo"]) == ("committed", 8, 3, 5)
    assert [(mark["rows"], mark["kept"], mark["back"]) for mark in one["marks"]] == [(7, 2, None), (1, 1, "statement")]


def test_without_an_end_all_that_came_is_at_risk() -> None:
    one = lane(bulk_incident(), "6")
    assert (one["outcome"], one["ahead"], one["undo"], one["at_risk"]) == ("unfinished", 7, 0, 7)
    assert [mark["state"] for mark in one["marks"]] == ["open"]


def test_a_second_delivery_is_drawn_and_not_counted(tmp_path: Path) -> None:
    sent = [*bulk(), *[one for one in bulk() if one.transaction in (1, 4)]]
    incident = Incident(case_of_logs(tmp_path, main=log_of(sent)))
    one = lane(incident, "1")
    assert Counter(mark["state"] for mark in one["marks"]) == {"kept": 3, "again": 3}
    assert sum(mark["kept"] for mark in one["marks"]) == one["kept"] == 10
    assert sum(sum(row["seen"]) for row in heat(incident)["tables"]) == incident.found["streams"][0]["rows_seen"]


@pytest.mark.parametrize("seed", range(8))
def test_pieces_and_tables_come_to_what_the_diagnosis_counts(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_lanes, "MARKS", 3)
    incident = Incident(case_of_logs(tmp_path, main=log_of(history(seed))))
    (told,) = incident.found["streams"]
    for by in ("time", "log"):
        tables = heat(incident, by=by)["tables"]
        sums = [sum(sum(one[key]) for one in tables) for key in ("seen", "kept", "cancelled")]
        assert sums == [told["rows_seen"], told["rows_kept"], told["rows_cancelled"]]
        assert {one["table"]: sum(one["kept"]) for one in tables if sum(one["kept"])} == {
            table: sum(of.values()) for table, of in told["tables"].items()
        }
    found, after = [], None
    while True:
        page = lanes(incident, Wanted(which="all"), after, 4)
        found += page["lanes"]
        after = page["mark"]
        if not page["more"]:
            break
    assert Counter(one["outcome"] for one in found) == told["outcomes"]
    assert sum(one["kept"] for one in found) == told["rows_kept"]
    assert sum(one["undo"] for one in found) == told["rows_cancelled"]
    for one in found:
        assert len(one["marks"]) <= 3
        assert sum(mark["count"] for mark in one["marks"]) == one["messages"]
        kept = [mark["kept"] for mark in one["marks"]]
        assert None in kept or sum(kept) == one["kept"]


def test_pages_go_by_size_and_around_a_position() -> None:
    incident = bulk_incident()
    big = [one["bytes"] for one in lanes(incident, Wanted("main", which="big"))["lanes"]]
    assert big == sorted(big, reverse=True)
    assert [one["position"] for one in lanes(incident, Wanted("main", position="4"), size=3)["lanes"]] == [
        "3",
        "4",
        "5",
    ]
    with pytest.raises(Problem, match="does not hold 77"):
        lanes(incident, Wanted("main", position="77"))
    with pytest.raises(Problem, match="no choice"):
        lanes(incident, Wanted("main", which="some"))
    with pytest.raises(Problem, match="log of nobody was not collected"):
        lanes(incident, Wanted("nobody"))


def test_the_fleet_shows_each_difference_in_the_order_of_commits() -> None:
    (of,) = fleet_grid(bulk_incident())
    assert (of["source"], of["servers"], of["count"]) == ("main", ["copy"], 3)
    assert [(row["first"], row["outcome"], row["cells"][0]["says"]) for row in of["rows"]] == [
        ("2", "committed", "missing"),
        ("1", "committed", "not yet, without an end"),
        ("5", "committed", "not yet"),
    ]


def test_alike_neighbours_are_one_row(tmp_path: Path) -> None:
    plain = [one for one in bulk() if one.transaction in (2, 4)]
    sent = [
        one for number in range(10) for one in plain for one in [type(one)(number * 2 + one.transaction, one.message)]
    ]
    ordered = list({one.transaction: one for one in sent}.values())
    numbers = [one.transaction for one in ordered]
    lacks = [*numbers[2:5], numbers[6]]
    incident = Incident(case_of_logs(tmp_path, main=log_of(ordered), copy=log_of(without(ordered, *lacks))))
    (of,) = fleet_grid(incident)
    assert [(row["first"], row["last"], row["count"], row["kept"]) for row in of["rows"]] == [
        (str(numbers[2]), str(numbers[4]), 3, 3),
        (str(numbers[6]), str(numbers[6]), 1, 1),
    ]


def test_only_some_tables_are_shown_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_views, "TABLES", 1)
    shown = heat(bulk_incident(), "main", by="log")
    assert ([one["table"] for one in shown["tables"]], shown["others"]) == (["test.person"], 1)
    assert shown["tables"][0]["open"] == 7


def test_of_another_system_there_is_no_stream() -> None:
    lost = incident_of("missed_behind_equal_vectors")
    for ask in (lambda: lanes(lost, Wanted()), lambda: fleet_grid(lost), lambda: heat(lost)):
        with pytest.raises(NotOfThisSystem, match="no stream of transactions"):
            ask()


SAMPLES = Path(__file__).parent / "samples" / "drizzle"


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.log.gz")))
def test_tables_of_every_given_log_come_to_what_the_diagnosis_counts(name: str, tmp_path: Path) -> None:
    incident = Incident(case_of_logs(tmp_path, main=gzip.decompress((SAMPLES / name).read_bytes())))
    (told,) = [row for row in incident.found["streams"] if row["origin"] == "1"]
    tables = heat(incident, origin="1")["tables"]
    sums = [sum(sum(one[key]) for one in tables) for key in ("seen", "kept", "cancelled")]
    assert sums == [told["rows_seen"], told["rows_kept"], told["rows_cancelled"]]


def test_what_a_replica_may_do_is_said() -> None:
    incident = bulk_incident()
    said = {position: " ".join(stream_lanes.lane_says(lane(incident, position))) for position in ("1", "3", "5", "6")}
    assert "8 of its 10 rows came before its last message." in said["1"]
    assert "has 2 rows left to apply at the commit" in said["1"]
    assert "2 other transactions were committed" in said["1"]
    assert "must undo all of it: 6 rows. One that waited for the end has nothing to undo." in said["3"]
    assert "must undo what its statements that failed had changed: 5 rows" in said["5"]
    assert "may have to undo 7 rows: nothing tells yet what counts" in said["6"]


def test_a_table_of_a_master_tells_no_order_of_pieces(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    packed = next((SAMPLES / "innodb_log").glob("sys_replication_log*"))
    (folder / f"master.{packed.name}").write_bytes(packed.read_bytes())
    case = Case.create(tmp_path / "case")
    case.load([folder])
    incident = Incident(case)
    page = lanes(incident, Wanted())
    assert (page["in_order"], {one["meanwhile"] for one in page["lanes"]}) == (False, {None})
    assert lanes(bulk_incident(), Wanted("main"))["in_order"]
    assert TransactionLanes(incident).text().startswith("master: ")
    assert "none to compare it with" in FleetDifference(incident).text()
