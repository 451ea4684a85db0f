"""What looks for findings of Kanidm's own: links that cannot supply, origins and tombstones past the window, conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.unrelated_data import odd_ones
from workbench.model import (
    GENERATION,
    HOLES,
    IDENTITY,
    ITEMS_SHOWN,
    LAG,
    Detectors,
    Finding,
    counted,
    first_few,
    listed,
    step,
)
from workbench.replication.entry.diagnosis.automatic_refresh import deletes_its_data
from workbench.replication.entry.diagnosis.file_times import of_one_time
from workbench.replication.entry.diagnosis.state_comparison import now_at, ranges_of, states_of, version_of
from workbench.replication.entry.rules.entries import Ranges
from workbench.rules.assumptions import CLOCKS_AGREE
from workbench.systems.kanidm.cid import SECOND, cid_text, nanoseconds
from workbench.systems.kanidm.gone_changes import changes_thrown_away
from workbench.systems.kanidm.logged import green_lines, told_by_logs
from workbench.systems.kanidm.other_suppliers import brought_together, instead_of_refresh, other_suppliers
from workbench.systems.kanidm.pulling import CHANGELOG_MAX_AGE
from workbench.systems.kanidm.refresh_direction import (
    gains_nothing,
    still_supply,
    stop_taking_anew,
    the_other_way_round,
    thrown_away,
)
from workbench.systems.kanidm.rules.ranges import CRITICAL, NO_OVERLAP, OK, REFRESH, UNWILLING, UNWILLING_TO_SUPPLY

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Replica

_CLOCK_WINDOW = 600 * SECOND
"""From here on a consumer warns of a clock that is ahead."""

Row = Mapping[str, Any]


def _days(time: int) -> str:
    return f"{time / SECOND / 86400:.1f} days"


def _proof(row: Row) -> Iterator[dict[str, Any]]:
    for kind in ("lag", "advance"):
        for origin, (theirs, mine) in row[kind].items():
            ends = ("supplier_first", "consumer_last") if kind == "lag" else ("supplier_last", "consumer_first")
            yield {
                "supplier": row["supplier"],
                "consumer": row["consumer"],
                "origin": origin,
                **dict(zip(ends, (theirs, mine), strict=True)),
            }


def _best(context: DetectorContext, consumer: str, suppliers: Sequence[str], suffix: str | None) -> str:
    """The supplier that has seen most of what there is."""

    def seen(server: str) -> tuple[int, int]:
        replica = context.replica(server, suffix)
        ranges = ranges_of(context.topology, replica) if replica else {}
        return sum(last for _, last in ranges.values()), -len(ranges)

    lacking = {row["server"] for row in context.verdicts.missing if row["suffix"] == suffix}
    whole = [one for one in suppliers if one not in lacking] or list(suppliers)
    return max(sorted(whole), key=seen)


def _lost_with(context: DetectorContext, server: str, suffix: str | None, source: str) -> str:
    only = thrown_away(context, server, source, suffix)
    lost = f"{counted(only)} that {server} has and {source} lacks" if only else f"whatever only {server} holds"
    broken = sum(batch.num_rows for batch in context.rows("messages", ["code"], _BROKEN, server=source))
    first = (
        f"; mend {source} first, of which a verification tells {broken:,} errors: such data may be refused"
        if broken
        else ""
    )
    return f"a refresh deletes its database and takes that of the other: it throws away {lost}{first}"


_BROKEN = pc.field("code").isin(
    pa.array(["RefintNotUpheld", "ChangeStateDesynchronised", "RuvInconsistent", "SchemaViolation"])
)
"""Errors that `database verify` prints of data that others would have to take in."""


def _of_links(context: DetectorContext, decision: str, end: str) -> Iterator[tuple[str, str | None, list[Row]]]:
    """The pairs of that decision, by the server at one end of them."""
    found: dict[tuple[str | None, str], list[Row]] = {}
    for row in context.pairs:
        if row["decision"] == decision:
            found.setdefault((row["suffix"], row[end]), []).append(row)
    for (suffix, server), rows in sorted(found.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        yield server, suffix, rows


def refresh_required(context: DetectorContext) -> Iterator[Finding]:
    """Consumers that their suppliers cannot bring up to date any more."""
    for consumer, suffix, rows in _of_links(context, REFRESH, "consumer"):
        suppliers = [row["supplier"] for row in rows]
        others = still_supply(context, consumer, suffix)
        behind = max(nanoseconds(first) - nanoseconds(last) for row in rows for first, last in row["lag"].values())
        also = f"; {', '.join(others)} still could" if others else ""
        anew = _taken_anew(context, consumer, suffix, suppliers)
        lost = max((thrown_away(context, consumer, one, suffix) for one in anew), default=0)
        ahead = {row["supplier"]: {of: first for of, (first, _) in row["lag"].items()} for row in rows}
        still = other_suppliers(context, consumer, suffix, ahead)
        instead = instead_of_refresh(context, consumer, suffix, suppliers, still)
        best = _best(context, consumer, suppliers, suffix)
        with_loss = thrown_away(context, consumer, best, suffix) > 0
        refresh = _turned(context, consumer, suffix, best, instead) or step(
            f"let {consumer} pull: it takes all data of {' or '.join(anew)} by itself, for `automatic_refresh` is set"
            if anew
            else f"{'only if that cannot be done, ' if instead else ''}refresh {consumer} from {best}"
            f"{'' if with_loss else f', or set `automatic_refresh` on its link to {best}'}",
            "what it lacks is in no changelog any more, only in the entries themselves"
            if not instead
            else f"what it lacks is in no changelog of {listed(suppliers)} any more",
            _lost_with(context, consumer, suffix, best),
        )
        fix = _in_order(instead, refresh, needless=bool(still.linked) and not anew)
        yield Finding(
            "REFRESH_REQUIRED",
            "warning" if others and not lost else "error",
            f"{consumer} is up to {_days(behind)} behind what {', '.join(suppliers)} still {_verb(suppliers)}: "
            + (f"{deletes_its_data({consumer: anew})}, {_without(anew, lost)}" if lost else f"it gets nothing{also}"),
            server=consumer,
            suffix=suffix,
            items=tuple(sorted({last for row in rows for _, last in row["lag"].values()})),
            evidence=first_few(proof for row in rows for proof in _proof(row)),
            fix=(stop_taking_anew(consumer, anew, lost), *fix) if lost else fix,
            assumes=of_one_time(context, consumer, suffix, rows),
        )


def _without(suppliers: Sequence[str], lost: int) -> str:
    return f"which {'lacks' if len(suppliers) == 1 else 'lack'} {counted(lost)} that it has"


def _turned(
    context: DetectorContext,
    server: str,
    suffix: str | None,
    source: str,
    instead: Mapping[str, Any] | None,
) -> Mapping[str, Any] | None:
    """What to do about a server that is behind what others remember, where a refresh of it is not the way; else None.

    It is not where its source lacks changes of it, and no other server is ahead of it: then the source is the odd one.
    """
    others = still_supply(context, server, suffix)
    lost = thrown_away(context, server, source, suffix)
    if not lost or instead is not None:
        return None
    if gains_nothing(context, server, source, suffix):
        return the_other_way_round(server, source, lost, _lost_with(context, source, suffix, server))
    return _choose(source, sorted({server, *others})) if others else None


def _in_order(
    instead: Mapping[str, Any] | None, refresh: Mapping[str, Any], *, needless: bool
) -> tuple[Mapping[str, Any], ...]:
    """What to do first, and the refresh behind it unless that is `needless`."""
    if instead is None:
        return (refresh,)
    return (instead,) if needless else (instead, refresh)


def _taken_anew(context: DetectorContext, consumer: str, suffix: str | None, suppliers: Sequence[str]) -> list[str]:
    """Those of the suppliers whose data the consumer takes by itself when they ask it to be refreshed."""
    links = [one for one in context.topology.links if (one.consumer, one.suffix) == (consumer, suffix)]
    return sorted(one.supplier for one in links if one.automatic and one.enabled and one.supplier in suppliers)


def supplier_behind(context: DetectorContext) -> Iterator[Finding]:
    """Suppliers that lack what their consumers remember from."""
    for supplier, suffix, rows in _of_links(context, UNWILLING, "supplier"):
        consumers = [row["consumer"] for row in rows]
        refreshed = any(
            row["decision"] == REFRESH
            for row in context.pairs
            if (row["consumer"], row["suffix"]) == (supplier, suffix)
        )
        ahead = {row["consumer"]: {of: first for of, (_, first) in row["advance"].items()} for row in rows}
        still = other_suppliers(context, supplier, suffix, ahead)
        instead = instead_of_refresh(context, supplier, suffix, consumers, still)
        best = _best(context, supplier, consumers, suffix)
        refresh = _turned(context, supplier, suffix, best, instead) or step(
            f"{'only if that cannot be done, ' if instead else ''}refresh {supplier} from {best}",
            "as long as it is behind, nothing goes from it to the others, not even what is in order",
            _lost_with(context, supplier, suffix, best),
        )
        yield Finding(
            "SUPPLIER_BEHIND",
            "warning" if refreshed else "error",
            f"{supplier} is behind what {', '.join(consumers)} still {_verb(consumers)}, and supplies nothing to "
            f"{'it' if len(consumers) == 1 else 'them'}",
            server=supplier,
            suffix=suffix,
            items=tuple(sorted({last for row in rows for last, _ in row["advance"].values()})),
            evidence=first_few(proof for row in rows for proof in _proof(row)),
            fix=_in_order(instead, refresh, needless=bool(still.linked)),
            assumes=of_one_time(context, supplier, suffix, rows),
        )


def versions_differ(context: DetectorContext) -> Iterator[Finding]:
    """Servers of different versions: a consumer refuses what comes from a server of another one."""
    shown = context.topology
    groups = dict.fromkeys((one.suffix, one.generation) for one in shown.replicas if one.claims)
    for suffix, generation in groups:
        mine = [one for one in shown.replicas if (one.suffix, one.generation) == (suffix, generation)]
        told = {one.server: version_of(context.case, shown, one) for one in mine}
        versions = {name: version for name, version in told.items() if version is not None}
        if len({*versions.values()}) < 2:
            continue
        of = {version: sorted(name for name in versions if versions[name] == version) for version in versions.values()}
        order = sorted(of, key=_parts)
        behind = sorted(name for version in order[:-1] for name in of[version])
        said = listed([f"{version} ({listed(of[version])})" for version in order])
        yield Finding(
            "VERSIONS_DIFFER",
            "warning",
            f"servers are of versions {said}: nothing goes between servers of different versions until all are of one",
            server=behind[0] if len(behind) == 1 else None,
            suffix=suffix,
            evidence=first_few({"server": name, "version": versions[name]} for name in sorted(versions)),
            root=f"servers are of versions {said}: nothing goes between them until all are of one",
            fix=(
                step(
                    f"bring {listed(behind)} to version {order[-1]}",
                    "a consumer refuses what a server of another version sends; all that waits is sent once they match, if no "
                    f"server stays behind for {_days(CHANGELOG_MAX_AGE)}",
                    "a backup is restored by the version that wrote it alone",
                ),
            ),
        )


def _parts(version: str) -> tuple[tuple[int, str], ...]:
    """A version as it is compared: 1.9 is before 1.10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in version.split("."))


