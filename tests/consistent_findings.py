"""A slow second reader of collected 389 DS files, which checks each sentence of a diagnosis against the rows.

It shares no code with the detectors: what it knows of the files is `raw_rows`. `contradictions` gives what a diagnosis, its text,
its plan and the stories of its changes say that the files do not show, one sentence each; nothing for a consistent one. It does
not prove that a diagnosis is complete, but for entries that differ.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from raw_rows import CSN, HELPERS, STAMP, Collected, Place, made_at, origin_of, second_of

Row = Mapping[str, Any]


def contradictions(held: Collected, found: Row, text: str, plan: str = "", stories: Sequence[str] = ()) -> list[str]:
    """What a diagnosis says that the files do not show, or that it says otherwise elsewhere."""
    everything = [json.dumps({key: found[key] for key in found if key not in ("rejects", "run")}), text, plan, *stories]
    checks = (
        _positions(held, found, everything),
        _names(held, found, [text, plan]),
        _proofs(held, stories),
        _counts(found, text, plan),
        _missing(held, found),
        _pending(held, found),
        _times(held, found, [text, plan, *stories]),
        _links(held, found),
        _together(held, found, text, plan),
        _entries(held, found),
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
                    few := re.search(
                        rf"{number} changes? of them (?:is|are) in no|no log has {number} of them", fix["caution"] or ""
                    )
                ) and _int(few[1] or few[2]) != gone:
                    yield f"{gone} rows of {one['server']} are held by nobody: {fix['caution']}"
        if one["code"] == "PENDING_CHANGES" and (told := re.search(rf"waits for {number} changes? of origin", said)):
            rows = [
                row["count"] for row in found["pending"]
                if (row["server"], row["origin"], row["suffix"]) == (one["server"], one["origin"], one["suffix"])
            ]  # fmt: skip
            if sum(rows) != _int(told[1]):
                yield f"{sum(rows)} rows are pending: {said}"
        told = re.search(rf"lost {number} own changes?", said)
        own = [
            row for row in mine if not row.get("entry_gone")
        ]  # what was done to an entry that is gone is not to be given back
        if told and not found["run"]["truncated"] and _int(told[1]) != len(own):
            yield f"{len(own)} own changes are missing on {one['server']}: {said}"
        told = re.search(rf"{number} changes? waits? behind it", said)
        if told and _int(told[1]) != one["waiting"]:
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
    of_suffix = [part.partition(" in ") for part in (told[2] if told else "").split(" and ")]
    on = {(server, suffix) for servers, _, suffix in of_suffix for server in servers.split(", ")}
    several = len({one["suffix"] for one in found["servers"]} - {None}) > 1
    if told and on != {(row["server"], row["suffix"] if several else "") for row in found["missing"]}:
        yield f"missing on {sorted({row['server'] for row in found['missing']})}: {first}"
    if missing and re.search("(?i)no change is (known to be )?missing", first):
        yield f"{len(missing)} changes are missing: {first}"
    failing = [one for one in _counted(found) if one["code"] == "LINK_FAILING"]
    if (told := re.search(rf"{number} links (?:fail|do not run)", first)) and _int(told[1]) > len(failing):
        yield f"{len(failing)} links fail by the findings: {first}"
    newer = " newer than every collected vector and had"
    if newer in first:
        yield from _newer(found, first)
    for sent, words in ((True, "(?:on the way to|waiting for)"), (False, "not arrived at")):
        waits: dict[str, int] = defaultdict(int)
        for row in found["pending"]:
            if not row.get("dropped_since") and bool(row["suppliers"] or row.get("through")) is sent:
                waits[row["server"]] += row["count"]
        told = re.search(
            rf"(up to |at least )?{number}(?: changes?)?(?: is| are| has| have)(?:{newer})? {words} ([^;:]*)", first
        )
        if bool(told) != bool(waits) or (
            told and (_int(told[2]) != max(waits.values()) or (not told[1] and len(set(waits.values())) > 1))
        ):
            yield f"{dict(waits)} changes are {words}: {first}"


def _newer(found: Row, first: str) -> Iterator[str]:
    """Changes that are said to be newer than every vector have a CSN above each of them."""
    for row in found["pending"]:
        claims = [one["vector"].get(row["origin"], {}) for one in found["servers"] if one["suffix"] == row["suffix"]]
        if (
            not row["suppliers"]
            and not row["through"]
            and any(row["first"] <= (claim.get("max") or "") for claim in claims)
        ):
            yield f"{row['first']} of origin {row['origin']} is not newer than every vector: {first}"


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


def _place(held: Collected, row: Row) -> Place:
    """Server and suffix of a row; where no suffix is told and there is one alone, that."""
    return row["server"], row["suffix"] or (next(iter(held.suffixes)) if len(held.suffixes) == 1 else "")


def _proofs(held: Collected, stories: Sequence[str]) -> Iterator[str]:
    """Where a story says that a file names its change, the record or the line there does."""
    for story in stories:
        position = story.split(" ")[0]
        for place, offset in re.findall(r"(?m)^    (\S+/\S+):(\d+)  ", story):
            record = held.raw.get(place, b"")[int(offset) : int(offset) + 100_000].decode("utf-8", "replace")
            record = re.split(r"\n\r?\n", record, maxsplit=1)[0] if ".ldif" in place else record.partition("\n")[0]
            for packed in re.findall(r'"value":"([A-Za-z0-9+/]+=*)"', record):  # a control, as JSON logs have it
                record += base64.b64decode(packed).decode("latin-1")
            if position[:16] not in record.replace("\r", "").replace("\n ", ""):
                yield f"{place} does not name {position} at {offset}"


def _missing(held: Collected, found: Row) -> Iterator[str]:
    """What is missing is covered, and neither a log nor the entries of the server show it; who holds it has it in a log."""
    differ = {item for one in found["findings"] if one["code"] == "ENTRIES_DIFFER" for item in one["items"]}
    for row in found["missing"]:
        (server, suffix), position = _place(held, row), row["position"]
        told = f"{position} is missing on {server}, but"
        if held.known(server, suffix, row["origin"]) < position:
            yield f"{told} its vector does not cover it"
        logs = {name for (name, of), log in held.changelogs.items() if of == suffix and position in log}
        if not held.entries.get((server, suffix)):
            if server in logs:
                yield f"{told} its changelog holds it"
            at = held.applied[server].get(position)
            if at and not held.replaced_after(server, at):
                yield f"{told} its access log says at {at} that it was applied"
        else:
            made = next((held.changelogs[name, suffix][position] for name in sorted(logs)), None)
            shown = held.states[server, suffix].get(made.entry if made else "", set())
            if position in shown and position not in differ:
                yield f"{told} its entry {made and made.target} shows it"
            if made and made.operation == "add" and shown and position not in differ:
                yield f"{told} the entry {made.target} is there"
        for name in set(row["held_by"]) - logs:
            yield f"{position} is held by {name}, but its changelog does not hold it"
        if not row["held_by"] and logs:
            yield f"{position} is held by nobody, but {sorted(logs)} hold it"


def _pending(held: Collected, found: Row) -> Iterator[str]:
    """What is pending is neither covered nor in the entries; who would send it has it, over a link that does not fail."""
    rows = {(*_place(held, row), row["origin"]): row for row in found["pending"]}
    for (server, suffix, origin), row in rows.items():
        told = f"{row['count']} changes of origin {origin} wait for {server}, but"
        if row["first"] <= held.known(server, suffix, origin):
            yield f"{told} it shows {held.known(server, suffix, origin)}, and the first is {row['first']}"
        if any({row["first"], row["last"]} & some for some in held.states.get((server, suffix), {}).values()):
            yield f"{told} its entries show {row['first']} or {row['last']}"
        logged = {
            name: {one for one in log if origin_of(one) == origin and row["first"] <= one <= row["last"]}
            for (name, of), log in held.changelogs.items()
            if of == suffix
        }
        least = set().union(*logged.values())
        most = {one for one in held.positions if origin_of(one) == origin and row["first"] <= one <= row["last"]}
        if not len(least) <= row["count"] <= len(most):
            yield f"{told} the logs hold {len(least)} of them"
        others = set().union(*(some for name, some in logged.items() if name != server))
        if row["available"] != len(others):
            yield f"{told} logs of others hold {len(others)} of them, not {row['available']}"
        for name in row["suppliers"]:
            links = [one for key, one in held.agreements.items() if key[:2] == (name, suffix)]
            if (
                not logged.get(name)
                and held.known(name, suffix, origin) < row["first"]
                and held.owns.get((name, suffix)) != origin
            ):
                yield f"{told} {name} would send them, and shows none of them"
            if links and not any(_runs(one) for one in links):
                yield f"{told} no link of {name} runs"
        for name in row.get("through", ()):
            if (name, suffix, origin) not in rows:
                yield f"{told} they come through {name}, which does not wait for them"


def _runs(agreement: Mapping[str, str]) -> bool:
    status = re.search(r"Error \((-?\d+)\)", agreement.get("nsds5replicalastupdatestatus", ""))
    return agreement.get("nsds5replicaenabled", "on") != "off" and (not status or status[1] in ("0", "1", "18"))


def _times(held: Collected, found: Row, texts: Sequence[str]) -> Iterator[str]:
    """Every time that is named is one of a row, or that of a change that is named."""
    made = {made_at(one) for one in held.positions}
    known = held.seconds | made
    opens = {(one - timedelta(days=1)).replace(second=0) for one in made}
    for said in texts:
        for line in said.splitlines():
            for stamp in STAMP.findall(line) if not line.startswith("Plan ") else ():
                if second_of(stamp) not in known:
                    yield f"no row is of the time {stamp}: {line[:200]}"
            for day in re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC", line):
                if datetime.fromisoformat(f"{day}+00:00") not in opens:
                    yield f"no position is of the day after {day}: {line[:200]}"
    early, late = min(held.read, default=None), max(held.read, default=None)
    for one, said in _sentences(found):
        for number, unit in re.findall(r"the oldest (?:made|for) (\d+) (days|h|min|s)\b", said):
            size = {"days": 86400, "h": 3600, "min": 60, "s": 1}[unit]
            rows = [
                row for row in found["pending"]
                if row["suffix"] == one["suffix"] and (one["origin"] in (None, row["origin"]))
            ]  # fmt: skip
            starts = {made_at(row["first"]) for row in rows} | {made_at(item) for item in one["items"]}
            span = timedelta(seconds=int(number) * size), timedelta(seconds=(int(number) + 1) * size)
            if early and late and not any(start + span[0] <= late and early - span[1] <= start for start in starts):
                yield f"nothing that waits is that old: {said}"
        for days in re.findall(r"(\d+\.\d) days ahead", said):
            tops = [
                top
                for (server, _), tops in held.vectors.items()
                if one["server"] in (None, server)
                for top in tops.values()
            ]
            ahead = [
                (made_at(top) - moment).total_seconds() / 86400 for top in tops for moment in (early, late) if moment
            ]
            if not any(abs(float(days) - much) < 0.1 for much in ahead):
                yield f"no position of {one['server']} is that far ahead: {said}"
        if told := re.search(r"(\S+) (?:has refused|refuses) every write since its clock was set back", said):
            back, late = held.set_back(told[1]), max(held.read)
            own = {origin for (server, _), origin in held.owns.items() if server == told[1]}
            if took := sorted(
                p for p, at in held.applied[told[1]].items() if origin_of(p) in own and back and back <= at <= late
            ):
                yield f"{told[1]} took the writes {took} after {back}: {said}"


WORDS = {
    "2": "skew",
    "8": "obtain current CSN",
    "11": "(?i)replica ID",
    "19": "(?i)generation",
    "-1": "(?i)contact LDAP",
    "49": "(?i)credential",
}
"""What the server writes beside a code of a session that failed."""


def _links(held: Collected, found: Row) -> Iterator[str]:
    """A link that is said to fail, or to be off, has a row that says so; one that is said to run has none."""
    for one in found["findings"]:
        agreement = held.agreements.get((one["server"], one["suffix"], one["link"]), {}) if one["link"] else {}
        status = agreement.get("nsds5replicalastupdatestatus", "")
        if one["code"] == "LINK_DISABLED" and agreement.get("nsds5replicaenabled") != "off":
            yield f"{one['link']} is not off: {one['summary']}"
        if one["code"] != "LINK_FAILING":
            continue
        lines = [line for line in held.errors[one["server"]].splitlines() if f'cn={one["link"]}"' in line]
        for code in re.findall(r"\(code (-?\d+)\)", one["summary"]):
            if f"({code})" not in status and not any(re.search(WORDS.get(code, code), line) for line in lines):
                yield f"neither the status nor the log of {one['link']} has the code {code}: {one['summary']}"
        if agreement and _runs(agreement) and not lines and one["reason"] not in ("schedule_closed", "unreachable"):
            yield f"nothing says that {one['link']} fails ({status}): {one['summary']}"
        same = [value for key, value in held.agreements.items() if key[::2] == (one["server"], one["link"])]
        ended = sum("requires administrator action" in line for line in lines)
        if _runs(agreement) and "stopped until" in one["summary"] and ended <= sum(not _runs(other) for other in same):
            yield f"the lines about {one['link']} are of another suffix, and its status is {status}: {one['summary']}"
        port = (re.search(r"from \S+ to \S+:(\d+) ", one["summary"]) or ["", ""])[1]
        if port and "its ends was not collected" in one["summary"]:
            for (server, suffix), text in held.elements.items():
                alone = list(held.owns.values()).count(held.owns.get((server, suffix), "")) == 1
                if f":{port}}}" in text and suffix == one["suffix"] and alone:
                    yield f"{server} was collected, and its replica is at port {port}: {one['summary']}"
        yield from _since(held, found, one)


def _since(held: Collected, found: Row, one: Row) -> Iterator[str]:
    """Where all links of a supplier are said to fail, nobody has a change of it that it made since."""
    mine = [
        row for row in found["findings"]
        if row["code"] == "LINK_FAILING" and (row["server"], row["suffix"]) == (one["server"], one["suffix"])
    ]  # fmt: skip
    links = [key for key in held.agreements if key[:2] == (one["server"], one["suffix"])]
    origin = held.owns.get((one["server"], one["suffix"]))
    if len(mine) < len(links) or not origin or not all(row["since"] for row in mine):
        return
    since = max(datetime.fromisoformat(row["since"]) for row in mine)
    tops = [
        tops[origin]
        for (name, of), tops in held.vectors.items()
        if of == one["suffix"] and name != one["server"] and origin in tops
    ]
    if tops and made_at(max(tops)) > since + timedelta(seconds=60):
        yield f"others have the change {max(tops)} of {one['server']}, made at {made_at(max(tops))}: {one['summary']}"


def _together(held: Collected, found: Row, text: str, plan: str) -> Iterator[str]:
    """No two sentences contradict each other."""
    missing = {(row["server"], row["suffix"], row["position"]) for row in found["missing"]}
    for row in found["pending"]:
        for server, suffix, position in missing:
            if (
                (server, suffix) == (row["server"], row["suffix"])
                and origin_of(position) == row["origin"]
                and position >= row["first"]
            ):
                yield f"{position} is missing on {server}, and pending from {row['first']} on"
    first, graves = text.split("\n\n")[1], [one for one in _counted(found) if one["severity"] in ("warning", "error")]
    if graves and "Nothing needs mending" in plan:
        yield f"the plan says that nothing needs mending: {', '.join(sorted({one['code'] for one in graves}))}"
    if any(one["severity"] == "error" for one in graves) and re.fullmatch(
        r"(?i)no change is (known to be )?missing\.", first
    ):
        yield f"the first line says nothing of an error: {first}"
    for code, said in (("MISSED_CHANGE", "missing"), ("PENDING_CHANGES", "pending"), ("STRANDED_CHANGE", "stranded")):
        told = {(one["server"], one["origin"], one["suffix"]) for one in found["findings"] if one["code"] == code}
        rows = {(row["server"], row["origin"], row["suffix"]) for row in found[said]}
        if not found["run"]["truncated"] and code != "PENDING_CHANGES" and told != rows:
            yield f"{code} is told of {sorted(told)}, and rows are {said} of {sorted(rows)}"
    failing = {(one["server"], one["link"]) for one in found["findings"] if one["code"] == "LINK_FAILING"}
    for one in found["findings"]:
        if "over links that run" in one["summary"] and not one.get("overruled_by"):
            for name in re.findall(r"; ([\w, ]+) can deliver", one["summary"]):
                for server in re.split(r", | and ", name):
                    if {(server, key[2]) for key in held.agreements if key[0] == server} <= failing:
                        yield f"all links of {server} fail: {one['summary']}"
        if one["code"] in ("ROLLED_BACK", "OWN_CHANGES_HIDDEN") and not one.get("overruled_by"):
            own = held.owns.get((one["server"], one["suffix"] or next(iter(held.suffixes))))
            if own != one["origin"]:
                yield f"{one['origin']} is not the origin of {one['server']}: {one['summary']}"
        if one.get("overruled_by") and f"{one['severity'].upper()} {one['code']} (server {one['server']}" in text:
            yield f"{one['code']} is overruled by {one['overruled_by']} and told all the same"
    for name, count in re.findall(r"([A-Z_]+) \((\d+)\)(?=[,\n]|$)", "\n".join(re.findall(r"Not concluded, .*", text))):
        if int(count) != sum(one["code"] == name and bool(one.get("overruled_by")) for one in found["findings"]):
            yield f"{name}: {count} are said to be overruled"


def _entries(held: Collected, found: Row) -> Iterator[str]:
    """Entries that are said to differ do, from each server named; and none that differs behind equal vectors is left out."""
    waits = {_place(held, row) for row in (*found["pending"], *found["unknown"])}
    lacking: dict[Place, set[str]] = defaultdict(set)
    for row in found["missing"]:
        lacking[_place(held, row)].add((row["target"] or "").lower())
    told: dict[Place, int] = {}
    for one in found["findings"]:
        said = re.match(
            r"(\d[\d,]*) entr(?:y|ies) of (\S+) differs? from (?:those|that) of (.*?), although", one["summary"]
        )
        if one["code"] != "ENTRIES_DIFFER" or not said:
            continue
        place = _place(held, one)
        told[place] = _int(said[1])
        others = re.split(r", | and ", said[3])
        for name in others:
            if place[1] and not _differing(held, place, (name, place[1])):
                yield f"no entry of {place[0]} differs from that of {name}: {one['summary']}"
        most = set().union(*(_differing(held, place, (name, place[1])) for name in others))
        if _int(said[1]) > len(most):
            yield f"{len(most)} entries of {place[0]} differ: {one['summary']}"
        if sum(map(_int, re.findall(r"(\d[\d,]*) entr(?:y|ies) (?:is|are|has|have) ", said.string))) != _int(said[1]):
            yield f"the kinds of difference do not add up: {one['summary']}"
    named = json.dumps([one["evidence"] for one in found["findings"]]).lower()
    places = [place for place in sorted(held.entries) if place not in waits]
    for place in places:
        for other in places:
            if place < other and place[1] == other[1] and held.vectors[place] == held.vectors[other]:
                for dn in sorted(_differing(held, place, other)):
                    if dn not in lacking[place] | lacking[other] and dn not in named and not {place, other} & set(told):
                        yield f"{dn} differs between {place[0]} and {other[0]}, and nothing says so"


def _differing(held: Collected, one: Place, other: Place) -> set[str]:
    """The names of the entries whose replicated values are not the same on two servers."""
    mine, theirs = held.entries.get(one, {}), held.entries.get(other, {})
    return {
        next(iter((mine.get(entry) or theirs[entry])["dn"])).lower()
        for entry in {*mine, *theirs}
        if mine.get(entry) != theirs.get(entry)
    }
