"""Entries with replication state: the fast reader gives what the exact one defines, however the file is cut up."""

from __future__ import annotations

import base64
import hashlib
from itertools import pairwise
from typing import Any

import pytest
from collected import SHARED, needs_collected_files
from directory_samples import ENTRIES, elements, everything, parse, rows, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import tables
from workbench.intake.files import head, pieces
from workbench.model import Piece, Reject, Source
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.entries import read_entries
from workbench.systems.ds389.formats.entry_states import entry_rows, is_vector_entry
from workbench.systems.ds389.formats.values import LONGEST

SAMPLE = "s1.entries.ldif.gz"
CSN = "6b0059bd000000010000"


def exact(data: bytes, offset: int = 0, ended: bool = True) -> tuple[int, list[tuple[int, str]], list[dict[str, Any]]]:
    """(records, rejects, rows of entry_states) by the exact reader alone."""
    found, rejects, states = 0, [], []
    for record in ldif.records(Piece(Source("f", "s", "s1"), data, offset, ended)):
        found += 1
        if isinstance(record, Reject):
            rejects.append((record.offset, record.reason))
            continue
        try:
            these = entry_rows(record)
        except ValueError as error:
            rejects.append((record.offset, str(error)))
            continue
        states += [] if is_vector_entry(record) else these
    return found, rejects, tables.table("entry_states", states).to_pylist()


def fast(data: bytes, offset: int = 0, ended: bool = True) -> tuple[int, list[tuple[int, str]], list[dict[str, Any]]]:
    parsed = read_entries(Piece(Source("f", "s", "s1"), data, offset, ended))
    states = parsed.tables["entry_states"].to_pylist() if "entry_states" in parsed.tables else []
    return parsed.rows, [(reject.offset, reject.reason) for reject in parsed.rejects], states


def entry(
    *lines: str, dn: str = "uid=a,dc=example,dc=com", identity: str = "0953CE84-e4ef11f1-a8e4ae0b-27ac1ddf"
) -> bytes:
    return "\n".join([f"dn: {dn}", f"nsUniqueId: {identity}", *lines, "", ""]).encode()


def only(data: bytes, attribute: str) -> list[dict[str, Any]]:
    return [row for row in rows(parse(ENTRIES, data), "entry_states") if row["attribute"] == attribute]


def test_every_value_gives_a_row_for_each_of_its_marks():
    data = entry(
        f"objectClass;vucsn-{CSN}: person",
        f"description;lang-et;adcsn-{CSN};vucsn-6B0059BD000100020003: tere",
        f"mail;vdcsn-{CSN};deleted: a@b",
        f"title;adcsn-{CSN};vdcsn-{CSN};deletedattribute;deleted:",
        "entryUUID: d16d1e0b",
    )
    found = parse(ENTRIES, data)
    assert (found.rows, found.rejects) == (1, [])
    columns = ("attribute", "value", "state", "mark", "origin", "position")
    assert [tuple(row[column] for column in columns) for row in rows(found, "entry_states")] == [
        ("nsUniqueId", "0953CE84-e4ef11f1-a8e4ae0b-27ac1ddf", "present", None, None, None),
        ("objectClass", "person", "present", "vucsn", "1", CSN),
        ("description;lang-et", "tere", "present", "adcsn", "1", CSN),
        ("description;lang-et", "tere", "present", "vucsn", "2", "6b0059bd000100020003"),
        ("mail", "a@b", "deleted", "vdcsn", "1", CSN),
        ("title", "", "attribute_deleted", "adcsn", "1", CSN),
        ("title", "", "attribute_deleted", "vdcsn", "1", CSN),
        ("entryUUID", "d16d1e0b", "present", None, None, None),
    ]
    about = {(row["entry"], row["target"], row["offset"]) for row in rows(found, "entry_states")}
    assert about == {("0953ce84-e4ef11f1-a8e4ae0b-27ac1ddf", "uid=a,dc=example,dc=com", 0)}
    assert (found.facts["entries"], found.facts["tombstones"]) == (1, 0)


