"""Servers whose start begins a filling again: what only the old changelog of the filled server has has to be saved before.

a fills c, which has 5 changes alone, and is killed in it
    c has no data, and still its old changelog with the 5; as soon as a starts it fills c again, and that changelog goes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.diagnosis.left_in_logs import claimed_alone, left_in_log
from workbench.model import Finding, step
from workbench.rules.initialisations import ABORTED
from workbench.systems.ds389.detectors.initialisations import being_filled, unfilled
from workbench.systems.ds389.session_log.addresses import addresses_of
from workbench.systems.ds389.session_log.fillings_begun import address_of, fillers
from workbench.systems.ds389.session_log.initialisations import broken_off
from workbench.systems.ds389.session_log.lines import line_shown
from workbench.systems.ds389.session_log.log_ends import logs_end

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def filled_at_start(context: DetectorContext) -> dict[tuple[str, str | None], list[tuple[str, str]]]:
    """Supplier and suffix -> the servers with changes of their own alone that it fills as it starts, each with the code."""
    return context.once(_filled_at_start)


def _filled_at_start(context: DetectorContext) -> dict[tuple[str, str | None], list[tuple[str, str]]]:
    left, coming = unfilled(context), being_filled(context)
    codes = dict.fromkeys(coming, "INITIALISATION_RUNNING")
    codes |= {key: "INITIALISATION_ABORTED" for key, one in left.items() if one.outcome == ABORTED}
    codes |= {(one.server, one.suffix): "INITIALISATION_ABORTED" for one in broken_off(context.case, context.topology)}
    codes = {
        (server, suffix): code
        for (server, suffix), code in codes.items()
        if claimed_alone(context, server, suffix) or left_in_log(context.verdicts, server, suffix)
    }
    found: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
    for (server, suffix), code in sorted(codes.items(), key=str):
        by = coming[server, suffix].by if (server, suffix) in coming else ()
        suppliers = {*fillers(context.once(addresses_of), server, suffix), *(link.supplier for link, _ in by)}
        suppliers |= {left[server, suffix].supplier} if (server, suffix) in left else set()
        suppliers = suppliers or _silent_since(context, server, suffix)
        for supplier in sorted(suppliers):
            found.setdefault((supplier, suffix), []).append((server, code))
    return found


def _silent_since(context: DetectorContext, server: str, suffix: str | None) -> set[str]:
    """The servers that are down and whose errors logs end before this one went offline for data that broke off.

    A server that is killed loses the last lines of its log: each of these may have sent the data.
    """
    shown = context.topology
    lines = [one.lines for one in broken_off(context.case, shown) if (one.server, one.suffix) == (server, suffix)]
    offline = next((row["at"] for some in lines for row, _ in some if row["at"]), None)
    ends = logs_end(context, "errors_log")
    return {name for name in shown.down if offline and (name not in ends or ends[name] < offline)}


def fills_when_started(context: DetectorContext) -> Iterator[Finding]:
    """Agreements that may fill their consumer again whenever they are started anew, as their supplier's last start shows."""
    places = context.once(addresses_of)
    names = Counter((link.supplier, link.name) for link in context.topology.links)
    for link in context.topology.links:
        if (told := places.fillings.lasting.get((link.supplier, link.name))) is None:
            continue
        row, place = told
        at_line = address_of(row)
        if at_line and at_line != link.address and not (link.consumer and places.is_of(link.consumer, at_line)):
            continue  # it leads elsewhere now
        alike = names[link.supplier, link.name] > 1  # lines name no suffix
        called = f"{link.name}, or one of that name of another suffix," if alike else link.name
        supplier, consumer = link.supplier, link.consumer or link.address or "its consumer"
        at = f" at {place.at:%Y-%m-%d %H:%M:%S} UTC" if place.at else ""
        yield Finding(
            "FILLS_WHEN_STARTED",
            "warning",
            f"{supplier} may fill {consumer} with all its data again each time that the agreement {called} is started anew: "
            f"it had been stopped while it filled {consumer}, and its last start began that again{at}; it keeps such a request "
            "until it is restarted",
            server=supplier,
            suffix=link.suffix,
            link=link.name,
            evidence=(line_shown(row, place),),
            fix=(
                step(
                    f"restart {supplier} (`dsctl INSTANCE restart`) when no filling runs, and see in its errors log that no "
                    "total update begins",
                    "a filling that has ended takes the request out of the agreement's entry, so the next start reads none",
                    f"until then do not switch {link.name} off or on, and clean no replica ID: each of these starts it anew, and "
                    f"with it goes what only {consumer} has",
                ),
            ),
        )
