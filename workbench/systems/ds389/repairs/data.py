"""Repairs that put back what no session will bring: write again, delete and add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.diagnosis.dropped_changes import CLEANED_ORIGIN_BACK
from workbench.model import counted
from workbench.repair.plan_types import HIDDEN, MISSED, READ_THERE, Need, ProposedRepair, Step, View
from workbench.rules.contents import name_of
from workbench.rules.repair_model import MissingAt
from workbench.systems.ds389.native import (
    add,
    delete,
    ldapmodify,
    ldif,
    modify,
)
from workbench.systems.ds389.repairs.evidence import (
    Missed,
    Present,
    children_on,
    got_without_attributes,
    missed_by_entry,
    naming,
    present_on,
    renamed_alike,
)
from workbench.systems.ds389.repairs.links import links_to
from workbench.systems.ds389.repairs.unlike_links import excluded_everywhere, list_conflict
from workbench.systems.ds389.rules.own_attributes import BY_SERVER, MEMBER_OF

GROUPS_SHOWN = 5
SKIPPED, NO_SUCH_OBJECT = "APPLY_SKIPPED", 32


def _right_servers(view: View, need: Need) -> list[str]:
    """Suppliers that hold all that the server lacks, and can write it again; those that feed it first.

    Not one that got a part of it without an attribute: what is written once more there would take that from all others.
    """
    lots = {lack.lot for lack in need.lacks}
    feeding = {link.supplier for link in links_to(view, need.server)}
    servers = view.model.servers.values()
    able = [one.name for one in servers if one.origin and one.up and lots <= one.holds and one.name != need.server]
    able = [name for name in able if name not in got_without_attributes(view, need)]
    return sorted(able, key=lambda name: (name not in feeding, name))


def writers(view: View, need: Need) -> list[str]:
    """Of the right servers those that lack nothing of the entries in question.

    What is written again is newer than every change that the writer has yet to get, and would undo it on all servers. Of a
    stretch of changes the model does not tell which entries it is about.
    """
    now = view.model.copy()
    now.settle()
    anything = set[int]().union(*(one.holds for one in now.servers.values()))
    # What a server writes as an origin that others drop, reaches nobody.
    dropped = {found.origin for found in view.about(CLEANED_ORIGIN_BACK)}
    return [
        name
        for name in _right_servers(view, need)
        if _of_other_entries(view, need, anything - now.servers[name].holds) and now.servers[name].origin not in dropped
    ]


def _of_other_entries(view: View, need: Need, lots: set[int]) -> bool:
    """True of changes that have nothing to do with what a need is about: logs or entries tell of each which entry it changed.

    What an earlier step wrote is not what was collected: of such an entry nothing is written by who lacks anything.
    """
    if not lots:
        return True
    model = view.model
    if any(number not in model.given or model.lots[number].changes != 1 for number in lots):
        return False
    mine, others = (missed_by_entry(view, some) for some in ((lack.lot for lack in need.lacks), lots))
    if not mine or not others or mine.keys() & others.keys():
        return False
    written = {lot.entry for lot in model.lots[len(model.given) :]}
    return written.isdisjoint(one.dn.lower() for one in mine.values())


def healed(view: View, need: Need) -> frozenset[MissingAt]:
    """What a server misses by the record, and has by the state of its entries: the values were written again since.

    Both exports are needed, that of the server and that of one which has the changes.
    """
    if need.server is None:
        return frozenset()
    found = missed_by_entry(view, (lack.lot for lack in need.lacks))
    right = next((name for name in _right_servers(view, need) if present_on(view, name, ()) is not None), None)
    if not found or right is None or (there := present_on(view, need.server, found)) is None:
        return frozenset()
    wanted = present_on(view, right, found) or {}
    lots: set[int] = set()
    for key, one in found.items():
        mine, theirs = there.get(key), wanted.get(key)
        if mine is None and theirs is None:
            lots |= set(one.numbers)  # gone on both
        elif mine and theirs and mine.dn.lower() == theirs.dn.lower():
            names = {*mine.values, *theirs.values} if one.operations != {"modify"} else one.attributes
            # Without an attribute that a client writes, nothing tells what the change did.
            compared = [name for name in names if name.lower() not in BY_SERVER]
            if compared and mine.like(theirs, compared):
                lots |= set(one.numbers)
    return frozenset(lack for lack in need.lacks if lack.lot in lots)


class Rewrite:
    """Replace the attributes that a server missed by the values they have now, on a supplier that has them."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing modifications of entries that the server has."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        found = missed_by_entry(view, (lack.lot for lack in need.lacks))
        found = renamed_alike(view, need.server, found) if found else None
        if not found or any(one.operations != {"modify"} for one in found.values()):
            return
        able = writers(view, need)
        for server in able:
            present = present_on(view, server, found)
            if present is None:
                continue
            steps = rewriting(view, server, need.server, found.values(), present)
            if steps is not None:
                says = f"write the present values of {counted(len(found), 'entry', 'entries')} once more on {server}"
                load = f"{counted(len(found))} on every server"
                names = {name for one in found.values() for name in one.attributes}
                yield ProposedRepair(
                    "rewrite",
                    says,
                    steps,
                    load=load,
                    refused=list_conflict(view, need.server, names=names),
                    unasked=_answered_no_such_object(view, need.server, {name_of(one.dn) for one in found.values()}),
                )
                return
        if not any(present_on(view, server, found) for server in able):
            yield ProposedRepair(
                "rewrite",
                f"write the present values of {counted(len(found), 'entry', 'entries')} once more",
                refused="the present values are not known: collect the entries as well (`workbench collect --entries`)"
                if able or not _exported(view)
                else "no server that clients write to has all changes and a replica ID whose changes all others take: what it "
                "wrote would undo changes that it lacks, or reach nobody",
            )


