"""One scale of colours for verdicts, in notebooks, figures and reports: told apart by colour-blind readers, on light and dark.

The colours are those of Okabe and Ito; beside each stands a sign, so that no meaning is in the colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PRESENT, MISSING, UNKNOWN, PENDING, STRANDED, NOTHING = (
    "present",
    "missing",
    "unknown",
    "pending",
    "stranded",
    "nothing",
)


class Shade(NamedTuple):
    """How a verdict looks: its colour, its sign, and what it says."""

    colour: str
    sign: str
    says: str


VERDICTS: Mapping[str, Shade] = {
    PRESENT: Shade("#009e73", "✓", "the server has all changes that it claims"),
    PENDING: Shade("#56b4e9", "…", "changes are on their way"),
    UNKNOWN: Shade("#999999", "?", "the evidence does not reach"),
    STRANDED: Shade("#cc79a7", "!", "it holds changes that no session will deliver"),
    MISSING: Shade("#d55e00", "✗", "it claims changes that it does not have"),
    NOTHING: Shade("transparent", "", "it claims nothing"),
}
"""The gravest last but one; what is not in the list has no verdict."""

SEVERITIES: Mapping[str, str] = {"error": MISSING, "warning": STRANDED, "info": PENDING}
"""Severity of a finding -> the verdict whose colour it has."""


def worst(verdicts: list[str]) -> str:
    """The gravest of some verdicts."""
    order = [NOTHING, PRESENT, PENDING, UNKNOWN, STRANDED, MISSING]
    return max(verdicts, key=order.index, default=NOTHING)
