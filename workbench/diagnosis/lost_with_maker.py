"""Changes that servers wait for, and that went with the old data of their maker before any other server got them.

c made 4 changes while its links were off, was restored from a backup, and made another one:

    a    waits for 5 changes of c: 4 that no server has any more, and 1 that is still to come
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.diagnosis.data_sources import JudgedServer, names_of
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.position_index import HIGHEST, LOWEST, Pair, PositionIndex, Span
from workbench.engine.positions import NONE, Positions, union
from workbench.rules.verdicts import REPLACED, TOTAL, Reset
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import CLOCKS_DIFFER, Evidence, last_line_at

MOST = 10_000
"""Changes of one maker that are looked into."""

Has = Callable[[JudgedServer, Positions], Numbers]
Described = Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]]


def note_lost(
    found: Verdicts,
    servers: Sequence[JudgedServer],
    evidence: Evidence,
    known: PositionIndex,
    has: Has,
    described: Described,
) -> None:
    """Add such changes to `found.lost`, and to each row of what waits how many of its changes they are.

    A server made them as the origin that it is, or as one that it was before.
    """
    system, suffix = known.system, evidence.suffix
    mine = [row for row in found.pending if row["suffix"] == suffix and row["server"] in names_of(servers)]
    for row in mine:
        row["lost"] = 0
    for maker, origin in ((one, origin) for one in servers for origin in evidence.origins_of(one.replica)):
        resets = [one for one in maker.resets if one.sure and one.kind in (TOTAL, REPLACED)]
        waits = [row for row in mine if row["origin"] == origin]
        if not resets or not waits:
            continue
        begin = min(system.halves(system.typed(row["first"]) or "") for row in waits)
        # While data come, it takes no change: what was made in the second in which that began, was made before.
        before = Span((begin[0], begin[1] - 1), (system.instant(max(one.ended for one in resets)), -1))
        ahead = _ahead_of_time(evidence, maker, origin)
        if sum(known.tally(origin, span)[0] for span in (before, ahead) if not span.empty) > MOST:
            continue
        some = union(part for span in (before, ahead) if not span.empty for part in known.chunks(origin, span))
        for one in servers:
            # What it had got when it was read once more at the end, it has.
            seen = max(one.seen.get(origin, ""), one.replica.later.get(origin, ""))
            # By the clock of its log the maker made what is of ahead of time behind the replacement, and would have it still.
            gone = some.within(ahead.of(some)) if one is maker else np.zeros(len(some), bool)
            if one is maker:
                gone |= some.within(_not_in_its_data(known, maker, origin, resets).of(some))
            some = some[gone | ~_may_have(one, some, origin, has, _place(known, seen))] if len(some) else some
        keys = some.keys(system, known.names)
        about = described(keys)
        for key in keys:
            told = about.get(key, {})
            found.lost.append(
                {
                    "server": maker.replica.server,
                    "suffix": suffix,
                    "origin": origin,
                    "position": system.show(key),
                    "operation": told.get("operation"),
                    "target": told.get("target"),
                }
            )
        shown = [system.show(key) for key in keys]
        for row in waits:
            row["lost"] = min(sum(row["first"] <= position <= row["last"] for position in shown), row["count"])


def _ahead_of_time(evidence: Evidence, maker: JudgedServer, origin: str) -> Span:
    """The changes of a maker whose positions are of later than its reading, where its clock is right and what it claims is older.

    Its clock was ahead when it made them, and its data were replaced since: data that had them would claim them.
    None of them where nothing tells when it was read, or its clock may still be ahead: then they may have been made since.
    """
    system, server = evidence.system, maker.replica.server
    read = next((one.ended for one in evidence.shown.readings if one.server == server), None)
    latest = last_line_at(evidence.case, evidence.shown.snapshot, server) if read else None
    top = max(maker.seen.get(origin, ""), maker.replica.later.get(origin, ""))
    made = system.moment(top) if top else None
    if read is None or latest is None or made is None or max(latest, made) > read + CLOCKS_DIFFER:
        return Span(LOWEST, LOWEST)
    return Span((system.instant(read + CLOCKS_DIFFER), -1), HIGHEST)


def _not_in_its_data(known: PositionIndex, maker: JudgedServer, origin: str, resets: Sequence[Reset]) -> Span:
    """The changes of a maker behind what came with its present data, made before these came: whatever it claims by now.

    made 1 to 9, its data came from a file of the time of 5, and it made 10: its vector covers 6 to 9, and its data lack them
    """
    last, mark = max(resets, key=lambda one: one.ended), maker.marks.get(origin)
    made = known.system.moment(mark) if mark else None
    if mark is None or made is None or made > last.ended or last is not max(maker.resets, key=lambda one: one.ended):
        return Span(LOWEST, LOWEST)
    return Span(_place(known, mark), (known.system.instant(last.ended), -1))


def _place(known: PositionIndex, position: str) -> Pair:
    return known.system.halves(position) if position else LOWEST


def _may_have(server: JudgedServer, some: Positions, origin: str, has: Has, seen: Pair) -> Numbers:
    """For each change: is it shown that the server has it, or is it covered by its vector and not known to be missing?"""
    covered: Numbers = (some.hi < seen[0]) | ((some.hi == seen[0]) & (some.lo <= seen[1]))
    missed = some.within(server.missing.get(origin, NONE))
    return np.asarray(has(server, some) | (covered & ~missed), bool)
