"""Plans for Kanidm servers beside one whose entries were not collected: what its ranges cover it may have, or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kanidm_incidents import BASE, CUT, LATE, RUV, mesh
from kanidm_samples import DAY, Entry, backup

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.repair.planner import plan


def loaded(folder: Path, **backups: dict[str, Any]) -> Case:
    (folder / "in").mkdir()
    for name, one in backups.items():
        (folder / "in" / f"{name.upper()}.json").write_text(json.dumps(one))
    for name, config in mesh("".join(backups)).items():
        (folder / "in" / name).write_bytes(config)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def test_what_ranges_alone_cover_no_server_is_known_to_have(tmp_path: Path) -> None:
    """B missed 60 entries of A, and made a change of 290 that A does not have; the ranges of C cover all of that."""
    many = {number: Entry((250, "a"), {"mail": (250, "a")}) for number in range(100, 160)}
    own = {**BASE, 2: Entry((0, "a"), {"mail": (290, "b")})}
    ruv = [*RUV, (250, "a"), (290, "b")]
    case = loaded(
        tmp_path,
        a=backup("a", 300, [*RUV, (250, "a")], {**BASE, **many}),
        b=backup("b", 300, ruv, own),
        c=backup("c", 300, ruv),
    )
    made = plan(case)
    chosen = [(one.need, one.way, one.refused) for one in made.courses if one.chosen]
    assert chosen == [("MISSED_CHANGE B", "refresh-from-A", "")]
    assert [one.refused for one in made.courses if one.way == "refresh-from-C"] != [""]
    assert made.steps[0].says.endswith("it has 1 change that no other server is known to have")


def test_of_a_source_without_entries_nothing_tells_what_goes(tmp_path: Path) -> None:
    ruv = [(CUT + 3600, "a"), (LATE, "a"), (CUT + 3600, "b"), (LATE, "b")]
    behind = [(CUT - 2 * DAY, "a"), (CUT - 2 * DAY, "b"), (LATE - 10, "b")]
    case = loaded(tmp_path, a=backup("a", LATE, ruv), b=backup("b", LATE - 10, behind, BASE))
    assert any(one["why"] for one in diagnose(case)["unknown"])
    made = plan(case)
    (course,) = (one for one in made.courses if one.chosen)
    assert course.way == "refresh-from-A" and course.costs == "whatever only B has: no collected entries tell it"
    assert "nothing tells what of it another server has" in made.steps[0].says
