"""The case: loading, loading again, loading more; whole or not at all; and the same tables however the work is spread."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from strategies import CANARY

from workbench import Case, Problem, files, inputs
from workbench.boundary import strict_yaml
from workbench.case_yaml import renewed
from workbench.case_yaml import told as case_told
from workbench.engine import evidence, parts
from workbench.files import head, inspect_file
from workbench.inputs import Input
from workbench.journal import owned
from workbench.systems.ds389.csn import order_key
from workbench.tables import COLUMNS, SCHEMAS, SOURCE

INCIDENT = Path(__file__).parent / "incidents" / "missed_behind_equal_vectors"
SNAPSHOTS = [INCIDENT / "1-before", INCIDENT / "2-during"]


@pytest.fixture(scope="module")
def case(spark, tmp_path_factory) -> Case:
    made = Case.create(tmp_path_factory.mktemp("case") / "incident")
    made.load(SNAPSHOTS, spark)
    return made


def rows(case: Case, table: str) -> list[dict]:
    """All rows of a table, in an order that does not depend on the parts."""
    return sorted(case.arrow(table).to_pylist(), key=lambda row: json.dumps(row, default=str, sort_keys=True))


def everything(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder but the note of who works on it: path -> content, of a folder nothing."""
    found = (path for path in folder.rglob("*") if path.name != ".owner")
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def test_every_file_is_accounted_for(case: Case) -> None:
    coverage = {(row["snapshot"], row["file"]): row for row in case.arrow("coverage").to_pylist()}
    assert len(coverage) == sum(1 for folder in SNAPSHOTS for _ in folder.iterdir())
    rejected = case.arrow("rejects").to_pylist()
    for folder in SNAPSHOTS:
        for path in folder.iterdir():
            row, seen = coverage[folder.name, path.name], inspect_file(path)
            assert row["rows"] == row["accepted"] + row["rejected"]
            assert (row["format"], row["rows"], row["rejected"]) == (seen["format"], seen["rows"], seen["rejected"])
            assert row["rejected"] == sum((r["snapshot"], r["file"]) == (folder.name, path.name) for r in rejected)


def test_the_tables_have_the_documented_columns_in_spark_and_in_arrow(case: Case, spark) -> None:
    for name, schema in SCHEMAS.items():
        frame = case.table(name, spark)
        assert frame.columns == schema.names
        assert frame.count() == sum(part["rows"] for part in case.parts(name)) == len(case.arrow(name))


def test_holdings_are_those_of_the_changelogs(case: Case) -> None:
    held = {(row["server"], row["origin"]): row for row in case.holdings()}
    assert held["s1", "1"]["changes"] == 65
    assert held["s3", "1"]["first"] == "6b00617e000000010000"
    vectors = [
        row for row in case.arrow("vectors").to_pylist() if row["kind"] == "server" and row["snapshot"] == "2-during"
    ]
    assert (
        len({row["file"] for row in vectors}) == 8
    )  # get-ruv and replica of each, and two exports read a little later
    for (server, origin), row in held.items():
        assert row["claimed_max"] == max(v["max"] for v in vectors if (v["server"], v["origin"]) == (server, origin))


def test_positions_are_sorted_and_their_digests_add_up(case: Case) -> None:
    total = 0
    for part in case.parts("positions"):
        table = pq.read_table(part["path"])
        pairs = list(zip(table["hi"].to_pylist(), table["lo"].to_pylist(), strict=True))
        assert pairs == sorted(pairs)
        assert (tuple(part["first"]), tuple(part["last"])) == (pairs[0], pairs[-1])
        total += len(pairs)
    changes = [row for row in case.arrow("changes").to_pylist() if row["kind"] == "change"]
    assert total == len(changes) == sum(case.arrow("digests")["count"].to_pylist())
    assert all(order_key(row["origin"], row["hi"], row["lo"]) == row["position"] for row in changes)


