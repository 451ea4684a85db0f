"""The finding CHANGES_THROWN_AWAY: changes that no collected server holds any more, for the data of their maker were replaced.

a made changes while nobody fetched them, then b initialised a      the changes went with the old data of a
a made another change                                               all vectors cover the earlier ones: nobody asks for them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.former_suppliers import origins_of
from workbench.diagnosis.initialisations import initialisations
from workbench.diagnosis.unlogged_changes import BY_SILENCE, NEVER_CAME, perhaps_replaced
from workbench.engine.positions import of_keys
from workbench.model import ITEMS_SHOWN, Finding, counted, ends, first_few, step
from workbench.rules.vectors import last
from workbench.rules.verdicts import REPLACED, TOTAL, Reset

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.entry.diagnosis.earlier_states import GoneChange
    from workbench.topology.topology import Replica

Row = dict[str, Any]

THROWN_AWAY = "CHANGES_THROWN_AWAY"


@dataclass(frozen=True)
class ThrownAway:
    """Changes of one server that went with its old data.

    maker    the server that made them, and the origin as which it did: that of now, or one that it had before
    reset    what replaced its data afterwards
    source   the server that its data came from whole then; None: from a backup or a file, or nothing tells which it was
    changes  one row of the missing changes for each of them, in the order of their positions
    """

    maker: Replica
    origin: str
    reset: Reset
    source: str | None
    changes: Sequence[Row]


def thrown_away(context: DetectorContext) -> list[ThrownAway]:
    """What is missing on each server that covers it, or waited for, and that its maker made before its data were replaced.

    Each row of what waits is told how many of its changes these are (`lost`).
    """
    found = [
        one
        for maker in (context.topology.replicas if not context.topology.pulling else ())
        for origin in origins_of(context, maker)
        for one in _thrown_away_of(context, maker, origin)
    ]
    _note_waiting(context, found)
    return found


def _thrown_away_of(context: DetectorContext, maker: Replica, origin: str) -> Iterator[ThrownAway]:
    """What a server made as this origin, by what replaced it."""
    resets = [
        reset
        for reset in context.verdicts.resets.get((maker.server, maker.suffix), ())
        if reset.kind in (TOTAL, REPLACED) and reset.sure
    ]
    if not resets:
        return
    lacking: dict[str, set[str]] = {}
    rows: dict[str, Row] = {}
    for row in (*context.verdicts.missing, *context.verdicts.written_over):
        if (row["suffix"], row["origin"]) == (maker.suffix, origin) and not row["held_by"]:
            lacking.setdefault(row["position"], set()).add(row["server"])
            rows.setdefault(row["position"], row)
    of_reset: dict[Reset, list[Row]] = {}
    carried = {
        one.server: kept_by_entries(context, maker.suffix, origin, one.server, rows)
        for one in context.topology.replicas
        if one.suffix == maker.suffix
    }
    for position in sorted(rows.keys() - (carried[maker.server] or set())):
        made = context.topology.system.moment(position)
        reset = next((one for one in resets if made and made < _until(one)), None)
        none = {server for server, kept in carried.items() if kept is not None and position not in kept}
        if reset and _nowhere(context, maker, reset, position, lacking[position], none):
            of_reset.setdefault(reset, []).append(rows[position])
    for row in context.verdicts.lost:
        mine = (row["suffix"], row["server"], row["origin"]) == (maker.suffix, maker.server, origin)
        if mine and row["position"] not in rows:
            made = context.topology.system.moment(row["position"])
            # One whose position is of later than all of them was made with a clock that was ahead.
            newest = max(resets, key=lambda one: one.began)
            of_reset.setdefault(next((one for one in resets if made and made < _until(one)), newest), []).append(row)
    for reset, some in of_reset.items():
        some.sort(key=lambda row: str(row["position"]))
        yield ThrownAway(maker, origin, reset, source_of(context, maker, reset), some)


def _until(reset: Reset) -> datetime:
    """Up to when a change may have been made with the data of before: while data come, a server takes none."""
    return max(reset.began, reset.ended.replace(microsecond=0))


def _note_waiting(context: DetectorContext, found: Iterable[ThrownAway]) -> None:
    typed = context.topology.system.typed
    gone: dict[tuple[str | None, str | None], list[str]] = {}
    for one in found:
        keys = [typed(row["position"]) or "" for row in one.changes]
        gone.setdefault((one.maker.suffix, one.origin), []).extend(keys)
    for row in context.verdicts.pending:
        if keys := gone.get((row["suffix"], row["origin"]), []):
            low, high = typed(row["first"]) or "", typed(row["last"]) or ""
            row["lost"] = max(row.get("lost") or 0, min(sum(low <= key <= high for key in keys), row["count"]))


def kept_by_entries(
    context: DetectorContext, suffix: str | None, origin: str, server: str, positions: Iterable[str]
) -> set[str] | None:
    """The changes of an origin that an entry of a server still carries; None: its entries were not collected."""
    system, kept = context.topology.system, None
    for contents in context.verdicts.contents:
        evidence = contents.evidence
        if contents.suffix != suffix or origin not in evidence.numbers or server not in contents.exports:
            continue
        kept = kept or set()
        keys = sorted(filter(None, map(system.typed, positions)))
        if keys:
            where = evidence.between(of_keys(system, keys, evidence.numbers))
            rows = evidence.told("entry_states", ["position"], where, server)
            kept |= {system.show(system.change_of(one)) for one in rows["position"].to_pylist()} if len(rows) else set()
    return kept


def is_thrown_away(context: DetectorContext, rows: Iterable[Mapping[str, Any]]) -> bool:
    """True if no collected server holds any of these missing changes, for the data of their maker were replaced."""
    gone = named_in(context.thrown_away)
    return all(went_with_data(gone, row) for row in rows)


def went_with_data(gone: Mapping[tuple[str | None, str], ThrownAway], row: Mapping[str, Any]) -> bool:
    """True if no collected server holds this missing change; of entries one position may be of several changes."""
    return (row["suffix"], row["position"]) in gone or row.get("cause") == THROWN_AWAY


def named_in(some: Iterable[ThrownAway]) -> dict[tuple[str | None, str], ThrownAway]:
    """Suffix and position of each of these changes."""
    return {(row["suffix"], row["position"]): one for one in some for row in one.changes}


def missed_by_all(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], server: str
) -> tuple[str, str, str, str]:
    """What is so of missing changes that went with the old data of their maker, what to do, why, and of what to beware."""
    server, them = _who_lost(context, rows[0]), "it" if len(rows) == 1 else "them"
    did = "had" if context.topology.pulling else "made"
    return (
        f"its vector covers {them}",
        f"do what CHANGES_THROWN_AWAY of {server} says",
        "no session and no initialisation brings what no server holds",
        f"the data of {server}, which {did} {them}, were replaced since",
    )


def only_earlier(context: DetectorContext, rows: Iterable[Mapping[str, Any]]) -> list[GoneChange]:
    """Those of these missing changes that only earlier files show."""
    return [one for row in rows if (one := _gone(context, row))] if context.verdicts.gone else []


def _gone(context: DetectorContext, row: Mapping[str, Any]) -> GoneChange | None:
    if row.get("held_by") or row.get("cause") != THROWN_AWAY:
        return None
    return context.once(_gone_by_change).get(_change_of(row))


def _change_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["suffix"], row["position"], row.get("entry"), row.get("attribute")


def _gone_by_change(context: DetectorContext) -> dict[tuple[Any, ...], GoneChange]:
    return {_change_of(one.change): one for one in reversed(context.verdicts.gone)}


def _who_lost(context: DetectorContext, row: Mapping[str, Any]) -> str:
    """The server whose data were replaced."""
    if one := _gone(context, row):
        return str(one.change["server"])
    return named_in(context.thrown_away)[row["suffix"], row["position"]].maker.server


def _nowhere(
    context: DetectorContext, maker: Replica, reset: Reset, position: str, lacking: set[str], none: set[str]
) -> bool:
    """True if each server lacks the change or waits for it, or none of its entries carries it (`none`), its maker's neither.

    The maker lacks it by the verdicts, or its data came whole from a server that lacks it.
    """
    system = context.topology.system
    key = system.typed(position) or position
    origin = system.origin_of(key)
    source = source_of(context, maker, reset)
    if maker.server not in lacking and (source is None or source not in lacking):
        return False
    return all(
        one is maker or one.server in lacking | none or key > (last(one.seen(), origin) or "")
        for one in context.topology.replicas
        if one.suffix == maker.suffix
    )


def source_of(context: DetectorContext, maker: Replica, reset: Reset) -> str | None:
    """The server that filled another one, where logs tell it."""
    if reset.kind != TOTAL:
        return None
    told = [
        (abs(began - reset.began), supplier)
        for contents in context.verdicts.contents
        if maker in contents.alike.replicas
        for supplier, began, ended in initialisations(contents.evidence, maker)
        if began <= reset.ended and reset.began <= ended
    ]
    return min(told)[1] if told else None


def changes_thrown_away(context: DetectorContext) -> Iterator[Finding]:
    """Changes that nothing brings back: no server holds them, and what their maker had was replaced."""
    cut = "at least " if context.verdicts.totals["missing"] > len(context.verdicts.missing) else ""
    sums: Counter[tuple[str, str | None, bool]] = Counter()
    for one in context.thrown_away:
        sums[one.maker.server, one.maker.suffix, _is_sure(context, one)] += len(one.changes)
    for one in context.thrown_away:
        name, count = one.maker.server, len(one.changes)
        them = "it" if count == 1 else "them"
        first = one.changes[0]["position"]
        mine = {row["position"] for row in one.changes}
        unsure = len(mine.intersection(row["position"] for row in context.verdicts.written_over))
        replaced = unsure + _replaced_later(context, one)
        missing = any(row["position"] == first for row in context.verdicts.missing)
        told_in = "the list of missing changes" if missing else f"the access log of {name}"
        told_in += f" or the access log of {name}" if missing and unsure else ""
        sure = _is_sure(context, one)
        holds = "holds" if sure else "is known to hold"
        yield Finding(
            "CHANGES_THROWN_AWAY",
            "error" if unsure < count else "warning",
            f"no collected server {holds} {cut}{counted(count)} of {name} any more, "
            f"{ends(one.changes[0]['position'], one.changes[-1]['position'])}: {name} made {them} before {_replaced(one)} at "
            f"{_time(one.reset.ended)}{_other_times(context, one, them)}{_written_over(replaced, count)}",
            server=name,
            origin=one.origin,
            suffix=one.maker.suffix,
            items=tuple(row["position"] for row in one.changes[:ITEMS_SHOWN]),
            evidence=first_few({key: row[key] for key in ("position", "operation", "target")} for row in one.changes),
            fix=(
                *_compare_first(context, one),
                step(
                    f"make {'this change' if count == 1 else 'these changes'} again on a supplier, if nothing newer replaced "
                    f"{them} since; {told_in} names operation and entry of each",
                    "no session and no initialisation brings what no server holds",
                    f"ask whoever made {them} for the values, or look into an older backup of {name}; a log that was collected "
                    "earlier, or the file that a plan saved, may show them",
                ),
            ),
            # One clause for all that the server lost, whatever origin it had and whichever replacement took it.
            root=f"no collected server {holds} {cut}{counted(sums[name, one.maker.suffix, sure])} of {name} any more",
        )


def _replaced_later(context: DetectorContext, one: ThrownAway) -> int:
    """How many of these changes count as missing, and may have been replaced by later changes of their entries."""
    mine = {row["position"] for row in one.changes}
    rows = [x for x in context.verdicts.missing if x["suffix"] == one.maker.suffix and x["position"] in mine]
    of_suffix = [contents for contents in context.verdicts.contents if contents.suffix == one.maker.suffix]
    return len(
        set[str]().union(*(perhaps_replaced(contents, rows, {*BY_SILENCE, NEVER_CAME}) for contents in of_suffix))
    )


def _compare_first(context: DetectorContext, one: ThrownAway) -> Iterator[Mapping[str, Any]]:
    """What comes first where no entries were collected, and the same entries were modified later: nothing may be lacking."""
    typed = context.topology.system.typed
    lost = [
        (row["target"].lower(), typed(row["position"]) or "")
        for row in one.changes
        if row["operation"] == "modify" and row["target"]
    ]
    of_suffix = [contents for contents in context.verdicts.contents if contents.suffix == one.maker.suffix]
    if not lost or any(contents.exports for contents in of_suffix):
        return
    targets = pa.array(sorted({target for target, _ in lost}), pa.string())
    modified = pc.utf8_lower(pc.field("target")).isin(targets) & (pc.field("operation") == "modify")
    modified &= (pc.field("outcome") == "applied") & pc.field("position").is_valid()
    latest: dict[str, str] = {}
    for contents in of_suffix:
        rows = contents.evidence.told("applied", ["operation", "target", "position"], modified)
        for row in rows.group_by(["target"]).aggregate([("position", "max")]).to_pylist():
            target = row["target"].lower()
            latest[target] = max(latest.get(target, ""), row["position_max"])
    if count := sum(latest.get(target, "") > position for target, position in lost):
        those = "its entry was" if len(one.changes) == 1 else f"the entries of {count:,} of them were"
        yield step(
            "collect with the entries (`workbench collect --entries`), and diagnose again",
            f"{those} modified later: what is lacking now, if anything, only entries tell",
        )


def _is_sure(context: DetectorContext, one: ThrownAway) -> bool:
    """True if every other server is known to lack the first of these changes."""
    first, suffix = one.changes[0]["position"], one.maker.suffix
    rows = (*context.verdicts.missing, *context.verdicts.written_over)
    lacking = {row["server"] for row in rows if row["position"] == first}
    lacking |= {
        row["server"]
        for row in context.verdicts.pending
        if (row["suffix"], row["origin"]) == (suffix, one.origin) and row["first"] <= first <= row["last"]
    }
    return lacking >= {x.server for x in context.topology.replicas if x.suffix == suffix} - {one.maker.server}


def _written_over(unsure: int, count: int) -> str:
    if not unsure:
        return ""
    some = "its entry" if count == 1 else "their entries" if unsure == count else f"the entries of {unsure:,} of them"
    wrote = "it" if count == 1 else "they" if unsure == count else "these"
    return f"; later changes replaced values of {some}: perhaps what {wrote} wrote, so that nothing is lacking"


def _other_times(context: DetectorContext, one: ThrownAway, them: str) -> str:
    """That the data of the maker were replaced at other times, too, which may have taken the changes instead.

    By positions of a clock that was ahead nobody can tell which time it was.
    """
    system, resets = context.topology.system, context.verdicts.resets.get((one.maker.server, one.maker.suffix), [])
    made = [system.moment(system.typed(row["position"]) or "") for row in one.changes]
    ahead = any(moment and moment > one.reset.ended for moment in made)
    others = [
        x for x in resets if x.kind in (TOTAL, REPLACED) and (x.began > one.reset.ended or (ahead and x != one.reset))
    ]
    count = 1 + len({x.ended.replace(microsecond=0) for x in others})
    return f" (its data were replaced {count:,} times, and nothing tells which of these took {them})" if others else ""


def _replaced(one: ThrownAway) -> str:
    if one.reset.kind == REPLACED:
        return "its data were replaced"
    return f"{one.source} initialised it" if one.source else "another server initialised it"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
