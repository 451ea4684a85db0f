"""Kanidm: its what-if kinds, and how its positions (CIDs) read as order keys."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.model import Detectors, Kind, System
from workbench.rules.entries import Example, Pulling
from workbench.systems.kanidm.cid import SECOND, cid_or_none, halves, moment, order_key, origin_of
from workbench.systems.kanidm.codes import CODES
from workbench.systems.kanidm.formats import FORMATS
from workbench.systems.kanidm.secrets import SECRETS


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
    vector_word="ruv",
    pulling=_pulling,
    walks=_walks,
    detectors=_detectors,
    codes=CODES,
    secrets=lambda: SECRETS,
)
