"""The codes of findings that only Comdb2 has."""

from __future__ import annotations

from workbench.model import Code

CODES = {
    "REPLICANT_HUNG": Code("a replicant is gone, frozen, or applies nothing", ("warning", "error")),
    "REPLICANT_INACTIVE": Code(
        "a replicant is not replicating: stopped, pending, or without a source", ("info", "warning", "error")
    ),
    "FANOUT_EXCEEDED": Code("a node serves more replicants than the fanout", ("info", "warning")),
    "LOG_HELD": Code("a node pins the deletion of log files", ("info", "warning", "error")),
    "LOG_GAP": Code(
        "a log lacks records, or what a node needs next is in no log that it could reach", ("info", "warning", "error")
    ),
    "LOG_DIVERGED": Code("two nodes have other records at the same place", ("info", "warning", "error")),
    "TOPOLOGY_CYCLE": Code("nodes pull from each other in a circle", ("error",)),
    "TOPOLOGY_ORPHAN": Code(
        "a node pulls from none, or from one that does not hang on the source", ("warning", "error")
    ),
    "TIER_TOO_DEEP": Code("a node is more tiers away from the source than it needs to be", ("info", "warning")),
    "PENDING_LIMIT": Code("so many nodes wait for a source that the registry refuses more", ("error",)),
    "REVERSE_LINK_MISSING": Code(
        "a node waits for a connection that no source makes, or a source connects to a node that does not wait",
        ("info", "warning", "error"),
    ),
    "REPORTS_STAND_STILL": Code(
        "nodes go on, and their reports to the registry do not: their rows tell of an older state", ("warning",)
    ),
    "UNSAFE_SETTING": Code("a setting makes loss, or a false tree, likely", ("info", "warning")),
}
