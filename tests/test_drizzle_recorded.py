"""What is said of the recorded logs of Drizzle, held against their bytes by a slow second reading."""

from __future__ import annotations

import copy
import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from drizzle_raw import Held, Taken, log_of, table_of
from drizzle_samples import SAMPLES, logs
from incident_samples import FOLDER
from said_counts import unlike_the_lists

from workbench import Case, diagnose, plan
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.repair.plan_text import plan_text
from workbench.repair.plan_types import Plan
from workbench.systems import system_named

Found = dict[str, Any]
FLEETS = {
    "drizzle-fleet": sorted((FOLDER / "drizzle-fleet" / "now").glob("*.gz")),
    "fleet": sorted((SAMPLES / "fleet").glob("*.gz")),
    "innodb_log": sorted((SAMPLES / "innodb_log").glob("*.gz")),
}
LOGS = {name: [SAMPLES / f"{name}.gz"] for name in logs() if "/" not in name}
SIDES = {"sys_replication_log": "master", "slave_queue": "slave", "slave_state": "slave"}
OUTCOMES = {
    "TXN_INCOMPLETE": {"incomplete"},
    "TXN_UNFINISHED": {"unfinished"},
    "TXN_ABORTED": {"aborted"},
    "RECORD_CORRUPT": {"corrupt"},
}


@dataclass(frozen=True)
class Said:
    """What is said of recorded files, and what they hold: the log of each server, queues, and what replicas say of themselves."""

    held: Mapping[str, Held]
    queues: Mapping[str, Held]
    states: Mapping[str, Any]
    found: Found
    text: str
    plan: Plan

    def wrong(self, found: Found | None = None) -> list[str]:
        """What contradicts the files."""
        found = found or self.found
        servers = {*self.held, *self.queues, *self.states}
        positions = {str(t.number) for held in (*self.held.values(), *self.queues.values()) for t in taken(held)}
        checks = (
            _logs(self.held, found),
            _odd(self.held, found),
            _findings(self.held, found),
            _lacked(self.held, found),
            _waiting(self, found),
            _steps(self),
        )
        said = [one for check in checks for one in check]
        return said + unlike_the_lists(found, self.text, plan_text(self.plan), servers, positions)


def taken(held: Held) -> list[Taken]:
    """The transactions of a log."""
    return list(held.transactions().values())


@cache
def said_of(name: str, folder: Path) -> Said:
    """What is said of recorded files."""
    files = {path: gzip.decompress(path.read_bytes()) for path in (FLEETS | LOGS)[name]}
    held, queues, states = dict[str, Held](), dict[str, Held](), dict[str, Any]()
    for path, data in files.items():
        stem = path.name.split(".")[0]
        if path.name.endswith(".json.gz"):
            states[SIDES[stem]] = json.loads(data)
        elif ".jsonl" in path.name:
            (queues if "queue" in stem else held)[SIDES[stem]] = table_of(data)
        else:
            held[path.name.removesuffix(".log.gz")] = log_of(data)
    case = Case.create(folder / "case")
    (folder / "in").mkdir(parents=True)
    for path in files:
        shutil.copy(path, folder / "in")
    case.load([folder / "in"])
    found = json.loads(json.dumps(diagnose(case)))
    text = diagnosis_text(system_named("drizzle"), found)
    return Said(held, queues, states, found, text, plan(case))


def ended_as(one: Taken, held: Held) -> set[str]:
    """How a transaction may have ended, by its messages and what follows them; several where the stream does not tell."""
    if one.event:
        return {"event"}
    if not all(record.sound for record in one.records):
        return {"corrupt"}
    if not one.numbered:
        return {"rolled_back"} if one.taken_back else {"committed", "unfinished", "incomplete", "unknown", "aborted"}
    if len(set(one.numbers)) < len(one.numbers):
        return {"conflict", "committed"}  # a number used again: both, or the later one
    if one.taken_back:
        return {"rolled_back"}
    if one.whole:
        return {"committed"}
    if one.ends:
        return {"incomplete"}
    last = one.records[-1].offset
    starts = [t.records[0].offset for t in taken(held) if t.event and t.server == one.server]
    return {"aborted"} if any(at > last for at in starts) else {"unfinished"}


def _plain(held: Held) -> bool:
    """Whether the messages alone tell all of a log."""
    return not held.damage and all(len(ended_as(one, held)) == 1 for one in taken(held))


def _logs(logs: Mapping[str, Held], found: Found) -> Iterator[str]:
    """What each log comes to."""
    for row in found["streams"]:
        held = logs[row["server"]]
        mine = [one for one in taken(held) if str(one.server) == row["origin"]]
        if not _plain(held):
            continue
        outcomes = Counter(next(iter(ended_as(one, held))) for one in mine)
        if row["outcomes"] != dict(outcomes):
            yield f"{row['server']} holds {dict(outcomes)}: {row['outcomes']}"
        done = [one for one in mine if ended_as(one, held) == {"committed"}]
        kept = sum(sum(of.values()) for one in done for of in one.rows().values())
        sums = sum(one.bytes for one in mine), sum(one.seen() for one in mine), kept
        if (row["bytes"], row["rows_seen"], row["rows_kept"]) != sums:
            yield f"{row['server']} holds {sums}: {row}"
        tables: dict[str, Counter[str]] = {}
        for one in done:
            for table, of in one.rows().items():
                tables.setdefault(table, Counter()).update(of)
        if row["tables"] != {table: dict(of) for table, of in tables.items()}:
            yield f"{row['server']} changes {tables}: {row['tables']}"


