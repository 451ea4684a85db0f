"""A slow second reader of recorded snapshots of Comdb2, which holds each sentence, number and step against the rows of the files.

It shares no code with the readers and the detectors: it splits the tables at their tabs and computes with what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from said_counts import shown_before

from workbench.repair.plan_types import Plan

Row = Mapping[str, Any]
Place = tuple[int, int]
NODE = re.compile(r"\b[A-Za-z][A-Za-z0-9_]*@[a-z0-9]+\b")
PLACE = re.compile(r"\{(\d+):(\d+)\}")


@dataclass
class Snapshot:
    """The rows of one snapshot, by node."""

    now: datetime
    rows: dict[str, list[str]]
    pulls: dict[str, str]
    answers: dict[str, list[str]]
    files: dict[str, dict[int, int]]
    tunables: dict[str, dict[str, str]]
    places: set[Place]
    source: str
    named: set[str]

    def out(self, name: str) -> bool:
        """Whether a node was taken out: its row says so, and nothing shows that it is there."""
        row = self.rows[name]
        return row[6] == "Inactive" and name not in self.pulls and not self.up(name) and self.age(name) >= 60

    def up(self, name: str) -> bool:
        """Whether a node answered."""
        return len(self.answers.get(name, ())) > 4

    def asked(self, name: str) -> bool:
        """Whether a node was asked."""
        return name in self.answers

    def last(self, name: str) -> Place:
        """How far a node is: as it answered, else as it reported itself."""
        row = self.answers.get(name)
        return _place(row[4]) if row and len(row) > 4 else (int(self.rows[name][2]), int(self.rows[name][3]))

    def first(self, name: str) -> int:
        """The first file of a node: as it answered, as its folder shows, else as it reported itself."""
        row = self.answers.get(name)
        if row and len(row) > 4:
            return _place(row[3])[0]
        return min(self.files[name]) if name in self.files else int(self.rows[name][4])

    def age(self, name: str) -> float:
        """Seconds since a node reported itself; without end of one that never did."""
        if self.rows[name][5] == "NULL":
            return float("inf")
        return (self.now - _time(self.rows[name][5])).total_seconds()

    def roots(self) -> list[str]:
        """The nodes of the source."""
        return [name for name in self.rows if name.partition("@")[0] == self.source]

    def head(self) -> Place:
        """How far the source is."""
        return max(map(self.last, self.roots()))

    def serves(self, name: str, to: str) -> bool:
        """Whether a node has the file that another one needs next, and goes further."""
        return self.first(name) <= self.last(to)[0] and self.last(name) > self.last(to)

    def lag(self, name: str) -> int | None:
        """Bytes from the end of a node to that of its source, at least: by the largest size that any node shows of each file.

        None where no node shows the size of a file in between.
        """
        here, there = self.last(name), self.head()
        sizes: dict[int, int] = {}
        for of in self.files.values():
            for number, size in of.items():
                sizes[number] = max(size, sizes.get(number, 0))
        between = [sizes.get(number) for number in range(here[0], there[0])]
        return None if None in between else sum(filter(None, between)) + there[1] - here[1]


def _place(text: str) -> Place:
    file, offset = text.strip("{}").split(":")
    return int(file), int(offset)


def _time(text: str) -> datetime:
    return datetime.strptime(text.strip('"').removesuffix(" UTC"), "%Y-%m-%dT%H%M%S.%f").replace(tzinfo=UTC)


def _table(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in file.read_text().splitlines()] if file.exists() else []


def snapshot(folder: Path) -> Snapshot:
    """A recorded snapshot."""
    meta, nodes = folder / "meta", folder / "nodes"
    rows = {f"{row[0]}@{row[1]}": row for row in _table(meta / "comdb2_physreps.tsv")}
    pulls = {f"{row[0]}@{row[1]}": f"{row[2]}@{row[3]}" for row in _table(meta / "comdb2_physrep_connections.tsv")}
    answers = {f"{row[1]}@{row[2]}": row for row in _table(nodes / "positions.tsv")}
    files: dict[str, dict[int, int]] = {}
    for row in _table(nodes / "logfiles.tsv"):
        files.setdefault(f"{row[0]}@{row[1]}", {})[int(row[2][4:])] = int(row[3])
    tunables: dict[str, dict[str, str]] = {}
    for row in _table(nodes / "tunables.tsv"):
        tunables.setdefault(f"{row[0]}@{row[1]}", {})[row[2]] = row[3]
    text = "\n".join(file.read_text(errors="replace") for file in sorted(folder.rglob("*")) if file.is_file())
    places = {(int(one), int(other)) for one, other in re.findall(r"[\[{(]?\b(\d+):(\d+)\b", text)}
    places |= {(int(row[2]), int(row[3])) for row in rows.values()}
    pulled = {source.partition("@")[0] for source in pulls.values()} - {name.partition("@")[0] for name in pulls}
    (source,) = pulled
    now = _time((meta / "now.txt").read_text().splitlines()[0])
    named = {
        f"{database}@{host}" for row in _table(meta / "comdb2_physrep_sources.tsv") for database, host in _ends(row)
    }
    return Snapshot(now, rows, pulls, answers, files, tunables, places, source, named)


def _ends(row: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield row[0], row[1]
    yield row[2], row[3]


def contradictions(held: Snapshot, found: Row, text: str, planned: Plan, plan_text: str) -> list[str]:
    """What is said of a snapshot and stands in none of its rows, one sentence each."""
    checks = (
        _names(held, found, [text, plan_text]),
        _gaps(held, found),
        _gone(held, found),
        _shape(held, found),
        _nodes(held, found),
        _pending(held, found, text),
        _steps(held, found, planned),
    )
    return sorted({said for check in checks for said in check})


def _names(held: Snapshot, found: Row, texts: Sequence[str]) -> Iterator[str]:
    known = {*held.rows, *held.answers, *held.pulls, *held.named}
    for said in texts:
        for name in set(NODE.findall(said)) - known:
            yield f"no row is of a node {name}"
        for file, offset in set(PLACE.findall(said)):
            if (int(file), int(offset)) not in held.places:
                yield f"{{{file}:{offset}}} stands in no row"
    for one in found["findings"]:
        for name in [one["server"], *one["servers"]]:
            if name and name not in known:
                yield f"{one['code']} is of {name}, which stands in no row"
        for again in re.finditer(r"it reported itself ([\d.,]+) (s|min|h) ago", one["summary"]):
            size = {"s": 1, "min": 60, "h": 3600}[again[2]]
            if abs(float(again[1].replace(",", "")) * size - held.age(one["server"])) > size / 2 + 1:
                yield f"{one['server']} reported itself {held.age(one['server'])} s before: {one['summary']}"


def _listed(text: str) -> list[str]:
    return NODE.findall(text)


def _gaps(held: Snapshot, found: Row) -> Iterator[str]:
    told = {}
    for one in found["findings"]:
        said = re.match(r"(\S+) needs log file (\d+), (.*)", one["summary"])
        if one["code"] != "LOG_GAP" or not said:
            continue
        name, rest = said[1], said[3]
        told[name] = one
        if int(said[2]) != held.last(name)[0]:
            yield f"{name} is at {held.last(name)}: {one['summary']}"
        begins = re.search(r"begins with file (\d+)|has files from (\d+) on", rest)
        firsts = [held.first(root) for root in held.roots() if held.up(root)]
        if begins and int(begins[1] or begins[2]) != min(firsts):
            yield f"the source begins with file {min(firsts)}: {one['summary']}"
        having = [other for other in held.rows if other != name and held.serves(other, name)]
        if "no node that answers has it" in rest and (answer := [other for other in having if held.up(other)]):
            yield f"{answer} have file {said[2]}: {one['summary']}"
        if only := re.search(r"of the nodes that answer only (.*?) (?:has|have) it, and cannot go on", rest):
            stuck = [other for other in having if held.up(other)]
            if sorted(_listed(only[1])) != sorted(stuck) or set(stuck) & _able(held):
                yield f"{stuck} have file {said[2]}, {sorted(_able(held))} can go on: {one['summary']}"
        for clause in re.findall(r"; ([^;]*?) (?:still ha|ha)(?:s|ve) it", rest):
            if lacking := [other for other in _listed(clause) if other not in having]:
                yield f"{lacking} do not have file {said[2]}: {one['summary']}"
        for clause in re.findall(r"; ([^;]*?) ha(?:s|ve) it and do(?:es)? not answer", rest):
            if up := [other for other in _listed(clause) if held.up(other)]:
                yield f"{up} answer: {one['summary']}"
        if "which its source has deleted" in rest and any(held.serves(root, name) for root in held.roots()):
            yield f"its source has file {said[2]}: {one['summary']}"
    for name in held.rows:
        behind = held.last(name) < held.head() and name not in held.roots() and not held.out(name)
        if behind and not any(held.serves(root, name) for root in held.roots()) and name not in told:
            yield f"no node of the source has the file that {name} needs, and nothing says so"
    for one in found["findings"]:
        name = one["server"]
        if one["code"] == "REINIT_REQUIRED" and any(held.serves(other, name) for other in _able(held)):
            yield f"others have what {name} needs: {one['summary']}"


def _able(held: Snapshot) -> set[str]:
    """The nodes that answer and are at the head of the source, or get there from one that is."""
    up = {name for name in held.rows if held.up(name)}
    able = {name for name in up if held.last(name) >= held.head()}
    while more := {name for name in up - able if any(held.serves(other, name) for other in able)}:
        able |= more
    return able


def _gone(held: Snapshot, found: Row) -> Iterator[str]:
    told = set()
    for one in found["findings"]:
        name = one["server"]
        if one["code"] not in ("REPLICANT_HUNG", "REPLICANT_INACTIVE") or name not in held.rows:
            continue
        told.add(name)
        says = one["summary"]
        if "does not answer" in says and held.up(name):
            yield f"{name} answered: {says}"
        if re.search(r": it answers", says) and not held.up(name):
            yield f"{name} did not answer: {says}"
        if "does not report itself" in says and held.age(name) < 60:
            yield f"{name} reported itself {held.age(name)} s before: {says}"
        if "waits for a source" in says and held.rows[name][6] != "Pending":
            yield f"the row of {name} says {held.rows[name][6]}: {says}"
        children = re.search(r"one of (\d+) that pull from (\S+) \(fanout (\d+)\)", says)
        if children:
            count = sum(source == children[2] for source in held.pulls.values())
            if int(children[1]) != count or held.pulls[name] != children[2] or int(children[3]) != _fanout(held):
                yield f"{count} pull from {children[2]}, fanout {_fanout(held)}: {says}"
        spelled = re.search(r"its state is spelled (\w+)", says)
        if spelled and spelled[1] != held.rows[name][6]:
            yield f"the row of {name} says {held.rows[name][6]}: {says}"
        for other in _listed((re.search(r"of these ([^;]*?) can serve it", says) or ["", ""])[1]):
            if not (held.serves(other, name) and held.up(other)):
                yield f"{other} begins with file {held.first(other)}, up: {held.up(other)}: {says}"
        for other in _listed((re.search(r"of these ([^;]*?) had its file", says) or ["", ""])[1]):
            if int(held.rows[other][4]) > held.last(name)[0] or held.first(other) <= held.last(name)[0]:
                yield f"{other} reported file {held.rows[other][4]}, and begins with {held.first(other)}: {says}"
    for name in held.rows:
        if 60 <= held.age(name) < float("inf") and name not in told and not held.out(name):
            yield f"{name} reported itself {held.age(name)} s before, and nothing says so"


def _fanout(held: Snapshot) -> int:
    values = [of["physrep_fanout"] for of in held.tunables.values() if "physrep_fanout" in of]
    told = [of.get("physrep_fanout") for name, of in held.tunables.items() if of.get("physrep_i_am_metadb") == "ON"]
    return int(next((value for value in told if value), None) or max(values, key=values.count))


def _tier(held: Snapshot, name: str) -> int:
    return 0 if name in held.roots() else 1 + _tier(held, held.pulls[name])


def _shape(held: Snapshot, found: Row) -> Iterator[str]:
    counts = {name: sum(source == name for source in held.pulls.values()) for name in held.rows}
    full = set()
    for one in found["findings"]:
        says = one["summary"]
        if one["code"] == "FANOUT_EXCEEDED":
            said = re.match(r"(\d+) nodes pull from (\S+), and the fanout is (\d+)", says)
            full.add(one["server"])
            if said and (int(said[1]), int(said[3])) != (counts[said[2]], _fanout(held)):
                yield f"{counts[said[2]]} pull from {said[2]}, fanout {_fanout(held)}: {says}"
            for name in _listed((re.search(r"; ([^;]*) of the source serves? nobody", says) or ["", ""])[1]):
                if counts[name]:
                    yield f"{counts[name]} pull from {name}: {says}"
        if one["code"] == "TIER_TOO_DEEP":
            said = re.search(r"has (\d+) tiers below the source; (\d+) would do for its (\d+) nodes", says)
            deep = max(_tier(held, name) for name in held.pulls)
            if said and int(said[1]) != deep:
                yield f"{deep} tiers are below the source: {says}"
            if said and int(said[3]) != sum(name not in held.roots() for name in held.rows):
                yield f"{len(held.rows) - len(held.roots())} nodes follow the source: {says}"
        if one["code"] == "UNSAFE_SETTING" and (said := re.match(r"(.*?) names? (\S+) alone as the source, not", says)):
            for name in _listed(said[1]):
                if held.tunables[name]["physrep_source_host"].removeprefix("@") != said[2]:
                    yield f"{name} names {held.tunables[name]['physrep_source_host']}: {says}"
    for name, count in counts.items():
        if count > _fanout(held) and name not in full:
            yield f"{count} nodes pull from {name}, fanout {_fanout(held)}, and nothing says so"


def _nodes(held: Snapshot, found: Row) -> Iterator[str]:
    """The table of the tree holds what the rows say."""
    (tree,) = found["trees"]
    for row in tree["nodes"]:
        name = row["node"]
        children = sum(source == name for source in held.pulls.values())
        wanted: dict[str, Any] = {
            "state": held.rows[name][6],
            "parent": held.pulls.get(name),
            "children": children,
            "keepalive_age_s": None if held.age(name) == float("inf") else round(held.age(name), 1),
            "registry_lsn": f"{{{held.rows[name][2]}:{held.rows[name][3]}}}",
            "firstfile": held.rows[name][4],
            "probe": "ok" if held.up(name) else "unreachable" if held.asked(name) else None,
            "files_needed_from": held.last(name)[0],
        }
        if held.up(name):
            wanted |= {"node_last": list(held.last(name)), "node_first": list(_place(held.answers[name][3]))}
            wanted["actual_lag_bytes"] = held.lag(name) if held.last(name) < held.head() else row["actual_lag_bytes"]
        for key, value in wanted.items():
            if row[key] != value:
                yield f"{key} of {name} is said to be {row[key]}: it is {value}"
        needed = held.last(name)
        served = {other for other in held.rows if other != name and held.up(other) and held.serves(other, name)}
        if needed < held.head() and not set(row["served_by"]) <= served:
            yield f"{name} is said to be served by {row['served_by']}: {sorted(served)} have its file"


def _pending(held: Snapshot, found: Row, text: str) -> Iterator[str]:
    line = text.split("\n\n")[1]
    waits: dict[str, list[Row]] = {}
    for row in found["pending"]:
        waits.setdefault(row["server"], []).append(row)
    unknown = {row["server"] for row in found["unknown"]}
    for name in held.rows:
        behind = held.last(name) < held.head() and not held.out(name)
        if behind != (name in waits) and name not in unknown:
            yield f"{name} is at {held.last(name)}, the source at {held.head()}, waits: {name in waits}"
    for name, rows in waits.items():
        # What stands up to the end of those that it hangs on, and what stands behind that, are a row each.
        lags = [row["bytes"] for row in rows]
        if None not in lags and sum(lags) != held.lag(name):
            yield f"{sum(lags)} bytes wait for {name}, it is said: {held.lag(name)}"
        count = sum(row["count"] for row in rows)
        if count > sum(held.last(name) < place <= held.head() for place in held.places):
            yield f"{count} places wait for {name}: no row names so many"
        for supplier in {supplier for row in rows for supplier in row["suppliers"]}:
            alike = name in held.roots() and supplier in held.roots()  # its cluster brings it up to date
            # One that was stopped answers, and goes on serving its log.
            if not (alike or held.pulls.get(name) == supplier) or not held.up(supplier):
                yield f"{supplier} would send {name} something, it is said: it pulls from {held.pulls.get(name)}"
            if held.first(supplier) > held.last(name)[0]:
                yield f"{supplier} would send {name} something, and begins with file {held.first(supplier)}"
        having = any(held.serves(other, name) for other in held.rows if held.up(other))
        if any(row["available"] for row in rows) and not having:
            yield f"something is there for {name}, it is said: no node that answers has its file"
    coming = sorted(name for name, rows in waits.items() if any(row["suppliers"] for row in rows))
    left = sorted(name for name, rows in waits.items() if not all(row["suppliers"] for row in rows))
    said = re.search(r"(?:is|are) on the way to ([^;:.]*)", line)
    if sorted(_listed(said[1]) if said else []) != coming:
        yield f"{coming} get something: {line}"
    said = re.search(r"ha(?:s|ve) not arrived at ([^;:]*?), and nobody", line)
    if sorted(_listed(said[1]) if said else []) != left:
        yield f"{left} get nothing: {line}"


def _steps(held: Snapshot, found: Row, planned: Plan) -> Iterator[str]:
    for step in planned.steps:
        if step.server in held.roots():
            yield f"step {step.key} does something to the source"
        if step.repair == "reset" and held.up(step.server) and not held.last(step.server) < held.head():
            yield f"step {step.key} resets {step.server}, which is well"
        copied = re.search(r"is replaced by a copy of (\S+), which", step.says)
        if copied and (not held.up(copied[1]) or held.last(copied[1]) < held.head()):
            yield f"step {step.key} copies {copied[1]}, which is at {held.last(copied[1])}"
        if copied and not held.last(step.server) < held.head():
            yield f"step {step.key} replaces {step.server}, which has all there is"
        pulls = re.match(r"(\S+) pulls from (\S+), which has file (\d+)", step.says)
        if pulls and not (held.up(pulls[2]) and held.first(pulls[2]) <= int(pulls[3]) <= held.last(pulls[2])[0]):
            yield f"step {step.key}: {pulls[2]} does not have file {pulls[3]}"
        if pulls and int(pulls[3]) != held.last(pulls[1])[0]:
            yield f"step {step.key}: {pulls[1]} needs file {held.last(pulls[1])[0]}"
    yield from shown_before(found, planned)
