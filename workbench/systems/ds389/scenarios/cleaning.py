"""cleanallruv: whom a clean waits for, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, WithJsonSchema

from workbench.input_validation import Inputs
from workbench.systems.ds389.rules.cleaning import (
    PROCEEDS,
    CleanTask,
    Server,
    clean_task,
    lost_by_cleaning,
    safe_to_clean,
    state_of,
)
from workbench.systems.ds389.scenarios.fields import Csn


def _task(text: str) -> CleanTask:
    task = clean_task(text)
    if task is None or not task.max_csn:
        raise ValueError("is not a task (rid:maxcsn:yes|no:0|1)")
    return task


if TYPE_CHECKING:
    Task = CleanTask
else:
    Task = Annotated[str, AfterValidator(_task), WithJsonSchema({"format": "value of nsds5ReplicaCleanRUV"})]


class ServerGiven(Inputs):
    """A server as seen from where the task runs; `ruv_max` is the last CSN it claims of the cleaned replica ID."""

    reach: Literal["self", "direct", "indirect"]
    agreement_enabled: bool
    online: bool
    ruv_max: Csn | None


class Abort(Inputs):
    """An abort task."""

    certify_all: Literal["yes", "no"]


class CleanAllRuv(Inputs):
    """A clean task, all known changes of its replica ID, and who has what of them."""

    task: Task
    changes: list[Csn]
    servers: dict[str, ServerGiven]
    abort: Abort | None = None


def cleanallruv(given: CleanAllRuv) -> dict[str, Any]:
    """What the task does now; once it proceeds, nobody is sent the changes of the replica ID any more."""
    task = given.task
    servers = {
        name: Server(one.reach, one.agreement_enabled, one.online, one.ruv_max) for name, one in given.servers.items()
    }
    certify_all = given.abort is not None and given.abort.certify_all == "yes"
    state, names = state_of(task, servers, given.abort is not None, certify_all)
    return {
        "task": {
            "rid": task.rid,
            "max_csn": task.max_csn,
            "force": "yes" if task.force else "no",
            "original_task": task.original,
        },
        "state": state,
        "waits_for": names,
        "lost": lost_by_cleaning(given.changes, servers) if state == PROCEEDS else {},
        "safe": safe_to_clean(task, servers),
    }
