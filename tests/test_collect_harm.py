"""Without a server: room on disks, exports that loop, dumps without secrets, instances under a prefix."""

from __future__ import annotations

import io
import json
import re
import stat
from collections import namedtuple
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT
from leaks import leaks
from live_mesh import asked
from test_collect import DSE, HASH, Acted, configured

from workbench.cli.collect import _size
from workbench.intake import collection, disk_room, in_flight
from workbench.intake.collection import Access, Address, Gathered, Wanted, collect
from workbench.intake.disk_room import GIB, Limits, reserve_of
from workbench.intake.in_flight import FlightJournal, state_folder
from workbench.intake.inputs import look_into, named_in
from workbench.model import REMOVED, Piece, Problem, Source
from workbench.safety import LONGEST_YAML, strict_yaml
from workbench.systems.ds389.formats.dbscan import read_dbscan
from workbench.systems.ds389.live import dumping, instances, scrubbed
from workbench.systems.ds389.live.connection import Place
from workbench.systems.ds389.live.database import CHANGELOG, ENTRIES, Database
from workbench.systems.ds389.live.instances import Instance
from workbench.systems.ds389.live.pipes import PIPE
from workbench.systems.ds389.live.reached import Reached, server_at
from workbench.systems.ds389.live.servers import DirectoryServers
from workbench.systems.ds389.live.step_executors import HANDS
from workbench.systems.ds389.live.undo import FILE, LEVEL, TASK

pytestmark = pytest.mark.usefixtures("state")


# Room

Space = namedtuple("Space", "f_blocks f_frsize f_bavail")


