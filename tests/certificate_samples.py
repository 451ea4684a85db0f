"""Certificates made for tests, and the file in which `collect` keeps those of a server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]
"""A certificate and its key."""


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def certificate(
    name: str,
    by: Signed | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    hosts: Iterable[str] = (),
    authority: bool = False,
) -> Signed:
    """A certificate with its key, signed by another one or by itself; valid from yesterday to next year unless told."""
    now = datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    issuer, signs = (by[0].subject, by[1]) if by else (_named(name), key)
    made = (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since or now - timedelta(days=1))
        .not_valid_after(until or now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts := list(hosts):
        made = made.add_extension(x509.SubjectAlternativeName(map(_host, hosts)), critical=False)
    return made.sign(signs, hashes.SHA256()), key


def pem(one: Signed) -> str:
    """The certificate without its key."""
    return one[0].public_bytes(Encoding.PEM).decode()


def block(nickname: str, trust: str, one: Signed, used: str = "no") -> str:
    """What the file has of one certificate."""
    return f"# nickname: {nickname}\n# trust: {trust}\n# in use: {used}\n{pem(one)}\n"


def kept_file(
    given: Iterable[tuple[str, str, Signed]], own: str = "", checks: str = "on", at: str = "", encryption: str = ""
) -> str:
    """The file with the certificates of a server: nickname, trust flags, certificate; `own` is the one it shows."""
    blocks = [block(name, trust, one, "yes" if name == own else "no") for name, trust, one in given]
    about = f"# certificates of a server\n# certificates of consumers checked: {checks}\n"
    about += f"# encryption: {encryption}\n" if encryption else ""
    return about + (f"# encrypts at: {at}\n" if at else "") + "\n" + "".join(blocks)
