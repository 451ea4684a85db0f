"""The log of a program, and what the registry printed: lines about replication, and whatever is an error.

`2026/11/20 14:52:18 [ERROR] physrep: ...`, in UTC; lines of the registry have no time. Most lines of a busy program are of
no interest, so they are filtered as a column, and only what may mean something is read one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece
from workbench.safety import excerpt
from workbench.systems.comdb2.formats.program_meanings import MEANINGS
from workbench.systems.comdb2.lsn import LARGEST, Lsn, lsn_text, order_key
from workbench.systems.comdb2.naming import node_name
from workbench.systems.comdb2.secrets import SECRETS

_LINE = re.compile(
    r"(?:(?P<at>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)? )?\s*"
    r"(?:\[(?P<level>DEBUG|INFO|WARN|WARNING|ERROR|FATAL|USER)\] )?(?P<text>.*)",
    re.DOTALL,
)
_SEVERITIES = {"DEBUG": "debug", "INFO": "info", "USER": "info", "WARN": "warning", "WARNING": "warning"}
_SEVERITIES |= {"ERROR": "error", "FATAL": "critical"}
_LEVELS = r"\[(?:WARN|WARNING|ERROR|FATAL)\] "
_OF_INTEREST = "|".join([_LEVELS, *sorted({re.escape(meaning.sign) for meaning in MEANINGS.values()})])
_TIMED = re.compile(rb"^[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} ", re.MULTILINE)
_OURS = re.compile(rb"physrep|comdb2|__rep_|tranlog|log-truncate")
_PART = re.compile(r"(physrep_register_replicant|physrep|__rep_dorecovery|comdb2_replicated_truncate|tranlogNext)\b")
_SQL = re.compile(r"\b(select|insert|update|delete|with recursive|exec procedure|create|alter)\b.*", re.I | re.DOTALL)
_LONGEST_LINE = 1 << 12  # no line that means something is longer, but for queries, of which the text is left out
_ENDS = 1 << 16
_LONGEST_TEXT = 300


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC) if text else None
    except ValueError:
        return None


def _lsn(text: str) -> Lsn | None:
    file, _, offset = text.partition(":")
    found = int(file), int(offset)
    return found if max(found) <= LARGEST else None


def _message(at: int, line: str) -> dict[str, Any]:
    head = _LINE.fullmatch(line)
    assert head, "every part of the pattern is optional"
    text = head["text"]
    code, found = next(
        ((code, found) for code, one in MEANINGS.items() if one.sign in text and (found := one.pattern.search(text))),
        (None, None),
    )
    named = {name: value for name, value in found.groupdict().items() if value is not None} if found else {}
    if "file" in named:
        named["lsn"] = f"{named.pop('file')}:{named.pop('offset')}"
    lsn = _lsn(named.pop("lsn")) if "lsn" in named else None
    if "source_lsn" in named and (other := _lsn(named.pop("source_lsn"))):
        named |= {"source_lsn": lsn_text(other), "ahead": "true" if lsn and lsn >= other else "false"}
    if "node_database" in named:
        named["node"] = node_name(named.pop("node_database"), named.pop("node_host"))
    if "sources" in named:
        named["sources"] = ",".join(re.findall(r"[^\s',]+", named["sources"]))
    link = node_name(named.pop("database"), named.pop("host")) if "host" in named else None
    part = _PART.match(text)
    return {
        "offset": at,
        "at": _time(head["at"]),
        "severity": _SEVERITIES.get(head["level"] or ""),
        "code": code,
        "function": part[1] if part else None,
        "link": link and SECRETS.redact(link),
        "position": order_key("", *lsn) if lsn else None,
        "numbers": [(name, SECRETS.redact(value)) for name, value in named.items()],
        "text": SECRETS.redact(_without_sql(code, text))[:_LONGEST_TEXT],
    }


def _without_sql(code: str | None, text: str) -> str:
    """The text without statements, which may quote data: those of known lines are the program's own."""
    return text if code and code != "registry_query" else _SQL.sub(r"\1 …", text)


def read(piece: Piece) -> Parsed:
    """Lines that say something of replication, and warnings and errors; all others are accepted."""
    data = np.frombuffer(piece.data, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1) if len(ends) else np.array([], np.int64)
    bounds = pa.py_buffer(np.append(starts, len(data)).astype(np.int64))
    lines = pa.Array.from_buffers(pa.large_binary(), len(starts), [None, bounds, pa.py_buffer(piece.data)])
    chosen = np.flatnonzero(pc.match_substring_regex(lines, _OF_INTEREST).to_numpy(zero_copy_only=False))
    rows = [
        _message(
            piece.offset + int(starts[one]),
            _text(piece.data[starts[one] : min(ends[one], starts[one] + _LONGEST_LINE)]),
        )
        for one in chosen
    ]
    blank = pc.match_substring_regex(lines, r"^\s*$")
    facts: dict[str, Any] = {}
    if codes := Counter(row["code"] for row in rows if row["code"]):
        facts["codes"] = dict(sorted(codes.items()))
    if times := [stamp for one in (0, -1) if len(starts) and (stamp := _stamp(piece.data, _TIMED, one))]:
        facts["time"] = {"min": min(times), "max": max(times)}
    made = {"messages": tables.table("messages", rows)} if rows else {}
    return Parsed(len(starts) - (pc.sum(blank).as_py() or 0), [], made, facts)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")


def _stamp(data: bytes, timed: re.Pattern[bytes], one: int) -> str | None:
    """The first time in the data, or (-1) the last one, within its first or last kilobytes."""
    found = timed.findall(data[:_ENDS] if one == 0 else data[-_ENDS:])
    stamp = _time(found[one].decode().strip()) if found else None
    # Not %Y: of a damaged year, as 0026, it leaves the zeros out.
    return stamp.isoformat(timespec="seconds").replace("+00:00", "Z") if stamp else None


def _begins(head: bytes) -> str | None:
    return _stamp(head, _TIMED, 0)


def _is_log(head: bytes, name: str) -> bool:
    lines = [line for line in head.split(b"\n") if line.strip()][:50]
    timed = sum(bool(_TIMED.match(line)) for line in lines)
    registry = sum(line.startswith(b"physrep_") and b": " in line[:80] for line in lines)
    return (timed + registry) * 2 > len(lines) and bool(_OURS.search(head))


PROGRAM_LOG = Format(
    "comdb2.program-log",
    _is_log,
    lambda: read,
    LINES,
    splittable=True,
    begins=_begins,
    excerpt=lambda unit: excerpt(unit, SECRETS),
)
