"""What the models of plans begin with: who replicates, and a lot for each change that some server misses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.cleaned_origins import CLEANED_HERE
from workbench.diagnosis.repair_sources import doubted_on
from workbench.engine.position_index import Pair
from workbench.rules.repair_model import ChangeGroup
from workbench.rules.verdicts import PERHAPS_NO_EFFECT
from workbench.topology.topology import Replica, Row

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


class MissedLots:
    """The servers of one suffix, and a lot for each change that some of them miss, with who has it."""

    def __init__(self, context: DetectorContext, suffix: str | None) -> None:
        self.context, self.suffix, self.system = context, suffix, context.topology.system
        self.replicas = [one for one in context.topology.replicas if one.suffix == suffix and one.claims]
        self.names = {one.server for one in self.replicas}
        self.lots: list[ChangeGroup] = []
        self.holders: list[set[str]] = []
        self._unknown = {name: doubted_on(context, name, suffix) for name in self.names}
        self._cleaned: dict[str, list[tuple[str, str, str]]] = {}
        for row in context.verdicts.unknown:
            if (row["suffix"], row["why"]) == (suffix, CLEANED_HERE):
                low, high = (self.system.typed(row[end]) or "" for end in ("from", "to"))
                self._cleaned.setdefault(row["origin"], []).append((row["server"], low, high))

    def missed(self) -> None:
        """One lot for each change that some server misses, and for each part of a change where parts are told apart."""
        rows: dict[tuple[str, Any, Any], list[Row]] = {}
        for row in [*self.context.verdicts.missing, *self._perhaps_lacking()]:
            if row["suffix"] == self.suffix and row["server"] in self.names:
                position = self.system.typed(row["position"]) or ""
                rows.setdefault((position, row.get("entry"), row.get("attribute")), []).append(row)
        for (position, _, _), mine in rows.items():
            missed = mine[0]
            lacking = {one["server"] for one in mine}
            shown = {name for one in mine for name in one.get("shown_by", ())} - lacking
            if not missed["held_by"]:
                lacking |= self._not_judged(missed["origin"], position)
            target = (missed["target"] or "").lower() or None
            does = {"creates": missed["operation"] == "add", "renames": missed["operation"] == "modrdn"}
            self.lots.append(ChangeGroup(missed["origin"], position, position, 1, target, **does))
            place = self.system.halves(position)
            self.holders.append(
                {
                    one.server
                    for one in self.replicas
                    if one.server in shown
                    or (
                        one.server not in lacking
                        and (
                            self.has_seen(one, missed["origin"], position)
                            or self.kept(one, missed["origin"], place, place)
                        )
                        and not self.thrown_away(one, position)
                    )
                }
            )

    def _perhaps_lacking(self) -> Iterator[Row]:
        """Changes that the log of a server lacks and that may do nothing there: whoever has them may lose them to its data."""
        for row in self.context.verdicts.unknown:
            if row["why"] in PERHAPS_NO_EFFECT:
                yield {**row, "position": row["from"], "operation": None, "target": None, "held_by": [row["server"]]}

    def _not_judged(self, origin: str, position: str) -> set[str]:
        """The servers of which nothing tells whether they have a change that no log has: nothing is promised from their data."""
        typed = self.system.typed
        return {
            name
            for name, rows in self._unknown.items()
            if any(
                row["origin"] == origin and (typed(row["from"]) or "") <= position <= (typed(row["to"]) or "")
                for row in rows
            )
        }

    def has_seen(self, one: Replica, origin: str, position: str) -> bool:
        """True if the server is known to have come to this position."""
        return self.top(one, origin) >= position

    def kept(self, one: Replica, origin: str, first: Pair, end: Pair) -> bool:
        """True if a server has all these changes of an origin that was cleaned away from its vector."""
        kept = self.context.verdicts.kept.get((one.server, self.suffix, origin), ())
        return any(low <= first and end <= high for low, high in kept)

    def top(self, one: Replica, origin: str) -> str:
        """Up to where a server has seen the changes of an origin."""
        return one.top(origin)

    def thrown_away(self, one: Replica, position: str) -> bool:
        """True for a change that the server lost with its data, and so never missed."""
        return False

    def held_by(self, server: str) -> set[int]:
        """The numbers of the lots that a server has."""
        return {number for number, names in enumerate(self.holders) if server in names}
