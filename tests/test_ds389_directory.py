"""Replica and agreement entries, vectors as text, dbscan: what they say, and that damage never makes them lie."""

from __future__ import annotations

import base64
import gzip
import json
import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from collected import SHARED, needs_collected_files
from directory_samples import (
    AGREEMENTS,
    DBSCAN,
    ENTRIES,
    REPLICA,
    RUV,
    elements,
    everything,
    parse,
    rows,
    sample,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.intake import files
from workbench.intake.files import inspect_file, pieces
from workbench.model import RECORDS, Format, Source
from workbench.systems.ds389.csn import ruv_element
from workbench.systems.ds389.formats.changelog_facts import changelog_facts
from workbench.systems.ds389.formats.vectors import link_row

SMALL = {
    "s1.replica.ldif": REPLICA,
    "h1.replica.ldif": REPLICA,
    "s1.agreements.ldif": AGREEMENTS,
    "s1.get-ruv.txt": RUV,
    "s1.entries.ldif.gz": ENTRIES,
    "s1.dbscan.txt.gz": DBSCAN,
}
S1_MAX = {"1": "6b005a21000100010000", "2": "6b005a20000200020000", "3": "6b005a1e000200030000"}


def replica(*lines: str, dn: str = r"cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config") -> bytes:
    return "\n".join([f"dn: {dn}", "objectClass: nsds5Replica", *lines, "", ""]).encode()


def agreement(*lines: str, cn: str = "s1-to-s2") -> bytes:
    dn = rf"cn={cn},cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config"
    return "\n".join([f"dn: {dn}", "objectClass: nsds5replicationagreement", f"cn: {cn}", *lines, "", ""]).encode()


def test_a_replica_entry_gives_the_servers_vector_its_suffix_and_the_positions_of_its_links():
    found = parse(REPLICA, sample("s1.replica.ldif"))
    assert (found.rows, found.rejects) == (1, [])
    vector = found.facts["vectors"]["s1"]
    assert vector["generation"] == "6b00592d000000010000"
    assert {origin: element["max"] for origin, element in vector["elements"].items()} == S1_MAX
    assert vector["elements"]["3"]["url"] == "ldap://localhost.localdomain:38903"
    assert found.facts["suffixes"] == {"dc=example,dc=com": 1}
    assert found.facts["replica"] == {"dc=example,dc=com": {"id": "1", "type": "3", "flags": "1"}}
    assert {row["generation"] for row in rows(found, "vectors")} == {"6b00592d000000010000"}
    assert rows(found, "vectors")[1]["modified_at"] == datetime.fromtimestamp(0x6B005A23, UTC)
    assert [(row["name"], row["consumer_origin"], row["position"], row["enabled"]) for row in rows(found, "links")] == [
        ("s1-to-s2", "2", S1_MAX["1"], None),
        ("s1-to-s3", "3", S1_MAX["1"], None),
    ]


def test_a_hub_names_its_consumer_as_unavailable_and_has_no_element_of_its_own():
    found = parse(REPLICA, sample("h1.replica.ldif"), server="h1")
    assert set(found.facts["vectors"]["h1"]["elements"]) == {"1", "2"}
    assert found.facts["replica"]["dc=example,dc=com"] == {"id": "65535", "type": "2", "flags": "1"}
    assert [(row["consumer_port"], row["consumer_origin"]) for row in rows(found, "links")] == [(38914, None)]


def test_agreements_give_links_and_the_remembered_vectors_of_their_consumers():
    found = parse(AGREEMENTS, sample("s1.agreements.ldif"))
    assert (found.rows, found.rejects) == (2, [])
    assert set(found.facts["vectors"]) == {"s1-to-s2", "s1-to-s3"}
    assert {(row["kind"], row["holder"]) for row in rows(found, "vectors")} == {
        ("link", "s1-to-s2"),
        ("link", "s1-to-s3"),
    }
    assert {row["modified_at"] for row in rows(found, "vectors")} == {None}
    link = rows(found, "links", "offset")[0]
    at = datetime(2026, 11, 20, 14, 33, 7, tzinfo=UTC)
    assert link == {
        **dict.fromkeys(("role", "supplier_host", "supplier_port", "automatic")),
        "suffix": "dc=example,dc=com",
        "name": "s1-to-s2",
        "consumer_host": "localhost",
        "consumer_port": 38902,
        "consumer_origin": None,
        "enabled": True,
        "schedule": None,
        "state": "green",
        "status_code": 0,
        "status": "Error (0) Replica acquired successfully: Incremental update succeeded",
        "busy": False,
        "started_at": at,
        "ended_at": at,
        "init_started_at": None,
        "init_ended_at": None,
        "init_status": None,
        "init_outcome": None,
        "sent": "1:1979/0 3:1975/0 0:1/0",
        "position": None,
        "excluded": "memberOf",
        "excluded_by_filling": None,
        "transport": "LDAP",
        "method": "simple",
        "login": "cn=replication manager,cn=config",
    }


def test_an_agreement_without_vector_is_a_link_but_no_vector():
    status = '{"state": "amber", "ldap_rc": "0", "repl_rc": "18", "message": "Error (18) Backing off"}'
    found = parse(
        AGREEMENTS,
        agreement(
            "nsDS5ReplicaHost: ldap2.example.com",
            "nsDS5ReplicaPort: 636",
            "nsds5ReplicaEnabled: off",
            "nsds5replicaupdateschedule: 0000-2359 0123456",
            "nsds5replicaLastInitEnd: 20261120143938Z",
            f"nsds5replicaLastUpdateStatusJSON: {status}",
        ),
    )
    assert found.facts["vectors"] == {}
    (link,) = rows(found, "links")
    assert (link["enabled"], link["schedule"], link["state"], link["status_code"]) == (
        False,
        "0000-2359 0123456",
        "amber",
        18,
    )
    assert (link["status"], link["init_ended_at"].hour, link["excluded"]) == ("Error (18) Backing off", 14, None)


def test_a_windows_agreement_is_a_link_too():
    data = agreement("nsDS5ReplicaHost: ad.example.com").replace(
        b"nsds5replicationagreement", b"nsDSWindowsReplicationAgreement"
    )
    assert AGREEMENTS.sniff(data, "x")
    assert [row["consumer_host"] for row in rows(parse(AGREEMENTS, data), "links")] == ["ad.example.com"]


def test_one_search_may_print_replica_and_agreements_and_the_mapping_tree():
    tree = b'dn: cn="dc=example,dc=com",cn=mapping tree,cn=config\nobjectClass: nsMappingTree\ncn: x\n\n'
    data = tree + sample("s1.replica.ldif") + sample("s1.agreements.ldif")
    assert REPLICA.sniff(data, "x")
    assert not AGREEMENTS.sniff(data, "x")
    found = parse(REPLICA, data)
    assert (found.rows, found.rejects) == (4, [])
    assert set(found.facts["vectors"]) == {"s1", "s1-to-s2", "s1-to-s3"}


def test_the_closing_lines_of_ldapsearch_are_no_entry():
    data = b"# extended LDIF\n#\n# LDAPv3\n#\n\n# replica, mapping tree, config\n" + sample("s1.replica.ldif")
    data += b"# search result\nsearch: 2\nresult: 0 Success\n\n# numResponses: 2\n# numEntries: 1\n"
    assert REPLICA.sniff(data, "x")
    found = parse(REPLICA, data)
    assert (found.rows, found.rejects) == (1, [])
    assert elements(found) == elements(parse(REPLICA, sample("s1.replica.ldif")))


def test_a_position_of_unknown_shape_is_counted_as_unreadable():
    found = parse(
        REPLICA, replica("nsds5agmtmaxcsn: dc=a;s1-to-s2;h;389;2;6b005a21000100010000", "nsds5agmtmaxcsn: what")
    )
    assert [row["name"] for row in rows(found, "links")] == ["s1-to-s2"]
    assert found.facts["unreadable_links"] == 1


def test_two_suffixes_in_one_file_stay_two_vectors():
    element = "nsds50ruv: {replica 1 ldap://a:389} 6b005930000200010000 "
    data = replica("nsDS5ReplicaRoot: dc=a", element + "6b005a21000100010000")
    data += replica("nsDS5ReplicaRoot: dc=b", element + "6b005b00000100010000")
    found = parse(REPLICA, data)
    assert found.facts["suffixes"] == {"dc=a": 1, "dc=b": 1}
    assert {holder: vector["elements"]["1"]["max"] for holder, vector in found.facts["vectors"].items()} == {
        "s1 dc=a": "6b005a21000100010000",
        "s1 dc=b": "6b005b00000100010000",
    }


def test_a_suffix_is_one_in_whatever_letters_and_blanks_it_was_typed():
    data = replica("nsDS5ReplicaRoot: DC=Example, dc = com", "nsds50ruv: {replicageneration} 6b005a21000100010000")
    data += agreement("nsDS5ReplicaRoot: dc=example,DC=com", "nsDS5ReplicaHost: h")
    found = parse(REPLICA, data)
    assert found.facts["suffixes"] == {"dc=example,dc=com": 1}
    assert list(found.facts["vectors"]) == ["s1"]
    assert {row["suffix"] for name in ("vectors", "links") for row in rows(found, name)} == {"dc=example,dc=com"}


def test_the_suffix_can_be_read_from_the_name_of_the_entry():
    data = replica("nsds50ruv: {replicageneration} 6B00592D000000010000").replace(b"objectClass: nsds5Replica\n", b"")
    assert REPLICA.sniff(data, "x")
    found = parse(REPLICA, data)
    assert found.facts["suffixes"] == {"dc=example,dc=com": 1}
    (row,) = rows(found, "vectors")
    assert (row["origin"], row["generation"]) == (None, "6b00592d000000010000")
    assert found.facts["vectors"] == {"s1": {"generation": "6b00592d000000010000", "elements": {}}}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{replica 4 ldap://d:389} 6b005930000200040000", "not two CSNs"),
        ("{replica 4} ", "neither address nor CSNs"),
        ("{replica 4 ldap://d:389} 6b0059300002000400 6b005930000200040000", "not two CSNs"),
        ("{replica x}", "neither a replica"),
        ("{replica " + "9" * 5000 + " ldap://d} ", "neither a replica"),
        ("{replica 1 ldap://d:389} 6b005930000200010000 6bffffff000200010000", "a second element"),
        ("{replicageneration} 5909c984000200020000", "a second generation"),
    ],
)
def test_a_malformed_element_is_a_row_with_its_problem_and_in_no_vector(value: str, problem: str):
    good = "{replica 1 ldap://a:389} 6B005930000200010000 6B005A21000100010000"
    data = replica("nsds50ruv: {replicageneration} 6b00592d000000010000", f"nsds50ruv: {good}", f"nsds50ruv: {value}")
    found = parse(REPLICA, data)
    assert found.rejects == []
    assert elements(found) == {("s1", "1", "6b005930000200010000", "6b005a21000100010000", "ldap://a:389")}
    bad = rows(found, "vectors")[1]
    assert problem in bad["problem"]
    assert (bad["min"], bad["max"]) == (None, None)
    assert bad["raw"] == value.rstrip()[:500]


