"""Why sessions of an agreement fail: what the status of its last attempt means, and when its schedule opens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from workbench.rules.link_failures import (
    BACKING_OFF,
    BIND_REFUSED,
    BUSY,
    CLOCK_REFUSED,
    GENERATION_DIFFERS,
    LOG_CLOSED,
    NO_SUCH_REPLICA,
    NOT_INITIALISED,
    PASSWORD_EXPIRED,
    PERMISSION,
    REFUSED,
    TLS,
    UNKNOWN,
    UNREACHABLE,
)
from workbench.systems.ds389.rules.ldap_results import RESULTS, in_words


@dataclass(frozen=True)
class Cause:
    """What an agreement's status says: the reason, the code, the cause as the end of a sentence, and in a few words."""

    reason: str
    code: int
    says: str
    short: str


_STATUS = re.compile(r"(?:Error )?\(?(-?[0-9]{1,9})\)? (.*)", re.DOTALL)
_NO_CONNECTION = frozenset({-1, -5, -11, 81, 85, 91, 52})
_ENCRYPTED = frozenset({"ldaps", "ssl", "tls", "starttls"})
"""Values of nsDS5ReplicaTransportInfo, in lower case, with which the connection is encrypted."""
LDAPS = frozenset({"ldaps", "ssl"})
"""Those with which it is encrypted from the start, at a port of its own."""

BROKEN, NO_LISTENER, CONSUMER_DOWN = "connection broke", "connection refused", "consumer down"
NO_TLS = "no TLS at the consumer"
"""In a few words: an old connection was broken, nothing listens there, the consumer was not read, it has no encryption."""

PLAIN_PORT = "LDAPS to a plain port"
"""The same where the agreement uses LDAPS, and its consumer listens for plain LDAP at that port."""

TIMEOUT = "timeout"
"""The same where the consumer, or the way to it, lets the supplier wait."""

NOT_CONNECTED = 107
NOTHING_LISTENS = frozenset({NOT_CONNECTED, 111})
"""Network errors of an attempt to connect to a port that nothing listens at, as the errors log of the supplier names them.

3.1.2 names the first one also where the port is a plain one and the agreement uses LDAPS.
"""

NO_WAY: Mapping[int, str] = {
    101: "no route to its network",
    110: "the connection timed out",
    112: "its host is down",
    113: "no route to its host",
}
"""Network errors with which nothing was reached, whether or not the connection was to be encrypted."""

CONNECTED = frozenset({0, 11, 32, 104, 115})
"""Those of an attempt that reached the port: no error, no answer to the greeting of TLS, an end of the connection, and what is
left of a connect that did not wait (115: one that runs out of time has 110).
"""

LOCKED, INACTIVE, TOO_WEAK = "the account is locked", "the account is inactive", "connection too weak"
"""In a few words: what a consumer says of a login that it knows, or of the connection on which it comes."""

TLS_FAILS = "TLS fails"
"""In a few words: no encrypted connection comes about, and nothing tells why."""

EXPIRED, NOT_YET_VALID, NOT_TRUSTED, OTHER_HOST = (
    *("certificate expired", "certificate not yet valid", "certificate not trusted", "certificate of another host"),
)
"""In a few words: why the supplier does not accept the certificate that its consumer shows."""

_VERIFIED = re.compile(
    r"(?:certificate verify failed \(([a-z' -]{1,80})\)|tls: (hostname does not match [a-z ]{1,60}))"
)
_REJECTED: Mapping[str, str] = {
    "certificate has expired": EXPIRED,
    "certificate is not yet valid": NOT_YET_VALID,
    "self-signed certificate": NOT_TRUSTED,
    "self signed certificate": NOT_TRUSTED,
    "self-signed certificate in certificate chain": NOT_TRUSTED,
    "self signed certificate in certificate chain": NOT_TRUSTED,
    "unable to get issuer certificate": NOT_TRUSTED,
    "unable to get local issuer certificate": NOT_TRUSTED,
    "unable to verify the first certificate": NOT_TRUSTED,
    "hostname mismatch": OTHER_HOST,
    "hostname does not match name in peer certificate": OTHER_HOST,
    "hostname does not match cn in peer certificate": OTHER_HOST,
    "ip address mismatch": OTHER_HOST,
}
"""The words of OpenSSL as it rejects a certificate, in lower case -> why, in a few words."""

