"""The shape of the trees: circles, full and deep nodes, reverse connections, and who holds the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.replication.tier.diagnosis.sole_suppliers import (
    left_where_they_hang,
    offered_behind,
    registers_in_vain,
)
from workbench.replication.tier.rules.conditions import FROZEN, GHOST, GONE, HUNG, RETIRED, STOPPED
from workbench.replication.tier.rules.tiers import CIRCLE, Pull
from workbench.systems.comdb2.detectors.nodes import FORCE, RESET
from workbench.systems.comdb2.detectors.shown import (
    by_default,
    evidence_of,
    is_files_behind,
    not_before,
    place_text,
    some,
    tiers_of,
)

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers
    from workbench.replication.tier.rules.log_retention import LogHold
    from workbench.topology.tier_snapshot import TieredSnapshot


def cycles(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that pull from each other in a circle: a finding for each circle."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        left = [name for name in tiers.members[source] if (place := tiers.place(name)) and place.problem == CIRCLE]
        while left:
            circle = _circle(tiers, left[0])
            left = [name for name in left if name not in circle]
            yield _cycle(tiers, source, circle)


def _cycle(tiers: Tiers, source: str, circle: list[str]) -> Finding:
    known = any(followed == source for followed, _ in tiers.told.sources.values())
    at_top = [name for name in circle if name in tiers.roots(source)]
    own = at_top if known else []
    gone_ones = [name for name in circle if tiers.states[name] in (*GONE, HUNG)]
    also_fed = [name for name in circle if (place := tiers.place(name)) and place.tier is not None]
    living = [name for name in circle if tiers.there(name)] or circle
    name = next(iter(own or gone_ones or [one for one in also_fed if _has_another_source(tiers, one)] or living))
    registering: list[str] = []
    row = f"delete the row of {name} from comdb2_physrep_connections"
    if len(circle) == 1:
        what = f"{name} is said to pull from itself"
    else:
        what = f"{some(circle, 6)} pull from each other in a circle"
    if own:
        what += f": {name} is of the source {source}, and pulls from no node below it"
        do, why = row, "a node of the source has no row there: whoever asks the registry is led round by it"
    elif at_top:
        what += f": {source} is taken for the source, and nothing tells so"
        do, why = "collect the tunables of all nodes", "whom each is told to follow shows which database is the source"
    elif also_fed:
        what += ": one of them pulls from outside, too"
        registering = [name]
        do, why = (
            f"{row}, and let it register anew ({FORCE})",
            "one source for each node is enough, and none of the circle",
        )
    else:
        what += f": no change of {source} reaches {'them' if len(circle) > 1 else 'it'} over it"
        registering = [name]
        do, why = f"{row}, and let it register anew ({FORCE})", "every node of a circle waits for the others"
        if name in gone_ones:
            do, why = RESET.format(*name.split("@", 1)), "it is gone, and its row is what closes the circle"
            registering = [one for one in circle if one not in gone_ones]
            do += f"; then let {registering[0]} register anew ({FORCE})" if registering else ""
    cautions = [
        not_before(tiers, registering[0]) if registering else None,
        "until then the registry's own query goes round in the circle" if also_fed else None,
    ]
    return Finding(
        "TOPOLOGY_CYCLE",
        "error",
        what,
        server=name,
        origin=source,
        evidence=first_few(evidence_of(tiers, one) for one in circle),
        fix=(step(do, why, "; ".join(filter(None, cautions)) or None),),
    )


def _has_another_source(tiers: Tiers, name: str) -> bool:
    place = tiers.place(name)
    return bool(place and len(place.parents) > 1)


def _circle(tiers: Tiers, name: str) -> list[str]:
    """The nodes of the circle that a node is in, by name, those of which the registry has no row too."""
    parents: dict[str, set[str]] = {}
    for pull in tiers.seen.pulls:
        parents.setdefault(pull.name, set()).add(pull.source)

    def above(one: str) -> set[str]:
        found: set[str] = set()
        waiting = [one]
        while waiting:
            new = parents.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    return sorted(other for other in above(name) if name in above(other)) or [name]


_SILENT = {True: "does not report itself", False: "do not report themselves"}


def full_nodes(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that more pull from than the fanout says."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        for name in tiers.members[source]:
            place = tiers.place(name)
            fanout = tiers.fanout(name)
            if place is None or len(place.children) <= fanout:
                continue
            dead = [child for child in place.children if tiers.states.get(child) in (*GONE, HUNG)]
            spare = [one for one in tiers.roots(source) if one != name and not (tiers.place(one) or place).children]
            told = f"; of these {some(dead)} {_SILENT[len(dead) == 1]}" if dead else ""
            unused = f"; {some(spare)} of the source serve{'s' if len(spare) == 1 else ''} nobody" if spare else ""
            unused += _without_their_file(tiers, spare, place.children)
            default = "" if tiers.told.tells_fanout(source) else "the default, as it was not collected; "
            soft = (
                "the registry looks a second time without regard to it"
                if tiers.told.rules.second_pass
                else "it is a maximum"
            )
            yield Finding(
                "FANOUT_EXCEEDED",
                "warning",
                f"{len(place.children)} nodes pull from {name}, and the fanout is {fanout} ({default}{soft}){told}{unused}",
                server=name,
                origin=source,
                evidence=first_few(evidence_of(tiers, child) for child in place.children),
                assumes=by_default(tiers, name),
                fix=(
                    _moved_away(context, tiers, [child for child in place.children if child not in dead] or dead)
                    if len(place.children) - len(dead) > fanout
                    else step(f"if gone for good, reset {some(dead)}: the others fit the fanout", _COSTS, _LEFT_TO_IT),
                ),
            )


_COSTS = "each node that pulls costs its source a query that never ends"
_LEFT_TO_IT = "what it is offered is left to the registry: the what-if panel of 33_physical_tiers shows it"


def _moved_away(context: DetectorContext, tiers: Tiers, children: list[str]) -> dict[str, str | None]:
    """Which of the nodes that pull from one lets it serve fewer: none that would be offered no other node with its file."""
    left = context.once(left_where_they_hang)
    free = [child for child in children if child not in left]
    if not free:
        file = max(left[child].until for child in children)
        return step(
            f"leave {some(children)} where {'it hangs' if len(children) == 1 else 'they hang'} until past log file {file}, as "
            "LOG_GAP says; then let one of them register anew",
            _COSTS,
            "before that the registry offers them no node that is sure to have their file",
        )
    able = [child for child in free if not registers_in_vain(tiers, child)] or free
    moved = min(able, key=lambda child: (child in tiers.last_holders, bool(offered_behind(tiers, child))))
    caution = f"{not_before(tiers, moved)}; {_LEFT_TO_IT}" if moved in tiers.last_holders else _LEFT_TO_IT
    return step(f"let {moved} register anew ({FORCE}) once another node has room", _COSTS, caution)


def _without_their_file(tiers: Tiers, spare: list[str], children: Sequence[str]) -> str:
    """Which of the nodes that pull from one need a log file that those of the source that serve nobody do not have."""
    needing = [
        child
        for child in children
        if tiers.needs(child) and spare and not any(tiers.has(one, tiers.last(child) or (0, 0)) for one in spare)
    ]
    needing = [child for child in needing if all(tiers.seen.knows_files(one) for one in spare)]
    return (
        f", and lack{'s' if len(spare) == 1 else ''} the log file that {some(needing)} need"
        + ("s" if len(needing) == 1 else "")
        if needing
        else ""
    )


def too_deep(context: DetectorContext) -> Iterator[Finding]:
    """Trees with more tiers than their nodes need: each one adds its delay, and hides what is below it when it fails."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        tiered = {name: place.tier for name, place in tiers.trees[source].places.items() if place.tier is not None}
        roots, fanout = len(tiers.roots(source)), max(1, tiers.told.rules.fanout_of(source))
        followers = len({*tiers.members[source]} - tiers.guessed) - roots
        if not roots:
            continue
        needed, room = 0, 0
        while room < followers:
            needed += 1
            room += roots * fanout**needed
        deep = sorted(name for name, tier in tiered.items() if tier > needed)
        if deep and followers:
            depth = max(tiered.values())
            moved = next((name for name in deep if tiers.gap(name) is None and name not in tiers.last_holders), deep[0])
            yield Finding(
                "TIER_TOO_DEEP",
                "warning" if depth > needed + 1 else "info",
                f"the tree of {source} has {depth} tiers below the source; {needed} would do for its "
                f"{followers} nodes with the fanout "
                f"{fanout}{'' if tiers.told.tells_fanout(source) else ', the default, as it was not collected'}: {some(deep)}",
                origin=source,
                assumes=by_default(tiers, deep[0]),
                evidence=first_few(evidence_of(tiers, name) for name in deep),
                fix=(
                    step(
                        f"let {moved} register anew ({FORCE}) when nodes nearer to the source have room",
                        "what delays or stops a node delays and stops all below it",
                        not_before(tiers, moved),
                    ),
                ),
            )


