"""A plan of repair as data: what it was made on, its steps, what it promises, and the other ways that were compared.

Nothing here can write to a server. A plan is a file that a person reads before anything is done; its `id` is a hash of all
that it says, so that what was proven and what is applied are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from workbench.model import Finding, Problem, counted, ends
from workbench.rules.assumptions import ASSUMPTIONS, DATA_NAMED, SOURCE_NAMED
from workbench.safety import printable

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.rules.repair_model import MissingAt, Model

SCHEMA = 2
NAME = "plan.json"

ALL = -1
"""Of the changes of a step: all data of a server."""

SENT = "(what is sent)"
"""Stands in a command for the file with what the step sends."""

READ_THERE = "(read on the server when it is run)"
"""Stands in what is sent for values that no file may hold."""

ASKED_FOR = "(asked for when it is run)"
"""Stands where a password is sent. Text that LDIF shows as it is: in base64 nobody would see that it is none."""

Vectors = Mapping[str, Mapping[str, str]]
"""Server -> origin -> the highest position that it claims, as the system writes positions."""


@dataclass(frozen=True)
class Step:
    """One step of a repair: one thing done at one server, and all that a person wants to know before it is.

    key        names it within the plan: its number and what it does
    repair     which repair it belongs to; the system's hands know how that is done
    server     whose data or settings it changes: this name is typed to confirm
    on         the server that it is done at
    says       the direction in one sentence: who will do what to whom
    stands_on  what has to be so right before it, besides what the servers claim: it is looked at again, and refused if not
    expects    what is to be seen afterwards
    risk       what may go wrong, or what it costs
    undo       how it is taken back; empty if it cannot be: then `cannot_undo` says why
    commands   the native commands, as lists of words, SENT for the file of what is sent; none goes through a shell
    sends      what is sent to the server, in its own language
    changes    changes to data that it makes, what a run may be limited to; ALL: it replaces all data of the server
    still      (server, origin) whose position may not move at all before it, whatever else goes on
    effects    what it does, in the words of the model on which the plan was proven
    details    what the hands need
    assumes    what it takes for granted, of `workbench.rules.assumptions.ASSUMPTIONS`
    """

    key: str
    repair: str
    server: str
    on: str
    suffix: str | None
    says: str
    stands_on: str
    expects: str
    risk: str
    undo: str = ""
    cannot_undo: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    sends: str = ""
    undo_commands: tuple[tuple[str, ...], ...] = ()
    undo_sends: str = ""
    changes: int = 0
    still: tuple[tuple[str, str], ...] = ()
    effects: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()

    @property
    def assumptions(self) -> str:
        """The same in words; empty: nothing."""
        return "; ".join(ASSUMPTIONS[code] for code in self.assumes)


@dataclass(frozen=True)
class EvaluatedRepair:
    """One way to mend a need, as it came out on the model.

    need       what it is to mend: a code and the server or origin concerned
    way        its name: what a person chooses it by
    says       what is done, in one sentence
    proven     on the model it restores what it promises, and nothing is missing that was not before
    refused    why it is not to be done; empty for one that may be
    restored   changes that arrive by it where they were lacking
    lost       changes that are thrown away, those that are saved to a file first included
    saved      of these, how many are saved
    load       what the servers have to do for it
    downtime   who cannot be used meanwhile; empty: nobody
    costs      what else is given up
    chosen     it is part of the plan, and `why`
    loses      rows like those of a promise: what it would hide or throw away unsaved; it is refused for that
    unasked    it would do, and this is why a person has to ask for it by name; empty: nobody has to
    """

    need: str
    way: str
    says: str
    proven: bool
    refused: str = ""
    restored: int = 0
    lost: int = 0
    saved: int = 0
    load: str = ""
    downtime: str = ""
    costs: str = ""
    chosen: bool = False
    why: str = ""
    loses: tuple[Mapping[str, Any], ...] = ()
    unasked: str = ""


@dataclass(frozen=True)
class Plan:
    """An ordered list of steps, and on what it stands.

    servers    of each server and suffix: `server`, `suffix`, `origin`, `generation`, `vector` (origin -> highest position),
               `left_out` (what the server need not have, for no way lets it through), `conflicts` (how many of its entries
               had a mark of conflict; None: they were not collected)
    courses    the ways that were compared, the chosen ones among them
    promise    rows of what is there afterwards: `server`, `suffix`, `origin`, `count`, `first`, `last`, and in `targets` what
               the changes are about, as far as it is known; `created`: those of them that they bring into being
    before     what was missing and pending before, by server; `after`: the same on the model, all steps done, when life goes on
    open       what the plan does not mend, in sentences
    unmended   how many needs are left for which no proven way was found
    checks     native commands that show how the servers stand: to be run before and after
    ending     how the name of a file ends that holds what a step sends
    left       the findings of warning and above that no chosen way mends, one line each, with the reason
    unread     servers, or their addresses, of which nothing was collected that tells what they have
    """

    case: str
    system: str
    snapshot: str
    made_at: str
    servers: tuple[Mapping[str, Any], ...]
    courses: tuple[EvaluatedRepair, ...]
    steps: tuple[Step, ...]
    promise: tuple[Mapping[str, Any], ...]
    before: tuple[Mapping[str, Any], ...]
    after: tuple[Mapping[str, Any], ...]
    open: tuple[str, ...] = ()
    unmended: int = 0
    checks: tuple[tuple[str, ...], ...] = ()
    ending: str = "txt"
    left: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Short hash of all that the plan says."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def vectors(self, suffix: str | None) -> Vectors:
        """What the servers of a suffix claimed when the plan was made."""
        return {one["server"]: one["vector"] for one in self.servers if one["suffix"] == suffix}


IF_BEHIND = "if_behind"
"""A detail of a step that is to be done only if its server does not get level by itself: nothing is promised of it."""


def loss_told(row: Mapping[str, Any]) -> str:
    """What a server would lose, or would never get, in words."""
    loses = "would lose" if row.get("has", True) else "would never get"
    return (
        f"{row['server']} {loses} {counted(row['count'])} of origin {row['origin']}, {ends(row['first'], row['last'])}"
    )


def to_accept(steps: Iterable[Step]) -> list[str]:
    """Codes of what the steps take for granted and no person has decided: whoever has them done accepts each of these first."""
    taken = dict.fromkeys(code for step in steps for code in step.assumes)
    return [code for code in taken if code not in (SOURCE_NAMED, DATA_NAMED)]


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as it is written to its file; `certain`: the step takes nothing for granted."""
    steps = [{**asdict(step), "certain": not step.assumes} for step in plan.steps]
    return {"schema": SCHEMA, "id": plan.id, **asdict(plan), "steps": steps}