def test_loading_again_does_nothing_and_loading_more_adds(spark, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    assert len(case.load(SNAPSHOTS[:1], spark).added) == 15
    before = sorted((tmp_path / "case" / "evidence").rglob("*.parquet"))
    again = Case.open(tmp_path / "case").load(SNAPSHOTS[:1], spark)
    assert (len(again.added), len(again.known)) == (0, 15)
    assert sorted((tmp_path / "case" / "evidence").rglob("*.parquet")) == before
    more = case.load(SNAPSHOTS, spark)
    assert (len(more.added), len(more.known)) == (len(list(SNAPSHOTS[1].iterdir())), 15)
    both = Case.create(tmp_path / "both")
    both.load(SNAPSHOTS, spark)
    for name in SCHEMAS:
        assert rows(case, name) == rows(both, name)


def test_a_file_that_was_moved_is_known_and_one_that_changed_replaces_its_rows(spark, tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    shutil.copy(SNAPSHOTS[0] / "s1.changelog.ldif.gz", folder)
    shutil.copy(SNAPSHOTS[0] / "s1.replica.ldif", folder)
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    os.utime(folder / "s1.replica.ldif")
    assert not case.load([folder], spark).added
    shutil.copy(SNAPSHOTS[1] / "s1.changelog.ldif.gz", folder)
    assert [one.file for one in case.load([folder], spark).added] == ["s1.changelog.ldif.gz"]
    text = gzip.decompress((folder / "s1.changelog.ldif.gz").read_bytes())
    assert len(case.arrow("changes")) == text.count(b"changetype: ")


@pytest.mark.parametrize(("range_size", "per_part", "tasks"), [(20_000, 10, 7), (100_000, 50, 2), (1 << 20, 1000, 64)])
def test_any_split_gives_the_same_tables(
    range_size: int, per_part: int, tasks: int, spark, tmp_path: Path, monkeypatch
) -> None:
    plain = tmp_path / "2-during"
    plain.mkdir()
    for path in SNAPSHOTS[1].iterdir():
        data = path.read_bytes()
        (plain / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
    monkeypatch.setattr(parts, "RANGE", range_size)
    monkeypatch.setattr(evidence, "_FEWEST_TASKS", tasks)
    monkeypatch.setattr(parts, "ROWS_PER_PART", per_part)
    split = Case.create(tmp_path / "split")
    split.load([plain], spark)
    monkeypatch.undo()
    whole = Case.create(tmp_path / "whole")
    whole.load([plain], spark)
    for name in SCHEMAS:
        assert rows(split, name) == rows(whole, name), name
    assert len(split.parts("changes")) > len(whole.parts("changes")) or range_size == 1 << 20


LOAD = """
import sys
from workbench import Case, spark_session
case, place, *folders = {arguments}
Case.create(case).load(folders, spark_session(**{{"remote" if place.startswith("sc:") else "master": place}}))
"""


@pytest.mark.cluster
@pytest.mark.parametrize("where", ["cluster", "connect_server"])
def test_a_cluster_and_spark_connect_give_the_same_tables(
    where: str, case: Case, request, elsewhere, tmp_path: Path
) -> None:
    arguments = [str(tmp_path / "case"), request.getfixturevalue(where), *map(str, SNAPSHOTS)]
    done = elsewhere(LOAD.format(arguments=arguments))
    assert done.returncode == 0, done.stderr[-2000:]
    there = Case.open(tmp_path / "case")
    for name in SCHEMAS:
        assert rows(there, name) == rows(case, name), name


def test_a_reader_never_sees_a_half_published_case(spark, tmp_path: Path, monkeypatch) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1], spark)
    before = {name: rows(case, name) for name in SCHEMAS}

    tree = everything(tmp_path / "case")
    replace = os.replace

    def broken(draft: str, path: Path) -> None:
        if path.name == "manifest.json":
            raise OSError(28, "No space left on device")
        replace(draft, path)

    monkeypatch.setattr("workbench.journal.os.replace", broken)
    with pytest.raises((OSError, Problem)):
        Case.open(tmp_path / "case").load(SNAPSHOTS, spark)
    monkeypatch.undo()
    assert everything(tmp_path / "case") == tree
    after = Case.open(tmp_path / "case")
    assert {name: rows(after, name) for name in SCHEMAS} == before
    after.load(SNAPSHOTS, spark)  # what the broken load left behind is swept up
    listed = {part["path"] for name in SCHEMAS for part in after.parts(name)}
    assert listed == {str(path) for path in (tmp_path / "case" / "evidence").rglob("*.parquet")}


def test_a_task_that_runs_twice_leaves_one_copy(tmp_path: Path) -> None:
    path = SNAPSHOTS[0] / "s1.changelog.ldif.gz"
    source = parts.Source(path.name, "1-before", "s1")
    share = parts.Share(0, str(path), source, "ds389.changelog-ldif")
    first, second = (list(parts.read_shares([share], tmp_path)) for _ in range(2))
    names = [{part["name"] for part in result[0]["parts"]} for result in (first, second)]
    assert names[0].isdisjoint(names[1])
    count = gzip.decompress(path.read_bytes()).count(b"changetype: ")
    assert [result[0]["rows"] for result in (first, second)] == [count, count]


def test_only_one_run_owns_a_case(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    code = (
        "import sys, time, pathlib; from workbench.journal import owned\n"
        "with owned(pathlib.Path(sys.argv[1])): print('mine', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "case")], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(Problem, match=f"process {other.pid} on"), owned(tmp_path / "case"):
            pass
    finally:
        other.kill()
        other.wait()
    with owned(tmp_path / "case"):  # a killed owner owns nothing
        pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p / "gone", "does not exist"),
        (lambda p: (p / "f").write_text("x") and p / "f", "is a file, not a folder"),
        (lambda p: (p / "d").mkdir() or p / "d", "holds no files"),
        (lambda p: (p / "d" / "inner").mkdir(parents=True) or p / "d", "each is a snapshot"),
        (
            lambda p: (p / "d" / "s").mkdir(parents=True) or ((p / "d" / "n").write_text("x") and p / "d"),
            "1 folders beside",
        ),
        (lambda p: (p / "d").mkdir() or ((p / "d" / "notes").write_text("x") and p / "d"), "holds evidence"),
    ],
)
def test_a_wrong_folder_is_told_in_one_sentence(make, words: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=words):
        Case.create(tmp_path / "case").load([make(tmp_path)])


