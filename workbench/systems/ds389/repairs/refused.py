"""What is tried again and again and must not be: each with its reason. Where the model can show what is lost, it does."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.diagnosis.repair_sources import takes_writes
from workbench.repair.plan_types import DEAD, HIDDEN, MISSED, Need, ProposedRepair, Step, View
from workbench.systems.ds389.native import agreement_dn, ldapmodify, ldif, modify
from workbench.systems.ds389.repairs.evidence import missed_by_entry
from workbench.systems.ds389.repairs.filling import Initialise, cleaning
from workbench.systems.ds389.repairs.links import links_to


class AddOnConsumer:
    """Add the missing entries directly on the server that lacks them."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing changes other than deletions."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        found = missed_by_entry(view, (lack.lot for lack in need.lacks))
        if found and all(one.operations == {"delete"} for one in found.values()):
            return
        if not takes_writes(view.context, need.server, view.suffix):
            why = f"{need.server} is read-only: it answers every write with a referral, to the Directory Manager, too"
        else:
            why = "the entry gets a unique ID of its own: on all other servers it becomes a naming conflict"
        yield ProposedRepair("add-on-consumer", f"add what is missing on {need.server} itself", refused=why)


class ModifyMissing:
    """Writing values again of an entry that the server does not have."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing additions."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        found = missed_by_entry(view, (lack.lot for lack in need.lacks)) or {}
        if any("add" in one.operations for one in found.values()):
            why = (
                f"{need.server} refuses a change of an entry that it lacks (32), and the supplier skips it: missed, too"
            )
            yield ProposedRepair("modify-missing", "write the values of the missing entries again", refused=why)


class ImportChangelog:
    """Importing an older export of the changelog to get a lost record back."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that waits because no supplier has the record to begin with."""
        stuck = {one.link for one in view.about("ANCHOR_PURGED", "ANCHOR_MISSING")}
        if need.lacks and not need.hidden and any(link.name in stuck for link in links_to(view, need.server)):
            why = (
                "the server drops removals of whole attributes, loses what was written between export and import, "
                "and crashed within a minute each time that it was tried"
            )
            yield ProposedRepair("import-changelog", "import an older export of the changelog", refused=why)


class IgnoreMissing:
    """Telling a supplier to go on behind the record that it lacks."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a server that waits because the supplier lacks the record to begin with."""
        stuck = {(one.server, one.link) for one in view.about("ANCHOR_PURGED", "ANCHOR_MISSING")}
        for link in links_to(view, need.server):
            if not need.lacks or need.hidden or (link.supplier, link.name) not in stuck or link.consumer is None:
                continue
            dn = agreement_dn(view.suffix or "", link.name)
            records = [modify(dn, ("replace", "nsds5ReplicaIgnoreMissingChange", ["once"]))]
            step = Step(
                key=f"ignore-missing-{link.supplier}-to-{link.consumer}",
                repair="ignore-missing",
                server=link.supplier,
                on=link.supplier,
                suffix=view.suffix,
                says=f"{link.supplier} goes on behind what it lacks, and {link.consumer} never gets that",
                stands_on=f"{link.supplier} stops at a record that it lacks",
                expects="a session runs",
                risk="whatever lies between is lost without a trace",
                cannot_undo="the vector has passed what was left out",
                commands=(ldapmodify(link.supplier),),
                sends=ldif(records),
                effects=({"do": "skip", "supplier": link.supplier, "consumer": link.consumer},),
            )
            yield ProposedRepair(
                "ignore-missing",
                f"have {link.supplier} ignore what it lacks (nsds5ReplicaIgnoreMissingChange)",
                (step,),
                refused="it is not to be done: what lies between is lost without a trace",
            )
            return


class InitialiseBackwards:
    """Initialising a good server from the one that lacks changes."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For missing changes: the direction that is mistaken most easily."""
        if need.code not in (MISSED, HIDDEN) or need.server is None:
            return
        for link in view.context.topology.links:
            if (link.supplier, link.suffix) == (need.server, view.suffix) and link.consumer in view.model.servers:
                draft = Initialise().backwards(view, link)
                yield draft
                return


class CleanByForce:
    """Cleaning a replica ID without waiting for servers that lack its changes."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For a dead origin."""
        if need.code == DEAD and need.origin is not None:
            yield cleaning(view, need.origin, force=True)
