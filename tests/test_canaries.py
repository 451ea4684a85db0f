"""Secrets in what was collected: none of them is in anything that is written, shown or sent, whoever makes it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from conftest import ROOT
from incident_samples import FOLDER, LOST

from workbench.cli import main

EACH = 9
"""Canaries in one kind of file."""


def canary(kind: str, number: int) -> str:
    return f"canary-{kind}-{number}-hunter2"


def planted(kind: str, text: str) -> str:
    """The text of a collected file with secrets in it, as servers and tools write them."""
    numbers = iter(range(EACH))

    def some(pattern: str, instead: str) -> str:
        """Behind the first so many places that fit."""

        def put(found: re.Match[str]) -> str:
            number = next(numbers, None)
            return found[0] if number is None else found[0] + instead.format(canary(kind, number))

        return re.sub(pattern, put, text, flags=re.MULTILINE)

    if kind == "changelog.ldif":
        return re.sub(
            r"^change:: (.*(?:\n .*)*)", lambda found: _with_password(found, numbers), text, flags=re.MULTILINE
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
            "nsDS5ReplicaCredentials: .*", lambda _: f"nsDS5ReplicaCredentials: {canary(kind, next(numbers, 0))}", text
        )
    if kind == "access.log":
        return some(
            r"^.* SRCH .*\n", '[20/Nov/2026:15:04:50 +0000] conn=9 op=9 SRCH base="" filter="(userPassword={})"\n'
        )
    return text


def _with_password(found: re.Match[str], numbers: Iterator[int]) -> str:
    number = next(numbers, None)
    if number is None:
        return found[0]
    body = base64.b64decode(found[1].replace("\n ", "")).decode()
    body += f"replace: userPassword\nuserPassword: {canary('changelog.ldif', number)}\n-\n"
    return f"change:: {base64.b64encode(body.encode()).decode()}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a case leads to: the case, runs of two notebooks, a plan, reports, an export."""
    place = tmp_path_factory.mktemp("canaries")
    kinds = set()
    for folder in ("1-before", "2-during"):
        (place / "collected" / folder).mkdir(parents=True)
        for path in sorted((FOLDER / LOST / folder).iterdir()):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            name = path.name.removesuffix(".gz")
            kind = name.partition(".")[2]
            text = planted(kind, data.decode())
            kinds |= {kind} if "canary-" in text or "hunter2" in text or _packed(text) else set()
            (place / "collected" / folder / name).write_text(text)
    assert kinds == {
        "changelog.ldif",
        "export-replication.ldif",
        "audit.log",
        "errors.log",
        "agreements.ldif",
        "access.log",
    }
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
        runs = "runs: [{notebook: 60_report}]"  # it shows what the others show
        nightly.write_text(f"cases: [case]\n{runs}\n")
        run("check", nightly, "--junit", made / "junit.xml", "--json", made / "check.json")
        run("check", nightly, "--no-run", "--accept", "--reason", "known")
        forms = ("--json", made / "report.json", "--markdown", made / "report.md", "--case-export", made / "export.zip")
        run("report", case, *forms)
        run("report", case, "--unredacted", "--reason", "a test", "--out", made / "whole.html")
        row = json.loads((made / "findings.json").read_text())["missing"][0]
        run("explain", row["position"], "--case", case)
        # What goes wrong says what it was about: a cell that fails, a file that is none.
        broken = made / "broken.changelog.ldif"
        changelog = next((place / "collected" / "2-during").glob("s1.changelog.ldif")).read_text()
        broken.write_text(
            changelog.replace("changetype: add", "changetype:: !!").replace("csn: ", "csn userPassword: ")
        )
        run("inspect", broken, codes=(0, 1, 2))
        broken.unlink()
    (made / "output.txt").write_text("\n".join(said))
    return made


def _packed(text: str) -> bool:
    bodies = re.findall(r"^change:: (.*(?:\n .*)*)", text, re.MULTILINE)
    return any(b"hunter2" in base64.b64decode(body.replace("\n ", "")) for body in bodies)


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
        elif path.is_file():
            yield name, path.read_text("utf-8", "replace")


def test_no_secret_is_in_anything_that_is_made_of_a_case(place: Path) -> None:
    seen: dict[str, int] = {}
    for name, text in artefacts(place):
        kind = Path(name).suffix
        seen[kind] = seen.get(kind, 0) + 1
        for one in (text, _unpacked(text)):
            assert "hunter2" not in one, name
    wanted = {".ipynb", ".html", ".json", ".md", ".parquet", ".csv", ".txt", ".xml", ".yaml", ".ldif", ".sh"}
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
