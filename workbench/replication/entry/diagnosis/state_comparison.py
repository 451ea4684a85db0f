"""The diagnosis of a system that keeps no log of changes: what suppliers answer, and what entries show.

A consumer pulls, and the supplier compares the vectors of both. Equal vectors do not prove equal data: what a server claims and
its entries do not show, while those of others do, it has missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.case.case import Case
from workbench.diagnosis.causes import STATES_UNTOLD
from workbench.diagnosis.entry_names import names_of
from workbench.diagnosis.pending_changes import who_would_send
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.spark_entry_missing import Claimant, Sums, add_to, summed
from workbench.engine.state_fates import Fates, Lacking
from workbench.engine.states import (
    LOOKED_AT,
    WHYS,
    EntryStates,
    Lacked,
    differing,
    held_together,
    states_in,
    states_of_entries,
    unlike,
)
from workbench.intake.inputs import Input
from workbench.intake.links import listing
from workbench.model import Problem
from workbench.replication.entry.diagnosis.domains_told import by_domain, of_untold_domain, told_domains
from workbench.replication.entry.diagnosis.earlier_states import (
    CHANGE_STATE,
    LACKS,
    GoneChange,
    gone_changes,
    missed_rows,
)
from workbench.replication.entry.diagnosis.pull_outcomes import PullOutcomes, of_other_version
from workbench.replication.entry.diagnosis.server_files import ServerFile
from workbench.replication.entry.diagnosis.shown_changes import counted_between
from workbench.replication.entry.rules.entries import (
    DOMAIN_UNTOLD,
    FORGOTTEN,
    MAY_TURN_DOWN,
    NO_ENTRIES,
    OTHER_VERSION,
    Answer,
    Peer,
    Ranges,
)
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, PRESENT, SAYS, UNKNOWN, Verdict
from workbench.systems import format_with
from workbench.tables import Numbers
from workbench.topology.topology import Replica, Topology, is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN_SINCE, OF_TWO = "own_since", "duplicate_origin"
"""Why a server may refuse what is sent: others have own changes of it younger than its files, or another one uses its origin."""


def own_since_say(count: int, on: str, least: str) -> str:
    """What a headline says of own changes of servers that are younger than their files."""
    are, them = ("is newer", "it") if count == 1 else ("are newer", "them")
    return f"{least}{count:,} {are} than the files of {on}, which made {them} after that, or was restored and refuses {them}"


Row = Mapping[str, Any]


def pulls(case: Case, shown: Topology, rules: str | None = None) -> list[dict[str, Any]]:
    """What every server would hear from every other one of its suffix that it asks now."""
    pulling = shown.pulling
    assert pulling is not None
    if rules is not None and rules not in pulling.answers:
        raise Problem(f"there is no rule set {rules}", "", f"the rule sets are {', '.join(pulling.answers)}")
    chosen = rules or next(iter(pulling.answers))
    claiming = [one for one in shown.replicas if one.claims]
    peers = {(one.server, one.suffix): peer_of(case, shown, one) for one in claiming}
    alone = _without_partner(case, shown)
    rows = []
    untold = {
        id(one)
        for suffix in {one.suffix for one in claiming}
        for one in of_untold_domain([each for each in claiming if each.suffix == suffix])
    }
    for supplier, consumer, link in shown.pairs():
        ends = peers[supplier.server, supplier.suffix], peers[consumer.server, consumer.suffix]
        answers = {name: answer(*ends) for name, answer in pulling.answers.items()}
        about: dict[str, Any] = {"supplier": supplier.server, "consumer": consumer.server, "suffix": supplier.suffix}
        about |= {"link": link.name if link else None, "link_enabled": link.enabled if link else None}
        about["would_contact"] = link.enabled is not False if link else None
        ends_here = supplier.server, supplier.suffix, consumer.server
        about["leads_elsewhere"] = link is None and (
            shown.leads_elsewhere(*ends_here)
            or shown.asks_elsewhere(*ends_here)
            or bool(alone & {supplier.server, consumer.server})
        )
        row = about | {"rules": chosen, **_told(shown, answers.pop(chosen)), "others": {}}
        # Words differ from rule set to rule set; what is sent is what counts.
        differ = {name: one for name, one in answers.items() if one.owed != row["owed"]}
        row["others"] = {name: _told(shown, one) for name, one in differ.items()}
        versions = version_of(case, shown, supplier), version_of(case, shown, consumer)
        if {id(supplier), id(consumer)} & untold:
            row |= _told(shown, Answer(DOMAIN_UNTOLD, "", reasons=[(DOMAIN_UNTOLD, SAYS[DOMAIN_UNTOLD])])) | {
                "others": {}
            }
        if row["delivers"] and None not in versions and versions[0] != versions[1]:
            says = f"they are of versions {versions[0]} and {versions[1]}: the consumer refuses what is sent"
            row["delivers"] = False
            row["reasons"] = [*row["reasons"], {"rule": OTHER_VERSION, "says": says, "values": {}}]
        rows.append(row)
    _count(case, shown, rows)
    return rows


def _without_partner(case: Case, shown: Topology) -> set[str]:
    """The servers of which a file lists all links, and none is there: they ask nobody, and nobody may ask them."""
    listed = {server for (snapshot, _), server in listing(case.inputs).items() if snapshot == shown.snapshot}
    return listed - {name for link in shown.links for name in (link.supplier, link.consumer)}


def version_of(case: Case, shown: Topology, replica: Replica) -> str | None:
    """The series of the software of a server, as the file of its vector tells it: 1.10; None: it does not."""
    told = (one.facts.get("version") for one in _inputs(case, shown, replica) if one.file == replica.told_in)
    return next((".".join(one.split(".")[:2]) for one in told if isinstance(one, str)), None)


def now_at(case: Case, shown: Topology, replica: Replica) -> int:
    """What time it was at a server when its files were written; if they do not say, that of the last change it claims."""
    told, ranges = clock_of(case, shown, replica), ranges_of(shown, replica)
    if told is None:
        return max((last for _, last in ranges.values()), default=0)
    return max(
        told, ranges.get(replica.origin or "", (0, 0))[1]
    )  # it goes on behind its own last change, whatever its clock


def clock_of(case: Case, shown: Topology, replica: Replica) -> int | None:
    """What time it was at a server when its files were written, by its own clock; None: they do not say."""
    assert shown.pulling is not None
    told = [shown.pulling.now(one.facts) for one in _inputs(case, shown, replica)]
    return max((time for time in told if time is not None), default=None)


def ranges_of(shown: Topology, replica: Replica) -> dict[str, tuple[int, int]]:
    """What a server claims, as times: origin -> the first and the last."""
    halves = shown.system.halves
    return {
        origin: (halves(span.min)[0], halves(span.max)[0])
        for origin, span in replica.vector.items()
        if span.min and span.max
    }


def _inputs(case: Case, shown: Topology, replica: Replica) -> list[Input]:
    """The files of the server in this snapshot."""
    mine = (one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, replica.server) and one.kind)
    return [one for one in mine if replica.suffix is None or one.may_tell_of(replica.suffix)]


def _told(shown: Topology, answer: Answer) -> dict[str, Any]:
    key = shown.system.order_key

    def ends(ranges: Ranges) -> dict[str, list[str]]:
        return {
            origin: [shown.system.show(key(origin, end, 0)) for end in one] for origin, one in sorted(ranges.items())
        }

    return {
        "decision": answer.decision,
        "message": answer.message or None,
        "anchor": None,
        "anchor_included": False,
        "anchor_class": None,
        "anchor_class_assumed": False,
        "reasons": [{"rule": rule, "says": says, "values": {}} for rule, says in answer.reasons],
        "stop": {},
        "counts": {},
        "unrelated": answer.unrelated,
        "delivers": answer.supplies or answer.replaces,
        "owed": dict(sorted(answer.owed.items())),
        "lag": ends(answer.lag),
        "advance": ends(answer.advance),
        "to_send": {},
    }


def _count(case: Case, shown: Topology, rows: Sequence[dict[str, Any]]) -> None:
    """Write into the rows how many changes of entries lie in what is owed, and give the ends of that as positions."""
    of_supplier: dict[tuple[str, str | None], set[tuple[str, int, int]]] = {}
    for row in rows:
        for one in (row, *row["others"].values()):
            owed = {(origin, *ends) for origin, ends in one["owed"].items()}
            of_supplier.setdefault((row["supplier"], row["suffix"]), set()).update(owed)
    order_key, show = shown.system.order_key, shown.system.show
    for (server, suffix), asked in of_supplier.items():
        replica = next(one for one in shown.replicas if (one.server, one.suffix) == (server, suffix))
        states, ranges = states_of(case, shown, replica), ranges_of(shown, replica)
        found = {one: counted_between(case, states, *one, ranges[one[0]][0]) for one in asked}
        for row in rows:
            if (row["supplier"], row["suffix"]) == (server, suffix):
                for one in (row, *row["others"].values()):
                    for origin, ends in one["owed"].items():
                        count, first, last = found[origin, *ends]
                        if count:
                            texts = {
                                "first": show(order_key(origin, first, 0)),
                                "last": show(order_key(origin, last, 0)),
                            }
                            one["to_send"][origin] = {"count": count, **texts}
                    one["owed"] = {
                        origin: [show(order_key(origin, end, 0)) for end in ends]
                        for origin, ends in one["owed"].items()
                    }


def peer_of(case: Case, shown: Topology, replica: Replica) -> Peer:
    """A server as one side of a pull."""
    ranges, now = ranges_of(shown, replica), now_at(case, shown, replica)
    return Peer(replica.generation, ranges, now, replica.origin, is_shared(shown, replica))


def states_of(case: Case, shown: Topology, replica: Replica, table: str = "states") -> Input | None:
    """The file that shows the server's entries, or holds rows of another table or of any, at the moment of its vector."""
    mine = (one for one in _inputs(case, shown, replica) if one.file == replica.told_in)
    fitting = (one for one in mine if format_with(one.kind).evidence == CHANGE_STATE)
    return next((one for one in fitting if any(table in ("", part["table"]) for part in one.parts)), None)


