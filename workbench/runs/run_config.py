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
      - notebook: 23_missed_changes
        name: of-the-eldest      # two runs of one notebook need two names
        parameters: {server: s1}
    timeout: 10m

Every scalar is text as it was written; the parameters cell of the notebook says what it is to become. A name that the cell
does not have is refused, and so is a value that is not of its type: papermill would warn, or guess, and go on. Folders and
files are relative to the parameters file.

A run is found again, by what is kept of it and by its baseline, under its file, the case as it is written there, and the
notebook or the name that is given. So two files about one case do not meet, and neither do runs that are added. The file is told
by its way from the case, not by its name alone: `eu/nightly.yaml` and `us/nightly.yaml` may be about one case. A tree that is
moved as a whole keeps its history.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.case.case import Case
from workbench.jupyter import NOTEBOOKS
from workbench.model import Problem
from workbench.runs.config_values import (
    check_names,
    list_of,
    mapping_of,
    meant,
    number_of,
    seconds_of,
    text_in,
    text_of,
)
from workbench.safety import printable, strict_yaml

Value = str | int | bool | list[str]

CASE_PARAMETER = "case_folder"
MAKES_ITS_CASE = "snapshots"
"""A notebook with this parameter loads collected folders: its case need not be there before."""

TIMEOUT = 3600

_KEYS = ("cases", "runs", "notebook", "name", "parameters", "timeout", "keep", "check", "notify")
_KEYS_OF_A_RUN = ("notebook", "name", "parameters", "timeout")
_IS_PATH = re.compile(r"(?:^|_)(?:folders?|file|snapshots)$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Of a notebook, or of a run."""


RESERVED = ("parameters", "notify", "baseline")
"""What `check` calls that which stands for a file, and not for a run of it."""


@dataclass(frozen=True)
class Order:
    """One run that is to be.

    name        tells it from the others of its file: CASE/NOTEBOOK, the case as it is written there
    parameters  as the notebook is given them; names that are not here have the notebook's own defaults
    timeout     seconds
    file        the parameters file as it is seen from the case; with `name` it finds the run again among earlier ones
    cases       of a run about several: the folder of each -> the case as it is written there
    """

    name: str
    notebook: Path
    case_folder: Path
    parameters: Mapping[str, Value]
    timeout: int = TIMEOUT
    file: str = ""
    cases: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Value]:
        """The parameters, folders and files as they are seen from the parameters file: so they are those of a moved tree, too."""
        home = os.path.normpath(self.case_folder / self.file / "..")

        def seen(text: str) -> str:
            return os.path.relpath(text, home) if text else text

        return {
            name: value
            if not _IS_PATH.search(name)
            else [seen(one) for one in value]
            if isinstance(value, list)
            else seen(str(value))
            for name, value in self.parameters.items()
        }

    @property
    def paths(self) -> list[Path]:
        """Files and folders that the notebook is given."""
        given = [value for name, value in self.parameters.items() if _IS_PATH.search(name)]
        texts = [text for value in given for text in (value if isinstance(value, list) else [str(value)])]
        return [Path(text) for text in texts if text]


@dataclass(frozen=True)
class Refused:
    """A run that cannot be, because its case is not there, or none of its cases; the others of the file can."""

    order: Order
    why: str


@dataclass(frozen=True)
class Orders:
    """What a parameters file says: the runs, how many of each are kept, and what else it asks for.

    refused  runs whose cases are not there
    """

    path: Path
    runs: list[Order]
    keep: int = 30
    check: Mapping[str, Any] = field(default_factory=dict)
    notify: Mapping[str, Any] = field(default_factory=dict)
    refused: Sequence[Refused] = ()


@dataclass(frozen=True)
class Declared:
    """A parameter as the parameters cell of a notebook declares it: `text`, `number`, `truth` or `texts`."""

    kind: str
    default: Value


_KINDS = {"str": "text", "int": "number", "bool": "truth", "list[str]": "texts"}


def read_orders(path: Path) -> Orders:
    """The runs that a parameters file asks for. Raises Problem for anything that would not be run as it is written."""
    said, where = read_file(path), printable(str(path))
    check_names(said, _KEYS, where)
    if ("notebook" in said) == ("runs" in said):
        raise Problem("it names no notebook, or one beside `runs`", where, "give `notebook:`, or `runs:` with several")
    for key, what in (("name", "a name"), ("parameters", "parameters")):
        if "runs" in said and key in said:
            raise Problem(f"{what} for several runs", where, f"give `{key}:` to each of `runs` that it is meant for")
    timeout = seconds_of(said.get("timeout", f"{TIMEOUT}s"), f"{where}: timeout")
    cases = [text_of(one, f"{where}: cases") for one in list_of(said.get("cases", []), f"{where}: cases")]
    several = [said] if "notebook" in said else list_of(said["runs"], f"{where}: runs")
    if not several:
        raise Problem("`runs` is empty", where, "a file that runs nothing is no pass: name a notebook")
    found: list[Order | Refused] = []
    for number, one in enumerate(several, 1):
        place = where if "notebook" in said else f"{where}: run {number}"
        if not isinstance(one, dict):
            raise Problem("this is no run", place, "it begins with `notebook:`")
        if one is not said:
            check_names(one, _KEYS_OF_A_RUN, place)
        found += list(_runs(one, cases, path, timeout, place))
    _check_apart([one.order if isinstance(one, Refused) else one for one in found], where)
    keep = number_of(said.get("keep", "30"), f"{where}: keep")
    if keep < 1:
        raise Problem("keep is less than 1", where, "the last run is what the next one is compared with")
    return Orders(
        path,
        [one for one in found if isinstance(one, Order)],
        keep,
        mapping_of(said, "check", where),
        mapping_of(said, "notify", where),
        [one for one in found if isinstance(one, Refused)],
    )


