"""Which of the servers that hold missing changes can give them back: by an initialisation, or because clients may write there.

c made 4 changes that reached the hub h alone; a, b and c were filled with data that lack them:

    h feeds only r            it has no agreement to a, b or c, so it can initialise none of them
    h makes no changes        it answers a client that writes with a referral
    a, b and c take writes    what was lost is saved from h and written again on one of them
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.adding_again import CONFLICT, added_again, apart_meanwhile, entries_first, having_added
from workbench.diagnosis.cleaned_origins import CLEANED_HERE
from workbench.diagnosis.gone_entries import missing_in_effect
from workbench.model import counted, listed, step
from workbench.rules.link_failures import REFUSED
from workbench.rules.send_session import ANCHOR_NOT_FOUND
from workbench.rules.vectors import last
from workbench.rules.verdicts import REPLACED, TOTAL

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link


OPEN = frozenset({"not_shown", "unclear"})
"""Why a change is not judged on a server that may lack it. What has a twin there, or was replaced since, is there in effect."""


def takes_writes(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """False if a collected file tells which replicas of the server make changes, and this one is not among them."""
    replica = context.replica(server, suffix)
    if replica is None or replica.origin is not None:
        return True
    return not any(
        one.server == server and "origins" in one.facts and (suffix or "") in one.facts.get("suffixes", {})
        for one in context.inputs
    )


def can_fill(context: DetectorContext, source: str, server: str, suffix: str | None) -> bool:
    """True if a link leads from the source to the server, or if the files do not tell where the links of the source lead.

    A link of which no file tells the consumer leads to no server that makes changes: their addresses stand in every vector.
    A server without a changelog has no links.
    """
    if (source, suffix) in context.without_data or unrecorded_on(context, source, server, suffix):
        return False
    if context.topology.pulling:
        return True
    feeding = context.replica(source, suffix)
    if feeding is not None and not feeding.keeps_log:
        return False
    links = [link for link in context.topology.links if (link.supplier, link.suffix) == (source, suffix)]
    replica = context.replica(server, suffix)
    makes_changes = replica is not None and replica.origin is not None
    return not links or any(
        link.consumer == server or (link.consumer is None and not makes_changes and server not in link.unlike)
        for link in links
    )


def whole_of(context: DetectorContext, rows: Sequence[Mapping[str, Any]], holders: Sequence[str]) -> list[str]:
    """The holders that lack none of these changes themselves: a log may have what the entries lost, or a part of it.

    Nor is a server a source while it drops the changes of their origin: it has fewer of them than others.
    """
    positions = {(row["suffix"], row["position"]) for row in rows if row["held_by"]}
    lacking = {row["server"] for row in missing_in_effect(context) if (row["suffix"], row["position"]) in positions}
    about = {(row["suffix"], row["origin"]) for row in rows}
    waits = [row for row in context.verdicts.pending if (row["suffix"], row["origin"]) in about]
    lacking |= {row["server"] for row in waits if row.get("dropped_since")}
    whole = [name for name in with_data(context, holders, rows[0]["suffix"]) if name not in lacking]
    return [name for name in whole if not unrecorded_on(context, name, rows[0]["server"], rows[0]["suffix"])]


def unrecorded_on(context: DetectorContext, source: str, server: str, suffix: str | None) -> str:
    """Why a server is not to be filled from one that took changes unrecorded; empty: nothing tells of that, or entries do."""
    ends, contents = {source, server}, context.verdicts.contents
    if any(one.suffix == suffix and ends <= one.exports.keys() for one in contents):
        return ""
    return context.unrecorded.get((source, suffix), "")


def with_data(context: DetectorContext, servers: Iterable[str], suffix: str | None) -> list[str]:
    """Those of some servers that have data: of the others only a log of before may be left."""
    return [name for name in servers if (name, suffix) not in context.without_data]


def from_a_log_of_before(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], holders: Sequence[str]
) -> Mapping[str, Any] | None:
    """What to do about changes that only the logs of servers without data have; None: others have them, or nobody."""
    if not rows or not holders or with_data(context, holders, rows[0]["suffix"]):
        return None
    count = sum(bool(row["held_by"]) for row in rows)
    of, them = listed(holders, "and"), "it" if count == 1 else "them"
    return step(
        f"save {counted(count)} from the changelog of {of}, and make on a supplier that has data what of {them} is "
        "still right",
        f"the data of {of} are gone or being replaced: only its changelog of before has {them}, and it can fill nobody",
        f"do not initialise {of} before that, and nothing from {of}",
    )


def fed_later(context: DetectorContext, server: str, rows: Sequence[Mapping[str, Any]], holders: Sequence[str]) -> str:
    """A server that feeds another one and has these changes, or that a holder can fill, over others if need be; else empty.

    What must be before is said, too.
    """
    suffix, feeding = rows[0]["suffix"], _feeding(context, server, rows[0]["suffix"])
    filled = [x for x in feeding if x in holders or any(can_fill(context, by, x, suffix) for by in holders if by != x)]
    feeding = filled or [name for name in feeding if _comes_to(context, name, suffix, holders, server)]
    if having := [name for name in feeding if name in holders]:
        return f"{having[0]} as soon as {having[0]} lacks nothing that {server} has"
    if having := [name for name in feeding if _shown_to_have(context, name, rows)]:
        return having[0]
    return f"{feeding[0]} as soon as {feeding[0]} has {'it' if len(rows) == 1 else 'them'}" if feeding else ""


def _feeding(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The servers that run and have a link to this one that is on."""
    shown = context.topology
    links = (link for link in shown.links if (link.consumer, link.suffix) == (server, suffix))
    return sorted({one.supplier for one in links if one.enabled is not False} - shown.down)


