"""What is said of generated Kanidm fleets comes true: every finding, verdict and plan is held against the fleet, run on.

Nothing here is shared with the detectors: what a server shows, lacks and is answered is worked out anew from the fleet itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kanidm_fleets import Change, Names, Node, Pair, World, answer, generated, write
from kanidm_samples import DAY

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.plan_types import EvaluatedRepair, Plan
from workbench.repair.planner import plan
from workbench.systems.kanidm.cid import SECOND
from workbench.systems.kanidm.rules.merging import Live

ORDERS = 4
"""In so many orders the links pull; one of them begins with the first link, one with the last. In one more of each server, that
server pulls before all others do.
"""

REFUSALS = ("DomainMismatch", "NoRUVOverlap", "Critical", "Refresh", "Unwilling", "Split")
DECIDED = {"Supplied": ("Ok", "V1"), "Nothing": ("Ok", "NoChangesAvailable"), "Split": ("Ok", "V1"),
           "DomainMismatch": ("DomainMismatch", "DomainMismatch"), "Refresh": ("Refresh", "RefreshRequired"),
           **{one: (one, "UnwillingToSupply") for one in ("NoRUVOverlap", "Critical", "Unwilling")}}  # fmt: skip
NAMED_BY = {"DomainMismatch": {"UNRELATED_DATA"}, "NoRUVOverlap": {"NO_OVERLAP"}, "Critical": {"DIVERGED"},
            "Refresh": {"REFRESH_REQUIRED"}, "Unwilling": {"SUPPLIER_BEHIND"},
            "Split": {"ROLLED_BACK", "DUPLICATE_ORIGIN"}}  # fmt: skip


@dataclass
class Oracle:
    """A fleet as it was collected, and what becomes of it."""

    world: World
    names: Names
    wrong: list[str] = field(default_factory=list)

    def no(self, what: str, *about: Any) -> None:
        """Note a contradiction."""
        self.wrong.append(f"{what}: {' '.join(map(str, about))}")

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.world.servers

    @cached_property
    def futures(self) -> list[World]:
        """The fleet after all pulls, in several orders."""
        links, random = self.world.links, Random(len(self.world.past))
        orders = [links, links[::-1], *(random.sample(links, len(links)) for _ in range(ORDERS - 2))]
        orders += [sorted(links, key=lambda link: link[1] != name) for name in self.nodes]
        return [self.world.later(order) for order in orders]

    def alike(self, name: str) -> list[Node]:
        """The other servers with the same data."""
        mine = self.nodes[name]
        return [one for one in self.nodes.values() if one is not mine and one.domain == mine.domain]

    def lacks(self, name: str, world: World | None = None) -> dict[Change, Any]:
        """What others of its domain show and the server does not settle, with the creation of the entry."""
        nodes = (world or self.world).servers
        mine, found = nodes[name], {}
        for other in nodes.values():
            if other is mine or other.domain != mine.domain:
                continue
            for one in other.shown():
                at = other.entries[one.entry].at
                if not mine.settles(one, at) and (one.attribute or one.entry in mine.entries or not covered(mine, one)):
                    found[one] = at
        return found

    def waits(self, name: str) -> dict[Change, Any]:
        """What it has not seen; which server made a change is not known of an origin that two use, so that one is left out."""
        node = self.nodes[name]
        doubted = node.uuid if self.shared(name) else None
        found = self.lacks(name).items()
        return {
            change: at
            for change, at in found
            if (not covered(node, change) or self.never_had(name, change, at)) and change.cid[1] != doubted
        }

    def never_had(self, name: str, one: Change, at: Any) -> bool:
        """True if it shows the entry as it was before, of an origin that others still claim and nobody owes to anybody."""
        node, of = self.nodes[name], one.cid[1]
        mine = node.entries.get(one.entry)
        return (
            one.attribute is not None
            and of not in node.ranges
            and isinstance(mine, Live)
            and mine.at == at
            and any(of in other.ranges for other in self.alike(name))
            and not any(
                self.owes(by, to, of) for by in self.nodes.values() for to in self.nodes.values() if by is not to
            )
        )

    @staticmethod
    def owes(by: Node, to: Node, of: str) -> bool:
        """True if a session of one server with another one is about changes of the origin."""
        if of not in by.ranges or answer(by, to) not in ("Supplied", "Split"):
            return False
        last, seen = by.ranges[of][1], to.ranges.get(of)
        return last >= by.cut and (seen is None or seen[1] < last)

    def comes(self, name: str, one: Change, at: Any) -> list[bool]:
        """Of each future: has the change arrived, or something that wins over it?"""
        return [future.servers[name].settles(one, at) for future in self.futures]

    def refused(self) -> dict[Pair, str]:
        """Over links: why nothing comes."""
        found = {(one, other): answer(self.nodes[one], self.nodes[other]) for one, other in self.world.links}
        return {pair: why for pair, why in found.items() if why in REFUSALS}

    @property
    def in_time(self) -> bool:
        """False where files are days apart: a server that takes something is of today again, and the order decides."""
        clocks = [one.last for one in self.nodes.values()]
        return max(clocks) - min(clocks) < DAY * SECOND

    def may_have_lived_on(self, consumer: str, supplier: str) -> bool:
        """True if the supplier has own changes of the consumer that are younger than its files, which may be of before them."""
        node = self.nodes[consumer]
        ends = self.nodes[supplier].ranges.get(node.uuid)
        return bool(ends) and ends[1] > node.last and not self.shared(consumer)

    def shared(self, name: str) -> bool:
        """True if another server makes changes as the same origin."""
        return sum(one.uuid == self.nodes[name].uuid for one in self.nodes.values()) > 1


def covered(node: Node, one: Change) -> bool:
    """True if the server claims the change; of an origin that it does not list it may have forgotten what is old."""
    time, of = one.cid
    ends = node.ranges.get(of)
    return time <= ends[1] if ends else time < node.cut


# --- the pairs


def check_pairs(oracle: Oracle, found: Mapping[str, Any]) -> None:
    for row in found["pairs"]:
        supplier, consumer = oracle.nodes[row["supplier"]], oracle.nodes[row["consumer"]]
        told = answer(supplier, consumer)
        if (row["decision"], row["message"]) != DECIDED[told]:
            oracle.no("another answer", told, row["supplier"], row["consumer"], row["decision"], row["message"])
        doubted = told == "Split" and oracle.may_have_lived_on(consumer.name, supplier.name)
        if doubted and not any(one["rule"] == "own_younger" for one in row["reasons"]):
            oracle.no("may be refused, and nothing says so", row["supplier"], row["consumer"])
        if row["delivers"] != (told in ("Supplied", "Refresh")) and not doubted:
            oracle.no("delivers", told, row["supplier"], row["consumer"])
        if told == "Supplied":
            sent = sent_by(oracle.world, supplier.name, consumer.name) or set()
            # What the RUV has forgotten comes along with a later change of its entry.
            counts = Counter(oracle.names.origin(one.cid[1]) for one in sent)
            listed = Counter(oracle.names.origin(one.cid[1]) for one in sent if one.cid in supplier.cids)
            said = Counter({of: one["count"] for of, one in row["to_send"].items()})
            if not listed <= said <= counts:
                oracle.no("sends something else", row["supplier"], row["consumer"], row["to_send"], dict(counts))


# --- the verdicts


def check_pending(oracle: Oracle, found: Mapping[str, Any]) -> None:
    origins = {oracle.names.origin(uuid): uuid for uuid in oracle.names.letters}
    told: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in found["pending"]:
        told[row["server"], origins[row["origin"]]] = row
    waiting = {name: oracle.waits(name) for name in oracle.nodes}
    for (name, of), row in told.items():
        mine = {change: at for change, at in waiting[name].items() if change.cid[1] == of}
        if row["count"] != len(mine):
            oracle.no("pending, another count", name, of, row["count"], len(mine))
        come = [oracle.comes(name, change, at) for change, at in mine.items()]
        certain = row["may_refuse"] is None and oracle.in_time
        some = [one in future.servers[name].shown() for future in oracle.futures for one in mine]
        coming = bool(row["suppliers"] or row.get("through"))
        counts = [
            sum(arrived) for arrived in zip(*come, strict=True)
        ]  # which of them arrive, the order of pulls decides
        least = row["available"] - max(row["may_pass_over"].values(), default=0)
        if coming and certain and min(counts) < least:
            oracle.no("on the way, and does not come", name, of, row, come)
        if coming and max(counts) < row["available"] and row["may_refuse"] != "own_since":
            oracle.no("on the way, and never comes", name, of, row, come)
        if coming and certain and min(counts) > row["available"]:
            oracle.no("comes, and is said not to", name, of, row, come)
        if not coming and any(some):
            oracle.no("nobody would send it, and it comes", name, of, row, sum(some))
    for name, waits in waiting.items():
        for of in {change.cid[1] for change in waits}:
            if (name, of) not in told:
                oracle.no("waits, and is not told", name, of)


def _named(oracle: Oracle, row: Mapping[str, Any]) -> tuple[int, str | None, str]:
    return oracle.names.entries[row["entry"]], row["attribute"], row["position"]


def check_missing(oracle: Oracle, found: Mapping[str, Any]) -> None:
    told = {(row["server"], *_named(oracle, row)) for row in found["missing"]}
    for name in oracle.nodes:
        ever = {
            (one.entry, one.attribute, oracle.names.text(one.cid))
            for future in [oracle.world, *oracle.futures]
            for one in future.servers[name].shown()
        }
        for row in [row for row in found["missing"] if row["server"] == name]:
            if _named(oracle, row) in ever:
                oracle.no("missing, and it comes", name, row["position"], row["attribute"])
            for holder in row["held_by"]:
                shown = {(x.entry, x.attribute, oracle.names.text(x.cid)) for x in oracle.nodes[holder].shown()}
                if _named(oracle, row) not in shown:
                    oracle.no("held by one that does not have it", holder, row)
        for one, at in oracle.lacks(name).items():
            if oracle.never_had(name, one, at):
                continue  # it waits for that
            text = oracle.names.text(one.cid)
            whole = (name, one.entry, one.attribute, text)
            if covered(oracle.nodes[name], one) and whole not in told and not _doubted(oracle, found, name, one):
                oracle.no("lacks what it claims, and nothing says so", name, one)


def deleted(oracle: Oracle, entry: int) -> bool:
    """True if some server shows the tombstone: it beats whatever was changed before."""
    return any(x.attribute is None and x.entry == entry for node in oracle.nodes.values() for x in node.shown())


def _doubted(oracle: Oracle, found: Mapping[str, Any], name: str, one: Change) -> bool:
    dead = one.attribute is not None and deleted(oracle, one.entry)
    text, of = oracle.names.text(one.cid), oracle.names.origin(one.cid[1])
    rows = [row for row in found["unknown"] if (row["server"], row["origin"]) == (name, of)]
    return dead or any(row["from"] <= text <= row["to"] for row in rows)


def check_stranded(oracle: Oracle, found: Mapping[str, Any]) -> None:
    for row in found["stranded"]:
        named = _named(oracle, row)
        for future in oracle.futures:
            for other in future.servers.values():
                if other.name != row["server"] and named in {
                    (x.entry, x.attribute, oracle.names.text(x.cid)) for x in other.shown()
                }:
                    oracle.no("stranded, and it spreads", row["server"], row["position"], other.name)


# --- who refuses whom


def check_refusals(oracle: Oracle, found: Mapping[str, Any], made: Plan) -> None:
    refused, codes = oracle.refused(), defaultdict(set)
    for one in found["findings"]:
        codes[one["code"]].add(one["server"])
    for (supplier, consumer), why in refused.items():
        ends = {supplier} if why == "Unwilling" else {consumer} if why in ("Refresh", "Split") else {supplier, consumer}
        named = {server for code in NAMED_BY[why] for server in codes[code]}
        if why == "Split" and (oracle.shared(consumer) or oracle.may_have_lived_on(consumer, supplier)):
            continue
        if not ends & named:
            oracle.no("refused, and no finding says so", why, supplier, consumer)
    whole = {
        (one, other): answer(oracle.nodes[one], oracle.nodes[other])
        for one in oracle.nodes
        for other in oracle.nodes
        if one != other
    }
    for one in found["findings"]:
        name, code, text = one["server"], one["code"], one["summary"]
        if code == "REFRESH_REQUIRED":
            some = re.search(r"behind what (.*) still remember", text)
            for supplier in some[1].split(", ") if some else ():
                if whole[supplier, name] != "Refresh":
                    oracle.no("is not to be refreshed", supplier, name, whole[supplier, name])
            could = re.search(r"; (.*) still could", text)
            for supplier in could[1].split(", ") if could else ():
                if whole[supplier, name] not in ("Supplied", "Nothing"):
                    oracle.no("could not", supplier, name, whole[supplier, name])
        if code == "SUPPLIER_BEHIND":
            some = re.search(r"behind what (.*) still remember", text)
            for consumer in some[1].split(", ") if some else ():
                if whole[name, consumer] != "Unwilling":
                    oracle.no("is not behind", name, consumer, whole[name, consumer])
        if code == "ROLLED_BACK":
            if oracle.shared(name):
                oracle.no("own changes lost of an origin of two", name)
            if "Split" not in {why for (_, consumer), why in whole.items() if consumer == name}:
                knows = max((time for time, of in oracle.nodes[name].cids if of == oracle.nodes[name].uuid), default=0)
                ahead = [
                    x.name for x in oracle.alike(name) if x.ranges.get(oracle.nodes[name].uuid, (0, -1))[1] > knows
                ]
                if not ahead:
                    oracle.no("was not rolled back", name)
        if code == "OWN_CHANGES_HIDDEN" and oracle.shared(name):
            oracle.no("own changes hidden of an origin of two", name)
    for one in found["findings"]:  # of servers that are apart one finding names the odd one, and the others in its text
        codes[one["code"]] |= {name for name in oracle.nodes if re.search(rf"\b{name}\b", one["summary"])}
    needs = {tuple(one.need.split()[:2]) for one in made.courses}
    for code, name in needs:
        if (
            code in ("REFRESH_REQUIRED", "SUPPLIER_BEHIND", "DIVERGED", "NO_OVERLAP", "ROLLED_BACK")
            and name not in codes[code]
        ):
            oracle.no("the plan names what the diagnosis does not", code, name)


# --- floors


def purged(world: World, name: str) -> World:
    """A copy in which a server forgets what is too old, as its next purge does."""
    twin = deepcopy(world)
    one = twin.servers[name]
    one.cids = {cid for cid in one.cids if cid[0] >= one.cut} | {(one.last, one.uuid)}
    one.entries = {n: state for n, state in one.entries.items() if isinstance(state, Live) or state.at[0] >= one.cut}
    return twin


def sent_by(world: World, supplier: str, consumer: str) -> set[Change] | None:
    """What a pull brings now; None: nothing can be supplied."""
    if answer(world.servers[supplier], world.servers[consumer]) not in ("Supplied", "Nothing"):
        return None
    twin = deepcopy(world)
    twin.pull(twin.tick(), twin.servers[supplier], twin.servers[consumer])
    return twin.sent


def left_behind(oracle: Oracle, after: World, ends: Pair, of: str) -> bool:
    """Can the consumer be supplied with changes of the origin now, and not then, for what is forgotten of this very origin?"""
    supplier, consumer = (oracle.nodes[name] for name in ends)
    if answer(supplier, consumer) != "Supplied" or of not in supplier.ranges or supplier.ranges[of][1] < supplier.cut:
        return False
    seen = consumer.ranges.get(of)
    if seen and seen[1] >= supplier.ranges[of][1]:
        return False
    late = answer(after.servers[ends[0]], consumer)
    if late in ("Refresh", "Critical"):
        begins = after.servers[ends[0]].ranges.get(of)
        return bool(begins and seen and seen[1] < begins[0])
    now, then = (sent_by(world, *ends) for world in (oracle.world, after))
    lost = {one.cid for one in now or () if one.cid[1] == of} - {one.cid for one in then or ()}
    return bool(lost) or late == "NoRUVOverlap"


def check_floors(oracle: Oracle, found: Mapping[str, Any]) -> None:
    origins = {oracle.names.origin(uuid): uuid for uuid in oracle.names.letters}
    for row in found["floors"]:
        of = origins[row["origin"]]
        for one in row["servers"]:
            node = oracle.nodes[one["server"]]
            after = purged(oracle.world, node.name)
            listed = [cid for cid in node.cids if cid[1] == of and cid[0] > -(10**30)]
            old = {cid for cid in listed if cid[0] < node.cut}
            if (one["listed"], one["forgets"]) != (len(listed), len(old)):
                oracle.no("listed, forgets", node.name, of, one["listed"], one["forgets"], len(listed), len(old))
            told = {
                other.name: left_behind(oracle, after, (node.name, other.name), of) for other in oracle.alike(node.name)
            }
            if any(oracle.may_have_lived_on(name, node.name) for name in told):
                continue  # whether these refuse what is sent now, nothing tells
            left = sorted(name for name, behind in told.items() if behind)
            if one["leaves_behind"] != left:
                oracle.no("leaves behind", node.name, of, one["leaves_behind"], left)


# --- plans


def refreshes(says: str) -> list[Pair]:
    """(server, source) of each refresh that a way says it does, in their order."""
    if found := re.match(r"let (\w) refresh itself from (\w)\b", says):
        return [(found[1], found[2])]
    return re.findall(r"\b(\w) from (\w)\b", says) if says.startswith("refresh ") else []


def held_by_any(world: World) -> set[Change]:
    """What some server shows."""
    return {one for node in world.servers.values() for one in node.shown()}


def thrown_away(before: World, after: World) -> set[Change]:
    """What nobody shows any more, and nothing came in its place."""
    at = {one: node.entries[one.entry].at for node in before.servers.values() for one in node.shown()}
    gone = held_by_any(before) - held_by_any(after)
    stay = {number for node in after.servers.values() for number in node.entries}
    gone = {
        change for change in gone if change.attribute or change.entry in stay
    }  # else a tombstone of use to no server
    return {one for one in gone if not any(node.settles(one, at[one]) for node in after.servers.values())}


def check_plan(oracle: Oracle, found: Mapping[str, Any], made: Plan) -> None:
    """A plan plays one order of pulls. Where the order decides, what it says has to come true in one of those that are played."""
    for name in oracle.nodes:
        standing = sum(row["missing"] + row["pending"] for row in made.before if row["server"] == name)
        lacks = oracle.lacks(name)
        sure = sum(not _doubted(oracle, found, name, one) for one in lacks)
        if made.before and not sure <= standing <= len(lacks):
            oracle.no("before", name, standing, sure, len(lacks))
    told = []
    for future in oracle.futures:
        before, oracle.wrong = oracle.wrong, []
        _check_plan_from(oracle, future, found, made)
        told.append(oracle.wrong)
        oracle.wrong = before
        if not told[-1]:
            return
    oracle.wrong += told[0]


def _check_plan_from(oracle: Oracle, world: World, found: Mapping[str, Any], made: Plan) -> None:
    """Every refresh that is compared, in the fleet as the chosen steps before it leave it: what it restores and throws away."""
    courses = {
        need: [one for one in made.courses if one.need == need] for need in dict.fromkeys(x.need for x in made.courses)
    }
    for need, ways in courses.items():
        for course in [*(one for one in ways if not one.chosen), *(one for one in ways if one.chosen)]:
            told = refreshes(course.says)
            if not told:
                if course.chosen:
                    return  # written again, or forgotten
                continue
            after = deepcopy(world)
            for server, source in told:
                after.refresh(after.tick(), after.servers[source], after.servers[server])
            after.settle()
            lost = thrown_away(world, after)
            moot = sum(deleted(oracle, one.entry) for one in held_by_any(world) if one.attribute)
            alive = {n for x in world.servers.values() for n, state in x.entries.items() if isinstance(state, Live)}
            moot += sum(change.attribute is None and change.entry not in alive for change in held_by_any(world))
            if not len(lost) <= course.lost <= len(lost) + moot:
                oracle.no("loses something else", need, course.way, course.lost, len(lost), lost)
            if course.chosen:
                if len({one.domain for one in oracle.nodes.values()}) == 1:
                    _restored(oracle, found, course, world, after)
                world = after
    if made.steps:
        for row in made.after:
            lacks = oracle.lacks(row["server"], world)
            left = {one for one in lacks if not _doubted(oracle, found, row["server"], one)}
            # What it never had may lie between changes of which nobody can tell.
            never = {one for one, at in lacks.items() if oracle.never_had(row["server"], one, at)} - left
            if not len(left) <= row["missing"] + row["pending"] <= len(left | never):
                oracle.no("afterwards", row, len(left), left)


def check_domains(oracle: Oracle, case: Case, found: Mapping[str, Any], made: Plan) -> None:
    """Which of two domains ends a person says: no plan does by itself, and each of the ways comes true once it is named."""
    asked = set()
    for course in made.courses:
        told = refreshes(course.says)
        ends = {oracle.nodes[server].domain for server, source in told} - {oracle.nodes[x].domain for _, x in told[:1]}
        people = [node for node in oracle.nodes.values() if node.domain in ends and node.entries]
        if people and course.chosen:
            oracle.no("a domain ends that nobody named", course.need, course.way)
        if people and not course.unasked and not course.refused:
            oracle.no("a domain may end without a word", course.need, course.way)
        if people and course.unasked and not course.way.startswith("automatic"):
            asked.add(course.way)
    if any(step.assumes == ("data_named_by_person",) for step in made.steps):
        oracle.no("taken for named, and nobody named it", made.steps)
    for way in sorted(asked):
        named = plan(case, ways=[way])
        if not any(course.chosen and course.way == way for course in named.courses):
            oracle.no("named, and not planned", way)
        check_plan(oracle, found, named)


def _restored(oracle: Oracle, found: Mapping[str, Any], course: EvaluatedRepair, before: World, after: World) -> None:
    came = [
        (name, change)
        for name in oracle.nodes
        for change, at in oracle.lacks(name, before).items()
        if after.servers[name].settles(change, at) and not _doubted(oracle, found, name, change)
    ]
    moot = sum(deleted(oracle, one.entry) for name in oracle.nodes for one in oracle.lacks(name) if one.attribute)
    # A server that may refuse what it is sent, or not, may get that without the repair.
    since = {name for name in oracle.nodes if any(oracle.may_have_lived_on(name, x.name) for x in oracle.alike(name))}
    sure = [change for name, change in came if name not in since or covered(oracle.nodes[name], change)]
    if not len(sure) <= course.restored <= len(came) + moot:
        oracle.no("restores something else", course.need, course.way, course.restored, len(came), came)


CHECKS = (check_pairs, check_pending, check_missing, check_stranded, check_floors)


def case_of(world: World, names: Names, folder: Path, linked: bool) -> Case:
    made = Case.create(folder / "case")
    made.load([write(world, folder / "in", names, linked)])
    return made


def contradictions(seed: int, folder: Path) -> list[str]:
    """What the tool says of a generated fleet and is not so."""
    world = generated(seed)
    names = Names(world)
    linked = seed % 3 != 0
    if not linked:
        world.links = [(one, other) for one in world.servers for other in world.servers if one != other]
    case = case_of(world, names, folder, linked)
    found = json.loads(json.dumps(diagnose(case)))
    oracle = Oracle(world, names)
    for check in CHECKS:
        check(oracle, found)
    made = plan(case)
    check_refusals(oracle, found, made)
    check_plan(oracle, found, made)
    check_domains(oracle, case, found, made)
    return oracle.wrong


MENDED = (119, 134, 158, 196, 224, 230, 249, 280, 299, 303, 374, 380, 387, 395, 414, 423, 475, 498, 511, 532, 616, 742)
"""Fleets that found a fault, in what was said of them or in how that was checked."""


@pytest.mark.parametrize("seed", [*range(25), *MENDED])
def test_what_is_said_of_a_fleet_comes_true(seed: int, tmp_path: Path) -> None:
    assert contradictions(seed, tmp_path) == []


@pytest.mark.slow
def test_what_is_said_of_many_fleets_comes_true(tmp_path: Path) -> None:
    wrong = {seed: found for seed in range(500) if (found := contradictions(seed, tmp_path / str(seed)))}
    assert not wrong


def test_the_fleets_are_answered_in_every_way_there_is() -> None:
    answers: Counter[str] = Counter()
    for seed in range(100):
        nodes = generated(seed).servers
        answers.update(answer(one, other) for one in nodes.values() for other in nodes.values() if one is not other)
    assert {*REFUSALS, "Supplied", "Nothing"} - {"Critical"} <= answers.keys()


def test_of_own_changes_under_an_origin_of_two_nothing_is_said_to_be_lost(tmp_path: Path) -> None:
    """B was started from a copy of A, with its UUID; each has written since."""
    world = World("ac", [("a", "c"), ("c", "a")])
    world.refresh(world.tick(), world.servers["a"], world.servers["c"])
    world.clone(world.servers["a"], "b")
    for name in "ab":
        world.change(world.servers[name], Random(1))
        world.pull(world.tick(), world.servers[name], world.servers["c"])
    names = Names(world)
    found = diagnose(case_of(world, names, tmp_path, True))
    (one,) = (one for one in found["findings"] if one["code"] == "DUPLICATE_ORIGIN")
    assert one["summary"].startswith(f"a and b make changes as one origin, {names.origin('a1')}")
    assert not {"ROLLED_BACK", "OWN_CHANGES_HIDDEN"} & {one["code"] for one in found["findings"]}
    own = names.origin("a1")
    assert not [row for row in found["pending"] if row["server"] in "ab" and row["origin"] == own]
    told = {(row["server"], row["why"]) for row in found["unknown"] if row["origin"] == own}
    assert ("a", "duplicate_origin") in told
    refused = {(row["supplier"], row["consumer"]): row for row in found["pairs"]}["c", "a"]
    assert not refused["delivers"] and "which two servers use" in refused["reasons"][0]["says"]


def test_who_still_uses_an_origin_that_two_had_is_not_called_rolled_back(tmp_path: Path) -> None:
    """A and B, a clone of it, were put back: C has a change of their origin that both refuse. The first is refreshed before."""
    world = World("ac", [("a", "c"), ("c", "a")])
    world.refresh(world.tick(), world.servers["a"], world.servers["c"])
    world.past.append(deepcopy(world.servers))
    world.clone(world.servers["a"], "b")
    world.change(world.servers["a"], Random(1))
    world.pull(world.tick(), world.servers["a"], world.servers["c"])
    world.restore(world.servers["a"], 1)
    made = plan(case_of(world, Names(world), tmp_path, True))
    needs = {tuple(course.need.split()[:2]) for course in made.courses}
    assert needs == {("DUPLICATE_ORIGIN", "a"), ("DUPLICATE_ORIGIN", "b")}
