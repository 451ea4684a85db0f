"""Sources of an initialisation: never a server without data, and never before the source has every change to keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from detector_samples import of
from hand_plans import Repair, enable, initialise
from memory_servers import MemorySite, encoded
from memory_servers import agreement as stored_agreement
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_silent_servers import _with_failed
from test_ways_that_lose import begins_later
from test_without_data import REFUSED
from test_without_effect import Files

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.closed_ways import names_of
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan
from workbench.safety import to_yaml
from workbench.systems.ds389.live import step_executors

NO_DATA = REFUSED.format("operationsError (1)")
NOT_THERE = REFUSED.format("noSuchObject (32)")


def advice(found: dict[str, Any]) -> Iterator[str]:
    for finding in found["findings"]:
        yield from (fix["repair"] for fix in finding["fix"])


def two(lost: str) -> Files:
    """One change in the log of s2 is missing on s1."""
    both = [*(csn(second, 1) for second in range(10)), *(csn(second, 2) for second in (1, 2))]
    files: Files = dict(pair_of_servers(9, 9))
    files["s1.changelog.ldif"] = changelog([made for made in both if made != lost], own_entries=True)
    files["s2.changelog.ldif"] = changelog(both, own_entries=True)
    return files


def test_what_only_the_log_of_a_server_without_data_has_is_saved_and_nobody_is_filled_from_it(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, _with_failed(two(csn(5, 1)), "s2", NO_DATA)))
    assert of("OWN_CHANGES_HIDDEN", found["findings"]) and of("MISSED_CHANGE", found["findings"])
    assert not [text for text in advice(found) if "initialise s1 from s2" in text]
    saved = [text for text in advice(found) if text.startswith("save 1 change from the changelog of s2")]
    assert len(saved) == 2


def test_the_only_server_with_data_is_not_to_be_filled(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 9)), **claims(r2=(1, 9))}))
    logged = [*(csn(second, 1) for second in range(10)), *(csn(second, 2) for second in (8, 9))]
    files["s2.changelog.ldif"] = changelog(logged)
    found = diagnose(case_of(tmp_path, _with_failed(files, "s2", NO_DATA)))
    (needed,) = of("REINIT_REQUIRED", found["findings"])
    assert needed["fix"][0]["repair"].startswith("do not initialise s1: no other collected server has data")


def test_a_server_that_shows_neither_of_its_suffixes_is_named_for_both(tmp_path: Path) -> None:
    def of_suffix(suffix: str) -> Files:
        files: Files = dict(pair_of_servers(9, 9))
        files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 9)), **claims(r2=(1, 7))}))
        quoted = suffix.replace("=", r"\3D").replace(",", r"\2C")
        pairs = (("dc=example,dc=com", suffix), (r"dc\3Dexample\2Cdc\3Dcom", quoted))
        for old, new in pairs:
            files = {name: text.replace(old, new) for name, text in files.items()}
        return files

    files: Files = {}
    servers = []
    for number, suffix in enumerate(("dc=example,dc=com", "o=two")):
        for name, text in of_suffix(suffix).items():
            files[f"{number}-{name}"] = text
            servers.append({"name": name.partition(".")[0], "suffix": suffix, "files": [f"{number}-{name}"]})
    at = {"from": "2026-11-20T00:01:00Z", "until": "2026-11-20T00:01:01Z"}
    collected: list[dict[str, Any]] = [{"server": name, "role": "supplier", **at} for name in ("s1", "s2")]
    collected[1]["failed"] = [NO_DATA, NO_DATA.replace("dc=example,dc=com", "o=two")]
    files["case.yaml"] = to_yaml({"system": "ds389", "servers": servers, "collected": collected})
    case = case_of(tmp_path, files)
    refused = of("SEARCH_REFUSED", diagnose(case)["findings"])
    assert sorted(finding["suffix"] for finding in refused) == ["dc=example,dc=com", "o=two"]
    assert not [step for step in plan(case).steps if step.repair == "initialise" and step.on == "s2"]


def test_a_server_that_claims_nothing_and_shows_no_entry_has_to_be_filled(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({2: None}, generation="66ffabcd000000020000"))
    files["s2.changelog.ldif"] = changelog([])
    found = diagnose(case_of(tmp_path, _with_failed(files, "s2", NOT_THERE)))
    assert headline(found).startswith("Server s2 has no entries: it has to be filled")
    assert not of("SEARCH_REFUSED", found["findings"])


# --- sessions that pass over changes


def test_a_link_that_runs_and_would_pass_over_changes_is_told_so(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, begins_later(True)))
    assert "3 are on the way to s2; 2 have not arrived at s2, and the next session passes over them" in headline(found)
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert (waits["severity"], waits["fix"][0]["repair"][:10]) == ("warning", "switch off")


def test_what_another_link_brings_is_passed_over_by_nobody(tmp_path: Path) -> None:
    files = begins_later(False)
    files["s1.agreements.ldif"] += agreement("s1-to-s2", 38902)
    case = case_of(tmp_path, files)
    (link,) = of("LINK_FAILING", diagnose(case)["findings"])
    assert [fix["repair"][:10] for fix in link["fix"]] == ["restart h3"]
    assert not [step for step in plan(case).steps if step.repair == "initialise"]


# --- the hands


def site(repair: Repair, tmp_path: Path) -> MemorySite:
    return MemorySite(repair.plan, repair.fleet, tmp_path)


@pytest.mark.parametrize("there", [False, True])
def test_a_source_has_what_the_server_keeps_before_it_fills_it(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier step may have initialised the source with data without these changes: other servers still have to send them."""
    monkeypatch.setattr(step_executors, "ARRIVES", 0)
    repair = initialise()
    (number,) = (at for at, step in enumerate(repair.plan.steps) if step.repair == "initialise")
    step = repair.plan.steps[number]
    has = repair.fleet.servers[step.on].vector
    keeps = dict(has) if there else {**has, "2": csn(2_000_000, 2)}
    step = dataclasses.replace(step, details={**step.details, "keeps": keeps})
    steps = [*repair.plan.steps[:number], step, *repair.plan.steps[number + 1 :]]
    servers = MemorySite(dataclasses.replace(repair.plan, steps=tuple(steps)), repair.fleet, tmp_path)
    refused = [text for text in servers.obstacles(step, False) if "has and keeps them up to" in text]
    assert bool(refused) is not there


