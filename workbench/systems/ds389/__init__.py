"""389 Directory Server: its files, how its positions (CSNs) read as order keys, and what its servers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, Kind, System
from workbench.systems.ds389.csn import csn_or_none, halves, order_key, origin_of, seconds, utc
from workbench.systems.ds389.formats import FORMATS
from workbench.systems.ds389.formats.values import suffix_named

if TYPE_CHECKING:
    from workbench.rules.sending import Supplying


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.ds389.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


def _supplying() -> Supplying:
    from workbench.systems.ds389.rules.supplying import SUPPLYING  # readers of files need no rules

    return SUPPLYING


def _detectors() -> list[Callable[[Any, Any], Iterable[Finding]]]:
    from workbench.systems.ds389.logged.comparison import anchor_disagrees  # readers of files need no detectors

    return [anchor_disagrees]


def _servers() -> Callable[..., Any]:
    from workbench.systems.ds389.live.servers import reach  # readers of files need no LDAP

    return reach


SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=FORMATS,
    order_key=order_key,
    halves=halves,
    origin_of=origin_of,
    typed=csn_or_none,
    show=str,
    moment=lambda csn: utc(seconds(csn)),
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
    below=",",
    spelled=suffix_named,
    supplying=_supplying,
    servers=_servers,
    scenarios=_scenarios,
    detectors=_detectors,
)
