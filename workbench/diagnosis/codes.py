"""The codes that findings may have: a closed list. Those of one system stand in its `SYSTEM`.

A code is never given a second meaning: people write filters and runbooks for it. A new one is added here, to the contract
and, by `make docs`, to the documentation.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.model import Code, System
from workbench.systems import systems

INFO, WARNING, ERROR = "info", "warning", "error"

GENERAL: Mapping[str, Code] = {
    "UNRELATED_DATA": Code(
        "generation or domain differs: nothing may be exchanged; a warning where new data came while servers were read",
        (WARNING, ERROR),
    ),
    "DUPLICATE_ORIGIN": Code("two servers use one origin", (WARNING, ERROR)),
    "DEAD_ORIGIN": Code(
        "an origin has no server and no link leads to one in the last snapshot, although every linked server was collected",
        (INFO, WARNING),
    ),
    "SUPPLIER_NOT_COLLECTED": Code(
        "changes of an origin arrive, and nothing was collected of the server that makes them; no link leads to it",
        (WARNING,),
    ),
    "CLOCK_AHEAD": Code(
        "positions lie in the future of the server that took them, or clocks disagree beyond the limit",
        (INFO, WARNING, ERROR),
    ),
    "ROLLED_BACK": Code(
        "others hold a change of this server's own origin above all that it knows of itself, or an earlier file of it that pulls "
        "does: its data is of an older state",
        (WARNING, ERROR),
    ),
    "OWN_CHANGES_HIDDEN": Code(
        "rolled back, then wrote again: its lost own changes can no longer be delivered to it", (ERROR,)
    ),
    "VECTOR_AHEAD_OF_LOG": Code(
        "a vector claims an own change that no log of the server holds, and no trimming or initialisation explains it",
        (INFO, WARNING, ERROR),
    ),
    "MISSED_CHANGE": Code("the vector covers changes that the server does not have", (WARNING, ERROR)),
    "CHANGES_THROWN_AWAY": Code(
        "no collected server holds these changes any more: the data of the server that made them were replaced; a warning where "
        "later changes may have replaced all that they wrote",
        (WARNING, ERROR),
    ),
    "PERHAPS_MADE_AGAIN": Code(
        "changes are in no changelog, and the same operations were done again later: nothing tells whether they did the same",
        (INFO,),
    ),
    "PERHAPS_WRITTEN_OVER": Code(
        "no log holds these changes any more, and later ones replaced values of the same entries: perhaps those that they wrote",
        (INFO,),
    ),
    "ERRANT_CHANGE": Code(
        "one log alone has a change, and nothing tells whether the others should have it", (INFO, WARNING)
    ),
    "STRANDED_CHANGE": Code("a server holds own changes that no session will deliver", (WARNING, ERROR)),
    "REINIT_REQUIRED": Code("no server can bring this consumer up to date from a log", (WARNING, ERROR)),
    "PENDING_CHANGES": Code(
        "lag: changes that are not delivered yet; a warning when no log can supply all of them", (INFO, WARNING)
    ),
    "LINK_DISABLED": Code("the link exists but does not run", (WARNING,)),
    "LINK_FAILING": Code(
        "the link is switched on, and no session over it succeeds; a warning where it may end by itself or is closed",
        (WARNING, ERROR),
    ),
    "ENTRIES_DIFFER": Code(
        "collected entries differ although no vector and no log tells why; a warning where nothing but values past replication "
        "is too many",
        (WARNING, ERROR),
    ),
    "STALLED_BUT_GREEN": Code("the status says success while the consumer does not advance", (WARNING,)),
    "UNREADABLE_INPUT": Code(
        "input was rejected, enough to weaken the verdict; info where a server itself wrote lines of its log that are no text",
        (INFO, WARNING),
    ),
}


def codes_of(system: System) -> dict[str, Code]:
    """Every code that a finding about this system may have."""
    return {**GENERAL, **system.codes}


def all_codes() -> dict[str, dict[str, Code]]:
    """The codes of every system: name of the system -> its codes; under the empty name those that all systems have."""
    return {"": dict(GENERAL), **{system.name: dict(system.codes) for system in systems()}}
