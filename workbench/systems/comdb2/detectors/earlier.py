"""What earlier snapshots prove of logs, and nothing that was collected since shows to be over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, step
from workbench.replication.tier.diagnosis.log_falls import Fall
from workbench.replication.tier.diagnosis.sources import OfItsOwn
from workbench.replication.tier.diagnosis.waiting import saved_first
from workbench.rules.assumptions import ASKED_IN_ORDER
from workbench.systems.comdb2.detectors.shown import evidence_of, place_text, some, span_text, tiers_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers


def parted_before(context: DetectorContext) -> Iterator[Finding]:
    """Logs that had other records than the source's in an earlier snapshot, where nothing shows that they came together since."""
    tiers = tiers_of(context)
    for parting in tiers.earlier.partings:
        name, places = parting.server, [place_text(place) or "" for place in parting.places]
        yield Finding(
            "LOG_DIVERGED",
            "warning",
            f"{name}: in snapshot {parting.snapshot} it had other records than {parting.reference} at {parting.count:,} "
            f"place{'s' if parting.count > 1 else ''}, from {places[0]} on; no later dump of its log reaches over that place, "
            "and nothing shows that it cut them off",
            server=name,
            origin=tiers.source_of(name),
            items=tuple(places[:ITEMS_SHOWN]),
            evidence=first_few(({"snapshot": parting.snapshot, "at": place} for place in places), parting.count),
            fix=(
                step(
                    f"read the logs of {name} and {parting.reference} once more from {places[0]} on",
                    "ends at the same place are no proof: two histories may be equally long",
                    f"if they still differ, or {name} has that file no more and counts no cut since: do what LOG_DIVERGED says "
                    f"of {name} in snapshot {parting.snapshot} (`workbench diagnose --as-of {parting.snapshot}`)",
                ),
            ),
        )


def gone_back_before(context: DetectorContext) -> Iterator[Finding]:
    """Logs that went back between two snapshots, whatever they have written since: no later place shows that it came back."""
    tiers = tiers_of(context)
    for fall in tiers.falls:
        yield _of_source(tiers, fall) if fall.at_top else _of_copy(tiers, fall)


def rewritten_logs(context: DetectorContext) -> Iterator[Finding]:
    """Sources whose newest dump holds other records than an earlier one, or ends before those."""
    tiers = tiers_of(context)
    for lost in tiers.rewritten:
        at = place_text(lost.places[0]) or ""
        records = f"{counted(lost.count, 'record')}, from {at} on"
        rose = lost.generations is not None and lost.generations[1] > lost.generations[0]
        at_last = lost.since == tiers.seen.label
        has, ends = ("has", "ends") if at_last else ("had", "ended")
        since = "now" if at_last else f"in snapshot {lost.since}"
        says = (
            f"{lost.server} {has} other records {since} than it had in snapshot {lost.snapshot}: {records}, that stood there "
            "are gone from it; the end of its log was cut off and written anew, or an older state was put back"
            if lost.ends is None
            else f"the dump of {lost.server} {ends} at {place_text(lost.ends)}"
            f"{'' if at_last else ' ' + since}, and in snapshot {lost.snapshot} it had {records}: "
            "it ended early, or the end of the log was cut off"
        )
        if lost.generations is not None and rose:
            says += f"; its generation rose from {lost.generations[0]} to {lost.generations[1]} meanwhile, as with a new master"
        if now := [name for name, label in lost.keepers.items() if label == tiers.seen.label]:
            says += f"; {some(now)} still ha{'s' if len(now) == 1 else 've'} them"
        if then := [name for name in lost.keepers if name not in now]:
            says += (
                f"; {some(then)} had them in snapshot {lost.keepers[then[0]]}, which shows the newest dump of {then[0]}"
            )
        keep = f"keep the dump of snapshot {lost.snapshot}, and see whether what it shows from {at} on has to be made again"
        yield OfItsOwn(
            "LOG_DIVERGED",
            "warning" if rose or lost.ends is not None else "error",
            says,
            server=lost.server,
            origin=lost.server.partition("@")[0],
            items=tuple(place_text(place) or "" for place in lost.places[:ITEMS_SHOWN]),
            evidence=first_few(
                ({"snapshot": lost.snapshot, "at": place_text(place)} for place in lost.places), lost.count
            ),
            fix=(
                *({**saved_first(tiers, tiers.last_holders[name])} for name in [*now, *then][:1]),
                step(keep, "no session brings a source what its own log has lost")
                if lost.ends is None
                else step(
                    f"read the log of {lost.server} once more from {at} on",
                    "a dump ends silently when its time is over: the call of comdb2_transaction_logs has a limit of 30 s",
                ),
            ),
        )


