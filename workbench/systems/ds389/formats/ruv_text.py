"""`ds389.ruv`: a vector as text.

What `dsconf replication get-ruv` prints (blocks of five lines, with `-j` a JSON list), and plain lists of the values
themselves, one in a line, with or without `nsds50ruv:` in front. The tool leaves the generation out.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from workbench import tables
from workbench.model import RECORDS, Format, Parsed, Piece, Reject
from workbench.systems.ds389.csn import ruv_element
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.vectors import Row, vector_facts, vector_rows
from workbench.systems.ds389.secrets import harmless_start

CUT = "the file ends inside this block"
_NO_CSN = "0" * 20

_START = re.compile(rb"\s*(?:RUV:\s*\{|(?:nsds50ruv:\s*)?\{replica(?:generation\}|\s+[0-9]))", re.IGNORECASE)
_JSON_START = re.compile(rb'\s*\{\s*"type":\s*"list",\s*"items":\s*\[\s*\{\s*"raw_ruv":')
_UNIT = re.compile(rb"^[^\S\n]*(?:RUV:|(?:nsds50ruv:\s*)?\{replica)", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(r"^[^\S\n]*([A-Za-z0-9][A-Za-z0-9 ]*):[^\S\n]*([^\n]*)$", re.MULTILINE)
_SHOWN_CSN = re.compile(r".*\(([0-9a-fA-F]{20})\)")


def _value(text: str) -> str:
    """The RUV value of a block or a line. Raises ValueError if a block contradicts itself."""
    if not text.lstrip().upper().startswith("RUV:"):
        return re.sub(r"^\s*nsds50ruv:\s*", "", text.strip(), flags=re.IGNORECASE)
    lines = {name.lower(): value.strip() for name, value in _LINE.findall(text)}
    element = ruv_element(lines.get("ruv", ""))
    said = {"replica id": element.origin, "min csn": element.min or _NO_CSN, "max csn": element.max or _NO_CSN}
    for name, expected in said.items():
        if element.problem or name not in lines:
            continue
        found = _SHOWN_CSN.fullmatch(lines[name])
        repeated = found[1].lower() if found else lines[name].lstrip("0")
        if repeated != expected:
            raise ValueError(f"the line {name} says something else than the vector's element")
    return element.raw


def _units(block: bytes) -> list[tuple[int, bytes]]:
    """(place, text) of the blocks or values in lines that no empty line parts."""
    starts = [found.start() for found in _UNIT.finditer(block)]
    borders = [0, *(start for start in starts if start), len(block)]
    return [(begin, block[begin:end]) for begin, end in pairwise(borders) if block[begin:end].strip()]


def _read_text(piece: Piece) -> tuple[list[tuple[int, str]], list[Reject]]:
    values: list[tuple[int, str]] = []
    rejects: list[Reject] = []
    data = piece.data
    skipped = len(ldif.BYTE_ORDER_MARK) if data.startswith(ldif.BYTE_ORDER_MARK) else 0
    for start, end, whole in ldif.blocks(data[skipped:]):
        for begin, unit in _units(data[skipped + start : skipped + end]):
            place = skipped + start + begin
            # The last block of the tool has no empty line behind it, but its last line is whole.
            last = piece.ended and not whole and place + len(unit) == len(data)
            tool = unit.lstrip()[:4].upper() == b"RUV:"
            try:
                if last and not (unit.endswith(b"\n") and (b"Max CSN:" in unit or not tool)):
                    raise ValueError(CUT)
                if not _UNIT.match(unit):
                    raise ValueError("not an element of a vector")
                values.append((piece.offset + place, _value(unit.decode())))
            except UnicodeDecodeError:
                rejects.append(Reject(piece.offset + place, "not UTF-8 text", harmless_start(unit)))
            except ValueError as error:
                rejects.append(Reject(piece.offset + place, str(error), harmless_start(unit)))
    return values, rejects


def _read_json(piece: Piece) -> tuple[list[tuple[int, str]], list[Reject]]:
    try:
        items = json.loads(piece.data.decode("utf-8-sig"))["items"]
    except json.JSONDecodeError as error:
        place = piece.offset + len(error.doc[: error.pos].encode("utf-8", "replace"))
        return [], [Reject(place, f"broken JSON in line {error.lineno}, column {error.colno}: {error.msg}")]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return [], [Reject(piece.offset, f"broken JSON: {type(error).__name__}")]
    texts = (
        [item.get("raw_ruv") if isinstance(item, dict) else None for item in items]
        if isinstance(items, list)
        else [None]
    )
    values = [(piece.offset, text) for text in texts if isinstance(text, str)]
    return values, [Reject(piece.offset, "an item without raw_ruv")] * (len(texts) - len(values))


def read_ruv(piece: Piece) -> Parsed:
    """The elements of a vector that was saved as text; the holder is the server that the file is named after."""
    values, rejects = _read_json(piece) if _JSON_START.match(piece.data) else _read_text(piece)
    places, texts = [place for place, _ in values], [text for _, text in values]
    rows: list[Row] = vector_rows(texts, (), offset=places, kind="server", holder=piece.source.server)
    made: dict[str, Any] = {"vectors": tables.table("vectors", rows)} if rows else {}
    return Parsed(len(values) + len(rejects), rejects, made, {"vectors": vector_facts(rows)})


def _is_ruv(head: bytes, name: str) -> bool:
    head = head.removeprefix(ldif.BYTE_ORDER_MARK)
    return bool(_START.match(head) or _JSON_START.match(head))


RUV = Format("ds389.ruv", _is_ruv, lambda: read_ruv, RECORDS, empty={"vectors": {}}, excerpt=harmless_start)
