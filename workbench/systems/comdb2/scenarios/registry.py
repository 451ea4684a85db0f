"""Kinds about the tables of the registry: whom a node is offered, which file pins log deletion, who is late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.input_validation import Inputs
from workbench.replication.tier.rules.candidates import Call
from workbench.replication.tier.rules.log_retention import hung, log_holder
from workbench.replication.tier.rules.registration import register
from workbench.systems.comdb2.rules import HOLDING, V2023, V2026, VERSIONS
from workbench.systems.comdb2.scenarios.fields import BareLsn, Count, Seconds, Tables, listed


class RegistryInputs(Inputs):
    """The arguments of sys.physrep.register_replicant."""

    dbname: str
    host: str
    lsn: BareLsn
    source_dbname: str
    source_hosts: list[str]


class Registration(Tables):
    """The tables, the tunables, and the call."""

    physrep_fanout: Count = V2026.fanout
    physrep_max_candidates: Count = V2026.most_offered
    physrep_max_pending_replicants: Count = 10
    firstfile_column: bool = False
    call: RegistryInputs


def registered(given: Registration) -> dict[str, Any]:
    """Whom the node is offered, and why."""
    rules, asked = VERSIONS[given.version], given.call
    rules = replace(rules, fanout=given.physrep_fanout, most_offered=given.physrep_max_candidates)
    if rules.most_pending is not None:
        rules = replace(rules, most_pending=given.physrep_max_pending_replicants)
    call = Call(asked.dbname, asked.host, asked.lsn[0], asked.source_dbname, tuple(asked.source_hosts))
    made = register(rules, given.registry(given.firstfile_column), call)
    answer: dict[str, Any] = {
        "row_count": made.rows,
        "tier_sequence": list(made.tiers),
        "candidate_union": [[one.tier, one.database, one.host] for one in made.union],
        "second_pass": made.second_pass,
        "refused": made.refused or None,
        "endless": made.endless,
        "after": {
            "physreps": listed((one.database, one.host, one.state) for one in made.after.nodes),
            "connections": listed(
                (one.database, one.host, one.source_database, one.source_host) for one in made.after.pulls
            ),
        },
        "reasons": dict(made.reasons),
    }
    if not rules.random_ties:
        own = [[one.database, one.host, one.state] for one in made.after.nodes if one.name == call.name]
        answer["rows"] = [[one.tier, one.database, one.host] for one in made.in_order]
        answer["caller_row_after"] = own[0] if own else None
    return answer


class LogDeletion(Tables):
    """The tables, and the nodes of the source."""

    source_dbname: str
    source_hosts: list[str]
    threshold_s: Seconds = 60


def log_deletion(given: LogDeletion) -> dict[str, Any]:
    """The file by the query as it was before June 2026 and by that of 2023, who needs it, and how many are late."""
    registry = given.registry()
    holding = log_holder(HOLDING, registry, given.source_dbname, given.source_hosts)
    seed = log_holder(V2023, registry, given.source_dbname, given.source_hosts)
    return {
        "min_file_with_state_Active": holding.file,
        "min_file_seed_version_state_ACTIVE": seed.file,
        "hung_count_current_sql": len(hung(V2026, registry, given.source_dbname, given.threshold_s)),
        "hung_count_seed_sql": len(hung(V2023, registry, given.source_dbname, given.threshold_s)),
        "holders_with_state_Active": list(holding.holders),
        "holders_seed_version_state_ACTIVE": list(seed.holders),
    }


class Late(Tables):
    """The tables, and the age of a keepalive from which on a node is late."""

    source_dbname: str
    threshold_s: Seconds = 60


def late(given: Late) -> dict[str, Any]:
    """How many are late, as the query of each version counts, and who."""
    registry = given.registry()
    now, then = (hung(rules, registry, given.source_dbname, given.threshold_s) for rules in (V2026, V2023))
    return {
        "count_current_sql": str(len(now)),
        "count_seed_sql": str(len(then)),
        "current_sql": list(now),
        "seed_sql": list(then),
    }
