"""Fleets of Drizzle whose replicas export their queues, made up by a seed, and the truth of each: an applier that runs on.

The tables are those of the servers. A master's log has a row for each message, and the number of a commit on the last row of a
transaction alone; of a bulk that was taken back the row of its ROLLBACK is left, of one that is open nothing. A slave asks for
commits above the highest that it has seen. Its applier takes what has its last row, in the order of commits, and reads message
1, 2, 3 … of it until one is not there.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import drizzle_samples as wire
from drizzle_fleets import COMMITTED, TAKEN_BACK, Made, worked

from workbench.case.case import Case
from workbench.systems.drizzle.formats.messages_pb2 import Transaction

MASTER = "m"
FAULTS = ("gap", "no_first", "no_middle", "no_last", "half_fetched", "left_over", "left_in_part", "torn_row", "twice")
STOPS = ("applier", "io")


@dataclass(frozen=True)
class Row:
    """A row of the log of a master, or of a queue. `commit` is 0 on all rows of a transaction but the last one."""

    number: int
    segment: int
    commit: int
    body: bytes


@dataclass
class Slave:
    """A replica: the last commit that it applied, its queue, and which of its threads stand still.

    unreadable  rows of the exported queue that cannot be read: the queue itself is whole there
    exported    its queue was collected
    logged      its own log was collected, too: what it got is there under the numbers of the master
    """

    server: str
    applied: int
    queue: list[Row]
    stopped: tuple[str, ...] = ()
    unreadable: frozenset[Row] = frozenset()
    exported: bool = True
    logged: bool = False
    faults: list[str] = field(default_factory=list)

    def seen(self) -> int:
        """The highest commit that it has seen."""
        return max([self.applied, *(row.commit for row in self.queue)])


@dataclass
class Queues:
    """A master and its slaves.

    made   what the master made
    rows   its log
    shown  what was collected of its log
    """

    seed: int
    made: Mapping[int, Made]
    rows: list[Row]
    shown: list[Row]
    slaves: dict[str, Slave]

    def commit_of(self, number: int) -> int:
        """Of a transaction."""
        return max(row.commit for row in self.rows if row.number == number)

    def changes(self, shown: bool = True) -> dict[int, int]:
        """The commits that change something -> which transaction that is, in their order."""
        rows = self.shown if shown else self.rows
        found = {row.commit: row.number for row in rows if row.commit}
        return {commit: found[commit] for commit in sorted(found) if self._changes(found[commit])}

    def _changes(self, number: int) -> bool:
        return number in self.made and self.made[number].fate == COMMITTED


@dataclass(frozen=True)
class Run:
    """What became of transactions when the threads of a slave ran on: all of it was applied, or a part."""

    whole: frozenset[int]
    in_part: frozenset[int]


def run_on(slave: Slave, log: Iterable[Row], asks: bool, applies: bool) -> Run:
    """Let the threads of a slave run on, as they do on a server."""
    log = list(log)
    queue = {(row.number, row.segment): row for row in slave.queue}
    if asks:
        above = {row.number for row in log if row.commit > slave.seen()}
        for row in log:
            if row.number in above:
                queue.setdefault((row.number, row.segment), row)
    whole, part = set[int](), set[int]()
    ended = sorted({(row.commit, row.number) for row in queue.values() if row.commit > slave.applied})
    for _, number in ended if applies else ():
        got, segment = list[Row](), 1
        while (number, segment) in queue:
            got.append(queue[number, segment])
            segment += 1
        wanted = {(row.number, row.segment) for row in log if row.number == number}
        if got and wanted and wanted <= {(row.number, row.segment) for row in got}:
            whole.add(number)
        elif got and wanted:
            part.add(number)
    return Run(frozenset(whole), frozenset(part))


def queues(seed: int) -> Queues:
    """The fleet of a seed."""
    chance = random.Random(seed * 7919 + 1)
    numbered = chance.random() < 0.85
    source = worked(chance, numbered, chance.randrange(6, 18))
    rows, commit = list[Row](), 0
    last = {entry.number: at for at, entry in enumerate(source.stream) if entry.number is not None}
    for at, entry in enumerate(source.stream):
        made = source.made.get(entry.number or 0)
        if made is None:  # a start
            commit += 1
            number = Transaction.FromString(entry.body).transaction_context.transaction_id
            rows.append(Row(number, 1, commit, entry.body))
        elif last[made.number] == at and made.fate in (COMMITTED, TAKEN_BACK):
            commit += chance.choice((1, 1, 1, 2))
            rows += _rows_of(made, commit)
    found = Queues(seed, source.made, rows, list(rows), {})
    for name in ("s1", "s2", "s3")[: chance.randrange(1, 4)]:
        found.slaves[name] = _slave(name, rows, commit, chance)
    if chance.random() < 0.15:  # the log was read before the slaves
        upto = chance.randrange(commit // 2, commit + 1)
        late = {row.number for row in rows if row.commit > upto}
        found.shown = [row for row in rows if row.number not in late]
    elif chance.random() < 0.2:  # what every slave applied was purged
        below = min(slave.applied for slave in found.slaves.values())
        gone = {row.number for row in rows if 0 < row.commit < below}
        found.shown = [row for row in rows if row.number not in gone]
    return found


def _rows_of(made: Made, commit: int) -> list[Row]:
    count = len(made.messages)
    rows = [Row(made.number, at, commit if at == count else 0, body) for at, body in enumerate(made.messages, 1)]
    return rows[-1:] if made.fate == TAKEN_BACK else rows


def _slave(name: str, rows: list[Row], commits: int, chance: random.Random) -> Slave:
    applied = chance.randrange(0, commits)
    upto = chance.randrange(applied, commits + 1)
    numbers = {row.number for row in rows if applied < row.commit <= upto}
    stopped = tuple(part for part in STOPS if chance.random() < 0.15)
    slave = Slave(name, applied, [row for row in rows if row.number in numbers], stopped)
    slave.exported = chance.random() < 0.95
    slave.logged = applied > 0 and chance.random() < 0.15
    for fault in sorted(chance.sample(FAULTS, chance.choice((0, 0, 1, 1, 2))), key=FAULTS.index):
        _put(slave, fault, rows, chance)
    return slave


def _put(slave: Slave, fault: str, rows: list[Row], chance: random.Random) -> None:
    """Have a fault befall a queue, where it can."""
    last = {row.number: row for row in slave.queue if row.commit}
    bulks = [number for number, row in last.items() if row.segment > 1 and _first(slave.queue, number)]
    newest = max(last.values(), key=lambda row: row.commit, default=None)
    gone: list[Row] = []
    if fault == "gap" and len(last) > 1:
        some = chance.sample(sorted(last), chance.choice((1, 1, 2)))
        gone = [row for row in slave.queue if row.number in some]
    elif fault in ("no_first", "no_middle", "no_last") and bulks:
        number = chance.choice(bulks)
        ends = {"no_first": (1, 1), "no_last": (last[number].segment,) * 2}
        low, high = ends.get(fault, (2, last[number].segment - 1))
        gone = [row for row in slave.queue if row.number == number and low <= row.segment <= high]
        gone = chance.sample(gone, 1) if gone else []
    elif fault == "half_fetched" and newest and newest.number in bulks:
        cut = chance.randrange(2, newest.segment + 1)
        gone = [row for row in slave.queue if row.number == newest.number and row.segment >= cut]
    elif fault in ("left_over", "left_in_part"):
        done = sorted({row.number for row in rows if 0 < row.commit <= slave.applied})
        number = chance.choice(done) if done else None
        left = [row for row in rows if row.number == number]
        left = left[:-1] if fault == "left_in_part" and len(left) > 1 else left
        if left and left[0].number not in last:
            slave.queue = [*left, *slave.queue]
            slave.faults.append(fault)
        return
    elif fault == "torn_row" and slave.queue:
        slave.unreadable = frozenset({chance.choice(slave.queue)})
        slave.faults.append(fault)
        return
    elif fault == "twice" and slave.queue:
        slave.faults.append(fault)
        return
    if gone:
        slave.queue = [row for row in slave.queue if row not in gone]
        slave.faults.append(fault)


def _first(rows: Iterable[Row], number: int) -> bool:
    return any(row.number == number and row.segment == 1 for row in rows)


def case_of(made: Queues, folder: Path) -> Case:
    """The fleet as a case."""
    collected = folder / "in"
    collected.mkdir(parents=True)
    log = [_logged(row) for row in sorted(made.shown, key=lambda row: (row.number, row.segment))]
    (collected / f"{MASTER}.replication-log.jsonl").write_text("".join(log), encoding="utf-8")
    for name, slave in made.slaves.items():
        if slave.exported:
            queue = [_queued(row, row in slave.unreadable) for row in slave.queue]
            queue += queue[: 1 if "twice" in slave.faults else 0]
            (collected / f"{name}.queue.jsonl").write_text("".join(queue), encoding="utf-8")
        if slave.logged:
            done = [row for row in made.rows if made.commit_of(row.number) <= slave.applied]
            records = [wire.record(row.body) for row in sorted(done, key=lambda row: made.commit_of(row.number))]
            (collected / f"{name}.log").write_bytes(b"".join(records))
        (collected / f"{name}.state.json").write_text(_state(slave), encoding="utf-8")
    case = Case.create(folder / "case")
    case.load([collected])
    return case


def _logged(row: Row) -> str:
    about = {"ID": row.number, "SEGID": row.segment, "COMMIT_ID": row.commit, "MESSAGE_LEN": len(row.body)}
    return json.dumps(about | {"MESSAGE": base64.b64encode(row.body).decode()}) + "\n"


def _queued(row: Row, unreadable: bool) -> str:
    text = "?" if unreadable else str(Transaction.FromString(row.body))
    about = {"trx_id": row.number, "seg_id": row.segment, "commit_order": row.commit, "msg": text, "master_id": 1}
    return json.dumps(about) + "\n"


def _state(slave: Slave) -> str:
    def status(part: str) -> dict[str, str | int]:
        error = "(SQLSTATE 23000) Duplicate entry '7' for key 'PRIMARY'" if part in slave.stopped else ""
        return {"master_id": 1, "status": "STOPPED" if part in slave.stopped else "RUNNING", "error_msg": error}

    applier = status("applier") | {"last_applied_commit_id": slave.applied}
    return json.dumps({"io_state": [status("io")], "applier_state": [applier]})
