"""A server that was restored and wrote again: what others wait for and only its log has is saved before it is filled."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from case_samples import INCIDENT
from detector_samples import of
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.only_holders import waits_for_it
from workbench.diagnosis.steps_before_filling import off_before_writable
from workbench.model import Finding, step
from workbench.repair.case_plan import plan_for
from workbench.rules.vectors import Span

_RESTORED = INCIDENT.parent / "restored_from_own_backup" / "2-after"


def _files(with_consumer: bool) -> dict[str, bytes | str]:
    """The incident of real servers, s3 being the one; and a read-only consumer that got from s3 what it made since."""
    files: dict[str, bytes | str] = {path.name: path.read_bytes() for path in _RESTORED.iterdir()}
    if with_consumer:
        text = (_RESTORED / "s3.replica.ldif").read_text()
        text = re.sub(r"(?im)^nsds5replicaid: \d+", "nsDS5ReplicaId: 65535", text)
        text = re.sub(r"(?im)^nsds5flags: \d+", "nsDS5Flags: 0", text)
        files["s4.replica.ldif"] = re.sub(r"(?im)^nsds5replicatype: \d+", "nsDS5ReplicaType: 2", text)
    return files


@pytest.mark.parametrize("with_consumer", [False, True])
def test_what_only_its_log_has_is_saved_first(with_consumer: bool, tmp_path: Path) -> None:
    case = case_of(tmp_path, _files(with_consumer))
    found = diagnose(case)["findings"]
    then = "then s4, " if with_consumer else ""
    first = f"save 16 changes from the changelog of s3, initialise s3 from a server that has what s3 lacks, {then}then write "
    stuck = of("REINIT_REQUIRED", found)
    assert {one["server"] for one in stuck} == {"s1", "s2"}
    assert {one["fix"][0]["repair"] for one in stuck} == {f"{first}them again"}
    lost = [*of("OWN_CHANGES_HIDDEN", found), *of("MISSED_CHANGE", found)]
    fillings = [one for one in lost if any("initialise s3" in fix["repair"] for fix in one["fix"])]
    assert fillings and {one["server"] for one in fillings} == {"s3"}
    assert {one["fix"][0]["repair"].partition(" (")[0] for one in fillings} == {
        "first save from s3 what s1 and s2 wait for"
    }
    repairs = [(step.repair, step.server) for step in plan_for(case).steps]
    assert repairs[:2] == [("save", "s3"), ("initialise", "s3")]
    assert not {"s1", "s2"} & {server for repair, server in repairs if repair == "initialise"}


@pytest.mark.parametrize(("whole", "kept"), [(False, {"s1": ["s2"], "s3": ["s2"]}), (True, {})])
def test_each_of_two_restored_servers_is_saved_first(whole: bool, kept: dict[str, list[str]]) -> None:
    """s1 and s3 lack what s2 has, and s2 waits for what both have; s4 has it too and lacks nothing, or is behind like s2."""

    def server(name: str, last: int) -> Any:
        seen = {"1": Span(csn(1, 1), csn(last, 1))}
        return SimpleNamespace(server=name, suffix="dc=x", keeps_log=True, seen=lambda: seen)

    replicas = [server("s1", 9), server("s2", 5), server("s3", 9), server("s4", 9 if whole else 5)]
    waits = {"server": "s2", "suffix": "dc=x", "origin": "1", "first": csn(6, 1), "last": csn(9, 1), "suppliers": []}
    lacking = [{"server": name, "suffix": "dc=x", "held_by": ["s2"], "shown_by": []} for name in ("s1", "s3")]
    by_name = {replica.server: replica for replica in replicas}
    context: Any = SimpleNamespace(
        verdicts=SimpleNamespace(pending=[waits], missing=lacking),
        topology=SimpleNamespace(replicas=replicas, system=SimpleNamespace(typed=lambda text: text)),
        unrecorded={},
        replica=lambda name, suffix: by_name[name],
    )
    assert waits_for_it(context) == {(name, "dc=x"): servers for name, servers in kept.items()}


def test_a_link_that_would_pass_over_changes_is_off_before_its_consumer_is_writable() -> None:
    off = step("first switch c-to-b off, on c, until b has what the log of c lacks", "a session passes over 7 changes")
    on = step("see whether the backend of b is read-only, and make it writable, on b: `dsconf …`", "it refuses")
    other = step("make it writable, on h: `dsconf …`", "it refuses")
    findings = [
        Finding("APPLY_RETRY_LOOP", "error", "", server="b", fix=(on,)),
        Finding("LINK_FAILING", "error", "", server="a", link="a-to-b", fix=(on,)),
        Finding("LINK_FAILING", "error", "", server="c", link="c-to-b", fix=(off, on)),
        Finding("LINK_FAILING", "error", "", server="a", link="a-to-h", fix=(other,)),
    ]
    assert [finding.fix for finding in off_before_writable(findings)] == [(off, on), (off, on), (off, on), (other,)]
