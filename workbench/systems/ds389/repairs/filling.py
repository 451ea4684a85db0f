"""Give a server all data of another one, and those behind it what they would not get any more; clean a dead replica ID."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from workbench.diagnosis.behind_links import alone_without_log
from workbench.diagnosis.failing_links import FILLS_WHEN_STARTED
from workbench.diagnosis.former_origins import in_the_way
from workbench.diagnosis.only_holders import waits_for_it
from workbench.diagnosis.unseen_suppliers import SUPPLIER_NOT_COLLECTED, lately_heard
from workbench.model import counted, listed, time_passed
from workbench.repair.cut_off_suppliers import cut_off
from workbench.repair.obstacles import EMPTY, told_of
from workbench.repair.plan_types import ALL, DEAD, IF_BEHIND, ROLLED_BACK, Need, ProposedRepair, Step, View
from workbench.repair.unlike_entries import ENTRIES_DIFFER, of_its_own, on_it_alone
from workbench.rules.repair_result import achieved, left_behind
from workbench.systems.ds389.detectors.schema import know_first
from workbench.systems.ds389.native import (
    REFRESH,
    add,
    agreement_dn,
    dsconf,
    escaped,
    ldapmodify,
    ldif,
    modify,
    replica_dn,
    stamp,
)
from workbench.systems.ds389.repairs.differing import REPLICATION_WAS_OFF
from workbench.systems.ds389.repairs.evidence import (
    got_without_attributes,
)
from workbench.systems.ds389.repairs.links import (
    enabling,
    fills_when_switched_on,
    links_to,
    needless,
    not_now,
    off,
    switched_on_instead,
)
from workbench.systems.ds389.repairs.restarting import restarted_first
from workbench.systems.ds389.repairs.saving import SAVED_ENTRIES, saving
from workbench.systems.ds389.repairs.sources import feeds_alone, locked_login, not_its_own, not_judged, took_unrecorded
from workbench.systems.ds389.repairs.unlike_links import list_conflict, lost_by_lists
from workbench.systems.ds389.rules.cleaning import (
    CRASHES_ALONE,
    CRASHES_REACHED,
    behind_hubs,
    may_clean_itself,
    read_only_reached,
    survives_cleaning,
)
from workbench.systems.ds389.rules.own_attributes import MEMBER_OF
from workbench.systems.ds389.session_log.replicas_off import not_reached
from workbench.systems.ds389.versions import version_of

if TYPE_CHECKING:
    from workbench.topology.topology import Link

TASK_KEPT = "300"
"""Seconds for which a server keeps a task that has ended, well or badly: so long it refuses another one of that name."""
SOURCES = 3
"""Of many servers that could fill another one, so many are compared."""


class Initialise:
    """Give a server all data of one that feeds it."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For whatever a server lacks; from every server with an agreement to it, the most complete data first."""
        if (
            need.server is None
            or not (need.lacks or need.code == REPLICATION_WAS_OFF)
            or (need.code == ROLLED_BACK and not links_to(view, need.server))
        ):
            return
        holds = {one.name: len(one.holds) for one in view.model.servers.values()}
        # A server that keeps no log sends nothing, all of its data neither.
        logging = {one.name for one in view.model.servers.values() if one.log is not None}
        logging -= got_without_attributes(view, need)
        links = [link for link in links_to(view, need.server) if link.supplier in logging]
        ranked = sorted(links, key=lambda link: (-holds[link.supplier], off(view, link), link.supplier))
        first = _stranded_first(view, need)
        for link in ranked[:SOURCES]:
            draft = self._with_those_behind(view, self._draft(view, link, need.server), need.server)
            yield replace(draft, refused=draft.refused or first, unasked=draft.unasked or needless(view, need))

    def _with_those_behind(self, view: View, draft: ProposedRepair, server: str) -> ProposedRepair:
        """The same, and everybody filled in turn to whom no session could begin any more: the log of a filled server is new.

        Whom that concerns only if clients write meanwhile, is filled only if it stays behind.
        """
        draft = replace(draft, costs="; ".join(filter(None, (draft.costs, _cut_off(view, draft, server)))))
        if not any(link.supplier == server for link in view.model.links):
            return draft  # it feeds nobody
        drafts, filled, asked, left = [draft], {server}, {server}, set[str]()
        for _ in view.model.servers:
            effects = [effect for one in drafts for step in one.steps for effect in step.effects]
            result, after = achieved(view.model, effects)
            # Who got nothing any more before gets it with the data alone, too.
            cut = (result.cut | {lack.server for lack in result.unsaid}) - asked
            if cut and (switched := switched_on_instead(view, cut, effects, filled)):
                drafts.append(switched)
                continue
            behind = cut or left_behind(view.model, effects) - asked
            ways = [
                link
                for name in sorted(behind)
                for link in links_to(view, name)
                if link.supplier in filled and not link.blocked and (cut or not off(view, link))
            ]
            left |= behind - cut - {link.consumer for link in ways}
            if not ways:
                break
            first = min(ways, key=lambda link: (after.servers[link.consumer or ""].origin is None, link.consumer or ""))
            consumer = first.consumer or ""
            another = self._draft(replace(view, model=after), first, consumer)
            asked.add(consumer)
            if cut or not another.refused:
                drafts.append(another if cut else _if_behind(another))
                filled.add(consumer)
            else:
                left.add(consumer)
        if left := left - filled:
            may = f"if clients write meanwhile, {listed(sorted(left))} may get nothing more, and no step of this way mends that"
            drafts[0] = draft = replace(draft, costs="; ".join(filter(None, (draft.costs, may))))
        if len(drafts) == 1:
            return draft
        return replace(
            draft,
            says=", then ".join(one.says for one in drafts),
            steps=tuple(step for one in drafts for step in one.steps),
            load="; ".join(one.load for one in drafts),
            downtime="; ".join(one.downtime for one in drafts if one.downtime),
            costs="; ".join(one.costs for one in drafts if one.costs),
            unasked="; ".join(one.unasked for one in drafts if one.unasked),
            refused="; ".join(dict.fromkeys(one.refused for one in drafts if one.refused)),
        )

    @staticmethod
    def _unread_behind(view: View, server: str) -> list[str]:
        """The servers that this one feeds and of which nobody knows where they stand."""
        mine = [one for one in view.context.topology.links if (one.supplier, one.suffix) == (server, view.suffix)]
        mine = [one for one in mine if one.enabled is not False]
        return sorted({one.consumer for one in mine if one.consumer and one.consumer not in view.model.servers})

    def backwards(self, view: View, link: Link) -> ProposedRepair:
        """The same in the wrong direction, to show on the model what it would do."""
        draft = self._draft(view, link, link.consumer or "")
        wrong = "it is the wrong direction" if draft.unasked else ""
        return replace(draft, way=f"{draft.way}-backwards", refused=draft.refused or wrong, unasked="")

    def _draft(self, view: View, link: Link, server: str) -> ProposedRepair:
        suffix, source = view.suffix or "", link.supplier
        model = view.model
        # What others wait for and only its log has, a server without a changelog gives to nobody either.
        awaited = (server, view.suffix) in view.context.once(waits_for_it)
        others = [
            other for name, other in model.servers.items() if name != server and (other.log is not None or not awaited)
        ]
        only = sorted(
            number for number in model.servers[server].holds if not any(number in other.holds for other in others)
        )
        steps: list[Step] = []
        if only:
            steps += saving(view, server, only, awaited)
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
            for one in view.context.topology.links
            if (one.supplier, one.suffix) == (server, view.suffix) and one.blind and one.enabled is not False
        )
        then += f"; the consumer of {', '.join(blind)} is unknown, and may need it, too" if blind else ""
        schema = know_first(view.context, server, view.suffix)
        then += f"; before this step, {schema.removesuffix(', then ')}" if schema else ""
        makes = model.servers[server].origin is not None
        alone = f", and no client writes on {server} from now on until it is filled" if makes else ""
        then += (
            f"; what {server} makes meanwhile is thrown away, and where it reached another server before that, {server} can send "
            "that one nothing afterwards"
            if makes
            else ""
        )
        steps.append(
            Step(
                key=f"initialise-{server}-from-{source}",
                repair="initialise",
                server=server,
                on=source,
                suffix=view.suffix,
                says=f"{source} will send all of its data to {server}, over {link.name}; the data of {server} is thrown away",
                stands_on=f"{link.name} leads to {server} and is on, no initialisation runs, {source} has what {server} is to "
                f"keep, and since then {server} got nothing that no other server has{alone}",
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
                    "keeps": _kept(view, source, server),
                    "flows": off(view, link),  # what was switched on just now may be delivering already
                },
            )
        )
        failure = link.failure if link.blocked and link.failure and not link.failure.lets_fill else None
        if failure and server in told_of(EMPTY, view.findings, view.suffix) and not not_reached(failure):
            failure = None  # a server without data refuses changes, and takes data
        excluded = _excluded(view, link)
        if excluded & {MEMBER_OF}:
            steps.append(_fixing(view, server))
        costs = [f"what {link.name} leaves out ({', '.join(sorted(excluded))}) is lost on {server}"] if excluded else []
        if unread := self._unread_behind(view, server):
            they = "it stands" if len(unread) == 1 else "they stand"
            costs.append(f"{listed(unread)} may get nothing more from {server} afterwards: nothing tells where {they}")
        if own := of_its_own(view.context, view.suffix, server):
            costs.append(
                f"what {server} alone shows in {counted(own, 'entry', 'entries')} is thrown away ({ENTRIES_DIFFER})"
            )
        way = f"initialise-from-{source}"
        if why := view.context.unrecorded.get((server, view.suffix)):
            costs.append(f"whatever clients wrote on {server} then is thrown away ({why}: REPLICATION_WAS_OFF)")
        return ProposedRepair(
            way,
            f"initialise {server} from {source}",
            tuple(steps),
            load=f"all data of {source} is sent once",
            downtime=f"{server}, until it is filled",
            costs="; ".join(costs),
            unasked=_only_here(view, server, way, steps)
            or not_its_own(view, model.servers[source].source or source, server, way)
            or took_unrecorded(view, model.servers[source].source or source, server, way),
            refused=f"{link.name} fails ({failure.short}): what LINK_FAILING says on it comes first"
            if failure
            else fills_when_switched_on(view, link)
            or restarted_first(view, source, server)
            or locked_login(view, server, _login(view, link))
            or not_now(view, source, server)
            or list_conflict(view, server, link=link)
            or lost_by_lists(view, server)
            or feeds_alone(view, server)
            or not_judged(view, model.servers[source].source or source, server),
        )


