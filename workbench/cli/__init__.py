"""The command line. Each command is one verb of the library with its arguments, its output and its exit code."""

from workbench.cli import collect, diagnosis, evidence, history, lab, repair, report, what_if  # each adds its commands
from workbench.cli.terminal import EXIT_CODES, main

__all__ = ["EXIT_CODES", "collect", "diagnosis", "evidence", "history", "lab", "main", "repair", "report", "what_if"]
