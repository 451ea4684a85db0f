"""The diagnosis of a system that replicates a stream of transactions: what each log lacks of that of its source.

Every server keeps its own log of what it has done, in the order of commits. Of each origin the log with most of its
transactions is the source, unless a person says whose it is; all others are held against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.cases.case import Case
from workbench.collected.inputs import Input
from workbench.diagnosing.verdict_rows import Verdicts
from workbench.engine.rows import rows_where
from workbench.engine.streams import StreamLog
from workbench.engine.streams_compared import Compared, compared
from workbench.fleet.topology import Topology
from workbench.model import Problem
from workbench.rules.segments import ABORTED, ASK, COMMITTED, ROLLED_BACK, SAYS, UNFINISHED
from workbench.rules.sending import NOTHING, SEND, SENT
from workbench.rules.streams import ANYWHERE, NOTHING_SHARED, UNRELATED, WHY_UNKNOWN, Difference, judged
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, PRESENT, UNKNOWN, Verdict
from workbench.systems import format_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]

LOG, APPLIED = "log", "applied"
"""The kinds of evidence that this rests on: what a server's log holds, and what a replica says that it applied."""

CAME_IN_PART = {"incomplete": "TXN_INCOMPLETE", "unfinished": "TXN_UNFINISHED", "aborted": "TXN_ABORTED"}
"""What a server has of a transaction that it lacks -> the code that tells how it was missed."""

_VOID = (ROLLED_BACK, ABORTED)

LISTED = 10_000
"""So many transactions of a kind are told one by one."""

REFUSED = "refused"
"""The decision of a pair that may exchange nothing."""

LACKS, IN_PART = "log_lacks", "came_in_part"
EVIDENT = {
    LACKS: "its log goes on behind the transaction and does not hold it",
    IN_PART: "its log holds the transaction in part: nothing partial may be applied",
    "log_shows": "its log holds the transaction, whole",
}


@dataclass(frozen=True)
class Applied:
    """How far a replica applied a master's commits, as it says itself.

    commit   the last commit that it applied; None: it does not say
    queued   commits that wait in its queue
    whole    all rows of its queue could be read
    stopped  parts of it that stand still -> the last error
    """

    server: str
    master: str
    source: str | None
    commit: int | None
    queued: tuple[int, ...]
    stopped: Mapping[str, str | None] = field(default_factory=dict)
    whole: bool = True


Commit = tuple[int, str]
"""The number of a commit, and the position of its transaction."""


@dataclass(frozen=True)
class Behind:
    """What a replica has not applied of the log of its master, told by the numbers of commits.

    waits  origin -> how many of its commits lie behind the last one that it applied, the first and the last of them
    gaps   the first of these that are not in its queue, although later ones are: it will not ask for them again
    lacks  how many such there are
    """

    applied: Applied
    waits: dict[str, tuple[int, Commit, Commit]]
    gaps: list[tuple[Commit, str]]
    lacks: int


