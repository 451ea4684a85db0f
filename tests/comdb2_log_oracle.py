"""A slow second reading of what is said of logs of Comdb2, record by record, against what the nodes of a made-up fleet have.

It shares no code with the detectors. A sentence is held against the true logs; a number that is told as exact against the number
of records in them, and one that is told as a least against no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from comdb2_log_fleets import (
    ANSWERS,
    CHECKPOINT,
    COMMIT,
    FIRST,
    FULL,
    NOTHING,
    ROWS,
    Fleet,
    Node,
    Place,
    Record,
)
from said_counts import shown_before

from workbench.repair.plan_types import Plan

Found = Mapping[str, Any]
Row = Mapping[str, Any]
ASSUMED = "furthest_log_is_source"
PLACE = r"\{\d+:\d+\}"


def contradictions(made: Fleet, found: Found, planned: Plan, line: str, text: str) -> list[str]:
    """What is said of a fleet and is not so, one sentence each."""
    checks = (
        _sources(made, found, planned, line, text),
        _logs(made, found),
        _missing(made, found),
        _pending(made, found, line),
        _gaps(made, found),
        _ends(made, found),
        _parted(made, found),
        _pairs(made, found),
        _steps(made, found, planned),
    )
    return [said for check in checks for said in check]


def _place(text: str) -> Place:
    file, offset = text.strip("{}").split(":")
    return int(file), int(offset)


def _text(place: Place) -> str:
    return f"{{{place[0]}:{place[1]}}}"


def _int(number: str) -> int:
    return int(number.replace(",", ""))


def _in_order(node: Node) -> list[Record]:
    return [record for _, record in sorted(node.shown.items())]


def _tells_ends(one: Record) -> bool:
    return one.kind in (COMMIT, CHECKPOINT)


# --- which log is the source


def _sources(made: Fleet, found: Found, planned: Plan, line: str, text: str) -> Iterator[str]:
    """Nothing stands on a source that is only guessed, and one that is told is not said to be unknown."""
    known = made.knows_source
    for tree in found["trees"]:
        if tree["source_is_known"] and not known:
            yield f"{tree['source']} is said to be the source: nothing tells who follows whom ({made.beside})"
        if known and (not tree["source_is_known"] or tree["source"] != made.source):
            yield f"{tree['source']} is taken for the source, known: {tree['source_is_known']}; {made.source} is named as it"
    if known:
        return
    if "on the way" in line:
        yield f"something is on the way, it is said, and nothing tells who follows whom: {line}"
    if re.search(r"(?i)no change is missing", line):
        yield f"no change is missing, it is said, and nothing tells who follows whom: {line}"
    for row in found["pending"]:
        if row["suppliers"]:
            yield f"{row['suppliers']} are said to send {row['server']} something: nothing tells who follows whom"
    for one in found["findings"]:
        if re.search(r"waits for|would send|is behind|on the way", one["summary"]) and ASSUMED not in one["assumes"]:
            yield f"{one['code']} takes a source for granted and does not say so: {one['summary']}"
        if re.search(r"would send|on the way", one["summary"]):
            yield f"nothing tells who follows whom, and something is sent: {one['summary']}"
    for row in found["pairs"]:
        if row["decision"] == "send":
            yield f"{row['supplier']} is said to send {row['consumer']} something: nothing tells who follows whom"
    for tree in found["trees"]:
        for row in tree["nodes"]:
            if row["condition"] in ("healthy", "behind") and made.beside == NOTHING:
                yield f"{row['node']} is said to be {row['condition']}: nothing of it was collected but its log"
    if planned.steps:
        yield f"the plan does {[step.key for step in planned.steps]}, and nothing tells which log is the source"


# --- logs as they are


def _logs(made: Fleet, found: Found) -> Iterator[str]:
    """The table of the logs holds what the records show, counted one by one."""
    rows = [row for tree in found["trees"] for row in tree["logs"]]
    told = {row["node"] for row in rows}
    if without := {name for name, node in made.nodes.items() if node.dumps} - told:
        yield f"nothing is said of the logs of {sorted(without)}"
    for row in rows:
        node = made.nodes[row["node"]]
        log = _in_order(node)
        wanted: dict[str, Any] = {
            "records": len(log),
            "commits": sum(one.kind == COMMIT for one in log),
            "first": _text(log[0].at),
            "last": _text(log[-1].at),
            "duplicates": sum(map(len, node.dumps)) - len(log),
            "contradictions": 0,
        }
        if row["source"]:
            wanted |= _beside(_in_order(made.nodes[row["source"]]), log)
        for key, value in wanted.items():
            if row[key] != value:
                yield f"{key} of the log of {row['node']} beside {row['source']} is said to be {row[key]}: it is {value}"


def _beside(theirs: list[Record], mine: list[Record]) -> dict[str, Any]:
    ours, reference = {one.at: one for one in mine}, {one.at: one for one in theirs}
    same = [one for one in mine if reference.get(one.at) and _alike(one, reference[one.at])]
    match = max((one.at for one in same if _tells_ends(one)), default=None)
    return {
        "same": len(same),
        "differing": sum(at in reference and not _alike(one, reference[at]) for at, one in ours.items()),
        "behind": sum(at > mine[-1].at for at in reference),
        "ahead": sum(at > theirs[-1].at for at in ours),
        "match": match and _text(match),
        "cut": sum(match is None or at > match for at in ours),
    }


def _alike(one: Record, other: Record) -> bool:
    """By what dumps show: the generation stands in commits and checkpoints alone, and an old program leaves it out."""
    return (len(one.payload), one.payload) == (len(other.payload), other.payload)


# --- what is missing, and what is waited for


def _missing(made: Fleet, found: Found) -> Iterator[str]:
    for row in found["missing"]:
        node, place = made.nodes[row["server"]], _place(row["position"])
        if place in {one.at for one in node.log}:
            yield f"{row['position']} is missing on {node.name}, it is said: it has it"
        if not node.log[0].at < place < node.log[-1].at:
            yield f"{row['position']} is missing on {node.name}, it is said: its log does not go beyond that"
        if unshown := [holder for holder in row["held_by"] if place not in made.nodes[holder].shown]:
            yield f"{unshown} have {row['position']}, it is said: their dumps do not show it"
            continue
        had = {one.at: one for one in node.had}.get(place)
        if not all(had and _alike(had, made.nodes[holder].shown[place]) for holder in row["held_by"]):
            yield f"{row['position']} of {row['held_by']} is missing on {node.name}, it is said: that is another history"


def _said_last(made: Fleet, name: str) -> Place | None:
    """How far a node is, by what was collected."""
    node = made.nodes[name]
    told = [max(node.shown)] if node.dumps else []
    if made.beside in (ANSWERS, ROWS, FULL):
        told.append(node.log[-1].at)
    return max(told, default=None)


def _pending(made: Fleet, found: Found, line: str) -> Iterator[str]:
    known = made.knows_source
    source = {row["node"]: row["source"] for tree in found["trees"] for row in tree["logs"]}
    for row in found["pending"]:
        name = row["server"]
        node, last = made.nodes[name], _said_last(made, name)
        if last is None:
            yield f"{name} is said to wait for {row['count']}: nothing tells how far it is"
            continue
        against = _root(made) if known else made.nodes[source.get(name) or name]
        if not known and (against is node or not against.dumps):
            continue
        start = _where_it_goes_on(made, node, against, last)
        behind = [one.at for one in against.log if start < one.at <= _place(row["last"])]
        lacks = f"{name} ({node.fault}, {node.taken}) has {len(behind)} behind {_text(start)} to come"
        if row["counted"] and row["count"] != len(behind):
            yield f"{name} is said to wait for {row['count']} exactly, {row['first']} to {row['last']}: {lacks}"
        if not row["counted"] and row["count"] > max(len(behind), 1):
            yield f"{name} is said to wait for at least {row['count']}: {lacks}"
        if row["counted"] and behind and _place(row["first"]) != behind[0]:
            yield f"{name} is said to wait from {row['first']} on: it is {_text(behind[0])}"
    if not known:
        return
    waits = {row["server"] for row in (*found["pending"], *found["unknown"])}
    heads = [at for name in made.roots() if (at := _said_last(made, name))]
    for name in made.nodes:
        last = _said_last(made, name)
        if last and heads and last < max(heads) and name not in waits | set(made.roots()):
            yield f"{name} is at {last}, its source at {max(heads)}, and is said to wait for nothing"
    numbers = [_int(one) for one in re.findall(r"(?:at least |up to |; |^)([\d,]+) (?:is|are) on the way", line)]
    if numbers and numbers[0] != max(row["count"] for row in found["pending"] if row["suppliers"]):
        yield f"{numbers[0]} are said to be on the way: {[row['count'] for row in found['pending']]}"


def _root(made: Fleet) -> Node:
    """The node of the source of which most was collected."""
    return max((made.nodes[name] for name in made.roots()), key=lambda node: len(node.shown))


def _where_it_goes_on(made: Fleet, node: Node, source: Node, last: Place) -> Place:
    """Behind which place a node gets records: behind its end, or behind where it is cut back to: the newest common commit."""
    mine, theirs = node.shown, source.shown
    both = sorted(mine.keys() & theirs.keys())
    if not both or not source.dumps:
        return last
    alike = [at for at in both if _alike(mine[at], theirs[at])]
    match = max((at for at in alike if _tells_ends(mine[at])), default=None)
    inner = [at for at in mine if min(theirs) <= at <= max(theirs)]
    gaps = [(low, high) for low, high, _ in _holes(source)]
    turns = [(one.at, then.at) for one, then in pairwise(_in_order(source)) if one.file != then.file]
    gaps += [turn for turn in turns if alike[-1] > turn[1] and _lost_between(made, source, *turn)] if alike else []
    # What a dump of the source lacks, a copy holds rightly.
    here = [at for at in inner if at in theirs or not any(low < at < high for low, high in gaps)]
    other = [at for at in here if at not in theirs or not _alike(mine[at], theirs[at])]
    if other and match is not None and min(other) > match:
        return match
    if other and match is None:  # an older commit that both have is not among what was collected
        file, place = min(other)
        return file, place - 1
    return last


# --- gaps


def _holes(node: Node) -> list[tuple[Place, Place, Place]]:
    """(record, the next one, where one must stand between them) for what the shown records prove."""
    log, found = _in_order(node), []
    for one, other in pairwise(log):
        if one.file == other.file and other.place > one.end:
            found.append((one.at, other.at, (one.file, one.end)))
        elif one.file != other.file and other.at != (one.file + 1, FIRST):
            found.append((one.at, other.at, (one.file + 1, FIRST)))
    return found


def _short_files(made: Fleet, node: Node) -> dict[Place, Place]:
    """Last shown record of a file, where it ends before the file does by its size -> the place where another one must stand."""
    log, found = _in_order(node), {}
    for one, other in pairwise(log):
        size = max((own.end for own in node.log if own.file == one.file), default=FIRST)
        if made.beside == FULL and one.file != other.file and one.end < size:
            found[one.at] = (one.file, one.end)
    return found


def _gaps(made: Fleet, found: Found) -> Iterator[str]:
    told: dict[str, Row] = {}
    for one in found["findings"]:
        if one["code"] != "LOG_GAP" or "its log lacks records" not in one["summary"]:
            continue
        node = made.nodes[one["server"]]
        told[node.name] = one
        proven = {*({low: expected for low, _, expected in _holes(node)} | _short_files(made, node)).values()}
        lost = _lost_at_ends(made, node)
        for item in one["items"]:
            if _place(item) not in proven | lost:
                yield f"{item} lacks in the log of {node.name}, it is said: nothing proves it"
        number = re.search(r"lacks records in ([\d,]+) place", one["summary"])
        if number and not len(proven) <= _int(number[1]) <= len(proven | lost):
            yield f"{number[1]} places lack in the log of {node.name}, it is said: {len(proven)}, {len(lost)} by others"
        if one["severity"] == "error" and node.fault != "hole" and node.taken == "all":
            yield f"the log of {node.name} is said to have a gap for certain: it is {node.fault}, {node.taken}"
        yield from _lost_commits(made, node, one)
    for name, node in made.nodes.items():
        if _holes(node) and name not in told:
            yield f"the log of {name} lacks {_holes(node)}, and no finding says so"


def _lost_at_ends(made: Fleet, node: Node) -> set[Place]:
    """Places behind a last shown record of a file that other dumps show a record at, before the next file."""
    log, found = _in_order(node), set()
    for one, other in pairwise(log):
        if one.file != other.file:
            for of in made.nodes.values():
                found |= {at for at in of.shown if one.at < at < other.at}
    return found


def _lost_commits(made: Fleet, node: Node, one: Row) -> Iterator[str]:
    """What is told of commits in the gaps of a log is what the logs of others have there, and at least where not all is shown."""
    said = re.search(
        r"by the logs of others (?:(at least )?([\d,]+)|(no)) commits? (?:is|are) lost there", one["summary"]
    )
    log = _in_order(node)
    gaps = [(low, high) for low, high, _ in _holes(node)]
    gaps += [(a.at, b.at) for a, b in pairwise(log) if a.file != b.file and _lost_between(made, node, a.at, b.at)]
    gaps += [(a.at, b.at) for a, b in pairwise(log) if a.at in _short_files(made, node)]
    gaps = [(low, high) for low, high in gaps if any(low < _place(item) < high for item in one["items"])]
    others = [other for other in made.nodes.values() if other is not node]
    true = {its.at for low, high in gaps for its in node.had if low < its.at < high and its.kind == COMMIT}
    shown = {at for low, high in gaps for other in others for at in other.shown if low < at < high and at in true}
    if said is None:
        root = _root(made)
        covers = all(_runs(root, low, high) and low in root.shown for low, high in gaps)
        parted = node.fault in ("parted", "longer", "unlike")
        if made.knows_source and root is not node and covers and shown and not parted:
            yield f"the gaps of {node.name} hold {len(shown)} commits by the log of {root.name}, and nothing says so"
        return
    count = 0 if said[3] else _int(said[2])
    if count > len(true) or (not said[1] and count != len(true)):
        yield f"{said[0]}, it is said of {node.name}: {len(true)} are, {len(shown)} are shown"


def _lost_between(made: Fleet, node: Node, low: Place, high: Place) -> bool:
    """Whether the dump of another node shows a record between the last one of a file and the first one of the next."""
    return any(low < at < high for other in made.nodes.values() if other is not node for at in other.shown)


def _runs(node: Node, low: Place, high: Place) -> bool:
    """Whether the dumps of a node show all that stands between two places."""
    return {one.at for one in node.log if low <= one.at <= high} <= node.shown.keys() and high in node.shown


def _ends(made: Fleet, found: Found) -> Iterator[str]:
    """A dump that is said to end early does, and its node was where it is said to have been."""
    for one in found["findings"]:
        said = re.search(rf"ends at ({PLACE}), and (?:the first of them|it) was at ({PLACE})", one["summary"])
        if one["code"] != "LOG_GAP" or not said:
            continue
        for row in one["evidence"]:
            node = made.nodes[row["node"]]
            if _place(row["its_log_ends"]) != max(node.shown):
                yield f"the dump of {node.name} ends at {row['its_log_ends']}, it is said: at {max(node.shown)}"
            if _place(row["was_at"]) > node.log[-1].at:
                yield f"{node.name} was at {row['was_at']}, it is said: it is at {node.log[-1].at}"


# --- logs that are not alike


def _parted(made: Fleet, found: Found) -> Iterator[str]:
    told = set()
    for one in found["findings"]:
        said = re.match(r"(\S+) has other records than (\S+) at ([\d,]+) places?", one["summary"])
        more = re.match(r"(\S+) has ([\d,]+) records? behind the end of (\S+?)[,;]", one["summary"])
        if one["code"] == "LOG_DIVERGED" and said:
            name, other = said[1], said[2]
        elif one["code"] == "LOG_DIVERGED" and more:
            name, other = more[1], more[3]
        else:
            continue
        node, against = made.nodes[name], made.nodes[other]
        told.add(name)
        theirs = {record.at: record for record in against.log}
        mine = node.shown
        for item in one["items"]:
            place = _place(item)
            if place not in mine and place not in theirs:
                yield f"{item} is another record of {name} and {other}, it is said: neither has one there"
            elif (
                one["severity"] == "error" and place in mine and place in theirs and _alike(mine[place], theirs[place])
            ):
                yield f"{item} is another record of {name} and {other}, it is said: both have the same"
        if said:
            unlike = [
                at
                for at, record in mine.items()
                if min(against.shown) <= at <= max(against.shown)
                and (at not in theirs or not _alike(record, theirs[at]))
            ]
            if not unlike:
                yield f"{name} and {other} have other records, it is said: as far as both go they are alike"
            elif _int(said[3]) != len(unlike) and not (_holes(against) or _short_files(made, against)):
                yield f"{name} and {other} have {said[3]} other records, it is said: {len(unlike)}"
        yield from _match(one, node, against)
    known = made.knows_source
    source = _root(made)
    for name, node in made.nodes.items():
        if not known or not source.dumps or name in made.roots() or name in told:
            continue
        against = source.shown
        unlike = [at for at, record in node.shown.items() if at in against and not _alike(record, against[at])]
        if unlike:
            yield f"the log of {name} has another record at {min(unlike)} than {source.name}, and nothing says so"


def _match(one: Row, node: Node, against: Node) -> Iterator[str]:
    wanted = _beside(_in_order(against), _in_order(node))
    said = re.search(
        rf"the last commit that both have is ({PLACE})(?:, ([\d,]+) records? behind it would be cut off)?",
        one["summary"],
    )
    if not said:
        return
    if said[1] != wanted["match"]:
        yield f"the last commit of both {node.name} and {against.name} is said to be {said[1]}: it is {wanted['match']}"
    if said[2] and _int(said[2]) != wanted["cut"]:
        yield f"{said[2]} records of {node.name} would be cut off, it is said: {wanted['cut']}"


def _pairs(made: Fleet, found: Found) -> Iterator[str]:
    for row in found["pairs"]:
        if row["decision"] != "send":
            continue
        supplier, consumer = made.nodes[row["supplier"]], made.nodes[row["consumer"]]
        last = _said_last(made, consumer.name)
        if supplier.log[-1].at <= consumer.log[-1].at and consumer.taken == "all":
            yield f"{supplier.name} is said to send {consumer.name} something: it is not further"
        if last and supplier.log[0].file > last[0]:
            yield f"{supplier.name} is said to send {consumer.name} something: it has no file {last[0]}"


# --- plans


def _steps(made: Fleet, found: Found, planned: Plan) -> Iterator[str]:
    source = _root(made)
    for course in planned.courses:
        cost = re.search(rf"([\d,]+) records? that only the log of (\S+) has, from ({PLACE}) on", course.costs or "")
        if cost:
            node = made.nodes[cost[2]]
            other = {one.at: one for one in source.log}
            own = [one for one in node.shown.values() if one.at not in other or not _alike(one, other[one.at])]
            if _int(cost[1]) > len(own):
                yield f"{cost[1]} records from {cost[3]} on are in the log of {node.name} alone, it is said: {len(own)} are"
    for step in planned.steps:
        if step.server in made.roots() and step.repair in ("rebuild", "reset", "force_registration"):
            yield f"step {step.key} does something to the source"
        copied = re.search(r"is replaced by a copy of (\S+), which", step.says)
        if copied:
            giver = made.nodes[copied[1]]
            theirs = source.shown
            other = [at for at, one in giver.shown.items() if at in theirs and not _alike(one, theirs[at])]
            if other or (_holes(giver) and giver.taken != "apart"):
                yield f"step {step.key} copies {giver.name}, whose log is {giver.fault}"
    yield from shown_before(found, planned)
