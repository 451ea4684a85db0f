"""Why agreements that are switched on do not run: the status of the last attempt, made precise by the errors logs.

The status is the last word, for the first session that runs overwrites it; only a login that succeeds after a failed one may
leave the old status, and stands in the log. Logs are read only where a status tells of a failure: a healthy mesh costs nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.model import EVIDENCE_SHOWN, first_few
from workbench.rules.initialisations import ABORTED, Initialisation
from workbench.rules.link_failures import (
    ANCHOR_LOST,
    BACKING_OFF,
    BIND_REFUSED,
    BUSY,
    CLOCK_REFUSED,
    CONSUMER_READ_ONLY,
    GENERATION_DIFFERS,
    LAST_SESSION,
    NO_SUCH_REPLICA,
    NOT_INITIALISED,
    PERMISSION,
    REFUSED,
    TLS,
    TRANSIENT,
    UNKNOWN,
    UNREACHABLE,
    WRONG_SUFFIX,
    LinkFailure,
    LinkKey,
)
from workbench.systems.ds389.logged.addresses import Addresses
from workbench.systems.ds389.logged.certificates import with_certificates
from workbench.systems.ds389.logged.closed_links import (
    answers_another,
    fails_still,
    goes_on,
    not_in_session,
    started_again,
    status_shown,
)
from workbench.systems.ds389.logged.fillings_begun import fills_anew
from workbench.systems.ds389.logged.hubs import AS_HUB, NOT_FIRST, mistaken_says, once_of, taken_for
from workbench.systems.ds389.logged.initialisations import filled_at, last_success, left_unfilled
from workbench.systems.ds389.logged.lines import WITH_TEXT, Place, line_shown, session_logs
from workbench.systems.ds389.logged.link_fixes import DUPLICATE_ID, Agreement, fixes_of
from workbench.systems.ds389.logged.listening_ports import plain_port, why_not_reached
from workbench.systems.ds389.logged.lost_anchors import by_its_log
from workbench.systems.ds389.logged.read_only_suppliers import of_consumer, read_only_last, reads_only
from workbench.systems.ds389.logged.refusals import (
    LOGIN_NOTES,
    LOGIN_NOTES_SAY,
    NOT_SAID,
    READ_ONLY,
    closed_with,
    no_room,
    of_data,
    reason_for_53,
    refused_by,
    refused_no_more,
    said_at,
    too_large,
)
from workbench.systems.ds389.logged.replicas_off import link_begins, not_reached, off_at, replicas_off, statuses_of
from workbench.systems.ds389.rules.ldap_results import REFUSES_ALL, in_words
from workbench.systems.ds389.rules.link_reasons import (
    BROKEN,
    CONSUMER_DOWN,
    INACTIVE,
    LOCKED,
    NO_LISTENER,
    NO_TLS,
    NOT_PREPARED,
    PLAIN_PORT,
    REFUSED_SESSIONS,
    SCHEMA_REFUSED,
    TIMEOUT,
    TOO_WEAK,
    Cause,
    as_said,
    cause_of,
    encrypted,
    stopped_for,
)

if TYPE_CHECKING:
    from workbench.cases.case import Case
    from workbench.fleet.topology import Link, Replica, Topology

Row = Mapping[str, Any]

_CONNECTING = frozenset({BIND_REFUSED, TLS, UNREACHABLE})
_LINES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_CONNECTING, frozenset({"bind", "connect_failed"})),
    REFUSED: frozenset({"acquire_failed", "duplicate_origin"}),
    PERMISSION: frozenset({"acquire_failed"}),
    NO_SUCH_REPLICA: frozenset({"acquire_failed"}),
    BUSY: frozenset({"busy", "retry_later"}),
    GENERATION_DIFFERS: frozenset({"generation_differs"}),
    NOT_INITIALISED: frozenset({"not_initialised"}),
    CLOCK_REFUSED: frozenset({"time_skew", "acquire_failed"}),
    BACKING_OFF: frozenset({"retry_later"}),
}
"""Reason -> codes of the lines that tell of an attempt which failed for it."""
_OF_CLOCKS = re.compile(r"clock skew|time skew|current CSN")
"""What a line says that tells of clocks: other failures to acquire a replica end by themselves."""
_RUNS = frozenset({"acquired", "released"})
_NO_ANCHOR = frozenset({"missing_data", "purged_data"})
"""What the supplier says as a session ends that finds no record of its anchor."""
_FURTHER = _NO_ANCHOR | {"retry_later", "total_end"}
"""Lines of an attempt that the consumer let in: what kept earlier ones out was over by then."""
_SWITCHED, _FATAL, _START, _SCHEMA = "agreement_switched", "session_fatal", "starting", "schema_refused"
_ALL = sorted({code for codes in _LINES.values() for code in codes} | _RUNS | _FURTHER | {_SWITCHED, _SCHEMA})
_WRONG = re.compile(r"LDAP error 49\b")
_BIND_ID = re.compile(r"bind (?:request for )?id \[([^\]]*)\]")
_LOOPS_FROM = 3
"""Refusals of one change: a second one is how a session goes on that broke for another reason."""


def link_failures(case: Case, shown: Topology) -> dict[LinkKey, LinkFailure]:
    """The links of the snapshot that are switched on and do not run, each with the reason."""
    statuses = statuses_of(case, shown.snapshot)
    found = _by_status(case, shown, statuses)
    off = [one for one in replicas_off(case, shown, statuses) if one.in_force]
    for link in shown.links:
        key = link.supplier, link.suffix, link.name
        told = found.get(key)
        ends = [one for one in off if one.is_end_of(link, told)]
        if ends and link.enabled is not False and not (told and not_reached(told) and not link_begins(link, ends)):
            found[key] = off_at(ends, link, told)
    return found | closed_with(shown.links, found)


def _by_status(case: Case, shown: Topology, statuses: Mapping[LinkKey, Row]) -> dict[LinkKey, LinkFailure]:
    """The links of which the status of their agreement, or the log of their supplier, says that they do not run."""
    found: dict[LinkKey, LinkFailure] = {}
    failing: dict[str, list[_Failing]] = {}
    places = Addresses(case, shown)
    counts = ((one.server, one.facts.get("codes", {}).get("retry_later", 0)) for one in case.inputs)
    retrying, begun = {server for server, count in counts if count >= _LOOPS_FROM}, set[LinkKey]()
    for link in shown.links:
        key = link.supplier, link.suffix, link.name
        row = statuses.get(key, {})
        if link.enabled is False:
            continue
        if told := not_in_session(case, shown, link, row):
            found[key] = told
        elif cause := cause_of(row.get("status"), row.get("transport")) or _to_itself(link, places):
            failing.setdefault(link.supplier, []).append(_Failing(link, row, cause))
        elif link.consumer and link.supplier in retrying:
            # Between two failures the status tells of the attempt that has just begun.
            failing.setdefault(link.supplier, []).append(_Failing(link, row, Cause(BACKING_OFF, 0, "", "")))
            begun.add(key)
    empty = left_unfilled(places, statuses) if failing else {}
    stopped = {one.server for one in case.inputs if one.facts.get("codes", {}).get(_FATAL)}
    if not failing and not stopped:
        return found
    logs = session_logs(case.until(shown.snapshot))
    suffixes = Counter((link.supplier, link.name) for link in shown.links)
    # Lines name no suffix: nobody knows which one has stopped of agreements of one name in two suffixes.
    known = {name for name, count in suffixes.items() if count == 1}
    for log in (log for log in logs if log.server in stopped):
        # An agreement that was turned away at its first attempt stops, and its status goes on saying that it never tried.
        quiet = [
            (link, statuses.get((link.supplier, link.suffix, link.name), {}))
            for link in shown.links
            if link.supplier == log.server and link.enabled is not False and (link.supplier, link.name) in known
            and (link.supplier, link.suffix, link.name) not in found
            and all(one.link is not link for one in failing.get(log.server, ()))
        ]  # fmt: skip
        failing.setdefault(log.server, []).extend(_stopped(log, quiet))
    for log in logs:
        logins = {name: row.get("login") or "" for (server, _, name), row in statuses.items() if server == log.server}
        _read(log, [one for one in failing.get(log.server, ()) if not one.counts], logins, known)
    for one in read_only_last(shown, (one for mine in failing.values() for one in mine)):
        key = one.link.supplier, one.link.suffix, one.link.name
        # Of a login that succeeds the status says nothing while there is nothing to send: then the log is the later word.
        if not (one.healed and one.connecting):
            unfilled = empty.get((one.link.consumer or one.link.address or "", one.link.suffix))
            told = _told(case, shown, one, places, logs, unfilled, found)
            if key not in begun or (
                told.reason not in TRANSIENT and fails_still(case, shown, one.link, one.row, one.last)
            ):
                found[key] = told
    return with_certificates(case, shown, statuses, found, logs)


def _to_itself(link: Link, places: Addresses) -> Cause | None:
    """A link to the address of its own supplier fails, whatever its status still says of sessions that it had elsewhere."""
    return Cause(REFUSED, 0, "", "") if places.leads_back(link) else None


@dataclass
class _Failing:
    """An agreement whose last attempt failed, and the lines of the supplier's log that tell of it."""

    link: Link
    row: Row
    cause: Cause
    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, datetime] = field(default_factory=dict)
    last: datetime | None = None
    kept: list[dict[str, Any]] = field(default_factory=list)
    login_refused: str = ""
    """What the consumer said last as it refused the login, in lower case."""
    guessed: datetime | None = None
    """When the consumer first refused the password, before it refused the login whatever the password is."""
    healed: bool = False
    network: int | None = None
    switched: datetime | None = None
    stopped: datetime | None = None
    """When it stopped until somebody acts; the consumer's start does not heal that."""
    shared: bool = False
    """True if lines of failed logins may be of this or of another agreement: how often it failed is not known."""
    refusals: Counter[tuple[str, int]] = field(default_factory=Counter)
    refused_at: dict[tuple[str, int], datetime] = field(default_factory=dict)
    """When each was refused last."""
    no_anchor: bool = False
    """True if its last session found no record of its anchor."""
    full: str = ""
    """What is full at the consumer, or too small for one change, so that it refuses changes."""
    of_data: bool = False
    said: tuple[Mapping[str, str], ...] = ()
    """What its log says just before it refuses one."""
    schema: list[str] = field(default_factory=list)
    """What the consumer answered, each time that it refused the schema of the supplier."""

    @property
    def ended(self) -> datetime | None:
        """When its last session ended; a failure leaves that as it was. One that goes on may fail like those before it."""
        ended: datetime | None = self.row.get("ended_at")
        return ended or (None if goes_on(self.row) else last_success(self.row))

    def is_new(self, place: Place) -> bool:
        """False for a line about the time before its last session ended."""
        return not (place.at and self.ended and place.at <= self.ended + timedelta(seconds=1))

    def add(self, row: Row, place: Place) -> None:
        """One line that tells of a failed attempt since the last session."""
        if row["code"] == "bind" and not (place.at and self.ended and place.at < self.ended):
            self.login_refused = row["text"].lower()  # also in the second in which the session ended
        if not self.is_new(place):
            return
        self.healed = False
        if row["code"] == "bind" and _WRONG.search(row["text"] or "") and self.cause.short == LOCKED:
            self.guessed = self.guessed or place.at
        self.counts[row["code"]] += 1
        if place.at:
            self.firsts.setdefault(row["code"], place.at)
            self.last = place.at
        if len(self.kept) < EVIDENCE_SHOWN:
            self.kept.append(line_shown(row, place))
        numbers = dict(row["numbers"] or ())
        if row["code"] == "connect_failed" and numbers.get("network"):
            self.network = int(numbers["network"])
        if row["code"] == "retry_later" and row["position"] and numbers.get("error"):
            key = row["position"], int(numbers["error"])
            self.refusals[key] += 1
            if place.at:
                self.refused_at[key] = place.at

    @property
    def connecting(self) -> bool:
        """True if it did not get as far as a session: a login that succeeds later is the end of that."""
        return self.cause.reason in _CONNECTING or self.cause.short == BROKEN

    def forget(self) -> None:
        """A session ran, or the login that failed succeeded: what was before is healed."""
        self.healed = True
        self.begin_anew()

    def begin_anew(self) -> None:
        """It failed for another reason since, or was let in: what was before is not why it fails now."""
        self.counts.clear()
        self.kept.clear()
        self.refusals.clear()
        self.schema.clear()
        self.firsts.clear()
        self.last = self.network = self.stopped = self.guessed = None
        self.shared = self.no_anchor = False
        self.login_refused = ""

    @property
    def first(self) -> datetime | None:
        """The first failed attempt since the last session. A line with the address tells it apart from an older agreement's."""
        return self.firsts.get("connect_failed") or min(self.firsts.values(), default=None)

    @property
    def attempts(self) -> int | None:
        """How often it failed, as far as the log shows; each attempt to connect writes one line, each bind the first only."""
        return None if self.shared else self.counts["connect_failed"] or sum(self.counts.values()) or None


