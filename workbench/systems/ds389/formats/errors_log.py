"""The errors log: what the server says of its sessions, of changes it took as already seen, and of its own life.

`[time] - LEVEL - part - part - text`, each line by itself; lines without a time stamp continue the message above. Most
lines of interest are written only at the replication log level (8192), and most lines of that level are of no interest,
so lines are filtered as columns and only what may mean something is read one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import ACCESS_LOG_SWITCHES, LINES, OFF, REMOVED, ROOM, START, Format, Parsed, Piece
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.formats.errors_meanings import MEANINGS, STEPS, Meaning
from workbench.systems.ds389.formats.log_kinds import address_in, is_pretty, kind_of
from workbench.systems.ds389.formats.log_lines import Column, Lines, Objects, Room
from workbench.systems.ds389.formats.log_times import (
    NO_TIME,
    Backwards,
    first_time,
    iso_time,
    json_time,
    stamps,
    time_facts,
)
from workbench.systems.ds389.formats.values import SUSPECT, suffix_named
from workbench.systems.ds389.secrets import SECRETS, harmless_start
from workbench.tables import table

_LONGEST_TEXT = 500
_LONGEST_LINE = 1 << 16  # no message of the server is longer; patterns need not be tried on megabytes

_SEVERITIES = {
    "DEBUG": "debug",
    "INFO": "info",
    "NOTICE": "notice",
    "WARN": "warning",
    "WARNING": "warning",
    "ERR": "error",
    "ERROR": "error",
    "CRIT": "critical",
    "CRITICAL": "critical",
    "ALERT": "critical",
    "EMERG": "critical",
    "EMERGENCY": "critical",
}
_TITLES = 2000
"""The title lines are the first of a file, and short."""

_TIME_ZONE = re.compile(
    rb"(?:\[\d\d/[A-Z][a-z]{2}/\d{4}:|\d{4}-\d\d-\d\dT)\d\d:\d\d:\d\d(?:\.\d{1,9})? ([+-]\d{4})", re.ASCII
)
"""Of the first line with a time: the zone of the server's clock."""
_LMDB_VERSION = re.compile(rb"389-Directory\\?/(?:[3-9]|[1-9]\d)\.")
"""In the title lines: a version that keeps its data in LMDB unless told otherwise."""

_BAD = {"warning", "error", "critical"}

# `DEBUG - NSMMReplicationPlugin - changelog program - agmt="cn=a" (host:389): CSN ...`; before 1.3.6 without the level.
# A part is one word or a known phrase: a text may hold ` - ` too. Since 3.2 lines of a session name it: `sid="BceaQup4UPe   3"`.
_AGREEMENT = r'\(?agmt="(?:[^"\\]|\\.)*" \([^)]*\)\)?'
_PARTS = re.compile(
    rf"(?:- (?P<level>[A-Z]+) - )?"
    rf"(?P<parts>(?:(?:[\w.-]*|changelog program|process postop| *|(?:conn=\d+ op=-?\d+)? ?csn=[0-9a-fA-F]{{20}}"
    rf"|sid=\"[^\"]*\") - "
    rf"|{_AGREEMENT}(?: - |: ))*(?:(?=\w{{0,80}}_)\w{{1,80}}(?:: | (?={_AGREEMENT})))?(?:{_AGREEMENT}: )?)(?P<text>.*)",
    re.DOTALL,
)
_LINK = re.compile(r'agmt="cn=((?:[^"\\]|\\.)*)"')
_FUNCTION = re.compile(r"(?:^|(?<= - ))([A-Za-z_][\w ]*?)(?: - |: | (?=\(?agmt=))")
_COUNTER = re.compile(r"(\w+)=(-?\d+)")
_PART_CSN = re.compile(r"csn=([0-9a-fA-F]{20}) - ")

_SIGNS = sorted({sign for meaning in [*MEANINGS.values(), *STEPS.values()] for sign in meaning.signs})
_LEVEL_SIGNS = [rf"\] - (?:{'|'.join(word for word, severity in _SEVERITIES.items() if severity in _BAD)}) - "]
_OF_INTEREST = "|".join([*_LEVEL_SIGNS, *map(re.escape, _SIGNS)])

