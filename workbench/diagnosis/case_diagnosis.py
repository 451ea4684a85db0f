"""What a case shows, in the shape of `findings.json`: who would send what to whom, why not, and what is wrong.

The counts of the pairs and the differences between the logs come from the digests and a few reads, without Spark; with a
session given they are made again by passes over all positions, and both must agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.before_replacing import restart_after_filling, with_what_goes
from workbench.diagnosis.causes import name_causes
from workbench.diagnosis.collection_order import with_order
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.detectors import detected
from workbench.diagnosis.finding_references import drop_void_causes, name_what_tells, with_shown_references
from workbench.diagnosis.findings_text import with_servers
from workbench.diagnosis.passed_over_changes import note_passed_over
from workbench.diagnosis.precedence import in_precedence
from workbench.diagnosis.resting_links import note_resting
from workbench.diagnosis.steps_before_filling import with_steps_before_filling
from workbench.diagnosis.unnamed_logs import drop_what_unnamed_logs_hold
from workbench.diagnosis.verdict_rows import LIMIT, Verdicts
from workbench.diagnosis.verdicts import verdicts
from workbench.engine.logs import StoredLog, Stretch
from workbench.engine.parquet_read import read_part
from workbench.engine.positions import place
from workbench.intake.files import EMPTY
from workbench.intake.inputs import Input
from workbench.model import SEVERITIES, Finding, Problem, counted
from workbench.replication.entry.diagnosis.state_comparison import judged_by_entry, pulls
from workbench.replication.stream.diagnosis.log_comparison import REFUSED, judged_by_stream
from workbench.replication.stream.diagnosis.rows import applier_rows, copy_rows, log_rows, replica_rows
from workbench.replication.stream.diagnosis.sources import with_sources
from workbench.replication.tier.diagnosis.sources import on_furthest
from workbench.replication.tier.diagnosis.tree_rows import judged_by_tier, trees
from workbench.rules.send_session import ANCHOR_NOT_FOUND, NOTHING, SEND, Bound, Log, Plan, Rules, SendSession, plan
from workbench.systems import system_named
from workbench.topology.history import moment_of
from workbench.topology.timeline import Timeline
from workbench.topology.topology import VECTOR, Link, Replica, Topology, topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.engine.pairs import Asker
    from workbench.engine.position_index import PositionIndex

UNKNOWN = "unknown"
DIGESTS, POSITIONS = "digests", "positions"
"""What counts and differences rest on: equal digests are equal logs as sure as 64 bits of hash, positions are proof."""
NO_LOG, NOT_WHOLE = "keeps_no_log", "log_not_whole"
"""Reasons that no rule set gives: of the evidence, not of the protocol."""

_REJECTS_SHOWN = 1000

Pair = tuple[Replica, Replica, Link | None]


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
    pairs, judged = _judged(case, shown, max(limit, LIMIT), rules, spark)
    context, everything = _detected(case, shown, pairs, judged)
    findings = [one for one in everything if _about(one, servers, origins)]

    def kept(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            row
            for row in rows
            if (not servers or row["server"] in servers) and (not origins or row["origin"] in origins)
        ]

    lists = {name: kept(getattr(judged, name)) for name in ("missing", "stranded", "errant", "pending", "unknown")}
    return {
        "schema": 1,
        "case": {"name": case.name, "system": case.system, "snapshots": list(case.snapshots)},
        "servers": [
            *(_server(shown, replica, judged) for replica in shown.replicas),
            *(replica_rows(judged.streams) if judged.streams else ()),
        ],
        "links": [_link(link) for link in shown.links],
        "not_collected": context.all_not_collected,
        "pairs": pairs,
        **{name: rows[:limit] for name, rows in lists.items()},
        "findings": with_servers([_finding(one) for one in findings]),
        "floors": context.floors.floors,
        "tombstones": context.floors.tombstones,
        "streams": log_rows(judged.streams) if judged.streams else [],
        "fleet": copy_rows(judged.streams) if judged.streams else [],
        "appliers": applier_rows(judged.streams) if judged.streams else [],
        "transactions": judged.streams.odd(limit) if judged.streams else [],
        "trees": trees(judged.tiers) if judged.tiers else [],
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
    return _detected(case, shown, *_judged(case, shown, LIMIT))


def _judged(
    case: Case, shown: Topology, limit: int, rules: str | None = None, spark: SparkSession | None = None
) -> tuple[list[dict[str, Any]], Verdicts]:
    """The pair matrix and the verdicts, out of logs, or, of a system that keeps none, out of the states of entries."""
    if shown.system.streaming:
        return judged_by_stream(case, shown, limit, spark)
    if shown.system.tiering:
        return judged_by_tier(case, shown, limit, spark)
    if shown.pulling:
        pairs = pulls(case, shown, rules)
        return pairs, judged_by_entry(case, shown, pairs, limit, spark)
    logs = logs_of(case, shown)
    pairs = pair_matrix(shown, logs, rules)
    if spark is not None:
        _check_equal(pairs, pair_matrix(shown, counted_logs(spark, shown, logs), rules))
    judged = verdicts(case, shown, logs, pairs, limit)
    drop_what_unnamed_logs_hold(case, shown, logs, judged)
    if spark is not None:
        _check_differences(spark, [known for mine in judged.known.values() for known in mine], logs)
    return pairs, judged


def _detected(
    case: Case, shown: Topology, pairs: list[dict[str, Any]], judged: Verdicts
) -> tuple[DetectorContext, list[Finding]]:
    context = DetectorContext(case, shown, pairs, judged)
    name_causes(context)
    note_passed_over(context)
    note_resting(context, pairs)
    sources = judged.streams.sources if judged.streams else {}
    found = with_order(on_furthest(with_sources(detected(context), sources), judged.tiers), judged)
    said = with_steps_before_filling(context, in_precedence(found, context.topology.links))
    said = with_shown_references(said)
    drop_void_causes(judged.missing, said)
    name_what_tells(pairs, said)
    return context, sorted(restart_after_filling(with_what_goes(context, said), context.topology), key=_rank)


def case_at(case: Case, as_of: str | None) -> Case:
    """The case up to the snapshot of that label, else up to the last one of which all evidence is as old as that time."""
    if as_of is None:
        return case
    if as_of in case.snapshots:
        return case.until(as_of)
    when, line = moment_of(as_of), Timeline(case)
    fitting = None
    for label in case.snapshots:
        times = [line.about(label, one.server) for one in case.inputs if one.snapshot == label and one.kind]
        known = [at for at in times if at is not None]
        if known and max(known) <= when:
            fitting = label
    if fitting is None:
        labels = ", ".join(case.snapshots)
        raise Problem(f"no snapshot is as old as {as_of}", case.name, f"give a later time, or one of: {labels}")
    return case.until(fitting)


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


def logs_of(case: Case, shown: Topology) -> dict[str, StoredLog]:
    """The present log of every replica that has one, by the name of its file, to be asked without Spark.

    They remember what they read: keep them for the next question.
    """
    return {one.log.file: case.log(one.log) for one in shown.replicas if one.log}


def pair_matrix(shown: Topology, logs: Mapping[str, Log], rules: str | None = None) -> list[dict[str, Any]]:
    """What every server would send to every other one of its suffix now, as if the session were open, in one load.

    Each row has what the other rule sets would do instead, where that differs, under `others`.
    """
    chosen, others = _rule_sets(shown, rules)
    return [_row(shown, chosen, others, pair, logs) for pair in shown.pairs()]


def counted_logs(spark: SparkSession, shown: Topology, logs: Mapping[str, StoredLog]) -> Mapping[str, Log]:
    """The same logs, with all that the pair matrix asks of them counted by a pass of Spark over every position."""
    from workbench.engine.pairs import exact_logs

    chosen, others = _rule_sets(shown, None)
    askers: dict[str, list[Asker]] = {}
    for pair in shown.pairs():
        if pair[0].log:
            askers.setdefault(pair[0].log.file, []).extend(partial(_plan, one, pair) for one in (chosen, *others))
    return exact_logs(spark, logs, askers)


def _rule_sets(shown: Topology, name: str | None) -> tuple[Rules, list[Rules]]:
    """The chosen rule set, and the others."""
    known = shown.supplying.rule_sets
    if name is not None and name not in known:
        raise Problem(f"there is no rule set {name}", "", f"the rule sets are {', '.join(known)}")
    name = name or next(iter(known))
    return known[name](), [make() for other, make in known.items() if other != name]


def _plan(rules: Rules, pair: Pair, log: Log) -> Plan:
    supplier, consumer, _ = pair
    return plan(rules, log, supplier.vector, consumer.vector, consumer.origin or "")


def _row(shown: Topology, rules: Rules, others: Iterable[Rules], pair: Pair, logs: Mapping[str, Log]) -> dict[str, Any]:
    supplier, consumer, link = pair
    row: dict[str, Any] = {
        "supplier": supplier.server,
        "consumer": consumer.server,
        "suffix": supplier.suffix,
        "link": link.name if link else None,
        "link_enabled": link.enabled if link else None,
        "link_failing": link.blocked if link else None,
        "link_fails": link.failure.short if link and link.blocked and link.failure else None,
        "leads_elsewhere": link is None and shown.leads_elsewhere(supplier.server, supplier.suffix, consumer.server),
        "link_opens": link.failure.opens.isoformat() if link and link.failure and link.failure.opens else None,
        "rules": rules.name,
        "would_contact": shown.supplying.contacts(supplier.vector, link.remembered) if link else None,
        "unrelated": False,
        "others": {},
    }
    why = shown.supplying.refuses(supplier.generation, consumer.generation)
    if why:
        return {**row, **_nothing(REFUSED), "unrelated": True, "reasons": [_reason(why, why.replace("_", " "))]}
    row |= _decided(shown, rules, pair, logs)
    for other in others:
        theirs = _decided(shown, other, pair, logs)
        # The anchors are not compared: one rule set names the record before the first one read, the other that one itself.
        if any(theirs[key] != row[key] for key in ("decision", "to_send")):
            row["others"][other.name] = {
                key: theirs[key] for key in ("decision", "anchor", "to_send", "counts", "reasons")
            }
    return row


def _nothing(decision: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"anchor": None, "anchor_included": False}
    nothing |= {"anchor_class": None, "anchor_class_assumed": False}
    return {"decision": decision, **nothing, "stop": {}, "counts": {}, "to_send": {}}


def _reason(rule: str, says: str) -> dict[str, Any]:
    return {"rule": rule, "says": says, "values": {}}


def _decided(shown: Topology, rules: Rules, pair: Pair, logs: Mapping[str, Log]) -> dict[str, Any]:
    supplier, show = pair[0], shown.system.show
    log = logs[supplier.log.file] if supplier.log else StoredLog(shown.system, [], [])
    planned = _plan(rules, pair, log)
    row = _nothing(planned.decision) | {"anchor": planned.anchor and show(planned.anchor)}
    row["reasons"] = [
        {"rule": reason.rule, "says": rules.says[reason.rule], "values": dict(reason.values)}
        for reason in planned.reasons
    ]
    if planned.decision == NOTHING:
        return row
    not_read = supplier.log.rejected if supplier.log else 0
    if planned.decision == ANCHOR_NOT_FOUND and (not_read or (supplier.log is None and supplier.keeps_log)):
        what = (
            f"{counted(not_read, 'record')} of its log could not be read" if not_read else "its log was not collected"
        )
        return {**row, "decision": UNKNOWN, "reasons": [_reason(UNKNOWN, f"{what}: is the anchor there?")]}
    if not supplier.keeps_log:
        row["reasons"].append(_reason(NO_LOG, "it keeps no log: it supplies nobody"))
    if not_read:
        row["reasons"].append(
            _reason(NOT_WHOLE, f"{counted(not_read, 'record')} of its log could not be read: not counted here")
        )
    row["anchor_included"] = planned.included
    if planned.decision == ANCHOR_NOT_FOUND and planned.anchor:
        purged = supplier.purged
        if purged is None and supplier.log:
            # The log does not say how far it was trimmed: what it shows first is taken for that, and called an assumption.
            seen = supplier.log.facts.get("by_origin", {})
            purged, row["anchor_class_assumed"] = {origin: one["min"] for origin, one in seen.items()}, True
        row["anchor_class"] = shown.supplying.absent(planned.anchor, supplier.vector, purged or {})
    row["stop"] = {origin: show(stop) for origin, stop in sorted(planned.stops.items())}
    row["counts"] = dict(sorted(planned.counts.items()))
    row["to_send"] = {
        origin: {"count": found.changes, "first": show(found.first or ""), "last": show(found.last or "")}
        for origin, found in sorted(planned.to_send.items())
    }
    return row


def _check_equal(from_digests: list[dict[str, Any]], counted: list[dict[str, Any]]) -> None:
    for one, other in zip(from_digests, counted, strict=True):
        if one != other:
            keys = [key for key in one if one[key] != other[key]]
            raise Problem(
                f"the digests and the positions disagree on {one['supplier']} -> {one['consumer']}: {', '.join(keys)}",
                "evidence",
                "the evidence is damaged: load the inputs into a new case",
            )


def _check_differences(spark: SparkSession, known: Sequence[PositionIndex], logs: Mapping[str, StoredLog]) -> None:
    from workbench.engine.spark_missing import told_otherwise

    for log, origin in told_otherwise(spark, known):
        name = next((name for name, one in logs.items() if one is log), "a log collected earlier")
        raise Problem(
            f"the digests and the positions disagree on what {name} lacks of origin {origin}",
            "evidence",
            "the evidence is damaged: load the inputs into a new case",
        )


def session_of(
    case: Case,
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
    as_of: str | None = None,
) -> PlannedSession:
    """The session that this supplier would hold with this consumer now, change by change, a page at a time."""
    case = case_at(case, as_of)
    shown = topology(case)
    logs = {one.log.file: case.log(one.log) for one in shown.replicas if one.log and one.server == supplier}
    return session_in(shown, logs, supplier, consumer, suffix, rules)


def session_in(
    shown: Topology,
    logs: Mapping[str, StoredLog],
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
) -> PlannedSession:
    """The same of a topology that is known, with its logs: they remember what they read."""
    named = suffix and shown.system.spelled(suffix)
    fitting = [
        pair
        for pair in shown.pairs()
        if (pair[0].server, pair[1].server) == (supplier, consumer) and named in (None, pair[0].suffix)
    ]
    if not fitting:
        known = ", ".join(sorted({replica.server for replica in shown.replicas if replica.claims}))
        do = f"servers with a vector: {known}" if known else "no server has a vector: collect the vectors"
        of = f" of {suffix}" if suffix else ""
        raise Problem(f"there is no pair {supplier} -> {consumer}{of}", shown.snapshot, do)
    if len(fitting) > 1:
        suffixes = ", ".join(pair[0].suffix or "one without a name" for pair in fitting)
        raise Problem(
            f"{supplier} -> {consumer} replicate several suffixes", shown.snapshot, f"choose one of {suffixes}"
        )
    (pair,) = fitting
    log = logs[pair[0].log.file] if pair[0].log else StoredLog(shown.system, [], [])
    return PlannedSession(shown, log, _rule_sets(shown, rules)[0], pair)


COLUMNS = ["position", "origin", "outcome"]
"""Of a page of changes."""


class PlannedSession:
    """What a session of one pair would do, and what becomes of each change that it reads.

    row    the pair's row of the matrix: decision, anchor, counts, reasons
    pair   the supplier, the consumer, and the link if there is one
    log    the supplier's; empty if none was collected
    rules  the rule set
    Of the changes nothing is held but the page that is asked for.
    """

    def __init__(self, shown: Topology, log: StoredLog, rules: Rules, pair: Pair) -> None:
        supplier = pair[0]
        self._topology, self._system = shown, shown.system
        self.pair, self.log, self.rules = pair, log, rules
        self.row = _row(shown, rules, [], pair, {supplier.log.file: log} if supplier.log else {})
        self._talk = self.open()

    def open(self) -> SendSession:
        """The session as it begins, to be played once."""
        supplier, consumer, _ = self.pair
        return self.rules.open(self.log, supplier.vector, consumer.vector, consumer.origin or "")

    def under(self, rules: str) -> PlannedSession:
        """The session of the same pair under another rule set, out of the same log."""
        return PlannedSession(self._topology, self.log, _rule_sets(self._topology, rules)[0], self.pair)

    def page(self, after: str | None = None, limit: int = 1000) -> pa.Table:
        """The next changes behind the position `after` (None: from the anchor on): position, origin, outcome."""
        behind = self._system.typed(after) if after is not None else None
        if after is not None and behind is None:
            raise Problem(f"{after} is not a position", "", "give one as the table shows it")
        bound = self._talk.start.bound if self.row["decision"] == SEND else None
        if bound is None or limit < 1:
            return pa.table({name: pa.array([], pa.string()) for name in COLUMNS})
        if behind is not None and behind >= bound.position:
            bound = Bound(behind, False)
        found = self.log.page(bound, limit)
        origins = found.origin.cast(pa.string())
        return pa.table([self._shown(found), origins, self._judged(found)], COLUMNS)

    def outcome_of(self, position: str) -> str | None:
        """What becomes of one change of the log, by its order key; None: the session does not read it."""
        bound = self._talk.start.bound if self.row["decision"] == SEND else None
        if bound is None or position < bound.position or (position == bound.position and not bound.included):
            return None
        if not self.log.holds(position):
            return None
        bands = self._talk.bands(self._system.origin_of(position))
        return next((band.outcome for band in bands if band.upto is None or position <= band.upto), None)

    def _shown(self, found: Stretch) -> pa.Array:
        keys = map(self._system.order_key, found.origin.to_pylist(), found.hi.tolist(), found.lo.tolist())
        return pa.array([self._system.show(key) for key in keys], pa.string())

    def _judged(self, found: Stretch) -> pa.Array:
        """The bands of each origin laid over its positions of the page."""
        outcome = np.full(len(found.hi), "", object)
        for origin in pc.unique(found.origin).to_pylist():
            mine = np.flatnonzero(np.asarray(pc.equal(found.origin, origin)))
            hi, lo, begin = found.hi[mine], found.lo[mine], 0
            for band in self._talk.bands(origin):
                end = len(mine) if band.upto is None else place(hi, lo, self._system.halves(band.upto), "right")
                outcome[mine[begin:end]] = band.outcome
                begin = max(begin, end)
        return pa.array(outcome, pa.string())


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
