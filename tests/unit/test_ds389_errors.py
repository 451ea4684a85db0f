"""The errors log of 389 Directory Server: what the server said, and nobody else."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from log_samples import (
    CSN,
    FAULT_MARK,
    LOGS,
    PLUGIN,
    STAMP,
    comparable,
    failing,
    json_time,
    read,
    rows,
    same_in_pieces,
    sample,
)

from workbench.model import REMOVED, Format
from workbench.systems.ds389.formats.errors_log import ERRORS_LOG, ERRORS_LOG_PRETTY
from workbench.systems.ds389.formats.errors_meanings import MEANINGS, STEPS

LINK = 'agmt="cn=s2-to-s3" (localhost:38903)'
ALREADY_SEEN = PLUGIN + f"ruv_add_csn_inprogress - The csn {CSN} has already be seen (in ruv) - ignoring"
CANCELLED = PLUGIN + f"process postop - conn=51 op=106 csn={CSN} canceling operation csn"
SKIPPED = PLUGIN + f"x - {LINK}: Receiver failed to replay change (uniqueid 1, CSN %s): %s. Skipping."


def message(line: str) -> dict:
    (found,) = rows(ERRORS_LOG, line, table="messages")
    return {**found, "numbers": dict(found["numbers"] or [])}


def test_every_code_has_a_sentence_and_no_pattern_searches_inside_a_text() -> None:
    for code, meaning in {**MEANINGS, **STEPS}.items():
        assert re.fullmatch(r"[a-z_]+", code)
        assert meaning.says and meaning.signs
        assert not meaning.pattern.pattern.startswith((".", "(?:.*"))


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (
            f"ruv_add_csn_inprogress - The csn {CSN} has already be seen (in ruv) - ignoring",
            "already_seen",
            {"where": "in ruv"},
        ),
        (f"{LINK}: CSN {CSN} found, position set for replay", "position_found", {}),
        (
            f'replay_update - {LINK}: Sending modify operation (dn="uid=a" csn={CSN})',
            "sending",
            {"operation": "modify"},
        ),
        (f"clcache_initial_anchorcsn - anchor is now: {CSN}", "anchor_initial", {}),
        (f"{LINK} - clcache_adjust_anchorcsn - anchor is now: {CSN}", "anchor_reload", {}),
        (
            f"{LINK} - clcache_skip_change - Skipping {CSN} because the consumer with Rid: [1] is ignored",
            "change_skipped",
            {"reason": "the consumer with Rid: [1] is ignored"},
        ),
        (
            f"process_postop - Failed to apply update ({CSN}) error (51).  Aborting replication session(conn=4 op=2)",
            "apply_failed",
            {"error": "51", "conn": "4", "op": "2"},
        ),
        (
            f"x - {LINK}: Receiver failed to replay change (uniqueid 1, CSN {CSN}): Busy (51). Will retry later.",
            "retry_later",
            {"uniqueid": "1", "result": "Busy", "error": "51"},
        ),
        (f"_cl5TrimReplica - Changelog purge skipped anchor csn {CSN}", "trim_kept_anchor", {}),
        (f"{LINK} - clcache_load_buffer - Using alternative start iteration csn: {CSN} ", "alternative_start", {}),
        (
            f"{LINK} - clcache_load_buffer - Can't locate CSN {CSN} in the changelog (DB rc=-1)",
            "anchor_not_located",
            {"rc": "-1"},
        ),
        (
            f"{LINK}: Skipping update operation with no message_id (uniqueid 1, CSN {CSN}):",
            "stripped_to_nothing",
            {"uniqueid": "1"},
        ),
    ],
)
def test_lines_about_a_change_name_it(text: str, code: str, expected: dict[str, str]) -> None:
    found = message(PLUGIN + text)
    assert (found["code"], found["position"], found["origin"], found["numbers"]) == (code, CSN, "3", expected)
    assert found["link"] == ("s2-to-s3" if LINK in text else None)
    assert found["severity"] == "debug"


REPLICATION = "NSMMReplicationPlugin - x - "
SERVER_LINES = [
    ("INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up", "starting", "info"),
    ("NOTICE - bdb_start - Detected Disorderly Shutdown last time x", "disorderly_shutdown", "notice"),
    (
        f"WARN - {REPLICATION}{LINK}: The remote replica has a different database generation ID",
        "generation_differs",
        "warning",
    ),
    (
        f"ERR - {REPLICATION}{LINK}: Unable to acquire replica: the replica has the same Replica ID",
        "duplicate_origin",
        "error",
    ),
    (f"ERR - {REPLICATION}{LINK}: Unable to acquire replica: permission denied.", "acquire_failed", "error"),
    (f"ERR - {REPLICATION}{LINK}: Fatal error - too much time skew between replicas!", "time_skew", "error"),
    (f'ERR - {REPLICATION}conn=1 op=2 repl="dc=a": Excessive clock skew from supplier RUV', "time_skew", "error"),
    (f"ERR - {REPLICATION}{LINK}: Missing data encountered. If x", "missing_data", "error"),
    (
        f"WARN - {REPLICATION}Data for replica dc=a does not match the data in the changelog. R",
        "changelog_recreated",
        "warning",
    ),
    (
        "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 7): Not online, retrying in 10 seconds",
        "clean_waiting",
        "info",
    ),
    ("INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 7): Successfully cleaned rid(7)", "clean_done", "info"),
    (
        "INFO - NSMMReplicationPlugin - multisupplier_extop_cleanruv - CleanAllRUV Task - Successfully cleaned rid(7).",
        "clean_done",
        "info",
    ),
    ("INFO - dbmdb_copyfile - Copying /bak/k1/data.mdb to /var/lib/dirsrv/slapd-b/db/data.mdb", "restore", "info"),
    ("CRIT - something - nobody knows this sentence", None, "critical"),
]
IN_A_BACKUP = "INFO - dbmdb_copyfile - Copying /var/lib/dirsrv/slapd-b/db/INFO.mdb to /bak/k1/INFO.mdb"


@pytest.mark.parametrize(("line", "code", "severity"), SERVER_LINES)
def test_lines_about_the_server_have_a_code_and_errors_are_kept_without_one(
    line: str, code: str, severity: str
) -> None:
    found = message(f"{STAMP} - {line}")
    assert (found["code"], found["severity"]) == (code, severity)
    assert found["origin"] == ("7" if "rid 7" in line or "rid(7)" in line else None)


def test_files_that_a_backup_copies_are_no_restore() -> None:
    assert not rows(ERRORS_LOG, f"{STAMP} - {IN_A_BACKUP}", table="messages")


def test_lines_of_no_meaning_and_continuations_are_accepted_only() -> None:
    lines = [PLUGIN + "decode_startrepl_extop: RUV:", " Recreating the changelog file. x", "objectclass: top", ""]
    assert rows(ERRORS_LOG, *lines, table="messages") == []


def test_the_session_end_gives_all_its_counters() -> None:
    line = (
        f"{STAMP} - DEBUG - {LINK} - clcache_return_buffer - session end: state=5 load=13 sent=15 skipped_csn_covered=9"
    )
    assert message(line)["numbers"] == {"state": "5", "load": "13", "sent": "15", "skipped_csn_covered": "9"}


def test_the_steps_of_the_pending_list_become_operations() -> None:
    found = rows(
        ERRORS_LOG,
        PLUGIN + f"ruv_add_csn_inprogress - Successfully inserted csn {CSN} into pending list",
        PLUGIN + f"ruv_update_ruv - Successfully committed csn {CSN}",
        PLUGIN + f"ruv_update_ruv - Rolled up to csn {CSN}",
        CANCELLED,
        "[03/May/2017:14:28:16 +0200] NSMMReplicationPlugin - ruv_update_ruv: rolled up to csn " + CSN,
        table="operations",
    )
    steps = [(row["step"], row["connection"]) for row in found]
    assert steps == [("begin", None), ("commit", None), ("rolled_up", None), ("abort", "51/106"), ("rolled_up", None)]
    assert {(row["position"], row["origin"]) for row in found} == {(CSN, "3")}


def test_what_became_of_a_change_is_evidence_of_its_own() -> None:
    found = rows(
        ERRORS_LOG,
        ALREADY_SEEN.replace("in ruv", "in csnpl"),
        CANCELLED,
        PLUGIN + f"process postop -  csn={CSN} canceling operation csn",
        SKIPPED % (CSN, "No such object (32)"),
        SKIPPED.replace("Receiver", "Consumer") % (CSN, "Object class violation"),
        SKIPPED % ("(null)", "No such object (32)"),
    )
    assert [(row["outcome"], row["code"], row["connection"], row["link"], row["position"]) for row in found] == [
        ("dropped", None, None, None, CSN),
        ("cancelled", None, "51/106", None, CSN),
        ("cancelled", None, None, None, CSN),
        ("skipped", 32, None, "s2-to-s3", CSN),
        ("skipped", 65, None, "s2-to-s3", CSN),
        ("skipped", 32, None, "s2-to-s3", None),
    ]
    assert {row["evidence"] for row in found} == {"errors_log"}


@pytest.mark.parametrize(
    ("sentence", "code"), [("Invalid DN syntax", 34), ("Entry is a leaf", 35), ("Already exists", 68)]
)
def test_of_a_skipped_change_the_code_is_known_where_only_its_sentence_is_printed(sentence: str, code: int) -> None:
    (row,) = rows(ERRORS_LOG, SKIPPED % (CSN, sentence))
    assert (row["outcome"], row["code"]) == ("skipped", code)


@pytest.mark.parametrize(
    "name",
    [
        f"cn=The csn {CSN} has already be seen (in ruv) - ignoring",
        f"cn=x - process postop - conn=51 op=106 csn={CSN} canceling operation csn",
        f"cn=x - ruv_add_csn_inprogress - The csn {CSN} has already be seen (in ruv) - ignoring",
        "cn=the same Replica ID",
    ],
)
def test_a_name_that_a_client_chose_cannot_speak_for_the_server(name: str) -> None:
    line = PLUGIN + f'replay_update - {LINK}: Sending add operation (dn="{name}" csn={CSN})'
    assert message(line)["code"] == "sending"
    other = PLUGIN + f"urp_add_operation - handling add of ({name})."
    assert rows(ERRORS_LOG, line, other) == []
    assert rows(ERRORS_LOG, other, table="messages") == []


@pytest.mark.parametrize(
    "secret",
    [
        "{SSHA}Ik7dfkjh3489dfkjhsdf8734kjhdf==",
        "userPassword: hunter2",
        "nsDS5ReplicaCredentials: {AES-TUhNR0NTcUdTSWIzRFFFRkRUQm1N}aGFsbG8=",
        "e1BCS0RGMi1TSEE1MTJ9MTAwMDAkeFhLSUtXeFd5U1lBTTYxMVZHYW52alFCVnk=",
        "ZTFCQ1MwUkdNaTFUU0VFMU1USjlNVEF3TURBa2VGaExTVXRYZUZkNVUxbEJUVFl4TVZaSFlXNTJhbEZDVm5rPQ==",
    ],
)
def test_no_secret_gets_into_a_message(secret: str) -> None:
    found = message(f"{STAMP} - ERR - x_plugin - {LINK}: rejected value {secret}")
    assert REMOVED in found["text"]
    assert not any(
        part in str(found) for part in re.findall(r"[A-Za-z0-9+/]{8,}", secret.split("}")[-1].split(":")[-1])
    )


def test_long_messages_are_shortened() -> None:
    assert len(message(f"{STAMP} - ERR - x_plugin - " + "word " * 20_000)["text"]) == 500


def test_a_restored_server_says_which_changes_it_took_as_seen() -> None:
    tables, parsed = read(ERRORS_LOG, sample("restored.errors.log.gz"))
    outcomes = Counter(tables["applied"]["outcome"].to_pylist())
    assert outcomes == {"dropped": 41, "cancelled": 3}
    assert parsed.facts["codes"]["operation_ignored"] == 31
    text = sample("restored.errors.log.gz")
    assert Counter(tables["operations"]["step"].to_pylist())["begin"] == text.count(b"into pending list")
    assert same_in_pieces(ERRORS_LOG, text, 1 << 10, 1 << 16)


def test_a_supplier_says_which_changes_it_gave_up() -> None:
    tables, _ = read(ERRORS_LOG, sample("supplier.errors.log.gz"))
    found = tables["applied"].to_pylist()
    assert {(row["outcome"], row["code"], row["link"]) for row in found} == {("skipped", 32, "s2-to-s3")}
    assert [row["position"] for row in found] == [
        "6b005c15000000020000",
        "6b005c15000200010000",
        "6b005c15000200020000",
    ]


@pytest.mark.parametrize("pretty", [False, True])
def test_the_json_form_of_the_errors_log_says_the_same(pretty: bool) -> None:
    objects, text = [], sample("restored.errors.log.gz").decode()
    text = "".join(line for line in text.splitlines(True) if line.startswith("["))
    for line in text.splitlines():
        stamp, level, subsystem, said = re.match(r"\[(.*?)\] - (\w+) - (.*?) - (.*)", line).groups()
        objects.append({"local_time": json_time(stamp), "severity": level, "subsystem": subsystem, "msg": said + "\n"})
    log = "".join(json.dumps(value, indent=2 if pretty else None) + "\n" for value in objects)
    kind = ERRORS_LOG_PRETTY if pretty else ERRORS_LOG
    assert [found for found in LOGS if found.sniff(log[:2000].encode(), "x")] == [kind]
    expected, found = read(ERRORS_LOG, text), read(kind, log, 5000)
    assert comparable(found[0], "offset") == comparable(expected[0], "offset")
    assert found[1].facts == expected[1].facts
    assert found[1].rejects == []


def test_an_errors_log_cut_anywhere_gives_no_evidence_that_the_whole_does_not_give() -> None:
    data = "\n".join([ALREADY_SEEN, CANCELLED, SKIPPED % (CSN, "No such object (32)")]).encode()
    columns = ["offset", "outcome", "position", "code", "link"]
    whole = read(ERRORS_LOG, data)[0]["applied"].select(columns).to_pylist()
    for cut in range(len(data)):
        tables, parsed = read(ERRORS_LOG, data[:cut])
        assert parsed.rejects == []
        assert (
            all(row in whole for row in tables["applied"].select(columns).to_pylist()) if "applied" in tables else True
        )


def test_lines_that_are_not_utf8_are_rejected_in_the_errors_log() -> None:
    bad = ALREADY_SEEN.encode() + b"\xff"
    tables, parsed = read(ERRORS_LOG, PLUGIN.encode() + b"\n" + bad + b"\n")
    assert not tables
    assert [(reject.offset, reject.reason) for reject in parsed.rejects] == [(len(PLUGIN) + 1, "not UTF-8")]


@pytest.mark.parametrize("kind", [ERRORS_LOG, ERRORS_LOG_PRETTY])
def test_lines_on_which_the_reader_fails_are_missing_as_if_they_had_not_been_written(kind: Format) -> None:
    lines = sample("restored.errors.log.gz").decode().splitlines()[:4000]
    expected = read(kind, "\n".join(lines))
    for place in (3990, 2000, 2000, 17, 0):
        lines.insert(place, f"{STAMP} - ERR - {FAULT_MARK}")
    found = read(failing(kind), "\n".join(lines), 100_000)
    assert comparable(found[0], "offset") == comparable(expected[0], "offset")
    assert found[1].facts["codes"] == expected[1].facts["codes"]
    assert len(found[1].rejects) == 5
    assert "a part of the data" not in str(found[1].rejects)