_LOGIN = {
    49: "invalid credentials",
    48: "inappropriate authentication",
    19: LOCKED,
    53: "login refused",
    32: "no such account",
    7: "login method not supported",
    8: "strong authentication required",
    -6: "unknown login method",
    50: "insufficient access",
}
_LOCAL = -2
NOT_PREPARED = "the connection could not be prepared"
"""In a few words: the supplier failed before it sent anything."""
_SESSION: Mapping[int, tuple[str, str, str]] = {
    1: (BUSY, "another supplier has the consumer", "consumer busy"),
    3: (PERMISSION, "the consumer does not allow the supplier's login to send changes", "no permission"),
    4: (REFUSED, "the consumer could not read the request", "request not understood"),
    6: (NO_SUCH_REPLICA, "the consumer does not replicate this suffix", "no such replica"),
    8: (REFUSED, "the consumer has an internal error", "internal error of the consumer"),
    11: (REFUSED, "the consumer has the replica ID of the supplier", "duplicate replica ID"),
    14: (BACKING_OFF, "the supplier waits before it tries again", "backing off"),
    15: (LOG_CLOSED, "the changelog of the supplier cannot be read", "changelog not readable"),
    16: (BACKING_OFF, "the consumer ended the session, or the connection broke", "session broken off"),
    17: (UNREACHABLE, "the consumer did not answer in time", TIMEOUT),
    18: (BACKING_OFF, "the last session broke off", "session broken off"),
}
"""The supplier's own codes of an attempt that reached the consumer."""
SCHEMA_REFUSED = "schema refused"
"""In short, that a consumer ends each session at the schema that it is sent first."""
REFUSED_SESSIONS = frozenset(short for reason, _, short in _SESSION.values() if reason == REFUSED)
"""What `Cause.short` is where the consumer was reached and refused the session."""


def encrypted(transport: str | None) -> bool:
    """True if an agreement with this nsDS5ReplicaTransportInfo encrypts its connection."""
    return (transport or "").lower() in _ENCRYPTED


def cause_of(status: str | None, transport: str | None = None) -> Cause | None:
    """What the status of the last attempt says against the agreement; None: it went well, or there is no status.

    >>> cause_of("Error (49) Problem connecting to replica - LDAP error: Invalid credentials (connection error)").reason
    'bind_refused'
    >>> cause_of("Error (0) Replica acquired successfully: agreement disabled")
    """
    found = _STATUS.match(status or "")
    if not found or not (code := int(found[1])):
        return None
    text = found[2].lower()
    if "administrator action" in text:
        return Cause(UNKNOWN, code, f"the agreement has stopped until somebody acts (code {code})", "stopped")
    if "unable to receive the response" in text and code in _NO_CONNECTION:
        # A consumer that restarted: its old connection is found broken, and the next attempt opens a new one.
        return Cause(BACKING_OFF, code, f"the connection broke as the session began: {in_words(code)}", BROKEN)
    if code == 16 and "problem connecting" in text and encrypted(transport):
        # 2.3.1 with SSLCLIENTAUTH: "could not configure the server for cert auth". Nothing was sent to the consumer.
        says = "the supplier could not prepare an encrypted connection (code 16); its errors log says why"
        return Cause(TLS, code, says, "TLS not prepared")
    if "ldap error" in text or code < 0:
        return _of_connection(code, transport)
    if "password" in text and "expired" in text:
        return Cause(PASSWORD_EXPIRED, code, "the password of its login has expired", "password expired")
    if "obtain current csn" in text:
        # Its CSNs would lie more than a day ahead of its clock: it makes none.
        return Cause(
            CLOCK_REFUSED, code, f"the supplier cannot make a CSN itself (code {code})", "supplier makes no CSN"
        )
    if code in (2, 19) or "generation" in text or "skew" in text:
        return _of_data(code, text)
    reason, says, short = _SESSION.get(code, (UNKNOWN, "the session failed", "session failed"))
    return Cause(reason, code, f"{says} (code {code})", short)


def as_said(cause: Cause, line: str, login: str) -> Cause:
    """The cause of a login that was refused, with what the consumer said of it by a line of the errors log, in lower case."""
    words = in_words(cause.code)
    if "password expired" in line:
        says = f"the password of {login} on the consumer has expired: {words}"
        return replace(cause, reason=PASSWORD_EXPIRED, says=says, short="password expired")
    if "minimum ssf" in line:
        says = f"the consumer demands stronger encryption than the connection has (nsslapd-minssf): {words}"
        return replace(cause, reason=TLS, says=says, short=TOO_WEAK)
    if "inactivated" in line:
        return replace(cause, says=f"the login {login} is inactive on the consumer: {words}", short=INACTIVE)
    return cause


