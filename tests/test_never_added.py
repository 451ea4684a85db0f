"""A deletion of an entry that a server never had leaves no record there, and nothing is lacking without it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from detector_samples import BEGAN, listening, plain_line
from entry_samples import answered, export
from mesh_samples import SUFFIX, case_of, changelog, claims, csn, elements, pair_of_servers, replica

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


def missing_on_s2(tmp_path: Path, files: dict[str, str | bytes]) -> bool:
    """True if s2 lacks the deletion, by the diagnosis and by the story of the change."""
    case = case_of(tmp_path, files)
    (there,) = (row for row in story(case, csn(8, 1))["servers"] if row["server"] == "s2")
    missing = [(row["server"], row["position"]) for row in diagnose(case)["missing"]] == [("s2", csn(8, 1))]
    assert (there["verdict"] == "missing") is missing
    return missing


@pytest.mark.parametrize(("added", "missing"), [(5, False), (-100, True)])
def test_who_refused_the_deletion_of_what_it_never_had_lacks_nothing(
    added: float, missing: bool, tmp_path: Path
) -> None:
    files = folder(unique_id(added))
    done = answered(8, "uid=idx", csn(8, 1), replicated=True, operation="DEL").replace("err=0", "err=32")
    files["s2.access.log"] = done + answered(9, "uid=x", csn(9, 1), replicated=True)
    assert missing_on_s2(tmp_path, files) is missing


def test_an_entry_that_the_server_shows_is_not_one_that_it_never_had(tmp_path: Path) -> None:
    files = folder(unique_id(5))
    shown = f"dn: uid=idx,{SUFFIX}\nobjectClass: person\nuid: idx\nnsUniqueId: {unique_id(5)}\n\n"
    files["s2.entries.ldif"] = export(elements(claims(r1=(0, 9), r2=(1, 2))), [shown])
    assert missing_on_s2(tmp_path, files)


@pytest.mark.parametrize(("added", "missing"), [(5.5, True), (7.5, False)])
def test_what_came_with_new_data_stands_in_no_log(added: float, missing: bool, tmp_path: Path) -> None:
    """s2 was filled in second 6, with an entry that was added past replication before that, or afterwards."""
    files = folder(unique_id(added))
    made = changelog([*(csn(second, 1) for second in (0, 1, 2, 3, 4, 7, 9)), csn(7, 2)])
    files["s1.changelog.ldif"] = made + record("delete", 8, unique_id(added))
    files["s2.changelog.ldif"] = changelog([csn(7, 1), csn(9, 1), csn(7, 2)], marks=[csn(4, 1), csn(2, 2)])
    for name, number in (("s1", 1), ("s2", 2)):
        files[f"{name}.replica.ldif"] = replica(number, elements(claims(r1=(0, 9), r2=(1, 7))))
    name = f"NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is "
    log = plain_line(6, f"{name}going offline; disabling replication")
    log += plain_line(6, f"{name}coming online; enabling replication")
    files["s2.errors.log"] = listening("s2")["s2.errors.log"] + log
    assert missing_on_s2(tmp_path, files) is missing


def test_the_record_that_cannot_be_read_may_be_the_addition(tmp_path: Path) -> None:
    files = folder(unique_id(5.5))
    begin = changelog(sorted([*(csn(second, 1) for second in range(6)), csn(1, 2), csn(2, 2)]))
    added, end = record("add", 6, unique_id(5.5)), record("delete", 8, unique_id(5.5)) + changelog([csn(9, 1)])
    files["s1.changelog.ldif"] = begin + added + changelog([csn(7, 1)]) + end
    files["s2.changelog.ldif"] = begin + added.replace(csn(6, 1), "zzzz") + changelog([csn(7, 1), csn(9, 1)])
    assert missing_on_s2(tmp_path, files)


def test_the_time_of_a_unique_id() -> None:
    added = entry_added(unique_id(5))
    assert added is not None and abs((added - BEGAN).total_seconds() - 5) < 0.001
    assert entry_added("2-2-2-8") is None and entry_added("00000001-00000000-00000000-00000001") is None
