"""The finding RECORD_UNKNOWN: fields, statements and entries that the reader does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from workbench.model import Finding, first_few, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def not_understood(context: DetectorContext) -> Iterator[Finding]:
    """Fields, statements and entries that the reader does not know: nothing of them is passed over in silence."""
    label = context.topology.snapshot
    told: dict[tuple[str, str], Counter[str]] = {}
    first: dict[tuple[str, str, str], int] = {}
    # What a record with a wrong checksum seems to hold was not written by any server: RECORD_CORRUPT says it.
    where = pc.field("unknown").is_valid() & (pc.field("sound").is_null() | pc.field("sound"))
    for batch in context.rows("segments", ["server", "file", "offset", "unknown"], where, snapshot=label):
        for row in batch.to_pylist():
            told.setdefault((row["server"], row["file"]), Counter())[row["unknown"]] += 1
            first.setdefault((row["server"], row["file"], row["unknown"]), row["offset"])
    for (server, file), kinds in sorted(told.items()):
        yield Finding(
            "RECORD_UNKNOWN",
            "warning",
            f"{file}: {_counted(sum(kinds.values()))} what this reader does not know",
            server=server,
            evidence=first_few(
                {"unknown": kind, "count": count, "offset": first[server, file, kind]}
                for kind, count in sorted(kinds.items())
            ),
            fix=(
                step(
                    "find out which version of the server wrote the log",
                    "a newer server may say there what changes the meaning of the rest",
                    "what is not understood is never applied",
                ),
            ),
        )


def _counted(count: int) -> str:
    return "1 statement or record holds" if count == 1 else f"{count:,} statements or records hold"
