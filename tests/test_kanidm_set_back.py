"""A Kanidm server whose own changes end before those of an earlier file, and one that is in another domain since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kanidm_incidents import BASE, RUV, mail
from kanidm_samples import Entry, backup, origin, text_of
from test_kanidm_gone_changes import FIRST, LOST, of, second, thrown

from workbench import Case
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan

Backup = dict[str, Any]
OTHER = "aad79f49-af6d-414c-8a6f-188a424e617b"
ELSEWHERE = {9: Entry((0, "d"))}
OF_D = [(0, "d"), (880, "x")]


def set_back(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == "ROLLED_BACK"]


def test_a_server_that_moved_into_another_domain_keeps_nothing_of_its_former_one(tmp_path: Path) -> None:
    first = {**FIRST, "d": backup("d", 300, [(0, "d")], ELSEWHERE, OTHER)}
    moved = {name: backup(own, 900, OF_D, ELSEWHERE, OTHER) for name, own in (("b", "x"), ("d", "d"))}
    found = of(tmp_path, first, second(moved["b"]) | {"d": moved["d"]})
    (one,) = thrown(found)
    assert (one["severity"], one["server"], one["items"], one["certain"]) == ("error", "b", [LOST], True)
    without = backup("x", 900, OF_D, {}, OTHER)
    assert thrown(of(tmp_path / "without", first, second(without) | {"d": moved["d"]})), (
        "its present file has no entries"
    )
    assert f"b is in another domain since: it was refreshed into that of {OTHER}" in one["summary"]
    assert "had; no other change is known to be missing" in headline(found)


def test_what_a_server_of_another_domain_still_shows_is_not_gone(tmp_path: Path) -> None:
    entries = mail(2, cid=(250, "b"))
    assert not thrown(of(tmp_path, FIRST, second(backup("x", 900, OF_D, entries, OTHER))))


def test_a_server_alone_in_another_domain_has_lost_it_all_the_same(tmp_path: Path) -> None:
    """B is the odd one of the three: that its data are unrelated leaves the loss as it is."""
    first = {**FIRST, "c": backup("c", 300, RUV, BASE)}
    last = second(backup("x", 900, OF_D, ELSEWHERE, OTHER)) | {"c": backup("c", 900, [*RUV, (850, "a")], BASE)}
    (one,) = thrown(of(tmp_path, first, last))
    assert (one["severity"], one["overruled_by"]) == ("error", None)


def test_own_changes_that_went_back_are_said_where_no_entries_are_known(tmp_path: Path) -> None:
    found = of(tmp_path, FIRST, second(backup("b", 900, [*RUV, (850, "a")])))
    (one,) = set_back(found)
    assert (one["severity"], one["server"], one["items"], one["certain"]) == ("error", "b", [LOST], True)
    assert "in b.json of snapshot s1: it was restored from an older state" in one["summary"]
    assert one["fix"][0]["repair"].startswith("collect a backup of b with its entries")
    assert headline(found).startswith(
        "Own changes are gone on b, which was restored from an older state; no change is known"
    )
    left = plan(Case.open(tmp_path / "case")).left
    assert any(line.startswith("ROLLED_BACK b") for line in left)


def test_who_is_said_to_have_lost_changes_is_not_called_restored_besides(tmp_path: Path) -> None:
    found = of(tmp_path, FIRST, second(backup("b", 900, [*RUV, (850, "a")], BASE)))
    assert thrown(found) and not set_back(found)


YOUNG = {
    "a": backup("a", 2000, [*RUV, (1900, "a")], BASE),
    "b": backup("b", 2000, [*RUV, (1950, "b")], mail(2, cid=(1950, "b"))),
}


def test_files_that_are_all_older_than_those_of_before_were_restored_or_given_in_the_wrong_order(
    tmp_path: Path,
) -> None:
    found = of(tmp_path, YOUNG, {name: backup(name, 900, [*RUV, (850, "a")], BASE) for name in "ab"})
    a, b = sorted(set_back(found), key=lambda one: str(one["server"]))
    assert (b["severity"], b["items"], b["assumes"]) == ("warning", [text_of(1950, "b")], ["collected_in_order"])
    assert "all were restored, or the snapshots were given in the wrong order" in b["summary"]
    assert b["fix"][0]["repair"].startswith("find out when the file of b was written")
    assert "no change is known to be missing" in headline(found) and a["origin"] == origin("a")


def test_what_waits_for_a_server_with_an_older_file_is_not_held_up(tmp_path: Path) -> None:
    """No other server holds own changes of A: what B sends hides none."""
    last = {"a": backup("a", 900, RUV, BASE), "b": backup("b", 2100, [*RUV, (2050, "b")], mail(2, cid=(2050, "b")))}
    found = of(tmp_path, YOUNG, last)
    (one,) = set_back(found)
    assert one["server"] == "a" and "wrong order" not in one["summary"]
    (waits,) = (each for each in found["findings"] if each["code"] == "PENDING_CHANGES")
    assert "stop all writes" not in waits["fix"][0]["repair"]
    assert any(line.startswith("ROLLED_BACK a") for line in plan(Case.open(tmp_path / "case")).left)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param({"b": backup("x", 900, [*RUV, (880, "x")])}, id="it has another UUID"),
        pytest.param({"b": backup("b", 900, [*RUV, (250, "b")])}, id="it ends where it did"),
        pytest.param({name: backup("b", 900, RUV) for name in ("b", "b2")}, id="two servers have this UUID"),
    ],
)
def test_who_did_not_go_back_is_not_called_restored(last: dict[str, Backup], tmp_path: Path) -> None:
    a = {"a": backup("a", 900, [*RUV, (850, "a")], BASE)}
    assert not set_back(of(tmp_path, FIRST, a | last))
