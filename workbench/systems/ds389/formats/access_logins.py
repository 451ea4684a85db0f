"""Logins under names below cn=config, as suppliers use them: how often they failed, and when they last succeeded.

`[time] conn=7 op=0 BIND dn="cn=replication manager,cn=config" method=128 version=3` and the RESULT of the same connection and
operation. Only the text form is read. What one piece of a log does not hold together counts as a login that may have succeeded:
of it nobody will say that it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.systems.ds389.formats.log_times import first_time, time_facts
from workbench.systems.ds389.formats.values import clean

_HINT = b',cn=config" method='
_BIND = re.compile(
    rb'\[[^\]\n]{20,40}\] conn=([0-9]{1,18}) op=([0-9]{1,10}) BIND dn="([^"\n]{1,256},cn=config)" method='
)
_RESULT = re.compile(rb"err=([0-9]{1,4}) tag=97 ")
_FROM = re.compile(rb"slot=[0-9]{1,9} (?:SSL )?connection from ([0-9A-Fa-f.:]{2,45}|local) to ")
_REFUSED = b"49"
"""Invalid credentials."""
_MOST = 2_000
"""Logins of one piece that are looked at."""
_NEAR = 1 << 18
"""Bytes around a login in which its result, and the beginning of its connection, are looked for."""
_KEPT = 50
"""Names, and addresses of each, that one piece gives."""


def login_facts(data: bytes) -> dict[str, Any]:
    """`{"logins": {name: {address: {"failed": 2, "failed_at": {"min", "max"}, "ended_at": {"max"}}}}}`, or nothing.

    ended_at  of the last login that succeeded, or of which the result is not known
    address   empty where the beginning of the connection is not known

    Of a piece with more logins, names or addresses than are kept, `logins_cut` says so: there may be any others.
    """
    if data.count(_HINT) > _MOST:
        return {"logins_cut": 1}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, address, at, refused in _logins(data):
        one = found.setdefault(name, {}).setdefault(address, {})
        if len(found) > _KEPT or len(found[name]) > _KEPT:
            return {"logins_cut": 1}
        if refused:
            first = one.get("failed_at", {"min": at})["min"]
            one["failed"], one["failed_at"] = one.get("failed", 0) + 1, {"min": min(first, at), "max": at}
        else:
            one["ended_at"] = {"max": at}
    return {"logins": found} if found else {}


def _logins(data: bytes) -> Iterator[tuple[str, str, str, bool]]:
    """(name in lower case, address, time, True if it was refused) of each login."""
    at = -1
    while (at := data.find(_HINT, at + 1)) >= 0:
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        bind = _BIND.match(data, begin)
        time = first_time(data[begin : begin + 64])
        if not bind or time is None:
            continue
        place = data.find(b" conn=%b op=%b RESULT " % (bind[1], bind[2]), end, end + _NEAR) if end >= 0 else -1
        answer = _RESULT.match(data, data.index(b"RESULT ", place) + 7) if place >= 0 else None
        opened = data.rfind(b" conn=%b fd=" % bind[1], max(begin - _NEAR, 0), begin)
        source = _FROM.search(data, opened, data.find(b"\n", opened)) if opened >= 0 else None
        shown = time_facts(np.array([int(time)]))["time"]["max"]
        name = clean(bind[3].decode("utf-8", "replace")).lower()
        yield name, source[1].decode().lower() if source else "", shown, answer is not None and answer[1] == _REFUSED
