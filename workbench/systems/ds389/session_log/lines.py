"""The send sessions that a supplier tells of in its errors log (replication log level 8192), put together line by line.

Several agreements run in threads of their own and their lines interleave. All lines name their agreement but one: the
line of the first anchor. It belongs to one of the sessions that have printed their control blocks and wait for an anchor;
which one, the next line of that session tells (`CSN ... found`, `Can't locate CSN ...`). Where nothing tells, the line is
kept with every session that it may belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

Row = Mapping[str, Any]

_CODES = (
    "control_block",
    "anchor_initial",
    "anchor_reload",
    "position_found",
    "anchor_not_located",
    "anchor_missing",
    "anchor_purged",
    "alternative_tried",
    "alternative_start",
    "reload_below_start",
    "sending",
    "stripped_to_nothing",
    "change_skipped",
    "nothing_to_send",
    "session_end",
    "acquired",
    "starting",
)
_OF_THE_ANCHOR = ("position_found", "anchor_not_located", "anchor_missing", "anchor_purged", "alternative_tried")
_NEW_LOG = (
    "changelog_recreated",
    "replica_offline",
    "total_receive",
    "import_begin",
    "restore",
    "changelog_task",
    "origin_purged",
    "clean_done",
)
"""Lines after which the changelog may no longer hold what it held before."""

_COLUMNS = ["offset", "at", "code", "function", "link", "origin", "position", "numbers"]
WITH_TEXT = [*_COLUMNS, "text"]
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Place:
    """Where a line stands. `order` sorts the lines of one server, over all of its files."""

    snapshot: str
    file: str
    offset: int
    at: datetime | None
    order: tuple[int, int]


def line_shown(row: Row, place: Place) -> dict[str, Any]:
    """A line of the errors log as evidence; its text is what somebody else wrote, and is data."""
    at = place.at.isoformat() if place.at else None
    return {
        "snapshot": place.snapshot,
        "file": place.file,
        "offset": place.offset,
        "at": at,
        "code": row["code"],
        "link": row["link"],
        "position": row["position"],
        "text": row["text"],
    }


@dataclass(frozen=True)
class Block:
    """A control block: what the session knows of one replica ID when it fills its buffer."""

    stop: str
    consumer: str | None
    previous: str | None


@dataclass(eq=False)
class Load:
    """One filling of the buffer: the blocks before it, where reading began, and the records that the log names.

    read     the last record of the buffer before this one
    located  whether the changelog had the anchor; None: the log does not say
    named    changes handed on to be sent
    own      changes left out because the consumer made them
    whole    all of its control blocks are there
    """

    place: Place
    blocks: dict[str, Block] = field(default_factory=dict)
    printed: int = 0
    read: str | None = None
    anchor: str | None = None
    anchored: Place | None = None
    located: bool | None = None
    alternative: str | None = None
    below_start: bool = False
    named: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    whole: bool = True


@dataclass(eq=False)
class Session:
    """One session as the log tells it.

    counters   of its last line; None: the log does not show its end
    used_up    it said that there is nothing (more) to send
    candidates anchors of lines without a name, of which one may be its own; only where it has no named one
    broken     why it cannot be followed to its end
    """

    server: str
    link: str
    loads: list[Load]
    counters: Mapping[str, int] | None = None
    ended: Place | None = None
    used_up: bool = False
    candidates: list[tuple[str, Place]] = field(default_factory=list)
    broken: str | None = None

    @property
    def began(self) -> Place:
        """Its first control block."""
        return self.loads[0].place

    @property
    def filled(self) -> list[Load]:
        """The loads that filled the buffer: with an anchor that was there, or with another start instead of it."""
        return [
            load
            for load in self.loads
            if load.anchor and not load.below_start and (load.located is not False or load.alternative)
        ]


@dataclass(eq=False)
class _Nameless:
    """The line of a first anchor, and the sessions that it may belong to. `shared`: one of them ended undecided."""

    anchor: str
    place: Place
    sessions: list[Session]
    shared: bool = False


CUT = "the log does not show the end of the session"
HOLES = "lines of the session are missing in the log"


class _Sessions:
    """Puts the lines of one server together. `line` gives the sessions that end with it, `close` those that never do."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._open: dict[str, Session] = {}
        self._nameless: list[_Nameless] = []

    def line(self, row: Row, place: Place) -> Iterator[Session]:
        code, link = row["code"], row["link"]
        if code == "starting":
            yield from self.close()
        elif code == "anchor_initial" and link is None:
            waiting = [one for one in self._open.values() if len(one.loads) == 1 and not one.loads[0].anchor]
            if waiting:
                self._nameless.append(_Nameless(row["position"], place, waiting))
        elif code == "control_block" and "initial" in (row["function"] or ""):
            numbers = dict(row["numbers"])
            if numbers.get("block") == "0":
                yield from self._end(link, broken=CUT)
                self._open[link] = Session(self._server, link, [Load(place)])
            self._block(link, row, numbers)
        elif code == "acquired":
            yield from self._end(link, broken=CUT)
        elif session := self._open.get(link):
            self._of_session(session, row, place)
            if code == "session_end":
                session.counters = {name: int(value) for name, value in row["numbers"]}
                session.ended = place
                yield from self._end(link)

    def close(self) -> Iterator[Session]:
        """The sessions that are open: the log ends, or the server stopped."""
        for link in list(self._open):
            yield from self._end(link, broken=CUT)

    def _of_session(self, session: Session, row: Row, place: Place) -> None:
        code, load = row["code"], session.loads[-1]
        if code == "control_block":
            numbers = dict(row["numbers"])
            if numbers.get("block") == "0":
                session.loads.append(Load(place, read=numbers.get("buffer")))
            self._block(session.link, row, numbers)
        elif code in ("sending", "stripped_to_nothing"):
            load.named.append(row["position"])
        elif code == "change_skipped":
            if "is ignored" in dict(row["numbers"]).get("reason", ""):
                load.own.append(row["position"])
        elif code in _OF_THE_ANCHOR:
            self._of_anchor(session, load, row, place)
        elif code in ("anchor_reload", "anchor_initial"):
            load.anchor, load.anchored = row["position"], place
        elif code == "alternative_start":
            load.alternative = row["position"]
        elif code == "reload_below_start":
            if len(session.loads) == 1:
                session.broken = HOLES
            load.below_start = len(session.loads) > 1
        elif code == "nothing_to_send":
            session.used_up = True

    def _of_anchor(self, session: Session, load: Load, row: Row, place: Place) -> None:
        if load.anchor is None and len(session.loads) == 1:
            self._named(session, row["position"], place)
        if load.anchor == row["position"]:
            load.located = row["code"] == "position_found"
        elif load.alternative != row["position"]:
            session.broken = HOLES  # it speaks of a reload whose control blocks are not there

    def _block(self, link: str, row: Row, numbers: Mapping[str, str]) -> None:
        session = self._open.get(link)
        if session is None:
            return  # the log begins inside a session
        load = session.loads[-1]
        if numbers.get("block") != str(load.printed):
            load.whole, session.broken = False, HOLES
        load.printed += 1
        if row["position"]:
            load.blocks[row["origin"]] = Block(row["position"], numbers.get("consumer"), numbers.get("previous"))

    def _named(self, session: Session, anchor: str, place: Place) -> None:
        """A line with a name tells the first anchor of the session: its line without a name is found, if it is there."""
        mine = next((one for one in self._nameless if session in one.sessions and one.anchor == anchor), None)
        session.loads[0].anchor, session.loads[0].anchored = anchor, mine.place if mine else place
        if mine:
            self._nameless.remove(mine)
        self._no_more(session)

    def _no_more(self, session: Session) -> None:
        for one in self._nameless:
            one.sessions = [other for other in one.sessions if other is not session]
        self._nameless = [one for one in self._nameless if one.sessions]

    def _end(self, link: str, broken: str | None = None) -> Iterator[Session]:
        session = self._open.pop(link, None)
        if session is None:
            return
        session.broken = session.broken or broken
        first = session.loads[0]
        if first.anchor is None:
            mine = [one for one in self._nameless if session in one.sessions]
            alone = [one for one in mine if one.sessions == [session] and not one.shared]
            if len(alone) == 1:
                first.anchor, first.anchored = alone[0].anchor, alone[0].place
            else:
                session.candidates = [(one.anchor, one.place) for one in mine]
                # One that read nothing had no anchor, as a rule: that leaves the line to the others.
                for one in mine:
                    one.shared = one.shared or not session.counters or session.counters.get("load") != 0
        self._no_more(session)
        yield session


