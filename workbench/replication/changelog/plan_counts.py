"""What the model of a plan does not know of servers with logs: what is in no log, and what came while others were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.closed_ways import in_no_log
from workbench.diagnosis.plan_counts import PlanCounts, Row
from workbench.model import counted
from workbench.rules.repair_model import MissingAt, Model

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


class LogCounts(PlanCounts):
    """The counts where all changes are listed; where a list was cut they are those of the model."""

    def __init__(self, context: DetectorContext, suffix: str | None, model: Model) -> None:
        super().__init__(context, suffix, model)
        found = context.verdicts
        self.never = Counter[str]()
        self.listed = bool(found.known) and not found.cut()
        if self.listed:
            self.unjudged = self._not_lacking()

    def as_diagnosed(self, rows: Iterable[Row]) -> None:
        """The model does not know what a server got while others were read.

        Nor does it know of changes that are behind all vectors and in no log: nothing brings these, whatever the plan does.
        """
        for row in rows if self.listed else ():
            name = row["server"]
            never = sum(waits["count"] - waits["available"] for waits in self.stuck(name))
            pending = sum(waits["count"] for waits in self.waiting(name))
            self.too_young[name] = max(never - sum(map(in_no_log, self.stuck(name))), 0)
            open_ = {lack for lack in self.unjudged & self.model.pending() if lack.server == name}
            self.never[name] = max(min(never, pending - row["pending"] + self.model.changes(open_)), 0)
            row["missing"], row["pending"] = self.missing(name), pending

    def afterwards(self, row: Row, done: Model, hidden: frozenset[MissingAt]) -> None:
        """Nothing brings what no log has; what is not judged is not counted, but for what the plan throws away."""
        thrown = done.gone() - self.model.gone()
        open_ = {lack for lack in self.unjudged if lack.server == row["server"] and lack.lot not in thrown}
        missing = row["missing"] - done.changes(open_ & done.missing() - hidden)
        pending = row["pending"] + self.never[row["server"]] - done.changes(open_ & (done.pending() | hidden))
        row["missing"], row["pending"] = max(missing, 0), max(pending, 0)

    def passed_over(self) -> tuple[frozenset[MissingAt], list[str]]:
        """Nothing of it is missing yet.

        Whether anything is lost by it, only the entries tell, and no export can show now what a later change overwrites.
        """
        model = self.model
        later = model.copy()
        later.settle()
        passed = frozenset(
            lack for lack in model.pending() & later.missing() if lack.lot in model.given and not self._logged(lack)
        )
        waits: dict[frozenset[int], list[str]] = {}
        for name in sorted(model.servers):
            lots = frozenset(lack.lot for lack in passed if lack.server == name) - later.gone()
            waits.setdefault(lots, []).append(name)
        says = []
        for lots, names in waits.items():
            if lots:
                count = sum(model.lots[number].changes for number in lots)
                wait, them = "waits" if len(names) == 1 else "wait", "it" if count == 1 else "them"
                says.append(
                    f"{counted(count, 'change', 'changes')} that {', '.join(names)} {wait} for {'is' if count == 1 else 'are'} "
                    f"in no log any more, and the next session goes past {them}: collect again with --entries after that one, "
                    "and diagnose anew whether anything is lost by it"
                )
        return passed, says

    def newer(self, running: Model) -> Mapping[str, tuple[int, int]]:
        """By who feeds whom, and how far each server that feeds claims to be."""
        system, found = self.context.topology.system, dict[str, tuple[int, int]]()
        replicas = {one.server: one for one in self.context.topology.replicas if one.suffix == self.suffix}
        for row in self._newer_than_logs():
            server, feeding = row["server"], {row["server"]}
            for _ in running.servers:
                feeding |= {link.supplier for link in running.links if link.runs and link.consumer in feeding}
            tops = (replicas[name].top(row["origin"]) for name in feeding - {server} if name in replicas)
            come, stay = found.get(server, (0, 0))
            count, newest = row["count"] - row["available"], system.typed(row["last"])
            comes = bool(newest) and max(tops, default="") >= str(newest)
            found[server] = (come + count, stay) if comes else (come, stay + count)
        return found

    def _not_lacking(self) -> frozenset[MissingAt]:
        """What is not in the lists of the diagnosis, and what was made after all logs had been read."""
        model, system = self.model, self.context.topology.system
        rows = [row for row in self.context.verdicts.missing if row["suffix"] == self.suffix]
        listed = {(row["server"], system.typed(row["position"])) for row in rows}
        lacks = {x for x in model.missing() if (x.server, model.lots[x.lot].last) not in listed}
        lacks |= self._not_waited_for() | self._made_since()
        # Of a server that lost its data the diagnosis goes by what it claimed before.
        return frozenset(x for x in lacks if not model.servers[x.server].empty)

    def _not_waited_for(self) -> set[MissingAt]:
        """What waits in the model, and for which no server waits by the diagnosis: all older than what it waits for, too."""
        begins: dict[tuple[str, str], str] = {}
        for row in self.context.verdicts.pending:
            if row["suffix"] == self.suffix:
                key, first = (row["server"], row["origin"]), self.context.topology.system.typed(row["first"]) or ""
                begins[key] = min(begins.get(key, first), first)
        lots = self.model.lots
        ends = {x: (begins.get((x.server, lots[x.lot].origin)), lots[x.lot].last) for x in self.model.pending()}
        return {x for x, (first, last) in ends.items() if first is None or last < first}

    def _made_since(self) -> set[MissingAt]:
        """What waits and is in no log, where nothing of it was lost: it was made after all logs had been read."""
        coming = {(row["server"], row["origin"]) for row in self._newer_than_logs()}
        waits = self.model.pending() if any(x.log is not None for x in self.model.servers.values()) else ()
        return {x for x in waits if (x.server, self.model.lots[x.lot].origin) in coming and not self._logged(x)}

    def _logged(self, lack: MissingAt) -> bool:
        logs = [server.log for server in self.model.servers.values() if server.log is not None]
        return any(log.holds(self.model.lots[lack.lot].last) for log in logs)

    def _newer_than_logs(self) -> list[Mapping[str, Any]]:
        """What waits of which no log has all: what is older than the logs and in none, the row would count as gone."""
        return [
            row
            for row in self.context.verdicts.pending
            if row["suffix"] == self.suffix and row["available"] < row["count"]
            if row["suppliers"] or row.get("through")
            if not any(row.get(what) for what in ("gone", "lost", "refused", "dropped_since"))
        ]
