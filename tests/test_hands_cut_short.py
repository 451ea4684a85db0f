"""The hands that do repairs on Directory Servers, cut short everywhere: no write is lost, none is done twice."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import STRIDES
from crash_matrix import WAYS, Cut, Fault, faults, run
from hand_plans import (
    REPAIRS,
)
from memory_servers import (
    Fleet,
    MemorySite,
    started_by,
)

from workbench.journal import OWNER
from workbench.repair.plan_executor import FINISHED, apply
from workbench.repair.plan_progress import HALF_DONE, JOURNAL, state_of

pytestmark = pytest.mark.usefixtures("no_waiting")

State = tuple[dict[str, bytes], Fleet]
"""What is in the folder, and the servers."""


class Crashes:
    """Runs of one repair that end in faults, from any state that an earlier fault left."""

    def __init__(self, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repair, self.folder, self.patch = REPAIRS[kind](), folder, monkeypatch
        self.id, self.chance = self.repair.plan.id, random.Random(kind)
        self.begin: State = ({JOURNAL: b""}, self.repair.fleet)
        self.finished: dict[Any, list[str]] = {}

    def run(self, state: State, fault: Fault | None) -> tuple[State, list[str]]:
        plan, fleet = self.repair.plan, state[1].copy()
        self._is_now(state)
        self.patch.setattr(subprocess, "run", started_by(fleet))

        def connect(cut: Cut) -> None:
            fleet.moment = cut.moments.now

        seen = run(plan, self.id, self.folder, MemorySite(plan, fleet, self.folder), fault, connect)
        fleet.moment = Fleet.moment
        files = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.name != OWNER}
        return (files, fleet), seen

    def finish(self, state: State) -> list[str]:
        """What is left is done, and everything was done once; returns the moments that this took."""
        alike = self._alike(state)
        if alike not in self.finished:
            self._is_now(state)
            end, seen = state, []
            if state_of(self.folder, self.id).state != FINISHED:  # else the fault came after the last record
                end, seen = self.run(state, None)
            assert end[1].writes == self.repair.writes
            self.repair.check(end[1].copy())
            self.finished[alike] = seen
        return self.finished[alike]

    def _is_now(self, state: State) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, content in state[0].items():
            (self.folder / name).write_bytes(content)

    def _alike(self, state: State) -> Any:
        """What tells two states apart for whoever goes on from there."""
        told = []
        for line in state[0][JOURNAL].splitlines():
            try:
                record = json.loads(line)
                told.append((record["what"], record.get("step"), str(record.get("memo"))))
            except ValueError:
                told.append(("torn", None, ""))
        return tuple(told), state[0][JOURNAL].endswith(b"\n"), tuple(state[0]), str(state[1])


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("kind", REPAIRS)
def test_no_fault_loses_a_write_or_does_it_twice(
    kind: str, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every moment, but for connections, which are most: of those each third."""
    crashes = Crashes(kind, tmp_path, monkeypatch)
    _, seen = crashes.run(crashes.begin, None)
    assert seen.count("write") == len(crashes.repair.writes)
    for number, way in faults(seen):
        if seen[number] != "look" or number % stride == 0:
            state, _ = crashes.run(crashes.begin, (number, way))
            crashes.finish(state)
    assert len(seen) > 35 and len(crashes.finished) >= 15


def two_faults(crashes: Crashes, first: Fault, second: Callable[[list[str]], Iterable[Fault]]) -> int:
    state, _ = crashes.run(crashes.begin, first)
    left = crashes.finish(state)
    seconds = list(second(left))
    for fault in seconds:
        again, _ = crashes.run(state, fault)
        crashes.finish(again)
    return len(seconds)


@pytest.mark.parametrize("kind", REPAIRS)
def test_two_faults_by_chance_lose_no_write_and_do_none_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes(kind, tmp_path, monkeypatch)
    chance = crashes.chance
    _, seen = crashes.run(crashes.begin, None)
    pairs = 0
    for first in chance.sample(list(faults(seen)), 12):
        pairs += two_faults(crashes, first, lambda left: chance.sample(list(faults(left)), min(4, len(left))))
    assert pairs > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPAIRS)
def test_no_two_faults_lose_a_write_or_do_it_twice(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair, but for connections: of those each tenth is the second fault."""
    crashes = Crashes(kind, tmp_path, monkeypatch)
    _, seen = crashes.run(crashes.begin, None)
    known: set[Any] = set()
    pairs = 0
    for first in faults(seen):
        state, _ = crashes.run(crashes.begin, first)
        alike = crashes._alike(state)
        if alike not in known:
            known.add(alike)
            pairs += two_faults(
                crashes, first, lambda left: (one for one in faults(left) if left[one[0]] != "look" or one[0] % 10 == 0)
            )
    assert pairs > 500


@pytest.mark.parametrize("late", [1, 4, 8, 12, 20, 40])
@pytest.mark.parametrize("kind", REPAIRS)
def test_what_lands_after_the_next_run_has_looked_harms_nothing(
    kind: str, late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what means the same when it is done twice is done twice; nothing tells a deletion that comes too late."""
    monkeypatch.setitem(WAYS, "write", (*WAYS["write"], "lands late"))
    for number in range(len(REPAIRS[kind]().writes)):
        repair = REPAIRS[kind]()
        fleet, folder = repair.fleet, tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.setattr(subprocess, "run", started_by(fleet))
        seen = Counter[str]()

        def moment(what: str, number: int = number, seen: Counter[str] = seen) -> str:
            seen[what] += 1
            return "lands late" if what == "write" and seen[what] == number + 1 else ""

        fleet.moment, fleet.delay = moment, late
        site_of = MemorySite(repair.plan, fleet, folder)
        for run_number in range(4):  # a change that landed when its step was done already is progress to the next one
            so_far, accept = state_of(folder, repair.plan).state, run_number > 1
            if so_far != FINISHED:
                apply(repair.plan, site_of, folder, resume=so_far == HALF_DONE, accept_progress=accept)
        assert state_of(folder, repair.plan).state == FINISHED
        fleet.settle()
        twice = Counter(fleet.writes) - Counter(repair.writes)
        assert not Counter(repair.writes) - Counter(fleet.writes)
        if any(what == "delete" for _, what, _ in twice):
            assert kind == "recreate" and [one for one in fleet.servers["s1"].entries if one.deleted]
            continue
        assert sum(twice.values()) <= 1 and all(what == "modify" for _, what, _ in twice)
        if fleet.inits <= 1:
            repair.check(fleet)
