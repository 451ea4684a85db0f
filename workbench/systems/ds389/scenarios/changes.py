"""apply_result, missed_change, lag_report: what became of single changes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from workbench.input_validation import Inputs
from workbench.rules.arrivals import first_arrivals, hops, spread
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.applying import after_result, cause_of, judge
from workbench.systems.ds389.scenarios.fields import Csn, PerRid


class ApplyResult(Inputs):
    """LDAP result codes."""

    ldap_results: list[int]


class Answer(Inputs):
    """A row of the consumer's access log."""

    csn: Csn
    result: int


class MissedChange(Inputs):
    """What the consumer claims and shows, beside what the supplier has; the log's rows in the order of time."""

    consumer_max_csn: PerRid[Csn]
    changes_on_supplier: list[Csn]
    consumer_changelog: list[Csn]
    consumer_access_log: list[Answer]
    consumer_first_kept_csn: PerRid[Csn] = Field(default_factory=dict)


class ArrivalAt(Inputs):
    """A change seen at a server."""

    server: str
    t_ms: int


class LagReport(Inputs):
    """One change, all servers, and where it was seen when."""

    servers: list[str]
    csn: Csn
    server_of_rid: PerRid[str]
    arrivals: list[ArrivalAt]


def apply_result(given: ApplyResult) -> dict[str, Any]:
    """What the supplier does after each result."""
    return {"actions": {str(code): after_result(code) for code in given.ldap_results}}


def missed_change(given: MissedChange) -> dict[str, Any]:
    """The changes that the consumer's changelog lacks: missed, unknown or still to come; and why they were missed."""
    absent = set(given.changes_on_supplier).difference(given.consumer_changelog)
    answers = {row.csn: row.result for row in given.consumer_access_log}
    judged = judge(absent, given.consumer_max_csn, answers, given.consumer_first_kept_csn)
    causes = {csn: {"reason": cause_of(answers.get(csn)), "ldap_result": answers.get(csn)} for csn in judged.missed}
    return {"missed": judged.missed, "unknown": judged.unknown, "pending": judged.pending, "cause": causes}


def lag_report(given: LagReport) -> dict[str, Any]:
    """The way of the change. Its origin is the server of its replica ID: the earliest arrival may be a fast clock."""
    ordered = first_arrivals((one.t_ms, one.server) for one in given.arrivals)
    reached = {server for _, server in ordered}
    origin = given.server_of_rid.get(origin_of(given.csn))
    missing = sorted(set(given.servers) - reached)
    return {
        "origin_server": origin,
        "origin_in_arrivals": origin in reached,
        "server_count": len(ordered),
        "global_lag_ms": spread(ordered),
        "hops": [{"from": here, "to": there, "lag_ms": lag} for here, there, lag in hops(ordered)],
        "missing_on": missing,
        "replicated_to_all": not missing,
    }