def as_verified(cause: Cause, line: str) -> Cause:
    """The cause of a failed encryption; with why the certificate was rejected, by a line of the supplier's log, in lower case.

    >>> cause = Cause("tls", -1, "no encrypted connection to s2:636 comes about", "TLS fails")
    >>> as_verified(cause, "ldap error -1 (error:0a000086:ssl routines::certificate verify failed (hostname mismatch))").short
    'certificate of another host'
    """
    found = _VERIFIED.search(line)
    if cause.reason != TLS or not found:
        return cause
    why = found[1] or found[2]
    says = f"{cause.says}; the supplier's errors log says why: {'certificate verify failed, ' if found[1] else ''}{why}"
    return replace(cause, says=says, short=_REJECTED.get(why, cause.short))


def stopped_for(line: str) -> Cause:
    """Why an agreement has stopped until somebody acts, by the line of the errors log before it says so."""
    text = line.lower()
    for words, reason, code, short in (
        ("skew", CLOCK_REFUSED, 2, "clocks too far apart"),
        ("no replicated area", NO_SUCH_REPLICA, 6, "no such replica"),
        ("same replica id", REFUSED, 11, "duplicate replica ID"),
        ("permission denied", PERMISSION, 3, "no permission"),
    ):
        if words in text:
            says = _SESSION[code][1] if code in _SESSION else "the clocks are too far apart"
            return Cause(
                reason, code, f"{says} (code {code}), and the agreement has stopped until somebody acts", short
            )
    return Cause(UNKNOWN, 0, "the agreement has stopped until somebody acts, and its log does not say why", "stopped")


def _of_data(code: int, text: str) -> Cause:
    if "generation" in text:
        says = "supplier and consumer have data of different generations"
        return Cause(GENERATION_DIFFERS, code, f"{says} (code {code})", "different generations")
    if "skew" in text or code == 2:
        return Cause(CLOCK_REFUSED, code, f"the clocks are too far apart (code {code})", "clocks too far apart")
    return Cause(NOT_INITIALISED, code, f"the consumer is not initialised (code {code})", "not initialised")


def _of_connection(code: int, transport: str | None) -> Cause:
    """A failure before the session: no connection, no encryption, no login."""
    words = in_words(code)
    if code == 13 and not encrypted(transport):
        says = (
            "the consumer accepts encrypted logins only (nsslapd-require-secure-binds), and the agreement is plain LDAP"
        )
        return Cause(TLS, code, f"{says}: {words}", "needs TLS")
    if code == 13:
        return Cause(TLS, code, f"the consumer accepts logins over encrypted connections only: {words}", "needs TLS")
    if code in (2, 52) and encrypted(transport):
        return Cause(TLS, code, f"the consumer does not offer StartTLS: {words}", NO_TLS)
    if code in (-11, 91) and encrypted(transport):
        return Cause(TLS, code, f"the encrypted connection was not established: {words}", TLS_FAILS)
    if code == _LOCAL:
        return Cause(
            UNKNOWN, code, f"the supplier could not prepare the connection or its login: {words}", NOT_PREPARED
        )
    if code in _NO_CONNECTION:
        return Cause(UNREACHABLE, code, f"no connection to the consumer: {words}", RESULTS.get(code, "unreachable"))
    if code in _LOGIN:
        return Cause(BIND_REFUSED, code, f"the consumer refuses the login: {words}", _LOGIN[code])
    return Cause(UNKNOWN, code, f"the login fails: {words}", RESULTS.get(code, f"error {code}"))


# --- schedules

_WINDOW = re.compile(r"(\d{2})(\d{2})-(\d{2})(\d{2}) +([0-6]+)")


def opens_at(schedule: str | None, now: datetime) -> datetime | None:
    """When the schedule opens next, in the time of the server's clock; `now` itself if it is open, or is no schedule.

    `schedule` is `HHMM-HHMM DDDDDDD`, several of them separated by `;`. 0 is Sunday. None: it never opens.

    >>> opens_at("0700-0800 0123456", datetime(2026, 11, 25, 6, 0))
    datetime.datetime(2026, 11, 25, 7, 0)
    """
    windows = [_WINDOW.fullmatch(one.strip()) for one in (schedule or "").split(";")]
    known = [one for one in windows if one]
    if len(known) < len(windows):
        return now  # none, `*`, or one that cannot be read: nothing is said against the agreement
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    openings = []
    for day in range(8):
        date = midnight + timedelta(days=day)
        for one in known:
            if str((date.weekday() + 1) % 7) not in one[5]:
                continue
            begin, end = (date + timedelta(hours=int(one[n]), minutes=int(one[n + 1])) for n in (1, 3))
            if begin <= now < end + timedelta(minutes=1):
                return now
            if begin > now:
                openings.append(begin)
    return min(openings, default=None)
