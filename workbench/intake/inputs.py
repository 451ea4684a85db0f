"""The inputs of a case: which files a collected folder holds, what each is, and whose it is.

A server is named by the folder's own `case.yaml`, else by the file's name (`s1.changelog.ldif.gz` -> `s1`):

    servers:
      - name: ldap1
        files: [changelog-a.ldif, "a-*.log"]
        suffix: dc=example,dc=com
        origin: "1"

`workbench collect` adds `collected`: in which order and when each server was read, and what moved meanwhile.
"""

from __future__ import annotations

import difflib
import errno
import fnmatch
import hashlib
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from workbench.intake.decompression import Broken, packed, unpacked
from workbench.intake.files import facts_of, first_targets, head, path_text, plain_name, recognise, server_of
from workbench.model import Problem, Source
from workbench.safety import printable, strict_yaml
from workbench.systems import format_with, system_named, systems


class Named(NamedTuple):
    """What the case.yaml of a collected folder says of a file: its server, its suffix, and the origin of the server."""

    server: str | None = None
    suffix: str | None = None
    origin: str | None = None


NOBODY = Named()


@dataclass
class Input:
    """One file of the case: what it is, what was read from it, and the parts that hold it."""

    file: str
    path: str
    bytes: int
    changed: int
    sha256: str
    format: str
    kind: str
    """Key of the format that reads it; empty for text and unknown files."""
    snapshot: str
    server: str
    suffix: str | None
    suffixes: list[str]
    rows: int
    rejected: int
    facts: dict[str, Any]
    parts: list[dict[str, Any]]
    why: str = ""
    origin: str | None = None
    """Of the server's own changes, if the case.yaml of the collected folder says so."""

    @property
    def source(self) -> Source:
        """Where its rows come from."""
        return Source(self.file, self.snapshot, self.server, self.suffix, tuple(self.suffixes))

    def may_tell_of(self, suffix: str | None) -> bool:
        """False for a file that is about other suffixes alone."""
        about = {suffix_above(top, self) for top in self.facts.get("suffixes", ())} if self.suffixes else set()
        return self.suffix in (None, suffix) and not (about - {None} and suffix not in about)

    @property
    def whole(self) -> bool:
        """True if all of it could be read: what it does not show is not there."""
        return not self.rejected and not self.why

    @property
    def accepted(self) -> int:
        """Rows that could be read."""
        return self.rows - self.rejected


FOLDER = "folders: a load does not descend; a folder that is a snapshot is given by its own name"
HIDDEN = "hidden: the name begins with a dot"
SPECIAL = "pipes, sockets or devices: they hold no file"
NOWHERE = "links to nothing: what they point to was not collected"


@dataclass(frozen=True)
class Collected:
    """What lies in a collected folder: the files that are read, and the names of what is not, each with the reason."""

    folder: Path
    files: list[Path]
    passed_over: dict[str, str]

    def name_of(self, path: Path) -> str:
        """What a file is called in the case: its name, with the room in front that it lies in (`meta/now.txt`)."""
        return path_text(path.relative_to(self.folder).as_posix())


