"""The trees of a tiered log as rows of the output, and the verdicts: who would send what to whom, who waits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.case.case import Case
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.model import listed
from workbench.replication.tier.diagnosis.commit_times import lag_in_time
from workbench.replication.tier.diagnosis.heads import proven_beyond
from workbench.replication.tier.diagnosis.log_files import needed_file
from workbench.replication.tier.diagnosis.node_verdicts import Tiers
from workbench.replication.tier.diagnosis.registering import about_to_feed
from workbench.replication.tier.diagnosis.unjudged import (
    GUESSED,
    HOLE_BEFORE,
    NOT_ELECTED,
    PARTED_BEFORE,
    SOURCE_UNSEEN,
    UNKNOWN_SAYS,
    UNREAD,
    WENT_BACK,
    why_unjudged,
    why_unknown_behind,
)
from workbench.replication.tier.rules import conditions
from workbench.replication.tier.rules.log_retention import LogHold
from workbench.replication.tier.rules.reconnection import overlaps
from workbench.replication.tier.rules.tiers import Lsn
from workbench.rules.send_session import NOTHING, SEND, SENT
from workbench.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

REFUSED = "refused"
"""The decision of a pair of which the one cannot serve the other."""

UNKNOWN = "unknown"
"""The decision of a pair of which nothing tells whether the one is a source of the other."""

SOURCE_UNTOLD = "of one of the two nothing tells which source it follows, if any"

SOURCE_UNKNOWN = "it is further, and nothing tells which of their logs is that of the source"

VERSION_UNKNOWN = "Nothing tells which version the nodes run, and whether it holds back the deletion of log files"

NEVER_HELD = (
    "Nothing holds back the deletion of log files: the registry is in another database, and no version keeps any then"
)

PAIRED = 100
"""Of more nodes in a tree only those that are linked are paired: of 10,000 nodes there are a hundred million pairs."""

SERVE_NOBODY = conditions.GONE | {conditions.HUNG}

SILENT = SERVE_NOBODY | {conditions.UNREACHABLE}
"""Nodes that do not answer or do not report themselves: whether anything still arrives there, nothing tells."""

_PULLING = conditions.FED | {conditions.ORPHAN}
"""Nodes that get what the node above them has: that one may go further than its own source does."""


def judged_by_tier(
    case: Case, shown: Topology, limit: int, spark: SparkSession | None = None
) -> tuple[list[Row], Verdicts]:
    """The pairs of nodes, and what each is behind."""
    tiers, found = Tiers(case, shown, limit), Verdicts()
    found.tiers = tiers
    if spark is not None:
        tiers.logs.checked_by(spark)
    for source in tiers.sources:
        beyond = proven_beyond(tiers, source)
        for name in tiers.members[source]:
            _judge(tiers, source, name, found, beyond)
    found.unknown.sort(key=lambda row: (row["server"], row["origin"], row["from"]))
    return list(_pairs(tiers)), found


def _judge(tiers: Tiers, source: str, name: str, found: Verdicts, beyond: Lsn | None) -> None:
    last, head = tiers.last(name), tiers.head_above(name)
    about: Row = {"server": name, "suffix": None, "origin": source}
    show = _shown(tiers, source)
    for lack in tiers.logs.lacking(name):
        found.totals["missing"] += 1
        if len(found.missing) < tiers.limit:
            found.missing.append(about | lack | {"position": show(lack["position"])})
    for hole in tiers.earlier.holes:
        if hole.server == name:
            row = {"from": show(hole.first), "to": show(hole.last), "count": hole.count}
            found.unknown.append(about | row | {"why": HOLE_BEFORE, "says": UNKNOWN_SAYS[HOLE_BEFORE]})
    for parting in tiers.earlier.partings:
        if parting.server == name:
            row = {"from": show(parting.places[0]), "to": show(parting.places[-1]), "count": parting.count}
            found.unknown.append(about | row | {"why": PARTED_BEFORE, "says": UNKNOWN_SAYS[PARTED_BEFORE]})
    anew, alone = tiers.logs.cut_back(name), tiers.logs.unjoined(name)
    if alone is not None and head is not None and not tiers.retired(name) and name not in tiers.roots(source):
        row = {"count": alone[2], "first": show(alone[1]), "last": show(head), "available": alone[2], "counted": False}
        found.pending.append(about | row | {"bytes": tiers.lag(alone[0], head)[0], "suppliers": []})
        return
    if (why := why_unjudged(tiers, name)) and head is not None and not tiers.retired(name):
        begin = tiers.last_holders[name].behind if why == WENT_BACK else last or head
        from_, upto = (head, head) if why == NOT_ELECTED else (begin, max(last or head, head))
        row = {"from": show(from_), "to": show(upto), "count": None}
        found.unknown.append(about | row | {"why": why, "says": UNKNOWN_SAYS[why]})
        return
    if (
        last is not None
        and head is None
        and not tiers.roots(source)
        and tiers.source_is_known
        and not tiers.retired(name)
    ):
        row = {"from": show(last), "to": show(last), "count": None}
        found.unknown.append(about | row | {"why": SOURCE_UNSEEN, "says": UNKNOWN_SAYS[SOURCE_UNSEEN]})
        return
    if last is None or head is None or (last >= head and anew is None) or tiers.retired(name):
        return
    span = tiers.logs.span(name)
    if why := why_unknown_behind(tiers, name, last):
        lacks = tiers.logs.behind(name) if why == UNREAD else None
        row = {"from": show(lacks[0] if lacks else last), "to": show(head), "count": lacks[1] if lacks else None}
        found.unknown.append(about | row | {"why": why, "says": UNKNOWN_SAYS[why]})
        return
    head = beyond if beyond is not None and name not in tiers.roots(source) else head
    # What the source has behind a dump that ended early, the node may have.
    counted = anew[1:] if anew else tiers.logs.behind(name) if span and span[1] == last else None
    first, count = counted or _known_behind(tiers, source, last, head)
    start = anew[0] if anew else last
    sending = senders(tiers, name)
    # What only nodes that did not answer may send is not on its way: nothing shows that they are there.
    served = not tiers.source_is_known or tiers.may_be_served(name, start)
    suppliers = [one for one in sending if served or tiers.there(one)]
    silent = sending if not suppliers else []
    whole = counted is not None and tiers.logs.whole_behind(name, start, head)

    def waits(first: Lsn, count: int, begin: Lsn, upto: Lsn, suppliers: list[str]) -> Row:
        here = served or bool(suppliers)
        row = about | {"count": count, "first": show(first), "last": show(upto), "available": count if here else 0}
        row |= {"silent": silent} if silent else {}
        return row | {"counted": whole, "bytes": tiers.lag(begin, upto)[0], "suppliers": suppliers}

    end = _fed_up_to(tiers, name) if suppliers and anew is None else None
    arriving = _first_part(tiers, source, name, end, counted is not None) if end and last < end < head else None
    if arriving is None or end is None:
        found.pending.append(waits(first, count, start, head, suppliers))
        return
    # What those that it hangs on have themselves is on its way; what stands behind that they do not get.
    here, there = arriving
    found.pending.append(waits(first, here, start, end, suppliers))
    found.pending.append(waits(there, count - here, end, head, []))


def _fed_up_to(tiers: Tiers, name: str) -> Lsn | None:
    """Up to where a node gets the log as its suppliers are now; None: they go on, so that there is no end."""
    own = set(tiers.roots(tiers.source_of(name) or ""))
    if name in own:
        return None
    seen, level, places = {name}, _feeding(tiers, name), list[Lsn]()
    while level:
        here = [tiers.last(one) for one in level]
        if None in here or not own.isdisjoint(level):
            return None
        places += filter(None, here)
        seen |= set(level)
        level = sorted({above for one in level for above in _feeding(tiers, one)} - seen)
    return max(places, default=None)


def _first_part(tiers: Tiers, source: str, name: str, end: Lsn, counted: bool) -> tuple[int, Lsn] | None:
    """How much of what a node waits for stands up to a place, and the first behind it; None: the list was cut before it."""
    last, head = tiers.last(name), tiers.known_head(source)
    if not counted and last is not None and head is not None:
        return _known_behind(tiers, source, last, end)[1], _known_behind(tiers, source, end, head)[0]
    both = tiers.logs.beside_source(name)
    places = both.behind.first if both and both.behind.count == len(both.behind.first) else []
    behind = [place for place in places if place > end]
    return (len(places) - len(behind), behind[0]) if behind and len(behind) < len(places) else None


def _known_behind(tiers: Tiers, source: str, last: Lsn, upto: Lsn) -> tuple[Lsn, int]:
    """The first place behind the one and up to the other that anything names, and how many there are: no log was collected."""
    places = tiers.named[source]
    between = places[bisect_right(places, last) : bisect_right(places, upto)]
    named = between if upto in between else [*between, upto]
    return named[0], len(named)


def senders(tiers: Tiers, name: str) -> list[str]:
    """From whom a node would get what it lacks, without anybody doing anything."""
    last, source = tiers.last(name), tiers.source_of(name)
    if last is None or source is None or not tiers.source_is_known:
        return []
    if (still := tiers.standstills.get(name)) and still.sure:  # it gets nothing, though it looks connected
        return []
    if tiers.seen.of_unknown_age(name):
        return []
    if name in tiers.logs.parted:  # it has to connect anew before it gets anything, and to cut its end off
        return []
    if name in tiers.roots(source):  # a cluster brings its own nodes up to date, if they are there
        if tiers.states[name] in SILENT:
            return []
        return [one for one in tiers.elected(source) if tiers.there(one) and (tiers.last(one) or last) > last]
    place = tiers.place(name)
    if tiers.states[name] == conditions.UNTOLD and place and place.parents:
        return [one for one in _feeding(tiers, name) if _goes_beyond(tiers, one, last, name)]
    if tiers.states[name] == conditions.UNTOLD or not tiers.seen.lists_pulls:
        # From whom it pulls nothing tells: who could serve it, and has a log that is none of another history.
        return [donor for donor in tiers.donors(name)[0] if donor not in tiers.logs.spoilt]
    if tiers.states[name] in _PULLING or name in tiers.registering:
        return [one for one in _feeding(tiers, name) if _goes_beyond(tiers, one, last, name)]
    return []  # who waits for a source has none yet, and who is gone or does not answer may get nothing


def _goes_beyond(tiers: Tiers, supplier: str, place: Lsn, below: str) -> bool:
    """Whether a node has more than a place, or gets more. One that is stuck itself leaves those below it where they are."""
    seen, level = {below}, [supplier]
    own = set(tiers.roots(tiers.source_of(below) or ""))
    while level:
        # Of one that is silent nothing shows that it sends what it had.
        if any((here := tiers.last(one)) is None or (here > place and one not in tiers.seen.stood) for one in level):
            return True
        if any(one in own and senders(tiers, one) for one in level):
            return True  # its cluster brings it further
        seen |= set(level)
        level = sorted({above for one in level for above in _feeding(tiers, one)} - seen)
    return False


def _feeding(tiers: Tiers, name: str) -> list[str]:
    """From whom a node would get what it lacks, whether these have more by now or not.

    One that is gone or hung sends nothing; one that was stopped answers, and goes on serving its log.
    """
    source, last, place = tiers.source_of(name), tiers.last(name), tiers.place(name)
    if source is not None and name in tiers.roots(source):
        return []
    if name in tiers.registering:
        return about_to_feed(tiers, name)
    if last is None or place is None or tiers.states[name] not in _PULLING | {conditions.UNTOLD}:
        return []
    anew = tiers.logs.cut_back(name)
    start = anew[0] if anew else last
    parents = [node for node in place.parents if tiers.states.get(node) not in SERVE_NOBODY]
    parents = [node for node in parents if node not in tiers.not_elected and not tiers.seen.nothing_recent(node)]
    if tiers.states[name] == conditions.ORPHAN:
        parents = [node for node in parents if _may_serve(tiers, node)]
    firsts = {one: tiers.seen.whole_from(one) for one in parents}
    having = [one for one, first in firsts.items() if first is None or first <= last[0]]
    return [one for one in having if not tiers.logs.stops_behind(one, start)]


def _may_serve(tiers: Tiers, name: str) -> bool:
    """Whether a node that does not hang on the source serves those below it: one that answers does, whatever its row says.

    False for one that was not asked and waits for a source itself or was taken out, and for one of which nothing was collected.
    """
    if tiers.seen.answered(name):
        return True
    row = tiers.seen.nodes.get(name)
    unsure = tiers.states.get(name) in conditions.WAITING | {conditions.RETIRED, conditions.UNTOLD}
    return not unsure and not (row and row["state"] in tiers.told.rules.unfit)


def _shown(tiers: Tiers, source: str) -> Callable[[Lsn], str]:
    system = tiers.shown.system
    return lambda place: system.show(system.order_key(source, *place))


def place_text(tiers: Tiers, place: Lsn | None) -> str | None:
    """A place as the system writes it."""
    return _shown(tiers, "")(place) if place else None


def _pairs(tiers: Tiers) -> Iterator[Row]:
    """What every node would give to every other one of its tree, as if they were connected now."""
    links = {(link.supplier, link.consumer): link for link in tiers.shown.links}
    for source in tiers.sources:
        show = _shown(tiers, source)
        known = [name for name in tiers.members[source] if tiers.seen.last(name) is not None]
        few, own = len(known) <= PAIRED, set(tiers.roots(source))
        for supplier in known:
            for consumer in known if few else tiers.children(supplier):
                if supplier == consumer or consumer in own or tiers.seen.last(consumer) is None:
                    continue
                link = links.get((supplier, consumer))
                theirs, mine = tiers.seen.last(supplier), tiers.seen.last(consumer)
                first, own_first = tiers.seen.whole_from(supplier), tiers.seen.first_file(consumer)
                assert theirs is not None and mine is not None
                row: Row = {
                    "supplier": supplier,
                    "consumer": consumer,
                    "suffix": None,
                    "link": link.name if link else None,
                }
                row |= {"link_enabled": link.enabled if link else None, "rules": tiers.told.rules.name}
                row |= {"would_contact": tiers.there(supplier) if link else None, "unrelated": False, "others": {}}
                row |= {
                    "anchor": show(mine),
                    "anchor_included": False,
                    "anchor_class": None,
                    "anchor_class_assumed": False,
                }
                row |= {
                    "delivers": tiers.there(supplier) and tiers.there(consumer),
                    "stop": {},
                    "counts": {},
                    "to_send": {},
                }
                serves = first is None or overlaps((first, 0), theirs, (own_first or 0, 0), mine)
                if not tiers.guessed.isdisjoint((supplier, consumer)):
                    row |= {"decision": UNKNOWN, "reasons": [_reason(GUESSED, SOURCE_UNTOLD)]}
                elif not tiers.last_holders.keys().isdisjoint((supplier, consumer)):
                    row |= {"decision": UNKNOWN, "reasons": [_reason(WENT_BACK, UNKNOWN_SAYS[WENT_BACK])]}
                elif not serves:
                    says = f"{_oldest(tiers, supplier)}, and the node needs file {mine[0]}"
                    row |= {"decision": REFUSED, "reasons": [_reason("no_overlap", says)]}
                elif theirs <= mine:
                    row |= {"decision": NOTHING, "reasons": [_reason("not_ahead", "it is not further than the node")]}
                elif supplier in tiers.not_elected:
                    row |= {"decision": UNKNOWN, "reasons": [_reason(NOT_ELECTED, UNKNOWN_SAYS[NOT_ELECTED])]}
                elif not tiers.source_is_known:
                    row |= {"decision": UNKNOWN, "reasons": [_reason("source_unknown", SOURCE_UNKNOWN)]}
                elif tiers.seen.knows_files(supplier) and not tiers.seen.has_file(supplier, mine[0]):
                    says = f"what was collected of its log does not go back to file {mine[0]}, which the node needs"
                    row |= {"decision": UNKNOWN, "reasons": [_reason("files_unknown", says)]}
                else:
                    after, count = _known_behind(tiers, source, mine, theirs)
                    row |= {"decision": SEND, "stop": {source: show(theirs)}, "counts": {SENT: count}}
                    row["to_send"] = {source: {"count": count, "first": show(after), "last": show(theirs)}}
                    has = tiers.seen.has_file(supplier, mine[0])
                    says = "has the file that the node needs next" if has else "nothing tells which files it still has"
                    row["reasons"] = [_reason("ahead", f"it is further, and {says}")]
                yield row


def _oldest(tiers: Tiers, name: str) -> str:
    """From where on a node can serve others, in words."""
    begins = f"its oldest log file is {tiers.seen.first_file(name)}"
    return f"{begins}, and {tiers.seen.holes(name)[-1]} lacks behind it" if tiers.seen.holes(name) else begins


def _reason(rule: str, says: str) -> Row:
    return {"rule": rule, "says": says, "values": {}}


# --- as rows of the output


def trees(tiers: Tiers) -> list[Row]:
    """Each tree: the source, its newest places and oldest files, what holds its log, and all nodes."""
    return [_tree(tiers, source) for source in tiers.sources]


def _tree(tiers: Tiers, source: str) -> Row:
    seen, roots = tiers.seen, tiers.roots(source)
    held = tiers.hold(source)
    then, after = held.without(held.holders)
    firsts = {one.partition("@")[2]: _first(tiers, one) for one in roots if seen.probed(one, "first")}
    speed, beyond = tiers.deleted_per_second.get(source), proven_beyond(tiers, source)
    return {
        "source": source,
        "source_is_known": tiers.source_is_known,
        "now": _time(seen.now),
        "nodes_are_listed": seen.lists_nodes,
        "rules": tiers.told.rules.name,
        "fanout": tiers.told.rules.fanout_of(source),
        "source_head_registry": _pair(tiers.head(source, False)),
        "source_head_proven": _pair(beyond),
        "source_head_actual": _pair(tiers.head(source, True)),
        "source_first": {host: _pair(first) for host, first in firsts.items() if first},
        "file_size": tiers.file_size,
        "deleted_per_hour": None if speed is None else round(speed * 3600, 1),
        "retention": {
            "file": held.kept_from,
            "held_by": list(held.holders),
            "then": {"file": then, "held_by": list(after)},
            "says": _retention(tiers, source, held),
        },
        "nodes": [_node(tiers, source, name, held, beyond) for name in tiers.members[source]],
        "logs": [_log(tiers, name) for name in tiers.members[source] if name in tiers.logs.parts],
    }


def _first(tiers: Tiers, name: str) -> Lsn | None:
    """The oldest place of a node's log, as it told; its first file, where its folder does not go back to that place."""
    told, file = tiers.seen.probed(name, "first"), tiers.seen.first_file(name)
    return told if file is None or (told and told[0] == file) else (file, 0)


