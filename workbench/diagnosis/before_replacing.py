"""What advice leaves unsaid: what only the server itself holds goes with its data, and a restart breaks a filling off.

s2 misses a change of s1 and alone holds 3 of its own      "initialise s2 from s1" throws the 3 away
s4 drops changes until it is restarted, and is being filled  "restart s4" breaks the filling off: s4 has no data then
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.behind_links import alone_without_log
from workbench.diagnosis.left_in_logs import LOG_ONLY
from workbench.diagnosis.relayed_changes import INITIALISATION_RUNNING
from workbench.model import Finding, counted, listed

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Topology

_SAYS_SO = ("save", "throws away", "only {} holds", "are lost", "would lose")
"""Words of advice that tells already what is lost by it."""


def with_what_goes(context: DetectorContext, findings: Iterable[Finding]) -> list[Finding]:
    """The findings; advice to initialise a server says which changes that server alone holds, if it does not yet."""
    alone: dict[tuple[str, str | None], set[tuple[str, str]]] = {}
    for row in context.verdicts.stranded:
        if not row.get(LOG_ONLY):
            alone.setdefault((row["server"], row["suffix"]), set()).add((row["origin"], row["position"]))
    least = "at least " if "stranded" in context.verdicts.cut() else ""
    found = list(findings)
    for (server, suffix), changes in sorted(alone.items(), key=str):
        found = _said(
            context, found, server, suffix, f"{least}{counted(len(changes))}", len(changes), "STRANDED_CHANGE"
        )
    for one in context.topology.replicas:
        if (one.server, one.suffix) not in alone and (count := alone_without_log(context, one.server, one.suffix)):
            found = _said(context, found, one.server, one.suffix, counted(count), count, "PENDING_CHANGES")
    return found


def _said(
    context: DetectorContext, found: list[Finding], server: str, suffix: str | None, changes: str, count: int, code: str
) -> list[Finding]:
    fills = re.compile(rf"(?<!not )\b{context.topology.system.refill} {re.escape(server)}(?![\w.-])")
    goes = f"to {context.topology.system.refill} {server} throws away {changes} that only {server} holds: save "
    goes += f"{'it' if count == 1 else 'them'} first ({code})"
    for number, one in enumerate(found):
        if one.suffix in (None, suffix):
            fixes = tuple(_with(fix, goes) if _hides(fix, fills, server) else fix for fix in one.fix)
            found[number] = replace(one, fix=fixes)
    return found


def fillings_by(findings: Iterable[Finding], shown: Topology, suffix: str | None = None) -> dict[str, set[str]]:
    """Servers that take part in a filling that runs -> the servers that are being filled then: a restart breaks it off.

    suffix  only of this one
    """
    found: dict[str, set[str]] = {}
    for one in findings:
        if one.code != INITIALISATION_RUNNING or not one.server or (suffix and one.suffix not in (None, suffix)):
            continue
        over = {row.get("name") for row in one.evidence}
        links = [link for link in shown.links if (link.consumer, link.suffix) == (one.server, one.suffix)]
        for server in {one.server, *(link.supplier for link in links if link.name in over)}:
            found.setdefault(server, set()).add(one.server)
    return found


def restart_after_filling(findings: Iterable[Finding], shown: Topology) -> list[Finding]:
    """The findings; what advises to restart a server that is being filled, or fills another one, says it for after that."""
    found = list(findings)
    running = fillings_by(found, shown)
    for number, one in enumerate(found):
        fixes = tuple(_later(fix, running) for fix in one.fix)
        found[number] = replace(one, fix=fixes)
    return found


def _hides(fix: Mapping[str, Any], fills: re.Pattern[str], server: str) -> bool:
    said = " ".join(filter(None, fix.values()))
    return bool(fills.search(fix["repair"] or "")) and not any(words.format(server) in said for words in _SAYS_SO)


def _with(fix: Mapping[str, Any], caution: str) -> Mapping[str, Any]:
    return {**fix, "caution": "; ".join(filter(None, (fix["caution"], caution)))}


def _later(fix: Mapping[str, Any], running: Mapping[str, set[str]]) -> Mapping[str, Any]:
    said = re.match(r"restart (.+?)(?:, (?:if|unless) |[:;(]|$)", fix["repair"] or "")
    names = sorted(
        {
            filled
            for name, some in running.items()
            if said and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", said[1])
            for filled in some
        }
    )
    if not names:
        return fix
    them = listed(names)
    after = {**fix, "repair": f"wait until {them} {'is' if len(names) == 1 else 'are'} filled ({INITIALISATION_RUNNING}), then "
             f"{fix['repair']}"}  # fmt: skip
    return _with(
        after, f"a restart breaks the filling of {them} off, which {'has' if len(names) == 1 else 'have'} no data then"
    )
