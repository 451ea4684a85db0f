"""Real 389 Directory Servers of this machine as a mesh, and the ways to break it.

Each mesh has instances of its own name on free ports, made by the server's own tools and removed at the end. The servers
are written to and asked with OpenLDAP's commands, not with what is under test. They are started, stopped, exported and
imported by what `dsctl` runs for that, without it: it takes longer to load than these do, and looks once a second.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from click.testing import CliRunner, Result
from live_installed import (
    AUTHORITY,
    BERKELEY,
    DEFAULTS,
    INSTANCE,
    LMDB,
    MANAGER,
    MANAGER_PASSWORD,
    OFTEN,
    PATIENCE,
    REPLICA,
    ROOT_PASSWORD,
    SUFFIX,
    Installed,
    free_ports,
    until,
)

from workbench.cli import main
from workbench.repair.server_access import PASSWORD


def asked(*words: object, **environment: str) -> Result:
    """`workbench collect` with these words; a password only from this environment."""
    return CliRunner().invoke(main, ["collect", *map(str, words)], env={PASSWORD: None, **environment})


def person(name: str, more: str = "") -> str:
    """The LDIF that adds a person."""
    return f"dn: uid={name},ou=people,{SUFFIX}\nchangetype: add\nobjectClass: inetOrgPerson\ncn: {name}\nsn: {name}\n{more}"


class Crashed(AssertionError):
    """A tool of the server was ended by a signal."""


class Mesh:
    """Servers by name, with their roles, and who feeds whom.

    `roles` says `supplier`, `hub` or `consumer` of each; `feeds` are the agreements, in the order in which they
    initialise: a replica has to be initialised before it feeds another one. `certified` servers speak TLS. `at` is the
    installation that they are of.
    """

    def __init__(
        self,
        folder: Path,
        roles: Mapping[str, str],
        feeds: Iterable[tuple[str, str]],
        certified: Iterable[str] = (),
        at: Installed = BERKELEY,
    ) -> None:
        self.folder, self.roles, self.feeds, self.at = folder, dict(roles), list(feeds), at
        self.certified = frozenset(certified)
        assert not (self.certified and at.apart), "the authority of this machine signs for its own servers"
        at.link_root()
        self.suppliers = [name for name, role in self.roles.items() if role == "supplier"]
        self.rids = {name: str(number) for number, name in enumerate(self.suppliers, 1)}
        ports = iter(free_ports(2 * len(self.roles)))
        self.ports = {name: next(ports) for name in self.roles}
        self.secure_ports = {name: next(ports) for name in self.roles}
        self._commands = count(1)
        self._authority_was_there = self._has_authority()
        # lib389 asks systemd to start a server, unless its defaults say otherwise: a copy of them does.
        self.prefix = folder / "prefix"
        inf = self.prefix / "share" / "dirsrv" / "inf"
        inf.mkdir(parents=True)
        text = DEFAULTS.read_text(encoding="utf-8")
        (inf / DEFAULTS.name).write_text(re.sub(r"(?m)^with_systemd *=.*", "with_systemd = 0", text), encoding="utf-8")
        (self.prefix / "etc").symlink_to("/etc")

    def instance(self, name: str) -> str:
        """The instance name of a server: of this process alone."""
        return f"wb{os.getpid()}{self.folder.name[:4]}-{name}"

    def configuration(self, name: str) -> Path:
        """The instance folder."""
        return self.at.place("/etc/dirsrv") / f"slapd-{self.instance(name)}"

    def logs(self, name: str) -> Path:
        """The folder of the server's logs."""
        return self.at.place("/var/log/dirsrv") / f"slapd-{self.instance(name)}"

    def link(self, supplier: str, consumer: str) -> str:
        """The name of an agreement."""
        return f"{supplier}-to-{consumer}"

    # Building and removing

    def build(self) -> None:
        """From nothing to equal vectors."""
        if self.certified and not self._authority_was_there:
            # A set-up that was killed leaves one half-made: lib389 takes it for whole, and then cannot sign with it.
            shutil.rmtree(AUTHORITY, ignore_errors=True)
        with ThreadPoolExecutor(len(self.roles)) as pool:
            list(pool.map(self._create, self.roles))
            list(pool.map(self._enable, self.roles))
        for feed in self.feeds:
            self.agree(*feed)
        done = set(self.suppliers[:1])
        while feeds := self._next_filled(done):
            self.initialise_all((by, to) for to, by in feeds.items())
            done.update(feeds)
        self.write(self.suppliers[0], f"dn: ou=people,{SUFFIX}\nchangetype: add\nobjectClass: organizationalUnit\n")
        try:
            self.wait_equal(seconds=60)
        except AssertionError:
            # A supplier whose first change came while another one was being filled opens no session before its next change.
            for name in self.suppliers[1:]:
                self.modify(name, f"ou=people,{SUFFIX}", "description", f"made on {name}")
            self.wait_equal()

    def _next_filled(self, done: set[str]) -> dict[str, str]:
        """Which servers to fill next, each with who fills it: suppliers first.

        A supplier writes as soon as it is filled. A hub or a consumer that is filled before that change has reached its own
        supplier never learns the address of the origin: its RUV on 3.1 does not show that element.
        """
        feeds = {to: by for by, to in reversed(self.feeds) if by in done and to not in done}
        if suppliers := {to: by for to, by in feeds.items() if to in self.suppliers}:
            return suppliers
        if feeds and len(self.suppliers) > 1:
            written = {self.rids[name] for name in self.suppliers[1:] if name in done}
            until("the first changes of the suppliers", lambda: written <= set(self.vector(self.suppliers[0])))
            self.wait_equal(done)
        return feeds

    def _create(self, name: str) -> None:
        about = (self.at.place("/root") if self.at.apart else self.folder) / f"{self.instance(name)}.inf"
        about.write_text(
            INSTANCE.format(
                instance=self.instance(name),
                port=self.ports[name],
                secure_port=self.secure_ports[name],
                password=ROOT_PASSWORD,
                certified=name in self.certified,
                # A certificate has to be of the name that clients use.
                host="localhost" if name in self.certified else "localhost.localdomain",
                suffix=SUFFIX,
                db_lib=self.at.db_lib,
                root=self.at.prefix,
            ),
            encoding="utf-8",
        )
        program = "/usr/sbin/dscreate" if self.at.apart else shutil.which("dscreate") or ""
        python = self.at.place(program).read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!").split()
        self._tool(*python, "-c", OFTEN, program, "from-file", about, seconds=150)
        about.unlink()
        self.at.lend(self.instance(name))
        self.modify_config(name, "nsslapd-accesslog-logbuffering", "off")

    def _enable(self, name: str) -> None:
        identity = ["--replica-id", self.rids[name]] if name in self.rids else []
        self.dsconf(
            *(name, "replication", "enable", "--suffix", SUFFIX, "--role", self.roles[name], *identity),
            *("--bind-dn", MANAGER, "--bind-passwd", MANAGER_PASSWORD),
        )

    def agree(self, supplier: str, consumer: str) -> None:
        """Have a server feed another one, by the entry that `dsconf repl-agmt create` adds."""
        link = self.link(supplier, consumer)
        self.write(
            supplier,
            f"dn: cn={link},{REPLICA}\nchangetype: add\nobjectClass: top\nobjectClass: nsds5replicationagreement\n"
            f"cn: {link}\ndescription: {link}\nnsDS5ReplicaRoot: {SUFFIX}\nnsDS5ReplicaHost: localhost\n"
            f"nsDS5ReplicaPort: {self.ports[consumer]}\nnsDS5ReplicaTransportInfo: LDAP\nnsDS5ReplicaBindMethod: simple\n"
            f"nsDS5ReplicaBindDN: {MANAGER}\nnsDS5ReplicaCredentials: {MANAGER_PASSWORD}\n",
        )

    def initialise(self, supplier: str, consumer: str) -> None:
        """Fill a consumer with the data of a supplier or hub; one that is busy with another session is asked again."""
        running, status = "nsds5BeginReplicaRefresh", "nsds5replicaLastInitStatus"
        said: dict[str, list[str]] = {}

        def ended() -> bool:
            nonlocal said
            said = self.read(supplier, self._agreement(supplier, consumer), [running, status])
            return running not in said

        for tried in range(4):
            time.sleep(5 * tried)  # a machine at its limit needs a while to answer again
            self.modify(supplier, self._agreement(supplier, consumer), running, "start")
            until(f"{consumer} initialised, with success or not", ended)
            if "Total update succeeded" in said[status][0]:
                return
            if self.at is LMDB and not self._alive(consumer):
                self.start(consumer)  # 2.3.1 with LMDB crashes at times while it is filled
        raise AssertionError(f"{consumer} was not initialised: {said[status][0]}")

    def initialise_all(self, feeds: Iterable[tuple[str, str]]) -> None:
        """Fill several consumers at the same time."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda feed: self.initialise(*feed), feeds))

    def remove(self) -> None:
        """End the servers of this mesh and remove what is theirs."""
        for name in self.roles:
            self.kill(name)
        with ThreadPoolExecutor(len(self.roles)) as pool:
            list(pool.map(self._remove, self.roles))
        if self.certified and not self._authority_was_there:
            shutil.rmtree(AUTHORITY, ignore_errors=True)

    def _remove(self, name: str) -> None:
        self.at.take_back(self.instance(name))
        if self.configuration(name).exists():
            with suppress(AssertionError, subprocess.TimeoutExpired):
                self._tool("dsctl", self.instance(name), "remove", "--do-it")
        mine = f"slapd-{self.instance(name)}*"
        for place in ("/etc", "/var/lib", "/var/log", "/run", "/run/lock"):
            for left in self.at.place(place).joinpath("dirsrv").glob(mine):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        for left in [*self.at.place("/run").glob(mine), *self.at.place("/dev/shm").glob(f"*{mine}")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    # Asking and writing

    def ldapi(self, name: str) -> str:
        """The URL of the server's socket; root is its Directory Manager there, without a password."""
        return "ldapi://" + quote(str(self._socket(name)), safe="")

    def url(self, name: str) -> str:
        """The URL of its port."""
        return f"ldap://localhost:{self.ports[name]}"

    def write(self, name: str, ldif: str) -> None:
        """Send changes, as LDIF with `changetype:`, to a server."""
        self._ran(["ldapmodify", "-Q", "-Y", "EXTERNAL", "-H", self.ldapi(name), "-o", "nettimeout=10"], ldif)

    def modify(self, name: str, dn: str, attribute: str, *values: str) -> None:
        """Replace the values of an attribute."""
        given = "".join(f"{attribute}: {value}\n" for value in values)
        self.write(name, f"dn: {dn}\nchangetype: modify\nreplace: {attribute}\n{given}")

    def modify_config(self, name: str, attribute: str, *values: str) -> None:
        """Replace the values of a setting of the server."""
        self.modify(name, "cn=config", attribute, *values)

    def read(self, name: str, dn: str, attributes: Iterable[str] = ("*", "+")) -> dict[str, list[str]]:
        """One entry; {} if it is not there."""
        command = ["ldapsearch", "-Q", "-Y", "EXTERNAL", "-H", self.ldapi(name), "-LLL", "-o", "ldif-wrap=no"]
        command += ["-o", "nettimeout=10", "-l", "10", "-s", "base", "-b", dn, "(objectClass=*)", *attributes]
        entry: dict[str, list[str]] = {}
        for line in self._ran(command, fine=(0, 32)).splitlines():
            if found := re.fullmatch(r"([^:\s]+)(::?) ?(.*)", line):
                value = base64.b64decode(found[3]).decode() if found[2] == "::" else found[3]
                entry.setdefault(found[1], []).append(value)
        return entry

    def entries(self, name: str) -> dict[str, dict[str, list[str]]]:
        """Every entry of the suffix by its name: the attributes in lower case, without what is the server's own affair."""
        command = ["ldapsearch", "-Q", "-Y", "EXTERNAL", "-H", self.ldapi(name), "-LLL", "-o", "ldif-wrap=no"]
        command += ["-o", "nettimeout=10", "-l", "10", "-b", SUFFIX]
        command += ["(|(objectClass=*)(objectClass=ldapSubEntry))", "*", "nsUniqueId", "nsds5ReplConflict"]
        found: dict[str, dict[str, list[str]]] = {}
        for block in self._ran(command).split("\n\n"):
            entry: dict[str, list[str]] = {}
            for line in block.splitlines():
                name_, _, value = line.partition(":")
                entry.setdefault(name_.lower(), []).append(value)
            if entry:
                found[entry.pop("dn")[0].lower()] = {key: sorted(values) for key, values in entry.items()}
        return found

    def vector(self, name: str) -> dict[str, str]:
        """What the server claims to hold: replica ID -> highest CSN."""
        values = self.read(name, REPLICA, ["nsds50ruv"]).get("nsds50ruv", [])
        found = (re.match(r"\{replica (\d+)[^}]*\} \S+ (\S+)", value) for value in values)
        return {one[1]: one[2] for one in found if one}

    def setting(self, name: str, attribute: str) -> str:
        """A setting of the server."""
        return self.read(name, "cn=config", [attribute])[attribute][0]

    def wait_equal(self, names: Iterable[str] = (), seconds: float = PATIENCE) -> None:
        """Wait until all these servers (default: all) claim the same."""
        names = list(names) or list(self.roles)

        def equal() -> bool:
            vectors = [self.vector(name) for name in names]
            return bool(vectors[0]) and all(vector == vectors[0] for vector in vectors)

        until("equal vectors", equal, seconds, lambda: self._state(names))

    def _state(self, names: Iterable[str]) -> str:
        """What the servers claim and what became of their last sessions, for whoever has to find out what went wrong."""
        status = "nsds5replicaLastUpdateStatus"
        vectors = [f"{name} {self.vector(name)}" for name in names]
        sessions = [
            f"{supplier} -> {consumer}: {self.read(supplier, self._agreement(supplier, consumer), [status]).get(status)}"
            for supplier, consumer in self.feeds
            if {supplier, consumer} <= set(names)
        ]
        return "\n".join([*vectors, *sessions])

    def collect(self, folder: Path, *options: str, names: Iterable[str] = ()) -> Result:
        """`workbench collect` of these servers (default: all), named as here, by their instances."""
        servers = [f"{name}={self.instance(name)}" for name in names or self.roles]
        given = [word for server in servers for word in ("--instance", server)]
        return asked(*given, "--into", folder, *options)

    def collect_at_rest(self, folder: Path, *options: str) -> tuple[Path, dict[str, dict[str, str]], Result]:
        """All servers, collected while none of them moves: the folder, what each claims, and what `collect` said.

        Half a minute after its start a supplier writes by itself, to the entry that keeps its vector moving.
        """
        for attempt in range(3):
            self.wait_equal()
            before = {name: self.vector(name) for name in self.roles}
            done = self.collect(folder / f"at-rest-{attempt}", *options)
            assert done.exit_code == 0, done.output
            if before == {name: self.vector(name) for name in self.roles}:
                return folder / f"at-rest-{attempt}", before, done
        raise AssertionError("the servers never rest")

    # Faults

    def pause(self, supplier: str, consumer: str) -> None:
        """Disable an agreement."""
        self.modify(supplier, self._agreement(supplier, consumer), "nsds5ReplicaEnabled", "off")

    def resume(self, supplier: str, consumer: str) -> None:
        """Enable an agreement again."""
        self.modify(supplier, self._agreement(supplier, consumer), "nsds5ReplicaEnabled", "on")

    @contextmanager
    def paused(self, supplier: str, consumer: str) -> Iterator[None]:
        """A disabled agreement while the block runs."""
        self.pause(supplier, consumer)
        try:
            yield
        finally:
            self.resume(supplier, consumer)

    def stop(self, name: str) -> None:
        """Stop a server in order. It needs 4 s at least: `replica_destroy` sleeps for 3, whatever is set."""
        if pid := self._alive(name):
            os.kill(pid, signal.SIGTERM)
            until(f"{name} has stopped", lambda: not self._alive(name))
            self._forget(name)  # dsctl takes a pid for a server that runs as long as nobody has waited for its process

    def start(self, name: str) -> None:
        """Start a server, also one that crashed, and wait until it answers."""
        if not self._alive(name):
            self._forget(name)
            self._tool("ns-slapd", "-D", self.configuration(name), "-i", self._pid_file(name))
        until(f"{name} answers", lambda: self._answers(name))
        for feed in self.feeds if self.at.apart else ():
            if feed[0] == name:
                # 3.1.2 was seen to read the passwords of its agreements wrongly at a start: 49, until they are set again.
                self.modify(name, self._agreement(*feed), "nsDS5ReplicaCredentials", MANAGER_PASSWORD)

    def kill(self, name: str) -> None:
        """End a server at once, as a crash does."""
        pid = self._alive(name)
        if pid:
            os.kill(pid, signal.SIGKILL)
            until(f"{name} is gone", lambda: not self._alive(name) and not self._listens(name))
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Remove what a crash leaves: the server takes itself for running if its pid is anybody's, also a dead one's."""
        for left in [self._pid_file(name), *self.at.place(f"/run/lock/dirsrv/slapd-{self.instance(name)}").glob("*/*")]:
            left.unlink(missing_ok=True)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """A stopped server while the block runs."""
        self.stop(name)
        try:
            yield
        finally:
            self.start(name)

    def edit_vector(self, name: str, origin: str, csn: str) -> None:
        """Have a server claim to hold an origin's changes up to `csn`: what it lacks of them is hidden from then on.

        Its changelog begins anew. So its own changes have to be with a neighbour before: half a minute after its start a
        supplier writes by itself, and if that is on its way when the server stops, nobody would ever get it.
        """
        own, neighbour = self.rids.get(name), next((to for by, to in self.feeds if by == name), None)
        for _ in range(5):
            with self.stopped(name):
                file, text = self._exported(name)
                mine = _claim_of(own).search(text) if own and neighbour and own != origin else None
                known = self.vector(neighbour).get(own, "") if mine and own and neighbour else ""
                if mine is None or mine[2] <= known:
                    text, count = _claim_of(origin).subn(rf"\g<1>{csn}", text)
                    assert count == 1, f"{count} elements of the vector of {name} are of the origin {origin}"
                    file.write_text(text, encoding="utf-8")
                    self._offline(name, "ldif2db", "-n", "userroot", "-i", file)
                    file.unlink()
                    return
            self._wait_for(str(neighbour), str(own), mine[2])
        raise AssertionError(f"{name} writes whenever it is stopped")

    def _wait_for(self, name: str, origin: str, position: str) -> None:
        has = f"{name} has {position}"
        until(has, lambda: self.vector(name).get(origin, "") >= position, state=lambda: self._state([name]))

    def _exported(self, name: str) -> tuple[Path, str]:
        """All of a stopped server's entries as LDIF, and the file that they were written to."""
        file = self.at.place("/var/lib/dirsrv") / f"slapd-{self.instance(name)}" / "ldif" / "edited.ldif"
        for attempt in range(3):
            file.unlink(missing_ok=True)
            try:
                self._offline(name, "db2ldif", "-r", "-n", "userroot", "-a", file)
                break
            except Crashed:
                # Seen where two servers are exported at once. An export changes nothing, so it is begun anew.
                if attempt == 2:
                    raise
        return file, file.read_text(encoding="utf-8").replace("\n ", "")

    def lose_changelog(self, name: str) -> None:
        """Have a server lose its changelog: it begins a new one, with marks where its vector stands."""
        with self.stopped(name):
            (file,) = (self.at.place("/var/lib/dirsrv") / f"slapd-{self.instance(name)}" / "db").glob(
                "*/replication_changelog.db"
            )
            file.unlink()

    def backup(self, name: str, label: str) -> None:
        """Back up a running server."""
        self.dsconf(name, "backup", "create", str(self._backup(name, label)))

    def restore(self, name: str, label: str) -> None:
        """Put a server back to one of its backups."""
        with self.stopped(name):
            self._offline(name, "archive2db", "-a", self._backup(name, label))

    # Inside

    def dsconf(self, name: str, *words: str) -> str:
        """One command of the server's own tool."""
        return self._tool("dsconf", self.instance(name), *words)

    def _offline(self, name: str, task: str, *words: str | Path) -> None:
        """A task of the server's program on the data of a stopped server."""
        self._tool("ns-slapd", task, "-D", self.configuration(name), *words)

    def _tool(self, *command: str | Path, seconds: float = 60) -> str:
        # Into a file, because a server that the command starts inherits it and would keep a pipe open for ever.
        log = self.folder / f"command-{next(self._commands)}.log"
        with open(log, "wb") as out:
            done = subprocess.run(
                self.at.command(*command),
                env={**os.environ, "PYTHONPATH": "", **({} if self.at.apart else {"PREFIX": str(self.prefix)})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=seconds,
            )
        said = log.read_text(encoding="utf-8", errors="replace")
        if done.returncode < 0:
            raise Crashed(f"{command[0]} {command[1:3]}: ended by signal {-done.returncode}\n{said[-3000:]}")
        assert done.returncode == 0, f"{command[0]} {command[1:3]}: exit {done.returncode}\n{said[-3000:]}"
        return said

    @staticmethod
    def _has_authority() -> bool:
        """Does the machine have an authority with its own certificate?"""
        asked = subprocess.run(
            ["certutil", "-L", "-d", AUTHORITY, "-n", "Self-Signed-CA"], capture_output=True, timeout=30
        )
        return asked.returncode == 0

    @staticmethod
    def _ran(command: list[str], text: str = "", fine: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
        assert done.returncode in fine, f"{command[0]}: exit {done.returncode}\n{done.stderr[-3000:]}\n{text[:2000]}"
        return done.stdout

    def _agreement(self, supplier: str, consumer: str) -> str:
        return f"cn={self.link(supplier, consumer)},{REPLICA}"

    def _backup(self, name: str, label: str) -> Path:
        return self.at.place("/var/lib/dirsrv") / f"slapd-{self.instance(name)}" / "bak" / label

    def _socket(self, name: str) -> Path:
        return self.at.place(f"/run/slapd-{self.instance(name)}.socket")

    def _pid_file(self, name: str) -> Path:
        return self.at.place("/run/dirsrv") / f"slapd-{self.instance(name)}.pid"

    def _alive(self, name: str) -> int:
        """The process id of the server if it runs, and is the one of this instance; else 0."""
        try:
            pid = int(self._pid_file(name).read_text(encoding="utf-8"))
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            return 0
        return pid if f"slapd-{self.instance(name)}" in command else 0

    def _listens(self, name: str) -> bool:
        """A process that ends gives back its memory first: for a moment its socket takes what nobody will answer."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            return probe.connect_ex(str(self._socket(name))) not in (
                errno.ECONNREFUSED,
                errno.ENOENT,
            )

    def _answers(self, name: str) -> bool:
        try:
            return bool(self.read(name, "", ["vendorVersion"]))
        except (AssertionError, subprocess.TimeoutExpired):
            return False


def _claim_of(origin: str | None) -> re.Pattern[str]:
    """The element of an origin in an exported vector: up to its last position, and that."""
    return re.compile(rf"^(nsds50ruv: {{replica {origin} [^}}]*}} [0-9a-f]{{20}} )([0-9a-f]{{20}})$", re.MULTILINE)