def _read(log: Any, failing: Iterable[_Failing], logins: Mapping[str, str], known: Container[tuple[str, str]]) -> None:
    """Read the log of a supplier for its failing agreements.

    logins: with which name each of its agreements logs in. known: servers and names of agreements that are in one suffix only.
    """
    by_name = Counter(one.link.name for one in failing)
    # Lines about agreements of one name in two suffixes tell of neither.
    named = {one.link.name: one for one in failing if by_name[one.link.name] == 1}
    addressed = {one.link.address: one for one in failing if one.cause.reason in _CONNECTING}
    turned_away: set[str] = set()
    if not named:
        return
    for row, place in _with_starts(log):
        numbers, code = dict(row["numbers"] or ()), row["code"]
        one = named.get(row["link"] or "")
        if code == _START:  # agreements that have stopped begin anew with their server
            turned_away.clear()
            for each in named.values():
                each.stopped = None
        elif code == "bind":
            (turned_away.discard if numbers.get("outcome") == "resumed" else turned_away.add)(row["link"] or "")
        elif code == "connect_failed":
            address = numbers.get("address")
            one = addressed.get(address) if address else _logging_in(failing, logins, turned_away, row, place)
        if one is None:
            continue
        if one.stopped and (code in _RUNS or (code == "bind" and numbers.get("outcome") == "resumed")):
            one.begin_anew()  # somebody acted
        if code == _SWITCHED:
            one.switched = place.at if numbers.get("state") == "enabled" else None
            one.stopped = None
        elif code == _FATAL:
            if one.is_new(place) and (log.server, one.link.name) in known:
                one.stopped, one.healed = place.at, False
        elif code == _SCHEMA:
            if one.is_new(place):
                one.schema.append(numbers.get("said") or "")
        elif code in _RUNS and one.cause.reason not in TRANSIENT:
            one.forget()
        elif code == "bind" and numbers.get("outcome") == "resumed":
            if one.connecting and not (place.at and one.ended and place.at <= one.ended):
                one.forget()
        elif code in _NO_ANCHOR:
            if not one.no_anchor:
                one.begin_anew()
            if one.cause.reason in TRANSIENT:
                one.no_anchor = one.is_new(place)
                one.add(row, place)
        elif code in _LINES.get(one.cause.reason, ()) and (
            one.cause.reason != CLOCK_REFUSED or _OF_CLOCKS.search(row["text"] or "")
        ):
            if one.no_anchor:
                one.begin_anew()
            one.add(row, place)
        elif code in _FURTHER:
            one.begin_anew()


