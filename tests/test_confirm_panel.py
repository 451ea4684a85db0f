"""The panel does a plan only for who typed the names for what is shown, once, and says on every dry path that nothing changed."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from case_samples import SNAPSHOTS
from hand_plans import REPAIRS, temporary
from memory_servers import BIND_PASSWORD
from repair_samples import Toy, check_done_once, plan_of

from widgets import ConfirmPanel, JournalView, PlanView
from widgets.confirm import NOTHING_WAS_CHANGED
from workbench import Case
from workbench.cli import main
from workbench.diagnosis.incident import RECORD
from workbench.journal import owned
from workbench.model import Problem
from workbench.repair.case_plan import keep, plan_for
from workbench.repair.plan_executor import FINISHED, apply
from workbench.repair.plan_progress import JOURNAL, state_of
from workbench.repair.plan_types import NAME, Plan, as_json, read_plan
from workbench.repair.planner import models_of
from workbench.repair.rehearsal import Rehearsal
from workbench.repair.server_access import PASSWORD, REPLICATION_PASSWORD, ServerAccess

URLS = [f"{name}=ldap://{name}.test:389" for name in ("s1", "s2", "s3", "c1")]
SECRET = "correct horse battery"


class Here:
    """Toy servers, reached at once."""

    given, patience = True, 5.0

    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.made = 0

    def site(self, plan: Plan, folder: Path, steps: Sequence[Any] = ()) -> Toy:
        self.made += 1
        return self.toy

    def command(self, verb: str, folder: Path, *more: str) -> str:
        return " ".join(["workbench", verb, str(folder), "--url", "b=ldap://b.test", *more])


class Gate:
    """Holds the toy at its first effect until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, effect: str) -> None:
        self.reached.set()
        assert self.opened.wait(20)


def send(view: Any, what: str, **more: Any) -> None:
    view._heard(view, {"what": what, **more}, None)


@pytest.mark.parametrize(
    "accepted", [[], None, ["source_open"], ["source_by_its_start", "source_open"], "source_by_its_start"]
)
def test_what_the_steps_take_for_granted_is_accepted_first(tmp_path: Path, accepted: Any) -> None:
    toy = Toy()
    made = plan_of("write")
    steps = tuple(replace(step, assumes=("source_named_by_person", "source_by_its_start")) for step in made.steps)
    made = replace(made, steps=steps)
    (tmp_path / NAME).write_text(json.dumps(as_json(made)))
    panel = ConfirmPanel(read_plan(tmp_path), tmp_path, Here(toy))
    (assumption,) = panel.data["assumptions"]
    assert assumption["code"] == "source_by_its_start" and "begins with a start is the source" in assumption["says"]
    given = {"seen": panel.data["seen"], "typed": panel.data["names"]}
    send(panel, "apply", **given, **({} if accepted is None else {"accepted": accepted}))
    assert panel.wait(10) and "an assumption of the steps was not accepted" in panel.notice and toy.log == []
    send(panel, "apply", **given, accepted=["source_by_its_start"])
    assert panel.wait(10) and len(toy.log) == 1


def confirm(panel: ConfirmPanel, typed: Any = None, seen: str | None = None) -> None:
    """Type the names, or what is given in their place, and press the button."""
    seen = panel.data["seen"] if seen is None else seen
    send(panel, "apply", seen=seen, typed=panel.data["names"] if typed is None else typed)


def kept(folder: Path, *kinds: str) -> Plan:
    plan = plan_of(*kinds)
    (folder / NAME).write_text(json.dumps(as_json(plan)))
    return plan


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


# --- confirming


@pytest.mark.parametrize(
    "typed",
    [
        None,
        "",
        [],
        ["b"],
        ["b", ""],
        ["b", "A"],
        ["b", "a "],
        ["a", "b"],
        ["b", "a", "c"],
        "ba",
        {"b": "a"},
        [["b"], "a"],
        7,
    ],
)
def test_only_the_exact_names_of_all_servers_that_change_begin_it(tmp_path: Path, typed: Any) -> None:
    toy = Toy()
    panel = ConfirmPanel(kept(tmp_path, "write", "write at a"), tmp_path, Here(toy))
    assert panel.data["names"] == ["b", "a"]
    send(panel, "apply", seen=panel.data["seen"], typed=typed)
    assert panel.wait(10) and "not confirmed" in panel.notice
    assert toy.log == [] and not (tmp_path / JOURNAL).exists()
    assert panel.data["banner"]["text"] == NOTHING_WAS_CHANGED
    confirm(panel)
    assert panel.wait(10) and len(toy.log) == 2


