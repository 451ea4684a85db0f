"""A stream of transactions as text: what each log comes to, which transactions are no plain commits, how far replicas are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.text_table import aligned, one_cell

Row = Mapping[str, Any]

_LACKS = (
    "What each log lacks of that of its source, in the order of commits (`workbench plan` tells what can be applied):"
)
_LISTED = 20
"""Transactions and positions that are named; all of them are in the JSON."""


def streams_text(found: Row) -> str:
    """A section for the logs, the transactions, the copies and the replicas; nothing where no log of a stream was read."""
    return "\n\n".join(_sections(found))


def _sections(found: Row) -> Iterator[str]:
    if found["streams"]:
        yield f"What the logs hold, and how far each is behind its source:\n\n{_logs(found['streams'])}"
    if odd := found["transactions"]:
        more = f"\nand {len(odd) - _LISTED:,} more" if len(odd) > _LISTED else ""
        yield f"Transactions that are no plain commits, and the biggest ones:\n\n{_transactions(odd[:_LISTED])}{more}"
    if copies := [row for row in found["fleet"] if any(row[key] for key in _WHAT)]:
        yield "\n".join([_LACKS, "", *_copies(copies)])
    if found["appliers"]:
        yield f"What replicas say of themselves:\n\n{_appliers(found['appliers'])}"


def _logs(streams: Sequence[Row]) -> str:
    heads = [
        "SERVER",
        "ORIGIN",
        "COMMITTED",
        "OTHER",
        "BYTES",
        "ROWS SEEN",
        "KEPT",
        "TAKEN BACK",
        "BEHIND",
        "BY BYTES",
        "ROWS",
    ]
    rows = []
    for row in streams:
        outcomes = dict(row["outcomes"])
        committed = outcomes.pop("committed", 0)
        others = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()) if outcome != "event")
        lag = row["lag"]
        source = "(source)" if row["source"] and row["source_known_by"] else "(not known)"
        behind = [source, "", ""] if lag is None else [f"{lag[key]:,}" for key in ("transactions", "bytes", "rows")]
        counts = [f"{row[key]:,}" for key in ("bytes", "rows_seen", "rows_kept", "rows_cancelled")]
        rows.append([row["server"], row["origin"], f"{committed:,}", others or "-", *counts, *behind])
    return aligned([heads, *rows], right=(2, 4, 5, 6, 7, 8, 9, 10))


def _transactions(odd: Sequence[Row]) -> str:
    heads = [
        "SERVER",
        "ORIGIN",
        "TRANSACTION",
        "OUTCOME",
        "AT SOURCE",
        "MESSAGES",
        "BYTES",
        "ROWS SEEN",
        "KEPT",
        "BECAUSE",
    ]
    rows = [
        [
            *(row[key] for key in ("server", "origin", "position")),
            row["outcome"],
            row["at_source"] or "-",
            *(f"{row[key]:,}" for key in ("messages", "bytes", "seen", "kept")),
            one_cell(row["says"] or ("it is big" if row["held"] is not None else "rows of it, or copies, stand out")),
        ]
        for row in odd
    ]
    return aligned([heads, *rows], right=(5, 6, 7, 8))


def _copies(copies: Sequence[Row]) -> Iterator[str]:
    for row in copies:
        told = [f"{what} {_named(row[key])}" for key, what in _WHAT.items() if row[key]]
        yield f"{one_cell(row['server'])}, origin {row['origin']}, from {one_cell(row['source'])}: {'; '.join(told)}"


_WHAT = {
    "apply": "lacks",
    "by_hand": "lacks what no tool applies:",
    "discard": "discard",
    "errant": "only there:",
    "conflicts": "not the same:",
}


def _named(positions: Sequence[str]) -> str:
    more = f" and {len(positions) - _LISTED:,} more" if len(positions) > _LISTED else ""
    return ", ".join(positions[:_LISTED]) + more


def _appliers(appliers: Sequence[Row]) -> str:
    heads = [
        "SERVER",
        "MASTER",
        "APPLIED UP TO",
        "QUEUED",
        "BEHIND",
        "NOT QUEUED",
        "STANDS STILL",
        "MASTER MAY PURGE BELOW",
    ]

    def number(value: int | None) -> str:
        return "?" if value is None else f"{value:,}"

    rows = [
        [
            *(one_cell(row[key]) for key in ("server", "master")),
            *(number(row[key]) for key in ("commit", "queued")),
            f"{'at least ' if row['behind_is_at_least'] else ''}{number(row['behind'])}",
            f"{row['not_queued']:,}",
            ", ".join(sorted(row["stopped"])) or "-",
            number(row["purge_below"]),
        ]
        for row in appliers
    ]
    return aligned([heads, *rows], right=(2, 3, 4, 5, 7))
