"""What a repair asks the case: the modifications that a server missed, the values that are right now, what would be lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import REMOVED
from workbench.systems.ds389.native import comment, line
from workbench.systems.ds389.rules.own_attributes import BY_SERVER
from workbench.systems.ds389.rules.proving import MODIFICATION, modified
from workbench.systems.ds389.secrets import SECRETS

if TYPE_CHECKING:
    from workbench.repair.plan_types import Need, View

MOST = 500
"""Entries that are written again one by one: for more an initialisation is less work for every server."""

_SHORTENED = re.compile(r"\.\.\. \[\d+ (?:characters|bytes), sha256 [0-9a-f]{16}\]\Z")
_RENAME = {"deleteoldrdn: true": "deleteoldrdn: 1", "deleteoldrdn: false": "deleteoldrdn: 0"}


_ONE_CHANGE = 16
"""Characters of a CSN that tell one change from another; the last four count its steps."""


@dataclass
class Missed:
    """One entry of which a server missed changes.

    entry       its lasting id; `dn` where it is by the last of the changes
    operations  of the missing changes; `attributes` those that they modified
    numbers     of the lots on the model
    """

    entry: str
    dn: str
    operations: set[str] = field(default_factory=set)
    attributes: dict[str, str] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)


def missed_by_entry(view: View, lots: Iterable[int]) -> dict[str, Missed] | None:
    """The missing changes by entry; None if neither a log nor an entry tells what they did, or if they are too many."""
    model = view.model
    wanted = {model.lots[number].last: number for number in lots if model.lots[number].changes == 1}
    if not wanted or len(wanted) > MOST:
        return None
    found: dict[str, Missed] = {}
    seen: set[str] = set()
    where = pc.field("position").isin(pa.array(sorted(wanted), pa.string())) & (pc.field("kind") == "change")
    columns = ["position", "operation", "target", "entry", "rename", "body"]
    for batch in view.context.rows(
        "changes", columns, where, snapshot=view.context.topology.snapshot, suffix=view.suffix
    ):
        for row in batch.to_pylist():
            if not row["entry"]:
                continue
            if row["position"] in seen:
                # A log that got the change over a link that left attributes out names fewer of them than another one.
                if row["entry"] in found:
                    found[row["entry"]].attributes |= {name.lower(): name for name in modified(row["body"] or "")}
                continue
            seen.add(row["position"])
            one = found.setdefault(row["entry"], Missed(row["entry"], row["target"]))
            one.dn = row["target"]
            one.operations.add(row["operation"])
            one.attributes |= {name.lower(): name for name in modified(row["body"] or "")}
            one.numbers.append(wanted[row["position"]])
    if len(seen) < len(wanted):
        seen |= _shown_by_entries(view, {key: wanted[key] for key in wanted.keys() - seen}, found)
    return found if len(seen) == len(wanted) else None


def got_without_attributes(view: View, need: Need) -> set[str]:
    """The servers whose logs have a change that another server lacks without an attribute: they cannot bring the whole of it."""
    show = view.context.topology.system.show
    positions = {show(view.model.lots[lack.lot].last) for lack in need.lacks}
    return {
        name
        for name, suffix, position in view.context.verdicts.cut_short
        if suffix == view.suffix and position in positions
    }


def _shown_by_entries(view: View, wanted: Mapping[str, int], found: dict[str, Missed]) -> set[str]:
    """Add what entries show of changes that no log holds any more: a log that was lost in a crash, or trimmed. Which these are.

    Of a modification they show the attributes that it still marks. Values that it removed may have left no mark: every attribute
    counts as changed in which the collected entries differ.
    """
    context, system = view.context, view.context.topology.system
    told = {
        system.typed(row["position"]): row["operation"]
        for row in context.verdicts.missing
        if row["suffix"] == view.suffix and row["operation"]
    }
    rows: dict[str, list[dict[str, Any]]] = {}
    begins = pa.array(sorted(key[:_ONE_CHANGE] for key in wanted), pa.string())
    where = pc.utf8_slice_codeunits(pc.field("position"), 0, _ONE_CHANGE).isin(begins) & pc.field("entry").is_valid()
    columns = ["position", "target", "entry", "attribute", "state"]
    for batch in context.rows("entry_states", columns, where, snapshot=context.topology.snapshot, suffix=view.suffix):
        for row in batch.to_pylist():
            rows.setdefault(system.change_of(row["position"]), []).append(row)
    shown = set()
    for position, mine in sorted(rows.items()):
        entries, names = {row["entry"] for row in mine}, {row["attribute"] for row in mine if row["attribute"]}
        operation = told.get(position)
        if operation not in ("add", "modify") or len(entries) > 1 or any(row["state"] == "tombstone" for row in mine):
            continue
        (entry,) = entries
        one = found.setdefault(entry, Missed(entry, mine[0]["target"]))
        one.operations.add(operation)
        if operation == "modify":
            one.attributes |= {name.lower(): name for name in {*names, *_unlike(view, entry)}}
        one.numbers.append(wanted[position])
        shown.add(position)
    return shown


def renamed_alike(view: View, server: str, found: Mapping[str, Missed]) -> dict[str, Missed]:
    """The same; of an entry that has its right name on the server, a renaming counts as a modification of what differs.

    So it is where two servers renamed it at one time: one name won everywhere, and a value of the other one is lacking here.
    """
    renamed = [
        key for key, one in found.items() if "modrdn" in one.operations and one.operations <= {"modify", "modrdn"}
    ]
    every = [present_on(view, one.name, renamed) for one in view.model.servers.values()] if renamed else []
    there = (present_on(view, server, renamed) or {}) if renamed else {}
    told = dict(found)
    for key in renamed:
        names = {shown[key].dn.lower() for shown in every if shown and key in shown}
        unlike = _unlike(view, key)
        if key in there and len(names) == 1 and unlike:
            one = found[key]
            told[key] = replace(
                one, operations={"modify"}, attributes=one.attributes | {name.lower(): name for name in unlike}
            )
    return told


def _unlike(view: View, entry: str) -> set[str]:
    """The attributes in which an entry is not the same on all servers that show it."""
    every = [present_on(view, one.name, [entry]) for one in view.model.servers.values()]
    shown = [there[entry] for there in every if there and entry in there]
    names = {name for one in shown for name in one.values} | {name for one in shown for name in one.hidden}
    return {name for name in names if any(not shown[0].like(one, [name]) for one in shown[1:])}


@dataclass
class Present:
    """An entry as it stands on a server: attribute -> values; of those in `hidden` a secret or a long value is not shown.

    written  attribute -> the changes that made its values what they are
    """

    dn: str
    entry: str
    values: dict[str, list[str]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    written: dict[str, set[str]] = field(default_factory=dict)

    def like(self, other: Present, names: Iterable[str]) -> bool:
        """True if both have the same values of these attributes; of hidden ones, if the same changes wrote them."""
        for name in {name.lower() for name in names}:
            mine, theirs = ({key.lower(): sorted(some) for key, some in one.values.items()} for one in (self, other))
            if mine.get(name, []) != theirs.get(name, []):
                return False
            if name in {key.lower() for key in {*self.hidden, *other.hidden}}:
                wrote, they = ({key.lower(): some for key, some in one.written.items()} for one in (self, other))
                if wrote.get(name) != they.get(name):
                    return False
        return True


def present_on(view: View, server: str, entries: Iterable[str]) -> dict[str, Present] | None:
    """The entries as a server's export shows them, by their lasting id; None if none of it were collected of this suffix."""
    context = view.context
    exported = {
        one.server
        for one in context.inputs
        if one.may_tell_of(view.suffix)
        if any(part["table"] == "entry_states" and part.get("suffix") in (None, view.suffix) for part in one.parts)
    }
    if server not in exported:
        return None
    found: dict[str, Present] = {}
    where = pc.field("entry").isin(pa.array(sorted(set(entries)), pa.string()))
    columns = ["entry", "target", "attribute", "value", "state", "position"]
    for batch in context.rows(
        "entry_states", columns, where, snapshot=context.topology.snapshot, server=server, suffix=view.suffix
    ):
        for row in batch.to_pylist():
            if row["state"] != "present":
                continue
            one = found.setdefault(row["entry"], Present(row["target"], row["entry"]))
            name, value = row["attribute"], row["value"]
            if row["position"]:
                one.written.setdefault(name, set()).add(row["position"])
            if value is None or value.startswith("base64:") or _SHORTENED.search(value):
                one.hidden.add(name)  # not as it is there: it is read when it is needed
            elif value not in one.values.setdefault(name, []):  # a value has a row for each of its marks
                one.values[name].append(value)
    return found


