"""What a report says, as plain data: the one source of the page, of Markdown and of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import workbench
from workbench.case_plan import kept_plan
from workbench.codes import all_codes
from workbench.diagnosis_text import headline
from workbench.engine.reading import read_part
from workbench.incident import Incident
from workbench.journal import records_of
from workbench.look import PRESENT, UNKNOWN, worst
from workbench.model import Problem
from workbench.overview import LISTS, mesh, pair_of, suffixes
from workbench.plan_page import journal_rows, page_of
from workbench.report.words import glossary
from workbench.standing import BEGINS, FINISHED, JOURNAL, state_of
from workbench.timeline import EVER, NEVER, Timeline

Row = Mapping[str, Any]

SHOWN = 25
"""Missing changes that are named of each server and origin; all of them are counted."""
PROVEN = 3
"""Of these, so many with the rows that prove it."""
_ROWS = 4
_EVENTS = 150
_UNKNOWN = 20
_AROUND = 2
_SOON = timedelta(seconds=60)


def contents(incident: Incident, shown: int = SHOWN) -> dict[str, Any]:
    """The whole report. Same case, same data, but for `run`.

    report      1: the version of these keys
    headline    the verdict in one sentence; `verdict` is its colour
    case        name, system (title), snapshots, snapshot (the one that the report is about)
    plain       sentences for somebody who does not know the system: what, since when, does it come by itself, what next
    timeline    from, to, events: `at`, `kind` (missed, replaced, message, collected, repair), `server`, `says`,
                `count`, `snapshot` (of a collection)
    topology    of each suffix: servers and links, with verdicts
    missing     of each server and origin: counts, the first changes, and of some the proof, server by server
    open        what is stranded, on its way, or cannot be told
    causes      why changes were missed: the code and its proof, the sessions played again, the records around
    findings    as in findings.json, without rows of evidence
    plan        the plan that the case keeps (null: none), journal: what was done, verification: promised and found
    inventory   every file: snapshot, server, format, bytes, rows, rejected, sha256
    glossary    words, each in a sentence, with the word of the system
    run         at, version: the only part that differs from one report to the next
    """
    found = incident.found
    plan = _plan(incident)
    groups = list(_groups(incident, shown))
    verdict = (
        worst([shade for name, shade in LISTS if found[name]]) if any(found[name] for name, _ in LISTS) else PRESENT
    )
    telling = headline(found)
    journal, damaged = _journal(incident)
    return {
        "report": 1,
        "headline": telling,
        "verdict": verdict if not telling.startswith(("No vector", "Only ")) or found["missing"] else UNKNOWN,
        "case": {
            "name": found["case"]["name"],
            "system": incident.system.title,
            "snapshots": found["case"]["snapshots"],
            "snapshot": incident.then_label,
        },
        "plain": list(_plain(incident, groups, plan)),
        "timeline": _timeline(incident, groups, journal),
        "topology": [mesh(incident, suffix) for suffix in suffixes(incident)],
        "missing": groups,
        "open": _open(incident),
        "causes": [_cause(incident, one) for one in groups],
        "findings": [_finding(one) for one in found["findings"]],
        "plan": plan,
        "journal": journal,
        "journal_problem": damaged,
        "verification": list(_verification(incident, plan)),
        "inventory": list(_inventory(incident)),
        "glossary": glossary(incident.system),
        "run": {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", "version": workbench.__version__},
    }


# --- what is missing


def _groups(incident: Incident, shown: int) -> Iterator[dict[str, Any]]:
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for row in incident.found["missing"]:
        rows.setdefault((row["suffix"] or "", row["server"], row["origin"]), []).append(row)
    cut = "missing" in incident.found["run"]["truncated"]
    makers = {(one["suffix"] or "", one["origin"]): one["name"] for one in incident.found["servers"] if one["origin"]}
    for (suffix, server, origin), mine in sorted(rows.items()):
        holders = sorted({name for row in mine for name in row["held_by"]})
        yield {
            "server": server,
            "suffix": suffix or None,
            "origin": origin,
            "made_on": makers.get((suffix, origin)),
            "count": len(mine),
            "at_least": cut,
            "first": mine[0]["position"],
            "first_at": incident.when(mine[0]["position"]),
            "last": mine[-1]["position"],
            "last_at": incident.when(mine[-1]["position"]),
            "held_by": holders,
            "held_by_none": sum(not row["held_by"] for row in mine),
            "cause": next(iter({row["cause"] for row in mine if row["cause"]}), None),
            "reasons": list(dict.fromkeys(reason for row in mine for reason in row["reasons"]))[:5],
            "changes": [_change(incident, row) for row in mine[:shown]],
            "more": max(0, len(mine) - shown),
            "proofs": [_proof(incident, row) for row in mine[:PROVEN]],
        }


def _change(incident: Incident, row: Row) -> dict[str, Any]:
    keys = ("position", "operation", "target", "attribute", "held_by", "says", "cause")
    return {"at": incident.when(row["position"]), **{key: row[key] for key in keys}}


def _proof(incident: Incident, row: Row) -> dict[str, Any]:
    """What each server shows of one change."""
    told = incident.story(row["position"])
    servers = [
        {
            "server": one["server"],
            "verdict": one["verdict"],
            "says": one["says"],
            "rows": [_evidence(proof) for proof in one["evidence"][:_ROWS]],
            "more": max(0, len(one["evidence"]) - _ROWS),
        }
        for one in told["servers"]
        if one["suffix"] == row["suffix"]
    ]
    return {"position": row["position"], "at": incident.when(row["position"]), "servers": servers}


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
                "first_at": incident.when(row["first"]),
                "last_at": incident.when(row["last"]),
            }
            for row in found["pending"]
        ],
        "unknown": [
            {
                **{key: row[key] for key in ("server", "suffix", "origin", "count", "from", "to")},
                "why": row["why"].replace("_", " "),
                "from_at": incident.when(row["from"]),
                "to_at": incident.when(row["to"]),
            }
            for row in found["unknown"][:_UNKNOWN]
        ],
        "counts": {name: cut.get(name) or len(found[name]) for name in ("stranded", "pending", "unknown")},
    }


# --- in plain words


def _plain(incident: Incident, groups: Sequence[Row], plan: Row | None) -> Iterator[str]:
    found = incident.found
    names = sorted({one["name"] for one in found["servers"]})
    yield (
        f"{_names(names)} {'keep' if len(names) > 1 else 'keeps'} copies of the same data. A change that is made on one of "
        "them has to arrive on all others."
    )
    held: set[str] = set()
    for one in groups:
        least, own = "at least " if one["at_least"] else "", one["made_on"] == one["server"]
        made = (
            f" that {'was' if one['count'] == 1 else 'were'} made on {one['made_on']}{' itself' * own}"
            if one["made_on"]
            else ""
        )
        when = f" between {one['first_at']} and {one['last_at']} UTC" if one["first_at"] else ""
        when = f" at {one['first_at']} UTC" if one["first_at"] and one["first_at"] == one["last_at"] else when
        what = f"{one['count']:,} {'change' if one['count'] == 1 else 'changes'}"
        yield (
            f"{one['server']} does not have {least}{what}{made}{when}. It reports having seen "
            f"{'it' if one['count'] == 1 else 'them'}, so the other servers will not send "
            f"{'it' if one['count'] == 1 else 'them'} again: this does not heal by itself."
        )
        still = f"{_names(one['held_by'])} still {'have' if len(one['held_by']) > 1 else 'has'} them in the log."
        if one["held_by"] and still not in held:
            held.add(still)
            yield still
        if none := one["held_by_none"]:
            yield f"Of {none:,} of them no collected log has a record: they have to be taken from the data itself."
    waiting = [row for row in found["pending"] if row["suppliers"]]
    stuck = [row for row in found["pending"] if not row["suppliers"]]
    for rows, says in (
        (waiting, "on the way and would be sent now"),
        (stuck, "on the way, and nobody would send them now"),
    ):
        if rows:
            count = sum(row["count"] for row in rows)
            yield f"{count:,} further {'change is' if count == 1 else 'changes are'} {says}: to {_names(_servers(rows))}."
    if found["stranded"]:
        yield f"{len(found['stranded']):,} changes are held by {_names(_servers(found['stranded']))} alone and will go nowhere."
    if found["unknown"]:
        yield (
            f"Of {len(found['unknown']):,} {'stretch' if len(found['unknown']) == 1 else 'stretches'} of changes the collected "
            "files do not tell whether they arrived; more logs or exports would."
        )
    if not groups and not found["pending"] and not found["stranded"] and not found["unknown"]:
        yield "As far as the collected files show, all of them did."
    yield from _next(incident, plan)


def _next(incident: Incident, plan: Row | None) -> Iterator[str]:
    ways = [
        course for need in (plan or {}).get("needs", ()) for course in need["courses"] if course["verdict"] == "chosen"
    ]
    if plan and plan.get("standing_state") == FINISHED:
        yield "The plan of repair was carried out; whether it held is under “Verification”."
    elif ways:
        yield f"What to do next: {'; '.join(one['says'] for one in ways)}. The exact steps are under “Plan”."
    else:
        first = next((one for one in incident.found["findings"] if one["severity"] != "info" and one["fix"]), None)
        if first:
            yield f"What to do next: {first['fix'][0]['repair']}. The command “workbench plan” makes the exact steps."


def _names(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) > 8:
        return f"{len(names)} servers"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _servers(rows: Iterable[Row]) -> list[str]:
    return sorted({row["server"] for row in rows})


# --- when


def _timeline(incident: Incident, groups: Sequence[Row], journal: Sequence[Row]) -> dict[str, Any]:
    """What happened, in the order of the clocks of those to whom it happened."""
    line, events = Timeline(incident.then), []

    def add(at: str | None, kind: str, server: str | None, says: str, count: int = 0) -> None:
        if at:
            events.append({"at": at, "kind": kind, "server": server, "says": says, "count": count, "snapshot": None})

    for one in groups:
        about = f"by origin {one['origin']}, which {one['server']} misses"
        made: dict[str, list[Row]] = {}
        for change in one["changes"]:
            made.setdefault(change["at"] or "", []).append(change)
        for second, some in made.items():
            what = f"{some[0]['operation'] or 'change'} of {some[0]['target'] or 'an unknown target'}"
            many = f"{len(some):,} changes were made {about}; the first: {what}"
            add(second or None, "missed", one["server"], many if len(some) > 1 else f"{what} {about}", len(some))
        if one["more"]:
            add(
                one["last_at"],
                "missed",
                one["server"],
                f"the last of {one['count']:,} changes was made {about}",
                one["more"],
            )
    for key in line.replicas:
        for begin, end in line.replaced(*key):
            if begin != end:  # a single moment is told by its message
                add(_clock(end if begin == NEVER else begin), "replaced", key[0], _span(begin, end))
    for told in _messages(incident):
        add(told["at"], "message", told["server"], told["says"])
    for label in incident.then.snapshots:
        servers = sorted({one.server for one in incident.then.inputs if one.snapshot == label and one.kind})
        times = [at for server in servers if (at := line.about(label, server))]
        if times:
            add(_clock(max(times)), "collected", None, f"files of {_names(servers)} were collected, then or later")
            events[-1]["snapshot"] = label
    for row in journal:
        says = " ".join(filter(None, (f"repair: {row['what']}", row["step"], row["says"])))
        add(row["at"], "repair", None, says)
    events.sort(key=lambda one: (one["at"], one["kind"], one["server"] or "", one["says"]))
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


def _span(begin: datetime, end: datetime) -> str:
    after = "" if begin == NEVER else f" after {_clock(begin)}"
    before = "" if end == EVER else f" by {_clock(end)}"
    return f"its data became that of another time or server{after}{before}"


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
            yield {"at": _clock(moment), "server": server, "says": told[code]}


# --- why


def _cause(incident: Incident, group: Row) -> dict[str, Any]:
    """The cause of one group of missing changes, with what shows it: sessions played again, records around the first."""
    server, suffix, code = group["server"], group["suffix"], group["cause"]
    told = {one: said.says for codes in all_codes().values() for one, said in codes.items()}
    proofs = [
        one
        for one in incident.found["findings"]
        if code and one["code"] == code and server in (one["server"], None) and one["suffix"] in (None, suffix)
    ]
    sessions = []
    for supplier in group["held_by"][:3]:
        pair = pair_of(incident, supplier, server, suffix)
        if pair is None:
            continue
        with suppress(Problem):
            outcome = incident.session(supplier, server, suffix).outcome_of(incident.system.typed(group["first"]) or "")
            sessions.append({"supplier": supplier, "consumer": server, "outcome": outcome, **_played(pair)})
    return {
        "server": server,
        "suffix": suffix,
        "origin": group["origin"],
        "count": group["count"],
        "code": code,
        "says": told.get(code or "", "no candidate explains these changes alone: the cause is open"),
        "reasons": group["reasons"],
        "proofs": [
            {
                "summary": one["summary"],
                "rows": [_flat(row) for row in one["evidence"][:_ROWS]],
            }
            for one in proofs[:3]
        ],
        "sessions": sessions,
        "records": list(_around(incident, group)),
    }


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


def _around(incident: Incident, group: Row) -> Iterator[dict[str, Any]]:
    """The records of a supplier's log around the first missing change: the last that arrived, the first that did not."""
    system, first = incident.system, incident.system.typed(group["first"])
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
            told = next(iter(incident.story(position, group["server"])["servers"]))
            yield {
                "position": position,
                "at": incident.when(position),
                "origin": origin,
                "supplier": supplier,
                "verdict": told["verdict"],
                "says": told["says"],
            }


