"""How commands reach servers: their addresses, who asks, the password. Shared by `collect`, `apply`, `resume`, `verify`."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import click

from workbench.boundary import printable
from workbench.collecting import Access, Address
from workbench.model import Problem

PASSWORD = "WORKBENCH_LDAP_PASSWORD"  # noqa: S105 - the name of a variable, not a password

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

_OPTIONS = (
    click.option(
        "--instance", "instances", multiple=True, metavar="[NAME=]INSTANCE", help="An instance of this machine."
    ),
    click.option("--url", "urls", multiple=True, metavar="[NAME=]URL", help="A server: ldap://, ldaps:// or ldapi://."),
    click.option(
        "--bind-dn", metavar="DN", help="Who asks; default: the user of this process, over the server's socket."
    ),
    click.option(
        "--password-file",
        type=_FILE,
        help=f"Its first line is the password; else {PASSWORD} in the environment, else it is asked for.",
    ),
    click.option("--ca", "ca_file", type=click.Path(path_type=Path), help="Who certifies the servers, in PEM."),
    click.option("--tls/--no-tls", default=None, help="StartTLS over ldap://; default: yes, except on this machine."),
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
    """Gives a command the options of addresses and access; it gets them as keywords, for `addresses_of` and `access_of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def addresses_of(options: dict[str, Any]) -> list[Address]:
    """The servers that were named."""
    found = [_address(text, kind) for kind in ("instance", "url") for text in options[f"{kind}s"]]
    if not found:
        raise click.UsageError("name the servers: --instance INSTANCE or --url URL, each as often as needed")
    return found


def access_of(options: dict[str, Any]) -> Access:
    """How they are reached."""
    given = password_from(options["password_file"], options["bind_dn"], PASSWORD, "--bind-dn", "--password-file")
    rest = (options[name] for name in ("ca_file", "tls", "timeout", "patience"))
    return Access(options["bind_dn"], given, *rest)


def _address(text: str, kind: str) -> Address:
    """`NAME=WHERE`, or WHERE alone; a name has none of the letters of a URL."""
    named = re.fullmatch(r"([^=:/%,\s]+)=(.+)", text)
    name, where = (named[1], named[2]) if named else (None, text)
    return Address(name, **{kind: where})


def password_from(file: Path | None, whose: str | None, variable: str, who: str, option: str) -> Callable[[], str]:
    """What gives the password: once, and never from an argument, which every user of the machine can see."""
    if file and not whose:
        raise click.UsageError(f"{option} needs {who}: whose password is it?")

    @cache
    def password() -> str:
        if file:
            try:
                given = file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
            except ValueError:
                raise Problem("the password is no text in UTF-8", printable(str(file)), "write it anew") from None
        elif variable in os.environ:
            given = os.environ[variable]
        elif sys.stdin.isatty():
            given = click.prompt(f"password of {printable(str(whose))}", hide_input=True, err=True)
        else:
            raise click.UsageError(f"no password: give {option}, or {variable} in the environment")
        if not given:
            # To the server an empty password is nobody's: it would let us in and show nothing.
            raise Problem("the password is empty", str(file or variable), f"give the password of {who}")
        return given

    return password


@contextmanager
def ended_in_order() -> Iterator[None]:
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
