"""Repairs that let changes flow which a supplier still has: nothing is written but settings and one harmless change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from workbench.diagnosis.failing_links import FILLS_WHEN_STARTED
from workbench.diagnosis.left_in_logs import claimed_alone, left_in_log
from workbench.diagnosis.lost_own_element import lost_elements
from workbench.diagnosis.misnamed_links import meant_for
from workbench.diagnosis.relayed_changes import (
    DATABASE_FAILING,
    STOPPED_BECAUSE,
    STOPPED_MEANWHILE,
    WITHOUT_DATA,
)
from workbench.model import listed
from workbench.repair.obstacles import EMPTY, OFF, UNLOGGED, refusing_all, stopped_links, stopped_servers, told_of
from workbench.repair.plan_types import ASKED_FOR, DISABLED, PENDING, ROLLED_BACK, Need, ProposedRepair, Step, View
from workbench.rules.repair_model import LogModel
from workbench.rules.repair_result import achieved
from workbench.rules.send_session import ANCHOR_NOT_FOUND, SEND, replay
from workbench.rules.vectors import last, newer
from workbench.systems.ds389.native import (
    CREDENTIALS,
    ENABLED,
    STAMP,
    add,
    agreement_dn,
    delete,
    dsconf,
    keep_alive_dn,
    ldapmodify,
    ldif,
    modify,
    stamp,
)
from workbench.systems.ds389.repairs.sources import locked_login
from workbench.systems.ds389.repairs.unlike_links import excluded_everywhere
from workbench.systems.ds389.session_log.hubs import taken_for
from workbench.systems.ds389.session_log.trim_risk import goes_then

if TYPE_CHECKING:
    from workbench.rules.repair_model import Link as ModelLink
    from workbench.rules.repair_model import Model, Server
    from workbench.topology.topology import Link

MANAGER = "cn=replication manager,cn=config"
"""Who binds at a consumer in the name of its supplier, as the server's own tools call it."""

HOST, PORT, TRANSPORT = "nsDS5ReplicaHost", "nsDS5ReplicaPort", "nsDS5ReplicaTransportInfo"
METHOD, LOGIN, SIMPLE = "nsDS5ReplicaBindMethod", "nsDS5ReplicaBindDN", "SIMPLE"


def links_to(view: View, server: str | None) -> list[Link]:
    """The agreements that lead to a server."""
    return [link for link in view.context.topology.links if (link.consumer, link.suffix) == (server, view.suffix)]


def off(view: View, link: Link) -> bool:
    """True if the agreement is disabled as things are by now."""
    return any(
        (one.supplier, one.consumer, one.runs) == (link.supplier, link.consumer, False) for one in view.model.links
    )


def fills_when_switched_on(view: View, link: Link) -> str:
    """Why an agreement that is off may not be switched on yet: it may fill its consumer; empty: nothing tells that it would."""
    if not off(view, link):
        return ""
    if (link.supplier, link.name) not in {(one.server, one.link) for one in view.about(FILLS_WHEN_STARTED)}:
        return ""
    why = f"{link.supplier} may fill {link.consumer} anew when {link.name} is switched on"
    return f"{why}: what {FILLS_WHEN_STARTED} says comes first"


def lets_trim(view: View, need: Need) -> bool:
    """True of links that are off and whose suppliers trim, once they run, what others wait for: these others come first."""
    links = links_to(view, need.server) if need.code == DISABLED else []
    return any(off(view, link) and goes_then(view.context, link) for link in links)


def enabling(view: View, link: Link, arrives: bool) -> Step:
    """Switch an agreement on. `arrives`: what waits is delivered at once, and is waited for."""
    suffix = view.suffix or ""
    dn = agreement_dn(suffix, link.name)
    records, back = [modify(dn, ("replace", ENABLED, ["on"]))], [modify(dn, ("replace", ENABLED, ["off"]))]
    assert link.consumer is not None, "an agreement of which nobody knows where it leads is not enabled"
    return Step(
        key=f"enable-{link.supplier}-to-{link.consumer}",
        repair="enable",
        server=link.supplier,
        on=link.supplier,
        suffix=view.suffix,
        says=f"{link.supplier} will feed {link.consumer} again: its agreement {link.name} is switched on",
        stands_on=f"{link.name} leads to {link.consumer}",
        expects=f"{link.consumer} gets what {link.supplier} has for it" if arrives else f"{link.name} is enabled",
        risk=f"somebody may hold {link.consumer} back on purpose: ask who disabled {link.name}. Where nothing arrives within a "
        "minute, `dsconf INSTANCE repl-agmt poke` has it begin: 3.1.2 was seen to begin nothing otherwise"
        + (f"; {then}" if (then := goes_then(view.context, link)) else ""),
        undo=f"switch {link.name} off again; what was delivered stays",
        commands=(dsconf(link.supplier, "repl-agmt", "enable", "--suffix", suffix, named=link.name),),
        sends=ldif(records),
        undo_commands=(dsconf(link.supplier, "repl-agmt", "disable", "--suffix", suffix, named=link.name),),
        undo_sends=ldif(back),
        effects=({"do": "run", "supplier": link.supplier, "consumer": link.consumer},),
        details={"records": records, "to": link.consumer, "leads": link.address, "arrives": arrives},
    )


