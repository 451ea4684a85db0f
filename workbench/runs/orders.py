"""A parameters file, checked before anything starts: what is to be run, with which parameters, about which case.

One run, as a notebook's "Copy as parameters file" writes it:

    notebook: 23_missed_changes
    parameters:
      case_folder: ../cases/incident-42
      server: s3

Several, each for every case that is named:

    cases: [../cases/eu, ../cases/us]
    runs:
      - notebook: 20_overview
      - notebook: 23_missed_changes
        parameters: {server: s3}
    timeout: 10m

Every scalar is text as it was written; the parameters cell of the notebook says what it is to become. A name that the cell
does not have is refused, and so is a value that is not of its type: papermill would warn, or guess, and go on. Folders and
files are relative to the parameters file.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.boundary import printable, strict_yaml
from workbench.case import Case
from workbench.jupyter import NOTEBOOKS
from workbench.model import Problem
from workbench.runs.values import check_names, list_of, mapping_of, meant, number_of, seconds_of, text_of

Value = str | int | bool | list[str]

CASE_PARAMETER = "case_folder"
MAKES_ITS_CASE = "snapshots"
"""A notebook with this parameter loads collected folders: its case need not be there before."""

TIMEOUT = 3600

_KEYS = ("cases", "runs", "notebook", "parameters", "timeout", "keep", "check", "notify")
_KEYS_OF_A_RUN = ("notebook", "parameters", "timeout")
_IS_PATH = re.compile(r"(?:^|_)(?:folders?|file|snapshots)$")
_NOTEBOOK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Order:
    """One run that is to be.

    name        tells it from the others of its file, and finds it again among earlier runs: CASE/NOTEBOOK, numbered
    parameters  as the notebook is given them; names that are not here have the notebook's own defaults
    timeout     seconds
    """

    name: str
    notebook: Path
    case_folder: Path
    parameters: Mapping[str, Value]
    timeout: int = TIMEOUT

    @property
    def makes_its_case(self) -> bool:
        """True if the notebook loads what was collected."""
        return MAKES_ITS_CASE in declared(self.notebook)


@dataclass(frozen=True)
class Orders:
    """What a parameters file says: the runs, how many of each are kept, and what else it asks for."""

    path: Path
    runs: list[Order]
    keep: int = 30
    check: Mapping[str, Any] = field(default_factory=dict)
    notify: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Declared:
    """A parameter as the parameters cell of a notebook declares it: `text`, `number`, `truth` or `texts`."""

    kind: str
    default: Value


_KINDS = {"str": "text", "int": "number", "bool": "truth", "list[str]": "texts"}


def read_orders(path: Path) -> Orders:
    """The runs that a parameters file asks for. Raises Problem for anything that would not be run as it is written."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Problem("this is no text in UTF-8", str(path), "is it a parameters file?") from None
    except OSError as error:
        raise Problem(f"cannot read it: {error.strerror}", printable(str(path)), "give a parameters file") from None
    said = strict_yaml(text, str(path))
    where = str(path)
    if not isinstance(said, dict):
        raise Problem("this is no parameters file", where, "it begins with `notebook:` or with `runs:`")
    check_names(said, _KEYS, where)
    if ("notebook" in said) == ("runs" in said):
        raise Problem("it names no notebook, or one beside `runs`", where, "give `notebook:`, or `runs:` with several")
    timeout = seconds_of(said.get("timeout", f"{TIMEOUT}s"), f"{where}: timeout")
    cases = [_path(one, path.parent, f"{where}: cases") for one in list_of(said.get("cases", []), f"{where}: cases")]
    several = [said] if "notebook" in said else list_of(said["runs"], f"{where}: runs")
    if not several:
        raise Problem("`runs` is empty", where, "a file that runs nothing is no pass: name a notebook")
    found = []
    for number, one in enumerate(several, 1):
        place = where if "notebook" in said else f"{where}: run {number}"
        if not isinstance(one, dict):
            raise Problem("this is no run", place, "it begins with `notebook:`")
        if one is not said:
            check_names(one, _KEYS_OF_A_RUN, place)
        found += list(_runs(one, cases, path.parent, timeout, place))
    keep = number_of(said.get("keep", "30"), f"{where}: keep")
    if keep < 1:
        raise Problem("keep is less than 1", where, "the last run is what the next one is compared with")
    return Orders(path, _told_apart(found), keep, mapping_of(said, "check", where), mapping_of(said, "notify", where))


def _runs(one: Mapping[str, Any], cases: list[Path], folder: Path, timeout: int, place: str) -> Iterator[Order]:
    notebook = _notebook(one.get("notebook"), place)
    there = declared(notebook)
    given = mapping_of(one, "parameters", place)
    check_names(given, tuple(there), f"{place}: parameters", secret=True)
    values = {name: _value(name, given[name], there[name].kind, folder, f"{place}: {name}") for name in given}
    if "timeout" in one:
        timeout = seconds_of(one["timeout"], f"{place}: timeout")
    if CASE_PARAMETER not in there:
        if cases and "case_folders" in there:
            values.setdefault("case_folders", [str(case) for case in cases])
        named = values.get("case_folders")
        if not isinstance(named, list) or not named:
            raise Problem("no case is named", place, "give `case_folders:` in `parameters:`")
        for folder_of_case in named:
            _check_case(Path(folder_of_case), False, place)
        yield Order(notebook.stem, notebook, Path(named[0]), values, timeout)
        return
    makes = MAKES_ITS_CASE in there
    if CASE_PARAMETER in values:
        if cases:
            raise Problem("a case is named twice", place, "in `cases:`, or as `case_folder:` of the run, not both")
        of_run = [Path(str(values[CASE_PARAMETER]))] if values[CASE_PARAMETER] else []
    else:
        of_run = cases
    if not of_run:
        raise Problem("no case is named", place, "give `case_folder:` in `parameters:`, or `cases:` for all runs")
    for case in of_run:
        _check_case(case, makes, place)
        yield Order(f"{case.name}/{notebook.stem}", notebook, case, {**values, CASE_PARAMETER: str(case)}, timeout)


