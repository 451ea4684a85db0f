"""What a plan tells of its model: which changes by server and origin, and what each server lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.diagnosis.detector_context import DetectorContext
from workbench.diagnosis.plan_counts import PlanCounts
from workbench.model import Finding, System, counted
from workbench.repair.plan_types import EvaluatedRepair, ProposedRepair
from workbench.rules.repair_model import ChangeGroup, MissingAt, Model
from workbench.topology.topology import Replica

_ENTRIES = "entry_state"
"""The kind of evidence that collected entries are."""

TARGETS_SHOWN = 100
"""Of what was restored, so many entries are compared afterwards, for each server and origin."""


def changes_by_origin(
    model: Model, lacks: Iterable[MissingAt], suffix: str | None, system: System
) -> list[dict[str, Any]]:
    """By server and origin: how many changes, from where to where, and the entries that they are about, as far as is known.

    Of those that the server has in this model and of those that it lacks there are rows of their own (`has`).
    """
    some: dict[tuple[str, str, bool], list[ChangeGroup]] = {}
    for lack in lacks:
        lot = model.lots[lack.lot]
        some.setdefault((lack.server, lot.origin, lack.lot in model.servers[lack.server].holds), []).append(lot)
    rows = []
    for (server, origin, has), lots in sorted(some.items()):
        lots.sort(key=lambda lot: lot.first)
        about = {
            "server": server,
            "suffix": suffix,
            "origin": origin,
            "count": sum(lot.changes for lot in lots),
            "has": has,
        }
        ends = {"first": system.show(lots[0].first), "last": system.show(lots[-1].last)}
        targets = list(dict.fromkeys(lot.entry for lot in lots if lot.entry and not lot.renames))[:TARGETS_SHOWN]
        # An entry that is changed no more after it was made has to be there.
        made = {lot.entry: lot.creates for lot in lots if lot.entry}
        rows.append({**about, **ends, "targets": targets, "created": [target for target in targets if made[target]]})
    return rows


def suffixes_of(context: DetectorContext, findings: Sequence[Finding], replicas: Sequence[Replica]) -> list[str | None]:
    """The suffixes to plan for; empty: nothing is known of any server.

    Of replicas of a stream that tell how far they applied, and have no log, findings may say what to do by hand.
    """
    found = list(dict.fromkeys(replica.suffix for replica in replicas))
    streams = context.verdicts.streams
    applying = {one.server for one in streams.applied} if streams is not None else set[str]()
    grave = {finding.server for finding in findings if finding.severity != "info"}
    return found or ([None] if applying & grave else [])


def arriving(counts: PlanCounts, running: Model, waits: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Which servers get how many changes over the links that run, as they do in `running`; and how many more by claims alone.

    waits   for how many changes each server waits by the diagnosis that somebody would send: it knows more than the model
    """
    model, coming = counts.model, dict[str, list[MissingAt]]()
    for lack in model.pending() & running.held():
        coming.setdefault(lack.server, []).append(lack)
    newer = counts.newer(running)
    for name in sorted({*coming, *newer} & waits.keys()):
        mine, (come, stay) = coming.get(name, []), newer.get(name, (0, 0))
        whole = bool(mine) and len(mine) == sum(lack.server == name for lack in model.pending())
        claimed = model.changes(running.by_claims(mine, model))
        if count := waits[name] - stay if whole else model.changes(mine) + come:
            yield name, max(0, count - claimed), min(count, claimed)


def hidden_without_steps(model: Model) -> frozenset[MissingAt]:
    """What waits now, and would be passed over as life goes on, whatever a plan does.

    Whether that comes to pass depends on what the servers do before their links are mended: until then it waits. Not so what a
    server answered and did not apply: the next change goes past it.
    """
    later = model.copy()
    later.settle()
    waits = later.pending()
    later.go_on()
    passed = waits & later.missing()
    return frozenset(x for x in passed if later.lots[x.lot].last not in later.servers[x.server].unapplied)


