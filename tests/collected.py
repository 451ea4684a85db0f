"""The real files that were collected from servers, in ../shared where it lies beside the checkout; a clone stands alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("WORKBENCH_SHARED", _ROOT.parent / "shared")) / "fixtures" / "ds389"

needs_collected_files = pytest.mark.skipif(
    not SHARED.is_dir(), reason="needs the captured servers in ../shared/fixtures/ds389"
)
