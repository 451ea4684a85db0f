"""Plans: which way is chosen for what was found, what is refused and why, and that a plan is what it was when it is applied."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from case_samples import everything
from click.testing import CliRunner
from collected import SHARED, needs_collected_files
from hand_plans import recreate
from mending_checks import model_of
from mesh_samples import csn
from planning_checks import AT, PLANS, check_plan, diagnosed_once, loaded, models, planned
from planning_samples import ALL, MADE, OWN, READ_ONLY, agreement, case_of, server
from slow_mending import Slow, Tie, World

from workbench import Case, Problem
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import context_of
from workbench.model import Finding, counted
from workbench.repair import planner
from workbench.repair.bundles import write_bundle
from workbench.repair.outcomes import outcome_of
from workbench.repair.plan_executor import FINISHED, apply
from workbench.repair.plan_text import plan_text
from workbench.repair.plan_types import (
    ASKED_FOR,
    READ_THERE,
    Need,
    Plan,
    ProposedRepair,
    Step,
    View,
    as_json,
    read_plan,
)
from workbench.repair.rehearsal import Rehearsal
from workbench.repair.unmended_findings import Taken, not_mended
from workbench.rules import repair_model
from workbench.systems import system_named
from workbench.systems.ds389.repairs.filling import Initialise

show = system_named("ds389").show


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_the_right_one(name: str) -> None:
    check_plan(planner, name)


@pytest.mark.parametrize("name", [name for name, must in PLANS.items() if must.steps])
def test_a_plan_done_on_its_model_keeps_its_promise_and_a_step_left_out_does_not(name: str) -> None:
    plan = planned(planner, name)
    whole, last = Rehearsal(plan, models(planner, name)), plan.steps[-1]
    for step in plan.steps:
        whole.apply(step, {})
        assert whole.done(step, {}) and not whole.shortfall(step, {})
    if not plan.promise:
        return
    idle = Rehearsal(plan, models(planner, name))
    rows = [row for row in plan.promise if row["suffix"] == last.suffix]
    assert idle.shortfall(last, {}) == [
        f"{row['server']} still lacks {row['count']:,} of {counted(row['count'])} of origin {row['origin']}"
        for row in rows
    ]


@pytest.mark.parametrize("name", [name for name, must in PLANS.items() if must.steps])
def test_a_plan_can_be_rehearsed_whatever_is_on_its_way(name: str, tmp_path: Path) -> None:
    """In `lag` a change is on its way over links that run: no reason to take the model for one that has moved on."""
    plan = planned(planner, name)
    assert apply(plan, Rehearsal(plan, models(planner, name), show), tmp_path, patience=0).state == FINISHED


def test_names_that_nothing_bears_are_refused() -> None:
    case = loaded("lag_behind_disabled_links/during")
    with diagnosed_once(planner):
        with pytest.raises(Problem, match=r"nothing was found of s9\\x1b") as told:
            planner.plan(case, ["s9\x1b"])
        assert "LINK_DISABLED" in str(told.value)
        with pytest.raises(Problem, match=r"no way is named frobnicate") as told:
            planner.plan(case, ways=["frobnicate", "enable"])
        assert "enable" in str(told.value)
        for name in ("LINK_DISABLED", "s2"):
            assert [step.key for step in planner.plan(case, [name]).steps] == [
                "1-enable-s1-to-s2",
                "2-enable-s3-to-s2",
            ]


# --- ways are tried before they are called proven


class Offer:
    """A repair that offers what it is given."""

    def __init__(self, *effects: dict[str, Any]) -> None:
        self.effects = effects

    def draft(self) -> ProposedRepair:
        steps = [Step("x", "x", "s1", "s1", None, "", "", "", "", effects=(effect,)) for effect in self.effects]
        return ProposedRepair("x", "x", tuple(steps))


def tried(world: World, server: str, *effects: dict[str, Any]) -> Any:
    """How effects come out that are to mend all that a server lacks."""
    model, _ = model_of(type("House", (), {"mending": repair_model}), world)
    model.settle()
    lacks = frozenset(lack for lack in model.missing() | model.pending() if lack.server == server)
    nobody: Any = None  # the case is not asked
    view = View(nobody, (), None, model, AT)
    return outcome_of(view, Need("MISSED_CHANGE", None, server, lacks=lacks), Offer(*effects).draft())[2]


def three_servers() -> World:
    """s2 and s3 dropped one change of s1, which only s1 has; s2 made one that nobody is sent."""
    world = World([Slow("s1", "1"), Slow("s2", "2"), Slow("s3", "3")], [Tie("s1", "s3")])
    for position in MADE[:3]:
        world.make("s1", position, position)
    for name in ("s2", "s3"):
        for position in (MADE[0], MADE[2]):
            world.take(world.servers[name], position)
    world.make("s2", "66000004000000020000", "own")
    return world


GIVE = {"do": "initialise", "source": "s1", "server": "s2"}


@pytest.mark.parametrize(
    ("effects", "why"),
    [
        ([GIVE], "throws away 1 change unsaved"),
        ([{"do": "write", "server": "s1"}], "nothing of what is lacking arrives"),
        ([{"do": "rewrite", "server": "s1", "lots": [0], "entry": "x"}, {"do": "forget", "origin": "2"}], "did not lack"),
        ([{"do": "initialise", "source": "s2", "server": "s1"}], "throws away 1 change unsaved"),
    ],
)  # fmt: skip
def test_a_way_that_does_not_keep_its_promise_is_never_called_proven(effects: list[dict[str, Any]], why: str) -> None:
    course = tried(three_servers(), "s2", *effects)
    assert (course.proven, why in course.refused) == (False, True), course


def test_a_way_that_keeps_its_promise_is_called_proven() -> None:
    course = tried(three_servers(), "s2", {"do": "save", "lots": [1]}, GIVE)
    assert (course.proven, course.refused, course.restored, course.lost, course.saved) == (True, "", 1, 1, 1)


# --- the file


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(as_json(planned(planner, "purged"))))
    return file


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_the_same_when_it_is_read_again(name: str, tmp_path: Path) -> None:
    plan = planned(planner, name)
    (tmp_path / "plan.json").write_text(json.dumps(as_json(plan)))
    again = read_plan(tmp_path)
    assert (again.id, as_json(again)) == (plan.id, as_json(plan))
    assert [type(step.commands) for step in again.steps] == [tuple] * len(plan.steps)


def test_the_same_case_gives_the_same_plan() -> None:
    for name in ("purged", "two suffixes"):
        again = planner.plan(loaded(PLANS[name].source), made_at=AT)
        assert as_json(again) == as_json(planned(planner, name))


def _edits(found: Any, path: tuple[Any, ...] = ()) -> Any:
    """Every place of a JSON value."""
    if isinstance(found, (dict, list)):
        for key, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from _edits(value, (*path, key))
    else:
        yield path


def test_a_plan_that_was_edited_anywhere_is_refused(plan_file: Path) -> None:
    text = plan_file.read_text()
    places = list(_edits(json.loads(text)))
    assert len(places) > 100
    for path in places:
        found = json.loads(text)
        place = found
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "other" if place[path[-1]] != "other" else "another"
        plan_file.write_text(json.dumps(found))
        with pytest.raises(Problem, match=r"plan was changed|no plan of this version|no whole plan"):
            read_plan(plan_file)


def test_what_is_no_plan_is_told_without_a_traceback(plan_file: Path) -> None:
    whole = plan_file.read_bytes()
    cut = [whole[:size] for size in range(0, len(whole), len(whole) // 40)]
    foreign = [
        b"[]",
        b"{}",
        b"null",
        b"\xff\xfe",
        b'{"schema": 1, "steps": 3}',
        b"[" * 100_000,
        b'{"schema": 1, "steps": []}',
    ]
    for name in ("courses", "steps", "promise", "servers", "id"):
        for value in (None, 3, "x", [3], {"a": 1}, [{}]):
            foreign.append(json.dumps({**json.loads(whole), name: value}).encode())
    for content in [*cut, *foreign]:
        plan_file.write_bytes(content)
        with pytest.raises(Problem):
            read_plan(plan_file)
        ended = CliRunner().invoke(main, ["apply", str(plan_file), "--on-copy"])
        assert ended.exit_code == 2 and "Traceback" not in ended.output, ended.output
    with pytest.raises(Problem, match="no plan"):
        read_plan(plan_file.parent / "absent.json")


# --- commands


def test_planning_writes_its_plan_and_nothing_else_and_a_rehearsal_nothing(tmp_path: Path) -> None:
    inputs = tmp_path / "1"
    case = case_of(tmp_path, made_files("trimmed here and kept there"))
    before, read = everything(case.folder), everything(inputs)
    made = CliRunner().invoke(main, ["plan", str(case.folder)])
    assert made.exit_code == 0, made.output
    after = everything(case.folder)
    assert {name for name in after if after[name] != before.get(name)} == {str(case.folder / "plan.json")}
    assert before.keys() - after.keys() == set()
    rehearsed = CliRunner().invoke(main, ["apply", str(case.folder), "--on-copy"])
    assert (rehearsed.exit_code, "no server was contacted" in rehearsed.output) == (0, True), rehearsed.output
    assert (everything(case.folder), everything(inputs)) == (after, read)


def test_a_case_without_vectors_is_not_told_to_be_well(tmp_path: Path) -> None:
    files = server("s1", 1, ALL, [*MADE, *OWN])
    case = case_of(tmp_path, {"s1.changelog.ldif": files["s1.changelog.ldif"]})
    told = CliRunner().invoke(main, ["plan", str(case.folder)])
    assert (told.exit_code, "nothing can be planned" in told.output) == (2, True), told.output


def test_servers_without_links_are_not_told_to_be_well(tmp_path: Path) -> None:
    files = {**server("s1", 1, ALL, [*MADE, *OWN]), **server("s2", 2, {1: (MADE[0], MADE[3])}, [*MADE[:4], *OWN])}
    told = CliRunner().invoke(main, ["plan", str(case_of(tmp_path, files).folder)])
    assert (told.exit_code, "Nothing needs mending" in told.output) == (1, False), told.output


def test_a_server_alone_is_not_told_to_be_well(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["plan", str(case_of(tmp_path, server("s1", 1, ALL, [*MADE, *OWN])).folder)])
    assert "Nothing needs mending" not in told.output
    assert "only s1 tells what it has of dc=example,dc=com: what no file of it names cannot be judged" in told.output


def test_a_plan_without_a_way_says_what_a_person_can_do(tmp_path: Path) -> None:
    """s1 and s2 feed each other, and no link leads to s3, which lacks the last change."""
    files = {
        **server("s1", 1, ALL, [*MADE, *OWN], agreement("s1-to-s2", 38902)),
        **server("s2", 2, ALL, [*MADE, *OWN], agreement("s2-to-s1", 38901)),
        **server("s3", READ_ONLY, {1: (MADE[0], MADE[-2]), 2: (OWN[0], OWN[0])}, [*MADE[:-1], *OWN], port=3),
    }
    (line,) = [one for one in planner.plan(case_of(tmp_path, files)).open if one.startswith("PENDING_CHANGES s3")]
    assert line.endswith(
        "what to do: make an agreement to s3 on a server that has them, if s3 is still meant to take part"
    )


def test_a_hub_feeds_no_server_that_takes_it_for_itself(tmp_path: Path) -> None:
    """Only h1 has what origin 3 made last; its RUV begins with the element of s1, which would turn it away as itself (11)."""
    last = [csn(second, 3) for second in range(5)]
    spans = {1: (MADE[0], MADE[-1]), 2: (OWN[0], OWN[0]), 3: (last[0], last[1])}
    files = {
        **server("s1", 1, spans, [*MADE, *OWN, *last[:2]], agreement("s1-to-s2", 38902) + agreement("s1-to-h1", 38950)),
        **server("s2", 2, spans, [*MADE, *OWN, *last[:2]], agreement("s2-to-s1", 38901) + agreement("s2-to-h1", 38950)),
        **server("h1", READ_ONLY, spans | {3: (last[0], last[-1])}, [*MADE, *OWN, *last], port=50),
    }
    fed = [step.details["to"] for step in planner.plan(case_of(tmp_path, files)).steps if step.repair == "feed"]
    assert fed == ["s2"]


def test_the_exit_code_tells_that_something_is_left(tmp_path: Path) -> None:
    case = case_of(tmp_path, made_files("stranded and not all known"))
    assert CliRunner().invoke(main, ["plan", str(case.folder)]).exit_code == 1


def test_a_half_done_plan_whose_file_is_lost_can_be_given_up(tmp_path: Path) -> None:
    case = case_of(tmp_path, made_files("trimmed here and kept there"))
    begun = {"n": 1, "at": "1", "what": "begun", "plan": "lost", "steps": 2}
    (case.folder / "journal.jsonl").write_text(json.dumps(begun) + "\n")
    (case.folder / "plan.json").write_text("{")
    assert CliRunner().invoke(main, ["plan", str(case.folder)]).exit_code == 2
    given_up = CliRunner().invoke(main, ["resume", str(case.folder), "--give-up"])
    assert (given_up.exit_code, given_up.output) == (0, "given up after 0 of 2\n")
    assert CliRunner().invoke(main, ["plan", str(case.folder)]).exit_code == 0


# --- bundles


def shell_problem(script: Path) -> str:
    """What the shell says of a script that it only reads."""
    return subprocess.run(["sh", "-n", script], capture_output=True, text=True, check=False).stderr


def made_files(name: str) -> Any:
    """The files of a made-up case."""
    source = PLANS[name].source
    assert callable(source)
    return source()


def run_bundle(folder: Path, script: str, plan: Plan, tmp_path: Path) -> str:
    """Run a script with stand-ins for the native tools, and every name typed."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    for file in folder.glob("*.ldif"):
        file.write_text(file.read_text().replace(ASKED_FOR, "typed by hand").replace(READ_THERE, "typed by hand"))
    for name in ("dsconf", "dsctl", "ldapmodify", "ldapdelete"):
        (tools / name).write_text(f'#!/bin/sh\necho "ran {name}"\n')
        (tools / name).chmod(0o755)
    steps = plan.steps if script == "repair.sh" else [step for step in reversed(plan.steps) if step.undo]
    typed = "".join(f"{step.server}\n" for step in steps)
    ran = subprocess.run(
        ["sh", str(folder / script)],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tools}:/usr/bin:/bin"},
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("name", [name for name, must in PLANS.items() if must.steps])
def test_a_bundle_is_a_script_that_a_shell_reads_and_holds_no_secret(name: str, tmp_path: Path) -> None:
    plan = planned(planner, name)
    names = write_bundle(plan, tmp_path / "bundle")
    texts = {one.name: one.read_text() for one in (tmp_path / "bundle").iterdir()}
    assert sorted(texts) == names and {"repair.sh", "undo.sh", "README.md", "plan.txt"} <= texts.keys()
    for script in ("repair.sh", "undo.sh"):
        assert shell_problem(tmp_path / "bundle" / script) == ""
    for text in texts.values():
        for value in re.findall(r"(?im)^(?:userpassword|nsds5replicacredentials):+ ?(.*)$", text):
            assert value == ASKED_FOR
        assert not re.search(r"\{(SSHA|PBKDF2|AES)", text)
    said = run_bundle(tmp_path / "bundle", "repair.sh", plan, tmp_path)
    assert said.count("expect: ") == len(plan.steps)
    with pytest.raises(Problem):
        write_bundle(plan, tmp_path / "bundle")


