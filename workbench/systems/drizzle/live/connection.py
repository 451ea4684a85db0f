"""A connection to a server that speaks MySQL's protocol. What it refuses is told without what it quotes of the data."""

from __future__ import annotations

import getpass
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql
from pymysql.constants import CLIENT, ER

from workbench.intake.collection import Access, Address
from workbench.model import Problem
from workbench.safety import printable
from workbench.systems.drizzle.sql import SESSION

_PORT = 3306
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})

_SAYS = {
    ER.DUP_ENTRY: "a row with this key is there already",
    ER.DATA_TOO_LONG: "a value is longer than its column",
    ER.TRUNCATED_WRONG_VALUE_FOR_FIELD: "a value does not fit its column",
    ER.WARN_DATA_OUT_OF_RANGE: "a number is beyond its column",
    ER.BAD_NULL_ERROR: "a column takes no NULL",
    ER.NO_REFERENCED_ROW_2: "the row that a foreign key asks for is not there",
    ER.ROW_IS_REFERENCED_2: "another row refers to this one by a foreign key",
    ER.NO_SUCH_TABLE: "the table is not there",
    ER.TABLE_EXISTS_ERROR: "the table is there already",
    ER.BAD_TABLE_ERROR: "the table is not there",
    ER.BAD_DB_ERROR: "the schema is not there",
    ER.DB_CREATE_EXISTS: "the schema is there already",
    ER.BAD_FIELD_ERROR: "a column is not there",
    ER.LOCK_WAIT_TIMEOUT: "somebody else holds a row for too long",
    ER.LOCK_DEADLOCK: "somebody else works on the same rows",
    ER.NET_PACKET_TOO_LARGE: "a statement is longer than the server takes: see its max_allowed_packet",
    ER.ACCESS_DENIED_ERROR: "the user or the password is wrong",
    ER.DBACCESS_DENIED_ERROR: "the user may not do that in this schema",
    ER.TABLEACCESS_DENIED_ERROR: "the user may not do that with this table",
    ER.OPTION_PREVENTS_STATEMENT: "the server is read-only for this user",
    2003: "nobody answers there",
    2006: "the connection was lost",
    2013: "the connection was lost in the middle of a statement",
}
"""Error of a server -> what it means. Its own text may quote values: it goes into no journal and on no screen."""

DUPLICATE = ER.DUP_ENTRY


class Refused(Problem):
    """What the server refused, with the number of its error."""

    def __init__(self, number: int, where: str) -> None:
        says = _SAYS.get(number, "the server refuses it; its own log may say more")
        super().__init__(f"{says} (error {number})", where)
        self.number = number


@dataclass(frozen=True)
class Place:
    """Where a server listens: a socket of this machine, or a host and port."""

    url: str
    host: str = ""
    port: int = _PORT
    socket: str = ""


def place_of(url: str) -> Place:
    """`mysql://HOST[:PORT]`, or `mysql:///PATH/TO/SOCKET`. Raises Problem for anything else."""
    where, do = printable(url), "give mysql://HOST:PORT, or mysql:///PATH/TO/SOCKET on this machine"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORT
    except ValueError:
        raise Problem("this is no address of a server", where, do) from None
    path = unquote(parts.path)
    if (
        parts.scheme != "mysql"
        or parts.query
        or parts.fragment
        or parts.username
        or bool(host) == (path not in ("", "/"))
    ):
        raise Problem("this is no address of a server", where, do)
    return Place(url, host, port, "" if host else path)


class Server:
    """A connection. A transaction begins with its first statement and ends with `commit` or `rollback`."""

    def __init__(self, raw: Any, name: str) -> None:
        self._raw, self.name = raw, name

    def rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        """What a question gives."""
        return list(self._run(statement, values).fetchall())

    def run(self, statement: str) -> int:
        """Run a statement as it stands; how many rows it hit, changed or not."""
        return int(self._run(statement).rowcount)

    def commit(self) -> None:
        """End the transaction: all of it is there from now on."""
        with self._told():
            self._raw.commit()

    def rollback(self) -> None:
        """End the transaction: nothing of it was ever there. One that lost its server was rolled back there."""
        with suppress(pymysql.Error, OSError):
            self._raw.rollback()

    def _run(self, statement: str, values: tuple[str, ...] = ()) -> Any:
        with self._told():
            cursor = self._raw.cursor()
            cursor.execute(statement, values or None)
            return cursor

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except pymysql.Error as error:
            raise _refused(error, self.name) from None
        except OSError as error:
            raise Problem(f"the connection was lost: {error.strerror}", self.name) from None


def _refused(error: Exception, where: str) -> Refused:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    return Refused(number, where)


@contextmanager
def connected(address: Address, access: Access) -> Iterator[Server]:
    """A connection, every statement of which means what `workbench.systems.drizzle.sql` says."""
    place = place_of(address.url or "")
    tls = _tls(place, access)
    where = {"unix_socket": place.socket} if place.socket else {"host": place.host, "port": place.port}
    try:
        raw = pymysql.connect(
            **where,
            user=access.user or getpass.getuser(),
            password=access.password() if access.user else "",
            charset="utf8mb4",
            client_flag=CLIENT.FOUND_ROWS,  # an update that changes nothing has hit its row all the same
            connect_timeout=max(1, int(access.timeout)),
            read_timeout=max(1, int(access.patience)),
            write_timeout=max(1, int(access.patience)),
            ssl=tls,
            ssl_disabled=tls is None,
            autocommit=False,
            local_infile=False,
        )
    except pymysql.Error as error:
        raise _refused(error, printable(place.url)) from None
    except OSError as error:
        raise Problem(f"the server cannot be reached: {error.strerror}", printable(place.url)) from None
    server = Server(raw, address.name or printable(place.url))
    try:
        for statement in SESSION:
            server.run(statement)
        yield server
    finally:
        with suppress(pymysql.Error, OSError):
            raw.close()


def _tls(place: Place, access: Access) -> ssl.SSLContext | None:
    """Rows and passwords cross no network in clear, unless that is asked for."""
    wanted = access.tls if access.tls is not None else not (place.socket or place.host in _HERE)
    if not wanted:
        return None
    try:
        return ssl.create_default_context(cafile=access.ca_file and str(access.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise Problem(f"no certificates: {error}", printable(str(access.ca_file)), "give another file") from None
