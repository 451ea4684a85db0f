"""The command line. Each command is one verb of the library with its arguments, its output and its exit code.

Exit codes: 0 clean, 1 findings at or above the threshold, 2 could not run or bad usage, 3 inconclusive evidence,
4 a repair stopped half way and can be resumed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from workbench import __version__
from workbench.boundary import printable
from workbench.case import Case, Loaded, PassedOver
from workbench.files import inspect_file, unreadable
from workbench.journal import write_whole
from workbench.model import SEVERITIES, Problem
from workbench.plain import aligned, csv_text, one_cell
from workbench.systems import system_named

DEMO = Path(__file__).parent.parent / "tests" / "incidents" / "missed_behind_equal_vectors"


class Verbs(click.Group):
    """Shows a Problem as one sentence with exit code 2, never as a traceback."""

    def invoke(self, context: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(context)
        except Problem as problem:
            click.echo(f"workbench: {printable(str(problem))}", err=True)
            context.exit(2)
        except BrokenPipeError:
            context.exit(0)
        except OSError as error:
            where = f" ({printable(str(error.filename))})" if error.filename else ""
            what = error.strerror or type(error).__name__
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                what, where = "the disk is full", f"{where}. Free some space and start again; nothing was changed"
            click.echo(f"workbench: {what}{where}", err=True)
            context.exit(2)
        except KeyboardInterrupt:
            click.echo("workbench: stopped; what was published before is unchanged", err=True)
            context.exit(130)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="workbench")
def main() -> None:
    """Which changes did this server miss, why, and how to put them back.

    Start with `workbench demo`, then `workbench load FOLDER --case CASE` on what you collected.
    """


_JSON = click.option("--json", "json_to", metavar="FILE", help="Write JSON there; - is standard output.")
_CSV = click.option("--csv", "csv_to", metavar="FILE", help="Write the table as CSV there; - is standard output.")


def _check_outputs(json_to: str | None, csv_to: str | None, kept: Iterable[Path]) -> None:
    """Refuse, before any work is done, what could not be written or would do harm.

    `kept` are files, and folders with the files right in them, that no output may overwrite.
    """
    if json_to and csv_to and (json_to == csv_to or Path(json_to).resolve() == Path(csv_to).resolve()):
        where = "standard output" if json_to == "-" else "the same file"
        raise click.UsageError(f"--json and --csv cannot both go to {where}: give another file for one of them")
    kept = {one.resolve() for one in kept}
    for to in {json_to, csv_to} - {None, "-"}:
        path = Path(str(to)).resolve()
        if path in kept or path.parent in kept:
            raise Problem("this would overwrite an input or the case itself", str(to), "give another file")
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
            raise Problem(f"cannot write: this {what}", str(to), "give a file in a folder that exists")


def _give(text: Iterable[str], to: str) -> None:
    """Write the text, or its pieces, there; a device or a pipe is written to, not replaced."""
    text = [text] if isinstance(text, str) else text
    if to == "-":
        sys.stdout.writelines(text)
        return
    path = Path(to).resolve()
    try:
        if path.exists() and not path.is_file():
            with open(path, "w", encoding="utf-8") as device:
                device.writelines(text)
        else:
            write_whole(path, text)
    except OSError as error:
        raise Problem(f"cannot write: {error.strerror}", to, "give a file in a folder that exists") from None


class _Reading:
    """How far the reading is: a bar on a terminal, elsewhere a plain line now and then, so that short work is silent."""

    EVERY = 30.0
    """Seconds from one plain line to the next."""

    def __init__(self) -> None:
        self.started = self._spoken = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> _Reading:
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


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@_JSON
@_CSV
def inspect(files: tuple[Path, ...], json_to: str | None, csv_to: str | None) -> None:
    """Say what each FILE holds: its format (told by its content), rows read and rejected, and what they show."""
    _check_outputs(json_to, csv_to, (path for path in files if not os.path.isdir(path)))
    results: list[dict[str, Any]] = []
    # os.path, because a folder that may not be entered is no error here.
    sizes = [os.path.getsize(path) if os.path.isfile(path) else 0 for path in files]
    with _Reading() as reading:
        for number, path in enumerate(files):
            before, known = sum(sizes[:number]), sum(result["rows"] for result in results)

            def watch(done: int, rows: int, before: int = before, known: int = known) -> None:
                reading(before + done, sum(sizes), known + rows)

            try:
                results.append(inspect_file(path, watch))
            except OSError as error:
                results.append(unreadable(path, error))
    if json_to:
        _give(json.dumps(results, indent=1) + "\n", json_to)
    counts = ("file", "format", "bytes", "rows", "accepted", "rejected")
    if csv_to:
        _give(csv_text([{key: result[key] for key in counts} for result in results]), csv_to)
    if "-" not in (json_to, csv_to):
        click.echo(
            aligned(
                [[name.upper() for name in counts], *([r[key] for key in counts] for r in results)], right=(2, 3, 4, 5)
            )
        )
        for result in results:
            for line in _said(result):
                click.echo(line)


def _said(result: dict[str, Any]) -> Iterable[str]:
    """What the table of `inspect` has no column for: what was found in a file and why rows were rejected."""
    detail = result["detail"]
    shown = []
    for origin, seen in sorted(detail.get("by_origin", {}).items()):
        shown.append(f"  origin {origin}: {seen['count']} from {seen['min']} to {seen['max']}")
    for holder, vector in sorted(detail.get("vectors", {}).items()):
        shown.append(f"  vector of {holder}, generation {vector['generation'] or 'not written'}")
        for origin, element in sorted(vector["elements"].items()):
            shown.append(f"    origin {origin}: {element['min'] or 'nothing'} to {element['max'] or 'nothing'}")
    for reject in result["rejects"][:5]:
        shown.append(f"  rejected at {reject['offset']}: {reject['reason']}")
    if result["rejected"] > 5:
        shown.append(f"  and {result['rejected'] - 5} more rejected rows: `--json FILE` lists them")
    if shown:
        yield ""
        yield f"{one_cell(result['file'])}: {result['format']}"
        yield from map(printable, shown)


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option(
    "--case",
    "case_folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The case folder to make or to add to.",
)
@click.option(
    "--master", metavar="URL", help="Spark master or Connect address; default: SPARK_REMOTE, MASTER, else this machine."
)
@_JSON
@_CSV
def load(
    folders: tuple[Path, ...], case_folder: Path, master: str | None, json_to: str | None, csv_to: str | None
) -> None:
    """Read collected FOLDERs into the evidence tables of a case.

    Each folder is one snapshot, in the order of time; its files are read without descending. Loading the same files
    again does nothing, loading more adds.
    """
    case = Case.create(case_folder)
    _check_outputs(json_to, csv_to, _kept(folders, case.folder))
    loaded = _load(case, folders, master)
    _show_holdings(case, loaded, json_to, csv_to)


def _load(case: Case, folders: Iterable[Path], master: str | None) -> Loaded:
    with _Reading() as reading:
        loaded = case.load(folders, spark=master, progress=reading)
    seconds = time.monotonic() - reading.started
    size = sum(one.bytes for one in loaded.added)
    known = f", {len(loaded.known)} known already" if loaded.known else ""
    click.echo(
        f"{len(loaded.added)} files read{known}: {size / 1e6:,.1f} MB, {loaded.rows:,} rows in {seconds:.1f} s "
        f"({loaded.rows / seconds:,.0f} rows/s)",
        err=True,
    )
    return loaded


def _show_holdings(case: Case, loaded: Loaded, json_to: str | None, csv_to: str | None) -> None:
    inputs = ("snapshot", "file", "server", "suffix", "format", "bytes", "rows", "accepted", "rejected")
    files = [{key: getattr(one, key) for key in inputs} for one in case.inputs]
    holdings = case.holdings()
    if json_to:
        about = {"case": str(case.folder), "system": case.system, "snapshots": list(case.snapshots)}
        tables = {"inputs": files, "not_read": [vars(one) for one in loaded.passed_over], "holdings": holdings}
        _give(json.dumps({**about, **tables}, indent=1) + "\n", json_to)
    if csv_to:
        _give(csv_text(holdings), csv_to)
    for line in _not_read(loaded):
        click.echo(line, err=True)
    if "-" in (json_to, csv_to):
        return
    new = {(one.snapshot, one.file) for one in loaded.added}
    shown = [one for one in files if (one["snapshot"], one["file"]) in new]
    if shown:
        columns = ("snapshot", "file", "server", "format", "rows", "rejected")
        click.echo(
            aligned(
                [[name.upper() for name in columns], *([one[key] for key in columns] for one in shown)], right=(4, 5)
            )
        )
        click.echo("")
    click.echo(_holdings_text(case, holdings))
    click.echo(f"\ncase: {case.folder}")


def _not_read(loaded: Loaded) -> list[str]:
    wrong = [PassedOver(one.snapshot, one.file, one.why) for one in loaded.added if one.why]
    return [*_by_reason("not read", loaded.passed_over), *_by_reason("not whole", wrong)]


def _by_reason(what: str, passed_over: Iterable[PassedOver], named: int = 5) -> Iterable[str]:
    """One line for each reason why things in the folders are `what` (`not read`), with the first names."""
    kinds: dict[str, list[str]] = {}
    for one in passed_over:
        kinds.setdefault(one.why, []).append(f"{one.snapshot}/{one.name}")
    for why, names in sorted(kinds.items()):
        more = f" and {len(names) - named:,} more" if len(names) > named else ""
        yield f"{what}: {len(names):,} {one_cell(why)} - {one_cell(', '.join(sorted(names)[:named]))}{more}"


def _holdings_text(case: Case, holdings: list[dict[str, Any]]) -> str:
    if not case.system:
        return "nothing is loaded yet"
    system = system_named(case.system)

    def when(position: str | None) -> str:
        moment = system.moment(position) if position else None
        return f" ({moment:%Y-%m-%d %H:%M:%S})" if moment else ""

    last = next(reversed(case.snapshots), "")
    title = f"{system.title}, snapshot {last}: what each server's changelog shows, and what its vector claims (UTC)"
    rows: list[list[Any]] = [["SERVER", "SUFFIX", "ORIGIN", "CHANGES", "FIRST", "LAST", "VECTOR CLAIMS UP TO"]]
    for one in holdings:
        first, final, claim = (system.show(one[key]) if one[key] else "-" for key in ("first", "last", "claimed_max"))
        about = [one["server"], one["suffix"] or "-", one["origin"], f"{one['changes']:,}"]
        rows.append([*about, first, final, claim + when(one["claimed_max"])])
    return f"{title}\n\n{aligned(rows, right=(3,))}"


@main.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, readable=False, allow_dash=True))
@_JSON
@click.option("--kind", "only", metavar="KIND", multiple=True, help="Answer the cases of this kind only; repeatable.")
@click.option("--list", "listed", is_flag=True, help="List every kind: what it answers, and its inputs.")
def scenario(file: Path | None, json_to: str | None, only: tuple[str, ...], listed: bool) -> None:
    """Answer the what-if cases of FILE: what would be sent, what is missed, what would a clean or a trim cost?

    A case is {id, kind, inputs}. FILE is JSON lines, a JSON array or YAML, packed or not; - is standard input. One line
    of JSON answers each case, in order. A case that cannot be answered gets its error there; the others are answered.
    """
    from workbench.checked import quoted
    from workbench.scenarios import evaluate, kind_named, read_cases

    if listed:
        click.echo(_kinds_text(only))
        return
    if file is None:
        raise click.UsageError("give a FILE of cases, - for standard input, or --list")
    for name in only:
        kind_named(name)
    _check_outputs(json_to, None, [file])
    answered = wrong = 0
    # A file gets all or nothing; a hundred thousand sessions are half a gigabyte, which is kept on the disk until then.
    with tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY, "w+", encoding="utf-8") as kept:
        out: Any = sys.stdout if json_to in (None, "-") else kept
        for answer in evaluate(read_cases(file), only):
            out.write(json.dumps(answer, separators=(",", ":")) + "\n")
            answered += 1
            if "error" in answer:
                wrong += 1
                if wrong <= _NAMED_ERRORS:
                    about = quoted(answer["id"]) + (f" ({answer['kind'][:40]})" if answer["kind"] else "")
                    click.echo(f"workbench: case {one_cell(about)}: {one_cell(answer['error'])}", err=True)
        if out is kept:
            kept.seek(0)
            _give(kept, str(json_to))
    if only and not answered:
        raise Problem(f"no case of the kind {' or '.join(only)}", str(file), "leave out --kind to answer all")
    if wrong > _NAMED_ERRORS:
        click.echo(f"workbench: {wrong:,} cases could not be answered; the first {_NAMED_ERRORS} are above", err=True)
    if wrong:
        raise click.exceptions.Exit(2)


_NAMED_ERRORS = 5
_KEPT_IN_MEMORY = 16 << 20


def _kinds_text(only: Sequence[str]) -> str:
    from workbench.checked import described
    from workbench.scenarios import kind_named, kinds

    told = []
    for name in only or kinds():
        kind = kind_named(name)
        inputs = described(kind.inputs)
        width = max(map(len, inputs), default=0)
        told.append("\n".join([f"{name}: {kind.question}", *(f"    {one:{width}}  {inputs[one]}" for one in inputs)]))
    return "\n\n".join(told)


_RULES = click.option(
    "--rules", metavar="NAME", help="Rule set; default: that of the real servers. `design`: the document."
)
_MASTER = click.option(
    "--master", metavar="URL", help="Spark master or Connect address; default: SPARK_REMOTE, MASTER, else this machine."
)


def _kept(folders: Iterable[Path], case_folder: Path | None) -> list[Path]:
    """What no output of a load may overwrite: the collected files, also those that are links, and the case."""
    linked = (path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_symlink())
    return [*folders, *linked, *([case_folder / "case.yaml", case_folder / "evidence"] if case_folder else [])]


def _kept_of(case: Case) -> list[Path]:
    """What no output about a case may overwrite: it, and what it was read from, wherever that is."""
    inputs = (Path(one.path) for one in case.inputs)
    return [case.folder / "case.yaml", case.evidence, *map(Path, case.snapshots.values()), *inputs]


@contextmanager
def _case_of(
    folders: tuple[Path, ...], case_folder: Path | None, master: str | None, outputs: tuple[str | None, str | None]
) -> Iterator[Case]:
    """The case of a diagnosis: a case folder as it is, or collected folders loaded into `case_folder`, else for this run only."""
    if there := [folder for folder in folders if Case.lies_in(folder)]:
        if case_folder or len(folders) > 1:
            raise click.UsageError(f"{there[0]} is a case already: give it alone, without --case")
        case = Case.open(there[0])
        _check_outputs(*outputs, _kept_of(case))
        yield case
        return
    _check_outputs(*outputs, _kept(folders, case_folder))
    with tempfile.TemporaryDirectory(prefix="workbench-") as temporary:
        case = Case.create(case_folder or Path(temporary) / "case", None if case_folder else folders[-1].resolve().name)
        loaded = _load(case, folders, master)
        for line in _not_read(loaded):
            click.echo(line, err=True)
        yield case


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, readable=False))
@click.option("--case", "case_folder", type=click.Path(path_type=Path), help="Keep the evidence in this case folder.")
@_RULES
@click.option("--verify", is_flag=True, help="Count everything once more, from every position, by Spark.")
@click.option(
    "--threshold", type=click.Choice(SEVERITIES), default="warning", show_default=True, help="Exit code 1 from here on."
)
@_MASTER
@_JSON
@_CSV
def diagnose(
    folders: tuple[Path, ...],
    case_folder: Path | None,
    rules: str | None,
    verify: bool,
    threshold: str,
    master: str | None,
    json_to: str | None,
    csv_to: str | None,
) -> None:
    """Say who would send what to whom now, and why not, in the last snapshot of a case or of collected FOLDERs.

    Several FOLDERs are snapshots of the same servers in the order of time. Without --case the evidence is not kept.
    """
    from workbench.diagnosis import diagnose as diagnosed
    from workbench.matrix_text import findings_text, matrix_text, outside_text

    with _case_of(folders, case_folder, master, (json_to, csv_to)) as case:
        spark = None
        if verify:
            from workbench.engine.session import spark_session

            spark = spark_session(master)
        found = diagnosed(case, rules, spark)
        if json_to:
            _give(json.dumps(found, indent=1) + "\n", json_to)
        if csv_to:
            _give(csv_text([_flat(row) for row in found["pairs"]], _PAIR), csv_to)
        if "-" not in (json_to, csv_to):
            system = system_named(str(case.system))
            title = f"{system.title}, snapshot {one_cell(found['case']['snapshots'][-1])}"
            parts = [matrix_text(system, found["pairs"]), outside_text(found), findings_text(found["findings"])]
            click.echo("\n\n".join([title, *filter(None, parts)]))
            if verify:
                click.echo("\nverified: Spark counted the same from every position")
    worst = max((SEVERITIES.index(one["severity"]) for one in found["findings"]), default=-1)
    if worst >= SEVERITIES.index(threshold):
        raise click.exceptions.Exit(1)


_PAIR = (
    *("supplier", "consumer", "suffix", "link", "link_enabled", "rules", "would_contact", "decision", "anchor"),
    *("anchor_included", "anchor_class", "stop", "counts", "to_send"),
)
"""Columns of the matrix in a spreadsheet."""


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the matrix for a spreadsheet: one line for each pair, mappings as text."""
    cells = {key: row[key] for key in _PAIR}
    return {
        key: json.dumps(cell, separators=(",", ":")) if isinstance(cell, dict) else cell for key, cell in cells.items()
    }


