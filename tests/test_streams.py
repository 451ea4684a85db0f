"""A copy of a stream held against its source: by the rule, by looking at each transaction alone, and by a copy that is made."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.replication.stream.rules.streams import Difference, Entry, MissingTransaction, difference

IN_PART = ("unfinished", "incomplete", "corrupt", "unknown")
FATES = ("committed", "committed", "committed", "rolled_back", "event")


def commits(*positions: str) -> list[Entry]:
    return [Entry(position, place, "committed", 1, 1) for place, position in enumerate(positions)]


def test_a_hole_is_missing_and_the_end_is_behind() -> None:
    found = difference(commits("5", "9", "7", "8", "3"), commits("5", "7"))
    assert [one.position for one in found.inside] == ["9"]
    # By number 8 and 3 would be on either side of 7: the order is that of commits.
    assert [one.position for one in found.behind] == ["8", "3"]


def test_what_came_in_part_is_missing_once_the_copy_is_past_it() -> None:
    copy = [
        Entry("5", 0, "committed", 1),
        Entry("9", 1, "incomplete"),
        Entry("7", 2, "committed", 1),
        Entry("8", 3, "unfinished"),
    ]
    found = difference(commits("5", "9", "7", "8"), copy)
    assert (found.inside, found.behind) == (
        [MissingTransaction("9", 1, "incomplete")],
        [MissingTransaction("8", 3, "unfinished")],
    )
    assert found.undecided == {"8": "committed"}


def test_where_the_copy_lost_records_nothing_is_told() -> None:
    source = commits("1", "2", "3", "4", "5", "6")
    copy = [Entry("1", 0, "committed", 1), Entry("3", 20, "committed", 1), Entry("5", 40, "committed", 1)]
    found = difference(source, copy, lost=[30])
    assert [one.position for one in found.inside] == ["2"]
    assert [(position, why) for position, _, why in found.unknown] == [("4", "copy_lost_records")]
    assert [one.position for one in found.behind] == ["6"]


def test_what_follows_a_loss_at_the_end_of_a_copy_may_have_been_lost_there() -> None:
    source = commits("1", "2", "3", "4")
    copy = [Entry("1", 0, "committed", 1), Entry("2", 20, "corrupt")]
    found = difference(source, copy[:1], lost=[30])
    assert {(position, why) for position, _, why in found.unknown} == {(at, "copy_lost_records") for at in "234"}
    # A message that does not fit its checksum stands where the source has it: what follows was not in it.
    found = difference(source, copy, lost=[20])
    assert [(position, why) for position, _, why in found.unknown] == [("2", "copy_is_damaged")]
    assert [one.position for one in found.behind] == ["3", "4"]


def test_of_a_third_log_counts_what_is_the_same_there() -> None:
    source, copy = commits("1", "2", "3"), commits("1", "3")
    assert difference(source, copy, elsewhere=commits("1", "2")).inside == [MissingTransaction("2", 1, None)]
    assert difference(source, copy, elsewhere=[Entry("2", 1, "committed", 9, 9)]).alone == ["2"]
    assert difference(source, copy, elsewhere=[Entry("2", 1, "unfinished")]).alone == ["2"]


def test_a_copy_that_begins_later_tells_nothing_of_before() -> None:
    found = difference(commits("1", "2", "3"), [Entry("2", 0, "committed", 1)])
    assert [(position, why) for position, _, why in found.unknown] == [("1", "copy_begins_later")]
    assert [one.position for one in found.behind] == ["3"]


def test_a_copy_that_shares_nothing_tells_nothing() -> None:
    found = difference(commits("1"), commits("2"))
    assert (found.last, [why for *_, why in found.unknown]) == (None, ["nothing_shared"])


def test_errant_ones_lie_between_what_both_have() -> None:
    copy = [Entry(position, place, "committed", 1) for place, position in enumerate(("0", "1", "x", "2", "y"))]
    assert difference(commits("1", "2"), copy).errant == ["x"]


def test_two_contents_or_two_ends_are_a_conflict() -> None:
    source = [
        Entry("1", 0, "committed", 1),
        Entry("2", 1, "committed", 2),
        Entry("3", 2, "committed", 3),
        Entry("4", 3, "committed"),
    ]
    copy = [
        Entry("1", 0, "committed", 1),
        Entry("2", 1, "committed", 9),
        Entry("3", 2, "rolled_back"),
        Entry("4", 3, "committed", 5),
    ]
    found = difference(source, copy)
    assert (found.conflicts, found.inside) == (["2", "3"], [])


def slowly(source: list[Entry], copy: list[Entry], lost: list[int]) -> dict[str, str]:
    """What is said of each commit of the source that the copy lacks, found by looking through everything each time."""
    said = {}
    for one in source:
        there = [other for other in copy if _same(one, other)]
        unclear = one.outcome in IN_PART[1:] and all(other.outcome in ("unfinished", "aborted") for other in there)
        if (not unclear and one.outcome != "committed") or any(other.outcome == "committed" for other in there):
            continue
        both = [(theirs, mine) for theirs in source for mine in copy if _same(theirs, mine)]
        ended = [theirs.place for theirs, mine in both if _ended(mine) and mine.outcome != "unknown"]
        passed = [theirs.place for theirs, mine in both if ended or _ended(mine)]
        if not both:
            said |= {one.position: "nothing"} if one.outcome == "committed" else {}
        elif unclear:
            said[one.position] = "unclear"
        elif any(other.outcome in ("corrupt", "unknown") for other in there):
            said[one.position] = there[0].outcome
        elif _may_be_lost(one, there, both, lost):
            said[one.position] = "lost"
        elif not there and one.place < min(passed, default=one.place):
            said[one.position] = "before"
        elif not ended or one.place > max(ended):
            said[one.position] = "behind"  # where a copy begins that has no end, nothing tells
        else:
            said[one.position] = "lost" if there and lost else "inside"
    return said


def _same(theirs: Entry, mine: Entry) -> bool:
    return theirs.position == mine.position and (theirs.outcome == "event") == (mine.outcome == "event")


def _ended(one: Entry) -> bool:
    return one.outcome not in ("unfinished", "aborted") and not one.cut


def _may_be_lost(one: Entry, there: list[Entry], both: list[tuple[Entry, Entry]], lost: list[int]) -> bool:
    if there:
        return any(place > mine.place for mine in there for place in lost)
    end = max(mine.place for _, mine in both)
    return any(_in_gap(one, both, place) for place in lost if place != end)


def _in_gap(one: Entry, both: list[tuple[Entry, Entry]], place: int) -> bool:
    order = sorted(both, key=lambda pair: pair[1].place)
    before = [theirs.place for theirs, mine in order if mine.place <= place and _ended(mine)]
    behind = [theirs.place for theirs, mine in order if mine.place > place and _ended(theirs)]
    return (not before or before[-1] < one.place) and (not behind or one.place < behind[0])


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 10**9))
def test_the_rule_and_a_slow_look_say_the_same(seed: int) -> None:
    chance = random.Random(seed)
    numbers = chance.sample(range(100), chance.randrange(1, 12))
    source = [Entry(str(number), place * 10, chance.choice(FATES), 1) for place, number in enumerate(numbers)]
    upto = chance.randrange(len(source) + 1)
    copy = [
        one._replace(place=at * 7, outcome=outcome, cut=outcome == "corrupt" and chance.random() < 0.5)
        for at, one in enumerate(source[chance.randrange(2) : upto])
        if chance.random() > 0.2
        for outcome in [chance.choice(IN_PART) if chance.random() < 0.2 else one.outcome]
    ]
    source = [one._replace(outcome=chance.choice(IN_PART)) if chance.random() < 0.1 else one for one in source]
    lost = [chance.randrange(80) for _ in range(chance.randrange(3))]
    found = difference(source, copy, lost)
    assert told(found) == slowly(source, copy, lost)


def told(found: Difference) -> dict[str, str]:
    words = {"copy_lost_records": "lost", "copy_begins_later": "before", "nothing_shared": "nothing"}
    words |= {"copy_is_damaged": "corrupt", "copy_not_understood": "unknown", "source_unclear": "unclear"}
    said = {position: words[why] for position, _, why in found.unknown}
    return said | {one.position: "inside" for one in found.inside} | {one.position: "behind" for one in found.behind}


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_what_was_taken_out_of_a_copy_is_what_is_missing(seed: int) -> None:
    chance = random.Random(seed)
    source = [
        Entry(str(number), place, "committed", number) for place, number in enumerate(chance.sample(range(1000), 30))
    ]
    upto = chance.randrange(2, 31)
    taken = {one.position for one in source[1 : upto - 1] if chance.random() < 0.3}
    copy = [
        Entry(one.position, one.place * 3, "committed", one.content)
        for one in source[:upto]
        if one.position not in taken
    ]
    found = difference(source, copy)
    assert {one.position for one in found.inside} == taken
    assert [one.position for one in found.behind] == [one.position for one in source[upto:]]
    assert not found.unknown and not found.errant and not found.conflicts


def test_two_servers_under_one_id_are_not_held_against_each_other() -> None:
    source = [Entry(str(number), number, "committed", number) for number in range(5)]
    copy = [Entry(str(number), number, "committed", -number - 1) for number in range(3)]
    found = difference(source, [*copy, Entry("3", 3, "committed", 3)])
    assert found.unrelated and not found.inside and not found.behind and not found.conflicts
    assert {why for *_, why in found.unknown} == {"unrelated"}
    # Two of one content, two of another: a conflict to be told, and no reason to believe nothing any more.
    assert not difference(source, [*copy[1:], *source[3:]]).unrelated


def test_what_the_source_may_have_lost_is_not_only_at_the_copy() -> None:
    source, copy = commits("1", "2", "5", "6"), commits("1", "2", "3", "5", "x", "6")
    assert difference(source, copy, lost_there=[source[1].place]).errant == ["x"]
    assert difference(source, copy).errant == ["3", "x"]


def test_a_part_behind_which_records_were_lost_may_be_whole() -> None:
    source = commits("1", "2", "3")
    copy = [Entry("1", 0, "committed", 1), Entry("2", 20, "unfinished")]
    assert [(at, why) for at, _, why in difference(source, copy, lost=[30]).unknown] == [
        ("2", "copy_lost_records"),
        ("3", "copy_lost_records"),
    ]
    assert [lack.position for lack in difference(source, copy, lost=[10]).behind] == ["2", "3"]


def test_a_piece_without_an_end_is_no_border_of_a_loss() -> None:
    """The copy has 1, the first message of 4, and 3; between them it lost records, and 2 may be among these."""
    source = [*commits("1", "2", "3"), Entry("4", 3, "committed", 1)]
    copy = [Entry("1", 0, "committed", 1), Entry("4", 10, "unfinished"), Entry("3", 30, "committed", 1)]
    found = difference(source, copy, lost=[20])
    assert [(position, why) for position, _, why in found.unknown] == [(at, "copy_lost_records") for at in "24"]
    # What the source has in part ends later than its log shows: 3 may be among the records that were lost before it.
    source = [*commits("1", "2"), Entry("4", 15, "unfinished"), Entry("3", 20, "committed", 1)]
    copy = [*commits("1", "2"), Entry("4", 40, "unfinished")]
    found = difference(source, copy, lost=[30])
    assert [(position, why) for position, _, why in found.unknown] == [("3", "copy_lost_records")]


def test_a_copy_that_is_not_understood_begins_where_it_begins() -> None:
    found = difference(commits("1", "2", "3"), [Entry("2", 0, "unknown")])
    assert [(position, why) for position, _, why in found.unknown] == [
        ("1", "copy_begins_later"),
        ("2", "copy_not_understood"),
    ]
    assert [one.position for one in found.behind] == ["3"]


def test_a_damaged_piece_does_not_show_that_the_copy_reached_the_end() -> None:
    """The first message of 4 is damaged in the copy, whose log ends with 2: 3 is on its way, and not missing."""
    source = [*commits("1", "2", "3"), Entry("4", 3, "committed", 1)]
    copy = [Entry("1", 0, "committed", 1), Entry("4", 10, "corrupt", cut=True), Entry("2", 20, "committed", 1)]
    found = difference(source, copy, lost=[10])
    assert ([one.position for one in found.behind], found.inside) == (["3"], [])
    assert [(position, why) for position, _, why in found.unknown] == [("4", "copy_is_damaged")]


def test_a_transaction_behind_a_piece_of_what_both_have_is_errant() -> None:
    """The log of the copy begins within 1, of which the source has all."""
    copy = [Entry("x", 1, "committed", 1), Entry("1", 2, "incomplete", begin=0), Entry("2", 3, "committed", 1)]
    assert difference(commits("1", "2"), copy).errant == ["x"]
    # What the source has only in part, too, may have begun before its log, and x with it.
    source = [Entry("1", 0, "incomplete"), *commits("0", "2")[1:]]
    assert difference(source, copy).errant == []


def test_what_the_source_shows_damaged_is_unknown_where_the_copy_has_nothing_of_it() -> None:
    source = [*commits("1", "2"), Entry("3", 2, "corrupt"), Entry("4", 3, "committed", 1)]
    found = difference(source, commits("1", "2"))
    assert (found.unknown, [one.position for one in found.behind]) == ([("3", 2, "source_unclear")], ["4"])
    assert not difference(source, [*commits("1", "2"), Entry("3", 2, "committed", 1)]).unknown


def test_a_start_is_not_the_transaction_of_its_number() -> None:
    source = [Entry("1", 0, "committed", 1), Entry("2", 1, "event"), Entry("3", 2, "committed", 1)]
    copy = [Entry("1", 0, "committed", 1), Entry("2", 1, "committed", 1), Entry("3", 2, "committed", 1)]
    assert difference(source, copy).errant == ["2"]
    assert [one.position for one in difference(copy, source).inside] == ["2"]
