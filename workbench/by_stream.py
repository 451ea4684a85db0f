"""The diagnosis of a system that replicates a stream of transactions: what each log lacks of that of its source.

Every server keeps its own log of what it has done, in the order of commits. Of each origin the log with most of its
transactions is the source, unless a person says whose it is; all others are held against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.case import Case
from workbench.engine.rows import rows_where
from workbench.engine.streams import StreamLog, Sums
from workbench.inputs import Input
from workbench.rules.segments import ASK, COMMITTED, SAYS
from workbench.rules.sending import NOTHING, SEND
from workbench.rules.streams import WHY_UNKNOWN, Difference, difference
from workbench.rules.verdicts import MISSING, PRESENT, UNKNOWN
from workbench.systems import format_with
from workbench.topology import Topology
from workbench.verdicts import NOT_COVERED, PENDING, Verdict, Verdicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]

LOG = "log"
"""The kind of evidence that this rests on."""

CAME_IN_PART = {"incomplete": "TXN_INCOMPLETE", "unfinished": "TXN_UNFINISHED", "aborted": "TXN_ABORTED"}
"""What a server has of a transaction that it lacks -> the code that tells how it was missed."""

LACKS, IN_PART = "log_lacks", "came_in_part"
_SAYS = {
    LACKS: "its log goes on behind the transaction and does not hold it",
    IN_PART: "its log holds the transaction in part: nothing partial may be applied",
    "log_shows": "its log holds the transaction, whole",
}


@dataclass(frozen=True)
class Applied:
    """How far a replica applied a master's commits, as it says itself.

    commit   the last commit that it applied; None: it does not say
    queued   commits that wait in its queue
    stopped  parts of it that stand still -> the last error
    """

    server: str
    master: str
    source: str | None
    commit: int | None
    queued: tuple[int, ...]
    stopped: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Behind:
    """What a replica has not applied of the log of its master, told by the numbers of commits.

    waits  commits behind the last one that it applied, with the positions of their transactions
    gaps   of these, those that are not in its queue, although later ones are: it will not ask for them again
    purge  commits of the master below this one are applied by all replicas that were collected
    """

    applied: Applied
    waits: list[tuple[int, str, str]]
    gaps: list[tuple[int, str, str]]


class Streams:
    """The logs of one snapshot, and each held against the source of its origins."""

    def __init__(self, case: Case, shown: Topology) -> None:
        self.case, self.shown = case, shown
        self.logs = {one.server: self._log(one.server, one.log) for one in shown.replicas if one.log}
        self.told = {one.origin: one.server for one in shown.replicas if one.origin}

    def _log(self, server: str, one: Input) -> StreamLog:
        places = [part["path"] for part in self.case.parts("rejects", one)]
        lost = rows_where([{"path": path} for path in places], ["offset"], pc.field("offset") >= 0)[
            "offset"
        ].to_pylist()
        unread = rows_where(self.case.parts("segments", one), ["offset"], pc.field("origin").is_null())[
            "offset"
        ].to_pylist()
        return StreamLog(server, one.file, self.case.parts("transactions", one), tuple(sorted({*lost, *unread})))

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
    def differences(self) -> dict[tuple[str, str], Difference]:
        """(server, origin) -> what its log lacks of the source's."""
        found = {}
        for origin in self.origins:
            source = self.source_of(origin)
            if source is None:
                continue
            entries = self.logs[source].entries(origin)
            for name, log in self.logs.items():
                if name != source:
                    found[name, origin] = difference(entries, log.entries(origin), log.lost)
        return found

    @cached_property
    def holders(self) -> dict[str, dict[str, list[str]]]:
        """Origin -> position -> the servers whose logs have it whole, of all that some server lacks."""
        found: dict[str, dict[str, list[str]]] = {}
        for origin in self.origins:
            lacked = {
                one.position
                for (_, of), each in self.differences.items()
                if of == origin
                for one in (*each.inside, *each.behind)
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
        queues: dict[tuple[str, str], set[int]] = {}
        for one in self.case.inputs:
            if one.kind and one.snapshot == label and not format_with(one.kind).is_log:
                for part in self.case.parts("segments", one):
                    held = rows_where([part], ["commit"], pc.field("commit").is_valid())["commit"].to_pylist()
                    queues.setdefault((one.server, ""), set()).update(held)
        found = []
        for server, master in sorted({(row["server"], row["master"]) for row in rows}):
            mine = [row for row in rows if (row["server"], row["master"]) == (server, master)]
            commits = [row["commit"] for row in mine if row["commit"] is not None]
            stopped = {row["part"]: row["error"] for row in mine if (row["status"] or "").upper() == "STOPPED"}
            queued = tuple(sorted(queues.get((server, ""), ())))
            source = self._master(server)
            found.append(Applied(server, master, source, max(commits, default=None), queued, stopped))
        return found

    def _master(self, server: str) -> str | None:
        """The one other server whose log numbers its commits; of several nobody knows."""
        told = [name for name, log in self.logs.items() if name != server and log.by_commit]
        return told[0] if len(told) == 1 else None

    @cached_property
    def behind(self) -> list[Behind]:
        """What replicas have not applied, where they number commits as their master's log does."""
        found = []
        for one in self.applied:
            if one.source is None or one.commit is None:
                continue
            after = one.commit
            waits = sorted(
                (entry.place, origin, entry.position)
                for origin in self.logs[one.source].sums
                for entry in self.logs[one.source].entries(origin)
                if entry.place > after
            )
            fetched = max(one.queued, default=after)
            gaps = [wait for wait in waits if wait[0] <= fetched and wait[0] not in one.queued]
            found.append(Behind(one, waits, gaps))
        return found

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
        rows = self.logs[source].rows_of(origin, [one.position for one in found.behind]).values()
        here, there = (
            self.logs[name].sums[origin].until if origin in self.logs[name].sums else None for name in (server, source)
        )
        passed = (there - here).total_seconds() if here and there and found.behind else 0.0
        return {
            "transactions": len(found.behind),
            "bytes": sum(row["bytes"] for row in rows),
            "rows": sum(row["kept"] for row in rows),
            "seconds": max(passed, 0.0),
        }

    def fleet(self) -> list[dict[str, Any]]:
        """Each log against that of its source: what is missing inside, behind, incomplete, undecided, errant; what to apply."""
        show = self.shown.system.show
        found = []
        for (server, origin), one in sorted(self.differences.items()):
            source = self.source_of(origin) or ""
            void = {
                position: outcome
                for position, outcome in one.undecided.items()
                if outcome in ("rolled_back", "aborted")
            }
            apply = sorted((*one.inside, *one.behind), key=lambda lack: lack.place)
            rows = self.logs[source].rows_of(origin, [lack.position for lack in apply])
            found.append(
                {
                    "server": server,
                    "origin": origin,
                    "source": source,
                    "inside": [show(lack.position) for lack in one.inside if lack.outcome is None],
                    "incomplete": [show(lack.position) for lack in one.inside if lack.outcome is not None],
                    "behind": [show(lack.position) for lack in one.behind],
                    "unknown": [show(position) for position, _, _ in one.unknown],
                    "undecided": {show(position): outcome for position, outcome in one.undecided.items()},
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

    def odd(self, limit: int) -> list[dict[str, Any]]:
        """The transactions that are no plain commits, and the biggest ones, of each log."""
        return [self.transaction(name, row) for name, log in sorted(self.logs.items()) for row in log.odd(limit)]

    def transaction(self, server: str, row: Row) -> dict[str, Any]:
        """One transaction of a log as a row of the output."""
        why = row["why"]
        resolved = self.differences.get((server, row["origin"]))
        return {
            "server": server,
            "origin": row["origin"],
            "position": self.shown.system.show(row["position"]),
            "life": row["life"],
            "outcome": row["outcome"],
            "why": why,
            "says": SAYS.get(why or ""),
            "ask": ASK.get(why or ""),
            "at_source": resolved.undecided.get(row["position"]) if resolved else None,
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


def _time(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"


def judged_by_stream(
    case: Case, shown: Topology, limit: int, spark: SparkSession | None = None
) -> tuple[list[dict[str, Any]], Verdicts]:
    """The pairs of servers whose logs share an origin, and what each lacks."""
    streams, found = Streams(case, shown), Verdicts()
    found.streams = streams
    for (server, origin), one in sorted(streams.differences.items()):
        _judge(streams, server, origin, one, limit, found)
    _waiting(streams, found)
    found.unknown.sort(key=lambda row: (row["server"], row["origin"], row["from"]))
    return list(_pairs(streams)), found


def _judge(streams: Streams, server: str, origin: str, one: Difference, limit: int, found: Verdicts) -> None:
    show = streams.shown.system.show
    source = streams.source_of(origin) or ""
    about: dict[str, Any] = {"server": server, "suffix": None, "origin": origin}
    lacked = one.inside[: max(0, limit - len(found.missing))]
    rows = streams.logs[source].rows_of(origin, [lack.position for lack in lacked])
    found.totals["missing"] += len(one.inside)
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
                "says": _SAYS[rule],
            }
        )
    found.totals["stranded"] += len(one.errant)
    for position in one.errant[: max(0, limit - len(found.stranded))]:
        about_it = {"position": show(position), "operation": None, "target": None, "attribute": None}
        proof = {"held_by": [server], "evidence": [LOG], "cause": None, "rule": "errant"}
        found.stranded.append({**about, **about_it, **proof, "says": f"it is in no log of {source}, its source"})
    if one.behind:
        having = streams.holders.get(origin, {})
        available = [lack for lack in one.behind if having.get(lack.position)]
        ends = {"first": show(one.behind[0].position), "last": show(one.behind[-1].position)}
        lag = streams._lag(server, origin) or {}
        more = {key: lag[key] for key in ("bytes", "rows", "seconds") if key in lag}
        found.pending.append(
            {**about, "count": len(one.behind), **ends, "available": len(available), "suppliers": [source]} | more
        )
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
        for origin in sorted({origin for _, origin, _ in one.waits}):
            waits = [wait for wait in one.waits if wait[1] == origin]
            row: dict[str, Any] = {"server": one.applied.server, "suffix": None, "origin": origin, "count": len(waits)}
            row |= {"first": show(waits[0][2]), "last": show(waits[-1][2]), "available": len(waits)}
            found.pending.append({**row, "suppliers": [one.applied.source]})


def _pairs(streams: Streams) -> Iterator[dict[str, Any]]:
    """What every log would send to every other one: what it holds behind the last transaction that both have."""
    show, names = streams.shown.system.show, sorted(streams.logs)
    for supplier in names:
        for consumer in names:
            if supplier == consumer:
                continue
            to_send: dict[str, dict[str, Any]] = {}
            anchors: list[tuple[int, str]] = []
            for origin in sorted(streams.logs[supplier].sums.keys() & streams.logs[consumer].sums.keys()):
                mine, theirs = streams.logs[supplier].entries(origin), streams.logs[consumer].entries(origin)
                one = difference(mine, theirs, streams.logs[consumer].lost)
                places = {entry.position: entry.place for entry in mine}
                if one.last:
                    anchors.append((places[one.last], one.last))
                if one.behind:
                    ends = {"first": show(one.behind[0].position), "last": show(one.behind[-1].position)}
                    to_send[origin] = {"count": len(one.behind), **ends}
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
            row["stop"] = {origin: one["last"] for origin, one in to_send.items()}
            row["counts"] = {SEND: sum(one["count"] for one in to_send.values())} if to_send else {}
            yield row | {"to_send": to_send}


def _reason(to_send: Mapping[str, Any], anchor: str | None) -> dict[str, Any]:
    if anchor is None:
        return {"rule": "nothing_shared", "says": "the logs share no transaction", "values": {}}
    if to_send:
        return {"rule": "behind", "says": "transactions follow the last one that both have", "values": {}}
    return {"rule": "at_the_end", "says": "nothing follows the last transaction that both have", "values": {}}


def verdicts_by_stream(case: Case, shown: Topology, position: str) -> list[Verdict]:
    """The verdict of every server with a log, where any log holds the transaction."""
    streams = Streams(case, shown)
    origin = shown.system.origin_of(position)
    rows = {name: log.rows_of(origin, [position]).get(position) for name, log in streams.logs.items()}
    if not any(rows.values()):
        return []
    found = []
    for name, row in sorted(rows.items()):
        one = streams.differences.get((name, origin))
        if row is not None and row["outcome"] == COMMITTED:
            found.append(Verdict(name, None, PRESENT, "log_shows", _SAYS["log_shows"]))
        elif one and any(lack.position == position for lack in one.inside):
            rule = IN_PART if row else LACKS
            found.append(Verdict(name, None, MISSING, rule, _SAYS[rule]))
        elif one and any(lack.position == position for lack in one.behind):
            found.append(Verdict(name, None, PENDING, "not_covered", NOT_COVERED))
        elif one and (why := {entry[0]: entry[2] for entry in one.unknown}.get(position)):
            found.append(Verdict(name, None, UNKNOWN, why, WHY_UNKNOWN[why]))
        elif row is not None:
            found.append(Verdict(name, None, UNKNOWN, row["outcome"], SAYS.get(row["why"] or "", row["outcome"])))
    return found


def would_send(streams: Streams, position: str, consumer: str) -> Iterator[tuple[str, bool, str]]:
    """Each other log: its server, whether it would send the transaction now, and why."""
    origin = streams.shown.system.origin_of(position)
    if consumer not in streams.logs:
        return
    theirs = streams.logs[consumer]
    for name, log in sorted(streams.logs.items()):
        if name != consumer:
            one = difference(log.entries(origin), theirs.entries(origin), theirs.lost)
            sent = any(lack.position == position for lack in one.behind)
            passed = any(lack.position == position for lack in one.inside)
            yield name, sent, _SENDS[sent, passed]


_SENDS = {
    (True, False): "it follows the last transaction that both have",
    (False, True): "the consumer is past it: a slave asks for later commits only",
    (False, False): "its log does not hold it as a commit that the consumer lacks",
}


def purge_below(streams: Streams, master: str) -> int | None:
    """Commits of this master below the number given are applied by every replica that was collected; None: nobody tells."""
    told = [one.commit for one in streams.applied if one.source == master]
    return min((commit for commit in told if commit is not None), default=None) if None not in told else None


def sums_of(streams: Streams, server: str) -> Mapping[str, Sums]:
    """Origin -> what the transactions of that server's log come to."""
    return streams.logs[server].sums if server in streams.logs else {}


def big_ones(streams: Streams) -> Sequence[tuple[str, dict[str, Any]]]:
    """Server and row of the transactions that are big."""
    return [(name, row) for name, log in sorted(streams.logs.items()) for row in log.big()]
