"""A real MariaDB of this machine in a folder of its own: started, asked over a socket, and stopped by its process id."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql

from workbench.intake.collection import Access, Address
from workbench.systems.drizzle.live.connection import Server, connected

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")
USER, PASSWORD = "workbench", "Canary-of-the-database"
START_SECONDS = 60
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def absent() -> str:
    """What is not here that such a server needs; empty if all is."""
    return ", ".join(name for name in PROGRAMS if not shutil.which(name, path=_PATH))


class Database:
    """A running server. Its user has a password; nobody else can come in."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "s"
        self.url = f"mysql://{self.socket}"
        self.address = Address("replica2", url=self.url)
        self.access = Access(USER, lambda: PASSWORD, timeout=10, patience=60)

    @contextmanager
    def connected(self) -> Iterator[Server]:
        """A connection of the workbench."""
        with connected(self.address, self.access) as server:
            yield server

    def run(self, *statements: str, modes: str = "") -> list[tuple[object, ...]]:
        """Statements of a test, over a connection that the workbench did not make; the rows of the last one."""
        raw = pymysql.connect(
            unix_socket=str(self.socket),
            user=USER,
            password=PASSWORD,
            charset="utf8mb4",
            autocommit=True,
            ssl_disabled=True,
        )
        try:
            with raw.cursor() as cursor:
                if modes:
                    cursor.execute(f"SET SESSION sql_mode = '{modes}'")
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            raw.close()

    def client(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """What the server's own client makes of a script."""
        program = shutil.which("mariadb", path=_PATH) or "mariadb"
        words = [program, "--no-defaults", f"--socket={self.socket}", f"--user={USER}", *options]
        environment = {**os.environ, "MYSQL_PWD": PASSWORD}
        return subprocess.run(words, input=script, env=environment, capture_output=True, text=True, timeout=60)

    def tables(self, schema: str) -> list[str]:
        """The tables of a schema; none if it is not there."""
        there = [found for (found,) in self.run("SHOW DATABASES")]
        return [table for (table,) in self.run(f"SHOW TABLES FROM {schema}")] if schema in there else []

    def empty(self) -> None:
        """Take away all schemas that are not the server's own."""
        own = {"mysql", "information_schema", "performance_schema", "sys"}
        for (schema,) in self.run("SHOW DATABASES"):
            if schema not in own:
                self.run(f"DROP DATABASE `{schema.replace('`', '``')}`")


@contextmanager
def database(folder: Path) -> Iterator[Database]:
    """A server on a socket in the folder, without a network, gone when the block has ended."""
    data = folder / "data"
    user = ["--user=root"] * (os.geteuid() == 0)  # which it refuses to run as, unless it is told to
    setup = folder / "setup.sql"
    setup.write_text(
        f"CREATE USER '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'localhost' WITH GRANT OPTION;\n"
        "DROP USER IF EXISTS ''@localhost, root@localhost;\n"
    )
    install = shutil.which("mariadb-install-db", path=_PATH) or ""
    quick = ["--no-defaults", f"--datadir={data}", *user]
    subprocess.run(
        [install, *quick, "--skip-test-db", "--auth-root-authentication-method=normal"],
        check=True,
        capture_output=True,
        timeout=START_SECONDS,
    )
    log = open(folder / "server.log", "wb")  # noqa: SIM115 - closed below, when the server has ended
    server = subprocess.Popen(
        [
            shutil.which("mariadbd", path=_PATH) or "",
            *quick,
            f"--socket={folder / 's'}",
            f"--pid-file={folder / 'pid'}",
            f"--init-file={setup}",
            "--skip-networking",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-lock-wait-timeout=2",
            "--lc-messages-dir=/usr/share/mysql",
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    found = Database(folder)
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                found.run("SELECT 1")
                break
            except pymysql.Error:
                if time.monotonic() > until or server.poll() is not None:
                    raise RuntimeError((folder / "server.log").read_text(errors="replace")[-2000:]) from None
                time.sleep(0.1)
        yield found
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()
