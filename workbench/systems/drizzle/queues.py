"""Threads of replicas that stand still, and what the queue of one lacks: whole transactions, or messages of them.

A slave asks its master for commits above the highest that it has seen. So what is not in its queue below that one never comes by
itself. Its applier takes what has its end there, and reads message 1, 2, 3 ... until one is not there:

    104/1  104/2  104/3 end      all of it is applied
    104/1         104/3 end      104/1 is applied, and the rest is not: a part
           104/2  104/3 end      nothing of it is applied
    104/1  104/2                 it has no end: the applier does not take it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.appliers import APPLIER, Applied, lacking_said
from workbench.replication.stream.diagnosis.commits_elsewhere import (
    applied_before,
    differing_elsewhere,
    messages_elsewhere,
)
from workbench.replication.stream.diagnosis.earlier_logs import log_in_words
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.queues import Queue, master_of
from workbench.replication.stream.diagnosis.rows import purge_below
from workbench.replication.stream.rules.segments import COMMITTED
from workbench.safety import printable
from workbench.systems import format_with
from workbench.systems.drizzle.queue_alone import absent_numbers, lacking_by_itself

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_ERROR_SHOWN = 200
"""So many characters of an error are said."""


def appliers(context: DetectorContext) -> Iterator[Finding]:
    """Threads of replicas that stand still."""
    streams = context.verdicts.streams
    assert streams is not None
    for one in streams.applied:
        filled = ", fill its queue" if _lacks_something(streams, one) else ""
        for part, error in sorted(one.stopped.items()):
            behind = f" behind commit {one.commit:,}" if part == APPLIER and one.commit is not None else ""
            does = "applies nothing" if part == APPLIER else "fetches nothing"
            yield Finding(
                "APPLIER_STOPPED",
                "error",
                f"{one.server}: the {part} thread for master {one.master} stands still{behind}{_error(error)}",
                server=one.server,
                evidence=({"server": one.server, "master": one.master, "thread": part, "error": error},),
                fix=(
                    step(
                        f"mend what the error says{filled}, then start the replica anew",
                        f"it {does} until then, and there is no command that starts the thread alone",
                        "ignoring errors skips whole transactions, and moves its position all the same",
                    ),
                ),
            )


def _error(text: str | None) -> str:
    """The last error of a thread, as the end of a sentence."""
    said = printable(text.strip()) if text else ""
    return f": {said[:_ERROR_SHOWN]}{'…' if len(said) > _ERROR_SHOWN else ''}" if said else ""


def _lacks_something(streams: Streams, one: Applied) -> bool:
    """Whether the queue of a replica lacks what it would come to, by the log of its master or by itself."""
    told = one.commit is not None and one.queued is not None and one.whole
    return (told and bool(absent_numbers(streams, one))) or any(
        behind.applied is one and (behind.gaps or behind.parts or behind.gone) for behind in streams.behind
    )


def queue_gaps(context: DetectorContext) -> Iterator[Finding]:
    """Transactions that are neither applied nor in the queue of a replica, although later ones are."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for behind in streams.behind:
        if not behind.gaps:
            continue
        one, gone, count = behind.applied, [at for (_, at), _ in behind.gaps], behind.lacks
        are, them, their = ("is", "it", "its") if count == 1 else ("are", "them", "their")
        below = purge_below(streams, one.source or "")
        cautions = [f"{one.source} must not purge commits from {below:,} on"] if below is not None else []
        if (before := applied_before(streams.case, streams.shown.snapshot, one)) and behind.gaps[0][0][0] <= before[0]:
            cautions.append(
                "first see whether its rows have them: it said that it had applied more (APPLIED_WENT_BACK)"
            )
        goes_on = f"which goes on behind {them}: it will not ask for {them} again"
        if behind.gaps[0][0][0] > behind.seen:
            goes_on = f"and the log of {one.source} begins behind {them}: it will not get {them} from there"
        yield Finding(
            "QUEUE_GAP",
            "error",
            f"{one.server}: {counted(count, 'transaction')} of {one.source} ({_named(gone, count, show)}) {are} neither applied "
            f"nor in its queue, {goes_on}",
            server=one.server,
            origin=behind.gaps[0][1],
            items=tuple(map(show, gone[:ITEMS_SHOWN])),
            evidence=first_few({"commit": commit, "position": show(at)} for (commit, at), _ in behind.gaps),
            fix=(
                step(
                    f"{_stop_first(one, them)}put {their} messages into its queue {_from(streams, one, gone)}",
                    "a slave asks for commits above the highest that it has seen, and its applier goes on behind what it lacks",
                    "; ".join(cautions) or None,
                ),
            ),
        )


