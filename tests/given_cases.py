"""The worked cases that came with the contracts, whole, as they were given."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"


def given_cases(name: str) -> Iterator[dict[str, Any]]:
    """The cases of one file: `id`, `kind`, `inputs` and what must come out, `expected`."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
