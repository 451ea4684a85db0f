"""Secrets in what was collected: none of them is in anything that is written, shown or sent, whoever makes it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from conftest import CHROMIUM, ROOT
from incident_samples import FOLDER, LOST
from test_report_page import text_of

from workbench.cli import main

EACH = 9
"""Canaries in one kind of file."""


def canary(file: str, number: int) -> str:
    return f"canary-{file}-{number}-hunter2"


def planted(file: str, text: str) -> str:
    """The text of a collected file with secrets in it, as servers and tools write them: each file has its own."""
    kind = file.partition(".")[2]
    numbers = iter(range(EACH))

    def some(pattern: str, instead: str) -> str:
        """Behind the first so many places that fit."""

        def put(found: re.Match[str]) -> str:
            number = next(numbers, None)
            return found[0] if number is None else found[0] + instead.format(canary(file, number))

        return re.sub(pattern, put, text, flags=re.MULTILINE)

    if kind == "changelog.ldif":
        return re.sub(
            r"^change:: (.*(?:\n .*)*)", lambda found: _with_password(found, file, numbers), text, flags=re.MULTILINE
        )
    if kind == "export-replication.ldif":
        return some(r"^uid: .*\n", "userPassword;vucsn-6b006176000000010000: {}\n")
    if kind == "audit.log":
        return some(r"^mail: .*\n", "userPassword: {}\n")
    if kind == "errors.log":
        return some(
            r"^.* - State: .*\n|^.*wait_for_changes\n",
            "[20/Nov/2026:15:04:50 +0000] - ERR - plugin - userPassword={}\n",
        )
    if kind == "agreements.ldif":
        return re.sub(
            "nsDS5ReplicaCredentials: .*", lambda _: f"nsDS5ReplicaCredentials: {canary(file, next(numbers, 0))}", text
        )
    if kind == "access.log":
        return some(
            r"^.* SRCH .*\n", '[20/Nov/2026:15:04:50 +0000] conn=9 op=9 SRCH base="" filter="(userPassword={})"\n'
        )
    return text


def _with_password(found: re.Match[str], file: str, numbers: Iterator[int]) -> str:
    number = next(numbers, None)
    if number is None:
        return found[0]
    body = base64.b64decode(found[1].replace("\n ", "")).decode()
    body += f"replace: userPassword\nuserPassword: {canary(file, number)}\n-\n"
    return f"change:: {base64.b64encode(body.encode()).decode()}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a case leads to: the case, runs of two notebooks, a plan, reports, an export."""
    place = tmp_path_factory.mktemp("canaries")
    kinds, canaries = set(), set()
    for folder in ("1-before", "2-during"):
        (place / "collected" / folder).mkdir(parents=True)
        for path in sorted((FOLDER / LOST / folder).iterdir()):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            name = path.name.removesuffix(".gz")
            kind = name.partition(".")[2]
            text = planted(f"{folder}-{name}", data.decode())
            mine = {*re.findall(r"canary-\S+?-hunter2", text + _bodies(text))}
            canaries |= mine
            kinds |= {kind} if mine else set()
            (place / "collected" / folder / name).write_text(text)
    assert kinds == {
        "changelog.ldif",
        "export-replication.ldif",
        "audit.log",
        "errors.log",
        "agreements.ldif",
        "access.log",
    }
    assert len(canaries) >= 50
    made = place / "made"
    made.mkdir()
    said = []

    def run(*words: object, codes: tuple[int, ...] = (0, 1)) -> None:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code in codes, result.output
        said.append(result.output)

    case = made / "case"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        run(
            "inspect",
            *sorted((place / "collected" / "2-during").iterdir()),
            "--json",
            made / "inspect.json",
            codes=(0, 2),
        )
        run("load", place / "collected" / "1-before", place / "collected" / "2-during", "--case", case)
        run("diagnose", case, "--json", made / "findings.json", "--csv", made / "missing.csv")
        run("plan", case, "--bundle", made / "bundle")
        nightly = made / "nightly.yaml"
        runs = "runs: [{notebook: 60_report}, {notebook: 23_missed_changes}]"  # they show what the others show
        nightly.write_text(f"cases: [case]\n{runs}\ncheck: {{max_age: 1d}}\n")
        run("check", nightly, "--junit", made / "junit.xml", "--json", made / "check.json")
        run("check", nightly, "--no-run", "--accept", "--reason", "known", codes=(0,))
        # A cell that fails shows what it was about: of a case with a damaged part.
        shutil.copytree(case, made / "damaged", ignore=shutil.ignore_patterns("runs", "report.*"))
        part = max((made / "damaged" / "evidence").rglob("*.parquet"), key=lambda path: path.stat().st_size)
        part.write_bytes(part.read_bytes()[:-40])
        failing = made / "failing.yaml"
        failing.write_text("cases: [damaged]\nruns: [{notebook: 23_missed_changes}]\n")
        run("check", failing, "--junit", made / "failed.xml", codes=(2, 3))
        part.unlink()
        forms = ("--json", made / "report.json", "--markdown", made / "report.md", "--case-export", made / "export.zip")
        paper = ("--pdf", made / "report.pdf") if Path(CHROMIUM).exists() else ()
        run("report", case, *forms, *paper)
        run("report", case, "--unredacted", "--reason", "a test", "--out", made / "whole.html")
        row = json.loads((made / "findings.json").read_text())["missing"][0]
        run("explain", row["position"], "--case", case)
        # What goes wrong says what it was about: a file that is none.
        broken = made / "broken.changelog.ldif"
        changelog = next((place / "collected" / "2-during").glob("s1.changelog.ldif")).read_text()
        broken.write_text(
            changelog.replace("changetype: add", "changetype:: !!").replace("csn: ", "csn userPassword: ")
        )
        run("inspect", broken, codes=(0, 1, 2))
        broken.unlink()
    (made / "output.txt").write_text("\n".join(said))
    return made


