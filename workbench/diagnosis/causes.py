"""Why each missing change was missed: what the rules of the system make of the evidence, and only if just one thing fits.

A cause that no finding is about has no code: then the one reason says it all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.changes_thrown_away import named_in
from workbench.diagnosis.gone_entries import note_gone_entries, without_gone
from workbench.diagnosis.left_out_changes import left_out_whole, name_left_out, name_only_who_has_it
from workbench.diagnosis.made_by_others import made_by_others
from workbench.diagnosis.missed_renames import RENAME_MISSED, left_by_missed_renames
from workbench.rules.verdicts import ENTRIES_LACK, Loss, Reset

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

UNTOLD = "its entries were changed or lost past replication: no log tells how"
"""Reason of a change that only entries show to be missing."""
STATES_UNTOLD = "the states of entries do not tell how a change was missed"
NOTHING_FITS = "no candidate makes the server lack it"
OPERATIONS_ERROR, _AT_ONCE = 1, timedelta(seconds=2)
"""What a server answers whose database could not be written; its log says so before the answer, in the same moment."""
_LOOKED_AT = 10_000
"""Changes of one origin that are held against each candidate."""

Key = tuple[str, str | None, str]


def made_elsewhere(maker: str, origin: str) -> str:
    """Why a server lacks a change of its own origin that another one made, as a reason."""
    return f"{maker} made it when it had origin {origin} (its own logs say so)"


def told_without_code(reasons: Sequence[str], codes: Collection[str]) -> str:
    """The one reason that says why changes were missed although no finding is about it; empty: the cause is open.

    codes  of findings; a reason that begins with one of them is of a candidate that is not certain
    """
    (only,) = reasons if len(reasons) == 1 else ("",)
    return "" if only in (UNTOLD, NOTHING_FITS, STATES_UNTOLD) or only.partition(":")[0] in codes else only


def name_causes(context: DetectorContext) -> None:
    """Write `cause` and `reasons` into the rows of the missing changes.

    A candidate is named where it is the only one by which the server would lack the change. Of several, and of none, the
    cause stays open; the reasons list what was tried.
    """
    if context.topology.system.proving is None:
        return
    missing: dict[tuple[Key, str], list[dict[str, Any]]] = {}
    makers, left = context.once(made_by_others), left_by_missed_renames(context)
    lacked = [row for row in context.verdicts.missing if row["rule"] == ENTRIES_LACK]
    for row in context.verdicts.missing:
        if row["rule"] == ENTRIES_LACK:
            by_rename = (row["server"], row["suffix"], row["position"]) in left
            row["reasons"] = [RENAME_MISSED if by_rename else UNTOLD]
            continue
        key = row["server"], row["suffix"], row["origin"]
        maker = makers.get((row["server"], row["suffix"], row["position"]), "")
        missing.setdefault((key, maker), []).append(row)
    context.verdicts.cut_short = name_left_out(context, lacked)
    name_only_who_has_it(context.verdicts.missing, context.verdicts.cut_short)
    for (key, maker), rows in missing.items():
        proving, loss = context.topology.proving, _loss(context, key, rows[:_LOOKED_AT])
        loss = replace(loss, own=False) if maker else loss
        candidates = proving.causes(loss)
        # What may have happened in another suffix is no cause, and leaves none the only one.
        cleaned, sure = _cleaned(context, key[2]), tuple(one for one in loss.resets if one.sure)
        surely = candidates
        if sure != loss.resets or cleaned != loss.cleaned:
            surely, candidates = (
                proving.causes(replace(loss, resets=sure)),
                proving.causes(replace(loss, cleaned=cleaned)),
            )
        for row in rows:
            fitting = [one for one in candidates if row["position"] in one.loses]
            codes = {one.code for one in fitting}
            certain = codes == {one.code for one in surely if row["position"] in one.loses}
            row["cause"] = (codes.pop() or None) if certain and len(codes) == 1 else None
            told = [f"{one.code}: {one.because}" if one.code else one.because for one in fitting]
            row["reasons"] = told or [made_elsewhere(maker, key[2]) if maker else NOTHING_FITS]
    note_gone_entries(context)
    own = [row for row in context.verdicts.missing if row["cause"] == "OWN_CHANGES_HIDDEN"]
    told_of = {(row["server"], row["suffix"]) for row in without_gone(own)}
    for row in own:
        if (row["server"], row["suffix"]) not in told_of:
            row["cause"] = None  # no finding says so: nothing of it is to be given back
    gone = named_in(context.thrown_away)
    for row in context.verdicts.missing:
        if (row["suffix"], row["position"]) in gone:
            row["cause"] = "CHANGES_THROWN_AWAY"
            row["reasons"] = ["no collected server holds it, and the data of the server that made it were replaced"]


def _loss(context: DetectorContext, key: Key, rows: Iterable[Mapping[str, Any]]) -> Loss:
    server, suffix, origin = key
    typed = context.topology.system.typed
    rows = list(rows)
    keys = tuple(sorted(typed(row["position"]) or row["position"] for row in rows))
    replica = context.replica(server, suffix)
    held, only_here, below = context.verdicts.own_near.get(key, ((), frozenset(), None))
    refused = frozenset(row["position"] for row in rows if row["rule"] == "skipped")
    codes = {
        row["position"]: row["code"] for row in _answers(context, server, suffix, refused) if row["code"] is not None
    }
    others = {row["position"] for row in rows}.difference(refused)
    marks = context.verdicts.marks.get((server, suffix), {})
    return Loss(
        origin,
        replica is not None and replica.origin == origin,
        replica is not None and replica.log is not None,
        keys,
        held,
        only_here,
        below,
        max([*keys, *(one.max or "" for one in [replica.seen()[origin]] if replica)]) if replica else keys[-1],
        refused,
        codes,
        _before(context, key, keys[-1]),
        marks.get(origin),
        _resets(context, key),
        _passed_over(context, server, suffix),
        _cleaned(context, origin, surely=True),
        _unwritten(context, server, suffix, others),
        _log_made(context, server, suffix),
        left_out_whole(context, server, suffix, others),
    )


def _log_made(context: DetectorContext, server: str, suffix: str | None) -> datetime | None:
    """When the server last said that its log of changes was removed."""
    codes = context.topology.proving.log_removed
    where = pc.field("code").isin(pa.array(sorted(codes), pa.string())) & pc.field("at").is_valid()
    of = suffix if context.of_several(server) else None
    found = context.rows("messages", ["at"], where, server=server, suffix=of) if codes else ()
    return max((row["at"] for batch in found for row in batch.to_pylist()), default=None)


def _answers(
    context: DetectorContext, server: str, suffix: str | None, positions: Iterable[str]
) -> list[dict[str, Any]]:
    """What the access log of a server shows of these changes, where it refused them."""
    wanted = sorted(positions)
    where = pc.field("position").isin(pa.array(wanted, pa.string())) & (pc.field("outcome") == "refused")
    found = context.rows("applied", ["position", "code", "at"], where, server=server, suffix=suffix) if wanted else ()
    return [row for batch in found for row in batch.to_pylist()]


def _unwritten(context: DetectorContext, server: str, suffix: str | None, positions: Iterable[str]) -> frozenset[str]:
    """The changes that it answered with a failure in the moment in which it said that its database could not be written."""
    told = context.topology.proving.unwritten
    if not any(told and one.facts.get("codes", {}).get(told) for one in context.inputs if one.server == server):
        return frozenset()
    where = (pc.field("code") == told) & pc.field("at").is_valid()
    failed = [
        row["at"] for batch in context.rows("messages", ["at"], where, server=server) for row in batch.to_pylist()
    ]
    return frozenset(
        row["position"]
        for row in _answers(context, server, suffix, positions)
        if row["at"] and row["code"] == OPERATIONS_ERROR and any(abs(row["at"] - at) < _AT_ONCE for at in failed)
    )


def _before(context: DetectorContext, key: Key, below: str) -> str | None:
    """The highest that the server had seen of the origin in an earlier snapshot, when the last missing change was not covered."""
    labels = list(context.case.snapshots)
    seen = []
    for label in labels[: labels.index(context.topology.snapshot)]:
        shown = context.at(label)
        for one in shown.replicas if shown else ():
            if (one.server, one.suffix) == key[:2] and key[2] in (had := one.seen()):
                seen.append(had[key[2]].max or "")
    return max((position for position in seen if position < below), default=None)


def _resets(context: DetectorContext, key: Key) -> tuple[Reset, ...]:
    return tuple(context.verdicts.resets.get(key[:2], ()))


def _passed_over(context: DetectorContext, server: str, suffix: str | None) -> tuple[tuple[datetime, str], ...]:
    """When sessions to this server left out everything before a change, and which."""
    code = context.topology.proving.passed_over
    found = []
    for link in context.topology.links:
        if code and (link.consumer, link.suffix) == (server, suffix):
            where = (pc.field("code") == code) & (pc.field("link") == link.name) & pc.field("at").is_valid()
            of = None if context.only_link(link.supplier, suffix, link.name) else suffix
            for batch in context.rows("messages", ["at", "position"], where, server=link.supplier, suffix=of):
                found += [(row["at"], row["position"]) for row in batch.to_pylist() if row["position"]]
    return tuple(sorted(found))


def _cleaned(context: DetectorContext, origin: str, surely: bool = False) -> datetime | None:
    """When any server last said that the origin was cleaned; `surely`: one that may have said it of no other suffix."""
    code = context.topology.proving.cleaned
    where = (pc.field("code") == code) & (pc.field("origin") == origin) & pc.field("at").is_valid()
    times = [
        row["at"]
        for batch in (context.rows("messages", ["at", "server"], where) if code else ())
        for row in batch.to_pylist()
        if not surely or not context.of_several(row["server"])
    ]
    return max(times, default=None)