def _odd(logs: Mapping[str, Held], found: Found) -> Iterator[str]:
    """Each transaction that is named by itself."""
    for row in found["transactions"]:
        held = logs[row["server"]]
        one = held.transactions()[int(row["origin"]), int(row["position"])]
        said = f"{row['position']} of {row['server']}"
        if row["outcome"] not in ended_as(one, held) | ({"repeated"} if one.repeated else set()):
            yield f"{said} is {ended_as(one, held)}: {row['outcome']}"
        offsets = [
            record.offset for record in held.records if record.message.transaction_context.transaction_id == one.number
        ]
        if row["offset"] not in offsets or row["last"] not in offsets or row["messages"] > len(offsets):
            yield f"{said} stands at {offsets}: {row}"
        if row["outcome"] == "incomplete" and one.numbered:
            told = [int(number) for number in str(row["missing"] or "").split()]
            if told != one.lacks:
                yield f"{said} lacks {one.lacks}: {row['missing']}"
        if (
            len(ended_as(one, held)) == 1
            and not one.repeated
            and (row["bytes"], row["seen"]) != (one.bytes, one.seen())
        ):
            yield f"{said} has {one.bytes} bytes and {one.seen()} rows: {row}"
    for name, held in logs.items():
        told = {(row["origin"], row["position"]) for row in found["transactions"] if row["server"] == name}
        for one in taken(held):
            if not ended_as(one, held) & {"committed", "event"} and (str(one.server), str(one.number)) not in told:
                yield f"nothing is said of {one.number} of {name}: {ended_as(one, held)}"


def _findings(logs: Mapping[str, Held], found: Found) -> Iterator[str]:
    """What a finding calls its transactions, and how many it counts; what befell the bytes of a log."""
    for row in found["findings"]:
        held = logs.get(row["server"] or "")
        if held is None:
            continue
        said, by_number = f"{row['code']}: {row['summary']}", {str(one.number): one for one in taken(held)}
        for item in row["items"] if row["code"] in OUTCOMES else ():
            if not ended_as(by_number[item], held) & OUTCOMES[row["code"]]:
                yield f"{item} is {ended_as(by_number[item], held)}: {said}"
        counted = re.search(r"(\d+) transactions?\b", row["summary"])
        if row["code"].startswith("TXN_") and counted and int(counted[1]) != len(row["items"]):
            yield f"{row['items']}: {said}"
        without = re.search(r"came without (messages? [\d, and]+)", row["summary"])
        if without and [int(n) for n in re.findall(r"\d+", without[1])] != by_number[row["items"][0]].lacks:
            yield f"{by_number[row['items'][0]].lacks} are not there: {said}"
        if row["code"] == "TORN_TAIL":
            have = re.search(r"(\d[\d,]*) (?:of \d[\d,]* )?bytes are there", row["summary"])
            if held.cut is None or not have or row["evidence"][0]["offset"] != held.cut[0]:
                yield f"{held.cut}: {said}"
        places = re.search(r"in (\d+) places?", row["summary"])
        if row["code"] == "RECORD_CORRUPT" and places and int(places[1]) != len(held.damage):
            yield f"{held.damage}: {said}"
        if row["code"] == "BIG_TRANSACTION":
            size = re.search(r"has ([\d,]+) bytes in ([\d,]+) messages", row["summary"])
            most = max(by_number.values(), key=lambda one: one.bytes)
            if not size or [int(n.replace(",", "")) for n in size.groups()] != [most.bytes, len(most.records)]:
                yield f"the biggest has {most.bytes} bytes: {said}"
    codes = {(row["code"], row["server"]) for row in found["findings"]}
    for name, held in logs.items():
        for code, there in (("TORN_TAIL", held.cut), ("RECORD_CORRUPT", [r for r in held.records if not r.sound])):
            if bool(there) != ((code, name) in codes):
                yield f"{code} of {name}: {there}"


