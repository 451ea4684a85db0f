"""How servers are reached: which ones, who asks, with which password; and the place there where a plan is done.

Commands and notebooks share it. A password comes from the first line of a file, from the environment, or from a person who
is asked; never from an argument, which every user of the machine can see. It is held by a function, not by a text, so that
nothing shows it that shows its owner.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.repair.plan_types import ASKED_FOR, Plan, Step
from workbench.safety import printable
from workbench.systems import system_named

PASSWORD = "WORKBENCH_PASSWORD"  # noqa: S105 - the name of a variable, not a password
_FORMERLY = {PASSWORD: ("WORKBENCH_LDAP_PASSWORD",)}
"""Names of variables that were given before, and still count."""

REPLICATION_PASSWORD = "WORKBENCH_REPLICATION_PASSWORD"  # noqa: S105 - the name of a variable, not a password


@dataclass(frozen=True)
class ServerAccess:
    """Servers, and how they are reached; each field is the option of a command of the same name.

    instances                  instances of this machine, `INSTANCE` or `NAME=INSTANCE`
    urls                       `ldap://...`, `mysql://...` or `NAME=ldap://...`
    bind_dn                    who asks, a DN or a user; empty: the user of this process, over the server's socket
    password_file              its first line is the password; else PASSWORD in the environment, else `ask`
    replication_password_file  the same for a temporary link; else REPLICATION_PASSWORD
    ask                        asks a person for the password of somebody; None: nobody is there
    instances_folder           where the instances are; None: where the system has them (389 DS: /etc/dirsrv, or below PREFIX)
    """

    instances: Sequence[str] = ()
    urls: Sequence[str] = ()
    bind_dn: str | None = ""
    password_file: Path | str | None = None
    ca_file: Path | str | None = None
    tls: bool | None = None
    timeout: float = 30
    patience: float = 600
    replication_password_file: Path | str | None = None
    ask: Callable[[str], str] | None = None
    instances_folder: Path | str | None = None

    def __post_init__(self) -> None:
        for url in (self.urls,) if isinstance(self.urls, str) else self.urls:
            if "@" in str(url):  # an address is shown again: in the command to go on with, in the journal
                where = printable(str(url).rpartition("@")[2])
                raise Problem("an address holds no user and no password", where, "say with --bind-dn who asks")

    @property
    def given(self) -> bool:
        """True if any server was named."""
        return bool(self.instances or self.urls)

    def addresses(self) -> list[Address]:
        """The servers that were named."""
        named = {"instance": self.instances, "url": self.urls}
        for kind, texts in named.items():
            if isinstance(texts, str):
                raise Problem(f"{kind}s is one text", printable(texts), "give a list of texts")
        folder = Path(self.instances_folder) if self.instances_folder else None
        found = [_address(text, kind, folder) for kind, texts in named.items() for text in texts]
        if not found:
            raise Problem(
                "no server is named", do="name the servers: --instance INSTANCE or --url URL, each as often as needed"
            )
        return found

    def access(self) -> Access:
        """How they are reached."""
        if self.password_file and not self.bind_dn:
            raise Problem(
                "whose password is it?", printable(str(self.password_file)), "--password-file needs --bind-dn"
            )
        password = self._password(self.password_file, str(self.bind_dn), PASSWORD, "--bind-dn", "--password-file")
        ca_file = Path(self.ca_file) if self.ca_file else None
        return Access(self.bind_dn or None, password, ca_file, self.tls, self.timeout, self.patience)

    def site(self, plan: Plan, folder: Path, steps: Sequence[Step] = ()) -> Any:
        """The real servers of the plan, as the place where these steps will be done (`workbench.repair.plan_executor.Site`).

        What passwords that takes is known when this returns: nobody is asked in the middle of a repair.
        """
        system = system_named(plan.system)
        if system.site is None:
            raise Problem(f"no hands are known for {system.title}", plan.case, "make a bundle, and run it by hand")
        access = self.access()
        credentials = self._password(
            self.replication_password_file,
            "the user with which suppliers bind",
            REPLICATION_PASSWORD,
            "the replication user",
            "--replication-password-file",
        )
        site = system.site()(plan, self.addresses(), access, folder, credentials)
        if access.user:
            access.password()
        if any(ASKED_FOR in step.sends for step in steps):
            credentials()
        return site

    def command(self, verb: str, folder: Path, *more: str) -> str:
        """What somebody types in a terminal to go on from here: `workbench VERB FOLDER` with these servers."""
        words = ["workbench", verb, str(folder)]
        for option, value in (
            *(("--instance", one) for one in self.instances),
            *(("--url", one) for one in self.urls),
            ("--instances-folder", self.instances_folder),
            ("--bind-dn", self.bind_dn),
            ("--password-file", self.password_file),
            ("--ca", self.ca_file),
            ("--timeout", self.timeout if self.timeout != ServerAccess.timeout else None),
            ("--patience", self.patience if self.patience != ServerAccess.patience else None),
            ("--replication-password-file", self.replication_password_file if verb != "verify" else None),
        ):
            words += [option, str(value)] * bool(value)
        words += [] if self.tls is None else ["--tls" if self.tls else "--no-tls"]
        return shlex.join([*words, *more])

    def _password(self, file: Path | str | None, whose: str, variable: str, who: str, option: str) -> Callable[[], str]:
        """What gives the password, once it is needed, and the same one from then on."""

        @cache
        def password() -> str:
            if file:
                try:
                    given = Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
                except ValueError:
                    raise Problem("the password is no text in UTF-8", printable(str(file)), "write it anew") from None
                except OSError as error:
                    raise Problem(f"no password: {error.strerror}", printable(str(file)), "give another file") from None
            elif set_as := next((one for one in (variable, *_FORMERLY.get(variable, ())) if one in os.environ), None):
                given = os.environ[set_as]
            elif self.ask:
                given = self.ask(whose)
            else:
                raise Problem("no password", whose, f"give {option}, or {variable} in the environment")
            if not given:
                # To the server an empty password is nobody's: it would let us in and show nothing.
                raise Problem("the password is empty", str(file or variable), f"give the password of {who}")
            return given

        return password


def _address(text: str, kind: str, folder: Path | None) -> Address:
    """`NAME=WHERE`, or WHERE alone; a name has none of the letters of a URL."""
    named = re.fullmatch(r"([^=:/%,\s]+)=(.+)", text)
    name, where = (named[1], named[2]) if named else (None, text)
    return Address(name, **{kind: where}, folder=folder)
