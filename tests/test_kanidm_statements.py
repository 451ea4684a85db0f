"""Sentences about Kanidm servers that say no more than their files do: of links, of a clock that is ahead, of what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kanidm_samples import DAY, Entry, backup, origin, text_of
from test_kanidm_diagnosis import BASE, RUV, of, pair
from test_kanidm_links import collected, config

from workbench import Case
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.pair_matrix_text import told
from workbench.repair.planner import plan
from workbench.replication.entry.diagnosis.state_comparison import verdicts_by_entry
from workbench.replication.entry.sections import left_behind
from workbench.systems import system_named
from workbench.topology.topology import topology

AHEAD = {
    "a": backup("a", 200, RUV, BASE),
    "b": backup("b", 200, [*RUV, (150, "b")], {**BASE, 2: Entry((0, "a"), {"mail": (150, "b")})}),
}
"""B made a change that A does not have."""


def about(found: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == code]


@pytest.mark.parametrize("partners", [{}, {"a": "allow-pull"}, {"a": "mutual-pull"}])
def test_nothing_is_on_the_way_where_no_file_names_a_link(partners: dict[str, str], tmp_path: Path) -> None:
    """A pulls from nobody, whatever B allows: the change waits until a person links the two."""
    folder = collected(tmp_path / "in", {"a": config("a"), "b": config("b", **partners)}, **AHEAD)
    found = of(folder, case=tmp_path / "case")
    (row,) = found["pending"]
    assert (row["server"], row["suppliers"], row["through"]) == ("a", [], [])
    assert "on the way" not in headline(found) and "no link in the collected files leads to a" in headline(found)
    (waits,) = about(found, "PENDING_CHANGES")
    assert "would send" not in waits["summary"].replace("nobody would send", "")
    assert waits["fix"][0]["repair"] == "let a pull from b, if they are to replicate: tell both ends of the link"
    made = plan(Case.open(tmp_path / "case"))
    assert made.unmended and not any("over links that run" in one for one in made.open)


def test_a_server_whose_file_was_not_collected_may_be_linked(tmp_path: Path) -> None:
    """Without a file that lists its links a server may pull from any."""
    found = of(collected(tmp_path / "in", {}, **AHEAD), case=tmp_path / "case")
    assert found["pending"][0]["suppliers"] == ["b"] and "on the way to a" in headline(found)


def test_of_a_supplier_that_is_asked_nothing_is_said_that_only_one_that_sends_does(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", {"a": config("a", b="mutual-pull"), "b": config("b")}, **AHEAD)
    found = of(folder, case=tmp_path / "case")
    lines = list(told(pair(found, "b", "a"), system_named("kanidm").moment, always=True))
    assert lines[-1].strip() == "but the link does not run (LINK_DISABLED)"


@pytest.mark.parametrize("clock", [310, DAY + 10])
def test_a_purge_forgets_nothing_of_the_week_whatever_the_clock_says(clock: int, tmp_path: Path) -> None:
    """C counts on from its own last change, a day ahead of A: what it lists is younger than a week all the same."""
    ruv = [(0, "a"), (0, "c"), (DAY, "c")]
    new = {**BASE, 3: Entry((0, "a"), {"mail": (DAY + 10, "c")})}
    backups = {"a": backup("a", 300, ruv, BASE), "c": backup("c", clock, [*ruv, (DAY + 10, "c")], new)}
    found = of(collected(tmp_path / "in", {}, **backups), case=tmp_path / "case")
    assert not list(left_behind(found["floors"]))
    assert {one["forgets"] for row in found["floors"] for one in row["servers"]} == {0}
    (ahead,) = about(found, "CLOCK_AHEAD")
    assert ahead["server"] == "c" and ahead["assumes"] == ["clocks_agree"]
    (step,) = plan(Case.open(tmp_path / "case"), only=["CLOCK_AHEAD"]).steps
    assert step.assumes == ("clocks_agree",)


@pytest.mark.parametrize("since", [[], [(170, "c")]])
def test_who_lost_its_newest_own_change_wrote_nothing_behind_it(since: list[tuple[int, str]], tmp_path: Path) -> None:
    ruv = [*RUV, (150, "c"), *since]
    whole = {**BASE, 7: Entry((150, "c"), {"mail": (150, "c")})}
    backups = {name: backup(name, 300, ruv, whole) for name in "ab"}
    lost = {number: entry for number, entry in BASE.items() if number != 7}
    backups["c"] = backup("c", 300, ruv, lost)
    found = of(collected(tmp_path / "in", {}, **backups), case=tmp_path / "case")
    (hidden,) = about(found, "OWN_CHANGES_HIDDEN")
    assert hidden["server"] == "c" and hidden["origin"] == origin("c")
    assert ("wrote again" in hidden["summary"]) == bool(since)


@pytest.mark.parametrize(("heard", "assumes"), [(15 * DAY, ["files_of_one_time"]), (20 * DAY, [])])
def test_a_server_that_was_not_heard_of_may_have_an_older_file(heard: int, assumes: list[str], tmp_path: Path) -> None:
    """C is behind what A and B still remember; only if its file is of a time behind that, nothing else can be the reason."""
    now, late = 20 * DAY, [(18 * DAY, "a"), (18 * DAY, "b"), (20 * DAY, "a"), (20 * DAY, "b")]
    new = {**BASE, 3: Entry((0, "a"), {"mail": (20 * DAY, "a")})}
    backups = {name: backup(name, now, late, new) for name in "ab"}
    backups["c"] = backup("c", heard, [(10 * DAY, "a"), (10 * DAY, "b"), (heard, "c")], BASE)
    found = of(collected(tmp_path / "in", {}, **backups), case=tmp_path / "case")
    (one,) = about(found, "REFRESH_REQUIRED")
    assert (one["server"], one["assumes"]) == ("c", assumes)
    green = about(found, "STALLED_BUT_GREEN")
    assert green and all(each["assumes"] == assumes for each in green)
    steps = plan(Case.open(tmp_path / "case")).steps
    assert [list(step.assumes) for step in steps if step.repair != "back_up"] == [assumes]


def test_a_forgotten_change_that_entries_show_was_never_there_is_no_open_question(tmp_path: Path) -> None:
    """D was off for nine days. A has forgotten D's origin, and shows the entry as it was before what D changed of it."""
    now, cut = 20 * DAY, 13 * DAY
    kept = [(cut + 3600, "a"), (now, "a")]
    made = {**BASE, 1: Entry((0, "a"), {"mail": (cut - 2 * DAY, "d")}), 50: Entry((cut - 2 * DAY, "d"))}
    ruv = [(cut - 5 * DAY, "a"), (cut - 5 * DAY, "d"), (cut - 2 * DAY, "d")]
    backups = {"a": backup("a", now, kept, BASE), "d": backup("d", cut - 2 * DAY, ruv, made)}
    folder = collected(
        tmp_path / "in", {"a": config("a", d="mutual-pull"), "d": config("d", a="mutual-pull")}, **backups
    )
    found = of(folder, case=tmp_path / "case")
    (row,) = (one for one in found["pending"] if one["server"] == "a")
    assert (row["origin"], row["count"], row["suppliers"], row["through"]) == (origin("d"), 1, [], [])
    (open_,) = (one for one in found["unknown"] if one["server"] == "a")
    assert open_["count"] == 1, "an entry that is not there may have been deleted and forgotten"
    case = Case.open(tmp_path / "case")
    told_of = {one.server: one.verdict for one in verdicts_by_entry(case, topology(case), text_of(cut - 2 * DAY, "d"))}
    assert told_of["a"] == "unknown", "of one of the two entries nobody can tell"
