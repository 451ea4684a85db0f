"""Agreements that were changed, switched or begun anew since their last attempt: their status and their log are of before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from detector_samples import findings, of, zulu
from link_samples import (
    DISABLED_BEFORE,
    FINE,
    MANAGER,
    NO_CONNECTION,
    NO_PERMISSION,
    bind_failed,
    bind_resumed,
    line,
    mesh,
    not_connected,
)
from mesh_samples import SUFFIX, case_of

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.case_plan import plan_for

_BY_ITSELF = "cn=Multisupplier Replication Plugin,cn=plugins,cn=config"


def changed(second: float, tried: float, by: str = "cn=directory manager") -> str:
    """Lines of an agreement that was changed then, and whose status is of an attempt."""
    moment = zulu(tried)
    date = f"{moment[:4]}-{moment[4:6]}-{moment[6:8]}T{moment[8:10]}:{moment[10:12]}:{moment[12:14]}Z"
    status = json.dumps({"state": "green", "ldap_rc": "0", "repl_rc": "0", "date": date})
    return f"modifiersName: {by}\nmodifyTimestamp: {zulu(second)}\nnsds5replicaLastUpdateStatusJSON: {status}\n"


_READ = line(60, "INFO - main - the server was read about then")


@pytest.mark.parametrize(
    ("more", "stands"),
    [
        (changed(40, 10), True),
        (changed(55, 10), False),  # it may begin any moment
        (changed(40, 10, _BY_ITSELF), False),  # the server noted what its consumer has
        (changed(5, 10), False),  # its status is of after that
        ("", False),
    ],
)
def test_an_agreement_that_was_switched_off_and_on_and_began_nothing(more: str, stands: bool, tmp_path: Path) -> None:
    """Seen on 3.1.2: switched off and on while it waited after a failure, it did nothing until it was poked."""
    case = case_of(tmp_path, mesh(DISABLED_BEFORE, _READ, more, ended=None))
    found = diagnose(case)
    fails = of("LINK_FAILING", found["findings"])
    assert bool(fails) is stands
    for one in fails:
        assert "is switched on, and began no session since" in one["summary"] and one["waiting"] == 5
        assert "repl-agmt poke" in one["fix"][0]["repair"]
        assert "5 changes have not arrived at s2: the link to-s2 fails" in headline(found)
        assert not any("on its way" in said or "on their way" in said for said in plan_for(case).open)


@pytest.mark.parametrize("since", [True, False])
def test_a_failure_of_before_an_agreement_was_changed_is_none_of_now(since: bool, tmp_path: Path) -> None:
    """It led to another port then: nothing is known of the new one, and nothing comes before it tries again."""
    log = not_connected(9, "localhost:38999") + _READ
    case = case_of(tmp_path, mesh(NO_CONNECTION, log, changed(40 if since else 5, 9), ended=None))
    found = diagnose(case)
    (fails,) = of("LINK_FAILING", found["findings"])
    assert fails["severity"] == "error" and "5 changes have not arrived at s2" in headline(found)
    assert ("nothing shows an attempt since" in fails["summary"]) is since
    assert ("repl-agmt poke" in fails["fix"][0]["repair"]) is since


@pytest.mark.parametrize(("tried", "stands"), [(9, True), (30, False)])
def test_whoever_tried_again_has_not_stopped(tried: float, stands: bool, tmp_path: Path) -> None:
    """Its log said that it had stopped; it was switched off and on since, which no log of errors tells."""
    head = 'ERR - NSMMReplicationPlugin - repl5_inc_run - agmt="cn=to-s2" (localhost:38902): '
    stopped = line(9, f"{head}Incremental update failed and requires administrator action")
    refused = "Error (3) Replication error acquiring replica: permission denied (permission denied)"
    (fails,) = of("LINK_FAILING", findings(tmp_path, mesh(refused, stopped, changed(5, tried), ended=4)))
    assert ("has stopped until somebody acts" in fails["summary"]) is stands


@pytest.mark.parametrize("read", [60, 90])
def test_clocks_that_were_too_far_apart_may_be_right_by_now(read: int, tmp_path: Path) -> None:
    skewed = "Error (2) Replication error acquiring replica: fatal error - too much time skew (excessive clock skew)"
    log = line(read, "INFO - main - the server was read about then")
    found = diagnose(case_of(tmp_path, mesh(skewed, log, changed(5, 20), ended=4)))
    (fails,) = of("LINK_FAILING", found["findings"])
    assert ("that was at its last attempt" in fails["summary"]) is (read == 90)
    assert ("(clocks too far apart at its last attempt)" in headline(found)) is (read == 90)


def test_new_data_begin_the_agreements_of_a_server_anew(tmp_path: Path) -> None:
    """Its log said that it had stopped until somebody acts; then the server was filled."""
    head = 'ERR - NSMMReplicationPlugin - repl5_inc_run - agmt="cn=to-s2" (localhost:38902): '
    stopped = line(9, f"{head}Incremental update failed and requires administrator action")
    name = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change"
    online = line(20, f"{name} - Replica {SUFFIX} is coming online; enabling replication")
    assert of("LINK_FAILING", findings(tmp_path / "stopped", mesh(FINE, stopped, ended=4)))
    assert not of("LINK_FAILING", findings(tmp_path / "filled", mesh(FINE, stopped + online, ended=4)))
    other = online.replace(SUFFIX, f"ou=people,{SUFFIX}")
    assert of("LINK_FAILING", findings(tmp_path / "other", mesh(FINE, stopped + other, ended=4)))


@pytest.mark.parametrize("named", [True, False])
def test_a_login_that_the_consumer_allows_by_now(named: bool, tmp_path: Path) -> None:
    """Seen on 3.1.2: the login was allowed, and the link waited on after its refused attempt until it tried again by itself."""
    files = mesh(NO_PERMISSION)
    more = "nsDS5ReplicaBindDNGroup: cn=senders,dc=example,dc=com\n"
    more += f"nsDS5ReplicaBindDN: {MANAGER.upper()}\n" if named else ""
    files["s2.replica.ldif"] = files["s2.replica.ldif"].replace("nsDS5Flags", f"{more}nsDS5Flags", 1)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (fails,) = of("LINK_FAILING", found["findings"])
    assert fails["reason"] == "permission" and fails["waiting"] == 5
    assert ("by now the replica of s2 names this login" in fails["summary"]) is named
    assert ("no permission at its last attempt" in headline(found)) is named
    first = fails["fix"][0]
    if named:
        assert "repl-agmt poke" in first["repair"] and len(fails["fix"]) == 1
    else:
        assert "--repl-add-bind-dn" in first["repair"] and "cn=senders,dc=example,dc=com" in first["caution"]
        assert "repl-agmt poke" in fails["fix"][1]["repair"]


@pytest.mark.parametrize(("logged", "stands"), [("failed", True), ("failed, then resumed", False), ("", False)])
def test_an_agreement_out_of_a_configuration_file_whose_login_fails_by_the_log(
    logged: str, stands: bool, tmp_path: Path
) -> None:
    """Files that a person copied: dse.ldif has the agreement and no status of it, the errors log has the refused login."""
    files = mesh("", "", ended=None)
    entry = files["s1.agreements.ldif"].replace("nsds5replicaLastUpdateStatus: \n", "")
    files["s1.agreements.ldif"] = entry.replace(
        "nsDS5ReplicaBindDN", "nsDS5ReplicaBindMethod: SASL/DIGEST-MD5\nnsDS5ReplicaBindDN"
    )
    log = bind_failed(9, "49 (Invalid credentials)") if "failed" in logged else ""
    files["s1.errors.log"] = log + (bind_resumed(12) if "resumed" in logged else "") + _READ
    fails = of("LINK_FAILING", findings(tmp_path, files))
    assert [one["reason"] for one in fails] == (["bind_refused"] if stands else [])
    for one in fails:
        assert "logs in with SASL/DIGEST-MD5" in one["summary"] and one["waiting"] == 5
        assert "--bind-method SIMPLE" in one["fix"][0]["repair"] and "poke" in one["fix"][1]["repair"]
