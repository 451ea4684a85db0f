"""What the tools of 389 Directory Server say about replication: status, monitor, ds-replcheck, lag-report.

All of it is judged from maxima or from logs by somebody else. The status of agreements is kept as rows of `links`; the
other reports give no evidence at all, because their rows would speak of other servers than the file's, or repeat what
the logs themselves show. Their facts are for the reader.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from typing import Any

from workbench import tables
from workbench.model import WHOLE, Format, Parsed, Piece, Reader, Reject
from workbench.safety import excerpt
from workbench.systems.ds389.csn import csn_or_none
from workbench.systems.ds389.formats.directory import generalized_time, status_code, switch
from workbench.systems.ds389.formats.values import clean
from workbench.systems.ds389.formats.vectors import Row
from workbench.systems.ds389.rules.initialisations import outcome_of
from workbench.systems.ds389.secrets import SECRETS

_BOM = "\ufeff"


def rejected(piece: Piece, place: int, reason: str) -> Parsed:
    """A document that cannot be read, with the place of the file where reading ended, and why."""
    # Of a broken document only the beginning is shown: what stands at the break is known to nobody.
    return Parsed(1, [Reject(piece.offset + place, reason, excerpt(piece.data[:60], SECRETS))])


def whole_json(read: Callable[[Any], tuple[list[Row], dict[str, Any]]]) -> Reader:
    """A reader of JSON documents: `read` makes rows of `links` and facts, ValueError says that the content is wrong."""

    def reader(piece: Piece) -> Parsed:
        try:
            text = piece.data.decode()
        except UnicodeDecodeError as error:
            return rejected(piece, error.start, "not UTF-8 text")
        try:
            links, facts = read(json.loads(text.removeprefix(_BOM)))
        except json.JSONDecodeError as error:
            place = len(error.doc[: error.pos].encode("utf-8", "replace")) + 3 * text.startswith(_BOM)
            return rejected(piece, place, f"broken JSON in line {error.lineno}, column {error.colno}: {error.msg}")
        except RecursionError:
            return rejected(piece, 0, "broken JSON: nested too deeply")
        except ValueError as error:
            return rejected(piece, 0, str(error))
        return Parsed(1, [], {"links": tables.table("links", links)} if links else {}, facts)

    return reader


def _items(document: Any) -> list[Any]:
    items = document.get("items") if isinstance(document, dict) else None
    if isinstance(items, list):
        return items
    raise ValueError("JSON without a list of items")


def _list(item: Any, key: str) -> list[Any]:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, list) else []


def _first(item: Any, key: str) -> str | None:
    """The one value of a list of one string, which is how these tools write every value; None for `unavailable`."""
    value = item.get(key) if isinstance(item, dict) else None
    value = value[0] if isinstance(value, list) and value else value
    text = clean(value).strip() if isinstance(value, str) else ""
    return None if text.lower() in ("", "unavailable") else text


_OUT_OF_STEP = re.compile(r"Not in Synchronization: supplier \((.*?)\) consumer \((.*?)\)(?: State \((.*?)\))?")


def link_of(item: Any) -> Row:
    """The row of the table `links` that the status of one agreement tells."""
    if not (name := _first(item, "agmt-name")):
        raise ValueError("an item without agmt-name")
    host, _, port = (_first(item, "replica") or "").rpartition(":")
    sentence = _first(item, "last-update-status")
    said = _OUT_OF_STEP.match(_first(item, "replication-status") or "")
    return {
        "offset": 0,
        "name": name,
        "consumer_host": host or None,
        "consumer_port": int(port) if re.fullmatch("[0-9]{1,5}", port) else None,
        "enabled": switch(_first(item, "replica-enabled")),
        "state": said[3] if said else None,
        "status_code": status_code(sentence),
        "status": sentence,
        "busy": switch(_first(item, "update-in-progress")),
        "started_at": generalized_time(_first(item, "last-update-start")),
        "ended_at": generalized_time(_first(item, "last-update-end")),
        "init_started_at": generalized_time(_first(item, "last-init-start")),
        "init_ended_at": generalized_time(_first(item, "last-init-end")),
        "init_status": (initialised := _first(item, "last-init-status")),
        "init_outcome": outcome_of(initialised),
        "sent": _first(item, "number-changes-sent"),
        "position": csn_or_none(said[2]) if said else None,
    }


def _status(document: Any) -> tuple[list[Row], dict[str, Any]]:
    items = [document] if isinstance(document, dict) and "agmt-name" in document else _items(document)
    return [link_of(item) for item in items], {}


def _monitor(document: Any) -> tuple[list[Row], dict[str, Any]]:
    """How many servers and agreements were asked. Rows would stand under the file's name, which is no server."""
    items = _items(document)
    agreements = [link for item in items for replica in _list(item, "data") for link in _list(replica, "agmts_status")]
    return [], {"servers": len(items), "agreements": len(agreements)}


