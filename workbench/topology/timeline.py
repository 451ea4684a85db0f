"""What a case tells of the past, by server and suffix: dated evidence, stamped vectors, and when data was replaced.

A vector is read at a moment that no file names. Certain are only its own stamps (when the last position of an origin moved):
from such a stamp on the server had the position, before it the server did not, and it was read after the newest of them.
A vector without stamps counts for about the end of its snapshot, and is called so.

Times are those of the server whose evidence it is: clocks of several servers are compared as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.engine.observation_queries import TABLES, OwnLog, Part, Sighting, dated, whole
from workbench.engine.parquet_read import read_part
from workbench.model import Problem
from workbench.rules.send_session import Bound
from workbench.safety import printable
from workbench.systems import format_with
from workbench.topology.topology import VECTOR, Link, Topology, topology

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.engine.logs import StoredLog
    from workbench.intake.inputs import Input

SNAPSHOT = "snapshot"
"""Evidence of a vector without stamps: true at about the end of its snapshot."""
OWN_TIME = "position_time"
"""Evidence of a change that a server made: the time in its position."""

EVER, NEVER = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
_ONE_REPLACEMENT = timedelta(seconds=30)
"""Messages about replaced data that lie no farther apart speak of one replacement."""

Key = tuple[str, str | None]
Times = tuple[datetime, datetime]


@dataclass(frozen=True)
class Claim:
    """What a vector says of one origin.

    moved       when it came to that position; None without a stamp
    read_after  the newest stamp of the vector: it was read after that
    own         False for the vector of a log: a log may have been written out before its server's vector moved
    """

    origin: str
    position: str
    snapshot: str
    file: str
    offset: int
    moved: datetime | None
    read_after: datetime | None
    own: bool

    def seen(self, at: datetime | None, evidence: str = VECTOR, included: bool = True) -> Sighting:
        """The claim as an observation at that time."""
        return Sighting(self.position, at, evidence, self.snapshot, self.file, self.offset, included)


class Timeline:
    """The past of all servers of a case. Nothing is read before it is asked for."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.shown: list[Topology] = [topology(case, label) for label in case.snapshots] or [topology(case)]
        self.system = self.shown[-1].system
        self._logs: dict[str, StoredLog] = {}
        self._messages: dict[str, list[tuple[datetime, str | None]]] = {}
        self._replaced: dict[Key, list[Times]] = {}
        self._parts: dict[Key, list[Part]] = {}
        self._rows: dict[str, int] = {}
        self.told: Callable[[int], None] | None = None
        """Told of rows as they are read; may raise, to end the reading."""

    # --- who there is

    @cached_property
    def replicas(self) -> dict[Key, str | None]:
        """Every server and suffix of any snapshot -> the origin of the changes made there; the last snapshot counts."""
        found: dict[Key, str | None] = {}
        for shown in self.shown:
            for replica in shown.replicas:
                key = replica.server, replica.suffix
                found[key] = replica.origin or found.get(key)
        return found

    @cached_property
    def links(self) -> list[Link]:
        """Every link of any snapshot, as the last one that knows it has it."""
        found = {(link.supplier, link.suffix, link.name): link for shown in self.shown for link in shown.links}
        return [found[key] for key in sorted(found, key=lambda key: (key[1] or "", key[0], key[2]))]

    def chosen(self, server: str | None = None, suffix: str | None = None) -> list[Key]:
        """The servers and suffixes that are meant; Problem if there are none such."""
        spelled = suffix and self.system.spelled(suffix)
        found = [key for key in self.replicas if server in (None, key[0]) and (not suffix or spelled == key[1])]
        if not found:
            names = ", ".join(sorted({printable(name) for name, _ in self.replicas}))
            suffixes = ", ".join(sorted({printable(one or "one without a name") for _, one in self.replicas}))
            of = f"server {printable(server)}" if server else "replica"
            at = f" of {printable(suffix)}" if suffix else ""
            raise Problem(f"there is no {of}{at}", self.case.name, f"servers: {names}; suffixes: {suffixes}")
        return sorted(found, key=lambda key: (key[1] or "", key[0]))

    def check_origin(self, origin: str | None) -> None:
        """Problem unless something in the case speaks of the origin."""
        if origin is not None and origin not in self.origins:
            known = ", ".join(map(printable, sorted(self.origins, key=lambda one: (len(one), one))))
            raise Problem(f"there is no origin {printable(origin)}", self.case.name, f"origins: {known or 'none'}")

    @cached_property
    def origins(self) -> set[str]:
        """Every origin that a vector or a log names, or whose server was collected."""
        found = {origin for origin in self.replicas.values() if origin}
        found |= {claim.origin for claims in self._claims.values() for claim in claims}
        for one in self.case.inputs:
            found |= one.facts.get("by_origin", {}).keys()
        return found

    # --- evidence

    def parts(self, server: str, suffix: str | None) -> list[Part]:
        """The parts with dated rows of this server; those of other servers and suffixes are never opened."""
        if (server, suffix) not in self._parts:
            self._parts[server, suffix] = list(dated(self._all_parts(server, suffix)))
        return self._parts[server, suffix]

    def _all_parts(self, server: str, suffix: str | None) -> list[Part]:
        alone = sum(name == server for name, _ in self.replicas) == 1
        found = []
        for one in self.case.inputs:
            if one.kind and one.server == server and one.may_tell_of(suffix):
                word = format_with(one.kind).evidence
                # A result without a suffix in a file of one is of a tree that nobody collected.
                mine = suffix if alone and one.suffix is None else None
                between = self._covered.get((one.snapshot, one.file))
                for table in TABLES:
                    where = word or table, one.snapshot, one.file, server, mine, between
                    parts = self.case.parts(table, one)
                    self._rows |= {part["path"]: part["rows"] for part in parts}
                    found += [Part(table, part["path"], *where) for part in parts]
        return found

    def in_turn(self, parts: Iterable[Part]) -> Iterator[Part]:
        """The parts one after the other; between them `told` hears how many rows were read since the last one."""
        for part in parts:
            yield part
            if self.told:
                self.told(self._rows[part.path])

    def rows(self, keys: Iterable[Key]) -> int:
        """How many dated rows the case has of these servers."""
        return sum(self._rows[part.path] for key in keys for part in self.parts(*key))

    def own_logs(self, server: str, suffix: str | None) -> Iterator[tuple[OwnLog, Input]]:
        """The server's logs asked for its own changes, with the files; none where positions carry no time."""
        origin = self.replicas.get((server, suffix))
        for one in self.case.inputs:
            if origin and one.kind and one.server == server and one.suffix == suffix and format_with(one.kind).is_log:
                parts = self.case.parts("positions", one)
                seen = one.facts.get("by_origin", {}).get(origin)
                if parts and seen and self.system.moment(seen["max"]):
                    yield OwnLog(self.system, origin, parts), one

    def claims(self, server: str, suffix: str | None, origin: str | None = None) -> list[Claim]:
        """What vectors of the server and of its logs say, in the order of the snapshots."""
        return [claim for claim in self._claims.get((server, suffix), []) if origin in (None, claim.origin)]

    @cached_property
    def _claims(self) -> dict[Key, list[Claim]]:
        rows = [
            row
            for row in self.case.arrow("vectors").to_pylist()
            if row["kind"] in ("server", "log_max") and row["origin"] and not row["problem"]
        ]
        newest: dict[tuple[str, str, str, str | None], datetime] = {}
        for row in rows:
            vector = row["snapshot"], row["server"], row["file"], row["suffix"]
            if row["modified_at"]:
                newest[vector] = max(newest.get(vector, NEVER), row["modified_at"])
        order = {label: number for number, label in enumerate(self.case.snapshots)}
        found: dict[Key, list[Claim]] = {}
        for row in sorted(rows, key=lambda row: (order.get(row["snapshot"], 0), row["file"], row["offset"])):
            if row["max"]:
                vector = row["snapshot"], row["server"], row["file"], row["suffix"]
                where = row["snapshot"], row["file"], row["offset"]
                moved, own = row["modified_at"], row["kind"] == "server"
                claim = Claim(row["origin"], row["max"], *where, moved, newest.get(vector), own)
                found.setdefault((row["server"], row["suffix"]), []).append(claim)
        return found

    def about(self, snapshot: str, server: str) -> datetime | None:
        """About when the server's files of the snapshot were collected: the newest stamp in them, else in any of it."""
        of_any = (at for label, _, at in self._stamps if label == snapshot)
        return self.newest(snapshot, server) or max(of_any, default=None)

    def newest(self, snapshot: str, server: str) -> datetime | None:
        """The newest stamp in the server's own files of the snapshot; None: they tell no time."""
        mine = (at for label, name, at in self._stamps if (label, name) == (snapshot, server))
        return max(mine, default=None)

    @cached_property
    def _stamps(self) -> list[tuple[str, str, datetime]]:
        found = []
        for row in self._coverage:
            found += [(row["snapshot"], row["server"], row["last_at"])]
        for row in self._link_rows:
            times = ("started_at", "ended_at", "init_started_at", "init_ended_at")
            found += [(row["snapshot"], row["server"], row[key]) for key in times]
        for (server, _), claims in self._claims.items():
            found += [(claim.snapshot, server, claim.moved) for claim in claims]
        return [(label, server, at) for label, server, at in found if at]

    @cached_property
    def _link_rows(self) -> list[dict[str, Any]]:
        columns = ["snapshot", "server", "suffix", "name", "started_at", "ended_at", "init_started_at", "init_ended_at"]
        rows: list[dict[str, Any]] = self.case.arrow("links").select(columns).to_pylist()
        return rows

    @cached_property
    def _coverage(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.case.arrow("coverage").to_pylist()
        return rows

    @cached_property
    def _covered(self) -> dict[tuple[str, str], Times]:
        return {
            (row["snapshot"], row["file"]): (row["first_at"], row["last_at"])
            for row in self._coverage
            if row["first_at"] and row["last_at"]
        }

    # --- when data was replaced

    def replaced(self, server: str, suffix: str | None) -> list[Times]:
        """When the server's data became that of another time or server: after the one time and by the other, in order.

        Told by its messages and by the links that initialised it; else seen by vectors that went back.
        """
        key = server, suffix
        if key not in self._replaced:
            told = _joined([*self._said_replaced(server, suffix), *self._initialised(server, suffix)])
            back = [times for times in self._went_back(server, suffix) if not any(_touch(times, one) for one in told)]
            self._replaced[key] = sorted([*told, *back])
        return self._replaced[key]

    def epoch(self, server: str, suffix: str | None, when: datetime) -> tuple[datetime | None, datetime | None] | None:
        """After when and up to when evidence holds for this time; None: the data was being replaced then."""
        after, upto = None, None
        for begin, end in self.replaced(server, suffix):
            if end <= when:
                after = end if after is None else max(after, end)
            elif begin >= when:
                upto = begin if upto is None else min(upto, begin)
            else:
                return None
        return after, upto

    def epochs(self, server: str, suffix: str | None) -> Iterator[tuple[datetime | None, datetime | None]]:
        """The times between the replacements."""
        after: datetime | None = None
        for begin, end in self.replaced(server, suffix):
            yield after, begin
            after = end
        yield after, None

    def _said_replaced(self, server: str, suffix: str | None) -> list[Times]:
        if server not in self._messages:
            found = []
            for one in self.case.inputs if self.system.replaced else ():
                for part in self.case.parts("messages", one) if one.server == server else ():
                    wanted = pc.field("code").isin(sorted(self.system.replaced)) & pc.field("at").is_valid()
                    rows = read_part(part["path"], ["at", "suffix"], wanted)
                    found += [(row["at"], row["suffix"] or one.suffix) for row in rows.to_pylist()]
            self._messages[server] = found
        return [(at, at) for at, of in self._messages[server] if of in (None, suffix)]

    def _initialised(self, server: str, suffix: str | None) -> list[Times]:
        into = {(link.supplier, link.suffix, link.name) for link in self.links if link.consumer == server}
        found = []
        for row in self._link_rows:
            began, ended = row["init_started_at"], row["init_ended_at"]
            mine = row["suffix"] == suffix and (row["server"], row["suffix"], row["name"]) in into
            if mine and ended:
                found.append((began if began and began <= ended else ended, whole(ended)))
        return found

    def _went_back(self, server: str, suffix: str | None) -> Iterator[Times]:
        labels = list(self.case.snapshots)
        held: dict[str, tuple[str, datetime | None]] = {}
        for label in labels:
            now: dict[str, str] = {}
            read: datetime | None = None
            for claim in self.claims(server, suffix):
                if claim.snapshot == label and claim.own:
                    now[claim.origin] = max(now.get(claim.origin, ""), claim.position)
                    read = max(filter(None, (read, claim.read_after)), default=None)
            back = [held[origin] for origin in now if origin in held and now[origin] < held[origin][0]]
            if back:
                after = max((read_then or NEVER for _, read_then in back), default=NEVER)
                about = self.about(label, server)
                yield after, about if about and about > after else EVER
            held |= {origin: (position, read) for origin, position in now.items()}

    # --- what lies between

    def between(
        self, suffix: str | None, origin: str, low: str | None, high: str, server: str | None = None
    ) -> int | None:
        """How many changes of the origin lie above `low`, up to `high`, by a log that shows the stretch; None without one.

        The log of that server is asked first.
        """
        replicas = [replica for replica in self.shown[-1].replicas if replica.log and replica.suffix == suffix]
        for replica in sorted(replicas, key=lambda replica: replica.server != server):
            assert replica.log
            log = self._logs.setdefault(replica.log.file, self.case.log(replica.log))
            first = log.first_of(origin)
            if first and low and first <= low and log.holds(high):
                return log.tally(origin, Bound(low, False), high).changes
        return None

    def first_above(self, suffix: str | None, origin: str, low: str) -> str | None:
        """The first change of the origin above the position, by a log that reaches down to it."""
        for replica in self.shown[-1].replicas:
            if replica.log and replica.suffix == suffix:
                log = self._logs.setdefault(replica.log.file, self.case.log(replica.log))
                first = log.first_of(origin)
                if first and first <= low:
                    return next(log.changes(origin, Bound(low, False)), None)
        return None


def _touch(one: Times, other: Times) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _joined(times: list[Times]) -> list[Times]:
    """The replacements in order; what follows so soon belongs to the one before."""
    found: list[Times] = []
    for begin, end in sorted(times):
        if found and begin - found[-1][1] <= _ONE_REPLACEMENT:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found