def test_an_element_with_address_and_without_csns_is_known_and_has_seen_nothing():
    found = parse(REPLICA, replica("nsds50ruv: {replica 010 ldap://j:389}"))
    assert elements(found) == {("s1", "10", None, None, "ldap://j:389")}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("dc=a;s1-to-s2;h;389;2;6B005a21000100010000", ("s1-to-s2", "h", 389, "2", "6b005a21000100010000")),
        ("dc=a;s1-to-c1;h;389;65535;6b005a21000100010000", ("s1-to-c1", "h", 389, None, "6b005a21000100010000")),
        ("dc=a;s1-to-h1;h;389;unavailable;6b005a21000100010000", ("s1-to-h1", "h", 389, None, "6b005a21000100010000")),
        ("dc=a;s1-to-h1;h;389;unavailable", ("s1-to-h1", "h", 389, None, None)),
        ("o=a;b,c=d;to s2;h;389;007;6b005a21000100010000", ("to s2", "h", 389, "7", "6b005a21000100010000")),
        ("o=x;y;to; s2;h;389;2;6b005a21000100010000", ("to; s2", "h", 389, "2", "6b005a21000100010000")),
        ("s1-to-s2;h;389;2;6b005a21000100010000", None),
        ("dc=a;s1-to-s2;h;ldap;2;6b005a21000100010000", None),
        ("", None),
    ],
)
def test_agreement_positions_are_read_from_their_end(value: str, expected: tuple[object, ...] | None):
    row = link_row(value, 0, ["o=x;y"])
    columns = ("name", "consumer_host", "consumer_port", "consumer_origin", "position")
    assert (tuple(row[column] for column in columns) if row else None) == expected


