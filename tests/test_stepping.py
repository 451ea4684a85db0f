"""The session stepper: what it shows are the decisions of the exact replay, and going through them is consistent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from given_cases import given_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_histories import RULE_SETS, history, stored
from mesh_samples import case_of, changelog, claims, csn, elements, pair_of_servers, replica
from session_checks import ORACLES, four, rule_set
from session_samples import CORNERS, random_session

from widgets import AnchorLine, Inputs, Stepper, Stops
from workbench import Case, Problem
from workbench.diagnosis.incident import Incident
from workbench.engine.logs import StoredLog
from workbench.replication.changelog.diagnosis.planned_sessions import PlannedSession
from workbench.rules import send_session, vectors
from workbench.rules.send_session import Bound, Event, Load, Session, SortedLog, happened, play, replay
from workbench.systems.ds389 import SYSTEM
from workbench.systems.ds389.rules import sending as real
from workbench.views.session_bounds import starting_points, stopping_points
from workbench.views.session_replay import DIFFERENT, Stepping, Track, stepping_of

HOUSE = SimpleNamespace(vectors=vectors, sending=send_session, real=real)
INCIDENTS = Path(__file__).parent / "incidents"
BUFFERS = (1, 2, 3, 5, 8, 100, 1 << 62)


def walked(stepping: Stepping) -> list[tuple[int | None, ...]]:
    """All rows, one by one."""
    rows = []
    while row := stepping.row(len(rows)):
        rows.append(row)
    return rows


def check_track(track: Track, session: Session) -> None:
    """The track, played to its end, tells what the replay tells."""
    assert [one.step for one in track.records if not one.mark] == session.steps
    assert len(track.loads) == session.loads
    assert track.end
    assert track.end.why == session.end
    told = [reason for _, load in track.loads for reason in load.start.reasons] + list(track.end.reasons)
    assert told == session.reasons
    assert track.sent_upto(len(track.records)) == len(session.sent)


def stepping_through(inputs: dict[str, Any], per_load: int) -> tuple[Stepping, list[Session]]:
    """The session of one case under both rule sets, with its events, and what the replay says of each."""
    inputs = {"consumer_rid_policy": "ignore", "ignore_missing_change": "never", "cleaned_replica_ids": [], **inputs}
    events = {
        int(after): [Event(one["do"], one["csn"]) for one in several]
        for after, several in inputs["events_after_n_changes_sent"].items()
    }
    tracks, sessions = [], []
    for kind in ORACLES:
        rules = rule_set(HOUSE, kind, inputs)
        log, supplier, consumer, origin = four(HOUSE, inputs)
        sessions.append(replay(rules, log, supplier, consumer, origin, per_load, events))
        log = log.copy()
        talk = rules.open(log, supplier, consumer, origin)
        happens = {number: partial(happened, several, log) for number, several in events.items()}
        tracks.append(Track(rules, talk, play(talk, log, supplier, per_load, happens), SYSTEM.origin_of))
    return Stepping(SYSTEM, tracks), sessions


@pytest.mark.parametrize(("name", "kind"), [("ds389-sessions", 0), ("design-sessions", 1)])
def test_the_stepper_shows_the_decisions_of_every_given_case(name: str, kind: int) -> None:
    seen = 0
    for case in given_cases(name):
        inputs, expected = case["inputs"], case["expected"]
        stepping, sessions = stepping_through(inputs, inputs["records_per_buffer"])
        rows = walked(stepping)
        for track, session in zip(stepping.tracks, sessions, strict=True):
            check_track(track, session)
        track = stepping.tracks[kind]
        shown = [
            {"csn": row["position"], "outcome": row["cells"][kind]["outcome"]}
            for number in range(len(rows))
            for row in [stepping.page(number, size=1)["rows"][0]]
            if row["cells"][kind] and row["cells"][kind]["outcome"] != "mark"
        ]
        assert shown == expected["outcome_in_order"], case["id"]
        assert [one.step.position for one in track.records if one.sent] == expected["sent"]
        assert len(track.loads) == expected["buffer_loads"]
        seen += len(shown)
    assert seen > 500


@given(st.integers(0, 2**64), st.sampled_from(BUFFERS))
@settings(max_examples=60, deadline=None)
def test_of_random_sessions_with_events_too(seed: int, per_load: int) -> None:
    random = Random(seed)
    for _ in range(10):
        stepping, sessions = stepping_through(random_session(random), per_load)
        walked(stepping)
        for track, session in zip(stepping.tracks, sessions, strict=True):
            check_track(track, session)


@pytest.mark.parametrize("name", CORNERS)
def test_of_sessions_that_turn_on_one_detail_too(name: str) -> None:
    stepping, sessions = stepping_through(CORNERS[name], CORNERS[name]["records_per_buffer"])
    last = len(walked(stepping)) - 1
    for track, session in zip(stepping.tracks, sessions, strict=True):
        check_track(track, session)
    if name == "endless":
        assert "again and again" in stepping.page(last)["sides"][0]["end"]


def test_the_stops_behind_each_record_are_those_of_the_machine() -> None:
    """They move at each load, with each change sent past the stop, and with marks."""
    random, promoted, marks = Random(5), 0, 0
    for _ in range(400):
        inputs = {**random_session(random), "events_after_n_changes_sent": {}}
        for kind in ORACLES:
            rules = rule_set(HOUSE, kind, inputs)
            log, supplier, consumer, origin = four(HOUSE, inputs)
            talk = rules.open(log, supplier, consumer, origin)
            live = []
            for seen in play(talk, log, supplier, inputs["records_per_buffer"]):
                if isinstance(seen, Load):
                    assert dict(seen.stops) == dict(talk.stops)
                elif not isinstance(seen, send_session.End):
                    live.append(dict(talk.stops))
            talk = rules.open(log, supplier, consumer, origin)
            track = Track(rules, talk, play(talk, log, supplier, inputs["records_per_buffer"]), SYSTEM.origin_of)
            assert track.record(len(live)) is None
            assert [track.stops(number) for number in range(len(live))] == live
            promoted += sum(one.step.outcome == "sent_promoted" for one in track.records)
            marks += sum(one.mark for one in track.records)
    assert promoted > 20
    assert marks > 20


# --- stored logs


@given(seed=st.integers(0, 2**32), per_load=st.sampled_from(BUFFERS), page=st.sampled_from([1, 3, 512]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stored_log_plays_like_a_sorted_one(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, seed: int, per_load: int, page: int
) -> None:
    monkeypatch.setattr("workbench.engine.logs._PAGE", page)
    random = Random(seed)
    supplier, consumer, other = history(random, 0)
    log = stored(supplier, tmp_path_factory.mktemp("log"), random.choice([1, 3]), random)
    memory = SortedLog(supplier.changes, SYSTEM.origin_of, supplier.marks)
    everything = [*supplier.changes, *supplier.marks, "0" * 20, "f" * 20]
    for bound in (Bound(random.choice(everything), included) for included in (True, False, True)):
        assert list(log.read(bound, per_load)) == memory.read(bound, per_load)
    for peer in (consumer, other):
        tracks = []
        for rules in RULE_SETS:
            talk = rules.open(log, supplier.vector, peer.vector, peer.origin)
            tracks.append(Track(rules, talk, play(talk, log, supplier.vector, per_load), SYSTEM.origin_of))
        walked(Stepping(SYSTEM, tracks))  # all at once, so that they read one log in turns
        for rules, track in zip(RULE_SETS, tracks, strict=True):
            check_track(track, replay(rules, memory, supplier.vector, peer.vector, peer.origin, per_load))


def test_a_long_log_is_read_in_pages_and_no_page_twice_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [csn(second, 1) for second in range(3_000)]
    server = SimpleNamespace(name="s", origin="1", changes=changes, marks=[], vector={})
    log = stored(cast(Any, server), tmp_path, 1, Random(0))
    pages = 0

    def counted(self: StoredLog, bound: Bound, limit: int) -> Any:
        nonlocal pages
        pages += 1
        return page(self, bound, limit)

    page = StoredLog.page
    monkeypatch.setattr(StoredLog, "page", counted)
    first = log.read(Bound(changes[0], True), 1 << 62)
    assert [next(first) for _ in range(5)] == changes[:5]
    assert pages == 1, "the log was read further than somebody asked"
    bound, read = Bound(changes[0], True), list[str]()
    while found := list(log.read(bound, 1)):
        read += found
        bound = Bound(found[0], False)
    assert read == changes
    assert pages < 3 * len(changes) / 512 + 3


# --- going through


def lagging(tmp_path: Path, per_load: int = 0, **files: str) -> tuple[Incident, Stepping]:
    incident = Incident(case_of(tmp_path, {**pair_of_servers(ahead=40, behind=4), **files}))
    return incident, stepping_of(incident, "s1", "s2", per_load=per_load)


def test_rows_hold_every_record_once_in_the_order_of_each_rule_set() -> None:
    random = Random(11)
    for _ in range(300):
        stepping, _ = stepping_through(random_session(random), random.choice(BUFFERS))
        rows = walked(stepping)
        for side, track in enumerate(stepping.tracks):
            assert [row[side] for row in rows if row[side] is not None] == list(range(len(track.records)))
        for row in rows:
            positions = {
                track.records[at].step.position
                for track, at in zip(stepping.tracks, row, strict=True)
                if at is not None
            }
            assert len(positions) == 1


def test_a_page_is_the_same_from_wherever_one_comes() -> None:
    random = Random(12)
    for _ in range(40):
        inputs, per_load = random_session(random), random.choice(BUFFERS)
        (forth, _), (back, _) = stepping_through(inputs, per_load), stepping_through(inputs, per_load)
        last = back.last()
        straight = [forth.page(number) for number in range(last + 1)]
        for number in random.sample(range(last + 1), last + 1):
            page = back.page(number)
            assert page["rows"] == straight[number]["rows"]
            assert page["sides"] == straight[number]["sides"]
            (current,) = [row for row in page["rows"] if row["number"] == number + 1]
            assert current["number"] - 1 == page["at"]


def test_jumps_find_what_a_walk_finds() -> None:
    random, found = Random(13), {"skip": 0, "load": 0, "difference": 0}
    for _ in range(150):
        stepping, _ = stepping_through(random_session(random), random.choice(BUFFERS))
        rows = walked(stepping)
        track = stepping.tracks[stepping.leading]

        def skipped(row: Any, track: Track = track, leading: int = stepping.leading) -> bool:
            return (
                row[leading] is not None
                and not track.records[row[leading]].mark
                and not track.records[row[leading]].sent
            )

        def loaded(row: Any, tracks: Any = stepping.tracks) -> bool:
            return any(at and at in [first for first, _ in one.loads] for one, at in zip(tracks, row, strict=True))

        def differs(row: Any, stepping: Stepping = stepping) -> bool:
            return stepping.compared(row) == DIFFERENT

        for name, jump, wanted in (
            ("skip", stepping.next_skip, skipped),
            ("load", stepping.next_load, loaded),
            ("difference", stepping.next_difference, differs),
        ):
            for after in range(-1, len(rows)):
                expected = next((at for at in range(after + 1, len(rows)) if wanted(rows[at])), None)
                assert jump(after) == expected, (name, after)
                found[name] += expected is not None
    assert min(found.values()) > 100


def test_nothing_is_played_further_than_somebody_looks(tmp_path: Path) -> None:
    _, stepping = lagging(tmp_path)
    stepping.page(0, size=4)
    assert max(len(track.records) for track in stepping.tracks) <= 7
    assert stepping.total is None
    assert stepping.last() == max(len(track.records) for track in stepping.tracks) - 1
    assert stepping.total == stepping.last() + 1


def test_behind_the_limit_nothing_is_told_but_the_counts_of_the_whole_session(tmp_path: Path) -> None:
    incident, whole = lagging(tmp_path)
    planned: PlannedSession = whole.planned[0]
    tracks = []
    for one, limit in zip(whole.planned, (10, 25), strict=True):
        talk = one.open()
        seen = play(talk, one.log, one.pair[0].vector)
        tracks.append(Track(one.rules, talk, seen, SYSTEM.origin_of, limit))
    stepping = Stepping(SYSTEM, tracks, whole.planned)
    page = stepping.page(stepping.last())
    assert page["cut"] and stepping.total and stepping.total < whole.last()
    assert (len(tracks[0].records), tracks[0].cut, tracks[0].end) == (10, True, None)
    assert not any(side["end"] for side in page["sides"])
    # No row beyond says "not read" of a rule set that was only not played so far.
    assert all(row[0] is not None for row in walked(stepping)[-3:])
    assert dict(page["sides"][0]["counts"])["sent"] == sum(found["count"] for found in planned.row["to_send"].values())
    assert not whole.cut
    assert incident.session("s1", "s2").row["counts"] == planned.row["counts"]


def test_small_buffers_are_played_less_far(tmp_path: Path) -> None:
    """Each load asks the log, so that a hundred thousand of them would keep a person waiting."""
    _, whole = lagging(tmp_path)
    one = whole.planned[0]
    for per_load, played in ((1 << 62, 36), (10, 36), (2, 20), (1, 11)):
        talk = one.open()
        track = Track(one.rules, talk, play(talk, one.log, one.pair[0].vector, per_load), SYSTEM.origin_of, limit=105)
        assert track.record(100) is None
        assert len(track.records) == played, per_load
        assert track.cut is (played < 36)


def test_a_page_says_rule_values_borders_and_stops(tmp_path: Path) -> None:
    _, stepping = lagging(tmp_path, per_load=10)
    page = stepping.page(0)
    assert [side["rules"] for side in page["sides"]] == ["ds389", "design"]
    assert page["rows"][0]["loads"][0].startswith("load 1 from behind")
    now = page["sides"][0]["now"]
    assert (now["rule"], now["sent"]) == ("up_to_stop", True)
    assert now["values"][0][:2] == ["the consumer has", csn(4, 1)]
    assert now["values"][1] == ["the stop is", csn(40, 1), "2024-03-24 10:27:52"]
    border = stepping.next_load(0)
    assert border is not None
    assert stepping.page(border)["sides"][0]["load"] == 2
    end = stepping.page(stepping.last())
    assert "no more updates" in end["sides"][0]["end"]
    assert end["sides"][0]["stops"][0] | {"has_at": "", "stop_at": ""} == {
        "origin": "1", "has": csn(40, 1), "has_at": "", "sent": 36, "stop": csn(40, 1), "stop_at": "", "chosen": True,
    }  # fmt: skip
    assert end["rows"][-1]["stops"][0] == ["1"]


def test_positions_are_shown_as_the_system_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(text: str) -> str | None:
        return text[1:-1] if text.startswith("<") else None

    _, stepping = lagging(tmp_path, per_load=3)
    other = replace(SYSTEM, show=lambda key: f"<{key}>", typed=typed)
    tracks = []
    for one in stepping.planned:
        talk = one.open()
        tracks.append(Track(one.rules, talk, play(talk, one.log, one.pair[0].vector, 3), SYSTEM.origin_of))
    shown = Stepping(other, tracks)
    pages = [shown.page(number) for number in range(shown.last() + 1)]
    text = json.dumps(pages)
    assert len(re.findall(r"<66[0-9a-f]{18}>", text)) > 100
    assert not re.findall(r"(?<![<0-9a-f])66[0-9a-f]{18}(?![>0-9a-f])", text)


def test_a_system_whose_suppliers_are_not_known_says_so() -> None:
    silent = SimpleNamespace(system=replace(SYSTEM, supplying=None, title="Another"), case=SimpleNamespace(name="c"))
    with pytest.raises(Problem, match=r"no rules of sending are known for Another .*sessions are played for 389"):
        stepping_of(cast(Any, silent), "a", "b")


def test_a_buffer_of_less_than_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="do not fit"):
        lagging(tmp_path, per_load=-1)


# --- where it begins, where it stops


@pytest.fixture(scope="module")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Incident]]:
    made = {}
    for name in ("purged_changelog", "lag_behind_disabled_links", "missed_behind_equal_vectors"):
        case = Case.create(tmp_path_factory.mktemp("incident") / name)
        case.load(sorted(folder for folder in (INCIDENTS / name).iterdir() if folder.is_dir()))
        made[name] = Incident(case)
    yield made


def test_a_purged_anchor_is_a_candidate_before_the_log_begins(incidents: dict[str, Incident]) -> None:
    points = starting_points(incidents["purged_changelog"], "s1", "s3")
    first, design = points["sides"]
    assert (first["rules"], first["decision"], first["in_log"]) == ("ds389", "anchor_not_found", False)
    assert (design["decision"], design["in_log"], design["next"]) == ("send", True, design["anchor"])
    assert [one["origin"] for one in first["candidates"] if one["chosen"]] == ["1"]
    assert [one["origin"] for one in design["candidates"] if one["chosen"]] == ["1"]
    begins = next(at for at, point in enumerate(points["points"]) if "the log begins" in point["log"])
    absent = next(
        at for at, point in enumerate(points["points"]) if any(one["kind"] == "absent" for one in point["marks"][0])
    )
    assert absent < begins
    assert [point["position"] for point in points["points"]] == sorted(point["position"] for point in points["points"])


def test_what_lies_beyond_the_stops_is_what_the_log_has_there(incidents: dict[str, Incident]) -> None:
    incident = incidents["lag_behind_disabled_links"]
    log = incident.session("s1", "s2").log
    found = stopping_points(incident, "s1", "s2", per_load=5)
    for side in found["sides"]:
        for one in side["origins"]:
            changes = list(log.changes(one["origin"], Bound(one["stop"] or "0" * 20, False)))
            assert (one["beyond"], one["first"]) == (len(changes), changes[0] if changes else None)
    calm, moved = found["sides"][0]["reloads"]
    assert calm["sent"] == 131 and calm["end"].startswith("no more updates")
    # Of what lay beyond the stops all is sent once the vector has moved to what the log shows.
    assert moved["sent"] == 131 + sum(one["beyond"] for one in found["sides"][0]["origins"] if one["stop"])
    assert "origin 1, 3" in moved["with"]


def test_where_nothing_is_to_send_the_views_say_why(incidents: dict[str, Incident]) -> None:
    incident = incidents["missed_behind_equal_vectors"]
    chosen = Inputs(incident, "22_stop_csn", supplier="s1", consumer="s2", suffix="", rules="", per_load=0)
    for view in (Stepper(incident, chosen), AnchorLine(incident, chosen), Stops(incident, chosen)):
        assert "nothing to send: no replica ID has anything to send" in view.text()
    assert "No buffer is loaded" in Stops(incident, chosen).text()


# --- widgets, without a browser


def inputs_of(incident: Incident, per_load: int = 5) -> Inputs:
    return Inputs(incident, "22_stop_csn", supplier="s1", consumer="s2", suffix="", rules="", per_load=per_load)


def say(view: Any, what: str, **more: Any) -> None:
    view._heard(None, {"what": what, **more}, [])


def test_the_stepper_goes_where_it_is_told(incidents: dict[str, Incident]) -> None:
    stepper = Stepper(incidents["lag_behind_disabled_links"], inputs_of(incidents["lag_behind_disabled_links"]))
    began = stepper.data
    say(stepper, "step", by=1)
    assert stepper.data["at"] == 1
    say(stepper, "step", by=-1)
    assert stepper.data == began | {"total": stepper.data["total"]}
    say(stepper, "step", by=-1)
    assert stepper.data["at"] == 0
    say(stepper, "jump", to="first_skip")
    assert stepper.data["at"] == 0 and not stepper.data["sides"][0]["now"]["sent"]
    say(stepper, "jump", to="load")
    assert stepper.data["at"] == 5 and stepper.data["sides"][0]["load"] == 2
    say(stepper, "go", row=8)
    assert stepper.data["at"] == 8
    say(stepper, "jump", to="difference")
    assert stepper.notice.startswith("The rule sets send the same") and stepper.data["at"] == 8
    say(stepper, "jump", to="end")
    assert (stepper.notice, stepper.data["at"]) == ("", stepper.data["total"] - 1)
    assert "it ends here: no more updates" in stepper.text()
    say(stepper, "step", by=1)
    assert stepper.data["at"] == stepper.data["total"] - 1
    say(stepper, "jump", to="skip")
    assert "No record behind this one is left out" in stepper.notice
    say(stepper, "jump", to="start")
    assert stepper.data["rows"] == began["rows"]


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("step", {"by": "1"}), ("step", {"by": True}), ("step", {"by": 10**9}), ("step", {"by": 1.5}), ("step", {}),
        ("go", {"row": None}), ("go", {"row": 10**12}), ("go", {"row": [3]}), ("go", {"row": False}),
        ("jump", {"to": "elsewhere"}), ("jump", {"to": ["end"]}), ("jump", {}), ("_go", {"row": 3}), ("made", {}),
    ],
)  # fmt: skip
def test_a_message_that_is_none_changes_nothing(
    incidents: dict[str, Incident], what: str, more: dict[str, Any]
) -> None:
    stepper = Stepper(incidents["lag_behind_disabled_links"], inputs_of(incidents["lag_behind_disabled_links"]))
    say(stepper, "go", row=3)
    say(stepper, what, **more)
    assert (stepper.data["at"], stepper.notice) == (3, "")


def test_views_follow_the_inputs_and_say_what_cannot_be_shown(incidents: dict[str, Incident]) -> None:
    incident = incidents["lag_behind_disabled_links"]
    chosen = inputs_of(incident)
    views = [Stepper(incident, chosen), AnchorLine(incident, chosen), Stops(incident, chosen)]
    chosen.choose(rules="design")
    assert [view.data["sides"][0]["rules"] for view in views] == ["design"] * 3
    chosen.choose(consumer="s1")
    assert all("there is no pair s1 -> s1" in view.text() for view in views)
    say(views[0], "step", by=1)
    say(views[0], "jump", to="end")
    assert all(view.data == {} for view in views)
    chosen.choose(consumer="s2", rules="ds389")
    assert all(view.notice == "" and view.data["sides"] for view in views)


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m=1+1\"'&"


def test_hostile_names_stay_data(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        name.replace("s1.", "evil."): text for name, text in pair_of_servers(ahead=9, behind=4).items()
    }
    files["case.yaml"] = (
        f'servers:\n  - name: {json.dumps(HOSTILE)}\n    files: ["evil.*"]\n  - name: s2\n    files: ["s2.*"]\n'
    )
    incident = Incident(case_of(tmp_path, files))
    (name,) = {one.server for one in incident.topology.replicas} - {"s2"}
    chosen = Inputs(incident, "22_stop_csn", supplier=name, consumer="s2", suffix="", rules="", per_load=2)
    for view in (Stepper(incident, chosen), AnchorLine(incident, chosen), Stops(incident, chosen)):
        assert "<img src=x onerror=alert(1)>" in json.dumps(view.data)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", view.text())


@pytest.mark.parametrize("name", ["stepper", "anchor", "stops"])
def test_a_page_makes_no_markup_of_data(name: str) -> None:
    text = (Path(__file__).parent.parent / "widgets" / "js" / f"{name}.js").read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\.href|\.style|eval\(|fetch\(|import\(", text
    )


def test_a_mark_is_shown_as_passed_and_is_no_skip(tmp_path: Path) -> None:
    """The log was made anew: only marks of what was before, and no session sends the last change of replica 3."""
    files: dict[str, str | bytes] = {**pair_of_servers()}
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(5, 10)], marks=[csn(4, 1), csn(6, 3)])
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(0, 9), r3=(1, 6))))
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r3=(1, 5))))
    case = case_of(tmp_path, files)
    stepping = stepping_of(Incident(case), "s1", "s2")
    rows = stepping.page(0)["rows"]
    assert [row["position"] for row in rows] == [csn(5, 1), csn(6, 1), csn(6, 3), csn(7, 1), csn(8, 1), csn(9, 1)]
    assert [cell["words"] for cell in rows[2]["cells"]] == ["a mark: passed, never sent"] * 2
    assert stepping.next_skip(-1) is None
    now = stepping.page(2)["sides"][0]["now"]
    assert (now["sent"], now["words"], now["rule"]) == (
        False,
        "a mark, judged like a change and never sent",
        "up_to_stop",
    )
