"""The case: loading, loading again, loading more; whole or not at all; and the same tables however the work is spread."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from case_samples import SNAPSHOTS, about, everything, rows
from spark_application import Application
from strategies import CANARY

from workbench import Case, Problem
from workbench.case.case import LAYOUT
from workbench.engine import evidence, partition_writer
from workbench.engine.change_fingerprints import likeness
from workbench.intake.files import inspect_file
from workbench.journal import owned
from workbench.systems.ds389.csn import order_key
from workbench.systems.ds389.rules.proving import PROVING
from workbench.tables import COLUMNS, SCHEMAS, SOURCE


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


def test_the_numbers_of_alike_changes_are_those_of_the_part_they_belong_to(case: Case) -> None:
    held = {part["name"]: part for part in case.parts("changes")}
    for part in case.parts("alike"):
        changes = pq.read_table(held.pop(part["of"])["path"]).filter(pc.field("kind") == "change").combine_chunks()
        texts = (changes[name].combine_chunks().cast(pa.string()) for name in ("entry", "body"))
        numbers = likeness(*texts, PROVING)
        assert sorted(numbers.tolist()) == pq.read_table(part["path"])["number"].to_pylist()
    assert all(pc.all(pc.equal(pq.read_table(part["path"])["kind"], "anchor")).as_py() for part in held.values())


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


@pytest.mark.parametrize(("range_size", "per_part", "tasks"), [(20_000, 10, 7), (100_000, 50, 2), (1 << 20, 1000, 64)])
def test_any_split_gives_the_same_tables(
    range_size: int, per_part: int, tasks: int, spark, tmp_path: Path, monkeypatch
) -> None:
    plain = tmp_path / "2-during"
    plain.mkdir()
    for path in SNAPSHOTS[1].iterdir():
        data = path.read_bytes()
        (plain / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
    monkeypatch.setattr(partition_writer, "RANGE", range_size)
    monkeypatch.setattr(evidence, "_FEWEST_TASKS", tasks)
    monkeypatch.setattr(partition_writer, "ROWS_PER_PART", per_part)
    split = Case.create(tmp_path / "split")
    split.load([plain], spark)
    monkeypatch.undo()
    whole = Case.create(tmp_path / "whole")
    whole.load([plain], spark)
    for name in SCHEMAS:
        assert rows(split, name) == rows(whole, name), name
    assert len(split.parts("changes")) > len(whole.parts("changes")) or range_size == 1 << 20


@pytest.mark.cluster
def test_a_cluster_and_spark_connect_give_the_same_tables(there: Application, case: Case, tmp_path: Path) -> None:
    there.ask("load", str(tmp_path / "case"), list(map(str, SNAPSHOTS)))
    loaded = Case.open(tmp_path / "case")
    for name in SCHEMAS:
        assert rows(loaded, name) == rows(case, name), name


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
    source = partition_writer.Source(path.name, "1-before", "s1")
    share = partition_writer.Share(0, str(path), source, "ds389.changelog-ldif")
    first, second = (list(partition_writer.read_shares([share], tmp_path)) for _ in range(2))
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


def test_a_folder_with_other_files_does_not_become_a_case(tmp_path: Path) -> None:
    (tmp_path / "important").write_text("x")
    with pytest.raises(Problem, match="has other files in it"):
        Case.create(tmp_path)
    with pytest.raises(Problem, match="not a case"):
        Case.open(tmp_path)
    (tmp_path / "case.yaml").write_text("layout: 99\n")
    with pytest.raises(Problem, match="layout 99"):
        Case.open(tmp_path)


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
    from workbench.intake.inputs import identify

    (folder / "s1.changelog.ldif").write_text(
        "changetype: delete\ncsn: 6b005c13000000010000\nnsuniqueid: 1\ndn: cn=x\n\n"
    )
    one = identify("now", folder / "s1.changelog.ldif")
    case.inputs = [type(one)(**{**vars(one), "file": f"s{n}.changelog.ldif", "server": f"s{n}"}) for n in range(5000)]
    case._publish()
    assert len(Case.open(tmp_path / "case").inputs) == 5000


@pytest.mark.parametrize("first", [True, False])
def test_tasks_that_outlive_a_failed_load_change_nothing(first: bool, spark, tmp_path: Path, monkeypatch) -> None:
    case = Case.create(tmp_path / "new" / "case")
    if not first:
        case.load(SNAPSHOTS[:1], spark)
    before = everything(tmp_path / "new")
    alive = tmp_path / "alive"

    def one_fails_the_others_go_on(shares, staging):
        source = partition_writer.Source("f", "s", "s1")
        if any("s1.changelog" in share.path for share in shares):
            while not alive.exists():
                time.sleep(0.05)
            raise OSError(28, "No space left on device")
        for _ in range(1000):  # longer than Spark lets it live
            with alive.open("a") as file:
                file.write("x")
            partition_writer.write_part(staging, "rejects", [{"offset": 0, "reason": "late"}], source)
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
    for layout, do in (
        (LAYOUT + 1, "use the version of the workbench that made it"),
        (0, "load the inputs into a new case"),
    ):
        manifest.write_text(json.dumps(stored | {"layout": layout, "inputs": "in a shape of its own"}))
        with pytest.raises(Problem, match=rf"layout {layout} is not {LAYOUT}.*manifest.json.*{do}"):
            Case.open(case.folder)
    (tmp_path / "case" / "case.yaml").write_text(f"layout: '{LAYOUT + 1}'\n")
    with pytest.raises(Problem, match=rf"layout {LAYOUT + 1} is not {LAYOUT}.*case.yaml.*use the version"):
        Case.open(case.folder)


def test_a_case_without_its_evidence_does_not_pass_for_an_empty_one(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS[:1])
    shutil.rmtree(case.evidence)
    with pytest.raises(Problem, match="the evidence of this case is gone"):
        Case.open(case.folder)
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    (prepared / "case.yaml").write_text(f"layout: '{LAYOUT}'\nname: INC-4711\n")
    with pytest.raises(Problem, match="does not exist"):
        Case.create(prepared).load([tmp_path / "gone"])
    assert {path.name for path in prepared.iterdir()} == {"case.yaml", ".owner"}
    Case.create(prepared).load(SNAPSHOTS[:1])
    assert about(Case.open(prepared))["name"] == "INC-4711"
