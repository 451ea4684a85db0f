"""The statements of repairs, and which names may stand in any statement. Only plain names come here (`is_plain`); other text is
escaped.
"""

# ruff: noqa: S608 - see above

from __future__ import annotations

import re

DATABASE, HOST = "[A-Za-z0-9_][A-Za-z0-9_-]{0,59}", "[A-Za-z0-9][A-Za-z0-9._-]{0,119}"
"""Patterns of plain names, as long as the registry's columns. None begins with a dash: cdb2sql would take it for an option. None
ends a text, and in a host no colon says where the program is to connect to.
"""

_PLAIN = re.compile(f"{DATABASE}@{HOST}", re.ASCII)

NODES = "select dbname, host, state, file, last_keepalive from comdb2_physreps order by 1, 2"
PULLS = "select * from comdb2_physrep_connections order by 1, 2, 3, 4"
FIRST = "select lsn from comdb2_transaction_logs(NULL, NULL, 0) limit 1"
LAST = "select lsn from comdb2_transaction_logs(NULL, NULL, 4) limit 1"
"""The first and the last record of a node's log; LSNs are text, so their least and greatest would be others."""


def is_plain(name: str) -> bool:
    """Whether a node's name, `database@host`, may stand in a statement as it is.

    >>> is_plain("shopdb_ro@r3"), is_plain("shopdb@r3' or '")
    (True, False)
    """
    return bool(_PLAIN.fullmatch(name))


def split(name: str) -> tuple[str, str]:
    """Database and host of a node."""
    database, _, host = name.partition("@")
    return database, host


def _where(name: str) -> str:
    database, host = split(name)
    return f"dbname = '{database}' and host = '{host}'"


def reset(name: str) -> str:
    """Set a node to Inactive and delete its connection.

    The hosts are a list of quoted names, put into the procedure's own statements as they are: both quotes are needed.
    """
    database, host = split(name)
    return f"""exec procedure sys.physrep.reset_nodes('{database}', "'{host}'", 'Inactive')"""


def set_state(name: str, state: str) -> str:
    """Give a node's row its state back."""
    escaped = state.replace("'", "''")
    return f"update comdb2_physreps set state = '{escaped}' where {_where(name)}"


def _values(name: str, source: str) -> str:
    return ", ".join(f"'{one}'" for one in (*split(name), *split(source)))


def connect(name: str, source: str) -> str:
    """Give a node its connection back."""
    return f"insert into comdb2_physrep_connections values ({_values(name, source)})"


def disconnect(name: str) -> str:
    """Delete a node's connection."""
    return f"delete from comdb2_physrep_connections where {_where(name)}"


def await_source(name: str, source: str) -> str:
    """Let a node wait until its source connects to it."""
    return f"insert into comdb2_physrep_sources values ({_values(name, source)})"


def await_nobody(name: str) -> str:
    """Let a node connect by itself."""
    return f"delete from comdb2_physrep_sources where {_where(name)}"


def send(message: str) -> str:
    """A message to the program itself, as its operators send it."""
    return f"exec procedure sys.cmd.send('{message}')"
