"""Faults planted into modules, one at a time: a replacement in the source text, made in memory, run as fresh modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from conftest import ROOT

Check = Callable[[dict[str, ModuleType]], None]


class Fault(NamedTuple):
    module: str
    original: str
    replacement: str
    breaks: str


@cache
def text_of(module: str) -> str:
    return (ROOT / Path(*module.split(".")).with_suffix(".py")).read_text(encoding="utf-8")


@cache
def compiled(module: str) -> CodeType:
    return compile(text_of(module), module, "exec")


@contextmanager
def fresh_modules(changed: str = "", text: str = "", names: Sequence[str] = ()) -> Iterator[dict[str, ModuleType]]:
    """The modules, run anew and apart from those of the house; one of them may have another text."""
    before = {name: sys.modules.get(name) for name in names}
    try:
        for name in names:
            sys.modules[name] = ModuleType(name)
            exec(compile(text, name, "exec") if name == changed else compiled(name), sys.modules[name].__dict__)
        yield {name: sys.modules[name] for name in names}
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def run_checks(module: str, caught_by: Mapping[str, Sequence[Check]], text: str = "") -> None:
    """The checks of a module, on its text or on another one. `caught_by` has all modules, in the order of their imports."""
    with fresh_modules(module if text else "", text, list(caught_by)) as modules:
        for check in caught_by[module]:
            check(modules)


def check_noticed(fault: Fault, caught_by: Mapping[str, Sequence[Check]]) -> None:
    """The checks of its module fail with the fault."""
    text = text_of(fault.module)
    assert text.count(fault.original) == 1, "the place of the fault is gone, or there is more than one"
    noticed: Exception | None = None
    try:
        run_checks(fault.module, caught_by, text.replace(fault.original, fault.replacement))
    except Exception as caught:  # a fault may show itself as anything: a wrong answer, a KeyError, an endless session
        noticed = caught
    assert noticed, "the fault is not noticed"
    assert not isinstance(noticed, (SyntaxError, ImportError, NameError)), f"not a fault but a slip: {noticed}"


def name_of(fault: Fault) -> str:
    """How a test of it is called."""
    return f"{fault.module.removeprefix('workbench.')}-{fault.breaks}"
