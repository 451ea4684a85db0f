"""Origins that a server cleaned away, and claims nothing of since: it waits for none of their changes of before.

a, b, h cleaned replica ID 3, r behind h still claims it    a, b, h wait for nothing of 3: nobody will send it
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.dropped_changes import dropping, remembered_since, why_dropped
from workbench.engine.positions import Positions, of_keys
from workbench.engine.selective_read import rows_where
from workbench.rules.vectors import last
from workbench.rules.verdicts import NOT_COVERED, PENDING, PRESENT, REPLACED, SAYS, TOTAL, UNKNOWN, Ground
from workbench.tables import Numbers
from workbench.topology.suffix_evidence import Evidence

if TYPE_CHECKING:
    from workbench.diagnosis.evidence_grounds import Proofs

_TIME = pa.timestamp("us", "UTC")

CLEANED_HERE = "cleaned_here"
"""Why it is not known whether a server had a change: it cleaned the origin since."""


def cleaned_at(evidence: Evidence, server: str) -> dict[str, datetime]:
    """Origin -> when the server last logged that it cleaned it; of a server with several suffixes no line tells of which."""
    code = evidence.shown.proving.cleaned
    if not code:
        return {}
    several = any(evidence.of_several(one) for one in evidence.inputs if one.server == server)
    where = (pc.field("code") == code) & pc.field("at").is_valid() & pc.field("origin").is_valid()
    found: dict[str, datetime] = {}
    for row in rows_where(evidence.parts("messages", server), ["at", "origin"], where).to_pylist():
        if several and not evidence.is_here_alone(row["origin"]):
            continue
        found[row["origin"]] = max(row["at"], found.get(row["origin"], row["at"]))
    return found


def cleaned_away(proofs: Proofs, origin: str) -> datetime | None:
    """When a server cleaned an origin of which it claims nothing; None: it did not, or has older data by now.

    A server that claims the origin still and feeds one that forgot it sends all that its log has of it there.
    """
    shown = proofs.evidence.shown
    alike = [one for one in shown.replicas if one.suffix == proofs.replica.suffix]
    links = [link for link in shown.links if link.suffix == proofs.replica.suffix]
    server = proofs.replica.server
    feeding = {x.supplier for x in links if x.consumer == server or (x.consumer is None and server not in x.unlike)}
    sending = [one for one in alike if one.keeps_log and (not links or one.server in feeding)]
    if last(proofs.replica.seen(), origin) or any(last(one.vector, origin) for one in sending):
        return None
    found: dict[str, datetime] = proofs.evidence.once(proofs.replica.server, cleaned_at)
    at = found.get(origin)
    if at and any(one.kind in (TOTAL, REPLACED) and one.ended >= at for one in proofs.resets):
        # The marks of its new log tell of when the data is that came.
        marks = proofs.evidence.case.log(proofs.replica.log).marks if proofs.replica.log else ()
        if not any((made := proofs.system.moment(mark)) and made >= at for mark in marks):
            return None
    return at


def forgot(proofs: Proofs, origin: str) -> datetime | None:
    """When a server cleaned an origin of which it waits for nothing older: it claims nothing of it since, or drops what comes."""
    if at := cleaned_away(proofs, origin):
        return at
    alike = [one for one in proofs.evidence.shown.replicas if one.suffix == proofs.replica.suffix]
    newest = max(filter(None, (last(one.seen(), origin) for one in alike)), default="")
    if not newest or last(proofs.replica.seen(), origin):
        return None
    if found := dropping(proofs, proofs.system.show(newest), origin):
        return found.since
    # All was made before it cleaned the origin: sent once more by a server that was down then, it is dropped as well.
    made, at = proofs.system.moment(newest), remembered_since(proofs, origin)
    return at if at and made and made <= at else None


def taken_before(proofs: Proofs, origin: str) -> str:
    """The last change of an origin of others that a server took into its present data before it cleaned it; empty: none is shown.

    Its vector covered all up to that then: whatever its data came from, it asked for none of these any more.

        b took 1 to 900, got its data out of a file, took 901 and 902, cleaned the origin     902
        b got its data out of a file after all that                                           none
    """
    replica, at = proofs.replica, proofs.evidence.once(proofs.replica.server, cleaned_at).get(origin)
    if at is None or replica.top(origin) or origin == replica.origin:
        return ""
    replaced = [one.ended for one in proofs.resets if one.kind in (TOTAL, REPLACED)]
    where = (pc.field("origin") == origin) & (pc.field("outcome") == "applied") & pc.field("link").is_null()
    where &= pc.field("at") < pa.scalar(at, _TIME)
    if replaced:
        where &= pc.field("at") > pa.scalar(max(replaced), _TIME)
    rows = proofs.evidence.told("applied", ["position"], where, replica.server)
    newest = pc.max(rows["position"]).as_py() if len(rows) else None
    return proofs.system.change_of(newest) if newest else ""


def claims_nothing_of_cleaned(proofs: Proofs, origin: str) -> bool:
    """True if the vector and log of a server claim nothing of an origin, and it says that it cleaned that, or another one does.

    What a read-only server answers with success after a cleaning, it may have dropped: it has to say itself when that was.
    """
    replica = proofs.replica
    if replica.top(origin):
        return False
    alike = [one.server for one in proofs.evidence.shown.replicas if one.suffix == replica.suffix]
    asked = alike if replica.origin else [replica.server]
    return any(origin in proofs.evidence.once(server, cleaned_at) for server in asked)


def not_covered(proofs: Proofs, position: str, has: Callable[[Positions], Numbers]) -> tuple[str, str, str]:
    """What is said of a change that a server does not claim to have seen: verdict, rule and sentence.

    has  for each of some changes: is it shown that the server has it?
    """
    system = proofs.system
    if found := why_dropped(proofs, position):
        return PENDING, *found
    origin, some = system.origin_of(position), of_keys(system, [position], proofs.evidence.numbers)
    at, made = forgot(proofs, origin), system.moment(position)
    before = bool(at and made and made <= at) or position <= taken_before(proofs, origin)
    kept = claims_nothing_of_cleaned(proofs, origin)
    if (before or kept) and had_before(proofs, some)[0]:
        return PRESENT, "applied", SAYS["applied"]
    if kept and has(some)[0]:
        return PRESENT, "kept", SAYS["kept"]
    return (UNKNOWN, CLEANED_HERE, SAYS[CLEANED_HERE]) if before else (PENDING, "not_covered", NOT_COVERED)


def had_before(proofs: Proofs, some: Positions) -> Numbers:
    """For each of some sorted changes: do log, entries or an earlier log show that the data that the server has now took it?"""
    nothing = np.zeros(len(some), bool)
    grounds = proofs.grounds(some, ~nothing, {}, nothing, nothing)
    found: Numbers = (grounds & int(Ground.APPLIED | Ground.IN_STATE | Ground.IN_EARLIER_LOG)) != 0
    return found
