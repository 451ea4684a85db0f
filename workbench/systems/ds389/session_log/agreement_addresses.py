"""The address of an agreement: how it is corrected, and what 389 DS does with a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.model import step


def address_words(old: str, new: str) -> list[str]:
    """The options that lead an agreement to another address: only the part that is not right already."""
    (old_host, _, old_port), (host, _, port) = old.rpartition(":"), new.rpartition(":")
    return [*(("--host", host) if host != old_host else ()), *(("--port", port) if port != old_port else ())]


def host_damaged(supplier: str) -> str:
    """What a new host of an agreement needs."""
    return f"restart {supplier}: 2.3.1 was seen to use a damaged name after its host was changed"


def not_prepared(supplier: str) -> Mapping[str, Any]:
    """What ends that a supplier cannot prepare a connection: nothing left it, so its consumer has no part in that."""
    return step(
        f"restart {supplier}: `dsctl INSTANCE restart` there",
        "after the host of an agreement was changed, also to the same name, 2.3.1 was seen to use a damaged one until then: its "
        "errors log says `Could not initialize LDAP connection`",
        f"if the agreement logs in by SASL, see first that {supplier} can prepare that: a valid ticket, a readable keytab",
    )
