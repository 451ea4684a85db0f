"""The verdicts on one change that only earlier files show."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.case.case import Case
from workbench.replication.entry.diagnosis.domains_told import by_domain
from workbench.replication.entry.diagnosis.earlier_states import LACKS
from workbench.replication.entry.diagnosis.state_comparison import gone_of, states_of
from workbench.rules.verdicts import MISSING, NOT_COVERED, PENDING, SAYS, Verdict
from workbench.topology.topology import Topology


def with_gone(case: Case, shown: Topology, position: str, told: Sequence[Verdict]) -> list[Verdict]:
    """These verdicts, and those on entries of which only earlier files show the change: who missed it, and who never saw it."""
    found = {one.server: one for one in told}
    claiming = [one for one in shown.replicas if one.claims]
    for suffix in dict.fromkeys(one.suffix for one in claiming):
        for group in by_domain([one for one in claiming if one.suffix == suffix]):
            servers = [(one, shows) for one in group if (shows := states_of(case, shown, one))]
            blind = [one for one in group if states_of(case, shown, one) is None]
            for gone in gone_of(case, shown, servers, blind):
                if shown.system.typed(gone.change["position"]) == position:
                    for one, _ in servers:
                        missed = one.server in gone.missed_by
                        verdict = (MISSING, LACKS, SAYS[LACKS]) if missed else (PENDING, "not_covered", NOT_COVERED)
                        if missed or one.server not in found:
                            found[one.server] = Verdict(one.server, one.suffix, *verdict)
    return list(found.values())
