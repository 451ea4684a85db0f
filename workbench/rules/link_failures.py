"""Why a link that is switched on does not run, as a record that the diagnosis, the plan and the pictures share.

The reasons are a closed list for every system. What proves one of them is the system's own affair: its package gives
`System.link_failures`, which reads the evidence of one snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

BIND_REFUSED, PASSWORD_EXPIRED, TLS, UNREACHABLE, REFUSED = (
    *("bind_refused", "password_expired", "tls", "unreachable", "refused"),
)
NO_SUCH_REPLICA, PERMISSION, SCHEDULE_CLOSED, DISABLED = "no_such_replica", "permission", "schedule_closed", "disabled"
BACKING_OFF, BUSY, GENERATION_DIFFERS, WRONG_SUFFIX = "backing_off", "busy", "generation_differs", "wrong_suffix"
NOT_INITIALISED, CONSUMER_READ_ONLY, CLOCK_REFUSED, ANCHOR_LOST, LOG_CLOSED, UNKNOWN = (
    *("not_initialised", "consumer_read_only", "clock_refused", "anchor_lost", "log_closed", "unknown"),
)
REPLICATION_OFF = "replication_off"

REASONS: Mapping[str, str] = {
    BIND_REFUSED: "the consumer refuses the supplier's login",
    PASSWORD_EXPIRED: "the password of the supplier's login has expired",
    TLS: "no encrypted connection comes about, or the consumer demands one, or a stronger one",
    UNREACHABLE: "the consumer does not answer",
    REFUSED: "nothing listens at the address of the link, or the consumer refuses the session or a change",
    NO_SUCH_REPLICA: "the consumer does not replicate this suffix",
    PERMISSION: "the consumer accepts the login and does not allow it to send changes",
    SCHEDULE_CLOSED: "the link holds no session now: it is outside its schedule, or was told to wait before the next one",
    DISABLED: "the link is switched off",
    BACKING_OFF: "the last session broke off, and the supplier waits before it tries again",
    BUSY: "the consumer is busy with another supplier",
    GENERATION_DIFFERS: "supplier and consumer have data of different generations",
    WRONG_SUFFIX: "the consumer replicates other suffixes than the one of the link",
    NOT_INITIALISED: "the consumer was never initialised",
    CONSUMER_READ_ONLY: "the consumer refuses every change because its data is read-only",
    CLOCK_REFUSED: "the clocks of supplier and consumer are too far apart",
    ANCHOR_LOST: "the log of the supplier does not have the record at which the session has to begin",
    LOG_CLOSED: "the supplier cannot read its own log",
    REPLICATION_OFF: "replication is switched off at one of its ends, or could not be set up there",
    UNKNOWN: "sessions fail, and no evidence says why",
}
"""Why a link does not run -> the reason in words. A closed list: filters and runbooks are written for it."""

TRANSIENT = frozenset({BUSY, BACKING_OFF})
"""Reasons that end by themselves as a rule: what waits is still on its way."""


LinkKey = tuple[str, str | None, str]
"""Supplier, suffix and name."""


LAST_SESSION, FILLED_LAST = "its last session ended", "its last filling of the consumer ended"
"""What `since` is the time of, where a session ended well before."""
_MENDED_BY_FILLING = (GENERATION_DIFFERS, NOT_INITIALISED, SCHEDULE_CLOSED, ANCHOR_LOST)


@dataclass(frozen=True)
class LinkFailure:
    """Why one link does not run.

    reason    one of REASONS
    says      the cause with its result code, as the end of a sentence that begins with the link: "fails: <says>"
    short     the same in two or three words, for a headline
    since     from when on, as far as the evidence shows; None: it does not
    since_is  what `since` is the time of, in words
    attempts  how often it failed since then, as far as logs show; None: no log shows it
    opens     when it runs again by itself, as it was told (a schedule, a pause); None: not by itself, or no evidence tells
    means     the collected server that a link to an address of none of them probably means; None: nothing suggests one
    assumes   what that takes for granted, of `workbench.rules.assumptions.ASSUMPTIONS`
    itself    True if the link leads to its own supplier: nothing waits behind it
    of_data   True if the consumer's own log says that it refuses a change for what its data are, which other data would end
    to_all    True if the consumer takes no change of any supplier, as where its database is full
    restarts  True if what mends it starts the supplier anew, which then makes its changelog anew
    refills   True if the consumer is down, and the supplier fills it with all data again as soon as it runs
    quotes    what a log says of the cause: rows of server and text
    evidence  rows that prove it
    fix       what mends it: entries of a finding's `fix`
    """

    reason: str
    says: str
    short: str
    since: datetime | None = None
    since_is: str = ""
    attempts: int | None = None
    opens: datetime | None = None
    means: str | None = None
    itself: bool = False
    of_data: bool = False
    to_all: bool = False
    refills: bool = False
    restarts: bool = False
    assumes: tuple[str, ...] = ()
    quotes: tuple[Mapping[str, str], ...] = ()
    evidence: tuple[Mapping[str, Any], ...] = ()
    fix: tuple[Mapping[str, Any], ...] = ()

    @property
    def lets_fill(self) -> bool:
        """True if it sends no changes, and all data all the same. Over any other link that fails nothing comes."""
        return self.reason in _MENDED_BY_FILLING or self.of_data

    @property
    def refuses_all(self) -> bool:
        """True if the consumer answers every supplier so: another link to it delivers nothing either."""
        return self.to_all or self.reason == CONSUMER_READ_ONLY

    @property
    def blocks(self) -> bool:
        """True if what waits behind the link is not on its way."""
        return self.reason not in TRANSIENT
