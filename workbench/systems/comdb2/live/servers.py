"""The nodes of one collection: the registry names them, and each is asked for its place in the log and its settings.

The registry's tables are read first, then the nodes, those furthest from the source before those that feed them, and the
registry's clock once more at the end: whatever a replicant has, its source was asked later and has, too. Of one node the last
commit is asked for before the last record, and that before the first: what it is said to have it had then, and the file that it
is said to begin with was there after all.

sys.physrep.topology() is never called: it fails in every version. No statement is known that tells which log files there are,
with their sizes: that list is made on the nodes' own machines.
"""

# ruff: noqa: S608 - statements hold no name and no text of others: a number, and a place in the log that was read as one

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from workbench.intake.collection import Access, Address, Gathered, Survey, Vectors, Wanted
from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.comdb2.live.asking import Place, Refused, asking, place_named, place_of
from workbench.systems.comdb2.lsn import COMMITS, lsn_of
from workbench.systems.comdb2.naming import REGISTRY
from workbench.systems.comdb2.secrets import harmless

Rows = list[list[str]]

_NODES, _PULLS, _AWAITED = "comdb2_physreps", "comdb2_physrep_connections", "comdb2_physrep_sources"
_TABLES = {_NODES: (6, 7), _PULLS: (4,), _AWAITED: (4,)}
"""Table of the registry -> how many columns it may have: the first has one more where nodes report their first file."""

_NOW = "select now()"
_LOG = "comdb2_transaction_logs"
_COMMIT = (
    f"select lsn, generation, timestamp from {_LOG}(NULL, NULL, 4) where rectype in ({', '.join(map(str, sorted(COMMITS)))})"
    " limit 1"
)
_LAST = f"select lsn, generation, timestamp, logcgen from {_LOG}(NULL, NULL, 4) limit 1"
_FIRST = f"select lsn from {_LOG}(NULL, NULL, 0) limit 1"
_FOLLOWS = "select value from comdb2_tunables where name = 'physrep_source_dbname'"
_TUNABLES = (
    "select name, value from comdb2_tunables where name like 'physrep%' or name like 'revsql%' or name like 'reverse%'"
    " or name like 'tranlog%' or name = 'blocking_physrep'"
)
_METRICS = (
    "select name, value from comdb2_metrics where name in ('commits', 'concurrent_connections', 'rep_deadlocks',"
    " 'physrep_metadb_sql_count', 'physrep_no_viable_source')"
)
_OWN_CLUSTER = {
    "comdb2_cluster": "select host, port, is_master, coherent_state, logfile, logoffset from comdb2_cluster",
    "comdb2_repl_stats": "select * from comdb2_repl_stats",
}
_DIGEST = (
    "select lsn, rectype, generation, timestamp, length(payload), checksum_md5(payload), txnid, utxnid, logcgen,"
    f" maxutxnid, childutxnid from {_LOG}"
)
_POSITIONS = "nodes/positions.tsv"
_NUMBER = re.compile(r"-?[0-9]{1,19}|NULL", re.ASCII)
_LOOK = "ask it with cdb2sql --tabs and see what answers there"
_BEYOND = 60
"""Seconds that the database is given beyond those that cdb2sql is: a dump then never ends early without a word."""
_AT_ONCE = 16
_TAIL = 1 << 16


@dataclass(frozen=True)
class _Registry:
    """What the registry said at the beginning: its clock before its tables were read, and these."""

    place: Place
    clock: Rows
    tables: dict[str, Rows]


