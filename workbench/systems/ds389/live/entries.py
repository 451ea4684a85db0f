"""Entries of a live server as a repair looks at them: what users would see, what is a secret, which change wrote what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from workbench.model import Problem
from workbench.systems.ds389.csn import change_of, csn_or_none, origin_of
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.live.connection import BELOW, Connection
from workbench.systems.ds389.native import Record, add
from workbench.systems.ds389.rules.own_attributes import BY_SERVER, LOGINS, MEMBER_OF

Values = dict[str, list[bytes]]

_STATE = re.compile(rb"[^:;]+(?:;[^:;]+)*")
_CSN = re.compile(r"[a-z]{2}csn-([0-9a-f]{20})")
_REPLACING = re.compile(r"adcsn-([0-9a-f]{20})")
NOT_BY_USERS = BY_SERVER | {MEMBER_OF}
"""What is no value of a user, unless somebody says that it is."""


def entry_of(connection: Connection, dn: str, also: Iterable[str] = ()) -> Entry | None:
    """An entry with its unique ID; None if it is not there. `also`: attributes that are shown only when they are asked for."""
    wanted = ("*", "nsUniqueId", "numSubordinates", *also)
    return next(iter(connection.search(dn, attributes=wanted, absent=True)), None)


def values_of(entry: Entry, also: Iterable[str] = ()) -> Values:
    """What users wrote: attribute -> values, sorted; the names in lower case. `also`: attributes that the server may write."""
    found: Values = {}
    wanted = {name.lower() for name in also}
    for name, value in entry.lines[1:]:
        if name.lower() not in NOT_BY_USERS or name.lower() in wanted:
            found.setdefault(name.lower(), []).append(value)
    return {name: sorted(values) for name, values in found.items()}


def differing(entry: Entry, planned: Mapping[str, Iterable[str]]) -> list[str]:
    """The attributes of which the entry has other values than planned."""
    there = values_of(entry, planned)
    wanted = {name.lower(): sorted(value.encode() for value in values) for name, values in planned.items()}
    return sorted(name for name, values in wanted.items() if name not in LOGINS and there.get(name, []) != values)


def replaced_by(connection: Connection, dn: str, rid: str) -> dict[str, str]:
    """Attribute in lower case -> the last change of this replica ID that replaced all of its values, as the state tells.

    A change that adds or renames marks only the value that it makes (`vucsn`); one that replaces marks the attribute (`adcsn`).
    """
    return {
        name: max(map(change_of, replacing))
        for name, found in changes_of(connection, dn, _REPLACING).items()
        if (replacing := [csn for csn in found if origin_of(csn) == rid])
    }


def changes_of(connection: Connection, dn: str, marks: re.Pattern[str] = _CSN) -> dict[str, set[str]]:
    """Attribute in lower case -> the changes that made its values what they are, as the state of the entry tells."""
    found = connection.search(dn, attributes=("nscpEntryWSI",), absent=True)
    if found and not found[0].texts("nscpEntryWSI"):
        do = "ask as one who may read nscpEntryWSI, as the Directory Manager may"
        raise Problem(f"which changes wrote {dn} is not shown", connection.place.url, do)
    wrote: dict[str, set[str]] = {}
    for text in found[0].texts("nscpEntryWSI") if found else ():
        state = _STATE.match(text.encode())
        name = text.partition(":")[0].split(";", 1)[0].lower()
        for csn in marks.findall(state[0].decode(errors="replace") if state else ""):
            if known := csn_or_none(csn):
                wrote.setdefault(name, set()).add(known)
    return wrote


def tombstone_of(connection: Connection, suffix: str, unique: str, also: Iterable[str] = ()) -> Entry | None:
    """The deleted entry of a unique ID, which keeps all of its values until it is purged; None if there is none."""
    match = f"(&(objectClass=nsTombstone)(nsUniqueId={unique}))"
    return next(iter(connection.search(suffix, BELOW, match, ("*", *also), absent=True)), None)


def addition(dn: str, entry: Entry) -> Record:
    """The record that adds an entry with the values of this one, secrets included: it is sent and never kept."""
    values: dict[str, list[bytes]] = {}
    for name, value in entry.lines[1:]:
        low = name.lower()
        if low not in NOT_BY_USERS and not (low == "objectclass" and value.lower() == b"nstombstone"):
            values.setdefault(name, []).append(value)
    record = dict(add(dn, {}))
    record["values"] = values
    return record
