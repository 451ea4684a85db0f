"""The finding CONTENT_NOT_COMPARED: messages without numbers, as behind a filter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, counted, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def not_compared(context: DetectorContext) -> Iterator[Finding]:
    """Logs whose messages have no numbers: what a filter may have left out, and contents that nothing compares."""
    streams = context.verdicts.streams
    assert streams is not None
    for (server, origin), both in sorted(streams.differences.items()):
        source = streams.source_for(server, origin)
        contents = streams.contents(source, server, origin) if source is not None and both.shared else None
        if contents is None or not contents.uncompared:
            continue
        tables, count = sorted(contents.left_out), counted(contents.uncompared, "transaction")
        changed = ", ".join(f"{table} (in {contents.left_out[table]:,})" for table in tables[:5])
        changed += f" and {len(tables) - 5:,} more" if len(tables) > 5 else ""
        ask = f"read the filter of {server}: it has to name {'this table' if len(tables) == 1 else 'these tables'}"
        yield Finding(
            "CONTENT_NOT_COMPARED",
            "warning" if tables else "info",
            (
                f"{server} has nothing of what transactions of {source} did to {changed}, and its messages have no numbers: a "
                f"filter may leave {'it' if len(tables) == 1 else 'them'} out. "
                if tables
                else f"{server}: messages have no numbers, as behind a filter. "
            )
            + f"The contents of {count} were not compared with those of {source}",
            server=server,
            origin=origin,
            evidence=(
                {"server": server, "source": source, "count": contents.uncompared, "tables": tables[:ITEMS_SHOWN]},
            ),
            fix=(
                step(
                    f"{ask}. If it does not, provision {server} from {source}"
                    if tables
                    else "compare the rows of both",
                    "a filter drops statements of tables or schemas, and the numbers of messages with them"
                    if tables
                    else "two messages of which one has no numbers differ, also where what they do is the same",
                ),
            ),
        )