# --- what is missing


def judged_by_entry(
    case: Case, shown: Topology, pairs: Sequence[Row], limit: int, spark: SparkSession | None = None
) -> Verdicts:
    """What every server lacks of what it claims, and what is still to come; with a session, made once more by Spark."""
    found, check = Verdicts(), _Check(case, shown)
    for suffix in dict.fromkeys(one.suffix for one in shown.replicas):
        _Compared(case, shown, suffix, pairs, limit, found, check if spark is not None else None).judge()
    if spark is not None:
        check.held_against(spark)
    found.unknown.sort(key=lambda row: (row["suffix"] or "", row["server"], row["from"], row["origin"]))
    for name in ("missing", "stranded"):
        rows: list[dict[str, Any]] = getattr(found, name)
        rows.sort(
            key=lambda row: (row["suffix"] or "", row["server"], row["position"], row["entry"], row["attribute"] or "")
        )
    return found


def verdicts_by_entry(case: Case, shown: Topology, position: str) -> list[Verdict]:
    """The verdict of every server that shows entries, where any entry carries the change; of the others nothing is said."""
    pulling, system = shown.pulling, shown.system
    assert pulling is not None
    time, origin = system.halves(position)[0], system.origin_of(position)
    found = []
    of_suffix = [
        [one for one in shown.replicas if one.suffix == suffix and one.claims]
        for suffix in dict.fromkeys(one.suffix for one in shown.replicas)
    ]
    for mine in (group for claiming in of_suffix for group in by_domain(claiming)):
        suffix = mine[0].suffix if mine else None
        servers = [(one, shows) for one in mine if (shows := states_of(case, shown, one))]
        parts = [case.parts("states", shows) for _, shows in servers]
        held = states_of_entries(parts, time, origin)
        claims = [ranges_of(shown, one) for one, _ in servers]
        for number, (replica, shows) in enumerate(servers) if held.entries else ():
            ranges = ranges_of(shown, replica)
            forgotten = now_at(case, shown, replica) - pulling.remember
            lacked = held.lacked_by(number, ranges, forgotten, shows.whole)
            places = [place for place in range(len(lacked)) if held.cid(lacked, place) == (time, origin)]
            whys = {WHYS[int(lacked.why[place])] for place in places}
            if never := whys == {FORGOTTEN} and bool(
                _not_had(pulls(case, shown), claims, held, number, lacked)[places].all()
            ):
                whys = set()
            # Who missed the end of an entry was not asked for what came before it.
            ended = set(lacked[(lacked.attribute < 0) & (lacked.why == 0)].entry.tolist())
            covered = not never and time <= (ranges[origin][1] if origin in ranges else forgotten - 1)
            if covered and ended & held.unlike_at(number, time, origin):
                whys.add("")
            if whys:
                why = min(whys)
                verdict = (UNKNOWN, why, SAYS[why]) if why else (MISSING, LACKS, SAYS[LACKS])
            elif held.shows(number, time, origin):
                verdict = PRESENT, "in_state", SAYS["in_state"]
            elif not covered and origin == replica.origin and is_shared(shown, replica):
                verdict = UNKNOWN, OF_TWO, SAYS[OF_TWO]
            elif not covered:
                verdict = PENDING, "not_covered", NOT_COVERED
            else:
                verdict = PRESENT, "superseded", SAYS["superseded"]
            found.append(Verdict(replica.server, suffix, *verdict))
    if found:
        untold = (one for claiming in of_suffix for one in of_untold_domain(claiming))
        found += [Verdict(one.server, one.suffix, UNKNOWN, DOMAIN_UNTOLD, SAYS[DOMAIN_UNTOLD]) for one in untold]
    return found


