"""Object classes and attributes that a server does not know, as its own logs name them, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.model import counted, listed
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


def unknown_names(context: DetectorContext) -> dict[str, list[Unknown]]:
    """Server -> what its errors log names as unknown to its schema, each class or attribute once; without who uses it."""
    found: dict[str, dict[str, Unknown]] = {}
    for log in session_logs(context.case):
        for row, place in log.lines(("schema_violation",), WITH_TEXT):
            if named := _UNKNOWN.search(row["text"] or ""):
                name, kind = named[1] or named[2], "object class" if named[1] else "attribute"
                unknown = found.setdefault(log.server, {}).setdefault(name, Unknown(name, kind, log.server))
                unknown.last = place.at or unknown.last
                entry = re.search(r'Entry "([^"]{1,300})"', row["text"] or "")
                if entry and entry[1] not in unknown.entries:
                    unknown.entries.append(entry[1])
    return {server: list(names.values()) for server, names in found.items()}


def unknown_to(context: DetectorContext, server: str) -> Iterator[Unknown]:
    """The same for one server, with the entries that use it."""
    by_server = context.once(unknown_names)
    for unknown in by_server.get(server, ()):
        complain = {name for name, others in by_server.items() if any(one.name == unknown.name for one in others)}
        used = replace(unknown, known_on=[])
        _users(context, used, complain)
        yield used


def know_first(context: DetectorContext, server: str, suffix: str | None) -> str:
    """What comes before a server is filled whose log called classes of entries unknown, as words that lead on; else empty.

    Of a class that it does not know the entries come all the same; each that changes later gets a mark, and the mark stays.
    """
    unknown = [
        one
        for one in context.once(unknown_names).get(server, ())
        if one.kind != "attribute"
        and (not suffix or not one.entries or any(x.lower().endswith(suffix.lower()) for x in one.entries))
    ]
    if not unknown:
        return ""
    last = max((one.last for one in unknown if one.last), default=None)
    when = (
        f" (its log named {'it' if len(unknown) == 1 else 'them'} last at {last:%Y-%m-%d %H:%M:%S} UTC)" if last else ""
    )
    return (
        f"see whether {server} knows {listed([one.name for one in unknown], most=_NAMED)} by now{when}, and if not, put the "
        "schema file of the servers that know it there and `dsconf INSTANCE schema reload`, then "
    )


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
