"""The command `collect`: from live servers to an input folder."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import click

from workbench.boundary import printable
from workbench.cli.terminal import JSON, check_outputs, give, main
from workbench.collecting import Access, Address, Reading, Servers, Wanted, check_free
from workbench.collecting import collect as collected
from workbench.model import Problem, System
from workbench.plain import aligned, one_cell
from workbench.systems import systems

PASSWORD = "WORKBENCH_LDAP_PASSWORD"  # noqa: S105 - the name of a variable

_SPANS = {"m": "minutes", "h": "hours", "d": "days"}


@main.command()
@click.option("--instance", "instances", multiple=True, metavar="[NAME=]INSTANCE", help="An instance of this machine.")
@click.option("--url", "urls", multiple=True, metavar="[NAME=]URL", help="A server: ldap://, ldaps:// or ldapi://.")
@click.option("--into", required=True, type=click.Path(path_type=Path), help="The folder to make; absent or empty.")
@click.option("--suffix", "suffixes", multiple=True, metavar="DN", help="Only this suffix; repeatable. Default: all.")
@click.option("--bind-dn", metavar="DN", help="Who asks; default: the user of this process, over the server's socket.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help=f"Its first line is the password; else {PASSWORD} in the environment, else it is asked for.",
)
@click.option("--ca", "ca_file", type=click.Path(path_type=Path), help="Who certifies the servers, in PEM.")
@click.option("--tls/--no-tls", default=None, help="StartTLS over ldap://; default: yes, except on this machine.")
@click.option("--entries", is_flag=True, help="Also export all entries with their state; takes long if there are many.")
@click.option(
    "--replication-log",
    is_flag=True,
    help="Have replication logged during the export, which then tells what was trimmed; never behind a hub.",
)
@click.option(
    "--since", metavar="TIME", help="Leave out rotated logs that ended before: 90m, 24h, 7d or 2026-01-31T12:00Z."
)
@click.option(
    "--timeout", type=click.FloatRange(1, 3600), default=30, show_default=True, help="Seconds for every answer."
)
@click.option(
    "--patience",
    type=click.FloatRange(1, 86400),
    default=600,
    show_default=True,
    help="Seconds for every export that a server writes.",
)
@JSON
def collect(
    instances: tuple[str, ...],
    urls: tuple[str, ...],
    into: Path,
    suffixes: tuple[str, ...],
    bind_dn: str | None,
    password_file: Path | None,
    ca_file: Path | None,
    tls: bool | None,
    entries: bool,
    replication_log: bool,
    since: str | None,
    timeout: float,
    patience: float,
    json_to: str | None,
) -> None:
    """Read live servers into a folder that `load` and `diagnose` take: consumers first, then those that feed them.

    A server that does not answer becomes a NAME.DOWN file with the reason; the others are read. Secrets are taken out on
    the way. Exit code 3 says that something could not be read.
    """
    addresses = [_address(text, "instance") for text in instances] + [_address(text, "url") for text in urls]
    if not addresses:
        raise click.UsageError("name the servers: --instance INSTANCE or --url URL, each as often as needed")
    check_free(into)
    check_outputs(json_to, None, [into])
    access = Access(bind_dn, _password(bind_dn, password_file), ca_file, tls, timeout, patience)
    wanted = Wanted(_moment(since) if since else None, entries, replication_log)
    system, reach = _system()
    servers = reach(addresses, access, suffixes)
    if bind_dn:
        access.password()  # asked for before anything begins
    with _ended_in_order():
        try:
            readings = collected(
                servers, system.name, into, wanted, lambda line: click.echo(f"reading {line}", err=True)
            )
        finally:
            servers.close()
    rows = [_row(reading) for reading in readings]
    if json_to:
        give(json.dumps({"folder": str(into), "system": system.name, "servers": rows}, indent=1) + "\n", json_to)
    if json_to != "-":
        click.echo(_text(readings, into))
    if not all(reading.whole for reading in readings):
        raise click.exceptions.Exit(3)


def _system() -> tuple[System, Callable[..., Servers]]:
    """The system whose servers can be reached, and what reaches them."""
    return next((system, system.servers()) for system in systems() if system.servers)


def _address(text: str, kind: str) -> Address:
    """`NAME=WHERE`, or WHERE alone; a name has none of the letters of a URL."""
    named = re.fullmatch(r"([^=:/%,\s]+)=(.+)", text)
    name, where = (named[1], named[2]) if named else (None, text)
    return Address(name, **{kind: where})


def _password(bind_dn: str | None, file: Path | None) -> Callable[[], str]:
    """What gives the password: once, and never from an argument, which every user of the machine can see."""
    if file and not bind_dn:
        raise click.UsageError("--password-file needs --bind-dn: whose password is it?")

    @cache
    def password() -> str:
        if file:
            given = file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        elif PASSWORD in os.environ:
            given = os.environ[PASSWORD]
        elif sys.stdin.isatty():
            given = click.prompt(f"password of {printable(str(bind_dn))}", hide_input=True, err=True)
        else:
            raise click.UsageError(f"no password: give --password-file, or {PASSWORD} in the environment")
        if not given:
            # To the server an empty password is nobody's: it would let us in and show nothing.
            raise Problem("the password is empty", str(file or PASSWORD), "give the password of --bind-dn")
        return given

    return password


def _moment(text: str) -> datetime:
    if found := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return datetime.now(UTC) - timedelta(**{_SPANS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("write 90m, 24h, 7d or 2026-01-31T12:00Z", param_hint="--since") from None
    return moment.astimezone(UTC)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Being told to end counts like Ctrl-C: what was switched on at a server is switched off first."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: then nobody sends us signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _row(reading: Reading) -> dict[str, Any]:
    times = {"from": reading.began.isoformat(), "until": reading.ended.isoformat()}
    notes = {"down": reading.down or None, "failed": reading.gathered.failed, "without": reading.gathered.without}
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
            lines.append(f"{name} did not answer: {one_cell(reading.down)}")
        lines += [f"{name} failed: {one_cell(note)}" for note in reading.gathered.failed]
        lines += [f"{name} without {one_cell(note)}" for note in reading.gathered.without]
        for suffix, vector in reading.moved.items():
            told = ", ".join(f"origin {origin} to {position}" for origin, position in vector.items())
            lines.append(f"{name} moved while the servers were read, {one_cell(suffix)}: {told}")
    if any(reading.moved for reading in readings):
        lines.append(
            "what others lack of changes that came in meanwhile is on its way: collect again to tell it from loss"
        )
    lines.append(f"collected: {printable(str(into))}")
    return "\n".join(lines)
