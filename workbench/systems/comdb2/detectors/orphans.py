"""Nodes that hang on no source, of which the registry has no row, or of which nothing tells which source they follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, listed, step
from workbench.replication.tier.diagnosis.registering import registering_above
from workbench.replication.tier.diagnosis.tree_rows import unlisted as unlisted_nodes
from workbench.replication.tier.rules.conditions import GONE, HUNG, ORPHAN, SAYS
from workbench.replication.tier.rules.tiers import CIRCLE
from workbench.systems.comdb2.detectors.nodes import FORCE
from workbench.systems.comdb2.detectors.shown import (
    each,
    evidence_of,
    not_before,
    place_text,
    some,
    stood_before,
    tiers_of,
)

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def orphans(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that say that they replicate, and hang on no source."""
    tiers = tiers_of(context)
    for source, name in each(tiers):
        place = tiers.place(name)
        if tiers.has_no_row(name) and not (place and place.parents):
            continue  # that the registry has no row of it says this, too
        if tiers.states[name] != ORPHAN and not (
            place
            and place.parents
            and place.tier is None
            and place.problem != CIRCLE
            and tiers.states[name] not in (*GONE, HUNG)
        ):
            continue
        if place and place.parents and tiers.states[name] != ORPHAN and registering_above(tiers, name):
            continue  # it goes on pulling, and its supplier has a source again in a moment
        why = place.problem if place and place.problem else "no row says from whom it pulls"
        unseen = "" if tiers.roots(source) else _collect_source(source)
        if above := sorted(pull.source for pull in tiers.seen.pulls if pull.name == name) if unseen else []:
            why = f"it pulls from {some(above)}, which hang{_s(above)} on no source"
        if name in tiers.followed_unseen:
            why += f"; in an earlier snapshot it followed {source}, of which this one tells nothing"
        yield Finding(
            "TOPOLOGY_ORPHAN",
            "error" if place and place.parents else "warning",
            f"{name} hangs on no source: {why}",
            server=name,
            origin=source,
            evidence=(evidence_of(tiers, name),),
            fix=(
                step(
                    f"{unseen}let it register anew ({FORCE})",
                    SAYS[ORPHAN],
                    "; ".join(filter(None, (not_before(tiers, name), _ASK_IT))),
                ),
            ),
        )


_ASK_IT = (
    "the registry may be older than what the node does: ask the node where it pulls from (physrep_repl_name, "
    "physrep_repl_host)"
)


def unlisted(context: DetectorContext) -> Iterator[Finding]:
    """Nodes of the source, nodes that others pull from or that pull, and nodes that answer, of which the registry has no row."""
    tiers = tiers_of(context)
    without_row = unlisted_nodes(tiers)
    if without_row and not tiers.source_is_known and not tiers.seen.nodes:
        yield _nobody_listed(tiers)
        return
    linked = {name for pull in tiers.seen.pulls for name in (pull.name, pull.source)}
    for source in tiers.sources:
        own = tiers.roots(source)
        # A node of the source needs its row before anybody pulls from it: without it nobody ever will.
        lacking = [name for name in tiers.members[source] if name in without_row]
        rowless = next(iter(own), "") if tiers.seen.nodes.keys().isdisjoint(own) else ""
        of_source = [name for name in lacking if name in own]
        if of_source:
            yield _source_unlisted(tiers, source, of_source)
        for hangs in (True, False):
            names = [name for name in lacking if name not in own and (name in linked) == hangs]
            if names:
                yield _unlisted(tiers, source, names, rowless, hangs)


_FROM_ROW_TO_ROW = (
    "the query for candidates begins at the rows of the source and goes down from row to row; a report updates a row and "
    "never makes one"
)


def _source_unlisted(tiers: Tiers, source: str, names: list[str]) -> Finding:
    nobody = tiers.seen.nodes.keys().isdisjoint(tiers.roots(source))
    stood = next((said for name in names if (said := stood_before(tiers, name))), "")
    first = f"ask {names[0]} where it stands, and if it is there, " if stood else ""
    return Finding(
        "TOPOLOGY_ORPHAN",
        "error" if nobody else "warning",
        f"{some(names)} {_has(names)} no row in the registry: "
        + ("no other node of the source has one, and whoever registers is offered nothing" if nobody else _NOT_OFFERED)
        + stood,
        server=names[0],
        origin=source,
        evidence=first_few(evidence_of(tiers, name) for name in names),
        fix=(step(f"{first}restart {names[0]}: a node of the source writes its row when it starts", _FROM_ROW_TO_ROW),),
    )


