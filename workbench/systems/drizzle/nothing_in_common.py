"""The finding NOTHING_IN_COMMON: two logs that have no transaction of one server id in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, counted, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def nothing_in_common(context: DetectorContext) -> Iterator[Finding]:
    """Nothing tells which of the two came first, or whether one lacks anything; each two logs are told once."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    named = set[tuple[frozenset[str], str]]()
    for (server, origin), both in sorted(streams.differences.items()):
        other = streams.source_for(server, origin) or ""
        pair = frozenset({server, other}), origin
        if pair in named or not streams.apart(server, origin, both) or (server, origin) in streams.by_earlier:
            continue
        named.add(pair)
        has = []
        for name in sorted(pair[0]):
            log = streams.logs[name]
            first = show(log.first_commits(origin, 1)[0])
            has.append(f"{name} has {counted(log.committed[origin], 'transaction')} of it, from {first} on")
        names = " and ".join(sorted(pair[0]))
        yield Finding(
            "NOTHING_IN_COMMON",
            "info",
            f"the logs of {names} have no transaction of server {origin} in common: {'; '.join(has)}. Nothing tells whether one "
            "of them lacks what the other one has",
            server=server,
            origin=origin,
            evidence=tuple({"server": name, "count": streams.logs[name].committed[origin]} for name in sorted(pair[0])),
            fix=(
                step(
                    f"collect more of both logs, until they have a transaction of server {origin} in common",
                    "the order of two logs is told by what both have",
                    f"if there is none, {names} may be two servers of one id: then compare their rows",
                ),
            ),
        )
