"""Deletions and renamings that do nothing on a server for what it did with their entry: the unique ID tells that.

a and b both deleted uid=x4        r got one of the deletions; the other one changes nothing, and not every server passes it on
b deleted uid=x5, a renamed it     c got the deletion alone: nothing is renamed of an entry that is gone
b renamed uid=x6, a did the same   one of the two renamings to one name is enough
b renamed uid=x7, a otherwise      the later name wins everywhere; the earlier one may stay as a value on some servers, not on all

So it is only where the two were made without knowing of each other. Whoever deletes an entry that it had deleted before has it
back: for its children, as one in conflict, by hand. Whoever renames uid=x6b knows of the renaming from uid=x6.

A modification of a deleted entry is written into a log all the same: without it, it did not arrive. But where the server refused
it for want of the entry, which it had deleted, it arrived, and there is nothing that it would change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.contents import Contents
from workbench.diagnosis.deleted_before import DELETED_BEFORE, without_deleted
from workbench.diagnosis.deleted_since import entries_of, lack_nothing
from workbench.diagnosis.refusals import NO_ENTRY
from workbench.diagnosis.removed_nothing import results_of
from workbench.engine.positions import Positions, of_keys
from workbench.engine.selective_read import rows_of, rows_where
from workbench.intake.inputs import Input
from workbench.rules.verdicts import (
    ENTRIES_LACK,
    MISSING,
    MOMENTS_APART,
    PERHAPS_BACK,
    PRESENT,
    RENAMED_OTHERWISE,
    REPLACED,
    SAYS,
    TOTAL,
    TWIN,
    UNCLEAR,
    UNKNOWN,
    Verdict,
)

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.tables import Numbers
    from workbench.topology.suffix_evidence import Evidence

DELETED_HERE, RENAMED_SINCE = "deleted_here", "renamed_since"
"""The rules by which a server that does not have such a change lacks nothing."""
ENTRIES_SHOW = "entries_show"
_MAY_LACK = (UNCLEAR, PERHAPS_BACK, RENAMED_OTHERWISE)
_BY_ENTRIES = (ENTRIES_LACK, "state_lacks")
"""The rules by which entries say themselves what is lacking. That a server refused a change tells nothing of what it would do."""
_OPEN = (TWIN, "not_shown")
"""Why it may be unknown whether a server has such a change."""

Has = Callable[["JudgedServer", Positions], "Numbers"]
"""For each change: is it shown that the server has it?"""


def note_without_effect(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input], has: Has
) -> None:
    """Take such changes of these servers out of what is missing or unknown, but for those that collected entries lack.

    Where the list of what is missing was cut, it stays as it is.
    """
    if "missing" in found.cut():
        return
    by_name = {server.replica.server: server for server in servers}
    contents = found.contents[-1]
    rows = [
        row
        for row in found.missing
        if row["suffix"] == evidence.suffix and row["server"] in by_name and row["rule"] not in _BY_ENTRIES
        if (evidence.system.typed(row["position"]) or "") not in contents.lacks.get(row["server"], ())
    ]
    alone = [
        row
        for row in found.unknown
        if row["suffix"] == evidence.suffix and row["server"] in by_name and row["count"] == 1 and row["why"] in _OPEN
    ]
    positions = {id(row): evidence.system.typed(row.get("position") or row["from"]) or "" for row in [*rows, *alone]}
    entries = _OfEntries({*positions.values()}, evidence, servers, logs, has, contents)
    rules = {id(row): entries.rule(by_name[row["server"]], positions[id(row)]) for row in [*rows, *alone]}
    nothing = without_deleted([row for row in rows if not rules[id(row)]], evidence, by_name, logs, has, contents)
    lack_nothing(found, evidence, servers, [*(row for row in rows if rules[id(row)]), *nothing])
    known = {id(row) for row in alone if rules[id(row)] not in (None, *_MAY_LACK)}
    for row in alone:
        row["why"] = rules[id(row)] if rules[id(row)] in _MAY_LACK else row["why"]
    found.unknown[:] = [row for row in found.unknown if id(row) not in known]
    found.unknown += [
        {key: row[key] for key in ("server", "suffix", "origin")}
        | {"count": 1, "why": rules[id(row)], "from": row["position"], "to": row["position"]}
        for row in rows
        if rules[id(row)] in _MAY_LACK
    ]
    found.totals["unknown"] += sum(rules[id(row)] in _MAY_LACK for row in rows) - len(known)


def with_those_without_effect(
    position: str,
    judge: Callable[[str], dict[str, Verdict]],
    evidence: Evidence,
    servers: Sequence[JudgedServer],
    logs: Sequence[Input],
    contents: Contents,
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a change is missing on as present in effect.

    `judge`: the verdicts on any change, by server. `contents`: what the collected entries prove.
    """
    told = judge(position)

    def has(server: JudgedServer, some: Positions) -> Numbers:
        keys = some.keys(evidence.system, evidence.names)
        return np.array([judge(key)[server.replica.server].verdict == PRESENT for key in keys], bool)

    lacking = {
        name
        for name, verdict in told.items()
        if position not in contents.lacks.get(name, ())
        if (verdict.verdict == MISSING and verdict.rule not in _BY_ENTRIES)
        or (verdict.verdict == UNKNOWN and verdict.rule in _OPEN)
    }
    entries = _OfEntries({position} if lacking else set(), evidence, servers, logs, has, contents)
    found = {**told}
    for server in servers:
        name = server.replica.server
        if name in lacking and (rule := entries.rule(server, position)):
            known = UNKNOWN if rule in _MAY_LACK else PRESENT
            found[name] = told[name]._replace(verdict=known, rule=rule, says=SAYS[rule])
    some = of_keys(evidence.system, [position], evidence.numbers)
    about = evidence.described(some, logs).get(position) if lacking else None
    rows = [
        {**about, "server": name, "position": evidence.system.show(position)}
        for name in sorted(lacking)
        if about and found[name].verdict == MISSING
    ]
    by_name = {server.replica.server: server for server in servers}
    for row in without_deleted(rows, evidence, by_name, logs, has, contents):
        name = row["server"]
        found[name] = found[name]._replace(verdict=PRESENT, rule=DELETED_BEFORE, says=SAYS[DELETED_BEFORE])
    return found


