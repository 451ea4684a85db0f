"""What two copies have otherwise behind the end of the log of their source, which was read before they were.

log of a    1 2 3 4
log of b    1 2 3 4 5 6 7
log of c    1 2 3 4 5 6' 7      6 has another content: at most one of b and c has what a committed
log of d    1 2 3 4 5 7 6       another order: a replica applies in the order of commits
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, listed, step
from workbench.replication.stream.diagnosis.log_comparison import AHEAD, Streams
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Ahead = Mapping[tuple[str, str], Sequence[str]]
"""Server and origin -> what its log has behind the end of the source's."""

_NAMED = 3


def in_another_order(streams: Streams, ahead: Ahead, server: str, origin: str) -> list[str]:
    """Other servers with the same behind the end of the same log in another order."""
    found = []
    for (other, of), theirs in sorted(ahead.items()):
        both = sorted({*theirs} & {*ahead[server, origin]}) if other != server and of == origin else []
        if _ordered(streams, server, origin, both) != _ordered(streams, other, origin, both):
            found.append(other)
    return found


def _ordered(streams: Streams, server: str, origin: str, positions: Sequence[str]) -> list[str]:
    log = streams.logs[server]
    rows = log.rows_of(origin, positions)
    return sorted(positions, key=lambda position: (rows[position][log.order], position))


def ahead_otherwise(context: DetectorContext) -> Iterator[Finding]:
    """Transactions of two copies with different contents, of which the log of their source tells nothing yet."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    ahead = {(server, origin): positions for server, origin, why, _, positions in streams.alone() if why == AHEAD}
    for (server, origin), positions in sorted(ahead.items()):
        for (other, of), theirs in sorted(ahead.items()):
            both = [at for at in positions if at in theirs] if of == origin and other > server else []
            mine, rows = (streams.logs[name].rows_of(origin, both) for name in (server, other))
            unlike = [at for at in both if _is_unlike(mine[at], rows[at])]
            if not unlike:
                continue
            source, named = streams.source_of(origin), listed([*map(show, unlike)], "and", _NAMED)
            yield Finding(
                "TXN_CONFLICT",
                "error",
                f"{server} and {other} hold {counted(len(unlike), 'transaction')} of server {origin} ({named}) with different "
                f"contents, behind the last that the log of {source} has: at most one of the two has what {source} committed",
                server=server,
                origin=origin,
                items=tuple(map(show, unlike[:ITEMS_SHOWN])),
                evidence=({"server": server, "other": other, "count": len(unlike)},),
                fix=(
                    step(
                        f"collect the log of {source} once more, later than those of {server} and {other}: it tells which of "
                        "them is wrong",
                        f"both go on behind the end of the log of {source}, and no other file tells it",
                        "provision neither from the other before that",
                    ),
                ),
            )


def _is_unlike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if both were committed, say which message is their last, and are not the same."""
    whole = row["outcome"] == other["outcome"] == COMMITTED and None not in (row["ended"], other["ended"])
    return whole and bool(row["content"] != other["content"])
