"""The finding GONE_FROM_LOG: what a log of an earlier snapshot has, and the present log of that server lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.gone_from_log import still_in

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3


def gone_from_log(context: DetectorContext) -> Iterator[Finding]:
    """Of a source it reaches nobody over its log any more; of a copy it was set back, or its log is another one."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for (server, origin), gone in sorted(streams.gone.items()):
        positions, count = [show(one.position) for one in gone], len(gone)
        them = "it" if count == 1 else "them"
        named = ", ".join(positions[:_NAMED]) + (f" and {count - _NAMED:,} more" if count > _NAMED else "")
        snapshots = sorted({one.snapshot for one in gone})
        lacking = sorted(
            name for name, log in streams.logs.items() if name != server and len(still_in(log, origin, gone)) < count
        )
        source = None if streams.is_open(origin) else streams.source_of(origin)
        applied = f"; stop {listed(lacking)} now, and apply {them} there before what follows {them}" if lacking else ""
        yield Finding(
            "GONE_FROM_LOG",
            "error",
            f"{server}: its log lacks {counted(count, 'transaction')} of server {origin} ({named}) that its log of snapshot "
            f"{listed(snapshots)} has",
            server=server,
            origin=origin,
            items=tuple(positions[:ITEMS_SHOWN]),
            evidence=first_few(
                {"position": show(one.position), "snapshot": one.snapshot, "file": one.file} for one in gone
            ),
            fix=(_of_a_source(server, them, applied) if source == server else _of_a_copy(server, source, them),),
        )


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
