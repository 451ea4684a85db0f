"""Statements of a stream that change tables as a whole, behind transactions that a log lacks.

A log lacks 3, and has 5. To insert the row of 3 now would leave a row that the source does not have:

    source  2 INSERT t  3 INSERT t  5 TRUNCATE_TABLE t        3 is missing, and 5 is in its way
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.parts import TableStatement
from workbench.replication.stream.rules.segments import CREATE_SCHEMA, NOT_APPLIED, TABLE_STATEMENTS


class WholeTable(NamedTuple):
    """A transaction, and what it does to a table as a whole."""

    position: str
    statement: TableStatement


def in_the_way(streams: Streams, server: str, origin: str) -> Iterator[WholeTable]:
    """What a server has that changed a table as a whole behind a transaction that it lacks and that changed the same table."""
    compared, source = streams.differences.get((server, origin)), streams.source_for(server, origin)
    if compared is None or compared.shared is None or source is None or not compared.difference.inside:
        return
    log, places = streams.logs[source], {lack.position: lack.place for lack in compared.difference.inside}
    first, covers = min(places.values()), compared.shared.covers
    later = {row["position"]: row[log.order] for row in log.table_changes(origin, first, covers, streams.limit)}
    statements = streams.segmented(source).table_statements(origin, [*later, *places])
    touched: dict[str, int] = {}
    for position, row in log.rows_of(origin, list(places)).items() if later else ():
        for table in (*json.loads(row["rows"] or "{}"), *(one.target for one in statements.get(position, ()))):
            touched[table] = min(touched.get(table, places[position]), places[position])
    for position, place in sorted(later.items(), key=lambda entry: entry[1]):
        for statement in statements.get(position, ()) if position not in places else ():
            of_one_table = statement.kind in TABLE_STATEMENTS
            behind = touched.get(statement.target or "", place) if of_one_table else first
            if behind < place and statement.kind != CREATE_SCHEMA:
                yield WholeTable(streams.shown.system.show(position), statement)


def not_applied(streams: Streams, server: str, origin: str) -> Iterator[WholeTable]:
    """What a server lacks and no tool applies from a log, because the log tells too little of it."""
    compared, source = streams.differences.get((server, origin)), streams.source_for(server, origin)
    if compared is None or source is None:
        return
    wanted = [lack.position for lack in (*compared.difference.inside, *compared.difference.behind)]
    rows = streams.logs[source].rows_of(origin, wanted)
    statements = streams.segmented(source).table_statements(origin, [at for at, row in rows.items() if row["ddl"]])
    for position in wanted:
        for statement in statements.get(position, ()):
            if statement.kind in NOT_APPLIED:
                yield WholeTable(streams.shown.system.show(position), statement)
