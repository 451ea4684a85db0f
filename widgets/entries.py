"""Two servers' entries held against each other."""

from __future__ import annotations

from typing import Any

from widgets.of_incident import OfIncident, one_of
from workbench.entry_diff import entries_that_differ, entry_on_both, needs_spark, with_entries
from workbench.model import Problem
from workbench.plain import aligned

_SHOWN = 200


class EntryDiff(OfIncident, drawn_by="entries"):
    """The entries in which two servers differ, by name. Click one for its values and the changes that made them."""

    _servers: tuple[str, str] = ("", "")
    _named = ""

    def drawn(self) -> dict[str, Any]:
        """The differing entries of two servers; those that lack something, and one that can tell, to begin with."""
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
        found = entries_that_differ(self.incident, *self._servers, self._named, _SHOWN, spark)
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
        """Compare many entries, by Spark."""
        from workbench.engine.session import spark_session

        self.data = self._compared(list(self.data["servers"]), spark_session())

    def on_pick(self, message: dict[str, Any]) -> None:
        """The values of one entry on both."""
        row = one_of(self.data["rows"], message)
        states = entry_on_both(self.incident, *self._servers, row["entry"])
        same = sum(one["same"] for one in states)
        shown = [one for one in states if not one["same"]][:_SHOWN]
        self.data = {
            **self.data,
            "entry": {"target": row["target"], "states": shown, "same": same},
            "chosen": message["index"],
        }

    def as_text(self) -> str:
        """The entries by name."""
        if len(self.data["servers"]) < 2:
            return "The entries of fewer than two servers were collected."
        one, other = self.data["pair"]
        rows = [(row["target"], row["one"], row["other"]) for row in self.data["rows"]]
        if not rows:
            return f"{one} and {other} have the same entries."
        return f"{self.data['total']:,} entries differ\n\n{aligned([('ENTRY', one, other), *rows], right=(1, 2))}"
