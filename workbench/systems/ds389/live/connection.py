"""One server over LDAP, LDAPS or its local socket: every answer within a time-out, every failure a sentence."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import ldap3
from ldap3.core.exceptions import (
    LDAPException,
    LDAPSocketOpenError,
    LDAPSocketReceiveError,
    LDAPSSLConfigurationError,
    LDAPStartTLSError,
)

from workbench.intake.collection import Access
from workbench.intake.readings import NO_ANSWER
from workbench.model import REMOVED, Problem
from workbench.safety import printable
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.native import Record, modify
from workbench.systems.ds389.secrets import SECRETS

BASE, BELOW = ldap3.BASE, ldap3.SUBTREE
_MODS = {"add": ldap3.MODIFY_ADD, "delete": ldap3.MODIFY_DELETE, "replace": ldap3.MODIFY_REPLACE}
ANY = "(objectClass=*)"

_URL = re.compile(r"(ldaps?)://(?:\[([0-9A-Fa-f:.]+)\]|([^/:?#\[\]@\s]+))(?::([0-9]{1,5}))?/?", re.IGNORECASE)
_SOCKET = re.compile(r"ldapi://([^/?#\s]+)/?", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Where a server listens: a host and port, or a socket of this machine."""

    url: str
    host: str | None = None
    port: int = 0
    secure: bool = False
    socket: str | None = None

    @property
    def here(self) -> bool:
        """True if nothing that is sent there leaves this machine."""
        if self.socket:
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host or "").is_loopback
        return (self.host or "").lower() in ("localhost", "localhost.localdomain")


def place_of(url: str) -> Place:
    """What a URL says. Raises Problem for anything but `ldap://host:port`, `ldaps://host:port` and `ldapi://%2Fsocket`."""
    if found := _SOCKET.fullmatch(url):
        path = unquote(found[1])
        if path.startswith("/"):
            return Place(f"ldapi://{found[1]}", socket=path)
    elif found := _URL.fullmatch(url):
        scheme, host = found[1].lower(), found[2] or found[3]
        port = int(found[4] or (636 if scheme == "ldaps" else 389))
        if 0 < port < 65536:
            shown = f"[{host}]" if found[2] else host
            return Place(f"{scheme}://{shown}:{port}", host=host, port=port, secure=scheme == "ldaps")
    raise Problem(
        "this is not the URL of a server",
        printable(url),
        "write ldap://host:389, ldaps://host:636 or ldapi://%2Frun%2Fslapd-NAME.socket",
    )


class Connection:
    """An open connection. Use it within `connected`."""

    def __init__(self, place: Place, connection: Any) -> None:
        self.place, self._ldap = place, connection

    def search(
        self, base: str, scope: str = BASE, match: str = ANY, attributes: Sequence[str] = ("*",), absent: bool = False
    ) -> list[Entry]:
        """The entries found, as the readers of LDIF take them. An absent base is a Problem unless `absent` allows it."""
        with _sentences(self.place):
            self._ldap.search(base, match, search_scope=scope, attributes=list(attributes))
            code, response = self._ldap.result["result"], self._ldap.response or []
        if code != 0 and not (absent and code == 32):
            raise self._refused(f"the search below {base or 'the root'}")
        return [_entry(one) for one in response if one.get("type") == "searchResEntry"]

    def replace(self, dn: str, attribute: str, value: str) -> None:
        """Replace the values of an attribute by one."""
        self.send(modify(dn, ("replace", attribute, [value])))

    def send(self, record: Record) -> None:
        """Send one change record; what the server refuses is a Problem with its result code."""
        dn, kind = record["dn"], record["change"]
        untold = _secrets_of(record)
        with _sentences(self.place, untold=untold):
            if kind == "modify":
                changes: dict[str, list[tuple[str, list[Any]]]] = {}
                for what, name, values in record["mods"]:
                    changes.setdefault(name, []).append((_MODS[what], list(values)))
                done = self._ldap.modify(dn, changes)
            elif kind == "add":
                done = self._ldap.add(dn, attributes=dict(record["values"]))
            else:
                done = self._ldap.delete(dn)
        if not done:
            raise self._refused(f"the {kind} of {dn}", untold)

    def _refused(self, what: str, untold: Sequence[str] = ()) -> Problem:
        said = self._ldap.result
        more = f": {_harmless(said['message'], untold)}" if said.get("message") else ""
        text = f"{_harmless(what)} was refused, {said.get('description')} ({said.get('result')}){more}"
        right = said.get("result") in (8, 50)
        do = "ask for the right to do this, or give another --bind-dn" if right else "look at its errors log"
        return Problem(text, self.place.url, do)


class NoAnswer(Problem):
    """The server has not answered yet: it may still do what it was asked for."""


