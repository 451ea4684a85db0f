"""What a report says is so: of which suffix, by whom, why, how many, and what was looked for where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from fleet_files import write_suffixes
from incident_samples import LOST, case_of
from mesh_samples import replica, write
from report_samples import loaded, of_two_suffixes, three
from test_suffixes import two_fleets

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline, summed
from workbench.diagnosis.incident import Incident
from workbench.journal import Journal
from workbench.repair.case_plan import plan_for
from workbench.repair.plan_progress import BEGINS, JOURNAL
from workbench.repair.plan_types import NAME as PLAN
from workbench.report.markdown import markdown
from workbench.report.page import page
from workbench.report.report_data import gathered
from workbench.report.report_pipeline import pseudonyms_of, redacted_report, whole_report
from workbench.rules.verdicts import SAYS
from workbench.views.overview import mesh

BACKUP = "restored_from_own_backup"


def report_of(case: Case) -> dict[str, Any]:
    return whole_report(Incident(case))


def copied(folder: Path, name: str = LOST) -> Case:
    shutil.copytree(case_of(name).folder, folder / "case")
    return Case.open(folder / "case")


# --- of which suffix


def wrong_records(case: Case) -> tuple[list[Any], int]:
    """Records around missing changes that the report judges otherwise than the diagnosis, and how many it shows."""
    incident = Incident(case)
    missing = {(row["suffix"], row["server"], row["position"]) for row in incident.found["missing"]}
    rows = [(cause, row) for cause in whole_report(incident)["causes"] for row in cause["records"]]
    wrong = [
        (cause["about"], row["position"], row["verdict"])
        for cause, row in rows
        if ((cause["suffix"], cause["server"], row["position"]) in missing) != (row["verdict"] == "missing")
    ]
    return wrong, len(rows)


def test_of_two_suffixes_each_has_its_own_verdicts(tmp_path: Path) -> None:
    case = of_two_suffixes(tmp_path)
    wrong, shown = wrong_records(case)
    assert (wrong, shown) == ([], 10)
    made = report_of(case)
    assert [(one["suffix"], one["count"]) for one in made["missing"]] == [("dc=example,dc=com", 2), ("dc=other", 3)]
    for group in made["missing"]:
        for proof in group["proofs"]:
            assert [(one["server"], one["verdict"]) for one in proof["servers"]] == [
                ("s1", "present"), ("s2", "present"), ("s3", "missing")
            ]  # fmt: skip
    for suffix in ("dc=example,dc=com", "dc=other"):
        assert any(one.startswith("s1, s2 and s3 keep copies of " + suffix) for one in made["plain"])
        assert any("s3 does not have" in one and f"changes of {suffix} " in one for one in made["plain"])
        assert f"s3, {suffix}, origin 1" in page(made)
    assert "the same data" not in " ".join(made["plain"])


def test_a_fleet_of_two_suffixes_tells_no_missing_change_as_present(tmp_path: Path) -> None:
    fleets = two_fleets(4, 2)
    case = Case.create(tmp_path / "case")
    case.load(write_suffixes(tmp_path / "files", fleets, fleets))
    wrong, shown = wrong_records(case)
    assert wrong == [] and shown > 5


# --- why


def test_each_cause_counts_the_changes_that_it_explains(tmp_path: Path) -> None:
    incident = Incident(copied(tmp_path, BACKUP))
    made = whole_report(incident)
    told = {(one["origin"], one["code"]): (one["count"], one["of"]) for one in made["causes"]}
    assert told == {
        ("1", "APPLY_SKIPPED"): (1, 2),
        ("1", None): (1, 2),
        ("2", "APPLY_SKIPPED"): (2, 2),
        ("3", "OWN_CHANGES_HIDDEN"): (41, 41),
    }
    causes = {row["position"]: row["cause"] for row in incident.found["missing"]}
    assert all(causes[one["first"]] == one["code"] for one in made["causes"])
    (missed,) = [one for one in made["plain"] if one.startswith("s3 does not have")]
    assert "45 changes: 2 made on s1 at " in missed and "; 41 made on s3 itself between " in missed
    (why,) = [one for one in made["plain"] if one.startswith("Why:")]
    assert "can no longer be delivered to it (41 of 45); " in why and "goes on without it, for good (3 of 45); " in why
    assert "for the others the collected files do not tell the cause" in why
    assert "APPLY_SKIPPED</code> (1 of 2" in page(made) and "APPLY\\_SKIPPED (1 of 2, from " in markdown(made)


def test_a_finding_proves_the_cause_of_its_own_origin_alone(tmp_path: Path) -> None:
    incident = Incident(copied(tmp_path, BACKUP))
    of = {one["summary"]: one["origin"] for one in incident.found["findings"]}
    proofs = [
        (one["origin"], of[proof["summary"]]) for one in whole_report(incident)["causes"] for proof in one["proofs"]
    ]
    assert len(proofs) >= 2
    assert all(found in (origin, None) for origin, found in proofs)


def test_the_same_bytes_whatever_the_order_of_sets(tmp_path: Path) -> None:
    case = copied(tmp_path, BACKUP)
    made = []
    for seed in ("0", "1", "4"):
        out = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-c", "from workbench.cli import main; main()", "report", case.folder, "--json", out,
             "--out", tmp_path / f"{seed}.html"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True,
        )  # fmt: skip
        made.append({**json.loads(out.read_text()), "run": {}})
    assert json.dumps(made[0]) == json.dumps(made[1]) == json.dumps(made[2])


def test_causes_of_equal_weight_are_told_in_one_order() -> None:
    from workbench.report.report_data import _by_cause

    rows = [{"cause": code, "position": code or ""} for code in ("VECTOR_AHEAD", None, "APPLY_SKIPPED", "VECTOR_AHEAD")]
    assert [code for code, _ in _by_cause(rows)] == ["VECTOR_AHEAD", "APPLY_SKIPPED", None]


# --- who has them


def test_who_holds_only_some_is_not_said_to_hold_all(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("now", three(30, {5, 6, 7, 20, 21}, second_holds={*range(7), *range(22, 30)})))
    made = report_of(case)
    (group,) = [one for one in made["missing"] if one["server"] == "s3"]
    assert group["holders"] == [{"server": "s1", "count": 5}, {"server": "s2", "count": 2}]
    assert "s1 still has all of them in the log; s2 has 2 of them." in made["plain"]
    assert "Held by s1, s2 (2 of 5)." in page(made)


def test_one_change_is_told_as_one(tmp_path: Path) -> None:
    made = report_of(loaded(tmp_path, ("now", three(20, {5}))))
    assert made["headline"].startswith("1 change is MISSING on s3 and will not come by itself")
    assert "s1 and s2 still have it in the log." in made["plain"]
    assert any("1 change that was made on s1" in one for one in made["plain"])


# --- the proof of what is not there


def test_the_proof_of_a_missing_change_names_what_was_searched(tmp_path: Path) -> None:
    made = report_of(copied(tmp_path))
    proof = made["missing"][0]["proofs"][0]
    (lacking,) = [one for one in proof["servers"] if one["server"] == "s3"]
    assert lacking["claimed"]["file"] == "s3.replica.ldif" and lacking["claimed"]["position"] >= proof["position"]
    searched = {one["file"].removesuffix(".gz"): one["rows"] for one in lacking["searched"]}
    assert {"s3.changelog.ldif", "s3.export-replication.ldif", "s3.access.log"} <= searched.keys()
    assert all(searched.values())
    for text in (page(made), unescape(markdown(made)).replace("\\", "")):
        assert "looked for in 2-during/s3.access.log" in text
        assert "s3.replica.ldif:0 claims all up to 6b00618f000a00010000" in text
    assert not [one["searched"] for one in proof["servers"] if one["verdict"] == "present" and one["searched"]]


def test_table_and_proof_give_one_reason(tmp_path: Path) -> None:
    made = report_of(copied(tmp_path, BACKUP))
    pairs = 0
    for group in made["missing"]:
        reasons = {one["position"]: one["says"] for one in group["changes"]}
        for proof in group["proofs"]:
            (lacking,) = [one for one in proof["servers"] if one["server"] == group["server"]]
            assert (lacking["verdict"], lacking["says"]) == ("missing", reasons[proof["position"]])
            pairs += 1
    assert pairs == 7


# --- how many


def test_a_change_that_several_servers_wait_for_is_one(tmp_path: Path) -> None:
    """s3 made it after its vector was read: it waits for none of its own. The entries of s1 show it, so s2 alone waits."""
    incident = Incident(copied(tmp_path))
    found = incident.found
    assert sum(row["count"] for row in found["pending"]) == 1
    made = whole_report(incident)["plain"]
    assert "1 change is newer than every collected vector and had not arrived at s2." in made
    found = {**found, "pending": [*found["pending"], *({**row, "server": "s1"} for row in found["pending"])]}
    stuck = {"count": 1, "on": ["s1", "s2"], "same": True, "in_no_log": 0, "without_link": [], "uncovered": True}
    assert summed(found)["stuck"] == {**stuck, "unread_log": False}
    assert "1 change is newer than every collected vector and had not arrived at s1, s2" in headline(found)
    assert "on the way" not in headline(found)


def test_what_waits_and_what_nobody_sends_are_told_apart() -> None:
    def row(server: str, count: int, *suppliers: str) -> dict[str, Any]:
        return {
            "server": server,
            "suffix": None,
            "origin": "1",
            "count": count,
            "available": count,
            "suppliers": [*suppliers],
        }

    servers = [{"name": name, "suffix": None, "vector": {"1": {}}, "changes": 1} for name in ("a", "b")]
    found = {
        "missing": [],
        "stranded": [],
        "unknown": [],
        "servers": servers,
        "run": {"truncated": {}},
        "not_collected": [],
    }
    found["pending"] = [row("a", 4, "b"), row("b", 6), row("c", 2)]
    assert headline(found) == (
        "No change is missing; 4 are on the way to a; up to 6 have not arrived at b, c, and nobody would send them now."
    )


def test_a_change_that_two_servers_miss_counts_once(tmp_path: Path) -> None:
    found = dict(Incident(copied(tmp_path)).found)
    again = [{**row, "server": "s2"} for row in found["missing"]]
    assert headline({**found, "missing": [*found["missing"], *again]}).startswith("12 changes are MISSING on s2, s3 ")


def test_of_a_list_that_was_cut_nothing_is_taken_for_the_whole(tmp_path: Path) -> None:
    incident = Incident(copied(tmp_path))
    incident.found = diagnose(incident.case, limit=3)
    made = whole_report(incident)
    assert made["headline"].startswith("12 changes are MISSING on s3")
    (group,) = made["missing"]
    assert (group["count"], group["listed"], group["at_least"]) == (12, 3, False)
    assert group["last"] is None and group["last_at"] is None
    first = next(one for one in made["plain"] if one.startswith("s3 does not have"))
    assert "12 changes that were made on s1 from 2026-11-20 15:04:22 UTC on." in first
    assert "--limit NUMBER" in page(whole_report(Incident(incident.case)) | {"missing": [{**group, "more": 9}]})
    assert "12 are missing in all, and `--limit 12` lists them" in diagnosis_text(incident.system, incident.found)


def test_two_groups_of_a_cut_list_say_at_least(tmp_path: Path) -> None:
    incident = Incident(copied(tmp_path, BACKUP))
    incident.found = diagnose(incident.case, limit=40)
    made = whole_report(incident)
    assert all(one["at_least"] and one["last"] is None for one in made["missing"])
    assert "at least" in next(one for one in made["plain"] if one.startswith("s3 does not have"))


def test_the_plan_and_the_diagnosis_may_count_differently_and_it_is_said(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan_for(case)
    incident = Incident(case)
    assert "The plan counts" not in page(whole_report(incident))
    incident.found = {**incident.found, "missing": incident.found["missing"][:11]}
    made = whole_report(incident)
    assert [(one["before"], one["judged"]) for one in made["verification"]] == [(0, 0), (0, 0), (12, 11)]
    for text in (page(made), markdown(made)):
        assert "s3 11 instead of 12" in text


# --- what next


def begun(case: Case) -> str:
    plan = plan_for(case)
    journal = Journal(case.folder / JOURNAL, BEGINS)
    journal.append("begun", plan.id, steps=1)
    journal.append("intent", plan.id, step=plan.steps[0].key, memo={})
    return plan.id


def test_a_repair_that_is_half_done_comes_before_all_else(tmp_path: Path) -> None:
    case = copied(tmp_path)
    begun(case)
    made = report_of(case)
    assert "workbench resume" in made["plain"][0] and "0 of 1 applied" in made["plain"][0]
    assert not [one for one in made["plain"] if "What to do next" in one]
    (case.folder / PLAN).unlink()
    made = report_of(case)
    assert "workbench resume" in made["plain"][0] and not [one for one in made["plain"] if "What to do next" in one]


def test_a_repair_that_was_given_up_is_not_recommended_again(tmp_path: Path) -> None:
    case = copied(tmp_path)
    plan = begun(case)
    Journal(case.folder / JOURNAL, BEGINS).append("given_up", plan)
    made = report_of(case)
    assert "given up after 0 of 1" in made["plain"][-1] and "collect anew" in made["plain"][-1]


def finished(case: Case) -> None:
    plan = plan_for(case)
    journal = Journal(case.folder / JOURNAL, BEGINS)
    journal.append("begun", plan.id, steps=len(plan.steps))
    for step in plan.steps:
        journal.append("intent", plan.id, step=step.key, memo={})
        journal.append("applying", plan.id, step=step.key)
        journal.append("done", plan.id, step=step.key, vectors=[])
    journal.append("finished", plan.id)


def later(case: Case, folder: Path, files: dict[str, str]) -> Case:
    case.load([write(folder / "in" / "2-two", files)])
    return case


def verified(made: dict[str, Any]) -> dict[str, Any]:
    return {one["server"]: one["why"] or one["found"] for one in made["verification"]}


def test_of_a_server_that_nobody_looked_at_no_verification_is_claimed(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("1-one", three(20, {5, 6})))
    finished(case)
    since = "nothing was collected since"
    assert verified(report_of(case)) == {"s1": since, "s2": since, "s3": since}
    assert report_of(case)["plain"][-1].endswith("whether it held is not known: nothing was collected since.")
    files = {name: text for name, text in three(25, set()).items() if not name.startswith("s3")}
    incident = Incident(later(case, tmp_path, files))
    made = whole_report(incident)
    assert verified(made) == {"s1": 0, "s2": 0, "s3": "it was not collected"}
    assert made["plain"][-2:] == [
        "Of s3 nothing was collected: what it has, these files do not tell.",
        "The plan of repair was carried out; whether it held is under “Applied and verified”; "
        "of s3 it is not known: it was not collected.",
    ]
    assert "not known: it was not collected" in page(made)
    assert "not known: it was not collected" in markdown(made)
    shown = redacted_report(incident, pseudonyms_of(incident))["verification"]
    assert [one["why"] for one in shown] == ["", "", "it was not collected"]


def test_a_report_of_an_earlier_snapshot_says_that_it_does_not_show_what_came_of_a_repair(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("0-zero", three(18, set())), ("1-one", three(20, {5, 6})))
    finished(case)
    case = later(case, tmp_path, three(25, set()))
    for as_of in ("1-one", "0-zero"):
        made = whole_report(Incident(case, as_of))
        (why,) = {one["why"] for one in made["verification"]}
        assert why == "what was collected since is not in this report, which is of an earlier snapshot"
        assert made["plain"][-1] == f"The plan of repair was carried out; whether it held is not known: {why}."
    assert verified(whole_report(Incident(case))) == {"s1": 0, "s2": 0, "s3": 0}


def test_plain_words_agree_with_the_headline(tmp_path: Path) -> None:
    def said(name: str, files: dict[str, str]) -> list[str]:
        plain: list[str] = whole_report(Incident(loaded(tmp_path / name, ("now", files))))["plain"]
        return plain[1:]

    files = three(10, set())
    assert said("whole", files) == ["As far as the collected files show, all of them did."]
    unlinked = {name: text for name, text in files.items() if not name.startswith("s3") and "agreements" not in name}
    assert said("down", {**unlinked, "s3.DOWN": ""}) == [
        "Of s3 nothing was collected, for no answer came: what it has, these files do not tell."
    ]
    empty = {name: text for name, text in files.items() if name != "s3.changelog.ldif"}
    assert said("empty", {**empty, "s3.replica.ldif": replica(3, [])}) == [
        "Of s3 neither a vector nor a log of changes was collected: what it has, these files do not tell."
    ]


def test_where_it_cannot_be_judged_no_verification_is_claimed(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("1-one", three(20, {5, 6})))
    finished(case)
    incident = Incident(later(case, tmp_path, three(40, {5, 6, 30})))
    assert verified(whole_report(incident)) == {"s1": 0, "s2": 0, "s3": 3}
    incident.found = diagnose(case, limit=2)
    assert set(verified(whole_report(incident)).values()) == {"the list of missing changes was cut"}

    (tmp_path / "alone").mkdir()
    case = loaded(tmp_path / "alone", ("1-one", three(20, {5, 6})))
    finished(case)
    files = three(25, set())
    del files["s3.changelog.ldif"]
    open_ = "of some changes the collected files do not tell whether it has them"
    assert verified(report_of(later(case, tmp_path / "alone", files)))["s3"] == open_
    case.load([write(tmp_path / "alone" / "in" / "3-three", {"s3.replica.ldif": three(25, set())["s3.replica.ldif"]})])
    assert verified(report_of(case)) == {
        "s1": "it was not collected",
        "s2": "it was not collected",
        "s3": "no other server was collected to compare it with",
    }


def test_a_plan_of_an_earlier_snapshot_is_not_recommended(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("1-one", three(20, {5, 6})))
    plan_for(case)
    assert "What to do next: initialise s3 from s1" in report_of(case)["plain"][-1]
    made = report_of(later(case, tmp_path, three(25, set())))
    assert made["headline"].startswith("No change is missing")
    assert not [one for one in made["plain"] if "initialise" in one or "plan" in one.lower()]
    (tmp_path / "again").mkdir()
    case = loaded(tmp_path / "again", ("1-one", three(20, {5, 6})))
    plan_for(case)
    made = report_of(later(case, tmp_path / "again", three(25, {5, 6})))
    assert made["plain"][-1].startswith("The plan of repair is of an earlier snapshot: plan again")
    plan_for(case)
    assert "another snapshot: plan again" in whole_report(Incident(case, "1-one"))["plain"][-1]


def test_behind_a_damaged_journal_no_plan_is_recommended(tmp_path: Path) -> None:
    case = copied(tmp_path)
    finished(case)
    lines = (case.folder / JOURNAL).read_text().splitlines()
    (case.folder / JOURNAL).write_text("\n".join([lines[0], "garbage", *lines[2:]]) + "\n")
    made = report_of(case)
    assert made["plain"][-1].startswith("Before anything else: the journal is damaged")
    assert not [one for one in made["plain"] if "next" in one or "workbench plan" in one]
    text = markdown(made)
    assert "the journal is damaged" in text and "is empty" not in text and "is empty" not in page(made)


def test_why_nobody_can_tell_is_said_whatever_the_servers_are_called(tmp_path: Path) -> None:
    """The reason is the name of a rule in the data, and a server may bear the same."""
    files = three(6, [3], names=("s1", "s2", "not_shown"))
    del files["not_shown.changelog.ldif"]
    incident = Incident(loaded(tmp_path, ("now", files)))
    rows = redacted_report(incident, pseudonyms_of(incident))["open"]["unknown"]
    assert rows and {row["why"] for row in rows} == {SAYS["not_shown"]}


# --- what is gathered says nothing


def test_sentences_are_made_after_the_names_are_replaced(tmp_path: Path) -> None:
    told = gathered(Incident(copied(tmp_path)))
    assert not {"headline", "plain", "glossary"} & told.keys()
    assert not [one for one in told["timeline"]["events"] if "says" in one]
    assert not [one for drawn in told["topology"] for one in [*drawn["servers"], *drawn["links"]] if "says" in one]


def test_maps_and_reports_use_the_same_words(tmp_path: Path) -> None:
    incident = Incident(copied(tmp_path))
    (told,) = whole_report(incident)["topology"]
    drawn = mesh(incident, told["suffix"])
    for of in ("servers", "links"):
        words = [
            [(one[key]) for one in some[of] for key in ("name", "says", "label") if key in one]
            for some in (told, drawn)
        ]
        assert words[0] == words[1] and len(words[0]) > 5
    assert {"12 lost", ""} <= {one["label"] for one in drawn["links"]}


@pytest.mark.parametrize(
    ("name", "says", "plain"),
    [
        (
            "lag_behind_disabled_links",
            "156 changes have not arrived at s2: 2 links are disabled: s1-to-s2, s3-to-s2",
            "have not arrived at s2: 2 links are disabled: s1-to-s2, s3-to-s2",
        ),
        (
            "purged_changelog",
            "nobody would send them now",
            "none of the collected servers would send them now",
        ),
    ],
)
def test_who_waits_without_a_supplier_is_told(tmp_path: Path, name: str, says: str, plain: str) -> None:
    made = report_of(copied(tmp_path, name))
    assert says in made["headline"]
    assert any(plain in one for one in made["plain"]), made["plain"]