class Streams:
    """The logs of one snapshot, and each held against the source of its origins."""

    def __init__(self, case: Case, shown: Topology, limit: int = LISTED) -> None:
        self.case, self.shown, self.limit = case, shown, limit
        self._between: dict[tuple[str, str, str], Compared] = {}
        self.logs = {one.server: self._log(one.server, one.log) for one in shown.replicas if one.log}
        self.told = {one.origin: one.server for one in shown.replicas if one.origin}

    def _log(self, server: str, one: Input) -> StreamLog:
        places = [part["path"] for part in self.case.parts("rejects", one)]
        lost = rows_where([{"path": path} for path in places], ["offset"], pc.field("offset") >= 0)[
            "offset"
        ].to_pylist()
        # What a damaged message says of itself cannot be trusted: it may have been of another transaction than it says.
        unread = rows_where(
            self.case.parts("segments", one),
            ["offset"],
            pc.field("origin").is_null() | ~pc.field("sound"),
        )["offset"].to_pylist()
        log = StreamLog(server, one.file, self.case.parts("transactions", one), tuple(sorted({*lost, *unread})))
        return replace(log, lost=(ANYWHERE,) * len(log.lost)) if log.lost and log.by_commit else log

    @cached_property
    def origins(self) -> list[str]:
        """Whose transactions the logs hold."""
        return sorted({origin for log in self.logs.values() for origin in log.sums})

    def source_of(self, origin: str) -> str | None:
        """The server whose log is the source of an origin: the one that a person names, else the one with most of it."""
        having = {name: log.committed.get(origin, 0) for name, log in self.logs.items() if origin in log.sums}
        told = self.told.get(origin)
        return told if told in having else max(sorted(having), key=having.__getitem__, default=None)

    @cached_property
    def differences(self) -> dict[tuple[str, str], Compared]:
        """(server, origin) -> what its log lacks of the source's."""
        return {
            (name, origin): self.between(source, name, origin)
            for origin in self.origins
            if (source := self.source_of(origin))
            for name in self.logs
            if name != source
        }

    def between(self, source: str, copy: str, origin: str) -> Compared:
        """What the log of one server lacks of that of another one."""
        key = source, copy, origin
        if key not in self._between:
            self._between[key] = compared(self.logs[source], self.logs[copy], origin, self.limit)
        return self._between[key]

    @cached_property
    def holders(self) -> dict[str, dict[str, list[str]]]:
        """Origin -> position -> the servers whose logs have it whole, of what some server lacks as far as it is listed."""
        found: dict[str, dict[str, list[str]]] = {}
        for origin in self.origins:
            lacked = {
                lack.position
                for (_, of), one in self.differences.items()
                if of == origin
                for lack in (*one.difference.inside, *one.difference.behind)
            }
            for name in sorted(self.logs):
                for position, row in self.logs[name].rows_of(origin, sorted(lacked)).items():
                    if row["outcome"] == COMMITTED:
                        found.setdefault(origin, {}).setdefault(position, []).append(name)
        return found

    @cached_property
    def applied(self) -> list[Applied]:
        """What the replicas of the snapshot say of themselves, for each of their masters."""
        label = self.shown.snapshot
        rows = [row for row in self.case.arrow("appliers").to_pylist() if row["snapshot"] == label]
        queues: dict[str, set[int]] = {}
        cut: set[str] = set()
        for one in self.case.inputs:
            if one.kind and one.snapshot == label and not format_with(one.kind).is_log:
                cut |= {one.server} if one.rejected else set()
                for part in self.case.parts("segments", one):
                    held = rows_where([part], ["commit"], pc.field("commit").is_valid())["commit"].to_pylist()
                    queues.setdefault(one.server, set()).update(held)
        found = []
        for server, master in sorted({(row["server"], row["master"]) for row in rows}):
            mine = [row for row in rows if (row["server"], row["master"]) == (server, master)]
            commits = [row["commit"] for row in mine if row["commit"] is not None]
            stopped = {row["part"]: row["error"] for row in mine if (row["status"] or "").upper() == "STOPPED"}
            queued = tuple(sorted(queues.get(server, ())))
            # Each master numbers commits by itself, and nothing tells which of several the log that is there belongs to.
            alone = {row["master"] for row in rows if row["server"] == server} == {master}
            source = self._master(server) if alone else None
            found.append(
                Applied(server, master, source, max(commits, default=None), queued, stopped, server not in cut)
            )
        return found

    def _master(self, server: str) -> str | None:
        """The one other server whose log numbers its commits; of several nobody knows."""
        told = [name for name, log in self.logs.items() if name != server and log.by_commit]
        return told[0] if len(told) == 1 else None

    @cached_property
    def behind(self) -> list[Behind]:
        """What replicas have not applied, where they number commits as their master's log does."""
        return [
            self._behind(one, one.source, one.commit)
            for one in self.applied
            if one.source is not None and one.commit is not None
        ]

    def _behind(self, one: Applied, source: str, after: int) -> Behind:
        waits: dict[str, tuple[int, Commit, Commit]] = {}
        gaps: list[tuple[Commit, str]] = []
        queued, fetched, lacks = set(one.queued), max(one.queued, default=after), 0
        for batch in self.logs[source].after(after):
            for origin in pc.unique(batch["origin"]).to_pylist():
                rows = batch.filter(pc.equal(batch["origin"], origin))
                commits = list(zip(rows["commit"].to_pylist(), rows["position"].to_pylist(), strict=True))
                count, first, last = waits.get(origin, (0, commits[0], commits[0]))
                waits[origin] = count + len(commits), min(first, *commits), max(last, *commits)
                lacking = [
                    (commit, origin)
                    for commit in commits
                    if commit[0] <= fetched and commit[0] not in queued and one.whole
                ]
                lacks += len(lacking)
                gaps = sorted([*gaps, *lacking])[: self.limit]
        return Behind(one, waits, gaps, lacks)

    def rows_at(self, position: str) -> dict[str, dict[str, Any] | None]:
        """Server -> the row of one transaction in its log; None: it has none."""
        origin = self.shown.system.origin_of(position)
        return {name: log.rows_of(origin, [position]).get(position) for name, log in self.logs.items()}

    def at_source(self, server: str, origin: str, position: str) -> str | None:
        """What its source says of a transaction that a log has without an end; None: nothing that settles it."""
        found = self.differences.get((server, origin))
        told = found.difference.undecided.get(position) if found else None
        # Where the source's log lost records, the end of what seems cut off may have been among them.
        return None if told == ABORTED and self.logs[self.source_of(origin) or ""].lost else told

    # --- as rows of the output

    def streams(self) -> list[dict[str, Any]]:
        """What each log comes to, by origin."""
        show = self.shown.system.show
        return [
            {
                "server": name,
                "origin": origin,
                "source": self.source_of(origin),
                "outcomes": dict(sorted(sums.outcomes.items())),
                "bytes": sums.bytes,
                "rows_seen": sums.seen,
                "rows_kept": sums.kept,
                "rows_cancelled": sums.cancelled,
                "tables": {table: dict(sorted(of.items())) for table, of in sorted(sums.tables.items())},
                "first": show(sums.first[1]) if sums.first else None,
                "last": show(sums.last[1]) if sums.last else None,
                "until": _time(sums.until),
                "lost": len(log.lost),
                "lag": self._lag(name, origin),
            }
            for name, log in sorted(self.logs.items())
            for origin, sums in sorted(log.sums.items())
        ]

    def _lag(self, server: str, origin: str) -> dict[str, Any] | None:
        """How far a log is behind that of its source: in transactions, bytes, rows and time."""
        found = self.differences.get((server, origin))
        source = self.source_of(origin)
        if found is None or source is None:
            return None
        sums = [self.logs[name].sums.get(origin) for name in (server, source)]
        here, there = (one.until if one else None for one in sums)
        count = found.counts["behind"]
        passed = (there - here).total_seconds() if here and there and count else 0.0
        return {"transactions": count, "bytes": found.bytes, "rows": found.rows, "seconds": max(passed, 0.0)}

    def fleet(self) -> list[dict[str, Any]]:
        """Each log against that of its source: what is missing inside, behind, incomplete, undecided, errant; what to apply."""
        show = self.shown.system.show
        found = []
        for (server, origin), both in sorted(self.differences.items()):
            one, source = both.difference, self.source_of(origin) or ""
            void = [position for position in one.undecided if self.at_source(server, origin, position) in _VOID]
            apply = sorted((*one.inside, *one.behind), key=lambda lack: lack.place)
            rows = self.logs[source].rows_of(origin, [lack.position for lack in apply])
            found.append(
                {
                    "server": server,
                    "origin": origin,
                    "source": source,
                    "counts": dict(sorted(both.counts.items())),
                    "inside": [show(lack.position) for lack in one.inside if lack.outcome is None],
                    "incomplete": [show(lack.position) for lack in one.inside if lack.outcome is not None],
                    "behind": [show(lack.position) for lack in one.behind],
                    "unknown": [show(position) for position, _, _ in one.unknown],
                    "undecided": {
                        show(position): self.at_source(server, origin, position) or UNFINISHED
                        for position in one.undecided
                    },
                    "errant": [show(position) for position in one.errant],
                    "conflicts": [show(position) for position in one.conflicts],
                    "apply": [show(lack.position) for lack in apply],
                    "rows": {
                        show(lack.position): json.loads(rows[lack.position]["rows"] or "{}")
                        for lack in apply
                        if lack.position in rows
                    },
                    "discard": [show(position) for position in void],
                }
            )
        return found

    def told_of(self) -> list[dict[str, Any]]:
        """Replicas of which there is no log, as servers of the output: the last transaction that each says it has applied."""
        show, there = self.shown.system.show, {one.server for one in self.shown.replicas}
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for one in self.applied:
            if one.server not in there:
                vector = found.setdefault(one.server, {})
                row = self.logs[one.source].at_commit(one.commit) if one.source and one.commit is not None else None
                if row:
                    vector[row["origin"]] = {"min": None, "max": show(row["position"])}
        about: dict[str, Any] = {"origin": None, "suffix": None, "changes": 0, "evidence": [APPLIED]}
        return [{"name": name, "vector": vector, **about} for name, vector in sorted(found.items())]

    def appliers(self) -> list[dict[str, Any]]:
        """What replicas say of themselves: how far they applied, what stands still, what they wait for."""
        show, waiting = self.shown.system.show, {id(one.applied): one for one in self.behind}
        found = []
        for one in self.applied:
            behind = waiting.get(id(one))
            gaps = behind.gaps if behind else []
            found.append(
                {
                    "server": one.server,
                    "master": one.master,
                    "source": one.source,
                    "commit": one.commit,
                    "queued": len(one.queued),
                    "stopped": dict(sorted(one.stopped.items())),
                    "behind": sum(count for count, _, _ in behind.waits.values()) if behind else None,
                    "gaps": [{"commit": commit, "position": show(position)} for (commit, position), _ in gaps],
                    "purge_below": purge_below(self, one.source) if one.source else None,
                }
            )
        return found

    def odd(self, limit: int) -> list[dict[str, Any]]:
        """The transactions that are no plain commits, and the biggest ones, of each log."""
        return [self.transaction(name, row) for name, log in sorted(self.logs.items()) for row in log.odd(limit)]

    @cached_property
    def odd_ones(self) -> list[dict[str, Any]]:
        """The same, as many as are told one by one."""
        return self.odd(self.limit)

    def transaction(self, server: str, row: Row) -> dict[str, Any]:
        """One transaction of a log as a row of the output."""
        why = row["why"]
        return {
            "server": server,
            "origin": row["origin"],
            "position": self.shown.system.show(row["position"]),
            "life": row["life"],
            "outcome": row["outcome"],
            "why": why,
            "says": SAYS.get(why or ""),
            "ask": ASK.get(why or ""),
            "query": self._query(row) if why in ASK else None,
            "at_source": self.at_source(server, row["origin"], row["position"]),
            "offset": row["offset"],
            "last": row["last"],
            "messages": row["messages"],
            "repeated": row["repeated"],
            "missing": row["missing"],
            "bytes": row["bytes"],
            "rows": None if row["rows"] is None else json.loads(row["rows"]),
            "seen": row["seen"],
            "kept": row["kept"],
            "cancelled": row["seen"] - row["kept"] if row["outcome"] in ("committed", "rolled_back", "aborted") else 0,
            "ragged": row["ragged"],
            "ddl": row["ddl"],
            "started_at": _time(row["started_at"]),
            "ended_at": _time(row["ended_at"]),
            "held": row.get("held"),
        }

    def _query(self, row: Row) -> str | None:
        """What to ask the source of a transaction, to learn what became of it."""
        settling = self.shown.system.settling
        return settling(row["position"]) if settling else None