def test_a_folder_with_other_files_does_not_become_a_case(tmp_path: Path) -> None:
    (tmp_path / "important").write_text("x")
    with pytest.raises(Problem, match="has other files in it"):
        Case.create(tmp_path)
    with pytest.raises(Problem, match="not a case"):
        Case.open(tmp_path)
    (tmp_path / "case.yaml").write_text("layout: 99\n")
    with pytest.raises(Problem, match="layout 99"):
        Case.open(tmp_path)


def test_snapshots_of_the_same_name_are_told_apart(spark, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "now").mkdir(parents=True)
        shutil.copy(SNAPSHOTS[0] / f"s{1 + (parent == 'b')}.changelog.ldif.gz", tmp_path / parent / "now")
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "a" / "now", tmp_path / "b" / "now"], spark)
    assert list(case.snapshots) == ["now", "b/now"]
    assert {row["snapshot"] for row in case.arrow("changes").to_pylist()} == {"now", "b/now"}


def test_no_secret_reaches_any_file_of_a_case(spark, tmp_path: Path) -> None:
    import base64

    folder = tmp_path / "leaky"
    folder.mkdir()
    hashed = "{PBKDF2-SHA512}10000$" + CANARY
    twice = base64.b64encode(base64.b64encode(hashed.encode())).decode()
    packed = base64.b64encode(hashed.encode()).decode()
    body = f"add: userPassword\nuserPassword: {CANARY}\nuserPassword:: {packed}\n-\nadd: x\nx: {hashed}\n-\n"
    change = base64.b64encode(body.encode()).decode()
    record = f"changetype: add\ncsn: 6b005c14001600030000\nnsuniqueid: 1-2-3-4\ndn: cn={hashed}\nchange:: {change}\n\n"
    (folder / "s1.changelog.ldif").write_text(
        record + record.replace("csn: 6", "csn: x") + record.replace("\nchange:: ", "\nchange:: A")
    )
    (folder / "s1.agreements.ldif").write_text(
        "dn: cn=a,cn=replica,cn=x,cn=mapping tree,cn=config\nobjectClass: nsds5replicationagreement\ncn: a\n"
        f"nsDS5ReplicaRoot: dc=x\nnsDS5ReplicaHost: h\nnsDS5ReplicaCredentials: {CANARY}\n"
        f"description:: {packed}\n\n"
    )
    (folder / "s1.errors.log").write_text(
        f"[20/Nov/2026:14:28:10.074604322 +0000] - ERR - part - something about userPassword: {CANARY} and {hashed}\n"
    )
    (folder / "s1.notes").write_text(f"{hashed} {twice}\n")
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    assert len(case.arrow("rejects")) == 2
    needles = [CANARY.encode(), base64.b64encode(CANARY.encode())[:14], base64.b64encode(b"xx" + CANARY.encode())[4:16]]
    for path in (tmp_path / "case").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data += json.dumps(pq.read_table(path).to_pylist(), default=str).encode()
            assert not any(needle in data for needle in needles), path


def test_a_kill_at_any_time_leaves_a_case_that_opens_and_loads(case: Case, tmp_path: Path) -> None:
    code = "import sys; from workbench import Case; Case.create(sys.argv[1]).load(sys.argv[2:])"
    killed = 0
    for number, seconds in enumerate((0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5)):
        folder = tmp_path / str(number)
        run = subprocess.Popen([sys.executable, "-c", code, str(folder), *map(str, SNAPSHOTS)])
        while run.poll() is None and not folder.exists():
            time.sleep(0.001)
        time.sleep(seconds)
        run.kill()
        killed += run.wait() == -signal.SIGKILL
        after = Case.create(folder)
        after.load(SNAPSHOTS)
        for name in ("changes", "vectors", "coverage"):
            assert rows(after, name) == rows(case, name), (seconds, name)
    assert killed >= 2, "this machine is too fast: the loads ended before they could be killed"


