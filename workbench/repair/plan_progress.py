"""How far a plan is done, as the journal of its case tells: the words of that journal, and what they add up to.

begun, resumed    a run of `apply` or of `resume` began: by whom, and from which dead owner it took over
intent            a step comes next; `memo` is what has to be known from before it
applying          nothing stands against the step: from here on it may have had an effect
done              its effect was seen on all servers; `vectors` are those after it. `already`: somebody else did it
refused           the repair was not begun after all: nothing was done for it
failed, stopped   the run ended before the plan did
finished          all steps are done
given_up          a person said that the rest will not be done
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.journal import Owner, Record, records_of
from workbench.model import Problem
from workbench.repair.plan_types import Plan, Vectors

JOURNAL = "journal.jsonl"

BEGUN, RESUMED, INTENT, APPLYING, DONE = "begun", "resumed", "intent", "applying", "done"
REFUSED, FAILED, STOPPED, FINISHED, GIVEN_UP = "refused", "failed", "stopped", "finished", "given_up"
BEGINS = (BEGUN, RESUMED, GIVEN_UP)
"""What the first record of a run may say."""

NOT_BEGUN, HALF_DONE = "not begun", "half done"


@dataclass
class PlanProgress:
    """How far a plan is done.

    state      NOT_BEGUN, HALF_DONE, FINISHED or GIVEN_UP
    total      how many steps it has; 0 while it is not begun
    done       keys of the steps that are done, in the order in which they were
    memos      step -> what was to be known from before it
    touched    steps that may have had an effect, whether they are done or not
    vectors    suffix -> server -> what it claimed after the last step that is done and concerns it
    other      another plan of this case that is half done; empty if there is none
    """

    plan: str
    state: str = NOT_BEGUN
    total: int = 0
    done: list[str] = field(default_factory=list)
    memos: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    vectors: dict[str | None, dict[str, Mapping[str, str]]] = field(default_factory=dict)
    other: str = ""

    def __str__(self) -> str:
        return {
            NOT_BEGUN: "nothing was applied",
            HALF_DONE: f"{len(self.done)} of {self.total} applied",
            FINISHED: f"{self.total} of {self.total} applied",
            GIVEN_UP: f"given up after {len(self.done)} of {self.total}",
        }[self.state]


def state_of(folder: Path, plan: Plan | str, journal: str = JOURNAL) -> PlanProgress:
    """How far the plan, or that of the id, is done. Reads only; raises Problem if the journal is damaged."""
    return standing(records_of(folder / journal, BEGINS), id_of(plan), folder / journal)


def half_done(folder: Path, journal: str = JOURNAL) -> str:
    """The id of the plan of a folder that is begun and not ended; empty if there is none."""
    return state_of(folder, "", journal).other


def id_of(plan: Plan | str) -> str:
    """The id of a plan whose file may be gone."""
    return plan if isinstance(plan, str) else plan.id


def standing(records: Iterable[Record], plan: str, where: Path) -> PlanProgress:
    """The same, of records that were read from `where`."""
    told = {plan: PlanProgress(plan)}
    for record in records:
        before = told.get(record["plan"]) or PlanProgress(record["plan"])
        try:
            told[before.plan] = advanced(before, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            do = "what was done cannot be told from it: look at the servers, put the journal aside, collect and plan again"
            raise Problem(f"the journal is damaged: record {record['n']} is not whole", str(where), do) from None
    wanted = told.pop(plan)
    wanted.other = next((one.plan for one in told.values() if one.state == HALF_DONE), "")
    return wanted


def advanced(one: PlanProgress, record: Record) -> PlanProgress:
    """How far the plan is after one more record of it; the standing before is used up."""
    match record["what"]:
        case "begun":
            return PlanProgress(one.plan, HALF_DONE, int(record["steps"]))
        case "intent":
            one.memos[record["step"]] = dict(record["memo"])
        case "applying":
            one.touched.add(record["step"])
        case "done":
            one.done.append(record["step"])
            for rows in record["vectors"]:
                one.vectors.setdefault(rows["suffix"], {}).update(rows["servers"])
        case "refused":
            return PlanProgress(one.plan)
        case "finished":
            one.state = FINISHED
        case "given_up":
            one.state = GIVEN_UP
    return one


def as_rows(vectors: Mapping[str | None, Vectors]) -> list[dict[str, Any]]:
    """Vectors by suffix, as a record holds them: a key of JSON cannot be None."""
    return [
        {"suffix": suffix, "servers": {server: dict(held) for server, held in servers.items()}}
        for suffix, servers in vectors.items()
    ]


def by_whom(taken_over_from: Owner | None) -> dict[str, Any]:
    """Who writes this, and whose place they took: for the record that begins a run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name: the number in a container
        user = str(os.getuid())
    by = {"user": user, "host": socket.gethostname(), "pid": os.getpid()}
    return {"by": by, "taken_over_from": str(taken_over_from) if taken_over_from else None}
