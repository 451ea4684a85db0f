"""What a case shows, in the shape of `findings.json`: who would send what to whom, why not, and what is wrong.

How servers replicate, their style knows (`workbench.contracts.replication`); what is found in all of them stands here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.diagnosis.before_replacing import restart_after_filling, with_what_goes
from workbench.diagnosis.causes import name_causes
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.detectors import detected
from workbench.diagnosis.finding_references import drop_void_causes, name_what_tells, with_shown_references
from workbench.diagnosis.findings_text import with_servers
from workbench.diagnosis.made_itself import note_made_itself
from workbench.diagnosis.passed_over_changes import note_passed_over
from workbench.diagnosis.precedence import in_precedence
from workbench.diagnosis.resting_links import note_resting
from workbench.diagnosis.snapshot_choice import case_at
from workbench.diagnosis.steps_before_filling import with_steps_before_filling
from workbench.diagnosis.verdict_rows import LIMIT, Verdicts
from workbench.engine.parquet_read import read_part
from workbench.intake.files import EMPTY
from workbench.intake.inputs import Input
from workbench.model import SEVERITIES, Finding, Problem
from workbench.systems import system_named
from workbench.topology.topology import VECTOR, Link, Replica, Topology, topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


DIGESTS, POSITIONS = "digests", "positions"
"""What counts and differences rest on: equal digests are equal logs as sure as 64 bits of hash, positions are proof."""

_REJECTS_SHOWN = 1000

_OF_A_STYLE = ("streams", "fleet", "appliers", "transactions", "trees")
"""Lists that one style of replication fills; of the others they are empty."""


def diagnose(
    case: Case,
    rules: str | None = None,
    spark: SparkSession | None = None,
    *,
    as_of: str | None = None,
    servers: Sequence[str] = (),
    origins: Sequence[str] = (),
    limit: int = LIMIT,
) -> dict[str, Any]:
    """Everything that `workbench diagnose --json` writes, about the last snapshot of the case.

    `as_of` goes back to an earlier one: its label, or a time. `servers` and `origins` keep only what is about these; no
    list of changes is longer than `limit`, and `run` says which one was cut.

    `rules` names the rule set for the pairs; by default it is that of the real servers. With a Spark session every count
    and every difference between logs is made once more from all positions, and of systems without logs what servers lack from
    all states of entries; a disagreement is a Problem, for then the evidence is damaged.
    """
    began = time.monotonic()
    case = case_at(case, as_of)
    shown = topology(case)
    _check_names(shown, servers, origins)
    # Findings do not depend on how many rows somebody wants to see.
    style = shown.system.replication()
    pairs, judged = style.judge(case, shown, max(limit, LIMIT), rules, spark)
    context, everything = _detected(case, shown, pairs, judged)
    findings = [one for one in everything if _about(one, servers, origins)]

    def kept(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            row
            for row in rows
            if (not servers or row["server"] in servers) and (not origins or row["origin"] in origins)
        ]

    tables = style.tables(judged, limit)
    lists = {name: kept(getattr(judged, name)) for name in ("missing", "stranded", "errant", "pending", "unknown")}
    return {
        "schema": 1,
        "case": {"name": case.name, "system": case.system, "snapshots": list(case.snapshots)},
        "servers": [
            *(_server(shown, replica, judged) for replica in shown.replicas),
            *tables.get("servers", ()),
        ],
        "links": [_link(link) for link in shown.links],
        "not_collected": context.all_not_collected,
        "pairs": pairs,
        **{name: rows[:limit] for name, rows in lists.items()},
        "findings": with_servers([_finding(one) for one in findings]),
        "floors": context.floors.floors,
        "tombstones": context.floors.tombstones,
        **{name: tables.get(name, []) for name in _OF_A_STYLE},
        "coverage": [_coverage(one) for one in case.inputs],
        "rejects": list(_rejects(case)),
        "run": {
            "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "seconds": round(time.monotonic() - began, 3),
            "evidence": DIGESTS if spark is None else POSITIONS,
            "truncated": {name: len(rows) for name, rows in lists.items() if len(rows) > limit} | judged.cut(),
        },
    }


def context_of(case: Case) -> tuple[DetectorContext, list[Finding]]:
    """What the last snapshot of the case shows, and what all detectors find in it, the gravest first."""
    shown = topology(case)
    return _detected(case, shown, *shown.system.replication().judge(case, shown, LIMIT))


def _detected(
    case: Case, shown: Topology, pairs: list[dict[str, Any]], judged: Verdicts
) -> tuple[DetectorContext, list[Finding]]:
    context = DetectorContext(case, shown, pairs, judged)
    name_causes(context)
    note_made_itself(context)
    note_passed_over(context)
    note_resting(context, pairs)
    found = shown.system.replication().grounded(detected(context), judged)
    said = with_steps_before_filling(
        context, in_precedence(found, context.topology.links, bool(context.topology.pulling))
    )
    said = with_shown_references(said)
    drop_void_causes(judged.missing, said)
    name_what_tells(pairs, said)
    return context, sorted(restart_after_filling(with_what_goes(context, said), context.topology), key=_rank)


def _check_names(shown: Topology, servers: Sequence[str], origins: Sequence[str]) -> None:
    """Raise Problem for a server or an origin that nothing in the case names: its empty answer would look like a clean one."""
    names = {replica.server for replica in shown.replicas}
    known = {origin for one in shown.replicas for origin in (*one.vector, one.origin, *one.log_claims) if origin}
    known |= {origin for one in shown.replicas if one.log for origin in one.log.facts.get("by_origin", {})}
    for what, asked, there in (("server", servers, names), ("origin", origins, known)):
        for name in asked:
            if name not in there:
                raise Problem(
                    f"no {what} is named {name}", shown.snapshot, f"there are {', '.join(sorted(there)) or 'none'}"
                )


def _about(finding: Finding, servers: Sequence[str], origins: Sequence[str]) -> bool:
    of_server = not servers or finding.server is None or finding.server in servers
    return of_server and (not origins or finding.origin is None or finding.origin in origins)


def naming_domains(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same diagnosis with the domain as the suffix of each server, where servers pull and no file names a suffix."""
    if not found["case"]["system"] or system_named(found["case"]["system"]).pulling is None:
        return dict(found)
    return {**found, "servers": [{**one, "suffix": one["suffix"] or one["generation"]} for one in found["servers"]]}


