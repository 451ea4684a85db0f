"""What the model of a plan does not know of a stream: what a log lacks while nobody knows the source, and what queues tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workbench.diagnosis.plan_counts import PlanCounts, Row
from workbench.replication.stream.rules.repair_model import StreamModel
from workbench.rules.repair_model import MissingAt, Model


class _Beside(NamedTuple):
    """What a model does not know of a server: by how much more is missing and pending there.

    behind_gap, held  of what its queue says that it waits for: what stands behind a gap, and what a thread that stands still
                      keeps; None: no queue tells
    """

    missing: int = 0
    pending: int = 0
    behind_gap: int | None = None
    held: int = 0


class StreamCounts(PlanCounts):
    """The numbers of the diagnosis, and the same difference afterwards.

    The model knows nothing of what the log with most of an origin lacks while nobody knows the source, and takes for lacking
    what is there with another content.
    """

    beside: dict[str, _Beside]

    def as_diagnosed(self, rows: Iterable[Row]) -> None:
        """If the diagnosis lists all that is missing."""
        self.beside = {}
        for row in rows if "missing" not in self.context.verdicts.cut() else ():
            name = row["server"]
            waits = self.waiting(name)
            missing = self.missing(name)
            pending, behind, held = (sum(one.get(key, 0) for one in waits) for key in ("count", "behind_gap", "held"))
            queued = any("queued" in one for one in waits)
            more = missing - row["missing"], pending - row["pending"]
            self.beside[name] = _Beside(*more, behind if queued else None, held)
            row["missing"], row["pending"] = missing, pending

    def afterwards(self, row: Row, done: Model, hidden: frozenset[MissingAt]) -> None:
        """An applier that runs brings what waits before what its queue lacks."""
        more = self.beside.get(row["server"], _Beside())
        arrives = any(link.runs and link.consumer == row["server"] for link in done.links)
        row["missing"] = max(row["missing"] + more.missing, 0)
        server = done.servers.get(row["server"])
        if more.behind_gap is None:
            row["pending"] = max(row["pending"] + more.pending, 0)
        elif server is None or server.source is None:  # of one that got all data its queue tells nothing any more
            row["pending"] = more.behind_gap + (0 if arrives else more.held)

    def not_judged(self, done: Model | None) -> int:
        """Of what the log of its source has damaged, a plan takes what another log has whole."""
        given, show = set[tuple[str, str, str]](), self.context.topology.system.show
        unknown = [row for row in self.context.verdicts.unknown if row["suffix"] == self.suffix]
        for server, number in done.taken if isinstance(done, StreamModel) else ():
            if done is not None and number in done.servers[server].holds:
                given.add((server, done.lots[number].origin, show(done.lots[number].last)))
        return sum(
            row["from"] != row["to"] or (row["server"], row["origin"], row["from"]) not in given for row in unknown
        )
