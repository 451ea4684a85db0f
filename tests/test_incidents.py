"""Real incidents with known truth: `diagnose` says of each what its expect.json says, and the same bytes in any order."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from collected import SHARED, needs_collected_files

from workbench import Case, diagnose
from workbench.cli import main
from workbench.diagnosis.diagnosis_text import untold
from workbench.model import SEVERITIES

HERE = Path(__file__).parent / "incidents"

Found = dict[str, Any]


def runs(root: Path, most: int = 2) -> Iterator[Any]:
    """The folders of each run, and what it must give. Runs that begin alike follow each other: they share the loads.

    Those of more than so many snapshots take long.
    """
    for file in sorted(root.rglob("expect.json")):
        for run in sorted(
            json.loads(file.read_text(encoding="utf-8")).get("runs", ()), key=lambda run: run["snapshots"]
        ):
            name = f"{file.parent.name}-{'-'.join(run['snapshots'])}"
            marks = [pytest.mark.slow] if len(run["snapshots"]) > most else []
            yield pytest.param([file.parent / label for label in run["snapshots"]], run, id=name, marks=marks)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Gives a case of these folders: the last one with more snapshots, if it begins alike."""
    last: list[tuple[list[Path], Case]] = []

    def load(folders: list[Path]) -> Case:
        if not last or folders[: len(last[0][0])] != last[0][0]:
            last[:] = [([], Case.create(tmp_path_factory.mktemp("incident") / "case"))]
        have, case = last[0]
        if folders != have:
            case.load(folders[len(have) :])
        last[0] = (folders, case)
        return case

    yield load


def disagreements(run: Found, found: Found, exit_code: int) -> list[str]:
    """What the diagnosis says otherwise than the truth of a run."""
    return [*_changes(run, found), *_pending(run, found), *_findings(run, found), *_exit(run, exit_code)]


def _positions(found: Found, key: str) -> dict[str, set[str]]:
    positions: dict[str, set[str]] = {}
    for row in found[key]:
        positions.setdefault(row["server"], set()).add(row["position"])
    return positions


def _changes(run: Found, found: Found) -> Iterator[str]:
    for key, besides in (("missing", run.get("missing_or_unknown", {})), ("stranded", {})):
        if key not in run:
            continue
        told = _positions(found, key)
        for server in sorted({*run[key], *told}):
            must, has = set(run[key].get(server, ())), told.get(server, set())
            if lacks := must - has:
                yield f"{key} on {server}: {sorted(lacks)} not found"
            if more := has - must - set(besides.get(server, ())):
                yield f"{key} on {server}: {sorted(more)} too many"


def _pending(run: Found, found: Found) -> Iterator[str]:
    for server, origins in run.get("pending", {}).items():
        for origin, numbers in origins.items():
            rows = [row for row in found["pending"] if (row["server"], row["origin"]) == (server, origin)]
            for key, number in numbers.items():
                if (told := sum(row[key] for row in rows)) != number:
                    yield f"pending on {server} of {origin}: {key} {told}, not {number}"
    if run.get("pending") == {} and found["pending"]:
        yield f"pending: {found['pending']}"


def _findings(run: Found, found: Found) -> Iterator[str]:
    codes = {one["code"] for one in found["findings"]}
    if lacks := set(run.get("codes", ())) - codes:
        yield f"not found: {sorted(lacks)}"
    if false := set(run.get("codes_not", ())) & codes:
        yield f"found, and not so: {sorted(false)}"
    if limit := run.get("max_severity"):
        above = SEVERITIES[SEVERITIES.index(limit) + 1 :]
        yield from (f"{one['severity']}: {one['summary']}" for one in found["findings"] if one["severity"] in above)


def _exit(run: Found, code: int) -> Iterator[str]:
    given = [run["exit_code"]] if run.get("exit_code") is not None else run.get("exit_code_in")
    if given and code not in given:
        yield f"exit code {code}, not {given}"


def exit_code(found: Found) -> int:
    """How `workbench diagnose` ends by what it found."""
    if any(one["severity"] != "info" for one in found["findings"]):
        return 1
    return 3 if found["unknown"] or untold(found) else 0


