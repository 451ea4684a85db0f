"""Recorded snapshots of a fleet that pulls a physical log in tiers, as cases, and trees of any size that nobody recorded."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from incident_samples import FOLDER

from workbench import Case
from workbench.diagnosis.incident import Incident

TIERS = FOLDER / "comdb2-tiers"
HEALTHY, FROZEN, DELAYED = "00_healthy", "01_stopped_and_hung", "05_configured_delay"


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tiers-")


@cache
def case_of_tiers(*names: str) -> Case:
    """These snapshots, in their order; nobody loads more into them."""
    names = names or (HEALTHY, FROZEN)
    case = Case.create(Path(_kept().name) / "-".join(names))
    case.load([TIERS / name for name in names])
    return case


def tiers_incident(*names: str) -> Incident:
    """The same, diagnosed anew: what a test chooses in it reaches no other."""
    return Incident(case_of_tiers(*names))


def a_node(name: str, parent: str | None, tier: int | None, **more: Any) -> dict[str, Any]:
    """A node of a tree as the diagnosis tells it: healthy, in file 9, with the files 8 and 9."""
    return {
        "node": name,
        "state": "Active",
        "tier": tier,
        "parent": parent,
        "children": 0,
        "keepalive_age_s": 3.0,
        "registry_lsn": "{9:1000}",
        "firstfile": "8",
        "registry_lag_bytes": 0,
        "node_first": [8, 28],
        "node_last": [9, 1000],
        "actual_lag_bytes": 0,
        "probe": "ok",
        "registry_lag_bytes_nominal": 0,
        "actual_lag_bytes_nominal": 0,
        "files_needed_from": 9,
        "lag_is_at_least": False,
        "lag_s": None,
        "delay_s": None,
        "condition": "healthy",
        "says": "it follows its source",
        "gap": None,
        "served_by": [],
        "served_by_silent": [],
        "lost_in_s": None,
        "files": [[8, 2000], [9, 1000]],
        "holds_log": False,
        "offered": [],
        **more,
    }


def a_tree(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tree of these nodes, as the diagnosis tells it."""
    for one in nodes:
        one["children"] = sum(other["parent"] == one["node"] for other in nodes)
    return {
        "source": "db",
        "fanout": 2,
        "source_head_registry": [9, 1000],
        "source_head_actual": [9, 1000],
        "retention": {"file": None, "held_by": [], "says": "nothing is held"},
        "nodes": list(nodes),
        **more,
    }
