"""Silent nodes whose logs others wait for: they have a log file that no node which answers has and goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


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
    return found
