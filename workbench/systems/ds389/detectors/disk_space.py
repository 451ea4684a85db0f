"""Servers whose disk is low, as their own disk monitoring says: they refuse changes for that, or stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.systems.ds389.formats.errors_log import NO_ACCESS_LOG
from workbench.systems.ds389.session_log.change_fixes import run
from workbench.systems.ds389.session_log.lines import WITH_TEXT, Place, Row, line_shown, session_logs

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_LOW, _STOPPING, _ROOM = "disk_low", "disk_stopping", "disk_room"
_READ_ONLY, _WRITABLE = "disk_read_only", "disk_writable"
_START = "starting"
_OF_DISK = (_LOW, _STOPPING, _READ_ONLY, _WRITABLE, _ROOM)
_SIGNAL = "Signaling slapd for shutdown"
"""What a line has with which the server ends itself."""


@dataclass(frozen=True)
class _Disk:
    """What the log of a server says of its disk since its last start.

    silent     it writes no access log
    read_only  when it began to refuse changes; it takes them again as soon as there is room
    waiting    when it said that it stops unless there is room soon; `ended` when it said that it stops now
    """

    path: str = ""
    kilobytes: int | None = None
    threshold: int | None = None
    since: datetime | None = None
    read_only: datetime | None = None
    silent: bool = False
    waiting: datetime | None = None
    ended: datetime | None = None
    rows: tuple[tuple[Row, Place], ...] = field(default=())

    def after(self, row: Row, place: Place) -> _Disk:
        """The same with one line more."""
        numbers, code = dict(row["numbers"] or ()), row["code"]
        kilobytes, threshold = numbers.get("kilobytes"), numbers.get("threshold")
        return replace(
            self,
            path=numbers.get("path") or self.path,
            kilobytes=int(kilobytes) if kilobytes else self.kilobytes,
            threshold=int(threshold) if threshold else self.threshold,
            since=self.since or place.at,
            read_only=(self.read_only or place.at) if code == _READ_ONLY else self.read_only,
            silent=self.silent or NO_ACCESS_LOG in (row["text"] or ""),
            waiting=(self.waiting or place.at) if code == _STOPPING else self.waiting,
            ended=place.at if _SIGNAL in (row["text"] or "") else self.ended,
            rows=(*self.rows, (row, place)),
        )


def disk_low(context: DetectorContext) -> Iterator[Finding]:
    """A server whose disk was low when its log was read: also one that has stopped for that and was not started since."""
    case, shown = context.case, context.topology
    low = {
        given.server
        for given in case.inputs
        if any(code in given.facts.get("codes", {}) for code in (_LOW, _READ_ONLY))
    }
    read = {given.server for given in case.inputs if given.snapshot == shown.snapshot and given.facts.get("codes")}
    for log in session_logs(case.until(shown.snapshot)) if low & read else ():
        if log.server in low & read and (disk := _state(log.lines((_START, *_OF_DISK), WITH_TEXT))):
            yield _finding(log.server, disk)


def _state(lines: Iterable[tuple[Row, Place]]) -> _Disk | None:
    """The state at the end of a log; None: the disk is not low by then."""
    disk: _Disk | None = None
    for row, place in lines:
        if row["code"] in (_START, _ROOM):
            disk = None  # a server whose disk is still low says so again as it starts
        elif row["code"] == _WRITABLE:
            disk = disk and replace(disk, read_only=disk.read_only if disk.ended else None)
        else:
            disk = (disk or _Disk()).after(row, place)
    return disk


def _finding(server: str, disk: _Disk) -> Finding:
    where = f" ({disk.path})" if disk.path else ""
    left = f", {disk.kilobytes:,} KB left" if disk.kilobytes is not None else ""
    least = f", at a threshold of {disk.threshold:,} bytes" if disk.threshold else ""
    if disk.ended:
        does, root = (
            f"it stopped itself for that at {_time(disk.ended)}",
            f"{server} has stopped itself, because its disk is low",
        )
    elif disk.read_only:
        does = f"since {_time(disk.read_only)} it refuses all changes for that, those of clients and of suppliers"
        root = f"{server} refuses all changes, because its disk is low"
    elif disk.waiting:
        does, root = "", f"{server} is about to stop itself, because its disk is low"
    else:
        does, root = "", ""
    if disk.waiting and not disk.ended:
        says = f"since {_time(disk.waiting)} it waits for room, and stops itself if none comes"
        does = f"{does}; {says}" if does else says
    does = "; ".join(filter(None, [does, "it has written no access log since then" if disk.silent else ""]))
    return Finding(
        "DISK_LOW",
        "error" if root else "warning",
        f"the disk of {server} has been low since {_time(disk.since)}, by its own log{where}{left}{least}"
        f"{'; ' if does else ''}{does}",
        server=server,
        root=root,
        since=disk.since.isoformat() if disk.since else None,
        evidence=first_few(line_shown(*given) for given in disk.rows),
        fix=(_room(server, disk),),
    )


def _room(server: str, disk: _Disk) -> dict[str, str | None]:
    lower = run(server, "config", "replace", "nsslapd-disk-monitoring-threshold=BYTES")
    enough = f"; or, if that room is enough, lower its threshold, {lower}"
    why = f"{server} stops where a disk stays below half of its threshold"
    caution = "delete no file of its database; old logs and exports can go"
    again = "what clients write there meanwhile may come into no changelog"
    if disk.ended:
        enough = f", and start it then, `dsctl INSTANCE start` on {server}; if that room is enough, first lower "
        enough += "nsslapd-disk-monitoring-threshold in its dse.ldif"
        caution = f"started before, it stops again, and {again}; {caution}"
    elif disk.read_only:
        why = "it makes its data writable again by itself as soon as there is room"
        caution = f"do not make them writable by hand: it refuses changes again within seconds, and {again}; {caution}"
    return step(f"free room on the disk of {server}{enough}", why, caution)


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "an unknown time"