def _with_starts(log: Any) -> Iterator[tuple[Row, Place]]:
    """The lines about agreements, and those of the starts of the server: its agreements try before it calls itself started."""
    begun = False
    for row, place in log.lines((*_ALL, _FATAL, _START, "started"), WITH_TEXT):
        if row["code"] == _START:
            begun = True
        elif row["code"] == "started":
            if not begun:  # a log that begins later
                yield {**row, "code": _START}, place
            begun = False
            continue
        yield row, place


def _logging_in(
    failing: Iterable[_Failing], logins: Mapping[str, str], turned_away: Iterable[str], row: Row, place: Place
) -> _Failing | None:
    """The agreement that a line about a refused login is of; None if it may be of several, and these are marked.

    Such a line says with which name and with which result, and not where: agreements to several consumers write equal lines.
    """
    found = _BIND_ID.search(row["text"] or "")
    login, error = found[1].lower() if found else "", dict(row["numbers"] or ()).get("error")
    mine = [
        one
        for one in failing
        if one.cause.reason in (BIND_REFUSED, TLS) and str(one.cause.code) == error
        and (one.row.get("login") or login).lower() == login
    ]  # fmt: skip
    names = {one.link.name for one in mine}
    others = {name for name in turned_away if (logins.get(name) or login).lower() == login} - names
    if len(mine) == 1 and not others:
        return mine[0]
    for one in mine:
        one.shared = one.shared or one.is_new(place)
    return None


