"""Transactions that a server has as committed, and the log of their source as taken back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, step
from workbench.replication.stream.diagnosis.log_comparison import VOID, Streams
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3


def taken_back_at_source(streams: Streams, server: str, origin: str) -> list[str]:
    """Positions of what a server committed and its source took back, as far as they are listed; none where no source is known."""
    source, both = streams.source_of(origin), streams.differences.get((server, origin))
    if both is None or source in (None, server) or streams.is_open(origin):
        return []
    positions = both.difference.conflicts
    theirs, here = (streams.logs[name].rows_of(origin, positions) for name in (source or "", server))
    return [
        at
        for at in positions
        if at in theirs and at in here and theirs[at]["outcome"] in VOID and here[at]["outcome"] == COMMITTED
    ]


def taken_back(context: DetectorContext) -> Iterator[Finding]:
    """Servers that committed what the source took back: they have rows that the source never had."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for server, origin in sorted(streams.differences):
        positions = [show(at) for at in taken_back_at_source(streams, server, origin)]
        if not positions:
            continue
        source, count, them = streams.source_of(origin), len(positions), "it" if len(positions) == 1 else "them"
        named = ", ".join(positions[:_NAMED]) + (f" and {count - _NAMED:,} more" if count > _NAMED else "")
        yield Finding(
            "TXN_CONFLICT",
            "error",
            f"{server} committed {counted(count, 'transaction')} of server {origin} ({named}) that {source}, its source, took "
            "back",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few({"position": at, "server": server, "source": source} for at in positions),
            fix=(
                step(
                    f"look on {server} for the rows of {them}, and take them back by hand, or provision {server} from {source}",
                    f"{source} sent a ROLLBACK of {them}: these rows are on no server that followed it",
                    f"if another server runs with the id {origin}, {them} may be its own: give that one another id",
                ),
            ),
        )
