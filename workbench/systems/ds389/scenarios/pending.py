"""The scenario kinds `pending_list` and `pending_list_versions`: the pending lists of one server, step by step."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from workbench.input_validation import Inputs
from workbench.replication.changelog.rules.pending import (
    BEFORE_359,
    PRIMARY_CSN,
    SINCE_359,
    Replica,
    Rules,
    Server,
    Step,
    origin_of,
)
from workbench.rules.vectors import Span
from workbench.systems.ds389.scenarios.fields import Csn, PerRid, RidNumber

VERSIONS = {"before_359": BEFORE_359, "since_359": SINCE_359, "current": PRIMARY_CSN}

MinMax = Annotated[list[Csn | None], Field(min_length=2, max_length=2)]


class Operation(Inputs):
    """A thread begins, commits or cancels a CSN."""

    op: Literal["begin", "cancel", "commit"]
    thread: int | str
    csn: Csn


class PlacedOperation(Operation):
    """The same in one of several replicas."""

    replica: Annotated[int, Field(ge=0)]


class End(Inputs):
    """A thread is done with its operation."""

    op: Literal["end"]
    thread: int | str


class ReplicaAtStart(Inputs):
    """A replica before the first step."""

    local_rid: RidNumber
    ruv_min_max: PerRid[MinMax | None]


class PendingList(Inputs):
    """Inputs of kind `pending_list`."""

    replicas: list[ReplicaAtStart]
    steps: list[Annotated[PlacedOperation | End, Field(discriminator="op")]]

    @model_validator(mode="after")
    def _steps_stay_within_the_replicas(self) -> PendingList:
        for number, step in enumerate(self.steps, 1):
            if isinstance(step, PlacedOperation) and step.replica >= len(self.replicas):
                raise ValueError(f"step {number}: there is no replica {step.replica}, only {len(self.replicas)}")
        return self


class PendingListVersions(Inputs):
    """Inputs of kind `pending_list_versions`."""

    rid: RidNumber
    ruv_max_before: Csn | None
    steps: list[Annotated[Operation | End, Field(discriminator="op")]]

    @model_validator(mode="after")
    def _csns_are_of_the_replica_id(self) -> PendingListVersions:
        csns = [step.csn for step in self.steps if isinstance(step, Operation)]
        for csn in [self.ruv_max_before, *csns]:
            if csn is not None and origin_of(csn) != str(self.rid):
                raise ValueError(f"{csn} is not of replica ID {self.rid} but of {origin_of(csn)}")
        return self


def pending_list(inputs: PendingList) -> dict[str, Any]:
    """Which CSNs hold a server's RUV back, and what does it claim after each step?

    Beside what the contract asks: the reasons of each step, and at the end the CSN that each max cannot pass.
    """
    replicas = [
        Replica(replica.local_rid, {rid: Span(*(ends or ())) for rid, ends in replica.ruv_min_max.items()})
        for replica in inputs.replicas
    ]
    server = Server(replicas, PRIMARY_CSN)
    states = []
    for given in inputs.steps:
        server.take(_step(given))
        states.append(
            [
                {rid: {"min": held.min, "max": held.max, "pending": len(held.pending)} for rid, held in ruv.items()}
                for ruv in server.state()
            ]
        )
    return {
        "result_of_each_step": [done.result for done in server.history],
        "state_after_each_step": states,
        "why_of_each_step": [[str(why) for why in done.why] for done in server.history],
        "held_back_by": server.holding_back(),
    }


def pending_list_versions(inputs: PendingListVersions) -> dict[str, Any]:
    """What would older servers have claimed after the same operations?"""
    return {name: _claims(inputs, rules) for name, rules in VERSIONS.items()}


def _claims(inputs: PendingListVersions, rules: Rules) -> dict[str, Any]:
    rid, before = str(inputs.rid), inputs.ruv_max_before
    server = Server([Replica(rid, {rid: Span(before, before)})], rules)
    maxima = []
    for given in inputs.steps:
        server.take(_step(given))
        maxima.append(server.state()[0][rid].max)
    return {"ruv_max_after_each_step": maxima, "pending_left": len(server.state()[0][rid].pending)}


def _step(given: Operation | End) -> Step:
    if isinstance(given, End):
        return Step("end", given.thread)
    return Step(given.op, given.thread, given.replica if isinstance(given, PlacedOperation) else 0, given.csn)
