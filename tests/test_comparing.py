"""The facts of two runs held against each other, and against what was accepted."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT
from hypothesis import given
from hypothesis import strategies as st
from incident_samples import EVERY, LOST, case_of, incident_of

from workbench import Case
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.verdict_rows import LIMIT
from workbench.model import SEVERITIES, Problem
from workbench.runs import regression_check
from workbench.runs.baseline_check import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, check_all, oldest_evidence
from workbench.runs.case_facts import CUT, NOT_WHOLE
from workbench.runs.check_output import checked_json, checked_text
from workbench.runs.fact_diff import (
    BETTER,
    CLEARED,
    NEW,
    WORSE,
    Acknowledged,
    Terms,
    differences,
    judged,
    too_old,
)
from workbench.runs.facts import are_facts, facts_of, facts_of_checks, finished
from workbench.runs.regression_check import Demands, accept, baseline_of, checked, demands_of, last_runs, read_baseline
from workbench.runs.run_config import Order, Orders
from workbench.runs.running import Run

TODAY = date(2026, 11, 22)
NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
NOBODY = {"server": None, "link": None, "origin": None, "suffix": None}


def facts(**more: Any) -> dict[str, Any]:
    names = ("servers", "untold", "findings", "counts", "lag", "links", "sessions", "cases")
    nothing: dict[str, Any] = {name: [] for name in names}
    return {"facts": 4, "verdict": CLEAN, "evidence_at": None, "evidence_of": None, **nothing, **more}


def finding(code: str, severity: str = "warning", **scope: str) -> dict[str, Any]:
    return {"case": None, "code": code, "severity": severity, **NOBODY, **scope}


def count(name: str, number: int, server: str = "s1", first: int = 0) -> dict[str, Any]:
    about = {"case": None, "list": name, "server": server, "origin": "1", "suffix": None, "count": number}
    which = [f"{one:05}" for one in range(first, first + number)] if name in ("missing", "stranded") else None
    return {**about, "positions": which if number <= LIMIT else None}


def case(outcome: str, name: str = "x") -> dict[str, Any]:
    return {"case": name, "outcome": outcome}


def server(name: str) -> dict[str, Any]:
    return {"case": None, "server": name, "suffix": None}


def untold(why: str, name: str | None = None, suffix: str | None = None) -> dict[str, Any]:
    return {"case": None, "server": name, "suffix": suffix, "why": why}


def session(decision: str, anchor: str | None = None, link: str | None = "s1-to-s2") -> dict[str, Any]:
    about = {"case": None, "supplier": "s1", "consumer": "s2", "suffix": None, "link": link}
    return {**about, "decision": decision, "anchor": anchor, "anchor_key": anchor}


def link(name: str = "s1-to-s2", consumer: str | None = "s2") -> dict[str, Any]:
    return {"case": None, "supplier": "s1", "suffix": None, "link": name, "consumer": consumer}


@pytest.mark.parametrize("name", EVERY)
def test_the_facts_of_a_case_are_those_of_its_diagnosis(name: str) -> None:
    incident = incident_of(name)
    made, found = facts_of(incident), incident.found
    assert {row["code"] for row in made["findings"]} == {one["code"] for one in found["findings"]}
    for list_ in ("missing", "stranded"):
        assert sum(row["count"] for row in made["counts"] if row["list"] == list_) == len(found[list_])
    assert len(made["sessions"]) == len(found["pairs"])
    text = json.dumps(made)
    assert not any(one["summary"] in text for one in found["findings"]), "no prose"
    assert json.loads(text) == facts_of(incident_of(name)), "the same input gives the same facts"
    assert are_facts(json.loads(text))
    assert list(differences(made, made, Terms(), TODAY)) == []
    assert made["verdict"] in repr(finished(incident))


def test_lag_is_the_time_from_what_a_server_claims_to_what_any_claims() -> None:
    rows = facts_of(incident_of("lag_behind_disabled_links"))["lag"]
    claimed = {one["name"]: one["vector"] for one in incident_of("lag_behind_disabled_links").found["servers"]}
    for row in rows:
        newest = max(vector[row["origin"]]["max"] for vector in claimed.values())
        mine = claimed[row["server"]][row["origin"]]["max"]
        assert row["seconds"] == int(newest[:8], 16) - int(mine[:8], 16)
    assert rows


CASES = [
    # now, before, terms, kinds, outcome
    (facts(findings=[finding("A")]), facts(), Terms(), [NEW], FINDINGS),
    (facts(findings=[finding("A", "info")]), facts(), Terms(), [NEW], CLEAN),
    (facts(findings=[finding("A", "info")]), facts(), Terms("info"), [NEW], FINDINGS),
    (facts(findings=[finding("A", "error")]), facts(findings=[finding("A")]), Terms(), [WORSE], FINDINGS),
    (facts(findings=[finding("A")]), facts(findings=[finding("A", "error")]), Terms(), [BETTER], CLEAN),
    (facts(), facts(findings=[finding("A")]), Terms(), [CLEARED], CLEAN),
    (facts(findings=[finding("A")]), facts(findings=[finding("A")]), Terms(), [], CLEAN),
    (facts(findings=[finding("A", server="s2")]), facts(findings=[finding("A", server="s1")]), Terms(), [NEW, CLEARED], FINDINGS),
    (facts(counts=[count("missing", 3)]), facts(counts=[count("missing", 2)]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("missing", 3)]), facts(counts=[count("missing", 2)]), Terms(tolerances={"missing": 1}), [WORSE], CLEAN),
    (facts(counts=[count("missing", 1)]), facts(counts=[count("missing", 2)]), Terms(), [BETTER], CLEAN),
    (facts(counts=[count("missing", 1)]), facts(), Terms(), [NEW], FINDINGS),
    (facts(counts=[count("unknown", 9)]), facts(counts=[count("unknown", 1)]), Terms(), [WORSE], INCONCLUSIVE),
    (facts(counts=[count("pending", 9000)]), facts(), Terms(), [], CLEAN),
    (facts(counts=[count("pending", 9000)]), facts(), Terms(tolerances={"pending": 100}), [NEW], FINDINGS),
    (facts(sessions=[session("anchor_not_found")]), facts(sessions=[session("send", "b")]), Terms(), [WORSE], FINDINGS),
    (facts(sessions=[session("send", "b")]), facts(sessions=[session("nothing_to_send")]), Terms(), [], CLEAN),
    (facts(sessions=[session("send", "a")]), facts(sessions=[session("send", "b")]), Terms(), [WORSE], FINDINGS),
    (facts(sessions=[session("send", "c")]), facts(sessions=[session("send", "b")]), Terms(), [], CLEAN),
    (facts(cases=[case("failed")]), facts(cases=[case("clean")]), Terms(), [WORSE], FAILED),
    (facts(verdict=INCONCLUSIVE), facts(), Terms(), [], INCONCLUSIVE),
    (facts(verdict=INCONCLUSIVE), facts(verdict=INCONCLUSIVE), Terms(), [], INCONCLUSIVE),
    (facts(untold=[untold("no_vector")]), facts(untold=[untold("no_vector")]), Terms(), [], INCONCLUSIVE),
    (facts(verdict=FINDINGS, findings=[finding("A")], untold=[untold("one_server", "s1")]), facts(findings=[finding("A")]),
     Terms(), [], INCONCLUSIVE),
    (facts(untold=[untold("down", "s3")]), facts(), Terms(), [], INCONCLUSIVE),
    (facts(servers=[server("s1")]), facts(servers=[server("s1"), server("s2")]), Terms(), [WORSE], FINDINGS),
    (facts(servers=[server("s1"), server("s2")]), facts(servers=[server("s1")]), Terms(), [BETTER], CLEAN),
    (facts(servers=[server("s1")], untold=[untold("one_server", "s1")]), facts(servers=[server("s1"), server("s2")]), Terms(),
     [WORSE], INCONCLUSIVE),
    (facts(servers=[server("s1")], verdict=INCONCLUSIVE), facts(servers=[server("s1"), server("s2")]), Terms(),
     [WORSE], INCONCLUSIVE),
    (facts(verdict=FINDINGS, cases=[case("findings"), case("inconclusive", "y")]),
     facts(verdict=FINDINGS, cases=[case("findings"), case("inconclusive", "y")]), Terms(), [], INCONCLUSIVE),
    (facts(cases=[case("failed")]), facts(cases=[case("failed")]), Terms(), [], FAILED),
    (facts(cases=[case("findings"), case("clean")]), facts(cases=[case("clean")]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("missing", 12), count("missing", 1)]), facts(counts=[count("missing", 1)]), Terms(), [WORSE], FINDINGS),
    # what is unknown was accepted, and is unknown
    (facts(counts=[count("unknown", 1)]), facts(counts=[count("unknown", 1)]), Terms(), [], INCONCLUSIVE),
    (facts(verdict=FINDINGS, findings=[finding("A")], counts=[count("unknown", 1)]),
     facts(findings=[finding("A")], counts=[count("unknown", 1)]), Terms("error"), [], INCONCLUSIVE),
    (facts(verdict=FINDINGS, findings=[finding("A")], counts=[count("unknown", 1)]), facts(),
     Terms(acknowledged=[Acknowledged("A", TODAY, "known")]), [NEW, NEW], INCONCLUSIVE),
    # other changes in the place of those that were accepted
    (facts(counts=[count("missing", 2, first=5)]), facts(counts=[count("missing", 2)]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("stranded", 1, first=1)]), facts(counts=[count("stranded", 2)]), Terms(), [BETTER], CLEAN),
    (facts(counts=[count("missing", 1, first=5)]), facts(counts=[count("missing", 2)]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("missing", 2, first=5)]), facts(counts=[count("missing", 2)]), Terms(tolerances={"missing": 2}),
     [WORSE], CLEAN),
    (facts(counts=[count("missing", 2000, first=1)]), facts(counts=[count("missing", 2000)]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("missing", 2000)]), facts(counts=[count("missing", 2000)]), Terms(), [], CLEAN),
    (facts(counts=[count("missing", 1999)]), facts(counts=[count("missing", 2000)]), Terms(), [BETTER], CLEAN),
    (facts(counts=[count("missing", 1400, first=5000)]), facts(counts=[count("missing", 1500)]), Terms(), [WORSE], FINDINGS),
    (facts(counts=[count("missing", 1500, first=5000)]), facts(counts=[count("missing", 1500)]),
     Terms(tolerances={"missing": 5}), [WORSE], FINDINGS),
    # of a list that is not whole, and one that is, all may be others; two that are not whole cannot be told apart
    (facts(counts=[count("missing", 9000)]), facts(counts=[count("missing", LIMIT + 1)]),
     Terms(tolerances={"missing": 5}), [WORSE], FINDINGS),
    (facts(counts=[count("missing", LIMIT + 1)], untold=[untold(CUT)]), facts(counts=[count("missing", LIMIT + 2)]),
     Terms(), [BETTER], INCONCLUSIVE),
    (facts(findings=[finding("MISSED_CHANGE")], counts=[count("missing", LIMIT + 1)], untold=[untold(CUT)]),
     facts(counts=[count("missing", LIMIT + 1)]), Terms(acknowledged=[Acknowledged("MISSED_CHANGE", TODAY, "known")]),
     [NEW], CLEAN),
    # a list that was cut is not hidden by a server that is known to be away
    (facts(verdict=INCONCLUSIVE, untold=[untold("down", "s3"), untold(NOT_WHOLE)]), facts(),
     Terms(acknowledged=[Acknowledged("INCONCLUSIVE", TODAY, "known", {"server": "s3"})]), [], INCONCLUSIVE),
    # links; and sessions of servers without one
    (facts(servers=[server("s1")]), facts(servers=[server("s1")], links=[link()]), Terms(), [WORSE], FINDINGS),
    (facts(links=[link()]), facts(), Terms(), [BETTER], CLEAN),
    (facts(links=[link()]), facts(links=[link(consumer="s3")]), Terms(), [WORSE], FINDINGS),
    (facts(links=[link()]), facts(links=[link(consumer=None)]), Terms(), [], CLEAN),
    (facts(sessions=[session("anchor_not_found", link=None)]), facts(sessions=[session("send", "b", None)]), Terms(), [], CLEAN),
    (facts(sessions=[session("send", "a", None)]), facts(sessions=[session("send", "b", None)]), Terms(), [], CLEAN),
]  # fmt: skip


@pytest.mark.parametrize(("now", "before", "terms", "kinds", "outcome"), CASES)
def test_what_counts_is_what_is_new_or_worse(
    now: dict[str, Any], before: dict[str, Any], terms: Terms, kinds: list[str], outcome: str
) -> None:
    held = judged(now, before, terms, TODAY)
    assert held.differences is not None
    assert sorted(one.kind for one in held.differences) == sorted(kinds)
    assert held.outcome == outcome
    assert bool(held.because) == (outcome != CLEAN)


def test_how_many_are_new_is_told_where_the_number_does_not_and_the_number_stays_one() -> None:
    for number, first, before, others, words in (
        (10, 0, 12, 0, "better: missing server s1, origin 1: 12 before, 10 now"),
        (10, 5, 12, 3, "worse: missing server s1, origin 1: 12 before, 10 (3 new) now"),
        (14, 0, 12, 0, "worse: missing server s1, origin 1: 12 before, 14 now"),
        (
            10,
            0,
            LIMIT + 1,
            None,
            f"worse: missing server s1, origin 1: {LIMIT + 1} before, 10 (nobody can tell how many new) now",
        ),
    ):
        held = facts(counts=[count("missing", number, first=first)]), facts(counts=[count("missing", before)])
        (one,) = differences(*held, Terms(), TODAY)
        assert (one.now, one.others, str(one)) == (number, others, words)


def test_without_a_baseline_every_finding_counts_and_unknown_is_no_pass() -> None:
    assert judged(facts(), None, Terms(), TODAY).outcome == CLEAN
    assert judged(facts(findings=[finding("A", "info")]), None, Terms(), TODAY).outcome == CLEAN
    assert judged(facts(findings=[finding("A")]), None, Terms(), TODAY).outcome == FINDINGS
    assert judged(facts(counts=[count("unknown", 1)]), None, Terms(), TODAY).outcome == INCONCLUSIVE
    assert judged(facts(verdict=INCONCLUSIVE), None, Terms(), TODAY).outcome == INCONCLUSIVE
    assert judged(facts(cases=[{"case": "x", "outcome": "failed"}]), None, Terms(), TODAY).outcome == FAILED


def test_an_acknowledgement_holds_for_its_scope_until_its_day() -> None:
    known = Acknowledged("A", TODAY, "it is being mended", {"server": "s1"})
    terms = Terms(acknowledged=[known])
    now = facts(findings=[finding("A", server="s1", origin="1")])
    for before in (None, facts()):
        assert judged(now, before, terms, TODAY).outcome == CLEAN
        assert judged(now, before, terms, date(2026, 11, 23)).outcome == FINDINGS
        assert judged(now, before, terms, date(2026, 11, 23)).expired == [known]
        assert judged(facts(findings=[finding("A", server="s2")]), before, terms, TODAY).outcome == FINDINGS
        assert judged(facts(findings=[finding("B", server="s1")]), before, terms, TODAY).outcome == FINDINGS


NUMBERS = {"missing": "MISSED_CHANGE", "stranded": "STRANDED_CHANGE", "pending": "PENDING_CHANGES"}


@pytest.mark.parametrize(("name", "code"), NUMBERS.items())
def test_with_a_finding_the_numbers_that_say_the_same_are_acknowledged(name: str, code: str) -> None:
    now = facts(verdict=FINDINGS, findings=[finding(code, "error", server="s3")], counts=[count(name, 12, "s3")])
    for scope, before_its_end, outcome in (
        ({"server": "s3"}, True, CLEAN),
        ({}, True, CLEAN),
        ({"server": "s2"}, True, FINDINGS),
        ({"server": "s3"}, False, FINDINGS),
    ):
        terms = Terms(tolerances={"pending": 0}, acknowledged=[Acknowledged(code, TODAY, "it is being mended", scope)])
        day = TODAY if before_its_end else date(2026, 11, 23)
        for before in (None, facts(), facts(counts=[count(name, 3, "s3")])):
            assert judged(now, before, terms, day).outcome == outcome, (scope, before)
    other = Terms(acknowledged=[Acknowledged("LINK_DISABLED", TODAY, "x")])
    assert judged(facts(counts=[count("missing", 1)]), facts(), other, TODAY).outcome == FINDINGS


def test_a_session_is_acknowledged_with_the_findings_of_its_link() -> None:
    stuck = session("anchor_not_found")
    lost, disabled = (
        finding(code, "error", link="s1-to-s2", server="s1") for code in ("ANCHOR_MISSING", "LINK_DISABLED")
    )
    terms = Terms(acknowledged=[Acknowledged("ANCHOR_MISSING", TODAY, "known", {"link": "s1-to-s2"})])
    before = facts(sessions=[session("send", "b")])
    for findings, outcome in (([lost], CLEAN), ([lost, disabled], FINDINGS), ([], FINDINGS)):
        assert judged(facts(findings=findings, sessions=[stuck]), before, terms, TODAY).outcome == outcome
    back = facts(findings=[lost], sessions=[session("send", "a")])
    assert judged(back, before, terms, TODAY).outcome == CLEAN
    assert judged(facts(sessions=[session("send", "a")]), before, terms, TODAY).outcome == FINDINGS


def test_that_nobody_can_tell_is_no_pass_unless_it_is_acknowledged_for_today() -> None:
    known = Acknowledged("INCONCLUSIVE", TODAY, "s2 keeps no log until Monday")
    of_s1 = Acknowledged("INCONCLUSIVE", TODAY, "of s1", {"server": "s1"})
    unknown = facts(verdict=INCONCLUSIVE, counts=[count("unknown", 4, "s1")])
    two = facts(verdict=INCONCLUSIVE, counts=[count("unknown", 4, "s1"), count("unknown", 1, "s2")])
    alone = facts(verdict=INCONCLUSIVE, untold=[untold("no_vector")])
    for now, known_by in ((unknown, (known, of_s1)), (two, (known,)), (alone, (known,))):
        for before in (None, facts(), now):
            for one in (known, of_s1):
                held = judged(now, before, Terms(acknowledged=[one]), TODAY)
                assert held.outcome == (CLEAN if one in known_by else INCONCLUSIVE)
                late = judged(now, before, Terms(acknowledged=[one]), date(2026, 11, 23))
                assert late.outcome == INCONCLUSIVE
            assert judged(now, before, Terms(acknowledged=[known]), date(2026, 11, 23)).expired == [known]


def test_evidence_that_is_too_old_or_of_tomorrow_is_no_pass() -> None:
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    for at, most, words in (
        ("2026-11-22T11:00:00Z", 7200, ""),
        ("2026-11-22T09:00:00Z", 7200, "of 2026-11-22T09:00:00Z. Look whether it is still collected"),
        ("2026-11-22T12:04:00Z", 7200, ""),
        ("2099-01-01T00:00:00Z", 7200, "a clock is wrong"),
        (None, 7200, "nothing tells how old"),
        (None, None, ""),
        ("2026-01-01T00:00:00Z", None, ""),
    ):
        why = too_old(facts(evidence_at=at), most, now)
        assert (words in why, bool(why)) == (True, bool(words))


ROWS = st.fixed_dictionaries(
    {
        "findings": st.dictionaries(st.sampled_from("ABC"), st.sampled_from(SEVERITIES)),
        "missing": st.dictionaries(st.sampled_from(["s1", "s2"]), st.integers(1, 5)),
        "decision": st.sampled_from(["send", "nothing_to_send", "anchor_not_found"]),
    }
)


def of_rows(rows: dict[str, Any]) -> dict[str, Any]:
    return facts(
        findings=[finding(code, severity) for code, severity in rows["findings"].items()],
        counts=[count("missing", number, server) for server, number in rows["missing"].items()],
        sessions=[session(rows["decision"])],
    )


@given(ROWS, ROWS)
def test_two_runs_differ_the_other_way_round_when_they_change_places(one: Any, other: Any) -> None:
    turned = {NEW: CLEARED, CLEARED: NEW, WORSE: BETTER, BETTER: WORSE}
    mine, others = of_rows(one), of_rows(other)
    forth, back = (list(differences(*pair, Terms(), TODAY)) for pair in ((mine, others), (others, mine)))
    assert sorted((each.kind, each.fact, each.about) for each in forth) == sorted(
        (turned[each.kind], each.fact, each.about) for each in back
    )
    # The obvious way: whatever is worse in any fact is a reason, and nothing else.
    grave = any(
        SEVERITIES.index(severity) >= 1 and SEVERITIES.index(severity) > SEVERITIES.index(other["findings"][code])
        if code in other["findings"]
        else SEVERITIES.index(severity) >= 1
        for code, severity in one["findings"].items()
    )
    more = any(number > other["missing"].get(server, 0) for server, number in one["missing"].items())
    stuck = one["decision"] == "anchor_not_found" != other["decision"]
    assert (judged(of_rows(one), of_rows(other), Terms(), TODAY).outcome == FINDINGS) == (grave or more or stuck)


# --- the section `check:`, the baseline, the last runs


def orders(folder: Path, **check: Any) -> Orders:
    return Orders(folder / "nightly.yaml", [Order("c/20_overview", Path("20_overview.ipynb"), folder, {})], check=check)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"treshold": "error"}, "did you mean threshold"),
        ({"threshold": "grave"}, "there is no severity grave"),
        ({"threshold": ["error"]}, "not text"),
        ({"tolerances": {"mising": "1"}}, "did you mean missing"),
        ({"tolerances": {"missing": "-1"}}, "less than 0"),
        ({"tolerances": {"missing": "1.5"}}, "not a whole number"),
        ({"tolerances": "5"}, "has no names"),
        ({"max_age": "26"}, "no span of time"),
        ({"acknowledged": {"code": "A"}}, "not a list"),
        ({"acknowledged": ["A"]}, "no acknowledgement"),
        ({"max_evidence_age": "1 day"}, "no span of time"),
        ({"max_age": "999999d"}, "longer than 3,660 days"),
        ({"acknowledged": [{"code": "A", "until": "2026-12-31"}]}, "without reason"),
        (
            {"acknowledged": [{"code": "MISSED_CHANG", "reason": "x", "until": "2026-12-31"}]},
            "did you mean MISSED_CHANGE",
        ),
        ({"acknowledged": [{"code": "ZZZZZ", "reason": "x", "until": "2026-12-31"}]}, "there is no code ZZZZZ"),
        ({"acknowledged": [{"code": "A", "reason": "x"}]}, "without until"),
        ({"acknowledged": [{"code": "A", "reason": "x", "until": "soon"}]}, "no day"),
        ({"acknowledged": [{"code": "A", "reason": "x", "until": "2026-12-31", "sever": "s1"}]}, "did you mean server"),
    ],
)
def test_what_would_not_be_compared_as_it_is_written_is_refused(check: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=words):
        demands_of(orders(tmp_path, **check))


def test_what_is_accepted_is_what_later_runs_are_held_against(tmp_path: Path) -> None:
    asked = orders(tmp_path)
    bad = Run("c/20_overview", "20_overview", "done", facts=facts_of(incident_of(LOST)), began="2026-11-22T01:00:00Z")
    path = baseline_of(asked)
    assert (path.name, read_baseline(path)) == ("nightly.yaml.baseline.json", {"accepted": [], "runs": {}})
    (held,) = checked(asked, [bad], demands_of(asked), read_baseline(path), NOW)
    assert held.outcome == FINDINGS
    for reason in ("", "  "):
        with pytest.raises(Problem, match="no reason"):
            accept([(asked, [bad])], reason)
    with pytest.raises(Problem, match=r"c/20_overview failed: the kernel died .*no baseline was changed"):
        accept([(asked, [replace(bad, outcome="failed", why="the kernel died")])], "so be it")
    assert not path.exists()
    accept([(asked, [bad])], "known, s3 is rebuilt on Monday")
    accept([(asked, [bad])], "still")
    assert [one["reason"] for one in read_baseline(path)["accepted"]] == ["known, s3 is rebuilt on Monday", "still"]
    (held,) = checked(asked, [bad], demands_of(asked), read_baseline(path), NOW)
    assert (held.outcome, held.why) == (CLEAN, []), "it is accepted"
    known = {"code": "INCONCLUSIVE", "until": "2026-12-31", "reason": "the logs begin later"}
    asked = orders(tmp_path, acknowledged=[known])
    (held,) = checked(asked, [bad], demands_of(asked), read_baseline(path), NOW)
    assert (held.outcome, held.why) == (CLEAN, [])
    worse = deepcopy(dict(bad.facts))
    next(row for row in worse["counts"] if row["list"] == "missing")["count"] += 1
    (held,) = checked(asked, [replace(bad, facts=worse)], demands_of(asked), read_baseline(path), NOW)
    assert held.outcome == FINDINGS
    assert "worse: missing server s3, origin 1" in held.why[0]
    assert held.why[0] in checked_text([held])
    assert json.loads(json.dumps(checked_json([held])))["outcome"] == FINDINGS


def test_reasons_outlive_another_version_and_are_not_written_over_unread(tmp_path: Path) -> None:
    asked = orders(tmp_path)
    run, path = Run("c/20_overview", "20_overview", "done", facts=facts()), baseline_of(asked)
    old = {
        "baseline": 1,
        "accepted": [{"at": "2026-01-01T00:00:00Z", "reason": "since ever"}],
        "runs": {"c": {"facts": 1}},
    }
    path.write_text(json.dumps(old))
    with pytest.raises(Problem, match="of another version"):
        read_baseline(path)
    accept([(asked, [run])], "renewed")
    assert [one["reason"] for one in read_baseline(path)["accepted"]] == ["since ever", "renewed"]
    path.write_text(path.read_text()[:-30])
    before = path.read_bytes()
    with pytest.raises(Problem, match="cannot be read"):
        accept([(asked, [run])], "renewed")
    assert path.read_bytes() == before


def test_two_files_of_one_stem_have_two_baselines(tmp_path: Path) -> None:
    names = ("nightly.yaml", "nightly.yml", "nightly", "checks.nightly", "checks.nightly.yaml")
    assert len({baseline_of(Orders(tmp_path / name, [])) for name in names}) == len(names)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"baseline": 1}',
        '{"baseline": 7, "runs": {}}',
        '{"baseline": 4, "accepted": [], "runs": {"a": 1}}',
        '{"baseline": 4, "accepted": [1], "runs": {}}',
        '{"baseline": 4, "accepted": [], "runs": []}',
        '{"baseline": 4, "accepted": [], "runs": {"a": {"facts": 4}}}',
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(verdict="great")}}),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": {**facts(), "sessions": None}}}),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(findings=[{"code": "A"}])}}),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(findings=[finding("A", "grave")])}}),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(untold=[untold("{0.__class__}")])}}),
        json.dumps(
            {"baseline": 4, "accepted": [], "runs": {"a": facts(counts=[{**count("missing", 1), "positions": "0"}])}}
        ),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(counts=[count("odd", 1)])}}),
        json.dumps(
            {"baseline": 4, "accepted": [], "runs": {"a": facts(counts=[{**count("missing", 1), "count": "1"}])}}
        ),
        json.dumps({"baseline": 4, "accepted": [], "runs": {"a": facts(evidence_at="soon")}}),
        "[" * 100_000,
    ],
)
def test_a_damaged_baseline_is_no_pass(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.baseline.json"
    path.write_text(text)
    with pytest.raises(Problem, match="baseline"):
        read_baseline(path)


def test_a_run_that_did_not_take_place_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = orders(tmp_path, max_age="26h")
    now = datetime(2026, 11, 22, 6, tzinfo=UTC)
    done = Run("c/20_overview", "20_overview", "done", facts=facts(), began="2026-11-22T01:00:00Z")
    old = replace(done, began="2026-11-20T01:00:00Z")
    failed = replace(done, outcome="failed", why="x", facts={})
    for there, outcome, why in (
        ([], "failed", "never been run"),
        ([old], "failed", "the last run that was done is of 2026-11-20"),
        ([replace(done, began="2099-01-01T00:00:00Z")], "failed", "a clock is wrong"),
        ([replace(done, began="2026-11-22T06:02:00Z")], "done", ""),
        ([failed], "failed", "no run was ever done"),
        ([old, failed], "failed", "the last run that was done is of 2026-11-20"),
        ([done, failed], "failed", "x"),
        ([old, done], "done", ""),
        ([replace(done, name="c/other")], "failed", "never been run"),
        ([replace(done, file="other.yaml")], "failed", "never been run"),
    ):
        monkeypatch.setattr(regression_check, "runs_in", lambda folder, there=there: there)
        (last,) = last_runs(asked, demands_of(asked), now)
        assert (last.outcome, why in last.why) == (outcome, True)


def test_a_run_is_held_against_those_before_it_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = orders(tmp_path)
    clean = Run("c/20_overview", "20_overview", "done", facts=facts(), began="2099-01-01T00:00:00Z", number=1)
    bad = replace(clean, facts=facts(findings=[finding("A")], verdict=FINDINGS), began="2026-11-22T01:00:00Z", number=2)
    late = replace(clean, began="2026-11-22T02:00:00Z", number=3)
    monkeypatch.setattr(regression_check, "runs_in", lambda folder: [clean, bad, late])
    (held,) = checked(asked, [bad], Demands(), {"runs": {}}, NOW)
    assert (held.outcome, held.was) == (FINDINGS, CLEAN)
    assert held.before is not None
    assert held.before.worse
    (held,) = checked(asked, [late], Demands(), {"runs": {}}, NOW)
    assert (held.outcome, held.was) == (CLEAN, FINDINGS)
    (held,) = checked(asked, [clean], Demands(), {"runs": {}}, NOW)
    assert (held.was, held.before) == (None, None)


def test_old_evidence_makes_a_clean_run_inconclusive(tmp_path: Path) -> None:
    asked = orders(tmp_path, max_evidence_age="36h")
    run = Run(
        "c/20_overview",
        "20_overview",
        "done",
        facts=facts(evidence_at="2026-11-21T01:00:00Z"),
        began="2026-11-21T02:00:00Z",
    )
    for now, outcome in ((NOW, CLEAN), (datetime(2026, 11, 23, tzinfo=UTC), INCONCLUSIVE)):
        for baseline in ({"runs": {}}, {"runs": {run.name: run.facts}}):
            (held,) = checked(asked, [run], demands_of(asked), baseline, now)
            assert held.outcome == outcome
            assert ("still collected" in "".join(held.why)) == (outcome == INCONCLUSIVE)


def test_a_case_tells_who_was_collected_and_how_new_its_evidence_is() -> None:
    made = facts_of(incident_of(LOST))
    assert {row["server"] for row in made["servers"]} == {"s1", "s2", "s3"}
    assert (made["untold"], made["evidence_at"][:16], made["evidence_of"]) == ([], "2026-11-20T15:04", "s2")
    assert are_facts(json.loads(json.dumps(made)))
    for key in made:
        assert not are_facts({name: value for name, value in made.items() if name != key}), key


def test_cases_of_one_name_do_not_hide_each_other(tmp_path: Path) -> None:
    places = []
    for place, name in (("eu", LOST), ("us", "dead_origin")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "case").symlink_to(case_of(name).folder)
        places.append(str(tmp_path / place / "case"))
    told = facts_of_checks(check_all(places))
    assert {row["case"]: row["outcome"] for row in told["cases"]} == dict(zip(places, (FINDINGS, CLEAN), strict=True))
    assert {row["case"] for row in told["servers"]} == set(places)
    assert are_facts(json.loads(json.dumps(told)))
    assert told["evidence_at"] == min(oldest_evidence(Case.open(place))[0] or "" for place in places)
    assert facts_of_checks(check_all([places[0], str(tmp_path / "gone")]))["evidence_at"] is not None


@pytest.mark.parametrize(
    ("servers", "outcome", "known"),
    [("s1 s2 s3", CLEAN, CLEAN), ("s1 s2", FINDINGS, FINDINGS), ("s1", INCONCLUSIVE, FINDINGS)],
)
def test_a_server_that_is_collected_no_more_is_no_pass(servers: str, outcome: str, known: str, tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load([INCIDENT / "2-during"])
    accepted = facts_of(Incident(case))
    (tmp_path / "next").mkdir()
    for path in (INCIDENT / "2-during").iterdir():
        if path.name.split(".")[0] in servers.split():
            (tmp_path / "next" / path.name).write_bytes(path.read_bytes())
    case.load([tmp_path / "next"])
    held = judged(facts_of(Incident(case)), accepted, Terms(), TODAY)
    assert held.outcome == outcome, held.because
    terms = Terms(acknowledged=[Acknowledged("INCONCLUSIVE", TODAY, "the logs begin later")])
    assert judged(facts_of(Incident(case)), accepted, terms, TODAY).outcome == known
    for gone in {"s2", "s3"} - set(servers.split()):
        about = f"worse: evidence server {gone}, suffix dc=example,dc=com: collected before, not collected now"
        assert about in held.because
