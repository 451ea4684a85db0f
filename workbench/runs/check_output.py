"""Checked runs for people and for machines that show tests: text, JSON, JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from workbench.runs.baseline_check import CLEAN, FINDINGS, OUTCOMES
from workbench.runs.fact_diff import Difference, Judged
from workbench.runs.regression_check import CheckedRun
from workbench.safety import printable
from workbench.text_table import aligned

_SHOWN = 20


def worst(checked: Sequence[CheckedRun]) -> str:
    """The worst outcome."""
    return max((one.outcome for one in checked), key=OUTCOMES.index)


def checked_text(checked: Sequence[CheckedRun]) -> str:
    """A line for each run, the worst first, then the reasons and what changed."""
    order = sorted(checked, key=lambda one: -OUTCOMES.index(one.outcome))
    files = _files(checked)
    names = [f"{files[one.path]}: {one.run.name}" if len(files) > 1 else one.run.name for one in order]
    rows = [(one.outcome.upper(), name, _against(one), _since(one)) for one, name in zip(order, names, strict=True)]
    parts = [aligned([("OUTCOME", "RUN", "AGAINST THE BASELINE", "SINCE THE RUN BEFORE"), *rows])]
    for one, name in zip(order, names, strict=True):
        lines = [f"  {line}" for line in _cut([*one.why, *_told(one)])]
        if lines:
            parts.append("\n".join([f"{name}: {one.outcome}", *lines]))
    return printable_lines("\n\n".join(parts)) + "\n"


def _files(checked: Sequence[CheckedRun]) -> dict[Path, str]:
    """What the parameters files are called: by their names, or where two of them have one name by their whole paths."""
    paths = list(dict.fromkeys(one.path for one in checked))
    names = [path.name for path in paths]
    return {path: str(path) if names.count(path.name) > 1 else path.name for path in paths}


def printable_lines(text: str) -> str:
    """Text of several lines, harmless to print."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"and {len(lines) - _SHOWN:,} more"]


def _against(one: CheckedRun) -> str:
    if one.accepted is None:
        return "-"
    return "none: nothing was accepted yet" if one.accepted.differences is None else _counted(one.accepted)


def _since(one: CheckedRun) -> str:
    return "the first one" if one.before is None and one.was is None else _counted(one.before) if one.before else "-"


def _counted(held: Judged) -> str:
    counts: dict[str, int] = {}
    for difference in held.differences or ():
        counts[difference.kind] = counts.get(difference.kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "the same"


def _told(one: CheckedRun) -> list[str]:
    """What is not said by the reasons: what else changed, and acknowledgements that have run out."""
    if one.accepted is None:
        return []
    said = set(one.why)
    lines = [str(each) for each in one.accepted.differences or () if str(each) not in said]
    lines += [
        f"no longer acknowledged: {each.code}, since {each.until} ({each.reason})" for each in one.accepted.expired
    ]
    return lines


def checked_json(checked: Sequence[CheckedRun]) -> dict[str, Any]:
    """The same as data."""
    files = _files(checked)
    return {"schema": 1, "outcome": worst(checked), "runs": [_as_json(one, files[one.path]) for one in checked]}


def _as_json(one: CheckedRun, file: str) -> dict[str, Any]:
    return {
        "file": file,
        "name": one.run.name,
        "notebook": one.run.notebook,
        "outcome": one.outcome,
        "was": one.was,
        "why": list(one.why),
        "baseline": _held(one.accepted),
        "before": _held(one.before),
        "began": one.run.began,
        "seconds": one.run.seconds,
        "folder": str(one.run.folder) if one.run.folder else None,
        "facts": one.run.facts,
    }


def _held(held: Judged | None) -> dict[str, Any] | None:
    if held is None or held.differences is None:
        return None
    rows = [dict(zip(Difference._fields, each, strict=True)) for each in held.differences]
    return {"outcome": held.outcome, "differences": rows}


def checked_junit(checked: Sequence[CheckedRun]) -> str:
    """JUnit XML: a suite for each parameters file, a case for each run. What failed or could not tell is an error, what is
    worse is a failure.
    """
    root = ET.Element("testsuites", {"name": "workbench check", **_numbers(checked)})
    for path, file in _files(checked).items():
        mine = [one for one in checked if one.path == path]
        suite = ET.SubElement(root, "testsuite", {"name": _xml(file), **_numbers(mine)})
        for one in mine:
            place, _, name = one.run.name.rpartition("/")
            # Two tests of one class and name are one to those who show them.
            place = "/".join(filter(None, (file, place))) if file != path.name else place or file
            about = {"classname": _xml(place), "name": _xml(name), "time": f"{one.run.seconds:.1f}"}
            case = ET.SubElement(suite, "testcase", about)
            if one.outcome != CLEAN:
                kind = "failure" if one.outcome == FINDINGS else "error"
                message = {"message": _xml("; ".join(_cut(list(one.why)))), "type": one.outcome}
                ET.SubElement(case, kind, message).text = _xml("\n".join([*one.why, *_told(one)]))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _numbers(checked: Sequence[CheckedRun]) -> dict[str, str]:
    outcomes = [one.outcome for one in checked]
    failures = outcomes.count(FINDINGS)
    errors = len(outcomes) - failures - outcomes.count(CLEAN)
    counts = {"tests": len(outcomes), "failures": failures, "errors": errors, "skipped": 0}
    seconds = sum(one.run.seconds for one in checked)
    return {**{name: str(count) for name, count in counts.items()}, "time": f"{seconds:.1f}"}


_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _xml(text: str) -> str:
    """Text without letters that XML does not have."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", printable_lines(text))
