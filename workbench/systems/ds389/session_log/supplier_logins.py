"""With which logins a consumer takes changes: what its replica names now, and what lets the login of an agreement send them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.model import listed, step
from workbench.systems.ds389.formats.values import suffix_named
from workbench.systems.ds389.session_log.change_fixes import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from workbench.case.case import Case
    from workbench.systems.ds389.rules.link_reasons import Cause
    from workbench.systems.ds389.session_log.link_fixes import Agreement
    from workbench.topology.topology import Link, Topology


def is_allowed(case: Case, shown: Topology, link: Link, login: str, tried: datetime | None) -> bool:
    """True if the replica of the consumer names the login, and was not read before the attempt that it refused."""
    read = max((reading.ended for reading in shown.readings if reading.server == link.consumer), default=None)
    if read and tried and read < tried:
        return False
    return bool(login) and suffix_named(login) in {
        suffix_named(name) for name in _names(case, shown, link, "logins_allowed")
    }


def groups_allowed(case: Case, shown: Topology, link: Link) -> tuple[str, ...]:
    """The groups whose members may send changes to the consumer of a link."""
    return tuple(_names(case, shown, link, "groups_allowed"))


def _names(case: Case, shown: Topology, link: Link, fact: str) -> list[str]:
    files = (
        file.facts.get(fact, {})
        for file in case.inputs
        if (file.server, file.snapshot) == (link.consumer, shown.snapshot)
    )
    return sorted({name for names in files for name in names.get(link.suffix or "", ())})


def allowed_since(cause: Cause, consumer: str) -> Cause:
    """Why a link does not run whose login the consumer refused at the last attempt, and names by now."""
    says = (
        f"at the last attempt the consumer did not allow the supplier's login to send changes (code {cause.code}); by now the "
        f"replica of {consumer} names this login (nsDS5ReplicaBindDN)"
    )
    return replace(cause, says=says, short=f"{cause.short} at its last attempt")


def allow(link: Agreement, again: Mapping[str, str | None]) -> tuple[Mapping[str, str | None], ...]:
    """What lets the login of an agreement send changes; `again` has it try at once."""
    if link.allowed:
        poke = run(link.supplier, "repl-agmt", "poke", "--suffix", link.suffix, link.name)
        return (
            step(
                f"start the agreement again, {poke}",
                "the supplier waits up to five minutes before it tries again by itself",
            ),
        )
    words = ("replication", "set", "--suffix", link.suffix, "--repl-add-bind-dn", link.login or "DN")
    groups = ""
    if link.groups:
        members = f"the members of {listed(link.groups)}"
        groups = f"{link.consumer} also takes changes from {members}: see whether this login was taken out of there"
    return (
        step(
            f"allow the login of the agreement to send changes, {run(link.consumer, *words)}",
            "the consumer takes changes only from the logins that its replica names (nsDS5ReplicaBindDN or a bind group)",
            groups or None,
        ),
        again,
    )


def by_method(link: Agreement, simple: str, again: Mapping[str, str | None]) -> tuple[Mapping[str, str | None], ...]:
    """What lets an agreement in that logs in with SASL. `simple`: the command that has it log in with a password."""
    needs = (
        "a credential of Kerberos on the supplier"
        if "GSSAPI" in link.method.upper()
        else "the password in clear text there"
    )
    return (
        step(
            f"have the agreement log in with a password, as others do, {simple}; or set up {link.consumer} for {link.method}",
            f"{link.method} needs an entry that {link.consumer} maps the login to, and {needs}",
            "find out first who chose that method",
        ),
        again,
    )