FEW = 10
"""Of so many nodes that wait it is worked out what the registry would answer them: it is the same for all."""


def pending_limit(context: DetectorContext) -> Iterator[Finding]:
    """So many nodes wait for a source that the registry refuses all that ask."""
    tiers = tiers_of(context)
    most = tiers.told.rules.most_pending
    waiting = sorted(name for name, row in tiers.seen.nodes.items() if row["state"] == "Pending")
    if most is None or len(waiting) < most + (not tiers.told.rules.full_at_limit):
        return
    own = [offer for name in waiting[:FEW] if (offer := tiers.offer(name)) is not None]
    nobody = "the registry answers nobody, and does not even record who asks"
    if own and not any(offer.refused for offer in own):
        nobody = (
            "the registry answers no other node, and does not even record that it asks; one that is Pending sets its own row "
            "to Inactive before it asks anew, and is answered"
        )
    yield Finding(
        "PENDING_LIMIT",
        "error",
        f"{len(waiting)} nodes are Pending and the limit is {most}: {nobody}",
        evidence=first_few(evidence_of(tiers, name) for name in waiting),
        fix=(
            step(
                "raise physrep_max_pending_replicants, or reset the rows of nodes that are gone",
                "a row stays Pending for ever when its node died before it found a source",
                RESET.format("DATABASE", "HOST"),
            ),
        ),
    )


