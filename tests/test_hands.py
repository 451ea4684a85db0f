"""The hands that do repairs on Directory Servers: cut short everywhere, refused where it is no longer as planned, silent."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from crash_matrix import WAYS, Cut, Fault, Killed, faults, run
from hand_plans import (
    REPAIRS,
    Repair,
    clean,
    draft_of,
    evidence,
    hidden_from_s3,
    initialise,
    missed,
    need,
    present_of,
    recreate,
    rewrite,
    temporary,
    view_of,
    written,
)
from ldap3.core.exceptions import LDAPInvalidValueError, LDAPSocketReceiveError
from memory_servers import (
    BIND_PASSWORD,
    INIT,
    PASSWORD,
    REPLICA,
    SUFFIX,
    Fleet,
    MemorySite,
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

from workbench.journal import OWNER
from workbench.model import REMOVED, Problem
from workbench.plans import DEAD, HIDDEN, Need, Plan, as_json
from workbench.repairing import FAILED, FINISHED, STOPPED, apply
from workbench.standing import HALF_DONE, JOURNAL, NOT_BEGUN, state_of
from workbench.systems.ds389.live import site
from workbench.systems.ds389.native import REFRESH
from workbench.systems.ds389.repairs import data


class InTurn:
    """What a pool of threads does, one after the other: a run with the same faults has to be the same run."""

    def __init__(self, workers: int) -> None: ...

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *ended: object) -> None: ...

    def map(self, do: Callable[[Any], Any], over: Any) -> Iterator[Any]:
        return map(do, over)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(step=2)
    monkeypatch.setattr(site, "ThreadPoolExecutor", InTurn)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def started_by(fleet: Fleet) -> Callable[..., None]:
    """What `dsctl` does."""

    def started(words: list[str], **options: Any) -> None:
        assert words[0] == "dsctl" and words[2] == "start"
        try:
            fleet.start(words[1])
        except LDAPSocketReceiveError as error:
            raise OSError(str(error)) from None

    return started


# Cut short everywhere

State = tuple[dict[str, bytes], Fleet]
"""What is in the folder, and the servers."""


class Crashes:
    """Runs of one repair that end in faults, from any state that an earlier fault left."""

    def __init__(self, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repair, self.folder, self.patch = REPAIRS[kind](), folder, monkeypatch
        self.id, self.chance = self.repair.plan.id, random.Random(kind)
        self.begin: State = ({JOURNAL: b""}, self.repair.fleet)
        self.finished: dict[Any, list[str]] = {}

    def run(self, state: State, fault: Fault | None) -> tuple[State, list[str]]:
        plan, fleet = self.repair.plan, state[1].copy()
        self._is_now(state)
        self.patch.setattr(subprocess, "run", started_by(fleet))

        def connect(cut: Cut) -> None:
            fleet.moment = cut.moments.now

        seen = run(plan, self.id, self.folder, MemorySite(plan, fleet, self.folder), fault, connect)
        fleet.moment = Fleet.moment
        files = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.name != OWNER}
        return (files, fleet), seen

    def finish(self, state: State) -> list[str]:
        """What is left is done, and everything was done once; returns the moments that this took."""
        alike = self._alike(state)
        if alike not in self.finished:
            self._is_now(state)
            end, seen = state, []
            if state_of(self.folder, self.id).state != FINISHED:  # else the fault came after the last record
                end, seen = self.run(state, None)
            assert end[1].writes == self.repair.writes
            self.repair.check(end[1].copy())
            self.finished[alike] = seen
        return self.finished[alike]

    def _is_now(self, state: State) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, content in state[0].items():
            (self.folder / name).write_bytes(content)

    def _alike(self, state: State) -> Any:
        """What tells two states apart for whoever goes on from there."""
        told = []
        for line in state[0][JOURNAL].splitlines():
            try:
                record = json.loads(line)
                told.append((record["what"], record.get("step"), str(record.get("memo"))))
            except ValueError:
                told.append(("torn", None, ""))
        return tuple(told), state[0][JOURNAL].endswith(b"\n"), tuple(state[0]), str(state[1])


@pytest.mark.parametrize("kind", REPAIRS)
def test_no_fault_loses_a_write_or_does_it_twice(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashes = Crashes(kind, tmp_path, monkeypatch)
    _, seen = crashes.run(crashes.begin, None)
    assert seen.count("write") == len(crashes.repair.writes)
    for fault in faults(seen):
        state, _ = crashes.run(crashes.begin, fault)
        crashes.finish(state)
    assert len(seen) > 35 and len(crashes.finished) >= 15


def two_faults(crashes: Crashes, first: Fault, second: Callable[[list[str]], Iterable[Fault]]) -> int:
    state, _ = crashes.run(crashes.begin, first)
    left = crashes.finish(state)
    seconds = list(second(left))
    for fault in seconds:
        again, _ = crashes.run(state, fault)
        crashes.finish(again)
    return len(seconds)


@pytest.mark.parametrize("kind", REPAIRS)
def test_two_faults_by_chance_lose_no_write_and_do_none_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = Crashes(kind, tmp_path, monkeypatch)
    chance = crashes.chance
    _, seen = crashes.run(crashes.begin, None)
    pairs = 0
    for first in chance.sample(list(faults(seen)), 25):
        pairs += two_faults(crashes, first, lambda left: chance.sample(list(faults(left)), min(4, len(left))))
    assert pairs > 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPAIRS)
def test_no_two_faults_lose_a_write_or_do_it_twice(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair, but for connections: of those each tenth is the second fault."""
    crashes = Crashes(kind, tmp_path, monkeypatch)
    _, seen = crashes.run(crashes.begin, None)
    known: set[Any] = set()
    pairs = 0
    for first in faults(seen):
        state, _ = crashes.run(crashes.begin, first)
        alike = crashes._alike(state)
        if alike not in known:
            known.add(alike)
            pairs += two_faults(
                crashes, first, lambda left: (one for one in faults(left) if left[one[0]] != "look" or one[0] % 10 == 0)
            )
    assert pairs > 500