_NOT_OFFERED = "nobody who registers is offered such a node, and the query may not come to what is below it"


def _unlisted(tiers: Tiers, source: str, names: list[str], rowless: str, hangs: bool) -> Finding:
    """Nodes below the source; `rowless`: a node of the source, if none of these has a row; `hangs`: on others, or others hang on
    them.
    """
    register = f"let {names[0]} register anew ({FORCE})"
    first = f"first do what TOPOLOGY_ORPHAN says of {rowless}, then " if rowless else ""
    if not first and not tiers.seen.answered(names[0]):
        first = f"ask {names[0]} where it stands, and if it is there "
    if not tiers.roots(source):
        first = _collect_source(source)
    cautions = [
        "until a node of the source has its row, a node that registers is offered nothing, and its connection is deleted"
        if rowless
        else None,
        not_before(tiers, names[0]),
    ]
    return Finding(
        "TOPOLOGY_ORPHAN",
        "warning",
        f"{some(names)} {_has(names)} no row in the registry: {_NOT_OFFERED}"
        if hangs
        else f"{some(names)} {_has(names)} no row in the registry, and no row says from whom "
        f"{'it pulls' if len(names) == 1 else 'they pull'}: {'it hangs' if len(names) == 1 else 'they hang'} on no source"
        + (
            ""
            if tiers.roots(source)
            else f"; of {source}, which {some(names)} follow{_s(names)}, nothing was collected"
        ),
        server=names[0],
        origin=source,
        evidence=first_few(evidence_of(tiers, name) for name in names),
        fix=(step(f"{first}{register}", _FROM_ROW_TO_ROW, "; ".join(filter(None, cautions)) or None),),
    )


def _collect_source(source: str) -> str:
    return f"collect what the nodes of {source} answer and their rows of the registry, and diagnose anew; then "


def _s(names: list[str]) -> str:
    return "s" if len(names) == 1 else ""


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _nobody_listed(tiers: Tiers) -> Finding:
    """The registry was collected and has no row at all, and nothing tells which node is of the source."""
    return Finding(
        "TOPOLOGY_ORPHAN",
        "error",
        f"the registry has no row of any node: none of {some(tiers.seen.names)} is offered to anybody who registers",
        evidence=first_few({"node": name, "last": place_text(tiers.last(name))} for name in tiers.seen.names),
        fix=(
            step(
                "collect the settings of the nodes, see which of them are of the source, and restart these: each writes its row "
                "when it starts",
                "the query for candidates begins at the rows of the source; a report updates a row and never makes one",
            ),
        ),
    )


def _rows_before(tiers: Tiers, name: str) -> str:
    """What the tables of the snapshot before said of a node; empty: there is none, or they had no row of it."""
    then = tiers.before
    if then is None:
        return ""
    above = sorted(pull.source for pull in then.pulls if pull.name == name)
    if above:
        return f"in snapshot {then.label} a row said that it pulls from {some(above)}"
    has_row = name in then.nodes and name not in tiers.seen.nodes
    return f"in snapshot {then.label} the registry had a row of it" if has_row else ""


def of_untold_source(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that have a row or answer, and of which nothing that was collected says which source they follow."""
    tiers = tiers_of(context)
    for name in (*sorted(tiers.guessed), *tiers.of_no_source):
        row = name in tiers.seen.nodes
        has = "has a row in the registry" if row else f"answers and stands at {place_text(tiers.last(name)) or '?'}"
        follows = (
            f"which source it follows, {listed(tiers.sources, 'or')}" if row else "which source it follows, if any"
        )
        if name.partition("@")[0] in tiers.sources_before:
            follows += ", or none, as before"
        without = "no row says from whom it pulls" if row else "no table that was collected has a row of it"
        nothing = "nothing"
        if before := _rows_before(tiers, name):
            nothing = "nothing of this snapshot"
            without = f"{before}, and no table of this snapshot has {'such a row' if row else 'a row of it'}"
        yield Finding(
            "TOPOLOGY_ORPHAN",
            "warning",
            f"{name} {has}, and {nothing} tells {follows}: {without}, and no setting that was collected names it; what {name} "
            "lacks is not judged",
            server=name,
            origin=tiers.source_of(name),
            evidence=(evidence_of(tiers, name),),
            fix=(
                step(
                    f"ask {name} whom it follows (physrep_source_dbname, or replicate_from in its configuration), and diagnose "
                    "anew with its settings; if it is a replicant, let it register anew "
                    f"({FORCE})",
                    _FROM_ROW_TO_ROW,
                    "a node of the registry's database, or of another one that follows no source, needs no row",
                ),
            ),
        )
