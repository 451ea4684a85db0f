"""Changes that a server answers with success and drops: it cleaned their origin, and was not restarted since.

389 Directory Server, a read-only server (`multisupplier_extop_cleanruv` in repl_extop.c):

    10:00  Successfully cleaned rid(1)     from here on every change of replica ID 1 is answered with success and dropped
    10:05  initialised online              still: the ID is remembered by the process, for all of its suffixes
    10:10  389-Directory/2.3.1 starting    from here on it takes them, by the next session

A supplier releases the ID before it says that it has cleaned it: it drops nothing afterwards. While its task goes on it does
(`set_cleaned_rid` in repl_cleanallruv.c, 3.1):

    10:00  Sending cleanAllRUV task to all the replicas...    from here on every change of the ID is answered and dropped
    10:40  Successfully cleaned rid(1)                        from here on it takes them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import highest, rows_where
from workbench.model import step
from workbench.rules.vectors import last
from workbench.rules.verdicts import MOMENTS_APART, REPLACED, TOTAL
from workbench.topology.suffix_evidence import Evidence

if TYPE_CHECKING:
    from workbench.diagnosis.evidence_grounds import Proofs

CLEANED_ORIGIN_BACK, CLEAN_HANGING = "CLEANED_ORIGIN_BACK", "CLEAN_HANGING"


class Remembered(NamedTuple):
    """What the errors logs of a server say of the origins that it cleaned.

    cleaned  origin -> when it logged that it cleaned it, of those that it remembers: no start of it is logged after that;
             of a task that goes on, when the server began to drop
    tasks    the origins among these of which the task goes on
    ends     when the last line of these logs was written; None: they have none
    live     the last of them was read by the collection itself, which says when: it covers the time up to that
    """

    cleaned: dict[str, datetime]
    tasks: frozenset[str]
    ends: datetime | None
    live: bool


class Spell(NamedTuple):
    """A time in which a server drops the changes of an origin; `until` None: still."""

    origin: str
    since: datetime
    until: datetime | None


class Dropping(NamedTuple):
    """Since when a server drops the changes of an origin, and where its errors log ends if an end of that is possible since.

    task   a task that cleans the origin goes on, and the server drops them until it has ended; else until it is restarted
    """

    since: datetime
    log_ends: datetime | None
    task: bool = False


def _remembered(evidence: Evidence, server: str) -> Remembered:
    proving, shown = evidence.shown.proving, evidence.shown
    if not proving.remembers_cleaned:
        return Remembered({}, frozenset(), None, False)
    codes = pc.field("code").isin([proving.cleaned, *proving.forgets_cleaned])
    columns, parts = ["at", "code", "function", "origin"], evidence.parts("messages", server)
    tasks = _going_on(evidence, server)
    rows = rows_where(parts, columns, codes & pc.field("at").is_valid()).to_pylist()
    started = max((row["at"] for row in rows if row["code"] != proving.cleaned), default=None)
    found: dict[str, datetime] = {}
    for row in rows:
        kept = row["code"] == proving.cleaned and row["function"] in proving.remembers_cleaned
        if kept and row["origin"] and (started is None or row["at"] > started):
            found[row["origin"]] = max(row["at"], found.get(row["origin"], row["at"]))
    found |= tasks
    logs = [one for one in evidence.inputs if (one.server, one.snapshot) == (server, shown.snapshot)]
    logs = [one for one in logs if evidence.parts_of("messages", one)]
    reading = next((one for one in shown.readings if one.server == server), None)
    live = reading is not None and any(not reading.files or one.file in reading.files for one in logs)
    return Remembered(found, frozenset(tasks), highest(parts, "at") if found else None, live)


def _going_on(evidence: Evidence, server: str) -> dict[str, datetime]:
    """Origin -> since when a server drops its changes, of the tasks of cleaning that had not ended where its logs end."""
    proving = evidence.shown.proving
    codes = [proving.cleaned, proving.cleaning, *proving.forgets_cleaned]
    where = pc.field("code").isin(codes) & pc.field("at").is_valid()
    rows = rows_where(evidence.parts("messages", server), ["at", "code", "origin", "numbers"], where).to_pylist()
    found: dict[str, datetime] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        said = dict(row["numbers"] or ()).get("step") or ""
        if row["code"] in proving.forgets_cleaned:
            found.clear()
        elif row["code"] == proving.cleaned or proving.given_up in said:
            found.pop(row["origin"], None)
        elif row["origin"] and said.startswith(proving.drops_from):
            found.setdefault(row["origin"], row["at"])
    return found


def dropping(proofs: Proofs, newest: str, origin: str) -> Dropping | None:
    """How a server drops the changes of an origin that it waits for, up to the newest; None: nothing shows that it does.

    Changes that were made after it cleaned the origin show that the origin is in use again. One of them in its vector shows that
    the server takes them, so it was restarted, unless the vector came with data of another server.
    """
    system, replica, evidence = proofs.system, proofs.replica, proofs.evidence
    told: Remembered = evidence.once(replica.server, _remembered)
    at = told.cleaned.get(origin)
    made, top = system.moment(system.typed(newest) or ""), last(replica.seen(), origin)
    if at is None or made is None or made <= at or _older_than_cleaning(evidence, origin, system.typed(newest) or ""):
        return None
    taken = system.moment(top) if top else None
    brought = any(one.kind in (TOTAL, REPLACED) and taken and one.ended >= taken for one in proofs.resets)
    if taken and taken > at and not brought:
        return None
    last_seen = max(made, evidence.newest.get(replica.server, made))
    return Dropping(at, _ends_too_early(told, last_seen), origin in told.tasks)


def _older_than_cleaning(evidence: Evidence, origin: str, newest: str) -> bool:
    """True if a server answered a change before it cleaned its origin itself, by its own clock: positions may be ahead of it."""
    cleaned = evidence.shown.proving.cleaned
    for server in sorted({one.server for one in evidence.inputs}):
        answered = evidence.told("applied", ["at"], pc.field("position") == newest, server)["at"]
        if not (len(answered) and (first := pc.min(answered).as_py())):
            continue
        of_it = (pc.field("code") == cleaned) & (pc.field("origin") == origin) & (pc.field("at") > pa.scalar(first))
        if len(rows_where(evidence.parts("messages", server), ["at"], of_it)):
            return True
    return False


def _ends_too_early(told: Remembered, last_seen: datetime) -> datetime | None:
    """Where the errors log ends, if a restart after that is possible."""
    covers = told.live or told.ends is None or told.ends >= last_seen - MOMENTS_APART
    return None if covers else told.ends


def remembers(proofs: Proofs) -> dict[str, Dropping]:
    """The origins that a server cleaned, remembers, and claims nothing of, where the vector of another server names them.

    It drops what it is sent of them. Data of a server whose vector names such an origin come whole, the element does not:

        h remembers ID 3, a claims 3 up to X; h is filled from a    h has all that a has, and its vector has no element 3
    """
    replica, evidence = proofs.replica, proofs.evidence
    told: Remembered = evidence.once(replica.server, _remembered)
    if not told.cleaned:
        return {}
    others = [one for one in evidence.shown.replicas if one.suffix == replica.suffix and one.server != replica.server]
    named = {origin for one in others for origin in one.seen() if last(one.seen(), origin)}
    mine = {origin: at for origin, at in told.cleaned.items() if origin in named and not last(replica.seen(), origin)}
    newest = evidence.newest.get(replica.server)
    return {
        origin: Dropping(at, _ends_too_early(told, max(at, newest or at)), origin in told.tasks)
        for origin, at in mine.items()
    }


def _spells(evidence: Evidence, server: str) -> list[Spell]:
    """When a server dropped changes: what it answered with success in these times, it did not apply.

    The last spell goes on, unless the vector of the server shows its end: a log in which nothing follows is quiet.
    """
    proving, parts = evidence.shown.proving, evidence.parts("messages", server)
    if not proving.remembers_cleaned:
        return []
    codes = pc.field("code").isin([proving.cleaned, *proving.forgets_cleaned])
    columns = ["at", "code", "function", "origin"]
    rows = rows_where(parts, columns, codes & pc.field("at").is_valid()).to_pylist()
    ends = sorted(row["at"] for row in rows if row["code"] != proving.cleaned)
    replicas = [one for one in evidence.shown.replicas if one.server == server]
    found = []
    for row in rows:
        if row["code"] != proving.cleaned or row["function"] not in proving.remembers_cleaned or not row["origin"]:
            continue
        until = next((at for at in ends if at > row["at"]), None)
        if until is None:
            tops = filter(None, (last(one.seen(), row["origin"]) for one in replicas))
            if any(made > row["at"] for made in filter(None, map(evidence.system.moment, tops))):
                continue  # its vector has taken one since: it may have been restarted
        found.append(Spell(row["origin"], row["at"], until))
    return found


def answers_that_count(evidence: Evidence, server: str) -> pc.Expression:
    """The lines of a log of operations that prove something: not those of changes that the server dropped at that time."""
    counts = pc.scalar(True)
    at, origin = pc.field("at"), pc.field("origin")
    for spell in evidence.once(server, _spells):
        during = at > pa.scalar(spell.since, pa.timestamp("us", "UTC"))
        if spell.until is not None:
            during &= at < pa.scalar(spell.until, pa.timestamp("us", "UTC"))
        counts &= at.is_null() | origin.is_null() | ~((origin == spell.origin) & during)
    return counts


def remembered_since(proofs: Proofs, origin: str) -> datetime | None:
    """When a server cleaned an origin that it remembers still, as no start after that is logged; None: nothing shows it."""
    told: Remembered = proofs.evidence.once(proofs.replica.server, _remembered)
    return told.cleaned.get(origin)


def why_dropped(proofs: Proofs, position: str) -> tuple[str, str] | None:
    """The rule by which a change does not come to a server that drops it, and its sentence; None where nothing shows that."""
    system = proofs.system
    if found := dropping(proofs, system.show(position), system.origin_of(position)):
        did = "has been cleaning the origin since" if found.task else "cleaned the origin at"
        until = _until(found.log_ends, found.task)
        return "dropped_here", f"it {did} {_time(found.since)} and drops its changes {until}"
    return None


def told_of_dropping(found: Dropping | None) -> dict[str, str | bool | None]:
    """The same in a row of what waits."""
    since, ends, task = found or (None, None, False)
    return {
        "dropped_since": since.isoformat() if since else None,
        "dropped_by_task": task,
        "restart_unknown_after": ends.isoformat() if ends else None,
    }


def dropped_rows(rows: Iterable[Mapping[str, Any]], server: str, suffix: str | None) -> dict[str, Mapping[str, Any]]:
    """Origin -> the row of what a server waits for and drops."""
    return {
        row["origin"]: row
        for row in rows
        if (row["server"], row["suffix"]) == (server, suffix) and row.get("dropped_since")
    }


def how_dropped(row: Mapping[str, Any]) -> str:
    """Why no session brings these changes, in words."""
    at, ends = _time(datetime.fromisoformat(row["dropped_since"])), row.get("restart_unknown_after")
    until = _until(datetime.fromisoformat(ends) if ends else None, row["dropped_by_task"])
    did = "has been cleaning this origin since" if row["dropped_by_task"] else "cleaned this origin at"
    return f"{row['server']} {did} {at} and drops its changes {until}"


def restart_first(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What to do about changes that a server drops."""
    code = CLEAN_HANGING if row["dropped_by_task"] else CLEANED_ORIGIN_BACK
    sent = "sessions deliver them, and" if is_sent(row) else "nobody would send them now, and if somebody did,"
    return step(f"do what {code} says on {row['server']}", f"{sent} the server drops them")


