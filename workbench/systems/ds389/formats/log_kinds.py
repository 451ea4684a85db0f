"""Which log of 389 Directory Server a file is, told by its lines."""

from __future__ import annotations

import json
import re

# [20/Nov/2026:14:42:07.217971982 +0000] or, with nsslapd-logging-hr-timestamps-enabled off, without the nanoseconds
STAMP = rb"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d{1,9})? [+-]\d{4}\]"

# The first lines of a log file: version, host and folder of the instance, an empty line
_TITLE = re.compile(rb"\s*[\w .-]*Directory[\w .-]*/\d.*|\s*\S+:\d+ \(/\S*slapd-\S*\)\s*|LOGINFO:.*|\s*")

_ADDRESS = re.compile(rb"^\s*(\S+:\d+) \(/\S*slapd-\S*\)\s*$", re.MULTILINE)


def is_title(raw: bytes) -> bool:
    """True for the lines at the top of a log file that say who writes it, and for empty ones."""
    return len(raw) < 1000 and bool(_TITLE.fullmatch(raw))


def address_in(head: bytes) -> str | None:
    """The server's own host and port, of the title lines of its log.

    >>> address_in(b"\t389-Directory/2.3.1 B2025\n\tldap.example.com:389 (/etc/dirsrv/slapd-x)\n")
    'ldap.example.com:389'
    """
    found = _ADDRESS.search(head)
    return found[1].decode("utf-8", "replace").lower() if found else None


def is_pretty(head: bytes) -> bool:
    """True if the JSON objects of the file are spread over several lines."""
    return re.search(rb"^\{\r?$", head, re.MULTILINE) is not None


_ACCESS, _ERRORS, _AUDIT, _SECURITY = "access", "errors", "audit", "security"
_LEVEL = rb"(?:EMERG|ALERT|CRIT|ERR|WARN|NOTICE|INFO|DEBUG)"
_TEXT_LINE = re.compile(
    rb"^" + STAMP + rb" (?:(?P<access>conn=)|(?P<errors>- " + _LEVEL + rb"[A-Z]* - |[^\n]*?(?<=\S) - ))"
    rb"|^(?P<audit>time: \d{14}\r?\ndn:)",
    re.MULTILINE,
)
_AUDIT_RESULT = re.compile(rb"^(?:result: -?\d+|changetype: \w+)\r?$", re.MULTILINE)
_KEYS = {
    _ACCESS: {"local_time", "operation", "conn_id"},
    _ERRORS: {"local_time", "severity", "subsystem", "msg"},
    _SECURITY: {"utc_time", "event", "dn", "conn_id"},
    _AUDIT: {"gm_time", "target_dn", "bind_dn", "result"},
}


def kind_of(head: bytes, name: str) -> str | None:
    """Which log the file is, by the first line that tells them apart; by its name if only the title lines are there.

    >>> kind_of(b"[20/Nov/2026:14:42:07 +0000] conn=1 op=2 UNBIND", "any")
    'access'
    """
    if found := _TEXT_LINE.search(head):
        kind = found.lastgroup
        return kind if kind != _AUDIT or _AUDIT_RESULT.search(head, found.start()) else None
    titled = b"Directory" in head[:200] and all(map(is_title, head.splitlines()))
    text = head.decode("utf-8", "replace")
    for number, brace in enumerate(re.finditer(r"^\{", text, re.MULTILINE)):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            if number < 20:  # the file may begin inside a line; a large foreign document is not searched to its end
                continue
            return None
        if isinstance(value.get("header"), dict) and "Directory" in str(value["header"].get("version")):
            titled = True
            continue
        return next((kind for kind, keys in _KEYS.items() if keys <= value.keys()), None)
    if titled:
        words = {_ACCESS: "access", _ERRORS: "error", _AUDIT: "audit", _SECURITY: "security"}
        return next((kind for kind, word in words.items() if word in name.lower()), None)
    return None
