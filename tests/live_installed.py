"""The installations of 389 Directory Server that live tests use, and what every one of their servers is made from."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SUFFIX = "dc=example,dc=com"
REPLICA = r"cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config"
MANAGER = "cn=replication manager,cn=config"
MANAGER_PASSWORD = "Canary-of-the-manager-4711"
ROOT_DN = "cn=Directory Manager"
ROOT_PASSWORD = "Canary-of-root-0815"
COMMANDS = ("ns-slapd", "dscreate", "dsctl", "dsconf", "ldapsearch", "ldapmodify", "certutil")
PATIENCE = 200
"""Seconds: a supplier that finds its consumer busy or down asks again after 3 s, and then after twice as long each time."""
OFTEN = """\
import runpy, sys, time
second, sys.argv = time.sleep, sys.argv[1:]
time.sleep = lambda seconds: second(seconds / 4)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Eight of the nine seconds of dscreate are waits of a second for its server to start or stop. It waits as often as before,
each time for a quarter of it: 15 s at most for a start, which takes one."""
DEFAULTS = Path("/usr/share/dirsrv/inf/defaults.inf")
CURRENT = Path(os.environ.get("WORKBENCH_CURRENT_DS389", "/var/cache/replication-workbench/ds389-current"))
"""Where `.ci/current-ds389` puts Debian 13's Directory Server, a system of its own."""
AUTHORITY = Path("/etc/dirsrv/ssca")
"""What signs the certificates of the servers of this machine."""

INSTANCE = """\
[general]
config_version = 2
full_machine_name = {host}
strict_host_checking = False
systemd = False
selinux = False
start = True
[slapd]
instance_name = {instance}
port = {port}
secure_port = {secure_port}
root_password = {password}
self_sign_cert = {certified}
db_lib = {db_lib}
log_dir = {root}/var/log/dirsrv/slapd-{instance}
ldif_dir = {root}/var/lib/dirsrv/slapd-{instance}/ldif
ldapi = {root}/run/slapd-{instance}.socket
[backend-userroot]
sample_entries = no
create_suffix_entry = True
suffix = {suffix}
"""


_LENT = ("etc/dirsrv/slapd-{}", "var/lib/dirsrv/slapd-{}", "var/log/dirsrv/slapd-{}", "run/slapd-{}.socket")


@dataclass(frozen=True)
class Installed:
    """One installation of Directory Server: the folder of the system that it is part of, and where new instances keep data.

    In a system of its own (`root`) its commands run by `chroot`. There `root` is a link to `/` as well, so that the paths that
    an instance is set up with mean the same inside and outside.
    """

    root: Path = Path("/")
    db_lib: str = "bdb"

    @property
    def apart(self) -> bool:
        """True for a system of its own."""
        return self.root != Path("/")

    @property
    def prefix(self) -> str:
        """What paths begin with, as text: empty for this machine's own system."""
        return str(self.root) if self.apart else ""

    def place(self, path: str | Path) -> Path:
        """A path of the installation as this process names it."""
        return self.root / str(path).lstrip("/")

    def command(self, *words: str | Path) -> list[str]:
        """A command of the installation."""
        # In a session of its own, because a server that it starts must outlive it.
        return [*(["setsid", "--wait", "chroot", str(self.root)] if self.apart else []), *map(str, words)]

    def lend(self, instance: str) -> None:
        """Have an instance look like one of this machine, to whatever looks for instances there."""
        for path in _LENT if self.apart else ():
            Path("/", path.format(instance)).symlink_to(self.place(path.format(instance)))

    def take_back(self, instance: str) -> None:
        """Undo that."""
        for path in _LENT if self.apart else ():
            Path("/", path.format(instance)).unlink(missing_ok=True)

    def link_root(self) -> None:
        """Have the root's own path mean the same inside."""
        inside = self.place(self.root)
        if self.apart and not inside.is_symlink():
            inside.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                inside.symlink_to("/")


BERKELEY, LMDB = Installed(), Installed(db_lib="mdb")


def current() -> Installed | None:
    """Debian 13's Directory Server (3.1, LMDB), if `.ci/current-ds389` has built it on this machine."""
    script = Path(__file__).parents[1] / ".ci" / "current-ds389"
    if os.geteuid() != 0 or not (CURRENT / "ready").exists():
        return None
    done = subprocess.run([script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=120)
    return Installed(Path(done.stdout.strip()), "mdb") if done.returncode == 0 else None


def absent() -> str:
    """What is not here that a mesh needs; empty if all is."""
    missing = [name for name in COMMANDS if not shutil.which(name)]
    if os.geteuid() != 0:
        missing.append("root")
    return ", ".join(missing)


def until(what: str, ready: Callable[[], object], seconds: float = PATIENCE, state: Callable[[], str] = str) -> None:
    """Ask again and again until it is so; `state` is told if it never is."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"not within {seconds} s: {what}\n{state()}"
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    with_ports = [socket.socket() for _ in range(count)]
    try:
        for probe in with_ports:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in with_ports]
    finally:
        for probe in with_ports:
            probe.close()