@pytest.mark.parametrize("late", [1, 4, 8, 12, 20, 40])
@pytest.mark.parametrize("kind", REPAIRS)
def test_what_lands_after_the_next_run_has_looked_harms_nothing(
    kind: str, late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what means the same when it is done twice is done twice; nothing tells a deletion that comes too late."""
    monkeypatch.setitem(WAYS, "write", (*WAYS["write"], "lands late"))
    for number in range(len(REPAIRS[kind]().writes)):
        repair = REPAIRS[kind]()
        fleet, folder = repair.fleet, tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.setattr(subprocess, "run", started_by(fleet))
        seen = Counter[str]()

        def moment(what: str, number: int = number, seen: Counter[str] = seen) -> str:
            seen[what] += 1
            return "lands late" if what == "write" and seen[what] == number + 1 else ""

        fleet.moment, fleet.delay = moment, late
        site_of = MemorySite(repair.plan, fleet, folder)
        for _ in range(4):
            so_far = state_of(folder, repair.plan).state
            if so_far != FINISHED:
                apply(repair.plan, site_of, folder, resume=so_far == HALF_DONE)
        assert state_of(folder, repair.plan).state == FINISHED
        fleet.settle()
        twice = Counter(fleet.writes) - Counter(repair.writes)
        assert not Counter(repair.writes) - Counter(fleet.writes)
        if any(what == "delete" for _, what, _ in twice):
            assert kind == "recreate" and [one for one in fleet.servers["s1"].entries if one.deleted]
            continue
        assert sum(twice.values()) <= 1 and all(what == "modify" for _, what, _ in twice)
        if fleet.inits <= 1:
            repair.check(fleet)


# Refused

Mutation = Callable[[Fleet], None]


def vectors_changed(repair: Repair) -> Iterator[tuple[str, Mutation]]:
    asked = [name for name in repair.fleet.servers if not repair.fleet.servers[name].down]

    def become(name: str, origin: str, position: str | None) -> Mutation:
        def change(fleet: Fleet) -> None:
            vector = fleet.servers[name].vector
            vector.pop(origin, None) if position is None else vector.update({origin: position})

        return change

    flows = any(step.details.get("flows") for step in repair.plan.steps[:1])
    for name in asked:
        for origin in repair.fleet.servers[name].vector:
            yield f"{name} back in {origin}", become(name, origin, csn(0, origin))
            yield f"{name} without {origin}", become(name, origin, None)
            if not flows:
                yield f"{name} forward in {origin}", become(name, origin, csn(5000, origin))
        yield f"{name} with a foreign origin", become(name, "77", csn(5, "77"))
        yield (
            f"{name} of another generation",
            lambda fleet, name=name: setattr(fleet.servers[name], "generation", "6" * 20),
        )
        yield f"{name} down", lambda fleet, name=name: setattr(fleet.servers[name], "down", True)
        yield f"{name} with the ID of another", lambda fleet, name=name: as_another(fleet, name, "4")


def as_another(fleet: Fleet, name: str, rid: str) -> None:
    fleet.servers[name].config[REPLICA.lower()].values["nsDS5ReplicaId"] = encoded([rid])


def entry_changed(name: str, on: str = "s1") -> Iterator[tuple[str, Mutation]]:
    """What somebody may do to an entry; the vectors need not tell, if progress is accepted."""

    def at(fleet: Fleet) -> Any:
        return fleet.servers[on].find(dn_of(name))

    def another(fleet: Fleet) -> None:
        fleet.servers[on].make("delete", dn_of(name), f"unique-{name}")
        fleet.servers[on].make("add", dn_of(name), "unique-other", person(name))

    def child(fleet: Fleet) -> None:
        fleet.servers[on].make("add", f"cn=below,{dn_of(name)}", "unique-below", person("below"))

    yield (
        "changed",
        lambda fleet: fleet.servers[on].make(
            "modify",
            dn_of(name),
            f"unique-{name}",
            {"sn": encoded(["x"]), "description": encoded(["x"]), "mail": encoded(["x"])},
        ),
    )
    yield "replaced", another
    yield "deleted", lambda fleet: fleet.servers[on].make("delete", dn_of(name), f"unique-{name}")
    yield "a child", child


def leads_changed(supplier: str) -> Iterator[tuple[str, Mutation]]:
    def elsewhere(fleet: Fleet, host: str, port: str, on: bool) -> None:
        values = agreement(fleet, supplier, "s3").values
        values |= {"nsDS5ReplicaHost": encoded([host]), "nsDS5ReplicaPort": encoded([port])}
        if on:
            values.pop("nsds5ReplicaEnabled", None)

    def gone(fleet: Fleet) -> None:
        dn = agreement(fleet, supplier, "s3").dn.lower()
        del fleet.servers[supplier].config[dn], fleet.servers[supplier].links[dn]

    for on in (False, True):
        yield f"elsewhere, on: {on}", lambda fleet, on=on: elsewhere(fleet, "c1.test", "389", on)
        yield f"another port, on: {on}", lambda fleet, on=on: elsewhere(fleet, "s3.test", "3890", on)
    yield "gone", gone


def initialising(fleet: Fleet) -> None:
    one = agreement(fleet, "s1", "s3")
    one.values[REFRESH] = encoded(["start"])
    fleet.servers["s1"].links[one.dn.lower()].refresh = 1 - 1000 * INIT


def own_changes(fleet: Fleet) -> None:
    fleet.servers["s2"].vector["9"] = csn(5000, "9")


def others_agreement(fleet: Fleet) -> None:
    agree(fleet.servers["s2"], "c1", "workbench-s2-to-s3")


def stranded_since(fleet: Fleet) -> None:
    """A client wrote to the server that is to be filled, and nobody else got it."""
    for to in ("s1", "s2"):
        switch(fleet, "s3", to, "off")
    written(fleet, "ann", server="s3")


def later_on(name: str, server: str) -> Mutation:
    """A client wrote to an entry elsewhere, and the server that is to write it again has not got that."""

    def change(fleet: Fleet) -> None:
        for to in ("s1", "s2", "s3"):
            if to != server:
                switch(fleet, server, to, "off")
        written(fleet, name, server=server)

    return change


def frozen(fleet: Fleet) -> None:
    """Nothing is delivered: else what went back comes back, and all is well."""
    for server in fleet.servers.values():
        for link in server.links.values():
            link.waited = -1000


def mutations(kind: str, repair: Repair) -> Iterator[tuple[int, str, Mutation, bool]]:
    """Before which step, what happened, and whether progress is accepted."""
    for what, change in vectors_changed(repair):
        yield 0, what, lambda fleet, change=change: (change(fleet), frozen(fleet)), False
    special: dict[str, list[tuple[int, str, Mutation]]] = {
        "enable": [(at, *one) for at, of in enumerate(("s1", "s2")) for one in leads_changed(of)],
        "initialise": [
            *((1, *one) for one in leads_changed("s1")),
            *((2, *one) for one in leads_changed("s1")),
            (2, "one runs", initialising),
            (2, "it holds what nobody has", stranded_since),
            (2, "off", lambda fleet: agreement(fleet, "s1", "s3").values.update(nsds5ReplicaEnabled=encoded(["off"]))),
        ],
        "rewrite": [
            *((at, *one) for at, of in enumerate(("ben", "ann", "cleo")) for one in list(entry_changed(of))[:3]),
            *((0, f"later on {server}", later_on("ben", server)) for server in ("s2", "s3")),
        ],
        "recreate": [*((0, *one) for one in entry_changed("ann")), (0, "later on s2", later_on("ann", "s2"))],
        "clean": [
            (0, "alive", lambda fleet: as_another(fleet, "c1", "9")),
            (0, "it made changes", own_changes),
        ],
        "temporary agreement": [(0, "the name is taken", others_agreement)],
        "wake": [(0, "no keep-alive entry", lambda fleet: fleet.servers["s1"].entries.__delitem__(-3))],
        "rescue": [(1, *one) for one in leads_changed("s1")],
    }
    for at, what, change in special[kind]:
        for accept in (False, True):
            yield at, what, lambda fleet, change=change: (change(fleet), fleet.settle()), accept


@pytest.mark.parametrize("kind", REPAIRS)
def test_servers_that_are_no_longer_as_planned_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    for number, (at, what, change, accept) in enumerate(mutations(kind, REPAIRS[kind]())):
        folder = tmp_path / str(number)
        folder.mkdir()
        repair = REPAIRS[kind]()
        fleet, plan = repair.fleet, repair.plan
        monkeypatch.setattr(subprocess, "run", started_by(fleet))
        servers = MemorySite(plan, fleet, folder)
        if at:
            assert apply(plan, servers, folder, most_steps=at).state == STOPPED
        before = list(fleet.writes)
        change(fleet)
        try:
            outcome = apply(plan, servers, folder, resume=at > 0, accept_progress=accept, patience=20)
            assert at and outcome.state == FAILED, what
            said = outcome.why
        except Problem as problem:
            assert not at and state_of(folder, plan).state == NOT_BEGUN, what
            said = str(problem)
        assert "after the step" not in said, "it was taken for done"
        assert fleet.writes == before, what
        assert len(state_of(folder, plan).done) == at, what
        refused += 1
    assert refused >= {"rescue": 20}.get(kind, 50)


def test_servers_under_each_others_names_are_refused(tmp_path: Path) -> None:
    names = ("s1", "s2", "s3", "c1")
    for number, (one, other) in enumerate((one, other) for one in names for other in names if one < other):
        for kind in ("enable", "rewrite", "initialise", "clean"):
            repair = REPAIRS[kind]()
            folder = tmp_path / f"{number}-{kind}"
            folder.mkdir()
            servers = MemorySite(repair.plan, repair.fleet, folder, {one: other, other: one})
            with pytest.raises(Problem, match="check which address belongs to which name"):
                apply(repair.plan, servers, folder, accept_progress=True)
            assert repair.fleet.writes == []


def test_a_file_that_an_earlier_plan_saved_is_not_written_over(tmp_path: Path) -> None:
    repair = initialise()
    (tmp_path / "stranded-on-s3.ldif").write_text("all that is left of something\n")
    with pytest.raises(Problem, match="move it out of"):
        apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert (tmp_path / "stranded-on-s3.ldif").read_text() == "all that is left of something\n"
    assert repair.fleet.writes == []


# Looking


@pytest.mark.parametrize("kind", REPAIRS)
def test_looking_writes_nothing_at_any_time(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repair = REPAIRS[kind]()
    fleet, plan = repair.fleet, repair.plan
    monkeypatch.setattr(subprocess, "run", started_by(fleet))
    servers = MemorySite(plan, fleet, tmp_path)

    def moment(what: str) -> str:
        assert what != "write"
        return ""

    def look() -> None:
        before, files = list(fleet.writes), sorted(tmp_path.rglob("*"))
        fleet.moment = moment
        for step in plan.steps:
            try:
                memo = servers.memo(step)
                for begun in (False, True):
                    servers.obstacles(step, begun)
                servers.done(step, memo)
                servers.shortfall(step, memo)
            except Problem:
                assert kind == "rescue"  # a server that is down
        servers.kept(plan)
        fleet.moment = Fleet.moment
        assert fleet.writes == before and sorted(tmp_path.rglob("*")) == files

    look()
    for number in range(len(plan.steps)):
        apply(plan, servers, tmp_path, resume=number > 0, most_steps=1)
        look()
    assert state_of(tmp_path, plan).state == FINISHED or apply(plan, servers, tmp_path, resume=True).state == FINISHED
    assert all(row["kept"] for row in servers.kept(plan))


# Secrets

CLEAR = "a canary that looks like no secret at all"


@pytest.mark.parametrize("kind", ["rewrite", "recreate", "temporary agreement"])
@pytest.mark.parametrize("refused", [False, True])
def test_no_secret_is_told_or_kept(kind: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repair = REPAIRS[kind]()
    fleet, said = repair.fleet, []
    for server in fleet.servers.values():
        for entry in server.entries:
            if PASSWORD.encode() in entry.values.get("userPassword", ()):
                entry.values["userPassword"] = encoded([PASSWORD, CLEAR])
    ends: list[str] = []
    sent = BIND_PASSWORD if kind == "temporary agreement" else f"{CLEAR}, {PASSWORD}"
    if refused:
        text = f"invalid value {sent}: too weak"
        for server in fleet.servers.values():
            for _, what, dn in repair.writes:
                if what != "delete":
                    server.refuses[what, dn.lower()] = (65, text)
        ends.append(str(apply(repair.plan, MemorySite(repair.plan, fleet, tmp_path), tmp_path, told=said.append)))
        assert "objectClassViolation (65)" in ends[0] and REMOVED in ends[0]
        for server in fleet.servers.values():
            server.refuses.clear()

        def broken(what: str) -> str:
            if what == "write":
                raise LDAPInvalidValueError(f"cannot encode {sent}")
            return ""

        fleet.moment = broken
        servers = MemorySite(repair.plan, fleet, tmp_path)
        ends.append(str(apply(repair.plan, servers, tmp_path, resume=True, told=said.append)))
        assert REMOVED in ends[1]
        fleet.moment = Fleet.moment
    servers = MemorySite(repair.plan, fleet, tmp_path)
    ends.append(str(apply(repair.plan, servers, tmp_path, resume=refused, told=said.append)))
    assert state_of(tmp_path, repair.plan).state == FINISHED
    kept = [path.read_text() for path in tmp_path.iterdir()]
    everything = "\n".join(
        [*said, *ends, *kept, json.dumps(as_json(repair.plan)), *map(str, servers.kept(repair.plan))]
    )
    for secret in (CLEAR, PASSWORD, "CanaryOfAUser", BIND_PASSWORD):
        assert secret not in everything
    if kind == "temporary agreement":
        assert repair.writes == fleet.writes
    else:
        name = {"rewrite": "ben", "recreate": "ann"}[kind]
        found = fleet.servers["s3"].find(dn_of(name))
        assert found and sorted(found.values["userPassword"]) == sorted(encoded([PASSWORD, CLEAR]))


def test_the_password_of_the_replication_goes_to_the_supplier_and_nowhere_else(tmp_path: Path) -> None:
    repair = temporary()
    assert apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path, most_steps=1).applied == 1
    holders = [
        (server.name, dn)
        for server in repair.fleet.servers.values()
        for dn, entry in server.config.items()
        if BIND_PASSWORD.encode() in entry.values.get("nsDS5ReplicaCredentials", ())
    ]
    assert [name for name, _ in holders] == ["s2"]


# Delete and add


def between(repair: Repair, folder: Path) -> MemorySite:
    """The run was killed when the entry was deleted and not yet added."""
    servers = MemorySite(repair.plan, repair.fleet, folder)

    def cut(what: str, dn: str) -> None:
        if what == "add":
            raise Killed

    repair.fleet.before_write = cut
    with pytest.raises(Killed):
        apply(repair.plan, servers, folder)
    repair.fleet.before_write = lambda what, dn: None
    repair.fleet.settle()
    assert all(one.find(dn_of("ann")) is None for one in repair.fleet.servers.values())
    (folder / OWNER).unlink()
    return servers


def test_an_entry_that_was_deleted_is_added_from_its_tombstone_with_its_secrets(tmp_path: Path) -> None:
    repair = recreate()
    servers = between(repair, tmp_path)
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    assert repair.fleet.writes == repair.writes
    repair.check(repair.fleet)
    ann = repair.fleet.servers["s3"].find(dn_of("ann"))
    assert ann and ann.values["userPassword"] == encoded([PASSWORD])
    assert not {"memberOf", "nsParentUniqueId"} & ann.values.keys() and b"nsTombstone" not in ann.values["objectClass"]


def test_without_a_tombstone_a_person_is_told_what_to_do_and_the_rest_is_done_after_it(tmp_path: Path) -> None:
    repair = recreate()
    servers = between(repair, tmp_path)
    for server in repair.fleet.servers.values():
        server.entries = [one for one in server.entries if not one.deleted]
    outcome = apply(repair.plan, servers, tmp_path, resume=True)
    assert outcome.state == FAILED
    assert (
        "its tombstone is purged" in outcome.why
        and "add the entry by hand with the values that the plan shows" in outcome.why
    )
    repair.fleet.servers["s1"].make("add", dn_of("ann"), "unique-by-hand", person("ann"))
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    assert [what for _, what, _ in repair.fleet.writes] == ["delete", "modify"]


def test_an_entry_that_is_refused_when_it_is_added_again_is_not_forgotten(tmp_path: Path) -> None:
    repair = recreate()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    refuses = repair.fleet.servers["s1"].refuses
    refuses["add", dn_of("ann").lower()] = (65, 'missing attribute "uid"')
    outcome = apply(repair.plan, servers, tmp_path)
    assert outcome.state == FAILED
    assert "is deleted and was not added again" in outcome.why and "in its tombstone" in outcome.why
    refuses.clear()
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    assert repair.fleet.writes == repair.writes
    repair.check(repair.fleet)


# What servers show


def test_an_attribute_that_the_server_may_write_is_written_again_if_the_plan_names_it(tmp_path: Path) -> None:
    """memberOf is left out of an entry that is added again, and must not be emptied where it is written again."""
    repair = rewrite()
    (step, *_) = repair.plan.steps
    details = {**step.details, "hidden": [*step.details["hidden"], "memberOf"]}
    plan = Plan(**{**vars(repair.plan), "steps": (step.__class__(**{**vars(step), "details": details}),)})
    for server in repair.fleet.servers.values():
        if ben := server.find(dn_of("ben")):
            ben.values["memberOf"] = encoded([dn_of("group")])
    assert apply(plan, MemorySite(plan, repair.fleet, tmp_path), tmp_path).state == FINISHED
    ben = repair.fleet.servers["s3"].find(dn_of("ben"))
    assert ben and ben.values["memberOf"] == encoded([dn_of("group")])


def test_an_initialisation_that_failed_is_begun_again_by_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = initialise()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    assert apply(repair.plan, servers, tmp_path, most_steps=2).state == STOPPED
    fails = [True]
    begin = repair.fleet._initialise

    def failing(server: Any, consumer: Any, entry: Stored, link: Any) -> None:
        begin(server, consumer, entry, link)
        if link.refresh == -1 and fails and fails.pop():
            entry.values["nsds5replicaLastInitStatus"] = encoded(["Error (-1) LDAP error: Can't contact LDAP server"])
            consumer.entries, consumer.vector = [], {}

    monkeypatch.setattr(repair.fleet, "_initialise", failing)
    outcome = apply(repair.plan, servers, tmp_path, resume=True, patience=60)
    assert outcome.state == FAILED and "the initialisation failed: Error (-1)" in outcome.why
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    assert repair.fleet.inits == 2
    del repair.fleet._initialise
    assert [what for _, what, _ in repair.fleet.writes] == ["modify", "modify", "modify", "add"]


def test_a_second_request_is_refused_while_an_initialisation_waits_or_runs(tmp_path: Path) -> None:
    repair = initialise()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    (step,) = (step for step in repair.plan.steps if step.repair == "initialise")
    agreement(repair.fleet, "s1", "s3").values["nsds5ReplicaEnabled"] = encoded(["on"])
    memo = servers.memo(step)
    servers.apply(step, memo)
    while servers.shortfall(step, memo):
        assert servers.done(step, memo)
        if repair.fleet.servers["s1"].links[agreement(repair.fleet, "s1", "s3").dn.lower()].refresh >= 0:
            with pytest.raises(Problem, match="attributeOrValueExists"):
                servers.apply(step, memo)
    repair.fleet.settle()
    assert repair.fleet.inits == 1 and len(repair.fleet.writes) == 1


def test_changes_that_arrive_late_are_no_obstacle_and_new_ones_are(tmp_path: Path) -> None:
    """s2 gets what the first step wrote only when the second one is looked at."""
    for foreign in (False, True):
        repair, folder = rewrite(), tmp_path / str(foreign)
        folder.mkdir()
        servers = repair.fleet.servers
        for name in ("s1", "s3"):
            switch(repair.fleet, name, "s2", "off")
        place = MemorySite(repair.plan, repair.fleet, folder)
        assert apply(repair.plan, place, folder, most_steps=1).state == STOPPED
        assert servers["s2"].vector["1"] == csn(100, "1")
        for name in ("s1", "s3"):
            switch(repair.fleet, name, "s2", "on")
        repair.fleet.settle()
        if foreign:
            servers["s1"].make("modify", dn_of("group"), "unique-group", {"description": encoded(["x"])})
        outcome = apply(repair.plan, place, folder, resume=True)
        assert outcome.state == (FAILED if foreign else FINISHED)


def test_a_server_that_does_not_answer_is_not_taken_for_one_that_is_clean(tmp_path: Path) -> None:
    repair = clean()
    (step,) = repair.plan.steps
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    for server in repair.fleet.servers.values():
        server.vector.pop("9")
    assert servers.shortfall(step, {}) == []
    for name in ("s1", "c1"):
        repair.fleet.servers[name].down = True
        assert servers.shortfall(step, {}) == [f"{name} does not answer"]
        with pytest.raises(Problem):
            servers.done(step, {})
        repair.fleet.servers[name].down = False


def test_a_read_only_server_refuses_with_a_referral(tmp_path: Path) -> None:
    fleet = hidden_from_s3()
    repair = rewrite()
    plan = Plan(**{**vars(repair.plan), "steps": repair.plan.steps[:1]})
    servers = MemorySite(plan, fleet, tmp_path)
    with servers.connected("c1") as server, pytest.raises(Problem, match=r"was refused, referral \(10\)"):
        server.replace(dn_of("ann"), "description", "x")
    assert fleet.writes == []


def test_what_was_delivered_of_an_origin_that_was_cleaned_is_not_told_as_lacking(tmp_path: Path) -> None:
    repair = clean()
    row = {"server": "s3", "suffix": SUFFIX, "origin": "9", "count": 2, "first": csn(79, "9"), "last": csn(80, "9")}
    plan = replace(repair.plan, promise=({**row, "targets": [dn_of("ann")]},))
    place = MemorySite(plan, repair.fleet, tmp_path)
    for server in repair.fleet.servers.values():
        server.vector.pop("9")
    assert all(one["kept"] for one in place.kept(plan))
    written(repair.fleet, "ann", server="s2")
    assert not all(one["kept"] for one in place.kept(plan))


def test_a_rescued_server_that_wrote_before_it_got_its_own_changes_is_not_called_rescued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vector then claims all that others claim, and what it lost is hidden for good."""
    repair = REPAIRS["rescue"]()
    monkeypatch.setattr(subprocess, "run", started_by(repair.fleet))
    place = MemorySite(repair.plan, repair.fleet, tmp_path)
    before_the_last = len(repair.plan.steps) - 1
    assert apply(repair.plan, place, tmp_path, most_steps=before_the_last).state == STOPPED
    repair.fleet.servers["s3"].vector["3"] = csn(5000, "3")
    outcome = apply(repair.plan, place, tmp_path, resume=True, patience=20)
    assert outcome.state == FAILED and "s3 has made a change of its own" in outcome.why


def test_the_tasks_of_two_suffixes_are_two() -> None:
    """What is there already counts as begun: the second suffix would be left as it is."""
    fleet = mesh()
    names = set()
    for suffix in (SUFFIX, "o=other"):
        view = view_of(fleet)
        view.model.lots, view.suffix = [], suffix
        (step,) = draft_of(data.Clean().propose(view, Need(DEAD, suffix, origin="9")))
        names |= {step.details["task"], data._fixing(view, "s3").details["task"]}
    assert len(names) == 4


def test_who_lacks_anything_does_not_write_again() -> None:
    """What it lacks may be a later change of the same entry, which its own would undo on all servers."""
    found = {"unique-ann": missed("ann", "modify", "description")}
    for lacking, by in (("s1", "s2"), ("s2", "s1"), ("both", None)):
        fleet = hidden_from_s3()
        view = view_of(fleet)
        view.model.servers["s3"].holds = {1} if lacking == "both" else set()
        for name in ("s1", "s2"):
            view.model.servers[name].holds = {0} if lacking in (name, "both") else {0, 1}
        with evidence(found, {"unique-ann": present_of(fleet, "ann")}):
            drafts = list(data.Rewrite().propose(view, need(HIDDEN)))
        assert [step.on for draft in drafts for step in draft.steps] == ([by] if by else [])
