"""The report in a real browser: it asks for nothing, breaks no policy, runs nothing, and is whole on a desk, a phone and paper.

Pictures of what was seen are kept under `artifacts/`.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import pytest
from conftest import CHROMIUM, ROOT, need
from hostile import PAYLOADS
from incident_samples import LOST, case_of
from test_report_forms import poisoned

from workbench import Case
from workbench.diagnosis.incident import Incident
from workbench.repair.case_plan import plan_for
from workbench.report.export import write_pdf
from workbench.report.page import page
from workbench.report.report_pipeline import pseudonyms_of, redacted_report, whole_report

pytestmark = [pytest.mark.browser]

ARTIFACTS = ROOT / "artifacts" / "report"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}

_OUTSIDE = """() => [...document.querySelectorAll('body *')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
}).map((one) => one.tagName + ' ' + one.textContent.slice(0, 60))"""
_CUT = """() => [...document.querySelectorAll('svg text')].filter((one) => {
  const box = one.getBBox(), view = one.ownerSVGElement.viewBox.baseVal;
  return box.x < view.x - 1 || box.x + box.width > view.x + view.width + 1;
}).map((one) => one.textContent)"""
_WRAPPED = """() => [...document.querySelectorAll('td.number')].filter((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
}).map((one) => one.textContent)"""
_SHADES = """() => Object.fromEntries(['g-error', 'g-warning', 'g-info', 'v-missing', 'v-stranded', 'v-pending'].map((name) => {
  const one = document.body.appendChild(document.createElement('div'));
  one.className = name;
  return [name, getComputedStyle(one).getPropertyValue('--shade').trim()];
}))"""
_LIVE = """() => [...document.querySelectorAll('script,img,iframe,object,embed,form,base,link,video,audio,math,template,'
  + 'foreignObject,animate,image,use,set,input,button,details:not(.fold),marquee,b,i,u')]
  .map((one) => one.outerHTML.slice(0, 80))"""


class Browser:
    """A browser without a network. `said` is what pages wrote to the console, `asked` what they asked for."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.said: list[str] = []
        self.asked: list[str] = []
        self.refused: list[tuple[str, str]] = []

    def open(self, file: Path, size: str) -> Any:
        """The page of a file, in a window of this size."""
        width, height = SIZES[size]
        context = self._chromium.new_context(viewport={"width": width, "height": height}, offline=True)
        opened = context.new_page()
        opened.on("console", lambda message: self.said.append(message.text))
        opened.on("request", lambda request: self.asked.append(request.url))
        opened.on("requestfailed", lambda request: self.refused.append((request.url, str(request.failure))))
        opened.on("dialog", lambda dialog: self.said.append(dialog.message))
        opened.goto(file.as_uri())
        return opened


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Browser:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return Browser(chromium)


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Incident:
    folder = tmp_path_factory.mktemp("report") / "case"
    shutil.copytree(case_of(LOST).folder, folder)
    case = Case.open(folder)
    plan_for(case)
    return Incident(case)


@pytest.fixture(scope="module")
def html(incident: Incident) -> str:
    return page(redacted_report(incident, pseudonyms_of(incident)))


