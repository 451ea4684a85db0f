"""JupyterLab in a real browser: a server with the project's notebooks, and a page that opens, runs and asks them.

The page reaches this machine only: whatever else it asks for is not found, and written down.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from conftest import end

from workbench.jupyter import lab_command

WIDTH, HEIGHT = 1280, 900
RUN_SECONDS = 120

OPEN = """async (path) => {
  const app = window.jupyterapp;
  await app.restored;
  const widget = await app.commands.execute("docmanager:open", {path});
  await widget.context.ready;
  await widget.sessionContext.ready;
  const kernel = widget.sessionContext.session.kernel;
  await kernel.info;
  app.shell.activateById(widget.id);
}"""

_RUN = """async () => {
  const app = window.jupyterapp;
  await app.commands.execute("notebook:run-all-cells");
}"""

_GIVE = """([lines]) => {
  const cells = window.jupyterapp.shell.currentWidget.content.model.cells;
  for (let i = 0; i < cells.length; i++) {
    const cell = cells.get(i);
    if ((cell.getMetadata("tags") || []).includes("parameters"))
      cell.sharedModel.setSource(cell.sharedModel.getSource() + "\\n" + lines);
  }
}"""

_CELLS = """() => {
  const app = window.jupyterapp;
  const cells = app.shell.currentWidget.content.model.cells;
  const found = [];
  for (let i = 0; i < cells.length; i++) {
    const cell = cells.get(i);
    if (cell.type !== "code") continue;
    const outputs = cell.sharedModel.toJSON().outputs;
    found.push({
      count: cell.executionCount,
      errors: outputs.filter((one) => one.output_type === "error").map((one) => one.ename + ": " + one.evalue),
    });
  }
  return found;
}"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(words: list[str], url: str, log: Path, folder: Path | None = None, **environment: str) -> Iterator[None]:
    """A server of ours, until the block ends; the log is shown if it does not come up."""
    with open(log, "wb") as out:
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    try:
        until = time.monotonic() + 120
        while not _answers(url):
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
            time.sleep(0.2)
        yield
    finally:
        end(process)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


class Pages:
    """A browser that finds this machine only. `asked_outside` are the addresses elsewhere that a page asked for.

    Requests are listened to and not taken over: a browser that is taken over keeps no cache, and each page would load and
    compile all of JupyterLab anew.
    """

    def __init__(self, chromium: Any, folder: Path) -> None:
        self.folder = folder
        self.asked_outside: list[str] = []
        self._context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        # What comes at all comes in a second or two, but not on a machine at its limit.
        self._context.set_default_timeout(90_000)
        self._context.grant_permissions(["clipboard-read", "clipboard-write"])
        self._context.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("data", "blob", "about") and url.hostname not in ("127.0.0.1", "localhost"):
            self.asked_outside.append(request.url)

    def new(self, url: str) -> Any:
        """A page at this address."""
        page = self._context.new_page()
        page.goto(url, wait_until="load")
        return page

    def shot(self, page: Any, name: str) -> Path:
        """A picture of the whole page, kept as an artefact of the test."""
        path = self.folder / f"{name}.png"
        page.screenshot(path=str(path))
        return path


class Lab:
    """JupyterLab with copies of the notebooks, so that what is saved there never reaches the project."""

    def __init__(self, url: str, token: str, folder: Path, pages: Pages) -> None:
        self.url, self.token, self.folder, self.pages = url, token, folder, pages
        self._opened = 0

    def open(self, name: str, theme: str = "", **parameters: Any) -> Any:
        """A page of its own with this notebook, its kernel ready; parameters as somebody types them into their cell."""
        self._opened += 1  # a workspace of its own: it opens nothing of the page before
        page = self.pages.new(f"{self.url}/lab/workspaces/page-{self._opened}?token={self.token}")
        page.wait_for_function("() => window.jupyterapp !== undefined")
        page.evaluate("async () => { await window.jupyterapp.restored; }")
        if theme:
            page.evaluate("(name) => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", theme)
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        page.evaluate(OPEN, name)
        if parameters:
            page.evaluate(_GIVE, ["\n".join(f"{key} = {value!r}" for key, value in parameters.items())])
        return page

    def run(self, page: Any) -> list[dict[str, Any]]:
        """Run all cells, wait for the last one, and say how each ended."""
        page.evaluate(_RUN)
        until = time.monotonic() + RUN_SECONDS
        while True:
            cells: list[dict[str, Any]] = page.evaluate(_CELLS)
            if all(cell["count"] for cell in cells) or any(cell["errors"] for cell in cells):
                return cells
            assert time.monotonic() < until, cells
            page.wait_for_timeout(200)


@contextmanager
def lab(folder: Path, pages: Pages, notebooks: Path, **environment: str) -> Iterator[Lab]:
    """A running JupyterLab as `workbench lab` starts it, on copies of the notebooks."""
    copies = folder / "notebooks"
    shutil.copytree(notebooks, copies)
    port, token = free_port(), "of-the-test"
    more = (
        f"--port={port}",
        "--no-browser",
        f"--IdentityProvider.token={token}",
        "--LabApp.expose_app_in_browser=True",
    )
    words = lab_command(copies, *more)
    url = f"http://127.0.0.1:{port}"
    own = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")
    }
    own["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    with started(words, f"{url}/api", folder / "lab.log", **own, **environment):
        yield Lab(url, token, folder, pages)
