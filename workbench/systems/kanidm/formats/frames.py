"""What two Kanidm servers said to each other: frames (8 bytes of length, then JSON), or the same as lines of JSON.

A consumer's frame tells its ranges, which are its vector at that moment. A supplier's tells its answer. Both are kept as
messages; the entries of an answer are counted, and nothing of them is kept: they may hold credentials.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from workbench import tables
from workbench.model import LINES, WHOLE, Format, Parsed, Piece, Reject
from workbench.systems.kanidm.cid import cid_text
from workbench.systems.kanidm.formats.documents import nanoseconds_of, parsed, uuid_of

_LENGTH = struct.Struct(">Q")
_LONGEST = 256 << 20
_WORDS = ("Ping", "Pong", "Refresh")
_REPLIES = {
    "domainmismatch": "domain_mismatch",
    "nochangesavailable": "no_changes",
    "refreshrequired": "refresh_required",
    "unwillingtosupply": "unwilling",
}


def _in_frames(piece: Piece) -> Iterator[tuple[int, bytes | str]]:
    """(place, bytes) of each frame; a text says why there is none."""
    data, at = piece.data, 0
    while at < len(data):
        if len(data) - at < _LENGTH.size:
            yield piece.offset + at, "the length of a frame is cut"
            return
        (length,) = _LENGTH.unpack_from(data, at)
        if length > _LONGEST:
            yield piece.offset + at, "the length of a frame is beyond the limit: what follows cannot be found"
            return
        body = data[at + _LENGTH.size : at + _LENGTH.size + length]
        yield piece.offset + at, body if len(body) == length else "a frame is cut"
        at += _LENGTH.size + length


def _in_lines(piece: Piece) -> Iterator[tuple[int, bytes | str]]:
    at = piece.offset
    for line in piece.data.split(b"\n"):
        if line.strip():
            yield at, line
        at += len(line) + 1


def _ranges(given: Any) -> dict[str, tuple[int, int]]:
    if not isinstance(given, Mapping):
        raise ValueError("a frame without ranges")
    found = {}
    for server, ends in given.items():
        if not isinstance(ends, Mapping):
            raise ValueError("a range is none")
        found[uuid_of(server)] = nanoseconds_of(ends.get("m")), nanoseconds_of(ends.get("x"))
    return found


def _message(frame: Any) -> dict[str, Any]:
    """The row of a frame, and under `vector` and `domain` what its sender claims."""
    if frame in _WORDS:
        return {"code": frame.lower()}
    if not isinstance(frame, Mapping) or len(frame) != 1:
        raise ValueError("not a frame")
    ((about, body),) = frame.items()
    if isinstance(body, str) and body in _REPLIES:
        return {"code": _REPLIES[body]}
    if about not in ("Incremental", "Refresh") or not isinstance(body, Mapping) or len(body) != 1:
        raise ValueError("not a frame")
    ((version, said),) = body.items()
    if not isinstance(said, Mapping):
        raise ValueError("not a frame")
    ranges = _ranges(said.get("ranges"))
    domain = uuid_of(said.get("domain_uuid"))
    numbers = {f"range {origin}": f"{low:032d} -> {high:032d}" for origin, (low, high) in sorted(ranges.items())}
    numbers["domain_uuid"] = domain
    if version == "V1":
        return {"code": "pulls", "numbers": numbers, "vector": ranges, "domain": domain}
    entries = sum(
        len(some) for name in ("schema_entries", "meta_entries", "entries") if isinstance(some := said.get(name), list)
    )
    code = "supplies" if about == "Incremental" else "refreshes"
    return {"code": code, "numbers": numbers | {"entries": str(entries)}}


def _read(piece: Piece, frames: Iterator[tuple[int, bytes | str]]) -> Parsed:
    messages: list[dict[str, Any]] = []
    vectors: list[dict[str, Any]] = []
    rejects: list[Reject] = []
    for at, body in frames:
        try:
            if isinstance(body, str):
                raise ValueError(body)
            row = _message(parsed(body))
        except ValueError as error:
            rejects.append(Reject(at, str(error).partition(": line ")[0]))  # no excerpt: a frame is made of values
            continue
        for origin, (low, high) in sorted(row.pop("vector", {}).items()):
            ends = {"min": cid_text(low, origin), "max": cid_text(high, origin)}
            about = {"offset": at, "kind": "server", "holder": piece.source.server, "generation": row["domain"]}
            vectors.append({**about, "origin": origin, **ends})
        row.pop("domain", None)
        numbers = list(row.pop("numbers", {}).items())
        messages.append({"offset": at, "severity": "info", "text": row["code"], "numbers": numbers, **row})
    made = {"messages": tables.table("messages", messages)} if messages else {}
    made |= {"vectors": tables.table("vectors", vectors)} if vectors else {}
    return Parsed(len(messages) + len(rejects), rejects, made, {"frames": len(messages)})


def _are_frames(head: bytes, name: str) -> bool:
    if len(head) < _LENGTH.size + 2:
        return False
    (length,) = _LENGTH.unpack_from(head)
    return 2 <= length <= _LONGEST and _like_frame(head[_LENGTH.size :])


def _like_frame(body: bytes) -> bool:
    return body.startswith((b'{"Incremental":', b'{"Refresh":', *(b'"%s"' % word.encode() for word in _WORDS)))


FRAMES = Format(
    "kanidm.frames",
    _are_frames,
    lambda: lambda piece: _read(piece, _in_frames(piece)),
    WHOLE,
    empty={"frames": 0},
    variant="binary",
    evidence="ruv",
)

FRAME_LINES = Format(
    "kanidm.frames",
    lambda head, name: _like_frame(head),
    lambda: lambda piece: _read(piece, _in_lines(piece)),
    LINES,
    splittable=True,
    empty={"frames": 0},
    variant="lines",
    evidence="ruv",
)
