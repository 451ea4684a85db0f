"""What one entry with replication state says: the definition that the fast reader in `entries` must agree with.

The state stands in options of the attributes: `mail;vucsn-CSN: a@b` (value updated), `vdcsn` (value deleted), `adcsn`
(attribute deleted before), `mdcsn` (made distinguished), with `;deleted` and `;deletedattribute` on what is only kept
as a grave. Every value gives one row per CSN, so an entry proves that its server applied these changes.
"""

from __future__ import annotations

import re

from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.formats.ldif import Entry
from workbench.systems.ds389.formats.values import shown, shown_name
from workbench.systems.ds389.formats.vectors import Row
from workbench.systems.ds389.secrets import SECRETS

MARKS = ("adcsn", "vucsn", "vdcsn", "mdcsn")
STATES = ("present", "tombstone", "deleted", "attribute_deleted")
VECTOR_ENTRY = "ffffffff-ffffffff-ffffffff-ffffffff"

_MARK = re.compile(r"(adcsn|vucsn|vdcsn|mdcsn)-([0-9a-f]{20})")


def entry_rows(entry: Entry) -> list[Row]:
    """The rows of the table `entry_states` of one entry. Raises ValueError with the reason if it is none.

    A value without a CSN is one row without mark. `state` is `tombstone` for the values that a deleted entry still
    has; what was deleted before keeps its own state.
    """
    if any(attribute_of(name) in ("changetype", "control") for name, _ in entry.lines):
        raise ValueError("a change, not an entry")
    grave = is_tombstone(entry)
    identity = next((shown(value) for name, value in entry.lines if attribute_of(name) == "nsuniqueid"), None)
    if entry.lines[0][1] and b"=" not in entry.lines[0][1]:
        # 3.1.2 was seen to write freed memory in place of the name of the topmost entry.
        raise ValueError("this is no name of an entry: its server wrote something else in its place")
    about = {
        "offset": entry.offset,
        "entry": (identity or "").strip().lower() or None,
        "target": shown_name(entry.lines[0][1]),
    }
    rows: list[Row] = []
    for written, value in entry.lines[1:]:
        name, marks, state = state_of(written)
        row: Row = {**about, "attribute": name, "state": "tombstone" if grave and state == "present" else state}
        row["value"] = None if SECRETS.is_secret(name) else shown(value)
        rows += [{**row, "mark": mark, "origin": origin_of(csn), "position": csn} for mark, csn in marks] or [row]
    return rows


def attribute_of(written: str) -> str:
    """The attribute in lower case, without any options."""
    return written.split(";", 1)[0].lower()


def state_of(written: str) -> tuple[str, list[tuple[str, str]], str]:
    """(attribute with its real options, marks with their CSNs, state) of an attribute as written.

    >>> state_of("description;lang-et;vucsn-6b0059bd000000010000;deleted")
    ('description;lang-et', [('vucsn', '6b0059bd000000010000')], 'deleted')
    """
    name, *options = written.split(";")
    marks, state = [], "present"
    for option in options:
        lower = option.lower()
        if found := _MARK.fullmatch(lower):
            marks.append((found[1], found[2]))
        elif lower == "deletedattribute":
            state = "attribute_deleted"
        elif lower == "deleted":
            state = "deleted" if state == "present" else state
        elif lower[2:6] == "csn-":
            raise ValueError(f"a state option that is no CSN in the attribute {name}")
        else:
            name += ";" + option
    return name, marks, state


def is_tombstone(entry: Entry) -> bool:
    """True if the entry has the class nsTombstone and did not lose it again (a resurrected one did)."""
    return any(
        value.lower() == b"nstombstone" and state_of(name)[2] == "present"
        for name, value in entry.lines
        if attribute_of(name) == "objectclass"
    )


def is_vector_entry(entry: Entry) -> bool:
    """True for the tombstone that holds the server's vector."""
    return entry.dn.lower().startswith(f"nsuniqueid={VECTOR_ENTRY}") or entry.text("nsUniqueId") == VECTOR_ENTRY
