"""One incident is one folder: what was collected, the evidence made from it, and later what was found and done.

    CASE/case.yaml              what the case holds, for people; the version of this layout
    CASE/evidence/<table>/      Parquet parts
    CASE/evidence/manifest.json which inputs were read, by hash, and which parts belong to them

A part belongs to the case only if the manifest lists it, and the manifest is replaced by one rename: a table is
published whole or not at all. Inputs stay where they are and are known by their hash: loading them again does nothing,
loading more adds, and a file whose content changed replaces what it had said before.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.case.case_yaml import renewed, told
from workbench.case.loading import Progress, read_inputs
from workbench.intake.files import path_text
from workbench.intake.inputs import (
    FOLDER,
    NOBODY,
    Collected,
    Input,
    Named,
    identify,
    look_into,
    named_in,
    untouched,
)
from workbench.intake.readings import Stored, readings_in
from workbench.journal import DRAFT, OWNER, owned, write_together
from workbench.model import Problem
from workbench.safety import printable, strict_yaml
from workbench.systems import format_with, system_named
from workbench.tables import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from workbench.engine.logs import StoredLog

LAYOUT = 8
MANIFEST = "manifest.json"
_ASKED_AGAIN = 200_000
"""Rows of a table that is kept in memory: a diagnosis asks for the vectors and links dozens of times."""
RUNS = "runs"
"""A folder of runs without a person; one that failed to load anything may be all that there is of a case."""
STAGING = ".load-"
"""A folder beside the tables where one load writes its parts until all of them are there."""


@dataclass(frozen=True)
class PassedOver:
    """Something in a collected folder that a load does not read."""

    snapshot: str
    name: str
    why: str


@dataclass(frozen=True)
class Loaded:
    """What a load did: inputs read now, inputs that were known already, and what in the folders is no input."""

    added: list[Input]
    known: list[Input]
    passed_over: list[PassedOver]

    @property
    def rows(self) -> int:
        """Rows read by this load, rejected ones included."""
        return sum(one.rows for one in self.added)

    @property
    def says(self) -> str:
        """What was done, in one sentence."""
        told = f"{len(self.added):,} files read, {self.rows:,} rows"
        if rejected := sum(one.rejected for one in self.added):
            told += f", {rejected:,} of them set aside"
        return f"{told}; {len(self.known):,} files known already"


class Case:
    """A case folder. Make one with `Case.create`, or open one with `Case.open`."""

    def __init__(self, folder: Path, name: str, snapshots: dict[str, str], inputs: list[Input]) -> None:
        self.folder, self.name = folder, name
        self.snapshots = snapshots
        """Label of each snapshot, in the order of time -> the folder it was collected in."""
        self.inputs = inputs
        self.readings: dict[str, list[Stored]] = {}
        """Label of a snapshot that `workbench collect` made -> when each server was read, and what moved meanwhile."""
        self.told: dict[str, Any] = {}
        """What load wrote into case.yaml; what differs there is a person's word."""
        self.sources: dict[str, str] = {}
        """Origin -> the server whose log is its source, as a person says for this run; not kept."""
        self._arrow: dict[str, tuple[list[tuple[str, int, int]], pa.Table]] = {}

    @classmethod
    def open(cls, folder: str | Path) -> Case:
        """Open a case folder; raises Problem if it is none, or of a layout this version does not know."""
        folder = Path(folder)
        about = folder / "case.yaml"
        if not about.is_file():
            do = "give a folder that `workbench load` wrote" if folder.is_dir() else "check the path"
            raise Problem("this is not a case: it has no case.yaml", str(folder), do)
        content = strict_yaml(about.read_text(encoding="utf-8", errors="replace"), str(about))
        _check_layout(content.get("layout") if isinstance(content, dict) else None, about)
        manifest = folder / "evidence" / MANIFEST
        if isinstance(content, dict) and content.get("snapshots") and not manifest.exists():
            do = "bring back the folder evidence, or load the inputs into a new case"
            raise Problem("the evidence of this case is gone: it has no manifest", str(manifest), do)
        try:
            nothing: dict[str, Any] = {"layout": LAYOUT}
            stored = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else nothing
            _check_layout(stored.get("layout"), manifest)
            inputs = [Input(**one) for one in stored.get("inputs", [])]
            case = cls(folder, str(content.get("name", folder.name)), dict(stored.get("snapshots", {})), inputs)
            case.told = dict(stored.get("told", {}))
            case.readings = dict(stored.get("readings", {}))
        except (ValueError, TypeError, AttributeError):
            raise Problem("the manifest cannot be read", str(manifest), "load the inputs into a new case") from None
        return case

    @classmethod
    def create(cls, folder: str | Path, name: str | None = None) -> Case:
        """Open the case, or begin one in a folder that is absent or empty.

        A case that holds nothing is not on disk: the first load that succeeds makes it.
        """
        folder = Path(folder)
        if (folder / "case.yaml").exists():
            return cls.open(folder)
        _check_free(folder)
        return cls(folder, name or folder.resolve().name, {}, [])

    @staticmethod
    def lies_in(folder: str | Path) -> bool:
        """True if the folder is a case, be it a damaged one; a collected folder has a case.yaml without a layout."""
        about = Path(folder) / "case.yaml"
        written = about.is_file() and re.search(r"^layout:", about.read_text("utf-8", "replace"), re.MULTILINE)
        return bool(written) or (Path(folder) / "evidence" / MANIFEST).is_file()

    def about(self) -> dict[str, Any]:
        """What case.yaml says: what load found out, and what people changed there."""
        about = self.folder / "case.yaml"
        content = strict_yaml(about.read_text(encoding="utf-8", errors="replace"), str(about))
        return content if isinstance(content, dict) else {}

    @property
    def system(self) -> str | None:
        """Name of the replicated system the evidence comes from; None while there is none."""
        return next((one.kind.split(".", 1)[0] for one in self.inputs if one.kind), None)

    @property
    def evidence(self) -> Path:
        """Where the tables are."""
        return self.folder / "evidence"

    def until(self, snapshot: str) -> Case:
        """The case as it was when this snapshot was its last one: to be asked, not to be loaded into."""
        then, labels = copy(self), list(self.snapshots)
        then.snapshots = {label: self.snapshots[label] for label in labels[: labels.index(snapshot) + 1]}
        then.inputs = [one for one in self.inputs if one.snapshot in then.snapshots]
        then._arrow = {}
        return then

    def load(
        self, folders: Iterable[str | Path], spark: SparkSession | str | None = None, progress: Progress | None = None
    ) -> Loaded:
        """Read collected folders into the evidence tables; each folder is one snapshot. Below it only the rooms
        that its system has are read (`System.rooms`).

        `spark` is a session, or the address of the Spark to start one on (`spark://host:7077`, `sc://host:15002`).
        Without it a few small files are read right here; for more a session is started as the environment says. If
        anything fails, the case is as it was before.
        """
        with self._ours() as not_writable:
            if (self.folder / "case.yaml").exists():
                self._reopen()  # another run may have added to it since
            else:
                _check_free(self.folder)
            before = self.snapshots.copy(), [one.origin for one in self.inputs], self.readings.copy()
            found: dict[tuple[str, str], tuple[Path, Named]] = {}
            passed_over: list[PassedOver] = []
            for folder in map(Path, folders):
                collected = look_into(folder)
                named, label = named_in(collected), self._label(collected)
                self.readings[label] = readings_in(collected)
                called = {collected.name_of(path): path for path in collected.files}
                found |= {(label, name): (path, named.get(name, NOBODY)) for name, path in called.items()}
                passed_over += [PassedOver(label, name, why) for name, why in collected.passed_over.items()]
            known, new = self._sift(found)
            if new and not_writable:
                raise not_writable
            if new:
                self._check_systems(new, sum(one.why == FOLDER for one in passed_over))
                staging = self.evidence / f"{STAGING}{uuid.uuid4().hex}"
                staging.mkdir()
                read_inputs(new, self.inputs, staging, spark, progress)
                order = list(self.snapshots)
                self.inputs = sorted([*self.inputs, *new], key=lambda one: (order.index(one.snapshot), one.file))
                self._move(new, staging)
            if not not_writable:
                now = self.snapshots, [one.origin for one in self.inputs], self.readings
                self._publish(renew=bool(new) or before != now)
                self._sweep()
        return Loaded(new, known, list(dict.fromkeys(passed_over)))

    @contextmanager
    def _ours(self) -> Iterator[Problem | None]:
        """Own the case while the block runs; if the block fails, the case is as it was before, on disk and in memory.

        A folder that only this block made is gone then. Of a case that cannot be written it gives the Problem to raise
        if something has to be: what is there can be read and compared all the same.
        """
        made = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        before = self.snapshots.copy(), self.inputs, self.told, self.readings.copy()
        with ExitStack() as stack:
            not_writable = None
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(owned(self.folder))
                self.evidence.mkdir(exist_ok=True)
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                do = "copy the case to a place where you may write, and load there"
                do = do if (self.folder / "case.yaml").exists() else "give a folder in a place where you may write"
                not_writable = Problem(f"the case cannot be written: {error.strerror}", printable(str(self.folder)), do)
                if not (self.folder / "case.yaml").exists():
                    raise not_writable from None
            try:
                yield not_writable
            except BaseException:
                # The manifest on disk decides, not how far we came: Ctrl-C may come between any two steps.
                if (self.folder / "case.yaml").exists():
                    self._reopen()
                    if not not_writable:
                        self._sweep()
                        with suppress(OSError):  # of a case.yaml that a person wrote before the first load
                            self.evidence.rmdir()
                else:
                    self.snapshots, self.inputs, self.told, self.readings = before
                    self._unmake(made)
                raise

    def _unmake(self, made: list[Path]) -> None:
        """Take away a case that never came to be, and the folders that were made for it."""
        if self.evidence.is_dir():
            self._sweep()
            (self.evidence / MANIFEST).unlink(missing_ok=True)
        (self.folder / OWNER).unlink(missing_ok=True)
        for folder in [self.evidence, *made]:
            with suppress(OSError):  # somebody else put something there meanwhile
                folder.rmdir()

    def _reopen(self) -> None:
        fresh = Case.open(self.folder)
        self.name, self.snapshots, self.inputs, self.told = fresh.name, fresh.snapshots, fresh.inputs, fresh.told
        self.readings = fresh.readings

    def _label(self, collected: Collected) -> str:
        """The snapshot's label: the folder's name, with its parent's in front if another folder has that name already."""
        folder = collected.folder.resolve()
        for label, known in self.snapshots.items():
            if known == str(folder):
                return label
        for label, known in self.snapshots.items():
            # An incident that was moved or is shared under another path is not a second snapshot of the same moment.
            if Path(known).name == folder.name and not Path(known).exists() and self._holds(label, collected):
                self.snapshots[label] = str(folder)
                return label
        label, parents = path_text(folder.name), list(folder.parents)
        while label in self.snapshots and parents:
            label = f"{path_text(parents.pop(0).name)}/{label}"
        self.snapshots[label] = str(folder)
        return label

    def _holds(self, label: str, collected: Collected) -> bool:
        """True if the snapshot was read from exactly these files, by name and hash."""
        held = {one.file: one for one in self.inputs if one.snapshot == label}
        found = {collected.name_of(path): path for path in collected.files}
        return held.keys() == found.keys() and all(
            identify(label, path).sha256 == held[name].sha256 for name, path in found.items()
        )

    def _sift(self, found: dict[tuple[str, str], tuple[Path, Named]]) -> tuple[list[Input], list[Input]]:
        """Inputs that the case holds already, and new ones with their format; changed ones are taken out.

        A file under a name that the case does not know is hashed later, while it is read.
        """
        held = {(one.snapshot, one.file): one for one in self.inputs}

        def look(entry: tuple[tuple[str, str], tuple[Path, Named]]) -> Input:
            (label, name), (path, named) = entry
            old = held.get((label, name))
            # Without a hash it could not be read: rights may have come since, and they leave no mark on size and time.
            same = old and old.sha256 and untouched(old, path, named)
            return old if old and same else identify(label, path, named, old is not None, name)

        with ThreadPoolExecutor(4) as pool:  # hashing releases the interpreter lock
            looked = list(pool.map(look, found.items()))
        known, new = [], []
        for one in looked:
            old = held.get((one.snapshot, one.file))
            same_suffix = old and one.suffix in (None, old.suffix)
            if old and same_suffix and (old.sha256, old.kind, old.server) == (one.sha256, one.kind, one.server):
                old.path, old.changed, old.origin = one.path, one.changed, one.origin
                known.append(old)
            else:
                new.append(one)
        replaced = {(one.snapshot, one.file) for one in new}
        self.inputs = [one for one in self.inputs if (one.snapshot, one.file) not in replaced]
        return known, new

    def _check_systems(self, new: list[Input], folders: int) -> None:
        """Raise Problem unless the case is about one system; `folders` lie unread beside the new files."""
        named = {one.kind.split(".", 1)[0] for one in [*self.inputs, *new] if one.kind}
        if len(named) > 1:
            raise Problem(
                f"files of several systems: {', '.join(sorted(named))}",
                str(self.folder),
                "make one case for each system",
            )
        if not named:
            kinds = "; ".join(f"{one.file}: {one.format}{f' ({one.why})' if one.why else ''}" for one in new[:5])
            raise Problem(
                f"none of {len(new)} files holds evidence",
                kinds,
                f"there are {folders} folders beside them: name those, each is a snapshot"
                if folders
                else "`workbench inspect FILE` shows what each file is",
            )

    def _move(self, new: list[Input], staging: Path) -> None:
        """Put the parts of this load where their tables are; they belong to the case with the next manifest."""
        for one in new:
            for part in one.parts:
                (self.evidence / part["table"]).mkdir(exist_ok=True)
                os.replace(staging / part["table"] / part["name"], self.evidence / part["table"] / part["name"])

    def _publish(self, renew: bool = True) -> None:
        """Make what was read part of the case, by one rename; with `renew`, case.yaml says so in the next one."""
        self.evidence.mkdir(parents=True, exist_ok=True)
        about = self.folder / "case.yaml"
        texts: dict[Path, str] = {}
        if renew or not about.exists():
            links, vectors = (self.arrow(name).to_pylist() for name in ("links", "vectors"))
            now = told(self.name, LAYOUT, self.snapshots, self.inputs, links, vectors)
            old = about.read_text(encoding="utf-8", errors="replace") if about.exists() else ""
            if (text := renewed(old, str(about), self.told, now)) != old:
                texts[about] = text
            self.told = now
        manifest = {
            "layout": LAYOUT,
            "snapshots": self.snapshots,
            "told": self.told,
            "readings": self.readings,
            "inputs": [vars(one) for one in self.inputs],
        }
        # The manifest first: without case.yaml a first load that is killed between the two has made no case at all.
        write_together({self.evidence / MANIFEST: json.dumps(manifest, indent=1), **texts})

    def _sweep(self) -> None:
        """Remove what no manifest lists: parts of loads that died, and of inputs that were replaced. Nothing else."""
        listed = {(part["table"], part["name"]) for one in self.inputs for part in one.parts}
        for folder in self.evidence.iterdir():
            if folder.name.startswith(STAGING):
                _vanish(folder)
            elif folder.name in SCHEMAS and folder.is_dir():
                for part in folder.glob("*.parquet"):
                    if (folder.name, part.name) not in listed:
                        part.unlink()
                with suppress(OSError):  # of a table without parts
                    folder.rmdir()
        for draft in [*self.folder.glob(f".case.yaml.*{DRAFT}"), *self.evidence.glob(f".{MANIFEST}.*{DRAFT}")]:
            draft.unlink()

    def parts(self, table: str, of: Input | None = None) -> list[dict[str, Any]]:
        """The parts of a table, of all inputs or of one: `path`, `rows`, and of sorted ones the `first` and `last` (hi, lo)."""
        if table not in SCHEMAS:
            raise Problem(f"there is no table {printable(table)}", "", f"the tables are {', '.join(SCHEMAS)}")
        # Joined as text: for the thousands of parts of a large case, paths would take a tenth of a second each time.
        where = self.evidence / table
        return [
            {**part, "path": f"{where}{os.sep}{part['name']}"}
            for one in (self.inputs if of is None else [of])
            for part in one.parts
            if part["table"] == table
        ]

    def table(self, name: str, spark: SparkSession) -> DataFrame:
        """An evidence table as a Spark DataFrame; `workbench.tables` says what its columns mean."""
        from workbench.engine.evidence import read_table

        return read_table(spark, name, [part["path"] for part in self.parts(name)])

    def arrow(self, name: str) -> pa.Table:
        """A small evidence table (vectors, links, coverage, digests) as an Arrow table, without Spark."""
        states, parts = [], []
        paths = [part["path"] for part in self.parts(name)]
        try:
            for path in paths:
                at = os.stat(path)  # a part that was damaged meanwhile is told
                states.append((path, at.st_size, at.st_mtime_ns))
            if self._arrow.get(name, (None,))[0] == states:
                return self._arrow[name][1]
            for path in paths:
                parts.append(pq.read_table(path).cast(SCHEMAS[name]))
        except (OSError, pa.ArrowInvalid):
            raise Problem(
                "a part of the evidence is damaged or gone", path, "load the inputs into a new case"
            ) from None
        made = pa.concat_tables(parts) if parts else SCHEMAS[name].empty_table()
        if len(made) <= _ASKED_AGAIN:
            self._arrow[name] = states, made
        return made

    def log(self, one: Input) -> StoredLog:
        """The changes that one of the inputs shows, to be asked without Spark; it remembers what it read."""
        from workbench.engine.logs import StoredLog, marks_of

        marks = marks_of(part["path"] for part in self.parts("changes", one)) if one.facts.get("helpers") else []
        digests = [part["path"] for part in self.parts("digests", one)]
        return StoredLog(system_named(self.system or ""), self.parts("positions", one), digests, marks)

    def holdings(self, snapshot: str | None = None) -> list[dict[str, Any]]:
        """Per server and origin: what its log shows and what its vector claims, in the last or the named snapshot.

        Keys: snapshot, server, suffix, origin, changes, first, last, claimed_min, claimed_max. Positions are order keys.
        """
        snapshot = snapshot or next(reversed(self.snapshots), None)
        rows: dict[tuple[str, str, str], dict[str, Any]] = {}

        def row(server: str, suffix: str | None, origin: str) -> dict[str, Any]:
            names = {"snapshot": snapshot, "server": server, "suffix": suffix, "origin": origin}
            nothing = {"changes": 0, "first": None, "last": None, "claimed_min": None, "claimed_max": None}
            return rows.setdefault((server, suffix or "", origin), {**names, **nothing})

        for one in self.inputs:
            held = {part["table"] for part in one.parts}
            # A queue holds transactions, too, and is no log of what its server has done.
            is_log = "positions" in held or ("transactions" in held and format_with(one.kind).is_log)
            if one.snapshot == snapshot and is_log:
                for origin, seen in one.facts.get("by_origin", {}).items():
                    mine = row(one.server, one.suffix, origin)
                    # Several logs of one server may repeat each other: the fullest one counts, they are never added up.
                    if seen["count"] > mine["changes"]:
                        mine.update(changes=seen["count"], first=seen["min"], last=seen["max"])
        for claim in self.arrow("vectors").to_pylist():
            if claim["snapshot"] == snapshot and claim["kind"] == "server" and claim["origin"]:
                mine = row(claim["server"], claim["suffix"], claim["origin"])
                if claim["max"] and (mine["claimed_max"] or "") < claim["max"]:
                    mine.update(claimed_min=claim["min"], claimed_max=claim["max"])
        return [rows[key] for key in sorted(rows)]