@pytest.mark.parametrize(("suffix", "refused"), [(None, False), ("o=two", True)])
def test_only_a_filling_of_the_same_suffix_makes_switching_on_harmless(
    suffix: str | None, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_executors, "ARRIVES", 0)
    repair = enable()
    (step,) = (step for step in repair.plan.steps if step.on == "s1")
    filling = next(step for step in initialise().plan.steps if step.repair == "initialise")
    filling = dataclasses.replace(filling, key="0-filling", server="s3", suffix=suffix or step.suffix)
    whole = dataclasses.replace(repair.plan, steps=(filling, *repair.plan.steps))
    servers = MemorySite(whole, repair.fleet, tmp_path)
    stored_agreement(repair.fleet, "s1", "s3").values["nsds5replicaLastInitStart"] = encoded(["20260101000001Z"])
    repair.fleet.servers["s3"].vector["3"] = csn(2_000_000, 3)
    assert any("has filled s3" in text for text in servers.obstacles(step, False)) is refused


# --- what a plan leaves


def test_of_one_host_under_two_replica_ids_cleaning_the_dead_one_is_enough(tmp_path: Path) -> None:
    ruv = elements({**claims(r1=(1, 9), r2=(1, 5)), 9: (csn(1, 9), csn(2, 9))})
    shared = [element.replace(":38909", ":38902") for element in ruv]
    made = [
        *(csn(second, 1) for second in range(1, 10)),
        *(csn(second, 2) for second in range(1, 6)),
        csn(1, 9),
        csn(2, 9),
    ]
    files: Files = {f"s{rid}.replica.ldif": replica(rid, shared) for rid in (1, 2)}
    files |= {f"s{rid}.changelog.ldif": changelog(sorted(made)) for rid in (1, 2)}
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902)
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
    made_plan = plan(case_of(tmp_path, files))
    assert [step.repair for step in made_plan.steps] == ["clean"] and not made_plan.left


@pytest.mark.parametrize(
    ("links", "names"),
    [
        ([("to-s2", "s1", "o=a"), ("to-s3", "s1", "o=a")], ["to-s2", "to-s3"]),
        ([("to-s2", "s1", "o=a"), ("to-s2", "s3", "o=a")], ["to-s2 of s1", "to-s2 of s3"]),
        ([("to-s2", "s1", "o=a"), ("to-s2", "s1", "o=b")], ["to-s2 of o=a", "to-s2 of o=b"]),
        ([("to-s2", "s1", "o=a"), ("to-s3", "s1", "o=b")], ["to-s2 of o=a", "to-s3 of o=b"]),
    ],
)
def test_links_of_one_name_are_told_apart(links: list[tuple[str, str, str]], names: list[str]) -> None:
    rows = [{"name": name, "supplier": supplier, "suffix": suffix} for name, supplier, suffix in links]
    assert names_of(rows) == names