def switched_on_instead(
    view: View, cut: Collection[str], effects: Sequence[Mapping[str, Any]], filled: Collection[str]
) -> ProposedRepair | None:
    """One agreement that is off switched on, over which a server that would be cut off goes on; None: none does that.

    carl is filled, and its new log has no record for bern; alba-to-bern is off, and alba has the record: bern keeps its data
    """
    done = {(one["supplier"], one["consumer"]) for one in effects if one["do"] == "run"}
    for name in sorted(cut):
        for link in links_to(view, name):
            if not off(view, link) or link.supplier in filled or (link.supplier, name) in done:
                continue
            step = enabling(view, link, True)
            result, _ = achieved(view.model, [*effects, *step.effects])
            if name not in result.cut | {lack.server for lack in result.unsaid}:
                load = "a session with what waits"
                return ProposedRepair("enable", f"switch on {link.name}", (step,), load=load)
    return None


def waking(view: View, sender: str, to: list[str], flows: bool = False) -> Step | None:
    """One harmless change, at the sender, or before a hub at a supplier that feeds it; None if nobody there can make one."""
    by = _writer(view.model, sender)
    if by is None:
        return None
    suffix, rid = view.suffix or "", view.model.servers[by].origin or ""
    records = [modify(keep_alive_dn(suffix, rid), ("replace", STAMP, [stamp(view.made_at)]))]
    names = " and ".join(to)
    return Step(
        key=f"wake-{sender}",
        repair="wake",
        server=by,
        on=by,
        suffix=view.suffix,
        says=f"{by} makes one change, of its own keep-alive entry, so that {sender} opens its sessions with {names}",
        stands_on=f"{by} has its keep-alive entry",
        expects=f"{names} has all that {sender} has",
        risk="none for users: the entry is the server's own, which writes this attribute itself from time to time",
        cannot_undo="a change cannot be unmade; it means nothing to any user",
        commands=(ldapmodify(by),),
        sends=ldif(records),
        changes=1,
        effects=({"do": "write", "server": by},),
        details={"records": records, "level": [sender, *to], "origin": rid, "flows": flows},
    )


def _writer(model: Model, sender: str) -> str | None:
    if model.servers[sender].origin is not None:
        return sender
    feeders = sorted(link.supplier for link in model.links if link.consumer == sender and link.runs)
    return next((name for name in feeders if model.servers[name].origin is not None), None)


def _unable(view: View, links: Collection[Link]) -> dict[str, str]:
    """Of agreements that are off, those over which no session could send what waits even if they were on -> why.

    Only links that run count for what the consumer has by then: over one that fails nothing arrives.

        a-to-h fails, b-to-h is off and its anchor is in no changelog of b -> b-to-h is unable
        a-to-h runs and brings h level with b                              -> it is not
    """
    tried = cast(LogModel, view.model.copy())  # servers with agreements send from logs
    failing = stopped_links(view.context.topology, view.findings, view.suffix)
    tried.links = [one for one in tried.links if (one.supplier, one.consumer) not in failing]
    ends = {(link.supplier, link.consumer) for link in links}
    for one in tried.links:
        one.runs = one.runs or (one.supplier, one.consumer) in ends
    tried.settle()
    found = {}
    for link in links:
        if why := fills_when_switched_on(view, link):
            found[link.name] = why
            continue
        supplier, consumer = tried.servers.get(link.supplier), tried.servers.get(link.consumer or "")
        if supplier is None or consumer is None or supplier.log is None or not (supplier.works and consumer.works):
            continue
        if tried.refuses(supplier.generation, consumer.generation) or not newer(supplier.vector, consumer.vector):
            continue
        session = replay(tried.rules(), supplier.log, supplier.vector, consumer.vector, consumer.origin or "")
        if session.decision == ANCHOR_NOT_FOUND:
            codes = [
                one.code
                for one in view.about("ANCHOR_PURGED", "ANCHOR_MISSING")
                if (one.server, one.link) == (link.supplier, link.name)
            ]
            says = f"{link.supplier} can send nothing to {link.consumer}: the record at which a session has to begin is not in "
            new = ", which is new once the steps before have filled it" if supplier.source else ""
            found[link.name] = f"{says}its changelog{f' ({codes[0]})' if codes else new}"
    for link in links:
        if meant := meant_for(view.context.topology, link):
            found[link.name] = (
                f"the name of {link.name} says {meant}, and its address is that of {link.consumer}: what LINK_DISABLED says on "
                "it comes first"
            )
        login = view.context.statuses().get((link.supplier, link.suffix, link.name), {}).get("login") or ""
        if why := locked_login(view, link.consumer or "", login):
            found[link.name] = why
    return found


