"""The audit log and the security log: recognised and counted, nothing of them is kept.

Neither carries a CSN; the one may hold passwords in clear, the other says who logged in.
"""

from __future__ import annotations

from workbench.model import LINES, Format, Parsed, Piece, Reject
from workbench.systems.ds389.formats.log_kinds import kind_of
from workbench.systems.ds389.formats.log_lines import Lines, Room


def read_audit_log(piece: Piece) -> Parsed:
    """Counts the lines; rejects (without showing them) those that are no text."""
    lines = Lines(piece, Room())
    rejects = [Reject(reject.offset, reject.reason) for reject in lines.rejects]
    return Parsed(len(lines), rejects, {}, {"carries_csn": False})


def _is_security_log(head: bytes, name: str) -> bool:
    return kind_of(head, name) == "security"


def _is_audit_log(head: bytes, name: str) -> bool:
    return kind_of(head, name) == "audit"


AUDIT_LOG = Format(
    "ds389.audit-log", _is_audit_log, lambda: read_audit_log, LINES, splittable=True, empty={"carries_csn": False}
)

SECURITY_LOG = Format(
    "ds389.security-log", _is_security_log, lambda: read_audit_log, LINES, splittable=True, empty={"carries_csn": False}
)
