"""What the files of a snapshot say of each agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.intake.links import not_deleted
from workbench.rules.link_failures import LinkKey

if TYPE_CHECKING:
    from workbench.case.case import Case


def statuses_of(case: Case, snapshot: str) -> dict[LinkKey, dict[str, Any]]:
    """What the files of a snapshot say together of each agreement: the columns of the table `links`."""
    found: dict[LinkKey, dict[str, Any]] = {}
    for row in not_deleted(case.inputs, case.arrow("links").to_pylist()):
        if row["snapshot"] == snapshot:
            mine = found.setdefault((row["server"], row["suffix"], row["name"]), {})
            mine |= {key: value for key, value in row.items() if value is not None}
    return found