def test_every_column_of_every_table_is_documented() -> None:
    for name, columns in {**COLUMNS, "source": SOURCE}.items():
        for column, (_, meaning) in columns.items():
            assert meaning.strip(), f"{name}.{column}"


ROTATED = """[20/Nov/2026:14:00:00.000000001 +0000] conn=7 fd=64 slot=64 connection from 127.0.0.1 to 127.0.0.1
[20/Nov/2026:14:00:00.000000002 +0000] conn=7 op=3 EXT oid="2.16.840.1.113730.3.5.12" name="replication-multisupplier-extop"
[20/Nov/2026:14:00:01.000000000 +0000] conn=7 op=4 MOD dn="uid=a,dc=example,dc=com"
[20/Nov/2026:14:00:02.000000000 +0000] conn=7 op=4 RESULT err=0 tag=103 nentries=0 wtime=0.1 optime=0.1 etime=0.1
"""


def test_a_rotated_log_is_read_in_the_order_of_time_whatever_its_names(spark, tmp_path: Path) -> None:
    lines = ROTATED.splitlines(keepends=True)
    (tmp_path / "now").mkdir()
    (tmp_path / "now" / "s1.access.log").write_text("".join(lines[2:]))
    (tmp_path / "now" / "s1.access.log.rotated").write_text("".join(lines[:2]))
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "now"], spark)
    (row,) = case.arrow("applied").to_pylist()
    # Only the first file, whose name sorts last, shows that connection 7 is one of replication.
    assert (row["outcome"], row["connection"], row["target"]) == ("dropped", "7/4", "uid=a,dc=example,dc=com")
    assert row["file"] == "s1.access.log"


def test_a_folder_may_say_itself_whose_files_it_holds(spark, tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    shutil.copy(SNAPSHOTS[0] / "s1.changelog.ldif.gz", folder / "dump-a.ldif.gz")
    shutil.copy(SNAPSHOTS[0] / "s2.changelog.ldif.gz", folder / "dump-b.ldif.gz")
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    assert {row["server"] for row in case.arrow("changes").to_pylist()} == {"dump-a", "dump-b"}
    (folder / "case.yaml").write_text(
        "servers:\n  - name: ldap1\n    files: [dump-a.ldif.gz]\n    suffix: dc=x\n  - name: ldap2\n    files: ['*-b.*']\n"
    )
    assert len(case.load([folder], spark).added) == 2
    seen = {(row["server"], row["suffix"]) for row in case.arrow("changes").to_pylist()}
    assert seen == {("ldap1", "dc=x"), ("ldap2", None)}
    assert not case.load([folder, folder], spark).added
    about = (folder / "case.yaml").read_text()
    (folder / "case.yaml").write_text(about.replace("suffix: dc=x", "suffix: DC=Y, dc=z"))
    assert len(case.load([folder], spark).added) == 1
    seen = {(row["server"], row["suffix"]) for row in case.arrow("changes").to_pylist()}
    assert seen == {("ldap1", "dc=y,dc=z"), ("ldap2", None)}
    assert not case.load([folder], spark).added


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server:\n  - name: a\n", "did you mean servers"),
        ("servers:\n  - name: a\n    file: [x]\n", "did you mean files"),
        ("servers:\n  - name: a\n    files: [dump-1.ldif.gz]\n", "did you mean dump-a.ldif.gz"),
        ("servers: 7\n", "not a list"),
        ("- a\n", "mapping"),
        ("servers: [\n", "not valid YAML"),
    ],
)
def test_a_wrong_case_yaml_is_told_with_what_was_meant(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "dump-a.ldif.gz").write_bytes(b"x")
    (tmp_path / "case.yaml").write_text(text)
    with pytest.raises(Problem, match=words):
        Case.create(tmp_path / "case").load([tmp_path])


