"""The recorded incidents as cases, each loaded once for all tests of a process; nobody loads more into them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from workbench import Case
from workbench.incident import Incident

FOLDER = Path(__file__).parent / "incidents"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="incidents-")


@cache
def case_of(name: str) -> Case:
    """The case of a recorded incident."""
    case = Case.create(Path(_kept().name) / name)
    case.load(sorted(folder for folder in (FOLDER / name).iterdir() if folder.is_dir()))
    return case


def incident_of(name: str) -> Incident:
    """The incident, diagnosed anew: what a test chooses in it reaches no other."""
    return Incident(case_of(name))
