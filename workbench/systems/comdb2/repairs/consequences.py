"""What a way takes from other nodes, or from its own, though the model sees no harm: then it is left to whoever asks for it.

On the model what is on its way has arrived. A node that is moved, or whose supplier is shut down, before that is so may be
offered nobody any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from workbench.repair.plan_types import Need, ProposedRepair, Step, View
from workbench.replication.tier.diagnosis.beyond_source import stands_beyond
from workbench.replication.tier.diagnosis.log_files import about_to_lose
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.other_histories import above_of, all_above
from workbench.replication.tier.diagnosis.sole_suppliers import (
    Served,
    cut_off_without,
    left_where_they_hang,
    offered_behind,
    registers_in_vain,
)
from workbench.replication.tier.rules.conditions import FED
from workbench.systems.comdb2.detectors.shown import place_text, some

CONNECTS = frozenset({"force_registration", "restart"})
"""Repairs after which the registry says where a node connects."""
MOVES = CONNECTS | {"replicate_from", "rebuild"}


def weighed_by_consequences(view: View, need: Need, tiers: Tiers, draft: ProposedRepair) -> ProposedRepair:
    """The way; refused or left to whoever asks for it where a node loses by it what nobody else brings or has."""
    left = view.context.once(left_where_they_hang)
    for step in draft.steps:
        if step.repair in MOVES and step.server in left:
            why = _leave(step.server, left[step.server])
            return replace(draft, refused=why) if step.repair in CONNECTS else replace(draft, unasked=why)
    stopped = {name for step in draft.steps for name in _stopped_by(step)}
    if lost := cut_off_without(left, stopped):
        return replace(draft, unasked=_cut_off(lost, stopped, left[lost[0]]))
    if draft.costs and (spared := _copied_later(tiers, need, stopped, left)):
        supplier, name = spared
        return replace(
            draft,
            unasked=f"{supplier} can be copied in place of a node of the source once {name}, which pulls from it, is past "
            f"log file {left[name].until}: wait until then, collect again, and plan anew",
        )
    if late := _about_to_lose(tiers, need, stopped):
        file = (tiers.last(late) or (0, 0))[0]
        return replace(
            draft,
            unasked=f"{late} needs log file {file}, which its source is about to delete, and gets nothing while it is shut down: "
            "wait until it is past that file, collect again, and plan anew",
        )
    for step in draft.steps:
        if step.repair in MOVES and tiers.seen.fell_back(step.server):
            why = f"the last answer and the last report of {step.server} contradict each other (LOG_DIVERGED)"
            return replace(draft, unasked=f"{why}: first ask it once more")
        if step.repair in MOVES and (head := stands_beyond(tiers, step.server)):
            ends = place_text(tiers.last(step.server))
            return replace(
                draft,
                costs="; ".join(
                    filter(None, (draft.costs, f"what {step.server} has behind {place_text(head)} is cut off"))
                ),
                unasked=f"{step.server} stands at {ends}, and its source only at {place_text(head)}: when it connects it cuts "
                f"off what stands behind, which no node of the source has; first compare the ends of both logs, and dump that "
                f"of {step.server}",
            )
    return draft


def not_the_last(tiers: Tiers, draft: ProposedRepair) -> ProposedRepair:
    """The way; left to whoever asks for it where a step throws away, or may, what no other node is known to have any more."""
    for step in draft.steps:
        for name in sorted(_connecting_anew(tiers, step) & tiers.last_holders.keys()):
            return replace(
                draft,
                costs="; ".join(filter(None, (draft.costs, f"what only {name} may still have is thrown away"))),
                unasked=f"{tiers.last_holders[name].says}: {name} may be the last that has what was lost, and cuts it off when "
                "it connects anew; first dump its log, or copy its log files where it does not answer",
            )
    return draft


def not_a_silent_source(tiers: Tiers, draft: ProposedRepair) -> ProposedRepair:
    """The way; left to whoever asks for it where it shuts down a node of a source that is silent, and was further before."""
    for step in draft.steps:
        roots = tiers.roots(tiers.source_of(step.server) or "")
        if step.repair in MOVES and step.server in tiers.seen.stood and step.server in roots:
            place, label = tiers.seen.stood[step.server]
            return replace(
                draft,
                unasked=f"{step.server} tells nothing of itself in this snapshot, and stood at {place_text(place)} in snapshot "
                f"{label}: first ask it where it stands",
            )
    return draft


def _connecting_anew(tiers: Tiers, step: Step) -> set[str]:
    """The nodes that connect anew, or lose their log, by a step: who is moved, taken out or shut down, and all below that."""
    stopped = {*_stopped_by(step)} | ({step.server} if step.repair in MOVES | {"reset", "disconnect"} else set())
    below = {
        name
        for name in tiers.last_holders
        if not stopped.isdisjoint(all_above(name, lambda node: above_of(tiers, node)))
    }
    return stopped | below


def who_may_move(view: View, names: Iterable[str]) -> list[str]:
    """Of nodes that pull from one that serves too many, those that may find another source, each once.

    Those that may be sent to a node that is behind them come last.
    """
    tiers, left = view.context.verdicts.tiers, view.context.once(left_where_they_hang)
    if tiers is None:
        return [*dict.fromkeys(names)]
    able = [name for name in dict.fromkeys(names) if name not in left and not registers_in_vain(tiers, name)]
    able = [name for name in able if name not in tiers.last_holders]
    return sorted(able, key=lambda name: bool(offered_behind(tiers, name)))


def why_none_moves(view: View, name: str) -> str:
    """Why a node stays below one that serves too many."""
    tiers, left = view.context.verdicts.tiers, view.context.once(left_where_they_hang)
    if tiers is not None and name in tiers.last_holders:
        return f"{name} may be the last that has what {tiers.last_holders[name].lost_by} lost (LOG_DIVERGED)"
    return _leave(name, left[name]) if tiers is None or name in left else registers_in_vain(tiers, name)


def _leave(name: str, served: Served) -> str:
    return (
        f"{name} needs log file {served.file}, which {some(served.suppliers)} sends it, and its source has no more: leave it "
        f"where it hangs until it is past log file {served.until} (LOG_GAP)"
    )


def _cut_off(lost: list[str], stopped: set[str], served: Served) -> str:
    """Why the nodes of which a way shuts some down stay as they are, until others got what only these send."""
    name, above = lost[0], sorted(stopped & {*served.suppliers})
    does = f"pulls from {some(above)}" if above else "registers anew when it is started again"
    return (
        f"{name} {does}, and the registry offers it no other node that is sure to have log file {served.file}, which it "
        f"needs: wait until {some(lost)} {'is' if len(lost) == 1 else 'are'} past log file {served.until}, collect again, and "
        "plan anew"
    )


def _stopped_by(step: Step) -> Iterator[str]:
    """The nodes that a step shuts down, or whose log it replaces."""
    if step.repair in MOVES - {"force_registration"}:
        yield step.server
    yield from (str(effect["source"]) for effect in step.effects if effect["do"] == "initialise")


def _about_to_lose(tiers: Tiers, need: Need, stopped: set[str]) -> str | None:
    """A node that is shut down, or could be copied in place of one of the source, and is about to fall behind."""
    others = sorted(stopped - {need.server})
    if need.server is not None and not stopped.isdisjoint(tiers.roots(tiers.source_of(need.server) or "")):
        others += [name for name in tiers.members[tiers.source_of(need.server) or ""] if tiers.states[name] in FED]
    return next((name for name in others if name != need.server and about_to_lose(tiers, name)), None)


def _copied_later(tiers: Tiers, need: Need, stopped: set[str], left: Mapping[str, Served]) -> tuple[str, str] | None:
    """A node that could be copied in place of one of the source, and the one that it feeds and that it waits for."""
    if need.server is None or stopped.isdisjoint(tiers.roots(tiers.source_of(need.server) or "")):
        return None
    fit = tiers.copied_from(need.server)
    return next(((one, lost[0]) for one in fit if (lost := cut_off_without(left, {one}))), None)