_FIRST_RDN = re.compile(r"^(?:[^,\\]|\\.)*,\s*")
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


class _Line(NamedTuple):
    position: str
    operation: str


class _Lines(NamedTuple):
    """Lines of the log of operations of one server.

    first    change -> when it was answered first
    applied  the changes that were applied
    under    name of an entry, in small letters -> what was applied under it, in the order of time
    """

    first: dict[str, datetime]
    applied: set[str]
    under: dict[str, list[_Line]]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> _Lines:
        """These rows."""
        found = cls({}, set(), {})
        for row in sorted(rows, key=lambda row: row["at"]):
            if row["position"]:
                found.first.setdefault(row["position"], row["at"])
            if row["outcome"] == "applied":
                found.applied.add(row["position"] or "")
                found.under.setdefault((row["target"] or "").lower(), []).append(
                    _Line(row["position"] or "", row["operation"] or "")
                )
        return found


class _OfEntries:
    """The deletions and renamings of the entries of some changes, as the records of all logs tell them."""

    def __init__(
        self,
        positions: set[str],
        evidence: Evidence,
        servers: Sequence[JudgedServer],
        logs: Sequence[Input],
        has: Has,
        contents: Contents,
    ) -> None:
        self.evidence, self.servers, self.logs, self.has = evidence, servers, logs, has
        self.contents, self.lacks = contents, contents.lacks
        self._makers = {server.replica.origin: server for server in servers if server.replica.origin}
        self._shown: dict[str, set[str]] = {}
        self._kept: dict[str, list[str]] = {}
        self.entries = entries_of(evidence, logs, positions - {""})
        self.done = self._done_to({*self.entries.values()})
        self._lines: dict[str, _Lines] = {}
        self._below: dict[str, list[str]] | None = None

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
        """By which of these the server lacks nothing, or may lack nothing, though it does not have the change.

        Where its entries were compared with those of others, and lack nothing of it, nothing is open. An entry that they show
        alive was not deleted.
        """
        found, name = self._by_logs(server, position), server.replica.server
        if found not in _MAY_LACK or name not in self.contents.exports or not self.contents.covers(name, position):
            return found
        entry = self.entries[position]
        ends = self.done[entry][position].operation == "delete"
        return None if ends and self.contents.alive(name, entry) else ENTRIES_SHOW

    def _by_logs(self, server: JudgedServer, position: str) -> str | None:
        done = self.done.get(self.entries.get(position, ""), {})
        if (mine := done.get(position)) is None:
            return DELETED_HERE if self._refused_as_deleted(server, position, done) else None
        for other, deed in done.items():
            if other == position or not self._has(server, other):
                continue
            again = deed.operation == "delete" and (mine.operation == "delete" or other < position)
            knew = self._made_knowing(position, other) if again else True
            if knew is not True and not self._came_back(server, deed.target):
                if self._replaced_since(server, position, other):
                    return UNCLEAR
                unsure = (
                    knew is None or self._alive_since(server, deed.target, other) or self._parent_since(deed, other)
                )
                return PERHAPS_BACK if unsure else DELETED_HERE
            low, high = sorted((position, other))
            same = deed.renamed == mine.renamed and not any(low < between < high for between in done)
            alike = deed.replaces == mine.replaces != ""
            later = other > position and alike and (deed.moved or not mine.moved)
            at_once = deed.target == mine.target  # who knows of the other renaming names the entry otherwise
            if deed.operation == mine.operation == "modrdn" and at_once and (same or later):
                unsure = self._replaced_since(server, position, other)
                return UNCLEAR if unsure else RENAMED_SINCE if same else RENAMED_OTHERWISE
        return None

    def _refused_as_deleted(self, server: JudgedServer, position: str, done: Mapping[str, _Done]) -> bool:
        """True for a modification that a server refused for want of the entry, which a change that it has had deleted.

        Whoever made the modification did not have the deletion yet, and nothing shows that the entry came back anywhere.
        """
        name, entry = server.replica.server, self.entries.get(position, "")
        deletions = [
            other
            for other, deed in done.items()
            if deed.operation == "delete" and self._has(server, other)
            if self._made_knowing(position, other) is False
            if not self._replaced_since(server, position, other) and not self._alive_since(server, deed.target, other)
        ]
        if not deletions or any(deed.operation == "modrdn" for deed in done.values()):
            return False
        for other in deletions:
            back = any(self._came_back(one, done[other].target) for one in self.servers)
            if back or self._parent_since(
                done[other], ""
            ):  # with children below it, whenever they were added, it stays
                return False
        if any(self.contents.alive(one, entry) for one in self.contents.exports):
            return False
        about = self.evidence.described(of_keys(self.evidence.system, [position], self.evidence.numbers), self.logs)
        codes = {code for _, code in results_of(self.evidence, name, {position})}
        return about.get(position, {}).get("operation") == "modify" and codes == {NO_ENTRY}

    def _made_knowing(self, position: str, deletion: str) -> bool | None:
        """Had the server that made a change got this deletion before it? Then the entry was there again. None: nothing tells.

        A server never makes a change with a lower position than one that it has got. What was made within a minute counts as made
        at once where no log of operations tells the order.
        """
        if position < deletion:
            return False
        system, maker = self.evidence.system, self._makers.get(self.evidence.system.origin_of(position))
        if maker is not None:
            first = self._lines_of(maker).first
            if position in first and (deletion in first or not self._has(maker, deletion)):
                return deletion in first and first[deletion] < first[position]
            # It has the deletion, and its log of operations begins too late, or ends too early, to tell since when.
            if position in first:
                return None
        moments = [system.moment(one) for one in (position, deletion)]
        made, gone = moments
        return False if made and gone and made - gone <= MOMENTS_APART else None

    def _alive_since(self, server: JudgedServer, target: str, deletion: str) -> bool:
        """True if its log of operations shows a later modification under that name, and no addition before it: it may be back."""
        lines = self._lines_of(server).under.get(target, [])
        at = next((number for number, line in enumerate(lines) if line.position == deletion), len(lines))
        for line in lines[at + 1 :]:
            if line.operation != "delete":
                return line.operation == "modify" and line.position > deletion
        return False

    def _parent_since(self, deed: _Done, deletion: str) -> bool:
        """True if a record shows that an entry was added below the deleted one by a later change: that brings it back."""
        if self._below is None:
            self._below = self._added_below({deed.target for done in self.done.values() for deed in done.values()})
        return any(added > deletion for added in self._below.get(deed.target, ()))

    def _added_below(self, names: set[str]) -> dict[str, list[str]]:
        """Name of an entry, in small letters -> the additions right below it that any log records."""
        system, found = self.evidence.system, dict[str, list[str]]()
        parent = pc.replace_substring_regex(
            pc.utf8_lower(pc.field("target")), _FIRST_RDN.pattern, "", max_replacements=1
        )
        where = (pc.field("kind") == "change") & (pc.field("operation") == "add")
        where &= parent.isin(pa.array(sorted(names), pa.string()))
        parts = [part for log in self.logs for part in self.evidence.case.parts("changes", log)]
        for row in rows_where(parts, ["target", "origin", "hi", "lo"], where).to_pylist():
            above = _FIRST_RDN.sub("", row["target"].lower(), count=1)
            found.setdefault(above, []).append(system.order_key(row["origin"], row["hi"], row["lo"]))
        return found

    def _lines_of(self, server: JudgedServer) -> _Lines:
        """What its log of operations tells of all these changes and names, read once."""
        if (name := server.replica.server) not in self._lines:
            deeds = [deed for done in self.done.values() for deed in done.items()]
            changes = pa.array(sorted({*self.entries, *(position for position, _ in deeds)}), pa.string())
            names = pa.array(sorted({deed.target for _, deed in deeds}), pa.string())
            own = pc.field("at").is_valid() & pc.field("link").is_null() & (pc.field("outcome") != "refused")
            asked = pc.field("position").isin(changes) | pc.utf8_lower(pc.field("target")).isin(names)
            columns = ["position", "operation", "target", "outcome", "at"]
            rows = self.evidence.told("applied", columns, own & asked, name).to_pylist() if deeds else []
            self._lines[name] = _Lines.of(rows)
        return self._lines[name]

    def _replaced_since(self, server: JudgedServer, position: str, other: str) -> bool:
        """True if other data came since it had the other change, and nothing tells that these had it, too.

        Out of a file they may be of before. From another server they are as those of one that has the other change alone.
        """
        made = self.evidence.system.moment(other)
        since = [reset.kind for reset in server.resets if made is not None and reset.ended > made]
        if REPLACED in since:
            return True
        alike = (one for one in self.servers if one is not server and self._shows(one, other))
        return TOTAL in since and not self._logged(server, other) and all(self._shows(one, position) for one in alike)

    def _logged(self, server: JudgedServer, position: str) -> bool:
        return server.replica.log is not None and self.evidence.case.log(server.replica.log).holds(position)

    def _has(self, server: JudgedServer, position: str) -> bool:
        """True if it has the change, or had it before other data came: so does the silence from which the lack is concluded."""
        if position in self.lacks.get(server.replica.server, ()):
            return False
        return self._shows(server, position) or position in self._lines_of(server).applied

    def _shows(self, server: JudgedServer, position: str) -> bool:
        """True if it is shown that the server has the change, if only by where its present data came from."""
        if (name := server.replica.server) not in self._shown:
            changes = sorted({*self.entries, *(change for done in self.done.values() for change in done)})
            some = of_keys(self.evidence.system, changes, self.evidence.numbers)
            keys = zip(some.keys(self.evidence.system, self.evidence.names), self.has(server, some), strict=True)
            self._shown[name] = {key for key, there in keys if there} - {*self.lacks.get(name, ())}
        return position in self._shown[name]

    def _came_back(self, server: JudgedServer, target: str) -> bool:
        """True if its log names the entry as one that was deleted and stays, for it has children."""
        name, code = server.replica.server, self.evidence.shown.proving.brought_back
        if name not in self._kept:
            parts = self.evidence.parts("messages", name) if code else []
            lines = rows_where(parts, ["text"], pc.field("code") == code)["text"].to_pylist() if parts else []
            self._kept[name] = [(line or "").lower() for line in lines]
        return any(target in line for line in self._kept[name])