class Enable:
    """Switch on the agreements that lead to a server and are off."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that waits, and for an agreement that is off though nothing waits yet."""
        disabled = [link for link in links_to(view, need.server) if off(view, link) and link.consumer]
        if need.code == DISABLED and not need.lacks:
            disabled = [link for link in disabled if link.name == need.link]
        if need.hidden or need.code == ROLLED_BACK or not disabled:
            return
        stopped = stopped_servers(view.findings, view.suffix).get(need.server or "")
        if stopped:
            why = f"{need.server} {STOPPED_BECAUSE[stopped]}: what {stopped} says comes first"
            yield ProposedRepair("enable", f"switch on {', '.join(link.name for link in disabled)}", refused=why)
            return
        if shows := refusing_all(view.context.topology, view.suffix).get(need.server or ""):
            short = shows.failure.short if shows.failure else ""
            why = f"{need.server} takes no change of any supplier ({short}): what LINK_FAILING says on {shows.name} comes first"
            yield ProposedRepair("enable", f"switch on {', '.join(link.name for link in disabled)}", refused=why)
            return
        unable = _unable(view, disabled)
        steps = {link.name: enabling(view, link, True) for link in disabled if link.name not in unable}
        # A supplier that lost changes would move the vector past them: its agreement stays off.
        names = [*steps]
        if len(names) > 1:
            harmless = [name for name, step in steps.items() if not achieved(view.model, step.effects)[0].unsaid]
            names = harmless or names
        yield ProposedRepair(
            "enable",
            f"switch on {', '.join(names or [link.name for link in disabled])}",
            tuple(steps[name] for name in names),
            load="a session for each agreement, with what waits",
            refused="" if steps else "; ".join(unable.values()),
        )


class Wake:
    """Make one harmless change where a supplier opens no session, or none that could begin: the next one begins elsewhere."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that waits behind an agreement that is on."""
        if need.hidden or need.code == ROLLED_BACK or not need.lacks:
            return
        if own := _change_of_its_own(view, need):
            yield own
            return
        links = [link for link in view.model.links if link.consumer == need.server and link.runs]
        silent = [link for link in links if link.waits is not None]
        if silent or not _all_logged(view, need):
            drafts = (self._draft(view, link, "connects and learns what {} lacks") for link in silent)
        else:
            then = "begins a session with {} at a record that it still has"
            drafts = (
                draft
                for link in (links if _brought_by_each(view, need) else ())
                if (draft := self._draft(view, link, then)) and _brings(view, draft, need)
            )
        if draft := next(filter(None, drafts), None):
            yield draft

    @staticmethod
    def _draft(view: View, link: ModelLink, then: str) -> ProposedRepair | None:
        step = waking(view, link.supplier, [link.consumer])
        if step is None:
            return None
        says = f"make one change on {step.on}: {link.supplier} then {then.format(link.consumer)}"
        return ProposedRepair("wake", says, (step,), load="one change, and a session with what waits")


