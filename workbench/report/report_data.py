"""What a report is about, as plain data without a sentence of ours: names stand in it under keys that tell what they name.

So names are replaced here, where it is known which text is one; the sentences (`report_text`) are made of what is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import workbench
from workbench.diagnosis.diagnosis_text import beyond_the_cut, summed, untold
from workbench.diagnosis.incident import Incident
from workbench.engine.parquet_read import read_part
from workbench.intake.inputs import Input
from workbench.journal import records_of
from workbench.model import Problem
from workbench.repair.case_plan import kept_plan
from workbench.repair.plan_page import journal_rows, page_of
from workbench.repair.plan_progress import BEGINS, JOURNAL, half_done, state_of
from workbench.report.streamed import streamed
from workbench.report.tiered import tiered
from workbench.systems import format_with
from workbench.topology.timeline import EVER, NEVER, Timeline
from workbench.views.overview import LISTS, mesh_data, pair_of, suffixes
from workbench.views.verdict_style import MISSING, PRESENT, UNKNOWN, worst

Row = Mapping[str, Any]

SHOWN = 25
"""Missing changes that are named of each server and origin; all of them are counted."""
PROVEN = 3
"""Of these, so many with the rows that prove it."""
_ROWS = 4
_EVENTS = 150
_UNKNOWN = 20
_AROUND = 2
_SEARCHED = 6
_SOON = timedelta(seconds=60)


def gathered(incident: Incident, shown: int = SHOWN) -> dict[str, Any]:
    """All that a report rests on; `wording.worded` says what becomes of it. Same case, same data, but for `run`."""
    found = incident.found
    plan = _plan(incident)
    line = Timeline(incident.then)
    groups = list(_groups(incident, line, shown))
    verdict = (
        worst([shade for name, shade in LISTS if found[name]]) if any(found[name] for name, _ in LISTS) else PRESENT
    )
    summary = summed(found)
    journal, damaged = _journal(incident)
    return {
        "summary": summary,
        "verdict": worst([verdict, UNKNOWN]) if untold(found) else verdict,
        "case": {
            "name": found["case"]["name"],
            "system": incident.system.title,
            "snapshots": found["case"]["snapshots"],
            "snapshot": incident.then_label,
        },
        "half_done": _half_done(incident),
        "kept_by": [{"suffix": suffix, "servers": _keepers(incident, suffix)} for suffix in suffixes(incident)],
        "timeline": _timeline(incident, line, groups, journal),
        "topology": [mesh_data(incident, suffix) for suffix in suffixes(incident)],
        "missing": groups,
        "open": _open(incident),
        "stream": streamed(incident, shown),
        "trees": tiered(incident),
        "causes": [cause for one in groups for cause in _causes(incident, one)],
        "findings": [_finding(one) for one in found["findings"]],
        "plan": plan,
        "journal": journal,
        "journal_problem": damaged,
        "verification": list(_verification(incident, plan)),
        "inventory": list(_inventory(incident)),
        "run": {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", "version": workbench.__version__},
    }


def _keepers(incident: Incident, suffix: str | None) -> list[str]:
    return sorted({one["name"] for one in incident.found["servers"] if one["suffix"] == suffix})


# --- what is missing


def _groups(incident: Incident, line: Timeline, shown: int) -> Iterator[dict[str, Any]]:
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in incident.found["missing"]:
        rows.setdefault((row["suffix"] or "", row["server"], row["origin"]), []).append(row)
    total = incident.found["run"]["truncated"].get("missing")
    alone = len(rows) == 1 and not beyond_the_cut(incident.found, "missing")
    makers = {(one["suffix"] or "", one["origin"]): one["name"] for one in incident.found["servers"] if one["origin"]}
    for (suffix, server, origin), mine in sorted(rows.items()):
        held = Counter(name for row in mine for name in row["held_by"])
        last = mine[-1]["position"] if total is None else None  # of a list that was cut the last row is no last change
        yield {
            "server": server,
            "suffix": suffix or None,
            "origin": origin,
            "made_on": makers.get((suffix, origin)),
            "count": total if total and alone else len(mine),
            "at_least": total is not None and not alone,
            "listed": len(mine),
            "first": mine[0]["position"],
            "first_at": incident.when(mine[0]["position"]),
            "last": last,
            "last_at": incident.when(last),
            "held_by": sorted(held),
            "holders": [{"server": name, "count": count} for name, count in sorted(held.items())],
            "held_by_none": sum(not row["held_by"] for row in mine),
            "causes": [
                {"code": code, "count": len(some), "first": some[0]["position"], "reasons": _reasons(some)}
                for code, some in _by_cause(mine)
            ],
            "replaced": list(_replaced_after(incident, line, server, suffix or None, mine[0]["position"])),
            "changes": [_change(incident, row) for row in mine[:shown]],
            "more": max(0, (total if total and alone else len(mine)) - shown),
            "proofs": [_proof(incident, row) for row in mine[:PROVEN]],
        }


def _by_cause(rows: Sequence[Row]) -> list[tuple[str | None, list[Row]]]:
    """The causes that the changes have, that of most of them first; None: open."""
    of: dict[str | None, list[Row]] = {}
    for row in rows:
        of.setdefault(row["cause"], []).append(row)
    return sorted(of.items(), key=lambda one: (-len(one[1]), one[0] or "~"))


def _reasons(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(reason for row in rows for reason in row.get("reasons") or ()))[:5]


def _replaced_after(
    incident: Incident, line: Timeline, server: str, suffix: str | None, first: str
) -> Iterator[dict[str, Any]]:
    """When the data of a server was replaced after a change was made: then it may have lost it."""
    made = incident.when(first)
    for begin, end in line.replaced(server, suffix) if made else ():
        by = _clock(end)
        if by is None or by >= str(made):
            yield {"after": _clock(begin), "by": by}


def _change(incident: Incident, row: Row) -> dict[str, Any]:
    keys = ("position", "operation", "target", "attribute", "held_by", "says", "cause")
    return {
        "at": incident.when(row["position"]),
        **{key: row[key] for key in keys},
        "shown_by": row.get("shown_by", []),
    }


def _proof(incident: Incident, row: Row) -> dict[str, Any]:
    """What each server shows of one change.

    Of the server that misses it the verdict is that of the diagnosis, which sees all changes at once.
    """
    told = incident.story(incident.written(row["origin"], row["position"]))
    servers = [
        {
            "server": one["server"],
            "verdict": one["verdict"] if one["server"] != row["server"] else MISSING,
            "says": one["says"] if one["server"] != row["server"] else row["says"],
            "claimed": _claimed(incident, one["server"], row),
            "searched": list(_searched(incident, one["server"], row["suffix"])) if one["verdict"] != PRESENT else [],
            "rows": [_evidence(proof) for proof in one["evidence"][:_ROWS]],
            "more": max(0, len(one["evidence"]) - _ROWS),
        }
        for one in told["servers"]
        if one["suffix"] == row["suffix"]
    ]
    return {"position": row["position"], "at": incident.when(row["position"]), "servers": servers}


def _claimed(incident: Incident, server: str, row: Row) -> dict[str, Any] | None:
    """Where the server says that it has the change, or a later one of its origin."""
    typed = incident.system.typed
    rows = [
        one
        for one in incident.then.arrow("vectors").to_pylist()
        if (one["snapshot"], one["server"], one["origin"]) == (incident.then_label, server, row["origin"])
        and one["suffix"] in (None, row["suffix"])
        and one["kind"] == "server"
        and (typed(one["max"] or "") or "") >= (typed(row["position"]) or "")
    ]
    if not rows:
        return None
    top = max(rows, key=lambda one: (typed(one["max"]) or "", one["file"], one["offset"]))
    return {**{key: top[key] for key in ("snapshot", "file", "offset")}, "position": top["max"]}


def _searched(incident: Incident, server: str, suffix: str | None) -> Iterator[dict[str, Any]]:
    """The files of a server that would name a change, if it had it: those that were collected last first."""
    telling = [one for one in incident.then.inputs if one.server == server and one.may_tell_of(suffix) and _tells(one)]
    labels = list(incident.then.snapshots)
    telling.sort(key=lambda one: (-labels.index(one.snapshot), one.file))
    for one in telling[:_SEARCHED]:
        yield {"snapshot": one.snapshot, "file": one.file, "rows": one.rows}


def _tells(one: Input) -> bool:
    """True for a file that proves changes."""
    read = format_with(one.kind) if one.kind else None
    return read is not None and bool(read.evidence or read.is_log)


_SAID = ("operation", "evidence", "outcome", "code", "attribute", "state", "mark", "connection", "kind")


def _evidence(row: Row) -> dict[str, Any]:
    """One row of evidence: its place, and what it says; `target` and `text` stand apart, for they are text of others."""
    said = ", ".join(f"{key} {row[key]}" for key in _SAID if row.get(key) is not None)
    more = {key: row.get(key) for key in ("target", "link", "text")}
    return {
        "snapshot": row["snapshot"],
        "file": row["file"],
        "offset": row["offset"],
        "at": _moment(row.get("at")),
        "says": said,
        **more,
    }


def _moment(at: str | None) -> str | None:
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S}" if at else None


def _open(incident: Incident) -> dict[str, Any]:
    found = incident.found
    cut = found["run"]["truncated"]
    return {
        "stranded": [
            {
                "at": incident.when(row["position"]),
                **{key: row[key] for key in ("server", "origin", "position", "target")},
            }
            for row in found["stranded"][:_UNKNOWN]
        ],
        "pending": [
            {
                **{key: row[key] for key in ("server", "suffix", "origin", "count", "first", "last", "suppliers")},
                "dropped": bool(row.get("dropped_since")),
                "refused": len(row.get("refused") or ()),
                "perhaps_restarted": bool(row.get("restart_unknown_after")),
                "dropped_by_task": bool(row.get("dropped_by_task")),
                "first_at": incident.when(row["first"]),
                "last_at": incident.when(row["last"]),
            }
            for row in found["pending"]
        ],
        "unknown": [
            {
                **{key: row[key] for key in ("server", "suffix", "origin", "count", "from", "to")},
                "why": row["why"],
                "from_at": incident.when(row["from"]),
                "to_at": incident.when(row["to"]),
            }
            for row in found["unknown"][:_UNKNOWN]
        ],
        "counts": {name: cut.get(name) or len(found[name]) for name in ("stranded", "pending", "unknown")},
    }


# --- when


def _timeline(incident: Incident, line: Timeline, groups: Sequence[Row], journal: Sequence[Row]) -> dict[str, Any]:
    """What happened, in the order of the clocks of those to whom it happened; of each what a sentence about it needs."""
    events: list[dict[str, Any]] = []

    def add(at: str | None, kind: str, server: str | None, count: int = 0, **about: Any) -> None:
        if at:
            events.append({"at": at, "kind": kind, "server": server, "count": count, **about})

    for one in groups:
        missed = {"origin": one["origin"], "suffix": one["suffix"]}
        made: dict[str, list[Row]] = {}
        for change in one["changes"]:
            made.setdefault(change["at"] or "", []).append(change)
        for second, some in made.items():
            first = {key: some[0][key] for key in ("operation", "target")}
            add(second or None, "missed", one["server"], len(some), **missed, **first)
        if one["more"]:
            add(one["last_at"], "missed", one["server"], one["more"], **missed, last_of=one["count"])
    for server, suffix in line.replicas:
        for begin, end in line.replaced(server, suffix):
            if begin != end:  # a single moment is told by its message
                after, by = _clock(begin), _clock(end)
                add(by if begin == NEVER else after, "replaced", server, suffix=suffix, after=after, by=by)
    for told in _messages(incident):
        add(told["at"], "message", told["server"], message=told["message"])
    for label in incident.then.snapshots:
        servers = sorted({one.server for one in incident.then.inputs if one.snapshot == label and one.kind})
        times = [at for server in servers if (at := line.about(label, server))]
        if times:
            add(_clock(max(times)), "collected", None, servers=servers, snapshot=label)
    for row in journal:
        add(row["at"], "repair", None, what=row["what"], step=row["step"], told=row["says"])
    events.sort(key=lambda one: (one["at"], one["kind"], one["server"] or ""))
    kept = _weighty(events)
    return {
        "from": events[0]["at"] if events else None,
        "to": events[-1]["at"] if events else None,
        "events": kept,
        "more": len(events) - len(kept),
    }


def _weighty(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """So many that a page can hold: messages go first, then changes behind the first of each server."""
    if len(events) <= _EVENTS:
        return list(events)
    order = {"collected": 0, "replaced": 1, "repair": 2, "missed": 3, "message": 4}
    kept = sorted(range(len(events)), key=lambda at: (order[events[at]["kind"]], at))[:_EVENTS]
    return [events[at] for at in sorted(kept)]


def _clock(at: datetime | None) -> str | None:
    return None if at in (None, NEVER, EVER) or at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _messages(incident: Incident) -> Iterator[dict[str, Any]]:
    """What the logs tell of starts, stops, restores and initialisations: of the same within a minute the first."""
    told, rows = incident.system.milestones, []
    for one in incident.then.inputs:
        for part in incident.then.parts("messages", one) if told else ():
            where = pc.field("code").isin(sorted(told)) & pc.field("at").is_valid()
            rows += [
                (row["at"], one.server, row["code"])
                for row in read_part(part["path"], ["at", "code"], where).to_pylist()
            ]
    last: dict[tuple[str, str], datetime] = {}
    for moment, server, code in sorted(set(rows)):
        before = last.get((server, code))
        last[server, code] = moment
        if before is None or moment - before > _SOON:
            yield {"at": _clock(moment), "server": server, "message": told[code]}


# --- why


def _causes(incident: Incident, group: Row) -> Iterator[dict[str, Any]]:
    """Why changes of one group were missed, a row for each cause: with sessions played again, and records around the first."""
    server, suffix, origin = group["server"], group["suffix"], group["origin"]
    for cause in group["causes"]:
        proofs = [
            one
            for one in incident.found["findings"]
            if cause["code"] is not None
            and one["code"] == cause["code"]
            and one["server"] in (server, None)
            and one["suffix"] in (suffix, None)
            and one["origin"] in (origin, None)
        ]
        yield {
            "server": server,
            "suffix": suffix,
            "origin": origin,
            "of": group["listed"],
            **cause,
            "first_at": incident.when(cause["first"]),
            "proofs": [
                {"summary": one["summary"], "rows": [_flat(row) for row in one["evidence"][:_ROWS]]}
                for one in proofs[:3]
            ],
            "sessions": list(_sessions(incident, group, cause["first"])),
            "records": list(_around(incident, group, cause["first"])),
        }


def _sessions(incident: Incident, group: Row, first: str) -> Iterator[dict[str, Any]]:
    """What each holder would do with the change now."""
    server, suffix = group["server"], group["suffix"]
    for supplier in group["held_by"][:3]:
        pair = pair_of(incident, supplier, server, suffix)
        if pair is None:
            continue
        with suppress(Problem):
            outcome = incident.session(supplier, server, suffix).outcome_of(incident.system.typed(first) or "")
            yield {"supplier": supplier, "consumer": server, "outcome": outcome, **_played(pair)}


def _played(pair: Row) -> dict[str, Any]:
    return {
        "does": pair["decision"],
        "anchor": pair["anchor"],
        "anchor_at": pair["anchor_at"],
        "why": [{"says": one["says"], "compared": one["values"]} for one in pair["reasons"]],
        "counts": [{"outcome": one["outcome"].replace("_", " "), "count": one["count"]} for one in pair["counts"]],
        "others": [{"rules": one["rules"], "does": one["decision"]} for one in pair["others"]],
    }


def _flat(row: Row) -> dict[str, Any]:
    """A row of a finding's evidence as pairs; what others wrote keeps its key, by which it is redacted."""
    told = {key: str(value) for key, value in row.items() if value is not None}
    with suppress(ValueError):  # `at` may be the place of something
        told |= {"at": str(_moment(told["at"]))} if "at" in told else {}
    return told


