"""What a user can mend is shown in a notebook as a sentence: what, where, and what to do. Other errors keep their traceback."""

from __future__ import annotations

from typing import Any

from IPython import get_ipython

from workbench.model import Problem
from workbench.safety import printable


def show_problems_plainly() -> None:
    """Have the running notebook show each Problem as its sentence; outside of a notebook nothing changes.

    The cell fails all the same: a run without a person must not go on behind it.
    """
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((Problem,), _shown)


def _shown(shell: Any, kind: Any, problem: Any, trace: Any, tb_offset: Any = None) -> list[str]:
    told = [f"Problem: {printable(str(problem))}"]
    shell._showtraceback(kind, problem, told)
    return told
