"""What is said of the recorded servers of Kanidm, held against their backups: read slowly, and their sessions let run on.

The backups become a fleet of `kanidm_fleets`, of which the oracle of made-up fleets asks the same as of those.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kanidm_fleets import Names, Node, World
from said_counts import unlike_the_lists
from test_kanidm_oracle import CHECKS, Oracle, check_plan, check_refusals

from workbench import Case, diagnose, plan
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.repair.plan_text import plan_text
from workbench.systems import system_named
from workbench.systems.kanidm.cid import SECOND
from workbench.systems.kanidm.rules.merging import Live, State, Tombstone

SAMPLES = Path(__file__).parent / "samples" / "kanidm"
RECORDED = ("synth-healthy", "synth-missed", "synth-offline8d")
Given = Mapping[str, Any]


def _cid(given: Given) -> tuple[int, str]:
    return given["t"]["secs"] * SECOND + given["t"]["nanos"], given["s"]


class Recorded(Names):
    """The names of recorded servers: their own."""

    def __init__(self, world: World, entries: Mapping[str, int]) -> None:
        self.entries = dict(entries)
        uuids = {of for node in world.servers.values() for _, of in node.cids}
        states = [(number, state) for node in world.servers.values() for number, state in node.entries.items()]
        uuids |= {cid[1] for _, state in states for cid in (state.at, *getattr(state, "changes", {}).values())}
        self.letters = {uuid: uuid for uuid in uuids}

    def origin(self, uuid: str) -> str:
        return uuid

    def cid(self, cid: tuple[int, str]) -> tuple[int, str]:
        return cid

    def text(self, cid: tuple[int, str]) -> str:
        return f"{cid[0]:032d}-{cid[1]}"


def read(folder: Path) -> tuple[World, Recorded]:
    """The backups of a folder as a fleet in which everybody may pull from everybody."""
    world, entries = World((), ()), dict[str, int]()
    for path in sorted(folder.glob("*.json.gz")):
        given = json.loads(gzip.decompress(path.read_bytes()))
        node = Node(path.name.removesuffix(".json.gz"), same_as=given["db_s_uuid"])
        node.domain, node.last = given["db_d_uuid"], _cid({"t": given["db_ts_max"], "s": ""})[0]
        node.cids = {_cid(one) for one in given["repl_meta"]["V1"]["ruv"]}
        for one in given["entries"]:
            ent = one["ent"]["V3"]
            number = entries.setdefault(ent["attrs"]["uuid"]["UU"][0], len(entries) + 1)
            node.entries[number] = _state(ent["changestate"])
        world.servers[node.name] = node
    world.now = max(node.last for node in world.servers.values()) // SECOND + 1
    world.links = [(one, other) for one in world.servers for other in world.servers if one != other]
    return world, Recorded(world, entries)


def _state(given: Given) -> State:
    if "V1Tombstone" in given:
        return Tombstone(_cid(given["V1Tombstone"]["at"]))
    live = given["V1Live"]
    return Live(_cid(live["at"]), {name: _cid(cid) for name, cid in live["changes"].items()})


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_said_of_recorded_servers_is_so(name: str, tmp_path: Path) -> None:
    world, names = read(SAMPLES / name)
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / name])
    found, made = json.loads(json.dumps(diagnose(case))), plan(case)
    oracle = Oracle(world, names)
    for check in CHECKS:
        check(oracle, found)
    check_refusals(oracle, found, made)
    check_plan(oracle, found, made)
    assert oracle.wrong == []
    text = diagnosis_text(system_named("kanidm"), found)
    assert unlike_the_lists(found, text, plan_text(made), world.servers, _positions(world, names)) == []


def _positions(world: World, names: Recorded) -> set[str]:
    cids = {cid for node in world.servers.values() for cid in node.cids}
    cids |= {change.cid for node in world.servers.values() for change in node.shown()}
    return {names.text(cid) for cid in cids}


def _sentence(code: str, told: str, otherwise: str) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        row = next(row for row in found["findings"] if row["code"] == code)
        assert told in row["summary"]
        row["summary"] = row["summary"].replace(told, otherwise)

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("synth-missed", lambda found: found["missing"].pop()),
        ("synth-missed", lambda found: found["missing"][0].update(held_by=["A", "C"])),
        ("synth-missed", lambda found: found["missing"][0].update(attribute="name")),
        ("synth-missed", _sentence("MISSED_CHANGE", "3 changes", "4 changes")),
        ("synth-offline8d", lambda found: found["pending"][0].update(suppliers=["A"])),
        ("synth-offline8d", lambda found: found["pending"][0].update(count=51)),
        ("synth-offline8d", lambda found: found["pairs"][1].update(decision="Ok")),
        ("synth-offline8d", lambda found: found["findings"].clear()),
        ("synth-offline8d", _sentence("PENDING_CHANGES", "50 changes", "49 changes")),
        ("synth-healthy", lambda found: found["floors"][0]["servers"][0].update(forgets=99)),
    ],
)
def test_the_reader_can_say_otherwise(name: str, change: Callable[[Any], None], tmp_path: Path) -> None:
    world, names = read(SAMPLES / name)
    case = Case.create(tmp_path / "case")
    case.load([SAMPLES / name])
    found, made = json.loads(json.dumps(diagnose(case))), plan(case)
    change(found)
    oracle = Oracle(world, names)
    for check in CHECKS:
        check(oracle, found)
    check_refusals(oracle, found, made)
    text = diagnosis_text(system_named("kanidm"), found)
    assert oracle.wrong + unlike_the_lists(found, text, plan_text(made), world.servers, _positions(world, names))
