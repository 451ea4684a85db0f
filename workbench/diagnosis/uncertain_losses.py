"""Lost changes of which nothing tells whether anything of them is lacking: they were made again since, or written over.

b made 79 changes that no other server has, and was initialised; somebody writes what was saved of them on a
    no log holds the 79, and the access log of a shows the same operations on the same entries, later     they are not MISSING

b modified an entry, and its old data came back; only its access log names the change
    the entry shows that later changes replaced values of it: perhaps those                               it is not MISSING
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.changes_thrown_away import named_in
from workbench.diagnosis.data_sources import names_of
from workbench.diagnosis.deleted_since import without_entry
from workbench.diagnosis.lost_with_maker import MOST
from workbench.diagnosis.repeated_deletions import with_repeats
from workbench.diagnosis.unlogged_changes import BY_SILENCE, Unlogged, perhaps_replaced
from workbench.engine.position_index import PositionIndex, Span
from workbench.engine.positions import of_keys
from workbench.model import ITEMS_SHOWN, Finding, counted, ends, step
from workbench.rules.contents import name_of
from workbench.rules.verdicts import MISSING, MOMENTS_APART, PRESENT, REPLACED, SAYS, TOTAL, UNKNOWN, Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.contents import Contents
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.diagnosis.pending_changes import Waiting
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.model import System
    from workbench.topology.suffix_evidence import Evidence

MADE_AGAIN, WRITTEN_SINCE = "made_again", "written_since"
"""Why it is not known whether anything of such a change is lacking."""

_AT_ONCE = timedelta(seconds=60)
"""Within such a time what was saved is written once more."""

_COLUMNS = ("position", "operation", "target")


def note_unsure(
    found: Verdicts, contents: Contents, servers: Sequence[JudgedServer], known: PositionIndex, waits: Waiting
) -> None:
    """Move such changes of these servers from what is missing, or waits, to what is unknown.

    Where the list of missing changes was cut, everything stays as it is.
    """
    evidence = contents.evidence
    if "missing" in found.cut():
        return
    names = names_of(servers)
    missing = [
        row for row in found.missing if row["suffix"] == evidence.suffix and row["server"] in names and row["target"]
    ]
    waiting = _waiting(found, evidence, servers, known, waits)
    mine = [*missing, *(row for rows in waiting.values() for row in rows)]
    lacking: dict[str, set[str]] = {}
    for row in mine:
        lacking.setdefault(row["position"], set()).add(row["server"])
    for row in found.unknown:  # of such a server nothing is known, whatever it took once
        if row["suffix"] == evidence.suffix:
            for position, some in lacking.items():
                if row["from"] <= position <= row["to"]:
                    some.add(row["server"])
    gone = [
        row
        for row in mine
        if not row["held_by"] and not _on_another(found, evidence, row, lacking[row["position"]], names)
    ]
    lost = {row["position"]: (row["operation"], row["target"]) for row in gone}
    again = _again(evidence, lost, _with_data(servers)) | _there_again(contents, lost) if gone else set()
    unheld = [row for row in missing if not row["held_by"]]
    unsure = dict.fromkeys(perhaps_replaced(contents, unheld, BY_SILENCE), WRITTEN_SINCE)
    unsure |= dict.fromkeys(again, MADE_AGAIN)
    stretches: dict[tuple[str, str, str], list[str]] = {}
    for row in gone:
        if why := unsure.get(row["position"]):
            stretches.setdefault((row["server"], row["origin"], why), []).append(row["position"])
    moved = {id(row) for row in gone if row["position"] in unsure}
    for number, rows in waiting.items():
        _take_out(found.pending[number], {row["position"] for row in rows if id(row) in moved}, evidence, known, waits)
    found.pending[:] = [row for row in found.pending if row["count"]]
    found.lost[:] = [row for row in found.lost if row["position"] not in unsure or row["suffix"] != evidence.suffix]
    found.unsure |= {(evidence.suffix, position): why for position, why in unsure.items()}
    found.totals["missing"] -= sum(id(row) in moved for row in missing)
    found.written_over += [row for row in missing if unsure.get(row["position"]) == WRITTEN_SINCE and id(row) in moved]
    found.missing[:] = [row for row in found.missing if id(row) not in moved]
    found.totals["unknown"] += len(stretches)
    found.unknown += [
        {"server": server, "suffix": evidence.suffix, "origin": origin, "count": len(some), "why": why}
        | {"from": min(some), "to": max(some)}
        for (server, origin, why), some in stretches.items()
    ]


def _waiting(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], known: PositionIndex, waits: Waiting
) -> dict[int, list[dict[str, Any]]]:
    """Number of a row of what waits -> what of it no log has and an access log names, as rows like those of what is missing."""
    system, rows = evidence.system, dict[int, list[dict[str, Any]]]()
    logs, names = [known.sources[one.source] for one in servers if one.source is not None], names_of(servers)
    for number, row in enumerate(found.pending):
        if (
            row["suffix"] != evidence.suffix
            or row["server"] not in names
            or row["count"] <= row["available"]
            or row["count"] > MOST
        ):
            continue
        some = waits.counted(row["server"], row["origin"], _span(system, row))
        for log in logs:
            some = some[~log.contains(some)] if len(some) else some
        about = {key: told for key, told in evidence.described(some, ()).items() if told["target"]} if len(some) else {}
        who = {"server": row["server"], "suffix": row["suffix"], "origin": row["origin"], "held_by": []}
        rows[number] = [{**who, **told, "position": system.show(key)} for key, told in sorted(about.items())]
    return rows


def _span(system: System, row: Mapping[str, Any]) -> Span:
    low, high = (system.halves(system.typed(row[end]) or "") for end in ("first", "last"))
    return Span((low[0], low[1] - 1), high)


def _take_out(
    row: dict[str, Any], some: Collection[str], evidence: Evidence, known: PositionIndex, waits: Waiting
) -> None:
    """Take changes that no log has out of a row of what waits."""
    if not some:
        return
    system = evidence.system
    row["count"] -= len(some)
    row["gone"] = max(row["gone"] - len(some), 0)
    row["lost"] = max((row.get("lost") or 0) - len(some), 0)
    counted = waits.counted(row["server"], row["origin"], _span(system, row))
    keys = map(system.show, counted.keys(system, known.names))
    if left := [key for key in keys if key not in some]:
        row["first"] = min(left) if row["first"] in some else row["first"]
        row["last"] = max(left) if row["last"] in some else row["last"]


def softened(
    evidence: Evidence,
    position: str,
    judge: Callable[[str], Mapping[str, Verdict]],
    servers: Sequence[JudgedServer],
    unsure: Callable[[], Mapping[tuple[str | None, str], str]],
) -> list[Verdict]:
    """The verdicts of all servers on one change, with those that it is missing as unknown where nothing tells of it.

    judge   the verdict of each server on a change, by what logs and entries tell of that one alone
    unsure  suffix and position of all changes of which nothing tells, and why: takes long
    """
    system, by_server = evidence.system, judge(position)
    told = [by_server[one.replica.server] for one in servers]
    told = with_repeats(evidence, position, without_entry(evidence, position, told, servers, judge))
    if all(one.verdict != MISSING for one in told) or any(one.verdict == PRESENT for one in told):
        return [*told]
    about = evidence.described(of_keys(system, [position], evidence.numbers), evidence.inputs).get(position, {})
    what, target = about.get("operation"), about.get("target")
    shown = system.show(position)
    why = MADE_AGAIN if what and target and _again(evidence, {shown: (what, target)}, {}) else ""
    if not why and what == "modify":
        why = unsure().get((evidence.suffix, shown), "")
    return [
        one._replace(verdict=UNKNOWN, rule=why, says=SAYS[why]) if why and one.verdict == MISSING else one
        for one in told
    ]


def _on_another(
    found: Verdicts, evidence: Evidence, row: Mapping[str, Any], lacking: Collection[str], servers: set[str]
) -> bool:
    """True if the access log of a server that does not lack the change shows that it took it, into the data that it has now."""
    position = evidence.system.typed(row["position"]) or ""
    for server in servers - {*lacking}:
        ends = [
            one.ended
            for one in found.resets.get((server, row["suffix"]), ())
            if one.sure and one.kind in (TOTAL, REPLACED)
        ]
        where = (pc.field("position") == position) & (pc.field("outcome") == "applied")
        where = where & (pc.field("at") > max(ends)) if ends else where
        if ends and (read := evidence.began.get(server)):  # a time to come was told by a clock that was ahead
            where &= pc.field("at") < read + MOMENTS_APART
        if len(evidence.told("applied", ["position"], where, server)):
            return True
    return False


def _with_data(servers: Sequence[JudgedServer]) -> dict[str, list[datetime]]:
    """Origin -> when the data of its maker were replaced: what it had made before that went together."""
    return {
        one.replica.origin: sorted(reset.ended for reset in one.resets if reset.kind in (TOTAL, REPLACED))
        for one in servers
        if one.replica.origin
    }


def _there_again(contents: Contents, lost: Mapping[str, tuple[str, str]]) -> set[str]:
    """Those of some lost additions that were made by a clock far ahead, and whose entry was added under another position.

    Positions do not tell which of the two was later, so the entry has to be there now.
    """
    evidence, read = contents.evidence, max(contents.evidence.began.values(), default=None)
    moment, typed = evidence.system.moment, evidence.system.typed
    ahead = {
        position: target
        for position, (what, target) in lost.items()
        if what == "add" and read and (made := moment(typed(position) or "")) and made - read > MOMENTS_APART
    }
    if not ahead:
        return set()
    live = Unlogged(contents).live({name_of(target) for target in ahead.values()})
    targets = pa.array(sorted({target.lower() for target in ahead.values()}), pa.string())
    added = pc.utf8_lower(pc.field("target")).isin(targets) & (pc.field("outcome") == "applied")
    added &= (pc.field("operation") == "add") & pc.field("position").is_valid()
    added &= ~pc.field("position").isin(pa.array(sorted(filter(None, map(typed, ahead))), pa.string()))
    done = {target.lower() for target in evidence.told("applied", ["target"], added)["target"].to_pylist()}
    return {position for position, target in ahead.items() if name_of(target) in live and target.lower() in done}


def _again(
    evidence: Evidence, lost: Mapping[str, tuple[str, str]], replaced: Mapping[str, Sequence[datetime]]
) -> set[str]:
    """Those of some lost changes, position -> (operation, target), that were done again under another position.

    A later modification of an entry that was there all the time may be any other one. It is one of these, as far as anybody can
    tell, where all the entries were added again that were lost with it, and it came with them or later.
    """
    system = evidence.system
    targets = pa.array(sorted({target.lower() for _, target in lost.values()}), pa.string())
    keys = pa.array(sorted(filter(None, map(system.typed, lost))), pa.string())
    done = pc.utf8_lower(pc.field("target")).isin(targets) & (pc.field("outcome") == "applied")
    done &= pc.field("position").is_valid() & ~pc.field("position").isin(keys)
    rows = evidence.told("applied", _COLUMNS, done).group_by(["operation", "target"]).aggregate([("position", "max")])
    latest: dict[tuple[str, str], str] = {}
    for row in rows.to_pylist():
        about = row["operation"], row["target"].lower()
        latest[about] = max(latest.get(about, ""), row["position_max"])
    again = {
        position
        for position, (what, target) in lost.items()
        if min(latest.get((what, target.lower()), ""), latest.get(("add", target.lower()), ""))
        > (system.typed(position) or "")
    }
    for mine in _lost_together(system, lost, again, replaced):
        added = {position: lost[position][1].lower() for position in mine if lost[position][0] == "add"}
        if added and added.keys() <= again:
            first = min(latest["add", target] for target in added.values())
            modified = {position for position in mine if lost[position][0] == "modify"}
            again |= {
                at for at in modified if _came_with(system, latest.get(("modify", lost[at][1].lower()), ""), first)
            }
    return again


def _came_with(system: System, position: str, first: str) -> bool:
    """True if a change was made with the first addition of those that were made again, or later.

    What was saved is written in its old order: modifications that stood before the first addition come before it again.
    """
    made, begun = system.moment(position) if position else None, system.moment(first)
    return bool(position) and (position >= first or bool(made and begun and begun - made <= _AT_ONCE))


def _lost_together(
    system: System,
    lost: Mapping[str, tuple[str, str]],
    again: Collection[str],
    replaced: Mapping[str, Sequence[datetime]],
) -> Iterator[list[str]]:
    """The positions that went with one replacement of their maker's data, in their order.

    Where it is not known when that was, as of a maker that is down, an addition that was not made again ends what went together.
    """
    together: dict[tuple[str, int], list[str]] = {}
    for position in sorted(lost):
        if made := system.moment(position):
            origin = system.origin_of(position)
            together.setdefault((origin, bisect_left(replaced.get(origin, ()), made)), []).append(position)
    for (origin, _), mine in together.items():
        if origin in replaced:
            yield mine
            continue
        for ends_here, run in groupby(mine, lambda at: lost[at][0] == "add" and at not in again):
            if not ends_here:
                yield [*run]


def perhaps_made_again(context: DetectorContext) -> Iterator[Finding]:
    """Lost changes that were made again since, as a repair advises: why they count as unknown."""
    system = context.topology.system
    changes: dict[tuple[str | None, str], list[str]] = {}
    for (suffix, position), why in context.verdicts.unsure.items():
        if why == MADE_AGAIN:
            changes.setdefault((suffix, system.origin_of(system.typed(position) or "")), []).append(position)
    for (suffix, origin), some in changes.items():
        some.sort()
        are, they = ("is", "it") if len(some) == 1 else ("are", "they")
        yield Finding(
            "PERHAPS_MADE_AGAIN",
            "info",
            f"{counted(len(some))} of origin {origin}, {ends(some[0], some[-1])}, {are} in no collected changelog, and the "
            f"same operations were done on the same entries later: no collected file tells whether these did what {they} did",
            origin=origin,
            suffix=suffix,
            items=tuple(some[:ITEMS_SHOWN]),
        )


def perhaps_written_over(context: DetectorContext) -> Iterator[Finding]:
    """Lost changes behind which values of their entries were replaced, where nothing tells what took them away."""
    gone = named_in(context.thrown_away)
    changes: dict[tuple[str | None, str], set[str]] = {}
    for row in context.verdicts.written_over:
        if (row["suffix"], row["position"]) not in gone:
            changes.setdefault((row["suffix"], row["origin"]), set()).add(row["position"])
    for (suffix, origin), some in changes.items():
        count, items = counted(len(some)), sorted(some)
        yield Finding(
            "PERHAPS_WRITTEN_OVER",
            "info",
            f"only logs of operations name {count} of origin {origin} any more, {ends(items[0], items[-1])}, and later "
            f"ones replaced values of the same {'entry' if len(some) == 1 else 'entries'}: no collected file tells whether "
            f"anything of {'it' if len(some) == 1 else 'them'} is lacking",
            origin=origin,
            suffix=suffix,
            items=tuple(items[:ITEMS_SHOWN]),
            fix=(
                step(
                    "look them up (`workbench explain POSITION`), and ask whoever made them whether the entries are as they were "
                    "meant to be",
                    "the logs that name them do not show which attributes they wrote",
                    "a log or changelog that was collected earlier may show it: load it into the same case",
                ),
            ),
        )
