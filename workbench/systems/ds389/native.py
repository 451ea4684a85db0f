"""What is sent to a server and what a person would type instead: change records, names of entries, commands."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from workbench.repair.plan_types import SENT
from workbench.safety import printable

Record = Mapping[str, Any]
"""`dn`; `change`: add, modify or delete; `mods`: lists of operation, attribute and values; of an add its `values`."""

Command = tuple[str, ...]

ENABLED, REFRESH = "nsds5ReplicaEnabled", "nsds5BeginReplicaRefresh"
KEEP_ALIVE, STAMP = "repl keep alive", "keepalivetimestamp"
CREDENTIALS = "nsDS5ReplicaCredentials"

_SAFE = re.compile(rb"(?![ :<])[\x01-\x09\x0b\x0c\x0e-\x7f]*(?<! )")
_IN_DN = re.compile(r'[,+"\\<>;=]')


def comment(text: str) -> str:
    """A line of LDIF that nothing reads, also where the text came from a client and holds line breaks.

    >>> comment("uid=x\\ndn: cn=admins")
    '# uid=x dn: cn=admins\\n'
    """
    return f"# {' '.join(printable(text).splitlines())}\n"


def line(name: str, value: bytes) -> bytes:
    """One attribute as a line of LDIF."""
    if _SAFE.fullmatch(value):
        return b"%s: %s\n" % (name.encode(), value)
    return b"%s:: %s\n" % (name.encode(), base64.b64encode(value))


def modify(dn: str, *mods: tuple[str, str, Sequence[str]]) -> Record:
    """A record that changes an entry: (`add`, `delete` or `replace`; attribute; values)."""
    return {"dn": dn, "change": "modify", "mods": [[what, name, list(values)] for what, name, values in mods]}


def add(dn: str, values: Mapping[str, Sequence[str]]) -> Record:
    """A record that adds an entry."""
    return {"dn": dn, "change": "add", "values": {name: list(some) for name, some in values.items()}}


def delete(dn: str) -> Record:
    """A record that deletes an entry."""
    return {"dn": dn, "change": "delete"}


def ldif(records: Iterable[Record]) -> str:
    """The records as LDIF that `ldapmodify` takes."""
    blocks = []
    for record in records:
        lines = [line("dn", record["dn"].encode()), line("changetype", record["change"].encode())]
        for what, name, values in record.get("mods", ()):
            lines += [line(what, name.encode()), *(line(name, value.encode()) for value in values), b"-\n"]
        for name, values in record.get("values", {}).items():
            lines += [line(name, value.encode()) for value in values]
        blocks.append(b"".join(lines).decode())
    return "\n".join(blocks)


def escaped(value: str) -> str:
    """A value as it stands in the name of an entry (RFC 4514): special characters as their code, as the server prints it."""
    text = _IN_DN.sub(lambda found: f"\\{ord(found[0]):02X}", value)
    if text[:1] in (" ", "#"):
        text = f"\\{ord(text[0]):02X}{text[1:]}"
    return f"{text[:-1]}\\20" if text.endswith(" ") else text


def replica_dn(suffix: str) -> str:
    """The entry of the replica of a suffix."""
    return f"cn=replica,cn={escaped(suffix)},cn=mapping tree,cn=config"


def agreement_dn(suffix: str, name: str) -> str:
    """The entry of an agreement."""
    return f"cn={escaped(name)},{replica_dn(suffix)}"


def keep_alive_dn(suffix: str, rid: str) -> str:
    """The entry that a server updates to keep its RUV moving; a change of it means nothing to any user."""
    return f"cn={KEEP_ALIVE} {rid},{suffix}"


def stamp(at: datetime) -> str:
    """A time as the directory writes it."""
    return f"{at:%Y%m%d%H%M%S}Z"


def dsconf(server: str, *words: str, named: str | None = None) -> Command:
    """The server's own tool; the name of the server stands for its instance or its URL. `named`: what it is about."""
    last = () if named is None else ("--", named) if named.startswith("-") else (named,)
    return "dsconf", server, *words, *last


def checks(servers: Iterable[Mapping[str, Any]]) -> Iterator[Command]:
    """What shows how the servers stand: their RUVs, which have to become equal, and naming conflicts, of which none may be."""
    for one in servers:
        server, suffix = one["server"], one["suffix"] or ""
        yield dsconf(server, "replication", "get-ruv", "--suffix", suffix)
        conflicts = "(&(objectClass=ldapSubEntry)(nsds5ReplConflict=*))"
        url = f"ldapi://%2Frun%2Fslapd-{server}.socket"
        yield "ldapsearch", "-LLL", "-Y", "EXTERNAL", "-H", url, "-b", suffix, conflicts, "nsds5ReplConflict"


def ldapmodify(server: str) -> Command:
    """What sends LDIF to a server, as the user of its socket on its own machine."""
    return "ldapmodify", "-Y", "EXTERNAL", "-H", f"ldapi://%2Frun%2Fslapd-{server}.socket", "-f", SENT
