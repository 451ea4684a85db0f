"""Links that do not run though their status is green: outside their schedule, waiting, or stopped until somebody acts."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from detector_samples import findings, listening, of, with_status, zulu
from link_samples import (
    BROKEN_OFF,
    BUSY,
    DISABLED_BEFORE,
    FINE,
    NEVER_YET,
    NO_REPLICA,
    REFUSED_LOGIN,
    bind_failed,
    bind_resumed,
    failing,
    line,
    login_refused,
    mesh,
    refused_change,
    told,
)
from mesh_samples import SUFFIX, agreement, case_of, csn
from test_link_failures import no_replica

from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.diagnosis.closed_ways import disabled_say
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.failing_links import _oldest, failing_say
from workbench.diagnosis.pair_matrix_text import matrix_text
from workbench.systems import system_named
from workbench.systems.ds389.rules.link_reasons import opens_at
from workbench.systems.ds389.session_log.link_fixes import Agreement, fixes_of

_WEDNESDAY = "2026-11-25 06:30"


@pytest.mark.parametrize(
    ("schedule", "opens"),
    [
        (None, _WEDNESDAY),
        ("*", _WEDNESDAY),
        ("0000-2359 0123456", _WEDNESDAY),
        ("0600-0630 3", _WEDNESDAY),
        ("0600-0629 3", "2026-12-02 06:00"),
        ("0700-0800 0123456", "2026-11-25 07:00"),
        ("0300-0305 0", "2026-11-29 03:00"),
        ("0300-0305 0; 2200-2300 3", "2026-11-25 22:00"),
        ("at night", _WEDNESDAY),
    ],
)
def test_when_a_schedule_opens(schedule: str | None, opens: str) -> None:
    assert opens_at(schedule, datetime.fromisoformat(_WEDNESDAY)) == datetime.fromisoformat(opens)


@pytest.mark.parametrize(("zone", "opens"), [("+0000", "2024-03-24 23:00 UTC"), ("+0530", "2024-03-24 17:30 UTC")])
def test_a_closed_schedule_in_the_time_zone_of_the_log(zone: str, opens: str, tmp_path: Path) -> None:
    files = mesh(
        FINE, line(9, "INFO - main - x").replace("+0000", zone), "nsds5replicaupdateschedule: 2300-2330 0123456\n"
    )
    one = failing(tmp_path, files)
    assert (one["reason"], one["severity"], one["waiting"]) == ("schedule_closed", "warning", 5)
    assert f"it opens at {opens}" in one["summary"] and not one["assumes"]


def test_a_closed_schedule_where_nothing_tells_the_time_zone(tmp_path: Path) -> None:
    one = failing(tmp_path, mesh(FINE, "", "nsds5replicaupdateschedule: 2300-2330 0123456\n"))
    assert one["assumes"] == ["clock_in_utc"] and "if the clock of the server runs in UTC" in one["summary"]


# --- agreements that have stopped, and whose status does not say so


def _about(second: float, text: str, function: str) -> str:
    return line(second, f'ERR - NSMMReplicationPlugin - {function} - agmt="cn=to-s2" (localhost:38902): {text}')


_SKEWED = (
    "Unable to acquire replica: Excessive clock skew between the supplier and the consumer. Replication is aborting."
)
_STOPPED = "Incremental update failed and requires administrator action"


@pytest.mark.parametrize(("pause", "code"), [("36000", 0), ("60", 0), ("36000", 49), ("", 0)])
def test_a_link_that_was_told_to_wait_between_sessions_does_not_run(pause: str, code: int, tmp_path: Path) -> None:
    """Seen on 2.3.1: it slept for ten hours behind a green status."""
    more = f"nsds5ReplicaSessionPauseTime: {pause}\n" if pause else ""
    said = "ERR - NSMMReplicationPlugin - replica_config_modify - something of that time"
    case = case_of(tmp_path, mesh(REFUSED_LOGIN if code else FINE, line(400, said), more))
    found = of("LINK_FAILING", diagnose(case)["findings"])
    waits = pause == "36000" and not code
    assert [one["reason"] for one in found] == (["schedule_closed"] if waits else ["bind_refused"] if code else [])
    for one in found if waits else ():
        assert "it waits 36,000 s between sessions (nsds5ReplicaSessionPauseTime)" in one["summary"]
        assert "--session-pause-time 0 to-s2" in one["fix"][0]["repair"]
        assert "5 changes have not arrived at s2: the link to-s2 does not run (waits between sessions)" in headline(
            diagnose(case)
        )


def test_a_clock_that_is_refused_at_the_first_attempt_leaves_a_green_status(tmp_path: Path) -> None:
    log = _about(9, _SKEWED, "acquire_replica") + _about(9, _STOPPED, "repl5_inc_run")
    one = failing(tmp_path / "stopped", mesh(NEVER_YET, log, ended=None))
    assert (one["reason"], one["severity"], one["waiting"]) == ("clock_refused", "error", 5)
    assert "has stopped until somebody acts" in one["summary"]
    started = line(20, "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38901 for LDAP requests")
    starting = line(8, "INFO - main - 389-Directory/2.3.1 B2024.056.0000 starting up")
    assert of("LINK_FAILING", findings(tmp_path / "starting", mesh(NEVER_YET, starting + log + started, ended=None)))
    assert not of("LINK_FAILING", findings(tmp_path / "restarted", mesh(NEVER_YET, log + started, ended=None)))
    assert not of("LINK_FAILING", findings(tmp_path / "later", mesh(FINE, log, ended=12)))
    assert not of("LINK_FAILING", findings(tmp_path / "poked", mesh(DISABLED_BEFORE, log)))
    goes_on = "Error (0) Replica acquired successfully: Incremental update started"
    for began in (8, 12):  # of a session that goes on no end is told yet
        now = mesh(goes_on, log, f"nsds5replicaLastUpdateStart: {zulu(began)}\n", ended=None)
        assert bool(of("LINK_FAILING", findings(tmp_path / f"since {began}", now))) is (began == 8)


@pytest.mark.parametrize(
    ("least", "most", "waits"), [("900", "3600", True), ("900", "", True), ("3", "300", False), ("", "", False)]
)
def test_a_link_whose_server_was_told_to_wait_long_after_a_failure_does_not_run(
    least: str, most: str, waits: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: its consumer was back after seconds, and for 15 minutes nothing came to it."""
    files = mesh(BROKEN_OFF, line(9, "INFO - main - x"), f"nsds5replicaLastUpdateStart: {zulu(6)}\n")
    lines = [f"nsds5ReplicaBackoff{end}: {text}" for end, text in (("Min", least), ("Max", most)) if text]
    files["s1.replica.ldif"] = "\n".join([files["s1.replica.ldif"].rstrip("\n"), *lines]) + "\n\n"
    found = of("LINK_FAILING", findings(tmp_path, files))
    assert [(one["reason"], one["waiting"]) for one in found] == ([("schedule_closed", 5)] if waits else [])
    for one in found:
        assert f"s1 waits 900 to {3600 if most else 900:,} s before it tries again" in one["summary"]
        assert "repl-agmt poke" in one["fix"][0]["repair"] and "--repl-backoff-min 3" in one["fix"][1]["repair"]


