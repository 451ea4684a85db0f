"""A deletion of an entry that a server never had leaves no record there, and nothing is lacking without it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from detector_samples import BEGAN
from mesh_samples import SUFFIX, case_of, changelog, csn, pair_of_servers

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.systems.ds389.rules.proving import entry_added

_SINCE_1582 = 0x01B21DD213814000


def unique_id(second: float) -> str:
    """One of an entry that was added then."""
    steps = _SINCE_1582 + int((BEGAN + timedelta(seconds=second)).timestamp() * 1e7)
    return f"{steps & 0xFFFFFFFF:08x}-{steps >> 32 & 0xFFFF:04x}1{steps >> 48:03x}-ae96b2c0-52c275da"


def record(operation: str, second: int, entry: str) -> str:
    return f"changetype: {operation}\ncsn: {csn(second, 1)}\nnsuniqueid: {entry}\ndn: uid=idx,{SUFFIX}\n\n"


def folder(entry: str, more: str = "") -> dict[str, str | bytes]:
    """s1 deleted an entry in second 8; s2 has all other changes, up to second 9."""
    files: dict[str, str | bytes] = {**pair_of_servers(9, 9)}
    others = [csn(second, 1) for second in range(10) if second != 8]
    own = [csn(1, 2), csn(2, 2)]
    files["s1.changelog.ldif"] = changelog([*others, *own]) + record("delete", 8, entry)
    files["s2.changelog.ldif"] = changelog([*others, *own]) + more
    return files


@pytest.mark.parametrize(
    ("entry", "more", "missing"),
    [
        (unique_id(5), "", False),  # the log of s2 would show the addition
        (unique_id(-100), "", True),  # the entry is older than the log
        (unique_id(0.5), "", True),  # older than what the log shows of origin 2
        (unique_id(5), record("modify", 7, unique_id(5)), True),  # s2 had it
        ("2-2-2-8", "", True),  # nothing tells when it was added
    ],
)
def test_whoever_never_had_an_entry_lacks_no_deletion_of_it(
    entry: str, more: str, missing: bool, tmp_path: Path
) -> None:
    case = case_of(tmp_path, folder(entry, more))
    found = diagnose(case)
    assert [row["position"] for row in found["missing"]] == [csn(8, 1)] * missing
    (there,) = (row for row in story(case, csn(8, 1))["servers"] if row["server"] == "s2")
    assert (there["verdict"] == "missing") is missing


def test_the_time_of_a_unique_id() -> None:
    added = entry_added(unique_id(5))
    assert added is not None and abs((added - BEGAN).total_seconds() - 5) < 0.001
    assert entry_added("2-2-2-8") is None and entry_added("00000001-00000000-00000000-00000001") is None
