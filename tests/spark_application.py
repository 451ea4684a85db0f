"""One Spark application for what several tests ask of a cluster or of Spark Connect: to start it takes longer than to answer.

It runs in a process of its own, in an empty folder and in another time zone, and may print nothing but its answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 300

Process = subprocess.Popen[str]


@dataclass(frozen=True)
class Application:
    """What the application said of `spark_job.job`, which it does first and in a session of its own, and what it is asked."""

    job: dict[str, Any]
    folder: Path
    _process: Process
    _errors: Path

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer of a function of this module; they share a session."""
        return _told(self._process, self._errors, json.dumps([question, *arguments]) + "\n")

    def complaints(self) -> str:
        """All that it has printed, but for its answers."""
        return self._errors.read_text(encoding="utf-8")


@contextmanager
def application(
    folder: Path, environment: Mapping[str, str], first: Mapping[str, Any], then: Mapping[str, Any]
) -> Iterator[Application]:
    """Start it: `first` are the arguments for the session of the job, `then` those for the session of all questions."""
    empty, errors = folder / "empty", folder / "errors.log"
    empty.mkdir()
    code = f"import spark_application; spark_application.answer({dict(first)!r}, {dict(then)!r})"
    with open(errors, "wb") as complaints:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=empty,
            env={**environment, "TZ": "America/New_York"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
    try:
        yield Application(_told(process, errors), empty, process, errors)
        rest, _ = process.communicate(timeout=SECONDS)
        assert (process.returncode, rest, errors.read_text(encoding="utf-8")) == (0, "", "")
        assert list(empty.iterdir()) == []
    finally:
        process.kill()
        process.wait()


def _told(process: Process, errors: Path, question: str = "") -> Any:
    assert process.stdin and process.stdout
    overdue = threading.Timer(SECONDS, process.kill)
    overdue.start()
    try:
        process.stdin.write(question)
        process.stdin.flush()
        line = process.stdout.readline()
    finally:
        overdue.cancel()
    assert line, errors.read_text(encoding="utf-8")[-2000:]
    told = json.loads(line)
    assert "failed" not in told, told["failed"]
    return told["answer"]


# In the process of the application


def answer(first: Mapping[str, Any], then: Mapping[str, Any]) -> None:
    """Do the job, then answer one question a line until there are no more."""
    from spark_job import job

    from workbench.engine.session import spark_session

    spark = spark_session(**first)
    _tell(job, spark)
    spark.stop()
    spark = spark_session(**then)
    questions = {one.__name__: one for one in (load, missed, pairs)}
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        _tell(questions[question], spark, *arguments)
    spark.stop()


def _tell(question: Callable[..., Any], *arguments: Any) -> None:
    try:
        told = {"answer": question(*arguments)}
    except Exception:
        told = {"failed": traceback.format_exc()[-2000:]}
    print(json.dumps(told), flush=True)


def load(spark: Any, case: str, folders: list[str]) -> None:
    """Load these folders into a new case."""
    from workbench import Case

    Case.create(case).load(folders, spark)


def missed(spark: Any, case: str) -> tuple[str, list[str]]:
    """What the diagnosis of a case rests on, and the changes that it finds missing."""
    from workbench import Case
    from workbench.diagnosis.case_diagnosis import diagnose

    found = diagnose(Case.open(case), spark=spark)
    return found["run"]["evidence"], [row["position"] for row in found["missing"]]


def pairs(spark: Any, case: str) -> list[dict[str, Any]]:
    """The pair matrix of a case, every position counted."""
    from workbench import Case
    from workbench.replication.changelog.diagnosis.pair_matrix import counted_logs, pair_matrix
    from workbench.topology.topology import logs_of, topology

    opened = Case.open(case)
    shown = topology(opened)
    return pair_matrix(shown, counted_logs(spark, shown, logs_of(opened, shown)))
