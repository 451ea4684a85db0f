"""`workbench collect` of Comdb2: a program that answers as cdb2sql does, from recorded snapshots."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from comdb2_samples import TIERS
from live_mesh import asked

from workbench.case.case import Case
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.intake.collection import Access, Address, Wanted
from workbench.model import Problem
from workbench.safety import strict_yaml
from workbench.systems.comdb2.live.asking import Place, place_named, place_of
from workbench.systems.comdb2.live.servers import reach
from workbench.systems.comdb2.sql import is_plain

ANSWERS = """
import json, pathlib, sys, time
about = json.loads(pathlib.Path(__file__).with_name("about.json").read_text())
host, database, sql = sys.argv[2], sys.argv[3], sys.argv[-1]
assert sys.argv[1:-1] == ["--host", host, database, "--set", "timezone UTC", "--tabs"], sys.argv
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    calls.write(json.dumps([host, sql]) + "\\n")
for word, does in about["does"].get(host, {}).items():
    if word in sql:
        if does == "hang":
            time.sleep(60)
        if does == "lacks":
            sys.exit("[%s] failed with rc -3 no such table: %s" % (sql, sql.split()[3]))
        if does == "fail":
            sys.exit("[%s] failed with rc -5 Cannot connect to db, password=canary" % sql)
        print(does, end="")
        sys.exit(0)
folder = pathlib.Path(about["snapshot"])
def rows(name):
    path = folder / name
    return [line.split("\\t") for line in path.read_text().splitlines()] if path.exists() else []
def tell(*some):
    for row in some:
        print("\\t".join(row))
def of(name):
    return [row[2:] for row in rows(name) if row[:2] == [database, host]]
if sql == "select now()":
    clock = rows("meta/now.txt")
    tell(clock[pathlib.Path(__file__).with_name("calls").read_text().count("select now()") > 1])
elif "comdb2_physrep" in sql:
    table = sql.split()[3]
    if host != "meta1":
        sys.exit("[%s] failed with rc -3 no such table: %s" % (sql, table))
    tell(*rows("meta/%s.tsv" % table))
elif "physrep_source_dbname" in sql:
    tell(*[row[1:] for row in of("nodes/tunables.tsv") if row[0] == "physrep_source_dbname"])
elif "comdb2_tunables" in sql:
    tell(*of("nodes/tunables.tsv"), ["physrep_metadb_password", "canary"])
elif "comdb2_metrics" in sql:
    tell(*of("nodes/metrics.tsv"))
elif "comdb2_cluster" in sql:
    tell(*rows("nodes/src_comdb2_cluster.tsv"))
elif "comdb2_repl_stats" in sql:
    tell(*rows("nodes/%s_comdb2_repl_stats.tsv" % host))
else:
    [place] = [row[3:] for row in rows("nodes/positions.tsv") if row[1:3] == [database, host]]
    first, last, generation, at, *commit, cuts = place
    if "md5(payload)" in sql:
        tell(*([place, "2011", "4", at, "60", "0" * 32, "0", "0", cuts, "NULL", "NULL"] for place in (first, last)))
    elif "timestamp <" in sql:
        tell([commit[0]])
    elif "rectype" in sql:
        tell(commit)
    else:
        tell([last, generation, at, cuts] if ", 4)" in sql else [first])
