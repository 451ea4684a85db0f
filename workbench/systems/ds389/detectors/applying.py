"""What becomes of changes at the consumer: one on which it fails again and again, and entries that carry marks of conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import EVIDENCE_SHOWN, ITEMS_SHOWN, Finding, first_few, step
from workbench.rules.vectors import covers
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.detectors.shown import Row, line_shown, only_suffix
from workbench.systems.ds389.logged.lines import WITH_TEXT, session_logs
from workbench.systems.ds389.rules.applying import skipped_for_good

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation
    from workbench.fleet.topology import Replica

_LOOPS_FROM = 3
"""Attempts at one change: a second one is how a session goes on that broke for another reason."""
_COUNTED = 10_000
"""Changes that are counted at once; of more, those seen once are forgotten, for what loops comes again."""

Key = tuple[str, str | None, str]
"""Consumer, suffix and position."""


class _Attempts:
    """How often each change failed, and where the first failures stand."""

    def __init__(self) -> None:
        self.counts: Counter[Key] = Counter()
        self.rows: dict[Key, list[dict[str, Any]]] = {}

    def add(self, key: Key, row: dict[str, Any]) -> None:
        self.counts[key] += 1
        kept = self.rows.setdefault(key, [])
        if len(kept) < EVIDENCE_SHOWN:
            kept.append(row)
        if len(self.counts) > _COUNTED:
            self.counts = Counter({one: number for one, number in self.counts.items() if number > 1})
            self.rows = {one: self.rows[one] for one in self.counts}


def apply_retry_loop(situation: Situation) -> Iterator[Finding]:
    """Changes that a consumer failed on three times or more, with a result that is tried again, and does not have yet.

    What its vector covers it got over in the end. Of the two sides' logs and the access log the one with most attempts
    counts: they tell of the same ones.
    """
    sources = (_told_by_suppliers(situation), _told_by_consumers(situation), _refused(situation))
    looping: dict[Key, _Attempts] = {}
    for attempts in sources:
        for key, count in attempts.counts.items():
            if count >= _LOOPS_FROM and (key not in looping or count > looping[key].counts[key]):
                looping[key] = attempts
    for key in sorted(looping, key=str):
        server, suffix, csn = key
        count = looping[key].counts[key]
        yield Finding(
            "APPLY_RETRY_LOOP",
            "error",
            f"{server} failed {count:,} times on the change {csn} and does not have it: nothing behind it arrives on that link",
            server=server,
            origin=origin_of(csn),
            suffix=suffix,
            items=(csn,),
            evidence=first_few(looping[key].rows[key], count),
            fix=(
                step(
                    f"find the cause in the errors log of {server} (its line names the result), mend it there and let the "
                    "session run again",
                    "the supplier sends the same change first in every session until the consumer takes it",
                    "do not skip it by editing a RUV: it would be missing for good",
                ),
            ),
        )


def _lacking(situation: Situation, server: str | None, suffix: str | None, csn: str | None) -> bool:
    """True if the server's vector was collected and does not cover the change."""
    one = situation.replica(server, suffix)
    return bool(csn and one and one.claims and not covers(one.vector, origin_of(csn), csn))


def _told_by_suppliers(situation: Situation) -> _Attempts:
    links: dict[tuple[str, str], list[Any]] = {}
    for link in situation.topology.links:
        links.setdefault((link.supplier, link.name), []).append(link)
    attempts = _Attempts()
    for log in session_logs(situation.case):
        for row, place in log.lines(("retry_later",), WITH_TEXT):
            mine = links.get((log.server, row["link"] or ""), [])
            if len(mine) == 1 and _lacking(situation, mine[0].consumer, mine[0].suffix, row["position"]):
                key = (mine[0].consumer, mine[0].suffix, row["position"])
                attempts.add(key, line_shown(row, place))
    return attempts


def _told_by_consumers(situation: Situation) -> _Attempts:
    attempts = _Attempts()
    for log in session_logs(situation.case):
        suffix = only_suffix(situation, log.server)
        for row, place in log.lines(("apply_failed",), WITH_TEXT):
            if _lacking(situation, log.server, suffix, row["position"]):
                attempts.add((log.server, suffix, row["position"]), line_shown(row, place))
    return attempts


def _refused(situation: Situation) -> _Attempts:
    """Results in the access logs of the last snapshot that name a change and are neither success nor skipped for good."""
    attempts = _Attempts()
    columns = ["file", "offset", "at", "position", "code", "connection", "target"]
    for one in situation.topology.replicas:
        if not one.claims:
            continue
        where = (pc.field("outcome") == "refused") & _above(one)
        of = {"snapshot": situation.topology.snapshot, "server": one.server, "suffix": one.suffix}
        for batch in situation.rows("applied", columns, where, **of):
            for row in batch.to_pylist():
                if row["code"] and not skipped_for_good(row["code"]):
                    about = {**row, "at": row["at"].isoformat() if row["at"] else None}
                    attempts.add((one.server, one.suffix, row["position"]), about)
    return attempts


