"""Total initialisations as the links that did them keep them: which servers are left without whole data."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

SUCCEEDED, ABORTED, FAILED = "succeeded", "aborted", "failed"
"""How an initialisation ended: all was sent; it broke off while data was sent; it did not begin to send."""


class Initialisation(NamedTuple):
    """What one link keeps of its last total initialisation, and of its last session.

    consumer  the server, or its address if no file tells which server it is
    outcome   SUCCEEDED, ABORTED or FAILED; None: it goes on, or nothing tells how it ended
    session   when its last session ended, if that one succeeded; None: it did not, or there was none
    """

    supplier: str
    link: str
    consumer: str
    began: datetime | None
    ended: datetime | None
    outcome: str | None
    session: datetime | None = None

    @property
    def at(self) -> datetime | None:
        """When it ended, else when it began."""
        return self.ended or self.began


def unfilled(links: Iterable[Initialisation]) -> dict[str, Initialisation]:
    """Consumer -> the latest initialisation of it that ended badly, where nothing later is known to have filled it.

        s1 -> s3   10:00 aborted       s3: aborted by s1
        s2 -> s3    9:00 succeeded

        s1 -> s3   10:00 aborted       nothing: s2 filled s3 since
        s2 -> s3   11:00 succeeded

    A later session that succeeded says the same as a later initialisation: a consumer without whole data takes none. One
    that began later and goes on, or of which nobody knows how it ended, leaves the question open. One without any time is the
    last word only where no other link ever filled the consumer.
    """
    of: dict[str, list[Initialisation]] = {}
    for one in links:
        of.setdefault(one.consumer, []).append(one)
    found: dict[str, Initialisation] = {}
    for consumer, some in of.items():
        for outcome in (ABORTED, FAILED):  # one that did not begin left the consumer as it was: without whole data
            bad = [one for one in some if one.outcome == outcome and not _filled_since(one, some)]
            if bad:
                found[consumer] = max(bad, key=lambda one: (one.at or _NEVER, one.supplier, one.link))
                break
    return found


_NEVER = datetime.min.replace(tzinfo=UTC)


def _filled_since(bad: Initialisation, others: Iterable[Initialisation]) -> bool:
    """True if the consumer may have been filled after that."""
    for one in others:
        begun = one.began or one.ended
        if one.outcome in (SUCCEEDED, None) and begun and (bad.at is None or begun >= bad.at):
            return True
        if one.outcome == SUCCEEDED and begun is None:
            return True
        if one.session and (bad.at is None or one.session > bad.at):
            return True
    return False