@pytest.mark.parametrize(("read", "opens"), [(300, "2024-03-24 10:42 UTC"), (2000, "")], ids=["before", "after"])
def test_a_link_that_backs_off_opens_at_no_time_before_its_server_was_read(
    read: float, opens: str, tmp_path: Path
) -> None:
    """It broke off at 10:27 and waits 15 to 60 minutes; its server was read at 10:32, or at 11:00. It has no schedule."""
    files = mesh(BROKEN_OFF, line(read, "INFO - main - x"), f"nsds5replicaLastUpdateStart: {zulu(6)}\n")
    files["s1.replica.ldif"] = files["s1.replica.ldif"].rstrip("\n") + (
        "\nnsds5ReplicaBackoffMin: 900\nnsds5ReplicaBackoffMax: 3600\n\n"
    )
    found = diagnose(case_of(tmp_path, files))
    (closed,) = of("LINK_FAILING", found["findings"])
    until = f"not before {opens}" if opens else "at 2024-03-24 11:27 UTC at the latest"
    assert f"nsds5ReplicaBackoffMax): {until}; " in closed["summary"]
    (pair,) = (row for row in found["pairs"] if row["supplier"] == "s1")
    text = matrix_text(system_named("ds389"), [pair])
    assert (pair["link_opens"] is not None) is bool(opens)
    if opens:
        assert f"but not before {opens}: the link was told to hold no session until then (LINK_FAILING)" in text
    else:
        assert "but the link fails: the link holds no session now: " in text and "or was told to wait" in text
    assert "the link is outside its schedule" not in text


