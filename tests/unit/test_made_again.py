"""Which lost changes count as made again: what went together with the data of its maker, and what came with it once more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from workbench.diagnosis.uncertain_losses import _came_with, _lost_together
from workbench.systems import system_named

SYSTEM = system_named("ds389")
START = 0x6B0C7EE0


def csn(seconds: int, origin: int = 3) -> str:
    return f"{START + seconds:08x}0000{origin:04x}0000"


LOST = {
    csn(0): ("modify", "uid=c0"),
    csn(1): ("add", "uid=c1"),
    csn(2): ("modify", "uid=c0"),
    csn(90): ("add", "uid=alone"),
    csn(91): ("modify", "uid=c9"),
}


def test_an_addition_that_was_not_made_again_ends_what_went_with_the_data_of_a_maker_that_is_down() -> None:
    runs = [*_lost_together(SYSTEM, LOST, {csn(1)}, {})]

    assert runs == [[csn(0), csn(1), csn(2)], [csn(91)]]


def test_where_the_replacements_of_its_data_are_known_what_was_made_between_them_went_together() -> None:
    restored = datetime.fromtimestamp(START + 60, UTC)

    assert [*_lost_together(SYSTEM, LOST, {csn(1)}, {"3": [restored]})] == [
        [csn(0), csn(1), csn(2)],
        [csn(90), csn(91)],
    ]


@pytest.mark.parametrize(("seconds", "came"), [(200, True), (195, True), (139, False)])
def test_a_modification_that_stood_before_the_first_addition_is_written_before_it_again(
    seconds: int, came: bool
) -> None:
    assert _came_with(SYSTEM, csn(seconds, origin=1), csn(200, origin=1)) is came


def test_what_was_not_done_again_did_not_come_with_it() -> None:
    assert not _came_with(SYSTEM, "", csn(200))
