"""What a system of tiers gives to the diagnosis: the form of its log, and what the settings of its nodes mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.physical_log import Form

NodeSettings = Mapping[str, Mapping[str, list[str | None]]]
"""Kind of setting -> name -> what it is set to, in the order of the file."""


@dataclass(frozen=True)
class Settings:
    """What the settings of a fleet mean; of what no node tells, the defaults of the program.

    rules         how the registry answers
    registries    node -> the database that it says holds the registry; a node that names none takes its source for it
    stale_after   seconds without a report after which a node is taken for hung
    file_size     how large a log file may be; None: not told
    sources       node -> its source database, and the hosts of it that it names
    delays        node -> seconds that it waits on purpose before it applies
    fanout_told   whether any node tells the fanout; else it is the default of the program
    versions      version of the program -> the nodes that show by their settings that they run it
    keepers       databases whose nodes say that they hold a registry themselves
    follow_none   nodes whose settings name no source database
    """

    rules: Rules
    registries: Mapping[str, str] = field(default_factory=dict)
    stale_after: float = 60.0
    file_size: int | None = None
    sources: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    delays: Mapping[str, float] = field(default_factory=dict)
    fanout_told: bool = True
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keepers: frozenset[str] = frozenset()
    follow_none: frozenset[str] = frozenset()

    def outside(self, name: str) -> bool:
        """Whether the settings say that a node follows no source: it is of the registry's database, or names none."""
        return name in self.follow_none or name.partition("@")[0] in {*self.registries.values(), *self.keepers}

    def tells_fanout(self, source_database: str) -> bool:
        """Whether the fanout below a source was collected, and is not the default of the program."""
        return self.fanout_told or source_database in self.rules.fanouts

    def local(self, source_database: str) -> bool:
        """Whether a source keeps the registry's tables itself: only then some versions keep log files for others.

        What its own nodes say counts; where they name no registry, what anybody does.
        """
        own = {told for name, told in self.registries.items() if name.partition("@")[0] == source_database}
        return (own or {*self.registries.values()}) <= {source_database}


@dataclass(frozen=True)
class Tiering:
    """What holds for a system whose nodes pull a physical log from each other.

    form    how its log is written
    told    settings by node -> what they mean
    """

    form: Form
    told: Callable[[Mapping[str, NodeSettings]], Settings]
