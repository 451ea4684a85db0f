"""The model of a repair against servers played change by change: on given worlds, and on their files as a case holds them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mending_checks import check_achieved, check_effects, follow
from mending_files import case_of, lots_as_changes, model_from
from mesh_samples import csn
from slow_mending import World, fresh, random_world, unlike

from workbench.diagnosis.case_diagnosis import context_of
from workbench.repair.planner import models_of
from workbench.replication.changelog import plan_model
from workbench.rules import repair_model, repair_result
from workbench.rules.repair_model import ChangeGroup, Link, LogModel, MissingAt, Model, Server
from workbench.rules.repair_result import achieved, left_behind
from workbench.rules.send_session import SortedLog
from workbench.rules.vectors import Span
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.sending import ONCE, Sending


class House:
    """The modules under test."""

    mending = repair_model
    result = repair_result
    filling = plan_model


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32))
def test_after_each_effect_the_same_is_missing_pending_and_held(number: int) -> None:
    check_effects(House, Random(number))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_a_repair_achieves_is_what_the_servers_gain_and_lose_by_it(number: int) -> None:
    check_achieved(House, Random(number))


def test_the_random_worlds_reach_everything() -> None:
    seen: Counter[str] = Counter()
    for number in range(160):
        check_effects(House, Random(number), seen)
        check_achieved(House, Random(number), seen)
    few = {
        what for what in ("run", "feed", "start", "write", "rewrite", "initialise", "forget", "skip") if seen[what] < 3
    }
    assert not few, seen
    assert all(seen[what] > 3 for what in ("restored", "lost", "unsaid", "saved", "cut")), seen


@pytest.mark.parametrize("number", [8, 134, 335, *range(100, 109)])
def test_a_model_filled_from_files_says_what_the_servers_say(number: int, tmp_path: Path) -> None:
    random = Random(number)
    world = shown_world(random)
    context, findings = context_of(case_of(tmp_path, world))
    told = {(row["server"], row["position"]) for row in context.verdicts.missing}
    assert told == {(name, position) for name in world.servers for position in world.missing(name)}
    model = model_from(House, context, findings)
    follow(world, model, lots_as_changes(world, model), random)


def shown_world(random: Random) -> World:
    """A world of which the files show everything that is wrong. The order of the links is that of the case.

    Its servers have one generation: across two of them nothing is counted, and no plan takes a step.
    """
    world = random_world(random, births=False)
    world.forget_unshown()
    world.ties.sort(key=lambda tie: (tie.supplier, f"{tie.supplier}-to-{tie.consumer}"))
    for tie in world.ties:
        tie.waits = None
    for one in world.servers.values():
        one.up, one.generation = True, "g"
    return world


def test_positions_made_for_the_model_lie_above_all_that_is_known_and_rise(tmp_path: Path) -> None:
    world = shown_world(Random(8))
    (model,) = models_of(case_of(tmp_path, world)).values()
    made = [model.fresh(origin, number) for number in range(1, 5) for origin in ("1", "2", "77")]
    assert [made[at] < made[at + 3] for at in range(len(made) - 3)] == [True] * (len(made) - 3)
    assert min(made) > max(span.max or "" for one in model.servers.values() for span in one.vector.values())
    assert [model.origin_of(position) for position in made] == ["1", "2", "77"] * 4


# --- by hand


def model_with(*servers: Server, links: list[Link], lots: list[ChangeGroup]) -> Model:
    named = {one.name: one for one in servers}
    return LogModel(lots, named, links, origin_of, fresh, rules=Sending, losing=lambda: Sending(ONCE), refuses=unlike)


def server(name: str, origin: str | None, tops: dict[str, int], log: list[str] | None, holds: set[int]) -> Server:
    vector = {rid: Span(csn(0, int(rid)), csn(second, int(rid))) for rid, second in tops.items()}
    return Server(name, origin, "g", vector, None if log is None else SortedLog(log, origin_of), holds)


HIDDEN = ChangeGroup("1", csn(5, 1), csn(5, 1), 1, "uid=x", True)


def hidden_on_s2() -> Model:
    """s2 claims all of s1 and lacks one change; c1 is read-only, behind s2, and lacks it as well."""
    mine = [csn(second, 1) for second in (0, 5, 9)]
    return model_with(
        server("s1", "1", {"1": 9, "2": 0}, [*mine, csn(0, 2)], {0}),
        server("s2", "2", {"1": 9, "2": 0}, [mine[0], mine[2], csn(0, 2)], set()),
        server("c1", None, {"1": 9, "2": 0}, None, set()),
        links=[Link("s1", "s2", True), Link("s2", "s1", True), Link("s2", "c1", True)],
        lots=[HIDDEN],
    )


def test_sessions_bring_no_hidden_change_back_and_an_initialisation_only_to_its_server() -> None:
    model = hidden_on_s2()
    model.settle()
    model.go_on()
    assert {lack for lack in model.missing() if lack.lot == 0} == {MissingAt("s2", 0), MissingAt("c1", 0)}
    result, after = achieved(hidden_on_s2(), [{"do": "initialise", "source": "s1", "server": "s2"}])
    assert (result.restored, result.left, result.unsaid) == ({MissingAt("s2", 0)}, {MissingAt("c1", 0)}, frozenset())
    assert after.missing() == {MissingAt("c1", 0)}


def test_initialising_backwards_takes_the_change_from_the_last_that_has_it() -> None:
    result, after = achieved(hidden_on_s2(), [{"do": "initialise", "source": "s2", "server": "s1"}])
    assert (result.restored, result.lost, result.unsaid) == (frozenset(), {MissingAt("s1", 0)}, {MissingAt("s1", 0)})
    assert after.gone() == {0}
    saved, _ = achieved(
        hidden_on_s2(), [{"do": "save", "lots": [0]}, {"do": "initialise", "source": "s2", "server": "s1"}]
    )
    assert (saved.lost, saved.unsaid) == ({MissingAt("s1", 0)}, frozenset())


def test_writing_values_again_mends_an_entry_that_is_there_and_is_refused_where_it_is_not() -> None:
    again = {"do": "rewrite", "server": "s1", "lots": [0], "entry": "uid=x"}
    assert achieved(hidden_on_s2(), [again])[0].restored == frozenset()
    anew, _ = achieved(hidden_on_s2(), [{**again, "creates": True}])
    assert anew.restored == {MissingAt("s2", 0), MissingAt("c1", 0)}
    model = hidden_on_s2()
    model.lots[0] = ChangeGroup("1", HIDDEN.first, HIDDEN.last, 1, "uid=x")
    assert achieved(model, [again])[0].restored == {MissingAt("s2", 0), MissingAt("c1", 0)}


def test_what_a_server_refused_is_not_passed_on_by_it() -> None:
    """s3 would take the change from s1: that s2, which refused it, comes first must not hide it."""
    model = hidden_on_s2()
    model.servers["s3"] = server("s3", "3", {"1": 9, "2": 0}, [csn(0, 1), csn(5, 1), csn(9, 1), csn(0, 2)], {0})
    model.links = [Link("s1", "s2", True), Link("s2", "s3", True), Link("s1", "s3", True)]
    model.do([{"do": "rewrite", "server": "s1", "lots": [0], "entry": "uid=x"}])
    assert len(model.lots) - 1 not in model.servers["s2"].holds
    assert len(model.lots) - 1 in model.servers["s3"].holds


def test_what_life_brings_by_itself_is_no_merit_of_a_repair() -> None:
    behind = ChangeGroup("1", csn(1, 1), csn(9, 1), 9)
    model = model_with(
        server("s1", "1", {"1": 9}, [csn(0, 1), csn(1, 1), csn(9, 1)], {0}),
        server("s2", "2", {"1": 0, "2": 0}, [csn(0, 1), csn(0, 2)], set()),
        links=[Link("s1", "s2", True, {"1": csn(9, 1)})],
        lots=[behind],
    )
    nothing, _ = achieved(model, [{"do": "save", "lots": [0]}])
    assert (nothing.restored, nothing.pending) == (frozenset(), frozenset())
    woken, _ = achieved(model, [{"do": "write", "server": "s1"}])
    assert woken.restored == {MissingAt("s2", 0)}


def test_what_would_be_hidden_anyway_is_no_fault_of_a_repair() -> None:
    """s1 went back in time: its next change hides what it lost, whatever else is done."""
    lost = ChangeGroup("1", csn(1, 1), csn(9, 1), 9)
    model = model_with(
        server("s1", "1", {"1": 0, "2": 0}, [csn(0, 1), csn(0, 2)], set()),
        server("s2", "2", {"1": 9, "2": 0}, [csn(0, 1), csn(1, 1), csn(9, 1), csn(0, 2)], {0}),
        links=[Link("s2", "s1", True, {"1": csn(9, 1), "2": csn(0, 2)})],
        lots=[lost],
    )
    idle, _ = achieved(model, [{"do": "save", "lots": []}])
    early, _ = achieved(model, [{"do": "write", "server": "s2"}])
    late, _ = achieved(model, [{"do": "write", "server": "s1"}, {"do": "write", "server": "s2"}])
    assert (idle.restored, idle.left, idle.unsaid) == (frozenset(), {MissingAt("s1", 0)}, frozenset())
    assert (early.restored, early.left) == ({MissingAt("s1", 0)}, frozenset())
    assert (late.restored, late.left, late.unsaid) == (frozenset(), {MissingAt("s1", 0)}, frozenset())


def test_going_on_behind_what_is_gone_loses_it_and_waiting_does_not() -> None:
    gone, there = ChangeGroup("1", csn(1, 1), csn(4, 1), 4), ChangeGroup("1", csn(5, 1), csn(9, 1), 5)
    model = model_with(
        server("s1", "1", {"1": 9}, [csn(5, 1), csn(9, 1)], {0, 1}),
        server("s2", "2", {"1": 0, "2": 0}, [csn(0, 1), csn(0, 2)], set()),
        links=[Link("s1", "s2", True)],
        lots=[gone, there],
    )
    model.go_on()
    assert {lack for lack in model.pending() if lack.lot < 2} == {MissingAt("s2", 0), MissingAt("s2", 1)}
    result, _ = achieved(model, [{"do": "skip", "supplier": "s1", "consumer": "s2"}])
    assert {lack for lack in result.restored if lack.lot < 2} == {MissingAt("s2", 1)}
    assert (result.unsaid, model.changes(result.unsaid)) == ({MissingAt("s2", 0)}, 4)


def test_cleaning_an_origin_loses_what_of_it_some_lack() -> None:
    model = hidden_on_s2()
    model.servers["s1"].vector["3"] = Span(csn(0, 3), csn(7, 3))
    model.lots.append(ChangeGroup("3", csn(1, 3), csn(7, 3), 7))
    model.servers["s1"].holds.add(1)
    model.links = []
    result, after = achieved(model, [{"do": "forget", "origin": "3"}])
    assert {lack.server for lack in result.unsaid if lack.lot == 1} == {"s2", "c1"}
    assert not any("3" in one.vector for one in after.servers.values())


def test_an_agreement_made_for_a_while_leaves_the_others_as_they_are() -> None:
    model = hidden_on_s2()
    links = [vars(link) for link in model.links]
    model.do([{"do": "feed", "supplier": "s1", "consumer": "c1"}])
    assert len(model.links) == 4
    model.do([{"do": "unfeed", "supplier": "s1", "consumer": "c1"}])
    assert [vars(link) for link in model.links] == links


def test_trying_a_repair_changes_nothing_of_the_model_that_is_asked() -> None:
    model = hidden_on_s2()
    before = repr((model.lots, model.links, model.servers, model.saved, model.dead, model.made))
    effects = [{"do": "write", "server": "s1"}, {"do": "save", "lots": [0]}, {"do": "forget", "origin": "2"}]
    achieved(model, [*effects, {"do": "initialise", "source": "s2", "server": "s1"}])
    logs = [one.log and one.log.positions for one in model.servers.values()]
    assert repr((model.lots, model.links, model.servers, model.saved, model.dead, model.made)) == before
    assert logs == [one.log and one.log.positions for one in hidden_on_s2().servers.values()]


def test_whom_a_filled_hub_feeds_is_left_behind_if_others_write_meanwhile() -> None:
    """a feeds h, h feeds r: what a writes before h is filled comes to h as data, and r has no record to begin at."""
    seen = {"1": Span(csn(1, 1), csn(9, 1))}
    log = [csn(second, 1) for second in range(1, 10)]

    def server(name: str, origin: str | None, keeps_log: bool = True) -> Server:
        return Server(name, origin, "G", dict(seen), SortedLog(log, origin_of) if keeps_log else None)

    servers = {one.name: one for one in (server("a", "1"), server("h", None), server("r", None, False))}
    links = [Link("a", "h", True), Link("h", "r", True)]
    model = LogModel([], servers, links, origin_of, fresh, rules=Sending, losing=lambda: Sending(ONCE), refuses=unlike)
    fill = [{"do": "initialise", "source": "a", "server": "h"}]
    assert left_behind(model, fill) == {"r"} and not achieved(model, fill)[0].cut
    assert left_behind(model, [*fill, {"do": "initialise", "source": "h", "server": "r"}]) == frozenset()
    assert left_behind(model, [{"do": "initialise", "source": "h", "server": "r"}]) == frozenset()
    model.links.append(Link("a", "r", True))
    assert left_behind(model, fill) == frozenset()


@pytest.mark.parametrize("more", [False, True])
def test_what_no_server_holds_no_repair_takes_away(more: bool) -> None:
    """s2 waits for 5 and 6; nobody has 5: the session that brings 6 moves the vector of s2 over it.

    more  there is another server, of which nothing is known: it may have 5
    """
    lots = [ChangeGroup("1", csn(5, 1), csn(5, 1)), ChangeGroup("1", csn(6, 1), csn(6, 1))]
    s1 = Server("s1", "1", "G", {"1": Span(csn(1, 1), csn(6, 1))}, SortedLog([csn(1, 1), csn(6, 1)], origin_of), {1})
    s2 = Server("s2", "2", "G", {"1": Span(csn(1, 1), csn(1, 1))}, SortedLog([csn(1, 1)], origin_of))
    model = LogModel(
        lots,
        {"s1": s1, "s2": s2},
        [Link("s1", "s2", False)],
        origin_of,
        fresh,
        rules=Sending,
        losing=None,
        refuses=unlike,
        more=more,
    )
    result, after = achieved(model, [{"do": "run", "supplier": "s1", "consumer": "s2"}])
    assert (result.restored, result.unsaid) == ({MissingAt("s2", 1)}, {MissingAt("s2", 0)} if more else set())
    assert MissingAt("s2", 0) in after.missing()
