"""Own changes that a trimmed changelog no longer shows: the server that made them since its start has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import iso, plain_line, stamp
from mesh_samples import case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.safety import to_yaml

STARTS = "INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 38901 for LDAP requests"
IMPORTS = "INFO - bdb_import_main - import userroot: Beginning import job..."
IMPORTED = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."


def folder(lines: list[tuple[float, str]], read: float) -> dict[str, Any]:
    """s2 has 31 changes that s1 made, one a second, and of which s1 keeps the last; s1 logged these lines, and was read then."""
    files: dict[str, Any] = dict(pair_of_servers(30, 30))
    files["s1.changelog.ldif"] = changelog([csn(30, 1)])
    if lines:
        files["s1.errors.log"] = "".join(plain_line(second, text) for second, text in lines)
    files["s1.access.log"] = (
        f'{stamp(30)} conn=1 op=2 MOD dn="uid=v,dc=example,dc=com"\n'
        f"{stamp(30)} conn=1 op=2 RESULT err=0 tag=103 nentries=0 etime=0.006 csn={csn(30, 1)}\n"
    )
    files["s2.errors.log"] = plain_line(2, STARTS)
    collected = [
        {"server": name, "role": "supplier", "from": iso(read), "until": iso(read + 1)} for name in ("s1", "s2")
    ]
    servers = [
        {"name": name, "files": sorted(file for file in files if file.startswith(name))} for name in ("s1", "s2")
    ]
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": collected})}


@pytest.mark.parametrize(
    ("lines", "read", "unknown"),
    [
        ([(9.5, STARTS)], 60, 10),
        ([(9.5, STARTS)], 20, 20),
        ([(9.5, STARTS), (40, IMPORTS), (41, IMPORTED)], 60, 30),
        ([], 60, 30),
    ],
)
def test_what_a_server_made_since_its_start_it_has(
    lines: list[tuple[float, str]], read: float, unknown: int, tmp_path: Path
) -> None:
    """Not what it made before that, before new data, or by a clock that was ahead."""
    found = diagnose(case_of(tmp_path, folder(lines, read)))
    assert [row for row in found["missing"] if row["server"] == "s1"] == []
    assert sum(row["count"] for row in found["unknown"] if (row["server"], row["origin"]) == ("s1", "1")) == unknown


@pytest.mark.parametrize("known", [True, False])
def test_a_supplier_that_was_made_a_consumer_does_not_wait_for_what_it_made(known: bool, tmp_path: Path) -> None:
    """Its RUV no longer names its own replica ID; the others' vectors show at which address that was, and it is its own."""
    files: dict[str, Any] = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(0, 9))), flags=0)
    if known:
        files["s2.replica.ldif"] += (
            "dn: cn=config\ncn: config\nnsslapd-localhost: localhost.localdomain\nnsslapd-port: 38902\n\n"
        )
    del files["s2.changelog.ldif"], files["s2.agreements.ldif"]
    files["s2.errors.log"] = plain_line(0.5, STARTS)
    found = diagnose(case_of(tmp_path, files))
    waits = [(row["server"], row["origin"], row["count"]) for row in found["pending"]]
    assert waits == ([] if known else [("s2", "2", 2)])
