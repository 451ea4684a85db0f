"""Values that entries of a server lack although its vector covers them: an ordinary change brings them once more.

A link that left an attribute out brought an added entry without it. No mark and no log of the server tells of the value:

    a     telephoneNumber: 3    made by 10
    h     no telephoneNumber, and no trace of one that was removed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.diagnosis.contents import Contents, Difference
from workbench.model import counted
from workbench.repair.plan_types import Need, ProposedRepair, View
from workbench.repair.unlike_entries import ENTRIES_DIFFER, mended
from workbench.rules.contents import LIVE
from workbench.systems.ds389.repairs.data import rewriting, writers
from workbench.systems.ds389.repairs.evidence import MOST, Missed, present_on
from workbench.systems.ds389.repairs.unlike_links import excluded_everywhere, list_conflict
from workbench.systems.ds389.rules.own_attributes import BY_SERVER, MEMBER_OF

if TYPE_CHECKING:
    from workbench.rules.repair_model import Model

REPLICATION_WAS_OFF = "REPLICATION_WAS_OFF"


def also(view: View, model: Model) -> Iterator[Need]:
    """The servers whose entries lack values that others have, as far as writing these once more throws nothing away.

    And those that took changes without recording them, until they are filled: what clients did there is repeated by hand.
    """
    for server in model.servers:
        if (server, view.suffix) in view.context.unrecorded and model.servers[server].source is None:
            yield Need(REPLICATION_WAS_OFF, view.suffix, server)
        elif any(not mended(model, server, one) for one in _lacking(view, server)):
            yield Need(ENTRIES_DIFFER, view.suffix, server)


class WriteLacked:
    """Write once more, on a supplier that has them, the values that entries of a server lack."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For entries that are there on all servers, and that have no value there which the supplier lacks."""
        if need.code != ENTRIES_DIFFER or need.server is None:
            return
        lacking = [one for one in _lacking(view, need.server) if not mended(view.model, need.server, one)]
        for server in writers(view, need):
            found: dict[str, Missed] = {}
            for one in lacking:
                if server in one.others:
                    there = found.setdefault(one.entry, Missed(one.entry, one.target, {"modify"}))
                    there.attributes[one.attribute.lower()] = one.attribute
            if len(found) < len({one.entry for one in lacking}) or (present := present_on(view, server, found)) is None:
                continue
            steps = rewriting(view, server, need.server, found.values(), present)
            if steps is None:
                continue
            risk = f"a value that was taken from {need.server} on purpose, without a trace, comes back"
            yield ProposedRepair(
                "rewrite",
                f"write the values that {counted(len(found), 'entry', 'entries')} of {need.server} lack{'s' * (len(found) == 1)} "
                f"once more on {server}",
                tuple(replace(step, risk=f"{step.risk}; {risk}") for step in steps),
                load=f"{counted(len(found))} on every server",
                refused=list_conflict(
                    view, need.server, names={name for one in found.values() for name in one.attributes}
                ),
            )
            return


def _lacking(view: View, server: str) -> list[Difference]:
    """The attributes of which a server lacks values that others have, and has none that they lack.

    Empty if they are too many, or where the entries of some server were not collected: it may have other values.
    """
    left_out = BY_SERVER | {MEMBER_OF} | excluded_everywhere(view, server)
    found = [
        one
        for contents in view.context.verdicts.contents
        if contents.suffix == view.suffix and {one.server for one in contents.alike.replicas} <= {*contents.exports}
        for one in contents.unexplained()
        if server in one.servers and one.attribute.lower() not in left_out and _only_lacks(contents, one)
    ]
    return found if len({one.entry for one in found}) <= MOST else []


def _only_lacks(contents: Contents, one: Difference) -> bool:
    """True if the others have the same values of the attribute, and the servers fewer of them and no trace of the rest.

    What a change did is not looked at here: it is missing by its position.
    """
    if one.position is not None or one.spelt or not one.others or one.attribute in ("", "dn"):
        return False
    held = contents.held[one.entry]
    values = {server: {*there.present.get(one.attribute, {})} for server, there in held.items()}
    right = values[one.others[0]]
    return (
        all(there.status == LIVE for there in held.values())
        and all(values[server] == right for server in one.others)
        and all(some <= right for some in values.values())
        and not any(one.attribute in {*held[at].removed, *held[at].cleared} for at in one.servers)
    )
