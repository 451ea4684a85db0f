"""What a supplier's own errors log says of its sessions, held against what the rules compute from the same vectors.

The control blocks of a session are the two vectors as the server itself saw them, so the anchor that it printed and the
one that the rules compute from these blocks must be the same, at the start and at every reload. Where the case has the
changelog of that time, each session is also played record by record between the anchors, and its counters are compared.

A record that the changelog holds now may have been written after the session had passed its place. None of those lies at
or below the stops of its load, for a supplier's vector never moves over a change that it has not logged. So all that lies
at or below was certainly read - from Berkeley DB. LMDB shows a session what was committed when its reading began, so there
only the log itself tells what was read; and it reads the last record once more at the end, which counts it twice. Of what
lies beyond nobody knows: there a counter is compared with the smallest and the
greatest value that it can have, and `exact` counts the sessions in which the two were the same: of `sent` in all
that ended because nothing more was due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.model import Finding
from workbench.rules.send_session import BEYOND, CONSUMERS_OWN, COVERED, SENT, UNKNOWN, SendSession
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.session_log.lines import HOLES, Load, Place, Session, session_logs
from workbench.systems.ds389.session_log.played import Firsts, Played, opened, reload_anchor

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.engine.logs import StoredLog
    from workbench.topology.topology import Link, Topology

FIRST, NOTHING, RELOAD, END = "first_anchor", "no_anchor", "reload_anchor", "session_end"
KINDS = (FIRST, NOTHING, RELOAD, END)
"""What is compared: the first anchor; that there is none, at the start or at a reload; later anchors; the counters."""

_COUNTERS = {
    "sent": SENT,
    "skipped_csn_covered": COVERED,
    "skipped_csn_gt_cons_maxcsn": CONSUMERS_OWN,
    "skipped_new_rid": UNKNOWN,
    "skipped_csn_gt_ruv": BEYOND,
}
_SAYS = {
    FIRST: "another first anchor than the rules compute",
    NOTHING: "an anchor where the rules compute none, or none where they do",
    RELOAD: "another anchor at a reload than the rules compute",
    END: "other counts of sent and skipped changes than the rules compute from the changelog",
}
_SHOWN = 100


@dataclass(frozen=True)
class Disagreement:
    """One value that the log shows, and the one that the rules compute instead."""

    kind: str
    server: str
    link: str
    what: str
    logged: str
    computed: str
    place: Place

    def row(self) -> dict[str, Any]:
        """As a flat row of evidence."""
        at = self.place.at.isoformat() if self.place.at else None
        where = {"snapshot": self.place.snapshot, "file": self.place.file, "offset": self.place.offset, "at": at}
        return {"what": self.what, "logged": self.logged, "computed": self.computed, **where, "link": self.link}


@dataclass
class Comparison:
    """The numbers, per (snapshot, server, kind), and the disagreements.

    ambiguous       first anchors whose line may belong to several sessions, and which agree with one of them
    played          session ends of sessions that read records: their counters come from playing the changelog
    exact           (snapshot, server, counter) -> those of them in which that counter could have one value only
    not_comparable  (snapshot, server, kind, reason) -> how many
    """

    compared: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    agreeing: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    ambiguous: Counter[tuple[str, str]] = field(default_factory=Counter)
    played: Counter[tuple[str, str]] = field(default_factory=Counter)
    exact: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    not_comparable: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)

    def total(self, kind: str) -> tuple[int, int]:
        """How many values of the kind were compared, and how many agree."""
        compared = sum(number for key, number in self.compared.items() if key[2] == kind)
        return compared, sum(number for key, number in self.agreeing.items() if key[2] == kind)

    def note(self, session: Session, kind: str, found: list[Disagreement]) -> None:
        """One value was compared; it agrees if there is no disagreement."""
        key = session.began.snapshot, session.server, kind
        self.compared[key] += 1
        self.agreeing[key] += not found
        self.disagreements += found

    def leave_out(self, session: Session, kind: str, reason: str) -> None:
        """One value cannot be compared."""
        self.not_comparable[session.began.snapshot, session.server, kind, reason] += 1


def compare_logged(case: Case, topology: Topology) -> Comparison:
    """Every session that the errors logs of the case tell of, in all its snapshots, against the rules."""
    found = Comparison()
    known = _Known(case, topology)
    for log in session_logs(case):
        renewals = log.renewals()
        for session in log.sessions():
            _compare(session, known, renewals, found)
    return found


def anchor_disagrees(context: DetectorContext) -> Iterator[Finding]:
    """A finding for each link and kind of value in which a server's own log and the rules disagree."""
    topology = context.topology
    found = compare_logged(context.case, topology)
    groups: dict[tuple[str, str, str], list[Disagreement]] = {}
    for one in found.disagreements:
        groups.setdefault((one.server, one.link, one.kind), []).append(one)
    for (server, name, kind), mine in sorted(groups.items()):
        link = next((one for one in topology.links if (one.supplier, one.name) == (server, name)), None)
        first = mine[0]
        sessions = f"{len(mine)} time{'s' * (len(mine) > 1)}"
        yield Finding(
            "ANCHOR_DISAGREES",
            "warning",
            f"the errors log of {server} shows for the agreement {name} {_SAYS[kind]}, {sessions}; "
            f"first {first.what}: {first.logged} in the log, {first.computed} computed ({first.place.file}:{first.place.offset})",
            server=server,
            link=name,
            suffix=link.suffix if link else None,
            items=tuple(
                sorted({value for one in mine for value in (one.logged, one.computed) if _is_csn(value)})[:_SHOWN]
            ),
            evidence=tuple(one.row() for one in mine[:_SHOWN]),
        )


