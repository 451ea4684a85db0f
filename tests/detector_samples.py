"""Findings of a small made-up mesh, and what its agreements and logs would say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mesh_samples import case_of

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.codes import codes_of
from workbench.diagnosis.output_keys import undocumented
from workbench.safety import to_yaml
from workbench.systems import system_named

Finding = dict[str, Any]
BEGAN = datetime.fromtimestamp(0x66000000, UTC)
"""Second 0 of the CSNs of the made-up mesh."""


def findings(tmp_path: Path, *snapshots: Any) -> list[Finding]:
    """What is wrong with these snapshots; every code, severity and key of the output is a known one."""
    found = diagnose(case_of(tmp_path, *snapshots))
    assert not undocumented(found)
    assert json.dumps(found)
    codes = codes_of(system_named(found["case"]["system"]))
    for one in found["findings"]:
        assert one["overruled_by"] or one["severity"] in codes[one["code"]].severities, one
        assert one["summary"]
    mine: list[Finding] = found["findings"]
    return mine


def of(code: str, found: list[Finding]) -> list[Finding]:
    """The findings with this code."""
    return [one for one in found if one["code"] == code]


def stamp(second: float) -> str:
    """The time of a log line, so many seconds after the beginning."""
    return f"[{BEGAN + timedelta(seconds=second):%d/%b/%Y:%H:%M:%S}.000000000 +0000]"


def zulu(second: float) -> str:
    """A time as the entries of agreements write it."""
    return f"{BEGAN + timedelta(seconds=second):%Y%m%d%H%M%SZ}"


def agreement_line(second: float, link: str, text: str, function: str = "acquire_replica") -> str:
    """A line of the errors log about an agreement."""
    head = f"{stamp(second)} - DEBUG - NSMMReplicationPlugin - {function} - "
    return f'{head}agmt="cn={link}" (localhost:38902): {text}\n'


def plain_line(second: float, text: str) -> str:
    """A line of the errors log about the server."""
    return f"{stamp(second)} - INFO - NSMMReplicationPlugin - {text}\n"


def status(code: int, text: str, state: str, began: float, ended: float) -> str:
    """What an agreement's entry tells of its last session, to stand behind its other lines."""
    return (
        f"nsds5replicaLastUpdateStatus: Error ({code}) {text}\n"
        f'nsds5replicaLastUpdateStatusJSON: {{"state": "{state}", "ldap_rc": "0", "repl_rc": "{code}", "message": "x"}}\n'
        f"nsds5replicaLastUpdateStart: {zulu(began)}\nnsds5replicaLastUpdateEnd: {zulu(ended)}\n"
    )


def with_status(entry: str, told: str) -> str:
    """An agreement's entry that also tells its last session."""
    return entry.rstrip("\n") + "\n" + told + "\n"


def listening(server: str) -> dict[str, str]:
    """The title of an errors log: it tells which address a server has that makes no changes."""
    title = (
        f"\t389-Directory/2.3.1 B2024.211.1531\n\tlocalhost:{38900 + int(server[1:])} (/etc/dirsrv/slapd-{server})\n\n"
    )
    return {f"{server}.errors.log": title + plain_line(0, "INFO - slapd_daemon - slapd started.")}


def read_at(files: dict[str, Any], second: float) -> dict[str, Any]:
    """The same files as `collect` leaves them: each server was read in that second, in one."""
    names = sorted({file.partition(".")[0] for file in files})
    servers = [{"name": name, "files": sorted(file for file in files if file.startswith(f"{name}."))} for name in names]
    collected = [{"server": name, "role": "supplier", "from": iso(second), "until": iso(second + 1)} for name in names]
    return files | {"case.yaml": to_yaml({"system": "ds389", "servers": servers, "collected": collected})}


def iso(second: float) -> str:
    return (BEGAN + timedelta(seconds=second)).isoformat()
