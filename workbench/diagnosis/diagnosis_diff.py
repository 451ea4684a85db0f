"""Two diagnoses held against each other: what is new, what is gone, what changed.

Findings are the same one if code, server, link, origin and suffix are; rows of the other lists by what they speak of. A list
that one of the two does not have - an older version wrote it - or does not show whole, is not compared, and is named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from workbench.case.case import Case
from workbench.input_validation import NO_TEXTS, NOTHING, Inputs, called, checked
from workbench.model import SEVERITIES, Problem, ends
from workbench.safety import printable
from workbench.text_table import one_cell

LARGEST = 256 << 20
"""Bytes of a file; ten thousand rows in every list take a few megabytes."""

_SHOWN = 20


class _Finding(Inputs):
    code: str
    severity: Literal["info", "warning", "error"]
    server: str | None = None
    link: str | None = None
    origin: str | None = None
    suffix: str | None = None
    summary: str = ""
    items: list[str] = NO_TEXTS


class _Span(Inputs):
    min: str | None = None
    max: str | None = None


class _Server(Inputs):
    name: str
    suffix: str | None = None
    vector: dict[str, _Span] = NOTHING


class _Pair(Inputs):
    supplier: str
    consumer: str
    suffix: str | None = None
    link: str | None = None
    decision: str
    anchor: str | None = None


class _Change(Inputs):
    """A row of `missing` or `stranded`."""

    server: str
    suffix: str | None = None
    origin: str
    position: str
    cause: str | None = None
    held_by: list[str] = NO_TEXTS


class _Pending(Inputs):
    server: str
    suffix: str | None = None
    origin: str
    count: int | None = None
    first: str | None = None
    last: str | None = None
    available: int | None = None
    suppliers: list[str] = NO_TEXTS


class _Unknown(Inputs):
    server: str
    suffix: str | None = None
    origin: str
    low: str | None = called("from")
    high: str | None = called("to")
    count: int | None = None
    why: str | None = None


class _Diagnosis(Inputs):
    number: int = called("schema")
    servers: list[_Server] | None = None
    pairs: list[_Pair] | None = None
    missing: list[_Change] | None = None
    stranded: list[_Change] | None = None
    pending: list[_Pending] | None = None
    unknown: list[_Unknown] | None = None
    findings: list[_Finding] | None = None


Row = Mapping[str, Any]
_LISTS: dict[str, tuple[str, ...]] = {  # list -> what tells its rows apart
    "findings": ("code", "server", "link", "origin", "suffix"),
    "missing": ("server", "suffix", "origin", "position"),
    "stranded": ("server", "suffix", "origin", "position"),
    "pending": ("server", "suffix", "origin"),
    "unknown": ("server", "suffix", "origin", "from", "to"),
    "vectors": ("server", "suffix", "origin"),
    "pairs": ("supplier", "consumer", "suffix"),
}


def read_diagnosis(path: Path) -> dict[str, Any]:
    """What `workbench diagnose --json` wrote into the file, or the diagnosis of a case folder. Problem if it is neither."""
    where = printable(str(path))
    if path.is_dir():
        if not Case.lies_in(path):
            do = "give a case folder, or the file that `workbench diagnose --json FILE` writes"
            raise Problem("this folder is not a case", where, do)
        from workbench.diagnosis.case_diagnosis import diagnose

        return diagnose(Case.open(path))
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", where, "check the path") from None
    if len(data) > LARGEST:
        raise Problem(
            f"a file of more than {LARGEST >> 20} MiB", where, "a diagnosis is smaller: is it the right file?"
        )
    do = "give the file that `workbench diagnose --json FILE` writes"
    try:
        found = json.loads(data)
    except RecursionError:
        raise Problem("not a diagnosis: nested too deeply", where, do) from None
    except ValueError as error:
        raise Problem(f"not a diagnosis: no JSON ({printable(str(error))[:120]})", where, do) from None
    named = [name for name in ("servers", "pairs", "findings") if isinstance(found, dict) and name in found]
    if not named or "schema" not in found:
        raise Problem("not a diagnosis: it has no schema, servers, pairs or findings", where, do)
    return dict(found)


def difference(before: Row, after: Row) -> dict[str, Any]:
    """What `after` has that `before` had not, what is gone and what changed, list by list, and what cannot be compared.

    Both are diagnoses as `diagnose` gives them or `read_diagnosis` reads them. Problem if one of them is none.
    """
    old, new = _lists(before, "the first"), _lists(after, "the second")
    found: dict[str, Any] = {"schema": 1}
    # Of a list that was cut, a row may be missing because it was not shown.
    cut = _cut(before) | _cut(after)
    absent = [name for name in _LISTS if name in cut or (old[name] is None) != (new[name] is None)]
    for name, keys in _LISTS.items():
        found[name] = (
            _compared(old[name] or [], new[name] or [], keys) if name not in absent else _compared([], [], keys)
        )
    return {**found, "not_compared": absent}


def _cut(given: Row) -> set[str]:
    run = given.get("run")
    cut = run.get("truncated") if isinstance(run, Mapping) else None
    return set(cut) if isinstance(cut, Mapping) else set()


def worst_new(found: Row) -> int:
    """The rank of the worst finding that is new, or worse than it was; -1 without one."""
    findings = found["findings"]
    ranks = [SEVERITIES.index(one["severity"]) for one in findings["new"]]
    for one in findings["changed"]:
        then, now = (SEVERITIES.index(one[side].get("severity", "info")) for side in ("before", "after"))
        ranks += [now] if now > then else []
    return max(ranks, default=-1)


def _lists(given: Row, which: str) -> dict[str, list[dict[str, Any]] | None]:
    seen = checked(_Diagnosis, given, which)
    if seen.number != 1:
        raise Problem(f"{which} has schema {seen.number}, this version compares schema 1", "", "use a newer version")
    whole = seen.model_dump(by_alias=True)
    lists: dict[str, list[dict[str, Any]] | None] = {name: whole.get(name) for name in _LISTS}
    lists["vectors"] = (
        None
        if seen.servers is None
        else [
            {"server": one.name, "suffix": one.suffix, "origin": origin, "min": span.min, "max": span.max}
            for one in seen.servers
            for origin, span in one.vector.items()
        ]
    )
    lists["findings"] = None if seen.findings is None else _merged(whole["findings"])
    return lists


def _merged(findings: Iterable[Row]) -> list[dict[str, Any]]:
    """One row for all findings of one code about one thing: the worst severity, all items, all summaries."""
    rows: dict[Hashable, dict[str, Any]] = {}
    for one in findings:
        row = rows.setdefault(_key(one, _LISTS["findings"]), {**one, "items": [], "summary": []})
        row["severity"] = max(row["severity"], one["severity"], key=SEVERITIES.index)
        row["items"] = sorted({*row["items"], *one["items"]})
        row["summary"] = sorted({*row["summary"], one["summary"]})
    return [{**row, "summary": "; ".join(row["summary"])} for row in rows.values()]


def _key(row: Row, keys: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(row.get(key) for key in keys)


def _order(key: tuple[str | None, ...]) -> list[str]:
    return [one or "" for one in key]


def _compared(before: Iterable[Row], after: Iterable[Row], keys: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    old, new = ({_key(row, keys): dict(row) for row in rows} for rows in (before, after))
    changed = []
    for key in sorted(old.keys() & new.keys(), key=_order):
        differing = [name for name in new[key] if old[key].get(name) != new[key][name]]
        if differing:
            sides = {"before": old[key], "after": new[key]}
            about = dict(zip(keys, key, strict=True))
            changed.append(about | {side: {name: row.get(name) for name in differing} for side, row in sides.items()})
    return {
        "new": [new[key] for key in sorted(new.keys() - old.keys(), key=_order)],
        "gone": [old[key] for key in sorted(old.keys() - new.keys(), key=_order)],
        "changed": changed,
    }


# --- as text

_TITLES = {
    "findings": "Findings",
    "missing": "Missing changes",
    "stranded": "Stranded changes",
    "pending": "Pending",
    "unknown": "Unknown",
    "vectors": "Vectors",
    "pairs": "Pairs",
}


def differences_text(found: Row) -> str:
    """The differences as a person reads them: the lists that differ, new before gone before changed, the first of each."""
    texts = []
    for name, title in _TITLES.items():
        lists = found[name]
        lines = [line for kind in ("new", "gone", "changed") for line in _lines(name, kind, lists[kind])]
        if lines:
            counts = ", ".join(f"{len(lists[kind]):,} {kind}" for kind in ("new", "gone", "changed") if lists[kind])
            texts.append("\n".join([f"{title}: {counts}", *lines]))
    if found["not_compared"]:
        texts.append(
            f"Not compared, for one of the two does not have it, or not whole: {', '.join(found['not_compared'])}"
        )
    return "\n\n".join(texts or ["No difference."])


def _lines(name: str, kind: str, rows: Sequence[Row]) -> list[str]:
    sign = {"new": "+", "gone": "-", "changed": "~"}[kind]
    describe: Callable[[Row], str] = _moved if kind == "changed" else lambda row: _about(name, row)
    lines = [f"  {sign} {one_cell(_named(name, row) + describe(row))}" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  {sign} and {len(rows) - _SHOWN:,} more: --json FILE has them all")
    return lines


def _named(name: str, row: Row) -> str:
    if name == "pairs":
        return f"{row['supplier']} -> {row['consumer']}" + (f" ({row['suffix']})" if row["suffix"] else "")
    if name == "findings":
        about = ", ".join(row[key] for key in ("server", "link", "origin", "suffix") if row[key])
        severity = f"{row['severity'].upper()} " if "severity" in row else ""
        return f"{severity}{row['code']}" + (f" ({about})" if about else "")
    about = f"{row['server']}, origin {row['origin']}"
    if name in ("missing", "stranded"):
        return f"{about}: {row['position']}"
    return f"{about}: {ends(row['from'], row['to'])}" if name == "unknown" else about


def _about(name: str, row: Row) -> str:
    told = {
        "findings": row.get("summary"),
        "missing": row.get("cause"),
        "pending": row.get("count"),
        "unknown": row.get("why"),
        "vectors": row.get("max"),
        "pairs": row.get("decision"),
    }.get(name)
    return f": {told}" if told not in (None, "") else ""


def _moved(row: Row) -> str:
    def side(values: Any) -> str:
        if isinstance(values, list):
            return f"{len(values):,} listed" if len(values) > 3 else ", ".join(map(str, values)) or "none"
        return "none" if values is None else str(values)

    moves = [f"{name} {side(row['before'][name])} -> {side(now)}" for name, now in row["after"].items()]
    return ": " + "; ".join(moves)
