"""The verdict of one transaction of a stream at every server, and which log would send it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.case.case import Case
from workbench.replication.stream.diagnosis.contents import is_of_left_out
from workbench.replication.stream.diagnosis.log_comparison import EVIDENT, IN_PART, LACKS, Row, Streams
from workbench.replication.stream.rules.segments import COMMITTED, SAYS
from workbench.replication.stream.rules.streams import (
    COPY_AHEAD,
    FILTERED,
    NOTHING_SHARED,
    UNRELATED,
    WHY_UNKNOWN,
    judged,
)
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, PRESENT, UNKNOWN, Verdict
from workbench.topology.topology import Topology


def verdicts_by_stream(case: Case, shown: Topology, position: str) -> list[Verdict]:
    """The verdict of every server with a log, where any log holds the transaction."""
    streams = Streams(case, shown, limit=1)
    rows = streams.rows_at(position)
    source = streams.source_of(shown.system.origin_of(position))
    if not any(rows.values()) or source is None:
        return []
    return [Verdict(name, None, *_verdict(streams, source, name, rows)) for name in sorted(rows)]


def _verdict(streams: Streams, source: str, name: str, rows: Mapping[str, Row | None]) -> tuple[str, str, str]:
    """(verdict, rule, what the rule says) of one transaction at one server; `rows` are its own in each log."""
    row, theirs = rows[name], rows[source]
    if row is not None and row["outcome"] == COMMITTED:
        return PRESENT, "log_shows", EVIDENT["log_shows"]
    if theirs is None or theirs["outcome"] != COMMITTED or name == source:
        if row is None:
            return UNKNOWN, "not_at_source", "its source does not show it as a commit"
        return UNKNOWN, str(row["outcome"]), SAYS.get(row["why"] or "", str(row["outcome"]))
    one = streams.between(source, name, theirs["origin"])
    if one.shared is None:
        why = UNRELATED if one.difference.unrelated else NOTHING_SHARED
        return UNKNOWN, why, WHY_UNKNOWN[why]
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
        return MISSING, rule, EVIDENT[rule]
    return (PENDING, "not_covered", NOT_COVERED) if told == "behind" else (UNKNOWN, told, WHY_UNKNOWN[told])


def would_send(streams: Streams, position: str, consumer: str) -> Iterator[tuple[str, bool, str]]:
    """Each other log: its server, whether it would send the transaction now, and why."""
    rows = streams.rows_at(position)
    for name, row in sorted(rows.items()):
        if name == consumer or consumer not in streams.logs:
            continue
        if row is None or row["outcome"] != COMMITTED:
            yield name, False, "its log does not hold it as a commit"
            continue
        verdict, _, _ = _verdict(streams, name, consumer, rows)
        yield name, verdict == PENDING, _SENDS.get(verdict, "nothing tells whether the consumer has it")


_SENDS = {
    PENDING: "it follows the last transaction that both have",
    MISSING: "the consumer is past it: a replica asks for later commits only",
    PRESENT: "the consumer has it",
}
