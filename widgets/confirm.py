"""A plan before anything is done, the panel where it is confirmed, done and stopped, and the journal of what was done.

Nothing here decides what may be done: the panel asks for the names, and hands over to
`workbench.repair.plan_executor`, whose owner lock and journal keep two runs apart, in whatever tabs, panels or machines
they were asked for.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from widgets.live_messages import heard_meanwhile
from widgets.view import View
from workbench.model import Problem
from workbench.repair.case_plan import rehearse
from workbench.repair.plan_executor import FINISHED, Outcome, Site, apply, check_turn
from workbench.repair.plan_page import journal_rows, losses_of, page_of, step_page
from workbench.repair.plan_progress import HALF_DONE, NOT_BEGUN, PlanProgress, state_of
from workbench.repair.plan_text import file_of, plan_text, step_text
from workbench.repair.plan_types import Plan, Step, to_accept
from workbench.rules.assumptions import ASSUMPTIONS
from workbench.safety import printable
from workbench.text_table import aligned

NOTHING_WAS_CHANGED = "NOTHING WAS CHANGED"

REHEARSING, APPLYING, VERIFYING = "rehearsing on the model", "at work on the servers", "asking the servers"

_TOLD = 200
"""So many of the last sentences of a run are shown."""

_BETWEEN = 0.1
"""Seconds from one drawing of a run to the next; what is waited for is drawn at once, because nothing may follow it."""

_PAGE = 100


class PlanView(View, drawn_by="steps+plan"):
    """A plan whole: before and after, the ways that were compared, every step."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan
        super().__init__(page_of(plan) if plan is not None else {"none": True})

    def text(self) -> str:
        """As `workbench plan` prints it."""
        return plan_text(self.plan) if self.plan is not None else "No plan was made."