def test_get_ruv_gives_elements_without_generation():
    found = parse(RUV, sample("s1.get-ruv.txt"))
    assert (found.rows, found.rejects) == (3, [])
    assert found.facts["vectors"]["s1"]["generation"] is None
    assert elements(found) == elements(parse(REPLICA, sample("s1.replica.ldif")))
    assert [row["offset"] for row in rows(found, "vectors")] == [0, 281, 562]


def test_get_ruv_as_json_and_plain_lists_of_values_say_the_same():
    blocks = sample("s1.get-ruv.txt").decode()
    values = [line[4:].strip() for line in blocks.splitlines() if line.startswith("RUV:")]
    expected = elements(parse(RUV, blocks.encode()))
    document = json.dumps({"type": "list", "items": [{"raw_ruv": value, "rid": "1"} for value in values]}, indent=4)
    generation = "{replicageneration} 6b00592d000000010000"
    for data in (
        document,
        "".join(f"{value}\n" for value in values),
        "".join(f"nsds50ruv: {value}\n" for value in [generation, *values]),
    ):
        assert RUV.sniff(data.encode(), "x")
        found = parse(RUV, data.encode())
        assert elements(found) == expected
        assert found.rejects == []
        assert found.rows == 3 + (generation in data)
        assert found.facts["vectors"]["s1"]["generation"] == ("6b00592d000000010000" if generation in data else None)