def _time(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"


def judged_by_stream(
    case: Case, shown: Topology, limit: int, spark: SparkSession | None = None
) -> tuple[list[dict[str, Any]], Verdicts]:
    """The pairs of servers whose logs share an origin, and what each lacks."""
    streams, found = Streams(case, shown, limit), Verdicts()
    found.streams = streams
    if spark is not None:
        _check(spark, streams)
    for (server, origin), both in sorted(streams.differences.items()):
        _judge(streams, server, origin, both, limit, found)
    _waiting(streams, found)
    found.unknown.sort(key=lambda row: (row["server"], row["origin"], row["from"]))
    return list(_pairs(streams)), found


def _check(spark: SparkSession, streams: Streams) -> None:
    """Raise Problem unless Spark says the same of every two logs that are compared."""
    from workbench.engine.streams_counted import counted

    for (server, origin), one in streams.differences.items():
        source = streams.source_of(origin) or ""
        told = counted(spark, streams.logs[source], streams.logs[server], origin)
        if told != one.said:
            differ = ", ".join(sorted(word for word in told | one.said if told[word] != one.said[word]))
            raise Problem(
                f"two ways of comparing the logs of {server} and {source} disagree on {differ} of origin {origin}",
                "evidence",
                "the evidence is damaged: load the inputs into a new case",
            )


def _judge(streams: Streams, server: str, origin: str, both: Compared, limit: int, found: Verdicts) -> None:
    one = both.difference
    show = streams.shown.system.show
    source = streams.source_of(origin) or ""
    about: dict[str, Any] = {"server": server, "suffix": None, "origin": origin}
    lacked = one.inside[: max(0, limit - len(found.missing))]
    rows = streams.logs[source].rows_of(origin, [lack.position for lack in lacked])
    found.totals["missing"] += both.counts["inside"]
    for lack in lacked:
        rule = LACKS if lack.outcome is None else IN_PART
        counted = json.loads(rows[lack.position]["rows"] or "{}") if lack.position in rows else {}
        found.missing.append(
            {
                **about,
                "position": show(lack.position),
                "operation": "+".join(sorted({name for of in counted.values() for name in of})) or None,
                "target": ", ".join(sorted(counted)) or None,
                "attribute": None,
                "held_by": streams.holders.get(origin, {}).get(lack.position, []),
                "evidence": [LOG],
                "cause": CAME_IN_PART.get(lack.outcome or ""),
                "rule": rule,
                "says": EVIDENT[rule],
            }
        )
    found.totals["stranded"] += both.counts["errant"]
    for position in one.errant[: max(0, limit - len(found.stranded))]:
        about_it = {"position": show(position), "operation": None, "target": None, "attribute": None}
        proof = {"held_by": [server], "evidence": [LOG], "cause": None, "rule": "errant"}
        found.stranded.append({**about, **about_it, **proof, "says": f"it is in no log of {source}, its source"})
    if both.first and both.last:
        count = both.counts["behind"]  # the log of the source has all of them, whole
        ends = {"first": show(both.first), "last": show(both.last)}
        found.pending.append({**about, "count": count, **ends, "available": count, "suppliers": [source]})
    for first, last, count, why in _stretches(one):
        found.totals["unknown"] += 1
        found.unknown.append(
            {**about, "from": show(first), "to": show(last), "count": count, "why": why, "says": WHY_UNKNOWN[why]}
        )


def _stretches(one: Difference) -> Iterator[tuple[str, str, int, str]]:
    """What is unknown for one reason, side by side, as one stretch: first, last, how many, why."""
    stretch: list[tuple[str, int, str]] = []
    for entry in one.unknown:
        if stretch and stretch[-1][2] != entry[2]:
            yield stretch[0][0], stretch[-1][0], len(stretch), stretch[0][2]
            stretch = []
        stretch.append(entry)
    if stretch:
        yield stretch[0][0], stretch[-1][0], len(stretch), stretch[0][2]


def _waiting(streams: Streams, found: Verdicts) -> None:
    """What replicas that tell how far they applied still wait for."""
    show = streams.shown.system.show
    for one in streams.behind:
        for origin, (count, first, last) in sorted(one.waits.items()):
            row: dict[str, Any] = {"server": one.applied.server, "suffix": None, "origin": origin, "count": count}
            row |= {"first": show(first[1]), "last": show(last[1]), "available": count}
            found.pending.append({**row, "suppliers": [one.applied.source]})


def _pairs(streams: Streams) -> Iterator[dict[str, Any]]:
    """What every log would send to every other one: what it holds behind the last transaction that both have."""
    show, names = streams.shown.system.show, sorted(streams.logs)
    for supplier in names:
        for consumer in names:
            if supplier == consumer:
                continue
            to_send: dict[str, dict[str, Any]] = {}
            both: list[Compared] = []
            anchors: list[tuple[int, str]] = []
            for origin in sorted(streams.logs[supplier].sums.keys() & streams.logs[consumer].sums.keys()):
                one = streams.between(supplier, consumer, origin)
                both.append(one)
                if one.shared and one.shared.last:
                    anchors.append((one.shared.covers, one.shared.last))
                if one.first and one.last:
                    to_send[origin] = {"count": one.counts["behind"], "first": show(one.first), "last": show(one.last)}
            anchor = max(anchors, default=(0, None))[1]
            row: dict[str, Any] = {"supplier": supplier, "consumer": consumer, "suffix": None, "link": None}
            row |= {"link_enabled": None, "rules": "stream", "would_contact": None, "unrelated": False, "others": {}}
            row |= {
                "decision": SEND if to_send else NOTHING,
                "anchor": anchor and show(anchor),
                "anchor_included": False,
            }
            row |= {"anchor_class": None, "anchor_class_assumed": False, "delivers": True}
            row["reasons"] = [_reason(to_send, anchor)]
            if both and all(one.difference.unrelated for one in both):
                row |= {"decision": REFUSED, "unrelated": True}
                row["reasons"] = [{"rule": UNRELATED, "says": WHY_UNKNOWN[UNRELATED], "values": {}}]
            row["stop"] = {origin: one["last"] for origin, one in to_send.items()}
            row["counts"] = {SENT: sum(one["count"] for one in to_send.values())} if to_send else {}
            yield row | {"to_send": to_send}


def _reason(to_send: Mapping[str, Any], anchor: str | None) -> dict[str, Any]:
    if anchor is None:
        return {"rule": "nothing_shared", "says": "the logs share no transaction", "values": {}}
    if to_send:
        return {"rule": "behind", "says": "transactions follow the last one that both have", "values": {}}
    return {"rule": "at_the_end", "says": "nothing follows the last transaction that both have", "values": {}}


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


def purge_below(streams: Streams, master: str) -> int | None:
    """Commits of this master below the number given are applied by every replica that was collected; None: nobody tells."""
    told = [one.commit for one in streams.applied if one.source == master]
    return min((commit for commit in told if commit is not None), default=None) if None not in told else None


def big_ones(streams: Streams) -> Sequence[tuple[str, dict[str, Any]]]:
    """Server and row of the transactions that are big."""
    return [(name, row) for name, log in sorted(streams.logs.items()) for row in log.big()]
