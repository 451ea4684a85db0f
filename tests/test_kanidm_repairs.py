"""Repairs of Kanidm: the model against servers that keep every CID, and plans for what the incidents of Kanidm look like."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from kanidm_samples import DAY, DOMAIN, Cid, Entry, backup, collected, origin
from planted import Fault, check_noticed, name_of
from test_kanidm_diagnosis import SAMPLES

from workbench import Case
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.bundles import write_bundle
from workbench.repair.plan_text import plan_text
from workbench.repair.plan_types import Plan, as_json, to_accept
from workbench.repair.planner import models_of, plan
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.rules.repair_model import ChangeGroup, Link, Server
from workbench.rules.vectors import Span
from workbench.systems.kanidm.cid import SECOND
from workbench.systems.kanidm.pulling import PULLING
from workbench.systems.kanidm.rules.fleet import Event, Fleet

# --- the model

NAMES = ("A", "B", "C")
_ERA = 10**11 * SECOND
"""Added to the times of a fleet, some of which lie before 0."""

EVENTS = st.one_of(
    st.tuples(st.sampled_from(["write", "write", "purge", "restore"]), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["incremental", "incremental", "refresh"]), st.permutations(NAMES)),
)
LATER = (1, 60, 600, DAY, 3 * DAY)
HISTORIES = st.lists(st.tuples(st.sampled_from(LATER), EVENTS), max_size=40)
PAIRS = [(supplier, consumer) for supplier in NAMES for consumer in NAMES if supplier != consumer]


def played(history: list[Any]) -> tuple[Fleet, int]:
    """Servers of one domain after a history, and what time it is then.

    A restored server has its CIDs of three events before, and wrote since whatever is no change.
    """
    fleet, now = Fleet(NAMES, 7 * DAY), 10
    fleet.play([Event(1, "refresh", supplier="A", consumer=name) for name in NAMES[1:]])
    states: list[dict[str, tuple[Any, ...]]] = []
    for later, (do, who) in history:
        now += later
        states.append({name: (one.number, one.domain, set(one.cids)) for name, one in fleet.servers.items()})
        if do == "restore":
            one = fleet.servers[who]
            one.number, one.domain, cids = states[-3:][0][who]
            one.cids, one.last = set(cids), now * SECOND
            continue
        names = {"server": who} if isinstance(who, str) else {"supplier": who[0], "consumer": who[1]}
        fleet.play([Event(now, do, **names)])
    return fleet, now + 1


def key(time: int, uuid: str) -> str:
    return f"{time + _ERA:032d}-{uuid}"


def modelled(fleet: Fleet, now: int, links: list[Link], kind: type[PullModel] = PullModel) -> PullModel:
    """A lot for each CID."""
    cids = sorted(set().union(*(one.cids for one in fleet.servers.values())))
    lots = [ChangeGroup(uuid, key(time, uuid), key(time, uuid)) for time, uuid in cids if time > -_ERA]
    servers, times = {}, {}
    for name, one in fleet.servers.items():
        vector: dict[str, Span] = {}
        for time, uuid in sorted(cid for cid in one.cids if cid[0] > -_ERA):
            vector[uuid] = Span(vector.get(uuid, Span(key(time, uuid))).min, key(time, uuid))
        holds = {number for number, lot in enumerate(lots) if (int(lot.last[:32]) - _ERA, lot.origin) in one.cids}
        servers[name] = Server(name, one.uuid, one.domain, vector, None, holds)
        times[name] = one.last + _ERA
    return kind(
        lots,
        servers,
        links,
        lambda position: position[33:],
        lambda uuid, number: key(now * SECOND + number, uuid),
        pulling=PULLING,
        now=times,
        time_of=lambda position: int(position[:32]),
        order_key=lambda uuid, time: key(time - _ERA, uuid),
    )


def compare(history: list[Any], ends: tuple[str, str], kind: type[PullModel]) -> None:
    """A pull on the model, and one of servers that keep every CID."""
    fleet, now = played(history)
    link = Link(*ends, True)
    model = modelled(fleet, now, [link], kind)
    supplier, consumer = (fleet.servers[name] for name in ends)
    vector = model.servers[ends[1]].vector
    before, firsts = set(consumer.cids), {uuid: span.min for uuid, span in vector.items()}
    stuck = model.stuck(link)
    moved = model.session(link)
    reply = fleet.pull(now, supplier, consumer)
    now_there = {cid for cid in consumer.cids if cid[0] > -_ERA}
    held = [model.lots[number].last for number in model.servers[ends[1]].holds]
    assert {(int(last[:32]) - _ERA, last[33:]) for last in held} == now_there
    assert {uuid: span.max for uuid, span in vector.items()} == {
        uuid: key(max(time for time, of in now_there if of == uuid), uuid) for _, uuid in now_there
    }
    assert firsts.items() <= {uuid: span.min for uuid, span in vector.items()}.items()
    assert moved == bool(now_there - before)
    assert (stuck is None) == (reply.message in ("V1", "NoChangesAvailable") and reply.consumer == "Ok")


@settings(max_examples=300, deadline=None)
@given(HISTORIES, st.sampled_from(PAIRS))
def test_a_pull_of_the_model_is_one_of_servers_that_keep_every_cid(history: list[Any], ends: tuple[str, str]) -> None:
    compare(history, ends, PullModel)


PULLED = "workbench.replication.entry.rules.repair_model"
FAULTS = [
    Fault(PULLED, "if answer.refused or not answer.owed:", "if not answer.owed:", "what the consumer refuses"),
    Fault(PULLED, "after < self.time_of", "0 < self.time_of", "what is owed begins behind its lower end"),
    Fault(PULLED, "(self.lots[number].last) <= upto", "(self.lots[number].last) < upto", "the last one that is owed"),
    Fault(PULLED, "self.lots[number].origin == origin and ", "", "origins by themselves"),
    Fault(PULLED, "Span(first, self.order_key(origin, upto))", "Span(None, self.order_key(origin, upto))", "the first one"),
    Fault(PULLED, "self.takes(consumer, came)", "self.takes(supplier, came)", "who gets it"),
    Fault(PULLED, "came)\n        return True\n", "came)\n        return False\n", "that something came"),
    Fault(PULLED, "self.now[server.name]", "0", "what is too old to be shown"),
    Fault(PULLED, "answer is not None and answer.refused", "answer is not None and answer.replaces", "who is stuck"),
]  # fmt: skip


def check_pulls(modules: dict[str, Any]) -> None:
    random = Random(7)
    for _ in range(300):
        history: list[Any] = []
        for _ in range(random.randrange(30)):
            who: Any = random.choice(NAMES)
            do = random.choice(["write", "write", "purge", "restore", "incremental", "incremental", "refresh"])
            if do in ("incremental", "refresh"):
                who = random.sample(NAMES, 2)
            history.append((random.choice(LATER), (do, who)))
        supplier, consumer = random.choice(PAIRS)
        if random.random() < 0.2:  # what the consumer wrote is known to the supplier, and lost to itself
            lost = [("write", consumer), ("incremental", (consumer, supplier)), ("restore", consumer)]
            history += [(60, one) for one in lost]
        compare(history, (supplier, consumer), modules[PULLED].PullModel)


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_fault_in_a_pull_is_noticed(fault: Fault) -> None:
    check_noticed(fault, {PULLED: [check_pulls]})


def test_a_model_that_was_copied_goes_its_own_way() -> None:
    fleet, now = played([(60, ("write", "A"))])
    model = modelled(fleet, now, [Link("A", "B", True)])
    twin = model.copy()
    twin.settle()
    assert twin.servers["B"].holds > model.servers["B"].holds
    assert not twin.session(twin.links[0])


# --- plans

RUV: list[Cid] = [(0, "a"), (0, "b"), (0, "c"), (100, "a"), (100, "b"), (100, "c")]
BASE = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(20)}


def case_of(folder: Path, *backups: dict[str, Any]) -> Case:
    made = Case.create(folder / "case")
    made.load([collected(folder / "in", *backups)])
    return made


def chosen(found: Plan) -> list[tuple[str, str]]:
    return [(one.need, one.way) for one in found.courses if one.chosen]


def effects(found: Plan) -> list[tuple[Any, ...]]:
    return [(one["do"], one.get("source"), one.get("server")) for step in found.steps for one in step.effects]


@pytest.mark.parametrize(
    ("name", "need"), [("synth-missed", "MISSED_CHANGE C"), ("synth-offline8d", "REFRESH_REQUIRED C")]
)
def test_a_server_that_no_pull_can_help_is_refreshed(name: str, need: str, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / name])
    found = plan(case, ways=["refresh-from-A"])
    assert chosen(found) == [(need, "refresh-from-A")]
    assert effects(found) == [("save", None, None), ("initialise", "A", "C")]
    assert [step.server for step in found.steps] == ["C", "C"] and not found.unmended
    (course,) = (one for one in found.courses if one.chosen)
    assert course.lost == 0, "what vectors have forgotten, the others have all the same"
    assert not any(one["missing"] or one["pending"] for one in found.after)
    ways = [one.way for one in found.courses]
    refused = {one.way for one in found.courses if one.refused}
    assert "restore-backup" in refused and ("refresh-from-C-backwards" in refused) == (name == "synth-missed")
    assert ("automatic-refresh-from-B" in ways) == (name == "synth-offline8d"), (
        "a hole is no lag: nothing comes by itself"
    )


def test_a_few_missing_changes_are_written_again_and_many_are_not(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / "synth-missed"])
    found = plan(case)
    assert chosen(found) == [("MISSED_CHANGE C", "write-again")]
    (step,) = found.steps
    lines = step.sends.splitlines()
    assert len(lines) == step.changes == 3 and all(line.startswith("on A: write mail of user") for line in lines)
    assert [one["missing"] for one in found.after] == [0, 0, 0]
    gone = {**BASE, 3: Entry(gone=(100, "a"))}
    found = plan(case_of(tmp_path / "gone", backup("a", 200, RUV, gone), backup("b", 200, RUV, BASE)))
    assert chosen(found) == [("MISSED_CHANGE B", "write-again")]
    assert found.steps[0].sends.startswith("on B: delete entry0003 (")
    assert "recycle bin" in found.steps[0].expects and "recycle bin" not in step.expects
    old = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in range(60)}
    new = {number: Entry((0, "a"), {"mail": (100, "a")}) for number in range(60)}
    for name, entries in (("many", new), ("whole", {**old, 99: Entry((100, "a"), {"mail": (100, "a")})})):
        ends = backup("a", 200, RUV, entries), backup("b", 200, RUV, old)
        assert chosen(plan(case_of(tmp_path / name, *ends))) == [("MISSED_CHANGE B", "refresh-from-A")], name


def test_a_healthy_fleet_needs_nothing(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / "synth-healthy"])
    found = plan(case)
    assert (found.steps, found.courses, found.unmended) == ((), (), 0)


def test_what_is_on_its_way_is_left_alone(tmp_path: Path) -> None:
    ahead = {**BASE, 3: Entry((0, "a"), {"mail": (150, "a")})}
    case = case_of(tmp_path, backup("a", 200, [*RUV, (150, "a")], ahead), backup("b", 200, RUV, BASE))
    found = plan(case)
    assert not found.steps and "1 change is on its way to B" in found.open[0]


def test_of_two_that_are_apart_both_ways_are_compared(tmp_path: Path) -> None:
    old = {3: Entry((0, "a"), {"mail": (0, "a")})}
    mine, theirs = {**BASE, 3: Entry((0, "a"), {"mail": (100, "a")})}, {**BASE, **old}
    case = case_of(tmp_path, backup("a", 200, [(0, "a"), (100, "a")], mine), backup("b", 200, [(100, "b")], theirs))
    found = plan(case)
    assert {one.way for one in found.courses} >= {"refresh-from-A", "refresh-from-B"}
    ((need, way),) = chosen(found)
    assert need == "NO_OVERLAP A" and way == "refresh-from-A", "so that nothing is thrown away"


OTHER = "11111111-2222-4333-8444-555555555555"
"""Another domain."""


def test_a_new_server_of_another_domain_is_taken_into_that_of_the_others(tmp_path: Path) -> None:
    """C has no entry that people made, as a server that was just set up: its domain ends, but nobody is certain of that."""
    built_in = {0: Entry((50, "c"))}  # the id of the administrator, who is there on every server
    others = [backup(name, 200, [one for one in RUV if one[1] != "c"], BASE) for name in "ab"]
    new = backup("c", 200, [(50, "c")], built_in, domain=OTHER)
    found = plan(case_of(tmp_path / "new", *others, new))
    assert chosen(found) == [("UNRELATED_DATA C", "refresh-from-A")]
    assert "member of the domain of A" in found.steps[-1].says
    assert found.steps[-1].assumes == ("new_domain_ends",)
    assert "automatic-refresh-from-A" in {one.way for one in found.courses}
    used = backup("c", 200, [(50, "c")], {**built_in, 9: Entry(gone=(50, "c"))}, domain=OTHER)
    assert plan(case_of(tmp_path / "used", *others, used)).steps == (), "somebody made an entry, and deleted it"


def test_which_of_two_domains_ends_only_a_person_says(tmp_path: Path) -> None:
    first = backup("a", 200, [(100, "a")], {9: Entry((100, "a"))}, domain=OTHER)
    whole = backup("b", 200, [(0, "b"), (100, "b")], {number: Entry((0, "b")) for number in range(1, 10)})
    case = case_of(tmp_path, first, whole)
    found = plan(case)
    assert [one["pending"] for one in found.before] == [0, 0], "what another domain holds is not waited for"
    lost = {one.way: (one.lost, one.saved, one.chosen) for one in found.courses if "refresh" in one.way}
    assert lost == {
        "refresh-from-A": (9, 9, False),
        "refresh-from-B": (1, 1, False),
        "automatic-refresh-from-B": (1, 1, False),
    }
    assert found.steps == () and found.unmended == 1
    (said,) = found.open
    assert said == (
        "UNRELATED_DATA A: only a person can tell which domain has the right data: find out whose data may go, then plan with "
        "--way refresh-from-B or --way refresh-from-A"
    )
    text = plan_text(found)
    assert "if you ask for it, it restores 0; loses 9, of which 9 are saved to a file first" in text
    for source, filled, count in (("A", "B", 9), ("B", "A", 1)):
        named = plan(case, ways=[f"refresh-from-{source}"])
        assert chosen(named) == [("UNRELATED_DATA A", f"refresh-from-{source}")]
        assert effects(named) == [("save", None, None), ("initialise", source, filled)]
        assert f"it has {count} change{'s' * (count > 1)} that no other server has" in named.steps[0].says
        assert [step.assumes for step in named.steps] == [(), ("data_named_by_person",)]
        assert not to_accept(named.steps), "who named it need not accept it once more"
        assert not any(step["certain"] for step in as_json(named)["steps"] if step["assumes"])


def test_all_servers_of_a_domain_join_the_other_one(tmp_path: Path) -> None:
    """A and B, and C and D: what A and B hold both is lost by neither of them alone, and goes with the two."""
    sides = (("ab", DOMAIN, {3: Entry((0, "a")), 4: Entry((0, "a"))}), ("cd", OTHER, {5: Entry((0, "c"))}))
    backups = [
        backup(name, 200, [(0, one) for one in names], entries, domain)
        for names, domain, entries in sides
        for name in names
    ]
    case = case_of(tmp_path, *backups)
    found = plan(case)
    assert not found.steps
    lost = {one.way: (one.says, one.lost) for one in found.courses if one.way.startswith("refresh-from")}
    assert lost["refresh-from-A"] == ("refresh C from A, then D from A", 1)
    assert lost["refresh-from-C"] == ("refresh A from C, then B from C", 2)
    for way, filled in (("refresh-from-A", "CD"), ("refresh-from-B", "CD"), ("refresh-from-D", "AB")):
        named = plan(case, ways=[way])
        assert [step.server for step in named.steps] == [*filled, *filled] and not named.unmended
        assert [step.repair for step in named.steps] == ["back_up", "back_up", "refresh", "refresh"]


def test_a_server_behind_its_consumers_is_refreshed_once(tmp_path: Path) -> None:
    late = [(20 * DAY, "a"), (20 * DAY, "b")]
    new = {**BASE, 3: Entry((0, "a"), {"mail": (20 * DAY, "a")})}
    backups = [backup(name, 20 * DAY + 60, late, new) for name in "ab"]
    own = {**BASE, 4: Entry((0, "a"), {"mail": (20 * DAY, "c")})}
    old = backup("c", 20 * DAY + 60, [(15 * DAY, "a"), (15 * DAY, "b"), (20 * DAY, "c")], own)
    found = plan(case_of(tmp_path, *backups, old))
    assert chosen(found) == [("REFRESH_REQUIRED C", "refresh-from-A")]
    (course,) = (one for one in found.courses if one.chosen)
    assert (course.lost, course.saved) == (1, 1), "what only C holds is counted, and backed up first"
    assert "it has 1 change that no other server has" in found.steps[0].says
    assert effects(found)[-1:] == [("initialise", "A", "C")]


def test_an_origin_without_a_server_goes_by_itself_and_whoever_lacks_its_changes_does_not_lose_them_unsaid(
    tmp_path: Path,
) -> None:
    ruv = [(0, "z"), (20 * DAY, "a"), (20 * DAY, "b")]
    whole = {**BASE, 3: Entry((0, "a"), {"mail": (0, "z")})}
    now = 20 * DAY + 60
    alike = [backup(name, now, ruv, whole) for name in "ab"]
    found = plan(case_of(tmp_path / "alike", *alike))
    assert chosen(found) == [(f"STALE_ORIGIN {origin('z')}", "wait-for-purge")]
    assert found.steps[0].commands == () and not found.steps[0].undo
    lacks = backup("b", now, ruv, whole)
    further = backup("a", now, [*ruv, (100, "z")], {**BASE, 3: Entry((0, "a"), {"mail": (100, "z")})})
    found = plan(case_of(tmp_path / "lacks", further, lacks))
    (course,) = (one for one in found.courses if one.way == "wait-for-purge")
    # One value of an origin that is supplied no more is written again on A: B need not be refreshed for it.
    assert chosen(found) == [("PENDING_CHANGES B", "write-again"), (f"STALE_ORIGIN {origin('z')}", "wait-for-purge")]
    assert [one["pending"] for one in found.before] == [0, 1], "an origin that is stale is supplied no more"
    found = plan(case_of(tmp_path / "only", further, lacks), only=["STALE_ORIGIN"])
    (course,) = (one for one in found.courses if one.way == "wait-for-purge")
    assert "lacks 1 change afterwards that it did not lack, on B" in course.refused


def test_a_server_that_refreshes_itself_needs_no_plan_and_what_it_throws_away_is_told(tmp_path: Path) -> None:
    late, now = [(20 * DAY, "a"), (20 * DAY, "b")], 20 * DAY + 60
    new = {**BASE, 3: Entry((0, "a"), {"mail": (20 * DAY, "a")})}
    own = {**BASE, 4: Entry((0, "a"), {"mail": (20 * DAY, "c")})}
    old = backup("c", now, [(15 * DAY, "a"), (15 * DAY, "b"), (20 * DAY, "c")], own)
    folder = collected(tmp_path / "in", backup("a", now, late, new), backup("b", now, late, new), old)
    for name, partners in (("A", "BC"), ("B", "AC"), ("C", "AB")):
        text = f'[replication]\norigin = "repl://{name.lower()}.test:8444"\n'
        for one in partners:
            text += f'[replication."repl://{one.lower()}.test:8444"]\ntype = "mutual-pull"\npartner_cert = "x"\n'
            text += f"automatic_refresh = {'true' if name == 'C' else 'false'}\n"
        (folder / f"{name}.server.toml").write_text(text)
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = plan(case)
    assert chosen(found) == []
    assert any("take all data anew without being told to throw away 1 change" in one for one in found.open)
    assert any("way to C, over links that run" in one for one in found.open)


def test_an_origin_that_servers_will_forget_by_themselves_needs_no_plan(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", *(backup(name, 200, [*RUV, (100, "z")], BASE) for name in "ab"))
    for name, other in ("ab", "ba"):
        text = f'[replication]\norigin = "repl://{name}.test:8444"\n[replication."repl://{other}.test:8444"]\n'
        (folder / f"{name.upper()}.server.toml").write_text(text + 'type = "mutual-pull"\npartner_cert = "x"\n')
    case = Case.create(tmp_path / "case")
    case.load([folder])
    assert "DEAD_ORIGIN" in {one["code"] for one in diagnose(case)["findings"]}
    found = plan(case)
    assert (found.steps, found.courses, found.open, found.unmended) == ((), (), (), 0)


def test_of_two_domains_that_would_each_take_the_other_one_a_person_chooses(tmp_path: Path) -> None:
    few = {1: Entry((0, "b"), {"mail": (50, "b")})}
    whole, new = backup("a", 200, [(100, "a")], BASE), backup("b", 200, [(50, "b")], few, domain=OTHER)
    folder = collected(tmp_path / "in", whole, new)
    for name, partner in (("A", "b"), ("B", "a")):
        text = (
            f'[replication]\norigin = "repl://{name.lower()}.test:8444"\n[replication."repl://{partner}.test:8444"]\n'
        )
        (folder / f"{name}.server.toml").write_text(f'{text}type = "mutual-pull"\nautomatic_refresh = true\n')
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = plan(case)
    assert chosen(found) == [] and "--way refresh-from-A" in found.open[0]


def test_a_clock_is_set_where_it_is_ahead(tmp_path: Path) -> None:
    ruv = [*RUV, (DAY, "c")]
    found = plan(case_of(tmp_path, backup("a", 200, ruv, BASE), backup("c", DAY, ruv, BASE)))
    assert chosen(found) == [("CLOCK_AHEAD C", "set-clock")]
    assert all(command[:2] == ("on", "C") for command in found.steps[0].commands)


def test_a_bundle_runs_every_command_where_it_belongs(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / "synth-offline8d"])
    bundle = tmp_path / "bundle"
    write_bundle(plan(case, ways=["automatic-refresh-from-B"]), bundle)
    text = (bundle / "repair.sh").read_text()
    assert "on C kanidmd scripting backup C-before-refresh.json\n" in text
    sent = next(bundle.glob("*refresh*.txt"))
    assert sent.read_text().endswith("automatic_refresh = true\n")
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(tmp_path / "said"))}\n')
    ssh.chmod(0o755)
    shown = ""
    # The file of C is a week older than the others: whoever runs it says that C stood still since.
    for script, typed in (("repair.sh", "yes\nC\nC\n"), ("undo.sh", "C\nC\n"), ("check.sh", "")):
        ran = subprocess.run(
            ["/bin/sh", str(bundle / script)],
            input=typed,
            text=True,
            env={"PATH": f"{ssh.parent}:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            check=False,
        )
        assert ran.returncode == 0
        shown += ran.stdout
    assert f"by hand, as {sent.name} says:\n{sent.read_text()}" in shown
    said = (tmp_path / "said").read_text().splitlines()
    assert said == [
        "-- C test ! -e C-before-refresh.json",
        "-- C kanidmd scripting backup C-before-refresh.json",
        "-- C test -s C-before-refresh.json",
        "-- C rm C-before-refresh.json",
        *(f"-- {name} {do} {name}-checked.json" for name in "ABC" for do in ("rm -f", "kanidmd scripting backup")),
    ]
    (bundle / "again").mkdir()
    stopped = subprocess.run(
        ["/bin/sh", str(bundle / "repair.sh")], input="yes\nA\n", text=True, capture_output=True, check=False
    )
    assert stopped.returncode == 4 and "not confirmed" in stopped.stdout


def test_the_plan_is_rehearsed_and_nothing_is_applied_without_hands(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / "synth-offline8d"])
    run = CliRunner().invoke(main, ["plan", str(case.folder)])
    assert run.exit_code == 1, run.output
    left = run.output.partition("Not mended by this plan:\n")[2]
    assert "STALLED_BUT_GREEN A: no step of this plan mends it" in left and "SUPPLIER_BEHIND" not in left
    rehearsed = CliRunner().invoke(main, ["apply", str(case.folder), "--on-copy"])
    assert rehearsed.exit_code == 0 and "2 of 2 applied" in rehearsed.output
    applied = CliRunner().invoke(main, ["apply", str(case.folder), "--confirm", "C"])
    assert applied.exit_code == 2 and "make a bundle, and run it by hand" in applied.output
    told = json.loads((case.folder / "plan.json").read_text())
    assert told["system"] == "kanidm"


def test_a_plan_does_not_depend_on_what_servers_are_called(tmp_path: Path) -> None:
    hostile = "-x;reboot $(id)"
    folder = collected(
        tmp_path / "in", backup("a", 200, RUV, BASE), backup("b", 200, RUV, {**BASE, 3: Entry(gone=(100, "a"))})
    )
    (folder / "A.json").rename(folder / f"{hostile}.json")
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = plan(case, ways=["refresh-from-B"])
    assert found.steps[-1].server == hostile
    bundle = tmp_path / "bundle"
    write_bundle(found, bundle)
    lines = (bundle / "repair.sh").read_text().splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("on ") and not line.startswith("on()")]
    assert {tuple(words[:2]) for words in commands} == {("on", hostile)}
    assert not any(words[-1].startswith("-") for words in commands[:3])


def test_models_are_those_on_which_the_plan_was_proven(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / "synth-missed"])
    (model,) = models_of(case).values()
    assert isinstance(model, PullModel)
    assert {lack.server for lack in model.missing()} == {"C"} and len(model.missing()) == 3
    assert model.copy().servers["A"].holds == model.servers["A"].holds


def test_a_refresh_that_helps_until_the_next_purge_alone_says_so(tmp_path: Path) -> None:
    """A has purged past C; B, linked to A only, has not yet: filled from B, A can supply C until B purges."""
    now, cut = 20 * DAY, 13 * DAY
    new = {**BASE, 2: Entry((0, "a"), {"mail": (now - 5 * DAY, "a")})}
    kept = [(cut + 3600, "a"), (now - 20, "a"), (cut + 3600, "b"), (now - 10, "b")]
    early = [(cut - DAY, "a"), (cut - 10, "a"), (now - 5 * DAY, "a"), (cut - DAY, "b")]
    behind = [(cut - DAY, "a"), (cut - 10, "a"), (cut - DAY, "b"), (cut - 10, "b"), (now - 10, "c")]
    folder = collected(
        tmp_path / "in",
        backup("a", now, [*kept, (now, "a")], new),
        backup("b", now - 10, [*kept, *early], new),
        backup("c", now - 10, behind, {**BASE, 4: Entry((0, "a"), {"mail": (now - 10, "c")})}),
    )
    for name, partners in (("a", "bc"), ("b", "a"), ("c", "a")):
        text = f'[replication]\norigin = "repl://{name}.test:8444"\n'
        for one in partners:
            text += f'[replication."repl://{one}.test:8444"]\ntype = "mutual-pull"\npartner_cert = "x"\n'
        (folder / f"{name.upper()}.server.toml").write_text(text)
    case = Case.create(tmp_path / "case")
    case.load([folder])
    (link,) = plan(case).steps
    assert (link.repair, link.server) == ("link", "C") and "it can supply C only until its next purge" in link.stands_on
    (step,) = (one for one in plan(case, ways=["refresh-from-B"]).steps if one.key.endswith("refresh-A-from-B"))
    assert "B can supply C only until its next purge" in step.risk
    assert "links between B and C in both server.toml, before that purge, delete nothing" in step.risk