def _apart(context: DetectorContext, decision: str) -> Iterator[tuple[str, list[str], str | None, list[Row]]]:
    """The pairs of that decision: the server that most others are apart from, those others, and the rows."""
    suffixes = {row["suffix"] for row in context.pairs}
    for suffix in sorted(suffixes, key=lambda suffix: suffix or ""):
        rows = [row for row in context.pairs if (row["decision"], row["suffix"]) == (decision, suffix)]
        for server, others in odd_ones({frozenset((row["supplier"], row["consumer"])) for row in rows}):
            mine = [row for row in rows if {row["supplier"], row["consumer"]} <= {server, *others}]
            yield server, others, suffix, [row for row in mine if server in (row["supplier"], row["consumer"])]


def diverged(context: DetectorContext) -> Iterator[Finding]:
    """Servers of which each is behind the other one."""
    for server, others, suffix, rows in _apart(context, CRITICAL):
        names = ", ".join(others)
        ways = brought_together(context, rows, (server, *others), suffix)
        through = len(ways) == 1 + len(others)
        yield Finding(
            "DIVERGED",
            "warning" if through else "error",
            f"{server} is behind what {names} still {_verb(others)}, and the other way round: nothing goes between them"
            f"{'; others still supply both' if through else ''}",
            server=server,
            suffix=suffix,
            evidence=first_few(proof for row in rows for proof in _proof(row)),
            fix=tuple(ways) if through else (_choose(server, others),),
            assumes=of_one_time(context, server, suffix, rows),
        )


