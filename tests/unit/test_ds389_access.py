"""The access log of 389 Directory Server: no cut or damage may turn it into a lie."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime

import pytest
from conftest import STRIDES
from hypothesis import given, settings
from hypothesis import strategies as st
from log_samples import (
    CSN,
    FAULT_MARK,
    RESULT,
    SOURCE,
    STAMP,
    comparable,
    failing,
    json_time,
    kinds,
    read,
    rows,
    same_in_pieces,
    sample,
)

from workbench.model import REMOVED, Piece
from workbench.systems.ds389.formats.access_log import ACCESS_LOG

OPEN = f"{STAMP} conn=10 fd=65 slot=65 connection from 127.0.0.1 to 127.0.0.1"
START = f'{STAMP} conn=10 op=3 EXT oid="2.16.840.1.113730.3.5.12" name="replication-multisupplier-extop"'
ADD = f'{STAMP} conn=10 op=7 ADD dn="uid=a,dc=example,dc=com"'
CLOSE = f"{STAMP} conn=10 op=8 fd=65 Disconnect - Cleanly Closed Connection - U1"


def test_a_result_with_csn_is_a_change_with_its_time_code_and_target() -> None:
    (row,) = rows(ACCESS_LOG, ADD, RESULT + f" csn={CSN.upper()}")
    assert row == {
        "offset": len(ADD) + 1,
        "evidence": "access_log",
        "outcome": "applied",
        "origin": "3",
        "position": CSN,
        "at": datetime(2026, 11, 20, 14, 42, 7, 217971, UTC),
        "code": 0,
        "operation": "add",
        "target": "uid=a,dc=example,dc=com",
        "connection": "10/7",
        "replicated": None,
        "link": None,
    }


def test_a_byte_order_mark_costs_no_line() -> None:
    parsed = ACCESS_LOG.reader()(Piece(SOURCE, b"\xef\xbb\xbf" + f"{ADD}\n{RESULT} csn={CSN}\n".encode(), 0, True))
    assert (parsed.rows, parsed.rejects) == (2, [])
    assert parsed.tables["applied"]["target"].to_pylist() == ["uid=a,dc=example,dc=com"]


def test_a_refused_change_keeps_its_csn_and_its_code() -> None:
    line = RESULT.replace("err=0", "err=32").replace("tag=105", "tag=103") + f" csn={CSN}"
    (row,) = rows(ACCESS_LOG, OPEN, START, line)
    assert (row["outcome"], row["code"], row["operation"], row["target"]) == ("refused", 32, "modify", None)
    assert row["replicated"] is True


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (f' csn={CSN} - unknown object class "labPerson"', CSN),
        (f' notes=U details="Partially Unindexed Filter" csn={CSN}', CSN),
        (f' - unknown object class "x csn={CSN}"', None),
        (f" - bad value csn={CSN}", None),
        (', SASL bind in progress dn="x"', None),
        (' sid="session"', None),
    ],
)
def test_only_the_servers_own_csn_counts(tail: str, expected: str | None) -> None:
    (row,) = rows(ACCESS_LOG, OPEN, START, ADD, RESULT + tail)
    assert row["position"] == expected
    assert row["outcome"] == ("applied" if expected else "dropped")


def test_a_result_without_csn_is_a_dropped_change_on_a_replication_connection_only() -> None:
    assert [row["outcome"] for row in rows(ACCESS_LOG, OPEN, START, ADD, RESULT, CLOSE)] == ["dropped"]
    assert rows(ACCESS_LOG, OPEN, ADD, RESULT, CLOSE) == []
    assert [row["replicated"] for row in rows(ACCESS_LOG, OPEN, ADD, RESULT + f" csn={CSN}", CLOSE)] == [False]


def test_a_log_that_begins_inside_a_session_waits_for_what_decides() -> None:
    end = START.replace("3.5.12", "3.5.5").replace("op=3", "op=9")
    (row,) = rows(ACCESS_LOG, ADD, RESULT, end)
    assert (row["outcome"], row["target"]) == ("dropped", "uid=a,dc=example,dc=com")
    assert rows(ACCESS_LOG, ADD, RESULT, CLOSE, OPEN, START) == []
    assert rows(ACCESS_LOG, ADD, RESULT, OPEN, START) == []
    assert rows(ACCESS_LOG, ADD, RESULT) == []


def test_after_a_restart_the_same_number_is_another_connection() -> None:
    assert rows(ACCESS_LOG, OPEN, START, OPEN, ADD, RESULT) == []
    (row,) = rows(ACCESS_LOG, OPEN, START, ADD, OPEN, RESULT + f" csn={CSN}")
    assert row["replicated"] is False


def test_a_result_behind_its_disconnect_still_belongs_to_the_session() -> None:
    assert [row["outcome"] for row in rows(ACCESS_LOG, OPEN, START, ADD, CLOSE, RESULT)] == ["dropped"]


@pytest.mark.parametrize("target", ["cn=schema", "CN=Schema", "cn=replica,cn=mapping tree,cn=config"])
def test_a_pushed_schema_is_no_dropped_change(target: str) -> None:
    push = ADD.replace("ADD", "MOD").replace("uid=a,dc=example,dc=com", target)
    assert rows(ACCESS_LOG, OPEN, START, push, RESULT.replace("105", "103")) == []


def test_rotated_logs_are_one_stream() -> None:
    reader = ACCESS_LOG.reader()
    first = reader(Piece(SOURCE, f"{OPEN}\n{START}\n{ADD}\n".encode(), 0, True))
    second = reader(Piece(SOURCE, f"{RESULT}\n".encode(), 0, True))
    assert not first.tables
    assert second.tables["applied"]["target"].to_pylist() == ["uid=a,dc=example,dc=com"]
    assert second.facts["results_without_csn_on_replication"] == 1


@pytest.mark.parametrize(
    ("request_line", "target"),
    [
        ('ADD dn="cn="x, y",dc=com"', 'cn="x, y",dc=com'),
        ('DEL dn="cn=a\\"b" authzid="dn: cn=proxy"', 'cn=a\\"b'),
        ('MODRDN dn="uid=a,dc=com" newrdn="uid=b" newsuperior="(null)"', "uid=a,dc=com"),
        ('MODRDN dn="cn=" newrdn=",dc=com" newrdn="uid=b" newsuperior="dc=com"', 'cn=" newrdn=",dc=com'),
        ('MOD dn="cn=Ægir Ж,dc=com"', "cn=Ægir Ж,dc=com"),
        ('MOD dn=""', ""),
        ('MOD dn="userPassword=hunter2,dc=com"', f"userPassword: {REMOVED}"),
        ('MOD dn="cn={SSHA}abcdef,dc=com"', f"cn={REMOVED},dc=com"),
    ],
)
def test_targets_are_kept_as_printed_without_secrets(request_line: str, target: str) -> None:
    (row,) = rows(ACCESS_LOG, f"{STAMP} conn=10 op=7 {request_line}", RESULT + f" csn={CSN}")
    assert row["target"] == target


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("[20/Nov/2026:14:42:07 +0000]", (2026, 11, 20, 14, 42, 7, 0)),
        ("[20/Nov/2026:14:42:07.217971982 +0530]", (2026, 11, 20, 9, 12, 7, 217971)),
        ("[31/Dec/2026:22:00:00.000000999 -0330]", (2027, 1, 1, 1, 30, 0, 0)),
        ("[29/Feb/2028:00:00:00.123456 +0000]", (2028, 2, 29, 0, 0, 0, 123456)),
    ],
)
def test_times_are_utc(stamp: str, expected: tuple[int, ...]) -> None:
    line = (RESULT + f" csn={CSN}").replace(STAMP, stamp)
    _, parsed = read(ACCESS_LOG, line)
    moment = datetime(*expected, tzinfo=UTC)
    assert [row["at"] for row in rows(ACCESS_LOG, line)] == [moment]
    assert parsed.facts["time"]["max"] == moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@pytest.mark.parametrize(
    "stamp", ["[31/Nov/2026:14:42:07 +0000]", "[20/Nob/2026:14:42:07 +0000]", "[20/Nov/2026:24:42:07 +0000]"]
)
def test_a_time_that_no_calendar_has_is_no_time_stamp(stamp: str) -> None:
    _, parsed = read(ACCESS_LOG, RESULT.replace(STAMP, stamp) + "\n")
    assert [reject.reason for reject in parsed.rejects] == ["no time stamp: not a line of an access log"]


def test_ordinary_lines_are_accepted_and_say_nothing() -> None:
    ordinary = [
        "\t389-Directory/2.3.1 B2025.016.1616",
        "\tlocalhost.localdomain:38902 (/etc/dirsrv/slapd-s2)",
        "",
        "LOGINFO:Log file created at: 20/Nov/2026:14:28:26 (1795184906)",
        f'{STAMP} conn=1 AUTOBIND dn="cn=Directory Manager"',
        f"{STAMP} conn=1 SSL 256-bit AES; client CN=x; issuer CN=y",
        f"{STAMP} conn=1 TLS1.3 128-bit AES",
        f"{STAMP} conn=1 op=-1 fd=64 closed - B1",
        f'{STAMP} conn=1 op=2 SRCH base="" scope=0 filter="(objectClass=*)" attrs=ALL',
        f"{STAMP} conn=1 op=2 SORT cn",
        f"{STAMP} conn=1 op=2 VLV 0:5:0:0 1:10 (0)",
        f"{STAMP} conn=1 op=3 ABANDON targetop=2 msgid=3 nentries=0 etime=0.1",
        f'{STAMP} conn=1 op=4 RESULT err=0 tag=97 nentries=0 wtime=0.1 optime=0.1 etime=0.1 dn="cn=x csn={CSN}"',
        f"{STAMP} conn=1 op=5 RESULT err=14 tag=97 nentries=0 etime=0.1, SASL bind in progress",
        f"{STAMP} conn=1 op=6 UNBIND",
        f'{STAMP} conn=Internal(0) op=0(1)(1) SRCH base="cn=config" scope=0 filter="a" attrs="cn"',
        f"{STAMP} conn=Internal(0) op=0(1)(1) RESULT err=0 tag=48 nentries=1 etime=0.1",
    ]
    assert rows(ACCESS_LOG, *ordinary) == []


def test_the_servers_own_operations_do_not_pass_for_the_clients() -> None:
    inside = [
        f'{STAMP} conn=10 (Internal) op=7(1)(0) MOD dn="cn=group,dc=com"',
        f"{STAMP} conn=10 (Internal) op=7(1)(0) RESULT err=0 tag=48 nentries=0 etime=0.1 csn={CSN}",
    ]
    outside, own = rows(ACCESS_LOG, OPEN, START, ADD, *inside, RESULT + f" csn={CSN}")[::-1]
    assert (outside["target"], outside["replicated"]) == ("uid=a,dc=example,dc=com", True)
    assert (own["target"], own["operation"], own["replicated"]) == ("cn=group,dc=com", "modify", False)
    assert own["connection"] == "10/7(1)(0)"


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff" + ADD.encode(),
        f"{STAMP} something else".encode(),
        (RESULT + " csn=6b005c1300000003000").encode(),
        (RESULT + " csn=6b005c130000000300000").encode(),
        (RESULT + " csm=6b005c13000000030000").encode(),
        RESULT.replace("err=0", "err=zero").encode(),
        RESULT.replace("etime", "etine").encode(),
        b"\0" * 40 + ADD.encode(),
    ],
)
def test_lines_that_cannot_be_read_are_rejected_with_place_and_reason(line: bytes) -> None:
    before = f"{OPEN}\n{START}\n{ADD}\n".encode()
    tables, parsed = read(ACCESS_LOG, before + line + b"\n" + CLOSE.encode())
    assert not tables
    (reject,) = parsed.rejects
    assert reject.offset == len(before)
    assert reject.reason


def test_windows_line_ends_change_nothing() -> None:
    data = sample("consumer.access.log.gz")
    expected, found = read(ACCESS_LOG, data), read(ACCESS_LOG, data.replace(b"\n", b"\r\n"))
    assert comparable(expected[0], "offset") == comparable(found[0], "offset")
    assert found[1].rejects == []


def test_a_restored_server_shows_the_changes_that_it_dropped() -> None:
    tables, parsed = read(ACCESS_LOG, sample("restored.access.log.gz"))
    applied = tables["applied"].to_pylist()
    dropped = [row for row in applied if row["outcome"] == "dropped"]
    assert len(dropped) == parsed.facts["results_without_csn_on_replication"] == 41
    (known,) = [row for row in dropped if row["connection"] == "10/71"]
    assert (known["target"], known["operation"]) == ("cn=d3g18,ou=groups,dc=example,dc=com", "add")
    refused = [row["connection"] for row in applied if row["outcome"] == "refused"]
    assert refused == ["10/117", "10/120", "10/121"]
    assert parsed.rejects == []


@pytest.mark.parametrize("name", ["restored.access.log.gz", "consumer.access.log.gz"])
def test_every_csn_of_the_log_is_found_whatever_the_size_of_the_pieces(name: str) -> None:
    data = sample(name)
    tables, parsed = read(ACCESS_LOG, data)
    csns = Counter(found.decode() for found in re.findall(rb" csn=([0-9a-f]{20})", data))
    assert Counter(row for row in tables["applied"]["position"].to_pylist() if row) == csns
    assert parsed.facts["results_with_csn"] == sum(csns.values())
    expected = {}
    for csn in sorted(csns.elements()):
        entry = expected.setdefault(str(int(csn[12:16], 16)), {"count": 0, "min": csn})
        entry.update(count=entry["count"] + 1, max=csn)
    assert parsed.facts["by_origin"] == expected
    assert same_in_pieces(ACCESS_LOG, data, 1 << 10, 1 << 16)


# --- cut and damaged

SMALL = [
    OPEN,
    START,
    ADD,
    RESULT + f" csn={CSN}",
    ADD.replace("op=7", "op=17").replace("ADD", "MOD"),
    RESULT.replace("op=7", "op=17").replace("105", "103"),
    f'{STAMP} conn=10 op=18 MODRDN dn="uid=a,dc=com" newrdn="uid=b" newsuperior="dc=com"',
    RESULT.replace("op=7", "op=18").replace("105", "109").replace("err=0", "err=32") + f" csn={CSN} - no such entry",
    f"{STAMP} conn=11 fd=66 slot=66 connection from local to /run/x",
    CLOSE,
]


def json_log(text: str, pretty: bool = False) -> str:
    """The same log as servers from 3.1 on write it."""
    words = {"ADD": "ADD", "MOD": "MODIFY", "DEL": "DELETE", "MODRDN": "MODRDN"}
    objects = []
    sources: dict[str, str] = {}
    for line in text.splitlines():
        found = re.match(r"\[(.*?)\] conn=(\d+)(?: op=(-?\d+))? (.*)", line)
        if not found:
            continue
        local = json_time(found[1])
        value: dict = {"local_time": local, "operation": "OTHER", "key": f"1-{found[2]}", "conn_id": int(found[2])}
        if found[3] and found[3] != "-1":
            value["op_id"] = int(found[3])
        said = found[4]
        if said.startswith("fd="):
            value["operation"] = "CONNECTION" if "connection from" in said else "DISCONNECT"
            if source := re.search("connection from ([^ ]+) to", said):
                sources[found[2]] = source[1]
        elif result := re.match(r"RESULT err=(\d+) tag=(\d+) .*?(?: csn=([0-9a-f]{20}))?(?: - .*)?$", said):
            value.update(operation="RESULT", tag=int(result[2]), err=int(result[1]), nentries=0, etime="0.000000001")
            if result[3]:
                value["csn"] = result[3]
            if found[2] in sources:
                value["client_ip"] = sources[found[2]]
            value["notes"] = [{"note": "U", "description": "x"}]
        elif request := re.match(r'(ADD|MOD|DEL|MODRDN) dn="(.*?)"(?: newrdn=.*)?$', said):
            value.update(operation=words[request[1]], target_dn=request[2])
        elif bind := re.match(r'BIND dn="(.*?)" method', said):
            value.update(operation="BIND", bind_dn=bind[1], version=3, method=128)
        elif extended := re.match(r'EXT oid="(.*?)"', said):
            value.update(operation="EXTENDED_OP", oid=extended[1], oid_name="x", name="y")
        objects.append(json.dumps(value, indent=2 if pretty else None, separators=(",", ":"), ensure_ascii=False))
    header = {"header": {"version": "389-Directory/3.1.1 B1", "instance": "localhost:636 (/etc/dirsrv/slapd-a)"}}
    return "\n".join([json.dumps(header, indent=2 if pretty else None), *objects]) + "\n"


@pytest.mark.parametrize("pretty", [False, True])
@pytest.mark.parametrize("name", ["restored.access.log.gz", "consumer.access.log.gz"])
def test_the_json_forms_say_the_same_as_the_text(name: str, pretty: bool) -> None:
    text = sample(name).decode()
    log = json_log(text, pretty)
    assert kinds(log[: 64 << 10].encode()) == ["ds389.access-log"]
    expected, found = read(ACCESS_LOG, text), read(ACCESS_LOG, log)
    # Results of the JSON forms never name a change: one without it is no proof of a dropped one, as in the text form.
    named = [row for row in comparable(expected[0], "offset")["applied"] if row["outcome"] != "dropped"]
    assert comparable(found[0], "offset") == {"applied": named}
    dropped = expected[1].facts["results_without_csn_on_replication"]
    others = {"results_without_csn_on_replication": 0} | ({"results_without_position": dropped} if dropped else {})
    assert found[1].facts == expected[1].facts | others
    assert same_in_pieces(ACCESS_LOG, log, 100, 1 << 12)


@pytest.mark.parametrize("form", ["text", "json", "pretty"])
@pytest.mark.parametrize("stride", STRIDES)
def test_a_log_cut_at_any_byte_never_shows_a_dropped_change_that_the_whole_does_not_show(
    form: str, stride: int
) -> None:
    text = "\n".join(SMALL)
    data = (text if form == "text" else json_log(text, form == "pretty")).encode()
    columns = ["offset", "outcome", "position", "target", "code"]
    whole = read(ACCESS_LOG, data)[0]["applied"].select(columns).to_pylist()
    assert [row["outcome"] for row in whole] == ["applied", *(["dropped"] if form == "text" else []), "refused"]
    for cut in range(0, len(data), stride):
        tables, parsed = read(ACCESS_LOG, data[:cut])
        assert all(row in whole for row in tables["applied"].select(columns).to_pylist()) if tables else True
        assert len(parsed.rejects) <= (30 if form == "pretty" else 1)
        if cut // stride % 3 == 0:
            rest, _ = read(ACCESS_LOG, data[cut:])
            found = rest["applied"].to_pylist() if rest else []
            assert {row["position"] for row in found if row["outcome"] != "dropped"} <= {CSN}
            assert sum(row["outcome"] == "dropped" for row in found) <= 1


@pytest.mark.parametrize("tail", ["", " csn=", " csn=6b005c1300000003"])
def test_a_last_line_that_may_have_lost_its_csn_is_rejected(tail: str) -> None:
    tables, parsed = read(ACCESS_LOG, "\n".join([OPEN, START, ADD, RESULT + tail]))
    assert not tables
    assert [reject.reason for reject in parsed.rejects] == ["the last line was cut"]


@pytest.mark.parametrize("last", [RESULT + f" csn={CSN}", CLOSE, OPEN, ADD, START, RESULT.replace("105", "101")])
def test_a_last_line_that_is_complete_in_itself_is_accepted(last: str) -> None:
    assert read(ACCESS_LOG, "\n".join([OPEN, last]))[1].rejects == []


@settings(max_examples=150, deadline=None)
@given(data=st.data(), form=st.sampled_from(["text", "json", "pretty"]))
def test_one_damaged_byte_never_makes_a_dropped_change_out_of_an_applied_one(data: st.DataObject, form: str) -> None:
    lines = SMALL[:4] + SMALL[6:]
    text = "\n".join(lines) + "\n"
    log = bytearray((text if form == "text" else json_log(text, form == "pretty")).encode())
    start = log.index(b"RESULT")
    place = data.draw(st.integers(start, len(log) - 1))
    log[place] ^= data.draw(st.integers(1, 255))
    tables, _ = read(ACCESS_LOG, bytes(log))
    found = tables["applied"].to_pylist() if tables else []
    assert not [row for row in found if row["outcome"] == "dropped"]


def reference(lines: list[str]) -> tuple[list[tuple], int]:
    """What the access log says, read line by line in the plainest way."""
    state: dict[str, bool | None] = {}
    requests: dict[tuple[str, str], str] = {}
    waiting: dict[str, list[tuple]] = {}
    found = []
    for line in lines:
        conn = re.search(r"conn=(\d+)", line)[1]
        op = (re.search(r"op=(\d+)", line) or [None, ""])[1]
        if "connection from" in line:
            state[conn] = False
            waiting.pop(conn, None)
            requests = {key: value for key, value in requests.items() if key[0] != conn}
        elif " EXT " in line:
            state[conn] = True
            found += waiting.pop(conn, [])
        elif "Disconnect" in line:
            waiting.pop(conn, None)
            if not state.get(conn):
                state[conn] = None
        elif request := re.search(r'(?:ADD|MOD) dn="(.*)"', line):
            requests[conn, op] = request[1]
        elif result := re.search(r"err=(\d+) tag=(\d+).*?etime=[\d.]+(?: csn=(\w+))?$", line):
            target = requests.pop((conn, op), None)
            row = (f"{conn}/{op}", result[3], int(result[1]), target)
            if result[3]:
                found.append((*row, state.get(conn)))
            elif state.get(conn):
                found.append((*row, True))
            elif state.get(conn) is None:
                waiting.setdefault(conn, []).append((*row, True))
    return sorted(found, key=str), sum(row[1] is not None for row in found)


@st.composite
def access_lines(draw: st.DrawFn) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 40))):
        conn, op = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        seconds, origin = draw(st.integers(0, (1 << 32) - 1)), draw(st.integers(1, 3))
        csn = f" csn={seconds:08x}000{draw(st.integers(0, 9))}{origin:04x}0000"
        said = draw(
            st.sampled_from(
                [
                    "fd=64 slot=64 connection from 1.2.3.4 to 5.6.7.8",
                    f'op={op} EXT oid="2.16.840.1.113730.3.5.{draw(st.sampled_from([3, 5, 6, 12]))}" name="x"',
                    f"op={op} fd=64 Disconnect - Cleanly Closed Connection - U1",
                    f'op={op} ADD dn="cn={len(lines)},dc=com"',
                    f'op={op} MOD dn="cn={len(lines)},dc=com"',
                    f"op={op} RESULT err=0 tag=105 nentries=0 etime=0.1{csn}",
                    f"op={op} RESULT err={draw(st.integers(0, 80))} tag=103 nentries=0 wtime=0.1 optime=0.2 etime=0.1",
                    f"op={op} RESULT err=32 tag=103 nentries=0 etime=1{csn}",
                ]
            )
        )
        lines.append(f"{STAMP} conn={conn} {said}")
    return lines


@settings(max_examples=200, deadline=None)
@given(access_lines(), st.integers(150, 5000))
def test_the_reading_in_columns_agrees_with_reading_line_by_line(lines: list[str], size: int) -> None:
    expected, with_csn = reference(lines)
    tables, parsed = read(ACCESS_LOG, "\n".join(lines) + "\n", size)
    found = tables["applied"].to_pylist() if tables else []
    columns = ("connection", "position", "code", "target", "replicated")
    assert sorted((tuple(row[column] for column in columns) for row in found), key=str) == expected
    assert parsed.facts["results_with_csn"] == with_csn
    assert parsed.facts["results_without_csn_on_replication"] == len(expected) - with_csn


# --- a fault in the reader


@settings(max_examples=80, deadline=None)
@given(access_lines(), st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(150, 5000))
def test_lines_on_which_the_reader_fails_are_missing_as_if_they_had_not_been_written(
    lines: list[str], places: list[int], size: int
) -> None:
    expected = read(ACCESS_LOG, "\n".join(lines) + "\n")
    damaged = list(lines)
    for number, place in enumerate(sorted(places)):
        damaged.insert(min(place + number, len(damaged)), f"{STAMP} conn=1 op=1 {FAULT_MARK}")
    found = read(failing(ACCESS_LOG), "\n".join(damaged) + "\n", size)
    assert comparable(found[0], "offset") == comparable(expected[0], "offset")
    assert {**found[1].facts, "time": None} == {**expected[1].facts, "time": None}
    at = 0
    for line, reject in zip([line for line in damaged if FAULT_MARK in line], found[1].rejects, strict=True):
        at = "\n".join(damaged).index(line, at)
        assert (reject.offset, reject.reason) == (at, "this line could not be read (IndexError): please report it")
        assert reject.excerpt == f"{STAMP} conn=1 op=1 {FAULT_MARK}\\n"
        at += 1


def test_a_piece_that_is_read_again_knows_nothing_of_what_came_later() -> None:
    mark = f"{STAMP} conn=9 op=1 {FAULT_MARK}"
    # With the memory of the failed reading, the connection of START would be that of the result above.
    assert read(failing(ACCESS_LOG), "\n".join([ADD, RESULT, mark, CLOSE, OPEN, START, ""]))[0] == {}
    (row,) = rows_of_failing([OPEN, START, ADD, mark, RESULT])
    assert (row["outcome"], row["target"]) == ("dropped", "uid=a,dc=example,dc=com")
    (row,) = rows_of_failing([OPEN, START, f"{ADD}{FAULT_MARK}", RESULT])
    assert (row["outcome"], row["target"]) == ("dropped", None)


def test_results_that_wait_for_their_session_are_not_counted_twice_by_a_second_reading() -> None:
    reader, at, found = failing(ACCESS_LOG).reader(), 0, []
    mark = f"{STAMP} conn=9 op=1 {FAULT_MARK}"
    for lines in ([ADD, RESULT], [ADD, RESULT.replace("op=7", "op=8"), mark], [START]):
        data = "".join(f"{line}\n" for line in lines).encode()
        found += [table for table in [reader(Piece(SOURCE, data, at, False)).tables.get("applied")] if table]
        at += len(data)
    assert [table["connection"].to_pylist() for table in found] == [["10/7", "10/8"]]


def rows_of_failing(lines: list[str]) -> list[dict]:
    tables, parsed = read(failing(ACCESS_LOG), "\n".join([*lines, ""]))
    assert len(parsed.rejects) == 1
    return tables["applied"].to_pylist()


@pytest.mark.parametrize("instead", [True, False])
def test_an_object_with_a_line_on_which_the_reader_fails_is_refused_whole(instead: bool) -> None:
    lines = json_log("\n".join(SMALL), pretty=True).splitlines()
    columns = ["outcome", "position", "code", "connection"]  # target and session may be what the lost object told
    whole = read(ACCESS_LOG, "\n".join(lines) + "\n")[0]["applied"].select(columns).to_pylist()
    begins = [number for number, line in enumerate(lines) if line == "{"] + [len(lines)]
    for place in range(1, len(lines)):
        damaged = [*lines[:place], f'  "x": "{FAULT_MARK}",', *lines[place + instead :]]
        tables, parsed = read(failing(ACCESS_LOG), "\n".join(damaged) + "\n")
        found = tables["applied"].select(columns).to_pylist() if tables else []
        assert all(row in whole for row in found), place
        assert any(reject.reason.startswith("this line could not be read") for reject in parsed.rejects)
        if lines[place] not in "{}":
            end = next(begin for begin in begins if begin > place)
            begin = max(begin for begin in begins if begin < place)
            assert len(parsed.rejects) == end - begin + (not instead), place


def test_a_file_that_ends_in_a_line_on_which_the_reader_fails_has_ended() -> None:
    text = "\n".join(["{", ' "local_time":"t",', f' "x": "{FAULT_MARK}"'])
    assert len(read(failing(ACCESS_LOG), text)[1].rejects) == 3
