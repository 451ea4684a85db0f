"""Two entries that two servers moved below each other while neither knew the other's move: no server can take both."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import Finding, listed, step
from workbench.rules.contents import name_of
from workbench.rules.spelling import parent_of, parts_of
from workbench.rules.vectors import last
from workbench.systems.ds389.rules.moves import Move, at_and_above, exclusive, move_of, present_name, still_below

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

_COLUMNS = ["server", "file", "offset", "origin", "position", "entry", "target", "rename"]
_MOST_MOVES, _MOST_PAIRS = 1000, 100
"""Of more moves that wait the earliest are looked at: a link stands still at the first change that its consumer refuses."""

Rows = dict[str, dict[str, Any]]


def contradicting_moves(context: DetectorContext) -> Iterator[Finding]:
    """Pairs of moves that exclude each other, where a server lacks one of them.

    Logs are read only where a server misses changes or waits for some: first for the moves that a server lacks, then for those
    of what these moved their entries below, then for what else happened to the entries and names of the pairs.
    """
    found = context.verdicts
    suffixes = {row["suffix"] for row in (*found.pending, *found.missing)}
    for suffix in sorted(suffixes, key=lambda one: one or ""):
        replicas = [one for one in context.topology.replicas if one.suffix == suffix and one.claims]
        rows = _earliest(_rows(context, suffix, _MOVED & _lacked_somewhere(context, suffix, replicas)))
        waiting = {one for one, row in rows.items() if _lacking(context, replicas, row["origin"], one)}
        above = {name for one in waiting for name in at_and_above(name_of(_move(rows[one]).parent))}
        if above:
            rows |= _earliest(_rows(context, suffix, _MOVED & _named(above)))
        pairs = [pair for pair in exclusive(map(_move, rows.values()), {}) if {one.position for one in pair} & waiting]
        if not pairs:
            continue
        pairs = pairs[:_MOST_PAIRS]
        rows |= _renames(context, suffix, pairs)
        moves = [_move(row) for row in rows.values()]
        sure = {*exclusive(moves, _added(context, suffix, pairs))}
        for pair in pairs:
            if pair in sure:
                yield _finding(context, suffix, replicas, pair, moves, [rows[one.position] for one in pair])


_MOVED = (
    (pc.field("operation") == "modrdn")
    & pc.field("entry").is_valid()
    & pc.match_substring(pc.field("rename"), "newsuperior")
)


def _move(row: dict[str, Any]) -> Move:
    return move_of(row["position"], row["origin"], row["entry"], row["target"] or "", row["rename"])


def _rows(context: DetectorContext, suffix: str | None, where: pc.Expression) -> Iterator[dict[str, Any]]:
    for batch in context.rows("changes", _COLUMNS, where, snapshot=context.topology.snapshot, suffix=suffix):
        yield from batch.to_pylist()


def _earliest(rows: Iterable[dict[str, Any]]) -> Rows:
    """Position -> the first row of it, of the earliest positions."""
    found: Rows = {}
    for row in rows:
        found.setdefault(row["position"], row)
        if len(found) >= 2 * _MOST_MOVES:
            found = {one: found[one] for one in sorted(found)[:_MOST_MOVES]}
    return {one: found[one] for one in sorted(found)[:_MOST_MOVES]}


def _lacked_somewhere(context: DetectorContext, suffix: str | None, replicas: list[Replica]) -> pc.Expression:
    """What some server lacks by its vector, or misses behind it."""
    seen = [one.seen() for one in replicas]
    origins = sorted({origin for one in seen for origin in one})
    lacked = ~pc.field("origin").isin(pa.array(origins, pa.string()))
    for origin in origins:
        everywhere = min(last(one, origin) or "" for one in seen)
        lacked |= (pc.field("origin") == origin) & (pc.field("position") > everywhere)
    missing = {row["position"] for row in context.verdicts.missing if row["suffix"] == suffix}
    return lacked | pc.field("position").isin(sorted(missing)) if missing else lacked


def _named(names: Iterable[str]) -> pc.Expression:
    """What is done to entries of these names, however they are spelt."""
    spelt = pc.replace_substring_regex(pc.utf8_lower(pc.field("target")), pattern=r"\s*,\s*", replacement=",")
    return pc.utf8_trim_whitespace(spelt).isin(sorted(names))


def _renames(context: DetectorContext, suffix: str | None, pairs: list[tuple[Move, Move]]) -> Rows:
    """The renames of the entries of the pairs, and of others to the names of these, since the first of the moves."""
    both = [move for pair in pairs for move in pair]
    begins = "|".join(sorted({re.escape(parts_of(name_of(move.before))[0]) for move in both}))
    text = pc.replace_substring(pc.utf8_lower(pc.field("rename")), pattern="\n ", replacement="")
    since = (pc.field("position") > min(move.position for move in both)) & pc.field("entry").is_valid()
    to_one = pc.match_substring_regex(text, pattern=rf"newrdn: *(?:{begins})\s*(?:\n|$)")
    of_one = pc.field("entry").isin(sorted({move.entry for move in both}))
    renamed = (pc.field("operation") == "modrdn") & pc.field("rename").is_valid()
    return {row["position"]: row for row in _rows(context, suffix, since & renamed & (of_one | to_one))}


def _added(context: DetectorContext, suffix: str | None, pairs: list[tuple[Move, Move]]) -> dict[str, list[str]]:
    """Name of an entry that was moved first -> the positions at which one of that name was added since."""
    since = pc.field("position") > min(first.position for first, _ in pairs)
    names = {name_of(first.before) for first, _ in pairs}
    found: dict[str, list[str]] = {}
    for row in _rows(context, suffix, (pc.field("operation") == "add") & since & _named(names)):
        found.setdefault(name_of(row["target"]), []).append(row["position"])
    return found


def _lacking(context: DetectorContext, replicas: Iterable[Replica], origin: str, position: str) -> list[str]:
    """The servers that do not have the change: their vectors do not cover it, or it is missing behind them."""
    missing = {row["server"] for row in context.verdicts.missing if row["position"] == position}
    return sorted(
        one.server for one in replicas if one.server in missing or (last(one.seen(), origin) or "") < position
    )


def _finding(
    context: DetectorContext,
    suffix: str | None,
    replicas: list[Replica],
    pair: tuple[Move, Move],
    moves: list[Move],
    rows: list[dict[str, Any]],
) -> Finding:
    first, second = pair
    makers = {move.position: _maker(context, suffix, move) for move in pair}
    lacking = {move.position: _lacking(context, replicas, move.origin, move.position) for move in pair}
    waits = "; ".join(
        f"{listed(servers)} {'does' if len(servers) == 1 else 'do'} not have {position}"
        for position, servers in lacking.items()
        if servers
    )
    there = {move: _there(replicas, pair, move, moves) for move in pair}
    due = [move for move, other in (pair, pair[::-1]) if still_below(move, other, there[move])]
    told = f"{_told(context, first, makers)}, and {_told(context, second, makers)}"
    about: dict[str, Any] = {
        "suffix": suffix,
        "items": (first.position, second.position),
        "evidence": tuple({key: row[key] for key in _COLUMNS} for row in rows),
    }
    if not due:
        return Finding(
            "CONTRADICTING_MOVES",
            "warning",
            f"two moves excluded each other, and both are moved back; the links have not caught up: {told}; {waits}",
            **about,
            root=f"{first.before} and {second.before}, which were moved below each other, are both moved back; the links have "
            "not caught up",
            fix=(
                step(
                    "wait until the suppliers try again, at most five minutes after their last attempt, and collect again",
                    "each server can apply now what the other one sends",
                    "when all servers have the same, make the move that is wanted once more, on one server",
                ),
            ),
        )
    back = ", and ".join(
        f"on {makers[move.position]}: `{_back(move, present_name(move, there[move]))}`" for move in due
    )
    each = "both" if len(due) == 2 else "it although the other move is undone already"
    return Finding(
        "CONTRADICTING_MOVES",
        "error",
        f"two moves exclude each other: {told}; each was made where the other was not known, and no server can take "
        f"both; {waits}",
        **about,
        root=f"{makers[first.position]} moved {first.before} below {second.before} while {makers[second.position]} moved "
        f"{second.before} below {first.before}",
        fix=(
            step(
                f"move {' and '.join(present_name(move, there[move]) for move in due)} back, {back}",
                "then each server can apply what the other one sends, and the links recover by themselves",
                f"do {each}; when all servers have the same, make the move that is wanted once more, on one server",
            ),
        ),
    )


def _there(replicas: Iterable[Replica], pair: tuple[Move, Move], move: Move, moves: Iterable[Move]) -> list[Move]:
    """The renames of both entries since the move which the server has that made it."""
    seen = next((one.seen() for one in replicas if one.origin == move.origin), {})
    entries = {one.entry for one in pair}
    return [
        one
        for one in moves
        if one.entry in entries
        and one.position > move.position
        and (one.origin == move.origin or one.position <= (last(seen, one.origin) or ""))
    ]


def _told(context: DetectorContext, move: Move, makers: dict[str, str]) -> str:
    made = context.topology.system.moment(move.position)
    when = f" at {made:%Y-%m-%d %H:%M:%S} UTC" if made else ""
    return f"{makers[move.position]} moved {move.before} below {move.parent}{when} ({move.position})"


def _maker(context: DetectorContext, suffix: str | None, move: Move) -> str:
    names = [one.server for one in context.topology.replicas if (one.suffix, one.origin) == (suffix, move.origin)]
    return names[0] if len(names) == 1 else f"the server of replica ID {move.origin}"


def _back(move: Move, name: str) -> str:
    """The command that moves the entry back, as a person types it on that server; the login is theirs to fill in."""
    return f"ldapmodrdn -H URL -D MANAGER -W {shlex.join(['-s', parent_of(move.before), name, parts_of(name)[0]])}"
