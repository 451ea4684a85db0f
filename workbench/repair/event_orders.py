"""The orders of events in which a way of repair would make a server worse, looked for on at most four servers of a case.

Deleting, adding and writing again are changes like any other: they travel over all links, and may overtake each other where
a server refuses one of them. `workbench.rules.interleavings` tries all orders. Here the servers of a model are reduced to
what it can try: the one that writes, one that lacks the entry, and two others, in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations, islice
from typing import Any, Literal

from workbench.rules.interleavings import MOST_SERVERS, Act, Shape, damage, told
from workbench.rules.repair_model import Model

MOST_CHOICES = 60
"""So many choices of other servers are tried for each entry; those that the server without the entry feeds come first."""

Entry = tuple[tuple[Act, ...], str, frozenset[str]]
"""What is done about one entry (on server 0), where, and who lacks what is brought."""


def made_worse(model: Model, effects: Iterable[Mapping[str, Any]]) -> str:
    """The first order found in which a server ends worse than it began, as a clause; empty if there is none."""
    feeds = _feeds(model)
    tried: set[tuple[Shape, tuple[str, ...]]] = set()
    for acts, writer, without in sorted(set(_entries(model, effects)), key=str):
        whole = any(act.kind == "add" for act in acts)
        for names in _choices(model, feeds, writer, without):
            links = _between(feeds, names)
            shape = Shape(
                len(names),
                frozenset((names.index(by), names.index(to)) for by, to in links),
                frozenset(at for at, name in enumerate(names) if model.servers[name].origin is not None),
                frozenset(at for at, name in enumerate(names) if name in without),
                acts,
                whole,
                others=1 if whole else 0,
                same=0 if whole else 1,
            )
            if (shape, names) in tried:
                continue
            tried.add((shape, names))
            if found := damage(shape):
                return told(found, names)
    return ""


def _entries(model: Model, effects: Iterable[Mapping[str, Any]]) -> Iterator[Entry]:
    """The changes of single entries among the effects. One that creates without a deletion before it deletes and adds at once."""
    removed: dict[str, Act] = {}
    kind: Literal["add", "modify"]
    for one in effects:
        if one["do"] == "remove":
            removed[one["entry"]] = Act("delete", 0, one["everywhere"])
        elif one["do"] == "rewrite":
            lots, creates = set(one["lots"]), bool(one.get("creates"))
            without = frozenset(name for name, server in model.servers.items() if not lots <= server.holds)
            before = (removed.pop(one["entry"], Act("delete", 0)),) if creates else ()
            kind = "add" if creates else "modify"
            yield (*before, Act(kind, 0)), one["server"], without


def _feeds(model: Model) -> dict[str, set[str]]:
    """Supplier -> the servers that a link which runs brings its changes to."""
    feeds: dict[str, set[str]] = {}
    for link in model.links:
        if model.ends(link):
            feeds.setdefault(link.supplier, set()).add(link.consumer)
    return feeds


def _choices(
    model: Model, feeds: Mapping[str, Collection[str]], writer: str, without: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """The writer, one server that lacks the entry, and others, those first that the latter feeds."""
    reached, edge = {writer}, [writer]
    while edge:
        new = set(feeds.get(edge.pop(), ())) - reached
        reached |= new
        edge += new
    for lacking in sorted(set(without) & reached - {writer}):
        near = feeds.get(lacking, ())
        others = sorted(reached - {writer, lacking}, key=lambda name: (name not in near, name))
        some = combinations(others, min(len(others), MOST_SERVERS - 2))
        yield from ((writer, lacking, *two) for two in islice(some, MOST_CHOICES))


def _between(feeds: Mapping[str, Collection[str]], names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The links between these servers; what goes through servers that are left out is a link as well."""
    for by in names:
        seen, edge = {by}, [by]
        while edge:
            for to in set(feeds.get(edge.pop(), ())) - seen:
                seen.add(to)
                if to in names:
                    yield by, to
                else:
                    edge.append(to)
