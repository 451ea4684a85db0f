"""Dated evidence of a made-up mesh: lines of access logs, stamps of vectors, and a slow replay of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mesh_samples import SUFFIX, Claims, agreement, changelog, elements, replica

from workbench.systems.ds389.csn import origin_of

BEGINNING = 0x66000000
"""The second 0 of `mesh_samples.csn`."""


class Seen(NamedTuple):
    """A server applied a change so many milliseconds after the beginning, by its own clock."""

    ms: int
    server: str
    position: str


def at(seconds: float) -> datetime:
    """So many seconds after the beginning."""
    return datetime.fromtimestamp(BEGINNING, UTC) + timedelta(milliseconds=round(seconds * 1000))


def access_log(seen: Iterable[Seen], server: str) -> str:
    """The server's access log: two lines for each change that it applied."""
    lines = []
    for number, one in enumerate(one for one in seen if one.server == server):
        stamp = f"[{at(one.ms / 1000):%d/%b/%Y:%H:%M:%S}.{one.ms % 1000:03d}000000 +0000] conn=1 op={number}"
        lines.append(f'{stamp} MOD dn="uid=u{number},{SUFFIX}"')
        lines.append(f"{stamp} RESULT err=0 tag=103 nentries=0 wtime=0.001 optime=0.001 etime=0.002 csn={one.position}")
    return "\n".join(lines) + "\n" if lines else ""


def stamped(rid: int, found: Claims, stamps: dict[int, float]) -> str:
    """The replica entry of a server whose vector moved so many seconds after the beginning."""
    entry = replica(rid, elements(found)).rstrip("\n")
    lines = [
        f"nsruvReplicaLastModified: {{replica {origin} ldap://localhost.localdomain:{38900 + origin}}} "
        f"{BEGINNING + int(second):08x}"
        for origin, second in stamps.items()
    ]
    return "\n".join([entry, *lines]) + "\n\n"


def server_files(
    name: str,
    rid: int,
    found: Claims,
    seen: Iterable[Seen] = (),
    *,
    logged: Iterable[str] = (),
    links: Iterable[int] = (),
    stamps: dict[int, float] | None = None,
) -> dict[str, str]:
    """What was collected of one server; `links` are the replica IDs that it sends to."""
    files = {
        f"{name}.changelog.ldif": changelog(logged),
        f"{name}.replica.ldif": stamped(rid, found, stamps or {}),
        f"{name}.agreements.ldif": "".join(agreement(f"{name}-to-s{to}", 38900 + to) for to in links),
    }
    log = access_log(seen, name)
    return {key: text for key, text in {**files, f"{name}.access.log": log}.items() if text.strip()}


class Bounds(NamedTuple):
    """What a server had for certain, and what it did not have yet or had not gone beyond (`included`)."""

    low: str | None
    high: str | None
    included: bool = False


def replayed(
    seen: Iterable[Seen],
    server: str,
    origin: str,
    when: datetime,
    *,
    own: Iterable[str] = (),
    claimed: tuple[str, int | None] | None = None,
    newest: int | None = None,
) -> Bounds:
    """The same by hand: every event looked at, one after the other.

    own      positions that the server made, in its log
    claimed  the last position in its vector, and the second in which it moved there; `newest`: the vector's newest stamp
    """
    had: list[str] = []
    not_yet: list[tuple[str, bool]] = []
    for one in seen:
        if one.server == server and origin_of(one.position) == origin:
            if at(one.ms / 1000) <= when:
                had.append(one.position)
            else:
                not_yet.append((one.position, False))
    for position in own:
        second = int(position[:8], 16) - BEGINNING
        if at(second + 1) <= when:
            had.append(position)
        if when < at(second):
            not_yet.append((position, False))
    if claimed:
        position, moved = claimed
        if moved is not None and at(moved + 1) <= when:
            had.append(position)
        if moved is not None and when < at(moved):
            not_yet.append((position, False))
        elif newest is not None and when <= at(newest):
            not_yet.append((position, True))
    low = max(had, default=None)
    above = [(position, held) for position, held in not_yet if position > (low or "") or (held and position == low)]
    high, included = min(above, default=(None, False))
    return Bounds(low, high, included)


_RESULT = re.compile(
    r"^\[(\d\d)/Nov/(\d{4}):(\d\d):(\d\d):(\d\d)\.(\d{6})\d* \+0000\] .* RESULT err=0 .* csn=([0-9a-f]{20})"
)


def results(text: str) -> dict[str, datetime]:
    """Per position when a captured access log says that it was applied."""
    found = {}
    for line in text.splitlines():
        if parts := _RESULT.match(line):
            day, year, hour, minute, second, fraction = map(int, parts.groups()[:6])
            found[parts[7]] = datetime(year, 11, day, hour, minute, second, fraction, tzinfo=UTC)
    return found
