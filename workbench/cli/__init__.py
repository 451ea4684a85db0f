"""The command line. Each command is one verb of the library with its arguments, its output and its exit code.

Exit codes: 0 clean, 1 findings at or above the threshold, 2 could not run or bad usage, 3 inconclusive evidence,
4 a repair stopped half way and can be resumed.
"""

from workbench.cli import collect, diagnosis, evidence, what_if  # each adds its commands
from workbench.cli.terminal import main

__all__ = ["collect", "diagnosis", "evidence", "main", "what_if"]
