"""What the collected entries of servers prove, whatever their logs say: changes that an entry lacks, and entries that differ.

Sums over all values tell which entries are not the same on all servers. Only these are read, and held against each other value
by value (`workbench.rules.contents`); of more than a few thousand the first ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.comparable_servers import Comparable
from workbench.diagnosis.fractional import Fractional
from workbench.diagnosis.unlogged_changes import Unlogged
from workbench.engine.entries import COMPARED_HERE, PRESENT, Unequal, unequal
from workbench.engine.parquet_read import Part
from workbench.engine.positions import Positions, of_keys
from workbench.engine.selective_read import rows_at, rows_where
from workbench.intake.inputs import Input
from workbench.rules.contents import (
    ABSENT,
    DELETED,
    LIVE,
    MADE,
    REMOVED,
    Held,
    MissingEffect,
    Unlike,
    apart,
    compared,
    name_of,
    plain_name,
    unlike_others,
)
from workbench.rules.vectors import last
from workbench.rules.verdicts import COMMITTED, LOG_REPLACED, Ground, Proving, Reset
from workbench.systems import format_with
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica, Topology

LOOKED_AT = 5_000
"""Entries that are held against each other value by value."""

_DECIDED = 200_000
"""Changes that entries are asked of at once: of more, what the logs say stays."""

_READ = ["entry", "target", "attribute", "value", "state", "mark", "position"]
_TABLE = "entry_states"


@dataclass(frozen=True)
class Difference:
    """An entry, or one attribute of it, in which servers differ.

    servers   those that lack something, or that differ from most others; all where nobody can tell
    others    the other servers
    position  the change that those servers lack; None: no position tells
    spelt     the values are equal but for their spelling
    """

    entry: str
    target: str
    attribute: str
    servers: tuple[str, ...]
    others: tuple[str, ...]
    position: str | None = None
    spelt: bool = False


@dataclass
class Export:
    """The entries of one server: the parts with them, and up to where the vector in the same file reaches."""

    parts: Sequence[Part]
    claimed: dict[str, str]
    newest: datetime | None


@dataclass
class Contents:
    """What the entries of the servers that may be compared prove. Less than two exports prove nothing here.

    told  server -> the changes that it lacks by its entries alone: no other evidence says so
    """

    evidence: Evidence
    alike: Comparable
    resets: Mapping[tuple[str, str | None], Sequence[Reset]]
    told: dict[str, set[str]] = field(default_factory=dict)

    @property
    def suffix(self) -> str | None:
        """The suffix of the entries."""
        return self.alike.suffix

    @property
    def _shown(self) -> Topology:
        return self.evidence.shown

    @cached_property
    def proving(self) -> Proving:
        """What a system says of the marks and names in entries."""
        return self._shown.proving

    @cached_property
    def exports(self) -> dict[str, Export]:
        """Server -> its entries, where they were exported with state and not replaced since."""
        if not self.proving.marks:
            return {}
        found = {one.server: self._export(one) for one in self.alike.replicas}
        return {server: export for server, export in found.items() if export}

    def _export(self, replica: Replica) -> Export | None:
        """The latest export of the snapshot."""
        exports = []
        for one in self.evidence.inputs:
            mine = (one.server, one.snapshot) == (replica.server, self._shown.snapshot)
            if not mine or format_with(one.kind).evidence != "entry_state" or one.suffix not in (None, self.suffix):
                continue
            parts = [part for part in self.evidence.parts_of(_TABLE, one) if part["table"] == _TABLE]
            claimed = self._with_own(replica, self._claimed(one), parts)
            # One that could not be read whole shows less than there was.
            if parts and claimed and one.whole:
                moments = [at for at in map(self.evidence.system.moment, claimed.values()) if at]
                exports.append(Export(parts, claimed, max(moments, default=None)))
        latest = max(exports, key=lambda export: max(export.claimed.values()), default=None)
        return latest if latest and self._counts(replica, latest) else None

    def _claimed(self, one: Input) -> dict[str, str]:
        claimed: dict[str, str] = {}
        for row in self.evidence.rows("vectors"):
            mine = (row["snapshot"], row["file"], row["kind"]) == (one.snapshot, one.file, "server")
            if mine and row["suffix"] == self.suffix and row["origin"] and row["max"]:
                claimed[row["origin"]] = max(row["max"], claimed.get(row["origin"], ""))
        return claimed

    def _with_own(self, replica: Replica, claimed: dict[str, str], parts: Sequence[Part]) -> dict[str, str]:
        """The same; its own changes up to moments before the newest that its entries carry: it makes them one after the other.

        A server writes its vector into its entries now and then only, so the one in the file may be half a minute old.
        """
        own, system = replica.origin or "", self.evidence.system
        reached, top = claimed.get(own, ""), last(replica.vector, own)
        if not reached or not top or top <= reached:
            return claimed
        made = (pc.field("origin") == own) & (pc.field("position") > reached) & (pc.field("position") <= top)
        rows = rows_where(parts, ["position"], made)
        newest = system.moment(system.change_of(pc.max(rows["position"]).as_py())) if len(rows) else None
        if newest is None:
            return claimed
        return claimed | {own: max(reached, system.order_key(own, system.instant(newest - COMMITTED), 0))}

    def _counts(self, replica: Replica, export: Export) -> bool:
        """False if the data may have been replaced after they were exported."""
        replaced = [
            reset.ended for reset in self.resets.get((replica.server, replica.suffix), ()) if reset.kind != LOG_REPLACED
        ]
        if not replaced or (export.newest and export.newest >= max(replaced)):
            return True
        read = next((one.began for one in self._shown.readings if one.server == replica.server), None)
        return read is not None and read >= max(replaced)

    @cached_property
    def left_out(self) -> dict[str, frozenset[str]]:
        """Server -> the attributes that it need not have: those that no server replicates, and those that a link leaves out."""
        return {server: names | self.proving.not_compared for server, names in self.excluded.items()}

    @cached_property
    def fractional(self) -> Fractional:
        """What links leave out."""
        rows = [row for row in self.evidence.rows("links") if row["snapshot"] == self._shown.snapshot]
        links = [one for one in self._shown.links if one.suffix == self.suffix]
        return Fractional(self.alike.replicas, links, rows, self.proving.not_compared)

    @property
    def excluded(self) -> dict[str, frozenset[str]]:
        """Server -> the attributes that no way to it lets through."""
        return self.fractional.need_not

    def no_effect(self, server: str, about: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Of changes (position -> operation, body), those that change only what the server need not have."""
        need_not = self.excluded.get(server, frozenset()) | self.proving.own_notes
        touched = {
            key: self.proving.touched(row["body"] or "") for key, row in about.items() if row["operation"] == "modify"
        }
        return {key for key, names in touched.items() if names and names <= need_not}

    def notes_by_marks(self, server: str, keys: Sequence[str]) -> set[str]:
        """Of changes that no log describes, those of which entries show nothing but notes that this server refuses.

        What a change removed from an entry leaves a mark there, too: one that marks notes alone is a note.
        """
        code, mine = self.proving.notes_refused, [one for one in self.evidence.inputs if one.server == server]
        if not keys or not code or not any(one.facts.get("codes", {}).get(code) for one in mine):
            return set()
        marked: dict[str, set[str]] = {}
        where = pc.field("position").isin(pa.array(sorted(keys), pa.string()))
        for name in self.exports:
            for row in self.evidence.told(_TABLE, ["position", "attribute"], where, name).to_pylist():
                marked.setdefault(row["position"], set()).add((row["attribute"] or "").lower())
        return {key for key, names in marked.items() if names <= self.proving.own_notes}

    @cached_property
    def unequal(self) -> Unequal:
        """The entries that are not the same on all servers."""
        exports = self.exports
        if not exports:
            return Unequal(0, [])
        every = frozenset().union(*(self.left_out[server] for server in exports))
        found = self._unequal(exports, every)
        # Among servers that are sent everything, also what others need not have counts.
        whole = {name: one for name, one in exports.items() if self.left_out[name] == self.proving.not_compared}
        if every != self.proving.not_compared and len(whole) > 1:
            more = self._unequal(whole, self.proving.not_compared)
            first = sorted({*found.first, *more.first})
            both = len({*found.first} & {*more.first})
            found = Unequal(max(found.total + more.total - both, len(first)), first[:LOOKED_AT])
        return found

    def _unequal(self, exports: Mapping[str, Export], without: frozenset[str]) -> Unequal:
        parts = {server: export.parts for server, export in exports.items()}
        made_by = [mark for mark, did in self.proving.marks.items() if did == MADE]
        spark = None
        if sum(part["rows"] for some in parts.values() for part in some) > COMPARED_HERE:
            from workbench.engine.session import spark_session

            spark = spark_session()
        return unequal(parts, without, made_by, LOOKED_AT, spark)

    # --- value by value

    @cached_property
    def held(self) -> dict[str, dict[str, Held]]:
        """Entry -> server -> what it is there, of the entries that are not the same everywhere."""
        entries = self.unequal.first
        found: dict[str, dict[str, Held]] = {entry: {server: Held() for server in self.exports} for entry in entries}
        wanted = pc.field("entry").isin(pa.array(entries, pa.string()))
        names: dict[str, str] = {}  # servers write `objectClass` and `objectclass`
        for server, export in self.exports.items() if entries else ():
            for row in rows_where(export.parts, _READ, wanted).to_pylist():
                if name := row["attribute"]:
                    row["attribute"] = names.setdefault(name.lower(), name)
                self._take(found[row["entry"]][server], row)
        return found

    def _take(self, one: Held, row: Mapping[str, Any]) -> None:
        name, value, position = row["attribute"], row["value"], row["position"]
        did = self.proving.marks.get(row["mark"] or "", MADE)
        one.target = row["target"]
        if position:
            one.changes.add(position)
        dead = row["state"] == "tombstone"
        one.status = DELETED if dead or one.status == DELETED else LIVE
        if (name or "").lower() == self.proving.conflict and (value or "").lower() == self.proving.kept_for_children:
            one.revived = True
        if ((name or "").lower(), (value or "").lower()) == self.proving.grave:
            if dead:
                one.deleted = max(position or "", one.deleted or "") or None
            else:
                one.revived = True
            return
        if row["state"] == PRESENT and (did == MADE or value is not None):
            values, shown = one.present.setdefault(name, {}), value if value is not None else position or ""
            if value is None:
                one.secret.add(name)
            # What a client wrote while replication was off carries only what removed the values before it.
            values[shown] = max((did == MADE and position) or "", values.get(shown) or "") or None
        if did == REMOVED and value is not None and position:
            removed = one.removed.setdefault(name, {})
            removed[value] = max(position, removed.get(value, ""))
        elif position and did != MADE:  # what made a value that is gone removed nothing
            one.cleared[name] = max(position, one.cleared.get(name, ""))

    @cached_property
    def differences(self) -> list[Difference]:
        """Everything in which the entries differ and that is not on its way."""
        same = len({tuple(sorted(export.claimed.items())) for export in self.exports.values()}) == 1
        names = same and not any(one.later for one in self.alike.replicas)
        found: list[Difference] = []
        told_of = {
            entry: compared(
                held,
                self._expected,
                self._forgotten,
                self.left_out,
                names,
                self.evidence.system.change_of,
                self.proving.conflict,
                self.proving.grave[0],
            )
            for entry, held in self.held.items()
        }
        positions = {lack.position for made in told_of.values() for lack in made.lacks if lack.attribute}
        carried, recorded = self._carried(positions), self._recorded(positions)
        for entry, made in told_of.items():
            held = self.held[entry]
            target = min((one.target for one in held.values() if one.status == LIVE), default="")
            told: dict[tuple[str, str], set[str]] = {}
            unlike = {*made.unlike}
            for lack in made.lacks:
                # What stands in another entry there came: a child that revives its parent leaves its mark in both.
                came = bool(lack.attribute and carried.get((lack.server, lack.position), set()) - {entry})
                another = (
                    entry not in recorded.get(lack.position, {entry})
                    and plain_name(lack.attribute) != self.proving.grave[0]
                )
                if another and not came:
                    # A change of another entry: whoever shows it in this one is wrong, not who does not.
                    spoilt = (name for name, there in held.items() if lack.position in there.positions(lack.attribute))
                    unlike.add(Unlike(tuple(sorted(spoilt)), lack.attribute))
                    continue
                if came or not self._lacks_it(held[lack.server], lack):
                    unlike |= (
                        {Unlike((lack.server,), lack.attribute)} if not came or unlike_others(held, lack) else set()
                    )
                else:
                    told.setdefault((lack.attribute, lack.position), set()).add(lack.server)
            for (attribute, position), servers in sorted(told.items()):
                found.append(self._difference(entry, target, attribute, servers, held, position))
            for one in sorted(unlike):
                found.append(self._difference(entry, target, one.attribute, {*one.servers}, held, None))
            for one in made.spelt:
                differing = self._difference(entry, target, one.attribute, {*one.servers}, held, None)
                found.append(replace(differing, spelt=True))
        return found

    def _carried(self, positions: set[str]) -> dict[tuple[str, str], set[str]]:
        """Server and change -> the entries that carry it there."""
        found: dict[tuple[str, str], set[str]] = {}
        where = pc.field("position").isin(pa.array(sorted(positions), pa.string()))
        for server, export in self.exports.items() if positions else ():
            for row in rows_where(export.parts, ["position", "entry"], where).to_pylist():
                found.setdefault((server, row["position"]), set()).add(row["entry"])
        return found

    def _recorded(self, positions: set[str]) -> dict[str, set[str]]:
        """Position -> the entries that the logs name for its change, where they have it and the collected entries have these."""
        system, numbers = self.evidence.system, self.evidence.numbers
        of = {one: system.change_of(one) for one in positions if system.origin_of(one) in numbers}
        some, named = of_keys(system, sorted({*of.values()}), numbers), dict[str, set[str]]()
        for log in (one.log for one in self.alike.replicas if one.log and of):
            for key, row in self._changes(some, log):
                if row["entry"]:
                    named.setdefault(key, set()).add(row["entry"])
        asked = pc.field("entry").isin(pa.array(sorted(set().union(*named.values())), pa.string()))
        there = set[str]()
        for export in self.exports.values() if named else ():
            there.update(pc.unique(rows_where(export.parts, ["entry"], asked)["entry"]).to_pylist())
        return {one: named[key] for one, key in of.items() if not named.get(key, set()).isdisjoint(there)}

    def _lacks_it(self, held: Held, lack: MissingEffect) -> bool:
        """False where no vector tells of the change, or where it made an entry that is there: then only a value is lacking."""
        classes = {name for name in held.present if name.lower() == self.proving.grave[0]}
        came = bool(lack.attribute) and any(lack.position in held.positions(name) for name in classes)
        return self._proves(lack.position) and not came

    def _difference(
        self,
        entry: str,
        target: str,
        attribute: str,
        servers: set[str],
        held: Mapping[str, Held],
        position: str | None,
    ) -> Difference:
        others = tuple(sorted(server for server in held if server not in servers))
        # Whoever is like one of these does not differ from it.
        unlike = (other for other in others if all(apart(held[other], held[one], attribute) for one in servers))
        others = tuple(unlike) or others
        change = self.evidence.system.change_of(position) if position else None
        return Difference(entry, target, attribute, tuple(sorted(servers)), others, change)

    def _proves(self, position: str) -> bool:
        """False where one position may stand for several changes, or no vector tells of its origin any more."""
        origin = self.evidence.system.origin_of(position)
        return origin not in self.alike.doubtful and origin in self._known_origins

    @cached_property
    def _known_origins(self) -> frozenset[str]:
        """Those of the vectors in the exports; and of the servers: an element without a change stands late in an export.

        And those of changes that no other server has heard of.
        """
        exported = {origin for export in self.exports.values() for origin in export.claimed}
        exported |= {origin for _, origin in self.evidence.made_for_nobody}
        return frozenset(exported.union(*(one.vector for one in self.alike.replicas)))

    def _expected(self, server: str, position: str) -> bool:
        system = self.evidence.system
        if self._shown.made_meanwhile(system.moment(position)):
            return False
        if not self._proves(position):
            return True
        return system.change_of(position) <= self.exports[server].claimed.get(system.origin_of(position), "")

    def covers(self, server: str, key: str) -> bool:
        """True if the entries of the server were exported when it had the change: only then does a likeness to them prove it."""
        return key <= self.exports[server].claimed.get(self.evidence.system.origin_of(key), "")

    def alive(self, server: str, entry: str) -> bool:
        """True if the entries of the server show this one, by its unique ID, and not as a deleted one."""
        return entry in self.alive_of(server, {entry})

    def alive_of(self, server: str, entries: Collection[str]) -> set[str]:
        """Those of some entries, by their unique IDs, of which that is true."""
        asked = pc.field("entry").isin(pa.array(sorted(entries), pa.string()))
        rows = rows_where(self.exports[server].parts, ["entry", "state"], asked)
        deleted = rows.filter(pc.equal(rows["state"], "tombstone"))
        return {*pc.unique(rows["entry"]).to_pylist()} - {*pc.unique(deleted["entry"]).to_pylist()}

    def keeps(self, server: str, key: str) -> bool:
        """True if the entries of the server still tell whether it had the change: they claim it, and no trace is cleared away."""
        return self.covers(server, key) and not self._forgotten(server, key)

    def _forgotten(self, server: str, position: str) -> bool:
        made, newest = self.evidence.system.moment(position), self.exports[server].newest
        kept = self._traces_kept[server]
        return bool(made and newest and kept and made < newest - kept)

    @cached_property
    def _traces_kept(self) -> dict[str, timedelta]:
        """Server -> how long its entries keep traces of what was removed, by its own setting; 0: for good."""
        kept = dict.fromkeys(self.exports, self.proving.traces_kept)
        for one in self.evidence.inputs:
            seconds = one.facts.get("traces_kept", {}).get(self.suffix or "")
            if seconds and one.snapshot == self._shown.snapshot:
                kept[one.server] = timedelta(seconds=int(seconds))
        return kept

    @cached_property
    def lacks(self) -> dict[str, set[str]]:
        """Server -> the changes whose effect its entries lack."""
        found: dict[str, set[str]] = {}
        for one in self.differences:
            for server in one.servers if one.position else ():
                found.setdefault(server, set()).add(one.position or "")
        return found

    def shown_by(self, server: str, key: str) -> list[str]:
        """The servers whose entries show what a change did that the entries of this one lack."""
        return sorted(self._shown_by_others.get((server, key), ()))

    @cached_property
    def _shown_by_others(self) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for one in self.differences:
            for server in one.servers if one.position else ():
                found.setdefault((server, one.position or ""), set()).update(one.others)
        return found

    # --- changes that a log does not show

    def add_grounds(
        self,
        server: str,
        some: Positions,
        grounds: Numbers,
        asked: Numbers,
        logs: Mapping[str, Input],
        held_by: Mapping[str, Numbers],
    ) -> None:
        """Set the ground of those changes that the server's entries show. `asked`: the numbers of the changes that are open.

        The entry is the same there as at a server whose log (`logs`) holds the change (`held_by`: for each that is asked of), or
        the change made or deleted an entry that is there, or gone, or all that it changed was replaced there since.
        """
        others = [other for other in logs if other in held_by]
        if server not in self.exports or not others or not 0 < len(asked) <= _DECIDED or not self.unequal.whole:
            return
        open_ = some[asked]
        number = {key: at for at, key in enumerate(open_.keys(self.evidence.system, self.evidence.names))}
        shown: set[int] = set()
        written: dict[str, tuple[str, frozenset[str]]] = {}
        for other in others:
            for key, row in self._changes(open_, logs[other]):
                known = other in self.exports and held_by[other][number[key]] and self.covers(other, key)
                if known and self._shown_by(server, other, key, row):
                    shown.add(number[key])
                elif row["entry"] and row["operation"] == "modify":
                    written[key] = row["entry"], self.proving.touched(row["body"] or "") - self.left_out[server]
        open_to = {key: what for key, what in written.items() if number[key] not in shown}
        shown |= {number[key] for key in self._unlogged.replaced_there(server, open_to)}
        logged = {at for held in held_by.values() for at in np.flatnonzero(held).tolist()}
        if left := sorted({*number.values()} - shown - logged):
            shown |= {number[key] for key in self._unlogged.shown_by(server, open_[np.array(left)])}
        grounds[asked[sorted(shown)]] |= int(Ground.ENTRIES_SHOW)

    @cached_property
    def _unlogged(self) -> Unlogged:
        return Unlogged(self)

    def lacked(self, server: str, some: Positions, where: Numbers) -> Numbers:
        """For each change: is it one of those in question (`where`), and do the server's entries lack it?"""
        known = [
            key for key in self.lacks.get(server, ()) if self.evidence.system.origin_of(key) in self.evidence.numbers
        ]
        if not known:
            return np.zeros(len(some), bool)
        found: Numbers = some.within(of_keys(self.evidence.system, known, self.evidence.numbers)) & where
        self.tell(server, some[found])
        return found

    def undecided(self, some: Positions) -> Numbers:
        """For each change: does what carries it differ between servers, and nobody can tell which of them is right?"""
        known = [key for key in self._open if self.evidence.system.origin_of(key) in self.evidence.numbers]
        return some.within(of_keys(self.evidence.system, known, self.evidence.numbers))

    @cached_property
    def _open(self) -> set[str]:
        found: set[str] = set()
        for one in self.differences:
            for there in self.held[one.entry].values() if not one.others and one.position is None else ():
                values = [there.present.get(one.attribute, {})] if one.attribute else there.present.values()
                found.update(position for marked in values for position in marked.values() if position)
        return {*map(self.evidence.system.change_of, found)}

    def tell(self, server: str, some: Positions) -> None:
        """Note that the server lacks these by its entries alone."""
        self.told.setdefault(server, set()).update(some.keys(self.evidence.system, self.evidence.names))

    def left(self, server: str) -> set[str]:
        """What its entries lack, and nothing told of yet."""
        return self.lacks.get(server, set()) - self.told.get(server, set())

    def same(self, entry: str) -> bool:
        """True if the entry is the same on all servers, but for its spelling."""
        if entry not in self.held:
            return True
        first, *others = self.held[entry].values()
        every = frozenset().union(*(self.left_out[server] for server in self.exports))
        return all(first.like(other, every) for other in others)

    def _changes(self, some: Positions, log: Input) -> Iterator[tuple[str, dict[str, Any]]]:
        parts = self.evidence.case.parts("changes", log)
        for there, rows in rows_at(
            parts, some, self.evidence.numbers, ["entry", "operation", "target", "body", "rename"]
        ):
            yield from zip(there.keys(self.evidence.system, self.evidence.names), rows.to_pylist(), strict=True)

    def _shown_by(self, server: str, other: str, key: str, row: Mapping[str, Any]) -> bool:
        """True if the entry is as on the other server, which has the change, or shows by being there, or gone, what was done.

        What replaced all values of every attribute that the change touched has overwritten it.
        """
        entry = row["entry"]
        touched = self.proving.touched(row["body"] or "") if row["operation"] == "modify" else frozenset()
        if not entry or (touched <= self.proving.not_compared and not touched <= self.proving.own_notes):
            return False  # what is not compared proves nothing
        if entry not in self.held:
            return True
        mine, theirs = self.held[entry][server], self.held[entry][other]
        if row["operation"] == "delete":
            return mine.status != LIVE
        if mine.status != LIVE and any(self._was_deleted(server, one) for one in self.held[entry].values()):
            return True  # whatever is done to an entry that was deleted comes to nothing
        if row["operation"] == "add" and mine.status != ABSENT:
            return True
        left_out = self.left_out[server] | self.left_out[other]
        here, there = name_of(mine.target), name_of(theirs.target)
        if row["operation"] == "modrdn" and mine.status == theirs.status == LIVE and here != there:
            # The values of an entry that was moved under another parent are the same as before.
            before, after = row["target"] or "", self.proving.renamed(row["target"] or "", row["rename"] or "")
            if name_of(before) == here and name_of(after) == there and self.covers(server, key):
                self.lacks.setdefault(server, set()).add(key)
            return False
        if mine.like(theirs, left_out):
            return True
        names = touched - left_out
        later = (mark for mark in map(mine.cleared_by, names) if mark and self.evidence.system.change_of(mark) > key)
        return mine.status == LIVE and bool(names) and len(names) == len([*later])

    def _was_deleted(self, server: str, there: Held) -> bool:
        return there.status == DELETED and there.deleted is not None and self._expected(server, there.deleted)

    @cached_property
    def bearers(self) -> dict[str, set[tuple[str, str]]]:
        """Name of a living entry, as `name_of` has it -> the entries and servers that it is of, among those that are unequal."""
        found: dict[str, set[tuple[str, str]]] = {}
        for entry, held in self.held.items():
            for server, there in held.items():
                if there.status == LIVE:
                    found.setdefault(name_of(there.target), set()).add((entry, server))
        return found

    def unexplained(self) -> Iterable[Difference]:
        """The differences that no other evidence explains: no log tells that one of the servers missed the change."""
        for one in self.differences:
            if one.position is None:
                yield one
            elif servers := tuple(server for server in one.servers if one.position in self.told.get(server, ())):
                yield Difference(one.entry, one.target, one.attribute, servers, one.others, one.position)
