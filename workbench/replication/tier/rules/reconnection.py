"""What happens when a node of a tier connects to its source: may it, do their logs meet, and where is the log cut back to?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.replication.tier.rules.tiers import Lsn

UNKNOWN_CLASS = "unknown"
_CLASSES = {UNKNOWN_CLASS: 0, "test": 1, "fuzz": 1, "integration": 1, "alpha": 2, "beta": 3, "uat": 3, "prod": 4}
CLASSES = tuple(_CLASSES)
"""Classes of machines, from the lowest to the highest; some names stand for the same one."""


def allowed_source(mine: str, of_source: str) -> bool:
    """Whether a node of one class may pull from one of the other: from its own or a higher one, production never from below.

    >>> allowed_source("beta", "prod"), allowed_source("prod", "uat"), allowed_source("beta", "uat")
    (True, False, True)
    """
    return _CLASSES[mine] <= _CLASSES[of_source]


def overlaps(source_first: Lsn, source_last: Lsn, first: Lsn, last: Lsn, most_files_ahead: int = 0) -> bool:
    """Whether the source can serve a node with this log: the two ranges meet.

    most_files_ahead  how many files the node may be ahead, which it then has to give up; 0: any number
    """
    if most_files_ahead and last[0] - source_last[0] > most_files_ahead:
        return False
    return source_first <= last and first <= source_last


@dataclass(frozen=True)
class Record:
    """A record of a log, as a match is looked for.

    digest   of its content; equal content has an equal digest
    commits  it is a commit or a checkpoint: only these are matched
    """

    lsn: Lsn
    digest: str
    commits: bool = True
    generation: int | None = None


@dataclass(frozen=True)
class Rewind:
    """Where a node goes on after it has connected.

    match   the newest commit that both have alike; None: there is none, and nothing tells how far back to go
    cut     the node's own records behind it, which it throws away
    why     empty, or why it cannot go on
    """

    match: Record | None
    cut: tuple[Record, ...]
    why: str = ""


def rewind(mine: Sequence[Record], of_source: Iterable[Record], spares_prefix: bool = False) -> Rewind:
    """The match point of two logs, and what the node cuts off behind it.

    spares_prefix  of newer builds: a log that is whole a beginning of the source's is not cut
    """
    theirs = {record.lsn: record.digest for record in of_source}
    alike = [record for record in mine if theirs.get(record.lsn) == record.digest]
    oldest = min(theirs, default=(0, 0))
    if spares_prefix and alike and len(alike) == sum(record.lsn >= oldest for record in mine):
        return Rewind(max(alike, key=_place), ())
    match = max((record for record in alike if record.commits), key=_place, default=None)
    if match is None:
        return Rewind(None, (), "no commit is the same in both logs: a copy is needed")
    return Rewind(match, tuple(sorted((record for record in mine if record.lsn > match.lsn), key=_place)))


def _place(record: Record) -> Lsn:
    return record.lsn