def _told_apart(found: list[Order]) -> list[Order]:
    """Runs of one name are numbered in the order of the file; cases of one name are told by the folders they lie in."""
    for depth in range(1, max((len(one.case_folder.parts) for one in found), default=0)):
        names = [one.name for one in found]
        of = {name: {one.case_folder for one in found if one.name == name} for name in names}
        found = [
            replace(one, name=f"{one.case_folder.parts[-1 - depth]}/{one.name}") if len(of[one.name]) > 1 else one
            for one in found
        ]
    names = [one.name for one in found]
    seen: dict[str, int] = {}
    made = []
    for one in found:
        seen[one.name] = seen.get(one.name, 0) + 1
        number = f" {seen[one.name]}" if names.count(one.name) > 1 else ""
        made.append(replace(one, name=one.name + number))
    return made


def declared(notebook: Path) -> dict[str, Declared]:
    """The parameters of a notebook: name -> type and default, as its parameters cell declares them."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        source = next("".join(one["source"]) for one in cells if "parameters" in one["metadata"].get("tags", []))
        tree = ast.parse(source)
    except (OSError, ValueError, KeyError, TypeError, StopIteration, SyntaxError):
        raise Problem("this notebook has no cell of parameters", str(notebook), "give it one, with that tag") from None
    found = {}
    for line in tree.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            kind = _KINDS.get(ast.unparse(line.annotation))
            if kind is None:
                wanted = ", ".join(_KINDS)
                raise Problem(f"{line.target.id} is of no known type", str(notebook), f"declare it as one of {wanted}")
            found[line.target.id] = Declared(kind, ast.literal_eval(line.value))
    return found


def _notebook(name: Any, place: str) -> Path:
    """A notebook of the project by its name: a path would lead to any other program."""
    there = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb") if _NOTEBOOK.fullmatch(path.stem))
    if not there:
        raise Problem("the notebooks are not here", str(NOTEBOOKS), "work in a checkout of the project")
    if not isinstance(name, str) or name not in there:
        shown = printable(str(name))[:80]
        raise Problem(f"there is no notebook {shown}", place, meant(shown, there) or f"there are {', '.join(there)}")
    return NOTEBOOKS / f"{name}.ipynb"


def _value(name: str, given: Any, kind: str, folder: Path, place: str) -> Value:
    if kind == "texts":
        texts = [text_of(one, place) for one in list_of(given, place)]
        return [_resolved(one, folder, place) if one else one for one in texts] if _IS_PATH.search(name) else texts
    text = text_of(given, place, kind)
    if kind == "number":
        return number_of(text, place)
    if kind == "truth":
        if text not in ("true", "false"):
            raise Problem(f"{printable(text)[:80]} is not true or false", place, "write true or false")
        return text == "true"
    return _resolved(text, folder, place) if text and _IS_PATH.search(name) else text


def _path(given: Any, folder: Path, place: str) -> Path:
    text = text_of(given, place)
    if not text:
        raise Problem("an empty path", place, "name a folder")
    return Path(_resolved(text, folder, place))


def _resolved(text: str, folder: Path, place: str) -> str:
    """The path, from the folder of the parameters file on; nothing in it is expanded."""
    if re.match(r"~|[A-Za-z][A-Za-z0-9+.-]*:", text) or set(text) & set("$`*?|<>\\"):
        raise Problem(
            f"{printable(text)[:120]} is no plain path", place, "write it out: nothing is expanded, no address is read"
        )
    if text != text.strip() or any(part != part.strip() for part in Path(text).parts):
        raise Problem(f"{printable(text)[:120]} has a blank at an end", place, "take it away")
    if any(len(part.encode()) > 255 for part in Path(text).parts):
        raise Problem(f"{printable(text)[:120]} has a name that no folder can have", place, "shorten it")
    try:
        return str((folder / text).resolve())
    except (OSError, RuntimeError):  # Python before 3.13 raises the latter
        raise Problem(f"{printable(text)[:120]} leads nowhere", place, "a link in it leads back to itself") from None


def _check_case(case: Path, makes: bool, place: str) -> None:
    if Case.lies_in(case):
        return
    if not makes:
        what = "this is not a case" if case.exists() else "there is no such case"
        raise Problem(what, f"{place}: {printable(str(case))}", "make it with `workbench load FOLDER --case CASE`")
    try:
        Case.create(case)
    except Problem as problem:
        raise Problem(problem.what, f"{place}: {printable(str(case))}", problem.do) from None
    if not case.parent.is_dir():
        raise Problem("its folder does not exist", f"{place}: {printable(str(case))}", "make it, or name another")
