"""Faults of links of real servers: log lines, statuses and records as they were captured, at the times of the mesh."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from detector_samples import BEGAN, findings, of, with_status
from link_samples import (
    BROKEN_OFF,
    FINE,
    REFUSED_LOGIN,
    Files,
    bind_failed,
    bind_resumed,
    line,
    login_refused,
    mesh,
    refused_in_sessions,
    told,
)
from mesh_samples import SUFFIX, agreement, case_of, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.failing_links import failing_say
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan

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


# --- agreements that have stopped until somebody acts

_NOT_PARSED = (
    "Error (4) Replication error acquiring replica: Unable to parse the response to the startReplication extended operation. "
    "Replication is aborting. (decoding error)"
)


def _of_agreement(second: float, function: str, text: str, name: str = "to-s2") -> str:
    return line(second, f'ERR - NSMMReplicationPlugin - {function} - agmt="cn={name}" (localhost:38902): {text}')


def _stopped_for_good() -> str:
    text = "Unable to parse the response to the startReplication extended operation. Replication is aborting."
    fatal = "Incremental update failed and requires administrator action"
    return bind_resumed(9) + _of_agreement(9, "acquire_replica", text) + _of_agreement(9, "repl5_inc_run", fatal)


def test_an_agreement_that_has_stopped_is_not_healed_by_its_consumer(tmp_path: Path) -> None:
    started = line(60, "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38902 for LDAP requests")
    files = mesh(_NOT_PARSED, _stopped_for_good()) | {"s2.errors.log": started}
    (one,) = of("LINK_FAILING", findings(tmp_path / "a", files))
    assert one["severity"] == "error" and "has stopped until somebody acts" in one["summary"]
    looked, again = (fix["repair"] for fix in one["fix"])
    assert looked.startswith("see whether replication is switched on at s2")
    assert (
        again
        == "then start the agreement again, on s1: `dsconf INSTANCE repl-agmt poke --suffix dc=example,dc=com to-s2`"
    )
    # With its own server it begins anew; and the status is of the attempt before.
    again = line(90, "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38901 for LDAP requests")
    files["s1.errors.log"] = str(files["s1.errors.log"]) + again
    (one,) = of("LINK_FAILING", findings(tmp_path / "b", files))
    assert "has stopped" not in one["summary"]


# --- an agreement that leads to its own server, and a second one with another login

_SAME_ID = (
    "Error (11) Replication error acquiring replica: Unable to acquire replica: the replica has the same Replica ID as this one. "
    "Replication is aborting. (duplicate replica ID detected)"
)


def test_an_agreement_that_leads_to_its_own_server(tmp_path: Path) -> None:
    files: Files = pair_of_servers(4, 4)
    itself = with_status(agreement("s1-to-self", 38901, host="localhost.localdomain"), told(_SAME_ID))
    files["s1.agreements.ldif"] += "\n" + itself
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert not of("DUPLICATE_ORIGIN", found["findings"])
    (one,) = of("LINK_FAILING", found["findings"])
    assert "the agreement s1-to-self leads to s1 itself" in one["summary"] and "not collected" not in one["summary"]
    assert "repl-agmt delete --suffix dc=example,dc=com s1-to-self" in one["fix"][0]["repair"]
    assert "not collected" not in headline(found)
    said = plan_text(plan(case))
    assert "s1-to-self (leads to its own server)" in said and "What waits behind" not in said


def _beside_s3(rid: int, ruv: list[str], address: int) -> Files:
    """Three servers in step; s3 has this replica ID, and refuses, or is refused, as one that has the ID of the other."""
    files: Files = pair_of_servers(4, 4)
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s3.replica.ldif"] = replica(rid, ruv)
    files["s3.agreements.ldif"] = with_status(agreement("s3-to-s1", address), told(_SAME_ID))
    return files


def test_an_agreement_between_two_servers_of_one_id_does_not_lead_to_its_own(tmp_path: Path) -> None:
    """Both take one element for their own, and it names the address of one of them: that is nobody's for certain."""
    ruv = elements(claims(r1=(0, 4), r2=(1, 2)))
    other = [line.replace(":38901", ":38903") for line in ruv]
    for name, its in ("own", other), ("copied", ruv):
        found = findings(tmp_path / name, _beside_s3(1, its, 38901))
        (one,) = of("LINK_FAILING", found)
        assert of("DUPLICATE_ORIGIN", found)
        assert "itself" not in one["summary"] and "replica ID" in one["summary"]
        assert "another replica ID" in one["fix"][0]["repair"]
        assert not any("delete" in fix["repair"] for fix in one["fix"])


def test_an_agreement_that_is_known_to_lead_elsewhere_does_not_lead_to_its_own_server(tmp_path: Path) -> None:
    """An element for its own ID that was copied names another server's address, to which the agreement does lead."""
    ruv = elements(claims(r3=(0, 0), r1=(0, 4), r2=(1, 2)))
    files = _beside_s3(3, ruv, 38901)
    copied = [line.replace(":38903", ":38901") for line in ruv]
    files["s3.replica.ldif"] = replica(3, copied, sends_to=[f"s3-to-s1;localhost;38901;1;{csn(0, 3)}"])
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "itself" not in one["summary"]


