"""One real supplier of a chosen version and database: Debian 12's with Berkeley DB or LMDB, or the current one (3.1, LMDB).

The current one lives in a folder of its own (`.ci/current-ds389` builds it) and shares this machine's loopback. Its folders are
linked into this machine's, so that it looks like any instance. What is asked of the servers goes through OpenLDAP's commands.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from conftest import ROOT, need
from live_installed import BERKELEY, DEFAULTS, SUFFIX, absent, current, free_ports, until

KINDS = ("bdb", "current", "mdb")
REPLICA = r"cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config"
_INSTANCE = """\
[general]
config_version = 2
full_machine_name = localhost.localdomain
strict_host_checking = False
systemd = False
selinux = False
start = False
[slapd]
instance_name = {instance}
port = {port}
secure_port = {secure_port}
root_password = Canary-of-root-0815
self_sign_cert = False
db_lib = {db_lib}
[backend-userroot]
sample_entries = no
create_suffix_entry = True
suffix = {suffix}
"""


class Lone:
    """A supplier with the replica ID 1 and nobody to feed."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.instance = f"wb{os.getpid()}l{kind}"
        at = current() if kind == "current" else BERKELEY
        need(f"the current 389 Directory Server ({ROOT / '.ci' / 'current-ds389'} builds it)", at)
        assert at is not None
        self.at, self.root = at, at.root
        self.port, self.secure_port = free_ports(2)
        self.exports = Path(f"/var/lib/dirsrv/slapd-{self.instance}/ldif")
        self.database = Path(f"/var/lib/dirsrv/slapd-{self.instance}/db")
        self.errors = Path(f"/var/log/dirsrv/slapd-{self.instance}/errors")
        self.process: subprocess.Popen[bytes] | None = None

    def build(self) -> None:
        """From nothing to a supplier with some entries."""
        about = self.root / "tmp" / f"{self.instance}.inf"
        db_lib = "bdb" if self.kind == "bdb" else "mdb"
        about.write_text(
            _INSTANCE.format(
                instance=self.instance,
                port=self.port,
                secure_port=self.secure_port,
                db_lib=db_lib,
                suffix=SUFFIX,
            )
        )
        self._tool("dscreate", "from-file", f"/tmp/{about.name}")
        about.unlink()
        self.at.lend(self.instance)
        self.start()
        self._tool(
            *("dsconf", self.instance, "replication", "enable", "--suffix", SUFFIX, "--role", "supplier"),
            *("--replica-id", "1", "--bind-dn", "cn=replication manager,cn=config", "--bind-passwd", "Canary-4711"),
        )
        self.write(f"dn: ou=people,{SUFFIX}\nchangetype: add\nobjectClass: organizationalUnit\n\n")

    def people(self, count: int, prefix: str = "u") -> None:
        """Add people, some hundred bytes each; every hundredth has a password, which takes the server a while."""
        self.write(
            "\n".join(
                f"dn: uid={prefix}{n},ou=people,{SUFFIX}\nchangetype: add\nobjectClass: inetOrgPerson\ncn: {n}\nsn: {n}\n"
                f"description: {'word ' * 100}\n{'' if n % 100 else f'userPassword: Canary-{n}'}\n"
                for n in range(count)
            )
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = ["/usr/sbin/ns-slapd", "-D", f"/etc/dirsrv/slapd-{self.instance}"]
        command += ["-i", f"/run/dirsrv/slapd-{self.instance}.pid", "-d", "0"]
        (self.root / f"run/dirsrv/slapd-{self.instance}.pid").unlink(missing_ok=True)
        for left in (self.root / f"run/lock/dirsrv/slapd-{self.instance}").glob("*/*"):
            left.unlink()
        with open(self.folder / f"{self.instance}.log", "ab") as log:
            self.process = subprocess.Popen(
                self._inside(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until(f"{self.instance} answers", self.answers)

    def kill(self) -> None:
        """End the server at once, as a crash does."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Stop the server in order."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None

    def answers(self) -> bool:
        """True if the server can be asked."""
        return self._ran("ldapsearch", "-s", "base", "-b", "", "vendorVersion").returncode == 0

    def write(self, ldif: str) -> None:
        """Send changes."""
        done = self._ran("ldapmodify", text=ldif)
        assert done.returncode == 0, done.stderr[-2000:]

    def setting(self, attribute: str, dn: str = "cn=config") -> str:
        """A value of an entry of the server; empty if there is none."""
        told = self._ran("ldapsearch", "-LLL", "-o", "ldif-wrap=no", "-s", "base", "-b", dn, attribute).stdout
        found = re.search(rf"(?im)^{attribute}: (.*)$", told)
        return found[1] if found else ""

    def running_tasks(self) -> list[str]:
        """The tasks that have not ended."""
        told = self._ran(
            "ldapsearch", "-LLL", "-b", "cn=export,cn=tasks,cn=config", "(!(nsTaskExitCode=*))", "dn"
        ).stdout
        return [line for line in told.splitlines() if line.startswith("dn: cn=workbench")]

    def remove(self) -> None:
        """End the server and remove what is its own."""
        self.kill()
        self.at.take_back(self.instance)
        for place in ("etc", "var/lib", "var/log", "run", "run/lock"):
            for left in (self.root / place / "dirsrv").glob(f"slapd-{self.instance}*"):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        for left in [
            *(self.root / "run").glob(f"slapd-{self.instance}*"),
            *Path("/dev/shm").glob(f"*{self.instance}*"),
        ]:
            with suppress(OSError):
                left.unlink()
        for left in (self.root / "dev/shm").glob(f"*{self.instance}*"):
            with suppress(OSError):
                left.unlink()

    def _inside(self, command: list[str]) -> list[str]:
        return command if self.root == Path("/") else ["chroot", str(self.root), *command]

    def _tool(self, *command: str) -> None:
        environment = {**os.environ, "PYTHONPATH": ""}
        prefix = self.folder / "prefix"
        if self.root == Path("/") and not prefix.exists():
            inf = prefix / "share" / "dirsrv" / "inf"
            inf.mkdir(parents=True)
            text = re.sub(r"(?m)^with_systemd *=.*", "with_systemd = 0", DEFAULTS.read_text())
            (inf / DEFAULTS.name).write_text(text)
            (prefix / "etc").symlink_to("/etc")
        if self.root == Path("/"):
            environment["PREFIX"] = str(prefix)
        log = self.folder / "command.log"
        with open(log, "wb") as out:
            done = subprocess.run(
                self._inside(list(command)),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=150,
            )
        assert done.returncode == 0, log.read_text(errors="replace")[-3000:]

    def _ran(self, program: str, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        socket = quote(str(self.root / f"run/slapd-{self.instance}.socket"), safe="")
        command = [program, "-Q", "-Y", "EXTERNAL", "-H", f"ldapi://{socket}", "-o", "nettimeout=10", *words]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)


@contextmanager
def lone(folder: Path, kind: str) -> Iterator[Lone]:
    """A lone supplier while the block runs."""
    missing = absent()
    need(f"389 Directory Server and root (there is no {missing})", not missing)
    server = Lone(folder, kind)
    try:
        server.build()
        yield server
    finally:
        server.remove()
