"""A plan is done step by step, each step once: cut short everywhere, refused where the servers have changed, and braked."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, STRIDES
from crash_matrix import Cut, Fault, faults, run
from repair_samples import KINDS, SUFFIX, VECTOR, InFile, Toy, before_the_plan, check_done_once, csn, plan_of

from workbench.journal import OWNER
from workbench.model import Problem
from workbench.repair.plan_executor import FAILED, FINISHED, STOPPED, Outcome, apply, give_up
from workbench.repair.plan_preconditions import Allowed, not_as_planned
from workbench.repair.plan_progress import GIVEN_UP, HALF_DONE, JOURNAL, NOT_BEGUN, state_of
from workbench.repair.plan_types import Plan, as_json

# Cut short everywhere


def journal_in(folder: Path) -> list[dict[str, Any]]:
    found = []
    for line in (folder / JOURNAL).read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            found.append({"what": "torn", "n": len(line)})
    return found


class Crashes:
    """Runs of one plan on one toy that end in faults, from any state that an earlier fault left."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder, self.id = plan, folder, plan.id
        self.earlier = before_the_plan(plan)

    def begin(self) -> tuple[bytes, list[str]]:
        return b"", list(self.earlier)

    def run(self, state: tuple[bytes, list[str]], fault: Fault | None) -> tuple[tuple[bytes, list[str]], list[str]]:
        (self.folder / JOURNAL).write_bytes(state[0])
        (self.folder / OWNER).unlink(missing_ok=True)
        toy = Toy(list(state[1]), len(self.earlier))

        def connect(cut: Cut) -> None:
            toy.at_part = cut.at_part

        seen = run(self.plan, self.id, self.folder, toy, fault, connect)
        return ((self.folder / JOURNAL).read_bytes(), toy.log), seen

    def finish(self, state: tuple[bytes, list[str]]) -> list[str]:
        """What is left is done, and everything was done once; returns the moments that this took."""
        log, seen = state[1], []
        if state_of(self.folder, self.id).state != FINISHED:  # else the fault came after the last record
            (_, log), seen = self.run(state, None)
        check_done_once(self.plan, log, self.earlier)
        told = [one.get("step") for one in journal_in(self.folder) if one["what"] == "done"]
        assert told == [step.key for step in self.plan.steps]
        assert state_of(self.folder, self.id).state == FINISHED
        return seen


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_and_no_two_faults_lose_a_step_or_do_it_twice(kind: str, stride: int, tmp_path: Path) -> None:
    crashes = Crashes(plan_of(*KINDS[kind]), tmp_path)
    begin = crashes.begin()
    _, seen = crashes.run(begin, None)
    singles = pairs = 0
    known = set()
    for first in faults(seen):
        state, _ = crashes.run(begin, first)
        # Two faults that leave the same journal and the same servers are one as to what may come next.
        whole = state[0].endswith(b"\n")
        alike = (tuple((one["what"], one["n"]) for one in journal_in(tmp_path)), whole, tuple(state[1]))
        left = crashes.finish(state)
        singles += 1
        if alike in known:
            continue
        known.add(alike)
        for second in islice(faults(left), singles % stride, None, stride):
            again, _ = crashes.run(state, second)
            crashes.finish(again)
            pairs += 1
    assert singles > 50 and pairs > 500 // stride


# Killed

KILLS = 60
REPAIR = """
import sys, types, random
house = types.ModuleType("workbench"); house.__path__ = [sys.argv[1] + "/workbench"]
sys.modules["workbench"] = house  # all that the package itself loads is not needed, and is most of the time
sys.path.insert(0, sys.argv[1] + "/tests")
import pathlib, time
from repair_samples import InFile, Toy
from workbench.repair.plan_types import read_plan
from workbench.repair.plan_executor import apply
from workbench.repair.plan_progress import HALF_DONE, state_of
assert not {"pyspark", "pyarrow", "pandas", "numpy"} & sys.modules.keys()
folder = pathlib.Path(sys.argv[2])
plan = read_plan(folder)
toy = Toy(InFile(folder / "servers"), int(sys.argv[3]), lambda effect: time.sleep(0.002))
print("go", flush=True)
print(apply(plan, toy, folder, resume=state_of(folder, plan).state == HALF_DONE))
"""


