"""A server without data refuses changes for that alone."""

from __future__ import annotations

from pathlib import Path

from detector_samples import of
from link_samples import BROKEN_OFF, line, mesh, refused_change
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan


def test_who_has_no_data_refuses_changes_for_that_alone(tmp_path: Path) -> None:
    """Seen on 2.3.1: its initialisation broke off, and each refusal was told as a fault of its own."""
    log = "".join(refused_change(second, csn(5, 1), "Operations error (1)") for second in (9, 12, 15))
    state = (
        "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going offline"
    )
    broken = line(6, f"{state}; disabling replication") + line(
        7, "ERR - bdb_public_bdb_import_main - import userroot: Import failed."
    )
    case = case_of(tmp_path, mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": broken})
    found = diagnose(case)
    for code in ("LINK_FAILING", "APPLY_RETRY_LOOP"):
        assert {one["overruled_by"] for one in of(code, found["findings"])} == {"INITIALISATION_ABORTED"}
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert aborted["fix"][0]["repair"].startswith("initialise s2 from s1, on s1: `dsconf INSTANCE repl-agmt init")
    assert headline(found).startswith("New data for s2 did not arrive whole at ")
    assert headline(found).endswith("no change is known to be missing; 5 are waiting for s2.")
    made = plan(case)
    assert [step.key for step in made.steps] == ["1-initialise-s2-from-s1"] and "mend the links" not in plan_text(made)
