"""The findings on logs of earlier snapshots: what the present log of that server lacks (GONE_FROM_LOG), or has otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.earlier_logs import EarlierLog
from workbench.replication.stream.diagnosis.gone_from_log import Changed, Gone, still_in
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.sources import ONLY_LOG
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3


def gone_from_log(context: DetectorContext) -> Iterator[Finding]:
    """Of a source it reaches nobody over its log any more; of a copy it was set back, or its log is another one."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for (server, origin), gone in sorted(streams.gone.items()):
        positions, them = [show(one.position) for one in gone], "it" if len(gone) == 1 else "them"
        source = None if streams.is_open(origin) else streams.source_of(origin)
        held = _held(streams, server, origin, gone, them) if source == server else ""
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{server}: its log lacks {counted(len(gone), 'transaction')} of server {origin} ({_first(positions)}) that "
            f"{_earlier(server, gone)} has{_as_source(gone, origin)}{held}",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few(
                {"position": show(one.position), "snapshot": one.snapshot, "file": one.file} for one in gone
            ),
            fix=(
                _of_a_former_source(server, them, gone)
                if any(one.moved for one in gone)
                else _of_a_source(server, them, _applied(streams, server, origin, gone, them))
                if source == server
                else _of_a_copy(streams, server, origin, gone),
            ),
        )


def purged_before_copies(context: DetectorContext) -> Iterator[Finding]:
    """What a copy needs next, and the log of its source begins behind, as an earlier log of that shows."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for (server, origin), before in sorted(streams.by_earlier.items()):
        both = streams.differences.get((server, origin))
        source = streams.source_of(origin) or ""
        if not before.behind or both is None or both.shared is not None or streams.fetches(server, source):
            continue
        positions, them = [show(lack.position) for lack in before.behind], "it" if len(before.behind) == 1 else "them"
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{source}: its log begins behind {counted(len(positions), 'transaction')} of server {origin} ({_first(positions)}) "
            f"that {before.earlier.place} has, and {server} needs {them} next",
            server=source,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few(
                {"position": at, "snapshot": before.earlier.snapshot, "file": before.earlier.log.file}
                for at in positions
            ),
            fix=(
                step(
                    f"stop {server} now, and apply {them} there from {before.earlier.place} before what follows {them}",
                    f"{source} sends what its log has, and {server} goes on with that",
                    f"if {server} is past {them} by now, provision it from {source}",
                ),
            ),
        )


def emptied(context: DetectorContext) -> Iterator[Finding]:
    """Logs without a transaction, where an earlier log of the same server has some, or nothing tells what the server has."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for server, told in sorted(streams.emptied.items()):
        if told.before is None:
            yield Finding(
                "UNREADABLE_INPUT",
                "warning",
                f"{server}: its log has no transaction ({told.file}): what {server} committed is not known",
                server=server,
                evidence=({"file": told.file},),
                fix=(step(f"collect the log of {server} again", "copies are held against it, and purges rest on it"),),
            )
            continue
        log = told.before.log
        had = [
            f"{counted(count, 'transaction')} of server {origin} (from {show(log.first_commits(origin, 1)[0])} on)"
            for origin, count in sorted(log.committed.items())
            if count
        ]
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{server}: its log has no transaction ({told.file}), and {told.before.place} has {listed(had, 'and')}: "
            f"{_not_known(streams, server, told.before)}",
            server=server,
            evidence=({"file": told.file, "snapshot": told.before.snapshot, "before": log.file},),
            fix=(
                step(
                    f"collect the log of {server} again; if it is empty there, keep {told.before.place}, and look for the rows "
                    f"on {server}",
                    f"{server} had them, as its earlier log shows, and its log gives them to no server",
                    f"do not provision {server} before its rows are compared",
                ),
            ),
        )


def _not_known(streams: Streams, server: str, before: EarlierLog) -> str:
    """What an emptied log leaves open: of a copy what it has now, of another server what the others lack."""
    sources = [streams.sources.get(origin) for origin, count in before.log.committed.items() if count]
    is_copy = all(one and one.server != server and one.known_by not in (None, ONLY_LOG) for one in sources)
    return f"what {server} has now is not known" if is_copy else "what others lack of these is not known"


