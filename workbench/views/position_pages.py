"""What servers list, a page at a time: the positions of their vectors, with the entries behind each, and tombstones.

Of systems whose servers keep no log of changes. A page is read when it is asked for: of any number of rows no more are held
than it shows, and those of the part of a table that is being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.entry_names import names_of
from workbench.diagnosis.incident import Incident
from workbench.engine.selective_read import groups_that, rows_of
from workbench.engine.states import CREATED, DELETED, states_of_named
from workbench.intake.inputs import Input
from workbench.model import Problem
from workbench.replication.entry.diagnosis.state_comparison import now_at, ranges_of, states_of
from workbench.replication.entry.rules.entries import Pulling, Ranges, held
from workbench.topology.history import moment_of
from workbench.topology.topology import Replica
from workbench.views.entry_ranges import must_pull
from workbench.views.verdict_style import MISSING, NOTHING, PENDING, PRESENT, UNKNOWN

PAGE = 20

_ENTRIES = 5
"""Entries that are named of one change at one server: one change may have made them all."""


class PageQuery(NamedTuple):
    """What is to be shown: one suffix or domain, and of that one origin, one server, some time. None, empty: all."""

    suffix: str | None = None
    origin: str | None = None
    server: str | None = None
    since: str = ""
    until: str = ""


class _Shown(NamedTuple):
    """One server that is looked at."""

    replica: Replica
    ranges: Ranges
    cut: int
    lists: Input | None
    shows: Input | None


def _servers(incident: Incident, suffix: str | None) -> list[_Shown]:
    must_pull(incident)
    case, shown, pulling = incident.then, incident.topology, _pulling(incident)
    found = []
    for one in shown.replicas:
        if one.suffix == suffix:
            cut = now_at(case, shown, one) - pulling.remember
            files = (states_of(case, shown, one, table) for table in ("listed", "states"))
            found.append(_Shown(one, ranges_of(shown, one), cut, *files))
    return found


def _pulling(incident: Incident) -> Pulling:
    assert incident.topology.pulling is not None
    return incident.topology.pulling


def _times(incident: Incident, asked: PageQuery) -> tuple[int, int]:
    """From which time, included, up to which."""
    low, high = (incident.system.instant(moment_of(one)) if one else None for one in (asked.since, asked.until))
    if low is not None and high is not None and low >= high:
        raise Problem("the time ends before it begins", f"{asked.since} to {asked.until}", "give a later end")
    return low if low is not None else 0, high if high is not None else np.iinfo(np.int64).max


# --- positions


def positions_page(incident: Incident, asked: PageQuery, after: str | None = None, size: int = PAGE) -> dict[str, Any]:
    """The next listed positions behind `after` (None: from the first one on), each with the entries that carry it where.

    Keys: servers (the names of the columns), rows (position, at, origin, made_on, anchor, cells), more (there are others
    behind), listed (some file lists positions at all). A cell: listed, verdict, says, count (entries), entries (entry, target,
    attributes), more. No entry anywhere carries an anchor: a mark that its server lived, or a change that later ones replaced.
    """
    servers = [one for one in _servers(incident, asked.suffix) if asked.server in (None, one.replica.server)]
    files = [one.lists for one in servers if one.lists]
    keys = _next_positions(incident, files, asked, after, size + 1)
    more, keys = len(keys) > size, keys[:size]
    return {
        "servers": [one.replica.server for one in servers],
        "listed": bool(files),
        "rows": _position_rows(incident, servers, asked, keys),
        "more": more,
    }


def _next_positions(
    incident: Incident, files: Iterable[Input], asked: PageQuery, after: str | None, count: int
) -> list[str]:
    """The order keys of the first positions behind one, of all files together."""
    low, high = _times(incident, asked)
    where = pc.field("position").is_valid() & pc.field("origin").is_valid()
    if asked.origin is not None:
        where &= pc.field("origin") == asked.origin
    if after is not None:
        where &= pc.field("position") > after
    first = pa.array([], pa.string())

    def may_hold(lowest: str, highest: str) -> bool:
        full = len(first) == count
        return (after is None or highest > after) and not (full and lowest > first[-1].as_py())

    for one in files:
        for part in incident.then.parts("listed", one):
            # Servers list them in their order, so that all but a few groups of rows are passed over.
            for table in groups_that(part, "position", may_hold, ["position", "origin"]):
                positions = table.filter(where)["position"].combine_chunks().cast(pa.string())
                times = _pulling(incident).times(positions)
                positions = positions.filter(pa.array((times >= low) & (times < high)))
                first = pc.unique(pa.concat_arrays([first, positions]))
                first = first.take(pc.sort_indices(first)[:count])
    found: list[str] = first.to_pylist()
    return found


def _position_rows(
    incident: Incident, servers: Sequence[_Shown], asked: PageQuery, keys: Sequence[str]
) -> list[dict[str, Any]]:
    system = incident.system
    cids = [(system.halves(key)[0], system.origin_of(key)) for key in keys]
    listed = [_listing(incident, one.lists, keys) for one in servers]
    # Of servers that are not asked for the entries count, too: a change that another one shows is no anchor.
    others = [
        one for one in _servers(incident, asked.suffix) if one.replica.server not in {s.replica.server for s in servers}
    ]
    carried = [_carried(incident, one.shows, cids) for one in (*servers, *others)]
    names = names_of(
        incident.then,
        [one.shows for one in (*servers, *others) if one.shows],
        {entry for of in carried for _, some in of.values() for entry in some},
    )
    makers = {one.replica.origin: one.replica.server for one in (*servers, *others) if one.replica.origin}
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in incident.found["missing"]:
        if row["suffix"] == asked.suffix:
            what = f"{row['target']} ({row['attribute'] or row['operation']})"
            lacking.setdefault((row["server"], row["position"]), []).append(what)
    rows = []
    for key, cid in zip(keys, cids, strict=True):
        anchor = any(one.shows for one in servers) and not any(cid in of for of in carried)
        cells = [
            _position_cell(one, cid, key in listed[at], anchor, carried[at].get(cid, (0, {})), names)
            for at, one in enumerate(servers)
        ]
        for one, cell in zip(servers, cells, strict=True):
            if lost := lacking.get((one.replica.server, system.show(key))):
                cell |= {"verdict": MISSING, "says": f"lacks it: {', '.join(lost)}"}
        rows.append(
            {
                "position": system.show(key),
                "key": key,
                "at": incident.when(system.show(key)),
                "origin": cid[1],
                "made_on": makers.get(cid[1]),
                "anchor": anchor,
                "cells": cells,
            }
        )
    return rows


def _listing(incident: Incident, one: Input | None, keys: Sequence[str]) -> set[str]:
    """Which of the positions the file lists."""
    found: set[str] = set()
    wanted = pa.array(keys, pa.string())

    def may_hold(lowest: str, highest: str) -> bool:
        return lowest <= keys[-1] and keys[0] <= highest

    for part in incident.then.parts("listed", one) if one and keys else ():
        for table in groups_that(part, "position", may_hold, ["position"]):
            found.update(table.filter(pc.field("position").isin(wanted))["position"].to_pylist())
    return found


def _carried(
    incident: Incident, one: Input | None, cids: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], tuple[int, dict[str, list[str]]]]:
    """Time and origin -> how many entries of the server carry the change, and the first few: entry -> what changed."""
    found: dict[tuple[int, str], tuple[int, dict[str, list[str]]]] = {}
    wanted = pa.array([time for time, _ in cids], pa.int64())
    parts = incident.then.parts("states", one) if one and cids else []
    for table in rows_of(((part, wanted) for part in parts), "hi", ["origin", "entry", "kind", "attribute"]):
        for time, origin in cids:
            rows = table.filter((pc.field("hi") == time) & (pc.field("origin") == origin))
            if len(rows):
                entries = pc.unique(rows["entry"].combine_chunks().cast(pa.string()))
                count, kept = found.get((time, origin), (0, {}))
                named = sorted([*kept, *entries.take(pc.sort_indices(entries)[:_ENTRIES]).to_pylist()])[:_ENTRIES]
                few = rows.filter(pc.field("entry").isin(pa.array(named, pa.string()))).to_pylist()
                changed = {entry: kept.get(entry, []) for entry in named}
                for row in few:
                    changed[row["entry"]].append(row["attribute"] or _WHOLE.get(row["kind"], row["kind"]))
                found[time, origin] = count + len(entries), changed
    return found


_WHOLE = {CREATED: "created", DELETED: "deleted"}


def _position_cell(
    one: _Shown,
    cid: tuple[int, str],
    listed: bool,
    anchor: bool,
    carried: tuple[int, Mapping[str, Sequence[str]]],
    names: Mapping[str, str],
) -> dict[str, Any]:
    count, entries = carried
    covered = cid[1] in one.ranges and cid[0] <= one.ranges[cid[1]][1]
    if count:
        verdict, says = PRESENT, ""
    elif listed or covered:
        verdict = PRESENT if listed else NOTHING
        says = "an anchor" if anchor else "later changes stand there" if one.shows else "its entries were not collected"
    else:
        verdict, says = (PENDING, "has not seen it") if one.replica.claims else (UNKNOWN, "no vector was collected")
    return {
        "listed": listed,
        "verdict": verdict,
        "says": says if listed or not covered else f"not listed{f'; {says}' if says else ''}",
        "count": count,
        "entries": [
            {"entry": entry, "target": names.get(entry), "attributes": ", ".join(sorted(set(some)))}
            for entry, some in sorted(entries.items())
        ],
        "more": count - len(entries),
    }


# --- tombstones


def tombstones_page(
    incident: Incident, asked: PageQuery, after: Sequence[Any] | None = None, size: int = PAGE
) -> dict[str, Any]:
    """The next tombstones behind `after` (time, origin, entry; None: from the oldest on), of all servers together.

    Keys: servers, rows (entry, target, position, at, origin, made_on, reapable, held_by, design, cells, mark), more. A cell of
    each server: what it shows of the entry, with a verdict; `reapable`: who forgets the tombstone at its next purge, by age;
    `held_by`: who is without it; `design`: whom the design note would keep it for. `mark` is where the next page begins.
    """
    servers = _servers(incident, asked.suffix)
    files = [one.shows for one in servers if one.shows and asked.server in (None, one.replica.server)]
    marks = _next_graves(incident, files, asked, after, size + 1)
    more, marks = len(marks) > size, marks[:size]
    return {
        "servers": [one.replica.server for one in servers],
        "shown": bool(files),
        "rows": list(_grave_rows(incident, servers, marks)),
        "more": more,
    }


_GRAVE = {"hi": pa.int64(), "origin": pa.string(), "entry": pa.string()}
_ORDER: list[tuple[str, str]] = [(name, "ascending") for name in _GRAVE]


def _next_graves(
    incident: Incident, files: Iterable[Input], asked: PageQuery, after: Sequence[Any] | None, count: int
) -> list[tuple[int, str, str]]:
    """Time, origin and entry of the first tombstones behind one, of all files together."""
    low, high = _times(incident, asked)
    where = (pc.field("hi") >= low) & (pc.field("hi") < high)
    if asked.origin is not None:
        where &= pc.field("origin") == asked.origin
    if after is not None:
        time, origin, entry = after
        later = (pc.field("origin") > origin) | ((pc.field("origin") == origin) & (pc.field("entry") > entry))
        where &= (pc.field("hi") > time) | ((pc.field("hi") == time) & later)
    first = pa.table({name: pa.array([], kind) for name, kind in _GRAVE.items()})
    for one in files:
        parts = ((part, pa.array([DELETED])) for part in incident.then.parts("states", one))
        for table in rows_of(parts, "kind", list(_GRAVE)):
            plain = table.select(list(_GRAVE)).cast(first.schema).filter(where)
            first = pa.concat_tables([first, plain]).group_by(list(_GRAVE)).aggregate([])
            first = first.select(list(_GRAVE)).sort_by(_ORDER).slice(0, count)
    return [(row["hi"], row["origin"], row["entry"]) for row in first.to_pylist()]


def _grave_rows(
    incident: Incident, servers: Sequence[_Shown], marks: Sequence[tuple[int, str, str]]
) -> Iterator[dict[str, Any]]:
    entries = sorted({entry for _, _, entry in marks})
    stand = [_standing(incident, one.shows, entries) for one in servers]
    names = names_of(incident.then, [one.shows for one in servers if one.shows], entries)
    makers = {one.replica.origin: one.replica.server for one in servers if one.replica.origin}
    vectors = {one.replica.server: one.ranges if one.replica.claims else None for one in servers}
    for time, origin, entry in marks:
        position = incident.system.show(incident.system.order_key(origin, time, 0))
        cells = [_grave_cell(one, (time, origin), stand[at].get(entry)) for at, one in enumerate(servers)]
        told = list(zip(servers, cells, strict=True))
        yield {
            "entry": entry,
            "target": names.get(entry),
            "position": position,
            "at": incident.when(position),
            "origin": origin,
            "made_on": makers.get(origin),
            "mark": [time, origin, entry],
            "cells": cells,
            "reapable": [one.replica.server for one, cell in told if cell["kept"] and time < one.cut],
            "held_by": [one.replica.server for one, cell in told if cell["verdict"] in (MISSING, PENDING)],
            "design": held((time, origin), vectors).replicas,
        }


def _standing(incident: Incident, one: Input | None, entries: Sequence[str]) -> dict[str, tuple[str, int, str]]:
    """Entry -> created or deleted, when and by whom, as the server shows it."""
    if one is None:
        return {}
    rows = (
        states_of_named(incident.then.parts("states", one), entries, ["entry", "kind", "hi", "origin"])
        if entries
        else None
    )
    return {
        row["entry"]: (row["kind"], row["hi"], row["origin"])
        for row in (rows.to_pylist() if rows is not None else ())
        if row["kind"] in (CREATED, DELETED)
    }


def _grave_cell(one: _Shown, cid: tuple[int, str], stands: tuple[str, int, str] | None) -> dict[str, Any]:
    """What one server shows of a deleted entry."""
    time, origin = cid
    covered = origin in one.ranges and time <= one.ranges[origin][1]
    if stands is not None and stands[0] == DELETED:
        return {"verdict": PRESENT, "says": "keeps it", "kept": True}
    if stands is not None and covered:
        return {"verdict": MISSING, "says": "claims it, and shows the entry", "kept": False}
    if covered:
        return {"verdict": PRESENT, "says": "has seen it" if one.shows else "claims it", "kept": False}
    if not one.replica.claims:
        return {"verdict": UNKNOWN, "says": "no vector was collected", "kept": False}
    if origin not in one.ranges and time < one.cut and stands is None:
        return {"verdict": UNKNOWN, "says": "forgotten, or never seen", "kept": False}
    return {"verdict": PENDING, "says": "has not seen it", "kept": False}
