"""Snapshots of made-up trees, as files that cdb2sql would print: the registry, what nodes answer, their files and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
FILE_SIZE = 1 << 20

Lsn = tuple[int, int]


@dataclass
class Made:
    """A node, `database@host`.

    at       its newest place; `reported`: what the registry knows of it, by default the same
    first    its oldest file; `lacks`: files of its log that its folder does not show
    age      seconds since it last reported itself; None: never
    state    None: it has no row
    source   the node that it pulls from, as the registry says
    answers  None: it was not asked; `asked_before`: seconds before all others
    """

    name: str
    at: Lsn = (9, 1000)
    first: int = 8
    age: float | None = 5
    state: str | None = "Active"
    source: str | None = None
    answers: bool | None = True
    reported: Lsn | None = None
    asked_before: int = 0
    generation: int = 4
    cuts: int = 0
    tunables: Mapping[str, str] = field(default_factory=dict)
    lrl: str = ""
    log: str = ""
    lacks: Sequence[int] = ()


TUNABLES = {
    "physrep_fanout": "2",
    "physrep_keepalive_freq_sec": "10",
    "physrep_hung_replicant_threshold": "60",
    "physrep_max_candidates": "6",
    "physrep_reconnect_interval": "3600",
}


def written(folder: Path, nodes: Sequence[Made], awaited: Sequence[str] = (), now: datetime = NOW, **more: str) -> Path:
    """Write the snapshot; `awaited` are rows `node source` of comdb2_physrep_sources; `more`: tunables of every node."""

    def at(age: float) -> str:
        when = now - timedelta(seconds=age)
        return f'"{when:%Y-%m-%dT%H%M%S}.{when.microsecond // 1000:03d} UTC"'

    def split(name: str) -> list[str]:
        return name.split("@", 1)

    meta, of, logs = (folder / room for room in ("meta", "nodes", "logs"))
    for room in (meta, of, logs):
        room.mkdir(parents=True, exist_ok=True)
    rows = {name: [] for name in ("physreps", "connections", "positions", "logfiles", "tunables")}
    for one in nodes:
        reported = one.reported or one.at
        if one.state is not None:
            when = "NULL" if one.age is None else at(one.age)
            rows["physreps"].append([*split(one.name), *map(str, reported), str(one.first), when, one.state])
        if one.source:
            rows["connections"].append([*split(one.name), *split(one.source)])
        if one.answers is not None:
            asked = f"{now - timedelta(seconds=one.asked_before):%Y-%m-%dT%H:%M:%S}.000Z"
            place, seconds = f"{{{one.at[0]}:{one.at[1]}}}", str(int(now.timestamp()) - 5)
            told = [f"{{{one.first}:28}}", *2 * [place, str(one.generation), seconds], str(one.cuts)]
            rows["positions"].append([asked, *split(one.name), *(told if one.answers else ["UNREACHABLE"])])
        for number in (file for file in range(one.first, one.at[0] + 1) if file not in one.lacks):
            size = one.at[1] + 68 if number == one.at[0] else FILE_SIZE - 100
            rows["logfiles"].append([*split(one.name), f"log.{number:010d}", str(size), str(int(now.timestamp()))])
        rows["tunables"] += [[*split(one.name), *pair] for pair in {**TUNABLES, **more, **one.tunables}.items()]
        for kind, text in (("lrl", one.lrl), ("log", one.log)):
            if text:
                (logs / f"{one.name.replace('@', '.')}.{kind}").write_text(text)
    rows["sources"] = [[part for name in row.split() for part in split(name)] for row in awaited]
    for name in ("physreps", "connections", "sources"):
        file = "comdb2_physreps" if name == "physreps" else f"comdb2_physrep_{name}"
        (meta / f"{file}.tsv").write_text(_tabs(rows[name]))
    for name in ("positions", "logfiles", "tunables"):
        (of / f"{name}.tsv").write_text(_tabs(rows[name]))
    (meta / "now.txt").write_text(f"{at(0)}\n{at(-2)}\n")
    return folder


def _tabs(rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)
