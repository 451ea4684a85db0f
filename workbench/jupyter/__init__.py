"""What JupyterLab is told when it is started with the notebooks of the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from workbench.demo import PROJECT

SETTINGS = Path(__file__).parent
"""A folder with `overrides.json` (no news, no questions about them) and, for Voilà, a template that needs no network."""

NOTEBOOKS = PROJECT / "notebooks"

OWN = frozenset(
    f"{name}.ipynb"
    for name in (
        *("00_tour", "10_load", "20_overview", "21_anchor", "22_stop_csn", "23_missed_changes", "24_pending_list"),
        *("31_entry_replication", "32_transactions", "33_physical_tiers"),
        *("40_repair", "50_checks", "60_report"),
    )
)
"""The notebooks of the project, by name: what else lies in that folder is somebody's."""


def lab_command(notebooks: Path, *more: str) -> list[str]:
    """The words that start JupyterLab with these notebooks, on this machine only."""
    return [
        *(sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", f"--ServerApp.root_dir={notebooks}"),
        *(f"--LabApp.app_settings_dir={SETTINGS}", "--LabApp.news_url=None"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--ContentsManager.pre_save_hook=workbench.jupyter.saved_without_outputs",
        # In a container the only user is often root; Jupyter then wants to be told that this is meant.
        *(["--allow-root"] if os.geteuid() == 0 else []),
        *more,
    ]


def saved_without_outputs(path: str, model: dict[str, Any], **_: Any) -> None:
    """Called by Jupyter before it saves: the project's own notebooks are stored without outputs.

    They show what is in a case, and the next commit or copy of the project would carry that to others. A notebook under
    another name ("Save Notebook As") keeps what it shows.
    """
    content = model.get("content")
    if model.get("type") != "notebook" or not isinstance(content, dict) or path.strip("/") not in OWN:
        return
    for cell in content.get("cells", []):
        if cell.get("cell_type") == "code":
            cell["outputs"], cell["execution_count"] = [], None
        tags = cell.get("metadata", {}).get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
    content["metadata"] = _METADATA


_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""Of a stored notebook: what a kernel adds (its version, the widgets it had) is not the notebook's."""
