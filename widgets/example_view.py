"""A small fleet, step by step."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident
from workbench.text_table import aligned
from workbench.views.worked_examples import walk, walks

_FURTHEST = 1_000
"""Steps that a message may go."""


class WalkThrough(OfIncident, drawn_by="walk"):
    """A worked example: what each server of a small fleet claims and holds after each step. Click a step to go there."""

    def drawn(self) -> dict[str, Any]:
        """The chosen example after its last step: what it comes to."""
        return walk(self.incident, str(self.value("walk")) or next(iter(walks(self.incident)), ""), _FURTHEST)

    def on_go(self, message: dict[str, Any]) -> None:
        """Go to a step."""
        to = message.get("to")
        if isinstance(to, int) and not isinstance(to, bool) and abs(to) <= _FURTHEST and self.data:
            self.data = walk(self.incident, self.data["name"], to)

    def as_text(self) -> str:
        """The steps, and how the servers stand."""
        steps = [
            f"{'>' if number == self.data['at'] else ' '} {number + 1}. {one['says']}"
            + (f": {one['refused']}" if one["refused"] else "")
            + (f"; GONE AGAIN: {one['back']}" if one["back"] else "")
            for number, one in enumerate(self.data["steps"])
        ]
        rows = [
            (
                one["name"],
                ", ".join(each["text"] for each in one["vector"]),
                "; ".join(each["text"] for each in one["values"]),
            )
            for one in self.data["servers"]
        ]
        heads = ("SERVER", "CLAIMS", "HOLDS")
        return "\n".join([self.data["title"], self.data["shows"], "", *steps, "", aligned([heads, *rows])])
