"""The hands that do repairs on Directory Servers where they cannot see all, and where others write meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import memory_servers
import pytest
from conftest import STRIDES
from hand_plans import (
    REPAIRS,
    Repair,
    draft_of,
    evidence,
    hidden_from_s3,
    missed,
    need,
    plan_of,
    present_of,
    recreate,
    rewrite,
    set_aside,
    temporary,
    view_of,
)
from memory_servers import (
    BIND_PASSWORD,
    PASSWORD,
    SUFFIX,
    Change,
    Fleet,
    Ldap,
    MemorySite,
    Server,
    agreement,
    csn,
    dn_of,
    encoded,
)

from workbench.model import Problem
from workbench.repair.plan_executor import FAILED, FINISHED, Outcome, apply
from workbench.repair.plan_types import HIDDEN
from workbench.systems.ds389.repairs.data import Recreate

pytestmark = pytest.mark.usefixtures("no_waiting")


def done(repair: Repair, folder: Path, **options: Any) -> Outcome | Problem:
    """How applying it ends."""
    try:
        return apply(repair.plan, MemorySite(repair.plan, repair.fleet, folder), folder, **options)
    except Problem as problem:
        return problem


def finished(repair: Repair) -> Outcome:
    """How it ends when all is well."""
    return Outcome(FINISHED, len(repair.plan.steps), len(repair.plan.steps))


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the servers hide an attribute from who asks, as an access control does."""

    def hide(name: str) -> None:
        shown = Ldap._shown
        monkeypatch.setattr(Ldap, "_shown", lambda ldap, one: {k: v for k, v in shown(ldap, one).items() if k != name})

    return hide


@pytest.mark.parametrize(("kind", "name"), [("rewrite", "ben"), ("recreate", "ann")])
def test_a_secret_that_is_not_shown_is_not_deleted(
    kind: str, name: str, unseen: Callable[[str], None], tmp_path: Path
) -> None:
    """Sent as if it were empty, it would be gone on all servers."""
    repair = REPAIRS[kind]()
    unseen("userPassword")
    ended = done(repair, tmp_path)
    assert isinstance(ended, Problem) and "userPassword" in str(ended) and "is not shown" in str(ended)
    assert repair.fleet.writes == []
    there = repair.fleet.servers["s1"].find(dn_of(name))
    assert there and there.values["userPassword"] == encoded([PASSWORD])


def test_a_deleted_entry_is_not_added_without_the_secret_that_its_tombstone_hides(
    unseen: Callable[[str], None], tmp_path: Path
) -> None:
    repair = recreate()
    step = repair.plan.steps[1]
    repair.fleet.servers["s1"].make("delete", step.details["dn"], step.details["entry"])
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    unseen("userPassword")
    with pytest.raises(Problem, match=r"userPassword.* is not shown"):
        servers.apply(step, {"entry": step.details["entry"]})
    assert repair.fleet.servers["s1"].find(step.details["dn"]) is None


