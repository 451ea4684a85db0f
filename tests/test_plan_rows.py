"""The rows of a plan promise no more than the diagnosis tells, where the model knows of more changes."""

from __future__ import annotations

from workbench.repair.model_summary import no_worse


def row(missing: int, pending: int, server: str = "s1") -> dict[str, int | str | None]:
    return {"server": server, "suffix": None, "missing": missing, "pending": pending}


def test_a_plan_without_steps_changes_no_number_for_the_worse() -> None:
    assert no_worse(row(384, 9), [row(1, 1, "s2"), row(0, 322)], steps=False) == row(0, 9)
    assert no_worse(row(2, 0), [row(5, 1)], steps=False) == row(2, 0)


def test_no_server_comes_to_miss_more_than_it_misses_and_waits_for() -> None:
    assert no_worse(row(453, 0), [row(0, 73)], steps=True) == row(73, 0)
    assert no_worse(row(3, 40), [row(4, 2)], steps=True) == row(3, 40), "what a step writes comes to all"
    assert no_worse(row(7, 0, "s3"), [row(4, 2)], steps=True) == row(7, 0, "s3")
