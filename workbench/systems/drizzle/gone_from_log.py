"""The findings on logs of earlier snapshots: what the present log of that server lacks (GONE_FROM_LOG), or has otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.gone_from_log import Changed, Gone, still_in
from workbench.replication.stream.diagnosis.log_comparison import Streams

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
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{server}: its log lacks {counted(len(gone), 'transaction')} of server {origin} ({_first(positions)}) that "
            f"{_earlier(server, gone)} has",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few(
                {"position": show(one.position), "snapshot": one.snapshot, "file": one.file} for one in gone
            ),
            fix=(
                _of_a_source(server, them, _applied(streams, server, origin, gone, them))
                if source == server
                else _of_a_copy(server, source, them),
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


def _of_a_copy(server: str, source: str | None, them: str) -> Mapping[str, Any]:
    they = "it" if them == "it" else "they"
    return step(
        f"look for the rows of {them} on {server}: if they are there, its log alone lost {them}, and {they} must not be applied "
        "there once more",
        f"{server} had {them}, as its earlier log shows",
        f"if they are not there, {server} was set back" + (f": it needs {them} from {source} again" if source else ""),
    )


def changed_in_log(context: DetectorContext) -> Iterator[Finding]:
    """What a server has with one content in an earlier log, and with another one in the present log."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for (server, origin), changed in sorted(streams.history.changed.items()):
        positions, them = [show(one.position) for one in changed], "it" if len(changed) == 1 else "them"
        earlier = _earlier(server, changed)
        yield Finding(
            "TXN_CONFLICT",
            "error",
            f"{server}: its log has {counted(len(changed), 'transaction')} of server {origin} ({_first(positions)}) with another "
            f"content or end than {earlier}: nothing tells which of the two was committed",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few({"position": show(one.position), "snapshot": one.snapshot} for one in changed),
            fix=(
                step(
                    f"compare the rows that {them} changed on {server} with both logs, and apply {them} nowhere before that",
                    "a log is only ever appended to: one of the two is of another server, or was changed",
                    f"if {server} was made anew, its numbers began anew: then provision its replicas from it",
                ),
            ),
        )
