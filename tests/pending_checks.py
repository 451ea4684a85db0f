"""What must hold of every history of pending lists, asked of the module or of a copy of it with a fault in it."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from given_cases import given_cases
from pending_slowly import Slow

from workbench.replication.changelog.rules.pending import RULE_SETS, Replica, Step
from workbench.rules.vectors import Span

RANDOM_HISTORIES = 600


def random_history(random: Random) -> tuple[list[Replica], list[Step]]:
    """Few CSNs in few lists, so that they meet: 0xa beside 1 and 2, so that a rid read in the wrong base differs."""

    def csn(time: int, rid: int) -> str:
        return f"{0x66000000 + time:08x}{random.randrange(2):04x}{rid:04x}{random.choice([0, 0, 0, 1]):04x}"

    replicas = []
    for _ in range(random.randint(1, 3)):
        vector = {}
        for rid in (1, 2, 10, 65535):
            if random.random() < 0.75:
                low, high = sorted(csn(random.randrange(3), rid) for _ in range(2))
                vector[str(rid)] = Span(low, high) if random.random() < 0.6 else Span()
        replicas.append(Replica(random.choice([1, 1, 2, 10, 65535]), vector))
    steps: list[Step] = []
    begun: dict[int, list[tuple[int, str]]] = {}
    for _ in range(random.randint(6, 24)):
        thread, op = random.randrange(3), random.choice(["begin"] * 5 + ["commit"] * 4 + ["cancel"] * 2 + ["end"])
        mine = begun.setdefault(thread, [])
        place, text = random.randrange(len(replicas)), csn(random.randrange(7), random.choice([1, 1, 2, 10, 65535]))
        if op == "begin":
            mine.append((place, text))
        elif op != "end" and mine and random.random() < 0.9:
            place, text = random.choice([mine[0], mine[0], *mine])
        if op == "end":
            mine.clear()
            steps.append(Step("end", thread))
        else:
            steps.append(Step(op, thread, place, text))
    return replicas, steps


@cache
def histories() -> list[tuple[str, list[Replica], list[Step], list[Any]]]:
    """(rule set, start, steps, what must come out of each) of random histories and of the given ones."""
    random = Random(3)
    starts = [random_history(random) for _ in range(RANDOM_HISTORIES)]
    # An entry of a secondary replica with the CSN of another primary, as two backends with one replica ID can make it.
    ones = [(1, 0, 1), (1, 1, 2), (2, 0, 2), (2, 1, 3)]
    steps = [Step("begin", thread, place, f"660000{number:02x}000000010000") for thread, place, number in ones]
    starts.append(([Replica(1, {}), Replica(1, {})], [*steps, steps[2]._replace(op="commit")]))
    for case in given_cases("ds389-pending"):
        inputs = case["inputs"]
        replicas = [
            Replica(one["local_rid"], {rid: Span(*(ends or ())) for rid, ends in one["ruv_min_max"].items()})
            for one in inputs["replicas"]
        ]
        steps = [Step(s["op"], s["thread"], s.get("replica", 0), s.get("csn", "")) for s in inputs["steps"]]
        starts.append((replicas, steps))
    told = []
    for replicas, steps in starts:
        for name in RULE_SETS:
            slow = Slow(replicas, name)
            told.append((name, replicas, steps, [(slow.step(*step), slow.state()) for step in steps]))
    return told


def check_pending(module: Any) -> None:
    """The module says what the slow second implementation says, step by step."""
    for name, replicas, steps, expected in histories():
        server = module.Server([module.Replica(one.local_rid, one.vector) for one in replicas], module.RULE_SETS[name])
        for step, (result, state) in zip(steps, expected, strict=True):
            assert server.take(module.Step(*step)) == result, (name, step)
            shape = [{rid: (e.min, e.max, len(e.pending)) for rid, e in ruv.items()} for ruv in server.state()]
            assert shape == state, (name, step)
