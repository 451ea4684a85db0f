"""What tells a ROLLED_BACK that rests on an earlier file from one that rests on what others hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def by_earlier_file(evidence: Iterable[Mapping[str, Any]]) -> bool:
    """True if an earlier file shows that the server lost own changes: no other server is known to hold them."""
    return any(row.get("snapshot") for row in evidence)
