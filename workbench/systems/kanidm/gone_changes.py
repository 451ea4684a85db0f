"""The finding CHANGES_THROWN_AWAY: changes that an earlier file of a server shows, and no collected server has any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.model import ITEMS_SHOWN, Finding, counted, ends, first_few, listed, step
from workbench.replication.entry.diagnosis.earlier_states import GoneChange
from workbench.replication.entry.diagnosis.file_times import of_gone
from workbench.replication.entry.diagnosis.server_files import ServerFile, not_again, own_of
from workbench.systems.kanidm.cid import cid_text

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Key = tuple[str | None, str, str]
"""Suffix, server and origin."""


def changes_thrown_away(context: DetectorContext) -> Iterator[Finding]:
    """What a server showed earlier, and what nothing brings back: it was refreshed or restored before anybody pulled it."""
    found: dict[Key, list[GoneChange]] = {}
    for one in context.verdicts.gone:
        if not one.forgotten:
            key = one.change["suffix"], one.change["server"], one.change["origin"]
            found.setdefault(key, []).append(one)
    for (_, _, origin), gone in sorted(found.items(), key=lambda item: (item[0][0] or "", *item[0][1:])):
        gone.sort(key=lambda one: (one.change["position"], one.change["entry"], one.change["attribute"] or ""))
        yield _finding(context, origin, gone)


class _Doubt(NamedTuple):
    """Who may still have changes that no collected server shows.

    unread   servers of which nothing collected tells what entries show
    again    last files of servers that were not collected again, and may have received them since
    shown    those that show them
    unseen   the UUID of the server that made them, of which no file is known
    """

    unread: Sequence[str]
    again: Sequence[ServerFile]
    shown: Sequence[ServerFile]
    unseen: str | None

    def __bool__(self) -> bool:
        return bool(self.unread or self.again or self.unseen)


def _doubt(context: DetectorContext, suffix: str | None, gone: Sequence[GoneChange]) -> _Doubt:
    again = {one.replica.server: one for each in gone for one in each.not_again}
    shown = {one.replica.server: one for each in gone for one in each.shown_by if one.replica.server in again}
    # What earlier files tell of a server that was not collected again, is told by its last one.
    not_read = {*context.not_collected(suffix)} - {server for server, _ in not_again(context.case, context.topology)}
    unread = sorted({name for one in gone for name in one.may_have} | not_read - again.keys())
    made = gone[0].change["origin"]
    unseen = made if gone[0].maker_unseen and not not_read else None
    return _Doubt(unread, [again[name] for name in sorted(again)], [shown[name] for name in sorted(shown)], unseen)


def _finding(context: DetectorContext, origin: str, gone: Sequence[GoneChange]) -> Finding:
    rows, last = [one.change for one in gone], gone[0].last
    server, suffix, count = rows[0]["server"], rows[0]["suffix"], len(gone)
    files = list({id(file): file for one in gone for file in one.files}.values())
    doubt = _doubt(context, suffix, gone)
    them, were = ("it", "was") if count == 1 else ("them", "were")
    has = "is known to have" if doubt.unread else "has"
    lost = f"no collected server {has} {counted(count)} any more that {server} had"
    made = "" if origin in {one.replica.origin for one in files} else f" of origin {origin}"
    return Finding(
        "CHANGES_THROWN_AWAY",
        "warning" if doubt else "error",
        f"{lost}{made}, {ends(rows[0]['position'], rows[-1]['position'])}: {_named(files)} {_verb(files)} {them}; "
        f"{_since(context, last, files[-1])}",
        server=server,
        origin=origin,
        suffix=suffix,
        items=tuple(dict.fromkeys(row["position"] for row in rows[:ITEMS_SHOWN])),
        evidence=first_few(_proof(one) for one in gone),
        fix=tuple(_steps(context, files, server, doubt, them, were)),
        root=lost,
        assumes=of_gone(context, gone),
    )


def _steps(
    context: DetectorContext, files: Sequence[ServerFile], server: str, doubt: _Doubt, them: str, were: str
) -> Iterator[Mapping[str, Any]]:
    if doubt.unread:
        yield step(
            f"collect a backup of {listed(doubt.unread)}, and diagnose again: "
            f"{'that server' if len(doubt.unread) == 1 else 'they'} may have {them}",
            f"nothing collected tells which changes entries of {listed(doubt.unread)} show",
        )
    since = [one for one in doubt.again if one not in doubt.shown]
    if doubt.again:
        told = [f"{_named(doubt.shown)} {_verb(doubt.shown)} {them}, too"] if doubt.shown else []
        if since:
            told.append(
                f"{listed([one.replica.server for one in since])} may have received {them} since {_named(since)}"
            )
        names = listed([one.replica.server for one in doubt.again])
        yield step(
            f"collect a backup of {names} again, and diagnose again before anybody refreshes or restores it"
            if len(doubt.again) == 1
            else f"collect a backup of {names} again, and diagnose again before anybody refreshes or restores them",
            f"snapshot {context.topology.snapshot} has no file of {names}: {'; '.join(told)}",
            f"who has {them} sends {them} to each server whose vector ends before {them}, as soon as that pulls",
        )
    if doubt.unseen:
        yield step(
            f"find the server of UUID {doubt.unseen} (`db_s_uuid`), collect a backup of it, and diagnose again",
            f"it made {them}, and no collected file is of it: if it still runs, it may have {them}, and send {them} to each "
            f"server whose vector ends before {them}",
        )
    no_other = "no collected server has" if doubt.shown else "nothing else is known to have"
    yield step(
        f"{'if no server has ' + them + ', ' if doubt else ''}write again by hand what {_named(files)} {_verb(files)} of "
        f"{them}, on one server, if nothing newer replaced {them} since",
        "no pull and no refresh brings what no server has",
        f"if an older state of {server} was put back on purpose, {'they' if them == 'them' else 'it'} may have been given up "
        f"with it; keep the {'file' if len(files) == 1 else 'files'}: {no_other} {them}",
    )


def _named(files: Sequence[ServerFile]) -> str:
    return listed([f"{one.file.file} of snapshot {one.file.snapshot}" for one in files])


def _verb(files: Sequence[ServerFile]) -> str:
    return "shows" if len(files) == 1 else "show"


def _proof(one: GoneChange) -> dict[str, Any]:
    keys = ("position", "operation", "target", "attribute")
    file = one.files[-1].file
    return {key: one.change[key] for key in keys if one.change[key]} | {"snapshot": file.snapshot, "file": file.file}


def _since(context: DetectorContext, last: ServerFile, earlier: ServerFile) -> str:
    """What its last file shows of how the server lost them."""
    server, before, own = last.replica.server, earlier.replica.origin, own_of(last.file) or last.replica.origin
    collected = last.file.snapshot == context.topology.snapshot
    by = "" if collected else f", as {_named([last])} shows"
    domains = earlier.replica.generation, last.replica.generation
    if None not in domains and domains[0] != domains[1]:
        return (
            f"{server} is in another domain since{by}: it was refreshed into that of {domains[1]}, and keeps nothing of its "
            "former one"
        )
    if before and own and before != own:
        return (
            f"{server} has another server UUID since{by}: it was refreshed, which deletes all that its supplier lacks"
        )
    now = last.ranges.get(before or "")
    had = earlier.ranges.get(before or "")
    if before and had and (now is None or now[1] < had[1]):
        newest = cid_text(now[1], before) if now else "none"
        is_now = "is" if collected else "was"
        return (
            f"its newest own change was {cid_text(had[1], before)} then and {is_now} {newest} "
            f"{'now' if collected else 'in ' + _named([last])}: it was restored from an older state"
        )
    file = "its present file" if collected else _named([last])
    return f"{file} does not: {server} was restored from an older state, or lost them"