@pytest.mark.parametrize(("folders", "run"), [*runs(HERE)])
def test_an_incident_is_told_as_it_was(folders: list[Path], run: Found, loaded: Any) -> None:
    found = diagnose(loaded(folders))
    assert disagreements(run, found, exit_code(found)) == []


@needs_collected_files
@pytest.mark.parametrize(("folders", "run"), [*runs(SHARED, 1)])
def test_a_collected_incident_is_told_as_it_was(folders: list[Path], run: Found, loaded: Any) -> None:
    found = diagnose(loaded(folders))
    assert disagreements(run, found, exit_code(found)) == []


@pytest.mark.parametrize("name", ["dead_origin/1-server_gone", "restored_from_own_backup/1-at_backup"])
def test_the_command_says_and_ends_so(name: str) -> None:
    folder = HERE / name
    expected = json.loads((folder.parent / "expect.json").read_text(encoding="utf-8"))["runs"]
    (run,) = [run for run in expected if run["snapshots"] == [folder.name]]
    done = CliRunner().invoke(main, ["diagnose", str(folder), "--json", "-"])
    found = json.loads(done.stdout)
    assert disagreements(run, found, done.exit_code) == []
    assert done.exit_code == exit_code(found)


def test_what_is_not_so_is_noticed() -> None:
    """The comparison itself: each way in which a diagnosis can be wrong."""
    change = {"server": "s1", "position": "1"}
    finding = {"code": "MISSED_CHANGE", "severity": "error", "summary": "missed"}
    wait = {"server": "s1", "origin": "1", "count": 2, "available": 1}
    found: Found = {"missing": [change], "stranded": [change], "pending": [wait], "findings": [finding], "unknown": []}
    right: Found = {
        "missing": {"s1": ["1"]},
        "stranded": {"s1": ["1"]},
        "pending": {"s1": {"1": {"count": 2, "available": 1}}},
        "codes": ["MISSED_CHANGE"],
        "codes_not": ["DEAD_ORIGIN"],
        "max_severity": "error",
        "exit_code": 1,
    }
    assert disagreements(right, found, exit_code(found)) == []
    wrong = {
        "missing": {"s1": ["2"]},
        "stranded": {},
        "pending": {},
        "codes": ["DEAD_ORIGIN"],
        "codes_not": ["MISSED_CHANGE"],
        "max_severity": "warning",
        "exit_code": 0,
    }
    for key, value in wrong.items():
        assert disagreements({**right, key: value}, found, 1), key
    assert disagreements({**right, "missing": {}, "missing_or_unknown": {"s1": ["1"]}}, found, 1) == []
    assert disagreements({**right, "pending": {"s1": {"1": {"available": 2}}}}, found, 1)


# --- what holds whatever was collected


def bytes_of(case: Case) -> bytes:
    found = {key: value for key, value in diagnose(case).items() if key not in ("run", "case")}
    return json.dumps(found, indent=1).encode()


@pytest.mark.parametrize("name", ["purged_changelog/purged", "refused_by_a_consumer/last"])
def test_the_order_of_files_and_the_size_of_parts_do_not_count(name: str, spark: Any, tmp_path: Path) -> None:
    folder = HERE / name
    backwards = tmp_path / folder.name
    backwards.mkdir()
    for path in sorted(folder.iterdir(), reverse=True):
        shutil.copy(path, backwards / path.name)
    cases = [Case.create(tmp_path / label / "case") for label in ("here", "there", "spark")]
    for case, where, session in zip(cases, (folder, backwards, folder), (None, None, spark), strict=True):
        case.load([where], session)
    first = bytes_of(cases[0])
    assert [bytes_of(case) == first for case in cases[1:]] == [True, True]


def test_healthy_snapshots_have_no_error(loaded: Any) -> None:
    healthy = ["missed_behind_equal_vectors/1-before", "restored_from_own_backup/1-at_backup", "dead_origin/2-cleaned"]
    for name in healthy:
        found = diagnose(loaded([HERE / name]))
        assert Counter(one["severity"] for one in found["findings"])["error"] == 0, name
        assert (found["missing"], found["stranded"], found["pending"]) == ([], [], []), name
