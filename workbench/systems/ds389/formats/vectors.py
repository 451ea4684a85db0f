"""Replica update vectors and agreement positions as rows and facts: the same in every file that holds them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.systems.ds389.csn import csn_or_none, ruv_element, ruv_modified, utc
from workbench.systems.ds389.formats.values import clean

Row = dict[str, Any]

READ_ONLY = "65535"
"""The replica ID that every hub and every consumer has: it names none of them."""

_LONGEST_RAW = 500
NUMBER = re.compile(r"[0-9]{1,5}")
_ORIGIN = re.compile(r"[0-9]{1,5}|unavailable", re.IGNORECASE)
_BARE = re.compile(r"\{replica\s+\d+\s*\}", re.IGNORECASE)


def vector_rows(
    values: Iterable[str], modified: Iterable[str], *, offset: int | Sequence[int], kind: str, holder: str
) -> list[Row]:
    """Rows of the table `vectors` for the RUV values of one holder; `offset` is one for all or one for each.

    One row per element, the generation on each; a generation alone is one row without origin. A malformed element
    stays as a row that says what is wrong. So does a second element of an origin: the server uses the first one, and
    a maximum over both would claim changes that nobody has. In the vectors of a changelog an element without address
    and CSNs is normal: nothing was trimmed, or nothing logged.
    """
    elements = [ruv_element(clean(value)) for value in values]
    times = dict(found for found in map(ruv_modified, modified) if found)
    first = next((element for element in elements if element.generation), None)
    generation = first.generation if first else None
    places = [offset] * len(elements) if isinstance(offset, int) else offset
    common = {"kind": kind, "holder": holder, "generation": generation}
    rows: list[Row] = []
    seen: set[str] = set()
    for element, place in zip(elements, places, strict=True):
        problem = element.problem
        if element.generation:
            if element.generation == generation:
                continue
            problem = "a second generation"
        elif kind.startswith("log_") and _BARE.fullmatch(element.raw):
            problem = None
        elif element.origin in seen:
            problem = "a second element of this replica ID"
        row: Row = {**common, "offset": place, "origin": element.origin, "url": element.url, "problem": problem}
        row["raw"] = element.raw[:_LONGEST_RAW]
        if problem is None and element.origin is not None:
            seen.add(element.origin)
            modified_at = element.modified if element.modified is not None else times.get(element.origin)
            row |= {"min": element.min, "max": element.max, "modified_at": utc(modified_at)}
        rows.append(row)
    if first and not rows:
        rows.append({**common, "offset": places[elements.index(first)], "raw": first.raw[:_LONGEST_RAW]})
    return rows


def vector_facts(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What `inspect` shows of those rows: holder -> generation and elements; malformed elements are left out.

    The first element of an origin counts, also where a file holds two vectors of one server.
    """
    holders: dict[str, Any] = {}
    for row in rows:
        holder = holders.setdefault(row["holder"], {"generation": row["generation"], "elements": {}})
        if row.get("origin") and not row.get("problem"):
            holder["elements"].setdefault(row["origin"], {key: row.get(key) for key in ("min", "max", "url")})
    return holders


def changelog_vector(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The rows of one purge or max vector in the contract's shape, origin -> min and max; None if there is none."""
    whole = [row for row in rows if row.get("origin") and not row.get("problem")]
    return {row["origin"]: {key: row.get(key) for key in ("min", "max")} for row in whole} if rows else None


def link_row(value: str, offset: int, suffixes: Collection[str]) -> Row | None:
    """The row of the table `links` that an nsds5agmtmaxcsn value tells; None for a value of another shape.

    `SUFFIX;name;host;port;replica ID;CSN`, where the ID may be the word `unavailable` and the CSN be missing. A DN may
    hold semicolons, so the value is read from its end; a known suffix in front decides what is left of the name.
    """
    text = clean(value.strip())
    if text.lower().endswith(";unavailable"):
        text += ";"
    parts = text.rsplit(";", 4)
    if len(parts) != 5:
        return None
    front, host, port, origin, position = parts
    known = next((suffix for suffix in suffixes if front.lower().startswith(suffix.lower() + ";")), None)
    name = front[len(known) + 1 :] if known is not None else front.rpartition(";")[2]
    if not (name and ";" in front and NUMBER.fullmatch(port) and _ORIGIN.fullmatch(origin)):
        return None
    return {
        "offset": offset,
        "name": name,
        "consumer_host": host,
        "consumer_port": int(port),
        "consumer_origin": None if origin.lower() in ("unavailable", READ_ONLY) else str(int(origin)),
        "position": csn_or_none(position),
    }