def purged_unapplied(context: DetectorContext) -> Iterator[Finding]:
    """Numbers of commits between the last that a replica applied and the first that the log of its master still has."""
    streams = context.verdicts.streams
    assert streams is not None
    for behind in streams.behind:
        if behind.purged is None:
            continue
        one, (first, last, count) = behind.applied, behind.purged
        unless = " unless the queue has it" if count == 1 else " unless the queue has them"
        unless = unless if one.queued is None else ""
        numbers = f"commit {first:,}" if count == 1 else f"{count:,} commits from {first:,} to {last:,}"
        known = {
            commit: told
            for commit, told in streams.passed[one.server, one.master].items()
            if first <= commit <= last and told.row["outcome"] == COMMITTED
        }
        look = "see whether its queue has them; if not, " if one.queued is None else ""
        show, them = context.topology.system.show, "it" if len(known) == 1 else "them"
        has, places = "", listed(sorted({told.place for told in known.values()}), "and") if known else ""
        if known:
            positions = [told.key[1] for _, told in sorted(known.items())]
            has = f"; {places} ha{'s' if len({told.place for told in known.values()}) == 1 else 've'} "
            under = (
                f"{len(known):,} of these" if len(known) < count else "that number" if count == 1 else "these numbers"
            )
            has += f"{_named(positions, len(known), show)} under {under}"
        yield Finding(
            "QUEUE_GAP",
            "error",
            f"{one.server} applied {one.source} up to commit {one.commit:,}, and the log of {one.source} begins with commit "
            f"{streams.logs[one.source or ''].first_commit:,}: {numbers} will not come{unless}{has}",
            server=one.server,
            items=tuple(show(told.key[1]) for _, told in sorted(known.items())[:ITEMS_SHOWN]),
            evidence=({"server": one.server, "source": one.source, "first": first, "last": last, "count": count},),
            fix=(
                step(
                    f"{_stop_first(one, 'what follows')}{look}put the messages of {them} into its queue, from {places}",
                    f"{one.source} sends what its log has, and {one.server} applies that without asking for what was before",
                    f"if {one.server} applied what follows by now, provision it from {one.source}",
                )
                if len(known) == count
                else step(
                    f"compare the rows of {one.server} with those of {one.source}, and provision {one.server} from there if they "
                    "differ",
                    f"{one.source} sends what its log has, and {one.server} applies that without asking for what was before",
                    "a number without a transaction is possible: one that was taken back after it had its number",
                ),
            ),
        )