def test_a_file_that_grows_while_it_is_read_says_so_and_is_read_again(spark, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    log = folder / "s1.access.log"
    log.write_text(ROTATED)
    read_files = evidence.read_files

    def meanwhile(*arguments):
        log.write_text(ROTATED + ROTATED.splitlines(keepends=True)[2])
        return read_files(*arguments)

    monkeypatch.setattr(evidence, "read_files", meanwhile)
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    assert [row["reason"] for row in case.arrow("rejects").to_pylist()] == [
        "the file changed while it was read: load it again"
    ]
    monkeypatch.undo()
    assert len(case.load([folder], spark).added) == 1
    assert not case.arrow("rejects").to_pylist()


TWO_SUFFIXES = """dn: cn=replica,cn={suffix},cn=mapping tree,cn=config
objectClass: nsds5Replica
nsDS5ReplicaRoot: {suffix}
nsDS5ReplicaId: 1
nsds50ruv: {{replica 1 ldap://h:389}} {csn} {csn}

"""


def test_rows_of_a_server_with_two_suffixes_go_by_their_targets(spark, tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    csn = "6b005c13000000010000"
    suffixes = ("dc=example,dc=com", "o=ipaca", "ou=a,dc=example,dc=com")
    (folder / "s1.replica.ldif").write_text("".join(TWO_SUFFIXES.format(suffix=suffix, csn=csn) for suffix in suffixes))
    (folder / "s1.access.log").write_text(
        "".join(
            f'[20/Nov/2026:14:00:0{n}.000000000 +0000] conn=9 op={n} MOD dn="{dn}"\n'
            f"[20/Nov/2026:14:00:0{n}.000000001 +0000] conn=9 op={n} RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn}\n"
            for n, dn in enumerate(["uid=a,DC=example,DC=com", "uid=b,o=ipaca", "cn=other"], 1)
        )
    )
    record = "changetype: delete\ncsn: {}\nnsuniqueid: 1-2-3-4\ndn: uid=a,{}\n\n"
    other = f"changetype: modify\ncsn: {csn}\nnsuniqueid: 1-2-3-4\ndn: uid=c,dc=example,dc=com\nchange::\n"
    (folder / "s1.speaks-of-the-other.changelog.ldif").write_text(other + "replace: root\nroot: o=ipaca\n-\n\n")
    (folder / "s1.nested.changelog.ldif").write_text(record.format(csn, "OU=a,dc=example,dc=com"))
    export = "dn: nsuniqueid=ffffffff-ffffffff-ffffffff-ffffffff,{0}\nobjectClass: nsTombstone\nnscpEntryDN: {0}\n"
    vector = "nsuniqueid: ffffffff-ffffffff-ffffffff-ffffffff\nnsds50ruv: {replicageneration} " + csn + "\n\n"
    (folder / "s1.export.ldif").write_text("dn: o=ipaca\no: dc=example,dc=com\n\n" + export.format("o=ipaca") + vector)
    (folder / "s1.ca.changelog.ldif").write_text(record.format(csn, "o=ipaca"))
    (folder / "s1.main.changelog.ldif").write_text(record.format(csn, "dc=example,dc=com"))
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    applied = {row["target"]: row["suffix"] for row in case.arrow("applied").to_pylist()}
    assert applied == {"uid=a,DC=example,DC=com": suffixes[0], "uid=b,o=ipaca": suffixes[1], "cn=other": None}
    assert {row["file"]: row["suffix"] for row in case.arrow("positions").to_pylist()} == {
        "s1.ca.changelog.ldif": "o=ipaca",
        "s1.main.changelog.ldif": "dc=example,dc=com",
        "s1.speaks-of-the-other.changelog.ldif": "dc=example,dc=com",
        "s1.nested.changelog.ldif": "ou=a,dc=example,dc=com",
    }
    vectors = case.arrow("vectors").to_pylist()
    assert {row["suffix"]: row["max"] for row in vectors if row["origin"]} == dict.fromkeys(suffixes, csn)
    assert [row["suffix"] for row in vectors if row["file"] == "s1.export.ldif"] == ["o=ipaca"]
    assert {row["suffix"] for row in vectors if row["file"] == "s1.replica.ldif"} == set(suffixes)
    assert [(row["suffix"], row["changes"]) for row in case.holdings()] == [(suffix, 1) for suffix in suffixes]


def test_what_a_first_run_left_behind_is_no_obstacle(spark, tmp_path: Path) -> None:
    (tmp_path / "case" / "evidence" / "changes").mkdir(parents=True)
    (tmp_path / "case" / ".owner").touch()
    case = Case.create(tmp_path / "case")
    assert case.load(SNAPSHOTS[:1], spark).rows


def test_a_damaged_or_missing_part_is_told_by_name(spark, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1], spark)
    path = Path(case.parts("vectors")[0]["path"])
    path.write_bytes(b"PAR1 garbage")
    with pytest.raises(Problem, match=path.name):
        case.arrow("vectors")
    path.unlink()
    with pytest.raises(Problem, match=path.name):
        case.arrow("vectors")


def test_a_case_of_thousands_of_files_opens_again(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    folder = tmp_path / "now"
    folder.mkdir()
    from workbench.inputs import identify

    (folder / "s1.changelog.ldif").write_text(
        "changetype: delete\ncsn: 6b005c13000000010000\nnsuniqueid: 1\ndn: cn=x\n\n"
    )
    one = identify("now", folder / "s1.changelog.ldif")
    case.inputs = [type(one)(**{**vars(one), "file": f"s{n}.changelog.ldif", "server": f"s{n}"}) for n in range(5000)]
    case._publish()
    assert len(Case.open(tmp_path / "case").inputs) == 5000


def test_names_that_are_not_text_and_unreadable_files_do_not_stop_a_load(spark, tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff1.changelog.ldif.gz"))
    shutil.copy(SNAPSHOTS[0] / "s1.changelog.ldif.gz", odd)
    (folder / "s2.access.log").symlink_to("/proc/self/mem")  # opens, and cannot be read
    case = Case.create(tmp_path / "case")
    case.load([folder], spark)
    coverage = {row["file"]: (row["format"], row["rejected"]) for row in case.arrow("coverage").to_pylist()}
    assert coverage["\\xff1.changelog.ldif.gz"] == ("ds389.changelog-ldif", 0)
    assert coverage["s2.access.log"] == ("unknown", 1)
    assert not Case.open(tmp_path / "case").load([folder], spark).rows


def test_a_file_that_could_not_be_read_is_read_once_it_can_be(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    for name in ("s1.changelog.ldif.gz", "s1.replica.ldif"):
        shutil.copy(SNAPSHOTS[0] / name, folder)

    def refused(path: Path, *_) -> str:
        if path.name == "s1.changelog.ldif.gz":
            raise PermissionError(13, "Permission denied")
        return "some hash"

    case = Case.create(tmp_path / "case")
    with monkeypatch.context() as no_rights:  # file modes do not stop root
        no_rights.setattr(files, "head", lambda path: (refused(path), "") if path.suffix == ".gz" else head(path))
        no_rights.setattr(inputs, "sha256_of", refused)
        no_rights.setattr("workbench.loading.sha256_of", refused)
        case.load([folder])
        assert [row["reason"] for row in case.arrow("rejects").to_pylist()] == ["cannot be read: Permission denied"]
        assert not case.load([folder]).added
    assert "s1.changelog.ldif.gz" in [one.file for one in case.load([folder]).added]  # of the same size and time
    assert case.holdings()[0]["changes"]
    assert not case.load([folder]).added


def test_what_is_not_read_is_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    (folder / "s2" / "deep").mkdir(parents=True)
    shutil.copy(SNAPSHOTS[0] / "s1.replica.ldif", folder)
    (folder / "linked.replica.ldif").symlink_to(SNAPSHOTS[0] / "s2.replica.ldif")
    (folder / "s3.access.log").symlink_to(folder / "gone")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / ".s1.errors.log.swp").write_text("x")
    (folder / "case.yaml").write_text("servers: []\n")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "slapd.socket"))
    case = Case.create(tmp_path / "case")
    loaded = case.load([folder, folder])
    assert [one.file for one in loaded.added] == ["linked.replica.ldif", "s1.replica.ldif"]
    assert {(one.snapshot, one.name, one.why) for one in loaded.passed_over} == {
        ("now", "s2", inputs.FOLDER),
        ("now", "s3.access.log", inputs.NOWHERE),
        ("now", "loop", inputs.NOWHERE),
        ("now", ".s1.errors.log.swp", inputs.HIDDEN),
        ("now", "pipe", inputs.SPECIAL),
        ("now", "slapd.socket", inputs.SPECIAL),
    }
    assert len(loaded.passed_over) == 6
    assert case.load([folder]).passed_over == loaded.passed_over  # nothing new, but still not read


@pytest.mark.parametrize("first", [True, False])
def test_tasks_that_outlive_a_failed_load_change_nothing(first: bool, spark, tmp_path: Path, monkeypatch) -> None:
    case = Case.create(tmp_path / "new" / "case")
    if not first:
        case.load(SNAPSHOTS[:1], spark)
    before = everything(tmp_path / "new")
    alive = tmp_path / "alive"

    def one_fails_the_others_go_on(shares, staging):
        source = parts.Source("f", "s", "s1")
        if any("s1.changelog" in share.path for share in shares):
            while not alive.exists():
                time.sleep(0.05)
            raise OSError(28, "No space left on device")
        for _ in range(1000):  # longer than Spark lets it live
            with alive.open("a") as file:
                file.write("x")
            parts.write_part(staging, "rejects", [{"offset": 0, "reason": "late"}], source)
            time.sleep(0.01)
        yield {}

    monkeypatch.setattr(evidence, "read_shares", one_fails_the_others_go_on)
    with pytest.raises(Problem, match="No space left on device"):
        case.load(SNAPSHOTS, spark)
    assert alive.stat().st_size
    assert (tmp_path / "new").exists() is not first
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert everything(tmp_path / "new") == before
        time.sleep(0.1)
    monkeypatch.undo()
    assert list(case.snapshots) == ([] if first else ["1-before"])
    case.load(SNAPSHOTS, spark)
    assert list(case.snapshots) == ["1-before", "2-during"]


def test_ctrl_c_leaves_the_case_as_it_was(spark, tmp_path: Path) -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    case = Case.create(tmp_path / "case")
    for session in (None, spark):
        with pytest.raises(KeyboardInterrupt):
            case.load(SNAPSHOTS, session, stop)
        assert not (tmp_path / "case").exists()
    (tmp_path / "case").mkdir()
    with pytest.raises(KeyboardInterrupt):
        case.load(SNAPSHOTS, progress=stop)
    assert not list((tmp_path / "case").iterdir())
    case.load(SNAPSHOTS[:1])
    before, held = everything(tmp_path / "case"), [one.file for one in case.inputs]
    with pytest.raises(KeyboardInterrupt):
        case.load(SNAPSHOTS, progress=stop)
    assert everything(tmp_path / "case") == before
    assert (list(case.snapshots), [one.file for one in case.inputs]) == (["1-before"], held)


def test_few_small_files_are_read_without_spark_and_give_the_same_tables(case: Case, elsewhere, tmp_path: Path) -> None:
    code = (
        "import sys; from workbench import Case\n"
        f"Case.create({str(tmp_path / 'case')!r}).load({list(map(str, SNAPSHOTS))!r})\n"
        "assert 'pyspark' not in sys.modules"
    )
    done = elsewhere(code)
    assert done.returncode == 0, done.stderr[-2000:]
    here = Case.open(tmp_path / "case")
    for name in SCHEMAS:
        assert rows(here, name) == rows(case, name), name


def test_only_what_a_load_wrote_is_ever_swept_away(tmp_path: Path) -> None:
    collected = tmp_path / "incident" / "evidence" / "now"
    collected.mkdir(parents=True)
    shutil.copy(SNAPSHOTS[0] / "s1.replica.ldif", collected)
    with pytest.raises(Problem, match="has other files in it"):
        Case.create(tmp_path / "incident")
    late = Case.create(tmp_path / "case")
    (tmp_path / "case" / "evidence").mkdir(parents=True)
    shutil.copytree(collected, tmp_path / "case" / "evidence" / "changes")
    with pytest.raises(Problem, match="has other files in it"):
        late.load([collected])
    assert (tmp_path / "case" / "evidence" / "changes" / "s1.replica.ldif").exists()
    case = Case.create(tmp_path / "other")
    case.load([collected])
    shutil.copytree(collected, case.evidence / "mine")
    (case.evidence / "links" / "notes.txt").write_text("x")
    case.load([SNAPSHOTS[0]])
    assert (case.evidence / "mine" / "s1.replica.ldif").exists()
    assert (case.evidence / "links" / "notes.txt").exists()


def test_a_manifest_of_another_layout_is_refused_with_both_numbers(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    manifest = case.evidence / "manifest.json"
    stored = json.loads(manifest.read_text())
    for layout, do in ((7, "use the version of the workbench that made it"), (0, "load the inputs into a new case")):
        manifest.write_text(json.dumps(stored | {"layout": layout, "inputs": "in a shape of its own"}))
        with pytest.raises(Problem, match=rf"layout {layout} is not 1.*manifest.json.*{do}"):
            Case.open(case.folder)
    (tmp_path / "case" / "case.yaml").write_text("layout: '7'\n")
    with pytest.raises(Problem, match=r"layout 7 is not 1.*case.yaml.*use the version"):
        Case.open(case.folder)


def about(case: Case) -> dict:
    return strict_yaml((case.folder / "case.yaml").read_text(), "case.yaml")


def test_case_yaml_tells_what_the_evidence_says(case: Case) -> None:
    told = about(case)
    assert [one["label"] for one in told["snapshots"]] == ["1-before", "2-during"]
    newest = max(path.stat().st_mtime for path in SNAPSHOTS[0].iterdir())
    assert told["snapshots"][0]["newest_file"] == f"{datetime.fromtimestamp(int(newest), UTC):%Y-%m-%dT%H:%M:%SZ}"
    times = [row["last_at"] for row in case.arrow("coverage").to_pylist() if row["snapshot"] == "2-during"]
    assert told["snapshots"][1]["logs"]["until"][:19] == f"{max(filter(None, times)):%Y-%m-%dT%H:%M:%S}"
    assert [(one["name"], one["origin"]) for one in told["servers"]] == [("s1", "1"), ("s2", "2"), ("s3", "3")]
    assert "1-before/s1.changelog.ldif.gz" in told["servers"][0]["files"]
    links = {(one["supplier"], one["name"]): one for one in told["links"]}
    rows = case.arrow("links").to_pylist()
    assert set(links) == {(row["server"], row["name"]) for row in rows}
    for (supplier, name), link in links.items():
        assert name == f"{supplier}-to-{link['consumer']}"
        assert link["address"] in {f"{row['consumer_host']}:{row['consumer_port']}" for row in rows}


def test_what_a_person_wrote_into_case_yaml_stays(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    file = tmp_path / "case" / "case.yaml"
    text = file.read_text().replace("name: case\n", "# named after the ticket\nname: INC-4711\n")
    text = text.replace("origin: '3'", "origin: '33'") + "# added by hand\nnotes:\n- s3 was down at 14:00  # says Ops\n"
    file.write_text(text)
    again = Case.open(tmp_path / "case")
    again.load(SNAPSHOTS[:1])
    assert file.read_text() == text
    again.load(SNAPSHOTS)
    mended, told = file.read_text(), about(again)
    assert "# named after the ticket\nname: INC-4711\n" in mended
    assert "# added by hand\nnotes:\n- s3 was down at 14:00  # says Ops\n" in mended
    assert [one["label"] for one in told["snapshots"]] == ["1-before", "2-during"]
    assert told["servers"][2]["origin"] == "33"
    assert any(name.startswith("2-during/") for name in told["servers"][2]["files"])
    assert Case.open(tmp_path / "case").name == "INC-4711"


def test_case_yaml_of_another_style_keeps_its_content(tmp_path: Path) -> None:
    before = {"name": "a", "servers": [{"name": "s1", "files": ["x"]}, {"name": "s2", "files": ["z"]}]}
    now = {"name": "a", "servers": [{"name": "s1", "files": ["x", "y"]}, {"name": "s3", "files": []}]}
    theirs = '{"name": a, servers: [{name: s1, files: [x], room: "12"}, {name: ldap2, files: [z]}], ticket: "7"}'
    assert strict_yaml(renewed(theirs, "case.yaml", before, now), "case.yaml") == {
        "name": "a",
        "servers": [
            {"name": "s1", "files": ["x", "y"], "room": "12"},
            {"name": "ldap2", "files": ["z"]},
            {"name": "s3", "files": []},
        ],
        "ticket": "7",
    }


def test_case_yaml_of_a_large_case_can_be_read(tmp_path: Path) -> None:
    part = {"table": "changes", "name": "x", "rows": 1}
    one = inputs.identify("now", SNAPSHOTS[0] / "s1.replica.ldif")
    for servers in (1, 5000):
        many = [
            Input(**{**vars(one), "file": f"{n}.ldif", "server": f"s{n % servers}", "parts": [part]})
            for n in range(5000)
        ]
        said = case_told("large", 1, {"now": "/now"}, many, [], [])
        assert strict_yaml(renewed("", "case.yaml", {}, said), "case.yaml") == said
        assert "5000" in str(said["servers"])


def test_an_incident_that_was_moved_is_the_same_one(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    for folder in SNAPSHOTS:
        shutil.copytree(folder, tmp_path / "here" / folder.name)
    Case.create(tmp_path / "here" / "case").load([tmp_path / "here" / folder.name for folder in SNAPSHOTS])
    there = (tmp_path / "here").rename(tmp_path / "there")
    case = Case.open(there / "case")
    again = case.load([there / folder.name for folder in SNAPSHOTS])
    assert (again.added, list(case.snapshots)) == ([], ["1-before", "2-during"])
    assert about(case)["snapshots"][0]["folder"] == str(there / "1-before")
    # Another moment under the name of a folder that is gone is another snapshot.
    (there / "1-before").rename(there / "old")
    (tmp_path / "new" / "1-before").mkdir(parents=True)
    shutil.copy(SNAPSHOTS[1] / "s1.changelog.ldif.gz", tmp_path / "new" / "1-before")
    case.load([tmp_path / "new" / "1-before"])
    assert list(case.snapshots) == ["1-before", "2-during", "new/1-before"]


def test_a_case_without_its_evidence_does_not_pass_for_an_empty_one(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    shutil.rmtree(case.evidence)
    with pytest.raises(Problem, match="the evidence of this case is gone"):
        Case.open(case.folder)
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    (prepared / "case.yaml").write_text("layout: '1'\nname: INC-4711\n")
    with pytest.raises(Problem, match="does not exist"):
        Case.create(prepared).load([tmp_path / "gone"])
    assert {path.name for path in prepared.iterdir()} == {"case.yaml", ".owner"}
    Case.create(prepared).load(SNAPSHOTS[:1])
    assert about(Case.open(prepared))["name"] == "INC-4711"