def _above(one: Replica) -> pc.Expression:
    """The rows whose change the server's vector does not cover."""
    held = {origin: span.max for origin, span in one.vector.items() if span.max}
    position, origin = pc.field("position"), pc.field("origin")
    return position.is_valid() & reduce(
        or_,
        ((origin == rid) & (position > top) for rid, top in sorted(held.items())),
        ~origin.isin(pa.array([*held], pa.string())),
    )


_MARK = "nsds5replconflict"
_KINDS = {
    "namingconflict": "two entries of one name",
    "missingentry": "a parent that was made up, or a child of one that is missing",
    "deletedentryhaschildren": "a deleted entry that has children",
    "schema violation": "an entry that does not fit the schema",
}


def conflict_entries(situation: Situation) -> Iterator[Finding]:
    """Entries with nsds5ReplConflict in the latest export of a server; where none was collected, what its log says of such."""
    exported = set()
    for server in sorted({one.server for one in situation.case.inputs}):
        snapshot = _latest_export(situation, server)
        if snapshot is None:
            continue
        exported.add(server)
        marked = (pc.utf8_lower(pc.field("attribute")) == _MARK) & (pc.field("state") == "present")
        columns = ["suffix", "snapshot", "file", "offset", "target", "value", "position"]
        counts: dict[str | None, Counter[str]] = {}
        kept: dict[str | None, list[Row]] = {}
        before = None
        for batch in situation.rows("entry_states", columns, marked, snapshot=snapshot, server=server):
            for row in batch.to_pylist():
                entry = row["file"], row["offset"]
                if entry == before:
                    continue  # of an entry with several marks, or with several CSNs on one, the rows follow each other
                before = entry
                counts.setdefault(row["suffix"], Counter())[_kind(row["value"])] += 1
                if len(mine := kept.setdefault(row["suffix"], [])) < EVIDENCE_SHOWN:
                    mine.append(row)
        for suffix, kinds in sorted(counts.items(), key=lambda item: item[0] or ""):
            total = sum(kinds.values())
            told = "; ".join(f"{number:,} of {kind}" for kind, number in sorted(kinds.items()))
            rows = kept[suffix]
            positions = sorted({row["position"] for row in rows if row["position"]})
            yield _conflicts("warning", f"{server} has {total:,} entries with a mark of conflict: {told}", server, suffix,
                             first_few(rows, total), positions)  # fmt: skip
    yield from _conflicts_told(situation, exported)


def _kind(value: str | None) -> str:
    text = (value or "").strip().lower()
    return next((kind for word, kind in _KINDS.items() if text.startswith(word)), "another mark")


def _latest_export(situation: Situation, server: str) -> str | None:
    """The last snapshot with an export of the server's entries."""
    labels = {
        one.snapshot
        for one in situation.case.inputs
        if one.server == server and any(part["table"] == "entry_states" for part in one.parts)
    }
    return next((label for label in reversed(list(situation.case.snapshots)) if label in labels), None)


def _conflicts_told(situation: Situation, exported: Iterable[str]) -> Iterator[Finding]:
    for log in session_logs(situation.case):
        if log.server in exported:
            continue
        counts: Counter[str] = Counter()
        kept: list[dict[str, Any]] = []
        for row, place in log.lines(("naming_conflict", "glue_entry", "schema_violation"), WITH_TEXT):
            counts[row["code"]] += 1
            if len(kept) < EVIDENCE_SHOWN:
                kept.append(line_shown(row, place))
        if counts:
            told = ", ".join(f"{code} {number:,} times" for code, number in sorted(counts.items()))
            sentence = f"the errors log of {log.server} tells of conflicts ({told}); no export shows whether they are still there"
            positions = sorted({row["position"] for row in kept if row["position"]})
            yield _conflicts("info", sentence, log.server, only_suffix(situation, log.server),
                             first_few(kept, sum(counts.values())), positions)  # fmt: skip


def _conflicts(
    severity: str, sentence: str, server: str, suffix: str | None, evidence: Iterable[Row], positions: list[str]
) -> Finding:
    return Finding(
        "CONFLICT_ENTRIES",
        severity,
        sentence,
        server=server,
        suffix=suffix,
        items=tuple(positions[:ITEMS_SHOWN]),
        evidence=tuple(evidence),
        fix=(
            step(
                "compare the entries with those of the other servers; resolve conflicts on a supplier (`dsconf INST "
                "repl-conflict`), mend the schema there",
                "servers with equal RUVs may hold different entries, and the marks stay when the cause is gone",
                "on a hub or a read-only consumer nothing can be resolved: there an initialisation from its supplier is the way",
            ),
        ),
    )