def _is_csn(value: str) -> bool:
    return len(value) == 20


@dataclass(frozen=True)
class _Agreement:
    """What the case tells of an agreement: its suffix, and its consumer's replica ID; None: nothing tells."""

    suffix: str | None
    consumer_origin: str | None


@dataclass(frozen=True)
class _Changelog:
    """One changelog of the case, what it shows of each replica ID, and the number of its snapshot."""

    log: StoredLog
    by_origin: Mapping[str, Mapping[str, str]]
    snapshot: int

    def ends_before(self, csn: str) -> bool:
        """True if it has changes of the replica ID of this CSN, and none so high."""
        seen = self.by_origin.get(origin_of(csn))
        return seen is not None and csn > seen["max"]


class _Known:
    """What the case knows beside the errors logs: who the consumers are, the first CSNs, and the changelogs."""

    def __init__(self, case: Case, topology: Topology) -> None:
        self._case, self._topology = case, topology
        self._snapshots = {label: number for number, label in enumerate(case.snapshots)}
        self._firsts: dict[tuple[str, str, str | None], dict[str, dict[str, set[str]]]] = {}
        for row in case.arrow("vectors").to_pylist():
            if row["kind"] in ("server", "log_max") and row["origin"] and row["min"]:
                mine = self._firsts.setdefault((row["snapshot"], row["server"], row["suffix"]), {})
                mine.setdefault(row["kind"], {}).setdefault(row["origin"], set()).add(row["min"])
        rows = case.arrow("links").select(["server", "suffix", "name", "consumer_origin"]).to_pylist()
        told = [row for row in rows if row["consumer_origin"]]
        self._origins = {(row["server"], row["suffix"], row["name"]): row["consumer_origin"] for row in told}
        self._lmdb = {one.server for one in case.inputs if "lmdb" in one.facts.get("storage", {})}
        self.changelog = cache(self._changelog)

    def link(self, session: Session) -> _Agreement | None:
        """The agreement; None if the server has several of this name, and the lines of two may have run together."""
        names = (session.server, session.link)
        mine = [one for one in self._topology.links if (one.supplier, one.name) == names]
        if len(mine) == 1:
            return _Agreement(mine[0].suffix, self._origin(mine[0]))
        suffixes = {one.suffix for one in self._case.inputs if one.server == session.server and _keeps_changes(one)}
        return None if mine else _Agreement(suffixes.pop() if len(suffixes) == 1 else None, None)

    def _origin(self, link: Link) -> str | None:
        for replica in self._topology.replicas:
            if (replica.server, replica.suffix) == (link.consumer, link.suffix):
                return replica.origin or ""  # a read-only one makes no changes
        return self._origins.get((link.supplier, link.suffix, link.name))

    def first(self, session: Session, suffix: str | None, rid: str) -> str | None:
        """The smallest CSN of the replica ID in the supplier's vector; None if the snapshot does not tell one."""
        kinds = self._firsts.get((session.began.snapshot, session.server, suffix), {})
        for kind in ("server", "log_max"):
            if found := kinds.get(kind, {}).get(rid):
                return next(iter(found)) if len(found) == 1 else None
        return None

    def may_be_lmdb(self, server: str) -> bool:
        """True if the server's errors log speaks of LMDB, or is of a version that uses it unless told otherwise."""
        return server in self._lmdb

    def _changelog(self, server: str, suffix: str | None, snapshot: str) -> _Changelog | None:
        """The changelog collected with the log, else the next one."""
        logs = [
            one
            for one in self._case.inputs
            if (one.server, one.suffix) == (server, suffix)
            and _keeps_changes(one)
            and self._snapshots[one.snapshot] >= self._snapshots[snapshot]
        ]
        if not logs:
            return None
        number = min(self._snapshots[one.snapshot] for one in logs)

        def last(one: Any) -> tuple[str, int]:
            return max(
                (seen["max"] or "" for seen in one.facts.get("by_origin", {}).values()), default=""
            ), one.accepted

        present = max((one for one in logs if self._snapshots[one.snapshot] == number), key=last)
        return _Changelog(self._case.log(present), present.facts.get("by_origin", {}), number)

    def number(self, snapshot: str) -> int:
        """Which snapshot it is, in the order of time."""
        return self._snapshots[snapshot]


