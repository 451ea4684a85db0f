"""What one snapshot tells of nodes that pull a physical log from each other: the registry, the nodes' own answers, their files.

The same table may have been collected twice, in two shapes: of each node the row counts that was reported last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.parquet_read import stream_part
from workbench.engine.selective_read import rows_where
from workbench.intake.inputs import Input
from workbench.replication.tier.rules.tiers import Lsn, Node, Pull, Registry
from workbench.systems import format_with

if TYPE_CHECKING:
    from workbench.case.case import Case

Row = Mapping[str, Any]

TUNABLE, METRIC, LINE = "tunable", "metric", "line"
"""Kinds of settings."""

CUT_BACK = "truncated"
"""The code of the message that a node has cut the end of its log off."""
PULLS_FROM, REGISTERED = frozenset({"attached", "replicating"}), "registered"
"""Codes of messages that name the node that one pulls from, and, in the registry's own log, the database that a node follows."""
_READ_WITHIN = timedelta(minutes=10)
"""Files of nodes may be read that long after the registry."""

_WELL_AFTER = timedelta(seconds=30)
"""A report is written within seconds: one that much younger than an answer tells of a later moment."""

WAITING = frozenset({"pending", "inactive"})
"""States of nodes that have no source, in lower case."""


@dataclass(frozen=True)
class TieredSnapshot:
    """What a snapshot tells of a registry and its nodes, each named `database@host`.

    now        the clock of the registry when the collecting began; None: nothing tells it
    nodes      the rows of the registry
    pulls      who pulls from whom; `awaited`: rows of nodes that wait until their source connects
    probes     what nodes answered when they were asked themselves
    files      node -> number of each file of its log -> its size
    settings   node -> kind -> name -> what it is set to, in the order of the file
    lists_nodes  the table of nodes was collected; else that a node has no row in it nobody knows
    lists_pulls  the table of who pulls from whom was collected; else nobody knows it
    lost_pulls   rows of it could not be read
    logs       node -> the files with records of its log; `logged`: the first and the last of these records
    said_sources  node -> the database that it follows, by the logs of programs
    full_names  server and file -> the node, where the name of the file shortens that of its host
    registries  databases of nodes in whose files the tables of the registry stand
    stood       node that tells nothing anew -> where it stood in an earlier snapshot, and in which
    cut_since   node -> where it cut its log back to after its last report, by its own log: that report is of another history
    """

    label: str
    now: datetime | None = None
    nodes: dict[str, Row] = field(default_factory=dict)
    pulls: tuple[Pull, ...] = ()
    awaited: tuple[Pull, ...] = ()
    probes: dict[str, Row] = field(default_factory=dict)
    files: dict[str, dict[int, int]] = field(default_factory=dict)
    settings: dict[str, dict[str, dict[str, list[str | None]]]] = field(default_factory=dict)
    logs: dict[str, list[Input]] = field(default_factory=dict)
    logged: dict[str, tuple[Lsn, Lsn]] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    lists_nodes: bool = True
    lists_pulls: bool = True
    lost_pulls: bool = False
    said_sources: Mapping[str, str] = field(default_factory=dict)
    full_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    cut_since: Mapping[str, Lsn] = field(default_factory=dict)
    part_listed: frozenset[str] = frozenset()
    registries: frozenset[str] = frozenset()
    stood: Mapping[str, tuple[Lsn, str]] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """Every node that something tells of."""
        told = {*self.nodes, *self.probes, *self.files, *self.settings, *self.logs, *self.down}
        # Rows of awaited connections may name a tier or a cluster in place of a host.
        linked = {name for pull in self.pulls for name in (pull.name, pull.source)}
        return sorted(name for name in told | linked if name.find("@") > 0)

    @cached_property
    def registry(self) -> Registry:
        """The registry as the rules take it; ages by its own clock."""
        nodes = tuple(self._node(name, row) for name, row in sorted(self.nodes.items()))
        keeps = any(row["first_file"] is not None for row in self.nodes.values())
        return Registry(nodes, self.pulls, self.awaited, keeps)

    def _node(self, name: str, row: Row) -> Node:
        database, _, host = name.partition("@")
        file, offset = place_of(row["position"]) or (None, None)
        return Node(database, host, file, offset, row["first_file"], self.age(name), row["state"])

    def age(self, name: str) -> float | None:
        """Seconds since the node last reported itself, by the registry's clock; None: it never did, or nothing tells the time."""
        return None if name in self.ahead else self.since_report(name)

    def since_report(self, name: str) -> float | None:
        """The same, as the row has it: far below zero if that is of a time to come."""
        at = self.nodes[name]["reported_at"] if name in self.nodes else None
        return None if at is None or self.now is None else (self.now - at).total_seconds()

    @cached_property
    def ahead(self) -> frozenset[str]:
        """The nodes whose reports are of a time that the registry's clock had not come to: how old they are nothing tells."""
        least = -_READ_WITHIN.total_seconds()
        return frozenset(name for name in self.nodes if (age := self.since_report(name)) is not None and age < least)

    def of_unknown_age(self, name: str) -> bool:
        """Whether all that a node tells is of a time to come: it may be gone."""
        return name in self.ahead and self.answered(name) is None

    def nothing_recent(self, name: str) -> bool:
        """Whether a node did not answer, and its only report is of a time to come: nothing shows that it is there."""
        return name in self.ahead and self.answered(name) is False

    def answered(self, name: str) -> bool | None:
        """Whether the node answered when it was asked; None: it was not asked."""
        if name in self.down:
            return False
        return bool(self.probes[name]["answered"]) if name in self.probes else None

    def knows_pulls_of(self, name: str) -> bool:
        """Whether the table tells from whom a node pulls, or that it pulls from none: a row that was not read may be its own."""
        return self.lists_pulls and (not self.lost_pulls or name in self._pulling)

    @cached_property
    def _pulling(self) -> frozenset[str]:
        return frozenset(pull.name for pull in self.pulls)

    def reported(self, name: str) -> Lsn | None:
        """The last place that the node reported to the registry."""
        return place_of(self.nodes[name]["position"]) if name in self.nodes else None

    def probed(self, name: str, which: str = "last") -> Lsn | None:
        """A place that the node told when it was asked: `first`, `last` or `commit`."""
        return place_of(self.probes[name][which]) if name in self.probes else None

    def outdated(self, name: str) -> bool:
        """Whether a node, asked after its last report, was not as far as it had reported: it cut the end of its log off since."""
        reported, probed = self.reported(name), self.probed(name)
        if reported is None or probed is None or probed >= reported:
            return False
        asked, then = self.probes[name]["at"], self.nodes[name]["reported_at"]
        return asked is not None and then is not None and bool(asked > then)

    def fell_back(self, name: str) -> bool:
        """Whether a node reported itself well after it had answered, and was not as far by then: its log went back meanwhile.

        Where no node was asked after the registry's clock was read, the times of the answers may be of a clock that is behind.
        """
        reported, probed = self.reported(name), self.probed(name)
        if reported is None or probed is None or probed <= reported or name in self.ahead or self.now is None:
            return False
        asked, then = self.probes[name]["at"], self.nodes[name]["reported_at"]
        in_order = any(row["at"] and row["at"] >= self.now for row in self.probes.values())
        return in_order and asked is not None and then is not None and bool(then - asked >= _WELL_AFTER)

    def superseded(self, name: str) -> bool:
        """Whether a node reported itself further after it had answered, or its log went back: the answer is of before."""
        reported, probed = self.reported(name), self.probed(name)
        if reported is None or probed is None or name in self.ahead:
            return False
        if probed >= reported:
            return self.fell_back(name)
        asked, then = self.probes[name]["at"], self.nodes[name]["reported_at"]
        return asked is not None and then is not None and bool(asked <= then)

    def answered_at(self, name: str) -> Lsn | None:
        """The newest place that a node told when it was asked; None: it reported itself since, further or far back."""
        return None if self.superseded(name) else self.probed(name)

    def last(self, name: str) -> Lsn | None:
        """The newest place of a node's log: what it told itself, or reported after that; or its log, where that goes further.

        Of one that is silent now it is where it stood in an earlier snapshot, if that is further.
        """
        return self._lasts.get(name)

    @cached_property
    def _lasts(self) -> dict[str, Lsn | None]:
        return {name: self._last(name) for name in self.names}

    def _last(self, name: str) -> Lsn | None:
        logged = self.logged[name][1] if name in self.logged else None
        told = self.answered_at(name) or self.cut_since.get(name) or self.reported(name)
        told = self.stood[name][0] if name in self.stood else told
        return max(filter(None, (told, logged)), default=None)

    def first(self, name: str) -> Lsn | None:
        """The oldest place of a node's log, as it told itself; else the oldest one that was collected."""
        return self.probed(name, "first") or (self.logged[name][0] if name in self.logged else None)

    def has_file(self, name: str, file: int) -> bool:
        """Whether a node is known to have a file of its log, and all behind it. A collected log shows what is there, at least."""
        first = self._shown_from.get(name)
        return first is not None and first <= file

    def knows_files(self, name: str) -> bool:
        """Whether anything tells which files of its log a node has."""
        return self._shown_from.get(name) is not None

    @cached_property
    def _shown_from(self) -> dict[str, int | None]:
        logged = {name: self.logged[name][0][0] for name in self.logged}
        told = {name: self.whole_from(name) for name in self.names}
        return {name: logged.get(name) if first is None else first for name, first in told.items()}

    def first_file(self, name: str) -> int | None:
        """The oldest file that a node still has: as it told itself, as its folder shows, else as it reported.

        Of an answer and a list of files the one that begins later counts: files are deleted meanwhile, and none comes back.
        """
        told, listed = self.probed(name, "first"), self.files.get(name)
        begins = [*([told[0]] if told else []), *([min(listed)] if listed else [])]
        if begins:
            return max(begins)
        found: int | None = self.nodes[name]["first_file"] if name in self.nodes else None
        return found

    def whole_from(self, name: str) -> int | None:
        """The oldest file from which on a node has all that follow: who needs an older one does not get to its end by there."""
        first = self.first_file(name)
        return first if first is None else max([first, *(file + 1 for file in self.holes(name))])

    def holes(self, name: str) -> tuple[int, ...]:
        """The log files that lack in the middle of those of a node: nobody who needs one of them gets by there."""
        return self._holes.get(name, ())

    @cached_property
    def _holes(self) -> dict[str, tuple[int, ...]]:
        found = {}
        for name, listed in self.files.items():
            begin, end = (self.logged[name][at][0] if name in self.logged else None for at in (0, 1))
            # Of a file whose records were collected no list tells that it is gone.
            dumped = range(begin, end + 1) if begin is not None and end is not None else range(0)
            lacking = [file for file in range(min(listed), max(listed)) if file not in listed and file not in dumped]
            if lacking and name not in self.part_listed:
                found[name] = tuple(lacking)
        return found

    def tunable(self, name: str, setting: str) -> str | None:
        """What a node says that a tunable is set to now."""
        return self._set(name, TUNABLE, setting)

    def metric(self, name: str, setting: str) -> str | None:
        """What a node counts."""
        return self._set(name, METRIC, setting)

    def line(self, name: str, setting: str) -> str | None:
        """What stands in a node's configuration file; of several such lines the last."""
        return self._set(name, LINE, setting)

    def _set(self, name: str, kind: str, setting: str) -> str | None:
        return next(reversed(self.settings.get(name, {}).get(kind, {}).get(setting, ())), None)


