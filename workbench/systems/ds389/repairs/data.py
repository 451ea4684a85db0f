"""Repairs that put back what no session will bring: write again, delete and add, initialise, clean a dead replica ID."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.boundary import as_file_name
from workbench.diagnosing.repair_sources import MENDED_BY_FILLING
from workbench.model import counted
from workbench.repairs.obstacles import EMPTY, told_of
from workbench.repairs.plans import ALL, DEAD, HIDDEN, MISSED, READ_THERE, ROLLED_BACK, Draft, Need, Step, View
from workbench.rules.mending import Lack, achieved, left_behind
from workbench.systems.ds389.logged.replicas_off import not_reached
from workbench.systems.ds389.native import (
    REFRESH,
    add,
    agreement_dn,
    delete,
    dsconf,
    escaped,
    ldapmodify,
    ldif,
    modify,
    stamp,
)
from workbench.systems.ds389.repairs.evidence import (
    Missed,
    Present,
    children_on,
    missed_by_entry,
    naming,
    present_on,
    renamed_alike,
    stranded_ldif,
)
from workbench.systems.ds389.repairs.links import enabling, links_to, not_now, off
from workbench.systems.ds389.repairs.sources import feeds_alone, locked_login, not_judged
from workbench.systems.ds389.repairs.unlike_links import excluded_everywhere, list_conflict
from workbench.systems.ds389.rules.own_attributes import BY_SERVER, MEMBER_OF

if TYPE_CHECKING:
    from workbench.fleet.topology import Link

TASK_KEPT = "300"
"""Seconds for which a server keeps a task that has ended, well or badly: so long it refuses another one of that name."""
GROUPS_SHOWN = 5
SOURCES = 3
"""Of many servers that could fill another one, so many are compared."""


def _right_servers(view: View, need: Need) -> list[str]:
    """Suppliers that hold all that the server lacks, and can write it again; those that feed it first."""
    lots = {lack.lot for lack in need.lacks}
    feeding = {link.supplier for link in links_to(view, need.server)}
    servers = view.model.servers.values()
    able = [one.name for one in servers if one.origin and one.up and lots <= one.holds and one.name != need.server]
    return sorted(able, key=lambda name: (name not in feeding, name))


def writers(view: View, need: Need) -> list[str]:
    """Of the right servers those that lack nothing at all.

    What is written again is newer than every change that the writer has yet to get, and would undo it on all servers. The
    model does not tell which entries such changes are about.
    """
    now = view.model.copy()
    now.settle()
    anything = set[int]().union(*(one.holds for one in now.servers.values()))
    return [name for name in _right_servers(view, need) if anything <= now.servers[name].holds]


def healed(view: View, need: Need) -> frozenset[Lack]:
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
            if mine.like(theirs, [name for name in names if name.lower() not in BY_SERVER]):
                lots |= set(one.numbers)
    return frozenset(lack for lack in need.lacks if lack.lot in lots)


class Rewrite:
    """Replace the attributes that a server missed by the values they have now, on a supplier that has them."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For missing modifications of entries that the server has."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        found = missed_by_entry(view, (lack.lot for lack in need.lacks))
        found = renamed_alike(view, need.server, found) if found else None
        if not found or any(one.operations != {"modify"} for one in found.values()):
            return
        for server in writers(view, need):
            present = present_on(view, server, found)
            if present is None:
                continue
            steps = rewriting(view, server, need.server, found.values(), present)
            if steps is not None:
                says = f"write the present values of {counted(len(found), 'entry', 'entries')} once more on {server}"
                load = f"{counted(len(found))} on every server"
                names = {name for one in found.values() for name in one.attributes}
                yield Draft("rewrite", says, steps, load=load, refused=list_conflict(view, need.server, names=names))
                return
        if not any(present_on(view, server, found) for server in writers(view, need)):
            yield Draft(
                "rewrite",
                f"write the present values of {counted(len(found), 'entry', 'entries')} once more",
                refused="the present values are not known: collect the entries as well (`workbench collect --entries`)",
            )


