"""The command line. Each command is one verb of the library with its arguments, its output and its exit code."""

from workbench.cli import (  # each adds its commands
    collect,
    diagnosis,
    evidence,
    history,
    lab,
    repair,
    report,
    run,
    what_if,
)
from workbench.cli.terminal import EXIT_CODES, main

__all__ = [
    "EXIT_CODES",
    "collect",
    "diagnosis",
    "evidence",
    "history",
    "lab",
    "main",
    "repair",
    "report",
    "run",
    "what_if",
]