def test_values_of_a_deleted_entry_are_tombstones_and_those_of_a_resurrected_one_are_not():
    grave = entry(f"objectClass;vucsn-{CSN}: nsTombstone", f"mail;vdcsn-{CSN};deleted: a@b", "cn: x")
    alive = entry(f"objectClass;vdcsn-{CSN};deleted: nsTombstone", "cn: x")
    found = parse(ENTRIES, grave + alive)
    assert (found.facts["entries"], found.facts["tombstones"]) == (1, 1)
    assert [row["state"] for row in rows(found, "entry_states")] == [
        *("tombstone", "tombstone", "deleted", "tombstone"),
        *("present", "deleted", "present"),
    ]


def test_the_vector_entry_gives_the_vector_and_no_states():
    found = parse(ENTRIES, sample(SAMPLE))
    assert (found.rows, found.rejects) == (7, [])
    vector = found.facts["vectors"]["s1"]
    assert vector["generation"] == "6b00592d000000010000"
    assert vector["elements"]["2"] == {
        "min": "6b005933000100020000",
        "max": "6b005a20000200020000",
        "url": "ldap://localhost.localdomain:38902",
    }
    assert found.facts["suffixes"] == {"dc=example,dc=com": 1}
    assert [(row["name"], row["position"]) for row in rows(found, "links")] == [
        ("s1-to-s2", "6b005a21000100010000"),
        ("s1-to-s3", "6b005a21000100010000"),
    ]
    assert not any("ffffffff" in (row["entry"] or "") for row in rows(found, "entry_states"))


def test_the_suffix_is_the_first_entry_of_a_whole_export_only():
    top = entry(dn="dc=example,dc=com")
    assert parse(ENTRIES, b"version: 1\n\n# entry-id: 1\n" + top).facts["suffixes"] == {"dc=example,dc=com": 1}
    assert parse(ENTRIES, top).facts["suffixes"] == {}


def test_values_are_shown_short_and_comparable():
    photo = bytes(range(256)) * 8
    text = "õ" * 3000
    data = entry(
        f"jpegPhoto:: {base64.b64encode(photo).decode()}",
        f"audio:: {base64.b64encode(bytes(3)).decode()}",
        f"cn:: {base64.b64encode('Ülo'.encode()).decode()}",
        f"description:: {base64.b64encode(text.encode()).decode()}",
        f"title: {'x' * 1024}",
        f"street: {'y' * 1025}",
    )
    photo_shown, description, street = (only(data, name)[0]["value"] for name in ("jpegPhoto", "description", "street"))
    assert photo_shown.startswith("base64:" + base64.b64encode(photo).decode()[:900])
    assert photo_shown.endswith(f"... [2048 bytes, sha256 {hashlib.sha256(photo).hexdigest()[:16]}]")
    assert description.endswith(f"... [3000 characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}]")
    assert {len(photo_shown), len(description), len(street)} == {LONGEST}
    assert only(data, "title")[0]["value"] == "x" * 1024
    assert [only(data, name)[0]["value"] for name in ("audio", "cn")] == ["base64:AAAA", "Ülo"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry("cn:: w4ZnaX=I"), "invalid base64 in the attribute cn"),
        (entry("this line has no colon"), "a line without a colon"),
        (entry("cn: x").replace(b"cn: x", b"cn: \xff"), "not UTF-8 text in the attribute cn"),
        (entry("c n: x"), "does not begin with an attribute"),
        (entry(f"cn;vucsn-{CSN[:-1]}: x"), "a state option that is no CSN"),
        (entry(f"cn;vucsn-{CSN[:-1]}g: x"), "a state option that is no CSN"),
        (entry(f"cn;xxcsn-{CSN}: x"), "a state option that is no CSN"),
        (entry("cn: x").replace(b"dn: ", b"cn: ", 1), "does not begin with dn:"),
        (entry("changetype: modify"), "a change, not an entry"),
        (b" continued: x\n\n", "continuation"),
        (entry("cn: x", dn="no name"), "this is no name of an entry"),
        (entry("cn: x").replace(b"dn: uid", b"dn:: b924f3x/\ncn: uid"), "this is no name of an entry"),
        (entry("cn: x").replace(b"dn: uid", b"dn:: /w==\ncn: uid"), "the name of the entry is not UTF-8 text"),
    ],
)
def test_a_damaged_entry_is_rejected_alone(wrong: bytes, reason: str):
    good = entry(f"mail;vucsn-{CSN}: a@b")
    found = parse(ENTRIES, good + wrong + good)
    assert (found.rows, len(found.rejects), found.facts["entries"]) == (3, 1, 2)
    assert reason in found.rejects[0].reason
    assert found.rejects[0].offset == len(good)
    assert len(rows(found, "entry_states")) == 4


