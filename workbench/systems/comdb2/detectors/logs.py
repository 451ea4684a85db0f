"""Collected logs: gaps, and where the log of a node parts from its source's; and what positions alone tell of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from workbench.model import CUT_LINE, ITEMS_SHOWN, Finding, counted, first_few, step
from workbench.replication.tier.diagnosis.beyond_source import IN_ONE_GO, gets_nothing, stands_beyond
from workbench.replication.tier.diagnosis.generations import newer_root, older_source
from workbench.replication.tier.diagnosis.sources import OfItsOwn
from workbench.replication.tier.rules.conditions import STOPPED
from workbench.replication.tier.rules.physical_log import Compared, Gap
from workbench.rules.assumptions import ASKED_IN_ORDER
from workbench.systems.comdb2.detectors.file_gaps import rebuild
from workbench.systems.comdb2.detectors.histories import ASK_WHO_LEADS
from workbench.systems.comdb2.detectors.shown import Row, each, evidence_of, place_text, some, tiers_of
from workbench.systems.comdb2.lsn import FIRST, lsn_text

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

_AT_ONCE = timedelta(seconds=1)
"""Within that long no source writes, and no node fetches, a whole log file more than was there: they are of megabytes."""

_CONNECT_ANEW = "let {} connect anew: it looks for the newest commit that both have, and cuts off what stands behind it"


def damaged_logs(context: DetectorContext) -> Iterator[Finding]:
    """Logs that lack records, or contradict themselves: proven by the places and lengths of their own records."""
    tiers = tiers_of(context)
    for name in sorted(tiers.logs.parts):
        log, source = tiers.logs.log(name), tiers.source_of(name)
        if log is None:
            continue
        files = [one.file for one in tiers.logs.inputs[name]]
        lost = tiers.logs.lost_ends(name)
        if log.gaps.count or lost:
            held = tiers.logs.reference(name)
            unread = any(one.rejected for one in tiers.logs.inputs[name])
            proofs = [*map(_of_gap, log.gaps.first), *_of_ends(lost)]
            count = log.gaps.count + len(proofs) - len(log.gaps.first)
            # What its own records do not prove, the log of another node does.
            yield (Finding if lost else OfItsOwn)(
                "LOG_GAP",
                "warning" if unread or count == tiers.logs.between_dumps(name) else "error",
                f"{name}: its log lacks records in {count:,} place{'s' if count > 1 else ''}: {_what_lacks(proofs[0])}"
                + _lost_commits(tiers, name),
                server=name,
                origin=source,
                items=tuple(proof["expected"] for proof in proofs[:ITEMS_SHOWN]),
                evidence=(*first_few(proofs, count), {"files": ", ".join(files)}),
                fix=(
                    step(
                        f"read the log of {name} once more, with a time-out of its own as the fourth argument "
                        "of comdb2_transaction_logs",
                        "a dump ends without a word after 30 s, and rows may be lost on the way: the gap may be the dump's alone",
                    ),
                    _if_it_stays(tiers, name, held),
                ),
            )
        bad = log.contradictions.count + log.overlaps.count
        if bad:
            places = [*log.contradictions.first, *(one for _, one in log.overlaps.first)]
            yield OfItsOwn(
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


def damaged_before(context: DetectorContext) -> Iterator[Finding]:
    """Logs that lacked records in an earlier snapshot, where what was collected since begins behind the place."""
    tiers = tiers_of(context)
    for hole in tiers.earlier.holes:
        name = hole.server
        lacked = f"{counted(hole.count, 'record')} " if hole.count else "what stands "
        mend = _if_it_stays(tiers, name, tiers.logs.reference(name))
        yield Finding(
            "LOG_GAP",
            "warning",
            f"{name}: in snapshot {hole.snapshot} its log lacked {lacked}between {place_text(hole.after)} and "
            f"{place_text(hole.until)}, and no later dump of it reaches over that place: nothing shows that it was mended",
            server=name,
            origin=tiers.source_of(name),
            items=(place_text(hole.first) or "",),
            evidence=(
                {"snapshot": hole.snapshot, "after": place_text(hole.after), "next_present": place_text(hole.until)},
            ),
            fix=(
                step(
                    f"read the log of {name} once more from {place_text(hole.after)} on, if it still has file {hole.after[0]}",
                    "what was not applied then no later record mends; only a copy of another node does",
                ),
                mend
                | {
                    "repair": (mend["repair"] or "").replace(
                        "if it is still there:",
                        "if it is still there, or the file is gone and nobody copied the node anew since:",
                    )
                },
            ),
        )


def _lost_commits(tiers: Tiers, name: str) -> str:
    """How many commits stand where the log of a node lacks records, as far as the logs of others show them."""
    known = tiers.logs.lost_commits(name)
    if known is None:
        return ""
    count, whole = known
    if not count:
        return "; by the logs of others no commit is lost there"
    many = f"{'' if whole else 'at least '}{counted(count, 'commit')} {'is' if count == 1 else 'are'}"
    return f"; by the logs of others {many} lost there"


def _of_gap(gap: Gap) -> dict[str, str]:
    return {"after": lsn_text(gap.after), "expected": lsn_text(gap.expected), "next_present": lsn_text(gap.next)}


def _of_ends(lost: list[tuple[tuple[int, int], str]]) -> Iterator[dict[str, str]]:
    """The first record that lacks at the end of each file."""
    ends: dict[int, tuple[tuple[int, int], str]] = {}
    for place, holder in lost:
        ends.setdefault(place[0], (place, holder))
    for file, (place, holder) in ends.items():
        yield {"expected": lsn_text(place), "next_present": lsn_text((file + 1, FIRST)), "held_by": holder}


def _what_lacks(proof: Mapping[str, str]) -> str:
    if "after" in proof:
        return f"behind {proof['after']} {proof['expected']} must follow, and {proof['next_present']} does"
    return (
        f"it goes on with {proof['next_present']}, and the log of {proof['held_by']} has {proof['expected']} "
        "at the end of the file before"
    )


def parted_logs(context: DetectorContext) -> Iterator[Finding]:
    """Logs that hold other records than the source's at the same place, or records that it does not have."""
    tiers, cut = tiers_of(context), _cut_files(context)
    for name in sorted(tiers.logs.parts):
        both, reference, source = tiers.logs.beside_source(name), tiers.logs.reference(name), tiers.source_of(name)
        if both is None or both.prefix or source is None or reference is None:
            continue
        above = tiers.logs.apart_above(name)
        if above and name in above.nodes and reference in above.nodes:
            continue  # of one cluster: that is told of both
        theirs = tiers.logs.log(reference)
        here = tiers.logs.other_history(name)
        other = tiers.logs.count_other(name)
        # A log that was read later may go further, if the source is known to have come as far.
        head = tiers.known_head(source)
        ahead = [place for place in both.ahead.first if head is None or place > head]
        beyond = both.ahead.count - len(both.ahead.first) + len(ahead) if ahead else 0
        if not other and (not beyond or any(one.file in cut for one in tiers.logs.inputs[reference])):
            continue  # what stands behind a dump of which the end was not copied is no other record
        # Where the two are alike again behind the places, what goes on behind the end of the other one is no other record.
        again = both.match is not None and bool(here) and here[-1] < both.match
        places = here if again else sorted([*here, *ahead])
        inside = both.match is not None and bool(places) and places[0] < both.match
        says = (
            f"{name} has other records than {reference} at {other:,} place{'s' if other > 1 else ''}"
            if other
            else f"{name} has {beyond:,} records behind the end of {reference}"
        )
        # What lies behind the end of the source's dump was held against nothing: the newest commit of both may be there.
        whole = head is None or theirs is None or theirs.last is None or theirs.last >= head
        if not whole and not other:
            says += f", which is at {place_text(head)} at least"
        elif not other and tiers.head(source, True) is None and tiers.head(source, False) is None:
            says += ", unless its dump ended early"
        yield Finding(
            "LOG_DIVERGED",
            "error" if other else "warning",
            f"{says}, from {lsn_text(places[0]) if places else '?'} on{_match(both, name, inside) if whole or other else ''}",
            server=name,
            origin=source,
            items=tuple(map(lsn_text, places[:ITEMS_SHOWN])),
            evidence=first_few(({"at": lsn_text(place)} for place in places), other if again else other + beyond),
            fix=(*_joined_again(tiers, name, reference, places, inside, bool(other)),),
        )


