"""What several copies have behind the end of the log of their source, which was read before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drizzle_incidents import cut_between, damaged, log, named, one, written

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline


@pytest.mark.parametrize(
    ("of_c", "says"),
    [
        ((1, 2, 3, 4, 5, 7), "c, which goes on behind it, lacks 6 of these"),
        ((1, 2, 3, 4, 5, 6), ""),
        ((1, 2, 3, 4, 5, 6, 7), ""),
    ],
)
def test_a_copy_that_passed_over_what_another_one_has_is_named(
    of_c: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    """The log of a ends with 4; b has 5, 6, 7. Who has 7 and not 6 missed it, if a made them; who ends with 6 may be behind."""
    files = {
        "a.log": log(1, 2, 3, 4),
        "b.log": log(*range(1, 8)),
        "c.log": log(*of_c),
        "case.yaml": named("a", "a.log"),
    }
    (tmp_path / "in").mkdir()
    for name, data in files.items():
        (tmp_path / "in" / name).write_bytes(data)
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    found = diagnose(case)
    (of_b,) = (
        (one for one in found["findings"] if (one["code"], one["server"]) == ("ERRANT_CHANGE", "b")) if says else [{}]
    )
    assert says in of_b.get("summary", "")
    assert of_b.get("severity") == ("warning" if says else None)
    assert headline(found).startswith("No change is known to be missing" if says else "No change is missing")


def of_c(folder: Path, log_of_c: bytes, log_of_b: bytes = log(*range(1, 8))) -> dict[str, Any]:
    """The diagnosis where the log of a ends with 4, and those of b and c go on."""
    (folder / "in").mkdir()
    files = {"a.log": log(1, 2, 3, 4), "b.log": log_of_b, "c.log": log_of_c, "case.yaml": named("a", "a.log")}
    for name, data in files.items():
        (folder / "in" / name).write_bytes(data)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return diagnose(case)


def errant_of_b(found: dict[str, Any]) -> str:
    (says,) = (x["summary"] for x in found["findings"] if (x["code"], x["server"]) == ("ERRANT_CHANGE", "b"))
    return str(says)


def test_two_copies_that_have_different_contents_behind_its_end_are_in_conflict(tmp_path: Path) -> None:
    found = of_c(tmp_path, log(*range(1, 8), t6="z"))
    (told,) = (finding for finding in found["findings"] if finding["code"] == "TXN_CONFLICT")
    assert told["summary"].startswith(
        "b and c hold 1 transaction of server 1 (6) with different contents, behind the last"
    )
    assert told["fix"][0]["repair"].startswith("collect the log of a once more, later than those of b and c")
    assert "known to be missing" in headline(found)


def test_another_order_behind_its_end_is_said(tmp_path: Path) -> None:
    assert errant_of_b(of_c(tmp_path, log(1, 2, 3, 4, 5, 7, 6))).endswith("; c has some of these in another order")


def test_what_is_damaged_there_is_not_lacking(tmp_path: Path) -> None:
    bad = log(1, 2, 3, 4, 5) + damaged(one(6), len(one(6)) - 1) + log(7)
    assert errant_of_b(of_c(tmp_path, bad)).endswith("or they are b's own")


def test_what_stood_in_a_place_that_is_no_record_nothing_tells(tmp_path: Path) -> None:
    lost = log(1, 2, 3, 4, 5) + bytes(len(one(6))) + log(7)
    assert errant_of_b(of_c(tmp_path, lost)).endswith("c lost records there: nothing tells whether it has 6 of these")


def test_what_came_in_part_there_is_in_the_log_of_another_copy(tmp_path: Path) -> None:
    bulk, start, after = cut_between(50), log(1, 2, 3, 4), log(51)
    found = of_c(tmp_path, start + written([bulk[0], bulk[2]]) + after, start + written(bulk) + after)
    (told,) = (finding for finding in found["findings"] if finding["code"] == "TXN_INCOMPLETE")
    assert told["fix"][0]["repair"] == "apply them whole from the log of b"
    assert errant_of_b(found).endswith("or they are b's own")
