"""Who is who, and who still is: vectors with broken elements, what agreements say of identity and clocks, endless cleaning."""

from __future__ import annotations

import shlex
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.diagnosis.dropped_changes import perhaps_restarted
from workbench.diagnosis.former_origins import InTheWay, in_the_way
from workbench.diagnosis.left_in_logs import stranded_first
from workbench.diagnosis.lost_own_element import LostElement, lost_elements, lost_says
from workbench.model import EVIDENCE_SHOWN, Finding, counted, first_few, listed, step
from workbench.rules.vectors import last
from workbench.systems.ds389.detectors.clocks import of_session, skews
from workbench.systems.ds389.detectors.shown import Row, element_shown
from workbench.systems.ds389.detectors.slow_clocks import behind_when_read, slow_servers
from workbench.systems.ds389.native import keep_alive_dn, replica_dn
from workbench.systems.ds389.rules.cleaning import (
    CRASHES_ALONE,
    CRASHES_REACHED,
    behind_hubs,
    clean_task,
    may_clean_itself,
    read_only_reached,
    survives_cleaning,
)
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, line_shown, session_logs
from workbench.systems.ds389.versions import version_of

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_HANGS_AFTER = timedelta(seconds=300)
_LONG_WAIT = 160
"""Seconds that a task waits before its next try; they double from 10, so it has then tried for five minutes."""

_DUPLICATE_ID, _TIME_SKEW = 11, 2
"""Codes of the last session, as the status of an agreement gives them."""


def broken_vector(context: DetectorContext) -> Iterator[Finding]:
    """Elements of servers' own vectors that the server would not take, that stand twice, or that share one host.

    An element with a URL and without CSNs is sound: the replica is known, and nothing of it was seen yet.
    """
    snapshot = context.topology.snapshot
    mine: dict[tuple[str, str | None], list[Row]] = {}
    for row in context.case.arrow("vectors").to_pylist():
        if row["snapshot"] == snapshot and row["kind"] == "server":
            mine.setdefault((row["server"], row["suffix"]), []).append(row)
    for (server, suffix), rows in sorted(mine.items(), key=lambda item: (item[0][1] or "", item[0][0])):
        wrong: dict[str, list[Row]] = {}
        hosts: dict[str, dict[str, Row]] = {}
        for row in rows:
            if row["problem"]:
                wrong.setdefault(row["problem"], []).append(row)
                continue
            if row["max"] and not row["url"]:
                wrong.setdefault(_NO_URL, []).append(row)
            if host := (row["url"] or "").partition("://")[2].strip("/").lower():
                hosts.setdefault(host, {}).setdefault(row["origin"], row)
        shared = {origin for origins in hosts.values() if len(origins) > 1 for origin in origins}
        rejected = bool(wrong)
        for host, origins in hosts.items():
            if len(origins) > 1:
                wrong.setdefault(f"one host under the replica IDs {', '.join(sorted(origins))}", []).extend(
                    {**row, "host": host} for row in origins.values()
                )
        stands = [
            (name, about)
            for (name, of), about in sorted(context.once(in_the_way).items())
            if of == suffix and server in about.suppliers
        ]
        for name, about in stands:
            wrong.setdefault(_stands_in_the_way(name, about), []).extend(
                row for row in rows if row["origin"] in about.origins
            )
            shared |= {*about.origins, *_origin_of(context, about.maker, suffix)}
        if lost := context.once(lost_elements).get((server, suffix)):
            wrong[lost_says(server, lost)] = [row for row in rows if row["origin"] == lost.origin] or rows[:1]
        used = {one.origin for one in context.topology.replicas if one.suffix == suffix}
        moment = wrong.keys() == {_NO_URL} and all(row["origin"] in used for row in wrong[_NO_URL])
        if wrong:
            found = [row for problem in sorted(wrong) for row in wrong[problem]]
            replica = context.replica(server, suffix)
            own = replica is not None and any(row["problem"] and row["origin"] == replica.origin for row in found)
            yield Finding(
                "BROKEN_VECTOR",
                "error" if stands or lost else "info" if moment else "warning",
                f"the RUV of {server} is broken: {'; '.join(sorted(wrong))}",
                server=server,
                suffix=suffix,
                evidence=first_few(map(element_shown, found)),
                fix=_lost_fixes(context, server, suffix, lost)
                if lost and len(wrong) == 1
                else (
                    *(_lost_fixes(context, server, suffix, lost) if lost else ()),
                    *stranded_first(context.verdicts, server, suffix),
                    step(
                        f"restart {server}: the element of its own replica ID is broken, and it makes that anew when it starts",
                        "a server whose own element is broken may be taken for another one until then (code 11)",
                        f"save first the changes that {server} made and no other server has: they may be hidden behind "
                        "its newer ones. Do not clean its replica ID",
                    ),
                )
                if own
                else (_NEXT_CHANGE,)
                if moment
                else (
                    *(_lost_fixes(context, server, suffix, lost) if lost else ()),
                    *_off_before_cleaning(context, suffix),
                    step(
                        "clean the replica ID that no server has any more, or restart the server and collect its RUV again",
                        "the server rejects a broken element, and then knows nothing of that replica ID",
                        _ONLY_IF_DEAD,
                    )
                    if rejected
                    else _clean_the_dead(context, server, suffix, shared),
                ),
                root="; ".join(
                    f"nothing goes to {name}: replica ID {listed(about.origins)}, which {about.maker} had before, is in the way"
                    for name, about in stands
                )
                or (
                    f"nothing goes to {server}: its RUV has lost its own element, of replica ID {lost.origin}"
                    if lost
                    else ""
                ),
            )


