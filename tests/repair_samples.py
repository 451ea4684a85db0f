"""Servers on which a repair can be done: all that they are is a list of what was done to them, so that twice is seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.repair.plan_executor import EndedBadly
from workbench.repair.plan_types import Plan, Step, Vectors

SUFFIX = "dc=x"
ORIGINS = {"a": "1", "b": "2", "c": "3"}
PARTS = {
    "write": ("write",),
    "slow": ("slow",),
    "parts": ("part1", "part2", "part3"),
    "stop": ("stop",),
    "start": ("start",),
}
PARTS["refill"] = ("empty", "fill")
KINDS = {  # a kind of repair -> the kinds of its steps
    "one change": ("write", "write"),
    "several changes": ("parts", "write"),
    "slow to arrive": ("slow", "write"),
    "new data": ("refill", "write"),
    "while it is down": ("stop", "write at a", "start"),
}


def csn(time: int, origin: str) -> str:
    return f"{0x66000000 + time:08x}0000{int(origin):04x}0000"


VECTOR = {origin: csn(100, origin) for origin in ORIGINS.values()}


@dataclass
class InFile(Sequence[str]):
    """What was done, as a server keeps it: it does not end with the process that asked for it."""

    path: Path

    def append(self, effect: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{effect}\n".encode())
        os.close(descriptor)

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, at: Any) -> Any:
        return self._all()[at]

    def _all(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


def effects(step: Step) -> list[str]:
    """What the servers take for the step, in this order."""
    return [f"{step.server} {one} {step.details['what']}" for one in PARTS[step.repair]]


@dataclass
class Toy:
    """Servers a, b and c. That an effect was there before the step does not make the step done: only the memo tells.

    earlier    how much was done before the plan was made
    at_part    is called with each effect, when it has landed
    moved      what somebody else did since: server -> origin -> its position now, None if it is gone
    """

    log: Any = field(default_factory=list)
    earlier: int = 0
    at_part: Callable[[str], None] = lambda effect: None
    moved: dict[str, dict[str, str | None]] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)
    in_the_way: list[str] = field(default_factory=list)
    ended_badly: str = ""
    looks: int = 0

    def vectors(self, suffix: str | None) -> Vectors:
        assert suffix == SUFFIX
        found = {server: dict(VECTOR) for server in ORIGINS}
        down = set(self.unreachable)
        for number, effect in enumerate(self.log[self.earlier :]):
            server, what, _ = effect.split(" ")
            if what in ("stop", "start"):
                (down.add if what == "stop" else down.discard)(server)
            elif what == "empty":
                found[server] = {}
            elif what == "fill":
                found[server] = dict(found["a"])
            else:
                for held in found.values():
                    if held:
                        held[ORIGINS[server]] = csn(200 + number, ORIGINS[server])
        for server, changes in self.moved.items():
            found[server] = {key: at for key, at in {**found[server], **changes}.items() if at}
        return {server: held for server, held in found.items() if server not in down}

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        return self.in_the_way

    def memo(self, step: Step) -> dict[str, Any]:
        return {"before": {one: list(self.log).count(one) for one in effects(step)}}

    def _left(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        return [one for one in effects(step) if list(self.log).count(one) <= memo["before"][one]]

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        return not self._left(step, memo)

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        for one in self._left(step, memo):
            self.log.append(one)
            self.at_part(one)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        self.looks += 1
        if self.ended_badly:
            raise EndedBadly(self.ended_badly, "", "look at it")
        late = step.repair == "slow" and self.looks % 3
        return ["c has not got it yet"] if late or self._left(step, memo) else []


def step(number: int, kind: str) -> Step:
    """`write`, or `write at a`: what is done, and at which server if not at b."""
    repair, _, server = kind.partition(" at ")
    server = server or ("c" if repair == "refill" else "b")
    return Step(
        key=f"{number}-{repair}",
        repair=repair,
        server=server,
        on=server,
        suffix=SUFFIX,
        says=f"{repair} at {server}",
        stands_on="nothing else",
        expects="it is there",
        risk="none",
        changes=len(PARTS[repair]),
        still=(("c", "3"),) if repair == "refill" else (),
        details={
            "what": "x" if number == 1 else f"x{number}",
            "down": ["b"] if server == "a" or repair in ("stop", "start") else [],
        },
    )


def plan_of(*kinds: str, **other: Any) -> Plan:
    servers = [
        {"server": server, "suffix": SUFFIX, "origin": origin, "generation": "g", "vector": dict(VECTOR)}
        for server, origin in ORIGINS.items()
    ]
    about: dict[str, Any] = {
        "case": "toy",
        "system": "ds389",
        "snapshot": "1",
        "made_at": "2024-03-24T10:00:00+00:00",
        "servers": tuple(servers),
        "courses": (),
        "steps": tuple(step(number, kind) for number, kind in enumerate(kinds, 1)),
        "promise": (),
        "before": (),
        "after": (),
    }
    return Plan(**{**about, **other})


def before_the_plan(plan: Plan) -> list[str]:
    """What was done before the plan was made: the same as its first step will do."""
    return effects(plan.steps[0])[:1] if plan.steps[0].repair in ("write", "parts", "slow") else []


def check_done_once(plan: Plan, log: Sequence[str], earlier: Sequence[str]) -> None:
    """Nothing lost, nothing twice, nothing else, and in the order of the plan."""
    assert list(log) == [*earlier, *(one for step in plan.steps for one in effects(step))]
