"""What-if cases out of a file, and their answers: what would this server send, which changes are at risk, and why.

A case is `{"id", "kind", "inputs"}`; a kind belongs to a system, which has the rule and the model of its inputs. Files
are JSON lines, a JSON array, or YAML as a person writes it, packed or not; the content tells which. What is wrong with
one case is the answer of that case, the others are answered all the same.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from workbench.input_validation import checked, quoted
from workbench.intake.files import head, path_text, pieces
from workbench.model import LINES, WHOLE, Kind, Problem, Reject, Source
from workbench.safety import yaml_documents
from workbench.systems import systems

LONGEST_NUMBER = 20
"""Digits; no clock, count or replica ID has more, and what does is a CSN without its quotes."""

_MARK = "\ufeff"
_FORM = "cases are JSON lines, a JSON array or YAML: {id, kind, inputs}"


@dataclass(frozen=True)
class Unreadable:
    """Stands for a case that could not be read: where in the file, and why."""

    where: str
    why: str


@cache
def kinds() -> dict[str, Kind]:
    """Every kind of every system by name."""
    return {name: kind for system in systems() for name, kind in system.scenarios().items()}


def kind_named(name: Any) -> Kind:
    """The kind of that name; a Problem names those that it may be meant for."""
    if isinstance(name, str) and name in kinds():
        return kinds()[name]
    near = difflib.get_close_matches(str(name)[:60], kinds(), 3)
    raise Problem(f"unknown kind {quoted(name)}" + (f": did you mean {' or '.join(near)}?" if near else ""))


def answer(kind: str, inputs: Any) -> dict[str, Any]:
    """The answer to one question; a Problem if the inputs do not fit it."""
    asked = kind_named(kind)
    return asked.answer(checked(asked.inputs, inputs, "inputs"))


def evaluate(cases: Iterable[Any], only: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Per case, in order: {"id", "kind", "result"}, or {"id", "kind", "error"} with what is wrong and where.

    A case without an id goes by its number. Those of other kinds than `only`, if there are any, are passed over.
    """
    only = frozenset(only)
    for number, case in enumerate(cases, 1):
        kind = case.get("kind") if isinstance(case, dict) else None
        kind = kind if isinstance(kind, str) else None
        if only and kind is not None and kind not in only:
            continue
        named = case.get("id") if isinstance(case, dict) else None
        usable = isinstance(named, (str, int, float)) and not isinstance(named, bool)
        about = {"id": named if usable else number, "kind": kind}
        try:
            if isinstance(case, Unreadable):
                raise Problem(f"{case.where}: {case.why}")
            if not isinstance(case, dict):
                raise Problem(f"case {number} of the file is {quoted(case)}, not an object with id, kind and inputs")
            if not usable:
                what = "has no id" if named is None else f"has {quoted(named)} as its id"
                raise Problem(f"case {number} of the file {what}: give it a text or a number")
            missing = [key for key in ("kind", "inputs") if key not in case]
            if missing:
                raise Problem(f"{missing[0]} is missing")
            result = answer(case["kind"], case["inputs"])
        except Problem as problem:
            yield {**about, "error": str(problem)}
        except Exception as error:  # a fault of ours must not cost the other cases; its message may quote anything
            yield {**about, "error": f"{kind} failed ({type(error).__name__}): please report it with the case"}
        else:
            yield {**about, "result": result}


def read_cases(file: str | Path) -> Iterator[Any]:
    """The cases of a file in order, as they are written; `-` is standard input. Raises Problem if it is no such file."""
    with _on_disk(file) as path:
        where = "standard input" if str(file) == "-" else path_text(file)
        start = _text(head(path)[0], "replace").removeprefix(_MARK).lstrip()
        if start.startswith("["):
            yield from _array(_document(path, where))
        elif start.startswith("{"):
            yield from _objects(path, where)
        elif start:
            for document in yaml_documents(_document(path, where), where):
                if document is None:  # between two lines of ---
                    continue
                if not isinstance(document, (list, dict)):
                    raise Problem("neither JSON nor a YAML list or mapping of cases", where, _FORM)
                yield from document if isinstance(document, list) else [document]
        else:
            # Packing that is damaged from its first byte on holds nothing either, and says so here.
            _document(path, where)
            raise Problem("there is no case in it", where, _FORM)


@contextmanager
def _on_disk(file: str | Path) -> Iterator[Path]:
    """A file that can be read more than once: a pipe is read to its end first."""
    path = Path(file)
    if str(file) != "-" and path.is_dir():
        raise Problem("is a folder, not a file of cases", path_text(file))
    if str(file) != "-" and (path.is_file() or not path.exists()):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        copy = Path(folder) / "cases"
        with open(copy, "wb") as out:
            if str(file) == "-":
                shutil.copyfileobj(sys.stdin.buffer, out)
            else:
                with open(path, "rb") as pipe:
                    shutil.copyfileobj(pipe, out)
        yield copy


def _text(data: bytes, errors: str = "strict") -> str:
    return data.decode("utf-8", errors)


def _document(path: Path, where: str) -> str:
    """The whole file as one text."""
    for piece in pieces(path, Source("", "", ""), WHOLE):
        if isinstance(piece, Reject):
            raise Problem(piece.reason, where)
        try:
            return _text(piece.data).removeprefix(_MARK)
        except UnicodeDecodeError as error:
            raise Problem(f"not UTF-8 text: byte {piece.data[error.start]:#04x} at {error.start}", where) from None
    return ""