def numbered_anew(context: DetectorContext) -> Iterator[Finding]:
    """Masters whose present log has other transactions under the numbers of commits than an earlier one."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for master, anew in sorted(streams.history.renumbered.items()):
        replicas = sorted({one.server for one in streams.applied if one.source == master})
        them = listed(replicas) if replicas else "each of its replicas"
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{master}: its log has other transactions under {counted(anew.numbers, 'commit number')} than its log of snapshot "
            f"{anew.snapshot} (commit {anew.first:,} is {show(anew.now)}, and was {show(anew.was)}): its numbers began anew, or "
            "one of the two is the log of another server",
            server=master,
            items=(show(anew.was), show(anew.now)),
            evidence=({"commit": anew.first, "now": show(anew.now), "was": show(anew.was), "snapshot": anew.snapshot},),
            fix=(
                step(
                    f"see whether {master} was made anew; if so, save what only {them} has of before, and provision {them} from "
                    f"{master}",
                    "a slave asks for commits above the highest that it has seen: what has a lower number now never comes to it",
                    f"purge nothing on {master} before: by its numbers a replica seems to have what it never got",
                ),
            ),
        )


def queued_alone(context: DetectorContext) -> Iterator[Finding]:
    """What a replica fetched, and the log of its master, which goes on behind it, does not have."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for behind in streams.behind:
        if not behind.unlogged:
            continue
        one, count = behind.applied, len(behind.unlogged)
        named = listed([f"{show(at)}, commit {commit:,}" for (commit, at), _ in behind.unlogged], "and", _NAMED)
        them, was = ("it", "it was") if count == 1 else ("them", "they were")
        yield Finding(
            "GONE_FROM_LOG",
            "warning",
            f"{one.source}: its log has nothing under {'the commit' if count == 1 else 'the commits'} of "
            f"{counted(count, 'transaction')} that the queue of {one.server} holds ({named}), and goes on behind {them}: it lost "
            f"{them}, or was read while {was} being committed, or never committed {them}",
            server=one.source,
            origin=behind.unlogged[0][1],
            items=tuple(show(at) for (_, at), _ in behind.unlogged[:ITEMS_SHOWN]),
            evidence=first_few(
                {"commit": commit, "position": show(at), "queue": one.server} for (commit, at), _ in behind.unlogged
            ),
            fix=(
                step(
                    f"export SYS_REPLICATION_LOG of {one.source} once more; if it still lacks {them}, look for the rows of "
                    f"{them} on {one.source}",
                    "what a queue holds came from the log of its master",
                    f"if {one.source} does not have these rows, take {them} out of the queue of {one.server} before its applier "
                    "comes there",
                ),
            ),
        )


def _first(positions: Sequence[str]) -> str:
    more = f" and {len(positions) - _NAMED:,} more" if len(positions) > _NAMED else ""
    return ", ".join(positions[:_NAMED]) + more


def _earlier(server: str, found: Sequence[Gone | Changed]) -> str:
    """The earlier logs of a server, in words."""
    if {one.holder for one in found} == {server}:
        return f"its log of snapshot {listed(sorted({one.snapshot for one in found}))}"
    return listed(sorted({one.log for one in found}), "and")


def _applied(streams: Streams, server: str, origin: str, gone: Sequence[Gone], them: str) -> str:
    """What to do about who has yet to come to what a source lost, as the end of a sentence."""
    logs = [
        name for name, log in streams.logs.items() if name != server and len(still_in(log, origin, gone)) < len(gone)
    ]
    waiting = [behind for behind in streams.behind if behind.applied.source == server]
    queues = sorted({behind.applied.server for behind in waiting if any(of == origin for _, of in behind.gone)})
    logs = sorted({*logs} - {*queues})
    says = f"; stop {listed(logs)} now, and apply {them} there before what follows {them}" if logs else ""
    if queues:
        running = [name for name in queues if not _stands_still(streams, name)]
        stop = f"stop {listed(running)} now, and " if running else ""
        where = f"put the messages of {them} into the queue of {listed(queues)}, from {_from(streams, server, origin, gone)}"
        says += f"; {stop}{where}, before what follows {them}"
    return says


def _held(streams: Streams, server: str, origin: str, gone: Sequence[Gone], them: str) -> str:
    """Which other logs have all of it whole, as the end of a sentence; empty: none."""
    names = [
        name
        for name, log in sorted(streams.logs.items())
        if name != server and len(still_in(log, origin, gone)) == len(gone)
    ]
    return f"; {listed(names, 'and')} ha{'s' if len(names) == 1 else 've'} {them} whole" if names else ""


def _stands_still(streams: Streams, server: str) -> bool:
    return all("applier" in one.stopped for one in streams.applied if one.server == server)


