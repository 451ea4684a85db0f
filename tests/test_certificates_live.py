"""Real servers with certificates that are no good: collected, loaded, diagnosed, and named in the first line."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from certificate_samples import certificate
from conftest import need
from detector_samples import of
from live_bench import Look
from live_certificates import encrypt, install, switch_on, trust
from live_installed import absent, until
from live_mesh import Mesh, person

from workbench.diagnosis.diagnosis_text import headline

pytestmark = pytest.mark.live
STATUS = "nsds5replicaLastUpdateStatus"
HOST = socket.gethostname()
"""OpenLDAP's library takes the `localhost` of an agreement for this name."""


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """A supplier, and a consumer that it feeds."""
    missing = absent()
    need(f"389 Directory Server and root (there is no {missing})", not missing)
    mesh = Mesh(tmp_path_factory.mktemp("pair"), {"s1": "supplier", "s2": "consumer"}, [("s1", "s2")])
    try:
        mesh.build()
        yield mesh
    finally:
        mesh.remove()


def restarted(mesh: Mesh, *servers: str) -> None:
    for name in servers:
        mesh.stop(name)
        mesh.start(name)


def tried_again(mesh: Mesh, says: str) -> None:
    """Wait until the agreement was tried and has this in its status."""
    about = mesh._agreement("s1", "s2")
    mesh.pause("s1", "s2")
    mesh.resume("s1", "s2")
    mesh.write("s1", person(f"one{datetime.now(UTC).timestamp():.0f}"))
    until(says, lambda: says in mesh.read("s1", about, [STATUS]).get(STATUS, [""])[0])


def test_an_expired_certificate_of_a_consumer_is_named_and_a_renewed_one_heals_it(pair: Mesh, tmp_path: Path) -> None:
    look, now = Look(tmp_path), datetime.now(UTC)
    authority = certificate("The authority", authority=True)
    old = certificate("s2", authority, now - timedelta(days=9), now - timedelta(days=5), hosts=[HOST])
    for server in ("s1", "s2"):
        trust(pair, server, "The authority", authority)
    install(pair, "s1", certificate("s1", authority, hosts=[HOST]), tmp_path)
    install(pair, "s2", old, tmp_path)
    for server in ("s1", "s2"):
        switch_on(pair, server)
    encrypt(pair, "s1", "s2")
    restarted(pair, "s2", "s1")
    tried_again(pair, "Can't contact LDAP server")

    found = look(pair, "expired")
    at = f"{old[0].not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    (one,) = of("LINK_FAILING", found["findings"])
    assert one["reason"] == "tls", one
    assert f"; the certificate of s2 (Server-Cert) expired at {at}; " in one["summary"]
    assert f"(TLS fails, the certificate of s2 expired at {at})" in headline(found)
    assert [row["nickname"] for row in one["evidence"] if "not_after" in row] == ["Server-Cert"]
    kept = "".join(path.read_text() for path in (tmp_path / "expired").glob("*.certificates.pem"))
    assert kept.count("BEGIN CERTIFICATE") == 4 and "PRIVATE" not in kept

    stranger = certificate("The authority", authority=True)
    install(pair, "s2", certificate("s2", stranger, hosts=["elsewhere.example.com"]), tmp_path)
    restarted(pair, "s2")
    tried_again(pair, "Can't contact LDAP server")
    (one,) = of("LINK_FAILING", look(pair, "strange")["findings"])
    says = "the certificate of s2 (Server-Cert) is not signed by the CN=The authority that s1 trusts"
    assert f"{says}, but by another one of that name; since" in one["summary"]

    install(pair, "s2", certificate("s2", authority, hosts=[HOST]), tmp_path)
    restarted(pair, "s2")
    tried_again(pair, "succeeded")
    pair.wait_equal()
    assert of("LINK_FAILING", look(pair, "renewed")["findings"]) == []