def gone_of(
    case: Case, shown: Topology, servers: Sequence[tuple[Replica, Input]], blind: Sequence[Replica]
) -> list[GoneChange]:
    """What only earlier files of these servers show; `blind`: those of their domain without entries."""

    def file_of(one: Replica, shows: Input) -> ServerFile:
        return ServerFile(one, shows, ranges_of(shown, one), now_at(case, shown, one))

    domains, suffixes = {None, *(one.generation for one, _ in servers)}, {one.suffix for one, _ in servers}
    others = [one for one in shown.replicas if one.claims and one.suffix in suffixes and one.generation not in domains]
    told = [(one, states_of(case, shown, one) or states_of(case, shown, one, "")) for one in others]
    elsewhere = [file_of(one, shows) for one, shows in told if shows]
    unread = [(one.server, ranges_of(shown, one)) for one in blind]
    return gone_changes(case, shown, [file_of(*one) for one in servers], unread, elsewhere)


class _Check:
    """What was found of every server, to be held against what Spark finds."""

    def __init__(self, case: Case, shown: Topology) -> None:
        self._case, self._shown = case, shown
        self._groups: list[list[Claimant]] = []
        self._parts: list[str] = []
        self._told: Sums = {}

    def begin(self, servers: Sequence[tuple[Replica, Input]], seen: Sequence[Ranges], forgotten: Sequence[int]) -> None:
        """These servers are compared from now on."""
        about = zip(servers, seen, forgotten, strict=True)
        self._groups.append(
            [Claimant(one.snapshot, one.file, ranges, time, one.whole) for (_, one), ranges, time in about]
        )
        self._parts += [part["path"] for _, one in servers for part in self._case.parts("states", one)]

    def add(self, server: int, held: EntryStates, lacked: Lacked) -> None:
        """What a server lacks, of the number that it has among those compared."""
        add_to(self._told, len(self._groups) - 1, server, held, lacked)

    def held_against(self, spark: SparkSession) -> None:
        """Raise Problem if Spark finds anything else."""
        counted = summed(spark, self._groups, self._parts)
        for key in sorted(self._told.keys() | counted.keys()):
            if self._told.get(key) != counted.get(key):
                group, server, origin, _ = key
                raise Problem(
                    f"the digests and the states of entries disagree on what {self._groups[group][server].file} lacks "
                    f"of origin {origin}",
                    "evidence",
                    "the evidence is damaged: load the inputs into a new case",
                )


