"""Plans as the ladder of repairs makes them, each with servers in memory on which it is needed, and how it has to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from memory_servers import (
    GENERATION,
    PASSWORD,
    RIDS,
    SUFFIX,
    Change,
    Fleet,
    Stored,
    agree,
    agreement,
    csn,
    dn_of,
    encoded,
    mesh,
    person,
    switch,
)

from workbench.diagnosis.closed_ways import LinkedPairs
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.repair.plan_types import DEAD, HIDDEN, Need, Plan, ProposedRepair, Step
from workbench.rules.send_session import SEND
from workbench.systems.ds389.native import agreement_dn, escaped, keep_alive_dn, stamp
from workbench.systems.ds389.repairs import data, filling, saving
from workbench.systems.ds389.repairs.data import Recreate, Rewrite
from workbench.systems.ds389.repairs.evidence import Missed, Present
from workbench.systems.ds389.repairs.filling import Clean, Initialise
from workbench.systems.ds389.repairs.links import ROLLED_BACK, Enable, Rescue, TemporaryAgreement, Wake

MADE_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PENDING = "PENDING_CHANGES"


@dataclass
class Repair:
    """A fleet in need, the plan for it, the writes that it takes in their order, and what has to hold in the end."""

    fleet: Fleet
    plan: Plan
    writes: list[tuple[str, str, str]]
    check: Callable[[Fleet], None] = lambda fleet: None
    down: tuple[str, ...] = field(default_factory=tuple)


def plan_of(fleet: Fleet, steps: Iterable[Step], also: Iterable[Any] = ()) -> Plan:
    """The plan with these steps, on the servers as they are now."""
    servers = [
        {
            "server": one.name,
            "suffix": SUFFIX,
            "origin": None if one.rid == RIDS["c1"] else one.rid,
            "generation": one.generation,
            "left_out": [],
            "vector": dict(one.vector),
        }
        for one in fleet.servers.values()
    ]
    numbered = tuple(replace(step, key=f"{number}-{step.key}") for number, step in enumerate(steps, 1))
    return Plan("case", "ds389", "1", MADE_AT.isoformat(), tuple(servers), (), numbered, tuple(also), (), ())


def view_of(fleet: Fleet, excluded: str = "", pairs: Iterable[Any] = (), stranded: Iterable[Any] = ()) -> Any:
    """What a repair looks at, as far as it does."""
    links, running, statuses = [], [], {}
    for one in fleet.servers.values():
        for dn, link in one.links.items():
            name = one.config[dn].values["cn"][0].decode()
            on = one.config[dn].values.get("nsds5ReplicaEnabled", [b"on"]) == [b"on"]
            about = {"supplier": one.name, "consumer": link.consumer}
            where = {"suffix": SUFFIX, "address": f"{link.consumer}.test:389"}
            links.append(
                SimpleNamespace(
                    **about, name=name, enabled=on, runs=on, blocked=None, blind=False, failure=None, **where
                )
            )
            running.append(SimpleNamespace(**about, runs=on, waits="" if link.asleep else None))
            statuses[one.name, SUFFIX, name] = {"excluded": excluded}
    servers = {
        one.name: SimpleNamespace(
            name=one.name,
            origin=None if one.rid == RIDS["c1"] else one.rid,
            up=not one.down,
            holds={0} if one.name in ("s1", "s2") else set(),
            log=one.log,
            works=False,  # no session is tried on this model
            source=None,
            vector={},
            forgets=frozenset(),
        )
        for one in fleet.servers.values()
    }
    lot = SimpleNamespace(origin="3", first="a", last="b", changes=1, entry=None)
    model = SimpleNamespace(servers=servers, links=running, lots=[lot, lot], origin_of=lambda position: "3", more=False)
    model.copy, model.settle, model.go_on, model.do = lambda: model, lambda: None, lambda: None, lambda effects: None
    model.missing = model.pending = model.held = model.kept = set  # whatever is done, nothing is hidden by it
    model.given, model.saved, model.session = range(0), set(), lambda link: False
    topology = SimpleNamespace(
        links=links,
        snapshot="1",
        system=SimpleNamespace(typed=lambda position: position, moment=lambda position: None, show=str),
        replicas=[
            SimpleNamespace(
                server=one.name, suffix=SUFFIX, origin=servers[one.name].origin, claims=True, keeps_log=True, vector={}
            )
            for one in fleet.servers.values()
        ],
    )
    verdicts = Verdicts(stranded=list(stranded))
    known = {"statuses": lambda: statuses, "verdicts": verdicts, "not_collected": lambda suffix: []}
    context = SimpleNamespace(topology=topology, pairs=list(pairs), inputs=(), of_several=lambda server: False, **known)
    context.linked, context.unrecorded = LinkedPairs(()), {}
    context.replica = lambda server, suffix: None
    context.once = lambda tells: {}
    context.rows = lambda *what, **where: iter(())  # nobody's entries were collected
    about = {"suffix": SUFFIX, "made_at": MADE_AT, "findings": (), "about": lambda *codes: []}
    return SimpleNamespace(model=model, context=context, **about)


def need(code: str, server: str | None = "s3", **more: Any) -> Need:
    return Need(code, SUFFIX, server, lacks=frozenset({OneLack(0)}), **more)


@dataclass(frozen=True)
class OneLack:
    """A lack, of which the repairs ask nothing but the number of its lot."""

    lot: int


def draft_of(found: Iterable[ProposedRepair]) -> tuple[Step, ...]:
    draft = next(iter(found))
    assert draft.steps and not draft.refused
    return draft.steps


def set_aside(fleet: Fleet, *feeds: tuple[str, str]) -> None:
    for supplier, consumer in feeds:
        switch(fleet, supplier, consumer, "off")


def written(fleet: Fleet, name: str, count: int = 2, server: str = "s1") -> None:
    """Somebody wrote to an entry."""
    one = fleet.servers[server]
    for number in range(count):
        one.make("modify", dn_of(name), f"unique-{name}", {"description": encoded([f"written {number}"])})


def alike(fleet: Fleet, *names: str) -> None:
    """All servers have the same people, with the same values."""
    fleet.settle()
    for name in names or ("ann", "ben", "cleo", "group"):
        shown = {one.name: one.find(dn_of(name)) for one in fleet.servers.values()}
        values = {server: entry and sorted(entry.values.items()) for server, entry in shown.items()}
        assert all(some == values["s1"] for some in values.values()), values
    vectors = {one.name: one.vector for one in fleet.servers.values()}
    assert all(vector == vectors["s1"] for vector in vectors.values()), vectors


def enable() -> Repair:
    fleet = mesh()
    set_aside(fleet, ("s1", "s3"), ("s2", "s3"))
    written(fleet, "ann")
    fleet.settle()
    steps = draft_of(Enable().propose(view_of(fleet), need(PENDING)))
    writes = [(name, "modify", agreement(fleet, name, "s3").dn) for name in ("s1", "s2")]
    return Repair(fleet, plan_of(fleet, steps), writes, alike)


def wake() -> Repair:
    fleet = mesh()
    set_aside(fleet, ("s2", "s3"))
    link = fleet.servers["s1"].links[agreement(fleet, "s1", "s3").dn.lower()]
    written(fleet, "ann", server="s2")
    link.asleep = True
    fleet.settle()
    steps = draft_of(Wake().propose(view_of(fleet), need(PENDING)))
    return Repair(fleet, plan_of(fleet, steps), [("s1", "modify", keep_alive_dn(SUFFIX, "1"))], alike)


def rescue() -> Repair:
    fleet = mesh()
    set_aside(fleet, ("s1", "s3"), ("s2", "s3"))
    s3 = fleet.servers["s3"]
    for one in ("s1", "s2", "c1"):  # what s3 wrote before it was restored
        change = person("lost")
        fleet.servers[one].vector["3"] = csn(2000, "3")
        state = dict.fromkeys([*map(str.lower, change), "modifytimestamp"], csn(2000, "3"))
        fleet.servers[one].entries.append(Stored(dn_of("lost"), "unique-lost", change, state))
        if one != "c1":
            fleet.servers[one].log.append(Change(csn(2000, "3"), "add", dn_of("lost"), "unique-lost", change))
    for name in ("s1", "s2"):
        fleet.servers[name].links[agreement(fleet, name, "s3").dn.lower()].asleep = True
    s3.down = True
    pairs = [
        {"supplier": name, "consumer": "s3", "suffix": SUFFIX, "decision": SEND, "to_send": {"3": 1}}
        for name in ("s1", "s2")
    ]
    steps = draft_of(Rescue().propose(view_of(fleet, pairs=pairs), need(ROLLED_BACK)))
    enabled = [(name, "modify", agreement(fleet, name, "s3").dn) for name in ("s1", "s2")]
    writes = [("s3", "start", "s3"), *enabled, ("s1", "modify", keep_alive_dn(SUFFIX, "1"))]
    return Repair(fleet, plan_of(fleet, steps), writes, lambda end: alike(end, "lost", "ann"))


def temporary() -> Repair:
    fleet = mesh()
    for supplier in ("s1", "s2"):
        one = fleet.servers[supplier]
        dn = agreement(fleet, supplier, "s3").dn.lower()
        del one.config[dn], one.links[dn]
    agree(fleet.servers["s1"], "s3")
    set_aside(fleet, ("s1", "s3"))
    written(fleet, "ann")
    fleet.settle()
    pairs = [{"supplier": "s2", "consumer": "s3", "suffix": SUFFIX, "decision": SEND, "to_send": {}}]
    steps = draft_of(TemporaryAgreement().propose(view_of(fleet, pairs=pairs), need(PENDING)))
    dn = agreement_dn(SUFFIX, "workbench-s2-to-s3")

    def check(end: Fleet) -> None:
        alike(end)
        assert dn.lower() not in end.servers["s2"].config

    return Repair(fleet, plan_of(fleet, steps), [("s2", "add", dn), ("s2", "delete", dn)], check)


@contextmanager
def evidence(found: dict[str, Missed], present: dict[str, Present]) -> Any:
    """What the case would tell of the missing changes, and of the entries as they are."""
    with (
        patch.object(data, "missed_by_entry", lambda view, lots: found),
        patch.object(data, "present_on", lambda view, server, entries: present),
        patch.object(data, "children_on", lambda view, server, dn: False),
        patch.object(saving, "stranded_ldif", lambda view, server, named: ("dn: cn=x\nchangetype: delete\n", [])),
        patch.object(saving, "present_on", lambda view, server, entries: present),
    ):
        yield


def missed(name: str, operation: str, *attributes: str) -> Missed:
    return Missed(f"unique-{name}", dn_of(name), {operation}, {one.lower(): one for one in attributes}, [0])


def present_of(fleet: Fleet, name: str, hidden: Iterable[str] = ()) -> Present:
    entry = fleet.servers["s1"].find(dn_of(name))
    assert entry is not None
    shown = {key: [value.decode() for value in some] for key, some in entry.values.items() if key not in hidden}
    return Present(entry.dn, entry.unique, shown, set(hidden))


def hidden_from_s3(*kinds: str) -> Fleet:
    """Changes of s1 that s3 does not have and claims to have: `ann` is another, `ben`'s password, `cleo` lost her address."""
    fleet = mesh()
    s3 = fleet.servers["s3"]
    by_name = {one.values["cn"][0].decode(): one for one in s3.entries if "cn" in one.values}
    by_name["ben"].values["userPassword"] = encoded(["{SSHA}an older one"])
    for one in fleet.servers.values():
        if one is not s3:
            cleo = one.find(dn_of("cleo"))
            assert cleo is not None
            del cleo.values["mail"]
            cleo.state["mail"] = csn(90, "1")
    if "add" in kinds:
        s3.entries.remove(by_name["ann"])
    else:
        by_name["ann"].values["description"] = encoded(["from before"])
    return fleet