class Nodes:
    """The nodes of one collection, and their registry; see `workbench.intake.collection.Servers`."""

    def __init__(self, addresses: Sequence[Address], access: Access, suffixes: Sequence[str] = ()) -> None:
        if suffixes:
            raise Problem("a physical log has no suffixes", ", ".join(map(printable, suffixes)), "leave them out")
        if access.user or access.ca_file or access.tls is not None:
            do = "leave out the user, --ca and --tls: cdb2sql takes both from its own configuration"
            raise Problem("who asks and how is not told here", do=do)
        self._given: dict[str, Place] = {}
        for address in addresses:
            if address.name:
                do = "give the URL alone: a node is called DATABASE@HOST"
                raise Problem("nodes cannot be named otherwise", printable(address.name), do)
            place = place_of(address.url or "")
            self._given[place.name] = place
        self._asking = asking(access.timeout)
        self._patience = access.patience
        self._registry: _Registry | None = None
        self._silent: dict[str, str] = {}
        self._no_registry: dict[str, str] = {}
        self._unasked: list[str] = []
        self._without: list[str] = []
        self._nodes: dict[str, Place] = {}
        self._depths: dict[str, int] = {}
        self._sources: set[str] = set()

    @cached_property
    def names(self) -> list[str]:
        """The nodes that were given and those that the registry knows, and the registry."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = [one for one in pool.map(self._registry_at, self._given.values()) if one]
        if len(found) > 1:
            where = ", ".join(one.place.name for one in found)
            raise Problem("more than one of these is a registry", where, "name one, and collect each by itself")
        self._registry = next(iter(found), None)
        self._nodes = dict(self._given)
        if self._registry is None:
            return list(self._nodes)
        del self._nodes[self._registry.place.name]
        tables = self._registry.tables
        pulls = [(_plain(row[:2]), _plain(row[2:])) for row in tables[_PULLS]]
        for name in [_plain(row[:2]) for row in tables[_NODES]] + [name for both in pulls for name in both]:
            place = place_named(*name.rpartition("@")[::2])
            if place:
                self._nodes[name] = place
            elif name not in self._unasked:
                self._unasked.append(name)
        self._depths = depths(pulls)
        return [*self._nodes, REGISTRY]

    def _registry_at(self, place: Place) -> _Registry | None:
        """The registry, if this is it; a place that does not answer is remembered with its reason."""
        try:
            clock = self._asking.rows(place, _NOW)
            if [len(row) for row in clock] != [1]:  # also nothing: an empty registry would look the same
                raise Problem("no time of the database", place.name, _LOOK)
            try:
                tables = {_NODES: self._table(place, _NODES)}
            except Refused as refused:
                self._no_registry[place.name] = str(refused)
                return None  # it has no such table: a node
            tables[_PULLS] = self._table(place, _PULLS)
            try:
                tables[_AWAITED] = self._table(place, _AWAITED)
            except Refused as refused:  # without connections in reverse nobody needs it
                self._without.append(str(refused))
            return _Registry(place, clock, tables)
        except Problem as problem:
            self._silent[place.name] = str(problem)
            return None

    def _table(self, place: Place, name: str) -> Rows:
        rows = self._asking.rows(place, f"select * from {name} order by 1, 2, 3")
        if any(len(row) not in _TABLES[name] for row in rows):
            raise Problem(f"no rows of {name}", place.name, _LOOK)
        return rows

    def survey(self, name: str) -> Survey:
        """Reach the node and say what it is."""
        deepest = max(self._depths.values(), default=0)
        if name == REGISTRY:
            return Survey(REGISTRY, deepest + 2, {})
        if name in self._silent:
            raise Problem(self._silent[name])
        rows = self._asking.rows(self._nodes[name], _FOLLOWS)
        if any(len(row) != 1 for row in rows):
            raise Problem("an answer that is none", name, _LOOK)
        if not rows or rows[0][0] in ("NULL", ""):
            self._sources.add(name)
            return Survey("source", deepest + 1, {})
        return Survey("replicant", deepest - self._depths.get(name, deepest), {})

    def vectors(self, name: str) -> Vectors:
        """None: each position is kept with the time at which it was asked for, and a log moves all the time."""
        return {}

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """Where the node is in the log and how it is set; of a source what its cluster says; the log's records if wanted."""
        if name == REGISTRY:
            return self._of_registry(folder, wanted)
        place, gathered = self._nodes[name], Gathered()
        if self._registry is None and name in self._no_registry:
            gathered.without.append(f"registry: {self._no_registry[name]}")
        try:
            _add(folder, _POSITIONS, [self._position(place, gathered)], gathered)
        except Problem as problem:
            gathered.failed.append(f"position: {problem}")
            if not self._answers(place):  # it did before: to ask it more would cost a time-out each
                _add(folder, _POSITIONS, [_silence(place)], gathered)
                return gathered
        for what, statement in ("tunables", _TUNABLES), ("metrics", _METRICS):
            self._listed(place, what, statement, folder, gathered)
        if name in self._sources:
            for table, statement in _OWN_CLUSTER.items():
                self._own_cluster(place, table, statement, folder, gathered)
        if wanted.records:
            try:
                self._records(place, wanted, folder, gathered)
            except Problem as problem:
                gathered.failed.append(f"records: {problem}")
        return gathered

    def left_behind(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        """That a node did not answer, and when. Where no registry answered it may be that, and no node."""
        gathered = Gathered()
        if self._registry:
            _add(folder, _POSITIONS, [_silence(self._nodes[name])], gathered)
        return gathered

    def close(self) -> None:
        """Every call of cdb2sql has ended."""

    def _of_registry(self, folder: Path, wanted: Wanted) -> Gathered:
        assert self._registry, "only then there is such a server"
        gathered = Gathered(
            without=[*self._without, "sizes of log files: no statement tells them; list them as nodes/logfiles.tsv"]
        )
        if wanted.entries or wanted.verbose:
            gathered.without.append("entries and replication log: there are none")
        gathered.failed += [f"{printable(name)}: not a plain name, not asked" for name in self._unasked]
        for table, rows in self._registry.tables.items():
            _add(folder, f"meta/{table}.tsv", rows, gathered)
        clock = self._registry.clock
        try:
            clock = clock + self._asking.rows(self._registry.place, _NOW)
        except Problem as problem:
            gathered.failed.append(f"its clock at the end: {problem}")
        _add(folder, "meta/now.txt", clock, gathered)
        return gathered

    def _answers(self, place: Place) -> bool:
        try:
            self._asking.rows(place, _FOLLOWS)
        except Problem:
            return False
        return True

    def _position(self, place: Place, gathered: Gathered) -> list[str]:
        """One row of positions."""
        at, commit = _clock(), [["NULL"] * 3]
        try:
            commit = self._asking.rows(place, _COMMIT) or commit
        except Problem as problem:  # the whole log may have to be read for it
            gathered.failed.append(f"last commit: {problem}")
        last, first = (self._asking.rows(place, statement) for statement in (_LAST, _FIRST))
        shapes = ((commit, 3), (last, 4), (first, 1))
        if any(len(rows) != 1 or len(rows[0]) != width or not _in_log(rows[0]) for rows, width in shapes):
            raise Problem("no places in a log", place.name, _LOOK)
        lsn, generation, timestamp, cuts = last[0]
        return [at, place.database, place.host, first[0][0], lsn, generation, timestamp, *commit[0], cuts]

    def _listed(self, place: Place, what: str, statement: str, folder: Path, gathered: Gathered) -> None:
        """Names and values, without what is secret in them."""
        try:
            rows = self._asking.rows(place, statement)
        except Problem as problem:
            gathered.failed.append(f"{what}: {problem}")
            return
        told = [[place.database, place.host, row[0], harmless(*row) or ""] for row in rows if len(row) == 2]
        if len(told) < len(rows):
            gathered.failed.append(f"{what}: {len(rows) - len(told)} rows that are no name and value")
        _add(folder, f"nodes/{what}.tsv", told, gathered)

    def _own_cluster(self, place: Place, table: str, statement: str, folder: Path, gathered: Gathered) -> None:
        try:
            rows = self._asking.rows(place, statement)
        except Problem as problem:
            gathered.failed.append(f"{table}: {problem}")
            return
        _add(folder, f"nodes/{place.database}.{place.host}.{table}.tsv", rows, gathered)

    def _records(self, place: Place, wanted: Wanted, folder: Path, gathered: Gathered) -> None:
        """The log as lengths and checksums: from its first record, or from the file that was written at `since`."""
        limit = int(self._patience) + _BEYOND
        start = "NULL"
        if wanted.since:
            older = f"from {_LOG}(NULL, NULL, 4, {limit}) where timestamp < {int(wanted.since.timestamp())} limit 1"
            rows = self._asking.rows(place, f"select lsn {older}")
            if rows and (found := lsn_of(rows[0][0])):
                start = f"'{{{found[0]}:28}}'"  # every file begins there, and a start must be the place of a record
        before = self._asking.rows(place, _LAST)
        name = f"{place.database}.{place.host}.digest.tsv"
        self._asking.dump(place, f"{_DIGEST}({start}, NULL, 0, {limit})", folder / name, self._patience)
        gathered.files[name] = None
        end, known = _last_in(folder / name), lsn_of(before[0][0]) if before else None
        if end is None or (known and end < known):
            gathered.failed.append("records: the dump ends before the log does")


def depths(pulls: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Node -> how many rows of connections lie above it; what is only in a circle has none.

    >>> depths([("r1", "s"), ("r2", "r1"), ("a", "b"), ("b", "a")])
    {'s': 0, 'r1': 1, 'r2': 2}
    """
    below: dict[str, list[str]] = {}
    fed = set()
    for node, source in pulls:
        below.setdefault(source, []).append(node)
        fed.add(node)
    found: dict[str, int] = {}
    level, depth = [name for name in below if name not in fed], 0
    while level:
        found |= dict.fromkeys(level, depth)
        level = list(dict.fromkeys(node for name in level for node in below.get(name, ()) if node not in found))
        depth += 1
    return found


def _plain(pair: Sequence[str]) -> str:
    return "@".join(pair)


def _in_log(row: list[str]) -> bool:
    """A place in the log, or null, and numbers behind it."""
    return (row[0] == "NULL" or lsn_of(row[0]) is not None) and all(map(_NUMBER.fullmatch, row[1:]))


def _last_in(file: Path) -> tuple[int, int] | None:
    with file.open("rb") as data:
        data.seek(max(0, file.stat().st_size - _TAIL))
        line = data.read().rstrip(b"\n").rpartition(b"\n")[2]
    return lsn_of(line.partition(b"\t")[0].decode("ascii", "replace"))


def _add(folder: Path, name: str, rows: Rows, gathered: Gathered) -> None:
    """More rows of a file that all nodes share, or its only ones."""
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.writelines("\t".join(row) + "\n" for row in rows)
    gathered.files[name] = None


def _silence(place: Place) -> list[str]:
    """The row of a node that does not answer."""
    return [_clock(), place.database, place.host, "UNREACHABLE"]


def _clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def reach(addresses: Iterable[Address], access: Access, suffixes: Sequence[str] = ()) -> Nodes:
    """The nodes at these addresses; none of them is contacted yet."""
    return Nodes(list(addresses), access, suffixes)
