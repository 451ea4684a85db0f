"""Servers on which replication does not run: its plug-in is disabled, or a replica could not be set up at the last start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.systems.ds389.detectors.shown import Row, line_shown, only_suffix
from workbench.systems.ds389.logged.lines import WITH_TEXT, Place, session_logs

if TYPE_CHECKING:
    from workbench.collected.inputs import Input
    from workbench.diagnosing.situation import Situation

_PLUGIN = "cn=Multisupplier Replication Plugin,cn=plugins,cn=config"


def replication_off(situation: Situation) -> Iterator[Finding]:
    """The plug-in that replicates is disabled: the server records nothing, sends nothing, and understands no supplier."""
    told: dict[str, list[Input]] = {}
    for each in situation.inputs:
        if each.facts.get("replication"):
            told.setdefault(each.server, []).append(each)
    for _, files in sorted(told.items()):
        one = files[0]
        if any("on" in each.facts["replication"] for each in files):
            continue
        yield Finding(
            "REPLICATION_OFF",
            "error",
            f"replication is switched off on {one.server}: its plug-in is disabled (nsslapd-pluginEnabled: off). It takes no "
            "changes of its suppliers, sends none, and records none that clients make there",
            server=one.server,
            evidence=({"file": one.file},),
            root=f"replication is switched off on {one.server}",
            fix=(
                step(
                    f"switch it on and restart {one.server}: on {one.server}, `dsconf INSTANCE plugin set --enabled on "
                    f"'Multisupplier Replication Plugin'`, then `dsctl INSTANCE restart`",
                    "a plug-in is loaded when the server starts; what waits is delivered then",
                    "what clients wrote there meanwhile is in no changelog and never sent: compare its entries with those of the "
                    "others (`workbench collect --entries`) before any is initialised. Where writes hang there, as was seen, "
                    f"so may the tool: then set nsslapd-pluginEnabled of {_PLUGIN} in dse.ldif while it is down",
                ),
            ),
        )


def replica_not_set_up(situation: Situation) -> Iterator[Finding]:
    """The last start of a server could not set a replica up, as when a file of its database is gone."""
    for log in session_logs(situation.case):
        failed: dict[str | None, list[tuple[Row, Place]]] = {}
        for row, place in log.lines(("starting", "replica_not_set_up"), [*WITH_TEXT, "suffix"]):
            if row["code"] == "starting":
                failed.clear()
            else:
                failed.setdefault(row["suffix"] or only_suffix(situation, log.server), []).append((row, place))
        for suffix, lines in failed.items():
            if situation.replica(log.server, suffix) is None:
                continue
            at = next((f" at {place.at:%Y-%m-%d %H:%M:%S} UTC" for _, place in lines if place.at), "")
            yield Finding(
                "REPLICATION_OFF",
                "error",
                f"{log.server} could not set up its replica of {suffix} at its last start (its errors log says so{at}): it takes "
                "no changes of its suppliers and sends none; what seems to be on the way to it does not arrive",
                server=log.server,
                suffix=suffix,
                evidence=first_few(line_shown(row, place) for row, place in lines),
                root=f"the replica of {log.server} was not set up at its start",
                fix=(
                    step(
                        f"see in the errors log of {log.server} what failed before that line; initialise {log.server} from a "
                        "server that has all data, or restore its database, then restart it",
                        "so it was seen where a file of the database was gone: the server could not find its own RUV",
                        f"an initialisation throws away what only {log.server} holds",
                    ),
                ),
            )
