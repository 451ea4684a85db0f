"""The pair matrix as text: who would send what to whom, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from workbench.model import System
from workbench.plain import aligned
from workbench.rules.sending import ANCHOR_NOT_FOUND, DELIVERED, NOTHING, SEND

Row = Mapping[str, Any]

_WIDEST = 9
"""Servers that a matrix can have on a terminal; of more, only the pairs that are not at rest are listed."""

_OUTCOMES = {
    "sent": "sent",
    "sent_promoted": "sent past the stop",
    "covered": "the consumer has",
    "beyond_local_max": "beyond the stop",
    "unknown_rid": "of origins the supplier does not list",
    "consumer_rid": "the consumer's own",
    "helper": "books of the changelog",
}


def matrix_text(system: System, rows: Sequence[Row]) -> str:
    """The matrix of each suffix, then a line on every pair that is not at rest. In brackets: the pair has no link."""
    texts = []
    for suffix in sorted({row["suffix"] or "" for row in rows}):
        mine = [row for row in rows if (row["suffix"] or "") == suffix]
        names = sorted({row["supplier"] for row in mine} | {row["consumer"] for row in mine})
        texts.append(f"{suffix or 'one suffix'}: each row is a supplier, each column a consumer; (no link)")
        if len(names) <= _WIDEST:
            by_pair = {(row["supplier"], row["consumer"]): row for row in mine}
            lines = [["", *names]]
            lines += [[name, *(_cell(by_pair.get((name, other))) for other in names)] for name in names]
            texts.append(aligned(lines))
        else:
            at_rest = sum(row["decision"] == NOTHING for row in mine)
            texts.append(f"{len(names)} servers, {len(mine)} pairs, {at_rest} with nothing to send")
        texts.append(
            "\n".join(line for row in mine for line in told(row, system.moment)) or "Nobody has anything to send."
        )
    return "\n\n".join(texts) if texts else "No two servers of one suffix have a vector: there is no pair to look at."


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    if row["decision"] == SEND:
        word = f"sends {sum(found['count'] for found in row['to_send'].values()):,}"
    else:
        words = {NOTHING: "nothing", ANCHOR_NOT_FOUND: f"STUCK: {row['anchor_class'] or 'no anchor'}"}
        word = words.get(row["decision"], row["decision"].upper())
    if not row["link"]:
        return f"({word})"
    return f"{word}, DISABLED" if row["link_enabled"] is False and row["decision"] != NOTHING else word


def told(row: Row, moment: Callable[[str], datetime | None], always: bool = False) -> Iterator[str]:
    """What the pair's session would do, in sentences; nothing of a pair at rest, unless `always`."""
    pair = f"{row['supplier']} -> {row['consumer']}" + (f" ({row['link']})" if row["link"] else " (no link)")

    def at(position: str) -> str:
        when = moment(position)
        return position + (f" of {when:%Y-%m-%d %H:%M:%S}" if when else "")

    if row["decision"] == SEND:
        sent = sum(found["count"] for found in row["to_send"].values())
        start = "from" if row["anchor_included"] else "from behind"
        others = ", ".join(
            f"{count:,} {_OUTCOMES.get(outcome, outcome)}"
            for outcome, count in row["counts"].items()
            if outcome not in DELIVERED
        )
        yield f"{pair}: sends {sent:,} changes {start} {at(row['anchor'])}" + (
            f"; passes over {others}" if others else ""
        )
        for origin, found in row["to_send"].items():
            yield f"    of origin {origin}: {found['count']:,}, {at(found['first'])} to {at(found['last'])}"
    elif row["decision"] == ANCHOR_NOT_FOUND and row["anchor"]:
        assumed = " (assumed: the log does not say how far it was trimmed)" if row.get("anchor_class_assumed") else ""
        said = row["reasons"][-1]["says"] if row["reasons"] else ""
        yield f"{pair}: can send nothing, its anchor {at(row['anchor'])} is {row['anchor_class']}{assumed}: {said}"
    elif row["decision"] != NOTHING or always:
        said = row["reasons"][-1]["says"] if row["reasons"] else ""
        yield f"{pair}: {row['decision'].replace('_', ' ')}" + (f": {said}" if said else "")
    if row["link_enabled"] is False and row["decision"] != NOTHING:
        yield "    but the link is disabled: it holds no session"
    if row["would_contact"] is False and row["decision"] != NOTHING:
        yield "    but it does not contact the consumer: it remembers it as having all this"
    for name, other in row["others"].items():
        yield f"    rule set {name}: {_in_short(other)}"


def _in_short(other: Row) -> str:
    if other["decision"] != SEND:
        return str(other["decision"]).replace("_", " ")
    sent = sum(found["count"] for found in other["to_send"].values())
    return f"sends {sent:,} changes from {other['anchor']}"


def findings_text(findings: Iterable[Row]) -> str:
    """The findings, worst first, one paragraph each."""
    texts = []
    for one in findings:
        about = ", ".join(str(one[key]) for key in ("server", "link", "origin") if one[key])
        texts.append(
            f"{one['severity'].upper()} {one['code']}" + (f" ({about})" if about else "") + f"\n    {one['summary']}"
        )
    return "\n".join(texts)
