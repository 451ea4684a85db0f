"""The finding PASSED_OVER: what a replica went on past since an earlier snapshot, which shows that it could not apply it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.passed_since import (
    HAD_ALONE,
    HAD_OTHERWISE,
    HAD_PART,
    LACKED,
    STOOD,
    PassedSince,
)
from workbench.rules.assumptions import COLLECTED_IN_ORDER
from workbench.safety import printable

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED, _ERROR_SHOWN = 3, 200
"""So many transactions, and characters of an error, are said."""

_NOT_APPLIED = frozenset({LACKED, HAD_PART, STOOD})

_SHOWED = {
    LACKED: "its queue went on without {them}",
    HAD_PART: "its queue had {them} in part",
    HAD_OTHERWISE: "its queue had {them} with another content than the log of {master}",
    HAD_ALONE: "its queue had {them}, and the log of {master} did not",
    STOOD: "its applier stood still before {them}",
}
"""What the earlier snapshot shows."""
_OPEN = {
    LACKED: "no later file shows that {were} put in",
    HAD_PART: "no later file shows that the rest was put in",
    HAD_OTHERWISE: "no later file shows that {were} put right",
    HAD_ALONE: "no later file shows that {were} taken out",
    STOOD: "no later file shows whether {were} applied when it was started again, or skipped by a person",
}
"""What no later file shows."""


def passed_over(context: DetectorContext) -> Iterator[Finding]:
    """For each replica, master, snapshot and reason one finding; of numbers that no file has anything under another one."""
    streams = context.verdicts.streams
    assert streams is not None
    found: dict[tuple[str, str, str, str, bool], list[PassedSince]] = {}
    for each in streams.passed_since:
        found.setdefault((each.server, each.master, each.snapshot, each.why, each.key is None), []).append(each)
    for (server, number, snapshot, why, _), passed in sorted(found.items()):
        yield _finding(context, server, passed, passed[0].source or f"master {number}", snapshot, why)


def _finding(
    context: DetectorContext, server: str, passed: list[PassedSince], master: str, snapshot: str, why: str
) -> Finding:
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    count, keys = len(passed), [each.key for each in passed if each.key is not None]
    names = listed(
        [f"{show(each.key[1])} (commit {each.commit:,})" if each.key else f"commit {each.commit:,}" for each in passed],
        "and",
        _NAMED,
    )
    them, they_are = ("it", "it is") if count == 1 else ("them", "they are")
    words = {"them": them, "were": "it was" if count == 1 else "they were", "master": master}
    error = printable((passed[0].error or "").strip())[:_ERROR_SHOWN]
    found = sorted({each.place for each in passed if each.place})
    places = listed(found, "and") if found else ""
    if not keys:
        todo = f"look for {names} in SYS_REPLICATION_LOG of {master}, and compare the rows of {them} on {server}"
    else:
        todo = f"compare the rows of {names} on {server} with those on {master}"
        todo += f"; if {they_are} missing there, take {them} from {places}" if places and why in _NOT_APPLIED else ""
    log = streams.logs.get(passed[0].source or "")
    cautions = [f"do not purge commit {passed[0].commit:,} and what follows from the log of {master} before that"]
    cautions = [] if log is not None and (log.first_commit or 0) > passed[0].commit else cautions
    cautions += [] if keys else ["a number without a transaction is possible: one that was taken back"]
    return Finding(
        "PASSED_OVER",
        "warning" if passed[0].doubtful else "info",
        f"{server} is past {counted(count, 'transaction' if keys else 'commit')} of {master}: {names}. In snapshot {snapshot} "
        f"{_SHOWED[why].format(**words)}{f' ({error})' if error else ''}, and {_OPEN[why].format(**words)}",
        server=server,
        origin=keys[0][0] if keys else None,
        items=tuple(show(position) for _, position in keys[:ITEMS_SHOWN]),
        evidence=first_few(
            {
                "commit": each.commit,
                "position": show(each.key[1]) if each.key else None,
                "snapshot": snapshot,
                "why": why,
            }
            for each in passed
        ),
        fix=(step(todo, "what a replica went on past never comes by itself", "; ".join(cautions) or None),),
        assumes=(COLLECTED_IN_ORDER, *streams.assumes_of_queue(server)),
    )