# Older servers print only the sentence of the result (that of libldap). Of these results alone the supplier goes on.
_RESULT_CODES = {
    "No such attribute": 16,
    "Undefined attribute type": 17,
    "Constraint violation": 19,
    "Type or value exists": 20,
    "Invalid syntax": 21,
    "No such object": 32,
    "Invalid DN syntax": 34,
    "Entry is a leaf": 35,
    "Insufficient access": 50,
    "Naming violation": 64,
    "Object class violation": 65,
    "Operation not allowed on non-leaf": 66,
    "Operation not allowed on RDN": 67,
    "Already exists": 68,
    "Cannot modify object class": 69,
}
NO_ACCESS_LOG = "disabling access and audit logging"
"""What the server says as it ends its access log, for its disk is low."""
_OUTCOMES = {"already_seen": "dropped", "cancelled": "cancelled", "skipped_by_supplier": "skipped"}


class ErrorsLogReader:
    """Reads errors logs. Remembers from piece to piece a JSON object over several lines, and the latest time so far."""

    def __init__(self) -> None:
        self._backwards = Backwards()
        self._objects = Objects()
        self._room = Room()

    def __call__(self, piece: Piece) -> Parsed:
        lines = Lines(piece, self._room)
        rows = _Rows()
        times, mixed = np.zeros(0, np.int64), False
        if self._objects.any_in(lines):
            times = self._read_json(lines, piece.ended, rows)
            lines.usable &= self._objects.text
            mixed = bool(lines.usable.any())
        if lines.usable.any():
            times = np.concatenate((times, _read_text(lines, rows)))
        facts: dict[str, Any] = {"codes": dict(sorted(rows.codes.items()))} if rows.codes else {}
        if switches := _access_log_switches(rows.messages):
            facts[ACCESS_LOG_SWITCHES] = switches
        if not mixed and (back := self._backwards(times)):
            facts |= back
        if b"dbmdb_" in piece.data or (piece.offset == 0 and _LMDB_VERSION.search(piece.data[:_TITLES])):
            facts["storage"] = {"lmdb": 1}
        if piece.offset == 0 and (address := address_in(piece.data[:_TITLES])):
            facts["addresses"] = {address: 1}
        if piece.offset == 0 and (zone := _TIME_ZONE.search(piece.data[: _TITLES * 4])):
            facts["zones"] = {zone[1].decode(): 1}
        return Parsed(len(lines), lines.rejects, rows.tables(), {**facts, **time_facts(times)})

    def _read_json(self, lines: Lines, ended: bool, rows: _Rows) -> Column:
        times = []
        for offset, value in self._objects.read(lines, ended):
            message, subsystem, severity = value.get("msg"), value.get("subsystem"), value.get("severity")
            if isinstance(message, str) and isinstance(severity, str):
                times.append(json_time(value.get("local_time")))
                rows.read(
                    offset, times[-1], f"- {severity.upper()} - {subsystem or ''} - {message.rstrip()}"[:_LONGEST_LINE]
                )
            elif "header" not in value:
                lines.refuse_at(offset, "JSON object that is no line of an errors log")
        return np.array(times, np.int64)


