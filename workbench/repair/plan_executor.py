"""Doing a plan: each step exactly once, whatever happens in between.

Of every step the journal gets the intent first. Then it is looked whether the step is done already (a run before this one
may have been killed after the server took it), the servers are compared with what the plan stands on, the step is done,
its effect is looked for on all servers, and the journal says done.

No record tells that a step took effect but for what the servers show: a run may be killed, and a server may fail to
answer, after the server took the step and before anybody could write that down.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from workbench.journal import Journal, owned
from workbench.model import Problem
from workbench.repair.plan_preconditions import Allowed, not_as_planned
from workbench.repair.plan_progress import (
    APPLYING,
    BEGINS,
    BEGUN,
    DONE,
    FAILED,
    FINISHED,
    GIVEN_UP,
    HALF_DONE,
    INTENT,
    JOURNAL,
    NOT_BEGUN,
    REFUSED,
    RESUMED,
    STOPPED,
    PlanProgress,
    advanced,
    as_rows,
    by_whom,
    id_of,
    standing,
)
from workbench.repair.plan_types import ALL, NAME, Plan, Step, Vectors, read_plan

STOP = "STOP"
"""Name of the file in the case that stops a repair before its next step."""

PATIENCE = 600.0
"""Seconds for a step's effect to be seen on all servers."""

LONGEST_PAUSE = 5.0

_AGAIN_AFTER = (2, 5, 10, 20, 30)
"""Seconds after which a server that turned a step away is asked again: it is busy for the time of a session."""

GOES_ON = ("flows", "compared", "finishes")
"""Details of a step before which positions may have gone forward, whoever wrote: what was set free just now flows on; all that
it touches is compared on all servers by itself; or it finishes what the step before it began."""


class EndedBadly(Problem):
    """A step took effect and not the one that was to come: there is nothing to wait for."""


class TurnedAway(EndedBadly):
    """A step has to be asked for again some seconds later: a server was busy and refused it, or was written to meanwhile."""


class PlanFailed(EndedBadly):
    """The same, and doing it again mends nothing: the plan has to be given up."""


class Site(Protocol):
    """Where a plan is done: real servers, or the model of a case. What fails raises Problem."""

    def vectors(self, suffix: str | None) -> Vectors:
        """What every server of the suffix that can be reached claims to hold now."""

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        """Why the step may not be done: what is no longer as it was planned on, but for the vectors. Writes nothing.

        begun    a run before this one may have done a part of it: what that part changed is no obstacle
        """

    def memo(self, step: Step) -> dict[str, Any]:
        """What has to be known from before the step to tell later whether it is done; goes into the journal."""

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if the step has taken effect at its server. Writes nothing."""

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Do the step, as far as it is not done."""

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """What is not yet as the step expects, on its server and on all others; empty if all is. Writes nothing.

        Raises EndedBadly if no waiting brings it.
        """


@dataclass(frozen=True)
class Outcome:
    """How a run ended: FINISHED, or with a plan half done and to be resumed, STOPPED (as it was told to) or FAILED."""

    state: str
    applied: int
    total: int
    why: str = ""
    resume: str = ""

    def __str__(self) -> str:
        how_far = f"{self.applied} of {self.total} applied"
        on = "end it" if self.resume.endswith("--give-up") else "resume"
        return how_far if self.state == FINISHED else f"{how_far}, {on} with `{self.resume}`: {self.why}"


