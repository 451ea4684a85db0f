"""What does the steps of a plan on real servers (`workbench.repair.plan_executor.Site`): one class for each kind of step.

Each knows what stands in the way, what has to be remembered from before, whether it is done already, how it is done, and
what is still lacking afterwards. All but `apply` only read.

What remains: the server has no condition on a write, so a request that it takes only after a later run has looked is not
known to that run. An agreement, a task, an added entry and a running initialisation refuse a second one. Writing the same
values twice, or one harmless change, harms nothing, unless a user changed the entry in between: then those values are
the old ones. A deletion that is taken after the entry was added again deletes it again; its tombstone has the values.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from workbench.journal import write_whole
from workbench.model import Problem
from workbench.repair.plan_executor import EndedBadly, PlanFailed, TurnedAway
from workbench.repair.plan_types import IF_BEHIND, Step
from workbench.safety import printable
from workbench.systems.ds389.live.entries import entry_of
from workbench.systems.ds389.live.entry_executors import ARRIVES, POLL, Add, Delete, Rewrite, last_own
from workbench.systems.ds389.native import CREDENTIALS, ENABLED, REFRESH, delete
from workbench.systems.ds389.rules.cleaning import CRASHES_ALONE, may_clean_itself

if TYPE_CHECKING:
    from workbench.systems.ds389.live.planned import PlannedServers

Memo = Mapping[str, Any]

_TASK_AGAIN = "see its errors log; the server keeps the task for five minutes, after that resume begins it again"


class StepExecutor(Protocol):
    """One kind of step."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """Why it may not be done; what a part of it that may be done already has changed does not count."""

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """What has to be known from before."""

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it has taken effect where it is done."""

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """Do it."""

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """What is lacking still."""


class _Plain:
    """Sends its records, and is level when those named in `level` are."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        return ()

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        return {}

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        with servers.connected(step.on) as server:
            for record in step.details["records"]:
                server.send(record)

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        return servers.lagging(step, step.details.get("level", ()))


class Enable(_Plain):
    """An agreement is switched on."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """It has to lead where the plan says, and not to bring data anew to a server that alone has changes."""
        dn = step.details["records"][0]["dn"]
        yield from servers.leads_elsewhere(step.on, dn, step.details["to"], step.details["leads"])
        yield from self._fills(servers, step, dn)

    @staticmethod
    def _fills(servers: PlannedServers, step: Step, dn: str) -> Iterable[str]:
        """After a supplier was killed while it filled a server, switching that link on was seen to fill the server anew.

        So it was in the process that had gone on with the filling at its start. What is on its way from there is given time.
        """
        name = step.details["to"]
        steps = servers.plan.steps
        filled = ((other.server, other.suffix, other.repair) == (name, step.suffix, "initialise") for other in steps)
        since = max("1971", servers.setting(step.on, "cn=monitor", "startTime") or "")
        if any(filled) or (servers.setting(step.on, dn, Initialise.STARTED) or "1970") < since:
            return
        end = time.monotonic() + ARRIVES
        first = _only_at(servers.vectors(step.suffix), name)
        while (alone := _not_elsewhere(first, servers.vectors(step.suffix), name)) and time.monotonic() < end:
            time.sleep(POLL)
        if alone:
            yield (
                f"only {name} has the changes of {', '.join(sorted(alone))} up to {', '.join(alone[x] for x in sorted(alone))}, "
                f"and {step.on} has filled {name} over this agreement since its last start: to switch such a link on was seen to "
                f"fill the server anew. Let these changes arrive elsewhere first, or restart {step.on}"
            )

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it is on, and leads where the plan says."""
        dn = step.details["records"][0]["dn"]
        if any(servers.leads_elsewhere(step.on, dn, step.details["to"], step.details["leads"])):
            return False
        return (servers.setting(step.on, dn, ENABLED) or "on").lower() == "on"

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """The consumer has all of the supplier, where that comes at once."""
        if not self.done(servers, step, memo):
            return [f"the agreement on {step.on} is off"]
        return servers.lagging(step, (step.on, step.details["to"])) if step.details["arrives"] else ()


