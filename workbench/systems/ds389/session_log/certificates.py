"""Why an encrypted link does not run, as far as the certificates of both ends show it.

What is said is a fact about a certificate, beside the status of the link. That it is the cause is likely, and not proven: a
server reads its certificates at its start, and its database may have been changed since.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.model import step
from workbench.rules.link_failures import BIND_REFUSED, TLS, LinkFailure, LinkKey
from workbench.systems.ds389.formats.certificates import CERTIFICATES
from workbench.systems.ds389.rules.certificates import (
    EXPIRED,
    NOT_YET,
    OTHER_HOST,
    UNTRUSTED,
    Certificate,
    Fault,
    faults,
    in_use,
)
from workbench.systems.ds389.rules.link_reasons import PLAIN_PORT, TLS_FAILS, encrypted
from workbench.systems.ds389.session_log.lines import WITH_TEXT, SessionLog, last_start, line_shown
from workbench.systems.ds389.session_log.link_fixes import Agreement, Fix, start_again

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link, Topology

Row = Mapping[str, Any]

_MOST_SIGNATURES = 2000
"""Signatures that are checked for one link, a tenth of a millisecond each. Where more are needed, nothing is said of trust."""
_NAMED = 5
_REFUSED_ITSELF = "certificate_refused"
_INVALID = {"-8181", "-8180", "-8162"}
"""What the library says of a certificate that has expired or is not valid yet, is revoked, or whose authority has expired."""
_CLIENT = "sslclientauth"
"""nsDS5ReplicaBindMethod of an agreement that logs in with the certificate of its supplier, in lower case."""


@dataclass(frozen=True)
class Kept:
    """The certificates that one server keeps, as they were collected.

    rows          by key
    named         keys of those that its configuration names as its own
    checks        as a supplier it checks those of its consumers; with nsslapd-ssl-check-hostname off, 2.3.1 was seen to
                  accept any certificate, one that had expired, too. None: the file does not say
    whole         False: some of its certificates are not in the file, or could not be read
    encrypts      it offers encryption itself (nsslapd-security); None: the file does not say
    """

    server: str
    rows: Mapping[str, Row]
    certificates: Mapping[str, Certificate]
    named: frozenset[str]
    checks: bool | None
    whole: bool
    encrypts: bool | None

    def authorities(self, clients: bool) -> list[Certificate] | None:
        """Whom it trusts to sign certificates of servers, or of clients; None: not known."""
        kept = self.certificates.values()
        return [one for one in kept if (one.trusted_for_clients if clients else one.trusted)] if self.whole else None


@dataclass(frozen=True)
class Found:
    """A fault, with who shows the certificate (`holder`) and who has to accept it (`by`), the host that was asked for, whom `by`
    trusts, and the row of the certificate at fault.
    """

    fault: Fault
    shown: Certificate
    holder: Kept
    by: str
    host: str | None
    trusted: Sequence[Certificate]
    row: Row

    @property
    def owner(self) -> str:
        """`the certificate of s2 (Server-Cert)`."""
        return f"the certificate of {self.holder.server} ({self.shown.nickname})"

    @property
    def whose(self) -> str:
        """The same of the certificate at fault, which may be that of an authority above."""
        if self.fault.certificate == self.shown:
            return self.owner
        return f"the authority {self.fault.certificate.subject} above {self.owner}"

    def says(self) -> str:
        """The fault as a fact, as a part of a sentence."""
        one = self.fault.certificate
        if self.fault.kind == EXPIRED:
            return f"{self.whose} expired at {_time(one.not_after)}"
        if self.fault.kind == NOT_YET:
            return f"{self.whose} is not valid before {_time(one.not_before)}"
        if self.fault.kind == OTHER_HOST:
            return f"{self.owner} is for {', '.join(_few(one.hosts))}, not for {self.host}, the host of the agreement"
        trusts = f"it trusts {', '.join(_few(sorted({x.subject for x in self.trusted})))}"
        if one.issuer in {x.subject for x in self.trusted}:
            return (
                f"{self.owner} is not signed by the {one.issuer} that {self.by} trusts, but by another one of that name"
            )
        by = "itself" if one.issuer == one.subject else one.issuer
        return f"{self.owner} is signed by {by}, which {self.by} does not trust ({trusts if self.trusted else 'it trusts none'})"

    def expires(self, over: bool) -> str:
        """The same of one that will expire, or has expired and is still needed."""
        return f"{self.whose} {'expired' if over else 'expires'} at {_time(self.fault.certificate.not_after)}"

    def short(self) -> str:
        """The same in a few words, for a headline."""
        whose = "the certificate" if self.fault.certificate == self.shown else "the authority of the certificate"
        says = {
            EXPIRED: f"expired at {_time(self.fault.certificate.not_after)}",
            NOT_YET: f"is not valid before {_time(self.fault.certificate.not_before)}",
            OTHER_HOST: f"is not for {self.host}",
            UNTRUSTED: f"is not trusted by {self.by}",
        }[self.fault.kind]
        return f"{whose} of {self.holder.server} {says}"

    def shows(self) -> dict[str, Any]:
        """The row of evidence."""
        return _shown(self.row)

    def mends(self, link: Link) -> Fix:
        """What ends the fault."""
        server = self.holder.server
        if self.fault.kind == UNTRUSTED:
            trust = f"dsctl INSTANCE tls import-ca CA.pem {shlex.quote(_nickname(self.shown.issuer))}"
            return step(
                f"have {self.by} trust the authority that signed it: on {self.by}, `{trust}`, then restart {self.by}",
                "CA.pem is the certificate of that authority; a server reads the authorities that it trusts at its start",
                f"make sure first that {self.shown.issuer} should sign for {server}; if not, give {server} another certificate",
            )
        if self.fault.kind == OTHER_HOST:
            wanted = f"dsctl INSTANCE tls generate-server-cert-csr {shlex.quote(self.host or 'HOST')}"
            return step(
                f"give {server} a certificate that is for {self.host}, on {server}: `{wanted}`, have it signed, "
                f"`{_import(self.shown.nickname)}`, then restart {server}; or let the agreement {link.name} use a host that the "
                "certificate is for",
                f"{self.by} accepts no certificate of another host (nsslapd-ssl-check-hostname)",
                "do not switch that check off: then no certificate is checked at all",
            )
        if self.fault.kind == NOT_YET:
            return step(
                f"compare the clocks of {server} and {self.by}; if they are right, wait until "
                f"{_time(self.fault.certificate.not_before)} or give {server} a certificate that is valid now",
                f"{self.whose} is not valid yet",
            )
        if self.fault.certificate != self.shown:
            return step(
                f"get the renewed certificate of the authority {self.fault.certificate.subject}, have each server trust it, "
                f"`dsctl INSTANCE tls import-ca CA.pem {shlex.quote(self.fault.certificate.nickname)}`, and restart them",
                "with it all that it signed counts as expired",
                "with a new key the authority has to sign the certificates of the servers anew",
            )
        return step(
            f"renew the certificate of {server}, on {server}: `dsctl INSTANCE tls generate-server-cert-csr`, have it signed, "
            f"`{_import(self.shown.nickname)}`, then restart {server}",
            f"{self.by} accepts none that has expired",
            "the request makes a new key: give the host names of the old certificate again",
        )


def with_certificates(
    case: Case,
    shown: Topology,
    statuses: Mapping[LinkKey, Row],
    failures: Mapping[LinkKey, LinkFailure],
    logs: Sequence[SessionLog],
) -> dict[LinkKey, LinkFailure]:
    """The failures with what the certificates of both ends show against encrypted links; others are as they were.

    logs: the errors logs of the servers, which tell when each started.
    """
    told = dict(failures)
    doubtful = [
        (key, link)
        for link in shown.links
        if (key := (link.supplier, link.suffix, link.name)) in failures
        and failures[key].reason in (TLS, BIND_REFUSED)
        and failures[key].short != PLAIN_PORT  # no certificate was shown
        and encrypted(statuses.get(key, {}).get("transport"))
    ]
    kept = kept_by(case, shown.snapshot) if doubtful else {}
    for key, link in doubtful:
        failure, row = failures[key], statuses[key]
        if at := _attempted(case, shown, link, row):
            found = found_against(kept, link, row, _always(at), failure.reason)
            told[key] = _told(failure, link, list(found))
        supplier, consumer = kept.get(link.supplier), kept.get(link.consumer or "")
        if consumer and at and failure.reason == TLS and told[key] is failure:
            told[key] = _not_restarted(failure, link, consumer, at, last_start(logs, consumer.server))
        if failure.reason == TLS and told[key] is failure and link.consumer:
            told[key] = _by_its_own_log(failure, link, logs)
        if supplier and supplier.encrypts is False and supplier.checks and failure.reason == TLS:
            told[key] = _switched_off(told[key], link)
    return told


def _not_restarted(
    failure: LinkFailure, link: Link, consumer: Kept, at: datetime, started: datetime | None
) -> LinkFailure:
    """The failure of a consumer whose certificate is good, and younger than its last start: it cannot have read it then."""
    for one in in_use((consumer.certificates[key] for key in consumer.named), at):
        if started and one.not_before > started:
            says = (
                f"the certificate of {consumer.server} ({one.nickname}) is valid from {_time(one.not_before)} on, and "
                f"{consumer.server} last started before that, at {_time(started)}: it may still show an older one"
            )
            mend = step(
                f"restart {consumer.server}, `dsctl INSTANCE restart` there",
                "a server reads its certificate at its start",
            )
            return replace(
                failure,
                says=f"{failure.says}; {says}",
                evidence=(*failure.evidence, _shown(consumer.rows[one.key])),
                fix=(mend, start_again(_agreement(link)), *failure.fix),
            )
    return failure


def _by_its_own_log(failure: LinkFailure, link: Link, logs: Iterable[SessionLog]) -> LinkFailure:
    """The failure of a consumer that itself found a fault with its certificate as it last started."""
    consumer = link.consumer or ""
    lines = [
        line
        for log in logs
        if log.server == consumer
        for line in log.lines((_REFUSED_ITSELF, "starting", "started"), WITH_TEXT)
    ]
    # The line stands before the one that says that the server starts.
    begins = [number for number, (row, _) in enumerate(lines) if row["code"] == "starting"]
    last = lines[begins[-2] + 1 if len(begins) > 1 else 0 :]
    for row, place in last:
        numbers = dict(row["numbers"])
        if row["code"] != _REFUSED_ITSELF or numbers.get("error") not in _INVALID:
            continue
        at = f" at {_time(place.at)}" if place.at else ""
        name, said = numbers.get("name") or "Server-Cert", (numbers.get("said") or "").strip().rstrip(".")
        renew = step(
            f"renew the certificate of {consumer}, on {consumer}: `dsctl INSTANCE tls generate-server-cert-csr`, have it signed, "
            f"`{_import(name)}`, then restart {consumer}",
            f"{link.supplier} accepts none that is not valid, and a server reads its certificate at its start",
            "the request makes a new key: give the host names of the old certificate again",
        )
        return replace(
            failure,
            says=f"{failure.says}; {consumer} itself found a fault with its certificate {name} as it started{at}: {said}",
            short=f"{TLS_FAILS}, the certificate of {consumer} is not valid ({said})",
            evidence=(*failure.evidence, line_shown(row, place)),
            fix=(renew, start_again(_agreement(link))),
        )
    return failure


def _agreement(link: Link) -> Agreement:
    return Agreement(link.name, link.supplier, link.consumer or "", link.suffix or "SUFFIX", link.address or "")


def _switched_off(failure: LinkFailure, link: Link) -> LinkFailure:
    """The failure of a supplier that offers no encryption itself: it hands no authority to the library that connects."""
    says = f"{link.supplier} has encryption switched off itself (nsslapd-security), and 2.3.1 was seen to trust no authority then"
    mend = step(
        f"switch encryption on, on {link.supplier}: `dsconf INSTANCE security enable`, then restart {link.supplier}",
        "a server hands the authorities of its database to the library that connects only if it encrypts itself",
        "it needs a certificate of its own for that",
    )
    return replace(failure, says=f"{failure.says}; {says}", fix=(mend, *failure.fix))


def _told(failure: LinkFailure, link: Link, found: Sequence[Found]) -> LinkFailure:
    if not found:
        return failure
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    mends = [one.mends(link) for one in found]
    fails = TLS_FAILS if failure.reason == TLS else failure.short
    return replace(
        failure,
        says="; ".join([failure.says, *(one.says() for one in found)]),
        short=f"{fails}, {found[0].short()}{more}",
        evidence=(*failure.evidence, *(one.shows() for one in found)),
        fix=(*(one for at, one in enumerate(mends) if one not in mends[:at]), start_again(_agreement(link))),
    )


def kept_by(case: Case, snapshot: str) -> dict[str, Kept]:
    """The certificates of each server of a snapshot of which they were collected."""
    by_server: dict[str, list[Row]] = {}
    for row in case.arrow("certificates").to_pylist():
        if row["snapshot"] == snapshot and row["not_before"] and row["not_after"]:
            by_server.setdefault(row["server"], []).append(row)
    found = {}
    for server in {one.server for one in case.inputs if one.kind == CERTIFICATES.key and one.snapshot == snapshot}:
        files = [
            one for one in case.inputs if (one.kind, one.snapshot, one.server) == (CERTIFICATES.key, snapshot, server)
        ]
        rows = {_key(row["encoded"]): row for row in by_server.get(server, ())}
        checks, encryption = (
            {word for one in files for word in one.facts.get(fact, {})}
            for fact in ("checks_certificates", "encryption")
        )
        found[server] = Kept(
            server,
            rows,
            {key: _certificate(key, row) for key, row in rows.items()},
            frozenset(key for key, row in rows.items() if row["in_use"]),
            None if len(checks) != 1 else checks == {"on"},
            not any(one.rejected or one.facts.get("left_out") for one in files),
            None if len(encryption) != 1 else encryption == {"on"},
        )
    return found


def _signed(certificate: Any, authority: Any) -> bool:
    """False if the key of the authority did not make the signature. The names of the two fit.

    A signature by an algorithm that cannot be checked here counts as made: a fault is told only where it is proven.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(authority)
    except InvalidSignature:
        return False
    except (UnsupportedAlgorithm, TypeError, ValueError):
        return True
    return True