def test_a_block_of_get_ruv_that_contradicts_itself_is_rejected():
    data = sample("s1.get-ruv.txt").replace(b"(6b005a20000200020000)", b"(6b005a2f000200020000)")
    found = parse(RUV, data)
    assert (found.rows, len(found.rejects)) == (3, 1)
    assert "max csn" in found.rejects[0].reason
    assert {element[1] for element in elements(found)} == {"1", "3"}


@pytest.mark.parametrize(
    "text", ['{"type": "list", "items": [{"raw_ruv": 5}]}', '{"type": "list", "items": [{"raw_ruv":']
)
def test_broken_json_of_get_ruv_is_rejected(text: str):
    assert RUV.sniff(text.encode(), "x")
    found = parse(RUV, text.encode())
    assert (found.rows, len(found.rejects), found.tables) == (1, 1, {})


def test_dbscan_gives_changes_and_the_vectors_of_the_changelog():
    found = parse(DBSCAN, sample("s1.dbscan.txt.gz"))
    assert (found.rows, found.rejects) == (11, [])
    changes = {row["position"]: row for row in rows(found, "changes")}
    assert len(changes) == found.facts["csns"] == 8
    assert found.facts["operations"] == {"add": 5, "delete": 1, "modify": 1, "modrdn": 1}
    assert found.facts["helpers"] == 3
    assert found.facts["purge_vector"] == {origin: {"min": None, "max": None} for origin in "123"}
    assert {origin: pair["max"] for origin, pair in found.facts["max_vector"].items()} == S1_MAX
    assert {row["kind"] for row in rows(found, "vectors")} == {"log_purge", "log_max"}
    rename = changes["6b0059be000600030000"]
    assert rename["rename"] == "newrdn: uid=a3u00005r8\ndeleteoldrdn: -1\nnewsuperior: ou=staff,dc=example,dc=com"
    assert (rename["origin"], rename["hi"], rename["lo"]) == ("3", 0x6B0059BE0006, 0x00030000)
    assert rename["logged_at"] == datetime(2026, 11, 20, 14, 32, 10, tzinfo=UTC)
    add = changes["6b005930000200010000"]
    assert (add["parent"], add["operation"]) == ("9c403999-e4ee11f1-a8e4ae0b-27ac1ddf", "add")
    assert add["body"].startswith("objectclass: top\nobjectclass: ldapsubentry\n")