def test_it_is_done_to_the_end_and_says_what_to_type_next(tmp_path: Path) -> None:
    toy, plan = Toy(), kept(tmp_path, "write", "parts", "slow")
    panel = ConfirmPanel(plan, tmp_path, Here(toy))
    confirm(panel)
    assert panel.wait(20) and not panel.notice
    check_done_once(plan, toy.log, [])
    assert panel.data["outcome"] == "3 of 3 applied"
    assert panel.data["next"] == [f"workbench verify {tmp_path} --url b=ldap://b.test"]
    assert (panel.data["steps"], panel.data["names"], panel.data["left"]) == ([], [], 0)
    assert NOTHING_WAS_CHANGED not in panel.text()
    assert "3-slow is done" in panel.data["told"]
    told = [row["what"] for row in JournalView(tmp_path).data["rows"]]
    assert told[0] == "begun" and told[-1] == "finished" and told.count("done") == 3


def test_what_a_page_sends_that_is_nothing_changes_nothing(tmp_path: Path) -> None:
    toy = Toy()
    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, Here(toy))
    for message in (None, [], "apply", {"what": None}, {"what": "apply"}, {"what": "__init__"}, {"what": "stop"}):
        panel._heard(panel, message, None)
    assert panel.wait(10) and toy.log == [] and panel.data["banner"]["text"] == NOTHING_WAS_CHANGED


# --- exactly once


def test_a_double_click_and_two_tabs_are_one_run(tmp_path: Path, gate: Gate) -> None:
    toy = Toy(at_part=gate)
    servers = Here(toy)
    panel = ConfirmPanel(kept(tmp_path, "write", "write at a"), tmp_path, servers)
    shown, typed = panel.data["seen"], panel.data["names"]
    confirm(panel, typed, shown)
    assert gate.reached.wait(10)
    for what in ("apply", "rehearse", "verify", "look"):
        send(panel, what, seen=shown, typed=typed)
        assert "at work already" in panel.notice
    gate.opened.set()
    assert panel.wait(10)
    confirm(panel, typed, shown)  # it was on its way all the time
    assert panel.wait(10) and "gone on since it was shown" in panel.notice
    assert len(toy.log) == 2 and servers.made == 1


def test_many_presses_at_once_are_one_run(tmp_path: Path) -> None:
    toy, plan = Toy(), kept(tmp_path, "write", "parts")
    servers = Here(toy)
    panel = ConfirmPanel(plan, tmp_path, servers)
    message = {"what": "apply", "seen": panel.data["seen"], "typed": panel.data["names"]}
    hands = [threading.Thread(target=panel._heard, args=(panel, message, None)) for _ in range(8)]
    for one in hands:
        one.start()
    for one in hands:
        one.join()
    assert panel.wait(10)
    check_done_once(plan, toy.log, [])
    assert servers.made == 1


def test_a_second_panel_is_told_plainly_that_another_run_works(tmp_path: Path, gate: Gate) -> None:
    toy, plan = Toy(at_part=gate), kept(tmp_path, "write", "write at a")
    first, second = ConfirmPanel(plan, tmp_path, Here(toy)), ConfirmPanel(plan, tmp_path, Here(toy))
    stale = second.data["seen"]
    confirm(first)
    assert gate.reached.wait(10)
    confirm(second, ["b", "a"], stale)
    assert "gone on since it was shown" in second.notice
    confirm(second, ["b", "a"])  # of what it shows now: half done
    assert second.wait(10)
    assert "another run works on this case" in second.data["outcome"]
    gate.opened.set()
    assert first.wait(10)
    check_done_once(plan, toy.log, [])


def test_a_plan_that_was_replaced_is_not_done(tmp_path: Path) -> None:
    toy = Toy()
    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, Here(toy))
    kept(tmp_path, "write", "write")
    confirm(panel)
    assert panel.wait(10) and "the case has another plan by now" in panel.data["outcome"]
    assert toy.log == [] and panel.data["banner"]["text"] == NOTHING_WAS_CHANGED