def _change_of_its_own(view: View, need: Need) -> ProposedRepair | None:
    """One harmless change of the server that waits, whose RUV lost its own element; None for another, or if it brings less."""
    server = need.server or ""
    lost = view.context.once(lost_elements).get((server, view.suffix))
    step = None if lost is None or lost.again else waking(view, server, [server])
    if lost is None or step is None:
        return None
    names = " and ".join(lost.suppliers)
    step = replace(
        step,
        says=f"{server} makes one change, of its own keep-alive entry: its own element is back in its RUV, and {names} begin"
        f"{'s' * (len(lost.suppliers) == 1)} sessions with it",
        expects=f"{server} has all that {lost.suppliers[0]} has",
        details={**step.details, "level": [lost.suppliers[0], server]},
    )
    says = f"make one change on {server}: sessions with it begin then at records that the changelogs still have"
    draft = ProposedRepair("wake", says, (step,), load="one change, and a session with what waits")
    return draft if _brings(view, draft, need) else None


def needless(view: View, need: Need) -> str:
    """Why a server is filled only if a person asks for it by name; empty: nothing tells that it need not be."""
    lost = view.context.once(lost_elements).get((need.server or "", view.suffix))
    if lost is None:
        return ""
    again = f"made a supplier again, with replica ID {lost.origin}, and " if lost.again else ""
    return (
        f"{need.server} need not be filled: {again}with one change of its own, sessions with it begin (BROKEN_VECTOR)"
    )


def _brought_by_each(view: View, need: Need) -> bool:
    """True if each supplier of the server has all that it waits for: the harmless change may come over any of them first.

    c has what r lacks, h has not, both feed r; a makes the change: if h brings it to r before c does, c begins nowhere again
    """
    feeding = {one.supplier for one in view.model.links if one.consumer == need.server and one.runs}
    return all({lack.lot for lack in need.lacks} <= view.model.servers[name].holds for name in feeding)


def _brings(view: View, draft: ProposedRepair, need: Need) -> bool:
    """True if all that the server waits for arrives by it."""
    effects = [effect for step in draft.steps for effect in step.effects]
    return need.lacks <= achieved(view.model, effects)[0].restored


def _all_logged(view: View, need: Need) -> bool:
    """True if a log that goes back to what the server claims shows all that it waits for: a session passes over nothing unseen.

    c waits for b's changes from 5 on; the log of a begins at 3 and ends at 9    -> True
                                       every log begins at 8                     -> False: 6 and 7 may have been
    """
    model, waiting = view.model, view.model.servers[need.server or ""]
    others = [one for one in model.servers.values() if one.works and one.log is not None and one is not waiting]
    for origin in {model.lots[lack.lot].origin for lack in need.lacks}:
        known = last(waiting.vector, origin) or ""
        end = max(last(one.vector, origin) or "" for one in model.servers.values() if one.works)
        level = (one for one in others if (last(one.vector, origin) or "") == end)
        if not any(_goes_back(view, one, origin, known) for one in level):
            return False
    return True


def _goes_back(view: View, server: Server, origin: str, position: str) -> bool:
    """True if its log shows every change of the origin from this position on; what a mark tells may have been trimmed since."""
    mark = view.context.verdicts.reach.get((server.name, view.suffix), {}).get(origin)
    records = server.log.positions if server.log else ()
    return any(one <= position for one in (*filter(None, [mark]), *records) if view.model.origin_of(one) == origin)


def comes_first(view: View, need: Need) -> bool:
    """True if one harmless change brings all that a stuck server waits for: it is whole then, and may fill others."""
    return need.code == "REINIT_REQUIRED" and any(_brings(view, draft, need) for draft in Wake().propose(view, need))


