"""Fleets of Kanidm servers with planted faults: what the diagnosis says of every change, against the truth."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from entry_histories import AGE, CLOCK_WINDOW, Change, History, Server
from kanidm_samples import START, entry_id, origin, text_of

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.replication.entry.diagnosis.state_comparison import verdicts_by_entry
from workbench.rules.verdicts import MISSING, PRESENT
from workbench.systems.kanidm.rules.merging import Live
from workbench.systems.kanidm.rules.ranges import ranges_of, reply
from workbench.topology.topology import topology

SHORT = range(12)
"""Histories of losses, restored servers, clocks ahead and refreshes, that are played in every run."""

Row = dict[str, Any]


def diagnosed(folder: Path, history: History) -> tuple[Case, Row]:
    case = Case.create(folder / "case")
    case.load([history.write(folder / "in")])
    return case, diagnose(case)


def key(one: Change) -> tuple[str, str | None, str]:
    return entry_id(one.entry), one.attribute, text_of(*one.cid)


def among(servers: list[Server], server: Server) -> list[Server]:
    return [one for one in servers if one is not server and one.domain == server.domain]


def check(history: History, case: Case, found: Row) -> None:
    """Everything that the diagnosis says of the changes of one fleet."""
    changes = {key(one): one for one in history.changes.values()}
    shown = {one.name: {key(change) for change in changes.values() if one.shows(change)} for one in history.servers}
    check_missing(history, found, changes, shown)
    check_pending(history, found, changes, shown)
    check_pairs(history, found)
    check_codes(history, found)
    check_explained(history, case, changes)


def check_missing(history: History, found: Row, changes: dict[Any, Change], shown: dict[str, set[Any]]) -> None:
    missing = {(row["server"], row["entry"], row["attribute"], row["position"]): row for row in found["missing"]}
    for (server, *of), row in missing.items():
        (one,) = (one for one in history.servers if one.name == server)
        assert history.lacks(one, changes[tuple(of)]) is not False, ("false missing", server, changes[tuple(of)])
        assert row["held_by"] == sorted(
            other.name for other in among(history.servers, one) if tuple(of) in shown[other.name]
        )
    assert len(missing) == len(found["missing"]), "each once"
    told_of = {*missing, *((server, entry) for server, entry, attribute, _ in missing if attribute is None)}
    for one in history.servers:
        spans = [row for row in found["unknown"] if row["server"] == one.name]
        visible = set().union(*(shown[other.name] for other in among(history.servers, one)))
        for of in visible:
            # Whoever missed the end of an entry has no use for what came before it.
            if history.lacks(one, changes[of]) and not {(one.name, *of), (one.name, of[0])} & told_of:
                position = of[2]
                by = origin(changes[of].cid[1])
                told = any(row["origin"] == by and row["from"] <= position <= row["to"] for row in spans)
                assert told, ("silent", one.name, changes[of])


def check_pending(history: History, found: Row, changes: dict[Any, Change], shown: dict[str, set[Any]]) -> None:
    waits: dict[tuple[str, str], set[Any]] = {}
    for one in history.servers:
        for other in among(history.servers, one):
            for of in shown[other.name]:
                change = changes[of]
                by = change.cid[1]
                upto = one.ranges[by][1] if by in one.ranges else one.last - AGE - 1
                if change.cid[0] > upto and not settled(one, change):
                    waits.setdefault((one.name, origin(by)), set()).add(of)
    told = {(row["server"], row["origin"]): row for row in found["pending"]}
    assert told.keys() == waits.keys()
    for where, row in told.items():
        positions = sorted(of[2] for of in waits[where])
        assert (row["count"], row["first"], row["last"]) == (len(positions), positions[0], positions[-1])


def settled(one: Server, change: Change) -> bool:
    state = one.entries.get(change.entry)
    if state is None or not isinstance(state, Live):
        return state is not None
    last = state.changes.get(change.attribute or "", (-1, ""))
    return change.attribute is not None and state.at == change.at and last >= change.cid


def check_pairs(history: History, found: Row) -> None:
    servers = {one.name: one for one in history.servers}
    assert len(found["pairs"]) == len(servers) * (len(servers) - 1)
    for row in found["pairs"]:
        supplier, consumer = servers[row["supplier"]], servers[row["consumer"]]
        told = reply(
            (consumer.domain, supplier.domain),
            ranges_of(consumer.ruv),
            ranges_of(supplier.ruv),
            supplier.last - AGE,
            -START,
        )
        assert row["message"] == told.message
        if told.compared:
            assert row["decision"] == told.compared.status
            for kind in ("owed", "lag", "advance"):
                ranges = {
                    origin(by): [text_of(time, by) for time in ends]
                    for by, ends in getattr(told.compared, kind).items()
                }
                assert row[kind] == ranges


def check_codes(history: History, found: Row) -> None:
    told = {(one["code"], one["server"]) for one in found["findings"]}
    for code, decision, end in (
        ("REFRESH_REQUIRED", "Refresh", "consumer"),
        ("SUPPLIER_BEHIND", "Unwilling", "supplier"),
    ):
        wanted = {row[end] for row in found["pairs"] if row["decision"] == decision}
        assert {server for name, server in told if name == code} == wanted
    own = {one.uuid: one for one in history.servers}
    for one in history.servers:
        mine = one.ranges.get(one.uuid, (0, -1))[1]
        theirs = max((other.ranges.get(one.uuid, (0, -1))[1] for other in among(history.servers, one)), default=-1)
        twins = [other for other in history.servers if other.uuid == one.uuid]
        rolled = theirs > mine and theirs <= one.last and len(twins) == 1
        assert (("ROLLED_BACK", one.name) in told) == rolled, one.name
    ahead = {
        by
        for one in history.servers
        for by, (_, last) in one.ranges.items()
        if by != one.uuid and last > one.last + CLOCK_WINDOW
    }
    assert {one["origin"] for one in found["findings"] if one["code"] == "CLOCK_AHEAD"} == {origin(by) for by in ahead}
    for one in found["findings"]:
        if one["code"] == "CLOCK_AHEAD" and one["server"]:
            assert own[next(by for by in own if origin(by) == one["origin"])].name == one["server"]
    domains = {one.domain for one in history.servers}
    assert any(code == "UNRELATED_DATA" for code, _ in told) == (len(domains) > 1)
    if not history.planted:
        calm = {"PENDING_CHANGES", "TOMBSTONE_REAPABLE", "ENTRY_CONFLICT"}
        assert {code for code, _ in told} <= calm, told


def check_explained(history: History, case: Case, changes: dict[Any, Change]) -> None:
    shown = topology(case)
    servers = {one.name: one for one in history.servers}
    by_position: dict[str, list[Change]] = {}
    for one in changes.values():
        by_position.setdefault(text_of(*one.cid), []).append(one)
    for position in Random(1).sample(sorted(by_position), min(40, len(by_position))):
        for told in verdicts_by_entry(case, shown, position):
            lacks = [history.lacks(servers[told.server], one) for one in by_position[position]]
            visible = [
                one
                for one in by_position[position]
                if any(s.shows(one) for s in among(history.servers, servers[told.server]))
            ]
            if told.verdict == MISSING:
                assert any(one is not False for one in lacks), ("false missing", told)
            if told.verdict == PRESENT:
                assert not any(history.lacks(servers[told.server], one) for one in visible), ("false present", told)


@pytest.mark.parametrize("seed", SHORT)
def test_what_is_said_of_every_change_is_true(seed: int, tmp_path: Path) -> None:
    history = History(seed, servers=4, days=12)
    check(history, *diagnosed(tmp_path, history))


@pytest.mark.parametrize("seed", range(2))
def test_a_fleet_to_which_nothing_happened_is_well(seed: int, tmp_path: Path) -> None:
    history = History(seed, servers=3, faults=0, days=10)
    case, found = diagnosed(tmp_path, history)
    check(history, case, found)
    assert found["missing"] == found["unknown"] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_what_is_said_of_every_change_is_true_of_many(seed: int, tmp_path: Path) -> None:
    history = History(seed, days=Random(seed).choice([10, 18, 30]))
    check(history, *diagnosed(tmp_path, history))