def _around(incident: Incident, group: Row, position: str) -> Iterator[dict[str, Any]]:
    """The records of a supplier's log around a missing change: the last that arrived, the first that did not."""
    system, first = incident.system, incident.system.typed(position)
    replicas = {one.server: one for one in incident.topology.replicas if one.suffix == group["suffix"]}
    supplier = next((name for name in group["held_by"] if name in replicas), None)
    log = incident.log_of(replicas[supplier]) if supplier else None
    if first is None or log is None or supplier is None:
        return
    hi, lo = system.halves(first)
    width, before = 1 << system.bucket_shift, None
    while width < 1 << 62:  # a quiet server may have written nothing for days
        before = log.between((max(0, hi - width), 0), (hi, lo))
        if len(before.hi) >= _AROUND or width > hi:
            break
        width <<= 4
    after = log.between((hi, lo), (hi + (1 << system.bucket_shift), 0))
    for stretch, cut in ((before, slice(-_AROUND, None)), (after, slice(0, _AROUND + 1))):
        if stretch is None:
            continue
        rows = zip(stretch.origin.to_pylist()[cut], stretch.hi.tolist()[cut], stretch.lo.tolist()[cut], strict=True)
        for origin, high, low in rows:
            key = system.order_key(origin, int(high), int(low))
            position = system.show(key)
            servers = incident.story(position, group["server"])["servers"]
            told = next((one for one in servers if one["suffix"] == group["suffix"]), None)
            if told is None:
                continue
            yield {
                "position": position,
                "at": incident.when(position),
                "origin": origin,
                "supplier": supplier,
                "verdict": told["verdict"],
                "says": told["says"],
            }