def _only_here(view: View, server: str, way: str, steps: Sequence[Step]) -> str:
    """Why a server is filled only if a person asks for it whose data alone show changes that no log has; empty: it shows none."""
    asked = f"plan with --for {server} --way {way}"
    saved = next((step for step in steps if step.key.startswith(SAVED_ENTRIES)), None)
    count = alone_without_log(view.context, server, view.suffix)
    if saved and not count:
        count = sum(view.model.lots[number].changes for effect in saved.effects for number in effect["lots"])
    if count:
        show = f"the data of {server} alone {'shows' if count == 1 else 'show'} {counted(count)} that no log has"
        if saved:
            return f"{show}: to have the entries concerned written to a file first, {asked}"
        return f"{show}: save them first (PENDING_CHANGES), collect with `--entries`, then {asked}"
    if alone := on_it_alone(view.context, view.suffix, server):
        them = "it" if alone == 1 else "them"
        only = f"{counted(alone, 'entry is', 'entries are')} on {server} only"
        return f"{only}: save {them} first ({ENTRIES_DIFFER}), then {asked}"
    return ""


def _cut_off(view: View, draft: ProposedRepair, server: str) -> str:
    """Who brings a server nothing more once it is filled so, as a cost; empty: nobody."""
    effects = [effect for step in draft.steps for effect in step.effects]
    cut = cut_off(achieved(view.model, effects)[1], server)
    return (
        f"nothing that {listed(cut)} {'writes' if len(cut) == 1 else 'write'} afterwards comes to {server}"
        if cut
        else ""
    )


