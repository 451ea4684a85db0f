"""Transactions out of the segments of a stream: what was committed, what was taken back, and what nobody can tell.

A transaction that outgrew the limit of the stream comes in several messages of the same number, between those of other
sessions. Messages are numbered (`Message.number`, `Message.ended`), and a statement that was cut in two numbers its pieces
(`Piece.number`, `Piece.ended`). Streams of the time before messages were numbered, and filtered ones, have the second only.

Nothing partial is ever committed: a transaction counts if all its messages are there and its end is. Where the stream cannot
tell, the outcome says so, and `ASK` which question to its source settles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

QUEUED = "queue"
"""The part of a replica that a row of its queue tells of: which master it waits for."""

COMMITTED, ROLLED_BACK, UNFINISHED, ABORTED, INCOMPLETE, CORRUPT, CONFLICT, REPEATED, EVENT, UNKNOWN = OUTCOMES = (
    *("committed", "rolled_back", "unfinished", "aborted", "incomplete", "corrupt", "conflict", "repeated", "event"),
    "unknown",
)
"""What became of a transaction.

committed     all of it is there, and its end
rolled_back   its source took it back
unfinished    its end is not there (yet): it may be committed, or may have been taken back without a word
aborted       its end is not there and can never come: its source has started anew since
incomplete    its end is there, but messages before it are not
corrupt       a message of it does not fit its checksum
conflict      the same message, or the same transaction, came with different contents
repeated      it is there already: a second delivery
event         no transaction: its server started or stopped
unknown       it has what this reader does not know, or parts of a stream that does not number its messages are lost
"""

ROLLBACK, ROLLBACK_STATEMENT = "ROLLBACK", "ROLLBACK_STATEMENT"
ROW_STATEMENTS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
SET_VARIABLE, CREATE_SCHEMA = "SET_VARIABLE", "CREATE_SCHEMA"
"""Kinds of statements that change no table that is there."""

TABLE_STATEMENTS = frozenset({"TRUNCATE_TABLE", "CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"})
"""Kinds that change the one table that they name; any other kind may change every table."""

NOT_APPLIED = frozenset({"RAW_SQL", "ALTER_TABLE", "ALTER_SCHEMA"})
"""Kinds of which a log tells too little: no tool applies them from there."""
TAIL = "tail"
"""What is missing of a transaction without an end."""

OPEN, RESTARTED, GAPS, BAD_SUM, OTHER_CONTENT, NUMBER_REUSED, TWO_ENDS = (
    *("open", "restarted", "messages_missing", "bad_checksum", "other_content", "number_used_again", "two_ends"),
)
NOT_KNOWN, UNFIT, LOST_BESIDE, TAKEN_BACK, AGAIN = (
    "not_known",
    "pieces_do_not_fit",
    "loss_unnumbered",
    "taken_back",
    "again",
)
SAYS = {
    OPEN: "its end has not come: a statement of it is cut, or a message says that more follows",
    RESTARTED: "its end had not come when its server started anew: it can never come",
    GAPS: "messages of it are not there",
    BAD_SUM: "a message of it does not fit its checksum",
    OTHER_CONTENT: "a message of it came twice with different contents, as after a ROLLBACK TO SAVEPOINT",
    NUMBER_REUSED: "another transaction of the same number is in the stream",
    TWO_ENDS: "messages go on behind its end",
    NOT_KNOWN: "it has a kind of statement that this reader does not know",
    UNFIT: "the pieces of a statement do not follow each other",
    LOST_BESIDE: "parts of the stream are lost, and it does not number its messages: some may have been of this transaction",
    TAKEN_BACK: "its source sent a ROLLBACK",
    AGAIN: "the same messages were there before",
}
ASK = {
    OPEN: "is the transaction still running at its source, and if not, are its rows there?",
    RESTARTED: "are its rows at the source? They are if records of the log were lost together with its end",
    GAPS: "the messages themselves: from the log of the source, or of a server that has them",
    BAD_SUM: "the message itself: from the log of the source, or of a server that has it",
    OTHER_CONTENT: "which rows of it are at the source?",
    NUMBER_REUSED: "are the rows of both at the source?",
    TWO_ENDS: "which rows of it are at the source?",
    NOT_KNOWN: "what did the statement do at the source?",
    UNFIT: "which rows of it are at the source?",
    LOST_BESIDE: "the whole transaction: from the log of the source, or of a server whose log is whole",
}
"""The question to the source that settles it, where the stream does not."""


@dataclass(frozen=True)
class Piece:
    """What a message holds of one statement. `number` None: of a kind that is never cut."""

    operation: str
    target: str | None = None
    number: int | None = None
    ended: bool = True
    rows: int = 0
    ragged: int = 0


@dataclass(frozen=True)
class Message:
    """One record of a stream, of the transaction that is put together.

    offset   where it stands: messages were sent in this order
    number   which message of its transaction; None: the stream does not number them
    ended    the transaction ends here; None: the stream does not say
    content  two of different contents are different messages
    sound    False: it does not fit its checksum
    known    False: it has a kind of statement that the reader does not know
    life     how often its server had started before
    """

    offset: int
    number: int | None
    ended: bool | None
    pieces: tuple[Piece, ...]
    content: int = 0
    sound: bool = True
    known: bool = True
    life: int = 0

    @property
    def takes_back(self) -> bool:
        """True if it takes the whole transaction back."""
        return any(piece.operation == ROLLBACK for piece in self.pieces)


@dataclass(frozen=True)
class Stream:
    """What the rest of a stream tells of one server.

    lives   how often it started, as far as the stream goes
    lost    parts of the stream could not be read
    """

    lives: int = 0
    lost: bool = False


@dataclass(frozen=True)
class Transaction:
    """One transaction, put together.

    messages  its records, repeated ones included
    counting  of these, those whose statements count or that take statements back, in the order of the transaction: of them
              `kept_pieces` tells what counts
    rows      table -> operation -> rows to apply; None: nothing tells which are
    seen      rows in all messages that are not repeated; kept: those that count
    missing   numbers of messages that are not there, `TAIL`, or None
    ended     its last message says that it is the last; None: the stream does not say
    """

    outcome: str
    why: str | None
    messages: tuple[Message, ...]
    counting: tuple[Message, ...] = ()
    repeated: int = 0
    rows: dict[str, dict[str, int]] | None = field(default_factory=dict)
    seen: int = 0
    kept: int = 0
    ragged: int = 0
    missing: tuple[int, ...] | str | None = None
    ended: bool | None = None

    @property
    def life(self) -> int:
        """How often its server had started before it."""
        return self.messages[0].life

    @property
    def last(self) -> int:
        """Where it ended, before anything of it was delivered again: 1 of 2, 2 of 2, 1 of 2 ended with the second record."""
        return max({(one.number, one.content, one.sound): one.offset for one in reversed(self.messages)}.values())


def transactions(messages: Iterable[Message], stream: Stream) -> list[Transaction]:
    """What the messages with one number of one server make, in the order of the stream.

    They are one transaction, or several where the server started in between: a rebuilt server begins its numbers anew. What goes
    on behind a start was not cut by it: a replica whose server id is that of its source notes its own starts under that id.

        1 (more follows)   start   2 (the end)     one transaction, committed
        1 (more follows)   start   1 (the end)     two: of the first one the end can never come
    """
    found: list[Transaction] = []
    for of_life in _by_life(messages):
        one = _transaction(of_life, stream)
        if found and {m.content for m in one.messages} <= {m.content for t in found for m in t.messages}:
            one = Transaction(REPEATED, AGAIN, one.messages, repeated=len(one.messages), ended=one.ended)
        elif found and one.outcome == COMMITTED:
            one = replace(one, why=NUMBER_REUSED)
        found.append(one)
    return found


def _by_life(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """The messages of each life of their server; those of one that goes on where the last one ended belong to that."""
    before: list[Message] = []
    for _, group in groupby(messages, key=lambda message: message.life):
        of_life = list(group)
        if before and not _goes_on(before, of_life[0]):
            yield before
            before = []
        before += of_life
    if before:
        yield before


def _goes_on(before: Sequence[Message], then: Message) -> bool:
    """True if a message is a later one of the same transaction, of which the end was not there."""
    if any(message.ended for message in before):
        return False
    if then.number is not None:
        return then.number > max(message.number or 0 for message in before)
    return _left_open(before) and bool(then.pieces) and _next(before[-1].pieces[-1], then.pieces[0])


def _transaction(messages: list[Message], stream: Stream) -> Transaction:
    once = list({(message.number, message.content, message.sound): message for message in reversed(messages)}.values())
    once.sort(key=lambda message: message.offset)
    latest = _latest(once)
    numbered = all(message.number is not None for message in once)
    outcome, why, missing = _outcome(once, latest, numbered, stream)
    counting, rows, ragged = _counted(latest)
    seen = sum(piece.rows for message in once for piece in message.pieces)
    known = outcome in (COMMITTED, CORRUPT, CONFLICT)
    if outcome in (ROLLED_BACK, ABORTED) or (outcome == UNFINISHED and not _left_open(latest)):
        shown: dict[str, dict[str, int]] | None = {}
    else:
        shown = rows if known else None
    return Transaction(
        outcome,
        why,
        tuple(messages),
        tuple(counting) if outcome == COMMITTED else (),
        len(messages) - len(once),
        shown,
        seen,
        sum(sum(of.values()) for of in rows.values()) if outcome == COMMITTED else 0,
        ragged if known else 0,
        missing,
        _ended(once),
    )


def _latest(once: Sequence[Message]) -> list[Message]:
    """The messages in the order of the transaction. One whose number was there already stands for all from there on.

    ROLLBACK TO SAVEPOINT brings back the message that was filled at the savepoint, its number with it: 1, 2, then 1 anew
    with its end is a transaction of that last message.
    """
    if any(message.number is None for message in once):
        return list(once)
    latest: dict[int, Message] = {}
    for message in once:
        number = message.number or 0
        if number in latest:
            latest = {one: there for one, there in latest.items() if one < number}
        latest[number] = message
    return [latest[number] for number in sorted(latest)]


def _ended(once: Sequence[Message]) -> bool | None:
    told = [message.ended for message in once if message.ended is not None]
    return any(told) if told else None


def _outcome(
    once: Sequence[Message], latest: Sequence[Message], numbered: bool, stream: Stream
) -> tuple[str, str | None, tuple[int, ...] | str | None]:
    """(outcome, why, what is missing)."""
    if not all(message.sound for message in once):
        # A good copy of the same number may stand beside it, but nothing shows that the bad one was the same.
        return CORRUPT, BAD_SUM, None
    if not all(message.known for message in once):
        return UNKNOWN, NOT_KNOWN, None
    taken = [message for message in once if message.takes_back]
    if taken:
        ended = any(message.ended and not message.takes_back for message in once)
        later = not numbered and once[-1] is not taken[-1]
        return (CONFLICT, TWO_ENDS, None) if ended or later else (ROLLED_BACK, TAKEN_BACK, None)
    if not numbered:
        return _by_statements(once, stream)
    if len(latest) < len(once):
        both_whole = sum(1 for message in once if message.number == 1 and message.ended) > 1
        return CONFLICT, NUMBER_REUSED if both_whole else OTHER_CONTENT, None
    numbers = [message.number or 0 for message in latest]
    ends = [message.number or 0 for message in latest if message.ended]
    gaps = tuple(sorted(set(range(1, max(numbers) + 1)) - set(numbers)))
    if not ends:
        return _without_end(once, latest, stream, gaps)
    if len(ends) > 1 or ends[0] < max(numbers):
        return CONFLICT, TWO_ENDS, None
    if gaps or numbers[0] < 1:
        return INCOMPLETE, GAPS, gaps
    if not _fits(latest):
        return UNKNOWN, UNFIT, None
    return COMMITTED, None, None


def _without_end(
    once: Sequence[Message], latest: Sequence[Message], stream: Stream, gaps: tuple[int, ...]
) -> tuple[str, str, tuple[int, ...] | str | None]:
    if stream.lives > once[-1].life:
        return ABORTED, RESTARTED, gaps or None
    return UNFINISHED, OPEN, gaps or (TAIL if _left_open(latest) else None)


def _by_statements(once: Sequence[Message], stream: Stream) -> tuple[str, str | None, tuple[int, ...] | str | None]:
    """Of a stream that does not number its messages. A cut fell inside a statement, so the pieces of these tell the end."""
    if any(message.number is not None for message in once):
        return UNKNOWN, UNFIT, None
    if once[-1].ended is False:
        return _without_end(once, once, stream, ())
    if not _fits(once, to_the_end=False):
        return INCOMPLETE, GAPS, _missing_pieces(once)
    if _left_open(once):
        return _without_end(once, once, stream, ())
    if stream.lost:
        # INSERT 1, INSERT 2 with the next INSERT's 1, INSERT 2: without the one in the middle the others fit all the same.
        return UNKNOWN, LOST_BESIDE, None
    return COMMITTED, None, None


def _left_open(messages: Sequence[Message]) -> bool:
    """True if the last message ends within a statement."""
    pieces = messages[-1].pieces
    return bool(pieces) and pieces[-1].number is not None and not pieces[-1].ended


def _fits(messages: Sequence[Message], to_the_end: bool = True) -> bool:
    """True if each piece of a statement follows the one before it. A statement that is taken back need not end."""
    open_piece: Piece | None = None
    for message in messages:
        for piece in message.pieces:
            if piece.operation == ROLLBACK_STATEMENT:
                open_piece = None
                continue
            goes_on = piece.number is not None and piece.number > 1
            if goes_on != (open_piece is not None) or (open_piece is not None and not _next(open_piece, piece)):
                return False
            open_piece = None if piece.number is None or piece.ended else piece
    return open_piece is None or not to_the_end


def _missing_pieces(messages: Sequence[Message]) -> tuple[int, ...] | None:
    """The numbers of the pieces that are not there, where one statement alone was cut and its pieces rise; None: nobody knows.

    INSERT 1, INSERT 3 lacks 2; INSERT 2, INSERT 3 lacks 1.
    """
    pieces = [piece for message in messages for piece in message.pieces if piece.number is not None]
    cut = [piece for piece in pieces if (piece.number or 0) > 1 or not piece.ended]
    numbers = [piece.number or 0 for piece in cut]
    alike = len({(piece.operation, piece.target) for piece in cut}) == 1
    if not alike or numbers != sorted(set(numbers)):
        return None
    return tuple(sorted(set(range(1, max(numbers) + 1)) - set(numbers))) or None


def _next(piece: Piece, following: Piece) -> bool:
    same = (piece.operation, piece.target) == (following.operation, following.target)
    return same and following.number == (piece.number or 0) + 1


def _counted(messages: Sequence[Message]) -> tuple[list[Message], dict[str, dict[str, int]], int]:
    """The messages with statements that count, their rows by table and operation, and how many of these are ragged."""
    rows: dict[str, dict[str, int]] = {}
    ragged = 0
    # What takes a statement back is among them: without it `kept_pieces` would find that statement in the others.
    counts = {
        message.offset for message in messages if any(one.operation == ROLLBACK_STATEMENT for one in message.pieces)
    }
    for message, number in kept_pieces(messages):
        piece = message.pieces[number]
        counts.add(message.offset)
        if piece.rows and (operation := ROW_STATEMENTS.get(piece.operation)):
            of_table = rows.setdefault(piece.target or "", {})
            of_table[operation] = of_table.get(operation, 0) + piece.rows
            ragged += piece.ragged
    counting = [message for message in messages if message.offset in counts]
    return counting, rows, ragged


def kept_pieces(messages: Iterable[Message]) -> list[tuple[Message, int]]:
    """The pieces that count, each as its message and its number in there: without those of statements that were taken back.

    ROLLBACK_STATEMENT takes back the statement that is cut, with all its pieces, and nothing else. `messages` are those
    of one transaction, in its order.
    """
    kept: list[tuple[Message, int]] = []
    begun = 0
    for message in messages:
        for number, piece in enumerate(message.pieces):
            if piece.operation == ROLLBACK_STATEMENT:
                del kept[begun:]
                continue
            if piece.number is None or piece.number == 1:
                begun = len(kept)
            kept.append((message, number))
            if piece.number is None or piece.ended:
                begun = len(kept)
    return kept
