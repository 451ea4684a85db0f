"""The files that would be collected of the servers of a `slow_mending.World`, and which changes the lots made of them are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from history_samples import BEGINNING
from mending_checks import Grouped
from mesh_samples import SUFFIX, agreement, changelog, elements, replica, write
from slow_mending import World, by_origin, fresh

from workbench import Case
from workbench.contracts.replication import PlanGrounds
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.repairs import REPAIRS

READ_ONLY = 65535
PORT = 38900


def _port(world: World, name: str) -> int:
    return PORT + int(world.servers[name].origin or 50 + list(world.servers).index(name))


def files_of(world: World) -> dict[str, str]:
    """Of each server its replica entry, agreements and changelog, and the line that tells where it listens."""
    files = {}
    for one in world.servers.values():
        spans = {int(origin): (span.min, span.max) for origin, span in one.vector.items() if span.min and span.max}
        generation = f"{'65ffabcd' if one.generation == 'g' else '65ffabce'}000000010000"
        ruv = elements(spans, generation, PORT)
        files[f"{one.name}.replica.ldif"] = replica(one.origin or READ_ONLY, ruv, flags=int(one.log is not None))
        files[f"{one.name}.agreements.ldif"] = "".join(
            agreement(f"{one.name}-to-{tie.consumer}", _port(world, tie.consumer), enabled=tie.runs)
            for tie in world.ties
            if tie.supplier == one.name
        )
        files[f"{one.name}.errors.log"] = (
            f"\t389-Directory/2.3.1 B2022.300.0000\n\tlocalhost.localdomain:{_port(world, one.name)} (/etc/dirsrv/slapd-x)\n\n"
            + _dropped(world, one.name)
        )
        if one.log is not None:
            files[f"{one.name}.changelog.ldif"] = changelog(
                sorted(one.log), marks=one.marks, purge=_purged(world, one), own_entries=True
            )
    return {name: text for name, text in files.items() if text}


def _dropped(world: World, name: str) -> str:
    """What the errors log says of each change that the server took for one that it had: so that it is known to be missing."""
    at = f"[{datetime.fromtimestamp(BEGINNING + 5000, UTC):%d/%b/%Y:%H:%M:%S}.000000000 +0000]"
    says = "DEBUG - NSMMReplicationPlugin - ruv_add_csn_inprogress - The csn {} has already be seen (in ruv) - ignoring"
    return "".join(f"{at} - {says.format(position)}\n" for position in sorted(world.missing(name)))


def _purged(world: World, one: Any) -> list[str]:
    """Up to where the log was trimmed, by origin."""
    lines = []
    for origin, some in by_origin(one.has - one.log - one.marks).items():
        logged = by_origin(one.log).get(origin, set())
        if gone := {position for position in some if position < min(logged, default="~")}:
            lines.append(f"{{replica {origin} ldap://localhost.localdomain:1}} {min(gone)} {max(gone)}")
    return lines


def case_of(folder: Path, world: World) -> Case:
    """A case of these servers."""
    case = Case.create(folder / "case")
    case.load([write(folder / "1", files_of(world))])
    return case


def model_from(house: Any, context: Any, findings: Any) -> Any:
    """The model that is filled from what was found, with positions for new changes as the slow world makes them."""
    codes = {(one.code, one.server, one.link) for one in findings}
    model = house.filling.model_of_logs(context, SUFFIX, PlanGrounds(codes, REPAIRS.waiting))
    model.fresh, model.origin_of = fresh, origin_of
    return model


def lots_as_changes(world: World, model: Any) -> Grouped:
    """The changes of each lot: those from its first to its last one that have no lot of their own, as many as it says."""
    single = {lot.first for lot in model.lots if lot.first == lot.last}
    kept = []
    for lot in model.lots:
        mine = [
            position
            for position in sorted(world.changes)
            if origin_of(position) == lot.origin
            and lot.first <= position <= lot.last
            and (position not in single or lot.first == lot.last)
        ]
        assert len(mine) == lot.changes, f"{lot} is {mine}"
        kept.append(mine)
    return kept
