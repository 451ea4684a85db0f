"""`workbench diff` and `workbench history` as a user meets them, and the comparison of two diagnoses below the first."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from history_samples import Seen, server_files
from mesh_samples import case_of, claims, csn, pair_of_servers

import workbench
from workbench import Problem
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_diff import LARGEST, difference, differences_text, read_diagnosis, worst_new


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def finding(code: str, severity: str = "warning", **about: Any) -> dict[str, Any]:
    names = dict.fromkeys(("server", "link", "origin", "suffix"))
    return {"code": code, "severity": severity, **names, "summary": f"{code} is so", "items": [], **about}


def diagnosis(**lists: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"schema": 1, "servers": [], "pairs": [], "missing": [], "stranded": [], "pending": []}
    return {**empty, "unknown": [], "findings": [], **lists}


def stored(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def counts(found: dict[str, Any], name: str) -> tuple[int, int, int]:
    new, gone, changed = (len(found[name][kind]) for kind in ("new", "gone", "changed"))
    return new, gone, changed


MISSING = {"server": "s1", "suffix": None, "origin": "2", "position": csn(1, 2), "cause": None, "held_by": ["s2"]}
PENDING = {"server": "s1", "suffix": None, "origin": "2", "count": 3, "first": csn(1, 2), "last": csn(3, 2)}
GAP = {"server": "s1", "origin": "2", "from": csn(1, 2), "to": csn(5, 2), "count": None, "why": "cut"}
PAIR = {"supplier": "s1", "consumer": "s2", "suffix": None, "link": "x", "decision": "send", "anchor": csn(1, 2)}
SERVER = {"name": "s1", "suffix": None, "vector": {"2": {"min": csn(0, 2), "max": csn(1, 2)}}}


def test_a_list_that_is_not_shown_whole_is_not_compared() -> None:
    cut = diagnosis(run={"truncated": {"missing": 2}})
    for found in (difference(cut, diagnosis(missing=[MISSING])), difference(diagnosis(missing=[MISSING]), cut)):
        assert counts(found, "missing") == (0, 0, 0)
        assert found["not_compared"] == ["missing"]
        assert "or not whole: missing" in differences_text(found)


def test_each_list_is_compared_by_what_its_rows_speak_of() -> None:
    one = diagnosis(
        findings=[finding("A", server="s1"), finding("B", origin="2", items=["x"])],
        missing=[MISSING],
        pending=[PENDING],
        unknown=[GAP],
        pairs=[PAIR],
        servers=[SERVER],
    )
    other = copy.deepcopy(one)
    assert not any(sum(counts(difference(one, other), name)) for name in ("findings", "missing", "vectors", "pairs"))
    other["findings"] = [finding("A", server="s2"), finding("B", "error", origin="2", items=["x", "y"])]
    other["missing"] = [{**MISSING, "position": csn(2, 2)}, {**MISSING, "cause": "APPLY_SKIPPED"}]
    other["pending"] = [{**PENDING, "count": 9}]
    other["unknown"] = []
    other["pairs"] = [{**PAIR, "decision": "nothing", "anchor": None, "link": "y"}]
    other["servers"] = [
        {**SERVER, "vector": {"2": {"min": csn(0, 2), "max": csn(4, 2)}, "3": {"min": None, "max": None}}}
    ]
    found = difference(one, other)
    assert {
        name: counts(found, name) for name in ("findings", "missing", "pending", "unknown", "pairs", "vectors")
    } == {
        "findings": (1, 1, 1),
        "missing": (1, 0, 1),
        "pending": (0, 0, 1),
        "unknown": (0, 1, 0),
        "pairs": (0, 0, 1),
        "vectors": (1, 0, 1),
    }
    (changed,) = found["findings"]["changed"]
    assert (changed["code"], changed["before"], changed["after"]) == (
        "B",
        {"severity": "warning", "items": ["x"]},
        {"severity": "error", "items": ["x", "y"]},
    )
    assert found["pairs"]["changed"][0]["after"] == {"link": "y", "decision": "nothing", "anchor": None}
    back = difference(other, one)
    for name in ("findings", "missing", "unknown", "vectors"):
        assert (back[name]["new"], back[name]["gone"]) == (found[name]["gone"], found[name]["new"])


def test_findings_of_one_code_about_one_thing_are_one() -> None:
    two = [finding("A", items=["x"]), finding("A", "error", items=["y"])]
    assert counts(difference(diagnosis(findings=two), diagnosis(findings=two[::-1])), "findings") == (0, 0, 0)
    assert worst_new(difference(diagnosis(findings=two[:1]), diagnosis(findings=two))) == 2


def test_a_list_that_one_of_the_two_lacks_is_not_compared() -> None:
    older = diagnosis()
    del older["missing"], older["pending"]
    found = difference(older, diagnosis(missing=[MISSING]))
    assert found["not_compared"] == ["missing", "pending"]
    assert counts(found, "missing") == (0, 0, 0)
    assert "Not compared" in differences_text(found)
    assert differences_text(difference(older, older)) == "No difference."


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('"text"', "not a diagnosis"),
        ("[]", "not a diagnosis"),
        ("{}", "not a diagnosis"),
        ({"schema": 1, "plan": []}, "not a diagnosis"),
        (diagnosis(findings="x"), "findings: 'x' is not a list"),
        (diagnosis(findings=[finding("A", "fatal")]), "findings[0].severity"),
        (diagnosis(findings=[finding("A", origin=2)]), "findings[0].origin: 2 is not text"),
        (diagnosis(unknown=[{**GAP, "from": 7}]), "unknown[0].from"),
        ({**diagnosis(), "schema": 2}, "schema 2"),
        ("9" * 5000, "no JSON"),
    ],
)
def test_what_is_no_diagnosis_is_refused(tmp_path: Path, content: Any, says: str) -> None:
    good = stored(tmp_path, "good.json", diagnosis())
    for files in ((stored(tmp_path, "bad.json", content), good), (good, tmp_path / "bad.json")):
        done = run("diff", *files)
        assert done.exit_code == 2
        assert says in done.stderr
        assert len(done.stderr) < 1000


def test_a_file_without_end_and_a_folder_that_is_no_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=f"more than {LARGEST >> 20} MiB"):
        read_diagnosis(Path("/dev/zero"))
    with pytest.raises(Problem, match="not a case"):
        read_diagnosis(tmp_path)
    with pytest.raises(Problem, match="cannot be read"):
        read_diagnosis(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("severity", "threshold", "code"),
    [("info", None, 0), ("warning", None, 1), ("error", None, 1), ("warning", "error", 0), ("info", "info", 1)],
)
def test_new_findings_decide_the_exit_code(tmp_path: Path, severity: str, threshold: str | None, code: int) -> None:
    old, new = stored(tmp_path, "a", diagnosis()), stored(tmp_path, "b", diagnosis(findings=[finding("A", severity)]))
    options = ["--threshold", threshold] if threshold else []
    assert run("diff", old, new, *options).exit_code == code
    assert run("diff", new, old, *options).exit_code == 0, "what is gone is no reason for alarm"
    assert run("diff", new, new, *options).exit_code == 0


def test_a_finding_that_got_worse_counts_as_new(tmp_path: Path) -> None:
    old, new = (stored(tmp_path, one, diagnosis(findings=[finding("A", one)])) for one in ("info", "error"))
    assert run("diff", old, new).exit_code == 1
    assert run("diff", new, old).exit_code == 0


def test_text_from_a_diagnosis_cannot_act(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e\nFindings: 9 new"
    rows = [finding(evil, server=evil, summary=evil)]
    pair = {**PAIR, "supplier": evil, "decision": evil}
    new = stored(
        tmp_path, "b", diagnosis(findings=rows, pairs=[pair], missing=[{**MISSING, "server": evil, "cause": evil}])
    )
    shown = run("diff", stored(tmp_path, "a", diagnosis()), new).stdout
    assert not set("\x1b\u202e") & set(shown)
    assert shown.count("\nFindings: ") + shown.startswith("Findings: ") == 1


def test_a_long_list_is_cut_in_the_text_and_whole_in_the_json(tmp_path: Path) -> None:
    many = [{**MISSING, "position": csn(second, 2)} for second in range(50)]
    old, new = stored(tmp_path, "a", diagnosis()), stored(tmp_path, "b", diagnosis(missing=many))
    assert "and 30 more" in run("diff", old, new).stdout
    out = tmp_path / "out.json"
    assert run("diff", old, new, "--json", out).exit_code == 0
    assert len(json.loads(out.read_text())["missing"]["new"]) == 50
    assert run("diff", old, new, "--json", new).exit_code == 2, "an output never overwrites an input"


def test_cases_are_diagnosed_and_compared_with_files(tmp_path: Path) -> None:
    behind = case_of(tmp_path / "behind", pair_of_servers(9, 4))
    equal = case_of(tmp_path / "equal", pair_of_servers(9, 9))
    stored(tmp_path, "equal.json", diagnose(equal))
    assert run("diff", equal.folder, tmp_path / "equal.json").stdout == "No difference.\n"
    shown = run("diff", tmp_path / "equal.json", behind.folder).stdout
    assert f"s2, origin 1: max {csn(9, 1)} -> {csn(4, 1)}" in shown
    assert "s1 -> s2" in shown


# --- history


@pytest.fixture
def lagging(tmp_path: Path) -> Path:
    """A case in which s2 applied the first five of ten changes, late."""
    seen = [Seen(20_000 + 100 * second, "s2", csn(second, 1)) for second in range(5)]
    own = [csn(second, 1) for second in range(10)]
    first = server_files("s1", 1, claims(r1=(0, 9)), seen, logged=own, links=[2])
    second = server_files("s2", 2, {**claims(r1=(0, 4)), 2: None}, seen, logged=own[:5], links=[1])
    return case_of(tmp_path, {**first, **second}).folder


def test_what_a_server_knew_is_one_call(lagging: Path) -> None:
    when = "2024-03-24T10:27:32.150"  # 20.15 s after the beginning
    done = run("history", lagging, "--server", "s2", "--origin", "1", "--at", when)
    assert done.exit_code == 0
    assert "taken as UTC" in done.stderr
    assert f"s2 (dc=example,dc=com), origin 1: {csn(1, 1)}" in done.stdout
    assert f"not yet   {csn(2, 1)}, access log 2024-03-24 10:27:32.200" in done.stdout
    found = json.loads(run("history", lagging, "--server", "s2", "--at", f"{when}Z", "--json", "-").stdout)
    (known,) = (one for one in found["known"] if one["origin"] == "1")
    assert (known["verdict"], known["at_least"]["position"], known["changes"]) == ("exact", csn(1, 1), 0)
    assert "UTC" not in run("history", lagging, "--at", f"{when}Z").stderr
    rows = list(csv.DictReader(io.StringIO(run("history", lagging, "--at", f"{when}Z", "--csv", "-").stdout)))
    assert {(row["server"], row["origin"]) for row in rows} == {(s, o) for s in ("s1", "s2") for o in ("1", "2")}


def test_over_time_lags_and_vectors_are_shown(lagging: Path) -> None:
    shown = run("history", lagging, "--step", "1")
    assert shown.exit_code == 0
    assert "s1 and s2 differ on origin 1" in shown.stdout
    assert "s2 is behind by 5 changes" in shown.stdout
    found = json.loads(run("history", lagging, "--step", "1", "--json", "-").stdout)
    assert {row["server"] for row in found["vectors"]} == {"s1", "s2"}
    assert [row["at_most"] for row in found["lags"] if row["consumer"] == "s2" and row["at_most"]][-1] == 5


def test_the_way_of_a_change_is_shown(lagging: Path) -> None:
    shown = run("history", lagging, "--change", csn(2, 1)).stdout
    assert "made here" in shown
    assert "s1 -> s2 over s1-to-s2, the only supplier there that had it" in shown
    found = json.loads(run("history", lagging, "--change", csn(2, 1), "--json", "-").stdout)["change"]
    assert [one["server"] for one in found["arrivals"]] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--server", "s9"], "servers: s1, s2"),
        (["--origin", "x"], "origins: 1, 2"),
        (["--suffix", "dc=no"], "suffixes"),
        (["--at", "then"], "is not a time"),
        (["--change", "xyz"], "is not a position"),
        (["--step", "0"], "a step of 0 seconds"),
        (["--step", "nan"], "a step of nan"),
        (["--at", "2024-01-01", "--change", "x"], "give one of them"),
        (["--at", "2024-01-01", "--step", "5"], "leave it out"),
        (["--change", "x", "--server", "s1"], "leave out"),
        (["--json", "-", "--csv", "-"], "cannot both"),
    ],
)
def test_wrong_use_is_told(lagging: Path, options: list[str], says: str) -> None:
    done = run("history", lagging, *options)
    assert done.exit_code == 2
    assert says in done.stderr


# --- the public verbs


def test_a_verb_stays_a_verb_when_its_module_was_loaded() -> None:
    """A module of the name of a verb would take its place."""
    for name in workbench.__all__:
        getattr(workbench, name)
    for name in workbench.__all__:
        assert not isinstance(getattr(workbench, name), ModuleType), name