def killed_until_done(folder: Path, seed: int) -> int:
    """A repair whose runs are killed at random until one gets to the end; returns how many were."""
    chance = random.Random(seed)
    folder.mkdir()
    plan = plan_of("write", "parts", "write at a", "refill", "parts at a", "write")
    (folder / "plan.json").write_text(json.dumps(as_json(plan)))
    earlier = before_the_plan(plan)
    servers = InFile(folder / "servers")
    for one in earlier:
        servers.append(one)
    killed = 0
    while True:
        child = subprocess.Popen(
            [sys.executable, "-c", REPAIR, str(ROOT), str(folder), str(len(earlier))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout.readline() == "go\n", child.stderr.read()
        time.sleep(chance.uniform(0, 0.06 if killed < 8 else 3))  # some runs have to load what compares positions first
        child.send_signal(signal.SIGKILL)
        _, err = child.communicate()
        assert child.returncode in (0, -signal.SIGKILL), err
        if child.returncode == 0:
            break
        killed += 1
        if state_of(folder, plan).state == FINISHED:
            break
    check_done_once(plan, servers, earlier)
    assert state_of(folder, plan).done == [step.key for step in plan.steps]
    return killed


def test_a_repair_that_is_killed_again_and_again_does_each_step_once(tmp_path: Path) -> None:
    killed, seed = 0, 0
    cut_steps = 0
    with ThreadPoolExecutor(2) as pool:
        while killed < KILLS:
            killed += sum(pool.map(lambda at: killed_until_done(tmp_path / str(at), at), range(seed, seed + 6)))
            seed += 6
    for folder in tmp_path.iterdir():
        told = [one["what"] for one in journal_in(folder)]
        cut_steps += sum(one == "applying" and after == "resumed" for one, after in pairwise(told))
    assert cut_steps > 0, "no run was killed between a step and the record of it: the kills prove little"


def test_ctrl_c_ends_a_run_with_a_word_how_to_go_on(tmp_path: Path) -> None:
    plan, toy = plan_of("write", "parts", "write"), Toy()

    def interrupt(effect: str) -> None:
        if "part2" in effect:
            raise KeyboardInterrupt

    toy.at_part = interrupt
    outcome = apply(plan, toy, tmp_path)
    assert (outcome.state, str(outcome)) == (
        STOPPED,
        f"1 of 3 applied, resume with `workbench resume {tmp_path}`: it was interrupted",
    )
    toy.at_part = lambda effect: None
    assert str(apply(plan, toy, tmp_path, resume=True)) == "3 of 3 applied"
    check_done_once(plan, toy.log, [])


# Refused


def mutations(count: int, steps: int) -> list[tuple[str, str, dict[str, Any], int]]:
    """What somebody else may have done to one server, and before which step."""
    chance = random.Random(7)
    found = []
    for _ in range(count):
        server, origin = chance.choice("abc"), chance.choice("123")
        kind = chance.choice(["forward", "back", "gone", "new origin", "all gone", "unreachable"])
        change: dict[str, Any] = {
            "forward": {origin: csn(5000 + chance.randrange(1000), origin)},
            "back": {origin: csn(chance.randrange(100), origin)},
            "gone": {origin: None},
            "new origin": {"9": csn(chance.randrange(5000), "9")},
            "all gone": dict.fromkeys("123"),
            "unreachable": {},
        }[kind]
        found.append((kind, server, change, chance.randrange(steps)))
    return found


class Changed(Toy):
    """Servers that somebody changes before the step of that number is begun."""

    def __init__(self, server: str, change: dict[str, Any], number: int) -> None:
        super().__init__()
        self.server, self.change, self.number = server, change, number
        self.asked = 0

    def memo(self, step: Any) -> dict[str, Any]:
        if self.asked == self.number:
            self.moved = {self.server: self.change}
            if not self.change:
                self.unreachable = {self.server}
        self.asked += 1
        return super().memo(step)


@pytest.mark.parametrize("accept_progress", [False, True])
def test_servers_that_changed_since_are_refused(accept_progress: bool, tmp_path: Path) -> None:
    plan = plan_of("write", "write", "write")
    refused = dict.fromkeys(("forward", "back", "gone", "new origin", "all gone", "unreachable"), 0)
    for number, (kind, server, change, at) in enumerate(mutations(300, 3)):
        if kind == "forward" and accept_progress:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        toy = Changed(server, change, at)
        if at == 0:
            with pytest.raises(Problem, match=r"no longer as they were planned on.*collect and plan again") as problem:
                apply(plan, toy, folder, accept_progress=accept_progress)
            said = str(problem.value)
            assert state_of(folder, plan).state == NOT_BEGUN
        else:
            outcome = apply(plan, toy, folder, accept_progress=accept_progress)
            said = str(outcome)
            assert (outcome.state, outcome.applied) == (FAILED, at)
            assert apply(plan, toy, folder, resume=True, accept_progress=accept_progress).applied == at
        assert len(toy.log) == at, "a step was done all the same"
        assert server in said and all((position or "nothing") in said for position in change.values())
        refused[kind] += 1
    assert sum(refused.values()) >= 200 and all(refused[kind] >= 20 for kind in refused if kind != "forward")


def test_progress_is_accepted_if_that_is_said_but_not_where_it_must_stand_still(tmp_path: Path) -> None:
    forward = {"b": {"2": csn(150, "2")}, "c": {"2": csn(150, "2")}}
    plan = plan_of("refill")
    with pytest.raises(Problem, match=f"b went from {VECTOR['2']} to {csn(150, '2')} for origin 2"):
        apply(plan, Toy(moved=forward), tmp_path)
    with pytest.raises(Problem, match=r"c went from .* for origin 3"):
        apply(plan, Toy(moved={"c": {"3": csn(150, "3")}}), tmp_path, accept_progress=True)
    assert apply(plan, Toy(moved=forward), tmp_path, accept_progress=True).state == FINISHED


def test_what_the_server_wrote_after_it_was_emptied_is_not_thrown_away(tmp_path: Path) -> None:
    plan, toy = plan_of("refill"), Toy()

    def cut(effect: str) -> None:
        raise ConnectionResetError

    toy.at_part = cut
    assert apply(plan, toy, tmp_path).state == FAILED
    assert toy.vectors(SUFFIX)["c"] == {}
    toy.at_part = lambda effect: None
    toy.moved = {"c": {"3": csn(5000, "3")}}
    assert "c went from" in apply(plan, toy, tmp_path, resume=True).why
    assert toy.log == ["c empty x"]
    toy.moved = {}
    assert apply(plan, toy, tmp_path, resume=True).state == FINISHED
    check_done_once(plan, toy.log, [])


def test_a_server_that_was_down_when_it_was_planned_is_not_asked(tmp_path: Path) -> None:
    plan = plan_of("write")
    without_c = replace(plan, servers=tuple(one for one in plan.servers if one["server"] != "c"))
    assert apply(without_c, Toy(unreachable={"c"}), tmp_path).state == FINISHED
    with pytest.raises(Problem, match="c cannot be asked what it holds"):
        apply(plan, Toy(unreachable={"c"}), tmp_path)


def test_nobody_waits_for_what_has_ended_badly(tmp_path: Path) -> None:
    plan, toy = plan_of("write", "write"), Toy(ended_badly="the task ended with 5")
    outcome = apply(plan, toy, tmp_path, again="workbench resume CASE --url a=ldap://a")
    assert (outcome.state, toy.looks) == (FAILED, 1)
    assert (
        str(outcome) == "0 of 2 applied, resume with `workbench resume CASE --url a=ldap://a`: "
        "the task ended with 5 (step 1-write). look at it"
    )
    toy.ended_badly = ""
    assert apply(plan, toy, tmp_path, resume=True).state == FINISHED
    check_done_once(plan, toy.log, [])


def test_positions_that_are_none_are_not_taken_for_progress() -> None:
    allowed = Allowed(progress=True)
    order: Callable[[str], str | None] = {"1": "1", "2": "2"}.get
    assert not not_as_planned({"a": {"x": "1"}}, {"a": {"x": "2"}}, order, allowed)
    for before, after in [("2", "1"), ("1", "z"), ("z", "1")]:
        assert not_as_planned({"a": {"x": before}}, {"a": {"x": after}}, order, allowed)


def test_an_obstacle_is_refused_and_the_plan_may_be_applied_when_it_is_gone(tmp_path: Path) -> None:
    plan, toy = plan_of("write"), Toy(in_the_way=["the agreement is gone"])
    with pytest.raises(Problem, match=r"the agreement is gone \(step 1-write\)"):
        apply(plan, toy, tmp_path)
    assert toy.log == []
    assert not state_of(tmp_path, plan_of("write", "write")).other  # another plan may be applied instead
    toy.in_the_way = []
    assert apply(plan, toy, tmp_path).state == FINISHED


# Done by others, landed but reported failed, never arrived


class Busy(Toy):
    """A server whose answer is an error, whether it took the step or not."""

    takes = True

    def apply(self, step: Any, memo: Any) -> None:
        if self.takes:
            super().apply(step, memo)
        raise Problem("the server is busy")


def test_a_step_that_landed_but_was_reported_as_failed_is_done_and_one_that_did_not_is_not(tmp_path: Path) -> None:
    plan, said = plan_of("write", "write"), []
    busy = Busy()
    busy.takes = False
    outcome = apply(plan, busy, tmp_path)
    assert (outcome.state, outcome.applied, busy.log) == (FAILED, 0, [])
    assert "the server is busy" in outcome.why
    busy.takes = True
    assert apply(plan, busy, tmp_path, resume=True, told=said.append).state == FINISHED
    check_done_once(plan, busy.log, [])
    assert sum("reported as failed, but has taken effect" in one for one in said) == 2


def test_a_step_that_somebody_else_has_done_is_not_done_again(tmp_path: Path) -> None:
    class Done(Toy):
        def done(self, step: Any, memo: Any) -> bool:
            return step.key == "1-write" or super().done(step, memo)

        def shortfall(self, step: Any, memo: Any) -> list[str]:
            return []

    plan, toy = plan_of("write", "write"), Done(moved={"b": {"2": csn(150, "2")}})
    assert apply(plan, toy, tmp_path).state == FINISHED
    assert toy.log == ["b write x2"]
    assert [one["already"] for one in journal_in(tmp_path) if one["what"] == "done"] == [True, False]


def test_an_effect_that_is_not_seen_everywhere_stops_the_plan_and_is_looked_for_again(tmp_path: Path) -> None:
    class Late(Toy):
        late = True

        def shortfall(self, step: Any, memo: Any) -> list[str]:
            return ["c has not got it yet"] if self.late else []

    plan, toy = plan_of("write", "write"), Late()
    outcome = apply(plan, toy, tmp_path, patience=0.1)
    assert (outcome.state, outcome.applied) == (FAILED, 0) and "c has not got it yet" in outcome.why
    assert toy.log == ["b write x"]
    toy.late = False
    assert apply(plan, toy, tmp_path, resume=True).state == FINISHED
    check_done_once(plan, toy.log, [])


def test_the_next_step_stands_on_what_every_server_claims(tmp_path: Path) -> None:
    """A server that is silent for a moment when a step is done is asked again: its own change is in no other vector."""

    class Silent(Toy):
        silent = False

        def vectors(self, suffix: str | None) -> Any:
            found = super().vectors(suffix)
            found = {name: held if name == "b" else {**held, "2": VECTOR["2"]} for name, held in found.items()}
            if self.silent:
                self.silent = False
                del found["b"]
            return found

        def apply(self, step: Any, memo: Any) -> None:
            super().apply(step, memo)
            self.silent = True

    plan, toy = plan_of("write", "write"), Silent()
    assert apply(plan, toy, tmp_path).state == FINISHED
    check_done_once(plan, toy.log, [])


# Brakes


def test_a_run_stops_at_the_most_steps_and_goes_on_from_there(tmp_path: Path) -> None:
    plan, toy = plan_of(*["write"] * 5), Toy()
    ends = [apply(plan, toy, tmp_path, resume=bool(done), most_steps=2) for done in (0, 2, 4)]
    assert [(end.state, end.applied) for end in ends] == [(STOPPED, 2), (STOPPED, 4), (FINISHED, 5)]
    check_done_once(plan, toy.log, [])


def test_a_step_that_would_make_too_many_changes_is_not_begun(tmp_path: Path) -> None:
    plan, toy = plan_of("write", "parts", "write"), Toy()
    for resume in (False, True):
        outcome = apply(plan, toy, tmp_path, resume=resume, most_changes=3 - resume)
        assert (outcome.state, outcome.applied) == (STOPPED, 1)
    assert toy.log == ["b write x"] and "2-parts makes 3 changes" in outcome.why
    assert "2-parts" not in state_of(tmp_path, plan).memos
    assert apply(plan, toy, tmp_path, resume=True, most_changes=4).state == FINISHED


def test_the_stop_file_stops_before_the_next_step_and_while_waiting(tmp_path: Path) -> None:
    plan = plan_of("write", "slow", "write")
    stop = tmp_path / "STOP"
    toy = Toy()
    toy.at_part = lambda effect: stop.touch() if "slow" in effect else None
    outcome = apply(plan, toy, tmp_path)
    assert (outcome.state, outcome.applied, len(toy.log)) == (STOPPED, 1, 2)
    assert "STOP is there" in outcome.why
    assert apply(plan, toy, tmp_path, resume=True).state == STOPPED
    assert len(toy.log) == 2
    stop.rename(tmp_path / "HALT")
    assert apply(plan, toy, tmp_path, resume=True, stop_file=tmp_path / "HALT").state == STOPPED
    assert apply(plan, toy, tmp_path, resume=True).state == FINISHED
    check_done_once(plan, toy.log, [])


# Whose turn it is


def half_done(plan: Plan, toy: Toy, folder: Path) -> Outcome:
    return apply(plan, toy, folder, most_steps=1)


def test_a_plan_is_begun_once_and_resumed_only_when_begun(tmp_path: Path) -> None:
    plan, other, toy = plan_of("write", "write"), plan_of("write", "write", case="another"), Toy()
    with pytest.raises(Problem, match="nothing to resume: this plan is not begun"):
        apply(plan, toy, tmp_path, resume=True)
    with pytest.raises(Problem, match="nothing to give up: nothing was applied"):
        give_up(plan, tmp_path)
    assert not (tmp_path / JOURNAL).exists()
    half_done(plan, toy, tmp_path)
    with pytest.raises(Problem, match="begun already: 1 of 2 applied"):
        apply(plan, toy, tmp_path)
    for resume in (False, True):
        with pytest.raises(Problem, match=f"another plan of this case is half done.*{plan.id}"):
            apply(other, toy, tmp_path, resume=resume)
    assert state_of(tmp_path, other).other == plan.id
    assert apply(plan, toy, tmp_path, resume=True).state == FINISHED
    for resume in (False, True):
        with pytest.raises(Problem, match="done already"):
            apply(plan, toy, tmp_path, resume=resume)
    assert len(toy.log) == 2


def test_a_plan_that_was_given_up_makes_room_for_another(tmp_path: Path) -> None:
    plan, toy = plan_of("write", "write"), Toy()
    half_done(plan, toy, tmp_path)
    assert str(give_up(plan.id, tmp_path)) == "given up after 1 of 2"
    assert state_of(tmp_path, plan).state == GIVEN_UP
    for resume in (False, True):
        with pytest.raises(Problem, match="was given up"):
            apply(plan, toy, tmp_path, resume=resume)
    now = toy.vectors(SUFFIX)
    servers = tuple({**one, "vector": now[one["server"]]} for one in plan.servers)
    assert apply(replace(plan, servers=servers), toy, tmp_path).state == FINISHED
    assert len(toy.log) == 3


def test_the_journal_names_who_did_it_and_from_whom_it_was_taken_over(tmp_path: Path) -> None:
    plan, toy = plan_of("write", "write"), Toy()
    half_done(plan, toy, tmp_path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    owner = {"host": os.uname().nodename, "pid": dead.pid, "started": "1", "since": "yesterday"}
    (tmp_path / OWNER).write_text(json.dumps(owner))
    said: list[str] = []
    apply(plan, toy, tmp_path, resume=True, told=said.append)
    first, again = (one for one in journal_in(tmp_path) if one["what"] in ("begun", "resumed"))
    assert first["taken_over_from"] is None and first["by"]["pid"] == os.getpid()
    assert again["taken_over_from"] == f"process {dead.pid} on {os.uname().nodename} since yesterday"
    assert said[0].startswith(f"took over from process {dead.pid}")


def test_a_journal_cut_at_any_byte_can_be_read_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers are as they were at the end, or, of what they took since, without the last step."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    plan, toy = plan_of("write", "parts"), Toy()
    apply(plan, toy, tmp_path)
    whole = (tmp_path / JOURNAL).read_bytes()
    lines = whole.splitlines(keepends=True)
    ends = {
        what: sum(map(len, lines[: number + 1]))
        for number, what in enumerate(f"{one['what']} {one.get('step', '')}".strip() for one in map(json.loads, lines))
    }
    resumed = 0
    for size in range(len(whole)):
        (tmp_path / JOURNAL).write_bytes(whole[:size])
        state = state_of(tmp_path, plan).state
        # A server took no step before the record that the step is being done was on the disk.
        took = sum(size >= ends[f"applying {step.key}"] for step in plan.steps)
        again = Toy(toy.log[: (0, 1, 4)[took]])
        assert apply(plan, again, tmp_path, resume=state == HALF_DONE).state == FINISHED
        check_done_once(plan, again.log, [])
        assert (tmp_path / JOURNAL).read_bytes().startswith(whole[:size])
        resumed += state == HALF_DONE
    assert resumed > 500


def test_looking_writes_nothing(tmp_path: Path) -> None:
    plan, toy = plan_of("write"), Toy()
    state_of(tmp_path, plan)
    assert list(tmp_path.iterdir()) == []
    apply(plan, toy, tmp_path)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert state_of(tmp_path, plan).state == FINISHED
    with pytest.raises(Problem):
        apply(plan, toy, tmp_path, resume=True)
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert {path: after[path] for path in after if path.name != OWNER} == {
        path: before[path] for path in before if path.name != OWNER
    }
    assert len(toy.log) == 1


def test_a_plan_with_two_steps_of_one_key_is_refused(tmp_path: Path) -> None:
    plan = plan_of("write")
    with pytest.raises(Problem, match="two steps of one key"):
        apply(replace(plan, steps=plan.steps * 2), Toy(), tmp_path)
    assert list(tmp_path.iterdir()) == []
