"""Kanidm: its what-if kinds, and how its positions (CIDs) read as order keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.model import Detectors, Kind, Naming, System
from workbench.replication.entry.rules.entries import Example, Pulling
from workbench.systems.kanidm.cid import SECOND, cid_or_none, halves, moment, order_key, origin_of
from workbench.systems.kanidm.codes import CODES
from workbench.systems.kanidm.formats import FORMATS
from workbench.systems.kanidm.secrets import SECRETS

if TYPE_CHECKING:
    from workbench.contracts.replication import Replication
    from workbench.repair.plan_types import Repairs


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.kanidm.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


def _pulling() -> Pulling:
    from workbench.systems.kanidm.pulling import PULLING

    return PULLING


def _walks() -> Mapping[str, Example]:
    from workbench.systems.kanidm.rules.examples import EXAMPLES

    return EXAMPLES


def _detectors() -> Detectors:
    from workbench.systems.kanidm.detectors import DETECTORS

    return DETECTORS


def _naming() -> Naming:
    from workbench.systems.kanidm.naming import NAMING  # readers of files need no names

    return NAMING


def _repairs() -> Repairs:
    from workbench.systems.kanidm.repairs import REPAIRS

    return REPAIRS


def _replication() -> Replication:
    from workbench.replication.entry.style import EntryReplication

    return EntryReplication()


SYSTEM = System(
    name="kanidm",
    title="Kanidm",
    formats=FORMATS,
    order_key=order_key,
    halves=halves,
    origin_of=origin_of,
    typed=cid_or_none,
    show=str,
    moment=moment,
    instant=lambda at: int(at.timestamp()) * SECOND,
    replication=_replication,
    bucket_shift=38,  # hi counts nanoseconds: 275 s a bucket
    scenarios=_scenarios,
    log_words=frozenset({"backup", "backup-[0-9]*", "server", "kanidm", "kanidmd"}),
    vector_word="ruv",
    pulling=_pulling,
    walks=_walks,
    detectors=_detectors,
    codes=CODES,
    repairs=_repairs,
    secrets=lambda: SECRETS,
    notebook="31_entry_replication",
    words={
        "origin": "server UUID, which a refresh changes",
        "position": "CID: the time in nanoseconds as 32 digits, and the UUID of the server that made the change",
        "vector": "RUV, replica update vector",
        "change": "the last change of an attribute, as its entry shows it, or the deletion of an entry",
        "link": "pull: the consumer asks, the supplier answers",
        "log": "none is kept: each entry carries the last change of each of its attributes",
        "session": "one pull, an incremental replication",
        "anchor": "another thing here: a CID without entries, by which a quiet server shows that it lives",
        "initialisation": "refresh",
    },
    refill="refresh",
    milestones={
        "refreshed": "it took all data of another server",
        "refresh_failed": "a refresh of it failed",
        "must_refresh": "a supplier told it that it is too far behind",
        "refresh_required": "it told a consumer that it is too far behind",
        "supplier_behind": "it was behind what a consumer still remembers",
        "diverged": "it and a consumer were each behind the other",
        "no_overlap": "it and a consumer knew nothing of each other",
        "domain_mismatch": "a consumer of another domain asked it",
        "other_domain": "it asked a supplier of another domain",
        "split_data": "it refused later own changes that came from another server",
        "clock_ahead": "changes came from its future",
        "origin_forgotten": "it forgot an origin that was quiet",
        "unreached": "it could not reach a partner",
    },
    naming=_naming,
)