@main.command()
@click.argument("case_folder", type=click.Path(path_type=Path, readable=False))
@click.argument("supplier")
@click.argument("consumer")
@click.option("--suffix", help="Which suffix, if the two replicate several.")
@_RULES
@click.option("--after", metavar="POSITION", help="Show the changes behind this one; default: from the anchor on.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many changes to show.")
@_JSON
@_CSV
def explain(
    case_folder: Path,
    supplier: str,
    consumer: str,
    suffix: str | None,
    rules: str | None,
    after: str | None,
    limit: int,
    json_to: str | None,
    csv_to: str | None,
) -> None:
    """Explain one session: why SUPPLIER would start there, and what becomes of each change that it reads for CONSUMER."""
    from workbench.diagnosis import COLUMNS, session_of
    from workbench.matrix_text import told

    case = Case.open(case_folder)
    _check_outputs(json_to, csv_to, _kept_of(case))
    planned = session_of(case, supplier, consumer, suffix, rules)
    page = planned.page(after, limit + 1).to_pylist()
    more = page[limit - 1]["position"] if len(page) > limit else None
    page = page[:limit]
    if json_to:
        _give(json.dumps({**planned.row, "outcomes": page, "next": more}, indent=1) + "\n", json_to)
    if csv_to:
        _give(csv_text(page, COLUMNS), csv_to)
    if "-" in (json_to, csv_to):
        return
    for line in told(planned.row, system_named(str(case.system)).moment, always=True):
        click.echo(line)
    for reason in planned.row["reasons"]:
        values = ", ".join(f"{key} {value}" for key, value in reason["values"].items() if value is not None)
        click.echo(f"  {one_cell(reason['says'])}" + (f" ({one_cell(values)})" if values else ""))
    if page:
        heads = ("POSITION", "ORIGIN", "OUTCOME")
        click.echo("\n" + aligned([heads, *([one[key.lower()] for key in heads] for one in page)]))
    if more:
        click.echo(f"\nmore: --after {more}")


