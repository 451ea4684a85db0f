"""What to do about changes that no session delivers as the servers are now, and why none does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.behind_links import suppliers_first
from workbench.diagnosis.closed_ways import has_some, runs, unlogged
from workbench.diagnosis.failing_links import LINK_DISABLED, LINK_FAILING, refuses_all
from workbench.diagnosis.former_origins import cleaning_first
from workbench.diagnosis.former_suppliers import maker_before, not_by_links, stranded_on
from workbench.diagnosis.gone_links import gone_links
from workbench.diagnosis.lost_own_element import one_change_first
from workbench.diagnosis.passed_over_changes import passed_over
from workbench.diagnosis.restart_order import read_first
from workbench.diagnosis.stuck_servers import to_be_filled
from workbench.diagnosis.without_record import without_record
from workbench.model import counted, listed, step
from workbench.replication.entry.diagnosis.state_comparison import OWN_SINCE
from workbench.replication.entry.rules.entries import OTHER_VERSION, TURNED_DOWN
from workbench.replication.tier.diagnosis.waiting import waiting_step
from workbench.rules.link_failures import CLOCK_REFUSED
from workbench.rules.send_session import ANCHOR_NOT_FOUND
from workbench.topology.topology import is_shared

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

Row = Mapping[str, Any]
_NAMED = 3
"""Links that a sentence names."""


def no_way_now(context: DetectorContext, row: Row, failing: Sequence[str]) -> str:
    """Why no server would send what another one waits for."""
    if maker := _read_before(context, row):
        it, is_ = ("it", "it is") if row["count"] == 1 else ("them", "they are")
        return f"{is_} younger than the file of {maker}, which made {it} since then, or was restored since then"
    if former := stranded_on(context, row):
        it = "it" if row["count"] == 1 else "them"
        return f"only {former} has {it}, as an origin that it is no more, and no session sends {it}"
    if (lost := row.get("lost") or 0) and not row.get("lost_by"):
        them = "all of them" if lost == row["count"] else f"{lost:,} of them"
        rest = {**row, "count": row["count"] - lost, "lost": 0}
        why = f"; of the rest: {no_way_now(context, rest, failing)}" if rest["count"] else ""
        return f"no server has {them} any more (CHANGES_THROWN_AWAY){why}"
    it = "it" if row["count"] == 1 else "them"
    off = sorted({one["link"] for one in _bringing(context, row) if one["link_enabled"] is False})
    if not failing and off:
        links = f"link {off[0]} does" if len(off) == 1 else f"links {listed(off, 'and', _NAMED)} do"
        return f"no session delivers {it}, because the {links} not run: switched off"
    if maker := row.get("lost_by"):
        return f"{maker} made {it} and lost {it} when its data were replaced: no collected server has {it}"
    if not failing and row.get("uncovered"):
        return f"{'it is' if it == 'it' else 'they are'} newer than every collected vector"
    tiers = context.verdicts.tiers
    if tiers is not None and not tiers.source_is_known:
        return f"if {row['origin']} is the source, for nothing tells who follows whom"
    if not failing and (others := _of_other_version(context, row)):
        return f"no session delivers {it} while {listed(others, 'and', _NAMED)} and {row['server']} are of different versions"
    if silent := row.get("silent"):
        return f"only {listed(silent, 'and')}, of which no answer was collected, would send {it}"
    if not failing:
        who = "no collected server" if context.not_collected(row["suffix"]) else "nobody"
        return f"{who} would send {it} now"
    links = f"link {failing[0]} does" if len(failing) == 1 else f"links {listed(failing, 'and', _NAMED)} do"
    return f"no session delivers {it}, because the {links} not run"


def _read_before(context: DetectorContext, row: Row) -> str | None:
    """The server that makes the changes of an origin, if its file is older than those that are waited for; no log tells more."""
    about = (row["suffix"], row["origin"])
    makers = {one.server for one in context.topology.replicas if (one.suffix, one.origin) == about}
    waits = (one for one in context.verdicts.pending if (one["suffix"], one["origin"]) == about)
    return next(
        (one["server"] for one in waits if one["server"] in makers and one.get("may_refuse") == OWN_SINCE), None
    )


def _of_other_version(context: DetectorContext, row: Row) -> list[str]:
    """Who would send what waits, were both servers of one version."""
    linked = any(pair["link"] for pair in context.pairs)
    ways = (pair for pair in context.pairs if (pair["consumer"], pair["suffix"]) == (row["server"], row["suffix"]))
    return sorted(
        pair["supplier"]
        for pair in ways
        if row["origin"] in pair["to_send"]
        and (runs(pair) if linked else True)
        and any(reason["rule"] == OTHER_VERSION for reason in pair.get("reasons", ()))
    )


def mend_first(context: DetectorContext, row: Row, failing: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """What to do about changes that no session delivers as the servers are now: a way is named only if it has them.

    A session passes over those that no log has, and they are missing for good then: these come first, and no way is made anew.
    """
    if maker := _read_before(context, row):
        why = f"unless it was restored since, {maker} has what it made behind its file, and sends it"
        return (step(f"collect {maker} once more, and diagnose both snapshots", why),)
    if former := stranded_on(context, row):
        return (not_by_links(former),)
    tiers = context.verdicts.tiers
    if tiers is not None and not tiers.source_is_known:
        return ()  # what to collect stands first in each finding that takes a source for granted
    if tiers is not None:
        return (waiting_step(tiers, row["server"]),)
    system = context.topology.system
    lost = row.get("lost") or 0
    gone = unlogged(row)
    if lost and not row.get("lost_by"):
        again = step(
            f"do what CHANGES_THROWN_AWAY says of {counted(lost)} of origin {row['origin']}",
            "no session and no initialisation brings what no server holds",
        )
        rest = {**row, "count": row["count"] - lost, "gone": gone, "lost": 0}
        comes = not rest["count"] or (row.get("uncovered") and not gone)  # nothing is known to keep the rest away
        return (again,) if comes else (again, *mend_first(context, rest, failing))
    if not gone or system.streaming or row.get("lost_by"):
        return (_way(context, row, failing, "they arrive"),)
    if row.get("unread_log") or context.not_collected(row["suffix"]):  # there may be logs that have them
        return (_way(context, row, failing, "what a log has of them arrives"),)
    it, they = ("it", "it") if gone == 1 else ("them", "they")
    maker = maker_before(context, row["suffix"], row["origin"])
    made = maker or _maker(context, row)
    holder = f"{maker}, which was that origin, or another server" if maker else "a server"
    saved = step(
        f"save what {counted(gone)} of origin {row['origin']} made, from {holder} whose entries still show it, and write it once "
        f"more on a supplier that logs its changes, before anything sends changes of this origin to {row['server']}",
        f"no log has {it}: a session would pass over {it}, and {they} would be missing for good",
        f"make no new agreement towards {row['server']} before that; an entry that is added again has another unique ID, and "
        f"a server that still has the old one keeps both, as a conflict: initialise {made} from a supplier afterwards",
    )
    about = row["server"], row["suffix"]
    linked = any(one["link"] and (one["consumer"], one["suffix"]) == about for one in context.pairs)
    stuck = linked and about in context.once(to_be_filled)
    if row["available"] and (failing or stuck or _bringing(context, row)):
        return saved, _way(context, row, failing, "what a log has of them arrives")
    return (saved,)


def _after_cleaning(context: DetectorContext, row: Row) -> Mapping[str, Any] | None:
    """What brings changes of an origin that all suppliers of a server cleaned, while others have the changes; None: not so.

    alba, bern and hub cleaned 4 while read was cut off: no session sends read anything of 4, their data have it
    """
    server, suffix, origin, system = row["server"], row["suffix"], row["origin"], context.topology.system
    names = sorted(context.linked.above(server, suffix, only_running=False) - {server})
    replicas = [context.replica(name, suffix) for name in names]
    if any(x is None or not x.claims or origin in x.vector or x.origin == origin for x in replicas):
        return None
    first, end = (system.halves(system.typed(row[key]) or "") for key in ("first", "last"))
    having = sorted(
        name
        for (name, of, cleaned), spans in context.verdicts.kept.items()
        if (of, cleaned) == (suffix, origin) and any(low <= first and end <= high for low, high in spans)
    )
    feeding = sorted(
        {
            link.supplier
            for link in context.topology.links
            if (link.consumer, link.suffix) == (server, suffix) and link.enabled is not False
        }
    )
    if not names or not having or not feeding:
        return None
    by = next((name for name in feeding if name in having), feeding[0])
    shown = (
        ""
        if by in having
        else f", if its entries show {'it' if row['count'] == 1 else 'them'} as those of {listed(having)} do"
    )
    return step(
        f"initialise {server} from {by}{shown}, before a link brings {server} anything else",
        f"{listed(names)} cleaned origin {origin}: no session sends its changes any more, and what builds on them is refused",
        f"to initialise {server} throws away everything that only {server} holds",
    )


def _maker(context: DetectorContext, row: Row) -> str:
    """The server that makes changes of this origin."""
    makers = (
        one.server for one in context.topology.replicas if (one.suffix, one.origin) == (row["suffix"], row["origin"])
    )
    return next(makers, "their maker")


def _may_have(context: DetectorContext, supplier: str, row: Row) -> bool:
    """True unless the vector of a server, which keeps no log, names nothing of the origin: it has none of what waits then."""
    replica = context.replica(supplier, row["suffix"])
    return replica is None or not context.topology.pulling or row["origin"] in replica.seen()


def _bringing(context: DetectorContext, row: Row) -> list[Row]:
    """The closed ways over which what a server waits for comes; those that pass over a part of it only if there is no other.

    No way begins at the server itself, or at one that has only what is older.
    """
    origin = row["origin"]

    def brings(one: Row) -> bool:
        sent = one["to_send"].get(origin)
        return one["supplier"] != row["server"] and (not sent or sent["last"] >= row["first"])

    ways = [one for one in context.linked.closed_ways(row) if brings(one)]
    closed = {link.consumer for link in context.topology.links if refuses_all(link) and link.suffix == row["suffix"]}
    ways = [one for one in ways if one["link_enabled"] is not False or one["consumer"] not in closed] or ways
    whole = [one for one in ways if origin not in passed_over(context, one)]
    return whole or ways


def _without_anchor(context: DetectorContext, row: Row) -> list[str]:
    """The links that run to a server, where no session of any can begin, and no other link leads there; empty: others do."""
    to_it = [pair for pair in context.pairs if (pair["consumer"], pair["suffix"]) == (row["server"], row["suffix"])]
    linked = [pair for pair in to_it if pair["link"]]
    stuck = [pair["link"] for pair in linked if runs(pair) and pair["decision"] == ANCHOR_NOT_FOUND]
    leading = [one for one in context.topology.links if (one.consumer, one.suffix) == (row["server"], row["suffix"])]
    return sorted(stuck) if len(stuck) == len(linked) == len(leading) else []


def _logs_begun_anew(context: DetectorContext, row: Row, failing: Sequence[str]) -> str:
    """The suppliers whose start, which mends their links, makes their changelogs anew."""
    named = {*failing, *(one["link"] for one in _bringing(context, row))}
    links = [link for link in context.topology.links if link.suffix == row["suffix"] and link.name in named]
    suppliers = sorted({link.supplier for link in links if link.failure and link.failure.restarts})
    return listed(suppliers, "and") if suppliers else ""


def _clock_of(context: DetectorContext, row: Row) -> str:
    """The server by whose clock the last of these changes lies so far ahead that its links are refused for that; empty: none."""
    system = context.topology.system
    made, read = system.moment(system.typed(row["last"]) or ""), context.topology.readings
    maker = next(
        (one.server for one in context.topology.replicas if (one.suffix, one.origin) == (row["suffix"], row["origin"])),
        "",
    )
    refused = any(
        link.failure and link.failure.reason == CLOCK_REFUSED and maker in (link.supplier, link.consumer)
        for link in context.topology.links
    )
    furthest = timedelta(seconds=system.clock_levels[0][0]) if system.clock_levels else timedelta.max
    ahead = made and read and made - max(one.ended for one in read) > furthest
    return maker if ahead and refused and maker != row["server"] else ""


def _turned_down(pair: Row) -> bool:
    return any(reason["rule"] == TURNED_DOWN for reason in pair.get("reasons", ()))


def _way(context: DetectorContext, row: Row, failing: Sequence[str], arrives: str) -> Mapping[str, Any]:
    """The step that brings what waits, as far as a log has it."""
    server, suffix = row["server"], row["suffix"]
    if first := cleaning_first(context, server, suffix) or one_change_first(context, server, suffix):
        return first
    if cleaned := _after_cleaning(context, row):
        return cleaned
    if stuck := _without_anchor(context, row):
        names, one = listed(stuck, "and", _NAMED), len(stuck) == 1
        what = f"what the {'finding' if one else 'findings'} on {names} {'says' if one else 'say'}"
        if (server, suffix) in context.once(to_be_filled):
            what = f"what REINIT_REQUIRED says of {server}"
        return step(
            f"do {what}",
            f"a session of {names} finds no record to begin at, and no other link "
            f"{'that was collected ' if context.not_collected(suffix) else ''}leads to {server}",
        )
    if ahead := _clock_of(context, row):
        return step(
            f"first save those of them that are still wanted, then do what CLOCK_AHEAD says of {ahead}",
            "the sessions that would bring them are refused because of their time, and that repair throws away what no other "
            "server accepted",
        )
    if maker := row.get("lost_by"):
        this, it = ("this change", "it") if row["count"] == 1 else ("these changes", "them")
        return step(
            f"make {this} again on a supplier, if still wanted: the access log of {maker} names entry and operation",
            f"no session and no initialisation brings what no server holds; only the log of {maker} tells of {it}",
        )
    pairs, above = [one for one in context.pairs if one["suffix"] == suffix], context.linked.above
    if any(pair["consumer"] == server and row["origin"] in pair["to_send"] and _turned_down(pair) for pair in pairs):
        replica = context.replica(server, suffix)
        code = "DUPLICATE_ORIGIN" if replica and is_shared(context.topology, replica) else "ROLLED_BACK"
        return step(
            f"do what {code} says of {server}", "it refuses own changes that it does not know, and all that comes along"
        )
    if begins_anew := _logs_begun_anew(context, row, failing):
        arrives = f"what the changelog of {begins_anew} still has after that arrives"
    if ways := _bringing(context, row):
        by_code = {
            LINK_DISABLED: sorted({one["link"] for one in ways if one["link_enabled"] is False}),
            LINK_FAILING: sorted({one["link"] for one in ways if one["link_enabled"] is not False}),
        }
        reached = above(server, suffix)
        each = all(one["consumer"] in reached and has_some(one, row["origin"]) for one in ways)
        word = "or" if each else "and"
        told = [f"what {code} says on {listed(names, word, _NAMED)}" for code, names in by_code.items() if names]
        direct = all(one["consumer"] == server for one in ways)
        through = "" if direct else f"; what reaches another server first, {server} gets from there"
        many = sum(map(len, by_code.values())) > 1
        which = "it" if not many else "one of these links" if each else "these links"
        if all(row["origin"] in passed_over(context, one) for one in ways):
            if not direct and not context.not_collected(suffix) and (server, suffix) in context.once(to_be_filled):
                return step(
                    f"do what REINIT_REQUIRED says of {server}", "as the logs are, no session with it can begin"
                )
            return step(
                f"do {f', {word} '.join(told)}",
                f"a session of {'it' if not many else 'them'} alone would pass over a part of them for good: these come first",
            )
        sent = [one["to_send"][row["origin"]]["last"] for one in ways if has_some(one, row["origin"])]
        if sent and max(sent) < row["last"]:
            arrives = f"those up to {max(sent)} arrive"
        return step(
            f"do {f', {word} '.join(told)}",
            f"{arrives} as soon as {which} {'runs' if each else 'run'}{through}",
        )
    if failing and (without := without_record(context, row, failing)):
        return without
    if failing and (suppliers := suppliers_first(context, row, failing, arrives)):
        return suppliers
    if failing:
        return step(
            f"do what LINK_FAILING says on {listed(failing, 'or', _NAMED)}",
            f"{arrives} as soon as {'it runs' if len(failing) == 1 else 'one of these links runs'}",
        )
    related = any(one["consumer"] in above(server, suffix) and has_some(one, row["origin"]) for one in pairs)
    unrelated = (one for one in pairs if one["unrelated"] and one["consumer"] == server and one["link"])
    filled = (server, suffix) in context.once(to_be_filled)  # REINIT_REQUIRED says of it what comes first
    if not related and not filled and any(_may_have(context, one["supplier"], row) for one in unrelated):
        return step("do what UNRELATED_DATA says", "servers with unrelated data exchange nothing")
    unread = context.not_collected(suffix)
    with_data = [name for name in unread if (name, suffix) not in context.without_data]
    if with_data or (unread and not related):
        return read_first(context, with_data or unread, suffix, row["count"])
    if (server, suffix) in context.once(to_be_filled):
        return step(f"do what REINIT_REQUIRED says of {server}", "as the logs are, no session with it can begin")
    feeding = {
        link.supplier
        for link in context.topology.links
        if link.runs and link.suffix == suffix and link.consumer == server
    }
    waiting = {
        one["server"] for one in context.verdicts.pending if (one["suffix"], one["origin"]) == (suffix, row["origin"])
    }
    group = above(server, suffix)
    lost = not row["available"] and not row.get("unread_log")
    if lost and feeding and feeding <= waiting and group <= waiting:
        return step(
            "compare the entries that these changes were about, and write once more on a supplier what is still wanted",
            f"no server can deliver them: every server that leads to {server}, directly or through others, waits for them "
            "itself, and no log has them",
        )
    circle = any(server in above(name, suffix) for name in feeding)
    if feeding and feeding <= waiting and not circle:
        through = listed(sorted(feeding), "and", _NAMED)
        wait = "waits for them itself" if len(feeding) == 1 else "wait for them themselves"
        return step(f"mend first what keeps them from {through}", f"{server} gets them from {through}, which {wait}")
    blind = sorted(
        link.name
        for link in context.topology.links
        if link.suffix == suffix and link.blind and link.enabled is not False
    )
    if blind:
        return step(
            f"see where {listed(blind, 'and', _NAMED)} lead{'s' if len(blind) == 1 else ''}: write the "
            "consumer of each into case.yaml, load the folder again and diagnose anew",
            f"no collected file says which server listens at that address: it may be {server}, or one that sends to it",
        )
    sending = {(one["supplier"], one["consumer"]) for one in pairs if has_some(one, row["origin"])}
    sending = {(by, to) for by, to in sending if to in group and by not in group}
    if holders := sorted({by for by, _ in sending}):
        reaching = above(server, suffix, only_running=False)
        closed = sorted(
            link.name
            for link in context.topology.links
            if (link.suffix, link.runs) == (suffix, False) and link.consumer in group
            if not above(link.supplier, suffix).isdisjoint(holders)
        )
        if closed:
            it = "it" if len(closed) == 1 else "each of them"
            return step(
                f"first do what is said of {listed(closed, 'or', _NAMED)}",
                f"{it} leads to {server}, directly or through others, and nothing is sent over it now",
            )
        if held := [name for name in holders if name in reaching]:
            return step(
                f"first do what is said of {listed(held, 'and', _NAMED)}, and of the links that lead away from there",
                f"links lead from there to {server}, and no session brings them over these as the servers are now",
            )
        return _new_agreement(context, row, holders, group, sending)
    it = "it" if row["count"] == 1 else "them"
    if row.get("uncovered"):
        return step("collect once more", f"the vectors were read before {'it was' if it == 'it' else 'they were'} made")
    if others := _of_other_version(context, row):
        return step(
            f"do what VERSIONS_DIFFER says: bring {server} and {listed(others, 'and', _NAMED)} to the same version",
            f"what is sent to {server} is refused until then",
        )
    unlike = {one["supplier"] for one in pairs if one["unrelated"] and one["consumer"] == server} & feeding
    if feeding and unlike == feeding:
        return step(
            f"do what UNRELATED_DATA says of {listed(sorted(unlike), 'and', _NAMED)}",
            f"{server} is fed from there alone, and servers with unrelated data exchange nothing",
        )
    if holders := _of_no_server(context, row):
        return step(
            f"do what STRANDED_CHANGE says of {listed(holders, 'and', _NAMED)}",
            f"a supplier leaves out an origin that it has not heard of within the window, and {it} came from such",
        )
    if holders := _to_be_asked(context, row):
        return step(
            f"let {server} pull from {listed(holders, 'or', _NAMED)}, if they are to replicate: tell both ends of the link",
            f"{listed(holders, 'and', _NAMED)} would send {it}, and no link in the collected files leads from there to {server}",
        )
    return step(
        f"see what is found on the links to {server}; if that is nothing, collect once more",
        f"as the servers were read, no session delivers {it}",
    )


def _to_be_asked(context: DetectorContext, row: Row) -> list[str]:
    """The servers that would send a server what it waits for, did it ask them, where no link leads to it."""
    server, suffix = row["server"], row["suffix"]
    if not context.topology.pulling or any(
        (link.consumer, link.suffix) == (server, suffix) for link in context.topology.links
    ):
        return []
    pairs = (pair for pair in context.pairs if (pair["consumer"], pair["suffix"]) == (server, suffix))
    return sorted(pair["supplier"] for pair in pairs if pair["delivers"] and row["origin"] in pair["to_send"])


def _of_no_server(context: DetectorContext, row: Row) -> list[str]:
    """The servers on which changes of an origin are stranded that no collected server makes changes as, where they pull."""
    if not context.topology.pulling or any(one.origin == row["origin"] for one in context.topology.replicas):
        return []
    about = row["suffix"], row["origin"]
    return sorted({one["server"] for one in context.verdicts.stranded if (one["suffix"], one["origin"]) == about})


def _new_agreement(
    context: DetectorContext, row: Row, holders: list[str], group: Collection[str], sending: set[tuple[str, str]]
) -> Mapping[str, Any]:
    """From whom to whom an agreement brings what waits.

    group    the server, and who feeds it
    sending  who would send it to whom
    """
    server = row["server"]
    away = {ends for ends in sending if turned_away(context, row["suffix"], *ends)}
    taking = [to for to in sorted(group) if not any((by, to) in away for by in holders)]
    why = f"{listed(holders, 'and', _NAMED)} would send them"
    why += f", and no link leads from there to {server}, directly or through others"
    if not taking and sending - away:
        holders = [min(by for by, _ in sending - away)]
        taking = [to for to in sorted(group) if (holders[0], to) not in away]
    if not taking:
        return step(
            f"make {holders[0]} a supplier with an origin of its own, and an agreement from there to {server}",
            f"{why}; {server} would take {holders[0]} for itself as long as that has none",
        )
    beside = sorted({to for by, to in away if by in holders})
    if beside:
        why += f"; {listed(beside, 'and', _NAMED)} would take {listed(sorted({by for by, _ in away}), 'or', _NAMED)} for itself"
    return step(
        f"make an agreement from {listed(holders, 'or', _NAMED)} to {listed(taking, 'or', _NAMED)}",
        f"{why}{gone_links(context, group, row['suffix'])}",
    )


def to_be_fed(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any]:
    """For a server that no link leads to."""
    return step(
        f"make an agreement to {server} on a server that has them, if {server} is still meant to take part",
        f"as long as no link leads there, nothing arrives, however long one waits{gone_links(context, [server], suffix)}",
        f"a server that was taken out on purpose should not send either: delete the links that lead away from {server}",
    )


def turned_away(context: DetectorContext, suffix: str | None, supplier: str, consumer: str) -> bool:
    """True if the consumer would turn the supplier away, over whatever link."""
    turns_away = context.topology.system.turns_away
    by, to = context.replica(supplier, suffix), context.replica(consumer, suffix)
    return bool(turns_away and by and to and turns_away()(context.case, context.topology, by, to))