def test_while_another_plan_is_half_done_no_name_can_be_typed(tmp_path: Path) -> None:
    begun = kept(tmp_path, "write", "write at a")
    apply(begun, Toy(), tmp_path, most_steps=1)
    panel = ConfirmPanel(plan_of("write at c"), tmp_path, Here(Toy()))
    assert panel.data["names"] == [] and f"half done: {begun.id}" in panel.data["outcome"]
    with pytest.raises(Problem, match="a repair of this case is half done"):
        keep(panel.plan, tmp_path)


# --- stopping


def test_stopped_between_steps_it_is_resumed_by_whoever_comes(tmp_path: Path, gate: Gate) -> None:
    toy, plan = Toy(at_part=gate), kept(tmp_path, "parts", "write at a", "write")
    panel = ConfirmPanel(plan, tmp_path, Here(toy), accept_progress=True)
    confirm(panel)
    assert gate.reached.wait(10)
    send(panel, "stop")
    assert panel.data["stopping"]
    gate.opened.set()
    assert panel.wait(10)
    assert len(toy.log) == 3  # the step that ran is whole
    assert panel.data["outcome"] == "stopped, 1 of 3 applied: it was told to stop"
    assert panel.data["next"] == [f"workbench resume {tmp_path} --url b=ldap://b.test --accept-progress"]
    assert panel.data["banner"]["text"].startswith("HALF DONE: 1 of 3 applied")
    assert not (tmp_path / "STOP").exists()
    again = ConfirmPanel(plan, tmp_path, Here(toy), accept_progress=True)
    assert [one["key"] for one in again.data["steps"]] == ["2-write", "3-write"]
    assert again.data["verb"].startswith("Go on")
    confirm(again)
    assert again.wait(10)
    check_done_once(plan, toy.log, [])
    confirm(panel)  # shows a half-done plan still
    assert panel.wait(10) and len(toy.log) == 5


def test_the_stop_of_somebody_else_counts_and_stays(tmp_path: Path) -> None:
    (tmp_path / "STOP").touch()
    toy = Toy()
    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, Here(toy))
    confirm(panel)
    assert panel.wait(10) and "STOP is there" in panel.data["outcome"]
    assert (tmp_path / "STOP").exists() and toy.log == []
    assert panel.data["banner"]["text"] == NOTHING_WAS_CHANGED


def test_a_step_that_fails_leaves_it_to_be_resumed(tmp_path: Path) -> None:
    toy = Toy(ended_badly="it was refused")
    panel = ConfirmPanel(kept(tmp_path, "write", "write"), tmp_path, Here(toy))
    confirm(panel)
    assert panel.wait(10)
    assert panel.data["outcome"].startswith("failed, 0 of 2 applied: it was refused")
    assert panel.data["banner"]["grave"] and "HALF DONE" in panel.data["banner"]["text"]


# --- dry


def test_a_rehearsal_changes_nothing_and_says_so_all_the_time(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS)
    plan = plan_for(case)
    panel = ConfirmPanel(plan, case.folder)
    assert panel.data["names"] == [] and not panel.data["can"]["verify"]
    banners = [panel.data["banner"]["text"]]
    panel.observe(lambda change: banners.append(change["new"]["banner"]["text"]), "data")
    send(panel, "rehearse", seen=panel.data["seen"])
    assert panel.wait(60)
    assert "rehearsed on the model, no server was contacted: 1 of 1 steps" in panel.data["outcome"]
    assert len(banners) > 2 and all(one.startswith(NOTHING_WAS_CHANGED) for one in banners)
    assert panel.text().startswith(NOTHING_WAS_CHANGED) and plan.steps[0].says in panel.text()
    assert not (case.folder / JOURNAL).exists()
    confirm(panel, ["s3"])
    assert "no servers are given" in panel.notice
    assert plan.id in PlanView(plan).text()
    assert {one["verdict"] for need in PlanView(plan).data["needs"] for one in need["courses"]} >= {"chosen"}