def _cut_files(context: DetectorContext) -> set[str]:
    """The files that end within their last line."""
    where = pc.starts_with(pc.field("reason"), CUT_LINE)
    rejects = context.rows("rejects", ["file", "reason"], where, snapshot=context.topology.snapshot)
    return {row["file"] for batch in rejects for row in batch.to_pylist()}


def _match(both: Compared, name: str, inside: bool) -> str:
    if both.match is None:
        return "; in what was collected no commit is common to both"
    if inside:
        return (
            f"; behind it they are alike again: the last commit that both have is {lsn_text(both.match)}, so that "
            f"{name} does not come back to that place by itself"
        )
    return (
        f"; the last commit that both have is {lsn_text(both.match)}, {both.cut:,} records behind it would be cut off"
    )


def _if_it_stays(tiers: Tiers, name: str, reference: str | None) -> dict[str, str | None]:
    """What mends a log that lacks records. Over a node of the source no node below it may be copied: it is what they follow."""
    roots = tiers.roots(tiers.source_of(name) or "")
    if not tiers.source_is_known or name not in roots:
        copied = _copied(tiers, name, reference) if tiers.source_is_known else "another node"
        if copied == reference and reference in tiers.logs.spoilt:
            return step(
                f"if it is still there: first do what LOG_GAP says of {reference}, then rebuild {name} from a copy of a node "
                "whose log is whole",
                f"the log of {reference} lacks records, too: a copy of it would have the same gap, and no other node that was "
                "collected is up to date and whole",
            )
        why = "a log with a gap cannot be applied, and cannot serve anybody"
        return step(f"if it is still there: rebuild {name} from a copy of {copied}", why)
    if len(roots) > 1:
        others = some([node for node in roots if node != name])
        return step(
            f"if it is still there: copy {name} anew within its cluster, from {others}",
            "a log with a gap serves nobody",
        )
    return step(
        f"if it is still there: rebuild the nodes below that have not passed it from a copy of {name}",
        "no session brings them what the log of their source lacks",
        f"copy no node below over {name}: it is the source that they follow",
    )


