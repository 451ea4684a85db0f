"""Joins what an access log says line by line: results with their requests, both with the state of their connection.

A connection is one of replication once it has sent an extended operation of a replication session. Its number counts
from 1 again after each start of the server; "connection from" begins a new one. A Disconnect may stand before the
last results of its connection, so a connection known as one of replication stays known until its number comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import AHEAD_OF_CLOCK
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.formats.log_lines import Column
from workbench.systems.ds389.formats.log_times import NO_TIME, span_of
from workbench.systems.ds389.formats.values import SUSPECT
from workbench.systems.ds389.secrets import SECRETS
from workbench.tables import COLUMNS, TIME, table

if TYPE_CHECKING:
    from workbench.systems.ds389.formats.agreement_deletions import Deletion

UPDATES = {103: "modify", 105: "add", 107: "delete", 109: "modrdn"}
"""Result tags of LDAP, and what they are the result of."""

_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS["applied"].items()])

# Nothing under these names is ever replicated as a change. A supplier that pushes its schema sends `MOD dn="cn=schema"`
# on the connection of its session: a result without CSN that says nothing of a dropped change.
_NOT_REPLICATED = ("cn=schema", "cn=config", "cn=monitor")

# A session yields after 10,000 changes (its end is an extended operation) and has at most 1,000 more under way.
_LONGEST_SESSION = 20_000

# Requests whose result never comes (the server crashed) are forgotten, oldest first.
_MOST_OPEN = 200_000

CONNECT, SESSION, DISCONNECT = 1, 2, 3

PRINTED, SILENT, ACKNOWLEDGED, RECEIVED = 0, 1, 2, 3
"""How a result tells of its change: by the CSN that is printed behind it, or by the absence of one (text form); not at all
(JSON without a CSN); by the CSN that the request brought; by that, as the newest of its origin so far."""


@dataclass
class Batch:
    """What the lines of one piece say, as columns in the order of the lines.

    events    rows of (offset, connection, CONNECT | SESSION | DISCONNECT)
    requests  offset, connection and operation number of the updates, with the target as the server prints it
    results   the same of results that belong to updates or carry a CSN, with time, code, tag and CSN (20 bytes
              or empty), the hex digits of the CSN as numbers, and how the result tells of its change (PRINTED ...)
    settings  when the server's settings were changed (JSON forms; of the text form it is read with the lines)
    internal  finished rows of the server's own operations (logged at access log level 4 only)
    filling   when entries of a total update came
    unlinked  requests to delete agreements (JSON forms; of the text form they are read with the lines)
    closed    rows of (offset, time, connection, operation number) of the lines that tell the end of a connection
    """

    events: Column = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    request_offset: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    request_conn: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    request_op: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    targets: list[Any] = field(default_factory=list)
    offset: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    at: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    conn: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    op: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    err: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    tag: Column = field(default_factory=lambda: np.zeros(0, np.int64))
    csn: Column = field(default_factory=lambda: np.zeros(0, "S20"))
    digits: Column = field(default_factory=lambda: np.zeros((0, 20), np.uint8))
    form: Column = field(default_factory=lambda: np.zeros(0, np.int8))
    internal: list[dict[str, Any]] = field(default_factory=list)
    settings: list[int] = field(default_factory=list)
    filling: list[int] = field(default_factory=list)
    unlinked: list[Deletion] = field(default_factory=list)
    closed: Column = field(default_factory=lambda: np.zeros((0, 4), np.int64))

    def merged(self, other: Batch) -> Batch:
        """Both in the order of their lines: of a piece with lines of two forms."""
        both = Batch(internal=[*self.internal, *other.internal], settings=[*self.settings, *other.settings])
        both.filling = [*self.filling, *other.filling]
        both.unlinked = [*self.unlinked, *other.unlinked]
        both.closed = np.concatenate((self.closed, other.closed))
        both.events = np.concatenate((self.events, other.events))
        both.events = both.events[np.argsort(both.events[:, 0], kind="stable")]
        order = np.argsort(np.concatenate((self.request_offset, other.request_offset)), kind="stable")
        for name in ("request_offset", "request_conn", "request_op"):
            setattr(both, name, np.concatenate((getattr(self, name), getattr(other, name)))[order])
        targets = [*self.targets, *other.targets]
        both.targets = [targets[index] for index in order.tolist()]
        order = np.argsort(np.concatenate((self.offset, other.offset)), kind="stable")
        for name in ("offset", "at", "conn", "op", "err", "tag", "csn", "digits", "form"):
            setattr(both, name, np.concatenate((getattr(self, name), getattr(other, name)))[order])
        return both


def nibbles(csn: Column) -> Column:
    """The 20 hex digits of each CSN as numbers; 255 for anything else."""
    return _HEX[csn.view(np.uint8).reshape(len(csn), 20)]


_HEX = np.full(256, 255, np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


def _numbers(conn: Column, op: Column) -> Column:
    """Connections and operation numbers as one number each.

    Connection numbers from 2^31 on wrap; two connections that far apart are not open at one time.
    """
    return conn << 32 | op & 0xFFFFFFFF


class _Requests:
    """Updates that were asked for and have no result yet."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, str | None]] = {}

    def __deepcopy__(self, memo: Any) -> _Requests:
        other = _Requests()
        other._open = dict(self._open)
        return other

    def cut_off(self, batch: Batch) -> list[int]:
        """When connections ended in the middle of an update: the server may have made it, and wrote no result."""
        asked = np.concatenate((np.array(list(self._open), np.int64), _numbers(batch.request_conn, batch.request_op)))
        closed = _numbers(batch.closed[:, 2], batch.closed[:, 3])
        found = []
        for (offset, at, conn, _), key in zip(
            batch.closed[np.isin(closed, asked)].tolist(), closed[np.isin(closed, asked)].tolist(), strict=True
        ):
            begins = batch.events[
                (batch.events[:, 1] == conn) & (batch.events[:, 2] == CONNECT) & (batch.events[:, 0] < offset)
            ]
            since = begins[:, 0].max(initial=-1)
            again = _numbers(batch.request_conn, batch.request_op) == key
            asked_at = batch.request_offset[again & (batch.request_offset > since) & (batch.request_offset < offset)]
            last = asked_at.max(initial=since)
            answered = (_numbers(batch.conn, batch.op) == key) & (batch.offset > last) & (batch.offset < offset)
            if at != NO_TIME and (len(asked_at) or (since < 0 and key in self._open)) and not answered.any():
                found.append(at)
        return found

    def targets(self, batch: Batch, since: Column) -> pa.Array:
        """The target of each result: of the last request with its numbers, in this piece or in an earlier one.

        `since`: where the connection of the result began in this piece; what was asked before is of another one.
        """
        requests = len(batch.request_conn)
        key = np.concatenate((_numbers(batch.request_conn, batch.request_op), _numbers(batch.conn, batch.op)))
        order = np.lexsort((np.concatenate((batch.request_offset, batch.offset)), key))
        key, is_result = key[order], order >= requests
        again = key[1:] == key[:-1]
        answers = np.flatnonzero(again & is_result[1:] & ~is_result[:-1])
        result, request = order[answers + 1] - requests, order[answers]
        valid = batch.request_offset[request] > since[result]
        source = np.full(len(batch.conn), -1, np.int64)
        source[result[valid]] = request[valid]
        given = list(batch.targets)
        carried = np.array(list(self._open), np.int64)
        places = np.minimum(np.searchsorted(key, carried), max(len(key) - 1, 0))
        for number, place in zip(carried.tolist(), places.tolist(), strict=True):
            if len(key) and key[place] == number:  # the first line with these numbers is the answer, or another request
                _, target = self._open.pop(number)
                index = order[place] - requests
                if index >= 0 and since[index] < 0:
                    source[index] = len(given)
                    given.append(target)
        targets = _harmless(pa.array(given, pa.string()))
        begins = dict(batch.events[batch.events[:, 2] == CONNECT][:, [1, 0]].tolist())
        for number in [number for number, (conn, _) in self._open.items() if conn in begins]:
            del self._open[number]
        for place in np.flatnonzero(np.append(~again, len(key) > 0) & ~is_result).tolist():
            index = order[place]
            conn = int(batch.request_conn[index])
            if batch.request_offset[index] > begins.get(conn, -1):
                self._open[int(key[place])] = conn, targets[index].as_py()
        while len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]
        return targets.take(pa.array(source, mask=source < 0))


