"""The evidence of a mesh of four servers, written as a load writes it, without the files that a load would read.

Ten changes a second of four origins; each server's log holds all but those that are given as lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workbench import Case
from workbench.engine.change_fingerprints import likeness
from workbench.engine.digests import digest, fold, mix
from workbench.engine.partition_writer import write_part
from workbench.intake.inputs import Input
from workbench.model import Source
from workbench.rules.vectors import Span
from workbench.systems.ds389 import SYSTEM
from workbench.tables import TIME
from workbench.topology.topology import VECTOR, Replica, Topology

START, RATE, SERVERS, SUFFIX = 0x66000000, 10, 4, "dc=example,dc=com"
PART = 64_000
"""Positions in one part: as many as a range of a real changelog holds."""

_ENTRIES, _BODIES = 1_000_000, 4_000

Numbers = np.ndarray[Any, Any]


def positions(changes: int) -> tuple[Numbers, Numbers, Numbers]:
    """(origin number, hi, lo) of all changes, in the order of time."""
    number = np.arange(changes, dtype=np.int64)
    rid = number * 2654435761 % SERVERS + 1
    hi = ((START + number // RATE) << 16) | (number % RATE)
    return rid, hi, rid << 16


def made(folder: Path, changes: int, lost: Mapping[int, Numbers], details: bool = False) -> Case:
    """The case in which each server's log lacks the changes with these numbers; with `details`, what each change did, too.

    Made once: a folder that is there is taken as it is.
    """
    known = folder / "inputs.json"
    if not known.exists():
        (folder / "evidence").mkdir(parents=True)
        (folder / "case.yaml").write_text("name: bench\n")
        known.write_text(json.dumps([vars(one) for one in _logs(folder / "evidence", changes, lost, details)]))
    return Case(folder, "bench", {"now": str(folder)}, [Input(**one) for one in json.loads(known.read_text())])


def _logs(evidence: Path, changes: int, lost: Mapping[int, Numbers], details: bool) -> list[Input]:
    rid, hi, lo = positions(changes)
    names = pa.array([str(one) for one in range(1, SERVERS + 1)])
    sources = [Source(f"s{one}.changelog.ldif", "now", f"s{one}", SUFFIX) for one in range(1, SERVERS + 1)]
    parts: list[list[dict[str, Any]]] = [[] for _ in sources]
    digests: list[list[pa.Table]] = [[] for _ in sources]
    kept = [np.ones(changes, bool) for _ in sources]
    for server, numbers in lost.items():
        kept[server - 1][numbers] = False
    for begin in range(0, changes, PART):
        block = slice(begin, begin + PART)
        origin = pa.DictionaryArray.from_arrays(pa.array((rid[block] - 1).astype(np.int32)), names)
        rows = pa.table({"origin": origin, "hi": hi[block], "lo": lo[block]})
        whole = _details(np.arange(begin, begin + len(rows)), rows) if details else None
        for number, source in enumerate(sources):
            there = np.flatnonzero(kept[number][block])
            if not len(there):
                continue
            mine = rows.take(pa.array(there))
            hi_, lo_ = mine["hi"].to_numpy(), mine["lo"].to_numpy()
            ends = [(int(hi_[at]), int(lo_[at])) for at in (0, -1)]
            if whole is not None:
                changes = whole.take(pa.array(there))
                parts[number].append(write_part(evidence, "changes", changes, source, *ends))
                entry, text = (changes[name].combine_chunks() for name in ("entry", "body"))
                alike = pa.table({"number": np.sort(likeness(entry, text, SYSTEM.proving()))})
                of = parts[number][-1]["name"]
                parts[number].append({**write_part(evidence, "alike", alike, source), "of": of})
            parts[number].append(write_part(evidence, "positions", mine, source, *ends))
            digests[number].append(digest(mine["origin"].combine_chunks(), hi_, lo_, SYSTEM.bucket_shift))
    inputs = []
    for number, source in enumerate(sources):
        parts[number].append(write_part(evidence, "digests", fold(pa.concat_tables(digests[number])), source))
        shown = {}
        for of in range(1, SERVERS + 1):
            mine_ = np.flatnonzero(kept[number] & (rid == of))
            first, last = (SYSTEM.order_key("", int(hi[at]), int(lo[at])) for at in (mine_[0], mine_[-1]))
            shown[str(of)] = {"count": len(mine_), "min": first, "max": last}
        about: dict[str, Any] = dict.fromkeys(("path", "sha256", "format"), "")
        about |= {"file": source.file, "snapshot": "now", "server": source.server, "suffix": SUFFIX, "suffixes": []}
        about |= {"bytes": 0, "changed": 0, "rows": int(kept[number].sum()), "rejected": 0}
        facts = {"by_origin": shown}
        inputs.append(Input(**about, facts=facts, kind="ds389.changelog-ldif", parts=parts[number]))
    return inputs


def _details(numbers: Numbers, rows: pa.Table) -> pa.Table:
    """What the changes with these numbers did: the same on every server."""
    count, random = len(numbers), (mix(numbers, numbers) >> np.uint64(1)).astype(np.int64)
    entries, bodies = random % _ENTRIES, (random >> 32) % _BODIES
    halves = zip(rows["hi"].to_pylist(), rows["lo"].to_pylist(), strict=True)
    spread = (entries * 2654435761 % (1 << 32)).tolist()
    few = {"kind": "change", "operation": "modify", "parent": None, "rename": None}
    return pa.table(
        {
            **{name: pa.array([value] * count, pa.string()) for name, value in few.items()},
            **{name: rows[name] for name in ("origin", "hi", "lo")},
            "offset": numbers * 600,
            "logged_at": pa.nulls(count, TIME),
            "position": pa.array([SYSTEM.order_key("", hi, lo) for hi, lo in halves]),
            "target": pa.array([f"uid=u{one:06d},ou=people,{SUFFIX}" for one in entries.tolist()]),
            "entry": pa.array([f"{one:08x}-e4ee11f1-a8e4ae0b-27ac1ddf" for one in spread]),
            "body": _bodies().take(pa.array(bodies)),
        }
    )


@cache
def _bodies() -> pa.Array:
    writer = "replace: modifiersname\nmodifiersname: uid=admin,ou=people,dc=example,dc=com\n-\n"
    random = np.random.default_rng(389)
    return pa.array(
        [f"replace: description\ndescription: {random.bytes(24).hex()}\n-\n{writer}" for _ in range(_BODIES)]
    )


def up_to_date(case: Case) -> Topology:
    """Every server claims every change that any log shows."""
    last: dict[str, Span] = {}
    for one in case.inputs:
        for origin, shown in one.facts["by_origin"].items():
            last[origin] = Span(shown["min"], max(shown["max"], (last[origin].max or "") if origin in last else ""))
    return Topology(
        SYSTEM,
        "now",
        [
            Replica(one.server, SUFFIX, str(number), vector=last, log=one, evidence=(VECTOR, "changelog"))
            for number, one in enumerate(case.inputs, 1)
        ],
        [],
    )