_LIST = r'\s*\{\s*"type":\s*"list",\s*"items":\s*\['
_STATUS_HEAD = re.compile(_LIST + r'\s*(?:\]|\{\s*"agmt-name")|\s*\{\s*"agmt-name":\s*\[')
_MONITOR_HEAD = re.compile(
    _LIST + r'\s*\{\s*"(?:name":\s*"[^"]*",\s*"data"|data":\s*\[\s*\{\s*"replica_(?:id|root|status)")'
)


def text_of(head: bytes) -> str:
    """The first bytes of a file as text, without the mark of their order."""
    return head.decode("utf-8", "replace").removeprefix(_BOM)


def _is_status(head: bytes, name: str) -> bool:
    return bool(_STATUS_HEAD.match(text_of(head)))


def _is_monitor(head: bytes, name: str) -> bool:
    return bool(_MONITOR_HEAD.match(text_of(head)))


STATUS = Format("ds389.status", _is_status, lambda: whole_json(_status), WHOLE)
MONITOR = Format("ds389.monitor", _is_monitor, lambda: whole_json(_monitor), WHOLE)


# The tool may have told of its progress before.
_REPORT = re.compile(r"(?:[^\n]*\n){0,40}?=+ *\r?\n +Replication Synchronization Report  ")
_STATE = re.compile(r"^Replication State: ([^\n]+)$", re.MULTILINE)
_RESULT = re.compile(r"^Result\s*\n=+\s*\n\s*(\S[^\n]*)\n", re.MULTILINE)


def _replcheck(piece: Piece) -> Parsed:
    """The judgement of ds-replcheck as facts: the state of the vectors, and the result of the comparison."""
    try:
        text = piece.data.decode()
    except UnicodeDecodeError as error:
        return rejected(piece, error.start, "not UTF-8 text")
    state, result = _STATE.search(text), _RESULT.search(text)
    if not text.endswith("\n") or (_REPORT.match(text.removeprefix(_BOM)) and not result):
        return rejected(piece, len(piece.data), "the report ends before its result")
    found = {"state": state, "result": result}
    return Parsed(1, [], {}, {key: clean(match[1]).strip() for key, match in found.items() if match})


def _is_replcheck(head: bytes, name: str) -> bool:
    text = text_of(head)
    return bool(_REPORT.match(text) or re.match(r"\s*Replication State: \S", text))


REPLCHECK = Format("ds389.replcheck", _is_replcheck, lambda: _replcheck, WHOLE)


_CSV_HEAD = re.compile(r"Timestamp,Server,CSN,Suffix,")
_LAG_HEAD = re.compile(r'\s*\{\s*"(?:analysis_summary"|(?:replicationLags|hopLags)":\s*\{)')


def _lag_document(document: Any) -> tuple[list[Row], dict[str, Any]]:
    return [], {}


def _lag_lines(piece: Piece) -> Parsed:
    """Lines of the csv form are counted and checked only: they repeat what the access logs themselves say."""
    heading, *lines = piece.data.split(b"\n")
    columns = heading.count(b",") + 1
    place = piece.offset + len(heading) + 1
    rows, rejects = 0, []
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if line.strip():
            rows += 1
            # The tool ends lines with CR LF, so half of that is still the end of a whole line.
            cut = last and not line.endswith(b"\r")
            if reason := "the file ends inside this line" if cut else _wrong_line(line, columns):
                rejects.append(Reject(place, reason, excerpt(line, SECRETS)))
        place += len(line) + 1
    return Parsed(rows, rejects)


def _wrong_line(line: bytes, columns: int) -> str:
    try:
        cells = next(csv.reader([line.decode().rstrip("\r")], strict=True))
    except UnicodeDecodeError:
        return "not UTF-8 text"
    except (csv.Error, StopIteration):
        return "not a line of comma-separated values"
    if len(cells) != columns:
        return f"{len(cells)} columns where the heading has {columns}"
    return "" if columns > 2 and csn_or_none(cells[2]) else "the third column is no CSN"


def _lag_report(piece: Piece) -> Parsed:
    document = piece.data.removeprefix(_BOM.encode()).lstrip().startswith(b"{")
    return whole_json(_lag_document)(piece) if document else _lag_lines(piece)


def _is_lag_report(head: bytes, name: str) -> bool:
    return bool(_CSV_HEAD.match(text := text_of(head)) or _LAG_HEAD.match(text))


LAG_REPORT = Format("ds389.lag-report", _is_lag_report, lambda: _lag_report, WHOLE)
