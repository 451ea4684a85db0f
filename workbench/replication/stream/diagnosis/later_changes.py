"""Transactions that a log has behind one that it lacks, in tables that both change: the lacked one may be overtaken.

source  5 UPDATE t (row 3)  7 UPDATE t (row 3)     5 is missing, and the copy has 7: 5 would take row 3 back
source  5 INSERT t (row 3)  7 INSERT t (row 4)     two that only add rows change no row twice
"""

from __future__ import annotations

import json
from typing import NamedTuple

from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.rules.segments import ROW_STATEMENTS

NAMED = 4
"""So many later transactions are looked for."""

_ADDS = frozenset({ROW_STATEMENTS["INSERT"]})


class LaterChanges(NamedTuple):
    """The first transactions that came behind what is missing, and the tables that both change."""

    positions: list[str]
    tables: list[str]


def changed_later(streams: Streams, server: str, origin: str) -> LaterChanges | None:
    """What a server has behind transactions that it lacks, and may have changed the same rows; None: there is nothing."""
    compared, source = streams.differences.get((server, origin)), streams.source_for(server, origin)
    if compared is None or compared.shared is None or source is None or not compared.difference.inside:
        return None
    log, places = streams.logs[source], {lack.position: lack.place for lack in compared.difference.inside}
    changed: dict[str, list[tuple[int, bool]]] = {}
    for position, row in log.rows_of(origin, list(places)).items():
        for table, rows in json.loads(row["rows"] or "{}").items():
            changed.setdefault(table, []).append((places[position], rows.keys() <= _ADDS))
    lacked = places.keys() | {lack.position for lack in compared.difference.behind}
    positions, tables = list[tuple[int, str]](), set[str]()
    for row in log.commits(min(places.values()), compared.shared.covers, origin):
        if row["position"] in lacked:
            continue
        both = {
            table
            for table, rows in json.loads(row["rows"] or "{}").items()
            for place, adds in changed.get(table, ())
            if place < row[log.order] and not (adds and rows.keys() <= _ADDS)
        }
        if both:
            positions.append((row[log.order], row["position"]))
            tables |= both
        if len(positions) == NAMED:
            break
    shown = [streams.shown.system.show(position) for _, position in sorted(positions)]
    return LaterChanges(shown, sorted(tables)) if shown else None
