"""What to do about changes that a server's vector covers and the server does not have, and why no session brings them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.behind_links import alone_without_log
from workbench.diagnosis.causes import UNTOLD
from workbench.diagnosis.left_out_changes import left_out_by_links
from workbench.diagnosis.missed_renames import RENAME_MISSED
from workbench.diagnosis.repair_sources import again_by_hand, fed_later, makers_that_lack
from workbench.model import counted
from workbench.replication.entry.diagnosis.file_times import read_in_part
from workbench.replication.entry.rules.entries import FORGOTTEN
from workbench.rules.contents import name_of
from workbench.rules.verdicts import ENTRIES_LACK

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def missed_of_vector(
    context: DetectorContext,
    rows: Sequence[Mapping[str, Any]],
    server: str,
    writers: Sequence[str],
    fillers: Sequence[str],
    holders: Sequence[str],
) -> tuple[str, str, str, str]:
    """Why changes that a vector covers do not come, what mends it, why, and what to beware of.

    writers  the servers that hold them and take writes of clients
    fillers  those that hold them and can initialise the server
    holders  all that hold them
    """
    nowhere = not writers and not fillers
    filler = fillers[0] if fillers else "another server" if nowhere else ""
    writer = filler if nowhere or filler in writers else writers[0] if writers else ""
    later = "" if filler else fed_later(context, server, rows, holders)
    refill = f"{refill_of(context)} {server} from {filler or later}" if filler or later else ""
    or_refill = (
        f", or {refill_of(context)} {server} from {'there' if writer == filler else filler or later}" if refill else ""
    )
    pulling, replica = context.topology.pulling, context.replica(server, rows[0]["suffix"])
    values_alone = _named_alike(context, rows)
    done = {None} if pulling else {row["operation"] for row in rows if row["position"] not in values_alone} - {"add"}
    done |= {"modify"} if values_alone else set()
    writable = pulling or (replica is not None and replica.origin is not None)
    lacked_entries = {
        row["target"]
        for row in context.verdicts.missing
        if (row["server"], row["suffix"], row["operation"]) == (server, rows[0]["suffix"], "add") and row["target"]
    }
    added = not pulling and any(row["target"] in lacked_entries for row in rows)
    # What is written of an entry that the server does not have is refused there; and no supplier has any more what only a
    # read-only server still has: another entry may bear its name there.
    deleting = "" if writable or done != {"delete"} else _has_them_too(context, rows, server)
    added = added or ("delete" in done and not writable and not deleting)
    if added:
        mend = refill or f"make an agreement from {writer} to {server}, and {refill_of(context)} {server} over it"
    elif all(row["operation"] == "delete" for row in rows):
        where = f"{deleting}, which has them as well and passes that on" if deleting else f"{server}, too"
        mend = f"delete the entries concerned on {where}{f', or {refill}' if refill else ''}"
    else:
        mend = f"{again_by_hand(done, f'{server}, too')} on {writer}{or_refill}" if writer else refill
    them = "it" if len(rows) == 1 else "them"
    lacked = _by_entries(context, rows)
    named = pulling or replica is None or rows[0]["origin"] in replica.seen()
    return (
        f"its vector {f'covers {them}' if named else 'does not name that origin any more'}{lacked}",
        mend,
        f"no session will ever send {them}: "
        + (
            f"the vector says that {'it is' if len(rows) == 1 else 'they are'} there"
            if named
            else "the origin was cleaned"
        )
        + (f"; {_RENAMED_LATER}" if values_alone and writer and not added else ""),
        "an entry that the server lacks comes back with what is written of it alone: write all of it"
        + may_come_back(context, server, rows[0]["suffix"], filler)
        if context.topology.pulling
        else lost_with(context, server, rows[0]["suffix"])
        if added or mend == refill
        else "find out first whether they are meant to be gone: somebody may have renamed or moved them at the same time"
        if all(row["operation"] == "delete" for row in rows)
        else "an entry that the server lacks is not mended by modifying it: that would be refused again",
    )


def _has_them_too(context: DetectorContext, rows: Sequence[Mapping[str, Any]], server: str) -> str:
    """A server that takes writes of clients, feeds this one, and lacks the same deletions; empty: there is none."""
    to = server, rows[0]["suffix"]
    feeding = {link.supplier for link in context.topology.links if (link.consumer, link.suffix) == to and link.runs}
    return min((name for name in makers_that_lack(context, rows) if name in feeding), default="")


def may_come_back(context: DetectorContext, server: str, suffix: str | None, source: str) -> str:
    """What a server may have deleted and forgotten, and another one still shows, as the end of a sentence; empty: nothing.

    A tombstone is forgotten after the window, and nothing tells from then on that an entry was deleted.
    """
    unknown = [row for row in context.verdicts.unknown if row["suffix"] == suffix and row["why"] == FORGOTTEN]
    count = sum(row["count"] or 0 for row in unknown if row["server"] == server)
    if not source or not count or any(row["server"] == source for row in unknown):
        return ""
    if read_in_part(context, server, suffix):
        return (
            f"; {source} shows {counted(count)} of entries that {server} may have, where its file could not be read, or "
            f"may have deleted and forgotten since: to {refill_of(context)} {server} from {source} brings what was deleted "
            f"back there, so collect a whole backup of {server} first, and look"
        )
    return (
        f"; {source} shows {counted(count)} of entries that {server} does not have, and may have deleted and forgotten since: "
        f"to {refill_of(context)} {server} from {source} brings these back there, so look first whether they were "
        "deleted on purpose"
    )


_RENAMED_LATER = (
    "by a later renaming an entry has the same name there, and it lacks a value of it, which no renaming would send"
)


def _named_alike(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Those of missing renamings, as they are shown, of which a server lacks a value alone: its entry has the name of the others.

    bert   named it d2x, a second before carl named it d2y       uid: d2x, d2y
    carl   gave the older name no effect when it came            uid: d2y
    """
    typed = context.topology.system.typed
    renamings = {typed(row["position"]): row["position"] for row in rows if row["operation"] == "modrdn"}
    suffix, server = rows[0]["suffix"], rows[0]["server"]
    lacked: dict[str, bool] = {}
    for contents in context.verdicts.contents if renamings else ():
        for one in contents.differences if contents.suffix == suffix and server in contents.exports else ():
            if one.position and one.position in renamings and server in one.servers:
                held = contents.held[one.entry]
                names = {name_of(held[name].target) for name in (server, *one.others)}
                alike = bool(one.attribute) and one.attribute != "dn" and len(names) == 1
                lacked[one.position] = lacked.get(one.position, True) and alike
    return {renamings[position] for position, alike in lacked.items() if alike}


