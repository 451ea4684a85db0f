"""Two entries that a server shows under one name: no data can hold that, so its cache of names answers wrongly.

Seen on 3.1.2 after it was filled while it ran, until it was restarted:

    b    ou=sub      unique ID 1
    b    ou=sub      unique ID 2: it is uid=b-23 on all others, and on b again once b was restarted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.engine.selective_read import rows_where
from workbench.model import counted, step
from workbench.rules.contents import LIVE

if TYPE_CHECKING:
    from workbench.diagnosis.contents import Contents, Difference


def shown_twice(contents: Contents, server: str, differences: Sequence[Difference]) -> set[str]:
    """The entries that have another name on a server than elsewhere, and there the name of another entry as well."""
    named: dict[str, set[str]] = {}
    for one in differences:
        there = contents.held[one.entry][server]
        if one.attribute == "dn" and there.status == LIVE:
            named.setdefault(there.target, set()).add(one.entry)
    if not named:
        return set()
    where = pc.field("target").isin(pa.array(sorted(named), pa.string())) & (pc.field("state") != "tombstone")
    rows = rows_where(contents.exports[server].parts, ["target", "entry"], where)
    bearing: dict[str, set[str]] = {}
    for row in rows.group_by(["target", "entry"]).aggregate([]).to_pylist():
        bearing.setdefault(row["target"], set()).add(row["entry"])
    return {entry for target, entries in named.items() if len(bearing.get(target, ())) > 1 for entry in entries}


def told_of_twice(contents: Contents, server: str, entries: set[str]) -> str:
    """The end of the sentence about them."""
    few = sorted(entries)[:3]
    elsewhere = {
        entry: min(
            there.target for name, there in contents.held[entry].items() if name != server and there.status == LIVE
        )
        for entry in few
    }
    names = "; ".join(f"{elsewhere[entry]} as {contents.held[entry][server].target}" for entry in few)
    more = "; …" if len(entries) > len(few) else ""
    return (
        f"; {server} shows {counted(len(entries), 'entry', 'entries')} under the name of another one ({names}{more}), which no "
        "data can hold: its cache of names answers wrongly"
    )


def restart_first(server: str) -> Mapping[str, Any]:
    """What to do before anything else."""
    return step(
        f"restart {server}, collect again with the entries, and diagnose anew",
        "a server builds its cache of names anew when it starts; 3.1.2 was seen to keep wrong ones after it was filled while "
        "it ran",
        "rename nothing and fill nothing for it before that. Changes that came meanwhile may stand in the wrong entry",
    )