def _keeps_changes(one: Any) -> bool:
    return any(part["table"] == "positions" for part in one.parts)


_FIRST_UNKNOWN = "the consumer has nothing of a replica ID whose first CSN is not known"


def _compare(session: Session, known: _Known, renewals: list[Place], found: Comparison) -> None:
    agreement = known.link(session)
    if agreement is None:
        found.leave_out(session, FIRST, "the server has several agreements of this name")
        return
    unseen = {rid for load in session.loads for rid, block in load.blocks.items() if block.consumer is None}
    firsts = {rid: known.first(session, agreement.suffix, rid) for rid in unseen}
    talk = _first_anchor(session, firsts, agreement, found)
    for load in session.loads[1:]:
        _reload_anchor(session, load, firsts, found)
    if isinstance(talk, str):
        found.leave_out(session, END, talk)
    else:
        _session_end(session, agreement, talk, firsts, known, renewals, found)


def _first_unknown(load: Load, firsts: Firsts) -> bool:
    """True if the consumer has nothing of some replica ID, whose first CSN the case does not tell."""
    return any(block.consumer is None and not firsts.get(rid) for rid, block in load.blocks.items())


def _first_anchor(session: Session, firsts: Firsts, agreement: _Agreement, found: Comparison) -> SendSession | str:
    """Compare the first anchor; gives the session as the rules begin it, or why it cannot be followed."""
    load = session.loads[0]
    reason = None if load.whole else HOLES
    if reason is None and _first_unknown(load, firsts):
        reason = _FIRST_UNKNOWN
    if reason:
        found.leave_out(session, FIRST, reason)
        return reason
    talk = opened(session, firsts, agreement.consumer_origin or "")
    computed = talk.start.anchor
    logged, place = load.anchor, load.anchored or load.place
    if logged is None and session.candidates and (computed or (session.counters or {}).get("load")):
        # The line of its anchor may be another session's as well: that it agrees proves less, and is counted apart.
        if computed in [anchor for anchor, _ in session.candidates]:
            found.ambiguous[session.began.snapshot, session.server] += 1
            found.note(session, FIRST, [])
            return "which first anchor is its own stays open"
        logged = " or ".join(sorted({anchor for anchor, _ in session.candidates}))
        place = session.candidates[0][1]
    if logged is None and computed is not None and session.counters is None and not session.used_up:
        reason = "the log ends before the anchor"
        found.leave_out(session, FIRST, reason)
        return reason
    kind = FIRST if logged and computed else NOTHING
    wrong = logged != computed
    found.note(session, kind, [_told(session, kind, "anchor", logged, computed, place)] if wrong else [])
    return "its first anchor disagrees" if wrong else talk


def _told(session: Session, kind: str, what: str, logged: object, computed: object, place: Place) -> Disagreement:
    def shown(value: object) -> str:
        return "none" if value is None else str(value)

    return Disagreement(kind, session.server, session.link, what, shown(logged), shown(computed), place)


