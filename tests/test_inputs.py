"""The inputs of a case: which files a folder holds, whose they are, and whether they are known."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
from pathlib import Path

import pytest
from case_samples import SNAPSHOTS, about

from workbench import Case, Problem
from workbench.engine import evidence
from workbench.intake import files, inputs
from workbench.intake.files import head


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


def test_snapshots_of_the_same_name_are_told_apart(spark, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "now").mkdir(parents=True)
        shutil.copy(SNAPSHOTS[0] / f"s{1 + (parent == 'b')}.changelog.ldif.gz", tmp_path / parent / "now")
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "a" / "now", tmp_path / "b" / "now"], spark)
    assert list(case.snapshots) == ["now", "b/now"]
    assert {row["snapshot"] for row in case.arrow("changes").to_pylist()} == {"now", "b/now"}


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
        (
            "servers: [{name: a, files: [dump-b.ldif]}]\ncollected: [{server: a, read_at: {dump-b.ldif: x}}]\n",
            "no file is named dump-b.ldif.*it was there when the servers were read: put it back",
        ),
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
        no_rights.setattr("workbench.case.loading.sha256_of", refused)
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
