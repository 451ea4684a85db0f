"""The changelog LDIF of 389 Directory Server in its three variants: default, decoded (`-d`) and `-l`.

It is not standard LDIF: a header block without dn (`clpurgeruv:`, `clmaxruv:`), then records that begin with
`changetype:` and hold the modifications in `change::` - base64 of an LDIF body, or, in the decoded variant, the body
in clear up to the empty line. Real bodies nest base64 and folding again.

This module reads one record exactly. `changelog_fast` reads whole pieces at once and hands over whatever is unusual;
a test holds the two against each other on random records. The server always ends a record with an empty line: a last
record without one was cut, and is rejected rather than half believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pybase64

from workbench.model import REMOVED, Parsed, Piece, Reject, merge_facts
from workbench.safety import excerpt
from workbench.systems.ds389.csn import CSN, halves, origin_of
from workbench.systems.ds389.formats.changelog_facts import changelog_facts
from workbench.systems.ds389.formats.ldif import BYTE_ORDER_MARK
from workbench.systems.ds389.formats.vectors import Row, changelog_vector, vector_rows
from workbench.systems.ds389.secrets import SECRETS
from workbench.tables import table

OPERATIONS = ("add", "modify", "modrdn", "delete")
HELPER_TIMES = (0x6F, 0xDE, 0x14D)
DUMMY_DN = "cn=start iteration"
_FIELDS = (
    "changetype",
    "replgen",
    "csn",
    "nsuniqueid",
    "parentuniqueid",
    "dn",
    "newrdn",
    "deleteoldrdn",
    "newsuperiordn",
)
_RENAME = ("newrdn", "deleteoldrdn", "newsuperiordn")
_HEADER = re.compile(r"(?:#.*?)?(clpurgeruv|clmaxruv): ?(.*)")


class Bad(Exception):
    """Why one record cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


SUSPECT_BODY = SECRETS.suspect(before_run="^|[^A-Za-z0-9+/: ]|(?:^|[^:]):|(?:^|[^: ]|(?:^|[^:]):| ) ")
"""RE2: matches every decoded body, its folds (`\\n `) taken out, that `redact_body` may change - but for what stands behind
the first `::` of a line. Such a value counts if it is not base64, or if what it stands for matches
`SECRETS.suspect()` or holds a fold."""


def redact_body(body: str) -> str:
    """The modifications without secrets, by the rules of `Secrets`; unfolded if one was taken out.

    A value that is base64 inside the body (`description:: e1NTSEF9...`) is unpacked to look at it, and goes as a whole.
    """
    flat = body.replace("\n ", "")
    clean = "\n".join(map(_looked_into, flat.split("\n"))) if "::" in flat else flat
    clean = SECRETS.redact(clean)
    return body if clean == flat else clean


def _looked_into(line: str) -> str:
    name, sign, packed = line.partition("::")
    if not sign or ":" in name:
        return line
    try:
        value = pybase64.b64decode(packed.removeprefix(" "), validate=True).decode("latin-1")
    except ValueError:
        return f"{name}: {REMOVED}"  # what cannot be looked at is not kept
    return f"{name}: {REMOVED}" if SECRETS.holds_one(value) else line


def _unfold(text: str) -> list[str]:
    return text.replace("\n ", "").split("\n")


def _unpack(value: str, field: str) -> str:
    try:
        return pybase64.b64decode(value.replace(" ", ""), validate=True).decode()
    except UnicodeDecodeError:
        raise Bad(f"{field}: not UTF-8 inside the base64") from None
    except ValueError:  # not only binascii.Error: a letter outside ASCII is a plain ValueError
        raise Bad(f"{field}: not valid base64") from None


