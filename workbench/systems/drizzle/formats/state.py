"""What a slave says of itself: its tables `io_state` and `applier_state`, as one JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from workbench import tables
from workbench.model import WHOLE, Format, Parsed, Piece, Reject

_PARTS = {"io_state": "io", "applier_state": "applier"}
_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:io_state|applier_state)"\s*:\s*\[')
_QUOTED = re.compile(r"['\"`].*['\"`]", re.DOTALL)
_KEY = re.compile(r" for (?:key|column) ['`][\w$. ]{1,64}['`][^'\"`]*\Z")
_STATEMENT = re.compile(r"\b(INSERT|REPLACE|UPDATE|DELETE)\b.*", re.DOTALL | re.IGNORECASE)
_LONGEST = 500


def without_values(error: str) -> str:
    """An error without what it quotes, but for the name of the key or column at its end, and without any statement.

    >>> without_values("(SQLSTATE 23000) Duplicate entry 'O'Neil' for key 'PRIMARY'")
    "(SQLSTATE 23000) Duplicate entry '…' for key 'PRIMARY'"
    """
    key = _KEY.search(error)
    told, tail = (error[: key.start()], key[0]) if key else (error, "")
    told = _STATEMENT.sub(r"\1 …", _QUOTED.sub("'…'", told))
    if len(re.findall("['\"`]", told)) % 2:  # a quotation without an end
        told = re.split("['\"`]", told)[0] + "…"
    return (told + tail)[:_LONGEST]


def _row(part: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or "master_id" not in given:
        raise ValueError(f"a row of {part} without master_id")

    def number(name: str) -> int | None:
        value = given.get(name)
        if value is None or (type(value) is int and 0 <= value < 1 << 63):
            return value
        if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value):
            return int(value)
        raise ValueError(f"{name} of {part} is no number")

    def text(name: str) -> str | None:
        value = given.get(name)
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None

    error = text("error_msg")
    master = number("master_id")
    return {
        "offset": 0,
        "master": None if master is None else str(master),
        "part": _PARTS[part],
        "status": text("status"),
        "error": without_values(error) if error else None,
        "commit": number("last_applied_commit_id"),
        "origin_uuid": text("originating_server_uuid"),
        "origin_commit": number("originating_commit_id"),
    }


def read(piece: Piece) -> Parsed:
    """The threads of a slave: whether they run, what they said last, and how far the applier came."""
    try:
        document = json.loads(piece.data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return Parsed(1, [Reject(0, "broken JSON, or not UTF-8 text")])
    try:
        rows = [_row(part, given) for part in _PARTS for given in _listed(document, part)]
    except ValueError as error:
        return Parsed(1, [Reject(0, str(error))])
    running = {"running": sum((row["status"] or "").upper() == "RUNNING" for row in rows), "threads": len(rows)}
    return Parsed(1, [], {"appliers": tables.table("appliers", rows)} if rows else {}, running)


def _listed(document: Any, part: str) -> list[Any]:
    found = document.get(part, []) if isinstance(document, Mapping) else None
    if not isinstance(found, list):
        raise ValueError(f"{part} is no list")
    return found


STATE = Format("drizzle.state", lambda head, name: bool(_HEAD.match(head)), lambda: read, WHOLE)