def _since(one: _Failing) -> tuple[datetime | None, str]:
    """From when on it fails, and what tells so. After its last session it may have had nothing to send for long."""
    if one.ended is None or (one.first and not one.shared and one.first > one.ended):
        ended = f"; its last session ended at {one.ended:%Y-%m-%d %H:%M:%S}" if one.ended else ""
        return one.first, f"its log first shows a failure{ended}"
    return one.ended, LAST_SESSION


def _stopped(log: Any, quiet: Iterable[tuple[Link, Row]]) -> Iterator[_Failing]:
    """The agreements that have stopped for good by the log of their supplier, whatever their status says; no two of one name."""
    named = {link.name: (link, row) for link, row in quiet}
    before: dict[str, list[tuple[Row, Place]]] = {}
    stopped: dict[str, list[tuple[Row, Place]]] = {}
    for row, place in _with_starts(log):
        name, code = row["link"] or "", row["code"]
        if code == _START:  # all agreements of a server begin anew with it
            before.clear()
            stopped.clear()
        elif name not in named:
            continue
        elif code == _FATAL:
            stopped[name] = [*before.pop(name, [])[-1:], (row, place)]
        elif code in _RUNS or code == _SWITCHED or dict(row["numbers"] or ()).get("outcome") == "resumed":
            stopped.pop(name, None)
        else:
            before.setdefault(name, []).append((row, place))
            del before[name][:-1]
    for name, lines in sorted(stopped.items()):
        link, row = named[name]
        at, ended = lines[-1][1].at, row.get("ended_at") or last_success(row)
        # Switched off and on again, or a session since: then the log is the older word.
        if "agreement disabled" in (row.get("status") or "") or at is None or (ended and ended >= at):
            continue
        one = _Failing(link, row, stopped_for(lines[0][0]["text"]), stopped=at)
        one.add(*lines[0])
        yield one