def test_what_is_shown_only_when_it_is_asked_for_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without nsAccountLock a locked account would be open, on every server."""
    monkeypatch.setattr(memory_servers, "_HIDDEN", memory_servers._HIDDEN | {"nsaccountlock"})
    fleet = hidden_from_s3("add")
    for server in fleet.servers.values():
        if there := server.find(dn_of("ann")):
            there.values["nsAccountLock"] = encoded(["true"])
            there.state["nsaccountlock"] = csn(50, "1")
    with evidence({"unique-ann": missed("ann", "add")}, {"unique-ann": present_of(fleet, "ann")}):
        steps = draft_of(Recreate().propose(view_of(fleet), need(HIDDEN)))
    assert "nsAccountLock: true" in steps[1].sends
    plan = plan_of(fleet, steps)
    assert apply(plan, MemorySite(plan, fleet, tmp_path), tmp_path).state == FINISHED
    locked = {name: server.find(dn_of("ann")) for name, server in fleet.servers.items()}
    assert all(entry and entry.values["nsAccountLock"] == encoded(["true"]) for entry in locked.values())


def newer_on_s2(repair: Repair) -> None:
    """A user wrote to an entry of the plan on s2, and nobody has got that yet."""
    set_aside(repair.fleet, ("s2", "s1"), ("s2", "s3"), ("s3", "s1"))
    values = {"description": encoded(["newer, by a user"])}
    repair.fleet.servers["s2"].make("modify", dn_of("ann"), "unique-ann", values)


def test_who_wrote_an_entry_has_to_be_shown(unseen: Callable[[str], None], tmp_path: Path) -> None:
    repair = rewrite()
    newer_on_s2(repair)
    unseen("nscpEntryWSI")
    ended = done(repair, tmp_path, accept_progress=True)
    assert isinstance(ended, Problem) and "read nscpEntryWSI" in str(ended)
    assert repair.fleet.writes == []


@pytest.mark.parametrize("stride", STRIDES)
def test_no_lost_connection_has_a_newer_value_overwritten(stride: int, tmp_path: Path) -> None:
    lost = 0
    for number in range(0, 150, stride):
        repair, folder, looks = rewrite(), tmp_path / str(number), 0
        folder.mkdir()
        newer_on_s2(repair)

        def moment(what: str, number: int = number) -> str:
            nonlocal looks
            looks += what == "look"
            return "unreachable" if what == "look" and looks == number else ""

        repair.fleet.moment = moment
        ended = done(repair, folder, accept_progress=True, patience=30)
        assert isinstance(ended, Problem) or ended.state == FAILED
        assert ("s1", "modify", dn_of("ann")) not in repair.fleet.writes
        lost += looks >= number > 0
    assert lost > 50 // stride


def test_a_step_waits_for_the_servers_that_it_is_about_and_no_others(tmp_path: Path) -> None:
    """c1 lacks the entry, too: that is another need, and perhaps a later step."""
    repair = rewrite()
    c1 = repair.fleet.servers["c1"]
    c1.entries = [one for one in c1.entries if one.unique != "unique-ann"]
    assert done(repair, tmp_path) == finished(repair)


@pytest.mark.parametrize(("left_out", "end"), [(["description", "memberof"], FINISHED), ([], FAILED)])
def test_what_an_agreement_leaves_out_is_not_waited_for(left_out: list[str], end: str, tmp_path: Path) -> None:
    repair = recreate()
    servers = tuple({**one, "left_out": left_out if one["server"] == "s3" else []} for one in repair.plan.servers)
    plan = replace(repair.plan, servers=servers)
    for one in repair.fleet.servers.values():
        if there := one.find(dn_of("ann")):
            there.values["description"] = encoded(["x"])
    take = Server.take

    def without(server: Server, change: Change) -> None:
        take(server, change)
        for entry in server.entries if server.name == "s3" else ():
            entry.values.pop("description", None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "take", without)
        ended = apply(plan, MemorySite(plan, repair.fleet, tmp_path), tmp_path, patience=60)
    assert ended.state == end


@pytest.mark.parametrize("every", [1, 2, 3, 5, 8])
def test_a_step_ends_while_clients_go_on_writing(every: int, tmp_path: Path) -> None:
    repair = REPAIRS["enable"]()
    fleet, looks = repair.fleet, 0

    def moment(what: str) -> str:
        nonlocal looks
        looks += 1
        if fleet.writes and looks % every == 0:
            fleet.servers["s1"].make("modify", dn_of("ben"), "unique-ben", {"sn": encoded([str(looks)])})
        return ""

    fleet.moment = moment
    ended = done(repair, tmp_path, accept_progress=True, patience=2000)
    assert ended == finished(repair)


def test_a_server_that_takes_its_feeder_for_itself_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on 3.1.2: a hub was to feed the supplier whose element stands first in its RUV, and nothing ever came."""
    repair = temporary()
    said = b"Error (11) Replication error acquiring replica: the replica has the same Replica ID as this one"

    def turned_away(server: Any, agreement: Any, link: Any) -> None:
        agreement.values["nsds5replicaLastUpdateStatus"] = [said]

    monkeypatch.setattr(repair.fleet, "_replicate", turned_away)
    ended = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert ended.state == FAILED and "takes" in ended.why and "for itself" in ended.why


