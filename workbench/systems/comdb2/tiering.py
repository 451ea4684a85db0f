"""What the settings of a fleet mean for the diagnosis, and how the log is written: `TIERING`.

The registry's answers are computed where it is held: there stand the fanout, that of single sources too, and how many rows an
answer has. What the nodes say of these counts only where nothing of that server was collected. A delay stands in a node's
configuration file alone: no table and no tunable shows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from workbench.replication.tier.rules.physical_log import Form
from workbench.replication.tier.rules.settings import NodeSettings, Settings, Tiering
from workbench.systems.comdb2.lsn import ANCHORS, COMMITS, FIRST, HEAD
from workbench.systems.comdb2.naming import REGISTRY, database_in
from workbench.systems.comdb2.rules import HOLDING, VERSIONS
from workbench.topology.tier_snapshot import LINE, TUNABLE

_ONLY_2023 = ("physrep_register_interval", "physrep_max_pending_replicants")
_ONLY_LATER = ("physrep_reconnect_interval", "physrep_keepalive_v2", "physrep_verify_source_range")
_RETENTION = "physrep_check_minlog_freq_sec"
"""Tells by its being there that the program still holds back the deletion of log files."""

_NULL = (None, "", "NULL")
_OVERRIDE = re.compile(r"(\S{1,120})\s+([0-9]{1,9})", re.ASCII)
_FROM = re.compile(r"(\S+)\s+@?(\S+)")


def told(settings: Mapping[str, NodeSettings]) -> Settings:
    """What the settings of the nodes mean; what no node tells has the default of the version that they run."""
    sources = {name: source for name, of in settings.items() if (source := _source(of))}
    registries = {name: database for name, of in settings.items() if (database := _registry(of))}
    deciding = _deciding(settings, {source for source, _ in sources.values()}, set(registries.values()))
    versions = _versions(settings)
    version = _most(_versions(deciding)) or _most(versions) or "2026"
    rules = VERSIONS[version]
    if version != "2023" and any(_RETENTION in of.get(TUNABLE, {}) for of in settings.values()):
        rules = HOLDING
    every = _number(settings, "physrep_keepalive_freq_sec", rules.keepalive_s)
    threshold = _number(settings, "physrep_hung_replicant_threshold", 60)

    def decided(name: str, default: float) -> float:
        return _number(deciding, name, _number(settings, name, default))

    return Settings(
        replace(
            rules,
            fanout=int(decided("physrep_fanout", rules.fanout)),
            fanouts=_fanouts(deciding or settings),
            most_offered=int(decided("physrep_max_candidates", rules.most_offered)),
            most_pending=rules.most_pending and int(decided("physrep_max_pending_replicants", rules.most_pending)),
            keepalive_s=int(every),
        ),
        registries,
        # With the defaults of 2026 both are 60 s, and a node that is well is often that old: two reports have to be missing.
        stale_after=max(threshold, 2 * every),
        file_size=_file_size(settings),
        sources=sources,
        delays={name: wait for name, of in settings.items() if (wait := _delay(of))},
        fanout_told=any(re.fullmatch("[0-9]{1,9}", value) for value in _values(settings, "physrep_fanout")),
        versions={version: tuple(names) for version, names in sorted(versions.items())},
        keepers=frozenset(database_in(name) for name, of in settings.items() if _keeps_registry(of) == "ON"),
        follow_none=frozenset(name for name, of in settings.items() if _names_no_source(of)),
    )


def _versions(settings: Mapping[str, NodeSettings]) -> dict[str, list[str]]:
    """Version -> the nodes that show by their settings that they run it."""
    found: dict[str, list[str]] = {}
    for name in sorted(settings):
        if (version := _version(settings[name].get(TUNABLE, {}))) is not None:
            found.setdefault(version, []).append(name)
    return found


def _most(versions: Mapping[str, list[str]]) -> str | None:
    return max(sorted(versions), key=lambda one: (len(versions[one]), one), default=None)


def _deciding(
    settings: Mapping[str, NodeSettings], sources: Collection[str], registries: Collection[str]
) -> dict[str, NodeSettings]:
    """The settings of the servers that answer who registers: of the registry's database, or where none is named of the source."""
    databases = registries or sources
    return {
        name: of
        for name, of in settings.items()
        if (held := _keeps_registry(of)) == "ON"
        or (name == REGISTRY and held != "OFF")
        or database_in(name) in databases
    }


def _keeps_registry(of: NodeSettings) -> str:
    """Whether a node says that it holds the registry's tables: ON, OFF, or empty where it does not say."""
    return (_last(of.get(TUNABLE, {}).get("physrep_i_am_metadb", ())) or "").upper()


def _names_no_source(of: NodeSettings) -> bool:
    """Whether a node's tunables say that it follows no database, and no line of its configuration names one."""
    return "physrep_source_dbname" in of.get(TUNABLE, {}) and _source(of) is None


def _registry(of: NodeSettings) -> str | None:
    """The database that a node names as the one that holds the registry."""
    name = _last(of.get(TUNABLE, {}).get("physrep_metadb_name", ()))
    line = _last(of.get(LINE, {}).get("physrep_metadb", ()))
    return name or (line.split()[0] if line and line.strip() else None)


def _fanouts(settings: Mapping[str, NodeSettings]) -> dict[str, int]:
    """The fanouts of single source databases; of several lines for one database the last counts."""
    lines = (line for of in settings.values() for line in of.get(LINE, {}).get("physrep_fanout_override", ()))
    found = (_OVERRIDE.fullmatch((line or "").strip()) for line in lines)
    return {one[1]: int(one[2]) for one in found if one}


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


TIERING = Tiering(Form(HEAD, FIRST, COMMITS, ANCHORS), told)