class Recreate:
    """Delete an entry on a supplier, wait until no server has it, and add it again with its present values."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
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
            yield Draft(
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
    shown = view.situation.topology
    links = [link for link in shown.links if link.suffix == view.suffix]
    risk = "a server that keeps the old entry and gets the new one keeps both as a conflict"
    if blind := sorted({link.name for link in links if link.enabled is not False and link.consumer is None}):
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


class Initialise:
    """Give a server all data of one that feeds it."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For whatever a server lacks; from every server with an agreement to it, the most complete data first."""
        if need.server is None or not need.lacks or (need.code == ROLLED_BACK and not links_to(view, need.server)):
            return
        holds = {one.name: len(one.holds) for one in view.model.servers.values()}
        links = [link for link in links_to(view, need.server) if link.supplier in holds]
        ranked = sorted(links, key=lambda link: (-holds[link.supplier], off(view, link), link.supplier))
        for link in ranked[:SOURCES]:
            yield self._with_those_behind(view, self._draft(view, link, need.server), need.server)

    def _with_those_behind(self, view: View, draft: Draft, server: str) -> Draft:
        """The same, and everybody filled in turn to whom no session could begin any more: the log of a filled server is new.

        Whom that concerns only if clients write meanwhile, is filled only if it stays behind.
        """
        if not any(link.supplier == server for link in view.model.links):
            return draft  # it feeds nobody
        drafts, filled = [draft], {server}
        for _ in view.model.servers:
            effects = [effect for one in drafts for step in one.steps for effect in step.effects]
            result, after = achieved(view.model, effects)
            ways = [
                link
                for name in sorted((result.cut or left_behind(view.model, effects)) - filled)
                for link in links_to(view, name)
                if link.supplier in filled and not link.blocked
            ]
            if not ways:
                break
            first = min(ways, key=lambda link: (after.servers[link.consumer or ""].origin is None, link.consumer or ""))
            behind = self._draft(replace(view, model=after), first, first.consumer or "")
            drafts.append(behind if result.cut else _if_behind(behind))
            filled.add(first.consumer or "")
        if len(drafts) == 1:
            return draft
        return replace(
            draft,
            says=", then ".join(one.says for one in drafts),
            steps=tuple(step for one in drafts for step in one.steps),
            load="; ".join(one.load for one in drafts),
            downtime="; ".join(one.downtime for one in drafts),
            costs="; ".join(one.costs for one in drafts if one.costs),
            refused="; ".join(dict.fromkeys(one.refused for one in drafts if one.refused)),
        )

    def backwards(self, view: View, link: Link) -> Draft:
        """The same in the wrong direction, to show on the model what it would do."""
        draft = self._draft(view, link, link.consumer or "")
        return replace(draft, way=f"{draft.way}-backwards")

    def _draft(self, view: View, link: Link, server: str) -> Draft:
        suffix, source = view.suffix or "", link.supplier
        model = view.model
        only = sorted(
            number
            for number in model.servers[server].holds
            if not any(number in other.holds for name, other in model.servers.items() if name != server)
        )
        steps: list[Step] = []
        if only:
            steps += _saving(view, server, only)
        if off(view, link):
            steps.append(enabling(view, link, False))
        # To add, not to replace: while one runs the value is there, and a second request is refused instead of queued.
        records = [modify(agreement_dn(suffix, link.name), ("add", REFRESH, ["start"]))]
        feeds = sorted(
            one.consumer for one in model.links if one.supplier == server and model.servers[one.consumer].origin is None
        )
        then = f"; {', '.join(feeds)} behind it may need the same afterwards" if feeds else ""
        blind = sorted(
            one.name
            for one in view.situation.topology.links
            if (one.supplier, one.suffix, one.consumer) == (server, view.suffix, None) and one.enabled is not False
        )
        then += f"; the consumer of {', '.join(blind)} is unknown, and may need it, too" if blind else ""
        steps.append(
            Step(
                key=f"initialise-{server}-from-{source}",
                repair="initialise",
                server=server,
                on=source,
                suffix=view.suffix,
                says=f"{source} will send all of its data to {server}, over {link.name}; the data of {server} is thrown away",
                stands_on=f"{link.name} leads to {server} and is on, no initialisation runs, and {server} got nothing since "
                "that nobody else has",
                expects=f"{server} holds what {source} holds, and claims the same",
                risk=f"{server} gives no answers while it is filled; conflict entries come along, what only it holds goes{then}",
                cannot_undo=f"the data of {server} is replaced: back it up first if you may want it again",
                commands=(
                    dsconf(source, "repl-agmt", "init", "--suffix", suffix, named=link.name),
                    dsconf(source, "repl-agmt", "init-status", "--suffix", suffix, named=link.name),
                ),
                sends=ldif(records),
                changes=ALL,
                effects=({"do": "initialise", "source": source, "server": server},),
                details={
                    "records": records,
                    "agreement": agreement_dn(suffix, link.name),
                    "leads": link.address,
                    "level": [source, server],
                    "compared": True,
                    "flows": off(view, link),  # what was switched on just now may be delivering already
                },
            )
        )
        failure = link.failure if link.blocked and link.blocked not in MENDED_BY_FILLING else None
        if failure and server in told_of(EMPTY, view.findings, view.suffix) and not not_reached(failure):
            failure = None  # a server without data refuses changes, and takes data
        excluded = _excluded(view, link)
        if excluded & {MEMBER_OF}:
            steps.append(_fixing(view, server))
        costs = f"what {link.name} leaves out ({', '.join(sorted(excluded))}) is lost on {server}" if excluded else ""
        return Draft(
            f"initialise-from-{source}",
            f"initialise {server} from {source}",
            tuple(steps),
            load=f"all data of {source} is sent once",
            downtime=f"{server}, until it is filled",
            costs=costs,
            refused=f"{link.name} fails ({failure.short}): what LINK_FAILING says on it comes first"
            if failure
            else locked_login(view, server, _login(view, link))
            or not_now(view, source, server)
            or list_conflict(view, server, link=link)
            or feeds_alone(view, server)
            or not_judged(view, model.servers[source].source or source, server),
        )


