"""Where sessions would start, and what the changelog has there: lost anchors, a changelog made anew, trimming that stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.closed_ways import unlogged
from workbench.diagnosis.former_origins import cleaning_first, in_the_way
from workbench.diagnosis.initialisations import initialisations
from workbench.diagnosis.lost_own_element import lost_elements, one_change_first
from workbench.diagnosis.only_holders import keep_only_holder, lacking_what_others_have, write_again_first
from workbench.diagnosis.pending_fixes import turned_away
from workbench.diagnosis.stuck_servers import fed_by, mended_first, to_be_filled
from workbench.diagnosis.without_record import keeps_none
from workbench.model import EVIDENCE_SHOWN, ITEMS_SHOWN, Finding, first_few, listed, step
from workbench.rules.assumptions import LOG_BEGINS_AT_FIRST_RECORD
from workbench.rules.send_session import ANCHOR_NOT_FOUND, SEND
from workbench.rules.vectors import last
from workbench.rules.verdicts import LOG_REPLACED, REPLACED, TOTAL
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.detectors.ignored import do_not_ignore
from workbench.systems.ds389.detectors.shown import Row, only_suffix, suffix_of_link
from workbench.systems.ds389.detectors.unrecorded import removed_after
from workbench.systems.ds389.rules.proving import PROVING
from workbench.systems.ds389.rules.sending import MISSING, PURGED, Sending
from workbench.systems.ds389.rules.supplying import NOT_FOUND
from workbench.systems.ds389.rules.trimming import trim_limits
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, line_shown, session_logs
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import not_collected

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext, LinkKey
    from workbench.topology.topology import Replica

_LONGEST_AGE = timedelta(days=30, seconds=300)
"""The greatest maximum age in common use, and the time between two runs of trimming; the changelog does not tell its own."""


class _Lines:
    """What the log of a supplier says of the anchors of one agreement: failures of the asked one, of others, and success."""

    def __init__(self) -> None:
        self.failures = 0
        self.others: set[str] = set()
        self.found_since = False
        self.kept: list[dict[str, Any]] = []

    def add(self, row: Row, place: Place, anchor: str) -> None:
        if row["position"] != anchor:
            if row["code"] == "anchor_not_located" and len(self.others) < ITEMS_SHOWN:
                self.others.add(row["position"])
            return
        if row["code"] == "position_found":
            self.found_since = True
            return
        self.found_since = False
        # A failure is told by two lines, of which the second says why; older servers write the first one only.
        self.failures += row["code"] == "anchor_not_located"
        if len(self.kept) < EVIDENCE_SHOWN:
            self.kept.append(line_shown(row, place))


def anchor_not_found(context: DetectorContext) -> Iterator[Finding]:
    """Linked pairs whose session finds no record of its anchor: nothing at all is sent, however much there is to send.

    Purged or missing is told by the rules, not by the words of the log. A missing one may be a moment's affair, when the
    consumer got the change from elsewhere first: if the log shows that the server found it since, it is none; if the log
    shows failures, but each with another anchor, it is told as an information.
    """
    lost = {
        (row["supplier"], row["suffix"], row["link"]): row
        for row in context.pairs
        if row["link"] and row["decision"] == ANCHOR_NOT_FOUND and row["anchor_class"] in (PURGED, MISSING)
        if _still_lost(context, row)
    }
    logs = {log.server: log for log in session_logs(context.case)} if lost else {}
    lines: dict[LinkKey, _Lines] = {}
    for server in sorted({server for server, _, _ in lost} & logs.keys()):
        for line, place in logs[server].lines((*NOT_FOUND, "position_found"), WITH_TEXT):
            key = server, suffix_of_link(context, server, line["link"]), line["link"]
            if pair := lost.get(key):
                lines.setdefault(key, _Lines()).add(line, place, pair["anchor"])
    found: list[tuple[Row, _Lines, bool, list[str]]] = []
    stuck: dict[tuple[str, str | None, str], list[str]] = {}
    for key, row in sorted(lost.items(), key=lambda item: (item[0][0], item[0][2], item[0][1] or "")):
        told = lines.get(key, _Lines())
        missing = row["anchor_class"] == MISSING
        if missing and told.found_since:
            continue
        moment = missing and bool(told.others) and told.failures < 2
        others = sorted(
            one["supplier"]
            for one in context.pairs
            if (one["consumer"], one["suffix"]) == (row["consumer"], row["suffix"])
            and one["link"]
            and one["link_enabled"] is not False
            and not one.get("link_failing")
            and one["decision"] == SEND
        )
        if _waits_for_it_alone(context, row):
            others = []
        found.append((row, told, moment, others))
        if not (moment or others):
            stuck.setdefault(_of_one_log(row), []).append(row["consumer"])
    for row, told, moment, others in found:
        names = stuck.get(_of_one_log(row), [])
        about = row["consumer"], row["suffix"]
        # Once an origin is cleaned, or the consumer makes a change, it begins elsewhere.
        cleaned = about in context.once(in_the_way) or about in context.once(lost_elements)
        yield Finding(
            "ANCHOR_MISSING" if row["anchor_class"] == MISSING else "ANCHOR_PURGED",
            "info" if moment else "warning" if others or cleaned else "error",
            _sentence(context, row, told, others),
            server=row["supplier"],
            link=row["link"],
            origin=context.topology.system.origin_of(row["anchor"]),
            suffix=row["suffix"],
            items=(row["anchor"],),
            evidence=(_pair_shown(row), *told.kept, *([{"failures": told.failures}] if told.failures else [])),
            fix=_repairs(context, row, others),
            assumes=(LOG_BEGINS_AT_FIRST_RECORD,) if row["anchor_class_assumed"] and not _removed(context, row) else (),
            root=""
            if moment or others or cleaned
            else f"nothing goes from {row['supplier']} to {listed(names)}: {_begins_at(context, row)}",
        )


def _of_one_log(row: Row) -> tuple[str, str | None, str]:
    return row["supplier"], row["suffix"], row["anchor_class"]


def _still_lost(context: DetectorContext, row: Row) -> bool:
    """False if only the consumer's vector is behind: read before its changelog, it names an anchor that nobody asks for."""
    supplier, consumer = (context.replica(row[end], row["suffix"]) for end in ("supplier", "consumer"))
    if not (supplier and consumer and supplier.log):
        return True
    seen = consumer.seen()
    if seen == consumer.vector:
        return True
    log = context.case.log(supplier.log)
    talk = Sending().open(log, supplier.vector, seen, consumer.origin or "")
    return talk.start.decision == ANCHOR_NOT_FOUND


