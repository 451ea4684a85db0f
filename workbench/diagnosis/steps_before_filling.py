"""What comes before a server is filled, whatever finding advises it.

h cleaned ID 3, a has changes of 3; h is filled from a    h has the data, and drops what is made afterwards: it has to be
                                                          restarted first
a waits for what only the log of c has, which     filled from there, c loses what a waits for, and nothing brings it any more;
lacks changes itself; c is filled from a          it has to be saved first
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.failing_links import FILLS_WHEN_STARTED, LINK_DISABLED, LINK_FAILING
from workbench.diagnosis.only_holders import waits_for_it
from workbench.model import Finding, listed, step

_SWITCH_OFF = re.compile(r"first switch \S+ off, on \S+, until (?P<consumer>\S+) has ")
"""The step of `failing_links` that keeps such a link off."""

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def with_steps_before_filling(context: DetectorContext, findings: Iterable[Finding]) -> list[Finding]:
    """The findings; where one advises to initialise such a server, what comes before it is the step before that."""
    found = list(findings)
    for server, suffix, first in (*_restarts(context), *_saves(context)):
        fills = re.compile(rf"(?<!not )\binitialise {re.escape(server)}(?![\w.-])")
        for number, one in enumerate(found):
            if one.suffix not in (None, suffix):
                continue
            for at, fix in enumerate(one.fix):
                text = fix["repair"] or ""
                if fills.search(text) or (one.server == server and "initialise this server" in text):
                    if f"from the changelog of {server}," not in text and not text.startswith("do not "):  # they say so
                        found[number] = replace(one, fix=(*one.fix[:at], first, *one.fix[at:]))
                    break
    return off_before_writable(request_first(found))


def request_first(findings: list[Finding]) -> list[Finding]:
    """The findings; before a link is switched on or off, its supplier gives up the request to fill that it keeps."""
    kept = {(one.server, one.suffix, one.link) for one in findings if one.code == FILLS_WHEN_STARTED}
    return [
        replace(one, fix=(_request_first(one.link or ""), *one.fix))
        if one.code in (LINK_DISABLED, LINK_FAILING) and (one.server, one.suffix, one.link) in kept
        else one
        for one in findings
    ]


def _request_first(link: str) -> Mapping[str, str | None]:
    why = f"as soon as {link} is started anew all data of its consumer may be replaced"
    return step(f"first do what {FILLS_WHEN_STARTED} says on {link}", why)


def off_before_writable(findings: list[Finding]) -> list[Finding]:
    """The findings; a server is not made writable before the links are off whose sessions would pass over changes there."""
    found = list(findings)
    for failing in findings:
        first = failing.fix[0] if failing.code == "LINK_FAILING" and failing.fix else None
        if first is None or not (named := _SWITCH_OFF.match(first["repair"] or "")):
            continue
        for number, one in enumerate(found):
            at = next((at for at, fix in enumerate(one.fix) if _writable(fix["repair"] or "", named["consumer"])), None)
            if at is not None and one.link != failing.link:
                found[number] = replace(one, fix=(*one.fix[:at], first, *one.fix[at:]))
    return found


def _writable(repair: str, server: str) -> bool:
    return f"make it writable, on {server}:" in repair


def _restarts(context: DetectorContext) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Server, suffix and step, of those that cleaned an origin and were not restarted."""
    for (server, suffix), origins in sorted(context.verdicts.remembers.items(), key=str):
        unsure = any(one.log_ends for one in origins.values())
        yield (
            server,
            suffix,
            step(
                f"restart {server} first, and collect again" + (", unless it was restarted since" if unsure else ""),
                f"it cleaned origin {listed(sorted(origins))}, and ignores that until it is restarted: filled before, it gets "
                "the data, and drops what is made afterwards",
            ),
        )


def _saves(context: DetectorContext) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Server, suffix and step, of those that have what others wait for."""
    for (server, suffix), waiting in context.once(waits_for_it).items():
        of = listed(waiting, "and")
        yield (
            server,
            suffix,
            step(
                f"first save from {server} what {of} {'waits' if len(waiting) == 1 else 'wait'} for (REINIT_REQUIRED, "
                "PENDING_CHANGES), from its log or its entries",
                "an initialisation throws it away, and no server that lacks nothing has it",
            ),
        )
