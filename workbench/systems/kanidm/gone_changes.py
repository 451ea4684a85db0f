"""The finding CHANGES_THROWN_AWAY: changes that an earlier file of a server shows, and no collected server has any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, ends, first_few, listed, step
from workbench.replication.entry.diagnosis.earlier_states import GoneChange, ServerFile
from workbench.replication.entry.diagnosis.state_comparison import now_at, ranges_of
from workbench.rules.assumptions import COLLECTED_IN_ORDER, FILES_OF_ONE_TIME
from workbench.systems.kanidm.cid import cid_text

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

Key = tuple[str | None, str, str]
"""Suffix, server and origin."""


def changes_thrown_away(context: DetectorContext) -> Iterator[Finding]:
    """What a server showed earlier, and what nothing brings back: it was refreshed or restored before anybody pulled it."""
    found: dict[Key, list[GoneChange]] = {}
    for one in context.verdicts.gone:
        if not one.forgotten:
            key = one.change["suffix"], one.change["server"], one.change["origin"]
            found.setdefault(key, []).append(one)
    for (suffix, server, origin), gone in sorted(found.items(), key=lambda item: (item[0][0] or "", *item[0][1:])):
        gone.sort(key=lambda one: (one.change["position"], one.change["entry"], one.change["attribute"] or ""))
        replica = context.replica(server, suffix)
        if replica is not None:
            yield _finding(context, replica, origin, gone)


def _finding(context: DetectorContext, replica: Replica, origin: str, gone: Sequence[GoneChange]) -> Finding:
    server, suffix, count = replica.server, replica.suffix, len(gone)
    rows = [one.change for one in gone]
    files = list({id(file): file for one in gone for file in one.files if file.replica.server == server}.values())
    unread = sorted({name for one in gone for name in one.may_have} | {*context.not_collected(suffix)})
    them, were = ("it", "was") if count == 1 else ("them", "were")
    has = "is known to have" if unread else "has"
    lost = f"no collected server {has} {counted(count)} any more that {server} had"
    made = "" if origin in {one.replica.origin for one in files} else f" of origin {origin}"
    return Finding(
        "CHANGES_THROWN_AWAY",
        "warning" if unread else "error",
        f"{lost}{made}, {ends(rows[0]['position'], rows[-1]['position'])}: {_named(files)} {_verb(files)} {them}; "
        f"{_since(context, replica, files[-1])}",
        server=server,
        origin=origin,
        suffix=suffix,
        items=tuple(dict.fromkeys(row["position"] for row in rows[:ITEMS_SHOWN])),
        evidence=first_few(_proof(one) for one in gone),
        fix=tuple(_steps(files, server, unread, them, were)),
        root=lost,
        assumes=_assumes(context, replica, files),
    )


def _steps(
    files: Sequence[ServerFile], server: str, unread: Sequence[str], them: str, were: str
) -> Iterator[Mapping[str, Any]]:
    if unread:
        yield step(
            f"collect a backup of {listed(unread)}, and diagnose again: {'that server' if len(unread) == 1 else 'they'} may have "
            f"{them}",
            f"nothing collected tells which changes entries of {listed(unread)} show",
        )
    yield step(
        f"{'if no server has ' + them + ', ' if unread else ''}write again by hand what {_named(files)} {_verb(files)} of "
        f"{them}, on one server, if nothing newer replaced {them} since",
        "no pull and no refresh brings what no server has",
        f"if an older state of {server} was put back on purpose, {them} may have been given up with it; keep the "
        f"{'file' if len(files) == 1 else 'files'}: nothing else is known to have {them}",
    )


def _named(files: Sequence[ServerFile]) -> str:
    return listed([f"{one.file.file} of snapshot {one.file.snapshot}" for one in files])


def _verb(files: Sequence[ServerFile]) -> str:
    return "shows" if len(files) == 1 else "show"


def _proof(one: GoneChange) -> dict[str, Any]:
    keys = ("position", "operation", "target", "attribute")
    file = one.files[-1].file
    return {key: one.change[key] for key in keys if one.change[key]} | {"snapshot": file.snapshot, "file": file.file}


def _since(context: DetectorContext, replica: Replica, earlier: ServerFile) -> str:
    """What its present file shows of how the server lost them."""
    server, before = replica.server, earlier.replica.origin
    if before and replica.origin and before != replica.origin:
        return f"{server} has another server UUID since: it was refreshed, which deletes all that its supplier lacks"
    now = ranges_of(context.topology, replica).get(before or "")
    had = earlier.ranges.get(before or "")
    if before and had and (now is None or now[1] < had[1]):
        own = cid_text(now[1], before) if now else "none"
        return f"its newest own change was {cid_text(had[1], before)} then and is {own} now: it was restored from an older state"
    return f"its present file does not: {server} was restored from an older state, or lost them"


def _assumes(context: DetectorContext, replica: Replica, files: Sequence[ServerFile]) -> tuple[str, ...]:
    """The order of the files where no clock of the server tells it, and that nobody got the changes behind its own file."""
    case, shown = context.case, context.topology
    now = now_at(case, shown, replica)
    others = [one for one in shown.replicas if one.claims and one.suffix == replica.suffix and one is not replica]
    found = () if all(one.now < now for one in files) else (COLLECTED_IN_ORDER,)
    behind = any(now_at(case, shown, one) < now for one in others)
    return (*found, FILES_OF_ONE_TIME) if behind else found