def read_record(raw: bytes) -> dict[str, Any]:
    """One record as a row of `changes`, plus `helper`: True for the changelog's own bookkeeping. Raises Bad.

    >>> read_record(b"changetype: delete\\ncsn: 6b005c14001600030000\\nnsuniqueid: a-b-c-d\\ndn: cn=x\\n")["origin"]
    '3'
    """
    try:
        text = raw.decode().replace("\r\n", "\n").rstrip("\n")
    except UnicodeDecodeError as error:
        raise Bad(f"not UTF-8: byte {error.object[error.start]:#04x}") from None
    head, body, closed = text, None, False
    if found := re.search(r"^change::[ ]?\n(?! )", text + "\n", re.MULTILINE):
        head, clear = text[: found.start()], text[found.end() :]
        body = f"{clear}\n" if clear else ""  # it may hold what looks like a field
    fields: dict[str, str] = {}
    for line in _unfold(head.rstrip("\n")):
        name, colon, value = line.partition(":")
        if line.startswith("#"):
            continue
        if not colon:
            raise Bad("a line without a colon")
        if name == "change":
            if body is not None or not value.startswith(":"):
                raise Bad("change: twice" if body is not None else "change: not base64")
            body, closed = _unpack(value[1:].lstrip(), "change"), True
        elif name not in _FIELDS:
            raise Bad("a field that no changelog has")
        elif name in fields:
            raise Bad(f"{name}: twice")
        elif closed:
            raise Bad(f"{name}: behind the change")
        else:
            fields[name] = _unpack(value[1:].strip(), name) if value.startswith(":") else value.strip(" ")
    if missing := [name for name in ("changetype", "csn", "nsuniqueid", "dn") if not fields.get(name)]:
        raise Bad(f"no {missing[0]}")
    if fields["changetype"] not in OPERATIONS:
        raise Bad("changetype: none of add, modify, modrdn, delete")
    if not CSN.fullmatch(fields["csn"]):
        raise Bad("csn: not 20 hex digits")
    return _row(fields, body)


def _row(fields: dict[str, str], body: str | None) -> dict[str, Any]:
    csn = fields["csn"].lower()
    hi, lo = halves(csn)
    rename = "\n".join(f"{name}: {fields[name]}" for name in _RENAME if name in fields)
    dummy = fields["dn"] == DUMMY_DN and not fields["nsuniqueid"].strip("0-")
    return {
        "kind": "anchor" if dummy else "change",
        "origin": origin_of(csn),
        "position": csn,
        "hi": hi,
        "lo": lo,
        "operation": fields["changetype"],
        "target": SECRETS.redact(fields["dn"]),
        "entry": SECRETS.redact(fields["nsuniqueid"]),
        "parent": SECRETS.redact(fields["parentuniqueid"]) if "parentuniqueid" in fields else None,
        "rename": SECRETS.redact(rename) if rename else None,
        "body": redact_body(body) if body is not None else None,
        "helper": lo == 0 and hi >> 16 in HELPER_TIMES,
    }


_BLANK = re.compile(rb"\n\r?\n")


Block = tuple[int, bytes, bool]
"""(place, bytes, whole) of a block between empty lines; whole is False for a last one that no empty line ends."""


def block_at(data: bytes, at: int) -> Block:
    """The block that begins at this place."""
    found = _BLANK.search(data, at)
    return at, data[at : found.start() + 1 if found else len(data)], found is not None


def blocks(data: bytes) -> Iterator[Block]:
    """All blocks of the data."""
    at, size = 0, len(data)
    while at < size:
        if data[at] in b"\r\n":
            at += 1
            continue
        yield (block := block_at(data, at))
        at += len(block[1])


def is_header(raw: bytes) -> bool:
    """True for the block of vectors, for comments and for `version:`: none of them is a record."""
    return raw.startswith((b"clpurgeruv:", b"clmaxruv:", b"#", b"version:")) and b"\nchangetype:" not in raw


def _only_comment(raw: bytes) -> bool:
    """The title line alone is what the server's broken `-c` export leaves; nothing was cut from it."""
    return raw.startswith(b"#") and b"ruv:" not in raw and raw.count(b"\n") <= 1


