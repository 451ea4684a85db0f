"""A slow second reading of what is said of a made-up fleet of Drizzle, against the truth that the fleet knows.

It shares no code with the detectors. What a sentence promises is played on: sessions run on, steps are done on rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from drizzle_fleets import COMMITTED, CRASHED, TAKEN_BACK, Fleet, played

from workbench.repair.plan_types import Plan

Found = Mapping[str, Any]
RESTS = ("MISSED_CHANGE", "PENDING_CHANGES", "STRANDED_CHANGE")
"""Codes of what is told by holding logs against that of the source."""
COUNT = re.compile(r"\b(\d+) (?:transactions?|changes?)\b")


def contradictions(made: Fleet, found: Found, planned: Plan, line: str) -> list[str]:
    """What is said of a fleet and is not so, one sentence each."""
    if _wrongly_by_start(made, found):
        rests = [one for one in found["findings"] if one["code"] in RESTS]
        told = [*(one["assumes"] for one in rests), *(step.assumes for step in planned.steps)]
        return (
            ["it is not said that a start tells the source"]
            if any("source_by_its_start" not in one for one in told)
            else []
        )
    checks = (
        _missing(made, found),
        _pending(made, found),
        _passed_over(made, found),
        _alone(made, found),
        _unknown(made, found),
        _outcomes(made, found),
        _in_part(made, found),
        _counts(found, line),
        _sources(made, found),
        _steps(made, found, planned),
        _tables(made, found, planned),
        _losses(made, planned),
    )
    return [said for check in checks for said in check]


def _wrongly_by_start(made: Fleet, found: Found) -> bool:
    """Whether a start is taken for that of the source, whose log was not collected: all that follows from it may be wrong."""
    known = {(row["source"], row["source_known_by"]) for row in found["streams"]}
    return made.source not in made.logs and any(by == "events" and source != made.source for source, by in known)


def _missing(made: Fleet, found: Found) -> Iterator[str]:
    for row in found["missing"]:
        server, number = row["server"], int(row["position"])
        said = f"missing {number} on {server}"
        if number not in made.made:
            yield f"{said}: its source never made it"
            continue
        if made.made[number].fate != COMMITTED:
            yield f"{said}: its source has {made.made[number].fate} it"
        if server == made.source:
            yield f"{said}: {server} is the source"
        held = made.held(server, number)
        if held not in ("none", "part", "other"):
            yield f"{said}: it has it ({held})"
        elif max(made.places(number)) < made.begins(server):
            yield f"{said}: its log begins behind it"
        elif made.arrives(server, number):
            yield f"{said}: it comes by itself"
        for holder in row["held_by"]:
            if made.held(holder, number) != "whole":
                yield f"{said}: {holder} is said to hold it, and has it {made.held(holder, number)}"
        for holder in set(made.logs) - set(row["held_by"]):
            if made.held(holder, number) == "whole" and (made.numbered or not made.logs[holder].damaged()):
                yield f"{said}: {holder} holds it, too, and is not said to"


def _behind(found: Found, server: str) -> list[int]:
    return [int(number) for row in found["fleet"] if row["server"] == server for number in row["behind"]]


def _pending(made: Fleet, found: Found) -> Iterator[str]:
    for row in found["pending"]:
        server, behind = row["server"], _behind(found, row["server"])
        if row["count"] != len(behind):
            yield f"{server} waits for {row['count']}, and its stream is behind by {len(behind)}"
        if behind and {row["first"], row["last"]} != {str(behind[0]), str(behind[-1])}:
            yield f"{server} waits for {row['first']} to {row['last']}, and its stream is behind by {behind}"
        for number in behind:
            said = f"pending {number} on {server}"
            if number not in made.made or made.made[number].fate != COMMITTED:
                yield f"{said}: its source never committed it"
            elif server == made.source:
                torn = any(entry.damage == "torn" for entry in made.logs[server].entries)
                if made.named or not torn:
                    yield f"{said}: {server} is the source"
            elif made.held(server, number) == "whole":
                yield f"{said}: it has it"
            elif not made.arrives(server, number) and made.held(server, number) != "damaged":
                yield f"{said}: it does not come when sessions run on ({made.held(server, number)})"
        there = [number for number in behind if number in made.made]
        for supplier in row["suppliers"]:
            lacks = [number for number in there if made.held(supplier, number) != "whole"]
            if lacks:
                yield f"{supplier} is said to send {server} {behind} and lacks {lacks}"
        can = [number for number in there if any(made.held(name, number) == "whole" for name in made.logs)]
        if row["available"] != len(can):
            yield f"{row['available']} of {behind} are said to be available to {server}: {can} are"


def _judged(found: Found, server: str) -> set[int]:
    """Transactions of which something is said at a server."""
    said = {int(row["position"]) for row in found["missing"] if row["server"] == server} | set(_behind(found, server))
    for row in found["fleet"]:
        if row["server"] == server:
            for key in ("unknown", "conflicts", "inside", "incomplete", "undecided", "alone"):
                said |= {int(number) for number in row[key]}
    for row in found["findings"]:
        if row["code"] == "TXN_CONFLICT":  # it names both
            said |= set(map(int, row["items"]))
        if row["code"] in ("TXN_CONFLICT", "RECORD_CORRUPT", "TXN_INCOMPLETE", "TXN_UNFINISHED") and (
            row["server"] == server or server in row["servers"]
        ):
            said |= set(map(int, row["items"]))
    return said


def _passed_over(made: Fleet, found: Found) -> Iterator[str]:
    """What a log shows as committed and another server lacks: something has to be said of it."""
    errant = {int(row["position"]) for row in found["errant"]}
    stretches = [(r["server"], int(r["from"]), int(r["to"])) for r in found["unknown"] if r["from"] and r["to"]]
    order = {number: at for at, number in enumerate(made.committed())}
    if any(row["why"] == "unrelated" for row in found["unknown"]):
        return
    for number in order:
        holders = [name for name in made.logs if made.held(name, number) == "whole"]
        for server in set(made.logs) - set(holders) - {made.source}:
            if not holders or (made.named and made.source not in holders):
                continue
            unknown = any(
                s == server and first in order and last in order and order[first] <= order[number] <= order[last]
                for s, first, last in stretches
            )
            if _blind(made, server, number) or max(made.places(number)) < made.begins(server):
                continue
            if not unknown and number not in _judged(found, server) | errant:
                held = made.held(server, number)
                yield f"nothing is said of {number} on {server}, which has it {held}; {holders} have it"


def _blind(made: Fleet, server: str, number: int) -> bool:
    """Where the logs show nothing of a difference: streams that number no messages have no contents to compare."""
    held = made.held(server, number)
    if held == "damaged":  # RECORD_CORRUPT says it
        return True
    damaged = any(log.damaged() for log in made.logs.values())
    return not made.numbered and (held == "other" or damaged)


def _alone(made: Fleet, found: Found) -> Iterator[str]:
    for key in ("stranded", "errant"):
        for row in found[key]:
            server, number = row["server"], int(row["position"])
            said = f"{key} {number} on {server}"
            log = made.logs[server]
            if number not in log.own and (number not in made.made or made.held(server, number) != "whole"):
                yield f"{said}: its log does not hold it"
            others = [
                name
                for name in made.logs
                if name != server and number in made.made and made.held(name, number) == "whole"
            ]
            if number not in log.own and others and row.get("why") != "ahead_of_source":
                yield f"{said}: {others} have it, too"
            if key == "stranded" and number not in log.own:
                yield f"{said}: the source made it"
            if key == "errant" and made.named and number not in log.own:
                source = made.logs[made.source]
                if made.held(made.source, number) == "whole" or not (source.faults):
                    yield f"{said}: the source, named by a person, made it"
    if made.named:
        told = {(row["server"], int(row["position"])) for key in ("stranded", "errant") for row in found[key]}
        told |= {
            (server, int(item))
            for row in found["findings"]
            if row["code"] == "TXN_CONFLICT"
            for server in row["servers"] or [row["server"]]
            for item in row["items"]
        }
        told |= {(row["server"], int(n)) for row in found["fleet"] for n in row["unknown"]}
        for log in made.logs.values():
            for number in log.own:
                there = any(entry.number == number and not entry.damage for entry in log.entries)
                blind = not made.numbered and (number in made.made or log.damaged() or made.logs[made.source].damaged())
                if there and not blind and (log.server, number) not in told and made.source in made.logs:
                    yield f"nothing is said of {number}, which {log.server} wrote itself"


def _unknown(made: Fleet, found: Found) -> Iterator[str]:
    for row in found["unknown"]:
        log = made.logs[row["server"]]
        whole = not log.damaged() and made.begins(log.server) <= 1
        source = made.logs.get(made.source)
        if whole and source and not source.faults and not log.own:
            yield f"{log.server} {row['from']} to {row['to']} cannot be judged ({row['why']}): its log is whole"


def _outcomes(made: Fleet, found: Found) -> Iterator[str]:
    """Transactions that each log holds, by how they ended."""
    for row in found["streams"]:
        log = made.logs[row["server"]]
        if log.damaged() or len({entry.number for entry in log.entries} & set(log.own) & set(made.made)):
            continue
        kept = sum(1 for _ in made.applied(log.server))
        if row["outcomes"].get("committed", 0) != kept:
            yield f"{log.server} is said to hold {row['outcomes']}: it committed {kept}"
        rows = sum(len(transaction.changes) for transaction in made.applied(log.server))
        if row["rows_kept"] != rows:
            yield f"{log.server} is said to have kept {row['rows_kept']} rows: it kept {rows}"


def _in_part(made: Fleet, found: Found) -> Iterator[str]:
    """What came in part, which messages are not there, and what may still come."""
    for row in found["transactions"]:
        server, number = row["server"], int(row["position"])
        if number not in made.made or made.held(server, number) == "other":
            continue
        transaction, held = made.made[number], made.held(server, number)
        said = f"{number} on {server} is said to be {row['outcome']}"
        if row["outcome"] == "committed" and (transaction.fate != COMMITTED or held != "whole"):
            yield f"{said}: its source has {transaction.fate} it, and it is there {held}"
        if row["outcome"] == "rolled_back" and transaction.fate != TAKEN_BACK:
            yield f"{said}: its source has {transaction.fate} it"
        if (
            row["outcome"] in ("unfinished", "aborted")
            and held == "whole"
            and transaction.fate in (COMMITTED, TAKEN_BACK)
        ):
            yield f"{said}: all of it is there"
        if (
            row["outcome"] == "aborted"
            and transaction.fate == COMMITTED
            and row["at_source"] != COMMITTED
            and made.named
        ):
            yield f"{said}: its source committed it"
        if row["outcome"] == "incomplete" and transaction.fate == COMMITTED and row["missing"]:
            have = {e.body for e in made.logs[server].read() if e.number == number and not e.damage}
            lacks = [at for at, body in enumerate(transaction.messages, 1) if body not in have]
            named = [int(text) for text in re.findall(r"\d+", str(row["missing"]))]
            if named != [at for at in lacks if at <= max(named, default=0)]:
                yield f"{said} without {row['missing']}: it lacks {lacks}"
    for row in found["findings"]:
        waits = "do not apply, wait" in row["summary"]
        for server in row["servers"] or [row["server"]]:
            if server not in made.logs:
                continue
            for item in row["items"]:
                number = int(item)
                hurt = {e.number for e in made.logs[server].read() if e.damage == "checksum"}
                if row["code"] in ("TXN_INCOMPLETE", "TXN_UNFINISHED", "TXN_CONFLICT") and number in hurt:
                    yield f"{row['code']} of {number} on {server}: a bad checksum explains it already"
                ends = made.ends(server)
                if not waits or number not in made.made:
                    continue
                fate = made.made[number].fate
                if server == made.source and fate == CRASHED and any(at < ends for at in _starts(made, number)):
                    yield f"{server} is told to wait for the end of {number}: its server crashed"
                if fate in (COMMITTED, TAKEN_BACK) and made.named and made.held(made.source, number) == "whole":
                    done = not any(at >= ends for at in made.places(number))
                    if done and len(row["items"]) == 1 and not made.logs[made.source].damaged():
                        yield f"{server} is told to wait for the end of {number}: its source was done with it before"


def _starts(made: Fleet, number: int) -> list[int]:
    """Places of starts of the source behind a transaction."""
    last = max(made.places(number))
    return [at for at, entry in enumerate(made.stream) if entry.number is None and at > last]


def _counts(found: Found, line: str) -> Iterator[str]:
    for row in found["findings"]:
        counted = COUNT.search(row["summary"])
        if row["code"] == "PENDING_CHANGES":  # its items are the first and the last
            continue
        if counted and row["items"] and int(counted[1]) != len(row["items"]):
            yield f"{row['code']} counts otherwise than it lists: {row['summary']} {row['items']}"
        if row["severity"] not in ("error", "warning", "info"):
            yield f"{row['code']} has no severity"
    for said in re.finditer(r"(\d+) changes? (?:is|are) MISSING on ([\w, ]+?) and will", line):
        count = len({row["position"] for row in found["missing"] if row["server"] in said[2].split(", ")})
        if int(said[1]) != count:
            yield f"the first line says {said[0]}: {count} are"
    for row in found["pending"]:
        said = re.search(rf"(\d+) (?:changes? )?(?:is|are) on the way to {row['server']}(?!,)\b", line)
        if said and int(said[1]) != row["count"] - row.get("behind_gap", 0):
            yield f"the first line says {said[0]}: {row['count']} are"
    if "on the way" in line and not found["pending"]:
        yield f"the first line says what is on the way, and nothing is: {line}"


def _sources(made: Fleet, found: Found) -> Iterator[str]:
    """A source is one that a person named, or that evidence proves."""
    for row in found["streams"]:
        if row["source_known_by"] and row["source"] != made.source:
            yield f"{row['source']} is the source of {row['server']} by {row['source_known_by']}: it is {made.source}"
        if made.named and row["source_known_by"] != "person":
            yield f"a person named the source, and {row['server']} goes by {row['source_known_by']}"
    for row in found["findings"]:
        if row["code"] in RESTS:
            if made.named and "source_named_by_person" not in row["assumes"]:
                yield f"{row['code']} does not say that a person named the source"
            known = {one["source_known_by"] for one in found["streams"]}
            if known == {None} and not row["assumes"]:
                yield f"{row['code']} of {row['server']} assumes nothing, and the source is not known"


def _applied(step: Any) -> list[int]:
    return [int(one["position"]) for one in step.details.get("transactions", ())]


def _steps(made: Fleet, found: Found, planned: Plan) -> Iterator[str]:
    """Steps done on the rows of each server."""
    rows = {server: made.rows(server) for server in made.logs}
    truth = played({}, (made.made[number] for number in made.committed()))
    for step in planned.steps:
        said = f"step {step.key}"
        if step.repair != "apply":
            continue
        numbers = _applied(step)
        if len(numbers) != step.changes:
            yield f"{said} counts {step.changes} and applies {numbers}"
        if step.server == made.source:
            yield f"{said} writes {numbers} to the source"
        known = {one["source_known_by"] for one in found["streams"]}
        if not step.assumes and (made.named or known == {None}):
            yield f"{said} assumes nothing"
        before = rows[step.server]
        order = {number: at for at, number in enumerate(made.committed())}
        open_ = _rows_of_unknown(made, found, step.server)
        if [n for n in numbers if n in order] != sorted((n for n in numbers if n in order), key=order.__getitem__):
            yield f"{said} applies {numbers}, which were not committed in this order"
        for number in numbers:
            if number not in order:
                yield f"{said} applies {number}, which the source never committed"
            elif made.held(step.server, number) in ("whole", "damaged"):
                yield f"{said} applies {number}, which {step.server} has: {made.held(step.server, number)}"
            elif made.held(step.server, number) == "other":
                yield f"{said} applies {number}, under which {step.server} has another transaction"
            else:
                after = played(rows[step.server], [made.made[number]])
                for change in made.made[number].changes:
                    row = change.table, change.key
                    unfit = (row in rows[step.server]) != (change.kind in ("UPDATE", "DELETE"))
                    if unfit and row not in open_:
                        yield f"{said} stops: {change} of {number} does not fit the rows of {step.server}"
                rows[step.server] = after
        for row, value in rows[step.server].items():
            if row in truth and before.get(row) == truth[row] != value:
                yield f"{said} sets {row} back from {truth[row]} to {value}"
            if row not in truth and row not in before and row[0] != "own":
                yield f"{said} brings {row} back, which the source deleted later"


def _rows_of_unknown(made: Fleet, found: Found, server: str) -> set[tuple[str, str]]:
    """Rows of transactions of which it is said that the log does not tell whether the server has them: a step may stop there.

    What a log cannot tell is to be stated, and then the step itself looks at each row before it changes it.
    """
    unknown = {int(number) for row in found["fleet"] if row["server"] == server for number in row["unknown"]}
    return {(change.table, change.key) for number in unknown for change in made.made[number].changes}


def _tables(made: Fleet, found: Found, planned: Plan) -> Iterator[str]:
    """The table of a plan: what is lacking before as the diagnosis says, and after as the steps leave it."""
    more: Counter[str] = Counter()
    applied: Counter[str] = Counter()
    for step in planned.steps:
        # What nobody could judge stands in no count before, and a plan takes it from another log where the source's is damaged.
        unjudged = {row["from"] for row in found["unknown"] if row["server"] == step.server}
        applied[step.server] += len(_applied(step))
        more[step.server] += sum(str(number) in unjudged for number in _applied(step))
    missing = Counter(row["server"] for row in found["missing"])
    pending: Counter[str] = Counter()
    for row in found["pending"]:
        pending[row["server"]] += row["count"]
    for row in planned.before:
        server = row["server"]
        if (row["missing"], row["pending"]) != (missing[server], pending[server]):
            yield f"the plan shows {row} before; missing are {missing[server]}, pending {pending[server]}"
    for row in planned.after:
        server = row["server"]
        if planned.steps and all(step.repair == "apply" for step in planned.steps):
            left = missing[server] + pending[server] + more[server] - applied[server]
            if row["missing"] + row["pending"] != left:
                yield f"the plan shows {row} after; {left} are left"
    for row in planned.promise:
        if row["count"] > applied[row["server"]] and all(step.repair == "apply" for step in planned.steps):
            yield f"the plan promises {row['count']} to {row['server']} and applies {applied[row['server']]}"
    for text in planned.left:
        said = re.match(
            r"(\w+) (\w+): (\d+) of the changes that it names arrives? by the steps, the others do not", text
        )
        if said:
            items = {
                item
                for row in found["findings"]
                if row["code"] == said[1] and said[2] in (row["servers"] or [row["server"]])
                for item in row["items"]
            }
            done = {str(n) for step in planned.steps if step.server == said[2] for n in _applied(step)}
            if not items - done:
                yield f"the plan says {text!r}; of {items} it applies {done}"


def _losses(made: Fleet, planned: Plan) -> Iterator[str]:
    """What a copy of all data throws away, compared before and after."""
    for course in planned.courses:
        copied = re.match(r"copy all data of (\w+) to (\w+)", course.says)
        if not copied:
            continue
        giver, taker = copied[1], copied[2]
        have = {n.messages[0]: n.number for n in made.applied(taker)}
        hurt = {entry.body for entry in made.logs[giver].entries if entry.damage}
        kept = {n.messages[0] for n in made.applied(giver) if not hurt.intersection(n.messages)}
        read = {entry.number for entry in made.logs[taker].entries if not entry.damage}
        own = {n.number for n in made.applied(taker) if n.number in made.logs[taker].own and n.number in read}
        # Of a stream that numbers no messages nothing shows that a number of the source stands for another transaction.
        own -= set(made.made) if not made.numbered else set()
        gone = {number for body, number in have.items() if body not in kept}
        gone |= {number for log in made.logs.values() for number in log.own if number in made.made}
        if not len(own) <= course.lost <= len(gone):
            yield f"{course.says} is said to lose {course.lost}: {sorted(own)} at least, {sorted(gone)} at most"
        if course.chosen and own:
            yield f"{course.says} is chosen and throws {sorted(own)} away"
        if course.chosen and taker == made.source:
            yield f"{course.says} is chosen, and {taker} is the source"