def _told(
    case: Case,
    shown: Topology,
    one: _Failing,
    places: Addresses,
    logs: Iterable[Any],
    unfilled: Initialisation | None,
    failing: Container[LinkKey],
) -> LinkFailure:
    """The failure with all that the logs add to the status."""
    link, cause, meant, plain = one.link, one.cause, None, None
    consumer = next((x for x in shown.replicas if (x.server, x.suffix) == (link.consumer, link.suffix)), None)
    serves = bool(consumer and consumer.claims)
    silent = places.silent_at(link.address) if link.consumer is None else None
    down = bool(silent) or link.consumer in shown.down
    hangs = any(reading.server == link.consumer and reading.down and reading.unanswered for reading in shown.readings)
    itself = places.leads_back(link)
    elsewhere = places.elsewhere(link, one.row.get("transport"))
    there = places.listening(link) if link.consumer is None and not silent else None
    if itself:
        code = f" (code {cause.code})" if cause.code else ""
        says = f"the agreement {link.name} leads to {link.supplier} itself{code}"
        cause = Cause(REFUSED, cause.code, says, "leads to its own server")
        meant = places.meant(link) if link.consumer != link.supplier else None
    elif cause.reason not in TRANSIENT and one.switched and not (one.last and one.last >= one.switched):
        says = f"it was switched on again at {one.switched:%Y-%m-%d %H:%M:%S}, and its log shows no attempt since"
        cause = Cause(BACKING_OFF, cause.code, says, "just switched on")
    elif cause.reason == BIND_REFUSED:
        cause = as_said(cause, one.login_refused, one.row.get("login") or "its login")
    elif (cause.reason == UNREACHABLE and cause.code in (-1, 81)) or (down and cause.short == BROKEN):
        live = any(x.server == link.consumer for x in shown.readings)
        plain = plain_port(case, shown.snapshot, link, link.consumer or there, one.row.get("transport"), logs)
        who = silent or link.consumer if down else None
        cause = why_not_reached(link, one.row, cause.code, one.network, who, live, elsewhere, plain)
        waits = cause.reason in (REFUSED, UNREACHABLE) and not down and not one.stopped
        again = started_again(link, one.last, cause, logs) if waits else None
        if again:
            cause = again
        elif not down and not there:
            meant = places.meant(link)
    elif cause.reason in TRANSIENT and link.consumer in shown.down:
        last = f"; at the last attempt, {cause.says}" if cause.says else ""
        says = f"{link.consumer} could not be read when servers were collected{last}"
        cause = Cause(UNREACHABLE, cause.code, says, CONSUMER_DOWN)
    elif cause.reason in TRANSIENT:
        # A consumer that refuses a change is busy with the other suppliers that send it that change.
        if refusing := _refusing(case, shown, one, consumer, logs):
            cause = started_again(link, one.last, cause, logs) or refusing
        if one.no_anchor and not consumer:  # of a known consumer the vectors and the changelog prove it
            says = f"the session finds no record of its anchor in the changelog of {link.supplier} (its errors log says so)"
            cause = replace(cause, reason=ANCHOR_LOST, says=says, short="anchor not in the changelog")
    elif cause.reason == NO_SUCH_REPLICA:
        others = sorted({x.suffix for x in shown.replicas if x.server == link.consumer and x.suffix and x.claims})
        if others and link.suffix not in others:
            says = f"{cause.says}: it has {', '.join(others)}"
            cause = replace(cause, reason=WRONG_SUFFIX, says=says, short="wrong suffix")
        elif serves := serves or answers_another(case, shown, link, one.last or one.row.get("started_at")):
            says = f"the consumer did not replicate this suffix when it was asked (code {cause.code}), and does now"
            cause = replace(cause, says=says, short="not tried again since")
    if hangs and cause.short == CONSUMER_DOWN:
        cause = replace(cause, short="consumer gives no answer")
    cause = by_its_log(cause, link, logs, shown.links)
    if one.stopped and "stopped" not in cause.says:
        says = f"{cause.says}; the agreement has stopped until somebody acts (its log says so)"
        cause = replace(cause, reason=UNKNOWN if cause.reason in TRANSIENT else cause.reason, says=says)
    supplier = next((x for x in shown.replicas if (x.server, x.suffix) == (link.supplier, link.suffix)), None)
    mistaken = (
        supplier
        and consumer
        and cause.code == DUPLICATE_ID
        and not itself
        and taken_for(case, shown, supplier, consumer)
    )
    was = once_of(case, shown, link) if mistaken else ""
    if mistaken:
        own = supplier.origin if supplier else None
        short = AS_HUB if own is None else NOT_FIRST
        cause = replace(cause, says=mistaken_says(link, cause.code, own, was), short=short)
    elif cause.code == DUPLICATE_ID and not itself and supplier and consumer and supplier.origin != consumer.origin:
        says = f"the consumer said that it has the supplier's replica ID (code {cause.code}), and its own entry shows another"
        cause = replace(cause, code=0, says=f"{says} one; it was changed since, or the agreement led elsewhere then")
    if no_log := reads_only(shown, link):
        says = f"{link.supplier} is a read-only consumer now, and sends nothing (code {cause.code})"
        cause = replace(cause, says=says, short="its supplier is a read-only consumer")
    means = silent or there or (meant[0] if meant and meant[0] != link.consumer else None)
    if meant and cause.reason == TLS:
        meant = None  # the encrypted port is another one, so the address may be right
        cause = replace(cause, says=cause.says + (f"; it probably means {means}" if means else ""))
    elif meant:
        who = f"; it probably means {means}: " if means else "; "
        cause = replace(cause, says=f"{cause.says}{who}the other files name {meant[1]} as the address of {meant[0]}")
    since, since_is = _since(one)
    if one.guessed:
        since = min(one.guessed, since or one.guessed)
        says = f"{cause.says}; before that it refused the password (49), and wrong passwords lock a login"
        cause = replace(cause, says=says)
    agreement = Agreement(
        link.name, link.supplier, link.consumer or means or link.address or "the consumer", link.suffix or "SUFFIX",
        link.address or "its address", one.row.get("login") or "", meant[1] if meant else None, down,
        cause.short != NO_TLS, cause.code if cause.reason == REFUSED and cause.short in REFUSED_SESSIONS else None,
        cause.code if cause.reason == REFUSED and one.refusals else None, one.full, bool(one.stopped), itself,
        not encrypted(one.row.get("transport")), cause.short == TIMEOUT or hangs, no_log,
        unfilled if unfilled and unfilled.outcome == ABORTED and not (consumer and consumer.claims) else None,
        cause.short in (LOCKED, INACTIVE), cause.short == TOO_WEAK,
        schema=cause.short == SCHEMA_REFUSED, replicates=bool(serves),
        elsewhere=elsewhere if cause.short == NO_LISTENER else "", guessed=bool(one.guessed),
        mistaken=cause.short == AS_HUB, not_first=cause.short == NOT_FIRST, was=was, unprepared=cause.short == NOT_PREPARED,
        plain_port=cause.short == PLAIN_PORT, encrypted_port=plain.encrypted if plain else "",
        refills=down and fills_anew(case, link, one.row, places, str(link.consumer or silent)),
        **of_consumer(shown, link, failing),
    )  # fmt: skip
    return LinkFailure(
        cause.reason, cause.says, cause.short, since, since_is if since else "", one.attempts, means=means,
        itself=itself, of_data=one.of_data, to_all=bool(one.full) and cause.code > 0, quotes=one.said, refills=agreement.refills,
        evidence=(status_shown(one.row), *first_few(one.kept, sum(one.counts.values()))), fix=fixes_of(cause.reason, agreement),
    )  # fmt: skip


