"""Backups of Kanidm servers that a test makes: as much of each as it is about. Times are whole seconds."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from workbench import Case

DAY = 24 * 3600
START = 1_767_225_600
"""The beginning of 2026: times of samples are seconds behind it."""

DOMAIN = "e8d79f49-af6d-414c-8a6f-188a424e617b"

Cid = tuple[int, str]


def origin(name: str) -> str:
    """The UUID of a server by its letter."""
    return str(uuid.UUID(int=ord(name) << 120 | 7))


def entry_id(number: int) -> str:
    """The UUID of an entry."""
    return str(uuid.UUID(int=number * 0x9E3779B97F4A7C15_F39CC0605CEDC835 % (1 << 128)))


def text_of(time: int, name: str) -> str:
    """A CID as the server prints it."""
    return f"{(START + time) * 10**9:032d}-{origin(name)}"


@dataclass
class Entry:
    """What a server shows of one entry: created and changed when and by whom, or when it was deleted."""

    at: Cid = (0, "a")
    changes: Mapping[str, Cid] = field(default_factory=dict)
    gone: Cid | None = None
    source: int | None = None
    partial: bool = False
    """Its class never came."""


def backup(
    name: str, now: int, ruv: Sequence[Cid], entries: Mapping[int, Entry] = {}, domain: str = DOMAIN
) -> dict[str, Any]:
    """The newest layout."""
    return {
        "version": "1.10",
        "db_s_uuid": origin(name),
        "db_d_uuid": domain,
        "db_ts_max": _time(now),
        "keyhandles": {},
        "repl_meta": {"V1": {"ruv": [_cid(one) for one in sorted(ruv)]}},
        "entries": [{"ent": {"V3": _entry(number, one)}} for number, one in entries.items()],
    }


def _time(seconds: int) -> dict[str, int]:
    return {"secs": START + seconds, "nanos": 0}


def _cid(one: Cid) -> dict[str, Any]:
    return {"t": _time(one[0]), "s": origin(one[1])}


def _entry(number: int, one: Entry) -> dict[str, Any]:
    attrs: dict[str, Any] = {"class": {"I8": ["object"]}, "uuid": {"UU": [entry_id(number)]}}
    if one.gone:
        return {"changestate": {"V1Tombstone": {"at": _cid(one.gone)}}, "attrs": attrs}
    attrs["name"] = {"N8": [f"entry{number:04}"]}
    if one.source is not None:
        attrs |= {"class": {"I8": ["object", "recycled", "conflict"]}, "source_uuid": {"UU": [entry_id(one.source)]}}
    changes = {} if one.partial else {"class": _cid(one.at)}
    changes |= {name: _cid(cid) for name, cid in one.changes.items()}
    return {"changestate": {"V1Live": {"at": _cid(one.at), "changes": changes}}, "attrs": attrs}


def as_file(path: Path, one: dict[str, Any]) -> None:
    """Write one as the server does."""
    path.write_text(json.dumps(one))


def collected(folder: Path, *backups: dict[str, Any]) -> Path:
    """The folder with a file of each server, called by the letter of its UUID."""
    folder.mkdir(parents=True)
    for one in backups:
        letter = bytes([uuid.UUID(one["db_s_uuid"]).int >> 120]).decode().upper()
        as_file(folder / f"{letter}.json", one)
    return folder


SETS = Path(__file__).parent / "samples" / "kanidm"


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kanidm-")


@cache
def case_of_set(name: str) -> Case:
    """The case of a given set of backups, loaded once for all tests of a process; nobody loads more into it."""
    case = Case.create(Path(_kept().name) / name)
    case.load([SETS / name])
    return case


@cache
def case_of_graves() -> Case:
    """Three servers and the origin of a fourth: C holds the floor of A, deletions are on their way, and one was missed."""
    now = 20 * DAY
    live = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(40)}
    dead = {number: Entry(gone=(100 + number, "a")) for number in range(30)} | {35: Entry(gone=(now - 50, "b"))}
    ruv = [(-START, "b"), *((time, name) for time in (0, now - 60) for name in "abc"), (now - 30, "z")]
    full = [*ruv, *((100 + number, "a") for number in range(30)), (now - 50, "b")]
    behind = [*((time, "a") for time in (0, *range(100, 110))), *(one for one in ruv if one[1] != "a")]
    seen = {number: dead[number] for number in range(10) if number != 3}
    folder = collected(
        Path(_kept().name) / "graves-in",
        backup("a", now, full, {**live, **dead}),
        backup("b", now, full, {**live, **dead}),
        backup("c", now, behind, {**live, **seen}),
    )
    case = Case.create(Path(_kept().name) / "graves")
    case.load([folder])
    return case