def _verb(servers: Sequence[str]) -> str:
    return "remembers" if len(servers) == 1 else "remember"


def no_overlap(context: DetectorContext) -> Iterator[Finding]:
    """Servers that know none of each other's origins."""
    for server, others, suffix, rows in _apart(context, NO_OVERLAP):
        both = [row for row in rows if not _back_works(context, row)]
        yield Finding(
            "NO_OVERLAP",
            "error" if both else "warning",
            f"{server} has no origin in common with {', '.join(others)} that is still remembered: nothing goes between them"
            if len(rows) == 2 * len(others)
            else "; ".join(_one_way(row) for row in rows),
            server=server,
            suffix=suffix,
            evidence=first_few(
                {"server": name, **_first_and_last(context, name, suffix)} for name in (server, *others)
            ),
            fix=(
                _choose(server, others)
                if both
                else step(
                    f"let {', '.join(sorted({row['supplier'] for row in rows}))} pull from "
                    f"{', '.join(sorted({row['consumer'] for row in rows}))} first",
                    "the other way the pull works, and brings the origins that both know then",
                ),
            ),
        )


def _back_works(context: DetectorContext, row: Row) -> bool:
    """True if the supplier of a pair could pull from its consumer."""
    back = (row["consumer"], row["supplier"], row["suffix"])
    return any(
        (one["supplier"], one["consumer"], one["suffix"]) == back and one["decision"] == OK and one["delivers"]
        for one in context.pairs
    )


