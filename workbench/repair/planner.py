"""From findings to a plan: what needs mending, which ways there are, how each comes out on the model, and which to go.

The ways of a system stand in its folder, one class each. Here they are tried: a way that does not restore what it says, or
after which anything is missing that was not before, is refused. Of the proven ones that is chosen which restores most, then
the one that throws away least, then the first of the system's ladder, whose gentlest repair comes first. Planning reads a case
and nothing else: it cannot write to a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from workbench.case.case import Case
from workbench.contracts.replication import PlanGrounds
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.dropped_changes import CLEANED_ORIGIN_BACK
from workbench.diagnosis.gone_entries import ENTRY_GONE
from workbench.diagnosis.left_in_logs import left_in_log
from workbench.diagnosis.made_by_others import made_by_others
from workbench.diagnosis.plan_counts import PlanCounts
from workbench.diagnosis.relayed_changes import WITHOUT_DATA
from workbench.diagnosis.snapshot_choice import case_at
from workbench.diagnosis.unseen_suppliers import SUPPLIER_NOT_COLLECTED
from workbench.diagnosis.without_record import keeps_none
from workbench.model import Finding, Problem, System, counted
from workbench.repair.choices import choices
from workbench.repair.model_summary import (
    arriving,
    changes_by_origin,
    hidden_without_steps,
    joining,
    no_worse,
    servers_told,
    standing_of,
    suffixes_of,
    why_chosen,
)
from workbench.repair.obstacles import (
    EMPTY,
    OFF,
    Obstacle,
    arrival_notes,
    blocked_notes,
    dropped_of,
    dropped_said,
    links_to_mend,
    on_their_way,
    stopped_links,
    stopped_servers,
    told_of,
    unapplied_of,
    waits_for,
)
from workbench.repair.outcomes import outcome_of
from workbench.repair.plan_types import (
    DEAD,
    DISABLED,
    HIDDEN,
    IF_BEHIND,
    MISSED,
    PENDING,
    ROLLED_BACK,
    EvaluatedRepair,
    Need,
    Plan,
    ProposedRepair,
    Repairs,
    Step,
    View,
    is_found,
)
from workbench.repair.unlike_entries import ENTRIES_DIFFER, all_unlike, of_their_own
from workbench.repair.unmended_findings import (
    Taken,
    alone_said,
    filled_by,
    not_mended,
    to_be_made_again,
    unmarked,
    why_left,
)
from workbench.rules.repair_model import MissingAt, Model
from workbench.rules.repair_result import Achieved, achieved
from workbench.rules.verdicts import ENTRIES_LACK
from workbench.safety import printable


def plan(
    case: Case,
    only: Sequence[str] = (),
    ways: Sequence[str] = (),
    as_of: str | None = None,
    made_at: datetime | None = None,
) -> Plan:
    """The plan of repair for the last snapshot of a case, proven on a model of it.

    `only` keeps to the needs of these codes, servers or origins. `ways` are preferred where they are proven, whatever the
    ladder says. Raises Problem for a name that nothing bears.
    """
    case = case_at(case, as_of)
    planned = _begun(case, ways, made_at)
    planned.check(only)
    if not planned.suffixes:  # an empty plan would look as if all were well
        do = "collect again, with what each server claims to hold"
        raise Problem("nothing can be planned: of no server it is known what it claims", case.name, do)
    for suffix in planned.suffixes:
        planned.mend(suffix, only)
    if unknown := set(ways) - planned.proposed:
        raise Problem(
            f"no way is named {printable(', '.join(sorted(unknown)))}",
            case.name,
            f"there are {', '.join(sorted(planned.proposed)) or 'none here: plan without a way to see what is left'}",
        )
    return planned.plan(case)


def models_of(case: Case, as_of: str | None = None) -> Mapping[str | None, Model]:
    """The models on which plans for the case are proven, by suffix."""
    planned = _begun(case_at(case, as_of), (), None)
    return {suffix: planned.view_of(suffix).model for suffix in planned.suffixes}


def _begun(case: Case, ways: Sequence[str], made_at: datetime | None) -> _Planned:
    context, findings = context_of(case)
    system = context.topology.system
    if system.repairs is None:
        raise Problem(f"no repairs are known for {system.title}", case.name, "the findings say what to do by hand")
    return _Planned(context, findings, system.repairs(), ways, made_at or datetime.now(UTC))


class _Planned:
    """A plan as it grows, need by need."""

    def __init__(
        self,
        context: DetectorContext,
        findings: Sequence[Finding],
        repairs: Repairs,
        ways: Sequence[str],
        made_at: datetime,
    ) -> None:
        self.context, self.findings, self.repairs, self.ways = context, findings, repairs, ways
        self.made_at = made_at
        self.system: System = context.topology.system
        self.proposed: set[str] = set()
        self.replicas = [one for one in context.topology.replicas if one.claims or (self.system.streaming and one.log)]
        self.suffixes = suffixes_of(context, findings, self.replicas)
        self.tried: dict[Need, list[EvaluatedRepair]] = {}
        self.steps: list[Step] = []
        self.promise: list[dict[str, Any]] = []
        self.before: list[dict[str, Any]] = []
        self.after: list[dict[str, Any]] = []
        self.too_young: dict[tuple[str, str | None], int] = {}
        self.open: list[str] = []
        self.unmended = 0
        self.chosen: list[tuple[Need, str]] = []
        self.told: list[Need] = []
        self.restored: set[tuple[str, str]] = set()
        self.passed_over = self.behind = self.dropped = self.unjudged = frozenset[MissingAt]()
        self.dropped_origins: set[tuple[str | None, str]] = set()
        self.done: dict[str | None, Model] = {}

    @property
    def courses(self) -> list[EvaluatedRepair]:
        """The ways of all needs, in the order in which these were tried last."""
        return [course for courses in self.tried.values() for course in courses]

    def check(self, only: Sequence[str]) -> None:
        """Raise Problem for a name of which nothing is known: an empty plan would look as if all were well."""
        known = {name for one in self.findings for name in (one.code, one.server, one.origin) if name}
        known |= {one.server for one in self.context.topology.replicas}
        for name in (one for one in only if one not in known):
            raise Problem(
                f"nothing was found of {printable(name)}",
                self.context.topology.snapshot,
                f"there are {', '.join(sorted(known))}",
            )

    def mend(self, suffix: str | None, only: Sequence[str]) -> None:
        """Plan for one suffix."""
        if undecided := choices(self.context, self.findings, suffix):
            self.open += undecided
            self.unmended += 1
            self._say(links_to_mend(self.context.topology, self.findings, suffix))
            return
        self.passed_over = self.dropped = self.unjudged = frozenset()  # lots of another suffix bear the same numbers
        model = (view := self.view_of(suffix)).model
        self.counts: PlanCounts = self.system.replication().plan_counts(self.context, suffix, model)
        self.unjudged = self.counts.unjudged
        before = standing_of(model, suffix, model.gone())
        self.counts.as_diagnosed(before)
        self.before += before
        self.too_young |= {(server, suffix): count for server, count in self.counts.too_young.items()}
        coming = self._on_the_way(model, suffix)
        self.passed_over, says = self.counts.passed_over()
        self.open += says
        passed, in_vain = set[Need](), set[Need]()
        begun = len(self.steps)
        mended = True
        while mended:  # what could not be mended before a step may be behind it
            passed, in_vain, mended = passed - in_vain, set(), False
            while need := next(
                (one for one in self._needs(view) if _bare(one) not in passed and one.wanted(only)), None
            ):
                passed.add(_bare(need))
                after = self._mended(view, need, need.named(only))
                if after is view.model:
                    in_vain.add(_bare(need))
                else:
                    mended, view = True, replace(view, model=after)
        self._prove(model, [effect for step in self.steps[begun:] for effect in step.effects], suffix)
        self.done[suffix] = view.model
        filled = filled_by(self.steps[begun:])
        self.open = [said for said in self.open if said not in {note for name, note in coming if name in filled}]
        self._say(links_to_mend(self.context.topology, self.findings, suffix, filled))
        for need in (x for x in self._needs(view) if x.code != SUPPLIER_NOT_COLLECTED):
            self.told.append(need)
            if _bare(need) in passed:
                self.unmended += 1
                why = why_left(need, view.model, self.courses, self.findings, self.after)
                self.open.append(f"{self._called(need)}: {why}")
            elif not need.wanted(only):
                self.open.append(f"{self._called(need)}: not planned for, as you asked")
        blind = [x.name for x in self.context.topology.links if x.suffix == suffix and x.blind]
        if blind and any(_bare(need) in passed for need in self._needs(view)):
            self.open.append(
                f"the consumers of {', '.join(blind)} are unknown: write the consumer of each into case.yaml, and plan again"
            )
        self.open += alone_said(self.context.topology, suffix)
        cut = self.context.verdicts.cut()
        if "missing" in cut:
            self.open.append(f"{cut['missing']:,} changes are missing and the list is cut: see what is left afterwards")
        if unknown := self.counts.not_judged(self.done.get(suffix)):
            compared = [contents for contents in self.context.verdicts.contents if contents.suffix == suffix]
            more = compared and not any(contents.exports for contents in compared)
            self.open.append(
                f"{counted(unknown, 'stretch', 'stretches')} of changes cannot be judged, and this plan does nothing about that"
                f"{': collect with the entries (`workbench collect --entries`), which may tell more' if more else ''}"
            )

    def _left(self) -> tuple[str, ...]:
        """The findings that stay, a line each."""
        before, after = ({(row["server"], row["suffix"]): row for row in rows} for rows in (self.before, self.after))
        unlike = all_unlike(self.context, {suffix: self.done.get(suffix) for suffix in self.suffixes}, self.restored)
        found = self.chosen, self.told, self.dropped_origins, self.steps, self.restored
        of = self.repairs
        more = unlike, of_their_own(self.context, before), self.done, of.cured, self.too_young
        taken = Taken(*found, before, after, of.mends, *more, settled=of.settled, given_up=of.given_up, stays=of.stays)
        left = not_mended(self.findings, self.context.topology, taken, unmarked(self.context, self.findings))
        return (*left, *to_be_made_again(self.context, self.steps))

    def _prove(self, model: Model, effects: Sequence[Mapping[str, Any]], suffix: str | None) -> None:
        """All steps together, on the model as the case shows it: what they promise, and what is there afterwards.

        Each way was proven behind those before it, so nothing can be wrong here; the plan is refused all the same if it is.
        """
        failing, running = stopped_links(self.context.topology, self.findings, suffix), model.copy()
        running.links = [x for x in running.links if (x.supplier, x.consumer) not in failing]
        if not effects:
            model = running  # without steps nothing is promised but what comes over links that run
        whole, done = achieved(model, effects)
        if whole.unsaid:
            count = model.changes(whole.unsaid)
            raise Problem(f"the steps together would hide {counted(count)}", str(suffix), "plan for one need: --for")
        self.promise += changes_by_origin(model, whole.restored, suffix, self.system)
        single = (lack for lack in whole.restored if model.lots[lack.lot].changes == 1)
        self.restored |= {(lack.server, self.system.show(model.lots[lack.lot].last)) for lack in single}
        # Behind a link that fails nothing arrives, whatever else the plan does.
        done = achieved(running, effects)[1] if failing else done
        stopped = stopped_servers(self.findings, suffix)
        self.open += blocked_notes(model, self.behind & done.pending(), stopped, waits_for(self.context, suffix))
        done.go_on()
        hidden = hidden_without_steps(running) & (done.missing() | done.pending())
        for row in standing_of(done, suffix, model.gone(), hidden, model.missing()):
            self.counts.afterwards(row, done, hidden)
            self.after.append(no_worse(row, self.before, joining(model, done)))

    def _on_the_way(self, model: Model, suffix: str | None) -> list[tuple[str, str]]:
        """Say what needs no repair because links that run will bring it, and to which server."""
        later = model.copy()
        later.settle()
        running, failing = model.copy(), stopped_links(self.context.topology, self.findings, suffix)
        running.links = [x for x in running.links if (x.supplier, x.consumer) not in failing]
        running.settle()
        if lost := later.gone() - model.gone():
            count = counted(sum(model.lots[number].changes for number in lost))
            self.open.append(
                f"servers that take all data anew without being told to throw away {count}: save them first"
            )
        whole = bool(self.context.verdicts.known) and not self.context.verdicts.cut()
        waits = {row["server"]: row["pending"] for row in self.before if row["suffix"] == suffix}
        for name in waits if whole else ():
            waits[name] -= sum(row["count"] for row in self.counts.stuck(name))
        found = arriving(self.counts, running, waits)
        coming = [(one[0], said) for one in found for said in arrival_notes(self.context, *one, suffix)]
        self.open += [said for _, said in coming]
        self.behind = frozenset((model.pending() & later.held()) - running.held() - self.unjudged if failing else ())
        self.dropped = dropped_of(model) - self.unjudged
        self.open += dropped_said(self.context, self.findings, suffix, model, self.dropped)
        self.unmended += bool(self.dropped)
        self.dropped_origins |= {(suffix, model.lots[lack.lot].origin) for lack in self.dropped}
        return coming

    def _say(self, obstacles: Sequence[Obstacle]) -> None:
        self.unmended += sum(one.number for one in obstacles)
        self.open += [one.says for one in obstacles]

    def view_of(self, suffix: str | None) -> View:
        """The suffix as the case shows it. On its model nothing is lacking that a later change brought once more."""
        codes, unapplied = _codes(self.findings, suffix), unapplied_of(self.findings, suffix, self.system)
        grounds = PlanGrounds(codes, self.repairs.waiting, unapplied)
        model = self.system.replication().plan_model(self.context, suffix, grounds)
        for name in told_of(OFF, self.findings, suffix) & model.servers.keys():
            model.servers[name].up = False
        for name in told_of(EMPTY, self.findings, suffix) & model.servers.keys():
            others = [server.holds for other, server in model.servers.items() if other != name]
            left = left_in_log(self.context.verdicts, name, suffix)
            kept = model.servers[name].holds.difference(*others) if left else set[int]()
            model.servers[name] = replace(model.servers[name], empty=True, vector={}, holds=kept)
        model.failing = stopped_links(self.context.topology, self.findings, suffix)
        view = View(self.context, self.findings, suffix, model, self.made_at)
        for need in self._needs(view):
            healed = self.repairs.healed(view, need) if need.hidden else frozenset()
            for lack in healed:
                model.servers[lack.server].holds.add(lack.lot)
            if healed:
                count = model.changes(healed)
                about = self._called(need).removeprefix("" if is_found(need, self.findings) else f"{need.code} ")
                self.open.append(f"{about}: a later change already brought what {counted(count)} would")
        return view

    def _called(self, need: Need) -> str:
        """Its name; with the suffix, if there is more than one."""
        return f"{need.name} in {need.suffix or 'the suffix without a name'}" if len(self.suffixes) > 1 else need.name

    def _needs(self, view: View) -> list[Need]:
        """What is to be mended, in the order in which it must be: a server goes before those that it feeds."""
        (now := view.model.copy()).settle()
        gone = now.gone()
        empty = {name for name, server in now.servers.items() if getattr(server, "empty", False)}
        filled = {name for code in WITHOUT_DATA for name in told_of(code, view.findings, view.suffix)}
        shared = {one.origin for one in view.about("DUPLICATE_ORIGIN") if one.root}  # its positions prove nothing
        no_effect = {  # nothing is to be done about these
            (row["server"], self.system.typed(row["position"]))
            for row in view.context.verdicts.missing
            if row["suffix"] == view.suffix and row.get(ENTRY_GONE)
        }
        found: dict[tuple[str, bool], set[MissingAt]] = {}
        for hidden, lacks in ((True, now.missing()), (False, now.pending())):
            for lack in (x for x in lacks if x.server not in filled and now.lots[x.lot].origin not in shared):
                if lack in self.unjudged or lack in self.dropped or (hidden and lack in self.passed_over):
                    continue
                if (lack.server, now.lots[lack.lot].last) in no_effect:
                    continue
                if lack.lot in now.given and lack.lot not in gone:  # what no server has any more, no repair brings back
                    found.setdefault((lack.server, hidden), set()).add(lack)
        # An own change that is about to be hidden cannot wait for anything else.
        back = {one.server for one in view.about(ROLLED_BACK)}
        also = [need for need in self.repairs.also(view, now) if need.server not in filled]
        stuck = {need.server: need.code for need in also if need.code != ENTRIES_DIFFER}
        needs = []
        for (server, hidden), mine in found.items():
            code = None if hidden else stuck.get(server)
            code = code or self._code(view, now, server, hidden, mine)
            waits = {now.lots[lack.lot].origin for lack in mine}
            if code != PENDING or not on_their_way(self.context, now, server, view.suffix, waits):
                needs.append(Need(code, view.suffix, server, lacks=frozenset(mine)))
        for one in view.about(DEAD, SUPPLIER_NOT_COLLECTED):
            # Where servers forget such an origin by themselves, the finding says so, and asks for nothing.
            if one.severity != "info" and any(one.origin in server.vector for server in now.servers.values()):
                needs.append(Need(one.code, view.suffix, origin=one.origin))
        links = {(x.supplier, x.name, x.suffix): x for x in view.context.topology.links}
        for one in view.about(DISABLED):
            link = links.get((one.server or "", one.link or "", view.suffix))
            off = link and any(
                (x.supplier, x.consumer, x.runs) == (link.supplier, link.consumer, False) for x in now.links
            )
            # About a cleaned origin that came back a person decides; and who has no data at the moment sends nothing.
            not_now = {x.server for x in view.about(CLEANED_ORIGIN_BACK)} | filled | empty
            off = off and not keeps_none(view.context, one.server or "", view.suffix)
            if link and off and one.server not in not_now and not any(need.server == link.consumer for need in needs):
                needs.append(Need(DISABLED, view.suffix, link.consumer, link=one.link))
        served = {need.server for need in needs}
        also = [need for need in also if need.server is None or need.server not in served]
        needs += also

        far = now.ahead()

        def turn(need: Need) -> tuple[Any, ...]:
            server = now.servers.get(need.server or "")
            depth = 0 if server is None or server.origin else 1 if server.log is not None else 2
            # Who is further can serve who is not, once it goes on itself.
            behind = -far.get(need.server or "", 0)
            # What waits for a server that is apart from others may be mended with it.
            return (
                need.server is None and need.origin is not None,
                self.repairs.late(view, need),
                need not in also,
                need.server not in back,
                not self.repairs.first(view, need),
                not need.hidden,
                depth,
                behind,
                # What only waits may come by itself once those that are as far and stuck go on.
                bool(far) and need.code == PENDING,
                need.name,
            )

        return sorted(needs, key=turn)

    def _code(self, view: View, model: Model, server: str, hidden: bool, lacks: Iterable[MissingAt]) -> str:
        if hidden and model.within:
            own = model.servers[server].origin
            # What entries alone lack was not lost by going back in time, nor what another server made.
            by_entries = {
                row["position"]
                for row in view.context.verdicts.missing
                if row.get("rule") == ENTRIES_LACK and row["server"] == server
            }
            by_entries |= {
                at for name, of, at in view.context.once(made_by_others) if (name, of) == (server, view.suffix)
            }
            lots = [model.lots[one.lot] for one in lacks]
            back = any(lot.origin == own and lot.last not in by_entries for lot in lots)
            if {(lack.server, lack.lot) for lack in lacks} <= model.unlike:
                return self.repairs.conflict
            return HIDDEN if back else MISSED
        links = view.context.topology.links
        feeds = {(x.supplier, x.name) for x in links if (x.consumer, x.suffix) == (server, view.suffix)}
        found = (one for one in view.findings if one.suffix in (None, view.suffix) and not one.overruled_by)
        told = {
            one.code
            for one in found
            if (one.server == server and one.code != DISABLED) or (one.server, one.link) in feeds
        }
        return next((code for code in self.repairs.stuck if code in told), PENDING)

    def _mended(self, view: View, need: Need, named: bool) -> Model:
        """Try every way to mend the need, take the best one into the plan, and give the model as it is then."""
        tried: list[tuple[ProposedRepair, Achieved | None, Model | None, EvaluatedRepair]] = []
        self.tried.pop(_bare(need), None)  # it stands behind the steps on which it is tried once more
        courses = self.tried[_bare(need)] = []
        for draft in self.repairs.drafts(view, need, self.ways, named):
            self.proposed.add(draft.way)
            result, after, course = outcome_of(view, need, draft)
            if result is not None:  # what nothing shows to be lacking makes no way the better one
                holes = self.counts.filled_inside(view.model, after) if after is not None else 0
                course = replace(course, restored=view.model.changes(result.restored - self.unjudged) + holes)
            if after is not None and (course.proven or course.unasked) and (why := self._leaves(view, need, after)):
                course = replace(course, proven=False, refused=why, unasked="")
            if result is not None and after is not None:
                gone = after.thrown_away(view.model) - after.saved
                thrown = {lack for lack in result.lost if lack.lot in gone}
                rows = changes_by_origin(view.model, result.unsaid or thrown, view.suffix, self.system)
                course = replace(course, loses=tuple(rows))
            tried.append((draft, result, after, course))
        best = min(
            (place for place, (_, _, _, course) in enumerate(tried) if course.proven and not course.refused),
            key=lambda place: (
                tried[place][0].way not in self.ways,
                -_restores(view.model, need, tried[place][1], tried[place][3]),
                tried[place][3].lost,
                bool(tried[place][0].costs),
                place,
            ),
            default=None,
        )
        for place, (draft, _, _, course) in enumerate(tried):
            chosen = place == best
            courses.append(
                replace(
                    course,
                    need=self._called(need),
                    chosen=chosen,
                    why=why_chosen(tried[best][3], course, draft, self.ways) if chosen and best is not None else "",
                )
            )
        if best is None:
            return view.model
        draft, _, after, _ = tried[best]
        self.chosen.append((_bare(need), draft.way))
        assert after is not None, "a proven way was tried"
        self._add(draft.steps)
        return after

    def _add(self, steps: Iterable[Step]) -> None:
        """Put steps into the plan, in place of those that were only to fill the same servers if these stayed behind."""
        steps = list(steps)
        anew = {(one.server, one.suffix) for one in steps for effect in one.effects if effect["do"] == "initialise"}
        kept = [one for one in self.steps if not (one.details.get(IF_BEHIND) and (one.server, one.suffix) in anew)]
        plain = [replace(one, key=one.key.partition("-")[2]) for one in kept] + steps
        self.steps[:] = [replace(one, key=f"{number}-{one.key}") for number, one in enumerate(plain, 1)]

    def _leaves(self, view: View, need: Need, after: Model) -> str:
        """Why a way is none although it restores what it says: the need is there as before, or its server has another one."""
        now = view.model.copy()
        now.settle()
        left = {_bare(one) for one in self.repairs.also(replace(view, model=after), after)}
        if not need.lacks and need in left:
            return "on the model it stays as it is"
        new = left - {_bare(one) for one in self.repairs.also(view, now)}
        codes = sorted(one.code for one in new if one.server == need.server is not None)
        return f"on the model it ends as {codes[0]}" if codes else ""

    def plan(self, case: Case) -> Plan:
        """All of it."""
        servers = servers_told(self.context, self.findings, self.replicas)
        return Plan(
            case.name,
            self.system.name,
            self.context.topology.snapshot,
            f"{self.made_at:%Y-%m-%dT%H:%M:%SZ}",
            tuple(servers),
            tuple(self.courses),
            tuple(self.steps),
            tuple(self.promise),
            tuple(self.before),
            tuple(self.after),
            tuple(self.open),
            self.unmended,
            tuple(self.repairs.checks(servers)) if self.steps else (),
            self.repairs.ending,
            self._left(),
            tuple(sorted({row["server"] for row in self.context.all_not_collected})),
        )


def _restores(model: Model, need: Need, result: Achieved | None, course: EvaluatedRepair) -> int:
    """How much a way restores of what the need is about."""
    if need.server is None or not need.lacks or result is None:
        return course.restored
    counts = model.compared(need.server, need.lacks, result.restored)
    return course.restored if counts is None else model.changes(counts)


def _codes(findings: Iterable[Finding], suffix: str | None) -> set[tuple[str, str | None, str | None]]:
    """What was found of which server and link: agreements of two suffixes may bear one name."""
    return {(one.code, one.server, one.link) for one in findings if one.suffix in (None, suffix)}


def _bare(need: Need) -> Need:
    """The need, whatever is lacking. Its name is not enough: agreements of two servers may bear it."""
    return replace(need, lacks=frozenset())