def record(csn: str, *lines: str, operation: str = "modify", dn: str = "uid=x,dc=example,dc=com") -> bytes:
    head = [f"dbid: {csn}", "\tencrypted: no", "\treplgen: 1795184950 Fri Nov 20 14:29:10 2026", f"\tcsn: {csn}"]
    head += ["\tuniqueid: a5310a91-e4ee11f1-a082f800-89af1dbe", f"\tdn: {dn}", f"\toperation: {operation}"]
    return "\n".join([*head, *(f"\t\t{line}" for line in lines), "", ""]).encode()


def test_dbscan_keeps_dummy_records_as_anchors():
    found = parse(DBSCAN, record("6b005935000000020000", operation="delete", dn="cn=start iteration"))
    assert [row["kind"] for row in rows(found, "changes")] == ["anchor"]
    assert (found.facts["csns"], found.facts["helpers"]) == (0, 1)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_piece_borders_change_nothing_in_dbscan(ending: bytes):
    data = sample("s1.dbscan.txt.gz").replace(b"\n", ending)
    whole = parse(DBSCAN, data)
    borders = [place for place in range(1, len(data)) if data[:place].endswith(b"\n" + ending)]
    assert len(borders) > 8
    for cuts in [[0, border, len(data)] for border in borders] + [[0, *borders, len(data)]]:
        found = parse(DBSCAN, *(data[start:end] for start, end in pairwise(cuts)))
        assert (found.tables, found.facts, found.rows) == (whole.tables, whole.facts, whole.rows)