def place_of(key: str | None) -> Lsn | None:
    """The place that an order key begins with; None of none."""
    if not key:
        return None
    file, place, *_ = key.split(":", 2)
    return int(file), int(place)


def tiered_snapshot(case: Case, label: str) -> TieredSnapshot:
    """What one snapshot of a case tells of its nodes."""

    def rows(table: str) -> list[dict[str, Any]]:
        return [row for row in case.arrow(table).to_pylist() if row["snapshot"] == label]

    pulls, answers, held, set_to = (rows(table) for table in ("pulls", "probes", "log_files", "settings"))
    nodes: dict[str, Row] = {}
    for row in sorted(rows("nodes"), key=lambda row: (row["reported_at"] is not None, row["reported_at"], row["file"])):
        nodes[row["server"]] = row
    known = {*nodes, *(row["server"] for row in pulls), *(row["source"] for row in pulls)}
    inputs = [one for one in case.inputs if one.snapshot == label]
    of_files = {one.server for one in inputs}
    listed = known | ({row["server"] for row in (*answers, *held, *set_to)} - of_files)
    full_names = {(one.server, one.file): name for one in inputs if (name := _full_name(one, listed)) != one.server}
    for row in (*answers, *held, *set_to):
        row["server"] = full_names.get((row["server"], row["file"]), row["server"])
    files: dict[str, dict[int, int]] = {}
    for row in held:
        files.setdefault(row["server"], {})[row["number"]] = row["bytes"]
    unread = {one.file for one in inputs if one.rejected}
    part_listed = frozenset(row["server"] for row in held if row["file"] in unread)
    settings: dict[str, dict[str, dict[str, list[str | None]]]] = {}
    for row in set_to:
        of = settings.setdefault(row["server"], {}).setdefault(row["kind"], {})
        of.setdefault(row["name"], []).append(row["value"])
    probes = _merged(answers, known)
    logs: dict[str, list[Input]] = {}
    logged: dict[str, tuple[Lsn, Lsn]] = {}
    down = set()
    for one in inputs:
        name = full_names.get((one.server, one.file), one.server)
        if parts := case.parts("records", one):
            logs.setdefault(name, []).append(one)
            ends = [(tuple(part["first"]), tuple(part["last"])) for part in parts]
            ends += [logged[name]] if name in logged else []
            logged[name] = min(first for first, _ in ends), max(last for _, last in ends)
        if one.file.endswith(".DOWN"):
            down.add(name)
    clocks = sorted(row["at"] for row in rows("clocks"))
    # Without the registry's clock its own newest row tells: no node reported itself in the future. A clock that most rows are
    # ahead of was read some other time.
    reported = [row["reported_at"] for row in nodes.values() if row["reported_at"]]
    of_now = bool(clocks) and sum(at > clocks[-1] for at in reported) * 2 <= len(reported)
    # Where the nodes were asked at the time of that clock, and the rows are far ahead of both, the rows are wrong.
    asked = max((row["at"] for row in probes.values() if row["at"]), default=None)
    of_now |= bool(clocks and reported and asked) and _of_another_time(clocks[-1], asked, max(reported))
    now = clocks[0] if of_now else None
    return TieredSnapshot(
        label,
        # Nodes may have been asked minutes later, by another clock: only where nothing else tells do these times count.
        now or max(reported, default=None) or min((row["at"] for row in probes.values() if row["at"]), default=None),
        nodes,
        tuple(_pulls(row for row in pulls if not row["awaited"])),
        tuple(_pulls(row for row in pulls if row["awaited"])),
        probes,
        files,
        settings,
        logs,
        logged,
        frozenset(down),
        bool(nodes) or any(format_with(one.kind).tells_nodes and not one.rejected for one in inputs if one.kind),
        any(not row["awaited"] for row in pulls)
        or any(format_with(one.kind).tells_links for one in inputs if one.kind),
        any(format_with(one.kind).tells_links and one.rejected for one in inputs if one.kind),
        _said_sources(messages_of(case, label, {REGISTERED, *PULLS_FROM}), full_names, {*known, *probes, *logs}),
        full_names,
        _cut_since(
            messages_of(case, label, {CUT_BACK}),
            nodes,
            {*probes, *logs},
            full_names,
            max([*(clocks if of_now else ()), *(row["at"] for row in probes.values() if row["at"])], default=None),
        ),
        part_listed,
        frozenset(
            one.server.partition("@")[0]
            for one in inputs
            if one.kind and "@" in one.server and format_with(one.kind).tells_nodes
        ),
    )


