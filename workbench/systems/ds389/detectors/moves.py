"""Two entries that two servers moved below each other while neither knew the other's move: no server can take both."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.model import Finding, step
from workbench.rules.contents import name_of
from workbench.rules.vectors import last
from workbench.systems.ds389.rules.moves import Move, exclusive, move_of, parent_of, undone

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

_COLUMNS = ["server", "file", "offset", "origin", "position", "entry", "target", "rename"]


def contradicting_moves(situation: Situation) -> Iterator[Finding]:
    """Pairs of moves that exclude each other, where a server lacks one of them.

    Logs are read only where a server misses changes or waits for some.
    """
    found = situation.verdicts
    suffixes = {row["suffix"] for row in (*found.pending, *found.missing)}
    for suffix in sorted(suffixes, key=lambda one: one or ""):
        where = (pc.field("operation") == "modrdn") & pc.field("rename").is_valid() & pc.field("entry").is_valid()
        rows: dict[str, dict[str, Any]] = {}
        for row in _rows(situation, suffix, _COLUMNS, where):
            rows.setdefault(row["position"], row)
        moves = [
            move_of(one, row["origin"], row["entry"], row["target"] or "", row["rename"]) for one, row in rows.items()
        ]
        pairs = exclusive(moves, {})
        if pairs and (added := _added(situation, suffix, [first.before for first, _ in pairs])):
            pairs = exclusive(moves, added)
        for pair in pairs:
            lacking = {move.position: _lacking(situation, suffix, move) for move in pair}
            if any(lacking.values()):
                yield _finding(situation, suffix, pair, moves, lacking, [rows[move.position] for move in pair])


def _rows(
    situation: Situation, suffix: str | None, columns: list[str], where: pc.Expression
) -> Iterator[dict[str, Any]]:
    for batch in situation.rows("changes", columns, where, snapshot=situation.topology.snapshot, suffix=suffix):
        yield from batch.to_pylist()


def _added(situation: Situation, suffix: str | None, names: Iterable[str]) -> dict[str, list[str]]:
    """Name of an entry -> the positions at which one of that name was added, of these names."""
    wanted = {name_of(name) for name in names}
    found: dict[str, list[str]] = {}
    for row in _rows(situation, suffix, ["position", "target"], pc.field("operation") == "add"):
        if (name := name_of(row["target"] or "")) in wanted:
            found.setdefault(name, []).append(row["position"])
    return found


def _lacking(situation: Situation, suffix: str | None, move: Move) -> list[str]:
    """The servers that do not have the move: their vectors do not cover it, or it is missing behind them."""
    missing = {row["server"] for row in situation.verdicts.missing if row["position"] == move.position}
    return sorted(
        one.server
        for one in situation.topology.replicas
        if one.suffix == suffix
        and one.claims
        and (one.server in missing or (last(one.seen(), move.origin) or "") < move.position)
    )


def _finding(
    situation: Situation,
    suffix: str | None,
    pair: tuple[Move, Move],
    moves: list[Move],
    lacking: dict[str, list[str]],
    rows: list[dict[str, Any]],
) -> Finding:
    first, second = pair
    makers = {move.position: _maker(situation, suffix, move) for move in pair}
    waits = "; ".join(
        f"{_listed(servers)} {'does' if len(servers) == 1 else 'do'} not have {position}"
        for position, servers in lacking.items()
        if servers
    )
    due = [move for move in pair if not undone(move, moves)] or [*pair]
    back = ", and ".join(f"on {makers[move.position]}: `{_back(move)}`" for move in due)
    each = "both" if len(due) == 2 else "it although the other move is undone already"
    return Finding(
        "CONTRADICTING_MOVES",
        "error",
        f"two moves exclude each other: {_told(situation, first, makers)}, and {_told(situation, second, makers)}; each was made "
        f"where the other was not known, and no server can take both; {waits}",
        suffix=suffix,
        items=(first.position, second.position),
        evidence=tuple({key: row[key] for key in _COLUMNS} for row in rows),
        root=f"the moves of {first.before} and {second.before} exclude each other: two servers moved each below the other",
        fix=(
            step(
                f"move {' and '.join(move.after for move in due)} back, {back}",
                "then each server can apply what the other one sends, and the links recover by themselves",
                f"do {each}; when all servers have the same, make the move that is wanted once more, on one server",
            ),
        ),
    )


def _told(situation: Situation, move: Move, makers: dict[str, str]) -> str:
    made = situation.topology.system.moment(move.position)
    when = f" at {made:%Y-%m-%d %H:%M:%S} UTC" if made else ""
    return f"{makers[move.position]} moved {move.before} below {move.parent}{when} ({move.position})"


def _maker(situation: Situation, suffix: str | None, move: Move) -> str:
    names = [one.server for one in situation.topology.replicas if (one.suffix, one.origin) == (suffix, move.origin)]
    return names[0] if len(names) == 1 else f"the server of replica ID {move.origin}"


def _back(move: Move) -> str:
    """The command that moves the entry back, as a person types it on that server; the login is theirs to fill in."""
    parent = parent_of(move.before)
    rdn = move.before[: len(move.before) - len(parent) - 1]
    return f"ldapmodrdn -H URL -D MANAGER -W {shlex.join(['-s', parent, move.after, rdn])}"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
