"""From which Kanidm server another one is filled, and what is brought to others before its data goes."""

from __future__ import annotations

from pathlib import Path

from kanidm_incidents import BASE, CUT, LATE, mesh
from kanidm_samples import DAY, Entry, backup
from test_kanidm_domains import case_with, left_of

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

MANY = {number: Entry((250, "a"), {"mail": (250, "a")}) for number in range(100, 130)}


def test_nothing_is_promised_from_a_server_whose_entries_were_not_collected(tmp_path: Path) -> None:
    """B missed what A shows; the ranges of C cover it, as those of B do, which proves nothing."""
    ruv = [(0, "a"), (250, "a"), (100, "b"), (100, "c")]
    without = backup("c", 400, [*ruv, (390, "b")])
    case = case_with(
        tmp_path,
        backup("a", 400, ruv, {**BASE, **MANY}),
        backup("b", 400, [*ruv, (390, "b")], {**BASE, 200: Entry((390, "b"))}),
        without,
    )
    made = plan(case)
    assert [one.way for one in made.courses if one.chosen] == ["refresh-from-A"]
    (other,) = (one for one in made.courses if one.way == "refresh-from-C")
    assert not other.proven and other.restored == 0


def test_what_another_server_misses_is_brought_there_before_the_only_one_that_has_it_is_filled(tmp_path: Path) -> None:
    """A has purged past B, which has to be refreshed, and A missed a change that B alone shows."""
    kept = [(CUT + 3600, "a"), (CUT + 3600, "b"), (LATE, "a"), (LATE, "b")]
    early = [(CUT - DAY, "a"), (CUT - DAY, "b"), (CUT - 600, "a"), (LATE - 20, "b")]
    changed = {**BASE, 4: Entry((0, "a"), {"mail": (LATE - 20, "b")})}
    case = case_with(tmp_path, backup("a", LATE, kept, BASE), backup("b", LATE - 20, early, changed), links=mesh("ab"))
    made = plan(case)
    assert [(one.need.split()[0], one.way) for one in made.courses if one.chosen] == [
        ("MISSED_CHANGE", "write-again"),
        ("REFRESH_REQUIRED", "refresh-from-A"),
    ]
    assert [step.repair for step in made.steps] == ["write_again", "back_up", "refresh"]
    refreshed = plan(case, only=["REFRESH_REQUIRED"])
    assert "MISSED_CHANGE A: step 1-back-up-B saves these changes to a file" in left_of(refreshed)


def test_what_a_server_made_behind_its_file_is_stranded_nowhere(tmp_path: Path) -> None:
    """A was read at 200 and made a change at 250, which B took before it was read: A has it, unless it was restored."""
    ruv = [(0, "a"), (100, "a"), (100, "c")]
    case = case_with(
        tmp_path,
        backup("a", 200, ruv, BASE),
        backup("b", 300, [*ruv, (250, "a")], {**BASE, 1: Entry((0, "a"), {"mail": (250, "a")})}),
        backup("c", 200, ruv, BASE),
        links={**mesh("ac"), "B.server.toml": b'[replication]\norigin = "repl://b.example.com:8444"\n'},
    )
    found = diagnose(case)
    assert not [one for one in found["findings"] if one["code"] == "STRANDED_CHANGE"]
    (waits,) = (one for one in found["findings"] if (one["code"], one["server"]) == ("PENDING_CHANGES", "C"))
    assert "younger than the file of A, which made it since then, or was restored" in waits["summary"]
    assert waits["fix"][0]["repair"].startswith("collect A once more")
    assert "1 is newer than the files of A" in headline(found)


def test_servers_that_a_third_one_still_supplies_both_are_not_diverged_for_good(tmp_path: Path) -> None:
    """A has of b, and B of a, less than the other remembers; C overlaps both, and both pull from it."""
    early, late = CUT - 600, CUT + 600
    cids = {"a": [(early, "b"), (late, "a"), (LATE, "a")], "b": [(CUT, "a"), (late, "b"), (LATE, "b")]}
    both = [(early, "b"), (late, "b"), (CUT, "a"), (late, "a"), (LATE, "a"), (LATE, "b")]
    case = case_with(
        tmp_path,
        *(backup(name, LATE, ruv, BASE) for name, ruv in cids.items()),
        backup("c", LATE, both, BASE),
        links=mesh("abc"),
    )
    found = {one["code"]: one for one in diagnose(case)["findings"]}
    assert found["DIVERGED"]["severity"] == "warning"
    says = [fix["repair"] for fix in found["DIVERGED"]["fix"]]
    assert len(says) == 2 and all("pull from C" in one and "refresh nothing" in one for one in says)