def messages_of(case: Case, label: str, codes: Iterable[str]) -> list[dict[str, Any]]:
    """What the logs of programs of a snapshot say, of the lines with these codes: of all lines there may be millions."""
    where = (pc.field("snapshot") == label) & pc.field("code").isin(sorted(codes))
    columns = ["file", "server", "at", "code", "link", "position", "numbers", "text"]
    return rows_where(case.parts("messages"), columns, where).to_pylist()


def last_messages(case: Case, label: str) -> list[dict[str, Any]]:
    """The last line with a time of each log of a program, a row for each; of lines of one moment the one that stands last.

    Of logs with millions of lines no more than a batch is held.
    """
    where = (pc.field("snapshot") == label) & pc.field("at").is_valid()
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for part in case.parts("messages"):
        for batch in stream_part(part["path"], ["file", "server", "at", "code", "text"], where):
            ordered = pc.sort_indices(batch["at"])  # stable
            keys = pa.table(
                [batch[name].take(ordered).cast(pa.string()) for name in ("server", "file")], ["server", "file"]
            )
            places = keys.append_column("place", ordered).group_by(["server", "file"], use_threads=False)
            for place in places.aggregate([("place", "last")])["place_last"].to_pylist():
                row = batch.slice(place, 1).to_pylist()[0]
                key = row["server"], row["file"]
                if key not in last or row["at"] >= last[key]["at"]:
                    last[key] = row | {"code": row["code"] or "", "text": row["text"] or ""}
    return [*last.values()]


