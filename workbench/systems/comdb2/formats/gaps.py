"""What one dump of a log proves of itself: which records lack, and which stand there twice.

The next record begins where the content and the head of the last one end, or at {file + 1:28}. So a record that lacks shows
without any other source: but for those at the end of a file, of which only the size of that file tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.model import Parsed, Piece
from workbench.systems.comdb2.lsn import FIRST, HEAD, lsn_text
from workbench.tables import Numbers


class Gaps:
    """Takes the records of a dump in any order and piece by piece, twelve bytes for each, and tells what lacks among them."""

    def __init__(self) -> None:
        self._places: list[Numbers] = []
        self._lengths: list[Numbers] = []
        self._commits = self._sentinels = 0

    def add(self, piece: Piece, parsed: Parsed) -> None:
        """The records of one more piece."""
        self._commits += parsed.facts.get("commits", 0)
        self._sentinels += parsed.facts.get("sentinels", 0)
        records = parsed.tables.get("records")
        if records is not None:
            hi, lo = records["hi"].to_numpy(), records["lo"].to_numpy()
            self._places.append((hi.astype(np.uint64) << np.uint64(32)) | lo.astype(np.uint64))
            self._lengths.append(records["length"].to_numpy().astype(np.uint32))

    def detail(self) -> dict[str, Any]:
        """As the contract has it; `overlaps` are records that begin within another one."""
        places = np.concatenate(self._places) if self._places else np.array([], np.uint64)
        lengths = np.concatenate(self._lengths) if self._lengths else np.array([], np.uint32)
        self._places, self._lengths = [places], [lengths]
        told = {"records": len(places), "commits": self._commits, "sentinels": self._sentinels}
        if not len(places):
            return {"first": None, "last": None, **told, "gaps": [], "overlaps": [], "duplicates": 0}
        ordered, ends = _in_order(places, lengths)
        gaps, overlaps = gaps_in(ordered, ends)
        return {
            "first": _text(ordered[0]),
            "last": _text(ordered[-1]),
            **told,
            "gaps": _pairs(ordered, gaps),
            "overlaps": _pairs(ordered, overlaps),
            "duplicates": len(places) - len(ordered),
        }


def _in_order(places: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """Each place once, in order, and where what stands there ends: of several that claim the place, the longest."""
    if not bool((places[1:] > places[:-1]).all()):
        order = np.lexsort((lengths, places))
        places, lengths = places[order], lengths[order]
        last = np.append(places[1:] != places[:-1], True)
        places, lengths = places[last], lengths[last]
    return places, places + lengths.astype(np.uint64) + np.uint64(HEAD)


def gaps_in(places: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """(numbers of the records behind which one lacks, of those within which the next one begins); `places` ascend."""
    file, there = places[1:] >> np.uint64(32), places[1:] & np.uint64(0xFFFFFFFF)
    before, end = places[:-1] >> np.uint64(32), ends[:-1]
    same = file == before
    turned = (file == before + np.uint64(1)) & (there == np.uint64(FIRST))
    lacks = np.where(same, places[1:] > end, ~turned)
    return np.flatnonzero(lacks), np.flatnonzero(same & (places[1:] < end))


def _text(place: np.uint64) -> str:
    return lsn_text((int(place) >> 32, int(place) & 0xFFFFFFFF))


def _pairs(places: Numbers, numbers: Numbers) -> list[dict[str, str]]:
    return [{"after": _text(places[one]), "next_present": _text(places[one + 1])} for one in numbers]
