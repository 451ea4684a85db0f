"""What an access log tells of a suffix while it had no replica: from when to when, and what clients wrote there meanwhile.

Between the deletion of `cn=replica,cn="SUFFIX",cn=mapping tree,cn=config` and the next entry of that name the server records
no change: results have no CSN, no changelog has them, and no supplier sends them.

    22:38:02 DEL cn=replica,cn=dc\\3Dexample...   22:38:05 DEL uid=keep-0 err=0, no csn   22:38:06 ADD cn=replica,cn=dc\\3D...
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.systems.ds389.formats.access_operations import PRINTED, SILENT, Batch
from workbench.systems.ds389.formats.log_lines import Column
from workbench.systems.ds389.formats.log_times import NO_TIME, time_facts
from workbench.systems.ds389.formats.values import suffix_named

UNRECORDED = "unrecorded"
"""The fact: suffix -> when its replica was deleted -> `count` and the first `names` of what was written without one, and in `max`
when there was one again (None: the log does not show it)."""
_ADD, _DELETE = 105, 107
_SHOWN = 5
_REPLICA = re.compile(r'cn=replica, ?cn="?(?P<suffix>.+?)"?, ?cn=mapping tree, ?cn=config', re.IGNORECASE)
_ESCAPED = re.compile(r"\\([0-9a-fA-F]{2})")


Told = dict[str, dict[str, dict[str, Any]]]


@dataclass
class Unrecorded:
    """The suffixes of one server that have no replica at the moment -> since when, and how many names were told since."""

    off: dict[str, tuple[str, int]] = field(default_factory=dict)

    def read(self, batch: Batch, targets: pa.Array, replicated: Column) -> Told:
        """What the results of a batch tell, with the target of each."""
        found: Told = {}
        switches = self._switches(batch, targets)
        if not switches and not self.off:
            return found
        plain = (batch.csn == b"") & (batch.err == 0) & np.isin(batch.form, (PRINTED, SILENT)) & (replicated != 1)
        begins = dict.fromkeys(self.off, -1)
        for index, suffix, gone in switches:
            if gone and suffix not in self.off:
                self.off[suffix], begins[suffix] = (_time(batch.at[index]), 0), _asked(batch, index)
                self._told(found, suffix)
            elif not gone and suffix in self.off:
                within = (batch.offset > begins.pop(suffix)) & (batch.offset < batch.offset[index])
                self._written(found, suffix, batch, targets, plain & within)
                self._told(found, suffix)["max"] = _time(batch.at[index])
                del self.off[suffix]
        for suffix in list(self.off):
            self._written(found, suffix, batch, targets, plain & (batch.offset > begins[suffix]))
        return found

    def _told(self, found: Told, suffix: str) -> dict[str, Any]:
        off, _ = self.off[suffix]
        return found.setdefault(suffix, {}).setdefault(off, {"count": 0, "names": [], "max": None})

    def _written(self, found: Told, suffix: str, batch: Batch, targets: pa.Array, mine: Column) -> None:
        names = [str(targets[index].as_py() or "") for index in np.flatnonzero(mine).tolist()]
        names = [name for name in names if f",{suffix_named(name)}".endswith(f",{suffix}")]
        if names:
            off, named = self.off[suffix]
            told, more = self._told(found, suffix), names[: _SHOWN - named]
            told["count"] += len(names)
            told["names"] += more
            self.off[suffix] = off, named + len(more)

    @staticmethod
    def _switches(batch: Batch, targets: pa.Array) -> list[tuple[int, str, bool]]:
        """(number of the result, suffix, True if its replica was deleted) in the order of the log."""
        if not len(targets):
            return []
        named = pc.fill_null(pc.match_substring(targets, "mapping tree", ignore_case=True), False)
        mine = np.asarray(named) & (batch.err == 0) & np.isin(batch.tag, (_ADD, _DELETE))
        rows = []
        for index in np.flatnonzero(mine).tolist():
            if told := _REPLICA.fullmatch(targets[index].as_py()):
                text = _ESCAPED.sub(lambda digits: chr(int(digits[1], 16)), told["suffix"])
                if suffix := suffix_named(text):
                    rows.append((index, suffix, int(batch.tag[index]) == _DELETE))
        return rows


def _time(at: Any) -> str:
    return "" if at == NO_TIME else str(time_facts(np.array([at]))["time"]["min"])


def _asked(batch: Batch, index: int) -> int:
    """Where the request of a result stands: its replica was gone soon after, and the answer came seconds later."""
    mine = (batch.request_conn == batch.conn[index]) & (batch.request_op == batch.op[index])
    before = batch.request_offset[mine & (batch.request_offset < batch.offset[index])]
    return int(before.max()) if len(before) else -1
