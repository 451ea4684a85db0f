"""Rows of evidence out of vectors, and which suffix a line of a log is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]


def element_shown(row: Row) -> dict[str, Any]:
    """An element of a vector as evidence; `host` where that stands in several."""
    about = {key: row[key] for key in ("server", "origin", "file", "offset", "raw", "problem")}
    return about | ({"host": row["host"]} if row.get("host") else {})


def suffix_of_link(context: DetectorContext, server: str, link: str | None) -> str | None:
    """The suffix of the only agreement of that name on the server; None if there are several, or none."""
    found = {one.suffix for one in context.topology.links if (one.supplier, one.name) == (server, link)}
    return found.pop() if len(found) == 1 else None


def only_suffix(context: DetectorContext, server: str) -> str | None:
    """The suffix that the server replicates, if it is the only one: most lines of its log name none."""
    found = {one.suffix for one in context.topology.replicas if one.server == server}
    return found.pop() if len(found) == 1 else None
