"""Collected folders of a small mesh with the entries of its servers as real ones show them: attributes with marks of CSNs."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

from detector_samples import stamp
from mesh_samples import SUFFIX, agreement, claims, csn, elements, replica

TAGS = {"MOD": 103, "ADD": 105, "DEL": 107, "MODRDN": 109}
"""Of the results of operations."""
TOMBSTONE = "ffffffff-ffffffff-ffffffff-ffffffff"


def entry(name: str, number: int, *lines: str) -> str:
    """An entry that replica 1 made in second 1; `lines` are its other attributes."""
    attribute, _, value = name.split(",")[0].partition("=")
    made = csn(1, 1)
    head = [
        f"dn: {name},{SUFFIX}",
        f"objectClass;vucsn-{made}: person",
        f"{attribute};vucsn-{made};mdcsn-{made}: {value}",
    ]
    return "\n".join([*head, f"nsUniqueId: 2-2-2-{number}", *lines]) + "\n\n"


def export(ruv: Iterable[str], entries: Iterable[str]) -> str:
    """The entries of a server, with the RUV in the same file."""
    zone = [f"dn: nsuniqueid={TOMBSTONE},{SUFFIX}", "objectClass: nsTombstone", f"nsUniqueId: {TOMBSTONE}"]
    vector = "\n".join([*zone, *(f"nsds50ruv: {one}" for one in ruv)])
    return f"dn: {SUFFIX}\nobjectClass: domain\nnsUniqueId: 1-1-1-1\n\n{vector}\n\n{''.join(entries)}"


def logged(position: str, number: int, name: str, body: str, operation: str = "modify") -> str:
    """A record of an exported changelog."""
    what = f"change:: {base64.b64encode(body.encode()).decode()}" if operation != "modrdn" else body.rstrip("\n")
    return f"changetype: {operation}\ncsn: {position}\nnsuniqueid: 2-2-2-{number}\ndn: {name},{SUFFIX}\n{what}\n\n"


def answered(second: int, name: str, position: str, replicated: bool = False, operation: str = "MOD") -> str:
    """Lines of an access log: an operation, and its result with its CSN."""
    where = f"{stamp(second)} conn={1 if replicated else 2}"
    session = f'{where} op={second}0 EXT oid="2.16.840.1.113730.3.5.12" name="x"\n' if replicated else ""
    renamed = ' newrdn="uid=new" newsuperior="(null)"' if operation == "MODRDN" else ""
    asked = f'{where} op={second} {operation} dn="{name},{SUFFIX}"{renamed}\n'
    return f"{session}{asked}{where} op={second} RESULT err=0 tag={TAGS[operation]} nentries=0 etime=0.006 csn={position}\n"


def mesh(
    spans: Mapping[str, tuple[int, int]], entries: Mapping[str, Iterable[str]], logs: Mapping[str, str], **more: str
) -> dict[str, str | bytes]:
    """Servers s1, s2, … with equal vectors; each sends to all others. `more`: other files, `_` standing for a dot."""
    ruv = elements(claims(**spans))
    files: dict[str, str | bytes] = {}
    for name, mine in entries.items():
        others = [other for other in entries if other != name]
        files[f"{name}.replica.ldif"] = replica(int(name[1:]), ruv)
        files[f"{name}.agreements.ldif"] = "".join(agreement(f"{name}-to-{x}", 38900 + int(x[1:])) for x in others)
        files[f"{name}.entries.ldif"] = export(ruv, mine)
        if name in logs:
            files[f"{name}.changelog.ldif"] = logs[name]
    return files | {name.replace("_", "."): text for name, text in more.items()}