def _if_behind(draft: Draft) -> Draft:
    """The same for a server that is filled only if it does not get level by itself."""
    steps = [
        replace(
            step,
            says=f"only if {step.server} does not get level by itself: {step.says}",
            details={**step.details, "if_behind": True},
        )
        if step.repair == "initialise"
        else step
        for step in draft.steps
    ]
    only = f"only if {steps[-1].server} stays behind: "
    return replace(
        draft,
        says=f"{draft.says} if it stays behind",
        steps=tuple(steps),
        load=only + draft.load,
        downtime=only + draft.downtime,
    )


def _saving(view: View, server: str, only: Sequence[int]) -> list[Step]:
    """Write what only this server holds to a file, if its log tells what it is."""
    model = view.model
    # A stretch stands for several changes: which they are, the list of stranded ones tells.
    rows = [row for row in view.situation.verdicts.stranded if (row["server"], row["suffix"]) == (server, view.suffix)]
    named = [row["position"] for row in rows]
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
    if not text or not told:
        return []
    count = sum(model.lots[number].changes for number in told)
    lacks = f" Not in it: {'; '.join(without)}." if without else ""
    return [
        Step(
            key=f"save-{server}",
            repair="save",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{counted(count)} that only {server} holds are written to a file, for whoever decides about them.{lacks}",
            stands_on="no file of that name is there",
            expects="the file is there: once all servers are alike, send what of it is still right to a supplier (ldapmodify -f)",
            risk="none: nothing is written to a server",
            undo="delete the file",
            sends=text,
            effects=({"do": "save", "lots": sorted(told)},),
            details={"file": f"stranded-on-{as_file_name(server)}{_of_many(view)}.ldif"},
        )
    ]


def _of_many(view: View) -> str:
    """What a file of one suffix is called behind the server's name, if there is more than one suffix."""
    several = len({one.suffix for one in view.situation.topology.replicas}) > 1
    return f"-of-{as_file_name(view.suffix or '')}" if several else ""


def _same(view: View, origin: str, position: str) -> bool:
    return view.model.origin_of(view.situation.topology.system.typed(position) or position) == origin


def _excluded(view: View, link: Link) -> set[str]:
    """The attributes that an initialisation over the agreement leaves out: it may have a list of its own for that."""
    status = view.situation.statuses().get((link.supplier, link.suffix, link.name), {})
    own = status.get("excluded_by_filling")
    return {name.lower() for name in ((status.get("excluded") if own is None else own) or "").split()}


