"""What servers that keep no log remember, as pages show it: ranges, positions with their entries, floors, tombstones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from incident_samples import incident_of
from kanidm_samples import START, backup, case_of_graves, case_of_set, collected, entry_id, origin, text_of
from view_samples import LOST, say

from widgets import (
    AnchorLine,
    EntryDiff,
    FloorGrid,
    Inputs,
    MeshMap,
    MissedChanges,
    PendingLanes,
    PositionList,
    RangeBars,
    Stepper,
    Stops,
    TimeLine,
    Tombstones,
    VectorsOverTime,
    WalkThrough,
)
from workbench import Case, Problem
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.pair_matrix_text import stuck_of
from workbench.engine.selective_read import groups_that
from workbench.views.entry_ranges import compared, floor_grid, range_bars
from workbench.views.overview import mesh
from workbench.views.parameters import span_of
from workbench.views.position_pages import PageQuery, positions_page, tombstones_page
from workbench.views.worked_examples import walk, walks

NOW = 20 * 24 * 3600


@pytest.fixture(scope="module")
def graves() -> Incident:
    return Incident(case_of_graves())


@pytest.fixture(scope="module")
def offline() -> Incident:
    return Incident(case_of_set("synth-offline8d"))


@pytest.fixture(scope="module")
def missed() -> Incident:
    return Incident(case_of_set("synth-missed"))


def all_positions(incident: Incident, asked: PageQuery, size: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        page = positions_page(incident, asked, rows[-1]["key"] if rows else None, size)
        assert len(page["rows"]) == size or not page["more"]
        rows += page["rows"]
        if not page["more"]:
            return rows


def read(incident: Incident, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Every row of a table at once: what no page may do."""
    return list(zip(*(incident.then.arrow(table)[name].to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize("size", [7, 50])
@pytest.mark.parametrize("name", ["graves", "offline", "missed"])
def test_pages_show_every_position_once_in_its_order_with_all_entries_behind_it(
    name: str, size: int, request: pytest.FixtureRequest
) -> None:
    incident = request.getfixturevalue(name)
    rows = all_positions(incident, PageQuery(), size)
    listed = {position for (position,) in read(incident, "listed", "position")}
    assert [row["position"] for row in rows] == sorted(listed)
    carried: dict[tuple[str, str], set[str]] = {}
    for server, time, by, entry in read(incident, "states", "server", "hi", "origin", "entry"):
        carried.setdefault((server, f"{time:032d}-{by}"), set()).add(entry)
    on = {*read(incident, "listed", "server", "position")}
    for row in rows:
        anywhere = [server for server, position in carried if position == row["position"]]
        assert row["anchor"] is not bool(anywhere)
        for server, cell in zip("ABC", row["cells"], strict=True):
            entries = carried.get((server, row["position"]), set())
            assert cell["count"] == len(entries) == len(cell["entries"]) + cell["more"]
            assert {one["entry"] for one in cell["entries"]} <= entries
            assert cell["listed"] is ((server, row["position"]) in on)


def test_what_a_server_lacks_is_told_where_it_claims_it_and_an_anchor_is_no_loss(missed: Incident) -> None:
    rows = {row["position"]: row for row in all_positions(missed, PageQuery(), 40)}
    for lost in missed.found["missing"]:
        cell = rows[lost["position"]]["cells"][2]
        assert (cell["verdict"], cell["listed"]) == ("missing", True)
        assert cell["says"] == f"lacks it: {lost['target']} ({lost['attribute']})"
    assert sum(cell["verdict"] == "missing" for row in rows.values() for cell in row["cells"]) == 3
    anchors = [row for row in rows.values() if row["anchor"]]
    assert anchors and all(cell["says"] == "an anchor" for row in anchors for cell in row["cells"])


def test_positions_are_those_of_the_chosen_origin_server_and_time(graves: Incident) -> None:
    whole = all_positions(graves, PageQuery(), 100)
    of_b = all_positions(graves, PageQuery(origin=origin("b")), 100)
    assert [row["key"] for row in of_b] == [row["key"] for row in whole if row["origin"] == origin("b")]
    since, until = "2026-01-01T00:01:45Z", "2026-01-01T00:01:50Z"
    some = all_positions(graves, PageQuery(since=since, until=until), 2)
    assert [row["position"] for row in some] == [text_of(time, "a") for time in range(105, 110)]
    page = positions_page(graves, PageQuery(server="C"))
    assert page["servers"] == ["C"]
    assert len(all_positions(graves, PageQuery(server="C"), 5)) < len(whole)
    with pytest.raises(Problem, match="ends before it begins"):
        positions_page(graves, PageQuery(since=until, until=since))


def test_tombstones_say_who_has_seen_them_who_forgets_them_and_who_needs_them(graves: Incident) -> None:
    rows: list[dict[str, Any]] = []
    while True:
        page = tombstones_page(graves, PageQuery(), rows[-1]["mark"] if rows else None, 9)
        rows += page["rows"]
        if not page["more"]:
            break
    wanted = [(text_of(100 + number, "a"), entry_id(number)) for number in range(30)]
    wanted.append((text_of(NOW - 50, "b"), entry_id(35)))
    assert [(row["position"], row["entry"]) for row in rows] == wanted
    told = [tuple(cell["says"] for cell in row["cells"]) for row in rows]
    assert told[3] == ("keeps it", "keeps it", "claims it, and shows the entry")
    assert told[4] == ("keeps it", "keeps it", "keeps it")
    assert told[10] == told[30] == ("keeps it", "keeps it", "has not seen it")
    assert [row["reapable"] for row in (rows[3], rows[4], rows[30])] == [["A", "B"], ["A", "B", "C"], []]
    assert [row["held_by"] for row in (rows[3], rows[4], rows[30])] == [["C"], [], ["C"]]
    # Under the note a tombstone goes when every first time of every origin lies behind it.
    assert all(row["design"] == ["A", "B", "C"] for row in rows)
    assert rows[3]["target"] == "entry0003"  # of C, where it lives on
    row = next(row for row in graves.found["tombstones"] if row["server"] == "A")
    assert row["needed"] == sum("A" in one["reapable"] and bool(one["held_by"]) for one in rows)
    only = tombstones_page(graves, PageQuery(origin=origin("b")))
    assert [row["position"] for row in only["rows"]] == [text_of(NOW - 50, "b")]
    assert len(tombstones_page(graves, PageQuery(server="C"))["rows"]) == 9


def test_ranges_lie_on_one_line_of_time(graves: Incident, offline: Incident) -> None:
    drawn = range_bars(offline)
    bars = {(row["made_on"], bar["server"]): bar for row in drawn["origins"] for bar in row["bars"]}
    assert bars["A", "C"]["begin"] == 0.0 and bars["B", "A"]["end"] == 1.0
    assert bars["A", "C"]["end"] < bars["A", "A"]["begin"], "C ends before A begins: nothing can be supplied"
    assert (bars["C", "A"]["begin"], bars["C", "A"]["last"], bars["A", "C"]["waits"]) == (None, None, 50)
    cut, first = drawn["cuts"]["A"]["place"], bars["A", "A"]["begin"]
    assert 0 < first < cut < 1 and drawn["cuts"]["C"]["place"] is None
    drawn = range_bars(graves)
    by = {row["made_on"]: row["bars"] for row in drawn["origins"]}
    assert {bar["zero"] for bar in by["B"]} == {True} and not any(bar["zero"] for bar in by["A"])
    assert drawn["from"] == "2026-01-01 00:00:00", "time 0 is no change, and does not stretch the line"
    assert [bar["shows"] for bar in by["A"]] == [True, True, False]
    assert by["A"][0]["gap"] == [text_of(129, "a"), text_of(NOW - 60, "a")]
    assert by[None][0]["begin"] == by[None][0]["end"] == 1.0
    late = range_bars(graves, since="2026-01-15T00:00:00Z")
    assert [bar["outside"] for bar in late["origins"][0]["bars"]] == [False, False, True]
    assert START > 0


def test_two_servers_are_compared_both_ways(offline: Incident) -> None:
    to, back = compared(offline, "A", "C")
    assert (to["supplier"], to["message"], to["verdict"]) == ("A", "RefreshRequired", "missing")
    assert (back["supplier"], back["message"], back["verdict"]) == ("C", "UnwillingToSupply", "missing")
    assert {row["what"] for row in to["rows"]} == {"lag"} and {row["what"] for row in back["rows"]} == {"advance"}
    assert (to["rows"][0]["from_says"], to["rows"][0]["to_says"]) == ("the supplier's first", "the consumer's last")
    rest, _ = compared(offline, "A", "B")
    assert (rest["verdict"], rest["rows"]) == ("present", [])
    with pytest.raises(Problem, match="no pair A -> Z"):
        compared(offline, "A", "Z")


def test_the_second_bar_that_is_clicked_makes_a_pair(offline: Incident) -> None:
    view = RangeBars(offline)
    assert view.data["pair"] is None
    say(view, what="pick", origin=0, bar=2)
    assert view.data["pair"] is None
    say(view, what="pick", origin=1, bar=0)
    assert [(way["supplier"], way["consumer"]) for way in view.data["pair"]] == [("C", "A"), ("A", "C")]
    say(view, what="pick", origin=0, bar=1)
    assert [way["supplier"] for way in view.data["pair"]] == ["A", "B"]
    for wrong in ({"origin": 9, "bar": 0}, {"origin": 0, "bar": "0"}, {"origin": 0}):
        say(view, what="pick", **wrong)
        assert "not there any more" in view.notice


def test_the_pair_that_is_offered_is_one_that_is_stuck(offline: Incident) -> None:
    chosen = Inputs(offline, "31_entry_replication", supplier="", consumer="")
    assert {chosen.value("supplier"), chosen.value("consumer")} == {"A", "C"}
    stuck = {(row["supplier"], row["consumer"]) for row in offline.found["pairs"] if stuck_of(row)}
    assert stuck == {("A", "C"), ("B", "C"), ("C", "A"), ("C", "B")}


def test_floors_say_who_holds_them_and_of_whom_nobody_knows(graves: Incident, offline: Incident) -> None:
    drawn = floor_grid(graves)
    cells = {row["server"]: [cell["says"] for cell in row["cells"]] for row in drawn["rows"]}
    assert cells["C"][:2] == ["holds the floor", "holds the floor"]
    assert cells["A"] == [
        "20.0 days above the floor; leaves C behind",
        "10 s above the floor",
        "at the floor",
        "at the floor",
    ]
    assert drawn["rows"][-1]["origin"] == origin("z") and set(cells[origin("z")]) == {"nobody knows"}
    (doubt,) = drawn["doubts"]
    assert doubt.startswith(f"No floor is certain: {origin('z')} was heard of within the window")
    cells = {row["server"]: row["cells"][2] for row in floor_grid(offline)["rows"]}
    assert (cells["A"]["verdict"], cells["A"]["says"]) == ("unknown", "forgotten, or never seen")
    assert cells["C"]["verdict"] == "present"
    view = FloorGrid(graves)
    say(view, what="pick", row=0, column=0)
    assert "forgets at its next purge 31, of which 20 are still needed" in view.data["picked"]["hover"]


def test_views_are_left_through_page_by_page_and_back(graves: Incident) -> None:
    view = PositionList(graves)
    first = [row["key"] for row in view.data["rows"]]
    say(view, what="page", by=-1)
    assert [row["key"] for row in view.data["rows"]] == first
    say(view, what="page", by=1)
    second = [row["key"] for row in view.data["rows"]]
    assert first[-1] < second[0] and not view.data["more"]
    say(view, what="page", by=1)
    assert [row["key"] for row in view.data["rows"]] == second
    say(view, what="page", by=-1)
    assert [row["key"] for row in view.data["rows"]] == first
    say(view, what="pick", index=0)
    assert (view.data["rows"][0]["anchor"], view.data["story"]) == (True, None)
    say(view, what="pick", index=1)
    assert {one["server"]: one["verdict"] for one in view.data["story"]["servers"]} == dict.fromkeys("ABC", "present")
    dead = Tombstones(graves)
    say(dead, what="pick", index=3)
    assert {one["server"]: one["verdict"] for one in dead.data["story"]["servers"]}["C"] == "missing"


# --- worked examples


@pytest.mark.parametrize(
    ("name", "ends", "agree", "gone"),
    [
        ("walk-through", "x: data = three; x: from-b = two", True, []),
        ("flip-flop", "x: data = one; x: from-b = four", False, [7]),
        ("flip-flop prevented", "x: data = three; x: from-b = four", True, []),
        ("no-operation", "x: name = w", True, []),
        ("no-operation left out", "x: name = l", True, []),
        ("no-operation today", "x: name = w", True, []),
    ],
)
def test_a_small_fleet_is_walked_through(name: str, ends: str, agree: bool, gone: list[int], missed: Incident) -> None:
    view = WalkThrough(missed, Inputs(missed, "31_entry_replication", walk=name))
    assert name in walks(missed)
    last = view.data["servers"][-1]
    assert "; ".join(one["text"] for one in last["values"]) == ends
    assert view.data["agree"] is agree
    assert [number for number, one in enumerate(view.data["steps"], 1) if one["back"]] == gone
    at = view.data["at"]
    for to, there in ((0, 0), (3, 3), (-5, 0), (999, at), ("3", at), (True, at)):
        say(view, what="go", to=to)
        assert view.data["at"] == there
    say(view, what="go", to=0)
    assert [one["new"] for one in view.data["servers"][0]["values"]] == [True]
    assert [one["name"] for one in view.data["servers"] if one["values"]] == ["A"]


def test_the_condition_is_what_keeps_a_read_only_consumer_from_going_back(missed: Incident) -> None:
    steps = walk(missed, "flip-flop prevented")["steps"]
    assert [number for number, one in enumerate(steps, 1) if one["refused"]] == [7]
    assert "would go back in time" in steps[6]["refused"]
    with pytest.raises(Problem, match="there is no example nothing"):
        walk(missed, "nothing")


# --- each system has what it has, and the others say so


def test_where_there_are_no_worked_examples_a_sentence_says_so() -> None:
    incident = incident_of(LOST)
    view = WalkThrough(incident, Inputs(incident, "31_entry_replication", walk=""))
    assert "no worked examples of fleets of 389 Directory Server" in view.text()


@pytest.mark.parametrize("view", [RangeBars, PositionList, FloorGrid, Tombstones])
def test_where_servers_keep_logs_a_sentence_says_so(view: type[Any]) -> None:
    made = view(incident_of(LOST))
    assert made.data == {}
    assert "servers of 389 Directory Server keep logs of their changes" in made.text()
    for message in ({"what": "page", "by": 1}, {"what": "pick", "index": 0, "row": 0, "origin": 0}):
        say(made, **message)
        assert made.data == {}


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (AnchorLine, "31_entry_replication shows how its servers replicate; sessions are played for"),
        (Stepper, "31_entry_replication shows how its servers replicate"),
        (Stops, "31_entry_replication shows how its servers replicate"),
        (PendingLanes, "servers of Kanidm keep no pending list"),
        (EntryDiff, "what a server lacks of the others is under missing"),
        (TimeLine, "it keeps no log: 31_entry_replication shows what it lists"),
    ],
)
def test_where_servers_keep_no_log_a_sentence_says_so(view: type[Any], says: str, missed: Incident) -> None:
    chosen = Inputs(missed, "any", supplier="A", consumer="C", rules="", per_load=5)
    assert chosen.value("rules") == "kanidm"
    assert says in view(missed, chosen).text()


def test_a_missing_attribute_is_named(missed: Incident) -> None:
    heads, *rows = MissedChanges(missed).as_text().splitlines()[2:]
    assert "ATTRIBUTE" in heads and len(rows) == 3
    assert "ATTRIBUTE" not in MissedChanges(incident_of(LOST)).as_text()


def test_a_link_over_which_nothing_is_to_go_is_not_stuck(missed: Incident, offline: Incident) -> None:
    """Links are in no backup: a pair is drawn as if there were one."""
    for incident, supplier, verdict in ((missed, "A", "missing"), (offline, "A", "missing"), (offline, "B", "present")):
        consumer = "A" if supplier == "B" else "C"
        link = {
            "supplier": supplier,
            "suffix": None,
            "name": "x",
            "consumer": consumer,
            "address": None,
            "enabled": True,
        }
        incident.found["links"].append(link)
        drawn = mesh(incident, None)["links"][0]
        incident.found["links"].remove(link)
        assert drawn["verdict"] == verdict
        assert ("refresh" in drawn["label"]) is (incident is offline and consumer == "C")


def test_the_times_that_may_be_chosen_are_those_of_the_vectors(graves: Incident, missed: Incident) -> None:
    assert span_of(missed) == ("2026-01-01 00:00:00", "2026-01-03 00:00:42")
    assert span_of(graves)[0] == "2026-01-01 00:00:00", "time 0 is no change"


def test_a_map_without_links_says_so(missed: Incident) -> None:
    assert "No collected file tells of a link" in MeshMap(missed).text()
    assert "No collected file tells of a link" not in MeshMap(incident_of(LOST)).text()


def test_a_picture_without_times_says_so(missed: Incident) -> None:
    assert VectorsOverTime(missed).text() == "Nothing in the case tells when a vector moved."


def test_of_what_is_listed_only_the_rows_near_a_page_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server lists a hundred thousand positions in a week; a page shows twenty."""
    listed = [(second, "ab"[second % 2]) for second in range(1, 40_001)]
    case = Case.create(tmp_path / "case")
    case.load([collected(tmp_path / "in", *(backup(name, 50_000, listed) for name in "ab"))])
    incident, groups = Incident(case), []

    def counted(*given: Any) -> Any:
        for table in groups_that(*given):
            groups.append(len(table))
            yield table

    monkeypatch.setattr("workbench.views.position_pages.groups_that", counted)
    page = positions_page(incident, PageQuery(), size=20)
    assert [row["position"] for row in page["rows"]] == [text_of(second, "ab"[second % 2]) for second in range(1, 21)]
    assert all(cell["listed"] for row in page["rows"] for cell in row["cells"])
    assert sum(groups) < 2 * 40_000, "of two servers, each looked at twice: less than half of all"
    groups.clear()
    page = positions_page(incident, PageQuery(), text_of(39_990, "a"), 20)
    assert [row["position"] for row in page["rows"]] == [
        text_of(second, "ab"[second % 2]) for second in range(39_991, 40_001)
    ]
    assert sum(groups) < 40_000
