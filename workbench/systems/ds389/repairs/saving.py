"""What only one server has is written to a file before its data go: by its log, else as its entries show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.left_in_logs import left_in_log
from workbench.model import counted, listed
from workbench.repair.plan_types import Step, View
from workbench.safety import as_file_name
from workbench.systems.ds389.native import add, comment, ldif
from workbench.systems.ds389.repairs.evidence import Present, present_on, stranded_ldif
from workbench.systems.ds389.rules.own_attributes import BY_SERVER

SAVED_ENTRIES = "save-entries-of"
"""How the key of a step begins that writes entries to a file."""
MOST_SAVED = 5_000
"""Entries that are written to a file: of more, the whole export of the server is the better copy."""


def saving(view: View, server: str, only: Sequence[int], awaited: bool) -> list[Step]:
    """Write what only this server holds to a file, if its log tells what it is. `awaited`: others wait for it."""
    model = view.model
    # A stretch stands for several changes: which they are, the list of stranded ones tells, or the log.
    verdicts = view.context.verdicts
    rows = [row for row in verdicts.stranded if (row["server"], row["suffix"]) == (server, view.suffix)]
    named = sorted({*(row["position"] for row in rows), *(_logged(view, server, only) if awaited else ())})
    text, without = stranded_ldif(view, server, named)
    told = {
        number
        for number in only
        if sum(
            model.lots[number].first <= position <= model.lots[number].last
            for position in named
            if _same(view, model.lots[number].origin, position)
        )
        >= model.lots[number].changes
    }
    shown = _saving_shown(view, server, _in_no_log(view, sorted({*only} - told)))
    if not text or not told:
        return shown
    count = sum(model.lots[number].changes for number in told)
    where = f"the changelog of {server} has" if left_in_log(verdicts, server, view.suffix) else f"{server} holds"
    are = "is" if count == 1 else "are"
    lacks = f" Not in it: {'; '.join(without)}." if without else ""
    also = sorted({name for name, other in model.servers.items() if name != server and told & other.holds})
    first = (
        f"fill {listed(also)} anew as well, which {'has' if len(also) == 1 else 'have'} them, too; then "
        if also
        else ""
    )
    return [
        Step(
            key=f"save-{server}",
            repair="save",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{counted(count)} that {'of the servers with a changelog ' if also else ''}only {where} {are} written to a "
            f"file; a person decides about {'it' if count == 1 else 'them'}.{lacks}",
            stands_on="no file of that name is there",
            expects=f"the file is there: {first}once all servers are alike, send what of it is still right to a supplier "
            "(ldapmodify -f)",
            risk="none: nothing is written to a server",
            undo="delete the file",
            sends=text,
            effects=({"do": "save", "lots": sorted(told)},),
            details={"file": f"stranded-on-{as_file_name(server)}{_of_many(view)}.ldif"},
        ),
        *shown,
    ]


def _saving_shown(view: View, server: str, lots: Sequence[int]) -> list[Step]:
    """Write the entries to a file in which the data of a server show changes that no log has, as they stand there.

    A change that no entry carries any more may have left its effect all the same: then all entries of the server are written.
    """
    if not lots:
        return []
    marked, shown = _marked(view, server, lots)
    changes = sum(view.model.lots[number].changes for number in lots)
    whole = shown < changes
    entries = _all_entries(view, server) if whole else marked
    there = present_on(view, server, entries) if entries else None
    if not there:
        return []
    gone = [comment(f"deleted there: {name}") for entry, name in sorted(marked.items()) if entry not in there]
    elsewhere = _names_elsewhere(view, server, there)
    where = f"all {counted(len(there), 'entry', 'entries')}" if whole else counted(len(there), "entry", "entries")
    carried = f"; {shown:,} of them are marked in these" if whole else ""
    return [
        Step(
            key=f"{SAVED_ENTRIES}-{server}",
            repair="save",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"what {server} alone shows of {counted(changes)} that no log has is written to a file: {where} of it, as read "
            f"when {server} was collected{carried}; a person decides about it",
            stands_on="no file of that name is there",
            expects="the file is there: once all servers are alike, write what of it is still right on a supplier",
            risk="none: nothing is written to a server. Values of the entries that other changes made are in the file, too, and "
            "secrets are not",
            undo="delete the file",
            sends="\n".join(
                [*(_as_it_stands(there[entry], elsewhere.get(entry, {})) for entry in sorted(there)), "".join(gone)]
            ),
            effects=({"do": "save", "lots": sorted(lots)},),
            details={"file": f"entries-of-{as_file_name(server)}{_of_many(view)}.ldif"},
        )
    ]


def _marked(view: View, server: str, lots: Sequence[int]) -> tuple[dict[str, str], int]:
    """The entries of a server that carry changes of these lots, with their names, and how many of the changes are carried.

    Nothing if the entries are too many to be listed.
    """
    system, chosen = view.context.topology.system, [view.model.lots[number] for number in lots]
    found: dict[str, str] = {}
    changes: set[str] = set()
    origins = pa.array(sorted({lot.origin for lot in chosen}), pa.string())
    highest = max(lot.last for lot in chosen)
    where = (pc.field("position") >= min(lot.first for lot in chosen)) & pc.field("entry").is_valid()
    where &= pc.field("origin").isin(origins)
    where &= pc.utf8_slice_codeunits(pc.field("position"), 0, len(highest)) <= highest
    asked = {"snapshot": view.context.topology.snapshot, "server": server, "suffix": view.suffix}
    for batch in view.context.rows("entry_states", ["entry", "target", "origin", "position"], where, **asked):
        for row in batch.to_pylist():
            change = system.change_of(row["position"])
            if any(row["origin"] == lot.origin and lot.first <= change <= lot.last for lot in chosen):
                found[row["entry"]] = row["target"]
                changes.add(change)
        if len(found) > MOST_SAVED:
            return {}, 0
    return found, len(changes)


def _all_entries(view: View, server: str) -> set[str]:
    """All entries of a server; none if they are too many to be listed."""
    asked = {"snapshot": view.context.topology.snapshot, "server": server, "suffix": view.suffix}
    found: set[str] = set()
    for batch in view.context.rows("entry_states", ["entry"], pc.field("state") == "present", **asked):
        found |= {*pc.unique(batch["entry"].drop_null()).to_pylist()}
        if len(found) > MOST_SAVED:
            return set()
    return found


def _names_elsewhere(view: View, server: str, there: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Entry -> the names that it has on other servers -> these servers."""
    found: dict[str, dict[str, list[str]]] = {}
    for replica in view.context.topology.replicas:
        if replica.suffix == view.suffix and replica.server != server:
            for entry, shown in (present_on(view, replica.server, there) or {}).items():
                found.setdefault(entry, {}).setdefault(shown.dn, []).append(replica.server)
    return found


