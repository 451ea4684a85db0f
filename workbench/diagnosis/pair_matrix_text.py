"""A diagnosis as text: the matrix of the pairs (who would send what to whom, and why not), and what stands outside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from workbench.model import System, counted, ends
from workbench.replication.entry.rules.entries import ALL_SEEN, OTHER_VERSION, TURNED_DOWN
from workbench.rules.link_failures import REASONS, REFUSED
from workbench.rules.send_session import ANCHOR_NOT_FOUND, DELIVERED, KEEPS_NO_LOG, LOG_NOT_WHOLE, NOTHING, SEND
from workbench.systems import system_named
from workbench.text_table import aligned, one_cell

Row = Mapping[str, Any]

_WIDEST = 9
"""Servers that a matrix can have on a terminal; of more, only the pairs that are not at rest are listed."""

OUTCOMES = {
    "sent": "sent",
    "sent_promoted": "sent past the stop",
    "covered": "the consumer has",
    "beyond_local_max": "beyond the stop",
    "unknown_rid": "of origins the supplier does not list",
    "consumer_rid": "the consumer's own",
    "helper": "books of the log",
}
"""Outcome of a record -> what a sentence calls it."""


def matrix_text(system: System, rows: Sequence[Row]) -> str:
    """The matrix of each suffix, then a line on every pair that is not at rest. In brackets: the pair has no link."""
    texts = []
    for suffix in sorted({row["suffix"] or "" for row in rows}):
        mine = [row for row in rows if (row["suffix"] or "") == suffix]
        names = sorted({row["supplier"] for row in mine} | {row["consumer"] for row in mine})
        texts.append(
            f"{one_cell(suffix or 'suffix not named')}: each row is a supplier, each column a consumer; (no link)"
        )
        if len(names) <= _WIDEST:
            by_pair = {(row["supplier"], row["consumer"]): row for row in mine}
            lines = [["", *names]]
            lines += [[name, *(_cell(by_pair.get((name, other))) for other in names)] for name in names]
            texts.append(aligned(lines))
        else:
            at_rest = sum(row["decision"] == NOTHING for row in mine)
            texts.append(f"{len(names)} servers, {len(mine)} pairs, {at_rest} with nothing to send")
        texts.append(
            "\n".join(line for row in mine for line in told(row, system.moment))
            or "None of these servers has anything to send to another one."
        )
    return "\n\n".join(texts) if texts else "No two servers of one suffix have a vector: there is no pair to look at."


def outside_text(found: Row) -> str:
    """The servers and links of a diagnosis that are in no pair, and why; nothing if there are none."""
    lines = []
    paired = {(row[end], row["suffix"]) for row in found["pairs"] for end in ("supplier", "consumer")}
    for one in found["servers"]:
        if (one["name"], one["suffix"]) not in paired:
            why = "no other server has a vector of its suffix" if _has_vector(found, one) else "it has no vector"
            lines.append(f"{one['name']} ({one['suffix'] or 'suffix not named'}): in no pair, for {why}")
    shown = {(one["name"], one["suffix"]) for one in found["servers"]}
    for one in found["links"]:
        to = f"{one['supplier']} -> {one['consumer'] or one['address'] or '?'} ({one['name']})"
        if one["consumer"] is None:
            lines.append(f"{to}: no file says which server this is; `consumer` of the link in case.yaml can")
        elif (one["consumer"], one["suffix"]) not in shown:
            lines.append(f"{to}: nothing of this consumer was collected")
        elif one["supplier"] == one["address"]:
            lines.append(f"{to}: nothing of this supplier was collected")
    return "\n".join(map(one_cell, lines))


def _has_vector(found: Row, server: Row) -> bool:
    return system_named(found["case"]["system"]).vector_word in server["evidence"]


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    word = decision_words(row)
    if not row["link"]:
        return f"({word})"
    if row["link_enabled"] is False and row["decision"] != NOTHING:
        return f"{word}, DISABLED"
    if opens := row.get("link_opens"):
        return f"{word} from {opens_text(opens)} on"
    return f"{word}, LINK FAILS" if row.get("link_failing") else word


def opens_text(opens: str) -> str:
    """When a link runs again that was told to hold no session before."""
    return f"{datetime.fromisoformat(opens):%Y-%m-%d %H:%M} UTC"


def stuck_of(row: Row) -> bool:
    """True if changes that the consumer lacks cannot go to it now: nothing is sent, and not because there is nothing."""
    if "delivers" not in row:
        return row["decision"] not in (SEND, NOTHING)
    # A supplier that is asked says why where it does not simply give what it has.
    return any(reason["rule"] != ALL_SEEN for reason in row["reasons"])


def decision_words(row: Row) -> str:
    """What a pair would do now, in two or three words."""
    if row["decision"] == SEND:
        return f"sends {_sent(row):,}" if _sent(row) else "sends nothing"
    if _reason(row, KEEPS_NO_LOG):
        return "keeps no log"
    if _reason(row, TURNED_DOWN) or _reason(row, OTHER_VERSION):
        return "REFUSED"
    words = {NOTHING: "nothing", ANCHOR_NOT_FOUND: f"STUCK: {row.get('anchor_class') or 'no anchor'}"}
    return words.get(row["decision"]) or str(row["decision"]).upper()


def _reason(row: Row, rule: str) -> str:
    """What the row says by that reason; empty if it is none of its reasons."""
    return next((str(reason["says"]) for reason in row["reasons"] if reason["rule"] == rule), "")


def _sent(row: Row) -> int:
    return sum(found["count"] for found in row["to_send"].values())


def told(row: Row, moment: Callable[[str], datetime | None], always: bool = False) -> Iterator[str]:
    """What the pair's session would do, in sentences, one on each line; nothing of a pair at rest, unless `always`."""
    if always or not (row["decision"] == NOTHING or _reason(row, KEEPS_NO_LOG)):
        yield from map(one_cell, _sentences(row, moment))


