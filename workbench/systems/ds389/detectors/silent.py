"""Servers that ran when they were collected, and then did not answer in time, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.model import Finding, listed, step
from workbench.systems.ds389.session_log.addresses import addresses_of
from workbench.systems.ds389.session_log.fillings_begun import fillers

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_AT_THE_END, _NO_CONNECTION = "read again at the end: ", "no connection: "
"""What it writes down of one that it had read and could not reach when all were read."""
_SEARCH = re.compile(r"the search below (?P<base>.+?) was refused, (?P<said>\S+ \((?P<code>\d+)\))")
_NO_RIGHT, _NOT_THERE = ("8", "50"), "32"
"""Results that tell of whoever asked, and not of the data; and that of an entry that is not there."""


def no_answer_in_time(context: DetectorContext) -> Iterator[Finding]:
    """A server that answers some questions and not others may hang: then what is on the way to it does not arrive."""
    for one in context.topology.readings:
        late = one.unanswered
        if not late:
            continue
        asked = "a question" if one.server not in context.topology.down else "any question"
        yield Finding(
            "NO_ANSWER_IN_TIME",
            "warning",
            f"{one.server} did not answer {asked} in time when it was collected: it hangs, or is too busy. While it hangs "
            "nothing arrives there, whatever the links and the lists of changes show",
            server=one.server,
            evidence=tuple({"server": one.server, "text": text, "at": one.began.isoformat()} for text in late),
            root=f"{one.server} did not answer in time when it was collected: it may hang",
            fix=(
                step(
                    f"see whether {one.server} hangs: write to it, and look for operations without a RESULT at the end of its "
                    "access log; if it does, restart it (`dsctl INSTANCE restart`), and collect again",
                    "a session waits for a consumer that hangs, and its supplier shows the status of the session before",
                    "a server that was asked to stop and hangs has to be killed: its database recovers at the start",
                ),
            ),
        )


def stopped_meanwhile(context: DetectorContext) -> Iterator[Finding]:
    """A server that was read, and could not be reached any more when all were read: its logs may end before they tell why."""
    for one in context.topology.readings:
        gone = [text for text in one.failed if text.startswith(f"{_AT_THE_END}{_NO_CONNECTION}")]
        if not gone or one.server in context.topology.down:
            continue
        yield Finding(
            "STOPPED_MEANWHILE",
            "error",
            f"{one.server} answered when it was read, and took no connection when all servers were read: it has stopped, or was "
            "started again at that moment. While it does not run nothing arrives there and nothing comes from it",
            server=one.server,
            evidence=tuple({"server": one.server, "text": text, "at": one.ended.isoformat()} for text in gone),
            root=f"{one.server} stopped while the servers were read: it takes no connection",
            fix=(
                step(
                    f"see whether {one.server} runs (`dsctl INSTANCE status`); if not, read the end of its errors log, mend what "
                    "it says, start it (`dsctl INSTANCE start`), and collect again",
                    "what was read of it is from before it stopped",
                ),
            ),
        )


Refusal = tuple[str, str, datetime]
"""The result, the note of `collect`, and when the server was read."""


def refused_searches(context: DetectorContext) -> dict[tuple[str, str | None], Refusal]:
    """Server and suffix -> how the server refused to show its data; one that claims nothing and shows no entry is just empty."""
    return {key: refusal for key, (refusal, empty) in context.once(_refusals).items() if not empty}


def empty_ones(context: DetectorContext) -> set[tuple[str, str | None]]:
    """The servers and suffixes that claim nothing and do not even have the entry of the suffix."""
    return {key for key, (_, empty) in context.once(_refusals).items() if empty}


def _refusals(context: DetectorContext) -> dict[tuple[str, str | None], tuple[Refusal, bool]]:
    spelled, found = context.topology.system.spelled, dict[tuple[str, str | None], tuple[Refusal, bool]]()
    for reading in context.topology.readings:
        for text in reading.failed:
            if not (said := _SEARCH.search(text)) or said["code"] in _NO_RIGHT:
                continue
            if replica := context.replica(reading.server, suffix := spelled(said["base"])):
                empty = replica.empty and said["code"] == _NOT_THERE
                found[reading.server, suffix] = (said["said"], text, reading.began), empty
    return found


def _filled_again(context: DetectorContext, server: str, by: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """What to do where suppliers began to fill a server and stopped before the end."""
    stopped = [name for name in by if name in context.topology.down]
    if not stopped:
        return ()
    begins = "begins" if len(stopped) == 1 else "begin"
    return (
        step(
            f"start {listed(stopped)} (`dsctl INSTANCE start`), and collect again when {server} has been filled",
            f"{listed(stopped)} began to fill {server}, no log shows the end of that, and {begins} it again at the next start",
            f"first copy the database folder of {server}: its changelog may hold changes that no other server has",
        ),
    )


def search_refused(context: DetectorContext) -> Iterator[Finding]:
    """A server that refused to be searched for its data: while these are replaced, and where they are gone, it answers so."""
    for (server, suffix), (said, text, at) in refused_searches(context).items():
        by = fillers(context.once(addresses_of), server, suffix)
        yield Finding(
            "SEARCH_REFUSED",
            "error",
            f"{server} refused a search of its data of {suffix} with {said}: they are being replaced, or "
            "they are gone, as after an initialisation that broke off. Until it shows them it sends nothing, takes nothing, "
            "and can fill no other server, whatever its vector claims",
            server=server,
            suffix=suffix,
            evidence=({"server": server, "text": text, "at": at.isoformat()},),
            root=f"a search of the data of {server} ({suffix}) was refused, {said}: "
            + (f"{listed(by)} began to fill it, and no log says that this ended" if by else "they may be gone"),
            fix=(
                *(_filled_again(context, server, by) if by else ()),
                step(
                    f"read the end of the errors log of {server}: if data come in, wait until it says that {suffix} is "
                    "coming online, and collect again; if an import or a filling failed, it has to be initialised from a "
                    "server that has all data",
                    "an import or an initialisation throws away the old data before the new data are there",
                    f"first copy the database folder of {server}: its changelog may hold changes that no other server "
                    f"has. Initialise nothing from {server}",
                ),
            ),
        )
