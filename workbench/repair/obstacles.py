"""What keeps changes from arriving and no step of a plan mends: links that fail, and servers that drop what they are sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.diagnosis.before_replacing import fillings_by
from workbench.diagnosis.dropped_changes import CLEAN_HANGING, CLEANED_ORIGIN_BACK, perhaps_restarted
from workbench.diagnosis.failing_links import LINK_FAILING, busy_links
from workbench.diagnosis.refusals import harmless, refused_at
from workbench.diagnosis.relayed_changes import (
    ANSWERED_NOT_APPLIED,
    SENDS_NOTHING,
    STOPPED_BECAUSE,
)
from workbench.model import Finding, System, listed
from workbench.replication.entry.diagnosis.state_comparison import OWN_SINCE, states_of
from workbench.rules.repair_model import MissingAt, Model
from workbench.topology.topology import Link, Topology

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

OFF, EMPTY, UNLOGGED = "REPLICATION_OFF", "INITIALISATION_ABORTED", "CHANGELOG_CLOSED"
"""Codes of a server that takes part in no replication, of one whose data are gone, and of one that holds what is in no log."""


class Obstacle(NamedTuple):
    """How many links or servers, and what the plan says of them."""

    number: int
    says: str


def failing_of(shown: Topology, suffix: str | None) -> dict[tuple[str, str | None], list[Link]]:
    """(supplier, consumer) of links that fail, where no other link between the two runs -> the links."""
    links = [link for link in shown.links if link.suffix == suffix]
    run = {(link.supplier, link.consumer) for link in links if link.runs}
    failing: dict[tuple[str, str | None], list[Link]] = {}
    for link in links:
        if link.enabled is not False and link.blocked and link.failure and (link.supplier, link.consumer) not in run:
            failing.setdefault((link.supplier, link.consumer or link.failure.means), []).append(link)
    return failing


def stopped_links(shown: Topology, findings: Sequence[Finding], suffix: str | None) -> set[tuple[str, str | None]]:
    """(supplier, consumer) of links that fail, whose supplier may hang, or whose consumer takes nothing."""
    stopped = stopped_servers(findings, suffix)
    silent = {name for name, code in stopped.items() if code in SENDS_NOTHING}
    links = [(one.supplier, one.consumer) for one in shown.links if one.suffix == suffix]
    closed = {*stopped, *refusing_all(shown, suffix)}
    return {*failing_of(shown, suffix), *(ends for ends in links if ends[0] in silent or ends[1] in closed)}


def refusing_all(shown: Topology, suffix: str | None) -> dict[str, Link]:
    """The servers that refuse all changes of every supplier -> a link that shows it."""
    links = [link for link in shown.links if link.suffix == suffix and link.consumer and link.blocked]
    return {str(link.consumer): link for link in links if link.failure and link.failure.refuses_all}


def stopped_servers(findings: Sequence[Finding], suffix: str | None) -> dict[str, str]:
    """Server -> the code that says why nothing arrives there, whatever its links do. One that a step fills is none of these."""
    codes = [code for code in STOPPED_BECAUSE if code != EMPTY]
    return {server: code for code in codes for server in told_of(code, findings, suffix)}


def arrival_notes(context: DetectorContext, server: str, count: int, claimed: int, suffix: str | None) -> list[str]:
    """What comes to a server over links that run, and what of it the server refuses.

    claimed  how many more come if a server has them whose entries were not collected
    """
    refused = refused_at(context.verdicts.pending, server, suffix)[:count]
    said = []
    mine = [row for row in context.verdicts.pending if (row["server"], row["suffix"]) == (server, suffix)]
    replica = context.replica(server, suffix)
    own = sum(
        row["count"] or 0
        for row in mine
        if row.get("may_refuse") == OWN_SINCE and replica is not None and replica.origin == row["origin"]
    )
    if own := min(own, count - len(refused)):
        were, they = ("change is", "it") if own == 1 else ("changes are", "they")
        said.append(
            f"{own:,} {were} newer than the files of {server}, which made {they if own == 1 else 'them'} after that or refuses "
            f"{they if own == 1 else 'them'}: collect {server} again, load both snapshots and plan anew"
        )
    if coming := count - len(refused) - own:
        said.append(_on_its_way(coming, server, busy_links(context, server, suffix)))
    if claimed:
        blind = listed(sorted(_blind(context, suffix)), "and")
        waits, it = ("change waits", "it") if claimed == 1 else ("changes wait", "them")
        said.append(
            f"{claimed:,} {waits} for {server}, and nothing tells that who would send {it} has {it}: collect a backup of {blind} "
            "with its entries, and plan anew"
        )
    refused = [one for one in refused if not harmless(one)]
    if refused:
        was, they, them = (
            ("change was", "it arrives", "it") if len(refused) == 1 else ("changes were", "they arrive", "them")
        )
        results = listed(sorted({one["result"] for one in refused}), "or")
        said.append(
            f"{len(refused):,} {was} refused by {server} with {results}: {they} only if {server} can take {them} before a later "
            "change of the same origin arrives (PENDING_CHANGES); collect again when the steps are done"
        )
    return said


def _blind(context: DetectorContext, suffix: str | None) -> set[str]:
    """The servers whose vector is known, and no entries."""
    shown = context.topology
    mine = (one for one in shown.replicas if one.suffix == suffix and one.claims)
    return {one.server for one in mine if states_of(context.case, shown, one) is None}


def on_their_way(
    context: DetectorContext, model: Model, server: str, suffix: str | None, origins: Collection[str]
) -> bool:
    """True if all that a server waits for of these origins comes over links that run and whose suppliers begin sessions.

    The model may know less: servers are read one after the other while they go on.
    """
    pending, pairs = context.verdicts.pending, context.pairs
    mine = [row for row in pending if (row["server"], row["suffix"]) == (server, suffix) and row["origin"] in origins]
    begin = {row["supplier"] for row in pairs if (row["consumer"], row["suffix"]) == (server, suffix) and _begins(row)}
    begin -= {link.supplier for link in model.links if link.consumer == server and link.waits is not None}
    come = all(begin & {*row["suppliers"], *row.get("through", ())} for row in mine)
    return come and bool(mine) and not any(row.get("refused") or row.get("dropped_since") for row in mine)


def _begins(row: Mapping[str, Any]) -> bool:
    runs = row["link"] and row["link_enabled"] is not False and not row.get("link_failing")
    return bool(runs) and row.get("would_contact") is True


def _on_its_way(count: int, server: str, busy: Sequence[str]) -> str:
    """What is sent to a server; `busy`: the links over which the server turned every supplier away at last."""
    are, they = ("change is on its", "it does") if count == 1 else ("changes are on their", "they do")
    again = f"if {they} not arrive in some minutes, collect again, load both snapshots and plan anew"
    if not busy:
        return f"{count:,} {are} way to {server}, over links that run: {again}"
    wait = "change waits" if count == 1 else "changes wait"
    return f"{count:,} {wait} for {server}, which was busy and refused {', '.join(busy)} at the last attempt: {again}"


def waits_for(context: DetectorContext, suffix: str | None) -> Counter[str]:
    """Server -> how many changes of the suffix it waits for, as the diagnosis counts them."""
    waiting: Counter[str] = Counter()
    for row in context.verdicts.pending:
        waiting[row["server"]] += row["count"] if row["suffix"] == suffix else 0
    return waiting


def blocked_notes(
    model: Model, behind: Iterable[MissingAt], stopped: Mapping[str, str], waiting: Mapping[str, int]
) -> list[str]:
    """What waits behind links that do not run, for each server; of what it waits for (`waiting`) logs may name a part only."""
    lacks: dict[str, list[MissingAt]] = {}
    for lack in behind:
        lacks.setdefault(lack.server, []).append(lack)
    said = []
    for name, mine in sorted(lacks.items()):
        count = model.changes(mine)
        has, them = ("change has", "it") if count == 1 else ("changes have", "them")
        code = stopped.get(name, "")
        why = (
            f"which {STOPPED_BECAUSE[code]}: {code} says what to do"
            if code
            else f"and no link that is known to run brings {them}"
        )
        least = "at least " if count < waiting.get(name, 0) else ""
        said.append(f"{least}{count:,} {has} not arrived at {name}, {why}")
    return said


def links_to_mend(
    shown: Topology, findings: Sequence[Finding], suffix: str | None, filled: Collection[str] = ()
) -> list[Obstacle]:
    """The failing links that no step mends; a link whose consumer refuses changes for its data runs once it is `filled`."""
    failing = [
        one for one in findings if one.code == LINK_FAILING and not one.overruled_by and one.suffix in (None, suffix)
    ]
    waited = {(one.server, one.link) for one in failing if one.waiting}
    ends = {(link.supplier, link.name): link for link in shown.links if link.suffix == suffix}
    mended = {key for key, link in ends.items() if link.consumer in filled and link.failure and link.failure.of_data}
    told = {(one.server, one.link) for one in failing} - mended
    links = [link for link in shown.links if link.suffix == suffix and link.blocked]
    alone = [one for mine in failing_of(shown, suffix).values() for one in mine if (one.supplier, one.name) in told]
    names = [
        _with_reason(one, shown)
        for one in alone
        if one.failure and (not one.failure.itself or (one.supplier, one.name) in waited)
    ]
    others = sorted({_with_reason(one, shown) for one in links if (one.supplier, one.name) in told} - {*names})
    found = []
    if names:
        what = "link" if len(names) == 1 else "links"
        says = f"mend the {what} {', '.join(names)}: LINK_FAILING has the commands, and no step of a plan does it"
        found.append(Obstacle(len(names), says))
    if others:
        what, them = ("link", "it") if len(others) == 1 else ("links", "them")
        says = f"mend the {what} {', '.join(others)}: LINK_FAILING has the commands. No change waits for {them} alone"
        found.append(Obstacle(len(others), says))
    return found


def _with_reason(link: Link, shown: Topology) -> str:
    alike = {other.supplier for other in shown.links if (other.name, other.suffix) == (link.name, link.suffix)}
    name = link.name if len(alike) == 1 else f"{link.name} of {link.supplier}"
    if link.suffix and len({one.suffix for one in shown.replicas if one.suffix}) > 1:
        name += f" of {link.suffix}"
    return f"{name} ({link.failure.short})" if link.failure else name


def told_of(code: str, findings: Iterable[Finding], suffix: str | None) -> set[str]:
    """The servers of which a finding with this code proves it for the suffix."""
    found = (one for one in findings if one.code == code and one.root and one.suffix in (None, suffix))
    return {one.server for one in found if one.server}


def unapplied_of(findings: Iterable[Finding], suffix: str | None, system: System) -> dict[str, frozenset[str]]:
    """Server -> the positions of changes that it answered with success and did not apply, as a finding proves."""
    found: dict[str, frozenset[str]] = {}
    for one in findings:
        if one.code == ANSWERED_NOT_APPLIED and one.root and one.server and one.suffix == suffix:
            positions = frozenset(filter(None, map(system.typed, one.items)))
            found[one.server] = found.get(one.server, frozenset()) | positions
    return found


def dropped_of(model: Model) -> frozenset[MissingAt]:
    """What servers wait for and drop, and what therefore does not reach the servers behind them.

    Links that are switched off count as if they ran: to run them is a step of a plan, and does not end the dropping.
    """
    if not any(server.drops or server.unapplied for server in model.servers.values()):
        return frozenset()
    pending = model.pending()
    found = {lack for lack in pending if _drops(model, lack)}
    dropping, taking = model.copy(), model.copy()
    for link in (*dropping.links, *taking.links):
        link.runs = True
    for server in taking.servers.values():
        server.drops = server.unapplied = frozenset()
    dropping.settle()
    taking.settle()
    return frozenset(found | (pending & taking.held()) - dropping.held())


def _drops(model: Model, lack: MissingAt) -> bool:
    server, lot = model.servers[lack.server], model.lots[lack.lot]
    return lot.origin in server.drops or lot.last in server.unapplied


def dropped_said(
    context: DetectorContext,
    findings: Sequence[Finding],
    suffix: str | None,
    model: Model,
    dropped: Collection[MissingAt],
) -> list[str]:
    """What a plan says of changes that servers drop: a restart, or the end of a task, has them take these.

    A restart breaks a filling off.
    """
    tasks = {row["server"] for row in context.verdicts.pending if row.get("dropped_by_task")}
    perhaps, filling = perhaps_restarted(context.verdicts.pending), fillings_by(findings, context.topology, suffix)
    droppers = sorted(name for name, server in model.servers.items() if server.drops)
    unapplied = {lack for lack in dropped if not _drops_origin(model, lack) and _who_answered(model, lack)}
    found = _unapplied_said(model, unapplied)
    for name in sorted({lack.server for lack in dropped if lack not in unapplied}):
        count = model.changes(lack for lack in dropped if lack.server == name and lack not in unapplied)
        does, it = ("change does", "it") if count == 1 else ("changes do", "them")
        here = [name] if name in droppers else droppers
        who, cleaning = ", ".join(here), ", ".join(x for x in here if x in tasks)
        others = ", ".join(x for x in here if x not in tasks)
        drop = "drops" if name in droppers or len(droppers) == 1 else "drop"
        unless = " unless restarted since (its errors log ends too early to tell)" if name in perhaps else ""
        filled = sorted(set[str]().union(*(filling.get(one, ()) for one in {name, *droppers})))
        after = f"once the filling of {', '.join(filled)} has ended, " if filled else ""
        ways = f"do what {CLEAN_HANGING} says on {cleaning}" if cleaning else ""
        ways = " and ".join(filter(None, (ways, f"restart {others}, as {CLEANED_ORIGIN_BACK} says" if others else "")))
        found.append(
            f"{count:,} {does} not arrive at {name}, for {who} {drop} {it}{unless}: {after}{ways}; no step of a plan does that"
        )
    return found


def _drops_origin(model: Model, lack: MissingAt) -> bool:
    return model.lots[lack.lot].origin in model.servers[lack.server].drops


def _who_answered(model: Model, lack: MissingAt) -> list[str]:
    return sorted(name for name, server in model.servers.items() if model.lots[lack.lot].last in server.unapplied)


def _unapplied_said(model: Model, unapplied: Collection[MissingAt]) -> list[str]:
    waiting: dict[int, list[str]] = {}
    for lack in sorted(unapplied):
        waiting.setdefault(lack.lot, []).append(lack.server)
    return [
        f"1 change does not arrive at {', '.join(names)}: "
        f"{', '.join(_who_answered(model, MissingAt(names[0], number)))} answered it "
        f"with success and did not apply it, and what to do is a person's decision: see {ANSWERED_NOT_APPLIED}"
        for number, names in waiting.items()
    ]
