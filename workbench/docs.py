"""The pages under docs/ that are made from the registries: `python -m workbench.docs` writes them, a test compares them.

Nothing is told twice: a code, a column, an input of a what-if case and an option are explained where they are defined.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.cli import EXIT_CODES, main
from workbench.diagnosis.codes import all_codes
from workbench.diagnosis.detectors import DETECTORS
from workbench.diagnosis.output_keys import KEYS
from workbench.input_validation import described
from workbench.model import STAGES
from workbench.rules.assumptions import ASSUMPTIONS
from workbench.rules.link_failures import REASONS
from workbench.scenarios import kinds
from workbench.systems import system_named, systems
from workbench.tables import COLUMNS, SOURCE
from workbench.topology.topology import EARLIER_SNAPSHOT, VECTOR

MADE = "<!-- made by `make docs` from the program's own registries: change those, not this page -->"


def pages() -> dict[str, str]:
    """Name of the page -> its text."""
    made = {"commands.md": commands(), "findings.md": findings(), "repairs.md": repairs()}
    return {**made, "scenarios.md": scenarios(), "tables.md": tables()}


def findings() -> str:
    """The output of `workbench diagnose --json`: its keys, codes, kinds of evidence and exit codes."""
    codes = all_codes()
    parts = [
        "# What `workbench diagnose` writes",
        "One JSON object. Positions and origins are text, as the system writes them. Keys may be added; those below keep "
        "their name, type and meaning. Lists are sorted, so that the same input gives the same bytes.",
        "## Keys",
        "`[]` is each entry of a list, `{...}` each key of an object whose keys are data, `*` whatever stands below.",
        _table(("key", "meaning"), [(f"`{path}`", says) for path, says in KEYS.items()]),
        "## Codes",
        "A closed list. The severity is that of the case at hand; where several stand, the finding says which.",
        "### Every system",
        _codes(codes.pop("")),
    ]
    for name, theirs in codes.items():
        parts += [f"### {system_named(name).title}", _codes(theirs)]
    parts += [
        "## Why a link fails",
        "`findings[].reason` of LINK_FAILING, `links[].failing` and `pairs[].link_failing`:",
        _table(("reason", "says"), [(f"`{reason}`", says) for reason, says in REASONS.items()]),
    ]
    parts += [
        "## What findings assume",
        "`findings[].assumes`:",
        _table(("code", "says"), [(f"`{code}`", says) for code, says in ASSUMPTIONS.items()]),
    ]
    parts += [
        "## What is asked, and in which order",
        "What comes later may be the consequence of what comes before.",
        _table(("stage", "every system", *(one.title for one in systems())), list(_stages())),
        "## Kinds of evidence",
        _table(("kind", "files"), [(f"`{kind}`", files) for kind, files in _evidence().items()]),
        "## Exit codes",
        _table(("code", "meaning"), [(str(code), says) for code, says in EXIT_CODES.items()]),
    ]
    return _page(parts)


def repairs() -> str:
    """The repairs of every system, in the order in which they are considered."""
    parts = [
        "# Repairs",
        "What `workbench plan` considers, the gentlest first. Each is tried on a model of the case: one that does not restore "
        "what it says, or after which anything is missing that was not before, is refused there. Of the proven ones that is "
        "taken which restores most, then the one that throws away least, then one that gives nothing up, then the first "
        "of this list. Those at the end are only ever shown, with the reason why they are not to be done.",
    ]
    for system in systems():
        if system.repairs:
            rows = [
                (_words(type(one).__name__), _first(type(one)), _first(one.propose)) for one in system.repairs().ladder
            ]
            parts += [f"## {system.title}", _table(("repair", "what it does", "considered"), rows)]
    return _page(parts)


def _words(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _first(explained: Any) -> str:
    """The first line of a docstring."""
    return str(explained.__doc__ or "").strip().split("\n")[0]


def _codes(codes: Mapping[str, Any]) -> str:
    rows = [(f"`{code}`", ", ".join(one.severities), one.says) for code, one in sorted(codes.items())]
    return _table(("code", "severity", "says"), rows)


def _stages() -> Iterable[Sequence[str]]:
    for stage in STAGES:
        asked = [DETECTORS.get(stage, ()), *(one.detectors().get(stage, ()) for one in systems())]
        yield (stage, *(", ".join(f"`{detector.__name__}`" for detector in some) for some in asked))


def _evidence() -> dict[str, str]:
    kinds_of: dict[str, set[str]] = {}
    for system in systems():
        for kind in system.formats:
            if kind.evidence:
                kinds_of.setdefault(kind.evidence, set()).add(kind.name)
            if kind.is_log:
                kinds_of.setdefault(f"{kind.evidence}_earlier", set()).add(
                    f"{kind.name} (not the latest of its server)"
                )
    found = {kind: ", ".join(sorted(files)) for kind, files in sorted(kinds_of.items())}
    return {
        VECTOR: "any file that tells the server's own vector",
        EARLIER_SNAPSHOT: "any, of an earlier snapshot",
        **found,
    }


def scenarios() -> str:
    """Every kind of what-if case: its question and its inputs."""
    parts = [
        "# What-if cases",
        "`workbench scenario FILE` answers them. A case is `{id, kind, inputs}`; each is answered on a line of its own with "
        "`{id, kind, result}`, or with `{id, kind, error}`.",
    ]
    for name, kind in kinds().items():
        parts += [f"## {name}", kind.question]
        rows = [(f"`{one}`", says) for one, says in described(kind.inputs).items()]
        parts.append(_table(("input", "what to give"), rows))
    return _page(parts)


def tables() -> str:
    """Every evidence table and its columns."""
    parts = [
        "# Evidence tables",
        "Parquet below `CASE/evidence/`. `position`, `min` and `max` hold order keys: their plain text order is that of the "
        "protocol. Times are UTC. A null means that the file does not say. Every table begins with these columns:",
        _columns(SOURCE),
    ]
    for name, columns in COLUMNS.items():
        parts += [f"## {name}", _columns(columns)]
    return _page(parts)


def _columns(columns: Mapping[str, tuple[Any, str]]) -> str:
    return _table(
        ("column", "type", "meaning"), [(f"`{name}`", str(kind), says) for name, (kind, says) in columns.items()]
    )


def commands() -> str:
    """Every command of the command line, its arguments and options."""
    parts = [
        "# Commands",
        "Every command has `--help`.",
        "## Exit codes",
        _table(("code", "meaning"), [(str(code), says) for code, says in EXIT_CODES.items()]),
    ]
    for name, command in sorted(main.commands.items()):
        parts += [f"## workbench {name}", re.sub(r"[ \t]*\n[ \t]*", "\n", (command.help or "").strip())]
        rows = [(f"`{_spelled(one)}`", _help(one)) for one in command.params]
        parts.append(_table(("argument or option", "meaning"), rows))
    return _page(parts)


def _spelled(one: Any) -> str:
    many = "..." if one.nargs == -1 else ""
    if one.param_type_name == "argument":
        name = str(one.metavar or one.name).upper()
        return f"{name}{many}" if one.required else f"[{name}]{many}"
    names = ", ".join((*one.opts, *one.secondary_opts))
    if one.is_flag:
        return names
    choices = getattr(one.type, "choices", None)
    value = one.metavar or ("|".join(map(str, choices)) if choices else one.type.name.upper())
    return f"{names} {value}"


def _help(one: Any) -> str:
    if one.param_type_name == "argument":
        return "see above" if one.required else "see above; optional"
    again = " May be given several times." if one.multiple else ""
    shown = f" Default: {one.default}." if one.show_default else ""
    return f"{one.help or ''}{again}{shown}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    if not rows:
        return "None."
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def _page(parts: Iterable[str]) -> str:
    first, *others = parts
    return "\n\n".join([first, MADE, *others]) + "\n"


def write(folder: Path) -> None:
    """Write the pages into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs")
