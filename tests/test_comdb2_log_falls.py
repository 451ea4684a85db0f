"""Logs that went back and on again: what they lost stays known, and no step throws away the last copy of it unasked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import FORKED, WHOLE, Line, dumps, log
from test_comdb2_diagnosis import case_of
from tier_files import NOW, Made, written

from workbench import Case, diagnose
from workbench.diagnosis.change_explanation import story
from workbench.repair.planner import plan
from workbench.rules.assumptions import NOT_CUT_BACK, SAME_HISTORY

Lsn = tuple[int, int]


def snapshots(folder: Path, *shots: Sequence[Made], minutes: int = 10) -> Case:
    ago = [timedelta(minutes=minutes * (len(shots) - 1 - number)) for number in range(len(shots))]
    rooms = [written(folder / f"s{number}", shot, now=NOW - ago[number - 1]) for number, shot in enumerate(shots, 1)]
    return case_of(folder, *rooms)


def source(at: Lsn, **more: Any) -> Made:
    return Made("S@s1", at=at, first=2, **more)


def copy(at: Lsn, name: str = "A@a1", **more: Any) -> Made:
    return Made(name, **({"at": at, "first": 2, "source": "S@s1"} | more))


def stopped(at: Lsn, minutes: int = 20, **more: Any) -> Made:
    return copy(at, age=minutes * 60 + 60, **more)


def diverged(case: Case, server: str = "S@s1") -> list[dict[str, Any]]:
    return [one for one in diagnose(case)["findings"] if (one["code"], one["server"]) == ("LOG_DIVERGED", server)]


def went_back(folder: Path, now: Lsn, *copies: Made, before: Sequence[Made] = (), then: Sequence[Made] = ()) -> Case:
    """S@s1 at {3:500}, at {3:200} ten minutes later, and now at another place."""
    shots = [source((3, 500)), *before], [source((3, 200)), *(then or before)], [source(now), *copies]
    return snapshots(folder, *shots)


HELD = [copy((3, 500))]


@pytest.mark.parametrize("now", [(3, 600), (3, 500), (3, 450), (4, 28), (3, 200)])
def test_what_a_source_lost_stays_known_whatever_it_wrote_since(now: Lsn, tmp_path: Path) -> None:
    case = went_back(tmp_path, now, stopped((3, 500)), before=HELD)
    (found,) = diverged(case)
    assert found["severity"] == "error" and found["items"] == ["{3:500}"]
    assert "stood at {3:500} in snapshot s1, and at {3:200} in snapshot s2" in found["summary"]
    assert "A@a1" in found["summary"]
    assert found["fix"][0]["repair"].startswith("first dump the log of A@a1 from {3:200} on before it connects anew")
    planned = plan(case)
    assert not planned.steps
    asked = [one for one in planned.courses if one.unasked]
    assert all("A@a1 may be the last that has what was lost" in one.unasked for one in asked)
    assert bool(asked) == (now > (3, 500))
    (unknown,) = diagnose(case)["unknown"]
    assert (unknown["why"], unknown["from"]) == ("source_went_back", "{3:200}") and not diagnose(case)["pending"]


def test_a_person_who_saved_it_may_ask_for_the_way_and_is_told_the_cost(tmp_path: Path) -> None:
    planned = plan(went_back(tmp_path, (3, 600), stopped((3, 500)), before=HELD))
    (restart,) = [one for one in planned.courses if one.way == "restart"]
    assert "--for A@a1 --way restart" in restart.refused
    assert "what only A@a1 may still have is thrown away" in restart.costs


@pytest.mark.parametrize(
    ("now", "repair"),
    [
        (copy((3, 500), source=None), "force-registration"),
        (copy((3, 500), age=900, answers=False), "reset-node"),
        (stopped((3, 500)), "restart"),
    ],
    ids=["on no source", "silent", "stopped"],
)
def test_no_way_leads_the_last_copy_back_to_its_source_unasked(now: Made, repair: str, tmp_path: Path) -> None:
    case = went_back(tmp_path, (3, 600), now, copy((3, 600), "A@a2"), before=HELD)
    planned = plan(case)
    assert not planned.steps and repair in [one.way for one in planned.courses if one.unasked]
    of_node = [one for one in diagnose(case)["findings"] if one["server"] == "A@a1" and one["fix"]]
    assert of_node and all("the log" in one["fix"][0]["repair"] for one in of_node)
    assert all(one["fix"][0]["repair"].startswith("first ") for one in of_node)


def test_copies_that_followed_their_source_hold_nothing_and_are_not_held_up(tmp_path: Path) -> None:
    """A@a1 was seen further back itself, A@a2 goes on with what its source has now, A@a3 counts that it cut its log off."""
    before = [copy((3, 500), f"A@a{number}") for number in (1, 2, 3)]
    then = [copy((3, 200)), copy((3, 500), "A@a2"), copy((3, 500), "A@a3")]
    now = [stopped((3, 550), 9), stopped((3, 560), 9, name="A@a2"), copy((3, 300), "A@a3", cuts=1)]
    case = went_back(tmp_path, (3, 600), *now, before=before, then=then)
    (found,) = diverged(case)
    assert "may still have" not in found["summary"] and "no node that was collected goes further" in str(found["fix"])
    assert {one["server"] for one in diagnose(case)["pending"]} == {"A@a1", "A@a2", "A@a3"}
    assert {step.server for step in plan(case).steps} == {"A@a1", "A@a2"}


def test_a_node_below_one_that_holds_what_was_lost_got_that_too(tmp_path: Path) -> None:
    before = [copy((3, 500)), copy((3, 400), "B@b1", source="A@a1")]
    now = [copy((3, 500)), copy((3, 500), "B@b1", source="A@a1")]
    (found,) = diverged(went_back(tmp_path, (3, 600), *now, before=before))
    assert "A@a1, B@b1 may still have it" in found["summary"]


def test_a_node_that_is_not_collected_any_more_is_named(tmp_path: Path) -> None:
    (found,) = diverged(went_back(tmp_path, (3, 600), copy((3, 600), "A@a2"), before=HELD))
    assert "A@a1 may still have it: A@a1 stood at {3:500} in snapshot s2" in found["summary"]
    assert found["fix"][0]["repair"].startswith("first copy the log files of A@a1 from {3:200} on")


def test_every_fall_is_told_and_of_one_that_went_on_falling_the_lowest_place(tmp_path: Path) -> None:
    places: list[Lsn] = [(3, 500), (3, 300), (3, 200), (3, 700), (3, 400), (3, 900)]
    late = [copy((3, 700), "A@a2")]
    shots = [[source(at), copy((3, 500)), *(late if number > 2 else [])] for number, at in enumerate(places)]
    first, second = sorted(one["summary"] for one in diverged(snapshots(tmp_path, *shots)))
    assert "{3:500} in snapshot s1, and at {3:200} in snapshot s3" in first and "A@a1 may still" in first
    assert "{3:700} in snapshot s4, and at {3:400} in snapshot s5" in second and "A@a2 may still" in second


def test_a_generation_that_fell_before_the_last_snapshot_is_told(tmp_path: Path) -> None:
    rows = [source(at, generation=number) for at, number in (((3, 500), 7), ((3, 600), 4), ((3, 700), 8))]
    (found,) = diverged(snapshots(tmp_path, [rows[0], copy((3, 500), generation=7)], *([one] for one in rows[1:])))
    assert found["severity"] == "error" and "of generation 7 then, and was of generation 4 later" in found["summary"]
    assert "A@a1 may be of the history before" not in found["summary"] or "stood at {3:500}" in found["summary"]


def test_another_node_of_the_source_that_was_not_collected_may_have_it(tmp_path: Path) -> None:
    kin = Made("S@s2", at=(3, 500), first=2)
    case = snapshots(tmp_path, [source((3, 500)), kin], [source((3, 200))], [source((3, 600)), Made("S@s2", (3, 600))])
    (found,) = diverged(case)
    assert (
        found["severity"] == "warning"
        and "unless S@s2 still has it, of which that snapshot tells nothing" in found["summary"]
    )


def test_snapshots_in_the_wrong_order_prove_no_fall(tmp_path: Path) -> None:
    shots = [[source(at), copy((3, 500))] for at in ((3, 500), (3, 200), (3, 600))]
    assert not diverged(snapshots(tmp_path / "all", *shots, minutes=-10))


@pytest.mark.parametrize("sure", [True, False], ids=["source goes on", "source is silent"])
def test_a_copy_that_went_back_and_on_again_is_told(sure: bool, tmp_path: Path) -> None:
    """Whether its source still has what it lost, the source alone shows; below it B@b1 may be the last to have it."""
    above = [source((3, 500))] * 3 if not sure else [source((3, 500)), source((3, 600)), source((3, 700))]
    if not sure:
        above = [source((3, 400), answers=False, age=age) for age in (605, 1205, 1805)]
    lower = [copy((3, 500), "B@b1", source="A@a1")] * 2 + [copy((3, 500), "B@b1", source=None)]
    shots = [[above[at], copy(((3, 500), (3, 200), (3, 650))[at]), lower[at]] for at in range(3)]
    case = snapshots(tmp_path, *shots)
    (found,) = diverged(case, "A@a1")
    assert "A@a1 stood at {3:500} in snapshot s1, and at {3:200} in snapshot s2" in found["summary"]
    planned = plan(case)
    if sure:
        assert found["severity"] == "info" and "A@a1 gets from there what it lost" in found["summary"]
        assert [(step.server, NOT_CUT_BACK in step.assumes) for step in planned.steps] == [("B@b1", True)]
    else:
        assert found["severity"] == "warning" and "B@b1 may still have it" in found["summary"]
        assert not planned.steps


# --- by dumps of logs


def of_dumps(folder: Path, *shots: Sequence[Sequence[Line]]) -> Case:
    rooms = [folder / f"s{number}" for number in range(1, len(shots) + 1)]
    for room, logs in zip(rooms, shots, strict=True):
        room.mkdir()
        dumps(*logs)(room)
    return case_of(folder, *rooms)


def test_each_history_that_a_source_lost_is_told_by_its_dumps(tmp_path: Path) -> None:
    """Three histories of equal lengths: what the first snapshot shows is not what the second one shows."""
    second = [*WHOLE[:26], *log(other_from=26)[26:34]]
    case = of_dumps(tmp_path, [WHOLE, WHOLE], [second, WHOLE], [FORKED, WHOLE])
    told = {one["summary"].partition(":")[0] for one in diverged(case)}
    assert told == {f"S@s1 has other records now than it had in snapshot {label}" for label in ("s1", "s2")}
    assert not plan(case).steps


def test_what_the_dumps_of_two_earlier_snapshots_show_alike_is_told_once(tmp_path: Path) -> None:
    (found,) = diverged(of_dumps(tmp_path, [WHOLE, WHOLE], [WHOLE, WHOLE], [FORKED, WHOLE]))
    assert "than it had in snapshot s2" in found["summary"]


def test_a_loss_that_the_dump_before_the_last_snapshot_shows_stays_known(tmp_path: Path) -> None:
    rooms = [tmp_path / name for name in ("s1", "s2", "s3")]
    for room, logs in zip(rooms, ([WHOLE, WHOLE], [FORKED, WHOLE], [WHOLE, WHOLE]), strict=True):
        room.mkdir()
        dumps(*logs)(room)
    (rooms[2] / "S.s1.digest.tsv").unlink()
    (found,) = diverged(case_of(tmp_path, *rooms))
    assert "had other records in snapshot s2 than it had in snapshot s1" in found["summary"]
    assert found["summary"].endswith("A@a1 still has them")


# --- situations beside these


def test_a_node_that_holds_what_was_lost_serves_no_other_one(tmp_path: Path) -> None:
    waits = copy((2, 100), "B@b1", source=None, state="Pending")
    case = went_back(tmp_path, (3, 450), copy((3, 500)), waits, before=[*HELD, waits])
    assert {(step.server, SAME_HISTORY in step.assumes) for step in plan(case).steps} == {("B@b1", True)}
    assert not [one.way for one in plan(case).courses if "A@a1" in one.way and not one.refused]
    decisions = {row["decision"] for row in diagnose(case)["pairs"] if "A@a1" in (row["supplier"], row["consumer"])}
    assert decisions == {"unknown"}


def test_of_several_that_pull_from_one_that_is_full_another_one_is_moved(tmp_path: Path) -> None:
    others = [copy((3, 500), f"A@a{number}") for number in (2, 3)]
    now = [copy((3, 600), f"A@a{number}") for number in (2, 3)]
    case = went_back(tmp_path, (3, 600), copy((3, 500)), *now, before=[*HELD, *others])
    (full,) = (one for one in diagnose(case)["findings"] if one["code"] == "FANOUT_EXCEEDED")
    assert full["fix"][0]["repair"].startswith("let A@a2 register anew")
    assert "A@a1" not in {step.server for step in plan(case).steps}


def test_a_node_that_needs_a_file_that_is_gone_is_not_copied_over_unasked(tmp_path: Path) -> None:
    now = [Made("S@s1", at=(20, 200), first=15), *HELD, copy((20, 200), "A@a2", first=15)]
    case = snapshots(tmp_path, [source((3, 500)), *HELD], [source((3, 200)), *HELD], now)
    assert not plan(case).steps
    rebuilt = [one for one in plan(case).courses if one.way.startswith("rebuild")]
    assert rebuilt and all("A@a1 may be the last that has what was lost" in one.refused for one in rebuilt)


def test_of_one_that_was_taken_out_the_log_files_are_copied(tmp_path: Path) -> None:
    out = copy((3, 500), source=None, age=3e5, state="Inactive", answers=None)
    (found,) = diverged(went_back(tmp_path, (3, 600), out, before=HELD))
    assert found["fix"][0]["repair"].startswith("first copy the log files of A@a1")


def test_a_source_on_another_host_that_is_further_back_lost_something_too(tmp_path: Path) -> None:
    kin = [Made("S@s2", at=at, first=2) for at in ((3, 200), (3, 600))]
    below = [copy((3, 500), source="S@s2"), copy((3, 500), source="S@s2", age=1300)]
    case = snapshots(tmp_path, [source((3, 500)), *HELD], [kin[0], below[0]], [kin[1], below[1]])
    (found,) = diverged(case)
    assert "S@s2 of the same source at {3:200} in snapshot s2" in found["summary"] and found["severity"] == "warning"
    assert "A@a1 may still have it" in found["summary"] and not plan(case).steps


def test_a_source_that_begins_its_log_anew_lost_all_files(tmp_path: Path) -> None:
    held = copy((9, 500), first=8)
    case = snapshots(tmp_path, *([source(at), held] for at in ((9, 500), (1, 100), (2, 50))))
    (found,) = diverged(case)
    assert "more than 7 whole log files before that" in found["summary"] and not plan(case).steps


def test_old_rows_of_a_registry_that_was_put_back_prove_no_fall(tmp_path: Path) -> None:
    def rows(at: Lsn, age: float = 5) -> list[Made]:
        return [source(at, answers=None, age=age), copy(at, answers=None, age=age)]

    assert not diverged(snapshots(tmp_path, rows((3, 500)), rows((3, 200), 2000), rows((3, 600))))


def test_another_tree_is_not_held_up(tmp_path: Path) -> None:
    def tree(at: Lsn, age: float = 5) -> list[Made]:
        return [Made("T@t1", at=at, first=2), copy((3, 500), "B@b1", source="T@t1", age=age)]

    case = snapshots(
        tmp_path,
        [source((3, 500)), *HELD, *tree((3, 500))],
        [source((3, 200)), *HELD, *tree((3, 550))],
        [source((3, 600)), *HELD, *tree((3, 600), 1300)],
    )
    (step,) = plan(case).steps
    assert (step.server, step.assumes) == ("B@b1", ())


def test_a_node_that_counts_a_cut_and_stands_where_it_stood_is_no_less_a_holder(tmp_path: Path) -> None:
    (found,) = diverged(went_back(tmp_path, (3, 600), copy((3, 500), cuts=1), before=HELD))
    assert "A@a1 may still have it" in found["summary"]


def test_the_story_of_a_place_that_was_lost_does_not_say_that_it_is_there(tmp_path: Path) -> None:
    case = went_back(tmp_path, (3, 600), copy((3, 500)), copy((3, 600), "A@a2"), before=HELD)
    verdicts = {one["server"]: one["verdict"] for one in story(case, "{3:400}")["servers"]}
    assert verdicts == dict.fromkeys(("S@s1", "A@a1", "A@a2"), "unknown")
    before = {one["server"]: one["verdict"] for one in story(case, "{3:100}")["servers"]}
    assert before["S@s1"] == before["A@a2"] == "present"


def test_a_cut_that_an_earlier_pair_of_snapshots_shows_is_taken_for_granted_still(tmp_path: Path) -> None:
    """S@s1 cut its log off before the second snapshot, and was further by then: A@a1 did not follow."""
    late = [stopped((3, 500)) for _ in range(3)]
    shots = [
        [source(at, cuts=cuts), node]
        for at, cuts, node in zip(((3, 500), (3, 600), (3, 700)), (0, 1, 1), late, strict=True)
    ]
    (step,) = plan(snapshots(tmp_path, *shots)).steps
    assert (step.repair, step.assumes) == ("restart", (NOT_CUT_BACK,))


END = max((int(file), int(at)) for place, _ in WHOLE for file, _, at in (place.strip("{}").partition(":"),))


def of_places_and_dumps(folder: Path, *logs: tuple[Sequence[Line], ...]) -> Case:
    """S@s1 at the end of its log, further back ten minutes later, and at that end again; A@a1 always at it. And dumps."""
    shots = [[Made("S@s1", at=at), Made("A@a1", at=END, source="S@s1")] for at in (END, (8, 200), END)]
    rooms = [
        written(folder / f"s{at}", shot, now=NOW - timedelta(minutes=20 - 10 * at)) for at, shot in enumerate(shots)
    ]
    for room, of_nodes in zip(rooms, logs, strict=True):
        if of_nodes:
            dumps(*of_nodes, registry=False)(room)
    return case_of(folder, *rooms)


def test_a_copy_whose_log_is_that_of_its_source_holds_nothing_of_its_own(tmp_path: Path) -> None:
    (found,) = diverged(of_places_and_dumps(tmp_path, (), (), (WHOLE, WHOLE)))
    assert "may still have" not in found["summary"]


def test_what_the_dump_of_a_source_shows_again_is_not_lost(tmp_path: Path) -> None:
    assert not diverged(of_places_and_dumps(tmp_path, (WHOLE,), (), (WHOLE, WHOLE)))


def test_a_copy_that_dumps_show_to_differ_holds_what_was_lost(tmp_path: Path) -> None:
    case = of_places_and_dumps(tmp_path, (WHOLE,), (), (FORKED, WHOLE))
    assert all("A@a1" in one["summary"] for one in diverged(case)) and not plan(case).steps
    (copied,) = diverged(case, "A@a1")
    assert copied["fix"][0]["repair"].startswith("first dump the log of A@a1")
