"""The verdict in one line: what it must not say of servers that nobody collected, of suffixes, and of lists that were cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mesh_samples import GENERATION, agreement, changelog, csn, replica
from report_samples import called, loaded, three

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.report.report_data import gathered
from workbench.report.report_pipeline import pseudonyms_of, redacted_report
from workbench.runs.baseline_check import CLEAN, FINDINGS, INCONCLUSIVE, outcome_of


def told(folder: Path, files: dict[str, str], **asked: Any) -> tuple[str, str]:
    found = diagnose(loaded(folder, ("now", files)), **asked)
    return headline(found), outcome_of(found)


def without(files: dict[str, str], *names: str) -> dict[str, str]:
    return {name: text for name, text in files.items() if not name.startswith(names)}


def test_a_mesh_that_was_collected_whole_is_clean(tmp_path: Path) -> None:
    assert told(tmp_path, three(20, set())) == ("No change is missing.", CLEAN)


def test_a_server_that_did_not_answer_is_named_and_nothing_is_clean(tmp_path: Path) -> None:
    files = without(three(20, set()), "s3.") | {"s3.DOWN": "cannot connect\n"}
    said = "No change is known to be missing; s3 could not be read."
    assert told(tmp_path / "a", files) == (said, INCONCLUSIVE)
    lost = {**files, "s2.changelog.ldif": three(20, {5})["s3.changelog.ldif"]}
    assert told(tmp_path / "b", lost)[1] == FINDINGS
    # The vector came all the same: then there is something to go by.
    assert told(tmp_path / "c", {**three(20, set()), "s3.DOWN": ""}) == ("No change is missing.", CLEAN)


def test_a_server_to_which_links_lead_alone_is_named(tmp_path: Path) -> None:
    """Of one that is known by its address alone; but an address that may be that of a collected server is no other one."""
    said = "No change is known to be missing; localhost:38903 was not collected."
    assert told(tmp_path / "a", without(three(20, set()), "s3.")) == (said, INCONCLUSIVE)
    said = "No change is known to be missing; of s3 neither a vector nor a log of changes was collected."
    assert told(tmp_path / "b", without(three(20, set()), "s3.replica", "s3.changelog")) == (said, INCONCLUSIVE)


def test_a_server_whose_suffix_nobody_tells_stands_beside_the_others(tmp_path: Path) -> None:
    """Of s1 a vector of a suffix and a log without one were read: its rows sort, though None and text do not."""
    found = diagnose(loaded(tmp_path, ("now", three(20, set()))))
    rows = [dict(row) for row in found["servers"]]
    found["servers"] = [*rows, {**rows[0], "suffix": None}]
    assert "of a suffix without a name only s1 was collected" in headline(found)


def test_no_more_than_five_servers_are_named(tmp_path: Path) -> None:
    files = three(20, set()) | {f"t{number}.DOWN": "" for number in range(7)}
    said = "No change is known to be missing; t0, t1, t2, t3, t4 and 2 other servers could not be read."
    assert told(tmp_path, files) == (said, INCONCLUSIVE)


def test_a_suffix_of_which_one_server_alone_tells_is_named(tmp_path: Path) -> None:
    other = {k: v for k, v in three(25, set(), suffix="dc=other", before="o.").items() if k.startswith("s1")}
    names = [f"s{number}" for number in (1, 2, 3)]
    about = called(("s1",), ["s1.o.*"], "dc=other")
    about += called(names, [f"{name}.[cra]*" for name in names]).removeprefix("servers:\n")
    files = {**three(20, set()), **other, "case.yaml": about}
    said = "No change is known to be missing; of dc=other only s1 was collected; "
    said += "of dc=other localhost:38902 and localhost:38903 were not collected."
    assert told(tmp_path / "a", files) == (said, INCONCLUSIVE)
    # Of one that has links of a suffix, and of that nothing else.
    links = other["s1.o.agreements.ldif"].replace("s1-to-s2", "s2-to-s1").replace("38902", "38901")
    links = links.replace("s1-to", "s2-to")
    two = {**other, "s2.o.agreements.ldif": links}
    about = called(("s1", "s2"), ["s1.o.*", "s2.o.*"], "dc=other")
    about += called(names, [f"{name}.[cra]*" for name in names]).removeprefix("servers:\n")
    said = "No change is known to be missing; of dc=other only s1 was collected; of s2 neither a vector nor a log"
    assert told(tmp_path / "b", {**three(20, set()), **two, "case.yaml": about})[0].startswith(said)


@pytest.mark.parametrize(
    ("down", "before", "said"),
    [
        (False, False, "of dc=other localhost:38903 was not collected"),
        (True, False, "of dc=other localhost:38903 was not collected"),
        (False, True, "of s3 neither a vector nor a log of changes of dc=other was collected"),
        (True, True, "of s3 neither a vector nor a log of changes of dc=other was collected"),
    ],
)
def test_a_server_that_tells_one_suffix_does_not_tell_the_other(
    down: bool, before: bool, said: str, tmp_path: Path
) -> None:
    """An earlier snapshot knows that the address is of s3; without it nobody does."""
    one, other, names = three(20, set()), three(25, {7, 8, 9}, suffix="dc=other", before="o."), ("s1", "s2", "s3")

    def about(of_other: tuple[str, ...]) -> str:
        rest = called(names, [f"{name}.[cra]*" for name in names]).removeprefix("servers:\n")
        return called(of_other, [f"{name}.o.*" for name in of_other], "dc=other") + rest

    now = {**one, **without(other, "s3."), "case.yaml": about(names[:2])} | ({"s3.DOWN": ""} if down else {})
    earlier = [("1-before", {**one, **other, "case.yaml": about(names)})] if before else []
    found = diagnose(loaded(tmp_path, *earlier, ("2-now", now)))
    assert (headline(found), outcome_of(found)) == (f"No change is known to be missing; {said}.", INCONCLUSIVE)


def of_one_supplier(*collected: str, consumers: Sequence[str] = ("c", "d"), hub: bool = True) -> dict[str, str]:
    """A supplies its consumers, or a hub b that does, and these are collected; all listen on one port under full names."""
    ruv = [f"{{replicageneration}} {GENERATION}", f"{{replica 1 ldap://a.example.com:389}} {csn(0, 1)} {csn(9, 1)}"]
    log = changelog([csn(second, 1) for second in range(10)], own_entries=True)
    to_them = "".join(agreement(f"to-{name}", 389, host=f"{name}.example.com") for name in consumers)
    files = {"a.replica.ldif": replica(1, ruv), "a.changelog.ldif": log}
    if hub:
        files["a.agreements.ldif"] = agreement("to-b", 389, host="b.example.com")
        files |= {"b.replica.ldif": replica(65535, ruv), "b.changelog.ldif": log}
    files[f"{'b' if hub else 'a'}.agreements.ldif"] = to_them
    return files | {f"{name}.replica.ldif": replica(65535, ruv, flags=0) for name in collected}


@pytest.mark.parametrize(
    ("collected", "about", "said"),
    [
        ("", {}, "c.example.com:389 and d.example.com:389 were not collected"),
        ("", {"consumers": "c"}, "c.example.com:389 was not collected"),
        ("c", {}, "not all of c.example.com:389 and d.example.com:389 were collected"),
        ("c", {"hub": False}, "not all of c.example.com:389 and d.example.com:389 were collected"),
        ("cd", {}, ""),
        ("cd", {"hub": False}, ""),
    ],
)
def test_consumers_are_not_taken_for_their_supplier(
    collected: str, about: dict[str, Any], said: str, tmp_path: Path
) -> None:
    found = diagnose(loaded(tmp_path, ("now", of_one_supplier(*collected, **about))))
    assert headline(found).rstrip(".").endswith(said or "by what was collected")
    assert {one["why"] for one in found["not_collected"]} == (
        {"not_all" if "all" in said else "not_collected"} if said else set()
    )
    assert outcome_of(found) == INCONCLUSIVE
    assert {one["consumer"] for one in found["links"]} == {None}


def test_a_report_says_so_too_and_gives_no_name_away(tmp_path: Path) -> None:
    names = ("acme-berlin", "acme-paris", "acme-oslo")
    files = without(three(20, set(), names), "acme-oslo.") | {"acme-oslo.DOWN": ""}
    incident = Incident(loaded(tmp_path, ("now", files)))
    assert gathered(incident)["verdict"] == "unknown"
    said = redacted_report(incident, pseudonyms_of(incident))["headline"]
    assert said.startswith("No change is known to be missing; server-") and said.endswith(" could not be read.")
    assert "acme" not in said


def two_that_lack() -> dict[str, str]:
    """s3 lacks three changes, and s2 two others."""
    files = three(40, {5, 6, 7})
    log = [csn(second, 1) for second in range(40) if second not in (8, 9)]
    log += [csn(second, origin) for origin in (2, 3) for second in range(3)]
    return files | {"s2.changelog.ldif": changelog(log, own_entries=True)}


@pytest.mark.parametrize(("limit", "count"), [(2, "Up to 5"), (10, "5")])
def test_a_list_that_was_cut_hides_no_server(limit: int, count: str, tmp_path: Path) -> None:
    said, _ = told(tmp_path, two_that_lack(), limit=limit)
    assert said == f"{count} changes are MISSING on s2, s3 and will not come by themselves."


def test_a_report_of_a_cut_list_gives_no_server_the_changes_of_others(tmp_path: Path) -> None:
    incident = Incident(loaded(tmp_path, ("now", two_that_lack())))
    incident.found = diagnose(incident.then, limit=2)
    (group,) = gathered(incident)["missing"]
    assert (group["server"], group["count"], group["at_least"]) == ("s2", 2, True)


def test_what_has_not_arrived_is_a_least_number_where_the_list_was_cut(tmp_path: Path) -> None:
    files = three(20, set())
    short = three(10, set())
    files |= {name: short[name] for name in ("s2.changelog.ldif", "s2.replica.ldif")}
    shorter = three(5, set())
    files |= {name: shorter[name] for name in ("s3.changelog.ldif", "s3.replica.ldif")}
    assert "up to 15 are on the way to s2, s3" in told(tmp_path / "a", files)[0]
    assert "at least 10 are on the way to s2" in told(tmp_path / "b", files, limit=1)[0]
