"""Start what stands still on a replica: by hand, and not before its queue has all that it comes to."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.model import listed
from workbench.repair.plan_types import Need, ProposedRepair, Step, View
from workbench.replication.stream.diagnosis.appliers import APPLIER, Behind
from workbench.replication.stream.diagnosis.commits_elsewhere import applied_before
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.stream_verdicts import changed_ahead
from workbench.replication.stream.rules.segments import INCOMPLETE, UNFINISHED
from workbench.rules.repair_model import Model

START, GAP = "start-applier", "QUEUE_GAP"
_CODES = {INCOMPLETE: "TXN_INCOMPLETE", UNFINISHED: "TXN_UNFINISHED"}

_NAMED = 5
"""Transactions that a sentence names."""


class StartApplier:
    """Let the applier of a replica go on, once what stopped it is mended."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a replica of which a thread stands still. What its queue lacks does not come by that."""
        for link in view.model.links:
            if link.consumer != need.server or link.runs or need.code == GAP:
                continue
            stopped = _stopped(view, link.consumer)
            says = f"mend what stopped the {' and the '.join(stopped)} thread of {link.consumer}, and let it go on"
            todo = f"on {link.consumer}: see error_msg in {' and '.join(f'sys_replication.{name}_state' for name in stopped)}; "
            if APPLIER in stopped:
                todo += "mend the row that it names so that the transaction it stopped at goes through; "
            todo += "then restart the server: no command does it\n"
            step = Step(
                key=f"start-applier-{link.consumer}",
                repair=START,
                server=link.consumer,
                on=link.consumer,
                suffix=view.suffix,
                says=f"{link.consumer} goes on with what {link.supplier} committed",
                stands_on=f"the cause is mended, or it would stop again; and {link.supplier} still has all that follows",
                expects="status is RUNNING in sys_replication.applier_state and io_state, and last_applied_commit_id rises",
                risk="transactions that are skipped instead are lost on this replica without a trace",
                undo=f"stop {link.consumer}",
                sends=todo,
                effects=({"do": "run", "supplier": link.supplier, "consumer": link.consumer},),
                assumes=_assumes(view, link.supplier, link.consumer),
            )
            yield ProposedRepair(
                START,
                says,
                (step,),
                costs="it is done by hand",
                refused=_lacking_in_queue(view, link.consumer),
                unasked=_perhaps_passed(view, link.consumer),
            )


def _assumes(view: View, supplier: str, consumer: str) -> tuple[str, ...]:
    """What is taken for granted of the log that a replica goes on with, as codes."""
    streams = view.context.verdicts.streams
    assert streams is not None
    made = [
        code for origin in streams.origins if streams.source_of(origin) == supplier for code in streams.assumes(origin)
    ]
    return tuple(dict.fromkeys([*made, *streams.assumes_of_queue(consumer)]))


def _stopped(view: View, server: str) -> list[str]:
    """The threads of a replica that stand still."""
    streams = view.context.verdicts.streams
    assert streams is not None
    return sorted({name for one in streams.applied if one.server == server for name in one.stopped})