def test_an_empty_line_inside_a_raw_value_is_no_border_of_dbscan(tmp_path, monkeypatch):
    first = record("6b005935000000020000", "jpegPhoto: \x01\x02", "title: a").replace(b"\x02", b"\xff\n\n\xfe")
    second = record("6b005936000000020000", "description: one", "title: b").replace(b"one", b"one\n\ntwo")
    data = first + second + first.replace(b"6b005935", b"6b005937")
    found = parse(DBSCAN, data)
    assert (found.rows, found.rejects, found.facts["csns"]) == (3, [], 3)
    bodies = [row["body"] for row in rows(found, "changes")]
    assert re.fullmatch(r"jpegPhoto: \[5 bytes that are not text, sha256 \w+\]\ntitle: a", bodies[0])
    assert bodies[1] == "description: one\n\ntwo\ntitle: b"
    assert bodies[2] == bodies[0]
    plain, packed = tmp_path / "s1.dbscan", tmp_path / "s1.dbscan.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    for size in range(1, len(data), 7):
        monkeypatch.setattr(files, "PIECE", size)
        for path in (plain, packed):
            cut = [piece.data for piece in pieces(path, Source("x", "now", "s1"), RECORDS, opens=DBSCAN.opens)]
            assert b"".join(cut) == data
            assert all(piece.startswith(b"dbid: ") for piece in cut)
            again = parse(DBSCAN, *cut)
            assert (again.rows, again.rejects, again.tables) == (3, [], found.tables)
    assert parse(DBSCAN, first, b"lost beginning\n\t\ttitle: c\n\n").rows == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (b"this is no record\n\n", "does not begin with dbid"),
        (record("6b005935000000020000").replace(b"csn: 6b", b"csn: 6c"), "key and csn differ"),
        (record("6b005935000000020000", operation="modfy"), "operation that does not exist"),
        (record("6b005935000000020000", operation="modrdn"), "without the new name"),
        (record("6b005935000000020000").replace(b"uid=x", b"uid=\xff"), "not UTF-8"),
        (record("6b005935000000020000").replace(b"uniqueid", b"uniqueie"), "without uniqueid"),
        (record("6b005935000000020000").replace(b"a5310a91", b"a5310a9"), "uniqueid of another shape"),
        (record("0000014d000000000000"), "helper record without its content"),
    ],
)
def test_a_damaged_record_of_dbscan_is_rejected_with_its_reason(wrong: bytes, reason: str):
    good = record("6b005936000000020000", "title: b")
    found = parse(DBSCAN, good + wrong + good)
    assert (found.rows, len(found.rejects), found.facts["csns"]) == (3, 1, 2)
    assert reason in found.rejects[0].reason
    assert found.rejects[0].offset == len(good)


def test_changelog_facts_count_by_origin():
    csns = ["6b005935000000020000", "6b005936000000020000", "6b0059360000ffff0000"]
    facts = changelog_facts(csns, ["add", "add", "delete"], 2, None, {})
    assert facts["by_origin"]["2"] == {"count": 2, "min": csns[0], "max": csns[1]}
    assert facts["by_origin"]["65535"]["count"] == 1
    assert (facts["operations"], facts["purge_vector"], facts["max_vector"]) == ({"add": 2, "delete": 1}, None, {})


@pytest.mark.parametrize("name", SMALL)
def test_a_file_cut_anywhere_tells_part_of_the_truth_and_rejects_the_rest(name: str):
    kind, data = SMALL[name], sample(name)
    whole = parse(kind, data)
    ends = (
        set(range(len(data) + 1))
        if len(data) < 4000
        else {*range(0, len(data), 17), *range(len(data) - 300, len(data))}
    )
    for end in ends:
        found = parse(kind, data[:end])
        assert elements(found) <= elements(whole), end
        assert found.rows - len(found.rejects) <= whole.rows
        assert len(found.rejects) <= 1
        for table in whole.tables:
            assert all(row in whole.tables[table] or table == "changes" for row in found.tables.get(table, [])), end
    # One byte short of its last end mark, the last record is not whole.
    assert len(parse(kind, data[:-1]).rejects) == 1


@pytest.mark.parametrize("name", SMALL)
def test_windows_line_ends_change_nothing(name: str):
    kind, data = SMALL[name], sample(name)
    crlf = data.replace(b"\n", b"\r\n")
    assert kind.sniff(crlf, "x")
    unix, windows = parse(kind, data), parse(kind, crlf)
    assert (windows.rows, windows.facts) == (unix.rows, unix.facts)
    assert {table: rows(windows, table, "offset") for table in windows.tables} == {
        table: rows(unix, table, "offset") for table in unix.tables
    }
    places = {row["offset"] for table in windows.tables.values() for row in table}
    assert all(crlf[place : place + 1] not in (b"\r", b"\n") for place in places)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(SMALL)), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_never_stops_a_reader(name: str, place: float, bit: int):
    data = bytearray(sample(name))
    data[int(place * len(data))] ^= 1 << bit
    found = parse(SMALL[name], bytes(data))
    assert len(found.rejects) <= found.rows


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from([REPLICA, RUV, ENTRIES, DBSCAN]), data=st.binary(max_size=300))
def test_arbitrary_bytes_never_stop_a_reader(kind: Format, data: bytes):
    parse(kind, data)
    parse(kind, b"dn: cn=a\n" + data)
    parse(kind, b"dbid: 6b005935000000020000\n\t" + data)
    parse(kind, b"RUV: " + data)


