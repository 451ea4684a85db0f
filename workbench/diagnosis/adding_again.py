"""The agreements to switch off while an entry is deleted and added again, so that no other server keeps the old entry.

    s1 deletes ann      s3, which never had her, refuses that (32), and does not pass it on
    s1 changes bob      s3 takes that, and passes it on to s2: the vector of s2 covers the deletion now, which never comes
    s1 adds ann again   s2 still has the old ann, and keeps both, as a conflict

The repair is safe if a server without the entry feeds no other server during it (`workbench.rules.interleavings`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.model import listed, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 6
"""So many agreements are named."""


def apart_meanwhile(
    context: DetectorContext, lacking: Collection[str], suffix: str | None, writer: str = ""
) -> tuple[str, str]:
    """Return the step before an entry is deleted, and the step after it was added again; empty if neither is needed.

    lacking  the servers without the entry
    writer   the server that deletes the entry, and so has the deletion first
    """
    links = [link for link in context.topology.links if link.suffix == suffix and link.enabled is not False]
    cut = [link for link in links if link.supplier in lacking and link.consumer not in {*lacking, writer}]
    if not cut:
        return "", ""
    alike = len({link.name for link in cut}) < len(cut)
    names = sorted(f"{link.name} of {link.supplier}" if alike else link.name for link in cut)
    of_all = f"the {len(cut)} agreements of {listed(sorted({link.supplier for link in cut}))}"
    reached = {writer} if writer else {link.supplier for link in links} - {*lacking}
    left = [link for link in links if link not in cut and not link.blocked]
    while new := {link.consumer for link in left if link.supplier in reached and link.consumer} - reached:
        reached |= new
    alone = sorted({link.consumer for link in cut if link.consumer} - reached)
    gets = "gets" if len(alone) == 1 else "get"
    other = (
        f"see that {listed(alone)} {gets} what {writer or 'the supplier'} sends over another link, " if alone else ""
    )
    these = "this agreement" if len(cut) == 1 else "these agreements"
    return (
        f"{other}switch off {listed(names) if len(names) <= _NAMED else of_all}",
        f"switch {these} on again once every server has what was added",
    )


CONFLICT = (
    "where a server keeps the old entry and gets the new one, it keeps both as a conflict: do not add before each server was "
    "asked; the entries get new unique IDs on every server, and what is below them or names them goes with them"
)
"""What to beware of where an entry is deleted and added again."""


def having_added(rows: Sequence[Mapping[str, Any]], makers: Collection[str]) -> list[str]:
    """Those of some servers that are known to have any entry whose addition is among these missing changes."""
    added = [row for row in rows if row["operation"] == "add"]
    return sorted(
        {name for row in added for name in (*row["held_by"], *(row.get("shown_by") or ()))}.intersection(makers)
    )


def entries_first(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], server: str, makers: Collection[str]
) -> Mapping[str, Any] | None:
    """To collect the entries first, where a maker of changes may have an entry whose addition is missing; None: none may.

    a lacks an addition of b, whose log was made anew; only the read-only hub still has it in its log
        b has the entry: what is written again on a is another one of the same name, and b and the hub keep both
    """
    suffix, added = rows[0]["suffix"], {row["position"] for row in rows if row["operation"] == "add"}
    lacked: dict[str, set[str]] = {}
    for row in context.verdicts.missing:
        if row["suffix"] == suffix and row["position"] in added:
            lacked.setdefault(row["server"], set()).add(row["position"])
    compared = {name for found in context.verdicts.contents if found.suffix == suffix for name in found.exports}
    unsure = {*makers} - {server} - compared - {*having_added(rows, makers)}
    perhaps = sorted(name for name in unsure if added - lacked.get(name, set()))
    if not perhaps:
        return None
    entry = "the entry that was" if len(added) == 1 else "the entries that were"
    return step(
        "collect with the entries (`workbench collect --entries`), and diagnose again",
        f"{listed(perhaps)} may have {entry} added, or lack {'it' if len(added) == 1 else 'them'}, and without entries nothing "
        "tells: an entry that is added again has another unique ID, and a server that keeps the old one has both then, as a "
        "conflict",
        f"do not initialise {listed(sorted({*_holders(rows)}))} before that" if _holders(rows) else None,
    )


def one_by_one(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], server: str, makers: Collection[str]
) -> Mapping[str, Any]:
    """What to do about missing changes that no server has all of."""
    never = f"no session will ever send {'it' if len(rows) == 1 else 'them'}: the vector says that {server} has them"
    written = (
        "write the present values of each entry concerned once more on a server with data that has its change (HELD BY)"
    )
    beware = "no server has all of them: filled from one, it would lack the others; an older value undoes a newer one"
    added = {row["position"] for row in rows if row["operation"] == "add"}
    if not added:
        return step(written.format("entry concerned"), never, beware)
    if unsure := entries_first(context, rows, server, makers):
        return unsure
    first, last = added_again(context, rows)
    others = [written.format("other entry")] if len(added) < len(rows) else []
    return step(listed([*first, *others, *last]), never, f"{beware}; {CONFLICT}")


def added_again(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """The steps that delete and add again the entries whose additions are among missing changes, and those behind them."""
    suffix, added = rows[0]["suffix"], {row["position"] for row in rows if row["operation"] == "add"}
    lacking = {x["server"] for x in context.verdicts.missing if x["suffix"] == suffix and x["position"] in added}
    off, on = apart_meanwhile(context, lacking, suffix)
    each = ["save each entry that was added", "delete it on a supplier that has it (HELD BY)"]
    return [*([off] if off else []), *each, "add it there again once no server has it"], [on] if on else []


def _holders(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    return {name for row in rows for name in (*row["held_by"], *(row.get("shown_by") or ()))}
