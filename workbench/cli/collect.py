"""The command `collect`: from live servers to an input folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from workbench.cli.servers import ended_in_order, reach_of, reaching
from workbench.cli.terminal import JSON, check_outputs, give, main
from workbench.intake.collection import Address, Reading, Servers, Wanted, check_free
from workbench.intake.collection import collect as collected
from workbench.intake.disk_room import Limits
from workbench.intake.signals import undisturbed
from workbench.model import Problem, System
from workbench.safety import printable
from workbench.systems import systems
from workbench.text_table import aligned, one_cell

_SPANS = {"m": "minutes", "h": "hours", "d": "days"}


@main.command()
@reaching
@click.option("--into", required=True, type=click.Path(path_type=Path), help="The folder to make; absent or empty.")
@click.option("--suffix", "suffixes", multiple=True, metavar="DN", help="Only this suffix; repeatable. Default: all.")
@click.option("--entries", is_flag=True, help="Also export all entries with their state; takes long if there are many.")
@click.option(
    "--replication-log",
    is_flag=True,
    help="Have replication logged during the export, which then tells what was trimmed; never behind a hub.",
)
@click.option(
    "--records",
    is_flag=True,
    help="Also dump the physical log, without the content of its records; takes long.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Leave out rotated logs, and files of records, that ended before: 90m, 24h, 7d or 2026-01-31T12:00Z.",
)
@click.option(
    "--keep-free",
    metavar="SIZE",
    help="What stays free on every disk: 500M, 2G. Default: 5 % and at least 1 GiB.",
)
@click.option(
    "--largest",
    metavar="SIZE",
    help="How large one file may become that a server writes. Default: 4 times what its database explains, and 256 MiB.",
)
@JSON
def collect(
    into: Path,
    suffixes: tuple[str, ...],
    entries: bool,
    replication_log: bool,
    records: bool,
    since: str | None,
    keep_free: str | None,
    largest: str | None,
    json_to: str | None,
    **reached: Any,
) -> None:
    """Read live servers into a folder that `load` and `diagnose` take: consumers first, then those that feed them.

    A server that does not answer becomes a NAME.DOWN file with the reason; the others are read. Secrets are taken out on
    the way. The addresses tell which system it is; the README has how each is written. Exit code 3 says that something
    could not be read.
    """
    given = reach_of(reached)
    addresses = given.addresses()
    check_free(into)
    check_outputs(json_to, None, [into])
    access = given.access()
    limits = Limits(
        _size(keep_free, "--keep-free") if keep_free else None, _size(largest, "--largest") if largest else None
    )
    wanted = Wanted(_moment(since) if since else None, entries, replication_log, records, limits)
    system, reach = _system(addresses)
    servers = reach(addresses, access, suffixes)
    if access.user:
        access.password()  # asked for before anything begins
    with ended_in_order():
        try:
            readings = collected(
                servers, system.name, into, wanted, lambda line: click.echo(f"reading {line}", err=True)
            )
        except BaseException as stopped:
            if left := _close(servers):  # first of all: what is told may be cut off
                click.echo(f"workbench: {left}", err=True)
            for note in getattr(stopped, "__notes__", ()) if isinstance(stopped, KeyboardInterrupt) else ():
                click.echo(note, err=True)
            raise
        else:
            left = _close(servers)
    rows = [_row(reading) for reading in readings]
    if json_to:
        give(json.dumps({"folder": str(into), "system": system.name, "servers": rows}, indent=1) + "\n", json_to)
    if json_to != "-":
        click.echo(_text(readings, into))
    if left:
        raise left
    if not all(reading.whole for reading in readings):
        raise click.exceptions.Exit(3)


def _close(servers: Servers) -> Problem | None:
    """What could not be put back at the end, whatever came before; None: nothing."""
    with undisturbed():
        try:
            servers.close()
        except Problem as problem:
            return problem
    return None


def _system(addresses: Sequence[Address]) -> tuple[System, Callable[..., Servers]]:
    """The system whose servers these are, as their URLs tell, and what reaches them."""
    live = [system for system in systems() if system.servers]
    other = next(system for system in live if not system.schemes)
    whose = {}
    for address in addresses:
        scheme = (address.url or "").partition("://")[0].lower()
        system = next((system for system in live if scheme in system.schemes), other)
        whose[system.name] = system
    if len(whose) > 1:
        titles = " and ".join(system.title for system in whose.values())
        raise Problem(f"these are servers of {titles}", do="collect each system into a folder of its own")
    (system,) = whose.values()
    assert system.servers, "only such systems are asked"
    return system, system.servers()


def _moment(text: str) -> datetime:
    if found := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return datetime.now(UTC) - timedelta(**{_SPANS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("write 90m, 24h, 7d or 2026-01-31T12:00Z", param_hint="--since") from None
    return moment.astimezone(UTC)


def _size(text: str, option: str) -> int:
    """Bytes, out of `10G`, `500M`, `64K` or `0`."""
    found = re.fullmatch(r"(\d{1,15})([KMGT]?)", text)
    if not found:
        raise click.BadParameter("write 500M, 2G or a number of bytes", param_hint=option)
    return int(found[1]) << 10 * " KMGT".index(found[2] or " ")


def _row(reading: Reading) -> dict[str, Any]:
    times = {"from": reading.began.isoformat(), "until": reading.ended.isoformat()}
    gathered = reading.gathered
    read = {file: moment.isoformat("T", "milliseconds") for file, moment in sorted(gathered.read_at.items())}
    notes: dict[str, Any] = {"down": reading.down or None, "failed": gathered.failed, "without": gathered.without}
    notes |= {"mended": gathered.mended, "read_at": read}
    vectors = {"vectors": reading.vectors, "moved_to": reading.moved}
    return {
        "name": reading.server,
        "role": reading.role,
        **times,
        "files": sorted(reading.gathered.files),
        **notes,
        **vectors,
    }


def _text(readings: list[Reading], into: Path) -> str:
    heads = ("SERVER", "ROLE", "FILES", "READ AT", "")
    rows = [
        (
            reading.server,
            reading.role,
            len(reading.gathered.files),
            f"{reading.began:%H:%M:%S} UTC",
            "DOWN" if reading.down else "incomplete" if reading.gathered.failed else "moved" if reading.moved else "",
        )
        for reading in readings
    ]
    lines = [aligned([heads, *rows], right=(2,)), ""]
    for reading in readings:
        name = one_cell(reading.server)
        if reading.down:
            lines.append(f"{name} could not be read: {one_cell(reading.down)}")
        lines += [f"{name} failed: {one_cell(note)}" for note in reading.gathered.failed]
        lines += [f"{name} without {one_cell(note)}" for note in reading.gathered.without]
        lines += [f"{name} after an earlier run that was killed: {one_cell(note)}" for note in reading.gathered.mended]
        for suffix, vector in reading.moved.items():
            told = ", ".join(f"origin {origin} to {position}" for origin, position in vector.items())
            lines.append(f"{name} moved while the servers were read, {one_cell(suffix)}: {told}")
    if any(reading.moved for reading in readings):
        lines.append(
            "what others lack of changes that came in meanwhile is on its way: collect again to tell it from loss"
        )
    lines.append(f"collected: {printable(str(into))}")
    return "\n".join(lines)
