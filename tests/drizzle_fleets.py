"""Fleets of Drizzle made up by a seed: a source with its copies, faults of several kinds at once, and the truth of each.

A source changes rows of small tables, in small transactions and in bulks that others interleave. Each copy gets records of the
source up to a place and has faults of its own. Values of rows are numbers of transactions, so a row tells who wrote it last.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import drizzle_samples as wire

from workbench.case.case import Case

Row = tuple[str, str]
"""Table and key."""
Rows = dict[Row, str]
"""Row -> the number of the transaction that wrote it last."""
TABLES = ("a", "b")
COMMITTED, TAKEN_BACK, OPEN, CRASHED = "committed", "rolled_back", "open", "crashed"


@dataclass(frozen=True)
class Change:
    """One row that a transaction changes: "INSERT", "UPDATE" or "DELETE"."""

    kind: str
    table: str
    key: str


@dataclass
class Made:
    """A transaction as a server made it, with its messages in order."""

    number: int
    fate: str
    changes: list[Change]
    messages: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """A record of a log: the message, and what befell it there ("", "checksum", "zeroed", "torn").

    place  where it stands in the log of the source; None: it does not come from there
    """

    number: int | None
    body: bytes
    place: int | None = None
    damage: str = ""

    def written(self, checksums: bool) -> bytes:
        """The bytes of the record."""
        data = wire.record(self.body, checksums)
        if self.damage == "zeroed":
            return bytes(len(data))
        if self.damage == "torn":
            return data[: len(data) * 2 // 3]
        if self.damage == "checksum":
            return data[:-1] + bytes([data[-1] ^ 0x55])
        return data


@dataclass
class Log:
    """What was collected of a server, and what the generator knows of it."""

    server: str
    entries: list[Entry]
    own: dict[int, Made] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def numbers(self) -> set[int]:
        """Transactions of which the log has a record that can be read."""
        return {entry.number for entry in self.entries if entry.number is not None and not entry.damage}

    def damaged(self) -> bool:
        """Whether records of the log are damaged."""
        return any(entry.damage for entry in self.entries)

    def written(self, checksums: bool) -> bytes:
        """The bytes of the log."""
        return b"".join(entry.written(checksums) for entry in self.entries)

    def read(self) -> list[Entry]:
        """Records that are there to their end."""
        return [entry for entry in self.entries if entry.damage != "torn"]


@dataclass
class Fleet:
    """Logs of servers under one server id.

    source  the server that makes the transactions; its log may not be among the collected ones
    named   what a person said of it in case.yaml
    """

    seed: int
    source: str
    stream: list[Entry]
    made: dict[int, Made]
    logs: dict[str, Log]
    named: bool
    checksums: bool
    numbered: bool

    def held(self, server: str, number: int) -> str:
        """What the log of a server holds of a transaction of the source: "whole", "part", "none", "other", "damaged"."""
        log = self.logs[server]
        wanted = self.made[number].messages
        there = [entry for entry in log.read() if entry.number == number]
        if any(entry.body not in wanted for entry in there):
            return "other"
        sound = {entry.body for entry in there if not entry.damage}
        if all(body in sound for body in wanted):
            return "whole"
        if any(entry.damage for entry in there):
            return "damaged"
        return "part" if there else "none"

    def committed(self) -> list[int]:
        """What the source committed, in the order of commits."""
        last = {entry.number: at for at, entry in enumerate(self.stream) if entry.number is not None}
        kept = [number for number, made in self.made.items() if made.fate == COMMITTED]
        return sorted(kept, key=lambda number: last[number])

    def begins(self, server: str) -> int:
        """The place in the stream of the first record that the log has of it."""
        return min((e.place for e in self.logs[server].entries if e.place is not None), default=len(self.stream))

    def ends(self, server: str) -> int:
        """The place behind the newest record that the log has of the stream."""
        return max((e.place + 1 for e in self.logs[server].read() if e.place is not None), default=0)

    def places(self, number: int) -> list[int]:
        """Where the stream has the messages of a transaction."""
        return [at for at, entry in enumerate(self.stream) if entry.number == number]

    def arrives(self, server: str, number: int) -> bool:
        """Whether a server has all of a transaction once its source has sent it what is behind the place that it reached."""
        have = {entry.body for entry in self.logs[server].read() if not entry.damage}
        ends = self.ends(server)
        return all(at >= ends or self.stream[at].body in have for at in self.places(number))

    def rows(self, server: str) -> Rows:
        """The rows of a server, as its whole transactions left them: what finds no row, or one that is there, does nothing."""
        begun = [number for number in self.committed() if max(self.places(number)) < self.begins(server)]
        before = played({}, (self.made[number] for number in begun))
        # A log whose beginning was not collected had those messages. A copy of all data has nothing of what was open then.
        cut_off = "later" in self.logs[server].faults and "founded" not in self.logs[server].faults
        return played(before, self.applied(server, self.stream[: self.begins(server)] if cut_off else ()))

    def applied(self, server: str, before: Iterable[Entry] = ()) -> Iterator[Made]:
        """What a server committed, in the order of its log: what is damaged there was whole when it was done.

        `before` are messages that it got before its log begins.
        """
        log, got, done = self.logs[server], {entry.body for entry in before}, set[int]()
        for entry in log.read():
            made = log.own.get(entry.number or 0) or self.made.get(entry.number or 0)
            if not made:
                continue
            got.add(entry.body)
            if made.number not in done and made.fate == COMMITTED and got.issuperset(made.messages):
                done.add(made.number)
                yield made


def played(rows: Rows, transactions: Iterable[Made]) -> Rows:
    """The rows after transactions; what finds no row, or one that is there, changes nothing."""
    rows = dict(rows)
    for made in transactions:
        for change in made.changes:
            row = change.table, change.key
            if change.kind == "DELETE":
                rows.pop(row, None)
            elif (row in rows) == (change.kind == "UPDATE"):
                rows[row] = str(made.number)
    return rows


class Source:
    """A server that works: bulks grow beside small transactions."""

    def __init__(self, chance: random.Random, numbered: bool, first: int = 100) -> None:
        self.chance, self.numbered, self.next = chance, numbered, first
        self.rows: Rows = {}
        self.stream: list[Entry] = []
        self.made: dict[int, Made] = {}
        self.open: dict[int, list[tuple[bytes, bool]]] = {}
        self.locked: dict[int, set[Row]] = {}
        self.at = 0

    def work(self, transactions: int) -> None:
        """Let it make so many transactions."""
        self.begin()
        while transactions or self.open:
            if self.open and (not transactions or self.chance.random() < 0.5):
                self._go_on(self.chance.choice(sorted(self.open)))
            else:
                transactions -= 1
                self._small() if self.chance.random() < 0.7 else self._bulk()
            if not transactions and self.chance.random() < 0.3:
                return
            if self.open and self.chance.random() < 0.03:
                for number in self.open:
                    self.made[number].fate = CRASHED
                self.open, self.locked = {}, {}
                self.begin()

    def begin(self) -> None:
        """Start the server."""
        self.stream.append(Entry(None, wire.event(self._number()).SerializeToString(), len(self.stream)))

    def _number(self) -> int:
        self.next += self.chance.choice((1, 1, 1, 2, 5))
        return self.next

    def _changes(self, count: int) -> list[Change]:
        """Rows that no open bulk has locked."""
        locked = {row for rows in self.locked.values() for row in rows}
        found: list[Change] = []
        for _ in range(count):
            row = self.chance.choice(TABLES), str(self.chance.randrange(12))
            if row in locked:
                continue
            locked.add(row)
            kind = self.chance.choice(("UPDATE", "UPDATE", "DELETE")) if row in self.rows else "INSERT"
            found.append(Change(kind, *row))
        return found

    def _small(self) -> None:
        changes = self._changes(self.chance.randrange(1, 4))
        if not changes:
            return
        number = self._number()
        made = Made(number, COMMITTED, changes)
        self._commit(made)
        self._send(made, _message(made, [[change] for change in changes], [1] * len(changes), self.numbered, 1, True))

    def _bulk(self) -> None:
        kinds: dict[tuple[str, str], list[Change]] = {}
        for change in self._changes(8):
            kinds.setdefault((change.kind, change.table), []).append(change)
        changes = max(kinds.values(), key=len, default=[])
        if len(changes) < 2:
            return
        number = self._number()
        made = Made(number, OPEN, changes)
        back = self.chance.random() < 0.2
        messages = []
        for at, change in enumerate(changes, 1):
            last = at == len(changes)
            if back and last:
                void = wire.transaction(number, wire.statement("ROLLBACK"), segment=at if self.numbered else None)
                if not self.numbered:
                    void.ClearField("end_segment")
                messages.append(void.SerializeToString())
            else:
                messages.append(_message(made, [[change]], [at], self.numbered, at, last))
        self.made[number] = made
        self.open[number] = [(body, back) for body in messages]
        self.locked[number] = {(change.table, change.key) for change in changes}
        self._go_on(number)

    def _go_on(self, number: int) -> None:
        (body, back), *left = self.open[number]
        made = self.made[number]
        self._send(made, body)
        self.open[number] = left
        if not left:
            del self.open[number], self.locked[number]
            made.fate = TAKEN_BACK if back else COMMITTED
            if not back:
                self._commit(made)

    def _commit(self, made: Made) -> None:
        self.made[made.number] = made
        self.rows = played(self.rows, [made])

    def _send(self, made: Made, body: bytes) -> None:
        made.messages.append(body)
        self.stream.append(Entry(made.number, body, len(self.stream)))


def _message(
    made: Made, groups: list[list[Change]], pieces: list[int], numbered: bool, segment: int, last: bool
) -> bytes:
    statements = []
    for group, piece in zip(groups, pieces, strict=True):
        about = {"table": group[0].table, "piece": piece, "ended": last}
        value = str(made.number).encode()
        if group[0].kind == "INSERT":
            statements.append(wire.insert(*((c.key.encode(), value) for c in group), **about))
        elif group[0].kind == "UPDATE":
            statements.append(wire.update(*((c.key.encode(), value) for c in group), **about))
        else:
            statements.append(wire.delete(*(c.key.encode() for c in group), **about))
    parts = {"segment": segment, "ended": last} if numbered else {"segment": None, "ended": None}
    made_at = made.number * 1_000_000 + segment
    return bytes(wire.transaction(made.number, *statements, at=made_at, **parts).SerializeToString())


FAULTS = (
    "behind",
    "skips",
    "loses_piece",
    "own_inside",
    "conflict",
    "checksum",
    "zeroed",
    "later",
    "twice",
    "founded",
    "restarted",
)
FAULTS += ("own", "torn")


def worked(chance: random.Random, numbered: bool, transactions: int) -> Source:
    """A server that made so many transactions."""
    source = Source(chance, numbered)
    source.work(transactions)
    return source


def fleet(seed: int) -> Fleet:
    """The fleet of a seed."""
    chance = random.Random(seed)
    numbered, checksums = chance.random() < 0.8, chance.random() < 0.8
    source = worked(chance, numbered, chance.randrange(6, 18))
    names = ["s1", "s2", "s3", "s4"][: chance.randrange(2, 5)]
    maker = chance.choice(names)
    made = Fleet(seed, maker, source.stream, source.made, {}, chance.random() < 0.5, checksums, numbered)
    for name in names:
        made.logs[name] = log = Log(name, [entry for entry in source.stream if entry.number is not None])
        if name == maker:
            log.entries = list(source.stream)
            faults = chance.sample(("checksum", "zeroed", "later", "torn"), chance.choice((0, 0, 0, 1)))
        else:
            faults = chance.sample(FAULTS, chance.choice((0, 1, 1, 2, 3)))
        for fault in sorted(faults, key=(*FAULTS,).index):
            _put(made, log, fault, chance)
    if chance.random() < 0.15 and len(names) > 2:
        del made.logs[maker]
        made.named = False
    return made


def _put(made: Fleet, log: Log, fault: str, chance: random.Random) -> None:
    """Have a fault befall a log, where it can."""
    entries = log.entries
    numbers = sorted({entry.number for entry in entries if entry.number in made.made})
    if len(numbers) < 4:
        return
    log.faults.append(fault)
    number = chance.choice(numbers)
    of = [at for at, entry in enumerate(entries) if entry.number == number]
    at = chance.randrange(len(entries) // 2, len(entries))
    if fault == "behind":
        del entries[at:]
    elif fault == "skips":
        log.entries = [entry for entry in entries if entry.number != number]
    elif fault == "loses_piece":
        bulks = [number for number in numbers if len(made.made[number].messages) > 1]
        if bulks:
            body = chance.choice(made.made[chance.choice(bulks)].messages)
            log.entries = [entry for entry in entries if entry.body != body]
    elif fault in ("own", "own_inside"):
        value = 9000 + ord(log.server[1]) * 10 + (fault == "own")
        if fault == "own_inside":
            used = set(made.made) | log.numbers()
            value = next((n for n in range(min(used) + 1, max(used)) if n not in used), value)
        _write(made, log, value, at if fault == "own_inside" else len(entries))
    elif fault == "conflict":
        log.entries = [entry for entry in entries if entry.number != number]
        _write(made, log, number, min(of[0], len(log.entries)))
    elif fault in ("checksum", "zeroed"):
        if fault == "zeroed" or made.checksums:
            hit = entries[at]
            entries[at] = replace(hit, damage=fault)
    elif fault == "twice":
        entries.insert(chance.randrange(of[0] + 1, len(entries) + 1), entries[of[0]])
    elif fault == "later":
        del entries[: chance.randrange(1, max(2, len(entries) // 2))]
    elif fault == "founded":
        entries[: chance.randrange(0, len(entries) // 3)] = [
            Entry(None, wire.event(max(made.made) + 400).SerializeToString())
        ]
    elif fault == "torn":
        entries[-1] = replace(entries[-1], damage="torn")
    elif fault == "restarted":
        entries.insert(at, Entry(None, wire.event(max(made.made) + 500).SerializeToString()))


def _write(made: Fleet, log: Log, number: int, at: int) -> None:
    """A transaction that the server itself makes, of a table that the source does not know."""
    own = Made(number, COMMITTED, [Change("INSERT", "own", f"{log.server}{number}")])
    own.messages.append(_message(own, [own.changes], [1], made.numbered, 1, True))
    log.own[number] = own
    log.entries.insert(at, Entry(number, own.messages[0]))


def case_of(made: Fleet, folder: Path) -> Case:
    """The fleet as a case."""
    collected = folder / "in"
    collected.mkdir(parents=True)
    for name, log in made.logs.items():
        (collected / f"{name}.log").write_bytes(log.written(made.checksums))
    if made.named:
        about = f"servers:\n- name: {made.source}\n  origin: '1'\n  files: [{made.source}.log]\n"
        (collected / "case.yaml").write_text(about, encoding="utf-8")
    case = Case.create(folder / "case")
    case.load([collected])
    return case
