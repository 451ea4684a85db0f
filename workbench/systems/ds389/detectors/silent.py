"""Servers that ran when they were collected, and then did not answer in time, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

NO_ANSWER = "no answer within the time-out"
"""What `collect` writes down of a question that a server did not answer in time."""
_AT_THE_END, _NO_CONNECTION = "read again at the end: ", "no connection: "
"""What it writes down of one that it had read and could not reach when all were read."""
_SEARCH = re.compile(r"the search below (?P<base>.+?) was refused, (?P<said>\S+ \((?P<code>\d+)\))")
_NO_RIGHT = ("8", "50")
"""Results that tell of whoever asked, and not of the data."""


def no_answer_in_time(situation: Situation) -> Iterator[Finding]:
    """A server that answers some questions and not others may hang: then what is on the way to it does not arrive."""
    for one in situation.topology.readings:
        late = [text for text in one.failed if NO_ANSWER in text]
        if not late or one.server in situation.topology.down:
            continue
        yield Finding(
            "NO_ANSWER_IN_TIME",
            "warning",
            f"{one.server} did not answer a question in time when it was collected: it hangs, or is too busy. While it hangs "
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


def stopped_meanwhile(situation: Situation) -> Iterator[Finding]:
    """A server that was read, and could not be reached any more when all were read: its logs may end before they tell why."""
    for one in situation.topology.readings:
        gone = [text for text in one.failed if text.startswith(f"{_AT_THE_END}{_NO_CONNECTION}")]
        if not gone or one.server in situation.topology.down:
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


def search_refused(situation: Situation) -> Iterator[Finding]:
    """A server that refused to be searched for its data: while these are replaced, and where they are gone, it answers so."""
    spelled = situation.topology.system.spelled
    for one in situation.topology.readings:
        for text in one.failed:
            said = _SEARCH.search(text)
            if not said or said["code"] in _NO_RIGHT or situation.replica(one.server, spelled(said["base"])) is None:
                continue
            suffix = spelled(said["base"])
            yield Finding(
                "SEARCH_REFUSED",
                "error",
                f"{one.server} refused a search of its data of {suffix} with {said['said']}: they are being replaced, or "
                "they are gone, as after an initialisation that broke off. Until it shows them it sends nothing, takes nothing, "
                "and can fill no other server, whatever its vector claims",
                server=one.server,
                suffix=suffix,
                evidence=({"server": one.server, "text": text, "at": one.began.isoformat()},),
                root=f"a search of the data of {one.server} ({suffix}) was refused, {said['said']}: they may be gone",
                fix=(
                    step(
                        f"read the end of the errors log of {one.server}: if data come in, wait until it says that {suffix} is "
                        "coming online, and collect again; if an import or a filling failed, it has to be initialised from a "
                        "server that has all data",
                        "an import or an initialisation throws away the old data before the new data are there",
                        f"first copy the database folder of {one.server}: its changelog may hold changes that no other server "
                        f"has. Initialise nothing from {one.server}",
                    ),
                ),
            )
            break