def _lacked(logs: Mapping[str, Held], found: Found) -> Iterator[str]:
    """What is missing, stranded, errant and on its way."""
    whole = {name: {str(t.number) for t in taken(held) if t.whole} for name, held in logs.items()}
    for row in found["missing"]:
        server, position = row["server"], row["position"]
        if position in whole[server]:
            yield f"{position} is missing on {server}, and its log has it"
        having = sorted(name for name, numbers in whole.items() if position in numbers)
        if row["held_by"] != having:
            yield f"{having} have {position}: {row['held_by']}"
        made = next((t for held in logs.values() for t in taken(held) if str(t.number) == position and t.whole), None)
        rows = made.rows() if made else {}
        operations = "+".join(sorted({name for of in rows.values() for name in of}))
        if made and rows and (row["target"], row["operation"]) != (", ".join(sorted(rows)), operations):
            yield f"{position} does {rows}: {row['operation']} {row['target']}"
    for key in ("stranded", "errant"):
        for row in found[key]:
            having = [name for name, numbers in whole.items() if row["position"] in numbers]
            if having != [row["server"]]:
                yield f"{key} {row['position']} on {row['server']}: {having} have it"
    for row in found["pending"]:
        if row["server"] in logs:
            for position in {row["first"], row["last"]}:
                if position in whole[row["server"]] or not all(position in whole[name] for name in row["suppliers"]):
                    yield f"{position} is pending: {row}"


def _waiting(said: Said, found: Found) -> Iterator[str]:
    """What a replica waits for that exports its queue: by the numbers of commits."""
    for name, state in said.states.items():
        (applier,) = state["applier_state"]
        (log,) = (held for server, held in said.held.items() if server != name)
        commits = {r.commit: t for t in taken(log) if t.whole and not t.event for r in t.records if r.commit}
        waits = sorted(commit for commit in commits if commit > applier["last_applied_commit_id"])
        there = {record.commit for record in said.queues[name].records if record.commit}
        (row,) = (one for one in found["pending"] if one["server"] == name)
        if row["count"] != len(waits) or row["first"] != str(commits[waits[0]].number):
            yield f"{name} waits for {waits}: {row}"
        gaps = [str(commits[one].number) for one in waits if one < max(there) and one not in there]
        told = [item for one in found["findings"] if one["code"] == "QUEUE_GAP" for item in one["items"]]
        if told != gaps:
            yield f"{gaps} are not in the queue of {name}: {told}"
        stopped = [part for part in ("io", "applier") if any(r["status"] == "STOPPED" for r in state[f"{part}_state"])]
        if [part for part in ("io", "applier") if f"the {part} thread" in said.text] != stopped:
            yield f"{stopped} stand still on {name}"


def _steps(said: Said) -> Iterator[str]:
    """Each step applies what its server lacks, whole, in the order in which it ended in a log that has it."""
    for step in said.plan.steps:
        if step.repair != "apply":
            continue
        numbers = [one["position"] for one in step.details["transactions"]]
        there = {str(t.number) for t in taken(said.held[step.server]) if t.whole}
        if there & set(numbers):
            yield f"step {step.key} applies {sorted(there & set(numbers))}, which {step.server} has"
        if step.changes != len(numbers) or f" {len(numbers)} transactions" not in step.says:
            yield f"step {step.key} applies {numbers}: {step.changes}, {step.says}"
        lacked = {row["position"] for row in said.found["missing"] if row["server"] == step.server}
        if not lacked <= set(numbers):
            yield f"step {step.key} leaves {sorted(lacked - set(numbers))}"
        for held in said.held.values():
            ends = {str(t.number): t.records[-1].offset for t in taken(held) if t.whole}
            if set(numbers) <= ends.keys() and numbers != sorted(numbers, key=ends.__getitem__):
                yield f"step {step.key} applies {numbers}, which ended in another order"
        for one in step.details["transactions"]:
            made = next(
                t for held in said.held.values() for t in taken(held) if str(t.number) == one["position"] and t.whole
            )
            if json.loads(one["rows"]) != made.rows():
                yield f"step {step.key}: {one['position']} does {made.rows()}: {one['rows']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


@pytest.mark.parametrize("name", [*FLEETS, *LOGS])
def test_no_sentence_contradicts_the_bytes(name: str, folder: Path) -> None:
    assert said_of(name, folder / name.replace("/", "-")).wrong() == []


def _said_otherwise(found: Found, code: str, change: Callable[[Any], None]) -> None:
    change(next(row for row in found["findings"] if row["code"] == code))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["missing"].pop(),
        lambda found: found["missing"][0].update(position="781"),
        lambda found: found["missing"][0].update(held_by=["primary"]),
        lambda found: found["missing"][0].update(target="shop.other"),
        lambda found: found["pending"][0].update(count=2),
        lambda found: found["pending"][0].update(suppliers=["replica2"]),
        lambda found: found["streams"][0]["outcomes"].update(committed=21),
        lambda found: found["streams"][2].update(rows_kept=55),
        lambda found: found["transactions"][2].update(missing="3"),
        lambda found: found["transactions"].pop(),
        lambda found: _said_otherwise(found, "TXN_INCOMPLETE", lambda row: row.update(items=["790"])),
        lambda found: _said_otherwise(
            found, "MISSED_CHANGE", lambda row: row.update(summary=row["summary"].replace("4 changes", "5 changes"))
        ),
    ],
)
def test_the_reader_can_say_otherwise(change: Callable[[Found], None], folder: Path) -> None:
    said = said_of("fleet", folder / "fleet")
    found = copy.deepcopy(said.found)
    change(found)
    assert said.wrong(found)
