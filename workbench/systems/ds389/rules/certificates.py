"""What is wrong with a certificate that one server shows to another one, at a given time: pure, from what certificates say.

It is judged as OpenLDAP's library does it for Directory Server: the whole way from the certificate to an authority that the
other server trusts has to be valid at that time, and the certificate has to be for the host that was asked for.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

EXPIRED, NOT_YET, UNTRUSTED, OTHER_HOST = "expired", "not yet valid", "untrusted", "of another host"


@dataclass(frozen=True)
class Certificate:
    """One certificate in the database of a server.

    key    what tells it apart from all others: equal keys are one certificate, wherever it is kept
    trust  what the server trusts it for, as NSS writes it: `CT,,`
    hosts  the names and addresses that it is for
    """

    key: str
    nickname: str
    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    trust: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """True if the server takes what it signed for that of a server: these it gives to OpenLDAP's library as authorities."""
        return bool(set("cCT") & set(self.trust.partition(",")[0]))

    @property
    def trusted_for_clients(self) -> bool:
        """True if the server takes what it signed for that of a client."""
        return "T" in self.trust.partition(",")[0]

    def is_valid(self, at: datetime) -> bool:
        """True if the time is within its validity."""
        return self.not_before <= at <= self.not_after


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    kind         EXPIRED, NOT_YET, UNTRUSTED or OTHER_HOST
    certificate  which certificate is at fault: that of the server, or of an authority above it
    """

    kind: str
    certificate: Certificate


def in_use(named: Iterable[Certificate], at: datetime) -> list[Certificate]:
    """Of certificates that a configuration names, those that the server shows: of one nickname the newest that is valid.

    A certificate that was renewed often stands beside the old one under the same nickname.
    """
    best: dict[str, Certificate] = {}
    for one in named:
        other = best.get(one.nickname)
        if other is None or (one.is_valid(at), one.not_before) > (other.is_valid(at), other.not_before):
            best[one.nickname] = one
    return list(best.values())


def faults(
    shown: Certificate,
    sent_along: Sequence[Certificate],
    trusted: Sequence[Certificate] | None,
    signers: Mapping[str, Collection[str]],
    at: datetime,
    host: str | None = None,
) -> list[Fault]:
    """All that is wrong with a certificate that a server shows.

    sent_along  the other certificates of that server: it sends those on the way to its authority
    trusted     the authorities that the other server trusts; None: not known, so nothing is said of them
    signers     key of a certificate -> keys of those whose signature it carries
    host        the host that it has to be for; None: that is not checked, or not known
    """
    found = [Fault(kind, shown) for kind in _out_of_time(shown, at)]
    if trusted is not None:
        known = {one.key: one for one in (*sent_along, *trusted, shown)}
        anchors = {one.key for one in trusted}
        if not _way(shown, {key for key, one in known.items() if one.is_valid(at)}, anchors, signers):
            way = _way(shown, known.keys(), anchors, signers)
            above = [known[key] for key in way or () if key != shown.key]
            found += [Fault(kind, one) for one in above for kind in _out_of_time(one, at)]
            found += [] if way else [Fault(UNTRUSTED, shown)]
    if host and shown.hosts and not any(_is_for(name, host) for name in shown.hosts):
        found.append(Fault(OTHER_HOST, shown))
    return found


def _out_of_time(one: Certificate, at: datetime) -> list[str]:
    return [EXPIRED] if at > one.not_after else [NOT_YET] if at < one.not_before else []


def _way(
    shown: Certificate, usable: Collection[str], anchors: Collection[str], signers: Mapping[str, Collection[str]]
) -> list[str] | None:
    """The shortest way of signatures over usable certificates up to an anchor; None: there is none."""
    before: dict[str, str | None] = {shown.key: None}
    waiting = [shown.key]
    for key in waiting:  # grows
        if key in anchors and (key in usable or key == shown.key):
            way = [key]
            while (last := before[way[-1]]) is not None:
                way.append(last)
            return way[::-1]
        for above in sorted(signers.get(key, ())):
            if above in usable and above not in before:
                before[above] = key
                waiting.append(above)
    return None


def _is_for(name: str, host: str) -> bool:
    """True if a certificate with this name is one for the host: `*.example.com` is for every host right below it."""
    name, host = name.lower().rstrip("."), host.lower().strip("[]").rstrip(".")
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(host)
    except ValueError:
        pass
    return name == host or (name.startswith("*.") and "." in host and name[1:] == host[host.index(".") :])
