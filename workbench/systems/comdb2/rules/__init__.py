"""The rule sets of Comdb2: the design document, the program of its time, and the one of today.

The document and the program of the same version differ: what the document says of log deletion does not work there, because
the query asks for the state `ACTIVE`, and the rows say `Active`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.replication.tier.rules.limits import SEED, Rules

V2023 = replace(
    SEED,
    name="2023",
    full_at_limit=False,
    least_count=1,
    holding="ACTIVE",
    holds_by_base=True,
    register_s=600,
)
"""The program that the document came with."""

V2026 = replace(
    V2023,
    name="2026",
    most_pending=None,
    fresh_s=600,
    checks_files=True,
    evenest_first=False,
    random_ties=True,
    second_pass=True,
    holding=None,
    warns_of="children",
    keepalive_s=60,
    register_s=3600,
)
"""The program of August 2026: the fanout is soft, and nothing holds back the deletion of logs."""

HOLDING = replace(V2026, name="2026, before June", holding="Active")
"""The same while it still kept log files for those below: on nodes that have the tables themselves."""

VERSIONS: Mapping[str, Rules] = {one.name: one for one in (SEED, V2023, V2026)}
