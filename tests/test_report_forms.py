"""The forms of a report: they tell the same, text stays text in each, and pictures are drawn within their frames."""

from __future__ import annotations

import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import mistune
import pytest
from hostile import MARKUP, PAYLOADS, poisoned_incident
from incident_samples import FOLDER, LOST, case_of

from workbench import Case
from workbench.diagnosis.incident import Incident
from workbench.journal import Journal
from workbench.repair.case_plan import plan_for
from workbench.repair.plan_progress import BEGINS, JOURNAL
from workbench.report.markdown import escaped, markdown
from workbench.report.page import network, page, style
from workbench.report.report_pipeline import pseudonyms_of, redacted_report, whole_report

LIVE = {
    "script",
    "img",
    "iframe",
    "object",
    "embed",
    "form",
    "base",
    "video",
    "audio",
    "math",
    "template",
    "input",
    "image",
}


class Seen(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL))

    def handle_data(self, data: str) -> None:
        self.said += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def as_read(text: str) -> str:
    """Markdown without its escapes."""
    return unescape(re.sub(r"\\(.)", r"\1", text))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report in which something stands everywhere."""
    folder = tmp_path_factory.mktemp("whole") / "incident-acme"
    shutil.copytree(case_of("restored_from_own_backup").folder, folder)
    case = Case.open(folder)
    plan = plan_for(case)
    Journal(case.folder / JOURNAL, BEGINS).append("begun", plan.id, steps=len(plan.steps))
    return whole_report(Incident(case))


# --- one form says what the other one says


BY_A_COLOUR = {".topology.servers.verdict"}
"""What the page shows by a colour and a sign, and Markdown by a word."""

KEEPS_FROM_HARM = {
    ".findings.fix.caution",
    ".open.counts.stranded",
    ".open.stranded.target",
    ".plan.needs.courses.lost",
    ".plan.needs.courses.restored",
    ".plan.open",
    ".plan.steps.cannot_undo",
    ".plan.steps.loses",
    ".plan.steps.on",
    ".plan.steps.sends",
    ".plan.steps.server",
}


def marked(value: Any, marks: dict[str, str], texts_of: set[str], path: str = "") -> Any:
    """The report with a mark of its own for every text and number; `marks`: mark -> where it stands."""
    key = path.rpartition(".")[2]
    if isinstance(value, dict):
        return {name: marked(one, marks, texts_of, f"{path}.{name}") for name, one in value.items()}
    if isinstance(value, list):
        return [marked(one, marks, texts_of, path) for one in value[:3]]
    if isinstance(value, bool) or (value is None and key not in texts_of):
        return value
    mark = str(900_000_000 + len(marks)) if isinstance(value, int) else f"zq{len(marks)}zq"
    marks[mark] = path
    return int(mark) if isinstance(value, int) else mark


def keys_of_texts(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from keys_of_texts(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from keys_of_texts(one, key)
    elif isinstance(value, str):
        yield key


def marks_in(text: str) -> set[str]:
    return {*re.findall("zq[0-9]+zq", text)} | {
        one.replace(",", "") for one in re.findall("9[0-9]{2},?[0-9]{3},?[0-9]{3}", text)
    }


def test_page_and_markdown_tell_the_same(whole: dict[str, Any]) -> None:
    plan = {**whole["plan"], "open": ["one"]}
    plan["steps"] = [{**one, "undo": None} for one in plan["steps"]]
    fixes = [{**one, "fix": [{"repair": "r", "why": "w", "caution": "c"}]} for one in whole["findings"]]
    broken = {"plan": {"problem": "p"}, "journal": [], "journal_problem": "j", "missing": [], "causes": []}
    told: dict[bool, set[str]] = {}
    for made in ({**whole, "plan": plan, "findings": fixes, "half_done": True}, {**whole, **broken}):
        marks: dict[str, str] = {}
        made = marked(made, marks, {*keys_of_texts(made)} - {"undo"})
        html, text = marks_in(Seen(page(made)).said), marks_in(as_read(markdown(made)))
        assert sorted({marks[one] for one in html - text}) == []
        assert {marks[one] for one in text - html} <= BY_A_COLOUR
        told["problem" in made["plan"]] = {marks[one] for one in html}
    assert told[False] >= KEEPS_FROM_HARM and {".plan.problem", ".journal_problem"} <= told[True]


# --- text stays text


def poisoned(value: Any, payload: str, key: str = "") -> Any:
    """The report with the payload for every text that comes from data, of each list a few rows."""
    if isinstance(value, dict):
        return {name: poisoned(one, payload, name) for name, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, payload, key) for one in value[:2]]
    return payload if isinstance(value, str) and key not in ("at", "from", "to") else value


def test_no_payload_becomes_an_element_of_the_page(whole: dict[str, Any]) -> None:
    assert len(PAYLOADS) >= 60
    plain = Seen(page(poisoned(whole, "x")))
    shape = [tag for tag, _ in plain.tags]
    assert not LIVE & set(shape)
    for payload in PAYLOADS:
        seen = Seen(page(poisoned(whole, payload)))
        known = ("b", "i", "u", "a", "link", "marquee", "details", "summary")
        extra = [tag for tag, _ in seen.tags if tag in LIVE or tag in known]
        assert extra == [tag for tag in shape if tag in known], payload
        for _, attributes in seen.tags:
            assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc")], (
                payload
            )
            assert (attributes.get("href") or "#").startswith("#")
            assert re.fullmatch(r"[a-z -]*", attributes.get("class") or ""), payload


def test_no_payload_becomes_an_element_of_the_markdown(whole: dict[str, Any]) -> None:
    shown = mistune.create_markdown(escape=False, plugins=["table", "url", "strikethrough", "math", "footnotes"])
    base = Seen(str(shown(markdown(poisoned(whole, "x")))))
    ours = {tag for tag, _ in base.tags}
    assert not ours & {"a", "img", "script"}
    more = [
        "https://evil.example/",
        "www.evil.example",
        "mail@evil.example",
        "<https://evil.example>",
        "[x]: http://e.example",
    ]
    for payload in [
        *MARKUP,
        *PAYLOADS,
        *more,
        "# head",
        "- item\n- item",
        "~~~\ncode",
        "***",
        "`code`",
        "a | b",
        "1. one",
    ]:
        seen = Seen(str(shown(markdown(poisoned(whole, payload)))))
        assert {tag for tag, _ in seen.tags} <= ours, (payload, {tag for tag, _ in seen.tags} - ours)
        assert len(seen.tags) <= len(base.tags) + 2, payload


def test_the_markdown_is_read_without_a_viewer(whole: dict[str, Any]) -> None:
    text = markdown(whole)
    assert text.startswith(f"# {whole['headline'].partition(',')[0]}") and not re.search("&#(4[89]|5[0-7]);", text)
    assert escaped("12 of 13, 2026-11-20 15:04:22, 1.4.4.19") == "12 of 13, 2026-11-20 15:04:22, 1.4.4.19"
    for sign in ("1. one", "12) one", "- one", "+ one", "1."):
        assert "<li>" in str(mistune.create_markdown()(sign)) and "<li>" not in str(
            mistune.create_markdown()(escaped(sign))
        )


def test_the_check_of_the_markdown_sees_what_it_is_to_see() -> None:
    shown = mistune.create_markdown(escape=False, plugins=["table", "url"])
    live = [one for one in MARKUP if Seen(str(shown(f"text {one}"))).tags[1:]]
    assert len(live) > 20


def test_names_that_want_to_be_markup(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    case.load(poisoned_incident(FOLDER / LOST, tmp_path / "in"))
    incident = Incident(case)
    html = page(whole_report(incident))
    assert "&lt;img src=x onerror" in html
    assert not LIVE & {tag for tag, _ in Seen(html).tags}
    assert "onerror" not in page(redacted_report(incident, pseudonyms_of(incident)))


def test_the_page_asks_for_nothing_and_runs_nothing(whole: dict[str, Any]) -> None:
    html = page(whole)
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy and "default-src &#39;none&#39;" in policy[1] and "unsafe" not in policy[1]
    assert style() in html


NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
SHAPES = {
    "viewbox": rf"{NUMBER}(?: {NUMBER}){{3}}",
    "points": rf"{NUMBER},{NUMBER}(?: {NUMBER},{NUMBER})*",
    "d": rf"M{NUMBER},{NUMBER}(?: [lz](?:{NUMBER},{NUMBER})?)+",
    **dict.fromkeys(("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "width", "height", "textlength"), NUMBER),
}


def test_every_number_of_a_picture_is_a_number(whole: dict[str, Any]) -> None:
    servers = [{**whole["topology"][0]["servers"][0], "name": f"s{number}"} for number in range(40)]
    links = [
        {**whole["topology"][0]["links"][0], "supplier": one["name"], "consumer": f"s{number * 7 % 40}"}
        for number, one in enumerate(servers)
    ]
    events = [
        {**whole["timeline"]["events"][0], "at": f"2026-11-20 15:04:{number:02}", "kind": kind, "server": one["name"]}
        for number, one in enumerate(servers)
        for kind in ("missed", "replaced", "message", "repair")
    ]  # fmt: skip
    events.append({**events[0], "kind": "collected", "server": None})
    made = {**whole, "topology": [{**whole["topology"][0], "servers": servers, "links": links}]}
    html = page({**made, "timeline": {**whole["timeline"], "events": events}})
    seen = [one for tag, one in Seen(html).tags if tag not in ("meta", "html")]
    told = [(name, said) for one in seen for name, said in one.items() if name in SHAPES]
    assert [one for one in told if not re.fullmatch(SHAPES[one[0]], str(one[1]))] == []
    assert "16 further servers are not drawn; the table has them" in Seen(html).said
    assert {name for name, _ in told} >= SHAPES.keys() - {"textlength"} and len(told) > 500


def test_a_mesh_of_many_servers_is_drawn_within_its_frame() -> None:
    servers = [
        {"name": f"s{n}", "origin": str(n), "collected": True, "verdict": "present", "says": ""} for n in range(40)
    ]
    links = [
        {"supplier": f"s{n}", "consumer": f"s{(n + 1) % 40}", "name": "l", "enabled": n % 2 == 0, "verdict": "pending",
         "label": "1,000,000 behind", "says": ""}
        for n in range(40)
    ]  # fmt: skip
    servers[33]["verdict"] = "missing"
    drawn = network({"suffix": None, "servers": servers, "links": links})
    assert drawn["left"] == 24 and any(one["name"] == "s33" for one in drawn["boxes"])
    x, top, wide, high = map(float, drawn["view"].split())
    for one in drawn["boxes"]:
        assert x <= one["x"] and one["x"] + drawn["width"] <= wide
        assert top <= one["y"] and one["y"] + drawn["height"] <= top + high
    assert all(one["left"] >= 0 and one["left"] + one["width"] <= wide for one in drawn["arrows"])
