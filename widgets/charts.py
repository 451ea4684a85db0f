"""Charts over time that follow the inputs of their notebook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as controls

from widgets.inputs import Inputs, Note
from widgets.progress import CANCELLED, DONE, FAILED, Progress
from widgets.view import ReadsAsText
from workbench.diagnosis.incident import Incident
from workbench.engine.observation_queries import TABLES
from workbench.model import Problem
from workbench.text_table import aligned
from workbench.topology.history import vectors_over_time
from workbench.views.figures import as_output, vectors_figure
from workbench.views.overview import suffix_of

_NEVER = "Nothing in the case tells when a vector moved."
_READ_AT_ONCE = 2_000_000
"""Rows of logs up to which the chart is drawn without being asked for."""


class VectorsOverTime(ReadsAsText, controls.VBox):
    """How the vector of each server grew: across, when it had a change; up, when that was made."""

    def __init__(self, incident: Incident, chosen: Inputs | None = None) -> None:
        self.incident, self.chosen = incident, chosen
        self._note, self._chart = Note({"text": ""}), controls.Output()
        self._bar = controls.VBox([])
        self._draw = controls.Button(description="Read the logs for it")
        self._draw.on_click(lambda _: self.read())
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._grown: Any = None
        super().__init__([self._note, self._draw, self._bar, self._chart])
        rows = sum(part["rows"] for name in TABLES for part in incident.then.parts(name))
        if rows <= _READ_AT_ONCE:
            self.draw()
            if chosen is not None:
                chosen.on_change(self.refresh)

    def read(self) -> None:
        """Draw it from many rows, on a thread of its own: the page goes on meanwhile, and may cancel it."""
        if self._thread is None:
            self._ended.clear()
            bar = Progress("reading", self._ended.set, "rows")
            self._bar.children = [bar]
            self._thread = threading.Thread(target=self._read, args=(bar,), name="workbench: vectors over time")
            self._thread.start()

    def wait(self) -> None:
        """Until what was begun has ended."""
        if (thread := self._thread) is not None:
            thread.join()

    def _read(self, bar: Progress) -> None:
        def progress(done: int, total: int) -> None:
            if self._ended.is_set():
                raise Problem("cancelled: nothing was drawn")
            bar.count(done, total, done)

        state = FAILED
        try:
            self.draw(progress)
            state = DONE
        except Problem as problem:
            self._note.data = {"text": str(problem)}
            state = CANCELLED if self._ended.is_set() else FAILED
        finally:
            bar.end(state)
            self._thread = None

    def refresh(self) -> None:
        """Draw it for what the inputs say now; where that cannot be, nothing is shown but why."""
        self._grown, self._chart.outputs = None, ()
        try:
            self.draw()
        except Problem as problem:
            self._note.data = {"text": str(problem)}

    def draw(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Read what is chosen, and draw it."""
        only = self.chosen.only if self.chosen is not None else (lambda name: None)
        suffix = suffix_of(self.incident, self.chosen.value("suffix", None) if self.chosen is not None else None)
        grown = vectors_over_time(self.incident.then, only("server"), only("origin"), suffix, progress=progress)
        self._grown = grown
        self._draw.layout.display = "none"
        self._note.data = {"text": "" if grown.num_rows else _NEVER}
        figure = vectors_figure(self.incident.system, grown)
        data = {**as_output(figure), "text/plain": self.text()}
        self._chart.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)

    def text(self) -> str:
        """The last position of each server and origin, and when it was there."""
        if self._grown is None:
            return "not read yet"
        if not self._grown.num_rows:
            return _NEVER
        last = {(row["server"], row["origin"]): row for row in self._grown.to_pylist()}
        rows = [(*key, row["position"], f"{row['at']:%Y-%m-%d %H:%M:%S}") for key, row in sorted(last.items())]
        return aligned([("SERVER", "ORIGIN", "CAME TO", "AT (UTC)"), *rows])
