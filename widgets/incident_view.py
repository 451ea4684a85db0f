"""What views of an incident share: they follow the inputs of their notebook, and say so where there is nothing to show."""

from __future__ import annotations

from typing import Any

from widgets.inputs import Inputs
from widgets.view import View
from workbench.diagnosis.incident import Incident
from workbench.model import NotOfThisSystem, Problem
from workbench.safety import printable
from workbench.views.overview import suffix_of


class OfIncident(View):
    """A view of an incident that follows the inputs of its notebook, if it has any.

    A Problem while it is made fails the cell: a run without a person must not pass with an empty view. Later one empties the
    view and is its notice: what was shown before belongs to another choice. That a system has no such thing is a notice always.
    """

    def __init__(self, incident: Incident, chosen: Inputs | None = None) -> None:
        self.incident, self.chosen = incident, chosen
        super().__init__()
        if chosen is not None:
            chosen.on_change(self.refresh)
        try:
            self.data = self.drawn()
        except NotOfThisSystem as said:
            self.notice = printable(str(said))

    def refresh(self) -> None:
        """Show what the inputs say now."""
        self.notice, drawn = "", {}
        with self.told_here():
            drawn = self.drawn()
        self.data = drawn

    def drawn(self) -> dict[str, Any]:
        """What the page draws."""
        raise NotImplementedError

    def text(self) -> str:
        """The view as plain text; where there is nothing to show, why."""
        return self.as_text() if self.data else self.notice

    def as_text(self) -> str:
        """What is drawn, as plain text."""
        raise NotImplementedError

    def value(self, name: str, otherwise: Any = "") -> Any:
        """What is chosen for a parameter; `otherwise` where the notebook has no such input."""
        return self.chosen.value(name, otherwise) if self.chosen is not None else otherwise

    def only(self, name: str) -> str | None:
        """The one server or origin that is chosen; None where all are."""
        return self.chosen.only(name) if self.chosen is not None else None

    @property
    def suffix(self) -> str | None:
        """The suffix or domain to show: the chosen one, else the first."""
        return suffix_of(self.incident, self.value("suffix", None))


def one_of(rows: list[Any], message: dict[str, Any], key: str = "index") -> Any:
    """The row that a message of the page names. What comes from a page may be anything."""
    at = message.get(key)
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(rows):
        raise Problem("that row is not there any more", "", "run the cell again")
    return rows[at]