def is_sent(row: Mapping[str, Any]) -> bool:
    """True of what waits if a session would bring it, were it not dropped there."""
    return bool(row["suppliers"] or row.get("through"))


def perhaps_restarted(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The servers among those which drop changes that may have been restarted since: their errors logs end too early."""
    return sorted({row["server"] for row in rows if row.get("restart_unknown_after")})


def dropped_say(count: int, on: str, least: str, unsure: bool, task: bool) -> str:
    """`3 changes do not arrive at c, h, which drop them until they are restarted`, for a headline."""
    does, it = ("change does", "it") if count == 1 else ("changes do", "them")
    drop, are, were = ("drop", "they are", "they were") if "," in on else ("drops", "it is", "it was")
    until = f"unless {were} restarted since" if unsure else f"until {are} restarted"
    if task:
        until = "until the cleaning there has ended"
    return f"{least}{count:,} {does} not arrive at {on}, which {drop} {it} {until}"


def _until(log_ends: datetime | None, task: bool) -> str:
    """A log that ends before the server was read hides a restart, and the end of a task."""
    if log_ends is None:
        return "until that task has ended" if task else "until it is restarted"
    what = "that task ended" if task else "it was restarted"
    return f"unless {what} after {_time(log_ends)}, where its errors log ends"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
