"""Changes that only an earlier file of a Kanidm server shows: lost by a refresh or a restore between, or forgotten unseen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kanidm_incidents import BASE, CUT, LATE, RUV, mail
from kanidm_samples import DAY, Entry, backup, origin, text_of

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.diagnosis_text import headline
from workbench.model import Problem
from workbench.repair.planner import plan

Backup = dict[str, Any]
LOST = text_of(250, "b")
FIRST = {"a": backup("a", 300, RUV, BASE), "b": backup("b", 300, [*RUV, (250, "b")], mail(2, cid=(250, "b")))}
"""B alone has its change of 250."""


def snapshot(folder: Path, files: Mapping[str, Backup]) -> Path:
    folder.mkdir(parents=True)
    for name, one in files.items():
        (folder / f"{name}.json").write_text(json.dumps(one))
    return folder


def of(folder: Path, *snapshots: Mapping[str, Backup]) -> dict[str, Any]:
    case = Case.create(folder / "case")
    case.load([snapshot(folder / f"s{number}", files) for number, files in enumerate(snapshots, 1)])
    return diagnose(case)


def thrown(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == "CHANGES_THROWN_AWAY"]


def second(b: Backup, entries: Mapping[int, Entry] = BASE, *more: tuple[int, str]) -> dict[str, Backup]:
    return {"a": backup("a", 900, [*RUV, (850, "a"), *more], entries), "b": b}


@pytest.mark.parametrize(
    ("b", "says"),
    [
        (backup("x", 900, [*RUV, (850, "a"), (880, "x")], BASE), "has another server UUID since: it was refreshed"),
        (backup("b", 900, [*RUV, (850, "a")], BASE), "it was restored from an older state"),
    ],
)
def test_what_only_an_earlier_snapshot_shows_is_said(b: Backup, says: str, tmp_path: Path) -> None:
    found = of(tmp_path, FIRST, second(b))
    (one,) = thrown(found)
    assert (one["severity"], one["server"], one["origin"], one["items"]) == ("error", "b", origin("b"), [LOST])
    assert says in one["summary"] and "b.json of snapshot s1 shows it" in one["summary"]
    assert one["assumes"] == [] and one["certain"]
    assert headline(found).startswith("No collected server has 1 change any more that b had; no other change")
    assert not found["missing"], "no vector covers it"
    made = plan(Case.open(tmp_path / "case"))
    assert any(line.startswith("CHANGES_THROWN_AWAY b") for line in made.left)
    told = story(Case.open(tmp_path / "case"), LOST)
    assert {row["server"]: row["verdict"] for row in told["servers"]} == {"a": "pending", "b": "pending"}


def test_a_server_that_wrote_on_behind_what_it_lost_misses_it(tmp_path: Path) -> None:
    """A has one of two changes of one position: that one is missing on B and can be written again, the other is gone."""
    first = {"a": backup("a", 300, [*RUV, (250, "b")], mail(2, cid=(250, "b")))}
    first["b"] = backup("b", 300, [*RUV, (250, "b")], mail(2, 4, cid=(250, "b")))
    last = second(backup("b", 900, [*RUV, (850, "a"), (880, "b")], BASE), mail(2, cid=(250, "b")), (250, "b"))
    found = of(tmp_path, first, last)
    rows = {(row["server"], row["target"]): (row["held_by"], row["cause"]) for row in found["missing"]}
    gone = ([], "CHANGES_THROWN_AWAY")
    assert rows == {("b", "entry0002"): (["a"], None), ("a", "entry0004"): gone, ("b", "entry0004"): gone}
    (one,) = thrown(found)
    assert one["evidence"] == [
        {"position": LOST, "target": "entry0004", "attribute": "mail", "snapshot": "s1", "file": "b.json"}
    ]
    made = plan(Case.open(tmp_path / "case"))
    assert [(row["server"], row["missing"]) for row in made.before] == [("a", 1), ("b", 2)]
    assert [(row["server"], row["missing"]) for row in made.after] == [("a", 1), ("b", 1)]
    (step,) = made.steps
    assert "entry0002" in step.sends and "entry0004" not in step.sends
    assert any(line.startswith("MISSED_CHANGE b: 1 of the changes") for line in made.left)


REFRESHED = backup("x", 900, [*RUV, (850, "a"), (880, "x")], BASE)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(second(REFRESHED, mail(2, cid=(850, "a"))), id="a later change of the attribute replaced it"),
        pytest.param(second(REFRESHED, {**BASE, 2: Entry(gone=(850, "a"))}), id="its entry was deleted"),
        pytest.param(second(REFRESHED, mail(2, cid=(250, "b")), (250, "b")), id="it had arrived"),
        pytest.param({"a": backup("a", 900, [*RUV, (850, "a")], BASE)}, id="its maker was not collected again"),
        pytest.param(
            second(backup("x", LATE, [(LATE, "a"), (LATE, "x")], {5: BASE[5]}), {5: BASE[5]}, (LATE, "a")),
            id="its entry may have been deleted and forgotten",
        ),
        pytest.param(
            {"a": backup("a", 240, RUV, BASE), "b": backup("x", 240, RUV, BASE)},
            id="all files are older than it",
        ),
    ],
)
def test_what_need_not_be_lost_is_not_called_lost(last: Mapping[str, Backup], tmp_path: Path) -> None:
    found = of(tmp_path, FIRST, last)
    assert not thrown(found) and LOST not in {row["position"] for row in found["missing"]}


def test_of_changes_that_replaced_each_other_the_last_one_is_lost(tmp_path: Path) -> None:
    between = {**FIRST, "b": backup("b", 400, [*RUV, (250, "b"), (350, "b")], mail(2, cid=(350, "b")))}
    (one,) = thrown(of(tmp_path, FIRST, between, second(REFRESHED)))
    assert one["items"] == [text_of(350, "b")]


def test_an_entry_that_is_gone_was_not_deleted_where_all_showed_it_less_than_a_week_ago(tmp_path: Path) -> None:
    """B made entry 9 nine days ago; A never had it. Nobody had deleted it in the first snapshot, an hour before the last."""
    kept = [(CUT + 3600, "a"), (LATE - 3600, "a")]
    made = {**BASE, 9: Entry((CUT - 2 * DAY, "b"))}
    first = {
        "a": backup("a", LATE - 3600, kept, BASE),
        "b": backup("b", LATE - 3600, [(CUT - 2 * DAY, "b"), (LATE - 3600, "b")], made),
    }
    last = {"a": backup("a", LATE, [*kept, (LATE, "a")], BASE), "b": backup("x", LATE, [*kept, (LATE, "x")], BASE)}
    (one,) = thrown(of(tmp_path, first, last))
    assert one["items"] == [text_of(CUT - 2 * DAY, "b")]


def test_the_order_of_snapshots_is_named_where_no_clock_proves_it(tmp_path: Path) -> None:
    """The clock of B stands where it stood, and A was read before B."""
    last = {"a": backup("a", 290, RUV, BASE), "b": backup("b", 300, [*RUV, (200, "a")], BASE)}
    (one,) = thrown(of(tmp_path, FIRST, last))
    assert one["assumes"] == ["collected_in_order", "files_of_one_time"] and not one["certain"]


def test_an_earlier_file_within_a_snapshot_counts(tmp_path: Path) -> None:
    files = {
        "A": backup("a", 300, [*RUV, (250, "a")], mail(2, cid=(250, "a"))),
        "A.later": backup("x", 310, [*RUV, (305, "x")], BASE),
        "B": backup("b", 310, RUV, BASE),
    }
    (one,) = thrown(of(tmp_path, files))
    assert one["server"] == "A" and "A.json of snapshot s1" in one["summary"]


def test_who_may_have_it_and_was_not_collected_makes_it_a_warning(tmp_path: Path) -> None:
    last = second(REFRESHED)
    blind = backup("c", 900, [*RUV, (250, "b")])
    found = of(tmp_path, FIRST, {**last, "c": blind})
    (one,) = thrown(found)
    assert one["severity"] == "warning" and one["fix"][0]["repair"].startswith("collect a backup of c")


def test_a_deletion_that_was_forgotten_unseen_is_missing_where_the_entry_lives(tmp_path: Path) -> None:
    """C claims all of A, and has the entry; A had the tombstone, and has forgotten it since."""
    ruv = [(CUT - DAY, "a"), (CUT + 50, "a"), (LATE - DAY, "a"), (LATE - DAY, "c")]
    grave = {**BASE, 3: Entry(gone=(CUT + 50, "a"))}
    first = {"a": backup("a", LATE - DAY, ruv, grave), "c": backup("c", LATE - DAY, ruv, BASE)}
    now = [(CUT + 5000, "a"), (LATE, "a"), (LATE, "c")]
    rest = {number: entry for number, entry in BASE.items() if number != 3}
    last = {"a": backup("a", LATE + 4000, now, rest), "c": backup("c", LATE + 4000, now, BASE)}
    found = of(tmp_path, first, last)
    (row,) = found["missing"]
    assert (row["server"], row["operation"], row["held_by"], row["cause"]) == ("c", "delete", [], None)
    assert not thrown(found)
    (one,) = (one for one in found["findings"] if one["code"] == "MISSED_CHANGE")
    assert one["fix"][0]["repair"].startswith("delete the entries concerned on c")


C_FIRST = backup("c", 300, RUV, BASE)
C_LAST = backup("c", 900, [*RUV, (850, "c")], BASE)
REFRESHED_FROM_C = backup("x", 900, [*RUV, (850, "c"), (880, "x")], BASE)


def only_one(folder: Path, *snapshots: Mapping[str, Backup]) -> dict[str, Any]:
    (one,) = thrown(of(folder, *snapshots))
    return one


def test_a_maker_that_no_file_is_known_of_may_still_have_it(tmp_path: Path) -> None:
    """A had pulled the change from B, of which nothing was collected, and was refreshed from C since."""
    first = {"a": FIRST["a"] | {"entries": FIRST["b"]["entries"], "repl_meta": FIRST["b"]["repl_meta"]}, "c": C_FIRST}
    last = {"a": backup("y", 900, [*RUV, (850, "c"), (880, "y")], BASE), "c": C_LAST}
    found = of(tmp_path, first, last)
    (one,) = thrown(found)
    assert (one["severity"], one["server"], one["origin"]) == ("warning", "a", origin("b"))
    assert one["fix"][0]["repair"].startswith(f"find the server of UUID {origin('b')}")
    assert one["fix"][1]["repair"].startswith("if no server has it, write again")
    assert "no other change is known to be missing" in headline(found)


@pytest.mark.parametrize(
    ("a", "says"),
    [
        (FIRST["a"], "a may have received it since a.json of snapshot s1"),
        (FIRST["b"] | {"db_s_uuid": origin("a")}, "a.json of snapshot s1 shows it, too"),
    ],
)
def test_who_was_not_collected_again_may_have_it(a: Backup, says: str, tmp_path: Path) -> None:
    one = only_one(tmp_path, {**FIRST, "a": a, "c": C_FIRST}, {"b": REFRESHED_FROM_C, "c": C_LAST})
    assert (one["severity"], one["server"]) == ("warning", "b")
    step = one["fix"][0]
    assert step["repair"].startswith("collect a backup of a again") and says in step["why"]
    kept = "no collected server has it" if "shows" in says else "nothing else is known to have it"
    assert one["fix"][1]["caution"].endswith(f"keep the file: {kept}")


def test_who_was_collected_with_the_loss_and_not_again_does_not_have_it(tmp_path: Path) -> None:
    """B had lost it in the second snapshot, in which A lacks it: the third one has A alone, then B alone."""
    between = second(REFRESHED)
    third = backup("a", 1900, [*RUV, (1850, "a")], BASE)
    one = only_one(tmp_path / "a", FIRST, between, {"a": third})
    assert (one["severity"], one["server"]) == ("error", "b")
    assert "another server UUID since, as b.json of snapshot s2 shows" in one["summary"]
    one = only_one(tmp_path / "b", FIRST, between, {"b": backup("x", 1900, [*RUV, (1850, "x")], BASE)})
    assert (one["severity"], one["server"], one["certain"]) == ("error", "b", True)


RESTORED = backup("b", 900, [*RUV, (850, "a")], BASE)
OF_C = mail(4, cid=(240, "c"))


def test_a_server_is_known_by_its_uuid_whatever_its_file_is_called(tmp_path: Path) -> None:
    a = second(RESTORED)["a"]
    one = only_one(tmp_path / "renamed", FIRST, {"a": a, "b2": RESTORED})
    assert (one["severity"], one["server"]) == ("error", "b2") and "b.json of snapshot s1" in one["summary"]
    c = backup("c", 300, [*RUV, (240, "c")], OF_C)
    still = backup("c", 900, [*RUV, (850, "a"), (240, "c")], OF_C)
    one = only_one(tmp_path / "swapped", {**FIRST, "c": c}, {"a": a, "c": RESTORED, "b": still})
    assert one["server"] == "c" and "it was restored from an older state" in one["summary"]
    taken = {"a": a, "b": still}  # the file of C is called as that of B was, which was not collected again
    assert not thrown(of(tmp_path / "taken", {**FIRST, "c": c}, taken))


def test_what_a_later_change_replaced_is_explained_as_of_the_snapshot_that_names_it(tmp_path: Path) -> None:
    of(tmp_path, FIRST, second(REFRESHED, mail(2, cid=(850, "a"))))
    case = Case.open(tmp_path / "case")
    with pytest.raises(Problem, match="and s1 does") as raised:
        story(case, LOST)
    assert "--as-of s1" in str(raised.value)
    assert {row["verdict"] for row in story(case, LOST, as_of="s1")["servers"]} == {"pending", "present"}


@pytest.mark.parametrize("without", ["first", "last"])
def test_a_file_that_does_not_tell_its_domain_is_of_the_only_one(without: str, tmp_path: Path) -> None:
    def bare(files: Mapping[str, Backup]) -> dict[str, Backup]:
        return {name: {key: value for key, value in one.items() if key != "db_d_uuid"} for name, one in files.items()}

    last = second(REFRESHED)
    one = only_one(tmp_path, bare(FIRST) if without == "first" else FIRST, bare(last) if without == "last" else last)
    assert one["severity"] == "error"


def test_who_had_a_change_that_another_one_made_is_not_called_its_maker(tmp_path: Path) -> None:
    first = {
        "a": backup("a", 300, [*RUV, (280, "a")], mail(4, cid=(280, "a"))),
        "b": backup("b", 300, [*RUV, (250, "a")], mail(2, cid=(250, "a"))),
    }
    ruv = [*RUV, (280, "a"), (850, "a")]
    last = {name: backup(own, 900, ruv, mail(4, cid=(280, "a"))) for name, own in (("a", "a"), ("b", "x"))}
    found = of(tmp_path, first, last)
    missed = [one for one in found["findings"] if one["code"] == "MISSED_CHANGE"]
    assert missed and all(
        one["fix"][0]["caution"] == "the data of b, which had it, were replaced since" for one in missed
    )


def test_a_server_that_was_refreshed_between_two_files_of_a_snapshot_was_not_restored(tmp_path: Path) -> None:
    last = second(backup("b", 800, [*RUV, (250, "b")], mail(2, cid=(250, "b"))))
    one = only_one(tmp_path, FIRST, {**last, "b.later": REFRESHED})
    assert "b has another server UUID since: it was refreshed" in one["summary"]


def test_what_is_missed_of_it_rests_on_what_the_loss_rests_on(tmp_path: Path) -> None:
    """The file of A was written before B lost the change: A may have it by now."""
    last = {"a": backup("a", 400, RUV, BASE), "b": backup("x", 900, [*RUV, (260, "b"), (880, "x")], BASE)}
    found = of(tmp_path, FIRST, last)
    codes = {one["code"]: one["assumes"] for one in found["findings"] if "files_of_one_time" in one["assumes"]}
    assert codes.keys() == {"CHANGES_THROWN_AWAY", "MISSED_CHANGE"}