def look_into(folder: Path) -> Collected:
    """The files of a collected folder, by name; below it only the rooms of a system. Raises Problem if there are none.

    Whatever else lies there is named with the reason: somebody may have collected it in the belief that it is read.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise Problem(f"the folder {what}", printable(str(folder)), "give the folder that the files were collected in")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise Problem(
            f"the folder cannot be read: {error.strerror}", printable(str(folder)), "ask for the right to read it"
        ) from None
    why_not = {path: _why_not(path) for path in entries}
    for room in _rooms(folder, [path for path, why in why_not.items() if why == FOLDER]):
        del why_not[room]
        with suppress(OSError):  # gone meanwhile
            why_not |= {path: _why_not(path) for path in sorted(room.iterdir())}
    passed_over = {path_text(path.relative_to(folder).as_posix()): why for path, why in why_not.items() if why}
    files = [path for path, why in why_not.items() if not why and plain_name(path) != "case.yaml"]
    if not files:
        inner = list(passed_over.values()).count(FOLDER)
        do = f"it has {inner} folders: name those, each is a snapshot" if inner else "collect the files first"
        raise Problem("the folder holds no files", printable(str(folder)), do)
    return Collected(folder, files, passed_over)


def _rooms(folder: Path, below: list[Path]) -> list[Path]:
    """Which of the folders below belong to the same snapshot: a system names them, and something in them is a file of it.

    The names alone do not tell: a folder `logs` may be anything.
    """
    for system in systems():
        found = [path for path in below if path.name in system.rooms]
        files = (path for room in found for path in _readable(room))
        if any(kind in system.formats for kind in (recognise(path)[0] for path in files) if kind):
            return found
    return []


def _readable(room: Path) -> list[Path]:
    try:
        return [path for path in sorted(room.iterdir()) if not _why_not(path)]
    except OSError:
        return []


def _why_not(path: Path) -> str:
    """Why a load does not read this; empty for a file or a link to one."""
    if path.name.startswith("."):
        return HIDDEN
    try:
        mode = path.stat().st_mode
    except OSError as error:
        missing = path.is_symlink() and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        return NOWHERE if missing else f"cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return FOLDER
    return "" if stat.S_ISREG(mode) else SPECIAL


def _plain(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".zst")


def named_in(collected: Collected) -> dict[str, Named]:
    """What the folder's case.yaml says of each file that it names; empty without one. Raises Problem for a wrong one."""
    # A folder may be packed file by file after it was collected, and the other way round.
    known = [
        path for name in ("case.yaml", "case.yaml.gz", "case.yaml.zst") if (path := collected.folder / name).is_file()
    ]
    if not known:
        return {}
    about = known[0]
    try:
        data = b"".join(unpacked(about)) if packed(about) else about.read_bytes()
    except Broken as error:
        raise Problem(f"cannot be unpacked: {error}", str(about), "collect or copy it again") from None
    content = strict_yaml(data.decode("utf-8", "replace"), str(about))
    servers = _only(content, ("servers", "name", "system", "collected"), about).get("servers", [])
    if not isinstance(servers, list):
        raise Problem("`servers` is not a list", str(about), "write `- name: ...` for each server")
    names = [collected.name_of(path) for path in collected.files]
    named: dict[str, Named] = {}
    for server in servers:
        server = _only(server, ("name", "files", "suffix", "origin"), about)
        name, patterns = server.get("name"), server.get("files", [])
        if not isinstance(name, str) or not name or not isinstance(patterns, list):
            raise Problem("a server needs a `name` and a list of `files`", str(about))
        for pattern in patterns:
            matching = fnmatch.filter(names, str(pattern)) or [
                name for name in names if fnmatch.fnmatch(_plain(name), _plain(str(pattern)))
            ]
            if not matching:
                near = difflib.get_close_matches(str(pattern), names, 1)
                do = f"did you mean {near[0]}?" if near else "check the name"
                if _was_read(content, str(pattern)):
                    do = "it was there when the servers were read: put it back, or take its name out of that file"
                raise Problem(f"no file is named {printable(str(pattern))}", str(about), do)
            named |= dict.fromkeys(matching, Named(name, server.get("suffix"), server.get("origin")))
    return named


def _was_read(content: Mapping[str, Any], file: str) -> bool:
    """True if `workbench collect` wrote down when it read this file."""
    read = content.get("collected")
    return isinstance(read, list) and any(
        isinstance(one, dict) and isinstance(files := one.get("read_at"), dict) and file in files for one in read
    )


def _only(value: Any, keys: tuple[str, ...], about: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Problem("a mapping is expected", str(about), f"its keys are {', '.join(keys)}")
    for key in value:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, 1)
            do = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
            raise Problem(f"unknown key {printable(str(key))}", str(about), do)
    return value


def untouched(old: Input, path: Path, named: Named = NOBODY) -> bool:
    """True if the file is where, as large and as old as when it was read, and still of the same server."""
    try:
        about = path.stat()
    except OSError:
        return False
    same_file = (old.path, old.bytes, old.changed) == (str(path.resolve()), about.st_size, about.st_mtime_ns)
    said = ((named.server, old.server), (named.suffix, old.suffix), (named.origin, old.origin))
    return same_file and all(word in (None, known) for word, known in said)