@contextmanager
def connected(place: Place, access: Access, timeout: float | None = None) -> Iterator[Connection]:
    """A connection to the server, as the user of `access`, or as the user of this process over its socket.

    Raises Problem if there is none within the time-out, or if the server does not take the user or the password.
    """
    if not (access.user or place.socket):
        raise Problem("nobody is named who may ask", place.url, "give --bind-dn; only over ldapi:// is it not needed")
    seconds = max(1, round(timeout or access.timeout))
    password = access.password() if access.user else ""
    start_tls = starts_tls(place, access)
    with _sentences(place, access):
        tls = None
        if place.secure or start_tls:
            tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=str(access.ca_file) if access.ca_file else None)
        # Only ldap3's own URL syntax takes IPv6 addresses and sockets.
        server = ldap3.Server(place.url, tls=tls, get_info=ldap3.NONE, connect_timeout=max(1, round(access.timeout)))
        by_socket = {"authentication": ldap3.SASL, "sasl_mechanism": ldap3.EXTERNAL, "sasl_credentials": ""}
        by_name = {"authentication": ldap3.SIMPLE, "user": access.user, "password": password}
        connection = ldap3.Connection(
            server,
            **(by_name if access.user else by_socket),
            receive_timeout=seconds,
            auto_referrals=False,
            check_names=False,
        )
        try:
            connection.open(read_server_info=False)
            if start_tls:
                connection.start_tls(read_server_info=False)
            taken = connection.bind(read_server_info=False)
        except BaseException:
            _close(connection)
            raise
    try:
        if not taken:
            raise _not_taken(place, access, connection.result)
        yield Connection(place, connection)
    finally:
        _close(connection)


def starts_tls(place: Place, access: Access) -> bool:
    """True if TLS begins with a StartTLS: where a password would cross a network in clear, unless told otherwise."""
    if place.socket or place.secure:
        return False
    return not place.here if access.tls is None else access.tls


def _close(connection: Any) -> None:
    with suppress(LDAPException, OSError):
        connection.unbind()
    if connection.socket is not None:
        with suppress(OSError):
            connection.socket.close()


def _not_taken(place: Place, access: Access, result: dict[str, Any]) -> Problem:
    code = result.get("result")
    if code == 49:
        who = f"as {access.user}" if access.user else "over its socket"
        do = "check --bind-dn and the password" if access.user else "start as root, or give --bind-dn"
        return Problem(f"the server does not let us in {who}: wrong name or password", place.url, do)
    more = f": {_harmless(result['message'])}" if result.get("message") else ""
    text = f"the server does not let us in, {result.get('description')} ({code}){more}"
    return Problem(text, place.url, "check --bind-dn, and whether the server asks for TLS")


@contextmanager
def _sentences(place: Place, access: Access | None = None, untold: Sequence[str] = ()) -> Iterator[None]:
    """What the library raises, as a Problem; `untold` are values that it may repeat and must not."""
    try:
        yield
    except (LDAPException, OSError, ssl.SSLError) as error:
        raise _problem(place, error, access, untold) from None


def _problem(place: Place, error: BaseException, access: Access | None, untold: Sequence[str] = ()) -> Problem:
    whole = str(error)
    said = _harmless(_gist(whole), untold)
    lower = whole.lower()
    if isinstance(error, LDAPSSLConfigurationError):
        return Problem("the file of --ca cannot be used", str(access.ca_file if access else ""), "give one in PEM")
    if isinstance(error, TimeoutError | LDAPSocketReceiveError) or "timed out" in lower:
        kind = NoAnswer if isinstance(error, TimeoutError) or "timed out" in lower else Problem
        return kind(NO_ANSWER, place.url, "give it more with --timeout, or look at the server")
    if "certificate" in lower and "match" in lower:
        do = "give the URL with the name that the certificate has"
        return Problem("its certificate is that of another host", place.url, do)
    if "certificate" in lower and "verify" in lower:
        return Problem(f"its certificate is not trusted: {said}", place.url, "give the CA with --ca FILE")
    if isinstance(error, LDAPStartTLSError) or "ssl" in lower or "tls" in lower:
        do = "check that this port speaks TLS; --no-tls sends the password in clear"
        return Problem(f"no TLS: {said}", place.url, do)
    if isinstance(error, LDAPSocketOpenError | OSError):
        return Problem(f"no connection: {said}", place.url, "check that it runs and listens there")
    return Problem(f"the conversation failed: {said}", place.url, "look at its logs")


def _gist(text: str) -> str:
    """What the system or OpenSSL said, out of what the library wrapped around it."""
    found = re.search(r"certificate verify failed: ([^('\"]+)|\[Errno -?\d+\] ([^('\"]+)", text)
    return (found[1] or found[2]).strip() if found else text


def _secrets_of(record: Record) -> list[str]:
    """The values of a record that nobody may be told, the longest first."""
    named = [*record.get("values", {}).items(), *((name, values) for _, name, values in record.get("mods", ()))]
    found = {value for name, values in named if SECRETS.is_secret(name) for value in values}
    texts = {value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in found}
    return sorted(texts - {""}, key=len, reverse=True)


def _harmless(text: str, untold: Sequence[str] = ()) -> str:
    for value in untold:  # a server may repeat what it was sent, and then nothing around it says that it is a secret
        text = text.replace(value, REMOVED)
    return printable(SECRETS.redact(text.replace("\n", " ")))[:300]


def _entry(found: dict[str, Any]) -> Entry:
    lines = [("dn", found["raw_dn"])]
    lines += [(name, value) for name, values in found["raw_attributes"].items() for value in values]
    return Entry(0, lines)