def _bodies(text: str) -> str:
    """What the records of a changelog hold, unpacked."""
    bodies = re.findall(r"^change:: (.*(?:\n .*)*)", text, re.MULTILINE)
    return "\n".join(base64.b64decode(body.replace("\n ", "")).decode("latin-1") for body in bodies)


def artefacts(place: Path) -> Iterator[tuple[str, str]]:
    """Everything that was written, as text: Parquet by its values, archives by what is in them."""
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.suffix == ".parquet":
            yield name, json.dumps(pq.read_table(path).to_pylist(), default=str)
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for inner in archive.namelist():
                    data = archive.read(inner)
                    if inner.endswith(".parquet"):
                        (path.parent / "inner").write_bytes(data)
                        yield (
                            f"{name}/{inner}",
                            json.dumps(pq.read_table(path.parent / "inner").to_pylist(), default=str),
                        )
                        (path.parent / "inner").unlink()
                    else:
                        yield f"{name}/{inner}", data.decode("utf-8", "replace")
        elif path.suffix == ".pdf":
            yield name, text_of(path.read_bytes())
        elif path.is_file():
            yield name, path.read_text("utf-8", "replace")


def test_no_secret_is_in_anything_that_is_made_of_a_case(place: Path) -> None:
    seen: dict[str, int] = {}
    for name, text in artefacts(place):
        kind = Path(name).suffix
        seen[kind] = seen.get(kind, 0) + 1
        for one in (text, _unpacked(text)):
            assert "hunter2" not in one, name
    assert any(name.startswith("damaged/") and name.endswith(".ipynb") for name, _ in artefacts(place)), "what failed"
    wanted = {".pdf"} if Path(CHROMIUM).exists() else set()
    wanted |= {".jsonl", ".ipynb", ".html", ".json", ".md", ".parquet", ".csv", ".txt", ".xml", ".yaml", ".ldif", ".sh"}
    assert wanted <= seen.keys(), wanted - seen.keys()


def _unpacked(text: str) -> str:
    """What runs of base64 letters in the text stand for."""
    found: list[Any] = []
    for run in re.findall(r"[A-Za-z0-9+/\n ]{24,}={0,2}", text):
        packed = re.sub(r"[\n ]", "", run)
        for begin in range(4):
            part = packed[begin:].rstrip("=")
            found.append(base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1"))
    return "".join(found)