def rewrite() -> Repair:
    fleet = hidden_from_s3()
    found = {
        "unique-ben": missed("ben", "modify", "userPassword", "description"),
        "unique-ann": missed("ann", "modify", "description"),
        "unique-cleo": missed("cleo", "modify", "mail"),
    }
    present = {f"unique-{name}": present_of(fleet, name) for name in ("ann", "cleo")}
    present["unique-ben"] = present_of(fleet, "ben", ["userPassword"])
    with evidence(found, present):
        steps = draft_of(Rewrite().propose(view_of(fleet), need(HIDDEN)))
    writes = [("s1", "modify", dn_of(name)) for name in ("ben", "ann", "cleo")]
    return Repair(fleet, plan_of(fleet, steps), writes, alike)


def recreate() -> Repair:
    fleet = hidden_from_s3("add")
    ann = next(one for one in fleet.servers["s1"].entries if one.dn == dn_of("ann"))
    for one in fleet.servers.values():
        if there := one.find(dn_of("ann")):
            there.values |= {"userPassword": encoded([PASSWORD]), "memberOf": encoded([dn_of("group")])}
            there.state["userpassword"] = csn(50, "1")
    found = {"unique-ann": missed("ann", "add"), "unique-ben": missed("ben", "modify", "userPassword")}
    present = {f"unique-{name}": present_of(fleet, name, ["userPassword"]) for name in ("ann", "ben")}
    with evidence(found, present):
        steps = draft_of(Recreate().propose(view_of(fleet), need(HIDDEN)))
    was = {name: some for name, some in ann.values.items() if name != "memberOf"}

    def check(end: Fleet) -> None:
        alike(end, "ann", "ben")
        for one in end.servers.values():
            there = one.find(dn_of("ann"))
            assert there and there.values == was and there.unique != "unique-ann"

    writes = [("s1", "delete", dn_of("ann")), ("s1", "add", dn_of("ann")), ("s1", "modify", dn_of("ben"))]
    return Repair(fleet, plan_of(fleet, steps), writes, check)


