"""What entries prove: by random histories, by worked examples, and by a server whose data was edited while it was down."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from entry_contents import ATTRIBUTES, History, history

from workbench import Case, diagnose
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.engine.entries import unequal
from workbench.rules.contents import ABSENT, DELETED, LIVE, Compared, Held, MissingEffect, Unlike, apart, compared
from workbench.rules.verdicts import SAYS


def judged(made: History, held: dict[str, Held], old: bool = False, conflict: str = "") -> Compared:
    return compared(held, made.expected, lambda server, position: old, {}, True, conflict=conflict)


@pytest.mark.parametrize("seed", range(400))
def test_what_is_on_its_way_is_no_difference(seed: int) -> None:
    """Each server has of each origin all changes up to some time: whatever differs, another session brings."""
    chance = random.Random(seed)
    made = history(chance, chance.randint(2, 4), whole=False)
    found = judged(made, {server: made.on(server) for server in made.seen})
    assert found == Compared((), ())


@pytest.mark.parametrize("seed", range(400))
def test_one_effect_taken_away_is_that_change_missing(seed: int) -> None:
    """Of servers that have everything one loses a value, or all of the entry: just the changes that made what is gone."""
    chance = random.Random(seed)
    made = history(chance, chance.randint(3, 5), whole=True)
    held = {server: deepcopy(made.on(server)) for server in made.seen}
    hurt = chance.choice(sorted(held))
    victim = held[hurt]
    assert judged(made, held) == Compared((), ())
    if victim.status != LIVE:
        # The delete is undone: what the others deleted is there.
        assert victim.deleted
        gone, victim.status, victim.deleted = victim.deleted, LIVE, None
        assert judged(made, held) == Compared((MissingEffect(hurt, gone, ""),), ())
        return
    filled = [name for name in ATTRIBUTES if victim.present.get(name)]
    if filled and chance.random() < 0.7:
        attribute = chance.choice(filled)
        value, position = chance.choice(sorted(victim.present[attribute].items()))
        del victim.present[attribute][value]
        assert position
        assert judged(made, held) == Compared((MissingEffect(hurt, position, attribute),), ())
        # With old changes, too: most servers still show the value.
        assert judged(made, held, old=True).lacks == (MissingEffect(hurt, position, attribute),)
    elif victim.made():
        whole = victim.made()
        held[hurt] = Held()
        assert judged(made, held) == Compared(
            tuple(sorted(MissingEffect(hurt, position, "") for position in whole)), ()
        )


def shown(values: dict[str, str | None], **more: object) -> Held:
    return Held(status=LIVE, target="uid=anna", present={"mail": values}, **more)  # type: ignore[arg-type]


ALL = History([], {name: {"1": 99, "2": 99} for name in ("anna", "bert", "carl")})


def test_one_value_under_one_position_is_decided_by_most_servers() -> None:
    """Who edits a value and keeps its position makes two values of one change: of two servers nobody can tell."""
    two = {"anna": shown({"a@x": "0010-1"}), "bert": shown({"edited": "0010-1"})}
    assert judged(ALL, two) == Compared((), (Unlike(("anna", "bert"), "mail"),))
    assert judged(ALL, {**two, "carl": shown({"a@x": "0010-1"})}) == Compared(
        (MissingEffect("bert", "0010-1", "mail"),), ()
    )


def test_a_value_without_a_position_proves_that_it_is_there() -> None:
    """A plain import loses the positions: equal values are equal, and what only it has is too much."""
    assert judged(ALL, {"anna": shown({"a@x": "0010-1"}), "bert": shown({"a@x": None})}) == Compared((), ())
    more = {"anna": shown({"a@x": "0010-1"}), "bert": shown({"a@x": None, "b@x": None}), "carl": shown({"a@x": None})}
    assert judged(ALL, more) == Compared((), (Unlike(("bert",), "mail"),))


def two_values(attribute: str, one: str, other: str) -> dict[str, Held]:
    return {
        name: Held(LIVE, "uid=anna", present={attribute: {value: "0010-1"}})
        for name, value in (("anna", one), ("bert", other))
    }


@pytest.mark.parametrize(
    ("attribute", "one", "other"),
    [
        ("shadowMax", "-1", "1"),
        ("homeDirectory", "/home/Anna", "/home/anna"),
        ("cn", "Anna Lee", "Annalee"),
        ("cn", "Anna-Lee", "AnnaLee"),
        ("description", "2026-11-25", "20261125"),
        ("accountExpires", "2026-11-25", "20261125"),
        ("homePhone", "+49 123", "+49 124"),
        ("manager", "uid=b,ou=p q", "uid=b,ou=pq"),
        ("seeAlso", r"cn=lee\, a,ou=p", r"cn=lee\,a,ou=p"),
        ("x-own", "A", "a"),
    ],
)
def test_what_the_rule_of_an_attribute_does_not_pass_over_is_another_value(
    attribute: str, one: str, other: str
) -> None:
    held = two_values(attribute, one, other)
    assert judged(ALL, held) == Compared((), (Unlike(("anna", "bert"), attribute),))
    assert not held["anna"].like(held["bert"], frozenset())


def test_a_value_that_the_same_change_made_in_another_spelling_is_no_loss() -> None:
    """Equal by its matching rule, and each server keeps what came first. Another change, or other letters: a difference."""
    for attribute, one, other in (
        ("mail", "foo@x.com", "FOO@x.com"),
        ("telephoneNumber", "+4912345", "+49 123-45"),
        ("manager", "uid=b,ou=p", "UID=b, ou = P"),
        ("cn;lang-en", "Anna Lee", " anna  lee"),
    ):
        assert judged(ALL, two_values(attribute, one, other)) == Compared(
            (), (), (Unlike(("anna", "bert"), attribute),)
        ), (one, other)
    assert not judged(ALL, {"anna": shown({"a@x": "0010-1"}), "bert": shown({"A@X": "0011-1"})}).spelt
    assert not judged(ALL, {"anna": shown({"base64:YQ==": "0010-1"}), "bert": shown({"base64:yq==": "0010-1"})}).spelt
    assert shown({"a@x": "0010-1"}).like(shown({"A@X": "0010-1"}), frozenset())
    assert not shown({"a@x": "0010-1"}).like(shown({"A@X": "0009-1"}), frozenset())


def test_a_secret_that_a_server_hashed_anew_by_itself_is_no_loss() -> None:
    """At a login a read-only server writes it without a position; what else the change did shows that it came."""

    def with_password(key: str, position: str | None, carries: str) -> Held:
        return Held(
            LIVE, "uid=anna", present={"userPassword": {key: position}}, secret={"userPassword"}, changes={carries}
        )

    anna = with_password("0010-1", "0010-1", "0010-1")
    assert judged(ALL, {"anna": anna, "bert": with_password("", None, "0010-1")}) == Compared((), ())
    lost = judged(ALL, {"anna": anna, "bert": with_password("", None, "0009-1")})
    assert lost.lacks == (MissingEffect("bert", "0010-1", "userPassword"),)
    # What came later touched the secret no more than any other attribute: nobody can tell.
    later = {"anna": anna, "bert": with_password("", None, "0011-1")}
    assert judged(ALL, later) == Compared((), (Unlike(("anna", "bert"), "userPassword"),))
    assert judged(ALL, later | {"carl": anna}) == Compared((), (Unlike(("bert",), "userPassword"),))
    anna.cleared["userPassword"] = "0010-1"
    assert judged(ALL, later | {"carl": anna}) == Compared((), (Unlike(("bert",), "userPassword"),))
    behind = History([], {"anna": {"1": 11, "2": 11}, "bert": {"1": 9, "2": 11}})
    assert judged(behind, {"anna": anna, "bert": with_password("", None, "0011-2")}) == Compared((), ())
    # A step of the same change, or a later one of the same attribute.
    steps = {"anna": anna, "bert": with_password("", None, "0010-1+2")}
    assert compared(steps, ALL.expected, lambda *of: False, {}, True, lambda one: one[:6]) == Compared((), ())
    again = with_password("", None, "0011-1")
    again.cleared["userPassword"] = "0011-1"
    assert judged(behind, {"anna": anna, "bert": again}) == Compared((), ())


def test_a_later_position_explains_what_is_gone() -> None:
    """Replaced where the others do not have that yet: no loss on either side."""
    behind = History([], {"anna": {"1": 10}, "bert": {"1": 12}})
    held = {"anna": shown({"a@x": "0010-1"}), "bert": shown({"b@x": "0012-1"}, cleared={"mail": "0012-1"})}
    assert judged(behind, held) == Compared((), ())
    assert judged(ALL, held).lacks == (MissingEffect("anna", "0012-1", "mail"),)


def test_an_old_absence_that_most_servers_agree_with_may_be_a_deletion() -> None:
    """Its traces are cleared away then. Where no more servers are without the entry than with it, it is a loss."""
    there = shown({"a@x": "0010-1"})
    assert judged(ALL, {"anna": there, "bert": Held()}, old=True).lacks == (MissingEffect("bert", "0010-1", ""),)
    two = {"anna": there, "bert": Held(), "carl": Held()}
    assert judged(ALL, two).lacks == (MissingEffect("bert", "0010-1", ""), MissingEffect("carl", "0010-1", ""))
    assert judged(ALL, two, old=True) == Compared((), (Unlike(("anna", "bert", "carl"), ""),))


def test_an_entry_that_is_gone_on_both_is_no_difference() -> None:
    """A tombstone that the other server has cleared away, or never had."""
    assert judged(ALL, {"anna": Held(status=DELETED, deleted="0010-1"), "bert": Held(status=ABSENT)}) == Compared(
        (), ()
    )


def test_an_entry_that_was_deleted_without_a_position_differs_there() -> None:
    """A client deleted it on carl alone, which replicated nothing at that time: its tombstone says of no change."""
    there = {name: Held(LIVE, present={"cn": {"x": "0010-1"}}) for name in ("anna", "bert")}
    assert judged(ALL, there | {"carl": Held(status=DELETED)}) == Compared((), (Unlike(("carl",), ""),))
    known = judged(ALL, there | {"carl": Held(status=DELETED, deleted="0012-1")})
    assert known == Compared((MissingEffect("anna", "0012-1", ""), MissingEffect("bert", "0012-1", "")), ())
    revived = {name: Held(LIVE, present={"cn": {"x": "0010-1"}}, revived=True) for name in ("anna", "bert")}
    assert judged(ALL, revived | {"carl": Held(status=DELETED)}) == Compared((), ())


def test_whoever_has_the_same_does_not_differ() -> None:
    """Of four servers without an entry each differs from the one that has it, and from no other."""
    there, gone = Held(LIVE, present={"cn": {"x": None}}), Held(ABSENT)
    assert apart(gone, there, "") and not apart(gone, Held(DELETED), "")
    assert apart(there, Held(LIVE, present={"cn": {"y": None}}), "cn")
    assert not apart(there, Held(LIVE, present={"cn": {"x": "6b00"}}), "cn")
    assert not apart(there, there, "mail"), "neither has one"
    moved = Held(LIVE, target="uid=a,ou=x", present={"cn": {"x": None}})
    assert apart(there, moved, "dn") and not apart(moved, moved, "dn")


def test_a_mark_of_conflict_does_not_tell_when_an_entry_was_made() -> None:
    """The entry of 15 is on its way to bert; the mark on it is of the change 10, which bert has."""
    marked = Held(LIVE, present={"objectClass": {"top": "0015-2"}, "nsds5ReplConflict": {"x": "0010-1"}})
    behind = History([], {"anna": {"1": 20, "2": 20}, "bert": {"1": 20, "2": 12}})
    held = {"anna": marked, "bert": Held(ABSENT)}
    assert judged(behind, held) != Compared((), ())
    assert judged(behind, held, conflict="nsds5replconflict") == Compared((), ())


def test_an_entry_whose_own_addition_made_the_conflict_is_on_its_way_where_that_is_not_covered() -> None:
    """Seen on 2.3.1: "1 entry is missing there", of an addition that the read-only server waited for."""
    name: dict[str, dict[str, str | None]] = {"uid": {"u": "5"}}
    marked: dict[str, dict[str, str | None]] = {"nsds5replconflict": {"namingConflict (ADD) uid=u": "5"}}
    held = {
        "s1": Held(LIVE, "uid=u", present=name | marked),
        "s2": Held(LIVE, "uid=u", present=name),
        "s3": Held(),
    }
    need_not = dict.fromkeys(("s1", "s2", "s3"), frozenset({"nsds5replconflict"}))

    def found(covered: bool) -> Compared:
        return compared(held, lambda *_: covered, lambda *_: False, need_not, True, conflict="nsds5replconflict")

    assert found(covered=False) == Compared((), ())
    assert found(covered=True).lacks == (MissingEffect("s3", "5", ""),)


def test_the_class_that_comes_with_a_mark_of_conflict_is_no_change_that_others_lack() -> None:
    """A server that brings an entry back sets a class of its own under the position of the change that needed the entry."""
    made, moved = "10", "23"
    plain = {"objectClass": {"person": made}, "uid": {"x": made}}
    brought = plain | {"objectClass": {"person": made, "glue": moved}}
    marked = brought | {"nsds5ReplConflict": {"brought back": moved}}
    need_not = dict.fromkeys(("s1", "s2", "s3"), frozenset({"nsds5replconflict"}))
    for values, lacks in ((marked, ()), (brought, (MissingEffect("s3", moved, "objectClass"),))):
        held = {"s1": Held(LIVE, present=values), "s2": Held(LIVE, present=values), "s3": Held(LIVE, present=plain)}
        told = compared(
            held, lambda *_: True, lambda *_: False, need_not, True, str, "nsds5replconflict", "objectclass"
        )
        assert told == Compared(lacks, ())


def test_what_a_link_leaves_out_does_not_count() -> None:
    """Behind a fractional link an attribute may be absent."""
    held = {"anna": shown({"a@x": "0010-1"}), "bert": shown({})}
    assert compared(
        held, ALL.expected, lambda server, position: False, {"bert": frozenset({"mail"})}, True
    ) == Compared((), ())


def test_another_name_is_a_difference_where_nothing_is_on_its_way() -> None:
    """A move under another parent leaves nothing in the values."""
    held = {name: shown({"a@x": "0010-1"}) for name in ("anna", "bert", "carl")}
    held["bert"].target = "uid=anna,ou=old"
    assert judged(ALL, held) == Compared((), (Unlike(("bert",), "dn"),))
    assert compared(held, ALL.expected, lambda server, position: False, {}, False) == Compared((), ())


# --- real servers


EDITED = Path(__file__).parent / "incidents" / "edited_while_down" / "2-edited"


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Case:
    made = Case.create(tmp_path_factory.mktemp("edited") / "case")
    made.load([EDITED])
    return made


def test_entries_edited_while_the_server_was_down(edited: Case) -> None:
    found = diagnose(edited)
    (differ,) = [one for one in found["findings"] if one["code"] == "ENTRIES_DIFFER"]
    assert (differ["server"], differ["severity"]) == ("bert", "error")
    assert headline(found).startswith(
        "9 entries of bert differ from those of anna, carla and hubi (its data came from a backup or a file at "
        "2026-11-25 08:30:20 UTC); 9 changes are MISSING on bert"
    )
    assert "3 entries are missing there (uid=u12," in differ["summary"]
    assert "6 entries have other values (uid=u15,ou=people,dc=example,dc=com (telephoneNumber)" in differ["summary"]
    contents = context_of(edited)[0].verdicts.contents[0]
    by_name = {one.target.split(",")[0]: one.attribute for one in contents.unexplained() if one.servers == ("bert",)}
    assert by_name == {
        **{f"uid=u{number}": "" for number in (12, 13, 14)},
        "uid=u15": "telephoneNumber",
        "uid=u16": "mail",
        "uid=u17": "description",
        "uid=u18": "telephoneNumber",
        "uid=u19": "sn",
        "uid=u20": "mail",
    }
    assert {row["rule"] for row in found["missing"]} == {"entries_lack"}
    assert {row["says"] for row in found["missing"]} == {SAYS["logged_and_lost"]}
    assert not found["unknown"]


def test_the_story_of_a_change_that_only_the_log_still_has(edited: Case) -> None:
    told = {one["server"]: one for one in story(edited, "6b069c6b000000020000")["servers"]}
    assert (told["bert"]["verdict"], told["bert"]["rule"]) == ("missing", "entries_lack")
    assert {told[name]["verdict"] for name in ("anna", "carla", "hubi")} == {"present"}


def test_without_entries_the_log_is_all_there_is(tmp_path: Path) -> None:
    """The same mesh, collected without entries: nothing shows what was edited, and nothing is said of it."""
    folder = tmp_path / "without"
    folder.mkdir()
    for file in EDITED.iterdir():
        if "entries" not in file.name:
            text = file.read_bytes()
            if file.name == "case.yaml":
                text = b"".join(line for line in text.splitlines(True) if b"entries" not in line)
                text = text.replace(b"- name: carla\n  files:\n  suffix: dc=example,dc=com\n", b"")
            (folder / file.name).write_bytes(text)
    made = Case.create(tmp_path / "case")
    made.load([folder])
    found = diagnose(made)
    assert not [one for one in found["findings"] if one["code"] in ("ENTRIES_DIFFER", "MISSED_CHANGE")]


def test_the_two_ways_of_summing_find_the_same(edited: Case, spark: Any) -> None:
    contents = context_of(edited)[0].verdicts.contents[0]
    parts = {server: export.parts for server, export in contents.exports.items()}
    for without in (frozenset[str](), contents.left_out["bert"]):
        here = unequal(parts, without, ["vucsn", "mdcsn"], 1000)
        assert here == unequal(parts, without, ["vucsn", "mdcsn"], 1000, spark)
        assert here.whole
    assert len(unequal(parts, contents.left_out["bert"], ["vucsn", "mdcsn"], 1000).first) == 9
    assert unequal(parts, contents.left_out["bert"], ["vucsn", "mdcsn"], 3).total == 9
