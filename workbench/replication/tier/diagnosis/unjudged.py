"""Why nothing tells what a node lacks, of its whole log or behind the place up to which it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.replication.tier.diagnosis.generations import older_source
from workbench.replication.tier.rules import conditions
from workbench.replication.tier.rules.tiers import Lsn

if TYPE_CHECKING:
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

NO_ANSWER, OTHER_HISTORY, HOLE_BEFORE, UNREAD = "no_answer", "other_history", "hole_before", "unread"
SOURCE_UNSEEN = "source_not_collected"
PARTED_BEFORE, NOT_ELECTED, TWO_SOURCES, GUESSED = "parted_before", "not_elected", "two_sources", "source_untold"
WENT_BACK = "source_went_back"
UNKNOWN_SAYS = {
    UNREAD: "lines of the dump of its log could not be read, and nothing else tells how far it is: it may have this",
    HOLE_BEFORE: "its log lacked this in an earlier snapshot, and what was collected of it since begins behind the place",
    PARTED_BEFORE: "its log had other records there in an earlier snapshot, and nothing shows that it cut them off since",
    OTHER_HISTORY: "its newest commit is of a newer generation than that of its source, which is further: two histories",
    NOT_ELECTED: "its newest commit is of an older generation than that of a node of its source which is no further: two "
    "histories, and nothing tells where they part",
    TWO_SOURCES: "it is in doubt which of two sources the node follows, and so what it lacks",
    WENT_BACK: "the log above it went back in an earlier snapshot, and nothing shows that the node cut off what was lost there: "
    "from where on the two logs part nothing tells",
    GUESSED: "it answers, and no table and no setting that was collected says which source it follows, if any",
    SOURCE_UNSEEN: "nothing of its source was collected: what that has nothing tells",
    NO_ANSWER: "the node did not answer: nothing tells whether it has more than it reported last",
    conditions.CUT_BACK: "the node cut its log back after its last report: nothing tells how far it is since",
}


def why_unjudged(tiers: Tiers, name: str) -> str | None:
    """Why nothing tells what a node lacks, wherever its log ends; None: its end tells."""
    if name in tiers.not_elected:
        return NOT_ELECTED
    if name in tiers.guessed:
        return GUESSED
    if name in tiers.doubts:
        return TWO_SOURCES
    return WENT_BACK if name in tiers.last_holders and not tiers.logs.beside_source(name) else None


def why_unknown_behind(tiers: Tiers, name: str, last: Lsn) -> str | None:
    """Why nothing tells what a node lacks behind the last place that is known of it; None: it lacks all behind that."""
    if tiers.seen.answered(name) is False and not known_to_end_at(tiers, name, last):
        return NO_ANSWER
    of_source = name in tiers.roots(tiers.source_of(name) or "")
    if not of_source and tiers.logs.cut_back(name) is None and older_source(tiers, name) is not None:
        return OTHER_HISTORY
    if name in tiers.seen.cut_since:
        return conditions.CUT_BACK
    span = tiers.logs.span(name)
    of_dump = span is not None and span[1] == last and tiers.seen.probed(name) is None
    return UNREAD if of_dump and any(one.rejected for one in tiers.logs.inputs[name]) else None


def known_to_end_at(tiers: Tiers, name: str, last: Lsn) -> bool:
    """Whether the files of a node that does not answer show that it has nothing behind that place."""
    files = tiers.seen.files.get(name, {})
    # A record is at most as long as what stands behind its beginning in the newest file.
    return bool(files) and max(files) == last[0]
