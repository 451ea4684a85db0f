"""Kanidm servers of several domains, and files that do not tell theirs: what is compared, planned, and said to be left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kanidm_incidents import BASE, OTHER_DOMAIN, RUV, mail, mesh
from kanidm_samples import Entry, backup, collected, text_of

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan


def without_domain(one: dict[str, Any]) -> dict[str, Any]:
    """The same backup in a layout that does not tell the domain."""
    return {key: value for key, value in one.items() if key != "db_d_uuid"}


def case_with(folder: Path, *backups: dict[str, Any], links: Mapping[str, bytes] | None = None) -> Case:
    """The case of these backups, and files of links."""
    into = collected(folder / "in", *backups)
    for name, text in (links or {}).items():
        (into / name).write_bytes(text)
    case = Case.create(folder / "case")
    case.load([into])
    return case


def codes(found: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Findings of warning and above."""
    return [(one["code"], one["server"]) for one in found["findings"] if one["severity"] != "info"]


def left_of(found: Plan) -> str:
    """What the plan says that it does not mend."""
    return "\n".join((*found.open, *found.left))


LATER = [*RUV, (250, "a")]
STRANGE = {number: Entry((0, "c"), {"mail": (0, "c")}) for number in range(20, 24)}


def test_one_file_without_its_domain_is_of_the_only_one_that_others_tell(tmp_path: Path) -> None:
    """B missed a change behind covering ranges, and in the other case merely waits for it."""
    a = backup("a", 300, LATER, mail(1, cid=(250, "a")))
    missed = case_with(tmp_path / "missed", a, without_domain(backup("b", 300, LATER, BASE)))
    assert codes(diagnose(missed)) == [("MISSED_CHANGE", "B")]
    assert [step.repair for step in plan(missed).steps] == ["write_again"]
    waits = case_with(tmp_path / "waits", a, without_domain(backup("b", 300, RUV, BASE)), links=mesh("ab"))
    assert [(row["server"], row["count"]) for row in diagnose(waits)["pending"]] == [("B", 1)]


@pytest.mark.parametrize("linked", ["abc", ""])
def test_no_step_rests_on_a_file_without_its_domain_beside_two_domains(linked: str, tmp_path: Path) -> None:
    case = case_with(
        tmp_path,
        backup("a", 300, LATER, mail(1, cid=(250, "a"))),
        without_domain(backup("b", 300, LATER, mail(1, cid=(250, "a")))),
        backup("c", 300, [(100, "c")], STRANGE, OTHER_DOMAIN),
        links=mesh(linked) if linked else None,
    )
    found = diagnose(case)
    assert codes(found) == [("UNRELATED_DATA", "A")]
    assert {(row["server"], row["why"]) for row in found["unknown"]} == {("B", "domain_untold")}
    pairs = {(row["supplier"], row["consumer"]): row["decision"] for row in found["pairs"]}
    assert {pairs[pair] for pair in (("A", "B"), ("B", "C"), ("C", "B"))} == {"domain_untold"}
    made = plan(case)
    assert not made.steps and {one.need for one in made.courses} <= {"UNRELATED_DATA A"}
    assert "UNRELATED_DATA A" in left_of(made) and "no file tells the domain of B" in left_of(made)
    assert all("refresh" not in one.way or "B" not in one.says for one in made.courses)
    told = {row["server"]: row["verdict"] for row in story(case, text_of(250, "a"))["servers"]}
    assert told["B"] == "unknown"


def test_an_error_of_two_domains_that_no_way_mends_is_named_by_the_plan(tmp_path: Path) -> None:
    """Without links between the two nothing is stuck; the domains are two all the same."""
    alone = {f"{name}.server.toml": b'[replication]\norigin = "repl://x.example.com:8444"\n' for name in "AC"}
    case = case_with(
        tmp_path, backup("a", 300, RUV, BASE), backup("c", 300, [(100, "c")], STRANGE, OTHER_DOMAIN), links=alone
    )
    assert ("UNRELATED_DATA", "A") in codes(diagnose(case))
    assert "UNRELATED_DATA A: no step of this plan mends it" in left_of(plan(case))


BUILT_IN = "00000000-0000-0000-0000-"


def builtin_only(one: dict[str, Any]) -> dict[str, Any]:
    """The same backup, the ids of its entries those that every new server has."""
    for number, entry in enumerate(one["entries"]):
        entry["ent"]["V3"]["attrs"]["uuid"] = {"UU": [f"{BUILT_IN}{number:012d}"]}
    return one


@pytest.mark.parametrize(("ruv", "steps"), [([(100, "c")], 2), ([(100, "c"), (190, "d")], 0)])
def test_a_domain_of_which_another_server_wrote_is_not_taken_for_a_new_one(
    ruv: list[tuple[int, str]], steps: int, tmp_path: Path
) -> None:
    case = case_with(
        tmp_path,
        backup("a", 200, RUV, BASE),
        builtin_only(backup("c", 200, ruv, {1: Entry((0, "c"), {"mail": (100, "c")})}, OTHER_DOMAIN)),
        links=mesh("ac"),
    )
    assert len(plan(case).steps) == steps


def test_a_way_that_a_person_has_to_ask_for_says_how(tmp_path: Path) -> None:
    case = case_with(
        tmp_path,
        backup("a", 300, RUV, BASE),
        backup("c", 300, [(100, "c")], STRANGE, OTHER_DOMAIN),
        links=mesh("ac"),
    )
    ways = {one.way: one.refused for one in plan(case).courses if one.unasked}
    assert ways and all(f"--way {way}" in refused for way, refused in ways.items())
    for way in ways:
        assert plan(case, ways=[way]).steps


def test_two_that_use_one_origin_beside_another_domain_are_named_by_the_plan(tmp_path: Path) -> None:
    shared = backup("c", 300, [(100, "c")], STRANGE, OTHER_DOMAIN)
    shared["db_s_uuid"] = backup("b", 0, [])["db_s_uuid"]
    folder = collected(tmp_path / "in", backup("a", 300, RUV, BASE), backup("b", 300, RUV, BASE))
    (folder / "C.json").write_text(json.dumps(shared))
    for name, text in mesh("abc").items():
        (folder / name).write_bytes(text)
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = [code for code, _ in codes(diagnose(case))]
    assert {"DUPLICATE_ORIGIN", "UNRELATED_DATA"} <= {*found}
    assert all(code in left_of(plan(case)) for code in ("DUPLICATE_ORIGIN", "UNRELATED_DATA"))
