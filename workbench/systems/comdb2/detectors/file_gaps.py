"""Nodes that need a log file which their source has deleted, or is about to: who still has it, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step
from workbench.replication.tier.diagnosis.log_files import (
    about_to_lose,
    above_with_its_file,
    listing_it,
    misled,
    needed_file,
    source_has,
    untold_holders,
)
from workbench.replication.tier.diagnosis.other_histories import fed_with_another, is_alike, of_another_history
from workbench.replication.tier.diagnosis.registering import pending_donors
from workbench.replication.tier.diagnosis.sole_suppliers import (
    Served,
    cut_off_without,
    left_of,
    served_where_it_hangs,
)
from workbench.replication.tier.diagnosis.tree_rows import lacking_its_file, senders
from workbench.replication.tier.rules.conditions import CONNECTED
from workbench.rules.assumptions import ASKED_IN_ORDER, SAME_HISTORY
from workbench.systems.comdb2.detectors.shown import each, evidence_of, place_text, some, span_text, tiers_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

LEFT_BELOW = "left_below"
"""Key of the evidence of a node that is left where it hangs."""


def _start_first(tiers: Tiers, silent: list[str], name: str, file: int) -> Iterator[dict[str, str | None]]:
    """Nodes that do not answer and have the file that one needs: to start one of them may spare the copy.

    Who pulls from one of them goes on by itself then. The registry may hide them all: behind a node that lacks the file.
    """
    if not silent:
        return
    start = f"first start {some(silent[:3])}, or see why {'it does' if len(silent) == 1 else 'they do'} not answer"
    why = f"{some(silent)} had log file {file} when {'it' if len(silent) == 1 else 'they'} last told, and nobody else has it"
    place, offer = tiers.place(name), tiers.offer(name, silent)
    offered = offer is None or not {one.name for one in offer.union}.isdisjoint(silent)
    pulled = [one for one in silent if place and one in place.parents and tiers.states[name] in CONNECTED]
    hidden = f"the registry would offer {name} no such node: {_HIDES}"
    if pulled:
        keep = None if offered else f"do not let {name} register anew: {hidden}"
        yield step(f"{start}: {name} pulls from {some(pulled)}, and goes on then", why, keep)
    elif offered:
        yield step(f"{start}, and let {name} register anew", why)
    else:
        database, _, host = silent[0].partition("@")
        line = f"replicate_from {database} @{host} in its configuration, then start it"
        yield step(f"{start}, and let {name} replicate from {silent[0]}: {line}", f"{why}; {hidden}")


def _ask_first(listing: list[str], name: str) -> Iterator[dict[str, str | None]]:
    """Nodes of which a list of log files alone was collected, or not even that: whether they answer and have the file nothing
    tells.
    """
    if listing:
        yield step(
            f"first ask {listing[0]} where it stands and which log files it has, start it if it does not answer, and diagnose "
            "anew",
            f"{name} may be brought up to date from there, and need not be copied",
        )


def _ask_again(tiers: Tiers, name: str) -> Iterator[dict[str, str | None]]:
    """That the last report of a node is of a place before the one that it had answered."""
    if tiers.seen.fell_back(name):
        yield step(
            f"first ask {name} once more where it stands, and diagnose anew",
            f"it had answered {place_text(tiers.seen.probed(name))}, and reported {place_text(tiers.last(name))} after that",
        )


_HIDES = "its query begins at the source and drops all below a node without the file"


def cannot_go_on(context: DetectorContext) -> Iterator[Finding]:
    """Nodes that need a log file which their source has deleted, or is about to."""
    tiers = tiers_of(context)
    for source, name in each(tiers):
        last, gap = tiers.last(name), tiers.gap(name)
        if last is None or not tiers.needs(name) or name in tiers.seen.cut_since or name in tiers.doubts:
            continue
        firsts = tiers.source_firsts(source)
        donors, silent = tiers.donors(name)
        fit = [one for one in donors if _may_be_offered(tiers, one)]
        items = (place_text(last) or "",)
        file = needed_file(tiers, name) or last[0]
        proof = evidence_of(tiers, name) | {"needs_file": file, "source_first_file": min(firsts, default=None)}
        proof |= {"served_by": ", ".join(donors) or None, "served_by_silent": ", ".join(silent) or None}
        evidence = ({key: value for key, value in proof.items() if value is not None},)
        if gap == "now":
            coming_back, listing = tiers.coming_back(name), listing_it(tiers, name)
            untold = untold_holders(tiers, name)
            had = (
                f"; {some(silent)} ha{'s' if len(silent) == 1 else 've'} it and do{'es' if len(silent) == 1 else ''} not answer"
                if silent
                else ""
            )
            yield Finding(
                "LOG_GAP",
                "error",
                f"{name} needs log file {file}, and {_nobody_has(tiers, name, last)}: the source "
                f"{source_has(tiers, source, last[0])}{had}"
                + (
                    f"; the list of the log files of {some(listing)} shows it, and no place of that node is known"
                    if listing
                    else ""
                )
                + (
                    f"; nothing tells which log files {some(untold)} ha{'s' if len(untold) == 1 else 've'}"
                    if untold
                    else ""
                ),
                evidence=evidence,
                assumes=(ASKED_IN_ORDER,) if tiers.seen.fell_back(name) else (),
                fix=(
                    *_ask_again(tiers, name),
                    *_ask_first([*listing, *untold], name),
                    *_start_first(tiers, coming_back, name, file),
                    rebuild(tiers, name),
                ),
                server=name,
                origin=source,
                items=items,
            )
            if coming_back or listing or untold or tiers.seen.fell_back(name):
                continue  # who has the file may come back: that is first
            yield Finding(
                "REINIT_REQUIRED",
                "error",
                f"{name} can be brought up to date from no log: it has to be rebuilt from a copy of another node",
                evidence=evidence,
                fix=(rebuild(tiers, name),),
                server=name,
                origin=source,
                items=items,
            )
        elif served := served_where_it_hangs(tiers, name):
            yield _left_where_it_hangs(tiers, name, source, served)
        elif gap == "source":
            yield Finding(
                "LOG_GAP",
                "error",
                f"{name} needs log file {file}, which its source "
                f"{'has deleted' if file == last[0] else 'does not have'} (it {source_has(tiers, source, last[0])}); "
                f"{some(donors)} still ha{'s' if len(donors) == 1 else 've'} it"
                + ("" if fit else f", and the registry would offer none of them: {_why_unfit(tiers, donors)}"),
                evidence=evidence,
                assumes=_of_one_log(tiers, name, source, fit),
                fix=(
                    *_look_again(tiers, name),
                    *_from_fit_donor(tiers, name, source, fit),
                    rebuild(tiers, name),
                ),
                server=name,
                origin=source,
                items=items,
            )
        elif tiers.states[name] in CONNECTED and lacking_its_file(tiers, name) and not senders(tiers, name):
            yield Finding(
                "LOG_GAP",
                "warning",
                f"{name} needs log file {last[0]}, and what it pulls from has deleted it; {some(donors)} still "
                f"ha{'s' if len(donors) == 1 else 've'} it",
                evidence=evidence,
                server=name,
                origin=source,
                items=items,
                fix=(
                    step(
                        f"let {name} register anew (exec procedure sys.cmd.send('physrep_force_registration') on it)",
                        "where it hangs it gets nothing any more, and looks connected",
                        None
                        if tiers.kept_for(name) or tiers.kept_by_others(name)
                        else f"be quick: nothing {_keeps(tiers)} the file from being deleted elsewhere, too",
                    )
                    if tiers.offered(name)
                    else _from_donor(tiers, name, source, (fit or donors)[0]),
                ),
            )
        elif about_to_lose(tiers, name):
            left, keeping = tiers.lost_in(name), list(tiers.kept_by_others(name))
            when = f", in about {span_text(left)} at the speed of the last two snapshots" if left is not None else ""
            yield Finding(
                "LOG_GAP",
                "warning",
                f"{name} needs log file {last[0]}, which the source keeps for {some(keeping)} alone: once "
                f"{'that holds' if len(keeping) == 1 else 'these hold'} it no more, nobody can serve {name}"
                if keeping
                else f"{name} needs log file {last[0]}, and the source has files from {min(firsts)} on: soon nobody "
                f"can serve it{when}",
                evidence=evidence,
                fix=(
                    step(
                        f"bring {name} back to its source before "
                        f"{'the row' if len(keeping) == 1 else 'a row'} of {some(keeping)} changes"
                        if keeping
                        else f"bring {name} back to its source before the next files are deleted",
                        _why_not_kept(tiers, source, name),
                        "on the source MIN_KEEP_LOGS and MIN_KEEP_LOGS_AGE keep more files while this lasts",
                    ),
                ),
                server=name,
                origin=source,
                items=items,
            )


def _look_again(tiers: Tiers, name: str) -> Iterator[dict[str, str | None]]:
    """That the node from which one pulls by its row has the file, though it may wait for a source itself."""
    if soon := pending_donors(tiers, name):
        yield step(
            f"first collect again in a minute: once {soon[0]} is Active, let {name} replicate from there",
            f"{soon[0]} has all that its source has, and is Pending: a node that finds a source is that for seconds",
        )
    if having := above_with_its_file(tiers, name):
        yield step(
            f"first collect the tables of the registry and the answers of the nodes once more, and see whether {name} goes on",
            f"{having[0]}, from which it pulls by its row, answers and has log file {having[1]}",
        )


def _left_where_it_hangs(tiers: Tiers, name: str, source: str, served: Served) -> Finding:
    """A node that gets its file from the node that it pulls from: nothing is lacking, as long as it goes on to pull there."""
    offered, (file, sending, until) = tiers.offered(name), served
    says = (
        f"{name} needs log file {file}, and the source {source_has(tiers, source, file)}; {some(sending)}, from which it pulls, "
        f"ha{'s' if len(sending) == 1 else 've'} it and can send it"
    )
    alone = f". If {name} registers anew before it is past file {until}, the registry offers it no node that has what it needs"
    return Finding(
        "LOG_GAP",
        "info" if offered else "warning",
        says if offered else f"{says}{alone}",
        server=name,
        origin=source,
        items=(place_text(tiers.last(name)) or "",),
        evidence=(evidence_of(tiers, name) | {"needs_file": file, LEFT_BELOW: ", ".join(sending)},),
        fix=(
            step(
                f"leave {name} where it hangs until it is past file {until}: do not restart it, and do not let it register anew",
                f"the registry would offer it {some(offered)}, which may have deleted the file by then"
                if offered
                else _HIDES,
                f"it registers anew by itself, too: see that {some(sending)} keeps its log files until then (MIN_KEEP_LOGS)",
            ),
        ),
    )


def _nobody_has(tiers: Tiers, name: str, needed: tuple[int, int]) -> str:
    """That no node that answers helps one; those that have its file and cannot go on themselves are named."""
    stuck = [one for one in tiers.members[tiers.source_of(name) or ""] if one != name and tiers.has(one, needed)]
    if stuck := [one for one in stuck if tiers.there(one)]:
        many = len(stuck) > 1
        return (
            f"of the nodes that answer only {some(stuck)} ha{'ve' if many else 's'} it, and cannot go on "
            f"{'themselves' if many else 'itself'}"
        )
    return "no node that answers has it any more and goes further"


def _may_be_offered(tiers: Tiers, name: str) -> bool:
    """Whether a registry that is asked for this very node would offer it."""
    row = tiers.seen.nodes.get(name)
    return row is not None and row["state"] not in tiers.told.rules.unfit


def _of_one_log(tiers: Tiers, name: str, source: str, fit: list[str]) -> tuple[str, ...]:
    """What is taken for granted of a donor whose log was not held against that of the source, where others have another one."""
    compared = all(is_alike(tiers, source, one) for one in fit)
    return () if compared or not of_another_history(tiers, source) - {name} else (SAME_HISTORY,)


def _why_unfit(tiers: Tiers, donors: list[str]) -> str:
    """Why the registry offers none of some nodes."""
    rowless = [one for one in donors if one not in tiers.seen.nodes]
    out = (
        "by their rows they wait or were taken out"
        if not rowless
        else "by their rows the others wait or were taken out"
    )
    no_row = [f"it has no row of {some(rowless)}"] if rowless else []
    return ", and ".join([*no_row, *([out] if len(rowless) < len(donors) else [])])


def _from_fit_donor(tiers: Tiers, name: str, source: str, fit: list[str]) -> Iterator[dict[str, str | None]]:
    """The first donor whose log is not known to be another one than that of the source; where there is none, what comes first."""
    sound = [one for one in fit if one not in tiers.logs.spoilt and not fed_with_another(tiers, one)]
    apart = fed_with_another(tiers, fit[0]) if fit else []
    if sound:
        yield _from_donor(tiers, name, source, sound[0])
    elif fit and fit[0] not in tiers.logs.spoilt:
        yield step(
            f"do what LOG_DIVERGED says of {apart[0]}, and let {name} pull from none of {some(fit)} before",
            f"{fit[0]} gets its log from {apart[0]}, which has another one than that of {source}"
            if apart[0] != fit[0]
            else f"the log of {fit[0]} is another one than that of {source}",
        )
    elif fit:
        yield step(
            f"let {name} pull from none of {some(fit)} before that is mended which is said of the log of {fit[0]}",
            f"the log of {fit[0]} lacks records, or has other ones than that of {source}: who pulls from there gets these, or "
            "goes no further",
        )


def _from_donor(tiers: Tiers, name: str, source: str, donor: str) -> dict[str, str | None]:
    database, _, host = donor.partition("@")
    return step(
        f"let {name} replicate from {donor} at once: replicate_from {database} @{host} in its configuration, then start it",
        misled(tiers, name) or f"the registry would not offer that node: {_HIDES}",
        f"first see that the donor still has the file: nothing {_keeps(tiers)} it from deleting it"
        + (
            f" before {name} pulls from it" if tiers.told.rules.holding == "Active" and tiers.told.local(source) else ""
        ),
    )


def _keeps(tiers: Tiers) -> str:
    return "keeps" if tiers.holding_is_known else "is known to keep"


def _why_not_kept(tiers: Tiers, source: str, name: str) -> str:
    """Why the source does not keep the files that a node needs."""
    rules = tiers.told.rules
    if not tiers.told.local(source):
        return "where the registry is in another database, no version keeps log files for a node that lags"
    if not tiers.holding_is_known:
        return "nothing tells which version the nodes run, and whether it keeps log files for a node that lags"
    if rules.holding is None:
        return "nothing in this version keeps log files for a node that lags"
    state = (tiers.seen.nodes.get(name) or {}).get("state")
    return (
        f"log files are kept for rows below the source whose state is {rules.holding}, spelled exactly so; "
        + (f"that of {name} is {state}" if state else f"{name} has none")
        if state != rules.holding
        else f"log files are kept for rows that hang on the source, and from the file on that they name: {name} is not counted"
    )


def rebuild(tiers: Tiers, name: str) -> dict[str, str | None]:
    """Which node to copy, and how."""
    left, siblings = left_of(tiers), tiers.copied_from(name)
    siblings.sort(key=lambda one: bool(cut_off_without(left, {one})))
    fed = cut_off_without(left, siblings[:1])
    return step(
        f"rebuild {name} from a copy of {siblings[0] if siblings else 'a node that is up to date'}, which is "
        "shut down cleanly for the "
        "time of copying",
        "a log cannot be brought up to date without the files in between",
        "clear the registry of the old row of the node first, and copy nothing of a node that runs"
        + (
            f"; not before {some(fed)} {'is' if len(fed) == 1 else 'are'} past log file {left[fed[0]].until}: "
            f"{'it pulls' if len(fed) == 1 else 'they pull'} from {siblings[0]}, and nobody else sends what comes before"
            if fed
            else ""
        ),
    )
