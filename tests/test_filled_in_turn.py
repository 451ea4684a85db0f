"""A server that was filled from one which had been filled itself: what came with these data is there, whoever logged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import listening, plain_line, zulu
from entry_samples import answered
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose

SWITCHED = "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is"


def filled(server: str, began: int) -> dict[str, str]:
    """The errors log of a server whose data were replaced within two seconds."""
    lines = plain_line(began, f"{SWITCHED} going offline; disabling replication")
    lines += plain_line(began + 2, f"{SWITCHED} coming online; enabling replication")
    return {name: text + lines for name, text in listening(server).items()}


def filling(name: str, port: int, began: int) -> str:
    """An agreement that filled its consumer within two seconds."""
    times = f"nsds5replicaLastInitStart: {zulu(began)}\nnsds5replicaLastInitEnd: {zulu(began + 2)}\n"
    return (
        agreement(name, port).rstrip("\n")
        + f"\n{times}nsds5replicaLastInitStatus: Error (0) Total update succeeded\n\n"
    )


def folder(passed_on: int) -> dict[str, Any]:
    """s2 made a change in every second; s1 filled the hub s3 in second 10, and that one filled s4 in second `passed_on`.

    Afterwards the hub was sent all changes of s2 once more, as after a cleaning; s4 logged those from second 20 on.
    """
    ruv = elements(claims(r1=(1, 2), r2=(1, 30)))
    made = [csn(second, 2) for second in range(1, 31)]
    whole = changelog([csn(1, 1), csn(2, 1), *made], own_entries=True)
    took = {second: answered(second, f"uid=n{second}", csn(second, 2), True) for second in range(1, 31)}
    begins = answered(0, "uid=n0", csn(1, 1), True)
    return {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": whole,
        "s1.access.log": begins + "".join(took.values()),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + filling("s1-to-s3", 38903, 10),
        "s2.replica.ldif": replica(2, ruv),
        "s2.changelog.ldif": whole,
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s3.replica.ldif": replica(65535, ruv),
        "s3.changelog.ldif": changelog(made, own_entries=True),
        "s3.access.log": begins + "".join(answered(40, f"uid=n{at}", csn(at, 2), True) for at in range(1, 31)),
        "s3.agreements.ldif": filling("s3-to-s4", 38904, passed_on),
        "s4.replica.ldif": replica(65535, ruv, flags=0),
        "s4.access.log": begins + "".join(took[second] for second in range(20, 31)),
        **filled("s3", 10),
        **filled("s4", passed_on),
    }


def missed(tmp_path: Path, files: dict[str, Any]) -> list[str]:
    return [row["position"] for row in diagnose(case_of(tmp_path, files))["missing"] if row["server"] == "s4"]


@pytest.mark.parametrize("passed_on", [14, 18])
def test_what_the_first_of_them_had_by_then_is_there(passed_on: int, tmp_path: Path) -> None:
    lacked = missed(tmp_path, folder(passed_on))
    assert not {csn(second, 2) for second in range(1, 10)} & {*lacked}


def test_what_the_first_of_them_got_later_is_not(tmp_path: Path) -> None:
    """What came to s1 when it filled s3, or later, came to s3 after it had filled s4."""
    assert missed(tmp_path, folder(14)) == [csn(second, 2) for second in range(10, 20)]
