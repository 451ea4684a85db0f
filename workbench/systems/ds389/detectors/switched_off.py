"""Servers on which replication is switched off as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation

_PLUGIN = "cn=Multisupplier Replication Plugin,cn=plugins,cn=config"


def replication_off(situation: Situation) -> Iterator[Finding]:
    """The plug-in that replicates is disabled: the server records nothing, sends nothing, and understands no supplier."""
    for one in situation.inputs:
        if not one.facts.get("replication_off"):
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