def _by_entries(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> str:
    """What entries alone tell of missing changes, and what logs tell of those that a link passed on without an attribute."""
    shown = [row for row in rows if row.get("rule") == ENTRIES_LACK]
    alone = sum(1 for row in shown if row["reasons"] == [UNTOLD])
    unfound = sum(1 for row in shown if row["reasons"] == [RENAME_MISSED])
    left_out = len(left_out_by_links(shown))
    of_them = {count: "" if count == len(rows) else f"of {count:,} " for count in (left_out, alone)}
    said = f"; {of_them[left_out]}a link left attributes out, as logs show that have the same changes with and without them"
    took = context.unrecorded.get((rows[0]["server"], rows[0]["suffix"]))
    told = f"; {of_them[alone]}only its entries show that{f': {took}' if took else ''}"
    are = "is a deletion that" if unfound == 1 else "are deletions that"
    deleted = f"; {unfound:,} of these {are} did not find the entry, for the server missed its renaming"
    return (said if left_out else "") + (deleted if unfound else "") + (told if alone else "")


def lost_with(context: DetectorContext, server: str, suffix: str | None) -> str:
    """What a new filling of a server throws away, in words."""
    only = sum(1 for row in context.verdicts.stranded if (row["server"], row["suffix"]) == (server, suffix))
    shown = alone_without_log(context, server, suffix)
    holds = [f"{counted(only)} that only {server} holds"] if only else []
    holds += [f"{counted(shown)} that its data alone {'shows' if shown == 1 else 'show'}, and no log"] if shown else []
    replica = context.replica(server, suffix)
    makes = replica is not None and replica.origin is not None and not context.topology.pulling
    # What it makes after its source was read is lost, and where it came before that its new log has no record to begin at.
    writes = (
        f"; let no client write on {server} until it is filled" if makes and server not in context.topology.down else ""
    )
    if holds:
        return f"to {refill_of(context)} {server} throws away {' and '.join(holds)}: save these first{writes}"
    return f"to {refill_of(context)} {server} throws away everything that only {server} holds{writes}"


def _fed_alone(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The servers that get changes from this one alone: their sessions may begin at a record that a new log does not have."""
    feeding: dict[str, set[str]] = {}
    for link in context.topology.links if not context.topology.pulling else ():
        if link.suffix == suffix and link.consumer and link.enabled is not False and link.consumer != server:
            feeding.setdefault(link.consumer, set()).add(link.supplier)
    return sorted(name for name, suppliers in feeding.items() if suppliers == {server})


def refill_of(context: DetectorContext) -> str:
    """The word for a new filling."""
    return context.topology.system.refill
