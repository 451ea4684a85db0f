"""Servers that ran and did not answer a question in time, by what `collect` wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import iso, listening, of, status, with_status
from entry_samples import answered
from link_samples import REFUSED_LOGIN
from mesh_samples import agreement, case_of, claims, csn, elements, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.intake.readings import NO_SUFFIX
from workbench.repair.case_plan import plan_for
from workbench.report.report_pipeline import whole_report
from workbench.safety import to_yaml


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        ("entries of dc=example,dc=com: no answer within the time-out (ldap://s2). give it more with --timeout", True),
        ("entries of dc=example,dc=com: the export of the entries failed with -1 (ldap://s2)", False),
    ],
)
def test_a_server_that_may_hang_is_said_first(failed: str, told: bool, tmp_path: Path) -> None:
    case = case_of(tmp_path, _with_failed(dict(pair_of_servers()), "s2", failed))
    found = diagnose(case)
    named = of("NO_ANSWER_IN_TIME", found["findings"])
    assert [(one["server"], one["severity"]) for one in named] == [("s2", "warning")] * told
    assert headline(found).startswith("s2 did not answer in time when it was collected: it may hang; ") is told
    assert ("5 are waiting for s2" if told else "5 are on the way to s2") in headline(found)
    assert ("5 changes wait for s2; s2 may hang." in whole_report(Incident(case))["plain"]) is told
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert (waits["fix"][0]["repair"] == "do what NO_ANSWER_IN_TIME says first") is told
    plan = plan_for(case)
    assert {row["server"]: row["pending"] for row in plan.after} == {"s1": 0, "s2": 5 * told}
    (said,) = (one for one in plan.open if one.startswith("5 changes "))
    end = "have not arrived at s2, which may hang: NO_ANSWER_IN_TIME says what to do"
    assert (
        said == f"5 changes {end}" if told else said.startswith("5 changes are on their way to s2, over links that run")
    )


def _with_failed(files: dict[str, Any], server: str, text: str) -> dict[str, Any]:
    """Two servers that `collect` read, and what it could not read of one of them."""
    return _with_note(files, server, "failed", [text])


def _with_note(files: dict[str, Any], server: str, key: str, note: Any) -> dict[str, Any]:
    """Two servers that `collect` read, and what it wrote down of one of them."""
    names = ("s1", "s2")
    servers = [{"name": name, "files": sorted(file for file in files if file.startswith(name))} for name in names]
    collected: list[dict[str, Any]] = [
        {"server": name, "role": "supplier", "from": iso(60), "until": iso(61)} for name in names
    ]
    next(one for one in collected if one["server"] == server)[key] = note
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": collected})}


_REFUSED = "no connection: Connection refused (ldap://s2). check that it runs and listens there"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"read again at the end: {_REFUSED}", True),
        ("read again at the end: no answer within the time-out (ldap://s2)", False),
        (_REFUSED, False),
    ],
)
def test_a_server_that_stopped_while_servers_were_read(text: str, told: bool, tmp_path: Path) -> None:
    case = case_of(tmp_path, _with_failed(dict(pair_of_servers()), "s2", text))
    found = diagnose(case)
    named = of("STOPPED_MEANWHILE", found["findings"])
    assert [(one["server"], one["severity"]) for one in named] == [("s2", "error")] * told
    line = headline(found)
    assert line.startswith("s2 stopped while the servers were read: it takes no connection; ") is told
    assert ("5 are waiting for s2" in line) is told or "hang" in line
    ends = [
        one.endswith("s2, which takes no connection: STOPPED_MEANWHILE says what to do") for one in plan_for(case).open
    ]
    assert any(ends) is told


@pytest.mark.parametrize("hangs", [True, False])
def test_a_server_that_answered_nothing_in_time_is_not_called_down(hangs: bool, tmp_path: Path) -> None:
    why = "no answer within the time-out" if hangs else "no connection: Connection refused"
    files = {name: text for name, text in pair_of_servers().items() if not name.startswith("s2")}
    busy = status(1, "Can't acquire busy replica", "amber", 5, 6)
    files |= {"s1.agreements.ldif": with_status(agreement("to-s2", 38902), busy), "s2.DOWN": why} | listening("s2")
    found = diagnose(case_of(tmp_path, _with_note(files, "s2", "down", why)))
    assert headline(found).startswith("s2 did not answer in time when it was collected: it may hang; ") is hangs
    assert len(of("NO_ANSWER_IN_TIME", found["findings"])) == hangs
    (fails,) = of("LINK_FAILING", found["findings"])
    repair = fails["fix"][0]["repair"]
    assert ("restart" in repair, repair.startswith("start s2")) == (hangs, not hangs)


@pytest.mark.parametrize("bare", [True, False])
def test_a_consumer_that_shows_no_replicated_suffix_may_have_been_set_up_anew(bare: bool, tmp_path: Path) -> None:
    why = f"{NO_SUFFIX} (ldap://s2). check what reader may read" if bare else "bind refused"
    files = {name: text for name, text in pair_of_servers().items() if not name.startswith("s2")}
    refused = with_status(agreement("to-s2", 38902), f"nsds5replicaLastUpdateStatus: {REFUSED_LOGIN}\n")
    files |= {"s1.agreements.ldif": refused, "s2.DOWN": why} | listening("s2")
    found = diagnose(case_of(tmp_path, _with_note(files, "s2", "down", why)))
    (fails,) = of("LINK_FAILING", found["findings"])
    assert ("s2 answered when servers were collected, and showed no replicated suffix" in fails["summary"]) is bare
    assert ("(invalid credentials, and it shows no replicated suffix)" in headline(found)) is bare
    assert fails["fix"][0]["repair"].startswith("see on s2 whether" if bare else "see that s2 has an entry")


def test_what_only_a_server_that_may_hang_would_send_is_not_on_its_way(tmp_path: Path) -> None:
    text = "entries of dc=example,dc=com: no answer within the time-out (ldap://s1)"
    found = diagnose(case_of(tmp_path, _with_failed(dict(pair_of_servers()), "s1", text)))
    assert "5 are waiting for s2" in headline(found) and "on the way" not in headline(found)
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert waits["fix"][0]["repair"] == "do what NO_ANSWER_IN_TIME says of s1 first"


def test_what_only_a_server_that_is_down_has_is_not_counted_as_coming(tmp_path: Path) -> None:
    """s2 waits for 5 changes of s1, and for 2 that the access log of s3 names, which is down."""
    files: dict[str, Any] = dict(pair_of_servers())
    more = "\n".join(f"nsds50ruv: {value}" for value in elements(claims(r3=(1, 2)), None)) + "\n\n"
    for name in ("s1", "s2"):
        files[f"{name}.replica.ldif"] = files[f"{name}.replica.ldif"].rstrip("\n") + f"\n{more}"
    lines = "".join(answered(second, "uid=u,ou=people", csn(second, 3)) for second in (5, 6))
    case = case_of(tmp_path, files | {"s3.access.log": lines, "s3.DOWN": "no connection\n"})
    counts = {(row["server"], row["origin"]): row["count"] for row in diagnose(case)["pending"]}
    assert counts == {("s1", "3"): 2, ("s2", "1"): 5, ("s2", "3"): 2}
    assert any(one.startswith("5 changes are on their way to s2, ") for one in plan_for(case).open)


@pytest.mark.parametrize("code", [1, 0])
def test_changes_do_not_come_over_a_link_that_was_turned_away(code: int, tmp_path: Path) -> None:
    """Another supplier has a session with s2; if that one hangs, s2 stays busy."""
    busy = "Can't acquire busy replica (Unable to acquire replica: the replica is currently being updated by another supplier.)"
    said = busy if code else "Replica acquired successfully: Incremental update succeeded"
    files: dict[str, Any] = dict(pair_of_servers())
    files["s1.agreements.ldif"] = with_status(
        agreement("to-s2", 38902), status(code, said, "amber" if code else "green", 5, 6)
    )
    case = case_of(tmp_path, files)
    (waits,) = of("PENDING_CHANGES", diagnose(case)["findings"])
    assert ("at the last attempt s2 was busy and refused to-s2" in waits["summary"]) is bool(code)
    assert waits["fix"][0]["repair"].startswith("if they do not arrive" if code else "see that a link")
    (wait,) = (one for one in plan_for(case).open if one.startswith("5 changes "))
    assert ("wait for s2, which was busy and refused to-s2" in wait) is bool(code) and (
        "links that run" in wait
    ) is not bool(code)