def _comes_to(context: DetectorContext, server: str, suffix: str | None, holders: Sequence[str], apart: str) -> bool:
    """True if a holder can fill a server, or one that feeds it, and so on, but for one (`apart`)."""
    seen, edge = {server, apart}, [server]
    while edge:
        at = edge.pop()
        if any(can_fill(context, name, at, suffix) for name in holders if name != at):
            return True
        new = set(_feeding(context, at, suffix)) - seen
        seen |= new
        edge += sorted(new)
    return False


def suppliers_shown_to_have(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The servers that take writes of clients and have these changes, though no log of theirs shows them."""
    suffix = rows[0]["suffix"]
    names = [x.server for x in context.topology.replicas if x.suffix == suffix and x.server != rows[0]["server"]]
    return [x for x in names if takes_writes(context, x, suffix) and _shown_to_have(context, x, rows)]


def _shown_to_have(context: DetectorContext, server: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if a server has these changes, though its log does not show them: it claims them, was judged, and none is in doubt."""
    suffix, typed = rows[0]["suffix"], context.topology.system.typed
    replica = context.replica(server, suffix)
    positions = sorted(typed(row["position"]) or "" for row in rows)
    if replica is None or (last(replica.seen(), rows[0]["origin"]) or "") < positions[-1]:
        return False
    lacked = {
        typed(row["position"]) for row in context.verdicts.missing if (row["server"], row["suffix"]) == (server, suffix)
    }
    doubted = [
        (typed(row["from"]) or "", typed(row["to"]) or "")
        for row in context.verdicts.unknown
        if (row["server"], row["suffix"], row["origin"]) == (server, suffix, rows[0]["origin"])
    ]
    return not any(
        position in lacked or any(low <= position <= high for low, high in doubted) for position in positions
    )


def fed_by_it_alone(
    context: DetectorContext, server: str, suffix: str | None, failing: Container[tuple[str, str | None]]
) -> tuple[str, list[str]] | None:
    """A server that gets changes from this one alone, for all other links to it fail, and these; None: there is none."""
    stuck = {
        (row["supplier"], row["consumer"])
        for row in context.pairs
        if row["suffix"] == suffix and row["decision"] == ANCHOR_NOT_FOUND
    }
    links = [
        one for one in context.topology.links if one.suffix == suffix and (one.supplier, one.consumer) not in stuck
    ]
    on = [one for one in links if one.enabled is not False and one.consumer]
    for link in on:
        others = [one for one in on if one.consumer == link.consumer and one.supplier not in (server, link.consumer)]
        failed = [one.name for one in others if (one.supplier, one.consumer) in failing]
        if link.supplier == server and link.runs and link.consumer and failed and len(failed) == len(others):
            return link.consumer, failed
    return None


def sources_that_fill(context: DetectorContext, holders: Iterable[str], server: str, suffix: str | None) -> list[str]:
    """Those of some servers that can initialise this one, in their order."""
    return [name for name in holders if can_fill(context, name, server, suffix)]


def waits_for(context: DetectorContext, server: str, suffix: str | None) -> int:
    """How many changes a server waits for that another one with data has: filled from it, a server would lack them as well."""
    typed = context.topology.system.typed
    whole = [
        replica
        for replica in context.topology.replicas
        if replica.suffix == suffix and (replica.server, suffix) not in context.without_data
    ]
    return sum(
        row["count"] - (row.get("lost") or 0)
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (server, suffix)
        if any(replica.top(row["origin"]) >= (typed(row["first"]) or "") for replica in whole)
    )


def best_links_to(context: DetectorContext, server: str, suffix: str | None) -> list[Link]:
    """The links over which a server may be filled, that of the supplier which waits for least first."""
    shown, empty = context.topology, (server, suffix) in context.without_data
    links = [one for one in shown.links if (one.consumer, one.suffix) == (server, suffix) and one.enabled is not False]
    links = [
        one
        for one in links
        if one.supplier not in shown.down and (one.supplier, suffix) not in context.without_data
        if not unrecorded_on(context, one.supplier, server, suffix)
        # Who has no data refuses changes for that alone.
        if not one.blocked or (one.failure and (one.failure.lets_fill or (empty and one.failure.reason == REFUSED)))
    ]
    return sorted(links, key=lambda one: (waits_for(context, one.supplier, suffix), one.supplier, one.name))


def failing_links_to(context: DetectorContext, server: str, suffix: str | None) -> list[Link]:
    """The links over which a server that runs may be filled only once they are mended."""
    shown = context.topology
    if server in shown.down:
        return []
    links = [
        one for one in shown.links if (one.consumer, one.suffix) == (server, suffix) and one.blocked and one.failure
    ]
    links = [x for x in links if x.supplier not in shown.down and (x.supplier, suffix) not in context.without_data]
    return [x for x in links if x not in best_links_to(context, server, suffix)]


def sources_for_writing(context: DetectorContext, holders: Iterable[str], server: str, suffix: str | None) -> list[str]:
    """Those of some servers on which a client may write, and from which links lead to the server, in their order."""
    sending = {link.supplier for link in context.topology.links if link.suffix == suffix}
    above = context.linked.above(server, suffix, only_running=False)
    pulling = context.topology.pulling
    return [
        name
        for name in holders
        if takes_writes(context, name, suffix) and (pulling or name in above or name not in sending)
    ]


def a_supplier(context: DetectorContext, suffix: str | None) -> str:
    """One that takes writes and was read: what is written there reaches the others."""
    down = context.topology.down
    mine = (one for one in context.topology.replicas if one.suffix == suffix and one.origin is not None)
    return min((one.server for one in mine if one.server not in down), default="a supplier")


def doubted_on(context: DetectorContext, server: str, suffix: str | None) -> list[Mapping[str, Any]]:
    """Stretches of changes of which nothing tells whether the new data of a server came with them.

    c was filled from b, which lacked 3 changes that were made before     these
    c trimmed its changelog                                               none: a change is not lost with its record
    """
    resets = context.verdicts.resets.get((server, suffix), ())
    ends = [one.ended for one in resets if one.kind in (TOTAL, REPLACED)]
    moment = context.topology.system.moment
    return [
        row
        for row in context.verdicts.unknown
        if (row["server"], row["suffix"]) == (server, suffix)
        and row["why"] in OPEN
        and (made := moment(row["from"]))
        and any(made <= ended for ended in ends)
    ]


def not_judged_on(context: DetectorContext, source: str, server: str, suffix: str | None) -> dict[str, int]:
    """Origin -> up to how many changes the server has, and nothing tells whether the source has them: it might lose them."""
    rows = doubted_on(context, source, suffix) + _cleaned_on(context, source, suffix)
    if not rows:
        return {}
    typed, replica = context.topology.system.typed, context.replica(server, suffix)
    seen = replica.seen() if replica else {}
    about = server, suffix
    # What its log merely forgot, a server has as a rule: as little is known only where its own data were replaced, too.
    open_: dict[str, list[tuple[str, str]]] = {}
    for one in doubted_on(context, server, suffix):
        open_.setdefault(one["origin"], []).append((one["from"], one["to"]))
    lacking: dict[str, list[str]] = {}
    for one in context.verdicts.missing:
        if (one["server"], one["suffix"]) == about:
            lacking.setdefault(one["origin"], []).append(typed(one["position"]) or "")
    for position in _unsure_on(context, server, suffix):
        lacking.setdefault(context.topology.system.origin_of(position), []).append(position)
    for positions in lacking.values():
        positions.sort()
    found: dict[str, int] = {}
    for row in rows:
        origin, low, high = row["origin"], typed(row["from"]) or "", typed(row["to"]) or ""
        mine, missed = open_.get(origin, []), lacking.get(origin, [])
        if (last(seen, origin) or "") < low or any(begin <= row["from"] and row["to"] <= end for begin, end in mine):
            continue
        if (count := row["count"] - (bisect_right(missed, high) - bisect_left(missed, low))) > 0:
            found[origin] = found.get(origin, 0) + count
    return found


def _cleaned_on(context: DetectorContext, server: str, suffix: str | None) -> list[Mapping[str, Any]]:
    """Stretches of changes of origins that a server cleaned, of which nothing tells whether it had taken them before."""
    about = server, suffix
    return [
        row
        for row in context.verdicts.unknown
        if (row["server"], row["suffix"]) == about and row["why"] == CLEANED_HERE and row["count"]
    ]


def up_to(count: int) -> str:
    """So many changes at most, in words."""
    return counted(count) if count == 1 else f"up to {counted(count)}"


def holders_of_rows(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The servers whose logs hold any of these changes."""
    return sorted({name for row in rows for name in row["held_by"]})


def on_no_server(context: DetectorContext, rows: Iterable[Mapping[str, Any]]) -> bool:
    """True if no server is known to have any of these missing changes, by its log or otherwise."""
    typed = context.topology.system.typed
    lacking: dict[tuple[str | None, str], set[str]] = {}
    for one in context.verdicts.missing:
        lacking.setdefault((one["suffix"], one["position"]), set()).add(one["server"])
    open_: dict[tuple[str | None, str], list[tuple[str, str, str]]] = {}
    for one in context.verdicts.unknown:
        ends = one["server"], typed(one["from"]) or "", typed(one["to"]) or ""
        open_.setdefault((one["suffix"], one["origin"]), []).append(ends)
    for row in rows:
        position, suffix = typed(row["position"]) or "", row["suffix"]
        without = lacking.get((suffix, row["position"]), set()) | {
            server for server, low, high in open_.get((suffix, row["origin"]), ()) if low <= position <= high
        }
        others = [one for one in context.topology.replicas if one.suffix == suffix and one.server not in without]
        if row["held_by"] or any((last(one.seen(), row["origin"]) or "") >= position for one in others):
            return False
    return True


def lacking_what_it_has(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers that lack changes for good which this one has or may have: filled from one of them, it would lose these.

    b lacks a change that the hub has and the vector of a covers    a is not filled from b, also where the log of a begins
                                                                    later and nothing tells whether a lost it
    a and b lack a change                                           it is no reason
    """
    known, key = context.once(_lacking_by_server), (server, suffix)
    if key not in known:
        known[key] = _lacking(context, server, suffix)
    return known[key]


def _lacking_by_server(context: DetectorContext) -> dict[tuple[str, str | None], set[str]]:
    """What `lacking_what_it_has` found: several findings ask for it."""
    return {}


def _lacking(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    typed, replica = context.topology.system.typed, context.replica(server, suffix)
    seen = replica.seen() if replica else {}
    lost = {row["position"] for row in context.verdicts.missing if (row["server"], row["suffix"]) == (server, suffix)}
    return _known_to_lack(context, server, suffix) | {
        row["server"]
        for row in missing_in_effect(context)
        if row["suffix"] == suffix and row["position"] not in lost and row["held_by"]
        if (last(seen, row["origin"]) or "") >= (typed(row["position"]) or "")
    }


def _known_to_lack(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers that lack changes for good which this one has by its log, or shows."""
    return {
        row["server"]
        for row in missing_in_effect(context)
        if row["suffix"] == suffix and server in (*row["held_by"], *row.get("shown_by", ()))
    }


def _has(context: DetectorContext, server: str, suffix: str | None, lacking: Collection[str]) -> tuple[str, str]:
    """What a server has of what others lack, and what becomes of it if it is filled from there, as words."""
    waiting = {row["server"] for row in context.verdicts.pending if row["suffix"] == suffix}
    if {*lacking} <= _known_to_lack(context, server, suffix) | waiting:
        return "has", "would"
    return "has or may have", "might"


def again_by_hand(done: Collection[str | None], deleted_on: str) -> str:
    """How a person does missing changes of these kinds once more on a server that has them.

    >>> again_by_hand({"modify", "delete"}, "s1, too")
    'delete on s1, too, what was deleted elsewhere, and write the present values of the entries concerned once more'
    """
    steps = ["write the present values of the entries concerned once more"] if {*done} - {"delete", "modrdn"} else []
    if "modrdn" in done:
        steps.append(
            "give an entry that was renamed another name, and one that was moved another parent, and then the right one again"
        )
    first = f"delete on {deleted_on}, what was deleted elsewhere, and " if "delete" in done and steps else ""
    return first + " and ".join(steps)


def makers_of(context: DetectorContext, suffix: str | None) -> list[str]:
    """The servers of a suffix that make changes, but for those that are down."""
    replicas = (one for one in context.topology.replicas if one.suffix == suffix and one.origin is not None)
    return sorted({one.server for one in replicas} - context.topology.down)


def makers_that_lack(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The servers that take writes of clients and lack all of these missing changes themselves:

    of deletions, they have the entries.
    """
    suffix, wanted = rows[0]["suffix"], {row["position"] for row in rows}
    lacked: dict[str, set[str]] = {}
    for row in context.verdicts.missing:
        if row["suffix"] == suffix and row["position"] in wanted:
            lacked.setdefault(row["server"], set()).add(row["position"])
    makers = makers_of(context, suffix)
    return sorted(name for name, some in lacked.items() if some == wanted and name in makers)


def through_a_supplier(
    context: DetectorContext,
    rows: Sequence[Mapping[str, Any]],
    server: str,
    losing: Container[str],
    circle: Container[str],
) -> Mapping[str, Any] | None:
    """What to do where each supplier that has these changes lacks others that the server has (`losing`); None: not so.

    `circle`: those that can only be filled from servers that lack changes

    a lacks an addition, which b and c have; b lacks one that a has; c lacks a modification
        c can be mended by writing once more, and then it fills a and b
    a lacks an addition, which b has; b lacks one that a has
        filled from the other each would lose its own: the entry is deleted and added again
    """
    suffix = rows[0]["suffix"]
    shown = [{*row["held_by"], *(row.get("shown_by") or ())} for row in rows]
    having = sorted(set[str].intersection(*shown) - {server})
    having = [
        name for name in sources_for_writing(context, having, server, suffix) if name not in context.topology.down
    ]
    done = {row["operation"] for row in rows}
    if "add" not in done or not having:
        return None
    has, would = _has(context, server, suffix, having)
    them = "it" if len(rows) == 1 else "them"
    having.sort(key=lambda name: (name in losing, name in circle))
    filling = [name for name in having if name not in circle and can_fill(context, name, server, suffix)]
    added = {
        row["server"] for row in missing_in_effect(context) if (row["suffix"], row["operation"]) == (suffix, "add")
    }
    if by := next((name for name in filling if name not in added), ""):
        return step(
            f"initialise {server} from {by} as soon as {by} lacks nothing that {server} has: MISSED_CHANGE tells how {by} "
            "gets that",
            f"no session will ever send {them}, and each supplier that has {them} lacks changes that {server} {has}: filled "
            f"from there now, {server} {would} lose these",
        )
    if unsure := entries_first(context, rows, server, makers_of(context, suffix)):
        return unsure
    by = having[0]
    of_these = {row["position"] for row in rows if row["operation"] == "add"}
    lacking = {x["server"] for x in context.verdicts.missing if x["suffix"] == suffix and x["position"] in of_these}
    off, on = apart_meanwhile(context, lacking, suffix, by)
    steps = [off] if off else []
    steps += [f"save the entries that were added, as {by} has them", f"delete these on {by}"]
    steps += ["add them there again once no server has them"]
    if done - {"add", "delete"}:
        steps.append(f"{again_by_hand(done - {'add', 'delete'}, server)} on {by}")
    if "delete" in done:
        steps.append(f"delete on {server} what was deleted elsewhere")
    steps += [on] if on else []
    why = f"{by} lacks changes that {server} {has}: filled from there, {server} {would} lose these"
    return step(
        listed(steps),
        f"{server} gets an entry that is added anew, and no session will ever send {them} otherwise; "
        f"{why if by in losing else f'no link leads from {by} to {server}'}",
        f"{_overtaken(server) if off else ''}{CONFLICT}",
    )


def _overtaken(server: str) -> str:
    return f"what {server} passes on may overtake the deletion, which then never comes to the servers behind it; "


def save_and_write(
    context: DetectorContext,
    rows: Sequence[Mapping[str, Any]],
    server: str,
    holders: Sequence[str],
    behind: Collection[str],
) -> Mapping[str, Any]:
    """What to do about changes that only servers hold from which nothing comes: no link, no client, and no safe filling.

    `behind`: holders that lack, or wait in vain for, what the server has
    """
    suffix, holder = rows[0]["suffix"], holders[0]
    unread = context.not_collected(suffix)
    if unread and not any((one.consumer, one.suffix) == (server, suffix) for one in context.topology.links):
        return step(
            f"collect from {listed(unread, 'and')}, too, then initialise {server} from whoever feeds it",
            f"no collected agreement leads to {server}, so who feeds it was not collected; no session will ever send "
            f"{'it' if len(rows) == 1 else 'them'}: the vector says that {'it is' if len(rows) == 1 else 'they are'} there",
        )
    makers = makers_of(context, suffix)
    if unsure := entries_first(context, rows, server, makers):
        return unsure
    on = listed(makers, "or") if makers else "a supplier"
    what = {row["operation"] for row in rows}
    first, last = added_again(context, rows) if having_added(rows, makers) else ([], [])
    steps = [
        *first,
        f"save the present values of the {'other entries' if first else 'entries concerned'} from {holder}",
    ]
    steps.append(f"write them again on {on}")
    steps = first if first and what <= {"add", "delete"} else steps
    if "delete" in what:
        steps = [*steps, f"delete there the entries that {holder} no longer has"]
    if what == {"delete"}:
        keeping = makers_that_lack(context, rows)
        steps = [f"delete the entries concerned on {listed(keeping, 'or') if keeping else on}"]
    elif "modrdn" in what:
        steps = [*steps, f"give renamed or moved entries the names that they have on {holder}"]
    them, they = ("it", "it is") if len(rows) == 1 else ("them", "they are")
    names, one = listed(holders, "and"), len(holders) == 1
    only = f"of the logs only that of {names} {'has' if one else 'have'} {them}"
    if not any(row["held_by"] for row in rows):
        only = f"no log has {them}, and only the entries of {names} show what {'it' if them == 'it' else 'they'} did"
    apart = "can neither initialise {0}, to which no agreement leads from there, nor be written to by clients"
    apart = f"{names} {apart}"
    if late := [name for name in holders if name in behind]:
        lack = "lacks" if len(late) == 1 else "lack"
        has, would = _has(context, server, suffix, late)
        apart = f"{listed(late, 'and')} {lack} changes that {{0}} {has}: filled from there, {{0}} {would} lose them"
    added = (
        f"; an entry that is added again gets another unique ID: initialise {names} from a supplier afterwards, and what is fed "
        "from there"
        if "add" in what
        else ""
    )
    return step(
        listed([*steps, *last], "and"),
        f"no session will ever send {them}: the vector says that {they} there; {only}, and {apart.format(server)}",
        f"do not initialise {names} before the values are saved: {them if them == 'it' else 'they'} would be lost there, too"
        f"{f'; {CONFLICT}' if first else added}",
    )


def _unsure_on(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """Lost changes that this server does not have, though perhaps what was done again: it would lose none of them."""
    typed, unsure = context.topology.system.typed, context.verdicts.unsure
    about = server, suffix
    spans = [
        (row["from"], row["to"], row["why"])
        for row in context.verdicts.unknown
        if (row["server"], row["suffix"]) == about and row["why"] in unsure.values()
    ]
    return [
        typed(position) or ""
        for (of, position), why in unsure.items()
        if of == suffix and any(low <= position <= high and why == said for low, high, said in spans)
    ]
