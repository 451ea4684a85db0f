"""Changes that only the log of a server without data still has: to fill it throws the log away.

c made 14 changes while its links were off, was initialised, and was killed in it
    its RUV names no position, its changelog was not replaced yet and has the 14, and no other server has them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.cleaned_origins import cleaned_at
from workbench.diagnosis.contents import Contents
from workbench.engine.logs import StoredLog
from workbench.engine.position_index import PositionIndex, Source, Span
from workbench.engine.positions import of_keys
from workbench.engine.selective_read import rows_at
from workbench.model import counted, ends, step
from workbench.rules.vectors import last
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica, Topology

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.diagnosis.verdict_rows import Verdicts

_AT_ONCE = 5_000
"""Changes whose contents are looked at together."""
LOG_ONLY = "log_only"
"""The key of such a row among those of stranded changes: the server itself has them no more."""


def note_left_in_logs(case: Case, shown: Topology, logs: Mapping[str, StoredLog], found: Verdicts, limit: int) -> None:
    """Add such changes to what is stranded; those that are there already as changes of the server are these."""
    for replica in shown.replicas:
        if replica.log is None or not replica.empty:
            continue
        log = logs.get(replica.log.file) or case.log(replica.log)
        evidence = Evidence(
            case, shown, replica.suffix, sorted({*log.origins(), *chain(*(one.origins() for one in logs.values()))})
        )
        hidden = _in_no_other_log(evidence, replica, log, logs)
        alone = chain(_of_nobody_else(evidence, replica, log), _with_effect(evidence, replica, found.contents, hidden))
        keys = sorted({*islice(alone, limit)})
        more = sum(1 for _ in alone)
        about = evidence.described(of_keys(shown.system, keys, evidence.numbers), [replica.log]) if keys else {}
        rows = [_row(shown, replica, key, about.get(key, {})) for key in keys]
        listed = {row["position"] for row in rows}
        told = {
            id(row)
            for row in found.stranded
            if (row["server"], row["suffix"], row["position"] in listed) == (replica.server, replica.suffix, True)
        }
        # What is beyond the list was counted as stranded on this server before.
        counted_before = found.totals["stranded"] - len(found.stranded) if told else 0
        found.stranded[:] = [row for row in found.stranded if id(row) not in told]
        found.stranded += rows
        found.totals["stranded"] += len(rows) - len(told) + max(more - counted_before, 0)


def _of_nobody_else(evidence: Evidence, replica: Replica, log: StoredLog) -> Iterator[str]:
    """The changes of its log behind what every other server has seen of their origins, but for those that these cleaned away."""
    others, moment = _others(evidence, replica), evidence.system.moment
    for origin in sorted(log.origins()) if others else ():
        newest = str((replica.log.facts["by_origin"] if replica.log else {})[origin]["max"])
        top = max(other.top(origin) for other in others)
        # Who cleaned the origin claims nothing of it any more.
        cleaned = [] if top else [evidence.once(other.server, cleaned_at).get(origin) for other in others]
        since = max(filter(None, cleaned), default=None)
        for key in log.of_origin(origin, top, newest):
            if not since or not (made := moment(key)) or made > since:
                yield key


def _in_no_other_log(
    evidence: Evidence, replica: Replica, log: StoredLog, logs: Mapping[str, StoredLog]
) -> Iterator[str]:
    """The changes of its log that others claim to have seen, and that no other log has, though each goes back further."""
    others = _others(evidence, replica)
    theirs = [logs[other.log.file] for other in others if other.log and other.log.whole and other.log.file in logs]
    if not theirs or len(theirs) < sum(other.keeps_log for other in others):
        return
    mine, place = Source(log, evidence.numbers), evidence.system.halves
    for origin in sorted(log.origins()):
        begins = [other.first_of(origin) for other in theirs]
        if top := max(other.top(origin) for other in others):
            span = Span(place(max(begin or top for begin in begins)), place(top))
            found = [
                PositionIndex(evidence.system, [Source(other, evidence.numbers), mine], evidence.names).lacking(
                    0, origin, span
                )
                for other in theirs
            ]
            some = found[0]
            for more in found[1:]:
                some = some[some.within(more)] if len(some) else some
            yield from some.keys(evidence.system, evidence.names)


def _with_effect(
    evidence: Evidence, replica: Replica, contents: Sequence[Contents], keys: Iterator[str]
) -> Iterator[str]:
    """Those that change more than what no other server need have: attributes that links leave out, notes of failed logins."""
    parts = evidence.case.parts("changes", replica.log) if replica.log else []
    others = {other.server for other in _others(evidence, replica)}
    telling = [
        (group, server)
        for group in contents
        for server in others.intersection(other.server for other in group.alike.replicas)
        if group.suffix == replica.suffix
    ]
    while some := [*islice(keys, _AT_ONCE)]:
        about: dict[str, Mapping[str, Any]] = {}
        of = of_keys(evidence.system, sorted(some), evidence.numbers)
        for there, rows in rows_at(parts, of, evidence.numbers, ["operation", "body"]):
            about |= zip(there.keys(evidence.system, evidence.names), rows.to_pylist(), strict=True)
        proving = evidence.shown.proving
        computed = {
            key
            for key, row in about.items()
            if proving.touched(row["body"] or "") <= proving.not_compared | proving.own_notes
        }
        told = [computed & these.no_effect(server, about) for these, server in telling]
        nothing = set(about).intersection(*told) if told else set()
        yield from (key for key in some if key not in nothing)


def _others(evidence: Evidence, replica: Replica) -> list[Replica]:
    """The other servers of its suffix that have data."""
    others = [other for other in evidence.shown.replicas if other.suffix == replica.suffix]
    return [other for other in others if other.server != replica.server and not other.empty]


def _row(shown: Topology, replica: Replica, key: str, about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "server": replica.server,
        "suffix": replica.suffix,
        "origin": shown.system.origin_of(key),
        "position": shown.system.show(key),
        "operation": about.get("operation"),
        "target": about.get("target"),
        LOG_ONLY: True,
    }


def left_in_log(found: Verdicts, server: str | None, suffix: str | None) -> list[Mapping[str, Any]]:
    """The rows of such changes of one server."""
    return [row for row in found.stranded if row.get(LOG_ONLY) and (row["server"], row["suffix"]) == (server, suffix)]


def save_first(found: Verdicts, server: str | None, suffix: str | None) -> tuple[str, Mapping[str, Any]] | None:
    """What the changelog of a server without data still has, in words, and what has to be done about it first."""
    if not (rows := left_in_log(found, server, suffix)):
        return None
    count, them = counted(len(rows)), "it" if len(rows) == 1 else "them"
    if "stranded" in found.cut():
        count = f"{count} and more"
    ends = rows[0]["position"], rows[-1]["position"]
    these = f"{count}, {ends[0]}" + (f" to {ends[1]}" if len(rows) > 1 else "")
    first = step(
        f"save these {count} from the changelog of {server}, and make on another supplier what of {them} is still right",
        f"an initialisation makes the changelog of {server} anew, and no other collected server has {them}",
        f"do not initialise {server} before that",
    )
    return these, first


def stranded_first(found: Verdicts, server: str, suffix: str | None) -> tuple[Mapping[str, Any], ...]:
    """The step that saves what only a server has, before a start that makes its changelog anew; none if there is nothing."""
    rows = [row for row in found.stranded if (row["server"], row["suffix"]) == (server, suffix)]
    if not rows:
        return ()
    most = f"{counted(len(rows))} and more" if "stranded" in found.cut() else counted(len(rows))
    return (
        step(
            f"save what only {server} holds, as STRANDED_CHANGE says: {most}",
            f"the first element of its RUV is not its own: a start of {server} makes its changelog anew, without them",
            f"do not restart {server} before that",
        ),
    )


def gone_with_the_data(context: DetectorContext, server: str | None, suffix: str | None) -> list[str]:
    """The own changes of a server without data that its log of operations shows, and no other server nor its changelog has.

    A line that names no suffix counts where it names an entry of this one.
    """
    one, typed = context.replica(server or "", suffix), context.topology.system.typed
    if one is None or one.origin is None or not one.empty:
        return []
    alike = [other for other in context.topology.replicas if (other.suffix, other.server != server) == (suffix, True)]
    top = max((other.top(one.origin) for other in alike if not other.empty), default="")
    log = context.case.log(one.log) if one.log else None
    made = (pc.field("origin") == one.origin) & (pc.field("outcome") == "applied") & pc.field("link").is_null()
    client = pc.field("replicated").is_null() | ~pc.field("replicated")
    spelled, found = context.topology.system.spelled, set[str]()
    for batch in context.rows("applied", ["position", "suffix", "target"], made & client, server=one.server):
        keys = (
            typed(row["position"])
            for row in batch.to_pylist()
            if row["position"] and (row["suffix"] or suffix_of(spelled(row["target"] or ""), suffix)) == suffix
        )
        found |= {key for key in keys if key and key > top and not (log and log.holds(key))}
    if found:  # what the log of another server shows as applied is there
        there = (pc.field("origin") == one.origin) & (pc.field("outcome") == "applied")
        behind = [other.server for other in alike if other.vector or other.empty]
        there &= ~pc.field("server").isin(pa.array(behind, pa.string()))
        there &= (pc.field("server") != one.server) & (pc.field("suffix").is_null() | (pc.field("suffix") == suffix))
        for batch in context.rows("applied", ["position"], there):
            found -= {typed(position) for position in batch["position"].to_pylist() if position}
    return [context.topology.system.show(key) for key in sorted(found)]


def make_again(server: str | None, gone: Sequence[str]) -> Mapping[str, Any]:
    """What to do about such changes."""
    return step(
        f"make {counted(len(gone))} of {server} again on another supplier, if still right: {ends(gone[0], gone[-1])}",
        f"the access log of {server} names operation and entry of each, and no other collected server has them",
    )


def suffix_of(target: str | None, suffix: str | None) -> str | None:
    """The suffix, if an entry of that name is in it."""
    return suffix if suffix is None or target == suffix or (target or "").endswith(f",{suffix}") else None


def claimed_alone(context: DetectorContext, server: str | None, suffix: str | None) -> str:
    """The last own change that a server whose data are gone claims, by its vector of before, beyond all others; empty: none.

    Not beyond those that keep no log: what these got they can give to nobody.
    """
    one = context.replica(server or "", suffix)
    if one is None or one.origin is None:
        return ""
    others = [
        other
        for other in context.topology.replicas
        if (other.suffix, other.server != server) == (suffix, True)
        if (other.server, suffix) not in context.without_data and other.keeps_log
    ]
    logged = (one.log.facts.get("by_origin", {}) if one.log else {}).get(one.origin, {}).get("max") or ""
    claimed = last(one.vector, one.origin) or ("" if left_in_log(context.verdicts, server, suffix) else logged)
    furthest = max((other.top(one.origin) for other in others), default="")
    return context.topology.system.show(claimed) if claimed > furthest else ""
