"""Why changes were missed: each candidate is played on what the server holds, and the one that loses just these is the cause."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.rules.verdicts import REPLACED, Candidate, Loss
from workbench.systems.ds389.csn import seconds
from workbench.systems.ds389.rules.applying import after_result, judge
from workbench.systems.ds389.rules.restoring import after_restore

_REFUSED = 32
"""Stands for any result after which the supplier goes on, where the log tells that it did and not with which."""


def causes(loss: Loss) -> list[Candidate]:
    """The candidates that can be held against the evidence, each with the changes that the server would lack by it."""
    return [
        *_skipped(loss),
        *_unwritten(loss),
        *_restored(loss),
        *_replaced(loss),
        *_passed_over(loss),
        *_cleaned(loss),
        *_left_out(loss),
    ]


def _skipped(loss: Loss) -> Iterator[Candidate]:
    """The consumer refuses, the supplier goes on, and the next success of the replica ID moves the vector over it."""
    refused = {csn: loss.codes.get(csn, _REFUSED) for csn in loss.refused}
    lost = judge(refused, {loss.origin: loss.seen}, refused, {}).missed
    skipped = frozenset(csn for csn in lost if after_result(refused[csn]) == "skipped_for_good")
    if skipped:
        yield Candidate("APPLY_SKIPPED", skipped, "it refused them with a result after which the supplier goes on")


def _unwritten(loss: Loss) -> Iterator[Candidate]:
    """The database could not be written, as on a full disk: the vector in memory goes on over what failed."""
    if loss.unwritten:
        why = "it answered them with a failure, and its log says that its database could not be written"
        yield Candidate("DATABASE_FAILING", loss.unwritten, why)


def _restored(loss: Loss) -> Iterator[Candidate]:
    """Back to an older state; some own changes are sent back to it, then it writes, and the rest is covered."""
    if not loss.own:
        return
    first = loss.missing[0]
    owed = {*loss.missing, *(csn for csn in loss.held if csn not in loss.only_here)}
    sent_back = [(False, csn) for csn in loss.held if csn not in loss.only_here]
    wrote = [(True, csn) for csn in loss.held if csn in loss.only_here or csn > loss.missing[-1]]
    if wrote:
        outcome = after_restore(loss.below or "", owed - {csn for _, csn in wrote}, [*sent_back, *wrote])
        if outcome.lost:
            why = f"it wrote {wrote[0][1]} before its own changes from {first} on were back"
            yield Candidate("OWN_CHANGES_HIDDEN", frozenset(outcome.lost), why)


def _replaced(loss: Loss) -> Iterator[Candidate]:
    """Data from a file or a backup brought a vector that claims more than they hold."""
    # Without a changelog nothing marks where the new data begin: they then claim what the vector claims.
    claimed = loss.mark if loss.logs else loss.seen
    for reset in loss.resets:
        if reset.kind != REPLACED or claimed is None:
            continue
        jumped = frozenset(
            csn
            for csn in loss.missing
            if csn <= claimed and seconds(csn) <= reset.ended.timestamp() and not (loss.before and csn <= loss.before)
        )
        if jumped:
            when = f"{reset.ended:%Y-%m-%d %H:%M:%S}"
            # A log that began before the new data came was not recreated with them.
            older = loss.log_made is not None and loss.log_made < reset.began
            yield Candidate(
                "CHANGELOG_RECREATED" if loss.logs and not older else "",
                jumped,
                f"the data put in place at {when} brought a vector that claims {claimed}",
            )


def _passed_over(loss: Loss) -> Iterator[Candidate]:
    """A supplier without the anchor was told to go on all the same: it began at its first record behind the hole."""
    for at, began in loss.passed_over:
        jumped = frozenset(csn for csn in loss.missing if csn < began and seconds(csn) <= at.timestamp())
        if jumped:
            yield Candidate("ANCHOR_PURGED", jumped, f"a session left out everything before {began}")


def _cleaned(loss: Loss) -> Iterator[Candidate]:
    """What is left of a cleaned replica ID is never sent again, and it came back to the vectors later."""
    if loss.cleaned is not None:
        gone = frozenset(csn for csn in loss.missing if seconds(csn) <= loss.cleaned.timestamp())
        if gone:
            yield Candidate(
                "CLEAN_FORCED_LOSS", gone, f"the replica ID was cleaned at {loss.cleaned:%Y-%m-%d %H:%M:%S}"
            )


def _left_out(loss: Loss) -> Iterator[Candidate]:
    """Agreements to it exclude different attributes: what did nothing else came first over the one that excludes them."""
    if loss.left_out:
        why = "an agreement on a way to it leaves out all that they did, and another one would have sent it"
        yield Candidate("LISTS_DIFFER", loss.left_out, why)
