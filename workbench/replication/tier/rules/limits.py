"""What versions of a registry of tiers differ in, and the version that the design document describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """What a registry does, by version.

    fanout          how many nodes may pull from one; `fanouts` are those of single source databases
    most_offered    rows of an answer
    most_pending    this many nodes may be waiting for a source; None: no limit
    full_at_limit   refuses as soon as that many wait; else only when more do
    fresh_s         a node below tier 0 must have reported itself less than so many seconds ago; None: it need not
    checks_files    where the registry keeps the first file: nodes without the caller's file are not offered, nor what is below
    least_count     what a node without children counts
    evenest_first   of one tier, those with fewer children come first: always, or only where the registry keeps the first file
    random_ties     what is equal then comes in random order; else by name
    second_pass     where nothing is found, it is looked for once more, without regard to the fanout and to the age
    unfit           states, spelled exactly so, in which a node is not offered; what is below it may be
    holding         the state, spelled exactly so, in which a node keeps others from deleting files that it needs; None: none does
    holds_by_base   who needs files is followed by database alone, not by node
    warns_of        a node warns of its late `children`, or of `all` rows that are late
    keepalive_s     how often a node reports itself
    register_s      how often it asks anew
    """

    name: str
    fanout: int = 8
    fanouts: Mapping[str, int] = field(default_factory=dict)
    most_offered: int = 6
    most_pending: int | None = None
    full_at_limit: bool = False
    fresh_s: float | None = None
    checks_files: bool = False
    least_count: int = 0
    evenest_first: bool = True
    random_ties: bool = False
    second_pass: bool = False
    unfit: frozenset[str] = frozenset({"Pending", "Inactive"})
    holding: str | None = "Active"
    holds_by_base: bool = False
    warns_of: str = "all"
    keepalive_s: int = 10
    register_s: int = 3600

    def fanout_of(self, source_database: str) -> int:
        """The fanout below that source."""
        return self.fanouts.get(source_database, self.fanout)


SEED = Rules("seed", most_pending=10, full_at_limit=True)
"""The document: the fanout is a maximum, all states are fit but two, and every node that is Active keeps the files it needs."""