def _reload_anchor(session: Session, load: Load, firsts: Firsts, found: Comparison) -> None:
    """Compare the anchor of a reload with what the rule gives from its own control blocks alone."""
    if not load.whole or load.read is None:
        found.leave_out(session, RELOAD, HOLES)
    elif load is session.loads[-1] and load.anchor is None and session.counters is None and not session.used_up:
        found.leave_out(session, RELOAD, "the log ends before the anchor")
    elif _first_unknown(load, firsts):
        found.leave_out(session, RELOAD, _FIRST_UNKNOWN)
    else:
        computed = reload_anchor(load, firsts)
        kind = RELOAD if load.anchor and computed else NOTHING
        place = load.anchored or load.place
        wrong = load.anchor != computed
        found.note(session, kind, [_told(session, kind, "reload", load.anchor, computed, place)] if wrong else [])


def _session_end(
    session: Session,
    agreement: _Agreement,
    talk: SendSession,
    firsts: Firsts,
    known: _Known,
    renewals: list[Place],
    found: Comparison,
) -> None:
    """Compare the counters with those of the session played from the changelog, if it still shows what was read."""
    counters, filled = session.counters, session.filled
    if counters is None or session.ended is None or session.broken:
        found.leave_out(session, END, session.broken or HOLES)
        return
    if counters.get("load") != len(filled):
        found.leave_out(session, END, "the log does not show all of its loads")
        return
    low, high, last = Counter[str](), Counter[str](), None
    if filled:
        played = _played(session, agreement, talk, firsts, known, renewals)
        if isinstance(played, str):
            found.leave_out(session, END, played)
            return
        if played.differs:
            load, computed = played.differs
            what, place = "reload, played from the changelog", load.anchored or load.place
            found.note(session, END, [_told(session, END, what, load.anchor, computed, place)])
            return
        low, high, last = played.certain, played.certain + played.perhaps, played.last
    off = {
        name: outcome
        for name, outcome in _COUNTERS.items()
        if not low[outcome] <= counters.get(name, 0) <= high[outcome]
    }
    late = known.may_be_lmdb(session.server)
    twice = [
        name
        for name, outcome in off.items()
        if outcome != SENT and (outcome == last or late) and counters[name] == high[outcome] + 1
    ]
    if twice and len(off) == 1:
        found.leave_out(session, END, "the last record, which was left out, seems counted twice, as LMDB does")
        return
    if filled:
        found.played[session.began.snapshot, session.server] += 1
        for name, outcome in _COUNTERS.items():
            found.exact[session.began.snapshot, session.server, name] += low[outcome] == high[outcome]
    wrong = []
    for name, outcome in off.items():
        least, most = low[outcome], high[outcome]
        computed = str(least) if least == most else f"{least} to {most}"
        wrong.append(_told(session, END, name, counters.get(name, 0), computed, session.ended))
    found.note(session, END, wrong)


def _played(
    session: Session, agreement: _Agreement, talk: SendSession, firsts: Firsts, known: _Known, renewals: list[Place]
) -> Played | str:
    """The session played from the changelog collected with its log, or why that changelog cannot show it."""
    changelog = known.changelog(session.server, agreement.suffix, (session.ended or session.began).snapshot)
    if changelog is None:
        return "no changelog of that time was collected"
    if any(session.began.order < one.order and known.number(one.snapshot) <= changelog.snapshot for one in renewals):
        return "the changelog was made anew, imported or cleaned since"
    if any(changelog.ends_before(block.stop) for load in session.loads for block in load.blocks.values()):
        return "the changelog ends before the session: it was collected earlier"
    if not all(changelog.log.holds(load.alternative or load.anchor or "") for load in session.filled):
        return "an anchor is no longer in the changelog: it was trimmed since"
    late = known.may_be_lmdb(session.server)
    played = Played(session, talk, changelog.log, agreement.consumer_origin or "", firsts, late)
    if agreement.consumer_origin is None and (played.certain + played.perhaps)[UNKNOWN]:
        return "the consumer's replica ID is not known, and there are changes that may be its own"
    told = (csn for load in session.filled for csn in (*load.named, *load.own))
    if not played.differs and not all(csn in played.met or changelog.log.holds(csn) for csn in told):
        return "the changelog does not hold all changes that the log names"
    return played
