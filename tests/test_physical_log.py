"""Physical logs: what is missing is found, nothing else is said to be, and two logs part where they were made to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.replication.tier.rules.physical_log import (
    FORM,
    Checked,
    Compared,
    Gap,
    Listed,
    Place,
    Record,
    between,
    checked,
    compared,
)

COMMIT, CHECKPOINT, OTHER = 2151, 2011, 3057


def a_log(chance: random.Random, files: int = 4, most: int = 8, number: int = 9) -> list[Record]:
    """A whole log, as a database writes it."""
    made = []
    for file in range(number, number + files):
        place = FORM.begins
        for _ in range(chance.randrange(1, most)):
            kind = chance.choice([OTHER, OTHER, COMMIT, CHECKPOINT])
            length = chance.randrange(40, 140)
            generation = None if kind == OTHER else 4
            made.append(Record(file, place, length, kind, generation, chance.randrange(1 << 40)))
            place += length + FORM.head
    return made


def sizes_of(log: Iterable[Record]) -> dict[int, int]:
    """How long the files are."""
    return {one.file: one.place + (one.length or 0) + FORM.head for one in sorted(log)}


def place_of(one: Record) -> Place:
    return one.file, one.place


@given(st.integers(0, 1 << 32), st.booleans())
def test_of_a_log_with_lost_records_each_gap_is_found_and_no_other(seed: int, know_sizes: bool) -> None:
    chance = random.Random(seed)
    log = a_log(chance)
    sizes = sizes_of(log) if know_sizes else {}
    kept = [chance.random() < chance.choice([0.5, 0.9]) for _ in log]
    left = [one for one, there in zip(log, kept, strict=True) if there]
    rows = left + [chance.choice(left) for _ in range(chance.randrange(4)) if left]
    chance.shuffle(rows)
    # Each run of lost records between two that are left is one gap. Only the end of a file can be lost unseen.
    runs = [list(run) for _, run in groupby(range(len(log)), key=lambda at: kept[at])]
    expected, unseen = [], 0
    for run in runs:
        if kept[run[0]] or run[0] == 0 or run[-1] == len(log) - 1:
            continue
        before, lost, behind = log[run[0] - 1], [log[at] for at in run], log[run[-1] + 1]
        tail = [one for one in lost if one.file == before.file] if behind.file != before.file else []
        seen = lost if know_sizes or not tail else [one for one in lost if one.file != before.file]
        if seen:
            expected.append(Gap(place_of(before), place_of(behind), place_of(seen[0])))
        else:
            unseen += 1
    found = checked(rows, sizes)
    assert found.gaps == Listed(len(expected), expected)
    assert (found.overlaps.count, found.contradictions.count) == (0, 0)
    assert (found.rows, found.records, found.duplicates) == (len(rows), len(left), len(rows) - len(left))
    assert found.commits == sum(one.kind == COMMIT for one in left)
    assert found.bytes == sum((one.length or 0) + FORM.head for one in left)
    assert found.commit == max((place_of(one) for one in left if one.kind == COMMIT), default=None)
    files = [one.file for one in left]
    assert found.borders == len(set(files)) - bool(files)
    assert found.unproven.count >= unseen if not know_sizes else found.unproven.count == 0
    if left:
        assert (found.first, found.last) == (place_of(left[0]), place_of(left[-1]))


def test_a_whole_log_is_proven_whole_where_the_lengths_of_its_files_are_known() -> None:
    log = a_log(random.Random(1))
    found = checked(log)
    assert found.sound and (found.borders, found.unproven.count) == (3, 3)
    found = checked(log, sizes_of(log))
    assert found.sound and (found.borders, found.unproven.count) == (3, 0)


def test_a_file_that_grew_after_it_was_listed_proves_nothing() -> None:
    log = a_log(random.Random(1), files=2)
    sizes = sizes_of(log)
    assert checked(log, {9: sizes[9] - 1}).unproven.count == 1
    assert checked(log, {9: sizes[9] + 1}).gaps.count == 1


def test_a_place_is_said_to_be_contradicted_only_by_what_both_rows_tell() -> None:
    one = Record(9, 28, 100, COMMIT, 4, 77)
    for other, contradicted in (
        (one, 0),
        (one._replace(generation=None), 0),
        (one._replace(content=None, length=None, kind=None), 0),
        (one._replace(generation=5), 1),
        (one._replace(content=78), 1),
        (one._replace(length=101), 1),
    ):
        found = checked([one, other])
        assert (found.contradictions.count, found.duplicates) == (contradicted, 1 - contradicted), other


def test_neighbours() -> None:
    for last, end, following, verdict, expected in (
        ((9, 28), 140, (9, 140), "whole", (9, 140)),
        ((9, 28), 140, (9, 141), "gap", (9, 140)),
        ((9, 28), 140, (9, 139), "overlap", (9, 140)),
        ((9, 28), None, (9, 139), "unproven", (9, 28)),
        ((9, 28), 140, (10, 28), "unproven", (9, 140)),
        ((9, 28), None, (10, 28), "unproven", (9, 28)),
        ((9, 28), 140, (10, 29), "gap", (10, 28)),
        ((9, 28), 140, (10, 27), "overlap", (10, 28)),
        ((9, 28), 140, (11, 28), "gap", (10, 28)),
    ):
        assert between(last, end, following) == (verdict, expected), (last, following)
    assert between((9, 28), 140, (10, 28), {9: 140}) == ("whole", (10, 28))
    assert between((9, 28), 140, (10, 28), {9: 190}) == ("gap", (9, 140))
    assert between((9, 28), 140, (12, 28), {9: 190}) == ("gap", (9, 140))


def by_sets(reference: list[Record], copy: list[Record]) -> Compared:
    """The slow way, for logs of which each place stands once."""
    one, other = ({place_of(row): row for row in rows} for rows in (reference, copy))
    if not one or not other:
        return Compared()
    both = one.keys() & other.keys()

    def unlike(place: Place) -> bool:
        pairs = [
            (getattr(one[place], name), getattr(other[place], name)) for name in ("length", "generation", "content")
        ]
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)

    def commits(log: dict[Any, Record], some: list[Any]) -> Listed:
        found = [place for place in some if log[place].kind == COMMIT]
        return Listed(len(found), found)

    differing, same = sorted(filter(unlike, both)), sorted(place for place in both if not unlike(place))
    lacks, has = sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())
    inside = [place for place in lacks if min(other) < place < max(other)]
    inside_copy = [place for place in has if min(one) < place < max(one)]
    behind, ahead = ([place for place in lacks if place > max(other)], [place for place in has if place > max(one)])
    apart = sorted(place for place in differing + inside + inside_copy if not same or place > same[-1])
    anchors = [place for place in same if one[place].kind in (COMMIT, CHECKPOINT)]
    match = anchors[-1] if anchors else None
    cut = [place for place in other if match is None or place > match]
    after = sorted(place for place in one if match is None or place > match)
    return Compared(
        same=len(same),
        differing=Listed(len(differing), differing),
        only_reference=Listed(len(inside), inside),
        only_copy=Listed(len(inside_copy), inside_copy),
        behind=Listed(len(behind), behind),
        behind_bytes=sum((one[place].length or 0) + FORM.head for place in behind),
        ahead=Listed(len(ahead), ahead),
        ahead_bytes=sum((other[place].length or 0) + FORM.head for place in ahead),
        earlier_reference=sum(place < min(other) for place in lacks),
        earlier_copy=sum(place < min(one) for place in has),
        last_same=same[-1] if same else None,
        parts=apart[0] if apart else None,
        match=match,
        cut=len(cut),
        cut_commits=sum(other[place].kind == COMMIT for place in cut),
        after_match=Listed(len(after), after),
        commits_reference=commits(one, inside),
        commits_copy=commits(other, has),
    )


def a_copy(chance: random.Random, log: list[Record]) -> list[Record]:
    """A copy that may begin later, end earlier, lack records, hold others, and go on by itself."""
    begin, end = chance.choice([0, 0, 3]), chance.choice([len(log), len(log) - 4, len(log) // 2])
    made = [one for one in log[begin:end] if chance.random() < chance.choice([1, 0.9])]
    for at in range(len(made)):
        if chance.random() < 0.1:
            made[at] = made[at]._replace(**chance.choice([{"content": 1}, {"generation": 5}, {"length": 39}]))
    if chance.random() < 0.4 and made:
        keep = chance.randrange(len(made))
        file, place, length = made[keep][:3]
        place += (length or 0) + FORM.head
        made = made[: keep + 1]
        for _ in range(chance.randrange(1, 12)):
            kind = chance.choice([OTHER, COMMIT])
            made.append(Record(file, place, chance.randrange(40, 90), kind, 5, place << 16 | kind))
            place += (made[-1].length or 0) + FORM.head
    return made


@given(st.integers(0, 1 << 32))
def test_two_logs_beside_each_other_are_told_as_sets_tell_them(seed: int) -> None:
    chance = random.Random(seed)
    log = a_log(chance, files=3)
    one, other = a_copy(chance, log) if chance.random() < 0.5 else log, a_copy(chance, log)
    expected = by_sets(one, other)
    shuffled = [chance.sample(rows, len(rows)) for rows in (one + one[:3], other)]
    assert compared(*shuffled) == expected
    back = compared(other, one)
    assert (back.same, back.differing, back.parts) == (expected.same, expected.differing, expected.parts)
    assert (back.behind, back.ahead) == (expected.ahead, expected.behind)


def test_the_kinds_of_what_is_told_of_two_logs_all_come_to_be() -> None:
    told: Counter[str] = Counter()
    for seed in range(200):
        chance = random.Random(seed)
        log = a_log(chance, files=3)
        found = compared(log, a_copy(chance, log))
        told.update(name for name in Compared.__dataclass_fields__ if count_of(getattr(found, name)))
        told["prefix"] += found.prefix
    assert set(told) == {*Compared.__dataclass_fields__, "prefix"} - {"unclear", "earlier_copy"}


def count_of(value: Any) -> bool:
    return bool(value.count) if isinstance(value, Listed) else bool(value)


def test_a_copy_that_went_its_own_way_is_cut_back_to_the_last_common_commit() -> None:
    log = [
        Record(8, 28, 88, COMMIT, 6, 1),
        Record(8, 128, 38, OTHER, None, 2),
        Record(8, 178, 88, COMMIT, 26, 3),
        Record(8, 278, 88, COMMIT, 26, 4),
    ]
    copy = [*log[:2], Record(8, 178, 58, COMMIT, 6, 5), Record(8, 248, 58, COMMIT, 6, 6)]
    found = compared(log, copy)
    assert (found.match, found.last_same, found.parts) == ((8, 28), (8, 128), (8, 178))
    assert (found.cut, found.cut_commits, found.prefix) == (3, 2, False)
    assert found.differing.first == [(8, 178)] and found.only_copy.first == [(8, 248)]
    assert compared(log, log[:3]).prefix and compared(log, log[:3]).behind_bytes == 100


def test_a_place_at_which_one_log_contradicts_itself_is_not_compared() -> None:
    log = [Record(9, 28, 88, COMMIT, 4, 1), Record(9, 128, 88, COMMIT, 4, 2)]
    found = compared([*log, log[1]._replace(content=3)], log)
    assert (found.same, found.unclear, found.differing.count, found.prefix) == (1, 1, 0, False)


def test_lists_are_cut_and_counts_are_not() -> None:
    log = a_log(random.Random(1), files=20, most=20)
    found = checked(log[::3], limit=3)
    assert len(found.gaps.first) == 3 < found.gaps.count
    both = compared(log, log[:2], limit=3)
    assert (len(both.behind.first), both.behind.count) == (3, len(log) - 2)


@pytest.mark.parametrize("at", range(4))
def test_two_parts_of_a_log_are_told_as_the_whole(at: int) -> None:
    log = a_log(random.Random(5), files=4)
    log = log[:5] + log[7:]
    sizes = sizes_of(log)
    found = Checked()
    for low, high in ((0, 9 + at), (9 + at, 99)):
        found.go_on(checked([one for one in log if low <= one.file < high], sizes), sizes)
    assert found == checked(log, sizes)
    assert replace(found, rows=0) != checked(log, sizes)
