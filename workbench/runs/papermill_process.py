"""The process in which papermill runs one notebook: `python -m workbench.runs.papermill_process FOLDER`, started by `running`.

It reads FOLDER/order.json, writes FOLDER/notebook.ipynb, and tells on standard output, a line of JSON each, which cell
begins and, at the end, what went wrong. It is a process of its own so that whatever happens to it, somebody is there who
tells.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

ORDER, NOTEBOOK = "order.json", "notebook.ipynb"

_out = os.fdopen(os.dup(1), "w", encoding="utf-8")


def _tell(**what: Any) -> None:
    print(json.dumps(what), file=_out, flush=True)


def _end_with_parent() -> None:
    """Wait until the other end of standard input is gone: whoever started the run has ended, however that came."""
    os.read(0, 1)
    os._exit(1)  # the kernel ends with its parent


def main(folder: str) -> int:
    """Run it; what went wrong is told and is the exit code 1."""
    os.chdir(folder)
    os.dup2(2, 1)  # what a library prints is no message
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # With it jsonschema checks addresses in other alphabets, which no notebook format has: 1.5 s of every run.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    import nbformat
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import DeadKernelError
    from papermill.engines import NBClientEngine, papermill_engines
    from papermill.exceptions import PapermillExecutionError
    from papermill.execute import execute_notebook

    class Telling(NBClientEngine):
        """Runs a notebook as papermill does, and tells which cell begins."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **more: Any) -> Any:
            codes = [number for number, cell in enumerate(nb_man.nb.cells) if cell.cell_type == "code"]
            start = nb_man.cell_start

            def told(cell: Any, cell_index: int | None = None, **others: Any) -> Any:
                if cell_index in codes:
                    _tell(cell=codes.index(cell_index) + 1, of=len(codes))
                return start(cell, cell_index, **others)

            nb_man.cell_start = told
            return super().execute_managed_notebook(nb_man, kernel_name, **more)

    papermill_engines.register("telling", Telling)
    with open(ORDER, encoding="utf-8") as file:
        order = json.load(file)
    try:
        # Given as what was read, not as a path: papermill puts parameters into paths that hold `{name}`.
        notebook = nbformat.read(order["notebook"], as_version=4)
        execute_notebook(
            notebook,
            NOTEBOOK,
            order["parameters"],
            engine_name="telling",
            progress_bar=False,
            start_timeout=order["start_timeout"],
            cwd=order["beside"],
        )
    except PapermillExecutionError as error:
        said = error.evalue if error.ename == "Problem" else f"{error.ename}: {error.evalue}"
        _tell(failed=said, problem=error.ename == "Problem")
    except DeadKernelError:
        _tell(failed="the kernel died", do="look whether the machine had memory left, then start the run again")
    except NoSuchKernel:
        _tell(failed="there is no Python kernel for notebooks", do="install the project's packages anew")
    except (OSError, RuntimeError, MemoryError) as error:
        _tell(failed=(getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"))
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
