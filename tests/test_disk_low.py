"""Servers whose disk is low, as their own disk monitoring says; lines as 3.1.2 wrote them on a small file system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, stamp
from entry_samples import answered
from link_samples import BROKEN_OFF, bind_resumed, line, mesh, refused_change
from mesh_samples import case_of, csn
from test_says_what_is_known import ANNA, changed_after_its_deletion
from test_thrown_away import verdicts

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.case_plan import plan_for

THREAD = "disk_monitoring_thread - "
PATH = "/var/lib/dirsrv/slapd-s2/db"
STARTS = (1.0, "INFO - main - 389-Directory/3.1.2 B2026.125.0709 starting up")
READ_ONLY = (8.0, f"ALERT - {THREAD}Putting the backend 'userroot' to read-only mode")
LOW = (
    8.0,
    f"ALERT - {THREAD}Disk space is too low on disk ({PATH}), remaining space: 63796 Kb, disabling access and audit logging.",
)
WAITS = (
    18.0,
    f"ALERT - {THREAD}Disk space on ({PATH}) is too far below the threshold(107374182400 bytes).  Waiting 1 minutes for disk ",
)
STOPS = (78.0, f"ALERT - {THREAD}Disk space is still too low (61004 Kb).  Signaling slapd for shutdown...")
WRITABLE = (78.0, f"INFO - {THREAD}Putting the backend 'userroot' back to read-write mode")
STOPPED = (80.0, "INFO - main - slapd stopped.")
ROOM = (90.0, f"INFO - {THREAD}Disk space is now within acceptable levels.")
AGAIN = (90.0, STARTS[1])
REFUSED = "".join(
    bind_resumed(at) + "".join(refused_change(at, csn(second, 1)) for second in (5, 6)) for at in (9, 12, 15)
)


def said_by(*lines: tuple[float, str], log: str = REFUSED, **about: Any) -> dict[str, Any]:
    """The files of a mesh of which s2 says this of itself, and refuses what s1 sends."""
    return mesh(BROKEN_OFF, log, ended=None, **about) | {"s2.errors.log": "".join(line(*one) for one in lines)}


@pytest.mark.parametrize(
    ("lines", "severity", "first"),
    [
        ([STARTS, READ_ONLY, LOW], "error", "s2 refuses all changes, because its disk is low"),
        (
            [STARTS, READ_ONLY, LOW, WAITS, STOPS, WRITABLE, STOPPED],
            "error",
            "s2 has stopped itself, because its disk is low",
        ),
        ([STARTS, LOW, WAITS], "error", "s2 is about to stop itself, because its disk is low"),
        ([STARTS, LOW], "warning", ""),
        ([STARTS, READ_ONLY, LOW, ROOM], None, ""),
        ([STARTS, READ_ONLY, LOW, WAITS, STOPS, STOPPED, AGAIN], None, ""),
    ],
)
def test_what_a_server_says_of_its_disk(
    lines: list[tuple[float, str]], severity: str | None, first: str, tmp_path: Path
) -> None:
    found = diagnose(case_of(tmp_path, said_by(*lines)))
    low = of("DISK_LOW", found["findings"])
    assert [one["severity"] for one in low] == ([severity] if severity else [])
    assert headline(found).startswith(first) if first else "disk" not in headline(found)
    for one in low:
        assert one["server"] == "s2" and PATH in one["summary"] and "KB left" in one["summary"]
        assert ("since 2024-03-24 10:27:20 UTC it refuses all changes for that" in one["summary"]) is (
            READ_ONLY in lines and STOPS not in lines
        )
        assert "has written no access log" in one["summary"]
        assert ("and start it then" in one["fix"][0]["repair"]) is (STOPS in lines)


def test_whoever_is_refused_for_want_of_room_is_sent_to_the_disk(tmp_path: Path) -> None:
    """Seen on 3.1.2: made writable by hand, the server refused all again within seconds, and stopped."""
    case = case_of(tmp_path, said_by(STARTS, READ_ONLY, LOW))
    found = diagnose(case)
    for code in ("LINK_FAILING", "APPLY_RETRY_LOOP"):
        (one,) = of(code, found["findings"])
        assert [fix["repair"] for fix in one["fix"]] == ["do what DISK_LOW says of s2"]
    assert not any("--disable-readonly" in fix["repair"] for one in found["findings"] for fix in one["fix"])
    plan = plan_for(case)
    assert not plan.steps and any("DISK_LOW" in said for said in plan.open)


def test_a_change_is_refused_since_its_own_first_refusal(tmp_path: Path) -> None:
    """A session broke off at 2 s as s2 was restarted, at a change that it took later."""
    broken = refused_change(2, csn(4, 1), "Can't contact LDAP server(-1)")
    (fails,) = of("LINK_FAILING", diagnose(case_of(tmp_path, said_by(STARTS, log=broken + REFUSED)))["findings"])
    assert "since 2024-03-24 10:27:21 UTC" in fails["summary"] and "3 failed attempts since then" in fails["summary"]


@pytest.mark.parametrize(("low", "room", "proves"), [(10, 13, False), (10, None, False), (16, 18, True), (5, 9, True)])
def test_an_access_log_that_was_off_proves_nothing(low: int, room: int | None, proves: bool, tmp_path: Path) -> None:
    """Seen on 3.1.2: 72 changes were said to be lost whose lines were not written, for disk monitoring had ended the log."""
    files = changed_after_its_deletion("added")
    lines = [STARTS, (low, LOW[1]), *([(room, ROOM[1])] if room else [])]
    files["s1.errors.log"] = "".join(line(*one) for one in lines)
    told = verdicts(tmp_path, files, csn(12, 3))
    assert (told["s1"] == ("missing", "log_lacks")) is proves, told["s1"]
    assert told["s2"] == ("missing", "log_lacks")


@pytest.mark.parametrize(
    ("files", "proves"),
    [
        ({"s1.errors.log.1": [STARTS, (5, LOW[1])], "s1.errors.log": [(9, ROOM[1])]}, True),  # rotated while it was low
        ({"s1.errors.log.1": [STARTS, (5, LOW[1])], "s1.errors.log": [(13, ROOM[1])]}, False),
        ({"s1.errors.log": [(13, ROOM[1])]}, False),  # the line with which it began was not collected
        ({"s1.errors.log": [(3, ROOM[1])]}, True),
    ],
)
def test_when_an_access_log_was_off_stands_in_several_files(
    files: dict[str, list[tuple[float, str]]], proves: bool, tmp_path: Path
) -> None:
    collected = changed_after_its_deletion("added")
    collected |= {name: "".join(line(*one) for one in lines) for name, lines in files.items()}
    assert (verdicts(tmp_path, collected, csn(12, 3))["s1"] == ("missing", "log_lacks")) is proves


@pytest.mark.parametrize(("order", "proves"), [("in order", True), ("younger first", True), ("set back", False)])
def test_an_access_log_whose_times_go_back(order: str, proves: bool, tmp_path: Path) -> None:
    """Put together by `cat access access.1` it tells what it told; written over a clock that was set back it does not."""
    files = changed_after_its_deletion("added")
    log = files["s1.access.log"]
    at = log.index(stamp(15))
    early = "".join(
        f"{stamp(second)} conn=7 fd=64 slot=64 connection from local to /run/x\n" for second in (-400, -300)
    )
    late = "".join(f"{stamp(second)} conn=8 fd=64 slot=64 connection from local to /run/x\n" for second in (600, 700))
    whole = {
        "in order": early + log + late,
        "younger first": log + late + early,
        "set back": log[:at] + late + log[at:],
    }
    files["s1.access.log"] = whole[order]
    assert (verdicts(tmp_path, files, csn(12, 3))["s1"] == ("missing", "log_lacks")) is proves


@pytest.mark.parametrize(("ahead", "earlier", "proves"), [(0, False, True), (700, False, False), (700, True, True)])
def test_positions_that_run_ahead_prove_no_loss_also_where_a_late_change_hides_it(
    ahead: int, earlier: bool, proves: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: the clock of s3 was set right, and its positions stayed 11 minutes ahead; a change came later than that."""
    files = changed_after_its_deletion("added")
    files["s3.access.log"] = "".join(
        answered(second - ahead, "uid=some,ou=people", csn(second, 3), operation="MOD") for second in (1, 8, 12, 15)
    )
    came = [(9, ANNA, csn(8, 3))] * earlier + [(20, "uid=some,ou=people", csn(15, 3))]
    began = f"{stamp(2)} conn=7 fd=64 slot=64 connection from local to /run/x\n"
    files["s1.access.log"] = began + "".join(answered(*change, replicated=True, operation="MOD") for change in came)
    assert (verdicts(tmp_path, files, csn(12, 3))["s1"] == ("missing", "log_lacks")) is proves


