"""A slow second reader of collected 389 DS files, which checks each sentence of a diagnosis against the rows.

It shares no code with the detectors: regular expressions over the raw files, and simple comparisons. `contradictions` gives what
a diagnosis, its text, its plan and the stories of its changes say that the files do not show, one sentence each; it is empty for
a consistent one. It does not prove that a diagnosis is complete, but for entries that differ.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

Row = Mapping[str, Any]
Place = tuple[str, str]
"""A server and a suffix."""

CSN = re.compile(r"(?<![0-9a-f])[0-9a-f]{20}(?![0-9a-f])")
HELPERS = {"0000006f000000000000", "000000de000000000000"}
"""Positions of the records that keep the vectors of a changelog."""
STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)")
GENERALIZED = re.compile(r"(?<!\d)(20\d{6})(\d{6})Z")
LOGGED = re.compile(r"\[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})\]")
ELEMENT = re.compile(r"\{replica (\d+)[^}]*\}(?: +([0-9a-f]{20}) +([0-9a-f]{20}))?")
NOT_REPLICATED = {
    "dsentrydn", "entrydn", "entryid", "entryusn", "nscpentrydn", "nsds5agmtmaxcsn", "nsds50ruv", "numsubordinates",
    "nsruvreplicalastmodified", "parentid", "tombstonenumsubordinates", "memberof", "passwordgraceusertime",
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
    errors: dict[str, str] = field(default_factory=lambda: defaultdict(str))
    read: list[datetime] = field(default_factory=list)

    def known(self, server: str, suffix: str, origin: str) -> str:
        """The highest position of an origin that a server shows by its vectors or its changelog."""
        log = (one for one in self.changelogs[server, suffix] if origin_of(one) == origin)
        return max(self.vectors[server, suffix].get(origin, ""), *log, "")

    def suffix_of(self, dn: str) -> str:
        """The suffix that an entry lies in; empty if it lies in none."""
        return max((one for one in self.suffixes if _plain(dn).endswith(_plain(one))), key=len, default="")


def _plain(dn: str) -> str:
    return re.sub(r"\s*,\s*", ",", dn.lower())


def _text(path: Path) -> str:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8", "replace")


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


def _seconds(text: str) -> Iterator[datetime]:
    for one in set(STAMP.findall(text)):
        yield datetime(*map(int, one), tzinfo=UTC)  # type: ignore[misc]
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
        texts = {path.name: _text(path) for path in files}
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
        if re.search(r"conn=\d+ op=", text[:50000]):
            for stamp, zone, position in re.findall(
                r"\[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})\] conn=\S+ op=\d+ RESULT err=0 .*csn=([0-9a-f]{20})", text
            ):  # fmt: skip
                held.applied[server][position] = datetime.strptime(f"{stamp} {zone}", "%d/%b/%Y:%H:%M:%S %z")
        elif re.search(r"- (INFO|ERR|NOTICE|WARN\w*) - ", text[:50000]):
            held.errors[server] += text


def _read_replica(held: Collected, server: str, values: Mapping[str, list[str]]) -> None:
    suffix = values.get("nsds5replicaroot", [""])[0]
    held.suffixes.add(suffix)
    if values.get("nsds5replicatype") == ["3"] and values.get("nsds5replicaid", ["65535"]) != ["65535"]:
        held.owns[server, suffix] = values["nsds5replicaid"][0]
    _raise(held.vectors[server, suffix], _tops(values.get("nsds50ruv", ())))


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


# --- the checks


def contradictions(held: Collected, found: Row, text: str, plan: str = "", stories: Sequence[str] = ()) -> list[str]:
    """What a diagnosis says that the files do not show, or that it says otherwise elsewhere."""
    everything = [json.dumps({key: found[key] for key in found if key not in ("rejects", "run")}), text, plan, *stories]
    checks = (
        _positions(held, found, everything),
        _names(held, found, [text, plan]),
        _counts(found, text, plan),
    )
    return sorted({said for check in checks for said in check})


def _counted(found: Row) -> list[Row]:
    return [one for one in found["findings"] if not one.get("overruled_by")]


def _sentences(found: Row) -> Iterator[tuple[Row, str]]:
    for one in found["findings"]:
        for said in (one["summary"], one.get("root") or "", *(text for fix in one["fix"] for text in fix.values())):
            if said:
                yield one, said


def _positions(held: Collected, found: Row, everything: Sequence[str]) -> Iterator[str]:
    """Every position that is named stands in some collected row, and is of the origin that is named beside it."""
    for said in everything:
        for position in set(CSN.findall(said)) - held.positions - HELPERS:
            yield f"{position} stands in no collected row"
    for name in ("missing", "stranded", "pending", "unknown"):
        for row in found[name]:
            for key in ("position", "first", "last", "from", "to"):
                if (position := row.get(key)) and CSN.fullmatch(position) and origin_of(position) != row["origin"]:
                    yield f"{name}: {position} is not of origin {row['origin']}"
    for _, said in _sentences(found):
        for origin, first, last in re.findall(r"of origin (\d+), ([0-9a-f]{20}) to ([0-9a-f]{20})", said):
            if {origin_of(first), origin_of(last)} != {origin} or first > last:
                yield f"{first} to {last} is no stretch of origin {origin}: {said}"


def _names(held: Collected, found: Row, texts: Sequence[str]) -> Iterator[str]:
    """Every server, suffix, link and address that is named stands in the files, or is told as not collected."""
    outside = {one["server"] for one in found["not_collected"]}
    for name in ("servers", "links", "pairs", "missing", "stranded", "pending", "unknown", "findings"):
        for row in found[name]:
            keys = ("server", "supplier", "consumer", "means", *(["name"] if name == "servers" else []))
            names = {row.get(key) for key in keys} | {
                *row.get("held_by", ()),
                *row.get("suppliers", ()),
                *row.get("through", ()),
            }
            for server in names - {None} - held.servers - outside:
                yield f"{name}: no file is of a server {server}"
            if row.get("suffix") and row["suffix"] not in held.suffixes:
                yield f"{name}: no replica has the suffix {row['suffix']}"
            link, of = (
                row.get("link") or (row["name"] if name == "links" else None),
                row.get("server") or row.get("supplier"),
            )
            if link and not any(key[0] == of and key[2] == link for key in held.agreements):
                yield f"{name}: {of} has no agreement {link}"
    whole = "\n".join(held.texts.values()).lower()
    for said in texts:
        for host, port in set(re.findall(r"(?<![\w./])([a-z][a-z0-9.-]*):(\d{2,5})(?![\d:])", said)):
            if f"{host}:{port}" not in whole and not (host in whole and f"nsds5replicaport: {port}" in whole):
                yield f"no file names the address {host}:{port}"


def _counts(found: Row, text: str, plan: str) -> Iterator[str]:
    """Numbers in sentences are the lengths of the lists that they are about."""
    number = r"(\d[\d,]*)"
    for one in found["findings"]:
        mine = [
            row for row in found["missing"]
            if (row["server"], row["origin"], row["suffix"]) == (one["server"], one["origin"], one["suffix"])
        ]  # fmt: skip
        said, gone = one["summary"], sum(not row["held_by"] for row in mine)
        if one["code"] == "MISSED_CHANGE" and not found["run"]["truncated"]:
            told = re.search(rf"missed {number} changes? of origin \d+, (\w+) to (\w+)", said)
            at = sorted(row["position"] for row in mine)
            if not told or not at or (_int(told[1]), told[2], told[3]) != (len(mine), at[0], at[-1]):
                yield f"{len(mine)} rows are missing, {at[:1]} to {at[-1:]}: {said}"
            for fix in one["fix"]:
                if (
                    few := re.search(rf"{number} changes? of them can be supplied by nobody", fix["caution"] or "")
                ) and _int(few[1]) != gone:
                    yield f"{gone} rows of {one['server']} are held by nobody: {fix['caution']}"
        if one["code"] == "PENDING_CHANGES" and (told := re.search(rf"waits for {number} changes? of origin", said)):
            rows = [
                row["count"] for row in found["pending"]
                if (row["server"], row["origin"], row["suffix"]) == (one["server"], one["origin"], one["suffix"])
            ]  # fmt: skip
            if sum(rows) != _int(told[1]):
                yield f"{sum(rows)} rows are pending: {said}"
        if (told := re.search(rf"lost {number} own changes?", said)) and not found["run"]["truncated"]:
            if _int(told[1]) != len(mine):
                yield f"{len(mine)} own changes are missing on {one['server']}: {said}"
        if one["code"] == "LINK_FAILING" and (told := re.search(rf"{number} changes? waits? behind it", said)):
            if _int(told[1]) != one["waiting"]:
                yield f"{one['waiting']} changes wait: {said}"
    yield from _headline(found, text, number)
    yield from _tables(found, text, plan)


def _int(number: str) -> int:
    return int(number.replace(",", ""))


def _headline(found: Row, text: str, number: str) -> Iterator[str]:
    first = text.split("\n\n")[1]
    missing = {(row["suffix"], row["position"], row.get("entry"), row.get("attribute")) for row in found["missing"]}
    told = re.search(rf"{number} changes? (?:is|are) MISSING on (.*?) and will not", first)
    if bool(told) != bool(missing) or (told and not found["run"]["truncated"] and _int(told[1]) != len(missing)):
        yield f"{len(missing)} changes are missing: {first}"
    if told and set(told[2].split(", ")) != {row["server"] for row in found["missing"]}:
        yield f"missing on {sorted({row['server'] for row in found['missing']})}: {first}"
    if missing and re.search("(?i)no change is (known to be )?missing", first):
        yield f"{len(missing)} changes are missing: {first}"
    failing = [one for one in _counted(found) if one["code"] == "LINK_FAILING"]
    if (told := re.search(rf"{number} links (?:fail|do not run)", first)) and _int(told[1]) > len(failing):
        yield f"{len(failing)} links fail by the findings: {first}"
    for sent, words in ((True, "on the way to"), (False, "not arrived at")):
        waits: dict[str, int] = defaultdict(int)
        for row in found["pending"]:
            if bool(row["suppliers"] or row.get("through")) is sent:
                waits[row["server"]] += row["count"]
        told = re.search(rf"(up to |at least )?{number}(?: changes?)?(?: is| are| has| have) {words} ([^;:]*)", first)
        if bool(told) != bool(waits) or (
            told and (_int(told[2]) != max(waits.values()) or (not told[1] and len(set(waits.values())) > 1))
        ):
            yield f"{dict(waits)} changes are {words}: {first}"


def _tables(found: Row, text: str, plan: str) -> Iterator[str]:
    """The table of the diagnosis and that of the plan hold the sums of the lists."""
    if found["run"]["truncated"]:
        return
    missing: dict[tuple[str, ...], int] = defaultdict(int)
    pending: dict[tuple[str, ...], int] = defaultdict(int)
    for row in found["missing"]:
        missing[row["suffix"] or "", row["server"], row["origin"]] += 1
    for row in found["pending"]:
        pending[row["suffix"] or "", row["server"], row["origin"]] += row["count"]
    several = len({one["suffix"] for one in found["servers"]}) > 1
    for cells in _rows_under(text, "ORIGIN", "MISSING"):
        suffix, server, origin, lost, late, _ = cells if several else ("", *cells)
        keys = [key for key in {*missing, *pending} if key[1:] == (server, origin) and suffix in ("", key[0])]
        sums = sum(missing[key] for key in keys), sum(pending[key] for key in keys)
        if sums != (_int(lost), _int(late)):
            yield f"{server}, origin {origin}: the table says {lost} missing and {late} pending, the lists {sums}"
    for cells in _rows_under(plan, "SUFFIX", "MISSING"):
        server, suffix, lost, late = [*cells[:1], *([""] if len(cells) == 5 else []), *cells[1:]][:4]
        sums = tuple(sum(rows[key] for key in rows if key[:2] == (suffix, server)) for rows in (missing, pending))
        if sums != (_int(lost), _int(late)):
            yield f"{server} {suffix}: the plan says {lost} missing and {late} pending, the diagnosis {sums}"


def _rows_under(text: str, *heads: str) -> Iterator[list[str]]:
    """The cells of the first table with these heads."""
    lines = iter(text.splitlines())
    for line in lines:
        if set(heads) <= set(line.split()):
            for row in lines:
                if not row.strip():
                    return
                yield re.split(r"\s{2,}|(?<=\S) (?=\d[\d,]*(?:\s|$))", row.strip())
