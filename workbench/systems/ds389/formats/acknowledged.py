"""Which change the result of a JSON access log answers for, and whether it proves that the server applied it.

A supplier sends each change with a control that holds the CSN. A server that had the change already answers with success as
well, so the answer alone proves nothing. It had it, or took it for one that it had, only if its vector covered the CSN by
then, that is: if it had seen this change or a later one of the same origin.

    06:01:13 RESULT of 6b067a2f0000000b0000, err 0      the log began at 06:01:12, the change was made later: RECEIVED
    06:01:14 RESULT of 6b067a300000000b0000, err 0      newer than all before it of the origin 000b: RECEIVED
    06:01:15 RESULT of 6b067a2f0000000b0000, err 0      not newer: ACKNOWLEDGED, applied or not

Own changes of a server are in no line of its JSON log, so of its own origin RECEIVED proves nothing either.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from workbench.systems.ds389.csn import csn_or_none, origin_of
from workbench.systems.ds389.formats.access_operations import ACKNOWLEDGED, RECEIVED, Batch
from workbench.systems.ds389.formats.log_lines import Column
from workbench.systems.ds389.formats.log_times import NO_TIME

_UPDATE_CONTROL = "2.16.840.1.113730.3.4.13"
_OCTETS, _SEQUENCE = 0x04, 0x30

# Requests whose result never comes (the server crashed) are forgotten, oldest first.
_MOST_OPEN = 200_000


def received_csn(line: dict[str, Any]) -> str | None:
    """The CSN with which a supplier sent the change of a request, by the controls in a line of a JSON access log."""
    controls = line.get("request_controls")
    for control in controls if isinstance(controls, list) else ():
        if isinstance(control, dict) and control.get("oid") == _UPDATE_CONTROL:
            return _csn_in(control.get("value"))
    return None


def _csn_in(value: Any) -> str | None:
    """The second text of `SEQUENCE { entry's unique id, CSN, [unique id of the parent], ... }` in BER and base64.

    >>> _csn_in("MDsEI2UyZTliNjkyLWU4OTMxMWYxLThlMWZlYjY5LTJkOTAzOWVjBBQ2YjA2NzZkZjAwMDAwMDE2MDAwMA==")
    '6b0676df000000160000'
    """
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
        texts = [text for tag, text in _elements(_only_sequence(data)) if tag == _OCTETS]
        return csn_or_none(texts[1].decode("ascii"))
    except (binascii.Error, IndexError, ValueError):
        return None


def _only_sequence(data: bytes) -> bytes:
    ((tag, content),) = _elements(data)
    if tag != _SEQUENCE:
        raise ValueError("not a sequence")
    return content


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each element of BER; ValueError or IndexError if it is none."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length >= 0x80:  # so many bytes hold the length
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("an element ends behind the data")
        yield tag, data[at : at + length]
        at += length


class Acknowledged:
    """What one server's access log has shown so far of received changes: open requests, and the newest of each origin."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], str] = {}
        self._newest: dict[str, str] = {}
        self._began: int | None = None

    def __deepcopy__(self, memo: Any) -> Acknowledged:
        other = Acknowledged()
        other._open, other._newest, other._began = dict(self._open), dict(self._newest), self._began
        return other

    def asked(self, conn: int, op: int, csn: str | None) -> None:
        """A request for an update, with the CSN that it brings if it comes from a supplier."""
        self._open.pop((conn, op), None)
        if csn:
            self._open[conn, op] = csn
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]

    def answered(self, conn: int, op: int | None) -> str | None:
        """The CSN that the request of this result brought, if it is known."""
        return self._open.pop((conn, -1 if op is None else op), None)

    def judge(self, batch: Batch, times: Column) -> None:
        """Tell which results of a batch, in the order of its lines, answer for the newest change of its origin so far."""
        known = times[times != NO_TIME]
        if self._began is None and len(known):
            self._began = int(known.min())
        received = batch.form == ACKNOWLEDGED
        for index in np.flatnonzero((batch.csn != b"") & (batch.err == 0)).tolist() if received.any() else ():
            csn = batch.csn[index].decode().lower()
            origin = origin_of(csn)
            newest = csn > self._newest.get(origin, "")
            if newest:
                self._newest[origin] = csn
            if received[index] and newest and self._began is not None and int(csn[:8], 16) * 1_000_000 >= self._began:
                batch.form[index] = RECEIVED

    def seen(self, by_origin: Mapping[str, Mapping[str, Any]]) -> None:
        """The newest of each origin in a batch that was settled, also of the text form."""
        for origin, span in by_origin.items():
            self._newest[origin] = max(span["max"], self._newest.get(origin, ""))