def standing_of(
    model: Model,
    suffix: str | None,
    lost: Collection[int],
    waits: Collection[MissingAt] = (),
    before: Collection[MissingAt] = (),
) -> list[dict[str, Any]]:
    """What each server lacks, in changes; not what a server threw away that had it: that is what the plan loses.

    lost    what no server had any more at the beginning; it is lacking all the same
    waits   what is to count as waiting where it is lacking
    before  what servers missed before anything was thrown away
    """
    thrown_away = model.gone().difference(lost)
    lacking: dict[str, dict[str, list[MissingAt]]] = {
        name: {"missing": [], "pending": []} for name in sorted(model.servers)
    }
    for what, some in (("missing", model.missing()), ("pending", model.pending())):
        for lack in some:
            if lack.lot in model.given and (lack.lot not in thrown_away or lack in before):
                lacking[lack.server]["pending" if lack in waits else what].append(lack)
    return [
        {"server": name, "suffix": suffix} | {what: model.changes(lacks) for what, lacks in mine.items()}
        for name, mine in lacking.items()
    ]


def servers_told(
    context: DetectorContext, findings: Sequence[Finding], replicas: Iterable[Replica]
) -> list[dict[str, Any]]:
    """The servers of a plan, a row of each: see `Plan.servers`."""
    return [
        {
            "server": one.server,
            "suffix": one.suffix,
            "origin": one.origin,
            "generation": one.generation,
            "left_out": _need_not_have(context, one.server, one.suffix),
            "conflicts": _conflicts(findings, one.server, one.suffix) if _ENTRIES in one.evidence else None,
            "vector": _claimed(one, context.topology.system),
        }
        for one in replicas
    ]


def _claimed(replica: Replica, system: System) -> dict[str, str]:
    """Origin -> the highest position that a server claims or shows; nothing of an origin of which its vector claims nothing:

    that was cleaned from it, or its data went, and the log is of before.
    """
    seen = replica.seen()
    known = {origin for origin, span in replica.vector.items() if span.max} if replica.vector else {*seen}
    return {origin: system.show(span.max) for origin, span in sorted(seen.items()) if span.max and origin in known}


def _conflicts(findings: Iterable[Finding], server: str, suffix: str | None) -> int:
    """How many entries of a server had a mark of conflict when its entries were collected."""
    rows = [
        row
        for one in findings
        if (one.code, one.server) == ("CONFLICT_ENTRIES", server)
        if one.severity != "info" and one.suffix in (None, suffix)
        for row in one.evidence
    ]
    return sum(int(row.get("more", 1)) for row in rows)


def _need_not_have(context: DetectorContext, server: str, suffix: str | None) -> list[str]:
    """The attributes that no way to a server lets through; where no entries tell, whatever some link leaves out."""
    for contents in context.verdicts.contents:
        if contents.suffix == suffix and server in contents.fractional.need_not:
            return sorted(contents.fractional.need_not[server])
    some = [row.get("excluded") or "" for (_, of, _), row in context.statuses().items() if of == suffix]
    return sorted({word for text in some for word in text.lower().split()})


def why_chosen(chosen: EvaluatedRepair, course: EvaluatedRepair, draft: ProposedRepair, ways: Sequence[str]) -> str:
    """Why a way became part of the plan, in words."""
    if draft.way in ways:
        return "you asked for it, and it is proven"
    lost = (
        f"loses {chosen.lost:,} ({chosen.saved:,} saved to a file)"
        if chosen.lost
        else f"loses {'no change beside what it costs' if course.costs else 'none'}"
    )
    if not chosen.restored:
        return (
            f"it {lost}, and is the gentlest way that was proven"
            if chosen.lost
            else "it is the gentlest way that was proven"
        )
    return f"it restores {counted(chosen.restored)}, {lost}, and is the gentlest way that does"


def no_worse(row: dict[str, Any], before: Iterable[Mapping[str, Any]], joined: Collection[str]) -> dict[str, Any]:
    """The row of a server when all is done: it misses and waits for no more than now, whatever else the model knows of.

    joined   the servers that took data of another beginning, and lack what belongs to these data
    """
    if row["server"] in joined:
        return row
    now = next((x for x in before if (x["server"], x["suffix"]) == (row["server"], row["suffix"])), row)
    most = now["missing"] + now["pending"]
    missing = min(row["missing"], most)
    return row | {"missing": missing, "pending": min(row["pending"], most - missing)}


def joining(before: Model, after: Model) -> set[str]:
    """The servers that took data of another beginning."""
    return {name for name, x in after.servers.items() if x.generation != before.servers[name].generation}
