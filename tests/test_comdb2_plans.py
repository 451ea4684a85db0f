"""Plans for a tree of replicants out of collected files: the ways that are chosen and refused, rehearsed, and as a bundle."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tier_files import Made, written

from workbench import Case, diagnose
from workbench.model import Problem
from workbench.repair.bundles import write_bundle
from workbench.repair.case_plan import keep, rehearse
from workbench.repair.plan_executor import FINISHED
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan

# Host: (state, age of its keepalive, from whom it pulls, first file, last LSN, whether it answers)
NODES = {
    "shopdb@src1": ("Active", 5, None, 7, "{9:279383}", True),
    "shopdb@src2": ("Active", 5, None, 7, "{9:279383}", True),
    "shop_a@r1": ("Active", 5, "shopdb@src1", 7, "{9:279383}", True),
    "shop_a@r2": ("Active", 200, "shopdb@src1", 3, "{6:484268}", False),
    "shop_b@r3": ("Active", 200, "shop_a@r1", 7, "{8:647677}", True),
    "shop_b@r4": ("Active", 5, "shop_a@r1", 5, "{9:279383}", True),
    "shop_c@r5": ("Pending", 5, None, 5, "{6:484268}", True),
    "shop_c@r6": ("Pending", 5, None, 2, "{4:647677}", True),
}


def snapshot(folder: Path, nodes: dict = NODES) -> Path:
    """As it is collected: the registry's tables, and what each node says of its own log."""
    rows, pulls, positions = [], [], []
    for name, (state, age, above, first, last, answers) in nodes.items():
        database, host = name.split("@")
        file, place = last.strip("{}").split(":")
        when = f'"2026-11-20T14{52 - age // 60:02d}{59 - age % 60:02d}.000 UTC"'
        rows.append([database, host, file, place, str(first), when, state])
        if above:
            pulls.append([database, host, *above.split("@")])
        told = [f"{{{first}:28}}", last, "NULL", "NULL", last, "4", "1795186246", "0"] if answers else ["UNREACHABLE"]
        positions.append(["2026-11-20T14:52:59.000Z", database, host, *told])
    tables = {
        "meta/comdb2_physreps.tsv": rows,
        "meta/comdb2_physrep_connections.tsv": pulls,
        "meta/comdb2_physrep_sources.tsv": [],
        "meta/now.txt": [['"2026-11-20T145259.000 UTC"'], ['"2026-11-20T145300.000 UTC"']],
        "nodes/positions.tsv": positions,
    }
    for name, lines in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("tiers")
    made = Case.create(folder / "case")
    made.load([snapshot(folder / "in")])
    return made


@pytest.fixture(scope="module")
def planned(case: Case) -> Plan:
    return plan(case)


@pytest.fixture(scope="module")
def of_one_gone(case: Case) -> Plan:
    """The plan of who knows that shop_a@r2 is gone for good, and asks for its reset."""
    return plan(case, [name for name in NODES if name.startswith("shop_")], ["reset-node"])


def chosen(made: Plan) -> dict[str, str]:
    return {course.need.split()[-1]: course.way for course in made.courses if course.chosen}


def test_each_node_gets_the_gentlest_way_that_is_proven(planned: Plan) -> None:
    ways = chosen(planned)
    assert ways["shop_b@r3"] == "restart"
    assert ways["shop_c@r5"] == "donor-shop_b@r4"
    # shop_a@r2 alone has log file 4: it is neither reset, nor is the node that needs the file rebuilt before it was started.
    assert ways.keys().isdisjoint({"shop_a@r2", "shop_c@r6"}) and planned.unmended == 2
    assert {row["server"] for row in planned.after if row["pending"] or row["missing"]} == {"shop_c@r6"}


