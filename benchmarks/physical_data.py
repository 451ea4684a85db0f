"""The evidence of two nodes that replicate a physical log, written as a load of their dumps writes it.

Kinds and lengths of the records come about as often as in a dump of a real server. The log of the copy lacks records, singly
and in a row, holds others in place of some, and ends before that of the reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.engine.partition_writer import write_part
from workbench.model import Source
from workbench.replication.tier.rules.physical_log import FORM
from workbench.tables import COLUMNS, TIME, Numbers

PART = 250_000
FILE_BYTES = 40 << 20
"""How long a file of the log becomes, as such a database is installed."""

SINGLE, IN_A_ROW, CHANGED = 60, 1000, 50
_KINDS = ((3041, 3021), (3057, 305), (3058, 102), (2002, 64), (2151, 30), (3049, 14), (3062, 13), (3066, 9), (2011, 5))
_LENGTHS = {3041: 94, 3057: 60, 3058: 99, 2002: 106, 2151: 157, 3049: 76, 3062: 4192, 3066: 77, 2011: 56}
_VARIED = {3041: 18, 3058: 16, 2151: 80}
_LAST_COMMITS = 100
_BLOCK = 1_000_000


def planted(records: int) -> dict[str, Numbers]:
    """By number: records that the copy lacks, records that it holds otherwise, and (one) the first that it has not yet."""
    chance = np.random.default_rng(records)
    end = records - records // 100
    inside = chance.choice(np.arange(1000, end - 1000, 3), SINGLE + CHANGED, replace=False)
    begin = end // 2
    run = np.arange(begin, begin + IN_A_ROW)
    inside = inside[(inside < begin - 2) | (inside > begin + IN_A_ROW + 2)]
    return {
        "lost": np.sort(np.append(inside[: len(inside) // 2], run)),
        "changed": np.sort(inside[len(inside) // 2 :]),
        "end": np.array([end]),
    }


def blocks(records: int) -> Iterator[tuple[Numbers, dict[str, Numbers]]]:
    """(numbers, columns) of the log, some records at a time."""
    kinds = np.repeat([kind for kind, _ in _KINDS], [count for _, count in _KINDS])
    mean, spread = np.zeros(1 << 13, np.int64), np.ones(1 << 13, np.int64)
    for kind, _ in _KINDS:
        mean[kind], spread[kind] = _LENGTHS[kind], _VARIED.get(kind, 0) * 2 + 1
    file, place = 1, FORM.begins
    for begin in range(0, records, _BLOCK):
        number = np.arange(begin, min(begin + _BLOCK, records), dtype=np.int64)
        chance = np.random.default_rng(begin)
        kind = kinds[chance.integers(0, len(kinds), len(number))]
        kind[number >= records - _LAST_COMMITS] = 2151
        length = mean[kind] + chance.integers(0, spread[kind]) - spread[kind] // 2
        hi, lo = np.empty_like(number), np.empty_like(number)
        at = 0
        while at < len(number):
            ends = place + np.cumsum(length[at:] + FORM.head)
            count = max(int(np.searchsorted(ends, FILE_BYTES, "right")), 0)
            hi[at : at + count] = file
            lo[at : at + count] = np.append(place, ends[: count - 1])[:count]
            if count:
                place, at = int(ends[count - 1]), at + count
            if at < len(number):
                file, place = file + 1, FORM.begins
        content = chance.integers(np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max, len(number))
        yield number, {"hi": hi, "lo": lo, "length": length, "kind": kind, "content": content}


def made(folder: Path, records: int) -> dict[str, Any]:
    """The parts of both nodes, and what is to be found. Made once: a folder that is there is taken as it is."""
    known = folder / "parts.json"
    if not known.exists():
        folder.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(_made(folder, records)), encoding="utf-8")
    told: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
    return told


def _made(folder: Path, records: int) -> dict[str, Any]:
    faults = planted(records)
    end = int(faults["end"][0])
    parts: dict[str, list[dict[str, Any]]] = {"reference": [], "copy": []}
    edges: dict[int, tuple[int, int]] = {}
    beside = np.unique(np.concatenate([faults["lost"] - 1, faults["lost"] + 1]))
    for number, columns in blocks(records):
        near = np.flatnonzero(np.isin(number, beside))
        edges |= {int(number[at]): (int(columns["hi"][at]), int(columns["lo"][at])) for at in near}
        copied = columns | {"content": np.where(np.isin(number, faults["changed"]), 1, columns["content"])}
        kept = ~np.isin(number, faults["lost"]) & (number < end)
        for node, of, which in (("reference", columns, np.ones(len(number), bool)), ("copy", copied, kept)):
            mine = {name: values[which] for name, values in of.items()}
            for at in range(0, int(which.sum()), PART):
                some = {name: values[at : at + PART] for name, values in mine.items()}
                parts[node].append(_written(folder, node, some, number[which][at : at + PART]))
    breaks = np.flatnonzero(np.diff(faults["lost"]) > 1)
    firsts = faults["lost"][np.append(0, breaks + 1)].tolist()
    lasts = faults["lost"][np.append(breaks, len(faults["lost"]) - 1)].tolist()
    gaps = sorted((*edges[first - 1], *edges[last + 1]) for first, last in zip(firsts, lasts, strict=True))
    found = {"differing": len(faults["changed"]), "only_reference": len(faults["lost"]), "behind": records - end}
    return {"parts": parts, "found": {"gaps": gaps, **found}}


def _written(folder: Path, node: str, columns: dict[str, Numbers], number: Numbers) -> dict[str, Any]:
    rows = {name: pa.array(values) for name, values in columns.items()}
    dated = np.isin(columns["kind"], [2151, 2011])
    rows["generation"] = pa.array(np.full(len(dated), 4), mask=~dated)
    rows["at"] = pa.array(1_700_000_000_000_000 + number * 1000, TIME, mask=~dated)
    rows["transaction"] = pa.array(number // 40)
    rows["offset"] = pa.array(number * 92)
    table = pa.table({name: rows[name].cast(kind) for name, (kind, _) in COLUMNS["records"].items()})
    ends = [(int(columns["hi"][at]), int(columns["lo"][at])) for at in (0, -1)]
    part = write_part(folder, "records", table, Source(f"{node}.tsv", "now", node), *ends)
    return {**part, "path": str(folder / "records" / part["name"])}
