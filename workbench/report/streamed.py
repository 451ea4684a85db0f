"""What a report tells of a stream of transactions: each log, what it lacks of its source's, and what is no plain commit.

As `report_data`, plain data in which names stand under keys that tell what they name; and as `report_text`, the sentences of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.diagnosis.incident import Incident
from workbench.replication.stream.rules.segments import ASK, COMMITTED, SAYS, TAIL
from workbench.views.verdict_style import MISSING, PENDING, STRANDED, UNKNOWN

Row = Mapping[str, Any]

LACKS: Mapping[str, tuple[str, str]] = {
    "inside": (MISSING, "missing, and the server is past it"),
    "incomplete": (MISSING, "there in part: nothing of it may be applied"),
    "conflicts": (MISSING, "there with other contents, or another end"),
    "behind": (PENDING, "not there yet"),
    "undecided": (UNKNOWN, "there without an end"),
    "unknown": (UNKNOWN, "nothing tells whether it is there"),
    "errant": (STRANDED, "in this log alone"),
    "discard": (STRANDED, "there in part, and taken back at the source: to be discarded"),
}
"""What a log may lack of its source's, or have beyond it: list of the diagnosis -> verdict, and what it says."""

_POSITIONS = 12


def streamed(incident: Incident, shown: int) -> dict[str, Any]:
    """Of systems that replicate a stream: logs, what each lacks, and the transactions that are no plain commits."""
    found = incident.found
    odd = [row for row in found["transactions"] if row["why"] or row["cancelled"] or row["held"] is not None]
    about = ("server", "origin", "source", "bytes", "rows_seen", "rows_kept", "rows_cancelled", "lost", "lag")
    of = (
        "server",
        "origin",
        "position",
        "outcome",
        "why",
        "messages",
        "seen",
        "kept",
        "cancelled",
        "missing",
        "at_source",
        "held",
    )
    return {
        "logs": [
            {
                **{key: row[key] for key in about},
                "source_known_by": row["source_known_by"],
                "committed": row["outcomes"].get(COMMITTED, 0),
                "others": [
                    {"outcome": name, "count": count} for name, count in row["outcomes"].items() if name != COMMITTED
                ],
            }
            for row in found["streams"]
        ],
        "lacks": list(_lacks(found)),
        "odd": [{key: row[key] for key in of} for row in odd[:shown]],
        "more": max(0, len(odd) - shown),
    }


def _lacks(found: Row) -> Iterator[dict[str, Any]]:
    for row in found["fleet"]:
        for what in LACKS:
            positions = [one for one in row[what] if what != "undecided" or one not in row["discard"]]
            if positions:
                about = {key: row[key] for key in ("server", "origin", "source")}
                more = max(0, len(positions) - _POSITIONS)
                yield {
                    **about,
                    "what": what,
                    "count": len(positions),
                    "positions": positions[:_POSITIONS],
                    "more": more,
                }


def stream_worded(told: Row) -> dict[str, Any]:
    """The same with sentences."""
    return {
        **told,
        "logs": [{**row, "others": _others(row), "behind": _behind(row)} for row in told["logs"]],
        "lacks": [{**row, "verdict": LACKS[row["what"]][0], "says": LACKS[row["what"]][1]} for row in told["lacks"]],
        "odd": [{**row, "outcome": _words(row["outcome"]), "says": _odd_says(row)} for row in told["odd"]],
    }


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


def _others(row: Row) -> str:
    return ", ".join(f"{one['count']:,} {_words(one['outcome'])}" for one in row["others"])


def _behind(row: Row) -> str:
    """How far a log is behind that of its source."""
    lag = row["lag"]
    if lag is None:
        return "the source" if row["source_known_by"] else "its source is not known"
    if not lag["transactions"]:
        return "nothing"
    return f"{_many(lag['transactions'], 'transaction')}, {_many(lag['rows'], 'row')}, {lag['seconds']:,.0f} s"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _odd_says(row: Row) -> str:
    """What became of a transaction, what its source says of it, and what to ask there."""
    parts = [SAYS[row["why"]]] if row["why"] else []
    if row["missing"] and row["missing"] != TAIL:
        parts.append(f"number {', '.join(row['missing'].split())}")
    if row["at_source"]:
        parts.append(f"at its source: {_words(row['at_source'])}")
    elif row["why"] in ASK:
        parts.append(ASK[row["why"]])
    if row["held"]:
        parts.append(f"{row['held']:,} others ended while it was open")
    return "; ".join(parts)
