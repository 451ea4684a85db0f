"""scenario: what happens over days of writes, purges, pulls and refreshes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from workbench.input_validation import Inputs
from workbench.systems.kanidm.rules.fleet import Event, Fleet
from workbench.systems.kanidm.scenarios.fields import Time


class Alone(Inputs):
    """Something that one server does."""

    t: Time
    op: Literal["write", "purge"]
    server: str


class Between(Inputs):
    """Something that a consumer gets from a supplier."""

    t: Time
    op: Literal["incremental", "refresh"]
    supplier: str
    consumer: str


class Scenario(Inputs):
    """The servers, how long they keep their changes, and what happens to them, in order."""

    servers: list[str]
    changelog_max_age_s: Annotated[Time, Field(ge=0)]
    events: list[Annotated[Alone | Between, Field(discriminator="op")]]

    @model_validator(mode="after")
    def _known(self) -> Scenario:
        for number, one in enumerate(self.events):
            for name in (one.server,) if isinstance(one, Alone) else (one.supplier, one.consumer):
                if name not in self.servers:
                    raise ValueError(f"speaks of a server in event {number} that is not among the servers")
        return self


def scenario(given: Scenario) -> dict[str, Any]:
    """The answers to the pulls, and whom each server knows in the end."""
    fleet = Fleet(given.servers, given.changelog_max_age_s)
    replies = fleet.play(
        Event(one.t, one.op, server=one.server)
        if isinstance(one, Alone)
        else Event(one.t, one.op, supplier=one.supplier, consumer=one.consumer)
        for one in given.events
    )
    return {"incremental_replies": [one.message for one in replies], "ruv_servers": fleet.known()}
