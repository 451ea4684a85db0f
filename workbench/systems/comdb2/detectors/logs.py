"""Collected logs: gaps, and where the log of a node parts from its source's; and what positions alone tell of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from workbench.fleet.tiered import tiered_snapshot
from workbench.model import ITEMS_SHOWN, Finding, first_few, step
from workbench.rules.physical_log import Gap
from workbench.systems.comdb2.detectors.shown import Row, each, evidence_of, place_text, some, tiers_of
from workbench.systems.comdb2.lsn import lsn_text

if TYPE_CHECKING:
    from workbench.diagnosing.by_tier import Tiers
    from workbench.diagnosing.situation import Situation


def damaged_logs(situation: Situation) -> Iterator[Finding]:
    """Logs that lack records, or contradict themselves: proven by the places and lengths of their own records."""
    tiers = tiers_of(situation)
    for name in sorted(tiers.logs.parts):
        log, source = tiers.logs.log(name), tiers.source_of(name)
        if log is None:
            continue
        files = [one.file for one in tiers.logs.inputs[name]]
        if log.gaps.count:
            first = log.gaps.first[0]
            held = tiers.logs.reference(name)
            unread = any(one.rejected for one in tiers.logs.inputs[name])
            yield Finding(
                "LOG_GAP",
                "warning" if unread or log.gaps.count == _between_dumps(tiers, name) else "error",
                f"{name}: its log lacks records in {log.gaps.count:,} place{'s' if log.gaps.count > 1 else ''}: "
                f"behind {lsn_text(first.after)} "
                f"{lsn_text(first.expected)} must follow, and {lsn_text(first.next)} does",
                server=name,
                origin=source,
                items=tuple(lsn_text(gap.expected) for gap in log.gaps.first[:ITEMS_SHOWN]),
                evidence=(*first_few(map(_of_gap, log.gaps.first), log.gaps.count), {"files": ", ".join(files)}),
                fix=(
                    step(
                        f"read the log of {name} once more, with a time-out of its own as the fourth argument "
                        "of comdb2_transaction_logs",
                        "a dump ends without a word after 30 s, and rows may be lost on the way: the gap may be the dump's alone",
                    ),
                    step(
                        f"if it is still there: rebuild {name} from a copy of "
                        + (held if held and held != name else "another node"),
                        "a log with a gap cannot be applied, and cannot serve anybody",
                    ),
                ),
            )
        bad = log.contradictions.count + log.overlaps.count
        if bad:
            places = [*log.contradictions.first, *(one for _, one in log.overlaps.first)]
            yield Finding(
                "LOG_DIVERGED",
                "error",
                f"{name}: what was collected of its log contradicts itself at {bad:,} "
                f"place{'s' if bad > 1 else ''}: it was cut off and "
                "written anew meanwhile, or is damaged",
                server=name,
                origin=source,
                items=tuple(map(lsn_text, places[:ITEMS_SHOWN])),
                evidence=(*first_few(({"at": lsn_text(place)} for place in places), bad), {"files": ", ".join(files)}),
                fix=(
                    step(
                        f"read the log of {name} once more, in one go",
                        "two dumps of different times may hold two histories",
                    ),
                ),
            )


def _between_dumps(tiers: Tiers, name: str) -> int:
    """How many of the listed gaps lie between two collected files: nothing was collected there."""
    log = tiers.logs.log(name)
    ends = [
        (min(tuple(part["first"]) for part in parts), max(tuple(part["last"]) for part in parts))
        for one in tiers.logs.inputs[name]
        if (parts := tiers.case.parts("records", one))
    ]
    lasts, firsts = {last for _, last in ends}, {first for first, _ in ends}
    return sum(gap.after in lasts and gap.next in firsts for gap in log.gaps.first) if log else 0


def _of_gap(gap: Gap) -> dict[str, str]:
    return {"after": lsn_text(gap.after), "expected": lsn_text(gap.expected), "next_present": lsn_text(gap.next)}


def parted_logs(situation: Situation) -> Iterator[Finding]:
    """Logs that hold other records than the source's at the same place, or records that it does not have."""
    tiers = tiers_of(situation)
    for name in sorted(tiers.logs.parts):
        both, reference, source = tiers.logs.beside_source(name), tiers.logs.reference(name), tiers.source_of(name)
        if both is None or both.prefix:
            continue
        theirs = tiers.logs.log(reference or "")
        holes = bool(theirs and theirs.gaps.count) or any(one.rejected for one in tiers.logs.inputs[reference or ""])
        # What the source's own log lacks for a gap, or for rows that could not be read, its copies hold rightly.
        other = both.differing.count + (0 if holes else both.only_copy.count)
        head = tiers.known_head(source) if source else None
        last = (tiers.logs.span(name) or (None, None))[1]
        # A log that was read later may go further, if the source is known to have come as far.
        if not other and (
            not both.ahead.count or (last is not None and head is not None and _source_reached(tiers, source, last))
        ):
            continue
        places = [*both.differing.first, *both.only_copy.first, *both.ahead.first]
        parts = both.parts or (min(places) if places else None)
        match = (
            f"; the last commit that both have is {lsn_text(both.match)}, {both.cut:,} records behind it would be cut off"
            if both.match
            else ""
        )
        says = (
            f"{name} and {reference} hold other records at {other:,} place{'s' if other > 1 else ''}"
            if other
            else f"{name} has {both.ahead.count:,} records behind the end of {reference}"
        )
        yield Finding(
            "LOG_DIVERGED",
            "error" if other else "warning",
            f"{says}, from {lsn_text(parts) if parts else '?'} on{match}",
            server=name,
            origin=source,
            items=tuple(map(lsn_text, sorted(places)[:ITEMS_SHOWN])),
            evidence=first_few(({"at": lsn_text(place)} for place in sorted(places)), other + both.ahead.count),
            fix=(
                step(
                    f"let {name} connect anew: it looks for the newest commit that both have, and cuts off what stands behind it",
                    "two histories cannot be brought together, only one of them can go on",
                    f"what only {name} has is lost then; the logs were read moments apart, so a few records "
                    "ahead may be no divergence"
                    if not other
                    else f"what only {name} has is lost then",
                ),
            ),
        )