def test_a_wrong_replication_password_is_said_and_can_be_put_right(tmp_path: Path) -> None:
    repair = temporary()
    given = ["a wrong one", BIND_PASSWORD]
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    servers.credentials = lambda: given.pop(0)
    ended = apply(repair.plan, servers, tmp_path)
    assert ended.state == FAILED and "s3 refuses cn=replication manager,cn=config with the password" in ended.why
    assert apply(repair.plan, servers, tmp_path, resume=True).state == FINISHED
    assert [what for _, what, _ in repair.fleet.writes] == ["add", "delete", "add", "delete"]
    repair.check(repair.fleet)


def test_a_restored_server_that_wrote_or_is_another_ends_the_plan(tmp_path: Path, monkeypatch: Any) -> None:
    repair = REPAIRS["rescue"]()
    (start, *_) = repair.plan.steps
    servers = MemorySite(repair.plan, repair.fleet, tmp_path)
    s3 = repair.fleet.servers["s3"]
    s3.down = False
    assert servers.shortfall(start, {}) == []
    held = s3.vector.pop("3")
    assert servers.shortfall(start, {}) == ["s3 does not say yet what it holds"]
    s3.vector["3"] = csn(5000, "3")
    with pytest.raises(
        Problem, match=f"holds its own changes up to {csn(5000, '3')}, and the plan was made for {held}"
    ):
        servers.shortfall(start, {})
    ended = done(repair, tmp_path)
    assert isinstance(ended, Problem)  # nothing was done yet


# Afterwards


def promised(**more: Any) -> tuple[Repair, dict[str, Any]]:
    row = {"server": "s3", "suffix": SUFFIX, "origin": "1", "count": 1, "first": csn(90, "1"), "last": csn(90, "1")}
    return rewrite(), {**row, "targets": [dn_of("ann")], **more}


