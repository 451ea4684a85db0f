"""The command line as a user meets it: what it prints, what it writes, how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import ROOT, need

from workbench import __version__, cli
from workbench.cli import main

INCIDENT = Path(__file__).parent / "incidents" / "missed_behind_equal_vectors"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_version_and_help_name_the_verbs() -> None:
    assert __version__ in run("--version").stdout
    helped = run("--help").stdout
    assert all(verb in helped for verb in ("demo", "load", "inspect", "diagnose", "explain", "scenario"))


def test_inspect_says_what_a_file_holds(tmp_path: Path) -> None:
    log = INCIDENT / "2-during" / "s3.changelog.ldif"
    shown = run("inspect", log)
    assert shown.exit_code == 0
    assert "ds389.changelog-ldif" in shown.stdout
    assert "origin 1: 9 from 6b00617e000000010000 to 6b00618f000a00010000" in shown.stdout
    out = tmp_path / "out.json"
    assert run("inspect", log, tmp_path / "gone", "--json", out).exit_code == 0
    first, second = json.loads(out.read_text())
    assert (first["rows"], first["detail"]["csns"], first["detail"]["helpers"]) == (20, 17, 3)
    assert (second["format"], second["rejected"]) == ("unknown", 1)
    assert json.loads(run("inspect", log, "--json", "-").stdout)[0] == first


def test_a_wrong_guess_cannot_be_missed(tmp_path: Path) -> None:
    shutil.copy(INCIDENT / "2-during" / "s3.changelog.ldif", tmp_path / "s3.access.log")
    (tmp_path / "s3.errors.log").write_bytes(b"\x00\x01")
    shown = run("inspect", tmp_path / "s3.access.log", tmp_path / "s3.errors.log").stdout
    assert "ds389.changelog-ldif" in shown
    assert "unknown" in shown
    assert "rejected at 0: binary data of no known format" in shown


def test_load_shows_each_file_and_what_the_servers_hold(spark, tmp_path: Path) -> None:
    done = run("load", *(INCIDENT / name for name in ("1-before", "2-during")), "--case", tmp_path / "case")
    assert done.exit_code == 0, done.output
    assert "dc=example,dc=com" in done.stdout
    assert "6b00618f000a00010000" in done.stdout
    table = run("load", INCIDENT / "2-during", "--case", tmp_path / "case", "--csv", "-")
    held = list(csv.DictReader(io.StringIO(table.stdout)))
    assert {row["server"] for row in held} == {"s1", "s2", "s3"}
    about = json.loads(run("load", INCIDENT / "2-during", "--case", tmp_path / "case", "--json", "-").stdout)
    assert about["system"] == "ds389"
    assert [str(row["changes"]) for row in about["holdings"]] == [row["changes"] for row in held]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["load", "gone", "--case", "case"], "the folder does not exist (gone). give the folder"),
        (["load", "empty", "--case", "case"], "holds no files"),
        (["load", "empty", "--case", "full"], "has other files in it"),
        (["inspect", "full/x", "--json", "gone/out.json"], "cannot write"),
        (["load", "full", "--case", "case", "--json", "gone/out.json"], "cannot write"),
        (["load", "full", "--case", "case", "--csv", "empty"], "cannot write"),
        (["load", "full", "--case", "case", "--csv", "full/x"], "overwrite an input"),
        (["load", "full", "--case", "case", "--json", "full/out.json"], "overwrite an input"),
        (["load", "full", "--case", "case", "--json", "case/case.yaml"], "or the case itself"),
        (["load", "full", "--case", "case", "--csv", "case/evidence/manifest.json"], "or the case itself"),
        (["load", "full"], "Missing option '--case'"),
        (["inspect", "full/x", "--json", "-", "--csv", "-"], "cannot both go to standard output"),
        (["inspect", "full/x", "--json", "out", "--csv", "./out"], "cannot both go to the same file"),
        (["load", "full", "--case", "case", "--json", "-", "--csv", "-"], "cannot both go to standard output"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    failed = run(*arguments)
    assert failed.exit_code == 2
    assert words in failed.stderr
    assert "Traceback" not in failed.output
    assert not failed.stdout
    assert not (tmp_path / "case").exists()
    assert not (tmp_path / "out").exists()


def test_names_of_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "s1\x1b[31m\nforged row\u2028.log"
    path.write_text("x\n")
    shown = run("inspect", path).stdout
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
    formula = run("inspect", path, "--csv", "-").stdout
    assert "\x1b" not in formula


def test_names_of_files_stay_on_their_line_where_findings_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "s1\nforged row.changelog.ldif"
    shutil.copy(INCIDENT / "2-during" / "s3.changelog.ldif", path)
    assert "\nforged" not in run("inspect", path).stdout


def test_the_demo_loads_a_real_incident_and_says_what_to_do_next(spark, monkeypatch, tmp_path: Path) -> None:
    shown = run("demo", "--case", tmp_path / "case")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("A real incident")
    assert f"case: {tmp_path / 'case'}" in shown.stdout
    told = shown.stdout.partition("Next:\n")[2]
    (files,) = re.findall(r"inspect (\S+/2-during)/\*", told)
    assert (ROOT / files).is_dir()
    assert "12 changes are MISSING on s3" in shown.stdout
    (position,) = re.findall(r"explain (\S+) --case", told)
    assert "\ns3: MISSING" in run("explain", position, "--case", tmp_path / "case").stdout
    assert "diagnose FOLDER" in told
    assert "make lab" in told
    assert "pseudonyms could not be kept" not in shown.stderr

    def full(*about: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.report.report_pipeline.keep", full)
    again = run("demo", "--case", tmp_path / "case")
    assert again.exit_code == 0
    assert "known already" in again.stderr
    assert "the pseudonyms could not be kept in the case (No space left on device)" in again.stderr


def test_what_to_do_next_is_told_as_this_shell_can_start_it(monkeypatch, tmp_path: Path) -> None:
    program = tmp_path / ".venv" / "bin" / "workbench"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    for typed in (".venv/bin/workbench", str(program)):
        monkeypatch.setattr(sys, "argv", [typed, "demo"])
        assert cli.evidence._as_typed() == ".venv/bin/workbench"
    monkeypatch.setenv("PATH", str(program.parent))
    assert cli.evidence._as_typed() == "workbench"


def test_long_work_without_a_terminal_tells_how_far_it_is_in_plain_lines(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli.terminal.Reading, "EVERY", 0.0)
    logs = [INCIDENT / "2-during" / name for name in ("s3.changelog.ldif", "s1.replica.ldif")]
    size = sum(log.stat().st_size for log in logs) / 1e6
    for shown in (run("inspect", *logs), run("load", INCIDENT / "2-during", "--case", tmp_path / "case")):
        lines = [line for line in shown.stderr.splitlines() if line.startswith("reading: ")]
        assert all(re.fullmatch(r"reading: [\d.]+ of [\d.]+ MB, [\d,]+ rows/s", line) for line in lines)
        done, whole = re.findall(r"[\d.]+(?= of| MB)", lines[-1])
        assert done == whole
    assert f"reading: {size:,.1f} of {size:,.1f} MB, " in run("inspect", *logs).stderr


def test_long_work_shows_bytes_and_rate_on_a_terminal_only(spark, tmp_path: Path) -> None:
    code = "from workbench.cli import main; main()"
    command = [sys.executable, "-c", code, "load", str(INCIDENT / "2-during"), "--case"]
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    subprocess.run([*command, str(tmp_path / "a")], stdout=subprocess.DEVNULL, stderr=theirs, check=True, timeout=120)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    assert b"reading:" in shown
    assert b"rows/s" in shown
    plain = subprocess.run([*command, str(tmp_path / "b")], capture_output=True, text=True, check=True, timeout=120)
    assert "reading:" not in plain.stderr
    assert plain.stderr.count("\n") == 1


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # a terminal whose other end is closed
        return b""


def test_output_never_replaces_a_device_a_link_or_an_input(tmp_path: Path) -> None:
    log = tmp_path / "s3.changelog.ldif"
    shutil.copy(INCIDENT / "2-during" / "s3.changelog.ldif", log)
    failed = run("inspect", log, "--json", log)
    assert failed.exit_code == 2
    assert "overwrite an input" in failed.stderr
    assert log.read_bytes() == (INCIDENT / "2-during" / "s3.changelog.ldif").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run("inspect", log, "--json", tmp_path / "link").exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    assert run("inspect", log, "--json", tmp_path / "pipe").exit_code == 0
    assert json.loads(reader.communicate(timeout=20)[0])


def test_load_says_in_one_line_for_each_kind_what_it_does_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    shutil.copy(INCIDENT / "1-before" / "s1.replica.ldif", folder)
    for n in range(8):
        (folder / f"inner{n}").mkdir()
    (folder / "odd\x1b[31m\nforged").symlink_to("gone")
    shown = run("load", folder, "--case", tmp_path / "case")
    lines = sorted(
        (line for line in shown.stderr.splitlines() if line.startswith("not read: ")), key=lambda line: "8" in line
    )
    assert len(lines) == 2
    assert lines[0].startswith("not read: 1 links to nothing")
    assert lines[0].endswith("now/odd\\x1b[31m\\nforged")
    assert lines[1].startswith("not read: 8 folders: a load does not descend")
    assert lines[1].endswith("now/inner0, now/inner1, now/inner2, now/inner3, now/inner4 and 3 more")
    again = run("load", folder, "--case", tmp_path / "case", "--json", "-")
    assert again.stderr.count("not read: ") == 2
    assert len(json.loads(again.stdout)["not_read"]) == 9


def test_every_reject_is_in_the_json_and_nothing_beside_the_contract(tmp_path: Path) -> None:
    log = tmp_path / "s1.changelog.ldif"
    good = "changetype: delete\ncsn: 6b005c13000000010000\nnsuniqueid: 1-2-3-4\ndn: cn=x\n\n"
    log.write_text(good + good.replace("csn: 6", "csn: x") * 1500)
    (seen,) = json.loads(run("inspect", log, "--json", "-").stdout)
    assert seen["rejected"] == len(seen["rejects"]) == 1500
    assert set(seen) == {"file", "format", "bytes", "rows", "accepted", "rejected", "rejects", "detail"}


def test_a_case_that_cannot_be_written_is_read_as_ever(tmp_path: Path) -> None:
    def bound_by_modes(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """The command line by a user whom file modes stop; they do not stop root."""
        drop = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
        need("setpriv", not drop or shutil.which("setpriv"))
        code = "from workbench.cli import main; main()"
        command = [*drop, sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    case = tmp_path / "case"
    before = INCIDENT / "1-before"
    held = run("load", before, "--case", case, "--csv", "-").stdout
    folders = [case, *(path for path in case.rglob("*") if path.is_dir())]
    for path in [*case.rglob("*"), case]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        again = bound_by_modes("load", before, "--case", case, "--csv", "-")
        assert (again.returncode, again.stdout) == (0, held), again.stderr
        assert "15 known already" in again.stderr
        more = bound_by_modes("load", INCIDENT / "2-during", "--case", case)
        assert more.returncode == 2
        assert f"the case cannot be written: Permission denied ({case}). copy the case" in more.stderr
        born = bound_by_modes("load", before, "--case", case / "new" / "case")
        assert born.returncode == 2
        assert "the case cannot be written: Permission denied" in born.stderr
    finally:
        for path in folders:
            path.chmod(0o755)


def test_what_could_not_be_read_whole_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    log = tmp_path / "s1.access.log"
    log.write_text("[20/Nov/2026:14:00:00.000000001 +0000] conn=7 op=1 RESULT err=0 tag=120 nentries=0 etime=0.1\n")
    shutil.copy(log, folder)
    (folder / "s2.bin").write_bytes(bytes(range(256)))
    shown = run("load", str(folder), "--case", str(tmp_path / "case"))
    assert shown.exit_code == 0
    assert "not whole: 1 binary data of no known format - now/s2.bin" in shown.stderr
