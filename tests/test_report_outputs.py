"""The command `report`: where its outputs may go, what it does when they cannot, who may read them, and what it writes down."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
from test_report import SECRET_NAMES, copied, run
from test_secrets import CANARY

from workbench.diagnosis.incident import Incident
from workbench.repair.case_plan import plan_for
from workbench.repair.plan_progress import JOURNAL, state_of
from workbench.report import export
from workbench.report.redaction import NAME as KEPT_NAMES
from workbench.report.report_pipeline import REPORTS, report_without_names


def test_two_reports_differ_in_the_line_of_the_run_alone(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan_for(case)
    made = []
    for at in range(2):
        out = [tmp_path / f"{at}.{kind}" for kind in ("html", "json", "md", "zip")]
        done = run(case.folder, "--out", out[0], "--json", out[1], "--markdown", out[2], "--case-export", out[3])
        assert done.exit_code == 0, done.output
        made.append([one.read_bytes() for one in out])
        if at == 0:
            late = made[0][0].replace(b"Made 20", b"Made 19")
    assert late != made[0][0]
    for first, second in zip(*made, strict=True):
        lines = [(a, b) for a, b in zip(first.split(b"\n"), second.split(b"\n"), strict=True) if a != b]
        assert all(b"Made " in a or b'"at": "' in a for a, _ in lines) and len(lines) <= 1
    assert made[0][3] == made[1][3]


def test_the_default_is_a_page_in_the_case(tmp_path: Path) -> None:
    case = copied(tmp_path)
    done = run(case.folder)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("12 changes are MISSING on server-3")
    html = (case.folder / "report.html").read_text()
    assert all(one not in html for one in SECRET_NAMES) and "acme" not in html
    assert sorted(path.name for path in case.folder.iterdir() if path.name.startswith((".report", ".pseudonyms"))) == []


def test_all_names_need_a_reason_which_is_written_down(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan = plan_for(case)
    for words in (["--unredacted"], ["--unredacted", "--reason", " "], ["--reason", "x"]):
        assert run(case.folder, *words).exit_code == 2
    refused = run(case.folder, "--unredacted", "--reason", "audit", "--case-export", tmp_path / "x.zip")
    assert refused.exit_code == 2
    assert not (case.folder / "report.html").exists() and not (case.folder / REPORTS).exists()
    done = run(case.folder, "--unredacted", "--reason", f"audit, password={CANARY}")
    assert done.exit_code == 0, done.output
    assert "k1u00001" in (case.folder / "report.html").read_text()
    (record,) = [json.loads(line) for line in (case.folder / REPORTS).read_text().splitlines()]
    assert record["what"] == "unredacted" and record["reason"].startswith("audit") and record["by"]["pid"]
    assert CANARY not in json.dumps(record)
    assert not (case.folder / JOURNAL).exists() and str(state_of(case.folder, plan)) == "nothing was applied"


def test_a_case_that_cannot_be_written_has_a_report_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("workbench.report.report_pipeline.keep", refused)
    case = copied(tmp_path)
    done = run(case.folder, "--out", tmp_path / "r.html")
    assert done.exit_code == 0 and "next report will have others" in done.stderr
    assert (tmp_path / "r.html").exists() and not (case.folder / KEPT_NAMES).exists()
    monkeypatch.setattr("workbench.report.report_pipeline.Journal.append", refused)
    done = run(case.folder, "--out", tmp_path / "all.html", "--unredacted", "--reason", "x")
    assert done.exit_code == 2 and not (tmp_path / "all.html").exists()


def test_an_earlier_snapshot_has_a_report_of_its_own(tmp_path: Path) -> None:
    case = copied(tmp_path)
    done = run(case.folder, "--as-of", "1-before", "--json", "-")
    assert done.exit_code == 0
    made = json.loads(done.stdout)
    assert made["case"]["snapshot"] == "snapshot-1" and made["missing"] == []


def test_nothing_of_the_case_is_overwritten(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan_for(case)
    (case.folder / "sub").mkdir()
    os.symlink(case.folder / "evidence" / "manifest.json", tmp_path / "link")
    os.symlink(case.folder / "evidence" / "manifest.json", case.folder / "report.md")
    os.symlink("round", tmp_path / "round")
    before = {path: path.read_bytes() for path in case.folder.rglob("*") if path.is_file()}
    part = next((case.folder / "evidence").rglob("*.parquet"))
    assert part.parent != case.folder / "evidence"
    given = [
        *(
            case.folder / name
            for name in ("case.yaml", "plan.json", "journal.jsonl", "pseudonyms.json", "reports.jsonl")
        ),
        *(
            case.folder / name
            for name in ("evidence/manifest.json", "new.json", "sub/report.html", "report.md", ".owner")
        ),
        part,
        part.with_name("new.json"),
        case.folder / "evidence" / ".." / "evidence" / "x",
        tmp_path / "link",
        tmp_path / "round",
        Path(case.inputs[0].path),
    ]
    for path in given:
        for option in ("--out", "--json", "--markdown", "--pdf", "--case-export"):
            done = run(case.folder, option, path)
            assert (done.exit_code, done.output.count("workbench: ")) == (2, 1), (option, path, done.output)
    assert run(case.folder, "--json", tmp_path / "x", "--markdown", tmp_path / "x").exit_code == 2
    assert run(case.folder, "--json", "-", "--out", "-").exit_code == 2
    assert run(tmp_path / "nowhere").exit_code == 2
    (case.folder / "report.md").unlink()
    assert {path: path.read_bytes() for path in before if path.name != "report.md"} == {
        path: data for path, data in before.items() if path.name != "report.md"
    }


def test_no_output_goes_into_another_case(tmp_path: Path) -> None:
    case = copied(tmp_path)
    shutil.copytree(case.folder, tmp_path / "other")
    for name in ("report.html", "evidence/x"):
        done = run(case.folder, "--out", tmp_path / "other" / name)
        assert done.exit_code == 2 and "would write into a case" in done.output


def test_every_form_may_lie_in_the_case_by_its_name(tmp_path: Path) -> None:
    case = copied(tmp_path)
    done = run(case.folder, "--json", case.folder / "report.json", "--markdown", case.folder / "report.md",
               "--case-export", case.folder / "report.zip")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert all((case.folder / f"report.{kind}").stat().st_size for kind in ("html", "json", "md", "zip"))


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    case = copied(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    done = run(case.folder, "--case-export", tmp_path / "pipe")
    reader.join(60)
    assert done.exit_code == 0, done.output
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert "report.json" in zipfile.ZipFile(io.BytesIO(taken[0])).namelist()


def test_a_link_is_followed(tmp_path: Path) -> None:
    case = copied(tmp_path)
    (tmp_path / "there").mkdir()
    os.symlink(tmp_path / "there" / "x.zip", tmp_path / "x.zip")
    drafts: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        replace = os.replace
        patch.setattr(os, "replace", lambda source, to: (drafts.append(Path(source)), replace(source, to))[1])
        assert run(case.folder, "--case-export", tmp_path / "x.zip").exit_code == 0
    assert (tmp_path / "x.zip").is_symlink() and zipfile.is_zipfile(tmp_path / "there" / "x.zip")
    assert tmp_path / "there" in {one.parent for one in drafts}, "the draft lies on the disk of the file"


def test_what_others_may_read_is_up_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = copied(tmp_path)
    printer = tmp_path / "chromium"
    printer.write_text('#!/bin/sh\nfor one; do case $one in --print-to-pdf=*) echo %PDF > "${one#*=}";; esac; done\n')
    printer.chmod(0o755)
    monkeypatch.setattr("workbench.report.export.browser", lambda: str(printer))
    before = os.umask(0o077)
    try:
        outputs = ("--pdf", tmp_path / "x.pdf", "--out", tmp_path / "x.html")
        done = run(case.folder, *outputs, "--unredacted", "--reason", "audit")
        export = run(case.folder, "--case-export", tmp_path / "x.zip")
    finally:
        os.umask(before)
    assert (done.exit_code, export.exit_code) == (0, 0), done.output
    assert {stat.S_IMODE((tmp_path / f"x.{kind}").stat().st_mode) for kind in ("pdf", "html", "zip")} == {0o600}


def test_standard_output_holds_one_form_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = copied(tmp_path)
    monkeypatch.chdir(tmp_path)
    html = run(case.folder, "--out", "-")
    assert html.exit_code == 0 and html.stdout.startswith("<!doctype html>") and html.stdout.endswith("</html>")
    packed = run(case.folder, "--case-export", "-")
    assert packed.exit_code == 0 and "report.json" in zipfile.ZipFile(io.BytesIO(packed.stdout_bytes)).namelist()
    assert packed.stdout_bytes.startswith(b"PK") and not (tmp_path / "-").exists()


def test_a_full_disk_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = copied(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workbench.cli.terminal.write_whole", full)
    done = run(case.folder, "--out", tmp_path / "x.html")
    assert done.exit_code == 2 and "the disk is full" in done.output and "free some space" in done.output
    monkeypatch.setattr("workbench.report.export.zipfile.ZipFile.open", full)
    done = run(case.folder, "--case-export", tmp_path / "x.zip")
    assert done.exit_code == 2 and "the disk is full" in done.output and "folder that exists" not in done.output
    assert not (tmp_path / "x.zip").exists() and not list(tmp_path.glob(".*"))


def test_a_damaged_list_of_reports_speaks_of_reports(tmp_path: Path) -> None:
    case = copied(tmp_path)
    (case.folder / REPORTS).write_text('{"n": 7, "at": "", "what": "", "plan": ""}\n')
    done = run(case.folder, "--unredacted", "--reason", "audit")
    assert done.exit_code == 2 and not (case.folder / "report.html").exists()
    assert "the list of reports with all names is damaged" in done.output and "move it out of the case" in done.output
    assert "look at the servers" not in done.output and "plan again" not in done.output


def test_damaged_pseudonyms_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    case = copied(tmp_path)
    assert run(case.folder, "--out", tmp_path / "x.html").exit_code == 0
    kept = json.loads((case.folder / KEPT_NAMES).read_text())
    kept["numbered"]["server"] = {"s1": 1, "s2": 1}
    (case.folder / KEPT_NAMES).write_text(json.dumps(kept))
    done = run(case.folder)
    assert done.exit_code == 2 and "two names of kind server have one number" in done.output
    assert not (case.folder / "report.html").exists()


def test_without_a_browser_a_pdf_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = copied(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(case.folder, "--pdf", tmp_path / "x.pdf")
    assert done.exit_code == 2 and "no browser" in done.output
    assert not (case.folder / "report.html").exists()


def test_a_report_that_cannot_keep_its_pseudonyms_leaves_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = copied(tmp_path)
    real = export._pack

    def meanwhile(incident: Incident, *rest: Any) -> None:
        real(incident, *rest)
        report_without_names(incident)  # another report takes the same numbers

    monkeypatch.setattr(export, "_pack", meanwhile)
    (tmp_path / "old.zip").write_text("of yesterday")
    for name in ("x.zip", "old.zip"):
        (case.folder / KEPT_NAMES).unlink(missing_ok=True)
        done = run(case.folder, "--case-export", tmp_path / name)
        assert done.exit_code == 2 and "another report of this case was made meanwhile" in done.output
    assert not (tmp_path / "x.zip").exists() and not list(tmp_path.glob(".*"))
    assert (tmp_path / "old.zip").read_text() == "of yesterday" and not (case.folder / "report.html").exists()
