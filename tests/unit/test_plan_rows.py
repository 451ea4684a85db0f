"""The rows of a plan promise no more than the diagnosis tells, where the model knows of more changes."""

from __future__ import annotations

import pytest

from workbench.repair.model_summary import no_worse


def row(missing: int, pending: int, server: str = "s1") -> dict[str, int | str | None]:
    return {"server": server, "suffix": None, "missing": missing, "pending": pending}


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ((453, 0), (0, 73), (73, 0)),  # what waits may be passed over, and no more than that
        ((0, 384), (0, 322), (0, 322)),
        ((384, 9), (1, 322), (323, 0)),
        ((2, 0), (5, 1), (2, 0)),
    ],
)
def test_no_server_comes_to_lack_more_than_it_lacks(
    then: tuple[int, int], now: tuple[int, int], said: tuple[int, int]
) -> None:
    assert no_worse(row(*then), [row(1, 1, "s2"), row(*now)], {"s3"}) == row(*said)


def test_of_a_server_that_was_not_told_of_nothing_is_known() -> None:
    assert no_worse(row(7, 0, "s3"), [row(4, 2)], ()) == row(7, 0, "s3")


def test_a_server_that_took_other_data_may_lack_what_belongs_to_them() -> None:
    assert no_worse(row(3, 1), [row(0, 0)], {"s1"}) == row(3, 1)