def queued_in_part(context: DetectorContext) -> Iterator[Finding]:
    """Transactions of which the queue of a replica holds a part, and the rest will not come."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for behind in streams.behind:
        if not behind.parts:
            continue
        one, parts, count = behind.applied, [at for (_, at), _ in behind.parts], behind.in_part
        them = "it" if count == 1 else "them"
        named = ", ".join(f"{show(at)} without {lacking_said(one.in_part[at])}" for at in parts[:3])
        more = f" and {count - 3:,} more" if count > 3 else ""
        cut = [at for at in parts if one.in_part[at].begins]
        passed = [at for at in parts if not one.in_part[at].begins]
        does = [f"a part of {_named(cut, len(cut), show)}"] if cut else []
        does += [f"nothing of {_named(passed, len(passed), show)}"] if passed else []
        applied = "" if not cut else f"if it applied a part already, provision {one.server} from {one.source}"
        yield Finding(
            "TXN_INCOMPLETE",
            "error",
            f"{one.server}: its queue holds {counted(count, 'transaction')} in part ({named}{more}): its applier reads message "
            f"after message until one is not there, and would apply {' and '.join(does)}",
            server=one.server,
            origin=behind.parts[0][1],
            items=tuple(map(show, parts[:ITEMS_SHOWN])),
            evidence=first_few(
                {"commit": commit, "position": show(at), "missing": one.in_part[at].missing}
                for (commit, at), _ in behind.parts
            ),
            fix=(
                step(
                    f"{_stop_first(one, them)}put the messages that are not there into its queue {_from(streams, one, parts)}",
                    "a part of a transaction must not be applied, and a slave does not ask for what it has seen",
                    applied or None,
                ),
            ),
        )


def queued_otherwise(context: DetectorContext) -> Iterator[Finding]:
    """Transactions that wait in the queue of a replica with another content than the log of its master has."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for behind in streams.behind:
        if not behind.unlike:
            continue
        one, unlike = behind.applied, [at for (_, at), _ in behind.unlike]
        them = "it" if behind.other == 1 else "them"
        compare = (
            f"compare {them} with the rows of {one.source}; where its log is right, put its messages into the queue in "
        )
        compare += "place of what is there"
        how, if_anew = "with another content than", f"if {one.source} was made anew, its numbers began anew: then"
        if behind.under_others:
            how = "under commits of other transactions in"
            how = (
                how
                if behind.under_others == behind.other
                else f"otherwise than, {behind.under_others:,} of them {how},"
            )
            compare = f"see whether master {one.master} is {one.source}, and whether that was made anew; then {compare}"
            if_anew = f"if {one.source} was made anew,"
        yield Finding(
            "TXN_CONFLICT",
            "error",
            f"{one.server}: its queue holds {counted(behind.other, 'transaction')} ({_named(unlike, behind.other, show)}) "
            f"{how} the log of {one.source}, its master: its applier would do what {one.source} did not commit",
            server=one.server,
            origin=behind.unlike[0][1],
            items=tuple(map(show, unlike[:ITEMS_SHOWN])),
            evidence=first_few({"commit": commit, "position": show(at)} for (commit, at), _ in behind.unlike),
            fix=(
                step(
                    f"{_stop_first(one, them)}{compare}",
                    "a slave applies what its queue holds, and does not ask for it again",
                    f"{if_anew} provision {one.server} from it",
                ),
            ),
        )


