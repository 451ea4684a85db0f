"""The log of a Kanidm server: what its pulls were answered, and the ranges that both sides compared.

Lines are text (a tree, each line with the id of its task and its level) or JSON objects. Debug level tells ranges; on error
level the server says that something is wrong, and seldom with whom. Text lines bear no time of their own; where a collector
has put one before each, it is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.kanidm.cid import UUID
from workbench.systems.kanidm.secrets import SECRETS

_AT = r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))"
_TREE = re.compile(
    rf"(?:{_AT}\s+)?(?:[^\s\[]+\s+)*?(?P<task>{UUID.pattern})\s+(?P<level>ERROR|WARN|INFO|DEBUG|TRACE)\s+"
    r"[\s│┝┕━├└─|]*+(?:\S+\s+)?\[(?P<kind>[\w.]+)\]: ?(?P<text>.*)",
    re.IGNORECASE,
)
_LIKE_TREE = re.compile(
    rf"(?:\S+\s+){{0,8}}?{UUID.pattern}\s+(?:ERROR|WARN|INFO|DEBUG|TRACE)\s".encode(), re.IGNORECASE
)
_SEVERITIES = {"ERROR": "error", "WARN": "warning", "INFO": "info", "DEBUG": "debug", "TRACE": "debug"}
_BAD = ("error", "warning")

MEANINGS = {
    "refresh_required": ("Consumer is lagging and must be refreshed",),
    "supplier_behind": ("Supplier is lagging and must be investigated",),
    "diverged": ("Consumers are advanced of us, and also lagging",),
    "no_overlap": ("Consumers RUV has desynchronised and diverged",),
    "supplies": ("these ranges will be supplied",),
    "domain_mismatch": ("Consumer Domain UUID does not match",),
    "must_refresh": ("has indicated that our RUV is outdated",),
    "other_domain": ("has indicated that our domain_uuid",),
    "clock_ahead": ("seconds in the future",),
    "origin_forgotten": ("disconnected server detected",),
    "split_data": ("contains changes matching this server's UUID",),
    "pulled": ("Incremental Replication Success",),
    "unwilling": ("UnwillingToSupply", "has indicated that our RUV is ahead"),
    "refreshed": ("Replication refresh was successful",),
    "refresh_failed": ("onsumer was not able to apply refresh",),
    "unreached": (
        "Unable to connect to supplier",
        "No replication addresses available",
        "Replica supplier cert invalid",
        "Replica origin does not have a valid domain name",
    ),
    "refuses_client": ("Replication TLS setup error",),
}
"""Code of a message -> words of which any is in this message alone."""

_AHEAD = re.compile(rf"changes from ({UUID.pattern})", re.IGNORECASE)
_DETAIL = re.compile(r"(?<!\w)(\w*(?:_ranges?|_uuid|domain_uuid)): (\{[^}]*\}|[^|\s]+)")
_RANGE = re.compile(rf"({UUID.pattern}): ([0-9]{{32}}) (?:--?[0-9]+)?-> ([0-9]{{32}})", re.IGNORECASE)
_LONGEST = 2000


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None


def _read(line: str) -> tuple[datetime | None, str, str] | None:
    """Time, severity and words of a line; None if it is no line of such a log."""
    if line.startswith("{"):
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return None
        fields = given.get("fields", given) if isinstance(given, Mapping) else None
        level = str(given.get("level", "")).upper() if isinstance(given, Mapping) else ""
        if not isinstance(fields, Mapping) or level not in _SEVERITIES:
            return None
        more = [f" | {name}: {value}" for name, value in fields.items() if name != "message" and isinstance(value, str)]
        at = given.get("timestamp")
        return (
            _moment(at if isinstance(at, str) else None),
            _SEVERITIES[level],
            f"{fields.get('message', '')}{''.join(more)}",
        )
    found = _TREE.match(line)
    if not found:
        return None
    return _moment(found["at"]), _SEVERITIES[found["level"].upper()], found["text"]


def read_log(piece: Piece) -> Parsed:
    """The messages that say something of replication, and whatever is an error or a warning."""
    rows: list[dict[str, Any]] = []
    rejects: list[Reject] = []
    ours: dict[int, dict[str, tuple[str, str]]] = {}
    count, at = 0, piece.offset
    for raw in piece.data.split(b"\n"):
        line, here = raw.decode("utf-8", "backslashreplace").strip("\r"), at
        at += len(raw) + 1
        if not line.strip():
            count += here < piece.offset + len(piece.data)
            continue
        count += 1
        said = _read(line)
        if said is None:
            rejects.append(Reject(here, "not a line of this log", excerpt(line, SECRETS)))
            continue
        when, severity, text = said
        code = next((code for code, words in MEANINGS.items() if any(one in text for one in words)), None)
        numbers = _numbers(text)
        ours = {here: own} if (own := _own_vector(numbers)) else ours
        if code is None and not numbers and severity not in _BAD:
            continue
        rows.append(
            {
                "offset": here,
                "at": when,
                "severity": severity,
                "code": code or (None if severity in _BAD and not numbers else "ranges"),
                "origin": ahead[1].lower() if code == "clock_ahead" and (ahead := _AHEAD.search(text)) else None,
                "numbers": list(numbers.items()),
                "text": excerpt(text, SECRETS, 200) if len(text) > _LONGEST else SECRETS.redact(text)[:_LONGEST],
            }
        )
    facts: dict[str, Any] = {"messages": len(rows)}
    if times := [row["at"].isoformat(timespec="seconds").replace("+00:00", "Z") for row in rows if row["at"]]:
        facts["time"] = {"min": min(times), "max": max(times)}
    made = {"messages": tables.table("messages", rows)} if rows else {}
    if ours:
        made["vectors"] = tables.table("vectors", _vector(piece.source.server, ours))
    return Parsed(count, rejects, made, facts)


_OURS = "supplier_ranges "


def _own_vector(numbers: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What the server of the log claims: the ranges that it compared as the supplier. Whose the consumer's are no line says."""
    told = {name.removeprefix(_OURS): value for name, value in numbers.items() if name.startswith(_OURS)}
    return {origin: (ends[0], ends[1]) for origin, value in told.items() if len(ends := value.split(" -> ")) == 2}


def _vector(server: str, ours: Mapping[int, Mapping[str, tuple[str, str]]]) -> list[dict[str, Any]]:
    """Its rows: those of the last line alone, for a log has one every few seconds."""
    return [
        {
            "offset": at,
            "kind": "server",
            "holder": server,
            "origin": origin,
            "min": f"{low}-{origin}",
            "max": f"{high}-{origin}",
        }
        for at, ranges in ours.items()
        for origin, (low, high) in sorted(ranges.items())
    ]


def _numbers(text: str) -> dict[str, str]:
    """The ranges and ids that a message names: `lag_range <uuid>` -> `<from> -> <to>`."""
    found: dict[str, str] = {}
    for name, value in _DETAIL.findall(text):
        if value.startswith("{"):
            found |= {f"{name} {origin.lower()}": f"{low} -> {high}" for origin, low, high in _RANGE.findall(value)}
        elif UUID.fullmatch(value):
            found[name] = value.lower()
    return found


def _is_log(head: bytes, name: str) -> bool:
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    if first.lstrip().startswith(b"{"):
        return _read(first.decode("utf-8", "replace").strip()) is not None and b'"level"' in first
    return bool(_LIKE_TREE.match(first.lstrip()))


LOG = Format("kanidm.log", _is_log, lambda: read_log, LINES, splittable=True, empty={"messages": 0}, evidence="log")