def read_header(raw: bytes, offset: int, holder: str) -> tuple[list[Row], dict[str, Any]]:
    """The vectors of the header block, as rows of `vectors` and as facts; both vectors are None where they do not stand."""
    values: dict[str, list[str]] = {"clpurgeruv": [], "clmaxruv": []}
    for line in _unfold(raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n")):
        if found := _HEADER.match(line):
            values[found[1]].append(found[2])
    purge = vector_rows(values["clpurgeruv"], (), offset=offset, kind="log_purge", holder=holder)
    last = vector_rows(values["clmaxruv"], (), offset=offset, kind="log_max", holder=holder)
    return [*purge, *last], changelog_facts([], [], 0, changelog_vector(purge), changelog_vector(last))


def read_exactly(piece: Piece, chosen: Iterable[Block] | None = None) -> Parsed:
    """A piece, or the chosen blocks of it, record by record: slow and obvious. What `changelog_fast` must agree with."""
    parsed, helpers = Parsed(), 0
    changes: list[Row] = []
    vectors: list[Row] = []
    headers: list[dict[str, Any]] = []
    for at, raw, whole in blocks(piece.data) if chosen is None else chosen:
        offset = piece.offset + at
        raw = raw.removeprefix(BYTE_ORDER_MARK)
        header = is_header(raw)
        try:
            if not whole and not _only_comment(raw):
                raise Bad("the file ends inside the header" if header else "the file ends inside this record")
            if header:
                rows, found = read_header(raw, offset, piece.source.server)
                vectors += rows
                headers.append(found)
                continue
            row = read_record(raw)
        except Bad as bad:
            parsed.rows += 1
            parsed.rejects.append(Reject(offset, bad.reason, excerpt(raw, SECRETS)))
            continue
        parsed.rows += 1
        if row.pop("helper"):
            helpers += 1
        else:
            changes.append({**row, "offset": offset})
    real = [row for row in changes if row["kind"] == "change"]
    positions, operations = ([row[key] for row in real] for key in ("position", "operation"))
    found = changelog_facts(positions, operations, helpers + len(changes) - len(real), None, None)
    parsed.facts = merge_facts([found, *headers])
    made = {"changes": changes, "vectors": vectors}
    parsed.tables = {name: table(name, rows) for name, rows in made.items() if rows}
    return parsed


_TITLE = re.compile(rb"\A# LDIF File: [^\n]*\n?")
_HEADER_BLOCK = re.compile(rb"(?:#[^\n]*|version:[^\n]*\n+)?cl(?:purge|max)ruv: ?\{")
_RECORD_BLOCK = re.compile(rb"changetype: ?(?:add|modify|modrdn|delete)\r?\n(?:replgen:[^\n]*\n)?csn: ?[0-9a-fA-F]")
_IN_CLEAR = re.compile(rb"^change::[ ]?\r?\n(?! )", re.MULTILINE)
_PACKED = re.compile(rb"^change:: ?[A-Za-z0-9+/]", re.MULTILINE)


def _looks_like_changelog(head: bytes) -> bool:
    """The title, the header or a record begins the file - or, where its beginning is lost, most blocks are records.

    A text *about* changelogs quotes blocks of them as well; it does not begin with one.
    """
    head = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if _TITLE.match(head) or _HEADER_BLOCK.match(head) or _RECORD_BLOCK.match(head):
        return True
    whole = re.split(rb"\n\r?\n", head)[1:]
    return 2 * sum(bool(_RECORD_BLOCK.match(block)) for block in whole) > len(whole)


def is_decoded(head: bytes, name: str) -> bool:
    """The decoded variant: the modifications stand in clear. Where no record shows it, the title line tells."""
    if not _looks_like_changelog(head):
        return False
    if _IN_CLEAR.search(head):
        return True
    title = _TITLE.match(head)
    return (
        bool(title) and not _PACKED.search(head) and not re.search(rb"cl(?:purge|max)ruv:", title[0] if title else b"")
    )


def is_packed(head: bytes, name: str) -> bool:
    """The default and the `-l` variant: the modifications are base64."""
    return _looks_like_changelog(head) and not is_decoded(head, name)