def _finding(one: Row) -> dict[str, Any]:
    return {
        key: one[key] for key in ("code", "severity", "summary", "server", "link", "origin", "suffix", "quotes", "fix")
    }


# --- what was planned, done, found


def _plan(incident: Incident) -> dict[str, Any] | None:
    try:
        plan = kept_plan(incident.case)
        if plan is None:
            return None
        standing = state_of(incident.case.folder, plan)
    except Problem as problem:
        return {"problem": f"{problem.what}. {problem.do}"}
    stands = {"standing": str(standing), "standing_state": standing.state, "done": list(standing.done)}
    return {**page_of(plan), **stands, "of": _of_snapshot(incident, plan.snapshot)}


def _half_done(incident: Incident) -> bool:
    """True if a repair of the case was begun and not ended; whether its plan can still be read is another matter."""
    with suppress(Problem):  # a damaged journal is told of where it would be shown
        return bool(half_done(incident.case.folder))
    return False


def _journal(incident: Incident) -> tuple[list[dict[str, Any]], str]:
    try:
        return journal_rows(incident.case.folder), ""
    except Problem as problem:
        return [], f"{problem.what}. {problem.do}"


THIS, EARLIER, OTHER = "this", "earlier", "other"
NOTHING_SINCE, TOO_EARLY, NOT_COLLECTED, NO_VECTOR, ALONE, CUT, NOT_JUDGED = (
    "nothing_since", "too_early", "not_collected", "no_vector", "alone", "cut", "not_judged"
)  # fmt: skip
"""Why nobody can tell how many changes a server misses."""