class JournalView(View, drawn_by="journal"):
    """What the journal of a case says, the last page first shown."""

    def __init__(self, case_folder: Path | str) -> None:
        self.folder = Path(case_folder)
        super().__init__({"rows": [], "first": 0, "total": 0})
        with self.told_here():
            self._show(None)

    def on_look(self, message: dict[str, Any]) -> None:
        """Read it again, and show its end."""
        self._show(None)

    def on_page(self, message: dict[str, Any]) -> None:
        """Leaf by one page."""
        by = 1 if message.get("by") == 1 else -1
        self._show(self.data["first"] + by * _PAGE)

    def _show(self, first: int | None) -> None:
        rows = journal_rows(self.folder)
        last = max(0, (len(rows) - 1) // _PAGE * _PAGE)
        first = last if first is None else min(max(first, 0), last)
        self.data = {"rows": rows[first : first + _PAGE], "first": first, "total": len(rows)}

    def text(self) -> str:
        """The page as a table."""
        if not self.data["total"]:
            return "the journal is empty: nothing was begun"
        keys = ("n", "at", "what", "step", "says")
        return aligned([keys, *([row[key] for key in keys] for row in self.data["rows"])], right=(0,))


class Servers(Protocol):
    """How the servers of a plan are reached (`workbench.repair.server_access.ServerAccess`)."""

    @property
    def given(self) -> bool:
        """True if any were named."""

    @property
    def patience(self) -> float:
        """Seconds for a step's effect to be seen on all servers."""

    def site(self, plan: Plan, folder: Path, steps: Sequence[Step] = ()) -> Any:
        """Where the steps are done."""

    def command(self, verb: str, folder: Path, *more: str) -> str:
        """What somebody types to go on."""


class ConfirmPanel(View, drawn_by="steps+confirm"):
    """Shows what is left of a plan; does it once each server that changes was named and each assumption was accepted.

    Without servers it only rehearses on the model of the case. A run goes on when the page is closed; the journal knows how
    far it came, and another panel or `workbench resume` goes on with it.

    accept_progress    positions may have gone forward since the plan was made: clients write meanwhile
    """

    def __init__(
        self, plan: Plan, case_folder: Path | str, servers: Servers | None = None, *, accept_progress: bool = False
    ) -> None:
        self.plan, self.folder = plan, Path(case_folder)
        self.servers = servers if servers is not None and servers.given else None
        self.accept_progress = accept_progress
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._runs, self._seen = 0, ""
        self._halt = threading.Event()
        self._told: list[str] = []
        self._drawn = 0.0
        super().__init__({})
        heard_meanwhile(self)
        self._idle()

    # --- what the page asks for

    def on_look(self, message: dict[str, Any]) -> None:
        """See how far the plan is by now."""
        with self._lock:
            self._not_at_work()
            self._idle()

    def on_rehearse(self, message: dict[str, Any]) -> None:
        """Do it on the model."""
        self._begin(message, REHEARSING, self._rehearse)

    def on_apply(self, message: dict[str, Any]) -> None:
        """Do what is left on the servers, if the names were typed for what is shown."""
        self._not_at_work()
        servers = self.servers
        if servers is None:
            raise Problem("no servers are given: this panel rehearses only")
        so_far = self._as_shown(message)
        left = self._left(so_far)
        if message.get("typed") != _names(left):
            raise Problem("not confirmed: what was typed is not the name of every server that changes")
        if message.get("accepted", []) != to_accept(left):
            raise Problem("not confirmed: an assumption of the steps was not accepted")
        check_turn(so_far, so_far.state == HALF_DONE, self.folder)
        self._begin(message, APPLYING, lambda: self._apply(servers, left, so_far.state == HALF_DONE))

    def on_verify(self, message: dict[str, Any]) -> None:
        """Ask the servers, and hold them against what the plan promised."""
        servers = self.servers
        if servers is None:
            raise Problem("no servers are given: there is nobody to ask")
        self._begin(None, VERIFYING, lambda: self._verify(servers))

    def on_stop(self, message: dict[str, Any]) -> None:
        """Have the run end before its next step."""
        with self._lock:
            if self._thread is not None:
                self._halt.set()
                self.data = {**self.data, "stopping": True}

    def wait(self, seconds: float | None = None) -> bool:
        """Until what was begun here has ended; False if that took longer."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self._thread is None

    # --- one thing at a time

    def _not_at_work(self) -> None:
        if self._thread is not None:
            raise Problem("this panel is at work already", do="wait until it has ended, or stop it")

    def _as_shown(self, message: dict[str, Any] | None) -> PlanProgress:
        """How far the plan is, if that is what the page showed to whoever pressed; else the page shows it now."""
        so_far = state_of(self.folder, self.plan)
        if message is not None and (message.get("seen") != self._seen or self._token(so_far) != self._seen):
            self._idle()
            raise Problem("this has gone on since it was shown", do="look at it as it is now, and confirm that")
        return so_far

    def _begin(self, message: dict[str, Any] | None, doing: str, work: Callable[[], dict[str, Any]]) -> None:
        with self._lock:
            self._not_at_work()
            self._as_shown(message)
            self._runs += 1
            self._halt.clear()
            self._told = []
            self._thread = threading.Thread(target=self._run, args=(doing, work), name=f"workbench: {doing}")
            self._working(doing)
            self._thread.start()

    def _run(self, doing: str, work: Callable[[], dict[str, Any]]) -> None:
        ended: dict[str, Any] = {"outcome": f"{doing}: ended by an error of this program; its traceback is in the log"}
        try:
            ended = work()
        except Problem as problem:
            ended = {"outcome": str(problem)}
        finally:
            with self._lock:
                self._thread = None
                self._idle(**ended)

    # --- the work

    def _rehearse(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="workbench-") as into:
            outcome = rehearse(
                self.plan, self.folder, Path(into), lambda said: self._tell(said, Path(into)), self._halt.is_set
            )
        how = "all steps bring what they promise" if outcome.state == FINISHED else outcome.why
        told = f"rehearsed on the model, no server was contacted: {outcome.applied} of {outcome.total} steps; {how}"
        return {"outcome": told}

    def _apply(self, servers: Servers, left: Sequence[Step], resume: bool) -> dict[str, Any]:
        site: Site = servers.site(self.plan, self.folder, left)
        again = servers.command("resume", self.folder, *["--accept-progress"] * self.accept_progress)
        outcome: Outcome = apply(
            self.plan,
            site,
            self.folder,
            resume=resume,
            accept_progress=self.accept_progress,
            told=lambda said: self._tell(said, self.folder),
            halt=self._halt.is_set,
            patience=servers.patience,
            again=again,
        )
        if outcome.state != FINISHED:
            how_far = f"{outcome.applied} of {outcome.total} applied"
            return {"outcome": f"{outcome.state}, {how_far}: {outcome.why}", "next": [outcome.resume]}
        return {"outcome": str(outcome), "next": [servers.command("verify", self.folder)]}

    def _verify(self, servers: Servers) -> dict[str, Any]:
        kept = servers.site(self.plan, self.folder).kept()
        words = {True: ("kept", "present"), False: ("NOT KEPT", "missing"), None: ("unknown", "unknown")}
        rows = [
            {
                "server": row["server"],
                "suffix": row["suffix"] or "",
                "kept": words[row["kept"]][0],
                "verdict": words[row["kept"]][1],
                "says": row["says"],
            }
            for row in kept
        ]
        not_kept = sum(row["kept"] is not True for row in kept)
        told = f"asked, nothing was written: {len(rows) - not_kept} of {len(rows)} kept"
        return {"outcome": told, "kept": rows, "next": [servers.command("verify", self.folder)]}

    # --- what is shown

    def _tell(self, sentence: str, folder: Path) -> None:
        """Take a sentence of the run, and show it soon."""
        self._told.append(printable(sentence))
        now = time.monotonic()
        if sentence.startswith("waiting") or now - self._drawn >= _BETWEEN:
            self._drawn = now
            done = len(state_of(folder, self.plan).done)
            with self._lock:
                self.data = {**self.data, "done": done, "told": self._told[-_TOLD:]}

    def _working(self, doing: str) -> None:
        dry = doing != APPLYING
        self.data = {
            "banner": {"text": f"{NOTHING_WAS_CHANGED}: {doing}", "grave": False}
            if dry and not state_of(self.folder, self.plan).touched
            else {"text": f"{doing[:1].upper()}{doing[1:]}", "grave": not dry},
            "at_work": doing,
            "done": 0,
            "total": len(self.plan.steps) if doing != VERIFYING else 0,
            "stoppable": doing != VERIFYING,
            "stopping": False,
            "told": [],
            "outcome": "",
            "next": [],
        }

    def _idle(self, outcome: str = "", next: Sequence[str] = (), kept: Sequence[Any] = ()) -> None:
        self._seen, left, other = "", [], ""
        banner: dict[str, Any] = {"text": "WHAT WAS DONE IS NOT KNOWN", "grave": True}
        resume = False
        try:
            so_far = state_of(self.folder, self.plan)
            self._seen, left, banner = self._token(so_far), self._left(so_far), _banner(so_far)
            resume = so_far.state == HALF_DONE
            if so_far.other:
                other = f"another plan of this case is half done: {so_far.other}. Finish it or give it up first"
        except Problem as problem:  # a damaged journal: nobody can say what was done
            other = str(problem)
        self.data = {
            "banner": banner,
            "at_work": "",
            "outcome": printable(" ".join(filter(None, [outcome, other]))),
            "next": list(next),
            "told": self._told[-_TOLD:],
            "told_in_all": len(self._told),
            "kept": list(kept),
            "left": len(left),
            "steps": [step_page(self.plan, step) for step in left[:_PAGE]],
            "losses": losses_of(self.plan, left),
            "names": _names(left) if self.servers and not other else [],
            "assumptions": [{"code": code, "says": ASSUMPTIONS[code]} for code in to_accept(left)],
            "verb": "Go on with it on the servers" if resume else "Do it on the servers",
            "seen": self._seen,
            "can": {"rehearse": bool(self.plan.steps), "verify": self.servers is not None},
        }

    def _token(self, so_far: PlanProgress) -> str:
        """What the page shows of the standing, and before which run: a click belongs to it or is a late one."""
        return f"{self.plan.id}:{so_far.state}:{len(so_far.done)}:{so_far.other}:{self._runs}"

    def _left(self, so_far: PlanProgress) -> list[Step]:
        if so_far.state not in (NOT_BEGUN, HALF_DONE):
            return []
        return [step for step in self.plan.steps if step.key not in so_far.done]

    def text(self) -> str:
        """The banner, how it ended, and what is left to be done."""
        data = self.data
        told = [data["banner"]["text"], data["outcome"], *(f"$ {one}" for one in data["next"])]
        if rows := data.get("kept"):
            told.append(aligned((row["server"], row["kept"], row["says"]) for row in rows))
        shown = {one["key"] for one in data.get("steps", [])}
        steps = [step_text(one, file_of(self.plan, one)) for one in self.plan.steps if one.key in shown]
        return printable("\n\n".join(filter(None, ["\n".join(filter(None, told)), *steps])))


def _names(steps: Sequence[Step]) -> list[str]:
    """The servers that change."""
    return list(dict.fromkeys(step.server for step in steps))


def _banner(so_far: PlanProgress) -> dict[str, Any]:
    """What was changed by this plan so far, in capitals."""
    if not (so_far.touched or so_far.done):
        return {"text": NOTHING_WAS_CHANGED, "grave": False}
    if so_far.state == HALF_DONE:
        return {"text": f"HALF DONE: {so_far}; the rest is to be resumed or given up", "grave": True}
    return {"text": str(so_far).upper(), "grave": False}