def _lost_fixes(
    context: DetectorContext, server: str, suffix: str | None, lost: LostElement
) -> tuple[Mapping[str, str | None], ...]:
    """What lets sessions with a server begin again whose RUV lost its own element."""
    why = f"after that change the RUV names its own element again, and sessions begin where {server} stands"
    beware = f"do not initialise {server}: it is not needed, and throws away what only {server} has"
    entry = f"for example in its entry {keep_alive_dn(suffix or '', lost.origin)}"
    if not lost.again:
        return (step(f"make one change on {server}, {entry}", why, beware),)
    words = ("replication", "promote", "--suffix", suffix or "", "--newrole", "supplier", "--replica-id", lost.origin)
    return (
        step(
            f"make {server} a supplier again, with the replica ID that it had, on {server}: `dsconf INSTANCE {shlex.join(words)}`"
            f"; then make one change on it, {entry}",
            why,
            f"only if replica ID {lost.origin} was neither cleaned since nor given to another server; {beware}",
        ),
        step(
            f"or, if {server} is to stay a hub, initialise it from a server with all that it has: `workbench plan` compares them",
            "a hub makes no changes: its RUV gets that element from a server that has it",
            "first do what STRANDED_CHANGE says of it, if anything",
        ),
    )


def _stands_in_the_way(name: str, about: InTheWay) -> str:
    return (
        f"{about.maker} had replica ID {listed(about.origins)} before, and because of it sessions over {listed(about.links)} "
        "would have to begin at a record that the changelogs there do not have; once it is cleaned they begin, and bring the "
        f"{counted(about.waits)} that {name} waits for"
    )