def _retention(tiers: Tiers, source: str, held: LogHold) -> str:
    if tiers.holding_is_known:
        return _holding(held)
    return VERSION_UNKNOWN if tiers.told.local(source) else NEVER_HELD


def _holding(held: LogHold) -> str:
    if held.kept_from is None:
        return f"Nothing holds back the deletion of log files: {held.why}"
    if not held.holders:
        return f"Log files are kept from {held.kept_from} on, which the source itself writes ({held.why})"
    return f"Log files are kept from {held.kept_from} on, for {', '.join(held.holders)} ({held.why})"


def _log(tiers: Tiers, name: str) -> Row:
    """A collected log by itself, and beside that of the source."""
    log, both, reference = tiers.logs.log(name), tiers.logs.beside_source(name), tiers.logs.reference(name)
    assert log is not None
    return {
        "node": name,
        "records": log.records,
        "commits": log.commits,
        "first": place_text(tiers, log.first),
        "last": place_text(tiers, log.last),
        "gaps": log.gaps.count,
        "duplicates": log.duplicates,
        "contradictions": log.contradictions.count,
        "source": reference if reference != name else None,
        "same": both.same if both else None,
        "differing": both.differing.count if both else None,
        "behind": both.behind.count if both else None,
        "ahead": both.ahead.count if both else None,
        "match": place_text(tiers, both.match) if both else None,
        "cut": both.cut if both else None,
    }


