"""What `explain` says of each transaction, held against what `diagnose` says of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from drizzle_incidents import (
    INCIDENTS,
    Files,
    applied_of_two,
    commits,
    exported,
    log,
    named,
    of_second,
    queue,
    row_of,
    state,
    two_masters,
    written,
)
from drizzle_queues import case_of as case_of_queues
from drizzle_queues import queues
from test_drizzle_commits_elsewhere import loaded

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.change_explanation import story, story_in
from workbench.model import Problem
from workbench.topology.topology import logs_of, topology

A = {"case.yaml": named("a", "a.log")}


def master(*numbers: int) -> dict[str, bytes]:
    """The log of m."""
    return {"m.replication-log.jsonl": exported(commits(*numbers))}


SECOND = {"n.replication-log.jsonl": exported((commit, of_second(commit)) for commit in range(1, 9))}
SITUATIONS: dict[str, tuple[Files, ...]] = {
    "an earlier queue had a gap": (
        {**master(*range(1, 7)), "s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))},
        {**master(*range(1, 9)), "s.state.json": state(6), "s.queue.jsonl": queue(commits(7, 8))},
    ),
    "an earlier log has what a copy passed over": (
        {"a.log": log(*range(1, 9)), **A},
        {"a.log": log(6, 7, 8), "b.log": log(1, 2, 3, 5, 6, 7), **A},
    ),
    "the log of the source begins behind what comes next": (
        {"a.log": log(*range(1, 8)), **A},
        {"a.log": log(5, 6, 7, 8), "b.log": log(1, 2, 3), **A},
    ),
    "the source lost a transaction": (
        {"a.log": log(1, 2, 3, 4, 5), "b.log": log(1, 2, 3), **A},
        {"a.log": log(1, 2, 3, 5, 6), "b.log": log(1, 2, 3), **A},
    ),
    "the master lost a commit": (
        {**master(*range(1, 7)), "s.state.json": state(2)},
        {**master(1, 2, 3, 5, 6, 7), "s.state.json": state(2), "s.queue.jsonl": queue(commits(3))},
    ),
    "numbers began anew": (
        {**master(*range(1, 7)), "s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 4))},
        {
            "m.replication-log.jsonl": exported([(number, row_of(200 + number)) for number in (1, 2, 3)]),
            "s.state.json": state(4),
            "s.queue.jsonl": queue(commits(5, 6)),
        },
    ),
    "an earlier queue of another replica has it": (
        {**master(1, 2, 3, 4), "t.state.json": state(2), "t.queue.jsonl": queue(commits(3, 4))},
        {**master(5, 6), "s.state.json": state(2), "s.queue.jsonl": queue(commits(3)), "t.state.json": state(6)},
    ),
    "a replica with a log of its own": (
        {
            **master(*range(1, 9)),
            "s.state.json": state(5),
            "s.queue.jsonl": queue(commits(6, 7)),
            "s.log": written(row_of(100 + number) for number in (1, 2, 4, 5)),
        },
    ),
    "a copy lost a transaction": (
        {"a.log": log(1, 2, 3, 4), "b.log": log(1, 2, 3), **A},
        {"a.log": log(1, 2, 3, 4), "b.log": log(1, 3), **A},
    ),
    "two masters": (
        {
            **master(*range(1, 9)),
            **SECOND,
            "s.state.json": applied_of_two(4, 2),
            "s.queue.jsonl": two_masters((1, 5, row_of(105)), (2, 3, of_second(3)), (2, 5, of_second(5))),
        },
        {
            **master(*range(1, 9)),
            **SECOND,
            "s.state.json": applied_of_two(6, 6),
            "s.queue.jsonl": two_masters((1, 7, row_of(107)), (2, 7, of_second(7))),
        },
    ),
    "nothing in common": ({"a.log": log(1, 2, 3), "b.log": log(7, 8, 9)},),
    "nothing in common with the source": ({"a.log": log(1, 2, 3), "b.log": log(7, 8, 9), **A},),
    "nobody knows the source": ({"a.log": log(1, 2, 3, 4, 5), "b.log": log(1, 2, 3, 4), "c.log": log(1, 2, 4)},),
}
SITUATIONS |= {name: (files,) for name, files in INCIDENTS.items()}


def everything(case: Case) -> list[str]:
    """All positions that any file of the case has, as order keys."""
    parts = [part["path"] for one in case.inputs if one.kind for part in case.parts("transactions", one)]
    return sorted({at for path in parts for at in pq.read_table(path, columns=["position"])["position"].to_pylist()})


def disagreements(case: Case) -> list[tuple[Any, ...]]:
    """What one says and the other one does not."""
    found, shown = diagnose(case), topology(case)
    logs, show, wrong = logs_of(case, shown), shown.system.show, list[tuple[Any, ...]]()
    missing = {(row["server"], row["origin"], row["position"]) for row in found["missing"]}
    waits, explained = Counter[tuple[str, str]](), set[tuple[str, str, str]]()
    for position in everything(case):
        origin, number = shown.system.origin_of(position), show(position)
        try:
            servers = story_in(case, shown, logs, f"{origin}:{number}")["servers"]
        except Problem:
            continue
        for row in servers:
            server, verdict = row["server"], row["verdict"]
            explained |= {(server, origin, number)} if verdict == "missing" else set()
            waits[server, origin] += verdict == "pending"
            ends = [each for each in found["unknown"] if (each["server"], each["origin"]) == (server, origin)]
            if verdict != "unknown" and any(number in (each["from"], each["to"]) for each in ends):
                wrong.append(("unknown", server, number, verdict, row["rule"]))
    wrong += [("missing", *one) for one in missing ^ explained]
    for pending in found["pending"]:
        server, origin, count = pending["server"], pending["origin"], waits[pending["server"], pending["origin"]]
        if count < pending["count"] or (count > pending["count"] and pending.get("counted", True)):
            wrong.append(("pending", server, origin, pending["count"], count))
    due = {(row["server"], row["origin"]) for row in found["pending"]}
    return wrong + [("pending", *key, 0, count) for key, count in waits.items() if count and key not in due]


@pytest.mark.parametrize("name", SITUATIONS)
def test_it_says_of_each_transaction_what_the_diagnosis_says(name: str, tmp_path: Path) -> None:
    assert not disagreements(loaded(tmp_path, *SITUATIONS[name]))


@pytest.mark.parametrize("seed", range(25))
def test_it_says_the_same_of_queues(seed: int, tmp_path: Path) -> None:
    assert not disagreements(case_of_queues(queues(seed), tmp_path))


def verdicts(case: Case, position: str) -> dict[str, tuple[str, str]]:
    return {row["server"]: (row["verdict"], row["rule"]) for row in story(case, position)["servers"]}


def test_a_queue_without_a_log_of_its_master_is_explained(tmp_path: Path) -> None:
    case = loaded(tmp_path, {"s.state.json": state(2), "s.queue.jsonl": queue(commits(3, 5, 6))})
    assert verdicts(case, "105") == {"s": ("pending", "in_its_queue")}


def test_a_number_that_another_server_gave_is_found_without_its_id(tmp_path: Path) -> None:
    files = {**SECOND, "s.state.json": state(2)}
    found = story(loaded(tmp_path, files), "203")
    assert (found["origin"], found["position"]) == ("2", "203")
    assert {row["server"]: row["verdict"] for row in found["servers"]} == {"n": "present", "s": "pending"}


def test_a_number_that_several_other_servers_gave_is_refused(tmp_path: Path) -> None:
    third = [(commit, row_of(200 + commit)) for commit in range(1, 4)]
    for _, message in third:
        message.transaction_context.server_id = 3
    case = loaded(tmp_path, {**SECOND, "o.replication-log.jsonl": exported(third)})
    with pytest.raises(Problem, match="several servers made a transaction 203"):
        story(case, "203")


def test_a_server_that_was_named_is_not_taken_for_another_one(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="nothing in the case names"):
        story(loaded(tmp_path, SECOND), "3:203")


def test_an_applied_commit_is_present_and_the_next_is_asked_for(tmp_path: Path) -> None:
    case = loaded(tmp_path, {**master(*range(1, 6)), "s.state.json": state(2), "s.queue.jsonl": queue(commits(3))})
    assert verdicts(case, "102")["s"] == ("present", "applied")
    (supplier,) = next(row["suppliers"] for row in story(case, "104")["servers"] if row["server"] == "s")
    assert (supplier["supplier"], supplier["outcome"]) == ("m", "sent")
