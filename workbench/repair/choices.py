"""Where only a person can decide whose data is right: what each choice throws away, by content.

No way is proven here, because positions are no proof: servers with data of different beginnings, or two that make changes as
one origin. The plan takes no step in such a suffix. It says what each choice costs, and how it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.diagnosis.comparable_servers import comparable
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.gone_links import telling
from workbench.diagnosis.precedence import DECIDED_BY_A_PERSON
from workbench.engine.entries import SUMMED_HERE, Differing, differing
from workbench.engine.parquet_read import Part
from workbench.model import Finding, counted

_NAMED, _READ = 3, 1000
"""Entries that a sentence names, and how many are looked through for them."""


@dataclass(frozen=True)
class Choice:
    """Whose data stays, whose goes, and what of the latter only they have; None: it was not collected.

    `alike`: the servers that have to make their changes as another origin first, since who stays makes them as the same
    `making`: those of the servers to be filled that make changes
    """

    kept: tuple[str, ...]
    filled: tuple[str, ...]
    lost: Mapping[str, Differing | None]
    alike: tuple[str, ...] = ()
    making: tuple[str, ...] = ()


def choices(context: DetectorContext, findings: Sequence[Finding], suffix: str | None) -> list[str]:
    """One sentence for each choice of the suffix; empty if nobody has to decide.

    Where servers keep no log, what each holds is told by its entries: there the losses are counted and ways are proven.
    """
    if context.topology.pulling:
        return []
    mine = [one for one in findings if one.suffix == suffix and one.root and one.code in DECIDED_BY_A_PERSON]
    if not mine:
        return []
    empty = [one for one in mine if one.server and context.has_no_entries(one.server, suffix)]
    said = [f"{one.root}: {_steps(one)}" for one in empty]
    if not (mine := [one for one in mine if one not in empty]):
        return said
    said += [f"{one.root}: only a person can tell which data is right, so the plan takes no step here" for one in mine]
    to_know = "collect with --entries, and plan anew" if context.topology.system.proving else "compare the rows before"
    for choice in _choices(context, suffix, mine):
        makers = {one.server for one in context.topology.replicas if one.suffix == suffix and one.origin is not None}
        choice = replace(choice, making=tuple(name for name in choice.filled if name in makers))
        said.append(_told(choice, context.topology.system.refill, _fillings(context, suffix, choice), to_know))
    return said


def _steps(found: Finding) -> str:
    return "; then ".join(f"{fix['repair']}; {fix['why']}" for fix in found.fix)


def _choices(context: DetectorContext, suffix: str | None, findings: Sequence[Finding]) -> Iterator[Choice]:
    groups = [
        tuple(one.server for one in alike.replicas) for alike in comparable(context.topology) if alike.suffix == suffix
    ]
    if len(groups) > 1:
        for kept in groups:
            if all(context.has_no_entries(name, suffix) for name in kept):
                continue  # there is nothing to keep
            filled = tuple(name for group in groups if group is not kept for name in group)
            yield Choice(kept, filled, {name: _only_there(context, suffix, kept, name) for name in filled})
        return
    for one in findings:
        users = [
            each.server for each in context.topology.replicas if (each.suffix, each.origin) == (suffix, one.origin)
        ]
        for name in users:
            # Third servers hold what came to them first, of the one or of the other.
            others = [
                each.server for each in context.topology.replicas if each.suffix == suffix and each.server != name
            ]
            lost = {other: _only_there(context, suffix, (name,), other) for other in others}
            lost = {
                other: found
                for other, found in lost.items()
                if other in users
                or found is None
                or found.total
                or _cannot_be_sent(context, suffix, name, other, one.origin)
            }
            yield Choice((name,), tuple(lost), lost, tuple(other for other in users if other != name))


def _cannot_be_sent(context: DetectorContext, suffix: str | None, name: str, other: str, origin: str | None) -> bool:
    """True if the log of a server lacks the change of the origin that another one has last: no session to it begins there.

    b and c both make changes as 2; the last of a is one of c    b has no record of it, and sends nothing to a
    """
    kept, third = context.replica(name, suffix), context.replica(other, suffix)
    top = third.top(origin) if third and origin else ""
    return bool(top) and (kept is None or kept.log is None or not context.case.log(kept.log).holds(top))


def _only_there(context: DetectorContext, suffix: str | None, kept: Sequence[str], lost: str) -> Differing | None:
    """In what a server that would be filled differs from one that would stay, but for what its links leave out."""
    there = _states(context, suffix, lost)
    here = next((found for name in kept if (found := _states(context, suffix, name))), [])
    if not (there and here):
        return None
    without = context.topology.proving.not_compared
    for contents in context.verdicts.contents:
        if contents.suffix == suffix:
            without |= contents.excluded.get(lost, frozenset())
    if sum(part["rows"] for part in (*there, *here)) <= SUMMED_HERE:
        return differing(there, here, limit=_READ, without=without)
    from workbench.engine.session import spark_session

    return differing(there, here, limit=_READ, spark=spark_session(), without=without)


def _states(context: DetectorContext, suffix: str | None, server: str) -> list[Part]:
    """The parts with the entries of a server in the last snapshot."""
    return [
        part
        for one in context.inputs
        if one.server == server and one.suffix in (None, suffix)
        for part in context.case.parts("entry_states", one)
    ]


def _fillings(context: DetectorContext, suffix: str | None, choice: Choice) -> str:
    """Who is filled from whom, in an order in which it can be done; where no link leads, a new one comes first.

    Who keeps its data and is fed by servers alone that are filled, is filled in the end: their logs begin anew.
    """
    feeding = {
        (link.supplier, link.consumer)
        for link in context.topology.links
        if link.suffix == suffix and link.consumer and link.enabled is not False
    }
    keep_log = {one.server for one in context.topology.replicas if one.suffix == suffix and one.keeps_log}
    reached, left, said, giving = [*choice.kept], [*choice.filled], dict[str, list[str]](), set[str]()

    def fill(source: str, server: str, note: str = "", then: str = "") -> None:
        said.setdefault(source + note, []).append(then + server)
        giving.add(source)
        reached.append(server)

    listed = telling(context)
    while left:
        known = {*reached} & keep_log <= listed  # else a link may lead from there to any of them
        givers = reached if known else choice.kept
        ways = [(by, to) for by in givers for to in left if by in keep_log and (by, to) in feeding]
        first = next((by for by in choice.kept if by in keep_log), choice.kept[0])
        by, to = ways[0] if ways else (first, left[0])
        new = (
            " (over a new agreement: no link leads there)"
            if by in keep_log
            else " (which has to be made a supplier first)"
        )
        fill(by, to, new if known and not ways else "")
        left.remove(to)
    for server in choice.kept:
        sources = sorted(by for by, to in feeding if to == server)
        if sources and server not in giving and {*sources} <= {*choice.filled}:
            fill(sources[0], server, then="then ")
    return ", ".join(f"{', '.join(servers)} from {source}" for source, servers in said.items())


def _told(choice: Choice, refill: str, fillings: str, to_know: str) -> str:
    losses = []
    for name, lost in choice.lost.items():
        if lost is None:
            losses.append(f"what only {name} has is not known: {to_know}")
        elif not lost.only_one + lost.unlike:
            losses.append(f"{name} has nothing that {choice.kept[0]} does not have")
        else:
            goes = lost.only_one + lost.unlike
            some = [row["target"] for row in lost.first if row["one"]][:_NAMED]
            names = f" ({', '.join(some)}{', …' if goes > len(some) else ''})" if some else ""
            what = []
            if lost.only_one:
                only = counted(lost.only_one, "entry", "entries")
                what.append(f"{only} that {choice.kept[0]} does not have, or has as another one")
            what += [f"its values of {counted(lost.unlike, 'entry', 'entries')}"] if lost.unlike else []
            losses.append(f"{name} loses {' and '.join(what)}{names}")
    alike, first = ", ".join(choice.alike), ""
    if alike:
        # What they go on to write reaches others, too, which then have to be filled as well.
        first = (
            f"let no client write on {alike} from now on (if a client wrote there since these files were collected, collect and "
            f"plan anew), give {alike} another origin first, and "
        )
    # What such a server makes while it is filled may reach others before, and its new log does not begin there.
    each = "each" if len(choice.making) > 1 else "it"
    still = f"; let no client write on {', '.join(choice.making)} until {each} is filled" if choice.making else ""
    return f"to keep the data of {', '.join(choice.kept)}, {first}{refill} {fillings}: {'; '.join(losses)}{still}"