@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_whole_and_asks_for_nothing(browser: Browser, html: str, size: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    browser.said.clear()
    browser.asked.clear()
    opened = browser.open(file, size)
    opened.screenshot(path=str(ARTIFACTS / f"{size}.png"), full_page=True)
    assert browser.asked == [file.as_uri()]
    assert browser.said == [], "the policy is kept"
    assert opened.evaluate(_OUTSIDE) == []
    assert opened.evaluate(_CUT) == []
    assert opened.evaluate("() => getComputedStyle(document.querySelector('h1')).borderLeftStyle") == "solid", (
        "it has its style"
    )
    assert opened.evaluate(_WRAPPED) == [], "numbers stay in one line"
    folded = opened.locator("details.fold")
    assert folded.count() > 3 and not folded.last.locator("table").is_visible()
    folded.last.locator("summary").click()
    assert folded.last.locator("table").is_visible(), "it opens without a script"
    assert size != "phone" or opened.evaluate("() => document.documentElement.scrollHeight") < 16_000
    first = opened.locator("h1").bounding_box()
    assert first and first["y"] < 100 and "12 changes are MISSING" in opened.locator("h1").inner_text()
    small = opened.evaluate(
        "() => Math.min(...[...document.querySelectorAll('svg[role=img] text')].map((one) => "
        "one.getBoundingClientRect().height))"
    )
    assert small > 9, "letters of pictures can be read"
    opened.context.close()


def test_a_reason_in_a_column_of_numbers_stays_on_the_page(
    browser: Browser, incident: Incident, tmp_path: Path
) -> None:
    made = redacted_report(incident, pseudonyms_of(incident))
    why = "of some changes the collected files do not tell whether it has them"
    made["verification"] = [{**one, "found": None, "why": why} for one in made["verification"]]
    file = tmp_path / "report.html"
    file.write_text(page(made), encoding="utf-8")
    opened = browser.open(file, "phone")
    assert opened.get_by_text(why).count() == 3 and opened.evaluate(_OUTSIDE) == []
    opened.context.close()


def test_a_warning_looks_like_no_verdict(browser: Browser, html: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    opened = browser.open(file, "desk")
    shades = opened.evaluate(_SHADES)
    assert all(shades.values()) and shades["g-error"] == shades["v-missing"]
    assert len({shades[name] for name in shades if name != "g-error"}) == 5
    opened.context.close()


def test_every_label_of_the_map_is_read_whole(html: str) -> None:
    labels = re.findall(r"<text class=\"small\"[^>]*>([^<]*)</text>", html)
    assert {"12 missing", "1 pending"} <= {*labels}
    assert not [one for one in labels if "…" in one]


def test_the_policy_refuses_what_is_not_ours(browser: Browser, html: str, tmp_path: Path) -> None:
    """The page with a script, a style and a picture in it: none is run, shown or asked for, and the console says so."""
    foreign = (
        "<script>window.hit=1</script><p style='color:red' onclick='window.hit=1'>x</p><img src='http://127.0.0.1:9/x'>"
    )
    file = tmp_path / "report.html"
    file.write_text(html.replace("<header>", foreign + "<header>"), encoding="utf-8")
    browser.said.clear()
    browser.asked.clear()
    opened = browser.open(file, "desk")
    assert opened.evaluate("() => window.hit") is None
    assert len([one for one in browser.said if "Content Security Policy" in one]) >= 3
    assert browser.refused == [("http://127.0.0.1:9/x", "csp")]
    opened.context.close()


def test_no_payload_comes_to_life(browser: Browser, incident: Incident, tmp_path: Path) -> None:
    whole = whole_report(incident)
    assert len(PAYLOADS) >= 60
    browser.said.clear()
    browser.asked.clear()
    opened = None
    for number, payload in enumerate(PAYLOADS):
        file = tmp_path / f"{number}.html"
        # Without the policy: the escaping alone has to hold.
        html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(poisoned(whole, payload)))
        file.write_text(html, encoding="utf-8", errors="backslashreplace")
        if opened is None:
            opened = browser.open(file, "phone")
        else:
            opened.goto(file.as_uri())
        assert opened.evaluate(_LIVE) == [], payload
        assert opened.evaluate("() => window.hit") is None, payload
        assert opened.evaluate(_OUTSIDE) == [], payload
    assert opened is not None
    assert len(browser.asked) == len(PAYLOADS), "one page each, and nothing else"
    assert browser.said == []
    opened.context.close()


# --- paper


def text_of(pdf: bytes) -> str:
    """The text of a PDF as chromium writes it: glyphs by number, with a table for each font."""
    objects = {int(one[1]): one[2] for one in re.finditer(rb"(?s)\n(\d+) 0 obj\n(.*?)\nendobj", pdf)}
    data = {number: _stream(body) for number, body in objects.items()}
    fonts: dict[str, dict[int, str]] = {}
    for body in objects.values():
        for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", body):
            told = re.search(rb"/ToUnicode (\d+) 0 R", objects.get(int(number), b""))
            fonts[name.decode()] = _letters(data[int(told[1])]) if told else {}
    said = []
    for content in data.values():
        font: dict[int, str] = {}
        for found in re.finditer(rb"/(F\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)>", content if b" Tf" in content else b""):
            if found[1]:
                font = fonts.get(found[1].decode(), {})
            else:
                codes = found[2].decode()
                said.append("".join(font.get(int(codes[at : at + 4], 16), "") for at in range(0, len(codes), 4)))
    return "".join(said)


def _stream(body: bytes) -> bytes:
    found = re.search(rb"(?s)stream\r?\n(.*)\r?\nendstream", body)
    if not found or b"FlateDecode" not in body:
        return b""
    return zlib.decompressobj().decompress(found[1])


def _letters(table: bytes) -> dict[int, str]:
    letters: dict[int, str] = {}
    for block in re.findall(rb"(?s)beginbfchar(.*?)endbfchar", table):
        for code, letter in re.findall(rb"<(\w+)> <(\w+)>", block):
            letters[int(code, 16)] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"(?s)beginbfrange(.*?)endbfrange", table):
        for low, high, letter in re.findall(rb"<(\w+)> <(\w+)> <(\w+)>", block):
            for code in range(int(low, 16), int(high, 16) + 1):
                letters[code] = chr(int(letter, 16) + code - int(low, 16))
    return letters


def test_the_paper_holds_the_verdict_and_all_sections(html: str, tmp_path: Path) -> None:
    need("Debian's chromium", Path(CHROMIUM).exists())
    write_pdf(html, tmp_path / "report.pdf")
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(tmp_path / "report.pdf", ARTIFACTS / "report.pdf")
    pdf = (tmp_path / "report.pdf").read_bytes()
    said = re.sub(r"\s", "", unicodedata.normalize("NFKC", text_of(pdf)))
    assert "12changesareMISSINGonserver-3" in said
    for heading in re.findall(r"<h2>([^<]*)</h2>", html):
        assert re.sub(r"\s", "", heading) in said, heading
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 3
    for folded in ("Theplaceinthesupplier'slogatwhichasessionbeginstoread.", "server-3.changelog_ldif-2(20rows)"):
        assert folded in said.replace("\u2019", "'"), "what is folded on a screen is open on paper"
    assert [path.name for path in tmp_path.iterdir()] == ["report.pdf"]