def _copied(tiers: Tiers, name: str, reference: str | None) -> str:
    """The node that a rebuild copies: one that is up to date, else that whose log this one was held against."""
    return next(iter(tiers.copied_from(name)), reference if reference not in (None, name) else None) or "another node"


def _joined_again(
    tiers: Tiers, name: str, reference: str, places: list[tuple[int, int]], inside: bool, other: bool
) -> Iterator[dict[str, str | None]]:
    """What brings the two logs together again."""
    above = tiers.logs.apart_above(name)
    if above and above.elected is None:
        yield step(
            f"first do what LOG_DIVERGED says of {above.nodes[0]}",
            "the nodes of the source hold different logs, and nothing tells to which of these two it would be cut back",
        )
        return
    if inside:
        alike, unlike = _others_there(tiers, name, reference, places[0])
        yield step(
            f"read both logs once more from {lsn_text(places[0])} on, and look which of them is right",
            "a dump may have been damaged on its way",
            f"the logs of {some(unlike)} do not have there what {reference} has, either: look at the log of {reference} first"
            if unlike and not alike
            else None,
        )
        yield rebuild(tiers, name) | {
            "why": "on connecting a node cuts its log back to the newest commit that both have, and that stands behind this place"
        }
        return
    if other and tiers.logs.unjoined(name):
        yield step(
            f"read both logs from further back, as far as {name} and {reference} still have files",
            "in what was collected they have no commit in common: only an older one can show where they part",
        )
        yield rebuild(tiers, name) | {
            "why": "where there is no commit that both have, a node that connects finds no place to join at, and gets nothing",
            "caution": f"only if no older commit is common either: with one {name} connects anew and is cut back to it; what "
            f"only {name} has is lost either way",
        }
        return
    stale = [node for history in above.histories[1:] for node in history] if above else []
    yield step(
        _CONNECT_ANEW.format(name),
        "two histories cannot be brought together, only one of them can go on",
        f"what only {name} has is lost then"
        + (
            ""
            if other
            else f"; the logs were read moments apart, and the dump of {reference} may have ended early: read it once more first"
        )
        + (
            f"; first see to {some(stale)}, whose log is not the elected one: the registry may send it there"
            if stale
            else ""
        ),
    )


