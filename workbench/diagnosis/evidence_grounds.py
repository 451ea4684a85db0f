"""What the evidence of a case says of changes that the log of one server does not show: the grounds of its verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.carried_changes import rows_elsewhere
from workbench.diagnosis.dropped_changes import answers_that_count
from workbench.diagnosis.initialisations import initialisations
from workbench.diagnosis.lacking_operations import HAD, OperationLogs
from workbench.diagnosis.older_state_put_back import not_put_back
from workbench.diagnosis.resets import CLOCKS_APART, resets_of
from workbench.diagnosis.twin_changes import MissedChanges
from workbench.engine.change_fingerprints import among, likeness, parts_with
from workbench.engine.position_index import Source
from workbench.engine.positions import NONE, Positions, of_keys, union
from workbench.engine.selective_read import changes_of, highest, rows_at, rows_of, rows_where
from workbench.intake.inputs import Input
from workbench.rules.verdicts import REPLACED, TOTAL, Ground, Proving, Reset
from workbench.systems import format_with
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Link, Replica

_APPLIED = ("position", "outcome", "at", "code", "replicated", "origin")
ANSWERED_BEFORE = timedelta(seconds=10)
"""A vector that is read so long after an answer covers the change, if it was applied."""


class Proofs:
    """The grounds for one server, whose log is given if it has one.

    resets  what replaced its data or its log, in the order of time
    """

    def __init__(
        self, evidence: Evidence, replica: Replica, proving: Proving, earlier: Sequence[Source], resets: list[Reset]
    ) -> None:
        self.evidence, self.replica, self.proving, self.earlier = evidence, replica, proving, earlier
        self.system, self.names = evidence.system, evidence.names
        self.resets = resets
        replacing = [reset for reset in resets if reset.kind in (REPLACED, TOTAL)]
        sure = [reset for reset in replacing if reset.sure]
        self.since = sure[-1].ended if sure else None
        """What was logged before says nothing of the data as they are now."""
        self.perhaps = max((reset.ended for reset in replacing if not reset.sure), default=None)
        """What was logged before may say nothing of them: that reset may be of another suffix."""
        if self.perhaps is not None and self.since is not None and self.perhaps <= self.since:
            self.perhaps = None
        self.initialised = sure[-1] if sure and sure[-1].kind == TOTAL else None
        self._replaced_last: dict[str, Reset | None] = {}
        """Server that may have filled this one -> what replaced its data last."""

    @cached_property
    def any(self) -> bool:
        """True if there is anything to look into; if not, what the log does not show stays unknown, unread."""
        server = self.replica.server
        tables = [self.evidence.parts(table, server) for table in ("applied", "entry_states")]
        return bool(self.earlier or self.initialised or any(tables) or self._skips is not None)

    def grounds(
        self, some: Positions, not_shown: Numbers, marks: Mapping[str, str], doubted: Numbers, lacks: Numbers
    ) -> Numbers:
        """The grounds of each of some sorted positions that its log does not hold, as numbers.

        `not_shown`: where the log cannot show the position. `marks`: by origin, up to where a log made anew knows nothing.
        `doubted`: where its data may have come without the change. `lacks`: where they did, and nothing brought it since.
        """
        found = np.where(not_shown, int(Ground.NOT_SHOWN), 0)
        keys = pa.array(some.keys(self.system, self.names), pa.string())
        self._from_logs(some, keys, found, not_shown)
        self._from_states(some, keys, found)
        if self.since is None:
            for source in self.earlier:
                found[source.contains(some)] |= int(self._if_not_replaced(Ground.IN_EARLIER_LOG))
        if self.initialised:
            found[self._initialised(some, keys, marks) & ~doubted] |= int(self._if_not_replaced(Ground.INITIALISED))
            found[lacks] |= int(self._if_not_replaced(Ground.SOURCE_LACKS))
        found[not_shown & self._made_here(some)] |= int(Ground.MADE_HERE)
        return found

    def _made_here(self, some: Positions) -> Numbers:
        """Which of these the server made since it has had the data that it has now, and before it was read."""
        since, read = self.unbroken_since, self.evidence.began.get(self.replica.server)
        if since is None or read is None or self.replica.origin is None:
            return np.zeros(len(some), bool)
        own: Numbers = some.origin == self.evidence.numbers.get(self.replica.origin, -1)
        return own & (some.hi > self.system.instant(since)) & (some.hi < self.system.instant(read))

    def _if_not_replaced(self, ground: Ground) -> Ground:
        """What holds of data that were not replaced since."""
        return ground if self.perhaps is None else Ground.UNCLEAR

    # --- what servers logged

    def _from_logs(self, some: Positions, keys: pa.Array, found: Numbers, not_shown: Numbers) -> None:
        server, where = self.replica.server, self.evidence.between(some)
        own = where & pc.field("link").is_null() & answers_that_count(self.evidence, server)
        told = self.evidence.told("applied", _APPLIED, own, server)
        told = not_put_back(self.evidence, self.replica, self.resets, told, keys, not_shown, _lines_lack)
        self._note(told, keys, found, self._meaning)
        unclear = self.evidence.told("applied", _APPLIED, own, server, unclear=True)
        self._note(unclear, keys, found, lambda row: Ground.UNCLEAR)
        if self._skips_of_any is not None:
            self._note(self._skips_of_any.filter(where), keys, found, lambda row: Ground.UNCLEAR)
        if self._skips is not None:
            self._note(self._skips.filter(where), keys, found, lambda row: Ground.SKIPPED)
        if self.replica.log is None and self._skips_of_someone is not None:
            # Perhaps by this one: then it cancelled what it had refused, and that is no proof that it has the change.
            self._note(self._skips_of_someone.filter(where), keys, found, lambda row: Ground.REFUSED)

    @cached_property
    def _skips(self) -> pa.Table | None:
        """What suppliers logged of changes that they went on without, over their links to this server: a few lines."""
        return self._skips_over(self.replica.server)

    @cached_property
    def _skips_of_someone(self) -> pa.Table | None:
        """The same over links to servers that no file tells: this one may be among them."""
        return self._skips_over(None)

    def _skips_over(self, consumer: str | None) -> pa.Table | None:
        return self._skipped([link for link in self.evidence.shown.links if link.consumer == consumer], False)

    @cached_property
    def _skips_of_any(self) -> pa.Table | None:
        """The same over links whose names are those of other suffixes, too."""
        consumers = (self.replica.server, None) if self.replica.log is None else (self.replica.server,)
        return self._skipped([link for link in self.evidence.shown.links if link.consumer in consumers], True)

    def _skipped(self, links: Iterable[Link], unclear: bool) -> pa.Table | None:
        found = []
        for link in links:
            if link.suffix == self.replica.suffix:
                mine = (pc.field("link") == link.name) & (pc.field("outcome") == "skipped")
                found.append(self.evidence.told("applied", _APPLIED, mine, link.supplier, unclear=unclear))
        found = [table for table in found if len(table)]
        return pa.concat_tables(found) if found else None

    def _note(
        self, rows: pa.Table, keys: pa.Array, found: Numbers, meaning: Callable[[Mapping[str, Any]], Ground]
    ) -> None:
        if not len(rows):
            return
        at = pc.index_in(changes_of(self.system, rows["position"]), value_set=keys)
        rows = rows.append_column("number", at).filter(pc.is_valid(at))
        if self.since is not None:
            # A line without a time counts: an entry's state has none, and a log that has none is rare.
            rows = rows.filter(pc.fill_null(pc.greater_equal(rows["at"], pa.scalar(self.since, rows["at"].type)), True))
        if self.perhaps is not None:
            before = pc.fill_null(pc.less(rows["at"], pa.scalar(self.perhaps, rows["at"].type)), False)
            found[np.asarray(rows.filter(before)["number"])] |= int(Ground.UNCLEAR)
            rows = rows.filter(pc.invert(before))
        kinds = [name for name in ("outcome", "code", "replicated", "origin") if name in rows.column_names]
        for row in rows.group_by([*kinds]).aggregate([("number", "list")]).to_pylist():
            found[np.array(row["number_list"])] |= int(meaning(row))

    def _meaning(self, row: Mapping[str, Any]) -> Ground:
        outcome = row["outcome"]
        if outcome == "refused":
            # What a client asked for and was refused is no change: its position stands here only by its twin elsewhere.
            if row["replicated"] is False:
                return Ground(0)
            return Ground.SKIPPED if row["code"] is not None and self.proving.goes_on(row["code"]) else Ground.REFUSED
        # The log does not show its own changes: one of them may have been newer, and then it took this one for known.
        received = Ground(0) if row["origin"] == self.replica.origin else Ground.APPLIED
        grounds = {"applied": Ground.APPLIED, "dropped": Ground.DROPPED, "cancelled": Ground.CANCELLED}
        return {**grounds, "received": received}.get(outcome, Ground(0))

    # --- what entries carry

    def _from_states(self, some: Positions, keys: pa.Array, found: Numbers) -> None:
        for one in (one for one in self._exports if self._counts(one, self.since)):
            rows = self.evidence.told("entry_states", ["position"], self.evidence.between(some), one=one)
            at = pc.index_in(changes_of(self.system, rows["position"]), value_set=keys)
            there = Ground.IN_STATE if self._counts(one, self.perhaps) else Ground.UNCLEAR
            found[np.asarray(at.drop_null())] |= int(there)

    def in_entries(self, some: Positions) -> Numbers:
        """For each position: an entry of the server carries it."""
        rows = self.evidence.told("entry_states", ["position"], self.evidence.between(some), self.replica.server)
        if not len(rows):
            return np.zeros(len(some), bool)
        carried = pc.is_in(pa.array(some.keys(self.system, self.names)), changes_of(self.system, rows["position"]))
        return np.asarray(carried, bool)

    def _exports_count(self, since: datetime | None) -> bool:
        """False if data replaced then were replaced after all exports."""
        return not self._exports or any(self._counts(one, since) for one in self._exports)

    def _counts(self, export: Input, since: datetime | None) -> bool:
        """False if data replaced then were replaced after the export: by the newest change that it claims."""
        claimed = self._export_vector([export]) if since else {}
        newest = max(filter(None, map(self.system.moment, claimed.values())), default=None)
        return since is None or (newest >= since if newest else export.snapshot == self.evidence.shown.snapshot)

    @cached_property
    def _exports(self) -> list[Input]:
        """The exports of this server's entries."""
        mine = (one for one in self.evidence.inputs if one.server == self.replica.server)
        return [one for one in mine if format_with(one.kind).evidence == "entry_state"]

    @cached_property
    def _claimed_by_exports(self) -> dict[str, str]:
        return self._export_vector(self._exports)

    def _export_vector(self, exports: Iterable[Input]) -> dict[str, str]:
        """Origin -> up to where the vectors in exports of this server's entries reach."""
        files = {(one.snapshot, one.file) for one in exports}
        claimed: dict[str, str] = {}
        for row in self.evidence.rows("vectors"):
            mine = (row["snapshot"], row["file"]) in files and row["suffix"] == self.replica.suffix
            if mine and row["origin"] and row["max"]:
                claimed[row["origin"]] = max(row["max"], claimed.get(row["origin"], ""))
        return claimed

    @cached_property
    def exported(self) -> Mapping[str, str]:
        """Origin -> up to where its present exports claim it; nothing if its data may have been replaced since."""
        now = (one for one in self._exports if one.snapshot == self.evidence.shown.snapshot)
        return self._export_vector(x for x in now if self._counts(x, self.since) and self._counts(x, self.perhaps))

    def lacking_states(self, some: Positions, left_out: frozenset[str]) -> Numbers:
        """For each position: entries of another server carry it, those of this one do not, and nothing later replaced it.

        left_out  attributes that it need not have: notes of each server, and what no link brings
        """
        lacking = np.zeros(len(some), bool)
        keys = some.keys(self.system, self.names)
        claimed = self._claimed_by_exports
        asked = np.array(
            [key <= claimed.get(self.names[o], "") for key, o in zip(keys, some.origin.tolist(), strict=True)]
        )
        counts = self._exports_count(self.since) and self._exports_count(self.perhaps)
        if not asked.any() or not counts:
            return lacking
        columns, server = ["position", "entry", "attribute", "state", "offset"], self.replica.server
        rows = rows_elsewhere(self.evidence, some, columns, server)
        if rows is None:
            return lacking
        need_not = pa.array(sorted(left_out), pa.string())
        rows = rows.filter(pc.invert(pc.is_in(pc.utf8_lower(rows["attribute"]), need_not)))
        rows = rows.append_column("change", changes_of(self.system, rows["position"]))
        rows = rows.filter(pc.is_in(rows["change"], pa.array(keys)))
        entries = pc.unique(rows["entry"]).drop_null()
        own = self.evidence.told("entry_states", columns, pc.field("entry").isin(entries), server)
        latest: dict[tuple[str, str], str] = {}
        there = set(own["entry"].to_pylist())
        cut = [one for one in self._exports if not one.whole and one.snapshot == self._exports[-1].snapshot]
        ends = {highest(self.evidence.parts_of("entry_states", one), "offset") for one in cut}
        sure = {row["entry"] for row in own.to_pylist() if not cut or row["offset"] not in ends}
        for row in own.to_pylist():
            whole = row["state"] == "tombstone"  # a later change of a deleted entry stands for all of it
            for place_ in ((row["entry"], row["attribute"]), *([(row["entry"], "")] if whole else [])):
                latest[place_] = max(row["position"] or "", latest.get(place_, ""))
        carried: dict[str, list[bool]] = {}
        for row in rows.to_pylist():
            if row["entry"] is None:
                continue
            later = max(latest.get((row["entry"], row["attribute"]), ""), latest.get((row["entry"], ""), ""))
            open_ = row["entry"] not in there and row["state"] == "tombstone"  # gone here, too, and cleared away
            open_ |= bool(cut) and row["entry"] not in sure  # it may be in what could not be read, or go on there
            carried.setdefault(row["change"], []).append(not open_ and later < row["change"])
        for number, key in enumerate(keys):
            lacking[number] = bool(asked[number]) and any(carried.get(key, []))
        return lacking

    def shown_above(self, origin: str, seen: str, stands_still: bool = False) -> Positions:
        """Changes of the origin above what vector and log claim that its own later lines and entries show to be there.

        Its files are read one after the other: what a server applied in between stands in the last ones alone. What was logged
        before its last start proves nothing: it may have been started with older data. Nor does what it had answered long before
        its vector was read, which does not cover it: a success may be said of a change that was not applied. Where nothing tells
        of a start, it has what it answered to clients.

        `stands_still`: its vector covers nothing that it took since its last start, so what it answered long before counts, too.
        """
        after = self.unbroken_since
        if after is None and origin != self.replica.origin:
            return NONE
        after = after or max(filter(None, (self.since, self.perhaps)), default=datetime.min.replace(tzinfo=UTC))
        read = self.evidence.began.get(self.replica.server)
        after = max(after, read - ANSWERED_BEFORE) if read and not stands_still else after
        newer, server = (pc.field("origin") == origin) & (pc.field("position") > seen), self.replica.server
        had = [outcome for outcome in HAD if outcome != "received" or origin != self.replica.origin]
        lines = newer & pc.field("link").is_null() & pc.field("outcome").isin(had)
        lines &= (pc.field("at") > pa.scalar(after, pa.timestamp("us", "UTC"))) & answers_that_count(
            self.evidence, server
        )
        found = [self.evidence.told("applied", ["position"], lines, server)]
        for one in (x for x in self._exports if self._counts(x, self.since) and self._counts(x, self.perhaps)):
            found.append(self.evidence.told("entry_states", ["position"], pc.field("position") > seen, one=one))
        keys = {
            key
            for rows in found
            if len(rows)
            for key in pc.unique(changes_of(self.system, rows["position"])).to_pylist()
        }
        known = [key for key in sorted(keys) if key > seen and self.system.origin_of(key) == origin]
        return of_keys(self.system, known, self.evidence.numbers)

    @cached_property
    def unbroken_since(self) -> datetime | None:
        """From when on the server has had the data that it has now: no start and no reset since. None: nothing tells."""
        return max(filter(None, (self._started, self.since, self.perhaps))) if self._started else None

    @cached_property
    def _started(self) -> datetime | None:
        """When the server last started, or the first time that its messages tell; None: nothing tells."""
        parts = self.evidence.parts("messages", self.replica.server) if self.proving.started else []
        rows = rows_where(parts, ["at"], pc.field("at").is_valid() & (pc.field("code") == self.proving.started))
        if len(rows):
            found: datetime = pc.max(rows["at"]).as_py()
            return found
        mine = [one for one in self.evidence.inputs if one.server == self.replica.server]
        logs = [one for one in mine if parts and self.evidence.parts_of("messages", one)]
        begins = [one.facts["time"]["min"] for one in logs if one.facts.get("time", {}).get("min")]
        return min((datetime.fromisoformat(begin).astimezone(UTC) for begin in begins), default=None)

    # --- initialised from another server

    def came_with_data(self, some: Positions, marks: Mapping[str, str]) -> Numbers:
        """For each change: did it come with data that came whole from another server? `marks`: see `grounds`."""
        if self.initialised is None or self.perhaps is not None:
            return np.zeros(len(some), bool)
        return self._initialised(some, pa.array(some.keys(self.system, self.names), pa.string()), marks)

    def _initialised(self, some: Positions, keys: pa.Array, marks: Mapping[str, str]) -> Numbers:
        reset = self.initialised
        assert reset is not None
        older = some.hi < self.system.instant(reset.began)
        inside = np.zeros(len(some), bool)
        for number, name in enumerate(self.names):
            mine = some.origin == number
            if not mine.any():
                continue
            if name in marks:
                # The log was made anew right then: what it says to know, came with the data. Times do not count here: a
                # change may be of the very second in which the initialisation began.
                inside |= mine & self.up_to(some, marks[name])
            elif any(name == one.origin or (one.server, name) in self.evidence.former for one in self.filled_by):
                inside |= mine & older
        for supplier in self.filled_by if (older & ~inside).any() else ():
            # What the supplier was itself initialised with, before it passed its data on.
            for name, mark in self._came_with(supplier, reset.began).items():
                inside |= older & (some.origin == self.evidence.numbers.get(name, -1)) & self.up_to(some, mark)
        left = older & ~inside
        for supplier, until in self._passed_on(reset.began) if left.any() else ():
            # Of third servers: the supplier must have logged it by then.
            where = self.evidence.between(some[left]) & pc.field("outcome").isin(HAD)
            where &= (pc.field("at") < pa.scalar(until)) & answers_that_count(self.evidence, supplier.server)
            rows = self.evidence.told("applied", ["position", "at"], where, supplier.server)
            if len(rows):
                at = pc.index_in(changes_of(self.system, rows["position"]), value_set=keys)
                inside[np.asarray(at.drop_null())] = True
            made = some.origin == self.evidence.numbers.get(supplier.origin or "", -1)
            inside |= left & made & (some.hi < self.system.instant(until))
        return inside

    def _passed_on(self, before: datetime) -> Iterator[tuple[Replica, datetime]]:
        """Whom its data came from whole before that time, and whom theirs came from, each with when it began to send them.

        alba fills hub, then hub fills this one     what alba had when it filled hub came with the data, too
        """
        replicas = {one.server: one for one in self.evidence.shown.replicas if one.suffix == self.replica.suffix}
        open_, seen = [(one.server, before) for one in self.filled_by], set[str]()
        while open_:
            name, until = open_.pop()
            if name in seen or name not in replicas:
                continue
            seen.add(name)
            yield replicas[name], until
            if filled := self._filled_last(replicas[name], until):
                came = initialisations(self.evidence, replicas[name])
                open_ += [(by, began) for by, began, _ in came if abs(began - filled.began) < CLOCKS_APART]

    def below_marks(self, some: Positions, marks: Mapping[str, str]) -> Numbers:
        """For each position: did the vector cover it that came with the data, by the log that was made anew then?"""
        below = np.zeros(len(some), bool)
        for name, mark in marks.items():
            below |= (some.origin == self.evidence.numbers.get(name, -1)) & self.up_to(some, mark)
        return below

    def up_to(self, some: Positions, mark: str) -> Numbers:
        """For each change: is it this one or, by its position, an earlier one?"""
        hi, lo = self.system.halves(mark)
        found: Numbers = (some.hi < hi) | ((some.hi == hi) & (some.lo <= lo))
        return found

    def _came_with(self, supplier: Replica, before: datetime) -> dict[str, str]:
        """Origin -> up to where a server got what it has with data that came whole from another one, before that time."""
        return self._marks_of(supplier) if supplier.log and self._filled_last(supplier, before) else {}

    def _marks_of(self, supplier: Replica) -> dict[str, str]:
        """Origin -> the last of the marks that its log begins with."""
        marks: dict[str, str] = {}
        for mark in self.evidence.case.log(supplier.log).marks if supplier.log else ():
            origin = self.system.origin_of(mark)
            marks[origin] = max(mark, marks.get(origin, ""))
        return marks

    def _filled_last(self, supplier: Replica, before: datetime) -> Reset | None:
        """What replaced the data of a server last, if they came whole from another one before that time."""
        if supplier.server not in self._replaced_last:
            resets = resets_of(self.evidence, supplier, self.proving, self._marks_of(supplier))
            replacing = (reset for reset in reversed(resets) if reset.kind in (TOTAL, REPLACED))
            self._replaced_last[supplier.server] = next(replacing, None)
        last = self._replaced_last[supplier.server]
        return last if last and last.sure and last.kind == TOTAL and last.ended <= before else None

    @cached_property
    def filled_until(self) -> dict[str, datetime]:
        """Server that its present data may have come from whole -> when it had sent them, by the clock of that server."""
        if self.initialised is None:
            return {}
        return {
            supplier: ended
            for supplier, began, ended in initialisations(self.evidence, self.replica)
            if abs(began - self.initialised.began) < CLOCKS_APART
            and min(self.resets, key=lambda reset: abs(began - reset.began)) is self.initialised
        }

    @property
    def filled_by(self) -> list[Replica]:
        """The servers that its present data may have come from whole, by the links that tell of that; no others."""
        names, suffix = self.filled_until, self.replica.suffix
        return [one for one in self.evidence.shown.replicas if one.server in names and one.suffix == suffix]

    @property
    def filled_at(self) -> datetime:
        """When its present data came whole from another server; the first of times if they did not."""
        return self.initialised.began if self.initialised else datetime.min.replace(tzinfo=UTC)

    def kept_since(self, moment: datetime) -> bool:
        """True if the data of the server were not replaced after that time."""
        return all(end is None or end <= moment for end in (self.since, self.perhaps))

    # --- absence from the log of operations

    def lacking_operations(self, some: Positions, without: Numbers) -> Numbers:
        """For each position: a log of operations that covers its time names a later change of its origin, and not it."""
        return OperationLogs(self.evidence, self.replica, self.resets).lacking(some, without)

    # --- acknowledged, not applied, and logged without a position

    def dropped(self, about: Mapping[str, tuple[str, str]], named: Counter[tuple[str, str]]) -> set[str]:
        """Of changes (position -> operation, target), those that a line without position must speak of.

        `named`: how many changes of an operation and a target other lines name as acknowledged. Each of them left such a
        line, too, and a change that the server has may have come twice: then its line proves nothing of another.
        """
        wanted = Counter((operation, target.lower()) for operation, target in about.values())
        where = (pc.field("outcome") == "dropped") & pc.field("position").is_null()
        targets = pa.array(sorted({target for _, target in about.values()}), pa.string())
        here, server = pc.field("target").isin(targets), self.replica.server
        rows = self.evidence.told("applied", ["at", "operation", "target"], where & here, server)
        # A log that is collected again holds the lines that it had before: each counts once.
        told = {(row["at"], row["operation"], (row["target"] or "").lower()) for row in rows.to_pylist()}
        since = self.perhaps or self.since  # the later one
        lines = Counter((operation, target) for at, operation, target in told if since is None or (at and at >= since))
        where_has = pc.field("outcome").isin(HAD) & here
        present = rows
        if len(rows):
            present = self.evidence.told("applied", ["operation", "target"], where_has, server)
        has = {(row["operation"], (row["target"] or "").lower()) for row in present.to_pylist()}
        sure = {key for key, number in wanted.items() if lines[key] - named[key] >= number and key not in has}
        return {position for position, (operation, target) in about.items() if (operation, target.lower()) in sure}

    # --- twins

    def twins(self, some: Positions, logs: Iterable[Input]) -> tuple[set[str], dict[str, Any]]:
        """The positions of which a log of this server has a twin; and what the logs say of each: operation, target."""
        columns = ["operation", "target", "entry", "body", "rename"]
        about: dict[str, dict[str, Any]] = {}
        missed = MissedChanges(self.proving)
        logs = list(logs)
        # Of each kind one log is asked for each: the tool that printed the one may have lost what was done to the values.
        left = {log.kind: some for log in logs}
        for log in logs:
            known = []
            parts = self.evidence.case.parts("changes", log)
            for there, rows in rows_at(parts, left[log.kind], self.evidence.numbers, columns):
                known.append(there)
                for key, row in zip(there.keys(self.system, self.names), rows.to_pylist(), strict=True):
                    about.setdefault(key, row)
                    missed.add(key, row)
            left[log.kind] = left[log.kind].minus(union(known))
        here = [
            log for log in logs if (log.server, log.snapshot) == (self.replica.server, self.evidence.shown.snapshot)
        ]
        return set().union(*(self._twins_in(log, missed) for log in here)), about

    def _twins_in(self, log: Input, missed: MissedChanges) -> set[str]:
        """The positions of which the log has a twin; of its other changes not more is read than their numbers."""
        case = self.evidence.case
        found: set[str] = set()
        numbers, entries = missed.numbers()
        parts = {part["name"]: part for part in case.parts("changes", log)}
        near = (
            (parts[name], entries.filter(pa.array(there)))
            for name, there in parts_with(case.parts("alike", log), numbers)
        )
        for rows in rows_of(near, "entry", ["kind", "operation", "body", "rename"]):
            # Of an entry that is often changed, many others are there, too.
            entry, text = (rows[name].cast(pa.string()).combine_chunks() for name in ("entry", "body"))
            for row in rows.filter(pa.array(among(likeness(entry, text, self.proving), numbers))).to_pylist():
                found |= missed.twins_of(row) if row["kind"] == "change" else set()
        return found


def _lines_lack(evidence: Evidence, other: Replica, resets: list[Reset], some: Positions) -> Numbers:
    proofs = Proofs(evidence, other, evidence.shown.proving, (), resets)
    return proofs.lacking_operations(some, np.zeros(len(some), bool))


_EVIDENCE = {
    "dropped": ("errors_log", "access_log"),
    "skipped": ("errors_log", "access_log"),
    "state_lacks": ("entry_state",),
    "entries_lack": ("entry_state",),
    "log_lacks": ("access_log",),
    "not_in_log": ("changelog",),
}


def evidence_kinds(rule: str, replica: Replica) -> list[str]:
    """The kinds of evidence that the rule goes by, of those that the server has."""
    return ["vector", *(kind for kind in _EVIDENCE.get(rule, ()) if kind in replica.evidence)]
