"""Links whose sessions end at the schema, and those that fail although their status is that of an attempt just begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of
from link_samples import BROKEN_OFF, line, mesh, refused_change
from mesh_samples import case_of, csn

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline

_BEGUN = "Error (0) Replica acquired successfully: Incremental update started"
_GONE = "Can't contact LDAP server(-1)"


def _schema(second: float) -> str:
    text = "Schema replication update failed: Server is unwilling to perform"
    return line(second, f'ERR - NSMMReplicationPlugin - agmt="cn=to-s2" (localhost:38902): {text}')


@pytest.mark.parametrize(("times", "short"), [(3, "schema refused"), (1, "breaks off at one change")])
def test_a_consumer_that_refuses_the_schema(times: int, short: str, tmp_path: Path) -> None:
    log = "".join(
        (_schema(second - 1) if number < times else "") + refused_change(second, csn(5, 1), _GONE)
        for number, second in enumerate((9, 12, 15))
    )
    case = case_of(tmp_path, mesh(BROKEN_OFF, log, ended=None))
    assert f"the link to-s2 fails ({short})" in headline(diagnose(case))
    (one,) = of("LINK_FAILING", findings(tmp_path / "found", mesh(BROKEN_OFF, log, ended=None)))
    (loop,) = of("APPLY_RETRY_LOOP", findings(tmp_path / "again", mesh(BROKEN_OFF, log, ended=None)))
    refused = times == 3
    assert ("refuses the schema of s1 (Server is unwilling to perform)" in one["summary"]) is refused
    assert ("s2 refuses the schema that comes first in each session" in loop["summary"]) is refused
    assert ("nsslapd-schemareplace=replication-only" in one["fix"][0]["repair"]) is refused
    assert one["fix"] == loop["fix"]


@pytest.mark.parametrize(("times", "fails"), [(3, True), (2, True), (1, False)])
def test_a_status_between_two_failures_is_no_sign_of_a_link_that_runs(times: int, fails: bool, tmp_path: Path) -> None:
    log = "".join(refused_change(second, csn(5, 1), "Operations error (1)") for second in (9, 12, 15)[:times])
    case = case_of(tmp_path, mesh(_BEGUN, log, ended=None))
    found = diagnose(case)
    assert bool(of("LINK_FAILING", found["findings"])) is fails
    assert ("5 are on the way to s2" in headline(found)) is not fails


@pytest.mark.parametrize("times", [3, 2])
@pytest.mark.parametrize("size", ["60758 bytes", "too long"])
def test_a_message_that_is_larger_than_the_consumer_takes(times: int, size: str, tmp_path: Path) -> None:
    """As 2.3.1 and 3.1.2 write it: the connection ends at once, and no result tells why."""
    log = "".join(refused_change(second, csn(5, 1), _GONE) for second in (9, 12, 15))
    said = f"conn=5 fd=65 Incoming BER Element was {size}, max allowable is 20000 bytes. Change the nsslapd-maxbersize attribute "
    lines = "".join(
        line(second, f"ERR - log_ber_too_big_error - {said}in cn=config to increase.")
        for second in (8.9, 12, 15)[:times]
    )
    files = mesh(BROKEN_OFF, log, ended=None) | {"s2.errors.log": lines}
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (link,), (loop,) = (of(code, found["findings"]) for code in ("LINK_FAILING", "APPLY_RETRY_LOOP"))
    told = times == 3
    assert ("the link to-s2 fails (message too large there)" in headline(found)) is told
    limit = "its limit for a message (nsslapd-maxbersize) is 20,000 bytes, and "
    limit += f"larger ones came 3 times{'' if size == 'too long' else ', the last of 60,758 bytes'}"
    assert (limit in link["summary"]) is (limit in loop["summary"]) is told
    assert ("`dsconf INSTANCE config replace nsslapd-maxbersize=BYTES`" in link["fix"][0]["repair"]) is told
    assert link["fix"] == loop["fix"]