def read_file(path: Path) -> dict[str, Any]:
    """What a parameters file says, before anything of it is checked."""
    said = strict_yaml(text_in(path, "give a parameters file"), printable(str(path)))
    if not isinstance(said, dict):
        do = "it begins with `notebook:` or with `runs:`"
        raise Problem("this is no parameters file", printable(str(path)), do)
    return said


def home_of(path: Path) -> Path:
    """The file by one name, whatever way led to it. Links to its folder are followed, a link that is the file itself is not:
    what is relative in it goes by where that link lies, so two links to one file are two files.
    """
    return path.parent.resolve() / path.name


def only_notify(path: Path) -> Orders:
    """Whom the file wants told, whatever else is wrong with it."""
    return Orders(path, [], notify=mapping_of(read_file(path), "notify", printable(str(path))))


def _runs(
    one: Mapping[str, Any], cases: Sequence[str], file: Path, timeout: int, place: str
) -> Iterator[Order | Refused]:
    notebook = _notebook(one.get("notebook"), place)
    there = declared(notebook)
    given = mapping_of(one, "parameters", place)
    check_names(given, tuple(there), f"{place}: parameters", secret=True)
    folder = file.parent
    values = {name: _value(name, given[name], there[name].kind, folder, f"{place}: {name}") for name in given}
    if "timeout" in one:
        timeout = seconds_of(one["timeout"], f"{place}: timeout")
    name = text_of(one.get("name", notebook.stem), f"{place}: name")
    if not _NAME.fullmatch(name):
        raise Problem(f"{printable(name)[:80]} is no name of a run", place, "give up to 64 letters, digits, - and _")

    def ordered(
        name: str, folders: list[Path], values: Mapping[str, Value], makes: bool, written: Mapping[str, str]
    ) -> Order | Refused:
        why = {case: _no_case(case, makes, place) for case in folders}
        # Of several the notebook itself tells which is not there: the others are to be looked at.
        first = next((case for case in folders if not why[case]), folders[0])
        seen_from_case = os.path.relpath(home_of(file), first)
        order = Order(name, notebook, first, values, timeout, seen_from_case, written)
        return Refused(order, why[first]) if why[first] else order

    if CASE_PARAMETER not in there:
        if cases and "case_folders" in given:
            raise Problem("cases are named twice", place, "in `cases:`, or as `case_folders:` of the run, not both")
        if cases and "case_folders" in there:
            values.setdefault("case_folders", [str(_path(case, folder, f"{place}: cases")) for case in cases])
        named = values.get("case_folders")
        if not isinstance(named, list) or not all(named) or not named:
            raise Problem("no case is named", place, "give `case_folders:` in `parameters:`")
        if len(set(named)) < len(named):
            raise Problem("one case is named twice", f"{place}: case_folders", "name each once, by one path")
        if name in RESERVED:
            raise Problem(f"a run of several cases cannot be called {name}", place, "give it another name")
        texts = given.get("case_folders", cases)
        written = {case: str(Path(text)) for case, text in zip(named, texts, strict=True)}
        yield ordered(name, [Path(case) for case in named], values, False, written)
        return
    if CASE_PARAMETER in values and cases:
        raise Problem("a case is named twice", place, "in `cases:`, or as `case_folder:` of the run, not both")
    texts = [str(given[CASE_PARAMETER])] if values.get(CASE_PARAMETER) else cases if CASE_PARAMETER not in given else []
    if not texts:
        raise Problem("no case is named", place, "give `case_folder:` in `parameters:`, or `cases:` for all runs")
    for text in texts:
        case = _path(text, folder, f"{place}: cases")
        with_case = {**values, CASE_PARAMETER: str(case)}
        yield ordered(f"{Path(text)}/{name}", [case], with_case, MAKES_ITS_CASE in there, {})


def _check_apart(found: Sequence[Order], where: str) -> None:
    """Refuse a run that is asked for twice, by whatever path to its case, and two that would be taken for one later."""
    for number, one in enumerate(found):
        for other in found[:number]:
            if (one.notebook, one.parameters) == (other.notebook, other.parameters):
                what = (
                    f"{other.name} and {one.name} are the same run" if one.name != other.name else f"{one.name} twice"
                )
                raise Problem(what, where, "name the case once, by one path, or give other parameters")
            if one.name == other.name:
                do = "give one of them another name, with `name:`: by its name it is found again in the next night"
                raise Problem(f"two runs are called {one.name}", where, do)


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
    there = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb") if _NAME.fullmatch(path.stem))
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


def _no_case(case: Path, makes: bool, place: str) -> str:
    """Why a run cannot be about this case; empty if it can."""
    try:
        _check_case(case, makes, place)
    except Problem as problem:
        return str(problem)
    except OSError as error:
        where = f"{place}: {printable(str(error.filename or case))}"
        return str(Problem(f"cannot read it: {error.strerror}", where, "look who may read the case"))
    return ""


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
