"""The notebooks in a real JupyterLab in a real browser, and every view with hostile text in a real page.

Pictures of what was seen are kept under `artifacts/`.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browser import OPEN, Lab, Pages, free_port, lab, started
from case_samples import INCIDENT, everything
from conftest import ROOT
from hostile import IN_NAMES, PAYLOADS, poisoned_incident
from incident_samples import case_of, incident_of
from test_stream_sources import INCIDENTS as STREAMS
from test_stream_sources import case_of as case_of_streams
from tier_samples import case_of_tiers
from view_samples import LAGS, LOST, all_views, states

from benchmarks.changelog_data import generate
from widgets.view import script, style
from workbench import Case
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.pair_matrix_text import OUTCOMES
from workbench.rules.send_session import DELIVERED, Bound, Session, SortedLog, replay
from workbench.systems.ds389.rules.sending import Sending

pytestmark = [pytest.mark.browser]

ARTIFACTS = ROOT / "artifacts" / "browser"


@pytest.fixture(scope="module")
def pages(chromium: Any) -> Pages:
    """One browser for all tests; whatever a page asks of another machine is refused."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return Pages(chromium, ARTIFACTS)


# --- every view, with hostile text

_RENDER = """async ([esm, css, states, payloads, ours]) => {
  // The same data with the payload for every text; `ours` are keys of words of the program. A hundred thousand letters in each
  // of a thousand rows would test the browser: of each list some rows are enough.
  const poisoned = (value, payload, top) => {
    if (Array.isArray(value)) {
      const rows = value.length && Object.prototype.toString.call(value[0]) === "[object Object]";
      return (rows ? value.slice(0, 5) : value).map((one) => poisoned(one, payload, false));
    }
    if (value !== null && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(
        ([key, one]) => [key, top && ours.includes(key) ? one : poisoned(one, payload, false)]));
    return typeof value === "string" ? payload : value;
  };
  document.head.replaceChildren();
  const sheet = document.createElement("style");
  sheet.textContent = css;
  document.head.append(sheet);
  const view = (await import(URL.createObjectURL(new Blob([esm], {type: "text/javascript"})))).default;
  const wrong = [];
  const LIVE = "script,img,iframe,object,embed,a,link,style,form,base,meta,video,audio,source,math,template,foreignObject," +
    "animate,image,use,set,marquee,noscript,frame,applet,dialog[open]";
  const CONTROL = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/;
  const all = states.flatMap((state) => payloads.map((payload) => [poisoned(state, payload, true), payload]));
  for (const [number, [data, payload]] of all.entries()) {
    const root = document.createElement("div");
    document.body.replaceChildren(root);
    const sent = [];
    const values = {data, notice: payload};
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

OURS = {"lanes": ["from", "to", "made_at"], "story+missed": ["list"]}
"""Keys that hold words of the program and no text of data: what a view does with others is not defined."""


@pytest.mark.parametrize("script_name", sorted({one._drawn_by for one in all_views()}))
def test_no_text_becomes_more_than_text_in_any_view(pages: Pages, script_name: str) -> None:
    assert len(PAYLOADS) >= 60
    page = pages.new("about:blank")
    # Of all its states those that show most.
    shown = sorted((data for _, name, data in states() if name == script_name), key=lambda data: -len(str(data)))[:3]
    mark, ours = "<i>seen</i>", OURS.get(script_name, [])
    found = page.evaluate(_RENDER, [script(script_name), style(), shown, [mark, *PAYLOADS], ours])
    (text,) = [one[2] for one in found if one[1] == "text"]
    assert mark in text, "the text is shown, as text"
    assert [one for one in found if one[1] != "text"] == []
    page.close()


def test_the_check_for_live_elements_sees_what_it_is_to_see(pages: Pages) -> None:
    """A view that trusts its data fails the check above."""
    trusting = script("note").replace('make("div", "wb-notice", data.text)', "trusted(data.text)")
    assert "trusted(" in trusting
    trusting += "\nfunction trusted(text) { const node = make('div'); node.innerHTML = text; return node; }"
    page = pages.new("about:blank")
    found = page.evaluate(_RENDER, [trusting, style(), [{"text": ""}], PAYLOADS, []])
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


def ran(jupyter: Lab, name: str, **parameters: Any) -> Any:
    """The page of a notebook of which all cells ran, without an error."""
    page = jupyter.open(f"{name}.ipynb", **parameters)
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
    page.get_by_text("12 lost").first.wait_for()
    page.locator('[data-key="link-1"]').click()
    page.get_by_role("heading", name="s1 → s3: nothing").wait_for()
    page.locator('[data-key="cell-2-0"]').click()
    page.get_by_role("heading", name="s3, origin 1").wait_for()
    page.get_by_text("its entries would carry the change, and do not").first.wait_for()
    assert page.locator(".js-plotly-plot .scatterlayer .trace").count() >= 9
    page.get_by_label("server", exact=True).select_option("s3")
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .scatterlayer .trace').length === 3")
    wait_until(page, lambda: "server: s3" in kept_of(jupyter))  # a choice is shown first, then kept
    page.locator('[data-key="copy"]').first.click()
    page.get_by_text("copied", exact=True).wait_for()
    assert "notebook: 20_overview" in page.evaluate("() => navigator.clipboard.readText()")
    page.get_by_label("server", exact=True).select_option("* (all)")
    wait_until(page, lambda: "server: s3" not in kept_of(jupyter))  # or the next notebook begins with s3
    assert clipped(page) == []
    jupyter.pages.shot(page, "20_overview")
    assert lightness(page) == [False, True]
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    page.wait_for_timeout(300)
    assert lightness(page) == [True, False]
    done(jupyter, page, "20_overview-dark")


def kept_of(jupyter: Lab) -> str:
    """What is kept with the case of the server, as text; nothing while nobody chose."""
    path = jupyter.folder / "case" / "parameters.yaml"
    return path.read_text() if path.exists() else ""


def wait_until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait for something that is on this machine and not on the page."""
    until = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < until
        page.wait_for_timeout(50)


