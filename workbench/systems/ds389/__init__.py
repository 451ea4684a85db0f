"""389 Directory Server: its files, how its positions (CSNs) read as order keys, and what its servers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.model import Detectors, Kind, Naming, System
from workbench.systems.ds389.codes import CODES
from workbench.systems.ds389.csn import change_of, csn_or_none, halves, order_key, origin_of, seconds, utc
from workbench.systems.ds389.formats import FORMATS
from workbench.systems.ds389.formats.values import suffix_named
from workbench.systems.ds389.rules.clocks import HEALTH_LEVELS

if TYPE_CHECKING:
    from workbench.contracts.replication import Replication
    from workbench.rules.send_session import Supplying
    from workbench.rules.verdicts import Proving


def _scenarios() -> Mapping[str, Kind]:
    from workbench.systems.ds389.scenarios import KINDS  # here, because the models are slow to load

    return KINDS


def _supplying() -> Supplying:
    from workbench.systems.ds389.rules.supplying import SUPPLYING  # readers of files need no rules

    return SUPPLYING


def _proving() -> Proving:
    from workbench.systems.ds389.rules.proving import PROVING

    return PROVING


def _detectors() -> Detectors:
    from workbench.systems.ds389.detectors import DETECTORS  # readers of files need no detectors

    return DETECTORS


def _without_data() -> Callable[..., dict[tuple[str, str | None], bool]]:
    from workbench.systems.ds389.detectors.initialisations import without_data  # readers of files need no detectors

    return without_data


def _unrecorded() -> Callable[..., dict[tuple[str, str | None], str]]:
    from workbench.systems.ds389.detectors.unrecorded import unrecorded

    return unrecorded


def _filled_again() -> Callable[..., dict[tuple[str, str | None], list[tuple[str, str]]]]:
    from workbench.systems.ds389.detectors.fillings_again import filled_at_start

    return filled_at_start


def _switch_on() -> Callable[..., str]:
    from workbench.systems.ds389.session_log.change_fixes import switch_on

    return switch_on


def _servers() -> Callable[..., Any]:
    from workbench.systems.ds389.live.servers import reach  # readers of files need no LDAP

    return reach


def _repairs() -> Any:
    from workbench.systems.ds389.repairs import REPAIRS  # readers of files need no repairs

    return REPAIRS


def _pending() -> Any:
    from workbench.replication.changelog.rules.pending_examples import Pending

    return Pending()


def _site() -> Callable[..., Any]:
    from workbench.systems.ds389.live.site import DirectorySite

    return DirectorySite


def _secrets() -> Any:
    from workbench.systems.ds389.secrets import SECRETS

    return SECRETS


def _naming() -> Naming:
    from workbench.systems.ds389.naming import NAMING  # readers of files need no names

    return NAMING


def _link_failures() -> Callable[..., Any]:
    from workbench.systems.ds389.session_log.link_failures import link_failures  # readers of files need no logs

    return link_failures


def _turns_away() -> Callable[..., bool]:
    from workbench.systems.ds389.session_log.hubs import taken_for

    return taken_for


def _kept_origins() -> Callable[..., dict[tuple[str, str | None], str]]:
    from workbench.systems.ds389.session_log.replicas_off import kept_origins

    return kept_origins


def _supplier_again() -> Callable[..., str]:
    from workbench.systems.ds389.session_log.change_fixes import supplier_again

    return supplier_again


def _kept_behind() -> Callable[..., str]:
    from workbench.systems.ds389.session_log.trim_risk import kept_behind

    return kept_behind


def _replication() -> Replication:
    from workbench.replication.changelog.style import ChangelogReplication

    return ChangelogReplication()


SYSTEM = System(
    name="ds389",
    title="389 Directory Server",
    formats=FORMATS,
    order_key=order_key,
    halves=halves,
    origin_of=origin_of,
    typed=csn_or_none,
    show=str,
    change_of=change_of,
    moment=lambda csn: utc(seconds(csn)),
    instant=lambda at: int(at.timestamp()) << 16,
    replication=_replication,
    bucket_shift=24,  # hi counts 1/65536 s: 256 s a bucket, the measured optimum at some ten changes a second
    log_words=frozenset({"access", "errors", "error", "audit", "auditfail"}),
    below=",",
    spelled=suffix_named,
    replaced=frozenset({"restore", "total_receive", "import_begin", "import_end"}),
    sent=frozenset({"sending"}),
    supplying=_supplying,
    proving=_proving,
    servers=_servers,
    repairs=_repairs,
    site=_site,
    scenarios=_scenarios,
    pending=_pending,
    detectors=_detectors,
    without_data=_without_data,
    unrecorded=_unrecorded,
    filled_again=_filled_again,
    codes=CODES,
    clock_levels=HEALTH_LEVELS,
    secrets=_secrets,
    words={
        "origin": "replica ID",
        "position": "CSN, change sequence number: when and where the change was made, as twenty hexadecimal digits",
        "vector": "RUV, replica update vector",
        "change": "a record of the changelog",
        "link": "replication agreement",
        "anchor": "the CSN at which a session begins to read the changelog",
        "initialisation": "total update",
    },
    milestones={
        "restore": "a restore from a backup",
        "total_receive": "an initialisation began to arrive",
        "import_begin": "an import began",
        "import_end": "an import ended",
        "replica_offline": "its data began to be replaced",
        "replica_online": "its data was there again",
        "starting": "the server started",
        "stopped": "the server stopped in good order",
        "disorderly_shutdown": "the server had not stopped in good order",
    },
    supplier_again=_supplier_again,
    switch_on=_switch_on,
    kept_origins=_kept_origins,
    turns_away=_turns_away,
    naming=_naming,
    link_failures=_link_failures,
    kept_behind=_kept_behind,
)