def _objects(path: Path, where: str) -> Iterator[Any]:
    """JSON objects: one in a line; or, as people and tools lay them out for reading, over several lines."""
    lines = _lines(path)
    first = next(lines)
    if isinstance(first, Unreadable) and (objects := _laid_out(path, where)) is not None:
        yield from objects
        return
    yield first
    yield from lines


def _lines(path: Path) -> Iterator[Any]:
    """The value of each line that is not empty."""
    number = 0
    for piece in pieces(path, Source("", "", ""), LINES):
        if isinstance(piece, Reject):
            number += 1
            yield Unreadable(f"line {number}", piece.reason)
            continue
        data = piece.data if piece.offset else piece.data.removeprefix(_MARK.encode())
        for line in data.split(b"\n"):
            number += 1
            if line.strip():
                value = _json(line)
                yield Unreadable(f"line {number}", value.why) if isinstance(value, Unreadable) else value
        number -= piece.data.endswith(b"\n")


def _laid_out(path: Path, where: str) -> Iterator[Any] | None:
    """Objects one behind the other, whatever the line ends; None if the first one is not whole, or ends in its line."""
    try:
        text = _document(path, where)
    except Problem:
        return None
    begin = _blank(text, 0)
    _, end = _Decoder().value(text, begin)
    return _sequence(text, begin) if end and "\n" in text[begin:end] else None


def _array(text: str) -> Iterator[Any]:
    yield from _sequence(text, text.index("[") + 1, array=True)


def _sequence(text: str, at: int, array: bool = False) -> Iterator[Any]:
    """The values of an array, or of a text. What cannot be read is passed by where its brackets close."""
    number, lines = 0, _Lines(text)
    while True:
        at = _blank(text, at)
        if at >= len(text):
            if array:
                yield Unreadable(lines.at(at), "the array does not end: was the file cut?")
            return
        if array and text[at] == "]":
            if rest := text[_blank(text, at + 1) :]:
                yield Unreadable(lines.at(len(text) - len(rest)), f"{quoted(rest)} stands behind the array")
            return
        if array and number:
            if text[at] != ",":
                yield Unreadable(lines.at(at), "no comma between two cases: nothing is read from here on")
                return
            at = _blank(text, at + 1)
        number += 1
        value, end = _Decoder().value(text, at)
        if isinstance(value, Unreadable):
            end = _behind_brackets(text, at) if end is None else end
            value = Unreadable(lines.at(at), value.why + ("" if end else "; nothing is read from here on"))
        yield value
        if end is None:
            return
        at = end


def _blank(text: str, at: int) -> int:
    found = re.compile(r"[ \t\r\n]*").match(text, at)
    return found.end() if found else at


class _Lines:
    """Which line a place lies in, for places asked in order: a count from the beginning each time would be quadratic."""

    def __init__(self, text: str) -> None:
        self._text, self._asked, self._number = text, 0, 1

    def at(self, place: int) -> str:
        self._number += self._text.count("\n", self._asked, place)
        self._asked = place
        return f"line {self._number}"


def _behind_brackets(text: str, at: int) -> int | None:
    """Where the object that begins here ends, if it does; its inside may be anything but a lone quote."""
    if not text.startswith(("[", "{"), at):
        return None
    depth = 0
    for found in re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]').finditer(text, at):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth == 0:
            return found.end()
    return None


def _json(line: bytes) -> Any:
    """The value of one line, or Unreadable."""
    try:
        text = _text(line)
    except UnicodeDecodeError as error:
        return Unreadable("", f"not UTF-8 text: byte {line[error.start]:#04x} at {error.start}")
    value, end = _Decoder().value(text, _blank(text, 0))
    if end is not None and (rest := text[_blank(text, end) :]):
        return Unreadable("", f"{quoted(rest)} stands behind the object")
    return value


class _Decoder(json.JSONDecoder):
    """JSON as its standard has it: Python would take NaN, keep the last of two equal keys, and read 1e999 as infinity."""

    def __init__(self) -> None:
        self._wrong: list[str] = []
        super().__init__(
            object_pairs_hook=self._object,
            parse_constant=lambda text: self._refuse(f"{text} is not a number"),
            parse_int=lambda text: int(text) if len(text) <= LONGEST_NUMBER else self._too_large(text),
            parse_float=lambda text: value if math.isfinite(value := float(text)) else self._too_large(text),
        )

    def value(self, text: str, at: int) -> tuple[Any, int | None]:
        """(the value that begins there, where it ends); Unreadable without an end if that cannot be told."""
        try:
            value, end = self.raw_decode(text, at)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
            here = quoted(text[error.pos : error.pos + 99])
            what = "not whole: was it cut?" if cut else f"broken JSON at {here}: {error.msg}"
            return Unreadable("", what), None
        except RecursionError:
            return Unreadable("", "nested too deeply"), None
        return (Unreadable("", self._wrong[0]), end) if self._wrong else (value, end)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            self._refuse(f"the key {quoted(twice)} stands in one object twice")
        return made

    def _too_large(self, text: str) -> None:
        self._refuse(f"{quoted(text)[1:-1]} is too large for a number: is it a text without its quotes?")

    def _refuse(self, why: str) -> None:
        self._wrong.append(why)