def _finding(one: Row) -> dict[str, Any]:
    return {key: one[key] for key in ("code", "severity", "summary", "server", "link", "origin", "suffix", "fix")}


# --- what was planned, done, found


def _plan(incident: Incident) -> dict[str, Any] | None:
    try:
        plan = kept_plan(incident.case)
        if plan is None:
            return None
        standing = state_of(incident.case.folder, plan)
    except Problem as problem:
        return {"problem": f"{problem.what}. {problem.do}"}
    return {**page_of(plan), "standing": str(standing), "standing_state": standing.state, "done": list(standing.done)}


def _journal(incident: Incident) -> tuple[list[dict[str, Any]], str]:
    try:
        return journal_rows(incident.case.folder), ""
    except Problem as problem:
        return [], f"{problem.what}. {problem.do}"


def _verification(incident: Incident, plan: Row | None) -> Iterator[dict[str, Any]]:
    """What the plan promised for each server, and what the snapshot of the report shows."""
    now = incident.found
    counted: dict[tuple[str, str], int] = {}
    for row in now["missing"]:
        key = row["server"], row["suffix"] or ""
        counted[key] = counted.get(key, 0) + 1
    for one in (plan or {}).get("states", ()):
        assert plan
        newer = _later(incident, plan["snapshot"])
        yield {
            "server": one["server"],
            "suffix": one["suffix"],
            "before": one["missing"],
            "promised": one["then_missing"],
            "found": counted.get((one["server"], one["suffix"]), 0) if newer else None,
        }


def _later(incident: Incident, snapshot: str) -> bool:
    """True if the report is about a snapshot behind the one that the plan was made on."""
    labels = list(incident.case.snapshots)
    return snapshot in labels and labels.index(incident.then_label) > labels.index(snapshot)


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
        for kind, key in (("link", "name"), ("host", "consumer_host"), ("target", "login"), ("target", "suffix")):
            if row[key]:
                yield kind, row[key]
    for row in case.arrow("vectors").to_pylist():
        if row["kind"] == "link" and row["holder"]:
            yield "link", row["holder"]
        for key, kind in (("suffix", "target"), ("origin", "origin"), ("url", "url")):
            if row[key]:
                yield kind, row[key]
    for server in incident.found["servers"]:
        yield "server", server["name"]
    with suppress(Problem):  # of a damaged journal nothing is shown
        for record in records_of(case.folder / JOURNAL, BEGINS):
            by = record.get("by")
            by = by if isinstance(by, Mapping) else {}
            yield from ((kind, str(by.get(kind) or "")) for kind in ("user", "host"))
            yield from (("host", found[1]) for found in _OWNER.finditer(str(record.get("taken_over_from"))))
