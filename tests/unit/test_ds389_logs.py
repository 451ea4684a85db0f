"""The logs of 389 Directory Server together: which is which, and that every line of every one is accounted for."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pytest
from collected import SHARED, needs_collected_files
from hypothesis import given, settings
from hypothesis import strategies as st
from log_samples import CSN, LOGS, PLUGIN, RESULT, SOURCE, comparable, kinds, read, sample

from workbench.intake import files
from workbench.model import Reject
from workbench.systems.ds389.formats.access_log import ACCESS_LOG
from workbench.systems.ds389.formats.audit_log import AUDIT_LOG

# --- which log is it?


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (RESULT.encode(), "ds389.access-log"),
        (b"tail of a line that was cut\n" + RESULT.encode(), "ds389.access-log"),
        (PLUGIN.encode() + b"text", "ds389.errors-log"),
        (b"[03/May/2017:14:28:16 +0200] NSMMReplicationPlugin - old text", "ds389.errors-log"),
        (b"time: 20261120150651\ndn: cn=a\nresult: 0\nchangetype: modify\n", "ds389.audit-log"),
        (b'{"local_time":"t","operation":"ADD","key":"1-1","conn_id":1}\n', "ds389.access-log"),
        (b'{\n  "local_time":"t",\n  "operation":"ADD",\n  "conn_id":1\n}\n', "ds389.access-log"),
        (b'{"local_time":"t","severity":"ERR","subsystem":"x","msg":"y"}\n', "ds389.errors-log"),
        (b'{\n  "local_time":"t",\n  "severity":"ERR",\n  "subsystem":"x",\n  "msg":"y"\n}\n', "ds389.errors-log"),
        (b'{"gm_time":"t","local_time":"t","target_dn":"x","bind_dn":"y","result":0}\n', "ds389.audit-log"),
    ],
)
def test_a_log_is_told_by_its_lines_whatever_its_name(head: bytes, expected: str) -> None:
    assert kinds(head) == [expected]
    title = b"\t389-Directory/2.3.1 B2025.016.1616\n\tlocalhost.localdomain:38902 (/etc/dirsrv/slapd-s2)\n\n"
    assert kinds(title + head, "errors") == kinds(title + head, "access") == [expected]


@pytest.mark.parametrize("name", ["access", "errors", "audit"])
def test_a_log_with_its_title_only_is_told_by_its_name(name: str) -> None:
    title = b"\t389-Directory/2.3.1 B2025.016.1616\n\tlocalhost.localdomain:38902 (/etc/dirsrv/slapd-s2)\n\n"
    header = b'{"header":{"version":"389-Directory/3.1.1 B1","instance":"localhost:636 (/etc/dirsrv/slapd-a)"}}\n'
    for head in (title, header):
        assert kinds(head, f"s1.{name}") == [f"ds389.{name}-log"]
        assert kinds(head, "s1.txt") == []


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"plain text\n",
        b"dn: dc=example,dc=com\nobjectClass: top\n",
        b"changetype: modify\nreplgen: 1\ncsn: 6b005c13000000030000\n",
        b"time,server,csn\n1,2,3\n",
        b'{"suffix": "dc=example,dc=com", "lag": []}\n',
        b'127.0.0.1 - - [20/Nov/2026:14:42:07 +0000] "GET / HTTP/1.1" 200\n',
        b"time: 20261120150651\ndn: cn=a\n",
        b"\xff\xfe{\0",
    ],
)
def test_other_files_are_left_alone(head: bytes) -> None:
    assert kinds(head, "s1.access.log") == []


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400), st.integers(50, 1000))
def test_any_bytes_are_accounted_for_in_every_log(data: bytes, size: int) -> None:
    for kind in LOGS:
        read(kind, data, size)
        read(kind, b"\n".join([f"{RESULT} csn={CSN}".encode(), data, b"{", data, b"}", PLUGIN.encode() + data]), size)


# --- the audit log


def test_nothing_of_an_audit_log_is_kept() -> None:
    data = sample("restored.audit.log.gz")
    assert kinds(data[: 64 << 10]) == ["ds389.audit-log"]
    tables, parsed = read(AUDIT_LOG, data.replace(b"userPassword:: e", b"userPassword:: \xff", 1), 1 << 12)
    assert tables == {}
    assert parsed.facts == {"carries_csn": False}
    assert [(reject.reason, reject.excerpt) for reject in parsed.rejects] == [("not UTF-8", "")]


# --- everything that was collected


def collected() -> list[Path]:
    return (
        sorted(SHARED.rglob("*.access.log*"))
        + sorted(SHARED.rglob("*errors*log*"))
        + sorted(SHARED.rglob("*.audit.log*"))
    )


@needs_collected_files
def test_every_collected_log_is_recognised_and_read_to_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"access": "ds389.access-log", "errors": "ds389.errors-log", "audit": "ds389.audit-log"}
    for path in collected():
        (kind,) = [kind for kind in LOGS if kind.sniff(files.head(path)[0], files.plain_name(path))]
        assert kind.name == next(name for word, name in expected.items() if word in path.name), path
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        whole = read(kind, data)
        assert whole[1].rejects == [], path
        assert not re.search(r"\{(SSHA|PBKDF2|AES)", str(comparable(whole[0])))
        if kind is ACCESS_LOG:
            assert whole[1].facts["results_with_csn"] == data.count(b" csn="), path
        reader = kind.reader()
        with monkeypatch.context() as small:
            small.setattr(files, "PIECE", 1 << 16)
            pieces = [reader(piece) for piece in files.pieces(path, SOURCE, kind.unit) if not isinstance(piece, Reject)]
        for name, table in whole[0].items():
            found = pa.concat_tables([piece.tables[name] for piece in pieces if name in piece.tables])
            assert found.sort_by("offset").to_pylist() == table.to_pylist(), path


@needs_collected_files
def test_no_other_collected_file_passes_for_a_log() -> None:
    logs = {*collected(), *(path for path in SHARED.parent.rglob("*.log*") if "ds389" in path.parent.as_posix())}
    for path in sorted(SHARED.parent.rglob("*")):
        if path.is_file() and path not in logs:
            assert kinds(files.head(path)[0], files.plain_name(path)) == [], path
