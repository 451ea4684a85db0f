"""`ds389.certificates`: the public certificates of a server, as `workbench collect` keeps them. No key is ever in such a file.

    # certificates of slapd-s1
    # certificates of consumers checked: on
    # encryption: on
    # encrypts at: ldap1.example.com:636

    # nickname: Server-Cert
    # trust: u,u,u
    # in use: yes
    -----BEGIN CERTIFICATE-----
    ...
    -----END CERTIFICATE-----

The first block is about the server, and where it takes encrypted connections, by which links are known to lead to it. Each
other one is a certificate: its name and its trust flags in the database of the server, and whether its configuration names it
as the one that the server shows. Whoever cannot run `collect` on a server writes such a file from what
`certutil -L -d FOLDER -h all` and `certutil -L -d FOLDER -a -n NICKNAME` print.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from workbench import tables
from workbench.model import RECORDS, Format, Parsed, Piece, Reject
from workbench.safety import printable
from workbench.systems.ds389.formats import ldif
from workbench.systems.ds389.formats.values import LONGEST, clean
from workbench.systems.ds389.formats.vectors import Row

ABOUT = "# certificates of "
"""How the first line begins."""
LARGEST = 64 << 10
"""Bytes of a certificate as text. Those with hundreds of host names have 20,000."""
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_NOTE = re.compile(r"# ([a-z ]+): ?(.*)")
_ADDRESS = re.compile(r"[a-z0-9_.:\[\]-]{1,255}:[0-9]{1,5}")
_LINES = re.compile(r"[A-Za-z0-9+/=\r\n \t]*")


def _read(piece: Piece) -> Parsed:
    parsed = Parsed()
    rows: list[Row] = []
    for start, end, ended in ldif.blocks(piece.data):
        unit = piece.data[start:end]
        if not unit.strip():
            continue
        parsed.rows += 1
        offset = piece.offset + start
        try:
            if not ended and len(unit) <= LARGEST and not unit.rstrip().endswith(_END.encode()):
                raise ValueError("the file ends within this block")
            notes, row = _block(unit)
        except ValueError as error:
            parsed.rejects.append(Reject(offset, str(error)))  # never an excerpt: it may be a key
            continue
        if row is not None:
            rows.append({**row, "offset": offset})
        if checked := notes.get("certificates of consumers checked"):
            parsed.facts["checks_certificates"] = {"on" if checked == "on" else "off": 1}
        if notes.get("encryption") in ("on", "off"):
            parsed.facts["encryption"] = {notes["encryption"]: 1}
        if _ADDRESS.fullmatch(address := notes.get("encrypts at", "").lower()):
            parsed.facts["addresses"] = {clean(address): 1}
        if notes.get("left out"):
            parsed.facts["left_out"] = 1
    parsed.facts["certificates"] = len(rows)
    if rows:
        parsed.tables["certificates"] = tables.table("certificates", rows)
    return parsed


def _block(unit: bytes) -> tuple[dict[str, str], Row | None]:
    """The notes of a block and, of one with a certificate, its row. ValueError says what is wrong."""
    if len(unit) > LARGEST:
        raise ValueError(f"longer than {LARGEST >> 10} KiB")
    try:
        text = unit.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text: byte {error.start} of the block") from None
    notes = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            lines = lines[number:]
            break
        if found := _NOTE.fullmatch(line):
            notes[found[1]] = found[2].strip()
    else:
        return notes, None
    body = "\n".join(lines).strip()
    if not body.startswith(_BEGIN):
        raise ValueError("no certificate")
    if not body.endswith(_END):
        raise ValueError("a certificate without its end")
    encoded = body[len(_BEGIN) : -len(_END)]
    if not _LINES.fullmatch(encoded):
        raise ValueError("a certificate with something else in it")
    try:
        der = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a certificate that is not base64") from None
    if not notes.get("nickname"):
        raise ValueError("a certificate without a nickname")
    row = {
        "nickname": _shown(notes["nickname"]),
        "trust": _shown(notes.get("trust", "")) or None,
        "in_use": {"yes": True, "no": False}.get(notes.get("in use", "")),
        **_fields(der),
        "encoded": base64.b64encode(der).decode(),
    }
    return notes, row


def _fields(der: bytes) -> dict[str, Any]:
    """What a certificate says; ValueError if it is none."""
    from cryptography import x509  # here, because most files need none of it

    try:
        found = x509.load_der_x509_certificate(der)
        return {
            "subject": _shown(found.subject.rfc4514_string()),
            "issuer": _shown(found.issuer.rfc4514_string()),
            "not_before": found.not_valid_before_utc,
            "not_after": found.not_valid_after_utc,
            "hosts": " ".join(_hosts(found)) or None,
        }
    except ValueError as error:
        raise ValueError(f"a certificate that cannot be read ({type(error).__name__})") from None
    except Exception as error:  # the parser has exceptions of its own, for versions and duplicate extensions
        raise ValueError(f"a certificate that cannot be read ({type(error).__name__})") from None


def _hosts(found: Any) -> list[str]:
    """The host names and addresses of a certificate, and its common name: some clients ask that, too, if no other fits."""
    from cryptography import x509

    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = None
    hosts = [str(one.value) for one in found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    if names:
        hosts += [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    # A common name with blanks is no host.
    return list(dict.fromkeys(_shown(host).lower() for host in hosts if not re.search(r"\s", host)))


def _shown(text: str) -> str:
    """Text of a certificate, harmless: without secrets, control characters and length."""
    return printable(clean(text))[:LONGEST]


def _is_certificates(head: bytes, name: str) -> bool:
    return head.startswith(ABOUT.encode())


CERTIFICATES = Format("ds389.certificates", _is_certificates, lambda: _read, RECORDS, splittable=True, encrypted=True)
