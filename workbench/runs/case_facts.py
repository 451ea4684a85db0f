"""What is known of a case as rows that can be held against those of another time: no prose, no times of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.diagnosis.diagnosis_text import collected, untold
from workbench.diagnosis.incident import Incident

SCOPE = ("code", "server", "link", "origin", "suffix")

COUNTED = ("missing", "stranded", "pending", "unknown")
NAMED = ("missing", "stranded")
"""Lists of single changes: of these it counts which they are, too."""

CUT, NOT_WHOLE = "cut", "not_whole"
"""What is untold, too: which changes are in a list that was cut; and what a baseline in the case could not be held against."""

Row = Mapping[str, Any]


def facts_of_case(incident: Incident, case: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """The facts of one case, list by list; `case` names it in a notebook that checks several.

    servers   server, suffix of each that tells what it has seen
    untold    server, suffix, why: what the evidence does not tell, whatever it says of single changes
    findings  code, server, link, origin, suffix; severity
    counts    list (missing, stranded, pending, unknown), server, origin, suffix; count; of single changes their `positions`
              (null: the list was cut). Without a server: the whole number of a list that was cut
    lag       server, origin, suffix; seconds from what it claims to what any server claims, by the clock of the origin
    links     supplier, suffix, link; the consumer, as far as anything tells it
    sessions  supplier, consumer, suffix; link, the decision, the anchor, and its order key
    """
    found = incident.found
    severities: dict[tuple[Any, ...], str] = {}
    for one in found["findings"]:  # the gravest comes first
        severities.setdefault(tuple(one[key] for key in SCOPE), one["severity"])
    lists: dict[str, Iterable[dict[str, Any]]] = {
        "servers": ({"server": server, "suffix": suffix} for server, suffix in collected(found)),
        "untold": [*untold(found), *_cut(found)],
        "findings": (dict(zip((*SCOPE, "severity"), (*key, one), strict=True)) for key, one in severities.items()),
        "counts": _counts(found),
        "lag": _lags(incident, found["servers"]),
        "links": (
            {"link": row["name"], **{key: row[key] for key in ("supplier", "suffix", "consumer")}}
            for row in found["links"]
        ),
        "sessions": (_session(incident, row) for row in found["pairs"]),
    }
    return {name: [{"case": case, **row} for row in rows] for name, rows in lists.items()}


def _cut(found: Row) -> list[dict[str, Any]]:
    cut = any(name in found["run"]["truncated"] for name in NAMED)
    return [{"server": None, "suffix": None, "why": CUT}] if cut else []


def _counts(found: Row) -> Iterator[dict[str, Any]]:
    cut = found["run"]["truncated"]
    for name in COUNTED:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in found[name]:
            groups.setdefault((row["server"], row["origin"], row["suffix"]), []).append(row)
        for about, rows in groups.items():
            # A stretch of which nobody knows how many changes it holds counts as one: it is there, or it is not.
            number = len(rows) if name in NAMED else sum(row["count"] or 1 for row in rows)
            # Of a list that was cut the shown rows are others, too, when those before them are mended.
            which = [_which(row) for row in rows] if name in NAMED and name not in cut else None
            yield _count(name, about, number, which)
        if name in cut:
            yield _count(name, (None, None, None), cut[name], None)


def _which(row: Row) -> str:
    """One change: a position, and where it may stand for changes of several entries and attributes, of which."""
    return " ".join(filter(None, (row["position"], row.get("entry"), row.get("attribute"))))


def _count(name: str, about: Iterable[Any], number: int, positions: list[str] | None) -> dict[str, Any]:
    row = {"list": name, **dict(zip(("server", "origin", "suffix"), about, strict=True)), "count": number}
    return {**row, "positions": positions and sorted(positions)}


def _session(incident: Incident, row: Row) -> dict[str, Any]:
    key = incident.system.typed(row["anchor"]) if row["anchor"] else None
    about = {name: row[name] for name in ("supplier", "consumer", "suffix", "link", "decision", "anchor")}
    return {**about, "anchor_key": key}


def _lags(incident: Incident, servers: Iterable[Row]) -> Iterator[dict[str, Any]]:
    typed, moment = incident.system.typed, incident.system.moment
    claims: dict[tuple[str | None, str], dict[str, str]] = {}
    for one in servers:
        for origin, span in one["vector"].items():
            if span["max"] and (key := typed(span["max"])):
                claims.setdefault((one["suffix"], origin), {})[one["name"]] = key
    for (suffix, origin), keys in claims.items():
        newest = moment(max(keys.values()))
        for server, key in keys.items():
            has = moment(key)
            if newest and has and newest > has:
                seconds = (newest - has).total_seconds()
                yield {"server": server, "origin": origin, "suffix": suffix, "seconds": seconds}
