"""Entries that a server still has because it missed their renaming, so that a later deletion did not find them.

read missed    uid=anna -> uid=anne
then came      delete uid=anne      answered with success, and uid=anna stays
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.rules.contents import name_of
from workbench.rules.verdicts import ENTRIES_LACK

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

RENAME_MISSED = "it missed the renaming of the entry, so that the deletion did not find it"


def left_by_missed_renames(context: DetectorContext) -> set[tuple[str, str | None, str]]:
    """Server, suffix and deletion, where the server has the entry still under the name of before a renaming that it missed."""
    renamed = {
        (row["server"], row["suffix"], name_of(row["target"])): row["position"]
        for row in context.verdicts.missing
        if row["operation"] == "modrdn" and row["target"] and row["rule"] != ENTRIES_LACK
    }
    show = context.topology.system.show
    found = set()
    for contents in context.verdicts.contents if renamed else ():
        for difference in contents.differences:
            deletion = show(difference.position) if difference.position and not difference.attribute else ""
            for server in difference.servers if deletion else ():
                held = contents.held[difference.entry].get(server)
                before = renamed.get((server, contents.suffix, name_of(held.target))) if held else None
                if before and before < deletion:
                    found.add((server, contents.suffix, deletion))
    return found
