"""The recorded incidents as cases, each loaded once for all tests of a process; nobody loads more into them."""

from __future__ import annotations

import gzip
import tempfile
from functools import cache
from pathlib import Path

from workbench import Case
from workbench.diagnosis.incident import Incident

FOLDER = Path(__file__).parent / "incidents"
LOST = "missed_behind_equal_vectors"
EVERY = sorted(path.parent.name for path in FOLDER.glob("*/expect.json"))
NAMES = [name for name in EVERY if not name.startswith(("comdb2-", "drizzle-"))]
"""Those of directory servers: `EVERY` has those of a stream and of a physical log, too."""


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


ONE, OTHER = "dc=example,dc=com", "dc=other,dc=org"


def of_suffixes(folder: Path, *suffixes: str) -> Case:
    """The same servers with one or both: of ONE s3 missed changes, of OTHER it waits for some that the others have trimmed."""
    into = folder / "now"
    into.mkdir(parents=True)
    recorded = {ONE: FOLDER / LOST / "2-during", OTHER: FOLDER / "purged_changelog" / "purged"}
    for suffix in suffixes:
        for path in sorted(recorded[suffix].iterdir()):
            server, _, kind = path.name.removesuffix(".gz").partition(".")
            if kind in ("replica.ldif", "agreements.ldif", "changelog.ldif", "export-replication.ldif", "access.log"):
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                for name in (str, _in_a_name):
                    data = data.replace(name(ONE).encode(), name(suffix).encode())
                (into / f"{server}.{suffix}.{kind}").write_bytes(data)
    case = Case.create(folder / "case")
    case.load([into])
    return case


def _in_a_name(suffix: str) -> str:
    return suffix.replace("=", r"\3D").replace(",", r"\2C")