def _offered(tiers: Tiers, name: str) -> list[Row]:
    """What the registry answers a node that waits or cannot go on, node by node; nothing for the others."""
    if tiers.states[name] not in conditions.WAITING and tiers.gap(name) is None:
        return []
    offer = tiers.offer(name)
    union = {one.name for one in offer.union} if offer else set()
    return (
        [{"node": one, "offered": one in union, "why": why} for one, why in sorted(offer.reasons.items())]
        if offer
        else []
    )


def _node(tiers: Tiers, source: str, name: str, held: LogHold, beyond: Lsn | None) -> Row:
    seen, place, row = tiers.seen, tiers.place(name), tiers.seen.nodes.get(name)
    reported, probed, last = seen.reported(name), seen.answered_at(name), tiers.last(name)
    current = None if name in seen.cut_since or seen.outdated(name) else reported
    beyond = beyond if tiers.needs(name) else None
    registry_lag = tiers.lag(current, beyond or tiers.head(source, False))
    actual_lag = tiers.lag(None if name in tiers.guessed else probed, tiers.head(source, True))
    age, answered = seen.since_report(name), seen.answered(name)
    donors, silent_donors = tiers.donors(name) if tiers.needs(name) else ([], [])
    files = seen.files.get(name, {})
    _, cut = tiers.sizes
    on_the_way = range(last[0], (tiers.known_head(source) or last)[0]) if last else ()
    lost = tiers.lost_in(name)
    state = tiers.states[name]
    first_file = row["first_file"] if row else None
    own_first = seen.probed(name, "first")
    return {
        "node": name,
        "state": row["state"] if row else None,
        "tier": place.tier if place else None,
        "parent": tiers.parent(name),
        "children": len(place.children) if place else 0,
        "keepalive_age_s": None if age is None else round(age, 1),
        "registry_lsn": place_text(tiers, reported),
        "cut_back_to": place_text(tiers, seen.cut_since.get(name)),
        "firstfile": None if first_file is None else str(first_file),
        "registry_lag_bytes": registry_lag[0],
        "node_first": _pair(own_first),
        "node_last": _pair(probed),
        "actual_lag_bytes": actual_lag[0],
        "probe": None if answered is None else "ok" if answered else "unreachable",
        "registry_lag_bytes_nominal": registry_lag[1],
        "actual_lag_bytes_nominal": actual_lag[1],
        "files_needed_from": needed_file(tiers, name),
        "lag_is_at_least": beyond is not None or any(file in cut for file in on_the_way),
        "lag_s": _rounded(lag_in_time(tiers, name)),
        "delay_s": tiers.told.delays.get(name),
        "condition": state,
        "says": _says(tiers, name, state),
        "gap": tiers.gap(name),
        "served_by": donors,
        "served_by_silent": silent_donors,
        "lost_in_s": None if lost is None else round(lost, 1),
        "files": [[number, size] for number, size in sorted(files.items())],
        "registry_is_stale": _stale(reported, seen.probed(name), first_file, own_first),
        "holds_log": name in held.holders,
        "offered": _offered(tiers, name),
        "cuts": (seen.probes.get(name) or {}).get("cuts"),
        "generation": (seen.probes.get(name) or {}).get("commit_generation"),
    }