def _answered_no_such_object(view: View, server: str, names: set[str]) -> str:
    """Why a server may refuse what is written of these entries, though its export shows them; empty: nothing tells that.

    It looks an entry up by its unique ID, and an index can lack that.
    """
    codes = {row.get("code") for one in view.about(SKIPPED) if one.server == server for row in one.evidence}
    refused = {
        row["target"]
        for row in view.context.verdicts.missing
        if (row["server"], row["suffix"], row["cause"]) == (server, view.suffix, SKIPPED) and row["target"]
    }
    found = sorted(target for target in refused if name_of(target) in names) if NO_SUCH_OBJECT in codes else []
    shown = ", ".join(found[:GROUPS_SHOWN])
    return (
        f"{server} answered changes of {shown} with 32 (no such object), and may refuse this one, too" if found else ""
    )


def _exported(view: View) -> bool:
    """True if the entries of a server were collected."""
    return any(present_on(view, name, ()) is not None for name in view.model.servers)


class Recreate:
    """Delete an entry on a supplier, wait until no server has it, and add it again with its present values."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing additions and renamings; entries of which only modifications are missing are rewritten."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        found = missed_by_entry(view, (lack.lot for lack in need.lacks))
        if not found or not any(one.operations & {"add", "modrdn"} for one in found.values()):
            return
        anew = {key: one for key, one in found.items() if one.operations & {"add", "modrdn"}}
        again = [one for key, one in found.items() if key not in anew]
        if any("delete" in one.operations for one in found.values()):
            return  # the entry is gone on the suppliers: only an initialisation takes it from the server
        for server in writers(view, need):
            present = present_on(view, server, found)
            if present is None or any(key not in present or children_on(view, server, present[key].dn) for key in anew):
                continue
            rewritten = rewriting(view, server, need.server, again, present)
            if rewritten is None:
                continue
            steps = [
                step for key, one in anew.items() for step in _recreating(view, server, need.server, one, present[key])
            ]
            yield ProposedRepair(
                "recreate",
                f"delete {counted(len(anew), 'entry', 'entries')} on {server}, wait until no server has {_them(len(anew))}, "
                f"and add {_them(len(anew))} again",
                (*steps, *rewritten),
                load=f"{counted(2 * len(anew) + len(again))} on every server",
                costs=f"no server has the {'entry' if len(anew) == 1 else 'entry in question'} between the two changes; on "
                "every server new unique IDs; the operational attributes and the memberships of these entries are lost",
                refused=_not_everywhere(view, server) or list_conflict(view, need.server),
            )
            return


def _not_everywhere(view: View, server: str) -> str:
    """Why a deletion on this server might not reach every server; empty if links that run bring it to all that are known.

    A server that keeps the deleted entry and gets the new one keeps both, as a conflict, for good.
    """
    shown = view.context.topology
    links = [link for link in shown.links if link.suffix == view.suffix]
    risk = "a server that keeps the old entry and gets the new one keeps both as a conflict"
    if blind := sorted({link.name for link in links if link.enabled is not False and link.blind}):
        return f"the consumer of {', '.join(blind)} is unknown, so nobody can see whether the deletion arrived there: {risk}"
    named = {name for link in links for name in (link.supplier, link.consumer) if name} | set(view.model.servers)
    asked = {one.name for one in view.model.servers.values() if one.up}
    if silent := sorted(named - asked):
        return f"{', '.join(silent)} cannot be asked whether the deletion arrived there: {risk}"
    runs = {(link.supplier, link.consumer) for link in links if link.runs}
    reached, edge = {server}, [server]
    while edge:
        at = edge.pop()
        new = {to for by, to in runs if by == at and to is not None} - reached
        reached |= new
        edge += new
    if apart := sorted(asked - reached):
        return f"no link that runs brings the deletion to {', '.join(apart)}: {risk}"
    return ""


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def rewriting(
    view: View, server: str, to: str, found: Iterable[Missed], present: dict[str, Present]
) -> tuple[Step, ...] | None:
    """A step for each entry; None if one of them is not there, or if the server itself writes all that is to be written."""
    steps: list[Step] = []
    left_out = excluded_everywhere(view, to)
    for one in found:
        names = {low: name for low, name in one.attributes.items() if low not in BY_SERVER | left_out}
        there = present.get(one.entry)
        if there is None or not names:
            return None
        values = {low: next((there.values[name] for name in there.values if name.lower() == low), []) for low in names}
        hidden = sorted(names[low] for low in names if low in {name.lower() for name in there.hidden})
        wanted = {names[low]: some for low, some in values.items() if names[low] not in hidden}
        records = [modify(there.dn, *(("replace", name, some) for name, some in wanted.items()))]
        # Not to be sent as it stands: what is uncommented is what a person has put in.
        head = "" if wanted else f"# {'# '.join(ldif([modify(there.dn)]).splitlines(keepends=True))}"
        notes = head + "".join(f"# replace: {name}\n# {name}: {READ_THERE}\n# -\n" for name in hidden)
        steps.append(
            Step(
                key=f"rewrite-{len(steps) + 1}-on-{server}",
                repair="rewrite",
                server=server,
                on=server,
                suffix=view.suffix,
                says=f"{server} writes {', '.join(sorted(names.values()))} of {there.dn} once more, so that {to} gets it",
                stands_on=f"{_the_entry(one.entry, there)}, and no server has a later change of these attributes",
                expects=f"{to} has the same values of them as {server}",
                risk="a later change of the entry made elsewhere meanwhile is overwritten: it is compared before it is written",
                cannot_undo="the values stay as they are on every server that had them; only their change number is new",
                commands=(ldapmodify(server),),
                sends=(ldif(records) if wanted else "") + notes,
                changes=1,
                effects=(_written(server, one, there, names),),
                details={
                    "entry": one.entry,
                    "dn": there.dn,
                    "values": wanted,
                    "hidden": hidden,
                    "level": [server, to],
                    "compared": True,
                },
            )
        )
    return tuple(steps)


def _written(server: str, one: Missed, there: Present, names: Iterable[str]) -> dict[str, Any]:
    """The effect of writing attributes of an entry once more, or all of it."""
    again = [[one.entry, low] for low in sorted(names)]
    return {"do": "rewrite", "server": server, "lots": sorted(one.numbers), "entry": there.dn.lower(), "again": again}


def _the_entry(unique: str, there: Present) -> str:
    return f"{there.dn} is the entry {unique} with the values shown"


def _recreating(view: View, server: str, to: str, one: Missed, there: Present) -> tuple[Step, Step]:
    """Two steps: the second one is taken only when every server shows that the first one arrived.

    Without that wait a healthy server is damaged: the server that lacks the entry refuses the deletion, passes the addition on,
    and one that gets it from there first never takes the deletion, for its vector has passed it.
    """
    values = {name: some for name, some in there.values.items() if name.lower() not in BY_SERVER}
    values = {name: some for name, some in values.items() if name.lower() != MEMBER_OF}
    hidden = sorted(name for name in there.hidden if name.lower() not in BY_SERVER | {MEMBER_OF})
    notes = "".join(f"# {name}: {READ_THERE}\n" for name in hidden)
    record = add(there.dn, {name: some for name, some in values.items() if name not in hidden})
    others = [name for name in view.model.servers if name != server]
    everyone = [server, *sorted(others, key=lambda name: (name != to, name))]
    named = naming(view, server, there.dn)
    shown = f"{'; '.join(named[:GROUPS_SHOWN])} ({len(named):,} in all)"
    groups = f"referential integrity takes it out of {shown}" if named else "no entry names it"
    kept = f"; read {', '.join(hidden)} of it first, for the next step" if hidden else ""
    details = {
        "entry": one.entry,
        "dn": there.dn,
        "values": record["values"],
        "hidden": hidden,
        "level": everyone,
        "compared": True,
    }
    deleting = Step(
        key=f"delete-on-{server}",
        repair="delete",
        server=server,
        on=server,
        suffix=view.suffix,
        says=f"{server} deletes {there.dn}, which the next step adds again, so that {to} gets it{kept}",
        stands_on=f"{_the_entry(one.entry, there)}, nothing is below it, no server has a later change of it, no server has a "
        f"conflict entry of that name, and every server has got what {server} wrote before",
        expects=f"no server has {there.dn} any more, and every server claims the deletion: do not add the entry before "
        f"that is so on {', '.join(everyone)}",
        risk=f"the entry is absent on every server until the next step has added it again; what a client writes to it on "
        f"another server before the deletion arrives there is lost; {groups}",
        cannot_undo="the next step adds the entry again; if the plan is given up before that, add it by hand: its values, "
        "secrets too, are in its tombstone until the purge delay is over",
        commands=(ldapmodify(server),),
        sends=ldif([delete(there.dn)]),
        changes=2,
        effects=({"do": "remove", "server": server, "entry": there.dn.lower(), "everywhere": True},),
        details=details,
    )
    adding = Step(
        key=f"add-on-{server}",
        repair="add",
        server=server,
        on=server,
        suffix=view.suffix,
        says=f"{server} adds {there.dn} again with the values that it had",
        stands_on=f"no server has {there.dn}, and every server claims its deletion",
        expects=f"every server has {there.dn} with the same values as {server}, and no conflict entry of that name",
        risk="the entry gets a new unique ID and loses its operational attributes, on every server",
        cannot_undo="the old unique ID does not come back; the values do, they are those that were there",
        commands=(ldapmodify(server),),
        sends=ldif([record]) + notes,
        effects=({**_written(server, one, there, [""]), "creates": True},),
        details={**details, "finishes": True},
    )
    return deleting, adding
