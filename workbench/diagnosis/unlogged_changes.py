"""Changes that no log holds any more: what the collected entries tell of their effect.

An entry that carries the change shows it. Of one that nothing carries, and that only results of operations name, entries show
that nothing can lack it: all that it may have touched was replaced since, or its entry is gone, or bears another name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.entries import PRESENT
from workbench.engine.positions import Positions
from workbench.engine.selective_read import rows_where
from workbench.rules.contents import CLEARED, LIVE, REMOVED, Held, name_of, plain_name
from workbench.rules.verdicts import LOG_REPLACED
from workbench.systems import System
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

if TYPE_CHECKING:
    from workbench.diagnosis.contents import Contents


_READ = ["entry", "target", "attribute", "state", "mark", "position"]
_CARRIED = ["position", "entry", "attribute"]
_TIME = pa.timestamp("us", "UTC")
BY_SILENCE = frozenset({"source_lacks", "not_in_log"})
"""The rules by which a change is missing because nothing shows it."""
NEVER_CAME = "log_lacks"
"""The rule by which it never came: it is missing, also where what it wrote may have been replaced later."""
_LAST = "\U0010ffff"
"""Behind all positions."""


_Marks = dict[str, dict[str, tuple[str, str]]]
"""Entry -> attribute -> its latest change, and the latest that replaced all its values."""


class _Named(NamedTuple):
    """What results say of a change: what was done, and to the entry of which name."""

    operation: str
    target: str


@dataclass
class Unlogged:
    """The changes that no log holds, and the entries of the servers."""

    contents: Contents

    def shown_by(self, server: str, some: Positions) -> set[str]:
        """Those of some changes whose effect the entries of the server show, or of which there is none any more."""
        traced = self._traced(server, some)
        nowhere = {*self._keys(some)} - traced.keys()
        apart = {key: {place for place in shown if not self.contents.same(place[0])} for key, shown in traced.items()}
        marks = self._marks(server, {entry for places in apart.values() for entry, _ in places})
        found = {key for key, places in apart.items() if not places or self._all_replaced(marks, places, key)}
        if nowhere:
            named = self._named(some, nowhere)
            found |= self._written_over(named) | self._gone(named)
            found |= self._overtaken(server, {key: one for key, one in named.items() if key not in found})
            found |= self._named_alike(server, {key: one for key, one in named.items() if key not in found})
        return found

    def replaced_there(self, server: str, written: Mapping[str, tuple[str, frozenset[str]]]) -> set[str]:
        """Those of some modifications of which all that they wrote was replaced later, by the entries of the server alone.

        `written`: by change, its entry and the attributes that it touched
        """
        marks = self._marks(server, {entry for entry, _ in written.values()})
        return {
            key
            for key, (entry, names) in written.items()
            if self._all_replaced(marks, {(entry, name) for name in names}, key)
        }

    def _all_replaced(self, marks: _Marks, places: set[tuple[str, str]], key: str) -> bool:
        """True if all values of each of some attributes of entries were replaced behind a change, by the marks of a server."""
        told = [(entry, name) for entry, name in places if plain_name(name) not in self.contents.proving.not_compared]
        return bool(told) and all(marks.get(entry, {}).get(name, ("", ""))[1] > key for entry, name in told)

    @property
    def _evidence(self) -> Evidence:
        return self.contents.evidence

    @property
    def _system(self) -> System:
        return self.contents.evidence.system

    def _keys(self, some: Positions) -> list[str]:
        return some.keys(self._system, self._evidence.names)

    def _traced(self, server: str, some: Positions) -> dict[str, set[tuple[str, str]]]:
        """The entries, and attributes, of other servers that carry changes which no log holds any more."""
        found: dict[str, set[tuple[str, str]]] = {}
        where, keys = self._evidence.between(some), {*self._keys(some)}
        # What an export of an earlier collection shows may have gone since, also everywhere.
        for other, export in self.contents.exports.items():
            for row in rows_where(export.parts, _CARRIED, where).to_pylist() if other != server else ():
                key = self._system.change_of(row["position"])
                if key in keys and row["entry"]:
                    found.setdefault(key, set()).add((row["entry"], (row["attribute"] or "").lower()))
        return found

    def _named(self, some: Positions, wanted: set[str]) -> dict[str, _Named]:
        """What results say of changes."""
        found: dict[str, _Named] = {}
        where = self._evidence.between(some) & pc.field("target").is_valid() & pc.field("operation").is_valid()
        for row in self._evidence.told("applied", ["position", "operation", "target"], where).to_pylist():
            key = self._system.change_of(row["position"])
            if key in wanted:
                found[key] = _Named(row["operation"], name_of(row["target"]))
        return found

    def _maker(self, key: str) -> Replica | None:
        """Who made a change, if its entries were exported later, and are those that it changed."""
        maker = self._makers.get(self._system.origin_of(key))
        if not maker or maker.server not in self.contents.exports or not self.contents.covers(maker.server, key):
            return None
        return None if self._replaced_since(maker, key) else maker

    def _gone(self, named: Mapping[str, _Named]) -> set[str]:
        """Those whose entry is deleted, or bears another name, on every server: nothing of what they did can be lacking.

        The same entries are on all servers, but for what is on its way, and none bears that name. So a delete has done its work,
        unless an entry that was to get that name still bears another one. What was done to an entry that was deleted comes to
        nothing, and its maker, who had it, has it no more under that name.

        A delete has done its work also where an entry that was added later bears that name, and where servers do not have the
        same entries: those that were added later, and those that its maker has and that never had another name, are not what
        it deleted.
        """
        apart = {one.entry for one in self.contents.differences if not one.attribute}
        begun = {of: self._begun_of_others(apart, of) for of in {*map(self._system.origin_of, named)}} if apart else {}
        moves, deleted = self._moves, self._deleted({one.target for one in named.values()})
        live = self.live({one.target for one in named.values()} | {target for _, target in moves})
        unmoved = any(target in live for _, target in moves)
        oldest = self._oldest({one.target for one in named.values() if one.operation == "delete"} & live)
        found: set[str] = set()
        for key, (operation, name) in named.items():
            moved = any(by != key and f",{name}".endswith(f",{target}") for by, target in moves)
            if moved or (apart and (operation != "delete" or begun[self._system.origin_of(key)] <= key)):
                continue
            if name in live and (operation != "delete" or not key < oldest.get(name, "") < _LAST):
                continue
            if not unmoved if operation == "delete" else operation != "add" and (name in deleted or self._maker(key)):
                found.add(key)
        return found

    def _begun(self, entry: str) -> str:
        """The change with which an entry began, by the marks of its classes; empty: nothing tells (it came from a plain file)."""
        begun = [_first_of(there) for there in self.contents.held[entry].values() if there.status == LIVE]
        return min((self._system.change_of(at) if at else "" for at in begun), default="")

    def _begun_of_others(self, apart: set[str], origin: str) -> str:
        """With which change the oldest entry began that a deletion of an origin may have been of, among those that differ."""
        maker = self._makers.get(origin)
        there = {entry: self.contents.held[entry].get(maker.server) if maker else None for entry in apart}
        had = {entry for entry, held in there.items() if held and held.status == LIVE and self._always_named_so(entry)}
        return min(map(self._begun, apart - had), default=_LAST)

    def _always_named_so(self, entry: str) -> bool:
        """True if an entry bears the name with which it began on each server that has it, and shares it with no other one."""
        for there in self.contents.held[entry].values():
            first, begun = name_of(there.target).partition(",")[0], _first_of(there)
            shared = "nsuniqueid=" in first  # set aside for another one of that name
            if there.status == LIVE and (shared or not begun or there.of(first.partition("=")[0]) != {begun}):
                return False
        return True

    @cached_property
    def _oldest_known(self) -> dict[str, str]:
        """What `_oldest` found."""
        return {}

    def _oldest(self, names: set[str]) -> dict[str, str]:
        """Name -> the change with which the oldest entry began that bears it on any server; empty: nothing tells."""
        known = self._oldest_known
        if wanted := names - known.keys():
            where = (
                _bears(wanted)
                & (pc.field("state") == PRESENT)
                & (pc.utf8_lower(pc.field("attribute")) == "objectclass")
            )
            for export in self.contents.exports.values():
                begun: dict[tuple[str, str], str] = {}
                for row in rows_where(export.parts, _READ, where).to_pylist():
                    about = name_of(row["target"]), row["entry"]
                    position = self._system.change_of(row["position"]) if row["position"] else ""
                    begun[about] = min(position, begun.get(about, _LAST))
                for (name, _), position in begun.items():
                    known[name] = min(position, known.get(name, _LAST))
        return known

    @cached_property
    def _moves(self) -> list[tuple[str, str]]:
        """The changes that gave an entry another name, or were to, and the name that it had."""
        where = (pc.field("operation") == "modrdn") & pc.field("target").is_valid()
        rows = self._evidence.told("applied", ["position", "target"], where).to_pylist()
        return [(self._system.change_of(row["position"] or ""), name_of(row["target"])) for row in rows]

    def _deleted(self, names: set[str]) -> set[str]:
        """Those names of which an entry was deleted, and none was added after it."""
        last: dict[str, tuple[str, str]] = {}
        where = _bears(names) & pc.field("operation").isin(["add", "delete"]) & pc.field("position").is_valid()
        for row in self._evidence.told("applied", ["position", "operation", "target", "code"], where).to_pylist():
            if row["code"] == 0:
                name = name_of(row["target"])
                last[name] = max((row["position"], row["operation"]), last.get(name, ("", "")))
        return {name for name, (_, operation) in last.items() if operation == "delete"}

    def live(self, names: set[str]) -> set[str]:
        """Those names that an entry of some server bears."""
        found: set[str] = set()
        where = _bears(names) & (pc.field("state") != "tombstone")
        for export in self.contents.exports.values():
            found.update(map(name_of, pc.unique(rows_where(export.parts, ["target"], where)["target"]).to_pylist()))
        return found

    def _written_over(self, named: Mapping[str, _Named]) -> set[str]:
        """Of changes that only results of operations name, those whose effect nothing can lack any more.

        Their entry is the same on all servers. Where the maker has run since, it lost nothing of what it made, so nothing of it
        can be lacking in the same entry. Elsewhere nobody tells which attributes the change touched: so all that a client
        may have changed in the entry was replaced since. Of a server that was killed after its answer, and whose log alone lost
        it, it is enough that something was: its data had the change, and no trace of it but what replaced it.
        """
        asked: dict[str, dict[str, str]] = {}
        for key, one in named.items():
            if one.operation == "modify" and (maker := self._maker(key)):
                asked.setdefault(maker.origin or "", {})[key] = one.target
        found: set[str] = set()
        for origin, names in asked.items():
            bearing = self._bearing(self._makers[origin].server, {*names.values()})
            replaced = self._replaced({entry for entry, _ in bearing.values()})
            some_of: set[str] = set()
            ran_on, kept_on = self._ran_on(self._makers[origin], {*names})
            for key, name in names.items():
                entry, since = bearing.get(name, ("", None))
                if not entry or not self.contents.same(entry) or (since or "") > key:
                    continue
                if key in ran_on:
                    found.add(key)
                    continue
                naming = {part.partition("=")[0].strip() for part in name.split(",")[0].split("+")}
                later = [
                    mark > key for attribute, mark in replaced[entry].items() if plain_name(attribute) not in naming
                ]
                if any(later):
                    (found if all(later) or key in kept_on else some_of).add(key)
            found |= self._kept(self._makers[origin], some_of)
        return found

    def _overtaken(self, server: str, named: Mapping[str, _Named]) -> set[str]:
        """Those of which nothing can be lacking on a server, as another one shows that applied them and has run since.

        What such a change touched bears a later mark there, for none is of the change itself. Where all that does was replaced
        later on the server, the change was, too. Both need not have the same entry: one of them may be behind.

            h   applied 7, whose text no log has; of its entry only `title` is later than 7     7 was a change of `title`
            a   never got 7; all values of `title` were replaced by 9                           nothing of 7 is lacking there
        """
        names = {key: one.target for key, one in named.items() if one.operation == "modify"}
        found: set[str] = set()
        for replica in self.contents.alike.replicas if names else ():
            other = replica.server
            if other == server or other not in self.contents.exports:
                continue
            had = {
                key
                for key in self._ran_on(replica, {*names} - found)[0]
                if self.contents.keeps(other, key) and not self._replaced_since(replica, key)
            }
            bearing = self._bearing(other, {names[key] for key in had}) if had else {}
            there, here = (self._marks(name, {entry for entry, _ in bearing.values()}) for name in (other, server))
            for key in had:
                entry, since = bearing.get(names[key], ("", None))
                if not entry or (since or "") > key or not self.contents.keeps(server, key):
                    continue
                touched = {name for name, (last, _) in there.get(entry, {}).items() if last > key}
                mine = here.get(entry, {})
                if touched and all(name in mine and mine[name][1] > key for name in touched):
                    found.add(key)
        return found

    def _named_alike(self, server: str, named: Mapping[str, _Named]) -> set[str]:
        """The renamings of which nothing can be lacking on a server, as another one shows that applied them and has run since.

        Nothing bears the old name, and both have the same entries, but for what came later: what the renaming did is here as
        well, or was undone there.

            h   applied 7, which named uid=d2 d2x; later the values of uid were replaced by d2x and d2y      uid: d2x, d2y
            a   never got 7, and has what came later                                                         uid: d2x, d2y
        """
        renamed = {key: one.target for key, one in named.items() if one.operation == "modrdn"}
        renamed = {key: name for key, name in renamed.items() if self.contents.keeps(server, key)}
        bearing = self.live({*renamed.values()}) if renamed else set()
        renamed = {key: name for key, name in renamed.items() if name not in bearing}
        found: set[str] = set()
        for replica in self.contents.alike.replicas if renamed and self.contents.unequal.whole else ():
            other = replica.server
            if other == server or other not in self.contents.exports:
                continue
            for key in self._ran_on(replica, {*renamed} - found)[0]:
                had = self.contents.keeps(other, key) and not self._replaced_since(replica, key)
                if had and self._alike_but_for_later(server, other, key):
                    found.add(key)
        return found

    def _alike_but_for_later(self, server: str, other: str, key: str) -> bool:
        """True if all entries are the same on two servers, but for what was made or removed later than a change."""
        left_out, change_of = self.contents.left_out[server] | self.contents.left_out[other], self._system.change_of
        for held in self.contents.held.values():
            one, two = held[server], held[other]
            living = [there for there in (one, two) if there.status == LIVE]
            if not living or all(there.made() and change_of(min(there.made())) > key for there in living):
                continue
            if len(living) == 1 or name_of(one.target) != name_of(two.target):
                return False
            for here, there in ((one, two), (two, one)):
                if any(change_of(mark) <= key for mark in _apart_since(here, there, left_out)):
                    return False
        return True

    def written_since(self, server: str, modified: Mapping[str, str]) -> set[str]:
        """Those of some modifications (change -> name of its entry) behind which the entry shows values replaced or removed.

        Which attributes these modifications wrote nothing tells: perhaps what was replaced.
        """
        bearing = self._bearing(server, {*modified.values()})
        marks = self._marks(server, {entry for entry, _ in bearing.values()}, removed=True)
        found: set[str] = set()
        for key, name in modified.items():
            entry, since = bearing.get(name, ("", None))
            later = any(replaced > key for _, replaced in marks.get(entry, {}).values())
            if later and (since or "") <= key:
                found.add(key)
        return found

    def _marks(self, server: str, entries: set[str], removed: bool = False) -> _Marks:
        """Entry -> attribute that a client may change -> its latest change, and the latest that replaced all its values.

        removed  or that removed one of them
        """
        replacing = {CLEARED, REMOVED} if removed else {CLEARED}
        never = self.contents.proving.not_compared | {self.contents.proving.grave[0]}
        found: _Marks = {}
        wanted = pc.field("entry").isin(pa.array(sorted(entries), pa.string())) & pc.field("attribute").is_valid()
        for row in rows_where(self.contents.exports[server].parts, _READ, wanted).to_pylist() if entries else ():
            attribute = row["attribute"].lower()
            if plain_name(attribute) in never or not row["position"] or row["state"] == "tombstone":
                continue
            position = self._system.change_of(row["position"])
            cleared = position if self.contents.proving.marks.get(row["mark"] or "") in replacing else ""
            last, replaced = found.setdefault(row["entry"], {}).get(attribute, ("", ""))
            found[row["entry"]][attribute] = max(last, position), max(replaced, cleared)
        return found

    def _ran_on(self, maker: Replica, keys: set[str]) -> tuple[set[str], set[str]]:
        """Those of some changes that their maker answered with success behind its last start; and before, as far as it kept them.

        All by its own clock. It kept what it answered earlier if it stopped in good order before each start since, and if its log
        was opened anew or replaced later: that log contradicts nothing. Only where the server was read while it ran: else its
        errors log may end before the start that lost them.
        """
        evidence, proving = self._evidence, self.contents.proving
        starts = evidence.moments(maker.server, {proving.started})
        if not starts or maker.server not in evidence.began:
            return set(), set()
        where = pc.field("position").isin(pa.array(sorted(keys), pa.string())) & (pc.field("outcome") == "applied")

        def answered(span: pc.Expression) -> set[str]:
            rows = evidence.told("applied", ["position"], where & span, maker.server)
            return {self._system.change_of(one) for one in rows["position"].to_pylist()}

        at, resets = pc.field("at"), self.contents.resets.get((maker.server, maker.suffix), ())
        ran_on = answered(at > pa.scalar(starts[-1], _TIME))
        replaced = max((one.ended for one in resets if one.kind == LOG_REPLACED), default=None)
        if replaced is None:
            return ran_on, set()
        since = _in_good_order(starts, evidence.moments(maker.server, {proving.stopped}))
        return ran_on, answered((at > pa.scalar(since, _TIME)) & (at < pa.scalar(replaced, _TIME)))

    @cached_property
    def _makers(self) -> dict[str, Replica]:
        return {one.origin: one for one in self.contents.alike.replicas if one.origin}

    def _replaced_since(self, maker: Replica, key: str) -> bool:
        """True if other data may have come in the place of those that the change was made in."""
        resets = [one for one in self.contents.resets.get((maker.server, maker.suffix), ()) if one.kind != LOG_REPLACED]
        made = self._system.moment(key)
        return any(made is None or made <= reset.ended for reset in resets)

    def _bearing(self, server: str, names: set[str]) -> dict[str, tuple[str, str | None]]:
        """Name -> the one entry that bears it on a server, and since which change."""
        where = _bears(names) & (pc.field("state") != "tombstone")
        found: dict[str, tuple[str, str | None]] = {}
        doubtful: set[str] = set()
        for row in rows_where(
            self.contents.exports[server].parts, _READ, where & pc.field("entry").is_valid()
        ).to_pylist():
            name = name_of(row["target"])
            entry, named = found.get(name, (row["entry"], None))
            if entry != row["entry"]:
                doubtful.add(name)
            if (
                row["state"] == PRESENT
                and row["position"]
                and name.partition("=")[0] == plain_name(row["attribute"] or "")
            ):
                named = max(self._system.change_of(row["position"]), named or "")
            found[name] = entry, named
        return {name: told for name, told in found.items() if name not in doubtful}

    def _replaced(self, entries: set[str]) -> dict[str, dict[str, str]]:
        """Entry -> attribute that a client may change -> the change that replaced all its values; empty: none tells so.

        Not the class of the entry: nobody changes that alone.
        """
        never = self.contents.proving.not_compared | {self.contents.proving.grave[0]}
        found: dict[str, dict[str, str]] = {entry: {} for entry in entries}
        wanted = pc.field("entry").isin(pa.array(sorted(entries), pa.string())) & pc.field("attribute").is_valid()
        for export in self.contents.exports.values() if entries else ():
            for row in rows_where(export.parts, _READ, wanted).to_pylist():
                attribute = row["attribute"].lower()
                if plain_name(attribute) in never:
                    continue
                cleared = row["position"] and self.contents.proving.marks.get(row["mark"] or "") == CLEARED
                mark = self._system.change_of(row["position"]) if cleared else ""
                found[row["entry"]][attribute] = max(mark, found[row["entry"]].get(attribute, ""))
        return found

    def _kept(self, maker: Replica, some: set[str]) -> set[str]:
        """Of changes that the log of their maker lost, those that its data had all the same.

        Its entries carry a later one out of the same hole in its log: whoever keeps the later change has the earlier one. Behind
        the end of the log is no hole: what was made there may be younger than the log that was collected.
        """
        shown = maker.log.facts.get("by_origin", {}).get(maker.origin) if maker.log else None
        some = {key for key in some if shown and shown["min"] < key}
        if not some or not maker.log:
            return set()
        system, first = self._system, min(some)
        where = (pc.field("kind") == "change") & (pc.field("origin") == maker.origin)
        where &= pc.field("hi") >= system.halves(first)[0]
        parts = self._evidence.case.parts("changes", maker.log)
        rows = rows_where(parts, ["origin", "hi", "lo"], where).to_pylist()
        logged = sorted({system.order_key(row["origin"], row["hi"], row["lo"]) for row in rows})
        mine = (pc.field("origin") == maker.origin) & (pc.field("position") > first)
        carried = rows_where(self.contents.exports[maker.server].parts, ["position"], mine)["position"]
        kept = sorted({system.change_of(position) for position in pc.unique(carried).to_pylist()} - {*logged})
        found: set[str] = set()
        for key in some:
            at, behind = bisect_right(kept, key), bisect_right(logged, key)
            if at < len(kept) and behind < len(logged) and kept[at] < logged[behind]:
                found.add(key)
        return found


def deletions(contents: Contents, changes: Collection[str]) -> dict[str, dict[str, str]]:
    """The changes among these that deleted an entry which other servers still have: what was done, and the name of the entry."""
    found: dict[str, dict[str, str]] = {}
    changes = frozenset(changes)
    for there in contents.held.values() if changes else ():
        kept = next((held.target for held in there.values() if held.status == LIVE), None)
        for held in there.values() if kept else ():
            change = contents.evidence.system.change_of(held.deleted) if held.deleted else ""
            if kept and change in changes:
                found[change] = {"operation": "delete", "target": kept}
    return found


def _first_of(there: Held) -> str:
    """The change with which an entry began: its classes bear it. Empty: one of them bears none."""
    classes = [
        position
        for name, values in there.present.items()
        if plain_name(name) == "objectclass"
        for position in values.values()
    ]
    return min(filter(None, classes)) if classes and all(classes) else ""


def perhaps_replaced(contents: Contents, missing: Sequence[Mapping[str, Any]], rules: Collection[str]) -> set[str]:
    """Those of some missing changes that no log holds, and behind which values of their entry were replaced or removed.

    On each server that lacks them by one of these rules and whose entries were collected. Who refused a change, or dropped it,
    did not apply it, whatever came later.
    """
    system, unlogged = contents.evidence.system, Unlogged(contents)
    lacking: dict[str, dict[str, str]] = {}
    sure = {row["position"] for row in missing if row["operation"] != "modify" or row["rule"] not in rules}
    for row in missing:
        if row["position"] not in sure and row["server"] in contents.exports and (key := system.typed(row["position"])):
            lacking.setdefault(row["server"], {})[key] = name_of(row["target"])
    written = {server: unlogged.written_since(server, modified) for server, modified in lacking.items()}
    found = set[str]().union(*written.values())
    return {
        system.show(key)
        for key in found
        if all(key in written[server] for server, modified in lacking.items() if key in modified)
    }


def _bears(names: set[str]) -> pc.Expression:
    plain = pc.replace_substring_regex(pc.utf8_lower(pc.field("target")), r"\s*,\s*", ",")
    return plain.isin(pa.array(sorted(names), pa.string()))


def _in_good_order(starts: list[datetime], stops: list[datetime]) -> datetime:
    """The last start before which the server had not stopped in good order; what it had then, it has had since.

    started 1    stopped 4    started 5    killed    started 8    stopped 9    started 10        8
    """
    for before, start in reversed([*pairwise(starts)]):
        if not any(before < at < start for at in stops):
            return start
    return starts[0]


def _apart_since(one: Held, other: Held, left_out: frozenset[str]) -> Iterator[str]:
    """Of each value that only one of two entries has: what made it, or took it from the other later; empty: nothing tells."""
    for name, values in one.present.items():
        for value in values.keys() - other.present.get(name, {}).keys() if plain_name(name) not in left_out else ():
            yield max(values[value] or "", other.removed.get(name, {}).get(value, ""), other.cleared.get(name, ""))
