"""What a finding, a cause or a line of the matrix names is there to be read."""

from __future__ import annotations

from typing import Any

from workbench.diagnosis.finding_references import drop_void_causes, name_what_tells, with_shown_references
from workbench.diagnosis.pair_matrix_text import why_it_fails
from workbench.model import Finding, step

GONE = "CHANGES_THROWN_AWAY"
ROOT = Finding("SEARCH_REFUSED", "error", "b shows nothing", server="b", suffix="a", root="b shows nothing")


def thrown_away(server: str, void: bool) -> Finding:
    return Finding(GONE, "info", "lost", server=server, suffix="a", overruled_by=ROOT.code if void else None)


def missed(summary: str, repair: str) -> Finding:
    fix = (step(repair, "no session brings them", "the data of b were replaced"),)
    return Finding("MISSED_CHANGE", "error", summary, server="a", suffix="a", fix=fix)


def test_no_finding_names_one_that_is_not_shown() -> None:
    said = missed(f"a missed 3 changes (2 by APPLY_SKIPPED, {GONE})", f"do what {GONE} of b says")
    (*_, one) = with_shown_references([ROOT, thrown_away("b", True), said])
    assert one.summary == "a missed 3 changes (2 by APPLY_SKIPPED)"
    assert one.fix == (step("do what SEARCH_REFUSED of b says", "before that, the rest cannot be judged"),)
    (*_, one) = with_shown_references([ROOT, thrown_away("b", True), missed(f"lost ({GONE})", "write them again")])
    assert (one.summary, one.fix[0]["caution"]) == ("lost", "the data of b were replaced")
    for others in ([thrown_away("b", False)], [thrown_away("c", True), thrown_away("b", False)], []):
        assert with_shown_references([ROOT, *others, said])[-1] == said


def test_a_finding_on_a_link_gives_way_to_the_one_on_its_consumer() -> None:
    link = Finding("LINK_FAILING", "info", "x", server="s", link="s-to-b", suffix="a", overruled_by=ROOT.code)
    (*_, one) = with_shown_references([ROOT, link, missed("x", "do what LINK_FAILING says on s-to-b first")])
    assert one.fix[0]["repair"] == "do what SEARCH_REFUSED of b says first"


def test_a_cause_that_is_not_concluded_stays_open() -> None:
    rows: list[dict[str, Any]] = [
        {"cause": GONE, "suffix": suffix, "reasons": ["its data were replaced"]} for suffix in ("a", "z")
    ]
    drop_void_causes(rows, [ROOT, thrown_away("b", True)])
    assert [row["cause"] for row in rows] == [None, GONE]
    assert rows[0]["reasons"] == [f"{GONE}: not concluded, because of SEARCH_REFUSED"]


def test_the_matrix_names_the_finding_that_is_shown() -> None:
    link = {"supplier": "s", "consumer": "b", "suffix": "a", "link": "s-to-b", "link_failing": "refused"}
    rows: list[dict[str, Any]] = [{**link, "unrelated": unrelated} for unrelated in (True, False)]
    fails = Finding("LINK_FAILING", "error", "x", server="s", link="s-to-b", suffix="a")
    void = Finding("UNRELATED_DATA", "info", "x", server="b", suffix="a", overruled_by=ROOT.code)
    name_what_tells(rows, [ROOT, void, fails])
    assert [row["link_told_by"] for row in rows] == [ROOT.code, "LINK_FAILING"]
    name_what_tells(rows, [ROOT])
    assert [row["link_told_by"] for row in rows] == [None, None]


def test_a_link_that_is_refused_says_what_is_refused() -> None:
    row = {"link_failing": "refused", "link_fails": "change refused, 53 (unwilling to perform)"}
    assert why_it_fails(row) == "change refused, 53 (unwilling to perform)"
    assert why_it_fails({**row, "link_fails": None}).startswith("nothing listens")
    assert why_it_fails({**row, "link_failing": "tls"}).startswith("no encrypted connection")
