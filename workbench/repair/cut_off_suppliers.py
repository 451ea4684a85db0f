"""Suppliers that bring a server nothing of what they write after it was filled: no session of theirs finds where to begin.

s4 cleaned origin 9 and names none; s9 makes changes as it, and its log begins behind its first one
    s1 is filled from s4: its vector names no 9, so s9 would have to begin at its first change, and never does
    s1 is filled from s9: its vector names 9, and the next change of s9 comes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.rules.repair_model import LogModel, Model
from workbench.rules.vectors import last

if TYPE_CHECKING:
    pass


def cut_off(model: Model | None, server: str) -> list[str]:
    """The suppliers with a link that runs to a server whose vector does not name them, and that never gets their next change."""
    if not isinstance(model, LogModel):
        return []
    twin = model.copy()
    makers = sorted({link.supplier for link in twin.links if link.consumer == server and twin.ends(link)})
    numbers: dict[str, int] = {}
    for name in makers:
        origin, named = twin.servers[name].origin, twin.servers[server].vector
        if origin is not None and last(twin.servers[name].vector, origin) and not last(named, origin):
            twin.write(name)
            numbers[name] = len(twin.lots) - 1
    twin.settle()
    return [name for name, number in numbers.items() if number not in twin.servers[server].holds]
