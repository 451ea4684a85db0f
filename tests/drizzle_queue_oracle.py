"""A slow second reading of what is said of a made-up fleet whose replicas export their queues: their threads are let run on.

It shares no code with the detectors. What is said to come has to come whole; what is said not to come must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drizzle_queues import MASTER, Queues, Slave, run_on

from workbench.repair.plan_types import Plan

Found = Mapping[str, Any]
APPLIER, IO = "applier", "io"


@dataclass
class Truth:
    """Of a slave, by the log that was collected and its queue as it is: numbers of transactions in the order of commits.

    waits  what it has not applied, of that log and of what its queue holds whole, which may be older or younger
    holes  of these, what never comes whole, whatever runs on
    comes  what comes with the threads that run, before the first hole; held: what the others would bring
    gone   holes of which nothing is in the queue; part: those of which something is
    """

    waits: list[int]
    holes: list[int]
    comes: list[int]
    held: list[int]
    behind: list[int]
    gone: list[int]
    part: list[int]
    blind: bool


def truth_of(made: Queues, slave: Slave) -> Truth:
    """What a slave waits for, and what comes of it."""
    end = _end_of_log(made)
    queued = {
        commit: number
        for commit, number in made.changes(shown=False).items()
        if _reads(made, slave, number)
        or (
            commit > end
            and any(commit > other.applied and _reads(made, other, number) for other in made.slaves.values())
        )
    }
    waits = [number for commit, number in sorted((made.changes() | queued).items()) if commit > slave.applied]
    ever = run_on(slave, made.rows, asks=True, applies=True)
    now = run_on(slave, made.rows, asks=IO not in slave.stopped, applies=APPLIER not in slave.stopped)
    holes = [number for number in waits if number not in ever.whole]
    first = waits.index(holes[0]) if holes else len(waits)
    there = {row.number for row in slave.queue}
    return Truth(
        waits,
        holes,
        [number for number in waits[:first] if number in now.whole],
        [number for number in waits[:first] if number not in now.whole],
        waits[first:],
        [number for number in holes if number not in there],
        [number for number in holes if number in there],
        bool(slave.unreadable) or not _read(slave),
    )


def _end_of_log(made: Queues) -> int:
    """The last commit that was collected of the log of the master."""
    return max((row.commit for row in made.shown), default=0)


def _reads(made: Queues, slave: Slave, number: int) -> bool:
    """Whether what was collected of a queue shows a transaction whole."""
    return slave.exported and _whole(made, slave, number) and number not in {row.number for row in slave.unreadable}


def _read(slave: Slave) -> bool:
    """Whether its queue was collected: an export without rows is a file of which nothing tells what it is."""
    return slave.exported and bool(slave.queue)


def contradictions(made: Queues, found: Found, planned: Plan, line: str, text: str, report: str) -> list[str]:
    """What is said of a fleet and is not so, one sentence each."""
    truths = {name: truth_of(made, slave) for name, slave in made.slaves.items()}
    alone = [row for row in found["findings"] if "no collected log has" in row["summary"]]
    found = {**found, "findings": [row for row in found["findings"] if row not in alone]}
    checks = (
        _pending(truths, found),
        _sentences(made, truths, found),
        _holes(made, truths, found),
        _stopped(made, truths, found),
        _line(made, truths, line),
        _appliers(made, truths, found),
        _report(made, truths, report),
        _tables(truths, text),
        _plan(made, truths, planned),
        _beyond_the_log(made, alone),
    )
    return [said for check in checks for said in check]


def _beyond_the_log(made: Queues, alone: list[Mapping[str, Any]]) -> Iterator[str]:
    """Of each queue, the diagnosis names the messages and numbers that it lacks behind the end of the log, and no others."""
    told = {(row["code"], row["server"]): row for row in alone}
    for name, slave in made.slaves.items():
        if not _read(slave) or slave.unreadable:
            continue
        after = max(slave.applied, _end_of_log(made))
        ends = {row.commit: row.number for row in slave.queue if row.commit > after}
        part = [str(ends[commit]) for commit in sorted(ends) if not _whole(made, slave, ends[commit])]
        row = told.pop(("TXN_INCOMPLETE", name), None)
        if (row["items"] if row else []) != part:
            yield f"{name} has {part} in part behind the end of the log: {row}"
        row = told.pop(("QUEUE_GAP", name), None)
        lacks = _passed_over(made, slave)
        said = {at for one in (row["evidence"] if row else ()) for at in range(one["first"], one["last"] + 1)}
        if said != lacks:
            yield f"{name} does not have the commits {sorted(lacks)} behind the end of the log: {row}"
    if told:
        yield f"said for nothing: {[row['summary'] for row in told.values()]}"


def _passed_over(made: Queues, slave: Slave) -> set[int]:
    """The commits that a queue goes on without behind the end of the log: what has no end there does not get it any more."""
    after = max(slave.applied, _end_of_log(made))
    ends = {row.commit for row in slave.queue if row.commit > after}
    return {*range(after + 1, max(ends, default=after))} - ends


def _pending(truths: Mapping[str, Truth], found: Found) -> Iterator[str]:
    rows = {row["server"]: row for row in found["pending"]}
    if len(rows) != len(found["pending"]):
        yield "a server waits twice for one origin"
    for name, truth in truths.items():
        row = rows.pop(name, None)
        if bool(row) != bool(truth.waits):
            yield f"{name} waits for {truth.waits}, and it is said: {row}"
        if not row:
            continue
        said = (row["count"], row["available"], row["first"], row["last"])
        if said != (len(truth.waits), len(truth.waits), str(truth.waits[0]), str(truth.waits[-1])):
            yield f"{name} waits for {truth.waits}: {row}"
        if truth.blind:
            continue
        behind, held = row["behind_gap"], row["held"]
        if (row["count"] - behind - held, held, behind) != tuple(map(len, (truth.comes, truth.held, truth.behind))):
            yield f"{truth.comes} come to {name}, {truth.held} are held, {truth.behind} stand behind a gap: {row}"
        if row["queued"] + row["to_fetch"] + behind != row["count"]:
            yield f"{name}: the parts are not the whole: {row}"
    if rows:
        yield f"nobody waits: {rows}"


def _sentences(made: Queues, truths: Mapping[str, Truth], found: Found) -> Iterator[str]:
    for row in found["findings"]:
        said, name = row["summary"], row["server"]
        if row["code"] != "PENDING_CHANGES":
            continue
        truth, slave = truths[name], made.slaves[name]
        if truth.blind:
            yield from _unread(made, slave, truth, said)
            continue
        queued = {number.number for number in slave.queue}
        before = [number for number in truth.waits if number not in truth.behind]
        there = [number for number in before if number in queued and _whole(made, slave, number)]
        wanted = {
            r"waits for (?:at least )?(\d+) changes? of": len(truth.waits),
            r"(\d+) (?:is|are) in its queue": len(there),
            rf"{MASTER} would send (\d+)": len(before) - len(there),
            r"(\d+) waits? behind what its queue lacks": len(truth.behind),
        }
        for pattern, count in wanted.items():
            told = re.search(pattern, said)
            if (int(told[1]) if told else 0) != count:
                yield f"{name}: {pattern} should be {count}: {said}"
        if ("stands still" in said) != bool(truth.held):
            yield f"{name}: {truth.held} are held: {said}"


def _unread(made: Queues, slave: Slave, truth: Truth, said: str) -> Iterator[str]:
    """What is said of a queue that was not collected, or not all of it: nothing that it does not show."""
    sent = re.search(rf"{MASTER} would send (\d+)", said)
    later = [number for number in truth.waits if made.commit_of(number) > slave.seen()]
    if _read(slave) and sent and int(sent[1]) > len(later) + len(truth.part) + len(slave.unreadable):
        yield f"{slave.server}: {later} are to be sent: {said}"
    if not _read(slave) and (sent or "in its queue" in said or "nothing of its queue was collected" not in said):
        yield f"the queue of {slave.server} was not collected: {said}"


def _whole(made: Queues, slave: Slave, number: int) -> bool:
    there = {row.segment for row in slave.queue if row.number == number}
    return there == {row.segment for row in made.rows if row.number == number}


def _holes(made: Queues, truths: Mapping[str, Truth], found: Found) -> Iterator[str]:
    told: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in found["findings"]:
        if row["code"] in ("QUEUE_GAP", "TXN_INCOMPLETE", "TXN_UNFINISHED", "RECORD_CORRUPT"):
            told[row["code"], row["server"]] = row
    for name, truth in truths.items():
        slave = made.slaves[name]
        for code, numbers in (("QUEUE_GAP", truth.gone), ("TXN_INCOMPLETE", truth.part)):
            row = told.pop((code, name), None)
            if truth.blind:  # what cannot be read may be what seems not to be there
                if row and not set(map(int, row["items"])) <= set(numbers):
                    yield f"{name} lacks {numbers} in its queue: {row['summary']}"
                continue
            if (row["items"] if row else []) != [str(number) for number in numbers]:
                yield f"{name} lacks {numbers} in its queue ({code}): {row and row['summary']}"
            if row and not re.search(rf"\b{len(numbers)} transactions?\b", row["summary"]):
                yield f"{name} lacks {len(numbers)}: {row['summary']}"
        row = next((one for one in found["findings"] if (one["code"], one["server"]) == ("TXN_INCOMPLETE", name)), None)
        if row and not truth.blind:
            yield from _parts(made, slave, truth, row["summary"])
        for one in found["findings"]:
            if one["server"] == name and one["code"] in ("QUEUE_GAP", "TXN_INCOMPLETE"):
                yield from _filled(made, slave, one)
        if slave.exported and slave.unreadable and not told.pop(("RECORD_CORRUPT", name), None):
            yield f"nothing is said of the rows of {name} that cannot be read"
    if told:
        yield f"said for nothing: {[row['summary'] for row in told.values()]}"


def _parts(made: Queues, slave: Slave, truth: Truth, said: str) -> Iterator[str]:
    """Which messages are not there, and what the applier does with the others."""
    cut = run_on(slave, made.rows, asks=True, applies=True).in_part
    for number in truth.part[:3]:
        wanted = {row.segment for row in made.rows if row.number == number}
        lacks = sorted(wanted - {row.segment for row in slave.queue if row.number == number})
        named = re.search(rf"{number} without (its end|messages? ([\d, ]*\d))", said)
        end = max(wanted) in lacks
        told = named and (
            named[2] is None if end else [int(one) for one in (named[2] or "").split(", ") if one] == lacks
        )
        if not told:
            yield f"{slave.server} lacks {lacks} of {number}: {said}"
    does = re.search(
        r"would apply (?:a part of (?P<part>[\d, ]*\d))?(?: and )?(?:nothing of (?P<none>[\d, ]*\d))?", said
    )
    parts, none = ({int(n) for n in (does[key] or "").split(", ") if n} if does else set() for key in ("part", "none"))
    if parts != set(truth.part) & cut or none != set(truth.part) - cut:
        yield f"{slave.server} applies a part of {sorted(cut)}, and nothing of {sorted(set(truth.part) - cut)}: {said}"


def _filled(made: Queues, slave: Slave, row: Mapping[str, Any]) -> Iterator[str]:
    """What a step says to put into the queue is in the log that it names; with it all comes that stood behind it."""
    (fix,) = row["fix"]
    if f"from the log of {MASTER}" not in fix["repair"]:
        yield f"it is not said what fills the queue of {slave.server}: {fix}"
    if ("stop" in fix["repair"]) == (APPLIER in slave.stopped):
        yield f"{slave.server} has {slave.stopped} that stand still: {fix}"
    below = re.search(r"must not purge commits from ([\d,]+) on", fix["caution"] or "")
    if below and int(below[1].replace(",", "")) > min(one.applied for one in made.slaves.values()):
        yield f"more is needed than what stands in {fix}"


def _stopped(made: Queues, truths: Mapping[str, Truth], found: Found) -> Iterator[str]:
    told = [row for row in found["findings"] if row["code"] == "APPLIER_STOPPED"]
    there = sorted((re.search(r"the (\w+) thread", row["summary"]) or [""])[0] + (row["server"] or "") for row in told)
    wanted = sorted(f"the {part} thread{name}" for name, slave in made.slaves.items() for part in slave.stopped)
    if there != wanted:
        yield f"{wanted} stand still: {there}"
    for row in told:
        truth = truths[row["server"]]
        if not truth.blind and ("fill its queue" in row["fix"][0]["repair"]) != bool(
            truth.holes or _passed_over(made, made.slaves[row["server"]])
        ):
            yield f"{row['server']} lacks {truth.holes}: {row['fix']}"


def _line(made: Queues, truths: Mapping[str, Truth], line: str) -> Iterator[str]:
    """The first line, of all servers together. Of a queue that cannot be read whole nothing tells what it lacks."""
    if any(truth.blind and (truth.holes or made.slaves[name].stopped) for name, truth in truths.items()):
        return
    for pattern, key in (
        (r"(up to |at least )?(\d+) (?:is|are) on the way to ([\w, ]+)", "comes"),
        (r"(up to |at least )?(\d+) (?:is|are) waiting for ([\w, ]+)", "held"),
        (r"(up to |at least )?(\d+) waits? behind what the queue of ([\w, ]+) lacks", "behind"),
    ):
        counts = {name: len(getattr(truth, key)) for name, truth in truths.items() if getattr(truth, key)}
        told = re.search(pattern, line)
        several = "up to " if len(set(counts.values())) > 1 else None
        said = told and (several if told[1] == "at least " else told[1], int(told[2]), told[3].split(", "))
        so = (several, max(counts.values()), sorted(counts)) if counts else None
        if said != so:
            yield f"{key} {counts}: {line}"


def _report(made: Queues, truths: Mapping[str, Truth], report: str) -> Iterator[str]:
    """The same in the plain words of a report."""
    waits = any(truth.waits for truth in truths.values())
    if "all of them did" in report and waits:
        yield f"the report says that all arrived: {report}"
    if any(truth.blind and (truth.holes or made.slaves[name].stopped) for name, truth in truths.items()):
        return
    for pattern, key in (
        (r"(\d+) changes?(?: each)? (?:is on its way|are on their way) to ([\w, ]+)\.", "comes"),
        (r"(\d+) changes?(?: each)? waits? for ([\w, ]+);", "held"),
        (r"(\d+) changes?(?: each)? waits? behind what is lacking in the queue of ([\w, ]+)\.", "behind"),
    ):
        counts = {name: len(getattr(truth, key)) for name, truth in truths.items() if getattr(truth, key)}
        told = re.search(pattern, report)
        said = told and (int(told[1]), re.split(", | and ", told[2]))
        if said != ((max(counts.values()), sorted(counts)) if counts else None):
            yield f"{key} {counts}: {report}"


def _appliers(made: Queues, truths: Mapping[str, Truth], found: Found) -> Iterator[str]:
    for row in found["appliers"]:
        slave, truth = made.slaves[row["server"]], truths[row["server"]]
        if (row["commit"], row["behind"]) != (slave.applied, len(truth.waits)):
            yield f"{slave.server} applied {slave.applied} and waits for {truth.waits}: {row}"
        if truth.blind:
            continue
        ends = {one.commit for one in slave.queue if one.commit > slave.applied and _whole(made, slave, one.number)}
        if row["queued"] != len(ends):
            yield f"the queue of {slave.server} holds {sorted(ends)} whole: {row}"
        if [int(one["position"]) for one in row["gaps"]] != truth.gone or row["not_queued"] != len(truth.gone):
            yield f"{slave.server} lacks {truth.gone}: {row}"
        done = {one.number for one in made.rows if 0 < one.commit <= slave.applied}
        part = {one.number for one in slave.queue if not _whole(made, slave, one.number)}
        logged = {one.number for one in made.shown}
        told = {int(one["position"]) for one in row["in_part"]}
        if not part - done <= told <= part - (done & logged):
            yield f"the queue of {slave.server} holds {sorted(part)} in part: {row['in_part']}"
        if row["purge_below"] != min(one.applied for one in made.slaves.values()):
            yield f"purge_below of {row}"


def _tables(truths: Mapping[str, Truth], text: str) -> Iterator[str]:
    """The matrix of what each server lacks."""
    told = {name: int(count) for name, count in re.findall(r"^(s\d) +1 +0 +(\d+) +0$", text, re.MULTILINE)}
    wanted = {name: len(truth.waits) for name, truth in truths.items() if truth.waits}
    if told != wanted:
        yield f"the table should show {wanted}: {told}"


def _plan(made: Queues, truths: Mapping[str, Truth], planned: Plan) -> Iterator[str]:
    """A plan starts no applier before a hole, writes nothing that an applier brings, and shows what is left when all runs on."""
    started, filled = set[str](), set[str]()
    for step in planned.steps:
        truth = truths[step.server]
        source = re.search(r"gets all data of (\w+)", step.says)
        if step.repair == "provision" and source and made.slaves[step.server].logged and (truth.holes or truth.blind):
            filled.add(step.server)
            if source[1] != MASTER and (
                truths[source[1]].holes or ({*truths[source[1]].held} and source[1] not in started)
            ):
                yield f"step {step.key} copies all data of {source[1]}, which lacks something itself"
        elif step.repair != "start-applier" or not made.slaves[step.server].stopped:
            yield f"step {step.key} is not called for"
        else:
            started.add(step.server)
            if truth.holes and not truth.blind and step.server not in filled:
                yield f"step {step.key} lets {step.server} come to {truth.holes}"
    for name, truth in truths.items():
        slave = made.slaves[name]
        if truth.blind:
            continue
        if slave.stopped and (not truth.holes or name in filled) and name not in started:
            yield f"nothing starts {slave.stopped} of {name}"
        before, after = (
            next((r for r in rows if r["server"] == name), None) for rows in (planned.before, planned.after)
        )
        if not before or not after or (before["missing"], before["pending"]) != (0, len(truth.waits)):
            yield f"{name} waits for {truth.waits}: before {before}"
            continue
        left = 0 if name in filled else len(truth.behind) + (0 if name in started else len(truth.held))
        if (after["missing"], after["pending"]) != (0, left):
            yield f"{left} are left to {name}: after {after}"
        if (
            truth.holes
            and name not in filled
            and not any(
                re.match(rf"(QUEUE_GAP|TXN_INCOMPLETE) {name}\b", line) for line in (*planned.open, *planned.left)
            )
        ):
            yield f"the plan does not say that {name} lacks {truth.holes}: {planned.open} {planned.left}"