def _waits_for_it_alone(context: DetectorContext, row: Row) -> bool:
    """True if the consumer of the pair waits for changes of which its supplier has some, and that no running link would bring."""
    supplier, typed = context.replica(row["supplier"], row["suffix"]), context.topology.system.typed
    seen = supplier.seen() if supplier else {}
    lacks = [
        typed(one["position"]) or ""
        for one in context.verdicts.missing
        if (one["server"], one["suffix"]) == (row["supplier"], row["suffix"])
    ]

    def has(one: Row) -> bool:
        first, upto = typed(one["first"]) or "", typed(one["last"]) or ""
        mine = (key for key in lacks if context.topology.system.origin_of(key) == one["origin"])
        without = max(one.get("lost") or 0, sum(first <= key <= upto for key in mine))
        return (last(seen, one["origin"]) or "") >= first and without < one["count"]

    return any(
        (one["server"], one["suffix"]) == (row["consumer"], row["suffix"])
        and not (one["suppliers"] or one.get("through"))
        and has(one)
        for one in context.verdicts.pending
    )


def _why(row: Row) -> str:
    return "is missing in" if row["anchor_class"] == MISSING else "is no longer in"


def _begins_at(context: DetectorContext, row: Row) -> str:
    if keeps_none(context, row["supplier"], row["suffix"]):
        return f"{row['supplier']} keeps no changelog"
    return f"the record to begin at {_why(row)} the changelog of {row['supplier']}"


def _removed(context: DetectorContext, row: Row) -> datetime | None:
    """When the supplier removed the changelog that may have had the record; None: no line tells of that."""
    system = context.topology.system
    made = system.moment(system.typed(row["anchor"]) or "")
    return (
        removed_after(context, row["supplier"], row["suffix"], made) if row["anchor_class"] == PURGED and made else None
    )


