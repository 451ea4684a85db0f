"""Histories of made-up Kanidm fleets, played day by day: writes, purges, pulls, refreshes, restores, and planted faults.

What each server really holds is known of every entry, and of every change who has it, however little the backups show of that.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kanidm_samples import DAY, DOMAIN, Cid, Entry, as_file, backup

from workbench.systems.kanidm.rules.merging import Live, Tombstone, merge
from workbench.systems.kanidm.rules.ranges import (
    APPLIED,
    SUPPLY,
    Reply,
    preflight,
    ranges_of,
    reply,
    supplied,
    trimmed,
)

AGE = 7 * DAY
ATTRIBUTES = ("mail", "displayname", "legalname", "description")
CLOCK_WINDOW = 600
OTHER_DOMAIN = DOMAIN.replace("e8", "aa")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Change:
    """One change of one attribute, or the end of an entry (attribute None); `life`: which entry of that id."""

    entry: int
    attribute: str | None
    cid: Cid
    at: Cid
    life: int


@dataclass
class Server:
    """One server. `last`: its newest transaction; `reaped`: entries of which even the tombstone is gone here, by life."""

    name: str
    uuid: str
    domain: str = DOMAIN
    ahead: int = 0
    ruv: set[Cid] = field(default_factory=set)
    last: int = 0
    entries: dict[int, Live | Tombstone] = field(default_factory=dict)
    reaped: set[tuple[int, int]] = field(default_factory=set)
    off_until: int = -1

    def begin(self, now: int) -> int:
        """The time of a transaction that begins now."""
        self.last = max(now + self.ahead, self.last + 1)
        return self.last

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Its vector."""
        return ranges_of(self.ruv)

    def claims(self, cid: Cid) -> bool:
        """True if its vector reaches the change."""
        return cid[1] in self.ranges and cid[0] <= self.ranges[cid[1]][1]

    def shows(self, one: Change) -> bool:
        """True if its entries carry this very change."""
        state = self.entries.get(one.entry)
        if isinstance(state, Live):
            return one.attribute is not None and state.changes.get(one.attribute) == one.cid
        return state is not None and one.attribute is None and state.at == one.cid


