"""Servers, cells and links in words, of what `workbench.views.overview` tells as data: for maps, tables and reports alike.

Words are made of data alone, so that a report can replace the names first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def server_says(server: Row) -> str:
    """What a server lacks, in a few words."""
    if not server["collected"]:
        return "not collected"
    return counts_say(server["counts"]) or ("all present" if server["claims"] else "no vector was collected")


def cell_says(cell: Row) -> str:
    """What a server lacks of one origin."""
    return counts_say(cell["counts"]) or ("all present" if cell["claims"] else "claims nothing")


def counts_say(counts: Sequence[Row]) -> str:
    """`2 missing, at least 3 pending`; empty if there is none."""
    return ", ".join(f"{_counted(one)} {one['verdict']}" for one in counts)


def _counted(one: Row) -> str:
    """Of a list that was cut there are more; of a stretch nobody may know how many it has."""
    return f"{one['count']:,}" if one["exact"] else f"at least {one['count']:,}" if one["count"] else "some"


def link_says(link: Row) -> dict[str, str]:
    """What goes over a link: some words for the picture (`label`), and a sentence (`says`)."""
    over = link["over"]
    if over is None and (why := link.get("failing")):
        return {"label": why, "says": f"fails ({why}); its consumer was not collected, or has no vector"}
    if over is None:
        return {"label": "", "says": "its consumer was not collected, or has no vector"}
    waiting, never = over["waiting"], over["never"]
    what = _changes(waiting)
    oldest = f", the oldest made at {over['oldest']}" if over["oldest"] else ""
    if over["stuck"]:
        word = over["stuck"].partition(":")[0].lower()
        return {"label": word, "says": f"{word}: {over['why']}" if over["why"] else word}
    if link["enabled"] is False:
        label = f"off, {waiting:,} wait" if waiting else "off"
        return {"label": label, "says": f"switched off; {what} would go over it{oldest}" if waiting else "switched off"}
    if why := link.get("failing"):
        label = f"{why}, {waiting:,} wait" if waiting else why
        return {
            "label": label,
            "says": f"fails ({why}); {what} would go over it{oldest}" if waiting else f"fails ({why})",
        }
    if never:
        lacks = f"{'' if over['exact'] else 'at least '}{_changes(never)}"
        wait = f"; {what} to send{oldest}" if waiting else ""
        says = f"{link['consumer']} lacks {lacks} that {link['supplier']} holds and will not send{wait}"
        return {"label": f"{never:,}{'' if over['exact'] else '+'} lost", "says": says}
    if waiting:
        return {"label": f"{waiting:,} behind", "says": f"{what} to send{oldest}"}
    return {"label": "", "says": "nothing to send: the consumer claims all that the supplier claims"}


def _changes(count: int) -> str:
    return f"{count:,} {'change' if count == 1 else 'changes'}"
