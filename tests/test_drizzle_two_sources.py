"""Two named sources: a log that shows nothing of an origin proves nothing of it, and is the source of no copy."""

from __future__ import annotations

from pathlib import Path

from drizzle_incidents import log, named, one

from workbench import Case
from workbench.repair.planner import plan


def case_of(folder: Path, **logs: bytes) -> Case:
    (folder / "in").mkdir()
    for name, data in logs.items():
        (folder / "in" / f"{name}.log").write_bytes(data)
    second = named("b", "b.log", "2").decode().partition("\n")[2]
    (folder / "in" / "case.yaml").write_text(named("a", "a.log").decode() + second)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def test_no_data_are_copied_over_the_source_of_another_origin(tmp_path: Path) -> None:
    """b missed one transaction of a, and made three itself: nothing shows that a has one of these."""
    own = b"".join(one(number, server=2) for number in (1, 2, 3))
    made = plan(case_of(tmp_path, a=log(1, 2, 3, 4), b=log(1, 2, 4) + own))
    ways = {course.way: course for course in made.courses if course.need.endswith(" b")}
    assert not ways["provision"].chosen
    assert ways["provision"].refused.startswith("nothing tells whether a has what b has of 3 transactions of server 2")


def test_what_another_copy_waits_for_is_not_applied_to_a_log_that_shows_nothing_of_it(tmp_path: Path) -> None:
    """c waits for the second of b: whether a has the first or the second, nobody knows."""
    own = b"".join(one(number, server=2) for number in (1, 2))
    made = plan(case_of(tmp_path, a=log(1, 2, 3), b=log(1, 2, 3) + own, c=log(1, 2, 3) + one(1, server=2)))
    assert {step.server for step in made.steps} == {"c"}
    assert {row["server"]: row["pending"] for row in made.before}["a"] == 0