def _always(moment: datetime) -> Callable[[str], datetime | None]:
    """The same time for every server."""
    return lambda server: moment


def found_against(
    kept: Mapping[str, Kept], link: Link, row: Row, at: Callable[[str], datetime | None], reason: str = TLS
) -> Iterator[Found]:
    """What is wrong with the certificate that the consumer shows, and with that which the supplier logs in with.

    at  server -> the time at which its certificates are judged; None: they are not
    """
    supplier, consumer = kept.get(link.supplier), kept.get(link.consumer or "")
    if consumer and reason == TLS and not (supplier and supplier.checks is False):
        host = (link.address or "").rpartition(":")[0]
        # OpenLDAP takes `localhost` for the name of its own machine, which no file tells.
        asked = host if supplier and supplier.checks and host not in ("", "localhost") else None
        if moment := at(consumer.server):
            yield from _of_one(consumer, supplier, link.supplier, moment, asked, clients=False)
    if supplier and (row.get("method") or "").lower() == _CLIENT and (moment := at(supplier.server)):
        yield from _of_one(supplier, consumer, link.consumer or "the consumer", moment, None, clients=True)


def _of_one(
    holder: Kept, judge: Kept | None, by: str, at: datetime, host: str | None, clients: bool
) -> Iterator[Found]:
    for shown in in_use((holder.certificates[key] for key in holder.named), at):
        trusted = judge.authorities(clients) if judge else None
        signers = _signers(shown.key, {**(judge.rows if judge else {}), **holder.rows}) if trusted is not None else {}
        known = None if signers is None else trusted
        along = [one for key, one in holder.certificates.items() if key != shown.key]
        for fault in faults(shown, along, known, signers or {}, at, host):
            holds = holder if fault.certificate.key in holder.rows or judge is None else judge
            yield Found(fault, shown, holder, by, host, tuple(known or ()), holds.rows[fault.certificate.key])


