"""The incident that comes with the project: real servers, all green, and twelve changes lost."""

from __future__ import annotations

from pathlib import Path

from workbench.case.case import Case
from workbench.model import Problem

PROJECT = Path(__file__).parents[1]
INCIDENT = PROJECT / "tests" / "incidents" / "missed_behind_equal_vectors"
FOLDER = PROJECT / "demo-case"


def demo_snapshots() -> list[Path]:
    """Its collected folders, in the order of time. Raises Problem where only the package is installed."""
    if not INCIDENT.is_dir():
        raise Problem(
            "the demo incident is not here", str(INCIDENT), "work in a checkout of the project, or name a case"
        )
    return sorted(folder for folder in INCIDENT.iterdir() if folder.is_dir())


def demo_case(folder: Path | None = None) -> Case:
    """The demo incident as a case, loaded if it is not there yet."""
    case = Case.create(folder or FOLDER)
    if not case.snapshots:
        case.load(demo_snapshots())
    return case
