"""Nodes of one source cluster that hold different logs: which of them is that of the cluster, or that nothing tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, step
from workbench.replication.tier.diagnosis.histories import forked, parted_from
from workbench.systems.comdb2.detectors.shown import place_text, some, tiers_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.histories import Apart
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

ASK_WHO_LEADS = "select host, is_master from comdb2_cluster"


NONE_ELECTED = {"elected": "unknown"}
"""In the evidence of nodes of which nothing tells whose log is the right one."""


def apart_at_the_source(context: DetectorContext) -> Iterator[Finding]:
    """Source clusters of which one node holds other records than another one: the log that all others follow is in doubt."""
    tiers = tiers_of(context)
    for one in tiers.logs.apart:
        source = tiers.source_of(one.nodes[0]) or ""
        if one.elected is None:
            yield _undecided(tiers, source, one)
        else:
            for history in one.histories[1:]:
                for name in history:
                    yield _left_behind(tiers, source, one, name)


def parted_siblings(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that follow one source and hold different logs, where no log of that source was collected."""
    tiers = tiers_of(context)
    for first, other in tiers.logs.siblings:
        both, source = tiers.logs.looked.pairs[first, other], tiers.source_of(first) or ""
        if not forked(both):
            continue
        place = parted_from(both)
        many = both.differing.count or both.only_copy.count
        roots = tiers.roots(source)
        yield Finding(
            "LOG_DIVERGED",
            "error",
            f"{first} and {other}, which follow {source}, hold other records than each other at {many:,} "
            f"place{'s' if many > 1 else ''}, from {place_text(place)} on"
            + (f"; the last commit that both have is {place_text(both.match)}" if both.match else "")
            + f": at least one of them has parted from {source}, and without a log of that nothing tells which",
            server=other,
            origin=source,
            items=(place_text(place) or "",),
            evidence=tuple({"node": name, "at": place_text(place)} | NONE_ELECTED for name in (first, other)),
            fix=(
                step(
                    f"collect the log of {some(roots) if roots else source}, from {place_text(both.match or place)} on, and "
                    "diagnose anew",
                    "only the log of the source shows which of them has other records",
                    f"until then copy neither {first} nor {other} over another node",
                ),
            ),
        )


def _undecided(tiers: Tiers, source: str, one: Apart) -> Finding:
    firsts = [history[0] for history in one.histories]
    return Finding(
        "LOG_DIVERGED",
        "error",
        f"{some(firsts)}, which are nodes of the source {source}, hold other records than each other at {one.count:,} "
        f"place{'s' if one.count > 1 else ''}, from {place_text(one.first)} on{_match(one)}: nothing that was collected tells "
        f"which of these logs is that of the cluster{_followed(tiers, one)}",
        server=firsts[0],
        origin=source,
        items=(place_text(one.first) or "",),
        evidence=tuple(_shown(tiers, one, name) | NONE_ELECTED for name in one.nodes),
        fix=(
            step(
                f"find out which of {some(firsts)} is the master of {source} ({ASK_WHO_LEADS}), and of which generation the "
                "newest commit of each is (comdb2_transaction_logs, flags 4); then collect again and diagnose anew",
                "the history of the higher generation is the one that was elected, and the master writes it",
                f"until then let no node below {source} connect anew, and copy nothing over any of them: who connects cuts "
                "off what the node that it comes to does not have",
            ),
        ),
    )


def _left_behind(tiers: Tiers, source: str, one: Apart, name: str) -> Finding:
    assert one.elected is not None
    below = [node for node in _followers(tiers, one, name) if node not in one.nodes]
    pulling = [node for node in tiers.children(name) if node not in one.nodes]
    if one.leads:
        why = f"by its cluster {one.elected} is the master"
    else:
        alike = next(history for history in one.histories if name in history)
        shown = name if name in one.generations else max(alike, key=lambda node: one.generations.get(node, -1))
        why = (
            f"the newest commit of {shown} is of generation {one.generations[shown]}, that of {one.elected} of "
            f"{one.generations[one.elected]}: the higher one was elected"
        )
    return Finding(
        "LOG_DIVERGED",
        "error",
        f"{name} has other records than {one.elected}, which is of the same source {source}, from {place_text(one.first)} on"
        f"{_match(one)}; {why}"
        + (f"; {some(below)} ha{'s' if len(below) == 1 else 've'} what {name} has" if below else ""),
        server=name,
        origin=source,
        items=(place_text(one.first) or "",),
        evidence=tuple(_shown(tiers, one, node) for node in (one.elected, name)),
        fix=(
            step(
                f"copy {name} anew within its cluster, from {one.elected}, once its own log was dumped",
                "of two histories only the elected one goes on, and whoever connects to the other one gets that"
                + (f": {some(pulling)} pull{'s' if len(pulling) == 1 else ''} from {name}" if pulling else ""),
                f"what only {name} has is lost then",
            ),
        ),
    )


def _match(one: Apart) -> str:
    return f"; the last commit that both have is {place_text(one.match)}" if one.match else ""


def _followers(tiers: Tiers, one: Apart, name: str) -> list[str]:
    """The other nodes whose log is not known to be another one than that of this node, and reaches the place where they part."""
    found = []
    for (reference, copy), both in tiers.logs.looked.pairs.items():
        span = tiers.logs.span(copy)
        if (
            reference == name
            and span
            and span[1] >= one.first
            and not both.differing.count
            and not both.only_copy.count
        ):
            found.append(copy)
    return sorted(found)


def _followed(tiers: Tiers, one: Apart) -> str:
    told = []
    for history in one.histories:
        below = [*history[1:], *(node for node in _followers(tiers, one, history[0]) if node not in one.nodes)]
        told += [f"{some(below)} ha{'s' if len(below) == 1 else 've'} what {history[0]} has"] if below else []
    return "".join(f"; {said}" for said in told)


def _shown(tiers: Tiers, one: Apart, name: str) -> dict[str, Any]:
    span = tiers.logs.span(name)
    told = {
        "node": name,
        "generation": one.generations.get(name),
        "its_log_ends": place_text(span[1]) if span else None,
        "leads": (tiers.seen.probes.get(name) or {}).get("leads"),
    }
    return {key: value for key, value in told.items() if value is not None}
