"""What the entries of several servers prove: which changes one of them lacks by content, whatever its log says.

    anna   mail: a@example.com   made by 10
    bert   mail: x@example.com   carries no position        bert lacks 10: nothing later there explains that its effect is gone
    carl   mail: b@example.com   made by 12, not at anna    12 replaced it at carl: 10 is not missing there

A change is expected at a server where the vector of its export covers it. What is not expected is on its way. Traces of what was
removed are kept for a while only: an older absence is no loss where most servers agree with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.rules.spelling import spelt_as

MADE, REMOVED, CLEARED = "made", "removed", "cleared"
"""What a mark says of its position: it made the value, it removed the value, it removed all values of the attribute."""

LIVE, DELETED, ABSENT = "live", "deleted", "absent"


@dataclass
class Held:
    """One entry on one server.

    status    LIVE, DELETED (the server keeps a tombstone) or ABSENT
    target    its name
    deleted   the position that deleted it
    revived   a tombstone that became an entry again, or a deleted entry that stays for its children
    present   attribute -> value -> the position that made it; None: it carries none
    removed   attribute -> value -> the position that removed it
    cleared   attribute -> the position that removed all its values
    secret    attributes whose values are not shown: in `present` stands in place of each the position that made it, or nothing
    changes   all changes that anything in the entry carries, also what need not be the same elsewhere
    """

    status: str = ABSENT
    target: str = ""
    deleted: str | None = None
    revived: bool = False
    present: dict[str, dict[str, str | None]] = field(default_factory=dict)
    removed: dict[str, dict[str, str]] = field(default_factory=dict)
    cleared: dict[str, str] = field(default_factory=dict)
    secret: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)

    def positions(self, attribute: str) -> set[str]:
        """Every position that the attribute carries."""
        made = {position for position in self.present.get(attribute, {}).values() if position}
        return made | {*self.removed.get(attribute, {}).values()} | {*filter(None, [self.cleared.get(attribute)])}

    def like(self, other: Held, left_out: frozenset[str]) -> bool:
        """True if both are gone, or there with the same values, but for what is left out."""
        if LIVE not in (self.status, other.status):
            return True
        mine, theirs = (
            {name: set(values) for name, values in one.present.items() if values and plain_name(name) not in left_out}
            for one in (self, other)
        )
        if self.status != other.status:
            return False
        return all(
            spelt_alike(self, other, name, value)
            for name in mine.keys() | theirs.keys()
            for value in mine.get(name, set()) ^ theirs.get(name, set())
        )

    def cleared_by(self, attribute: str) -> str:
        """The position that removed or replaced all values of an attribute, named in small letters; empty: there is none."""
        return max((mark for name, mark in self.cleared.items() if name.lower() == attribute), default="")

    def has(self, attribute: str) -> bool:
        """True if it has a value of the attribute, named in small letters."""
        return any(values and plain_name(name) == attribute for name, values in self.present.items())

    def made(self) -> set[str]:
        """The positions that made its present values."""
        return {position for values in self.present.values() for position in values.values() if position}

    def of(self, attribute: str) -> set[str]:
        """The positions that made its present values of one attribute, in small letters."""
        shown = (values for name, values in self.present.items() if plain_name(name) == attribute)
        return {position for values in shown for position in values.values() if position}


class MissingEffect(NamedTuple):
    """A change whose effect the entry of a server should show and does not. `attribute`: empty where it is the whole entry."""

    server: str
    position: str
    attribute: str


class Unlike(NamedTuple):
    """An attribute (empty: the whole entry; `dn`: its name) in which servers differ, and no position tells who is right.

    servers  the few that differ from most of them; all, if there are no such few
    """

    servers: tuple[str, ...]
    attribute: str


@dataclass(frozen=True)
class Compared:
    """What the servers' states of one entry come to. `spelt`: what is equal but for its spelling, and made by one change."""

    lacks: tuple[MissingEffect, ...]
    unlike: tuple[Unlike, ...]
    spelt: tuple[Unlike, ...] = ()


def spelt_alike(one: Held, other: Held, attribute: str, value: str) -> bool:
    """True if a value that one of the two has stands on the other under the same position, in another spelling.

    Two servers that get equal values in another order may each keep the spelling that came first:

        anna   mail: foo@example.com   made by 10
        bert   mail: FOO@example.com   made by 10
    """
    both = [held.present.get(attribute, {}) for held in (one, other)]
    has, lacks = both if value in both[0] else both[::-1]
    position = has.get(value)
    if position is None or attribute in one.secret | other.secret:
        return False
    meant = spelt_as(attribute, value)
    return any(made == position and spelt_as(attribute, mine) == meant for mine, made in lacks.items())


ChangeOf = Callable[[str], str]
"""position -> that of the whole change of which it may be a step."""

Expected = Callable[[str, str], bool]
"""(server, position) -> True if the export of the server's entries has to show what the change did."""


