"""Source clusters whose nodes hold different logs, and generations that fall along what should be one log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import FORKED, SOURCE, WHOLE, Files, answered, beside, dumps, log, tree
from test_comdb2_diagnosis import diagnosed
from tier_files import Made

from workbench import Case
from workbench.repair.planner import plan
from workbench.replication.tier.sections import tiers_text

FORK = beside("S@s2", FORKED, dumps(WHOLE, WHOLE))


def found_in(folder: Path, *writes: Files) -> dict[str, Any]:
    snapshots = []
    for at, write in enumerate(writes, 1):
        (made := folder / f"s{at}").mkdir()
        write(made)
        snapshots.append(made)
    return diagnosed(folder, *snapshots)


def diverged(found: dict[str, Any]) -> dict[str, str]:
    return {
        one["server"]: one["summary"] for one in found["findings"] if one["code"] == "LOG_DIVERGED" and one["server"]
    }


def led_by(host: str, write: Files) -> Files:
    def with_it(folder: Path) -> None:
        write(folder)
        rows = (f"{one}\t19000\t{'NY'[one == host]}\tcoherent\t9\t1480\n" for one in ("s1", "s2"))
        (folder / "S.comdb2_cluster.tsv").write_text("".join(rows))

    return with_it


@pytest.mark.parametrize(("generations", "old"), [({"s1": 4, "s2": 6}, "S@s1"), ({"s1": 6, "s2": 4}, "S@s2")])
def test_the_higher_generation_counts_whatever_the_names(generations: dict[str, int], old: str, tmp_path: Path) -> None:
    told = diverged(found_in(tmp_path, answered(FORK, **generations)))
    assert "the higher one was elected" in told[old] and {"S@s1", "S@s2"} & told.keys() == {old}
    assert ("A@a1" in told) == (old == "S@s1")  # it has what S@s1 has


@pytest.mark.parametrize("generations", [{}, {"s1": 4}, {"s1": 5, "s2": 5}])
def test_without_two_generations_nothing_tells_whose_log_is_right(generations: dict[str, int], tmp_path: Path) -> None:
    found = found_in(tmp_path, answered(FORK, **generations))
    assert diverged(found).keys() == {"S@s1"} and "nothing that was collected tells" in diverged(found)["S@s1"]
    assert not found["pending"]


def test_the_master_writes_the_log_of_its_cluster(tmp_path: Path) -> None:
    told = diverged(found_in(tmp_path, led_by("s2", FORK)))
    assert told.keys() == {"S@s1", "A@a1"} and "S@s2 is the master" in told["S@s1"]


def test_two_against_one_are_no_proof(tmp_path: Path) -> None:
    told = diverged(found_in(tmp_path, beside("S@s3", FORKED, FORK)))
    assert told.keys() == {"S@s1"} and "S@s3 has what S@s2 has" in told["S@s1"]


def test_a_node_of_the_source_that_is_merely_behind_is_no_other_history(tmp_path: Path) -> None:
    assert not diverged(found_in(tmp_path, beside("S@s2", WHOLE[:34], dumps(WHOLE, WHOLE))))


def test_without_logs_the_lower_generation_of_two_nodes_of_the_source_has_parted(tmp_path: Path) -> None:
    told = diverged(
        found_in(tmp_path, tree(Made("S@s2", generation=6), SOURCE, Made("A@a1", source="S@s2", generation=6)))
    )
    assert told.keys() == {"S@s1"} and "the higher generation was elected" in told["S@s1"]


def test_what_may_have_parted_is_neither_healthy_nor_level_in_the_tree(tmp_path: Path) -> None:
    found = found_in(tmp_path, tree(Made("S@s1", generation=9), Made("A@a1", at=(9, 1200), source="S@s1")))
    rows = {line.split()[0]: line for line in tiers_text(found).splitlines() if "@" in line}
    assert "A@a1" in diverged(found)
    assert "see LOG_DIVERGED" in rows["A@a1"] and "healthy" not in rows["A@a1"] and "  ?  " in rows["A@a1"]
    assert "  0  healthy" in rows["S@s1"]


def test_a_hole_that_no_later_dump_reaches_over_stays_unknown(tmp_path: Path) -> None:
    """It was missed in the first snapshot; the dumps of the second one begin behind it."""
    holed = dumps(WHOLE, [*WHOLE[:12], *WHOLE[16:]])
    found = found_in(tmp_path, holed, dumps(WHOLE[20:], WHOLE[20:]))
    (gap,) = [one for one in found["findings"] if one["code"] == "LOG_GAP"]
    assert gap["severity"] == "warning" and "in snapshot s1 its log lacked 4 records" in gap["summary"]
    told = [(row["server"], row["from"], row["count"], row["why"]) for row in found["unknown"]]
    assert told == [("A@a1", WHOLE[12][0], 4, "hole_before")] and not found["missing"]


def test_a_hole_that_a_later_dump_shows_mended_is_none(tmp_path: Path) -> None:
    found = found_in(tmp_path, dumps(WHOLE, [*WHOLE[:12], *WHOLE[16:]]), dumps(WHOLE, WHOLE))
    assert not found["unknown"] and not [one for one in found["findings"] if one["code"] == "LOG_GAP"]


def test_without_a_common_commit_no_connection_brings_two_logs_together(tmp_path: Path) -> None:
    """All behind the first record differs: the node has none of what its source has there, and would find no place to join at."""
    found = found_in(tmp_path, dumps(WHOLE, log(other_from=1), WHOLE))
    (told,) = [one for one in found["findings"] if one["code"] == "LOG_DIVERGED"]
    assert "no commit is common to both" in told["summary"] and "connect anew" not in told["fix"][0]["repair"]
    assert [(row["server"], row["count"], row["suppliers"]) for row in found["pending"]] == [("A@a1", 39, [])]


def test_below_a_node_with_a_hole_that_is_what_to_see_to(tmp_path: Path) -> None:
    def below(folder: Path) -> None:
        beside("B@b1", WHOLE[:12], dumps(WHOLE, [*WHOLE[:12], *WHOLE[16:]]))(folder)
        (folder / "comdb2_physrep_connections.tsv").write_text("A\ta1\tS\ts1\nB\tb1\tA\ta1\n")

    found = found_in(tmp_path, below)
    (waits,) = [one for one in found["findings"] if one["code"] == "PENDING_CHANGES"]
    assert waits["server"] == "B@b1" and waits["fix"][0]["repair"] == "do what LOG_GAP says of A@a1"


def test_two_copies_that_differ_are_told_without_the_log_of_their_source(tmp_path: Path) -> None:
    def without_source(folder: Path) -> None:
        dumps(WHOLE, WHOLE, FORKED)(folder)
        (folder / "S.s1.digest.tsv").unlink()

    found = found_in(tmp_path, without_source)
    (told,) = [one for one in found["findings"] if one["code"] == "LOG_DIVERGED"]
    assert "A@a1 and A@a2, which follow S" in told["summary"] and "nothing tells which" in told["summary"]
    assert told["items"] == [WHOLE[30][0]] and not found["missing"]


def test_what_a_sibling_holds_of_a_gap_before_the_dump_of_the_source_is_missing(tmp_path: Path) -> None:
    found = found_in(tmp_path, dumps(WHOLE[20:], [*WHOLE[:12], *WHOLE[16:]], WHOLE))
    told = [(row["server"], row["position"], row["held_by"]) for row in found["missing"]]
    assert told == [("A@a1", place, ["A@a2"]) for place, _ in WHOLE[12:16]]


def test_lines_that_were_not_read_may_be_what_a_node_seems_to_lack(tmp_path: Path) -> None:
    def cut(folder: Path) -> None:
        dumps(WHOLE, WHOLE)(folder)
        dump = folder / "A.a1.digest.tsv"
        dump.write_bytes(dump.read_bytes()[:-60])

    found = found_in(tmp_path, cut)
    assert [(row["server"], row["why"], row["count"]) for row in found["unknown"]] == [("A@a1", "unread", 1)]
    assert not found["pending"]


def test_records_that_two_copies_may_share_are_not_called_those_of_one_alone(tmp_path: Path) -> None:
    found_in(tmp_path, dumps(WHOLE, FORKED, FORKED[:34]))
    chosen = [course for course in plan(Case.open(tmp_path / "case")).courses if course.chosen]
    assert [course.costs.split(",")[0] for course in chosen] == [
        "10 records of A@a1 that S@s1 does not have",
        "4 records of A@a2 that S@s1 does not have",
    ]


def test_no_way_leads_to_a_guessed_history(tmp_path: Path) -> None:
    """A@a2 has parted from both nodes of the source, and nothing tells which of these is right."""
    found_in(tmp_path, beside("S@s2", FORKED, dumps(WHOLE, WHOLE, log(other_from=20))))
    made = plan(Case.open(tmp_path / "case"))
    assert not made.steps
    assert all(
        "nothing tells which is right" in course.refused for course in made.courses if course.way != "donor-S@s1"
    )


@pytest.mark.parametrize("alike", [True, False])
def test_two_dumps_that_contradict_each_other_are_read_again_before_a_node_is_built_anew(
    alike: bool, tmp_path: Path
) -> None:
    """The node may only have cut its end off, and written it anew, in between: one of its dumps is as the source's."""
    (made := tmp_path / "now").mkdir()
    dumps(WHOLE, WHOLE, WHOLE)(made)
    (made / "A.a1.second.tsv").write_bytes(b"".join(line for _, line in (WHOLE if alike else FORKED)))
    case = Case.create(tmp_path / "case")
    case.load([made])
    planned = plan(case)
    assert not planned.steps
    assert any("first read it once more, in one go" in says for says in planned.open) == (not alike)
