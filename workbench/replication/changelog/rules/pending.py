"""The CSN pending list of 389 Directory Server: when may a server claim a change of an origin?

A server claims every change up to the max CSN of an element of its RUV. Whoever compares vectors believes it, so a
claim that runs ahead loses changes: what commits later below the max is never sent (scenario 1), and a max whose change
was aborted is in no changelog, no session can start there (scenario 2). Hence a CSN waits in the pending list of its
element from the moment it is created or received until its operation is committed, and the max moves only by rolling
the list up.

Three rule sets have been in use. They differ in two answers only, see `Rules`; `rules.pending_examples` shows what that costs.

>>> server = Server([Replica("1", {"1": Span()})], SINCE_359)
>>> server.begin("one", 0, "6600000a000000010000"), server.begin("two", 0, "6600000b000000010000")
('ok', 'ok')
>>> server.commit("two", 0, "6600000b000000010000")  # and "one" is still at work
'ok'
>>> server.state()[0]["1"].max
'6600000b000000010000'
>>> print(*server.history[-1].why, sep="\\n")
6600000b000000010000 is committed
the list is rolled up: 6600000b000000010000 left it
the max moves from nothing to 6600000b000000010000
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from workbench.rules.vectors import Span

OK, COVERED, NOT_FOUND = "ok", "covered", "notfound"
READ_ONLY = "65535"


def origin_of(csn: str) -> str:
    """The replica ID of a CSN (lower case, 20 hex digits) as decimal text."""
    return str(int(csn[12:16], 16))


@dataclass(frozen=True)
class Rules:
    """One rule set.

    by_context      what a commit settles: the primary CSN together with every CSN made in its context, in all replicas
                    (a nested commit alone does nothing), or each CSN for itself
    stops           how far the list rolls up: to the first CSN that is not committed, or over it to the last that is
    """

    name: str
    by_context: bool
    stops: bool


BEFORE_359 = Rules("before_359", by_context=False, stops=True)
"""Safe for parallel writers. A nested CSN that is committed before its operation is aborted stays in the list."""

SINCE_359 = Rules("since_359", by_context=False, stops=False)
"""One CSN that was neither committed nor cancelled had frozen the RUV of its origin; since then roll-up steps over it.

That hides the stuck CSN and gives up what the list is for: nothing is held back any more.
"""

PRIMARY_CSN = Rules("primary_csn", by_context=True, stops=True)
"""The design, and the server since 2017. A stuck CSN freezes the RUV again.