class Connections:
    """What is known of the connections of one server while its log goes by."""

    def __init__(self) -> None:
        self._replicates: dict[int, bool] = {}  # absent: its beginning was not seen, nor a session
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._requests = _Requests()

    def __deepcopy__(self, memo: Any) -> Connections:
        other = Connections()
        other._replicates = dict(self._replicates)
        other._waiting = {number: list(rows) for number, rows in self._waiting.items()}  # a row never changes
        other._requests = deepcopy(self._requests)
        return other

    def settle(self, batch: Batch, ended: bool) -> tuple[pa.Table, dict[str, Any], pa.Array, Column]:
        """(rows of `applied`, facts) of a batch and of earlier results that it decides on; the target of each of its results,
        and whether its connection is one of replication: 1, 0, or -1 where that is not known."""
        replicated, decides, since = self._states(batch)
        cut_off = self._requests.cut_off(batch)
        targets = self._requests.targets(batch, since)
        with_csn = batch.csn != b""
        without = ~with_csn & (batch.form == PRINTED)
        plain = without & (replicated == 1)
        late = list(batch.internal)
        for index in np.flatnonzero(without & (replicated == -1)).tolist():
            row = self._row(batch, index, targets[index])
            if decides[index] == SESSION:
                late.append(row)
            elif not decides[index]:
                waiting = self._waiting.setdefault(int(batch.conn[index]), [])
                waiting.append(row)
                if len(waiting) > _LONGEST_SESSION:
                    del self._waiting[int(batch.conn[index])]
                    self._replicates[int(batch.conn[index])] = False
        late += self._decided
        if ended:
            self._waiting.clear()
        dropped = [not _never_replicated(targets[index]) for index in np.flatnonzero(plain).tolist()]
        plain[np.flatnonzero(plain)] = dropped
        late = [row for row in late if row["position"] or not _never_replicated(row["target"])]
        rows = np.flatnonzero(with_csn | plain)
        found = _columns(batch, rows, targets.take(pa.array(rows)), replicated)
        if late:
            found = pa.concat_tables([found, table("applied", late)]).sort_by("offset")
        facts = _facts(batch, with_csn, int(plain.sum()), late)
        silent = np.flatnonzero((batch.form == SILENT) & (replicated != 0)).tolist()
        if unnamed := sum(not _never_replicated(targets[index]) for index in silent):
            facts["results_without_position"] = unnamed
        if cut_off:
            facts["silent"] = [span_of(np.array([at])) for at in cut_off]
        return found, facts, targets, replicated

    def _states(self, batch: Batch) -> tuple[Column, Column, Column]:
        """For each result: 1 replication, 0 not, -1 unknown; the event that comes next on its connection, or 0; where
        the connection began in this piece, or -1.

        `self._decided` holds the rows of earlier pieces that this batch shows to belong to replication.
        """
        self._decided: list[dict[str, Any]] = []
        events = batch.events
        conn = np.concatenate((events[:, 1], batch.conn))
        offset = np.concatenate((events[:, 0], batch.offset))
        kind = np.concatenate((events[:, 2], np.zeros(len(batch.conn), np.int64)))
        count = len(conn)
        order = np.lexsort((offset, conn))
        conn, kind, offset = conn[order], kind[order], offset[order]
        place = np.arange(count)
        first = np.ones(count, bool)
        first[1:] = conn[1:] != conn[:-1]
        group = np.cumsum(first) - 1
        start = place[first][group] if count else place
        known = [self._replicates.get(number) for number in conn[first].tolist()]
        before = np.array([-1 if state is None else int(state) for state in known], np.int64)

        def last(which: int) -> Column:
            found = np.maximum.accumulate(np.where(kind == which, place, -1)) if count else place
            return np.where(found >= start, found, -1)

        connect, session, disconnect = last(CONNECT), last(SESSION), last(DISCONNECT)
        old = before[group] if count else place
        begun = np.where((connect < 0) & (disconnect < 0), old, np.where(connect > disconnect, 0, -1))
        state = np.where((session > connect) | ((connect < 0) & (old == 1)), 1, np.minimum(begun, 0))
        if count:
            next_event = np.minimum.accumulate(np.where(kind > 0, place, count)[::-1])[::-1]
            same = (next_event < count) & (group[np.minimum(next_event, count - 1)] == group)
            decides = np.where(same, kind[np.minimum(next_event, count - 1)], 0)
            final = place[np.append(first[1:], True)]
            for number, value in zip(conn[final].tolist(), state[final].tolist(), strict=True):
                if value < 0:
                    self._replicates.pop(number, None)
                else:
                    self._replicates[number] = bool(value)
            for number in self._waiting.keys() & set(conn[kind > 0].tolist()):
                rows = self._waiting.pop(number)
                if decides[np.searchsorted(conn, number)] == SESSION:
                    self._decided += rows
        else:
            decides = place
        back = np.empty(count, np.int64)
        back[order] = place
        results = back[len(events) :]
        began = np.where(connect < 0, -1, offset[connect]) if count else place
        return state[results], decides[results], began[results]

    @staticmethod
    def _row(batch: Batch, index: int, target: Any) -> dict[str, Any]:
        err, at = int(batch.err[index]), int(batch.at[index])
        return {
            "offset": int(batch.offset[index]),
            "evidence": "access_log",
            "outcome": "refused" if err else "dropped",
            "position": None,
            "at": None if at == NO_TIME else at,
            "code": err,
            "operation": UPDATES.get(int(batch.tag[index])),
            "target": target.as_py(),
            "connection": f"{batch.conn[index]}/{batch.op[index]}",
            "replicated": True,
        }


