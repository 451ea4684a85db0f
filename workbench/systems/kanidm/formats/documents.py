"""What the JSON of Kanidm is made of: times, CIDs, change states. Each raises ValueError with a sentence for what is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from workbench.systems.kanidm.cid import SECOND, UUID, cid_text

LATEST = 2**63 // SECOND - 1
"""Seconds since 1970 of which the nanoseconds fit into 64 bits: the year 2262."""

TEXT_TAGS = frozenset(["U8", "I8", "N8", "UU"])
"""Kinds of values that are looked at at all: others hold credentials, keys or tokens, or may with the next version."""

CREATED, CHANGED, DELETED = "created", "changed", "deleted"
CONFLICT, RECYCLED, TOMBSTONE = "conflict", "recycled", "tombstone"


def parsed(text: bytes | str) -> Any:
    """A JSON document; ValueError for what is none, also for one that is nested too deeply or has numbers without end."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def uuid_of(given: Any) -> str:
    """A UUID in lower case."""
    if isinstance(given, str) and UUID.fullmatch(given):
        return given.lower()
    raise ValueError("a UUID is missing, or is none")


def nanoseconds_of(given: Any) -> int:
    """A time as {secs, nanos}."""
    if isinstance(given, Mapping):
        secs, nanos = given.get("secs"), given.get("nanos")
        if type(secs) is int and type(nanos) is int and 0 <= secs <= LATEST and 0 <= nanos < SECOND:
            return secs * SECOND + nanos
    raise ValueError("a time is missing, or is none")


class Cid(NamedTuple):
    """Nanoseconds, and who made the change."""

    time: int
    origin: str

    @property
    def text(self) -> str:
        """As the server prints it."""
        return cid_text(*self)


def cid_of(given: Any) -> Cid:
    """A CID as {t: {secs, nanos}, s: uuid}."""
    if not isinstance(given, Mapping):
        raise ValueError("a CID is missing, or is none")
    return Cid(nanoseconds_of(given.get("t")), uuid_of(given.get("s")))


class State(NamedTuple):
    """One line of an entry's change state; attribute None: the entry as a whole."""

    kind: str
    attribute: str | None
    cid: Cid


class Entry(NamedTuple):
    """An entry: its lasting id, its name, what is special about it, and its change state."""

    uuid: str
    name: str | None
    special: str | None
    source: str | None
    states: list[State]


def entry_of(item: Any) -> Entry:
    """An entry as a backup or a database holds it; of values only names and classes are looked at."""
    body = _single(_single(item, "ent"), "V3", "V2", "V1")
    attributes = body.get("attrs")
    if not isinstance(attributes, Mapping):
        raise ValueError("an entry without attributes")
    uuid = uuid_of(_first(attributes, "uuid"))
    states = list(_states(body.get("changestate")))
    classes = _values(attributes, "class")
    special = next((one for one in (CONFLICT, RECYCLED) if one in classes), None)
    if states[0].kind == DELETED:
        special = TOMBSTONE
    sources = _values(attributes, "source_uuid") if special == CONFLICT else []
    name = _first(attributes, "name") or _first(attributes, "spn")
    return Entry(uuid, name and _text(name), special, uuid_of(sources[0]) if sources else None, states)


def _text(given: str) -> str:
    """A text; half a character, which JSON can name, is none."""
    if not given.isascii() and any("\ud800" <= one <= "\udfff" for one in given):
        raise ValueError("a name holds what is no text")
    return given


def _single(given: Any, *names: str) -> Any:
    """What an object holds under the one of these names that it has."""
    found = [given[name] for name in names if isinstance(given, Mapping) and name in given]
    if len(found) != 1 or not isinstance(found[0], Mapping):
        raise ValueError(f"not an entry: {' or '.join(names)} is missing")
    return found[0]


def _states(given: Any) -> Iterator[State]:
    if isinstance(given, Mapping) and isinstance(dead := given.get("V1Tombstone"), Mapping):
        yield State(DELETED, None, cid_of(dead.get("at")))
        return
    live = given.get("V1Live") if isinstance(given, Mapping) else None
    changes = live.get("changes") if isinstance(live, Mapping) else None
    if not isinstance(live, Mapping) or not isinstance(changes, Mapping):
        raise ValueError("an entry without a change state")
    yield State(CREATED, None, cid_of(live.get("at")))
    for attribute, cid in changes.items():
        yield State(CHANGED, _text(attribute), cid_of(cid))


def _values(attributes: Mapping[str, Any], name: str) -> list[str]:
    """The texts of an attribute that holds no secret."""
    tagged = attributes.get(name)
    if not isinstance(tagged, Mapping):
        return []
    return [
        text
        for tag, values in tagged.items()
        if tag in TEXT_TAGS and isinstance(values, list)
        for text in values
        if isinstance(text, str)
    ]


def _first(attributes: Mapping[str, Any], name: str) -> str | None:
    return next(iter(_values(attributes, name)), None)
