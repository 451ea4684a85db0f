"""Agreements whose last attempt failed, or that have stopped, with the lines of their supplier's log that tell of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.model import EVIDENCE_SHOWN
from workbench.rules.initialisations import SUCCEEDED
from workbench.rules.link_failures import (
    BACKING_OFF,
    BIND_REFUSED,
    BUSY,
    CLOCK_REFUSED,
    GENERATION_DIFFERS,
    NO_SUCH_REPLICA,
    NOT_INITIALISED,
    PERMISSION,
    REFUSED,
    TLS,
    TRANSIENT,
    UNREACHABLE,
)
from workbench.systems.ds389.rules.link_reasons import BROKEN, LOCKED, Cause, cause_of, stopped_for
from workbench.systems.ds389.session_log.closed_links import goes_on
from workbench.systems.ds389.session_log.initialisations import last_success
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, line_shown

if TYPE_CHECKING:
    from workbench.topology.topology import Link

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
_FURTHER = _NO_ANCHOR | {"retry_later", "total_end", "generation_differs"}
"""Lines of an attempt that the consumer let in: what kept earlier ones out was over by then."""
_SWITCHED, FATAL, _START, _SCHEMA = "agreement_switched", "session_fatal", "starting", "schema_refused"
_ONLINE = "replica_online"
"""Its data were replaced: the agreements of that suffix begin anew, those that had stopped, too."""
_ALL = sorted({code for codes in _LINES.values() for code in codes} | _RUNS | _FURTHER | {_SWITCHED, _SCHEMA, _ONLINE})
_BIND_ID = re.compile(r"bind (?:request for )?id \[([^\]]*)\]")
_BY_SASL = frozenset({"DIGEST-MD5", "GSSAPI"})
_RESULT = re.compile(r"LDAP error (-?[0-9]{1,3})\b")
_WRONG = re.compile(r"LDAP error 49\b")


@dataclass
class FailingAgreement:
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
    refused_from: dict[tuple[str, int], datetime] = field(default_factory=dict)
    """When each was refused first."""
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
        """When its last session ended, or it had filled its consumer since; a failure leaves that as it was.

        A session that goes on may fail like those before it.
        """
        filled = self.row.get("init_ended_at") if self.row.get("init_outcome") == SUCCEEDED else None
        return max(filter(None, (self.session_ended, filled)), default=None)

    @property
    def session_ended(self) -> datetime | None:
        """When its last session ended, as far as its status tells; a server that was restarted forgets it."""
        ended: datetime | None = self.row.get("ended_at") or (None if goes_on(self.row) else last_success(self.row))
        return ended

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
                self.refused_from.setdefault(key, place.at)

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
        self.refused_from.clear()
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


def _meant(alike: Sequence[FailingAgreement], row: Row) -> FailingAgreement | None:
    """The agreement that a line is of, among those of that name, for a line names no suffix; None: it may be of several.

    Of one whose status tells of no failure nothing is to be explained; and a failure writes its own kinds of lines.
    """
    if len(alike) > 1:
        alike = [one for one in alike if one.cause.says] or alike
    if len(alike) > 1:
        alike = [one for one in alike if row["code"] in _LINES.get(one.cause.reason, ())]
    return alike[0] if len(alike) == 1 else None


def _with_starts(log: Any) -> Iterator[tuple[Row, Place]]:
    """The lines about agreements, and those of the starts of the server: its agreements try before it calls itself started."""
    begun = False
    for row, place in log.lines((*_ALL, FATAL, _START, "started"), WITH_TEXT):
        if row["code"] == _START:
            begun = True
        elif row["code"] == "started":
            if not begun:  # a log that begins later
                yield {**row, "code": _START}, place
            begun = False
            continue
        yield row, place


def _of_suffix(link: Link, row: Row) -> bool:
    """True if a line about a replica is of the suffix of a link."""
    return bool(link.suffix) and f"replica {link.suffix} is ".lower() in (row["text"] or "").lower()


def stopped_for_good(
    log: Any, quiet: Collection[tuple[Link, Row]], alike: Mapping[str, int]
) -> Iterator[FailingAgreement]:
    """The agreements that have stopped for good by the log of their supplier, whatever their status says.

    Lines name no suffix. An agreement that has stopped does so once more only after a start: of several of one name (`alike`:
    how many are switched on), each has stopped when the log says so as often as there are such.
    """
    named: dict[str, list[tuple[Link, Row]]] = {}
    for link, row in quiet:
        named.setdefault(link.name, []).append((link, row))
    before: dict[str, list[tuple[Row, Place]]] = {}
    stopped: dict[str, list[list[tuple[Row, Place]]]] = {}
    for row, place in _with_starts(log):
        name, code = row["link"] or "", row["code"]
        if code == _START:  # all agreements of a server begin anew with it
            before.clear()
            stopped.clear()
        elif code == _ONLINE:
            for link, _ in quiet:
                if _of_suffix(link, row) and alike[link.name] == 1:
                    before.pop(link.name, None)
                    stopped.pop(link.name, None)
        elif name not in named:
            continue
        elif code == FATAL:
            stopped.setdefault(name, []).append([*before.pop(name, [])[-1:], (row, place)])
        elif code in _RUNS or code == _SWITCHED or dict(row["numbers"] or ()).get("outcome") == "resumed":
            stopped.pop(name, None)
        else:
            before.setdefault(name, []).append((row, place))
            del before[name][:-1]
    for name, times in sorted(stopped.items()):
        if alike[name] > 1 and len(times) < alike[name]:
            continue
        lines = times[-1]
        for link, row in named[name]:
            at, ended = lines[-1][1].at, row.get("ended_at") or last_success(row)
            # Switched off and on again, or a session since: then the log is the older word.
            if "agreement disabled" in (row.get("status") or "") or at is None or (ended and ended >= at):
                continue
            one = FailingAgreement(link, row, stopped_for(lines[0][0]["text"]), stopped=at)
            one.add(*lines[0])
            yield one


def refused_by_log(
    log: Any, unread: Iterable[tuple[Link, Row]], alike: Mapping[str, int]
) -> Iterator[FailingAgreement]:
    """The agreements whose status was not collected, and whose login fails by the last word of the log of their supplier.

    Lines name no suffix: of several agreements of one name (`alike`: how many are switched on) nothing is said.
    """
    named = {link.name: (link, row) for link, row in unread if alike[link.name] == 1}
    refused: dict[str, list[tuple[Row, Place]]] = {}
    for row, place in log.lines((*_RUNS, "bind"), WITH_TEXT) if named else ():
        name = row["link"] or ""
        if name in named and row["code"] == "bind" and dict(row["numbers"] or ()).get("outcome") == "failed":
            refused.setdefault(name, []).append((row, place))
        else:
            refused.pop(name, None)
    for name, lines in sorted(refused.items()):
        link, row = named[name]
        method = dict(lines[-1][0]["numbers"] or ()).get("method", "")
        if method in _BY_SASL and not row.get("method"):
            row = {**row, "method": f"SASL/{method}"}
        told = _RESULT.search(lines[-1][0]["text"] or "")
        cause = cause_of(f"Error ({told[1]}) LDAP error", row.get("transport")) if told else None
        if cause:
            one = FailingAgreement(link, row, cause)
            for line in lines:
                one.add(*line)
            yield one


def read_lines(
    log: Any, failing: Sequence[FailingAgreement], logins: Mapping[str, str], known: Container[tuple[str, str]]
) -> None:
    """Read the log of a supplier for its failing agreements.

    logins: with which name each of its agreements logs in. known: servers and names of agreements that are in one suffix only.
    """
    named: dict[str, list[FailingAgreement]] = {}
    for each in failing:
        named.setdefault(each.link.name, []).append(each)
    addressed = {one.link.address: one for one in failing if one.cause.reason in _CONNECTING}
    turned_away: set[str] = set()
    if not named:
        return
    for row, place in _with_starts(log):
        numbers, code = dict(row["numbers"] or ()), row["code"]
        one, resumed = _meant(named.get(row["link"] or "", ()), row), numbers.get("outcome") == "resumed"
        if one and (resumed or code in _RUNS) and (log.server, one.link.name) not in known:
            one = None  # one of another suffix may have run
        if code == _START:  # agreements that have stopped begin anew with their server
            turned_away.clear()
            for each in failing:
                each.stopped = None
        elif code == _ONLINE:
            for each in failing:
                each.stopped = None if _of_suffix(each.link, row) else each.stopped
        elif code == "bind":
            (turned_away.discard if resumed else turned_away.add)(row["link"] or "")
        elif code == "connect_failed":
            address = numbers.get("address")
            one = addressed.get(address) if address else _logging_in(failing, logins, turned_away, row, place)
        if one is None:
            continue
        if one.stopped and (code in _RUNS or (code == "bind" and resumed)):
            one.begin_anew()  # somebody acted
        if code == _SWITCHED:
            one.switched = place.at if numbers.get("state") == "enabled" else None
            one.stopped = None
        elif code == FATAL:
            if one.is_new(place) and (log.server, one.link.name) in known:
                one.stopped, one.healed = place.at, False
        elif code == _SCHEMA:
            if one.is_new(place):
                one.schema.append(numbers.get("said") or "")
        elif code in _RUNS and one.cause.reason not in TRANSIENT:
            one.forget()
        elif code == "bind" and resumed:
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


def _logging_in(
    failing: Iterable[FailingAgreement], logins: Mapping[str, str], turned_away: Iterable[str], row: Row, place: Place
) -> FailingAgreement | None:
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