def disk(monkeypatch: pytest.MonkeyPatch, total: int, *free: int) -> None:
    """A disk of which less and less is free, one look after the other."""
    left = list(free)
    monkeypatch.setattr(
        disk_room.os,
        "statvfs",
        lambda folder: Space(total // 4096, 4096, (left.pop(0) if len(left) > 1 else left[0]) // 4096),
    )


@pytest.mark.parametrize(
    ("total", "free", "estimate", "keep", "fits"),
    [
        (100 * GIB, 6 * GIB, None, None, True),
        (100 * GIB, 5 * GIB - 4096, None, None, False),
        (100 * GIB, 6 * GIB, GIB, None, True),
        (100 * GIB, 6 * GIB, GIB + 4096, None, False),
        (8 * GIB, 1 * GIB, 0, None, True),
        (8 * GIB, 2 * GIB, GIB + 4096, None, False),
        (8 * GIB, 2 * GIB, GIB + 4096, 0, True),
        (8 * GIB, 2 * GIB, 0, 3 * GIB, False),
    ],
)
def test_nothing_is_begun_that_would_leave_too_little_free(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    total: int,
    free: int,
    estimate: int | None,
    keep: int | None,
    fits: bool,
) -> None:
    disk(monkeypatch, total, free)
    if fits:
        Limits(keep).check(tmp_path, estimate, "it")
    else:
        with pytest.raises(Problem, match=r"not enough room.*have to stay free.*--keep-free"):
            Limits(keep).check(tmp_path, estimate, "it")


def test_the_reserve_never_grows_beyond_half_of_a_disk() -> None:
    assert [reserve_of(total) for total in (GIB // 4, 2 * GIB, 10 * GIB, 100 * GIB)] == [GIB // 8, GIB, GIB, 5 * GIB]


def test_writing_stops_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, 100 * GIB, 6 * GIB, 6 * GIB, 4 * GIB)
    chunks = iter([b"x" * (1 << 18)] * 100)
    with pytest.raises(Problem, match=r"the export was stopped: only 4\.0 GiB are free there"):
        Limits().write(tmp_path / "to", chunks, "the export")
    assert len(list(chunks)) == 97, "it is looked at every quarter of a MiB"
    assert list(tmp_path.iterdir()) == [], "half a file would be taken for a whole one"


def test_a_bound_comes_from_the_estimate_or_from_a_person() -> None:
    assert Limits().bound(None) is None
    assert Limits().bound(GIB) == 4 * GIB + (256 << 20)
    assert Limits(largest=5).bound(GIB) == Limits(largest=5).bound(None) == 5


def test_a_size_is_bytes() -> None:
    assert [_size(text, "--largest") for text in ("0", "12", "3K", "500M", "2G")] == [0, 12, 3072, 500 << 20, 2 << 30]


# Which exports loop


@pytest.mark.parametrize(
    ("implementation", "version", "loops"),
    [
        ("mdb", (2, 3, 1), True),
        ("mdb", (2, 3, 2), True),
        ("mdb", (2, 2, 10), True),
        ("mdb", None, True),
        ("mdb", (2, 3, 3), False),
        ("mdb", (2, 4, 0), False),
        ("mdb", (3, 1, 2), False),
        ("bdb", (2, 3, 1), False),
        ("bdb", (1, 4, 3), False),
        (None, (1, 3, 10), False),
    ],
)
def test_an_export_of_the_changelog_loops_with_lmdb_before_2_3_3(
    implementation: str | None, version: tuple[int, int, int] | None, loops: bool
) -> None:
    assert Database("userroot", implementation, version, None).changelog_loops == loops


def test_an_export_of_entries_loops_with_lmdb_where_the_suffix_is_not_the_first_entry() -> None:
    known = {
        (kind, first): Database("b", kind, (3, 1, 2), None, first).entries_loop
        for kind in ("mdb", "bdb")
        for first in "12"
    }
    assert known == {("mdb", "1"): False, ("mdb", "2"): True, ("bdb", "1"): False, ("bdb", "2"): False}
    assert not Database("b", "mdb", (3, 1, 2), None, None).entries_loop, "an ID that is not shown proves nothing"


def test_the_estimate_is_of_the_files_of_the_database(tmp_path: Path) -> None:
    (tmp_path / CHANGELOG).write_bytes(b"x" * 1000)
    (tmp_path / "data.mdb").write_bytes(b"x" * 50_000)
    bdb, mdb = (Database("userroot", kind, (2, 3, 1), tmp_path) for kind in ("bdb", "mdb"))
    assert (bdb.estimate(CHANGELOG), bdb.estimate(ENTRIES)) == (2000, None)
    assert 50_000 <= (mdb.estimate(ENTRIES) or 0) < 60_000
    assert (bdb.file(CHANGELOG), mdb.file(CHANGELOG)) == (tmp_path / CHANGELOG, tmp_path / "userroot" / CHANGELOG)


# When each file was read


class Timed(Acted):
    """Servers that note when they read."""

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        gathered = super().gather(name, folder, prefix, wanted)
        gathered.reading(f"{prefix}.changelog.ldif")
        (folder / f"{prefix}.changelog.ldif").write_text("")
        gathered.mended.append("the level is 16384 again")
        return gathered


def test_the_moment_before_each_file_was_read_is_in_case_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(collection, "now", lambda: datetime(2026, 1, 31, 12, 0, next(ticks), 1000, UTC))
    collect(Timed({"s1": 2}), "any", tmp_path / "now", Wanted())
    (one,) = strict_yaml((tmp_path / "now" / "case.yaml").read_text(), "case.yaml")["collected"]
    assert (one["from"], one["until"]) == ("2026-01-31T12:00:00.001+00:00", "2026-01-31T12:00:02.001+00:00")
    assert one["read_at"] == {
        "s1.changelog.ldif": "2026-01-31T12:00:01.001+00:00",
        "s1.replica.ldif": "2026-01-31T12:00:00.001+00:00",
    }
    assert one["mended"] == ["the level is 16384 again"]
    assert {file: named.server for file, named in named_in(look_into(tmp_path / "now")).items()} == {
        "s1.changelog.ldif": "s1",
        "s1.replica.ldif": "s1",
    }


class Rotated(Acted):
    """Servers with many files."""

    def gather(self, name: str, folder: Path, prefix: str, wanted: Wanted) -> Gathered:
        files = [f"{prefix}.access.{number}.log" for number in range(600)]
        for file in files:
            (folder / file).write_text("")
        return Gathered(dict.fromkeys(files))


def test_a_case_yaml_can_be_read_again_however_many_files_there_are(tmp_path: Path) -> None:
    collect(Rotated({"s1": 2, "s2": 2}), "any", tmp_path / "now", Wanted())
    text = (tmp_path / "now" / "case.yaml").read_text()
    assert len(text) < LONGEST_YAML
    assert "read_at" not in text
    assert len(named_in(look_into(tmp_path / "now"))) == 1200


# dbscan

DUMP = (
    "\ndbid: 6b068b7b000100010000\n\tencrypted: no\n\treplgen: 1795591035 Wed Nov 25 07:17:15 2026\n"
    "\tcsn: 6b068b7b000100010000\n\tuniqueid: 1d595082-e8a011f1-9d079286-657bf548\n"
    "\tparentuniqueid: 1d595081-e8a011f1-9d079286-657bf548\n\tdn: uid=a,ou=people,dc=example,dc=com\n\toperation: add\n"
    f"\t\tobjectClass: top\n\t\tsn: a\n\t\tuserPassword: {HASH}\n\t\tcreatorsName: cn=Directory Manager\n"
    "\ndbid: 6b068b7b000400010000\n\tencrypted: no\n\treplgen: 1795591035 Wed Nov 25 07:17:15 2026\n"
    "\tcsn: 6b068b7b000400010000\n\tuniqueid: 1d595084-e8a011f1-9d079286-657bf548\n\tdn: uid=c,ou=people,dc=example,dc=com\n"
    f"\toperation: modify\n\t\tuserPassword: {HASH}\n\t\tdescription: it was {HASH}\n\t\tdescription: plain\n"
).encode()
"""What dbscan of 2.3.1 printed of two changes; with the hash that the tests look for, and a value that quotes it."""

KEYS = b"\t\tkrbPrincipalKey: 0\x82\x01canary-one\n\ncanary-two\n canary-three\n"
"""A secret with line ends in it, an empty line among them."""


def test_a_dump_comes_without_secrets_and_is_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    data = DUMP.replace(b"\t\tsn: a\n", b"\t\tsn: a\n" + KEYS) + KEYS
    assert leaks(data, [HASH, "canary"])
    clean = b"".join(scrubbed.dbscan(io.BytesIO(data)))
    assert not leaks(clean, [HASH, "canary"])
    assert clean.count(b"userPassword: " + REMOVED.encode()) == 2
    assert clean.count(b"krbPrincipalKey: " + REMOVED.encode()) == 2
    source = Source("s1.changelog.dbscan", "", "s1", None)
    before, after = (read_dbscan(Piece(source, one, 0, True)) for one in (DUMP, clean))
    assert (after.rejects, after.facts) == ([], before.facts)
    rows = [one.tables["changes"].to_pylist() for one in (before, after)]
    assert [row["position"] for row in rows[1]] == ["6b068b7b000100010000", "6b068b7b000400010000"]
    assert "description: plain" in rows[1][1]["body"]
    for size in range(1, len(data), 7):
        monkeypatch.setattr(scrubbed, "_CHUNK", size)
        assert b"".join(scrubbed.dbscan(io.BytesIO(data))) == clean, size


def program(folder: Path, lines: str) -> str:
    """A program that takes the place of dbscan."""
    file = folder / "dbscan"
    file.write_text(f"#!/bin/sh\n{lines}\n")
    file.chmod(0o755)
    return str(file)


def test_a_dump_beyond_its_bound_is_not_killed_and_runs_to_its_end(tmp_path: Path) -> None:
    # Killed, it would stay a reader of the database. What it cannot write any more does not end it.
    lines = f"trap '' TERM\ni=0\nwhile [ $i -lt 3000 ]; do echo xxxxxxxxxxxx 2>/dev/null; i=$((i+1)); done\n: > {tmp_path}/end"
    with (
        pytest.raises(Problem, match="larger than 1000 bytes"),
        dumping.dumped(program(tmp_path, lines), tmp_path, "it", 1000, 30) as tap,
    ):
        while tap.read():
            pass
    assert (tmp_path / "end").exists()


def test_a_dump_that_fails_and_a_program_that_is_not_there_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(Problem, match="dbscan ended with 3"),
        dumping.dumped(program(tmp_path, "echo; exit 3"), tmp_path, "it", None, 30) as tap,
    ):
        while tap.read():
            pass
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(Problem, match="there is no dbscan"):
        dumping.dbscan_program()
    (tmp_path / "opt" / "bin").mkdir(parents=True)
    program(tmp_path / "opt" / "bin", "")
    assert dumping.dbscan_program(tmp_path / "opt") == str(tmp_path / "opt" / "bin" / "dbscan")


# Instances under a prefix


def test_instances_are_found_under_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "opt" / "etc" / "dirsrv"
    there.mkdir(parents=True)
    configured(there, "first", DSE.replace("/var/lib", f"{tmp_path}/opt/var/lib"))
    with pytest.raises(Problem, match=r"looked for slapd-first/dse.ldif \(/etc/dirsrv\)"):
        server_at(Address(None, instance="first"))
    assert server_at(Address(None, instance="first", folder=there)).instance == instances.instance_named("first", there)
    monkeypatch.setenv("PREFIX", str(tmp_path / "opt"))
    found = server_at(Address(None, instance="first")).instance
    assert found
    assert (found.prefix, found.configuration) == (tmp_path / "opt", there / "slapd-first" / "dse.ldif")
    with pytest.raises(Problem, match=r"slapd-other/dse.ldif \(PREFIX is set\).*there are first"):
        server_at(Address(None, instance="other"))
    done = asked("--instance", "other", "--instances-folder", there, "--into", tmp_path / "now")
    assert (done.exit_code, f"({there})" in done.output, "PREFIX" in done.output) == (2, True, False), done.output
    by_url = server_at(Address(None, url="ldap://localhost:3890"))
    assert by_url.instance == found
    assert by_url.key == server_at(Address("x", instance="first")).key, "one server, however it is reached"


def test_an_instance_under_a_prefix_is_started_by_the_tool_of_its_installation(tmp_path: Path) -> None:
    there = tmp_path / "opt" / "etc" / "dirsrv"
    there.mkdir(parents=True)
    configured(there, "first", DSE)
    told = tmp_path / "told"
    tool = tmp_path / "opt" / "sbin" / "dsctl"

    class Servers:
        def instance(self, name: str) -> instances.Instance:
            return instances.instance_named("first", there)

        def answers(self, name: str) -> bool:
            return told.exists()

    assert Servers().instance("s1").tool("dsctl") == "dsctl", "that of the system"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$PREFIX $*" > {told}\n')
    tool.chmod(0o700)
    HANDS["start"].apply(Servers(), SimpleNamespace(server="s1"), {})  # type: ignore[arg-type]
    assert told.read_text() == f"{tmp_path / 'opt'} first start\n"


def test_state_is_private_and_below_the_home_without_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "replication-workbench"
    assert stat.S_IMODE(state_folder().stat().st_mode) == 0o700
    journal = FlightJournal()
    journal.note("level", "s1", before="1", during="2")
    (file,) = state_folder().iterdir()
    assert file.suffix == in_flight._ENDING
    assert [json.loads(line)["what"] for line in file.read_text().splitlines()] == ["begin", "level"]
    journal.close()


# The page


def test_the_page_names_every_step_every_thing_in_flight_and_every_setting_that_is_written() -> None:
    page = (ROOT / "docs" / "server-access.md").read_text(encoding="utf-8")
    kinds = {LEVEL, TASK, FILE, PIPE, collection._FOLDER}
    assert {name for name in [*HANDS, *kinds] if f"\n| `{name}` |" not in page} == set()
    live = ROOT / "workbench" / "systems" / "ds389" / "live"
    source = "".join(file.read_text(encoding="utf-8") for file in live.glob("*.py"))
    written = set(re.findall(r'"(nsTask\w+|nsds5Task|nsslapd-error\w+-\w+)"', source))
    assert len(written) == 4
    assert {word for word in written if word not in page} == set()
    assert {
        option for option in ("--keep-free", "--largest", "--patience", "--instances-folder") if option not in page
    } == set()


def test_the_logs_of_a_server_without_its_data_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen on 3.1.2: an import had failed, every search was answered with a referral, and the logs that tell why were left."""
    log = tmp_path / "errors"
    log.write_text("[29/Nov/2026:09:53:35.000000000 +0000] - ERR - import - Import failed.\n")
    servers = DirectoryServers([], Access())
    servers._servers["c"] = Reached("c", Place("ldap://c"), Instance("c", 389, None, None, None, None, log))
    servers._earlier = []

    def refused(*about: Any) -> None:
        raise Problem("the search below dc=example,dc=com was refused, referral (10)", "c")

    monkeypatch.setattr(servers, "_changelogs", refused)
    (tmp_path / "to").mkdir()
    gathered = servers.gather("c", tmp_path / "to", "c", Wanted())
    assert "Import failed" in (tmp_path / "to" / "c.errors.log").read_text()
    assert [text for text in gathered.failed if text.startswith("changelog: ") and "referral (10)" in text]
