"""Two servers held against each other by what their entries are now, whatever any changelog says.

The entries have to be collected with their state. What differs may be on its way: which changes made the values is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.diagnosis.incident import Incident
from workbench.engine.entries import PRESENT, SUMMED_HERE, Differing, Progress, differing
from workbench.engine.selective_read import rows_where
from workbench.model import Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE = "entry_states"
_READ = ["entry", "attribute", "value", "state", "position"]


def with_entries(incident: Incident) -> dict[str, str]:
    """Server -> the latest snapshot in which its entries were collected with their state."""
    found: dict[str, str] = {}
    for one in incident.then.inputs:  # in the order of time
        if incident.then.parts(_TABLE, one):
            found[one.server] = one.snapshot
    return found


def states_of(incident: Incident, server: str) -> list[dict[str, Any]]:
    """The parts that hold the entries of a server; Problem if they were not collected."""
    there = with_entries(incident)
    if server not in there:
        names = ", ".join(sorted(there)) or "no server"
        do = f"there are those of {names}; collect them with `workbench collect --entries`"
        raise Problem(f"the entries of {server} were not collected", incident.then_label, do)
    return [
        part
        for one in incident.then.inputs
        if (one.server, one.snapshot) == (server, there[server])
        for part in incident.then.parts(_TABLE, one)
    ]


def needs_spark(incident: Incident, server: str, other: str) -> bool:
    """True if the two have so many states that Spark should compare them."""
    return sum(part["rows"] for name in (server, other) for part in states_of(incident, name)) > SUMMED_HERE


def entries_that_differ(
    incident: Incident,
    server: str,
    other: str,
    named: str = "",
    limit: int = 200,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Differing:
    """The entries in which the two servers differ, the first so many by name."""
    return differing(states_of(incident, server), states_of(incident, other), named, limit, spark, progress)


def entry_on_both(incident: Incident, server: str, other: str, entry: str) -> list[dict[str, Any]]:
    """The values of one entry on both servers, side by side: those that differ first.

    Keys: attribute, value, same, and of each side (`one`, `other`) the state and the change that made it, with its time;
    None: the side knows nothing of the value.
    """
    sides = [_states(incident, name, entry) for name in (server, other)]
    rows = []
    for key in {**sides[0], **sides[1]}:
        row: dict[str, Any] = {"attribute": key[0], "value": key[1]}
        for end, side in zip(("one", "other"), sides, strict=True):
            state, position = side.get(key, (None, None))
            row |= {f"{end}_state": state, f"{end}_position": position, f"{end}_position_at": incident.when(position)}
        row["same"] = (row["one_state"] == PRESENT) == (row["other_state"] == PRESENT)
        rows.append(row)
    return sorted(rows, key=lambda row: (row["same"], row["attribute"], row["value"]))


def _states(incident: Incident, server: str, entry: str) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    """(attribute, value) -> its state and the change that made it; of several, that by which it is there."""
    rows = rows_where(states_of(incident, server), _READ, pc.field("entry") == entry).to_pylist()
    found: dict[tuple[str, str], tuple[str | None, str | None]] = {}
    for row in sorted(rows, key=lambda row: (row["state"] == PRESENT, row["position"] or "")):
        value = row["value"] if row["value"] is not None else f"(secret, made by {row['position']})"
        found[row["attribute"] or "", value] = row["state"], row["position"]
    return found