def _lacking_in_queue(view: View, server: str) -> str:
    """Why an applier must not go on: it would apply a part or what its master did not commit, or pass over what will not come."""
    streams = view.context.verdicts.streams
    assert streams is not None
    if is_filled(view.model, server):
        return ""
    mine = [one for one in streams.behind if one.applied.server == server]
    holes = {"TXN_INCOMPLETE": any(one.parts for one in mine), GAP: any(one.gaps or one.purged for one in mine)}
    codes = ", ".join(code for code, there in holes.items() if there)
    other = " holds what its master did not commit (TXN_CONFLICT)" if any(one.unlike for one in mine) else ""
    if anew := [one.applied.source for one in mine if one.applied.source in streams.history.renumbered]:
        return f"the log of {anew[0]} has other transactions under the numbers of commits than before (GONE_FROM_LOG)"
    if lost := [one for one in mine if one.gone]:
        return _gone_first(view, streams, lost[0])
    if broken := [one for one in mine if one.broken]:
        return _in_part_first(view, streams, broken[0])
    if back := [told for one in mine if (told := applied_before(streams.case, streams.shown.snapshot, one.applied))]:
        return (
            f"{server} said in snapshot {back[0][1]} that it had applied commit {back[0][0]:,}, and says less now: first see "
            "whether its rows have what it would apply once more (APPLIED_WENT_BACK)"
        )
    if alone := [one for one in mine if one.unlogged]:
        named = listed([view.context.topology.system.show(at) for (_, at), _ in alone[0].unlogged], "and", _NAMED)
        return f"the queue of {server} holds {named}, which the log of {alone[0].applied.source} lacks (GONE_FROM_LOG)"
    if changed := [one for one in mine if changed_ahead(streams, one)]:
        named = listed([*map(view.context.topology.system.show, changed_ahead(streams, changed[0]))], "and", _NAMED)
        return (
            f"it comes to {named}, of which the log of {changed[0].applied.source} has another content than an earlier one: "
            "nothing tells which one was committed (TXN_CONFLICT)"
        )
    return (
        f"the queue of {server}{f' lacks what it would come to ({codes})' if codes else other}"
        if codes or other
        else ""
    )


def _gone_first(view: View, streams: Streams, behind: Behind) -> str:
    """What an applier would pass over, for its master's log has it no more, and where it is."""
    master, show = behind.applied.source or "", view.context.topology.system.show
    wanted = {(origin, position) for (_, position), origin in behind.gone}
    logs = sorted(
        {
            one.log
            for (server, origin), gone in streams.gone.items()
            if server == master
            for one in gone
            if (origin, one.position) in wanted
        }
    )
    names, them = (
        listed([show(position) for (_, position), _ in behind.gone], "and", _NAMED),
        "it" if len(wanted) == 1 else "them",
    )
    return (
        f"the log of {master} has {names} no more, and the queue of {behind.applied.server} lacks {them}: it would pass over "
        f"{them} for good; first put the messages of {them} into its queue, from {listed(logs)} (GONE_FROM_LOG)"
    )


def _in_part_first(view: View, streams: Streams, behind: Behind) -> str:
    """What an applier would apply a part of, or pass over, for the log of its master has it in part; and where it is whole."""
    master, show = behind.applied.source or "", view.context.topology.system.show
    broken = {(origin, at): streams.broken_commits(master)[origin, at] for (_, at), origin in behind.broken}
    names, them = listed([show(at) for _, at in broken], "and", _NAMED), "it" if len(broken) == 1 else "them"
    places = sorted({each.earlier for each in broken.values() if each.earlier})
    whole = f", from {listed(places, 'and')}" if places and all(each.earlier for each in broken.values()) else ""
    codes = sorted({_CODES[each.outcome] for each in broken.values()})
    return (
        f"the log of {master} has {names} in part, and {behind.applied.server} would apply a part of {them}, or pass over {them} "
        f"for good; first put all messages of {them} into its queue{whole} ({listed(codes, 'and')})"
    )


def _perhaps_passed(view: View, server: str) -> str:
    """Why a person has to ask for it: something without an end may stand among what the applier comes to; empty: nothing may."""
    streams, show = view.context.verdicts.streams, view.context.topology.system.show
    assert streams is not None
    for one in streams.behind:
        if one.applied.server == server and one.unended and not is_filled(view.model, server):
            named = listed([*map(show, one.unended)], "and", _NAMED)
            return (
                f"the log of {one.applied.source} has {named} without an end, and lacks numbers of commits behind what {server} "
                f"applied: {server} may pass over {'it' if len(one.unended) == 1 else 'them'} for good (TXN_UNFINISHED)"
            )
    return ""


def is_filled(model: Model, server: str) -> bool:
    """True if a step gave it all data of another server, and told its applier where to go on: its queue is empty then."""
    return server in model.servers and model.servers[server].source is not None