def test_who_knows_that_the_holder_of_a_file_is_gone_has_the_other_node_rebuilt(of_one_gone: Plan) -> None:
    ways = chosen(of_one_gone)
    assert ways["shop_a@r2"] == "reset-node" and ways["shop_c@r6"].startswith("rebuild-from-")
    (rebuilt,) = (step for step in of_one_gone.steps if step.repair == "rebuild")
    assert "shop_a@r2, which had log file 4, cannot be started: else start it first" in rebuilt.stands_on
    assert of_one_gone.unmended == 0
    assert not any(row["pending"] or row["missing"] for row in of_one_gone.after)


def test_what_hung_or_cannot_help_is_refused_with_the_reason(planned: Plan) -> None:
    refused = {(course.need.split()[-1], course.way): course.refused for course in planned.courses if course.refused}
    assert "the whole node hung" in refused["shop_b@r3", "start-replication"]
    assert "does not have file 4 any more" in refused["shop_c@r6", "donor-shopdb@src1"]
    ways = {course.way for course in planned.courses if course.need.endswith("shop_c@r5")}
    assert "restart" not in ways, "the registry hides what is below a source without the file"


def test_a_way_that_is_asked_for_is_taken_where_it_is_proven(case: Case) -> None:
    made = plan(case, ["shop_c@r5"], ["rebuild-from-shop_a@r1"])
    assert chosen(made) == {"shop_c@r5": "rebuild-from-shop_a@r1"}
    with pytest.raises(Problem, match="no way is named"):
        plan(case, [], ["start-over"])


def test_the_plan_is_rehearsed_to_its_end(case: Case, planned: Plan, of_one_gone: Plan, tmp_path: Path) -> None:
    for made in (planned, of_one_gone):
        keep(made, case.folder)
        (tmp_path / made.id).mkdir()
        assert rehearse(made, case.folder, tmp_path / made.id).state == FINISHED


def test_the_bundle_holds_each_statement_and_its_way_back(of_one_gone: Plan, tmp_path: Path) -> None:
    names = write_bundle(of_one_gone, tmp_path / "b")
    for script in ("repair.sh", "undo.sh", "check.sh"):
        subprocess.run(["sh", "-n", str(tmp_path / "b" / script)], check=True)
    texts = {name: (tmp_path / "b" / name).read_text("utf-8") for name in names}
    assert "sys.physrep.reset_nodes" in texts["repair.sh"]
    assert "update comdb2_physreps set state" in texts["undo.sh"]
    assert any("replicate_from shop_b @r4" in text for text in texts.values())
    assert "comdb2_transaction_logs" in texts["check.sh"]


def test_a_healthy_tree_needs_nothing(tmp_path: Path) -> None:
    well = {name: told for name, told in NODES.items() if name in ("shopdb@src1", "shop_a@r1", "shop_b@r4")}
    case = Case.create(tmp_path / "case")
    case.load([snapshot(tmp_path / "in", well)])
    made = plan(case)
    assert made.steps == () and made.courses == ()


def planned_of(folder: Path, *nodes: Made, awaited: Sequence[str] = ()) -> Plan:
    made = Case.create(folder / "case")
    made.load([written(folder / "in", nodes, awaited)])
    planned = plan(made)
    keep(planned, made.folder)
    assert rehearse(planned, made.folder, folder).state == FINISHED
    return planned


@pytest.mark.parametrize("around", [2, 3, 5])
def test_of_a_circle_one_node_is_moved(around: int, tmp_path: Path) -> None:
    """The others pull on as before, from a node that gets what they lack; so does what hangs below the circle."""
    circle = [Made(f"A@a{at}", at=(9, 900), source=f"A@a{at % around + 1}") for at in range(1, around + 1)]
    below = Made("B@b1", at=(9, 900), source="A@a1")
    planned = planned_of(tmp_path, Made("S@s1"), Made("C@c1", source="S@s1"), *circle, below)
    assert [(step.repair, step.server) for step in planned.steps] == [("force_registration", "A@a1")]
    assert planned.unmended == 0 and not any(row["pending"] or row["missing"] for row in planned.after)


