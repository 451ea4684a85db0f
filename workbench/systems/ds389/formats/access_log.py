"""The access log: which changes a server applied, refused, or acknowledged without applying them.

`[time] conn=10 op=7 RESULT err=0 tag=105 nentries=0 ... etime=0.0035 csn=6b005c13000000030000` is evidence for a
change; its target stands on the ADD, MOD, DEL or MODRDN line of the same connection and operation. A result of an
update on a replication connection *without* csn= is a change that the server took as already seen and dropped.

That holds for the text form. Results of the JSON forms never have a csn (3.1 and 3.2), so its absence proves nothing there.
A change that came from a supplier brings its CSN in a control of the request (`update_control`), which says which change
the server answered for, but not whether it applied it or had it already: `Acknowledged` tells them apart where it can.

Results of ordinary clients are nearly all of a large log, so lines are told apart as columns; Python looks only at
lines that begin or end a connection and at those whose tail is unusual (notes, error texts, names).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from workbench.model import LINES, Format, Parsed, Piece
from workbench.systems.ds389.csn import csn_or_none, origin_of
from workbench.systems.ds389.formats.access_logins import Logins
from workbench.systems.ds389.formats.access_operations import (
    ACKNOWLEDGED,
    CONNECT,
    DISCONNECT,
    PRINTED,
    SESSION,
    SILENT,
    UPDATES,
    Batch,
    Connections,
    nibbles,
)
from workbench.systems.ds389.formats.acknowledged import Acknowledged, received_csn
from workbench.systems.ds389.formats.agreement_deletions import Deletion, Deletions, deletion, deletions
from workbench.systems.ds389.formats.log_kinds import STAMP, is_title, kind_of
from workbench.systems.ds389.formats.log_lines import Column, Lines, Objects, Room, stands
from workbench.systems.ds389.formats.log_times import (
    NO_TIME,
    Backwards,
    first_time,
    json_time,
    span_of,
    stamps,
    time_facts,
)
from workbench.systems.ds389.formats.unrecorded import UNRECORDED, Unrecorded
from workbench.systems.ds389.secrets import SECRETS, harmless_start

_UPDATE_TAGS = np.array(sorted(UPDATES))

# Start and end of a replication session (5.0 and since 7.1), and one entry of a total update
_SESSION_OIDS = {f"2.16.840.1.113730.3.5.{last}" for last in (3, 5, 6, 12)}
_SESSION_OID = re.compile(rb'EXT oid="2\.16\.840\.1\.113730\.3\.5\.(?:3|5|6|12)"')
_FILLING_OID = "2.16.840.1.113730.3.5.6"
_OF_ONE_FILLING = 60_000_000
"""Microseconds between two entries of one total update at most; longer, and they are taken for two."""

# What may stand behind `tag=N` of a result. Operation notes come before the CSN; what comes behind it is either
# fields of known names or free text of the server (" - unknown object class ..."), which may quote anything.
_RESULT_TAIL = re.compile(
    rb" nentries=-?\d+(?P<times>(?: (?:wqtime|wtime|writetime|optime|etime)=[\d.]+)*)(?: wbusy=-?\d+/-?\d+ wqdepth=-?\d+)?"
    rb'(?: notes=\S+)?(?: details="[^"]*")?(?: csn=(?P<csn>\S*))?'
    rb'(?P<known>(?: (?:pr_idx|pr_cookie)=-?\d+| (?:dn|sid|authzid)=".*"| \w+=\d+\.\d+)*(?: - .*|, .*)?\s*)?'
)
_INTERNAL = re.compile(
    rb"conn=(?:Internal\((?P<none>\d+)\)|(?P<conn>\d+) \(Internal\)) op=(?P<op>-?\d+\(\d+\)\(\d+\)) (?P<rest>.*)"
)
_INTERNAL_RESULT = re.compile(rb"RESULT err=(-?\d{1,9}) tag=\d+(.*)")
_PROXY = b'" authzid="'
_WORDS = {b"ADD": "add", b"MOD": "modify", b"DEL": "delete", b"MODRDN": "modrdn"}
_JSON_WORDS = {"ADD": "add", "MODIFY": "modify", "DELETE": "delete", "MODRDN": "modrdn"}

_CUT = "the last line was cut"
_LINE = re.compile(STAMP + rb" conn=(?:\d+|Internal\(\d+\)) (?P<rest>.+)", re.DOTALL)
_OPERATION = re.compile(rb"(?:\(Internal\) )?op=-?\d+(?:\(\d+\))* (?P<said>.*)", re.DOTALL)
_WHOLE_RESULT = re.compile(rb"RESULT err=-?\d+ tag=(?P<tag>\d+) .*?(?: csn=(?P<csn>[0-9a-fA-F]{20})(?![0-9a-fA-F]).*)?")


class AccessLogReader:
    """Reads the access logs of one server in time order; remembers open connections and requests without result."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._acknowledged = Acknowledged()
        self._objects = Objects()
        self._room = Room()
        self._internal: dict[str, tuple[str, str | None]] = {}
        self._changed: list[int] = []
        self._filling: list[int] = []
        self._logins = Logins()
        self._deletions = Deletions()
        self._unrecorded = Unrecorded()
        self._backwards = Backwards()

    def __call__(self, piece: Piece) -> Parsed:
        lines, mixed = Lines(piece, self._room), False
        if self._objects.any_in(lines):
            batch, times = self._read_json(lines, piece.ended)
            lines.usable &= self._objects.text
            if mixed := bool(lines.usable.any()):
                text, written = self._read_text(lines)
                batch, times = batch.merged(text), np.concatenate((times, written))
        else:
            batch, times = self._read_text(lines)
        self._acknowledged.judge(batch, times)
        applied, facts, targets, replicated = self._connections.settle(batch, piece.ended)
        if unrecorded := self._unrecorded.read(batch, targets, replicated):
            facts = {**facts, UNRECORDED: unrecorded}
        self._acknowledged.seen(facts["by_origin"])
        if silent := self._silent(sorted([*batch.settings, *_settings(lines)]), times):
            facts = {**facts, "silent": [*facts.get("silent", ()), *silent]}
        if not mixed and (back := self._backwards(times)):
            facts = {**facts, **back}
        if unlinked := self._deletions.read([*batch.unlinked, *deletions(lines)], batch, piece.ended):
            facts = {**facts, "unlinked": unlinked}
        if filling := self._filled(batch.filling, piece.ended):
            facts = {**facts, "filling": filling}
        tables = {"applied": applied} if applied.num_rows else {}
        return Parsed(
            len(lines),
            lines.rejects,
            tables,
            {**facts, **self._logins.facts(piece.ended), **time_facts(times)},
        )

    def _filled(self, entries: list[int], ended: bool) -> list[str]:
        """From the first to the last entry of each total update of which no more can come."""
        found = np.sort(np.array([*self._filling, *entries], np.int64))
        runs = np.split(found, np.flatnonzero(np.diff(found) > _OF_ONE_FILLING) + 1) if len(found) else []
        self._filling = [] if ended or not runs else runs.pop()[[0, -1]].tolist()
        return [span_of(run) for run in runs]

    def _silent(self, changed: list[int], times: Column) -> list[str]:
        """From each change of the server's settings to where the log went on: what was done in between may be in no line.

        Not to the next line: other threads go on writing until a change takes effect.
        """
        known = np.sort(times[times != NO_TIME])
        found, still = [(at, at + _TAKES_EFFECT) for at in changed], []
        for at in [*self._changed, *changed]:
            after = known[np.searchsorted(known, at + _TAKES_EFFECT) :]
            if len(after):
                found.append((at, int(after[0])))
            else:
                still.append(at)
        self._changed = still
        return [span_of(np.array(ends)) for ends in found]

    def _read_text(self, lines: Lines) -> tuple[Batch, Column]:
        if lines.unfinished and lines.usable[-1] and _misleads(lines.raw(len(lines) - 1)):
            lines.reject(len(lines) - 1, _CUT)
        times, begin = stamps(lines)
        batch = Batch()
        for line in np.flatnonzero(lines.usable & (begin == 0)).tolist():
            raw = lines.raw(line)
            if not is_title(raw):
                first = line == 0 and lines.offset(lines.starts[0]) == 0 and raw[:1] != b"["
                lines.reject(line, "begins inside a line" if first else "no time stamp: not a line of an access log")
        rows = np.flatnonzero(lines.usable & (begin > 0))
        at = begin[rows]
        conn, behind = lines.number(at + 5, 18)
        word = lines.eight(at)
        numbered = stands(word, b"conn=") & (behind > at + 5) & (lines.buffer[behind] == ord(" "))
        inside = stands(word, b"conn=Int") | (numbered & (lines.buffer[behind + 1] == ord("(")))
        for line in rows[~numbered & ~inside].tolist():
            lines.reject(line, "no connection number: not a line of an access log")
        self._read_internal(lines, rows[inside], times, batch)
        plain = numbered & ~inside
        if not plain.all():
            rows, conn, behind = rows[plain], conn[plain], behind[plain]
        at = behind + 1
        word = lines.eight(at)
        op, behind = lines.signed(at + 3, 10)
        operation = stands(word, b"op=") & (behind > at + 3) & (lines.buffer[behind] == ord(" "))
        said = behind + 1
        phrase = np.where(operation, lines.eight(said), 0)
        result = np.flatnonzero(stands(phrase, b"RESULT "))
        _read_results(lines, batch, rows[result], times, conn[result], op[result], said[result])
        _read_requests(lines, batch, rows, conn, op, said, phrase)
        self._logins.read_text(lines, rows, conn, op, phrase, said, times)
        opened = np.flatnonzero(stands(word, b"fd="))
        opened = opened[np.array([b" connection from " in lines.raw(line) for line in rows[opened].tolist()], bool)]
        closed = np.flatnonzero(stands(phrase, b"fd="))
        session = np.flatnonzero(stands(phrase, b"EXT oid="))
        session = session[np.array([_is_session(lines.raw(line)) for line in rows[session].tolist()], bool)]
        entries = [line for line in rows[session].tolist() if _FILLING_OID.encode() in lines.raw(line)]
        batch.filling = times[entries][times[entries] != NO_TIME].tolist()
        kinds = np.repeat([CONNECT, DISCONNECT, SESSION], [len(opened), len(closed), len(session)])
        chosen = np.concatenate((opened, closed, session))
        batch.events = np.column_stack((lines.offset(lines.starts[rows[chosen]]), conn[chosen], kinds))
        offsets = lines.offset(lines.starts[rows[closed]])
        batch.closed = np.column_stack((offsets, times[rows[closed]], conn[closed], op[closed]))
        return batch, times

    def _read_internal(self, lines: Lines, rows: Column, times: Column, batch: Batch) -> None:
        """The server's own operations: plug-ins' updates have CSNs of their own, but the numbers of their cause."""
        for line in rows.tolist():
            raw = lines.raw(line)
            found = _INTERNAL.search(raw)
            if not found:
                lines.reject(line, "internal operation that cannot be read")
                continue
            where = f"{(found['conn'] or b'Internal(' + found['none'] + b')').decode()}/{found['op'].decode()}"
            word = found["rest"].split(b" ", 1)[0]
            if word in _WORDS:
                span = _target(found["rest"])
                self._begin_internal(where, _WORDS[word], span.decode() if span is not None else None)
            elif result := _INTERNAL_RESULT.fullmatch(found["rest"]):
                tail = _RESULT_TAIL.match(result[2])
                csn = tail["csn"] if tail else None
                if csn is not None and csn_or_none(csn.decode()) is None:
                    lines.reject(line, "csn= is no CSN")
                    continue
                offset = int(lines.offset(lines.starts[line]))
                self._end_internal(
                    batch, where, offset, int(times[line]), int(result[1]), csn.decode() if csn else None
                )

    def _begin_internal(self, where: str, operation: str, target: str | None) -> None:
        self._internal.pop(where, None)
        self._internal[where] = operation, SECRETS.redact(target) if target else target
        if len(self._internal) > 10_000:  # results that never came
            del self._internal[next(iter(self._internal))]

    def _end_internal(self, batch: Batch, where: str, offset: int, at: int, err: int, csn: str | None) -> None:
        operation, target = self._internal.pop(where, (None, None))
        if csn:
            batch.internal.append(
                {
                    "offset": offset,
                    "evidence": "access_log",
                    "outcome": "refused" if err else "applied",
                    "origin": origin_of(csn),
                    "position": csn.lower(),
                    "at": None if at == NO_TIME else at,
                    "code": err,
                    "operation": operation,
                    "target": target,
                    "connection": where,
                    "replicated": False,
                }
            )

    def _read_json(self, lines: Lines, ended: bool) -> tuple[Batch, Column]:
        batch, times = Batch(), []
        requests: list[tuple[int, int, int]] = []
        results: list[tuple[int, int, int, int, int, int, int, str]] = []
        events: list[tuple[int, int, int]] = []
        closed: list[tuple[int, int, int, int]] = []
        for offset, value in self._objects.read(lines, ended):
            at = json_time(value.get("local_time"))
            times.append(at)
            word, conn, op = value.get("operation"), _whole(value.get("conn_id")), _whole(value.get("op_id"))
            target = value.get("target_dn") if isinstance(value.get("target_dn"), str) else None
            if "header" in value and word is None:
                continue
            if not isinstance(word, str) or conn is None:
                lines.refuse_at(offset, "JSON object that is no line of an access log")
            elif word == "BIND":
                self._logins.read_json(value, conn, op, at)
            elif word == "RESULT":
                self._logins.read_json(value, conn, op, at)
                err, tag, csn = _whole(value.get("err")), _whole(value.get("tag")), value.get("csn")
                if err is None or tag is None or not (csn is None or (isinstance(csn, str) and csn_or_none(csn))):
                    lines.refuse_at(offset, "result without err, tag or with a csn that is no CSN")
                elif value.get("internal_op"):
                    self._end_internal(batch, _inside(value, conn), offset, at, err, csn)
                elif csn or tag in UPDATES:
                    received = self._acknowledged.answered(conn, op) or received_csn(value)
                    # A refusal is one without a CSN, too.
                    form = PRINTED if csn or (err and not received) else ACKNOWLEDGED if received else SILENT
                    number = -1 if op is None else op
                    results.append((offset, at, conn, number, err, tag, form, csn or received or ""))
            elif word in _JSON_WORDS:
                if value.get("internal_op"):
                    self._begin_internal(_inside(value, conn), _JSON_WORDS[word], target)
                elif op is not None:
                    self._acknowledged.asked(conn, op, received_csn(value))
                    requests.append((offset, conn, op))
                    if target == "cn=config" and word == "MODIFY" and at != NO_TIME:
                        batch.settings.append(at)
                    if word == "DELETE":
                        batch.unlinked.append(Deletion((offset, conn, op), deletion(at, target)))
                    batch.targets.append(target)
            elif word == "CONNECTION":
                events.append((offset, conn, CONNECT))
            elif word == "DISCONNECT":
                events.append((offset, conn, DISCONNECT))
                closed.append((offset, at, conn, -1 if op is None else op))
            elif word == "EXTENDED_OP" and value.get("oid") in _SESSION_OIDS:
                events.append((offset, conn, SESSION))
                if value["oid"] == _FILLING_OID and at != NO_TIME:
                    batch.filling.append(at)
        batch.events = np.array(events, np.int64).reshape(-1, 3)
        batch.closed = np.array(closed, np.int64).reshape(-1, 4)
        numbers = np.array(requests, np.int64).reshape(-1, 3)
        batch.request_offset, batch.request_conn, batch.request_op = numbers.T
        numbers = np.array([result[:7] for result in results], np.int64).reshape(-1, 7)
        batch.offset, batch.at, batch.conn, batch.op, batch.err, batch.tag = numbers.T[:6]
        batch.form = numbers[:, 6].astype(np.int8)
        batch.csn = np.array([result[7].encode() for result in results], "S20")
        batch.digits = nibbles(batch.csn)
        return batch, np.array(times, np.int64)