CANARY = "h0rsebattery"
PACKED = base64.b64encode(f"{{SSHA}}{CANARY}".encode()).decode()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (
            AGREEMENTS,
            agreement(f"nsDS5ReplicaCredentials: {{AES-x}}{CANARY}", f"nsds5ReplicaBootstrapCredentials: {CANARY}"),
        ),
        (AGREEMENTS, agreement(f"nsds5replicaLastUpdateStatus: Error (0) {{SSHA}}{CANARY}", f"cn: {CANARY}: broken:")),
        (AGREEMENTS, agreement(f"nsDS5ReplicaCredentials {CANARY}")),
        (REPLICA, replica(f"nsds50ruv: {{SSHA}}{CANARY}", f"nsDS5ReplicaId: {{SSHA512}}{CANARY}")),
        (RUV, f"nsds50ruv: {{replica 1 {{SSHA}}{CANARY}}}\nuserPassword: {CANARY}\n".encode()),
        (DBSCAN, record("6b005935000000020000", f"userPassword: {CANARY}", f"description: {{SSHA}}{CANARY}")),
        (DBSCAN, record("6b005935000000020000", f"unhashed#user#password: {CANARY}\n{CANARY}", f"title: {PACKED}")),
        (DBSCAN, record("6b005935000000020000", dn=f"cn={{SSHA}}{CANARY}")),
        (DBSCAN, record("6b005935000000020000", f"userPassword: {CANARY}")[:-2]),
    ],
)
def test_no_secret_leaves_a_reader(kind: Format, data: bytes):
    found = everything(parse(kind, data))
    assert CANARY not in found
    assert PACKED[:-6] not in found


def test_only_an_empty_file_is_known_by_its_name():
    assert AGREEMENTS.sniff(b"", "c1.agreements.ldif")
    assert not AGREEMENTS.sniff(b"", "c1.replica.ldif")
    assert not AGREEMENTS.sniff(b"x", "c1.agreements.ldif")
    assert AGREEMENTS.empty == {"vectors": {}}


@needs_collected_files
def test_all_real_replica_agreement_and_get_ruv_files_are_read_whole():
    seen = 0
    for path in SHARED.rglob("*"):
        kinds = {".replica.ldif": REPLICA, ".agreements.ldif": AGREEMENTS, ".get-ruv.txt": RUV}
        kind = next((kind for ending, kind in kinds.items() if path.name.endswith(ending)), None)
        if kind and path.stat().st_size:
            server = path.name.split(".")[0]
            found = parse(kind, path.read_bytes(), server=server)
            assert found.rejects == [], path
            if kind is RUV:
                replica_file = path.with_name(f"{server}.replica.ldif")
                origins = {element[1] for element in elements(parse(REPLICA, replica_file.read_bytes(), server=server))}
                assert {element[1] for element in elements(found)} == origins
            seen += 1
    assert seen > 250


@needs_collected_files
def test_inspect_counts_the_real_dbscan():
    found = inspect_file(SHARED / "base" / "s1.changelog.dbscan-stopped.txt.gz")
    assert (found["format"], found["rows"], found["rejected"], found["detail"]["csns"]) == (
        "ds389.dbscan",
        5953,
        0,
        5950,
    )


def test_a_login_in_an_address_goes_with_its_password() -> None:
    low, high = "6b005c14001600030000", "6b005c14001600030001"
    element = ruv_element(f"{{replica 3 ldap://cn=admin:Canary@h.example:389}} {low} {high}")
    assert (element.url, element.min, element.max) == ("ldap://h.example:389", low, high)
    assert "Canary" not in repr(element)
