"""Two servers' entries held against each other."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

from widgets.incident_view import OfIncident, one_of
from widgets.inputs import Inputs
from workbench.diagnosis.incident import Incident
from workbench.model import NotOfThisSystem, Problem
from workbench.text_table import aligned
from workbench.views.entry_diff import entries_that_differ, entry_on_both, needs_spark, with_entries

_SHOWN = 200


def _nothing() -> None:
    """Stands where no job of Spark runs."""


class EntryDiff(OfIncident, drawn_by="entries"):
    """The entries in which two servers differ, by name. Click one for its values and the changes that made them."""

    _servers: tuple[str, str] = ("", "")
    _named = ""
    _thread: threading.Thread | None = None
    _interrupt: Callable[[], Any]

    def __init__(self, incident: Incident, chosen: Inputs | None = None) -> None:
        self._ended, self._interrupt = threading.Event(), _nothing
        super().__init__(incident, chosen)

    def drawn(self) -> dict[str, Any]:
        """The differing entries of two servers; those that lack something, and one that can tell, to begin with."""
        if (system := self.incident.system).notebook:
            more = (
                "what a server lacks of the others is under missing, by entry and attribute; " if system.pulling else ""
            )
            raise NotOfThisSystem(
                f"of {'entries' if system.pulling else 'tables'} of {system.title} the changes are held, and no values",
                self.incident.case.name,
                f"{more}{system.notebook} shows what each server lacks",
            )
        there = sorted(with_entries(self.incident))
        if len(there) < 2:
            return {"servers": there, "rows": []}
        lacking = [row["server"] for row in self.incident.found["missing"] if row["server"] in there]
        if not set(self._servers) <= set(there):
            first = lacking[0] if lacking else there[-1]
            self._servers = next(name for name in there if name != first), first
        if needs_spark(self.incident, *self._servers):
            return {"servers": there, "pair": list(self._servers), "named": self._named, "rows": [], "large": True}
        return self._compared(there, None)

    def _compared(self, there: list[str], spark: Any) -> dict[str, Any]:
        found = entries_that_differ(self.incident, *self._servers, self._named, _SHOWN, spark, self._going_on)
        pair = list(self._servers)
        return {
            "servers": there,
            "pair": pair,
            "named": self._named,
            "rows": found.first,
            "total": found.total,
            "entry": None,
        }

    def on_pair(self, message: dict[str, Any]) -> None:
        """Compare two other servers, or look for another name."""
        there = list(self.data["servers"])
        one, other = one_of(there, message, "one"), one_of(there, message, "other")
        if one == other:
            raise Problem("one server is not held against itself", one, "choose two")
        self._servers, self._named = (one, other), str(message.get("named", ""))[:200]
        self.data = self.drawn()

    def on_large(self, message: dict[str, Any]) -> None:
        """Compare many entries, by Spark, on a thread of its own: the page goes on meanwhile."""
        if self._thread is None and self.data.get("large"):
            self._ended.clear()
            self._thread = threading.Thread(target=self._by_spark, name="workbench: entries")
            self.data = {**self.data, "working": {"done": 0, "total": 0}}
            self._thread.start()

    def on_cancel(self, message: dict[str, Any]) -> None:
        """End the comparison; nothing is kept of it."""
        self._ended.set()
        self._interrupt()

    def wait(self) -> None:
        """Until what was begun has ended."""
        if (thread := self._thread) is not None:
            thread.join()

    def _by_spark(self) -> None:
        from workbench.engine.session import spark_session, tagging

        before = {key: value for key, value in self.data.items() if key != "working"}
        try:
            with self.told_here():
                spark, tag = spark_session(), f"entries-{uuid.uuid4().hex}"
                add, remove, interrupt = tagging(spark)
                self._interrupt = lambda: interrupt(tag)
                add(tag)
                try:
                    before = self._compared(list(before["servers"]), spark)
                except Exception:
                    if not self._ended.is_set():
                        self.notice = (
                            "the comparison ended by an error of this program or of Spark; its traceback is in the log"
                        )
                        raise
                    self.notice = "cancelled: nothing was compared"
                finally:
                    remove(tag)
        finally:
            self._interrupt, self._thread = _nothing, None
            self.data = before

    def _going_on(self, done: int, total: int) -> None:
        if self._ended.is_set():
            raise Problem("cancelled: nothing was compared")
        self.data = {**self.data, "working": {"done": done, "total": total}}

    def on_pick(self, message: dict[str, Any]) -> None:
        """The values of one entry on both."""
        row = one_of(self.data["rows"], message)
        states = entry_on_both(self.incident, *self._servers, row["entry"])
        same = sum(one["same"] for one in states)
        shown = [one for one in states if not one["same"]][:_SHOWN]
        differing = len(states) - same
        entry = {"target": row["target"], "states": shown, "same": same, "differing": differing}
        self.data = {**self.data, "entry": entry, "chosen": message["index"]}

    def as_text(self) -> str:
        """The entries by name."""
        if len(self.data["servers"]) < 2:
            return "The entries of fewer than two servers were collected."
        one, other = self.data["pair"]
        rows = [(row["target"], row["one"], row["other"]) for row in self.data["rows"]]
        if not rows:
            return f"{one} and {other} have the same entries."
        return f"{self.data['total']:,} entries differ\n\n{aligned([('ENTRY', one, other), *rows], right=(1, 2))}"
