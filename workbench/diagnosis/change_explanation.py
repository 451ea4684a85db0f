"""The whole story of one change: who made it, who has it, who would send it to whom, and what proves each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.entry_names import names_of
from workbench.diagnosis.snapshot_choice import case_at
from workbench.engine.logs import StoredLog
from workbench.engine.parquet_read import stream_part
from workbench.model import Problem
from workbench.rules.verdicts import PRESENT, Verdict
from workbench.topology.topology import Row, Topology, logs_of, topology

_PROOFS = 5
"""Rows of one server and table that are shown."""

MARK = "anchor"
"""The kind of a record that is no change: the log was made anew there, and it bears the position of one."""

_BY_NUMBERS = ("changes", "states", "records")
"""Tables that name a change by its halves."""

_SAID = {
    "changes": ("operation", "target", "kind"),
    "applied": ("evidence", "outcome", "at", "code", "operation", "target", "connection", "link"),
    "entry_states": ("target", "attribute", "state", "mark"),
    "messages": ("at", "code", "link", "text"),
    "states": ("kind", "entry", "attribute"),
    "records": ("kind", "generation", "at", "length", "transaction"),
    "segments": ("segment", "ended", "operation", "target", "piece", "rows"),
}


def story(case: Case, position: str, server: str | None = None, as_of: str | None = None) -> dict[str, Any]:
    """What is known of one change at each server, or at the named one.

    Of each server: the verdict (present, missing, unknown, pending) with its rule, the rows that name the change there, and
    for one that lacks it what each supplier would do with it now. Raises Problem if nothing in the case names the change.
    """
    case = case_at(case, as_of)
    shown = topology(case)
    return story_in(case, shown, logs_of(case, shown), position, server)


def story_in(
    case: Case, shown: Topology, logs: Mapping[str, StoredLog], position: str, server: str | None = None
) -> dict[str, Any]:
    """The same of a case whose topology and logs are known."""
    key = shown.system.typed(position)
    if key is None:
        raise Problem(f"{position} is not a position", "", "give one as the tables show it")
    explained = shown.system.replication().explain(case, shown, key, logs)
    key, found, senders = explained.position, explained.verdicts, explained.senders
    if not found:
        named = {row["snapshot"] for row in _proofs(case, shown, key)}
        if before := [label for label in case.snapshots if label in named and label != shown.snapshot]:
            what = f"of this snapshot nothing names {position}, and {', '.join(before)} does"
            raise Problem(what, shown.snapshot, f"explain it as of then: --as-of {before[-1]}")
        do = "check it for a typing error, or load the files that name it"
        raise Problem(f"nothing in the case names {position}", shown.snapshot, do)
    names = sorted({one.server for one in found})
    if server is not None and server not in names:
        raise Problem(f"no verdict is known of {server}", shown.snapshot, f"there are {', '.join(names)}")
    proofs = list(_proofs(case, shown, key))
    of = {one.suffix for one in found if server in (None, one.server)}
    mine = [row for row in proofs if row.get("suffix") in {None, *of}]
    about = _description(mine)
    origin, made = shown.system.origin_of(key), shown.system.moment(key)
    makers = sorted({one.server for one in shown.replicas if one.origin == origin and one.suffix in of})
    return {
        "position": shown.system.show(key),
        "origin": origin,
        "made_at": made.isoformat() if made else None,
        "made_on": makers,
        "operation": about.get("operation"),
        "target": about.get("target"),
        "snapshot": shown.snapshot,
        "servers": [
            {
                "server": one.server,
                "suffix": one.suffix,
                "verdict": one.verdict,
                "rule": one.rule,
                "says": one.says,
                "evidence": [
                    {key: value for key, value in row.items() if key != "suffix"}
                    for row in proofs
                    if _speaks_of(row, one, shown)
                ],
                "suppliers": list(senders(key, one.server, one.suffix)) if one.verdict != PRESENT else [],
            }
            for one in found
            if server in (None, one.server)
        ],
    }


def _description(proofs: Sequence[Row]) -> Row:
    """The row that tells best what the change does: that of a log, else of an operation that was not refused.

    A client's that was refused may have been given the position which another server used, too.
    """
    naming = [row for row in proofs if row.get("kind") != MARK and (row["table"] == "changes" or row.get("target"))]
    ranks = {"changes": 0, "applied": 2}
    return min(naming, key=lambda row: 1 if row.get("outcome") == "applied" else ranks.get(row["table"], 1), default={})


def _speaks_of(row: Row, one: Verdict, shown: Topology) -> bool:
    """True for a row of the server's own files, and for one of a supplier about its link to it; not for one of another suffix."""
    if row.get("suffix") not in (None, one.suffix):
        return False
    if row["server"] == one.server:
        return True
    leads = {
        (link.supplier, link.name) for link in shown.links if (link.consumer, link.suffix) == (one.server, one.suffix)
    }
    return (row["server"], row.get("link")) in leads


def _proofs(case: Case, shown: Topology, key: str) -> Iterator[dict[str, Any]]:
    """The rows of any table that name the change, a few of each file."""
    system = shown.system
    hi, lo = system.halves(key)
    after = system.order_key(system.origin_of(key), hi + 1, 0)
    by_text = (pc.field("position") >= system.show(key)) & (pc.field("position") < after)
    where = dict.fromkeys(_SAID, by_text) | {"changes": (pc.field("hi") == hi) & (pc.field("lo") == lo)}
    where["segments"] = pc.field("position") == key
    where["records"] = where["changes"]
    where["states"] = (pc.field("hi") == hi) & (pc.field("origin") == system.origin_of(key))
    for one in case.inputs:
        for table, columns in _SAID.items():
            wanted = ["suffix", "offset", *columns, *([] if table in _BY_NUMBERS else ["position"])]
            about = {"server": one.server, "table": table, "snapshot": one.snapshot, "file": one.file}
            rows = (
                row
                for part in case.parts(table, one)
                if _may_hold(part, (hi, lo))
                for batch in stream_part(part["path"], wanted, where[table])
                for row in batch.to_pylist()
            )
            shown_rows: list[dict[str, Any]] = []
            for row in rows:
                named, at = row.pop("position", None), row.get("at")
                row |= {"at": at.isoformat()} if at else {}
                told = about | {name: value for name, value in row.items() if value is not None}
                # Every value of an entry carries the change that made it: one of them says it all.
                if told not in shown_rows and (named is None or system.change_of(named) == key):
                    shown_rows.append(told)
                    if len(shown_rows) == _PROOFS:
                        break
            if table == "states":
                names = names_of(case, [one], (row["entry"] for row in shown_rows)) if shown_rows else {}
                shown_rows = [
                    row | {"target": names[row["entry"]]} if row["entry"] in names else row for row in shown_rows
                ]
            yield from shown_rows


def _may_hold(part: Row, pair: tuple[int, int]) -> bool:
    """False for a sorted part that begins behind the change or ends before it: opening thousands of files takes seconds."""
    return "first" not in part or tuple(part["first"]) <= pair <= tuple(part["last"])