"""
REGISTRY = ("--url", "comdb2://meta1/physmeta")
LOG = "comdb2_transaction_logs"


class Fleet:
    """A snapshot behind a program that is called cdb2sql. What hosts do instead of answering: word of a statement -> what."""

    def __init__(self, folder: Path, snapshot: Path, **does: dict[str, str]) -> None:
        self._bin = folder / "bin"
        self._bin.mkdir()
        program = self._bin / "cdb2sql"
        program.write_text(f"#!{sys.executable} -IS\n{ANSWERS}")
        program.chmod(0o755)
        self._snapshot = str(snapshot.resolve())
        self.tell(**does)
        (self._bin / "calls").touch()
        self.into = folder / "now"

    def tell(self, **does: dict[str, str]) -> None:
        about = {"snapshot": self._snapshot, "does": does}
        (self._bin / "about.json").write_text(json.dumps(about))

    def path(self) -> str:
        return f"{self._bin}{os.pathsep}{os.environ['PATH']}"

    def collect(self, *words: object) -> Result:
        return asked(*words, "--into", self.into, "--timeout", "4", PATH=self.path())

    @property
    def calls(self) -> list[tuple[str, str]]:
        lines = (self._bin / "calls").read_text().splitlines()
        return [(host, sql) for host, sql in map(json.loads, lines)]

    def rows(self, name: str) -> list[list[str]]:
        return [line.split("\t") for line in (self.into / name).read_text().splitlines()]


def trees_of(folder: Path, snapshot: Path) -> Any:
    case = Case.create(folder)
    case.load([snapshot])
    found = diagnose(case)
    return found["trees"], [(one["code"], one["severity"], one["server"], one["summary"]) for one in found["findings"]]


def as_collected(snapshot: Path, fleet: Fleet, folder: Path) -> Path:
    """The recorded snapshot with what `collect` can have of it: no list of log files, no logs, and its own times of asking."""
    shutil.copytree(snapshot, folder, ignore=shutil.ignore_patterns("logfiles.tsv", "logs", "*.txt"))
    shutil.copy(snapshot / "meta" / "now.txt", folder / "meta")
    times = {tuple(row[1:3]): row[0] for row in fleet.rows("nodes/positions.tsv")}
    rows = [line.split("\t") for line in (folder / "nodes" / "positions.tsv").read_text().splitlines()]
    told = ["\t".join([times[row[1], row[2]], *row[1:]]) + "\n" for row in rows]
    (folder / "nodes" / "positions.tsv").write_text("".join(told))
    for name in ("src_comdb2_cluster", "src1_comdb2_repl_stats", "src2_comdb2_repl_stats"):
        host = "src1" if name.startswith("src_") else name[:4]
        (folder / "nodes" / f"{name}.tsv").rename(folder / "nodes" / f"shopdb.{host}.{name.partition('_')[2]}.tsv")
    return folder


@pytest.mark.parametrize("name", ["01_stopped_and_hung", "05_configured_delay"])
def test_a_collected_folder_gives_the_trees_of_the_recorded_one(tmp_path: Path, name: str) -> None:
    silent = {
        row.split("\t")[2]: {"": "hang"}
        for row in (TIERS / name / "nodes" / "positions.tsv").read_text().splitlines()
        if "UNREACHABLE" in row
    }
    fleet = Fleet(tmp_path, TIERS / name, **silent)
    done = fleet.collect(*REGISTRY)
    assert done.exit_code == (3 if silent else 0), done.output
    for table in ("comdb2_physreps", "comdb2_physrep_connections", "comdb2_physrep_sources"):
        assert (fleet.into / f"meta/{table}.tsv").read_bytes() == (TIERS / name / f"meta/{table}.tsv").read_bytes()
    recorded = as_collected(TIERS / name, fleet, tmp_path / "recorded" / "now")
    found, known = trees_of(tmp_path / "a", fleet.into), trees_of(tmp_path / "b", recorded)
    assert found == known
    assert [len(tree["nodes"]) for tree in found[0]] == [8]
    assert bool(silent) == (("REPLICANT_HUNG", "error", "shopdb_ro@r2") in {one[:3] for one in found[1]})
    assert not any(b"canary" in file.read_bytes() for file in fleet.into.rglob("*") if file.is_file())


def test_consumers_are_asked_first_and_the_registry_before_and_after(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy")
    done = fleet.collect(*REGISTRY, "--json", "-")
    assert done.exit_code == 0, done.output
    servers = json.loads(done.stdout)["servers"]
    assert [one["name"] for one in servers if one["role"] != "replicant"] == ["shopdb@src1", "shopdb@src2", "registry"]
    order = list(dict.fromkeys(host for host, sql in fleet.calls if LOG in sql))
    assert [set(order[:4]), set(order[4:6]), set(order[6:])] == [
        {"r3", "r4", "r5", "r6"},
        {"r1", "r2"},
        {"src1", "src2"},
    ]
    assert (fleet.calls[0], fleet.calls[-1]) == (("meta1", "select now()"), ("meta1", "select now()"))
    assert not any("topology" in sql for _, sql in fleet.calls)
    about = strict_yaml((fleet.into / "case.yaml").read_text(), "case.yaml")
    assert about["system"] == "comdb2"


def test_nodes_that_do_not_answer_or_answer_nonsense_do_not_end_the_collection(tmp_path: Path) -> None:
    of_a_node = {LOG: "fail", "physrep_source_dbname": "shopdb\n"}
    fleet = Fleet(tmp_path, TIERS / "00_healthy", r4={LOG: "hang"}, r5={"": "fail"}, r6={LOG: "a\tb\n"}, r3=of_a_node)
    began = time.monotonic()
    done = fleet.collect(*REGISTRY)
    assert time.monotonic() - began < 45
    assert done.exit_code == 3, done.output
    rows = {row[2]: row[3] for row in fleet.rows("nodes/positions.tsv")}
    assert rows.keys() == {"src1", "src2", "r1", "r2", "r5"}, "r3, r4 and r6 are there, and tell no place"
    assert rows["r5"] == "UNREACHABLE"
    assert "canary" not in done.output + (fleet.into / "shopdb_dr-r5.DOWN").read_text()
    assert "no places in a log (shopdb_an@r6)" in done.output
    assert "shopdb_dr@r4 failed: position: no answer within the time-out" in done.output


def test_a_node_that_hangs_after_its_first_answer_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy")
    monkeypatch.setenv("PATH", fleet.path())
    nodes = reach([Address(None, url="comdb2://meta1/physmeta")], Access(timeout=4))
    assert "shopdb_ro@r1" in nodes.names
    assert nodes.survey("shopdb_ro@r1").role == "replicant"
    fleet.tell(r1={"": "fail"})
    (tmp_path / "folder").mkdir()
    gathered = nodes.gather("shopdb_ro@r1", tmp_path / "folder", "r1", Wanted(records=True))
    assert len(gathered.failed) == 2, "no more is asked of it"
    assert (tmp_path / "folder" / "nodes" / "positions.tsv").read_text().split("\t")[1:] == [
        "shopdb_ro",
        "r1",
        "UNREACHABLE\n",
    ]


def test_records_are_dumped_with_time_enough_and_a_dump_that_ends_early_is_told(tmp_path: Path) -> None:
    cut = "{1:28}\t2011\t4\t1\t60\t" + "0" * 32 + "\t0\t0\t1\tNULL\tNULL\n"
    fleet = Fleet(tmp_path, TIERS / "00_healthy", r4={"md5(": cut}, r5={"md5(": "fail"})
    done = fleet.collect(*REGISTRY, "--records", "--since", "24h", "--patience", 100)
    assert done.exit_code == 3, done.output
    assert "shopdb_dr@r4 failed: records: the dump ends before the log does" in done.output
    assert "shopdb_dr@r5 failed: records: Cannot connect" in done.output
    assert not (fleet.into / "shopdb_dr.r5.digest.tsv").exists()
    dumps = [sql for _, sql in fleet.calls if "md5(" in sql]
    assert len(dumps) == 8
    assert all(sql.endswith("comdb2_transaction_logs('{4:28}', NULL, 0, 160)") for sql in dumps)
    case = Case.create(tmp_path / "case")
    case.load([fleet.into])
    read = {one.server: one.rows for one in case.inputs if one.format == "comdb2.transaction-logs"}
    assert read["shopdb@src1"] == 2
    assert len(read) == 7


def test_a_registry_without_first_files_and_names_that_are_not_plain(tmp_path: Path) -> None:
    rows = 'shopdb\tsrc1\t4\t647677\t"2026-11-20T144841.923 UTC"\tActive\nshopdb\t-x\t4\t5\tNULL\tPending\n'
    fleet = Fleet(
        tmp_path, TIERS / "00_healthy", meta1={"from comdb2_physreps": rows, "_connections": "", "_sources": ""}
    )
    done = fleet.collect(*REGISTRY)
    assert done.exit_code == 3, done.output
    assert "registry failed: shopdb@-x: not a plain name, not asked" in done.output
    assert (fleet.into / "meta/comdb2_physreps.tsv").read_text() == rows
    assert {host for host, _ in fleet.calls} == {"meta1", "src1"}


def test_nodes_may_be_named_one_by_one_without_a_registry(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy", r3={"": "fail"})
    done = fleet.collect(
        "--url", "comdb2://r1/shopdb_ro", "--url", "comdb2://src1/shopdb", "--url", "comdb2://r3/shopdb_ro"
    )
    assert done.exit_code == 3, done.output
    assert [row[2] for row in fleet.rows("nodes/positions.tsv")] == ["r1", "src1"], "what is silent may be the registry"
    assert (fleet.into / "shopdb_ro-r3.DOWN").exists()
    assert "without registry: no such table: comdb2_physreps" in done.output


def test_a_registry_that_answers_nonsense_is_no_collection(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy", meta1={"from comdb2_physreps": "no\trow\n"})
    done = fleet.collect(*REGISTRY)
    assert done.exit_code == 2
    assert "no rows of comdb2_physreps" in done.output
    assert not fleet.into.exists()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("exit 3", "cdb2sql ended with 3 (physmeta@meta1). run cdb2sql by hand there, and see what it says"),
        ("echo password=canary >&2; exit 1", "run cdb2sql by hand there"),
        ("echo", "no time of the database (physmeta@meta1). ask it with cdb2sql --tabs"),
        ("echo cannot connect >&2", "no time of the database"),
        ("head -c 900 /dev/zero", "physmeta@meta1"),
    ],
)
def test_a_program_that_answers_nothing_is_no_registry(tmp_path: Path, program: str, says: str) -> None:
    """An empty registry and no answer look alike but for the time."""
    fleet = Fleet(tmp_path, TIERS / "00_healthy")
    (tmp_path / "bin/cdb2sql").write_text(f"#!/bin/sh\n{program}\n")
    done = fleet.collect(*REGISTRY)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split()) and "canary" not in done.output
    assert not fleet.into.exists()


def test_the_help_names_the_address_of_a_database() -> None:
    assert "comdb2://HOST/DATABASE" in "".join(CliRunner().invoke(main, ["collect", "--help"]).output.split())


@pytest.mark.parametrize(
    "name", ["_x@a", "a-b@c.d", "a@_x", "a.b@c", "a@b:5", "a@-x", "-a@x", "a@", "@a", "a'@b", "é@b"]
)
def test_who_is_asked_and_who_stands_in_a_repair_is_one_rule(name: str) -> None:
    database, _, host = name.partition("@")
    assert (place_named(database, host) is not None) == is_plain(name)
    assert is_plain(name) == (name in ("_x@a", "a-b@c.d"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--url", "comdb2://meta1"], "write comdb2://HOST/DATABASE"),
        (["--url", "comdb2://-H/db"], "not the URL of a database"),
        (["--url", "a=comdb2://meta1/db"], "nodes cannot be named otherwise"),
        (["--url", "comdb2://meta1/db", "--suffix", "dc=x"], "has no suffixes"),
        (["--url", "comdb2://meta1/db", "--no-tls"], "leave out the user, --ca and --tls"),
        (
            ["--url", "comdb2://meta1/db", "--url", "ldap://ldap1"],
            "these are servers of Comdb2 and 389 Directory Server",
        ),
    ],
)
def test_wrong_arguments_are_told_before_any_node_is_asked(tmp_path: Path, words: list[str], says: str) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy")
    done = fleet.collect(*words)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert fleet.calls == []


def test_without_the_program_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = asked(*REGISTRY, "--into", tmp_path / "now", PATH=str(tmp_path / "empty"))
    assert done.exit_code == 2
    assert "install the client tools of Comdb2" in " ".join(done.output.split())


def test_only_plain_names_are_places() -> None:
    assert place_of("comdb2://src1.example.com/shop_db") == Place("shop_db", "src1.example.com")
    assert place_named("shopdb", "src1") == Place("shopdb", "src1")
    for database, host in ("-x", "a"), ("a", "-x"), ("a'b", "c"), ("a", "b c"), ("", "a"), ("a", ""), ("a", "b\n"):
        assert place_named(database, host) is None
        with pytest.raises(Problem, match="not the URL"):
            place_of(f"comdb2://{host}/{database}")


def test_a_registry_without_the_table_of_reverse_connections_is_collected(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, TIERS / "00_healthy", meta1={"_sources": "lacks"})
    done = fleet.collect(*REGISTRY)
    assert done.exit_code == 0, done.output
    assert "no such table: comdb2_physrep_sources" in done.output
    assert (fleet.into / "meta/comdb2_physreps.tsv").exists() and not (
        fleet.into / "meta/comdb2_physrep_sources.tsv"
    ).exists()
