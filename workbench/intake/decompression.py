"""What is in a compressed file, chunk by chunk: gzip and zstd, told by their first bytes."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

PIECE = 8 << 20
"""How much is handled at once. Measured: below, the calls cost more than the work; above, the arrays fall out of the
processor's cache."""

# Logs pack 10 to 100 times. A file that unpacks to far more was made to fill disks.
_BOMB_RATIO, _BOMB_BYTES = 500, 256 << 20


PACKED = "compressed data"
"""How the reason begins of a reject that stands for all that could not be unpacked, however much that is."""


class Broken(Exception):
    """The compressed stream cannot be read further; the message says why."""


def unpacked(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a .gz or .zst file, chunk by chunk; several members or frames read as one stream."""
    taken = given = 0
    with open(path, "rb") as file:
        zstd = file.read(4) == b"\x28\xb5\x2f\xfd"
        file.seek(0)

        def decoder() -> Any:
            return zstandard.ZstdDecompressor().decompressobj() if zstd else zlib.decompressobj(wbits=31)

        now, whole = decoder(), True
        # zlib can be asked for bounded output. zstd cannot: four bytes may stand for 128 KiB, so it gets a little at a time.
        while raw := file.read(1 << 10 if zstd else 1 << 18):
            taken += len(raw)
            while raw:
                before = None if zstd else now.copy()
                try:
                    out = now.decompress(raw) if zstd else now.decompress(raw, PIECE)
                except (zlib.error, zstandard.ZstdError) as error:
                    if before and (out := _up_to_the_damage(before, raw)):
                        yield out
                    if whole and given:
                        raise Broken("bytes behind the end of the compressed data") from None
                    raise Broken(f"{PACKED} is damaged: {error}") from None
                raw = now.unused_data if now.eof else (b"" if zstd else now.unconsumed_tail)
                whole = now.eof
                given += len(out)
                if given > _BOMB_BYTES and given > _BOMB_RATIO * taken:
                    raise Broken(f"unpacks to more than {_BOMB_RATIO} times its size: not read further")
                if out:
                    yield out
                if now.eof:
                    now = decoder()
                    if not raw.strip(b"\0"):  # tape padding
                        raw = b""
        if not whole:
            raise Broken(f"{PACKED} ends early: the file was cut")


def _up_to_the_damage(decoder: Any, raw: bytes) -> bytes:
    """What zlib makes of the bytes before the one at which it fails: a call that fails gives nothing at all."""
    out = bytearray()
    with suppress(zlib.error):
        for at in range(len(raw)):
            out += decoder.decompress(raw[at : at + 1])
    return bytes(out)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, to be read at any place. What is packed is unpacked into a file that nobody else sees, up to any damage."""
    if not packed(path):
        with open(path, "rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as plain:
        with suppress(Broken):
            for chunk in unpacked(path):
                plain.write(chunk)
        yield plain


def packed(path: Path) -> bool:
    """True for gzip and zstd, told by their first bytes."""
    with open(path, "rb") as file:
        start = file.read(4)
    return start[:2] == b"\x1f\x8b" or start == b"\x28\xb5\x2f\xfd"
