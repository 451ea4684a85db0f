"""What the steps of a plan take for granted is accepted by a person before anything is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from test_stream_sources import INCIDENTS, case_of

from workbench.cli.repair import accept
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.model import Problem
from workbench.repair.bundles import write_bundle
from workbench.repair.plan_types import NAME, as_json, read_plan, to_accept
from workbench.repair.planner import plan
from workbench.rules.assumptions import SOURCE_BY_START, SOURCE_NAMED

BY_ITS_START = INCIDENTS["only one log has the start of that server"]


def test_without_a_terminal_it_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(click.UsageError, match="If that is so, give --assume source_by_its_start"):
        accept([SOURCE_BY_START], [])
    accept([SOURCE_BY_START], [SOURCE_BY_START])


@pytest.mark.parametrize("sure", [True, False])
def test_at_a_terminal_it_is_asked_for(sure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "confirm", lambda question, err: asked.append(question) or sure)
    if sure:
        accept([SOURCE_BY_START], [])
    else:
        with pytest.raises(Problem, match="nothing was done"):
            accept([SOURCE_BY_START], [])
    assert len(asked) == 1 and "begins with a start is the source" in asked[0]


def test_a_plan_says_of_each_step_what_it_takes_for_granted(tmp_path: Path) -> None:
    case = case_of(tmp_path, BY_ITS_START)
    assert {row["certain"] for row in diagnose(case)["findings"] if row["assumes"] == [SOURCE_BY_START]} == {False}
    made = plan(case)
    assert to_accept(made.steps) == [SOURCE_BY_START]
    (tmp_path / NAME).write_text(json.dumps(as_json(made)))
    assert [step["certain"] for step in json.loads((tmp_path / NAME).read_text())["steps"]] == [False] * len(made.steps)
    assert read_plan(tmp_path) == made


def test_what_a_person_decided_is_not_asked_for(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, INCIDENTS["a copy is ahead of its source"]))
    assert all(step.assumes == (SOURCE_NAMED,) for step in made.steps) and to_accept(made.steps) == []


@pytest.mark.parametrize("answer", ["yes", "y", ""])
def test_the_script_of_a_plan_asks_before_its_first_step(answer: str, tmp_path: Path) -> None:
    write_bundle(plan(case_of(tmp_path, BY_ITS_START)), tmp_path / "bundle")
    ran = subprocess.run(
        ["sh", "repair.sh"], input=f"{answer}\n", capture_output=True, text=True, check=False, cwd=tmp_path / "bundle"
    )
    assert ran.returncode != 0 and "begins with a start is the source" in ran.stdout
    assert ("not accepted: nothing was done" in ran.stdout) == (answer != "yes")
