"""The repairs of Comdb2: most are SQL for the database that holds the registry, some are lines of a configuration file.

needs     what is to be mended, and what the repairs share
registry  rows of the registry put right, and its limits
nodes     nodes started again, sent to another source, built anew from a copy

What hung or failed when it was tried is among the ways, refused, so that nobody tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.repair.plan_types import Repairs
from workbench.systems.comdb2 import sql
from workbench.systems.comdb2.repairs.needs import (
    CYCLE,
    GAP,
    HELD,
    INACTIVE,
    MISSED,
    ORPHAN,
    PARTED,
    REBUILT,
    REVERSE,
    STUCK,
    also,
    given_up,
    late,
    settled,
    stays,
    weighed,
)
from workbench.systems.comdb2.repairs.nodes import (
    AskTopology,
    Donor,
    ForceRegistration,
    Rebuild,
    Restart,
    StartReplication,
)
from workbench.systems.comdb2.repairs.registry import (
    Disconnect,
    FanoutOverride,
    RaiseLimit,
    ResetNode,
    ReverseRow,
    SetActive,
)

Command = tuple[str, ...]

_PREAMBLE = """\
# The database that holds the registry, and how SQL is run there: name it, as in `REGISTRY=physmeta sh repair.sh`.
registry() { cdb2sql --set "timezone UTC" --tabs "${REGISTRY:?the database that holds the comdb2_physrep tables}" default "$1"; }
# What one node is told, the others of its cluster do not know: it goes to each of them.
each_registry() {
    nodes=$(registry "select host from comdb2_cluster") || return 1
    for node in $nodes; do at "$REGISTRY" "$node" "$1" || return 1; done
}
# How SQL is run on one node: database, host, statement.
at() { cdb2sql --set "timezone UTC" --tabs --host "$2" "$1" "$3"; }
"""


def _checks(servers: Sequence[Mapping[str, Any]]) -> Iterator[Command]:
    """The rows of the registry; then of each node the ends of its log, as it tells itself."""
    yield "registry", sql.NODES
    yield "registry", sql.PULLS
    for name in sorted({one["server"] for one in servers}):
        if sql.is_plain(name):
            yield "at", *sql.split(name), sql.FIRST
            yield "at", *sql.split(name), sql.LAST


REPAIRS = Repairs(
    (
        ResetNode(),
        Disconnect(),
        SetActive(),
        ForceRegistration(),
        Restart(),
        ReverseRow(),
        FanoutOverride(),
        Donor(),
        Rebuild(),
        StartReplication(),
        RaiseLimit(),
        AskTopology(),
    ),
    _checks,
    ending="txt",
    by_hand="SQL runs in the database that holds the registry, or on the node itself, by cdb2sql; `REGISTRY` names the database. "
    "Lines of a configuration file are written where the node runs, by whoever may.",
    checked="`sh check.sh` shows the rows of the registry and the ends of each node's log. Collect again, and `workbench "
    "diagnose` shows how they stand; when all is well no node is gone, waits or lacks a file.",
    stuck=STUCK,
    late=late,
    mends={"rebuild": (GAP, REBUILT, INACTIVE, PARTED, MISSED)},
    cured=(GAP, REBUILT, CYCLE, ORPHAN, INACTIVE, REVERSE, HELD),
    also=also,
    preamble=_PREAMBLE,
    weighed=weighed,
    settled=settled,
    given_up=given_up,
    stays=stays,
)
"""In the order in which they are considered."""
