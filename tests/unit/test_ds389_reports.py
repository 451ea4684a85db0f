"""What the tools report: status, monitor, ds-replcheck, lag-report; and that every format knows only its own files."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from collected import SHARED, needs_collected_files
from directory_samples import (
    AGREEMENTS,
    DBSCAN,
    ENTRIES,
    FORMATS,
    LAG_REPORT,
    MONITOR,
    REPLCHECK,
    REPLICA,
    RUV,
    STATUS,
    everything,
    parse,
    rows,
    sample,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.intake.files import head, plain_name
from workbench.model import Format


def test_status_gives_the_links_of_a_server():
    found = parse(STATUS, sample("s1.status.json"))
    assert (found.rows, found.rejects, found.facts) == (1, [], {})
    assert len(rows(found, "links")) == 2
    at = datetime(2026, 11, 20, 14, 33, 7, tzinfo=UTC)
    expected = {
        "name": "s1-to-s2",
        "consumer_host": "localhost",
        "consumer_port": 38902,
        "enabled": True,
        "busy": False,
        "status_code": 0,
        "started_at": at,
        "ended_at": at,
        "init_ended_at": None,
        "sent": "1:1979/0 3:1975/0 0:1/0",
        "state": None,
        "position": None,
    }
    assert expected.items() <= rows(found, "links")[0].items()


def test_the_empty_status_of_a_consumer_is_one_document_without_links():
    found = parse(STATUS, sample("c1.status.json"))
    assert (found.rows, found.rejects, found.tables) == (1, [], {})


@pytest.mark.parametrize(
    ("sentence", "status", "expected"),
    [
        ("In Synchronization", "Error (0) Replica acquired", (None, 0, None)),
        (
            "Not in Synchronization: supplier (6b005a21000100010000) consumer (6B005A20000100010000) State (amber)",
            "Error (18) Can't acquire replica (x)",
            ("amber", 18, "6b005a20000100010000"),
        ),
        (
            "Not in Synchronization: supplier (Unknown) consumer (Unavailable) State (red) Reason (x)",
            "Error (-1) Problem connecting to replica",
            ("red", -1, None),
        ),
        ("", "0 Replica acquired successfully: ok", (None, 0, None)),
        ("", "unavailable", (None, None, None)),
    ],
)
def test_state_code_and_position_come_from_the_sentences(sentence: str, status: str, expected: tuple[object, ...]):
    item = {"agmt-name": ["a"], "last-update-status": [status], "replication-status": [sentence]}
    for document in (item, {"type": "list", "items": [item]}):
        data = json.dumps(document).encode()
        assert STATUS.sniff(data, "x")
        (link,) = rows(parse(STATUS, data), "links")
        assert (link["state"], link["status_code"], link["position"]) == expected


def test_monitor_is_counted_and_gives_no_rows_for_other_servers():
    found = parse(MONITOR, sample("replication-monitor.json"))
    assert (found.rows, found.rejects, found.tables) == (1, [], {})
    assert found.facts == {"servers": 2, "agreements": 4}


def test_replcheck_reports_are_one_row_whatever_their_form():
    report = parse(REPLCHECK, sample("ds-replcheck-online.txt"))
    assert (report.rows, report.rejects, report.tables) == (1, [], {})
    assert report.facts["result"] == "There are replication differences between Supplier and Replica"
    state = parse(REPLCHECK, sample("ds-replcheck-state.txt"))
    assert (state.rows, state.rejects) == (1, [])
    assert state.facts == {"state": "Supplier and Replica are in perfect synchronization"}


def test_progress_lines_before_a_replcheck_report_do_not_hide_it():
    data = b"Performing online report...\nConnecting to servers...\n\n" + sample("ds-replcheck-online.txt")
    assert REPLCHECK.sniff(data, "x")
    assert parse(REPLCHECK, data).rejects == []


@pytest.mark.parametrize("name", ["ds-replcheck-online.txt", "ds-replcheck-state.txt"])
def test_a_cut_replcheck_report_is_rejected(name: str):
    data = sample(name)
    body = data.rstrip(b"\n")
    for end in (len(data) // 3, len(data) // 2, len(body) - 1, len(body)):
        found = parse(REPLCHECK, data[:end])
        assert (found.rows, len(found.rejects)) == (1, 1), end


def test_lag_report_lines_are_counted_and_damaged_ones_rejected():
    data = sample("lag-report.csv")
    whole = parse(LAG_REPORT, data)
    assert (whole.rows, whole.rejects, whole.tables, whole.facts) == (7, [], {}, {})
    assert parse(LAG_REPORT, data.replace(b"\r\n", b"\n")).rows == 7
    half_end = parse(LAG_REPORT, data[:-1])
    assert (half_end.rows, half_end.rejects) == (7, [])
    cut = parse(LAG_REPORT, data[:-2])
    assert (cut.rows, [reject.reason for reject in cut.rejects]) == (7, ["the file ends inside this line"])
    lines = data.split(b"\r\n")
    lines[2:2] = [b"a,b", lines[1].replace(b"6b005933000100020000", b"zz"), b"\xff" + lines[1]]
    damaged = parse(LAG_REPORT, b"\r\n".join(lines))
    assert (damaged.rows, len(damaged.rejects)) == (10, 3)
    assert damaged.rejects[0].offset == len(lines[0]) + len(lines[1]) + 4


def test_lag_report_json_is_one_row_and_a_cut_one_is_rejected_with_the_place():
    assert parse(LAG_REPORT, sample("lag-report.summary.json")).rejects == []
    data = sample("lag-report.head.json.txt")
    found = parse(LAG_REPORT, data)
    (reject,) = found.rejects
    assert (found.rows, 0 < reject.offset <= len(data)) == (1, True)
    assert reject.reason.startswith("broken JSON in line ")


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "list", "items": [{"agmt-name": ["a"]}',
        '{"type": "list", "items": [{"agmt-name": []}]}',
        '{"type": "list", "items": [5]}',
        '{"type": "list", "items": [' + "[" * 100_000,
        '{"type": "list", "items": [], "n": ' + "9" * 5000 + "}",
        '{"agmt-name": ["a"], "x": "\udcff"}',
    ],
)
def test_a_status_that_makes_no_sense_is_rejected(text: str):
    found = parse(STATUS, text.encode("utf-8", "surrogateescape"))
    assert (found.rows, len(found.rejects), found.tables) == (1, 1, {})


def test_half_characters_in_json_do_not_stop_the_reader():
    found = parse(STATUS, rb'{"agmt-name": ["a\ud800b"]}')
    assert [row["name"] for row in rows(found, "links")] == ["a?b"]


@pytest.mark.parametrize("name", ["s1.status.json", "c1.status.json", "replication-monitor.json"])
def test_a_status_cut_anywhere_is_rejected_and_gives_no_rows(name: str):
    data = sample(name).rstrip()
    kind = MONITOR if "monitor" in name else STATUS
    for end in range(0, len(data), 1 if len(data) < 4000 else 13):
        found = parse(kind, data[:end])
        assert (found.rows, len(found.rejects), found.tables) == (1, 1, {}), end
    for end in range(0, len(data), 40):
        assert not any(other.sniff(data[:end], "x") for other in FORMATS if other is not kind)


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from([STATUS, MONITOR, REPLCHECK, LAG_REPORT]), data=st.binary(max_size=200))
def test_arbitrary_bytes_never_stop_a_report_reader(kind: Format, data: bytes):
    for front in (b"", b'{"type": "list", "items": ', b'{"agmt-name": ', b"Timestamp,Server,CSN,Suffix,a\n", b"{"):
        found = parse(kind, front + data)
        assert len(found.rejects) <= found.rows


CANARY = "h0rsebattery"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            STATUS,
            f'{{"agmt-name": ["a"], "last-update-status": ["{{SSHA}}{CANARY}"], "credentials": ["{CANARY}"]}}',
        ),
        (STATUS, f'{{"agmt-name": ["{{SSHA}}{CANARY}"], '),
        (REPLCHECK, f"Replication State: {{SSHA}}{CANARY}\n"),
        (LAG_REPORT, f"Timestamp,Server,CSN,Suffix,a\n{{SSHA}}{CANARY}\nuserPassword: {CANARY}\n"),
    ],
)
def test_no_secret_leaves_a_report_reader(kind: Format, text: str):
    assert CANARY not in everything(parse(kind, text.encode()))


# One line of every other kind of file that lies beside ours: name, begin.
STRANGERS = {
    "changelog": "clpurgeruv: {replicageneration} 6b00592d000000010000\n\nchangetype: add\ncsn: 6b005930000200010000\n",
    "changelog without header": "changetype: modify\nreplgen: 6b00592d\ncsn: 6b005930000200010000\ndn: dc=a\n",
    "decoded changelog": "# LDIF File: d.ldif\nclmaxruv: {replica 1} 6b005930000200010000 6b005a21000100010000\n\n",
    "broken changelog": "# LDIF File: csnonly.txt",
    "access log": "[20/Nov/2026:14:42:07.2 +0000] conn=10 op=7 RESULT err=0 tag=105 csn=6b005c13000000030000\n",
    "errors log": "[20/Nov/2026:15:58:24.3 +0000] - ERR - NSMMReplicationPlugin - ruv - {replica 1 ldap://a} x\n",
    "audit log": "time: 20261120155803\ndn: uid=k,dc=a\nresult: 0\nchangetype: add\nobjectClass: nsds5Replica\n\n",
    "audit log with title": "\t389-Directory/2.3.1 B2026.1\n\tlocalhost:389\n\ntime: 20261120155803\ndn: uid=k\n\n",
    "missing": "Error: Failed to export replication changelog\n",
    "ldif of changes": "dn: uid=a,dc=b\nchangetype: modify\nreplace: cn\ncn: x\n\n",
    "ldif of controlled changes": "version: 1\ndn: uid=a,dc=b\ncontrol: 1.2.3 true\nchangetype: delete\n\n",
    "id2entry": "id 1\n\trdn: dc=example,dc=com\n\tobjectClass: top\n",
    "readme": "# Data\n\nds-replcheck: Replication Synchronization Report, dn: cn=replica, RUV: {replica 1}\n",
    "markdown": "# RUV\n\n`{replica 1 ldap://a:389}` and `Replication State: x`\n",
    "traffic": '{"t": 1795190299.9, "server": "s1", "op": "add", "dn": "uid=l,dc=a", "rc": 0}\n',
    "truth": '{"runs": [{"snapshots": ["before"], "missing": {}}], "items": []}',
    "other list": '{"type": "list", "items": ["dc=example,dc=com"]}',
    "other entry list": '{"type": "list", "items": [{"dn": "cn=a", "attrs": {"agmt-name": ["a"]}}]}',
    "other table": "Timestamp,Server,Lag\n2026-11-20,s1,0.3\n",
    "other json": '{"title": "replicationLags", "analysis_summary": {}}',
    "utf-16": "dn: dc=a\nobjectClass: top\n\n".encode("utf-16").decode("latin-1"),
    "binary": "\x00\x01\x02dn: dc=a\n",
    "empty": "",
    "white": "\n\n \n",
}
OURS = {
    "s1.replica.ldif": REPLICA,
    "h1.replica.ldif": REPLICA,
    "s1.agreements.ldif": AGREEMENTS,
    "s1.entries.ldif.gz": ENTRIES,
    "s1.dbscan.txt.gz": DBSCAN,
    "s1.get-ruv.txt": RUV,
    "s1.status.json": STATUS,
    "c1.status.json": STATUS,
    "replication-monitor.json": MONITOR,
    "ds-replcheck-online.txt": REPLCHECK,
    "ds-replcheck-state.txt": REPLCHECK,
    "lag-report.csv": LAG_REPORT,
    "lag-report.summary.json": LAG_REPORT,
    "lag-report.head.json.txt": LAG_REPORT,
}


@pytest.mark.parametrize("name", OURS)
def test_a_sample_is_known_to_its_own_format_only(name: str):
    data = sample(name)
    cut = data if len(data) < 100 else data[: len(data) * 2 // 3]
    for begin in (data, cut, data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")):
        assert [kind.name for kind in FORMATS if kind.sniff(begin, "x.log")] == [OURS[name].name]


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_of_another_kind_is_known_to_no_format_of_these(name: str):
    data = STRANGERS[name].encode("latin-1")
    assert [kind.name for kind in FORMATS if kind.sniff(data, "s1.replica.ldif")] == []


@needs_collected_files
def test_every_real_file_is_known_to_the_format_that_its_name_promises():
    endings = {
        ".replica.ldif": REPLICA,
        ".ruv-tombstone.ldif": REPLICA,
        ".agreements.ldif": AGREEMENTS,
        ".db2ldif-r.ldif": ENTRIES,
        ".original.ldif": ENTRIES,
        ".edited.ldif": ENTRIES,
        ".export-replication.ldif": ENTRIES,
        ".dbscan-stopped.txt": DBSCAN,
        ".get-ruv.txt": RUV,
        ".status.json": STATUS,
    }
    beginnings = {"replication-monitor": MONITOR, "ds-replcheck": REPLCHECK, "lag-report": LAG_REPORT}
    seen = 0
    for path in filter(lambda path: path.is_file(), SHARED.rglob("*")):
        name = plain_name(path)
        kind = next((kind for ending, kind in endings.items() if name.endswith(ending)), None)
        kind = kind or next((kind for begin, kind in beginnings.items() if name.startswith(begin)), None)
        start = head(path)[0]
        assert [known.name for known in FORMATS if known.sniff(start, name)] == ([kind.name] if kind else []), path
        seen += 1
    assert seen > 700
