"""The finding UNRELATED_DATA: servers of one suffix whose data have no common beginning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.initialisations import initialisations
from workbench.diagnosis.left_in_logs import gone_with_the_data, make_again, save_first
from workbench.diagnosis.repair_sources import best_links_to, waits_for
from workbench.diagnosis.replaced_data import told_last
from workbench.model import Finding, counted, first_few, listed, step
from workbench.replication.entry.diagnosis.automatic_refresh import deletes_its_data, stop_it_first, taken_anew
from workbench.rules.verdicts import REPLACED
from workbench.topology.suffix_evidence import Evidence

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def unrelated_data(context: DetectorContext) -> Iterator[Finding]:
    """Servers of one suffix that may exchange nothing: a finding for each that has to be taken away to end it."""
    refused: dict[str | None, set[frozenset[str]]] = {}
    for row in context.pairs:
        if row["unrelated"]:
            refused.setdefault(row["suffix"], set()).add(frozenset((row["supplier"], row["consumer"])))
    refill = context.topology.system.refill
    content = "entries" if context.topology.system.proving else "rows"
    for suffix, pairs in refused.items():
        names = {name for pair in pairs for name in pair}
        empty = {name for name in names if context.has_no_entries(name, suffix)}
        silent = {name for name in names if (one := context.replica(name, suffix)) and one.empty}
        for server, others in odd_ones(pairs, empty | silent):
            generations = {
                name: getattr(context.replica(name, suffix), "generation", None) for name in (server, *others)
            }
            if _filled_meanwhile(context, server, others, suffix):
                yield _other_data_by_now(server, suffix, generations)
                continue
            if server in empty:
                yield _not_filled(context, server, suffix, generations)
                continue
            left = save_first(context.verdicts, server, suffix)
            came, once_more = _came_last(context, server, others, suffix)
            anew = taken_anew(context, {frozenset((server, other)) for other in others}, suffix)
            about_to = f"; {deletes_its_data(anew)}" if anew else ""
            yield Finding(
                "UNRELATED_DATA",
                "error",
                f"{server} has unrelated data: {_unlike(server, generations, others)}; neither side accepts changes of the "
                f"other, and their positions cannot be compared{about_to}{came}"
                + (f"; its changelog still has {left[0]}, which no other collected server has" if left else ""),
                server=server,
                suffix=suffix,
                evidence=_beginnings(server, generations),
                root=f"server {server} has {'data of another beginning' if any(generations.values()) else 'other data'} than "
                f"{listed(others)}: {deletes_its_data(anew) or 'nothing is exchanged between them'}{came}",
                fix=(
                    *stop_it_first(context, anew, suffix),
                    *([left[1]] if left else []),
                    *once_more,
                    step(
                        f"find out which data is the right one, then {refill} the other side from it ({server} or the rest)",
                        f"positions of one side mean nothing to the other: only {content} can be compared",
                        f"to {refill} a server throws away everything that only it holds",
                    ),
                ),
            )


def _came_last(
    context: DetectorContext, server: str, others: Sequence[str], suffix: str | None
) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Whose data came last from elsewhere, in words, as far as messages tell of it; and the step that it asks for.

    A server that is killed as its filling ends has data of its supplier, and begins with a mark of its own.
    """
    if not context.topology.system.proving:
        return "", ()
    newest = max(
        ((last.ended, name, last) for name in (server, *others) if (last := told_last(context, name, suffix))),
        default=None,
    )
    if newest is None:
        return "", ()
    ended, name, last = newest
    when = f"{ended:%Y-%m-%d %H:%M:%S} UTC"
    if last.kind == REPLACED:
        return f"; the data of {name} came from a backup or a file at {when}", ()
    replica = context.replica(name, suffix)
    came = initialisations(Evidence(context.case, context.topology, suffix, [name]), replica) if replica else ()
    by = sorted({source for source, began, until in came if began <= ended and last.began <= until})
    if not by:
        return f"; {name} was initialised at {when}", ()
    refill = context.topology.system.refill
    again = step(
        f"{refill} {name} from {by[0]} once more, if nobody imported or restored data there since",
        f"its data came from there at {when}, and it does not show the beginning of {by[0]}: it may have ended before all "
        "of that was saved",
        f"what clients wrote on {name} since then is thrown away",
    )
    known = name == server and len(by) == 1 and by[0] in others
    return f"; {listed(by)} initialised {name} at {when}", (again,) if known else ()