def _access_log_switches(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """When the server ended its access log, for its disk was low, and when it wrote one again: there was room, or it started."""
    found = []
    for row in messages:
        off = row["code"] == "disk_low" and NO_ACCESS_LOG in row["text"]
        if row["at"] and (off or row["code"] in ("disk_room", "starting")):
            found.append(f"{iso_time(row['at'])}/{OFF if off else ROOM if row['code'] == 'disk_room' else START}")
    return found


def _read_text(lines: Lines, rows: _Rows) -> Column:
    times, begin = stamps(lines)
    if not len(lines):
        return times
    ends = pa.py_buffer(np.append(lines.starts, lines.ends[-1]))
    whole = pa.Array.from_buffers(pa.large_binary(), len(lines), [None, ends, pa.py_buffer(lines.buffer)])
    marked = pc.match_substring_regex(whole, _OF_INTEREST).to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(marked & lines.usable & (begin > 0))
    texts = lines.cut(begin[chosen], lines.ends[chosen])
    places = lines.offset(lines.starts[chosen]).tolist()
    for offset, at, raw in zip(places, times[chosen].tolist(), texts, strict=True):
        rows.read(offset, at, raw[:_LONGEST_LINE].decode("utf-8", "ignore"))
    return times


class _Rows:
    """The rows of the tables, as they are read."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()
        self._lines: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self._applied: list[dict[str, Any]] = []
        self._operations: list[dict[str, Any]] = []

    def tables(self) -> dict[str, pa.Table]:
        """Evidence tables that have rows."""
        suspects = pc.match_substring_regex(pa.array(self._lines, pa.string()), SUSPECT)
        for index in np.flatnonzero(suspects.to_numpy(zero_copy_only=False)).tolist():
            _make_harmless(self.messages[index])
        for row in self.messages:
            row["text"] = row["text"][:_LONGEST_TEXT]
        found = {"messages": self.messages, "applied": self._applied, "operations": self._operations}
        return {name: table(name, rows) for name, rows in found.items() if rows}

    def read(self, offset: int, time: int, line: str) -> None:
        """One line, from behind its time stamp."""
        head = _PARTS.match(line)
        assert head, "every part of the pattern is optional"
        text, parts = head["text"], head["parts"]
        functions = _FUNCTION.findall(parts)
        function = functions[-1] if functions else None
        severity = _SEVERITIES.get(head["level"] or "")
        at = None if time == NO_TIME else time
        for step, meaning in STEPS.items():
            if found := _says(meaning, text, function):
                self.codes["pending_" + step] += 1
                self._step(offset, at, step, found["csn"].lower(), None)
                return
        code, found = next(
            ((code, found) for code, meaning in MEANINGS.items() if (found := _says(meaning, text, function))),
            (None, None),
        )
        if code is None and severity not in _BAD:
            return
        named = {name: value for name, value in found.groupdict().items() if value} if found else {}
        link = _LINK.search(line)
        name = link[1] if link else None
        position = named.pop("csn", "").lower() or None
        if not position and (part := _PART_CSN.search(parts)):
            position = part[1].lower()
        origin = str(int(named.pop("origin"))) if "origin" in named else origin_of(position) if position else None
        if "counters" in named:
            named.update(_COUNTER.findall(named.pop("counters")))
        connection = f"{named['conn']}/{named['op']}" if "conn" in named and "op" in named else None
        self.codes[code or f"other_{severity}"] += 1
        self.messages.append(
            {
                # A task on a changelog may name the replica by its unique name instead.
                "suffix": suffix_named(named["suffix"]) if "=" in named.get("suffix", "") else None,
                "offset": offset,
                "at": at,
                "severity": severity,
                "code": code,
                "function": function,
                "link": name,
                "origin": origin,
                "position": position,
                "numbers": list(named.items()),
                "text": line[head.start("parts") :],
            }
        )
        self._lines.append(self.messages[-1]["text"])
        if code in _OUTCOMES:
            error = named.get("error")
            self._applied.append(
                {
                    "offset": offset,
                    "evidence": "errors_log",
                    "outcome": _OUTCOMES[code],
                    "origin": origin,
                    "position": position,
                    "at": at,
                    "code": int(error) if error else _RESULT_CODES.get(named.get("result", "")),
                    "connection": connection,
                    "link": name,
                }
            )
        if code == "cancelled" and position:
            self._step(offset, at, "abort", position, connection)

    def _step(self, offset: int, at: int | None, step: str, position: str, connection: str | None) -> None:
        row = {"offset": offset, "origin": origin_of(position), "position": position, "step": step, "at": at}
        self._operations.append({**row, "connection": connection})


def _make_harmless(row: dict[str, Any]) -> None:
    """Takes the secrets out of a row. What was cut out of a text goes where it went: alone it shows no name before it."""
    text = row["text"] = SECRETS.redact(row["text"])
    row["link"] = row["link"] and (row["link"] if row["link"] in text else SECRETS.redact(row["link"]))
    row["numbers"] = [(key, value if value in text else REMOVED) for key, value in row["numbers"]]


def _says(meaning: Meaning, text: str, function: str | None) -> re.Match[str] | None:
    for sign in meaning.signs:  # a loop, not any(): this runs several times for each line of interest
        if sign in text:
            return meaning.pattern.match(text) if meaning.function in (function or "") else None
    return None


def _is_errors_log(head: bytes, name: str) -> bool:
    return kind_of(head, name) == "errors" and not is_pretty(head)


def _is_pretty_errors_log(head: bytes, name: str) -> bool:
    return kind_of(head, name) == "errors" and is_pretty(head)


ERRORS_LOG = Format(
    "ds389.errors-log",
    _is_errors_log,
    ErrorsLogReader,
    LINES,
    splittable=True,
    begins=first_time,
    evidence="errors_log",
    excerpt=harmless_start,
)

ERRORS_LOG_PRETTY = Format(
    "ds389.errors-log",
    _is_pretty_errors_log,
    ErrorsLogReader,
    LINES,
    variant="pretty",
    begins=first_time,
    evidence="errors_log",
    excerpt=harmless_start,
)
"""The same with nsslapd-errorlog-log-format json-pretty: its objects cross the borders of pieces."""
