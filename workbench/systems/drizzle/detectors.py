"""What looks for findings of Drizzle's own: transactions that are no commits, damaged logs, appliers that stand still."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from workbench.intake.decompression import PACKED
from workbench.model import (
    APPLYING,
    HOLES,
    IDENTITY,
    ITEMS_SHOWN,
    LAG,
    Detectors,
    Finding,
    first_few,
    listed,
    step,
)
from workbench.replication.stream.diagnosis.appliers import APPLIER
from workbench.replication.stream.diagnosis.by_earlier_log import whole_before
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.rows import big_ones
from workbench.replication.stream.rules.segments import (
    ABORTED,
    ASK,
    COMMITTED,
    CONFLICT,
    CORRUPT,
    INCOMPLETE,
    NUMBER_REUSED,
    ROLLED_BACK,
    SAYS,
    UNFINISHED,
)
from workbench.replication.stream.rules.streams import SOURCE_UNCLEAR, UNCLEAR, Difference
from workbench.systems import format_with
from workbench.systems.drizzle.ahead_otherwise import ahead_otherwise
from workbench.systems.drizzle.errant import errant, errant_before
from workbench.systems.drizzle.formats import TRANSACTION_LOG
from workbench.systems.drizzle.gone_from_log import EARLIER_LOGS
from workbench.systems.drizzle.not_compared import not_compared
from workbench.systems.drizzle.not_understood import not_understood
from workbench.systems.drizzle.nothing_in_common import nothing_in_common
from workbench.systems.drizzle.passed_over import passed_over
from workbench.systems.drizzle.queues import QUEUES
from workbench.systems.drizzle.taken_back import taken_back, taken_back_at_source

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]
Key = tuple[str, str]
"""Server and origin."""

_NAMED = 3
"""So many transactions are named by themselves."""


def _streams(context: DetectorContext) -> Streams:
    assert context.verdicts.streams is not None
    return context.verdicts.streams


def _odd(context: DetectorContext, which: Callable[[Row], bool]) -> Iterator[tuple[Key, list[Row]]]:
    """The transactions of each log and origin that are so, in the order of the log."""
    found: dict[Key, list[Row]] = {}
    for row in _streams(context).odd_ones:
        if which(row):
            found.setdefault((row["server"], row["origin"]), []).append(row)
    yield from sorted(found.items())


_PROOF = ("position", "outcome", "why", "messages", "missing", "bytes", "offset", "at_source")


def _of(key: Key, rows: Sequence[Row]) -> dict[str, Any]:
    """Of whom a finding about these transactions speaks, and what proves it."""
    return {
        "server": key[0],
        "origin": key[1],
        "items": tuple(dict.fromkeys(row["position"] for row in rows))[:ITEMS_SHOWN],
        "evidence": first_few({name: row[name] for name in _PROOF if row[name] is not None} for row in rows),
    }


def _query(row: Row) -> str:
    """What to run at the source; where it keeps no such log, the rows themselves tell."""
    return f"({row['query']}; or compare the rows)"


def _some(rows: Sequence[Row]) -> str:
    """How many transactions, and which of which server."""
    positions = list(dict.fromkeys(row["position"] for row in rows))
    named = ", ".join(positions[:3]) + (f" and {len(positions) - 3:,} more" if len(positions) > 3 else "")
    return f"{len(positions):,} transaction{'' if len(positions) == 1 else 's'} of server {rows[0]['origin']} ({named})"


def incomplete(context: DetectorContext) -> Iterator[Finding]:
    """Transactions with an end, of which messages are not there."""
    for key, rows in _odd(context, lambda row: row["outcome"] == INCOMPLETE):
        places = [place for row in rows if (place := _holder(context, row))]
        from_where = f"apply them whole from {places[0]}" if places else "ask the source for them"
        if waiting := _fetching(context, key):
            put = f"put all messages of {'it' if len(rows) == 1 else 'them'} into the queue of {listed(waiting.all)}"
            from_where = f"{waiting.stop}{put}{f', from {places[0]}' if places else ''}"
        yield Finding(
            "TXN_INCOMPLETE",
            "error",
            f"{key[0]}: {_some(rows)} came without {_lacking(rows)}: nothing of {'it' if len(rows) == 1 else 'them'} may be "
            "applied",
            **_of(key, rows),
            fix=(
                step(
                    from_where,
                    "a part of a transaction must not be applied",
                    "nothing that its other rows changed is safe to change before",
                ),
            ),
        )


class _Fetching(NamedTuple):
    """Replicas that have yet to come to what the log of their master has in part, and how a step begins that stops them."""

    all: Sequence[str]
    stop: str


def _fetching(context: DetectorContext, key: Key) -> _Fetching | None:
    """None: no replica comes to it."""
    mine = [
        one
        for one in _streams(context).behind
        if one.applied.source == key[0] and any(origin == key[1] for _, origin in one.broken)
    ]
    running = sorted({one.applied.server for one in mine if APPLIER not in one.applied.stopped})
    stop = f"stop {listed(running)} now, and " if running else ""
    return _Fetching(sorted({one.applied.server for one in mine}), stop) if mine else None


def _lacking(rows: Sequence[Row]) -> str:
    """Which messages are not there, of one transaction that tells it."""
    numbers = str(rows[0]["missing"] or "").split() if len(rows) == 1 else []
    many = f"messages {listed(numbers[:10])}" if len(numbers) > 1 else f"message {numbers[0]}" if numbers else ""
    return many or "some of the messages"


def _holder(context: DetectorContext, row: Row) -> str:
    """The log that has the transaction whole, in words: a present one, or an earlier one of the same server; empty: none."""
    streams, origin = _streams(context), row["origin"]
    key = context.topology.system.typed(f"{origin}:{row['position']}") or ""
    having = streams.holders.get(origin, {}).get(key, [])
    if not having:
        here = streams.segmented(row["server"]).messages(origin, [key]).get(key)
        for name in _whole_elsewhere(context, row) if here and here.numbered else ():
            there = streams.segmented(name).messages(origin, [key]).get(key)
            if here and there and there.numbered and here.places.keys() <= there.places.keys():
                having = [*having, name]
    return f"the log of {having[0]}" if having else whole_before(streams, row["server"], origin, key)


def without_end(context: DetectorContext) -> Iterator[Finding]:
    """Transactions without an end: some may still get one, of some the source started anew, and of some it tells more."""
    for key, rows in _odd(context, lambda row: row["outcome"] == UNFINISHED):
        void = [row for row in rows if row["at_source"] in (ROLLED_BACK, ABORTED)]
        committed = [row for row in rows if row["at_source"] == COMMITTED]
        missing = [row for row in committed if _is_missing(context, row)]
        unknown = [row for row in committed if _cannot_be_judged(context, row)]
        coming = [row for row in committed if row not in missing and row not in unknown]
        unclear = (row for row in rows if row["at_source"] in UNCLEAR)
        whole = [row for row in unclear if _whole_elsewhere(context, row)]
        waits = len(void) + len(missing) + len(unknown) < len(rows)
        told = f"; their source took {len(void):,} of them back" if void else ""
        if missing:
            told += f"; their source committed {len(missing):,} of them: what is not here was lost (MISSED_CHANGE)"
        if unknown:
            told += f"; their source committed {len(unknown):,} of them: this log does not prove that the rest came"
        if whole:
            holders = sorted({name for row in whole for name in _whole_elsewhere(context, row)})
            told += f"; the log of their source is damaged there, and {listed(holders)} ha{'s' if len(holders) == 1 else 've'} "
            told += "it with its end" if len(rows) == 1 else f"{len(whole):,} of them with the end"
        if coming:
            told += f"; their source committed {len(coming):,} of them: the rest is still to come"
        yield Finding(
            "TXN_UNFINISHED",
            "error" if _fetching(context, key) else "warning" if waits else "info",
            f"{key[0]}: {_some(rows)} ha{'s' if len(rows) == 1 else 've'} no end in the log: do not apply"
            f"{', wait' if waits and not _streams(context).logs[key[0]].by_commit else ''}{told}",
            **_of(key, rows),
            fix=(_settles(context, key, rows, bool(void), len(missing), len(unknown), coming),),
        )
    # Of one that its source committed, the start was another server's: it is missing, and said so.
    aborted = _odd(context, lambda row: row["outcome"] == ABORTED and row["at_source"] != COMMITTED)
    for key, every in aborted:
        ended = [row for row in every if _whole_elsewhere(context, row)]
        rows = [row for row in every if row not in ended]
        if ended:
            yield _ended_elsewhere(context, key, ended)
        if not rows:
            continue
        lost = bool(_streams(context).logs[key[0]].lost)
        yield Finding(
            "TXN_ABORTED",
            "warning" if lost else "info",
            f"{key[0]}: {_some(rows)} had no end when the server started anew: discard the pieces",
            **_of(key, rows),
            fix=(
                step(
                    "discard them; a replica that applied pieces in advance must take these back",
                    "the server that made them started anew since: their end can never come",
                    ASK[rows[0]["why"]] if lost else None,
                ),
            ),
        )


def _settles(
    context: DetectorContext,
    key: Key,
    rows: Sequence[Row],
    void: bool,
    missing: int,
    unknown: int,
    coming: Sequence[Row],
) -> Mapping[str, Any]:
    """What to do about transactions without an end in the log of a server, by what their source says of them.

    coming  those that their source committed, and of which the rest may still come
    """
    streams = _streams(context)
    source, them = streams.source_for(*key), "it" if len(rows) == 1 else "them"
    holders = [[*_whole_elsewhere(context, row)] for row in rows if row["at_source"] in UNCLEAR]
    if len(holders) == len(rows) and all(holders):
        return step(
            f"see whether the rest of {them} arrives; if not, apply {them} whole from the log of "
            f"{listed(sorted({of[0] for of in holders}))}",
            f"the log of {source} has {them} damaged, and another log has the end of {them}: a commit",
        )
    silent = "a transaction that was cut between two statements and rolled back never gets an end"
    if void:
        return step("discard the pieces of those that their source took back", silent)
    if missing == len(rows):
        return step(
            f"apply {them} whole from the log of {source}, as MISSED_CHANGE says",
            f"{source} committed {them}, and no end of {them} will come",
        )
    if unknown == len(rows):
        return step(f"compare the rows that they changed with those of {source}", silent)
    broken = streams.broken_commits(key[0])
    places = sorted({each.earlier for at, each in broken.items() if at[0] == key[1] and each.outcome == UNFINISHED})
    if streams.logs[key[0]].by_commit and places:
        waiting = _fetching(context, key)
        put = (
            f"{waiting.stop}put all messages of {them} into the queue of {listed(waiting.all)}, from"
            if waiting
            else "see"
        )
        return step(
            f"{put} {listed(places, 'and')}, which ha{'s' if len(places) == 1 else 've'} {them} whole",
            f"{key[0]} committed {them}, and a replica passes over what has no end there",
            f"a replica that is past {them} lacks {them}: compare its rows",
        )
    if streams.logs[key[0]].by_commit:
        return step(
            f"export the table of {key[0]} again; if the end is still not there, look for the rows of {them} on {key[0]}",
            "a server writes this table within the transaction: what is in it was committed, and one whose last statement failed "
            "has no end",
        )
    untold = next((row for row in rows if row["at_source"] is None), None)
    if coming and untold is None:
        return step(
            f"collect the log of {key[0]} once more, after the rest of {them} was to arrive",
            f"{source} committed {them}, and the log of {key[0]} ends before the end of {them}",
            f"what has no end there then was missed: apply it whole from the log of {source}",
        )
    asked = untold or rows[0]
    return step(f"ask the source: {ASK[asked['why']]} {_query(asked)}", silent)


def _whole_elsewhere(context: DetectorContext, row: Row) -> list[str]:
    """The other servers whose logs have a transaction with its end."""
    position = context.topology.system.typed(f"{row['origin']}:{row['position']}")
    return [name for name in _streams(context).having(position or "") if name != row["server"]]


def _ended_elsewhere(context: DetectorContext, key: Key, rows: Sequence[Row]) -> Finding:
    """What has no end in one log, whose server started anew, and has it in another one."""
    server, others = key[0], sorted({name for row in rows for name in _whole_elsewhere(context, row)})
    them = "it" if len(rows) == 1 else "them"
    return Finding(
        "TXN_ABORTED",
        "warning",
        f"{server}: {_some(rows)} had no end when the server started anew, and {listed(others)} ha"
        f"{'s' if len(others) == 1 else 've'} {them} whole: the log of {server} lost the end, or {listed(others)} applied what "
        f"{server} does not have",
        **_of(key, rows),
        fix=(
            step(
                f"ask {server}: {ASK[rows[0]['why']]} {_query(rows[0])}",
                f"if its rows are there, its log lost the end and {listed(others)} {'is' if len(others) == 1 else 'are'} right",
                f"discard nothing on {listed(others)} before: what is there was committed",
            ),
        ),
    )


def _is_missing(context: DetectorContext, row: Row) -> bool:
    """True if the log of a server is past what it has in part."""
    difference, position = _compared(context, row)
    return difference is not None and any(missed.position == position for missed in difference.inside)


def _cannot_be_judged(context: DetectorContext, row: Row) -> bool:
    """True if the log of a server lost records where the rest of what it has in part would stand."""
    difference, position = _compared(context, row)
    return difference is not None and any(unknown == position for unknown, _, _ in difference.unknown)


def _compared(context: DetectorContext, row: Row) -> tuple[Difference | None, str | None]:
    """The difference between the log of a server and that of its source, and the position of a transaction (`row`) in it."""
    both = _streams(context).differences.get((row["server"], row["origin"]))
    position = context.topology.system.typed(f"{row['origin']}:{row['position']}")
    return (both.difference if both else None), position


def conflicts(context: DetectorContext) -> Iterator[Finding]:
    """Transactions with two contents, in one log or in two."""
    for key, rows in _odd(context, lambda row: row["outcome"] == CONFLICT):
        yield Finding(
            "TXN_CONFLICT",
            "error",
            f"{key[0]}: {_some(rows)} came with different contents: {SAYS[rows[0]['why']]}",
            **_of(key, rows),
            fix=(
                step(
                    f"ask the source: {ASK[rows[0]['why']]} {_query(rows[0])}; apply what it has by hand",
                    "the stream cannot tell",
                ),
            ),
        )
    streams, show = _streams(context), context.topology.system.show
    for (server, origin), one in sorted(streams.differences.items()):
        void = {*taken_back_at_source(streams, server, origin)} if one.counts["conflicts"] else set[str]()
        if count := one.counts["conflicts"] - len(void):
            source = streams.source_for(server, origin)
            positions = [show(position) for position in one.difference.conflicts if position not in void]
            named = ", ".join(positions[:3]) + (f" and {count - 3:,} more" if count > 3 else "")
            yield Finding(
                "TXN_CONFLICT",
                "error",
                f"{server} and {source} hold {count:,} transaction{'' if count == 1 else 's'} of server {origin} ({named}) with "
                "different contents or ends",
                server=server,
                origin=origin,
                items=tuple(positions[:ITEMS_SHOWN]),
                evidence=({"server": server, "source": source, "count": count},),
                fix=(
                    step(
                        "compare the rows of both, save what is right of either, and then provision the one that is wrong from "
                        "the other",
                        "both committed under one number what is not the same, and a copy of all data replaces the other content",
                        "if two servers run with one server id, both may be right: give one of them another id",
                    ),
                ),
            )


def used_again(context: DetectorContext) -> Iterator[Finding]:
    """Numbers of transactions that a server used twice."""
    for key, rows in _odd(context, lambda row: row["why"] == NUMBER_REUSED):
        again = [row for row in rows if row["outcome"] == COMMITTED]
        says = "were given to others before the server started anew" if again else "stand for two transactions"
        yield Finding(
            "ID_REUSED",
            "warning",
            f"{key[0]}: numbers of {_some(rows)} {says}",
            **_of(key, rows),
            fix=(
                step(
                    "find out whether the data directory of that server was made anew, and provision its replicas from it if so",
                    "numbers begin anew then, and replicas that go by numbers take new transactions for old ones",
                ),
            ),
        )


def repeated(context: DetectorContext) -> Iterator[Finding]:
    """Transactions that were delivered more than once."""
    for key, rows in _odd(context, lambda row: bool(row["repeated"])):
        yield Finding(
            "TXN_REPEATED",
            "info",
            f"{key[0]}: {_some(rows)} came more than once, with equal contents: to be applied once",
            **_of(key, rows),
            fix=(
                step(
                    "nothing: a second delivery is known by its contents",
                    "whatever applies by numbers must not do it twice",
                ),
            ),
        )


def damaged(context: DetectorContext) -> Iterator[Finding]:
    """Records that do not fit their checksum, stretches that are no records, and logs that end within one."""
    for one in context.inputs:
        end = one.facts.get("end_of_file", {})
        torn = end.get("state") == "truncated"
        rejects = [row for row in _rejects(context, one.file) if not row["reason"].startswith(PACKED)]
        lost = [row for row in rejects if not (torn and row["offset"] == end.get("offset"))]
        log = _streams(context).logs.get(one.server)
        mine = _streams(context).odd_ones if log and log.file == one.file else []
        bad = [row for row in mine if row["server"] == one.server and row["outcome"] == CORRUPT]
        if not format_with(one.kind).streams:
            continue  # what a replica says of itself holds no transaction: UNREADABLE_INPUT tells of it
        if lost or bad:
            have = "transaction has" if len(bad) == 1 else "transactions have"
            what = [f"{len(bad):,} {have} a message that does not fit its checksum"] if bad else []
            places = f"{len(lost):,} place{'s' * (len(lost) != 1)}"
            what += [f"what is no record that can be read, in {places}"] if lost else []
            evidence = [{name: row[name] for name in ("position", "outcome", "offset")} for row in bad]
            yield Finding(
                "RECORD_CORRUPT",
                "error",
                f"{one.file}: {', and '.join(what)}",
                server=one.server,
                items=tuple(row["position"] for row in bad[:ITEMS_SHOWN]),
                evidence=first_few([*evidence, *lost]),
                fix=(*_held_whole(context, bad), _where_else(one.format)),
            )
        if torn:
            have, need = end.get("have"), end.get("need")
            of = f"{have:,} of {need:,} bytes" if need else f"{have:,} bytes"
            yield Finding(
                "TORN_TAIL",
                "warning",
                f"{one.file}: the last record is cut in its {end.get('part')}, {of} are there",
                server=one.server,
                evidence=({"file": one.file, **{key: end.get(key) for key in ("offset", "part", "have", "need")}},),
                fix=(
                    step(
                        "collect the log again; if the server stands still, its last transaction was being written",
                        "a log that is copied while it is written ends so, and one of a server that crashed",
                        "the server's own reader does not tell a cut header from a clean end",
                    ),
                ),
            )


def _held_whole(context: DetectorContext, bad: Sequence[Row]) -> Iterator[Mapping[str, Any]]:
    """Which log has damaged transactions (`bad`) whole, and which has nothing of them: the number of one may be damaged, too."""
    streams = _streams(context)
    for row in bad[:_NAMED]:
        position = context.topology.system.typed(f"{row['origin']}:{row['position']}") or ""
        rows = streams.rows_at(position)
        here, holders = rows.get(row["server"]), _whole_elsewhere(context, row)
        if not holders or here is None:
            continue
        same = [name for name in holders if (rows[name] or {})["content"] == here["content"]]
        lacking = [name for name in sorted(rows) if same and _is_past(streams, name, row["origin"], position)]
        where = f"take {row['position']} from the log of {listed(same or holders, 'or')}"
        where += f", and apply it on {listed(lacking)}, whose log does not have it" if lacking else ""
        before = [name for name in sorted(rows) if same and _ends_before(streams, name, row["origin"], position)]
        if before:
            where += (
                f"{',' if lacking else ''} and see whether it arrives at {listed(before)}, whose log ends before it"
            )
            where += ": if not, apply it there"
        yield step(
            where,
            "the message is the same there: only its checksum is damaged"
            if same
            else "a transaction of this number is whole there",
            f"`workbench diagnose --source {row['origin']}={(same or holders)[0]}` holds the others against that log"
            if lacking
            else None,
        )


def _ends_before(streams: Streams, server: str, origin: str, position: str) -> bool:
    """True if the log of a server ends before what that of its source has damaged."""
    both = streams.differences.get((server, origin))
    if both is None or both.shared is None:
        return False
    covers = both.shared.covers
    return any(
        at == position and why == SOURCE_UNCLEAR and place > covers for at, place, why in both.difference.unknown
    )


def _is_past(streams: Streams, server: str, origin: str, position: str) -> bool:
    """True if the log of a server goes on behind what its source has damaged, and has nothing of that."""
    both = streams.differences.get((server, origin))
    if both is None or both.shared is None:
        return False
    reach = both.shared
    return any(
        at == position and why == SOURCE_UNCLEAR and reach.begins <= place < reach.covers
        for at, place, why in both.difference.unknown
    )


def _where_else(kind: str) -> Mapping[str, Any]:
    """What to do about records of a file of this kind that cannot be read."""
    if kind == TRANSACTION_LOG.name:
        return step(
            "take these transactions from the log of another server",
            "what a damaged record held cannot be trusted, not even its number",
            "a disk that returns wrong bytes returns more of them: see to it first",
        )
    return step(
        "export the table again; if the rows are the same, take these transactions from the log of another server",
        "an export that was cut, or written while it was read, ends so",
        "a row that does not fit its own message cannot be trusted, not even its number",
    )


def _rejects(context: DetectorContext, file: str) -> list[dict[str, Any]]:
    label, where = context.topology.snapshot, pc.field("file") == file
    found = context.rows("rejects", ["offset", "reason"], where, snapshot=label)
    return [row for batch in found for row in batch.to_pylist()]


def ragged(context: DetectorContext) -> Iterator[Finding]:
    """Updates whose rows changed other columns than their header lists."""
    for key, rows in _odd(context, lambda row: row["ragged"] > 0):
        count = sum(row["ragged"] for row in rows)
        yield Finding(
            "RAGGED_UPDATE",
            "warning",
            f"{key[0]}: {count:,} rows in {_some(rows)} cannot be read safely: "
            "the header lists the columns that the first row changed",
            **_of(key, rows),
            fix=(
                step(
                    "copy the rows concerned from the source; do not guess which columns were meant",
                    "each row carries values for its own columns, and nothing names these",
                    "rows of the same number of values may be wrong, too, where they changed other columns",
                ),
            ),
        )


def big(context: DetectorContext) -> Iterator[Finding]:
    """Transactions that are so big that they hold others back."""
    found: dict[Key, list[dict[str, Any]]] = {}
    streams = _streams(context)
    for server, row in big_ones(streams):
        found.setdefault((server, row["origin"]), []).append(streams.transaction(server, row))
    for key, rows in sorted(found.items()):
        top = rows[0]
        tables = ", ".join(sorted(top["rows"] or {})) or "no table"
        yield Finding(
            "BIG_TRANSACTION",
            "info",
            f"{key[0]}: the biggest of {_some(rows)} has {top['bytes']:,} bytes in {top['messages']:,} messages ({tables}), and "
            f"{top['held']:,} others ended while it was open",
            **_of(key, rows),
            fix=(
                step(
                    "cut such operations into smaller ones",
                    "a replica that applies in the order of commits stands still while it applies them",
                ),
            ),
        )


DETECTORS: Detectors = {
    IDENTITY: (used_again, errant, errant_before),
    HOLES: (
        incomplete,
        without_end,
        conflicts,
        ahead_otherwise,
        taken_back,
        not_compared,
        nothing_in_common,
        repeated,
        damaged,
        *EARLIER_LOGS,
        not_understood,
        ragged,
    ),
    APPLYING: (*QUEUES, passed_over),
    LAG: (big,),
}
