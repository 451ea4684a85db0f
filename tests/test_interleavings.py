"""All orders of sessions: what a repair may do to a server that was healthy, and when it cannot."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from workbench.repair.event_orders import made_worse
from workbench.rules import interleavings
from workbench.rules.interleavings import Act, Damage, Shape, damage, told
from workbench.rules.repair_model import ChangeGroup, LogModel, Server
from workbench.rules.repair_model import Link as ModelLink

AT_ONCE = (Act("delete", 0), Act("add", 0))
WAITING = (Act("delete", 0, everywhere=True), Act("add", 0))
AGAIN = (Act("modify", 0),)
NAMES = ("s1", "s3", "s2", "s4")


def mesh(count: int) -> frozenset[tuple[int, int]]:
    return frozenset((by, to) for by in range(count) for to in range(count) if by != to)


def shape(
    acts: tuple[Act, ...], count: int = 3, links: frozenset[tuple[int, int]] | None = None, **more: object
) -> Shape:
    """Server 0 writes, server 1 lacks the entry."""
    about = {"writers": frozenset(range(count)), "without": frozenset({1}), "others": 0, **more}
    return Shape(count, mesh(count) if links is None else links, acts=acts, **about)  # type: ignore[arg-type]


def is_reader(count: int, reader: int = 1) -> frozenset[tuple[int, int]]:
    return frozenset((by, to) for by, to in mesh(count) if by != reader)


@pytest.mark.parametrize("count", [3, 4])
def test_an_addition_at_once_overtakes_the_deletion_on_three_paths(count: int) -> None:
    """The order that was seen on live servers, found without being told."""
    found = damage(shape(AT_ONCE, count))
    assert found is not None and found.server == 2
    assert found.what == "keeps the old entry and the new one, as a conflict"
    assert found.events[:5] == (
        ("delete", 0, 0),
        ("delete", 0, 1),
        ("add", 0, 0),
        ("add", 0, 1),
        ("add", 1, 2),
    )
    assert told(found, NAMES).startswith(
        "s2 keeps the old entry and the new one, as a conflict: s1 makes the deletion, s1 sends s3 the deletion, "
        "s1 makes the addition, s1 sends s3 the addition, s3 sends s2 the addition"
    )


@pytest.mark.parametrize("count", [2, 3, 4])
def test_an_addition_that_waits_for_every_server_overtakes_nothing(count: int) -> None:
    assert damage(shape(WAITING, count)) is None


@pytest.mark.parametrize("count", [3, 4])
def test_to_wait_is_not_enough_while_clients_write_and_the_server_feeds_others(count: int) -> None:
    """Any change of s1 behind the deletion, passed on by s3 first, hides the deletion from s2: the wait never ends."""
    found = damage(shape(WAITING, count, others=1))
    assert found is not None and found.what == "never gets the deletion, and the entry is gone elsewhere"
    assert "a client writes another entry on s1" in told(found, NAMES)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_server_that_feeds_nobody_hides_nothing(count: int, others: int) -> None:
    assert damage(shape(WAITING, count, is_reader(count), others=others)) is None


def test_what_clients_write_to_an_entry_while_it_is_deleted_is_lost() -> None:
    """The risk of every such step, which it names: no wait helps."""
    found = damage(shape(WAITING, 3, is_reader(3), same=1))
    assert found is not None and found.what == "has lost a value that a client wrote"


@pytest.mark.parametrize("links", [mesh(3), is_reader(3)])
def test_values_that_are_written_again_take_nothing_from_any_server(links: frozenset[tuple[int, int]]) -> None:
    """As they are compared on all servers first: a later value of a client is never written over."""
    for others, same in ((0, 1), (1, 0), (1, 1)):
        assert damage(shape(AGAIN, 3, links, whole=False, others=others, same=same)) is None


def test_values_that_are_written_again_unlooked_at_undo_those_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleavings, "_ready", lambda shape, state: True)
    damage.cache_clear()
    found = damage(shape(AGAIN, 3, whole=False, same=1))
    damage.cache_clear()
    assert found is not None and found.what == "has lost a value that a client wrote"


def test_a_deletion_that_does_not_reach_a_server_is_never_ended() -> None:
    found = damage(shape(WAITING, 3, frozenset({(0, 1), (1, 0)}), without=frozenset({1})))
    assert found is not None and (found.server, found.what) == (
        2,
        "never gets the deletion, and the entry is gone elsewhere",
    )


def test_a_search_that_was_cut_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleavings, "MOST_STATES", 5)
    damage.cache_clear()
    found = damage(shape(WAITING, 4, others=1))
    damage.cache_clear()
    assert isinstance(found, Damage) and found.server is None and "not all orders were tried" in told(found, NAMES)


# The servers of a case


def model(names: str, feeds: list[tuple[str, str]], without: str) -> LogModel:
    """Servers of one letter; those in capitals make changes."""
    lots = [ChangeGroup("A", "a1", "a1", 1, "uid=ann", True)]
    servers = {
        name: Server(name, name if name.isupper() else None, None, {}, None, set() if name in without else {0})
        for name in names
    }
    links = [ModelLink(by, to, True) for by, to in feeds]
    return LogModel(
        lots, servers, links, lambda position: "A", lambda origin, number: "z", rules=None, losing=None, refuses=None
    )  # type: ignore[arg-type]


ADDED = {"do": "rewrite", "server": "A", "lots": [0], "entry": "uid=ann", "creates": True}
DELETED = {"do": "remove", "server": "A", "entry": "uid=ann", "everywhere": True}


def all_to_all(names: str) -> list[tuple[str, str]]:
    return [(by, to) for by in names for to in names if by != to]


def test_a_way_without_a_wait_is_refused_on_a_mesh_with_three_paths() -> None:
    of_three = model("ABC", all_to_all("ABC"), "C")
    assert "B keeps the old entry and the new one" in made_worse(of_three, [ADDED])
    assert "B never gets the deletion" in made_worse(of_three, [DELETED, ADDED])
    of_readers = model("ABCr", [*all_to_all("ABC"), ("A", "r"), ("B", "r")], "r")
    assert made_worse(of_readers, [DELETED, ADDED]) == ""


def test_the_servers_that_are_tried_are_found_among_many() -> None:
    """Where six servers feed each other behind hubs, the path that does the damage goes through servers that are left out."""
    chance = Random(11)
    for _ in range(20):
        names = list("ABCDEFG")
        chance.shuffle(names)
        writer, lacking, hub, healthy = "A", "B", "C", "D"
        feeds = [(writer, lacking), (lacking, hub), (hub, healthy), (writer, healthy), (healthy, writer)]
        feeds += [(writer, name) for name in "EFG"] + [(name, writer) for name in "EFG"]
        chance.shuffle(feeds)
        assert made_worse(model("".join(names), feeds, lacking), [DELETED, ADDED])
        assert not made_worse(
            model("".join(names), [feed for feed in feeds if feed[0] != lacking], lacking), [DELETED, ADDED]
        )


def test_no_link_that_is_off_counts() -> None:
    off = model("ABC", all_to_all("ABC"), "C")
    for link in off.links:
        link.runs = link.supplier != "C"
    assert made_worse(off, [DELETED, ADDED]) == ""


def test_every_pair_of_others_is_tried() -> None:
    """Of five servers only one gets the entry by two paths, whichever that is."""
    for one in "BCDE":
        feeds = [("A", name) for name in "BCDEX"] + [("X", one)]
        assert f"{one} never gets the deletion" in made_worse(model("ABCDEX", feeds, "X"), [DELETED, ADDED])
    assert len(list(combinations("BCDE", 2))) == 6
