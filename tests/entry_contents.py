"""Small histories of one entry on several servers, played in the slowest and most obvious way."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from workbench.rules.contents import DELETED, LIVE, Held

ATTRIBUTES = ("mail", "sn", "title")
ORIGINS = ("1", "2", "3")


@dataclass(frozen=True)
class Change:
    """What a client did: `add` and `delete` of the entry; `put`, `take` of a value, `set` and `wipe` of an attribute."""

    time: int
    origin: str
    did: str
    attribute: str = ""
    value: str = ""

    @property
    def position(self) -> str:
        """Its position: by time, then by origin."""
        return f"{self.time:04}-{self.origin}"


@dataclass
class History:
    """Changes, and up to which time each server has those of each origin."""

    changes: list[Change]
    seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def expected(self, server: str, position: str) -> bool:
        """True if the server's vector covers the change."""
        time, _, origin = position.partition("-")
        return int(time) <= self.seen[server].get(origin, -1)

    def on(self, server: str) -> Held:
        """The entry there: all changes that it has, one after the other in their order."""
        mine = [one for one in self.changes if self.expected(server, one.position)]
        return played(mine)


def played(changes: list[Change]) -> Held:
    """The state of the entry behind these changes. What came before its creation did nothing."""
    held = Held(target="uid=anna,dc=example")
    for one in sorted(changes, key=lambda one: one.position):
        if one.did == "add":
            held.status = LIVE
            held.present["uid"] = {"anna": one.position}  # the name tells the creation for good
            for attribute in ATTRIBUTES:
                held.present[attribute] = {f"{attribute} at first": one.position}
        elif one.did == "delete" and held.status == LIVE:
            held.status, held.deleted = DELETED, one.position
        elif held.status == LIVE:
            _modify(held, one)
    return held


def _modify(held: Held, one: Change) -> None:
    values = held.present.setdefault(one.attribute, {})
    removed = held.removed.setdefault(one.attribute, {})
    if one.did in ("set", "wipe"):
        values.clear()
        held.cleared[one.attribute] = one.position
    if one.did in ("set", "put"):
        values[one.value] = one.position
        removed.pop(one.value, None)
    if one.did == "take" and one.value in values:
        del values[one.value]
        removed[one.value] = one.position


def history(chance: random.Random, servers: int, whole: bool) -> History:
    """Random changes; each server has all of them (`whole`), or of each origin those up to some time."""
    changes = [Change(1, "1", "add")]
    for time in range(2, 2 + chance.randint(0, 8)):
        did = chance.choice(("set", "put", "put", "take", "wipe", "delete" if chance.random() < 0.3 else "set"))
        value = chance.choice(("red", "blue", f"only {time}", *(f"{name} at first" for name in ATTRIBUTES)))
        changes.append(Change(time, chance.choice(ORIGINS), did, chance.choice(ATTRIBUTES), value))
    made = History(changes)
    for number in range(servers):
        last = {origin: 99 if whole else chance.randint(0, 10) for origin in ORIGINS}
        made.seen[f"s{number}"] = last
    return made
