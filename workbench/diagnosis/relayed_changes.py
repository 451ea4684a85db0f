"""Changes that reach a server through another one which waits for them itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.rules.send_session import NOTHING, SEND
from workbench.rules.verdicts import MOMENTS_APART, REPLACED, TOTAL
from workbench.systems import format_with

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.topology.suffix_evidence import Evidence

Row = Mapping[str, Any]

ANSWERED_NOT_APPLIED = "ANSWERED_NOT_APPLIED"
"""Code of a change that a server answered with success and did not apply: it does not pass it on either."""

NO_ANSWER_IN_TIME, DATABASE_FAILING, STOPPED_MEANWHILE = "NO_ANSWER_IN_TIME", "DATABASE_FAILING", "STOPPED_MEANWHILE"
"""Codes of a server that ran and may hang, of one that cannot write, and of one that stopped while servers were read: while that
is so, nothing arrives there."""
DISK_LOW = "DISK_LOW"
"""Code of a server that refuses changes, or stops, because its disk is low."""
INITIALISATION_RUNNING, SEARCH_REFUSED = "INITIALISATION_RUNNING", "SEARCH_REFUSED"
INITIALISATION_ABORTED = "INITIALISATION_ABORTED"
"""Codes of a server that gets new data, of one that does not show its data, and of one that did not get them whole: nothing
arrives there, nothing comes from it."""
STOPPED_BECAUSE = {
    DISK_LOW: "is short of disk space",
    DATABASE_FAILING: "could not write its database",
    NO_ANSWER_IN_TIME: "may hang",
    STOPPED_MEANWHILE: "takes no connection",
    INITIALISATION_RUNNING: "is being initialised",
    SEARCH_REFUSED: "does not show its data",
    INITIALISATION_ABORTED: "has no whole data",
}
SENDS_NOTHING = frozenset(STOPPED_BECAUSE) - {DATABASE_FAILING, DISK_LOW}
"""Codes of servers that send nothing either."""

WITHOUT_DATA = (INITIALISATION_RUNNING, SEARCH_REFUSED)
"""What such a server lacks or claims means nothing at the moment."""
DATA_GONE = (*WITHOUT_DATA, INITIALISATION_ABORTED)
"""The same, and those whose data did not arrive whole: changes that are sent there are refused for that alone."""


Wait = tuple[str | None, str | None, str | None]
"""Server, suffix and origin of changes that have not arrived."""


def held_up(waits: Mapping[Wait, Collection[str]], stopped: Mapping[str, str]) -> set[Wait]:
    """What does not arrive while servers take or send nothing, of changes that others would send or pass on.

    waits    the servers that would
    stopped  server -> its code; one that cannot write still sends

        b waits for a, which may hang          held up
        r waits for h, which waits for a       held up, too
        c waits for a and b                    on its way: b sends it
    """
    silent = {server for server, code in stopped.items() if code in SENDS_NOTHING}
    held = {wait for wait in waits if wait[0] in stopped}
    more = True
    while more:
        found = {
            wait
            for wait, senders in waits.items()
            if senders and all(name in silent or (name, *wait[1:]) in held for name in senders)
        }
        more = not found <= held
        held |= found
    return held


def mark_arrival(
    pending: Sequence[dict[str, Any]],
    pairs: Sequence[Row],
    servers: Sequence[JudgedServer],
    suffix: str | None,
    has: Callable[[JudgedServer, str], bool],
    evidence: Evidence,
) -> None:
    """Give each row of `pending` of the suffix `through`, and for what nobody would send now `uncovered` and `lost_by`.

    uncovered  all of it is beyond every collected vector, also its maker's, which is not known to have lost it
    lost_by    its maker, whose data were replaced after both ends of it were made, and no server has the ends
    """
    _mark_through(pending, pairs, suffix)
    names = {one.replica.server for one in servers}
    for row in pending:
        if row["suffix"] != suffix or row["server"] not in names:
            continue
        row["lost_by"], row["uncovered"] = None, False
        if row["suppliers"] or row["through"] or row.get("dropped_since"):
            continue
        maker = next((one for one in servers if row["origin"] in evidence.origins_of(one.replica)), None)
        if maker is None or any(row["first"] <= one.seen.get(row["origin"], "") for one in servers):
            continue
        resets = [one.began for one in maker.resets if one.sure and one.kind in (TOTAL, REPLACED)]
        ends = [row["first"], row["last"]]
        lost = bool(resets) and all(_made_before(max(resets), end, maker.replica.server, evidence) for end in ends)
        if lost and not any(has(one, end) for one in servers for end in ends):
            row["lost_by"] = maker.replica.server
        row["uncovered"] = not row["lost_by"] and maker.replica.origin == row["origin"]


def _made_before(reset: datetime, position: str, maker: str, evidence: Evidence) -> bool:
    """Whether a server made a change of its own before its data were replaced: by the time of the change, or by its log.

    The positions of a server grow as long as it keeps its data, even if its clock is set back. So what stands in its log before a
    change of its own that has a lower position, it made before its data were replaced.

        28 Nov 10:35  csn=6b0aae82000000020000    of the old data: the clock was two days ahead
        26 Nov 10:38  csn=6b080c3c000200020000    of the new data
    """
    made = evidence.system.moment(position)
    if made is None or made < reset:
        return made is not None
    origin = evidence.system.origin_of(position)
    # Operations at one time are answered in any order.
    lower = pc.field("position") < evidence.system.order_key(origin, evidence.system.instant(made - MOMENTS_APART), 0)
    client = pc.field("replicated").is_null() | ~pc.field("replicated")
    own = client & pc.field("link").is_null() & (pc.field("outcome") == "applied") & (pc.field("origin") == origin)
    for one in evidence.inputs:
        if one.server != maker or format_with(one.kind).evidence != "access_log":
            continue
        there = evidence.told("applied", ["offset"], own & (pc.field("position") == position), one=one)
        behind = pc.field("offset") > pc.min(there["offset"])
        if len(there) and len(evidence.told("applied", ["at"], own & behind & lower, one=one)):
            return True
    return False


def _mark_through(pending: Sequence[dict[str, Any]], pairs: Sequence[Row], suffix: str | None) -> None:
    """Give each row of `pending` of the suffix `through`: the servers that pass the changes on when they have them.

    Only where nobody would send them now, and over links that run. What a server drops it neither has nor passes on.
    Three servers, c has made a change, r is behind h:

        r lacks it, h lacks it, c sends to h    ->  r gets it through h
        r lacks it, h lacks it, c-to-h fails    ->  r does not get it
    """
    feeding: dict[str, list[str]] = {}
    for row in pairs:
        runs = row["link"] and row["link_enabled"] is not False and not row.get("link_failing")
        if runs and row["decision"] in (SEND, NOTHING):
            feeding.setdefault(row["consumer"], []).append(row["supplier"])
    mine = [row for row in pending if row["suffix"] == suffix]
    coming = {(row["server"], row["origin"]) for row in mine if row["suppliers"] and not row.get("dropped_since")}
    for row in mine:
        row["through"] = []
    more = True
    while more:
        more = False
        for row in mine:
            if (row["server"], row["origin"]) not in coming and not row.get("dropped_since"):
                through = [name for name in feeding.get(row["server"], ()) if (name, row["origin"]) in coming]
                if through:
                    row["through"], more = sorted(through), True
                    coming.add((row["server"], row["origin"]))
