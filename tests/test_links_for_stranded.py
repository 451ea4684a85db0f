"""A supplier whose agreements are gone: what it made since waits for a new one, and nothing has to be saved or written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, of
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.repair.planner import plan

Files = dict[str, Any]


def mesh(*, top: int, linked: bool, trimmed: bool = False) -> Files:
    """s3 has made changes up to second `top`, the others have those up to second 4. `linked`: its agreements are there.

    trimmed  its changelog begins behind what the others have
    """
    files: Files = {}
    for rid in (1, 2, 3):
        name = f"s{rid}"
        files[f"{name}.errors.log"] = listening(name)[f"{name}.errors.log"].replace(":3890", ".localdomain:3890")
        seen = top if rid == 3 else 4
        spans = {name.replace("s", "r"): (0, 0), "r1": (0, 1), "r2": (0, 1), "r3": (0, seen)}  # its own element first
        files[f"{name}.replica.ldif"] = replica(rid, elements(claims(**spans)))
        own = [csn(second, 3) for second in range(6 if trimmed and rid == 3 else 0, seen + 1)]
        others = [csn(second, origin) for origin in (1, 2) for second in (0, 1)]
        files[f"{name}.changelog.ldif"] = changelog(sorted([*others, *own]), own_entries=True)
        to = [other for other in (1, 2, 3) if other != rid and (linked or rid != 3)]
        files[f"{name}.agreements.ldif"] = "".join(agreement(f"{name}-to-s{other}", 38900 + other) for other in to)
    return files


def test_an_agreement_brings_what_is_stranded_and_nothing_is_written_again(tmp_path: Path) -> None:
    case = case_of(tmp_path, mesh(top=4, linked=True), mesh(top=9, linked=False))
    found = diagnose(case)
    (stranded,) = of("STRANDED_CHANGE", found["findings"])
    (fix,) = stranded["fix"]
    assert fix["repair"] == "make an agreement from s3 to s1 or s2"
    assert "a session over a new one sends them" in fix["why"]
    assert (
        "the links s3-to-s1 from s3 to s1 and s3-to-s2 from s3 to s2 are gone since the snapshot before" in fix["why"]
    )
    made = plan(case)
    assert [step.key for step in made.steps] == ["1-feed-s1-from-s3", "2-unfeed-s1-from-s3"]
    assert not [line for line in made.open if line.startswith("STRANDED_CHANGE")]


@pytest.mark.parametrize("changed", [{"trimmed": True}, {"linked": True}])
def test_elsewhere_they_are_saved_as_before(changed: dict[str, bool], tmp_path: Path) -> None:
    """Where no session could begin, or a link leads away, a new agreement is not what is lacking."""
    found = diagnose(case_of(tmp_path, mesh(**{"top": 9, "linked": False, **changed})))
    for stranded in of("STRANDED_CHANGE", found["findings"]):
        assert stranded["fix"][0]["repair"].startswith("save them before anything else is done to s3")
    assert bool(of("STRANDED_CHANGE", found["findings"])) == ("trimmed" in changed)
