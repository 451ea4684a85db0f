"""What comes before a server is filled that cleaned an origin and was not restarted: without a restart it is stuck afterwards.

h cleaned ID 3, a claims 3; h is filled from a    h has the data, and its vector has no element 3: no session with h begins
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.model import Finding, listed, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def restart_before_filling(situation: Situation, findings: Iterable[Finding]) -> list[Finding]:
    """The findings; where one advises to initialise such a server, the restart is the step before that."""
    found = list(findings)
    for (server, suffix), origins in sorted(situation.verdicts.remembers.items(), key=str):
        fills = re.compile(rf"(?<!not )\binitialise {re.escape(server)}(?![\w.-])")
        unsure = any(one.log_ends for one in origins.values())
        first = step(
            f"restart {server} first, and collect again" + (", unless it was restarted since" if unsure else ""),
            f"it cleaned origin {listed(sorted(origins))}, and ignores that until it is restarted: filled before, it gets the "
            "data, and no session with it can begin afterwards",
        )
        for number, one in enumerate(found):
            places = [at for at, fix in enumerate(one.fix) if fills.search(fix["repair"] or "")]
            if places and one.suffix in (None, suffix):
                found[number] = replace(one, fix=(*one.fix[: places[0]], first, *one.fix[places[0] :]))
    return found