def _source_reached(tiers: Tiers, source: str | None, place: tuple[int, int]) -> bool:
    told = (read(name) for name in tiers.roots(source or "") for read in (tiers.seen.probed, tiers.seen.reported))
    return any(one is not None and one >= place for one in told)


def ahead_of_source(situation: Situation) -> Iterator[Finding]:
    """Nodes that answered before the source did, and were further: the source cut its log off, or lost its end."""
    tiers = tiers_of(situation)
    for source, name in each(tiers):
        last, probe = tiers.seen.probed(name), tiers.seen.probes.get(name)
        heads = [one for one in tiers.roots(source) if tiers.seen.probed(one)]
        if last is None or probe is None or not heads or name in tiers.logs.parts:
            continue
        later = [tiers.seen.probes[one]["at"] for one in heads]
        head = tiers.head(source, True)
        # Read later than the source, a node may simply have got more meanwhile.
        if head is None or last <= head or probe["at"] is None or None in later or min(later) <= probe["at"]:
            continue
        yield Finding(
            "LOG_DIVERGED",
            "warning",
            f"{name} is at {lsn_text(last)}, and its source, asked not before it, only at {lsn_text(head)}: the "
            "source has cut its log off",
            server=name,
            origin=source,
            items=(lsn_text(last),),
            evidence=(evidence_of(tiers, name), *(evidence_of(tiers, one) for one in heads)),
            fix=(
                step(
                    f"compare the ends of both logs (comdb2_transaction_logs, flags 4) before {name} connects anew",
                    "on connecting it cuts off what stands behind the newest commit that both have",
                ),
            ),
        )


def history_changed(situation: Situation) -> Iterator[Finding]:
    """A new generation, or ends of logs that were cut off: what the registry says of a node may be of the history before."""
    tiers = tiers_of(situation)
    before = _before(tiers)
    for source in tiers.sources:
        probes = {name: tiers.seen.probes[name] for name in tiers.members[source] if name in tiers.seen.probes}
        told = {name: row["commit_generation"] for name, row in probes.items() if row["commit_generation"] is not None}
        cut = sorted(
            name
            for name, row in probes.items()
            if (old := before.get(name)) and None not in (row["cuts"], old["cuts"]) and row["cuts"] > old["cuts"]
        )
        newest = max((told[name] for name in tiers.roots(source) if name in told), default=None)
        older = max(
            (
                before[name]["commit_generation"]
                for name in tiers.members[source]
                if name in before and before[name]["commit_generation"] is not None
            ),
            default=newest,
        )
        behind = sorted(name for name, one in told.items() if newest is not None and one < newest)
        if newest is None or not (cut or behind or (older is not None and newest > older)):
            continue
        what = f"the source writes generation {newest} now" + (
            f", before it was {older}" if older is not None and older < newest else ""
        )
        what += f"; the last commit of {some(behind)} is of an older one" if behind else ""
        what += f"; {some(cut, 6)} cut the end of their logs off since the snapshot before" if cut else ""
        yield Finding(
            "LOG_DIVERGED",
            "info",
            f"{what}: what the registry says of a node may be a place in the history before",
            origin=source,
            evidence=first_few(
                {
                    "node": name,
                    "generation": told.get(name),
                    "last": place_text(tiers.seen.probed(name)),
                    "reported": place_text(tiers.seen.reported(name)),
                    "cuts": probes[name]["cuts"],
                    "cuts_before": (before.get(name) or {}).get("cuts"),
                }
                for name in sorted({*behind, *cut} or set(told))
            ),
            fix=(
                step(
                    "ask the nodes themselves once more before you trust a lag out of the registry",
                    "with a new master each node cuts its log back to the newest commit that both have, and registers anew",
                ),
            ),
        )


def _before(tiers: Tiers) -> Mapping[str, Row]:
    """What nodes answered in the snapshot before."""
    labels = list(tiers.case.snapshots)
    at = labels.index(tiers.seen.label)
    return tiered_snapshot(tiers.case, labels[at - 1]).probes if at else {}
