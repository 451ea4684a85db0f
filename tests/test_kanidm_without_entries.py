"""Plans for Kanidm servers beside one whose entries were not collected: what its ranges cover it may have, or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kanidm_incidents import BASE, CUT, KEPT, LATE, RUV, mesh
from kanidm_samples import DAY, Entry, backup, entry_id

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


def test_what_could_not_be_read_of_a_file_a_server_may_have_alone(tmp_path: Path) -> None:
    """A is past the window, and its file is cut within entry 4."""
    own = {**BASE, 5: Entry((0, "a"), {"mail": (LATE - 50, "a")})}
    text = json.dumps(backup("a", LATE, [(0, "a"), (0, "b"), (LATE - 50, "a")], own))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "A.json").write_text(text[: text.index(entry_id(4)) + 20])
    (tmp_path / "in" / "B.json").write_text(json.dumps(backup("b", LATE, [*KEPT, (LATE - 60, "a")], BASE)))
    for name, config in mesh("ab").items():
        (tmp_path / "in" / name).write_bytes(config)
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "in"])
    made = plan(case)
    (course,) = (one for one in made.courses if one.chosen)
    assert course.costs == "whatever only A has of what could not be read in its file"
    assert "of the entries that could be read in its file it has no changes" in made.steps[0].says
    assert "where its file could not be read" in made.steps[1].risk


def test_what_only_its_maker_shows_is_on_its_way_from_nobody_else(tmp_path: Path) -> None:
    """C is past the window, and made a change that the ranges of B cover; entries of B were not collected."""
    made = {**BASE, 4: Entry((0, "a"), {"mail": (LATE - 5, "c")})}
    case = loaded(
        tmp_path,
        a=backup("a", LATE, KEPT, BASE),
        b=backup("b", LATE, [*KEPT, (LATE - 5, "c")]),
        c=backup("c", LATE, [(0, "a"), (0, "b"), (0, "c"), (LATE - 5, "c")], made),
    )
    found = diagnose(case)
    (row,) = found["pending"]
    assert (row["server"], row["suppliers"], row["through"]) == ("A", [], ["B"])
    (one,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert one["summary"].endswith("B claims them, and sends what entries there show of them")
    planned = plan(case)
    assert [one.way for one in planned.courses if one.chosen] == ["refresh-from-A"], "what B has nothing tells"
    assert not any("on its way" in line for line in planned.open)
    (line,) = (line for line in planned.open if line.startswith("1 change waits for A"))
    assert "collect a backup of B with its entries" in line
