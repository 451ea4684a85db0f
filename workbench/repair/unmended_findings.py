"""The findings that a plan leaves as they are: one line for each, so that nobody takes a finished plan for a healthy system.

A finding counts as mended if a chosen way was taken for just that, if the way mends what the finding says of the same server
or link (`Repairs.mends`), if a step switches on the link that it is about, or if all the changes that it names are restored.
What needs no step, and what is left although a way was looked for, the plan says elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.diagnosis.changes_thrown_away import THROWN_AWAY
from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.dropped_changes import CLEANED_ORIGIN_BACK
from workbench.diagnosis.failing_links import LINK_DISABLED, LINK_FAILING
from workbench.diagnosis.left_in_logs import gone_with_the_data
from workbench.diagnosis.set_back_evidence import by_earlier_file
from workbench.diagnosis.unseen_suppliers import SUPPLIER_NOT_COLLECTED
from workbench.model import Finding, counted, ends, listed
from workbench.repair.choices import DECIDED_BY_A_PERSON
from workbench.repair.cut_off_suppliers import cut_off
from workbench.repair.plan_types import (
    DEAD,
    HIDDEN,
    IF_BEHIND,
    MISSED,
    PENDING,
    ROLLED_BACK,
    EvaluatedRepair,
    Need,
    Step,
)
from workbench.repair.unlike_entries import ENTRIES_DIFFER
from workbench.replication.entry.diagnosis.domains_told import of_untold_domain
from workbench.rules.link_failures import REFUSED
from workbench.rules.repair_model import Model
from workbench.topology.topology import Topology

SEVERE = ("warning", "error")
STRANDED, APPLY_RETRY_LOOP, CONFLICT_ENTRIES = "STRANDED_CHANGE", "APPLY_RETRY_LOOP", "CONFLICT_ENTRIES"
WAITING_FOR = ("REINIT_REQUIRED", "ANCHOR_MISSING", "ANCHOR_PURGED")
"""Codes of findings that say why nothing arrives at a server."""
ANCHORS = ("ANCHOR_MISSING", "ANCHOR_PURGED")
SHARED_HOST = "BROKEN_VECTOR"
CANNOT_SERVE = "CHANGELOG_RECREATED"
"""Of weight because consumers of the server wait for what its changelog no longer has."""


@dataclass(frozen=True)
class Taken:
    """What a plan does and says so far.

    chosen    needs and the ways that were chosen for them
    told      needs that are left, each with a sentence of its own
    dropped   (suffix, origin) of changes that servers drop, where the plan has a sentence on that
    restored  (server, position) of single changes that arrive
    before    (server, suffix) -> what is missing and pending there now; `after`: when all is done
    unlike    (server, suffix) -> how many of its entries still differ from those of others when all is done, and how many do now
    own       (server, suffix) -> how many entries have values there that others do not show
    models    suffix -> its servers when all is done
    cured     codes of findings that are no longer true once all that their server waits for has arrived (`Repairs.cured`)
    too_young (server, suffix) -> how many changes it waits for that were made after the logs were read
    settled   True of a finding that is no longer true of the servers when all is done (`Repairs.settled`)
    given_up  why a finding stays although its server waits for nothing then (`Repairs.given_up`)
    stays     True of a finding that asks to leave its server alone for now (`Repairs.stays`)
    """

    chosen: Sequence[tuple[Need, str]]
    told: Collection[Need]
    dropped: Collection[tuple[str | None, str]]
    steps: Sequence[Step]
    restored: Collection[tuple[str, str]]
    before: Mapping[tuple[str, str | None], Mapping[str, Any]]
    after: Mapping[tuple[str, str | None], Mapping[str, Any]]
    mends: Mapping[str, Collection[str]]
    unlike: Mapping[tuple[str, str | None], tuple[int, int]] = field(default_factory=dict)
    own: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    models: Mapping[str | None, Model] = field(default_factory=dict)
    cured: Collection[str] = ()
    too_young: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    settled: Callable[[Finding, Model], bool] = lambda finding, model: False
    given_up: Callable[[Finding, Model], str] = lambda finding, model: ""
    stays: Callable[[Finding, Model], bool] = lambda finding, model: False


def filled_by(steps: Iterable[Step]) -> set[str]:
    """The servers that get all data of another one by these steps."""
    effects = (effect for step in steps for effect in step.effects)
    return {str(effect["server"]) for effect in effects if effect["do"] == "initialise"}


def not_mended(
    findings: Iterable[Finding], shown: Topology, taken: Taken, without_marks: Collection[tuple[str, str | None]] = ()
) -> list[str]:
    """One line for each finding of warning and above that stays, equal ones of several servers and links together.

    without_marks  (server, suffix) of servers whose entries show no mark of conflict
    """
    lines: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        if one.severity not in SEVERE or one.overruled_by or _told(one, shown, taken) or _mended(one, shown, taken):
            continue
        if one.code == CONFLICT_ENTRIES and _marks_gone(one, taken, without_marks):
            continue
        where = one.link or one.server or (f"origin {one.origin}" if one.origin else "")
        places = lines.setdefault((one.code, _reason(one, shown, taken)), [])
        if where and where not in places:
            places.append(where)
    return [
        f"{' '.join(filter(None, (code, ', '.join(places))))}: {reason}" for (code, reason), places in lines.items()
    ]


def why_left(
    need: Need,
    model: Model,
    courses: Sequence[EvaluatedRepair],
    findings: Iterable[Finding],
    after: Iterable[Mapping[str, Any]],
) -> str:
    """Why a need is left for which ways were looked for, and what its findings say to do, but for ways that were refused.

    after   the rows of the servers when all is done: a group of the model may reach back before what its server lacks
    """
    if ask := next((one.unasked for one in courses if one.need == need.name and one.unasked), ""):
        return ask
    if need.lacks and {lack.lot for lack in need.lacks} <= model.saved:
        return "a step saves these changes to a file; send what is still right to a supplier yourself"
    row = next((x for x in after if (x["server"], x["suffix"]) == (need.server, need.suffix)), None)
    every = row["missing"] + row["pending"] if row else 0
    count = min(model.changes(need.lacks), every or sys.maxsize)  # rows do not count what is of other content
    if row and need.lacks and need.lacks == {lack for lack in model.pending() if lack.server == need.server}:
        count = row["pending"]  # which counts what is too young for the model, too
    lacking = f"this plan does not bring {counted(count)}" if count else "this plan changes nothing in it"
    refused = [one.says for one in courses if one.need == need.name and one.says]
    do = [repair for repair in _first_steps(need, findings) if repair not in refused]
    return f"no proven way was found, {lacking}{f'; what to do: {listed(do)}' if do else ''}"


def _first_steps(need: Need, findings: Iterable[Finding]) -> list[str]:
    """What the findings that a need is about say to do first, each step once."""
    repairs = (_first_repair(one) for one in findings if _same(need, one) and not one.overruled_by)
    return list(dict.fromkeys(filter(None, repairs)))


def _first_repair(one: Finding) -> str:
    return next((str(fix["repair"]) for fix in one.fix if fix.get("repair")), "")


def alone_said(shown: Topology, suffix: str | None) -> list[str]:
    """That one server alone tells what it has seen, so that a plan without steps is no good news; empty: several do."""
    untold = (
        of_untold_domain([one for one in shown.replicas if one.suffix == suffix and one.claims])
        if shown.pulling
        else []
    )
    if untold:
        names = listed(sorted(one.server for one in untold))
        return [
            f"no file tells the domain of {names}, and those of others tell several: no step is planned for {names}, or rests "
            "on its data; collect again with the domain (`db_d_uuid` of a backup), and plan anew"
        ]
    telling = sorted({one.server for one in shown.replicas if one.suffix == suffix and one.tells})
    if len(telling) != 1:
        return []
    of = f" of {suffix}" if suffix else ""
    return [
        f"only {telling[0]} tells what it has{of}: what no file of it names cannot be judged; collect from the others, too, if "
        "there are any"
    ]


def unmarked(context: DetectorContext, findings: Iterable[Finding]) -> set[tuple[str, str | None]]:
    """The servers, each with a suffix, whose entries were collected and show no mark of conflict."""
    marked = {(one.server, one.suffix) for one in findings if one.code == CONFLICT_ENTRIES}
    shown = {(server, contents.suffix) for contents in context.verdicts.contents for server in contents.exports}
    return {(server, suffix) for server, suffix in shown if not marked & {(server, suffix), (server, None)}}


def _marks_gone(one: Finding, taken: Taken, without: Collection[tuple[str, str | None]]) -> bool:
    """True if the entries of a server come from one without marks of conflict, when all steps are done in their order."""
    clean = {server for server, suffix in without if one.suffix in (None, suffix)}
    for step in taken.steps:
        if one.suffix not in (None, step.suffix):
            continue
        for effect in step.effects:
            if effect["do"] == "initialise":
                came_clean = effect["source"] in clean
                # A step that is left out where its server has all by then brings no mark away.
                if came_clean and not step.details.get(IF_BEHIND):
                    clean.add(str(effect["server"]))
                elif not came_clean:
                    clean.discard(str(effect["server"]))
    return one.server in clean


def to_be_made_again(context: DetectorContext, steps: Iterable[Step]) -> list[str]:
    """What was lost with the data of servers that the steps fill: to fill them brings none of it."""
    filled = {(step.server, step.suffix) for step in steps for effect in step.effects if effect["do"] == "initialise"}
    lost = {key: gone_with_the_data(context, *key) for key in sorted(filled, key=str)}
    return [
        f"{server} lost {counted(len(gone))} of its own, {ends(gone[0], gone[-1])}, that no other collected server has: to "
        f"fill it brings none of them; make them again, if still right (its access log names operation and entry)"
        for (server, _), gone in lost.items()
        if gone
    ]


def _reason(one: Finding, shown: Topology, taken: Taken) -> str:
    do = _first_repair(one)
    asked = [step for step in _all_saving(taken) if do.startswith("save ") and f"the changelog of {step.server}," in do]
    saved = asked or _saving(one, shown, taken)
    if saved:
        keys = ", ".join(step.key for step in saved)
        return f"step {keys} saves these changes to a file; send what is still right to a supplier yourself"
    if keeping := _keeping(one, taken):
        return f"{listed(keeping)} keep{'s' * (len(keeping) == 1)} it when all steps are done, until the next initialisation"
    if gone := _gone_with_data(one, shown, taken):
        return (
            f"{counted(len(gone))} that it names {'goes' if len(gone) == 1 else 'go'} with the data of a server that is filled, "
            "and no other one has that; the backup made before has it: write again what is right of it"
        )
    if given_up := _given_up(one, taken):
        return f"{given_up}{f'; what to do if it is to come back: {do}' if do else ''}"
    if _throws_away(one, taken):
        return f"{one.server} is filled, which throws away what it alone shows in these entries: first save what of it is right"
    if cut := _stays_cut_off(one, shown, taken):
        return (
            f"{cut} is filled from a server whose vector does not name the changes of {one.server}: no session over {one.link} "
            f"can begin afterwards; initialise {cut} from {one.server}, or from a server whose vector names them, instead"
        )
    left, now = taken.unlike.get((one.server or "", one.suffix), (0, 0))
    if one.code == ENTRIES_DIFFER and 0 < left < now:
        rest = "1 of these entries still differs" if left == 1 else f"{left:,} of these entries still differ"
        return f"{rest} when all steps are done; what to do: {do}"
    arriving = sum((one.server, item) in taken.restored for item in one.items)
    # One position may be of several changes of entries.
    arriving -= sum(row.get("cause") == THROWN_AWAY for row in one.evidence) if shown.pulling else 0
    if one.code in (MISSED, HIDDEN) and arriving > 0:
        arrive = "arrives" if arriving == 1 else "arrive"
        if arriving == len(one.items):
            return f"the {counted(arriving)} that it names {arrive} by the steps; what else the server lacks then, the table says"
        return f"{arriving:,} of the changes that it names {arrive} by the steps, the others do not"
    return f"no step of this plan mends it{f'; what to do: {do}' if do else ', see the finding'}"


def _saving(one: Finding, shown: Topology, taken: Taken) -> list[Step]:
    """The steps that write to a file what only the server of a finding holds, or what it lacks and no server has afterwards."""
    if one.code == STRANDED:
        return _saved_on(one, taken)
    model = taken.models.get(one.suffix)
    if one.code != MISSED or model is None:
        return []
    gone = {shown.system.show(model.lots[number].last) for number in model.saved & model.gone()}
    return _all_saving(taken) if one.items and gone.issuperset(one.items) else []


def _saved_on(one: Finding, taken: Taken) -> list[Step]:
    return [step for step in _all_saving(taken) if step.server == one.server]


def _all_saving(taken: Taken) -> list[Step]:
    return [step for step in taken.steps if any(effect["do"] == "save" for effect in step.effects)]


def _throws_away(one: Finding, taken: Taken) -> bool:
    """True if a step fills the server of a finding on entries, and it shows values of its own in some of them."""
    about = one.code == ENTRIES_DIFFER and one.server in filled_by(taken.steps)
    return about and taken.own.get((one.server or "", one.suffix), 0) > 0


def _given_up(one: Finding, taken: Taken) -> str:
    """Why a finding stays whose server the steps take out, so that it waits for nothing; empty: they do not."""
    model = taken.models.get(one.suffix)
    return taken.given_up(one, model) if taken.steps and model is not None else ""


def _delivered(one: Finding, taken: Taken) -> bool:
    """True if the others wait for what a server alone holds, which keeps its data, and have that, or lack nothing, in the end."""
    others = {key for key in taken.after if key[0] != one.server and one.suffix in (None, key[1])}
    waited = any(row["pending"] for key, row in taken.before.items() if key in others)
    left = any(taken.after[key]["missing"] or taken.after[key]["pending"] for key in others)
    filled = one.server in filled_by(taken.steps)
    arrives = _spread(one, taken) or not (left or _stays_alone(one, taken))
    return bool(taken.chosen) and waited and arrives and not filled and not _saved_on(one, taken)


def _stays_alone(one: Finding, taken: Taken) -> bool:
    """True if a server alone holds something of the origin in the end that no other one counts as lacking."""
    model = taken.models.get(one.suffix)
    server = model.servers.get(one.server or "") if model is not None else None
    if model is None or server is None:
        return False
    elsewhere = {number for name, other in model.servers.items() if name != one.server for number in other.holds}
    alone = (model.lots[number] for number in server.holds - elsewhere)
    return any(lot.origin == one.origin and lot.within not in (None, server.generation) for lot in alone)


def _spread(one: Finding, taken: Taken) -> bool:
    """True if all others with a log have each lot of the origin that a server holds, or get it over links that fail now."""
    model = taken.models.get(one.suffix)
    if model is None or one.server not in model.servers:
        return False
    mine = {number for number in model.servers[one.server].holds if model.lots[number].origin == one.origin}
    logging = [other for name, other in model.servers.items() if name != one.server and other.log is not None]
    inside = all(any(model.lots[lot].first <= item <= model.lots[lot].last for lot in mine) for item in one.items)
    spread = bool(logging) and all(mine <= other.holds for other in logging)
    return inside and spread


def _told(one: Finding, shown: Topology, taken: Taken) -> bool:
    """True if the plan has a sentence of its own about it."""
    if one.code == CLEANED_ORIGIN_BACK:
        return (one.suffix, one.origin) in taken.dropped
    # Where servers keep no log nobody is asked to choose (`choices`): a way is tried, or nothing is said of it yet.
    if one.code == LINK_FAILING or (one.code in DECIDED_BY_A_PERSON and one.root and not shown.pulling):
        return True
    return any(_same(need, one) for need in taken.told)


def _same(need: Need, one: Finding) -> bool:
    if need.code != one.code or one.suffix not in (None, need.suffix):
        return False
    if need.link is not None:
        return need.link == one.link
    return need.server == one.server if need.server is not None else need.origin == one.origin


def _keeping(one: Finding, taken: Taken) -> list[str]:
    """The servers that keep an origin although a step has it cleaned away."""
    cleaning = (
        step for step in taken.steps if one.suffix in (None, step.suffix) and one.origin == step.details.get("origin")
    )
    cleaned = one.code in (DEAD, SUPPLIER_NOT_COLLECTED)
    return sorted({name for step in cleaning for name in step.details.get("kept", ())}) if cleaned else []


def _stays_cut_off(one: Finding, shown: Topology, taken: Taken) -> str:
    """The server that a step fills, and that gets nothing over the link of a finding on its record all the same; empty: none."""
    if one.code not in ANCHORS:
        return ""
    links = (link for link in shown.links if (link.supplier, link.name) == (one.server, one.link))
    filled = filled_by(taken.steps)
    stays = (
        link.consumer
        for link in links
        if link.consumer in filled
        if one.suffix in (None, link.suffix)
        if one.server in cut_off(taken.models.get(link.suffix), link.consumer or "")
    )
    return next(stays, None) or ""


def _cleaned(one: Finding, taken: Taken) -> bool:
    """True if steps take what a finding on a vector names out of it; of the replica IDs of one host one stays."""
    stay: dict[str, set[str]] = {}
    for row in one.evidence:
        if not any(_cleans(step, row.get("origin"), one) for step in taken.steps):
            stay.setdefault(row.get("host") or "", set()).add(str(row.get("origin")))
    return bool(one.evidence) and not stay.get("") and all(len(origins) == 1 for origins in stay.values())


def _cleans(step: Step, origin: Any, one: Finding) -> bool:
    if step.details.get("origin") != origin or one.suffix not in (None, step.suffix):
        return False
    here = step.repair == "clean-here" and step.server == one.server
    return here or (step.repair == "clean" and one.server not in step.details.get("behind", ()))


def _gone_with_data(one: Finding, shown: Topology, taken: Taken) -> list[str]:
    """What a server misses and nobody has any more when all is done: its holders were filled, and it was not brought before."""
    model = taken.models.get(one.suffix)
    if model is None or not shown.pulling or not taken.steps or one.code not in (MISSED, HIDDEN):
        return []
    gone = {model.lots[number].last for number in model.gone()}
    items = (item for item in one.items if (one.server, item) not in taken.restored)
    return [item for item in items if shown.system.typed(item) in gone]


def _mended(one: Finding, shown: Topology, taken: Taken) -> bool:
    if (
        one.code == THROWN_AWAY and shown.pulling
    ):  # one position may be of several changes, of which another one is restored
        return False
    if _keeping(one, taken) or _throws_away(one, taken) or _gone_with_data(one, shown, taken) or _given_up(one, taken):
        return False
    if taken.steps and (model := taken.models.get(one.suffix)) is not None:
        if taken.stays(one, model):
            return False
        if taken.settled(one, model):
            return True
    links = [link for link in shown.links if (link.supplier, link.name) == (one.server, one.link)]
    links = [link for link in links if one.suffix in (None, link.suffix)]
    about: set[str | None] = {link.consumer for link in links if link.consumer} or {one.server}
    for need, way in taken.chosen:
        if one.suffix not in (None, need.suffix):
            continue
        alike = need.code == one.code != LINK_DISABLED and need.server in about
        if one.code != ENTRIES_DIFFER and (_same(need, one) or alike):
            return True
        if one.code in taken.mends.get(way.split("-from-")[0], ()) and need.server in about:
            return not _stays_cut_off(one, shown, taken)
    if any(one.code in taken.mends.get(step.repair, ()) and step.server in about for step in taken.steps):
        return not _stays_cut_off(one, shown, taken)
    if one.code == ENTRIES_DIFFER:
        return taken.unlike.get((one.server or "", one.suffix), (1, 1))[0] == 0
    if one.code == SHARED_HOST and _cleaned(one, taken):
        return True
    if one.code == APPLY_RETRY_LOOP and one.server in filled_by(taken.steps):
        to_it = [link for link in shown.links if link.consumer == one.server and one.suffix in (None, link.suffix)]
        blocked = [link.failure for link in to_it if link.failure and link.blocked]
        return all(failure.reason == REFUSED and failure.of_data for failure in blocked)
    pairs = {(link.supplier, link.consumer) for link in links}
    for step in taken.steps:
        for effect in step.effects:
            if (
                effect["do"] == "run"
                and (effect["supplier"], effect["consumer"]) in pairs
                and one.code == LINK_DISABLED
            ):
                return True
    if one.code == CANNOT_SERVE:
        about = {
            link.consumer for link in shown.links if link.supplier == one.server and one.suffix in (None, link.suffix)
        }
    rows = [(key, row) for key, row in taken.after.items() if key[0] in about and one.suffix in (None, key[1])]
    level = bool(rows) and not any(row["missing"] or row["pending"] for _, row in rows)
    if one.code == PENDING and taken.chosen and rows:
        return not any(row["missing"] or row["pending"] > taken.too_young.get(key, 0) for key, row in rows)
    if one.code in (MISSED, HIDDEN, PENDING, CANNOT_SERVE):
        return level
    mine = [(row, taken.before[key]) for key, row in rows if key in taken.before]
    if one.code == ROLLED_BACK:
        waited = any(before["missing"] or before["pending"] for _, before in mine)
        return level and waited and not by_earlier_file(one.evidence)
    if one.code in taken.cured:
        # What is said of several nodes ends when what each of them waits for arrives.
        named = {str(row["node"]) for row in one.evidence if row.get("node")}
        rows += [(key, row) for key, row in taken.after.items() if key[0] in named - about]
        mine = [(row, taken.before[key]) for key, row in rows if key in taken.before]
        if any("more" in row for row in one.evidence):
            return False
    if one.code in {*WAITING_FOR, *taken.cured}:
        # What waited there arrives, so a session begins again, whatever was missing there for good before.
        hidden = any(after["missing"] > before["missing"] for after, before in mine)
        waited = any(before["pending"] for _, before in mine)
        return bool(taken.chosen) and waited and not hidden and not any(row["pending"] for _, row in rows)
    if one.items and one.code == STRANDED:
        return set(one.items) <= {item for _, item in taken.restored} or _delivered(one, taken)
    return bool(one.items) and all((server, item) in taken.restored for server in about for item in one.items)
