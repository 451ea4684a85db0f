"""Attributes that links leave out, and which servers therefore need not have them.

a-to-h leaves out mail, and is the only link to h                     h, and what h feeds, need not have it
a-to-h leaves out mail, b-to-h sends it                               h should have it, and has what b sent first: `by_luck`
a-to-b leaves out mail, b-to-h sends all, a-to-h sends all            the same: by way of b the changes of a come without it
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.model import step
from workbench.topology.topology import Link, Replica

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_Ways = Mapping[str, Sequence[tuple[Link, frozenset[str]]]]


class Unlike(NamedTuple):
    """A link that leaves out what another link sends to the same server. `by`: it leads to the supplier of this one."""

    link: Link
    left_out: frozenset[str]
    by: Link | None = None


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
        """The links on the ways to a server that leave out what comes there on another way; `names`: only these attributes."""
        beside = self.need_not.get(server, frozenset()) | self.not_compared
        makers = {one.server for one in self.replicas}
        found = []
        for link, out in self._coming.get(server, ()):
            left_out = out - beside
            left_out = left_out.intersection(names) if names else left_out
            if link.consumer != server or link.supplier not in makers or link.enabled is False:
                continue
            if left_out:
                found.append(Unlike(link, left_out))
            lacked = self.need_not.get(link.supplier, frozenset()) - beside - out
            found += self._before(link, lacked.intersection(names) if names else lacked)
        return sorted(found, key=lambda one: (one.link.supplier, one.link.name))

    def _before(self, by: Link, lacked: frozenset[str]) -> Iterator[Unlike]:
        """The links that keep these attributes from the supplier of a link: it passes changes on as it got them."""
        without: dict[tuple[str, str], tuple[Link, set[str]]] = {}
        for name in lacked:
            seen, ends = {by.supplier, by.consumer or ""}, [by.supplier]
            while ends:
                for link, out in self._coming.get(ends.pop(), ()):
                    if link.supplier == by.consumer:
                        continue  # what comes from the server itself it has
                    if name in out:
                        without.setdefault((link.supplier, link.name), (link, set()))[1].add(name)
                    elif link.supplier not in seen:
                        seen.add(link.supplier)
                        ends.append(link.supplier)
        yield from (Unlike(link, frozenset(names), by) for link, names in without.values())


def alike_first(context: DetectorContext, server: str, suffix: str | None) -> Iterator[Mapping[str, str | None]]:
    """The steps that go first where the links to a server, or to one that feeds it, do not leave out the same."""
    above = sorted(context.linked.above(server, suffix))
    for contents in context.verdicts.contents:
        if contents.suffix != suffix or all(one.server != server for one in contents.alike.replicas):
            continue
        unlike = {fed: contents.fractional.by_luck(fed) for fed in above}
        for fed, some in unlike.items():
            if direct := [one for one in some if not one.by]:
                yield step(
                    f"first let all agreements to {fed} exclude the same attributes: {unlike_lists(direct)}",
                    f"what {fed} gets depends on which of them comes first, also of what is written once more",
                )
        before = [Unlike(one.link, one.left_out) for some in unlike.values() for one in some if one.by]
        if before := [one for place, one in enumerate(before) if one not in before[:place]]:
            yield step(
                f"first let all agreements on the ways to {server} exclude the same attributes: {_excluding(before)}, "
                "which another way lets through",
                f"what {server} gets depends on which way comes first, also of what is written once more",
            )


def unlike_lists(some: Sequence[Unlike]) -> str:
    """What links exclude and another one to the same server sends, in words."""
    by = any(one.by for one in some)
    return f"{_excluding(some)}, which another {'way lets through' if by else 'one sends'}"


def _excluding(some: Iterable[Unlike]) -> str:
    alike: dict[tuple[str, frozenset[str]], list[str]] = {}
    for one in some:
        about = one.by.name if one.by else "", one.left_out
        alike.setdefault(about, []).append(f"{one.link.name} of {one.link.supplier}")
    return " and ".join(
        f"{' and '.join(names)} {'exclude' if len(names) > 1 else 'excludes'} {', '.join(sorted(left_out))}"
        f"{f' from what comes by {by}' if by else ''}"
        for (by, left_out), names in alike.items()
    )
