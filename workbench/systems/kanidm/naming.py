"""What names look like here: of entries, so that a report can do without them."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.model import Naming


def parts(text: str) -> Iterator[tuple[str, str]]:
    """`name@domain` cut into the two; else one name."""
    name, sign, domain = text.rpartition("@")
    if name and domain:
        yield "entry", name
        yield "", sign
        yield "domain", domain
    else:
        yield "entry", text


NAMING = Naming(
    parts,
    common=frozenset(
        {"admin", "idm_admin", "anonymous", "system_admins", "domain_admins", "idm_admins", "idm_all_persons"}
        | {"idm_all_accounts", "idm_people_admins", "idm_group_admins", "idm_unix_admins", "idm_high_privilege"}
        | {"system_info", "system_config", "domain_local", "localhost"}
    ),
    ordinary=frozenset(
        {"idm", "kanidm", "kanidmd", "database", "backup", "restore", "verify", "refresh", "replication", "repl"}
        # Words of the file with the links: with a name for one of them nobody could do what a report says.
        | {
            "pull",
            "mutual",
            "allow",
            "automatic_refresh",
            "origin",
            "server",
            "toml",
            "partner",
            "consumer",
            "supplier",
        }
    ),
)