def _one_way(row: Row) -> str:
    return (
        f"{row['consumer']} knows none of the origins that {row['supplier']} still remembers: nothing goes from "
        f"{row['supplier']} to {row['consumer']}"
    )


def _first_and_last(context: DetectorContext, server: str, suffix: str | None) -> dict[str, str]:
    replica = context.replica(server, suffix)
    ranges = ranges_of(context.topology, replica) if replica else {}
    return {
        origin: f"{cid_text(low, origin)} to {cid_text(high, origin)}" for origin, (low, high) in sorted(ranges.items())
    }


def _choose(server: str, others: Sequence[str]) -> Mapping[str, Any]:
    return step(
        f"find out whether {server} or {', '.join(others)} has the right data, then refresh the other side from it",
        "no session can bring them together: each has forgotten what the other one lacks",
        "a refresh throws away everything that only the refreshed server holds: save it first",
    )


def stalled_but_green(context: DetectorContext) -> Iterator[Finding]:
    """Pulls that supply nothing and are logged as a success."""
    linked, said = any(row["link"] for row in context.pairs), green_lines(context)
    for row in context.pairs:
        if row["message"] != UNWILLING_TO_SUPPLY or (linked and (not row["link"] or row["link_enabled"] is False)):
            continue
        if row["leads_elsewhere"]:
            continue
        yield Finding(
            "STALLED_BUT_GREEN",
            "warning",
            f"{row['consumer']} logs a success when it pulls from {row['supplier']}, which supplies nothing: {row['decision']}",
            server=row["consumer"],
            link=row["link"],
            suffix=row["suffix"],
            evidence=(
                *(first_few(_proof(row)) or ({"decision": row["decision"], "message": row["message"]},)),
                *said.get(row["consumer"], ()),
            ),
            fix=(
                step(
                    f"do not trust the word success in the log of {row['consumer']}: look at the other findings on the two",
                    "an answer that supplies nothing is taken for one that had nothing to supply",
                ),
            ),
            assumes=tuple(
                sorted(
                    {
                        code
                        for end in ("supplier", "consumer")
                        for code in of_one_time(context, row[end], row["suffix"], [row])
                    }
                )
            )
            if row["consumer"] not in said
            else (),
        )


