"""Servers on which replication was switched off and on again.

What clients wrote there meanwhile, no changelog recorded:

    22:38:02 c   dsconf c replication disable     its changelog is removed
    22:38:05 c   DEL uid=keep-0, err=0, no CSN    recorded nowhere, no session sends it
    22:38:06 c   dsconf c replication enable      its vector is as before, and claims all that it claimed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.initialisations import initialisations
from workbench.model import Finding, counted, step
from workbench.rules.verdicts import TOTAL
from workbench.systems.ds389.formats.unrecorded import UNRECORDED
from workbench.systems.ds389.session_log.change_fixes import CRASHES_UNSTARTED
from workbench.systems.ds389.session_log.lines import WITH_TEXT, line_shown, session_logs
from workbench.topology.suffix_evidence import Evidence
from workbench.topology.topology import Replica

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

REMOVED = "replica_removed"
_SAME = timedelta(minutes=2)
"""Between the line of the errors log and the answer to the deletion of the replica at most."""
_NAMED = 3


@dataclass(frozen=True)
class Off:
    """One time in which a suffix of a server did not replicate.

    until     when replication was switched on again; None: the access log does not show it
    count     what clients wrote meanwhile, as far as the access log shows it
    whole     the access log shows all of that time
    compared  the entries of all its servers were collected, and are alike: nothing is left of it
    still     the server shows no replica of the suffix: replication is off there by now, too
    gone      when the last data that had them were replaced by others: no server has any of it; None: one has it still
    """

    server: str
    suffix: str | None
    at: datetime
    until: datetime | None
    count: int
    names: tuple[str, ...]
    whole: bool
    compared: bool
    evidence: tuple[Mapping[str, Any], ...]
    still: bool = False
    gone: datetime | None = None

    @property
    def nothing(self) -> bool:
        """True if nothing was written meanwhile, or nothing of it differs."""
        return (self.compared and not self.gone) or (self.whole and not self.count)


def replication_was_off(context: DetectorContext) -> Iterator[Finding]:
    """Told of each time that its server and the others still have to do with."""
    for one in context.once(_off_times):
        at = f"{one.at:%Y-%m-%d %H:%M:%S}"
        since = "is off still" if one.still else "on again since"
        when = f"from {at} to {one.until:%Y-%m-%d %H:%M:%S} UTC" if one.until else f"at {at} UTC, and {since}"
        severity = "info" if one.nothing else "error" if one.count and not one.gone else "warning"
        root = f"{counted(one.count, 'operation')} of clients on {one.server} went unrecorded while replication was off there"
        yield Finding(
            "REPLICATION_WAS_OFF",
            severity,
            f"replication was switched off on {one.server} {when}{_written(one)}",
            server=one.server,
            suffix=one.suffix,
            evidence=one.evidence,
            root=root if severity == "error" else "",
            fix=()
            if one.nothing
            else (_repeat(one),)
            if one.gone
            else (_switch_on(one),)
            if one.still
            else (_compare(context, one),),
        )


def _written(one: Off) -> str:
    if one.compared:
        return ". The collected entries do not differ: nothing that was written meanwhile is missing elsewhere"
    if one.nothing:
        return "; its access log shows that no client wrote there meanwhile"
    if not one.count:
        return (
            ". What clients wrote there meanwhile is in no changelog, and no session sends it to another server: no collected "
            "access log shows all of that time, so nothing tells whether they wrote"
        )
    more = "" if one.whole else "at least "
    names = "; ".join(one.names[:_NAMED]) + ("; …" if one.count > _NAMED else "")
    return (
        f". Meanwhile clients wrote there: its access log shows {more}{counted(one.count, 'operation')} without a CSN ({names}). "
        + (
            f"The data of {one.server} were replaced at {one.gone:%Y-%m-%d %H:%M:%S} UTC, and no changelog has "
            f"{'it' if one.count == 1 else 'them'}: what nobody repeated since is lost"
            if one.gone
            else f"No changelog has {'it' if one.count == 1 else 'them'}, and no session sends "
            f"{'it' if one.count == 1 else 'them'} to another server"
        )
    )


def _repeat(one: Off) -> dict[str, str | None]:
    return step(
        f"repeat on a supplier what is still wanted: the access log of {one.server} names operation and entry of each, where its "
        "RESULT line has no csn",
        "no session and no initialisation brings what no server holds",
        "the log does not show values: ask whoever wrote them, or look into a backup of that time",
    )


def _switch_on(one: Off) -> dict[str, str | None]:
    return step(
        f"restart {one.server}, then switch replication of {one.suffix} on again there, with the role, the replica ID and the "
        "bind DN that it had (`dsconf INSTANCE replication enable --role ROLE --replica-id ID --bind-dn DN`), and make its "
        "agreements again; then collect with the entries, and diagnose anew",
        f"the data of {one.server} are there, and its entries alone tell what clients wrote meanwhile",
        f"do not initialise {one.server}, and nothing from it, before that; {CRASHES_UNSTARTED}",
    )


def _compare(context: DetectorContext, one: Off) -> dict[str, str | None]:
    collect = (
        ""
        if _compared(context, one.server, one.suffix)
        else "collect with the entries (`workbench collect --entries`), "
    )
    return step(
        f"{collect}compare the entries of {one.server} with those of the others, and repeat on a supplier "
        "those differences that are right",
        f"{one.server} claims the same changes as before, and its entries alone tell what was written there",
        f"initialise no server from {one.server} before that: what was changed and deleted there would be changed and deleted on "
        f"it, too. To initialise {one.server} throws away what was written there. An entry that was added there has a unique ID "
        f"of its own: repeat it only if {one.server} is initialised from that supplier right after, else both become a naming "
        "conflict",
    )


def unrecorded(context: DetectorContext) -> dict[tuple[str, str | None], str]:
    """The servers and suffixes with changes that nothing recorded, or perhaps some -> what happened, in a clause."""
    found: dict[tuple[str, str | None], str] = {}
    for one in context.once(_off_times):
        if not one.nothing and not one.gone:
            took = "took" if one.count else "may have taken"
            found[one.server, one.suffix] = (
                f"{one.server} {took} changes without recording them while replication was off there"
            )
    return found


def removed_after(context: DetectorContext, server: str, suffix: str | None, moment: datetime) -> datetime | None:
    """When a server first removed its changelog after that moment, as replication was switched off; None: no line says so."""
    times = [at for at, _ in context.once(_removals).get((server, suffix), ()) if at > moment]
    return min(times, default=None)


Removal = tuple[datetime, Mapping[str, Any]]


def _removals(context: DetectorContext) -> dict[tuple[str, str | None], list[Removal]]:
    """Server and suffix -> when its changelog was removed, and the line that says so."""
    found: dict[tuple[str, str | None], list[Removal]] = {}
    told = {one.server for one in context.case.inputs if one.facts.get("codes", {}).get(REMOVED)}
    for log in session_logs(context.case) if told else ():
        for row, place in log.lines((REMOVED,), [*WITH_TEXT, "suffix"]) if log.server in told else ():
            if place.at and row["suffix"]:
                found.setdefault((log.server, row["suffix"]), []).append((place.at, line_shown(row, place)))
    return found


def _shown_or_logged(context: DetectorContext) -> list[Replica]:
    """The replicas, and those that their servers do not show, and that logs of operations tell to have been switched off."""
    shown = context.topology.replicas
    suffixes = {one.suffix for one in shown if one.suffix}
    here = (one for one in context.case.inputs if one.snapshot == context.topology.snapshot)
    logged = {(one.server, suffix) for one in here for suffix in one.facts.get(UNRECORDED, {}) if suffix in suffixes}
    known = {(one.server, one.suffix) for one in shown}
    return [*shown, *(Replica(server, suffix) for server, suffix in sorted(logged - known))]


def _off_times(context: DetectorContext) -> list[Off]:
    found = []
    known = {(one.server, one.suffix) for one in context.topology.replicas}
    for replica in _shown_or_logged(context):
        windows = _windows(context, replica)
        lines = context.once(_removals).get((replica.server, replica.suffix), [])
        for at, line in lines:
            near = min(windows, key=lambda off: abs(off - at), default=None)
            if near is None or abs(near - at) > _SAME:
                windows[at] = _Window(lines=[line], seen=False)
            else:
                windows[near].lines.append(line)
                windows[near].began.append(at)
        ends = sorted(windows)
        compared = _alike(context, replica)
        for at in ends:
            window = windows[at]
            at = min([at, *window.began])
            everywhere, gone = _left_of(context, replica, window.until or at)
            if not everywhere and (window.count or not gone):
                found.append(
                    Off(
                        replica.server,
                        replica.suffix,
                        at,
                        window.until,
                        window.count,
                        tuple(window.names),
                        window.seen and window.until is not None,
                        compared,
                        (*window.lines, *window.files),
                        (replica.server, replica.suffix) not in known,
                        gone,
                    )
                )
    return found


class _Window:
    """What the files of a server tell of one time without replication."""

    def __init__(self, lines: list[Mapping[str, Any]] | None = None, seen: bool = True) -> None:
        self.lines, self.seen = lines or [], seen
        self.began: list[datetime] = []
        self.until: datetime | None = None
        self.files: list[Mapping[str, Any]] = []
        self.counts: dict[str, int] = {}
        self.names: list[str] = []

    @property
    def count(self) -> int:
        """Of logs that were collected again with later snapshots, each line counts once."""
        return max(self.counts.values(), default=0)


def _windows(context: DetectorContext, replica: Replica) -> dict[datetime, _Window]:
    found: dict[datetime, _Window] = {}
    for one in context.case.inputs:
        told = one.facts.get(UNRECORDED, {}).get(replica.suffix, {}) if one.server == replica.server else {}
        for off, row in told.items():
            if not off:
                continue
            window = found.setdefault(_moment(off), _Window())
            if row["max"]:
                window.until = _moment(row["max"])
            if count := row["count"]:
                window.counts[one.snapshot] = window.counts.get(one.snapshot, 0) + count
                window.names = list(dict.fromkeys([*window.names, *row["names"]]))
                window.files.append({"file": one.file, "count": count, "names": row["names"]})
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _left_of(context: DetectorContext, replica: Replica, moment: datetime) -> tuple[bool, datetime | None]:
    """Whether all servers have these data, filled with them since; and when the last that had them got others (None: not yet)."""
    mine = [other for other in context.topology.replicas if other.suffix == replica.suffix]
    evidence = Evidence(context.case, context.topology, replica.suffix, [other.server for other in mine])
    fillings = sorted(
        (began, ended, supplier, other.server)
        for other in mine
        for supplier, began, ended in initialisations(evidence, other)
        if began >= moment
    )
    resets = context.verdicts.resets.get((replica.server, replica.suffix), ())
    fillings = sorted(
        [
            *fillings,
            *(
                (reset.began, reset.ended, "", replica.server)
                for reset in resets
                if reset.kind == TOTAL and reset.sure and reset.began >= moment
                if not any(server == replica.server and began <= reset.ended for began, _, _, server in fillings)
            ),
        ]
    )
    has = {replica.server: moment}
    for began, ended, supplier, server in fillings:
        if supplier in has and has[supplier] <= began:
            has[server] = ended
        elif has.pop(server, None) and not has:
            return False, ended
    return len(mine) > 1 and all(other.server in has for other in mine), None


def _compared(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """True if the entries of the server were collected, and those of another one."""
    return any(one.suffix == suffix and server in one.exports for one in context.verdicts.contents)


def _alike(context: DetectorContext, replica: Replica) -> bool:
    """True if the entries of all servers of the suffix were collected, and do not differ."""
    names = {one.server for one in context.topology.replicas if one.suffix == replica.suffix}
    return any(
        one.suffix == replica.suffix and names <= one.exports.keys() and not one.differences
        for one in context.verdicts.contents
    ) and not context.not_collected(replica.suffix)
