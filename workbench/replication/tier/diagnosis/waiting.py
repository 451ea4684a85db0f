"""What to do about log records that nothing brings to a node of a tier as the nodes are now: the finding that says how."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.model import listed, step
from workbench.replication.tier.diagnosis.log_falls import Kept
from workbench.replication.tier.diagnosis.log_files import needed_file
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.tree_rows import SILENT, gone_says, lacking_its_file, place_text, unlisted
from workbench.replication.tier.rules.conditions import (
    CYCLE,
    FED,
    GAPPED,
    NO_SOURCE,
    ORPHAN,
    PENDING,
    SAYS,
    STOPPED,
    UNTOLD,
    WAITING,
)

_SAID_BY = {STOPPED: "REPLICANT_INACTIVE"} | dict.fromkeys((PENDING, NO_SOURCE, GAPPED), "REPLICANT_INACTIVE")
_SAID_BY |= dict.fromkeys(SILENT, "REPLICANT_HUNG") | {CYCLE: "TOPOLOGY_CYCLE", ORPHAN: "TOPOLOGY_ORPHAN"}
"""Condition of a node -> the code of the finding that every node in it has."""

Step = Mapping[str, str | None]


def waiting_step(tiers: Tiers, name: str) -> Step:
    """The first thing to do so that a node goes on, which nobody brings what it waits for.

    It names the finding that says how: each condition of a node has one.

        A@a1 is frozen, B@b1 pulls from it        B@b1: do what REPLICANT_HUNG says of A@a1
        B@b1 pulls from A@a1, which lacks file 8   B@b1: do what LOG_GAP says of B@b1
    """
    state = tiers.states[name]
    if tiers.seen.of_unknown_age(name):
        return _do("CLOCK_AHEAD", [name], "its last report is of a time to come, and it was not asked: it may be gone")
    if (standing := tiers.standstills.get(name)) and state not in SILENT | WAITING and not tiers.gap(name):
        code = "REPLICANT_INACTIVE" if standing.no_source else "STALLED_BUT_GREEN"
        return _do(code, [name], f"{name} is connected, and gets nothing")
    if state not in SILENT | WAITING and (tiers.logs.cut_back(name) or tiers.logs.unjoined(name)):
        return _do(
            "LOG_DIVERGED",
            [name],
            "its log is another one than that of its source: it gets nothing before that is mended",
        )
    if name not in tiers.roots(tiers.source_of(name) or "") and (stopping := _stopping(tiers, name)):
        code, node = stopping
        return _do(
            code, [node], f"{name} pulls from there, and gets no further than the log of {node} is that of the source"
        )
    if name in (roots := tiers.roots(tiers.source_of(name) or "")):
        gone = [node for node in roots if tiers.states[node] in SILENT and node != name]
        silent = [name] if state in SILENT else gone
        why = (
            SAYS[state]
            if state in SILENT
            else "a cluster brings its own nodes up to date, and no other node of it is there"
        )
        return _do("REPLICANT_HUNG", silent, why) if silent else _collect(name)
    if tiers.gap(name) or (state in FED and lacking_its_file(tiers, name)):
        return _do("LOG_GAP", [name], f"{name} needs log file {needed_file(tiers, name)} before all else")
    if state in WAITING:
        return _for_a_source(tiers, name, state)
    if state in _SAID_BY:
        return _do(_SAID_BY[state], [name], gone_says(tiers, name))
    if state in FED:
        return _above(tiers, name)
    return _collect(name)


def _stopping(tiers: Tiers, name: str) -> tuple[str, str] | None:
    """A node that one pulls from, whose log lacks something behind the end of that one's or is another one; and the code."""
    last, place = tiers.last(name), tiers.place(name)
    parents = [one for one in place.parents if tiers.states.get(one) not in SILENT] if place and last else []
    if apart := [one for one in parents if one in tiers.not_elected]:
        return ("LOG_DIVERGED", apart[0]) if len(apart) == len(parents) else None
    if not parents or last is None or not all(tiers.logs.stops_behind(one, last) for one in parents):
        return None
    other = [one for one in parents if any(at > last for at in tiers.logs.other_history(one))]
    return ("LOG_DIVERGED", other[0]) if other else ("LOG_GAP", parents[0])


def _for_a_source(tiers: Tiers, name: str, state: str) -> Step:
    """What lets a node find a source that waits for one."""
    offer = tiers.offer(name)
    if any(pull.name == name for pull in tiers.seen.awaited) and tiers.seen.knows_pulls_of(name):
        return _do(
            "REVERSE_LINK_MISSING", [name], "it does not connect by itself: it waits until its source connects to it"
        )
    if offer and offer.refused:
        return step("do what PENDING_LIMIT says", f"the registry offers {name} no source: {offer.refused}")
    return _do(_SAID_BY[state], [name], SAYS[state])


def _above(tiers: Tiers, name: str) -> Step:
    """What lets a node go on that is connected: the nodes that it pulls from have no more for it."""
    if name not in tiers.seen.nodes and name in unlisted(tiers):
        return _do("TOPOLOGY_ORPHAN", [name], f"the registry has no row of {name}")
    place = tiers.place(name)
    parents = list(place.parents) if place else []
    if silent := [node for node in parents if tiers.states.get(node) in SILENT]:
        return _do("REPLICANT_HUNG", silent, f"{name} pulls from {listed(silent, 'and')}, and does not get on")
    if parents and all(tiers.states.get(node, UNTOLD) != UNTOLD for node in parents):
        them = "it" if len(parents) == 1 else "they"
        return step(
            f"first do what is said of {listed(parents, 'and')}",
            f"{name} pulls from there, and {them} cannot go on {'itself' if len(parents) == 1 else 'themselves'}",
        )
    return _collect(name)


def _do(code: str, names: list[str], why: str) -> Step:
    return step(f"do what {code} says of {listed(names, 'and')}", why)


def _collect(name: str) -> Step:
    return step(
        "collect the tables of the registry and the answers of the nodes once more",
        f"nothing tells from whom {name} pulls, or what keeps it from going on",
    )


def saved_first(tiers: Tiers, kept: Kept) -> Step:
    """What comes before a node that may be the last to have something connects anew."""
    name = kept.holder.name
    begin = place_text(tiers, kept.behind) if kept.behind > (0, 0) else "its oldest file"
    why = "on connecting it cuts off what stands behind the newest commit that both have"
    if not tiers.there(name):
        return step(f"first copy the log files of {name} from {begin} on before it is started again", why)
    return step(
        f"first dump the log of {name} from {begin} on before it connects anew, and restart nothing there until then",
        why,
    )
