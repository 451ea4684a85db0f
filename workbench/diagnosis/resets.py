"""What replaced the data or the log of a server, and when: by its messages, by the links to it, and by its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.cleaned_origins import cleaned_at
from workbench.diagnosis.initialisations import broken_off, initialisations
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import FILLING, spans_of, stores_of
from workbench.rules.verdicts import LOG_REPLACED, MOMENTS_APART, REPLACED, TOTAL, Proving, Reset
from workbench.systems import format_with
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

CLOCKS_APART = timedelta(seconds=60)
"""By how much the clocks of an origin and of a server that was initialised may differ."""
_TIME = pa.timestamp("us", "UTC")
_NEVER = datetime.min.replace(tzinfo=UTC)
_AHEAD = timedelta(seconds=5)
"""By how much a position may be ahead of its origin's clock: more, and an import soon after an initialisation looks like it."""


def resets_of(evidence: Evidence, replica: Replica, proving: Proving, marks: Mapping[str, str]) -> list[Reset]:
    """What replaced the data or the log of a server, in the order of time: by its messages, by links to it, and by its log."""
    codes = pa.array(sorted(proving.reset_codes), pa.string())
    columns = ["at", "code", "numbers", "suffix"]
    # A log that is collected again begins with the lines that it had before: each counts once.
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    where = pc.field("code").isin(codes) & pc.field("at").is_valid()
    for part in evidence.parts("messages", replica.server):
        for row in rows_where([part], columns, where).to_pylist():
            rows.setdefault((row["at"], row["code"], *sorted(dict(row["numbers"] or ()).items())), row)
    in_time = sorted(rows.values(), key=lambda row: row["at"])
    several = any(evidence.of_several(one) for one in evidence.inputs if one.server == replica.server)
    logged = proving.resets(in_time, replica.suffix, stores_of(evidence.case.inputs, replica.server), several)
    logged = [
        one if one.sure or one.ended > one.began else _until_it_took_more(evidence, replica, one) for one in logged
    ]
    found = [*logged]
    came = initialisations(evidence, replica)
    for _, began, ended in broken_off(evidence, replica):
        if any(abs(other - began) < CLOCKS_APART for _, other, _ in came):
            continue  # it was done again at once
        # What the server's own log takes for a whole one ended early: the old data is gone, and the new is not whole.
        found = [one for one in found if one.kind != TOTAL or abs(one.began - began) >= CLOCKS_APART]
        if not any(one.kind == REPLACED and abs(one.began - began) < CLOCKS_APART for one in found):
            found.append(Reset(REPLACED, began, ended, failed=True))
    for _, began, ended in came:
        found = [one for one in found if one.sure or abs(one.began - began) >= CLOCKS_APART]
        if not any(reset.kind == TOTAL and abs(reset.began - began) < CLOCKS_APART for reset in found):
            found.append(Reset(TOTAL, began, ended))
    told = [row["at"] for row in in_time if row["code"] != proving.started]
    mine = (one for one in evidence.inputs if one.server == replica.server)
    for began, ended in _joined(span for one in mine for span in spans_of(one, FILLING)):
        # Whoever loses the lines of its errors log that tell of a filling, has those of its access log.
        if not any(began - CLOCKS_APART < at < ended + CLOCKS_APART for at in told) and not any(
            one.began - CLOCKS_APART < ended and began < one.ended + CLOCKS_APART for one in found
        ):
            found.append(Reset(TOTAL, began, ended, sure=False))
    found.sort(key=lambda reset: reset.began)
    replacing = [reset for reset in found if reset.kind in (REPLACED, TOTAL)]
    moments = [moment for moment in map(evidence.system.moment, marks.values()) if moment]
    if read := evidence.began.get(replica.server):
        # A mark of a time to come is of a clock that was ahead: it does not tell when the log was made anew.
        moments = [moment for moment in moments if moment < read + MOMENTS_APART]
    # A server that logged its initialisation would have logged an import behind it, too; the link that tells of one would not.
    slack = CLOCKS_APART if replacing and replacing[-1] in logged else _AHEAD
    # The lines that tell of a log that is not open do not tell the suffix.
    opened = _opened(evidence, replica, proving, replacing) if moments and not several else []
    mark = max(moments, default=None)
    known = mark and any(mark <= one.ended + CLOCKS_APART for one in opened)
    if mark and not known and (not replacing or replacing[-1].ended + slack < mark):
        # The log was made anew after all that is known: nobody says by what, and when.
        made = _first_made(evidence, replica, mark) or _emptied_by_cleaning(evidence, replica, proving, mark)
        found.append(Reset(LOG_REPLACED, mark, made) if made else Reset(REPLACED, mark, mark))
    return sorted([*found, *opened], key=lambda reset: reset.began)


