"""What live tests do with a mesh: look at it as a diagnosis does, or mend it by the command line as a person does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from conftest import ROOT
from live_installed import until
from live_mesh import Mesh

from workbench import Case, diagnose
from workbench.cli import main

Found = dict[str, Any]


class Look:
    """Collects a mesh under a label and diagnoses that snapshot alone, or with those of earlier labels before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, mesh: Mesh, label: str, *options: str, after: tuple[str, ...] = (), **which: Any) -> Found:
        done = mesh.collect(self.folder / label, *options, **which)
        assert done.exit_code in (0, 3), done.output
        return self.again(label, after)

    def again(self, label: str, after: tuple[str, ...] = ()) -> Found:
        """What was collected under the label, diagnosed once more."""
        case = Case.create(self.folder / "-".join(("case", *after, label)))
        case.load([self.folder / one for one in (*after, label)])
        return diagnose(case)


def missing(found: Found) -> dict[tuple[str, str], list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for row in written(found["missing"]):
        rows.setdefault((row["server"], row["origin"]), []).append(row["position"])
    return rows


def stranded(found: Found) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for row in written(found["stranded"]):
        rows.setdefault(row["server"], []).append(row["position"])
    return rows


def written(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what a server writes by itself, to its keep-alive entry, half a minute after each start."""
    return [row for row in rows if not (row["target"] or "").startswith("cn=repl keep alive")]


def pending(found: Found) -> dict[tuple[str, str], tuple[int, int, str, str]]:
    return {
        (row["server"], row["origin"]): (row["count"], row["available"], row["first"], row["last"])
        for row in found["pending"]
    }


def wait_for(found: Found, made: dict[tuple[str, str], list[str]]) -> None:
    """Just these changes are pending, and a supplier still has them all.

    One more of each origin may be: a server updates its keep-alive entry half a minute after each of its starts.
    """
    rows = pending(found)
    for key, changes in made.items():
        count, available, first, last = rows.pop(key)
        assert count == available
        assert count - len(changes) in (0, 1)
        assert first <= changes[0] <= changes[-1] <= last
    assert all(count == 1 for count, *_ in rows.values())


def codes(found: Found, *severities: str) -> set[tuple[str, str]]:
    """(code, server or link) of the findings of these severities, by default of warnings and errors."""
    return {
        (one["code"], one["link"] or one["server"] or one["origin"])
        for one in found["findings"]
        if one["severity"] in (severities or ("warning", "error"))
    }


def causes(found: Found) -> set[str | None]:
    return {row["cause"] for row in found["missing"]}


def assert_healthy(found: Found) -> None:
    assert_nothing_lost(found)
    assert codes(found) == set()


def assert_nothing_lost(found: Found) -> None:
    """Nothing is missing, none has what others do not get, and nothing waits but what a server writes by itself."""
    assert (found["missing"], written(found["stranded"])) == ([], [])
    wait_for(found, {})


class Bench:
    """One case of a mesh, from the collection to the verification, by the command line as a person uses it."""

    def __init__(self, mesh: Mesh, folder: Path, names: Iterable[str] = ()) -> None:
        self.mesh, self.folder, self.case, self.round = mesh, folder, folder, 0
        self.before: list[Path] = []
        self.latest = folder
        folder.mkdir(exist_ok=True)
        self.names = list(names) or list(mesh.roles)
        self.servers = [word for name in self.names for word in ("--instance", f"{name}={mesh.instance(name)}")]

    def collect(self) -> Bench:
        """Collect all servers, and load that into a case of its own, behind what was kept of before.

        Once more if one wrote to its keep-alive entry meanwhile: another one, asked later, then has more of it than itself.
        """
        moving = True
        while moving:
            self.round += 1
            folder = self.folder / f"now-{self.round}"
            claimed = [self.mesh.vector(name) for name in self.names]
            done = self.mesh.collect(folder, "--entries", names=self.names)
            assert done.exit_code in (0, 3), done.output
            moving = claimed != [self.mesh.vector(name) for name in self.names]
        self.case = self.folder / f"case-{self.round}"
        Case.create(self.case).load([*self.before, folder])
        self.latest = folder
        return self

    def plan(self, *options: str, code: int = 0) -> Found:
        """Plan, and rehearse what was planned on the model."""
        done = self.run("plan", str(self.case), *options)
        assert done.exit_code == code, done.output
        planned: Found = json.loads((self.case / "plan.json").read_text())
        if planned["steps"]:
            rehearsed = self.run("apply", str(self.case), "--on-copy")
            assert rehearsed.exit_code == 0, rehearsed.output
        return planned

    def apply(self, *options: str, code: int | None = 0, verb: str = "apply") -> Result:
        """Apply it to the servers."""
        planned = json.loads((self.case / "plan.json").read_text())
        targets = dict.fromkeys(step["server"] for step in planned["steps"])
        confirmed = [word for name in targets for word in ("--confirm", name)]
        done = self.run(verb, str(self.case), *self.servers, *confirmed, "--patience", "90", *options)
        assert code is None or done.exit_code == code, done.output
        return done

    def mend(self, *options: str, code: int = 0) -> Found:
        """Collect, plan and apply; once more where a server wrote to its keep-alive entry meanwhile, as people would."""
        for _ in range(4):
            planned = self.collect().plan(*options, code=code)
            done = self.apply(code=None)
            moved = "no longer as they were planned on" in done.output
            if done.exit_code == 4 and moved:  # half way: what came meanwhile is progress
                done = self.apply("--accept-progress", verb="resume")
            if done.exit_code == 0:
                return planned
            if done.exit_code == 4 and "plan anew" in done.output:
                continue  # what it wrote is nowhere else, and the rest of the plan would throw it away
            assert done.exit_code == 2 and moved, done.output
        raise AssertionError("the servers never rest")

    def verify(self) -> None:
        """Ask the servers again; and look at them without what is under test."""
        done = self.run("verify", str(self.case), *self.servers)
        assert done.exit_code == 0, done.output
        self.mesh.wait_equal(self.names)
        assert_alike(self.mesh, self.names)

    def killed_after(self, steps: int) -> bool:
        """Apply in a process of its own, and kill it when so many steps are done; False if it ended by itself: it says why."""
        planned = json.loads((self.case / "plan.json").read_text())
        targets = dict.fromkeys(step["server"] for step in planned["steps"])
        confirmed = [word for name in targets for word in ("--confirm", name)]
        code = "from workbench.cli import main; main()"
        words = [sys.executable, "-c", code, "apply", str(self.case), *self.servers, *confirmed]
        environment = {**os.environ, "PREFIX": str(self.mesh.prefix), "PYTHONPATH": str(ROOT)}
        journal, said = self.case / "journal.jsonl", self.case / "said.log"
        with open(said, "wb") as out:
            process = subprocess.Popen(words, env=environment, stdout=out, stderr=subprocess.STDOUT)
        while process.poll() is None:
            if journal.exists() and journal.read_text().count('"what": "done"') >= steps:
                process.kill()
            time.sleep(0.005)
        print(said.read_text(errors="replace"))
        return process.returncode == -signal.SIGKILL

    def run(self, *words: str) -> Result:
        """One command; its tools find the servers' defaults of this mesh."""
        return CliRunner().invoke(main, list(words), env={"PREFIX": str(self.mesh.prefix), "PYTHONPATH": ""})


def chosen(planned: Found) -> list[str]:
    return [course["way"] for course in planned["courses"] if course["chosen"]]


def refused(planned: Found) -> dict[str, str]:
    return {course["way"]: course["refused"] for course in planned["courses"] if course["refused"]}


def assert_alike(mesh: Mesh, names: Iterable[str]) -> None:
    """All entries of all servers are equal, their unique IDs too, and none is a naming conflict.

    Equal vectors are not enough: each server takes the keep-alive entry of a cleaned origin away by itself, a moment later.
    """
    names = list(names)
    shown: dict[str, Any] = {}

    def unlike() -> list[str]:
        shown.update({name: mesh.entries(name) for name in names})
        every = sorted({entry for some in shown.values() for entry in some})
        return [entry for entry in every if any(shown[name].get(entry) != shown[names[0]].get(entry) for name in names)]

    until("all servers hold the same entries", lambda: not unlike(), state=lambda: "\n".join(unlike()))
    assert not any("nsds5replconflict" in entry for some in shown.values() for entry in some.values())
