"""Servers whose start begins a filling again: what only the old changelog of the filled server has has to be saved before.

a fills c, which has 5 changes alone, and is killed in it
    c has no data, and still its old changelog with the 5; as soon as a starts it fills c again, and that changelog goes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.diagnosing.left_in_logs import claimed_alone, left_in_log
from workbench.rules.initialisations import ABORTED
from workbench.systems.ds389.detectors.initialisations import being_filled, unfilled
from workbench.systems.ds389.logged.fillings_begun import fillers
from workbench.systems.ds389.logged.initialisations import broken_off

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def filled_at_start(situation: Situation) -> dict[tuple[str, str | None], list[tuple[str, str]]]:
    """Supplier and suffix -> the servers with changes of their own alone that it fills as it starts, each with the code."""
    return situation.once(_filled_at_start)


def _filled_at_start(situation: Situation) -> dict[tuple[str, str | None], list[tuple[str, str]]]:
    left, coming = unfilled(situation), being_filled(situation)
    codes = dict.fromkeys(coming, "INITIALISATION_RUNNING")
    codes |= {key: "INITIALISATION_ABORTED" for key, one in left.items() if one.outcome == ABORTED}
    codes |= {
        (one.server, one.suffix): "INITIALISATION_ABORTED" for one in broken_off(situation.case, situation.topology)
    }
    codes = {
        (server, suffix): code
        for (server, suffix), code in codes.items()
        if claimed_alone(situation, server, suffix) or left_in_log(situation.verdicts, server, suffix)
    }
    found: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
    for (server, suffix), code in sorted(codes.items(), key=str):
        by = coming[server, suffix][0] if (server, suffix) in coming else []
        suppliers = {*fillers(situation.case, situation.topology, server, suffix), *(link.supplier for link, _ in by)}
        suppliers |= {left[server, suffix].supplier} if (server, suffix) in left else set()
        for supplier in sorted(suppliers):
            found.setdefault((supplier, suffix), []).append((server, code))
    return found