def reverse_links(context: DetectorContext) -> Iterator[Finding]:
    """Rows for connections that the source makes to a node: without the other half nobody pulls."""
    tiers = tiers_of(context)
    pulling: dict[str, set[str]] = {}
    for pull in tiers.seen.pulls:
        pulling.setdefault(pull.name, set()).add(pull.source)
    known = _known_nodes(tiers)
    meant: dict[str, set[str]] = {}
    for row in tiers.seen.awaited:
        for node in _named(known, row.database, row.host):
            meant.setdefault(node, set()).update(_named(known, row.source_database, row.source_host))
    for row in tiers.seen.awaited:
        named = [node for node in _named(known, row.database, row.host) if node in tiers.seen.nodes]
        of_group = _end(row.database, row.host) not in named
        end = _end(row.source_database, row.source_host)
        # A name that is no host may be that of a tier: each of its nodes waits for itself, but those that were taken out.
        alone = [node for node in named if node not in pulling and tiers.states.get(node) != RETIRED]
        if not named:
            why = f"{_end(row.database, row.host)} is to be connected to, and no such node is in the registry"
            yield _reverse("warning", row, [], why)
        elif all(tiers.source_of(node) == node.partition("@")[0] for node in named):
            yield _reverse(
                "warning",
                row,
                named,
                f"{some(named)} is to be connected to: a node of the source itself waits for nobody",
            )
        elif not _named(known, row.source_database, row.source_host):
            yield _reverse("error", row, named, f"{row.name} waits for {end}, which is no node that is known")
        elif of_group and set(tiers.told.versions) == {"2023"}:
            why = f"{row.host} is no host of a node of {row.database}, and this version knows no names of tiers and clusters"
            yield _reverse("warning", row, named, f"{why}: nobody waits for a connection from {end}")
        elif not all(map(tiers.seen.knows_pulls_of, named)):
            continue
        elif alone:
            verb = "waits" if len(alone) == 1 else "wait"
            if_named = f", where {row.host} names its tier or cluster," if of_group else ""
            why = f"{some(alone)} {verb}{if_named} for a connection from {end}, and nobody has made one"
            had = [node for node in alone if tiers.before and _pulled(tiers.before, node, row)]
            if had and tiers.before:
                why += f"; in snapshot {tiers.before.label} {some(had)} pulled from {row.source_database}: the row worked then"
            if all(node in tiers.registering for node in alone):
                yield _reverse_soon(row, alone, f"{why}; {alone[0]} registers anew: {tiers.registering[alone[0]].says}")
            else:
                yield _reverse("warning" if len(alone) < len(named) else "error", row, alone, why)
        elif not of_group and named[0] in pulling and pulling[named[0]].isdisjoint(meant[named[0]]):
            other = some(sorted(pulling[named[0]]))
            why = f"{named[0]} is to be connected to by {end}, and does not wait for it: it pulls from {other}"
            yield _reverse("warning", row, named, why)


