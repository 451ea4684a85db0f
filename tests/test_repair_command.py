"""`apply`, `resume` and `verify` as somebody types them, over directory servers in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import ROOT
from hand_plans import REPAIRS, Repair, recreate, temporary
from memory_servers import BIND_PASSWORD, MemorySite, dn_of

from workbench.cli import main
from workbench.model import Problem
from workbench.repair.plan_executor import FINISHED, apply
from workbench.repair.plan_progress import HALF_DONE, JOURNAL, NOT_BEGUN, state_of
from workbench.repair.plan_types import NAME, Plan, as_json
from workbench.repair.server_access import REPLICATION_PASSWORD
from workbench.systems.ds389.live import site

pytestmark = pytest.mark.usefixtures("no_waiting")

NAMES = ("s1", "s2", "s3", "c1")
SERVERS = [word for name in NAMES for word in ("--url", f"{name}=ldap://{name}.test:389")]
CONFIRMED = [word for name in NAMES for word in ("--confirm", name)]

Bench = Callable[..., Result]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Repair], Bench]]:
    """Types commands about a repair that is planned in a folder of its own."""

    def of(repair: Repair) -> Bench:
        def place(plan: Plan, addresses: Any, access: Any, folder: Path, credentials: Callable[[], str]) -> MemorySite:
            made = MemorySite(plan, repair.fleet, folder)
            made.credentials = credentials
            return made

        monkeypatch.setattr(site, "DirectorySite", place)
        (tmp_path / NAME).write_text(json.dumps(as_json(repair.plan)))

        def typed(verb: str, *options: str) -> Result:
            confirmed = CONFIRMED if verb in ("apply", "resume") and "--give-up" not in options else []
            return CliRunner().invoke(main, [verb, str(tmp_path), *SERVERS, *confirmed, *options])

        return typed

    yield of


def test_a_stopped_repair_says_what_to_type_next_and_that_goes_on(bench: Any, tmp_path: Path) -> None:
    repair = REPAIRS["enable"]()
    typed = bench(repair)
    done = typed("apply", "--max-steps", "1", "--accept-progress", "--no-tls", "--timeout", "7")
    assert done.exit_code == 4
    words = [
        "workbench resume",
        str(tmp_path),
        *SERVERS,
        "--no-tls",
        "--timeout",
        "7.0",
        *CONFIRMED,
        "--accept-progress",
    ]
    said = done.output.partition("resume with `")[2].partition("`")[0]
    assert sorted(said.split()) == sorted(" ".join(words).split())
    resumed = CliRunner().invoke(main, said.split()[1:])
    assert resumed.exit_code == 0, resumed.output
    repair.check(repair.fleet)
    again = resumed.output.partition("and again later: ")[2].strip()
    assert CliRunner().invoke(main, again.split()[1:]).exit_code == 0


def test_a_plan_that_was_given_up_says_what_stays(bench: Any, tmp_path: Path) -> None:
    repair = temporary()
    typed = bench(repair)
    os.environ[REPLICATION_PASSWORD] = BIND_PASSWORD
    try:
        assert typed("apply", "--max-steps", "1").exit_code == 4
    finally:
        del os.environ[REPLICATION_PASSWORD]
    done = typed("resume", "--give-up")
    assert done.exit_code == 0 and done.output.startswith("given up after 1 of 2\n")
    assert "stays as it is: 1-feed-s3-from-s2 on s2; to take it back: delete the agreement" in done.output


def test_a_step_that_was_begun_and_given_up_is_to_be_looked_at(bench: Any) -> None:
    repair = recreate()
    typed = bench(repair)
    refuses = repair.fleet.servers["s1"].refuses
    refuses["add", dn_of("ann").lower()] = (65, 'missing attribute "uid"')
    assert typed("apply").exit_code == 4
    said = typed("resume", "--give-up").output
    assert "may be done, or done in part, look at it: 2-add-on-s1: s1 adds" in said
    assert "stays as it is: 1-delete-on-s1" in said and "secrets too, are in its tombstone" in said


def test_a_password_that_is_lacking_is_asked_for_before_anything_is_done(bench: Any, tmp_path: Path) -> None:
    repair = temporary()
    typed = bench(repair)
    done = typed("apply")
    assert done.exit_code == 2 and REPLICATION_PASSWORD in done.output
    (tmp_path / "password").write_bytes(b"\xff\xfe\x00")
    done = typed("apply", "--replication-password-file", str(tmp_path / "password"))
    assert done.exit_code == 2 and "no text in UTF-8" in done.output
    assert not (tmp_path / JOURNAL).exists() and repair.fleet.writes == []


def test_verify_tells_what_nobody_could_say(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repair = REPAIRS["enable"]()
    typed = bench(repair)

    def fails(*asked: Any) -> Any:
        raise Problem("the search was refused", "ldap://x", "ask for the right")

    monkeypatch.setattr(MemorySite, "_without_conflicts", fails)
    done = typed("apply")
    assert done.exit_code == 0 and "unknown: s1 could not be asked: the search was refused" in done.output
    assert typed("verify").exit_code == 3


def test_a_plan_that_was_replaced_meanwhile_is_not_applied(bench: Any, tmp_path: Path) -> None:
    repair = REPAIRS["enable"]()
    bench(repair)
    (tmp_path / NAME).write_text(json.dumps(as_json(replace(repair.plan, made_at="later"))))
    with pytest.raises(Problem, match="the case has another plan by now"):
        apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert repair.fleet.writes == [] and not (tmp_path / JOURNAL).exists()


def test_a_plan_of_monstrous_depth_is_no_plan(tmp_path: Path) -> None:
    plan = as_json(REPAIRS["enable"]().plan)
    for depth in (300, 700, 900, 5_000, 100_000):
        nested = json.dumps(plan | {"promise": ["HERE"]}).replace('"HERE"', "[" * depth + "]" * depth)
        (tmp_path / NAME).write_text(nested)
        done = CliRunner().invoke(main, ["verify", str(tmp_path), *SERVERS])
        assert done.exit_code == 2 and "plan" in done.output, depth


LISTENER_GONE = """
import os, sys, json
from pathlib import Path
from hand_plans import REPAIRS
from memory_servers import MemorySite, InTurn
from workbench.cli import main
from workbench.repair.plan_types import NAME, as_json
from workbench.systems.ds389.live import planned, site