class Rescue:
    """A restored server gets its own lost changes back before it makes its next one: start, enable, one change elsewhere."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that went back in time and has not written since."""
        if need.code != ROLLED_BACK or need.server is None:
            return
        server = need.server
        own = view.model.servers[server].origin or ""
        senders = [link for link in links_to(view, server) if self._helps(view, link, own)]
        senders = [link for link in senders if not fills_when_switched_on(view, link)]
        if not senders:
            return
        start = Step(
            key=f"start-{server}",
            repair="start",
            server=server,
            on=server,
            suffix=view.suffix,
            says=f"{server} is started, if it is down: what follows has to be done within half a minute",
            stands_on=f"{server} is an instance of this machine, or answers already",
            expects=f"{server} answers, and has made no change of its own since it was restored",
            risk=f"{server} writes its keep-alive entry 30 s after its start, and hides what it lost if that is not back by then",
            undo=f"stop {server} again",
            commands=(("dsctl", server, "start"),),
            undo_commands=(("dsctl", server, "stop"),),
            effects=({"do": "start", "server": server},),
            still=((server, own),),
            details={"down": [server], "origin": own, "flows": True},
        )
        enabled = [enabling(view, link, False) for link in senders if off(view, link)]
        # There is no time to plan again because somebody wrote elsewhere. Only its own position matters, and that only until
        # the first agreement is on: from then on what it lost may come back.
        enabled = [replace(step, details={**step.details, "flows": True}) for step in enabled]
        enabled[:1] = [replace(step, still=((server, own),)) for step in enabled[:1]]
        wake = waking(view, senders[0].supplier, [server], flows=True)
        if wake is None:
            return
        wake = replace(wake, details={**wake.details, "rescued": server})
        yield ProposedRepair(
            "rescue",
            f"start {server}, let {senders[0].supplier} feed it and make one change there, all before {server} writes by itself",
            (start, *enabled, wake),
            load="a session with what it lost",
            downtime=f"{server}, for writes, until it is done",
        )

    @staticmethod
    def _helps(view: View, link: Link, own: str) -> bool:
        """True if a session over the link would send the server its own changes."""
        rows = view.context.pairs
        return any(
            (row["supplier"], row["consumer"], row["suffix"]) == (link.supplier, link.consumer, link.suffix)
            and row["decision"] == SEND
            and own in row["to_send"]
            for row in rows
        )


class TemporaryAgreement:
    """A supplier that still has the record to begin with feeds the server, until it is level."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that waits, if a server without an agreement to it could begin a session."""
        if need.hidden or need.code == ROLLED_BACK or need.server is None or not need.lacks:
            return
        linked = {link.supplier for link in links_to(view, need.server)}
        reaches = self._reaches(view, need.server)
        if not reaches:
            return
        for row in view.context.pairs:
            supplier = row["supplier"]
            if (row["consumer"], row["suffix"]) != (need.server, view.suffix) or supplier in linked:
                continue
            if self._taken_for(view, supplier, need.server):
                continue
            if row["decision"] == SEND and view.model.servers[supplier].log is not None:
                yield replace(self._draft(view, supplier, need.server, reaches), unasked=_may_come(view, need))
                return

    @staticmethod
    def _taken_for(view: View, supplier: str, server: str) -> bool:
        """True if the server would turn the supplier away as itself: a hub calls itself by the first element of its RUV."""
        by, to = (view.context.replica(name, view.suffix) for name in (supplier, server))
        return by is not None and to is not None and taken_for(view.context.case, view.context.topology, by, to)

    @staticmethod
    def _reaches(view: View, server: str) -> dict[str, list[str]]:
        """As an agreement does that leads there already; where no file shows how it logs in, as the server's own tools do it."""
        statuses = view.context.statuses()
        found = [
            (link.address, statuses.get((link.supplier, link.suffix, link.name), {}))
            for link in links_to(view, server)
            if link.address and ":" in link.address
        ]
        if not found:
            return {}
        ways = [one for one in found if one[1].get("method")]
        simple = [one for one in ways if one[1]["method"].upper() == SIMPLE and one[1].get("login")]
        address, known = next(iter([*simple, *ways, *found]))
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        where = {HOST: [host], PORT: [port]}
        if known.get("method"):
            who = {LOGIN: [known["login"]]} if known.get("login") else {}
            return {**where, TRANSPORT: [known.get("transport") or "LDAP"], METHOD: [known["method"]], **who}
        here = host.lower() in ("localhost", "localhost.localdomain", "127.0.0.1", "::1")
        transport = "SSL" if port.endswith("636") else "LDAP" if here else "TLS"
        return {**where, TRANSPORT: [transport], METHOD: [SIMPLE], LOGIN: [MANAGER]}

    def _draft(self, view: View, supplier: str, server: str, reaches: dict[str, list[str]]) -> ProposedRepair:
        suffix = view.suffix or ""
        name = f"workbench-{supplier}-to-{server}"
        dn = agreement_dn(suffix, name)
        says = f"let {supplier} feed {server} over a temporary agreement until it is level"
        if reaches[METHOD][0].upper() != SIMPLE or LOGIN not in reaches:
            by = (
                reaches[METHOD][0]
                if LOGIN in reaches or reaches[METHOD][0].upper() != SIMPLE
                else "a name that is not shown"
            )
            why = f"suppliers log in at {server} by {by}: make it by hand, as the agreements there are made"
            return ProposedRepair("temporary-agreement", says, refused=why)
        (login,) = reaches[LOGIN]
        if why := locked_login(view, server, login):
            return ProposedRepair("temporary-agreement", says, refused=why)
        left_out = " ".join(sorted(excluded_everywhere(view, server) | excluded_everywhere(view, supplier)))
        values = {
            "objectClass": ["top", "nsds5replicationagreement"],
            "cn": [name],
            "description": [f"temporary, until {server} is level with {supplier}"],
            "nsDS5ReplicaRoot": [suffix],
            **reaches,
            **({"nsDS5ReplicatedAttributeList": [f"(objectclass=*) $ EXCLUDE {left_out}"]} if left_out else {}),
        }
        leads = f"{reaches[HOST][0]}:{reaches[PORT][0]}"
        records, shown = [add(dn, values)], [add(dn, {**values, CREDENTIALS: [ASKED_FOR]})]
        away = [delete(dn)]
        remove = dsconf(supplier, "repl-agmt", "delete", "--suffix", suffix, named=name)
        feed = Step(
            key=f"feed-{server}-from-{supplier}",
            repair="feed",
            server=supplier,
            on=supplier,
            suffix=view.suffix,
            says=f"{supplier} will feed {server} over a temporary agreement: it still has the record that the session begins at",
            stands_on=f"no other agreement of {supplier} is named {name}",
            expects=f"{server} has all that {supplier} has",
            risk=f"the password of {login} on {server} is needed; it is asked for, sent to {supplier}, and kept nowhere else",
            undo="delete the agreement; what was delivered stays",
            commands=(ldapmodify(supplier),),
            sends=ldif(shown),
            undo_commands=(remove,),
            undo_sends=ldif(away),
            effects=({"do": "feed", "supplier": supplier, "consumer": server},),
            details={
                "records": records,
                "level": [supplier, server],
                "to": server,
                "dn": dn,
                "leads": leads,
                "login": login,
            },
        )
        unfeed = Step(
            key=f"unfeed-{server}-from-{supplier}",
            repair="unfeed",
            server=supplier,
            on=supplier,
            suffix=view.suffix,
            says=f"the temporary agreement from {supplier} to {server} is deleted",
            stands_on=f"{name} leads to {server}",
            expects="the agreement is gone",
            risk=f"none, once {server} is level",
            undo="create it again as in the step before",
            commands=(remove,),
            sends=ldif(away),
            undo_commands=(ldapmodify(supplier),),
            undo_sends=ldif(shown),
            effects=({"do": "unfeed", "supplier": supplier, "consumer": server},),
            details={"records": away, "dn": dn, "to": server, "leads": leads},
        )
        return ProposedRepair(
            "temporary-agreement",
            says,
            (feed, unfeed),
            load=f"a session with what waits; the password of {login} on {server} is asked for",
        )


