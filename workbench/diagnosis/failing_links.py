"""Links that are switched on and do not run: the finding, and what a headline and the other findings say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.behind_links import (
    count_behind,
    failing_suppliers,
    held_in_no_log,
    lacked_behind,
    told_of_anchor,
)
from workbench.diagnosis.closed_ways import has_some, names_of
from workbench.diagnosis.left_in_logs import stranded_first
from workbench.diagnosis.only_holders import lacking_what_others_have
from workbench.diagnosis.passed_over_changes import brought_in_part, passed_over
from workbench.diagnosis.restart_order import before_start, saved_first
from workbench.diagnosis.without_record import no_record
from workbench.model import Finding, counted, listed, step, time_passed
from workbench.rules.assumptions import CONSUMER_GUESSED
from workbench.rules.link_failures import (
    ANCHOR_LOST,
    BUSY,
    CONSUMER_READ_ONLY,
    LOG_CLOSED,
    REFUSED,
    SCHEDULE_CLOSED,
    TRANSIENT,
    UNKNOWN,
    UNREACHABLE,
)
from workbench.rules.send_session import ANCHOR_NOT_FOUND, NOTHING, SEND
from workbench.rules.vectors import last

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.rules.link_failures import LinkFailure
    from workbench.topology.topology import Link

Row = Mapping[str, Any]

LINK_FAILING, LINK_DISABLED = "LINK_FAILING", "LINK_DISABLED"
FILLS_WHEN_STARTED = "FILLS_WHEN_STARTED"
"""Code of a link that may fill its consumer with all data whenever it is started anew."""
BECAUSE = "because of it"
"""Why a link fails, in a headline that begins with what stops it."""
_LONG = timedelta(seconds=300)
"""A supplier waits that long at most before it tries again: what ends by itself has ended by then."""
_NAMED = 3
"""Failing links that a headline names."""


def link_failing(context: DetectorContext) -> Iterator[Finding]:
    """Links over which sessions fail, each with the cause, since when, what waits behind it, and what mends it."""
    newest = context.newest()
    readings = {one.server: one.ended for one in context.topology.readings}
    for link in context.topology.links:
        failure = link.failure
        if failure is None:
            continue
        pair = _pair(context, link)
        if pair and pair["unrelated"]:
            continue  # UNRELATED_DATA says it of both servers
        if pair:
            # What other links bring does not wait for a schedule to open, nor for its turn at a consumer that they keep busy.
            without = failing_suppliers(context, link.consumer, link.suffix) if failure.reason == BUSY else frozenset()
            alone = failure.reason in (BUSY, SCHEDULE_CLOSED)
            lacked = lacked_behind(context, pair, alone, without)
            pair = {**pair, "to_send": lacked if lacked or alone or failure.reason in TRANSIENT else pair["to_send"]}
        waiting = count_behind(context, pair) if pair else None
        read = readings.get(link.supplier)
        oldest = _oldest(context, pair, read or newest.get(link.supplier))
        if failure.reason == SCHEDULE_CLOSED and waiting == 0 and not _awaited(context, link):
            continue
        if failure.reason in TRANSIENT and not (waiting and oldest and oldest >= _LONG):
            continue
        consumer = link.consumer or link.address or "an unknown server"
        says = "is closed" if failure.reason == SCHEDULE_CLOSED else "fails"
        clock = f" by the clock of {link.supplier}" if read and failure.since and failure.since - read >= _LONG else ""
        since = f"since {failure.since:%Y-%m-%d %H:%M:%S} UTC{clock} ({failure.since_is}); " if failure.since else ""
        tried = f"; its log shows {_times(failure.attempts)} since then" if failure.attempts and failure.since else ""
        yield Finding(
            "LINK_FAILING",
            "warning" if failure.reason in TRANSIENT or failure.reason == SCHEDULE_CLOSED else "error",
            f"the link {link.name} from {link.supplier} to {consumer} {says}: {failure.says}; "
            f"{since}{_behind(context, link, pair, waiting, oldest)}{tried}{_kept(context, link, pair)}",
            server=link.supplier,
            link=link.name,
            suffix=link.suffix,
            items=tuple(sorted(one["first"] for one in pair["to_send"].values())) if pair else (),
            evidence=failure.evidence,
            quotes=failure.quotes,
            fix=_fix(context, link, failure, pair),
            reason=failure.reason,
            since=failure.since.isoformat() if failure.since else None,
            waiting=waiting,
            assumes=(*failure.assumes, *([CONSUMER_GUESSED] if waiting and not link.consumer else [])),
        )


def _awaited(context: DetectorContext, link: Link) -> bool:
    """True if both its ends wait for changes of an origin, and no link that runs brings them to its consumer."""
    pending = [row for row in context.verdicts.pending if row["suffix"] == link.suffix]
    unserved = [row for row in pending if not row["suppliers"] and not row.get("through")]
    theirs, own = (
        {row["origin"] for row in rows if row["server"] == name}
        for rows, name in ((unserved, link.consumer), (pending, link.supplier))
    )
    return bool(theirs & own)


def _fix(context: DetectorContext, link: Link, failure: LinkFailure, pair: Row | None) -> tuple[Mapping[str, Any], ...]:
    """What mends a link; where its sessions would pass over changes for good, its consumer has to be filled all the same."""
    if pair and failure.reason == ANCHOR_LOST and (elsewhere := told_of_anchor(pair)):
        return (*_off_first(context, link), *elsewhere, *failure.fix[1:])
    alone = lacked_behind(context, pair, alone=True) if pair and link.consumer else {}
    hidden = sum(count for origin, count in passed_over(context, pair).items() if origin in alone) if pair else 0
    if failure.restarts:
        saved = stranded_first(context.verdicts, link.supplier, link.suffix)
        return (*_off_first(context, link), *saved, *failure.fix)
    if not hidden:
        return (*_off_first(context, link), *failure.fix)
    refill, lossy = context.topology.system.refill, lacking_what_others_have(context, link.suffix)
    source = f"{link.supplier}, or from another server that has all changes"
    if link.supplier in lossy:
        source = f"a server that has all changes: not from {link.supplier}, which lacks changes itself"
    filling = step(
        f"{refill} {link.consumer} from {source}",
        f"the log of {link.supplier} lacks {counted(hidden)} that {link.consumer} waits for, and has later ones: a session "
        "passes over what the log lacks, and no later one sends it",
        f"first see that {link.consumer} holds nothing that no other server has",
    )
    if failure.reason == LOG_CLOSED:  # the start that mends it lets a session begin
        return (*_off_first(context, link), filling, *failure.fix)
    if (
        failure.reason == CONSUMER_READ_ONLY
    ):  # what mends it lets all others begin, too: they may bring what this one lacks
        first = step(
            f"first switch {link.name} off, on {link.supplier}, until {link.consumer} has what the log of {link.supplier} lacks",
            f"as soon as it runs, a session passes over {counted(hidden)}",
        )
        return (*_off_first(context, link), first, *failure.fix, filling)
    return (*_off_first(context, link), *failure.fix, filling)


def _off_first(context: DetectorContext, link: Link) -> tuple[Mapping[str, Any], ...]:
    """What comes before the consumer of a link is started, where it is down, or may be one that is not known to run."""
    down, failure = context.topology.down, link.failure
    if link.consumer is not None:
        return (*before_start(context, link.consumer, link.suffix),) if link.consumer in down else ()
    if failure is None or failure.itself or failure.reason not in (REFUSED, UNREACHABLE, UNKNOWN):
        return ()
    unread = [failure.means] if failure.means else context.not_collected(link.suffix)
    steps = [
        saved_first(context, name, link.suffix, None if failure.means else link.address)
        for name in unread
        if not failure.means or name in down
    ]
    return tuple(one for one in steps if one)


def _kept(context: DetectorContext, link: Link, pair: Row | None) -> str:
    """Whether the log of the supplier keeps what waits until then, as the end of the sentence; empty: not known."""
    says = context.topology.system.kept_behind
    if says is None or (link.failure and link.failure.itself):
        return ""
    waiting = {of: one["first"] for of, one in pair["to_send"].items()} if pair else None
    clause = says()(context, link, pair["consumer"] if pair else link.consumer, waiting)
    return f"; {clause}" if clause else ""


def _times(attempts: int) -> str:
    return f"{attempts:,} failed {'attempt' if attempts == 1 else 'attempts'}"


def _pair(context: DetectorContext, link: Link) -> Row | None:
    """The row of the pair matrix of a link; None: of one end it is not known what it has seen."""
    consumer = link.consumer or (link.failure.means if link.failure else None)
    wanted = link.supplier, consumer, link.suffix
    return next((one for one in context.pairs if (one["supplier"], one["consumer"], one["suffix"]) == wanted), None)


def waiting_behind(context: DetectorContext, link: Link) -> tuple[int | None, str]:
    """How many changes that its consumer waits for its supplier would send over a link (None: not known), and in words."""
    pair = _pair(context, link)
    if pair is None:
        return None, ""
    pair = {**pair, "to_send": lacked_behind(context, pair)}
    waiting = sum(one["count"] for one in pair["to_send"].values())
    if not waiting:
        return waiting, ""
    read = next((one.ended for one in context.topology.readings if one.server == link.supplier), None)
    oldest = _oldest(context, pair, read or context.newest().get(link.supplier))
    return waiting, f"; {_behind(context, link, pair, waiting, oldest)}{_kept(context, link, pair)}"


def leave_off(context: DetectorContext, link: Link) -> Mapping[str, Any] | None:
    """What to do about a link that is off and would make its consumer pass over changes; None: it would not."""
    pair = _pair(context, link)
    hidden = passed_over(context, pair) if pair else {}
    if pair is None or not hidden:
        return None
    count, them = sum(hidden.values()), "it" if sum(hidden.values()) == 1 else "them"
    bringing = sorted(
        way["link"]
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == (link.consumer, link.suffix) and row["origin"] in hidden
        for way in context.linked.closed_ways(row)
        if way["consumer"] == link.consumer and not passed_over(context, way)
    )
    first = f": first do what LINK_DISABLED says on {listed(sorted({*bringing}), 'or', _NAMED)}" if bringing else ""
    return step(
        f"leave it off until {link.consumer} has the {counted(count)} of origin {listed(sorted(hidden), 'and', _NAMED)} that "
        f"{link.supplier} lacks and others have{first}",
        f"{link.supplier} would send a later change, and the vector of {link.consumer} would cover {them}: no session would ever "
        f"send {them} again",
        f"{link.consumer} passes on what it gets: the servers behind it would pass over {them}, too",
    )


def _oldest(context: DetectorContext, pair: Row | None, read: datetime | None) -> timedelta | None:
    """How old the oldest change that waits was when the supplier was read; None for one of a clock that was ahead."""
    system = context.topology.system
    made = [
        moment
        for one in (pair["to_send"].values() if pair else ())
        if (moment := system.moment(system.typed(one.get("behind") or one["first"]) or ""))
    ]
    if not (made and read) or min(made) - read >= _LONG:
        return None
    return max(read - min(made), timedelta())


def _behind(
    context: DetectorContext, link: Link, pair: Row | None, waiting: int | None, oldest: timedelta | None
) -> str:
    """What waits behind a link, in words."""
    if link.failure and link.failure.itself and not waiting:
        return "no server waits for what it would deliver"
    if pair is None or waiting is None:
        if link.blind:
            return f"how much waits behind it is not known, for no file says which server {link.address or 'its consumer'} is"
        return "how much waits behind it is not known, for one of its ends was not collected"
    if not waiting:
        return held_in_no_log(context, pair) or "nothing waits behind it yet"
    many = f"{waiting:,} {'change waits' if waiting == 1 else 'changes wait'} behind it"
    if not pair["to_send"]:
        return f"{many}, and {no_record(context, link.supplier, link.suffix)}"
    age = f", the oldest for {time_passed(oldest)}" if oldest else ""
    growing = ", and more have come since the snapshot before" if _grows(context, link, pair) else ""
    return f"{many}{age}{growing}{_on_other_ways(context, pair, waiting > 1)}"


def _grows(context: DetectorContext, link: Link, pair: Row) -> bool:
    """True if it did not run in the snapshot before, and the supplier has got changes since that the consumer has not."""
    before = context.earlier
    if before is None or not any(
        (one.supplier, one.suffix, one.name) == (link.supplier, link.suffix, link.name)
        and (one.failure or one.enabled is False)
        for one in before.links
    ):
        return False
    then = next((one for one in before.replicas if (one.server, one.suffix) == (link.supplier, link.suffix)), None)
    now = context.replica(link.supplier, link.suffix)
    if then is None or now is None:
        return False
    return any((last(now.vector, origin) or "") > (last(then.vector, origin) or "") for origin in pair["to_send"])


def _on_other_ways(context: DetectorContext, pair: Row, many: bool) -> str:
    """Who else brings what waits, over links that run, as the end of a sentence; empty if some of it has no other way."""
    to = pair["consumer"], pair["suffix"]
    rows = {
        row["origin"]: row
        for row in context.verdicts.pending
        if (row["server"], row["suffix"]) == to and not row.get("dropped_since")
    }
    them = "them" if many else "it"
    waits = [rows[origin] for origin in pair["to_send"] if origin in rows]
    failing = failing_suppliers(context, *to)
    failing |= {name for name, suffix in context.without_data if suffix == pair["suffix"]}
    ways = [[name for name in row["suppliers"] if name != pair["supplier"] and name not in failing] for row in waits]
    through = [sorted({*(row.get("through") or ())} - failing) for row in waits]
    rests = any(row.get("rests") for row in waits)
    if not waits or rests or len(waits) < len(pair["to_send"]) or any(brought_in_part(row) for row in waits):
        return ""
    if all(ways):
        return (
            f"; {' and '.join(sorted({name for way in ways for name in way}))} can deliver {them} over links that run"
        )
    if all(way or passed for way, passed in zip(ways, through, strict=True)):
        names = sorted({name for way, passed in zip(ways, through, strict=True) for name in way or passed})
        return f"; over links that run {'they come' if many else 'it comes'} through {listed(names, 'or', _NAMED)}"
    return ""


# --- in a headline, and in other findings


def failing_rows(found: Row) -> list[dict[str, Any]]:
    """The links of a diagnosis that fail, and of which a finding says so: name, supplier, consumer (None), suffix, why."""
    told = {
        (one["server"], one["suffix"], one["link"]): one.get("follows_from")
        for one in found.get("findings", ())
        if one["code"] == LINK_FAILING and not one.get("overruled_by")
    }
    return [
        {
            "name": one["name"],
            "supplier": one["supplier"],
            "consumer": one["consumer"] or one["means"],
            "suffix": one["suffix"],
            "reason": one["failing"],
            "why": BECAUSE if follows else one["fails"],
            "follows": follows is not None,
        }
        for one in found.get("links", ())
        if one.get("failing") and one["failing"] not in TRANSIENT
        for key in [(one["supplier"], one["suffix"], one["name"])]
        if key in told
        for follows in [told[key]]
    ]  # fmt: skip


def failing_say(rows: Sequence[Row]) -> str:
    """`the link a-to-b fails (invalid credentials)`, or how many fail and the first of them; empty if none does."""
    if not rows:
        return ""
    closed = any(row["reason"] == SCHEDULE_CLOSED for row in rows)
    if all(row["why"] == BECAUSE for row in rows) and len(rows) > 1:
        return f"because of it, {len(rows)} links fail: {', '.join(names_of(rows)[:_NAMED])}{_more(rows)}"
    if len(rows) == 1:
        return f"the link {names_of(rows)[0]} {'does not run' if closed else 'fails'} {_for(rows[0]['why'])}"
    by_why: dict[str, list[str]] = {}
    for row, name in zip(rows[:_NAMED], names_of(rows), strict=False):
        by_why.setdefault(row["why"], []).append(name)
    named = "; ".join(f"{', '.join(names)} {_for(why)}" for why, names in by_why.items())
    return f"{len(rows)} links {'do not run' if closed else 'fail'}: {named}{_more(rows)}"


def _more(rows: Sequence[Row]) -> str:
    return f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""


def _for(why: str) -> str:
    return why if why == BECAUSE else f"({why})"


def delivering(failing: Sequence[Row], pairs: Iterable[Row], pending: Iterable[Row]) -> list[Row]:
    """Those of the failing links over which something comes once they run: by now, or as soon as their suppliers have it."""
    decisions = {(row["supplier"], row["consumer"], row["suffix"]): row["decision"] for row in pairs}
    getting = {(row["server"], row["suffix"]) for row in pending if row["suppliers"] or row.get("through")}

    def comes(row: Row) -> bool:
        decision = decisions.get((row["supplier"], row["consumer"], row["suffix"]))
        if decision == NOTHING:
            return (row["supplier"], row["suffix"]) in getting
        return decision != ANCHOR_NOT_FOUND or row["reason"] == ANCHOR_LOST

    return [row for row in failing if comes(row)]


def all_behind(waiting: Iterable[Row], failing: Sequence[Row], links: Sequence[Row]) -> bool:
    """True if each server of these rows is the consumer of a failing link, or fed, over any number of links, by one that is."""
    waits = {(row["server"], row["suffix"]) for row in waiting}
    # A consumer that waits for nothing gets it over another link.
    behind = {(one["consumer"], one["suffix"]) for one in failing if one["consumer"]} & waits
    while (
        more := {
            (one["consumer"], one["suffix"])
            for one in links
            if (one["supplier"], one["suffix"]) in behind and one["consumer"]
        }
        - behind
    ):
        behind |= more
    return bool(waits) and waits <= behind


def waits_behind(context: DetectorContext, row: Row, to_be_filled: bool) -> list[str]:
    """The links that fail and are a finding, to the server of a row of `pending`: for a sentence about what it waits for.

    Of a server that has to be filled, not one that fails for something else and has no record for a session to begin at: once
    it runs, nothing comes over it. Nor any link that has nothing of the origin, where others that have it have no such record,
    nor one whose supplier does not name the origin any more.
    """
    server, suffix = row["server"], row["suffix"]
    mine = [one for one in context.pairs if (one["consumer"], one["suffix"]) == (server, suffix)]
    if any(one["unrelated"] for one in mine):
        return []  # not the links are to be mended, but the data
    failing = [
        link
        for link in context.topology.links
        if link.blocked and link.suffix == suffix and server in (link.consumer, link.failure and link.failure.means)
        if not (
            link.failure
            and link.failure.reason != ANCHOR_LOST
            and to_be_filled
            and begins_nowhere(_pair(context, link))
        )
    ]
    if to_be_filled and any(begins_nowhere(one) and one["link"] for one in mine):
        pairs = [_pair(context, link) for link in failing]
        if all(pair and not has_some(pair, row["origin"]) for pair in pairs):
            return []
    return [link.name for link in failing if not _names_it_no_more(context, link, row["origin"])]


def _names_it_no_more(context: DetectorContext, link: Link, origin: str) -> bool:
    """True if the supplier of a link, and all that lead to it, have a vector without the origin: its changes are never sent.

    hub cleaned 3; its log still has 97 changes of it, and no session sends any
    """
    names = context.linked.above(link.supplier, link.suffix, only_running=False) - {link.consumer}
    replicas = [context.replica(name, link.suffix) for name in names]
    known = [replica for replica in replicas if replica and replica.claims]
    return len(known) == len(names) and not any(
        origin in replica.vector or replica.origin == origin for replica in known
    )


def begins_nowhere(pair: Row | None) -> bool:
    """True if no session of a pair finds the record that it has to begin at."""
    return pair is not None and pair["decision"] == ANCHOR_NOT_FOUND


def busy_links(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The links over which changes wait for a server, if it was busy and refused all of them at the last attempt."""
    sending = {
        one["supplier"]
        for one in context.pairs
        if (one["consumer"], one["suffix"], one["decision"]) == (server, suffix, SEND)
    }
    links = [
        one
        for one in context.topology.links
        if (one.consumer, one.suffix) == (server, suffix) and one.supplier in sending and one.runs
    ]
    busy = [one.name for one in links if one.failure and one.failure.reason == BUSY]
    return sorted(busy) if len(busy) == len(links) else []


