"""What a registry of tiers is asked for besides a source: who keeps log files from being deleted, and who is late."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.tiers import Lsn, Node, Registry


@dataclass(frozen=True)
class LogHold:
    """Which file pins the deletion of logs, and who needs it.

    file     the lowest file that anybody counted needs; None: nobody is counted
    holders  the nodes that are in that file, by name
    counted  node -> its file, of all that are counted
    why      what is counted, or why nothing is
    """

    file: int | None
    holders: tuple[str, ...]
    counted: Mapping[str, int]
    why: str

    @property
    def kept_from(self) -> int | None:
        """The first file that is not deleted; None: nothing is held. A row that tells file 0 is not taken for a need."""
        return self.file or None

    def without(self, names: Collection[str]) -> tuple[int | None, tuple[str, ...]]:
        """The first file that is kept once these nodes hold nothing, and who is in it then; None: no other node counts."""
        rest = {name: file for name, file in self.counted.items() if name not in names and file}
        lowest = min(rest.values(), default=None)
        return lowest, tuple(sorted(name for name, file in rest.items() if file == lowest))


def log_holder(
    rules: Rules,
    registry: Registry,
    source_database: str,
    source_hosts: Collection[str],
    table_is_local: bool = True,
) -> LogHold:
    """Who holds back the deletion of log files on these hosts, by the rule of that version.

    The hosts' own rows count in any state, those of the nodes below only in the one state that the version asks for, spelled
    exactly so. How old a keepalive is does not matter: a dead node holds for ever.
    """
    if rules.holding is None:
        return LogHold(None, (), {}, "this version deletes logs without regard to who needs them")
    if rules.holds_by_base and not table_is_local:
        return LogHold(None, (), {}, "the tables are in another database: where they are not, nothing is held")
    own = [one for one in registry.nodes if one.database == source_database and one.host in source_hosts]
    counted = {one.name: one.file for one in own if one.file is not None}
    counted |= {one.name: one.file for one in _below(rules, registry, own) if one.file}
    why = f"the source's own rows, and those below it that are {rules.holding}"
    if not counted:
        return LogHold(None, (), {}, why)
    lowest = min(counted.values())
    return LogHold(lowest, tuple(sorted(name for name, file in counted.items() if file == lowest)), counted, why)


def _below(rules: Rules, registry: Registry, own: list[Node]) -> list[Node]:
    """The nodes that are followed: from one counted to the next, so that one in another state hides what is only below it."""
    rows: dict[str, list[Node]] = {}
    for one in registry.nodes:
        if one.state == rules.holding and one.file:
            rows.setdefault(one.database if rules.holds_by_base else one.name, []).append(one)
    pulling: dict[str, set[str]] = {}
    for pull in registry.pulls:
        child, parent = (pull.database, pull.source_database) if rules.holds_by_base else (pull.name, pull.source)
        pulling.setdefault(parent, set()).add(child)
    waiting = sorted({one.database if rules.holds_by_base else one.name for one in own})
    seen: set[str] = set()
    found: list[Node] = []
    for parent in waiting:  # grows
        for child in sorted(pulling.get(parent, set()) - seen):
            seen.add(child)
            if child in rows:
                found += rows[child]
                waiting.append(child)
    return found


def hung(rules: Rules, registry: Registry, source_database: str, threshold_s: float = 60) -> tuple[str, ...]:
    """The nodes that a source warns of as stuck or unresponsive, by name; a row without a keepalive is never among them.

    By the newer rule only those that pull from the source itself; by the older one all rows, whoever's they are, its own too.
    """
    late = {one.name for one in registry.nodes if one.age is not None and one.age >= threshold_s}
    if rules.warns_of == "children":
        late &= {pull.name for pull in registry.pulls if pull.source_database == source_database}
    return tuple(sorted(late))


@dataclass(frozen=True)
class SelfCheck:
    """Whether a node says of itself that it has been inactive, and whether it really is behind its source."""

    says_inactive: bool
    behind: bool

    @property
    def false_alarm(self) -> bool:
        """It says so and is not behind."""
        return self.says_inactive and not self.behind


def self_check(mine: Lsn, of_source: Lsn, idle_s: float, threshold_s: float = 60) -> SelfCheck:
    """What a node that has applied nothing for so long says of itself.

    It compares file and place each for itself: ahead by a file, and lower in it, it takes itself to be behind.
    """
    lower = mine[0] < of_source[0] or mine[1] < of_source[1]
    return SelfCheck(idle_s > threshold_s and lower, mine < of_source)
