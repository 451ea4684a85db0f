"""What a diagnosis and a plan may say of trees in which one thing contradicts another, or was read at another time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_comdb2_diagnosis import case_of
from tier_files import Made, written

from workbench import Case, diagnose
from workbench.diagnosis.change_explanation import story
from workbench.repair.planner import plan
from workbench.rules.assumptions import SAME_HISTORY

SHORT = Made("S@s1", at=(20, 900), first=15)


def made(folder: Path, *nodes: Made) -> Case:
    return case_of(folder, written(folder / "in", nodes))


def of(found: Any, code: str, server: str) -> Any:
    (one,) = (one for one in found["findings"] if (one["code"], one["server"]) == (code, server))
    return one


def test_a_reset_does_not_mend_the_gap_of_the_node_that_it_takes_out(tmp_path: Path) -> None:
    gone = Made("A@a1", at=(12, 900), first=11, source="S@s1", age=500, answers=False)
    planned = plan(made(tmp_path, SHORT, gone, Made("A@a2", at=(20, 900), first=15, source="S@s1")))
    assert [step.repair for step in planned.steps] == ["reset"]
    left = [line for line in planned.left if line.startswith(("LOG_GAP A@a1", "REINIT_REQUIRED A@a1"))]
    assert len(left) == 2 and all("takes A@a1 out of the tree and brings it nothing" in line for line in left)


def test_a_node_that_pulls_from_one_with_its_file_lacks_nothing(tmp_path: Path) -> None:
    above = Made("A@a1", at=(15, 5), first=12, source="S@s1", lrl="replicate_wait 600\n")
    found = diagnose(made(tmp_path, SHORT, above, Made("A@a2", at=(14, 5), first=12, source="A@a1")))
    gap = of(found, "LOG_GAP", "A@a2")
    assert gap["severity"] == "warning" and "A@a1, from which it pulls, has it and can send it" in gap["summary"]
    assert gap["fix"][0]["repair"].startswith("leave A@a2 where it hangs")
    assert [row["suppliers"] for row in found["pending"] if row["server"] == "A@a2"] == [["A@a1"]]


def test_a_report_that_is_younger_than_the_answer_counts(tmp_path: Path) -> None:
    source = Made("S@s1", at=(9, 1000), reported=(9, 5000), asked_before=900)
    found = diagnose(made(tmp_path, source, Made("A@a1", at=(9, 900), source="S@s1")))
    (tree,) = found["trees"]
    assert tree["source_head_actual"] == [9, 5000]
    assert [row["bytes"] for row in found["pending"]] == [4100]


def test_nodes_of_a_circle_do_not_register_before_their_gap_is_mended(tmp_path: Path) -> None:
    circle = [Made(f"A@a{at}", at=(13, 5), first=12, source=f"A@a{3 - at}") for at in (1, 2)]
    found = diagnose(made(tmp_path, SHORT, *circle, Made("A@a3", at=(20, 900), first=12, source="S@s1")))
    assert "not before the gap in the log of A@a1" in of(found, "TOPOLOGY_CYCLE", "A@a1")["fix"][0]["caution"]


def test_each_spelling_of_a_state_is_told_of_the_nodes_that_have_it(tmp_path: Path) -> None:
    rows = [Made("A@a1", state="ACTIVE", source="S@s1"), Made("A@a2", state="ACTIVE", source="S@s1")]
    found = diagnose(made(tmp_path, Made("S@s1"), *rows, Made("A@a3", state="active", source="A@a1")))
    upper, lower = of(found, "UNSAFE_SETTING", "A@a1"), of(found, "UNSAFE_SETTING", "A@a3")
    assert "the state of A@a1, A@a2 is spelled ACTIVE" in upper["summary"]
    assert "host = 'a1'" in upper["fix"][0]["repair"] and "host = 'a2'" in upper["fix"][0]["repair"]
    assert "the state of A@a3 is spelled active" in lower["summary"]


def test_a_source_of_which_nothing_recent_is_known_sends_nothing(tmp_path: Path) -> None:
    source = Made("S@s1", at=(9, 900), age=-5000, answers=False)
    case = made(tmp_path, source, Made("A@a1", at=(9, 500), source="S@s1"))
    assert [row["suppliers"] for row in diagnose(case)["pending"]] == [[]]
    assert not any("on its way" in line for line in plan(case).open)


def test_an_inactive_row_and_a_connection_contradict_each_other(tmp_path: Path) -> None:
    waits = Made("A@a1", at=(9, 500), source="S@s1", state="Inactive")
    case = made(tmp_path, Made("S@s1"), waits)
    found = of(diagnose(case), "REPLICANT_INACTIVE", "A@a1")
    assert "says Inactive" in found["summary"] and "contradict each other" in found["summary"]
    planned = plan(case)
    assert not planned.steps and any("collect both once more" in course.refused for course in planned.courses)


def test_what_a_node_is_offered_rests_on_the_fanout(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", [Made("S@s1"), Made("A@a1", at=(9, 500), state="Pending")])
    (folder / "nodes" / "tunables.tsv").unlink()
    (step,) = plan(case_of(tmp_path, folder)).steps
    assert (step.repair, step.assumes) == ("restart", ("default_setting",))


def test_no_node_is_sent_to_one_that_gets_another_history(tmp_path: Path) -> None:
    """S@s2 is further than S@s1, and of an older generation: it was not elected. B@b1 alone has file 12, and pulls from S@s2.

    Once B@b1 pulls from S@s1 it has cut off what that does not have, and may serve A@a1.
    """
    nodes = [
        Made("S@s1", at=(20, 900), first=15, generation=7),
        Made("S@s2", at=(20, 950), first=15, generation=4),
        Made("B@b1", at=(20, 800), first=10, source="S@s2"),
        Made("A@a1", at=(12, 5), first=10, age=400, source="S@s1"),
    ]
    planned = plan(made(tmp_path, *nodes))
    steps = [(step.repair, step.server, effect.get("source")) for step in planned.steps for effect in step.effects]
    assert steps == [("replicate_from", "B@b1", "S@s1"), ("replicate_from", "A@a1", "B@b1")]
    assert all(SAME_HISTORY in step.assumes for step in planned.steps)
    (alone,) = (one for one in plan(made(tmp_path / "alone", *nodes), ["A@a1"]).courses if one.way == "donor-B@b1")
    assert "B@b1 gets its log from S@s2" in alone.refused


def test_a_node_that_was_not_compared_is_taken_to_be_of_the_source(tmp_path: Path) -> None:
    """A@a1 is of another generation than the source by its answer: so may be A@a2, that A@a3 could pull from."""
    nodes = [
        Made("S@s1", at=(20, 900), first=15, generation=7),
        Made("A@a1", at=(20, 900), first=15, source="S@s1", generation=4),
        Made("A@a2", at=(20, 900), first=10, source="S@s1", generation=7),
        Made("A@a3", at=(12, 5), first=10, age=400, generation=4),
    ]
    planned = plan(made(tmp_path, *nodes))
    steps = [step for step in planned.steps if step.server == "A@a3"]
    assert steps and all(SAME_HISTORY in step.assumes for step in steps if step.repair == "replicate_from")


def test_a_place_in_the_log_of_a_node_of_an_unknown_source_is_unknown(tmp_path: Path) -> None:
    case = made(tmp_path, Made("S@s1"), Made("A@a1", source="S@s1"), Made("B@b1", at=(9, 1000), state=None))
    told = story(case, "{9:900}")
    (row,) = (row for row in told["servers"] if row["server"] == "B@b1")
    assert (row["verdict"], {one["outcome"] for one in row["suppliers"]}) == ("unknown", {None})


def test_a_node_is_not_rebuilt_while_the_one_that_it_pulls_from_has_its_file(tmp_path: Path) -> None:
    """Its row says that A@a1 waits for a source: it answers, is level with the source, and serves A@a2 what that needs next."""
    source, above = Made("S@s1", at=(20, 900), first=15), Made("A@a1", at=(20, 900), first=10, state="Pending")
    below = Made("A@a2", at=(13, 5), first=12, source="A@a1")
    case = case_of(tmp_path, written(tmp_path / "in", [source, above, below]))
    (gap,) = (one for one in diagnose(case)["findings"] if one["code"] == "LOG_GAP")
    assert gap["fix"][0]["repair"].startswith("leave A@a2 where it hangs") and gap["severity"] == "warning"
    planned = plan(case)
    assert not planned.steps and "which A@a1 sends it" in str([one.refused for one in planned.courses])


def test_a_node_whose_list_of_files_shows_the_file_is_asked_before_another_one_is_rebuilt(tmp_path: Path) -> None:
    late = Made("A@a2", at=(12, 5), first=11, source="S@s1", age=400)
    case = made(tmp_path, SHORT, late, Made("A@a1", at=(20, 900), first=12, source="S@s1", answers=None, state=None))
    found = diagnose(case)
    gap = of(found, "LOG_GAP", "A@a2")
    assert "the list of the log files of A@a1 shows it" in gap["summary"]
    assert gap["fix"][0]["repair"].startswith("first ask A@a1 where it stands")
    assert "REINIT_REQUIRED" not in {one["code"] for one in found["findings"]}
    planned = plan(case)
    assert not any(step.repair == "rebuild" for step in planned.steps)
