"""Logins under the names of suppliers that a server refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, of, stamp, with_status
from link_samples import FINE, REFUSED_LOGIN, Files, mesh
from mesh_samples import agreement

from workbench.model import Piece, Source
from workbench.systems.ds389.formats.access_log import ACCESS_LOG

MANAGER = "cn=Replication Manager,cn=config"
HERE, THERE = "192.0.2.7", "192.0.2.8"


def login(second: float, result: int | None, conn: int, address: str = HERE, name: str = MANAGER) -> str:
    """The lines of one connection that logs in."""
    text = f"{stamp(second)} conn={conn} fd=64 slot=64 SSL connection from {address} to 192.0.2.1\n" if address else ""
    text += f'{stamp(second)} conn={conn} op=0 BIND dn="{name}" method=128 version=3\n'
    if result is not None:
        text += f"{stamp(second)} conn={conn} op=0 RESULT err={result} tag=97 nentries=0 etime=0.0003 - x\n"
    return text


def logins_in(log: str) -> dict[str, Any]:
    return ACCESS_LOG.reader()(Piece(Source("s2.access.log", "", "s2"), log.encode(), 0, True)).facts


def test_what_a_log_says_of_logins() -> None:
    log = login(1, 49, 1) + login(2, 49, 11, THERE) + login(3, 49, 3) + login(4, 0, 4) + login(5, None, 5, "")
    (name, seen), *none = logins_in(log)["logins"].items()
    assert (name, none) == (MANAGER.lower(), [])
    assert seen[HERE]["failed"] == 2 and seen[HERE]["failed_at"]["min"] < seen[HERE]["failed_at"]["max"]
    assert seen[HERE]["failed_at"]["max"] < seen[HERE]["ended_at"]["max"] < seen[""]["ended_at"]["max"]
    assert seen[THERE].keys() == {"failed", "failed_at"}
    assert "logins" not in logins_in(login(1, 49, 1, name="uid=a,dc=x"))
    many = "".join(login(1, 49, at, name=f"cn={at},cn=config") for at in range(600))
    assert logins_in(many)["logins_cut"] is True and len(logins_in(many)["logins"]) == 500


def fails(tmp_path: Path, *logins: str, files: Files | None = None) -> list[dict[str, Any]]:
    made = files or mesh(FINE)
    entry = str(made["s2.replica.ldif"]).replace(
        "nsDS5ReplicaId: 2\n", f"nsDS5ReplicaId: 2\nnsDS5ReplicaBindDN: {MANAGER}\n"
    )
    return of("LOGINS_FAIL", findings(tmp_path, {**made, "s2.replica.ldif": entry, "s2.access.log": "".join(logins)}))


def test_logins_of_a_supplier_that_was_not_collected_are_told(tmp_path: Path) -> None:
    (found,) = fails(tmp_path, login(1, 49, 1), login(3, 49, 2), login(5, 0, 3, THERE))
    assert (found["severity"], found["server"]) == ("warning", "s2")
    assert found["summary"].startswith(
        f"logins as {MANAGER.lower()} fail on s2 with 49 (invalid credentials), from {HERE}, 2 times, last at 2024-03-24 10:27"
    )
    assert [(row["address"], row["failed"]) for row in found["evidence"]] == [(HERE, 2)]


@pytest.mark.parametrize(
    "logins",
    [
        [login(1, 49, 1)],
        [login(1, 49, 1), login(3, 49, 2), login(5, 0, 3)],
        [login(1, 49, 1), login(3, 49, 2), login(5, 0, 3, "")],
        [login(1, 49, 1), login(3, 49, 2), login(5, None, 3)],
        [login(1, 49, 1), login(3, 49, 2), login(5000, 0, 3, THERE)],
        [login(1, 49, 1, name="cn=other,cn=config"), login(3, 49, 2, name="cn=other,cn=config")],
        [login(1, 53, 1), login(3, 53, 2)],
    ],
)
def test_logins_that_ended_or_are_of_nobody_are_not(tmp_path: Path, logins: list[str]) -> None:
    assert fails(tmp_path, *logins) == []


def test_a_collected_link_that_fails_explains_them(tmp_path: Path) -> None:
    refused = mesh(REFUSED_LOGIN)
    assert fails(tmp_path / "1", login(1, 49, 1), login(3, 49, 2), files=refused) == []
    (found,) = fails(
        tmp_path / "2", login(1, 49, 1), login(3, 49, 2), login(1, 49, 4, THERE), login(3, 49, 5, THERE), files=refused
    )
    assert f"from {HERE}, {THERE}, 4 times" in found["summary"]
    assert found["summary"].endswith("only 1 of these addresses can be that of a collected supplier")


@pytest.mark.parametrize("usual", ["cn=replication manger,cn=config", "cn=replication manager,cn=config"])
def test_a_login_that_all_other_agreements_do_not_have_is_named(usual: str, tmp_path: Path) -> None:
    """Seen on 2.3.1: a mistyped bind DN, and the advice was to set the password."""
    files = mesh(REFUSED_LOGIN)
    other = with_status(agreement("to-s1", 38901), f"nsDS5ReplicaBindDN: {usual}\n")
    (failing,) = of("LINK_FAILING", findings(tmp_path, files | {"s2.agreements.ldif": other}))
    mend = failing["fix"][0]["repair"]
    if usual == "cn=replication manager,cn=config":
        assert "--bind-dn" not in mend and mend.startswith(
            "see that s2 has an entry for cn=replication manager,cn=config"
        )
    else:
        assert mend.startswith(
            f"give the agreement the login {usual}, which all others have, or see that s2 has an entry"
        )
        assert f"--bind-dn '{usual}' --bind-passwd PASSWORD to-s2" in mend
