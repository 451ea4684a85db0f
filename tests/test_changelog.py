"""The changelog LDIF: the fast reader against the exact one, damage of every kind, and secrets."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import STRIDES
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CANARY, DUMMY, HASHES, HEADER, folded, ldif_line, records

from workbench.intake.files import inspect_file, pieces
from workbench.model import Parsed, Piece, Reject, Source, merge_facts
from workbench.systems.ds389.formats import changelog as exact
from workbench.systems.ds389.formats import changelog_fast as fast
from workbench.systems.ds389.secrets import SECRETS

HERE = Path(__file__).parent
INCIDENT = HERE / "incidents" / "missed_behind_equal_vectors"
SOURCE = Source("s1.changelog.ldif", "snap", "s1")


def changes(parsed: Parsed) -> list[dict]:
    """The changes as plain rows, in the order of the file."""
    table = parsed.tables.get("changes")
    return sorted(table.to_pylist(), key=lambda row: row["offset"]) if table is not None else []


def agree(data: bytes, ended: bool = True) -> Parsed:
    """Read the piece both ways, insist that they agree, and give the fast one's answer."""
    piece = Piece(SOURCE, data, 1000, ended)
    quick, slow = fast.read(piece), exact.read_exactly(piece)
    assert changes(quick) == changes(slow)
    assert (quick.rows, quick.facts) == (slow.rows, slow.facts)
    assert sorted(quick.rejects, key=lambda r: r.offset) == sorted(slow.rejects, key=lambda r: r.offset)
    if "vectors" in slow.tables:
        assert quick.tables["vectors"].equals(slow.tables["vectors"])
    return quick


def everything(parsed: Parsed) -> str:
    """All that leaves a parser, as one text."""
    tables = {name: table.to_pylist() for name, table in parsed.tables.items()}
    return json.dumps([tables, parsed.facts, [vars(r) for r in parsed.rejects]], default=str, ensure_ascii=False)


@given(st.lists(records(), max_size=12), st.booleans())
@settings(max_examples=300, deadline=None)
def test_fast_and_exact_reader_agree_on_whatever_a_server_writes(texts: list[str], header: bool) -> None:
    parsed = agree((HEADER * header + "".join(texts)).encode())
    assert parsed.rows == len(texts)
    assert CANARY not in everything(parsed)
    assert base64.b64encode(CANARY.encode()).decode()[:12] not in everything(parsed)


@given(st.lists(records(decoded=True), max_size=8))
@settings(max_examples=150, deadline=None)
def test_fast_and_exact_reader_agree_on_decoded_exports(texts: list[str]) -> None:
    parsed = agree(("# LDIF File: decoded.ldif\n" + HEADER + "".join(texts)).encode())
    assert parsed.rows == len(texts)
    assert CANARY not in everything(parsed)


@given(st.lists(records(), min_size=2, max_size=6), st.data())
@settings(max_examples=300, deadline=None)
def test_they_agree_on_damaged_bytes(texts: list[str], data: st.DataObject) -> None:
    raw = bytearray("".join(texts).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from([raw[at] ^ 1 << data.draw(st.integers(0, 7)), 10, 32, 61, 58, 0x80]))
    agree(bytes(raw))


