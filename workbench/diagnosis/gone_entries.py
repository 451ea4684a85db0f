"""Missing changes of entries that were deleted since: the server lacks the changes, and none of their effect.

s1 added ann (unique ID 1); s3 missed that. Later s1 deleted ann, and added her again (unique ID 2)
    s3   refuses the deletion (32), for it has no entry of unique ID 1, and takes the second addition
         it lacks the first addition and the deletion for good, and its entries are those of the others
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import step
from workbench.rules.verdicts import ENTRIES_LACK

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_Row = TypeVar("_Row", bound=Mapping[str, Any])
ENTRY_GONE = "entry_gone"
"""The key of such a row."""
_COLUMNS = ("position", "operation", "entry")


def missing_in_effect(context: DetectorContext) -> list[dict[str, Any]]:
    """The missing changes but for those of entries that were deleted since."""
    return without_gone(context.verdicts.missing)


def without_gone(rows: Iterable[_Row]) -> list[_Row]:
    """Those of some missing changes of which an effect may be lacking."""
    return [row for row in rows if not row.get(ENTRY_GONE)]


def gone_in_words(count: int, of: int) -> str:
    """What is said of so many of the missing changes of a finding; empty if there is none.

    >>> gone_in_words(1, 3)
    '; 1 of them is of an entry that was deleted since, by its unique ID: none of its effect is lacking'
    """
    if not count:
        return ""
    which = f"{count:,} of them" if count < of else "it" if of == 1 else "they"
    if count == 1:
        return f"; {which} is of an entry that was deleted since, by its unique ID: none of its effect is lacking"
    return f"; {which} are of entries that were deleted since, by their unique IDs: none of their effect is lacking"


def nothing_again(server: str) -> Mapping[str, Any]:
    """The step where nothing but such changes is missing."""
    return step(
        f"make none of these changes again on {server} or elsewhere; `workbench collect --entries` tells whether the entries "
        "of the servers are the same",
        f"{server} missed the additions of these entries, too, and the changelogs show that each was deleted later; entries of "
        "the same names that were added since have other unique IDs",
    )


def note_gone_entries(context: DetectorContext) -> None:
    """Write into the rows of such changes that their entry is gone: what was done to it, where its addition is missing as well.

    An entry that any record names behind its deletion may have come back: then nothing is concluded.
    """
    missing = [row for row in context.verdicts.missing if row["operation"] and row["rule"] != ENTRIES_LACK]
    for suffix in {row["suffix"] for row in missing if row["operation"] == "add"}:
        _note(context, suffix, [row for row in missing if row["suffix"] == suffix])


def _note(context: DetectorContext, suffix: str | None, missing: Iterable[dict[str, Any]]) -> None:
    typed = context.topology.system.typed
    rows = {(row["server"], typed(row["position"]) or ""): row for row in missing}
    added = {position for (_, position), row in rows.items() if row["operation"] == "add"}
    entry_of = {position: entry for position, _, entry in _records(context, suffix, "position", added)}
    done: dict[str, dict[str, str]] = {}
    for position, operation, entry in _records(context, suffix, "entry", {*entry_of.values()}):
        done.setdefault(entry, {})[position] = operation
    gone = {entry for entry, of in done.items() if of[max(of)] == "delete"}
    for server, addition in [*rows]:
        for position in done[entry_of[addition]] if entry_of.get(addition) in gone else ():
            if row := rows.get((server, position)):
                row[ENTRY_GONE] = True


def _records(
    context: DetectorContext, suffix: str | None, column: str, wanted: set[str]
) -> Iterable[tuple[str, str, str]]:
    """Position, operation and entry of the records that logs have of some changes, or of some entries."""
    change_of = context.topology.system.change_of
    where = pc.field(column).isin(pa.array(sorted(wanted), pa.string())) & (pc.field("kind") == "change")
    for batch in context.rows("changes", _COLUMNS, where, suffix=suffix) if wanted else ():
        for row in batch.to_pylist():
            if row["position"] and row["entry"]:
                yield change_of(row["position"]), row["operation"], row["entry"]