def _rounded(times: tuple[float, float] | None) -> list[float] | None:
    return None if times is None else [round(one, 1) for one in times]


def _says(tiers: Tiers, name: str, state: str) -> str:
    if name in tiers.seen.cut_since and state != conditions.CUT_BACK:
        return f"{conditions.SAYS[state]}; {UNKNOWN_SAYS[conditions.CUT_BACK]}"
    if state == conditions.BEHIND and tiers.told.delays.get(name):
        return f"it waits {tiers.told.delays[name]:,.0f} s on purpose, and lacks what is older than that: it is slow besides"
    if state == conditions.BEHIND and tiers.seen.nodes and name not in tiers.seen.nodes:
        return "it answers, and its source has more; the registry has no row of it"
    place = tiers.place(name)
    if state == conditions.BEHIND and (standing := tiers.standstills.get(name)):
        return f"it is connected and reports itself, and gets nothing: {standing.says}"
    if state == conditions.BEHIND and place and place.parents and not senders(tiers, name):
        return _stuck(tiers, name)
    if name in tiers.guessed:
        return UNKNOWN_SAYS[GUESSED]
    if state == conditions.UNTOLD and not tiers.source_is_known:
        return "nothing tells who follows whom"
    if state == conditions.CYCLE and place and name in place.parents:
        return "it pulls from itself: nothing reaches it over that row"
    return gone_says(tiers, name)


