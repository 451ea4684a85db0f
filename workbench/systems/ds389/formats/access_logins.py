"""Logins under names below cn=config, as suppliers use them: how often they failed, and when they last succeeded.

    [time] conn=7 fd=64 slot=64 SSL connection from 192.0.2.7 to 192.0.2.1
    [time] conn=7 op=0 BIND dn="cn=replication manager,cn=config" method=128 version=3
    [time] conn=7 op=0 RESULT err=49 tag=97 nentries=0 ... - Invalid credentials

In the JSON forms BIND has `bind_dn`, and RESULT has `client_ip`. A login of which the result is not there may have succeeded: of
it nobody will say that it failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.systems.ds389.formats.log_lines import Column, Lines, stands
from workbench.systems.ds389.formats.log_times import NO_TIME, time_facts
from workbench.systems.ds389.formats.values import clean

_BIND = re.compile(rb'BIND dn="([^"\n]{1,256},cn=config)" method=')
_FROM = re.compile(rb"slot=[0-9]{1,9} (?:SSL )?connection from ([0-9A-Fa-f.:]{2,45}|local) to ")
_ADDRESS = re.compile(r"[0-9A-Fa-f.:]{2,45}|local")
_REFUSED, _BIND_RESULT = 49, 97
_HINT = b',cn=config" method='
_WAITING = 10_000
"""Logins without a result, and open connections, that are remembered."""
_PAIRS = 500
"""Names and addresses that are told apart in one log; `logins_cut` says that there were more."""


class Logins:
    """The logins of one log while it goes by."""

    def __init__(self) -> None:
        self._from: dict[int, str] = {}
        self._asked: dict[tuple[bool, int, int], tuple[str, int]] = {}
        self._pairs: frozenset[tuple[str, str]] = frozenset()
        self._found: dict[str, dict[str, dict[str, Any]]] = {}
        self._cut = False

    def __deepcopy__(self, memo: Any) -> Logins:
        other = Logins()
        other._from, other._asked, other._pairs = dict(self._from), dict(self._asked), self._pairs
        return other

    def read_text(
        self, lines: Lines, rows: Column, conn: Column, op: Column, phrase: Column, said: Column, times: Column
    ) -> None:
        """The lines of the text form; the columns are those of its lines with a connection number."""
        opened, closed = phrase == 0, stands(phrase, b"fd=")
        asks = np.zeros(len(rows), bool)
        if _HINT in lines.data:
            binds = np.flatnonzero(stands(phrase, b"BIND dn="))
            asks[binds[np.array([_HINT in lines.raw(row) for row in rows[binds].tolist()], bool)]] = True
        known = np.array([key[1] for key in self._asked if not key[0]], np.int64)
        _, behind = lines.signed(said + 11, 9)
        answers = stands(phrase, b"RESULT ") & np.isin(conn, np.concatenate((known, conn[asks])))
        answers &= lines.says(behind, b" tag=97 ")
        opened &= ~_closed_later(conn, opened, closed) | np.isin(conn, conn[asks])
        closed &= np.isin(conn, np.concatenate((np.array([*self._from], np.int64), conn[opened])))
        for at in np.flatnonzero(opened | closed | asks | answers).tolist():
            raw, number = lines.raw(int(rows[at])), int(conn[at])
            if opened[at]:
                if source := _FROM.search(raw):
                    self._from[number] = source[1].decode().lower()
                    if len(self._from) > _WAITING:
                        del self._from[next(iter(self._from))]
            elif closed[at]:
                self._from.pop(number, None)
            elif asks[at]:
                if bind := _BIND.search(raw):
                    self._ask((False, number, int(op[at])), bind[1], int(times[rows[at]]))
            elif (False, number, int(op[at])) in self._asked:
                self._answer((False, number, int(op[at])), self._from.get(number, ""), b" err=49 " in raw)

    def read_json(self, value: Mapping[str, Any], conn: int, op: int | None, at: int) -> None:
        """One line of the JSON forms: a request to log in, or the result of one."""
        if op is None:
            return
        name, address, key = value.get("bind_dn"), value.get("client_ip"), (True, conn, op)
        if value.get("operation") == "BIND" and isinstance(name, str) and name.endswith(",cn=config"):
            self._ask(key, name[:300].encode("utf-8", "replace"), at)
        elif key in self._asked and value.get("tag") == _BIND_RESULT:
            known = isinstance(address, str) and _ADDRESS.fullmatch(address)
            self._answer(key, str(address).lower() if known else "", value.get("err") == _REFUSED)

    def facts(self, ended: bool) -> dict[str, Any]:
        """What was read since: `{"logins": {name: {address: {"failed": 2, "failed_at": {"min", "max"}, "ended_at": {"max"}}}}}`.

        ended_at  of the last login that succeeded, or of which the result is not known
        address   empty where the beginning of the connection is not known
        """
        if ended:
            for key in list(self._asked):
                self._answer(key, "", False)
        found, cut, self._found, self._cut = self._found, self._cut, {}, False
        return {**({"logins": found} if found else {}), **({"logins_cut": True} if cut else {})}

    def _ask(self, key: tuple[bool, int, int], name: bytes, at: int) -> None:
        if key in self._asked:  # the numbers begin again with the server
            self._answer(key, "", False)
        self._asked[key] = clean(name.decode("utf-8", "replace")).lower(), at
        if len(self._asked) > _WAITING:
            self._answer(next(iter(self._asked)), "", False)

    def _answer(self, key: tuple[bool, int, int], address: str, refused: bool) -> None:
        name, microseconds = self._asked.pop(key)
        if (name, address) not in self._pairs and len(self._pairs) >= _PAIRS:
            self._cut = True
            return
        self._pairs |= {(name, address)}
        if microseconds == NO_TIME:
            return
        one = self._found.setdefault(name, {}).setdefault(address, {})
        at = time_facts(np.array([microseconds]))["time"]["max"]
        if refused:
            span = one.get("failed_at", {"min": at, "max": at})
            one["failed"] = one.get("failed", 0) + 1
            one["failed_at"] = {"min": min(span["min"], at), "max": max(span["max"], at)}
        else:
            one["ended_at"] = {"max": max(one.get("ended_at", {"max": at})["max"], at)}


def _closed_later(conn: Column, opened: Column, closed: Column) -> Column:
    """Of each line whether it opens a connection that a later one closes: of most, nothing has to be remembered."""
    ends = np.flatnonzero(closed)
    numbers, last = np.unique(conn[ends][::-1], return_index=True)
    later = np.zeros(len(conn), bool)
    begins = np.flatnonzero(opened)
    if len(numbers) and len(begins):
        place = np.minimum(np.searchsorted(numbers, conn[begins]), len(numbers) - 1)
        later[begins] = (numbers[place] == conn[begins]) & (ends[::-1][last[place]] > begins)
    return later
