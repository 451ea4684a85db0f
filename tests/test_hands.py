"""The hands that do repairs on Directory Servers: what they look at, what they keep to themselves, and single turns."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crash_matrix import Killed
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
)
from ldap3.core.exceptions import LDAPInvalidValueError
from memory_servers import (
    BIND_PASSWORD,
    PASSWORD,
    SUFFIX,
    Fleet,
    MemorySite,
    agreement,
    csn,
    dn_of,
    encoded,
    mesh,
    person,
    started_by,
    switch,
)

from workbench.journal import OWNER
from workbench.model import REMOVED, Problem
from workbench.repair.plan_executor import FAILED, FINISHED, STOPPED, apply
from workbench.repair.plan_progress import state_of
from workbench.repair.plan_types import DEAD, HIDDEN, READ_THERE, Need, Plan, as_json
from workbench.rules.send_session import SEND
from workbench.systems.ds389.live import step_executors
from workbench.systems.ds389.native import keep_alive_dn
from workbench.systems.ds389.repairs import data, filling, links

pytestmark = pytest.mark.usefixtures("no_waiting")

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
        servers.kept()
        fleet.moment = Fleet.moment
        assert fleet.writes == before and sorted(tmp_path.rglob("*")) == files

    look()
    for number in range(len(plan.steps)):
        if state_of(tmp_path, plan).state != FINISHED:  # a deletion and the addition behind it are done by one run
            apply(plan, servers, tmp_path, resume=number > 0, most_steps=1)
        look()
    assert state_of(tmp_path, plan).state == FINISHED or apply(plan, servers, tmp_path, resume=True).state == FINISHED
    assert all(row["kept"] for row in servers.kept())


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
    everything = "\n".join([*said, *ends, *kept, json.dumps(as_json(repair.plan)), *map(str, servers.kept())])
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


def test_a_server_behind_a_hub_is_cleaned_by_itself() -> None:
    vectors = {"r": {"3": csn(5, "3")}}
    plan = {"a": csn(6, "3"), "r": csn(5, "3")}  # what a had came to r by a step before
    servers: Any = SimpleNamespace(
        vectors=lambda suffix: vectors, planned=lambda suffix, name: {"3": plan[name]}, names=lambda suffix: [*plan],
        keeps_log=lambda suffix, name: False, version=lambda name: (3, 1, 2),
    )  # fmt: skip
    step: Any = SimpleNamespace(suffix=SUFFIX, server="r", details={"origin": "3"})
    hand = step_executors.CleanHere()
    assert not list(hand.obstacles(servers, step, False)) and not hand.done(servers, step, {})
    assert list(hand.shortfall(servers, step, {})) == ["r still has 3 in its RUV"]
    for version in ((2, 3, 1), None):
        servers.version = lambda name, version=version: version
        (crashes,) = hand.obstacles(servers, step, False)
        assert "was seen to crash" in crashes
    servers.version = lambda name: (3, 1, 2)
    vectors["r"] = {"3": csn(6, "3")}
    assert not list(hand.obstacles(servers, step, False))
    vectors["r"] = {"3": csn(7, "3")}
    assert "it is alive" in next(iter(hand.obstacles(servers, step, False)))
    vectors["r"] = {"1": csn(6, "1")}
    assert hand.done(servers, step, {}) and not list(hand.shortfall(servers, step, {}))
    del vectors["r"]
    assert not hand.done(servers, step, {})


def test_what_a_person_has_to_put_in_is_whole_once_it_is_there() -> None:
    fleet = hidden_from_s3()
    attributes = {"both": ["userPassword", "description"], "hidden": ["userPassword"]}
    for name, expected in {"both": "replace: description\ndescription: as it is\n-\n", "hidden": ""}.items():
        found = {"unique-ben": missed("ben", "modify", *attributes[name])}
        with evidence(found, {"unique-ben": present_of(fleet, "ben", ["userPassword"])}):
            (step,) = draft_of(data.Rewrite().propose(view_of(fleet), need(HIDDEN)))
        filled = step.sends.replace(f"# userPassword: {READ_THERE}", "userPassword: x").replace("# ", "")
        head = f"dn: {dn_of('ben')}\nchangetype: modify\n"
        assert filled == f"{head}{expected}replace: userPassword\nuserPassword: x\n-\n"
        sent_as_it_is = [line for line in step.sends.splitlines() if not line.startswith("#")]
        assert not any("userPassword" in line for line in sent_as_it_is)


@pytest.mark.parametrize(("kind", "number"), [("initialise", 3), ("clean", 0)])
def test_a_task_that_ended_badly_is_begun_again_when_the_server_has_forgotten_it(
    kind: str, number: int, tmp_path: Path
) -> None:
    repair = REPAIRS[kind]()
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)

    def failing(server: Any, dn: str) -> None:
        server.config[dn].values["nsTaskExitCode"] = [b"53"]
        del server.tasks[dn]

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(repair.fleet, "_work", failing)
        outcome = apply(repair.plan, servers, tmp_path)
    assert outcome.state == FAILED and "ended with 53" in outcome.why and "five minutes" in outcome.why
    assert "an earlier task on" in apply(repair.plan, servers, tmp_path, resume=True).why
    step = repair.plan.steps[number]
    del repair.fleet.servers[step.on].config[step.details["task"].lower()]
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    repair.check(repair.fleet)


def test_a_task_of_a_plug_in_that_is_off_is_not_asked_for(tmp_path: Path) -> None:
    repair = initialise()
    del repair.fleet.servers["s3"].config["cn=memberof task,cn=tasks,cn=config"]
    outcome = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert (outcome.state, outcome.applied) == (FAILED, 3) and "switch its plug-in on" in outcome.why


def reaching(**known: str) -> Any:
    """The way of a temporary agreement to s3, where a file shows how the agreement there is made."""
    fleet = mesh()
    dn = agreement(fleet, "s2", "s3").dn.lower()
    del fleet.servers["s2"].config[dn], fleet.servers["s2"].links[dn]
    pairs = [{"supplier": "s2", "consumer": "s3", "suffix": SUFFIX, "decision": SEND, "to_send": {}}]
    view = view_of(fleet, pairs=pairs)
    view.context.statuses()["s1", SUFFIX, "s1-to-s3"] |= known
    (draft,) = links.TemporaryAgreement().propose(view, need("PENDING_CHANGES"))
    return draft


def test_a_temporary_agreement_logs_in_as_those_do_that_are_there() -> None:
    bare = reaching()
    assert "nsDS5ReplicaBindDN: cn=replication manager,cn=config\n" in bare.steps[0].sends
    alike = reaching(method="SIMPLE", login="uid=feeder,ou=services", transport="SSL")
    for line in ("BindDN: uid=feeder,ou=services", "TransportInfo: SSL", "BindMethod: SIMPLE", "Host: s3.test"):
        assert f"nsDS5Replica{line}\n" in alike.steps[0].sends
    assert "uid=feeder,ou=services" in alike.steps[0].risk and "uid=feeder,ou=services" in alike.load
    by_certificate = reaching(method="SSLCLIENTAUTH", transport="TLS")
    assert not by_certificate.steps and "log in at s3 by SSLCLIENTAUTH" in by_certificate.refused


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


def test_what_arrives_late_is_no_obstacle_and_what_changes_an_entry_of_the_plan_is(tmp_path: Path) -> None:
    """s2 gets what the first step wrote only when the second one is looked at; others write meanwhile, as servers do."""
    for foreign in ("", "group", "ann"):
        repair, folder = rewrite(), tmp_path / f"with-{foreign}"
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
            servers["s1"].make("modify", dn_of(foreign), f"unique-{foreign}", {"description": encoded(["x"])})
        outcome = apply(repair.plan, place, folder, resume=True)
        assert outcome.state == (FAILED if foreign == "ann" else FINISHED), outcome


def test_a_server_that_writes_for_the_first_time_stops_no_plan(tmp_path: Path) -> None:
    """The keep-alive entry of a supplier that made no change before: until now no vector named its origin."""
    for kind in ("rewrite", "recreate", "enable"):
        repair, folder = REPAIRS[kind](), tmp_path / kind
        folder.mkdir()
        for server in repair.fleet.servers.values():
            server.vector.pop("2", None)
        bare = ({**one, "vector": {k: v for k, v in one["vector"].items() if k != "2"}} for one in repair.plan.servers)
        plan = replace(repair.plan, servers=tuple(bare))
        place = MemorySite(plan, repair.fleet, folder)
        assert apply(plan, place, folder, most_steps=1).state == STOPPED
        keep_alive = keep_alive_dn(SUFFIX, "2")
        repair.fleet.servers["s2"].make("modify", keep_alive, "unique-keep-2", {"keepalivetimestamp": encoded(["1"])})
        repair.fleet.settle()
        outcome = apply(plan, place, folder, resume=True, accept_progress=kind == "enable")
        assert outcome.state == FINISHED, outcome


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


def fleet_without_9() -> Fleet:
    fleet = clean().fleet
    fleet.servers["s3"].vector.pop("9")
    return fleet


def test_what_was_delivered_of_an_origin_that_was_cleaned_is_not_told_as_lacking(tmp_path: Path) -> None:
    repair = clean()
    row = {"server": "s3", "suffix": SUFFIX, "origin": "9", "count": 2, "first": csn(79, "9"), "last": csn(80, "9")}
    plan = replace(repair.plan, promise=({**row, "targets": [dn_of("ann")]},))
    place = MemorySite(plan, repair.fleet, tmp_path)
    assert not all(one["kept"] for one in MemorySite(plan, fleet_without_9(), tmp_path).kept())  # nobody cleaned it yet
    assert apply(plan, place, tmp_path).state == FINISHED
    assert all(one["kept"] for one in place.kept())
    repair.fleet.servers["s1"].vector["9"] = csn(
        80, "9"
    )  # a server behind hubs is cleaned later: the others lack nothing
    assert all(one["kept"] for one in place.kept())
    repair.fleet.servers["s3"].entries = []
    assert not all(one["kept"] for one in place.kept())


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
        (step,) = draft_of(filling.Clean().propose(view, Need(DEAD, suffix, origin="9")))
        names |= {step.details["task"], filling._fixing(view, "s3").details["task"]}
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