def _others_there(tiers: Tiers, name: str, reference: str, place: tuple[int, int]) -> tuple[list[str], list[str]]:
    """The other logs that hold there what the source's holds, and those that do not."""
    alike: list[str] = []
    unlike: list[str] = []
    for one, copy in tiers.logs.pairs:
        span = tiers.logs.span(copy)
        if one == reference and copy != name and span and span[0] <= place <= span[1]:
            both = tiers.logs.looked.pairs[one, copy]
            apart = place in both.differing.first or place in both.only_copy.first
            (unlike if apart else alike).append(copy)
    return alike, unlike


def ended_early(context: DetectorContext) -> Iterator[Finding]:
    """Dumps that end before the place where the node itself was, or of the source any that tells of it."""
    tiers = tiers_of(context)
    for source in tiers.sources:
        rows, by_others = [], False
        for name in tiers.members[source]:
            span = tiers.logs.span(name)
            # The cluster has one log, but one of its nodes may be asked later than another one: that is no dump that ended.
            beyond = _copies_go_on(tiers, name)
            was = tiers.known_head(source) if beyond else tiers.seen.probed(name)
            if span is not None and was is not None and span[1] < was:
                by_others = by_others or beyond
                rows.append({"node": name, "its_log_ends": place_text(span[1]), "was_at": place_text(was)})
        if rows:
            names = [str(row["node"]) for row in rows]
            yield (Finding if by_others else OfItsOwn)(
                "LOG_GAP",
                "info",
                f"what was collected of the log{'s' if len(rows) > 1 else ''} of {some(names)} ends at "
                f"{rows[0]['its_log_ends']}, and {'the first of them' if len(rows) > 1 else 'it'} was at {rows[0]['was_at']}: "
                "a dump that was read before that, or that ended before the log did",
                server=names[0],
                origin=source,
                items=(str(rows[0]["its_log_ends"]),),
                evidence=first_few(rows),
                fix=(
                    step(
                        f"read the log of {names[0]} once more, with a time-out of its own as the fourth argument "
                        "of comdb2_transaction_logs",
                        "a dump ends without a word after 30 s; what stands behind its end was held against nothing",
                    ),
                ),
            )


def _copies_go_on(tiers: Tiers, name: str) -> bool:
    """Whether copies show records behind the end of this dump, which is the one of their source."""
    pairs = tiers.logs.looked.pairs
    return any(one == name and pairs[one, copy].ahead.count for one, copy in tiers.logs.pairs)


