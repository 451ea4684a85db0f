"""What a node of a tiered log is doing, by what the registry says of it, what it answers, and how far it is.

The registry alone cannot tell: a node that was shut down, killed or frozen keeps its row and its source for ever, one that was
stopped by command still answers, and one that waits on purpose looks like one that is slow.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.replication.tier.rules.tiers import CIRCLE, Lsn, Place

HEALTHY, BEHIND, DELAYED, DELAYED_ABOVE = "healthy", "behind", "delayed", "delayed_above"
STOPPED, FROZEN, GHOST, HUNG, UNREACHABLE = "stopped", "frozen", "ghost", "hung", "unreachable"
PENDING, NO_SOURCE, GAPPED, ORPHAN, CYCLE = "pending", "no_source", "gapped", "orphan", "cycle"
UNTOLD, RETIRED, CUT_BACK = "untold", "retired", "cut_back"

SAYS = {
    HEALTHY: "it follows its source",
    BEHIND: "it is connected and reports itself, and its source has more: it is slow, or waits on purpose (a delay stands in its "
    "configuration file alone)",
    DELAYED: "it waits on purpose before it applies, as its configuration says",
    DELAYED_ABOVE: "it has all or nearly all that its source has: what holds it back is above it",
    STOPPED: "it answers, but does not report itself any more: its replication was stopped",
    FROZEN: "it does not answer and does not report itself, and its row still says that it replicates: frozen, "
    "killed, or cut off",
    GHOST: "it was shut down, and its row still says that it replicates: a clean exit resets nothing",
    HUNG: "it has not reported itself for longer than the limit",
    UNREACHABLE: "it did not answer when it was asked, and its last report to the registry is not older than the limit",
    PENDING: "it waits for a source, and one would be offered to it, or it has found one since",
    NO_SOURCE: "it waits for a source, and the registry offers it none that can serve it",
    GAPPED: "it waits for a source, and no node that answers has the file that it needs next",
    ORPHAN: "nothing says from whom it pulls, or it pulls from a node that does not hang on the source",
    RETIRED: "it was set Inactive and does not report itself: it was taken out, and is no candidate",
    UNTOLD: "neither the registry nor its own answer was collected",
    CUT_BACK: "it cut its log back after its last report: nothing tells how far it is since",
    CYCLE: "it pulls from a node that pulls, over others or not, from it",
}

CONNECTED = frozenset({HEALTHY, BEHIND, DELAYED, DELAYED_ABOVE, CUT_BACK, UNREACHABLE})
"""Nodes that pull from their source."""

FED = CONNECTED - {UNREACHABLE}
"""Nodes that get what their source has: whether one that does not answer still pulls, nobody knows."""

WAITING = frozenset({PENDING, NO_SOURCE, GAPPED})
"""Nodes that wait for a source."""

GONE = frozenset({FROZEN, GHOST})
"""Nodes that are not there any more, and still have their place in the tree."""


@dataclass(frozen=True)
class NodeFacts:
    """What is known of a node that is not of the source cluster.

    state     as the registry has it; None: it has no row
    age       seconds since it last reported itself; None: never, or nothing tells the time
    stale     seconds after which that is too long
    answered  whether it answered when it was asked; None: it was not asked
    pulls     the registry says from whom it pulls
    problem   cycle or orphan, by the tree; none for a node of a circle that hangs on the source by another way
    said_stop its own log ends with the end of its replication
    last      the newest place of its log; `head` that of the source cluster
    held_above  what it lacks, its source lacks, too, or most of it
    delay     seconds that it waits on purpose
    served    some node that answers has what it needs next
    offered   the registry would offer it a source now that can serve it; None: not asked
    cut_back  it cut its log back after its last report, and `last` is where it did: it may be anywhere behind that by now
    ahead     its last report is of a time to come: how old it is nothing tells
    """

    state: str | None
    age: float | None
    stale: float
    answered: bool | None = None
    pulls: bool = False
    problem: str | None = None
    said_stop: bool = False
    last: Lsn | None = None
    head: Lsn | None = None
    held_above: bool = False
    delay: float | None = None
    served: bool = True
    offered: bool | None = None
    cut_back: bool = False
    ahead: bool = False


def condition(one: NodeFacts) -> str:
    """The one word for what a node is doing."""
    silent = one.age is not None and one.age >= one.stale
    if one.state == "Inactive" and not one.pulls and not one.answered and (silent or one.age is None):
        return RETIRED
    if one.answered is False:
        if not silent and (one.age is not None or one.ahead):
            return CYCLE if one.problem == CYCLE else UNREACHABLE
        if not one.pulls:
            return HUNG  # it came up, wrote its state and never registered; or nothing is known of it
        return GHOST if one.said_stop else FROZEN
    if one.problem == CYCLE and not silent:
        return CYCLE
    if one.state == "Pending" and silent and one.answered is None:
        return HUNG  # who waits for a source goes on to report itself
    behind = one.last is not None and one.head is not None and one.last < one.head
    if not one.pulls and (one.state or "").lower() != "active":
        if silent and one.answered:
            return STOPPED  # who waits for a source goes on to report itself; the thread that asks for one ended
        if not behind:
            return PENDING  # it has all there is: it found a source after the registry was read
        if not one.served:
            return GAPPED
        return NO_SOURCE if one.offered is False else PENDING
    if silent:
        # Who reports itself is a thread of its own: it ends with the replication, and the node still answers.
        return STOPPED if one.answered else HUNG
    if not one.pulls or one.problem:
        return ORPHAN
    if not behind:
        return HEALTHY
    if one.cut_back:
        return CUT_BACK
    if one.delay:
        return DELAYED
    return DELAYED_ABOVE if one.held_above else BEHIND


def problem_of(place: Place | None) -> str | None:
    """What is wrong with where a node hangs, if it does not get the log over another way."""
    if place is None or not place.problem or (place.problem == CIRCLE and place.tier is not None):
        return None
    return CYCLE if place.problem == CIRCLE else ORPHAN