def _sentence(context: DetectorContext, row: Row, told: _Lines, others: list[str]) -> str:
    why, removed = _why(row), _removed(context, row)
    assumed = " (assumed: the changelog does not say how far it was trimmed)" if row["anchor_class_assumed"] else ""
    if removed:
        assumed = f", which was removed at {removed:%Y-%m-%d %H:%M:%S} UTC, when replication was switched off there"
    often = "once" if told.failures == 1 else f"{told.failures:,} times"
    logged = f"; its log shows the same failure {often}" if told.failures else ""
    way = f"; {', '.join(others)} can still serve {row['consumer']}" if others else ""
    if keeps_none(context, row["supplier"], row["suffix"]):
        return (
            f"{row['supplier']} can send nothing to {row['consumer']}: it keeps no changelog (nsDS5Flags is 0), and the session "
            f"would have to start at the record {row['anchor']}{logged}{way}"
        )
    return (
        f"{row['supplier']} can send nothing to {row['consumer']}: the record {row['anchor']}, at which the session has to "
        f"start, {why} its changelog{assumed}{_put_back(context, row)}{logged}{way}"
    )


def _put_back(context: DetectorContext, row: Row) -> str:
    """What brought the supplier its data, and a new log with them, after the record was made, in words; empty: nothing tells."""
    server, suffix = row["supplier"], row["suffix"]
    resets = context.verdicts.resets.get((server, suffix), ())
    newest = max(
        (one for one in resets if one.sure and one.kind != LOG_REPLACED), key=lambda one: one.ended, default=None
    )
    evidence = Evidence(context.case, context.topology, suffix, [server])
    if newest is not None and newest.kind == TOTAL:
        made = context.topology.system.moment(context.topology.system.typed(row["anchor"]) or "")
        replica = context.replica(server, suffix)
        came = initialisations(evidence, replica) if replica and made and made < newest.ended else ()
        by = {supplier for supplier, began, ended in came if began <= newest.ended and newest.began <= ended}
        when = f"{newest.ended:%Y-%m-%d %H:%M:%S} UTC"
        return f"; {listed(sorted(by))} initialised {server} at {when}, which made its changelog anew" if by else ""
    # A log that was made anew, nobody says by what, counts as data that were replaced: no line tells of these.
    if (
        newest is None
        or newest.kind != REPLACED
        or newest.failed
        or newest.ended not in evidence.moments(server, _BACK)
    ):
        return ""
    return f"; the data of {server} came from a backup or a file at {newest.ended:%Y-%m-%d %H:%M:%S} UTC (its errors log says so)"


def _pair_shown(row: Row) -> dict[str, Any]:
    keys = (
        "supplier",
        "consumer",
        "link",
        "decision",
        "anchor",
        "anchor_included",
        "anchor_class",
        "anchor_class_assumed",
    )
    return {key: row[key] for key in keys}


def _repairs(context: DetectorContext, row: Row, others: list[str]) -> tuple[Mapping[str, Any], ...]:
    if others:
        return (
            step(f"let {others[0]} serve {row['consumer']}, then look again", "it still has the record to start at"),
        )
    consumer, suffix = row["consumer"], row["suffix"]
    if first := cleaning_first(context, consumer, suffix) or one_change_first(context, consumer, suffix):
        return (first,)
    beware = do_not_ignore(context, row["supplier"], suffix, row["link"])
    if first := keep_only_holder(context, consumer, suffix) or write_again_first(context, consumer, suffix):
        return (first,)
    if (consumer, suffix) in context.once(to_be_filled):
        return (
            step(
                f"do what REINIT_REQUIRED says of {consumer}",
                "without the record no session starts, whatever else the changelog has",
                f"{beware}; import no changelog",
            ),
        )
    feeding = fed_by(context, consumer, suffix)
    if feeding and _all_wait(context, [consumer, *feeding], suffix):
        return (
            step(
                f"do what PENDING_CHANGES says of {consumer}",
                f"{listed(feeding, 'and')} {'waits' if len(feeding) == 1 else 'wait'} for the same changes, which no log has",
                f"{beware}; import no changelog",
            ),
        )
    if feeding:
        return (
            step(
                f"see that what {consumer} waits for comes to {listed(feeding, 'or')}, which passes it on to {consumer}",
                f"sessions of {listed(feeding, 'and')} with {consumer} begin: {consumer} needs no other data",
                f"{beware}; import no changelog",
            ),
        )
    replica = context.replica(consumer, suffix)
    if replica and (first := mended_first(context, replica, lacking_what_others_have(context, suffix))):
        return ({**first, "caution": f"{beware}; import no changelog"},)
    another = _another(context, row) or step(
        f"look for a supplier that has the record {row['anchor']} and what waits, and make a temporary agreement from it",
        "one that has both can bring the consumer up to date without a loss",
    )
    return (
        *([another] if _waits_elsewhere(context, row) else []),
        step(
            f"initialise {row['consumer']} from the server with the most complete data",
            "without the record no session starts, whatever else the changelog has",
            "changes that only the consumer holds are lost; attributes that a fractional agreement leaves out are lost there, "
            f"too. {beware.replace('do not', 'Do not', 1)}, and do not import a changelog",
        ),
    )