def _kept(view: View, source: str, server: str) -> dict[str, str]:
    """Origin -> the last change that a server has and keeps as it is filled: by then its source has to have it.

    Of an origin that the source cleaned no vector of it will ever show that.
    """
    model, show = view.model, view.context.topology.system.show
    both = model.servers[source].holds & model.servers[server].holds
    kept: dict[str, str] = {}
    for lot in (model.lots[number] for number in both if number in model.given):
        if lot.origin in model.servers[source].vector:
            kept[lot.origin] = max(lot.last, kept.get(lot.origin, ""))
    return {origin: show(position) for origin, position in sorted(kept.items())}


def _if_behind(draft: ProposedRepair) -> ProposedRepair:
    """The same for a server that is filled only if it does not get level by itself."""
    server = draft.steps[-1].server
    only = f"only if {server} stays behind, or anybody writes meanwhile: "
    steps = []
    for one in draft.steps:
        step = replace(one, details={**one.details, IF_BEHIND: True})
        if one.repair == "initialise":
            step = replace(
                step,
                says=f"only if {server} does not get level by itself, or anybody wrote since the plan was made: {one.says}",
                effects=(),
            )
        elif one.repair == "task":
            step = replace(step, says=f"{one.says}; if it was not filled, only what differs there is written")
        steps.append(step)
    return replace(
        draft,
        says=f"{draft.says} if it stays behind or anybody writes meanwhile",
        steps=tuple(steps),
        load=only + draft.load,
        downtime=only + draft.downtime,
        costs=draft.costs and only + draft.costs,
    )


