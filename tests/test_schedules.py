"""The examples for schedulers: each is checked by the scheduler's own tool where that is installed, and calls what there is."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from conftest import ROOT, need

from workbench.cli import main

FOLDER = ROOT / "docs" / "schedules"
EXAMPLES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".service", ".cron", ".py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_example_calls_a_command_with_options_that_it_has(path: Path) -> None:
    calls = re.findall(r"\.venv/bin/workbench ([^\n\"]+)", path.read_text(encoding="utf-8"))
    assert calls
    for call in calls:
        verb, *words = shlex.split(call)
        command = main.commands[verb]
        with click.Context(command) as context:
            command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_example_has_a_folder_that_its_user_may_write(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    written = {str(Path(found).parent) for found in re.findall(r"--junit (\S+?)[\"\n]", text)}
    assert written == {"/var/lib/workbench"}
    if path.suffix == ".service":
        assert "\nStateDirectory=workbench\n" in text, "systemd makes it, and sets STATE_DIRECTORY"
    else:
        assert re.search(r"STATE_DIRECTORY\W+/var/lib/workbench", text)
        assert "install -d -o workbench -m 750 /var/lib/workbench" in text


def test_systemd_takes_its_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    need("systemd-analyze", analyze)
    for path in FOLDER.glob("workbench-check.*"):
        # The user and the program of the example are not on this machine.
        text = path.read_text(encoding="utf-8").replace("/opt/workbench/.venv/bin/workbench", "/bin/true")
        (tmp_path / path.name).write_text(text.replace("User=workbench\n", ""))
    for unit in ("workbench-check.service", "workbench-check.timer"):
        made = subprocess.run(
            [str(analyze), "verify", str(tmp_path / unit)], capture_output=True, text=True, timeout=60
        )
        assert "workbench-check" not in made.stderr, made.stderr
        assert made.returncode == 0
    (tmp_path / "workbench-check.timer").write_text("[Timer]\nOnCalender=daily\n")
    wrong = subprocess.run(
        [str(analyze), "verify", str(tmp_path / "workbench-check.timer")], capture_output=True, text=True, timeout=60
    )
    assert "OnCalender" in wrong.stderr, "the tool sees what it is to see"


def test_the_lines_for_cron_have_a_time_a_user_and_a_command() -> None:
    lines = [
        line
        for line in (FOLDER / "workbench.cron").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#") and not re.match(r"\w+=", line)
    ]
    assert lines
    for line in lines:
        minute, hour, *days, user, command = line.split(None, 6)
        assert (0 <= int(minute) < 60, 0 <= int(hour) < 24, days, user) == (True, True, ["*"] * 3, "workbench")
        assert "%" not in command, "cron takes it for a line end"


def test_the_dag_asks_for_what_airflow_3_has_without_a_warning() -> None:
    tree = ast.parse((FOLDER / "workbench_dag.py").read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    # `airflow.DAG` and `airflow.operators.bash` are the names of Airflow 2: Airflow 3 takes them with a warning.
    assert {one for one in imported if one.startswith("airflow")} == {
        "airflow.sdk.DAG",
        "airflow.providers.standard.operators.bash.BashOperator",
    }


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("airflow"), reason="Airflow is not installed: it stays out of the lock")
def test_airflow_runs_the_dag_and_what_it_calls_decides(tmp_path: Path) -> None:
    program = tmp_path / "opt" / ".venv" / "bin" / "workbench"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$* in $STATE_DIRECTORY" >> called\nexit $CODE\n')
    program.chmod(0o755)
    dags = tmp_path / "dags"
    dags.mkdir()
    text = (FOLDER / "workbench_dag.py").read_text(encoding="utf-8")
    (dags / "workbench_dag.py").write_text(text.replace("/opt/workbench", str(tmp_path / "opt")), encoding="utf-8")

    def airflow(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "CODE": str(code),
        }
        return subprocess.run(
            ["airflow", *words], env={**os.environ, **env}, capture_output=True, text=True, timeout=300
        )

    assert airflow("db", "migrate").returncode == 0
    assert airflow("dags", "list-import-errors", "--local").returncode == 0
    for day, code in enumerate((0, 1, 2, 3), start=1):
        made = airflow("dags", "test", "workbench_check", f"2026-11-0{day}", code=code)
        assert (made.returncode == 0) == (code == 0), made.stdout
    called = (tmp_path / "opt" / "called").read_text().splitlines()
    assert (
        called == ["check /etc/workbench/nightly.yaml --junit /var/lib/workbench/nightly.xml in /var/lib/workbench"] * 4
    )