def ahead_of_source(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that answered before the source did, and were further: the source cut its log off, or lost its end.

    One that was asked later may have got more meanwhile, but no whole files within seconds; and not where the source answered
    less than it had reported itself.
    """
    tiers = tiers_of(context)
    for source, name in each(tiers):
        last, probe = tiers.seen.probed(name), tiers.seen.probes.get(name)
        heads = [one for one in tiers.roots(source) if tiers.seen.probed(one)]
        if last is None or probe is None or not heads or name in tiers.logs.parts:
            continue
        later = [tiers.seen.probes[one]["at"] for one in heads]
        head = tiers.head(source, True)
        if head is None or last <= head or probe["at"] is None or None in later:
            continue
        # Read later than the source, a node may simply have got more meanwhile.
        before = min(later) > probe["at"]
        back = [one for one in heads if tiers.seen.outdated(one) and (tiers.seen.reported(one) or head) > head]
        files, first = last[0] - head[0] - 1, tiers.seen.first_file(name)
        leaps = files > 0 and probe["at"] - max(later) <= _AT_ONCE
        beyond = first is not None and first > head[0] and probe["at"] - max(later) <= IN_ONE_GO
        still = gets_nothing(tiers, name) and stands_beyond(tiers, name) is not None
        if not (before or leaps or beyond or still or (back and len(back) == len(heads))):
            continue
        if not before and newer_root(tiers.seen, tiers.roots(source), name):
            continue  # by their generations these are two histories, of which the source's is the elected one
        how = ", asked not before it," if before else ", asked at the same time," if leaps else ""
        says = f"{name} is at {lsn_text(last)}, and its source{how} only at {lsn_text(head)}"
        says += f", more than {counted(files, 'whole log file')} before that" if files > 0 else ""
        says += f"; its own oldest log file is {first}: the two logs have nothing in common" if beyond else ""
        says += f"; {back[0]} had reported {place_text(tiers.seen.reported(back[0]))} before" if back else ""
        says += f"; {_why_still(tiers, name)}" if still and not before else ""
        yield Finding(
            "LOG_DIVERGED",
            "warning",
            f"{says}: the source has cut its log off"
            + ("" if before else ", or was put back to an older state")
            + (f", or {name} follows another source" if beyond else "")
            + (f", or {name} pulls all the same, and was asked after its source" if still and not before else ""),
            server=name,
            origin=source,
            items=(lsn_text(last),),
            evidence=(evidence_of(tiers, name), *(evidence_of(tiers, one) for one in heads)),
            assumes=(ASKED_IN_ORDER,) if before else (),
            fix=(
                step(
                    f"find out which of the two is right: look whether {some(heads)} was put back, and what {name} pulls from",
                    "without a log file that both have a node finds no commit to join at: it gets nothing from there",
                    f"do not rebuild {name} before: it may be the last one to have what the source lost",
                )
                if beyond
                else step(
                    f"compare the ends of both logs (comdb2_transaction_logs, flags 4) before {name} connects anew",
                    "on connecting it cuts off what stands behind the newest commit that both have",
                ),
            ),
        )


def _why_still(tiers: Tiers, name: str) -> str:
    """Why a node had got no more between the moment in which its source was asked and its own."""
    if tiers.states[name] == STOPPED:
        return f"the replication of {name} was stopped before that"
    return f"no row says that {name} pulls from anybody"


def older_generation(context: DetectorContext) -> Iterator[Finding]:
    """Nodes whose newest commit is of another generation than the source's at the same place, or of an older one behind it.

    Along one log generations never fall: these two commits are of two histories.
    """
    tiers = tiers_of(context)
    told = {one.server for one in ahead_of_source(context)} | tiers.guessed
    for source in tiers.sources:
        for name in tiers.members[source]:
            mine, generation, at = _commit(tiers, name)
            if mine is None or generation is None or name in told or name in tiers.logs.parts:
                continue
            if root := newer_root(tiers.seen, tiers.roots(source), name):
                # Asked before the source was, the node may have cut its end off meanwhile.
                asked = _commit(tiers, root)[2]
                since = at is not None and asked is not None and at > asked
                yield _of_two_histories(tiers, source, name, root, since)


def _of_two_histories(tiers: Tiers, source: str, name: str, root: str, since: bool) -> Finding:
    (mine, generation, _), (theirs, newer, _) = _commit(tiers, name), _commit(tiers, root)
    at_top, first = name in tiers.roots(source), tiers.seen.first_file(name)
    return Finding(
        "LOG_DIVERGED",
        "error" if since else "warning",
        f"{name} has a commit of generation {generation} at {place_text(mine)}, and {root} one of generation "
        f"{newer} at {place_text(theirs)}: these are of two histories"
        + (", and the higher generation was elected" if at_top else "")
        + ("" if since else ", unless the node has cut its end off since it was asked"),
        server=name,
        origin=source,
        items=(place_text(mine) or "",),
        evidence=(
            evidence_of(tiers, name) | {"generation": generation},
            evidence_of(tiers, root) | {"generation": newer},
        ),
        assumes=(ASKED_IN_ORDER,) if since else (),
        fix=(
            step(
                f"ask both once more; if it is still so, copy {name} anew within its cluster, from {root}, once its own log "
                "was dumped",
                "of two histories only the elected one goes on, and whoever connects to the other one gets that",
                f"what only {name} has is lost then",
            )
            if at_top
            else rebuild(tiers, name)
            | {
                "why": f"its oldest log file is {first}, and {root} ends before: without a file that both have a node finds no "
                "commit to join at, and gets nothing",
                "caution": f"what only {name} has is lost then: dump its log first, if anybody may ask for it",
            }
            if first is not None and theirs is not None and first > theirs[0]
            else step(
                _CONNECT_ANEW.format(name),
                "two histories cannot be brought together, only one of them can go on",
                f"what only {name} has is lost then",
            ),
        ),
    )


def newer_generation(context: DetectorContext) -> Iterator[Finding]:
    """Nodes whose newest commit is of a newer generation than that of their source, which is further: two histories as well."""
    tiers = tiers_of(context)
    for source, name in each(tiers):
        root = older_source(tiers, name)
        if root is None or name in tiers.logs.parts:
            continue
        (mine, generation, at), (theirs, older, asked) = _commit(tiers, name), _commit(tiers, root)
        # Asked before the node was, the source may have cut its end off meanwhile.
        since = at is not None and asked is not None and asked > at
        yield Finding(
            "LOG_DIVERGED",
            "error" if since else "warning",
            f"{name} has a commit of generation {generation} at {place_text(mine)}, and {root}, its source, one of generation "
            f"{older} at {place_text(theirs)}, further on: these are of two histories, and the higher generation was elected"
            + ("" if since else ", unless the source has cut its end off since it was asked"),
            server=name,
            origin=source,
            assumes=(ASKED_IN_ORDER,) if since else (),
            items=(place_text(mine) or "",),
            evidence=(
                evidence_of(tiers, name) | {"generation": generation},
                evidence_of(tiers, root) | {"generation": older},
            ),
            fix=(
                step(
                    f"ask {root} and {name} once more, and find out which node of {source} is its master "
                    f"({ASK_WHO_LEADS})",
                    "a source cannot be of an older generation than what it sent: it lost its history, or was not asked in time",
                    f"until then do not let {name} connect anew: it would be cut back to what {root} has",
                ),
            ),
        )


def _commit(tiers: Tiers, name: str) -> tuple[tuple[int, int] | None, int | None, datetime | None]:
    """The newest commit that a node told of: its place and its generation, and when it was asked."""
    probe = tiers.seen.probes.get(name)
    return (tiers.seen.probed(name, "commit"), probe["commit_generation"], probe["at"]) if probe else (None, None, None)


def history_changed(context: DetectorContext) -> Iterator[Finding]:
    """A new generation, or ends of logs that were cut off: what the registry says of a node may be of the history before."""
    tiers = tiers_of(context)
    before: Mapping[str, Row] = tiers.before.probes if tiers.before else {}
    for source in tiers.sources:
        members = [name for name in tiers.members[source] if name not in tiers.guessed]
        probes = {name: tiers.seen.probes[name] for name in members if name in tiers.seen.probes}
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
                for name in members
                if name in before and before[name]["commit_generation"] is not None
            ),
            default=newest,
        )
        behind = sorted(name for name, one in told.items() if newest is not None and one < newest)
        # The last commit of a node that is behind may be of an older generation: only a change since the snapshot before tells.
        if newest is None or not (cut or (older is not None and newest > older)):
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
