"""A source of a transaction stream, as the real one cuts and sends: what it sends, and what it kept.

Rows are numbers, the limit counts them. Written after the source's own code paths, not after the reader: a message that is
filled, statements that grow in it, and what is sent when the limit is reached, at ROLLBACK, at a statement that fails.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from workbench.replication.stream.rules.segments import ROLLBACK, ROLLBACK_STATEMENT, Message, Piece

TABLES = ("shop.orders", "test.person")
OPERATIONS = ("INSERT", "UPDATE", "DELETE")


@dataclass
class Sent:
    """One message as sent: of which transaction, in which order."""

    transaction: int
    message: Message


@dataclass
class Truth:
    """What the source kept of one transaction: "committed", "rolled_back", or "crashed"; and the rows."""

    fate: str = "open"
    rows: dict[str, dict[str, int]] = field(default_factory=dict)


class _Session:
    """One session's transaction: the message that is being filled."""

    def __init__(self, source: Source, number: int) -> None:
        self.source, self.number = source, number
        self.segment, self.sent = 1, 0
        self.pending: list[list[object]] = []  # operation, table, piece, ended, rows
        self.kept: list[tuple[str, str, int]] = []
        self.statement: list[tuple[str, str, int]] = []
        self.saved: tuple[int, list[list[object]], list[tuple[str, str, int]]] | None = None

    def begin(self, operation: str, table: str) -> None:
        """A statement begins: between statements the limit is held against what is pending."""
        if self._size() >= self.source.limit and self.pending and self.source.numbered:
            self._send(cut=False)
        self.statement = []
        self.pending.append([operation, table, 1, True, 0])

    def row(self) -> None:
        """The open statement changes one more row."""
        operation, table, piece, _, _ = self.pending[-1]
        if self._size() >= self.source.limit:
            self.pending[-1][3] = False
            self._send(cut=True)
            self.pending.append([operation, table, int(str(piece)) + 1, True, 0])
        self.pending[-1][4] = int(str(self.pending[-1][4])) + 1
        self.statement.append((str(operation), str(table), 1))

    def end(self) -> None:
        """The statement succeeds."""
        self.kept += self.statement
        self.statement = []

    def fail(self) -> None:
        """The statement fails: its rows that are pending go, and if pieces of it were sent, a message says so.

        The older source had no such message; what it did is not known, so here it does not come to that.
        """
        if not self.source.numbered:
            self.end()
            return
        piece = int(str(self.pending[-1][2]))
        self.pending.pop()
        self.statement = []
        if piece > 1:
            self.pending.append([ROLLBACK_STATEMENT, None, None, True, 0])

    def save(self) -> None:
        """SAVEPOINT: a copy of the pending message, its number with it."""
        self.saved = self.segment, [list(one) for one in self.pending], list(self.kept)

    def back(self) -> None:
        """ROLLBACK TO SAVEPOINT."""
        if self.saved:
            self.segment, pending, kept = self.saved
            self.pending, self.kept = [list(one) for one in pending], list(kept)

    def commit(self) -> None:
        """COMMIT: the pending message is the last one. An empty one is not sent."""
        truth = self.source.truth[self.number]
        truth.fate = "committed"
        for operation, table, rows in self.kept:
            of = truth.rows.setdefault(table, {})
            name = operation.lower()
            of[name] = of.get(name, 0) + rows
        if self.pending:
            self._send(cut=None)

    def rollback(self) -> None:
        """ROLLBACK: told only if the pending message holds a later piece of a cut statement."""
        self.source.truth[self.number].fate = "rolled_back"
        if any(piece is not None and int(str(piece)) > 1 for _, _, piece, _, _ in self.pending):
            self.pending = [[ROLLBACK, None, None, True, 0]]
            self._send(cut=None)

    def _size(self) -> int:
        return sum(int(str(one[4])) for one in self.pending)

    def _send(self, cut: bool | None) -> None:
        numbered = self.source.numbered
        pieces = tuple(
            Piece(
                str(op),
                None if table is None else str(table),
                None if piece is None else int(str(piece)),
                bool(ended),
                int(str(rows)),
            )
            for op, table, piece, ended, rows in self.pending
        )
        self.source.send(self.number, self.segment if numbered else None, (cut is None) if numbered else None, pieces)
        self.segment += 1
        self.sent += 1
        self.pending = []


class Source:
    """A server whose sessions run at once. `numbered`: of the time after messages were numbered; before, no cut fell between."""

    def __init__(self, seed: int, numbered: bool = True, savepoints: bool = False) -> None:
        self.random, self.numbered, self.savepoints = random.Random(seed), numbered, savepoints
        self.limit = self.random.randrange(2, 6)
        self.log: list[Sent] = []
        self.truth: dict[int, Truth] = {}
        self.offset, self.life, self.next = 0, 0, 773

    def send(self, number: int, segment: int | None, ended: bool | None, pieces: tuple[Piece, ...]) -> None:
        """Write one message into the log."""
        self.offset += self.random.randrange(20, 60)
        content = hash((number, self.offset))
        self.log.append(Sent(number, Message(self.offset, segment, ended, pieces, content, life=self.life)))

    def run(self, transactions: int = 8) -> None:
        """Sessions that take turns, until all of them are done; now and then the server crashes."""
        open_ones: list[_Session] = []
        while transactions or open_ones:
            if transactions and (not open_ones or self.random.random() < 0.4):
                self.next += self.random.randrange(1, 4)
                self.truth[self.next] = Truth()
                open_ones.append(_Session(self, self.next))
                transactions -= 1
            session = self.random.choice(open_ones)
            if self._step(session):
                open_ones.remove(session)
            if self.random.random() < 0.02:
                for one in open_ones:
                    self.truth[one.number].fate = "crashed"
                open_ones = []
                self.life += 1

    def _step(self, session: _Session) -> bool:
        choice = self.random.random()
        if choice < 0.55:
            session.begin(self.random.choice(OPERATIONS), self.random.choice(TABLES))
            for _ in range(self.random.randrange(1, 9)):
                session.row()
            session.fail() if self.random.random() < 0.2 else session.end()
            return False
        if self.savepoints and choice < 0.65:
            session.save() if self.random.random() < 0.5 else session.back()
            return False
        session.commit() if choice < 0.88 else session.rollback()
        return True
