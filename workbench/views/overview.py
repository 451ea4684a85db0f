"""Who lacks what from whom, as pictures need it: the mesh with what goes over each link, the grid of servers and origins.

Everything here is a part of the diagnosis put in another order. Nothing is read again, so a click costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.diagnosis.diagnosis_text import beyond_the_cut
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.pair_matrix_text import decision_words, stuck_of
from workbench.rules.link_failures import TRANSIENT
from workbench.views.mesh_text import cell_says, link_says, server_says
from workbench.views.verdict_style import MISSING, NOTHING, PENDING, PRESENT, STRANDED, UNKNOWN, worst

Row = Mapping[str, Any]

LISTS = (("missing", MISSING), ("stranded", STRANDED), ("unknown", UNKNOWN), ("pending", PENDING))
"""Lists of the diagnosis, and the verdict that a row of each gives; the gravest first."""


def mesh(incident: Incident, suffix: str | None = None) -> dict[str, Any]:
    """The servers with their verdicts, and the links with what would go over each now, in words for pictures."""
    drawn = mesh_data(incident, suffix)
    servers = [{**one, "says": server_says(one)} for one in drawn["servers"]]
    return {**drawn, "servers": servers, "links": [{**one, **link_says(one)} for one in drawn["links"]]}


def mesh_data(incident: Incident, suffix: str | None = None) -> dict[str, Any]:
    """The same without a word: `counts` and `claims` of a server, `over` of a link are what words are made of.

    Servers that a link leads to and that were not collected are there too, without a verdict.
    """
    found = incident.found
    counts = _counts(found)
    servers = {
        one["name"]: {
            "name": one["name"],
            "origin": one["origin"],
            "collected": True,
            **_counted(one["name"], None, one["suffix"], counts, claims=bool(one["vector"])),
        }
        for one in found["servers"]
        if one["suffix"] == suffix
    }
    absent: dict[str, Any] = {"origin": None, "collected": False, "verdict": NOTHING, "counts": [], "claims": False}
    pairs = {(row["supplier"], row["consumer"]): row for row in found["pairs"] if row["suffix"] == suffix}
    links = []
    for link in found["links"]:
        if link["suffix"] != suffix:
            continue
        consumer = link["consumer"] or link["address"] or "?"
        for name in (link["supplier"], consumer):
            servers.setdefault(name, {"name": name, **absent})
        over = _over(incident, link, pairs.get((link["supplier"], link["consumer"])))
        about = {"supplier": link["supplier"], "consumer": consumer, "name": link["name"], "enabled": link["enabled"]}
        about["failing"] = link["fails"] if link.get("failing") not in (None, *TRANSIENT) else None
        links.append({**about, **over})
    return {"suffix": suffix, "servers": sorted(servers.values(), key=lambda one: one["name"]), "links": links}


def _over(incident: Incident, link: Row, pair: Row | None) -> dict[str, Any]:
    """What goes over a link: a verdict, and `over`, which is None without a pair.

    Else stuck (why nothing is sent, in a word; empty: it can be) and why, waiting and oldest (what would be sent now), never
    (what the consumer lacks, the supplier holds and will not send), exact (False: at least so many).
    """
    if pair is None:
        return {"verdict": NOTHING, "over": None}
    waiting = sum(one["count"] for one in pair["to_send"].values())
    first = min(
        (one["first"] for one in pair["to_send"].values()),
        key=lambda one: str(incident.system.typed(one)),
        default=None,
    )
    never = sum(
        1
        for row in incident.found["missing"]
        if row["server"] == link["consumer"] and row["suffix"] == pair["suffix"] and link["supplier"] in row["held_by"]
    )
    stuck = stuck_of(pair)
    if stuck:
        verdict = UNKNOWN if pair["decision"] == UNKNOWN else MISSING
    elif link["enabled"] is False or link.get("failing") not in (None, *TRANSIENT):
        verdict = STRANDED if waiting else NOTHING
    else:
        verdict = MISSING if never else PENDING if waiting else PRESENT
    over = {
        "stuck": decision_words(pair) if stuck else "",
        "why": pair["reasons"][-1]["says"] if stuck and pair["reasons"] else "",
        "waiting": waiting,
        "oldest": incident.when(first),
        "never": never,
        "exact": "missing" not in incident.found["run"]["truncated"],
    }
    return {"verdict": verdict, "over": over}


def grid(incident: Incident, suffix: str | None = None) -> dict[str, Any]:
    """Servers x origins: what each server claims of each origin, and what is wrong with that."""
    found = incident.found
    counts = _counts(found)
    replicas = [one for one in found["servers"] if one["suffix"] == suffix]
    origins = sorted(
        {origin for one in replicas for origin in one["vector"]}
        | {row["origin"] for name, _ in LISTS for row in found[name] if row["suffix"] == suffix},
        key=lambda name: (len(name), name),
    )
    makers = {one["origin"]: one["name"] for one in replicas if one["origin"]}
    rows = [
        {"server": one["name"], "cells": [_cell(incident, one, origin, counts) for origin in origins]}
        for one in replicas
    ]
    heads = [{"origin": origin, "made_on": makers.get(origin)} for origin in origins]
    return {"suffix": suffix, "origins": heads, "rows": rows}


def _cell(incident: Incident, server: Row, origin: str, counts: _Counts) -> Row:
    span = server["vector"].get(origin) or {"min": None, "max": None}
    counted = _counted(server["name"], origin, server["suffix"], counts, claims=span["max"] is not None)
    return {
        "min": span["min"],
        "min_at": incident.when(span["min"]),
        "max": span["max"],
        "max_at": incident.when(span["max"]),
        **counted,
        "says": cell_says(counted),
    }


@dataclass
class _Count:
    """Changes of one verdict; not `exact`: there are more, or of a stretch nobody knows how many it has."""

    number: int = 0
    exact: bool = True


_Counts = dict[tuple[Any, ...], dict[str, _Count]]


def _counts(found: Row) -> _Counts:
    """(server, origin, suffix), and (server, None, suffix) for all origins -> verdict -> how many changes."""
    counts: _Counts = {}
    cut = found["run"]["truncated"]

    def add(row: Row, verdict: str, number: int | None, exact: bool) -> None:
        for key in ((row["server"], row["origin"], row["suffix"]), (row["server"], None, row["suffix"])):
            mine = counts.setdefault(key, {}).setdefault(verdict, _Count())
            mine.number += number or 0
            mine.exact &= exact and number is not None

    for name, verdict in LISTS:
        for row in found[name]:
            add(row, verdict, 1 if name in ("missing", "stranded") else row["count"], name not in cut)
    for name, verdict in LISTS:
        for server, origin, suffix in beyond_the_cut(found, name):
            add({"server": server, "origin": origin, "suffix": suffix}, verdict, None, False)
    return counts


def _counted(server: str, origin: str | None, suffix: str | None, counts: _Counts, claims: bool) -> dict[str, Any]:
    """The verdict of a server, of all origins or of one, and what it is made of."""
    mine = counts.get((server, origin, suffix), {})
    return {
        "verdict": worst(list(mine)) if mine else PRESENT if claims else NOTHING,
        "counts": [
            {"verdict": verdict, "count": mine[verdict].number, "exact": mine[verdict].exact}
            for _, verdict in LISTS
            if verdict in mine
        ],
        "claims": claims,
    }


def pair_of(incident: Incident, supplier: str, consumer: str, suffix: str | None = None) -> dict[str, Any] | None:
    """One pair in words: the decision, why step by step, what would be sent, what the other rule sets would do."""
    row = next(
        (
            one
            for one in incident.found["pairs"]
            if (one["supplier"], one["consumer"], one["suffix"]) == (supplier, consumer, suffix)
        ),
        None,
    )
    if row is None:
        return None
    return {
        "title": f"{supplier} → {consumer}",
        "decision": decision_words(row),
        "anchor": row["anchor"],
        "anchor_at": incident.when(row["anchor"]),
        "reasons": [{"says": one["says"], "values": values_text(one["values"])} for one in row["reasons"]],
        "counts": [{"outcome": name, "count": count} for name, count in row["counts"].items()],
        "to_send": [
            {"origin": origin, **one, "first_at": incident.when(one["first"]), "last_at": incident.when(one["last"])}
            for origin, one in row["to_send"].items()
        ],
        "others": [
            {
                "rules": name,
                "decision": decision_words(other),
                "count": sum(o["count"] for o in other["to_send"].values()),
            }
            for name, other in row["others"].items()
        ],
    }


def values_text(values: Mapping[str, Any]) -> str:
    """What a rule compared, as `name value, name value`."""
    return ", ".join(f"{name} {'nothing' if value is None else value}" for name, value in values.items())


def suffixes(incident: Incident) -> list[str | None]:
    """The suffixes or domains of the case, those of which a vector was collected first."""
    servers = sorted(incident.found["servers"], key=lambda one: not one["vector"])
    return list(dict.fromkeys(one["suffix"] for one in servers))


def suffix_of(incident: Incident, asked: str | None) -> str | None:
    """The suffix that is asked for, else the first; an empty text stands for the one without a name."""
    there = suffixes(incident)
    return next((one for one in there if (one or "") == asked), there[0] if there else None)
