"""Random histories of a few servers: logs, vectors and starting marks, in memory and as the parts of a case."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.engine.digests import digest
from workbench.engine.logs import StoredLog
from workbench.engine.partition_writer import write_part
from workbench.model import Source
from workbench.rules.send_session import DELIVERED, Design, Log, Plan, SortedLog, plan, replay
from workbench.rules.vectors import Span, Vector
from workbench.systems.ds389 import SYSTEM
from workbench.systems.ds389.rules.sending import Sending

RIDS = (1, 2, 3, 700)
RULE_SETS = (Sending(), Sending("once"), Sending(cleaned=frozenset({"2"})), Design(), Design("include"))


@dataclass
class Server:
    """One server of a history."""

    name: str
    origin: str
    changes: list[str]
    marks: list[str]
    vector: Vector


def _csn(random: Random) -> str:
    """CSNs that meet: few seconds, few sequence numbers, now and then a helper's time, the last second, a sub-sequence."""
    near = 0x66000000 + random.randrange(8)
    time = random.choice([near] * 12 + [near + random.randrange(4000)] * 3 + [0x6F, 0xDE, 0xFFFFFFFF])
    sub = random.choice([0, 0, 0, 0, 1, 0xFFFF])
    return f"{time:08x}{random.choice([0, 0, 1, 2, 3, 0xFFFF]):04x}{random.choice(RIDS):04x}{sub:04x}"


def history(random: Random, number: int) -> list[Server]:
    """Three servers that know more or less of the same changes, and claim more or less than they have."""
    pool = sorted({_csn(random) for _ in range(random.randrange(1, 50))})
    servers = []
    for place in range(3):
        changes = [csn for csn in pool if random.random() < random.choice([0.5, 0.9, 1.0])]
        vector: dict[str, Span] = {}
        marks: list[str] = []
        for rid in random.sample(RIDS, len(RIDS)):
            mine = [csn for csn in pool if int(csn[12:16], 16) == rid]
            if mine and random.random() < 0.9:
                low, high = sorted(random.choices(mine, k=2))
                vector[str(rid)] = Span(low, high) if random.random() < 0.95 else Span()
                if random.random() < 0.08 and vector[str(rid)].max:  # a log that was made anew: one mark at the maximum
                    changes = [csn for csn in changes if int(csn[12:16], 16) != rid or csn > high]
                    marks.append(high)
        origin = random.choice([str(RIDS[place]), "65535"])
        servers.append(Server(f"h{number}-s{place}", origin, changes, marks, vector))
    return servers


def asked(supplier: Server, consumer: Server) -> list[Any]:
    """What a plan under every rule set asks of the supplier's log."""
    vectors = {"supplier": supplier.vector, "consumer": consumer.vector, "consumer_origin": consumer.origin}

    def ask(log: Log, rules: Any) -> Plan:
        return plan(rules, log, **vectors)

    return [partial(ask, rules=rules) for rules in RULE_SETS]


def replayed(supplier: Server, consumer: Server) -> list[tuple[Any, ...]]:
    """The exact replay under every rule set, told like a plan."""
    answers = []
    for rules in RULE_SETS:
        log = SortedLog(supplier.changes, SYSTEM.origin_of, supplier.marks)
        session = replay(rules, log, supplier.vector, consumer.vector, consumer.origin)
        first_load = session.steps[: len(log.positions)]
        if session.loads > 1:  # what a session reads again after its only buffer is not part of the plan
            first_load = first_load[: _read_first(log, session)]
        to_send: dict[str, list[Any]] = {}
        for step in first_load:
            if step.outcome in DELIVERED:
                found = to_send.setdefault(SYSTEM.origin_of(step.position), [0, step.position, step.position])
                found[0], found[2] = found[0] + 1, step.position
        counts = Counter(step.outcome for step in first_load)
        answers.append(
            (session.decision, session.anchor, session.included, counts, {o: tuple(f) for o, f in to_send.items()})
        )
    return answers


def _read_first(log: SortedLog, session: Any) -> int:
    """How many changes the first load reads: all from the first one on."""
    return sum(position >= session.steps[0].position for position in log.positions) if session.steps else 0


def planned(found: Plan) -> tuple[Any, ...]:
    """A plan, told like a replay."""
    to_send = {origin: tuple(tally) for origin, tally in found.to_send.items()}
    return found.decision, found.anchor, found.included, dict(found.counts), to_send


def stored(server: Server, folder: Path, parts: int, random: Random) -> StoredLog:
    """The log as parts of a case, its changes dealt to them at random."""
    dealt = random.sample(server.changes, len(server.changes))
    source = Source(server.name, "now", server.name)
    written: list[dict[str, Any]] = []
    digests = []
    for at in range(parts):
        share = sorted(dealt[at::parts])
        if share:
            hi, lo = (np.array(half, np.int64) for half in zip(*map(SYSTEM.halves, share), strict=True))
            origin = pa.array([SYSTEM.origin_of(csn) for csn in share]).dictionary_encode()
            ends = (int(hi[0]), int(lo[0])), (int(hi[-1]), int(lo[-1]))
            part = write_part(folder, "positions", pa.table({"origin": origin, "hi": hi, "lo": lo}), source, *ends)
            written.append({**part, "path": str(folder / "positions" / part["name"])})
            part = write_part(folder, "digests", digest(origin, hi, lo, SYSTEM.bucket_shift), source)
            digests.append(str(folder / "digests" / part["name"]))
    return StoredLog(SYSTEM, written, digests, server.marks)
