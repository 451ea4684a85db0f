"""A diagnosis as text, to be read from the top: the verdict in one line, the findings with what to do, then the details."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from workbench.matrix_text import matrix_text, outside_text
from workbench.model import System
from workbench.plain import aligned, one_cell
from workbench.rules.verdicts import MISSING, UNKNOWN

Row = Mapping[str, Any]

_LISTED = 10
"""Missing changes that are named; all of them are in the JSON."""


def diagnosis_text(system: System, found: Row, matrix: bool = True) -> str:
    """All of it; without the matrix of the pairs where it is not asked for."""
    labels = found["case"]["snapshots"]
    title = f"{system.title}, snapshot {one_cell(labels[-1])}" + (
        f" (the last of {len(labels)})" if len(labels) > 1 else ""
    )
    parts = [title, headline(found), findings_text(found["findings"]), _changes(found)]
    if matrix:
        parts += [matrix_text(system, found["pairs"]), outside_text(found)]
    return "\n\n".join(filter(None, parts))


def nothing_to_compare(found: Row) -> str:
    """Why nothing can be said of missing changes; empty if two servers of a suffix tell what they have seen.

    A server tells that by its vector, or by its log, which claims what it holds.
    """
    telling = {(one["suffix"], one["name"]) for one in found["servers"] if one["vector"] or one["changes"]}
    if not telling:
        return "No vector was collected"
    if len(telling) == len({suffix for suffix, _ in telling}):
        names = sorted(name for _, name in telling)
        return f"Only {names[0]} was collected" if len(names) == 1 else "Only one server of each suffix was collected"
    return ""


def headline(found: Row) -> str:
    """The verdict in one line."""
    said: list[str] = []
    if found["missing"]:
        missed = _number(found, "missing", "change is", "changes are")
        said.append(f"{missed} MISSING on {_servers(found['missing'])} and will not come by themselves")
    if found["stranded"]:
        said.append(f"{_number(found, 'stranded', 'is', 'are')} stranded on {_servers(found['stranded'])}")
    if found["pending"]:
        count = sum(row["count"] for row in found["pending"])
        said.append(f"{count:,} {'is' if count == 1 else 'are'} on the way to {_servers(found['pending'])}")
    open_ = ""
    if found["unknown"]:
        open_ = f"{_number(found, 'unknown', 'stretch', 'stretches')} cannot be judged by what was collected"
    if reason := nothing_to_compare(found):
        said.insert(
            0, f"{reason}: of which changes are missing, {'no more' if found['missing'] else 'nothing'} can be said"
        )
    elif not found["missing"]:
        said.insert(0, "No change is known to be missing" if open_ else "No change is missing")
    return one_cell("; ".join([*said, *([open_] if open_ else [])]) + ".")


def _servers(rows: Iterable[Row]) -> str:
    return ", ".join(sorted({row["server"] for row in rows}))


def _number(found: Row, name: str, one: str, many: str) -> str:
    count = found["run"].get("truncated", {}).get(name) or len(found[name])
    return f"{count:,} {one if count == 1 else many}"


def findings_text(findings: Iterable[Row]) -> str:
    """The findings, worst first, one paragraph each: what was found, what to do, and what that may cost."""
    texts = []
    for one in findings:
        about = ", ".join(f"{word} {one[word]}" for word in ("server", "link", "origin") if one[word])
        lines = [f"{one['severity'].upper()} {one['code']}" + (f" ({one_cell(about)})" if about else "")]
        lines.append(f"    {one_cell(one['summary'])}")
        for number, fix in enumerate(one["fix"], 1):
            lines.append(f"    {number}. {one_cell(fix['repair'])}: {one_cell(fix['why'])}")
            if fix["caution"]:
                lines.append(f"       Beware: {one_cell(fix['caution'])}")
        texts.append("\n".join(lines))
    return "\n".join(texts)


def _changes(found: Row) -> str:
    """What each server misses, waits for, and what nobody knows of it: numbers, and the first missing changes by name."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    uncounted: set[tuple[str, str, str]] = set()

    def cell(row: Row) -> list[int]:
        return counts.setdefault((row["suffix"] or "", row["server"], row["origin"]), [0, 0, 0])

    for row in found["missing"]:
        cell(row)[0] += 1
    for row in found["pending"]:
        cell(row)[1] += row["count"]
    for row in found["unknown"]:
        cell(row)[2] += row["count"] or 0
        if row["count"] is None:
            uncounted.add((row["suffix"] or "", row["server"], row["origin"]))
    if not counts:
        return ""
    heads = ["SERVER", "ORIGIN", MISSING.upper(), "PENDING", UNKNOWN.upper()]
    rows = [
        [*key[1:], *(f"{number:,}" for number in numbers[:2]), "all" if key in uncounted else f"{numbers[2]:,}"]
        for key, numbers in sorted(counts.items())
    ]
    texts = [aligned([heads, *rows], right=(2, 3, 4))]
    if found["missing"]:
        texts.append("\n".join(_named(found["missing"])))
    return "\n\n".join(texts)


def _named(missing: Sequence[Row]) -> Iterator[str]:
    heads = ["SERVER", "POSITION", "OPERATION", "TARGET", "HELD BY", "CAUSE", "BECAUSE"]
    rows = [
        [
            row["server"],
            row["position"],
            row["operation"] or "?",
            row["target"] or "?",
            ", ".join(row["held_by"]) or "no log",
            row["cause"] or "?",
            row["says"],
        ]
        for row in missing[:_LISTED]
    ]
    yield aligned([heads, *rows])
    if len(missing) > _LISTED:
        yield f"and {len(missing) - _LISTED:,} more: `--json FILE` or `--csv FILE` has them all"


def story_text(told: Row) -> str:
    """The story of one change, server by server."""
    made = datetime.fromisoformat(told["made_at"]) if told["made_at"] else None
    when = f", made {made:%Y-%m-%d %H:%M:%S} UTC by its origin's clock" if made else ""
    where = f" on {', '.join(told['made_on'])}" if told["made_on"] else ""
    lines = [
        one_cell(f"{told['position']} of origin {told['origin']}{where}{when}"),
        one_cell(
            f"{told['operation'] or 'an operation that no file names'} of {told['target'] or 'an unknown target'}"
        ),
    ]
    for one in told["servers"]:
        lines += ["", one_cell(f"{one['server']}: {one['verdict'].upper()} - {one['says']} ({one['rule']})")]
        for row in one["evidence"]:
            said = ", ".join(f"{key} {value}" for key, value in row.items() if key not in _WHERE)
            lines.append(f"    {one_cell(row['snapshot'])}/{one_cell(row['file'])}:{row['offset']}  {one_cell(said)}")
        for row in one["suppliers"]:
            link = f" over {row['link']}" if row["link"] else " (no link)"
            off = ", the link is disabled" if row["link_enabled"] is False else ""
            does = row["outcome"] or "does not read it"
            lines.append(
                one_cell(f"    {row['supplier']}{link}: {row['decision'].replace('_', ' ')}, {does}{off}: {row['why']}")
            )
    return "\n".join(lines)


_WHERE = frozenset({"server", "table", "snapshot", "file", "offset"})
