"""Which of two servers a refresh is for, where one is behind what the other remembers: the one that throws nothing away by it.

B was restored from a backup of days ago, and purged since: its vector begins with its own mark of today
A knows nothing of that mark, and is behind what B remembers, although A has all that B has, and more
A refreshed from B     what A has and B lacks is thrown away
B refreshed from A     nothing is thrown away
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.model import counted, listed, step
from workbench.replication.entry.diagnosis.file_times import read_in_part
from workbench.replication.entry.diagnosis.state_comparison import now_at, ranges_of, states_of
from workbench.replication.entry.rules.entries import TURNED_DOWN
from workbench.systems.kanidm.lone_changes import shows_entries
from workbench.systems.kanidm.pulling import CHANGELOG_MAX_AGE
from workbench.systems.kanidm.rules.ranges import OK

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.repair.plan_types import View


class Alone(NamedTuple):
    """Changes that a server shows: those that another one lacks or waits for, and those that it may have had and forgotten."""

    lacked: int
    doubted: int


def shown_alone(context: DetectorContext, server: str, other: str, suffix: str | None) -> Alone | None:
    """What a server shows and another one does not; None: not all entries of both were collected."""
    for name in (server, other):
        replica = context.replica(name, suffix)
        if replica is None or states_of(context.case, context.topology, replica) is None:
            return None
        if read_in_part(context, name, suffix):
            return None
    lacked = doubted = 0
    for fate in context.verdicts.fates.get(suffix, ()):
        if server in fate.shown and {server, other} <= fate.compared:
            if other in fate.doubted:
                doubted += fate.count
            elif other in fate.missed or fate.awaited_by(other):
                lacked += fate.count
    return Alone(lacked, doubted)


def thrown_away(context: DetectorContext, server: str, source: str, suffix: str | None) -> int:
    """How many changes go with the data of a server that is refreshed, for its source lacks them, as far as entries tell."""
    alone = shown_alone(context, server, source, suffix)
    return alone.lacked if alone else 0


def _out_of_touch(context: DetectorContext, server: str, source: str, suffix: str | None) -> bool:
    """True if the source, too, has forgotten all that it ever heard of a server, which ran within its window.

    Of a server that was off for longer than the window everybody has forgotten all: that one is behind, and not its source.
    """
    replicas = [context.replica(name, suffix) for name in (server, source)]
    mine, theirs = ((one, ranges_of(context.topology, one)) if one else None for one in replicas)
    if mine is None or theirs is None or mine[0].origin not in mine[1]:
        return False
    begins, last = mine[1][mine[0].origin or ""]
    known = theirs[1].get(mine[0].origin or "")
    window = now_at(context.case, context.topology, theirs[0]) - CHANGELOG_MAX_AGE
    return last >= window and (known is None or known[1] < begins)


def still_supply(context: DetectorContext, consumer: str, suffix: str | None) -> list[str]:
    """The servers that bring a consumer up to date, as far as they are themselves."""
    rows = [row for row in context.pairs if (row["consumer"], row["suffix"], row["decision"]) == (consumer, suffix, OK)]
    return sorted(
        row["supplier"] for row in rows if not any(reason["rule"] == TURNED_DOWN for reason in row["reasons"])
    )


def _is_the_odd_one(context: DetectorContext, server: str, source: str, suffix: str | None) -> bool:
    """True of the source if it is out of touch with a server that another one still supplies, or if there are but these two."""
    rows = (row for row in context.pairs if (row["consumer"], row["suffix"]) == (server, suffix))
    no_others = not any(row["supplier"] != source for row in rows)
    return _out_of_touch(context, server, source, suffix) and (no_others or bool(still_supply(context, server, suffix)))


def gains_nothing(context: DetectorContext, server: str, source: str, suffix: str | None) -> bool:
    """True if a refresh only throws changes away: its source is the odd one, lacks changes, and has no others."""
    if not _is_the_odd_one(context, server, source, suffix):
        return False
    there, back = shown_alone(context, server, source, suffix), shown_alone(context, source, server, suffix)
    return there is not None and back is not None and there.lacked > 0 == there.doubted and not any(back)


def only_throws_away(view: View, server: str, source: str) -> bool:
    """The same on the model of a plan."""
    model = view.model
    if any(read_in_part(view.context, name, view.suffix) or not shows_entries(view, name) for name in (server, source)):
        return False
    if not _is_the_odd_one(view.context, server, source, view.suffix):
        return False
    alone = model.servers[server].holds - model.servers[source].holds
    lacked = {lack.lot for lack in model.missing() | model.pending() if lack.server == source}
    return bool(alone) and alone <= lacked and model.servers[source].holds <= model.servers[server].holds


def the_other_way_round(server: str, source: str, lost: int, risk: str) -> Mapping[str, Any]:
    """Refresh the server that lacks changes, although the other one is behind what it remembers."""
    return step(
        f"refresh {source} from {server}, and never {server} from {source}",
        f"{source} lacks {counted(lost)} that {server} has, and shows none that {server} lacks: a refresh of {server} would only "
        "throw away",
        risk,
    )


def stop_taking_anew(server: str, sources: Sequence[str], lost: int) -> Mapping[str, Any]:
    """Keep a server from taking data anew by itself that lack some of its changes."""
    return step(
        f"stop {server} now, and set `automatic_refresh = false` for {listed(sources)} in its server.toml before it runs again, "
        "unless these changes may go; write a backup of it",
        f"at its next pull it deletes its database and takes that of {listed(sources, 'or')}, which "
        f"{'lacks' if len(sources) == 1 else 'lack'} {counted(lost)} that {server} has",
    )
