"""What earlier snapshots prove of logs, and nothing that was collected since shows to be over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, step
from workbench.replication.tier.diagnosis.earlier_snapshots import WentBack, went_back
from workbench.replication.tier.diagnosis.rewritten import rewritten_sources
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


def sources_gone_back(context: DetectorContext) -> Iterator[Finding]:
    """Sources whose log ends before the place where it stood in an earlier snapshot, or is of an older generation than then."""
    tiers = tiers_of(context)
    if not tiers.source_is_known:
        return
    for source in tiers.sources:
        if back := went_back(tiers.case, tiers.seen, tiers.roots(source)):
            yield _gone_back(tiers, source, back)


def rewritten_logs(context: DetectorContext) -> Iterator[Finding]:
    """Sources whose own dump holds other records now than in an earlier snapshot, or ends before those."""
    tiers = tiers_of(context)
    for lost in context.once(rewritten_sources).values():
        at = place_text(lost.places[0]) or ""
        records = f"{counted(lost.count, 'record')}, from {at} on"
        rose = lost.generations is not None and lost.generations[1] > lost.generations[0]
        says = (
            f"{lost.server} has other records now than it had in snapshot {lost.snapshot}: {records}, that stood there are "
            "gone from it; the end of its log was cut off and written anew, or an older state was put back"
            if lost.ends is None
            else f"the dump of {lost.server} ends at {place_text(lost.ends)}, and in snapshot {lost.snapshot} it had {records}: "
            "it ended early, or the end of the log was cut off"
        )
        if lost.generations is not None and rose:
            says += f"; its generation rose from {lost.generations[0]} to {lost.generations[1]} meanwhile, as with a new master"
        if lost.keepers:
            says += f"; {some(lost.keepers)} still ha{'s' if len(lost.keepers) == 1 else 've'} them"
        keep = f"keep the dump of snapshot {lost.snapshot}, and see whether what it shows from {at} on has to be made again"
        yield Finding(
            "LOG_DIVERGED",
            "warning" if rose or lost.ends is not None else "error",
            says,
            server=lost.server,
            origin=tiers.source_of(lost.server),
            items=tuple(place_text(place) or "" for place in lost.places[:ITEMS_SHOWN]),
            evidence=first_few(
                ({"snapshot": lost.snapshot, "at": place_text(place)} for place in lost.places), lost.count
            ),
            fix=(
                *(
                    step(
                        f"dump the log of {name} from {at} on before it connects anew, and restart nothing there until then",
                        "on connecting it cuts off what its source does not have: it may be the last that has it",
                    )
                    for name in lost.keepers[:1]
                ),
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


def _gone_back(tiers: Tiers, source: str, back: WentBack) -> Finding:
    then, now = place_text(back.then), place_text(back.now)
    further = [
        name for name in tiers.members[source] if (tiers.last(name) or back.now) > back.now and back.then > back.now
    ]
    told = [f"{back.server} stood at {then} in snapshot {back.snapshot}"]
    if back.then > back.now:
        files = back.then[0] - back.now[0] - 1
        far = f", more than {counted(files, 'whole log file')} before that" if files > 0 else ""
        told.append(
            f", and stands at {now} now{far}: "
            f"the end of its log was cut off, or an older state was put back, and what stood there behind {now} is gone from it"
        )
    else:
        told.append(f", and stands at {now} now")
    if back.older:
        told.append(
            f"; its newest commit was of generation {back.older[0]} then, and is of generation {back.older[1]} now: along "
            "one log generations never fall, so that this is another history"
        )
    elif back.newer:
        told.append(f"; its generation rose from {back.newer[0]} to {back.newer[1]} meanwhile, as with a new master")
    if further:
        told.append(f"; {some(further)} still go{'es' if len(further) == 1 else ''} further")
    return Finding(
        "LOG_DIVERGED",
        "warning" if back.newer else "error",
        "".join(told),
        server=back.server,
        origin=source,
        items=(then or "",),
        evidence=(
            {"snapshot": back.snapshot, "node": back.server, "last": then},
            evidence_of(tiers, back.server),
            *(evidence_of(tiers, name) for name in further[:1]),
        ),
        fix=(
            *(
                step(
                    f"dump the log of {name} from {now} on before it connects anew, and restart nothing there until then",
                    "on connecting it cuts off what stands behind the newest commit that both have",
                )
                for name in further[:1]
            ),
            step(
                f"find out whether {back.server} was put back to an older state, or cut its log off for a new master, and have "
                f"what was committed behind {now if back.then > back.now else 'the place where they part'} written again",
                "no session brings a source what its own log has lost",
                None
                if further
                else "no node that was collected goes further: only a backup, or who wrote it, still has it",
            ),
        ),
    )
