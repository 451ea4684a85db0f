"""The verdict of one transaction of a stream at every server, and which log would send it.

They are read from what the diagnosis found: what is missing, on its way or unknown there is that here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workbench.model import Problem, listed
from workbench.replication.stream.diagnosis.appliers import Applied, Behind, told_beyond
from workbench.replication.stream.diagnosis.by_earlier_log import ByEarlierLog
from workbench.replication.stream.diagnosis.contents import is_of_left_out
from workbench.replication.stream.diagnosis.log_comparison import EVIDENT, IN_PART, LACKS, NO_SOURCE, Row, Streams
from workbench.replication.stream.diagnosis.queues import Key
from workbench.replication.stream.rules.segments import COMMITTED, SAYS
from workbench.replication.stream.rules.streams import (
    COPY_AHEAD,
    FILTERED,
    GONE_FROM_SOURCE,
    NOTHING_SHARED,
    NUMBERED_ANEW,
    PASSED_SINCE,
    UNRELATED,
    WHY_UNKNOWN,
    MissingTransaction,
    judged,
)
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, PRESENT, UNKNOWN, Verdict

Rows = Mapping[str, Row | None]
"""Server -> the row of the transaction in its log; None: it has none."""

NOT_AT_SOURCE = "not_at_source"


class Said(NamedTuple):
    """A verdict, its rule, and what the rule says."""

    verdict: str
    rule: str
    says: str


def verdicts_by_stream(streams: Streams, position: str) -> list[Verdict]:
    """The verdict of every server with a log or an applier, where any file that the diagnosis speaks of has the transaction."""
    if not _is_known(streams, position):
        return []
    key, rows = (streams.shown.system.origin_of(position), position), streams.rows_at(position)
    servers = sorted({*streams.logs, *(one.server for one in streams.applied)})
    return [Verdict(name, None, *_verdict(streams, name, key, rows)) for name in servers]


def named_position(streams: Streams, position: str) -> str:
    """The transaction that a typed number means: that of another server, where the one that was taken for it has none.

    Raises Problem if several servers made one with that number.
    """
    system = streams.shown.system
    if _is_known(streams, position) or system.typed(system.show(position)) != position:
        return position  # it is there, or the server was named
    origins = {*streams.origins, *(origin for one in streams.applied for origin, _ in one.waiting)}
    origins |= {system.origin_of(at) for one in streams.applied for at in one.in_part}
    others = [system.order_key(origin, *system.halves(position)) for origin in sorted(origins)]
    found = [other for other in others if _is_known(streams, other)]
    if len(found) > 1:
        number = system.show(position)
        names = listed([f"{system.origin_of(each)}:{number}" for each in found], "or")
        raise Problem(
            f"several servers made a transaction {number}", streams.shown.snapshot, f"name its server: {names}"
        )
    return found[0] if found else position


def _is_known(streams: Streams, position: str) -> bool:
    """True if a log or a queue has the transaction, or the diagnosis speaks of what an earlier file has of it."""
    origin = streams.shown.system.origin_of(position)
    key = origin, position
    earlier = [lack.position for (_, of), one in streams.by_earlier.items() if of == origin for lack in _of_both(one)]
    earlier += [gone.position for (_, of), of_log in streams.gone.items() if of == origin for gone in of_log]
    queued = [each for one in streams.applied for each in one.waiting]
    queued += [each.key for found in streams.passed.values() for each in found.values()]
    queued += [each.key for each in streams.passed_since if each.key]
    in_part = any(_has_part(streams, one, key) for one in streams.applied)
    return any(streams.rows_at(position).values()) or position in earlier or key in queued or in_part


def _of_both(one: ByEarlierLog) -> list[MissingTransaction]:
    return [*one.inside, *one.behind]


def _has_part(streams: Streams, one: Applied, key: Key) -> bool:
    return key[1] in one.in_part and streams.shown.system.origin_of(key[1]) == key[0]


def _verdict(streams: Streams, name: str, key: Key, rows: Rows) -> Said:
    """What is known of one transaction at one server."""
    origin, position = key
    row = rows.get(name)
    both = streams.differences.get((name, origin))
    if row is not None and row["outcome"] == COMMITTED:
        if both is not None and both.difference.unrelated:
            return Said(UNKNOWN, UNRELATED, WHY_UNKNOWN[UNRELATED])
        if both is not None and position in both.difference.conflicts and not streams.is_open(origin):
            return Said(UNKNOWN, "other_content", _OTHER_CONTENT)
        return Said(PRESENT, "log_shows", EVIDENT["log_shows"])
    if before := _by_earlier(streams, name, key):
        return before
    lacked = {lack.position: lack for lack in both.difference.inside} if both else {}
    if position in lacked:
        rule = LACKS if lacked[position].outcome is None else IN_PART
        return Said(MISSING, rule, EVIDENT[rule])
    if said := _by_applier(streams, name, key, rows):
        return said
    for gone in streams.gone.get((name, origin), ()):
        if gone.position == position:
            return Said(UNKNOWN, "gone_from_log", f"{gone.log} has it, and its present log lacks it (GONE_FROM_LOG)")
    if name not in streams.logs:
        return Said(UNKNOWN, NOT_AT_SOURCE, "no log of its masters shows it as a commit")
    return _by_log(streams, name, key, rows)


_OTHER_CONTENT = (
    "its log has the transaction with another content than that of its source: nothing tells which one it has "
    "to have (TXN_CONFLICT)"
)


def _by_earlier(streams: Streams, name: str, key: Key) -> Said | None:
    """What earlier files show of it, where the diagnosis goes by them; None: nothing."""
    origin, position = key
    if any(each.key == key and each.server == name and each.doubtful for each in streams.passed_since):
        return Said(UNKNOWN, PASSED_SINCE, WHY_UNKNOWN[PASSED_SINCE])
    before = streams.by_earlier.get((name, origin))
    for lack in before.inside if before else ():
        if lack.position == position and before:
            rule = LACKS if lack.outcome is None else IN_PART
            return Said(MISSING, rule, f"{EVIDENT[rule]}; {before.earlier.place}, its source, has it")
    if before and any(lack.position == position for lack in before.behind):
        return Said(UNKNOWN, GONE_FROM_SOURCE, WHY_UNKNOWN[GONE_FROM_SOURCE])
    return None


def _by_applier(streams: Streams, name: str, key: Key, rows: Rows) -> Said | None:
    """What a replica says of how far it applied, and its queue; None: it says nothing of it.

    Of several masters that have the transaction the one that says most counts.
    """
    mine = [one for one in streams.applied if one.server == name]
    found = [said for one in mine if (said := _of_master(streams, one, key, rows))]
    order = (PRESENT, PENDING, UNKNOWN)
    return min(found, key=lambda said: order.index(said.verdict), default=None)


def _of_master(streams: Streams, one: Applied, key: Key, rows: Rows) -> Said | None:
    behind = next((each for each in streams.behind if each.applied is one), None)
    row = rows.get(one.source or "")
    if key in one.waiting and one.waiting[key]["outcome"] != COMMITTED:
        outcome = str(one.waiting[key]["outcome"])
        return Said(UNKNOWN, outcome, "its queue has it, and it changes nothing")
    if key in one.waiting:
        unlike = behind is not None and any((of, at) == key for (_, at), of in behind.unlike)
        return Said(PENDING, "queue_differs", _QUEUE_DIFFERS) if unlike else Said(PENDING, "in_its_queue", _QUEUED)
    if _has_part(streams, one, key):
        return Said(PENDING, "queued_in_part", "its queue has a part of it, and nothing partial may be applied")
    elsewhere = {each.key: each for each in streams.passed.get((one.server, one.master), {}).values()}
    if one.unmatched:
        return Said(UNKNOWN, "master_not_matched", "nothing tells whose log that of its master is (MASTER_NOT_MATCHED)")
    if key in elsewhere:
        return Said(PENDING, "queue_lacks", f"{_GAP}; {elsewhere[key].place} has it")
    if behind is not None and any((of, at) == key for (_, at), of in behind.gone):
        return Said(
            PENDING,
            "gone_from_source",
            "an earlier log of its master has it, and the present one lacks it (GONE_FROM_LOG)",
        )
    if behind is not None and any((of, at) == key for (_, at), of in behind.broken):
        return Said(
            PENDING,
            "in_part_at_source",
            "the log of its master has it in part: what it fetches is no whole transaction",
        )
    beyond = told_beyond(streams.applied, streams.logs[one.source]).waiting if one.source and row is None else {}
    if key in beyond and beyond[key]["outcome"] == COMMITTED:
        return _by_number(streams, one, behind, beyond[key]["commit"])
    if one.source is None or row is None:
        return None
    if one.commit is None:
        return Said(UNKNOWN, "applied_not_said", "it does not say how far it applied the log of its master")
    if row["outcome"] != COMMITTED or row["commit"] is None:
        return Said(UNKNOWN, NOT_AT_SOURCE, "the log of its master does not show it as a commit")
    return _by_number(streams, one, behind, row["commit"])


_QUEUED = "it is in its queue, and its applier has not come to it"
_QUEUE_DIFFERS = "its queue has it otherwise than the log of its master (TXN_CONFLICT)"
_GAP = "it is neither applied nor in its queue, which does not ask for it again (QUEUE_GAP)"


def _by_number(streams: Streams, one: Applied, behind: Behind | None, commit: int) -> Said:
    """Of what the log of a master, or the queue of another replica of it, has whole, and the queue does not have."""
    anew = streams.history.renumbered.get(one.source or "")
    upto, seen = one.commit or 0, behind.seen if behind else 0
    if anew is not None and anew.first <= commit <= max(upto, seen):
        return Said(UNKNOWN, NUMBERED_ANEW, WHY_UNKNOWN[NUMBERED_ANEW])
    if commit <= upto:
        return Said(
            PRESENT, "applied", f"it says that it applied {one.source} up to commit {upto:,}, and this is {commit:,}"
        )
    if one.whole and one.queued is not None and commit <= seen:
        return Said(PENDING, "queue_lacks", _GAP)
    if not one.whole or one.queued is None:
        return Said(PENDING, "not_applied", f"it applied {one.source} up to commit {upto:,}, and this is {commit:,}")
    return Said(PENDING, "to_fetch", f"its queue ends before it: it asks {one.source} for it")


def _by_log(streams: Streams, name: str, key: Key, rows: Rows) -> Said:
    """Of what the log of a server does not hold whole."""
    origin, position = key
    row, source = rows[name], streams.source_for(name, origin)
    both = streams.differences.get((name, origin))
    theirs = rows.get(source or "")
    before = streams.by_earlier.get((name, origin))
    if before and before.behind and both and both.shared is None and theirs is not None:
        return Said(
            PENDING, "not_covered", f"{NOT_COVERED}; what {before.earlier.place} has comes first (GONE_FROM_LOG)"
        )
    for at, _, why in both.difference.unknown if both else ():
        if at == position:
            return Said(UNKNOWN, why, WHY_UNKNOWN[why])
    if row is not None and (theirs is None or theirs["outcome"] != COMMITTED):
        return Said(UNKNOWN, str(row["outcome"]), SAYS.get(row["why"] or "", str(row["outcome"])))
    having = [each for each, of in rows.items() if of is not None and of["outcome"] == COMMITTED]
    before_it = streams.logged_before(name, origin, position) if row is None else None
    if before_it and both is not None and both.shared is not None and theirs is not None:
        place = theirs[streams.logs[source or ""].order]
        if place < both.shared.begins:
            return Said(PRESENT, "earlier_log", f"its log begins behind it, and {before_it.place} has it whole")
    if streams.is_open(origin):
        if both is not None and any(lack.position == position for lack in both.difference.behind):
            return Said(PENDING, "not_covered", NOT_COVERED)
        if len(having) < 2:
            return Said(UNKNOWN, NO_SOURCE, "one log alone has it, and nothing tells which log is the source")
    if source is None or theirs is None or theirs["outcome"] != COMMITTED:
        if origin not in streams.sources:
            return Said(UNKNOWN, "no_log", "no log has anything of its origin")
        places = [
            log.place for server, log in streams.earlier if server == name and log.log.rows_of(origin, [position])
        ]
        says = "its log does not hold it" if source is None else "its source does not show it as a commit"
        return Said(
            UNKNOWN, NOT_AT_SOURCE, f"its present log does not hold it, and {places[-1]} does" if places else says
        )
    return _compared(streams, source, name, rows)


def _compared(streams: Streams, source: str, name: str, rows: Rows) -> Said:
    """By one log held against another one, which holds it whole."""
    row, theirs = rows[name], rows[source]
    assert theirs is not None
    if row is not None and row["outcome"] == COMMITTED:
        return Said(PRESENT, "log_shows", EVIDENT["log_shows"])
    one = streams.between(source, name, theirs["origin"])
    if one.shared is None:
        why = UNRELATED if one.difference.unrelated else NOTHING_SHARED
        return Said(UNKNOWN, why, WHY_UNKNOWN[why])
    place = theirs[streams.logs[source].order]
    told = judged(place, row["outcome"] if row else None, one.shared, bool(streams.logs[name].lost))
    if (
        told == "behind"
        and source == streams.source_of(theirs["origin"])
        and streams.may_be_past(name, theirs["origin"])
    ):
        told = COPY_AHEAD
    if told in ("inside", "behind") and is_of_left_out(streams.contents(source, name, theirs["origin"]), theirs):
        told = FILTERED
    if told == "inside":
        rule = IN_PART if row else LACKS
        return Said(MISSING, rule, EVIDENT[rule])
    return Said(PENDING, "not_covered", NOT_COVERED) if told == "behind" else Said(UNKNOWN, told, WHY_UNKNOWN[told])


def would_send(streams: Streams, position: str, consumer: str) -> Iterator[tuple[str, bool, str]]:
    """Each other log: its server, whether it would send the transaction now, and why."""
    rows, key = streams.rows_at(position), (streams.shown.system.origin_of(position), position)
    masters = {one.source for one in streams.applied if one.server == consumer and one.source}
    for name, row in sorted(rows.items()):
        if name == consumer or (consumer not in streams.logs and name not in masters):
            continue
        if row is None or row["outcome"] != COMMITTED:
            yield name, False, "its log does not hold it as a commit"
        elif name in masters:
            said = _verdict(streams, consumer, key, rows)
            sent = said.rule in _ASKED
            yield name, sent, "the consumer asks for it" if sent else said.says
        else:
            verdict = _compared(streams, name, consumer, rows).verdict
            yield name, verdict == PENDING, _SENDS.get(verdict, "nothing tells whether the consumer has it")


_ASKED = frozenset({"to_fetch", "not_applied"})
_SENDS = {
    PENDING: "it follows the last transaction that both have",
    MISSING: "the consumer is past it: a replica asks for later commits only",
    PRESENT: "the consumer has it",
}
