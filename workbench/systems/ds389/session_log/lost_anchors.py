"""Sessions that end with code 15 although the changelog can be read: it has no record of their anchor, as the log says.

b lost its changelog and was started anew      "Can't locate CSN 6b09… in the changelog", then code 15: a restart mends nothing
b was made a supplier while it ran             no changelog is open, code 15: a restart opens it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.rules.link_failures import ANCHOR_LOST, LOG_CLOSED
from workbench.systems.ds389.rules.link_reasons import Cause
from workbench.systems.ds389.session_log.lines import WITH_TEXT

if TYPE_CHECKING:
    from workbench.topology.topology import Link

_NOT_LOCATED, _NOT_OPEN = "anchor_not_located", "changelog_not_open"


def by_its_log(cause: Cause, link: Link, logs: Iterable[Any], links: Iterable[Link]) -> Cause:
    """The cause of a failure; of code 15 that the anchor is lost, where the log of the supplier says so last."""
    alike = [other for other in links if (other.supplier, other.name) == (link.supplier, link.name)]
    if cause.reason != LOG_CLOSED or len(alike) != 1:  # lines name no suffix
        return cause
    last: dict[str, Any] = {}
    for log in (log for log in logs if log.server == link.supplier):
        for row, _ in log.lines((_NOT_LOCATED, _NOT_OPEN), WITH_TEXT):
            if row["code"] == _NOT_OPEN or row["link"] == link.name:
                last = row
    if last.get("code") != _NOT_LOCATED:
        return cause
    which = f" {last['position']}" if last.get("position") else ""
    says = f"the session finds no record of its anchor{which} in the changelog of {link.supplier} (code {cause.code}; its errors "
    return replace(cause, reason=ANCHOR_LOST, says=f"{says}log says so)", short="anchor not in the changelog")
