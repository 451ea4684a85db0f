"""Live replicas as the place where a plan is done and looked after (`workbench.repair.plan_executor.Site`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.repair.plan_types import Plan, Step, Vectors
from workbench.safety import printable
from workbench.systems.drizzle.live.applying import Todo, applied_at, apply_one, dry_run, is_done, prepare
from workbench.systems.drizzle.live.connection import Server, connected, place_of
from workbench.systems.drizzle.repairs import APPLY, operations_of
from workbench.systems.drizzle.rows import Logs

_SAID = ("sys_replication", "applier_state")


class StreamSite:
    """The servers that a plan changes. All others are known by their logs, which the plan was made on.

    No server tells by itself which transactions it has: what was applied by this tool it notes, and the rows tell the rest.
    """

    def __init__(
        self,
        plan: Plan,
        addresses: Iterable[Address],
        access: Access,
        folder: Path,
        credentials: Callable[[], str],
    ) -> None:
        self.plan, self.access = plan, access
        self._addresses: dict[str, Address] = {}
        changed = sorted({step.server for step in plan.steps})
        for address in addresses:
            place = place_of(address.url or "")
            name = address.name or (changed[0] if len(changed) == 1 else place.url)
            if name in self._addresses:
                raise Problem(f"two servers are named {printable(name)}", place.url, "name them apart: NAME=URL")
            self._addresses[name] = Address(name, url=place.url)
        if strange := sorted(set(self._addresses) - set(changed)):
            what = f"the plan changes no server {printable(', '.join(strange))}"
            raise Problem(what, plan.case, f"it changes {', '.join(changed)}")
        if lacking := [name for name in changed if name not in self._addresses]:
            do = "say how each is reached: --url NAME=mysql://HOST:PORT"
            raise Problem(f"the plan changes {', '.join(lacking)}, and no address was given", plan.case, do)

    def connected(self, name: str) -> AbstractContextManager[Server]:
        """A connection to a server."""
        return connected(self._addresses[name], self.access)

    def vectors(self, suffix: str | None) -> Vectors:
        """What the plan knows of the servers, but for those that do not answer."""
        return {name: held for name, held in self.plan.vectors(suffix).items() if self._answers(name)}

    def _answers(self, name: str) -> bool:
        if name not in self._addresses:
            return True
        try:
            with self.connected(name):
                return True
        except Problem:
            return False

    def obstacles(self, step: Step, begun: bool) -> list[str]:
        """Why the step may not be done: an applier that runs, a log that changed, tables that do not fit. Writes nothing."""
        if step.repair != APPLY:
            return [f"{step.says}: this is done by hand"]
        with self.connected(step.on) as server, Logs() as logs:
            running = _running(server)
            return [running] if running else dry_run(server, _left(server, step, logs))

    def memo(self, step: Step) -> dict[str, Any]:
        """Nothing: the server notes itself what was applied."""
        return {}

    def done(self, step: Step, memo: Mapping[str, Any]) -> bool:
        """True if the server notes all transactions of the step."""
        if step.repair != APPLY:
            return False
        with self.connected(step.on) as server, Logs() as logs:
            return not _left(server, step, logs)

    def apply(self, step: Step, memo: Mapping[str, Any]) -> None:
        """Apply those that are not noted yet, one after the other."""
        with self.connected(step.on) as server, Logs() as logs:
            prepare(server)
            for todo in _left(server, step, logs):
                apply_one(server, todo)

    def shortfall(self, step: Step, memo: Mapping[str, Any]) -> list[str]:
        """The transactions that the server does not note."""
        with self.connected(step.on) as server, Logs() as logs:
            return [f"{step.on} does not note {todo.name}" for todo in _left(server, step, logs)]

    def kept(self) -> list[dict[str, Any]]:
        """How the servers stand to what the plan promised: rows of `server`, `suffix`, `says` and `kept`; None: unknown."""
        rows: list[dict[str, Any]] = []
        for step in self.plan.steps:
            kept: bool | None
            if step.repair != APPLY:
                continue
            total = len(step.details["transactions"])
            try:
                with self.connected(step.on) as server, Logs() as logs:
                    left = len(_left(server, step, logs))
                kept, says = not left, f"notes {total - left:,} of {total:,} transactions as applied"
            except Problem as problem:
                kept, says = None, f"could not be asked: {problem.what}"
            rows.append({"server": step.server, "suffix": step.suffix, "says": says, "kept": kept})
        return rows


def _left(server: Server, step: Step, logs: Logs) -> list[Todo]:
    """The transactions of a step that the server does not note, in the order of commits."""

    def todo(one: Mapping[str, Any]) -> Todo:
        return Todo(one["origin"], one["position"], one["content"], lambda: operations_of(one, logs))

    there = applied_at(server)
    return [one for one in map(todo, step.details["transactions"]) if not is_done(one, there)]


def _running(server: Server) -> str:
    """Whether the server's own applier works at this moment: both would apply the same. Empty: it does not."""
    there = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
    if not server.rows(there, *_SAID):
        return ""
    told = server.rows("SELECT COUNT(*) FROM `sys_replication`.`applier_state` WHERE UPPER(`status`) = 'RUNNING'")
    return "its own applier runs, and would apply the same: stop it first" if told[0][0] else ""
