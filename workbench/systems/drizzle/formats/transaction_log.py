"""transaction.log: records of transactions back to back, without a beginning or an end of the file's own."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from workbench.model import FRAMES, Format
from workbench.systems.drizzle.formats.framing import HEAD, TRANSACTION, frames, next_good
from workbench.systems.drizzle.formats.messages import open_form
from workbench.systems.drizzle.formats.segments import read

_NAME = "transaction.log"


def _is_log(head: bytes, name: str) -> bool:
    """True where the first record has the context of a transaction, or a whole good record stands behind damage."""
    if not head:
        return name == _NAME
    if len(head) < HEAD.size:
        return False
    if HEAD.unpack_from(head)[0] == TRANSACTION and _has_context(head[HEAD.size :]):
        return True
    return b"\0" in head and next_good(head) < len(head)


def _has_context(body: bytes) -> bool:
    if len(body) < 2 or body[0] != 0x0A or len(body) < 2 + body[1]:
        return False
    try:
        return open_form("TransactionContext").FromString(body[2 : 2 + body[1]]).IsInitialized()
    except DecodeError:
        return False


TRANSACTION_LOG = Format(
    "drizzle.transaction-log",
    _is_log,
    lambda: read,
    FRAMES,
    splittable=True,
    evidence="log",
    is_log=True,
    frames=frames,
    evidence="log",
    is_log=True,
)
