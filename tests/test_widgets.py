"""Views and inputs without a browser: what they show, what a click does, what is kept, and what no page can make them do."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from incident_samples import ONE, OTHER, case_of, incident_of, of_suffixes
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from view_samples import LOST, STUCK, Message, all_views, samples, say, states

from widgets import (
    AnchorLine,
    Checks,
    EntryDiff,
    Findings,
    Inputs,
    MeshMap,
    MissedChanges,
    Stepper,
    Stops,
    TimeLine,
    VectorGrid,
    VectorsOverTime,
    View,
)
from widgets.error_display import show_problems_plainly
from workbench import Case, Problem
from workbench.diagnosis.incident import Incident
from workbench.runs.baseline_check import CLEAN, FAILED, FINDINGS, INCONCLUSIVE, check, check_all
from workbench.safety import strict_yaml
from workbench.views.parameters import NAME, READ_ONLY, keep, kept_in

SCRIPTS = sorted((ROOT / "widgets" / "js").glob("*.js"))


@pytest.fixture
def incident(tmp_path: Path) -> Incident:
    """A case of this test alone: choices are written into it."""
    shutil.copytree(case_of(LOST).folder, tmp_path / "case")
    return Incident(tmp_path / "case")


# --- inputs


def test_inputs_begin_with_what_is_given_then_what_is_kept_then_what_is_suggested(incident: Incident) -> None:
    first = Inputs(incident, "23_missed_changes", server="", origin="", position="")
    assert first.values == {"server": "*", "origin": "*", "position": "6b006176000000010000"}
    assert first.only("server") is None
    first.choose(server="s3")
    again = Inputs(incident, "20_overview", server="", origin="2")
    assert again.values == {"server": "s3", "origin": "2"}
    assert again.only("server") == "s3"
    assert Inputs(incident, "20_overview", server="*").only("server") is None


def test_nothing_is_written_until_somebody_chooses(incident: Incident) -> None:
    Inputs(incident, "23_missed_changes", server="s1", origin="", as_of="")
    assert not (incident.case.folder / NAME).exists()


def test_a_choice_is_told_and_kept_and_copied(incident: Incident) -> None:
    told = []
    inputs = Inputs(incident, "20_overview", server="", origin="", since="", per_load=-1)
    inputs.on_change(lambda: told.append(inputs.values))
    inputs.choose(origin="1", per_load=7)
    assert [(one["origin"], one["per_load"]) for one in told] == [("1", 5), ("1", 7)]
    kept = strict_yaml((incident.case.folder / NAME).read_text(), NAME)
    assert kept == {"origin": "1", "per_load": "7"}
    assert Inputs(incident, "20_overview", per_load=-1).value("per_load") == 7
    assert Inputs(incident, "20_overview", per_load=0).value("per_load") == 0
    copied = strict_yaml(inputs._copy.data["file"], "copied")
    assert copied["notebook"] == "20_overview"
    folder = str(incident.case.folder.resolve())
    assert copied["parameters"] == {"case_folder": folder, "server": "*", "origin": "1", "since": "*", "per_load": "7"}


def test_a_copied_file_shows_the_same_whatever_is_chosen_later(incident: Incident) -> None:
    empty = {"server": "", "origin": "", "since": "", "until": "", "position": "", "example": "", "per_load": -1}
    inputs = Inputs(incident, "any", **empty)
    inputs.choose(since="2026-11-20T15:04:30Z", example="2.2", position="6b006176000200010000", per_load=3)
    inputs.choose(since="", example="", position="", per_load=0)
    then = inputs.values
    copied = strict_yaml(inputs._copy.data["file"], "copied")["parameters"]
    assert Inputs(incident, "any", **empty).values == then  # kept, too: a re-run shows the same
    inputs.choose(since="2026-11-20T15:04:40Z", server="s2", example="1", position="6b006176000000010000", per_load=9)
    given = {name: int(value) if name == "per_load" else value for name, value in copied.items() if name in empty}
    assert Inputs(incident, "any", **given).values == then


def test_what_the_evidence_does_not_have_is_refused_and_says_what_there_is(incident: Incident) -> None:
    with pytest.raises(Problem, match=r"server is s9 .*it can be \*, s1, s2, s3"):
        Inputs(incident, "20_overview", server="s9")
    (incident.case.folder / NAME).write_text("server: gone\n")
    assert Inputs(incident, "20_overview", server="").value("server") == "*"


@pytest.mark.parametrize(
    "text", ["", ": : :", "- a list", "server: [s1]", "&a server: *a", "\x00", "server: s3\nserver: s1"]
)
def test_a_damaged_file_of_choices_keeps_nothing_and_is_replaced(incident: Incident, text: str) -> None:
    (incident.case.folder / NAME).write_text(text)
    inputs = Inputs(incident, "20_overview", server="")
    assert inputs.value("server") == "*"
    inputs.choose(server="s2")
    assert strict_yaml((incident.case.folder / NAME).read_text(), NAME) == {"server": "s2"}


def test_of_two_notebooks_that_choose_at_once_no_choice_is_lost(incident: Incident) -> None:
    folder, names = incident.case.folder, [f"n{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda name: keep(folder, {name: "x"}), names))
    assert kept_in(folder) == dict.fromkeys(names, "x")


def test_pages_that_many_look_at_keep_nothing(incident: Incident, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READ_ONLY, "1")
    Inputs(incident, "20_overview", server="").choose(server="s2")
    assert not (incident.case.folder / NAME).exists()


def test_a_case_that_cannot_be_written_says_so_and_shows_the_choice(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("workbench.views.parameters.write_whole", refused)
    inputs = Inputs(incident, "20_overview", server="", origin="")
    grid = VectorGrid(incident, inputs)
    inputs.choose(server="s3", origin="1")
    assert grid.data["cell"]["server"] == "s3"
    assert "the choice is not kept: Read-only file system" in inputs._note.text()


def test_an_earlier_snapshot_is_chosen_like_everything_else(incident: Incident) -> None:
    inputs = Inputs(incident, "20_overview", as_of="")
    findings = Findings(incident, inputs)
    assert "12 changes are MISSING" in findings.text()
    inputs.choose(as_of="1-before")
    assert "MISSING" not in findings.text()
    assert Inputs(Incident(incident.case), "20_overview", as_of="").incident.then_label == "1-before"


# --- views


def test_every_view_has_a_sample_and_every_script_a_view() -> None:
    shown = {script for _, script, _ in states()}
    assert {one._drawn_by for one in all_views()} == shown
    assert {path.stem for path in SCRIPTS} - {"dom", "page"} == {part for one in shown for part in one.split("+")}


def test_every_view_reads_as_plain_text_where_there_are_no_scripts() -> None:
    for name, make, _ in samples():
        view = make()
        bundle = view._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        assert data["text/plain"] == view.text() == repr(view), name
        assert view.text().strip(), name
        assert "object at 0x" not in view.text()


def test_views_follow_the_inputs(incident: Incident) -> None:
    inputs = Inputs(incident, "23_missed_changes", server="", origin="", since="", until="", position="")
    missed, line, grown = MissedChanges(incident, inputs), TimeLine(incident, inputs), VectorsOverTime(incident, inputs)
    assert missed.data["total"] == 12
    inputs.choose(server="s2")
    assert missed.data["list"] == "pending"
    assert missed.data["lists"][0]["count"] == 0
    assert "s3" not in grown.text()
    inputs.choose(since="2026-11-20T15:04:30Z")
    assert line.data["from"] == "2026-11-20T15:04:30.000Z"
    inputs.choose(since="tomorrow")
    assert "is not a time" in inputs._note.text()
    assert line.data["from"] == "2026-11-20T15:04:30.000Z"
    kept = strict_yaml((incident.case.folder / NAME).read_text(), NAME)
    assert kept["since"] == "2026-11-20T15:04:30Z"
    inputs.choose(since="")
    assert not inputs._note.data["text"]


def test_what_is_seen_goes_with_the_snapshot(incident: Incident) -> None:
    inputs = Inputs(incident, "23_missed_changes", as_of="", server="", position="")
    line, grown = TimeLine(incident, inputs), VectorsOverTime(incident, inputs)
    assert line.data["position"] == "6b006176000000010000"
    inputs.choose(as_of="1-before")
    assert inputs.value("position") != "6b006176000000010000"
    assert line.data["lanes"]
    inputs.choose(position="6b006176000000010000")
    assert "nothing in the case names" in line.data["says"] or line.data["says"]
    assert line.data["lanes"]
    assert "CAME TO" in grown.text()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"origin": 1}, None),
        ({"origin": 99}, "origin is 99 .* it can be"),
        ({"since": 3.5}, "since is 3.5 .* give text"),
        ({"server": ["s1"]}, "give text"),
        ({"server": True}, "give text"),
        ({"per_load": "7"}, None),
        ({"per_load": "abc"}, "give a whole number"),
        ({"per_load": 1.5}, "give a whole number"),
        ({"position": "no position"}, "is not a position"),
        ({"until": "yesterday"}, "is not a time"),
        ({"as_of": "no snapshot"}, "is not a time|no snapshot"),
    ],
)
def test_parameters_of_a_wrong_type_are_refused_with_a_sentence(
    incident: Incident, given: dict[str, Any], says: str | None
) -> None:
    if says is None:
        (name,) = given
        assert str(Inputs(incident, "any", **given).value(name)) == str(given[name])
        return
    with pytest.raises(Problem, match=says):
        Inputs(incident, "any", **given)


def test_of_two_suffixes_each_is_shown_as_it_is_shown_alone(tmp_path: Path) -> None:
    """Servers, links, names of agreements and origins are the same in both."""

    def shown(incident: Incident, suffix: str) -> dict[str, str]:
        empty = dict.fromkeys(("server", "origin", "since", "until", "position"), "")
        inputs = Inputs(incident, "any", **empty, suffix=suffix, supplier="s1", consumer="s3", rules="", per_load=3)
        texts = {type(one).__name__: one.text() for one in (view(incident, inputs) for view in views)}
        found = Findings(incident, inputs).data["findings"]
        return texts | {"findings": ", ".join(f"{one['code']} {one['server']} {one['origin']}" for one in found)}

    views: list[Any] = [MeshMap, VectorGrid, MissedChanges, TimeLine, VectorsOverTime, Stepper, AnchorLine, Stops]
    both = Incident(of_suffixes(tmp_path / "both", ONE, OTHER))
    alone = {one: shown(Incident(of_suffixes(tmp_path / one, one)), one) for one in (ONE, OTHER)}
    # The clocks of the servers go on to when the second of the two was recorded, so a record that OTHER lacks is late there.
    alone[OTHER]["findings"] += ", VECTOR_AHEAD_OF_LOG s1 1"
    for suffix in (ONE, OTHER, ONE):
        assert shown(both, suffix) == alone[suffix]
    assert all(text != alone[OTHER][name] for name, text in alone[ONE].items())


def test_findings_as_text_are_those_that_are_shown(incident: Incident) -> None:
    inputs = Inputs(incident, "20_overview", server="s1", origin="2")
    view = Findings(incident, inputs)
    assert not view.data["findings"]
    assert "MISSED_CHANGE" not in view.text()


def test_every_message_is_answered(incident: Incident) -> None:
    """A page waits for an answer, also where nothing changed; and ipywidgets' own methods are none of a page's business."""
    view = MeshMap(incident)
    sent: list[Any] = []
    view.send = lambda content, buffers=None: sent.append(content)
    for what in ("pick", "nothing", "trait_change", "msg", "displayed", "widget_constructed"):
        view._heard(view, {"what": what, "index": 0}, [])
    assert sent == [{"heard": True}] * 6


def test_a_grid_of_many_servers_is_leafed_through(incident: Incident, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.mesh._SERVERS_SHOWN", 2)
    view = VectorGrid(incident)
    assert ([row["server"] for row in view.data["rows"]], view.data["total"]) == (["s1", "s2"], 3)
    for _ in range(3):
        say(view, what="page", by=1)
    assert [row["server"] for row in view.data["rows"]] == ["s3"]
    say(view, what="pick", row=0, column=0)
    assert view.data["cell"]["server"] == "s3"


def test_a_click_shows_the_whole_story_of_a_change() -> None:
    view = MissedChanges(incident_of(LOST))
    say(view, what="pick", index=0)
    story = view.data["story"]
    assert {one["server"]: one["verdict"] for one in story["servers"]} == {
        "s1": "present",
        "s2": "present",
        "s3": "missing",
    }
    assert story["made_at"] == "2026-11-20 15:04:22"
    assert any(row["file"] == "s1.changelog.ldif.gz" for one in story["servers"] for row in one["evidence"])
    say(view, what="pick", index=12)
    assert "not there any more" in view.notice


def test_long_lists_are_shown_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.missed._PAGE", 5)
    view = MissedChanges(incident_of(LOST))
    seen = list(view.data["rows"])
    for _ in range(2):
        say(view, what="page", by=1)
        seen += view.data["rows"]
    assert [row["position"] for row in seen] == [row["position"] for row in incident_of(LOST).found["missing"]]
    say(view, what="page", by=1)
    assert view.data["first"] == 10
    for _ in range(5):
        say(view, what="page", by=-1)
    assert view.data["first"] == 0


def test_a_link_tells_why_it_is_stuck() -> None:
    view = MeshMap(incident_of(STUCK))
    index = next(at for at, one in enumerate(view.data["links"]) if (one["supplier"], one["consumer"]) == ("s1", "s3"))
    say(view, what="pick", index=index)
    assert view.data["pair"]["decision"] == "STUCK: purged"
    assert view.data["pair"]["anchor"] == "6b006063002000010000"
    assert view.data["pair"]["anchor_at"] == "2026-11-20 14:59:47"


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 20), st.floats(), st.text(max_size=6))
MESSAGES = st.one_of(
    SCALARS,
    st.dictionaries(
        st.sampled_from(
            [
                "what",
                "index",
                "row",
                "column",
                "lane",
                "bin",
                "name",
                "by",
                "one",
                "other",
                "named",
                "to",
                "origin",
                "bar",
            ]
        ),
        st.one_of(SCALARS, st.sampled_from(["pick", "list", "page", "pair", "go", "large", "msg", "text", "missing"])),
        max_size=5,
    ),
)


@settings(max_examples=12, deadline=None)
@given(messages=st.lists(MESSAGES, max_size=3))
def test_no_message_of_a_page_makes_a_view_fail(messages: list[Any]) -> None:
    for name, view, clicks in kept_views():
        for message in [*messages, *clicks]:
            view._heard(view, message, [])
        assert view.data, name


@cache
def kept_views() -> list[tuple[str, View, list[Message]]]:
    """One of each kind, made once: whatever a page said before, they go on."""
    kinds = {name.partition(" ")[0]: (name, make, clicks) for name, make, clicks in samples()}
    return [(name, make(), clicks) for name, make, clicks in kinds.values()]


def test_many_entries_are_compared_by_spark_under_a_bar_and_can_be_cancelled(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.views.entry_diff.SUMMED_HERE", 100)
    monkeypatch.setattr("workbench.engine.session.spark_session", lambda: spark)
    view = EntryDiff(incident_of(LOST))
    assert view.data["large"]
    seen: list[Any] = []
    view.observe(lambda change: seen.append(change["new"].get("working")), "data")
    say(view, what="large")
    view.wait()
    assert view.data["total"] == 7
    done = [one["done"] for one in seen if one and one["total"]]
    assert done == sorted(done)
    assert len(done) > 1
    view = EntryDiff(incident_of(LOST))
    view.observe(
        lambda change: say(view, what="cancel") if (change["new"].get("working") or {}).get("done") else None, "data"
    )
    say(view, what="large")
    view.wait()
    assert "cancelled" in view.notice
    assert view.data["large"]
    assert "working" not in view.data


def test_a_chart_of_many_rows_is_drawn_when_asked_for_under_a_bar_and_can_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("widgets.charts._READ_AT_ONCE", 0)
    view = VectorsOverTime(incident_of(LOST))
    assert view.text() == "not read yet"
    view.read()
    view.wait()
    (bar,) = view._bar.children
    assert (bar.data["state"], bar.data["unit"]) == ("done", "rows")
    assert 0 < bar.data["done"] <= bar.data["total"]
    assert view.text() == VectorsOverTime(incident_of(LOST)).text() or "CAME TO" in view.text()
    again = VectorsOverTime(incident_of(LOST))
    monkeypatch.setattr(again._ended, "clear", again._ended.set)
    again.read()
    again.wait()
    (bar,) = again._bar.children
    assert bar.data["state"] == "cancelled"
    assert again.text() == "not read yet"
    assert "cancelled" in again._note.text()


# --- checks


def as_it_was(name: str, folder: Path) -> None:
    """A copy of a case with a baseline of what it says now."""
    shutil.copytree(case_of(name).folder, folder)
    (folder / "baseline.json").write_text(json.dumps(Incident(folder).found))


def test_a_check_that_cannot_look_is_no_pass(tmp_path: Path) -> None:
    lost, stuck = case_of(LOST).folder, tmp_path / "stuck"
    as_it_was(STUCK, stuck)
    checked = check_all([stuck, tmp_path, lost])
    assert [one.outcome for one in checked] == [FAILED, FINDINGS, INCONCLUSIVE]
    assert "this is not a case" in checked[0].verdict
    assert Checks(checked).data["clean"] == 0
    assert Checks(check_all([case_of("dead_origin").folder])).data["clean"] == 1
    with pytest.raises(Problem, match="no case is named"):
        check_all([])
    with pytest.raises(Problem, match="there is no severity grave"):
        check_all([lost], "grave")


def test_against_a_baseline_only_what_is_new_or_worse_counts(incident: Incident, tmp_path: Path) -> None:
    nothing = {"new": 0, "gone": 0, "changed": 0}
    as_it_was(STUCK, tmp_path / "stuck")
    stuck = check(tmp_path / "stuck")
    assert (stuck.outcome, stuck.changes) == (INCONCLUSIVE, nothing), "eight stretches are unknown"
    folder = incident.case.folder
    (folder / "baseline.json").write_text(json.dumps(incident.found))
    same = check(folder)
    assert (same.outcome, same.changes) == (CLEAN, nothing)
    found = dict(incident.found)
    found["findings"] = [one for one in found["findings"] if one["code"] != "MISSED_CHANGE"]
    (folder / "baseline.json").write_text(json.dumps(found))
    worse = check(folder)
    assert (worse.outcome, worse.changes["new"]) == (FINDINGS, 1)
    assert "MISSED_CHANGE" in worse.details
    (folder / "baseline.json").write_text("{}")
    assert check(folder).outcome == FAILED


# --- what no page may do


def test_no_script_can_make_markup_of_a_text() -> None:
    forbidden = (
        r"\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
        r"|setAttribute\(\s*[\"'](?:on|href|src|style)"
        r"|\.(?:href|src|onclick|onerror)\s*=|fetch\(|XMLHttpRequest|WebSocket|import\(|https?://(?!www\.w3\.org/)"
    )
    for path in SCRIPTS:
        assert not re.findall(forbidden, path.read_text(encoding="utf-8")), path.name
    # The rule sees what it is to see.
    for bad in (
        'a.innerHTML = "x"',
        'node.setAttribute("href", x)',
        'fetch("x")',
        "a.src = b",
        '"https://cdn.example"',
    ):
        assert re.search(forbidden, bad), bad


def test_a_problem_in_a_cell_is_its_sentence_and_other_errors_keep_their_traceback() -> None:
    shell = InteractiveShell.instance()
    try:
        show_problems_plainly()
        shell.run_cell("from workbench import Problem")
        with capture_output() as shown:
            result = shell.run_cell("raise Problem('it is wrong', 'there', 'mend it\\x1b[31m')")
        assert not result.success
        assert shown.stdout.strip() == r"Problem: it is wrong (there). mend it\x1b[31m"
        with capture_output() as shown:
            assert not shell.run_cell("1 / 0").success
        assert "Traceback" in shown.stdout
    finally:
        InteractiveShell.clear_instance()


def test_a_loaded_case_is_not_changed_by_looking_at_it(incident: Incident) -> None:
    before = {path: path.read_bytes() for path in incident.case.folder.rglob("*") if path.is_file()}
    for make in (MeshMap, VectorGrid, Findings, MissedChanges, TimeLine):
        make(incident)
    assert {path: path.read_bytes() for path in incident.case.folder.rglob("*") if path.is_file()} == before
    assert Case.open(incident.case.folder).snapshots
