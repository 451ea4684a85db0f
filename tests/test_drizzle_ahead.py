"""What several copies have behind the end of the log of their source, which was read before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from drizzle_incidents import log, named

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline


@pytest.mark.parametrize(
    ("of_c", "says"),
    [
        ((1, 2, 3, 4, 5, 7), "c, which goes on behind it, lacks 6 of these"),
        ((1, 2, 3, 4, 5, 6), ""),
        ((1, 2, 3, 4, 5, 6, 7), ""),
    ],
)
def test_a_copy_that_passed_over_what_another_one_has_is_named(
    of_c: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    """The log of a ends with 4; b has 5, 6, 7. Who has 7 and not 6 missed it, if a made them; who ends with 6 may be behind."""
    files = {
        "a.log": log(1, 2, 3, 4),
        "b.log": log(*range(1, 8)),
        "c.log": log(*of_c),
        "case.yaml": named("a", "a.log"),
    }
    (tmp_path / "in").mkdir()
    for name, data in files.items():
        (tmp_path / "in" / name).write_bytes(data)
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    found = diagnose(case)
    (of_b,) = (
        (one for one in found["findings"] if (one["code"], one["server"]) == ("ERRANT_CHANGE", "b")) if says else [{}]
    )
    assert says in of_b.get("summary", "")
    assert of_b.get("severity") == ("warning" if says else None)
    assert headline(found).startswith("No change is known to be missing" if says else "No change is missing")