def _sentences(row: Row, moment: Callable[[str], datetime | None]) -> Iterator[str]:
    pair = f"{row['supplier']} -> {row['consumer']}" + (f" ({row['link']})" if row["link"] else " (no link)")
    why = row["reasons"][-1]["says"] if row["reasons"] else ""

    def at(position: str) -> str:
        when = moment(position)
        return position + (f" of {when:%Y-%m-%d %H:%M:%S}" if when else "")

    if row["decision"] == SEND:
        start = "from" if row["anchor_included"] else "from behind"
        others = ", ".join(
            f"{count:,} {OUTCOMES.get(outcome, outcome)}"
            for outcome, count in row["counts"].items()
            if outcome not in DELIVERED
        )
        sends = counted(_sent(row)) if _sent(row) else "nothing"
        yield f"{pair}: sends {sends} {start} {at(row['anchor'])}" + (f"; passes over {others}" if others else "")
        for origin, found in row["to_send"].items():
            yield f"    of origin {origin}: {found['count']:,}, {ends(at(found['first']), at(found['last']))}"
    elif row["decision"] == ANCHOR_NOT_FOUND and row["anchor"] and not _reason(row, KEEPS_NO_LOG):
        assumed = " (assumed: the log does not say how far it was trimmed)" if row["anchor_class_assumed"] else ""
        yield f"{pair}: can send nothing, its anchor {at(row['anchor'])} is {row['anchor_class']}{assumed}: {why}"
    else:
        decision = "can send nothing" if row["decision"] == ANCHOR_NOT_FOUND else row["decision"].replace("_", " ")
        yield f"{pair}: {decision}" + (f": {why}" if why else "")
    if row["decision"] == NOTHING:
        return
    if row["decision"] == SEND and _reason(row, LOG_NOT_WHOLE):
        yield f"    but {_reason(row, LOG_NOT_WHOLE)}"
    if row["link_enabled"] is False:
        pulled = "delivers" in row
        yield f"    but the link {'does not run (LINK_DISABLED)' if pulled else 'is disabled: it holds no session'}"
    elif opens := row.get("link_opens"):
        yield f"    but not before {opens_text(opens)}: the link was told to hold no session until then (LINK_FAILING)"
    elif row.get("link_failing"):
        told_by = row.get("link_told_by", "UNRELATED_DATA" if row["unrelated"] else "LINK_FAILING")
        yield f"    but the link fails: {why_it_fails(row)}{f' ({told_by})' if told_by else ''}"
    if row["would_contact"] is False and "delivers" not in row:  # who is asked contacts nobody, and remembers nothing
        yield "    but it does not contact the consumer: it remembers it as having all this"
    for name, other in row["others"].items():
        yield f"    rule set {name}: {_in_short(other)}"


def why_it_fails(row: Row) -> str:
    """Why the link of a row does not run: where it is refused, whether the connection, the session or a change."""
    reason = row["link_failing"]
    return (reason == REFUSED and row.get("link_fails")) or REASONS[reason]


def _in_short(other: Row) -> str:
    if other["decision"] != SEND:
        return str(other["decision"]).replace("_", " ")
    return f"sends {counted(_sent(other)) if _sent(other) else 'nothing'} from {other['anchor']}"
