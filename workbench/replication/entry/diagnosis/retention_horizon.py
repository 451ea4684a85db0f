"""How far every server has seen each origin, who holds that back, and what may be forgotten: safely, and by age.

Where servers remember what they have seen for some time and then forget it, nobody asks whether somebody still needs it. The
floor of an origin is the last position that every server has: what is listed below it nobody can ask for any more. What a
server forgets by age may lie above the floor; then it goes although somebody has not seen it. Whether that server could be
supplied before the purge and not behind it is answered by the comparison of ranges itself, as the purge leaves them.

A server of which nothing was collected may stand lower than all others, so that no floor is certain (`unsure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.parquet_read import stream_part
from workbench.engine.selective_read import rows_of
from workbench.engine.states import DELETED
from workbench.intake.inputs import Input
from workbench.model import ITEMS_SHOWN
from workbench.replication.entry.diagnosis.shown_changes import sent_times
from workbench.replication.entry.diagnosis.state_comparison import now_at, peer_of, ranges_of, states_of
from workbench.replication.entry.rules.entries import Answer, Peer, Ranges
from workbench.tables import Numbers
from workbench.topology.topology import Replica, Topology, not_collected

OF_NO_SERVER, MAY_HAVE_FORGOTTEN, OF_ANY_DATA = "of_no_server", "may_have_forgotten", "of_any_data"
"""Why no floor is certain, beside the reasons of `not_collected` in `workbench.topology.topology`: an origin that was heard of
within the window is that of no collected server; a server lists nothing of an origin that it may have seen and forgotten; a
server does not tell which of several data it holds."""


@dataclass(frozen=True)
class Floors:
    """Rows in the shape of the contract: `floors` by origin, `tombstones` by server; where servers keep logs there are none."""

    floors: list[dict[str, Any]] = field(default_factory=list)
    tombstones: list[dict[str, Any]] = field(default_factory=list)


def floors_of(case: Case, shown: Topology, judged: Verdicts, pairs: Sequence[Mapping[str, Any]]) -> Floors:
    """What all servers have seen in the snapshot, and what each of them may forget, and will."""
    found = Floors()
    if shown.pulling is None:
        return found
    open_, of = not_collected(shown), dict[str | None, list[Replica]]()
    for one in shown.replicas:
        if one.claims:
            of.setdefault(one.suffix, []).append(one)
    for suffix, claiming in of.items():
        not_told = [(row["server"], row["why"]) for row in open_ if row["suffix"] in (None, suffix)]
        for generation, replicas, silent in _groups(claiming):
            strange = [(name, OF_ANY_DATA) for name in silent]
            group = _Group(case, shown, replicas, [*not_told, *strange], judged, pairs)
            about = {"suffix": suffix, "generation": generation}
            found.floors.extend(about | row for row in group.floors())
            found.tombstones.extend(about | row for row in group.tombstones())
    return found


def _groups(replicas: Sequence[Replica]) -> Iterator[tuple[str | None, list[Replica], list[str]]]:
    """Those that replicate the same data, by the initialisation that it is of, and the names of those that may belong to them.

    Where one initialisation is known, a server that tells none is taken for one of its servers: to leave it out would call a
    floor certain that it may hold.
    """
    known: list[str | None] = list(dict.fromkeys(one.generation for one in replicas if one.generation))
    silent = [one for one in replicas if not one.generation]
    for generation in known or [None]:
        mine = [one for one in replicas if one.generation == generation or (not one.generation and len(known) < 2)]
        yield generation, mine, [one.server for one in silent if one not in mine]


@dataclass
class _Server:
    """One server: what it claims, and from when on it still remembers."""

    replica: Replica
    ranges: Ranges
    cut: int

    @property
    def name(self) -> str:
        return self.replica.server


@dataclass
class _Group:
    """The servers that replicate the same data."""

    case: Case
    shown: Topology
    replicas: Sequence[Replica]
    not_told: Sequence[tuple[str, str]]
    judged: Verdicts
    pairs: Sequence[Mapping[str, Any]]

    @cached_property
    def servers(self) -> list[_Server]:
        case, shown, remember = self.case, self.shown, self._remember
        return [_Server(one, ranges_of(shown, one), now_at(case, shown, one) - remember) for one in self.replicas]

    @property
    def _remember(self) -> int:
        assert self.shown.pulling is not None
        return self.shown.pulling.remember

    @cached_property
    def origins(self) -> list[str]:
        """All origins that any of them lists."""
        return sorted({origin for one in self.servers for origin in one.ranges})

    @cached_property
    def makers(self) -> dict[str, str]:
        return {one.origin: one.server for one in self.shown.replicas if one.origin}

    @cached_property
    def unsure(self) -> list[dict[str, str]]:
        """Who may stand lower than all servers that are known."""
        strange = [
            origin
            for origin in self.origins
            if origin not in self.makers
            and any(origin in one.ranges and one.ranges[origin][1] >= one.cut for one in self.servers)
        ]
        told = [*self.not_told, *((origin, OF_NO_SERVER) for origin in strange)]
        return [{"who": who, "why": why} for who, why in told]

    def last(self, origin: str) -> int:
        """The last time of an origin that anybody has seen."""
        return max(one.ranges[origin][1] for one in self.servers if origin in one.ranges)

    def may_have_forgotten(self, one: _Server, origin: str) -> bool:
        """True if the server lists nothing of the origin, and would not if it had seen all of it: it is too long ago."""
        return origin not in one.ranges and self.last(origin) < one.cut

    def seen(self, origin: str) -> dict[str, int]:
        """Server -> how far it has seen the origin; -1: nothing of it. Those of which nobody knows are left out."""
        return {
            one.name: one.ranges.get(origin, (0, -1))[1]
            for one in self.servers
            if not self.may_have_forgotten(one, origin)
        }

    def position(self, time: int, origin: str) -> str:
        return self.shown.system.show(self.shown.system.order_key(origin, time, 0))

    # --- what is listed

    def floors(self) -> Iterator[dict[str, Any]]:
        """One row for each origin."""
        lists = {one.name: self._listed(one) for one in self.servers}
        behind = {one.name: self._left_behind(one, lists[one.name] or {}) for one in self.servers}
        for origin in self.origins:
            seen = self.seen(origin)
            floor, highest = min(seen.values()), self.last(origin)
            forgetful = [one.name for one in self.servers if one.name not in seen]
            unsure = [*self.unsure, *({"who": name, "why": MAY_HAVE_FORGOTTEN} for name in forgetful)]
            yield {
                "origin": origin,
                "made_on": self.makers.get(origin),
                "floor": self.position(floor, origin) if floor >= 0 else None,
                "held_by": sorted(name for name, last in seen.items() if last == floor < highest),
                "certain": not unsure,
                "unsure": unsure,
                "servers": [
                    self._row(one, origin, None if (tallies := lists[one.name]) is None else tallies.get(origin))
                    | {"safe": self._safe(tallies, origin, not unsure)}
                    | {"leaves_behind": sorted(behind[one.name].get(origin, ()))}
                    for one in self.servers
                ],
            }

    def _safe(self, tallies: Mapping[str, _Tally] | None, origin: str, certain: bool) -> int | None:
        below = None if tallies is None else tallies[origin].below if origin in tallies else 0
        return below if certain or below == 0 else None

    def _left_behind(self, one: _Server, tallies: Mapping[str, _Tally]) -> dict[str, list[str]]:
        """Origin -> whom the server can supply with changes of it now and not behind its purge, for what it forgets of it.

        A consumer that lags behind one origin gets nothing of the others either: it is named with the one it lags behind.
        """
        pulling = self.shown.pulling
        assert pulling is not None
        ask, now = next(iter(pulling.answers.values())), peer_of(self.case, self.shown, one.replica)
        ranges = {
            origin: (tally.stays, one.ranges[origin][1]) for origin, tally in tallies.items() if tally.stays is not None
        }
        if one.replica.origin is not None:  # a purge begins with a mark of the server's own
            ranges[one.replica.origin] = ranges.get(one.replica.origin, (now.now, now.now))[0], now.now
        others = {other.name: peer_of(self.case, self.shown, other.replica) for other in self.servers}
        found: dict[str, list[str]] = {}
        for row in self.pairs:
            other = others.get(row["consumer"])
            if row["supplier"] != one.name or other is None or not row["delivers"]:
                continue
            then = ask(now._replace(ranges=ranges), other)
            for origin in row["owed"].keys() & tallies.keys():
                if then.lag:
                    behind = origin in then.lag
                else:
                    behind = not then.owed or bool(self._not_sent(one, other, origin, ranges, then))
                if behind:
                    found.setdefault(origin, []).append(row["consumer"])
        return found

    def _not_sent(self, one: _Server, other: Peer, origin: str, ranges: Ranges, then: Answer) -> set[int]:
        """The times of changes that would be sent now, and are not by the answer behind the purge."""
        after = other.ranges.get(origin, (0, 0))[1]
        sends = then.supplies and origin in then.owed
        if sends and after >= one.cut:
            return set()
        states, (first, last) = states_of(self.case, self.shown, one.replica), one.ranges[origin]

        def times(listed: int) -> set[int]:
            some = sent_times(self.case, states, origin, after, last, listed)
            return {time for times in some for time in pc.unique(times).to_pylist()}

        return times(first) - (times(ranges[origin][0]) if sends else set())

    def _row(self, one: _Server, origin: str, tally: _Tally | None) -> dict[str, Any]:
        first, last = one.ranges.get(origin, (None, None))
        ends = {
            name: None if at is None else self.position(at, origin) for name, at in (("first", first), ("last", last))
        }
        row = {"server": one.name, **ends, "shows": last is not None and last >= one.cut}
        if tally is None:
            there = origin in one.ranges  # listed somewhere, but in no file that lists them one by one
            nothing = None if there else 0
            return {**row, "listed": nothing, "forgets": nothing, "needed": nothing, "leaves_behind": [], "gap": None}
        gap = tally.gap(self._remember)
        return {
            **row,
            "listed": tally.count,
            "forgets": tally.forgets,
            "needed": tally.needed,
            "leaves_behind": [],
            "gap": [self.position(at, origin) for at in gap] if gap else None,
        }

    def _listed(self, one: _Server) -> dict[str, _Tally] | None:
        """What the server lists, by origin; None: no file lists it one by one."""
        pulling = self.shown.pulling
        assert pulling is not None
        source = states_of(self.case, self.shown, one.replica, "listed")
        if source is None:
            return None
        tallies: dict[str, _Tally] = {}
        told = pc.field("origin").is_valid() & pc.field("position").is_valid()
        for part in self.case.parts("listed", source):
            for batch in stream_part(part["path"], ["origin", "position"], told):
                times = pulling.times(batch["position"])
                for origin, which in _by_origin(batch["origin"]):
                    if origin not in tallies:
                        floor = min(self.seen(origin).values()) if origin in self.origins else -1
                        tallies[origin] = _Tally(floor, one.cut, self._remember)
                    tallies[origin].add(times[which])
        return tallies

    # --- tombstones

    def tombstones(self) -> Iterator[dict[str, Any]]:
        """One row for each server that shows its entries."""
        lacks: dict[str, set[str]] = {}
        for row in self.judged.missing:
            if row["operation"] == "delete" and row["suffix"] == self.replicas[0].suffix:
                lacks.setdefault(row["server"], set()).add(row["entry"])
        for one in self.servers:
            source = states_of(self.case, self.shown, one.replica)
            if source is not None:
                yield self._graves(one, source, lacks)

    def _graves(self, one: _Server, source: Input, lacks: Mapping[str, set[str]]) -> dict[str, Any]:
        kept = safe = forgets = needed = 0
        without = {other.name: 0 for other in self.servers if other is not one}
        first = pa.table({name: pa.array([], kind) for name, kind in _GRAVE.items()})
        parts = ((part, pa.array([DELETED])) for part in self.case.parts("states", source))
        for table in rows_of(parts, "kind", list(_GRAVE)):
            graves = table.select(list(_GRAVE)).cast(pa.schema(list(_GRAVE.items())))
            times, old = graves["hi"].to_numpy(), graves["hi"].to_numpy() < one.cut
            held, open_ = np.zeros(len(graves), bool), np.zeros(len(graves), bool)
            for other in self.servers:
                if other is not one:
                    beyond, forgotten = self._beyond(other, graves["origin"], times)
                    if mine := lacks.get(other.name):
                        beyond |= np.asarray(pc.is_in(graves["entry"], pa.array(sorted(mine), pa.string())))
                    without[other.name] += int((beyond & old).sum())
                    held, open_ = held | beyond, open_ | forgotten
            kept, forgets = kept + len(graves), forgets + int(old.sum())
            safe, needed = safe + int((~held & ~open_).sum()), needed + int((held & old).sum())
            first = pa.concat_tables([first, graves.filter(pa.array(held & old))])
            first = first.sort_by([(name, "ascending") for name in ("hi", "origin", "entry")]).slice(0, ITEMS_SHOWN)
        at = (
            self.shown.system.moment(self.shown.system.order_key(self.origins[0], max(0, one.cut), 0))
            if self.origins
            else None
        )
        told = not self.unsure and "missing" not in self.judged.cut()
        return {
            "server": one.name,
            "forgets_before": at.isoformat() if at else None,
            "kept": kept,
            "safe": safe if told or not safe else None,
            "forgets": forgets,
            "needed": needed,
            "lacked_by": [{"server": name, "count": count} for name, count in sorted(without.items()) if count],
            "still_needed": [
                {"position": self.position(row["hi"], row["origin"]), "entry": row["entry"]}
                for row in first.to_pylist()
            ],
        }

    def _beyond(self, other: _Server, origins: pa.ChunkedArray, times: Numbers) -> tuple[Numbers, Numbers]:
        """For each change: has the server certainly not seen it, or does nobody know?"""
        beyond, forgotten = np.zeros(len(times), bool), np.zeros(len(times), bool)
        for origin, which in _by_origin(origins.combine_chunks()):
            if origin in other.ranges:
                beyond[which] = times[which] > other.ranges[origin][1]
            else:  # it may have seen what is older than it remembers, and have forgotten it
                forgotten[which] = times[which] < other.cut
                beyond[which] = ~forgotten[which]
        return beyond, forgotten


_GRAVE: Mapping[str, pa.DataType] = {"entry": pa.string(), "origin": pa.string(), "hi": pa.int64()}


def _by_origin(origins: pa.Array) -> Iterator[tuple[str, Numbers]]:
    """Each origin with the numbers of its rows."""
    few = origins.cast(pa.string()).dictionary_encode()
    codes = np.asarray(few.indices)
    for number, origin in enumerate(few.dictionary.to_pylist()):
        yield origin, np.flatnonzero(codes == number)


class _Tally:
    """What one server lists of one origin, counted as it is read: of any number of positions only a few numbers are kept.

    A position at time 0 is no change: a newcomer is given one.
    """

    def __init__(self, floor: int, cut: int, remember: int) -> None:
        self.floor, self.cut, self.remember = floor, cut, remember
        self.count = self.below = self.forgets = self.needed = 0
        self.stays: int | None = None
        self._ends: dict[int, tuple[int, int]] = {}

    def add(self, times: Numbers) -> None:
        """Count these in."""
        times = np.sort(times[times > 0])
        if not len(times):
            return
        old = times[times < self.cut]
        self.count, self.forgets = self.count + len(times), self.forgets + len(old)
        self.below += int((times < self.floor).sum())
        self.needed += int((old > self.floor).sum())
        if len(old) < len(times):
            stays = int(times[len(old)])
            self.stays = stays if self.stays is None else min(stays, self.stays)
        # Between two positions of one stretch as long as the window no gap is longer than it.
        stretch, begin = np.unique(times // max(1, self.remember), return_index=True)
        for number, low, high in zip(stretch.tolist(), times[begin], times[[*begin[1:] - 1, -1]], strict=True):
            ends = self._ends.get(number, (int(low), int(high)))
            self._ends[number] = min(ends[0], int(low)), max(ends[1], int(high))

    def gap(self, longer_than: int) -> tuple[int, int] | None:
        """Where the longest gap begins and ends, if it is longer than that."""
        ends = [self._ends[number] for number in sorted(self._ends)]
        gaps = [(after[0] - before[1], before[1], after[0]) for before, after in pairwise(ends)]
        longest = max(gaps, key=lambda one: one[0], default=(0, 0, 0))
        return longest[1:] if longest[0] > longer_than else None


def unsure_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Why no floor of these is certain: reason -> who."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for one in row["unsure"]:
            names = found.setdefault(one["why"], [])
            if one["who"] not in names:
                names.append(one["who"])
    return found