def compared(
    held: Mapping[str, Held],
    expected: Expected,
    forgotten: Callable[[str, str], bool],
    left_out: Mapping[str, frozenset[str]],
    names: bool,
    change_of: ChangeOf = str,
    conflict: str = "",
    classes: str = "",
) -> Compared:
    """What the servers lack of one entry, and in what else they differ.

    `forgotten` (server, position): so old that the server need not keep a trace of what removed it later. `left_out`: of each
    server the attributes, in small letters, that it need not have. `names`: the name of the entry has to be the same.
    `conflict`: the attribute, in small letters, that marks an entry as one of two of one name, or as made up or brought back;
    `classes`: the one that a server changes together with it, by itself, under the position of the change that it resolves.
    """
    live = sorted(server for server, one in held.items() if one.status == LIVE)
    if not live:
        return Compared((), ())
    lacks: set[MissingEffect] = set()
    unlike: set[Unlike] = set()
    spelt: set[Unlike] = set()
    _whole(held, live, expected, forgotten, change_of, conflict, lacks, unlike)
    attributes = sorted({name for server in live for name in held[server].present})
    of_marks = {change_of(position) for server in live for position in held[server].of(conflict)}
    for attribute in attributes:
        mine = [server for server in live if plain_name(attribute) not in left_out.get(server, frozenset())]
        marked = [server for server in mine if held[server].has(conflict)] if plain_name(attribute) == classes else []
        for alike in (marked, [server for server in mine if server not in marked]):
            if len(alike) > 1:
                found: set[MissingEffect] = set()
                _values(held, alike, attribute, expected, forgotten, found, unlike, spelt, change_of)
                # The classes of an entry in conflict depend on what came first to a server, and bear the positions of the mark.
                lacks |= {lack for lack in found if alike is not marked or change_of(lack.position) not in of_marks}
    if names and len({name_of(held[server].target) for server in live}) > 1 and not lacks:
        unlike.add(Unlike(_few({server: name_of(held[server].target) for server in live}), "dn"))
    return Compared(tuple(sorted(lacks)), tuple(sorted(unlike)), tuple(sorted(spelt)))


def _whole(
    held: Mapping[str, Held],
    live: list[str],
    expected: Expected,
    forgotten: Callable[[str, str], bool],
    change_of: ChangeOf,
    conflict: str,
    lacks: set[MissingEffect],
    unlike: set[Unlike],
) -> None:
    """Servers on which the entry is not there, although others have it; and those that have it although it was deleted."""
    deleted = {server: one for server, one in held.items() if one.status == DELETED}
    for one in deleted.values():
        for server in live:
            if one.deleted is None or held[server].revived:
                continue
            if expected(server, one.deleted):
                lacks.add(MissingEffect(server, one.deleted, ""))
    # A client deleted it there while the server did not replicate what it was told: no position tells of that.
    alone = sorted(server for server, one in deleted.items() if one.deleted is None)
    if alone and len(alone) == len(deleted) and not any(held[server].revived for server in live):
        unlike.add(Unlike(tuple(alone), ""))
    absent = sorted(server for server, one in held.items() if one.status == ABSENT)
    if deleted or not absent:
        return
    # With a mark of conflict come positions of another entry's change, or that of its own addition.
    others = {change_of(position) for server in live for position in held[server].of(conflict)}
    every = {position for server in live for position in held[server].made()}
    made = {position for position in every if change_of(position) not in others} or every
    for server in absent:
        covered = sorted(position for position in made if expected(server, position))
        if made and not expected(server, min(made)):
            continue  # its creation is on its way
        few = len(live) < len(absent)
        if not covered or (few and forgotten(server, covered[0])):
            unlike.add(Unlike(tuple(absent) if not few else tuple(sorted(held)), ""))
        else:
            lacks.update(MissingEffect(server, position, "") for position in covered)