def _refusing(
    case: Case, shown: Topology, one: _Failing, consumer: Replica | None, logs: Iterable[Any]
) -> Cause | None:
    """What the consumer answers to the change with which each session begins, if it does so again and again."""
    filled = filled_at(logs, consumer.server, consumer.suffix) if consumer and one.refusals else None
    over = refused_no_more(case, shown, consumer, one.refusals, one.refused_at) if consumer and one.refusals else set()
    refused = {
        key: count
        for key, count in one.refusals.items()
        if key not in over and not (filled and (at := one.refused_at.get(key)) and at <= filled)
    }
    looping = {key: count for key, count in refused.items() if count >= _LOOPS_FROM}
    if not looping:
        return None
    # A connection that ends has no result: what the consumer answered counts, if its log tells it as often.
    own = refused_by(case, shown.snapshot, consumer.server, [csn for csn, _ in looping], one.ended) if consumer else {}
    answered = {key: count for key, count in looping.items() if key[1] > 0}
    if not answered:
        answered = {key: len(moments) for key, moments in own.items() if len(moments) >= _LOOPS_FROM}
        one.shared = bool(answered)  # these are the attempts of all its suppliers
    looping = answered or looping
    why, others = NOT_SAID, set[str]()
    if all(error == REFUSES_ALL for _, error in looping):
        unwilling = {csn for csn, error in refused if error == REFUSES_ALL}
        why, others = reason_for_53(case, shown, consumer, unwilling, one.first)
    if why == LOGIN_NOTES:
        says = f"each session ends at a change that only notes failed logins, which the consumer refuses: {LOGIN_NOTES_SAY}"
        return Cause(BACKING_OFF, REFUSES_ALL, says, "notes of failed logins refused")
    csn, error = min((key for key in looping if key[0] in others), default=min(looping))
    one.counts = Counter({"retry_later": looping[csn, error]})  # a session may be refused several changes
    if error < 0 and len(one.schema) >= _LOOPS_FROM:
        answer = f"in every session the consumer refuses the schema of {one.link.supplier} ({one.schema[-1]})"
        return Cause(REFUSED, error, f"{answer}, and the connection ends", SCHEMA_REFUSED)
    if error < 0:
        one.full = too_large(case, one.link.consumer or "", one.first)
        says = f"the connection ends in every session at the change {csn}: {one.full or in_words(error)}"
        return Cause(REFUSED, error, says, "message too large there" if one.full else "breaks off at one change")
    what = f"the consumer refuses the change {csn} in every session with {in_words(error)}"
    if why == READ_ONLY:
        says = f"{what}, and took no change since, as a backend with nsslapd-readonly: on does"
        return Cause(CONSUMER_READ_ONLY, error, says, "consumer read-only")
    said = said_at(case, consumer.server, own.get((csn, error), ())) if consumer else ()
    one.said, one.full = said, no_room(said)
    if one.full:
        return Cause(REFUSED, error, f"{what}: {one.full}", f"{one.full.removeprefix('its ')} there")
    one.of_data = of_data(error, said)
    return Cause(REFUSED, error, f"{what}; its own log says why", f"change refused, {in_words(error)}")