def _excluded(view: View, link: Link) -> set[str]:
    """The attributes that an initialisation over the agreement leaves out: it may have a list of its own for that."""
    status = view.context.statuses().get((link.supplier, link.suffix, link.name), {})
    own = status.get("excluded_by_filling")
    return {name.lower() for name in ((status.get("excluded") if own is None else own) or "").split()}


def _login(view: View, link: Link) -> str:
    return view.context.statuses().get((link.supplier, link.suffix, link.name), {}).get("login") or ""


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

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a dead origin, once every server has its changes; only if asked for where its server may live."""
        if need.code not in (DEAD, SUPPLIER_NOT_COLLECTED) or need.origin is None:
            return
        draft = cleaning(view, need.origin, force=False)
        yield replace(draft, unasked=_may_live(view, need, draft.way))


def _stranded_first(view: View, need: Need) -> str:
    """Why a server is not filled yet: others hold alone what it waits for, and none has all of it; empty: nothing tells."""
    about = (one for one in view.about("REINIT_REQUIRED") if one.server == need.server and need.code == one.code)
    before = f"do not initialise {need.server} before that"
    steps = [fix for one in about for fix in one.fix if fix["caution"] == before]
    return "; ".join(f"REINIT_REQUIRED says to {fix['repair']} first: {fix['why']}" for fix in steps)


class CleanFormer:
    """Take a replica ID that a server had before out of the way of the sessions with a server that waits."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """Only if no server lacks a change of that replica ID, and the model's session begins without it."""
        about = view.context.once(in_the_way).get((need.server or "", view.suffix))
        for origin in about.origins if about else ():
            draft = cleaning(view, origin, force=False)
            # An initialisation of the server would leave the ID where it stays, too: that is no price of this way.
            yield replace(draft, load="; ".join(filter(None, (draft.load, draft.costs))), costs="")


def _may_live(view: View, need: Need, way: str) -> str:
    """Why a replica ID is cleaned only if a person asks for it by name; empty: nothing tells that its server may live."""
    ask = f"clean it only if that server is gone for good, then plan with --for {need.origin} --way {way}"
    if need.code == SUPPLIER_NOT_COLLECTED:
        return f"a server that was not collected makes changes as it: {ask}"
    for heard in lately_heard(view.context):
        if (heard.absent.suffix, heard.absent.origin) == (need.suffix, need.origin):
            came = f"reached {heard.server}" if heard.arrived else "was made"
            ago = time_passed(max(heard.read_at - heard.at, timedelta()))
            return f"its newest change {came} only {ago} before the servers were read: {ask}"
    return ""


_MAY_BE_LOST = "if a server still makes changes as it, these are lost; the task waits for servers that are down"


