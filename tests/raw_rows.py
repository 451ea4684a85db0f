"""The raw files of collected 389 directory servers, read as simply as can be, for `consistent_findings`.

It shares no code with the workbench: regular expressions over changelogs, replica entries, agreements, exports and logs.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

Place = tuple[str, str]
"""A server and a suffix."""

CSN = re.compile(r"(?<![0-9a-f])[0-9a-f]{20}(?![0-9a-f])")
HELPERS = {"0000006f000000000000", "000000de000000000000"}
"""Positions of the records that keep the vectors of a changelog."""
STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)")
GENERALIZED = re.compile(r"(?<!\d)(20\d{6})(\d{6})Z")
LOGGED = re.compile(r"\[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})\]")
APPLIED = re.compile(LOGGED.pattern + r" conn=\S+ op=\d+ RESULT err=0 .*csn=([0-9a-f]{20})")
ELEMENT = re.compile(r"\{replica (\d+)[^}]*\}(?: +([0-9a-f]{20}) +([0-9a-f]{20}))?")
NOT_REPLICATED = {
    "dsentrydn", "entrydn", "entryid", "entryusn", "nscpentrydn", "nsds5agmtmaxcsn", "nsds50ruv", "numsubordinates",
    "nsruvreplicalastmodified", "parentid", "tombstonenumsubordinates", "memberof", "passwordgraceusertime",
    "passwordretrycount", "retrycountresettime", "accountunlocktime",
    "createtimestamp", "modifytimestamp", "modifiersname", "creatorsname", "hassubordinates",
}  # fmt: skip
"""Attributes that each server keeps for itself, or writes once more by its own plug-ins."""


def origin_of(position: str) -> str:
    """The replica ID in a CSN, as text."""
    return str(int(position[12:16], 16))


def made_at(position: str) -> datetime:
    """When the clock of its origin made a CSN."""
    return datetime.fromtimestamp(int(position[:8], 16), UTC)


@dataclass(frozen=True)
class Logged:
    """A record of a changelog."""

    position: str
    operation: str
    target: str
    entry: str


@dataclass
class Collected:
    """What the raw files of the last snapshot hold, and which positions, times and words the earlier ones hold beside."""

    servers: set[str] = field(default_factory=set)
    suffixes: set[str] = field(default_factory=set)
    positions: set[str] = field(default_factory=set)
    seconds: set[datetime] = field(default_factory=set)
    changelogs: dict[Place, dict[str, Logged]] = field(default_factory=lambda: defaultdict(dict))
    vectors: dict[Place, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    owns: dict[Place, str] = field(default_factory=dict)
    agreements: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    entries: dict[Place, dict[str, dict[str, set[str]]]] = field(default_factory=lambda: defaultdict(dict))
    states: dict[Place, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(dict))
    applied: dict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))
    texts: dict[str, str] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=lambda: defaultdict(str))
    elements: dict[Place, str] = field(default_factory=dict)
    read: list[datetime] = field(default_factory=list)

    def known(self, server: str, suffix: str, origin: str) -> str:
        """The highest position of an origin that a server shows by its vectors or its changelog."""
        log = (one for one in self.changelogs[server, suffix] if origin_of(one) == origin)
        return max(self.vectors[server, suffix].get(origin, ""), *log, "")

    def replaced_after(self, server: str, moment: datetime) -> bool:
        """True if the errors log says later that the data or the replica of the server was replaced."""
        words = r"(?i)import|restor|total update|bulk|initiali|going offline|recreat|has been reset"
        lines = (line for line in self.errors[server].splitlines() if re.search(words, line))
        return any(at >= moment - timedelta(seconds=1) for line in lines for at in _seconds(line))

    def set_back(self, server: str) -> datetime | None:
        """When the clock of the server was set back by an hour or more, by the times in its errors log; None: it was not."""
        times = [next(_seconds(line), None) for line in self.errors[server].splitlines()]
        told = [one for one in times if one]
        return next((now for before, now in pairwise(told) if before - now > timedelta(hours=1)), None)

    def suffix_of(self, dn: str) -> str:
        """The suffix that an entry lies in; empty if it lies in none."""
        return max((one for one in self.suffixes if _plain(dn).endswith(_plain(one))), key=len, default="")


def _plain(dn: str) -> str:
    return re.sub(r"\s*,\s*", ",", dn.lower())


def _data(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _unfolded(text: str) -> str:
    """LDIF with one line for each value, and packed values as they are."""
    text = re.sub(r"\r?\n ", "", text)
    return re.sub(r"(?m)^([\w;.-]+):: ?(.*)$", lambda found: f"{found[1]}: {_unpacked(found[2])}", text)


def _unpacked(value: str) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "replace").replace("\n", "\n ")
    except ValueError:
        return value


def _values(block: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in re.findall(r"(?m)^([\w.-]+(?:;[\w;.-]+)?): ?(.*)$", block):
        values[name.lower()].append(value)
    return values


def second_of(parts: Iterable[str]) -> datetime:
    """The second that a year, month, day, hour, minute and second in digits name."""
    year, month, day, hour, minute, second = map(int, parts)
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _seconds(text: str) -> Iterator[datetime]:
    for one in set(STAMP.findall(text)):
        yield second_of(one)
    for day, time in set(GENERALIZED.findall(text)):
        yield datetime.strptime(day + time, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    for stamp, zone in set(LOGGED.findall(text)):
        yield datetime.strptime(f"{stamp} {zone}", "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)


def read(folders: Sequence[Path]) -> Collected:
    """All that is known of these snapshots, by the raw files."""
    held = Collected()
    for folder in folders:
        told = yaml.safe_load((folder / "case.yaml").read_text()) if (folder / "case.yaml").exists() else {}
        named = {file: one["name"] for one in told.get("servers", ()) for file in one.get("files", ())}
        held.servers |= {one["name"] for one in told.get("servers", ())}
        files = [path for path in sorted(folder.iterdir()) if path.is_file()]
        packed = {path.name: _data(path) for path in files}
        held.raw |= {f"{folder.name}/{name}": data for name, data in packed.items()}
        texts = {name: data.decode("utf-8", "replace") for name, data in packed.items()}
        texts = {name: _unfolded(text) if ".ldif" in name else text for name, text in texts.items()}
        for name, text in texts.items():
            held.positions.update(CSN.findall(text.lower()))
            moments = list(_seconds(text))
            held.seconds.update(moments)
            if folder == folders[-1]:
                held.texts[name] = text
                held.read += [max(moments)] if moments and name != "case.yaml" else []
        if folder == folders[-1]:
            held.read = [_moment(one["until"]) for one in told.get("collected", ())] or held.read
            held.read += [_moment(one["from"]) for one in told.get("collected", ())]
            last = {name: text for name, text in texts.items() if name != "case.yaml"}
            of = {name: named.get(name) or name.split(".")[0] for name in last}
            held.servers |= set(of.values())
            _read_last(held, {name: (of[name], text) for name, text in last.items()})
            for one in told.get("collected", ()):
                for suffix, origins in (one.get("moved_to") or {}).items():
                    _raise(held.vectors[one["server"], suffix], {str(rid): top for rid, top in origins.items()})
    return held


def _moment(text: Any) -> datetime:
    moment = datetime.fromisoformat(str(text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _raise(vector: dict[str, str], more: Mapping[str, str]) -> None:
    for origin, top in more.items():
        vector[origin] = max(vector.get(origin, ""), top)


def _read_last(held: Collected, files: Mapping[str, tuple[str, str]]) -> None:
    blocks = {name: re.split(r"\n\s*\n", text) for name, (_, text) in files.items() if ".ldif" in name}
    for name, records in blocks.items():
        for block in records:
            if re.search(r"(?im)^objectClass: nsds5replica$", block):
                _read_replica(held, files[name][0], _values(block))
    for name, records in blocks.items():
        for block in records:
            values = _values(block)
            if "nsds5replicationagreement" in (one.lower() for one in values.get("objectclass", ())):
                suffix = values.get("nsds5replicaroot", [""])[0]
                held.suffixes.add(suffix)
                held.agreements[files[name][0], suffix, values["cn"][0]] = {
                    key: found[0] for key, found in values.items() if key.startswith("nsds5")
                }
    for name, records in blocks.items():
        server = files[name][0]
        for block in records:
            if re.search(r"(?m)^changetype: ", block):
                _read_record(held, server, _values(block))
            elif re.search(r"(?im)^nsUniqueId: ", block) and "nsds5replica" not in block.lower()[:200]:
                _read_entry(held, server, block)
    for server, text in files.values():
        if re.search(r"\] - (INFO|ERR|NOTICE|WARN\w*|CRIT|EMERG|ALERT) - ", text[:50000]):
            held.errors[server] += text
        else:
            for stamp, zone, position in APPLIED.findall(text):
                held.applied[server][position] = datetime.strptime(f"{stamp} {zone}", "%d/%b/%Y:%H:%M:%S %z")


def _read_replica(held: Collected, server: str, values: Mapping[str, list[str]]) -> None:
    suffix = values.get("nsds5replicaroot", [""])[0]
    held.suffixes.add(suffix)
    if values.get("nsds5replicatype") == ["3"] and values.get("nsds5replicaid", ["65535"]) != ["65535"]:
        held.owns[server, suffix] = values["nsds5replicaid"][0]
    _raise(held.vectors[server, suffix], _tops(values.get("nsds50ruv", ())))
    own = held.owns.get((server, suffix), "")
    held.elements[server, suffix] = "".join(one for one in values.get("nsds50ruv", ()) if f"{{replica {own} " in one)


def _tops(elements: Iterable[str]) -> dict[str, str]:
    return {found[1]: found[3] for one in elements if (found := ELEMENT.search(one)) and found[3]}


def _read_record(held: Collected, server: str, values: Mapping[str, list[str]]) -> None:
    position, dn = values.get("csn", [""])[0].lower(), values.get("dn", [""])[0]
    if CSN.fullmatch(position) and position not in HELPERS and dn:
        entry = values.get("nsuniqueid", [""])[0]
        held.changelogs[server, held.suffix_of(dn)][position] = Logged(position, values["changetype"][0], dn, entry)


def _read_entry(held: Collected, server: str, block: str) -> None:
    values = _values(block)
    dn, entry = values.get("dn", [""])[0], values["nsuniqueid"][0]
    place = server, held.suffix_of(values.get("nscpentrydn", [dn])[0] if "nstombstone" in block.lower() else dn)
    if entry.startswith("ffffffff"):
        _raise(held.vectors[place], _tops(values.get("nsds50ruv", ())))
        return
    held.states[place][entry] = set(CSN.findall(block))
    if re.search(r"(?im)^objectClass[^:]*: nsTombstone$", block):
        return
    live: dict[str, set[str]] = defaultdict(set)
    for name, found in values.items():
        attribute, *marks = name.split(";")
        if attribute not in NOT_REPLICATED and not {"deleted", "deletedattribute"} & set(marks):
            live[attribute] |= set(found)
    held.entries[place][entry] = {**live, "dn": {dn}}