@given(st.lists(records(), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_windows_line_ends_change_nothing_but_places(texts: list[str]) -> None:
    unix, windows = "".join(texts).encode(), "".join(texts).replace("\n", "\r\n").encode()

    def content(data: bytes) -> list[dict]:
        return [{**row, "offset": 0} for row in changes(agree(data))]

    assert content(windows) == content(unix)


@pytest.mark.parametrize("stride", STRIDES)
def test_a_file_cut_at_any_byte_loses_only_its_last_record(stride: int) -> None:
    text = gzip.decompress((INCIDENT / "1-before" / "s1.changelog.ldif.gz").read_bytes())
    text = text[: text.index(b"\n\n", 6000) + 2] + DUMMY.encode()
    whole = agree(text)
    rows = changes(whole)
    borders = [row["offset"] - 1000 for row in rows]
    for size in range(0, len(text), stride):
        part = agree(text[:size])
        kept = changes(part)
        # Every record that ends before the cut is there and unchanged, nothing of a later one is.
        assert kept == rows[: len(kept)]
        behind = [start for start in borders if start < size]
        assert len(kept) + len(part.rejects) == len(behind) + (size < borders[0] and bool(part.rejects)), size
        assert part.facts["max_vector"] in (None, whole.facts["max_vector"])
        assert part.facts["purge_vector"] in (None, whole.facts["purge_vector"])


@pytest.mark.parametrize("size", [1, 7, 64, 777, 4096, 65536])
def test_ranges_of_any_size_give_every_record_once(size: int, tmp_path: Path) -> None:
    path = tmp_path / "s1.changelog.ldif"
    text = gzip.decompress((INCIDENT / "1-before" / "s1.changelog.ldif.gz").read_bytes())
    if size < 64:
        text = text[: text.index(b"\n\n", 9000) + 2]
    path.write_bytes(text.replace(b"\n\n", b"\n\n\n\n", 3))  # runs of empty lines are borders as well
    whole = changes(fast.read(Piece(SOURCE, path.read_bytes(), 0, True)))
    found = []
    for start in range(0, path.stat().st_size, size):
        for piece in pieces(path, SOURCE, "records", start, start + size):
            assert isinstance(piece, Piece)
            found += changes(fast.read(piece))
    assert found == whole


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda r: r.replace("changetype: modify", "changetype modify"), "a line without a colon"),
        (lambda r: r.replace("changetype: modify", "changetype: modifi"), "changetype: none of"),
        (lambda r: r.replace("csn: 6b", "csn: 6x"), "csn: not 20 hex digits"),
        (lambda r: r.replace("csn: 6b", "csn: b"), "csn: not 20 hex digits"),
        (lambda r: r.replace("csn: ", "cns: "), "a field that no changelog has"),
        (lambda r: r.replace("dn: cn=x\n", ""), "no dn"),
        (lambda r: r.replace("dn: cn=x\n", "dn: cn=x\ndn: cn=y\n"), "dn: twice"),
        (lambda r: r.replace("dn: cn=x\n", "dn:: !!!!\n"), "dn: not valid base64"),
        (lambda r: r.replace("dn: cn=x\n", "dn:: /////w==\n"), "dn: not UTF-8"),
        (lambda r: r.replace("dn: cn=x\n", "dn:: Y24ü\n"), "dn: not valid base64"),
        (lambda r: r.replace("change:: ", "change:: ü"), "change: not valid base64"),
        (lambda r: r.replace("change:: ", "change:: A"), "change: not valid base64"),
        (lambda r: r.replace("change:: ", "change: "), "change: not base64"),
        (lambda r: r[:-1], "the file ends inside this record"),
    ],
)
def test_each_kind_of_malformed_record_is_set_aside_with_its_reason(damage, reason: str) -> None:
    body = base64.b64encode(b"replace: mail\nmail: a@b\n-\n").decode()
    record = f"changetype: modify\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn=x\nchange:: {body}\n\n"
    good = record.replace("6b005c14", "6b005c15")
    parsed = agree((good + damage(record)).encode())
    assert [row["position"] for row in changes(parsed)] == ["6b005c15001600030000"]
    (reject,) = parsed.rejects
    assert reject.reason.startswith(reason)
    assert reject.offset == 1000 + len(good)
    assert parsed.rows == 2


def test_dummy_and_helper_records_are_no_changes() -> None:
    helper = "changetype: delete\ncsn: 0000014d000000000000\nnsuniqueid: 0-0-0-0\ndn: cn=x\n\n"
    parsed = agree(
        (HEADER + DUMMY + helper + DUMMY.replace("cn=start iteration", "cn=a").replace("0063", "0064")).encode()
    )
    assert [(row["kind"], row["origin"]) for row in changes(parsed)] == [("anchor", "3"), ("change", "3")]
    assert (parsed.rows, parsed.facts["helpers"], parsed.facts["csns"]) == (3, 2, 1)


def test_header_vectors_are_read_and_an_origin_without_positions_stays() -> None:
    parsed = agree(HEADER.encode())
    assert parsed.rows == 0
    assert parsed.facts["purge_vector"] == {"1": {"min": None, "max": None}}
    max_vector = {"1": {"min": "6b005930000200010000", "max": "6b005a21000100010000"}, "2": {"min": None, "max": None}}
    assert parsed.facts["max_vector"] == max_vector
    rows = parsed.tables["vectors"].to_pylist()
    assert {row["generation"] for row in rows} == {"6b00592d000000010000"}
    assert [row["problem"] for row in rows] == [None] * 3


def test_the_variant_with_the_title_glued_to_the_header_reads_the_same() -> None:
    plain = agree(HEADER.encode())
    glued = agree(("# LDIF File: /tmp/x.ldif" + HEADER).encode())
    assert glued.facts == plain.facts


def test_times_after_2038_and_sub_sequences_are_not_lost() -> None:
    record = "changetype: delete\ncsn: {}\nnsuniqueid: 1-2-3-4\ndn: cn=x\n\n"
    late = ["ffffffffffffffffffff", "80000000000000010001", "7fffffff000000010000"]
    rows = changes(agree("".join(record.format(csn) for csn in late).encode()))
    from workbench.systems.ds389.csn import order_key

    assert [row["position"] for row in rows] == late
    assert [order_key(row["origin"], row["hi"], row["lo"]) for row in rows] == late
    assert [row["position"] for row in sorted(rows, key=lambda row: (row["hi"], row["lo"]))] == sorted(late)