def _of_another_time(clock: datetime, asked: datetime | None, newest: datetime) -> bool:
    """Whether two clocks agree that the newest row is of a time to come."""
    return asked is not None and abs(asked - clock) <= _READ_WITHIN and newest > max(asked, clock) + _READ_WITHIN


def _said_sources(
    messages: Iterable[Row], full_names: Mapping[tuple[str, str], str], names: Iterable[str]
) -> dict[str, str]:
    """Node -> the database that it follows, by the logs of programs.

    The log of the registry names the source itself; that of a node the one that it pulled from last, which may follow another
    one: it is the source if all other databases say that they pull.
    """
    registered: dict[str, str] = {}
    pulls: dict[str, tuple[datetime, str]] = {}
    for row in messages:
        name, told = full_names.get((row["server"], row["file"]), row["server"]), dict(row["numbers"] or ())
        if row["code"] == REGISTERED and told.get("source_database"):
            registered[told["node"]] = told["source_database"]
        if row["code"] in PULLS_FROM and row["link"] and row["at"] is not None:
            pulls[name] = max(pulls.get(name, (row["at"], row["link"])), (row["at"], row["link"]))
    said = {name: source.partition("@")[0] for name, (_, source) in pulls.items()}
    databases = {name.partition("@")[0] for name in (*names, *said)} | set(said.values())
    top = databases - {name.partition("@")[0] for name in said}
    source = next(iter(top)) if len(top) == 1 and top <= set(said.values()) else None
    return {**(dict.fromkeys(said, source) if source else {}), **registered}