def read_plan(path: Path) -> Plan:
    """The plan in a file, or in a case folder. Raises Problem if it is none, or is not what was proven."""
    if path.is_dir():
        path = path / NAME
    where = printable(str(path))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Problem(f"no plan: {error.strerror}", where, "make one: `workbench plan CASE`") from None
    except (ValueError, RecursionError):
        raise Problem("this is no plan: it is not JSON", where, "give the plan.json of a case") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or "steps" not in found:
        raise Problem("this is no plan of this version", where, "make it again: `workbench plan CASE`")
    try:
        about = {one.name: found[one.name] for one in fields(Plan)}
        about["courses"] = tuple(EvaluatedRepair(**{**one, "loses": tuple(one["loses"])}) for one in about["courses"])
        about["checks"] = _frozen(about["checks"])
        about["steps"] = tuple(_step(one) for one in about["steps"])
        whole: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in about.items()
        }
        plan = Plan(**whole)
        same = plan.id == found["id"]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise Problem("this is no whole plan", where, "make it again: `workbench plan CASE`") from None
    if not same:
        do = "make it again: what is applied has to be what was proven"
        raise Problem("the plan was changed after it was made", where, do)
    return plan


def _step(found: Mapping[str, Any]) -> Step:
    lists = {key: _frozen(found[key]) for key in ("commands", "undo_commands", "still")}
    known = {key: value for key, value in found.items() if key != "certain"}
    step = Step(**{**known, **lists, "effects": tuple(found["effects"]), "assumes": tuple(found["assumes"])})
    certain = not step.assumes
    if found.get("certain", certain) is not certain:
        raise ValueError("`certain` says something else than `assumes`")
    return step


def _frozen(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in rows)


# --- on the way to a plan

MISSED, HIDDEN, PENDING = "MISSED_CHANGE", "OWN_CHANGES_HIDDEN", "PENDING_CHANGES"
DISABLED, DEAD, ROLLED_BACK = "LINK_DISABLED", "DEAD_ORIGIN", "ROLLED_BACK"


@dataclass(frozen=True)
class Need:
    """Something to be mended: why, where, and what is lacking there."""

    code: str
    suffix: str | None
    server: str | None = None
    origin: str | None = None
    link: str | None = None
    lacks: frozenset[MissingAt] = frozenset()

    @property
    def name(self) -> str:
        """How people call it: the code and whom it is about."""
        return " ".join(filter(None, (self.code, self.link or self.server or self.origin)))

    def named(self, only: Collection[str]) -> bool:
        """True if a person asked for its server or its origin: a code alone may be of several."""
        return bool({self.server, self.origin} & {*only})

    def wanted(self, only: Collection[str]) -> bool:
        """True if the plan is to mend it: it was asked for, or nothing was."""
        return not only or self.code in only or self.named(only)

    @property
    def hidden(self) -> bool:
        """True if no session will bring what is lacking."""
        return self.code in (MISSED, HIDDEN)


def is_found(need: Need, findings: Iterable[Finding]) -> bool:
    """True if a finding says what a need is about: the model may know of needs that no finding names."""
    return any(
        (one.code, one.server) == (need.code, need.server)
        and one.suffix in (None, need.suffix)
        and not one.overruled_by
        for one in findings
    )


