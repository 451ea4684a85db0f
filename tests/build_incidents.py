"""Write the files of the small incidents anew: `python tests/build_incidents.py [FOLDER]`. The truth of each is written by hand.

SYSTEM/NAME/expect.json stays as it is; what else lies in the folder of an incident is written over.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import drizzle_incidents

FOLDER = Path(__file__).parent / "incidents"

SYSTEMS: Mapping[str, Mapping[str, Mapping[str, bytes]]] = {
    "drizzle": drizzle_incidents.INCIDENTS,
}
"""System -> incident -> file -> what it holds."""


def build(into: Path) -> None:
    """Write all files of all incidents."""
    for system, incidents in SYSTEMS.items():
        for name, files in incidents.items():
            for file, data in files.items():
                path = into / system / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