def _verification(incident: Incident, plan: Row | None) -> Iterator[dict[str, Any]]:
    """What the plan promised for each server, and what the snapshot of the report shows: `found`, or None and `why`.

    `judged` is what the diagnosis says of the snapshot that the plan was made on: the plan counts what its model of the servers
    can play, which may be less or more.
    """
    now = incident.found
    counted = Counter((row["server"], row["suffix"] or "") for row in now["missing"])
    cut = "missing" in now["run"]["truncated"]
    earlier = list(incident.case.snapshots)[:-1]
    for one in (plan or {}).get("states", ()):
        assert plan
        key = one["server"], one["suffix"]
        since = TOO_EARLY if plan["snapshot"] in earlier else NOTHING_SINCE
        why = _untold(incident, *key, counted[key]) if plan["of"] == EARLIER else since
        yield {
            "server": one["server"],
            "suffix": one["suffix"],
            "before": one["missing"],
            "promised": one["then_missing"],
            "found": None if why else counted[key],
            "why": why,
            "judged": counted[key] if plan["of"] == THIS and not cut else None,
        }


def _untold(incident: Incident, server: str, suffix: str, missing: int) -> str:
    """Why it cannot be told how many changes a server misses in this snapshot; empty if it can."""
    now = incident.found
    telling = {
        one["name"]: one["vector"] or one["changes"] for one in now["servers"] if (one["suffix"] or "") == suffix
    }
    if server not in telling:
        return NOT_COLLECTED
    if not telling[server]:
        return NO_VECTOR
    if sum(map(bool, telling.values())) < 2:
        return ALONE
    if "missing" in now["run"]["truncated"]:
        return CUT
    open_ = any((row["server"], row["suffix"] or "") == (server, suffix) for row in now["unknown"])
    return NOT_JUDGED if open_ and not missing else ""


