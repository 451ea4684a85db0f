"""Certificates for the servers of a mesh: an authority of the test's own, and what puts its certificates into an instance."""

from __future__ import annotations

import subprocess
from pathlib import Path

from certificate_samples import Signed, pem
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from live_mesh import Mesh

RSA = "cn=RSA,cn=encryption,cn=config"


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


def encrypt(mesh: Mesh, supplier: str, consumer: str) -> None:
    """Have an agreement use encryption from the next start of its supplier on."""
    about = mesh._agreement(supplier, consumer)
    mesh.modify(supplier, about, "nsDS5ReplicaTransportInfo", "LDAPS")
    mesh.modify(supplier, about, "nsDS5ReplicaPort", str(mesh.secure_ports[consumer]))


def _run(*words: str | Path, text: str = "") -> None:
    done = subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"
