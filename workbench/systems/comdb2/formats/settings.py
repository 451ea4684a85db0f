"""How a node is set, and what it counts: comdb2_tunables and comdb2_metrics.

Four columns with the node in front, as they are collected of many nodes; or as one node answers, all that it has
(`name, description, type, value, read_only`) or the two that matter (`name, value`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.systems.comdb2.formats.listed import Column, Listing, Made, Row, listing_format
from workbench.systems.comdb2.formats.printed import Values, first_rows
from workbench.systems.comdb2.formats.values import decimal, flag, word
from workbench.systems.comdb2.naming import node_name
from workbench.systems.comdb2.secrets import harmless

_METRICS = frozenset(
    {"bpool_hits", "bpool_misses", "commits", "concurrent_sql", "concurrent_connections", "connections", "cpu_percent"}
    | {"current_connections", "diskreads", "diskwrites", "fstraps", "lockrequests", "lockwaits", "memory_usage"}
    | {"physrep_metadb_sql_count", "physrep_no_viable_source", "preads", "pwrites", "queue_depth", "rep_deadlocks"}
    | {"retries", "rw_evicts", "service_time", "sql_cost", "sql_count", "start_time", "threads", "verify_replays"}
)
_TUNABLE = re.compile(r"(?:physrep|revsql|tranlog|reverse)_[a-z0-9_]+|blocking_physrep")
_TYPES = frozenset({"BOOLEAN", "INTEGER", "DOUBLE", "STRING", "ENUM", "COMPOSITE", "RAW"})


def _type(text: str) -> str:
    if text not in _TYPES:
        raise ValueError("is no type of a tunable")
    return text


def _made(kind: str) -> Made:
    def made(row: Row, server: str) -> Iterator[tuple[str, Row]]:
        node = {"server": node_name(row["dbname"], row["host"])} if "dbname" in row else {}
        yield "settings", {**node, "kind": kind, "name": row["name"], "value": row["value"]}

    return made


def _kept(row: Row) -> Row:
    return {**row, "value": harmless(row["name"], row["value"])}


_NODE = (Column("dbname", word), Column("host", word))
_NAME, _VALUE = Column("name", word), Column("value", str, null=True)
_ABOUT = (_NAME, Column("description", str, null=True), Column("type", _type), _VALUE, Column("read_only", flag))
_TUNABLES = Listing(((*_NODE, _NAME, _VALUE), _ABOUT, (_NAME, _VALUE)), _made("tunable"), _kept)
_COUNT = Column("value", decimal, null=True)
_COUNTS = Listing(((*_NODE, _NAME, _COUNT), (_NAME, _COUNT)), _made("metric"), _kept)


def _setting(values: Values) -> str:
    if isinstance(values, list):
        return values[2 if len(values) == 4 else 0] or ""
    return values.get("name") or ""


def names_a_setting(head: bytes) -> bool:
    """True if most of the first rows name a tunable or a metric where those have their names."""
    names = [_setting(row) for row in first_rows(head)]
    return sum(name in _METRICS or bool(_TUNABLE.fullmatch(name)) for name in names) * 2 > len(names)


def _are_metrics(head: bytes, name: str) -> bool:
    names = {_setting(row) for row in first_rows(head)}
    known = len(names & _METRICS)
    return known * 2 > len(names) or (bool(known) and "metric" in name.lower())


def _are_tunables(head: bytes, name: str) -> bool:
    row = first_rows(head)[0]
    return names_a_setting(head) or "tunable" in name.lower() or len(row) == 5


METRICS = listing_format("comdb2.metrics", _COUNTS, _are_metrics, empty="comdb2_metrics")
TUNABLES = listing_format("comdb2.tunables", _TUNABLES, _are_tunables, empty="comdb2_tunables")