def _all_wait(context: DetectorContext, servers: Sequence[str], suffix: str | None) -> bool:
    """True if all of these servers wait for changes of one origin that no log has."""
    waiting = [
        {
            one["origin"]
            for one in context.verdicts.pending
            if (one["server"], one["suffix"]) == (name, suffix) and unlogged(one)
        }
        for name in servers
    ]
    return bool(set.intersection(*waiting))


def _another(context: DetectorContext, row: Row) -> Mapping[str, Any] | None:
    """The step with the collected server that has the record and what waits, over its link or a new one; None: there is none."""
    consumer, suffix = row["consumer"], row["suffix"]
    lacking = lacking_what_others_have(context, suffix)
    mine = [one for one in context.verdicts.pending if (one["server"], one["suffix"]) == (consumer, suffix)]
    able = [
        one
        for one in context.pairs
        if (one["consumer"], one["suffix"], one["decision"]) == (consumer, suffix, SEND)
        if _brought(one, mine) and not one["unrelated"] and one["supplier"] not in lacking
        if not turned_away(context, suffix, one["supplier"], consumer)
    ]
    if not able:
        return None
    sends = {one["supplier"]: _brought(one, mine) for one in able}
    in_order = sorted(able, key=lambda one: str(one["supplier"]))  # of equal ones the first, as in a plan
    best = max(in_order, key=lambda one: (sends[one["supplier"]], bool(one["link"])))
    waits = sum(one["count"] for one in mine)
    brings = f"what {consumer} waits for"
    if sends[best["supplier"]] < waits:
        brings = f"{sends[best['supplier']]:,} of the {waits:,} changes that {consumer} waits for"
    supplier = best["supplier"]
    off = best["link"] and best["link_enabled"] is False
    do = (
        f"do what LINK_DISABLED says on {best['link']} of {supplier}"
        if off
        else f"do what LINK_FAILING says on {best['link']} of {supplier}"
        if best["link"] and best.get("link_failing")
        else f"let {best['link']} of {supplier} run"
        if best["link"]
        else f"make a temporary agreement from {supplier} to {consumer}"
    )
    return step(do, f"the changelog of {supplier} has the record at which a session of it begins, and {brings}")


def _brought(pair: Row, waiting: Iterable[Mapping[str, Any]]) -> int:
    """How many of the changes that a server waits for a session would bring; what it has got by now is not among them."""
    return sum(
        min(sent["count"], row["count"])
        for row in waiting
        if (sent := pair["to_send"].get(row["origin"])) and sent["last"] >= row["first"]
    )


def _waits_elsewhere(context: DetectorContext, row: Row) -> bool:
    """False if all servers were collected, and what the consumer of the pair waits for is on the supplier alone."""
    if not_collected(context.topology):
        return True
    ends = [context.replica(row[end], row["suffix"]) for end in ("supplier", "consumer")]
    supplier, consumer = (one.seen() if one else {} for one in ends)
    return any(
        (last(consumer, origin) or "") < (last(one.seen(), origin) or "")
        for one in context.topology.replicas
        for origin in supplier
        if one.suffix == row["suffix"] and one not in ends
    )