def lightness(page: Any) -> list[bool]:
    """Whether the letters of a view, and what they stand on, are light."""
    colours = page.evaluate(
        "() => [getComputedStyle(document.querySelector('.wb')).color,"
        " getComputedStyle(document.querySelector('.wb .wb-box')).fill]"
    )
    return [sum(map(int, re.findall(r"[0-9]+", one)[:3])) > 382 for one in colours]


def clipped(page: Any) -> list[str]:
    """Texts that reach over an edge of the page."""
    found: list[str] = page.evaluate(
        "() => Array.from(document.querySelectorAll('.wb svg text, .wb button, .wb h3, .wb p, .wb label, .widget-label'))"
        ".filter((one) => { const box = one.getBoundingClientRect();"
        " return box.width && (box.right > innerWidth || box.left < 0); })"
        ".map((one) => one.textContent)"
    )
    return found


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
    assert clipped(page) == []
    done(jupyter, page, "23_missed_changes")


def test_where_a_session_begins_and_each_step_of_it_is_that_of_the_replay(jupyter: Lab) -> None:
    case = jupyter.folder / "lags"
    shutil.copytree(case_of(LAGS).folder, case)
    page = ran(jupyter, "21_anchor", case_folder=str(case), supplier="s1", consumer="s2")
    page.get_by_text("rule set design: the candidates").wait_for()
    session = replayed("s1", "s2")
    skip = next(at for at, step in enumerate(session.steps) if step.outcome not in DELIVERED)
    row = page.locator("tr[aria-current=true]")
    for at in range(4):
        here = session.steps[at]
        row.get_by_text(here.position, exact=True).wait_for()
        assert OUTCOMES[here.outcome] in row.inner_text()
        page.locator('[data-key="step"]').click()
        row.get_by_text(session.steps[at + 1].position, exact=True).wait_for()
    page.locator('[data-key="back"]').click()
    row.get_by_text(session.steps[3].position, exact=True).wait_for()
    page.locator('[data-key="first_skip"]').click()
    row.get_by_text(session.steps[skip].position, exact=True).wait_for()
    assert OUTCOMES[session.steps[skip].outcome] in row.inner_text()
    says = Sending.says[session.steps[skip].rule]
    page.get_by_text(says).last.wait_for()
    page.locator('[data-key="end"]').click()
    row.get_by_text(session.steps[-1].position, exact=True).wait_for()
    page.locator('[data-key="start"]').click()
    page.locator('[data-key="speed-8"]').click()
    page.locator('[data-key="run"]').click()
    page.wait_for_function("() => parseInt(document.querySelector('.wb-stepper-place').textContent.slice(7)) > 5")
    page.locator('[data-key="run"]').click()
    page.locator('[data-key="run"]').get_by_text("Run").wait_for()
    page.wait_for_timeout(300)
    at = int(page.locator(".wb-stepper-place").inner_text().split()[1]) - 1
    row.get_by_text(session.steps[at].position, exact=True).wait_for()
    done(jupyter, page, "21_anchor")


