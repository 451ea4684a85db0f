"""Of which version a server is, as it says itself, and its errors log at each start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Version = tuple[int, int, int]
_VERSION = re.compile(r"389-Directory/(\d+)\.(\d+)\.(\d+)")


def version_in(text: str | None) -> Version | None:
    """The version that a text begins with; None if it does not.

    >>> version_in("389-Directory/2.3.1 B2025.016.1616")
    (2, 3, 1)
    """
    found = _VERSION.match(text or "")
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def version_of(context: DetectorContext, server: str) -> Version | None:
    """The version that its latest start names; None if no collected line tells of a start."""
    label, told = context.topology.snapshot, []
    for batch in context.rows(
        "messages", ["at", "numbers"], pc.field("code") == "starting", snapshot=label, server=server
    ):
        told += [(row["at"], dict(row["numbers"] or ()).get("version", "")) for row in batch.to_pylist() if row["at"]]
    return version_in(max(told)[1]) if told else None