class _Compared:
    """The servers of one suffix; those of several generations are not compared with each other."""

    def __init__(
        self,
        case: Case,
        shown: Topology,
        suffix: str | None,
        pairs: Sequence[Row],
        limit: int,
        found: Verdicts,
        check: _Check | None,
    ) -> None:
        self.case, self.shown, self.suffix, self.limit, self.found = case, shown, suffix, limit, found
        self.check = check
        self.pairs = [row for row in pairs if row["suffix"] == suffix]
        claiming = [one for one in shown.replicas if one.suffix == suffix and one.claims]
        self.not_compared = of_untold_domain(claiming)
        self.replicas = [one for one in claiming if one not in self.not_compared]
        self.pending, self.untold = _Spans(), {why: _Spans() for why in (*WHYS, OF_TWO) if why}
        self.now = {one.server: now_at(case, shown, one) for one in self.replicas}
        # What waits for servers of another version comes once they are upgraded: it is stranded nowhere.
        self.outcomes = PullOutcomes(shown, self.replicas, self.now, self.pairs, upgraded=True)

    def judge(self) -> None:
        """Everything about the suffix."""
        for group in by_domain(self.replicas):
            servers: list[tuple[Replica, Input]] = []
            for replica in group:
                if shows := states_of(self.case, self.shown, replica):
                    servers.append((replica, shows))
                else:
                    self._all_unknown(replica, NO_ENTRIES)
            if len(servers) > 1:
                self._compare(servers)
            self._gone(servers, [one for one in group if all(one is not replica for replica, _ in servers)])
        for replica in self.not_compared:
            self._all_unknown(replica, DOMAIN_UNTOLD)
        for why, spans in self.untold.items():
            for (server, origin), (count, first, last) in sorted(spans.items()):
                self._unknown(server, origin, first, last, count, why)
        self._tell_pending()

    def _tell_pending(self) -> None:
        """What waits, with what of it the links that run will bring, at once or through others that wait for it too."""
        fates = self.found.fates.get(self.suffix, ())
        outcomes = PullOutcomes(self.shown, self.replicas, self.now, self.pairs, fates)
        for (server, origin), (count, first, last) in sorted(self.pending.items()):
            about = {"server": server, "suffix": self.suffix, "origin": origin, "count": count}
            about |= {"first": self._position(first, origin), "last": self._position(last, origin)}
            suppliers = who_would_send(self.pairs, server, origin)
            through = [] if suppliers else outcomes.through(server, origin)
            come, fewer = outcomes.arriving(server, origin) if suppliers or through else (count, {})
            may_refuse = (
                self._may_refuse(server) if suppliers or through or self._made_since(server, origin, first) else None
            )
            how = {"suppliers": suppliers, "through": through, "may_refuse": may_refuse, "may_pass_over": fewer}
            self.found.pending.append({**about, "available": come, **how})

    def _made_since(self, server: str, origin: str, first: int) -> bool:
        """True of a server's own changes that are younger than its file: it made them since, or it was restored."""
        return any((one.server, one.origin) == (server, origin) for one in self.replicas) and first > self.now[server]

    def _may_refuse(self, server: str) -> str | None:
        """Why nobody can tell whether the server takes what it is sent."""
        if any(one.server == server and is_shared(self.shown, one) for one in self.replicas):
            return OF_TWO
        mine = (row for row in self.pairs if row["consumer"] == server)
        return OWN_SINCE if any(rule["rule"] == MAY_TURN_DOWN for row in mine for rule in row["reasons"]) else None

    def _all_unknown(self, replica: Replica, why: str) -> None:
        """Nothing is known of what a server claims."""
        for origin, (first, last) in ranges_of(self.shown, replica).items():
            self._unknown(replica.server, origin, first, last, None, why)

    def _unknown(self, server: str, origin: str, first: int, last: int, count: int | None, why: str) -> None:
        row = {"server": server, "suffix": self.suffix, "origin": origin}
        ends = {"from": self._position(first, origin), "to": self._position(last, origin)}
        self.found.totals["unknown"] += 1
        self.found.unknown.append({**row, **ends, "count": count, "why": why})

    def _position(self, time: int, origin: str) -> str:
        return self.shown.system.show(self.shown.system.order_key(origin, time, 0))

    def _compare(self, servers: Sequence[tuple[Replica, Input]]) -> None:
        seen = [ranges_of(self.shown, replica) for replica, _ in servers]
        assert self.shown.pulling is not None
        remember = self.shown.pulling.remember
        forgotten = [now_at(self.case, self.shown, replica) - remember for replica, _ in servers]
        if self.check:
            self.check.begin(servers, seen, forgotten)
        several = len(told_domains(self.replicas)) > 1
        fates = Fates([one.server for one, _ in servers], seen, self.limit, several)
        states, digests = ([self.case.parts(name, one) for _, one in servers] for name in ("states", "digests"))
        for buckets in held_together(differing(digests), LOOKED_AT):
            for numbers in held_together(unlike(states, buckets)):
                self._compare_some(servers, seen, forgotten, states_in(states, numbers), fates)
        known = self.found.fates.setdefault(self.suffix, [])
        known.extend(fates.told(len(known)))

    def _compare_some(
        self,
        servers: Sequence[tuple[Replica, Input]],
        seen: Sequence[Ranges],
        forgotten: Sequence[int],
        held: EntryStates,
        fates: Fates,
    ) -> None:
        lacking = []
        for number, (replica, shows) in enumerate(servers):
            lacked = held.lacked_by(number, seen[number], forgotten[number], shows.whole)
            if self.check:
                self.check.add(number, held, lacked)
            self._missing(servers, held, replica, lacked[lacked.why == 0])
            waits = held.pending_at(number, seen[number], forgotten[number])
            never = _not_had(self.pairs, seen, held, number, lacked)
            waits = held.together(waits, replace(lacked[never], why=np.zeros(int(never.sum()), np.int64)))
            lacked = lacked[~never]
            for why, name in enumerate(WHYS[1:], 1):
                self.untold[name].add(replica.server, held, lacked[lacked.why == why])
            doubted = lacked[lacked.why > 0]
            if is_shared(self.shown, replica):  # of its own origin nothing tells which server made them
                own = np.array([origin == replica.origin for origin in held.origins] or [False])[waits.origin]
                self.untold[OF_TWO].add(replica.server, held, waits[own])
                waits, doubted = waits[~own], held.together(doubted, waits[own])
            self.pending.add(replica.server, held, waits)
            lacking.append(Lacking(lacked[lacked.why == 0], waits, doubted))
            fed = (row for row in self.pairs if row["supplier"] == replica.server)
            delivers = any(row["delivers"] or of_other_version(row) for row in fed)
            if not (delivers and self._may_be_asked(replica.server)):
                others = {at: ranges for at, ranges in enumerate(seen) if at != number}
                self._stranded(servers, held, replica, held.only_at(number, others))
        fates.add(held, lacking)
        self._made_twice(servers, held, forgotten)

    def _may_be_asked(self, server: str) -> bool:
        """True if a server may pull from this one that is not known to: not all tell their links, or it was not collected."""
        here = (one for one in self.case.inputs if one.kind and one.snapshot == self.shown.snapshot)
        telling = {one.server for one in here if format_with(one.kind).tells_links}
        names = {one.server for one in self.replicas}
        mine = (one for one in self.shown.links if (one.supplier, one.suffix) == (server, self.suffix))
        away = any(one.consumer not in names and one.enabled is not False for one in mine)
        return away or bool(self.not_compared) or (bool(self.shown.links) and not names <= telling)

    def _missing(
        self, servers: Sequence[tuple[Replica, Input]], held: EntryStates, replica: Replica, lacked: Lacked
    ) -> None:
        self.found.totals["missing"] += len(lacked)
        lacked = lacked[: max(0, self.limit - len(self.found.missing))]
        holders = held.holders(lacked)
        for at, row in enumerate(self._rows(servers, held, replica, lacked)):
            names = sorted(one.server for (one, _), holds in zip(servers, holders, strict=True) if holds[at])
            proof = {
                "evidence": [CHANGE_STATE],
                "cause": None,
                "reasons": [STATES_UNTOLD],
                "rule": LACKS,
                "says": SAYS[LACKS],
            }
            self.found.missing.append({**row, "held_by": names, **proof})

    def _gone(self, servers: Sequence[tuple[Replica, Input]], blind: Sequence[Replica]) -> None:
        """What only earlier files of these servers show, and who missed it; `blind`: those without entries."""
        gone = gone_of(self.case, self.shown, servers, blind)
        self.found.gone += gone
        rows = [row for one in gone for row in missed_rows(one)]
        self.found.totals["missing"] += len(rows)
        self.found.missing += rows[: max(0, self.limit - len(self.found.missing))]

    def _stranded(
        self, servers: Sequence[tuple[Replica, Input]], held: EntryStates, replica: Replica, some: Lacked
    ) -> None:
        """Of what only this server has seen, that which no other one will have seen once nothing moves any more."""
        spread = self.outcomes.spreading(replica.server)
        # What a server made behind its file it has, whoever else shows it: it was read before, and sends it itself.
        made = {one.origin: self.now[one.server] for one in self.replicas if one.origin and one is not replica}
        never = np.iinfo(np.int64).max
        ends = np.array([spread.get(origin, -1) for origin in held.origins] or [-1], np.int64)
        upto = np.array([made.get(origin, never) for origin in held.origins] or [never], np.int64)
        some = some[some.time <= upto[some.origin]]
        some = some[some.time > ends[some.origin]]
        self.found.totals["stranded"] += len(some)
        some = some[: max(0, self.limit - len(self.found.stranded))]
        self.found.stranded.extend(self._rows(servers, held, replica, some))

    def _made_twice(
        self, servers: Sequence[tuple[Replica, Input]], held: EntryStates, forgotten: Sequence[int]
    ) -> None:
        found = held.made_twice(forgotten)
        found = found[: max(0, self.limit - len(self.found.made_twice))]
        names = names_of(self.case, [one for _, one in servers], (entry for entry, _ in found)) if found else {}
        for entry, ends in found:
            shown = {servers[at][0].server: self._position(*cid) for at, cid in ends.items()}
            about = {"suffix": self.suffix, "entry": entry, "target": names.get(entry, entry)}
            self.found.made_twice.append({**about, "created": shown})

    def _rows(
        self, servers: Sequence[tuple[Replica, Input]], held: EntryStates, replica: Replica, some: Lacked
    ) -> Iterator[dict[str, Any]]:
        if not len(some):
            return
        names = names_of(self.case, [one for _, one in servers], {held.entries[at] for at in some.entry.tolist()})
        for at in range(len(some)):
            time, origin = held.cid(some, at)
            entry, attribute = held.entries[int(some.entry[at])], int(some.attribute[at])
            yield {
                "server": replica.server,
                "suffix": self.suffix,
                "origin": origin,
                "position": self._position(time, origin),
                "operation": "delete" if attribute < 0 else None,
                "target": names.get(entry, entry),
                "entry": entry,
                "attribute": None if attribute < 0 else held.attributes[attribute],
            }