def _opened(evidence: Evidence, replica: Replica, proving: Proving, replacing: Iterable[Reset]) -> list[Reset]:
    """The last time without an open log that a start ended, where the log begins there: the data stayed.

    Its records tell: none was made before the log was closed, and none of the server itself before the start.

    12:00 made a supplier while it runs: no log is open    12:05 a client writes 7    12:10 it starts    its log: 8 9
    """
    closed = evidence.moments(replica.server, {proving.log_closed}) if proving.log_closed and replica.log else []
    if not closed or replica.log is None:
        return []
    starts = evidence.moments(replica.server, {proving.started})
    turns = [*starts, *evidence.moments(replica.server, proving.log_opened)]
    start = min((at for at in turns if at > closed[-1]), default=None)
    since = max((at for at in turns if at <= closed[-1]), default=_NEVER)
    first = min(at for at in closed if at > since or at == closed[-1])
    if start not in starts:
        return []
    # While data are replaced none is open either.
    if any(one.began - CLOCKS_APART < start and first < one.ended + CLOCKS_APART for one in replacing):
        return []
    made = {
        origin: evidence.system.moment(str(one["min"]))
        for origin, one in replica.log.facts.get("by_origin", {}).items()
    }
    begins = all(at and at >= (start if origin == replica.origin else first) - _AHEAD for origin, at in made.items())
    return [Reset(LOG_REPLACED, first, start)] if begins else []


def _first_made(evidence: Evidence, replica: Replica, mark: datetime) -> datetime | None:
    """When a server made its first change of all, where its log begins with it: it became a supplier, and its data stayed.

    What replaces data stands in its errors log, which reaches back behind the marks of its log.

    09:49 filled    09:54 the newest change that it has: the mark    09:56 made a supplier    09:56:03 its first change: own
    """
    own = replica.vector.get(replica.origin) if replica.origin else None
    logged = replica.log.facts.get("by_origin", {}).get(replica.origin) if replica.log else None
    if not own or not own.min or not logged or str(logged["min"]) != own.min:
        return None
    mine = (one for one in evidence.inputs if one.server == replica.server)
    logs = (one.facts.get("time", {}).get("min") for one in mine if format_with(one.kind).evidence == "errors_log")
    told, began = min(filter(None, logs), default=""), evidence.system.moment(own.min)
    return began if began and told and datetime.fromisoformat(told) < mark <= began + _AHEAD else None


def _emptied_by_cleaning(evidence: Evidence, replica: Replica, proving: Proving, mark: datetime) -> datetime | None:
    """When a server emptied its log as it started, only because it had cleaned its own origin out of its vector: its data stayed.

    09:54 a cleaning takes the element of its own replica ID out    09:58 it starts: log and vector differ, the log is emptied
    """
    own = replica.origin
    cleaned = cleaned_at(evidence, replica.server).get(own) if own and proving.claims_differ else None
    emptied = max(evidence.moments(replica.server, proving.log_removed), default=None)
    if cleaned is None or emptied is None or not max(cleaned, mark) <= emptied:
        return None
    start = max((at for at in evidence.moments(replica.server, {proving.started}) if at <= emptied), default=None)
    if start is None or start < cleaned:
        return None
    where = (pc.field("code") == proving.claims_differ) & (pc.field("at") >= pa.scalar(start, _TIME))
    where &= pc.field("at") <= pa.scalar(emptied, _TIME)
    rows = rows_where(evidence.parts("messages", replica.server), ["origin"], where)
    return emptied if {*rows["origin"].to_pylist()} == {own} else None


def _joined(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Stretches of time in order, those that follow each other at once as one: a log may be switched in the middle."""
    found: list[tuple[datetime, datetime]] = []
    for began, ended in sorted(spans):
        if found and began - found[-1][1] < CLOCKS_APART:
            found[-1] = found[-1][0], max(found[-1][1], ended)
        else:
            found.append((began, ended))
    return found


def _until_it_took_more(evidence: Evidence, replica: Replica, reset: Reset) -> Reset:
    """One whose end no line tells: it was over before the server took the next change, as far as its log shows that."""
    where = (pc.field("outcome") == "applied") & (pc.field("at") > pa.scalar(reset.began, _TIME))
    first = pc.min(evidence.told("applied", ["at"], where, replica.server)["at"]).as_py()
    return reset._replace(ended=first - timedelta(microseconds=1)) if first else reset