def gone_says(tiers: Tiers, name: str) -> str:
    """What is said of a node that is gone: where its row says that it waits or was taken out, not that its row says otherwise."""
    state = tiers.states[name]
    row = tiers.seen.nodes.get(name)
    if state not in conditions.GONE or row is None or row["state"] not in tiers.told.rules.unfit:
        return conditions.SAYS[state]
    does = "it was shut down" if state == conditions.GHOST else "it does not answer and does not report itself"
    return (
        f"{does}; its row says {row['state']}, and a row of comdb2_physrep_connections that it pulls from {tiers.parent(name)}: "
        "the two tables contradict each other, or were read at two times"
    )


def lacking_its_file(tiers: Tiers, name: str) -> list[str]:
    """The nodes that one pulls from, if all are known to have deleted the log file that it needs next; empty: not all are."""
    last, place = tiers.last(name), tiers.place(name)
    parents = place.parents if place else ()
    firsts = {node: tiers.seen.whole_from(node) for node in parents}
    lacking = [node for node, first in firsts.items() if first is not None and last is not None and first > last[0]]
    return lacking if len(lacking) == len(parents) else []


def unlisted(tiers: Tiers) -> set[str]:
    """The nodes of the source, those that pull or are pulled from, and those that answer, of which the registry has no row.

    Empty where the table was not collected, or rows of it could not be read: these may be the ones.
    """
    linked = {name for pull in tiers.seen.pulls for name in (pull.name, pull.source)}
    own = {name for source in tiers.sources for name in tiers.roots(source)}
    members = {name for names in tiers.members.values() for name in names} - tiers.guessed
    answering = {name for name in members if tiers.seen.answered(name)}
    return {name for name in (linked | own | answering) & members if tiers.has_no_row(name)}


def _stuck(tiers: Tiers, name: str) -> str:
    """Why a node that is connected gets no more."""
    place = tiers.place(name)
    if apart := [one for one in (place.parents if place else ()) if one in tiers.not_elected]:
        return f"it is connected, and the log of {listed(apart)} is of another history than the one that was elected"
    if (gone := lacking_its_file(tiers, name)) and (last := tiers.last(name)):
        return (
            f"it is connected and reports itself, and cannot go on: {listed(gone)} "
            f"ha{'s' if len(gone) == 1 else 've'} no log file {last[0]} any more"
        )
    return "it is connected and reports itself, and what it pulls from has no more for it"


def _stale(reported: Lsn | None, probed: Lsn | None, first_file: int | None, own_first: Lsn | None) -> bool:
    """Whether the registry says something else of a node than it says itself: its rows are as old as the last report."""
    moved = reported is not None and probed is not None and reported != probed
    return moved or (first_file is not None and own_first is not None and first_file != own_first[0])


def _pair(place: Lsn | None) -> list[int] | None:
    return None if place is None else list(place)


def _time(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%d %H:%M:%S.%f}"
