"""What names look like here: of entries, alone or with their domain, so that a report can do without them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.model import Naming
from workbench.systems.kanidm.cid import UUID


def parts(text: str) -> Iterator[tuple[str, str]]:
    """A name, or `name@domain`; the id of an entry without a name is none."""
    if UUID.fullmatch(text):
        yield "", text
        return
    name, sign, domain = text.rpartition("@")
    yield "entry", name if sign else domain
    if sign:
        yield "", sign
        yield "domain", domain


NAMING = Naming(
    parts,
    patterns=(("host", re.compile(r"repl://([^\s/:\"'()<>]+)")),),
    common=frozenset(
        {"admin", "idm_admin", "anonymous", "system_info", "domain_info", "domain_local", "system_config"}
        | {"idm_admins", "system_admins", "idm_all_persons", "idm_all_accounts", "idm_people_admins", "localhost"}
    ),
    ordinary=frozenset(
        # Words of the commands: with a name for one of them nobody could run what a report shows.
        {"on", "kanidmd", "database", "backup", "refresh", "replication", "consumer", "rm", "timedatectl", "status"}
        | {"set-ntp", "true", "false", "server", "toml", "ssh", "docker", "exec", "repl", "automatic_refresh"}
    ),
)
