"""What the collected logs of nodes show: each by itself, and each beside that of the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.case.case import Case
from workbench.engine.physical import Looked, looked_at
from workbench.model import Problem
from workbench.replication.tier.diagnosis.histories import Apart, apart, forked, pairs_of
from workbench.replication.tier.rules.physical_log import LIMIT, Checked, Compared, Form, Gap, Listed, Place
from workbench.topology.tier_snapshot import TieredSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_LACKS = "log_lacks"
LACKS_SAYS = "its log goes on behind the record and does not hold it"

LOG = "log"
"""The kind of evidence."""


@dataclass(frozen=True)
class _Told:
    """What all logs show.

    references  node -> whose log its own is held against
    siblings    pairs of nodes that follow one source, of which no log was collected
    holders     node -> another one whose log shows what its own lacks at places that its source's does not reach
    apart       the clusters whose own nodes hold different logs
    """

    looked: Looked
    references: Mapping[str, str | None]
    siblings: tuple[tuple[str, str], ...] = ()
    holders: Mapping[str, str] = field(default_factory=dict)
    apart: tuple[Apart, ...] = ()


class NodeLogs:
    """The logs of one snapshot, of each node all its dumps together. They are read once, when something of them is asked.

    sources   node -> the nodes of its source cluster: the log of one of these is what the others are held against
    """

    def __init__(
        self, case: Case, seen: TieredSnapshot, form: Form, sources: Mapping[str, Sequence[str]], limit: int = LIMIT
    ) -> None:
        self._case = case
        self._form, self._limit, self._sources = form, limit, sources
        self.parts: dict[str, list[dict[str, Any]]] = {}
        self.inputs = seen.logs
        self._probes = seen.probes
        for name, inputs in seen.logs.items():
            parts = [part for one in inputs for part in case.parts("records", one)]
            if parts:
                self.parts[name] = parts
        # Only of a file that the node has gone on from: the newest one still grows.
        self._sizes = {
            name: {file: size for file, size in held.items() if file < max(held)} for name, held in seen.files.items()
        }

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Each log beside that of its source, of which the one with most records stands for the cluster, or that of the history
        that was elected.
        """
        return _beside_references(self._told.references)

    def reference(self, name: str) -> str | None:
        """Whose log that of a node is held against; None: none of its source was collected."""
        told = self._told.references
        return told[name] if name in told else self._most_read(name)

    def _most_read(self, name: str) -> str | None:
        return next(iter(self._read_first(self._sources.get(name, ()))), None)

    def _read_first(self, roots: Sequence[str]) -> list[str]:
        """The nodes of a cluster whose logs were collected, those with most records first."""
        having = sorted(one for one in roots if one in self.parts)
        return sorted(having, key=lambda one: -sum(part["rows"] for part in self.parts[one]))

    @property
    def looked(self) -> Looked:
        """What all logs show."""
        return self._told.looked

    @property
    def apart(self) -> tuple[Apart, ...]:
        """The clusters whose own nodes hold different logs."""
        return self._told.apart

    def apart_above(self, name: str) -> Apart | None:
        """What is known of the cluster that a node follows, or is of, if its nodes hold different logs."""
        return next((one for one in self.apart if set(one.nodes) & set(self._sources.get(name, ()))), None)

    @cached_property
    def _told(self) -> _Told:
        return self._look(None)

    def _look(self, spark: SparkSession | None) -> _Told:
        references = {name: self._most_read(name) for name in sorted(self.parts)}
        siblings = tuple(self._siblings(references))
        clusters = {tuple(self._read_first(roots)) for roots in self._sources.values()}
        within = [pair for roots in sorted(clusters) for pair in combinations(roots, 2)]
        pairs = [*dict.fromkeys([*_beside_references(references), *siblings, *within])]
        looked = looked_at(self.parts, pairs, self._sizes, spark, self._form, self._limit)
        holders = self._holders(looked, references)
        split = sorted(
            roots for roots in clusters if any(forked(looked.pairs[pair]) for pair in combinations(roots, 2))
        )
        if not split and not holders:
            return _Told(looked, references, siblings)
        more = [
            pair
            for roots in split
            for pair in pairs_of(roots, [name for name in sorted(self.parts) if self._most_read(name) == roots[0]])
        ]
        pairs = [*dict.fromkeys([*pairs, *more, *((copy, name) for name, copy in holders.items())])]
        looked = looked_at(self.parts, pairs, self._sizes, spark, self._form, self._limit)
        found = tuple(apart(looked, roots, self.generations(roots), self._leading(roots)) for roots in split)
        for one, roots in zip(found, split, strict=True):
            for name in [name for name, reference in references.items() if reference == roots[0]]:
                references[name] = one.elected or (name if name in roots else _nearest(looked, roots, name))
        return _Told(looked, references, siblings, holders, found)

    @property
    def siblings(self) -> tuple[tuple[str, str], ...]:
        """Logs of nodes that follow one source, each beside the largest of them, where no log of that source was collected."""
        return self._told.siblings

    @property
    def at_odds(self) -> frozenset[str]:
        """Of these the nodes that hold different records: nothing tells which of them has parted, and none of them is copied."""
        return frozenset(name for pair in self.siblings if forked(self.looked.pairs[pair]) for name in pair)

    def _siblings(self, references: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, reference in references.items():
            if reference is None and name in self._sources:
                groups.setdefault(tuple(self._sources[name]), []).append(name)
        for names in groups.values():
            first, *others = self._read_first(names)
            yield from ((first, other) for other in others)

    def _holders(self, looked: Looked, references: Mapping[str, str | None]) -> dict[str, str]:
        """Of each log that lacks records before that of its source begins, another one of the same source that reaches there."""
        found: dict[str, str] = {}
        for name, reference in references.items():
            theirs = looked.logs[reference].first if reference else None
            gaps = [gap for gap in looked.logs[name].gaps.first if theirs is None or gap.next <= theirs]
            for copy in self._read_first(
                [one for one in self.parts if self._sources.get(one) == self._sources.get(name)]
            ):
                log = looked.logs[copy]
                if copy in (name, reference) or log.first is None or log.last is None or name not in self._sources:
                    continue
                if any(log.first <= gap.after and gap.next <= log.last for gap in gaps):
                    found.setdefault(name, copy)
        return found

    def generations(self, roots: Sequence[str]) -> dict[str, int]:
        """The newest generation of each of some logs: generations never fall along one."""
        found = {}
        for name in roots:
            columns = (pq.read_table(part["path"], columns=["generation"])["generation"] for part in self.parts[name])
            told = [pc.max(column).as_py() for column in columns]
            told.append((self._probes.get(name) or {}).get("commit_generation"))
            if known := [one for one in told if one is not None]:
                found[name] = max(known)
        return found

    def _leading(self, roots: Sequence[str]) -> list[str]:
        """Of the nodes of a cluster those that it calls its master."""
        cluster = next(of for of in self._sources.values() if set(roots) <= set(of))
        return [name for name in cluster if (self._probes.get(name) or {}).get("leads")]

    def checked_by(self, spark: SparkSession) -> None:
        """Look with Spark instead of in this process; where that was done already, both must say the same."""
        told = self._look(spark)
        if "_told" in self.__dict__ and told != self._told:
            raise Problem(
                "two ways of checking the logs disagree", "evidence", "the evidence is damaged: load the inputs anew"
            )
        self.__dict__["_told"] = told

    def log(self, name: str) -> Checked | None:
        """What the log of a node shows by itself; None: none was collected."""
        return self.looked.logs.get(name)

    def beside_source(self, name: str) -> Compared | None:
        """What it shows beside that of its source; None: one of the two was not collected."""
        reference = self.reference(name)
        return self.looked.pairs.get((reference, name)) if reference else None

    def span(self, name: str) -> tuple[Place, Place] | None:
        """The first and the last record of the log of a node; None: none was collected."""
        log = self.log(name)
        return (log.first, log.last) if log and log.first and log.last else None

    def behind(self, name: str) -> tuple[Place, int] | None:
        """The first record of the source behind the log of a node, and how many there are; None: there is none, or no log."""
        both = self.beside_source(name)
        return (both.behind.first[0], both.behind.count) if both and both.behind.count else None

    def whole_behind(self, name: str, last: Place, head: Place) -> bool:
        """Whether the log of the source shows all from a place on to another one: it goes so far, and lacks nothing there."""
        reference = self.reference(name)
        span, log = (self.span(reference), self.log(reference)) if reference else (None, None)
        if reference is None or span is None or log is None or span[0] > last or span[1] < head:
            return False
        unread = any(one.rejected for one in self.inputs[reference])
        listed = len(log.gaps.first) == log.gaps.count
        return not unread and listed and not any(gap.next > last for gap in log.gaps.first)

    def cut_back(self, name: str) -> tuple[Place, Place, int] | None:
        """Of a node that cuts its end off when it connects: the commit that stays, and behind it the first record of the source
        and how many there are. None: it cuts nothing off, or nothing of the source stands behind that commit.
        """
        both = self.beside_source(name)
        if both is None or both.match is None or not both.after_match.count or not self._parts_at_end(name):
            return None
        return both.match, both.after_match.first[0], both.after_match.count

    def unjoined(self, name: str) -> tuple[Place, Place, int] | None:
        """Of a log that has no commit in common with its source's, as far as both were collected: the last record that both have
        alike, or else the first of both, the first one of the source behind the place where they part, and how many these are.

        What only the source shows before that place may be a hole of the dump alone.
        """
        both, span, other = self.beside_source(name), self.span(name), self.other_history(name)
        if both is None or span is None or both.match is not None or not other:
            return None
        rest = [place for place in both.only_reference.first if place >= min(other)]
        firsts = [*both.differing.first[:1], *rest[:1], *both.behind.first[:1]]
        count = both.differing.count + len(rest) + both.behind.count
        return (both.last_same or span[0], min(firsts), count) if firsts else None

    def own_records(self, name: str) -> tuple[int, Place] | None:
        """How many records of another content, or at other places, than its source's a log has, and the first; None: it has none.

        What lies behind the end of the source's dump counts only behind a place where the two are not alike.
        """
        both = self.beside_source(name)
        if both is None or name not in self.spoilt:
            return None
        # A place that only the source shows is a hole of the node, or of its dump: the two do not part there.
        parted = both.parts is not None and any(place >= both.parts for place in self.other_history(name))
        here, ahead = self.other_history(name), both.ahead if parted else Listed()
        count, first = self.count_other(name) + ahead.count, [*here, *ahead.first][:1]
        return (count, first[0]) if first else None

    def count_other(self, name: str) -> int:
        """How many records of another history a log holds, as far as that of its source goes; where the lists are cut, of all."""
        both, here = self.beside_source(name), self.other_history(name)
        lists = (both.differing, both.only_copy) if both and here else ()
        cut = any(one.count > len(one.first) for one in lists)
        return sum(one.count for one in lists) if cut else len(here)

    def stops_behind(self, name: str, place: Place) -> bool:
        """Whether who pulls from a node gets no further than a place: behind it its log lacks records, or has other ones."""
        log = self.log(name)
        if log is None or name not in self.spoilt:
            return False
        gaps = log.gaps.first if log.gaps.count > self.between_dumps(name) else []
        lost = [at for at, _ in self.lost_ends(name)]
        return any(gap.next > place for gap in gaps) or any(at > place for at in (*lost, *self.other_history(name)))

    def other_history(self, name: str) -> list[Place]:
        """The places at which a log holds what that of its source does not hold: what the source's own dump lacks its copies
        hold rightly, and that is no other history.
        """
        both, reference = self.beside_source(name), self.reference(name)
        theirs = self.log(reference) if reference else None
        if both is None or reference is None or theirs is None:
            return []
        unread = any(one.rejected for one in self.inputs[reference])
        lost = {place for place, _ in self.lost_ends(reference)}
        only = [
            place
            for place in both.only_copy.first
            if not unread and place not in lost and not _within(theirs.gaps.first, place)
        ]
        return sorted([*both.differing.first, *only])

    def lacking(self, name: str) -> list[dict[str, Any]]:
        """The records that the log of a node lacks although it goes on behind them, as the contract has missing changes.

        Where rows of its dump could not be read, nobody knows: nothing is missing for that. Nor is it where the two logs have
        parted: what the node does not have of the other history it gets when it has cut its own end off.
        """
        if name not in self.parts or self._unread(name):
            return []
        both, reference, within = self.beside_source(name), self.reference(name), self._collected(name)
        about: dict[str, Any] = {"operation": None, "target": None, "attribute": None, "cause": "LOG_GAP"}
        about |= {"evidence": [LOG], "rule": LOG_LACKS, "says": LACKS_SAYS}
        held = {
            place: reference
            for place in (both.only_reference.first if both else ())
            if both
            and any(first <= place <= last for first, last in within)
            and (both.parts is None or place < both.parts)
        }
        for place, copy in self._held_elsewhere(name):
            held.setdefault(place, copy)
        return [{"position": place, "held_by": [holder], **about} for place, holder in sorted(held.items())]

    def _held_elsewhere(self, name: str) -> list[tuple[Place, str]]:
        """What its own gaps prove to be missing, before the log of its source begins: the records that another node has there, if
        the two logs are alike on both sides of the gap.
        """
        copy, log = self._told.holders.get(name), self.log(name)
        both = self.looked.pairs.get((copy, name)) if copy else None
        if copy is None or both is None or log is None:
            return []
        alone = [*both.differing.first, *both.only_copy.first]
        gaps = [gap for gap in self.own_gaps(name) if not {gap.after, gap.next} & set(alone)]
        gaps = [gap for gap in gaps if both.last_same is not None and both.last_same >= gap.next]
        return [(place, copy) for place in both.only_reference.first if _within(gaps, place)]

    def lost_ends(self, name: str) -> list[tuple[Place, str]]:
        """The records that lack at the ends of files of a node's log, each with a node whose log has it.

        Where a file ends its own records do not tell: that one lacks there only another log proves.
        """
        log = self.log(name)
        if log is None:
            return []
        found = {place: reference for place in self._lacked(name) if (reference := self.reference(name))}
        # The source's own dump may be the one that lacks them: its copies hold them rightly.
        ends = {place[0]: place for place in log.unproven.first}
        for reference, copy in self.pairs:
            if reference == name:
                both = self.looked.pairs[reference, copy]
                # Behind the place where the two part, the copy has another history.
                only = [place for place in both.only_copy.first if both.parts is None or place < both.parts]
                found |= {place: copy for place in only if place[0] in ends and ends[place[0]] < place}
        return sorted(found.items())

    def _lacked(self, name: str) -> list[Place]:
        """What a log lacks, but for what its own gaps prove already."""
        log = self.log(name)
        gaps = log.gaps.first if log else []
        return [lack["position"] for lack in self.lacking(name) if not _within(gaps, lack["position"])]

    def lost_commits(self, name: str) -> tuple[int, bool] | None:
        """How many commits stand where a log lacks records, by the logs of others, and whether these show all that stood there;
        None: they show none, and not all.
        """
        log, reference = self.log(name), self.reference(name)
        if log is None or reference is None or self._unread(name):
            return None
        gaps = {gap.after: gap.next for gap in log.gaps.first}
        ends: dict[int, Place] = {}
        for place, _ in self.lost_ends(name):
            ends.setdefault(place[0], place)
        gaps |= {(file, place[1] - 1): (file + 1, self._form.begins) for file, place in ends.items()}
        lost: set[Place] = set()
        whole = bool(gaps) and len(log.gaps.first) == log.gaps.count
        for low, high in gaps.items():
            shown = self._commits_between(name, reference, low, high)
            lost |= {place for places in shown.values() for place in places}
            whole = whole and any(self._shows(one, low, high) for one in shown)
        return (len(lost), whole) if lost or whole else None

    def _commits_between(self, name: str, reference: str, low: Place, high: Place) -> dict[str, list[Place]]:
        """The commits in a gap of a log, by each other log that is the same as it behind the gap: only then is it one history."""

        def alike(copy: str) -> bool:
            last = self.looked.pairs[reference, copy].last_same
            return last is not None and last >= high

        copies = [copy for one, copy in self.pairs if one == reference and copy != name and alike(copy)]
        found = {copy: self.looked.pairs[reference, copy].commits_copy.first for copy in copies}
        if name != reference:
            found = (
                {**found, reference: self.looked.pairs[reference, name].commits_reference.first} if alike(name) else {}
            )
        return {one: [place for place in places if low < place < high] for one, places in found.items()}

    def _shows(self, name: str, low: Place, high: Place) -> bool:
        """Whether the log of a node shows all that stands between two places of which it has both."""
        log, span = self.log(name), self.span(name)
        if log is None or span is None or self._unread(name) or len(log.gaps.first) < log.gaps.count:
            return False
        inside = any(gap.after < high and gap.next > low for gap in log.gaps.first)
        ends = any(low <= place < high for place, _ in self.lost_ends(name))
        return span[0] <= low and span[1] >= high and not inside and not ends

    def _unread(self, name: str) -> bool:
        """Whether rows of its dumps could not be read."""
        return any(one.rejected for one in self.inputs[name])

    def between_dumps(self, name: str) -> int:
        """How many of the listed gaps lie between two collected files: nothing was collected there."""
        log = self.log(name)
        return len(log.gaps.first) - len(self.own_gaps(name)) if log else 0

    def own_gaps(self, name: str) -> list[Gap]:
        """The listed gaps of a log that are within what was collected of it."""
        log, ends = self.log(name), self._collected(name)
        lasts, firsts = {last for _, last in ends}, {first for first, _ in ends}
        return [gap for gap in log.gaps.first if not (gap.after in lasts and gap.next in firsts)] if log else []

    @cached_property
    def spoilt(self) -> frozenset[str]:
        """The nodes whose log is proven to lack records, or to hold other ones than its source's: nobody copies those."""

        def bad(name: str) -> bool:
            log, both = self.log(name), self.beside_source(name)
            alone = log is not None and (
                log.gaps.count > self.between_dumps(name) or log.contradictions.count or log.overlaps.count
            )
            return bool(alone or (both and self.other_history(name)) or self.lost_ends(name))

        return frozenset(name for name in self.parts if bad(name))

    @cached_property
    def parted(self) -> frozenset[str]:
        """Of these nodes those whose log is whole, and is another one only behind the newest commit that their source has, too:
        when they connect they cut that off.
        """

        def whole(name: str) -> bool:
            log = self.log(name)
            alone = log is None or log.gaps.count or log.contradictions.count or log.overlaps.count
            return not alone and not self.lost_ends(name)

        return frozenset(name for name in self.spoilt if self._parts_at_end(name) and whole(name))

    def _parts_at_end(self, name: str) -> bool:
        """Whether a log is another one than its source's only behind the newest commit that both have."""
        both, here = self.beside_source(name), self.other_history(name)
        return both is not None and both.match is not None and bool(here) and both.match < here[0]

    def _collected(self, name: str) -> list[tuple[Place, Place]]:
        """From where to where each collected file of a node goes: between two of them nothing was collected."""
        return [
            (min(tuple(part["first"]) for part in parts), max(tuple(part["last"]) for part in parts))
            for one in self.inputs[name]
            if (parts := self._case.parts("records", one))
        ]


def _beside_references(references: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [(reference, name) for name, reference in sorted(references.items()) if reference not in (None, name)]


def _nearest(looked: Looked, roots: Sequence[str], name: str) -> str:
    """Of the nodes of a cluster that hold different logs the one that a node follows: whose records its own log has, else with
    which it goes together the furthest.
    """

    def unlike(root: str) -> tuple[bool, Place, int]:
        both = looked.pairs[root, name]
        file, place = both.match or (0, 0)
        return forked(both), (-file, -place), roots.index(root)

    return min(roots, key=unlike)


def _within(gaps: Sequence[Gap], place: Place) -> bool:
    """Whether a place lies in one of the gaps, which are in the order of the log."""
    at = bisect_right([gap.after for gap in gaps], place)
    return at > 0 and place < gaps[at - 1].next
