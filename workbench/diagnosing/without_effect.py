"""Deletions and renamings that do nothing on a server for what it did with their entry: the unique ID tells that.

a and b both deleted uid=x4        r got one of the deletions; the other one changes nothing, and not every server passes it on
b deleted uid=x5, a renamed it     c got the deletion alone: nothing is renamed of an entry that is gone
b renamed uid=x6, a after it, too  a has the later renaming: the earlier one changes nothing; nor does one to the same name

A modification of a deleted entry is written into a log all the same: without it, it did not arrive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.collected.inputs import Input
from workbench.diagnosing.deleted_since import PROVED, lack_nothing, may_do_nothing
from workbench.engine.positions import Positions, of_keys
from workbench.engine.rows import rows_at, rows_of, rows_where
from workbench.rules.verdicts import MISSING, PRESENT, REPLACED, SAYS, TWIN, UNKNOWN, Verdict

if TYPE_CHECKING:
    from workbench.diagnosing.data_sources import JudgedServer
    from workbench.diagnosing.verdict_rows import Verdicts
    from workbench.fleet.told import Evidence
    from workbench.tables import Numbers

DELETED_HERE, RENAMED_SINCE, UNCLEAR = "deleted_here", "renamed_since", "unclear"
"""The rules by which a server that does not have such a change lacks nothing; by the last one it may lack it after all."""

_OPEN = (TWIN, "not_shown")
"""Why it may be unknown whether a server has such a change."""

Has = Callable[["JudgedServer", Positions], "Numbers"]
"""For each change: is it shown that the server has it?"""


def note_without_effect(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input], has: Has
) -> None:
    """Take such changes of these servers out of what is missing or unknown, but for those that collected entries lack."""
    by_name = {server.replica.server: server for server in servers}
    rows = [
        row
        for row in found.missing
        if row["suffix"] == evidence.suffix and row["server"] in by_name and may_do_nothing(found, evidence, row)
    ]
    alone = [
        row
        for row in found.unknown
        if row["suffix"] == evidence.suffix and row["server"] in by_name and row["count"] == 1 and row["why"] in _OPEN
    ]
    positions = {id(row): evidence.system.typed(row.get("position") or row["from"]) or "" for row in [*rows, *alone]}
    entries = _OfEntries({*positions.values()}, evidence, logs, has)

    rules = {id(row): entries.rule(by_name[row["server"]], positions[id(row)]) for row in [*rows, *alone]}
    lack_nothing(found, evidence, servers, [row for row in rows if rules[id(row)]])
    known = {id(row) for row in alone if rules[id(row)] not in (None, UNCLEAR)}
    found.unknown[:] = [row for row in found.unknown if id(row) not in known]
    found.unknown += [
        {key: row[key] for key in ("server", "suffix", "origin")}
        | {"count": 1, "why": UNCLEAR, "from": row["position"], "to": row["position"]}
        for row in rows
        if rules[id(row)] == UNCLEAR
    ]
    found.totals["unknown"] += sum(rules[id(row)] == UNCLEAR for row in rows) - len(known)


def with_those_without_effect(
    told: Mapping[str, Verdict],
    position: str,
    evidence: Evidence,
    servers: Sequence[JudgedServer],
    logs: Sequence[Input],
    has: Has,
    lacked: Collection[str],
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a change is missing on as present in effect.

    `lacked`: the servers whose collected entries lack it.
    """
    lacking = {
        name
        for name, verdict in told.items()
        if name not in lacked
        if (verdict.verdict == MISSING and verdict.rule not in PROVED)
        or (verdict.verdict == UNKNOWN and verdict.rule in _OPEN)
    }
    entries = _OfEntries({position} if lacking else set(), evidence, logs, has)
    found = {**told}
    for server in servers:
        name = server.replica.server
        if name in lacking and (rule := entries.rule(server, position)):
            known = UNKNOWN if rule == UNCLEAR else PRESENT
            found[name] = told[name]._replace(verdict=known, rule=rule, says=SAYS[rule])
    return found


_NAMED, _CLEARS = re.compile(r"newrdn:\s*([a-z0-9.;-]+)\s*="), re.compile(r"deleteoldrdn:\s*(?:1|true)")


class _Done(NamedTuple):
    """What a record tells that was done to an entry. `target`: its name before; `renamed`: how; both in small letters."""

    operation: str
    target: str
    renamed: str

    @property
    def replaces(self) -> str:
        """The attribute of its new name, where the old value goes; empty: that stays, or the entry was not renamed."""
        named = _NAMED.search(self.renamed)
        return named[1] if named and _CLEARS.search(self.renamed) else ""

    @property
    def moved(self) -> bool:
        """True if it got another parent."""
        return "newsuperior" in self.renamed