def test_what_is_legal_but_unusual_is_read_the_same():
    data = entry(
        "cn:   three blanks",
        "seeAlso:< file:///etc/passwd",
        f"sn;vucsn-{CSN};lang-et: option behind",
        "# a comment that is",
        "  folded",
        f"description;vucsn-{CSN}: fold",
        " ed text",
        dn="uid=a,\n dc=example,dc=com",
    )
    found = parse(ENTRIES, data + b"\n\n" + data)
    assert (found.rows, found.rejects) == (2, [])
    columns = ("target", "attribute", "value")
    assert [tuple(row[column] for column in columns) for row in rows(found, "entry_states")[1:5]] == [
        ("uid=a,dc=example,dc=com", "cn", "three blanks"),
        ("uid=a,dc=example,dc=com", "seeAlso", "file:///etc/passwd"),
        ("uid=a,dc=example,dc=com", "sn;lang-et", "option behind"),
        ("uid=a,dc=example,dc=com", "description", "folded text"),
    ]


LINES = st.sampled_from(
    [
        *(
            "cn: x",
            "cn:x",
            "cn:  x",
            "cn:",
            "cn:: eA==",
            "cn:: eA=",
            "cn:: /w==",
            "cn:: AAAA",
            "cn;lang-et: x",
            "cn:< file:x",
        ),
        *(
            f"cn;vucsn-{CSN}: y",
            f"cn;vucsn-{CSN};deleted: y",
            f"cn;ADCSN-{CSN.upper()};vdcsn-{CSN};deletedattribute;deleted:",
        ),
        *(
            f"cn;vucsn-{CSN};lang-et: y",
            f"cn;vucsn-{CSN}0: y",
            f"cn;vxcsn-{CSN}: y",
            "cn;deleted;lang-x;deleted: z",
            "cn;: x",
        ),
        *(
            "objectClass: nsTombstone",
            f"objectclass;vdcsn-{CSN};deleted: nstombstone",
            "objectClass:: bnNUb21ic3RvbmU=",
        ),
        *(
            "nsUniqueId: AB-cd",
            "nsuniqueid:: QUI=",
            "changetype: add",
            "# comment",
            " folded",
            "  ",
            "no colon",
            ": x",
            "ä: x",
        ),
        *(
            "description: {SSHA}abcdef",
            "description: $6$salt$abcdefghij",
            "userPassword: x",
            "userpassword;x:: eA==",
            "cn: \0x",
        ),
        *(
            f"title: {'t' * 1030}",
            "title: õ",
            "title: a;b:c",
            "title: e1NTSEF9YWJjZGVmZ2hpag==",
            "version: 1",
            "search: 2",
            "result: 0",
        ),
        *(
            "dn: dc=b",
            "dn:: ZGM9Yg==",
            "dn:: /w==",
            "DN: dc=c",
            "dn: nsuniqueid=ffffffff-ffffffff-ffffffff-ffffffff,dc=a",
            "",
            "",
        ),
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(st.one_of(LINES, st.just("dn: dc=a"), st.just("")), max_size=25),
    ending=st.sampled_from(["\n", "\r\n"]),
    end=st.sampled_from(["", "\n", "\n\n"]),
    ended=st.booleans(),
)
def test_the_fast_reader_agrees_with_the_exact_one(lines: list[str], ending: str, end: str, ended: bool):
    data = ("\n".join(["dn: dc=first", *lines]) + end).replace("\n", ending).encode()
    assert fast(data, 7, ended) == exact(data, 7, ended)


@settings(max_examples=300, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), count=st.integers(0, 3))
def test_the_fast_reader_agrees_on_damaged_real_entries(place: float, byte: int, count: int):
    data = sample(SAMPLE)
    at = int(place * len(data))
    damaged = data[:at] + bytes([byte]) * count + data[at + 1 :]
    assert fast(damaged) == exact(damaged)