def _never_replicated(target: Any) -> bool:
    name = str(target or "").lower().replace(" ", "")
    return any(name == suffix or name.endswith("," + suffix) for suffix in _NOT_REPLICATED)


def _harmless(texts: pa.Array) -> pa.Array:
    """The texts without secrets; only suspicious ones go through the exact check."""
    suspects = pc.match_substring_regex(texts, SUSPECT).fill_null(False)
    if not pc.any(suspects).as_py():
        return texts
    clean = [SECRETS.redact(text) for text in texts.filter(suspects).to_pylist()]
    return pc.replace_with_mask(texts, suspects, pa.array(clean, pa.string()))


_OUTCOMES = ["applied", "refused", "dropped", "acknowledged", "received"]


def _columns(batch: Batch, rows: Column, targets: pa.Array, replicated: Column) -> pa.Table:
    """The chosen results as rows of `applied`."""
    csn, err, tag, at, state = batch.csn[rows], batch.err[rows], batch.tag[rows], batch.at[rows], replicated[rows]
    has = csn != b""
    form = batch.form[rows]
    outcome = np.where(err != 0, 1, np.where(form >= ACKNOWLEDGED, form + 1, np.where(has, 0, 2)))
    kinds, kind = np.unique(tag, return_inverse=True)
    columns = {
        "offset": pa.array(batch.offset[rows]),
        "evidence": pa.repeat("access_log", len(rows)),
        "outcome": pa.array(_OUTCOMES).take(pa.array(outcome)),
        "origin": _origins(batch.digits[rows], has),
        "position": _positions(csn, has),
        "at": pa.array(at, pa.int64(), mask=at == NO_TIME).cast(TIME),
        "code": pa.array(err),
        "operation": pa.array([UPDATES.get(number) for number in kinds.tolist()], pa.string()).take(pa.array(kind)),
        "target": targets,
        "connection": pc.binary_join_element_wise(
            pa.array(batch.conn[rows]).cast(pa.string()), pa.array(batch.op[rows]).cast(pa.string()), "/"
        ),
        "replicated": pa.array(state == 1, mask=state < 0),
        "link": pa.nulls(len(rows), pa.string()),
    }
    return pa.table([columns[name].cast(_SCHEMA.field(name).type) for name in _SCHEMA.names], schema=_SCHEMA)