def shown(repair: Repair, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    plan = replace(repair.plan, promise=(row,))
    return MemorySite(plan, repair.fleet, folder).kept()[-1]


def test_what_nobody_can_tell_is_not_called_kept(tmp_path: Path) -> None:
    repair, row = promised()
    assert shown(repair, row, tmp_path)["kept"] is False  # the entry is another on s3
    for name in ("s1", "s2"):
        repair.fleet.servers[name].down = True
    alone = shown(repair, row, tmp_path)
    assert alone["kept"] is None and "there was nothing to compare" in alone["says"]
    repair, row = promised(targets=[])
    assert shown(repair, row, tmp_path)["kept"] is None  # its vector claimed them while they were missing
    repair, row = promised(targets=[], last=csn(200, "1"))
    assert shown(repair, row, tmp_path)["kept"] is False
    repair.fleet.servers["s3"].vector["1"] = csn(200, "1")
    assert shown(repair, row, tmp_path)["kept"] is True
    # Over own changes its vector moves with its next own change, whether they came back or not.
    own = repair.fleet.servers["s3"].rid
    repair, row = promised(targets=[], origin=own, first=csn(200, own), last=csn(200, own))
    repair.fleet.servers["s3"].vector[own] = csn(201, own)
    assert shown(repair, row, tmp_path)["kept"] is None


@pytest.mark.parametrize("kind", ["initialise", "clean"])
def test_a_step_that_was_only_planned_proves_nothing(kind: str, tmp_path: Path) -> None:
    _, row = promised(targets=[])
    repair = REPAIRS[kind]()
    if kind == "initialise":
        repair.fleet.servers["s3"].vector["1"] = csn(200, "1")
    else:
        row = {**row, "origin": "9", "first": csn(80, "9"), "last": csn(80, "9")}
    again = replace(repair, plan=plan_of(repair.fleet, repair.plan.steps))
    assert shown(again, row, tmp_path)["kept"] is None


def test_what_each_server_notes_of_logins_is_neither_compared_nor_waited_for(tmp_path: Path) -> None:
    repair = recreate()
    (deleting, adding, *rest) = repair.plan.steps
    noted = {**adding.details, "values": {**adding.details["values"], "passwordRetryCount": ["0"]}}
    both = (replace(deleting, details=noted), replace(adding, details={**noted, "finishes": True}))
    plan = replace(repair.plan, steps=(*both, *rest))
    for number, server in enumerate(repair.fleet.servers.values()):
        if there := server.find(dn_of("ann")):
            there.values["passwordRetryCount"] = encoded([str(number)])
    take = Server.take

    def fails_to_log_in(server: Server, change: Change) -> None:
        take(server, change)
        if server.name == "s3" and (there := server.find(dn_of("ann"))):
            there.values["passwordRetryCount"] = encoded(["7"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Server, "take", fails_to_log_in)
        assert apply(plan, MemorySite(plan, repair.fleet, tmp_path), tmp_path).state == FINISHED


def test_memberships_that_the_file_cannot_show_are_not_asked_for() -> None:
    fleet = hidden_from_s3("add")
    present = present_of(fleet, "ann")
    present.hidden.add("memberOf")
    with evidence({"unique-ann": missed("ann", "add")}, {"unique-ann": present}):
        _, step = draft_of(Recreate().propose(view_of(fleet), need(HIDDEN)))
    assert step.details["hidden"] == [] and "memberOf" not in step.sends


def test_a_question_that_fails_is_unknown_and_no_error(tmp_path: Path) -> None:
    repair, _ = promised()

    def fails(*asked: Any) -> Any:
        raise Problem("the search was refused", "ldap://x", "ask for the right")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemorySite, "_without_conflicts", fails)
        rows = MemorySite(repair.plan, repair.fleet, tmp_path).kept()
    unknown = [one for one in rows if one["kept"] is None]
    assert {one["server"] for one in unknown} == {"s1", "s2", "s3", "c1"}
    assert all(one["says"] == "could not be asked: the search was refused" for one in unknown)


@pytest.mark.parametrize(("before", "kept"), [(2, True), (1, False), (0, False), (None, None)])
def test_conflicts_that_were_there_before_are_no_fault_of_the_plan(
    before: int | None, kept: bool | None, tmp_path: Path
) -> None:
    """Where entries were not collected before the plan, nobody can tell."""
    repair, _ = promised()
    servers = [{**row, "conflicts": before if row["server"] == "s2" else 2} for row in repair.plan.servers]
    site = MemorySite(replace(repair.plan, servers=tuple(servers)), repair.fleet, tmp_path)
    some = [SimpleNamespace(dn=f"nsuniqueid={number}+uid=ann") for number in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "conflicts", lambda suffix, name: some if name == "s2" else [])
        rows = [row for row in site.kept() if row["server"] == "s2" and "conflict" in row["says"]]
    assert [row["kept"] for row in rows] == [kept], rows


def test_servers_that_are_level_at_no_moment_are_not_called_behind(tmp_path: Path) -> None:
    repair = REPAIRS["enable"]()
    fleet = repair.fleet
    assert done(repair, tmp_path) == finished(repair)

    def moment(what: str) -> str:
        fleet.servers["s1"].make("modify", dn_of("ben"), "unique-ben", {"sn": encoded(["x"])})
        return ""

    fleet.moment = moment
    rows = MemorySite(repair.plan, fleet, tmp_path).kept()
    assert all(row["kept"] for row in rows), rows
    fleet.moment = Fleet.moment
    for to in ("s1", "s2"):
        agreement(fleet, to, "s3").values["nsds5ReplicaEnabled"] = encoded(["off"])
    fleet.servers["s1"].make("modify", dn_of("ben"), "unique-ben", {"sn": encoded(["y"])})
    rows = [row for row in MemorySite(repair.plan, fleet, tmp_path).kept() if row["kept"] is False]
    assert [row["server"] for row in rows if "claim" in row["says"]] == ["s3"]
    assert {row["server"] for row in rows if "off, or leads elsewhere" in row["says"]} == {"s1", "s2"}


def test_a_link_that_was_not_switched_on_is_not_called_kept(tmp_path: Path) -> None:
    """Nothing was waiting behind it, so the claims of all servers are kept before the step, too."""
    repair = REPAIRS["enable"]()
    rows = MemorySite(repair.plan, repair.fleet, tmp_path).kept()
    assert [row["server"] for row in rows if "its step was not done" in row["says"] and row["kept"] is False]
    assert done(repair, tmp_path) == finished(repair)
    assert all(row["kept"] for row in MemorySite(repair.plan, repair.fleet, tmp_path).kept())
