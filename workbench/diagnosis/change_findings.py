"""Findings about changes: what was missed, what nobody will deliver, and what is on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.adding_again import one_by_one
from workbench.diagnosis.before_filling import fed_alone_first, filled_in_a_circle, losing_sources, source_first
from workbench.diagnosis.changes_thrown_away import (
    THROWN_AWAY,
    is_thrown_away,
    missed_by_all,
    named_in,
    only_earlier,
    went_with_data,
)
from workbench.diagnosis.closed_ways import unlogged
from workbench.diagnosis.dropped_changes import how_dropped, restart_first
from workbench.diagnosis.failing_links import busy_links, busy_step, passed_on, waits_behind
from workbench.diagnosis.former_suppliers import supplier_again, was_maker
from workbench.diagnosis.fractional import alike_first
from workbench.diagnosis.gone_entries import gone_in_words, missing_in_effect, nothing_again, without_gone
from workbench.diagnosis.left_in_logs import LOG_ONLY
from workbench.diagnosis.links_for_stranded import agreement_first
from workbench.diagnosis.made_by_others import made_by_others, makers_in_words
from workbench.diagnosis.made_itself import MADE_ITSELF, own_says, own_step
from workbench.diagnosis.missed_by_vector import lost_with, missed_of_vector, refill_of
from workbench.diagnosis.only_holders import as_collected, keep_only_holder, only_here
from workbench.diagnosis.passed_over_changes import are_lost, fill_instead, of_them_passed_over
from workbench.diagnosis.pending_fixes import mend_first, no_way_now, to_be_fed
from workbench.diagnosis.refusals import entry_first, how_refused, lacked_entries
from workbench.diagnosis.repair_sources import (
    fed_later,
    from_a_log_of_before,
    holders_of_rows,
    makers_of,
    on_no_server,
    save_and_write,
    sources_for_writing,
    sources_that_fill,
    suppliers_shown_to_have,
    through_a_supplier,
    whole_of,
)
from workbench.diagnosis.replaced_data import replaced_after, wrote_again
from workbench.diagnosis.replaced_since import newer_first
from workbench.diagnosis.restart_order import read_first
from workbench.diagnosis.resting_links import how_it_rests, rest_step
from workbench.diagnosis.shown_by_entries import (
    clients_first,
    not_supplied,
    shown_by,
    supplied_by_none,
)
from workbench.diagnosis.stuck_servers import to_be_filled
from workbench.diagnosis.without_way import unlinked, without_way
from workbench.model import ITEMS_SHOWN, Finding, counted, ends, first_few, listed, step, time_passed
from workbench.replication.entry.diagnosis.file_times import of_gone, stands_alone_since_its_file
from workbench.replication.entry.diagnosis.state_comparison import OF_TWO, OWN_SINCE
from workbench.replication.stream.diagnosis.missed_in_logs import missed_of_copy, missed_of_stream
from workbench.replication.stream.diagnosis.queued_changes import (
    comes_first,
    held_step,
    how_queued,
    in_a_queue,
    needed_first,
    queue_step,
    why_held,
)
from workbench.rules.verdicts import ENTRIES_LACK
from workbench.topology.topology import is_shared

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

Key = tuple[str, str | None, str]
"""Server, suffix and origin."""


def _by_key(rows: Iterable[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    found: dict[Key, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["server"], row["suffix"], row["origin"]), []).append(row)
    return found


def _proof(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("position", "operation", "target", "rule", "says", "cause")
    held = ", ".join(row.get("held_by", ()))
    return {key: row[key] for key in keys if row.get(key) is not None} | ({"held_by": held} if held else {})


def _of_changes(key: Key, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of whom a finding about these changes speaks, and what proves it."""
    server, suffix, origin = key
    about: dict[str, Any] = {"server": server, "suffix": suffix, "origin": origin}
    return {
        **about,
        "items": tuple(row["position"] for row in rows[:ITEMS_SHOWN]),
        "evidence": first_few(map(_proof, rows)),
    }


