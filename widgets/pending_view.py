"""Operations at work on one server, and what three rule sets would have it claim meanwhile."""

from __future__ import annotations

from typing import Any

from widgets.incident_view import OfIncident
from workbench.model import Problem
from workbench.text_table import aligned
from workbench.views.pending_operations import at_work, of_example


class PendingLanes(OfIncident, drawn_by="work"):
    """Operations as bars on a line of time, and below them when the claim moves under each rule set.

    A max that moves past an operation still at work hides it from every consumer; one that waits for an operation which
    nobody ends is frozen.
    """

    def drawn(self) -> dict[str, Any]:
        """The chosen worked example, else the chosen server."""
        name = self.value("example")
        return of_example(self.incident, name) if name else self._of_evidence()

    def _of_evidence(self) -> dict[str, Any]:
        replicas = [one for one in self.incident.topology.replicas if one.suffix == self.suffix]
        if not replicas:
            raise Problem("no server was collected", self.incident.then_label, "load its files into the case")
        server = self.only("server") or next((one.server for one in replicas if one.origin), replicas[0].server)
        return at_work(
            self.incident, server, self.suffix, self.only("origin"), self.value("since"), self.value("until")
        )

    def as_text(self) -> str:
        """How many operations, and what each rule set claims in the end."""
        data = self.data
        title = f"{data['title']}\n\n{data['count']:,} operations"
        rows = [
            (track["rules"], move["origin"], move["max"])
            for track in data["tracks"]
            for move in {one["origin"]: one for one in track["moves"]}.values()
        ]
        return f"{title}\n\n{aligned([('RULE SET', 'ORIGIN', 'CLAIMS IN THE END'), *rows])}" if rows else title
