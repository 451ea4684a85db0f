"""Changes of an origin that another server made than the one that has the origin now: it lost no own changes by lacking them.

bern was given the origin 3 of carl, took changes of clients as 3, and was given its origin 2 back

    access log of bern    ADD uid=bern-0, of a client, answered with 6b0cdb0e000800030000
    carl                  lacks that change and never made it: it was not restored, and need not get back what it never had

What a plug-in or the server itself wrote is in no access log: where an earlier snapshot shows both with one origin, and only the
log of the other one has a change, nothing tells that the present owner of the origin made it and lost it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Key = tuple[str, str | None, str]
"""A server, a suffix, and the position of a change of the origin that the server has there."""


def made_by_others(context: DetectorContext) -> Mapping[Key, str]:
    """The missing changes of the origin of their own server that another server made -> that server; ask `context.once`."""
    owners = {(one.server, one.suffix, one.origin) for one in context.topology.replicas if one.origin}
    asked: dict[tuple[str, str | None], set[str]] = {}
    for row in context.verdicts.missing:
        if (row["server"], row["suffix"], row["origin"]) in owners:
            asked.setdefault((row["server"], row["suffix"]), set()).add(row["position"])
    return {
        (server, suffix, position): maker
        for (server, suffix), positions in asked.items()
        for position, maker in (
            _in_logs_of_sharers(context, server, suffix, positions) | makers_of(context, server, suffix, positions)
        ).items()
    }


def _in_logs_of_sharers(
    context: DetectorContext, owner: str, suffix: str | None, positions: Collection[str]
) -> dict[str, str]:
    """Those of some changes that in an earlier snapshot only the log of another server of the same origin had -> it."""
    replica, found = context.replica(owner, suffix), dict[str, str]()
    typed, labels = context.topology.system.typed, [*context.case.snapshots]
    for label in labels[: labels.index(context.topology.snapshot)]:
        shown = context.at(label)
        sharing = [
            (one.server, context.case.log(one.log))
            for one in (shown.replicas if shown and replica else ())
            if replica and (one.suffix, one.origin) == (suffix, replica.origin) and one.log
        ]
        own = [log for server, log in sharing if server == owner]
        for position in positions if own and len(sharing) > 1 else ():
            key = typed(position) or ""
            if not any(log.holds(key) for log in own):
                others = (server for server, log in sharing if server != owner and log.holds(key))
                found |= dict.fromkeys([position], name) if (name := next(others, "")) else {}
    return found


def makers_of(context: DetectorContext, owner: str, suffix: str | None, positions: Collection[str]) -> dict[str, str]:
    """Those of some changes, as shown, that a client made on another server by its log of operations -> that server.

    Two servers of one origin may each make a change with the same position: what the log of this one names as its own is its own,
    and where both name another entry, it has its own, and the other one is missing.
    """
    typed = context.topology.system.typed
    keys = {typed(position) or "": position for position in positions}
    named = pc.field("position").isin(pa.array(sorted(keys), pa.string())) & (pc.field("outcome") == "applied")
    columns = ["position", "target", "replicated"]
    found: dict[str, str] = {}
    for contents in context.verdicts.contents:
        if contents.suffix != suffix:
            continue
        named_by: dict[str, dict[tuple[str, str], bool | None]] = {}
        for server in sorted({given.server for given in contents.evidence.inputs}):
            for row in contents.evidence.told(
                "applied", columns, named & pc.field("link").is_null(), server
            ).to_pylist():
                change = keys[row["position"]], (row["target"] or "").lower()
                named_by.setdefault(server, {})[change] = row["replicated"]
        own = {change for change, replicated in named_by.get(owner, {}).items() if replicated is False}
        made = {
            server: {change for change, replicated in rows.items() if replicated is False} - own
            for server, rows in named_by.items()
            if server != owner
        }
        # A connection whose beginning is in no log may be of a client: a server that made others of them made these, too.
        for server in [name for name, changes in made.items() if changes]:
            open_ = {change for change, replicated in named_by[server].items() if replicated is None}
            made[server] |= open_ - named_by.get(owner, {}).keys()
        for server, changes in made.items():
            found |= {position: server for position, _ in changes}
    return found


def makers_in_words(context: DetectorContext, rows: Iterable[Mapping[str, Any]]) -> str:
    """Which other servers made missing changes of the origin of their server, as the end of a clause; empty: none did."""
    makers = context.once(made_by_others)
    counts = Counter(makers.get((row["server"], row["suffix"], row["position"]), "") for row in rows)
    return "".join(
        f"; {maker} made {count:,} of them when it had this origin (its own logs say so)"
        for maker, count in sorted(counts.items())
        if maker
    )
