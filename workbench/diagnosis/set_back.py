"""ROLLED_BACK by an earlier file: the newest own change that a server knows of is older than in an earlier snapshot.

s1 B.json    UUID b, db_ts_max 300, own changes up to 250
s2 B.json    UUID b, db_ts_max 900, own changes up to 100      B was restored: while it runs, it forgets no newest own CID
s2 B.json    UUID b, db_ts_max 200, own changes up to 100      it was restored, or the file is older than that of s1
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, step
from workbench.replication.entry.diagnosis.server_files import ServerFile, earlier_of_uuid
from workbench.replication.entry.diagnosis.state_comparison import now_at, ranges_of, states_of
from workbench.rules.assumptions import COLLECTED_IN_ORDER
from workbench.topology.topology import is_shared

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica


def set_back(context: DetectorContext, told: Collection[tuple[str, str | None]]) -> Iterator[Finding]:
    """The servers whose own changes end before those that an earlier file shows; `told`: those of which that is said already."""
    shown = context.topology
    thrown = {(one.change["server"], one.change["suffix"]) for one in context.verdicts.gone if not one.forgotten}
    for replica in shown.replicas:
        key = replica.server, replica.suffix
        if not replica.claims or replica.origin is None or key in thrown or key in told or is_shared(shown, replica):
            continue
        earlier = _furthest(context, replica)
        if earlier is not None:
            yield _finding(context, replica, replica.origin, earlier)


def _furthest(context: DetectorContext, replica: Replica) -> ServerFile | None:
    """The earlier file in which the own changes of a server end last, if they end earlier now."""
    shown, origin = context.topology, replica.origin or ""
    assert shown.pulling is not None
    files = [one for one in earlier_of_uuid(context.case, shown, replica) if origin in one.ranges]
    if not files:
        return None
    furthest = max(files, key=lambda one: one.ranges[origin][1])
    had, now = furthest.ranges[origin][1], ranges_of(shown, replica).get(origin)
    if now is None and had < now_at(context.case, shown, replica) - shown.pulling.remember:
        return None  # what is older than the window may have been forgotten
    return furthest if now is None or now[1] < had else None


def _finding(context: DetectorContext, replica: Replica, origin: str, earlier: ServerFile) -> Finding:
    shown, server = context.topology, replica.server
    now = ranges_of(shown, replica).get(origin)
    had, has = _shown(context, origin, earlier.ranges[origin][1]), _shown(context, origin, now[1]) if now else "none"
    file = f"{earlier.file.file} of snapshot {earlier.file.snapshot}"
    behind = now_at(context.case, shown, replica) <= earlier.now
    if behind:
        why = f"it was restored from an older state, or its file is older than {file}{_all_older(context)}"
        root = f"{server} was restored from an older state, or its file is older than that of snapshot {earlier.file.snapshot}"
    else:
        why = "it was restored from an older state"
        root = f"own changes are gone on {server}, which was restored from an older state"
    return Finding(
        "ROLLED_BACK",
        "warning" if behind else "error",
        f"{server} knows its own changes up to {has}, and knew them up to {had} in {file}: {why}",
        server=server,
        origin=origin,
        suffix=replica.suffix,
        items=(had,),
        evidence=(
            {"server": server, "knows": has if now else None, "of_origin": origin, "snapshot": shown.snapshot},
            {"server": server, "knows": had, "of_origin": origin, "snapshot": earlier.file.snapshot},
        ),
        fix=tuple(_steps(context, replica, file, behind)),
        root=root,
        assumes=(COLLECTED_IN_ORDER,) if behind else (),
    )


def _shown(context: DetectorContext, origin: str, time: int) -> str:
    system = context.topology.system
    return system.show(system.order_key(origin, time, 0))


def _all_older(context: DetectorContext) -> str:
    """What is said if no file of the snapshot is younger than the one of the same server in an earlier snapshot."""
    shown = context.topology
    found = [
        (now_at(context.case, shown, one), max(file.now for file in files))
        for one in shown.replicas
        if one.claims and (files := earlier_of_uuid(context.case, shown, one))
    ]
    if len(found) < 2 or any(now >= before for now, before in found):
        return ""
    return (
        f"; so is each of the {len(found)} files of snapshot {shown.snapshot} whose server has an earlier one: all were "
        "restored, or the snapshots were given in the wrong order"
    )


def _steps(context: DetectorContext, replica: Replica, file: str, behind: bool) -> Iterator[Mapping[str, Any]]:
    server = replica.server
    if behind:
        yield step(
            f"find out when the file of {server} was written; if {file} is the younger one, load the snapshots into a new case, "
            "in the order of their time",
            "the last snapshot is taken for the present: what is said of it is of the past then",
        )
    if states_of(context.case, context.topology, replica) is None:
        yield step(
            f"collect a backup of {server} with its entries, and diagnose again: they show which changes went",
            "its vector tells up to where they go, and not which of them others have",
        )
    yield step(
        f"{'if it was restored, ' if behind else ''}keep {file}, and write again by hand what it shows of changes that no server "
        f"has, if nothing newer replaced them since",
        "no pull and no refresh brings what no server has",
        f"the next own change of {server} moves its vector over those that it lost: nobody asks for them then; if a server that "
        f"was not collected has any of them, {server} refuses what that supplies, and has to be refreshed",
    )