def _check_layout(layout: Any, where: Path) -> None:
    if str(layout) == str(LAYOUT):
        return
    newer = str(layout).isdecimal() and int(layout) > LAYOUT
    do = "use the version of the workbench that made it, or load the inputs into a new case"
    raise Problem(
        f"case layout {printable(str(layout))} is not {LAYOUT}, the one this version of the workbench reads",
        str(where),
        do if newer else "load the inputs into a new case",
    )


def _check_free(folder: Path) -> None:
    """Raise Problem unless a case can begin there: the folder is absent, or empty but for what a killed run left."""
    if folder.is_dir():
        if not all(map(_left_behind, folder.iterdir())):
            raise Problem(
                "the case folder has other files in it", str(folder), "give a new or empty folder for the case"
            )
    elif folder.exists():
        raise Problem("the case folder is a file", str(folder), "give a new or empty folder for the case")


def _left_behind(path: Path) -> bool:
    """True for what a run that was killed left before it made the case: it is nobody's, and a new load takes it away.

    A folder `evidence` with anything else in it is somebody's: people call what they collect by that name.
    """
    if path.name == RUNS and path.is_dir():
        return all((inner / "run.json").is_file() or inner.name.startswith(".") for inner in path.iterdir())
    if path.name == "evidence" and path.is_dir():
        return all(
            inner.name == MANIFEST
            or inner.name.startswith((STAGING, f".{MANIFEST}."))
            or (inner.name in SCHEMAS and all(part.suffix == ".parquet" for part in inner.iterdir()))
            for inner in path.iterdir()
        )
    return path.name == OWNER or (path.name.startswith(".case.yaml.") and path.name.endswith(DRAFT))


def _vanish(staging: Path) -> None:
    """Take away a folder that tasks may still write to: under its old name they find nothing any more."""
    gone = staging.with_name(f"{STAGING}gone-{uuid.uuid4().hex}")
    with suppress(OSError):
        staging = staging.rename(gone)
    shutil.rmtree(staging, ignore_errors=True)
