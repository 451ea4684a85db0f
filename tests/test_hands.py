"""The hands that do repairs on Directory Servers: cut short everywhere, refused where it is no longer as planned, silent."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from crash_matrix import Cut, Fault, faults, run
from hand_plans import REPAIRS, Repair, initialise, recreate, rewrite
from memory_servers import BIND_PASSWORD, PASSWORD, Fleet, MemorySite
from ldap3.core.exceptions import LDAPSocketReceiveError

from workbench.journal import OWNER
from workbench.plans import as_json
from workbench.repairing import FINISHED, apply
from workbench.standing import JOURNAL, state_of
from workbench.systems.ds389.live import site


class InTurn:
    """What a pool of threads does, one after the other: a run with the same faults has to be the same run."""

    def __init__(self, workers: int) -> None: ...

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *ended: object) -> None: ...

    def map(self, do: Callable[[Any], Any], over: Any) -> Iterator[Any]:
        return map(do, over)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(step=2)
    monkeypatch.setattr(site, "ThreadPoolExecutor", InTurn)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def started_by(fleet: Fleet) -> Callable[..., None]:
    """What `dsctl` does."""

    def started(words: list[str], **options: Any) -> None:
        assert words[0] == "dsctl" and words[2] == "start"
        try:
            fleet.start(words[1])
        except LDAPSocketReceiveError as error:
            raise OSError(str(error)) from None

    return started


# Cut short everywhere

State = tuple[bytes, Fleet]


class Crashes:
    """Runs of one repair that end in faults, from any state that an earlier fault left."""

    def __init__(self, repair: Repair, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repair, self.folder, self.id, self.patch = repair, folder, repair.plan.id, monkeypatch
        self.runs = 0

    def run(self, state: State, fault: Fault | None) -> tuple[State, list[str]]:
        (self.folder / JOURNAL).write_bytes(state[0])
        (self.folder / OWNER).unlink(missing_ok=True)
        fleet = state[1].copy()
        self.patch.setattr(subprocess, "run", started_by(fleet))
        self.runs += 1

        def connect(cut: Cut) -> None:
            fleet.moment = cut.moments.now

        seen = run(self.repair.plan, self.id, self.folder, MemorySite(self.repair.plan, fleet, self.folder), fault, connect)
        fleet.moment = Fleet.moment
        return ((self.folder / JOURNAL).read_bytes(), fleet), seen

    def finish(self, state: State) -> list[str]:
        """What is left is done, and everything was done once; returns the moments that this took."""
        (self.folder / JOURNAL).write_bytes(state[0])
        end, seen = state, []
        if state_of(self.folder, self.id).state != FINISHED:
            end, seen = self.run(state, None)
        fleet = end[1].copy()
        assert fleet.writes == self.repair.writes
        self.repair.check(fleet)
        return seen

    def alike(self, state: State) -> Any:
        told = []
        for line in state[0].splitlines():
            try:
                record = json.loads(line)
                told.append((record["what"], record.get("step"), str(record.get("memo"))))
            except ValueError:
                told.append(("torn", len(line), ""))
        return tuple(told), state[0].endswith(b"\n"), str(state[1])


@pytest.mark.parametrize("kind", REPAIRS)
def test_no_fault_and_no_two_faults_lose_a_step_or_do_it_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes(REPAIRS[kind](), tmp_path, monkeypatch)
    begin = (b"", crashes.repair.fleet)
    _, seen = crashes.run(begin, None)
    crashes.finish(begin)
    known: set[Any] = set()
    singles = pairs = 0
    for first in faults(seen):
        state, _ = crashes.run(begin, first)
        singles += 1
        print(first, seen[first[0]])
        left = crashes.finish(state)
    print(kind, singles, pairs, crashes.runs, len(seen))
