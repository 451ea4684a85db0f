"""What was found of a stream, as rows of the output: what each log comes to, what each lacks, what replicas say of themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workbench.replication.stream.diagnosis.log_comparison import APPLIED, VOID, Streams, time_text
from workbench.replication.stream.diagnosis.sources import ONLY_LOG
from workbench.replication.stream.diagnosis.table_statements import not_applied
from workbench.replication.stream.rules.segments import UNFINISHED
from workbench.replication.stream.rules.streams import Difference


def log_rows(streams: Streams) -> list[dict[str, Any]]:
    """What each log comes to, by origin."""
    show = streams.shown.system.show
    return [
        {
            "server": name,
            "origin": origin,
            "source": _shown_source(streams, origin),
            "source_known_by": streams.sources[origin].known_by,
            "outcomes": dict(sorted(sums.outcomes.items())),
            "bytes": sums.bytes,
            "rows_seen": sums.seen,
            "rows_kept": sums.kept,
            "rows_cancelled": sums.cancelled,
            "tables": {table: dict(sorted(of.items())) for table, of in sorted(sums.tables.items())},
            "first": show(sums.first[1]) if sums.first else None,
            "last": show(sums.last[1]) if sums.last else None,
            "until": time_text(sums.until),
            "lost": len(log.lost),
            "lag": _lag(streams, name, origin),
        }
        for name, log in sorted(streams.logs.items())
        for origin, sums in sorted(log.sums.items())
    ]


def _shown_source(streams: Streams, origin: str) -> str | None:
    """The source of an origin; None where one log alone has it, and another server was named, or has a log without anything."""
    source, named = streams.sources[origin], streams.told.get(origin)
    if source.known_by == ONLY_LOG and (named not in (None, source.server) or streams.emptied.keys() - {source.server}):
        return None
    return source.server


def _lag(streams: Streams, server: str, origin: str) -> dict[str, Any] | None:
    """How far a log is behind that of its source: in transactions, bytes, rows and time."""
    found = streams.differences.get((server, origin))
    source = streams.source_for(server, origin)
    if found is None or source is None:
        return None
    sums = [streams.logs[name].sums.get(origin) for name in (server, source)]
    here, there = (one.until if one else None for one in sums)
    count = found.counts["behind"]
    passed = (there - here).total_seconds() if here and there and count else 0.0
    return {"transactions": count, "bytes": found.bytes, "rows": found.rows, "seconds": max(passed, 0.0)}


def copy_rows(streams: Streams) -> list[dict[str, Any]]:
    """Each log against that of its source: what is missing inside, behind, incomplete, undecided, errant; what to apply."""
    show = streams.shown.system.show
    found = []
    for (server, origin), both in sorted(streams.differences.items()):
        one, source = both.difference, streams.source_for(server, origin) or ""
        void = [position for position in one.undecided if streams.at_source(server, origin, position) in VOID]
        by_hand = list(dict.fromkeys(change.position for change in not_applied(streams, server, origin)))
        lacks = sorted((*one.inside, *one.behind), key=lambda lack: lack.place)
        apply = [lack for lack in lacks if show(lack.position) not in by_hand]
        rows = streams.logs[source].rows_of(origin, [lack.position for lack in apply])
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
                    show(position): streams.at_source(server, origin, position) or UNFINISHED
                    for position in one.undecided
                },
                "errant": [show(position) for position in _only_there(streams, server, origin, one)],
                "alone": [show(position) for position in one.alone],
                "conflicts": [show(position) for position in one.conflicts],
                "apply": [show(lack.position) for lack in apply],
                "by_hand": by_hand,
                "rows": {
                    show(lack.position): json.loads(rows[lack.position]["rows"] or "{}")
                    for lack in apply
                    if lack.position in rows
                },
                "discard": [show(position) for position in void],
            }
        )
    return found


def _only_there(streams: Streams, server: str, origin: str, one: Difference) -> Sequence[str]:
    """What only its log has; where nobody knows the source, other logs may have what the one it is held against has not."""
    return streams.errant.get((server, origin), (0, ()))[1] if streams.is_open(origin) else one.errant


def replica_rows(streams: Streams) -> list[dict[str, Any]]:
    """Replicas of which there is no log, as servers of the output: the last transaction that each says it has applied."""
    show, there = streams.shown.system.show, {one.server for one in streams.shown.replicas}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in streams.applied:
        if one.server not in there:
            vector = found.setdefault(one.server, {})
            row = streams.logs[one.source].at_commit(one.commit) if one.source and one.commit is not None else None
            if row:
                vector[row["origin"]] = {"min": None, "max": show(row["position"])}
    about: dict[str, Any] = {"origin": None, "suffix": None, "changes": 0, "evidence": [APPLIED]}
    return [{"name": name, "vector": vector, **about} for name, vector in sorted(found.items())]


def applier_rows(streams: Streams) -> list[dict[str, Any]]:
    """What replicas say of themselves: how far they applied, what stands still, what they wait for."""
    show, waiting = streams.shown.system.show, {id(one.applied): one for one in streams.behind}
    found = []
    for one in streams.applied:
        behind = waiting.get(id(one))
        gaps = behind.gaps if behind else []
        found.append(
            {
                "server": one.server,
                "master": one.master,
                "source": one.source,
                "commit": one.commit,
                "queued": None if one.queued is None else len(one.queued),
                "stopped": dict(sorted(one.stopped.items())),
                "behind": sum(waits.count for waits in behind.waits.values()) if behind else None,
                "behind_is_at_least": bool(behind and behind.at_least),
                "not_queued": behind.lacks if behind else 0,
                "gaps": [{"commit": commit, "position": show(position)} for (commit, position), _ in gaps],
                "in_part": [
                    {"position": show(position), "missing": piece.missing}
                    for position, piece in sorted(one.in_part.items())
                ],
                "purge_below": purge_below(streams, one.source) if one.source else None,
            }
        )
    return found


def purge_below(streams: Streams, master: str) -> int | None:
    """Commits of this master below the number given are applied by every replica that was collected; None: nobody tells."""
    if master in streams.history.renumbered:
        return None
    if any(one.under_others and one.applied.source == master for one in streams.behind):
        return None  # nothing tells that its replicas go by the numbers of this log
    told = [one.commit for one in streams.applied if one.source == master]
    # What a replica went on without, it may still need.
    passed = [each.commit for each in streams.passed_since if each.source == master]
    return (
        min((commit for commit in (*told, *passed) if commit is not None), default=None) if None not in told else None
    )


def big_ones(streams: Streams) -> Sequence[tuple[str, dict[str, Any]]]:
    """Server and row of the transactions that are big."""
    return [(name, row) for name, log in sorted(streams.logs.items()) for row in log.big()]
