"""Deletions that took another entry of the name than the one that they are of, as 2.3.1 does with entries in conflict.

a added uid=x (1), b added uid=x (2) and deleted it    2 was in conflict by then, and lives; 1 is a tombstone of that deletion
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import ITEMS_SHOWN, Finding, first_few, step

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_MARK, _NAMES = "nsds5replconflict", "namingconflict"
_MOST = 1_000
"""Entries in conflict of one server that are looked at."""


class _Wrong(NamedTuple):
    """The deletion, the entry that it is of and that lives, and the one that is gone in its place."""

    position: str
    target: str
    lives: str
    gone: str


def wrong_entry_deleted(context: DetectorContext) -> Iterator[Finding]:
    """Entries that nobody deleted and that are gone, for another entry of their name was to be deleted."""
    for one in context.topology.replicas:
        if found := _found(context, one.server, one.suffix):
            first, many = found[0], len(found) > 1
            more = f", and so it is with {len(found) - 1:,} more" if many else ""
            yield Finding(
                "WRONG_ENTRY_DELETED",
                "error",
                f"on {one.server} the deletion {first.position} of {first.target} took another entry than the one that it is of: "
                f"that with nsUniqueId {first.lives} is still there in conflict, {first.gone} of the same name is gone{more}",
                server=one.server,
                suffix=one.suffix,
                items=tuple(wrong.position for wrong in found[:ITEMS_SHOWN]),
                evidence=first_few(wrong._asdict() for wrong in found),
                root=f"{len(found):,} deletions took other entries than those that they are of"
                if many
                else f"the deletion of {first.target} took another entry than the one that it is of",
                fix=(
                    step(
                        "make what is gone again on a supplier, as its tombstone in the collected entries shows it, and delete "
                        f"the entry in conflict: `dsconf INSTANCE repl-conflict list {one.suffix or 'SUFFIX'}`",
                        "nobody deleted what is gone, and where the deletion arrived no server has it any more",
                        "ask first whoever made the deletion which of the two was meant",
                    ),
                ),
            )


def _found(context: DetectorContext, server: str, suffix: str | None) -> list[_Wrong]:
    about = {"snapshot": context.topology.snapshot, "suffix": suffix}
    value = pc.utf8_lower(pc.field("value"))
    marked = (pc.utf8_lower(pc.field("attribute")) == _MARK) & (pc.field("state") == "present")
    marked &= pc.starts_with(value, _NAMES)
    living: set[str] = set()
    for batch in context.rows("entry_states", ["entry"], marked, server=server, **about):
        living.update(batch["entry"].drop_null().to_pylist())
        if len(living) > _MOST:
            break
    if not living:
        return []
    of_living = pc.field("entry").isin(pa.array(sorted(living), pa.string())) & (pc.field("operation") == "delete")
    deletions = {
        row["position"]: row
        for batch in context.rows("changes", ["position", "entry", "target"], of_living, **about)
        for row in batch.to_pylist()
    }
    if not deletions:
        return []
    graves = (pc.field("state") == "tombstone") & (value == "nstombstone")
    graves &= pc.field("position").isin(pa.array(sorted(deletions), pa.string()))
    return [
        _Wrong(row["position"], deletion["target"] or "", deletion["entry"], row["entry"])
        for batch in context.rows("entry_states", ["entry", "position"], graves, server=server, **about)
        for row in batch.to_pylist()
        if (deletion := deletions[row["position"]])["entry"] != row["entry"]
    ]