@pytest.mark.parametrize(
    ("op", "proves"),
    [(12, False), (8, True), (99, True)],
    ids=["in the middle of it", "of one that was answered", "at rest"],
)
def test_a_connection_that_ends_in_the_middle_of_an_update_leaves_no_result(
    op: int, proves: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1 in a session that broke off: the server had made the change, and only its result could not be sent."""
    files = changed_after_its_deletion("added")
    log = files["s1.access.log"]
    at = log.index(stamp(15))
    asked = answered(12, ANNA, csn(12, 3), replicated=True).rpartition(f"{stamp(12)} conn=1 op=12 RESULT")[0]
    end = f"{stamp(12)} conn=1 op={op} fd=64 Disconnect - Server failed to flush response back to Client - B4\n"
    begin = f"{stamp(13)} conn=1 fd=64 slot=64 connection from 127.0.0.1 to 127.0.0.1\n"
    files["s1.access.log"] = log[:at] + asked * (op == 12) + end + begin + log[at:]
    assert (verdicts(tmp_path, files, csn(12, 3))["s1"] == ("missing", "log_lacks")) is proves


@pytest.mark.parametrize(("off", "proves"), [((9, 11), False), ((4, 5), True)])
def test_a_log_that_was_off_lacks_what_came_then_by_the_clock_that_positions_run_ahead_of(
    off: tuple[int, int], proves: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: positions ran 46 s ahead, and the next change came late; here the change of 12 s came at 10 s."""
    files = changed_after_its_deletion("added")
    ahead = [answered(second - 2, "uid=some,ou=people", csn(second, 3), operation="MOD") for second in (1, 8, 12, 15)]
    files["s3.access.log"] = "".join(ahead)
    lines = [STARTS, (off[0], LOW[1]), (off[1], ROOM[1])]
    files["s1.errors.log"] = "".join(line(*each) for each in lines)
    assert (verdicts(tmp_path, files, csn(12, 3))["s1"] == ("missing", "log_lacks")) is proves