def queues_differ(context: DetectorContext) -> Iterator[Finding]:
    """Transactions that wait in a queue otherwise than another queue, or an earlier file, of the same master has them."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    told = streams.case, streams.shown.snapshot, streams.applied
    for one in streams.applied:
        log = streams.logs[one.source] if one.source else None
        for place, unlike in differing_elsewhere(*told, one, log).items():
            named = listed([f"{show(at)}, commit {commit:,}" for commit, at in unlike], "and", 3)
            them, master = "it" if len(unlike) == 1 else "them", one.source or f"master {one.master}"
            yield Finding(
                "TXN_CONFLICT",
                "error",
                f"{one.server}: its queue holds {counted(len(unlike), 'transaction')} of {master} ({named}) otherwise than "
                f"{place}, which has the rest alike: at most one of the two is what {master} committed",
                server=one.server,
                items=tuple(show(at) for _, at in unlike[:ITEMS_SHOWN]),
                evidence=first_few({"commit": commit, "position": show(at), "unlike": place} for commit, at in unlike),
                fix=(
                    step(
                        f"{_stop_first(one, them)}look for {them} in SYS_REPLICATION_LOG of {master}: where it has another one, "
                        "put its messages into the queue in place of what is there",
                        "a slave applies what its queue holds, and does not ask for it again",
                        f"fill no other queue with {them} before that",
                    ),
                ),
            )


def went_back(context: DetectorContext) -> Iterator[Finding]:
    """Replicas that say that they applied less than they said before: their rows may have what is to be applied next."""
    streams = context.verdicts.streams
    assert streams is not None
    for one in streams.applied:
        before = applied_before(streams.case, streams.shown.snapshot, one)
        if before is None or one.commit is None or one.source in streams.history.renumbered:
            continue
        (upto, snapshot), count = before, before[0] - one.commit
        master = one.source or f"master {one.master}"
        numbers = f"commit {upto:,}" if count == 1 else f"commits {one.commit + 1:,} to {upto:,}"
        yield Finding(
            "APPLIED_WENT_BACK",
            "warning",
            f"{one.server} says that it applied {master} up to commit {one.commit:,}, and said {upto:,} in snapshot {snapshot}: "
            "it was set back, or its state alone was",
            server=one.server,
            evidence=({"master": one.master, "commit": one.commit, "before": upto, "snapshot": snapshot},),
            fix=(
                step(
                    f"{_stop_first(one, numbers)}look for the rows that {numbers} changed on {one.server}",
                    f"if these rows are there, {one.server} must not apply {numbers} once more",
                    f"if they are not there, {one.server} was set back, and needs {numbers} again",
                ),
            ),
        )


def unmatched(context: DetectorContext) -> Iterator[Finding]:
    """Masters of replicas of which nothing tells whose log was collected: what a replica lacks of these is not known."""
    streams = context.verdicts.streams
    assert streams is not None
    for one in streams.applied:
        if not one.unmatched:
            continue
        numbering = sorted(name for name, log in streams.logs.items() if log.by_commit and name != one.server)
        earlier = _earlier_master(streams, one)
        says = f"nothing tells whether master {one.master} is {listed(numbering, 'or')}: its queue does not show more of what "
        says += "one of these logs has, under the same commits and alike, than otherwise"
        if earlier:
            says = f"master {one.master} has what {earlier} has, and no present log of it was collected"
        yield Finding(
            "MASTER_NOT_MATCHED",
            "warning",
            f"{one.server}: {says}. What {one.server} lacks of it is not known",
            server=one.server,
            evidence=({"server": one.server, "master": one.master, "commit": one.commit, "logs": numbering},),
            fix=(
                step(
                    f"read which server master {one.master} of {one.server} is, in its configuration, and collect "
                    f"SYS_REPLICATION_LOG of that server and the queue of {one.server} again",
                    "a slave numbers its masters by itself, and each master numbers its own commits",
                ),
            ),
        )


def _earlier_master(streams: Streams, one: Applied) -> str:
    """The log of a server of an earlier snapshot that has what waits in a queue, in words; empty: none, or several servers."""
    labels = [*streams.case.snapshots]
    found: dict[str, str] = {}
    for label in labels[: labels.index(streams.shown.snapshot)]:
        files = [file for file in streams.case.inputs if file.snapshot == label and file.kind]
        logs = [streams.stored(file.server, file) for file in files if format_with(file.kind).is_log]
        others = [log for log in logs if log.server not in streams.logs and log.by_commit]
        if server := master_of(Queue(whole=dict(one.waiting)), others):
            found[server] = log_in_words(server, label)
    return next(iter(found.values())) if len(found) == 1 else ""


def _named(positions: Sequence[str], count: int, show: Callable[[str], str]) -> str:
    return ", ".join(map(show, positions[:3])) + (f" and {count - 3:,} more" if count > 3 else "")


def _stop_first(one: Applied, them: str) -> str:
    """How a step begins that changes what an applier comes to; of one that stands still there is nothing to stop."""
    return "" if APPLIER in one.stopped else f"stop {one.server} before its applier comes to {them}, and "


def _from(streams: Streams, one: Applied, positions: Sequence[str]) -> str:
    """Where messages of transactions can be taken from, as the end of a sentence."""
    log = streams.logs[one.source or ""]
    places: dict[str, tuple[str, ...]] = {
        told.key[1]: (told.place,) for told in streams.passed[one.server, one.master].values()
    }
    rows = [row for origin in log.sums for row in log.rows_of(origin, list(positions)).values()]
    whole = sum(row["outcome"] == COMMITTED for row in rows)
    if whole == len(positions):
        return f"from the log of {one.source}"
    places |= messages_elsewhere(streams.case, streams.shown.snapshot, streams.applied, one)
    if {*positions} <= places.keys():
        return f"from {listed(sorted({place for at in positions for place in places[at]}), 'and')}"
    held = (
        f": its exported log holds {whole:,} of them whole" if whole else ": its exported log does not hold them whole"
    )
    return f"from {one.source}{held if len(positions) > 1 else held.replace('them', 'it')}"


QUEUES = (
    appliers,
    queue_gaps,
    purged_unapplied,
    queued_in_part,
    lacking_by_itself,
    queued_otherwise,
    queues_differ,
    unmatched,
    went_back,
)
"""What looks for findings on the threads and queues of replicas."""