@pytest.mark.parametrize("refusal", ["obstacle", "moved", "unreachable"])
def test_after_a_refusal_nothing_was_changed(tmp_path: Path, refusal: str) -> None:
    toy = {
        "obstacle": Toy(in_the_way=["an initialisation runs"]),
        "moved": Toy(moved={"a": {"1": None}}),
        "unreachable": Toy(unreachable={"b"}),
    }[refusal]
    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, Here(toy))
    confirm(panel)
    assert panel.wait(10) and panel.data["outcome"]
    assert panel.data["banner"] == {"text": NOTHING_WAS_CHANGED, "grave": False}
    assert toy.log == [] and panel.data["names"] == ["b"]


def test_a_damaged_journal_is_not_called_nothing(tmp_path: Path) -> None:
    plan = kept(tmp_path, "write")
    (tmp_path / JOURNAL).write_text('{"n": 7}\n')
    panel = ConfirmPanel(plan, tmp_path, Here(Toy()))
    assert NOTHING_WAS_CHANGED not in panel.text() and panel.data["names"] == []
    assert "damaged" in panel.data["outcome"]
    assert "damaged" in JournalView(tmp_path).notice


def test_an_error_of_the_program_ends_the_run_and_not_the_panel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda what: None)

    def broken(effect: str) -> None:
        raise ZeroDivisionError

    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, Here(Toy(at_part=broken)))
    confirm(panel)
    assert panel.wait(10) and "error of this program" in panel.data["outcome"]
    assert "HALF DONE" in panel.data["banner"]["text"]
    with owned(tmp_path):
        pass


# --- real hands, over servers in memory


def traits_of(view: Any) -> str:
    return json.dumps({name: view.trait_values()[name] for name in ("data", "notice")}, default=str) + view.text()


def test_no_password_is_in_what_a_page_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_waiting: Any) -> None:
    from memory_servers import MemorySite

    from workbench.systems.ds389.live import site

    repair = temporary()
    (tmp_path / NAME).write_text(json.dumps(as_json(repair.plan)))
    given: list[str] = []

    def place(plan: Plan, addresses: Any, access: Any, folder: Path, credentials: Callable[[], str]) -> MemorySite:
        given.append(access.password())
        made = MemorySite(plan, repair.fleet, folder)
        made.credentials = credentials
        return made

    monkeypatch.setattr(site, "DirectorySite", place)
    (tmp_path / "password").write_text(f"{SECRET}\n")
    monkeypatch.setenv(REPLICATION_PASSWORD, BIND_PASSWORD)
    servers = ServerAccess(urls=URLS, bind_dn="cn=dm", password_file=tmp_path / "password")
    panel = ConfirmPanel(repair.plan, tmp_path, servers)
    seen: list[str] = []
    panel.observe(lambda change: seen.append(json.dumps(change["new"], default=str)), "data")
    confirm(panel)
    assert panel.wait(20), panel.data["told"]
    assert panel.data["outcome"] == "2 of 2 applied" and given == [SECRET]
    repair.check(repair.fleet)
    send(panel, "verify")
    assert panel.wait(20) and panel.data["kept"] and "kept" in panel.data["outcome"]
    shown = "".join([*seen, traits_of(panel), traits_of(JournalView(tmp_path)), traits_of(PlanView(repair.plan))])
    for secret in (SECRET, BIND_PASSWORD):
        assert secret not in shown and secret not in repr(servers)
        assert secret not in (tmp_path / JOURNAL).read_text()
    assert f"--password-file {tmp_path / 'password'}" in panel.data["next"][0]


def test_without_a_password_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    repair = REPAIRS["enable"]()
    (tmp_path / NAME).write_text(json.dumps(as_json(repair.plan)))
    panel = ConfirmPanel(repair.plan, tmp_path, ServerAccess(urls=URLS, bind_dn="cn=dm"))
    confirm(panel)
    assert panel.wait(20) and f"or {PASSWORD} in the environment" in panel.data["outcome"]
    assert panel.data["banner"]["text"] == NOTHING_WAS_CHANGED and not (tmp_path / JOURNAL).exists()


def test_no_servers_named_is_a_rehearsal(tmp_path: Path) -> None:
    panel = ConfirmPanel(kept(tmp_path, "write"), tmp_path, ServerAccess())
    assert panel.data["names"] == [] and panel.data["can"] == {"rehearse": True, "verify": False}


