"""Certificates for the servers of a mesh: an authority of the test's own, and what puts its certificates into an instance."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from live_mesh import Mesh

RSA = "cn=RSA,cn=encryption,cn=config"
Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]
"""A certificate and its key."""


def named(name: str) -> x509.Name:
    """A subject with this common name."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


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
    issuer, signs = (by[0].subject, by[1]) if by else (named(name), key)
    made = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since or now - timedelta(days=1))
        .not_valid_after(until or now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
    return made.sign(signs, hashes.SHA256()), key


def pem(one: Signed) -> str:
    """The certificate without its key."""
    return one[0].public_bytes(Encoding.PEM).decode()


def trust(mesh: Mesh, server: str, nickname: str, authority: Signed, flags: str = "CT,,") -> None:
    """Have a server trust an authority from its next start on."""
    _run("certutil", "-A", "-d", mesh.configuration(server), "-n", nickname, "-t", flags, "-a", "-f",
         mesh.configuration(server) / "pwdfile.txt", text=pem(authority))  # fmt: skip


def install(mesh: Mesh, server: str, one: Signed, folder: Path, nickname: str = "Server-Cert") -> None:
    """Put a certificate in the place of a server's own, with its key; from its next start on it is used."""
    kept, password = folder / f"{server}.p12", "canary-of-the-file"
    kept.write_bytes(
        serialize_key_and_certificates(
            nickname.encode(), one[1], one[0], None, BestAvailableEncryption(password.encode())
        )
    )
    where = mesh.configuration(server)
    subprocess.run(
        ["certutil", "-F", "-d", where, "-n", nickname, "-f", where / "pwdfile.txt"], check=False, capture_output=True
    )
    _run("pk12util", "-i", kept, "-d", where, "-k", where / "pwdfile.txt", "-W", password)
    kept.unlink()


def switch_on(mesh: Mesh, server: str, nickname: str = "Server-Cert") -> None:
    """Have a server offer encryption from its next start on."""
    for attribute, value in (("nsSSLPersonalitySSL", nickname), ("nsSSLActivation", "on")):
        mesh.modify(server, RSA, attribute, value)
    mesh.modify_config(server, "nsslapd-securePort", str(mesh.secure_ports[server]))
    mesh.modify_config(server, "nsslapd-security", "on")


def encrypt(mesh: Mesh, supplier: str, consumer: str, host: str = "localhost", transport: str = "LDAPS") -> None:
    """Have an agreement use encryption."""
    about = mesh._agreement(supplier, consumer)
    port = mesh.secure_ports[consumer] if transport == "LDAPS" else mesh.ports[consumer]
    mesh.modify(supplier, about, "nsDS5ReplicaTransportInfo", transport)
    mesh.modify(supplier, about, "nsDS5ReplicaPort", str(port))
    mesh.modify(supplier, about, "nsDS5ReplicaHost", host)


def _run(*words: str | Path, text: str = "") -> None:
    done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"
