"""How commands reach servers: their addresses, who asks, the password. Shared by `collect`, `apply`, `resume`, `verify`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

import click

from workbench.intake.signals import handled
from workbench.repair.server_access import PASSWORD, ServerAccess
from workbench.safety import printable

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

_OPTIONS = (
    click.option(
        "--instance", "instances", multiple=True, metavar="[NAME=]INSTANCE", help="An instance of this machine."
    ),
    click.option(
        "--instances-folder",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Where the instances are: /opt/ds/etc/dirsrv. Default: $PREFIX/etc/dirsrv if PREFIX is set, else /etc/dirsrv.",
    ),
    click.option(
        "--url",
        "urls",
        multiple=True,
        metavar="[NAME=]URL",
        help="A server: ldap://, ldaps://, ldapi:// or mysql://; `collect` takes comdb2://HOST/DATABASE, too.",
    ),
    click.option(
        "--bind-dn",
        "--user",
        "bind_dn",
        metavar="DN|USER",
        help="Who asks; default: the user of this process, over the server's socket.",
    ),
    click.option(
        "--password-file",
        type=_FILE,
        help=f"Its first line is the password; else {PASSWORD} in the environment, else it is asked for.",
    ),
    click.option("--ca", "ca_file", type=click.Path(path_type=Path), help="Who certifies the servers, in PEM."),
    click.option(
        "--tls/--no-tls",
        default=None,
        help="TLS over ldap:// (StartTLS) and mysql://; default: yes, except on this machine.",
    ),
    click.option(
        "--timeout", type=click.FloatRange(1, 3600), default=30, show_default=True, help="Seconds for every answer."
    ),
    click.option(
        "--patience",
        type=click.FloatRange(1, 86400),
        default=600,
        show_default=True,
        help="Seconds for what a server has to do first: an export, a delivery.",
    ),
)


def reaching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options of addresses and access; it gets them as keywords, for `reach_of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def reach_of(options: dict[str, Any]) -> ServerAccess:
    """The servers that were named, and how they are reached; a person at a terminal is asked for passwords."""
    known = {one.name for one in fields(ServerAccess)} & options.keys()
    return ServerAccess(**{name: options[name] for name in known}, ask=_asked if sys.stdin.isatty() else None)


def _asked(whose: str) -> str:
    return str(click.prompt(f"password of {printable(whose)}", hide_input=True, err=True))


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Being told to end counts like Ctrl-C: what was switched on at a server is switched off first."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(stop, signal.SIGTERM, signal.SIGHUP):
        yield
