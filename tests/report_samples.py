"""Small cases that a report is made of: three servers, of which the last one lacks changes of the first."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from mesh_samples import SUFFIX, agreement, changelog, claims, csn, elements, replica, write

from workbench import Case

HOSTILE = (
    "missing",
    '<b onclick=x>&"acme',
    "berlin \u202e=cmd",
    "tabbed\tnamely",
    "zero\u200bwidth",
    "o'Brien",
    "Zürich\\süd",
)
"""Names that look like words of sentences or like markup, or that are shown with escapes."""


def three(
    count: int,
    lost: Collection[int],
    names: Sequence[str] = ("s1", "s2", "s3"),
    suffix: str = SUFFIX,
    before: str = "",
    second_holds: Collection[int] | None = None,
) -> dict[str, str]:
    """Files of servers: origin 1 made so many changes, of which the third server lacks some, and the second may hold a few."""
    made = [csn(second, 1) for second in range(count)]
    others = [csn(second, origin) for origin in (2, 3) for second in range(3)]
    vector = elements(claims(r1=(0, count - 1), r2=(0, 2), r3=(0, 2)))
    files = {}
    for origin, name in enumerate(names, 1):
        holds = set(range(count)) - ({*lost} if origin == 3 else set())
        if origin == 2 and second_holds is not None:
            holds = {*second_holds}
        log = [one for second, one in enumerate(made) if second in holds]
        files[f"{name}.{before}changelog.ldif"] = changelog([*log, *others], suffix=suffix, own_entries=True)
        files[f"{name}.{before}replica.ldif"] = replica(origin, vector, suffix=suffix)
        files[f"{name}.{before}agreements.ldif"] = "".join(
            agreement(f"{name}-to-{other}", 38900 + number, suffix=suffix)
            for number, other in enumerate(names, 1)
            if number != origin
        )
    return files


def called(names: Sequence[str], patterns: Sequence[str], suffix: str = SUFFIX) -> str:
    """A case.yaml that gives names to the servers of these files: any text."""
    rows = (
        f"- name: {json.dumps(name)}\n  files: [{json.dumps(pattern)}]\n  suffix: {suffix}\n"
        for name, pattern in zip(names, patterns, strict=True)
    )
    return f"servers:\n{''.join(rows)}"


def loaded(folder: Path, *snapshots: tuple[str, dict[str, str]]) -> Case:
    """A case of these collected folders."""
    case = Case.create(folder / "case")
    case.load([write(folder / "in" / label, files) for label, files in snapshots])
    return case


def oddly_named(folder: Path, names: Sequence[str]) -> Case:
    """The three servers with these names."""
    files = three(20, {5, 6}, ("x1", "x2", "x3"))
    return loaded(folder, ("now", {**files, "case.yaml": called(names, ("x1.*", "x2.*", "x3.*"))}))


def of_two_suffixes(folder: Path) -> Case:
    """The same servers with two suffixes, of which the same positions are missing in one and there in the other."""
    one, other = three(20, {5, 6}), three(25, {7, 8, 9}, suffix="dc=other", before="o.")
    servers = ("s1", "s2", "s3")
    about = called(servers, [f"{name}.o.*" for name in servers], "dc=other")
    about += called(servers, [f"{name}.[cra]*" for name in servers]).removeprefix("servers:\n")
    return loaded(folder, ("now", {**one, **other, "case.yaml": about}))
