"""Servers that take all data of a server with unrelated data by themselves, and delete their own at their next pull."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.diagnosis.entry_names import names_of
from workbench.engine.states import LOOKED_AT, differing, held_together, states_in, unlike
from workbench.model import counted, listed, step
from workbench.replication.entry.diagnosis.state_comparison import states_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3
"""So many entries are named."""


def taken_anew(context: DetectorContext, pairs: Collection[frozenset[str]], suffix: str | None) -> dict[str, list[str]]:
    """Consumer -> the suppliers of unrelated data whose data it takes by itself, over links that may run."""
    found: dict[str, set[str]] = {}
    for link in context.topology.links if context.topology.pulling else ():
        runs = link.suffix == suffix and link.automatic and link.enabled is not False
        if link.consumer is not None and runs and frozenset((link.supplier, link.consumer)) in pairs:
            found.setdefault(link.consumer, set()).add(link.supplier)
    return {consumer: sorted(found[consumer]) for consumer in sorted(found)}


def deletes_its_data(anew: Mapping[str, list[str]]) -> str:
    """What such servers are about to do, as clauses; empty: there is none."""
    said = "{0} deletes its data at its next pull, and takes those of {1}"
    return "; ".join(said.format(consumer, listed(suppliers, "or")) for consumer, suppliers in anew.items())


def stop_it_first(
    context: DetectorContext, anew: Mapping[str, list[str]], suffix: str | None
) -> tuple[Mapping[str, Any], ...]:
    """What comes before all else: that no server deletes data which somebody may want to keep."""
    return tuple(
        step(
            f"stop {consumer} now, and set `automatic_refresh = false` on its {'link' if len(suppliers) == 1 else 'links'} to "
            f"{listed(suppliers)} in its server.toml before it runs again, unless its data may go; write a backup of it",
            f"at its next pull it deletes its database and takes that of {listed(suppliers, 'or')}, without being told to",
            _alone(context, consumer, suffix),
        )
        for consumer, suppliers in anew.items()
    )


def _alone(context: DetectorContext, server: str, suffix: str | None) -> str:
    """What no other collected server shows of what this one does."""
    shown = context.topology
    here = [
        (one, file)
        for one in shown.replicas
        if one.suffix == suffix and one.claims and (file := states_of(context.case, shown, one))
    ]
    numbers = [number for number, (one, _) in enumerate(here) if one.server == server]
    if not numbers or len(here) < 2:
        return f"what only {server} holds is gone then, and nothing collected tells what that is"
    states, digests = ([context.case.parts(name, one) for _, one in here] for name in ("states", "digests"))
    count, entries = 0, list[str]()
    for buckets in held_together(differing(digests), LOOKED_AT):
        for some in held_together(unlike(states, buckets)):
            held = states_in(states, some)
            every = held.all()
            live = every[every.attribute >= 0]
            has = held.holders(live)
            mine = np.asarray(has[numbers[0]] & (has.sum(axis=0) == 1))
            count += int(mine.sum())
            entries += sorted({held.entries[at] for at in live[mine].entry.tolist()})
    if not count:
        return f"every change that {server} shows, another collected server shows, too"
    names = names_of(context.case, [one for _, one in here], entries[:_NAMED])
    more = f" and {len(entries) - _NAMED:,} more" if len(entries) > _NAMED else ""
    named = f"{', '.join(names.get(one, one) for one in entries[:_NAMED])}{more}"
    return (
        f"no other collected server shows {counted(count)} of {counted(len(entries), 'entry', 'entries')} of {server} ({named}): "
        "they are gone then"
    )
