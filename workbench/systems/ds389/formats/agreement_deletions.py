"""When agreements were deleted, as an access log tells it: a person took the link to a consumer away.

A deletion that was refused took nothing away; one of which the log has no result counts.

`[time] conn=108 op=5 DEL dn="cn=s1-to-s3,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,cn=mapping tree,cn=config"`
`[time] conn=108 op=5 RESULT err=0 tag=107 nentries=0 ...`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from workbench.systems.ds389.formats.log_lines import Lines
from workbench.systems.ds389.formats.log_times import NO_TIME, iso_time, stamps
from workbench.systems.ds389.formats.values import clean, suffix_named

if TYPE_CHECKING:
    from workbench.systems.ds389.formats.access_operations import Batch

_LINE = re.compile(rb'(?: conn=(\d{1,18}) op=(\d{1,10}))? DEL dn="(cn=[^"\n]{1,2048},cn=mapping tree,cn=config)"')
_DN = re.compile(r"cn=((?:[^,\\]|\\.)+),cn=replica,cn=(.+),cn=mapping tree,cn=config", re.IGNORECASE)
_DELETE = 107
"""The tag of the result."""
_ESCAPED = re.compile(r"\\([0-9a-fA-F]{2})|\\(.)")


@dataclass(frozen=True)
class Deletion:
    """A request to delete an agreement.

    place   where it stands: offset, connection and operation; None: an operation of the server itself, of which no result is kept
    says    time, suffix and name of the agreement, with tabs between them; empty: it is about no agreement
    """

    place: tuple[int, int, int] | None
    says: str


@dataclass
class Deletions:
    """The requests of an access log of which the result has not come yet."""

    asked: list[Deletion] = field(default_factory=list)

    def read(self, asked: Sequence[Deletion], batch: Batch, ended: bool) -> list[str]:
        """What the deletions say that succeeded by a batch, and those without a result as the log ends."""
        self.asked += (one for one in asked if one.says)
        told, waiting = list[str](), list[Deletion]()
        for one in self.asked:
            err = _result(batch, one.place) if one.place else 0
            if err == 0 or (err is None and ended):
                told.append(one.says)
            elif err is None:
                waiting.append(one)
        self.asked = waiting
        return told


def _result(batch: Batch, place: tuple[int, int, int]) -> int | None:
    """The code of the first result behind a request; None: the batch has none."""
    offset, conn, op = place
    mine = (batch.conn == conn) & (batch.op == op) & (batch.tag == _DELETE) & (batch.offset > offset)
    found = np.flatnonzero(mine)
    return int(batch.err[found[0]]) if len(found) else None


def deletions(lines: Lines) -> list[Deletion]:
    """The deletions that lines of the text form tell."""
    said = list(_LINE.finditer(lines.data))
    if not said:
        return []
    times, _ = stamps(lines)
    on = [lines.data.count(b"\n", 0, found.start()) for found in said]
    places = [
        (int(lines.offset(lines.starts[line])), int(found[1]), int(found[2])) if found[1] else None
        for line, found in zip(on, said, strict=True)
    ]
    return [
        Deletion(place, deletion(int(times[line]), found[3].decode("utf-8", "replace")))
        for line, found, place in zip(on, said, places, strict=True)
    ]


def deletion(at: int, target: str | None) -> str:
    """Time, suffix and name of the agreement that is deleted; empty if the target is no agreement."""
    if not target or at == NO_TIME or target[-9:].lower() != "cn=config" or len(target) > 4096:
        return ""
    if not (found := _DN.fullmatch(target)):
        return ""
    name, suffix = (_plain(part) for part in found.groups())
    return "\t".join((iso_time(at), suffix_named(suffix) or "", clean(name)))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text.strip('"'))
