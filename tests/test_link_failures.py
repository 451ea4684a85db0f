"""Links that are switched on and do not run. Statuses and log lines are those of real servers, at the times of the mesh."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, listening, of, with_status, zulu
from link_samples import (
    BROKEN_OFF,
    BUSY,
    DISABLED_BEFORE,
    FINE,
    MANAGER,
    NEVER_YET,
    NO_CONNECTION,
    NO_PERMISSION,
    NO_REPLICA,
    NO_STARTTLS,
    NOT_PREPARED,
    OLD_CONNECTION,
    OTHER_GENERATION,
    REFUSED_LOGIN,
    Files,
    bind_failed,
    bind_resumed,
    failing,
    line,
    login_refused,
    mesh,
    not_connected,
    refused_change,
    refused_in_sessions,
    told,
)
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.findings_text import findings_text
from workbench.diagnosis.pair_matrix_text import matrix_text
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan
from workbench.systems import system_named
from workbench.systems.ds389.rules.link_reasons import cause_of
from workbench.views.mesh_text import link_says


@pytest.mark.parametrize(
    ("sentence", "transport", "reason"),
    [
        (REFUSED_LOGIN, "LDAP", "bind_refused"),
        (NO_CONNECTION, "LDAP", "unreachable"),
        (NO_PERMISSION, "LDAP", "permission"),
        (NO_REPLICA, "LDAP", "no_such_replica"),
        (OTHER_GENERATION, "LDAP", "generation_differs"),
        (BROKEN_OFF, "LDAP", "backing_off"),
        (BUSY, "LDAP", "busy"),
        (NOT_PREPARED, "LDAPS", "tls"),
        (NO_STARTTLS, "StartTLS", "tls"),
        (OLD_CONNECTION, "LDAP", "backing_off"),
        ("Error (2) Replication error acquiring replica: x (excessive clock skew)", "LDAP", "clock_refused"),
        ("Error (99) something new", "LDAP", "unknown"),
        ("-1 Incremental update has failed and requires administrator action", "LDAP", "unknown"),
        ("1 Replication error acquiring replica: replica busy", "LDAP", "busy"),
        ("0 Replica acquired successfully: Incremental update succeeded", "LDAP", None),
        (FINE, "LDAP", None),
        (DISABLED_BEFORE, "LDAP", None),
        (NEVER_YET, "LDAP", None),
        (None, None, None),
    ],
)
def test_what_a_status_means(sentence: str | None, transport: str | None, reason: str | None) -> None:
    cause = cause_of(sentence, transport)
    assert (cause and cause.reason) == reason


def test_a_wrong_password_is_the_first_line(tmp_path: Path) -> None:
    log = bind_failed(3, "49 (Invalid credentials)") + bind_failed(9, "49 (Invalid credentials)")
    log += "".join(map(login_refused, (3, 9, 12, 18)))
    case = case_of(tmp_path, mesh(REFUSED_LOGIN, log))
    found = diagnose(case)
    (one,) = of("LINK_FAILING", found["findings"])
    assert (one["severity"], one["reason"], one["waiting"], one["server"]) == ("error", "bind_refused", 5, "s1")
    assert one["since"] == "2024-03-24T10:27:21+00:00"
    assert "49 (invalid credentials)" in one["summary"] and "3 failed attempts since then" in one["summary"]
    assert (
        "dsconf INSTANCE repl-agmt set --suffix dc=example,dc=com --bind-passwd PASSWORD to-s2"
        in one["fix"][0]["repair"]
    )
    assert headline(found).startswith(
        "5 changes have not arrived at s2: the link to-s2 fails (invalid credentials); no change"
    )
    assert [row["suppliers"] for row in found["pending"]] == [[]]
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert (
        "because the link to-s2 does not run" in waits["summary"]
        and "LINK_FAILING says on to-s2" in waits["fix"][0]["repair"]
    )
    assert [(row["name"], row["failing"]) for row in found["links"]] == [("to-s2", "bind_refused"), ("to-s1", None)]
    assert "LINK FAILS" in matrix_text(system_named("ds389"), found["pairs"])
    said = plan_text(plan(case))
    assert "mend the link to-s2 (invalid credentials): LINK_FAILING has the commands" in said
    assert "on their way" not in said and "Nothing needs mending" not in said


def test_an_expired_password_is_told_by_the_log(tmp_path: Path) -> None:
    log = bind_failed(9, "49 (Invalid credentials)", "password expired!")
    assert failing(tmp_path, mesh(REFUSED_LOGIN, log))["reason"] == "password_expired"


def test_a_wrong_port_is_refused_and_the_consumer_guessed(tmp_path: Path) -> None:
    log = "".join(not_connected(second, "localhost.localdomain:39503") for second in (9, 12))
    one = failing(tmp_path, mesh(NO_CONNECTION, log, host="localhost.localdomain", port=39503))
    assert one["reason"] == "refused"
    assert "nothing listens at localhost.localdomain:39503" in one["summary"]
    assert "probably means s2" in one["summary"] and "localhost.localdomain:38902" in one["summary"]
    assert (one["waiting"], one["assumes"]) == (5, ["consumer_guessed"])
    assert "--port 38902 to-s2" in one["fix"][0]["repair"] and "--host" not in one["fix"][0]["repair"]


def test_a_consumer_that_is_down(tmp_path: Path) -> None:
    files = mesh(NO_CONNECTION, not_connected(9, "localhost:38902")) | {"s2.DOWN": ""}
    one = failing(tmp_path, files)
    assert one["reason"] == "unreachable" and "s2 could not be read when servers were collected" in one["summary"]
    assert "dsctl INSTANCE start" in one["fix"][0]["repair"]
    broke = failing(tmp_path / "broke", mesh(OLD_CONNECTION) | {"s2.DOWN": ""})
    assert broke["reason"] == "unreachable"


@pytest.mark.parametrize("network", ["11 (Resource temporarily unavailable", "115 (Operation now in progress"])
def test_a_port_that_answers_without_encryption_coming_about(network: str, tmp_path: Path) -> None:
    """115 was seen on 2.3.1 where the log of the consumer shows the connection, and what it encrypts with."""
    log = not_connected(9, "localhost:38902", network)
    assert failing(tmp_path / "a", mesh(NO_CONNECTION, log, "nsDS5ReplicaTransportInfo: LDAPS\n"))["reason"] == "tls"
    assert (
        failing(tmp_path / "b", mesh(NO_CONNECTION, log, "nsDS5ReplicaTransportInfo: LDAP\n"))["reason"]
        == "unreachable"
    )


@pytest.mark.parametrize(
    ("network", "says"),
    [
        ("101 (Network is unreachable", "no route to its network"),
        ("110 (Connection timed out", "the connection timed out"),
        ("112 (Host is down", "its host is down"),
        ("113 (No route to host", "no route to its host"),
    ],
)
def test_an_encrypted_link_on_which_nothing_is_reached(network: str, says: str, tmp_path: Path) -> None:
    """What kept it from connecting tells nothing of encryption, and the port did not accept anything."""
    log = not_connected(9, "localhost:38902", network)
    files = mesh(NO_CONNECTION, log, "nsDS5ReplicaTransportInfo: LDAPS\n")
    one = failing(tmp_path / "up", files)
    assert one["reason"] == "unreachable" and says in one["summary"]
    assert "accepts" not in one["summary"] and "encrypted" not in one["summary"]
    assert "see that s2 runs, and that s1 reaches localhost:38902" in one["fix"][0]["repair"]
    down = failing(tmp_path / "down", files | {"s2.DOWN": ""})
    assert (down["reason"], "s2 could not be read" in down["summary"]) == ("unreachable", True)


def test_an_encrypted_link_of_which_no_line_tells_more(tmp_path: Path) -> None:
    """That a server runs is known of one that was read live; files that a person put together may be of one that ended since."""
    files = mesh(NO_CONNECTION, more="nsDS5ReplicaTransportInfo: LDAPS\n")
    one = failing(tmp_path / "by hand", files)
    assert one["reason"] == "tls" and "the files of s2 were collected" in one["summary"]
    assert "s2 runs" not in one["summary"]
    times = "from: '2024-03-24T10:30:00Z', until: '2024-03-24T10:30:01Z'"
    files["case.yaml"] = f"collected: [{{server: s1, {times}}}, {{server: s2, {times}}}]\n"
    assert "and s2 runs" in failing(tmp_path / "live", files)["summary"]


def test_no_permission(tmp_path: Path) -> None:
    one = failing(tmp_path, mesh(NO_PERMISSION))
    assert one["reason"] == "permission" and one["waiting"] == 5
    assert f"--repl-add-bind-dn '{MANAGER}'" in one["fix"][0]["repair"]


def test_a_read_only_consumer(tmp_path: Path) -> None:
    changes = csn(5, 1), csn(6, 1)
    log = "".join(
        bind_resumed(second) + "".join(refused_change(second, one) for one in changes) for second in (9, 12, 15)
    )
    found = findings(tmp_path, mesh(BROKEN_OFF, log, ended=None))
    (one,), (loop,) = of("LINK_FAILING", found), of("APPLY_RETRY_LOOP", found)
    assert (one["reason"], one["severity"]) == ("consumer_read_only", "error")
    assert "its log shows 3 failed attempts" in one["summary"]
    for finding in (one, loop):
        assert "53 (unwilling to perform)" in finding["summary"]
        assert "dsconf INSTANCE backend suffix set --disable-readonly dc=example,dc=com" in finding["fix"][0]["repair"]
    assert "errors logs of its suppliers" in loop["summary"]
    assert one["fix"] == loop["fix"]


@pytest.mark.parametrize(("code", "reason"), [(53, "consumer_read_only"), (1, "refused")])
def test_a_consumer_that_cannot_write_its_own_vector_is_read_only(code: int, reason: str, tmp_path: Path) -> None:
    """Seen on 2.3.1, where every session ended at the first of the changes."""
    own = f"Failed to update replication update vector for replica dc=example,dc=com: LDAP error - {code}"
    files = mesh(BROKEN_OFF, refused_in_sessions(5), ended=None)
    files["s2.errors.log"] = line(10, f"ERR - NSMMReplicationPlugin - replica_replace_ruv_tombstone - {own}")
    assert failing(tmp_path, files)["reason"] == reason


def test_no_link_to_a_consumer_that_takes_nothing_brings_anything(tmp_path: Path) -> None:
    """s3 has it all and feeds s2, too: its last session broke off, as it does with a server that is busy with another one."""
    changes = csn(5, 1), csn(6, 1)
    log = "".join("".join(refused_change(second, one) for one in changes) for second in (9, 12, 15))
    files = mesh(BROKEN_OFF, log, ended=None)
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(1, 9))))
    files["s3.agreements.ldif"] = with_status(agreement("also-to-s2", 38902), told(BROKEN_OFF))
    delivers = files | {"s3.agreements.ldif": with_status(agreement("also-to-s2", 38902), told(FINE, ended=20))}
    assert [failure["link"] for failure in of("LINK_FAILING", findings(tmp_path / "delivers", delivers))] == ["to-s2"]
    case = case_of(tmp_path / "breaks_off", files)
    found = diagnose(case)
    first, second = of("LINK_FAILING", found["findings"])
    assert {first["reason"], second["reason"]} == {"consumer_read_only"}
    (also,) = (one for one in (first, second) if one["link"] == "also-to-s2")
    assert also["since"] is None and also["evidence"][0]["name"] == "also-to-s2", "its own status proves it, too"
    ran_since = files | {"s3.agreements.ldif": with_status(agreement("also-to-s2", 38902), told(BUSY, ended=4000))}
    failing_since = of("LINK_FAILING", findings(tmp_path / "since", ran_since))
    assert {failure["link"]: failure["reason"] for failure in failing_since} == {
        "to-s2": "consumer_read_only",
        "also-to-s2": "busy",
    }
    assert "s2 takes no change of any supplier, as to-s2 shows" in also["summary"]
    assert "on the way" not in headline(found) and "have not arrived at s2" in headline(found)


@pytest.mark.parametrize(("mine", "ended", "blocked"), [(BUSY, 4, True), (FINE, 4, False), (BUSY, 4000, False)])
def test_clocks_that_are_too_far_apart_one_way_are_so_the_other_way(
    mine: str, ended: int, blocked: bool, tmp_path: Path
) -> None:
    """s2 was turned away by s1 for its clock; the last attempt of s1 found s2 busy, or delivered, as one did since."""
    files = mesh(mine, ended=ended)
    skewed = "Error (2) Problem connecting to replica - too much time skew between replicas (excessive clock skew)"
    files["s2.agreements.ldif"] = with_status(agreement("to-s1", 38901), told(skewed))
    found = [one for one in findings(tmp_path, files) if one["code"] == "LINK_FAILING" and one["link"] == "to-s2"]
    closed = [failure for failure in found if failure["reason"] != "busy"]
    assert [failure["reason"] for failure in closed] == (["clock_refused"] if blocked else [])
    assert all("as to-s1 shows" in failure["summary"] for failure in closed)


def test_a_consumer_that_is_busy_because_it_refuses(tmp_path: Path) -> None:
    """Another supplier has it, and is refused the same change again and again."""
    changes = csn(5, 1), csn(6, 1)
    log = "".join("".join(refused_change(second, one) for one in changes) for second in (9, 12, 15))
    case = case_of(tmp_path, mesh(BUSY, log, ended=None))
    assert headline(diagnose(case)).startswith(
        "5 changes have not arrived at s2: the link to-s2 fails (consumer read-only)"
    )


def test_one_change_that_is_refused_does_not_prove_that_all_are(tmp_path: Path) -> None:
    log = "".join(bind_resumed(second) + refused_change(second, csn(5, 1)) for second in (9, 12, 15))
    found = findings(tmp_path, mesh(BROKEN_OFF, log, ended=None))
    (one,), (loop,) = of("LINK_FAILING", found), of("APPLY_RETRY_LOOP", found)
    assert one["reason"] == "refused" and "53 (unwilling to perform); its own log may say why" in one["summary"]
    assert "errors log of s2" in one["fix"][0]["repair"] and "nsslapd-readonly" in one["fix"][0]["repair"]
    assert "read-only" not in loop["summary"] + loop["fix"][0]["repair"]
    assert one["fix"] == loop["fix"]


def test_another_result_that_is_tried_again_is_named(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1), "Operations error (1)") for second in (9, 12, 15))
    found = findings(tmp_path, mesh(BROKEN_OFF, log, ended=None))
    assert of("LINK_FAILING", found)[0]["reason"] == "refused"
    assert "1 (operations error)" in of("APPLY_RETRY_LOOP", found)[0]["summary"]


_GONE = "Can't contact LDAP server(-1)"


@pytest.mark.parametrize(
    ("says", "short", "repair"),
    [
        (
            "dbmdb_map_error - dbmdb_public_db_op failed with db error -30792 : MDB_MAP_FULL: Environment mapsize limit reached",
            "database is full there",
            "--mdb-max-size",
        ),
        ("log_flush_buffer - error 28 (No space left on device)", "disk is full there", "free room on the disk of s2"),
        ("plugin x - it does not like the entry", "change refused, 1 (operations error)", "errors log of s2"),
    ],
)
def test_a_consumer_that_is_full_as_its_own_log_says(says: str, short: str, repair: str, tmp_path: Path) -> None:
    """It ends the connection with its answer, so that its supplier may never read that."""
    log = "".join(refused_change(second, csn(5, 1), _GONE) for second in (9, 12, 15))
    own = "".join(
        line(second - 0.5, "ERR - slapi_log_backtrace - [7] ns-slapd(+0x1efbc)")
        + line(second - 0.4, f"ERR - {says}")
        + line(
            second - 0.1,
            f"ERR - NSMMReplicationPlugin - process_postop - Failed to apply update ({csn(5, 1)}) error (1).  "
            "Aborting replication session(conn=31 op=4)",
        )
        for second in (9, 12, 15)
    )
    case = case_of(tmp_path, mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": own})
    found = diagnose(case)
    (one,), (loop,) = of("LINK_FAILING", found["findings"]), of("APPLY_RETRY_LOOP", found["findings"])
    assert one["reason"] == "refused" and "in every session with 1 (operations error)" in one["summary"]
    assert "-1" not in one["summary"] and "failed attempts" not in one["summary"]
    assert "-1" not in loop["summary"] and "s2 refuses the change" in loop["summary"]
    assert loop["quotes"] == one["quotes"] == [{"server": "s2", "text": says}]
    assert f"the errors log of s2 says just before: {says}" in findings_text([loop])
    assert short in headline(found)
    for finding in (one, loop):
        assert repair in finding["fix"][0]["repair"]
    again = line(30, "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 389 for LDAP requests")
    started = case_of(tmp_path / "started", mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": own + again})
    again = diagnose(started)
    (link,) = (one for one in again["links"] if one.get("fails"))
    assert link["failing"] == "backing_off" and not of("LINK_FAILING", again["findings"])
    assert link["fails"] == "consumer just started"


def test_a_connection_that_ends_is_no_answer(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1), _GONE) for second in (9, 12, 15))
    one = failing(tmp_path, mesh(BROKEN_OFF, log, ended=None))
    assert f"the connection ends in every session at the change {csn(5, 1)}: -1" in one["summary"]
    assert "err=-1" not in one["fix"][0]["repair"] and "refuses" not in one["summary"]


def test_one_old_answer_is_not_that_of_every_session(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1), _GONE) for second in (9, 12, 15))
    own = line(9, f"ERR - NSMMReplicationPlugin - process_postop - Failed to apply update ({csn(5, 1)}) error (1).  "
                  "Aborting replication session(conn=31 op=4)")  # fmt: skip
    found = findings(tmp_path, mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": own})
    assert "in every session with 1" not in of("LINK_FAILING", found)[0]["summary"]


def test_what_was_full_and_is_not_any_more_is_not_said(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1), "Operations error (1)") for second in (9, 12, 15))
    own = "".join(
        line(second - 0.4, f"ERR - {says}")
        + line(second - 0.1, f"ERR - NSMMReplicationPlugin - process_postop - Failed to apply update ({csn(5, 1)}) error (1).  "
                             "Aborting replication session(conn=31 op=4)")
        for second, says in ((9, "log_flush - error 28 (No space left on device)"), (12, "plugin x"), (15, "plugin x"))
    )  # fmt: skip
    found = findings(tmp_path, mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": own})
    for code in ("LINK_FAILING", "APPLY_RETRY_LOOP"):
        (one,) = of(code, found)
        assert "full" not in one["summary"] and [quote["text"] for quote in one["quotes"]] == ["plugin x"]


def test_what_was_refused_before_the_data_was_replaced_is_no_loop(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1)) for second in (5, 6, 7))
    imported = line(20, "INFO - bdb_public_bdb_import_main - import userroot: Beginning import job...")
    imported += line(
        30, "INFO - bdb_public_bdb_import_main - import userroot: Import complete.  Processed 4 entries in 3 seconds."
    )
    files = mesh(FINE, log) | {"s2.errors.log": imported}
    assert not of("APPLY_RETRY_LOOP", findings(tmp_path, files))


def anchor_gone(second: float) -> str:
    text = (
        "Data required to update replica has been purged from the changelog. If the error persists the replica must be"
    )
    head = 'ERR - NSMMReplicationPlugin - send_updates - agmt="cn=to-s2" (localhost:38902)'
    return line(second, f"{head}: {text} reinitialized.")


def no_replica(second: float) -> str:
    text = 'Unable to acquire replica: there is no replicated area "dc=example,dc=com" on the consumer server. Replication is'
    head = 'ERR - NSMMReplicationPlugin - acquire_replica - agmt="cn=to-s2" (localhost:38902)'
    return line(second, f"{head}: {text} aborting.")


def at(second: float) -> str:
    text = zulu(second)
    return f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:{text[12:14]}"


def test_what_fails_last_is_the_cause_and_not_what_was_refused_before(tmp_path: Path) -> None:
    """A consumer of which no file tells which server it is: the newest lines of the supplier tell why it gets nothing."""
    log = "".join(refused_change(second, csn(5, 1)) for second in (5, 6, 7)) + anchor_gone(60) + anchor_gone(63)
    one = failing(tmp_path / "last", mesh(BROKEN_OFF, log, ended=None, host="elsewhere.example.com", port=40031))
    assert one["reason"] == "anchor_lost" and "53" not in one["summary"]
    assert f"since {at(60)} UTC (its log first shows a failure); " in one["summary"]
    assert "2 failed attempts since then" in one["summary"] and "initialise it" in one["fix"][0]["repair"]
    log += "".join(refused_change(second, csn(5, 1)) for second in (70, 71, 72))
    one = failing(tmp_path / "again", mesh(BROKEN_OFF, log, ended=None, host="elsewhere.example.com", port=40031))
    assert one["reason"] == "refused" and f"since {at(70)} UTC" in one["summary"]


def test_a_link_fails_since_it_was_last_in_another_state(tmp_path: Path) -> None:
    for number, between in enumerate((anchor_gone(60), refused_change(60, csn(5, 1)))):
        log = no_replica(5) + between + no_replica(90)
        one = failing(tmp_path / str(number), mesh(NO_REPLICA, log, ended=None))
        assert one["reason"] == "no_such_replica" and f"since {at(90)} UTC" in one["summary"]
        assert "1 failed attempt since then" in one["summary"]


def test_what_was_refused_before_the_consumer_was_filled_is_no_cause(tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1)) for second in (5, 6, 7))
    online = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is coming online; "
    for second, many in ((6, 1), (30, 0)):
        files = mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": line(second, f"{online}enabling replication")}
        found = of("LINK_FAILING", findings(tmp_path / str(second), files))
        assert sum(one["reason"] == "refused" for one in found) == many


@pytest.mark.parametrize("host", ["localhost.localdomain", "127.0.0.1", "::1"])
def test_a_link_to_its_own_supplier_fails_whatever_its_status_says(host: str, tmp_path: Path) -> None:
    files = mesh(FINE, host=host, port=38901)
    one = failing(tmp_path, files)
    assert "the agreement to-s2 leads to s1 itself; " in one["summary"] and one["reason"] == "refused"


# --- what ends by itself, and what is healed


@pytest.mark.parametrize("sentence", [BUSY, BROKEN_OFF, OLD_CONNECTION])
def test_what_ends_by_itself_is_found_only_after_minutes(sentence: str, tmp_path: Path) -> None:
    young = mesh(sentence, line(60, "INFO - main - x"))
    assert not of("LINK_FAILING", findings(tmp_path / "young", young))
    old = mesh(sentence, line(900, "INFO - main - x"))
    case = case_of(tmp_path / "old", old)
    found = diagnose(case)
    assert [one["severity"] for one in of("LINK_FAILING", found["findings"])] == ["warning"]
    assert [row["suppliers"] for row in found["pending"]] == [["s1"]]
    assert "on the way to s2" in headline(found)


def test_a_link_that_finds_its_consumer_busy_is_no_finding_where_another_one_brings_all(tmp_path: Path) -> None:
    """s3 has it all and feeds s2: that is what keeps s2 busy."""
    files = mesh(BUSY, line(900, "INFO - main - x"))
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(1, 9))))
    for at, sentence in enumerate((FINE, BUSY)):
        files["s3.agreements.ldif"] = with_status(agreement("also-to-s2", 38902), told(sentence, ended=4000))
        found = of("LINK_FAILING", findings(tmp_path / str(at), files))
        assert {one["link"] for one in found} == (set() if sentence == FINE else {"to-s2", "also-to-s2"})


def test_a_login_that_succeeds_later_heals_the_link(tmp_path: Path) -> None:
    healed = mesh(NO_CONNECTION, bind_failed(9, "-1 (Can't contact LDAP server)") + bind_resumed(12))
    assert not of("LINK_FAILING", findings(tmp_path / "healed", healed))
    again = mesh(NO_CONNECTION, bind_resumed(9) + bind_failed(12, "-1 (Can't contact LDAP server)"))
    assert of("LINK_FAILING", findings(tmp_path / "again", again))


def test_a_consumer_that_started_after_the_last_attempt(tmp_path: Path) -> None:
    started = line(15, "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38902 for LDAP requests")
    files = mesh(NO_CONNECTION, not_connected(12, "localhost:38902")) | {"s2.errors.log": started}
    assert not of("LINK_FAILING", findings(tmp_path / "started", files))
    late = mesh(NO_CONNECTION, not_connected(18, "localhost:38902")) | {"s2.errors.log": started}
    assert of("LINK_FAILING", findings(tmp_path / "before", late))


@pytest.mark.parametrize("sentence", [FINE, DISABLED_BEFORE, NEVER_YET])
def test_a_healthy_status_is_no_finding(sentence: str, tmp_path: Path) -> None:
    log = bind_failed(2, "49 (Invalid credentials)") + not_connected(3, "localhost:38902")
    assert not of("LINK_FAILING", findings(tmp_path, mesh(sentence, log)))


# --- other ways


def test_a_link_that_fails_beside_one_that_runs(tmp_path: Path) -> None:
    files = mesh(REFUSED_LOGIN)
    log, ruv = (
        [csn(second, 1) for second in range(10)] + [csn(1, 2), csn(2, 2)],
        claims(r1=(0, 9), r2=(1, 2), r3=(0, 0)),
    )
    files["s3.changelog.ldif"] = changelog([csn(0, 3), *log])
    files["s3.replica.ldif"] = replica(3, elements(ruv))
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (one,) = of("LINK_FAILING", found["findings"])
    assert "s3 can deliver them over links that run" in one["summary"] and one["waiting"] == 5
    assert {tuple(row["suppliers"]) for row in found["pending"] if row["server"] == "s2"} == {("s3",)}
    assert "are on the way to" in headline(found) and headline(found).startswith(
        "The link to-s2 fails (invalid credentials); no change"
    )


def test_what_waits_grows_between_two_snapshots(tmp_path: Path) -> None:
    assert (
        "more have come since"
        in failing(tmp_path, mesh(REFUSED_LOGIN) | _ahead(7), mesh(REFUSED_LOGIN) | _ahead(9))["summary"]
    )


def _ahead(last: int) -> Files:
    files = pair_of_servers(last)
    return {name: files[name] for name in ("s1.changelog.ldif", "s1.replica.ldif")}


def test_a_failing_link_on_the_map() -> None:
    over = {"stuck": "", "why": "", "waiting": 5, "oldest": None, "never": 0, "exact": True}
    link = {"supplier": "s1", "consumer": "s2", "enabled": True, "failing": "no permission", "over": over}
    assert link_says(link) == {
        "label": "no permission, 5 wait",
        "says": "fails (no permission); 5 changes would go over it",
    }


def test_a_link_to_its_own_supplier_that_had_another_consumer_before_gets_the_address_of_that_one(
    tmp_path: Path,
) -> None:
    """Seen on 3.1.2: the port of s1-to-s2 was set to that of s1; the agreement still remembers s2, and s3 leads to s2."""
    same = "Error (11) Replication error acquiring replica: Unable to acquire replica: the replica has the same Replica ID as "
    files = pair_of_servers(9, 4)
    known = elements(claims(r1=(0, 4), r2=(1, 2)))
    itself = agreement("s1-to-s2", 38901, remembered=known, host="localhost.localdomain")
    files["s1.agreements.ldif"] = with_status(
        itself, told(f"{same}this one. Replication is aborting. (duplicate replica ID)")
    )
    files["s3.replica.ldif"] = replica(3, elements({**claims(r1=(0, 4), r2=(1, 2)), 3: None}))
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902, host="localhost.localdomain")
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "the agreement s1-to-s2 leads to s1 itself (code 11)" in one["summary"] and "duplicate" not in one["summary"]
    assert "--port 38902 s1-to-s2" in one["fix"][0]["repair"]


LISTENS = "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38902 for LDAP requests"
LISTENS_ENCRYPTED = "INFO - slapd_daemon - Listening on All Interfaces port 63602 for LDAPS requests"


@pytest.mark.parametrize("network", ["107 (Transport endpoint is not connected", "0 (Unknown error"])
@pytest.mark.parametrize("encrypted_port", [False, True])
def test_ldaps_to_the_plain_port_of_a_consumer_is_named(encrypted_port: bool, network: str, tmp_path: Path) -> None:
    """3.1.2 has network error 107 there, 2.3.1 none: the consumer listens, and its log says for what."""
    log = "".join(not_connected(second, "localhost:38902", network) for second in (9, 12))
    files = mesh(NO_CONNECTION, log, "nsDS5ReplicaTransportInfo: LDAPS\n")
    files["s2.errors.log"] = listening("s2")["s2.errors.log"].splitlines(keepends=True)[0]
    files["s2.errors.log"] += "\tlocalhost.localdomain:38902 (/etc/dirsrv/slapd-s2)\n\n" + line(0, LISTENS)
    files["s2.errors.log"] += line(0, LISTENS_ENCRYPTED) if encrypted_port else ""
    found = failing(tmp_path, files)
    assert found["reason"] == "tls"
    assert "the agreement uses LDAPS, and s2 listens at localhost:38902 for plain LDAP" in found["summary"]
    assert "nothing listens" not in found["summary"] and "certificate" not in found["fix"][0]["repair"]
    ways = (
        ("--port 63602 to-s2", "--conn-protocol StartTLS to-s2") if encrypted_port else ("--conn-protocol LDAP to-s2",)
    )
    assert all(way in found["fix"][0]["repair"] for way in ways)


@pytest.mark.parametrize(
    ("transport", "port", "last"),
    [("LDAP", 38902, ""), ("LDAPS", 38903, ""), ("LDAPS", 38902, "INFO - main - slapd stopped.")],
)
def test_a_port_is_a_plain_one_only_as_the_consumer_itself_tells(
    transport: str, port: int, last: str, tmp_path: Path
) -> None:
    log = "".join(not_connected(second, f"localhost:{port}") for second in (9, 12))
    files = mesh(NO_CONNECTION, log, f"nsDS5ReplicaTransportInfo: {transport}\n", port=port)
    files["s2.errors.log"] = listening("s2")["s2.errors.log"] + line(0, LISTENS) + (line(1, last) if last else "")
    assert "plain LDAP" not in failing(tmp_path, files)["summary"]


@pytest.mark.parametrize("reached", [1, 2])
def test_a_failing_link_brings_nothing_that_its_supplier_lacks(reached: int, tmp_path: Path) -> None:
    """No link leads from s3 to s1 or s2; s1 has its changes up to that second, s2 only the first."""
    log = bind_failed(9, "49 (Invalid credentials)") + login_refused(9)
    files = mesh(REFUSED_LOGIN, log)
    base = [*(csn(second, 1) for second in range(5)), csn(1, 2), csn(2, 2)]
    spans = {"s1": {"r1": (0, 9), "r3": (1, reached)}, "s2": {"r1": (0, 4), "r3": (1, 1)}}
    spans |= {name: {"r1": (0, 4), "r3": (1, 3)} for name in ("s3", "s4")}
    logs = {"s1": [*base, *(csn(second, 1) for second in range(5, 10))], "s2": base, "s3": base}
    for name, mine in spans.items():
        ruv = elements(claims(**mine, r2=(1, 2)))
        files[f"{name}.replica.ldif"] = replica(int(name[1:]), ruv) if name != "s4" else replica(65535, ruv, flags=0)
        if name in logs:
            last = mine["r3"][1]
            files[f"{name}.changelog.ldif"] = changelog([*logs[name], *(csn(n, 3) for n in range(1, last + 1))])
    files["s3.agreements.ldif"] = agreement("to-s4", 38904)
    files |= listening("s4")
    (waits,) = (
        found
        for found in of("PENDING_CHANGES", findings(tmp_path, files))
        if (found["server"], found["origin"]) == ("s2", "3")
    )
    (step, *_) = waits["fix"]
    if reached == 1:
        assert step["repair"] == "do what PENDING_CHANGES says of s1 for origin 3, and what LINK_FAILING says on to-s2"
        assert "s1 waits for them itself: they arrive only once s1 has them" in step["why"]
    else:
        assert step["repair"] == "do what LINK_FAILING says on to-s2"


def test_a_consumer_that_is_down_is_not_asked_for_what_it_refused_before(tmp_path: Path) -> None:
    """Seen on 3.1.2: it refused notes of failed logins with 53 and crashed seconds later; of the address the other link tells."""
    log = "".join(refused_change(second, csn(5, 1)) for second in (9, 12, 15))
    files = mesh(BROKEN_OFF, log, ended=None)
    for kind in ("replica", "changelog", "agreements"):
        del files[f"s2.{kind}.ldif"]
    files |= {"s2.DOWN": "no connection\n"} | listening("s2")
    found = failing(tmp_path, files)
    assert "s2 could not be read when servers were collected" in found["summary"]
    assert (found["reason"], found["fix"][0]["repair"].partition(":")[0]) == ("unreachable", "start s2")
    assert "nsslapd-readonly" not in str(found["fix"])
