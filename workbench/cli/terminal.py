"""What all commands share: how a Problem is shown, where output may go, what a run tells of its progress."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click
from tqdm import tqdm

from workbench import __version__
from workbench.journal import write_whole
from workbench.model import Problem
from workbench.safety import defect_of, printable

EXIT_CODES = {
    0: "clean",
    1: "findings at or above the threshold",
    2: "could not run, bad usage, or nobody read the output to its end; of `scenario` also: a case could not be answered",
    3: "inconclusive evidence",
    4: "a repair stopped half way and can be resumed",
    130: "stopped by Ctrl-C",
}


class Verbs(click.Group):
    """Shows a Problem as one sentence with exit code 2, never as a traceback."""

    def invoke(self, context: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(context)
        except Problem as problem:
            click.echo(f"workbench: {printable(str(problem))}", err=True)
            context.exit(2)
        except BrokenPipeError:  # what was left undone and unsaid nobody knows: with 0 it would be a pass
            unread()
            context.exit(2)
        except OSError as error:
            where = f" ({printable(str(error.filename))})" if error.filename else ""
            what = error.strerror or type(error).__name__
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                what, where = "the disk is full", f"{where}. Free some space and start again; nothing was changed"
            click.echo(f"workbench: {what}{where}", err=True)
            if not error.filename:
                unread(sys.stdout)  # it may be the one that has no room
            context.exit(2)
        except KeyboardInterrupt:
            click.echo("workbench: stopped; what was published before is unchanged", err=True)
            context.exit(130)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:  # Python would end with 1, which means findings
            click.echo(f"workbench: {defect_of(error)}", err=True)
            context.exit(2)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="workbench")
def main() -> None:
    """Which changes did this server miss, why, and how to put them back.

    Start with `workbench demo`, then `workbench load FOLDER --case CASE` on what you collected.
    """


JSON = click.option("--json", "json_to", metavar="FILE", help="Write JSON there; - is standard output.")
CSV = click.option("--csv", "csv_to", metavar="FILE", help="Write the table as CSV there; - is standard output.")
DEAD_OWNER = click.option("--dead-owner", metavar="HOST:PID", help="The owner on another machine, known to have ended.")
MASTER = click.option(
    "--master", metavar="URL", help="Spark master or Connect address; default: SPARK_REMOTE, MASTER, else this machine."
)


def check_outputs(json_to: str | None, other_to: str | None, kept: Iterable[Path], other: str = "--csv") -> None:
    """Refuse, before any work is done, what could not be written or would do harm.

    `kept` are files, and folders with the files right in them, that no output may overwrite.
    """
    if json_to and other_to and (json_to == other_to or Path(json_to).resolve() == Path(other_to).resolve()):
        where = "standard output" if json_to == "-" else "the same file"
        raise click.UsageError(f"--json and {other} cannot both go to {where}: give another file for one of them")
    kept = {one.resolve() for one in kept}
    for to in {json_to, other_to} - {None, "-"}:
        path = Path(str(to)).resolve()
        if path in kept or path.parent in kept:
            raise Problem("this would overwrite an input or the case itself", str(to), "give another file")
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
            raise Problem(f"cannot write: this {what}", str(to), "give a file in a folder that exists")


def give(text: Iterable[str], to: str) -> None:
    """Write the text, or its pieces, there; a device or a pipe is written to, not replaced."""
    text = [text] if isinstance(text, str) else text
    if to == "-":
        sys.stdout.writelines(text)
        sys.stdout.flush()  # what fails later than here is nobody's to tell
        return
    path = Path(to).resolve()
    try:
        if path.exists() and not path.is_file():
            with open(path, "w", encoding="utf-8") as device:
                device.writelines(text)
        else:
            write_whole(path, text)
    except OSError as error:
        raise not_written(error, to) from None


def say(sentence: str, err: bool = False) -> None:
    """Tell it, if anybody still listens: where what is done does not depend on who reads along."""
    try:
        click.echo(printable(sentence), err=err)
    except OSError:
        unread(sys.stderr if err else sys.stdout)


def unread(*streams: TextIO) -> None:
    """Nothing more goes to these, or to either of the two of the process, as nobody reads them: what is left in the buffer would
    fail once more at the end, and make the exit code 120.
    """
    for one in streams or (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # one that is no file of the system's
            os.dup2(os.open(os.devnull, os.O_WRONLY), one.fileno())


def not_written(error: OSError, to: str) -> Problem:
    """Why an output could not be written, and what to do about it."""
    to = "standard output" if to == "-" else to
    if error.errno == errno.EPIPE:
        return Problem("cannot write: nobody reads it to its end", to, "see what has become of its reader")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(
            "cannot write: the disk is full", to, "free some space and start again; what was there is unchanged"
        )
    do = "give a file in a folder that exists" if error.errno == errno.ENOENT else "give a file where you may write"
    return Problem(f"cannot write: {error.strerror or type(error).__name__}", to, do)


class Reading:
    """How far the reading is: a bar on a terminal, elsewhere a plain line now and then, so that short work is silent."""

    EVERY = 30.0
    """Seconds from one plain line to the next."""

    def __init__(self) -> None:
        self.started = self._spoken = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, total: int, rows: int) -> None:
        now = time.monotonic()
        rate = f"{rows / (now - self.started):,.0f} rows/s"
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, desc="reading", leave=False)
            self._bar.set_postfix_str(rate, refresh=False)
            self._bar.update(done - self._bar.n)
        elif now - self._spoken >= self.EVERY:
            self._spoken = now
            click.echo(f"reading: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB, {rate}", err=True)