def _reverse(severity: str, row: Pull, nodes: list[str], why: str) -> Finding:
    return Finding(
        "REVERSE_LINK_MISSING",
        severity,
        why,
        server=nodes[0] if nodes else None,
        evidence=(_row(row),),
        fix=(
            step(
                "see that the source can reach the node and has read its list (physrep_revconn_check_interval, "
                "revsql_host_refresh_freq_sec), or correct the row in comdb2_physrep_sources",
                "a node with such a row does not connect itself, it waits; a source connects to the "
                "hosts of its list alone",
                "both ends read the table by host, tier or cluster name in newer versions only",
            ),
        ),
    )


def _pulled(then: TieredSnapshot, node: str, row: Pull) -> bool:
    """Whether a node pulled from the database that a row names, in that snapshot."""
    return any(pull.name == node and pull.source_database == row.source_database for pull in then.pulls)


def _reverse_soon(row: Pull, nodes: list[str], why: str) -> Finding:
    return Finding(
        "REVERSE_LINK_MISSING",
        "info",
        why,
        server=nodes[0],
        evidence=(_row(row),),
        fix=(
            step(
                "collect again in two minutes; if nobody has connected by then, see that the source can reach the node",
                "a source tries every 5 seconds, and reads the list of its hosts once a minute",
                "do not delete the row: a node with such a row may have no other way to its source",
            ),
        ),
    )


def _known_nodes(tiers: Tiers) -> dict[str, list[str]]:
    """Database -> its nodes, by name; rows for connections that are only to be made may name what is no node."""
    linked = {name for pull in tiers.seen.pulls for name in (pull.name, pull.source)}
    found: dict[str, list[str]] = {}
    for name in sorted({*tiers.seen.nodes, *tiers.seen.probes, *linked}):
        found.setdefault(name.partition("@")[0], []).append(name)
    return found


def _named(known: dict[str, list[str]], database: str, host: str) -> list[str]:
    """The nodes that a row means: of a database all where no host of that name is known, for it may name a tier or a cluster."""
    of = known.get(database, [])
    at = bisect_left(of, _end(database, host))
    return of[at : at + 1] if of[at : at + 1] == [_end(database, host)] else of


def _end(database: str, host: str) -> str:
    return f"{database}@{host}"


def _row(row: Pull) -> dict[str, str]:
    return {
        "dbname": row.database,
        "host": row.host,
        "source_dbname": row.source_database,
        "source_host": row.source_host,
    }


