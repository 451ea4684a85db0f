"""Write the files of the small incidents anew: `python tests/build_incidents.py [FOLDER]`. The truth of each is written by hand.

SYSTEM/NAME/expect.json stays as it is; what else lies in the folder of an incident is written over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import comdb2_incidents
import drizzle_incidents
import kanidm_incidents

FOLDER = Path(__file__).parent / "incidents"

Files = Mapping[str, bytes] | Callable[[Path], object]

SYSTEMS: Mapping[str, Mapping[str, Files]] = {
    "comdb2": comdb2_incidents.INCIDENTS,
    "drizzle": drizzle_incidents.INCIDENTS,
    "kanidm": kanidm_incidents.INCIDENTS,
}
"""System -> incident -> its files by name, or what writes them into a folder."""


def build(into: Path) -> None:
    """Write all files of all incidents."""
    for system, incidents in SYSTEMS.items():
        for name, files in incidents.items():
            folder = into / system / name
            folder.mkdir(parents=True, exist_ok=True)
            if callable(files):
                files(folder)
                continue
            for file, data in files.items():
                (folder / file).write_bytes(data)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
