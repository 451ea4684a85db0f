"""The answers of time travel as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from workbench.diagnosis.propagation import COVERED, IN_LOG, MADE, ONLY_HOLDER, UNKNOWN, Arrival, Hop, Way
from workbench.engine.observation_queries import Sighting
from workbench.model import counted
from workbench.text_table import aligned, one_cell
from workbench.topology.history import DIFFER, KnownThen
from workbench.topology.timeline import OWN_TIME, SNAPSHOT

_SHOWN = 40

Row = Mapping[str, Any]


def time_text(at: datetime | None) -> str:
    """A UTC time to the millisecond, without a fraction that says nothing; `?` without one."""
    if at is None:
        return "?"
    return f"{at:%Y-%m-%d %H:%M:%S}" + (f".{at.microsecond // 1000:03d}" if at.microsecond else "")


def known_text(found: Iterable[KnownThen]) -> str:
    """What each server knew, one paragraph for each origin that something is known of."""
    return "\n".join(line for one in found for line in _known(one))


def _known(one: KnownThen) -> list[str]:
    who = one_cell(f"{one.server}" + (f" ({one.suffix})" if one.suffix else "") + f", origin {one.origin}")
    if one.at_least is None:
        lines = [f"{who}: unknown: {one.why}"]
    else:
        words = {"exact": "", "between": "at least ", "at_least": "at least "}[one.verdict]
        lines = [f"{who}: {words}{one_cell(one.at_least.position)}", f"    had it    {_proof(one.at_least)}"]
    if one.at_most:
        word = "not above" if one.at_most.included else "not yet  "
        position = "" if one.at_most.included and one.verdict == "exact" else f"{one_cell(one.at_most.position)}, "
        lines.append(f"    {word} {position}{_proof(one.at_most)}")
    elif one.at_least:
        lines.append("    nothing tells whether it had more")
    if one.changes:
        lines.append(f"    between the two lie {counted(one.changes)}")
    return lines


def _proof(one: Sighting) -> str:
    where = one_cell(f"{one.snapshot}/{one.file}") + (f":{one.offset}" if one.offset is not None else "")
    words = {SNAPSHOT: "vector, read at about", OWN_TIME: "made, by the time in it,"}
    return f"{words.get(one.evidence, one.evidence.replace('_', ' '))} {time_text(one.at)} ({where})"


def vectors_text(rows: Sequence[Row]) -> str:
    """The vectors over time."""
    heads = ("at", "server", "suffix", "origin", "position", "evidence")
    return _table("Vectors over time (UTC)", heads, rows) if rows else "Nothing tells when any vector moved."


def lags_text(rows: Sequence[Row]) -> str:
    """How far each link was behind."""
    if not rows:
        return "No link has a supplier of which something is known."
    heads = ("at", "supplier", "consumer", "origin", "behind", "age", "supplier_position", "consumer_position")
    behind = [row for row in rows if (row["at_least"], row["at_most"]) != (0, 0)]
    shown = [{**row, "behind": behind_text(row), "age": _age(row["seconds"])} for row in behind]
    late = {_link(row) for row in behind}
    kept_up = len({_link(row) for row in rows} - late)
    title = f"Lag (UTC): on {len(late)} links and origins the consumer was behind, on {kept_up} it never was"
    return _table(title, heads, shown) if behind else title


def _link(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in ("suffix", "link", "supplier", "consumer", "origin"))


def behind_text(row: Row) -> str:
    """So many changes behind, `?` for what is not known."""
    least, most = row["at_least"], row["at_most"]
    if least == most and least is not None:
        return f"{least:,}"
    return f"{'?' if least is None else f'{least:,}'}..{'?' if most is None else f'{most:,}'}"


def _age(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds:,.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def disagreement_text(rows: Sequence[Row]) -> str:
    """Since when vectors differ; those that are equal in one line."""
    lines = []
    differing = [row for row in rows if row["state"] == DIFFER]
    for row in differing:
        behind = row["other"] if row["ahead"] == row["server"] else row["server"]
        count = "" if row["changes"] is None else f" by {counted(row['changes'])}"
        agreed = f"; they agreed last at {time_text(row['agreed'])}" if row["agreed"] else ""
        lines.append(
            f"{row['server']} and {row['other']} differ on origin {row['origin']} since {time_text(row['since'])}: "
            f"{behind} is behind{count}{agreed}"
        )
    equal = len(rows) - len(differing)
    if equal:
        latest = max(row["since"] for row in rows if row["state"] != DIFFER)
        lines.append(f"equal: {equal} of {len(rows)} pairs and origins, the last one since {time_text(latest)}")
    return "\n".join(map(one_cell, lines))


def way_text(way: Way) -> str:
    """The way of one change: arrivals in the order of time, then the hops."""
    made = f", made {time_text(way.made_at)} by its origin's clock" if way.made_at else ""
    lines = [f"{one_cell(way.position)} of origin {one_cell(way.origin)}{made}"]
    heads = ("AT", "SERVER", "WHAT", "PROOF")
    rows = [(time_text(one.at) if one.at else "", one.server, _what(one), _where(one)) for one in way.arrivals]
    lines += ["", aligned([heads, *rows])]
    if way.hops:
        lines += ["", *(one_cell(_hop(one)) for one in way.hops)]
    return "\n".join(lines)


def _what(one: Arrival) -> str:
    words = {
        IN_LOG: "in its log, time unknown",
        COVERED: "not shown; its vector covers it",
        UNKNOWN: "nothing shows it",
        MADE: "made here",
    }
    return words.get(one.outcome, one.outcome)


def _where(one: Arrival) -> str:
    if not one.evidence:
        return ""
    place = f"{one.snapshot}/{one.file}" + (f":{one.offset}" if one.offset is not None else "")
    return f"{one.evidence.replace('_', ' ')} ({place})" + (f" conn {one.connection}" if one.connection else "")


def _hop(one: Hop) -> str:
    if one.supplier is None:
        may = (
            f": {' or '.join(one.candidates)} may have sent it"
            if one.candidates
            else ": no supplier with a link shows it"
        )
        return f"? -> {one.consumer}{may}"
    how = {None: "", ONLY_HOLDER: ", the only supplier there that had it"}.get(
        one.by, f", sent {time_text(one.sent_at)}"
    )
    took = f", {one.seconds:,.3f} s" if one.seconds is not None else ""
    clocks = "; the clocks disagree: it arrived before it was there" if one.clocks_disagree else ""
    return f"{one.supplier} -> {one.consumer} over {one.link}{how}{took}{clocks}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Row]) -> str:
    shown = [[_cell(row[name]) for name in heads] for row in rows[:_SHOWN]]
    text = f"{title}\n" + aligned([[name.upper().replace("_", " ") for name in heads], *shown])
    more = len(rows) - _SHOWN
    return text + (f"\nand {more:,} more: --json FILE or --csv FILE has them all" if more > 0 else "")


def _cell(value: Any) -> Any:
    return time_text(value) if isinstance(value, datetime) else value