def _signers(shown: str, rows: Mapping[str, Row]) -> dict[str, set[str]] | None:
    """Key of a certificate -> keys of those that signed it, as far as they lead up from one; None: too many to look at."""
    from cryptography import x509  # here, because few links need it

    read = {key: x509.load_der_x509_certificate(base64.b64decode(row["encoded"])) for key, row in rows.items()}
    by_subject: dict[bytes, list[str]] = {}
    for key, one in read.items():
        by_subject.setdefault(one.subject.public_bytes(), []).append(key)
    found: dict[str, set[str]] = {}
    waiting, looked_at = [shown], 0
    for key in waiting:  # grows
        found[key] = set()
        for above in by_subject.get(read[key].issuer.public_bytes(), ()):
            if (looked_at := looked_at + 1) > _MOST_SIGNATURES:
                return None
            if not _signed(read[key], read[above]):
                continue
            found[key].add(above)
            if above not in waiting:
                waiting.append(above)
    return found


def _attempted(case: Case, shown: Topology, link: Link, row: Row) -> datetime | None:
    """About when the last attempt was: an agreement that does not run tries again every five minutes at the latest."""
    mine = [one for one in case.inputs if (one.snapshot, one.server) == (shown.snapshot, link.supplier)]
    told = [datetime.fromisoformat(str(text)) for one in mine if (text := one.facts.get("time", {}).get("max"))]
    read = [one.began for one in shown.readings if one.server == link.supplier]
    return max(filter(None, (row.get("started_at"), *told, *read)), default=None)


