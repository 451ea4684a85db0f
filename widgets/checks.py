"""The outcome of regression checks, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from widgets.incident_view import one_of
from widgets.view import View
from workbench.runs.baseline_check import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, Checked
from workbench.text_table import aligned
from workbench.views.verdict_style import MISSING, PRESENT, STRANDED, UNKNOWN

_SHADES = {CLEAN: PRESENT, INCONCLUSIVE: UNKNOWN, FINDINGS: MISSING, FAILED: STRANDED}


class Checks(View, drawn_by="checks"):
    """The checked cases, the worst first. Click one for what is new and what is gone."""

    def __init__(self, checked: Sequence[Checked]) -> None:
        self.checked = list(checked)
        rows = [
            {
                "case": one.case,
                "outcome": one.outcome,
                "shade": _SHADES[one.outcome],
                "verdict": one.verdict,
                "errors": one.counts.get("error"),
                "warnings": one.counts.get("warning"),
                "new": one.changes.get("new"),
                "changed": one.changes.get("changed"),
                "gone": one.changes.get("gone"),
            }
            for one in self.checked
        ]
        clean = sum(one.outcome == CLEAN for one in self.checked)
        super().__init__({"rows": rows, "clean": clean, "details": None})

    def on_pick(self, message: dict[str, Any]) -> None:
        """What differs from the baseline."""
        one: Checked = one_of(self.checked, message)
        details = one.details or "There is no baseline to hold it against."
        rows = [{**row, "chosen": index == message["index"]} for index, row in enumerate(self.data["rows"])]
        self.data = {**self.data, "rows": rows, "details": {"case": one.case, "verdict": one.verdict, "text": details}}

    def text(self) -> str:
        """A line for each case."""
        rows = [(one.case, one.outcome, one.verdict) for one in self.checked]
        return aligned([("CASE", "OUTCOME", "VERDICT"), *rows])
