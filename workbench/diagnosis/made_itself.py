"""Changes that a server made itself, as an origin that it is no more, and that it waits for by the vectors alone.

bern was filled from carl, and made a consumer later, which took origin 2 out of its vector
    others   name 625 changes of origin 2, which bern made before it was filled; no log has them any more
    carl     has them, so bern got them back with its data: whoever writes them once more puts old values over newer values
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.changes_thrown_away import source_of
from workbench.diagnosis.former_suppliers import was_maker
from workbench.model import counted, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


MADE_ITSELF = "made_itself"
"""The key of a row of `pending` about changes that the server made itself, as an origin that it is no more."""


def note_made_itself(context: DetectorContext) -> None:
    """Write it into the rows of `pending` that it is true of: the server that filled this one has the changes."""
    typed = context.topology.system.typed
    for row in context.verdicts.pending:
        replica = context.replica(row["server"], row["suffix"])
        if not replica or row["origin"] in replica.vector:
            continue
        resets = context.verdicts.resets.get((row["server"], row["suffix"]), [])
        if resets and was_maker(context, row["server"], row["suffix"], row["origin"]):
            source = context.replica(
                source_of(context, replica, max(resets, key=lambda reset: reset.ended)), row["suffix"]
            )
            if source and source.top(row["origin"]) >= (typed(row["last"]) or ""):
                row[MADE_ITSELF] = True


def own_says(server: str, count: int, origin: str) -> str:
    """What is said of such changes."""
    it, it_came = ("it", "it came") if count == 1 else ("them", "they came")
    return (
        f"{server} made {counted(count)} of origin {origin} itself when it was a supplier, and its vector does not name that "
        f"origin any more: by the vectors it lacks {it}; the server that filled it has {it}, so it has {it}, too, unless "
        f"{it_came} there later"
    )


def own_step(server: str, filled: bool) -> Mapping[str, Any]:
    """What to do about them. `filled`: the server has to be filled for other changes."""
    if filled:
        return step(
            f"do what REINIT_REQUIRED says of {server}, and write none of them again", "they come with the data"
        )
    return step(
        "write none of them again", f"{server} made them: compare entries with another server if you are in doubt"
    )