folder, moment = Path(sys.argv[1]), sys.argv[2]
planned.ThreadPoolExecutor = InTurn
repair = REPAIRS["enable"]()
(folder / NAME).write_text(json.dumps(as_json(repair.plan)))
site.DirectorySite = lambda plan, addresses, access, folder, credentials: MemorySite(plan, repair.fleet, folder)


def gone():
    reader, writer = os.pipe()
    os.dup2(writer, 1), os.dup2(writer, 2)
    os.close(reader)


repair.fleet.before_write = lambda what, dn: gone()
if moment == "before":
    gone()
main(["apply", str(folder), *sys.argv[3:]])
"""


@pytest.mark.parametrize(("moment", "options", "code"), [("during", ["--max-steps", "1"], 4), ("before", [], 0)])
def test_a_listener_that_goes_away_changes_nothing(moment: str, options: list[str], code: int, tmp_path: Path) -> None:
    """What stands in a pipe that nobody reads is no reason to leave a repair half done, or to call it done."""
    words = [sys.executable, "-c", LISTENER_GONE, str(tmp_path), moment, *SERVERS, *CONFIRMED, *options]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    plan = REPAIRS["enable"]().plan
    assert state_of(tmp_path, plan).state == (HALF_DONE if code else FINISHED)


def test_ctrl_c_before_anything_was_done_leaves_the_plan_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = REPAIRS["enable"]()
    place = MemorySite(repair.plan, repair.fleet, tmp_path)

    def interrupted(*asked: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, "obstacles", interrupted)
    with pytest.raises(Problem, match="stopped before anything was done: it was interrupted"):
        apply(repair.plan, place, tmp_path)
    assert state_of(tmp_path, repair.plan).state == NOT_BEGUN
    assert ("s1", "modify", dn_of("ann")) not in repair.fleet.writes