@main.command()
@click.option(
    "--case", "case_folder", default="demo-case", type=click.Path(path_type=Path), help="Where to make the case."
)
def demo(case_folder: Path) -> None:
    """Load a small real incident that comes with the project, and show what it holds."""
    if not DEMO.is_dir():
        raise Problem("the demo incident is not here", str(DEMO), "run the demo from a checkout of the project")
    story = (DEMO / "STORY.md").read_text(encoding="utf-8").strip().split("\n\n")
    click.echo(f"{story[0].lstrip('# ')}\n\n{story[1]}\n")
    case = Case.create(case_folder)
    snapshots = sorted(folder for folder in DEMO.iterdir() if folder.is_dir())
    _show_holdings(case, _load(case, snapshots, None), None, None)
    here = Path.cwd()
    folder = DEMO.relative_to(here) if DEMO.is_relative_to(here) else DEMO
    command = _as_typed()
    click.echo(
        f"\nNext:\n  {command} inspect {folder}/2-during/*   says what each file holds\n"
        f"  {command} diagnose {case_folder}   says who would send what to whom now\n"
        f"  {command} load FOLDER --case CASE   does the same with the files of your own servers\n"
        "  make lab   opens the notebooks: 00_tour goes through this case"
    )


def _as_typed() -> str:
    """How a user of this shell starts this program: `make` runs it from a place that is not on PATH."""
    program = Path(sys.argv[0])
    if program.name != "workbench" or shutil.which("workbench") == str(program.absolute()):
        return "workbench"
    return str(program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program)