class Wake(_Plain):
    """One harmless change."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """The server's own entry has to be there."""
        dn = step.details["records"][0]["dn"]
        with servers.connected(step.on) as server:
            if entry_of(server, dn) is None:
                yield f"{step.on} has no entry {dn}: make any harmless change there by hand, then resume"

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """The last change of its own before."""
        return {"own": last_own(servers, step)}

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if the server made any change since: whichever it was wakes its sessions as well."""
        return (servers.own(step) or "") > memo["own"]

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """The consumers are level: a rescued server by what it was sent, not by a change of its own that hides it."""
        yield from super().shortfall(servers, step, memo)
        rescued = step.details.get("rescued")
        if rescued is None:
            return
        own = servers.origin(step.suffix, rescued) or ""
        others = (servers.planned(step.suffix, name) for name in servers.names(step.suffix) if name != rescued)
        lost = max(held.get(own, "") for held in others)
        now = servers.vectors(step.suffix).get(rescued, {}).get(own, "")
        if now > lost:
            what = f"{rescued} has made a change of its own by now, {now}: whether what it lost was back before, its RUV hides"
            raise PlanFailed(what)


class Start(_Plain):
    """A server of this machine is started."""

    SECONDS: ClassVar[float] = 90

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it answers."""
        return servers.answers(step.server)

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """By the server's own tool; a server elsewhere has to be started there."""
        instance = servers.instance(step.server)
        if instance is None:
            do = "start it on its own machine, then resume"
            raise Problem(f"{step.server} does not answer, and is no instance of this machine", "", do)
        try:
            subprocess.run(
                [instance.tool("dsctl"), instance.name, "start"],
                env=instance.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=self.SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Problem(f"dsctl {instance.name} start: {error}", "", "start it by hand, then resume") from None
        end = time.monotonic() + self.SECONDS
        while not servers.answers(step.server):
            if time.monotonic() > end:
                raise Problem(f"{step.server} was started and does not answer", "", "look at its errors log")
            time.sleep(POLL)

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """It has made no change since it was restored."""
        origin = step.details["origin"]
        planned = servers.planned(step.suffix, step.server).get(origin)
        vector = servers.vectors(step.suffix).get(step.server)
        if vector is None:
            yield f"{step.server} does not answer"
        elif (now := vector.get(origin)) is None and planned:
            yield f"{step.server} does not say yet what it holds"
        elif now != planned:
            what = f"{step.server} holds its own changes up to {now}, and the plan was made for {planned or 'none'}"
            raise PlanFailed(what)


class Save(_Plain):
    """Changes are written to a file beside the plan."""

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if the file has this text."""
        return self._there(servers, step) == step.sends.encode()

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """What an earlier plan saved may be all that is left of it: it is not written over."""
        if self._there(servers, step) is not None:
            yield f"{step.details['file']} is there, with other changes: move it out of {servers.folder}"

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """Write it, whole or not at all."""
        write_whole(servers.folder / step.details["file"], step.sends)

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """The file is there."""
        if not self.done(servers, step, memo):
            yield f"{step.details['file']} is not there"

    def _there(self, servers: PlannedServers, step: Step) -> bytes | None:
        try:
            return (servers.folder / step.details["file"]).read_bytes()
        except FileNotFoundError:
            return None


class Initialise(_Plain):
    """A server gets all data of another one."""

    STARTED, _STATUS = "nsds5replicaLastInitStart", "nsds5replicaLastInitStatus"
    WATCHED: ClassVar[float] = 3
    """Seconds over which it is seen whether clients write on the server; if it changed once, it is looked at more often."""
    LOOKS: ClassVar[int] = 4
    SETTLES: ClassVar[float] = 60
    """Seconds in which a server gets level that does so by itself: a session that found it busy comes again some time later."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """The source has to have data, and the agreement to lead to the server whose data is replaced, and to be on."""
        agreement = step.details["agreement"]
        yield from servers.without_data(step.suffix, step.on)
        yield from servers.leads_elsewhere(step.on, agreement, step.server, step.details["leads"])
        if (servers.setting(step.on, agreement, ENABLED) or "on").lower() == "off":
            yield "the agreement is off: an initialisation would not begin"
        if self._running(servers, step):
            yield (
                "an initialisation over this agreement runs already, and it is none of ours. If its nsds5replicaLastInitStatus "
                "says that one was aborted, and its end is later than its start, the request is left over: begin it by hand, "
                f"{' '.join(step.commands[0])}"
            )
        yield from self._source_behind(servers, step)
        yield from self._written_to(servers, step)
        yield from self._stranded_since(servers, step)  # what was made while it was watched, too

    def memo(self, servers: PlannedServers, step: Step) -> dict[str, Any]:
        """When the last one began, and whether it runs."""
        began = servers.setting(step.on, step.details["agreement"], self.STARTED)
        return {"began": began, "running": self._running(servers, step)}

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if one was asked for since, and waits, runs or has ended well: it must not be begun twice.

        The request stands in the agreement from when the server took it; when it begins is told only some time later. One that is
        only for a server which stays behind is done, too, if the server gets level by itself and nobody wrote.
        """
        if step.details.get(IF_BEHIND) and self._gets_level(servers, step):
            return True
        if self._running(servers, step):
            return not memo["running"]
        return self._begun(servers, step, memo) and self._ended_well(servers, step)

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """It has ended, well, and the server claims what its source does."""
        if step.details.get(IF_BEHIND) and not self._running(servers, step) and not self._begun(servers, step, memo):
            yield from super().shortfall(servers, step, memo)
        elif self._running(servers, step) or not self._begun(servers, step, memo):
            yield f"the initialisation of {step.server} has not ended"
        elif not self._ended_well(servers, step):
            said = printable(servers.setting(step.on, step.details["agreement"], self._STATUS) or "nothing")[:200]
            do = "see the errors logs of both; resume begins it again"
            if "replica busy" in said.lower():
                # Nothing was sent. A session stays open as long as clients write on its supplier.
                do = f"another supplier keeps a session with {step.server} open: let clients rest there, or switch off the other "
                do += f"links to {step.server} until it is filled; resume begins it again"
                raise TurnedAway(f"the initialisation failed: {said}", "", do)
            raise EndedBadly(f"the initialisation failed: {said}", "", do)
        else:
            self._check_own(servers, step)
            yield from super().shortfall(servers, step, memo)

    def _gets_level(self, servers: PlannedServers, step: Step) -> bool:
        """True if the server soon has what its source has now, and nobody wrote since the plan was made.

        What was written while its source was filled came there with the data and by a session: it does nothing the second time,
        its new log has none of it, and the next change moves the vector of the server over it.
        """
        if self._written_since(servers, step):
            return False
        end = time.monotonic() + self.SETTLES
        while (behind := servers.lagging(step, step.details["level"])) and time.monotonic() < end:
            time.sleep(POLL)
        return not behind

    @staticmethod
    def _written_since(servers: PlannedServers, step: Step) -> bool:
        now = servers.vectors(step.suffix).get(step.on, {})
        known = [servers.planned(step.suffix, name) for name in servers.names(step.suffix)]
        return any(position > max(one.get(origin, "") for one in known) for origin, position in now.items())

    @staticmethod
    def _source_behind(servers: PlannedServers, step: Step) -> Iterable[str]:
        """What the server keeps comes with the data of its source, which may get it only now, after a step before."""
        keeps: Mapping[str, str] = step.details.get("keeps", {})
        end = time.monotonic() + ARRIVES
        while True:
            there = servers.vectors(step.suffix).get(step.on, {})
            lacking = {origin: position for origin, position in keeps.items() if there.get(origin, "") < position}
            if not lacking or time.monotonic() > end:
                break
            time.sleep(POLL)
        for origin, position in sorted(lacking.items()):
            yield (
                f"{step.on} has the changes of {origin} up to {there.get(origin) or 'none'}, and {step.server}, which is to be "
                f"filled from it, has and keeps them up to {position}: let them arrive at {step.on}, then resume"
            )

    def _written_to(self, servers: PlannedServers, step: Step) -> Iterable[str]:
        """That clients write on the server: its last changes come with the new data, or are lost, and its new log has none of
        them, so that no later session with others could begin.
        """
        own = servers.origin(step.suffix, step.server)
        if own is None:
            return
        first = before = servers.vectors(step.suffix).get(step.server, {}).get(own, "")
        for look in range(self.LOOKS):
            time.sleep(self.WATCHED)
            now = servers.vectors(step.suffix).get(step.server, {}).get(own, "")
            if now == first and not look:
                return
            if look and now > before:  # a single change may be of its keep-alive entry
                yield (
                    f"changes are made on {step.server} ({own} went on from {first} to {now} within "
                    f"{(look + 1) * self.WATCHED:.0f} seconds): let clients write elsewhere until it is filled, then go on"
                )
                return
            before = now

    def _check_own(self, servers: PlannedServers, step: Step) -> None:
        """Raise TurnedAway if its source has later changes of the server than its new data claim: it could send it nothing.

        It has made no change since, so that filling it once more loses nothing. The source is read first: what the server makes
        between two readings is no later change that it lacks.
        """
        own = servers.origin(step.suffix, step.server) or ""
        there = servers.vectors(step.suffix).get(step.on, {}).get(own)
        vectors = servers.vectors(step.suffix)
        mine = vectors.get(step.server, {}).get(own)
        if step.server in vectors and there and there > (mine or ""):
            has = f"{step.on} has its changes up to {there}, and its new data claim {mine or 'none'}"
            do = "let clients write elsewhere, then resume: it is filled once more"
            raise TurnedAway(f"{step.server} was written to while it was filled: {has}", "", do)

    def _stranded_since(self, servers: PlannedServers, step: Step) -> Iterable[str]:
        """What the server got since the plan, and nobody else has, no file of the plan holds: accepted progress or not.

        What it wrote just now, if only to its keep-alive entry, is given the time to arrive elsewhere.
        """
        end = time.monotonic() + ARRIVES
        while (found := list(self._only_there(servers, step))) and time.monotonic() < end:
            time.sleep(POLL)
        return found

    def _only_there(self, servers: PlannedServers, step: Step) -> Iterable[str]:
        planned = servers.planned(step.suffix, step.server)
        for origin, now in sorted(_only_at(servers.vectors(step.suffix), step.server).items()):
            if now > planned.get(origin, ""):
                own = servers.origin(step.suffix, step.server) == origin
                stop = (
                    "a client made them, or the server itself soon after its start: see that nobody writes there, then "
                )
                stop = stop if own else ""
                yield (
                    f"only {step.server} has the changes of {origin} up to {now}, and the plan does not know them: {stop}"
                    "collect and plan anew"
                )

    def _running(self, servers: PlannedServers, step: Step) -> bool:
        return servers.setting(step.on, step.details["agreement"], REFRESH) is not None

    def _begun(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        # The time has whole seconds: one that began in the second of the one before would look like it.
        return servers.setting(step.on, step.details["agreement"], self.STARTED) != memo["began"]

    def _ended_well(self, servers: PlannedServers, step: Step) -> bool:
        return "Total update succeeded" in (servers.setting(step.on, step.details["agreement"], self._STATUS) or "")


class Feed(_Plain):
    """A temporary agreement is made."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """No other agreement may have its name."""
        if servers.setting(step.on, step.details["dn"], "cn") is not None:
            yield from _elsewhere(servers, step)

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it is there, leads where the plan says, and its password was not refused."""
        return not any(_elsewhere(servers, step)) and not self._refused(servers, step)

    def apply(self, servers: PlannedServers, step: Step, memo: Memo) -> None:
        """With the password that its consumer knows; it is asked for, and goes nowhere but to the supplier.

        One whose password was refused is made anew: it would tell of that refusal for some time yet.
        """
        (record,) = step.details["records"]
        password = servers.credentials()
        refused = self._refused(servers, step)
        with servers.connected(step.on) as server:
            if refused:
                server.send(delete(step.details["dn"]))
            server.send({**record, "values": {**record["values"], CREDENTIALS: [password]}})

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """The consumer is level."""
        if self._refused(servers, step):
            what = f"{step.details['to']} refuses {step.details['login']} with the password that was given"
            raise EndedBadly(what, "", "resume with the right one")
        if "same Replica ID" in self._status(servers, step):  # the agreement tries no more
            what = f"{step.details['to']} takes {step.on} for itself, by the first element of its RUV, and refuses its sessions"
            raise EndedBadly(what, "", f"give the rest up, and let another server feed {step.details['to']}")
        return super().shortfall(servers, step, memo)

    def _refused(self, servers: PlannedServers, step: Step) -> bool:
        return "(49)" in self._status(servers, step)

    @staticmethod
    def _status(servers: PlannedServers, step: Step) -> str:
        return servers.setting(step.on, step.details["dn"], "nsds5replicaLastUpdateStatus") or ""


class Unfeed(_Plain):
    """A temporary agreement is deleted."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """It has to be the one that was made: somebody may use its name for another."""
        return _elsewhere(servers, step)

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it is gone."""
        return servers.setting(step.on, step.details["dn"], "cn") is None


class Task(_Plain):
    """A task of the server is begun, and has to end with 0."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """The server has to know such tasks: a plug-in that is off has none."""
        yield from _ended_badly(servers, step)
        place = step.details["task"].partition(",")[2]
        if servers.setting(step.on, place, "cn") is None:
            yield f"{step.on} has no {place}: switch its plug-in on and restart the server, or give the rest up"

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if it is there, and runs or has ended well."""
        return _task(servers, step) in ("", "0")

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """It has ended well."""
        code = _task(servers, step)
        if not code:
            yield f"the task on {step.on} has not ended"
        elif code != "0":
            raise EndedBadly(f"the task on {step.on} ended with {code}", "", _TASK_AGAIN)


class Clean(_Plain):
    """A replica ID is taken out of every RUV."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """No server may make changes as it, and nobody may have made one since the plan."""
        yield from _ended_badly(servers, step)
        rid, names = step.details["origin"], servers.names(step.suffix)
        for name in names:
            if servers.identity(step.suffix, name)[0] == rid:
                yield f"{name} makes changes as {rid}: it is alive"
        known = max((servers.planned(step.suffix, name).get(rid, "") for name in names), default="")
        for name, vector in sorted(servers.vectors(step.suffix).items()):
            if (now := vector.get(rid, "")) > known:
                yield f"{name} has a change of {rid} up to {now}, the plan knows them to {known}: it is alive"

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if no RUV has it, or the task runs."""
        return _task(servers, step) == "" or not any(self._named(servers, step))

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """No RUV has it."""
        lacking = list(self._named(servers, step))
        if lacking and servers.answers(step.on) and (code := _task(servers, step)) not in (None, "", "0"):
            raise EndedBadly(f"the task on {step.on} ended with {code}: {lacking[0]}", "", _TASK_AGAIN)
        return lacking

    def _named(self, servers: PlannedServers, step: Step) -> Iterable[str]:
        vectors = servers.vectors(step.suffix)
        for name in servers.names(step.suffix):
            if name in step.details.get("behind", ()):
                continue  # a step of its own cleans it
            if name not in vectors:
                yield f"{name} does not answer"
            elif step.details["origin"] in vectors[name]:
                yield f"{name} still has {step.details['origin']} in its RUV"


class CleanHere(_Plain):
    """A server that no supplier reaches itself takes a replica ID out of its RUV."""

    def obstacles(self, servers: PlannedServers, step: Step, begun: bool) -> Iterable[str]:
        """Nobody may have made a change as it since the plan; a step before may have brought it what others had."""
        rid, names = step.details["origin"], servers.names(step.suffix)
        known = max(servers.planned(step.suffix, name).get(rid, "") for name in names)
        now = self._now(servers, step) or ""
        if now > known:
            yield f"{step.server} has a change of {rid} up to {now}, the plan knows them to {known}: it is alive"
        if not may_clean_itself(servers.keeps_log(step.suffix, step.server), servers.version(step.server)):
            yield f"{step.server} keeps no changelog, and {CRASHES_ALONE}: initialise it instead"

    def done(self, servers: PlannedServers, step: Step, memo: Memo) -> bool:
        """True if its RUV does not have it."""
        return self._now(servers, step) == ""

    def shortfall(self, servers: PlannedServers, step: Step, memo: Memo) -> Iterable[str]:
        """Its RUV does not have it."""
        if not self.done(servers, step, memo):
            yield f"{step.server} still has {step.details['origin']} in its RUV"

    @staticmethod
    def _now(servers: PlannedServers, step: Step) -> str | None:
        vector = servers.vectors(step.suffix).get(step.server)
        return None if vector is None else vector.get(step.details["origin"], "")


HANDS: Mapping[str, StepExecutor] = {
    "enable": Enable(),
    "wake": Wake(),
    "start": Start(),
    "save": Save(),
    "rewrite": Rewrite(),
    "delete": Delete(),
    "add": Add(),
    "initialise": Initialise(),
    "feed": Feed(),
    "unfeed": Unfeed(),
    "task": Task(),
    "clean": Clean(),
    "clean-here": CleanHere(),
}
"""Kind of step -> what does it."""


def _only_at(vectors: Mapping[str, Mapping[str, str]], server: str) -> dict[str, str]:
    """Origin -> up to where a server has it, of those of which it has more than any other one."""
    others = [held for name, held in vectors.items() if name != server]
    mine = vectors.get(server, {})
    return {one: now for one, now in mine.items() if now > max((held.get(one, "") for held in others), default="")}


def _not_elsewhere(some: Mapping[str, str], vectors: Mapping[str, Mapping[str, str]], server: str) -> dict[str, str]:
    """Those of some positions, by origin, that no server but this one has come to."""
    others = [held for name, held in vectors.items() if name != server]
    return {origin: at for origin, at in some.items() if not any(held.get(origin, "") >= at for held in others)}


def _task(servers: PlannedServers, step: Step) -> str | None:
    """With which code the task of a step has ended; empty while it runs, None if there is none (any more)."""
    if servers.setting(step.on, step.details["task"], "cn") is None:
        return None
    return servers.setting(step.on, step.details["task"], "nsTaskExitCode") or ""


def _ended_badly(servers: PlannedServers, step: Step) -> Iterable[str]:
    code = _task(servers, step)
    if code not in (None, "", "0"):
        yield f"an earlier task on {step.on} ended with {code}; {_TASK_AGAIN}"


def _elsewhere(servers: PlannedServers, step: Step) -> Iterable[str]:
    return servers.leads_elsewhere(step.on, step.details["dn"], step.details["to"], step.details["leads"])
