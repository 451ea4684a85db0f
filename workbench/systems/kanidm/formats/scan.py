"""What `kanidmd db-scan list-id2entry` and `kanidmd database verify` print: one entry a line, one error a line."""

from __future__ import annotations

import re
from typing import Any

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.kanidm.cid import UUID, cid_or_none, nanoseconds, origin_of
from workbench.systems.kanidm.formats.documents import CREATED, DELETED, TOMBSTONE
from workbench.systems.kanidm.secrets import SECRETS

_ENTRY = re.compile(
    rf"\s*(?P<id>[0-9]+): v[0-9]+ - \{{ Uuid\(\[(?P<uuid>{UUID.pattern})\]\), "
    rf"(?P<what>created|tombstoned): (?P<cid>[0-9]{{32}}-{UUID.pattern}), (?:\w+\(\[(?P<name>[^\]]*)\]\), )?\}}\s*",
    re.IGNORECASE,
)
_LIKE_ENTRY = re.compile(rb"\s*[0-9]+: v[0-9]+ - \{ ")
_ERROR = re.compile(r"\s*Err\((?P<name>[A-Z]\w*)(?:\((?P<about>.*)\))?\),?\s*")
_LIKE_ERROR = re.compile(rb"\s*Err\([A-Z]")


def _lines(piece: Piece) -> list[tuple[int, str]]:
    found, at = [], piece.offset
    for line in piece.data.split(b"\n"):
        if line.strip():
            found.append((at, line.decode("utf-8", "backslashreplace").rstrip("\r")))
        at += len(line) + 1
    return found


def read_entries(piece: Piece) -> Parsed:
    """The entries of a scan: which there are, when each was made, and which are tombstones. Of changes it tells nothing."""
    states: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    rejects = []
    lines = _lines(piece)
    for at, line in lines:
        found = _ENTRY.fullmatch(line)
        cid = cid_or_none(found["cid"]) if found else None
        if found is None or cid is None or nanoseconds(cid) >= 2**63:
            rejects.append(Reject(at, "not a line of an entry", excerpt(line, SECRETS)))
            continue
        dead = found["what"].lower() == "tombstoned"
        name = (found["name"] or "").split(",")[0].strip().strip('"') or None
        about = {"offset": at, "entry": found["uuid"].lower()}
        moment = {"origin": origin_of(cid), "hi": nanoseconds(cid)}
        states.append({**about, "kind": DELETED if dead else CREATED, "attribute": None, **moment})
        entries.append({**about, "target": name, "class": TOMBSTONE if dead else None, "source": None})
    made = {"states": tables.table("states", states), "entries": tables.table("entries", entries)} if states else {}
    dead_ones = sum(one["class"] == TOMBSTONE for one in entries)
    return Parsed(len(lines), rejects, made, {"live": len(entries) - dead_ones, "tombstones": dead_ones})


def read_verify(piece: Piece) -> Parsed:
    """The errors that a verification of the database found; a line in other words says nothing."""
    rows = []
    lines = _lines(piece)
    for at, line in lines:
        if found := _ERROR.fullmatch(line):
            rows.append(
                {
                    "offset": at,
                    "severity": "error",
                    "code": found["name"],
                    "text": excerpt(line.strip(), SECRETS, 500),
                }
            )
    return Parsed(len(lines), [], {"messages": tables.table("messages", rows)} if rows else {}, {"errors": len(rows)})


DB_SCAN = Format(
    "kanidm.db-scan",
    lambda head, name: bool(_LIKE_ENTRY.match(head)),
    lambda: read_entries,
    LINES,
    splittable=True,
    empty={"live": 0, "tombstones": 0},
    variant="entries",
)

VERIFY = Format(
    "kanidm.db-scan",
    lambda head, name: bool(_LIKE_ERROR.match(head)),
    lambda: read_verify,
    LINES,
    splittable=True,
    empty={"errors": 0},
    variant="verify",
)
