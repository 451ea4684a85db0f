"""Trees of Comdb2 diagnosed: recorded snapshots against what is known of them, and made-up ones for each finding."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from comdb2_samples import SAMPLES, TIERS, sample
from tier_files import Made, written

from workbench.case.case import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.diagnosis.output_keys import undocumented
from workbench.model import Problem
from workbench.systems import system_named

TREES: dict[str, Any] = {path.stem: json.loads(path.read_bytes()) for path in sorted((SAMPLES / "expected").iterdir())}
"""Snapshot -> the numbers that were worked out of it by hand."""


def case_of(folder: Path, *snapshots: Path) -> Case:
    case = Case.create(folder / "case")
    case.load(list(snapshots))
    return case


def diagnosed(folder: Path, *snapshots: Path) -> dict[str, Any]:
    found = diagnose(case_of(folder, *snapshots))
    assert undocumented(found) == set()
    return found


def codes(found: dict[str, Any], severity: str = "") -> set[tuple[str, str | None]]:
    return {(one["code"], one["server"]) for one in found["findings"] if severity in ("", one["severity"])}


def node(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for tree in found["trees"] for one in tree["nodes"] if one["node"] == name)


R1, R2, R3, R4, R5, R6 = (
    f"shopdb_{base}@r{number}" for number, base in enumerate(("ro", "ro", "ro", "dr", "dr", "an"), 1)
)

KNOWN: dict[str, tuple[set[tuple[str, str]], set[tuple[str, str]], dict[str, str]]] = {
    "00_healthy": (set(), set(), {}),
    "01_stopped_and_hung": (
        {("LOG_GAP", R4), ("REPLICANT_HUNG", R2), ("REPLICANT_INACTIVE", R4)},
        {("LOG_GAP", R2), ("LOG_GAP", R6), ("REPLICANT_INACTIVE", R6)},
        {R2: "frozen", R4: "stopped", R5: "pending", R6: "pending"},
    ),
    "02_log_gap_no_candidates": (
        {("LOG_GAP", R2), ("LOG_GAP", R4), ("LOG_GAP", R6), ("REPLICANT_HUNG", R2), ("REPLICANT_INACTIVE", R4)}
        | {("REPLICANT_INACTIVE", R6), ("REINIT_REQUIRED", R2), ("REINIT_REQUIRED", R4), ("REINIT_REQUIRED", R6)},
        {("PENDING_CHANGES", R2), ("PENDING_CHANGES", R4), ("PENDING_CHANGES", R6)},
        {R2: "frozen", R4: "stopped", R6: "gapped"},
    ),
    "03_three_gapped": (
        {("LOG_GAP", R2), ("LOG_GAP", R4), ("LOG_GAP", R6), ("REPLICANT_HUNG", R4), ("REPLICANT_INACTIVE", R2)}
        | {("REPLICANT_INACTIVE", R6), ("REINIT_REQUIRED", R2), ("REINIT_REQUIRED", R4), ("REINIT_REQUIRED", R6)},
        {("PENDING_CHANGES", R2), ("PENDING_CHANGES", R4), ("PENDING_CHANGES", R6)},
        {R2: "gapped", R4: "hung", R6: "gapped"},
    ),
    "04_clean_exit_parent": (
        {("LOG_GAP", R2), ("LOG_GAP", R4), ("LOG_GAP", R6), ("REPLICANT_HUNG", R4), ("REPLICANT_INACTIVE", R2)}
        | {("REPLICANT_INACTIVE", R6), ("REINIT_REQUIRED", R2), ("REINIT_REQUIRED", R4), ("REINIT_REQUIRED", R6)}
        | {("REPLICANT_HUNG", R3)},
        {("PENDING_CHANGES", R2), ("PENDING_CHANGES", R4), ("PENDING_CHANGES", R6)},
        {R2: "gapped", R3: "ghost", R4: "hung", R6: "gapped"},
    ),
    "05_configured_delay": (set(), {("FANOUT_EXCEEDED", R1)}, {R2: "delayed_above", R6: "behind"}),
    "06_generation_change": (set(), set(), {R6: "behind"}),
}
"""Snapshot -> errors, warnings, and what the nodes do that are not well."""


@pytest.mark.parametrize("name", TREES)
def test_numbers_are_those_that_were_worked_out_by_hand(name: str, tmp_path: Path) -> None:
    (tree,) = diagnosed(tmp_path, TIERS / name)["trees"]
    expected = TREES[name]
    about = {key: tree[key] for key in expected if key != "nodes"}
    assert about == {key: value for key, value in expected.items() if key != "nodes"}
    nodes = {one["node"]: one for one in tree["nodes"]}
    assert set(nodes) == {one["node"] for one in expected["nodes"]}
    assert [{key: nodes[one["node"]][key] for key in one} for one in expected["nodes"]] == expected["nodes"]


@pytest.mark.parametrize("name", KNOWN)
def test_what_was_done_to_the_nodes_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, TIERS / name)
    errors, warnings, states = KNOWN[name]
    assert codes(found, "error") == errors
    assert codes(found, "warning") == warnings
    nodes = (one for tree in found["trees"] for one in tree["nodes"])
    assert {one["node"]: one["condition"] for one in nodes if one["condition"] != "healthy"} == states


def test_with_the_snapshot_before_it_is_told_when_a_file_will_be_gone(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, TIERS / "00_healthy", TIERS / "01_stopped_and_hung")
    (tree,) = found["trees"]
    # Files 2, 3 and 4 were deleted in the 115.8 s between: file 6 goes when two more are.
    assert tree["deleted_per_hour"] == pytest.approx(3 / 115.774 * 3600, abs=0.1)
    assert node(found, R6)["lost_in_s"] == pytest.approx(2 * 115.774 / 3, abs=0.1)
    assert node(found, R4)["lost_in_s"] is None
    assert any(one["server"] == R6 and "77 s" in one["summary"] for one in found["findings"])


def test_a_new_generation_is_told(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, TIERS / "05_configured_delay", TIERS / "06_generation_change")
    (one,) = [one for one in found["findings"] if one["code"] == "LOG_DIVERGED"]
    assert one["severity"] == "info"
    assert "generation 7 now, before it was 4" in one["summary"] and "cut the end of their logs off" in one["summary"]


def renamed(folder: Path, into: Path) -> Path:
    """The snapshot of a fleet with other names."""
    names = {b"shopdb": b"orders9", b"src": b"db-a", b"physmeta": b"registry7", b"\tr": b"\tnode-"}

    def other(data: bytes) -> bytes:
        for old, new in names.items():
            data = data.replace(old, new)
        return data

    for path in folder.rglob("*.tsv"):
        target = into / path.parent.relative_to(folder)
        target.mkdir(parents=True, exist_ok=True)
        (target / path.name.replace("src1_", "db-a1_").replace("src2_", "db-a2_")).write_bytes(other(path.read_bytes()))
    shutil.copy(folder / "meta" / "now.txt", into / "meta" / "now.txt")
    return into


@pytest.mark.parametrize("name", ["02_log_gap_no_candidates", "05_configured_delay"])
def test_other_names_give_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "as_it_is").mkdir()
    (tmp_path / "renamed").mkdir()
    mine = diagnosed(tmp_path / "as_it_is", TIERS / name)
    other = diagnosed(tmp_path / "renamed", renamed(TIERS / name, tmp_path / name))

    def told(found: dict[str, Any]) -> list[Any]:
        keys = ("tier", "children", "condition", "actual_lag_bytes", "gap", "state")
        return sorted(str([one[key] for key in keys]) for one in found["trees"][0]["nodes"])

    assert told(mine) == told(other)
    assert other["trees"][0]["source"] == "orders9"
    assert sorted(one["code"] for one in mine["findings"]) == sorted(one["code"] for one in other["findings"])


# --- logs


def dumps(folder: Path, **logs: Sequence[bytes]) -> Path:
    """A snapshot with nothing but logs: `shopdb__src1` is the node shopdb@src1."""
    folder.mkdir()
    for name, lines in logs.items():
        (folder / f"{name.replace('__', '.')}.digest.tsv").write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def lines_of(name: str) -> list[bytes]:
    return sample(name).splitlines()


def test_logs_alone_tell_how_far_a_node_is(tmp_path: Path) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb_an.r6.digest.tsv")
    found = diagnosed(tmp_path, dumps(tmp_path / "now", shopdb__src1=source, shopdb_an__r6=copy))
    (waits,) = found["pending"]
    assert (waits["server"], waits["count"], waits["last"]) == (R6, 1926, "{10:17560}")
    assert not found["missing"] and not codes(found, "error") and not codes(found, "warning")
    log = next(one for one in found["trees"][0]["logs"] if one["node"] == R6)
    assert (log["same"], log["differing"], log["behind"], log["ahead"]) == (1651, 0, 1926, 0)
    text = diagnosis_text(system_named("comdb2"), found)
    assert "1,926 have not arrived at shopdb_an@r6, if shopdb is the source: nothing tells who follows whom" in text
    assert not waits["suppliers"] and "on the way" not in text
    assert {row["decision"] for row in found["pairs"]} == {"unknown"}


def test_a_removed_record_is_proven_missing(tmp_path: Path) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb.src1.digest.tsv")
    gone = copy.pop(1000)
    found = diagnosed(tmp_path, dumps(tmp_path / "now", shopdb__src1=source, shopdb_ro__r1=copy))
    assert codes(found, "error") == {("LOG_GAP", R1), ("MISSED_CHANGE", R1)}
    (one,) = found["missing"]
    assert one["position"].encode() == gone.split(b"\t")[0] and one["held_by"] == ["shopdb@src1"]
    # Values that are written again get a place of their own: the pages behind the lost record stay wrong.
    (told,) = [one for one in found["findings"] if one["code"] == "MISSED_CHANGE"]
    collect, rebuild = told["fix"]
    assert rebuild["repair"].startswith(f"rebuild {R1} from a copy of shopdb@src1")
    assert collect["repair"].startswith("first collect the tables of the registry") and told["assumes"] == [
        "furthest_log_is_source"
    ]


def test_another_content_at_the_same_place_is_a_divergence(tmp_path: Path) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb.src1.digest.tsv")
    fields = copy[2000].split(b"\t")
    fields[5] = b"0" * 32
    copy[2000] = b"\t".join(fields)
    found = diagnosed(tmp_path, dumps(tmp_path / "now", shopdb__src1=source, shopdb_ro__r1=copy))
    (one,) = [one for one in found["findings"] if one["severity"] == "error"]
    assert (one["code"], one["server"], one["items"]) == ("LOG_DIVERGED", R1, [fields[0].decode()])


def test_a_source_that_was_cut_off_is_behind_its_copies(tmp_path: Path) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb.src1.digest.tsv")
    folder = dumps(tmp_path / "now", shopdb__src1=source[:3000], shopdb_ro__r1=copy)
    (folder / "comdb2_physrep_connections.tsv").write_text("shopdb_ro\tr1\tshopdb\tsrc1\n")
    found = diagnosed(tmp_path, folder)
    (one,) = [one for one in found["findings"] if one["code"] == "LOG_DIVERGED"]
    assert one["severity"] == "warning" and "577 records behind the end of shopdb@src1" in one["summary"]


def test_spark_says_the_same_of_the_logs(tmp_path: Path, spark: Any) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb_an.r6.digest.tsv")
    case = case_of(tmp_path, dumps(tmp_path / "now", shopdb__src1=source, shopdb_an__r6=copy[:500] + copy[501:]))
    mine, sparks = diagnose(case), diagnose(case, spark=spark)
    assert {**mine, "run": None} == {**sparks, "run": None}
    assert sparks["run"]["evidence"] == "positions"


def test_the_story_of_a_record(tmp_path: Path) -> None:
    source, copy = lines_of("shopdb.src1.digest.tsv"), lines_of("shopdb_an.r6.digest.tsv")
    case = case_of(tmp_path, dumps(tmp_path / "now", shopdb__src1=source, shopdb_an__r6=copy))
    told = {one["server"]: one for one in story(case, "{10:17560}")["servers"]}
    assert (told["shopdb@src1"]["verdict"], told[R6]["verdict"]) == ("present", "pending")
    assert told["shopdb@src1"]["evidence"][0]["kind"] == 2011
    assert [one["outcome"] for one in told[R6]["suppliers"]] == ["sent"]
    assert story(case, "shopdb{9:640045}", R6)["servers"][0]["verdict"] == "present"
    assert story(case, "{9:640046}", R6)["servers"][0]["verdict"] == "unknown"
    for wrong in ("{11:28}", "elsewhere{9:640045}", "no position"):
        with pytest.raises(Problem):
            story(case, wrong)


# --- made-up trees


SOURCE = Made("S@s1")


def test_a_circle_is_told_once_and_read_to_its_end(tmp_path: Path) -> None:
    circle = [Made("A@a1", source="C@c1"), Made("B@b1", source="A@a1"), Made("C@c1", source="B@b1")]
    found = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, Made("D@d1", source="S@s1"), *circle]))
    (one,) = [one for one in found["findings"] if one["code"] == "TOPOLOGY_CYCLE"]
    assert "A@a1, B@b1, C@c1" in one["summary"]
    assert {node(found, made.name)["condition"] for made in circle} == {"cycle"}


def test_a_node_below_a_node_without_a_row_is_an_orphan(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path,
        written(
            tmp_path / "now",
            [SOURCE, Made("A@a1", source="S@s1"), Made("B@b1", source="X@gone"), Made("C@c1", source="B@b1")],
        ),
    )
    assert {("TOPOLOGY_ORPHAN", "B@b1"), ("TOPOLOGY_ORPHAN", "C@c1")} <= codes(found, "error")


def test_versions_that_hold_logs_tell_who_pins_them(tmp_path: Path) -> None:
    laggard = Made("B@b1", at=(4, 500), first=3, source="A@a1", age=900, answers=False)
    nodes = [Made("S@s1", first=4), Made("A@a1", source="S@s1", first=4), laggard]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, physrep_check_minlog_freq_sec="600"))
    (one,) = [one for one in found["findings"] if one["code"] == "LOG_HELD"]
    assert (one["severity"], one["server"], one["items"]) == ("error", "B@b1", ["{4:500}"])
    assert found["trees"][0]["retention"]["file"] == 4 and node(found, "B@b1")["holds_log"]


@pytest.mark.parametrize(
    "more", [{}, {"physrep_check_minlog_freq_sec": "600", "physrep_metadb_name": "registry"}], ids=["2026", "elsewhere"]
)
def test_nothing_is_held_where_the_version_does_not_look(more: dict[str, str], tmp_path: Path) -> None:
    nodes = [Made("S@s1", first=4), Made("A@a1", at=(4, 500), source="S@s1", first=3)]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, **more))
    assert found["trees"][0]["retention"]["file"] is None
    assert not [one for one in found["findings"] if one["code"] == "LOG_HELD"]


def test_the_version_of_the_document_refuses_from_its_limit_on(tmp_path: Path) -> None:
    waiting = [Made(f"W{number}@w", state="Pending") for number in range(11)]
    nodes = [SOURCE, Made("A@a1", source="S@s1"), *waiting]
    old = {
        "physrep_register_interval": "600",
        "physrep_max_pending_replicants": "10",
        "physrep_keepalive_freq_sec": "10",
    }
    folder = written(tmp_path / "now", nodes, **old)
    text = (folder / "nodes" / "tunables.tsv").read_text()
    kept = [line for line in text.splitlines() if "physrep_reconnect_interval" not in line]
    (folder / "nodes" / "tunables.tsv").write_text("\n".join(kept) + "\n")
    found = diagnosed(tmp_path, folder)
    assert found["trees"][0]["rules"] == "2023"
    assert "PENDING_LIMIT" in {code for code, _ in codes(found, "error")}


def test_a_node_that_waits_for_a_connection_nobody_makes(tmp_path: Path) -> None:
    nodes = [SOURCE, Made("A@a1", source="S@s1"), Made("B@b1", state="Pending", at=(9, 500))]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, ["B@b1 S@s1", "A@a1 S@s1", "Z@z S@s1"]))
    assert {("REVERSE_LINK_MISSING", "B@b1"), ("REVERSE_LINK_MISSING", None)} == {
        one for one in codes(found) if one[0] == "REVERSE_LINK_MISSING"
    }


def test_what_the_configuration_file_tells(tmp_path: Path) -> None:
    delayed = Made("A@a1", at=(9, 500), source="S@s1", lrl="replicate_from S @s1,s2\nreplicate_wait 45\nnonames\n")
    delayed.tunables = {"physrep_source_dbname": "S", "physrep_source_host": "@s1"}
    found = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, Made("S@s2"), delayed]))
    one = node(found, "A@a1")
    assert (one["condition"], one["delay_s"]) == ("delayed", 45.0)
    said = [
        one["summary"] for one in found["findings"] if one["code"] == "UNSAFE_SETTING" and one["severity"] == "warning"
    ]
    assert any("elect_highest_committed_gen" in text for text in said)
    assert any("the program cuts the list" in text for text in said)


def test_a_source_that_was_cut_off_is_seen_by_positions(tmp_path: Path) -> None:
    found = diagnosed(
        tmp_path, written(tmp_path / "now", [SOURCE, Made("A@a1", at=(9, 2000), source="S@s1", asked_before=9)])
    )
    assert ("LOG_DIVERGED", "A@a1") in codes(found, "warning")


def test_of_nodes_that_were_asked_at_one_time_one_may_be_further(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, Made("A@a1", at=(9, 2000), source="S@s1")]))
    assert not codes(found, "warning") and node(found, "A@a1")["condition"] == "healthy"


@pytest.mark.parametrize(
    ("commit", "generation", "asked_before", "severity"),
    [
        ((9, 1000), 3, -9, "error"),  # the same place, and another generation
        ((9, 1200), 3, -9, "error"),  # generations never fall along a log
        ((9, 1200), 3, 0, "warning"),
        ((9, 900), 3, -9, None),  # it is late
        ((9, 1200), 4, -9, None),  # it was asked later, and is further
    ],
)
def test_two_commits_of_which_only_one_can_be(
    commit: tuple[int, int], generation: int, asked_before: int, severity: str | None, tmp_path: Path
) -> None:
    copy = Made("A@a1", at=commit, generation=generation, source="S@s1", asked_before=asked_before)
    told = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, copy]))["findings"]
    found = [one for one in told if "two histories" in one["summary"]]
    assert [(one["code"], one["severity"], one["server"]) for one in found] == (
        [("LOG_DIVERGED", severity, "A@a1")] if severity else []
    )


def test_one_host_that_was_set_aside_does_not_change_the_source(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), Made("S@s2", state="Inactive", age=9e5, answers=None), Made("A@a1", source="S@s1")]
    found = diagnosed(tmp_path, written(tmp_path / "now", [*nodes, Made("A@a2", source="A@a1")]))
    assert [tree["source"] for tree in found["trees"]] == ["S"]
    assert not codes(found, "error")


def test_nobody_is_told_to_reset_or_rebuild_a_node_of_the_source(tmp_path: Path) -> None:
    nodes = [Made("S@s1", age=900, answers=False), Made("S@s2"), Made("A@a1", source="S@s2")]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes))
    (one,) = [one for one in found["findings"] if one["server"] == "S@s1" and one["severity"] == "error"]
    assert "reset_nodes" not in str(one["fix"]) and "rebuild" not in str(one["fix"])


def test_a_node_that_was_taken_out_is_no_trouble(tmp_path: Path) -> None:
    old = Made("A@old", at=(3, 500), first=2, age=3e6, state="Inactive", answers=None)
    found = diagnosed(tmp_path, written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1"), old]))
    assert node(found, "A@old")["condition"] == "retired"
    assert not codes(found, "error") and not codes(found, "warning")


def test_a_hole_in_the_log_of_the_source_is_no_divergence_of_its_copies(tmp_path: Path) -> None:
    lines = lines_of("shopdb.src1.digest.tsv")
    folder = dumps(tmp_path / "now", shopdb__src1=lines[:50] + lines[51:], shopdb_ro__r1=lines)
    (folder / "comdb2_physrep_connections.tsv").write_text("shopdb_ro\tr1\tshopdb\tsrc1\n")
    found = diagnosed(tmp_path, folder)
    assert codes(found, "error") == {("LOG_GAP", "shopdb@src1")}


def test_between_two_collected_files_nothing_is_missing(tmp_path: Path) -> None:
    lines = lines_of("shopdb.src1.digest.tsv")
    folder = dumps(tmp_path / "now", shopdb__src1=lines, shopdb_ro__r1=lines[:1000])
    (folder / "shopdb_ro.r1.tail.tsv").write_bytes(b"".join(line + b"\n" for line in lines[2000:]))
    found = diagnosed(tmp_path, folder)
    assert not found["missing"] and not codes(found, "error")
    assert ("LOG_GAP", R1) in codes(found, "warning")


def test_without_first_files_nobody_says_that_a_file_is_gone(tmp_path: Path) -> None:
    nodes = [Made("S@s1", answers=None), Made("A@a1", at=(9, 700), source="S@s1", answers=None)]
    folder = written(tmp_path / "now", nodes)
    table = folder / "meta" / "comdb2_physreps.tsv"
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    table.write_text("".join("\t".join([*row[:4], *row[5:]]) + "\n" for row in rows))
    (folder / "nodes" / "logfiles.tsv").unlink()
    found = diagnosed(tmp_path, folder)
    assert not codes(found, "warning") and found["pending"][0]["suppliers"] == ["S@s1"]


def test_tables_without_a_clock_are_of_their_own_time(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1", asked_before=-240)])
    (folder / "meta" / "now.txt").unlink()
    found = diagnosed(tmp_path, folder)
    assert not codes(found, "error")


def test_a_node_whose_source_lost_its_file_is_told_of(tmp_path: Path) -> None:
    nodes = [Made("S@s1", at=(20, 100), first=3), Made("A@a1", at=(20, 100), first=15, source="S@s1")]
    stuck = Made("B@b1", at=(8, 500), first=6, source="A@a1")
    found = diagnosed(tmp_path, written(tmp_path / "now", [*nodes, stuck]))
    assert ("LOG_GAP", "B@b1") in codes(found, "warning")


def test_a_row_for_a_tier_names_no_node(tmp_path: Path) -> None:
    nodes = [SOURCE, Made("A@a1", source="S@s1")]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, ["A@east S@cluster"]))
    assert {one["node"] for one in found["trees"][0]["nodes"]} == {"S@s1", "A@a1"}
    assert not codes(found, "warning")


def test_without_the_table_of_connections_nobody_is_called_an_orphan(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1"), Made("A@a2", at=(9, 500), source="S@s1")])
    (folder / "meta" / "comdb2_physrep_connections.tsv").unlink()
    tunables = folder / "nodes" / "tunables.tsv"
    tunables.write_text(tunables.read_text() + "A\ta1\tphysrep_source_dbname\tS\nA\ta2\tphysrep_source_dbname\tS\n")
    found = diagnosed(tmp_path, folder)
    assert not codes(found, "error") and not codes(found, "warning")
    assert [node(found, name)["condition"] for name in ("A@a1", "A@a2")] == ["healthy", "behind"]


def test_a_circle_without_a_told_source_is_found(tmp_path: Path) -> None:
    nodes = [SOURCE, Made("A@a1", source="A@a2"), Made("A@a2", source="A@a1"), Made("A@a3", source="A@a2")]
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes))
    assert found["trees"][0]["source"] == "S"
    assert "TOPOLOGY_CYCLE" in {code for code, _ in codes(found, "error")}


def test_without_a_registry_or_with_empty_files_nothing_is_made_up(tmp_path: Path) -> None:
    folder = written(tmp_path / "now", [SOURCE, Made("A@a1", source="S@s1", at=(9, 10))])
    for name in ("comdb2_physreps", "comdb2_physrep_connections", "comdb2_physrep_sources"):
        (folder / "meta" / f"{name}.tsv").write_text("")
    found = diagnosed(tmp_path, folder)
    assert {one["condition"] for one in found["trees"][0]["nodes"]} <= {"healthy", "behind", "untold", "orphan"}


def test_a_large_fleet_is_diagnosed_in_seconds(tmp_path: Path) -> None:
    nodes = [SOURCE]
    for number in range(1500):
        above = nodes[(number - 2) // 8 + 1] if number > 7 else SOURCE
        nodes.append(Made(f"R@r{number:04d}", source=above.name, at=(9, 1000 - number % 3)))
    found = diagnosed(tmp_path, written(tmp_path / "now", nodes, physrep_fanout="8"))
    assert len(found["trees"][0]["nodes"]) == 1501
    assert found["run"]["seconds"] < 60


AHEAD = Made("shopdb@s1", at=(9, 500_000))


def test_hosts_of_several_parts_have_files_of_their_own(tmp_path: Path) -> None:
    """A file is named after database and host: where the host ends, the rows of the registry tell."""
    hosts = [f"shopdb_ro@r1.{site}.example" for site in ("north", "south")]
    line = "replicate_from shopdb @s1\nreplicate_wait {}\n"
    made = [Made(name, source=AHEAD.name, lrl=line.format(60 * at)) for at, name in enumerate(hosts, 1)]
    found = diagnosed(tmp_path, written(tmp_path / "dots", [AHEAD, *made]))
    assert [one["node"] for one in found["trees"][0]["nodes"]] == ["shopdb@s1", *hosts]
    assert [node(found, name)["delay_s"] for name in hosts] == [60, 120]


def test_a_host_may_begin_like_another_one(tmp_path: Path) -> None:
    """shopdb_ro.r1.dc2.lrl is of r1.dc2, although there is an r1, too."""
    hosts = ["shopdb_ro@r1", "shopdb_ro@r1.dc2", "shopdb_ro@r1.dc2.north"]
    line = "replicate_from shopdb @s1\nreplicate_wait {}\n"
    made = [Made(name, source=AHEAD.name, lrl=line.format(60 * at)) for at, name in enumerate(hosts, 1)]
    found = diagnosed(tmp_path, written(tmp_path / "dots", [AHEAD, *made]))
    assert [node(found, name)["delay_s"] for name in hosts] == [60, 120, 180]


@pytest.mark.parametrize("with_row", [0, 1])
def test_rows_that_the_registry_lacks_are_told(with_row: int, tmp_path: Path) -> None:
    sources = [Made(f"shopdb@s{at}", state="Active" if at <= with_row else None) for at in (1, 2)]
    below = [Made("ro@r1", source="shopdb@s2"), Made("ro@r2", source="ro@r1", state=None)]
    found = diagnosed(tmp_path, written(tmp_path / "made", [*sources, *below]))
    told = {
        (row["node"], one["severity"])
        for one in found["findings"]
        if one["code"] == "TOPOLOGY_ORPHAN"
        for row in one["evidence"]
    }
    # One of the source without a row is told of although nobody pulls from it: that is why nobody does.
    sources = {("shopdb@s2", "warning")} if with_row else {("shopdb@s1", "error"), ("shopdb@s2", "error")}
    assert told == {*sources, ("ro@r2", "warning")}


def test_who_sends_what_is_behind(tmp_path: Path) -> None:
    """A cluster brings its own nodes up to date; one that is gone sends nothing, and nobody says that it deleted a file."""
    sources = [Made("shopdb@s1", at=(9, 900)), Made("shopdb@s2")]
    gone = Made("ro@r1", source="shopdb@s2", answers=False, age=9000)
    made = [gone, Made("ro@r2", at=(9, 900), source="ro@r1"), Made("ro@r3", at=(9, 900), source="shopdb@s2")]
    found = diagnosed(tmp_path, written(tmp_path / "made", [*sources, *made]))
    suppliers = {row["server"]: row["suppliers"] for row in found["pending"]}
    assert suppliers == {"shopdb@s1": ["shopdb@s2"], "ro@r2": [], "ro@r3": ["shopdb@s2"]}
    assert not [one for one in found["findings"] if one["code"] == "LOG_GAP"]


def test_states_that_the_program_never_writes_are_told(tmp_path: Path) -> None:
    made = [Made("ro@r1", source=AHEAD.name, state="active"), Made("ro@r2", source=AHEAD.name, state="InActive")]
    found = diagnosed(tmp_path, written(tmp_path / "made", [AHEAD, *made]))
    told = [one for one in found["findings"] if "is spelled" in one["summary"]]
    assert [[row["node"] for row in one["evidence"]] for one in told] == [["ro@r1"]]
    assert node(found, "ro@r1")["condition"] == "behind"


@pytest.mark.parametrize(
    ("at", "condition"),
    [
        ((9, 49_900), "delayed_above"),
        ((9, 50_000), "delayed_above"),
        ((8, 1_048_000), "delayed_above"),
        ((8, 100), "behind"),
    ],
)
def test_below_a_delayed_node_it_is_the_delay_that_counts(at: tuple[int, int], condition: str, tmp_path: Path) -> None:
    """Nodes were asked moments apart: a copy of a copy is hardly ever at the very same place."""
    waits = Made("ro@r1", at=(9, 50_000), source=AHEAD.name, lrl="replicate_from shopdb @s1\nreplicate_wait 60\n")
    found = diagnosed(tmp_path, written(tmp_path / "made", [AHEAD, waits, Made("ro@r2", at=at, source="ro@r1")]))
    assert [node(found, name)["condition"] for name in ("ro@r1", "ro@r2")] == ["delayed", condition]


def test_a_node_that_is_told_to_follow_a_copy_is_told_of(tmp_path: Path) -> None:
    follows = {"physrep_source_dbname": "ro", "physrep_source_host": "r1"}
    made = [Made("ro@r1", source=AHEAD.name), Made("an@r2", source="ro@r1", tunables=follows)]
    found = diagnosed(tmp_path, written(tmp_path / "made", [AHEAD, *made]))
    assert [one["source"] for one in found["trees"]] == ["shopdb"]
    assert [one["server"] for one in found["findings"] if "itself a copy of shopdb" in one["summary"]] == ["an@r2"]


def test_the_end_of_a_dump_of_the_master_is_no_loss(tmp_path: Path) -> None:
    """The cluster names its master, so that its changes are its own: a physical log goes on while it is read."""
    folder = tmp_path / "now"
    shutil.copytree(TIERS / "06_generation_change", folder)
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "shopdb.src1.digest.tsv").write_bytes(sample("shopdb.src1.digest.tsv"))
    found = diagnosed(tmp_path, folder)
    assert not codes(found, "error") and next(one for one in found["trees"][0]["logs"] if one["node"] == "shopdb@src1")


@pytest.mark.parametrize(("age", "gap"), [(500, "now"), (5, None)])
def test_a_file_that_only_a_silent_node_of_the_source_has(age: int, gap: str | None, tmp_path: Path) -> None:
    """One that still reports itself may serve it; one that is gone does not, until it is started: that is first."""
    silent = Made("shopdb@s2", at=(9, 900), first=4, answers=False, age=age)
    stopped = Made("ro@r1", at=(4, 500), first=4, source="shopdb@s2", age=300)
    found = diagnosed(tmp_path, written(tmp_path / "made", [Made("shopdb@s1"), silent, stopped]))
    assert node(found, "ro@r1")["gap"] == gap
    assert ("REINIT_REQUIRED", "ro@r1") not in codes(found, "error")
    lacks = [one for one in found["findings"] if (one["code"], one["severity"]) == ("LOG_GAP", "error")]
    first = [one["fix"][0]["repair"] for one in lacks]
    assert len(first) == (gap == "now") and all(one.startswith("first start shopdb@s2") for one in first)


def test_a_report_that_is_older_than_the_next_one_should_be_shows_nothing(tmp_path: Path) -> None:
    for age, says in ((8, "is not older than the limit"), (39, "r1: it did not answer when it was asked; it reported")):
        silent = Made("ro@r1", source="shopdb@s1", answers=False, age=age)
        silent.tunables = {"physrep_keepalive_freq_sec": "10"}
        found = diagnosed(tmp_path / str(age), written(tmp_path / f"made{age}", [Made("shopdb@s1"), silent]))
        (hung,) = [one for one in found["findings"] if one["code"] == "REPLICANT_HUNG"]
        assert says in hung["summary"] and "still reports itself" not in str(hung)


def test_generations_are_held_against_those_of_the_same_tree(tmp_path: Path) -> None:
    def made(at: int) -> list[Made]:
        return [
            Made("east@e1", generation=at),
            Made("a@1", source="east@e1", generation=at),
            Made("west@w1", generation=20),
        ]

    before, after = (
        written(tmp_path / f"{at}", [*made(at), Made("b@1", source="west@w1", generation=20)]) for at in (4, 7)
    )
    told = [one for one in diagnosed(tmp_path, before, after)["findings"] if one["code"] == "LOG_DIVERGED"]
    assert [one["origin"] for one in told] == ["east"] and "before it was 4" in told[0]["summary"]
