"""The examples for schedulers: each is checked by the scheduler's own tool where that is installed, and calls what there is."""

from __future__ import annotations

import ast
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


def test_the_dag_is_python_and_asks_airflow_for_what_it_has() -> None:
    tree = ast.parse((FOLDER / "workbench_dag.py").read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert {one for one in imported if one.startswith("airflow")} == {
        "airflow.DAG",
        "airflow.operators.bash.BashOperator",
    }