def test_a_script_ends_before_it_sends_what_stands_for_a_password(tmp_path: Path) -> None:
    write_bundle(planned(planner, "trimmed here and kept there"), tmp_path / "bundle")
    script = str(tmp_path / "bundle" / "repair.sh")
    ran = subprocess.run(["sh", script], input="s2\n" * 2, capture_output=True, text=True, check=False)
    assert (ran.returncode, "write the password into 1-feed-s3-from-s2.ldif" in ran.stdout) == (4, True), ran


LEFT = {
    "purged": ("VECTOR_AHEAD_OF_LOG s1: no step of this plan mends it; what to do: find the change",),
    "refused": ("APPLY_SKIPPED c2: no step of this plan mends it; what to do: repair the reason first",),
    # What waited for s3 arrives: the anchors are there again, and what only s3 has is for a person to decide.
    "restored": ("STRANDED_CHANGE s3: step 1-save-s3 saves these changes to a file; send what is still right",),
    "stranded and saved": ("STRANDED_CHANGE s2: step 1-save-s2 saves",),
    "stranded and not all known": ("STRANDED_CHANGE s1: no", "STRANDED_CHANGE s2: no", "VECTOR_AHEAD_OF_LOG s2: no"),
    "half by itself": ("STRANDED_CHANGE s1: no",),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_warning_and_error_is_mended_or_named(name: str) -> None:
    plan = planned(planner, name)
    wanted = LEFT.get(name, ())
    assert len(plan.left) == len(wanted) and all(map(str.startswith, plan.left, wanted)), plan.left
    assert ("Nothing needs mending." in plan_text(plan)) == (not (plan.steps or plan.left or plan.open))
    assert all(one in plan_text(plan).partition("Not mended by this plan:")[2] for one in plan.left)


def test_what_is_overruled_is_not_left_and_equal_findings_are_one_line() -> None:
    shown = context_of(loaded(PLANS["cleaned"].source))[0].topology
    fix = ({"repair": "set it right", "why": "", "caution": None},)
    found = [Finding("CLOCK_AHEAD", "error", "", server=name, fix=fix) for name in ("s1", "s2")]
    found += [
        Finding("TRIM_STOPPED", "info", "", server="s1"),
        Finding("DIVERGED", "error", "", server="s1", overruled_by="CLOCK_AHEAD"),
    ]
    nothing = Taken((), (), (), (), (), {}, {}, {})
    (line,) = not_mended(found, shown, nothing)
    assert line == "CLOCK_AHEAD s1, s2: no step of this plan mends it; what to do: set it right"


def test_a_step_in_one_suffix_mends_nothing_in_another() -> None:
    shown = context_of(loaded(PLANS["cleaned"].source))[0].topology
    found = [Finding("ENTRIES_DIFFER", "error", "", server="s1", suffix=suffix) for suffix in ("dc=one", "dc=two")]
    way = (Need("REINIT_REQUIRED", "dc=one", "s1"), "initialise-from-s2")
    taken = Taken((way,), (), (), (), (), {}, {}, {"initialise": ("ENTRIES_DIFFER",)})
    assert not_mended(found[:1], shown, taken) == []
    assert len(not_mended(found, shown, taken)) == 1


@pytest.mark.parametrize(("pending", "missing", "left"), [(0, 1, 0), (1, 1, 1), (0, 5, 1)])
def test_what_waited_for_a_record_waits_no_more_whatever_is_lost_for_good(
    pending: int, missing: int, left: int
) -> None:
    """a waits for 4 changes and lacks 1 that nobody has: the steps bring the 4, or they pass over them."""
    shown: Any = SimpleNamespace(links=[], pulling=False)
    found = [Finding("REINIT_REQUIRED", "error", "a waits", server="a", suffix="dc=one")]
    way = (Need("OWN_CHANGES_HIDDEN", "dc=one", "c"), "initialise-from-b")
    before = {("a", "dc=one"): {"missing": 1, "pending": 4}}
    after = {("a", "dc=one"): {"missing": missing, "pending": pending}}
    assert len(not_mended(found, shown, Taken((way,), (), (), (), (), before, after, {}))) == left


def test_who_is_fed_by_a_filled_server_and_was_not_read_is_named() -> None:
    def link(consumer: str | None, enabled: bool = True, suffix: str = "dc=one") -> Any:
        return SimpleNamespace(supplier="h", suffix=suffix, consumer=consumer, enabled=enabled)

    links = [link("r"), link("a"), link(None), link("off", enabled=False), link("other", suffix="dc=two")]
    topology = SimpleNamespace(links=links)
    view: Any = SimpleNamespace(
        suffix="dc=one", model=SimpleNamespace(servers={"h": 1, "a": 1}), context=SimpleNamespace(topology=topology)
    )
    assert Initialise._unread_behind(view, "h") == ["r"]


def test_a_script_ends_before_it_adds_an_entry_without_what_no_file_may_hold(tmp_path: Path) -> None:
    plan = recreate().plan
    (step,) = (step for step in plan.steps if step.repair == "add")
    assert step.details["hidden"]
    write_bundle(replace(plan, steps=(step,)), tmp_path / "bundle")
    script = str(tmp_path / "bundle" / "repair.sh")
    ran = subprocess.run(["sh", script], input="s1\n", capture_output=True, text=True, check=False)
    assert (ran.returncode, "the values that no file may hold" in ran.stdout) == (4, True), ran


def test_no_file_of_a_bundle_is_written_elsewhere(tmp_path: Path) -> None:
    plan = planned(planner, "lag")
    steps = tuple(replace(step, key=f"{step.key}/../../../x") for step in plan.steps)
    (tmp_path / "bundle" / steps[0].key.partition("/")[0]).mkdir(parents=True)
    write_bundle(replace(plan, steps=steps), tmp_path / "other")
    assert {file.parent.name for file in tmp_path.rglob("*.ldif")} == {"other"}


HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "x\ntouch pwned\n",
    "x\r\ntouch pwned",
    "-rf",
]


