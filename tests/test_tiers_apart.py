"""Nodes of one source whose logs differ: which history stands for the cluster, and where two of them part."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_comdb2_diagnosis import diagnosed, node
from tier_files import Made, written

from workbench.replication.tier.diagnosis.histories import apart, parted_from
from workbench.replication.tier.rules.physical_log import Place


def listed(*places: Place) -> Any:
    return SimpleNamespace(first=list(places), count=len(places))


def compared(differing: tuple[Place, ...] = (), here: tuple[Place, ...] = (), parts: Place | None = None) -> Any:
    """Two logs; `here`: places that one of them alone has, on each side."""
    return SimpleNamespace(
        differing=listed(*differing), only_copy=listed(*here), only_reference=listed(*here), parts=parts, match=(8, 0)
    )


def looked(*forks: str) -> Any:
    """What was seen of four logs: pairs such as `BC` differ at {9:10}, all others are alike as far as they go."""
    pairs = {pair: compared() for pair in permutations("ABCD", 2)}
    for fork in forks:
        pairs[fork[0], fork[1]] = pairs[fork[1], fork[0]] = compared(((9, 10),))
    return SimpleNamespace(pairs=pairs)


@pytest.mark.parametrize("generations", [{}, {"B": 1, "C": 2, "D": 1}, {"B": 3, "C": 2, "D": 2}])
def test_histories_are_told_apart_where_the_largest_log_ends_early(generations: dict[str, int]) -> None:
    """A ends before C and D part from B; D differs from A as well."""
    found = apart(looked("BC", "BD", "CD", "AD"), "ABCD", generations, [])
    assert sorted(map(sorted, found.histories)) == [["A", "B"], ["C"], ["D"]]
    assert (found.first, found.count) == ((9, 10), 1)
    highest = max(generations, key=lambda name: generations[name], default=None)
    assert found.elected == highest and (highest is None or highest in found.histories[0])


def test_a_hole_before_the_fork_is_not_where_they_part() -> None:
    assert parted_from(compared((), ((8, 100), (9, 200)), (9, 200))) == (9, 200)
    assert parted_from(compared(((9, 300),), ((8, 100),), (9, 300))) == (9, 300)


def test_of_positions_alone_every_node_that_is_as_far_is_in_the_tree(tmp_path: Path) -> None:
    """A is taken for the source by its name alone; another database's node at another place may be no copy."""
    nodes = [Made("S@s1"), Made("A@a1"), Made("A@a2", at=(9, 500)), Made("M@m1", at=(3, 100))]
    folder = written(tmp_path / "now", nodes)
    for file in [*(folder / "meta").iterdir(), folder / "nodes" / "tunables.tsv", folder / "nodes" / "logfiles.tsv"]:
        file.unlink()
    found = diagnosed(tmp_path, folder)
    assert {one["node"] for one in found["trees"][0]["nodes"]} == {"S@s1", "A@a1", "A@a2"}
    assert node(found, "A@a2")["served_by"] == ["A@a1", "S@s1"]
