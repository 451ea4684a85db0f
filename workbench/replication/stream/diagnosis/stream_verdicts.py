"""The verdicts of a stream, as rows: what is missing, pending, unknown and errant of each log and replica."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.stream_diff import Compared
from workbench.engine.streams import StreamLog
from workbench.model import Problem, listed
from workbench.replication.stream.diagnosis.appliers import Behind
from workbench.replication.stream.diagnosis.by_earlier_log import ByEarlierLog
from workbench.replication.stream.diagnosis.log_comparison import (
    CAME_IN_PART,
    ERRANT_SAYS,
    EVIDENT,
    IN_PART,
    LACKS,
    LOG,
    Row,
    Streams,
)
from workbench.replication.stream.diagnosis.log_pairs import pairs_of
from workbench.replication.stream.diagnosis.not_given import differs_from_earlier, said_first
from workbench.replication.stream.diagnosis.parts import TableStatement
from workbench.replication.stream.diagnosis.queued_changes import kept_by_appliers
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.replication.stream.rules.streams import (
    GONE_FROM_SOURCE,
    NUMBERED_ANEW,
    PASSED_SINCE,
    WHY_UNKNOWN,
    Difference,
)
from workbench.topology.topology import EARLIER_SNAPSHOT, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    for (server, origin), before in sorted(streams.by_earlier.items()):
        _passed_before(streams, server, origin, before, limit, found)
    _errant(streams, limit, found)
    _waiting(streams, found)
    _passed_since(streams, found)
    found.unknown.sort(key=lambda row: (row["server"], row["origin"], row["from"]))
    return list(pairs_of(streams)), found


def _check(spark: SparkSession, streams: Streams) -> None:
    """Raise Problem unless Spark says the same of every two logs that are compared."""
    from workbench.engine.spark_stream_diff import counted

    for (server, origin), one in streams.differences.items():
        source = streams.source_for(server, origin) or ""
        others = [log for name, log in streams.logs.items() if name not in (server, source)]
        told = counted(
            spark, streams.logs[source], streams.logs[server], origin, others if streams.is_open(origin) else None
        )
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
    source = streams.source_for(server, origin) or ""
    about: dict[str, Any] = {"server": server, "suffix": None, "origin": origin}
    lacked = one.inside[: max(0, limit - len(found.missing))]
    rows = streams.logs[source].rows_of(origin, [lack.position for lack in lacked])
    statements = streams.segmented(source).table_statements(origin, [at for at, row in rows.items() if row["ddl"]])
    found.totals["missing"] += both.counts["inside"]
    for lack in lacked:
        rule = LACKS if lack.outcome is None else IN_PART
        found.missing.append(
            {
                **about,
                "position": show(lack.position),
                **_did(rows.get(lack.position), statements.get(lack.position, ())),
                "attribute": None,
                "held_by": streams.holders.get(origin, {}).get(lack.position, []),
                "evidence": [LOG],
                "cause": CAME_IN_PART.get(lack.outcome or ""),
                "rule": rule,
                "says": EVIDENT[rule],
            }
        )
    alone = () if streams.is_open(origin) else one.errant
    found.totals["stranded"] += both.counts["errant"] if alone else 0
    for position in alone[: max(0, limit - len(found.stranded))]:
        about_it = {"position": show(position), "operation": None, "target": None, "attribute": None}
        proof = {"held_by": [server], "evidence": [LOG], "cause": None, "rule": "errant"}
        found.stranded.append({**about, **about_it, **proof, "says": f"it is in no log of {source}, its source"})
    before = streams.by_earlier.get((server, origin))
    if before is not None and both.shared is None and before.behind and not streams.fetches(server, source):
        _behind_purged(streams, server, origin, before, found)
        return
    if both.first and both.last and not streams.fetches(server, source):
        count = both.counts["behind"]  # the log of the source has all of them, whole
        row = {**about, "count": count, "first": show(both.first), "last": show(both.last), "available": count}
        row["suppliers"] = _having_all(streams, origin, both) if streams.is_open(origin) else [source]
        found.pending.append(row | kept_by_appliers(streams.applied, server, count))
        if needed := said_first(streams, server, origin, both.shared, show):
            found.pending[-1]["not_given"] = needed
            found.pending[-1]["earlier_first"] = differs_from_earlier(streams, server, origin, both.shared)
    for first, last, count, why in _stretches(one):
        found.totals["unknown"] += 1
        found.unknown.append(
            {**about, "from": show(first), "to": show(last), "count": count, "why": why, "says": WHY_UNKNOWN[why]}
        )


def _passed_before(
    streams: Streams, server: str, origin: str, before: ByEarlierLog, limit: int, found: Verdicts
) -> None:
    """What a copy is past by an earlier log of its source, which is the only one that has it, or one of the others does."""
    show, log = streams.shown.system.show, before.earlier.log
    found.totals["missing"] += len(before.inside)
    lacked = before.inside[: max(0, limit - len(found.missing))]
    rows = log.rows_of(origin, [lack.position for lack in lacked])
    for lack in lacked:
        row, rule = rows.get(lack.position), LACKS if lack.outcome is None else IN_PART
        having = (
            []
            if row is None
            else [
                name
                for name in sorted(streams.logs)
                if _has_alike(streams.logs[name], origin, lack.position, row["content"])
            ]
        )
        about = {"server": server, "suffix": None, "origin": origin, "position": show(lack.position)}
        proof = {"held_by": having, "evidence": [LOG, EARLIER_SNAPSHOT], "cause": CAME_IN_PART.get(lack.outcome or "")}
        says = f"{EVIDENT[rule]}; {before.earlier.place}, its source, has it"
        found.missing.append({**about, **_did(row, ()), "attribute": None, **proof, "rule": rule, "says": says})


def _has_alike(log: StreamLog, origin: str, position: str, content: int | None) -> bool:
    row = log.rows_of(origin, [position]).get(position)
    return row is not None and row["outcome"] == COMMITTED and None is not content == row["content"]


def _behind_purged(streams: Streams, server: str, origin: str, before: ByEarlierLog, found: Verdicts) -> None:
    """What a copy waits for that shares nothing with the present log of its source: what that begins behind comes first."""
    show, source = streams.shown.system.show, streams.source_of(origin) or ""
    log, behind = streams.logs[source], before.behind
    about: dict[str, Any] = {"server": server, "suffix": None, "origin": origin}
    found.totals["unknown"] += 1
    stretch = {"from": show(behind[0].position), "to": show(behind[-1].position), "count": len(behind)}
    found.unknown.append({**about, **stretch, "why": GONE_FROM_SOURCE, "says": WHY_UNKNOWN[GONE_FROM_SOURCE]})
    waits = sorted((row[log.order], row["position"]) for row in log.commits(-1, None, origin))
    if waits:
        row = {**about, "count": len(waits), "first": show(waits[0][1]), "last": show(waits[-1][1])}
        row |= {"available": len(waits), "suppliers": [source], "earlier_first": True}
        more = f" and {len(behind) - 1:,} more" if len(behind) > 1 else ""
        says = f"the log of {source} begins behind {stretch['from']}{more}, which {before.earlier.place} has"
        found.pending.append(row | kept_by_appliers(streams.applied, server, len(waits)) | {"not_given": [says]})


def _having_all(streams: Streams, origin: str, both: Compared) -> list[str]:
    """The servers whose logs have every listed transaction that is on its way to a copy."""
    holders = streams.holders.get(origin, {})
    waiting = [transaction.position for transaction in both.difference.behind]
    return [name for name in streams.having(both.last or "") if all(name in holders.get(at, ()) for at in waiting)]


def _errant(streams: Streams, limit: int, found: Verdicts) -> None:
    """What one log alone has, and nothing tells whether the others should."""
    for server, origin, why, count, positions in streams.alone():
        found.totals["errant"] += count
        listed = positions[: max(0, limit - len(found.errant))]
        rows = streams.logs[server].rows_of(origin, listed)
        statements = streams.segmented(server).table_statements(origin, [at for at, row in rows.items() if row["ddl"]])
        for position in listed:
            found.errant.append(
                {
                    "server": server,
                    "suffix": None,
                    "origin": origin,
                    "position": streams.shown.system.show(position),
                    **_did(rows.get(position), statements.get(position, ())),
                    "why": why,
                    "says": ERRANT_SAYS[why],
                }
            )


def _did(row: Row | None, statements: Sequence[TableStatement]) -> dict[str, Any]:
    """What a transaction did to which tables and schemas, as its row of the evidence and its `statements` tell."""
    counted = json.loads(row["rows"] or "{}") if row else {}
    whole = (row["ddl"] or "").lower().split("+") if row and row["ddl"] else []
    return {
        "operation": "+".join([*sorted({name for of in counted.values() for name in of}), *dict.fromkeys(whole)])
        or None,
        "target": ", ".join(sorted({*counted, *(one.target for one in statements if one.target)})) or None,
    }


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


def _numbered_anew(streams: Streams, behind: Behind, found: Verdicts) -> None:
    """What a master that numbers anew committed under numbers that a replica has seen: it may be what others had them before."""
    master, show = behind.applied.source or "", streams.shown.system.show
    anew = streams.history.renumbered.get(master)
    for origin in sorted(streams.logs[master].sums) if anew else ():
        commits = streams.logs[master].commits((anew.first if anew else 0) - 1, behind.seen, origin)
        rows = sorted((row["commit"], row["position"]) for row in commits)
        unseen = [position for _, position in rows if (origin, position) not in behind.applied.waiting]
        if unseen:
            found.totals["unknown"] += 1
            about: dict[str, Any] = {"server": behind.applied.server, "suffix": None, "origin": origin}
            stretch = {"from": show(unseen[0]), "to": show(unseen[-1]), "count": len(unseen)}
            found.unknown.append({**about, **stretch, "why": NUMBERED_ANEW, "says": WHY_UNKNOWN[NUMBERED_ANEW]})


def _passed_since(streams: Streams, found: Verdicts) -> None:
    """What replicas went on past, as far as a transaction is known under the number."""
    show = streams.shown.system.show
    for each in (one for one in streams.passed_since if one.doubtful):
        if each.key is not None:
            found.totals["unknown"] += 1
            position = show(each.key[1])
            about = {"server": each.server, "suffix": None, "origin": each.key[0], "from": position, "to": position}
            found.unknown.append({**about, "count": 1, "why": PASSED_SINCE, "says": WHY_UNKNOWN[PASSED_SINCE]})


def _waiting(streams: Streams, found: Verdicts) -> None:
    """What replicas that tell how far they applied still wait for."""
    show = streams.shown.system.show
    for one in streams.behind:
        _numbered_anew(streams, one, found)
        for origin, waits in sorted(one.waits.items()):
            row: dict[str, Any] = {"server": one.applied.server, "suffix": None, "origin": origin, "count": waits.count}
            row |= {"first": show(waits.first[1]), "last": show(waits.last[1]), "available": waits.count}
            row |= {"queued": None if one.applied.queued is None else waits.queued, "to_fetch": waits.to_fetch}
            row |= {"unread": waits.unread, "behind_gap": waits.behind_gap, "counted": not one.at_least}
            row |= {"purged": one.purged[2] if one.purged else 0, "earlier_first": bool(one.gone)}
            row |= {"unlike_first": True} if one.unlike_first else {}
            row |= {"numbers_anew": True} if one.applied.source in streams.history.renumbered else {}
            if changed := changed_ahead(streams, one):
                row["changed_first"] = [*map(show, changed[:3])]
            row |= {"in_part_first": True} if one.broken else {}
            row |= {"unended": [show(at) for at in one.unended[:3]]} if one.unended else {}
            passed = streams.passed[one.applied.server, one.applied.master] if one.purged else {}
            if passed:
                names = listed([show(told.key[1]) for _, told in sorted(passed.items())], "and", 3)
                places = listed(sorted({told.place for told in passed.values()}), "and")
                row["not_given"] = [f"{names}, which {places} ha{'s' if places.count('the ') == 1 else 've'}"]
            row |= {"held": waits.held(one.applied.stopped), "stopped": sorted(one.applied.stopped)}
            found.pending.append({**row, "suppliers": [one.applied.source] if one.brings(origin) else []})


def changed_ahead(streams: Streams, behind: Behind) -> list[str]:
    """Positions of what an applier will come to, and the log of its master has otherwise than an earlier one."""
    after = behind.applied.commit or 0
    changed = ((server, one) for (server, _), of_log in streams.history.changed.items() for one in of_log)
    by_commit = behind.applied.source is not None and streams.logs[behind.applied.source].by_commit
    return [
        one.position for server, one in changed if by_commit and server == behind.applied.source and one.place > after
    ]
