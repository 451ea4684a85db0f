"""Faults of links of real servers: log lines, statuses and records as they were captured, at the times of the mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detector_samples import findings, of
from mesh_samples import SUFFIX, case_of, csn
from test_link_failures import BROKEN_OFF, Files, bind_resumed, line, mesh, refused_change

from workbench.diagnosing.diagnosis import diagnose
from workbench.diagnosing.diagnosis_text import headline
from workbench.repairs.plan_text import plan_text
from workbench.repairs.planning import plan

# --- failed logins are counted by each server, and 53 is not always a read-only backend

_LOCKY = f"uid=locky,ou=people,{SUFFIX}"
_NOTES = (
    "change:: cmVwbGFjZTogcmV0cnlDb3VudFJlc2V0VGltZQpyZXRyeUNvdW50UmVzZXRUaW1lOiAyM\n"
    " DI2MTEyNTExMDQzNloKLQpyZXBsYWNlOiBwYXNzd29yZFJldHJ5Q291bnQKcGFzc3dvcmRSZXRyeU\n NvdW50OiAxCi0K\n",
    "change:: cmVwbGFjZTogcGFzc3dvcmRSZXRyeUNvdW50CnBhc3N3b3JkUmV0cnlDb3VudDogMgotC\n g==\n",
)


def noted(files: Files, *seconds: int) -> Files:
    """The changes of s1 at these seconds are what it noted of failed logins."""
    text = str(files["s1.changelog.ldif"])
    for number, second in enumerate(seconds):
        record = next(one for one in text.split("\n\n") if f"csn: {csn(second, 1)}" in one)
        note = f"changetype: modify\nreplgen: 6b06bdf4000000010000\ncsn: {csn(second, 1)}\n"
        note += f"nsuniqueid: 97003701-e8be11f1-a659823b-e4c630e8\ndn: {_LOCKY}\n{_NOTES[number % 2]}"
        text = text.replace(record + "\n", note)
    return {**files, "s1.changelog.ldif": text}


def rejected(second: float, operation: int) -> str:
    """What the consumer writes for each of them."""
    return line(
        second,
        f"ERR - do_modify - Rejecting replicated password policy operation(conn=13 op={operation}) for entry {_LOCKY}.  To allow "
        "these changes to be accepted, set passwordIsGlobalPolicy to 'on' in cn=config.",
    )


def refused_in_sessions(*seconds: int) -> str:
    """In each of three sessions the consumer refuses the changes of these seconds."""
    return "".join(
        bind_resumed(at) + "".join(refused_change(at, csn(second, 1)) for second in seconds) for at in (9, 12, 15)
    )


def test_notes_of_failed_logins_are_no_fault_of_a_link(tmp_path: Path) -> None:
    own = "".join(rejected(second, 22 + second) for second in (9, 12, 15))
    files = noted(mesh(BROKEN_OFF, refused_in_sessions(5, 6), ended=None), 5, 6) | {"s2.errors.log": own}
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert [one["code"] for one in found["findings"] if one["severity"] != "info"] == []
    assert headline(found).startswith("No change is") and "3 are on the way to s2" in headline(found)
    (notes,) = of("LOGIN_NOTES_REFUSED", found["findings"])
    assert "passwordIsGlobalPolicy is off there" in notes["summary"] and len(notes["evidence"]) == 3
    assert "config replace passwordIsGlobalPolicy=on" in notes["fix"][0]["repair"]
    assert "read-only" not in plan_text(plan(case))


def test_where_notes_of_failed_logins_alone_wait_nothing_waits(tmp_path: Path) -> None:
    own = "".join(rejected(second, 22 + second) for second in (9, 12, 15)) + line(900, "INFO - main - x")
    files = noted(mesh(BROKEN_OFF, refused_in_sessions(5, 6), ended=None), 5, 6, 7, 8, 9)
    files |= {"s2.errors.log": own, "s1.errors.log": str(files["s1.errors.log"]) + line(900, "INFO - main - x")}
    found = diagnose(case_of(tmp_path, files))
    assert not found["pending"] and {one["severity"] for one in found["findings"]} == {"info"}


def test_other_changes_behind_notes_of_failed_logins_for_minutes(tmp_path: Path) -> None:
    own = "".join(rejected(second, 22 + second) for second in (9, 12, 15))
    files = noted(mesh(BROKEN_OFF, refused_in_sessions(5, 6), ended=None), 5, 6) | {"s2.errors.log": own}
    files["s1.errors.log"] = str(files["s1.errors.log"]) + line(900, "INFO - main - x")
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert (one["severity"], one["waiting"]) == ("warning", 3)
    assert "only notes failed logins" in one["summary"] and "passwordIsGlobalPolicy" in one["summary"]


def test_a_change_refused_with_53_is_read_only_where_every_change_is_refused(tmp_path: Path) -> None:
    def reasons(name: str, files: Files) -> tuple[str, Any]:
        (one,), (loop,) = (of(code, found) for found in [findings(tmp_path / name, files)] for code in _BOTH)
        return one["reason"], (one["fix"][0]["repair"], loop["fix"][0]["repair"])

    _BOTH = ("LINK_FAILING", "APPLY_RETRY_LOOP")
    log = refused_in_sessions(5, 6)
    reason, fixes = reasons("all", mesh(BROKEN_OFF, log, ended=None))
    assert reason == "consumer_read_only" and all("--disable-readonly" in fix for fix in fixes)
    took = {"s2.access.log": _took(20)}
    reason, fixes = reasons("some", mesh(BROKEN_OFF, log, ended=None) | took)
    assert reason == "refused" and all("errors log" in fix for fix in fixes)
    assert not any("see whether the backend" in fix for fix in fixes)
    # Notes beside another change: the other one is the fault.
    own = {"s2.errors.log": rejected(9, 22)}
    reason, fixes = reasons("mixed", noted(mesh(BROKEN_OFF, log, ended=None), 5) | own)
    assert reason == "refused"


def _took(second: float) -> str:
    from detector_samples import stamp

    start = f'{stamp(second)} conn=7 op=3 MOD dn="uid=u,{SUFFIX}"\n'
    return start + f"{stamp(second)} conn=7 op=3 RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(int(second), 2)}\n"
