"""Servers that a broken total initialisation left without whole data, as the agreements that lead to them tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, step
from workbench.rules.initialisations import ABORTED, Initialisation
from workbench.systems.ds389.logged.initialisations import left_unfilled
from workbench.systems.ds389.logged.link_fixes import initialise

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def initialisation_aborted(situation: Situation) -> Iterator[Finding]:
    """Consumers whose last initialisation broke off or did not begin, where nothing tells that they were filled since.

    The server itself need not have been collected: the status of the agreement alone tells it. One whose own vector was
    collected is whole if it exchanges changes with the others.
    """
    statuses = situation.statuses()
    empty = left_unfilled(situation.case, situation.topology.links, statuses)
    for (consumer, suffix), one in sorted(empty.items(), key=lambda item: (item[0][1] or "", item[0][0])):
        replica = situation.replica(consumer, suffix)
        unrelated = any(
            row["unrelated"] and (row["consumer"], row["suffix"]) == (consumer, suffix) for row in situation.pairs
        )
        if replica and replica.claims and not (unrelated and one.outcome == ABORTED):
            continue
        row = statuses[one.supplier, suffix, one.link]
        about: Any = {key: row.get(key) for key in ("file", "offset", "name", "init_status")}
        about |= {key: row[key].isoformat() for key in ("init_started_at", "init_ended_at") if row.get(key)}
        told: Any = {"server": consumer, "link": one.link, "suffix": suffix, "evidence": (about,)}
        found = (_aborted if one.outcome == ABORTED else _not_begun)(situation, one, row["init_status"], told)
        # Of a collected one UNRELATED_DATA is the root, and this is why.
        yield replace(found, severity="warning", root="") if unrelated else found


def _aborted(situation: Situation, one: Initialisation, status: str, told: dict[str, Any]) -> Finding:
    broke = f"the initialisation of {one.consumer} by {one.supplier} was aborted{_at(one)}"
    down = one.consumer in situation.topology.down
    silent = f"; {one.consumer} did not answer when it was collected, and to start it does not fill it" if down else ""
    return Finding(
        "INITIALISATION_ABORTED",
        "error",
        f"{broke} ({status}): it had replaced the old data of "
        f"{one.consumer}, and the new data did not arrive whole; no later initialisation is known to have succeeded{silent}",
        **told,
        root=f"{broke}: {one.consumer} has to be initialised again",
        fix=(_again(situation, one, told["suffix"], f"start {one.consumer}, then " if down else ""),),
    )


def _not_begun(situation: Situation, one: Initialisation, status: str, told: dict[str, Any]) -> Finding:
    fix = _again(situation, one, told["suffix"], f"see whether {one.consumer} still has to be initialised; if so, ")
    return Finding(
        "INITIALISATION_ABORTED",
        "warning",
        f"{one.supplier} was to initialise {one.consumer} and could not begin{_at(one)} ({status}); no later initialisation is "
        f"known to have succeeded, and whether {one.consumer} has whole data was not collected",
        **told,
        fix=(fix,),
    )


def _at(one: Initialisation) -> str:
    return f" at {one.at:%Y-%m-%d %H:%M:%S} UTC" if one.at else ""


def _again(situation: Situation, one: Initialisation, suffix: str | None, first: str) -> dict[str, Any]:
    what = suffix or "SUFFIX"
    return step(
        f"{first}initialise {one.consumer} from {one.supplier}, {initialise(one.supplier, what, one.link)}",
        f"{one.consumer} takes no changes until an initialisation succeeds; no session delivers the data that did not arrive"
        if one.outcome == ABORTED
        else "an initialisation that did not begin is not tried again by itself",
        f"an initialisation replaces all data of {what} on {one.consumer}; find out first why this one ended",
    )