@dataclass(frozen=True)
class SessionLog:
    """The errors logs of one server in the order of time, over all snapshots of the case.

    A log that has grown is collected again with every snapshot: what an earlier file has told is passed over.
    """

    server: str
    files: Sequence[tuple[str, str, Sequence[str]]]
    """(snapshot, file, paths of its parts) in the order of time."""

    def sessions(self) -> Iterator[Session]:
        """The sessions, each when its last line was read."""
        open_ones = _Sessions(self.server)
        for row, place in self.lines(_CODES):
            yield from open_ones.line(row, place)
        yield from open_ones.close()

    def renewals(self) -> list[Place]:
        """The lines after which the changelog may no longer hold what it held."""
        return [place for row, place in self.lines(_NEW_LOG) if _renews(row)]

    def lines(self, codes: Sequence[str], columns: Sequence[str] = _COLUMNS) -> Iterator[tuple[Row, Place]]:
        """The lines with these codes, in the order of time, each once.

        A file that begins with the line with which an earlier one of its name did has grown: the place tells what is new, also
        where the clock was set back. Of any other the time tells.
        """
        told: datetime | None = None
        grown: dict[str, tuple[tuple[int, datetime | None], int]] = {}
        """File -> the place and the time of its first line, and the place of its last one, in the snapshot before."""
        for number, (snapshot, file, paths) in enumerate(self.files):
            already, begins = told, True
            overlaps = same = False
            before, first, last = grown.get(file), None, -1
            for row in _stream(paths, codes, columns):
                at = row["at"]
                if first is None:
                    first = row["offset"], at
                    same = before is not None and before[0] == first
                last = max(last, row["offset"])
                grown[file] = first, last
                if same and before:
                    if row["offset"] <= before[1]:
                        continue
                elif begins and at is not None:
                    overlaps, begins = already is not None and at <= already, False
                if overlaps and at is not None and already is not None and at <= already:
                    continue
                told = at if told is None or (at is not None and at > told) else told
                yield row, Place(snapshot, file, row["offset"], at, (number, row["offset"]))


