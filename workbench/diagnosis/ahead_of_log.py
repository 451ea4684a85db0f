"""A vector that promises more than the log of its server has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.diagnosis.change_findings import moment_of
from workbench.intake.inputs import stores_of
from workbench.model import Finding, step
from workbench.rules.verdicts import COMMITTED, MOMENTS_APART, REPLACED, TOTAL
from workbench.topology.topology import Replica

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext


def vector_ahead_of_log(context: DetectorContext) -> Iterator[Finding]:
    """A vector claims an own change that no log of the server holds, though the log was written later."""
    if context.topology.system.tiering:
        return  # a physical log goes on while it is read: the end of a dump is no loss
    newest = context.newest()
    for one in context.topology.replicas:
        own = one.vector.get(one.origin or "")
        if one.origin is None or one.log is None or own is None or own.max is None:
            continue
        if not one.log.whole:
            continue  # what could not be read may be the record
        logs = [
            log.facts.get("by_origin", {}).get(one.origin, {})
            for log in context.case.inputs
            if log.server == one.server and log.suffix == one.suffix
        ]
        held = max([*(str(seen["max"]) for seen in logs if seen), *_logged(context, one)], default="")
        made = moment_of(context, own.max)
        resets = context.verdicts.resets.get((one.server, one.suffix), [])
        replaced = any(reset.kind in (TOTAL, REPLACED) and made and made <= reset.ended for reset in resets)
        if (
            own.max <= held
            or replaced
            or own.max <= max(context.verdicts.marks.get((one.server, one.suffix), {}).values(), default="")
        ):
            continue
        shown = max((str(seen["max"]) for seen in one.log.facts.get("by_origin", {}).values()), default="")
        written = _written(context, one)
        if written is not None:
            later = made is not None and written - made >= COMMITTED
        else:
            # Records of others may be younger though they were written before it: clocks differ, and it is written last.
            alive = max(
                filter(None, (newest.get(one.server), moment_of(context, shown) if shown else None)), default=None
            )
            later = bool(made and alive and alive - made >= MOMENTS_APART)
        if later:
            show = context.topology.system.show
            yield Finding(
                "VECTOR_AHEAD_OF_LOG",
                "warning",
                f"the vector of {one.server} claims its own change {show(own.max)}, and its log, written later, does not hold it",
                server=one.server,
                origin=one.origin,
                suffix=one.suffix,
                items=(show(own.max),),
                evidence=({"file": one.log.file, "vector": show(own.max), "log": show(held) if held else None},),
                fix=(
                    step(
                        "find the change in another server's log or entries; who lacks it gets it only by a later change of the "
                        "same entry, or by an initialisation",
                        "this server cannot send it: the record is gone from its log",
                        None,
                    ),
                ),
            )


def _logged(context: DetectorContext, one: Replica) -> Iterator[str]:
    """The last own change that each log of all suffixes of the server names in this one."""
    if context.of_several(one.server):
        mine = (pc.field("origin") == one.origin) & pc.field("position").is_valid()
        for batch in context.rows("applied", ["position"], mine, server=one.server, suffix=one.suffix):
            yield pc.max(batch["position"]).as_py()


def _written(context: DetectorContext, one: Replica) -> datetime | None:
    """When the log was last written out, if the server's messages tell."""
    code = context.topology.proving.log_written
    if not code:
        return None
    here, at = pc.field("code") == code, context.topology.snapshot
    stores, several = stores_of(context.case.inputs, one.server), context.of_several(one.server)
    times = [
        row["at"]
        for batch in context.rows("messages", ["at", "suffix", "numbers"], here, server=one.server, snapshot=at)
        for row in batch.to_pylist()
        if row["at"] and (not several or _names(row, stores) == one.suffix)
    ]
    return max(times, default=None)


def _names(row: Mapping[str, Any], stores: Mapping[str, str]) -> str | None:
    """The suffix that a message names, itself or by its store."""
    known = (stores.get(value.lower()) for _, value in row["numbers"] or ())
    return row["suffix"] or next(filter(None, known), None)