class _OfEntries:
    """The deletions and renamings of the entries of some changes, as the records of all logs tell them."""

    def __init__(self, positions: set[str], evidence: Evidence, logs: Sequence[Input], has: Has) -> None:
        self.evidence, self.logs, self.has = evidence, logs, has
        self._shown: dict[tuple[str, str], bool] = {}
        self._kept: dict[str, list[str]] = {}
        self.entries = self._entries_of(positions - {""})
        self.done = self._done_to({*self.entries.values()})

    def _entries_of(self, positions: set[str]) -> dict[str, str]:
        """Change -> the unique ID of its entry, where the record of any log tells it."""
        evidence, found = self.evidence, dict[str, str]()
        asked = of_keys(evidence.system, positions, evidence.numbers)
        for log in self.logs if len(asked) else ():
            for there, table in rows_at(evidence.case.parts("changes", log), asked, evidence.numbers, ["entry"]):
                entries = zip(there.keys(evidence.system, evidence.names), table["entry"].to_pylist(), strict=True)
                found.update((position, entry) for position, entry in entries if entry)
        return found

    def _done_to(self, entries: set[str]) -> dict[str, dict[str, _Done]]:
        """Unique ID of an entry -> position -> a deletion or a renaming of it."""
        system, found = self.evidence.system, dict[str, dict[str, _Done]]()
        wanted = pa.array(sorted(entries), pa.string())
        parts = [part for log in self.logs for part in self.evidence.case.parts("changes", log)] if entries else []
        columns = ["kind", "operation", "target", "rename", "origin", "hi", "lo"]
        for table in rows_of(((part, wanted) for part in parts), "entry", columns):
            ends = pc.is_in(table["operation"].cast(pa.string()), pa.array(["delete", "modrdn"]))
            for row in table.filter(pc.and_(pc.equal(table["kind"], "change"), ends)).to_pylist():
                position = system.order_key(row["origin"], row["hi"], row["lo"])
                done = _Done(row["operation"], (row["target"] or "").lower(), (row["rename"] or "").lower())
                found.setdefault(row["entry"], {})[position] = done
        return found

    def rule(self, server: JudgedServer, position: str) -> str | None:
        """By which of these the server lacks nothing, or may lack nothing, though it does not have the change."""
        done = self.done.get(self.entries.get(position, ""), {})
        if (mine := done.get(position)) is None:
            return None
        for other, deed in done.items():
            if other == position or not self._has(server, other):
                continue
            again = deed.operation == "delete" and (mine.operation == "delete" or other < position)
            if again and not self._came_back(server, deed.target):
                return UNCLEAR if self._replaced_since(server, other) else DELETED_HERE
            low, high = sorted((position, other))
            same = deed.renamed == mine.renamed and not any(low < between < high for between in done)
            alike = deed.replaces == mine.replaces != ""
            later = other > position and alike and (deed.moved or not mine.moved)
            if deed.operation == mine.operation == "modrdn" and (same or later):
                return UNCLEAR if self._replaced_since(server, other) else RENAMED_SINCE
        return None

    def _replaced_since(self, server: JudgedServer, position: str) -> bool:
        """True if the data came out of a file since: they may be of before, and the entry back."""
        made = self.evidence.system.moment(position)
        return any(reset.kind == REPLACED and made is not None and reset.ended > made for reset in server.resets)

    def _has(self, server: JudgedServer, position: str) -> bool:
        key = server.replica.server, position
        if key not in self._shown:
            some = of_keys(self.evidence.system, [position], self.evidence.numbers)
            # A line of before other data came counts as well, as does the silence from which the lack is concluded.
            took = (pc.field("position") == position) & (pc.field("outcome") == "applied") & pc.field("link").is_null()
            self._shown[key] = bool(self.has(server, some)[0]) or bool(
                len(self.evidence.told("applied", ["position"], took, server.replica.server))
            )
        return self._shown[key]

    def _came_back(self, server: JudgedServer, target: str) -> bool:
        """True if its log names the entry as one that was deleted and stays, for it has children."""
        name, code = server.replica.server, self.evidence.shown.proving.brought_back
        if name not in self._kept:
            parts = self.evidence.parts("messages", name) if code else []
            lines = rows_where(parts, ["text"], pc.field("code") == code)["text"].to_pylist() if parts else []
            self._kept[name] = [(line or "").lower() for line in lines]
        return any(target in line for line in self._kept[name])
