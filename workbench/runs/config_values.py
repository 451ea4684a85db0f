"""The values of a parameters file: each as it is written and meant, or a Problem that says where it is wrong.

`strict_yaml` leaves every scalar as text; what it is to be is said here by who asks for it, and never guessed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from workbench.model import Problem
from workbench.safety import printable

LONGEST = 4096

MEANS = {
    "text": "text",
    "number": "a whole number",
    "truth": "true or false",
    "texts": "a list of texts",
}
"""Kind of a value -> what a person calls it."""

LARGEST = 64 << 10
"""Bytes of a file that a person writes."""
LONGEST_SPAN = 3660
"""Days."""

_SPAN = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def check_names(given: Mapping[str, Any], known: tuple[str, ...], place: str, secret: bool = False) -> None:
    """Refuse a name that is not known, and say which one was meant. With `secret`, say where secrets belong."""
    for name in given:
        if name not in known:
            shown = printable(name)[:80]
            do = meant(shown, list(known)) or f"there are {', '.join(known)}"
            if secret and re.search("passw|secret|token|credential", shown, re.IGNORECASE):
                do = "a secret is never a parameter: name a file that holds it, or set it in the environment"
            raise Problem(f"there is no {shown}", place, do)


def meant(name: str, known: list[str]) -> str:
    """A question that names what is alike; nothing where nothing is."""
    close = get_close_matches(name, known, 1, 0.5)
    return f"did you mean {close[0]}?" if close else ""


def text_of(given: Any, place: str, kind: str = "text") -> str:
    """One text, of one line, that shows all its letters."""
    if not isinstance(given, str):
        raise Problem(f"this is not {MEANS[kind]}", place, f"give {MEANS[kind]}")
    if len(given) > LONGEST:
        raise Problem(f"a value of {len(given):,} letters", place, f"at most {LONGEST:,}: is it the right one?")
    if _UNSEEN.search(given):
        raise Problem(f"{printable(given)[:80]} holds letters that nobody sees", place, "write it anew, in one line")
    return given


def list_of(given: Any, place: str) -> list[Any]:
    """A list."""
    if not isinstance(given, list):
        raise Problem("this is not a list", place, "write [one, two], or a line with `- ` for each")
    return given


def mapping_of(said: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    """The names and values below a key; none where it is absent."""
    given = said.get(key) or {}
    if not isinstance(given, dict):
        raise Problem(f"`{key}` has no names", place, f"write `name: value` below `{key}:`")
    return given


def number_of(text: Any, place: str) -> int:
    """A whole number of at most 15 digits: a longer one is an id."""
    if not isinstance(text, str) or not re.fullmatch("-?(?:0|[1-9][0-9]{0,14})", text):
        raise Problem(f"{printable(str(text))[:80]} is not a whole number", place, "write digits alone")
    return int(text)


def seconds_of(text: Any, place: str) -> int:
    """A span of time, as seconds."""
    found = _SPAN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise Problem(f"{printable(str(text))[:80]} is no span of time", place, "write for example 90s, 10m, 2h or 1d")
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds > LONGEST_SPAN * _SECONDS["d"]:
        raise Problem(f"{text} is longer than {LONGEST_SPAN:,} days", place, "is the unit the right one?")
    return seconds


def text_in(path: Path, do: str) -> str:
    """What a person wrote into a file. A device or a pipe is refused before it is read: it may have no end, or no beginning."""
    where = printable(str(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe that nobody writes to is opened at once
        try:
            plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = os.read(descriptor, LARGEST + 1) if plain else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Problem(f"cannot read it: {error.strerror}", where, do) from None
    if not plain:
        raise Problem("cannot read it: this is no plain file", where, do)
    if len(data) > LARGEST:
        raise Problem(f"more than {LARGEST >> 10} KiB", where, "what a person writes is shorter: is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Problem("this is no text in UTF-8", where, do) from None
