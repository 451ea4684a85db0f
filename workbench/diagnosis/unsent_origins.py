"""Origins of which a server sends nothing, although its log has changes of them: sessions go by what its vector claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.diagnosis.former_suppliers import origins_of
from workbench.diagnosis.lost_own_element import lost_elements

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.rules.vectors import Span
    from workbench.topology.topology import Replica


def unsent_by(context: DetectorContext, replica: Replica) -> set[str]:
    """The origins of changes that a server alone has, made as another one, and that its own vector does not claim."""
    stranded = context.verdicts.stranded
    mine = {row["origin"] for row in stranded if (row["server"], row["suffix"]) == (replica.server, replica.suffix)}
    return mine - {replica.origin} if replica.claims else set()


def without_unsent(context: DetectorContext, replica: Replica, seen: Mapping[str, Span]) -> dict[str, Span]:
    """What sessions of a server offer of what it has seen.

    c made 3 changes as origin 3 that no other server has, and was made a hub: its log has them, its vector ends before them
    the vector of c does not name 3, as which it makes changes or made them before: no session of it sends anything of 3
    """
    unsent = unsent_by(context, replica)
    if (
        replica.claims and not replica.empty
    ):  # the log may be there, and not the claim: a former origin, or a cleaned one
        unsent |= {*origins_of(context, replica)} - replica.vector.keys()
    if lost := context.once(lost_elements).get((replica.server, replica.suffix)):
        unsent.add(lost.origin)  # its log has them, and sessions go by its vector
    sent = {origin: span for origin, span in seen.items() if origin not in unsent}
    return sent | {origin: replica.vector[origin] for origin in unsent & replica.vector.keys()}
