"""What servers write, without the secrets in it: an export holds every password hash, and a collected folder travels.

A secret goes, the line that named it stays: that somebody's password was replaced is evidence.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from gzip import GzipFile
from typing import BinaryIO

from workbench.model import REMOVED
from workbench.systems.ds389.formats.changelog import redact_body
from workbench.systems.ds389.secrets import SECRETS

_CHUNK = 4 << 20
_PACKED = re.compile(rb"^change:: ?([A-Za-z0-9+/=\n ]*?)(?=\n(?! )|\Z)", re.MULTILINE)
_BORDER = re.compile(rb"\n(?:\r?\n)+")
_WIDTH = 78
_DUMPED = re.compile(rb"\t\t([A-Za-z][^:\s]*): |\t[a-z]+: |\t\t?-\r?\n|dbid: ")
"""What a line of `dbscan` begins with, unless it goes on with a value."""


def changelog(file: BinaryIO) -> Iterator[bytes]:
    """The changelog LDIF; a modification that holds a secret is packed again without it."""
    return map(_record, _blocks(file))


def entries(file: BinaryIO) -> Iterator[bytes]:
    """Entries as LDIF."""
    return map(entry, _blocks(file))


def entry(block: bytes) -> bytes:
    """One entry, or several, as LDIF."""
    return _redacted(block)


def dbscan(file: BinaryIO) -> Iterator[bytes]:
    """What `dbscan` prints of a changelog.

    It prints values as they are, with the line ends in them: all lines of a secret go.
    """
    in_secret = False
    for chunk in _chunks(file, 1 << 62):
        if not in_secret and not SECRETS.holds_one(_text(chunk)):
            yield chunk
            continue
        kept: list[bytes] = []
        for line in re.findall(rb"[^\n]*\n", chunk):
            begins = _DUMPED.match(line)
            if begins:
                if in_secret and not line.startswith(b"\t"):
                    kept.append(b"\n")  # went with the secret before it, as the end of a record
                in_secret = bool(begins[1]) and SECRETS.is_secret(_text(begins[1]))
            if begins or not in_secret:
                kept.append(_bytes(SECRETS.redact(_text(line))))
        yield b"".join(kept)


def log(file: BinaryIO | GzipFile, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a log; a line that was not finished is left out: the server still writes it."""
    for chunk in _chunks(file, size):
        text = _text(chunk)
        if not SECRETS.holds_one(text):
            yield chunk
            continue
        # Line by line, so that only the lines with secrets change: continued lines are joined otherwise.
        yield b"".join(_bytes(SECRETS.redact(line)) for line in text.splitlines(keepends=True))


def _chunks(file: BinaryIO | GzipFile, size: int) -> Iterator[bytes]:
    """Runs of whole lines."""
    rest = b""
    while size and (data := file.read(min(_CHUNK, size))):
        size -= len(data)
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end:]


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The blocks of LDIF, each with the empty lines behind it, but for those of the next chunk: they go before the next."""
    rest = b""
    while data := file.read(_CHUNK):
        rest += data
        at = 0
        for border in _BORDER.finditer(rest):
            yield rest[at : border.end()]
            at = border.end()
        rest = rest[at:]
    if rest:
        yield rest


def _record(block: bytes) -> bytes:
    """One record of the changelog. What its base64 holds is looked into, for it hides what the rules look for."""
    packed = _PACKED.search(block)
    if not packed:
        return _redacted(block)
    head, tail = block[: packed.start()], block[packed.end() :]
    try:
        body = base64.b64decode(packed[1].replace(b"\n ", b"").strip(), validate=True)
    except ValueError:
        return _redacted(head) + f"change: {REMOVED}".encode() + _redacted(tail)  # what cannot be looked at is not kept
    text = _text(body)
    clean = redact_body(text)
    change = packed[0] if clean == text else _folded(b"change:: " + base64.b64encode(_bytes(clean)))
    return _redacted(head) + change + _redacted(tail)


def _folded(line: bytes) -> bytes:
    first, rest = line[:_WIDTH], line[_WIDTH:]
    width = _WIDTH - 1
    return b"\n ".join([first, *(rest[at : at + width] for at in range(0, len(rest), width))])


def _redacted(block: bytes) -> bytes:
    text = _text(block)
    clean = redact_body(text)
    return block if clean == text else _bytes(clean)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