@pytest.mark.parametrize("evil", HOSTILE)
def test_names_from_the_data_stay_words(evil: str, tmp_path: Path) -> None:
    """Wherever a name may stand: the case, a server, a suffix, an agreement, an entry, and every sentence made of them."""
    plan = planned(planner, "restored")
    undoable = planned(planner, "lag").steps
    steps = tuple(
        replace(
            step,
            server=evil.replace("\n", ""),
            on=evil,
            suffix=evil,
            says=evil,
            stands_on=evil,
            expects=evil,
            risk=evil,
            undo=step.undo and evil,
            cannot_undo=step.cannot_undo and evil,
            commands=tuple((*command[:-1], evil) for command in step.commands),
            undo_commands=tuple((*command[:-1], evil) for command in step.undo_commands),
        )
        for step in (*plan.steps, *undoable)
    )
    steps = tuple(replace(step, key=f"{number}-{step.key}") for number, step in enumerate(steps))
    servers = tuple({**one, "server": evil, "suffix": evil} for one in plan.servers)
    promise = tuple({**row, "server": evil} for row in plan.promise)
    hostile = replace(plan, case=evil, snapshot=evil, steps=steps, servers=servers, promise=promise)
    write_bundle(hostile, tmp_path / "bundle")
    for script in ("repair.sh", "undo.sh"):
        assert shell_problem(tmp_path / "bundle" / script) == ""
        said = run_bundle(tmp_path / "bundle", script, hostile, tmp_path)
        assert "ran dsconf" in said
    assert not list(tmp_path.rglob("pwned*"))