def _server(shown: Topology, replica: Replica, judged: Verdicts) -> dict[str, Any]:
    logged = judged.tiers.logs.log(replica.server) if judged.tiers else None
    seen = replica.log.facts.get("by_origin", {}) if replica.log else {}
    vector = replica.seen() if shown.system.streaming else replica.vector
    show = shown.system.show
    return {
        "name": replica.server,
        "origin": replica.origin,
        "suffix": replica.suffix,
        "generation": replica.generation,
        "vector": {
            origin: {"min": span.min and show(span.min), "max": span.max and show(span.max)}
            for origin, span in sorted(vector.items())
        },
        "changes": logged.records if logged else sum(one["count"] for one in seen.values()),
        "evidence": sorted(shown.system.vector_word if one == VECTOR else one for one in replica.evidence),
    }


def _rank(finding: Finding) -> tuple[Any, ...]:
    place = (finding.code, finding.server or "", finding.origin or "", finding.link or "", finding.summary)
    return (-SEVERITIES.index(finding.severity), *place)


def _finding(one: Finding) -> dict[str, Any]:
    """As it reads back from JSON: lists, no tuples."""
    row = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(one).items()}
    return row | {"certain": not one.assumes}


def _coverage(one: Input) -> dict[str, Any]:
    keys = ("snapshot", "file", "format", "bytes", "rows", "accepted", "rejected")
    server = one.server if one.kind or one.why == EMPTY else None
    return {**{key: getattr(one, key) for key in keys}, "server": server}


def _link(link: Link) -> dict[str, Any]:
    keys = ("supplier", "suffix", "name", "consumer", "address", "enabled", "why", "automatic")
    failure = link.failure
    about = {"failing": failure.reason, "fails": failure.short, "means": failure.means} if failure else _NO_FAILURE
    return {**{key: getattr(link, key) for key in keys}, **about}


_NO_FAILURE: Mapping[str, Any] = {"failing": None, "fails": None, "means": None}


def _rejects(case: Case) -> Iterator[dict[str, Any]]:
    """The first rejects, in the order of the inputs and the places in them, however many parts hold them."""
    left = _REJECTS_SHOWN
    for one in case.inputs:
        found = []
        for part in case.parts("rejects", one):
            if left > 0:
                rows = read_part(part["path"], ["snapshot", "file", "offset", "reason"])
                found += rows.sort_by("offset").slice(0, left).to_pylist()
        found.sort(key=lambda row: (row["offset"], row["reason"]))
        yield from found[:left]
        left -= len(found[:left])
