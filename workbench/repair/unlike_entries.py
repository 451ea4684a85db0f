"""The entries that differ between servers, as a repair leaves them: which of the differences its steps mend."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from workbench.diagnosis.contents import Difference
from workbench.diagnosis.detector_context import DetectorContext
from workbench.rules.contents import LIVE
from workbench.rules.repair_model import Model

ENTRIES_DIFFER = "ENTRIES_DIFFER"

NOTHING_BACK: frozenset[tuple[str, str]] = frozenset()


def mended(
    model: Model | None, server: str, one: Difference, restored: Collection[tuple[str, str]] = NOTHING_BACK
) -> bool:
    """True if a difference of a server is gone on the model: its values were written once more, or all its data replaced.

    restored  (server, position) of single changes that arrive
    """
    if one.position is not None and (server, one.position) in restored:
        return True
    at = model.servers.get(server) if model else None
    if model is None or at is None:
        return False
    if at.source is not None and at.source not in one.servers:
        return True
    return not model.written_again(server).isdisjoint({(one.entry, one.attribute.lower()), (one.entry, "")})


def of_its_own(context: DetectorContext, suffix: str | None, server: str) -> int:
    """How many entries have values on a server that others do not show, where nothing tells that a change is lacking there.

    A filling throws these away, and they may be right: who edits data past replication leaves no other trace.
    """
    return len(
        {
            one.entry
            for contents in context.verdicts.contents
            if contents.suffix == suffix
            for one in contents.unexplained()
            if one.position is None and not one.spelt and _shows_more(one, server)
        }
    )


def on_it_alone(context: DetectorContext, suffix: str | None, server: str) -> int:
    """How many entries only this server has, where nothing tells that they were deleted elsewhere."""
    return len(
        {
            one.entry
            for contents in context.verdicts.contents
            if contents.suffix == suffix and server in contents.exports
            for one in contents.unexplained()
            if one.position is None and not one.attribute
            if [name for name, held in contents.held[one.entry].items() if held.status == LIVE] == [server]
        }
    )


def of_their_own(
    context: DetectorContext, servers: Iterable[tuple[str, str | None]]
) -> dict[tuple[str, str | None], int]:
    """The same of some servers, each with a suffix."""
    return {(server, suffix): of_its_own(context, suffix, server) for server, suffix in servers}


def still_unlike(
    context: DetectorContext, suffix: str | None, model: Model | None, restored: Collection[tuple[str, str]]
) -> dict[str, tuple[int, int]]:
    """Server -> how many of its entries still differ from those of others on the model, and how many do now."""
    now: dict[str, set[str]] = {}
    left: dict[str, set[str]] = {}
    for contents in context.verdicts.contents:
        for one in contents.unexplained() if contents.suffix == suffix else ():
            for server in one.servers if one.others and not one.spelt else ():
                now.setdefault(server, set()).add(one.entry)
                if not mended(model, server, one, restored):
                    left.setdefault(server, set()).add(one.entry)
    return {server: (len(left.get(server, ())), len(entries)) for server, entries in now.items()}


def all_unlike(
    context: DetectorContext, models: Mapping[str | None, Model | None], restored: Collection[tuple[str, str]]
) -> dict[tuple[str, str | None], tuple[int, int]]:
    """The same of all suffixes: (server, suffix) -> how many entries differ in the end, and now."""
    return {
        (server, suffix): counts
        for suffix, model in models.items()
        for server, counts in still_unlike(context, suffix, model, restored).items()
    }


def _shows_more(one: Difference, server: str) -> bool:
    """True if a server has values, or a whole entry, that no other shows, or that differ and nothing tells which is right."""
    if one.attribute or not one.others:
        return server in one.servers
    return one.others == (server,)
