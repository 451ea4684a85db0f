"""What a case holds about one suffix: the rows that tell of it, and those of which nobody knows whether they do.

The logs of a server speak of all its suffixes, whose origins often bear the same names; even positions can be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.engine.parquet_read import read_part
from workbench.engine.position_index import HIGHEST, LOWEST
from workbench.engine.positions import Positions, of_keys
from workbench.engine.selective_read import named_in, rows_at, rows_where
from workbench.intake.inputs import Input
from workbench.model import System
from workbench.systems import format_with
from workbench.tables import SCHEMAS, Numbers
from workbench.topology.topology import Replica, Topology

_OF_RESULTS = tuple(SCHEMAS["applied"].names)
"""All that may be asked of a result."""


class Evidence:
    """The rows of a case about one suffix, up to one snapshot, by server; of all servers, or of those named."""

    def __init__(
        self,
        case: Case,
        shown: Topology,
        suffix: str | None,
        names: Sequence[str],
        servers: frozenset[str] | None = None,
    ) -> None:
        self.case, self.shown, self.suffix, self.names = case, shown, suffix, names
        self.system: System = shown.system
        self.numbers = {name: number for number, name in enumerate(names)}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._once: dict[tuple[str, Callable[..., Any]], Any] = {}
        self._without_name: dict[str, tuple[pa.Table, pa.Table]] = {}
        labels = list(case.snapshots)
        known = set(labels[: labels.index(shown.snapshot) + 1])
        mine = (one for one in case.inputs if one.kind and one.snapshot in known and one.may_tell_of(suffix))
        self.inputs = [one for one in mine if servers is None or one.server in servers]

    @cached_property
    def began(self) -> dict[str, datetime]:
        """Server -> when it was read, by its own clock."""
        return readings_began(self.case, self.shown)

    @cached_property
    def former(self) -> frozenset[tuple[str, str]]:
        """(server, origin) of servers that made changes, and make none as that origin any more."""
        return former_makers(self.case, self.shown, self.suffix) | self.made_for_nobody

    @cached_property
    def made_for_nobody(self) -> frozenset[tuple[str, str]]:
        """The same where only the server's own log of operations tells: of these changes no other server has heard.

        r was made a supplier as 9, took changes of clients, and was made a consumer again: no link ever led from it
        """
        mine = [one for one in self.shown.replicas if one.suffix == self.suffix]
        heard = {one.origin for one in mine} | {origin for one in mine for origin in one.seen()}
        client = (pc.field("outcome") == "applied") & ~pc.field("replicated") & pc.field("link").is_null()
        found = set()
        for one in mine:
            if one.origin is not None or not makes_none(self.case, self.shown, one.server, self.suffix):
                continue
            rows = self.told("applied", ["origin"], client & pc.field("origin").is_valid(), one.server)
            for origin in {*pc.unique(rows["origin"]).to_pylist()} - heard:
                others = (other.server for other in mine if other is not one)
                of = pc.field("origin") == origin
                if not any(len(self.told("applied", ["origin"], of, other)) for other in others):
                    found.add((one.server, origin))
        return frozenset(found)

    def origins_of(self, replica: Replica) -> list[str]:
        """The origin as which a server makes changes, and those as which it did before."""
        return origins_made(self.case, self.shown, replica, self.former)

    def parts(self, table: str, server: str | None = None, evidence: str | None = None) -> list[dict[str, Any]]:
        """The parts of a table, of one server or all, of one kind of evidence or all."""
        return [
            part
            for one in self.inputs
            if server in (None, one.server) and evidence in (None, format_with(one.kind).evidence)
            for part in self.parts_of(table, one)
        ]

    def parts_of(self, table: str, one: Input) -> list[dict[str, Any]]:
        """The parts of a table that one file fills, but those of other suffixes."""
        return [part for part in self.case.parts(table, one) if part.get("suffix") in (None, self.suffix)]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a small table, read once: every server asks for them."""
        if table not in self._rows:
            self._rows[table] = self.case.arrow(table).to_pylist()
        return self._rows[table]

    def once(self, server: str, read: Callable[[Evidence, str], Any]) -> Any:
        """What a function reads of a server, read once."""
        if (server, read) not in self._once:
            self._once[server, read] = read(self, server)
        return self._once[server, read]

    def moments(self, server: str, codes: Collection[str]) -> list[datetime]:
        """When a server logged messages of these codes, in the order of time, each time once."""
        where = pc.field("code").isin(pa.array(sorted(codes), pa.string())) & pc.field("at").is_valid()
        rows = rows_where(self.parts("messages", server) if codes else [], ["at"], where)
        return sorted({*rows["at"].to_pylist()})

    @cached_property
    def newest(self) -> dict[str, datetime]:
        """Server -> the latest time that its own files of the last snapshot tell."""
        return newest_times(self.case, self.shown.snapshot)

    def told(
        self,
        table: str,
        columns: Sequence[str],
        where: pc.Expression,
        server: str | None = None,
        one: Input | None = None,
        unclear: bool = False,
    ) -> pa.Table:
        """The rows of this suffix for which `where` holds, of one server or of all, or of one file.

        With `unclear` the results instead that may be of another suffix as well. They prove nothing; but what they name is not
        proven to be lacking by silence.
        """
        found = []
        for file in self.inputs if one is None else [one]:
            if server in (None, file.server):
                parts = self.parts_of(table, file)
                if not unclear:
                    found.append(rows_where(parts, columns, where & self._named_so(file)))
                if table == "applied" and self.of_several(file) and len(rows := self._nameless(file)[unclear]):
                    found.append(rows.filter(where).select(list(columns)))
        found = [rows for rows in found if len(rows)]
        return pa.concat_tables(found) if found else rows_where([], columns, where)

    def of_several(self, one: Input) -> bool:
        """True for a file that speaks of several suffixes of its server."""
        return self.suffix is not None and one.suffix is None and bool(one.suffixes)

    def is_here_alone(self, origin: str) -> bool:
        """True if an origin is named in this suffix, and in no other one: a line that tells no suffix is of this."""
        return [suffix for suffix, found in self._origins.items() if origin in found] == [self.suffix]

    def _named_so(self, one: Input) -> pc.Expression:
        """Rows that bear the suffix; those that bear none, where nobody knows of any."""
        column = pc.field("suffix")
        if self.suffix is None:
            return column.is_null()
        mine = column == self.suffix
        return mine if one.suffix is not None or one.suffixes else mine | column.is_null()

    def _nameless(self, one: Input) -> tuple[pa.Table, pa.Table]:
        """The results of a file that tell neither their suffix nor a target: those of this suffix, and those of it or another.

        A link, an origin or a change that is known in one suffix alone tells which it is.
        """
        if one.path not in self._without_name:
            where = pc.field("suffix").is_null() & pc.field("target").is_null() & pc.field("position").is_valid()
            rows = rows_where(self.parts_of("applied", one), _OF_RESULTS, where)
            others = [of for of in one.suffixes if of != self.suffix]
            links = {of: self._links.get((one.server, of), set()) for of in one.suffixes}
            origins = {of: self._origins.get(of, set()) for of in one.suffixes}

            def may_be(of: str) -> Numbers:
                return _known_in(rows["link"], links, of) & _known_in(rows["origin"], origins, of)

            mine, other = may_be(self.suffix or ""), np.zeros(len(rows), bool)
            for of in others if mine.any() else ():
                other |= may_be(of) & ~self._surely_not(of, rows["position"])
            self._without_name[one.path] = rows.filter(pa.array(mine & ~other)), rows.filter(pa.array(mine & other))
        return self._without_name[one.path]

    @cached_property
    def _links(self) -> dict[tuple[str, str], set[str]]:
        """Supplier and suffix -> the names of its links."""
        found: dict[tuple[str, str], set[str]] = {}
        for row in self.rows("links"):
            found.setdefault((row["server"], row["suffix"]), set()).add(row["name"])
        return found

    @cached_property
    def _origins(self) -> dict[str, set[str]]:
        """Suffix -> the origins that anything names there."""
        found: dict[str, set[str]] = {}
        for row in self.rows("vectors"):
            if row["suffix"] and row["origin"]:
                found.setdefault(row["suffix"], set()).add(row["origin"])
        for one in self.case.inputs:
            if one.suffix and one.kind and format_with(one.kind).is_log:
                found.setdefault(one.suffix, set()).update(one.facts.get("by_origin", {}))
            for part in one.parts:
                if part.get("suffix"):
                    found.setdefault(part["suffix"], set()).update(part["origins"])
        return found

    def _surely_not(self, suffix: str, positions: pa.ChunkedArray) -> Numbers:
        """For each position: nothing of that suffix names it, and its maker's files show what it made there about then.

        Two suffixes have a change of one position where one server made changes of both in the same moment.
        """
        packed = positions.combine_chunks().dictionary_encode()
        keys = [self.system.change_of(one) for one in packed.dictionary.to_pylist()]
        shown = np.array([self._shows(suffix, key) for key in keys], bool)
        asked = [key for key, there in zip(keys, shown.tolist(), strict=True) if there]
        if asked:
            names = sorted(
                {name for found in self._origins.values() for name in found} | set(map(self.system.origin_of, keys))
            )
            numbers = {name: number for number, name in enumerate(names)}
            some = of_keys(self.system, asked, numbers)
            logs = [
                one for one in self.case.inputs if one.suffix == suffix and one.kind and format_with(one.kind).is_log
            ]
            held = np.zeros(len(some), bool)
            for one in logs:
                held |= self.case.log(one).contains(some, numbers)
            parts = [part for one in self.case.inputs for part in self.case.parts("named", one)]
            for named in named_in((part for part in parts if part.get("suffix") == suffix), numbers):
                held |= some.within(named)
            there = set(some[held].keys(self.system, names))
            shown &= np.array([key not in there for key in keys], bool)
        return shown[np.asarray(packed.indices)]

    def _shows(self, suffix: str, key: str) -> bool:
        """True if the files of the server that makes the changes of the origin show what it made in that suffix about then."""
        origin = self.system.origin_of(key)
        for one in self.shown.replicas:
            if (one.suffix, one.origin) != (suffix, origin) or one.log is None or not one.log.whole:
                continue
            logged, last = one.log.facts.get("by_origin", {}).get(origin), one.vector.get(origin)
            if logged is None or key < logged["min"] or last is None or last.max is None:
                continue
            beside = next((x for x in self.shown.replicas if (x.server, x.suffix) == (one.server, self.suffix)), None)
            span = beside.vector.get(origin) if beside and beside.origin == origin else None
            # Its vectors of both suffixes were read in one moment: the one that is behind shows that it made none there.
            if key <= logged["max"] or (last.max <= logged["max"] and span and key <= (span.max or "")):
                return True
        return False

    def between(self, some: Positions) -> pc.Expression:
        """Rows whose position may be one of these, or a part of one."""
        (first,), (last,) = some[:1].keys(self.system, self.names), some[-1:].keys(self.system, self.names)
        hi, _ = self.system.halves(last)
        beyond = self.system.order_key(self.system.origin_of(last), hi + 1, 0)
        column = pc.field("position")
        return column.is_valid() & (column >= first) & (column < beyond)

    def described(self, some: Positions, logs: Iterable[Input]) -> dict[str, dict[str, Any]]:
        """Operation and target of changes by position: from the first log that holds each, else from a result that names it.

        What was refused may be another operation: a client's that was given the position which another server used, too.
        """
        about: dict[str, dict[str, Any]] = {}
        for log in logs:
            parts = self.case.parts("changes", log)
            for there, rows in rows_at(parts, some, self.numbers, ["operation", "target"]):
                for key, row in zip(there.keys(self.system, self.names), rows.to_pylist(), strict=True):
                    about.setdefault(key, row)
        left = [key for key in some.keys(self.system, self.names) if key not in about]
        if left:
            where = pc.field("position").isin(left)
            rows = self.told("applied", ["position", "operation", "target", "outcome"], where).to_pylist()
            for row in sorted(rows, key=lambda row: row["outcome"] != "applied"):
                if row["operation"] or row["target"]:
                    about.setdefault(row["position"], row)
        return about

    def holes(self, log: Input | None) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Stretches of a log, from one position to another, in which a record could not be read."""
        if log is None or not log.rejected:
            return []
        rejects = rows_where(self.case.parts("rejects", log), ["offset"], pc.field("offset").is_valid())
        if not len(rejects):
            return []
        offset, hi, lo = [], [], []
        for part in self.case.parts("changes", log):
            rows = read_part(part["path"], ["offset", "hi", "lo"])
            offset.append(rows["offset"].to_numpy())
            hi.append(rows["hi"].to_numpy())
            lo.append(rows["lo"].to_numpy())
        if not offset:
            return [(LOWEST, HIGHEST)]
        places, his, los = map(np.concatenate, (offset, hi, lo))
        order = np.argsort(places)
        places, his, los = places[order], his[order], los[order]
        found = set()
        for at in np.searchsorted(places, np.unique(rejects["offset"].to_numpy())).tolist():
            low = (int(his[at - 1]), int(los[at - 1])) if at else LOWEST
            high = (int(his[at]), int(los[at])) if at < len(places) else HIGHEST
            # A log that is not in order can hide anything anywhere.
            found.add((low, high) if low < high else (LOWEST, HIGHEST))
        return sorted(found)


def _known_in(column: pa.ChunkedArray, names: Mapping[str, set[str]], suffix: str) -> Numbers:
    """For each name: may it be one of this suffix? True where none is told, or one that is known in no suffix."""
    every = pa.array(sorted(set().union(*names.values())), pa.string())
    mine = pc.is_in(column, pa.array(sorted(names[suffix]), pa.string()))
    found: Numbers = np.asarray(pc.or_(mine, pc.invert(pc.is_in(column, every))))
    return found


def newest_times(case: Case, snapshot: str) -> dict[str, datetime]:
    """Server -> the latest time that its own files of a snapshot tell by its own clock.

    It was collected at that time or later. The times of the files themselves are not asked: copying changes them.
    """
    times: dict[str, datetime] = {}
    for table, columns in _TIMES.items():
        for row in case.arrow(table).select(["snapshot", "server", *columns]).to_pylist():
            for at in (row[column] for column in columns if row[column] and row["snapshot"] == snapshot):
                times[row["server"]] = max(at, times.get(row["server"], at))
    return times


CLOCKS_DIFFER = timedelta(seconds=60)
"""Clocks that are closer count as one."""


def readings_began(case: Case, shown: Topology) -> dict[str, datetime]:
    """Server -> when its reading began, by its own clock, where `workbench collect` wrote down when that was.

    The last time that its files tell is that of the end of the reading, or, of a server that logs little, an earlier one. Where
    it lies in the future, the clock may have been set back since: then the last line of the log tells.
    """
    newest = newest_times(case, shown.snapshot) if shown.readings else {}
    for one in shown.readings:
        if one.server in newest and newest[one.server] - one.ended > CLOCKS_DIFFER:
            newest[one.server] = last_line_at(case, shown.snapshot, one.server) or newest[one.server]
    apart = {one.server: newest[one.server] - one.ended for one in shown.readings if one.server in newest}
    return {
        one.server: one.began
        + (wide if abs(wide := apart.get(one.server, timedelta(0))) > CLOCKS_DIFFER else timedelta(0))
        for one in shown.readings
    }


def last_line_at(case: Case, snapshot: str, server: str) -> datetime | None:
    """The time in the last line of the errors log of a server: not the latest one where its clock was set back."""
    last: list[datetime] = []
    for one in case.inputs:
        parts = case.parts("messages", one) if (one.server, one.snapshot) == (server, snapshot) else []
        if parts:
            rows = rows_where(parts, ["offset", "at"], pc.field("at").is_valid())
            if end := pc.max(rows["offset"]).as_py():
                last.append(pc.max(rows.filter(pc.equal(rows["offset"], end))["at"]).as_py())
    return max(last, default=None)


_TIMES = {"coverage": ("last_at",), "links": ("started_at", "ended_at"), "vectors": ("modified_at",)}


def former_makers(
    case: Case, shown: Topology, suffix: str | None, by_links: bool = False
) -> frozenset[tuple[str, str]]:
    """(server, origin) of origins that no server has now, and at whose address, by any vector, a collected server listens.

    So it is where a supplier was made a hub or a read-only consumer: it made these changes, and has them, whatever it claims.

    by_links  also by what links remember of the vectors of their consumers, after servers have cleaned an origin from their own
    """
    kinds = ("server", "link") if by_links else ("server",)
    at: dict[str, set[str]] = {}
    for one in case.inputs:
        for address in one.facts.get("addresses", {}) if one.snapshot == shown.snapshot else ():
            at.setdefault(address, set()).add(one.server)
    taken = {one.origin for one in shown.replicas if one.suffix == suffix}
    found = set()
    for row in case.arrow("vectors").to_pylist() if at else ():
        servers = at.get((row["url"] or "").partition("://")[2].strip("/").lower(), set())
        known = row["kind"] in kinds and row["suffix"] in (None, suffix) and row["origin"] not in taken
        if known and len(servers) == 1:  # servers that all call themselves localhost tell nothing
            found.add((*servers, row["origin"]))
    return frozenset(found)


def origins_made(case: Case, shown: Topology, replica: Replica, former: Collection[tuple[str, str]]) -> list[str]:
    """The origin as which a server makes changes, and the former ones, if its configuration tells what it makes now."""
    had = sorted(origin for server, origin in former if server == replica.server)
    known = bool(had) and (replica.origin or makes_none(case, shown, replica.server, replica.suffix))
    return [*filter(None, [replica.origin]), *(had if known else ())]


def makes_none(case: Case, shown: Topology, server: str, suffix: str | None) -> bool:
    """True if a server's own configuration of this snapshot says that it makes no changes."""
    mine = [one.facts for one in case.inputs if (one.server, one.snapshot) == (server, shown.snapshot)]
    told = [facts for facts in mine if facts.get("replica", {}).get(suffix or "", {}).get("id") is not None]
    return bool(told) and not any((suffix or "") in facts.get("origins", {}) for facts in told)