@pytest.mark.parametrize("alone", [False, True])
def test_no_node_of_the_source_is_sent_to_a_copy(alone: bool, tmp_path: Path) -> None:
    """It is behind its cluster, of which one node is cut off: the others bring it up to date, or nobody does."""
    sources = [Made("S@s1", at=(9, 900)), Made("S@s2", answers=not alone), Made("S@s3", answers=False)]
    planned = planned_of(tmp_path, *sources, Made("A@a1", source="S@s2"), Made("A@a2", source="A@a1"))
    assert not [one for one in planned.courses if one.need.endswith("S@s1")]
    assert not [step for step in planned.steps if step.server == "S@s1"]
    assert [row["pending"] + row["missing"] for row in planned.after if row["server"] == "S@s1"] == [int(alone)]


def test_below_one_that_is_gone_the_others_register_anew(tmp_path: Path) -> None:
    """Nobody is shut down to be copied for a node that is gone; who is further goes first, for it serves the next one."""
    source, gone = Made("S@s1", at=(20, 900), first=15), Made("A@a1", at=(18, 5), first=12, source="S@s1", age=7000)
    gone.answers = False
    below = [
        Made("A@a2", at=(18, 5), first=12, source="A@a1"),
        Made("A@a3", at=(13, 5), first=12, source="A@a2", age=400),
    ]
    planned = planned_of(tmp_path, source, gone, *below)
    assert [(step.repair, step.server) for step in planned.steps] == [
        ("reset", "A@a1"),
        ("force_registration", "A@a2"),
        ("replicate_from", "A@a3"),
    ]
    assert not any(row["pending"] or row["missing"] for row in planned.after)


def test_what_a_node_has_beyond_its_source_is_spread_to_nobody(tmp_path: Path) -> None:
    """The source was cut off: what one copy has behind its end is another history."""
    sources = [Made("S@s1", at=(9, 900), cuts=3), Made("S@s2", at=(9, 900), cuts=3)]
    ahead = Made("A@a1", at=(9, 2000), source="S@s2", asked_before=9)
    planned = planned_of(tmp_path, *sources, ahead, Made("A@a2", at=(9, 900), source="S@s1"), Made("A@a3", at=(8, 5)))
    assert {step.server for step in planned.steps} <= {"A@a3"}
    assert not [course for course in planned.courses if course.way.endswith("A@a1")]


def test_rows_that_the_registry_lacks_are_made_again(tmp_path: Path) -> None:
    """A node of the source writes its own when it starts; until one of them has, nobody else is offered anything."""
    lacking = [Made("S@s1", state=None), Made("A@a1", source="S@s1", state=None)]
    planned = planned_of(tmp_path, *lacking, Made("A@a2", source="S@s1"))
    assert [(step.repair, step.server) for step in planned.steps] == [
        ("restart", "S@s1"),
        ("force_registration", "A@a1"),
    ]


def test_a_row_that_makes_a_node_wait_is_deleted_before_all_else_if_anybody_asks_for_it(tmp_path: Path) -> None:
    """After a restart it would wait again, whatever it is told to follow; and it may reach its source over that row alone."""
    waits = Made("A@a1", at=(9, 500), state="Pending")
    planned = planned_of(tmp_path, Made("S@s1"), waits, Made("A@a2", source="S@s1"), awaited=["A@a1 S@s1"])
    assert chosen(planned) == {}
    (delete,) = (course for course in planned.courses if course.way == "delete-reverse-row")
    assert "first see that S@s1 can reach A@a1" in delete.refused
    refused = {course.way for course in planned.courses if course.refused}
    assert {"restart", "donor-A@a2", "donor-S@s1"} <= refused


@pytest.mark.parametrize("state", ["Active", "Inactive"])
def test_a_donor_is_one_that_the_registry_offers(state: str, tmp_path: Path) -> None:
    """A node that is told to follow a copy asks the registry for it all the same."""
    stuck = Made("A@a1", at=(5, 500), first=4, source="S@s1", age=300)
    donor = Made("B@b1", first=4, source="S@s1", state=state)
    planned = planned_of(tmp_path, Made("S@s1"), donor, Made("B@b2", source="S@s1"), stuck)
    assert chosen(planned)["A@a1"].startswith("donor-B@b1" if state == "Active" else "rebuild-from-B@b")


