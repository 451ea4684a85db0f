"""CASE/case.yaml: what a case holds, written for people by `load`, and open to what they write into it.

    layout, name, system
    snapshots   in the order of time: label, folder, newest_file (when it was written: a copy may lie), logs (from, until)
    servers     name, origin (or `origins`, one for each suffix, if they differ), files
    links       supplier, name, suffix, consumer (the server, if the evidence names it), address

It says what the evidence says and is renewed by every load that reads something. What a person changed, added or took
out stays: it is told from what load wrote by comparing the file with what load wrote last, which the manifest keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from workbench.intake.files import path_text
from workbench.intake.inputs import Input
from workbench.intake.links import links_of, origins_of
from workbench.model import Problem
from workbench.safety import strict_yaml, to_yaml

HEADER = "# What this case holds. `workbench load` renews what it wrote here; what you change or add stays.\n"

_LONGEST = 48 << 10
"""Below what `strict_yaml` reads, with room for what people add."""

_NAMED_BY = ("supplier", "label", "name", "suffix")
"""What tells the items of a list apart; texts are told apart by themselves."""


def told(
    name: str,
    layout: int,
    snapshots: Mapping[str, str],
    inputs: list[Input],
    links: list[dict[str, Any]],
    vectors: list[dict[str, Any]],
) -> dict[str, Any]:
    """What load has to say; every value is a text, a list or a mapping. `links` and `vectors` are rows of the tables."""
    about: dict[str, Any] = {
        "layout": str(layout),
        "name": path_text(name),
        "system": next((one.kind.split(".", 1)[0] for one in inputs if one.kind), "none yet"),
        "snapshots": [_snapshot(label, folder, inputs) for label, folder in snapshots.items()],
        "servers": _servers(inputs),
        "links": [_link(link) for link in links_of(inputs, links, vectors)],
    }
    if len(to_yaml(about).encode()) > _LONGEST:
        for server in about["servers"]:
            server["files"] = [f"{len(server['files'])} files: the table coverage names them"]
    for key in ("links", "servers", "snapshots"):
        if len(to_yaml(about).encode()) > _LONGEST:
            about[key] = [f"{len(about[key])} {key}: the evidence tables name them"]
    return about


def _snapshot(label: str, folder: str, inputs: list[Input]) -> dict[str, Any]:
    mine = [one for one in inputs if one.snapshot == label]
    spans = [span for one in mine if (span := one.facts.get("time"))]
    snapshot: dict[str, Any] = {"label": label, "folder": path_text(folder)}
    if written := max((one.changed for one in mine), default=0):
        snapshot["newest_file"] = f"{datetime.fromtimestamp(written // 10**9, UTC):%Y-%m-%dT%H:%M:%SZ}"
    if spans:
        snapshot["logs"] = {"from": min(span["min"] for span in spans), "until": max(span["max"] for span in spans)}
    return snapshot


def _servers(inputs: list[Input]) -> list[dict[str, Any]]:
    files: dict[str, list[str]] = {}
    for one in inputs:
        if any(part["table"] not in ("coverage", "rejects") for part in one.parts):
            files.setdefault(one.server, []).append(f"{one.snapshot}/{one.file}")
    origins: dict[str, dict[str, str]] = {}
    for (server, suffix), origin in origins_of(inputs).items():
        origins.setdefault(server, {})[suffix] = origin
    servers = []
    for name in sorted(files):
        mine = origins.get(name, {})
        one_for_all = {"origin": next(iter(mine.values()))} if len(set(mine.values())) == 1 else {"origins": mine}
        servers.append({"name": name, **(one_for_all if mine else {}), "files": files[name]})
    return servers


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    return {key: link[key] for key in ("supplier", "name", "suffix", "address", "consumer") if link[key]}


def renewed(text: str, where: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """The file with what load says now in place of what it said before; a person's words and comments stay.

    `text` is the file as it stands, empty if there is none yet; `before` is what load wrote into it.
    """
    if not text:
        return HEADER + to_yaml(now)
    theirs = strict_yaml(text, where)
    merged = _merged(theirs, before or {key: theirs[key] for key in now if key in theirs}, now)
    if merged == theirs:
        return text
    blocks = _blocks(text)
    for key in theirs:
        if key not in merged:
            blocks.pop(key, None)
    for key, value in merged.items():
        if value != theirs.get(key):
            comment = re.match(r"(?:[ \t]*(?:#.*)?\n)*", blocks.get(key, ""))
            blocks[key] = (comment[0] if comment else "") + to_yaml({key: value})
    mended = "".join(blocks.values())
    # A file in another style than ours (braces, quoted keys) is not cut well; then its comments go and its content stays.
    try:
        whole = strict_yaml(mended, where) == merged
    except Problem:
        whole = False
    return mended if whole else HEADER + to_yaml(merged)


def _blocks(text: str) -> dict[str, str]:
    """The text by top-level key, each with the comment lines before it."""
    blocks: dict[str, str] = {}
    key, waiting = "", ""
    for line in text.splitlines(keepends=True):
        line = line if line.endswith("\n") else line + "\n"
        if re.match(r"\s*(#|$)", line):
            waiting += line
        elif found := re.match(r"([^\s#:-][^:]*):", line):
            key = found[1]
            blocks[key], waiting = waiting + line, ""
        else:
            blocks[key], waiting = blocks.get(key, "") + waiting + line, ""
    if waiting:
        blocks[key] = blocks.get(key, "") + waiting
    return blocks


def _merged(theirs: Any, before: Any, now: Any) -> Any:
    """What load says now, but for what a person made of what load said before."""
    if theirs == before:
        return now
    if now == before:
        return theirs
    if all(isinstance(value, Mapping) for value in (theirs, before, now)):
        return _merged_items(theirs, before, now)
    if all(isinstance(value, list) for value in (theirs, before, now)):
        return list(
            _merged_items(*({_identity(item): item for item in value} for value in (theirs, before, now))).values()
        )
    return theirs


def _merged_items(theirs: Mapping[Any, Any], before: Mapping[Any, Any], now: Mapping[Any, Any]) -> dict[Any, Any]:
    merged = {}
    for key in [*theirs, *(key for key in now if key not in theirs)]:
        if key not in theirs:
            if key not in before:  # else a person took it out
                merged[key] = now[key]
        elif key in now:
            merged[key] = _merged(theirs[key], before.get(key), now[key])
        elif theirs[key] != before.get(key):  # else load has nothing more to say of it
            merged[key] = theirs[key]
    return merged


def _identity(item: Any) -> Any:
    return tuple(str(item.get(key)) for key in _NAMED_BY) if isinstance(item, Mapping) else str(item)
