"""The incident that the tests of a case load, and looks at what came of it."""

from __future__ import annotations

import json
from pathlib import Path

from workbench import Case
from workbench.safety import strict_yaml

INCIDENT = Path(__file__).parent / "incidents" / "missed_behind_equal_vectors"

SNAPSHOTS = [INCIDENT / "1-before", INCIDENT / "2-during"]


def rows(case: Case, table: str) -> list[dict]:
    """All rows of a table, in an order that does not depend on the parts."""
    return sorted(case.arrow(table).to_pylist(), key=lambda row: json.dumps(row, default=str, sort_keys=True))


def everything(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder but the note of who works on it: path -> content, of a folder nothing."""
    found = (path for path in folder.rglob("*") if path.name != ".owner")
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def about(case: Case) -> dict:
    return strict_yaml((case.folder / "case.yaml").read_text(), "case.yaml")