def gone_back_since_told(context: DetectorContext) -> Iterator[Finding]:
    """Nodes whose answer and last report contradict each other: the younger of the two is of a place before the other one."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        for name in tiers.members[source]:
            if tiers.seen.outdated(name) or tiers.seen.fell_back(name):
                yield _gone_back_since(tiers, source, name)


def _gone_back_since(tiers: Tiers, source: str, name: str) -> Finding:
    asked, reported = tiers.seen.probes[name]["at"], tiers.seen.nodes[name]["reported_at"]
    answer = f"answered {place_text(tiers.seen.probed(name))}", asked
    report = f"reported {place_text(tiers.seen.reported(name))}", reported
    (then, before), (now, after) = (answer, report) if asked < reported else (report, answer)
    places = sorted(filter(None, (tiers.seen.probed(name), tiers.seen.reported(name))))
    at_top, alone = name in tiers.roots(source), tiers.last(name) or places[0]
    further = [one for one in tiers.members[source] if one != name and (tiers.last(one) or alone) > alone]
    still = f"; {some(further)} still go{'es' if len(further) == 1 else ''} further" if at_top and further else ""
    return Finding(
        "LOG_DIVERGED",
        "warning" if at_top else "info",
        f"{name} {then} at {before:%H:%M:%S}, and {now} {span_text((after - before).total_seconds())} later: the end of its log "
        f"was cut off meanwhile, or an older state was put back{still}",
        server=name,
        origin=source,
        items=(place_text(places[-1]) or "",),
        evidence=(evidence_of(tiers, name), *(evidence_of(tiers, one) for one in further[:1] if at_top)),
        assumes=(ASKED_IN_ORDER,),
        fix=(
            step(
                f"ask {name} once more where it stands, and look at what its log says of that time",
                "of the two the younger one counts here, and their times are of two clocks",
                f"let nothing connect anew to {source} before: who does cuts off what stands behind the newest commit that both "
                "have"
                if at_top
                else None,
            ),
        ),
    )


def _of_source(tiers: Tiers, fall: Fall) -> Finding:
    lost = f"what was committed behind {place_text(fall.low) if fall.low < fall.then else 'the place where they part'}"
    unseen = (
        f"; unless {some(fall.unseen)} still ha{'s' if len(fall.unseen) == 1 else 've'} it, of which that snapshot tells nothing"
        if fall.unseen
        else ""
    )
    return OfItsOwn(
        "LOG_DIVERGED",
        "warning" if fall.newer or fall.unseen else "error",
        f"{_fell(tiers, fall)}{unseen}{_held_by(tiers, fall)}",
        server=fall.server,
        origin=fall.source,
        items=(place_text(fall.then) or "",),
        evidence=_fall_evidence(tiers, fall),
        fix=(
            *_saved_first(tiers, fall),
            step(
                f"find out whether {fall.server} was put back to an older state, or cut its log off for a new master, and have "
                f"{lost} written again",
                "no session brings a source what its own log has lost",
                None
                if fall.holders
                else "no node that was collected goes further: only a backup, or who wrote it, still has it",
            ),
        ),
    )


def _of_copy(tiers: Tiers, fall: Fall) -> Finding:
    gone = f"what stood there behind {place_text(fall.low)}{_held_by(tiers, fall)}"
    has = (
        f"; {fall.source} is further, and was not seen to go back: {fall.server} gets from there what it lost"
        if fall.kept
        else f"; nothing shows that {fall.source} still has {gone}"
    )
    return Finding(
        "LOG_DIVERGED",
        "info" if fall.kept else "warning",
        f"{_fell(tiers, fall)}{has}",
        server=fall.server,
        origin=fall.source,
        items=(place_text(fall.then) or "",),
        evidence=_fall_evidence(tiers, fall),
        fix=(
            *_saved_first(tiers, fall),
            step(
                f"look at what the log of {fall.server} says of that time, and whether it was put back to an older state",
                "a copy cuts off what the node to which it connects does not have: if nobody put it back, that one had lost it",
            ),
        ),
    )


def _fell(tiers: Tiers, fall: Fall) -> str:
    """Where a log stood and stands, in words."""
    then, low, at_last = place_text(fall.then), place_text(fall.low), fall.fallen == tiers.seen.label
    who = "" if fall.lower == fall.server else f"{fall.lower} of the same source "
    said = f"{fall.server} stood at {then} in snapshot {fall.snapshot}, and {who}"
    said += f"stands at {low} now" if at_last else f"at {low} in snapshot {fall.fallen}"
    if fall.low < fall.then:
        files = fall.then[0] - fall.low[0] - 1
        said += f", more than {counted(files, 'whole log file')} before that" if files > 0 else ""
        said += ": the end of its log was cut off, or an older state was put back, and what stood there behind "
        said += f"{low} is gone from it"
    if fall.older:
        since = f"is of generation {fall.older[1]} now" if at_last else f"was of generation {fall.older[1]} later"
        said += (
            f"; its newest commit was of generation {fall.older[0]} then, and {since}: along one log generations never fall, "
            "so that this is another history"
        )
    elif fall.newer:
        said += f"; its generation rose from {fall.newer[0]} to {fall.newer[1]} meanwhile, as with a new master"
    now = tiers.last(fall.server)
    if not at_last and fall.at_top:
        said += (
            "; nothing tells where it stands now"
            if now is None
            else f"; that it stands at {place_text(now)} now does not show that it has it again"
            if now > fall.low
            else ""
        )
    return said


def _held_by(tiers: Tiers, fall: Fall) -> str:
    """Which nodes may still have what was lost, as a clause; empty: none is known."""
    if not fall.holders:
        return ""
    names, now = [holder.name for holder in fall.holders], tiers.last(fall.server)
    label, many = tiers.seen.label, len(names) > 1
    if now is not None and all(holder.place > now and holder.snapshot == label for holder in fall.holders):
        return f"; {some(names)} still go{'' if many else 'es'} further"
    first = fall.holders[0]
    stands = (
        f"stands at {place_text(first.place)}" if first.snapshot == label else f"stood at {place_text(first.place)}"
    )
    stands += "" if first.snapshot == label else f" in snapshot {first.snapshot}"
    return (
        f"; {some(names)} may still have it: {first.name} {stands}, and nothing shows that it cut that off"
        if fall.low < fall.then
        else f"; {some(names)} may be of the history before: nothing shows that {first.name}, which {stands}, cut its end off"
    )


def _fall_evidence(tiers: Tiers, fall: Fall) -> tuple[dict[str, Any], ...]:
    return (
        {"snapshot": fall.snapshot, "node": fall.server, "last": place_text(fall.then)},
        *(
            ()
            if fall.fallen == tiers.seen.label
            else ({"snapshot": fall.fallen, "node": fall.lower, "last": place_text(fall.low)},)
        ),
        evidence_of(tiers, fall.server),
        *(
            {"snapshot": holder.snapshot, "node": holder.name, "last": place_text(holder.place)}
            for holder in fall.holders[:ITEMS_SHOWN]
        ),
    )


def _saved_first(tiers: Tiers, fall: Fall) -> Iterator[dict[str, str | None]]:
    """What to do first with the nodes that may be the last to have something."""
    for holder in fall.holders[:1]:
        if kept := tiers.last_holders.get(holder.name):
            yield {**saved_first(tiers, kept)}
