"""Small incidents with a truth that was written before: what `diagnose` and `plan` say of each folder, and must not say.

tests/incidents/SYSTEM/NAME/ holds the files as they would be collected (`build_incidents.py` writes them), loaded as they are
and alone, and expect.json:

    truth       what happened, in words
    codes       findings that must be there: "CODE", or "CODE server" where it must be of that server (or link, or origin)
    codes_not   findings that must not be there, in the same form
    line        clauses that the first line must contain; `line_not`: that it must not
    said        texts that the whole diagnosis must contain; `said_not`: that it must not
    missing, stranded, errant
                server -> its positions, or how many; a server that is not named has none
    pending     server -> how many changes have not arrived, of all origins; a server that is not named waits for nothing
    senders     server -> who would send it what it waits for: [] if nothing is on the way to it
    unknown     server -> reasons of what cannot be told; a server that is not named has none
    suffix      server -> its suffix
    steps       all steps of the plan, "repair server" each, in any order; `steps_not`: repairs that no step may be
    writes_not  servers that no step may write to
    assumes     what each step of the plan takes for granted
    lost        way of a course -> how many changes it throws away
    refused     way of a course -> a text of the reason why it is refused
    plan_said   texts that the plan must contain; `plan_said_not`: that it must not
    open        `why`, and further keys of these: what is not so yet; once it is, the test says to move them
    table       whether what the plan's table shows before must equal the diagnosis; true if not given

What is not given is not looked at, but for `table`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from build_incidents import FOLDER, SYSTEMS, build

from workbench import Case, diagnose
from workbench.diagnosis.case_diagnosis import naming_domains
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.plan_text import plan_text
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan
from workbench.systems import system_named

Found = Mapping[str, Any]
KEYS = set(re.findall(r"\w+", __doc__ or ""))
NAMES = [f"{system}/{name}" for system, incidents in SYSTEMS.items() for name in incidents]


def expected(name: str) -> Found:
    told: Found = json.loads((FOLDER / name / "expect.json").read_text(encoding="utf-8"))
    return told


def disagreements(truth: Found, system: str, found: Found, made: Plan) -> list[str]:
    """What is said otherwise than the truth."""
    text, planned = diagnosis_text(system_named(system), dict(found)), plan_text(made)
    texts = (("first line", "line", headline(dict(found))), ("diagnosis", "said", text), ("plan", "plan_said", planned))
    return [
        *(one for where, key, of in texts for one in _texts(where, key, of, truth)),
        *_codes(truth, found),
        *_rows(truth, found),
        *_plan(truth, found, made),
    ]


def _texts(where: str, key: str, text: str, truth: Found) -> Iterator[str]:
    flat = " ".join(text.split())
    for clause in truth.get(key, ()):
        if clause not in flat:
            yield f"the {where} does not say “{clause}”: {flat[:1500]}"
    for clause in truth.get(f"{key}_not", ()):
        if clause in flat:
            at = flat.index(clause)
            yield f"the {where} says “{clause}”: …{flat[max(0, at - 200) : at + 200]}…"


def _codes(truth: Found, found: Found) -> Iterator[str]:
    there: set[str] = set()
    for row in found["findings"]:
        of = {row["server"], row["link"], row["origin"], *(row["servers"] or ())} - {None}
        there |= {row["code"], *(f"{row['code']} {one}" for one in of)}
    if lacks := set(truth.get("codes", ())) - there:
        yield f"not found: {sorted(lacks)}; there are {sorted(there)}"
    if false := set(truth.get("codes_not", ())) & there:
        yield f"found, and not so: {sorted(false)}"


def _rows(truth: Found, found: Found) -> Iterator[str]:
    for key in ("missing", "stranded", "errant"):
        if key in truth:
            yield from _positions(key, truth[key], found[key])
    if "pending" in truth:
        waits: dict[str, int | None] = {}
        for row in found["pending"]:
            before = waits.get(row["server"], 0)
            waits[row["server"]] = None if row["count"] is None or before is None else before + row["count"]
        if waits != truth["pending"]:
            yield f"pending: {waits}, not {truth['pending']}"
    for server, senders in truth.get("senders", {}).items():
        told = sorted({one for row in found["pending"] if row["server"] == server for one in row["suppliers"]})
        if told != sorted(senders):
            yield f"senders of what {server} waits for: {told}, not {senders}"
    if "unknown" in truth:
        untold: dict[str, list[str]] = {}
        for row in found["unknown"]:
            untold[row["server"]] = sorted({*untold.get(row["server"], ()), row["why"]})
        if untold != truth["unknown"]:
            yield f"unknown: {untold}, not {truth['unknown']}"
    for server, suffix in truth.get("suffix", {}).items():
        (told,) = (row["suffix"] for row in found["servers"] if row["name"] == server)
        if told != suffix:
            yield f"suffix of {server}: {told}, not {suffix}"


def _positions(key: str, wanted: Found, rows: Sequence[Found]) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for row in rows:
        told.setdefault(row["server"], []).append(row["position"])
    for server in sorted({*wanted, *told}):
        want, have = wanted.get(server, 0), told.get(server, [])
        if len(have) != want if isinstance(want, int) else sorted(have) != sorted(want):
            yield f"{key} on {server}: {have}, not {want}"


def _plan(truth: Found, found: Found, made: Plan) -> Iterator[str]:
    steps = sorted(f"{step.repair} {step.server}" for step in made.steps)
    if "steps" in truth and steps != sorted(truth["steps"]):
        yield f"steps: {steps}, not {truth['steps']}; courses: {[(c.need, c.way, c.refused) for c in made.courses]}"
    if false := {step.repair for step in made.steps} & set(truth.get("steps_not", ())):
        yield f"steps that must not be: {sorted(false)}"
    if false := {name for step in made.steps for name in (step.server, step.on)} & set(truth.get("writes_not", ())):
        yield f"steps write to {sorted(false)}"
    for step in made.steps if "assumes" in truth else ():
        if sorted(step.assumes) != sorted(truth["assumes"]):
            yield f"step {step.key} assumes {step.assumes}, not {truth['assumes']}"
    for way, count in truth.get("lost", {}).items():
        if {course.lost for course in made.courses if course.way == way} != {count}:
            yield f"{way} loses {[course.lost for course in made.courses if course.way == way]}, not {count}"
    for way, reason in truth.get("refused", {}).items():
        told = [course.refused for course in made.courses if course.way == way]
        if not any(reason in one for one in told):
            yield f"{way} is refused for {told}, not for “{reason}”"
    for row in made.before if truth.get("table", True) else ():
        server = row["server"]
        waits = sum(one["count"] or 0 for one in found["pending"] if one["server"] == server)
        lacks = sum(one["server"] == server for one in found["missing"])
        if (row["missing"], row["pending"]) != (lacks, waits):
            yield f"the plan's table of {server}: {(row['missing'], row['pending'])}, the diagnosis: {(lacks, waits)}"


@pytest.mark.parametrize("name", NAMES)
def test_an_incident_is_told_and_mended_as_its_truth_says(name: str, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([FOLDER / name])
    truth, system, found, made = expected(name), name.split("/")[0], naming_domains(diagnose(case)), plan(case)
    wrong = disagreements(truth, system, found, made)
    assert not wrong, f"{name}: " + "\n".join(wrong)
    for key, value in truth.get("open", {}).items():
        met = key != "why" and not disagreements({key: value, "table": key == "table" and value}, system, found, made)
        assert not met, f"{name}: {key} is as it should be now: move it out of `open`"


def test_each_folder_has_a_truth_and_each_truth_a_folder() -> None:
    told = {
        str(path.parent.relative_to(FOLDER)) for system in SYSTEMS for path in FOLDER.glob(f"{system}/*/expect.json")
    }
    assert told == set(NAMES)
    assert {key for name in NAMES for key in expected(name)} <= KEYS
    assert all(expected(name)["truth"] for name in NAMES)


def test_the_files_are_those_that_are_built(tmp_path: Path) -> None:
    build(tmp_path)
    for system in SYSTEMS:
        mine, kept = (
            {path.relative_to(root): path.read_bytes() for path in (root / system).rglob("*") if path.is_file()}
            for root in (tmp_path, FOLDER)
        )
        assert mine == {path: data for path, data in kept.items() if path.name != "expect.json"}


WRONG: Mapping[str, Any] = {
    "codes": ["MISSED_CHANGE a"],
    "codes_not": ["MISSED_CHANGE b"],
    "line": ["nothing is wrong"],
    "line_not": ["MISSING on b"],
    "said": ["nothing is wrong"],
    "said_not": ["log goes on behind"],
    "missing": {"b": ["6"]},
    "stranded": {"a": 1},
    "errant": {"b": 1},
    "pending": {"b": 3},
    "senders": {"b": []},
    "unknown": {"b": ["forgotten"]},
    "suffix": {"b": "one"},
    "steps": [],
    "steps_not": ["apply"],
    "writes_not": ["b"],
    "assumes": [],
    "lost": {"provision": 1},
    "refused": {"apply": "it is"},
    "plan_said": ["Nothing needs mending"],
    "plan_said_not": ["INSERT INTO"],
}


def test_what_is_said_otherwise_than_a_truth_is_noticed(tmp_path: Path) -> None:
    name = "drizzle/named_source_one_missed"
    case = Case.create(tmp_path / "case")
    case.load([FOLDER / name])
    found, made = diagnose(case), plan(case)
    assert WRONG.keys() == KEYS & WRONG.keys()
    for key, value in WRONG.items():
        assert disagreements({key: value}, "drizzle", found, made), key
    assert disagreements({}, "drizzle", {**found, "missing": []}, made), "the table"
