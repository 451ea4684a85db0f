"""Servers on which replication does not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, step
from workbench.systems.ds389.session_log.replicas_off import ReplicaOff, replicas_off

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_PLUGIN = "cn=Multisupplier Replication Plugin,cn=plugins,cn=config"


def replication_off(context: DetectorContext) -> Iterator[Finding]:
    """The plug-in for replication is disabled, or a replica could not be set up at the last start."""
    for one in replicas_off(context.case, context.topology, context.statuses()):
        yield Finding(
            "REPLICATION_OFF",
            "error" if one.in_force else "warning",
            _by_plugin(one) if one.by_plugin else _not_set_up(one),
            server=one.server,
            suffix=one.suffix,
            evidence=one.evidence,
            root=one.clause if one.in_force else "",
            fix=(
                _switch_on(one)
                if one.by_plugin
                else step(
                    "do what REPLICA_ID_CHANGED says", "the server refuses to make changes with another replica ID"
                )
                if one.ids
                else _set_up(one.server),
            ),
        )
        if one.ids:
            yield _id_changed(one, *one.ids)


def _id_changed(one: ReplicaOff, now: str, before: str) -> Finding:
    """The configuration has another replica ID than the server made changes with: it makes none with the new one."""
    clause = f"the replica ID of {one.server} was changed from {before} to {now} in its configuration"
    return Finding(
        "REPLICA_ID_CHANGED",
        "error",
        f"{clause}, and the server refuses to replicate with it (its errors log says so): it makes no changes as {now}",
        server=one.server,
        origin=before,
        suffix=one.suffix,
        evidence=one.evidence,
        root=clause,
        fix=(
            step(
                f"stop {one.server}, set nsDS5ReplicaId of its replica back to {before} in dse.ldif, and start it; then start "
                "the agreements again that have stopped (LINK_FAILING)",
                f"its data and its changelog are those of replica ID {before}, and nothing of them is lost",
                f"what clients wrote on {one.server} meanwhile is in no changelog and never sent: compare its entries with those "
                "of the others. For another replica ID, switch replication off there and on again, and initialise it",
            ),
        ),
    )


def _by_plugin(one: ReplicaOff) -> str:
    if not one.in_force:
        return (
            f"the plug-in for replication is disabled on {one.server} (nsslapd-pluginEnabled: off) and still runs. After the "
            "next start it takes no changes of its suppliers, sends none, and records none that clients make there"
        )
    return (
        f"{one.clause}: its plug-in is disabled (nsslapd-pluginEnabled: off). It takes no changes of its suppliers, sends none, "
        "and records none that clients make there"
    )


def _not_set_up(one: ReplicaOff) -> str:
    at = f" at {one.at:%Y-%m-%d %H:%M:%S} UTC" if one.at else ""
    return (
        f"{one.server} could not set up its replica of {one.suffix} at its last start (its errors log says so{at}): it takes no "
        "changes of its suppliers and sends none"
    )


def _switch_on(one: ReplicaOff) -> dict[str, str | None]:
    server = one.server
    if not one.in_force:
        return step(
            f"switch it on: on {server}, `dsconf INSTANCE plugin set --enabled on 'Multisupplier Replication Plugin'`",
            "a plug-in is loaded, or not, when the server starts",
            "find out first why it was disabled",
        )
    return step(
        f"switch it on and restart {server}: on {server}, `dsconf INSTANCE plugin set --enabled on 'Multisupplier Replication "
        "Plugin'`, then `dsctl INSTANCE restart`",
        "a plug-in is loaded when the server starts; what waits is delivered then",
        "what clients wrote there meanwhile is in no changelog and never sent: compare its entries with those of the others "
        "(`workbench collect --entries`) before any is initialised. Where writes hang there, as was seen, so may the tool: then "
        f"set nsslapd-pluginEnabled of {_PLUGIN} in dse.ldif while it is down",
    )


def _set_up(server: str) -> dict[str, str | None]:
    return step(
        f"see in the errors log of {server} what failed before that line. Where a file of its database is gone, stop it, build "
        "its indexes anew (`dsctl INSTANCE db2index BACKEND`) and start it; where that does not help, restore its database",
        "without the index of nsuniqueid 2.3.1 was seen not to find its own RUV; no supplier can initialise it before that",
        f"what clients wrote on {server} meanwhile is in no changelog and never sent: compare its entries with those of the "
        "others",
    )
