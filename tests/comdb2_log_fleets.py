"""Fleets of Comdb2 whose evidence are their logs, made up by a seed: what each node has, and what was collected of it, and how.

Each node has a log of records that follow each other without a break. A node may be behind, may have another end than its source,
or may have lost a stretch. What was collected may be less: a dump that ended early, one of the newest records alone, or two with
nothing between them.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

from comdb2_samples import BOXES, CLASSIC, DIGEST, RECORD, TABS, printed
from tier_files import NOW, Made, written

from workbench.case.case import Case

HEAD, FIRST = 12, 28
COMMIT, CHECKPOINT, PLAIN = 2151, 2011, 3041
MADE_FROM = 1_795_186_000

WHOLE, BEHIND, PARTED, LONGER, UNLIKE, HOLE = "whole", "behind", "parted", "longer", "unlike", "hole"
"""What is the matter with the log of a node; LONGER: it parted, and goes on behind the end of the source."""
ALL, EARLY, NEWEST, APART = "all", "early", "newest", "apart"
"""What was collected of a log; APART: two dumps with nothing collected between them."""
NOTHING, ANSWERS, LINKS, ROWS, FULL = "nothing", "answers", "links", "rows", "full"
"""What was collected beside logs: nothing, what nodes answered, the table of who pulls from whom, that of the nodes, or all."""

Place = tuple[int, int]


class Record(NamedTuple):
    """A record of a log."""

    file: int
    place: int
    kind: int
    payload: bytes
    generation: int

    @property
    def at(self) -> Place:
        """Where it stands."""
        return self.file, self.place

    @property
    def end(self) -> int:
        """Where the next one of its file stands."""
        return self.place + len(self.payload) + HEAD


@dataclass
class Node:
    """A node: what its log has, and what was collected of that, dump by dump; and whether the log of its program was.

    had   what its log had before it lost a stretch
    """

    name: str
    fault: str
    log: list[Record]
    taken: str = ALL
    dumps: list[list[Record]] = field(default_factory=list)
    source: str | None = None
    logs: bool = False
    had: list[Record] = field(default_factory=list)

    @property
    def shown(self) -> dict[Place, Record]:
        """What was collected of its log."""
        return {one.at: one for dump in self.dumps for one in dump}


@dataclass
class Fleet:
    """A fleet; the first nodes are those of its source."""

    seed: int
    nodes: dict[str, Node]
    source: str
    beside: str

    @property
    def knows_source(self) -> bool:
        """Whether what was collected tells the source: the registry, or logs of programs if all others say that they pull."""
        return self.beside in (LINKS, FULL) or self._said == {self.source}

    @property
    def _said(self) -> set[str]:
        """The databases of which no log of a program says that they pull, if all of them are said to be pulled from."""
        said = [
            (node.name.partition("@")[0], node.source.partition("@")[0])
            for node in self.nodes.values()
            if node.logs and node.source
        ]
        left = {name.partition("@")[0] for name in self.nodes} - {name for name, _ in said}
        return left if left <= {source for _, source in said} else set()

    def roots(self) -> list[str]:
        """The nodes of the source."""
        return [name for name in self.nodes if name.partition("@")[0] == self.source]


def fleet(seed: int) -> Fleet:
    """The fleet of a seed."""
    chance = random.Random(seed)
    source, *others = chance.sample(["shop", "shop_ro", "zeta", "orders", "an"], 4)
    beside = chance.choice((NOTHING, NOTHING, NOTHING, ANSWERS, LINKS, ROWS, FULL, FULL, FULL))
    made = Fleet(seed, {}, source, beside)
    start = chance.randrange(3, 12), FIRST
    log = grown([], chance.randrange(20, 90), chance, 4, start)
    for at in range(chance.choice((1, 1, 1, 2))):
        name = f"{source}@s{at + 1}"
        made.nodes[name] = Node(name, WHOLE, list(log), had=log)
    for at in range(chance.randrange(1, 5)):
        name = f"{chance.choice(others)}@r{at + 1}"
        fault = chance.choice((WHOLE, BEHIND, BEHIND, PARTED, LONGER, UNLIKE, HOLE, HOLE))
        mine = _log(log, fault, chance)
        made.nodes[name] = Node(name, fault, mine, source=chance.choice(list(made.nodes)))
        made.nodes[name].had = [one for one in log if one.at >= mine[0].at] if fault == HOLE else mine
    for node in made.nodes.values():
        _take(node, chance)
    if not any(node.dumps for node in made.nodes.values()):
        first = next(iter(made.nodes.values()))
        first.dumps, first.taken = [list(first.log)], ALL
    return made


def grown(log: Sequence[Record], count: int, chance: random.Random, generation: int, start: Place) -> list[Record]:
    """A log with so many records more, each where the last one ends, or at the beginning of a new file."""
    found, (file, place) = list(log), start
    if found:
        file, place = found[-1].file, found[-1].end
    for _ in range(count):
        if place > FIRST and chance.random() < 0.08:
            file, place = file + 1, FIRST
        kind = chance.choice((COMMIT, CHECKPOINT, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN))
        found.append(Record(file, place, kind, chance.randbytes(chance.randrange(1, 30)), generation))
        place = found[-1].end
    return found


def _log(log: list[Record], fault: str, chance: random.Random) -> list[Record]:
    first = log[chance.choice((0, 0, chance.randrange(len(log) // 3)))].file
    mine = [one for one in log if one.file >= first]  # a node deletes its oldest files
    if fault == BEHIND or (fault in (HOLE, UNLIKE) and chance.random() < 0.5):
        mine = mine[: max(6, len(mine) - chance.randrange(1, 12))]
    if fault in (PARTED, LONGER):
        common = max(4, len(mine) - chance.randrange(1, 9))
        lost = len(mine) - common
        count = chance.randrange(1, lost + 1) if fault == PARTED else lost + chance.randrange(1, 9)
        mine = grown(mine[:common], count, chance, 5, mine[0].at)
    if fault == UNLIKE:
        at = chance.randrange(2, len(mine) - 2)
        mine[at] = mine[at]._replace(payload=chance.randbytes(len(mine[at].payload)))
    if fault == HOLE:
        at = chance.randrange(1, len(mine) - 3)
        mine = mine[:at] + mine[min(at + chance.randrange(1, 12), len(mine) - 1) :]
    return mine


def _take(node: Node, chance: random.Random) -> None:
    node.taken = chance.choice((ALL, ALL, ALL, ALL, ALL, EARLY, NEWEST, APART))
    log = node.log
    if node.taken == EARLY:
        node.dumps = [log[: chance.randrange(3, len(log))]]
    elif node.taken == NEWEST:
        node.dumps = [log[-chance.randrange(3, len(log)) :]]
    elif node.taken == APART:
        at = chance.randrange(1, len(log) - 2)
        node.dumps = [log[:at], log[chance.randrange(at + 1, len(log)) :]]
    else:
        node.dumps = [list(log)]
    if node.taken == ALL and chance.random() < 0.2:  # read twice, the second time some of it
        node.dumps.append(log[chance.randrange(len(log)) :])
    node.logs = chance.random() < 0.2


def case_of(made: Fleet, folder: Path) -> Case:
    """The fleet as a case."""
    chance = random.Random(made.seed + 1)
    now = folder / "now"
    now.mkdir(parents=True)
    rows = [_made(made, node) for node in made.nodes.values()]
    if made.beside == FULL:
        written(now, rows)
        _sizes(made, now / "nodes" / "logfiles.tsv")
    elif made.beside != NOTHING:
        written(folder / "all", rows)
        of = {ANSWERS: "nodes/positions", LINKS: "meta/comdb2_physrep_connections", ROWS: "meta/comdb2_physreps"}[
            made.beside
        ]
        file = folder / "all" / f"{of}.tsv"
        (now / file.name).write_bytes(file.read_bytes())
    room = now / "logs"
    room.mkdir(exist_ok=True)
    for node in made.nodes.values():
        for number, dump in enumerate(node.dumps):
            _write(room, f"{node.name.replace('@', '.')}.dump{number}", dump, chance)
        if node.logs:
            (room / f"{node.name.replace('@', '.')}.log").write_text(_program_log(made, node))
    case = Case.create(folder / "case")
    case.load([now])
    return case


def _made(made: Fleet, node: Node) -> Made:
    last, first = node.log[-1], node.log[0]
    return Made(node.name, last.at, first.file, source=node.source, generation=last.generation)


def _sizes(made: Fleet, file: Path) -> None:
    """The files of the logs as they are."""
    lines = []
    for node in made.nodes.values():
        for number in range(node.log[0].file, node.log[-1].file + 1):
            size = max((one.end for one in node.log if one.file == number), default=FIRST)
            lines.append("\t".join([*node.name.split("@"), f"log.{number:010d}", str(size), str(int(NOW.timestamp()))]))
    file.write_text("\n".join(lines) + "\n")


def _program_log(made: Fleet, node: Node) -> str:
    at = f"{datetime(2026, 11, 20, 11, 0, 0, tzinfo=UTC):%Y/%m/%d %H:%M:%S}"
    lines = [f"{at} [INFO] physical replication worker thread has started"]
    if node.source:
        lines.append(f"{at} [INFO] Physical replicant is now replicating from {node.source}")
    lines.append(f"{at} [INFO] comdb2_replicated_truncate complete [{node.log[0].file}:{node.log[0].place}]")
    return "\n".join(lines) + "\n"


def _write(room: Path, name: str, dump: Iterable[Record], chance: random.Random) -> None:
    """In one of the shapes of cdb2sql, with the payloads or with their digests; at times newest first, or compressed."""
    shape, typed = chance.choice((TABS, TABS, TABS, CLASSIC, BOXES)), chance.random() < 0.2
    whole, older = chance.random() < 0.4, chance.random() < 0.1
    records = list(dump)
    if chance.random() < 0.2:
        records.reverse()
    rows = [_full(one, older) if whole else _digest(one, older) for one in records]
    data = printed(RECORD if whole else DIGEST, rows, shape, typed)
    if chance.random() < 0.1:
        (room / f"{name}.tsv.gz").write_bytes(gzip.compress(data))
    else:
        (room / f"{name}.tsv").write_bytes(data)


def _full(one: Record, older: bool) -> list[object]:
    """`older`: a program of before November 2024, which left the generation empty."""
    ends = one.kind in (COMMIT, CHECKPOINT)
    generation = one.generation if ends and not older else None
    at = MADE_FROM + one.file * 100 if ends else None
    return [f"{{{one.file}:{one.place}}}", one.kind, generation, at, one.payload, 2147483648, one.place, 1]


def _digest(one: Record, older: bool) -> list[object]:
    row = _full(one, older)
    sum_of = md5(one.payload, usedforsecurity=False).hexdigest()
    return [*row[:4], len(one.payload), sum_of, *row[5:], None, None]
