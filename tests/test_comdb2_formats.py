"""Tables, logs and settings of Comdb2: real files, each shape of cdb2sql, hostile texts, secrets, cuts, rooms of a snapshot."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from comdb2_samples import BOXES, CLASSIC, SAMPLES, SHAPES, SNAPSHOTS, TABS, TIERS, When, printed, read, rows_in
from hostile import MARKUP
from hypothesis import given
from hypothesis import strategies as st

from workbench import Case
from workbench.intake.files import inspect, server_of
from workbench.model import REMOVED, Problem
from workbench.systems import system_named
from workbench.systems.comdb2.formats.values import moment_of

NODES = ("dbname", "host", "file", "offset", "firstfile", "last_keepalive", "state")
PULLS = ("dbname", "host", "source_dbname", "source_host")
AT = When("2026-11-20T144841.923 UTC")

FORMATS = {
    "meta/comdb2_physreps.*": "comdb2.physreps",
    "meta/comdb2_physrep_connections.*": "comdb2.connections",
    "meta/comdb2_physrep_sources.tsv": "comdb2.sources",
    "meta/now.txt": "comdb2.positions",
    "nodes/positions.tsv": "comdb2.positions",
    "nodes/logfiles.tsv": "comdb2.logfiles",
    "nodes/tunables.tsv": "comdb2.tunables",
    "nodes/metrics.tsv": "comdb2.metrics",
    "nodes/*_comdb2_cluster.tsv": "comdb2.positions",
    "nodes/*_comdb2_repl_stats.tsv": "comdb2.positions",
    "logs/*.log": "comdb2.program-log",
    "captured_at.txt": "text",
}


def lines_of(path: Path) -> int:
    return sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_each_file_of_a_snapshot_is_known_and_whole(snapshot: str) -> None:
    files = {path: kind for pattern, kind in FORMATS.items() for path in (TIERS / snapshot).glob(pattern)}
    assert set(files) == {path for path in (TIERS / snapshot).rglob("*") if path.is_file()}
    for seen, (path, kind) in zip(inspect(files), files.items(), strict=True):
        assert (seen["format"], seen["rows"], seen["rejected"]) == (kind, lines_of(path), 0), path
        if kind not in ("text", "comdb2.program-log"):
            assert len(seen["detail"]["rows"]) == seen["rows"]


def test_a_row_is_shown_as_it_is_written() -> None:
    (nodes, files, silent) = inspect(
        [
            TIERS / "00_healthy" / "meta" / "comdb2_physreps.tsv",
            TIERS / "00_healthy" / "nodes" / "logfiles.tsv",
            TIERS / "01_stopped_and_hung" / "nodes" / "positions.tsv",
        ]
    )
    assert nodes["detail"]["rows"][0] == {
        "dbname": "shopdb",
        "host": "src1",
        "file": 4,
        "offset": 647677,
        "firstfile": 2,
        "last_keepalive": "2026-11-20T144842.037 UTC",
        "state": "Active",
    }
    assert files["detail"]["rows"][0] == {
        "dbname": "shopdb",
        "host": "src1",
        "name": "log.0000000002",
        "bytes": 1048550,
        "modified": 1795185985,
    }
    assert {"dbname": "shopdb_ro", "host": "r2", "first_lsn": "UNREACHABLE"}.items() <= silent["detail"]["rows"][
        3
    ].items()


def test_the_tables_say_what_is_written() -> None:
    kinds = {
        "nodes": ("comdb2.physreps", "meta/comdb2_physreps.tsv"),
        "pulls": ("comdb2.connections", "meta/comdb2_physrep_connections.tsv"),
        "probes": ("comdb2.positions", "nodes/positions.tsv"),
        "log_files": ("comdb2.logfiles", "nodes/logfiles.tsv"),
        "settings": ("comdb2.tunables", "nodes/tunables.tsv"),
        "clocks": ("comdb2.positions:clock", "meta/now.txt"),
    }
    of = {
        table: rows_in(read(kind, (TIERS / "01_stopped_and_hung" / name).read_bytes(), "registry"), table)
        for table, (kind, name) in kinds.items()
    }
    r4 = next(row for row in of["nodes"] if row["server"] == "shopdb_dr@r4")
    assert (r4["position"], r4["first_file"], r4["state"]) == ("0000000004:0000647677:", 2, "Active")
    assert r4["reported_at"] == datetime(2026, 11, 20, 14, 49, 13, 972000, UTC)
    assert [(row["server"], row["source"], row["awaited"]) for row in of["pulls"]] == [
        ("shopdb_dr@r4", "shopdb_ro@r1", False),
        ("shopdb_ro@r1", "shopdb@src1", False),
        ("shopdb_ro@r2", "shopdb@src1", False),
        ("shopdb_ro@r3", "shopdb_ro@r1", False),
    ]
    r2, r3 = (next(row for row in of["probes"] if row["server"] == f"shopdb_ro@{host}") for host in ("r2", "r3"))
    assert (r2["answered"], r2["first"], r2["last"]) == (False, None, None)
    assert r3["answered"] and r3["first"] == "0000000007:0000000028:" and r3["cuts"] == 3
    assert r3["committed_at"] == datetime(2026, 11, 20, 14, 50, 46, tzinfo=UTC)
    assert {row["number"] for row in of["log_files"] if row["server"] == "shopdb@src1"} == {5, 6, 7, 8, 9}
    source = {row["server"]: row["value"] for row in of["settings"] if row["name"] == "physrep_source_host"}
    assert source["shopdb_ro@r1"] == "@src1" and source["shopdb@src1"] is None
    assert [row["at"].isoformat() for row in of["clocks"]] == [
        "2026-11-20T14:50:46.087000+00:00",
        "2026-11-20T14:51:20.187000+00:00",
    ]


@pytest.mark.parametrize("name", ["comdb2_physreps", "comdb2_physrep_connections"])
@pytest.mark.parametrize("snapshot", ["00_healthy", "01_stopped_and_hung"])
def test_two_shapes_of_one_answer_say_the_same(snapshot: str, name: str) -> None:
    one, other = inspect(TIERS / snapshot / "meta" / f"{name}.{ending}" for ending in ("tsv", "txt"))
    assert one["format"] == other["format"] and one["detail"] == other["detail"]


def test_a_member_of_a_cluster_without_a_database_is_some_database_of_its_host() -> None:
    data = (TIERS / "00_healthy" / "nodes" / "src_comdb2_cluster.tsv").read_bytes()
    (unnamed, named) = (
        rows_in(read("comdb2.positions:cluster", data, server), "probes") for server in ("registry", "shopdb@src1")
    )
    assert [row["server"] for row in unnamed] == ["@src2", "@src1"]
    assert [(row["server"], row["leads"]) for row in named] == [("shopdb@src2", True), ("shopdb@src1", False)]
    data = (TIERS / "06_generation_change" / "nodes" / "src1_comdb2_repl_stats.tsv").read_bytes()
    (row,) = rows_in(read("comdb2.positions:repl_stats", data, "registry"), "probes")
    assert row["server"] == "@src2" and re.fullmatch("00000000(09|10):[0-9]{10}:", row["last"])


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("comdb2_physreps.tsv", b"", "comdb2.physreps"),
        ("comdb2_physrep_sources.tsv", b"", "comdb2.sources"),
        ("src1_comdb2_repl_stats.tsv", b"\n", "comdb2.positions"),
        ("positions.tsv", b"", "text"),
        ("sources.tsv", b"shopdb\tsrc1\tshopdb_ro\tr1\n", "comdb2.sources"),
        ("anything", b"shopdb\tsrc1\tshopdb_ro\tr1\n", "comdb2.connections"),
        ("anything", b"shopdb\tsrc1\tphysrep_fanout\t2\n", "comdb2.tunables"),
        ("anything", b"shopdb\tsrc1\trep_deadlocks\t2\n", "comdb2.metrics"),
        ("anything", b"physrep_fanout\t2\nblocking_physrep\tON\n", "comdb2.tunables"),
        ("anything", b"one word\tor two\tin a\ttable\n", "text"),
        ("anything", b"2026-11-20T14:48:50.267Z\n", "text"),
        ("anything", b'"2026-11-20T144850.267 UTC"\n', "comdb2.positions"),
    ],
)
def test_what_a_file_is_taken_for(name: str, data: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert inspect([tmp_path / name])[0]["format"] == kind


@pytest.mark.parametrize("name", ["tunables_2026.tsv", "tunables_2023_seed_version.tsv"])
def test_all_tunables_of_one_node(name: str) -> None:
    (seen,) = inspect([SAMPLES / name])
    assert seen["format"] == "comdb2.tunables" and seen["rejected"] == 0
    rows = {row["name"]: row for row in seen["detail"]["rows"]}
    assert rows["physrep_fanout"]["value"] == "2" and rows["physrep_metadb_host"]["value"] is None
    made = rows_in(read("comdb2.tunables", (SAMPLES / name).read_bytes()), "settings")
    assert len(made) == seen["rows"] and "server" not in made[0]


# --- the shapes of cdb2sql

texts = st.one_of(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=12
    ),
    st.sampled_from(
        ["x', host='y", "x', state='Active')", "')", "a\tb", "it''s", "'", "|", "CSTRING x", "+--+", "[a] rc 0"]
    ),
    st.sampled_from([text for text in MARKUP if "\n" not in text]),
).filter(lambda text: text.strip() and text != "NULL" and not text.startswith("NULL "))
numbers = st.one_of(st.none(), st.integers(0, 1 << 32))


@given(st.lists(st.tuples(texts, texts, numbers, numbers, numbers, st.just(AT), texts), min_size=1, max_size=5))
def test_a_text_is_read_as_it_is_or_refused_in_each_shape(rows: list[tuple[Any, ...]]) -> None:
    for shape, typed in SHAPES:
        data = printed(NODES, rows, shape, typed)
        (parsed,) = read("comdb2.physreps", data)
        good = rows_in([parsed], "nodes")
        assert parsed.rows == len(good) + len(parsed.rejects)
        truth = [(f"{row[0]}@{row[1]}", row[4], row[6]) for row in rows]
        told = [(row["server"], row["first_file"], row["state"]) for row in good]
        if shape == BOXES:
            possible = [row[2] is None or row[3] is None or max(row[2], row[3]) < 1 << 32 for row in rows]
            assert told == [row for row, can in zip(truth, possible, strict=True) if can]
        else:
            assert not Counter(told) - Counter(truth)


@given(st.lists(st.tuples(*[st.from_regex(r"[a-z][\w.-]{0,9}", fullmatch=True)] * 4), min_size=1, max_size=5))
def test_ordinary_names_are_read_in_each_shape(rows: list[tuple[str, ...]]) -> None:
    for shape, typed in SHAPES:
        parsed = read("comdb2.connections", printed(PULLS, rows, shape, typed))
        assert [(row["server"], row["source"]) for row in rows_in(parsed, "pulls")] == [
            (f"{a}@{b}", f"{c}@{d}") for a, b, c, d in rows
        ]


def test_a_text_cannot_pass_for_columns() -> None:
    six = [*NODES[:4], *NODES[5:]]
    honest = ["shopdb", "src1", 4, 28, AT, "Active"]
    for shape, host in ((TABS, "src1\t9"), (CLASSIC, "x', file=9, y='"), (CLASSIC, "x', y='")):
        (parsed,) = read("comdb2.physreps", printed(six, [honest, ["shopdb", host, 4, 28, AT, "Active"]], shape))
        assert len(rows_in([parsed], "nodes")) == len(parsed.rejects) == 1


def test_what_cdb2sql_says_beside_the_rows_is_no_row() -> None:
    rows = printed(PULLS, [["shopdb_ro", "r1", "shopdb", "src1"]], TABS)
    (parsed,) = read("comdb2.connections", rows + b"[select * from comdb2_physrep_connections] rc 0\n\n")
    assert (parsed.rows, parsed.rejects) == (1, [])
    (parsed,) = read("comdb2.connections", b"[select * from x] failed with rc -3 no such table\n")
    assert (parsed.rows, len(parsed.rejects)) == (1, 1) and "failed" in parsed.rejects[0].reason


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ('"2026-11-20T094841.923 America/New_York"', "2026-11-20T14:48:41.923000+00:00"),
        ('"2026-11-20T144841.923 UTC"', "2026-11-20T14:48:41.923000+00:00"),
        ('"2026-07-01T144841.000001 Europe/Berlin"', "2026-07-01T12:48:41.000001+00:00"),
        ("2026-11-20T14:48:50.267Z", "2026-11-20T14:48:50.267000+00:00"),
    ],
)
def test_times_in_any_zone(text: str, utc: str) -> None:
    assert moment_of(text).isoformat() == utc


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        '"2026-13-20T144841.923 UTC"',
        '"2026-11-20T144841 Nowhere/City"',
        '"2026-11-20T144841 ../../x"',
        '"2026-11-20T144841.9 UTC',
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        moment_of(text)


# --- damage

SMALL = {
    "comdb2.physreps": "01_stopped_and_hung/meta/comdb2_physreps.txt",
    "comdb2.connections": "01_stopped_and_hung/meta/comdb2_physrep_connections.tsv",
    "comdb2.positions": "01_stopped_and_hung/nodes/positions.tsv",
    "comdb2.logfiles": "06_generation_change/nodes/logfiles.tsv",
    "comdb2.metrics": "04_clean_exit_parent/nodes/metrics.tsv",
    "comdb2.program-log": "01_stopped_and_hung/logs/shopdb_dr.r5.log",
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_file_that_is_cut_anywhere_loses_its_last_row_at_most(kind: str) -> None:
    data = (TIERS / SMALL[kind]).read_bytes()
    whole = read(kind, data)[0]
    for end in range(0, len(data), 7):
        (parsed,) = read(kind, data[:end]) or [whole]
        before = data[:end].count(b"\n")
        accepted = parsed.rows - len(parsed.rejects)
        assert parsed.rows in (before, before + 1) and accepted >= before and len(parsed.rejects) <= 1
        assert all(reject.offset == data[:end].rfind(b"\n") + 1 for reject in parsed.rejects)


@given(st.sampled_from(sorted(SMALL)), st.data())
def test_damage_costs_the_rows_that_it_hits(kind: str, data: st.DataObject) -> None:
    good = (TIERS / SMALL[kind]).read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + data.draw(st.binary(max_size=6)) + good[at + data.draw(st.integers(0, 6)) :]
    (parsed,) = read(kind, bad)
    lines = [line for line in bad.split(b"\n") if line.strip()]
    assert len(parsed.rejects) <= parsed.rows <= len(lines)
    untouched = set(good.split(b"\n")) & set(lines)
    assert parsed.rows - len(parsed.rejects) >= len(untouched) - 1


@pytest.mark.parametrize("kind", SMALL)
def test_a_hole_of_zeros_costs_what_stood_there(kind: str, tmp_path: Path) -> None:
    lines = (TIERS / SMALL[kind]).read_bytes().split(b"\n")
    lines[1] = b"\0" * len(lines[1])
    (tmp_path / Path(SMALL[kind]).name).write_bytes(b"\n".join(lines))
    (seen,) = inspect([tmp_path / Path(SMALL[kind]).name])
    assert (seen["format"], seen["rows"]) == (kind, len(lines) - 1)
    assert seen["rejected"] == (kind != "comdb2.program-log")


# --- secrets

SECRET = "hunter2-0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shopdb.src1.tunables.tsv", "physrep_fanout\t2\nphysrep_metadb_password\t{}\nblocking_physrep\tON\n"),
        ("tunables.tsv", "shopdb\tsrc1\tphysrep_fanout\t2\nshopdb\tsrc1\tphysrep_auth\ttoken={}\n"),
        ("shopdb.src1.lrl", "replicate_from shopdb @src1\nphysrep_token {}\nsetattr password={}\n"),
        ("shopdb.src1.lrl", "replicate_from shopdb @src1\n!!! password {}\n"),
        ("comdb2_physreps.tsv", 'shopdb\tsrc1\t4\t28\t"2026-11-20T144841.923 UTC"\tActive\nshopdb\tpassword={}\tx\n'),
        (
            "shopdb.src1.log",
            "2026/11/20 14:52:18 physrep: x\n2026/11/20 14:52:18 [ERROR] physrep: password={} refused\n",
        ),
        ("shopdb.src1.log", "2026/11/20 14:52:18 physrep: x\n2026/11/20 14:52:18 [ERROR] insert into t values('{}')\n"),
        ("shopdb.src1.log", "2026/11/20 14:52:18 physrep: x\nphysrep_register_replicant: sql = select '{}' from t\n"),
    ],
)
def test_no_secret_is_kept(name: str, text: str, tmp_path: Path) -> None:
    folder = tmp_path / "now"
    folder.mkdir()
    (folder / name).write_text(text.replace("{}", SECRET), encoding="utf-8")
    (seen,) = inspect([folder / name])
    assert seen["format"].startswith("comdb2.") and SECRET not in json.dumps(seen)
    case = Case.create(tmp_path / "case")
    case.load([folder])
    for table in ("settings", "messages", "rejects", "nodes"):
        assert SECRET not in str(case.arrow(table).to_pylist())


# --- configuration and logs

LRL = """# of a replicant
name shopdb_ro
replicate_from shopdb @src1,src2   # hosts, not a tier
replicate_wait 45
physrep_metadb physmeta @meta1
physrep_ignore audit,tmp
nonames
elect_highest_committed_gen
setattr LOGFILESIZE 1048576
"""


def test_the_lines_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "shopdb_ro.r1.lrl").write_text(LRL, encoding="utf-8")
    (seen,) = inspect([tmp_path / "shopdb_ro.r1.lrl"])
    assert (seen["format"], seen["rows"], seen["rejected"]) == ("comdb2.lrl", 9, 0)
    rows = {row["name"]: row["value"] for row in seen["detail"]["rows"]}
    assert rows == {
        "name": "shopdb_ro",
        "replicate_from": "shopdb @src1,src2",
        "replicate_wait": "45",
        "physrep_metadb": "physmeta @meta1",
        "physrep_ignore": "audit,tmp",
        "nonames": None,
        "elect_highest_committed_gen": None,
        "setattr": "LOGFILESIZE 1048576",
    }
    assert {row["kind"] for row in rows_in(read("comdb2.lrl", LRL.encode()), "settings")} == {"line"}


def messages(snapshot: str, name: str) -> list[dict[str, Any]]:
    return rows_in(read("comdb2.program-log", (TIERS / snapshot / "logs" / name).read_bytes()), "messages")


def test_what_the_lines_of_the_logs_say() -> None:
    inactive = [row for row in messages("02_log_gap_no_candidates", "shopdb_an.r6.log") if row["code"] == "inactive"]
    assert inactive[0]["position"] == "0000000006:0000484268:"
    assert dict(inactive[0]["numbers"]) == {"seconds": "186", "source_lsn": "{9:279383}", "ahead": "false"}
    stopped = [row["code"] for row in messages("01_stopped_and_hung", "shopdb_dr.r4.log")]
    assert {"worker_stopped", "watcher_stopped", "truncated", "replicating"} <= set(stopped)
    hung = [row for row in messages("01_stopped_and_hung", "shopdb.src2.log") if row["code"] == "hung_children"]
    assert {dict(row["numbers"])["count"] for row in hung} == {"1"}
    registered = [
        row for row in messages("02_log_gap_no_candidates", "physmeta.meta1.log") if row["code"] == "registered"
    ]
    assert all(row["at"] is None for row in registered)
    told = dict(registered[0]["numbers"])
    assert told == {"node": "shopdb_an@r6", "source_database": "shopdb", "sources": "src1"}


def test_each_line_of_the_logs_that_speaks_of_replication_has_a_code() -> None:
    silent = re.compile(
        r"set stopsc for log-truncate|proceeding with log-truncate|truncating __db.rep.db|^\s*$", re.MULTILINE
    )
    for path in TIERS.glob("*/logs/*.log"):
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if not silent.search(line)]
        rows = messages(path.parent.parent.name, path.name)
        assert len(rows) == len(lines) and all(row["code"] for row in rows)


def test_a_false_alarm_is_seen_in_the_line_itself() -> None:
    line = (
        b"2026/11/20 14:52:25 physrep: Physical replicant has been inactive for last 186 seconds "
        b"(my lsn: (10:28) source lsn: (9:279383))\n"
    )
    (row,) = rows_in(read("comdb2.program-log", line), "messages")
    assert dict(row["numbers"])["ahead"] == "true"


def test_a_damaged_year_is_written_so_that_it_can_be_read(tmp_path: Path) -> None:
    log = tmp_path / "now" / "shopdb.src1.log"
    log.parent.mkdir()
    log.write_bytes(b"0026/11/20 14:46:39 physrep: Physical replicant has been inactive for last 186 seconds\n")
    case = Case.create(tmp_path / "case")
    case.load([log.parent])
    assert [one.kind for one in case.inputs] == ["comdb2.program-log"]


# --- names and rooms


@pytest.mark.parametrize(
    ("name", "kind", "server"),
    [
        ("shopdb.src1.digest.tsv", "comdb2.transaction-logs", "shopdb@src1"),
        ("shopdb.src1.digest.tsv.gz", "comdb2.transaction-logs", "shopdb@src1"),
        ("shopdb_ro.r1.log", "comdb2.program-log", "shopdb_ro@r1"),
        ("tunables.tsv", "comdb2.tunables", "registry"),
        ("comdb2_physreps.tsv", "comdb2.physreps", "registry"),
        ("shopdb.src1.comdb2_cluster.tsv", "comdb2.positions", "shopdb@src1"),
        ("src1_comdb2_repl_stats.tsv", "comdb2.positions", "registry"),
        ("dump.tsv", "comdb2.transaction-logs", "dump"),
    ],
)
def test_whose_a_file_is(name: str, kind: str, server: str) -> None:
    assert server_of(Path("box") / name, system_named("comdb2"), kind) == server


def counted(case: Case) -> dict[str, int]:
    return {name: len(case.arrow(name)) for name in ("nodes", "pulls", "probes", "log_files", "settings", "messages")}


def test_the_rooms_of_a_snapshot_are_read_with_it(tmp_path: Path) -> None:
    folder = TIERS / "01_stopped_and_hung"
    whole, apart = Case.create(tmp_path / "whole"), Case.create(tmp_path / "apart")
    loaded = whole.load([folder])
    apart.load([folder / "meta", folder / "nodes", folder / "logs"])
    assert counted(whole) == counted(apart) and min(counted(whole).values()) > 0
    assert list(whole.snapshots) == ["01_stopped_and_hung"] and not loaded.passed_over
    assert "meta/comdb2_physreps.tsv" in {one.file for one in whole.inputs}
    assert whole.load([folder]).added == []


def test_a_room_without_a_file_of_its_system_stays_unread(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("nothing of use\n", encoding="utf-8")
    with pytest.raises(Problem, match="holds no files"):
        Case.create(tmp_path / "case").load([tmp_path])


def test_a_case_yaml_names_the_files_of_rooms(tmp_path: Path) -> None:
    shutil.copytree(TIERS / "00_healthy", tmp_path / "now")
    data = b"replicate_from shopdb @src1\n"
    (tmp_path / "now" / "nodes" / "r1.lrl").write_bytes(data)
    about = "servers:\n  - name: shopdb_ro@r1\n    files: [nodes/r1.lrl]\n"
    (tmp_path / "now" / "case.yaml").write_text(about, encoding="utf-8")
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "now"])
    assert {one.server for one in case.inputs if one.file == "nodes/r1.lrl"} == {"shopdb_ro@r1"}


def test_a_removed_value_is_shown_as_removed() -> None:
    (row,) = rows_in(read("comdb2.lrl", b"physrep_secret x\n"), "settings")
    assert row["value"] == REMOVED
