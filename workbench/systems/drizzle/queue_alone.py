"""What the queue of a replica shows to be lacking by itself, where no collected log of its master reaches.

The end of a transaction without a message before it, and numbers of commits between what was applied and what is there:

    applied up to 2, queue 103/1  103/3 end                    103 will be applied in part
    applied up to 2, queue commits 4 and 5                     3 will not come, if it was a transaction
    applied up to 3, log ends with 4, queue commits 4 and 6    5, the same; what is in the log is held against it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.replication.stream.diagnosis.appliers import APPLIER, Applied, lacking_said
from workbench.replication.stream.diagnosis.commits_elsewhere import Elsewhere, messages_elsewhere, said_applied
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.rules.segments import COMMITTED

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3
Stretch = tuple[int, int]
"""The first and the last of some numbers without a hole."""


def lacking_by_itself(context: DetectorContext) -> Iterator[Finding]:
    """What replicas lack in their queues where no log of their master was collected, or behind the end of that log."""
    streams, show = context.verdicts.streams, context.topology.system.show
    assert streams is not None
    for applied in streams.applied:
        if applied.commit is None or applied.queued is None or not applied.whole:
            continue  # what was applied, or a row that could not be read, may be what seems to lack
        if parts := _parts(streams, applied):
            told = streams.case, streams.shown.snapshot, streams.applied
            yield _in_part(applied, parts, messages_elsewhere(*told, applied), show)
        if applied.source is None and (passed := _passed_over(streams, applied)):
            yield _known_elsewhere(applied, passed, show)
        if stretches := absent_numbers(streams, applied):
            yield _without_numbers(streams, applied, stretches, show)


def _parts(streams: Streams, applied: Applied) -> list[tuple[int, str]]:
    """Commit and position of what has its end in the queue and lacks messages before it, as far as no log has it."""
    ended = sorted((piece.commit, at) for at, piece in applied.in_part.items() if piece.commit is not None)
    logged = _end_of_log(streams, applied)
    return [(commit, at) for commit, at in ended if logged is None or commit > logged]


def absent_numbers(streams: Streams, applied: Applied) -> list[Stretch]:
    """The numbers of commits that are not there, although a later one is, behind all that was applied and any file has.

    What has no end in the queue may have such a number: its end comes no more than the rest, for a later commit was seen.
    """
    there = {
        *(applied.queued or ()),
        *streams.passed[applied.server, applied.master],
        *(piece.commit for piece in applied.in_part.values() if piece.commit is not None),
    }
    return [*_holes(max(applied.commit or 0, _end_of_log(streams, applied) or 0), sorted(there))]


def _holes(after: int, commits: Sequence[int]) -> Iterator[Stretch]:
    """
    >>> list(_holes(2, [1, 4, 7, 8]))
    [(3, 3), (5, 6)]
    """
    for commit in commits:
        if commit > after + 1:
            yield after + 1, commit - 1
        after = max(after, commit)


def _end_of_log(streams: Streams, applied: Applied) -> int | None:
    """The last commit of the log of its master; None: it was not collected, or nothing tells which log that is."""
    return streams.logs[applied.source].last_commit if applied.source else None


def _passed_over(streams: Streams, applied: Applied) -> list[tuple[int, Elsewhere]]:
    """What a queue goes on without, and another file has: of what was taken back nothing is lacking."""
    return sorted(
        (commit, one)
        for commit, one in streams.passed[applied.server, applied.master].items()
        if one.row["outcome"] == COMMITTED
    )


def _known_elsewhere(applied: Applied, passed: Sequence[tuple[int, Elsewhere]], show: Callable[[str], str]) -> Finding:
    positions, count = [one.key[1] for _, one in passed], len(passed)
    them, are = ("it", "is") if count == 1 else ("them", "are")
    places = sorted({one.place for _, one in passed})
    named = listed([f"{show(one.key[1])}, commit {commit:,}" for commit, one in passed], "and", _NAMED)
    return Finding(
        "QUEUE_GAP",
        "error",
        f"{applied.server}: {counted(count, 'transaction')} of {_master(applied)} ({named}) {are} neither applied nor in its "
        f"queue, which goes on behind {them}: it will not ask for {them} again; {listed(places, 'and')} "
        f"{'has' if len(places) == 1 else 'have'} {them} whole",
        server=applied.server,
        origin=passed[0][1].key[0],
        items=tuple(map(show, positions[:ITEMS_SHOWN])),
        evidence=first_few({"commit": commit, "position": show(one.key[1]), "in": one.place} for commit, one in passed),
        fix=(
            step(
                f"{_stop_first(applied, them)}put the messages of {them} into its queue, from {listed(places, 'and')}",
                "a slave asks for commits above the highest that it has seen, and its applier goes on behind what it lacks",
                f"{applied.server} may have applied what follows since its files were read: then compare its rows, and "
                "provision it",
            ),
        ),
    )


def _in_part(
    applied: Applied,
    parts: Sequence[tuple[int, str]],
    elsewhere: Mapping[str, tuple[str, ...]],
    show: Callable[[str], str],
) -> Finding:
    positions, server = [at for _, at in parts], applied.server
    named = ", ".join(f"{show(at)} without {lacking_said(applied.in_part[at])}" for at in positions[:_NAMED])
    more = f" and {len(parts) - _NAMED:,} more" if len(parts) > _NAMED else ""
    cut = [show(at) for at in positions if applied.in_part[at].begins]
    passed = [show(at) for at in positions if not applied.in_part[at].begins]
    does = [f"a part of {listed(cut, 'and', _NAMED)}"] if cut else []
    does += [f"nothing of {listed(passed, 'and', _NAMED)}"] if passed else []
    them = "it" if len(parts) == 1 else "them"
    has, where = f"no collected log has {them}", f"SYS_REPLICATION_LOG of {_master(applied)}"
    if all(at in elsewhere for at in positions):
        where = listed([*dict.fromkeys(place for at in positions for place in elsewhere[at])], "and")
        has = f"the messages that it lacks are in {where}"
    return Finding(
        "TXN_INCOMPLETE",
        "error",
        f"{server}: its queue holds {counted(len(parts), 'transaction')} of {_master(applied)} in part ({named}{more}), and "
        f"{has}: its applier reads message after message until one is not "
        f"there, and would apply {' and '.join(does)}",
        server=server,
        items=tuple(map(show, positions[:ITEMS_SHOWN])),
        evidence=first_few(
            {"commit": commit, "position": show(at), "missing": applied.in_part[at].missing} for commit, at in parts
        ),
        fix=(
            step(
                f"{_stop_first(applied, 'it' if len(parts) == 1 else 'them')}put the messages that are not there into its queue, "
                f"from {where}",
                "a part of a transaction must not be applied, and a slave does not ask for what it has seen",
                f"if it applied a part already, provision {server} from its master" if cut else None,
            ),
        ),
    )


def _open_ones(streams: Streams, applied: Applied) -> list[str]:
    """The positions of what has no end in the queue, and which no log shows."""
    logs = streams.logs[applied.source] if applied.source else None
    there = sorted(at for at, piece in applied.in_part.items() if piece.commit is None)
    origin_of = streams.shown.system.origin_of
    return [at for at in there if logs is None or not logs.rows_of(origin_of(at), [at])]


def _without_numbers(
    streams: Streams, applied: Applied, stretches: Sequence[Stretch], show: Callable[[str], str]
) -> Finding:
    count, (first, last) = sum(high - low + 1 for low, high in stretches), stretches[0]
    numbers = f"commit {first:,}" if first == last else f"commits {first:,} to {last:,}"
    numbers += f" and {count - (last - first + 1):,} more" if len(stretches) > 1 else ""
    them = "it" if count == 1 else "them"
    was = "it was a transaction, it" if count == 1 else "these were transactions, they"
    opened = [show(at) for at in _open_ones(streams, applied)]
    begun = ""
    if opened:
        of_them, its = ("it", "its") if count == 1 else ("one of them", "its")
        if len(opened) > 1:
            of_them, its = ("one of these", "their") if count == 1 else ("some of them", "their")
        has, without = listed(opened, "and", _NAMED), f"without {its} end{'s' if len(opened) > 1 else ''}"
        begun = f"; {has}, which the queue has {without}, may be {of_them}, and will not come whole then, either"
    disputed = {
        commit: one
        for commit, one in streams.elsewhere[applied.server, applied.master].disputed.items()
        if any(low <= commit <= high for low, high in stretches)
    }
    differ = "".join(
        f"; {one.place} and {one.unlike} have different transactions under commit {commit:,}: nothing tells which of them "
        f"{_master(applied)} committed"
        for commit, one in sorted(disputed.items())[:_NAMED]
    )
    found = streams.case, streams.shown.snapshot, streams.applied, applied
    sent = {
        commit: who
        for commit, who in said_applied(*found, streams.logs[applied.source] if applied.source else None).items()
        if any(low <= commit <= high for low, high in stretches)
    }
    differ += "".join(
        f"; {_master(applied)} sent commit {commit:,}: {who}" for commit, who in sorted(sent.items())[:_NAMED]
    )
    between = _between_in_logs(streams, applied, stretches, show)
    differ += "".join(f"; {each.says}" for each in between)
    sure = f"no collected log {'numbers' if between else 'has'} {them}, and if {was} will not come"
    beware: str | None = "a number without a transaction is possible: one that was taken back after it had its number"
    if len(sent) == count:
        beware, sure = None, f"no collected log has {them}, and {'it' if count == 1 else 'they'} will not come"
    if between and sum(each.exact for each in between) == len(stretches):
        logs = listed(sorted({each.server for each in between}), "and")
        beware = f"the log of {logs} has as many there as numbers are absent: these are they, unless {logs} made them"
    if disputed:
        beware = f"take none of the different ones before the log of {_master(applied)} tells which one it committed"
        beware += "" if len(disputed) == count else "; of the other numbers one without a transaction is possible"
    return Finding(
        "QUEUE_GAP",
        "warning",
        f"{applied.server} applied {_master(applied)} up to commit {applied.commit:,}, and its queue goes on without {numbers}: "
        f"{sure}{begun}{differ}",
        server=applied.server,
        evidence=first_few({"first": low, "last": high} for low, high in stretches),
        fix=(
            step(
                f"look for {numbers} in SYS_REPLICATION_LOG of {_master(applied)}; "
                f"{_stop_first(applied, 'what follows')}put what is there into its queue",
                "a slave asks for commits above the highest that it has seen, and its applier goes on behind what it lacks",
                beware,
            ),
        ),
    )


class _Between(NamedTuple):
    """What the log of a server has between two commits; `exact`: as many transactions as numbers are absent there."""

    server: str
    says: str
    exact: bool


def _between_in_logs(
    streams: Streams, applied: Applied, stretches: Sequence[Stretch], show: Callable[[str], str]
) -> list[_Between]:
    """What logs that number no commits have between the two commits around a stretch; of each stretch the first log.

    queue of s   103 (commit 3)        105 (commit 5)
    log of t     101  102  103  104  105              commit 4 is 104, unless t made it itself
    """
    at = {row["commit"]: (key, row["content"]) for key, row in applied.waiting.items()}
    found = list[_Between]()
    for low, high in stretches[:_NAMED]:
        if low - 1 not in at or high + 1 not in at:
            continue
        ((origin, first), of_first), ((of, last), of_last) = at[low - 1], at[high + 1]
        for name, log in sorted(streams.logs.items()):
            rows = log.rows_of(origin, [first, last]) if origin == of and not log.by_commit and not log.lost else {}
            alike = {position: row["content"] for position, row in rows.items() if row["outcome"] == COMMITTED}
            if alike != {first: of_first, last: of_last}:
                continue
            places = rows[first][log.order], rows[last][log.order]
            between = sorted(
                (row["last"], row["position"]) for row in log.commits(*places, origin) if row["position"] != last
            )
            if 0 < len(between) <= high - low + 1:
                named = listed([show(position) for _, position in between], "and", _NAMED)
                numbers = f"commit {low - 1:,} and commit {high + 1:,}"
                says = f"the log of {name} has {named} between {show(first)} and {show(last)}, which are {numbers}"
                found.append(_Between(name, says, len(between) == high - low + 1))
                break
    return found


def _master(applied: Applied) -> str:
    return applied.source or f"master {applied.master}"


def _stop_first(applied: Applied, them: str) -> str:
    """How a step begins that changes what an applier comes to; of one that stands still there is nothing to stop."""
    return "" if APPLIER in applied.stopped else f"stop {applied.server} before its applier comes to {them}, and "
