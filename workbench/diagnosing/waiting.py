"""What each server still waits for: the changes above all that its vector, its log and its own later lines show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.engine.known import HIGHEST, LOWEST, Pair, Span
from workbench.engine.positions import NONE, Positions, of_keys, union

if TYPE_CHECKING:
    from workbench.cases.case import Case
    from workbench.diagnosing.verdicts import _Server, _Suffix

Row = Mapping[str, Any]


def who_would_send(pairs: Sequence[Row], consumer: str, origin: str) -> list[str]:
    """Who would send changes of the origin to the server now: over links that run, if any link is known at all."""
    linked = any(row["link"] for row in pairs)
    return sorted(
        row["supplier"]
        for row in pairs
        if row["consumer"] == consumer
        and origin in row["to_send"]
        and row.get("delivers", True)  # a consumer may refuse what it is sent
        and (not linked or (row["link"] and row["link_enabled"] is not False))
    )


_TIMES = {"coverage": ("last_at",), "links": ("started_at", "ended_at"), "vectors": ("modified_at",)}


def last_times(case: Case, snapshot: str) -> dict[str, datetime]:
    """Server -> the latest time that its own files of a snapshot tell by its own clock."""
    times: dict[str, datetime] = {}
    for table, columns in _TIMES.items():
        for row in case.arrow(table).select(["snapshot", "server", *columns]).to_pylist():
            for at in (row[column] for column in columns if row[column] and row["snapshot"] == snapshot):
                times[row["server"]] = max(at, times.get(row["server"], at))
    return times


def pending_of(suffix: _Suffix, server: _Server) -> Iterator[dict[str, Any]]:
    """Rows of `pending` in the shape of the contract, of one server: one for each origin of which it waits for changes."""
    claimed = {origin for one in suffix.servers for origin in one.replica.vector or one.seen}
    proofs = suffix.proofs(server)
    for origin in suffix.names:
        if origin not in claimed:
            continue  # cleaned away everywhere: nobody will send it, and nobody waits for it
        seen = server.seen.get(origin, "")
        above = Span(suffix.pair(seen or None) or LOWEST, HIGHEST)
        if origin == server.replica.origin and (since := proofs.unbroken_since or _read_at(suffix, server)):
            # What it made with the data that it has, it has, though it was read before; and it waits for none of its own changes
            # that are younger than anything that was read of it.
            above = Span(above.low, max(above.low, (suffix.system.instant(since), -1)))
        count, first, last = suffix.known.tally(origin, above)
        # Shown by what was read of it later: its files are not of one moment, and nobody waits for what he made himself.
        shown = proofs.shown_above(origin, seen) if count and origin == server.replica.origin else None
        present = [one.source for one in suffix.servers if one.source is not None and one is not server]
        available = suffix.known.tally(origin, above, present)[0]
        if shown is not None and len(shown):
            count, first, last, available = _without(suffix, origin, above, shown, present)
        order_key = suffix.system.order_key
        ends = [order_key(origin, *end) for end in (first, last) if end is not None]
        only_claimed = _only_claimed(suffix, origin, seen, above)
        if shown is not None and len(shown):
            top = max(shown.keys(suffix.system, suffix.names))
            only_claimed = {position for position in only_claimed if position > top}
        if not count and not only_claimed:
            continue
        ends += sorted(only_claimed)
        yield {
            "server": server.replica.server,
            "suffix": suffix.suffix,
            "origin": origin,
            "count": count + len(only_claimed),
            "first": suffix.system.show(min(ends)),
            "last": suffix.system.show(max(ends)),
            "available": available,
            "younger": _younger(suffix, origin, above, present, shown),
            "suppliers": who_would_send(suffix.pairs, server.replica.server, origin),
        }


def _without(
    suffix: _Suffix, origin: str, above: Span, shown: Positions, present: Sequence[int]
) -> tuple[int, Pair | None, Pair | None, int]:
    """How many changes of the origin lie above, but for these; the first, the last, and how many the present logs hold."""
    count = available = 0
    ends: list[Pair] = []
    for some in suffix.known.chunks(origin, above):
        left = some.minus(shown)
        if len(left):
            count += len(left)
            ends += [(int(left.hi[at]), int(left.lo[at])) for at in (0, -1)]
            held = union(left[suffix.known.sources[source].contains(left)] for source in present)
            available += len(held)
    return count, min(ends, default=None), max(ends, default=None), available


def _younger(suffix: _Suffix, origin: str, above: Span, present: Sequence[int], shown: Positions | None) -> int:
    """How many of them no present log holds because they were made after the log of their maker was read: it holds them now.

    Its own log is never trimmed that far, so what it made since its last start is there. What it made before that may be gone
    with the data that it was started with.
    """
    makers = [one for one in suffix.servers if one.replica.origin == origin and one.source is not None]
    if len(makers) != 1 or (started := suffix.proofs(makers[0]).unbroken_since) is None:
        return 0
    last = suffix.pair(makers[0].last.get(origin)) or LOWEST
    since = Span(max(above.low, last, (suffix.system.instant(started), -1)), above.high)
    count = _without(suffix, origin, since, shown if shown is not None else NONE, present)
    return count[0] - count[3]


def _read_at(suffix: _Suffix, server: _Server) -> datetime | None:
    """The latest time that the server's files tell by its own clock, or that what it has seen is of."""
    told = last_times(suffix.case, suffix.shown.snapshot).get(server.replica.server)
    seen = filter(None, map(suffix.system.moment, filter(None, server.seen.values())))
    return max([*seen, *([told] if told else [])], default=None) if told else None


def _only_claimed(suffix: _Suffix, origin: str, seen: str, above: Span) -> set[str]:
    """The last changes of the origin that vectors claim and nothing else names: they were made all the same."""
    tops = {one.replica.vector[origin].max or "" for one in suffix.servers if origin in one.replica.vector}
    tops = {top for top in tops if top > seen and (suffix.pair(top) or LOWEST) <= above.high}
    if not tops:
        return set()
    some = of_keys(suffix.system, tops, suffix.evidence.numbers)
    for source in suffix.known.sources:
        some = some[~source.contains(some)] if len(some) else some
    return set(some.keys(suffix.system, suffix.names))
