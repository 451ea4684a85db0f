"""Values that carry only what removed those before them: a client wrote them while replication was off."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of
from entry_samples import entry, mesh
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose

SPANS = {"r1": (1, 9), "r2": (1, 5)}
STAMP = csn(5, 2)


@pytest.mark.parametrize("value", ["same", "other"])
def test_a_value_without_the_mark_of_its_maker_is_there(value: str, tmp_path: Path) -> None:
    """Seen on 3.1.2: "b missed 7 changes", whose values all servers had; a client had written them on b once more."""
    replaced = f"description;adcsn-{STAMP}"
    entries = {name: [entry("uid=u,ou=people", 17, f"{replaced};vucsn-{STAMP}: same")] for name in ("s1", "s3")}
    entries["s2"] = [entry("uid=u,ou=people", 17, f"{replaced}: {value}")]
    found = diagnose(case_of(tmp_path, mesh(SPANS, entries, {})))
    assert not found["missing"] or value == "other"
    assert bool(of("ENTRIES_DIFFER", found["findings"])) is (value == "other")
