"""Consumers without whole data, by what the agreements that lead to them keep of their last total initialisation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workbench.rules.initialisations import Initialisation, unfilled
from workbench.systems.ds389.logged.lines import WITH_TEXT, session_logs

if TYPE_CHECKING:
    from workbench.cases.case import Case
    from workbench.fleet.topology import Link

Row = Mapping[str, Any]
LinkKey = tuple[str, str | None, str]
"""Supplier, suffix and name."""

_OFFLINE = ("import_end", "restore")
"""Codes of messages that tell of data out of a file."""
_ENDS_WITH_IT = timedelta(seconds=60)
"""What a consumer logs so soon is the end of the initialisation that broke off."""


def left_unfilled(
    case: Case, links: Iterable[Link], statuses: Mapping[LinkKey, Row]
) -> dict[tuple[str, str | None], Initialisation]:
    """(consumer, suffix) -> its last initialisation, which ended badly, where nothing tells that it was filled since.

    A consumer of which no file tells which server it is stands under its address.
    """
    of: dict[str | None, list[Initialisation]] = {}
    for link in links:
        consumer = link.consumer or (link.failure.means if link.failure else None) or link.address
        row = statuses.get((link.supplier, link.suffix, link.name), {})
        if consumer:
            times = row.get("init_started_at"), row.get("init_ended_at")
            session = row.get("ended_at") if row.get("status_code") == 0 and row.get("state") != "red" else None
            told = Initialisation(link.supplier, link.name, consumer, *times, row.get("init_outcome"), session)
            # An agreement that never initialised anybody tells nothing, unless a session of it succeeded.
            if told.at or told.outcome or session:
                of.setdefault(link.suffix, []).append(told)
    found = {(name, suffix): one for suffix, some in of.items() for name, one in unfilled(some).items()}
    return {key: one for key, one in found.items() if not _filled_from_a_file(case, key[0], one)}


def _filled_from_a_file(case: Case, server: str, since: Initialisation) -> bool:
    """True if the server's own log tells of an import or a restore after that."""
    if since.at is None:
        return False
    upto = since.at + _ENDS_WITH_IT
    return any(
        place.at is not None and place.at > upto
        for log in session_logs(case)
        if log.server == server
        for _, place in log.lines(_OFFLINE, WITH_TEXT)
    )
