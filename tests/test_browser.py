"""The notebooks in a real JupyterLab in a real browser, and every view with hostile text in a real page.

Pictures of what was seen are kept under `artifacts/`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Lab, Pages, lab
from conftest import ROOT, need
from hostile import PAYLOADS
from incident_samples import case_of
from view_samples import LOST, states

from widgets.view import script, style

pytestmark = [pytest.mark.browser]

ARTIFACTS = ROOT / "artifacts" / "browser"


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    """One browser for all tests; whatever a page asks of another machine is refused."""
    need("Debian's chromium", Path(CHROMIUM).exists())
    need("playwright", find_spec("playwright"))
    from playwright.sync_api import sync_playwright

    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        opened = Pages(playwright, ARTIFACTS)
        yield opened
        opened.close()


# --- every view, with hostile text

_RENDER = """async ([esm, css, states]) => {
  document.head.replaceChildren();
  const sheet = document.createElement("style");
  sheet.textContent = css;
  document.head.append(sheet);
  const view = (await import(URL.createObjectURL(new Blob([esm], {type: "text/javascript"})))).default;
  const wrong = [];
  const LIVE = "script,img,iframe,object,embed,a,link,style,form,base,meta,video,audio,source,math,template,foreignObject," +
    "animate,image,use,set,marquee,noscript,frame,applet,dialog[open]";
  const CONTROL = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/;
  for (const [number, data] of states.entries()) {
    const root = document.createElement("div");
    document.body.replaceChildren(root);
    const sent = [];
    const values = {data, notice: data.__notice__};
    const model = {get: (name) => values[name], on() {}, off() {}, send: (message) => sent.push(message)};
    try {
      view.render({model, el: root});
    } catch (error) {
      wrong.push([number, "error " + error]);
      continue;
    }
    const live = root.querySelectorAll(LIVE);
    if (live.length) wrong.push([number, "live " + live[0].tagName]);
    for (const node of root.querySelectorAll("*")) {
      for (const one of node.attributes) {
        const name = one.name.toLowerCase();
        if (name.startsWith("on") || ["href", "src", "xlink:href", "action", "srcdoc", "style", "formaction"].includes(name))
          wrong.push([number, "attribute " + name]);
        if (name === "id" && !/^wb-head-[a-z]+$/.test(one.value)) wrong.push([number, "id " + one.value.slice(0, 40)]);
        if (name === "class" && !/^[a-z0-9 -]*$/.test(one.value)) wrong.push([number, "class " + one.value.slice(0, 40)]);
      }
      for (const child of node.childNodes)
        if (child.nodeType === 3 && CONTROL.test(child.data)) wrong.push([number, "control letters"]);
    }
    for (const one of root.querySelectorAll("[data-key]")) one.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
    if (number === 0) wrong.push([number, "text", root.textContent]);
  }
  if (window.hit) wrong.push([-1, "a script ran"]);
  return wrong;
}"""

OURS = {"lanes": {"from", "to", "made_at"}, "missed": {"list"}}
"""Keys that hold words of the program and no text of data: what a view does with others is not defined."""


_FEW = 5
"""Rows of each list: a hundred thousand letters in each of a thousand rows would test the browser."""


def poisoned(value: Any, payload: str, ours: set[str], top: bool = True) -> Any:
    """The same data with the payload for every text, also for the names of keys that are data."""
    if isinstance(value, dict):
        return {key: one if top and key in ours else poisoned(one, payload, ours, False) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        few = value[:_FEW] if value and isinstance(value[0], dict) else value
        return [poisoned(one, payload, ours, False) for one in few]
    return payload if isinstance(value, str) else value


@pytest.mark.parametrize("script_name", sorted({name for _, name, _ in states()}))
def test_no_text_becomes_more_than_text_in_any_view(pages: Pages, script_name: str) -> None:
    assert len(PAYLOADS) >= 60
    page = pages.new("about:blank")
    # Of all its states those that show most.
    shown = sorted((data for _, name, data in states() if name == script_name), key=lambda data: -len(str(data)))[:3]
    mark = "<i>seen</i>"
    marked = [{**poisoned(shown[0], mark, OURS.get(script_name, set())), "__notice__": mark}]
    for data in shown:
        variants = [
            {**poisoned(data, payload, OURS.get(script_name, set())), "__notice__": payload} for payload in PAYLOADS
        ]
        found = page.evaluate(_RENDER, [script(script_name), style(), [*marked, *variants]])
        texts = [one[2] for one in found if one[1] == "text"]
        assert mark in texts[0], "the text is shown, as text"
        assert [one for one in found if one[1] != "text"] == []
    page.close()


def test_the_check_for_live_elements_sees_what_it_is_to_see(pages: Pages) -> None:
    """A view that trusts its data fails the check above."""
    trusting = script("note").replace('make("div", "wb-notice", data.text)', "trusted(data.text)")
    assert "trusted(" in trusting
    trusting += "\nfunction trusted(text) { const node = make('div'); node.innerHTML = text; return node; }"
    page = pages.new("about:blank")
    states_ = [{"text": payload} for payload in PAYLOADS]
    found = page.evaluate(_RENDER, [trusting, style(), states_])
    assert len({one[0] for one in found if one[1].startswith(("live", "attribute"))}) > 25
    page.close()


# --- the notebooks


@pytest.fixture(scope="module")
def jupyter(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab as `workbench lab CASE` starts it, on copies of the notebooks and of a case."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "tests").symlink_to(ROOT / "tests")  # where the tour finds its incident
    shutil.copytree(case_of(LOST).folder, folder / "case")
    with lab(folder, pages, ROOT / "notebooks", WORKBENCH_CASE=str(folder / "case")) as started:
        yield started


def ran(jupyter: Lab, name: str) -> Any:
    """The page of a notebook of which all cells ran, without an error."""
    page = jupyter.open(f"{name}.ipynb")
    cells = jupyter.run(page)
    assert not [error for cell in cells for error in cell["errors"]], name
    return page


def done(jupyter: Lab, page: Any, name: str) -> None:
    jupyter.pages.shot(page, name)
    assert not jupyter.pages.asked_outside
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.close()


def test_the_overview(jupyter: Lab) -> None:
    page = ran(jupyter, "20_overview")
    page.get_by_text("12 never").first.wait_for()
    page.locator('[data-key="link-1"]').click()
    page.get_by_role("heading", name="s1 → s3: nothing").wait_for()
    page.locator('[data-key="cell-2-0"]').click()
    page.get_by_role("heading", name="s3, origin 1").wait_for()
    page.get_by_text("its entries do not carry the change, those of another do").first.wait_for()
    assert page.locator(".js-plotly-plot .scatterlayer .trace").count() >= 9
    page.get_by_label("server", exact=True).select_option("s3")
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length === 3")
    kept = (jupyter.folder / "case" / "parameters.yaml").read_text()
    assert "server: s3" in kept
    page.locator('[data-key="copy"]').first.click()
    page.get_by_text("copied", exact=True).wait_for()
    assert "notebook: 20_overview" in page.evaluate("() => navigator.clipboard.readText()")
    page.get_by_label("server", exact=True).select_option("* (all)")
    done(jupyter, page, "20_overview")


def test_missed_changes(jupyter: Lab) -> None:
    page = ran(jupyter, "23_missed_changes")
    page.locator('[data-key="list-missing"]').get_by_text("12 missing").wait_for()
    page.locator('[data-key="row-0"]').first.click()
    page.get_by_text("The story of one change").wait_for()
    assert page.locator('code[title*="made 2026-11-20 15:04:22 UTC"]').count() > 3
    page.locator('[data-key^="bar-0-"]').first.click()
    page.get_by_text("on this server").wait_for()
    page.locator('[data-key="named"]').fill("k1u00004")
    page.locator('[data-key="compare"]').click()
    page.get_by_text("1 entries differ").wait_for()
    page.locator('[data-key="list-unknown"]').click()
    page.get_by_text("not_shown").first.wait_for()
    done(jupyter, page, "23_missed_changes")


def test_where_a_session_begins(jupyter: Lab) -> None:
    page = ran(jupyter, "21_anchor")
    done(jupyter, page, "21_anchor")


def test_the_pending_list(jupyter: Lab) -> None:
    page = ran(jupyter, "24_pending_list")
    page.get_by_text("s1: operations as its logs show them").wait_for()
    page.get_by_label("example").select_option(index=4)
    page.get_by_text("what they claim in the end is not the same").wait_for()
    done(jupyter, page, "24_pending_list")


def test_the_checks(jupyter: Lab) -> None:
    page = ran(jupyter, "50_checks")
    page.get_by_text("0 of 1 clean").wait_for()
    page.locator('[data-key="row-0"]').click()
    page.get_by_text("There is no baseline to hold it against.").wait_for()
    done(jupyter, page, "50_checks")