def held_log(context: DetectorContext) -> Iterator[Finding]:
    """Who keeps the source from deleting log files, where its version lets anybody."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        held = tiers.hold(source)
        head = tiers.known_head(source)
        if held.kept_from is None or head is None or not held.holders:
            continue
        # Of what was deleted before its row was written, nothing is kept.
        oldest = max(held.kept_from, min(tiers.source_firsts(source), default=held.kept_from))
        end = min(held.without(held.holders)[0] or head[0], head[0])
        files = end - oldest
        if files <= 0:
            continue
        own = [name for name in held.holders if name in tiers.roots(source)]
        others = [*(name for name in held.holders if name not in own), *own]
        silent = any(tiers.states.get(name) in (*GONE, HUNG, RETIRED, STOPPED) for name in others)
        size, _ = tiers.lag((oldest, 0), (end, 0))
        alone = len(others) == 1
        yield Finding(
            "LOG_HELD",
            "error" if silent else "warning" if files > 1 else "info",
            f"{some(others)} pin{'s' if alone else ''} the deletion of log files at "
            f"{place_text(tiers.seen.reported(others[0]))}: {source} keeps {_files(oldest, end)}"
            f"{f' {size:,} bytes,' if size else ''} for {'it' if alone else 'them'}{_held_next(held, head[0])}"
            + "".join(f"; {clause}" for clause in _why_held(tiers, others)),
            server=others[0],
            origin=source,
            items=tuple(place_text(tiers.seen.reported(name)) or "" for name in others),
            evidence=first_few(evidence_of(tiers, name) for name in others),
            fix=tuple(_let_go(tiers, [name for name in others if name not in own], own)),
        )


def _files(first: int, end: int) -> str:
    """Files in words, from the first one on up to the one before `end`."""
    return f"file {first}," if end - first == 1 else f"{end - first:,} files, {first} to {end - 1},"


def _held_next(held: LogHold, head: int) -> str:
    """Who holds log files once the present holders hold none."""
    file, names = held.without(held.holders)
    if file is None or file >= head:
        return ""
    return f"; after that {some(names)} hold{'s' if len(names) == 1 else ''} those from file {file} on"


def _why_held(tiers: Tiers, holders: list[str]) -> Iterator[str]:
    """What keeps holders from going on, where anything does: a row holds as long as it is there, whoever's it is."""
    by_state: dict[str, list[str]] = {}
    for name in holders:
        by_state.setdefault(tiers.states.get(name, ""), []).append(name)
    for states, says in _HELD_BY:
        if names := [name for state in states for name in by_state.get(state, ())]:
            yield says[len(names) > 1].format(some(names))


_HELD_BY = (
    ((GHOST,), ("{} was shut down, and its row holds for ever", "{} were shut down, and their rows hold for ever")),
    ((RETIRED,), ("{} was taken out, and its row holds for ever", "{} were taken out, and their rows hold for ever")),
    (
        (FROZEN, HUNG),
        (
            "{} does not report itself: frozen, dead or cut off, its row holds until it goes on or its row is changed",
            "{} do not report themselves: frozen, dead or cut off, their rows hold until they go on or the rows are changed",
        ),
    ),
    ((STOPPED,), ("{} is stopped: the row stays where it is", "{} are stopped: the rows stay where they are")),
)


def _costs(tiers: Tiers, lacking: list[str]) -> Iterator[str]:
    """What nodes lose that need older files than the one that their source writes."""
    gaps = {name: tiers.gap(name) for name in lacking}
    if back := [name for name in lacking if gaps[name] is None]:
        yield (
            f"once nobody has these files any more {some(back)} can go on from no log, and "
            f"{'have' if len(back) > 1 else 'has'} to be rebuilt: start first whatever shall come back"
        )
    for name in lacking:
        if gaps[name] == "source":
            yield f"what {name} needs next the source has deleted already: bring it forward from {tiers.donors(name)[0][0]} first"
    if lost := [name for name in lacking if gaps[name] == "now"]:
        yield f"what is kept helps {some(lost)} no more: it has to be rebuilt in any case"


def _reset(tiers: Tiers, names: list[str]) -> str:
    """How those of some nodes that are gone are taken out: as long as the row of another one holds, one alone frees nothing."""
    gone = [name for name in names if tiers.states.get(name) in (*GONE, HUNG, RETIRED)] or names
    calls = "; ".join(RESET.format(*name.split("@", 1)) for name in gone[:_NAMED])
    more = f"; and so for {len(gone) - _NAMED:,} more" if len(gone) > _NAMED else ""
    return f"if it is gone: {calls}" if len(names) == 1 else f"reset those that are gone: {calls}{more}"


_NAMED = 3
"""Nodes for which the call that resets them is written out."""


def _let_go(tiers: Tiers, below: list[str], own: list[str]) -> Iterator[dict[str, str | None]]:
    """What makes nodes hold nothing any more, and what it costs."""
    if below:
        yield step(
            f"bring {some(below)} forward, or {_reset(tiers, below)}",
            "after that the others delete what nobody else needs",
            "; ".join(_costs(tiers, [name for name in below if is_files_behind(tiers, name)])) or None,
        )
    if own:
        yield step(
            f"start {some(own)} again, or if it is gone for good, delete its row from comdb2_physreps",
            "the rows of the source's own nodes count in every state: to set one to Inactive frees nothing",
            "a node of the source writes its row when it starts: without one nobody is offered it",
        )