def own_changes_hidden(context: DetectorContext) -> Iterator[Finding]:
    """A server lacks own changes that its vector covers: it went back in time and wrote again, or its data were edited."""
    origins = {(one.server, one.suffix): one.origin for one in context.topology.replicas}
    # What its entries lose while its log keeps it was not lost by going back in time.
    logged = (row for row in missing_in_effect(context) if row.get("rule") != ENTRIES_LACK)
    of_two = {(one.server, one.suffix) for one in context.topology.replicas if shares_origin(context, one)}
    gone, of_others = named_in(context.thrown_away), context.once(made_by_others)
    logged = (row for row in logged if (row["server"], row["suffix"], row["position"]) not in of_others)
    for key, lost in _by_key(logged).items():
        server, suffix, origin = key
        rows = [row for row in lost if not went_with_data(gone, row)]
        if origins.get((server, suffix)) != origin or not rows or (server, suffix) in of_two:
            continue
        alone = _alone_with(context, rows)
        came = replaced_after(context, server, suffix, [rows[-1]["position"]])
        without = f"{came}, without them; " if came else ""
        wrote = wrote_again(context, server, suffix, origin, {row["position"] for row in rows})
        shown = set[str].intersection(*({*(row.get("shown_by") or ())} for row in rows)) - {server}
        holding = sorted({alone} | shown) if alone else []
        still = f"{listed(holding)} still {'holds' if len(holding) < 2 else 'hold'}" if alone else ""
        only = f"{as_collected(context, suffix)}only {still}"
        yield Finding(
            "OWN_CHANGES_HIDDEN",
            "error",
            f"{server} lost {counted(len(rows), 'own change')}{' and wrote again' if wrote else ''}: {without}"
            f"its vector covers them, and no server sends them back{f'; {only} them' if alone else ''}",
            **_of_changes(key, rows),
            root=(
                f"{only} {counted(len(rows), 'own change')} that {server} lost"
                if alone
                else ""
                if context.topology.pulling
                else f"{counted(len(rows), 'own change')} {'is' if len(rows) == 1 else 'are'} gone on {server}"
                f"{f': {came}' if came else ''}{(', and it' if came else ', which') + ' wrote again' if wrote else ''}"
            ),
            fix=(_given_own_back(context, rows, server, alone),),
        )


def _given_own_back(
    context: DetectorContext, rows: Sequence[Mapping[str, Any]], server: str, alone: str | None
) -> Mapping[str, Any]:
    """How a server gets its own changes back; `alone`: the last one that holds them."""
    suffix, held = rows[0]["suffix"], holders_of_rows(rows)
    if saved := from_a_log_of_before(context, rows, held):
        return saved
    holders = whole_of(context, rows, held) or held
    whose = f"{'the log' if len(holders) == 1 else 'the logs'} of {listed(holders, 'and')}" if holders else ""
    if holders and not sources_that_fill(context, holders, server, suffix):
        return step(
            f"do what MISSED_CHANGE says of {server}",
            f"only {whose} can give them back, and no link leads from there to {server}",
            f"do not initialise {listed(holders, 'and')} before that",
        )
    if alone:
        return _back_from(context, server, alone, suffix)
    if not held and on_no_server(context, rows):
        again = "make what they did again on a supplier, if nobody did since and nothing newer replaced it"
        return step(
            again, "no server is known to have them", f"the access log of {server} may name operation and entry of each"
        )
    shown = sorted({name for row in rows for name in row.get("shown_by") or ()})
    if not held and shown and not sources_that_fill(context, shown, server, suffix):
        return step(
            f"do what MISSED_CHANGE says of {server}",
            f"only entries of {listed(shown)} show what they did, and {server} cannot be filled from there",
            f"do not {refill_of(context)} {listed(shown)} before that",
        )
    safe = sources_that_fill(context, holders or shown, server, suffix)
    source = next(
        (name for name in safe if name not in losing_sources(context, server, suffix)),
        "the server with the most complete data",
    )
    return step(
        f"{refill_of(context)} {server} from {source}",
        "others have what it lacks, but its vector says that it has it",
        lost_with(context, server, suffix),
    )


def _back_from(context: DetectorContext, server: str, alone: str, suffix: str | None) -> Mapping[str, Any]:
    """How a server gets its own changes back from the last one that holds them."""
    positions = {row["position"] for row in only_here(context, alone, suffix)}
    others = {row["server"] for row in context.verdicts.missing if row["position"] in positions} - {server}
    waits = any((row["server"], row["suffix"]) == (alone, suffix) for row in context.verdicts.pending)
    if others and waits and (saved := keep_only_holder(context, alone, suffix)):
        return saved
    return step(
        f"initialise {server} from {alone}, and do not initialise {alone} from any server before that",
        f"{as_collected(context, suffix)}{alone} is the last that holds them: filled from another one, it would lose them, too",
        lost_with(context, server, suffix),
    )


