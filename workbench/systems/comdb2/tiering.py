"""What the settings of a fleet mean for the diagnosis, and how the log is written: `TIERING`.

The registry's answers are computed where it is held, so its own settings count for these; of most fleets only the nodes' are
collected, and those agree. A delay stands in a node's configuration file alone: no table and no tunable shows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from workbench.fleet.tiered import LINE, TUNABLE
from workbench.rules.physical_log import Form
from workbench.rules.tiering import NodeSettings, Tiering, Told
from workbench.systems.comdb2.lsn import FIRST, HEAD
from workbench.systems.comdb2.rules import HOLDING, VERSIONS

COMMITS = frozenset({151, 1151, 2151, 3151})
"""Kinds of records that end a transaction, with the generation; thousands are versions of a kind."""

CHECKPOINTS = frozenset({11, 1011, 2011, 3011})

_ONLY_2023 = ("physrep_register_interval", "physrep_max_pending_replicants")
_ONLY_LATER = ("physrep_reconnect_interval", "physrep_keepalive_v2", "physrep_verify_source_range")
_RETENTION = "physrep_check_minlog_freq_sec"
"""Tells by its being there that the program still holds back the deletion of log files."""

_NULL = (None, "", "NULL")
_FROM = re.compile(r"(\S+)\s+@?(\S+)")


def told(settings: Mapping[str, NodeSettings]) -> Told:
    """What the settings of the nodes mean; what no node tells has the default of the version that they run."""
    versions: dict[str, list[str]] = {}
    for name in sorted(settings):
        if (version := _version(settings[name].get(TUNABLE, {}))) is not None:
            versions.setdefault(version, []).append(name)
    version = max(sorted(versions), key=lambda one: (len(versions[one]), one), default="2026")
    rules = VERSIONS[version]
    if version != "2023" and any(_RETENTION in of.get(TUNABLE, {}) for of in settings.values()):
        rules = HOLDING
    every = _number(settings, "physrep_keepalive_freq_sec", rules.keepalive_s)
    threshold = _number(settings, "physrep_hung_replicant_threshold", 60)
    return Told(
        replace(
            rules,
            fanout=int(_number(settings, "physrep_fanout", rules.fanout)),
            most_offered=int(_number(settings, "physrep_max_candidates", rules.most_offered)),
            most_pending=rules.most_pending
            and int(_number(settings, "physrep_max_pending_replicants", rules.most_pending)),
            keepalive_s=int(every),
        ),
        not any(_last(of.get(TUNABLE, {}).get("physrep_metadb_name", ())) for of in settings.values()),
        # With the defaults of 2026 both are 60 s, and a node that is well is often that old: two reports have to be missing.
        stale_after=max(threshold, 2 * every),
        file_size=_file_size(settings),
        sources={name: source for name, of in settings.items() if (source := _source(of))},
        delays={name: wait for name, of in settings.items() if (wait := _delay(of))},
        versions={version: tuple(names) for version, names in sorted(versions.items())},
    )


def _version(tunables: Mapping[str, list[str | None]]) -> str | None:
    if any(name in tunables for name in _ONLY_LATER):
        return "2026"
    return "2023" if any(name in tunables for name in _ONLY_2023) else None


def _values(settings: Mapping[str, NodeSettings], name: str) -> Iterator[str]:
    """What the nodes say of a setting: as it is set now, else as their configuration file has it."""
    for of in settings.values():
        for kind in (TUNABLE, LINE):
            told = [value for value in of.get(kind, {}).get(name, ()) if value is not None]
            if told:
                yield told[-1]
                break


def _number(settings: Mapping[str, NodeSettings], name: str, default: float) -> float:
    """What most nodes say; text that is no number says nothing."""
    numbers = Counter(value for value in _values(settings, name) if re.fullmatch("[0-9]{1,9}", value))
    return float(max(sorted(numbers), key=numbers.__getitem__)) if numbers else float(default)


def _file_size(settings: Mapping[str, NodeSettings]) -> int | None:
    for of in settings.values():
        for value in of.get(LINE, {}).get("setattr", ()):
            found = re.fullmatch(r"LOGFILESIZE\s+([0-9]{1,12})", value or "", re.IGNORECASE)
            if found:
                return int(found[1])
    return None


def _source(of: NodeSettings) -> tuple[str, tuple[str, ...]] | None:
    """The source database that a node follows, and the hosts of it that it names."""
    tunables = of.get(TUNABLE, {})
    (database, hosts) = (_last(tunables.get(name, ())) for name in ("physrep_source_dbname", "physrep_source_host"))
    if database is not None:
        return database, _hosts(hosts or "")
    line = _last(of.get(LINE, {}).get("replicate_from", ()))
    found = _FROM.fullmatch(line.strip()) if line else None
    return (found[1], _hosts(found[2])) if found else None


def named_in_file(of: NodeSettings) -> tuple[str, ...]:
    """The hosts that a node's configuration file names as its source: all of them, as they were written."""
    line = _last(of.get(LINE, {}).get("replicate_from", ()))
    found = _FROM.fullmatch(line.strip()) if line else None
    return _hosts(found[2]) if found else ()


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(host for host in text.removeprefix("@").split(",") if host)


def _last(values: Iterable[str | None]) -> str | None:
    known = [value for value in values if value not in _NULL]
    return known[-1] if known else None


def _delay(of: NodeSettings) -> float | None:
    wait = _last(of.get(LINE, {}).get("replicate_wait", ()))
    return float(wait) if wait and re.fullmatch("[0-9]{1,9}", wait) and int(wait) else None


TIERING = Tiering(Form(HEAD, FIRST, COMMITS, COMMITS | CHECKPOINTS), told)
