"""Missing changes of entries that were deleted since: no effect of them is missing, and no fix repeats them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of
from entry_samples import logged
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

BODY = "objectClass: person\nuid: n\n"
ADDED, CHANGED, DELETED, AGAIN = csn(10, 2), csn(11, 2), csn(20, 2), csn(25, 2)
LACKED = {ADDED, CHANGED, DELETED}
OF_ANOTHER = csn(12, 2)


def mended(lacks: set[str], back: bool = False, other: int = 40) -> dict[str, Any]:
    """s2 added, changed and deleted an entry, then added another entry of that name; s1 does not have the changes `lacks`.

    back   a record names the entry behind its deletion
    other  the number of the entry that was added anew
    """
    done = {
        ADDED: logged(ADDED, 12, "uid=ann", BODY, "add"),
        CHANGED: logged(CHANGED, 12, "uid=ann", "replace: sn\nsn: x\n"),
        OF_ANOTHER: logged(OF_ANOTHER, 13, "uid=bob", BODY, "add"),
        DELETED: logged(DELETED, 12, "uid=ann", "", "delete"),
        AGAIN: logged(AGAIN, other, "uid=ann", BODY, "add"),
    }
    if back:
        done[csn(26, 2)] = logged(csn(26, 2), 12, "uid=ann", "replace: sn\nsn: y\n")
    base = changelog([csn(1, 1), csn(1, 2), csn(1, 3)], own_entries=True)
    ruv = elements(claims(r1=(1, 1), r2=(1, 26 if back else 25), r3=(1, 1)))
    files: dict[str, Any] = {}
    for number in (1, 2, 3):
        name, others = f"s{number}", [x for x in (1, 2, 3) if x != number]
        files[f"{name}.replica.ldif"] = replica(number, ruv)
        files[f"{name}.agreements.ldif"] = "".join(agreement(f"{name}-to-s{x}", 38900 + x) for x in others)
        files[f"{name}.changelog.ldif"] = base + "".join(
            record for at, record in done.items() if number != 1 or at not in lacks
        )
    return files


def test_what_was_done_to_an_entry_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    case = case_of(tmp_path, mended(LACKED))
    found = diagnose(case)
    assert {row["position"]: row["entry_gone"] for row in found["missing"]} == dict.fromkeys(LACKED, True)
    (finding,) = of("MISSED_CHANGE", found["findings"])
    assert [step["repair"].split(" on ")[0] for step in finding["fix"]] == ["make none of these changes again"]
    assert "(their entries were deleted since: there is nothing to mend)" in headline(found)
    planned = plan(case)
    assert not planned.steps
    assert any("make none of these changes again" in note for note in planned.left)


def test_another_missing_change_is_mended_all_the_same(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, mended({*LACKED, OF_ANOTHER})))
    (finding,) = of("MISSED_CHANGE", found["findings"])
    assert "initialise s1 from s2" in finding["fix"][-1]["repair"]
    assert "3 of them are of entries that were deleted since" in finding["summary"]
    assert "(the entries of 3 were deleted since)" in headline(found)


@pytest.mark.parametrize(
    ("lacks", "back"), [({DELETED}, False), ({CHANGED}, False), ({ADDED, CHANGED}, True), ({ADDED}, True)]
)
def test_nothing_is_concluded_without_the_addition_or_of_an_entry_that_is_back(
    lacks: set[str], back: bool, tmp_path: Path
) -> None:
    found = diagnose(case_of(tmp_path, mended(lacks, back)))
    assert not any("entry_gone" in row for row in found["missing"])
    assert "deleted since" not in headline(found)


def test_own_changes_of_an_entry_that_is_gone_are_not_to_be_given_back(tmp_path: Path) -> None:
    """s2 was restored and does not have its own changes: a repeated deletion removed the entry that was added again."""
    files = mended(set())
    done = files["s3.changelog.ldif"]
    for position in LACKED:
        done = "\n\n".join(record for record in done.split("\n\n") if f"csn: {position}" not in record)
    files["s2.changelog.ldif"] = done
    found = diagnose(case_of(tmp_path, files))
    assert {row["server"] for row in found["missing"] if row["entry_gone"]} == {"s2"}
    assert not of("OWN_CHANGES_HIDDEN", found["findings"]) and not any(row["cause"] for row in found["missing"])
    assert not any("save" in fix["repair"] for finding in found["findings"] for fix in finding["fix"])
