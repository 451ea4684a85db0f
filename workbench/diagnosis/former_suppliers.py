"""Servers that made changes and were made hubs: what they had not sent by then is stranded there, whatever links run.

c made 5 changes as origin 3 and was made a hub before it sent them

    its log has the 5, and its vector ends before them: no session of it sends anything of origin 3
    made a supplier again as origin 3, it makes the next change: its vector covers that one, and a session sends all 6
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.left_in_logs import LOG_ONLY
from workbench.model import counted, listed, step
from workbench.topology.suffix_evidence import Evidence, makes_none, origins_made

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

Row = Mapping[str, Any]


def was_maker(context: DetectorContext, server: str, suffix: str | None, origin: str) -> bool:
    """True if a server made changes of an origin once, and its own configuration says that it makes none now."""
    known = (server, origin) in context.once(_makers).get(suffix, ())
    return known and makes_none(context.case, context.topology, server, suffix)


def origins_of(context: DetectorContext, replica: Replica) -> list[str]:
    """The origin as which a server makes changes, and those as which it did before."""
    former = context.once(_makers).get(replica.suffix, frozenset())
    return origins_made(context.case, context.topology, replica, former)


def maker_before(context: DetectorContext, suffix: str | None, origin: str) -> str:
    """The server that made the changes of an origin that no server is now; empty: nothing tells."""
    return next((server for server, had in sorted(context.once(_makers).get(suffix, ())) if had == origin), "")


def _makers(context: DetectorContext) -> Mapping[str | None, frozenset[tuple[str, str]]]:
    suffixes = {one.suffix for one in context.topology.replicas}
    case, shown = context.case, context.topology
    return {suffix: Evidence(case, shown, suffix, ()).former for suffix in suffixes}


def stranded_on(context: DetectorContext, row: Row) -> str | None:
    """The server that made all that a row waits for as an origin that it is no more, and alone has it; None: there is none."""
    found, typed = context.verdicts, context.topology.system.typed
    if "stranded" in found.cut() or not row.get("counted", True):
        return None
    first, end = typed(row["first"]) or "", typed(row["last"]) or ""
    there: dict[str, int] = {}
    for one in found.stranded:
        if (one["suffix"], one["origin"]) == (row["suffix"], row["origin"]) and not one.get(LOG_ONLY):
            there[one["server"]] = there.get(one["server"], 0) + (first <= (typed(one["position"]) or "") <= end)
    server = next((name for name, count in there.items() if count == row["count"]), None)
    return server if server and was_maker(context, server, row["suffix"], row["origin"]) else None


def unsent_of(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The origins that a server had before, as which it made changes that others wait for."""
    waits = {row["origin"] for row in context.verdicts.pending if row["suffix"] == suffix and row["server"] != server}
    return sorted(origin for origin in waits if was_maker(context, server, suffix, origin))


def compare_unsent(server: str, origins: Sequence[str]) -> Mapping[str, Any]:
    """What to do where the data of such a server differ: they may be right, and the others behind."""
    return step(
        f"compare these entries with what {server} made as origin {listed(origins)} (its access log names it), and write on a "
        "supplier what of them is right",
        f"others wait for changes of {server}: in these entries it may be they that lack something",
        f"do not initialise {server} before that: what it made and had not sent would go",
    )


def not_by_links(server: str) -> Mapping[str, Any]:
    """What to do for whoever waits for what such a server alone has."""
    why = "no link that runs, and none made anew, brings them before that"
    return step(f"do what STRANDED_CHANGE says of {server}", why)


def supplier_again(context: DetectorContext, server: str, rows: Sequence[Row]) -> Mapping[str, Any] | None:
    """What brings the stranded changes of one origin from the log of a server that was made a hub; None: nothing proves that.

    A session begins at what its consumer has seen of the origin, so the log must have that as well.
    """
    suffix, origin, shown = rows[0]["suffix"], rows[0]["origin"], context.topology
    replica, command, typed = context.replica(server, suffix), shown.system.supplier_again, shown.system.typed
    if replica is None or replica.log is None or command is None or not was_maker(context, server, suffix, origin):
        return None
    logged = replica.log.facts.get("by_origin", {}).get(origin, {})
    begins = [
        one.top(origin) for one in shown.replicas if one.suffix == suffix and one.server != server and one.top(origin)
    ]
    positions = [typed(row["position"]) or "" for row in rows]
    whole = (
        replica.log.whole
        and (logged.get("max") or "") >= max(positions)
        and (logged.get("min") or "~") <= min(begins, default="")
    )
    if not whole:
        return None
    them, role = (
        "it" if len(rows) == 1 else "them",
        f"make {server} a supplier again, with the origin that it had, {origin}",
    )
    return step(
        f"{role}, {command()(server, suffix, origin)}; then make a change on it, and see that all servers get {them}",
        f"the log of {server} has {them}, and its vector does not cover {them}: with that change a session sends "
        f"{counted(len(rows))} as well",
        f"only if origin {origin} was neither cleaned since nor given to another server; if {server} is to be no supplier, "
        f"change its role again once all servers have {them}",
    )