def _login(view: View, link: Link) -> str:
    return view.situation.statuses().get((link.supplier, link.suffix, link.name), {}).get("login") or ""


def _fixing(view: View, server: str) -> Step:
    suffix = view.suffix or ""
    name = _task(view, "fixup")
    dn = f"cn={escaped(name)},cn=memberof task,cn=tasks,cn=config"
    values = {"objectClass": ["top", "extensibleObject"], "cn": [name]}
    values |= {"basedn": [suffix], "filter": ["(objectClass=*)"], "ttl": [TASK_KEPT]}
    records = [add(dn, values)]
    return Step(
        key=f"memberof-{server}",
        repair="task",
        server=server,
        on=server,
        suffix=view.suffix,
        says=f"{server} computes memberOf of all entries anew: the initialisation left it out",
        stands_on=f"the MemberOf plug-in of {server} is on",
        expects="the task ends with 0",
        risk="it reads every group, and writes every member that differs",
        cannot_undo="it restores what the groups say; nothing is lost by it",
        commands=(dsconf(server, "plugin", "memberof", "fixup", named=suffix),),
        sends=ldif(records),
        details={"records": records, "task": dn},
    )


def _task(view: View, what: str) -> str:
    """The name of a task. That of another suffix, or of an earlier plan, may still be there: it must not look like this one."""
    return f"workbench {what} of {view.suffix} {stamp(view.made_at)}"


class Clean:
    """Take a replica ID that no server has any more out of every RUV and changelog."""

    def propose(self, view: View, need: Need) -> Iterator[Draft]:
        """For a dead origin, once every server has its changes."""
        if need.code == DEAD and need.origin is not None:
            yield cleaning(view, need.origin, force=False)


def cleaning(view: View, rid: str, force: bool) -> Draft:
    """The task that cleans a replica ID, on the server that feeds most others."""
    suffix = view.suffix or ""
    servers = [one.name for one in view.model.servers.values() if one.origin is not None and one.up]
    on = max(sorted(servers), key=lambda name: sum(link.supplier == name for link in view.model.links), default="")
    name = _task(view, f"clean {rid}")
    dn = f"cn={escaped(name)},cn=cleanallruv,cn=tasks,cn=config"
    values = {"objectClass": ["top", "extensibleObject"], "cn": [name], "replica-base-dn": [suffix]}
    values |= {"replica-id": [rid], "replica-force-cleaning": ["yes" if force else "no"], "ttl": [TASK_KEPT]}
    records = [add(dn, values)]
    words = (
        "repl-tasks",
        "cleanallruv",
        "--suffix",
        suffix,
        "--replica-id",
        rid,
        *(("--force-cleaning",) if force else ()),
    )
    lacking = sum(
        lot.changes
        for number, lot in enumerate(view.model.lots)
        if lot.origin == rid and any(number not in server.holds for server in view.model.servers.values())
    )
    step = Step(
        key=f"clean-{rid}",
        repair="clean",
        server=on,
        on=on,
        suffix=view.suffix,
        says=f"{on} has every server take replica ID {rid} out of its RUV and changelog",
        stands_on=f"all servers answer, none makes changes as {rid}, and none has one that the plan does not know",
        expects=f"no RUV names {rid} any more",
        risk="if a server still makes changes as it, these are lost; the task waits for servers that are down"
        if not force
        else "servers that lack changes of it never get them",
        cannot_undo="its changes leave every changelog",
        commands=(dsconf(on, *words),),
        sends=ldif(records),
        effects=({"do": "forget", "origin": rid},),
        details={"records": records, "task": dn, "origin": rid},
    )
    says = f"clean replica ID {rid}{', without waiting for anybody' if force else ''}"
    load = "one pass over every changelog"
    if not on:
        return Draft("clean-by-force" if force else "clean", says, refused="no server that makes changes was collected")
    if force:
        refused = (
            f"{counted(lacking)} of it would be lost on servers that lack them"
            if lacking
            else "the clean without force is enough"
        )
        return Draft("clean-by-force", says, (step,), load=load, refused=refused)
    return Draft("clean", says, (step,), load=load)
