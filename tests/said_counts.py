"""What a diagnosis and a plan say in numbers, held against their own lists and the positions of the collected files.

It serves every system: what a position looks like is given with the case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from workbench.repair.plan_types import Plan

Row = Mapping[str, Any]
NUMBER = r"(\d[\d,]*)"


def unlike_the_lists(
    found: Row, text: str, plan: str, servers: Collection[str], positions: Collection[str]
) -> list[str]:
    """What is counted or named otherwise than the lists and the files have it."""
    checks = (
        _positions(found, positions),
        _servers(found, servers),
        _sentences(found),
        _line(found, text),
        _tables(found, text, plan),
    )
    return [said for check in checks for said in check]


def _positions(found: Row, positions: Collection[str]) -> Iterator[str]:
    """Every position of a row stands in the files."""
    for name in ("missing", "stranded", "errant", "pending", "unknown", "transactions"):
        for row in found[name]:
            for key in ("position", "first", "last", "from", "to"):
                told = row.get(key)
                if isinstance(told, str) and told not in positions:
                    yield f"{name}: {told} stands in no collected row"
    for row in found["findings"]:
        for said in (
            row["summary"],
            row.get("root") or "",
            *(text or "" for fix in row["fix"] for text in fix.values()),
        ):
            for first, last in re.findall(r"changes? of origin \S+, (\S+) to (\S+?)[,;: ]", said + " "):
                if not {first, last} <= set(positions):
                    yield f"{row['code']}: {first} to {last} stand in no collected row: {said}"


def _servers(found: Row, servers: Collection[str]) -> Iterator[str]:
    """Every server that is named has files."""
    for name in ("servers", "pairs", "missing", "stranded", "errant", "pending", "unknown", "findings", "appliers"):
        for row in found[name]:
            named = {row.get(key) for key in ("server", "supplier", "consumer", "source")} - {None}
            named |= {
                *row.get("held_by", ()),
                *row.get("suppliers", ()),
                *(row.get("through") or ()),
                *row.get("servers", ()),
            }
            if not named <= set(servers):
                yield f"{name}: no file is of {sorted(named - set(servers))}"


def _count(number: str) -> int:
    return int(number.replace(",", ""))


def _of(found: Row, name: str, row: Row) -> list[Row]:
    return [one for one in found[name] if (one["server"], one["origin"]) == (row["server"], row["origin"])]


def _sentences(found: Row) -> Iterator[str]:
    """Numbers in the sentences of findings."""
    for row in found["findings"]:
        said = row["summary"]
        if row["code"] == "MISSED_CHANGE":
            mine = sorted(one["position"] for one in _of(found, "missing", row))
            told = re.search(rf"missed {NUMBER} changes? of origin", said)
            if not told or _count(told[1]) != len(mine):
                yield f"{len(mine)} are missing on {row['server']}: {said}"
            if not set(row["items"]) <= set(mine):
                yield f"{row['items']} are not all missing on {row['server']}: {said}"
        if row["code"] == "PENDING_CHANGES":
            told, rows = re.search(rf"waits for {NUMBER} changes? of origin", said), _of(found, "pending", row)
            if not told or _count(told[1]) != sum(one["count"] for one in rows):
                yield f"{rows} are pending: {said}"
            if list(row["items"]) != [rows[0]["first"], rows[0]["last"]]:
                yield f"{rows} are pending: {row['items']}"
        if row["code"] in ("STRANDED_CHANGE", "ERRANT_CHANGE"):
            rows = _of(found, "stranded" if row["code"] == "STRANDED_CHANGE" else "errant", row)
            told = re.search(rf"{NUMBER} (?:changes?|transactions?)", said)
            if not told or _count(told[1]) != len(rows):
                yield f"{len(rows)} are alone on {row['server']}: {said}"


def _line(found: Row, text: str) -> Iterator[str]:
    """The verdict in one line."""
    line = text.split("\n\n")[1]
    missing = {(row["position"], row.get("entry"), row.get("attribute")) for row in found["missing"]}
    told = re.search(rf"{NUMBER} changes? (?:is|are) MISSING on (.*?) and will", line)
    if (_count(told[1]) if told else 0) != len(missing):
        yield f"{len(missing)} are missing: {line}"
    if told and told[2].split(", ") != sorted({row["server"] for row in found["missing"]}):
        yield f"{sorted({row['server'] for row in found['missing']})} lack something: {line}"
    for words, sent in (("on the way to", True), ("not arrived at", False)):
        waits: Counter[str] = Counter()
        for row in found["pending"]:
            count = row["count"] - (row.get("behind_gap") or 0) - (row.get("held") or 0) - (row.get("passed_over") or 0)
            if bool(row["suppliers"] or row.get("through")) is sent and count:
                waits[row["server"]] += count
        told = re.search(rf"{NUMBER}(?: changes?)? (?:is|are|has|have) {words} ([\w, ]+?)(?:[;:.]|, and)", line)
        if (told and (_count(told[1]), told[2].split(", "))) != (
            (max(waits.values()), sorted(waits)) if waits else None
        ):
            yield f"{dict(waits)} are {words}: {line}"
    told = re.search(rf"{NUMBER} stretch(?:es)? cannot be judged", line)
    if (_count(told[1]) if told else 0) != len(found["unknown"]):
        yield f"{len(found['unknown'])} stretches are not known: {line}"


def _tables(found: Row, text: str, plan: str) -> Iterator[str]:
    """The table of the diagnosis by origin, and that of the plan by server."""
    sums: dict[tuple[str, str], list[int]] = {}
    for at, name in enumerate(("missing", "pending", "unknown")):
        for row in found[name]:
            sums.setdefault((row["server"], row["origin"]), [0, 0, 0])[at] += (
                1 if name == "missing" else row["count"] or 0
            )
    told = {(cells[0], cells[1]): list(map(_count, cells[2:])) for cells in under(text, "SERVER", "ORIGIN", "MISSING")}
    if told != sums:
        yield f"the table should show {sums}: {told}"
    of_server: dict[str, list[int]] = {}
    for (server, _), counts in sums.items():
        before = of_server.get(server, [0, 0])
        of_server[server] = [before[0] + counts[0], before[1] + counts[1]]
    for cells in under(plan, "SERVER", "SUFFIX", "MISSING"):
        if list(map(_count, cells[-4:-2])) != of_server.get(cells[0], [0, 0]):
            yield f"the plan shows {cells}: {of_server.get(cells[0])}"


def under(text: str, *heads: str) -> Iterator[Sequence[str]]:
    """The cells of the first table whose heads begin so."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.split()[: len(heads)] == list(heads):
            for row in lines:
                if not row.strip():
                    return
                yield row.split()


def shown_before(found: Row, planned: Plan) -> Iterator[str]:
    """What the table of a plan shows for the time before it, where the lists of the diagnosis have another number."""
    for row in planned.before:
        missing = sum(lack["server"] == row["server"] for lack in found["missing"])
        pending = sum(wait["count"] for wait in found["pending"] if wait["server"] == row["server"])
        if (row["missing"], row["pending"]) != (missing, pending):
            yield f"the plan shows {row} before: missing are {missing}, pending {pending}"