def test_a_half_done_plan_is_gone_on_with_and_not_planned_again(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS)
    begun = plan_of("write", "write at a")
    keep(begun, case.folder)
    apply(begun, Toy(), case.folder, most_steps=1)
    assert plan_for(case).id == begun.id
    (case.folder / NAME).write_text(json.dumps(as_json(plan_of("write"))))
    with pytest.raises(Problem, match="its plan is gone"):
        plan_for(case)


def test_a_long_journal_is_leafed_through(tmp_path: Path) -> None:
    for number in range(45):
        plan = kept(tmp_path, "write", f"write at {'abc'[number % 3]}", *["write"] * (number // 3))
        toy = Toy(in_the_way=["no"])
        with pytest.raises(Problem):
            apply(plan, toy, tmp_path)
    view = JournalView(tmp_path)
    total = view.data["total"]
    assert total > 100 and view.data["rows"][-1]["n"] == total
    send(view, "page", by=-1)
    assert view.data["rows"][0]["n"] == view.data["first"] + 1 and len(view.data["rows"]) == 100
    for junk in ("x", None, 10**9, [1]):
        send(view, "page", by=junk)
        assert view.data["rows"]
    assert state_of(tmp_path, plan).state == "not begun"


@pytest.mark.parametrize("urls", [["s2=ldap://me:hidden@two"], ["ldap://me:hidden@two"], "ldap://me:hidden@two"])
def test_an_address_with_a_password_is_refused_and_not_repeated(urls: Any) -> None:
    with pytest.raises(Problem, match="no user and no password") as told:
        ServerAccess(urls=urls)
    assert "hidden" not in str(told.value)


def test_the_command_says_all_that_was_given(tmp_path: Path) -> None:
    reach = ServerAccess(["s1=one"], ["s2=ldap://two x"], "cn=a b", tmp_path / "p", "ca.pem", False, 7, 600, "r")
    said = shlex.split(reach.command("resume", tmp_path, "--accept-progress"))
    given = [
        "--instance",
        "s1=one",
        "--url",
        "s2=ldap://two x",
        "--bind-dn",
        "cn=a b",
        "--password-file",
        f"{tmp_path}/p",
    ]
    more = ["--ca", "ca.pem", "--timeout", "7", "--replication-password-file", "r", "--no-tls", "--accept-progress"]
    assert said == ["workbench", "resume", str(tmp_path), *given, *more]
    known = {text for option in main.commands["resume"].params for text in (*option.opts, *option.secondary_opts)}
    assert {word for word in said if word.startswith("--")} <= known
    known = {text for option in main.commands["verify"].params for text in (*option.opts, *option.secondary_opts)}
    assert {word for word in reach.command("verify", tmp_path).split() if word.startswith("--")} <= known


def test_a_run_without_a_person_replaces_no_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS)
    told: list[str] = []
    monkeypatch.setenv(RECORD, str(tmp_path / "facts.json"))
    first = plan_for(case, told=told.append)
    file = case.folder / "plan.json"
    assert read_plan(file).id == first.id, "there was none"
    monkeypatch.delenv(RECORD)
    other = next(one for one in first.courses if one.proven and not one.refused and not one.chosen)
    mine = plan_for(case, ways=[other.way], told=told.append)
    assert mine.steps != first.steps
    before = file.read_bytes()
    monkeypatch.setenv(RECORD, str(tmp_path / "facts.json"))
    assert told == []
    shown = plan_for(case, told=told.append)
    assert shown.steps == first.steps
    (sentence,) = told
    assert f"another plan is kept with the case, and stays: {file}" in sentence
    assert plan_for(case, ways=[other.way], told=told.append).id == mine.id
    assert len(told) == 1
    assert file.read_bytes() == before


def test_a_plan_that_is_done_stays_until_something_new_was_collected(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(SNAPSHOTS)
    plan = plan_for(case)
    time.sleep(1)  # a plan tells in which second it was made
    assert plan_for(case).id != plan.id  # not begun: made anew, of what is there now
    plan = plan_for(case)
    site = Rehearsal(plan, models_of(case, plan.snapshot), str)
    assert apply(plan, site, case.folder, patience=0).state == FINISHED
    assert plan_for(case).id == plan.id
    panel = ConfirmPanel(plan_for(case), case.folder)
    assert NOTHING_WAS_CHANGED not in panel.text()
    assert not panel.data["names"]
