r"""`ds389.dbscan`: the changelog database as `dbscan -f replication_changelog.db` prints it.

Records between empty lines, `dbid: CSN` and then indented lines. Three helper records stand in front after a clean
stop: entry count, purge vector, max vector. The tool prints what the LDIF export lacks, the time at which a record was
logged (mislabelled `replgen`), and loses what the export has: whether a modification adds, replaces or deletes. So the
body of these changes says which values were involved and not what was done with them.

Values are printed raw. A photo can hold the two newlines that end a record, wherever the file is cut into pieces; what
follows them is told by its shape as the rest of a value and is no record. Values that are not text are shown by their
size and digest only.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench import tables
from workbench.model import RECORDS, REMOVED, Format, Parsed, Piece, Reject
from workbench.safety import excerpt
from workbench.systems.ds389.csn import csn_or_none, halves, origin_of, utc
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.changelog_facts import EMPTY, changelog_facts
from workbench.systems.ds389.formats.values import SUSPECT
from workbench.systems.ds389.formats.vectors import Row, changelog_vector, vector_rows
from workbench.systems.ds389.secrets import SECRETS

CUT = "the file ends inside this record"
OPERATIONS = ("add", "modify", "modrdn", "delete")
_RENAME = ("newrdn", "deleteoldrdn", "newsuperior")
START_ITERATION = "cn=start iteration"
ENTRY_COUNT, PURGE, MAX = "0000006f000000000000", "000000de000000000000", "0000014d000000000000"
_HELPERS = {ENTRY_COUNT: (b"entry count: ", ""), PURGE: (b"purge ruv:", "log_purge"), MAX: (b"max ruv:", "log_max")}

_UNIQUE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{8}){3}")
_OPENS = b"dbid: "
_KEY = re.compile(rb"dbid: ([^\n]*)\n")
_HEAD = re.compile(rb"\s*dbid: [0-9a-fA-F]{20}\r?\n\t")
_FIELD = re.compile(rb"^\t([a-z]+): ?([^\n]*)\n", re.MULTILINE)
_VALUE = re.compile(rb"^\t\t+([^\n]*(?:\n(?!\t\t)[^\n]*)*)\n", re.MULTILINE)
_STRUCTURE = re.compile(rb"(?:^|\n)\t(?:encrypted|replgen|csn|uniqueid|dn|operation): ")
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# RE2 over bytes: what may be a secret, and control characters. Values of all other records need no second look.
_SPECIAL = rf"{SUSPECT}|[\x00-\x08\x0b-\x1f\x7f]"


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _text(field: str, value: bytes) -> str:
    if (text := _decoded(value)) is None:
        raise ValueError(f"not UTF-8 text in the line {field}")
    return text


def _body(values: bytes, harmless: bool) -> str | None:
    """The lines of values without their indent; one by one where something may not be shown as it is."""
    if harmless and b"\t\t\t" not in values and (text := _decoded(values)) is not None:
        return text.replace("\n\t\t", "\n").strip("\t").removesuffix("\n") or None
    return "\n".join(map(_value, _VALUE.findall(values))) or None


def _value(raw: bytes) -> str:
    """One value, `name: value`, as it may be shown; several lines if the value has several."""
    name, colon, rest = raw.partition(b": ")
    if not colon or not ldif.NAME.fullmatch(name):
        name, rest = b"", raw
    text = _decoded(rest)
    if SECRETS.is_secret(name.decode()) or SECRETS.holds_one(rest.decode("latin-1") if text is None else text):
        text = REMOVED
    elif text is None or _NOT_TEXT.search(text):
        text = f"[{len(rest)} bytes that are not text, sha256 {hashlib.sha256(rest).hexdigest()[:16]}]"
    return f"{name.decode()}: {text}" if name else text


def _change(block: bytes, key: str, offset: int, harmless: bool) -> Row:
    """The row of the table `changes` of a record. Raises ValueError with the reason."""
    head, _, rest = block.partition(b"\n\toperation: ")
    operation_name, _, values = rest.partition(b"\n")
    operation = _text("operation", operation_name).strip()
    # Only a rename has lines of its own behind the operation; in a value such a line would mean nothing.
    renamed = values if operation == "modrdn" else b""
    fields = {name.decode(): value for name, value in _FIELD.findall(head + b"\n" + renamed)}
    csn = csn_or_none(_text("csn", fields.get("csn", b"")).strip())
    if csn != key:
        raise ValueError("key and csn differ" if csn else "no csn in this record")
    if operation not in OPERATIONS:
        raise ValueError("no operation in this record" if not operation else "an operation that does not exist")
    if operation == "modrdn" and "newrdn" not in fields:
        raise ValueError("a rename without the new name")
    entry, parent = (fields.get(name, b"").strip().lower().decode("latin-1") for name in ("uniqueid", "parentuniqueid"))
    target = _text("dn", fields.get("dn", b""))
    if not entry or not target:
        raise ValueError("a record without " + ("dn" if entry else "uniqueid"))
    if not all(_UNIQUE_ID.fullmatch(name) for name in (entry, parent) if name):
        raise ValueError("a uniqueid of another shape")
    logged = re.match(rb"([0-9]{1,10}) ", fields.get("replgen", b""))
    rename = "\n".join(f"{name}: {_text(name, fields[name])}" for name in _RENAME if fields.get(name))
    high, low = halves(csn)
    return {
        "offset": offset,
        "kind": "anchor" if target.lower() == START_ITERATION else "change",
        "origin": origin_of(csn),
        "position": csn,
        "hi": high,
        "lo": low,
        "operation": operation,
        "target": target if harmless else SECRETS.redact(target),
        "entry": entry,
        "parent": parent or None,
        "rename": (rename if harmless else SECRETS.redact(rename)) or None,
        "body": _body(values, harmless),
        "logged_at": utc(int(logged[1])) if logged else None,
    }


def _is_rest_of_value(block: bytes) -> bool:
    """True for what stands behind an empty line inside a value: more values, or no text, but no parts of a record."""
    if _STRUCTURE.search(block):
        return False
    return b"\n\t\t" in block or (text := _decoded(block)) is None or bool(_NOT_TEXT.search(text))


def _places(data: bytes) -> list[tuple[int, int, bool]]:
    """(start, end, whole) of each record, with what stands behind an empty line inside one of its values."""
    places: list[tuple[int, int, bool]] = []
    for start, end, whole in ldif.blocks(data):
        if places and not data.startswith(_OPENS, start) and _is_rest_of_value(data[start:end].replace(b"\r\n", b"\n")):
            start = places.pop()[0]
        places.append((start, end, whole))
    return places


def _first_line(block: bytes) -> str:
    return excerpt(block.partition(b"\n")[0], SECRETS)


def read_dbscan(piece: Piece) -> Parsed:
    """Changes of a piece, and the changelog's vectors where its helper records stand."""
    rows = 0
    rejects: list[Reject] = []
    changes: list[Row] = []
    vectors: dict[str, list[Row]] = {}
    helpers = 0
    places = _places(piece.data)
    blocks = [piece.data[start:end].replace(b"\r\n", b"\n") for start, end, _ in places]
    special = np.asarray(pc.match_substring_regex(pa.array(blocks, pa.binary()), _SPECIAL)).tolist()
    for block, (start, _, whole), doubtful in zip(blocks, places, special, strict=True):
        offset = piece.offset + start
        found = _KEY.match(block)
        rows += 1
        try:
            # The tool writes no empty line behind the last record, so only a line without end shows the cut.
            if piece.ended and not whole and not block.endswith(b"\n"):
                raise ValueError(CUT)
            if not found or not (key := csn_or_none(_text("dbid", found[1]).strip())):
                raise ValueError("a record that does not begin with dbid: and a CSN")
            if key in _HELPERS:
                title, kind = _HELPERS[key]
                if not block[found.end() :].startswith(b"\t" + title):
                    raise ValueError("a helper record without its content")
                if kind:
                    values = [_text(kind, value) for value in _VALUE.findall(block)]
                    vectors[kind] = vector_rows(values, (), offset=offset, kind=kind, holder=piece.source.server)
                helpers += 1
            else:
                changes.append(_change(block, key, offset, not doubtful))
        except ValueError as error:
            rejects.append(Reject(offset, str(error), _first_line(block)))
    real = [row for row in changes if row["kind"] == "change"]
    facts = changelog_facts(
        [row["position"] for row in real],
        [row["operation"] for row in real],
        helpers + len(changes) - len(real),
        *(changelog_vector(vectors.get(kind, [])) for kind in ("log_purge", "log_max")),
    )
    made: dict[str, Any] = {"changes": changes, "vectors": [row for kind in vectors.values() for row in kind]}
    return Parsed(rows, rejects, {name: tables.table(name, some) for name, some in made.items() if some}, facts)


def _is_dbscan(head: bytes, name: str) -> bool:
    return bool(_HEAD.match(head))


DBSCAN = Format(
    "ds389.dbscan",
    _is_dbscan,
    lambda: read_dbscan,
    RECORDS,
    splittable=True,
    empty=EMPTY,
    opens=_OPENS,
    evidence="changelog",
    is_log=True,
    excerpt=_first_line,
)