def _as_it_stands(entry: Present, elsewhere: Mapping[str, Sequence[str]]) -> str:
    """An entry as LDIF, without what the server writes itself, and with what to do where others have it as well."""
    shown = {name for name in entry.values if name.lower() not in BY_SERVER and name not in entry.hidden}
    hidden = "".join(comment(f"not in it: {name}") for name in sorted(entry.hidden) if name.lower() not in BY_SERVER)
    record = add(entry.dn, {name: entry.values[name] for name in entry.values if name in shown})
    there = "".join(
        comment(
            f"{listed(servers)} {'has' if len(servers) == 1 else 'have'} this entry"
            + (f" as {name}: rename or move that one" if name.lower() != entry.dn.lower() else ": change that one")
            + ", do not add it a second time"
        )
        for name, servers in sorted(elsewhere.items())
    )
    return f"{comment(f'nsUniqueId {entry.entry}')}{there}{hidden}{ldif([record])}"


def _in_no_log(view: View, only: Sequence[int]) -> list[int]:
    """The lots of which no collected log has a change."""
    left = list(only)
    for replica in view.context.topology.replicas:
        if left and replica.suffix == view.suffix and replica.log is not None:
            logged = _logged(view, replica.server, left)
            lots = view.model.lots
            left = [
                number
                for number in left
                if not any(
                    lots[number].first <= position <= lots[number].last and _same(view, lots[number].origin, position)
                    for position in logged
                )
            ]
    return left


def _logged(view: View, server: str, only: Sequence[int]) -> list[str]:
    """The changes of lots that the log of a server has: a lot may stand for a stretch of several."""
    lots = [view.model.lots[number] for number in only]
    ends = pc.field("position") >= min((lot.first for lot in lots), default="")
    ends &= pc.field("position") <= max((lot.last for lot in lots), default="")
    where = {"snapshot": view.context.topology.snapshot, "server": server, "suffix": view.suffix}
    rows = view.context.rows("changes", ["position"], (pc.field("kind") == "change") & ends, **where) if lots else ()
    found = sorted({position for batch in rows for position in batch.column("position").to_pylist()})
    return [
        position
        for position in found
        if any(lot.first <= position <= lot.last and _same(view, lot.origin, position) for lot in lots)
    ]


def _of_many(view: View) -> str:
    """What a file of one suffix is called behind the server's name, if there is more than one suffix."""
    several = len({one.suffix for one in view.context.topology.replicas}) > 1
    return f"-of-{as_file_name(view.suffix or '')}" if several else ""


def _same(view: View, origin: str, position: str) -> bool:
    return view.model.origin_of(view.context.topology.system.typed(position) or position) == origin
