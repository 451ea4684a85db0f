"""Floors as text: what every server has seen of each origin, who holds that back, and what each server may forget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.model import System
from workbench.replication.entry.diagnosis.retention_horizon import (
    MAY_HAVE_FORGOTTEN,
    OF_ANY_DATA,
    OF_NO_SERVER,
    unsure_of,
)
from workbench.text_table import aligned, one_cell
from workbench.topology.topology import IS_DOWN, NO_VECTOR, NOT_ALL, NOT_COLLECTED

Row = Mapping[str, Any]

WHY = {
    IS_DOWN: "{} could not be read when it was to be collected",
    NO_VECTOR: "of {} no vector was collected",
    NOT_COLLECTED: "{} was not collected",
    NOT_ALL: "not all of {} were collected",
    OF_NO_SERVER: "{} was heard of within the window, and is the origin of no collected server: of another one, or the former "
    "origin of one",
    OF_ANY_DATA: "{} does not tell to which of these data it belongs",
    MAY_HAVE_FORGOTTEN: "{} may have seen more of it and forgotten that, or nothing of it",
}
"""Why no floor is certain, as a sentence about who it is."""


def floors_text(system: System, found: Row) -> str:
    """A section for each group of servers that replicate the same data; nothing where servers keep logs."""
    groups = dict.fromkeys((row["suffix"], row["generation"]) for row in found["floors"])
    parts = []
    for suffix, generation in groups:
        floors, dead = (
            [row for row in found[name] if (row["suffix"], row["generation"]) == (suffix, generation)]
            for name in ("floors", "tombstones")
        )
        of = f" of {suffix or generation}" if len(groups) > 1 else ""
        parts.append(
            "\n\n".join(
                [f"What every server has seen{one_cell(of)}, and what may be forgotten:", *_group(system, floors, dead)]
            )
        )
    return "\n\n".join(parts)


def _group(system: System, floors: Sequence[Row], dead: Sequence[Row]) -> Iterator[str]:
    heads = ["ORIGIN", "MADE ON", "ALL HAVE IT UP TO", "HELD BACK BY"]
    rows = [
        [row["origin"], row["made_on"] or "?", _floor(system, row), ", ".join(row["held_by"]) or "nobody"]
        for row in floors
    ]
    yield aligned([heads, *rows])
    heads = [
        "SERVER",
        "LISTS",
        "SAFE TO FORGET",
        "FORGETS NEXT",
        "STILL NEEDED",
        "TOMBSTONES",
        "SAFE",
        "FORGETS NEXT",
        "NEEDED",
    ]
    names = dict.fromkeys(one["server"] for row in floors for one in row["servers"])
    graves = {row["server"]: row for row in dead}
    table = []
    for name in names:
        mine = [one for row in floors for one in row["servers"] if one["server"] == name]
        grave = graves.get(name, {})
        keys = ("listed", "safe", "forgets", "needed")
        counts = [total(one[key] for one in mine) for key in keys]
        counts += [grave.get(key) for key in ("kept", "safe", "forgets", "needed")]
        table.append([name, *("?" if count is None else f"{count:,}" for count in counts)])
    yield aligned([heads, *table], right=range(1, len(heads)))
    lines = [*doubts(floors), *left_behind(floors)]
    if lines:
        yield "\n".join(map(one_cell, lines))


def total(counts: Iterable[int | None]) -> int | None:
    """The sum; None: of one nobody can tell."""
    known = list(counts)
    return None if None in known else sum(one or 0 for one in known)


def _floor(system: System, row: Row) -> str:
    if row["floor"] is None:
        return "nothing"
    at = system.moment(system.typed(row["floor"]) or "")
    told = f"{at:%Y-%m-%d %H:%M:%S}" if at else row["floor"]
    return told if row["certain"] else f"{told} at most"


def doubts(floors: Iterable[Row]) -> Iterator[str]:
    """Why no floor of these is certain, in sentences; what is about one origin alone names it."""
    floors = list(floors)
    for why, names in unsure_of(floors).items():
        if why != MAY_HAVE_FORGOTTEN:
            yield f"No floor is certain: {WHY[why].format(', '.join(names))}"
            continue
        for row in floors:
            some = [one["who"] for one in row["unsure"] if one["why"] == why]
            if some:
                yield f"The floor of origin {row['origin']} is not certain: {WHY[why].format(', '.join(some))}"


def left_behind(floors: Iterable[Row]) -> Iterator[str]:
    """Whom a purge by age leaves without what it needs, in sentences."""
    for row in floors:
        for one in row["servers"]:
            if one["leaves_behind"]:
                whom = ", ".join(one["leaves_behind"])
                yield f"{one['server']} cannot supply {whom} behind its next purge: it forgets what is needed of {row['origin']}"
