"""Entries that a server still has although they were deleted: where a deletion is right, and where only new data are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.diagnosis.contents import Difference
from workbench.diagnosis.differing_entries import _deletes
from workbench.rules.contents import DELETED, LIVE, Held

NAME, OTHER = "uid=u,dc=example,dc=com", "uid=v,dc=example,dc=com"


def contents(**there: tuple[str, str]) -> Any:
    """Suppliers s1 and s2, and the read-only s3; of each what it shows of the entry."""
    replicas = [
        SimpleNamespace(server=name, origin=origin) for name, origin in (("s1", "1"), ("s2", "2"), ("s3", None))
    ]
    held = {name: Held(status, target) for name, (status, target) in there.items()}
    return SimpleNamespace(alike=SimpleNamespace(replicas=replicas), held={"17": held})


@pytest.mark.parametrize(
    ("s2", "server", "where"),
    [
        ((LIVE, NAME), "s3", "s2"),
        ((LIVE, OTHER), "s3", ""),
        ((DELETED, NAME), "s3", ""),
        ((LIVE, NAME), "s2", "s2"),
    ],
    ids=["a supplier has it", "it has another name there", "no supplier has it", "the supplier itself"],
)
def test_what_was_deleted_elsewhere_is_deleted_where_it_is_under_its_name(
    s2: tuple[str, str], server: str, where: str
) -> None:
    """Seen on 2.3.1: "delete uid=u on a supplier that still has it", where uid=u was another, living entry on all suppliers."""
    found = contents(s1=(DELETED, NAME), s2=s2, s3=(LIVE, NAME))
    left = Difference("17", NAME, "", (server,), ("s1",), "66000007000000010000")
    assert _deletes(found, [left], server) == where
