"""The model of a repair against servers that are played change by change, and what must hold of whatever it says."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from random import Random
from typing import Any

import slow_mending
from slow_mending import World, fresh, random_world, unlike

from workbench.rules.send_session import SortedLog
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.sending import ONCE, Sending

Grouped = list[list[str]]
"""The changes of each lot, by the number of the lot."""


def grouped(world: World) -> Grouped:
    """Neighbouring changes of one origin that share their fate; changes of entries that may be lacking stand alone."""
    born = {change.entry for change in world.changes.values() if change.creates}

    def fate(position: str) -> Any:
        change = world.changes[position]
        alone = position if change.entry in born or change.mends else None
        seen = [(one.name, position in one.has, position in (one.log or ()), position <= one.top(origin_of(position)))
                for one in world.servers.values()]  # fmt: skip
        return origin_of(position), alone, seen

    ordered = sorted(world.changes, key=lambda position: (origin_of(position), position))
    return [list(some) for _, some in groupby(ordered, key=fate)]


def model_of(house: Any, world: World) -> tuple[Any, Grouped]:
    """The same world as a model, and which changes its lots are."""
    mending = house.mending
    lots: list[Any] = []
    kept: Grouped = []
    born = {change.entry for change in world.changes.values() if change.creates}
    for some in grouped(world):
        about = world.changes[some[0]]
        everywhere = all(some[0] in one.has for one in world.servers.values())
        if everywhere and about.entry not in born:
            continue  # nothing can be wrong about these
        entry = about.entry if about.entry in born else None
        lots.append(mending.ChangeGroup(origin_of(some[0]), some[0], some[-1], len(some), entry, about.creates))
        kept.append(some)
    ends = {end for one in world.servers.values() for span in one.vector.values() for end in (span.min, span.max)}
    servers = {}
    for one in world.servers.values():
        holds = {number for number, some in enumerate(kept) if some[0] in one.has}
        log = None
        if one.log is not None:
            mine = {end for number in holds for end in (kept[number][0], kept[number][-1])}
            mine |= {end for some in slow_mending.by_origin(one.log).values() for end in (min(some), max(some))}
            log = SortedLog((ends | mine) & one.log, origin_of, one.marks)
        servers[one.name] = mending.Server(one.name, one.origin, one.generation, dict(one.vector), log, holds, one.up)
    links = [mending.Link(tie.supplier, tie.consumer, tie.runs, tie.waits and dict(tie.waits)) for tie in world.ties]
    model = mending.LogModel(
        lots, servers, links, origin_of, fresh, rules=Sending, losing=lambda: Sending(ONCE), refuses=unlike
    )
    return model, kept


def changes_in(model: Any, kept: Grouped, lacks: Any) -> dict[str, set[str]]:
    """(server, lot) as changes by server."""
    found: dict[str, set[str]] = {name: set() for name in model.servers}
    for lack in lacks:
        known = kept[lack.lot] if lack.lot < len(kept) else [model.lots[lack.lot].last]
        found[lack.server] |= set(known)
    return found


def compare(world: World, model: Any, kept: Grouped, told: str) -> None:
    """Server by server, the same is missing, pending and held."""
    every = {one for some in kept for one in some} | {lot.last for lot in model.lots[len(kept) :]}
    for what, said in (("missing", model.missing()), ("pending", model.pending()), ("held", model.held())):
        mine = changes_in(model, kept, said)
        for name in world.servers:
            truly = world.servers[name].has & every if what == "held" else getattr(world, what)(name)
            assert mine[name] == truly, f"{what} on {name} after {told}: {mine[name] ^ truly}"


def random_effect(world: World, kept: Grouped, model: Any, random: Random) -> dict[str, Any]:
    """Something that a step may do here, with lots; `plainly` says it with changes."""
    names = sorted(world.servers)
    pair = random.sample(names, 2)
    writers = [name for name in names if world.servers[name].origin is not None]
    kinds = "run run feed feed unfeed start start write write rewrite rewrite initialise initialise forget skip save"
    what = random.choice(kinds.split())
    on = {"supplier": pair[0], "consumer": pair[1]}
    if what in ("run", "unfeed") and world.ties:
        tie = random.choice(world.ties)
        on = {"supplier": tie.supplier, "consumer": tie.consumer}
    if what in ("run", "feed", "skip") or (what == "unfeed" and world.ties):
        return {"do": what, **on}
    if what == "initialise" and world.servers[pair[0]].log is not None:
        return {"do": what, "source": pair[0], "server": pair[1]}
    if what == "forget":
        return {"do": what, "origin": random.choice(["1", "2", "9"])}
    held = sorted(model.servers[pair[0]].holds)
    if what == "save":
        return {"do": what, "lots": held[:3]}
    if what == "rewrite" and (able := [name for name in writers if model.servers[name].holds]):
        name = random.choice(able)
        lots = random.sample(sorted(model.servers[name].holds), 1)
        entry = model.lots[lots[0]].entry or f"rewritten {lots[0]}"
        return {"do": what, "server": name, "lots": lots, "entry": entry, "creates": random.random() < 0.4}
    if what == "start":
        return {"do": what, "server": pair[0]}
    return {"do": "write", "server": random.choice(writers)}


def plainly(effect: dict[str, Any], model: Any, kept: Grouped) -> dict[str, Any]:
    """The effect in the words of the slow world."""
    about = {("what" if key == "do" else key): value for key, value in effect.items()}
    if "lots" in about:
        lots = about.pop("lots")
        about["changes"] = [one for lot in lots for one in (kept[lot] if lot < len(kept) else [model.lots[lot].last])]
    return about


def follow(world: World, model: Any, kept: Grouped, random: Random, seen: Counter[str] | None = None) -> None:
    """A few effects, and life going on: after each one the model says what the world says."""
    compare(world, model, kept, "nothing")
    told = ["settle"]
    world.settle()
    model.settle()
    compare(world, model, kept, "settle")
    for _ in range(random.randrange(1, 7)):
        effect = random_effect(world, kept, model, random)
        told.append(str(effect))
        before = {name: set(one.has) for name, one in world.servers.items()}
        world.do(**plainly(effect, model, kept))
        model.do([effect])
        compare(world, model, kept, "; ".join(told))
        if seen is not None:
            seen[effect["do"]] += before != {name: one.has for name, one in world.servers.items()}
    world.go_on()
    model.go_on()
    compare(world, model, kept, "; ".join([*told, "go on"]))


def check_effects(house: Any, random: Random, seen: Counter[str] | None = None) -> None:
    """On a random world."""
    world = random_world(random)
    follow(world, *model_of(house, world), random, seen)


def cut_off(without: World, world: World) -> set[str]:
    """Who got what a supplier wrote after three rounds of changes in the one world, and does not in the other."""

    def reached(given: World) -> set[tuple[str, str]]:
        later = given.copy()
        for _ in range(2):
            later.go_on()
        before = {name: set(one.has) for name, one in later.servers.items()}
        later.go_on()
        made = [position for position in later.changes if not any(position in has for has in before.values())]
        maker = {one.origin: name for name, one in later.servers.items() if one.origin}
        return {
            (name, maker[origin_of(position)])
            for position in made
            for name, one in later.servers.items()
            if position in one.has
        }

    return {name for name, writer in reached(without) - reached(world) if name != writer}


def check_achieved(house: Any, random: Random, seen: Counter[str] | None = None) -> None:
    """What is said of a repair, against the world in which it is done and the one in which it is not."""
    world = random_world(random)
    model, kept = model_of(house, world)
    model.more = bool(sum(map(len, kept)) % 2)
    world.settle()
    without, model_now = world.copy(), model.copy()
    model_now.settle()
    effects = []
    for _ in range(random.randrange(1, 5)):
        effect = random_effect(world, kept, model_now, random)
        effects.append(effect)
        world.do(**plainly(effect, model_now, kept))
        model_now.do([effect])
    done = world.copy()
    world.go_on()
    before = without.copy()
    without.go_on()
    known = {one for some in kept for one in some}
    result, after = house.result.achieved(model, effects)
    compare(done, after, kept, str(effects))
    filling = any(effect["do"] == "initialise" for effect in effects)
    assert result.cut == (cut_off(without, world) if filling else set()), "cut"
    for name, one in world.servers.items():

        def told(lacks: Any, name: str = name) -> set[str]:
            return changes_in(model, kept, lacks)[name]

        saved = world.saved
        unsaid = (world.missing(name) & known) - without.missing(name) - saved
        # What it had and waits for now is taken from it, as long as life goes on.
        unsaid |= ((before.servers[name].has & known) - one.has) & world.pending(name) - saved
        # What no server had when all was delivered that could be, nothing takes away, where there are no others.
        if not model.more:
            unsaid &= set().union(*(other.has for other in before.servers.values()))
        assert told(result.restored) == before.lacking(name) & known & done.servers[name].has, "restored"
        assert told(result.lost) == (before.servers[name].has & known) - one.has, "lost"
        assert told(result.unsaid) == unsaid, "unsaid"
        assert told(result.left) == world.missing(name) & known, "left"
        assert told(result.pending) == world.pending(name) & known, "pending"
        if seen is not None:
            seen.update(what for what in ("restored", "lost", "unsaid") if told(getattr(result, what)))
            seen["cut"] += name in result.cut
            seen["saved"] += bool((world.missing(name) & known) - without.missing(name) & saved)
