"""Servers that ran when they were collected, and did not answer a question in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

NO_ANSWER = "no answer within the time-out"
"""What `collect` writes down of a question that a server did not answer in time."""


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