@pytest.mark.parametrize("shape", [*HASHES, *(f"{name}: %s" for name in sorted(SECRETS.attributes))])
@pytest.mark.parametrize("where", ["body", "packed", "option", "folded", "dn", "rename", "clear", "broken"])
def test_no_secret_leaves_the_parser(shape: str, where: str) -> None:
    secret = shape % (CANARY * 3)
    attribute, _, value = secret.partition(": ") if ": " in shape else ("description", "", secret)
    lines = {
        "packed": ldif_line(attribute, "ü" + value if attribute == "description" else value + "ü"),
        "option": f"{attribute};lang-et: {value}\n",
        "folded": folded(f"{attribute}: {value}", 20) + "\n",
    }
    line = lines.get(where, f"{attribute}: {value}\n")
    body = f"replace: {attribute}\n{line}-\n"
    change = (
        f"change::\n{body}"
        if where == "clear"
        else folded(f"change:: {base64.b64encode(body.encode()).decode()}") + "\n"
    )
    dn = f"cn={secret}" if where == "dn" else "cn=x"
    rename = f"newrdn: cn={secret}\ndeleteoldrdn: true\n" if where == "rename" else ""
    text = f"changetype: modrdn\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: {dn}\n{rename}{change}\n"
    if where == "broken":
        text = text.replace("csn: ", "csn ")
    parsed = agree((text + DUMMY).encode())
    assert parsed.rows == 2
    out = everything(parsed)
    assert CANARY not in out
    assert base64.b64encode(CANARY.encode()).decode()[:14] not in out


@pytest.mark.parametrize(
    "body",
    [
        f"description:\n :{base64.b64encode(b'{SSHA}C').decode()}\n",
        f"description:\n \n : {base64.b64encode(b'{SSHA}C').decode()}\n",
        f"userPa\n\n  ssword: {CANARY}\n",
        f"description: {{ssh\n\n  a}}{CANARY}\n",
    ],
)
def test_a_fold_within_a_sign_hides_no_secret(body: str) -> None:
    packed = base64.b64encode(f"replace: x\n{body}-\n".encode()).decode()
    text = f"changetype: modify\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn=x\nchange:: {packed}\n\n"
    assert "[secret removed]" in changes(agree(text.encode()))[0]["body"]


def test_what_is_no_secret_is_kept() -> None:
    body = "replace: passwordGraceUserTime\npasswordGraceUserTime: 0\n-\n"
    body += "replace: postalAddress\npostalAddress: a$b$c\n-\nadd: x\nx: {a} {b\n-\n"
    packed = base64.b64encode(body.encode()).decode()
    text = f"changetype: modify\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn=x\nchange:: {packed}\n\n"
    assert changes(agree(text.encode()))[0]["body"] == body


def test_real_changelogs_hold_what_their_servers_say(tmp_path: Path) -> None:
    for path in sorted(INCIDENT.rglob("*.changelog.ldif*")):
        seen = inspect_file(path)
        assert seen["format"] == "ds389.changelog-ldif"
        assert seen["rejected"] == 0
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert seen["rows"] == text.count(b"changetype: ") == seen["detail"]["csns"] + seen["detail"]["helpers"]
        for origin, element in seen["detail"]["max_vector"].items():
            if origin in seen["detail"]["by_origin"]:
                assert seen["detail"]["by_origin"][origin]["max"] == element["max"]
        agree(text)


def test_pieces_of_a_compressed_file_are_those_of_the_plain_one(tmp_path: Path) -> None:
    packed = INCIDENT / "2-during" / "s1.changelog.ldif.gz"
    plain = tmp_path / "s1.changelog.ldif"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))

    def read(path: Path) -> tuple[pa.Table, dict]:
        parsed = [fast.read(piece) for piece in pieces(path, SOURCE, "records") if not isinstance(piece, Reject)]
        return pa.concat_tables([one.tables["changes"] for one in parsed]), merge_facts(one.facts for one in parsed)

    assert read(packed)[0].to_pylist() == read(plain)[0].to_pylist()
    assert read(packed)[1] == read(plain)[1]


@pytest.mark.parametrize(
    "value",
    [
        base64.b64encode(base64.b64encode(f"{{SSHA}}{CANARY}{CANARY}".encode())).decode(),
        base64.b64encode(f"dn: x\nuserPassword: {CANARY}".encode()).decode(),
        base64.b64encode(f'{{"note": "see userpassword {CANARY}"}}'.encode()).decode(),
    ],
)
def test_values_are_unpacked_as_often_as_they_were_packed(value: str) -> None:
    body = f"replace: description\ndescription:: {value}\n-\n"
    packed = base64.b64encode(body.encode()).decode()
    text = f"changetype: modify\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn=x\nchange:: {packed}\n\n"
    out = everything(agree(text.encode()))
    assert value[:16] not in out
    assert "[secret removed]" in out