def _cut_since(
    messages: Iterable[Row],
    nodes: Mapping[str, Row],
    told: Collection[str],
    full_names: Mapping[tuple[str, str], str],
    read_at: datetime | None,
) -> dict[str, Lsn]:
    """The nodes whose log says that they cut it back behind the place of their last report, and after that; `told` have told
    since, or by their own log, how far they are.

    A line from well after `read_at`, when registry and nodes were asked, has the time of another clock: it tells no order.
    """
    newest: dict[str, tuple[datetime, Lsn]] = {}
    for row in messages:
        place = place_of(row["position"]) if row["code"] == CUT_BACK else None
        late = row["at"] is not None and read_at is not None and row["at"] > read_at + _READ_WITHIN
        if place is not None and row["at"] is not None and not late:
            name = full_names.get((row["server"], row["file"]), row["server"])
            newest[name] = max(newest.get(name, (row["at"], place)), (row["at"], place))
    found = {}
    for name, (at, place) in newest.items():
        node = nodes.get(name)
        if name in told or node is None or node["reported_at"] is None or at <= node["reported_at"]:
            continue
        if place < (place_of(node["position"]) or place):
            found[name] = place
    return found


def _full_name(one: Input, known: Iterable[str]) -> str:
    """The node that a file is of: its name tells where the database ends, not where a host of several dotted parts does.

    Of the known nodes that it may begin with, the longest: beside `r1` there may be an `r1.dc2`.
    """
    longer = [name for name in known if name.startswith(f"{one.server}.")]
    file = one.file.rpartition("/")[2]
    here = [name for name in longer if file.startswith(name.replace("@", ".", 1) + ".")]
    if here:
        return max(here, key=len)
    return one.server if one.server in known or len(longer) != 1 else longer[0]


def _pulls(rows: Iterable[Row]) -> Iterator[Pull]:
    for pull in dict.fromkeys((row["server"], row["source"]) for row in rows):
        ends = [name if "@" in name else f"{name}@" for name in pull]
        yield Pull(*(part for name in ends for part in name.split("@", 1)))


def _merged(rows: Iterable[Row], known: Iterable[str]) -> dict[str, Row]:
    """What nodes answered, one row each: the answer of the node itself, with what its cluster says of it.

    What a cluster lists are its hosts alone (`@src1`): such a row is of the one node of that host that is known.
    """
    of_host: dict[str, set[str]] = {}
    rows = list(rows)
    for name in (*known, *(row["server"] for row in rows if not row["server"].startswith("@"))):
        of_host.setdefault(name.partition("@")[2], set()).add(name)
    found: dict[str, dict[str, Any]] = {}
    own = [not row["server"].startswith("@") for row in rows]
    order = sorted(
        zip(own, rows, strict=True), key=lambda one: (one[0], one[1]["at"] is not None, one[1]["at"], one[1]["file"])
    )
    for whole, row in order:
        names = {row["server"]} if whole else of_host.get(row["server"][1:], set())
        for name in names if len(names) == 1 else ():
            mine = found.setdefault(name, {})
            mine |= {key: value for key, value in row.items() if value is not None or key not in mine}
            mine["server"] = name
    return {**found}