def _may_come(view: View, need: Need) -> str:
    """Why what a server merely waits for may come without a step: a server that was not collected may send it; else empty."""
    unread = view.context.not_collected(view.suffix) if need.code == PENDING else []
    return (
        f"nothing was collected of {listed(unread, 'and')}, which may send what {need.server} waits for"
        if unread
        else ""
    )


def not_now(view: View, source: str, server: str) -> str:
    """Why a server may not be filled before a person has done what a finding says; empty if it may."""
    for code, names, why in (
        (OFF, (source, server), "takes part in no replication"),
        (EMPTY, (source,), "has lost its own data"),
        *(
            (code, (source, server), STOPPED_BECAUSE[code])
            for code in (DATABASE_FAILING, STOPPED_MEANWHILE, *WITHOUT_DATA)
        ),
        (UNLOGGED, (server,), "may hold what is in no log, and an initialisation would throw it away"),
    ):
        if there := told_of(code, view.findings, view.suffix).intersection(names):
            return f"{min(there)} {why}: what {code} says comes first"
    if server in told_of(EMPTY, view.findings, view.suffix) and (
        only := claimed_alone(view.context, server, view.suffix)
    ):
        return f"only the changelog of {server} may have its changes up to {only}: save it first"
    verdicts = view.context.verdicts
    if left_in_log(verdicts, server, view.suffix) and "stranded" in verdicts.cut():
        return f"only the changelog of {server} has more changes than the list holds: save that changelog first"
    if tasks := told_of("CLEAN_HANGING", view.findings, view.suffix):
        return f"a task on {min(tasks)} is to clean a replica ID that is in use: what CLEAN_HANGING says comes first"
    return ""
