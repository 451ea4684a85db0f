"""Which databases are the sources of nodes that pull a physical log, and which of them each node follows, by one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from workbench.replication.tier.rules.tiers import Lsn
from workbench.topology.tier_snapshot import WAITING, TieredSnapshot


def source_databases(seen: TieredSnapshot, told: Mapping[str, str], before: Collection[str] = ()) -> list[str]:
    """The databases at the top: those that others follow, as they are told to or as the registry says, and that follow none.

    Where nothing tells that, the one whose log goes furthest is taken for the source; of several one that was a source before.
    """
    return known_sources(seen, told) or _furthest(seen, before)


def known_sources(seen: TieredSnapshot, told: Mapping[str, str]) -> list[str]:
    """The same as far as anything tells who follows whom."""
    following = {pull.database for pull in (*seen.pulls, *seen.awaited)} | {name.partition("@")[0] for name in told}
    # A node that lost its source has no row of its own while it asks for another one, and those below it still have theirs.
    states = {name: (row["state"] or "").lower() in WAITING for name, row in seen.nodes.items()}
    waiting = {name.partition("@")[0] for name, waits in states.items() if waits}
    waiting -= {name.partition("@")[0] for name, waits in states.items() if not waits}
    known = {name.partition("@")[0] for name in seen.nodes}
    pulled = {pull.source_database for pull in (*seen.pulls, *seen.awaited)}
    followed = (pulled & known if known else pulled) - waiting | set(told.values())
    # Where all follow each other in a circle, what they are told to follow is the source.
    return sorted(followed - following) or sorted(set(told.values())) or _left_over(seen, following, waiting, pulled)


def _left_over(
    seen: TieredSnapshot, following: Collection[str], waiting: Collection[str], pulled: Collection[str]
) -> list[str]:
    """Where the whole registry was collected: the one database that is left where all others wait for a source or pull from one;
    where none is left, those that others pull from, though their own rows say that they wait.
    """
    known = {name.partition("@")[0] for name in seen.nodes}
    if not seen.lists_pulls or seen.lost_pulls:
        return []
    left = known - {*following, *waiting}
    return sorted(left) if len(left) == 1 else [] if left else sorted({*pulled} - {*following})


def _furthest(seen: TieredSnapshot, before: Collection[str]) -> list[str]:
    """Where nothing tells who follows whom: the database that is furthest. Of several, as in a fleet that is up to date, the one
    whose log was read the most, then the one with the shortest name: copies are named after what they copy.
    """
    pulling = {pull.database for pull in seen.pulls}
    far: dict[str, tuple[Lsn, int]] = {}
    for name in [one for one in seen.names if one.partition("@")[0] not in pulling] or seen.names:
        database = name.partition("@")[0]
        read = sum(one.accepted for one in seen.logs.get(name, ()))
        at, most = far.get(database, ((0, 0), 0))
        far[database] = max(at, seen.last(name) or (0, 0)), max(most, read)
    order = sorted(far, key=lambda one: (one not in before, len(one), one))
    return [max(order, key=far.__getitem__)] if far else []


def furthest_node(seen: TieredSnapshot, names: Iterable[str]) -> str:
    """Of some nodes the one that is furthest; of several the one whose log was read the most, then the first by name."""

    def far(name: str) -> tuple[Lsn, int]:
        return seen.last(name) or (0, 0), sum(one.accepted for one in seen.logs.get(name, ()))

    return max(sorted(names), key=far)


def followed_source(
    seen: TieredSnapshot,
    sources: Sequence[str],
    told: Mapping[str, str],
    outside: Callable[[str], bool],
    before: Collection[str] = (),
) -> tuple[dict[str, str], frozenset[str]]:
    """Each node that takes part -> the source database at the top of its tree; and those of them that are there by a guess.

    A node that answered, and of which no table and no setting says anything, follows what the other nodes of its database
    follow. Without such nodes it is taken for one of the only source, by a guess, unless its settings say that it follows none.
    So is one of a database that was a source before and pulls from none.
    """
    found = _placed(seen, sources, told)
    kin: dict[str, set[str]] = {}
    for name, source in found.items():
        kin.setdefault(name.partition("@")[0], set()).add(source)
    left = [name for name in seen.names if name not in found and (seen.answered(name) or name in seen.files)]
    found |= {name: min(of) for name in left if len(of := kin.get(name.partition("@")[0], set())) == 1}
    only = len(sources) == 1 and bool(known_sources(seen, told))
    left = [name for name in left if name not in found and name.partition("@")[0] not in seen.registries]
    guessed = [name for name in left if only and not outside(name)]
    found |= dict.fromkeys(guessed, *sources[:1])
    linked = {*told, *(pull.name for pull in (*seen.pulls, *seen.awaited))}
    base = {name: name.partition("@")[0] for name in found}
    guessed += [name for name, own in base.items() if only and own in {*before} - {*sources} and name not in linked]
    return dict(sorted(found.items())), frozenset(guessed)


def _placed(seen: TieredSnapshot, sources: Sequence[str], told: Mapping[str, str]) -> dict[str, str]:
    """Each node of which a table, a setting or a log says that it takes part -> the source database at the top of its tree.

    That is the one that it hangs on, over others or not, else the one that it is told to follow, else the only one there is. A
    node of the database that holds the registry takes no part. Where nothing tells who follows whom, a node that stands where
    the one that is taken for the source stands has the same log.
    """
    level = None if known_sources(seen, told) else max(filter(None, map(seen.last, seen.names)), default=None)
    above: dict[str, set[str]] = {}
    for pull in (*seen.pulls, *seen.awaited):
        above.setdefault(pull.name, set()).add(pull.source)
    linked = {*above, *(name for names in above.values() for name in names)}
    found: dict[str, str] = {}
    hanging = {name: top for name in above if (top := _hangs_on(name, above, sources))}
    for name in seen.names:
        own = name.partition("@")[0]
        takes_part = name in seen.nodes or name in linked or name in told or own in sources or name in seen.logs
        takes_part |= level is not None and seen.last(name) == level
        source = own if own in sources else _hangs_on(name, above, sources) or told.get(name)
        if source not in sources:
            of_kin = {found_ for other, found_ in hanging.items() if other.partition("@")[0] == own}
            source = next(iter(of_kin)) if len(of_kin) == 1 else sources[0] if len(sources) == 1 else None
        if takes_part and source is not None:
            found[name] = source
    return found


def _hangs_on(name: str, above: Mapping[str, set[str]], sources: Sequence[str]) -> str | None:
    """The source database above a node; the nodes may be in a circle."""
    waiting, been = [name], {name}
    while waiting:
        for other in sorted(above.get(waiting.pop(), ())):
            if other.partition("@")[0] in sources:
                return other.partition("@")[0]
            if other not in been:
                been.add(other)
                waiting.append(other)
    return None
