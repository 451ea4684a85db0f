"""The configuration of a database, `NAME.lrl`: a word and what belongs to it in each line, `#` begins a comment.

replicate_from shopdb @src1,src2        the source: hosts, or the name of a tier
replicate_wait 45                       it applies nothing that is younger than so many seconds
physrep_metadb physmeta @meta1          where the registry is
physrep_ignore audit,tmp                records of these tables are not applied
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from workbench import tables
from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.comdb2.secrets import SECRETS, harmless

_OF_REPLICATION = re.compile(
    r"(?:replicate_(?:from|wait)|physrep_\w+|revsql_\w+|tranlog_\w+|nonames|elect_highest_committed_gen|blocking_physrep)\b"
)
_OF_ANY = re.compile(
    r"(?:name|dbnum|dir|port|cluster|table|resource|cache|cachekb\w*|setattr|setsqlattr|sqllogger|logmsg|dtastripe|blobstripe"
    r"|hostname|procedure|round_robin_stripes|(?:init_with|enable|disable|allow|forbid|use|do|no|on|off|max|sc|net|osql|fdb)_?\w*)"
    r"(?:\s|\Z)"
)
_SHORTEST_SHARE = 2
"""Of the lines at least one in so many begins with a known word."""


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    """(place, text) of each line that says something, without its comment."""
    at = 0
    for raw in data.split(b"\n"):
        text = raw.decode("utf-8", "backslashreplace").split("#", 1)[0].strip()
        if text:
            yield at, text
        at += len(raw) + 1


class _Rows:
    """The lines as `inspect` shows them."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def add(self, piece: Piece, parsed: Parsed) -> None:
        if "settings" in parsed.tables:
            self._rows += parsed.tables["settings"].select(["name", "value"]).to_pylist()

    def detail(self) -> dict[str, Any]:
        return {"rows": self._rows}


def read(piece: Piece) -> Parsed:
    """Each line as a setting; a comment is a line that says nothing."""
    rows: list[dict[str, Any]] = []
    rejects = []
    count = sum(bool(line.strip()) for line in piece.data.split(b"\n"))
    for at, text in _lines(piece.data):
        name, _, value = text.partition(" ") if " " in text else text.partition("\t")
        if not re.fullmatch(r"[\w.:/-]{1,120}", name):
            rejects.append(Reject(piece.offset + at, "not a word and what belongs to it", excerpt(text, SECRETS)))
            continue
        shown = harmless(name, value.strip() or None)
        rows.append({"offset": piece.offset + at, "kind": "line", "name": name, "value": shown})
    return Parsed(count, rejects, {"settings": tables.table("settings", rows)} if rows else {})


def _is_lrl(head: bytes, name: str) -> bool:
    lines = [text for _, text in _lines(head)]
    ours = sum(bool(_OF_REPLICATION.match(text)) for text in lines)
    known = ours + sum(bool(_OF_ANY.match(text)) for text in lines)
    return known * _SHORTEST_SHARE >= max(len(lines), 1) and (ours > 0 or name.endswith(".lrl"))


LRL = Format(
    "comdb2.lrl",
    _is_lrl,
    lambda: read,
    LINES,
    splittable=True,
    empty={"rows": []},
    excerpt=lambda unit: excerpt(unit, SECRETS),
    detail=_Rows,
)