def _origin_of(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    replica = context.replica(server, suffix)
    return {replica.origin} if replica and replica.origin else set()


_NO_URL = "CSNs without a URL"
_NEXT_CHANGE = step(
    "wait for the next changes, or make one on a supplier",
    "the server got a change before it learnt the address of its origin, and takes that over from a supplier with the next ones; "
    "a search for the RUV leaves such an element out until then, so others may seem to be further",
)
_ONLY_IF_DEAD = "clean a replica ID only if it is dead: a live one would lose its changes"


def _off_before_cleaning(context: DetectorContext, suffix: str | None) -> Iterator[Mapping[str, str | None]]:
    """What keeps a cleaning away from the servers that crash as it reaches them."""
    shown = context.topology
    crash = [name for name in read_only_reached(shown, suffix) if not survives_cleaning(version_of(context, name))]
    if not crash:
        return
    makers = {one.server for one in shown.replicas if one.suffix == suffix and one.origin is not None}
    links = sorted(
        one.name
        for one in shown.links
        if one.suffix == suffix and one.consumer in crash and one.supplier in makers and one.enabled is not False
    )
    yield step(
        f"first switch {listed(links)} off until the task that cleans has ended",
        f"{listed(crash)} may crash: {CRASHES_REACHED}",
        f"{listed(crash)} keep{'s' * (len(crash) == 1)} the replica ID until the next initialisation",
    )


def _clean_the_dead(
    context: DetectorContext, server: str, suffix: str | None, origins: set[str]
) -> dict[str, str | None]:
    """What to do about replica IDs of one host: each element is sound by itself, and a restart keeps them all."""
    users = Counter(one.origin for one in context.topology.replicas if one.suffix == suffix)
    used, shared = {*users}, [origin for origin in sorted(origins & users.keys()) if users[origin] > 1]
    dead = sorted(origins - used) if origins & used else []
    which = (
        f"replica ID {', '.join(dead)}, which no collected server has"
        if dead
        else "the one that no server has any more"
    )
    behind = behind_hubs(context.topology, suffix)
    naming = {one.server for one in context.topology.replicas if one.suffix == suffix and {*dead} & one.vector.keys()}
    if dead and naming <= {name for name in behind if not _cleans_itself(context, name, suffix)}:
        return step(
            f"initialise {server} from a server whose RUV does not name replica ID {', '.join(dead)}, if it is to go from there",
            f"no other RUV names it: {listed(sorted(naming))} keep{'s' * (len(naming) == 1)} it until then, for no hub passes "
            f"a cleaning on, and {CRASHES_ALONE}",
        )
    words = ("repl-tasks", "cleanallruv", "--suffix", suffix or "SUFFIX", "--replica-id", *(dead[:1] or ["ID"]))
    command = f"on a supplier: `dsconf INSTANCE {shlex.join(words)}`{' and so on' if dead[1:] else ''}"
    if server in behind:
        if _cleans_itself(context, server, suffix):
            task = f"`nsds5task: CLEANRUV{dead[0] if dead else 'ID'}` of {replica_dn(suffix or '')}"
            command += f"; then on {server} itself, as no hub passes a cleaning on: {task}, with ldapmodify"
        else:
            command += (
                f"; {server} keeps it until it is initialised again: no hub passes a cleaning on, and {CRASHES_ALONE}"
            )
    first = (
        f"once DUPLICATE_ORIGIN is mended, and if no server uses {', '.join(dead)} then, " if dead and shared else ""
    )
    return step(
        f"{first}clean {which}, {command}",
        "a server that was given another replica ID leaves its old one in every RUV, and no restart takes it out",
        _ONLY_IF_DEAD,
    )


def _cleans_itself(context: DetectorContext, server: str, suffix: str | None) -> bool:
    mine = context.replica(server, suffix)
    return may_clean_itself(bool(mine and mine.keeps_log), version_of(context, server))


def told_by_status(context: DetectorContext) -> Iterator[Finding]:
    """What the last session of an agreement ended with: the same replica ID on both sides, or clocks too far apart."""
    statuses = context.statuses()
    skewed = any(row.get("status_code") == _TIME_SKEW for row in statuses.values())
    wrong = _wrong_clocks(context) if skewed else set()
    consumers = {(link.supplier, link.suffix, link.name): link.consumer for link in context.topology.links}
    itself = {
        (one.supplier, one.suffix, one.name) for one in context.topology.links if one.failure and one.failure.itself
    }
    origins = Counter((one.suffix, one.origin) for one in context.topology.replicas if one.origin)
    for (server, suffix, name), row in sorted(statuses.items(), key=str):
        code = row.get("status_code") if of_session(row) else None
        replica = context.replica(server, suffix)
        if code == _DUPLICATE_ID and (server, suffix, name) in itself:
            continue  # it is one server: LINK_FAILING says so
        if code == _DUPLICATE_ID and replica and origins[suffix, replica.origin or ""] > 1:
            continue  # both were collected: what they have in common is told of them
        consumer = context.replica(consumers.get((server, suffix, name)), suffix)
        if code == _DUPLICATE_ID and replica and consumer and replica.origin != consumer.origin:
            continue  # it was so at the last attempt; their own entries show two IDs now
        about: Any = {key: row.get(key) for key in ("file", "offset", "name", "status_code", "status")}
        told: Any = {"server": server, "link": name, "suffix": suffix, "evidence": (about,)}
        if code == _DUPLICATE_ID:
            yield Finding(
                "DUPLICATE_ORIGIN",
                "error",
                f"the consumer of the agreement {name} turned {server} away: it has the same replica ID",
                **told,
                fix=(
                    step(
                        "give one of the two another replica ID and initialise it from the other",
                        "each takes the changes of the other for its own",
                    ),
                ),
            )
        elif code == _TIME_SKEW and not wrong & {server, consumers.get((server, suffix, name))}:
            yield Finding(
                "CLOCK_AHEAD",
                "error",
                f"the agreement {name} of {server} stands still: the clocks of the two servers are too far apart",
                **told,
                root=f"the clocks of {_both(server, consumers.get((server, suffix, name)), name)} are too far apart",
                fix=(
                    step(
                        "set the clocks right on every server, then disable and enable the agreement",
                        "a CSN generator moves at most a day forward, and the session ends for good until somebody acts",
                        "nsslapd-ignore-time-skew lets them go on, and spreads the wrong time to all",
                    ),
                ),
            )


def cleaned_and_back(context: DetectorContext) -> Iterator[Finding]:
    """Replica IDs that servers have cleaned and that are in use again, with the servers that drop their changes."""
    waits: dict[tuple[str | None, str], list[Row]] = {}
    for row in context.verdicts.pending:
        if row.get("dropped_since") and not row["dropped_by_task"]:  # CLEAN_HANGING tells of tasks
            waits.setdefault((row["suffix"], row["origin"]), []).append(row)
    for (suffix, origin), rows in sorted(waits.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        rows = sorted(rows, key=lambda row: row["server"])
        replicas = context.topology.replicas
        maker = next((one.server for one in replicas if (one.suffix, one.origin) == (suffix, origin)), None)
        names, drops = ", ".join(row["server"] for row in rows), "drop" if rows[1:] else "drops"
        unsure = perhaps_restarted(rows)
        perhaps = (
            f" (the errors log of {', '.join(unsure)} ends too early to tell whether that was done)" if unsure else ""
        )
        meant = f"{maker} is meant to take part; else stop {maker}, and delete its agreements" if maker else ""
        yield Finding(
            "CLEANED_ORIGIN_BACK",
            "error",
            f"{maker or 'a server that was not collected'} makes changes as replica ID {origin}, which was cleaned on {names}; "
            f"{names} {drops} them until restarted{perhaps}",
            server=maker,
            origin=origin,
            suffix=suffix,
            items=tuple(sorted(row["first"] for row in rows)),
            evidence=first_few(
                {
                    "server": row["server"],
                    "cleaned_at": row["dropped_since"],
                    "waits_for": row["count"],
                    "first": row["first"],
                }
                for row in rows
            ),
            root=f"replica ID {origin} was cleaned, and {maker or 'a server'} makes changes as it again",
            fix=(
                step(
                    f"restart {names}, if {meant or f'the server of replica ID {origin} is meant to take part; else stop it'}",
                    f"no start of {names} is logged since the cleaning: a read-only server answers the changes of an ID that it "
                    "cleaned with success and drops them, in all of its suffixes, until it is restarted",
                    f"what {maker or 'that server'} lacks it gets over a link that leads to it, or by an initialisation, which "
                    "throws away what only it has",
                ),
            ),
        )


def cleaned_and_alive(context: DetectorContext) -> Iterator[Finding]:
    """Servers that take part with a replica ID which others cleaned: these know nothing of it any more, and lack what it made."""
    shown, code = context.topology, context.topology.proving.cleaned
    dropped = {(row["suffix"], row["origin"]) for row in context.verdicts.pending if row.get("dropped_since")}
    for one in shown.replicas:
        elsewhere = any(one.origin in other.vector for other in shown.replicas if other.suffix != one.suffix)
        if not one.origin or not one.claims or one.origin not in one.vector or elsewhere:
            continue
        if (one.suffix, one.origin) in dropped:
            continue  # CLEANED_ORIGIN_BACK says it
        others = [x for x in shown.replicas if (x.suffix, x.server != one.server) == (one.suffix, True) and x.claims]
        where = (pc.field("code") == code) & (pc.field("origin") == one.origin) & pc.field("at").is_valid()
        at: dict[str, datetime] = {}
        for other in others if code else ():
            if not last(other.vector, one.origin):  # an element without a CSN is none that it took changes by
                batches = context.rows("messages", ["at"], where, snapshot=shown.snapshot, server=other.server)
                times = [row["at"] for batch in batches for row in batch.to_pylist()]
                at |= {other.server: max(times)} if times else {}
        if not at:
            continue
        names = listed(sorted(at))
        yield Finding(
            "CLEANED_ORIGIN_ALIVE",
            "error",
            f"{one.server} has replica ID {one.origin}, and {names} cleaned that, the last at "
            f"{max(at.values()):%Y-%m-%d %H:%M:%S} UTC: they know nothing of its changes any more, and no session can go on "
            "where the last one ended",
            server=one.server,
            origin=one.origin,
            suffix=one.suffix,
            evidence=first_few({"server": name, "cleaned_at": when.isoformat()} for name, when in sorted(at.items())),
            root=f"replica ID {one.origin} was cleaned on {names}, and {one.server} has it",
            fix=(
                step(
                    f"find out whether {one.server} is to take part. If not, save what only it has, stop it, and delete the "
                    "agreements from it and to it",
                    "its next change brings the replica ID back to all servers",
                ),
                step(
                    f"if it is, bring its data and those of {names} together as the other findings say: what only one of them "
                    "has is saved first, then one is initialised from the other",
                    f"what {one.server} made before the cleaning, {names} may lack for good, for no changelog has it any more",
                ),
            ),
        )


def _wrong_clocks(context: DetectorContext) -> set[str]:
    """The servers of which other findings say that their clocks are so far off that sessions fail."""
    slow = {one.server for one in context.once(slow_servers) if one.grave}
    slow |= {one.server or "" for one in behind_when_read(context)}
    return slow | {one.server for one in skews(context)}


def _both(server: str, consumer: str | None, name: str) -> str:
    """The two servers of an agreement, in one order for both directions."""
    return " and ".join(sorted((server, consumer))) if consumer else f"{server} and of the consumer of {name}"


class _Waiting:
    """The lines of one task since it last came to an end."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Place | None = None
        self.last: tuple[Row, Place] | None = None
        self.kept: deque[tuple[Row, Place]] = deque(maxlen=EVIDENCE_SHOWN)

    def add(self, row: Row, place: Place) -> None:
        self.count += 1
        self.first, self.last = self.first or place, (row, place)
        self.kept.append((row, place))

    @property
    def hangs(self) -> bool:
        if self.last is None or self.first is None:
            return False
        row, place = self.last
        wait = dict(row["numbers"]).get("seconds", "")
        long = wait.isdecimal() and int(wait) >= _LONG_WAIT
        return long or (place.at is not None and self.first.at is not None and place.at - self.first.at >= _HANGS_AFTER)


def clean_hanging(context: DetectorContext) -> Iterator[Finding]:
    """Tasks that clean a replica ID and wait: by the last lines of the log, in two snapshots in the replica's entry, or in the
    last of them where the ID is that of a server which is there.
    """
    logged: dict[tuple[str, str], _Waiting] = {}
    done: dict[str, dict[str, datetime]] = {}
    for log in session_logs(context.case):
        for row, place in log.lines(("clean_waiting", "clean_done", "clean_step", "starting"), WITH_TEXT):
            if row["code"] == "starting":
                for servers in done.values():
                    servers.pop(log.server, None)
                continue
            key = (log.server, row["origin"])
            if row["code"] == "clean_done" and place.at:
                done.setdefault(row["origin"], {})[log.server] = place.at
            ended = row["code"] == "clean_done" or "uccessfully aborted" in dict(row["numbers"]).get("step", "")
            if ended:
                logged.pop(key, None)
            elif row["code"] == "clean_waiting":
                logged.setdefault(key, _Waiting()).add(row, place)
    now, stored = _in_snapshots(context)
    # The log does not tell the suffix: of an ID that several have, its lines are a finding of their own.
    alive = {(one.suffix, one.origin) for one in context.topology.replicas}
    hanging: set[tuple[str, str, str | None]] = {(server, rid, of) for server, of, rid in stored}
    hanging |= {(server, rid, of) for server, of, rid in now if (of, rid) in alive}
    waits = (row for row in context.verdicts.pending if row.get("dropped_by_task"))
    hanging |= {(row["server"], row["origin"], row["suffix"]) for row in waits}
    hanging |= {(*key, _cleaned_in(context, *key)) for key, one in logged.items() if one.count}
    for server, origin, suffix in sorted(hanging, key=lambda key: (key[0], key[1], key[2] or "")):
        entry = now.get((server, suffix, origin))
        waiting = logged.get((server, origin)) if suffix == _cleaned_in(context, server, origin) else None
        last = dict(waiting.last[0]["numbers"]) if waiting and waiting.last else {}
        why = f": {last['step']}" if last.get("step") else ""
        live = [
            one.server for one in context.topology.replicas if origin == one.origin and suffix in (None, one.suffix)
        ]
        unread = [] if live else _consumers_with(context, origin, suffix)
        owners = live or unread
        hangs = (server, suffix, origin) in stored or bool(waiting and waiting.hangs)
        ends = "does not end" if hangs else "has not ended yet"
        whose = f"; it is the replica ID of {listed(live)}" if live else ""
        if unread:
            whose = f"; by the agreements that lead to it, it is the replica ID of {listed(unread)}, whose data were not read"
        began = waiting.first.at if waiting and waiting.first else None
        times = done.get(origin, {}) if live and began else {}
        # What was cleaned long before was cleaned by another task.
        ended = sorted(name for name, at in times.items() if name != server and began and at >= began - _HANGS_AFTER)
        if ended:
            whose += f"; {listed(ended)} cleaned it already, and {'was' if len(ended) == 1 else 'were'} not started since (by "
            whose += f"{'its' if len(ended) == 1 else 'their'} errors log{'s' * (len(ended) > 1)})"
        yield Finding(
            "CLEAN_HANGING",
            "error" if owners else "warning" if hangs else "info",
            f"the task on {server} that cleans replica ID {origin} {ends}{why}{whose}",
            server=server,
            origin=origin,
            suffix=suffix,
            evidence=(
                *([entry] if entry else []),
                *(first_few((line_shown(*one) for one in waiting.kept), waiting.count) if waiting else ()),
            ),
            root=f"a task on {server} is to clean replica ID {origin}, which is that of {listed(owners)}"
            if owners
            else "",
            fix=(
                _stop_cleaning(server, origin, suffix, owners, ended)
                if owners
                else _let_it_end(server, origin, suffix),
            ),
        )


def _cleaned_in(context: DetectorContext, server: str, origin: str) -> str | None:
    """The suffix in which a server cleans a replica ID, where it has one suffix alone, or the ID is known in one alone."""
    replicas = context.topology.replicas
    own = {one.suffix for one in replicas if one.server == server}
    known = {one.suffix for one in replicas if one.suffix in own and origin in (one.origin, *one.vector)}
    found = own if len(own) == 1 else known
    return found.pop() if len(found) == 1 else None


def _consumers_with(context: DetectorContext, origin: str, suffix: str | None) -> list[str]:
    """The consumers that agreements still lead to, that were not read, and that had this replica ID when they last answered."""
    shown, snapshot = context.topology, context.topology.snapshot
    known = {
        (row["server"], row["name"])
        for row in context.case.arrow("links").to_pylist()
        if row["snapshot"] == snapshot and row["consumer_origin"] == origin and suffix in (None, row["suffix"])
    }
    links = [link for link in shown.links if (link.supplier, link.name) in known and suffix in (None, link.suffix)]
    names = {link.consumer or (link.failure and link.failure.means) or link.address or "" for link in links}
    read = {one.server for one in shown.replicas if one.claims and suffix in (None, one.suffix)}
    return sorted(names - read - {""})


def _abort(server: str, origin: str, suffix: str | None) -> str:
    """The command that ends a task of cleaning."""
    words = ("repl-tasks", "abort-cleanallruv", "--suffix", suffix or "SUFFIX", "--replica-id", origin)
    return f"on {server}: `dsconf INSTANCE {shlex.join(words)}`"


def _stop_cleaning(
    server: str, origin: str, suffix: str | None, live: Sequence[str], ended: Sequence[str]
) -> dict[str, str | None]:
    again = f"; then restart {listed(ended)}, which cleaned it and may drop its changes until then" if ended else ""
    return step(
        f"end the task before it goes on, {_abort(server, origin, suffix)}{again}",
        f"once it is cleaned, the other servers drop what {listed(live)} writes as replica ID {origin}",
        f"if {listed(live)} is meant to go, end its replication first and see that all servers have its changes",
    )


def _let_it_end(server: str, origin: str, suffix: str | None) -> dict[str, str | None]:
    return step(
        "bring the server that it waits for online, or delete the agreement that leads to one that is gone; initialise one that "
        "is online and behind in this replica ID, if nothing brings it the rest",
        "without force the task waits until every direct, enabled agreement answers and covers the last CSN",
        "forcing it loses every change of the replica ID that a server still lacks; where a read-only server crashes at each "
        f"start, end the task first, {_abort(server, origin, suffix)} ({CRASHES_REACHED})",
    )


_Task = tuple[str, str | None, str]
"""A task of cleaning: server, suffix, replica ID."""


def _in_snapshots(context: DetectorContext) -> tuple[dict[_Task, dict[str, Any]], set[_Task]]:
    """The tasks that the entry of a replica names in the last snapshot, and those that the one before names as well."""
    before = context.earlier
    values: dict[str, dict[_Task, dict[str, Any]]] = {}
    for one in context.case.inputs:
        for suffix, texts in one.facts.get("cleaning", {}).items():
            for task, text in ((clean_task(text), text) for text in texts):
                if task:
                    entry = {"file": one.file, "suffix": suffix or None, "nsds5ReplicaCleanRUV": text}
                    values.setdefault(one.snapshot, {})[one.server, suffix or None, task.rid] = entry
    now, old = values.get(context.topology.snapshot, {}), values.get(before.snapshot if before else "", {})
    return now, {
        key for key in now.keys() & old.keys() if now[key]["nsds5ReplicaCleanRUV"] == old[key]["nsds5ReplicaCleanRUV"]
    }
