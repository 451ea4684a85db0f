"""The pair matrix of servers that send from ordered logs: what each would send to each other one now, and why not.

Its counts come from the digests and a few reads, without Spark; with a session given they are made again by a pass over all
positions, and both must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.engine.logs import StoredLog
from workbench.model import Problem, counted
from workbench.rules.send_session import (
    ANCHOR_NOT_FOUND,
    KEEPS_NO_LOG,
    LOG_NOT_WHOLE,
    NOTHING,
    REFUSED,
    Log,
    Plan,
    Rules,
    plan,
)
from workbench.topology.topology import Link, Replica, Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.engine.pairs import Asker
    from workbench.engine.position_index import PositionIndex

UNKNOWN = "unknown"

Pair = tuple[Replica, Replica, Link | None]


def pair_matrix(shown: Topology, logs: Mapping[str, Log], rules: str | None = None) -> list[dict[str, Any]]:
    """What every server would send to every other one of its suffix now, as if the session were open, in one load.

    Each row has what the other rule sets would do instead, where that differs, under `others`.
    """
    chosen, others = rule_sets(shown, rules)
    return [pair_row(shown, chosen, others, pair, logs) for pair in shown.pairs()]


def counted_logs(spark: SparkSession, shown: Topology, logs: Mapping[str, StoredLog]) -> Mapping[str, Log]:
    """The same logs, with all that the pair matrix asks of them counted by a pass of Spark over every position."""
    from workbench.engine.pairs import exact_logs

    chosen, others = rule_sets(shown, None)
    askers: dict[str, list[Asker]] = {}
    for pair in shown.pairs():
        if pair[0].log:
            askers.setdefault(pair[0].log.file, []).extend(partial(_plan, one, pair) for one in (chosen, *others))
    return exact_logs(spark, logs, askers)


def rule_sets(shown: Topology, name: str | None) -> tuple[Rules, list[Rules]]:
    """The chosen rule set, and the others."""
    known = shown.supplying.rule_sets
    if name is not None and name not in known:
        raise Problem(f"there is no rule set {name}", "", f"the rule sets are {', '.join(known)}")
    name = name or next(iter(known))
    return known[name](), [make() for other, make in known.items() if other != name]


def _plan(rules: Rules, pair: Pair, log: Log) -> Plan:
    supplier, consumer, _ = pair
    return plan(rules, log, supplier.vector, consumer.vector, consumer.origin or "")


def pair_row(
    shown: Topology, rules: Rules, others: Iterable[Rules], pair: Pair, logs: Mapping[str, Log]
) -> dict[str, Any]:
    """The row of one pair: the decision, why, and what would be sent; and where other rule sets would differ."""
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
        row["reasons"].append(_reason(KEEPS_NO_LOG, "it keeps no log: it supplies nobody"))
    if not_read:
        row["reasons"].append(
            _reason(LOG_NOT_WHOLE, f"{counted(not_read, 'record')} of its log could not be read: not counted here")
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


def check_equal(from_digests: list[dict[str, Any]], counted: list[dict[str, Any]]) -> None:
    """Raises Problem if the pairs by digests are not those by all positions."""
    for one, other in zip(from_digests, counted, strict=True):
        if one != other:
            keys = [key for key in one if one[key] != other[key]]
            raise Problem(
                f"the digests and the positions disagree on {one['supplier']} -> {one['consumer']}: {', '.join(keys)}",
                "evidence",
                "the evidence is damaged: load the inputs into a new case",
            )


def check_differences(spark: SparkSession, known: Sequence[PositionIndex], logs: Mapping[str, StoredLog]) -> None:
    """Raises Problem if digests and positions do not tell the same differences between logs."""
    from workbench.engine.spark_missing import told_otherwise

    for log, origin in told_otherwise(spark, known):
        name = next((name for name, one in logs.items() if one is log), "a log collected earlier")
        raise Problem(
            f"the digests and the positions disagree on what {name} lacks of origin {origin}",
            "evidence",
            "the evidence is damaged: load the inputs into a new case",
        )
