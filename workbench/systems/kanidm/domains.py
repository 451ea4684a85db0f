"""Servers of two domains: which domain ends is a decision, and what the evidence says of it.

Nothing goes between two domains, and no position of one means anything in the other: which data is right, no file tells.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow.compute as pc

from workbench.repair.plan_types import View
from workbench.replication.entry.diagnosis.state_comparison import states_of
from workbench.rules.repair_model import Model

_BUILT_IN = "00000000-0000-0000-0000-"
"""How the ids of the entries begin that every new server has; the others were made by people."""

Filling = tuple[str, str]
"""A server, and the one that gets all its data."""


def of_another_domain(model: Model, server: str) -> set[str]:
    """The servers that are known to be of another domain than this one."""
    mine = model.servers[server].generation
    return {name for name, one in model.servers.items() if mine and one.generation and one.generation != mine}


def moved(model: Model, source: str) -> list[Filling]:
    """How the servers of the other domains join that of the source: each over a link, as far as links lead there."""
    left = sorted(of_another_domain(model, source))
    reached = [source, *sorted(model.servers.keys() - {source, *left})]
    linked = {(link.supplier, link.consumer) for link in model.links if link.runs}
    found: list[Filling] = []
    while way := next(((by, to) for by in reached for to in left if (by, to) in linked), None):
        found.append(way)
        reached.append(way[1])
        left.remove(way[1])
    return found


def only_new(view: View, filled: Collection[str]) -> bool:
    """True if the files show that the domain of these servers has no entry that people made, and that another domain has some.

    A tombstone counts: somebody made that entry, and deleted it. So does an origin of no collected server in their ranges:
    another server of that domain wrote, and what it holds nobody knows.
    """
    servers = view.model.servers
    made_here = {servers[name].origin for name in filled}
    if any({*servers[name].vector} - made_here for name in filled):
        return False
    others = servers.keys() - {*filled}
    return all(_made_by_people(view, name) is False for name in filled) and any(
        _made_by_people(view, name) for name in others
    )


def _made_by_people(view: View, server: str) -> bool | None:
    """True if a server shows an entry that is not one of those that each new server has; None: its entries were not collected."""
    replica = view.context.replica(server, view.suffix)
    shows = states_of(view.context.case, view.context.topology, replica) if replica else None
    if shows is None or not shows.whole:
        return None
    rows = view.context.rows("states", ["entry"], server=server, snapshot=shows.snapshot)
    return any(
        not str(entry).startswith(_BUILT_IN) for batch in rows for entry in pc.unique(batch["entry"]).to_pylist()
    )


ONLY_A_PERSON = "only a person can tell which domain has the right data"


def ask_which(ways: Collection[str]) -> str:
    """Why no step is planned, and what a person has to name."""
    named = " or ".join(f"--way {way}" for way in ways)
    return f"{ONLY_A_PERSON}: find out whose data may go, then plan with {named}"


def in_words(fillings: Collection[Filling]) -> str:
    """Who is refreshed from whom, in the order in which it is done."""
    return ", then ".join(f"{'refresh ' * (number == 0)}{to} from {by}" for number, (by, to) in enumerate(fillings))
