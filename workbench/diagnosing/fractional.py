"""Attributes that links leave out, and which servers therefore need not have them.

a-to-h leaves out mail, and is the only link to h                     h, and what h feeds, need not have it
a-to-h leaves out mail, b-to-h sends it                               h should have it, and has what b sent first: `by_luck`
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.fleet.topology import Link, Replica
from workbench.model import step

_Ways = Mapping[str, Sequence[tuple[Link, frozenset[str]]]]


@dataclass
class Fractional:
    """The links of one suffix, with what each leaves out.

    replicas  the servers in question
    links     all links of the suffix
    rows      what the files of the snapshot say of links
    """

    replicas: Sequence[Replica]
    links: Sequence[Link]
    rows: Iterable[Mapping[str, Any]]

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

    def by_luck(self, server: str) -> dict[str, frozenset[str]]:
        """The links to a server that leave out what another link sends there, each with these attributes."""
        some = self._coming.get(server, ())
        need_not = self.need_not.get(server, frozenset())
        return {link.name: out - need_not for link, out in some if out - need_not}

    def alike_first(self, server: str) -> Iterator[Mapping[str, str | None]]:
        """The step that goes before any other one where the links to a server do not leave out the same."""
        if luck := self.by_luck(server):
            leave = "leaves" if len(luck) == 1 else "leave"
            each = ", ".join(f"{name} ({', '.join(sorted(left_out))})" for name, left_out in luck.items())
            yield step(
                f"first have all agreements to {server} leave out the same: {each} {leave} out what another one sends",
                "what the server gets depends on which of them comes first, also of what is written once more",
            )
