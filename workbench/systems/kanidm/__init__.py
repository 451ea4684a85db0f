"""Kanidm: its what-if kinds, and how its positions (CIDs) read as order keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.model import Detectors, Kind, Naming, System
from workbench.rules.entries import Pulling
from workbench.systems.kanidm.cid import SECOND, cid_or_none, halves, moment, order_key, origin_of
from workbench.systems.kanidm.codes import CODES
from workbench.systems.kanidm.formats import FORMATS
from workbench.systems.kanidm.secrets import SECRETS

if TYPE_CHECKING:
    from workbench.plans import Repairs


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.kanidm.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


def _pulling() -> Pulling:
    from workbench.systems.kanidm.pulling import PULLING

    return PULLING


def _detectors() -> Detectors:
    from workbench.systems.kanidm.detectors import DETECTORS

    return DETECTORS


def _naming() -> Naming:
    from workbench.systems.kanidm.naming import NAMING  # readers of files need no names

    return NAMING


def _repairs() -> Repairs:
    from workbench.systems.kanidm.repairs import REPAIRS

    return REPAIRS


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
    bucket_shift=38,  # hi counts nanoseconds: 275 s a bucket
    scenarios=_scenarios,
    log_words=frozenset({"backup", "backup-[0-9]*", "server", "kanidm", "kanidmd"}),
    vector_word="ruv",
    pulling=_pulling,
    detectors=_detectors,
    codes=CODES,
    repairs=_repairs,
    secrets=lambda: SECRETS,
    words={
        "origin": "server UUID",
        "position": "CID, change identifier: nanoseconds since 1970 as thirty-two digits, and the UUID of the server",
        "vector": "RUV, replication update vector",
        "change": "the last change of an attribute of an entry",
        "log": "none is kept: each entry carries the last change of each of its attributes",
        "link": "pull: a supplier in the configuration of its consumer",
        "session": "pull, an incremental replication",
        "anchor": "another thing here: a CID without entries, by which a quiet server shows that it lives",
        "initialisation": "refresh",
    },
    refill="refresh",
    naming=_naming,
)