def replayed(supplier: str, consumer: str) -> Session:
    """The same session by the exact replay, from the records of the changelog."""
    incident = incident_of(LAGS)
    sides = {one.server: one for one in incident.topology.replicas}
    log = incident.log_of(sides[supplier])
    assert log is not None
    records = SortedLog(log.records(Bound("0" * 20, True), None), incident.system.origin_of, log.marks)
    return replay(Sending(), records, sides[supplier].vector, sides[consumer].vector, sides[consumer].origin or "")


def test_where_a_session_stops(jupyter: Lab) -> None:
    page = ran(jupyter, "22_stop_csn", case_folder=str(jupyter.folder / "lags"), supplier="s1", consumer="s2")
    place = page.locator(".wb-stepper-place")
    page.locator('[data-key="load"]').click()
    place.get_by_text("record 6").wait_for()  # the second buffer of five
    page.get_by_label("per buffer").fill("20")
    page.get_by_label("per buffer").press("Enter")
    place.get_by_text("record 1", exact=False).wait_for()
    page.locator('[data-key="load"]').click()
    place.get_by_text("record 21").wait_for()
    done(jupyter, page, "22_stop_csn")


def test_the_pending_list(jupyter: Lab) -> None:
    page = ran(jupyter, "24_pending_list")
    page.get_by_text("s1: operations as its logs show them").wait_for()
    page.get_by_label("example").select_option(index=4)
    page.get_by_text("what they claim in the end is not the same").wait_for()
    done(jupyter, page, "24_pending_list")


def test_pieces_of_transactions_by_mouse_and_keyboard(jupyter: Lab) -> None:
    shutil.copytree(case_of("drizzle-fleet").folder, jupyter.folder / "stream")
    page = ran(jupyter, "32_transactions", case_folder=str(jupyter.folder / "stream"), server="replica2")
    page.locator('[data-key="lane-0"]').click()
    page.get_by_text("transaction 789 of origin 1, as replica2 has it").wait_for()
    page.get_by_text("may have to undo 27 rows").wait_for()
    page.locator('[data-key="lane-1"]').focus()
    page.keyboard.press("Enter")
    page.get_by_text("125 rows came, and no end.").wait_for()
    page.get_by_text("rolled back at its source: to be discarded").wait_for()
    page.locator('[data-key="table-0"]').click()
    page.locator("h3", has_text="test.person").wait_for()
    page.get_by_label("which").select_option(index=2)
    page.locator("h3 .wb-plain", has_text="all, in the order in which they began").wait_for()
    assert clipped(page) == []
    done(jupyter, page, "32_transactions")


