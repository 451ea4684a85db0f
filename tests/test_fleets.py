"""Fleets with planted faults: what the diagnosis says of every change, against the truth and a slow reading of the contract."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fleet_files import write_fleet
from fleet_histories import Fleet, History, origin_of
from slow_verdicts import MISSING, UNKNOWN, SlowVerdicts

from workbench import Case
from workbench.diagnosis.verdicts import verdicts
from workbench.replication.changelog.diagnosis.pair_matrix import pair_matrix
from workbench.topology.topology import logs_of, topology

Row = dict[str, Any]


def diagnosed(folder: Path, fleet: Fleet) -> Row:
    case = Case.create(folder / "case")
    case.load(write_fleet(folder / "files", fleet))
    shown = topology(case)
    logs = logs_of(case, shown)
    pairs = pair_matrix(shown, logs)
    return {"pairs": pairs, **vars(verdicts(case, shown, logs, pairs))}


def check(fleet: Fleet, found: Row) -> None:
    """Everything that the diagnosis says of the changes of one fleet."""
    slow = SlowVerdicts(fleet)
    missing = {(row["server"], row["position"]) for row in found["missing"]}
    unknown = expanded(found["unknown"], slow)
    really = {one.name: one.data for one in fleet.servers}
    # Against the truth. What is collected is of a moment: a server may have got a change since, but none is taken away.
    assert not [(server, csn) for server, csn in missing if csn in fleet.had[server]]
    silent = slow.verdict.keys() - missing - unknown
    lost = [(server, csn) for server, csn in silent if csn not in fleet.had[server] | really[server].same]
    # Of what a server never had, nothing need be said where a later change of the same entry has overwritten it.
    # The same holds where the server's entry has the very value, by a twin.
    lacking = {server: one.states for server, one in really.items()}
    ended = [(server, csn, lacking[server].get(fleet.changes[csn].entry)) for server, csn in lost]
    value = {csn: change.value for csn, change in fleet.changes.items()}
    assert not [key for *key, state in ended if (state or "") < key[1] and (not state or value[state] != value[key[1]])]
    # Against the contract.
    assert missing == slow.those(MISSING)
    assert unknown == slow.those(UNKNOWN)
    for row in found["missing"]:
        assert row["held_by"] == slow.held_by(row["position"])
    waits = {(row["server"], row["origin"]): row for row in found["pending"]}
    assert waits.keys() == {key for key, some in slow.pending.items() if some}
    for (server, origin), row in waits.items():
        some = slow.pending[server, origin]
        assert (row["count"], row["first"], row["last"]) == (len(some), min(some), max(some))
        assert row["available"] == len(slow.available(server, origin))
    assert {(row["server"], row["position"]) for row in found["stranded"]} == slow.stranded(found["pairs"])


def expanded(rows: list[Row], slow: SlowVerdicts) -> set[tuple[str, str]]:
    """The changes that rows of unknown ones speak of: each row of as many as it says, of one reason, from end to end."""
    open_: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (server, csn), (verdict, why) in slow.verdict.items():
        if verdict == UNKNOWN:
            open_[server, origin_of(csn), why].add(csn)
    told: set[tuple[str, str]] = set()
    for row in rows:
        some = {csn for csn in open_[row["server"], row["origin"], row["why"]] if row["from"] <= csn <= row["to"]}
        assert (row["count"], row["from"], row["to"]) == (len(some), min(some, default=""), max(some, default="")), row
        assert not told & {(row["server"], csn) for csn in some}
        told |= {(row["server"], csn) for csn in some}
    return told


def play_and_check(folder: Path, size: int, number: int) -> None:
    fleet = History(number, size, Random(f"{size} {number}")).play()
    try:
        check(fleet, diagnosed(folder, fleet))
    except AssertionError as error:
        raise AssertionError(f"fleet {number} of {size}: {fleet.planted}\n{error}") from error


FEW, MANY = {4: 16, 16: 1}, 200


@pytest.mark.parametrize("size", [4, 16])
def test_fleets(size: int, tmp_path: Path) -> None:
    for number in range(FEW[size]):
        play_and_check(tmp_path / str(number), size, number)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 16])
def test_many_fleets(size: int, tmp_path: Path) -> None:
    for number in range(MANY):
        play_and_check(tmp_path / str(number), size, 1000 + number)