class History:
    """A fleet that lived for some days. `planted`: what was done to it, in words; `losses`: what was dropped on its way where."""

    def __init__(self, seed: int, servers: int | None = None, days: int = 18, faults: int | None = None) -> None:
        self.random = Random(seed)
        count = servers or self.random.randrange(3, 7)
        self.letters = iter(LETTERS[count:])
        self.servers = [Server(letter.upper(), letter) for letter in LETTERS[:count]]
        self.changes: dict[tuple[int, str | None, Cid], Change] = {}
        self.lives: dict[int, int] = {}
        self.creations: dict[int, dict[Cid, int]] = {}
        self.planted: list[str] = []
        self.losses: list[tuple[str, Change]] = []
        self.backups: dict[str, list[Server]] = {}
        self.now, self.conflicts, self.lossy = 0, 10_000, 0.0
        self.answers: list[Reply] = []
        for number in range(12):
            self._create(self.servers[0], number)
        for one in self.servers[1:]:
            self._refresh(self.servers[0], one)
        events = self._faults(self.random.randrange(0, 5) if faults is None else faults)
        for step in range(days * 8):
            self.now = (step + 1) * 3 * 3600
            self._step()
            if self.random.random() < len(events) / (days * 5) or step == days * 8 - 40:
                for _ in range(min(len(events), self.random.choice([1, 1, 2]))):
                    events.pop()()
        self._read()

    # --- ordinary life

    def _tick(self) -> int:
        self.now += self.random.randrange(1, 5)
        return self.now

    def _on(self, one: Server) -> bool:
        return self.now >= one.off_until

    def _step(self) -> None:
        random = self.random
        for one in self.servers:
            if self._on(one):
                for _ in range(random.choice([0, 0, 0, 1, 2])):
                    self._write(one)
                self._purge(one)
        pairs = [(one, other) for one in self.servers for other in self.servers if one is not other]
        for supplier, consumer in random.sample(pairs, min(len(pairs), random.randrange(2, 10))):
            if self._on(supplier) and self._on(consumer):
                self._tick()
                self._pull(supplier, consumer)

    def _read(self) -> None:
        """Servers are read minutes apart, and go on meanwhile."""
        then = {}
        for one in self.random.sample(self.servers, len(self.servers)):
            then[one.name] = deepcopy(one)
            self.now += self.random.choice([5, 60, 300])
            for _ in range(self.random.choice([0, 1, 3])):
                supplier, consumer = self.random.sample(self.servers, 2)
                if self._on(supplier) and self._on(consumer):
                    self._write(supplier)
                    self._pull(supplier, consumer)
        self.servers = [then[one.name] for one in self.servers]

    def _purge(self, one: Server) -> None:
        at = one.begin(self._tick())
        one.ruv = set(trimmed({*one.ruv, (at, one.uuid)}, at - AGE))
        for entry, state in list(one.entries.items()):
            if isinstance(state, Tombstone) and state.at[0] < at - AGE:
                del one.entries[entry]
                one.reaped.add((entry, self._life(entry, state.at)))

    def _life(self, entry: int, cid: Cid) -> int:
        return self.creations[entry][cid]

    def _note(self, server: Server, entry: int, attribute: str | None, cid: Cid, at: Cid) -> None:
        life = self._life(entry, at)
        self.creations[entry][cid] = life
        self.changes[entry, attribute, cid] = Change(entry, attribute, cid, at, life)
        server.ruv.add(cid)

    def _write(self, one: Server) -> None:
        random = self.random
        at = one.begin(self._tick()), one.uuid
        alive = [entry for entry, state in one.entries.items() if isinstance(state, Live)]
        luck = random.random()
        if luck < 0.12 or not alive:
            self._create(one, random.choice([len(self.lives), random.randrange(20)]), at)
            return
        entry = random.choice(alive)
        state = one.entries[entry]
        assert isinstance(state, Live)
        if luck < 0.2:
            one.entries[entry] = Tombstone(at)
            self._note(one, entry, None, at, state.at)
            return
        changes = dict(state.changes)
        for name in random.sample(ATTRIBUTES, random.choice([1, 1, 2])):
            changes[name] = at
            self._note(one, entry, name, at, state.at)
        one.entries[entry] = Live(state.at, changes)

    def _create(self, one: Server, entry: int, at: Cid | None = None) -> None:
        if entry in one.entries:
            return
        at = at or (one.begin(self._tick()), one.uuid)
        if (entry, self.lives.get(entry, -1)) in one.reaped or entry not in self.lives:
            self.lives[entry] = self.lives.get(entry, -1) + 1
        self.creations.setdefault(entry, {})[at] = self.lives[entry]
        one.entries[entry] = Live(at, {"class": at, "mail": at})
        for name in ("class", "mail"):
            self._note(one, entry, name, at, at)

    def _pull(self, supplier: Server, consumer: Server) -> None:
        answer = reply((consumer.domain, supplier.domain), consumer.ranges, supplier.ranges, supplier.last - AGE)
        self.answers.append(answer)
        if answer.message != SUPPLY or answer.compared is None:
            return
        owed = answer.compared.owed
        carried = supplied(supplier.ruv, owed)
        own = consumer.ranges.get(consumer.uuid)
        checked = preflight(
            consumer.uuid,
            own[1] if own else None,
            {origin: one.upto for origin, one in carried.items()},
            self.now,
            CLOCK_WINDOW,
        )
        if checked.status != APPLIED:
            return
        consumer.begin(self.now)
        for entry, state in list(supplier.entries.items()):
            part = self._part(supplier, entry, state, owed)
            if part is not None and not self._lost(consumer, entry, state, part):
                self._merge(consumer, entry, part)
        for origin, one in carried.items():
            consumer.ruv |= {(time, origin) for time in (one.after, *one.anchors, one.upto) if time > 0}
        consumer.reaped |= supplier.reaped

    def _part(self, supplier: Server, entry: int, state: Live | Tombstone, owed: Any) -> Live | Tombstone | None:
        def is_owed(cid: Cid) -> bool:
            return cid[1] in owed and owed[cid[1]][0] < cid[0] <= owed[cid[1]][1]

        cids = [state.at] if isinstance(state, Tombstone) else [state.at, *state.changes.values()]
        if not any(is_owed(cid) and cid in supplier.ruv for cid in cids):
            return None
        if isinstance(state, Tombstone):
            return state
        return Live(state.at, {name: cid for name, cid in state.changes.items() if is_owed(cid)})

    def _lost(self, consumer: Server, entry: int, state: Live | Tombstone, part: Live | Tombstone) -> bool:
        if self.random.random() >= self.lossy:
            return False
        names = [None] if isinstance(part, Tombstone) else list(part.changes)
        for name in names:
            cid = state.at if isinstance(state, Tombstone) else state.changes[name or ""]
            self.losses.append((consumer.name, self.changes[entry, name, cid]))
        return True

    def _merge(self, consumer: Server, entry: int, part: Live | Tombstone) -> None:
        local = consumer.entries.get(entry)
        if local is None:
            consumer.entries[entry] = part
            return
        merged = merge(part, local)
        state = merged.state
        consumer.entries[entry] = Live(state.at, state.changes) if isinstance(state, Live) else state
        if merged.conflict_written_by(consumer.uuid):
            self.conflicts += 1
            self._create(consumer, self.conflicts)

    def _refresh(self, supplier: Server, consumer: Server) -> None:
        cut_off = supplier.last - AGE
        shown = {origin for origin, (_, last) in supplier.ranges.items() if last >= cut_off}
        consumer.begin(self._tick())
        if consumer.ruv:
            consumer.uuid = next(self.letters)
        consumer.domain = supplier.domain
        consumer.ruv = {cid for cid in supplier.ruv if cid[1] in shown}
        consumer.entries, consumer.reaped = dict(supplier.entries), set(supplier.reaped)

    # --- faults

    def _faults(self, count: int) -> list[Any]:
        random = self.random

        def one() -> Server:
            return random.choice(self.servers)

        def two() -> tuple[Server, Server]:
            first, second = random.sample(self.servers, 2)
            return first, second

        def off() -> None:
            server = one()
            server.off_until = self.now + random.choice([2, 6, 8, 9, 30]) * DAY
            self.planted.append(f"{server.name} is off")

        def refreshed() -> None:
            supplier, consumer = two()
            self._refresh(supplier, consumer)
            self.planted.append(f"{consumer.name} is refreshed from {supplier.name}")

        def kept() -> None:
            for server in self.servers:
                self.backups.setdefault(server.name, []).append(deepcopy(server))

        def restored() -> None:
            server = one()
            if not self.backups.get(server.name):
                kept()
                return
            old = deepcopy(random.choice(self.backups[server.name]))
            self.servers[self.servers.index(server)] = old
            self.planted.append(f"{server.name} is restored")

        def ahead() -> None:
            server = one()
            server.ahead = random.choice([3600, DAY, 5 * DAY])
            self.planted.append(f"the clock of {server.name} is ahead")

        def lossy() -> None:
            self.lossy = 0.3
            for _ in range(2):
                self._step()
            self.lossy = 0.0
            self.planted.append("changes are lost on the way")

        def others() -> None:
            server = one()
            server.domain = OTHER_DOMAIN
            self.planted.append(f"{server.name} is of another domain")

        def removed() -> None:
            server, change = one(), random.choice(list(self.changes.values()))
            state = server.entries.get(change.entry)
            if state is not None and server.claims(state.at):
                del server.entries[change.entry]
                self.planted.append(f"{server.name} loses an entry")

        kinds = [off, off, refreshed, kept, restored, restored, ahead, lossy, lossy, lossy, removed, removed, others]
        return [random.choice(kinds) for _ in range(count)]

    # --- what is true

    def lacks(self, server: Server, one: Change) -> bool | None:
        """Whether the server claims the change and is really without it; None: it holds an entry of that id from before.

        An entry whose tombstone was forgotten may come back in parts, from a server that missed its end: these parts count.
        """
        state = server.entries.get(one.entry)
        if not server.claims(one.cid) or isinstance(state, Tombstone):
            return False
        if state is None:
            ended = any(self._ends(end, one) and server.claims(end.cid) for end in self.changes.values())
            return not ended and (one.entry, one.life) not in server.reaped
        life = self._life(one.entry, state.at)
        if life != one.life:
            return None if life < one.life else False
        if one.attribute is None:
            return True
        if state.at != one.at:
            return None if state.at > one.at else False
        return state.changes.get(one.attribute, (-1, "")) < one.cid

    @staticmethod
    def _ends(end: Change, one: Change) -> bool:
        return end.attribute is None and (end.entry, end.life) == (one.entry, one.life)

    def write(self, folder: Path) -> Path:
        """A backup of each server."""
        folder.mkdir(parents=True)
        for one in self.servers:
            entries = {}
            for number, state in one.entries.items():
                if isinstance(state, Tombstone):
                    entries[number] = Entry(gone=state.at)
                else:
                    entries[number] = Entry(state.at, state.changes, partial=True)
            as_file(folder / f"{one.name}.json", backup(one.uuid, one.last, sorted(one.ruv), entries, one.domain))
        return folder