def test_a_link_that_logs_in_again_since_it_stopped_is_not_called_stopped(tmp_path: Path) -> None:
    """Seen on 3.1.2: it had stopped for another reason before, somebody acted, and it broke off and tried again since."""
    turned_away = _about(
        30, "Unable to acquire replica: the replica is currently being updated by another supplier", "acquire"
    )
    log = _about(9, _STOPPED, "repl5_inc_run") + bind_resumed(20) + turned_away
    stopped = failing(tmp_path / "stopped", mesh(BUSY, _about(9, _STOPPED, "repl5_inc_run"), ended=None))
    assert "has stopped until somebody acts" in stopped["summary"]
    found = findings(tmp_path / "since", mesh(BUSY, log, ended=None))
    assert not [one for one in of("LINK_FAILING", found) if "has stopped" in one["summary"]]


def test_a_refused_clock_is_dated_by_lines_about_clocks(tmp_path: Path) -> None:
    """Another failure before it ended by itself: it is no part of this one."""
    status = "Error (8) Replication error acquiring replica: "
    status += "Unable to obtain current CSN. Replication is aborting. (internal error)"
    timed_out = "Unable to receive the response for a startReplication extended operation "
    timed_out += "to consumer (Timed out). Will retry later."
    log = _about(5, timed_out, "acquire_replica") + _about(9, _SKEWED, "acquire_replica")
    one = failing(tmp_path, mesh(status, log, ended=None))
    assert one["reason"] == "clock_refused"
    assert one["since"].startswith(zulu_text(9)) and "its log shows 1 failed attempt" in one["summary"]


def zulu_text(second: float) -> str:
    moment = zulu(second)
    return f"{moment[:4]}-{moment[4:6]}-{moment[6:8]}T{moment[8:10]}:{moment[10:12]}:{moment[12:14]}"


def test_a_session_that_the_consumer_refused_is_not_blamed_on_the_address(tmp_path: Path) -> None:
    status = "Error (11) Replication error acquiring replica: Unable to acquire replica: the replica has the same Replica ID as "
    one = failing(tmp_path, mesh(f"{status}this one. Replication is aborting. (duplicate replica ID detected)"))
    # Both were collected, and have two IDs.
    assert "its own entry shows another one" in one["summary"]
    assert "look into the errors log of s2" in one["fix"][0]["repair"]
    (fix, *_) = fixes_of("refused", Agreement("x", "s1", "s2", SUFFIX, "s2:389", answered=11))
    assert "another replica ID" in str(fix["repair"])
    assert not any("--host" in fix["repair"] for fix in one["fix"])


def test_a_change_that_was_made_by_a_clock_ahead_has_no_age(tmp_path: Path) -> None:
    context, _ = context_of(case_of(tmp_path, mesh(REFUSED_LOGIN)))
    read = datetime.fromisoformat(f"{zulu_text(60)}+00:00")
    assert _oldest(context, {"to_send": {"1": {"first": csn(3 * 86400, 1)}}}, read) is None
    assert _oldest(context, {"to_send": {"1": {"first": csn(20, 1)}}}, read) == timedelta(seconds=40)


