"""Histories of made-up fleets, played change by change: servers with data, vectors and changelogs, and planted faults.

What a server really has is known of every change, as well as what the files collected of it show. `Shown` is that: the
files are written from it, and the slow verdicts read it, so that both speak of the same evidence.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

TICK = 400
"""Seconds from one round to the next: longer than all that happens in one, and than clocks may differ by."""

READ_ONLY = 65535

TOTAL, REPLACED, LOG_REPLACED = "total", "replaced", "log_replaced"


def origin_of(csn: str) -> str:
    """The replica ID in decimal."""
    return str(int(csn[12:16], 16))


def time_of(csn: str) -> int:
    """The second in which the change was made."""
    return int(csn[:8], 16)


@dataclass(frozen=True)
class Change:
    """One modification: which entry gets which value. Two changes of one entry and value are twins."""

    csn: str
    entry: int
    value: str


@dataclass(frozen=True)
class Line:
    """A result in the access log. `csn` None: a change that was acknowledged and not applied."""

    at: int
    csn: str | None
    code: int
    entry: int
    replicated: bool


@dataclass(frozen=True)
class Note:
    """A line of the errors log; `about` is the change that it names, `kind` what it says."""

    at: int
    kind: str
    about: str = ""
    to: str = ""


@dataclass
class Data:
    """What a backup of a server holds."""

    has: set[str] = field(default_factory=set)
    same: set[str] = field(default_factory=set)
    vector: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    purged: dict[str, str] = field(default_factory=dict)
    floor: dict[str, str] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)


@dataclass
class Server:
    """A server as it is.

    logs_results  False: its access log is not collected
    tells_all     its errors log is collected in any case: nothing else tells what happened
    data  `has`: the changes that it really has; `same`: those that were cancelled there, because a twin had made them, or
          that it lacks because the server which it was initialised from lacked them
    """

    name: str
    rid: int
    data: Data = field(default_factory=Data)
    lines: list[Line] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    resets: list[tuple[str, int, int]] = field(default_factory=list)
    inits: dict[str, tuple[int, int]] = field(default_factory=dict)
    tells_all: bool = False
    logs_results: bool = True

    @property
    def origin(self) -> str:
        """The origin of what is written here."""
        return str(self.rid)

    @property
    def keeps_log(self) -> bool:
        """A read-only consumer keeps none."""
        return self.rid != READ_ONLY


@dataclass
class Shown:
    """What was collected of one server.

    vector    origin -> last position
    log       the records that can be read; None: no changelog
    holes     between which positions a record cannot be read
    claims    origin -> last position by the header of the changelog; empty without a header
    lines     of the access log; None: not collected
    notes     of the errors log; None: not collected
    states    (entry, change) of an export of the entries, and `exported` the vector in it; None: not collected
    earlier   logs collected earlier
    resets    (kind, began, ended) of what the errors log says of data and logs that were replaced
    inits     consumer -> when the last total initialisation over the link to it began and ended
    """

    name: str
    rid: int
    vector: dict[str, str] = field(default_factory=dict)
    log: list[str] | None = None
    damaged: tuple[str, ...] = ()
    cut: bool = False
    claims: dict[str, str] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    purged: dict[str, str] = field(default_factory=dict)
    lines: list[Line] | None = None
    notes: list[Note] | None = None
    states: dict[int, str] | None = None
    exported: dict[str, str] = field(default_factory=dict)
    earlier: list[list[str]] = field(default_factory=list)
    resets: list[tuple[str, int, int]] = field(default_factory=list)
    inits: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def origin(self) -> str | None:
        """The origin of what is written here; None for a read-only consumer."""
        return None if self.rid == READ_ONLY else str(self.rid)


@dataclass
class Fleet:
    """A fleet after its history: the servers as they are, and what was collected of them."""

    number: int
    servers: list[Server]
    changes: dict[str, Change]
    shown: dict[str, Shown] = field(default_factory=dict)
    earlier: dict[str, Shown] = field(default_factory=dict)
    planted: list[str] = field(default_factory=list)
    had: dict[str, set[str]] = field(default_factory=dict)
    """What each server had when its log was collected."""
    begin: int = 0
    suffix: str = "dc=fleet"
    """What the servers replicate."""
    backend: str = "userroot"
    tells_backend: bool = False
    """What was collected says which backend holds the suffix."""
    links: str = "to-"
    """How the names of its agreements begin; that of the consumer follows."""


class History:
    """Plays one history. Everything follows from the random numbers.

    `beside`: what the same servers replicate besides, in a suffix of its own. Their origins bear the same names in both, and
    wherever the clock allows, a change gets the position that one of that suffix has.
    """

    def __init__(self, number: int, size: int, random: Random, rounds: int = 12, beside: Fleet | None = None) -> None:
        self.random, self.rounds = random, rounds
        self.begin = random.choice([0x66000000, 0x66000000, 0x80000000, 0xE0000000])
        rids = random.sample([*range(1, size + 3), 255, 256, 4711, 65534], size)
        readers = random.choice([0, 0, 1]) if size < 8 else random.choice([0, 1, 2])
        rids[size - readers :] = [READ_ONLY] * readers
        self.taken: list[str] = []
        if beside is not None:
            rids, self.taken = [one.rid for one in beside.servers], sorted(beside.changes)
            self.begin = beside.begin
        self.servers = [Server(f"s{at}", rid) for at, rid in enumerate(rids)]
        self.writers = [one for one in self.servers if one.keeps_log]
        self.fleet = Fleet(number, self.servers, {}, begin=self.begin)
        self.now = self.begin
        self.backups: dict[str, list[Data]] = {one.name: [] for one in self.servers}
        self.copies: dict[str, list[tuple[list[str], dict[str, str]]]] = {one.name: [] for one in self.servers}
        self.fresh = {one.name for one in self.servers if not one.keeps_log or random.random() < 0.1}
        self.fresh -= {self.writers[0].name}
        self.refused: set[tuple[str, str]] = set()
        for one in self.servers:
            one.logs_results = random.random() < 0.7

    def play(self) -> Fleet:
        """The whole history, and what is collected at its end."""
        random = self.random
        faults = [fault for fault in self._faults() if random.random() < 0.3]
        at = {random.randrange(2, self.rounds - 2): fault for fault in faults}
        half = random.randrange(3, self.rounds - 2) if random.random() < 0.4 else None
        # Servers are read at different times, and so are the files of one.
        when = {
            (one.name, what): self.rounds - 1 - random.choice([0, 0, 0, 1, 2])
            for one in self.servers
            for what in ("vector", "rest")
        }
        for one in self.servers:
            self.fleet.shown[one.name] = Shown(one.name, one.rid)
        for number in range(self.rounds):
            self.now = self.begin + number * TICK
            self._write()
            self._talk()
            if number in at:
                self.now = self.begin + number * TICK + 300
                at[number]()
            if number == half:
                self._collect_earlier()
            for one in self.servers:
                if when[one.name, "vector"] == number:
                    self.fleet.shown[one.name].vector = dict(one.data.vector)
                if when[one.name, "rest"] == number:
                    self._collect(one, self.fleet.shown[one.name])
        for one in self.fleet.shown.values():
            if one.name in self.fleet.earlier:
                one.earlier = [self.fleet.earlier[one.name].log or []]
        return self.fleet

    # --- ordinary life

    def _write(self) -> None:
        for server in self.writers:
            if server.name in self.fresh:
                continue
            for _ in range(self.random.choice([0, 0, 1, 1, 2, 3])):
                self._change(server)

    def _change(self, server: Server, entry: int | None = None, value: str = "") -> Change:
        random = self.random
        self.now += random.randrange(1, 4)
        sequence = random.choice([0, 0, 1, 37, 0xFFFF])
        csn = f"{self.now:08x}{sequence:04x}{server.rid:04x}0000"
        if csn <= server.data.vector.get(server.origin, ""):
            csn = f"{self.now + 1:08x}0000{server.rid:04x}0000"
            self.now += 1
        for taken in self.taken:
            alike = origin_of(taken) == server.origin and taken > server.data.vector.get(server.origin, "")
            if alike and self.now <= time_of(taken) <= self.now + 9:
                csn, self.now = taken, time_of(taken)
                break
        change = Change(csn, random.randrange(12) if entry is None else entry, value or f"by {csn}")
        self.fleet.changes[csn] = change
        self._has(server, change)
        if random.random() < 0.7:  # plug-ins leave no line
            server.lines.append(Line(self.now, csn, 0, change.entry, False))
        if random.random() < 0.05:  # a client's request that failed was never a change
            refused = f"{self.now:08x}fffe{server.rid:04x}0000"
            server.lines.append(Line(self.now, refused, 20, change.entry, False))
        return change

    def _has(self, server: Server, change: Change) -> None:
        data, origin = server.data, origin_of(change.csn)
        data.has.add(change.csn)
        if server.keeps_log:
            data.log = sorted({*data.log, change.csn})
        data.vector[origin] = max(change.csn, data.vector.get(origin, ""))
        data.states[change.entry] = max(change.csn, data.states.get(change.entry, ""))

    def _talk(self) -> None:
        pairs = [(one, other) for one in self.writers for other in self.servers if one is not other]
        chosen = self.random.sample(
            pairs, min(len(pairs), self.random.randrange(len(self.servers), 3 * len(self.servers)))
        )
        for supplier, consumer in chosen:
            if not self.fresh & {supplier.name, consumer.name}:
                self.now += 1
                limit = self.random.choice([2, 6, 1000, 1000])
                self._session(supplier, consumer, limit)
            elif consumer.name in self.fresh and supplier.name not in self.fresh:
                self.now += 1
                self.initialise(consumer, supplier)
                self.fresh.discard(consumer.name)

    def _session(self, supplier: Server, consumer: Server, limit: int) -> None:
        mine, theirs = supplier.data, consumer.data
        for origin, top in mine.vector.items():
            stands = theirs.vector.get(origin, "")
            if stands < top and stands < mine.floor.get(origin, ""):
                return  # its log does not go back to there
        for csn in [csn for csn in mine.log if theirs.vector.get(origin_of(csn), "") < csn][:limit]:
            origin = origin_of(csn)
            if not theirs.vector.get(origin, "") < csn <= mine.vector.get(origin, ""):
                continue
            if not self._send(supplier, consumer, self.fleet.changes[csn]):
                return

    def _send(self, supplier: Server, consumer: Server, change: Change) -> bool:
        """One change over the wire; False: the session ends."""
        random, data, csn = self.random, consumer.data, change.csn
        luck = random.random()
        if luck < 0.02 or (consumer.name, csn) in self.refused:
            self.refused.add((consumer.name, csn))  # by whichever way it comes
            code = random.choice([32, 16, 65])
            consumer.lines.append(Line(self.now, csn, code, change.entry, True))
            if consumer.logs_results and random.random() < 0.5:  # the one line without the other tells of a twin
                consumer.notes.append(Note(self.now, "cancelled", csn))
            supplier.notes.append(Note(self.now, "skipped", csn, consumer.name))
            self.fleet.planted.append(f"refused {csn} {consumer.name}")
            return True
        if luck < 0.03:
            consumer.lines.append(Line(self.now, csn, 51, change.entry, True))
            return False
        if luck < 0.04:
            consumer.lines.append(Line(self.now, None, 0, change.entry, True))
            consumer.notes.append(Note(self.now, "dropped", csn))
            consumer.tells_all = True
            data.vector[origin_of(csn)] = csn
            self.fleet.planted.append(f"dropped {csn} {consumer.name}")
            return True
        last = self.fleet.changes.get(data.states.get(change.entry, ""))
        if last is not None and last.value == change.value and last.csn in data.has:
            data.same.add(csn)
            if random.random() < 0.5:
                consumer.notes.append(Note(self.now, "cancelled", csn))
            return True
        self._has(consumer, change)
        consumer.lines.append(Line(self.now, csn, 0, change.entry, True))
        return True

    # --- faults

    def _faults(self) -> list:
        def server() -> Server:
            return self.random.choice([one for one in self.writers if one.name not in self.fresh])

        def other(than: Server) -> Server:
            known = [one for one in self.writers if one is not than and one.name not in self.fresh]
            return self.random.choice(known or [self.writers[0]])

        def edited() -> None:
            one = server()
            self.edit_vector(one, other(one))

        def replaced() -> None:
            one = server()
            if (source := other(one)) is not one:
                self.import_entries(one, source)

        def initialised() -> None:
            one = self.random.choice([one for one in self.servers if one.name not in self.fresh])
            if (source := other(one)) is not one:
                self.initialise(one, source)

        return [
            edited,
            edited,
            replaced,
            initialised,
            initialised,
            lambda: self.restore(server()),
            lambda: self.restore(server()),
            lambda: self.trim(server()),
            lambda: self.trim(server()),
            lambda: [self.trim(one, 1.0) for one in self.writers],
            lambda: self.import_log(server()),
            lambda: self.twins(server(), server()),
            lambda: self.twins(server(), server()),
        ]

    def _anew(self, server: Server) -> None:
        """The changelog is recreated: dummy records at the positions of the vector."""
        data = server.data
        data.log, data.purged = [], {}
        data.marks = dict(data.vector) if server.keeps_log else {}
        data.floor = dict(data.vector)

    def edit_vector(self, server: Server, other: Server) -> None:
        """The vector is made to claim what another server has, and imported with the server's own entries."""
        for origin, top in other.data.vector.items():
            if self.random.random() < 0.7:
                server.data.vector[origin] = max(top, server.data.vector.get(origin, ""))
        self._imported(server, "edited")

    def import_entries(self, server: Server, other: Server) -> None:
        """The entries and the vector of another server, by way of a file: its access log would not name what came so."""
        server.tells_all, server.logs_results = True, False
        server.data = deepcopy(other.data)
        self._imported(server, f"import of {other.name}")

    def _imported(self, server: Server, what: str) -> None:
        server.notes += [Note(self.now, "import_begin"), Note(self.now + 5, "import_end")]
        server.resets.append((REPLACED, self.now, self.now + 5))
        self._anew(server)
        self.fleet.planted.append(f"{what} {server.name}")

    def initialise(self, server: Server, other: Server) -> None:
        """A total initialisation; the first one leaves no dummy records."""
        first = not server.data.vector
        server.tells_all = True
        server.data = deepcopy(other.data)
        # What the supplier lacks behind its vector, this server lacks as well: nothing here tells of it.
        covered = {csn for csn in self.fleet.changes if csn <= other.data.vector.get(origin_of(csn), "")}
        server.data.same |= covered - other.data.has
        self._anew(server)
        if first:
            server.data.marks = {}
        server.notes += [Note(self.now, "total_receive"), Note(self.now + 5, "import_end")]
        server.resets.append((TOTAL, self.now, self.now + 5))
        if self.random.random() < 0.7:
            other.inits[server.name] = self.now, self.now + 5
        self.fleet.planted.append(f"{'first ' if first else ''}init {server.name} from {other.name}")

    def restore(self, server: Server) -> None:
        """Back to a backup; at the first time one is made."""
        kept = self.backups[server.name]
        if not kept:
            kept.append(deepcopy(server.data))
            return
        server.tells_all = True
        server.data = deepcopy(kept[-1])
        server.notes += [Note(self.now, "restore_begin"), Note(self.now + 5, "restore_end")]
        server.resets.append((REPLACED, self.now, self.now + 5))
        if self.random.random() < 0.3:
            self._anew(server)
        self.fleet.planted.append(f"restored {server.name}")

    def trim(self, server: Server, share: float = 0.5) -> None:
        """The log loses its beginning; of each origin the last record stays."""
        data = server.data
        cut = data.log[: int(len(data.log) * share)]
        last = {origin_of(csn): csn for csn in data.log}
        gone = [csn for csn in cut if csn != last[origin_of(csn)]]
        data.log = [csn for csn in data.log if csn not in gone]
        for csn in gone:
            data.purged[origin_of(csn)] = data.floor[origin_of(csn)] = csn
            data.floor[origin_of(csn)] = max(csn, data.marks.get(origin_of(csn), ""))
        if gone:
            data.marks = {origin: mark for origin, mark in data.marks.items() if mark > gone[-1]}
        self.fleet.planted.append(f"trimmed {server.name}")

    def import_log(self, server: Server) -> None:
        """An older copy of the changelog comes back; the data stay."""
        kept = self.copies[server.name]
        if not kept:
            kept.append((list(server.data.log), dict(server.data.marks)))
            return
        server.tells_all = True
        server.data.log, server.data.marks = list(kept[-1][0]), dict(kept[-1][1])
        server.data.floor = dict(server.data.vector)
        server.notes += [Note(self.now, "log_import_begin"), Note(self.now + 5, "log_import_end")]
        server.resets.append((LOG_REPLACED, self.now, self.now + 5))
        self.fleet.planted.append(f"older log {server.name}")

    def twins(self, one: Server, other: Server) -> None:
        """Plug-ins of two servers make the same change."""
        if one is not other:
            entry, value = self.random.randrange(12), f"twin at {self.now}"
            self._change(one, entry, value)
            self._change(other, entry, value)
            self.fleet.planted.append("twins")

    # --- collecting

    def _collect(self, server: Server, shown: Shown) -> None:
        random, data = self.random, server.data
        self.fleet.had[server.name] = set(data.has)
        shown.lines = list(server.lines) if server.logs_results else None
        cancelled = {note.about for note in server.notes if note.kind == "cancelled"}
        if shown.lines and random.random() < 0.4:
            begin = random.randrange(len(shown.lines))
            # Only the beginning in which nothing was both cancelled and refused goes.
            begin = next((at for at, line in enumerate(shown.lines[:begin]) if line.csn in cancelled), begin)
            shown.lines = shown.lines[begin:]
        if server.tells_all or random.random() < 0.5:
            shown.notes, shown.resets = list(server.notes), list(server.resets)
        shown.inits = dict(server.inits)
        if random.random() < 0.3:
            shown.states, shown.exported = dict(data.states), dict(data.vector)
        if not server.keeps_log:
            return
        shown.log, shown.marks = list(data.log), dict(data.marks)
        if random.random() < 0.7:
            shown.purged = dict(data.purged)
            for csn in [*data.marks.values(), *data.purged.values(), *data.log]:
                shown.claims[origin_of(csn)] = max(csn, shown.claims.get(origin_of(csn), ""))
        if len(shown.log) > 3 and random.random() < 0.1:
            shown.cut = True
            shown.log = shown.log[: -random.randrange(1, 3)]
        elif len(shown.log) > 3 and random.random() < 0.1:
            shown.damaged = tuple(sorted(random.sample(shown.log, random.randrange(1, 3))))
            shown.log = [csn for csn in shown.log if csn not in shown.damaged]

    def _collect_earlier(self) -> None:
        for server in self.writers:
            if server.name not in self.fresh and self.random.random() < 0.7:
                found = Shown(server.name, server.rid, dict(server.data.vector), list(server.data.log))
                found.marks = dict(server.data.marks)
                self.fleet.earlier[server.name] = found
