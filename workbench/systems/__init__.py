"""The replicated systems: each folder beside this file whose package defines `SYSTEM` is one, found by being there."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from workbench.model import Format, System


@cache
def systems() -> tuple[System, ...]:
    """Every system of the house, by name."""
    found = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return tuple(sorted((package.SYSTEM for package in found if hasattr(package, "SYSTEM")), key=lambda s: s.name))


def system_named(name: str) -> System:
    """The system of that name, as in case.yaml and in the first part of a format's name."""
    return next(system for system in systems() if system.name == name)


def format_with(key: str) -> Format:
    """The format with that key: `ds389.access-log`."""
    return next(kind for kind in system_named(key.split(".", 1)[0]).formats if kind.key == key)
