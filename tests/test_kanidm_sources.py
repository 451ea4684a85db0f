"""From which Kanidm server another one is filled, and what is brought to others before its data goes."""

from __future__ import annotations

from pathlib import Path

from kanidm_incidents import BASE, CUT, LATE, mesh
from kanidm_samples import DAY, Entry, backup
from test_kanidm_domains import case_with, left_of

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
    assert "1 change that it names goes with the data of a server that is filled" in left_of(refreshed)
