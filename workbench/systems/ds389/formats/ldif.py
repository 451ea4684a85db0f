"""Records of LDIF text, exactly as written: order, case and options of the attributes, and the place in the file.

RFC 2849 as servers and tools write it: folded lines, comments, `version:`, base64, URLs (kept as text, never fetched),
LF or CRLF. Python's LDIF libraries merge, sort and lower-case, and none of them knows where in the file it stands.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

from workbench.model import Piece, Reject
from workbench.safety import excerpt
from workbench.systems.ds389.secrets import SECRETS

CUT = "the file ends inside this entry"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NAME = re.compile(rb"[A-Za-z0-9][A-Za-z0-9.#_-]*(?:;[A-Za-z0-9_-]+)*")

_LEADING = re.compile(rb"(?:\r?\n)+")
_GAP = re.compile(rb"\n(?:\r?\n)+")
_LINE = re.compile(rb"([^:]*):([:<]?) *(.*)", re.DOTALL)


class Entry(NamedTuple):
    """One record: the place of its first byte, and (attribute with its options, value) in the order of the file."""

    offset: int
    lines: list[tuple[str, bytes]]

    @property
    def dn(self) -> str:
        """The name of the entry, which is the value of its first line."""
        return self.lines[0][1].decode("utf-8", "replace")

    def texts(self, attribute: str) -> list[str]:
        """The values of an attribute as text; its options and its case do not count."""
        wanted = attribute.lower()
        return [
            value.decode("utf-8", "replace") for name, value in self.lines if name.split(";", 1)[0].lower() == wanted
        ]

    def text(self, attribute: str) -> str | None:
        """The first value of an attribute as text, without blanks around it; None if there is none."""
        return next((value.strip() for value in self.texts(attribute)), None)


def blocks(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """(start, end, an empty line follows) of every run of lines between empty lines."""
    leading = _LEADING.match(data)
    start = leading.end() if leading else 0
    for gap in _GAP.finditer(data, start):
        yield start, gap.start() + 1, True
        start = gap.end()
    if start < len(data):
        yield start, len(data), False


def decode_base64(text: bytes) -> bytes:
    """The bytes that base64 text stands for. Raises ValueError for anything but whole, clean base64."""
    return binascii.a2b_base64(text.strip(), strict_mode=True)


def safe_excerpt(block: bytes) -> str:
    """The first line that is not a comment, harmless to print."""
    lines = unfolded(block).split(b"\n")
    return excerpt(next((line for line in lines if line and not line.startswith(b"#")), b""), SECRETS)


def unfolded(block: bytes) -> bytes:
    """The block with LF line ends and every folded line in one piece."""
    return block.replace(b"\r\n", b"\n").replace(b"\n ", b"")


def read_line(line: bytes) -> tuple[str, bytes]:
    """(attribute with options, value). Raises ValueError with the reason."""
    if not (found := _LINE.fullmatch(line)):
        raise ValueError("a line without a colon")
    name, sign, value = found.groups()
    if not NAME.fullmatch(name):
        raise ValueError("a line that does not begin with an attribute")
    if sign == b":":
        try:
            value = decode_base64(value)
        except ValueError:
            raise ValueError(f"invalid base64 in the attribute {name.decode()}") from None
    else:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"not UTF-8 text in the attribute {name.decode()}") from None
    return name.decode(), value


def content_lines(block: bytes) -> list[bytes]:
    """The unfolded lines of a block without comments and without `version:` in front."""
    lines = [line for line in unfolded(block).split(b"\n") if line and not line.startswith(b"#")]
    return lines[1:] if lines and lines[0].startswith(b"version:") else lines


def read_block(block: bytes, offset: int, cut: bool = False) -> Entry | Reject | None:
    """The record that a block of lines holds; None for comments, the `version:` line and ldapsearch's closing lines."""
    lines = content_lines(block)
    if cut and lines:
        return Reject(offset, CUT, safe_excerpt(block))
    if not lines or (lines[0].startswith(b"search: ") and any(line.startswith(b"result: ") for line in lines)):
        return None
    try:
        if block.startswith(b" "):
            raise ValueError("begins with the continuation of a line")
        entry = Entry(offset, [read_line(line) for line in lines])
        if entry.lines[0][0].lower() != "dn":
            raise ValueError("does not begin with dn:")
        entry.lines[0][1].decode()
    except UnicodeDecodeError:
        return Reject(offset, "the name of the entry is not UTF-8 text", safe_excerpt(block))
    except ValueError as error:
        return Reject(offset, str(error), safe_excerpt(block))
    return entry


def records(piece: Piece) -> Iterator[Entry | Reject]:
    """The entries of a piece in order; a Reject stands for one that cannot be read or that the file's end cuts."""
    data, base = piece.data, piece.offset
    if base == 0 and data.startswith(BYTE_ORDER_MARK):
        data, base = data[len(BYTE_ORDER_MARK) :], len(BYTE_ORDER_MARK)
    for start, end, whole in blocks(data):
        record = read_block(data[start:end], base + start, cut=piece.ended and not whole)
        if record is not None:
            yield record
