"""The verdicts of a diagnosis as rows, and what was found out on the way to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.contents import Contents
from workbench.engine.position_index import PositionIndex
from workbench.rules.verdicts import Reset

if TYPE_CHECKING:
    from workbench.diagnosis.dropped_changes import Dropping
    from workbench.diagnosis.kept_after_cleaning import Stretch
    from workbench.engine.state_fates import Fate
    from workbench.replication.entry.diagnosis.earlier_states import GoneChange
    from workbench.replication.stream.diagnosis.log_comparison import Streams
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


LIMIT = 10_000
"""Rows of the longest list of changes."""


@dataclass
class Verdicts:
    """Rows in the shape of the contract, each list in its order; a list that is longer than the limit is cut.

    errant   transactions that one log alone has, and of which nothing tells whether the others should have them
    lost     changes that servers wait for, and that went with the old data of the `server` that made them
    made_twice  entries that servers show as made at different times, with these times
    totals   list -> how many rows it has in all
    resets   (server, suffix) -> what replaced the data or the log of that server
    known    of each suffix the sources, which remember what the digests told of them; of several generations the largest last
    contents what the collected entries prove, of each group of servers that may be compared
    own_near (server, suffix, origin) of missing changes of its own -> what it has from the first of them on, what of it no other
             server has, and the last that it has before
    marks    (server, suffix) -> by origin, up to where a log made anew knows nothing
    reach    (server, suffix) -> those marks behind which nothing can have been trimmed since
    kept     (server, suffix, origin) of origins that were cleaned away from the vector of the server -> the stretches that it has
    remembers  (server, suffix) -> the origins that the server cleaned and drops until it is restarted -> since when
    written_over  rows of missing changes that no log holds, and behind which values of their entries were replaced: perhaps what
             they wrote, so that they count as unknown
    cut_short  (server, suffix, position) of missing changes that the log of a server has without an attribute
    unsure   (suffix, position) of lost changes of which nothing tells whether anything of them is lacking -> why
    gone     changes of entries that earlier files of servers show, and no present one any more
    fates    suffix -> changes of entries that not every server has, of servers that keep no log
    streams  the logs held against each other, where servers replicate a stream of transactions
    tiers    the trees, where nodes pull a physical log from each other
    """

    missing: list[dict[str, Any]] = field(default_factory=list)
    stranded: list[dict[str, Any]] = field(default_factory=list)
    pending: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[dict[str, Any]] = field(default_factory=list)
    errant: list[dict[str, Any]] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)
    written_over: list[dict[str, Any]] = field(default_factory=list)
    made_twice: list[dict[str, Any]] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    resets: dict[tuple[str, str | None], list[Reset]] = field(default_factory=dict)
    known: dict[str | None, list[PositionIndex]] = field(default_factory=dict)
    contents: list[Contents] = field(default_factory=list)
    marks: dict[tuple[str, str | None], dict[str, str]] = field(default_factory=dict)
    reach: dict[tuple[str, str | None], dict[str, str]] = field(default_factory=dict)
    kept: dict[tuple[str, str | None, str], tuple[Stretch, ...]] = field(default_factory=dict)
    remembers: dict[tuple[str, str | None], dict[str, Dropping]] = field(default_factory=dict)
    cut_short: set[tuple[str, str | None, str]] = field(default_factory=set)
    unsure: dict[tuple[str | None, str], str] = field(default_factory=dict)
    gone: list[GoneChange] = field(default_factory=list)
    fates: dict[str | None, list[Fate]] = field(default_factory=dict)
    streams: Streams | None = None
    tiers: Tiers | None = None
    own_near: dict[tuple[str, str | None, str], tuple[tuple[str, ...], frozenset[str], str | None]] = field(
        default_factory=dict
    )

    def cut(self) -> dict[str, int]:
        """The lists that do not hold all their rows, with how many there are."""
        return {name: total for name, total in self.totals.items() if total > len(getattr(self, name))}
