"""One incident is one folder: what was collected, the evidence made from it, and later what was found and done.

    CASE/case.yaml              name, system, snapshots, servers; the version of this layout
    CASE/evidence/<table>/      Parquet parts
    CASE/evidence/manifest.json which inputs were read, by hash, and which parts belong to them

A part belongs to the case only if the manifest lists it, and the manifest is replaced by one rename: a table is
published whole or not at all. Inputs stay where they are and are known by their hash: loading them again does nothing,
loading more adds, and a file whose content changed replaces what it had said before.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.boundary import printable, strict_yaml, to_yaml
from workbench.files import inspect, path_text
from workbench.inputs import NOBODY, Input, Named, begins, files_of, identify, name_suffixes, named_in, untouched
from workbench.journal import owned, write_whole
from workbench.model import Problem, merge_facts
from workbench.tables import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAYOUT = 1
Progress = Callable[[int, int, int], None]
"""Told how many bytes of how many are read, and how many rows they held."""


@dataclass(frozen=True)
class Loaded:
    """What a load did: inputs read now, inputs that were known already, and the case's rows."""

    added: list[Input]
    known: list[Input]

    @property
    def rows(self) -> int:
        """Rows read by this load, rejected ones included."""
        return sum(one.rows for one in self.added)


class Case:
    """A case folder. Make one with `Case.create`, or open one with `Case.open`."""

    def __init__(self, folder: Path, name: str, snapshots: dict[str, str], inputs: list[Input]) -> None:
        self.folder, self.name = folder, name
        self.snapshots = snapshots
        """Label of each snapshot, in the order of time -> the folder it was collected in."""
        self.inputs = inputs

    @classmethod
    def open(cls, folder: str | Path) -> Case:
        """Open a case folder; raises Problem if it is none, or of a layout this version does not know."""
        folder = Path(folder)
        about = folder / "case.yaml"
        if not about.is_file():
            do = "give a folder that `workbench load` wrote" if folder.is_dir() else "check the path"
            raise Problem("this is not a case: it has no case.yaml", str(folder), do)
        head_line = strict_yaml(about.read_text(encoding="utf-8", errors="replace"), str(about))
        layout = head_line.get("layout") if isinstance(head_line, dict) else None
        if layout != str(LAYOUT):
            raise Problem(
                f"case layout {printable(str(layout))} is not {LAYOUT}", str(about), "load the inputs into a new case"
            )
        manifest = folder / "evidence" / "manifest.json"
        try:
            stored = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
            inputs = [Input(**one) for one in stored.get("inputs", [])]
            return cls(folder, str(head_line.get("name", folder.name)), dict(stored.get("snapshots", {})), inputs)
        except (ValueError, TypeError, AttributeError):
            raise Problem("the manifest cannot be read", str(manifest), "load the inputs into a new case") from None

    @classmethod
    def create(cls, folder: str | Path, name: str | None = None) -> Case:
        """Open the case, or make an empty one in a folder that is absent or empty."""
        folder = Path(folder)
        if (folder / "case.yaml").exists():
            return cls.open(folder)
        # What a run that was killed, or that met a full disk, left before case.yaml is nobody's.
        if folder.exists() and (
            not folder.is_dir() or {path.name for path in folder.iterdir()} - {".owner", "evidence"}
        ):
            what = "has other files in it" if folder.is_dir() else "is a file"
            raise Problem(f"the case folder {what}", str(folder), "give a new or empty folder for the case")
        folder.mkdir(parents=True, exist_ok=True)
        with owned(folder):
            if not (folder / "case.yaml").exists():
                cls(folder, name or folder.resolve().name, {}, [])._publish()
        return cls.open(folder)

    @property
    def system(self) -> str | None:
        """Name of the replicated system the evidence comes from; None while there is none."""
        return next((one.kind.split(".", 1)[0] for one in self.inputs if one.kind), None)

    @property
    def evidence(self) -> Path:
        """Where the tables are."""
        return self.folder / "evidence"

    def load(
        self, folders: Iterable[str | Path], spark: SparkSession | None = None, progress: Progress | None = None
    ) -> Loaded:
        """Read collected folders into the evidence tables; each folder is one snapshot, its files read without descending.

        Without `spark` a local session is started if there is anything new to read.
        """
        with owned(self.folder):
            fresh = Case.open(self.folder)  # another run may have added to it since
            self.snapshots, self.inputs = fresh.snapshots, fresh.inputs
            found = {
                (label := self._label(folder), path.name): (label, path, named.get(path.name, NOBODY))
                for folder in map(Path, folders)
                for named in [named_in(folder)]
                for path in files_of(folder)
            }
            known, new = self._sift(list(found.values()))
            if new:
                self._read(new, spark, progress)
            self._publish()
            self._sweep()
        return Loaded(new, known)

    def _label(self, folder: Path) -> str:
        """The snapshot's label: the folder's name, with its parent's in front if another folder has that name already."""
        folder = folder.resolve()
        for label, known in self.snapshots.items():
            if known == str(folder):
                return label
        label, parents = path_text(folder.name), list(folder.parents)
        while label in self.snapshots and parents:
            label = f"{path_text(parents.pop(0).name)}/{label}"
        self.snapshots[label] = str(folder)
        return label

    def _sift(self, found: list[tuple[str, Path, Named]]) -> tuple[list[Input], list[Input]]:
        """Inputs that the case holds already, and new ones with their hash and format; changed ones are taken out."""
        held = {(one.snapshot, one.file): one for one in self.inputs}

        def look(entry: tuple[str, Path, Named]) -> Input:
            label, path, named = entry
            old = held.get((label, path_text(path.name)))
            return old if old and untouched(old, path, named) else identify(label, path, named)

        with ThreadPoolExecutor(4) as pool:  # hashing releases the interpreter lock
            looked = list(pool.map(look, found))
        known, new = [], []
        for one in looked:
            old = held.get((one.snapshot, one.file))
            if old and (old.sha256, old.kind, old.server) == (one.sha256, one.kind, one.server):
                old.path, old.changed = one.path, one.changed
                known.append(old)
            else:
                new.append(one)
        replaced = {(one.snapshot, one.file) for one in new}
        self.inputs = [one for one in self.inputs if (one.snapshot, one.file) not in replaced]
        return known, new

    def _read(self, new: list[Input], spark: SparkSession | None, progress: Progress | None) -> None:
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
                f"none of {len(new)} files holds evidence", kinds, "`workbench inspect FILE` shows what each file is"
            )
        from workbench.engine.evidence import read_files, shares_of

        readable = [number for number, one in enumerate(new) if one.kind]
        name_suffixes([*self.inputs, *new], [new[number] for number in readable])
        for one in new:
            if not one.kind:
                (seen,) = inspect([one.path])
                one.format, one.rows, one.rejected = seen["format"], seen["rows"], seen["rejected"]
                one.why = seen["rejects"][0]["reason"] if seen["rejects"] else ""
        shares = [
            share
            for number in sorted(readable, key=lambda n: begins(new[n]))
            for share in shares_of(number, Path(new[number].path), new[number].source, new[number].kind)
        ]
        total = sum(share.size for share in shares)
        if spark is None:
            from workbench.engine.session import spark_session

            spark = spark_session(size="large" if total > 256 << 20 else "small")
        results = read_files(
            spark, shares, self.evidence, (lambda done, rows: progress(done, total, rows)) if progress else None
        )
        for result in sorted(results, key=lambda r: r["number"]):
            one = new[result["number"]]
            one.rows += result["rows"]
            one.rejected += result["rejected"]
            one.facts = merge_facts([one.facts, result["facts"]])
            one.parts += result["parts"]
        for one in new:
            _one_digest(one, self.evidence)
            if one.kind and not untouched(one, Path(one.path)):
                one.why, one.changed = "the file changed while it was read: load it again", 0
                one.rows, one.rejected = one.rows + 1, one.rejected + 1
        self.inputs = sorted([*self.inputs, *new], key=lambda one: (list(self.snapshots).index(one.snapshot), one.file))
        self._write_coverage(new)

    def _write_coverage(self, new: list[Input]) -> None:
        from workbench.engine.parts import write_part

        for one in new:
            span = one.facts.get("time", {})
            row = {
                "format": one.format,
                "bytes": one.bytes,
                "sha256": one.sha256,
                "rows": one.rows,
                "accepted": one.accepted,
                "rejected": one.rejected,
                "first_at": _time(span.get("min")),
                "last_at": _time(span.get("max")),
            }
            one.parts.append(write_part(self.evidence, "coverage", [row], one.source))
            if one.why:
                reject = {"offset": 0, "reason": one.why, "excerpt": ""}
                one.parts.append(write_part(self.evidence, "rejects", [reject], one.source))

    def _publish(self) -> None:
        """Make what was read part of the case: first what the case is, then, by one rename, what it holds."""
        self.evidence.mkdir(exist_ok=True)
        servers: dict[str, int] = {}
        for one in self.inputs:
            if any(part["table"] not in ("coverage", "rejects") for part in one.parts):
                servers[one.server] = servers.get(one.server, 0) + 1
        about: dict[str, Any] = {
            "layout": str(LAYOUT),
            "name": path_text(self.name),
            "system": self.system or "none yet",
        }
        about["snapshots"] = [{"label": name, "folder": path_text(where)} for name, where in self.snapshots.items()]
        about["servers"] = [{"name": name, "files": count} for name, count in sorted(servers.items())]
        write_whole(self.folder / "case.yaml", to_yaml(about))
        manifest = {"layout": LAYOUT, "snapshots": self.snapshots, "inputs": [vars(one) for one in self.inputs]}
        write_whole(self.evidence / "manifest.json", json.dumps(manifest, indent=1))

    def _sweep(self) -> None:
        """Remove what no manifest lists: parts of tasks that died or ran twice, and of inputs that were replaced."""
        listed = {(part["table"], part["name"]) for one in self.inputs for part in one.parts}
        for folder in self.evidence.iterdir():
            if folder.name.startswith(".progress-"):
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.is_dir():
                for part in folder.iterdir():
                    if (folder.name, part.name) not in listed:
                        part.unlink()

    def parts(self, table: str) -> list[dict[str, Any]]:
        """The parts of a table: `path`, `rows`, and of `positions` the `first` and `last` (hi, lo) of each sorted part."""
        if table not in SCHEMAS:
            raise Problem(f"there is no table {printable(table)}", "", f"the tables are {', '.join(SCHEMAS)}")
        where = self.evidence / table
        return [
            {**part, "path": str(where / part["name"])}
            for one in self.inputs
            for part in one.parts
            if part["table"] == table
        ]

    def table(self, name: str, spark: SparkSession) -> DataFrame:
        """An evidence table as a Spark DataFrame; `workbench.tables` says what its columns mean."""
        from workbench.engine.evidence import read_table

        return read_table(spark, name, [part["path"] for part in self.parts(name)])

    def arrow(self, name: str) -> pa.Table:
        """A small evidence table (vectors, links, coverage, digests) as an Arrow table, without Spark."""
        parts = []
        for part in self.parts(name):
            try:
                parts.append(pq.read_table(part["path"]).cast(SCHEMAS[name]))
            except (OSError, pa.ArrowInvalid):
                raise Problem(
                    "a part of the evidence is damaged or gone", part["path"], "load the inputs into a new case"
                ) from None
        return pa.concat_tables(parts) if parts else SCHEMAS[name].empty_table()

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
            if one.snapshot == snapshot and any(part["table"] == "positions" for part in one.parts):
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


def _one_digest(one: Input, evidence: Path) -> None:
    """Fold the digests of a file's parts into one part: a bucket may lie across the border of two ranges."""
    from workbench.engine.digests import fold
    from workbench.engine.parts import write_part

    mine = [part for part in one.parts if part["table"] == "digests"]
    if len(mine) > 1:
        columns = [name for name in SCHEMAS["digests"].names if name not in ("snapshot", "server", "suffix", "file")]
        tables = [pq.read_table(evidence / "digests" / part["name"], columns=columns) for part in mine]
        folded = fold(pa.concat_tables(tables))
        one.parts = [part for part in one.parts if part["table"] != "digests"]
        one.parts.append(write_part(evidence, "digests", folded, one.source))


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