@dataclass(frozen=True)
class ProposedRepair:
    """A way to mend a need, before it was tried.

    refused  why it must not be gone, whatever it would achieve
    unasked  why it is refused unless a person asks for it by name
    by_way   True: to name the way asks for it; else its server or origin is to be named, too
    """

    way: str
    says: str
    steps: tuple[Step, ...] = ()
    load: str = ""
    downtime: str = ""
    costs: str = ""
    refused: str = ""
    unasked: str = ""
    by_way: bool = False


@dataclass(frozen=True)
class View:
    """What a repair may look at: all that was found, and the model as it is when the need's turn comes."""

    context: DetectorContext
    findings: Sequence[Finding]
    suffix: str | None
    model: Model
    made_at: datetime

    def about(self, *codes: str) -> list[Finding]:
        """The findings of these codes in the suffix."""
        return [one for one in self.findings if one.code in codes and one.suffix in (None, self.suffix)]


@dataclass(frozen=True)
class Repairs:
    """The repairs of a system.

    ladder  the gentlest first
    checks  the servers of a plan -> native commands that show how they stand
    ending  how the name of a file ends that holds what a step sends
    by_hand what a person has to know who runs the commands: a sentence or two
    checked what the commands of `checks` show, and what is to be seen when all is well
    stuck   codes of findings that say why a server waits, the one that says most first
    waiting codes of findings on a link that opens no session, though its consumer is behind
    conflict code of the need of a server that lacks nothing but what it holds with another content
    healed  of what a server misses, what needs no repair any more: a later change brought the same
    also    what is to be mended on a model although nothing is lacking there
    first   True of a need that has to be mended before any server is filled: its server may be the one that fills others
    mends   way -> codes of findings about the server that it repairs, or a link to it, that are no longer true after it
    late      True of a need that comes last: to mend it takes what servers that wait need more
    cured     codes of findings that are no longer true once all that their server waits for has arrived by the steps
    preamble  lines at the head of scripts that the commands rely on
    whole     all that a step sends, piece by piece, where the plan shows the beginning only
    settled   True of a finding that is no longer true of the servers as the model has them when all is done
    given_up  why a finding stays although its server waits for nothing when all is done: the steps took that out; empty: it does
              not
    stays     True of a finding that asks to leave a server alone until what it waits for has come: that no step is needed is no
              reason to leave it out
    weighed   a way with what else speaks against it, or is lost by it
    """

    ladder: Sequence[Repair]
    checks: Callable[[Sequence[Mapping[str, Any]]], Iterable[tuple[str, ...]]]
    ending: str
    by_hand: str
    checked: str
    stuck: Sequence[str] = ()
    waiting: frozenset[str] = frozenset()
    conflict: str = ""
    healed: Callable[[View, Need], frozenset[MissingAt]] = lambda view, need: frozenset()
    also: Callable[[View, Model], Iterable[Need]] = lambda view, model: ()
    first: Callable[[View, Need], bool] = lambda view, need: False
    mends: Mapping[str, Collection[str]] = field(default_factory=dict)
    cured: Collection[str] = ()
    late: Callable[[View, Need], bool] = lambda view, need: False
    preamble: str = ""
    whole: Callable[[Step], Iterable[str]] = lambda step: (step.sends,)
    settled: Callable[[Finding, Model], bool] = lambda finding, model: False
    given_up: Callable[[Finding, Model], str] = lambda finding, model: ""
    stays: Callable[[Finding, Model], bool] = lambda finding, model: False
    weighed: Callable[[View, Need, ProposedRepair], ProposedRepair] = lambda view, need, draft: draft

    def drafts(
        self, view: View, need: Need, ways: Collection[str] = (), named: bool = False
    ) -> Iterator[ProposedRepair]:
        """All ways in which the need could be mended, the gentlest first.

        ways   those that a person asked for by name
        named  True if the person named the server or origin of the need, too
        """
        for repair in self.ladder:
            for proposed in repair.propose(view, need):
                draft = self.weighed(view, need, proposed)
                if draft.refused or (draft.way in ways and (named or draft.by_way)):
                    draft = replace(draft, unasked="")
                elif draft.unasked:
                    asked = _how_asked(need, draft)
                    draft = replace(draft, refused=asked, unasked=asked)
                yield draft


def _how_asked(need: Need, draft: ProposedRepair) -> str:
    """Why a person has to ask for a way, and how that is done."""
    if "--way" in draft.unasked:
        return draft.unasked
    about = "" if draft.by_way else f"--for {need.server or need.origin or need.code} "
    return f"{draft.unasked}; if it is to be done all the same, plan with {about}--way {draft.way}"


class Repair(Protocol):
    """One repair: a class in the folder of its system."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """The ways in which it could mend the need; none if it is not meant for such."""
