"""Checks of cases against a diagnosis that lies in them, and what the facts of runs make of several cases."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT
from incident_samples import LOST, case_of, incident_of
from mesh_samples import changelog, csn, write
from report_samples import loaded, three

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.incident import Incident
from workbench.runs.baseline_check import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, check, check_all, oldest_evidence
from workbench.runs.case_facts import CUT, NOT_WHOLE
from workbench.runs.fact_diff import Acknowledged, Terms, judged, too_old
from workbench.runs.facts import Finished, are_facts, facts_of, facts_of_checks

TODAY = date(2026, 11, 22)


def begins_late() -> dict[str, str]:
    """Three servers of which nothing is known to be missing; the log of the last one begins late."""
    log = [csn(second, 1) for second in range(15, 20)] + [csn(second, one) for one in (2, 3) for second in range(3)]
    return three(20, set()) | {"s3.changelog.ldif": changelog(log, own_entries=True)}


def with_baseline(case: Case, found: dict[str, Any]) -> Path:
    (case.folder / "baseline.json").write_text(json.dumps(found))
    return case.folder


def test_a_known_loss_that_grows_is_worse_than_the_baseline(tmp_path: Path) -> None:
    less = diagnose(loaded(tmp_path / "a", ("now", three(60, {5}))))
    more = loaded(tmp_path / "b", ("now", three(60, set(range(5, 45)))))
    assert check(with_baseline(more, less)).outcome == FINDINGS
    other = loaded(tmp_path / "c", ("now", three(60, {6})))
    assert check(with_baseline(other, less)).outcome == FINDINGS
    same = loaded(tmp_path / "d", ("now", three(60, {5})))
    assert check(with_baseline(same, less)).outcome == CLEAN


def test_what_cannot_be_compared_is_no_pass(tmp_path: Path) -> None:
    case = loaded(tmp_path, ("now", three(60, {5, 6})))
    assert check(with_baseline(case, diagnose(case))).outcome == CLEAN
    made = check(with_baseline(case, diagnose(case, limit=1)))
    assert (made.outcome, "Not compared" in made.details) == (INCONCLUSIVE, True)
    assert [row["why"] for row in made.facts["untold"]] == [NOT_WHOLE]
    assert are_facts(json.loads(json.dumps(facts_of_checks([made]))))
    for part in ({"schema": 1, "pairs": []}, {**diagnose(case), "missing": None}):
        made = check(with_baseline(case, part))
        assert made.outcome == FAILED
        assert "no whole diagnosis" in made.verdict and "missing" in made.verdict


def test_what_is_unknown_is_no_pass_because_it_was_unknown_before(tmp_path: Path) -> None:
    case = loaded(tmp_path / "a", ("now", begins_late()))
    assert check(with_baseline(case, diagnose(case))).outcome == INCONCLUSIVE
    down = three(20, set()) | {"s4.DOWN": ""}
    case = loaded(tmp_path / "b", ("now", down))
    assert check(with_baseline(case, diagnose(case))).outcome == INCONCLUSIVE


# --- several cases


@pytest.fixture
def fleet(tmp_path: Path) -> list[Path]:
    """One case with a loss, one without."""
    return [loaded(tmp_path / n, ("now", three(20, lost))).folder for n, lost in (("eu", {5, 6}), ("us", set[int]()))]


def seen(folders: list[Path]) -> dict[str, Any]:
    made = facts_of_checks(check_all(folders))
    assert are_facts(json.loads(json.dumps(made)))
    return made


def lose(folder: Path, lost: set[int]) -> None:
    """Collect the case anew."""
    shutil.rmtree(folder.parent)
    assert loaded(folder.parent, ("now", three(20, lost))).folder == folder


def test_a_case_that_was_accepted_hides_nothing_that_comes_later(fleet: list[Path]) -> None:
    before = seen(fleet)
    eu = str(fleet[0])
    assert {row["case"] for name in ("servers", "links", "sessions") for row in before[name]} == set(map(str, fleet))
    assert judged(before, before, Terms(), TODAY).outcome == CLEAN
    lose(fleet[0], {5, 7})
    held = judged(seen(fleet), before, Terms(), TODAY)
    assert held.outcome == FINDINGS
    about = f"worse: missing {eu}, server s3, origin 1, suffix dc=example,dc=com"
    assert held.because == [f"{about}: 2 before, 2 (1 new) now"]


def test_what_is_acknowledged_is_so_in_a_fleet_too(fleet: list[Path]) -> None:
    now = seen(fleet)
    terms = Terms(acknowledged=[Acknowledged("MISSED_CHANGE", TODAY, "known")])
    clean = {**now, "findings": [], "counts": [], "cases": [{**row, "outcome": CLEAN} for row in now["cases"]]}
    for before in (None, clean):
        assert judged(now, before, Terms(), TODAY).outcome == FINDINGS
        assert judged(now, before, terms, TODAY).outcome == CLEAN


def test_a_case_that_cannot_be_opened_has_failed_and_the_others_are_compared(fleet: list[Path]) -> None:
    before = seen(fleet)
    shutil.rmtree(fleet[1] / "evidence")
    lose(fleet[0], {5, 6, 7})
    held = judged(seen(fleet), before, Terms(), TODAY)
    us = str(fleet[1])
    assert held.outcome == FAILED
    assert held.differences is not None
    assert {one.fact for one in held.differences if one.about[0] == us} == {"cases"}, "nothing else is known of it"
    assert any("missing" in one and "2 before, 3 now" in one for one in held.because)
    assert judged(seen(fleet), seen(fleet), Terms(), TODAY).outcome == FAILED


def test_a_fleet_tells_of_what_is_unknown_case_by_case(tmp_path: Path) -> None:
    folders = [loaded(tmp_path / name, ("now", files)).folder for name, files in (
        ("eu", three(20, {5})), ("us", begins_late() | {"s4.DOWN": ""}))]  # fmt: skip
    now = seen(folders)
    held = judged(now, now, Terms(), TODAY)
    assert held.outcome == INCONCLUSIVE
    assert held.because == [
        f"{folders[1]}: the evidence does not go far enough",
        f"{folders[1]}: s4 was not collected: it could not be read",
    ]
    of = [Acknowledged("INCONCLUSIVE", TODAY, "known", {"server": name}) for name in ("s3", "s4")]
    assert judged(now, now, Terms(acknowledged=of), TODAY).outcome == CLEAN
    assert judged(now, now, Terms(acknowledged=of[:1]), TODAY).outcome == INCONCLUSIVE
    assert judged(now, now, Terms(acknowledged=of), date(2026, 11, 23)).expired == of


# --- what the facts of one case tell


def test_other_changes_and_links_that_are_gone_are_worse(tmp_path: Path) -> None:
    def of(name: str, files: dict[str, str]) -> dict[str, Any]:
        return facts_of(Incident(loaded(tmp_path / name, ("now", files))))

    before, other = of("a", three(20, {5, 6})), of("b", three(20, {7, 8}))
    assert judged(other, before, Terms(), TODAY).outcome == FINDINGS
    files = three(20, {5, 6})
    files["s1.agreements.ldif"] = files["s1.agreements.ldif"].split("\n\n")[0] + "\n\n"
    held = judged(of("c", files), before, Terms(), TODAY)
    assert held.because == ["worse: links supplier s1, suffix dc=example,dc=com, link s1-to-s3: to s3 before, gone now"]
    back = judged(before, of("d", files), Terms(), TODAY)
    assert (back.outcome, [one.kind for one in back.differences or ()]) == (CLEAN, ["better"])


def test_each_of_many_missing_changes_is_told_from_others(tmp_path: Path) -> None:
    def missing(name: str, lost: set[int]) -> dict[str, Any]:
        made = facts_of(Incident(loaded(tmp_path / name, ("now", three(1300, lost)))))
        (row,) = [row for row in made["counts"] if row["list"] == "missing"]
        assert (row["count"], len(row["positions"])) == (len(lost), len(lost))
        return made

    before, now = missing("a", set(range(50, 1150))), missing("b", set(range(50, 1149)) | {1200})
    (one,) = [one for one in judged(now, before, Terms(), TODAY).differences or () if one.counts]
    assert str(one).endswith("1100 before, 1100 (1 new) now")
    assert judged(before, before, Terms(), TODAY).outcome == CLEAN


def test_which_changes_a_cut_list_holds_is_untold() -> None:
    incident = incident_of(LOST)
    cut = Incident(incident.case)
    cut.found = diagnose(incident.then, limit=10)
    now, whole = facts_of(cut), facts_of(incident)
    assert are_facts(json.loads(json.dumps(now)))
    assert {row["positions"] is None for row in now["counts"]} == {True}
    (row,) = [row for row in now["untold"] if row not in whole["untold"]]
    assert row["why"] == CUT
    about = [one for one in judged(now, now, Terms(), TODAY).because if "than a list holds" in one]
    assert len(about) == 1


def test_the_server_whose_evidence_is_oldest_tells_its_age(tmp_path: Path) -> None:
    shutil.copytree(INCIDENT / "2-during", tmp_path / "now")
    for path in (tmp_path / "now").glob("s3.*"):
        path.unlink()
    for path in (INCIDENT / "1-before").glob("s3.*"):
        shutil.copy(path, tmp_path / "now")
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "now"])
    assert oldest_evidence(case) == ("2026-11-20T15:04:13Z", "s3")
    assert oldest_evidence(case_of(LOST)) == ("2026-11-20T15:04:53Z", "s2")
    words = too_old(facts_of(Incident(case)), 60, datetime(2026, 11, 20, 15, 6, tzinfo=UTC))
    assert words == "the newest evidence of s3 is of 2026-11-20T15:04:13Z. Look whether it is still collected"


def test_a_server_that_did_not_answer_tells_no_time(tmp_path: Path) -> None:
    shutil.copytree(INCIDENT / "2-during", tmp_path / "now")
    for path in (tmp_path / "now").glob("s3.*"):
        path.unlink()
    log = "[01/Jan/2020:00:00:00.000000000 +0000] conn=1 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1\n"
    write(tmp_path / "now", {"s3.access.log": log, "s3.DOWN": "no connection\n"})
    case = Case.create(tmp_path / "case")
    case.load([tmp_path / "now"])
    assert oldest_evidence(case) == ("2026-11-20T15:04:53Z", "s2")


def test_a_server_that_tells_no_time_is_as_old_as_its_files(tmp_path: Path) -> None:
    """Another one's access log of today says nothing of a collector that died."""
    line = "[22/Nov/2026:12:00:00.000000000 +0000] conn=1 op=1 RESULT err=0 tag=103 nentries=0 etime=0.1\n"
    folder = write(tmp_path / "now", {**three(5, set()), "s1.access.log": line, "s3.notes.txt": "new\n"})
    days = {"s1": 30, "s2": 21, "s3": 20}
    for path in folder.glob("*.ldif"):
        written = datetime(2026, 10, days[path.name[:2]], tzinfo=UTC).timestamp()
        os.utime(path, (written, written))
    case = Case.create(tmp_path / "case")
    case.load([folder])
    assert oldest_evidence(case) == ("2026-10-20T00:00:00Z", "s3")
    for one in case.inputs:  # as of files that changed while they were read
        if one.server == "s3" and one.kind:
            one.changed = 0
    made = facts_of(Incident(case))
    assert (made["evidence_at"], made["evidence_of"], are_facts(made)) == (None, "s3", True)
    assert too_old(made, 60, datetime(2026, 11, 22, tzinfo=UTC)) == "nothing tells how old the evidence of s3 is"


def test_the_last_cell_counts_what_a_cut_list_holds_once() -> None:
    incident = incident_of(LOST)
    cut = Incident(incident.case)
    cut.found = diagnose(incident.then, limit=10)
    for shown in (incident, cut):
        assert "; 12 missing, " in repr(Finished(facts_of(shown)))
