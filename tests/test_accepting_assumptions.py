"""What the steps of a plan take for granted is accepted by a person before anything is done."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import click
import pytest

from workbench.cli.repair import accept
from workbench.model import Problem
from workbench.rules.assumptions import SOURCE_BY_START, SOURCE_NAMED


def test_without_a_terminal_it_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(click.UsageError, match="If that is so, give --assume source_by_its_start"):
        accept([SOURCE_NAMED, SOURCE_BY_START], [])
    accept([SOURCE_NAMED, SOURCE_BY_START], [SOURCE_BY_START])


@pytest.mark.parametrize("sure", [True, False])
def test_at_a_terminal_it_is_asked_for(sure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "confirm", lambda question, err: asked.append(question) or sure)
    if sure:
        accept([SOURCE_NAMED, SOURCE_BY_START], [])
    else:
        with pytest.raises(Problem, match="nothing was done"):
            accept([SOURCE_NAMED, SOURCE_BY_START], [])
    assert len(asked) == 1 and "begins with a start is the source" in asked[0]