def _certificate(key: str, row: Row) -> Certificate:
    return Certificate(
        key, row["nickname"] or "", row["subject"] or "", row["issuer"] or "", row["not_before"], row["not_after"],
        row["trust"] or "", tuple((row["hosts"] or "").split()),
    )  # fmt: skip


def _key(encoded: str) -> str:
    return hashlib.sha256(encoded.encode()).hexdigest()


def _shown(row: Row) -> dict[str, Any]:
    times = {key: row[key].isoformat() for key in ("not_before", "not_after")}
    return {key: row[key] for key in ("file", "offset", "nickname", "subject", "issuer")} | times


def _few(names: Collection[str]) -> list[str]:
    """The first of them, and how many more there are."""
    first = list(names)[:_NAMED]
    return [*first, *([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])]


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _import(nickname: str) -> str:
    """`dsctl` gives what it imports the one nickname that it uses itself; a certificate of another one needs `dsconf`."""
    if nickname == "Server-Cert":
        return "dsctl INSTANCE tls import-server-cert CERTIFICATE.pem"
    name = shlex.quote(nickname)
    return f"dsconf INSTANCE security certificate add --file CERTIFICATE.pem --name {name} --primary-cert"


def _nickname(subject: str) -> str:
    """A nickname for an authority: its common name."""
    found = re.search(r"(?:^|,)CN=((?:\\.|[^,\\])+)", subject)
    return found[1] if found else subject
