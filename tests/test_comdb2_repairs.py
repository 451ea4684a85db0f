"""The repairs of Comdb2 on the model of tiers: what they do to rows and logs, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tier_models import sample_model, sample_view

from workbench.model import Finding
from workbench.repair.plan_types import Need, ProposedRepair
from workbench.replication.tier.rules.repair_model import TierModel
from workbench.replication.tier.rules.tiers import Pull
from workbench.rules.repair_model import MissingAt
from workbench.rules.repair_result import achieved
from workbench.systems.comdb2 import sql
from workbench.systems.comdb2.repairs import REPAIRS
from workbench.systems.comdb2.rules import HOLDING, V2026

WELL = ("healthy", "s1", 7, (9, 500))


def incident(first_file: bool = False) -> TierModel:
    """One node stopped, one that waits and whose file only a node below another has, one that was shut down."""
    return sample_model(
        first_file=first_file,
        s1=("healthy", None, 7, (9, 500)),
        s2=("healthy", None, 7, (9, 500)),
        a=WELL,
        b=("healthy", "a", 5, (9, 500)),
        late=("pending", None, 3, (6, 100)),
        stopped=("stopped", "a", 7, (8, 100)),
        ghost=("ghost", "s1", 7, (9, 100)),
    )


def needs(model: TierModel, *findings: Finding) -> dict[str | None, Need]:
    """What is lacking, as planning names it, and what is to be mended besides."""
    found: dict[str | None, Need] = {}
    lacking = {lack.server for lack in model.pending() | model.missing()}
    for name in sorted(lacking):
        lacks = frozenset(lack for lack in model.pending() | model.missing() if lack.server == name)
        found[name] = Need("REPLICANT_INACTIVE", None, name, lacks=lacks)
    for need in REPAIRS.also(sample_view(model, *findings), model):
        found.setdefault(need.server, need)
    return found


def drafts(model: TierModel, need: Need, *findings: Finding) -> dict[str, ProposedRepair]:
    view = sample_view(model, *findings)
    return {draft.way: draft for repair in REPAIRS.ladder for draft in repair.propose(view, need)}


def effects(draft: ProposedRepair) -> list:
    return [effect for step in draft.steps for effect in step.effects]


# --- the model


def test_a_node_lacks_what_lies_between_its_end_and_that_of_the_source() -> None:
    model = incident()
    lots = [lot.last[:10] for lot in model.lots]
    assert lots == ["0000000008", "0000000009", "0000000009"]
    assert {(lack.server, lack.lot) for lack in model.pending()} == {("R@late", 0), ("R@late", 1), ("R@late", 2)} | {
        ("R@stopped", 1),
        ("R@stopped", 2),
    }
    assert model.missing() == set()
    assert model.serving("R@late") == ["R@b"]
    assert model.serving("R@stopped")[:2] == ["R@a", "R@b"]


def test_a_node_that_cannot_go_on_itself_serves_nobody() -> None:
    model = sample_model(
        s1=("healthy", None, 9, (9, 500)), a=("gapped", None, 3, (6, 10)), b=("gapped", None, 2, (4, 10))
    )
    assert model.serves("R@a", "R@b")
    assert model.serving("R@b") == []
    assert model.lost == {"R@a", "R@b"}
    assert model.missing() == set()


def test_a_reset_of_a_dead_holder_strands_whoever_only_needed_its_hold() -> None:
    model = sample_model(
        HOLDING,
        s1=("healthy", None, 4, (9, 500)),
        dead=("ghost", "s1", 4, (4, 100)),
        late=("pending", None, 4, (4, 200)),
    )
    made, _ = achieved(model, [{"do": "reset", "server": "R@dead"}])
    assert {lack.server for lack in made.unsaid} == {"R@late"}
    made, _ = achieved(replace(model, rules=V2026), [{"do": "reset", "server": "R@dead"}])
    assert made.unsaid == frozenset()
    elsewhere = replace(model, elsewhere=frozenset({"S"}))
    assert achieved(elsewhere, [{"do": "reset", "server": "R@dead"}])[0].unsaid == frozenset()


PLACES = st.tuples(st.integers(4, 9), st.sampled_from([100, 200]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["healthy", "pending", "stopped", "ghost"]), st.integers(1, 9), PLACES), max_size=5
    )
)
def test_what_is_pulled_is_a_prefix_and_nobody_loses_by_pulling(nodes) -> None:
    told = {
        f"n{number}": (condition, None if condition == "pending" else "s1", min(first, last[0]), last)
        for number, (condition, first, last) in enumerate(nodes)
    }
    model = sample_model(s1=("healthy", None, 6, (9, 200)), **told)
    before = {name: set(server.holds) for name, server in model.servers.items()}
    model.settle()
    for name, server in model.servers.items():
        assert server.holds >= before[name]
        assert server.holds == set(range(len(server.holds)))
        span = server.vector["S"]
        assert server.holds == {number for number, lot in enumerate(model.lots) if lot.last <= (span.max or "")}
        if model.condition[name] == "healthy" and name != "S@s1" and model.file_of(span.max or "") >= 6:
            assert MissingAt(name, len(model.lots) - 1) not in model.pending()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["healthy", "pending", "stopped", "ghost"]), st.integers(1, 9), PLACES), max_size=6
    )
)
def test_who_goes_on_is_whom_a_chain_of_servers_brings_to_the_head(nodes) -> None:
    told = {f"n{n}": (condition, None, min(first, last[0]), last) for n, (condition, first, last) in enumerate(nodes)}
    model = sample_model(s1=("healthy", None, 6, (9, 200)), **told)
    head = len(model.lots)
    able = {name for name, server in model.servers.items() if server.up and len(server.holds) == head}
    for _ in model.servers:
        able |= {name for name, one in model.servers.items() if one.up and any(model.serves(by, name) for by in able)}
    assert model.going_on("S") == able
    for name in told:
        assert set(model.serving(f"R@{name}")) == {one for one in able if model.serves(one, f"R@{name}")}


# --- the ways


def test_a_ghost_is_reset_and_gets_its_row_back_by_the_undo() -> None:
    model = incident()
    need = needs(model)["R@ghost"]
    assert need.code == "REPLICANT_HUNG"
    draft = drafts(model, need)["reset-node"]
    (step,) = draft.steps
    assert step.commands == (("registry", """exec procedure sys.physrep.reset_nodes('R', "'ghost'", 'Inactive')"""),)
    after = model.copy()
    after.do(effects(draft))
    assert after.ghosts() == []
    assert Pull("R", "ghost", "S", "s1") not in after.registry.pulls
    assert "R@ghost" not in needs(after)
    base = sqlite3.connect(":memory:")
    base.execute("create table comdb2_physreps (dbname, host, state)")
    base.execute("create table comdb2_physrep_connections (dbname, host, source_dbname, source_host)")
    base.execute("insert into comdb2_physreps values ('R', 'ghost', 'Inactive'), ('R', 'a', 'Active')")
    for _, statement in step.undo_commands:
        base.execute(statement)
    assert base.execute("select state from comdb2_physreps").fetchall() == [("Active",), ("Active",)]
    assert base.execute("select * from comdb2_physrep_connections").fetchall() == [("R", "ghost", "S", "s1")]


def test_a_stopped_node_is_started_anew_and_never_by_the_command_that_hung() -> None:
    model = incident()
    ways = drafts(model, needs(model)["R@stopped"])
    assert "hung" in ways["start-replication"].refused and not ways["start-replication"].steps
    made, _ = achieved(model, effects(ways["restart"]))
    assert {lack.lot for lack in made.restored if lack.server == "R@stopped"} == {1, 2}
    assert not made.unsaid


def test_a_donor_is_offered_only_while_it_has_the_file() -> None:
    model = incident(first_file=True)
    need = needs(model)["R@late"]
    ways = drafts(model, need)
    assert [way for way in ways if way.startswith("donor-")] == ["donor-R@b"]
    step = ways["donor-R@b"].steps[0]
    assert "replicate_from R @b" in step.sends
    made, _ = achieved(model, effects(ways["donor-R@b"]))
    assert need.lacks <= made.restored
    model.servers["R@b"].up = False
    refused = drafts(model, need)["donor-S@s1"]
    assert refused.refused == "S@s1 does not have file 6 any more, and neither has any other node that answers"


def test_where_the_registry_knows_the_first_files_it_hides_a_donor_below_a_source_without_the_file() -> None:
    """Without them it offers everybody, and the node itself finds out who has its file."""
    for first_file in (True, False):
        model = incident(first_file)
        made, _ = achieved(model, effects(drafts(model, needs(model)["R@late"])["restart"]))
        assert bool(made.restored) != first_file


def test_a_node_that_nobody_can_serve_is_built_anew_from_a_sibling() -> None:
    model = sample_model(
        s1=("healthy", None, 9, (9, 500)), a=("healthy", "s1", 9, (9, 500)), late=("gapped", None, 3, (6, 100))
    )
    need = needs(model)["R@late"]
    ways = drafts(model, need)
    assert [way for way in ways if way.startswith("rebuild")] == ["rebuild-from-R@a", "rebuild-from-S@s1"]
    made, after = achieved(model, effects(ways["rebuild-from-R@a"]))
    assert need.lacks <= made.restored
    assert not made.unsaid and not made.left
    assert isinstance(after, TierModel) and after.parents("R@late") == ["S@s1"]
    assert "shut R@a down cleanly" in ways["rebuild-from-R@a"].steps[-1].sends


FULL = Finding("FANOUT_EXCEEDED", "warning", "too many", server="S@s1")


def test_of_too_many_children_as_few_as_need_be_register_anew() -> None:
    children = {f"n{number}": WELL for number in range(4)}
    model = sample_model(s1=("healthy", None, 7, (9, 500)), s2=("healthy", None, 7, (9, 500)), **children)
    need = needs(model, FULL)["S@s1"]
    assert need.code == "FANOUT_EXCEEDED"
    ways = drafts(model, need, FULL)
    assert len(ways["force-registration"].steps) == 2
    after = model.copy()
    after.do(effects(ways["force-registration"]))
    assert after.over_full() == []
    after = model.copy()
    after.do(effects(ways["fanout-override"]))
    assert after.over_full() == []
    (step,) = ways["fanout-override"].steps
    assert step.commands == (("each_registry", "exec procedure sys.cmd.send('physrep_fanout_override S 4')"),)
    assert step.undo_commands == (("each_registry", "exec procedure sys.cmd.send('physrep_fanout_override S 2')"),)


def test_a_circle_is_cut_and_topology_is_not_asked() -> None:
    model = sample_model(
        s1=("healthy", None, 7, (9, 500)), a=("cycle", "b", 7, (9, 100)), b=("cycle", "a", 7, (9, 100))
    )
    need = Need("TOPOLOGY_CYCLE", None, "R@a")
    ways = drafts(model, need)
    assert "it fails in every version" in ways["ask-topology"].refused
    commands = ways["force-registration"].steps[0].commands
    assert commands[0] == ("registry", sql.disconnect("R@a"))
    after = model.copy()
    after.do(effects(ways["force-registration"]))
    assert after.parents("R@a") == ["S@s1"]
    assert after.tree("S").places["R@b"].tier == 2


def test_a_row_that_makes_a_node_wait_for_nothing_is_deleted_and_can_be_put_back() -> None:
    model = sample_model(s1=("healthy", None, 7, (9, 500)), late=("no_source", None, 7, (9, 100)))
    model.registry = replace(model.registry, awaited=(Pull("R", "late", "S", "s1"),))
    finding = Finding("REVERSE_LINK_MISSING", "error", "nobody connects", server="R@late")
    (need,) = [one for one in REPAIRS.also(sample_view(model, finding), model) if one.code == "REVERSE_LINK_MISSING"]
    (step,) = drafts(model, need, finding)["delete-reverse-row"].steps
    assert step.commands == (("registry", sql.await_nobody("R@late")),)
    assert step.undo_commands == (("registry", sql.await_source("R@late", "S@s1")),)


@pytest.mark.parametrize("host", ["x'; drop table t; --", "-oProxyCommand", "a b", "ü", "x" * 200])
def test_a_name_that_is_no_plain_word_goes_into_no_statement(host: str) -> None:
    model = sample_model(**{"s1": ("healthy", None, 7, (9, 500)), host: ("ghost", "s1", 7, (9, 100))})
    need = needs(model)[f"R@{host}"]
    for draft in drafts(model, need).values():
        assert not draft.steps
        assert "is no plain name" in draft.refused


@given(st.text(max_size=20))
def test_a_state_is_put_back_as_it_was(state: str) -> None:
    base = sqlite3.connect(":memory:")
    base.execute("create table comdb2_physreps (dbname, host, state)")
    base.execute("insert into comdb2_physreps values ('R', 'a', '')")
    if "\0" not in state and state.isprintable():
        base.execute(sql.set_state("R@a", state))
        assert base.execute("select state from comdb2_physreps").fetchone() == (state,)


def test_a_check_asks_for_the_ends_of_each_log_by_place_and_not_by_text() -> None:
    commands = list(REPAIRS.checks([{"server": "R@a"}, {"server": "R@x'y"}]))
    assert [command[0] for command in commands] == ["registry", "registry", "at", "at"]
    assert not any("max(" in " ".join(command) for command in commands)


PROGRAM = """#!/bin/sh
printf '%s|' "$@" >> "$ASKED"; echo >> "$ASKED"
case "$*" in *comdb2_cluster*) printf 'meta1\nmeta2\n';; esac
"""


def test_what_a_node_is_told_is_told_to_every_node_of_the_registry(tmp_path: Path) -> None:
    """The lines at the head of the scripts, with a program in place of cdb2sql that writes down what it is asked."""
    (tmp_path / "cdb2sql").write_text(PROGRAM)
    (tmp_path / "cdb2sql").chmod(0o755)
    script = REPAIRS.preamble + "each_registry 'one'; registry 'two'; at db host 'three'"
    names = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked"), "REGISTRY": "meta"}
    subprocess.run(["sh", "-euc", script], env=names, check=True)
    asked = [line.split("|")[3:-1] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [
        ["meta", "default", "select host from comdb2_cluster"],
        ["--host", "meta1", "meta", "one"],
        ["--host", "meta2", "meta", "one"],
        ["meta", "default", "two"],
        ["--host", "host", "db", "three"],
    ]
    missing = subprocess.run(["sh", "-euc", script], env=names | {"REGISTRY": ""}, capture_output=True, text=True)
    assert missing.returncode != 0 and "the database that holds" in missing.stderr