def _unlike(server: str, generations: Mapping[str, str | None], others: Sequence[str]) -> str:
    """How data that no session may mix are known: by their generations, or by what logs hold under one number."""
    if any(generations.values()):
        return f"its data have another beginning ({shown_as(generations[server])}) than those of {listed(others)}"
    return f"its log and {'that' if len(others) == 1 else 'those'} of {listed(others)} hold other changes under the same numbers"


def _filled_meanwhile(context: DetectorContext, server: str, others: Sequence[str], suffix: str | None) -> bool:
    """True if a server that had no changes of these others when it was read claimed some when all had been read."""
    replica = context.replica(server, suffix)
    makers = {one.origin for name in others if (one := context.replica(name, suffix)) and one.origin}
    return replica is not None and bool(makers & set(replica.later) - {replica.origin, *replica.vector})


def _other_data_by_now(server: str, suffix: str | None, generations: Mapping[str, str | None]) -> Finding:
    others = [name for name in generations if name != server]
    return Finding(
        "UNRELATED_DATA",
        "warning",
        f"{server} got other data while the servers were read: first its data had another beginning "
        f"({shown_as(generations[server])}) than those of {listed(others)}, and at the end it claimed their changes",
        server=server,
        suffix=suffix,
        evidence=_beginnings(server, generations),
        fix=(
            step(
                "collect once more when it has all", f"what was read of {server} first is of data that it has no more"
            ),
        ),
    )


def _not_filled(
    context: DetectorContext, server: str, suffix: str | None, generations: Mapping[str, str | None]
) -> Finding:
    """A server without entries has no data of its own to lose, whatever beginning it claims."""
    refill = context.topology.system.refill
    links = best_links_to(context, server, suffix)
    waiting = {link.supplier: waits_for(context, link.supplier, suffix) for link in links}
    least = sorted(name for name in waiting if waiting[name] == min(waiting.values()))
    source = " or ".join(least) or "the server with the most complete data"
    left = waiting[least[0]] if least else 0
    behind = f"; {_still_waiting(least, left)}: let these arrive first" if left else ""
    others = [name for name in generations if name != server]
    gone = gone_with_the_data(context, server, suffix)
    lost = f"{counted(len(gone))} of {server} went with its data, and no other collected server has " if gone else ""
    lost += ("it" if len(gone) == 1 else "them") if gone else ""
    return Finding(
        "UNRELATED_DATA",
        "error",
        f"{server} has no entries below its suffix, and its data have another beginning ({shown_as(generations[server])}) than "
        f"those of {listed(others)}: it was never filled, or an initialisation ended before it was whole; no session fills it",
        server=server,
        suffix=suffix,
        evidence=_beginnings(server, generations),
        root=f"server {server} has no entries: it has to be filled{'; ' if lost else ''}{lost}",
        fix=(
            *([kept[1]] if (kept := save_first(context.verdicts, server, suffix)) else []),
            *([make_again(server, gone)] if gone else []),
            step(
                f"{refill} {server} from {source}",
                f"{'no entry' if kept or gone else 'nothing'} is lost by it: it shows none{behind}",
                f"first copy the database folder of {server}: its changelog may hold changes that no other server has",
            ),
        ),
    )


def _still_waiting(servers: Sequence[str], left: int) -> str:
    """Which servers wait for that many changes, each of them."""
    each = "each " if len(servers) > 1 else ""
    return f"{listed(servers, 'and')} {each}still wait{'s' * (len(servers) == 1)} for {counted(left)}"


def _beginnings(server: str, generations: Mapping[str, str | None]) -> tuple[Mapping[str, Any], ...]:
    """A row for each server whose data have another beginning than those of this one."""
    mine = {"server": server, "generation": generations[server]}
    others = (name for name in generations if name != server)
    return first_few({**mine, "other": other, "other_generation": generations[other]} for other in others)


def shown_as(generation: str | None) -> str:
    """A generation as a sentence names it."""
    return generation or "unknown"


def odd_ones(pairs: set[frozenset[str]], empty: Container[str] = frozenset()) -> Iterator[tuple[str, list[str]]]:
    """Pairs that do not fit, by the server that most others do not fit with: one finding for it, not one for each pair.

    Those without data (`empty`) come first: nobody is odd for not fitting with them.
    """
    pairs = set(pairs)
    while pairs:
        counts = Counter(server for pair in pairs for server in pair)
        server = max(sorted(counts), key=lambda name: (name in empty, counts[name]))
        others = sorted(other for pair in pairs if server in pair for other in pair - {server})
        pairs -= {frozenset((server, other)) for other in others}
        yield server, others