def _from(streams: Streams, server: str, origin: str, gone: Sequence[Gone]) -> str:
    """Where the messages of what a master lost are: in a queue that has all of it alike, and in an earlier log."""
    keys = {(origin, one.position): one.content for one in gone}
    queues = sorted(
        one.server
        for one in streams.applied
        if one.source == server
        and all(key in one.waiting and one.waiting[key]["content"] == content for key, content in keys.items())
    )
    return listed([*(f"the queue of {name}" for name in queues), *sorted({one.log for one in gone})], "or")


def _of_a_source(server: str, them: str, applied: str) -> Mapping[str, Any]:
    return step(
        f"look for the rows of {them} on {server}: if they are there, its log alone lost {them}{applied}",
        f"{server} committed {them}, as its earlier log shows, and its log gives {them} to nobody any more",
        f"if they are not there, {server} was set back, or filled from a server that lacks {them}: whoever goes on behind "
        f"{them} misses {them} for good",
    )


def _as_source(found: Sequence[Gone | Changed], origin: str) -> str:
    """What the servers of earlier logs were, as the end of a sentence; empty: the same server."""
    holders = sorted({one.holder for one in found if one.moved})
    return f", when {listed(holders, 'and')} was the source of server {origin}" if holders else ""


def _of_a_former_source(server: str, them: str, gone: Sequence[Gone]) -> Mapping[str, Any]:
    """What to do about what a server lacks that was made the source of an origin in place of another one."""
    was, logs = ({one.holder for one in gone if one.moved}, {one.log for one in gone if one.moved})
    return step(
        f"look for the rows of {them} on {server}; if they are missing, {server} became the source without {them}: save {them} "
        f"from {listed(sorted(logs), 'and')}, and decide whether all servers get {them}",
        f"{listed(sorted(was), 'and')} committed {them}, and the log of {server} gives {them} to no server",
        f"before you apply {them} anywhere, compare the rows with what {server} committed since",
    )


def _of_a_copy(streams: Streams, server: str, origin: str, gone: Sequence[Gone]) -> Mapping[str, Any]:
    they, them = ("it", "it") if len(gone) == 1 else ("they", "them")
    source = None if streams.is_open(origin) else streams.source_of(origin)
    given = streams.logs[source].rows_of(origin, [one.position for one in gone]) if source else {}
    whole = [position for position, row in given.items() if row["outcome"] == COMMITTED]
    again = f": it needs {them} from {source} again" if len(whole) == len(gone) else ""
    if source and not again:
        lacked = them if not whole else f"{len(gone) - len(whole):,} of them"
        again = (
            f"; the log of {source} lacks {lacked}, too, and cannot give {'it' if lacked == 'it' else 'them'} again: "
        )
        again += f"{'it' if lacked == 'it' else 'they'} may have been {server}'s own"
    return step(
        f"look for the rows of {them} on {server}: if they are there, its log alone lost {them}, and {they} must not be applied "
        "there once more",
        f"{server} had {them}, as its earlier log shows",
        f"if they are not there, {server} was set back{again}",
    )


def changed_in_log(context: DetectorContext) -> Iterator[Finding]:
    """What a server has with one content in an earlier log, and with another one in the present log."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for (server, origin), changed in sorted(streams.history.changed.items()):
        positions, them = [show(one.position) for one in changed], "it" if len(changed) == 1 else "them"
        earlier, they = _earlier(server, changed), "it" if len(changed) == 1 else "they"
        yield Finding(
            "TXN_CONFLICT",
            "error",
            f"{server}: its log has {counted(len(changed), 'transaction')} of server {origin} ({_first(positions)}) with another "
            f"content or end than {earlier}{_as_source(changed, origin)}: nothing tells which of the two was committed",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few({"position": show(one.position), "snapshot": one.snapshot} for one in changed),
            fix=(
                step(
                    f"compare the rows that {they} changed on {server} with both logs, and apply {them} nowhere before that",
                    "both servers gave these numbers: each may have committed its own"
                    if any(one.moved for one in changed)
                    else "a log is only ever appended to: one of the two is of another server, or was changed",
                    f"if {server} was made anew, its numbers began anew: then provision its replicas from it",
                ),
            ),
        )


EARLIER_LOGS = (gone_from_log, emptied, purged_before_copies, changed_in_log, numbered_anew, queued_alone)
"""What looks for findings of which the present log of a server tells nothing by itself."""
