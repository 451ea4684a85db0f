"""A server that was not read may have what the others lack: it is started and read before anything is thrown away for it."""

from __future__ import annotations

from pathlib import Path

from detector_samples import of
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose


def test_who_waits_for_what_a_server_that_is_down_may_have_is_not_filled_first(tmp_path: Path) -> None:
    """s2, which is down, made 5 to 9; s1 waits for them, and the log of s4, which has them, begins behind them.

    h4 has other data besides: what UNRELATED_DATA says of it brings s1 nothing.
    """
    held, ahead = claims(r1=(1, 9), r2=(1, 4)), claims(r1=(1, 9), r2=(1, 9))
    made = [csn(second, 1) for second in range(1, 10)]
    files = {
        "s1.replica.ldif": replica(1, elements(held)),
        "s1.changelog.ldif": changelog([*made, *(csn(second, 2) for second in range(1, 5))], own_entries=True),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-h4", 38904),
        "s2.DOWN": "no connection\n",
        "h4.replica.ldif": replica(65535, elements({}, generation="66ffabcd000000020000")),
        "s3.replica.ldif": replica(65535, elements(ahead)),
        "s3.changelog.ldif": changelog([csn(9, 2)]),
    }
    found = diagnose(case_of(tmp_path, files))
    assert of("UNRELATED_DATA", found["findings"])
    (stuck,) = [finding for finding in of("REINIT_REQUIRED", found["findings"]) if finding["server"] == "s1"]
    assert "no collected log has the record" in stuck["summary"]
    assert stuck["fix"][0]["repair"].startswith("first start s2")
    (waits,) = [finding for finding in of("PENDING_CHANGES", found["findings"]) if finding["server"] == "s1"]
    assert "start s2" in waits["fix"][0]["repair"] and "UNRELATED_DATA" not in str(waits["fix"])
