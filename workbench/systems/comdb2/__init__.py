"""Comdb2: physical log replication in tiers, and how its positions read as order keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import Detectors, Kind, Naming, System
from workbench.systems.comdb2.codes import CODES
from workbench.systems.comdb2.formats import FORMATS
from workbench.systems.comdb2.lsn import halves, order_key, origin_of, shown, typed
from workbench.systems.comdb2.naming import server_in

if TYPE_CHECKING:
    from workbench.contracts.replication import Replication
    from workbench.repair.plan_types import Repairs


def _secrets() -> Any:
    from workbench.systems.comdb2.secrets import SECRETS

    return SECRETS


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.comdb2.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


def _naming() -> Naming:
    from workbench.systems.comdb2.naming import NAMING

    return NAMING


def _tiering() -> Any:
    from workbench.systems.comdb2.tiering import TIERING  # readers of files need no rules

    return TIERING


def _detectors() -> Detectors:
    from workbench.systems.comdb2.detectors import DETECTORS

    return DETECTORS


def _repairs() -> Repairs:
    from workbench.systems.comdb2.repairs import REPAIRS

    return REPAIRS


def _servers() -> Callable[..., Any]:
    from workbench.systems.comdb2.live.servers import reach

    return reach


def _replication() -> Replication:
    from workbench.replication.tier.style import TierReplication

    return TierReplication()


SYSTEM = System(
    name="comdb2",
    title="Comdb2",
    formats=FORMATS,
    order_key=order_key,
    halves=halves,
    origin_of=origin_of,
    typed=typed,
    show=shown,
    moment=lambda key: None,  # a place in a log tells no time
    instant=lambda at: 0,
    replication=_replication,
    bucket_shift=0,
    rooms=frozenset({"meta", "nodes", "logs"}),
    server_in=server_in,
    codes=CODES,
    tiering=_tiering,
    vector_word="position",
    detectors=_detectors,
    naming=_naming,
    secrets=_secrets,
    scenarios=_scenarios,
    notebook="33_physical_tiers",
    milestones={
        "worker_stopped": "its replication was stopped",
        "worker_started": "its replication was started",
        "source_unreachable": "it could not reach its source",
        "no_viable_source": "no source that it tried has what it needs next",
        "out_of_order": "it was sent a record that does not follow its last one",
        "truncated": "it cut the end of its log off",
    },
    servers=_servers,
    schemes=frozenset({"comdb2"}),
    repairs=_repairs,
    words={
        "origin": "source database: the cluster at the top of the tree",
        "position": "LSN, a place in the log: {file:offset}",
        "vector": "what a node has of the log: its first and its last LSN",
        "change": "a log record",
        "link": "row of comdb2_physrep_connections: who pulls from whom",
        "log": "files log.NNNNNNNNNN, read with comdb2_transaction_logs",
        "session": "one connection of a replicant to its source",
        "anchor": "the match point: the newest commit that both have",
        "initialisation": "a copy of a sibling's data directory",
    },
    refill="rebuild",
)