def changelog_recreated(context: DetectorContext) -> Iterator[Finding]:
    """Changelogs that the server emptied by its own account, or that hold nothing but the marks of a new beginning."""
    told: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for log in session_logs(context.case):
        for row, place in log.lines(("changelog_recreated",), [*WITH_TEXT, "suffix"]):
            told.setdefault((log.server, row["suffix"]), []).append(line_shown(row, place))
    for one in context.topology.replicas:
        marked = _only_marks(one)
        lines = [
            line
            for (server, suffix), some in told.items()
            if server == one.server and (suffix == one.suffix or one.suffix is None)
            for line in some
        ]
        if not marked and not lines:
            continue
        stuck = sorted(
            row["consumer"]
            for row in context.pairs
            if (row["supplier"], row["suffix"]) == (one.server, one.suffix)
            and row["link"]
            and row["decision"] == ANCHOR_NOT_FOUND
            and (row["consumer"], row["suffix"]) not in context.once(in_the_way)
            and (marked or _older(context, row["anchor"], lines))
        )
        how = "has a changelog that holds only the marks of a new beginning"
        how = how if marked else "recreated its changelog (its errors log says so)"
        whom = f"; it cannot serve {', '.join(stuck)}" if stuck else ""
        about = [{"file": one.log.file, **_counted(one)}] if one.log else []
        yield Finding(
            "CHANGELOG_RECREATED",
            "warning" if stuck else "info",
            f"{one.server} {how}, which shows nothing of what was before{whom}",
            server=one.server,
            suffix=one.suffix,
            evidence=(*about, *first_few(lines)),
            fix=(
                step(
                    "let another supplier serve the consumers that are behind",
                    "what is not in this changelog can only come from another one",
                    "absence from this changelog proves nothing of the changes before its beginning",
                ),
            )
            if stuck
            else (),
        )


_BACK = frozenset({"restore", "import_end"})
_CLOSED, _REPLACED = "changelog_not_open", ("replica_offline", "import_begin", "restore", "total_receive")
_OPENED = ("starting", "stopping", "stopped", *sorted(PROVING.log_opened))
_JUST_SAID = timedelta(minutes=10)


def changelog_closed(context: DetectorContext) -> Iterator[Finding]:
    """Suppliers whose server says that no changelog is open, and says nothing since that opens one.

    So it is on a consumer that was made a supplier while it ran; a restart opens the changelog. While data is replaced none is
    open either, and on a consumer there is none: that is as it should be.
    """
    for log in session_logs(context.case):
        lines: list[tuple[Row, Place]] = []
        replaced = False
        for row, place in log.lines((_CLOSED, *_REPLACED, *_OPENED), WITH_TEXT):
            replaced = row["code"] in _REPLACED or (replaced and row["code"] == _CLOSED)
            if row["code"] in _OPENED:
                lines = []
            elif not replaced and place.at is not None:
                lines.append((row, place))
        closed = [
            one for one in context.topology.replicas if one.server == log.server and _unopened(context, one, lines)
        ]
        if len(closed) != 1 or only_suffix(context, log.server) != closed[0].suffix:
            continue  # the lines do not tell of which suffix
        (one,), (_, first), (_, last) = closed, lines[0], lines[-1]
        assert first.at is not None and last.at is not None
        begun, when = f"{first.at:%Y-%m-%d %H:%M:%S}", f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
        when = f"from {begun} to {when}" if not when.startswith(begun) else f"at {when}"
        yield Finding(
            "CHANGELOG_CLOSED",
            "error",
            f"{one.server} is a supplier, and no changelog is open there: its errors log says so {when}, and shows no later "
            "start. What is written there is in no changelog, and no session sends it",
            server=one.server,
            suffix=one.suffix,
            evidence=first_few(line_shown(row, place) for row, place in lines),
            root=f"no changelog is open on {one.server}",
            fix=(
                *_unlogged_first(context, one),
                step(
                    f"restart {one.server}: it opens its changelog when it starts",
                    "so it is on a consumer that was made a supplier while it ran; from the start on it records what is written "
                    "there, and not what was written before",
                    f"write nothing on {one.server} before that. What was written there meanwhile has to be written again on "
                    f"another supplier; until that is done, do not initialise {one.server}, and make no link from it",
                ),
            ),
        )


def _unlogged_first(context: DetectorContext, one: Replica) -> Iterator[Mapping[str, Any]]:
    """What comes before such a supplier logs its changes again: those that it made before are in no log."""
    waiting = sorted(
        {
            row["server"]
            for row in context.verdicts.pending
            if (row["suffix"], row["origin"]) == (one.suffix, one.origin) and row["server"] != one.server
            if not (row["suppliers"] or row.get("through"))
        }
    )
    if waiting:
        yield step(
            f"first do what PENDING_CHANGES says of {listed(waiting)}",
            f"{one.server} made what {'it waits' if len(waiting) == 1 else 'they wait'} for, and no log has it: as soon as "
            f"{one.server} logs a later change, a session passes over it for good",
        )