def test_who_is_told_to_follow_a_copy_is_offered_nothing_else(tmp_path: Path) -> None:
    told = {"physrep_source_dbname": "A", "physrep_source_host": "a1"}
    gone = Made("A@a1", at=(9, 500), source="S@s1", answers=False, age=900)
    planned = planned_of(tmp_path, Made("S@s1"), gone, Made("B@b1", at=(9, 500), source="A@a1", tunables=told))
    assert chosen(planned)["B@b1"] == "donor-S@s1"


TOLD = {"physrep_source_dbname": "S", "physrep_source_host": "s1"}
DEAD = {"answers": False, "age": 900}


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        (DEAD, DEAD, [("reset", "A@a1"), ("reset", "A@a2")]),
        (DEAD, {}, [("reset", "A@a1"), ("force_registration", "A@a2")]),
        ({"answers": False}, {}, [("force_registration", "A@a2")]),
    ],
)
def test_a_circle_is_cut_at_a_node_that_is_gone_or_one_that_answers(
    first: dict, second: dict, steps: list, tmp_path: Path
) -> None:
    """One that is gone is no living node of a circle: it is reset, and nobody waits for it to register."""
    circle = [
        Made("A@a1", at=(9, 900), source="A@a2", **first),
        Made("A@a2", at=(9, 900), source="A@a1", **second),
    ]
    planned = planned_of(tmp_path, Made("S@s1"), *circle)
    assert [(step.repair, step.server) for step in planned.steps] == steps
    assert planned.unmended == 0 and not any(row["pending"] or row["missing"] for row in planned.after)


def test_of_a_circle_through_the_source_its_own_row_goes(tmp_path: Path) -> None:
    """What pulls from the source does so rightly; to register anew would give it the same place, and leave the circle."""
    planned = planned_of(
        tmp_path, Made("S@s1", source="A@a1"), Made("A@a1", source="S@s1", tunables=TOLD), Made("A@a2", source="A@a1")
    )
    assert [(step.repair, step.server) for step in planned.steps] == [("disconnect", "S@s1")]
    assert planned.steps[0].commands == (
        ("registry", "delete from comdb2_physrep_connections where dbname = 'S' and host = 's1'"),
    )
    assert planned.unmended == 0


def test_where_nothing_tells_which_database_is_the_source_no_row_of_a_circle_is_deleted(tmp_path: Path) -> None:
    planned = planned_of(
        tmp_path, Made("S@s1", source="A@a1"), Made("A@a1", source="S@s1"), Made("A@a2", source="A@a1")
    )
    assert not planned.steps and planned.unmended == 1
    assert any("collect the tunables" in course.refused for course in planned.courses)


