"""Worked what-if cases against the answers to them."""

from __future__ import annotations

import json
from typing import Any

from workbench.scenarios import evaluate


def disagreements(cases: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(id, key, expected, got) of every key that is not as expected; compared as JSON, where true is not 1."""
    found: list[tuple[Any, ...]] = []
    for case, said in zip(cases, evaluate(cases), strict=True):
        if "error" in said:
            found.append((case["id"], "error", None, said["error"]))
            continue
        for key, expected in case["expected"].items():
            got = said["result"].get(key, "absent")
            if json.dumps(got, sort_keys=True) != json.dumps(expected, sort_keys=True):
                found.append((case["id"], key, expected, got))
    return found
