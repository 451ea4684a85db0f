"""The hands that fill a Directory Server with the data of another one: begun again, asked again, and not begun at all."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hand_plans import (
    initialise,
)
from memory_servers import (
    SUFFIX,
    MemorySite,
    Stored,
    csn,
    encoded,
)

from workbench.repair import plan_executor
from workbench.repair.plan_executor import FAILED, FINISHED, STOPPED, apply
from workbench.repair.plan_types import IF_BEHIND
from workbench.systems.ds389.live import step_executors

pytestmark = pytest.mark.usefixtures("no_waiting")


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


@pytest.mark.parametrize(("times", "state"), [(2, FINISHED), (3, FAILED)])
def test_an_initialisation_that_a_busy_server_refused_is_asked_for_again(
    times: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another supplier was in a session with it; at the third time it is given up, and a resume asks again."""
    monkeypatch.setattr(plan_executor, "_AGAIN_AFTER", (0.01, 0.01))
    repair = initialise()
    left = [times]
    begin = repair.fleet._initialise

    def busy(server: Any, consumer: Any, entry: Stored, link: Any) -> None:
        kept = consumer.entries, consumer.vector
        begin(server, consumer, entry, link)
        if link.refresh == -1 and left[0]:
            left[0] -= 1
            said = "Error (1) Replication error acquiring replica: replica busy (Unable to acquire replica)"
            entry.values["nsds5replicaLastInitStatus"] = encoded([said])
            consumer.entries, consumer.vector = kept

    monkeypatch.setattr(repair.fleet, "_initialise", busy)
    said: list[str] = []
    outcome = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path, told=said.append)
    assert outcome.state == state
    assert ("switch off the other links to" in str(outcome)) is (state == FAILED)
    assert repair.fleet.inits == 3
    assert sum("replica busy" in sentence and "asked again in" in sentence for sentence in said) == 2
    del repair.fleet._initialise


def test_a_server_that_clients_write_to_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repair = initialise()
    s3, seconds = repair.fleet.servers["s3"], count(900)
    clock = SimpleNamespace(
        sleep=lambda _: s3.vector.update({"3": csn(next(seconds), "3")}), monotonic=step_executors.time.monotonic
    )
    monkeypatch.setattr(step_executors, "time", clock)  # of this module alone: others wait, too
    outcome = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert (outcome.state, repair.fleet.inits) == (FAILED, 0)
    assert "changes are made on s3" in outcome.why and "let clients write elsewhere" in outcome.why


def test_a_change_that_a_client_makes_while_a_server_is_watched_is_not_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair, looks = initialise(), count()
    s3 = repair.fleet.servers["s3"]
    once = SimpleNamespace(
        sleep=lambda _: s3.vector.update({"3": csn(900, "3")}) if next(looks) == 0 else None,
        monotonic=step_executors.time.monotonic,
    )
    monkeypatch.setattr(step_executors, "time", once)
    outcome = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path)
    assert (outcome.state, repair.fleet.inits) == (FAILED, 0)
    assert f"only s3 has the changes of 3 up to {csn(900, '3')}" in outcome.why


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        ((1, 1), False),
        ((0, 0), False),
        ((1, 2, 2, 2, 2), False),
        ((1, 2, 2, 3), True),
        ((1, 2, 3), True),
        ((0, 1, 2), True),
    ],
)
def test_one_change_of_its_own_is_no_client(seconds: tuple[int, ...], written: bool) -> None:
    """A server writes to its keep-alive entry half a minute after its start; a client writes now and then (0: not yet)."""
    moments = iter([csn(second, "3") if second else "" for second in seconds])
    servers: Any = SimpleNamespace(origin=lambda suffix, name: "3", vectors=lambda suffix: {"s3": {"3": next(moments)}})
    step: Any = SimpleNamespace(suffix=SUFFIX, server="s3")
    assert bool(list(step_executors.Initialise()._written_to(servers, step))) is written
    assert not list(moments)


def test_a_server_whose_new_data_claim_less_than_others_have_of_it_is_filled_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written to while it was filled: its new log lacks the record at which its sessions would begin."""
    monkeypatch.setattr(plan_executor, "_AGAIN_AFTER", (0.01, 0.01))
    repair, times = initialise(), [1]
    begin = repair.fleet._initialise

    def older(server: Any, consumer: Any, entry: Stored, link: Any) -> None:
        begin(server, consumer, entry, link)
        if link.refresh == -1 and times[0]:
            times[0] -= 1
            consumer.vector = {**consumer.vector, "3": csn(99, "3")}  # others have it up to 100

    monkeypatch.setattr(repair.fleet, "_initialise", older)
    said: list[str] = []
    outcome = apply(repair.plan, MemorySite(repair.plan, repair.fleet, tmp_path), tmp_path, told=said.append)
    assert (outcome.state, repair.fleet.inits) == (FINISHED, 2), outcome.why
    assert any(
        "s3 was written to while it was filled" in sentence and "asked again in" in sentence for sentence in said
    )
    del repair.fleet._initialise


@pytest.mark.parametrize(("behind", "wrote"), [(True, False), (False, False), (False, True)])
def test_a_server_that_gets_level_by_itself_is_not_filled(
    behind: bool, wrote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless anybody wrote: what came to its source with its new data and once more by a session, never comes to the server."""
    monkeypatch.setattr(step_executors.Initialise, "SETTLES", 0.01)
    repair = initialise()
    steps = tuple(
        replace(step, details={**step.details, IF_BEHIND: True}) if step.repair == "initialise" else step
        for step in repair.plan.steps
        if step.repair != "task"
    )
    if wrote:
        repair.fleet.servers["s1"].vector["1"] = csn(9_999, "1")
    if not behind:
        s3 = repair.fleet.servers["s3"]
        s3.vector = {**repair.fleet.servers["s1"].vector, "3": s3.vector["3"]}
    plan = replace(repair.plan, steps=steps)
    said: list[str] = []
    outcome = apply(plan, MemorySite(plan, repair.fleet, tmp_path), tmp_path, accept_progress=True, told=said.append)
    assert (outcome.state, repair.fleet.inits) == (FINISHED, 1 if behind or wrote else 0)
    assert any("is done already" in sentence for sentence in said) is not (behind or wrote)