def children_on(view: View, server: str, dn: str) -> bool:
    """True if a server's export shows an entry below this one."""
    below = f",{dn.lower()}"
    context = view.context
    where = pc.ends_with(pc.utf8_lower(pc.field("target")), below)
    for batch in context.rows(
        "entry_states", ["target"], where, snapshot=context.topology.snapshot, server=server, suffix=view.suffix
    ):
        if len(batch):
            return True
    return False


def naming(view: View, server: str, dn: str) -> list[str]:
    """The entries of a server's export that name this one in a value, as groups name their members."""
    context = view.context
    where = (pc.utf8_lower(pc.field("value")) == dn.lower()) & (pc.field("state") == "present")
    where &= pc.utf8_lower(pc.field("target")) != dn.lower()
    rows = context.rows(
        "entry_states", ["target"], where, snapshot=context.topology.snapshot, server=server, suffix=view.suffix
    )
    return sorted({row for batch in rows for row in batch.column("target").to_pylist()})


def stranded_ldif(view: View, server: str, positions: Iterable[str]) -> tuple[str, list[str]]:
    """Changes that only this server holds, as LDIF to be read by a person, and what of them is not in it."""
    wanted = sorted(set(positions))
    blocks: dict[str, str] = {}
    without: list[str] = []
    where = pc.field("position").isin(pa.array(wanted, pa.string())) & (pc.field("kind") == "change")
    columns = ["position", "operation", "target", "entry", "rename", "body"]
    rows = view.context.rows(
        "changes", columns, where, snapshot=view.context.topology.snapshot, server=server, suffix=view.suffix
    )
    for batch in rows:
        for row in batch.to_pylist():
            blocks[row["position"]] = _record(row)
            if REMOVED in (row["body"] or ""):
                without.append(f"{row['position']}: a secret of {row['target']} is not kept, it has to be set again")
    without += [f"{position}: in no log of {server}" for position in wanted if position not in blocks]
    return "\n".join(blocks[position] for position in sorted(blocks)), without