def _of_snapshot(incident: Incident, snapshot: str) -> str:
    """Whether a plan on this snapshot is of the one that the report is about, or of one before it."""
    labels = list(incident.case.snapshots)
    if snapshot == incident.then_label:
        return THIS
    return EARLIER if snapshot in labels[: labels.index(incident.then_label)] else OTHER


def _inventory(incident: Incident) -> Iterator[dict[str, Any]]:
    for one in incident.then.inputs:
        yield {
            "snapshot": one.snapshot,
            "file": one.file,
            "server": one.server,
            "format": one.format,
            "bytes": one.bytes,
            "rows": one.rows,
            "rejected": one.rejected,
            "sha256": one.sha256,
        }


_OWNER = re.compile(r"process [0-9]+ on (\S+) since")


def names_in(incident: Incident) -> Iterator[tuple[str, str]]:
    """Kind and name of all that the evidence names and that is few: servers, links, hosts, suffixes, folders.

    What a report happens to show is learned from it; these are names wherever they stand.
    """
    case = incident.case
    yield "case", case.name
    yield from (("snapshot", label) for label in case.snapshots)
    yield from (
        ("folder", str(path))
        for path in (case.folder, case.folder.resolve(), Path.home(), *map(Path, case.snapshots.values()))
    )
    yield from (("server", one.server) for one in case.inputs if one.kind)
    for row in case.arrow("links").to_pylist():
        hosts = (("host", "consumer_host"), ("host", "supplier_host"))
        for kind, key in (("link", "name"), *hosts, ("target", "login"), ("target", "suffix")):
            if row[key]:
                yield kind, row[key]
    for row in case.arrow("vectors").to_pylist():
        if row["kind"] == "link" and row["holder"]:
            yield "link", row["holder"]
        for key, kind in (("suffix", "target"), ("origin", "origin"), ("url", "url")):
            if row[key]:
                yield kind, row[key]
    for row in case.arrow("certificates").to_pylist():
        kinds = (("target", "subject"), ("target", "issuer"), ("entry", "nickname"))
        yield from ((kind, row[key]) for kind, key in kinds if row[key])
        yield from (("host", host.removeprefix("*.")) for host in (row["hosts"] or "").split())
    for server in incident.found["servers"]:
        yield "server", server["name"]
    for log in incident.found["streams"]:
        yield from (("target", table) for table in log["tables"])
    for node in (one["node"] for tree in incident.found["trees"] for one in tree["nodes"]):
        yield from zip(("origin", "host"), node.split("@", 1), strict=False)
    with suppress(Problem):  # of a damaged journal nothing is shown
        for record in records_of(case.folder / JOURNAL, BEGINS):
            by = record.get("by")
            by = by if isinstance(by, Mapping) else {}
            yield from ((kind, str(by.get(kind) or "")) for kind in ("user", "host"))
            yield from (("host", found[1]) for found in _OWNER.finditer(str(record.get("taken_over_from"))))
