"""Attributes that links leave out, and which servers therefore need not have them.

a-to-h leaves out mail, and is the only link to h                     h, and what h feeds, need not have it
a-to-h leaves out mail, b-to-h sends it                               h should have it, and has what b sent first: `by_luck`
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.fleet.topology import Link, Replica
from workbench.model import step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

_Ways = Mapping[str, Sequence[tuple[Link, frozenset[str]]]]


class Unlike(NamedTuple):
    """A link that leaves out what another link sends to the same server."""

    link: Link
    left_out: frozenset[str]


@dataclass
class Fractional:
    """The links of one suffix, with what each leaves out.

    replicas  the servers in question
    links     all links of the suffix
    rows      what the files of the snapshot say of links
    not_compared  attributes that each server writes or computes itself: their lists may differ
    """

    replicas: Sequence[Replica]
    links: Sequence[Link]
    rows: Iterable[Mapping[str, Any]]
    not_compared: frozenset[str] = frozenset()

    @cached_property
    def _coming(self) -> _Ways:
        """Server -> the links that lead to it. What is switched off counts where nothing else leads there."""
        names: dict[tuple[str, str | None, str | None], frozenset[str]] = {}
        for row in self.rows:  # several files tell of a link
            key = row["server"], row["suffix"], row["name"]
            names[key] = names.get(key, frozenset()) | frozenset((row["excluded"] or "").lower().split())
        coming: dict[str, list[tuple[Link, frozenset[str]]]] = {one.server: [] for one in self.replicas}
        for running in (True, False):
            fed = {server for server, some in coming.items() if some}
            for link in self.links:
                out = names.get((link.supplier, link.suffix, link.name), frozenset())
                # That a link which sends all may lead to a server proves nothing.
                if (link.enabled is not False) is running and (link.consumer is not None or out):
                    for server in self._led_to(link) - fed:
                        coming.setdefault(server, []).append((link, out))
        return coming

    def _led_to(self, link: Link) -> set[str]:
        """The servers that a link may lead to.

        Where no file tells its consumer, that is none which makes changes itself, or which the supplier reaches otherwise.
        """
        if link.consumer is not None:
            return {link.consumer}
        reached = {link.supplier, *(one.consumer for one in self.links if one.supplier == link.supplier)}
        return {one.server for one in self.replicas if one.origin is None} - reached - link.unlike

    @cached_property
    def need_not(self) -> dict[str, frozenset[str]]:
        """Server -> the attributes that no way to it lets through: one link on each of them leaves them out."""
        makers = {one.server for one in self.replicas if one.origin}
        every = frozenset().union(*(out for some in self._coming.values() for _, out in some))
        return {
            server: frozenset(name for name in every if not self._comes(server, name, makers))
            for server in self._coming
        }

    def _comes(self, server: str, name: str, makers: Container[str]) -> bool:
        """True if a way leads to the server on which nothing is left out: from one that makes changes, or that no link feeds."""
        seen, ends = {server}, [server]
        while ends:
            at = ends.pop()
            ways = {link.supplier for link, out in self._coming.get(at, ()) if name not in out}
            if not self._coming.get(at) or (at in makers and ways):
                return True
            ends += sorted(ways - seen)
            seen |= ways
        return False

    def by_luck(self, server: str, names: Collection[str] = ()) -> list[Unlike]:
        """The links that lead to a server and leave out what another one sends there; `names`: only these attributes."""
        beside = self.need_not.get(server, frozenset()) | self.not_compared
        makers = {one.server for one in self.replicas}
        found = []
        for link, out in self._coming.get(server, ()):
            left_out = out - beside
            left_out = left_out.intersection(names) if names else left_out
            if left_out and link.consumer == server and link.supplier in makers and link.enabled is not False:
                found.append(Unlike(link, left_out))
        return sorted(found, key=lambda one: (one.link.supplier, one.link.name))


def alike_first(situation: Situation, server: str, suffix: str | None) -> Iterator[Mapping[str, str | None]]:
    """The steps that go first where the links to a server, or to one that feeds it, do not leave out the same."""
    above = sorted(situation.linked.above(server, suffix))
    for contents in situation.verdicts.contents:
        if contents.suffix == suffix and any(one.server == server for one in contents.alike.replicas):
            for fed in above:
                if unlike := contents.fractional.by_luck(fed):
                    yield step(
                        f"first let all agreements to {fed} exclude the same attributes: {unlike_lists(unlike)}",
                        f"what {fed} gets depends on which of them comes first, also of what is written once more",
                    )


def unlike_lists(some: Iterable[Unlike]) -> str:
    """What links exclude and another one to the same server sends, in words."""
    each = (f"{one.link.name} of {one.link.supplier} excludes {', '.join(sorted(one.left_out))}" for one in some)
    return f"{' and '.join(each)}, which another one sends"
