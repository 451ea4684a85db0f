"""Missed changes of servers that keep no log, in whose place other servers have later ones: nobody writes them once more.

mail of an entry: A shows change 7, B still shows 3 and waits for 7, C missed 3 and waits for 7
Written once more on B the old value would get the newest CID, and replace that of A on every server; 7 alone brings C right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import counted, listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.engine.state_fates import Fate

_NAMED = 3
"""Of more values the first are named."""


def newer_first(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], fix: tuple[Mapping[str, Any], ...]
) -> tuple[Mapping[str, Any], ...]:
    """What mends missing changes of one server, where later changes or deletions stand for any of them: those come first.

    Whoever shows a missing change does not have what replaces it: there its value is an old one.
    """
    fates = context.verdicts.fates.get(rows[0]["suffix"], ())
    if not fates:
        return fix  # servers that keep logs
    after = [(row, later) for row in rows if (later := _later(context, row, fates))]
    if not after:
        return fix
    server, count, every = rows[0]["server"], len(after), [fate for _, later in after for fate in later]
    holders = sorted({name for row, _ in after for name in row["held_by"]})
    sources = sorted(set[str]().union(*(fate.shown for fate in every)) - {server, *holders})
    names = [f"{row['attribute'] or 'the deletion'} of {row['target']}" for row, _ in after]
    named = listed([*names[:_NAMED], *([f"{count - _NAMED:,} more"] if count > _NAMED else [])])
    it = "it" if count == 1 else "them"
    has = f"{listed(sources) if sources else 'another server'} {'have' if len(sources) > 1 else 'has'}"
    waits = all(any(fate.awaited_by(server) for fate in later) for _, later in after)
    wait = f"wait until it has come to {listed([server, *holders])}"
    first = step(
        f"write nothing of {named} again: {has} what replaces {it}; "
        + (wait if waits else f"bring that to {listed([server, *holders])} first"),
        f"a later change or deletion stands in the place of {counted(count)}: once {server} has it, nothing of {it} is lacking "
        "there",
        f"the value that {listed(holders) if holders else 'another server'} {'show' if len(holders) > 1 else 'shows'} is an old "
        "one: written again it would get the newest CID, and replace the newer value on every server",
    )
    return (first,) if count == len(rows) else (first, *fix)


def _later(context: DetectorContext, row: Mapping[str, Any], fates: Sequence[Fate]) -> list[Fate]:
    """What stands in the place of a missing change wherever it comes, and has not come to the server."""
    system = context.topology.system
    time, change = system.halves(system.typed(row["position"]) or "")[0], (row["entry"], row["attribute"])
    for fate in fates:
        if (fate.change, fate.origin, fate.first) == (change, row["origin"], time) and row["server"] in fate.missed:
            return [later for number in fate.settled_by if row["server"] not in (later := fates[number]).holders]
    return []