def _positions(csn: Column, has: Column) -> pa.Array:
    """The CSNs in lower case; null where there is none."""
    ends = np.concatenate(([0], np.cumsum(has) * 20)).astype(np.int32)
    letters = csn[has].view(np.uint8) | np.uint8(0x20)  # lower case; the digits have this bit already
    mask = np.packbits(has, bitorder="little")
    buffers = [pa.py_buffer(mask.tobytes()), pa.py_buffer(ends.tobytes()), pa.py_buffer(letters.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(csn), buffers)


def _origins(digits: Column, has: Column) -> pa.Array:
    digits = digits[:, 12:16].astype(np.int64)
    numbers = digits[:, 0] << 12 | digits[:, 1] << 8 | digits[:, 2] << 4 | digits[:, 3]
    known, which = np.unique(numbers, return_inverse=True)
    return pa.array([str(number) for number in known.tolist()], pa.string()).take(pa.array(which, mask=~has))


def _facts(batch: Batch, with_csn: Column, plain: int, late: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What `inspect` shows of these results."""
    digits = batch.digits[with_csn].T.astype(np.int64)
    high, low = np.zeros((2, digits.shape[1]), np.int64)
    for column in range(12):
        high = high << 4 | digits[column]
    for column in range(12, 20):
        low = low << 4 | digits[column]
    origin = low >> 16
    order = np.lexsort((low, high, origin))
    first = np.flatnonzero(np.append(True, origin[order][1:] != origin[order][:-1])) if len(order) else order
    last = np.append(first[1:], len(order)) - 1 if len(order) else order
    seen: dict[str, dict[str, Any]] = {}
    at = batch.at[with_csn]
    before = np.where(at == NO_TIME, 0, (high >> 16) - at // 1_000_000)
    ahead: dict[str, dict[str, int]] = {}
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        low_end, high_end = (f"{high[order[i]]:012x}{low[order[i]]:08x}" for i in (begin, end))
        seen[origin_of(low_end)] = {"count": end - begin + 1, "min": low_end, "max": high_end}
        ahead[origin_of(low_end)] = {"max": int(before[order[begin : end + 1]].max())}
    more = 0
    for row in late:
        if csn := row["position"]:
            more += 1
            span = seen.setdefault(origin_of(csn), {"count": 0, "min": csn, "max": csn})
            span.update(count=span["count"] + 1, min=min(span["min"], csn), max=max(span["max"], csn))
        else:
            plain += 1
    return {
        "results_with_csn": len(order) + more,
        "results_without_csn_on_replication": plain,
        "by_origin": seen,
        **({AHEAD_OF_CLOCK: ahead} if ahead else {}),
    }