def cleaning(view: View, rid: str, force: bool) -> ProposedRepair:
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
    behind = behind_hubs(view.context.topology, view.suffix)
    naming = {one.server for one in view.context.topology.replicas if one.suffix == view.suffix and rid in one.vector}
    naming |= {*behind} if lacking else set()  # who lacks changes of it gets them, and its name with them
    here = [name for name in behind if name in naming and _cleans_itself(view, name)]
    reached = {
        name: survives_cleaning(version_of(view.context, name))
        for name in read_only_reached(view.context.topology, view.suffix)
    }
    unknown = [name for name, survives in reached.items() if survives is None]
    kept = [name for name in behind if name in naming and name not in here]
    step = Step(
        key=f"clean-{rid}",
        repair="clean",
        server=on,
        on=on,
        suffix=view.suffix,
        says=f"{on} has every server take replica ID {rid} out of its RUV and changelog",
        stands_on=f"all servers answer, none makes changes as {rid}, and none has one that the plan does not know; no server "
        f"uses replica ID {rid} any more, which you have to confirm: no file shows it",
        expects=f"no RUV names {rid} any more{f', but for {listed([*here, *kept])}' if here or kept else ''}",
        risk=f"{'servers that lack changes of it never get them' if force else _MAY_BE_LOST}"
        + (f"; {listed(unknown)} may crash, as no file tells the version: {CRASHES_REACHED}" if unknown else ""),
        cannot_undo="its changes leave every changelog",
        commands=(dsconf(on, *words),),
        sends=ldif(records),
        effects=({"do": "forget", "origin": rid},),
        details={"records": records, "task": dn, "origin": rid, "behind": behind, "kept": kept},
    )
    steps = (step, *(_cleaning_here(view, rid, name) for name in here))
    stays = f"hubs do not pass on that it was cleaned, and {CRASHES_ALONE}"
    keep, name_it = (f"{listed(kept)} {verb}{'s' * (len(kept) == 1)}" if kept else "" for verb in ("keep", "name"))
    costs = f"{keep} {rid} in the RUV until the next initialisation: {stays}" if kept else ""
    says = f"clean replica ID {rid}{', without waiting for anybody' if force else ''}"
    load = "one pass over every changelog"
    if not on:
        return ProposedRepair(
            "clean-by-force" if force else "clean", says, refused="no server that makes changes was collected"
        )
    if crash := [name for name, survives in reached.items() if survives is False]:
        links = sorted(
            link.name
            for name in crash
            for link in links_to(view, name)
            if link.supplier in servers and not off(view, link)
        )
        first = (
            f"{listed(crash)} would crash: {CRASHES_REACHED}; switch off {listed(links)} before, clean by hand, and switch "
            f"{'it' if len(links) == 1 else 'them'} on when the task has ended: {listed(crash)} keep{'s' * (len(crash) == 1)} "
            f"{rid} until the next initialisation"
        )
        return ProposedRepair("clean-by-force" if force else "clean", says, refused=first)
    if lasting := sorted({one.link for one in view.about(FILLS_WHEN_STARTED) if one.link}):
        why = f"cleaning starts agreements anew, and {listed(lasting)} may fill its consumer then: what {FILLS_WHEN_STARTED} says"
        return ProposedRepair("clean-by-force" if force else "clean", says, refused=f"{why} comes first")
    if kept and naming <= {*kept}:
        way = "clean-by-force" if force else "clean"
        return ProposedRepair(way, says, refused=f"only {name_it} it, which only an initialisation ends: {stays}")
    if force:
        refused = (
            f"{counted(lacking)} of it would be lost on servers that lack them"
            if lacking
            else "the clean without force is enough"
        )
        return ProposedRepair("clean-by-force", says, steps, load=load, costs=costs, refused=refused)
    return ProposedRepair("clean", says, steps, load=load, costs=costs)


def _cleans_itself(view: View, server: str) -> bool:
    replica = view.context.replica(server, view.suffix)
    return may_clean_itself(bool(replica and replica.keeps_log), version_of(view.context, server))


def _cleaning_here(view: View, rid: str, server: str) -> Step:
    """A server that no supplier reaches itself has to be cleaned by itself: hubs do not pass on that an ID was cleaned."""
    records = [modify(replica_dn(view.suffix or ""), ("replace", "nsds5task", [f"CLEANRUV{rid}"]))]
    return Step(
        key=f"clean-{rid}-on-{server}",
        repair="clean-here",
        server=server,
        on=server,
        suffix=view.suffix,
        says=f"{server} takes replica ID {rid} out of its RUV: no link that is known leads there from a supplier, and hubs do "
        "not pass on that an ID was cleaned",
        stands_on=f"{server} has no change of {rid} that the plan does not know",
        expects=f"the RUV of {server} does not name {rid} any more",
        risk=f"if a server still makes changes as {rid}, {server} learns of it again from the next one",
        cannot_undo=f"the RUV of {server} tells no more up to where it had the changes of {rid}",
        commands=(ldapmodify(server),),
        sends=ldif(records),
        details={"records": records, "origin": rid},
    )