def busy_step(context: DetectorContext, server: str, suffix: str | None) -> Mapping[str, Any]:
    """What to do about a server that another supplier has, and keeps."""
    unread = context.not_collected(suffix)
    may = f", first of all {listed(unread, 'or', _NAMED)}, of which nothing was collected" if unread else ""
    return step(
        f"if they do not arrive in some minutes, see which supplier holds {server}, and whether that one hangs{may}",
        f"a session that hangs keeps {server} from all others until it ends, or the server that opened it is restarted",
    )


def passed_on(context: DetectorContext, row: Mapping[str, Any]) -> str:
    """How changes come that nobody would send now."""
    through: Sequence[str] = row["through"]
    about = row["suffix"], row["origin"]
    waiting = {one["server"] for one in context.verdicts.pending if (one["suffix"], one["origin"]) == about}
    if not waiting & {*through}:
        claim, sends = ("claims", "sends") if len(through) == 1 else ("claim", "send")
        return f"{listed(through, 'and', _NAMED)} {claim} them, and {sends} what entries there show of them"
    waits = "waits for them itself" if len(through) == 1 else "wait for them themselves"
    return f"they come through {listed(through, 'or', _NAMED)}, which {waits}"


def refuses_all(link: Link) -> bool:
    """True if a link shows that its consumer takes no change of any supplier: to switch on another one brings nothing."""
    return bool(link.blocked and link.failure and link.failure.refuses_all)


def mend_before(context: DetectorContext, link: Link) -> Mapping[str, Any] | None:
    """What comes before a link is switched on whose consumer takes no change of any supplier; None: nothing shows that."""
    to = link.consumer, link.suffix
    shows = [one.name for one in context.topology.links if (one.consumer, one.suffix) == to and refuses_all(one)]
    if not (link.consumer and shows):
        return None
    return step(
        f"first do what LINK_FAILING says on {listed(sorted(shows), 'and', _NAMED)}",
        f"{link.consumer} takes no change of any supplier: nothing arrives over {link.name} before",
    )
