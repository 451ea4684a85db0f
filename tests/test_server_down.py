"""A server that is down: what only its own log names may still come from it, and nothing says that it is lost."""

from __future__ import annotations

from pathlib import Path

from entry_samples import answered, entry, logged, mesh
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan


def without_s1(*lines: str) -> dict[str, str | bytes]:
    """Three suppliers, of which s1 does not answer; `lines`: what its access log says."""
    body = "replace: description\ndescription: x\n-\n"
    logs = dict.fromkeys(("s1", "s2", "s3"), logged(csn(5, 2), 18, "uid=base18", body))
    entries = {name: [entry("uid=base18", 18, f"description;vucsn-{csn(5, 2)}: x")] for name in logs}
    files = mesh({"r1": (1, 1), "r2": (5, 5), "r3": (2, 2)}, entries, logs)
    kept = {name: text for name, text in files.items() if not name.startswith("s1.")}
    return kept | {"s1.DOWN": "", "s1.access.log": answered(5, "uid=base18", csn(5, 2), True) + "".join(lines)}


def test_what_a_server_that_is_down_has_not_sent_is_not_lost(tmp_path: Path) -> None:
    case = case_of(tmp_path, without_s1(answered(60, "uid=base18", csn(60, 1))))
    found = diagnose(case)
    said = "No change is known to be missing; 1 has not arrived at s2, s3, and no collected server would send it now; "
    assert headline(found) == f"{said}no collected log has it; s1 could not be read."
    pending = [one for one in found["findings"] if one["code"] == "PENDING_CHANGES"]
    assert [one["fix"][0]["repair"] for one in pending] == ["start s1 (restart it, if it runs and does not answer)"] * 2
    assert all("in no collected log" in one["summary"] for one in pending)
    assert "nobody" not in str(pending)
    told = plan_text(plan(case))
    assert "Nothing" not in told
    assert "start s1" in told


def test_a_plan_says_of_what_it_knows_nothing(tmp_path: Path) -> None:
    told = plan_text(plan(case_of(tmp_path, without_s1())))
    assert "Nothing of what was collected needs mending; not collected: s1." in told