# --- origins


def _replicas(context: DetectorContext) -> Iterator[tuple[Replica, Ranges, int]]:
    """The servers with a vector, what they claim, and what time it was there."""
    for one in context.topology.replicas:
        if one.claims:
            yield one, ranges_of(context.topology, one), now_at(context.case, context.topology, one)


def stale_origin(context: DetectorContext) -> Iterator[Finding]:
    """Origins in vectors of which the last change is older than the window, at every server."""
    shown: dict[tuple[str | None, str], list[tuple[str, int, int]]] = {}
    for one, ranges, now in _replicas(context):
        for origin, (_, last) in ranges.items():
            shown.setdefault((one.suffix, origin), []).append((one.server, last, now))
    own = {one.origin: one.server for one in context.topology.replicas if one.origin}
    for (suffix, origin), rows in sorted(shown.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        if any(last >= now - CHANGELOG_MAX_AGE for _, last, now in rows):
            continue
        age = max(now - last for _, last, now in rows)
        of = f"that of {own[origin]}" if origin in own else "of no server that was collected"
        yield Finding(
            "STALE_ORIGIN",
            "info" if origin in own else "warning",
            f"origin {origin}, {of}, was last heard of {_days(age)} ago and stands in the vector of "
            f"{', '.join(server for server, _, _ in rows)}",
            server=own.get(origin),
            origin=origin,
            suffix=suffix,
            items=tuple(sorted({cid_text(last, origin) for _, last, _ in rows})),
            evidence=first_few({"server": server, "last": cid_text(last, origin)} for server, last, _ in rows),
            fix=(
                step(
                    "see that the servers purge (every ten minutes while they run): then it goes by itself",
                    "a supplier leaves such an origin out; a consumer still counts it among what it knows",
                ),
            ),
        )


def clock_ahead(context: DetectorContext) -> Iterator[Finding]:
    """Origins whose last change lies in the future of a server that has it."""
    found: dict[tuple[str | None, str], list[tuple[int, str, int]]] = {}
    own = {one.origin: one.server for one in context.topology.replicas if one.origin}
    for one, ranges, now in _replicas(context):
        for origin, (_, last) in ranges.items():
            if origin != one.origin and last > now + _CLOCK_WINDOW:
                found.setdefault((one.suffix, origin), []).append((last - now, one.server, last))
    for (suffix, origin), rows in sorted(found.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        ahead, server, _ = max(rows)
        yield Finding(
            "CLOCK_AHEAD",
            "warning",
            f"the last change of origin {origin} lies {ahead / SECOND / 3600:.1f} hours ahead of the clock of {server}",
            server=own.get(origin),
            origin=origin,
            suffix=suffix,
            items=tuple(sorted({cid_text(last, origin) for _, _, last in rows})),
            evidence=first_few(
                {"server": name, "position": cid_text(last, origin), "seconds_ahead": round(by / SECOND)}
                for by, name, last in rows
            ),
            fix=(
                step(
                    "set the clocks right; until time has caught up, that server counts on by single nanoseconds",
                    "its changes win over later ones of the others, and its tombstones stay longer than theirs",
                    "setting a clock back does not take positions back",
                ),
            ),
            assumes=(CLOCKS_AGREE,),
        )


def idle_origin_jump(context: DetectorContext) -> Iterator[Finding]:
    """Origins that were quiet for longer than the window and then went on: whoever is before the gap cannot be supplied."""
    for row in context.floors.floors:
        for one in row["servers"]:
            if not one["gap"]:
                continue
            before, after = one["gap"]
            yield Finding(
                "IDLE_ORIGIN_JUMP",
                "warning",
                f"{one['server']} lists nothing of origin {row['origin']} for {_days(nanoseconds(after) - nanoseconds(before))}: "
                "who has seen it only up to there cannot be supplied once what lies before the gap is forgotten",
                server=one["server"],
                origin=row["origin"],
                suffix=row["suffix"],
                items=(before, after),
                evidence=({"server": one["server"], "before": before, "after": after},),
                fix=(
                    step(
                        "see that all servers have pulled since that server is back",
                        "a server that runs and is idle marks every ten minutes that it lives; one that was off does not",
                    ),
                ),
            )


# --- tombstones and conflicts


def tombstones(context: DetectorContext) -> Iterator[Finding]:
    """Tombstones past the window, and who has not seen them."""
    for one in context.floors.tombstones:
        if one["forgets"]:
            yield Finding(
                "TOMBSTONE_REAPABLE",
                "info",
                f"{one['server']} keeps {one['forgets']:,} tombstones older than {_days(CHANGELOG_MAX_AGE)}: its next purge "
                "forgets them",
                server=one["server"],
                suffix=one["suffix"],
                evidence=({"tombstones": one["forgets"], "forgets_before": one["forgets_before"]},),
            )
        who = {row["server"]: row["count"] for row in one["lacked_by"]}
        if who:
            yield Finding(
                "TOMBSTONE_HELD",
                "warning",
                f"{', '.join(f'{name} is without {count:,}' for name, count in who.items())} of the tombstones that "
                f"{one['server']} forgets at its next purge: these entries would stay there",
                server=one["server"],
                suffix=one["suffix"],
                items=tuple(row["position"] for row in one["still_needed"]),
                evidence=first_few(one["still_needed"], one["needed"]),
                fix=(
                    step(
                        f"bring {', '.join(who)} up to date before {one['server']} purges, every ten minutes while it runs",
                        "a tombstone that is gone is sent to nobody: the entry lives on where it was not deleted",
                    ),
                ),
            )


def entry_conflict(context: DetectorContext) -> Iterator[Finding]:
    """Entries that were set aside because another of the same id was made earlier, and those of which two are there still."""
    for one in context.topology.replicas:
        source = states_of(context.case, context.topology, one)
        if source is None:
            continue
        count, shown = 0, list[Row]()
        where = pc.field("class") == "conflict"
        for batch in context.rows(
            "entries", ["entry", "target", "source"], where, snapshot=source.snapshot, server=one.server
        ):
            count += batch.num_rows
            shown += batch.slice(0, max(0, ITEMS_SHOWN - len(shown))).to_pylist()
        if count:
            yield Finding(
                "ENTRY_CONFLICT",
                "warning",
                f"{one.server} holds {count:,} {'entry that was' if count == 1 else 'entries that were'} set aside in conflicts",
                server=one.server,
                suffix=one.suffix,
                evidence=first_few(({key: value for key, value in row.items() if value} for row in shown), count),
                fix=(_LOOK_AT_EACH,),
            )
    twice: dict[str | None, list[Row]] = {}
    for row in context.verdicts.made_twice:
        twice.setdefault(row["suffix"], []).append(row)
    for suffix, rows in twice.items():
        yield Finding(
            "ENTRY_CONFLICT",
            "warning",
            f"{len(rows):,} {'entry was' if len(rows) == 1 else 'entries were'} made more than once: servers hold different ones "
            "under one id, and where they meet the earliest stays",
            suffix=suffix,
            items=tuple(sorted({cid for row in rows for cid in row["created"].values()}))[:ITEMS_SHOWN],
            evidence=first_few({"entry": row["entry"], "target": row["target"], **row["created"]} for row in rows),
            fix=(_LOOK_AT_EACH,),
        )


_LOOK_AT_EACH = step(
    "look at each of them, and write into the entry that stays what is lacking there",
    "two servers made an entry of one id; the later one is set aside, and references to it may be gone",
)


DETECTORS: Detectors = {
    GENERATION: (diverged, no_overlap, versions_differ),
    IDENTITY: (stale_origin, clock_ahead, idle_origin_jump),
    HOLES: (changes_thrown_away, tombstones, entry_conflict),
    LAG: (refresh_required, supplier_behind, stalled_but_green, told_by_logs),
}