def _values(
    held: Mapping[str, Held],
    live: list[str],
    attribute: str,
    expected: Expected,
    forgotten: Callable[[str, str], bool],
    lacks: set[MissingEffect],
    unlike: set[Unlike],
    spelt: set[Unlike],
    change_of: ChangeOf,
) -> None:
    shown = {server: frozenset(held[server].present.get(attribute, {})) for server in live}
    if len(set(shown.values())) < 2:
        return
    votes = Counter(shown.values())
    found: dict[MissingEffect, set[str]] = {}
    open_: set[str] = set()
    moving = otherwise = False
    for server, witness, value in _not_there(shown):
        one, other = held[server], held[witness]
        position = other.present[attribute][value]
        if spelt_alike(one, other, attribute, value):
            otherwise = True
            continue
        if made := _made_elsewhere(one, other, attribute, position):
            # A hash of its own shows nothing of the change: other values that it made do, later changes of others do not.
            holder = witness if position is None else server
            if all(_came(held[holder], attribute, change, change_of) for change in made):
                continue
            if all(expected(holder, change) and max(held[holder].changes, default="") > change for change in made):
                open_ |= {server, witness}
                continue
        gone = _removed(one, attribute, value)
        if gone and (position is None or gone > position):
            if position is None and (other.cleared.get(attribute) or "") >= gone:
                open_ |= {server, witness}  # what removed all values came there: this one came later, past replication
            elif expected(witness, gone):
                found.setdefault(MissingEffect(witness, gone, attribute), set()).add(server)
            else:
                moving = True
        elif position is None:
            later = one.positions(attribute) - other.positions(attribute)
            if any(not expected(witness, mark) for mark in later):
                moving = True
            else:
                open_ |= {server, witness}
        elif not expected(server, position):
            moving = True
        elif later := {mark for mark in one.positions(attribute) - other.positions(attribute) if mark > position}:
            # What replaced it here: if that is not yet expected there, it is on its way.
            moving |= any(not expected(witness, mark) for mark in later)
            open_ |= {server, witness}
        elif one.cleared.get(attribute) == position and None in one.present.get(attribute, {}).values():
            open_ |= {server, witness}  # it came there, and what stands there now came past replication
        else:
            found.setdefault(MissingEffect(server, position, attribute), set()).add(witness)
    sure = {lack for lack, witnesses in found.items() if _surely(lack, witnesses, found, shown, votes, forgotten)}
    lacks |= sure
    told = {lack.server for lack in sure}
    for lack, witnesses in found.items():
        if lack not in sure:
            open_ |= {lack.server, *witnesses}
    if open_ and not moving and not told & open_:
        unlike.add(Unlike(_few(shown), attribute))
    elif otherwise and not found and not open_ and not moving:
        spelt.add(Unlike(_few(shown), attribute))


def _made_elsewhere(one: Held, other: Held, attribute: str, position: str | None) -> set[str]:
    """Where one of the two servers has a secret without a position: the changes that made the secret of the other one.

    A server makes a secret anew by itself, as at a login, and sends nothing of that to others. `position`: of the secret that
    `other` has and `one` has not.
    """
    if attribute not in one.secret | other.secret:
        return set()
    mine = one.present.get(attribute, {}).values()
    if position is None:
        return {*filter(None, mine)}
    return {position} if None in mine else set()


def _came(one: Held, attribute: str, position: str, change_of: ChangeOf) -> bool:
    """True if the attribute shows the change or a later one, or anything else in the entry shows that very change."""
    return any(mark >= position for mark in one.positions(attribute)) or change_of(position) in map(
        change_of, one.changes
    )


def _not_there(shown: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str, str]]:
    """(server, another one, a value that only the other one has)."""
    for server, mine in shown.items():
        for witness, theirs in shown.items():
            for value in sorted(theirs - mine):
                yield server, witness, value


def _removed(one: Held, attribute: str, value: str) -> str | None:
    marks = (one.removed.get(attribute, {}).get(value), one.cleared.get(attribute))
    return max(filter(None, marks), default=None)


def _surely(
    lack: MissingEffect,
    witnesses: set[str],
    found: Mapping[MissingEffect, set[str]],
    shown: Mapping[str, frozenset[str]],
    votes: Mapping[frozenset[str], int],
    forgotten: Callable[[str, str], bool],
) -> bool:
    """False where the other side may as well be the one that lost something, and more servers are not against this one."""
    mutual = any(MissingEffect(witness, lack.position, lack.attribute) in found for witness in witnesses)
    against, alike = max(votes[shown[witness]] for witness in witnesses), votes[shown[lack.server]]
    if mutual:
        return against > alike
    return against >= alike or not forgotten(lack.server, lack.position)


def _few(shown: Mapping[str, object]) -> tuple[str, ...]:
    """The servers that do not show what most of them show; all, if no more than half of them show the same."""
    (most, times), *_ = Counter(shown.values()).most_common(1)
    if 2 * times <= len(shown):
        return tuple(sorted(shown))
    return tuple(sorted(server for server, what in shown.items() if what != most))


def apart(one: Held, other: Held, attribute: str) -> bool:
    """True if an entry is not the same on two servers: one has it alone, or its name or the values of the attribute differ."""
    if not attribute or (one.status == LIVE) != (other.status == LIVE):
        return (one.status == LIVE) != (other.status == LIVE)
    if attribute == "dn":
        return name_of(one.target) != name_of(other.target)
    return {*one.present.get(attribute, ())} != {*other.present.get(attribute, ())}


def unlike_others(held: Mapping[str, Held], lack: MissingEffect) -> bool:
    """True if the server has other values of the attribute than some other one."""
    mine = {*held[lack.server].present.get(lack.attribute, {})}
    return any({*there.present.get(lack.attribute, {})} != mine for there in held.values())


def plain_name(attribute: str) -> str:
    """The name of an attribute in small letters, without options."""
    return attribute.partition(";")[0].lower()


def name_of(target: str) -> str:
    """The name of an entry, but for how it is spelt."""
    return ",".join(part.strip() for part in target.lower().split(","))
