"""What is to be mended in a tree although nothing may be lacking, and what the repairs share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.model import counted
from workbench.repair.plan_types import Need, ProposedRepair, View
from workbench.replication.tier.diagnosis.generations import cut_without_it, older_source
from workbench.replication.tier.diagnosis.holders import waited_for
from workbench.replication.tier.diagnosis.log_files import above_with_its_file, listing_it, needed_file, untold_holders
from workbench.replication.tier.diagnosis.other_histories import (
    all_above,
    fed_with_another,
    is_alike,
    of_another_history,
)
from workbench.replication.tier.diagnosis.registering import pending_donors
from workbench.replication.tier.diagnosis.sources import what_would_tell
from workbench.replication.tier.diagnosis.tree_rows import unlisted as unlisted_nodes
from workbench.replication.tier.diagnosis.two_sources import placed_by_kin
from workbench.replication.tier.rules.repair_model import GONE, TierModel
from workbench.rules.assumptions import NOT_CUT_BACK, SAME_HISTORY, SOURCE_OF_KIN
from workbench.rules.repair_result import achieved
from workbench.systems.comdb2 import sql
from workbench.systems.comdb2.detectors.file_gaps import LEFT_BELOW
from workbench.systems.comdb2.detectors.nodes import names_no_host
from workbench.systems.comdb2.detectors.shown import by_default, some
from workbench.systems.comdb2.repairs.consequences import (
    CONNECTS,
    MOVES,
    not_a_silent_source,
    not_the_last,
    weighed_by_consequences,
)

if TYPE_CHECKING:
    from workbench.model import Finding
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers
    from workbench.rules.repair_model import Model

HUNG, INACTIVE, FULL, GAP, REBUILT = (
    "REPLICANT_HUNG",
    "REPLICANT_INACTIVE",
    "FANOUT_EXCEEDED",
    "LOG_GAP",
    "REINIT_REQUIRED",
)
CYCLE, ORPHAN, REVERSE = "TOPOLOGY_CYCLE", "TOPOLOGY_ORPHAN", "REVERSE_LINK_MISSING"
LIMIT, HELD = "PENDING_LIMIT", "LOG_HELD"
PARTED, MISSED = "LOG_DIVERGED", "MISSED_CHANGE"

RESET_NODE = "reset-node"
"""The way that takes a silent node out of the tree."""

_APART = {"cycle": CYCLE, "orphan": ORPHAN}
"""Condition of a node -> what is to be mended."""

STUCK = (REBUILT, GAP, CYCLE, ORPHAN, HUNG, INACTIVE, REVERSE)
"""Of what was found of a node that lacks something, the first of these is what it is called."""


def also(view: View, model: Model) -> Iterator[Need]:
    """Rows of nodes that are gone, nodes that serve too many, and nodes that hang on no source."""
    assert isinstance(model, TierModel)
    for name in model.ghosts():
        yield Need(HUNG, view.suffix, name)
    told = {one.server for one in view.about(FULL)}
    for name in model.over_full():
        if name in told:
            yield Need(FULL, view.suffix, name)
    circles = set(model.in_circles())
    cut = any(model.servers[name].up for name in circles)  # then not at a node that does not answer
    for name, condition in sorted(model.condition.items()):
        if name in circles and cut and not model.servers[name].up:
            continue
        if condition in _APART:
            yield Need(_APART[condition], view.suffix, name)
        elif name in circles and condition not in GONE:  # those are reset, and their row is gone then
            yield Need(CYCLE, view.suffix, name)
    if model.refuses_all() and not model.ghosts():  # with those out of the way others may be answered
        yield Need(LIMIT, view.suffix)
    for name in (*model.set_aside(), *model.waits_in_vain()):
        yield Need(INACTIVE, view.suffix, name)
    for name in sorted(model.spoilt | model.parted):
        if model.servers[name].up and not of_source(view, name):
            found = {one.code for one in view.about(PARTED, MISSED, GAP) if one.server == name}
            yield Need(next((code for code in (PARTED, MISSED) if code in found), GAP), view.suffix, name)
    tiers = view.context.verdicts.tiers
    known = unlisted_nodes(tiers) if tiers is not None and tiers.source_is_known and view.about(ORPHAN) else ()
    for name in model.unlisted():
        if name in known and model.servers[name].up and model.condition[name] not in _APART:
            yield Need(ORPHAN, view.suffix, name)
    for name in (
        tiers.last_holders if tiers is not None else ()
    ):  # what it lacks nothing tells, and yet it does not go on
        found = {finding.code for finding in view.about(*STUCK) if finding.server == name}
        if code := next((code for code in (REBUILT, GAP, INACTIVE) if code in found), ""):
            yield Need(code, view.suffix, name)
    for one in (finding for finding in view.about(REVERSE) if finding.severity != "info"):
        if one.server in model.servers and model.condition.get(one.server) in ("no_source", "pending"):
            yield Need(REVERSE, view.suffix, one.server)


def late(view: View, need: Need) -> bool:
    """Nodes that lack nothing, and register anew only to hang better: the place that each takes another one may need to go on.
    And rows that hold what others still need: these go where they can be served first.
    """
    if need.code == HUNG and need.server is not None and _frees_what_others_need(view, need.server):
        return True
    if need.lacks or need.server is None or of_source(view, need.server):
        return need.code == FULL and not need.lacks
    return need.code in (FULL, ORPHAN)


def settled(finding: Finding, model: Model) -> bool:
    """Whether no more nodes pull from one than the fanout says, once the rows of others are reset or name another source."""
    assert isinstance(model, TierModel)
    return finding.code == FULL and finding.server not in model.over_full()


def given_up(finding: Finding, model: Model) -> str:
    """Why the log of a node stays as it is: its row is reset, and nobody brings it anything."""
    assert isinstance(model, TierModel)
    name = finding.server
    if (
        finding.code not in (GAP, REBUILT)
        or name not in model.servers
        or not model.is_silent(name)
        or not model.is_out(name)
    ):
        return ""
    return f"the plan takes {name} out of the tree and brings it nothing"


def stays(finding: Finding, model: Model) -> bool:
    """Whether a node is to be left where it hangs until it has what only its supplier sends it: no step moves it."""
    assert isinstance(model, TierModel)
    above = {name for row in finding.evidence for name in str(row.get(LEFT_BELOW) or "").split(", ")}
    return finding.code == GAP and not above.isdisjoint(model.parents(finding.server or ""))


def _frees_what_others_need(view: View, name: str) -> bool:
    result, _ = achieved(view.model, ({"do": "reset", "server": name},))
    return bool(result.unsaid)


def safe(draft: ProposedRepair, *names: str) -> ProposedRepair:
    """A name that is no plain word stands in no statement: what it would become there nobody can say."""
    odd = [name for name in names if not sql.is_plain(name)]
    if not odd:
        return draft
    return ProposedRepair(draft.way, draft.says, refused=f"{odd[0]!a} is no plain name, and goes into no statement")


def weighed(view: View, need: Need, draft: ProposedRepair) -> ProposedRepair:
    """A way is refused while nothing tells which log is the source; what only the log of the node has is thrown away by it."""
    tiers = view.context.verdicts.tiers
    if tiers is None or not draft.steps or draft.refused:
        return draft
    if not tiers.source_is_known:
        why = f"nothing tells which of these logs is the source: collect {what_would_tell(tiers)}"
        return replace(draft, refused=why)
    if need.server and (taken := by_default(tiers, need.server)):
        # What the registry offers to a node that asks depends on the fanout.
        resting = [need.code == FULL or step.repair in CONNECTS for step in draft.steps]
        steps = zip(draft.steps, resting, strict=True)
        draft = replace(
            draft, steps=tuple(replace(step, assumes=(*step.assumes, *taken)) if on else step for step, on in steps)
        )
    if need.server and need.server in placed_by_kin(tiers):
        draft = replace(
            draft, steps=tuple(replace(step, assumes=(*step.assumes, SOURCE_OF_KIN)) for step in draft.steps)
        )
    if why := _sent_to_another_history(tiers, need, draft):
        return replace(draft, refused=why)
    draft = _of_one_history(view, tiers, need, draft)
    if draft.refused:
        return draft
    if draft.way == RESET_NODE and (waiting := view.context.once(waited_for).get(need.server or "")):
        draft = replace(
            draft,
            unasked=f"{need.server} has log file {waiting.file}, which {some(waiting.nodes)} {waiting.need} and no node that "
            f"answers has and goes on from: first start it, collect again, and plan anew; if it is gone for good, plan with "
            f"--for {need.server} --way {RESET_NODE}",
        )
    row = tiers.seen.nodes.get(need.server or "")
    if draft.way == RESET_NODE and row and row["state"] == "Inactive":
        draft = replace(
            draft,
            unasked=f"one table of the registry says that {need.server} was taken out, the other one that it pulls: first "
            "collect both once more, in one go",
        )
    moves = {step.repair for step in draft.steps} & MOVES
    if moves and need.server and cut_without_it(tiers, need.server):
        every = [(*one.assumes, NOT_CUT_BACK) if one.repair in MOVES else one.assumes for one in draft.steps]
        placed = (replace(one, assumes=taken) for one, taken in zip(draft.steps, every, strict=True))
        draft = replace(draft, steps=tuple(placed))
    if moves and need.server in tiers.registering:
        draft = replace(draft, unasked=f"{need.server} registers anew just now: collect again in a minute or two first")
    if moves and (old := tiers.outrun_rows.get(need.server or "")):
        draft = replace(
            draft,
            unasked=f"{need.server} stands beyond its last report: first ask it once more whether it gets on"
            if not old.goes_on
            else f"only the reports of {need.server} stand still (REPORTS_STAND_STILL): see to these first",
        )
    if need.server and "rebuild" in moves and (soon := pending_donors(tiers, need.server)):
        draft = replace(
            draft,
            unasked=f"{some(soon)} ha{'s' if len(soon) == 1 else 've'} the log file that {need.server} needs, and the registry "
            "offers nobody who is Pending: that lasts seconds, so first collect again in a minute, and plan anew",
        )
    if moves and (standing := tiers.standstills.get(need.server or "")):
        draft = replace(draft, unasked=f"{need.server}: {standing.says}; first look at its log why")
    if moves and need.server and tiers.contradicts(need.server):
        draft = replace(
            draft,
            unasked=f"one table of the registry says that {need.server} waits, the other one that it pulls: first collect both "
            "once more, in one go",
        )
    if moves and need.server and tiers.seen.lost_pulls and not tiers.seen.knows_pulls_of(need.server):
        draft = replace(
            draft,
            unasked=f"rows of the table that says who pulls from whom could not be read, and {need.server} has none in what was: "
            "first collect it once more",
        )
    if need.server and "rebuild" in moves and (listing := listing_it(tiers, need.server)):
        draft = replace(
            draft,
            unasked=f"the list of the log files of {some(listing)} shows the file that {need.server} needs, and no place of that "
            "node is known: first ask it where it stands, and collect again",
        )
    if need.server and "rebuild" in moves and (untold := untold_holders(tiers, need.server)):
        draft = replace(
            draft,
            unasked=f"nothing tells which log files {some(untold)} ha{'s' if len(untold) == 1 else 've'}, and {need.server} "
            f"needs file {needed_file(tiers, need.server)}, which no other node has: first ask {untold[0]}, and collect again",
        )
    if need.server and "rebuild" in moves and (having := above_with_its_file(tiers, need.server)):
        draft = replace(
            draft,
            unasked=f"{having[0]}, from which {need.server} pulls by its row, answers and has log file {having[1]}: first "
            f"collect once more, and see whether {need.server} goes on",
        )
    if moves and need.server and (unknown := names_no_host(tiers, need.server)):
        says = f"{need.server} is told to follow {unknown}, and no row is of a host of that name"
        if moves & CONNECTS:
            return replace(draft, refused=f"{says}: unless that is its cluster or tier, the registry offers it nothing")
        draft = replace(
            draft, unasked=f"{says}: first see whether that is its cluster or tier, for then a restart is enough"
        )
    if need.server and "rebuild" in moves and not need.lacks and _read_twice(tiers, need.server):
        draft = replace(
            draft,
            unasked=f"the dumps of the log of {need.server} contradict each other: first read it once more, in one go, for "
            "it may only have been cut off and written anew in between",
        )
    draft = not_a_silent_source(tiers, weighed_by_consequences(view, need, tiers, draft))
    draft = not_the_last(tiers, draft)
    if draft.refused or need.server is None or not (own := tiers.logs.own_records(need.server)):
        return draft
    count, first = own
    of = view.context.topology.system.show(view.context.topology.system.order_key("", *first))
    theirs = tiers.logs.reference(need.server)
    # Where a second log is another one than the source's, it may be the same other one.
    alone = not any(
        one != need.server and tiers.logs.own_records(one) for reference, one in tiers.logs.pairs if reference == theirs
    )
    whose = f"that only the log of {need.server} has" if alone else f"of {need.server} that {theirs} does not have"
    cost = f"{counted(count, 'record')} {whose}, from {of} on, {'is' if count == 1 else 'are'} "
    return replace(draft, costs="; ".join(filter(None, (draft.costs, f"{cost}thrown away"))))


def _read_twice(tiers: Tiers, name: str) -> bool:
    """Whether nothing is known against a log but that several dumps of it are not alike."""
    log = tiers.logs.log(name)
    alike = log is None or not (log.contradictions.count or log.overlaps.count)
    if log is None or alike or len(tiers.logs.inputs[name]) < 2:
        return False
    return not log.gaps.count and not tiers.logs.lost_ends(name)


def _sent_to_another_history(tiers: Tiers, need: Need, draft: ProposedRepair) -> str:
    """Why a way is refused because the nodes of the source hold different logs; empty: they do not, or it moves no node."""
    moved = {step.repair for step in draft.steps} & MOVES
    if not moved or need.server is None:
        return ""
    if older := older_source(tiers, need.server):
        return f"its newest commit is of a newer generation than that of {older}: where it connects it may be cut back to that"
    above = tiers.logs.apart_above(need.server)
    if above is None:
        top = tiers.source_of(need.server) or ""
        return _offered_another(sorted({*tiers.roots(top)} - {*tiers.elected(top)}), moved)
    if above.elected is None:
        return (
            f"{' and '.join(history[0] for history in above.histories)}, nodes of the source, hold different logs, and nothing "
            "tells which is right: a node that moves may be cut back to the wrong one"
        )
    stale = [name for history in above.histories[1:] for name in history]
    return _offered_another(stale, moved)


def _offered_another(stale: list[str], moved: set[str]) -> str:
    return (
        f"the registry may send it to {stale[0]}, whose log is not the one that was elected: first see to that"
        if stale and moved & CONNECTS
        else ""
    )


_GIVES = frozenset({"pull_from", "initialise"})
"""What is done with the log of another node, which the server has then."""


def _of_one_history(view: View, tiers: Tiers, need: Need, draft: ProposedRepair) -> ProposedRepair:
    """The way with what its steps take for granted where nodes of the tree hold different logs; or refused.

    A@a1 has another log than S@s1      A@a2 pulls from A@a1: no donor; A@a3 was not compared: taken for one that is alike
    """
    source = tiers.source_of(need.server or "")
    if source is None or need.server is None:
        return draft
    model, known = tiers_of(view), of_another_history(tiers, source)
    others = (known | {name for name in tiers.last_holders if tiers.source_of(name) == source}) - {need.server}
    steps = list(draft.steps)
    for at, step in enumerate(steps if others else ()):
        givers = [str(effect["source"]) for effect in step.effects if effect["do"] in _GIVES]
        for giver in givers:
            if above := sorted(others & {giver, *all_above(giver, model.parents)}):
                has = "has" if above[0] in known else "may have"
                why = f"{giver} gets its log from {above[0]}, which {has} another one than that of {source}: first see to that"
                return replace(draft, refused=why)
        compared = bool(givers) and all(is_alike(tiers, source, giver) for giver in givers)
        # What it got from a node of another history may not be of the source either.
        keeps = not any(effect["do"] == "initialise" for effect in step.effects)
        compared = compared and not (keeps and fed_with_another(tiers, need.server))
        if (givers or step.repair in CONNECTS) and not compared:
            steps[at] = replace(step, assumes=(*step.assumes, SAME_HISTORY))
    return replace(draft, steps=tuple(steps))


def tiers_of(view: View) -> TierModel:
    """The model, which is one of tiers."""
    assert isinstance(view.model, TierModel), "these repairs are of nodes in tiers"
    return view.model


def of_source(view: View, name: str) -> bool:
    """A node of the source cluster: its cluster brings it up to date, and no node below it may be copied over it."""
    return name.partition("@")[0] == tiers_of(view).source_of.get(name)


def parted(view: View) -> set[str | None]:
    """Nodes whose log is another history than that of the source, lacks something, or goes on behind it: who pulls from one
    gets that, too.
    """
    model = tiers_of(view)
    tiers = view.context.verdicts.tiers
    # What a source lost, its copies do not have either, but for those that were not cut back: it is what they all follow.
    lost = {fall.server for fall in tiers.falls} if tiers is not None else set[str]()
    lost |= {dump.server for dump in tiers.rewritten} if tiers is not None else set()
    return (
        {one.server for one in view.about(PARTED) if one.server not in lost}
        | model.spoilt
        | model.parted
        | model.doubted
    )


def fanout_below(model: TierModel, name: str) -> int:
    """How many may pull from one below the source of that node."""
    return model.rules.fanout_of(model.source_of[name])


def lacking_file(model: TierModel, name: str, needed: int) -> int:
    """The first file from that one on that a node does not have; the same one where nothing tells."""
    span = model.servers[name].vector.get(model.source_of[name])
    if span is None or span.min is None or model.file_of(span.min) > needed:
        return needed
    return next((file for file in model.holes.get(name, ()) if file >= needed), needed)


def feeds(model: TierModel, parent: str, name: str) -> bool:
    """Whether a node answers, and is not known to lack a file that one below it needs."""
    span, needed = model.servers[parent].vector.get(model.source_of[name]), model.needed_file(name)
    if not model.servers[parent].up or span is None or span.min is None or needed is None:
        return model.servers[parent].up
    return model.whole_from(parent, span.min) <= needed