def test_a_tree_of_tiers_by_mouse_and_keyboard(jupyter: Lab) -> None:
    shutil.copytree(case_of_tiers().folder, jupyter.folder / "tiers")
    page = ran(jupyter, "33_physical_tiers", case_folder=str(jupyter.folder / "tiers"))
    page.locator('[data-key="node-2"]').click()
    page.get_by_role("heading", name="shopdb_dr@r4").wait_for()
    page.locator('[data-key="node-6"]').focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="If it asks the registry for a source now").wait_for()
    page.get_by_text("needs 4: shopdb_dr@r5 has it").first.wait_for()
    page.get_by_label("which node", exact=True).select_option("shopdb_ro@r1")
    page.locator('[data-key="add"]').click()
    page.get_by_text("shopdb_dr@r4 is offered nobody").wait_for()
    page.locator(".wb-outline li", has_text="shopdb_dr@r4 hangs on no source").wait_for()
    page.get_by_label("what is changed").select_option("move")
    page.get_by_label("which node", exact=True).select_option("shopdb_dr@r4")
    page.get_by_label("under which node it is moved").select_option("shopdb_dr@r5")
    page.locator('[data-key="add"]').click()
    field = page.get_by_label("changes, with a semicolon between them")
    page.wait_for_function(
        "() => document.querySelector('[data-key=changes]').value === "
        "'lose shopdb_ro@r1; move shopdb_dr@r4 under shopdb_dr@r5'"
    )
    field.fill("lose everything")
    field.press("Enter")
    page.get_by_text("this is no change of a tree: lose everything").wait_for()
    assert clipped(page) == []
    done(jupyter, page, "33_physical_tiers")


def test_the_checks(jupyter: Lab) -> None:
    page = ran(jupyter, "50_checks")
    page.get_by_text("0 of 1 clean").wait_for()
    page.locator('[data-key="row-0"]').click()
    page.get_by_text("There is no baseline to hold it against.").wait_for()
    done(jupyter, page, "50_checks")


def test_loading_shows_what_was_recognised_and_read(jupyter: Lab) -> None:
    page = ran(jupyter, "10_load", case_folder=str(jupyter.folder / "loaded"))
    page.get_by_text("files read").first.wait_for()
    # Each table is set up when its script has come: until all are, the first search field may be that of another one.
    page.wait_for_function(
        "() => { const all = document.querySelectorAll('.jp-OutputArea table[id]');"
        " return all.length >= 3 && [...all].every((one) => one.closest('.dt-container')); }"
    )
    page.locator("input[type=search]").first.fill("s3.changelog")
    page.wait_for_function("() => document.querySelector('table.dataTable tbody').rows.length === 2")
    done(jupyter, page, "10_load")


def test_a_load_is_cancelled_by_its_button_and_changes_nothing(jupyter: Lab) -> None:
    folder = jupyter.folder / "much"
    generate(folder, 200_000, 1)
    page = jupyter.open("10_load.ipynb", case_folder=str(jupyter.folder / "never"), snapshots=[str(folder)])
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    page.locator('[data-key="cancel"]').click()
    page.get_by_text("Problem: cancelled: nothing was changed").wait_for()
    assert not (jupyter.folder / "never").exists()
    done(jupyter, page, "10_load-cancelled")