The server tells contexts apart by the primary replica, kept on each entry, where the design has `replicas[0]`, and rolls
up the remote element before the local one; neither shows in what it claims afterwards.
"""

RULE_SETS = {rules.name: rules for rules in (BEFORE_359, SINCE_359, PRIMARY_CSN)}


@dataclass(frozen=True)
class Replica:
    """One replica (suffix) of the server at the start: the replica ID of its own changes, and its RUV."""

    local_rid: str | int
    vector: Mapping[str, Span]


@dataclass
class Context:
    """The primary CSN context of a thread: the operation that came from outside, and the replicas that it touches.

    The thread is not enough to know the primary CSN again: where several backends have one replica ID, one thread can
    create the same CSN in each of them (scenario 2.3). So it is the CSN and the replica.
    """

    prim_csn: str
    prim_replica: int
    secondaries: list[int] = field(default_factory=list)

    def is_primary(self, replica: int, csn: str) -> bool:
        """True for the CSN of the external operation, in the replica that it was applied to."""
        return replica == self.prim_replica and csn == self.prim_csn

    def owns(self, entry: Entry) -> bool:
        """True for an entry that is committed or removed with the primary CSN.

        By its CSN alone, too: so the server takes an entry of a secondary replica that has the CSN of this primary for
        its own, although another context made it.
        """
        return entry.prim_replica == self.prim_replica and self.prim_csn in (entry.csn, entry.prim_csn)


class Entry(NamedTuple):
    """A CSN in a pending list, with the operation that it belongs to."""

    csn: str
    prim_csn: str
    prim_replica: int
    committed: bool = False


class Element(NamedTuple):
    """An element of a RUV: what is claimed, and the pending list in ascending order, committed entries included."""

    min: str | None = None
    max: str | None = None
    pending: tuple[Entry, ...] = ()


class Step(NamedTuple):
    """What a thread does: `begin`, `commit` or `cancel` of a CSN in a replica (by its index), or `end`."""

    op: str
    thread: Hashable
    replica: int = 0
    csn: str = ""


SENTENCES = {
    "cleaned": "replica ID {rid} is being cleaned: {csns} is consumed and not applied",
    "new_element": "the RUV gets an element for replica ID {rid}",
    "in_ruv": "{csns} is not above {against}, the max of replica ID {rid}: seen",
    "in_list": "{csns} is not above {against}, the last of the pending list: seen, and the thread loses its context",
    "primary": "{csns} is the primary CSN of its thread",
    "nested": "{csns} is made in the context of {against}",
    "inserted": "{csns} waits in the pending list",
    "not_primary": "{csns} is not the primary CSN ({against}): its commit settles nothing",
    "no_element": "the RUV has no element for replica ID {rid}",
    "no_entry": "{csns} is not in the pending list",
    "read_only": "replica ID 65535 makes no changes: its list is passed over",
    "removed": "{csns} removed from the pending list of replica ID {rid}",
    "committed": "{csns} is committed",
    "held_back": "{csns} waits behind {against}, which is not committed",
    "rolled_up": "the list is rolled up: {csns} left it",
    "min_set": "the min becomes {csns}",
    "max_moved": "the max moves from {against} to {csns}",
    "max_stays": "{csns} is not above {against}, the max: it stays",
    "ended": "the thread has no context any more",
}


class Why(NamedTuple):
    """One rule at work: in which replica (index) and element, on which CSNs, compared against which one."""

    rule: str
    replica: int
    rid: str
    csns: tuple[str, ...] = ()
    against: str | None = None

    def __str__(self) -> str:
        csns = ", ".join(self.csns) or "nothing"
        return SENTENCES[self.rule].format(rid=self.rid, csns=csns, against=self.against or "nothing")


class Done(NamedTuple):
    """A step, what the server said to it, and why."""

    step: Step
    result: str
    why: tuple[Why, ...]


class Server:
    """The RUVs and pending lists of one server. `history` has every step, its result and the reasons.

    Nothing given is changed: the same replicas may start one server for each rule set. `cleaned` are the replica IDs of
    a running CleanAllRUV task. CSNs are lower-case text. A CSN belongs to the replica that it was begun in, and to the
    thread that began it: the context of a thread stays until its `end`, also after commit or cancel.
    """

    def __init__(self, replicas: Sequence[Replica], rules: Rules = PRIMARY_CSN, cleaned: Iterable[str] = ()) -> None:
        self.rules = rules
        self.cleaned = frozenset(cleaned)
        self.contexts: dict[Hashable, Context] = {}
        self.history: list[Done] = []
        self._why: list[Why] = []
        self._local = [str(replica.local_rid) for replica in replicas]
        self._ruvs = [
            {rid: Element(span.min, span.max) for rid, span in replica.vector.items()} for replica in replicas
        ]

    def begin(self, thread: Hashable, replica: int, csn: str) -> str:
        """A CSN is created here, or received: it joins the context of the thread and waits in the list of its element."""
        return self.take(Step("begin", thread, replica, csn))

    def commit(self, thread: Hashable, replica: int, csn: str) -> str:
        """The operation is written and in the changelog, the transaction is about to end: what may be claimed now?"""
        return self.take(Step("commit", thread, replica, csn))

    def cancel(self, thread: Hashable, replica: int, csn: str) -> str:
        """The operation failed, all it did is undone. Lists are not rolled up: what it held back waits for a commit."""
        return self.take(Step("cancel", thread, replica, csn))

    def end(self, thread: Hashable) -> str:
        """The thread is done with the external operation."""
        return self.take(Step("end", thread))

    def take(self, step: Step) -> str:
        """Do one step."""
        does = {"begin": self._begin, "commit": self._commit, "cancel": self._cancel, "end": self._end}[step.op]
        self._why = []
        result = does(step)
        self.history.append(Done(step, result, tuple(self._why)))
        return result

    def state(self) -> list[dict[str, Element]]:
        """What is claimed and what waits now, for each replica and replica ID."""
        return [dict(ruv) for ruv in self._ruvs]

    def holding_back(self) -> list[dict[str, str]]:
        """Per replica, replica ID -> the CSN that its max cannot pass: the first one that is not committed.

        If it stays the same while others come and go, it was forgotten: cancelled by nobody, it freezes the RUV.
        """
        firsts = [{rid: _first_uncommitted(element.pending) for rid, element in ruv.items()} for ruv in self._ruvs]
        return [{rid: csn for rid, csn in first.items() if csn and self.rules.stops} for first in firsts]

    # BEGIN

    def _begin(self, step: Step) -> str:
        thread, replica, csn = step.thread, step.replica, step.csn
        rid = origin_of(csn)
        if rid in self.cleaned:
            self._because("cleaned", replica, rid, (csn,))
            return COVERED
        ruv = self._ruvs[replica]
        if rid not in ruv:
            self._because("new_element", replica, rid)
        element = ruv.setdefault(rid, Element())
        if element.max is not None and csn <= element.max:
            self._because("in_ruv", replica, rid, (csn,), element.max)
            return COVERED
        context = self._joined(thread, replica, csn)
        if element.pending and csn <= element.pending[-1].csn:
            # Behind a later CSN it could never be the last one popped; and the list is ascending only because of this.
            # The context goes even if the CSN was a nested one: the primary is then committed by nobody, and a cancel of
            # it leaves what else it made in the lists.
            self.contexts.pop(thread, None)
            self._because("in_list", replica, rid, (csn,), element.pending[-1].csn)
            return COVERED
        entry = Entry(csn, context.prim_csn, context.prim_replica)
        ruv[rid] = element._replace(pending=(*element.pending, entry))
        self._because("inserted", replica, rid, (csn,))
        return OK

    def _joined(self, thread: Hashable, replica: int, csn: str) -> Context:
        if not self.rules.by_context:
            return Context(csn, replica)  # every CSN is an operation of its own
        context = self.contexts.get(thread)
        if context is None:
            context = self.contexts[thread] = Context(csn, replica)
            self._because("primary", replica, origin_of(csn), (csn,))
            return context
        if replica != context.prim_replica and replica not in context.secondaries:
            context.secondaries.append(replica)
        self._because("nested", replica, origin_of(csn), (csn,), context.prim_csn)
        return context

    # CANCEL

    def _cancel(self, step: Step) -> str:
        replica, csn, rid = step.replica, step.csn, origin_of(step.csn)
        context = self.contexts.get(step.thread)
        if context is None or not context.is_primary(replica, csn):
            return OK if self._removed(replica, rid, lambda entry: entry.csn == csn) else NOT_FOUND
        # In the primary replica a replicated operation has entries in two lists: its own, and for what it caused
        # the local one (2.2). In the others only the server itself makes CSNs (2.3).
        removed = self._removed(replica, rid, context.owns)
        for place in (replica, *context.secondaries):
            local = self._local[place]
            if local == READ_ONLY:
                self._because("read_only", place, local)
            elif (place, local) != (replica, rid):
                removed = self._removed(place, local, context.owns)
        return NOT_FOUND if removed is None else OK  # the last list decides

    def _removed(self, replica: int, rid: str, goes: Callable[[Entry], bool]) -> tuple[str, ...] | None:
        """The CSNs that were taken out of one list; None if the RUV has no such element."""
        element = self._ruvs[replica].get(rid)
        if element is None:
            self._because("no_element", replica, rid)
            return None
        removed = tuple(entry.csn for entry in element.pending if goes(entry))
        kept = tuple(entry for entry in element.pending if not goes(entry))
        self._ruvs[replica][rid] = element._replace(pending=kept)
        self._because("removed", replica, rid, removed)
        return removed

    # COMMIT

    def _commit(self, step: Step) -> str:
        replica, csn = step.replica, step.csn
        rid, local = origin_of(csn), self._local[replica]
        if not self.rules.by_context:
            return self._commit_alone(replica, csn)
        context = self.contexts.get(step.thread)
        if context is None or not context.is_primary(replica, csn):
            # Counter-example 2.1: a nested commit that moved the max here would outlive the abort of its operation.
            self._because("not_primary", replica, rid, (csn,), context.prim_csn if context else None)
            return OK
        places = [(replica, rid)] if rid == local else [(replica, rid), (replica, local)]
        places += [(place, self._local[place]) for place in context.secondaries]
        for place, origin in places:
            if (result := self._update(context, place, origin)) != OK:
                return result
        return OK

    def _commit_alone(self, replica: int, csn: str) -> str:
        rid = origin_of(csn)
        element = self._ruvs[replica].get(rid)
        if element is not None and all(entry.csn != csn for entry in element.pending):
            self._because("no_entry", replica, rid, (csn,))
            return NOT_FOUND
        return self._update(Context(csn, replica), replica, rid)

    def _update(self, context: Context, replica: int, rid: str) -> str:
        """Commit what the context owns in one list and roll it up."""
        element = self._ruvs[replica].get(rid)
        if element is None:  # logged and ignored by the server: a read-only replica has no list of its own
            self._because("no_element", replica, rid)
            return OK
        pending = [entry._replace(committed=True) if context.owns(entry) else entry for entry in element.pending]
        self._because("committed", replica, rid, tuple(entry.csn for entry in pending if context.owns(entry)))
        popped, pending = self._rolled_up(pending)
        if waiting := tuple(entry.csn for entry in pending if entry.committed):
            self._because("held_back", replica, rid, waiting, _first_uncommitted(pending))
        low, high, result = element.min, element.max, OK
        if popped:
            self._because("rolled_up", replica, rid, tuple(popped))
            if low is None and rid != self._local[replica]:  # of its own changes the replica keeps the min elsewhere
                low = popped[0]
                self._because("min_set", replica, rid, (low,))
            if high is None or popped[-1] > high:
                self._because("max_moved", replica, rid, (popped[-1],), high)
                high = popped[-1]
            else:
                self._because("max_stays", replica, rid, (popped[-1],), high)
                result = COVERED
        self._ruvs[replica][rid] = Element(low, high, tuple(pending))
        return result

    def _rolled_up(self, pending: list[Entry]) -> tuple[list[str], list[Entry]]:
        """The CSNs that leave the list, and the entries that stay."""
        if self.rules.stops:
            popped = [entry.csn for entry in takewhile(lambda entry: entry.committed, pending)]
            return popped, pending[len(popped) :]
        return [entry.csn for entry in pending if entry.committed], [entry for entry in pending if not entry.committed]

    # END

    def _end(self, step: Step) -> str:
        self.contexts.pop(step.thread, None)
        self._because("ended", 0, "")
        return OK

    def _because(
        self, rule: str, replica: int, rid: str, csns: tuple[str, ...] = (), against: str | None = None
    ) -> None:
        self._why.append(Why(rule, replica, rid, csns, against))


def _first_uncommitted(pending: Iterable[Entry]) -> str | None:
    return next((entry.csn for entry in pending if not entry.committed), None)
