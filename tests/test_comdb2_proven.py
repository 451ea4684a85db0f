"""What another node, another row or an earlier snapshot proves of a tree of Comdb2: silent holders, heads, histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from comdb2_incidents import FORKED, WHOLE, dumps
from test_comdb2_diagnosis import case_of, diagnosed
from tier_files import Made, written

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.planner import plan
from workbench.systems import system_named
from workbench.topology import tier_snapshot

HOLDER = Made("A@a1", at=(20, 900), first=12, source="S@s1", answers=False, age=900)
LATE = [
    Made("A@a2", at=(13, 5), first=12, source="S@s1", age=400),
    Made("A@a2", at=(13, 5), first=12, state="Pending"),
]


def waiting(folder: Path, late: Made, *others: Made) -> Any:
    return case_of(folder, written(folder / "in", [Made("S@s1", at=(20, 900), first=15), HOLDER, late, *others]))


@pytest.mark.parametrize("late", LATE, ids=["stopped", "pending"])
def test_where_a_silent_replicant_alone_has_the_file_it_is_started_first(late: Made, tmp_path: Path) -> None:
    """As LOG_GAP says: neither is its row reset as that of a node that is gone, nor the other one rebuilt."""
    case = waiting(tmp_path, late)
    gap = next(found for found in diagnose(case)["findings"] if found["code"] == "LOG_GAP")
    assert gap["fix"][0]["repair"].startswith("first start A@a1")
    made = plan(case)
    assert not made.steps and made.unmended == 2
    refused = {course.way: course.refused for course in made.courses if course.refused}
    for way in ("reset-node", "rebuild-from-S@s1"):
        assert "A@a1 has log file 13" in refused[way] and "first start it, collect again, and plan anew" in refused[way]
    assert any("A@a1 has log file 13" in line for line in made.open)


def test_who_knows_that_the_holder_is_gone_asks_for_the_reset(tmp_path: Path) -> None:
    case = waiting(tmp_path, LATE[0])
    assert [step.repair for step in plan(case, ["A@a1"], ["reset-node"]).steps] == ["reset"]
    rebuilt = plan(case, ["A@a1", "A@a2"], ["reset-node"]).steps[-1]
    assert rebuilt.repair == "rebuild" and "A@a1, which had log file 13" in rebuilt.stands_on


def test_where_another_node_has_the_file_the_silent_one_is_reset(tmp_path: Path) -> None:
    made = plan(waiting(tmp_path, LATE[0], Made("B@b1", at=(20, 900), first=12, source="S@s1")))
    assert ("reset", "A@a1") in {(step.repair, step.server) for step in made.steps}


def lagging(folder: Path, age: int, **more: Any) -> dict[str, Any]:
    """S@s1 reported {9:500} 58 s ago, A@a1 {9:900} `age` s ago; A@a2 is at {9:400}."""
    unasked: dict[str, Any] = {"answers": None}
    nodes = [
        Made("S@s1", at=(9, 500), age=58, **unasked),
        Made("A@a1", at=(9, 900), age=age, source="S@s1", **unasked, **more),
        Made("A@a2", at=(9, 400), age=3, source="S@s1", **unasked),
    ]
    return diagnosed(folder, written(folder / "in", nodes, physrep_keepalive_freq_sec="60"))


def test_a_distance_reaches_to_what_a_later_row_proves_of_the_source(tmp_path: Path) -> None:
    found = lagging(tmp_path, 2)
    (row,) = [row for row in found["pending"] if row["server"] == "A@a2"]
    assert (row["bytes"], row["counted"]) == (500, False)
    text = diagnosis_text(system_named("comdb2"), found)
    assert "at {9:900} at least" in text and "at least 500" in text


def test_an_older_row_proves_nothing_of_the_source_now(tmp_path: Path) -> None:
    """It may have cut its log back since."""
    (row,) = [row for row in lagging(tmp_path, 90)["pending"] if row["server"] == "A@a2"]
    assert row["bytes"] == 100


def parted_then(folder: Path, then: list[Made], now: list[Made]) -> dict[str, Any]:
    """Dumps that show two histories, and a later snapshot of answers alone."""
    first = folder / "first"
    first.mkdir(parents=True)
    dumps(WHOLE, FORKED, WHOLE)(first)
    if then:
        written(first, then)
    return diagnosed(folder, first, written(folder / "second", now))


LEVEL = [Made("S@s1", at=(9, 3000)), *(Made(f"A@a{at}", at=(9, 3000), source="S@s1") for at in (1, 2))]


def test_answers_alone_do_not_hide_that_two_logs_parted(tmp_path: Path) -> None:
    found = parted_then(tmp_path, [], LEVEL)
    (said,) = [one for one in found["findings"] if one["code"] == "LOG_DIVERGED"]
    assert said["server"] == "A@a1" and "nothing shows that it cut them off" in said["summary"]
    assert "no change is known to be missing" in headline(found).lower()


def test_a_node_that_counts_a_cut_since_is_not_said_to_be_parted(tmp_path: Path) -> None:
    ends = max((int(file), int(place)) for at, _ in WHOLE for file, _, place in (at.strip("{}").partition(":"),))
    then = [Made("S@s1", at=ends), *(Made(f"A@a{at}", at=ends, source="S@s1") for at in (1, 2))]
    now = [LEVEL[0], Made("A@a1", at=(9, 3000), source="S@s1", cuts=1), LEVEL[2]]
    found = parted_then(tmp_path, then, now)
    assert not [one for one in found["findings"] if one["code"] == "LOG_DIVERGED" and one["severity"] != "info"]


def test_of_the_logs_of_programs_the_last_line_is_found_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "2026/11/20 11:{:02d}:00 physrep: physrep worker thread has {}\n"
    texts = {"A@a1": line.format(40, "started") + line.format(50, "stopped") * 2, "A@a2": line.format(45, "started")}
    nodes = [Made("S@s1"), *(Made(name, source="S@s1", log=text) for name, text in texts.items())]
    case = case_of(tmp_path, written(tmp_path / "in", nodes))
    label = next(iter(case.snapshots))
    whole = {(row["server"], row["at"], row["code"]) for row in tier_snapshot.last_messages(case, label)}
    assert {server: at.minute for server, at, _ in whole} == {"A@a1": 50, "A@a2": 45}
    read = tier_snapshot.stream_part

    def by_row(*about: Any) -> Any:
        for batch in read(*about):
            yield from (batch.slice(at, 1) for at in range(batch.num_rows))

    monkeypatch.setattr(tier_snapshot, "stream_part", by_row)
    assert {(row["server"], row["at"], row["code"]) for row in tier_snapshot.last_messages(case, label)} == whole
