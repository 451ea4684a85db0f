"""One run: a notebook in a process of its own, published whole into its case, done only with a completion record.

    CASE/runs/20261122T215500Z-23_missed_changes/
        notebook.ipynb   as it was run, or as far as it came
        facts.json       the completion record: what the last cell wrote
        run.json         what was asked for, when, how it ended
        log.txt          what its process wrote beside

A run works in a folder whose name begins with a dot, and is there under its own name only when all of it is; what an
earlier run left is never touched. One run at a time works in a case: a second one is refused, not queued. The runs of a case
are numbered: which is the last does not depend on a clock.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench import __version__
from workbench.case.case import RUNS
from workbench.diagnosis.incident import RECORD
from workbench.journal import AtWork, owned, write_whole
from workbench.jupyter import NOTEBOOKS
from workbench.model import Problem
from workbench.runs.facts import are_facts, is_moment
from workbench.runs.papermill_process import NOTEBOOK, ORDER
from workbench.runs.run_config import Order
from workbench.safety import defect_of, printable

DONE, FAILED = "done", "failed"
ABOUT, FACTS, LOG = "run.json", "facts.json", "log.txt"
WORKING = ".run-"

START_SECONDS = 120
_CHILD = ("-P", "-m", "workbench.runs.papermill_process")
_LONGEST_WAIT = 3600
"""Seconds: the system takes no more than some weeks at once."""
_ENDS_WITHIN = 10
"""Seconds that a process has to end by itself once it was told to."""
_NAME = re.compile(r"\d{8}T\d{6}Z-.+")
_VERSION = 4
"""Of run.json. In the second one `file` was a name without the way to it: whose run that was nobody can tell. In the third one
the folders and files of `parameters` were those of the machine, not as they are seen from the parameters file.
"""
_NOT_WRITTEN = ("folder", "facts", "met")
_KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "notebook", "outcome", "why", "began", "workbench", "file"), (str,)),
    "number": (int,),
    "seconds": (int, float),
    "parameters": (dict,),
}
"""What run.json holds beside its version."""


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    outcome  done, or failed
    why      of a failed one, what went wrong and what to do, as a sentence
    facts    what it found; empty if it failed
    folder   where it was published; None if not even that could be done
    file     the parameters file as it is seen from the case; with `name` it tells the run from all others of its case
    parameters  what was asked for, folders and files as they are seen from the parameters file
    number   runs of the case are numbered in the order in which they were published; 0 if it was not
    met      somebody else was at work in the case: nothing was begun
    """

    name: str
    notebook: str
    outcome: str
    why: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    began: str = ""
    seconds: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    workbench: str = __version__
    file: str = ""
    number: int = 0
    met: bool = False

    def __str__(self) -> str:
        return f"{self.file_name}: {self.name}" if self.file else self.name

    @property
    def file_name(self) -> str:
        """The name of the parameters file, as people know it."""
        return Path(self.file).name


Told = Callable[[Order, int, int], None]
"""Told of each cell that begins: the run, the number of the cell, how many there are."""


def run(order: Order, told: Told | None = None, keep: int = 30, dead_owner: str | None = None) -> Run:
    """Run it and publish it. Raises nothing that a run may come to: what went wrong is what the run says.

    `dead_owner`: HOST:PID of a run on another machine that is known to have ended, though it left its name in the case.
    """
    began, clock = datetime.now(UTC), time.monotonic()

    def ended(outcome: str, why: str = "", facts: Mapping[str, Any] | None = None) -> Run:
        return Run(
            order.name,
            order.notebook.stem,
            outcome,
            why,
            facts or {},
            None,
            f"{began:%Y-%m-%dT%H:%M:%SZ}",
            round(time.monotonic() - clock, 1),
            order.asked,
            file=order.file,
        )

    place = order.case_folder / RUNS
    work = None
    try:
        if place.is_symlink():
            raise Problem("this leads out of the case", str(place), "make it a folder: runs are kept in their case")
        place.mkdir(parents=True, exist_ok=True)
        with owned(place, dead_owner):
            _sweep(place)
            work = place / f"{WORKING}{uuid.uuid4().hex}"
            work.mkdir()
            why = _execute(order, work, told)
            facts, not_whole = _completed(work, order.cases)
            why = why or not_whole
            made = ended(FAILED if why else DONE, why, facts if not why else None)
            there = runs_in(order.case_folder)
            made = replace(made, number=max((one.number for one in there), default=0) + 1)
            made = _published(made, work, place / f"{began:%Y%m%dT%H%M%SZ}-{order.notebook.stem}")
            _forget([*there, made], keep)
            return made
    except AtWork as problem:
        return replace(ended(FAILED, str(problem)), met=True)
    except Problem as problem:
        return ended(FAILED, str(problem))
    except OSError as error:
        where = printable(str(error.filename or place))
        return ended(
            FAILED, f"{error.strerror or type(error).__name__} ({where}). What was published before is unchanged"
        )
    except Exception as error:  # what is shown for the run has to say so, whoever looks at it
        return ended(FAILED, defect_of(error))
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)