def _not_had(pairs: Iterable[Row], seen: Iterable[Ranges], held: EntryStates, server: int, lacked: Lacked) -> Numbers:
    """Which of these changes of a forgotten origin the server never had, as its entries show.

    Only of an origin that a server still claims, and of which no supplier owes anything to anybody: else a session may bring
    what entries lack of it.
    """
    owed, claimed = ({origin for of in several for origin in of} for several in ((row["owed"] for row in pairs), seen))
    quiet = np.array([origin in claimed and origin not in owed for origin in held.origins] or [False])
    which = np.flatnonzero((lacked.why == WHYS.index(FORGOTTEN)) & quiet[lacked.origin])
    found = np.zeros(len(lacked), bool)
    found[which] = held.never_had(server, lacked[which])
    return found


class _Spans(dict[tuple[str, str], tuple[int, int, int]]):
    """Server and origin -> how many changes, the first time and the last."""

    def add(self, server: str, held: EntryStates, some: Lacked) -> None:
        """Count these in; changes of entries that were counted already must not be among them."""
        for number in np.unique(some.origin).tolist():
            times, key = some.time[some.origin == number], (server, held.origins[number])
            count, first, last = self.get(key, (0, int(times[0]), int(times[0])))
            self[key] = count + len(times), min(first, int(times.min())), max(last, int(times.max()))