def test_of_a_node_in_a_circle_with_another_source_one_row_stays(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    written(folder, [Made("S@s1"), Made("A@a1", source="S@s1"), Made("A@a2", source="A@a1")])
    with (folder / "meta/comdb2_physrep_connections.tsv").open("a") as rows:
        rows.write("A\ta1\tA\ta2\n")
    case = Case.create(tmp_path / "case")
    case.load([folder])
    planned = plan(case)
    assert [(step.repair, step.server) for step in planned.steps] == [("force_registration", "A@a1")]
    assert planned.unmended == 0


def of_2023(folder: Path, limit: int, *nodes: Made) -> Plan:
    """The plan for a registry of that version, which refuses everybody where more wait."""
    written(folder / "in", nodes, physrep_max_pending_replicants=str(limit))
    tunables = folder / "in/nodes/tunables.tsv"
    tunables.write_text(tunables.read_text().replace("physrep_reconnect_interval", "physrep_register_interval"))
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return plan(case)


def test_dead_rows_that_fill_the_registry_are_reset_and_the_living_get_a_source_by_themselves(tmp_path: Path) -> None:
    dead = [Made(f"A@d{at}", at=(8, 5), state="Pending", **DEAD) for at in range(4)]
    planned = of_2023(tmp_path, 3, Made("S@s1"), *dead, Made("A@late", at=(8, 6), state="Pending"))
    assert [(step.repair, step.server) for step in planned.steps] == [("reset", f"A@d{at}") for at in range(4)]
    assert planned.unmended == 0 and not any(row["pending"] for row in planned.after)


def test_where_all_that_wait_are_alive_the_limit_is_raised(tmp_path: Path) -> None:
    """None of them is ever answered: each counts for all others, and all ask in vain once a second."""
    waiting = [Made(f"A@a{at}", at=(8, 5), state="Pending") for at in range(5)]
    planned = of_2023(tmp_path, 3, Made("S@s1"), *waiting)
    assert [step.repair for step in planned.steps] == ["pending_limit"]
    assert "physrep_max_pending_replicants 10\n" in planned.steps[0].sends
    assert planned.unmended == 0 and not any(row["pending"] for row in planned.after)


@pytest.mark.parametrize("others", [0, 1])
def test_the_only_node_of_the_source_is_shut_down_last_and_said_to_be_it(others: int, tmp_path: Path) -> None:
    sources = [Made("S@s1"), *[Made("S@s2")] * others]
    planned = planned_of(tmp_path, *sources, Made("A@late", at=(3, 5), first=2, state="Pending"))
    (course,) = [one for one in planned.courses if one.chosen]
    assert course.way == "rebuild-from-S@s1"
    assert ("nobody can write to S" in course.costs) == (not others)
    assert ("nobody can write to S" in planned.steps[-1].risk) == (not others)


def test_only_what_holds_log_files_is_said_to_hold_them(tmp_path: Path) -> None:
    planned = planned_of(tmp_path, Made("S@s1"), Made("A@a1", source="S@s1", **DEAD))
    assert "log files" not in planned.steps[0].risk


def test_rows_that_were_read_before_the_nodes_were_asked_hide_no_source_from_a_copy(tmp_path: Path) -> None:
    """A copy asks for the file of the node that it is of; the others have reported that they have it long before."""
    moved = {"at": (12, 900), "reported": (11, 3), "first": 10}
    late = Made("A@late", at=(5, 5), first=4, state="Pending")
    planned = planned_of(tmp_path, Made("S@s1", **moved), Made("A@a1", source="S@s1", **moved), late)
    assert chosen(planned) == {"A@late": "rebuild-from-A@a1"} and planned.unmended == 0


def test_a_stopped_node_for_which_files_are_kept_is_started_again_and_the_source_is_left_alone(tmp_path: Path) -> None:
    """It needs file 8, which only its row keeps: for the seconds until it pulls again that is a risk, no reason for a copy."""
    planned = held_for(tmp_path, Made("A@a1", at=(8, 500), source="S@s1", age=900))
    assert [(step.repair, step.server) for step in planned.steps] == [("restart", "A@a1")]
    assert "its row keeps no log file" in planned.steps[0].risk
    assert not planned.left, "it waits no more, and holds nothing"


def test_a_reset_waits_for_a_stopped_node_that_needs_what_the_other_held(tmp_path: Path) -> None:
    """Before that node has pulled what is behind file 8, the reset would strand it."""
    ghost = Made("A@a1", at=(8, 100), source="S@s1", age=900, answers=False)
    planned = held_for(tmp_path, ghost, Made("B@b1", at=(8, 500), source="S@s1", age=900, state="active"))
    assert [(step.repair, step.server) for step in planned.steps] == [("restart", "B@b1"), ("reset", "A@a1")]


def test_a_file_that_is_kept_for_another_node_is_not_about_to_be_deleted(tmp_path: Path) -> None:
    ghost = Made("A@a1", at=(8, 100), source="S@s1", age=900, answers=False)
    late = Made("B@b1", at=(8, 500), source="S@s1", age=900, state="active")
    held_for(tmp_path, ghost, late)
    found = diagnose(Case.open(tmp_path / "case"))
    (gap,) = (finding["summary"] for finding in found["findings"] if finding["code"] == "LOG_GAP")
    assert "which the source keeps for A@a1 alone" in gap and "soon" not in gap


def held_for(folder: Path, *nodes: Made) -> Plan:
    made = Case.create(folder / "case")
    made.load([written(folder / "in", (Made("S@s1"), *nodes), physrep_check_minlog_freq_sec="600")])
    return plan(made)


def test_what_a_step_mends_is_not_said_to_stay(tmp_path: Path) -> None:
    """A@a2 is started as a step says, and pulls from A@a1, which has its file; S@s2 is silent, and no step brings it anything."""
    planned = planned_of(
        tmp_path,
        Made("S@s1", at=(20, 900), first=15),
        Made("S@s2", at=(20, 800), first=15, age=900, answers=False),
        Made("A@a1", at=(20, 900), first=12, source="S@s1"),
        Made("A@a2", at=(13, 5), first=12, source="S@s1", age=400),
    )
    assert [(step.repair, step.server) for step in planned.steps] == [("replicate_from", "A@a2")]
    assert [line.split(":")[0] for line in (*planned.left, *planned.open)] == ["REPLICANT_HUNG S@s2"]
    assert {row["server"]: row["pending"] for row in planned.after if row["pending"]} == {"S@s2": 1}


def test_a_gentle_way_is_not_passed_over_for_what_a_copy_gives_to_others(tmp_path: Path) -> None:
    """A copy of the source on A@a1 would serve B@b1 too, which has a need of its own: neither costs the source its one node."""
    planned = planned_of(
        tmp_path,
        Made("S@s1", first=4),
        Made("A@a1", at=(8, 473), first=5, state="Pending"),
        Made("B@b1", at=(4, 235), first=4, source="A@a1"),
    )
    assert {(step.repair, step.server) for step in planned.steps} == {
        ("restart", "A@a1"),
        ("force_registration", "B@b1"),
    }
    assert not any(row["pending"] for row in planned.after)


def test_who_only_hangs_badly_registers_after_those_that_wait(tmp_path: Path) -> None:
    """A@a1 has one place left, and A@a3 alone needs it: B@b1 and B@b2 are well without their rows."""
    planned = planned_of(
        tmp_path,
        Made("S@s1", at=(12, 2000), first=12),
        Made("B@b1", at=(12, 2000), first=12, source="S@s1", state=None),
        Made("B@b2", at=(12, 2000), first=12, source="S@s1", state=None),
        Made("A@a1", at=(12, 2000), first=9, source="S@s1"),
        Made("A@a3", at=(11, 471), first=8, source="A@a1", age=400),
    )
    assert planned.steps[0].server == "A@a3" and not {step.repair for step in planned.steps} & {"rebuild"}


def test_who_can_serve_others_goes_before_them(tmp_path: Path) -> None:
    """A@a1 needs file 8, which B@b1 alone has; B@b1 goes on once it has left its frozen parent."""
    planned = planned_of(
        tmp_path,
        Made("S@s1", at=(11, 2000), first=9),
        Made("C@c1", at=(11, 300), first=10, source="S@s1", age=400, answers=False),
        Made("B@b1", at=(11, 240), first=8, source="C@c1"),
        Made("A@a1", at=(8, 178), first=5, source="S@s1"),
    )
    assert [(step.repair, step.server) for step in planned.steps if step.repair != "reset"] == [
        ("force_registration", "B@b1"),
        ("replicate_from", "A@a1"),
    ]


def test_no_command_is_sent_to_a_node_that_did_not_answer(tmp_path: Path) -> None:
    planned = planned_of(tmp_path, Made("S@s1"), Made("A@a1", at=(9, 900), source="A@a1", answers=False))
    assert not planned.steps
    assert any("no command reaches it" in course.refused for course in planned.courses)


def test_a_node_that_may_be_anywhere_is_not_rebuilt(tmp_path: Path) -> None:
    """It was in file 4 when it cut its log back, which the source has deleted: its position since then is unknown."""
    cut = "2026/11/20 11:59:58 comdb2_replicated_truncate complete [4:500]\n"
    planned = planned_of(tmp_path, Made("S@s1"), Made("A@a1", at=(4, 700), source="S@s1", answers=None, age=9, log=cut))
    assert not planned.steps and not planned.courses


def test_a_row_that_holds_files_goes_once_the_others_need_them_no_more(tmp_path: Path) -> None:
    """B@b1 pulls from A@a1, which is gone; it is moved first, and waits for as many changes as are said of it."""
    gone = [Made(f"A@a{n}", source="S@s1", first=4, at=(5, 500 + n), age=9000, answers=False) for n in (1, 2)]
    nodes = [Made("S@s1", first=4), *gone, Made("B@b1", source="A@a1", first=4, at=(5, 800))]
    made = Case.create(tmp_path / "case")
    made.load([written(tmp_path / "now", nodes, physrep_check_minlog_freq_sec="600")])
    drawn = plan(made)
    steps = [(step.repair, step.server) for step in drawn.steps]
    assert {("reset", "A@a1"), ("reset", "A@a2")} <= {*steps}
    assert steps.index(("force_registration", "B@b1")) < steps.index(("reset", "A@a1"))
    assert [course.restored for course in drawn.courses if course.way == "force-registration"] == [1]


def equal_holders(folder: Path) -> Plan:
    """A@a3 was stopped two files further than A@a2 is, which pulls and is slow; A@a1 is frozen."""
    return planned_of(
        folder,
        Made("S@s1", first=4),
        Made("A@a1", at=(5, 500), first=4, source="S@s1", age=900, answers=False),
        Made("A@a2", at=(5, 500), first=4, source="S@s1"),
        Made("A@a3", at=(7, 500), first=5, source="S@s1", age=70),
    )


def test_a_node_that_is_behind_another_one_is_neither_its_source_nor_copied_to_it(tmp_path: Path) -> None:
    """A node that connects to one behind it cuts off all that it has beyond the match point there."""
    planned = equal_holders(tmp_path)
    ways = {course.way for course in planned.courses if course.need.endswith("A@a3")}
    assert ways == {"restart", "start-replication", "donor-S@s1", "rebuild-from-S@s1"}


def test_a_node_that_is_copied_is_up_to_date_only_where_it_was_collected_so(tmp_path: Path) -> None:
    """What is on its way to A@a1 has arrived on the model once another step is planned before."""
    nodes = [Made("S@s1"), Made("A@a1", at=(9, 900), source="S@s1"), Made("A@a2", source="S@s1")]
    nodes.append(Made("A@a3", at=(9, 800), source="S@s1", age=900, answers=False))
    made = Case.create(tmp_path / "case")
    made.load([written(tmp_path / "in", [*nodes, Made("B@b1", at=(5, 5), first=5, state="Pending")])])
    before = [
        step.stands_on
        for way in ("rebuild-from-A@a1", "rebuild-from-A@a2")
        for step in plan(made, [], [way]).steps
        if step.repair == "rebuild"
    ]
    assert "A@a1, which stood at {9:900} when it was collected" in before[0] and "up to date" not in before[0]
    assert before[1].startswith("A@a2 is up to date and can be shut down")


def test_a_node_whose_children_fit_the_fanout_after_a_reset_is_not_said_to_stay_too_full(tmp_path: Path) -> None:
    planned = equal_holders(tmp_path)
    assert ("reset", "A@a1") in {(step.repair, step.server) for step in planned.steps}
    assert not [line for line in planned.left if line.startswith("FANOUT_EXCEEDED")]
    (full,) = (x for x in diagnose(Case.open(tmp_path / "case"))["findings"] if x["code"] == "FANOUT_EXCEEDED")
    assert "A@a1 does not report itself" in full["summary"] and "gone" not in full["summary"]
