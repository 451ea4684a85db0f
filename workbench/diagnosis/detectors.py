"""What looks for findings: the order of all detectors, what they may look at, and those that hold for every system.

A detector is one function of a `DetectorContext` that gives its findings. It belongs to a stage, and the stages run in the
order of `workbench.model.STAGES`; the detectors of one system stand in its folder and run behind the general ones of their stage.
Nothing that grows with the data is held: of tables of any size only counters and the first examples are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis import change_findings
from workbench.diagnosis.ahead_of_log import vector_ahead_of_log
from workbench.diagnosis.changes_thrown_away import changes_thrown_away
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.differing_entries import entries_differ
from workbench.diagnosis.failing_links import leave_off, link_failing, mend_before, waiting_behind
from workbench.diagnosis.misnamed_links import address_first
from workbench.diagnosis.rollbacks import rolled_back
from workbench.diagnosis.shared_origin import compared_logs
from workbench.diagnosis.stalled_links import stalled_but_green, status_of
from workbench.diagnosis.stuck_servers import reinit_required
from workbench.diagnosis.uncertain_losses import perhaps_made_again, perhaps_written_over
from workbench.diagnosis.unrelated_data import unrelated_data
from workbench.diagnosis.unseen_suppliers import (
    absent_origins,
    claims_of,
    element_of,
    supplier_not_collected,
    unseen_suppliers,
)
from workbench.diagnosis.without_record import keeps_none
from workbench.intake.decompression import PACKED
from workbench.model import (
    CUT_LINE,
    GENERATION,
    HOLES,
    IDENTITY,
    ITEMS_SHOWN,
    LAG,
    NOT_TEXT,
    ROLLBACK,
    STAGES,
    Detectors,
    Finding,
    counted,
    first_few,
    listed,
    step,
)
from workbench.rules.link_failures import DISABLED
from workbench.systems import format_with
from workbench.topology.topology import Link, Replica, Row, Topology


def detected(context: DetectorContext) -> Iterator[Finding]:
    """What all detectors find, stage by stage."""
    theirs = context.topology.system.detectors()
    for stage in STAGES:
        for detector in (*DETECTORS.get(stage, ()), *theirs.get(stage, ())):
            yield from detector(context)


def duplicate_origin(context: DetectorContext) -> Iterator[Finding]:
    """Servers of one suffix that make changes as the same origin, or one origin that is known under several addresses."""
    used: dict[tuple[str | None, str], list[str]] = {}
    for one in context.topology.replicas:
        if one.origin:
            used.setdefault((one.suffix, one.origin), []).append(one.server)
    addresses: dict[tuple[str | None, str], dict[str, Row]] = {}
    for row in claims_of(context):
        address = (row["url"] or "").partition("://")[2].strip("/").lower()
        if address:
            addresses.setdefault((row["suffix"], row["origin"]), {}).setdefault(address, row)
    for suffix, origin in sorted({*used, *addresses}, key=lambda key: (key[0] or "", key[1])):
        servers, places = used.get((suffix, origin), []), addresses.get((suffix, origin), {})
        if len(servers) > 1:
            yield _used_by_several(context, suffix, origin, servers, places)
        elif len(places) > 1:
            yield Finding(
                "DUPLICATE_ORIGIN",
                "warning",
                f"origin {origin} is known under {len(places)} addresses: {', '.join(sorted(places))}",
                server=servers[0] if servers else None,
                origin=origin,
                suffix=suffix,
                evidence=first_few(element_of(row) for _, row in sorted(places.items())),
                fix=(
                    step(
                        f"find out whether two servers use it; if so, give one of them another origin and "
                        f"{context.topology.system.refill} it from the other",
                        "two changes may have one position: each server takes the other's for one that it has",
                        "if the server only got a new address, the old one has to leave the vectors; a server that starts with a "
                        "new address may make its log of changes anew: what others lacked then is missing there",
                    ),
                ),
            )


def _used_by_several(
    context: DetectorContext, suffix: str | None, origin: str, servers: Sequence[str], places: Mapping[str, Row]
) -> Finding:
    """One origin of several collected servers, with what their logs hold of it, by content."""
    mine = [one for name in servers if (one := context.replica(name, suffix))]
    compared = [
        found
        for one in mine
        for other in mine
        if one is not other
        and (found := compared_logs(context.case, origin, one, other, _begins(context, other, origin)))
    ]
    told = [
        f"{counted(found.only, 'change')} of it {'is' if found.only == 1 else 'are'} in the log of {found.server} and not in "
        f"that of {found.other}"
        for found in compared
        if found.only
    ]
    # A clash is one and the same from both sides.
    clashes = sum(found.clashes for found in compared if found.server < found.other)
    if clashes:
        told.append(
            f"{counted(clashes, 'position')} {'stands' if clashes == 1 else 'stand'} for different changes there"
        )
    who = listed(servers)
    refill = context.topology.system.refill
    third = any(one.suffix == suffix and one.server not in servers for one in context.topology.replicas)
    others = " (another server may have some of them)" if third else ""
    loses = "; ".join(
        f"to {refill} {found.server} from {found.other} throws away {counted(found.only + found.clashes)} that {found.server} "
            f"has by its log, and {found.other} has not{others}"
        for found in compared
        if found.only + found.clashes
    ) or f"to {refill} one of them throws away what only it has; their logs do not tell what that is"  # fmt: skip
    return Finding(
        "DUPLICATE_ORIGIN",
        "error",
        f"{who} make changes as one origin, {origin}: one position may stand for two changes, so positions of {origin} prove "
        f"nothing on any server{''.join(f'; {one}' for one in told)}",
        origin=origin,
        suffix=suffix,
        evidence=first_few(
            [
                *({"server": server, "origin": origin} for server in servers),
                *(row for found in compared for row in found.first if row["what"] == "only_here"),
                *(
                    row
                    for found in compared
                    for row in found.first
                    if row["what"] == "clash" and found.server < found.other
                ),
                *(element_of(row) for _, row in sorted(places.items())),
            ]
        ),
        root=f"servers {who} make changes as one origin, {origin}: positions do not tell which of its changes are missing",
        fix=(
            step(
                f"let nobody write on one of them, save what only it has, give it another origin and "
                f"{context.topology.system.refill} it from the other; then write again what was saved",
                "as long as both use it, each server takes a change of the one for a change of the other and drops it",
                loses,
            ),
        ),
    )


def _begins(context: DetectorContext, one: Replica, origin: str) -> str:
    """Behind which position the log of a server shows what it has of the origin; what is older came with its data."""
    marks = context.verdicts.marks.get((one.server, one.suffix), {})
    first = one.log.facts.get("by_origin", {}).get(origin, {}).get("min") if one.log else None
    return max(marks.values(), default="") or str(first or "")


def dead_origin(context: DetectorContext) -> Iterator[Finding]:
    """Origins in vectors that no collected server has and no link leads to, where nothing is left that was not collected."""
    shown = context.topology
    lives = {(heard.absent.suffix, heard.absent.origin) for heard in unseen_suppliers(context)}
    for absent in absent_origins(context):
        suffix, origin, rows = absent.suffix, absent.origin, absent.rows
        if (suffix, origin) not in lives:
            servers = sorted({row["server"] for row in rows})
            most = max(
                (
                    one.log.facts.get("by_origin", {}).get(origin, {}).get("count", 0)
                    for one in absent.replicas
                    if one.log
                ),
                default=0,
            )
            held = f"the fullest log still has {counted(most)} of it" if most else "no log holds a change of it"
            left = "" if shown.pulling else f"; {held}"
            waits = sorted(
                one["server"] for one in context.verdicts.pending if (one["suffix"], one["origin"]) == (suffix, origin)
            )
            if waits:
                left += f"; {listed(waits)} wait{'s' * (len(waits) == 1)} for changes of it"
            yield Finding(
                "DEAD_ORIGIN",
                "info" if shown.pulling else "warning",
                f"origin {origin} stands in the vector of {', '.join(servers)}, but no collected server makes changes as it "
                f"and no link leads to one{left}",
                origin=origin,
                suffix=suffix,
                items=tuple(sorted({shown.system.show(row["max"]) for row in rows if row["max"]})),
                evidence=first_few(map(element_of, rows)),
                fix=(_GOES_BY_ITSELF,)
                if shown.pulling
                else (
                    *_arrived_first(waits),
                    *(() if _out_of_reach(shown, suffix, servers) else (_CLEAN,)),
                    *_by_filling(shown, suffix, servers),
                ),
            )


def _out_of_reach(shown: Topology, suffix: str | None, servers: Sequence[str]) -> bool:
    """True for read-only servers that keep no log and that hubs alone feed: all that a cleaning reaches was cleaned."""
    makers = {one.server for one in shown.replicas if one.suffix == suffix and one.origin is not None}
    mine = [one for one in shown.replicas if one.suffix == suffix and one.server in servers]
    fed = {link.consumer for link in shown.links if link.suffix == suffix and link.supplier not in makers}
    direct = {link.consumer for link in shown.links if link.suffix == suffix and link.supplier in makers}
    return all(one.origin is None and not one.keeps_log for one in mine) and {*servers} <= fed - direct


def _by_filling(shown: Topology, suffix: str | None, servers: Sequence[str]) -> Iterator[Mapping[str, str | None]]:
    """What else there is where only servers name the origin that make no changes and feed nobody."""
    feeding = {link.supplier for link in shown.links if link.suffix == suffix}
    ends = {one.server for one in shown.replicas if one.suffix == suffix and one.origin is None} - feeding
    if {*servers} <= ends:
        begins = "" if _out_of_reach(shown, suffix, servers) else "where it stays, "
        yield step(
            f"{begins}{shown.system.refill} {listed(servers, 'and')} from a server whose vector does not name it",
            "no cleaning reaches a server that only a hub feeds",
            "clean the others first, or it comes back with the data",
        )


def _arrived_first(waits: Sequence[str]) -> Iterator[Mapping[str, str | None]]:
    if waits:
        yield step(
            f"first do what PENDING_CHANGES says of {listed(waits)}, and clean the origin when these changes have arrived",
            "no session brings a change of an origin that was cleaned",
        )


_GOES_BY_ITSELF = step(
    "nothing, if its server was refreshed or taken away: servers forget an origin that is quiet by themselves",
    "a server that is refreshed makes its changes as another origin from then on",
    "a server that was not collected, and is to come back, must come before it is forgotten",
)
_CLEAN = step(
    "clean the origin only if its server is gone for good, and after every server has all of its changes",
    "a dead origin stays in every vector, and its last record may hold up trimming",
    "cleaning one that is alive, or whose changes a server still lacks, loses them: `workbench plan` says which servers "
    "a cleaning harms or does not reach",
)


def clock_ahead(context: DetectorContext) -> Iterator[Finding]:
    """Last positions that lie in the future of the server that took them, by the time at which it did.

    Compared are the position's own time and the time that the same server wrote beside it: when its vector moved there, or
    when its log says that it applied the change. Both are its clock at that very moment, so an old log proves nothing wrong.
    """
    shown = context.topology
    if not shown.system.clock_levels:
        return
    rows = [row for row in claims_of(context) if row["max"]]
    times: dict[tuple[str, str | None, str], Row] = {}
    for row in rows:
        if row["modified_at"]:
            _earlier(times, (row["server"], row["suffix"], row["max"]), row["modified_at"], row)
    asked = pa.array(sorted({row["max"] for row in rows}), pa.string())
    columns = ["server", "suffix", "file", "offset", "position", "at"]
    where = pc.field("position").isin(asked) & pc.field("at").is_valid()
    for batch in context.rows("applied", columns, where, snapshot=shown.snapshot):
        for row in batch.to_pylist():
            _earlier(times, (row["server"], row["suffix"], row["position"]), row["at"], row)
    found: dict[tuple[str | None, str], list[tuple[float, str, Row]]] = {}
    for row in rows:
        told, made = times.get((row["server"], row["suffix"], row["max"])), shown.system.moment(row["max"])
        if told and made:
            ahead = (made - told["at"]).total_seconds()
            found.setdefault((row["suffix"], row["origin"]), []).append((ahead, row["max"], told))
    for (suffix, origin), all_told in sorted(found.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        most = max(all_told, key=lambda one: (one[0], one[1]))[0]
        severity = next((grade for seconds, grade in shown.system.clock_levels if most >= seconds), None)
        if severity is None:
            continue
        least = shown.system.clock_levels[-1][0]
        ahead_ones = sorted(
            (one for one in all_told if one[0] >= least), key=lambda one: (-one[0], one[1], one[2]["server"])
        )
        evidence = {
            (position, told["server"]): {
                "position": shown.system.show(position),
                "server": told["server"],
                "seconds_ahead": round(seconds),
                **{key: told[key] for key in ("file", "offset")},
                "at": told["at"].isoformat(),
            }
            for seconds, position, told in ahead_ones
        }
        server = next((one.server for one in shown.replicas if (one.suffix, one.origin) == (suffix, origin)), None)
        yield Finding(
            "CLOCK_AHEAD",
            severity,
            f"the last position of origin {origin} lies {most / 3600:.1f} hours ahead of the clock of a server that took it",
            server=server,
            origin=origin,
            suffix=suffix,
            items=tuple(sorted({row["position"] for row in evidence.values()}))[:ITEMS_SHOWN],
            evidence=first_few(evidence.values()),
            fix=(
                step(
                    "set the clocks right, on every server, before anything else",
                    "positions are made from clocks, and a peer's clock that is ahead pulls all others forward",
                    "setting a clock back does not take positions back: they stay ahead until time has caught up",
                ),
            ),
        )


def _earlier(
    times: dict[tuple[str, str | None, str], Row], key: tuple[str, str | None, str], at: datetime, row: Row
) -> None:
    if key not in times or at < times[key]["at"]:
        times[key] = {"server": row["server"], "file": row["file"], "offset": row["offset"], "at": at}


def link_disabled(context: DetectorContext) -> Iterator[Finding]:
    """Links that are switched off, or do not run for another reason."""
    statuses, shown = context.statuses(), context.topology
    forget = shown.system.proving is not None and bool(shown.proving.traces_kept)
    for link in shown.links:
        if link.enabled is False:
            row = statuses.get((link.supplier, link.suffix, link.name), {})
            waiting, waits = waiting_behind(context, link)
            before, address = mend_before(context, link), address_first(context, link)
            yield Finding(
                "LINK_DISABLED",
                "warning",
                f"the link {link.name} from {link.supplier} to {link.consumer or link.address or 'an unknown server'} "
                + (f"does not run, for {link.why}" if link.why else "is switched off: nothing is sent over it")
                + waits,
                server=link.supplier,
                link=link.name,
                suffix=link.suffix,
                evidence=(status_of(row),) if row else (),
                fix=(
                    *([before] if before else []),
                    *([address] if address else []),
                    _unrelated_first(context, link)
                    or leave_off(context, link)
                    or (_sends_nothing(link.supplier) if keeps_none(context, link.supplier, link.suffix) else None)
                    or (_ALLOW if link.why else _switch_on(context, link, forget)),
                ),
                reason=None if link.why else DISABLED,
                waiting=waiting,
            )


def _unrelated_first(context: DetectorContext, link: Link) -> Row | None:
    """What to do about a link that is off between servers whose data have different beginnings; None for another."""
    ends = link.supplier, link.consumer, link.suffix
    if not any(row["unrelated"] and (row["supplier"], row["consumer"], row["suffix"]) == ends for row in context.pairs):
        return None
    empty = [name for name in ends[:2] if name and (name, link.suffix) in context.without_data]
    return step(
        f"leave it off until {listed(empty)} {'has' if len(empty) == 1 else 'have'} whole data again, then switch it on"
        if empty
        else "leave it off until what UNRELATED_DATA says is done, then switch it on",
        f"{link.supplier} and {link.consumer} have data of different beginnings: no session over it would send anything",
    )


def _sends_nothing(supplier: str) -> dict[str, str | None]:
    return step(
        f"leave it off, and take it away if {supplier} is to stay read-only",
        f"{supplier} keeps no log of changes, so nothing would come over it",
        f"if others are to get changes from {supplier}, make it a supplier or a hub again, and save first what it alone has",
    )


def _switch_on(context: DetectorContext, link: Link, forget: bool) -> dict[str, str | None]:
    """What mends a link that is switched off. `forget`: servers forget deletions after some time."""
    stays = (
        "; if it was off for longer than servers remember deletions, what was deleted meanwhile may stay on one side"
    )
    command = context.topology.system.switch_on
    how = f", {command()(link.supplier, link.suffix, link.name)}," if command else ","
    return step(
        f"switch it on{how} if its supplier can still serve the consumer",
        "what waits is then delivered",
        f"find out first why it is off: somebody may hold back a restored or damaged server{stays if forget else ''}",
    )


_ALLOW = step(
    "let the supplier allow it, if it can still serve the consumer, or take it away at the consumer",
    "both ends have to be told of a link over which the consumer asks: what waits is then delivered",
    "find out first why the two differ: somebody may hold back a restored or damaged server",
)


_FEW = 10
"""One row in so many is damaged: the others of the file are what it should hold."""


def unreadable_input(context: DetectorContext) -> Iterator[Finding]:
    """Files of the last snapshot that were not read whole: one row in a hundred, or cut.

    A single row is left to the coverage: one damaged line does not weaken what the others say. But one row may be the whole
    document, of a packed file one row stands for all that could not be unpacked, and behind a line that is cut more may follow.
    """
    where = pc.starts_with(pc.field("reason"), PACKED) | (pc.field("reason") == NOT_TEXT)
    where |= pc.starts_with(pc.field("reason"), CUT_LINE)
    rejects = context.rows("rejects", ["file", "reason"], where, snapshot=context.topology.snapshot)
    told = [(row["file"], row["reason"]) for batch in rejects for row in batch.to_pylist()]
    cut = {file: "the file ends within its last line" for file, reason in told if reason.startswith(CUT_LINE)}
    cut |= {file: reason for file, reason in told if reason.startswith(PACKED)}
    no_text = Counter(file for file, reason in told if reason == NOT_TEXT)
    for one in (*context.inputs, *context.empty_inputs):
        # Logs hold such lines as their server wrote them, with a damaged name of a host: to read the file again brings nothing.
        by_server = one.rejected == no_text[one.file] and one.rejected * _FEW < one.rows and not one.why
        by_server &= bool(one.kind) and format_with(one.kind).evidence.endswith("_log")
        much = (one.rejected > 1 or one.rejected == one.rows == 1) and one.rejected * 100 >= one.rows
        why = one.why or cut.get(one.file, "")
        if much or why:
            share = why or f"{one.rejected:,} of its {one.rows:,} rows could not be read"
            share += ": they hold bytes that are no text, as their server wrote them" if by_server else ""
            yield Finding(
                "UNREADABLE_INPUT",
                "info" if by_server else "warning",
                f"{one.file}: {share}; what it does not show is not known",
                server=one.server,
                suffix=one.suffix,
                evidence=(
                    {
                        "snapshot": one.snapshot,
                        "file": one.file,
                        "format": one.format,
                        "rows": one.rows,
                        "rejected": one.rejected,
                        "why": why or None,
                    },
                ),
                fix=()
                if by_server
                else (step("collect the file again and load it", "a verdict that needs it stays unknown"),),
            )


DETECTORS: Detectors = {
    GENERATION: (unrelated_data,),
    IDENTITY: (duplicate_origin, dead_origin, supplier_not_collected, clock_ahead),
    ROLLBACK: (rolled_back, change_findings.own_changes_hidden),
    HOLES: (
        change_findings.missed_change,
        changes_thrown_away,
        perhaps_written_over,
        perhaps_made_again,
        entries_differ,
        change_findings.stranded_change,
        vector_ahead_of_log,
        unreadable_input,
    ),
    LAG: (reinit_required, change_findings.pending_changes, link_disabled, link_failing, stalled_but_green),
}
"""The detectors of every system, by stage. What is not listed here is not asked."""
