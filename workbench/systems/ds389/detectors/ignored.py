"""Agreements that are told to go on where their changelog lacks the record to begin at: what lies between is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.diagnosis.detector_context import DetectorContext
from workbench.model import Finding, step
from workbench.systems.ds389.native import agreement_dn
from workbench.systems.ds389.session_log.closed_links import agreement_shown

if TYPE_CHECKING:
    from workbench.topology.topology import Link, Row

SETTING = "nsds5ReplicaIgnoreMissingChange"
DO_NOT_SET = f"do not set {SETTING} before you have listed what that loses"
"""What is said where a session finds no record to begin at."""


def ignoring(context: DetectorContext, supplier: str, suffix: str | None, name: str | None) -> str:
    """`once` or `always`, if an agreement is told to ignore what its supplier lacks; else empty."""
    snapshot = context.topology.snapshot
    mine = [one for one in context.case.inputs if (one.snapshot, one.server) == (snapshot, supplier)]
    told = (one.facts.get("ignores_missing", {}).get(f"{suffix or ''} {name}") for one in mine)
    return str(next(filter(None, told), ""))


def do_not_ignore(context: DetectorContext, supplier: str, suffix: str | None, name: str | None) -> str:
    """What to beware of where a session of an agreement finds no record to begin at."""
    value = ignoring(context, supplier, suffix, name)
    return f"{SETTING} is set to {value} on {name}: see MISSING_CHANGES_IGNORED" if value else DO_NOT_SET


def missing_ignored(context: DetectorContext) -> Iterator[Finding]:
    """Agreements that pass over what the changelog of their supplier lacks, as they are told to."""
    for link in context.topology.links:
        if value := ignoring(context, link.supplier, link.suffix, link.name):
            row = context.statuses().get((link.supplier, link.suffix, link.name), {})
            yield _told(link, value, row)


def _told(link: Link, value: str, row: Row) -> Finding:
    consumer = link.consumer or link.address or "its consumer"
    once = ", one time" if value == "once" else ""
    return Finding(
        "MISSING_CHANGES_IGNORED",
        "warning",
        f"{SETTING} is set to {value} on the agreement {link.name} of {link.supplier}: a session that finds no record to begin "
        f"at may go on with a later one{once}, and {consumer} never gets what lies between",
        server=link.supplier,
        link=link.name,
        suffix=link.suffix,
        evidence=(agreement_shown(row) | {SETTING: value},),
        fix=(
            step(
                f"set it back to never on {link.supplier}, with ldapmodify on {agreement_dn(link.suffix or 'SUFFIX', link.name)}"
                f", at the latest when {consumer} has all changes",
                "the vector of the consumer covers what was passed over: no session ever sends it again, and nothing tells of it",
                f"what {consumer} lacks already this does not bring: compare the entries (`workbench collect --entries`)",
            ),
        ),
    )
