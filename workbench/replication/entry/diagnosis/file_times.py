"""What rests on the times of files, and on what was read of them.

Whether a server that others no longer supply, or that supplies others no longer, was heard of since that began.

Nothing in its file tells whether the server stood still since, or the file was merely written before those of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.replication.entry.diagnosis.earlier_states import GoneChange
from workbench.replication.entry.diagnosis.state_comparison import now_at, states_of
from workbench.rules.assumptions import COLLECTED_IN_ORDER, FILES_OF_ONE_TIME

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]


def of_one_time(context: DetectorContext, server: str, suffix: str | None, rows: Iterable[Row]) -> tuple[str, ...]:
    """What is taken for granted of a server that is behind what others remember, as these pairs with it show."""
    shown, rows = context.topology, list(rows)
    replica = context.replica(server, suffix)
    begins = [one[0] for row in rows if row["consumer"] == server for one in row["lag"].values()]
    begins += [one[1] for row in rows if row["supplier"] == server for one in row["advance"].values()]
    heard = now_at(context.case, shown, replica) if replica else 0
    times = (shown.system.halves(shown.system.typed(at) or at)[0] for at in begins)
    return (FILES_OF_ONE_TIME,) if any(heard < time for time in times) else ()


def stands_alone_since_its_file(context: DetectorContext, server: str, suffix: str | None) -> tuple[str, ...]:
    """The same of a server whose changes no session delivers: others may remember too little of it only since its file."""
    rows = (row for row in context.pairs if (row["supplier"], row["suffix"]) == (server, suffix))
    return of_one_time(context, server, suffix, (row for row in rows if not row["delivers"]))


def of_gone(context: DetectorContext, gone: Iterable[GoneChange]) -> tuple[str, ...]:
    """What is taken for granted of changes that only earlier files show.

    The order of the files, where no clock of the server tells it, and that nobody got the changes behind its own file.
    """
    shown, found = context.topology, dict[str, None]()
    # Changes of the same files rest on the same.
    for one in {(id(one.last), *map(id, one.files)): one for one in gone}.values():
        if any(file.now >= one.last.now for file in one.files):
            found[COLLECTED_IN_ORDER] = None
        lost = one.last.replica
        others = [
            each for each in shown.replicas if each.claims and each.suffix == lost.suffix and each.server != lost.server
        ]
        if any(now_at(context.case, shown, each) < one.last.now for each in others):
            found[FILES_OF_ONE_TIME] = None
    return tuple(sorted(found))


def read_in_part(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """True if some of the entries of a server could not be read: what its file does not show, it may have."""
    replica = context.replica(server, suffix) if context.topology.pulling else None
    states = states_of(context.case, context.topology, replica) if replica else None
    return states is not None and not states.whole