def last_start(logs: Iterable[SessionLog], server: str | None) -> datetime | None:
    """When a server last started, by its own log."""
    starts = (
        place.at for log in logs if log.server == server for _, place in log.lines(("started",), WITH_TEXT) if place.at
    )
    return max(starts, default=None)


def _renews(row: Row) -> bool:
    return row["code"] != "changelog_task" or dict(row["numbers"]).get("task") == "import"


def _stream(paths: Iterable[str], codes: Sequence[str], columns: Sequence[str]) -> Iterator[Row]:
    """The rows of these codes, part by part and batch by batch: logs are gigabytes."""
    wanted = pc.field("code").isin(list(codes))
    for path in paths:
        part = ds.dataset(path, format="parquet", partitioning=None)
        for batch in part.to_batches(
            columns=[*columns], filter=wanted, batch_size=_ROWS_AT_ONCE, batch_readahead=1, use_threads=False
        ):
            yield from batch.to_pylist()


def session_logs(case: Any) -> list[SessionLog]:
    """The errors logs of the case, by server."""
    order = {label: number for number, label in enumerate(case.snapshots)}
    files: dict[str, list[tuple[Any, ...]]] = {}
    for one in case.inputs:
        paths = [part["path"] for part in case.parts("messages", one)]
        if one.kind.partition(":")[0] == "ds389.errors-log" and paths:
            begins = one.facts.get("time", {}).get("min", "")
            in_order = sorted(paths, key=_first_offset) if len(paths) > 1 else paths
            files.setdefault(one.server, []).append((order[one.snapshot], begins, one.file, one.snapshot, in_order))
    in_time = itemgetter(0, 1, 2)
    return [
        SessionLog(server, [(snapshot, file, paths) for _, _, file, snapshot, paths in sorted(mine, key=in_time)])
        for server, mine in sorted(files.items())
    ]


def _first_offset(path: str) -> int:
    rows = ds.dataset(path, format="parquet", partitioning=None).head(1, columns=["offset"])
    return int(rows["offset"][0].as_py()) if len(rows) else 0