def test_the_fast_reader_agrees_on_bytes_that_are_no_text_in_some_entries():
    data = (
        entry("cn: x") + entry("cn: õ") + entry("cn: y").replace(b"y", b"\xc3") + entry("cn: ü") + b"\xff\n\n" + entry()
    )
    assert fast(data) == exact(data)
    assert len(fast(data)[1]) == 2


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_piece_borders_change_nothing(ending: bytes):
    data = sample(SAMPLE).replace(b"\n", ending)
    whole = parse(ENTRIES, data)
    borders = [place for place in range(1, len(data)) if data[:place].endswith(b"\n" + ending)]
    for one in borders:
        assert parse(ENTRIES, data[:one], data[one:]).tables == whole.tables
    cuts = [0, *borders, len(data)]
    found = parse(ENTRIES, *(data[start:end] for start, end in pairwise(cuts)))
    assert (found.tables, found.rows, elements(found)) == (whole.tables, whole.rows, elements(whole))
    assert found.facts["entries"] == whole.facts["entries"]


def test_a_byte_order_mark_in_front_changes_only_the_places():
    data = sample(SAMPLE)
    assert ENTRIES.sniff(b"\xef\xbb\xbf" + data, "x")
    marked = parse(ENTRIES, b"\xef\xbb\xbf" + data)
    plain = parse(ENTRIES, data)
    assert rows(marked, "entry_states", "offset") == rows(plain, "entry_states", "offset")
    assert {row["offset"] - 3 for row in rows(marked, "entry_states")} == {
        row["offset"] for row in rows(plain, "entry_states")
    }


CANARY = "h0rsebattery"
HASH = f"{{SSHA}}{CANARY}"
PACKED = base64.b64encode(HASH.encode()).decode()


@pytest.mark.parametrize(
    "line",
    [
        f"userPassword: {CANARY}",
        f"userpassword;vucsn-{CSN}:: {PACKED}",
        f"nsDS5ReplicaCredentials: {CANARY}",
        f"description: was {HASH}",
        f"description:: {PACKED}",
        f"description: {PACKED}",
        f"audio:: {base64.b64encode(bytes([255, 254]) + HASH.encode()).decode()}",
        f"description: userPassword: {CANARY}",
        f"description: {'x' * 2000} {HASH}",
        f"userPassword {CANARY}",
        f"userPassword;vucsn-zz: {CANARY}",
        f"cn;vucsn-zz: {HASH}",
        f"dn: cn={HASH}",
        f"description: $6$rounds${CANARY}",
    ],
)
def test_no_secret_leaves_the_reader(line: str):
    data = entry(line) + b"\n\n" + f"dn: cn={HASH}\n{line}\n\n{line}\n\n".encode() + entry(line)[:-1]
    found = everything(parse(ENTRIES, data))
    assert CANARY not in found
    assert PACKED[:-6] not in found


def test_a_removed_secret_keeps_its_row():
    assert [(row["value"], row["position"]) for row in only(entry(f"userPassword;vucsn-{CSN}: x"), "userPassword")] == [
        (None, CSN)
    ]


@needs_collected_files
def test_all_real_exports_are_read_whole_and_as_the_exact_reader_reads_them():
    names = [path for path in SHARED.rglob("*") if "db2ldif" in path.name or "export-replication" in path.name]
    assert len(names) >= 11
    for path in names:
        assert ENTRIES.sniff(head(path)[0], path.name)
        data = b"".join(p.data for p in pieces(path, Source("f", "s", "s1"), ENTRIES.unit) if isinstance(p, Piece))
        found = parse(ENTRIES, data)
        assert found.rejects == []
        assert found.rows == data.count(b"\ndn: ")
        assert found.facts["entries"] + found.facts["tombstones"] + 1 == found.rows
        assert len(found.facts["vectors"]["s1"]["elements"]) >= 2
        if path.name == "s1.db2ldif-r.ldif.gz":
            assert (found.facts["entries"], found.facts["tombstones"]) == (1367, 658)
        assert fast(data) == exact(data)