@pytest.mark.parametrize("evil", ["x'; touch pwned; $(touch pwned)", "--suffix"])
def test_a_hostile_agreement_is_planned_and_bundled_as_a_name(evil: str, tmp_path: Path) -> None:
    files = {
        **server("s1", 1, ALL, [*MADE, *OWN], agreement(evil, 38902, enabled=False)),
        **server("s2", 2, {1: (MADE[0], MADE[3]), 2: (OWN[0], OWN[0])}, [*MADE[:4], *OWN]),
    }
    plan = planner.plan(case_of(tmp_path, files))
    words = plan.steps[0].commands[0]
    assert words[-1] == evil and (words[-2] == "--") == evil.startswith("-")
    assert f"cn={evil.replace(';', chr(92) + '3B')},cn=replica" in plan.steps[0].sends
    write_bundle(plan, tmp_path / "bundle")
    for script in ("repair.sh", "undo.sh"):
        assert "ran dsconf" in run_bundle(tmp_path / "bundle", script, plan, tmp_path)
    assert not list(tmp_path.rglob("pwned*"))


# --- incidents as they were collected


COLLECTED: list[tuple[str, Callable[[Plan], Any], Any]] = [
    ("i_lag/during", lambda plan: [step.key for step in plan.steps], ["1-enable-s1-to-s2", "2-enable-s3-to-s2"]),
    ("iii_purged_changelog/purged", lambda plan: sum(row["count"] for row in plan.promise), 61),
    ("iv_missed_behind_ruv/during", lambda plan: [(row["server"], row["count"]) for row in plan.promise], [("s3", 12)]),
    (
        "v_dead_rid/dead_rid",
        lambda plan: [course.way for course in plan.courses if not course.chosen],
        ["clean", "clean-by-force"],
    ),
    ("base_hub/before", lambda plan: (plan.steps, plan.unmended), ((), 0)),
]


@needs_collected_files
@pytest.mark.parametrize(("folder", "asked", "answer"), COLLECTED, ids=[row[0] for row in COLLECTED])
def test_plans_of_whole_incidents(folder: str, asked: Callable[[Plan], Any], answer: Any, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([SHARED / "incidents" / folder])
    assert asked(planner.plan(case)) == answer
