"""What names look like here: of entries, links and hosts, so that a report can do without them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.model import Naming

_ATTRIBUTE = r"[A-Za-z][A-Za-z0-9.-]{0,40}(?:;[\w-]+)*"
_KINDS = {"dc": "domain", "ou": "unit", "o": "unit"}

_WORD = r"(?:[^\s,\"'()<>;=+:.?!]|[':.?!](?=[^\s,\"'()<>;=+:.?!]))++"
_IN_TEXT = re.compile(
    rf"(?<![\w-])(?:{_ATTRIBUTE}=(?:\\.|[^,+=\n\"<>\\]){{0,256}}[,+] ?){{0,30}}(?i:"
    rf"(?:uid|dc|c|mail|nsuniqueid|employeeNumber|serialNumber)={_WORD}"
    rf"|(?:cn|ou|o|l|st|s|street|sn|givenName|title|displayName)={_WORD}(?: (?!-){_WORD}){{0,3}})(?!=)"
)
"""A DN in a sentence. Its last part may be several words (`cn=John Doe`): how many of them belong to it, who reads it decides."""


def parts(text: str) -> Iterator[tuple[str, str]]:
    """A DN cut into literal text and names; a text without a `=` is none."""
    if "=" not in text:
        yield "", text
        return
    for at, part in enumerate(_split(text, ",")):
        if at:
            yield "", ","
        for number, pair in enumerate(_split(part, "+")):
            attribute, sign, name = pair.strip().partition("=")
            if number:
                yield "", "+"
            if sign and re.fullmatch(_ATTRIBUTE, attribute):
                yield "", f"{attribute}="
                yield _KINDS.get(attribute.lower(), "entry"), name
            else:
                yield "entry", pair


def _split(text: str, sign: str) -> list[str]:
    """At every such sign that is not escaped or quoted."""
    return [part for part in re.findall(rf'((?:\\.|"[^"]*"|[^\\{sign}])+|\\$)', text, re.DOTALL) if part]


NAMING = Naming(
    parts,
    in_text=_IN_TEXT,
    patterns=(
        ("link", re.compile(r'agmt="(?:cn=)?([^"\n]+)"')),
        ("host", re.compile(r'agmt="[^"\n]*" \(([^\s/:()]+)[:)]')),
    ),
    common=frozenset(
        {"config", "mapping tree", "replica", "directory manager", "replication manager", "changelog", "plugins"}
        | {"ldbm database", "monitor", "tasks", "schema", "encryption", "localhost"}
        | {"server-cert", "self-signed-ca", "self-signed-cert"}
    ),
    ordinary=frozenset(
        {"cn", "dc", "dn", "modrdn", "org", "ou", "people", "uid", "directory", "manager", "ldap", "ldaps", "ldapi"}
        # Words of the commands: with a name for one of them nobody could run what a report shows.
        | {
            "dsconf",
            "ldapmodify",
            "ldapsearch",
            "repl",
            "agmt",
            "replication",
            "init",
            "status",
            "get",
            "ruv",
            "enable",
        }
        | {
            "disable",
            "create",
            "set",
            "list",
            "plugin",
            "memberof",
            "fixup",
            "external",
            "run",
            "slapd",
            "socket",
            "lll",
        }
        | {"access", "errors", "error", "audit", "auditfail"}  # files are called so, and sentences speak of such logs
    ),
)