def test_a_repair_is_rehearsed_and_only_the_names_of_the_servers_enable_the_button(jupyter: Lab) -> None:
    nobody = [f"{name}=ldap://127.0.0.1:1" for name in ("s1", "s2", "s3")]
    page = ran(jupyter, "40_repair", urls=nobody)
    page.get_by_text("NOTHING WAS CHANGED").wait_for()
    button, fields = page.locator('[data-key="apply"]'), page.locator('[data-key^="name-"]')
    names = [page.locator(".wb-row > .wb-name").nth(at).inner_text() for at in range(fields.count())]
    assert names
    assert button.is_disabled()
    for name, field in zip(names, fields.all(), strict=True):
        for typed in ("", name[:-1], name.upper(), f" {name}", f"{name} "):
            field.fill(typed)
            assert button.is_disabled(), typed
        field.fill(name)
    assert button.is_enabled()
    page.locator('[data-key="rehearse"]').click()
    page.get_by_text("rehearsed on the model, no server was contacted").wait_for()
    page.get_by_text("NOTHING WAS CHANGED").wait_for()
    assert button.is_disabled()  # what was typed was typed for what was shown before
    assert not (jupyter.folder / "case" / "journal.jsonl").exists()
    assert clipped(page) == []
    done(jupyter, page, "40_repair")


def test_what_a_repair_takes_for_granted_is_ticked_before_its_button_is_enabled(jupyter: Lab) -> None:
    case = case_of_streams(jupyter.folder / "assumed", STREAMS["only one log has the start of that server"])
    unreachable = [f"{name}=mysql://127.0.0.1:1" for name in "abc"]
    page = ran(jupyter, "40_repair", case_folder=str(case.folder), urls=unreachable)
    page.get_by_text("NOTHING WAS CHANGED").wait_for()
    button, box = page.locator('[data-key="apply"]'), page.locator('[data-key="assume-source_by_its_start"]')
    for at, field in enumerate(page.locator('[data-key^="name-"]').all()):
        field.fill(page.locator(".wb-row > .wb-name").nth(at).inner_text())
    assert button.is_disabled()
    page.get_by_text("the server whose log alone begins with a start is the source").last.click()
    assert box.is_checked() and button.is_enabled()
    box.uncheck()
    assert button.is_disabled()
    done(jupyter, page, "40_repair-assumed")


def test_the_report_is_whole_and_changes_nothing(jupyter: Lab) -> None:
    before = everything(jupyter.folder / "case")
    page = ran(jupyter, "60_report")
    page.get_by_text("12 changes are MISSING on s3").first.wait_for()
    page.get_by_text("The journal of this case is empty").wait_for()
    assert page.locator(".dt-container").count() == 1
    assert everything(jupyter.folder / "case") == before
    done(jupyter, page, "60_report")


def test_hostile_names_stay_text_in_jupyterlab(jupyter: Lab) -> None:
    snapshots = poisoned_incident(INCIDENT, jupyter.folder / "poisoned")
    case = Case.create(jupyter.folder / "hostile")
    case.load(snapshots)
    assert [row["server"] for row in Incident(case).found["missing"]] == [f"{IN_NAMES[1]}s3"] * 12
    given = {
        "10_load": {"case_folder": str(jupyter.folder / "hostile-loaded"), "snapshots": list(map(str, snapshots))},
        "20_overview": {"case_folder": str(case.folder)},
    }
    for name, parameters in given.items():
        page = ran(jupyter, name, **parameters)
        for key in ("link-1", "cell-2-0", "row-0"):
            for one in page.locator(f'[data-key="{key}"]').all():
                one.click()
        names = page.locator(".jp-OutputArea").get_by_text(IN_NAMES[0])
        assert [one for one in names.all() if one.is_visible()], "the names are shown, as text"
        live = page.evaluate(
            "() => Array.from(document.querySelectorAll('.jp-OutputArea *')).filter((one) => one.matches("
            "'img[src=x], script:not([type]), iframe, object, b, [onload], [onerror], a[href^=javascript]'))"
            ".map((one) => one.outerHTML)"
        )
        assert live == []
        assert page.evaluate("() => window.hit === undefined")
        if name == "20_overview":  # Plotly takes markup for its own, and what stands between two `$` for a formula
            lines = page.locator(".js-plotly-plot .legendtext").all_text_contents()
            assert set(lines) == {
                f"{IN_NAMES[at - 1]}s{at + 1}: origin {origin}" for at in range(3) for origin in "123"
            }
        done(jupyter, page, f"{name}-hostile")


