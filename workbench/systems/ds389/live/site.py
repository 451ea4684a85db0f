"""Real servers as the place where a plan is done and looked after (`workbench.repairing.Site`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.model import Problem
from workbench.plans import Step, Vectors
from workbench.systems.ds389.live.connection import BELOW
from workbench.systems.ds389.live.hands import HANDS, Hand
from workbench.systems.ds389.live.planned import PlannedServers

_CONFLICTS = "(|(nsds5ReplConflict=*)(&(objectClass=ldapSubEntry)(nsds5ReplConflict=*)))"
_SHOWN = 5


class DirectorySite(PlannedServers):
    """The servers of a plan, and the hands that do its steps there."""

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        """Why the step may not be done: servers that are not those of the plan, and what its kind looks at."""
        found = list(self._strangers(step))
        return found or list(self._hand(step).obstacles(self, step, begun))

    def memo(self, step: Step) -> dict[str, Any]:
        """What has to be known from before the step to tell later whether it is done."""
        self._know_them(step)
        return self._hand(step).memo(self, step)

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if the step has taken effect at its server."""
        self._know_them(step)
        return self._hand(step).done(self, step, memo)

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Do the step, as far as it is not done."""
        self._hand(step).apply(self, step, memo)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """What is not yet as the step expects, on its server and on all others."""
        return list(self._hand(step).shortfall(self, step, memo))

    def kept(self) -> list[dict[str, Any]]:
        """How the servers stand to what the plan promised: rows of `server`, `suffix`, `says` and `kept`; None: unknown."""
        rows: list[dict[str, Any]] = []
        for suffix in dict.fromkeys(one["suffix"] for one in self.plan.servers):
            vectors = self.vectors(suffix)
            for name in self.all_names(suffix):
                about = {"server": name, "suffix": suffix}
                if name not in vectors:
                    says = "was said to be down" if name in self.down else "does not answer"
                    rows.append({**about, "says": says, "kept": None})
                    continue
                ahead = sorted({other for other in vectors if self.behind(suffix, (other, name), vectors)})
                level = (
                    f"lacks changes that {', '.join(ahead)} claims" if ahead else "claims all that any server claims"
                )
                rows.append({**about, "says": level, "kept": not ahead})
                conflicts = self._conflicts(suffix, name)
                what = (
                    f"{len(conflicts)} conflict entries: {', '.join(conflicts[:_SHOWN])}"
                    if conflicts
                    else "no conflict entries"
                )
                rows.append({**about, "says": what, "kept": not conflicts})
            # What was delivered of an origin that the plan cleaned no vector tells any more: that its entries are alike does.
            cleaned = {
                one.details["origin"] for one in self.plan.steps if (one.repair, one.suffix) == ("clean", suffix)
            }
            for row in self.plan.promise:
                if row["suffix"] == suffix and row["server"] in vectors:
                    rows.append(self._delivered(suffix, row, vectors, row["origin"] in cleaned))
        return rows

    # --- inside

    def _know_them(self, step: Step) -> None:
        """Raise Problem if a server is not the one that the plan calls so: what it shows would prove nothing."""
        needs = {step.server, step.on, step.details.get("to"), *step.details.get("level", ())}
        if lacking := sorted(needs & set(self.down)):
            do = "go on when it is back, or plan for the others: `workbench plan CASE --for SERVER`"
            raise Problem(f"{', '.join(lacking)} is down, and the step needs it", step.key, do)
        if strangers := list(self._strangers(step)):
            raise Problem(
                strangers[0], step.key, "check which address belongs to which name; if they are right, plan anew"
            )

    def _strangers(self, step: Step) -> Iterator[str]:
        """The servers that are not those of the plan, or hold other data by now."""
        down = step.details.get("down", ())
        for name in self.names(step.suffix):
            if name in down and not self.answers(name):
                continue
            try:
                origin, generation = self.identity(step.suffix, name)
            except Problem as problem:
                do = f"if it is down and stays so, leave it out: --down {name} in place of its address"
                raise Problem(f"{name} cannot be asked: {problem.what}", problem.where, do) from None
            planned = self.about(step.suffix, name)
            if origin != planned["origin"]:
                yield f"the server reached as {name} makes changes as {origin}, that of the plan as {planned['origin']}"
            elif planned["generation"] and generation and generation not in self._generations(step.suffix, name):
                yield f"{name} was initialised anew since the plan was made"

    def _generations(self, suffix: str | None, name: str) -> set[str]:
        """Those that the data of a server may have: the planned one, and that of whom the plan has it initialised from."""
        sources = [
            one.on for one in self.plan.steps if (one.repair, one.server, one.suffix) == ("initialise", name, suffix)
        ]
        return {self.about(suffix, one)["generation"] for one in (name, *sources)}

    def _hand(self, step: Step) -> Hand:
        hand = HANDS.get(step.repair)
        if hand is None:
            raise Problem(f"nobody knows how to do {step.repair}", step.key, "make the plan again with this version")
        return hand

    def _conflicts(self, suffix: str | None, name: str) -> list[str]:
        with self.connected(name) as server:
            return [
                entry.dn
                for entry in server.search(suffix or "", BELOW, _CONFLICTS, ("nsds5ReplConflict",), absent=True)
            ]

    def _delivered(self, suffix: str | None, row: Mapping[str, Any], vectors: Vectors, cleaned: bool) -> dict[str, Any]:
        name, about = row["server"], {"server": row["server"], "suffix": suffix}
        what = f"{row['count']:,} changes of origin {row['origin']}, {row['first']} to {row['last']}"
        if not cleaned and vectors[name].get(row["origin"], "") < row["last"]:
            return {**about, "says": f"has not got {what}", "kept": False}
        others = [
            other for other in self.names(suffix) if other != name and other in vectors and self.origin(suffix, other)
        ]
        for dn in row["targets"]:
            unlike = [text for other in others[:1] for text in self.unlike(suffix, other, dn)]
            if unlike:
                return {**about, "says": unlike[0], "kept": False}
        seen = f", and {len(row['targets']):,} entries are equal on all servers" if row["targets"] else ""
        return {**about, "says": f"has got {what}{seen}", "kept": True}