def _alone_with(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The server that alone holds all of these changes of one origin; None: there is none."""
    holders = {tuple(row["held_by"]) for row in rows}
    if context.topology.pulling or len(holders) != 1 or len(holder := holders.pop()) != 1:
        return None
    mine = {(row["origin"], row["position"]) for row in only_here(context, holder[0], rows[0]["suffix"])}
    return holder[0] if all((row["origin"], row["position"]) in mine for row in rows) else None


# --- changes that the vector covers and the server does not have


def missed_change(context: DetectorContext) -> Iterator[Finding]:
    """Changes that a server's vector covers and that it does not have."""
    total = context.verdicts.totals["missing"]
    for key, missed in _by_key(context.verdicts.missing).items():
        server, _, origin = key
        in_effect = without_gone(missed)
        held_somewhere = [row for row in in_effect if row["cause"] != THROWN_AWAY]
        gone, rows = len(missed) - len(in_effect), held_somewhere or in_effect or missed
        held = holders_of_rows(rows)
        causes = Counter(row["cause"] for row in missed if row["cause"])
        # Of some changes the cause may be open.
        named = [cause if count == len(missed) else f"{count:,} by {cause}" for cause, count in sorted(causes.items())]
        why = f" ({', '.join(named)})" if named else ""
        first, end = missed[0]["position"], missed[-1]["position"]
        cut = f"; {total:,} in all were missed, the list is cut" if total > len(context.verdicts.missing) else ""
        whole = whole_of(context, rows, held or shown_by(rows)) or (held if context.topology.pulling else [])
        circle = filled_in_a_circle(context, server, key[1])
        losing = losing_sources(context, server, key[1]) | circle
        if whole and not [x for x in sources_that_fill(context, whole, server, key[1]) if x not in losing]:
            whole = sorted({*whole, *suppliers_shown_to_have(context, rows)})
        writers = sources_for_writing(context, whole, server, key[1])
        unsafe = {*whole} & losing
        fillers = [name for name in sources_that_fill(context, whole, server, key[1]) if name not in unsafe]
        feeding = {x.supplier for x in context.topology.links if (x.consumer, x.suffix) == (server, key[1]) and x.runs}
        fillers.sort(key=lambda name: bool(feeding) and name not in feeding)  # who is cut off may be so for a reason
        where = next(iter([*fillers, *writers, *held]), "another server")
        by_hand = not_supplied(context, rows)
        if context.topology.system.tiering:
            what, mend, never, beware = missed_of_copy(context, server, where)
        elif context.topology.system.streaming:
            what, mend, never, beware = missed_of_stream(context, server, where, rows)
        elif is_thrown_away(context, rows):
            what, mend, never, beware = missed_by_all(context, rows, server)
            by_hand = ""
        else:
            what, mend, never, beware = missed_of_vector(context, rows, server, writers, fillers, whole)
            if on_no_server(context, rows):
                mend = "make what they did again on a supplier, if nobody did since and nothing newer replaced it, as an older "
                mend += "backup or whoever made them tells it"
                never = "no server is known to have them: no session and no initialisation brings them"
                beware = ""
            if held and not whole:
                apart = one_by_one(context, rows, server, makers_of(context, key[1]))
                mend, never, beware = apart["repair"], apart["why"], apart["caution"]
            if saved := from_a_log_of_before(context, rows, held):
                mend, never, beware = saved["repair"], saved["why"], saved["caution"]
            elif (
                whole
                and not fillers
                and (not writers or (unsafe and any(row["operation"] == "add" for row in rows)))
                and not fed_later(context, server, rows, [name for name in whole if name not in unsafe])
            ):
                last_way = through_a_supplier(context, rows, server, losing, circle)
                last_way, by_hand = last_way or save_and_write(context, rows, server, whole, unsafe), ""
                mend, never, beware = last_way["repair"], last_way["why"], last_way["caution"]
        if held_somewhere and (lost := len(in_effect) - len(held_somewhere)):
            beware = "; ".join(
                filter(None, (beware, f"no collected server has {lost:,} of them any more: do what {THROWN_AWAY} says"))
            )
        lacked = [row["position"] for row in rows if row["cause"] in (None, "CHANGELOG_RECREATED")]
        replaced = replaced_after(context, server, key[1], lacked, whole=False)
        fix = (
            *alike_first(context, server, key[1]),
            *clients_first(context, server, key[1]),
            *((of_before,) if (of_before := _of_before(context, rows)) and of_before["repair"] != mend else ()),
            *(source_first(context, where, key[1], server) if held else ()),
            *(fed_alone_first(context, server, key[1]) if held else ()),
            step(mend, never, "; ".join(filter(None, (by_hand, beware)))),
        )
        yield Finding(
            "MISSED_CHANGE",
            "error",
            f"{server} missed {counted(len(missed))} of origin {origin}, {ends(first, end)}, and {what}{why}"
            f"{makers_in_words(context, missed)}{gone_in_words(gone, len(missed))}"
            f"{f'; {replaced} (its errors log says so)' if replaced else ''}{cut}",
            **_of_changes(key, missed),
            fix=newer_first(context, rows, fix) if in_effect else (nothing_again(server),),
            assumes=of_gone(context, only_earlier(context, rows)),
        )


def _of_before(context: DetectorContext, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What to do first about those of some changes that only the logs of servers without data have."""
    old = [row for row in rows if from_a_log_of_before(context, [row], row["held_by"])]
    return from_a_log_of_before(context, old, holders_of_rows(old)) if old else None


def stranded_change(context: DetectorContext) -> Iterator[Finding]:
    """Changes that one server holds and no session will deliver to any other."""
    # What only the log of an emptied server has, the finding on its initialisation tells.
    for key, rows in _by_key(row for row in context.verdicts.stranded if not row.get(LOG_ONLY)).items():
        server, suffix, origin = key
        elsewhere = _not_collected(context, suffix)
        among = f"of the collected servers (not {', '.join(elsewhere)}) " if elsewhere else ""
        yield Finding(
            "STRANDED_CHANGE",
            "warning" if elsewhere else "error",
            f"{among}only {server} holds {counted(len(rows))} of origin {origin}, "
            f"{ends(rows[0]['position'], rows[-1]['position'])}{_made_once(context, *key)}, and no session "
            f"{'with another collected one ' if elsewhere else ''}will deliver them",
            **_of_changes(key, rows),
            fix=_kept_or_saved(context, server, rows, elsewhere),
            assumes=stands_alone_since_its_file(context, server, suffix) if context.topology.pulling else (),
        )


def _made_once(context: DetectorContext, server: str, suffix: str | None, origin: str) -> str:
    if not was_maker(context, server, suffix, origin):
        return ""
    return f", which it made as a supplier; it makes none as origin {origin} any more"


def _kept_or_saved(
    context: DetectorContext, server: str, rows: Sequence[Mapping[str, Any]], unread: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    """What to do about them; `unread`: where links lead that was not collected, and may bring them."""
    if kept := _kept_by_others(context, server, rows):
        return (kept,)
    again = supplier_again(context, server, rows)
    if not unread and (linked := agreement_first(context, server, rows)):
        return (linked,)
    if not unread:
        saved = _saved_first(context, server)
        return (again, {**saved, "repair": f"or {saved['repair']}"}) if again else (saved,)
    them = "it" if len(rows) == 1 else "them"
    keep = step(
        f"save {them} before anything else is done to {server}",
        f"to {refill_of(context)} it deletes all that only it has"
        if context.topology.pulling
        else "its log is trimmed with time, and a filling makes it anew",
        f"to {refill_of(context)} {server} throws {them} away for good",
    )
    write = step(
        f"{'or' if again else f'if no other server has {them},'} write the values again where they can spread from",
        "whatever brings the servers together again starts from the others' data",
    )
    back = [{**again, "repair": f"if no other server has {them}, {again['repair']}"}] if again else []
    return (keep, read_first(context, unread, rows[0]["suffix"], len(rows)), *back, write)


def _saved_first(context: DetectorContext, server: str) -> Mapping[str, Any]:
    return step(
        f"save them before anything else is done to {server}, and write the values again where they can spread from",
        "whatever brings the servers together again starts from the others' data",
        f"to {refill_of(context)} {server} throws them away for good",
    )


def _kept_by_others(
    context: DetectorContext, server: str, rows: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Where the others lack all of these: what MISSED_CHANGE says of them gives them back; None elsewhere."""
    lacking: dict[str, set[str]] = {}
    for row in context.verdicts.missing:
        if row["suffix"] == rows[0]["suffix"] and row["server"] != server:
            lacking.setdefault(row["position"], set()).add(row["server"])
    names = {name for row in rows for name in lacking.get(row["position"], ())}
    if context.topology.pulling or not all(row["position"] in lacking for row in rows):
        return None
    return step(
        f"do what MISSED_CHANGE says of {listed(sorted(names))}",
        f"{as_collected(context, rows[0]['suffix'])}{server} is the last that holds them, and can give them back",
        f"do not {refill_of(context)} {server} before that: it throws them away for good",
    )


def _not_collected(context: DetectorContext, suffix: str | None) -> list[str]:
    """Where links lead to servers that were not collected: these may hold what others lack."""
    there = {one.server for one in context.topology.replicas if one.suffix in (None, suffix) and one.tells}
    links = [link for link in context.topology.links if link.suffix == suffix and link.consumer not in there]
    return sorted({link.consumer or link.address or link.name for link in links})


# --- on the way


def _made_itself(context: DetectorContext, row: Mapping[str, Any]) -> Finding:
    about = row["server"], row["suffix"]
    return Finding(
        "PENDING_CHANGES",
        "info",
        own_says(row["server"], row["count"], row["origin"]),
        server=row["server"],
        origin=row["origin"],
        suffix=row["suffix"],
        items=(row["first"], row["last"]),
        evidence=({key: row[key] for key in ("count", "available", "first", "last")},),
        fix=(own_step(row["server"], about in context.once(to_be_filled)),),
    )


def pending_changes(context: DetectorContext) -> Iterator[Finding]:
    """Changes that are not delivered yet."""
    newest = context.newest()
    read = max((one.ended for one in context.topology.readings), default=None)
    for row in context.verdicts.pending:
        if row.get(MADE_ITSELF):
            yield _made_itself(context, row)
            continue
        lacking = unlogged(row)
        moment = moment_of(context, row["first"])
        # By the clock of who collected, else by that of the server that waits: another one's may be wrong.
        now = read or newest.get(row["server"]) or max(newest.values(), default=None)
        age = (
            f", the oldest made {time_passed(now - moment)} before the servers were read"
            if now and moment and now > moment
            else ""
        )
        # A node that is stuck itself sends what it has, which is not all of them.
        them = "what they have of them" if len(row["suppliers"]) > 1 else "what it has of them"
        who = f"{', '.join(row['suppliers'])} would send {them if lacking else 'them'}"
        dropped = bool(row.get("dropped_since"))
        queued = in_a_queue(row)
        coming = not dropped and (row["suppliers"] or row.get("through") or queued)
        apart = "" if coming else without_way(context, row)
        unfed = bool(apart) and unlinked(context, row)
        stuck = (row["server"], row["suffix"]) in context.once(to_be_filled)
        failing = () if coming else waits_behind(context, row, stuck)
        who = (
            how_queued(row)
            if queued
            else how_it_rests(row)
            if coming and row.get("rests")
            else who
            if coming and row["suppliers"]
            else passed_on(context, row)
            if coming
            else no_way_now(context, row, failing)
        )
        who += f"; {why_held(row)}" if coming and not queued and row.get("stopped") and row.get("held") else ""
        busy = busy_links(context, row["server"], row["suffix"]) if coming else []
        if busy:
            who += f"; at the last attempt {row['server']} was busy and refused {', '.join(busy)}"
        since = bool(coming) and _made_since(context, row)
        if coming and row.get("may_refuse"):
            who += _may_refuse(row, since)
        refused = row.get("refused") if coming else ()
        if refused:
            who += f"; {how_refused(row)}"
        who = apart if unfed else how_dropped(row) if dropped else apart or who
        replaced = "" if coming else replaced_after(context, row["server"], row["suffix"], [row["first"]])
        if replaced:
            who += f"; {replaced}, and these data lack {'it' if row['count'] == 1 else 'the first of them'}"
        unread = bool(row.get("unread_log"))
        unsaid = lacking and (coming or not row.get("lost_by"))  # that its maker lost them says so
        gone = f"; {supplied_by_none(context, row['suffix'], lacking, unread_log=unread)}" if unsaid else ""
        if lacking and context.verdicts.tiers is not None:  # logs may have them, and what comes before them is gone
            gone = f"; no log that can be asked brings {'it' if lacking == 1 else 'them'} there"
        passed = row.get("passed_over") if coming else 0
        if passed:
            who += f"; {of_them_passed_over(row)}"
            passed = 0 if are_lost(row, passed) else passed
        may = (row.get("may_pass_over") or {}) if coming else {}
        may = {name: count for name, count in may.items() if not are_lost(row, count)}
        for name, count in may.items():
            who += f"; a session of {name} that comes first passes over {count:,} of them for good: switch off its link until "
            who += "they have arrived"
        yield Finding(
            "PENDING_CHANGES",
            "warning"
            if lacking
            or passed
            or may
            or apart
            or row.get("lost_by")
            or row.get("lost")
            or (refused and lacked_entries(context, row))
            else "info",
            f"{row['server']} waits for {_waiting(row)} of origin {row['origin']}{age}: {who}{gone}{comes_first(row)}",
            server=row["server"],
            origin=row["origin"],
            suffix=row["suffix"],
            items=(row["first"], row["last"]),
            evidence=(
                {key: row[key] for key in ("count", "available", "first", "last")}
                | {"senders": [] if dropped else row["suppliers"] or row.get("through", [])},
            ),
            fix=(to_be_fed(context, row["server"], row["suffix"]),)
            if unfed
            else (restart_first(row),)
            if dropped
            else mend_first(context, row, failing)
            if not coming
            else (step(f"collect {row['server']} once more", "its files are older than these changes"),)
            if since
            else (fill_instead(context, row),)
            if passed
            else (rest_step(row),)
            if row.get("rests")
            else (entry_first(context, row),)
            if refused
            else (busy_step(context, row["server"], row["suffix"]),)
            if busy
            else (queue_step(row) or _NEXT_LOOK,)
            if queued
            else needed_first(row)
            if row.get("earlier_first")
            else (*needed_first(row), held_step(row) or _NEXT_LOOK)
            if context.topology.system.streaming or context.topology.system.tiering
            else (_NEXT_SESSION_OF_SOME if lacking else _NEXT_SESSION,),
        )


def _made_since(context: DetectorContext, row: Mapping[str, Any]) -> bool:
    """True for own changes of a server that are younger than its files: it has them since then, or was restored since then."""
    replica = context.replica(row["server"], row["suffix"])
    return bool(replica and replica.origin == row["origin"] and row.get("may_refuse") == OWN_SINCE)


def _may_refuse(row: Mapping[str, Any], since: bool) -> str:
    """Why the server may refuse what it is sent, as the end of a sentence."""
    server = row["server"]
    if since:
        return f"; {server} made them after its files were written, or was restored and refuses them"
    if row["may_refuse"] == OF_TWO:
        return f", until changes come along that another server made as the same origin: {server} refuses these"
    return f", unless {server} was restored: others have own changes of it that are younger than its files"


def _waiting(row: Mapping[str, Any]) -> str:
    """How many changes wait; where their log was not collected only those are known that something names, but how long it is."""
    size = f" ({row['bytes']:,} bytes of the log)" if row.get("bytes") else ""
    return f"{'' if row.get('counted', True) else 'at least '}{counted(row['count'])}{size}"


_NEXT_SESSION = step("see that a link from one of them runs", "they arrive as soon as a session runs")
_NEXT_SESSION_OF_SOME = step(
    "see that a link from one of them runs",
    "what a log has of them arrives as soon as a session runs, and the rest does not",
)
_NEXT_LOOK = step(
    "see that the server still fetches from one of them, and applies what it fetched",
    "they arrive as soon as it does",
)


def shares_origin(context: DetectorContext, one: Replica) -> bool:
    """True where servers pull and another one makes changes as the same origin: which of these it lost, nothing tells."""
    return context.topology.pulling is not None and is_shared(context.topology, one)


def moment_of(context: DetectorContext, *positions: str) -> datetime | None:
    """The latest time at which one of these changes was made, as its position tells."""
    moment = context.topology.system.moment
    return max(filter(None, map(moment, positions)), default=None)