# --- a new user


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it was checked out, with notebooks of its own: what is saved there reaches no other."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("workbench", "widgets", "tests", "docs"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return folder


WORKBENCH = (sys.executable, "-c", "from workbench.cli import main; main()")


@contextmanager
def told_address(project: Path, *words: str) -> Iterator[str]:
    """What `workbench lab ...` prints as the address of its pages."""
    (project / "config").mkdir(exist_ok=True)
    (project / "config" / "jupyter_lab_config.json").write_text('{"LabApp": {"expose_app_in_browser": true}}')
    port = free_port()
    own = {name: str(project / name.lower()) for name in ("JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")}
    own |= {"JUPYTERLAB_WORKSPACES_DIR": str(project / "spaces"), "JUPYTER_CONFIG_DIR": str(project / "config")}
    log = project / f"{port}.log"
    command = [*WORKBENCH, "lab", *words, "--no-browser", "--port", str(port)]
    with started(command, f"http://127.0.0.1:{port}", log, project, PYTHONPATH=str(project), **own):
        until = time.monotonic() + 60
        while not (found := re.search(rf"http://127\.0\.0\.1:{port}/\S*token=\w+", log.read_text())):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        yield found[0]


def test_a_new_user_comes_to_the_end_of_the_tour_and_leaves_no_trace_in_the_notebook(
    pages: Pages, project: Path
) -> None:
    stored = (project / "notebooks" / "00_tour.ipynb").read_bytes()
    with told_address(project) as address:
        page = pages.new(address)
        page.wait_for_function("() => window.jupyterapp !== undefined")
        opened = Lab(address, "", project, pages)
        page.evaluate("async () => { await window.jupyterapp.restored; }")
        page.evaluate(OPEN, "00_tour.ipynb")  # open already: waits until its kernel is there
        assert page.locator(".jp-Notification-Toast-Popover, .Toastify__toast, .jp-Dialog").count() == 0
        assert not [error for cell in opened.run(page) for error in cell["errors"]]
        page.get_by_text("12 changes are MISSING on s3").first.wait_for()
        page.get_by_text("7 entries differ").wait_for()
        page.locator('[data-key="rehearse"]').click()
        page.get_by_text("rehearsed on the model, no server was contacted").wait_for()
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_timeout(500)
        pages.shot(page, "00_tour")
        page.close()
    assert (project / "notebooks" / "00_tour.ipynb").read_bytes() == stored
    assert (project / "demo-case" / "case.yaml").exists()
    assert not pages.asked_outside


def test_two_notebooks_are_pages_to_read(pages: Pages, project: Path) -> None:
    case = project / "read"
    shutil.copytree(case_of(LOST).folder, case)
    before = everything(case)
    with told_address(project, str(case), "--voila") as address:
        page = pages.new(address)
        page.get_by_text("23_missed_changes").wait_for()
        base, _, token = address.partition("/?")
        for name, there in (("20_overview", "12 lost"), ("23_missed_changes", "12 missing")):
            page.goto(f"{base}/voila/render/{name}.ipynb?{token}")  # it answers when the notebook has run
            page.get_by_text(there).first.wait_for()
            assert page.get_by_text("from widgets import").count() == 0
            page.get_by_label("server", exact=True).select_option("s2")
            page.get_by_text("s2 waits for 1 change of origin 3").first.wait_for()
            pages.shot(page, f"voila-{name}")
        page.close()
    assert everything(case) == before
    assert not pages.asked_outside


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(10))
def test_ten_times_in_a_row(jupyter: Lab, turn: int) -> None:
    for path in sorted((ROOT / "notebooks").glob("[2-6]*.ipynb")):
        name = path.stem
        page = ran(jupyter, name)
        page.locator(".wb:visible").first.wait_for()
        done(jupyter, page, f"{name}-again")
