"""What servers remember of each origin, as pictures need it: ranges on a line of time, floors, and two servers compared.

Of systems whose servers keep no log of changes. Everything here is a part of the diagnosis put in another order: a click costs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from workbench.diagnosis.incident import Incident
from workbench.diagnosis.pair_matrix_text import stuck_of
from workbench.model import NotOfThisSystem, Problem
from workbench.replication.entry.sections import WHY, doubts
from workbench.topology.history import moment_of
from workbench.views.verdict_style import MISSING, NOTHING, PENDING, PRESENT, STRANDED, UNKNOWN

Row = Mapping[str, Any]


def must_pull(incident: Incident) -> None:
    """Raise Problem where servers keep logs of changes: there is nothing of all this."""
    if incident.topology.pulling is None:
        raise NotOfThisSystem(
            f"servers of {incident.system.title} keep logs of their changes, and what is behind them is in those",
            incident.case.name,
            f"the notebook {incident.system.notebook} shows them"
            if incident.system.notebook
            else "the notebooks 21_anchor, 22_stop_csn and 23_missed_changes show them",
        )


def _floors(incident: Incident, suffix: str | None, origin: str | None = None) -> list[Row]:
    must_pull(incident)
    rows = [row for row in incident.found["floors"] if row["suffix"] == suffix and origin in (None, row["origin"])]
    if not rows:
        raise Problem("no vector was collected", incident.then_label, "load files that hold the vectors into the case")
    return rows


# --- ranges


def range_bars(
    incident: Incident,
    suffix: str | None = None,
    origin: str | None = None,
    server: str | None = None,
    since: str = "",
    until: str = "",
) -> dict[str, Any]:
    """One bar for each server and origin, from the first position that it lists to the last, as parts of one line of time.

    Keys: from, to, origins (origin, made_on, bars), cuts (server -> what it forgets lies before). A bar begins at `begin` and
    ends at `end`, 0 to 1; None: it lists nothing of the origin. `shows`: it still names the origin to those that it supplies;
    `zero`: it begins at time 0, which is before every change; `gap`: where the longest gap lies that is too long.
    """
    rows = _floors(incident, suffix, origin)
    low, high = _span(incident, rows, since, until)

    def place(time: int) -> float:
        return max(0.0, min(1.0, (time - low) / (high - low)))

    def bar(one: Row, of: str) -> dict[str, Any]:
        made = {**one, "first_at": incident.when(one["first"]), "last_at": incident.when(one["last"]), "zero": False}
        if one["last"] is None:
            return {**made, "begin": None, "end": None, "places": None}
        first, last = _time(incident, one["first"]), _time(incident, one["last"])
        gap = [place(_time(incident, end)) for end in one["gap"]] if one["gap"] else None
        waits = _waits(incident, one["server"], of, suffix)
        outside = last < low or first > high
        ends = {"begin": None, "end": None} if outside else {"begin": place(first), "end": place(last)}
        return {**made, "zero": first == 0, "places": gap, "waits": waits, "outside": outside, **ends}

    cuts: dict[str, Any] = {}
    for row in incident.found["tombstones"]:
        if row["suffix"] == suffix and row["forgets_before"] and server in (None, row["server"]):
            at = datetime.fromisoformat(row["forgets_before"])
            time = incident.system.instant(at)
            cuts[row["server"]] = {
                "at": f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
                "place": place(time) if low <= time <= high else None,
            }
    return {
        "from": incident.when(_position(incident, rows[0]["origin"], low)),
        "to": incident.when(_position(incident, rows[0]["origin"], high)),
        "cuts": cuts,
        "origins": [
            {
                "origin": row["origin"],
                "made_on": row["made_on"],
                "bars": [bar(one, row["origin"]) for one in row["servers"] if server in (None, one["server"])],
            }
            for row in rows
        ],
    }


def _position(incident: Incident, origin: str, time: int) -> str:
    return incident.system.show(incident.system.order_key(origin, time, 0))


def _time(incident: Incident, position: str) -> int:
    return incident.system.halves(incident.system.typed(position) or "")[0]


def _span(incident: Incident, rows: Iterable[Row], since: str, until: str) -> tuple[int, int]:
    """From the first listed time behind 0 to the last one, cut as asked."""
    ends = [one[end] for row in rows for one in row["servers"] for end in ("first", "last") if one[end]]
    times = [time for time in (_time(incident, end) for end in ends) if time > 0] or [0]
    low = incident.system.instant(moment_of(since)) if since else min(times)
    high = incident.system.instant(moment_of(until)) if until else max(times)
    if since and until and low >= high:
        raise Problem("the time ends before it begins", f"{since} to {until}", "give a later end")
    return low, max(high, low + 1)


def _waits(incident: Incident, server: str, origin: str, suffix: str | None) -> int:
    """How many changes of the origin are known that the server does not claim yet."""
    return sum(
        row["count"]
        for row in incident.found["pending"]
        if (row["server"], row["origin"], row["suffix"]) == (server, origin, suffix)
    )


# --- two servers


def compared(incident: Incident, one: str, other: str, suffix: str | None = None) -> list[dict[str, Any]]:
    """What each of two servers answers when the other one pulls: both ways, with the ranges that decide it.

    Keys: supplier, consumer, decision, message, why, verdict, rows (origin, what, from, to, with words of what these are), others
    (what other rule sets say).
    """
    must_pull(incident)
    return [_way(incident, *ends, suffix) for ends in ((one, other), (other, one))]


def _way(incident: Incident, supplier: str, consumer: str, suffix: str | None) -> dict[str, Any]:
    asked = supplier, consumer, suffix
    row = next(
        (row for row in incident.found["pairs"] if (row["supplier"], row["consumer"], row["suffix"]) == asked), None
    )
    if row is None:
        raise Problem(
            f"there is no pair {supplier} -> {consumer}", incident.then_label, "choose two servers with a vector"
        )
    ways = {"owed": ("behind", "up to"), "lag": ("the supplier's first", "the consumer's last")}
    makers = {one["origin"]: one["name"] for one in incident.found["servers"] if one["origin"]}
    ways["advance"] = ("the supplier's last", "the consumer's first")
    stuck = stuck_of(row)
    return {
        "supplier": supplier,
        "consumer": consumer,
        "link": row["link"],
        "decision": row["decision"],
        "message": row["message"],
        "verdict": MISSING if stuck else PENDING if row["delivers"] else PRESENT,
        "why": row["reasons"][-1]["says"] if row["reasons"] else "",
        "rows": [
            {
                "origin": origin,
                "what": what,
                "made_on": makers.get(origin),
                **dict(zip(("from", "to"), ends, strict=True)),
                **dict(zip(("from_says", "to_says"), ways[what], strict=True)),
                "from_at": incident.when(ends[0]),
                "to_at": incident.when(ends[1]),
                "count": row["to_send"].get(origin, {}).get("count") if what == "owed" else None,
            }
            for what in ("lag", "advance", "owed")
            for origin, ends in row[what].items()
        ],
        "others": [
            {"rules": name, "decision": one["decision"], "why": one["reasons"][-1]["says"] if one["reasons"] else ""}
            for name, one in row["others"].items()
        ],
    }


# --- floors


def floor_grid(incident: Incident, suffix: str | None = None, origin: str | None = None) -> dict[str, Any]:
    """Servers x origins: how far above the floor each stands, and who holds it; servers of which nothing is known are there too.

    Keys: origins (origin, made_on, floor, floor_at, certain, held_by), rows (server, known, cells, grave, and where a server is
    known by its origin alone that origin), doubts (sentences).
    """
    rows = _floors(incident, suffix, origin)
    graves = {row["server"]: row for row in incident.found["tombstones"] if row["suffix"] == suffix}
    names = list(dict.fromkeys(one["server"] for row in rows for one in row["servers"]))
    unknown = list(dict.fromkeys(one["who"] for row in rows for one in row["unsure"] if one["who"] not in names))
    origins = [row["origin"] for row in incident.found["floors"] if row["suffix"] == suffix]
    table = [
        {
            "server": name,
            "origin": None,
            "known": True,
            "cells": [_cell(incident, row, name) for row in rows],
            "grave": graves.get(name),
        }
        for name in names
    ]
    for who in unknown:
        why = next(one["why"] for row in rows for one in row["unsure"] if one["who"] == who)
        nothing = {
            "verdict": UNKNOWN,
            "says": "nobody knows",
            "hover": WHY[why].format(who),
            "last": None,
            "last_at": None,
        }
        of = {"server": who, "origin": who if who in origins else None}
        table.append({**of, "known": False, "cells": [nothing for _ in rows], "grave": None})
    return {
        "origins": [
            {
                **{key: row[key] for key in ("origin", "made_on", "floor", "certain", "held_by")},
                "floor_at": incident.when(row["floor"]),
            }
            for row in rows
        ],
        "rows": table,
        "doubts": list(doubts(rows)),
    }


def _cell(incident: Incident, row: Row, server: str) -> dict[str, Any]:
    found = next((one for one in row["servers"] if one["server"] == server), None)
    if found is None:
        return {
            "verdict": NOTHING,
            "says": "other data",
            "hover": "it replicates other data",
            "last": None,
            "last_at": None,
        }
    made = {"last": found["last"], "last_at": incident.when(found["last"])}
    listed, safe, forgets = (_many(found[key]) for key in ("listed", "safe", "forgets"))
    hover = f"lists {listed}; safe to forget {safe}; forgets at its next purge {forgets}"
    hover += f", of which {_many(found['needed'])} are still needed" if found["forgets"] else ""
    for one in row["unsure"]:
        if one["who"] == server:
            return {
                **made,
                "verdict": UNKNOWN,
                "says": "forgotten, or never seen",
                "hover": WHY[one["why"]].format(server),
            }
    if server in row["held_by"]:
        return {
            **made,
            "verdict": STRANDED,
            "says": "holds the floor" if found["last"] else "has seen nothing",
            "hover": hover,
        }
    above = _above(incident, row["floor"], found["last"])
    verdict = MISSING if found["leaves_behind"] else PRESENT
    left = f"; leaves {', '.join(found['leaves_behind'])} behind" if found["leaves_behind"] else ""
    return {**made, "verdict": verdict, "says": f"{above}{left}", "hover": hover}


def _many(count: int | None) -> str:
    return "nobody knows how many" if count is None else f"{count:,}"


def _above(incident: Incident, floor: str | None, last: str | None) -> str:
    if not last or floor == last:
        return "at the floor"
    if floor is None:
        return "above nothing"
    ends = [incident.system.moment(incident.system.typed(end) or "") for end in (floor, last)]
    if ends[0] is None or ends[1] is None:
        return "above the floor"
    return f"{_long((ends[1] - ends[0]).total_seconds())} above the floor"


def _long(seconds: float) -> str:
    for name, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:,.0f} s"
