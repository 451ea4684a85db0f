"""Trees as a diagnosis shows them, made by hand: what a node is doing, how far it is, and from whom it pulls."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from workbench.model import Finding
from workbench.repair.plan_types import View
from workbench.replication.tier.rules.limits import Rules
from workbench.replication.tier.rules.repair_model import TierModel
from workbench.replication.tier.rules.tiers import Node, Pull, Registry
from workbench.replication.tier.rules.tree_model import tier_model
from workbench.systems.comdb2.lsn import halves, order_key, origin_of
from workbench.systems.comdb2.rules import V2026

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATES = {"pending": "Pending", "gapped": "Pending", "no_source": "Pending"}

Told = tuple[str, str | None, int, tuple[int, int]]
"""What a node is doing, from whom it pulls, its first file, and the end of its log."""


def sample_model(rules: Rules = V2026, fanout: int = 2, first_file: bool = False, **nodes: Told) -> TierModel:
    """Hosts by name; `s1` and `s2` are of the source S, all others of the database R."""
    name = {host: f"{'S' if host in ('s1', 's2') else 'R'}@{host}" for host in nodes}
    rows, pulls, shown = [], [], []
    for host, (condition, above, first, last) in nodes.items():
        database, _, _ = name[host].partition("@")
        state = STATES.get(condition, "Active")
        rows.append(
            Node(database, host, last[0], last[1], first, 900 if condition in ("ghost", "frozen") else 5, state)
        )
        if above is not None:
            pulls.append(Pull(database, host, name[above].partition("@")[0], above))
        silent = condition in ("ghost", "frozen", "hung")
        told: dict[str, Any] = {"node": name[host], "condition": condition, "firstfile": str(first)}
        told |= {"node_last": None if silent else list(last), "node_first": None if silent else [first, 28]}
        shown.append(told)
    registry = Registry(tuple(rows), tuple(pulls), keeps_first_file=first_file)
    trees = [{"source": "S", "nodes": shown}]
    rules = Rules(**{**vars(rules), "fanout": fanout})
    return tier_model(trees, registry, rules, order_key, origin_of, lambda key: halves(key)[0])


def sample_view(model: TierModel, *findings: Finding) -> View:
    """What a repair may look at; these look at the model and at findings alone."""
    nothing: Any = SimpleNamespace(verdicts=SimpleNamespace(tiers=None), once=lambda compute: {})
    return View(nothing, findings, None, model, NOW)
