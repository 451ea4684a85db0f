"""Operations at work on one server, and what three rule sets would have it claim meanwhile."""

from __future__ import annotations

from typing import Any

from widgets.mesh import OfIncident
from workbench.at_work import at_work, examples, of_example
from workbench.plain import aligned

EVIDENCE = ""
"""The choice that means the collected logs, not a worked example."""


class PendingLanes(OfIncident, drawn_by="work"):
    """Operations as bars on a line of time, and below them when the claim moves under each rule set.

    A max that moves past an operation still at work hides it from every consumer; one that waits for an operation which
    nobody ends is frozen.
    """

    _example = EVIDENCE

    def drawn(self) -> dict[str, Any]:
        """The chosen worked example, else the chosen server."""
        there = examples(self.incident)
        asked = self.chosen.value("example", EVIDENCE) if self.chosen is not None else EVIDENCE
        names = [
            {"name": EVIDENCE, "title": "the collected logs"},
            *({"name": k, "title": v} for k, v in there.items()),
        ]
        name = asked if asked in there else self._example
        made = of_example(self.incident, name) if name in there else self._of_evidence()
        return {**made, "examples": names, "example": name}

    def _of_evidence(self) -> dict[str, Any]:
        replicas = [one for one in self.incident.topology.replicas if one.suffix == self.suffix]
        server = self.only("server") or next((one.server for one in replicas if one.origin), replicas[0].server)
        value = self.chosen.value if self.chosen is not None else (lambda name, otherwise="": otherwise)
        return at_work(self.incident, server, self.suffix, self.only("origin"), value("since", ""), value("until", ""))

    def on_example(self, message: dict[str, Any]) -> None:
        """Show a worked example, or the evidence again."""
        self._example = str(message.get("name", EVIDENCE))
        self.data = self.drawn()

    def text(self) -> str:
        """How many operations, and what each rule set claims in the end."""
        data = self.data
        title = f"{data['title']}\n\n{data['count']:,} operations"
        rows = [
            (track["rules"], move["origin"], move["max"])
            for track in data["tracks"]
            for move in {one["origin"]: one for one in track["moves"]}.values()
        ]
        return f"{title}\n\n{aligned([('RULE SET', 'ORIGIN', 'CLAIMS IN THE END'), *rows])}" if rows else title
