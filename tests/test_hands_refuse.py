"""The hands that do repairs on Directory Servers refuse where it is no longer as planned."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_plans import (
    REPAIRS,
    Repair,
    initialise,
    written,
)
from memory_servers import (
    INIT,
    REPLICA,
    Fleet,
    MemorySite,
    agree,
    agreement,
    csn,
    dn_of,
    encoded,
    person,
    started_by,
    switch,
)

from workbench.model import Problem
from workbench.repair.plan_executor import FAILED, STOPPED, apply
from workbench.repair.plan_progress import NOT_BEGUN, state_of
from workbench.systems.ds389.native import REFRESH

pytestmark = pytest.mark.usefixtures("no_waiting")

Mutation = Callable[[Fleet], None]


def vectors_changed(repair: Repair) -> Iterator[tuple[str, Mutation]]:
    asked = [name for name in repair.fleet.servers if not repair.fleet.servers[name].down]

    def become(name: str, origin: str, position: str | None) -> Mutation:
        def change(fleet: Fleet) -> None:
            vector = fleet.servers[name].vector
            vector.pop(origin, None) if position is None else vector.update({origin: position})

        return change

    flows = any(step.details.get("flows") or step.details.get("compared") for step in repair.plan.steps[:1])
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
        yield f"a host that nobody knows, on: {on}", lambda fleet, on=on: elsewhere(fleet, "other.test", "389", on)
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
