"""Two contents of one transaction, where a log has messages without numbers: those of a filter, and of writers before 2011.

A filter drops statements by schema or table, and the numbers of messages with them. So the hashes of two contents differ that
are alike but for that, and what both have of a table must still be the same:

    source  5/1 end  INSERT t (1 row), INSERT u (1 row)     copy  5  INSERT t (1 row)     nothing of u: left out by a filter, if
                                                                                          the copy has nothing of u anywhere
    source  5/1 end  INSERT t (2 rows)                      copy  5  INSERT t (1 row)     unlike: a filter takes whole tables
    source  5        INSERT t (x)                           copy  5  INSERT t (y)         unlike: neither has numbers
    source  5/1 end  INSERT t (100 bytes)                   copy  5  INSERT t (99 bytes)  unlike: the numbers take 4 bytes
    source  5/1 end  INSERT t (100 bytes)                   copy  5  INSERT t (96 bytes)  not compared
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

ALIKE, UNLIKE, LEFT_OUT, NOT_COMPARED = "alike", "unlike", "left_out", "not_compared"

NUMBER_BYTES = 4
"""The bytes of `segment_id` and `end_segment` in a message: a tag and a value each."""

_ONE_BYTE = 128
"""Numbers below this one take one byte."""


@dataclass(frozen=True)
class Committed:
    """A committed transaction of one log.

    content   the hash of its messages
    numbered  they say which is the last
    rows      table -> operation -> number
    other     its statements that change no rows
    messages  how many, and `size`, their bytes
    """

    content: int
    numbered: bool
    rows: Mapping[str, Mapping[str, int]]
    other: str
    messages: int
    size: int


def contents_of_two(
    source: Committed, copy: Committed, there: Container[str], here: Container[str]
) -> tuple[str, frozenset[str]]:
    """How two contents compare, and the tables that the one without numbers has nothing of.

    `there`, `here`: the tables of which the log of the source and that of the copy have anything at all.
    """
    if source.content == copy.content:
        return ALIKE, frozenset()
    if source.numbered and copy.numbered:
        return UNLIKE, frozenset()
    if any(source.rows[table] != copy.rows[table] for table in source.rows.keys() & copy.rows.keys()):
        return UNLIKE, frozenset()
    only_source, only_copy = source.rows.keys() - copy.rows.keys(), copy.rows.keys() - source.rows.keys()
    # Nothing of a table is missing by a filter where the log has its numbers, or has the table elsewhere.
    if only_source and (copy.numbered or any(table in here for table in only_source)):
        return UNLIKE, frozenset()
    if only_copy and (source.numbered or any(table in there for table in only_copy)):
        return UNLIKE, frozenset()
    if only_source or only_copy:
        return LEFT_OUT, frozenset(only_source)
    if source.other != copy.other or source.messages != copy.messages:
        return NOT_COMPARED, frozenset()
    if source.numbered == copy.numbered:
        return UNLIKE, frozenset()
    longer, least = (source.size - copy.size) * (1 if source.numbered else -1), NUMBER_BYTES * source.messages
    most = least if source.messages < _ONE_BYTE else 2 * least
    return (NOT_COMPARED if least <= longer <= most else UNLIKE), frozenset()