def _execute(order: Order, work: Path, told: Told | None) -> str:
    """Run the notebook in a process of its own; what went wrong, or nothing."""
    given = {
        "notebook": str(order.notebook),
        "parameters": dict(order.parameters),
        "start_timeout": START_SECONDS,
        "beside": str(NOTEBOOKS),
    }
    write_whole(work / ORDER, json.dumps(given, indent=1) + "\n")
    environment = {**os.environ, RECORD: str((work / FACTS).resolve()), "PYTHONUNBUFFERED": "1"}
    with open(work / LOG, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, *_CHILD, str(work.resolve())],
            cwd=NOTEBOOKS,
            env=environment,
            stdin=subprocess.PIPE,  # it ends when this does: then nobody is there any more to publish its run
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            said, in_time = _listen(process, order, told)
        finally:
            _end(process)
    if not in_time:
        return f"it took longer than {order.timeout:,} s and was ended. Give it more with `timeout:`, or find out why"
    if "failed" in said:
        return f"{said['failed']}{'. ' + said['do'] if 'do' in said else ''}"
    if process.returncode:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        return f"its process ended with {how} before the notebook did. {_last_line(work / LOG)}".rstrip()
    return ""


def _listen(process: subprocess.Popen[bytes], order: Order, told: Told | None) -> tuple[dict[str, Any], bool]:
    """What the process says in the end, and whether it ended in time."""
    until, rest = time.monotonic() + order.timeout, b""
    said: dict[str, Any] = {}
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return said, False
            if not selector.select(min(left, _LONGEST_WAIT)):
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                message = _message(line)
                if "cell" in message and told:
                    told(order, message["cell"], message["of"])
                elif "failed" in message:
                    said = message
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))
    return said, process.returncode is not None


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    return message if isinstance(message, dict) else {"failed": "its process said what cannot be understood"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of the run goes on; its kernel ends with the process that started it."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _completed(work: Path, cases: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """What the last cell wrote; or why the run is not whole, whatever its exit code says.

    Several cases are called as the parameters file calls them: by their folders no fact would be found again where a tree was
    moved, or where another checkout has accepted it.
    """
    try:
        facts = json.loads((work / FACTS).read_text(encoding="utf-8"))
        whole = json.loads((work / NOTEBOOK).read_text(encoding="utf-8"))
        if not are_facts(facts) or not whole["cells"]:
            raise ValueError("not as `finished` writes them")
    except FileNotFoundError as error:
        what = "the notebook was not written" if Path(str(error.filename)).name == NOTEBOOK else "no completion record"
        return {}, f"{what}: it did not come to the end of its last cell"
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, "what it wrote cannot be read: it was cut, or written by something else"
    if cases:
        for row in [row for rows in facts.values() if isinstance(rows, list) for row in rows]:
            row["case"] = cases.get(row["case"], row["case"])
        write_whole(work / FACTS, json.dumps(facts, indent=1) + "\n")
    return facts, ""


def _published(made: Run, work: Path, to: Path) -> Run:
    """The run under its own name: all of it, or nothing."""
    while to.exists():  # two runs within one second
        number = int(to.name.rpartition(".")[2]) + 1 if "." in to.name else 2
        to = to.with_name(f"{to.name.partition('.')[0]}.{number}")
    (work / ORDER).unlink()
    made = replace(made, folder=to)
    about = {key: value for key, value in asdict(made).items() if key not in _NOT_WRITTEN}
    write_whole(work / ABOUT, json.dumps({"run": _VERSION, **about}, indent=1) + "\n")
    os.rename(work, to)
    return made


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return printable(lines[-1])[:300] if lines else ""


def runs_in(case_folder: Path) -> list[Run]:
    """The runs that were published in a case, in that order; what is no run, or a damaged one, is passed over."""
    found = (_read(folder) for folder in (case_folder / RUNS).glob("*-*") if _NAME.fullmatch(folder.name))
    return sorted(filter(None, found), key=lambda one: one.number)


def _read(folder: Path) -> Run | None:
    """The run that was published there. People and other programs may have written there since: nothing is taken on trust."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        if not isinstance(about, dict) or about.pop("run", None) != _VERSION or about.keys() != _KINDS.keys():
            return None
        if not all(type(about[key]) in kinds for key, kinds in _KINDS.items()) or not is_moment(about["began"]):
            return None
        if about["outcome"] not in (DONE, FAILED):
            return None
        done = about["outcome"] == DONE
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8")) if done else {}
        return Run(**about, facts=facts, folder=folder) if not done or are_facts(facts) else None
    except (OSError, ValueError, RecursionError):
        return None


def _forget(there: Sequence[Run], keep: int) -> None:
    """Keep so many of the runs that are called as the last of these, and of them always the last one that was done: the next
    is compared with it."""
    made = there[-1]
    mine = [one for one in there if (one.file, one.name) == (made.file, made.name)]
    done = [one for one in mine if one.outcome == DONE][-1:]
    for one in mine[:-keep]:
        if one not in done and one.folder is not None:
            shutil.rmtree(one.folder, ignore_errors=True)


def _sweep(place: Path) -> None:
    """Take away what runs left that were killed: we own the place, so nobody works in it."""
    for folder in place.glob(f"{WORKING}*"):
        shutil.rmtree(folder, ignore_errors=True)