def initialise() -> Repair:
    """A server with data of another generation, over an agreement that is off and leaves out memberOf."""
    fleet = mesh()
    set_aside(fleet, ("s1", "s3"), ("s2", "s3"))
    s3 = fleet.servers["s3"]
    s3.generation, s3.vector = "6500000000000001" + "0000", {"3": csn(300, "3")}
    agreement(fleet, "s1", "s3").values["nsDS5ReplicatedAttributeList"] = encoded(
        ["(objectclass=*) $ EXCLUDE memberof"]
    )
    for one in fleet.servers.values():
        there = one.find(dn_of("ann"))
        assert there is not None
        there.values["memberOf"] = encoded([dn_of("group")])
    written(fleet, "ben")
    fleet.settle()
    stranded = [{"server": "s3", "suffix": SUFFIX, "position": "a"}]
    view = view_of(fleet, excluded="memberOf", stranded=stranded)
    for name, one in view.model.servers.items():
        one.holds = {0} if name == "s3" else {1}
    nobody_cut_off = SimpleNamespace(cut=frozenset(), unsaid=frozenset())
    with evidence({}, {}), patch.object(filling, "achieved", lambda model, effects: (nobody_cut_off, model)):
        steps = draft_of(Initialise().propose(view, need(HIDDEN)))
    assert [step.repair for step in steps] == ["save", "enable", "initialise", "task"]
    dn = agreement(fleet, "s1", "s3").dn
    task = f"cn={escaped(f'workbench fixup of {SUFFIX} {stamp(MADE_AT)}')},cn=memberof task,cn=tasks,cn=config"
    writes = [("s1", "modify", dn), ("s1", "modify", dn), ("s3", "add", task)]

    def check(end: Fleet) -> None:
        alike(end)
        assert end.servers["s3"].generation == GENERATION and end.inits == 1

    return Repair(fleet, plan_of(fleet, steps), writes, check)


def clean() -> Repair:
    fleet = mesh()
    for one in fleet.servers.values():
        one.vector["9"] = csn(80, "9")
    view = view_of(fleet)
    view.model.lots = []
    steps = draft_of(Clean().propose(view, Need(DEAD, SUFFIX, origin="9")))

    def check(end: Fleet) -> None:
        alike(end)
        assert all("9" not in one.vector for one in end.servers.values())

    task = f"cn={escaped(f'workbench clean 9 of {SUFFIX} {stamp(MADE_AT)}')},cn=cleanallruv,cn=tasks,cn=config"
    return Repair(fleet, plan_of(fleet, steps), [("s1", "add", task)], check)


REPAIRS: dict[str, Callable[[], Repair]] = {
    "enable": enable,
    "wake": wake,
    "rescue": rescue,
    "temporary agreement": temporary,
    "rewrite": rewrite,
    "recreate": recreate,
    "initialise": initialise,
    "clean": clean,
}