def apply(
    plan: Plan,
    site: Site,
    folder: Path,
    *,
    resume: bool = False,
    most_steps: int | None = None,
    most_changes: int | None = None,
    stop_file: Path | None = None,
    accept_progress: bool = False,
    patience: float = PATIENCE,
    told: Callable[[str], None] = lambda sentence: None,
    dead_owner: str | None = None,
    again: str = "",
    journal: str = JOURNAL,
    halt: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Do the plan, or what is left of it (`resume`), and keep its journal in the folder.

    Raises Problem if it is not for this plan to be begun, or resumed, and if something stands against it before anything
    was done: the plan may then be applied later, or another one. When something was done the end is an Outcome.

    most_steps         stop when this run has done so many
    most_changes       stop before a step with which this run would make more changes
    stop_file          stop before the next step if this file is there; default: STOP in the folder
    accept_progress    positions may have gone forward since the plan was made, but for those of `Step.still`
    told               is given a sentence for each thing that happens
    dead_owner         the owner on another machine, HOST:PID, that is known to be dead (`workbench.journal.owned`)
    again              the command that would go on with it; default: `workbench resume` with the folder alone
    halt               stop before the next step if it says so: for whoever watches, besides the file
    """
    plan_id = plan.id
    if len({step.key for step in plan.steps}) < len(plan.steps):
        raise Problem("the plan has two steps of one key", plan_id, "make it again: `workbench plan CASE`")
    with owned(folder, dead_owner) as taken_over_from:
        if (folder / NAME).exists() and read_plan(folder).id != plan_id:
            raise Problem("the case has another plan by now", str(folder / NAME), "read that one, and apply it")
        book = Journal(folder / journal, BEGINS)
        so_far = standing(book.records, plan_id, folder / journal)
        check_turn(so_far, resume, folder)
        by = by_whom(taken_over_from)
        so_far = advanced(so_far, book.append(RESUMED if resume else BEGUN, plan_id, steps=len(plan.steps), **by))
        if taken_over_from:
            told(f"took over from {taken_over_from}, which has ended")
        brakes = _Brakes(stop_file or folder / STOP, most_steps, most_changes, halt)
        return _Run(plan, site, book, so_far, brakes, accept_progress, patience, told, again or _resume(folder)).go()


def give_up(plan: Plan | str, folder: Path, *, dead_owner: str | None = None, journal: str = JOURNAL) -> PlanProgress:
    """Write down that the rest of a half-done plan will not be done; returns how far it is done."""
    plan = id_of(plan)
    with owned(folder, dead_owner) as taken_over_from:
        book = Journal(folder / journal, BEGINS)
        so_far = standing(book.records, plan, folder / journal)
        if so_far.state != HALF_DONE:
            raise Problem(f"there is nothing to give up: {so_far}", f"plan {plan}")
        return advanced(so_far, book.append(GIVEN_UP, plan, **by_whom(taken_over_from)))


def _resume(folder: Path) -> str:
    return f"workbench resume {shlex.quote(str(folder))}"


def check_turn(so_far: PlanProgress, resume: bool, folder: Path) -> None:
    """Raise Problem if a plan that stands so is not to be begun, or resumed, now."""
    where = f"plan {so_far.plan}"
    if so_far.state not in (NOT_BEGUN, HALF_DONE):
        what = "the plan is done already" if so_far.state == FINISHED else "the plan was given up"
        raise Problem(what, where, "collect, and plan again if something is left to mend")
    if so_far.other:
        do = f"finish it (`{_resume(folder)}`) or give it up first"
        raise Problem("another plan of this case is half done", f"plan {so_far.other}", do)
    if resume and so_far.state == NOT_BEGUN:
        raise Problem("there is nothing to resume: this plan is not begun", where, "apply it: `workbench apply PLAN`")
    if not resume and so_far.state == HALF_DONE:
        raise Problem(f"the plan is begun already: {so_far}", where, f"go on with it: `{_resume(folder)}`")


class _Stop(Exception):
    """What the run was told ends it here."""


@dataclass
class _Brakes:
    """What stops a run before its next step, and how far the run is."""

    stop_file: Path
    most_steps: int | None
    most_changes: int | None
    halt: Callable[[], bool]
    steps: int = 0
    changes: int = 0

    def check(self, step: Step) -> None:
        self.look_for_stop()
        if step.details.get("finishes"):  # between this step and the one before it, data is not as anybody wants it
            return
        if self.most_steps is not None and self.steps >= self.most_steps:
            raise _Stop(f"this run has done {self.steps} steps, and may do no more")
        if self.most_changes is not None and step.changes == ALL:
            raise _Stop(
                f"step {step.key} replaces all data of {step.server}: no limit on changes allows that, leave it out"
            )
        if self.most_changes is not None and self.changes + step.changes > self.most_changes:
            over = f"step {step.key} makes {step.changes} changes; this run may make {self.most_changes}"
            raise _Stop(f"{over}, and has made {self.changes}")

    def look_for_stop(self) -> None:
        if self.stop_file.exists():
            raise _Stop(f"{self.stop_file} is there: remove it to go on")
        if self.halt():
            raise _Stop("it was told to stop")

    def count(self, step: Step) -> None:
        self.steps += 1
        self.changes += max(step.changes, 0)


@dataclass
class _Run:
    """One run over the steps that are left."""

    plan: Plan
    site: Site
    book: Journal
    so_far: PlanProgress
    brakes: _Brakes
    accept_progress: bool
    patience: float
    told: Callable[[str], None]
    resume: str

    def go(self) -> Outcome:
        step = None
        try:
            for number, step in enumerate(self.plan.steps, 1):
                if step.key not in self.so_far.done:
                    self.brakes.check(step)
                    self.told(f"step {number} of {len(self.plan.steps)}, {step.key}: {step.says}")
                    self._do(step)
            self._write(FINISHED)
        except (_Stop, KeyboardInterrupt) as stop:
            why = str(stop) if isinstance(stop, _Stop) else "it was interrupted"
            if not self.so_far.touched:  # nothing was done: the plan is not begun, and another one may be made
                with suppress(Problem):
                    self._write(REFUSED, step=step.key if step else "", why=why)
                raise Problem(f"stopped before anything was done: {why}", f"plan {self.so_far.plan}") from None
            return self._end(STOPPED, why)
        except (Problem, OSError) as error:
            key = step.key if step else ""
            if not self.so_far.touched:
                with suppress(Problem):  # if the journal is what failed, the plan stays begun
                    self._write(REFUSED, step=key, why=str(error))
                raise
            ended = self._end(FAILED, str(error) if isinstance(error, EndedBadly) else f"step {key}: {error}", step=key)
            return replace(ended, resume=f"{self.resume} --give-up") if isinstance(error, PlanFailed) else ended
        return Outcome(FINISHED, len(self.so_far.done), len(self.plan.steps))

    def _end(self, state: str, why: str, **fields: Any) -> Outcome:
        with suppress(Problem):  # no record of it is needed to resume
            self._write(state, why=why, **fields)
        return Outcome(state, len(self.so_far.done), len(self.plan.steps), why, self.resume)

    def _write(self, what: str, **fields: Any) -> None:
        self.so_far = advanced(self.so_far, self.book.append(what, self.so_far.plan, **fields))

    def _do(self, step: Step) -> None:
        if step.key not in self.so_far.memos:  # what is known from before a step is known but once
            self._write(INTENT, step=step.key, memo=self.site.memo(step))
        memo = self.so_far.memos[step.key]
        taken = self.site.done(step, memo)
        if taken:
            self.told(f"{step.key} is done already, under way, or not needed any more: nothing is begun")
        else:
            self._check(step)
            self._write(APPLYING, step=step.key)
            self.brakes.count(step)
            self._apply(step, memo)
        for pause in (*_AGAIN_AFTER, None):
            try:
                vectors = as_rows(self._verify(step, memo))
                break
            except TurnedAway as busy:
                if pause is None:
                    raise
                self.told(f"{step.key}: {busy.what}; asked again in {pause} seconds")
                self._wait(pause)
                self._check(step)
                self._apply(step, memo)
        self._write(DONE, step=step.key, already=step.key not in self.so_far.touched, vectors=vectors)
        self.told(f"{step.key} is done")

    def _wait(self, seconds: float) -> None:
        """So long, unless the run is told to stop."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.brakes.look_for_stop()
            time.sleep(min(1, left))

    def _suffixes(self, step: Step) -> list[str | None]:
        """What a step of no suffix concerns is the server with all that it holds."""
        if step.suffix is not None:
            return [step.suffix]
        return list(dict.fromkeys(one["suffix"] for one in self.plan.servers))

    def _check(self, step: Step) -> None:
        """Raises Problem if the servers are not as the plan, or the step that is done last, left them."""
        begun = step.key in self.so_far.touched
        changed = []
        for suffix in self._suffixes(step):
            planned = self.plan.vectors(suffix)
            left = self.so_far.vectors.get(suffix, {})
            baseline = {server: left.get(server, held) for server, held in planned.items()}
            # A part of the step may have taken effect, and what it sets free flows on to other servers.
            progress = self.accept_progress or begun or any(step.details.get(one) for one in GOES_ON)
            allowed = Allowed(
                progress=progress,
                still=step.still,
                down=step.details.get("down", ()),
                ours=(step.server,) if begun else (),
                origins=self._known_origins(suffix) if progress else (),
                delivered=tuple(left.values()),
            )
            changed += not_as_planned(baseline, self.site.vectors(suffix), self._order, allowed)
        if changed:
            do = "collect and plan again; or, if it is only that clients write meanwhile, --accept-progress"
            if self.so_far.touched:
                do = "see what changed it; then resume, accepting progress if it is that, or give this plan up and plan again"
            raise Problem(f"the servers are no longer as they were planned on: {few(changed)}", f"step {step.key}", do)
        obstacles = self.site.obstacles(step, begun)
        if obstacles:
            raise Problem(f"the step may not be done now: {few(obstacles)}", f"step {step.key}", "mend that first")

    def _known_origins(self, suffix: str | None) -> set[str]:
        """Those in a vector of the plan, and those of the servers: each writes some time, if only to its keep-alive entry."""
        mine = [one for one in self.plan.servers if one["suffix"] == suffix]
        return {origin for one in mine for origin in (*one["vector"], one["origin"]) if origin}

    def _order(self, position: str) -> str | None:
        from workbench.systems import system_named  # its readers are loaded only if something has moved

        return system_named(self.plan.system).typed(position)

    def _apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        try:
            self.site.apply(step, memo)
        except (Problem, OSError) as error:
            landed = False
            with suppress(Problem, OSError):
                landed = self.site.done(step, memo)
            if not landed:
                raise
            self.told(f"{step.key} was reported as failed, but has taken effect: {error}")

    def _verify(self, step: Step, memo: Mapping[str, Any]) -> dict[str | None, Vectors]:
        """Wait until the effect is seen everywhere, and return what the servers claim then, by suffix.

        Raises Problem if it is not seen in time. Of every server is waited for: the next step stands on what each claims now.
        """
        until, pause, before = time.monotonic() + self.patience, 0.05, None
        while True:
            try:
                lacking = self.site.shortfall(step, memo)
                if not lacking:
                    vectors = {suffix: self.site.vectors(suffix) for suffix in self._suffixes(step)}
                    lacking = list(self._silent(step, vectors))
                    if not lacking:
                        return vectors
            except EndedBadly as end:
                raise type(end)(end.what, f"step {step.key}", end.do or "collect, and plan again") from None
            except (Problem, OSError) as error:  # a server that is starting again
                lacking = [str(error)]
            if lacking != before:
                self.told(f"waiting: {few(lacking)}")
                before = lacking
            left = until - time.monotonic()
            if left <= 0:
                do = "it is looked for again when you resume"
                raise Problem(
                    f"not everything is as it has to be after the step: {few(lacking)}", f"step {step.key}", do
                )
            self.brakes.look_for_stop()
            time.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _silent(self, step: Step, vectors: Mapping[str | None, Vectors]) -> Iterable[str]:
        """The servers that do not say what they hold, and that the plan has not taken down."""
        for suffix, found in vectors.items():
            for server in self.plan.vectors(suffix):
                if server not in found and server not in step.details.get("down", ()):
                    yield f"{server} cannot be asked what it holds"


def few(sentences: Iterable[str], most: int = 5) -> str:
    """The first of many sentences, and how many more there are."""
    all_of_them = list(sentences)
    more = len(all_of_them) - most
    return "; ".join([*all_of_them[:most], *([f"and {more} more"] if more > 0 else [])])