def identify(label: str, path: Path, named: Named = NOBODY, hashed: bool = True, called: str = "") -> Input:
    """What the file is and whose; nothing of it is read yet but its beginning and, where asked for, its hash.

    `called` is its name in the case, where that is not the file's own.
    """
    kind, name, why = recognise(path)
    system = next((system for system in systems() if kind in system.formats), None)
    size = changed = 0
    digest = ""
    try:
        about = path.stat()
        size, changed, digest = about.st_size, about.st_mtime_ns, sha256_of(path) if hashed else ""
    except OSError as error:
        kind, name, why = None, "unknown", f"cannot be read: {error.strerror}"
    return Input(
        file=called or path_text(path.name),
        path=str(path.resolve()),
        bytes=size,
        changed=changed,
        sha256=digest,
        format=name,
        kind=kind.key if kind else "",
        snapshot=label,
        server=named.server or server_of(path, system, name),
        suffix=system.spelled(named.suffix) if system and named.suffix else named.suffix,
        suffixes=[],
        rows=0,
        rejected=0,
        facts={},
        parts=[],
        why=why,
        origin=named.origin,
    )


def sha256_of(path: Path, given_up: Callable[[], bool] = lambda: False) -> str:
    """The file's SHA-256 in hexadecimal, as `sha256sum` prints it; empty if it was given up on the way."""
    sha256, buffer = hashlib.sha256(), memoryview(bytearray(1 << 20))
    with open(path, "rb", buffering=0) as file:
        while length := file.readinto(buffer):
            if given_up():
                return ""
            sha256.update(buffer[:length])
    return sha256.hexdigest()


def begins(one: Input) -> tuple[str, str]:
    """What orders the files of one log: the time of their first line, else their name."""
    begins = format_with(one.kind).begins
    return (begins(head(Path(one.path))[0]) or "" if begins else "", one.file)


def stores_of(inputs: Iterable[Input], server: str) -> dict[str, str]:
    """The suffix of each store of the server, by the names that its messages call it by, as far as its files tell."""
    found: dict[str, str] = {}
    for one in inputs:
        if one.server == server:
            found |= one.facts.get("stores", {})
    return found


def name_suffixes(known: list[Input], new: list[Input]) -> None:
    """Give each new input the suffix it is about: its server's only one, or the one that all its first changes lie below.

    A log speaks of all suffixes of its server; its rows then go by their targets, and those without one stay unnamed. Of a
    server that did not answer nothing tells its suffixes: it may hold any of those that the others hold.
    """
    held: dict[str, set[str]] = {}
    for one in known:
        if one.kind and format_with(one.kind).tells_suffix:
            facts = one.facts or facts_of(Path(one.path))
            held.setdefault(one.server, set()).update(facts.get("suffixes", {}))
    every = {suffix for mine in held.values() for suffix in mine}
    for one in new:
        if one.suffix:
            continue
        suffixes = sorted(held.get(one.server) or (every if len(every) > 1 else ()))
        if len(suffixes) == 1:
            (one.suffix,) = suffixes
        elif suffixes:
            one.suffixes = suffixes
            found = {suffix_above(target, one) for target in first_targets(Path(one.path), one.source, one.kind)} - {
                None
            }
            one.suffix = found.pop() if len(found) == 1 else None


def suffix_above(target: str, one: Input) -> str | None:
    """The longest of the server's suffixes that the target lies below: one suffix may lie below another."""
    below, lower = system_named(one.kind.split(".", 1)[0]).below, target.lower()
    above = [suffix for suffix in one.suffixes if below and f"{below}{lower}".endswith(f"{below}{suffix.lower()}")]
    return max(above, key=len, default=None)


SILENT, FILLING, SET_BACK = "silent", "filling", "set_back"
"""Spans of time that a log tells: in which a log of operations may have been off or of a form that tells nothing; in which the
entries of a total initialisation came; that came twice, for the clock was set back."""


_REORDERED = timedelta(minutes=10)
"""Parts of a log that were put together in another order end so close to where the first one begins."""


def spans_of(one: Input, fact: str) -> list[tuple[datetime, datetime]]:
    """The spans of time of such a fact."""
    spans = [span.split("/") for span in one.facts.get(fact, ())]
    return [(_moment(begin), _moment(end)) for begin, end in spans]


def set_back_in(one: Input) -> tuple[datetime, datetime] | None:
    """What a log covers twice because the clock of its server was set back: from the lowest time that came again.

    None: its times go on; or its parts were put together in another order, as by `cat access access.20260101`.
    """
    if not (span := one.facts.get(SET_BACK)):
        return None
    first, latest = (_moment(one.facts[f"{SET_BACK}_{name}"]["max"]) for name in ("first", "again"))
    if timedelta(0) <= first - latest < _REORDERED:
        return None
    return _moment(span["min"]), _moment(span["max"])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