def test_lines_of_one_name_are_of_the_agreement_whose_status_says_the_same(tmp_path: Path) -> None:
    """The lines do not name the suffix: one stop, and one agreement of that name that has failed by its status."""
    entry = agreement("to-s2", 38902, host="localhost")
    skewed = told(
        "Error (2) Replication error acquiring replica: fatal error - too much time skew between replicas (excessive clock skew)"
    )
    twin = entry.replace(SUFFIX, "o=second").replace("dc\\3Dexample\\2Cdc\\3Dcom", "o\\3Dsecond")
    assert twin != entry
    files = mesh(FINE, _about(9, _SKEWED, "acquire_replica") + _about(9, _STOPPED, "repl5_inc_run"))
    files["s1.agreements.ldif"] = with_status(entry, skewed) + "\n" + with_status(twin, told(FINE))
    found = of("LINK_FAILING", findings(tmp_path, files))
    assert [one["suffix"] for one in found] == [SUFFIX]


def test_a_stop_is_said_of_no_agreement_whose_name_another_suffix_has(tmp_path: Path) -> None:
    """Two have stopped, and of one of these names there is another one, which failed: nobody knows which of the two stopped."""

    def stopped(name: str) -> str:
        lines = _about(9, _SKEWED, "acquire_replica") + _about(9, _STOPPED, "repl5_inc_run")
        return lines.replace("to-s2", name)

    def entry(name: str, sentence: str, suffix: str = SUFFIX) -> str:
        return with_status(agreement(name, 38902, suffix=suffix), told(sentence, ended=None))

    names = [entry("m1", NEVER_YET), entry("m2", NEVER_YET), entry("m2", BUSY, "o=second")]
    files = mesh(FINE, stopped("m1") + stopped("m2")) | {"s1.agreements.ldif": "\n".join(names)}
    said = {one["summary"] for one in of("LINK_FAILING", findings(tmp_path / "failing", files))}
    assert ["m1" in one for one in said if "has stopped" in one] == [True]
    files["s1.agreements.ldif"] = entry("m2", NEVER_YET) + "\n" + entry("m2", NEVER_YET, "o=second")
    assert not of("LINK_FAILING", findings(tmp_path / "quiet", files))


def test_a_suffix_that_is_replicated_again_needs_another_attempt_and_no_initialisation(tmp_path: Path) -> None:
    """s2 refused the session when it did not replicate; since then it does, and its RUV was collected."""
    one = failing(tmp_path, mesh(NO_REPLICA))
    assert "did not replicate this suffix when it was asked" in one["summary"] and "does now" in one["summary"]
    assert "initialise" not in str(one["fix"]) and "repl-agmt poke" in one["fix"][0]["repair"]


@pytest.mark.parametrize(("ended", "now"), [(20, True), (2, False)])
def test_a_server_that_answers_another_supplier_does_replicate_the_suffix(
    ended: float, now: bool, tmp_path: Path
) -> None:
    """s2 was not collected; it refused s1 at 4 s, and a session of s3 to the same address ended with success."""
    began = f"nsds5replicaLastUpdateStart: {zulu(4)}\n"
    files = mesh(NO_REPLICA, more=began, host="s2.example.com")
    files = {name: text for name, text in files.items() if not name.startswith("s2.")}
    files["s3.replica.ldif"] = files["s1.replica.ldif"].replace("nsDS5ReplicaId: 1", "nsDS5ReplicaId: 3")
    files["s3.agreements.ldif"] = with_status(
        agreement("s3-to-s2", 38902, host="s2.example.com"), told(FINE, ended=ended)
    )
    one = failing(tmp_path, files)
    assert ("does now" in one["summary"]) is now
    assert ("replication enable" in str(one["fix"])) is not now


