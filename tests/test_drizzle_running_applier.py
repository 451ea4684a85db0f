"""What the applier of a copy brings by itself is not written there by hand, whatever kind of log its source has."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_incidents import Files, log, named, queue, row_of, state
from test_drizzle_commits_elsewhere import loaded
from test_drizzle_not_given import applied

from workbench.repair.planner import plan

A: Files = {"a.log": log(*range(1, 6)), "case.yaml": named("a", "a.log")}
LAGS: Files = {**A, "b.log": log(1, 2, 3)}
QUEUED: Files = {"b.queue.jsonl": queue([(4, row_of(4)), (5, row_of(5))])}


@pytest.mark.parametrize("more", [{}, QUEUED])
def test_what_a_running_applier_comes_to_is_left_to_it(more: Files, tmp_path: Path) -> None:
    made = plan(loaded(tmp_path, {**LAGS, "b.state.json": state(3), **more}))
    assert not made.steps
    assert any(line.startswith("2 changes are on their way to b") for line in made.open)


def test_what_it_is_past_is_applied_and_what_follows_is_not(tmp_path: Path) -> None:
    made = plan(loaded(tmp_path, {**A, "b.log": log(1, 2, 4), "b.state.json": state(4)}))
    assert applied(made) == {"b": ["3"]}


def test_an_applier_that_stands_still_is_started_first(tmp_path: Path) -> None:
    made = plan(loaded(tmp_path, {**LAGS, "b.state.json": state(3, "Lock wait timeout exceeded")}))
    assert [step.repair for step in made.steps] == ["start-applier"]
    assert made.steps[0].assumes == ("source_named_by_person",)


def test_without_a_word_of_its_applier_it_is_applied(tmp_path: Path) -> None:
    assert applied(plan(loaded(tmp_path, LAGS))) == {"b": ["4", "5"]}