def _second_login(second: float) -> str:
    how = "could not bind id [cn=replmgr,cn=config] authentication mechanism [SIMPLE]: error 49 (Invalid credentials)"
    return line(second, f"ERR - slapi_ldap_bind - Error: {how}")


def test_a_second_agreement_with_another_login(tmp_path: Path) -> None:
    """Lines of refused logins say who, and not where: those of another login or result are of another agreement."""
    second = with_status(agreement("second-to-s2", 38902), told(REFUSED_LOGIN, ended=None)).replace(
        "cn=replication manager,cn=config", "cn=replmgr,cn=config"
    )
    log = "".join(
        login_refused(at).replace("49 (Invalid credentials)", "13 (Confidentiality required)") for at in (3, 5)
    )
    log += _second_login(20)
    log += bind_failed(20, "49 (Invalid credentials)").replace("to-s2", "second-to-s2") + _second_login(23)
    files: Files = pair_of_servers(4, 4)
    first = with_status(agreement("to-s2", 38902), told(FINE, ended=15))
    case = case_of(tmp_path, files | {"s1.agreements.ldif": f"{first}\n{second}", "s1.errors.log": log})
    (one,) = of("LINK_FAILING", diagnose(case)["findings"])
    assert one["since"] == (BEGAN + timedelta(seconds=20)).isoformat()
    assert "2 failed attempts since then" in one["summary"]
    assert "second-to-s2 (invalid credentials)" in plan_text(plan(case))


def test_lines_that_may_be_of_several_agreements_are_counted_for_none(tmp_path: Path) -> None:
    """A supplier was refused by several consumers: of the lines of one login nobody knows which agreement wrote them."""
    refused = with_status(agreement("to-s2", 38902), told(REFUSED_LOGIN))
    other = with_status(agreement("to-s3", 38903), told(REFUSED_LOGIN))
    log = login_refused(9) + bind_failed(9, "49 (Invalid credentials)")
    log += login_refused(9) + bind_failed(9, "49 (Invalid credentials)").replace("to-s2", "to-s3")
    log += "".join(login_refused(at) for at in (12, 12, 18, 18))
    files = {**pair_of_servers(), "s1.agreements.ldif": f"{refused}\n{other}", "s1.errors.log": log}
    found = of("LINK_FAILING", findings(tmp_path, files))
    assert len(found) == 2 and not any("attempt" in one["summary"].partition("since ")[2] for one in found)


# --- a consumer that accepts encrypted logins only

_CONFIDENTIAL = "Error (13) Problem connecting to replica - LDAP error: Confidentiality required (connection error)"


def test_a_consumer_that_requires_encryption_of_a_plain_agreement(tmp_path: Path) -> None:
    log = "".join(
        login_refused(at).replace("49 (Invalid credentials)", "13 (Confidentiality required)") for at in (9, 12)
    )
    log += bind_failed(9, "13 (Confidentiality required)", "Operation requires a secure connection")
    plain = "nsDS5ReplicaTransportInfo: LDAP\n"
    (one,) = of("LINK_FAILING", findings(tmp_path, mesh(_CONFIDENTIAL, log, plain)))
    assert "nsslapd-require-secure-binds" in one["summary"] and "the agreement is plain LDAP" in one["summary"]
    assert "2 failed attempts since then" in one["summary"] and one["reason"] == "tls"
    said = " ".join(str(fix["repair"]) for fix in one["fix"])
    assert "--conn-protocol StartTLS to-s2" in said and "config replace nsslapd-require-secure-binds=off" in said
    assert "security certificate" not in said


# --- a consumer that hangs: it takes connections, and says nothing

_HANGS = "Error (-5) Problem connecting to replica - LDAP error: Timed out (connection error)"


def test_a_consumer_that_hangs_is_not_told_to_be_started(tmp_path: Path) -> None:
    (one,) = of("LINK_FAILING", findings(tmp_path, mesh(_HANGS)))
    assert (one["reason"], "-5 (timeout)" in one["summary"]) == ("unreachable", True)
    (fix,) = one["fix"]
    assert fix["repair"].startswith("see whether s2 hangs") and "`dsctl INSTANCE restart` there" in fix["repair"]


def test_links_of_one_name_are_told_apart_by_their_suffix() -> None:
    def row(name: str, suffix: str) -> dict[str, str]:
        return {"name": name, "suffix": suffix, "why": "timeout", "reason": "unreachable"}

    both = [row("a-to-b", "o=one"), row("a-to-b", "o=two")]
    assert failing_say(both) == "2 links fail: a-to-b of o=one, a-to-b of o=two (timeout)"
    assert failing_say([row("a", "o=one"), row("b", "o=two")]) == "2 links fail: a of o=one, b of o=two (timeout)"