@pytest.mark.parametrize(("several", "name"), [(True, "a-to-b of o=two"), (False, "a-to-b")])
def test_a_link_bears_its_suffix_where_there_are_several(several: bool, name: str) -> None:
    """Seen on 3.1.2: links of two suffixes had the same names, and those of one failed."""
    row = {"name": "a-to-b", "supplier": "a", "suffix": "o=two", "several": several, "reason": "tls", "why": "expired"}
    assert failing_say([row]) == f"the link {name} fails (expired)"
    assert disabled_say([{**row, "why": None}]) == f"the link {name} is disabled"


@pytest.mark.parametrize("other", [False, True])
def test_a_closed_link_behind_one_that_fails_is_a_finding_before_anything_waits_there(
    other: bool, tmp_path: Path
) -> None:
    """s2 lacks five changes of s1, and s3, which only s2 feeds by its closed link, lacks them, too. `other`: s1 feeds s3."""
    files = mesh(REFUSED_LOGIN)
    files["s3.replica.ldif"] = files["s2.replica.ldif"].replace("nsDS5ReplicaId: 2", "nsDS5ReplicaId: 65535")
    files |= listening("s3")
    closed = "nsds5replicaupdateschedule: 2300-2330 0123456\n"
    files["s2.agreements.ldif"] = with_status(agreement("s2-to-s3", 38903), told(FINE, more=closed))
    files["s2.errors.log"] = line(9, "INFO - main - x")
    if other:
        files["s1.agreements.ldif"] += with_status(agreement("s1-to-s3", 38903), told(FINE))
    found = diagnose(case_of(tmp_path, files))
    links = {one["link"]: one for one in of("LINK_FAILING", found["findings"])}
    assert set(links) == ({"to-s2"} if other else {"to-s2", "s2-to-s3"})
    if not other:
        assert "nothing waits behind it yet" in links["s2-to-s3"]["summary"]


def test_a_link_that_stopped_is_told_where_another_one_of_its_supplier_tries_again_and_again(tmp_path: Path) -> None:
    """The changes that s3 refuses stand in the same log; the status of to-s2 was not collected, or tells of no attempt."""
    head = 'ERR - NSMMReplicationPlugin - repl5_inc_run - agmt="cn=to-s2" (localhost:38902)'
    log = "".join(refused_change(second, csn(2, 1)).replace("to-s2", "to-s3") for second in (5, 6, 7))
    log += no_replica(9) + line(9, f"{head}: Incremental update failed and requires administrator action")
    (one,) = of("LINK_FAILING", findings(tmp_path, mesh(NEVER_YET, log, ended=None)))
    assert (one["link"], one["reason"]) == ("to-s2", "no_such_replica")
    assert "(code 6)" in one["summary"]


def test_a_dse_ldif_of_a_server_that_replicates_nothing_tells_where_it_listens(tmp_path: Path) -> None:
    files = mesh(NO_REPLICA)
    for name in [name for name in files if name.startswith("s2.")]:
        del files[name]
    files["s2.dse.ldif"] = (
        "dn:\nobjectClass: top\n\ndn: cn=config\nobjectClass: top\nnsslapd-localhost: localhost\nnsslapd-port: 38902\n\n"
    )
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "from s1 to s2 fails" in one["summary"]


def test_a_login_fails_since_the_line_that_names_the_agreement(tmp_path: Path) -> None:
    """Seen on 3.1.2: the consumer was busy with another supplier, and its password was right for half a minute more."""
    other = with_status(agreement("to-s3", 38903), told(REFUSED_LOGIN))
    log = bind_failed(9, "49", "Invalid credentials") + login_refused(9) + login_refused(12)
    files = mesh(REFUSED_LOGIN, log)
    files["s1.agreements.ldif"] += other
    (one,) = [each for each in of("LINK_FAILING", findings(tmp_path, files)) if each["link"] == "to-s2"]
    assert "since 2024-03-24 10:27:21 UTC (its log first shows a failure; its last session ended at" in one["summary"]
