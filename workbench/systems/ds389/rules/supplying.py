"""What a supplier of 389 DS does: its rule sets, and what comes before and after a session."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.rules.send_session import Design, Supplying
from workbench.rules.vectors import Vector, last
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.ruvs import GENERATION_DIFFERS, opens_session
from workbench.systems.ds389.rules.sending import ONCE, Sending, missing_anchor_class


def _refuses(supplier: str | None, consumer: str | None) -> str | None:
    """Why the two may exchange nothing. None stands for a generation that no collected file shows: it proves nothing."""
    return GENERATION_DIFFERS if supplier and consumer and supplier != consumer else None


def _absent(anchor: str, supplier: Vector, purged: Mapping[str, str | None]) -> str:
    rid = origin_of(anchor)
    return missing_anchor_class(anchor, last(supplier, rid), purged.get(rid))


NOT_FOUND = ("anchor_not_located", "anchor_missing", "anchor_purged", "purged_here", "never_logged")
"""Codes of the lines by which a supplier says that its changelog lacks an anchor."""

SUPPLYING = Supplying(
    {"ds389": Sending, "design": Design},
    _refuses,
    opens_session,
    _absent,
    losing=lambda: Sending(ONCE),
    not_found=frozenset(NOT_FOUND),
)