_TAKES_EFFECT = 2_000_000
"""Microseconds: until a change of the settings takes effect, other threads go on writing lines."""

_SETTING = b' MOD dn="cn=config"'


def _settings(lines: Lines) -> list[int]:
    """When the server's settings were changed, by lines of the text form: from then on its log may be silent.

    3.1 writes nothing at all where it is told to write JSON, and any version can be told to write no access log.
    """
    if _SETTING not in lines.data:
        return []
    times, _ = stamps(lines)
    chosen = [line for line in np.flatnonzero(times != NO_TIME).tolist() if _SETTING in lines.raw(line)]
    return [int(times[line]) for line in chosen]


def _is_session(raw: bytes) -> bool:
    return bool(_SESSION_OID.search(raw))


def _whole(value: Any) -> int | None:
    """An integer that a column holds; JSON may hold anything."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _inside(value: dict[str, Any], conn: int) -> str:
    inner = f"({value.get('op_internal_id')})({value.get('op_internal_nested_count')})"
    return f"{conn or 'Internal'}/{value.get('op_id')}{inner}"


def _target(said: bytes) -> bytes | None:
    """The DN of a request: up to the last quotation mark of its field, because the DN itself may hold some."""
    begin = said.find(b'dn="') + 4
    if said.startswith(b"MODRDN "):
        superior = said.rfind(b'" newsuperior="')
        end = said.rfind(b'" newrdn="', 0, superior if superior >= 0 else None)
    else:
        proxy = said.rfind(_PROXY)
        end = proxy if proxy >= 0 else said.rfind(b'"')
    return said[begin:end] if 4 <= begin <= end else None


def _read_requests(
    lines: Lines, batch: Batch, rows: Column, conn: Column, op: Column, said: Column, phrase: Column
) -> None:
    """ADD, MOD, DEL and MODRDN lines: their numbers and targets."""
    short = stands(phrase, b'ADD dn="') | stands(phrase, b'MOD dn="') | stands(phrase, b'DEL dn="')
    chosen = np.flatnonzero(short | stands(phrase, b"MODRDN d"))
    ends, begins = lines.ends[rows[chosen]], said[chosen]
    simple = short[chosen] & (lines.buffer[ends - 1] == ord('"')) & (ends > begins + 8)
    targets: list[Any] = lines.cut(begins + 8, ends - 1)
    if _PROXY in b"".join(targets):
        simple &= np.array([_PROXY not in target for target in targets], bool)
    odd = np.flatnonzero(~simple)
    for index, whole in zip(odd.tolist(), lines.cut(begins[odd], ends[odd]), strict=True):
        targets[index] = _target(whole)
    batch.targets = targets
    batch.request_offset = lines.offset(lines.starts[rows[chosen]])
    batch.request_conn, batch.request_op = conn[chosen], op[chosen]


def _read_results(
    lines: Lines, batch: Batch, rows: Column, times: Column, conn: Column, op: Column, said: Column
) -> None:
    """RESULT lines of updates or with a CSN. Lines that end in `etime=N` or `etime=N csn=X` are read as columns."""
    err, behind = lines.signed(said + 11, 9)
    tag, tail = lines.number(behind + 5, 9)
    good = lines.says(said + 7, b"err=") & (behind > said + 11) & lines.says(behind, b" tag=") & (tail > behind + 5)
    good &= lines.buffer[tail] == ord(" ")
    _, end = lines.signed(tail + 10, 10)
    usual = good & lines.says(tail, b" nentries=") & (end > tail + 10)
    # Which durations a server prints is a setting since 3.2; of logs of older ones the first is in no line.
    for word in (b" wqtime=", b" wtime=", b" optime=", b" etime="):
        here = lines.says(end, word)
        if here.any():
            end = np.where(here, lines.decimal(end + len(word)), end)
    ends = lines.ends[rows]
    csn = np.ascontiguousarray(lines.window(end + 5, 20)).view("S20").reshape(-1)
    digits = nibbles(csn)
    has = lines.says(end, b" csn=") & (ends == end + 25) & ((digits < 16).sum(axis=1, dtype=np.int8) == 20)
    usual &= here & (has | (ends == end))
    update = np.isin(tag, _UPDATE_TAGS)
    keep = usual & (has | update)
    csn = np.where(has, csn, b"").astype("S20")
    odd = np.flatnonzero(~usual)
    for index, rest in zip(odd.tolist(), lines.cut(tail[odd], ends[odd]), strict=True):
        line = int(rows[index])
        if not good[index]:
            lines.reject(line, "RESULT that cannot be read")
        elif not (found := _RESULT_TAIL.match(rest)):
            if update[index] or b" csn=" in rest:
                lines.reject(line, "RESULT that cannot be read")
        elif found["csn"] is not None:
            if csn_or_none(found["csn"].decode("utf-8", "replace")) is None:
                lines.reject(line, "csn= is no CSN")
            else:
                keep[index], csn[index] = True, found["csn"]
                digits[index] = nibbles(csn[index : index + 1])
        elif update[index]:
            # Something unknown behind the times may be a damaged csn=; without it the line would tell of a lost change.
            if found.end() < len(rest) or b" etime=" not in found["times"]:
                lines.reject(line, "RESULT of an update with something unknown in the place of its csn=")
            else:
                keep[index], csn[index] = True, b""
    batch.offset, batch.at = lines.offset(lines.starts[rows[keep]]), times[rows[keep]]
    batch.conn, batch.op, batch.err, batch.tag = conn[keep], op[keep], err[keep], tag[keep]
    batch.csn, batch.digits = csn[keep], digits[keep]
    batch.form = np.full(len(batch.csn), PRINTED, np.int8)


def _misleads(raw: bytes) -> bool:
    """True for a last line without its end that might say something else, or more, if it were whole."""
    if is_title(raw):
        return False
    if not (line := _LINE.fullmatch(raw)):
        return True
    said = _OPERATION.fullmatch(line["rest"])
    if not said:
        return line["rest"].startswith((b"op=", b"(")) or b"op=".startswith(line["rest"])
    rest = said["said"]
    if rest.startswith(b"RESULT "):
        result = _WHOLE_RESULT.fullmatch(rest)
        return not result or (result["csn"] is None and (int(result["tag"][:9]) in UPDATES or b" csn" in rest))
    words = (b"RESULT ", b"ADD dn=", b"MOD dn=", b"DEL dn=", b"MODRDN dn=", b"EXT oid=")
    if rest.startswith(words[1:]):
        whole = (
            rest.endswith(b'"') and b'" newsuperior="' in rest if rest.startswith(b"MODRDN") else rest.count(b'"') > 1
        )
        return not whole
    return any(word.startswith(rest) for word in words)


def _is_access_log(head: bytes, name: str) -> bool:
    return kind_of(head, name) == "access"


ACCESS_LOG = Format(
    "ds389.access-log",
    _is_access_log,
    AccessLogReader,
    LINES,
    begins=first_time,
    evidence="access_log",
    excerpt=harmless_start,
    empty={"results_with_csn": 0, "results_without_csn_on_replication": 0, "by_origin": {}},
)
