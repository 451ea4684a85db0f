"""Silent nodes whose logs others wait for: they have a log file that no node which answers has and goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from workbench.replication.tier.rules.tiers import Lsn

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


class WaitedFor(NamedTuple):
    """The nodes that wait for a silent one, and the first log file that they need of it.

    sure  False: of which source one of them follows nothing or two things tell, so that it may need that file
    """

    nodes: list[str]
    file: int
    sure: bool = True

    @property
    def need(self) -> str:
        """The verb of a clause that says so."""
        return "may need" if not self.sure else "needs" if len(self.nodes) == 1 else "need"


def waited_for(context: DetectorContext) -> Mapping[str, WaitedFor]:
    """Silent node -> who waits for its log."""
    tiers = context.verdicts.tiers
    found: dict[str, WaitedFor] = {}
    if tiers is None:
        return found
    for name in (name for names in tiers.members.values() for name in names):
        last = tiers.last(name) if tiers.lacks_file(name) == "now" else None
        if last is None:
            continue
        for silent in tiers.coming_back(name):
            before = found.get(silent, WaitedFor([], last[0]))
            sure = before.sure and tiers.gap(name) is not None
            found[silent] = WaitedFor([*before.nodes, name], min(before.file, last[0]), sure)
    for name, source in _perhaps_below(tiers):
        last = tiers.last(name)
        for silent in _silent_holders(tiers, source, last) if last else ():
            before = found.get(silent, WaitedFor([], last[0] if last else 0))
            if last and name not in before.nodes:
                found[silent] = WaitedFor([*before.nodes, name], min(before.file, last[0]), False)
    return found


def _perhaps_below(tiers: Tiers) -> Iterator[tuple[str, str]]:
    """Each node that may follow a source below which it is not listed, and that source."""
    yield from ((name, doubt.source) for name, doubt in sorted(tiers.doubts.items()))
    yield from ((name, source) for name in tiers.of_no_source for source in tiers.sources)


def _silent_holders(tiers: Tiers, source: str, needed: Lsn) -> list[str]:
    """The silent nodes of a tree that have the file of a place, if no node of it that answers has it and goes on."""
    having = [one for one in tiers.members[source] if tiers.has(one, needed)]
    if any(tiers.there(one) for one in having):
        return []
    return [one for one in having if tiers.may_reach_head(one) and not tiers.retired(one)]
