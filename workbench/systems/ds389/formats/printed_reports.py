"""What the tools of 389 Directory Server print for people about replication, and their other answers.

`dsconf replication status` and `repl-agmt status` as text say what the JSON form says (`reports.STATUS`), a line for each
key. `dsconf replication monitor` as text, healthchecks and a command's own error give no evidence: they are recognised, so
that nobody takes them for unread files.
"""

from __future__ import annotations

import json
import re
from typing import Any

from workbench import tables
from workbench.model import WHOLE, Format, Parsed, Piece
from workbench.systems.ds389.formats.reports import link_of, rejected, text_of, whole_json
from workbench.systems.ds389.formats.values import clean
from workbench.systems.ds389.formats.vectors import Row

_AGREEMENT = re.compile(r'^Status For Agreement: "(?P<name>.*)" \((?P<consumer>[^\n]*)\)\s*$', re.MULTILINE)
_LINE = re.compile(r"^([A-Z][A-Za-z ]+): ?(.*?)\s*$", re.MULTILINE)
_KEYS = {
    "Replica Enabled": "replica-enabled",
    "Update In Progress": "update-in-progress",
    "Last Update Start": "last-update-start",
    "Last Update End": "last-update-end",
    "Number Of Changes Sent": "number-changes-sent",
    "Last Update Status": "last-update-status",
    "Last Init Start": "last-init-start",
    "Last Init End": "last-init-end",
    "Last Init Status": "last-init-status",
    "Replication Status": "replication-status",
}
_SUPPLIER = re.compile(r"^Supplier: (\S+:\S+)\s*$", re.MULTILINE)
_LINT = re.compile(r"\s*(?:Beginning lint report, this could take a while|\[\d+\] DS Lint Error: )")
_ISSUES = re.compile(r"^(\d+) Issues? found!", re.MULTILINE)


def _links(text: str) -> list[Row]:
    """A row of the table `links` for each agreement."""
    found = list(_AGREEMENT.finditer(text))
    rows = []
    for number, title in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        lines = {_KEYS[name]: value for name, value in _LINE.findall(text, title.end(), end) if name in _KEYS}
        rows.append(link_of({**lines, "agmt-name": title["name"], "replica": title["consumer"]}))
    return rows


def _status(piece: Piece) -> Parsed:
    text = _decoded(piece)
    if isinstance(text, Parsed):
        return text
    found = list(_AGREEMENT.finditer(text))
    if not found or not text.endswith("\n") or "\nReplication Status: " not in text[found[-1].end() :]:
        return rejected(piece, len(piece.data), "the report ends before its last agreement does")
    return Parsed(1, [], {"links": tables.table("links", _links(text))}, {})


def _monitor(piece: Piece) -> Parsed:
    """How many servers and agreements were asked; rows would stand under the file's name, which is no server."""
    text = _decoded(piece)
    if isinstance(text, Parsed):
        return text
    facts = {"servers": len(_SUPPLIER.findall(text)), "agreements": len(_AGREEMENT.findall(text))}
    return Parsed(1, [], {}, facts)


def _decoded(piece: Piece) -> str | Parsed:
    try:
        return piece.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return rejected(piece, error.start, "not UTF-8 text")


def _is_status(head: bytes, name: str) -> bool:
    return bool(re.match(r"\s*" + _AGREEMENT.pattern, text_of(head), re.MULTILINE))


def _is_monitor(head: bytes, name: str) -> bool:
    text = text_of(head)
    title = _SUPPLIER.search(text)
    return bool(title and re.match(r"-+\s*\n", text[title.end() :].lstrip("\n")) and title.start() < 2000)


def _healthcheck(piece: Piece) -> Parsed:
    """How many issues a healthcheck found: about the whole server, so none is evidence of a change."""
    if piece.data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return whole_json(_lint)(piece)
    text = _decoded(piece)
    if isinstance(text, Parsed):
        return text
    issues = _ISSUES.search(text)
    return Parsed(1, [], {}, {"issues": int(issues[1]) if issues else 0})


def _lint(document: Any) -> tuple[list[Row], dict[str, Any]]:
    if not isinstance(document, list) or not all(isinstance(item, dict) and "dsle" in item for item in document):
        raise ValueError("not a list of issues")
    return [], {"issues": len(document)}


def _is_healthcheck(head: bytes, name: str) -> bool:
    text = text_of(head)
    return bool(_LINT.match(text) or re.match(r'\s*\[\s*\{\s*"dsle":\s*"', text))


def _error(document: Any) -> tuple[list[Row], dict[str, Any]]:
    """What a command of the server's tools says with `--json` where it fails: `{"desc": "nothing to repeat"}`."""
    said = document.get("desc") if isinstance(document, dict) else None
    if not isinstance(said, str):
        raise ValueError("JSON without the words of an error")
    return [], {"failed": clean(said)[:1000]}


def _is_error(head: bytes, name: str) -> bool:
    try:
        document = json.loads(text_of(head))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "desc" in document and document.keys() <= {"desc", "info", "result", "msgid"}


STATUS_TEXT = Format("ds389.status", _is_status, lambda: _status, WHOLE, variant="text")
MONITOR_TEXT = Format("ds389.monitor", _is_monitor, lambda: _monitor, WHOLE, variant="text")
HEALTHCHECK = Format("ds389.healthcheck", _is_healthcheck, lambda: _healthcheck, WHOLE)
TOOL_ERROR = Format("ds389.tool-error", _is_error, lambda: whole_json(_error), WHOLE)
