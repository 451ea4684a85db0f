"""Object classes and attributes that a server does not know, as its own logs name them, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.model import counted
from workbench.systems.ds389.session_log.lines import WITH_TEXT, session_logs

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_UNKNOWN = re.compile(r'has unknown object class "([^"]{1,200})"|attribute "([^"]{1,200})" (?:is )?not allowed')
_NAMED = 5


@dataclass
class Unknown:
    """A class or attribute that the server's log calls unknown or not allowed.

    entries  that its log names for it
    users    entries that carry the class, as far as entries were collected: the first by name, and how many
    known_on servers whose entries carry it and whose logs do not complain
    last     when its log last named it
    """

    name: str
    kind: str
    server: str
    entries: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    total: int = 0
    known_on: list[str] = field(default_factory=list)
    last: datetime | None = None

    def told(self) -> str:
        """The class or attribute, and who uses it."""
        if self.total:
            more = ", …" if self.total > len(self.users) else ""
            used = f"used by {counted(self.total, 'entry', 'entries')}: {', '.join(self.users)}{more}"
            have, their = ("have", "their logs do") if len(self.known_on) > 1 else ("has", "its log does")
            has = (
                f"; {', '.join(self.known_on)} {have} entries with it, too, and {their} not complain"
                if self.known_on
                else ""
            )
            return f"the {self.kind} {self.name} ({self._said}{used}{has})"
        return f"the {self.kind} {self.name} ({self._said}for {', '.join(self.entries[:_NAMED])})"

    @property
    def _said(self) -> str:
        return f"its log named it last at {self.last:%Y-%m-%d %H:%M:%S} UTC; " if self.last else "its log names it; "

    def shown(self) -> dict[str, Any]:
        """As a row of evidence."""
        return {"server": self.server, self.kind.replace(" ", "_"): self.name, "used_by": self.total or len(self.entries),
                "position": None}  # fmt: skip


def unknown_to(context: DetectorContext, server: str) -> Iterator[Unknown]:
    """What the errors log of the server names as unknown to its schema, each class or attribute once."""
    found: dict[str, Unknown] = {}
    complain: dict[str, set[str]] = {}
    for log in session_logs(context.case):
        for row, place in log.lines(("schema_violation",), WITH_TEXT):
            if not (named := _UNKNOWN.search(row["text"] or "")):
                continue
            name, kind = named[1] or named[2], "object class" if named[1] else "attribute"
            complain.setdefault(name, set()).add(log.server)
            if log.server == server:
                one = found.setdefault(name, Unknown(name, kind, server))
                one.last = place.at or one.last
                entry = re.search(r'Entry "([^"]{1,300})"', row["text"] or "")
                if entry and entry[1] not in one.entries:
                    one.entries.append(entry[1])
    for one in found.values():
        _users(context, one, complain[one.name])
        yield one


def _users(context: DetectorContext, one: Unknown, complain: set[str]) -> None:
    """Count the entries that carry it, on the server itself if its entries were collected, else on the others."""
    column, value = ("attribute", one.name.lower()) if one.kind == "attribute" else ("value", one.name.lower())
    where = (pc.utf8_lower(pc.field(column)) == value) & (pc.field("state") == "present")
    if one.kind != "attribute":
        where &= pc.utf8_lower(pc.field("attribute")) == "objectclass"
    for server in sorted({each.server for each in context.inputs}):
        names: set[str] = set()
        rows = context.rows("entry_states", ["target"], where, snapshot=context.topology.snapshot, server=server)
        total = 0
        for batch in rows:
            for target in pc.unique(batch["target"]).to_pylist():
                total += 1
                if len(names) < _NAMED:
                    names.add(target)
        if total and server not in complain:
            one.known_on.append(server)
        if server == one.server or (total > one.total and one.total == 0):
            one.users, one.total = sorted(names), total
