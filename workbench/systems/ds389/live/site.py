"""Real servers as the place where a plan is done and looked after (`workbench.repair.plan_executor.Site`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from workbench.model import Problem, counted, ends, listed
from workbench.repair.plan_progress import state_of
from workbench.repair.plan_types import Step, Vectors
from workbench.systems.ds389.live.entries import entry_of
from workbench.systems.ds389.live.planned import PlannedServers
from workbench.systems.ds389.live.step_executors import HANDS, StepExecutor

_SHOWN = 5
_SETTLES, _PAUSE = 15.0, 0.5
"""Seconds that servers are given to get what others claimed when they were asked, and between two looks."""


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

        def tell(server: str, suffix: str | None, told: Callable[[], tuple[bool | None, str]]) -> None:
            try:
                kept, says = told()
            except Problem as problem:
                kept, says = None, f"could not be asked: {problem.what}"
            rows.append({"server": server, "suffix": suffix, "says": says, "kept": kept})

        for suffix in dict.fromkeys(one["suffix"] for one in self.plan.servers):
            first, last = self._settled(suffix)
            for name in self.names(suffix):
                if name not in last:
                    rows.append({"server": name, "suffix": suffix, "says": "does not answer", "kept": None})
                    continue
                tell(name, suffix, partial(self._level, suffix, name, first, last))
                tell(name, suffix, partial(self._without_conflicts, suffix, name))
            for step in self.plan.steps:
                if (step.repair, step.suffix) == ("enable", suffix):
                    tell(step.on, suffix, partial(self._switched_on, step))
            for row in self.plan.promise:
                if row["suffix"] == suffix and row["server"] in last:
                    tell(row["server"], suffix, partial(self._delivered, row, last))
        return rows

    # --- inside

    def _know_them(self, step: Step) -> None:
        """Raise Problem if a server is not the one that the plan calls so: what it shows would prove nothing."""
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
                do = f"{problem.do}; if it is gone for long, collect without it and plan again".removeprefix("; ")
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

    def _hand(self, step: Step) -> StepExecutor:
        hand = HANDS.get(step.repair)
        if hand is None:
            raise Problem(f"nobody knows how to do {step.repair}", step.key, "make the plan again with this version")
        return hand

    def _switched_on(self, step: Step) -> tuple[bool, str]:
        """Whether the link of such a step is on: what arrives over other links does not tell that."""
        on = self.done(step, {})
        return (
            on,
            f"the link to {step.details['to']} is {'on' if on else 'off, or leads elsewhere: its step was not done'}",
        )

    def _settled(self, suffix: str | None) -> tuple[Vectors, Vectors]:
        """What all claim now, and what they claim some time later: on a live system they are never level at one moment."""
        first = last = self.vectors(suffix)
        end = time.monotonic() + _SETTLES
        while time.monotonic() < end and any(self._ahead(suffix, name, first, last) for name in last):
            time.sleep(_PAUSE)
            last = self.vectors(suffix)
        return first, last

    def _ahead(self, suffix: str | None, name: str, first: Vectors, last: Vectors) -> list[str]:
        """Who claimed at first what the server does not claim at last, but for old changes of an origin that the plan cleaned."""
        done = state_of(self.folder, self.plan).done
        mine = [one for one in self.plan.steps if one.suffix == suffix and one.key in done]
        cleaned = {
            rid: max(self.planned(suffix, one).get(rid, "") for one in first)
            for rid in (one.details["origin"] for one in mine if one.repair == "clean")
        }
        left = {one: {of: at for of, at in held.items() if at > cleaned.get(of, "")} for one, held in first.items()}
        return [
            one for one in first if one != name and self.behind(suffix, (one, name), {name: last[name], one: left[one]})
        ]

    def _level(self, suffix: str | None, name: str, first: Vectors, last: Vectors) -> tuple[bool, str]:
        ahead = self._ahead(suffix, name, first, last)
        return (
            not ahead,
            f"lacks changes that {listed(ahead)} claim{'s' * (len(ahead) == 1)}"
            if ahead
            else "claims all that any server claims",
        )

    def _without_conflicts(self, suffix: str | None, name: str) -> tuple[bool | None, str]:
        found = self.conflicts(suffix, name)
        if not found:
            return True, "no conflict entries"
        # What a source has comes along when it fills another server.
        done = state_of(self.folder, self.plan).done
        fills = [one for one in self.plan.steps if (one.repair, one.server, one.suffix) == ("initialise", name, suffix)]
        known = {name, *(one.on for one in fills if one.key in done)}
        told = [row.get("conflicts") for row in self.plan.servers if row["suffix"] == suffix and row["server"] in known]
        names = ", ".join(entry.dn for entry in found[:_SHOWN])
        if None in told:
            why = "whether they were there before the plan nothing tells: collect with the entries, and see CONFLICT_ENTRIES"
            return None, f"{len(found)} conflict entries: {names}; {why}"
        if len(found) <= max(one or 0 for one in told):
            return True, f"no more conflict entries than before ({len(found)}): CONFLICT_ENTRIES says what to do"
        return False, f"{len(found)} conflict entries: {names}"

    def _delivered(self, row: Mapping[str, Any], vectors: Vectors) -> tuple[bool | None, str]:
        """Whether what was promised to a server is there: as its vector claims, and as its entries show."""
        name, suffix, origin = row["server"], row["suffix"], row["origin"]
        what = f"{counted(row['count'])} of origin {origin}, {ends(row['first'], row['last'])}"
        done = state_of(self.folder, self.plan).done
        mine = [one for one in self.plan.steps if one.suffix == suffix and one.key in done]
        steps = {(one.repair, one.server, one.details.get("origin")) for one in mine}
        # No vector tells of an origin that the plan cleaned.
        cleaned = any(repair == "clean" and rid == origin for repair, _, rid in steps)
        if not cleaned and vectors[name].get(origin, "") < row["last"]:
            return False, f"has not got {what}"
        partner = self._partner(row, vectors)
        if row["targets"] and partner:
            if unlike := self._still_unlike(suffix, (partner, name), row["targets"]):
                return False, unlike
            if absent := self._absent(partner, row.get("created", ())):
                return False, f"has not got {what}: {partner} does not show {absent} either"
            compared = counted(len(row["targets"]), "entry is", "entries are")
            return True, f"has got {what}, and its {compared} as on {partner}"
        # A vector that claimed them when they were missing proves nothing, unless all of its data came anew.
        filled = any((repair, server) == ("initialise", name) for repair, server, _ in steps)
        # Its own next change moves its vector over own changes that it lost, whether they came back or not.
        moves = self.origin(suffix, name) == origin and not any(one.details.get("rescued") == name for one in mine)
        if filled or (not cleaned and not moves and self.planned(suffix, name).get(origin, "") < row["last"]):
            return True, f"has got {what}"
        return None, f"may have got {what}: its vector does not tell, and there was nothing to compare its entries with"

    def _still_unlike(self, suffix: str | None, names: tuple[str, str], targets: Sequence[str]) -> str | None:
        """In what entries differ for some time: one that clients write is read at two moments; None: each was alike once."""
        left, end = list(targets), time.monotonic() + _SETTLES
        while True:
            told = {dn: next(iter(self.unlike(suffix, names, dn)), None) for dn in left}
            left = [dn for dn in left if told[dn]]
            if not left or time.monotonic() >= end:
                return told[left[0]] if left else None
            time.sleep(_PAUSE)

    def _absent(self, name: str, targets: Sequence[str]) -> str | None:
        """The first of some entries that a server does not show: two servers that lack one are alike in it."""
        with self.connected(name) as server:
            return next((dn for dn in targets if entry_of(server, dn) is None), None)

    def _partner(self, row: Mapping[str, Any], vectors: Vectors) -> str | None:
        """A server that makes changes and lacked nothing of what was promised."""
        suffix, origin = row["suffix"], row["origin"]
        lacked = {one["server"] for one in self.plan.promise if (one["suffix"], one["origin"]) == (suffix, origin)}
        able = (name for name in self.names(suffix) if name in vectors and self.origin(suffix, name))
        return next((name for name in able if name not in {row["server"], *lacked}), None)
