"""Inputs bound to the parameters of a notebook: they begin with the parameter of the same name, keep with the case what is
chosen, and give the parameters file of a run without a person that shows exactly this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as controls

from widgets.view import ReadsAsText, View
from workbench.diagnosis.incident import ALL, Incident
from workbench.model import Problem
from workbench.safety import printable
from workbench.views.parameters import (
    Offer,
    as_given,
    as_parameters_file,
    as_written,
    checked,
    chosen,
    keep,
    kept_in,
    number_chosen,
    offers,
)

_LABELS = {"as_of": "as of", "per_load": "per buffer"}
_WIDTH = "270px"


class CopyFile(View, drawn_by="copy"):
    """A button that copies a text, and shows it for those whose browser does not let it."""

    def text(self) -> str:
        """The text itself."""
        return printable(str(self.data.get("file", "")))


class Note(View, drawn_by="note"):
    """A sentence; nothing while there is none."""

    def text(self) -> str:
        """The sentence."""
        return printable(str(self.data.get("text", "")))


class Inputs(ReadsAsText, controls.VBox):
    """The inputs of one notebook: `Inputs(incident, "23_missed_changes", server=server, origin=origin)`.

    Each keyword is a parameter of the notebook. An empty text, or a number below zero, means that nobody chose: then it is
    as kept with the case, else as the evidence suggests. `*` is all, or nothing in particular. `value("server")` is
    the choice now; `on_change` tells of each new one.
    """

    def __init__(self, incident: Incident, notebook: str, **given: Any) -> None:
        self.incident, self.notebook = incident, notebook
        self._told: list[Callable[[], None]] = []
        self._note = Note({"text": ""})
        if "as_of" in given:
            kept_as_of = str(given["as_of"]) or kept_in(incident.case.folder).get("as_of", "")
            if kept_as_of in incident.case.snapshots or given["as_of"]:
                incident.go_to(kept_as_of)
            given["as_of"] = incident.then_label  # a time that was given stands for the snapshot of that time
        self._renewing = False
        self._offered, kept = offers(incident), kept_in(incident.case.folder)
        self._fields: dict[str, Any] = {}
        for name, one in given.items():
            value = as_given(name, one)
            if isinstance(value, int):
                first = int(self._offered.get(name, Offer()).first or 0)
                self._fields[name] = self._number(name, number_chosen(name, value, kept, first))
            else:
                offer = self._offered.get(name, Offer())
                self._fields[name] = self._field(name, offer, chosen(offer, name, value, kept, incident))
        self._copy = CopyFile(self._file())
        for name, field in self._fields.items():
            field.observe(lambda change, name=name: self._chosen(name), "value")
        row = controls.Box(list(self._fields.values()), layout=controls.Layout(flex_flow="row wrap"))
        super().__init__([row, self._note, self._copy])

    def _field(self, name: str, offer: Offer, value: str) -> Any:
        style = {"description_width": "90px"}
        about = {"description": _LABELS.get(name, name), "tooltip": offer.says, "style": style}
        layout = controls.Layout(width=_WIDTH, margin="2px 12px 2px 0")
        if not offer.options:
            wide = controls.Layout(width="330px", margin="2px 12px 2px 0")
            return controls.Text(value, placeholder=offer.says, continuous_update=False, layout=wide, **about)
        options = [(_label(offer.labels.get(one, one)), one) for one in offer.options]
        if offer.labels:
            layout.width = "620px"
        return controls.Dropdown(options=options, value=value, layout=layout, **about)

    def _number(self, name: str, value: int) -> Any:
        layout = controls.Layout(width="190px", margin="2px 12px 2px 0")
        about = {"description": _LABELS.get(name, name), "style": {"description_width": "90px"}}
        return controls.BoundedIntText(value, min=0, max=1_000_000_000, layout=layout, continuous_update=False, **about)

    def _file(self) -> dict[str, Any]:
        written = {name: as_written(value) for name, value in self.values.items()}
        values: dict[str, str | int] = {"case_folder": str(self.incident.case.folder.resolve()), **written}
        return {"file": as_parameters_file(self.notebook, values)}

    def _chosen(self, name: str) -> None:
        """Keep the choice, and have all views show it. What cannot be chosen is said, and not kept."""
        if self._renewing:
            return
        self._note.data = {"text": ""}
        try:
            if isinstance(value := self._fields[name].value, str):
                checked(self._offered.get(name, Offer()), name, value, self.incident)
            if name == "as_of":
                self.incident.go_to(value)
                self._renew()
            for told in self._told:
                told()
            keep(self.incident.case.folder, {name: str(as_written(value))})
        except Problem as problem:
            self._note.data = {"text": str(problem)}
        self._copy.data = self._file()

    def _renew(self) -> None:
        """Of another snapshot there is something else to choose from; what was chosen stays if it still can be."""
        before, self._offered = self._offered, offers(self.incident)
        self._renewing = True
        try:
            for name, field in self._fields.items():
                offer, value = self._offered.get(name, Offer()), field.value
                if offer.options:
                    field.options = [(_label(offer.labels.get(one, one)), one) for one in offer.options]
                    field.value = value if value in offer.options else offer.first
                elif name in before and value == before[name].first:
                    field.value = offer.first
        finally:
            self._renewing = False

    def on_change(self, told: Callable[[], None]) -> None:
        """Have this called whenever something else is chosen."""
        self._told.append(told)

    def choose(self, **values: str | int) -> None:
        """Choose as a person would."""
        for name, value in values.items():
            self._fields[name].value = value

    @property
    def values(self) -> dict[str, Any]:
        """Parameter name -> the value now."""
        return {name: field.value for name, field in self._fields.items()}

    def value(self, name: str, otherwise: Any = "") -> Any:
        """One value; `otherwise` where the notebook has no such input."""
        return self._fields[name].value if name in self._fields else otherwise

    def only(self, name: str) -> str | None:
        """The one server or origin that is chosen; None where all are."""
        value = self.value(name, ALL)
        return None if value in (ALL, "") else str(value)

    def text(self) -> str:
        """A line for each input."""
        return "\n".join(f"{name}: {printable(str(value))}" for name, value in self.values.items())


def _label(option: str) -> str:
    return f"{ALL} (all)" if option == ALL else printable(option) or "(none)"
