"""What `inspect` shows of a changelog, whichever tool printed it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.systems.ds389.csn import origin_of

Vector = Mapping[str, Mapping[str, str | None]]

EMPTY: dict[str, Any] = {
    "csns": 0,
    "by_origin": {},
    "operations": {},
    "helpers": 0,
    "purge_vector": None,
    "max_vector": None,
}
"""The facts of a changelog without a single record."""


def changelog_facts(
    csns: Sequence[str], operations: Sequence[str], helpers: int, purge: Vector | None, max: Vector | None
) -> dict[str, Any]:
    """The facts of some changes, in the shape of the contract; `merge_facts` folds those of pieces.

    csns, operations   of every change, without dummy and helper records; CSNs in lower case
    helpers            how many dummy and helper records there are
    purge, max         origin -> min and max (`vectors.changelog_vector`), or None where no such vector stands

    >>> changelog_facts(["6b00594d000300020000"], ["add"], 0, None, None)["by_origin"]
    {'2': {'count': 1, 'min': '6b00594d000300020000', 'max': '6b00594d000300020000'}}
    """
    of_replica: dict[str, list[str]] = defaultdict(list)
    for csn in csns:
        of_replica[csn[12:16]].append(csn)
    by_origin = {
        origin_of(found[0]): {"count": len(found), "min": min(found), "max": sorted(found)[-1]}
        for _, found in sorted(of_replica.items())
    }
    return {
        "csns": len(csns),
        "by_origin": by_origin,
        "operations": dict(sorted(Counter(operations).items())),
        "helpers": helpers,
        "purge_vector": purge,
        "max_vector": max,
    }