def _record(row: Mapping[str, Any]) -> str:
    """A logged change as a change record. What the server writes itself is left out: it would be refused."""
    head = comment(f"{row['position']}, nsUniqueId {row['entry']}")
    head += line("dn", row["target"].encode()).decode() + f"changetype: {row['operation']}\n"
    body = (row["body"] or "").replace("\n ", "")
    if row["operation"] == "add":
        return head + "".join(f"{text}\n" for text in added(body))
    if row["operation"] == "modrdn":
        words = (row["rename"] or "").strip().split("\n")
        return head + "".join(f"{_RENAME.get(one, one).replace('newsuperiordn:', 'newsuperior:')}\n" for one in words)
    return head + "".join(_kept_mods(body))


def added(body: str) -> list[str]:
    """The lines of an entry out of the modifications by which the changelog tells of its birth.

    >>> added("add: cn\\ncn: a\\ncn: b\\n-\\nadd: entryid\\nentryid: 7\\n-\\n")
    ['cn: a', 'cn: b']
    """
    kept = []
    for block in body.split("\n-"):
        lines = [text for text in block.split("\n") if text]
        named = MODIFICATION.match(lines[0]) if lines else None
        if named and named[2].lower() not in BY_SERVER:
            kept += lines[1:]
    return [text for text in kept if not SECRETS.holds_one(text)]


def _kept_mods(body: str) -> Iterable[str]:
    for block in body.split("\n-"):
        lines = [text for text in block.split("\n") if text]
        named = MODIFICATION.match(lines[0]) if lines else None
        if named and named[2].lower() not in BY_SERVER:
            yield "".join(f"{text}\n" for text in lines) + "-\n"