def _unopened(context: DetectorContext, one: Replica, lines: Sequence[tuple[Row, Place]]) -> bool:
    """True for a supplier, as these lines were written, of which neither its log nor another server shows a change since."""
    if not lines or one.origin is None or not one.keeps_log:
        return False
    moment = context.topology.system.moment
    first, last = (lines[number][1].at for number in (0, -1))
    assert first is not None and last is not None
    seen = [replica.seen().get(one.origin) for replica in context.topology.replicas
            if replica.suffix == one.suffix and replica.server != one.server]  # fmt: skip
    logged = one.log.facts.get("by_origin", {}).get(one.origin) if one.log else None
    shown = [moment(span.max) for span in seen if span and span.max] + [moment(str(logged["max"])) if logged else None]
    own = one.vector.get(one.origin)
    made = moment(own.min) if own and own.min else None
    newest = context.newest().get(one.server)
    was = (made is not None and made <= last) or (newest is not None and newest - last <= _JUST_SAID)
    return was and not any(at is not None and at > first for at in shown)


def _older(context: DetectorContext, anchor: str | None, lines: Sequence[Mapping[str, Any]]) -> bool:
    """True if a change may have been in the changelog that was there before: what is younger was lost in another way."""
    system = context.topology.system
    made = system.moment(system.typed(anchor) or "") if anchor else None
    times = [datetime.fromisoformat(line["at"]) for line in lines if line.get("at")]
    return made is None or not times or made <= max(times)


def _counted(one: Replica) -> dict[str, int]:
    facts = one.log.facts if one.log else {}
    return {"changes": facts.get("csns", 0), "dummy_records": facts.get("helpers", 0)}


def _only_marks(one: Replica) -> bool:
    counted = _counted(one)
    return counted["dummy_records"] > 0 and counted["changes"] == 0


def trim_stopped(context: DetectorContext) -> Iterator[Finding]:
    """Changelogs with records that were logged more than a month before the newest one and that no agreement still needs.

    Only `dbscan` tells when a record was logged; the time in its CSN may be much older, where a change arrived late. The
    newest record of every replica ID stays for ever, and so does what a direct consumer lacks, by what is remembered of it.
    """
    for one in context.topology.replicas:
        newest = context.highest("changes", "logged_at", one.log) if one.log else None
        if newest is None:
            continue
        sends = [link for link in context.topology.links if (link.supplier, link.suffix) == (one.server, one.suffix)]
        limits = trim_limits(one.vector, [link.remembered for link in sends if link.remembered is not None])
        origin, position, aged = pc.field("origin"), pc.field("position"), pc.field("logged_at") < newest - _LONGEST_AGE
        not_needed = [
            (origin == rid) & (position < limit) for rid, limit in sorted(limits.items()) if limit is not None
        ]
        if not not_needed:
            continue
        due = 0
        kept: list[dict[str, Any]] = []
        for batch in _records(context, one, _RECORD, aged & reduce(or_, not_needed)):
            due += batch.num_rows
            rows = batch.slice(0, EVIDENCE_SHOWN - len(kept)).to_pylist()
            kept += [{**row, "logged_at": row["logged_at"].isoformat()} for row in rows]
        lowest = (pc.min(batch["position"]).as_py() for batch in _records(context, one, ["position"], aged))
        first = min(lowest, default=None) if due else None
        if first:
            rid = origin_of(first)
            yield Finding(
                "TRIM_STOPPED",
                "warning",
                f"the changelog of {one.server} keeps {due:,} records that were logged more than 30 days before its newest one "
                f"and that no consumer needs; the first record is of replica ID {rid}",
                server=one.server,
                origin=rid,
                suffix=one.suffix,
                items=(first,),
                evidence=first_few(kept, due),
                fix=(
                    step(
                        f"see whether replica ID {rid} is idle or dead; clean it if it is dead, else make one change "
                        "there",
                        "trimming goes by CSN and stops at the first record that may not go: one aged record of an idle replica "
                        "ID can hold up all others",
                        "if nsslapd-changelogmaxage was set to more than 30 days on purpose, nothing is wrong",
                    ),
                ),
            )


_RECORD = ["file", "offset", "origin", "position", "logged_at"]


def _records(
    context: DetectorContext, one: Replica, columns: list[str], where: pc.Expression
) -> Iterator[pa.RecordBatch]:
    """The records of the replica's present changelog for which `where` holds, batch by batch."""
    mine = where & (pc.field("file") == (one.log.file if one.log else ""))
    yield from context.rows("changes", columns, mine, snapshot=context.topology.snapshot, server=one.server)
