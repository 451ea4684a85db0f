"""Inputs to evidence: what a load reads, hashes and writes as parts, before anything of it belongs to the case.

Large files are read by Spark. A few small ones are read by the same functions in this process, which has done with them
before Spark would have started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.intake.files import inspect, path_text, recognise
from workbench.intake.inputs import Input, begins, look_into, name_suffixes, sha256_of, untouched
from workbench.model import merge_facts
from workbench.tables import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.engine.partition_writer import Share

READ_HERE = 8 << 20
"""So many bytes are read before a Spark that is not running yet has started."""

LARGE = 256 << 20
"""From so many bytes on a session that lives long pays for a slower start."""

Progress = Callable[[int, int, int], None]
"""Told how many bytes of how many are read, and how many rows they held. Nothing is published before it is told that all are;
what it raises ends the load, and the case is as it was."""


def recognised(folders: Iterable[str | Path]) -> list[dict[str, Any]]:
    """What a load would read of collected folders: a row for each thing in them, told by its first bytes.

    `why` says why something is not read. Raises Problem for a folder that is none.
    """
    rows = []
    for folder in map(Path, folders):
        collected = look_into(folder)
        for path in collected.files:
            kind, name, why = recognise(path)
            size = path.stat().st_size if path.is_file() else None
            rows.append(_seen(folder, collected.name_of(path), name, size, "" if kind else why))
        rows += [_seen(folder, name, "", None, why) for name, why in collected.passed_over.items()]
    return rows


def _seen(folder: Path, name: str, kind: str, size: int | None, why: str) -> dict[str, Any]:
    return {"folder": path_text(folder.name), "file": name, "format": kind, "bytes": size, "why": why}


def read_inputs(
    new: list[Input],
    known: list[Input],
    staging: Path,
    spark: SparkSession | str | None = None,
    progress: Progress | None = None,
) -> None:
    """Read the new inputs into parts under `staging`, and write into each input what was found and which parts hold it.

    What the inputs already `known` tell of their servers counts for the new ones too. `spark` is a session, the address
    of the Spark to start one on, or None: then a few small files are read right here.
    """
    from workbench.engine.partition_writer import out_of_step, shares_of

    readable = [number for number, one in enumerate(new) if one.kind]
    name_suffixes([*known, *new], [new[number] for number in readable])
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
    with _hashing([one for one in new if not one.sha256]):
        results, session = _results(shares, staging, spark, progress)
        while wrong := out_of_step(shares, results):
            anew = {(one.number, one.end) for one in wrong}
            right = [one for one in results if (one["number"], (one["frames"] or {}).get("end")) not in anew]
            results = [*right, *_results(wrong, staging, spark, None)[0]]
    for result in sorted(results, key=lambda r: r["number"]):
        one = new[result["number"]]
        one.rows += result["rows"]
        one.rejected += result["rejected"]
        one.facts = merge_facts([one.facts, result["facts"]])
        one.parts += result["parts"]
    for one in new:
        _one_digest(one, staging)
        _assembled(one, staging, session)
        if one.kind and not untouched(one, Path(one.path)):
            # Without a hash, because nobody knows whether it was made of what was read.
            one.why, one.changed, one.sha256 = "the file changed while it was read: load it again", 0, ""
            one.rows, one.rejected = one.rows + 1, one.rejected + 1
    _write_coverage(new, staging)
    if progress:
        total = sum(share.size for share in shares)
        progress(total, total, sum(one.rows for one in new))


@contextmanager
def _hashing(inputs: list[Input]) -> Iterator[None]:
    """Hash the inputs while the block runs, and wait for the rest; if the block fails, the hashing ends as well."""
    failed = Event()

    def one_hash(one: Input) -> None:
        with suppress(OSError):  # gone meanwhile: whoever reads it says so
            one.sha256 = sha256_of(Path(one.path), failed.is_set)

    with ThreadPoolExecutor(2) as pool:  # hashing releases the interpreter lock
        jobs = [pool.submit(one_hash, one) for one in inputs]
        try:
            yield
        except BaseException:
            failed.set()
            pool.shutdown(cancel_futures=True)
            raise
        for job in jobs:
            job.result()


def _results(
    shares: list[Share], staging: Path, spark: SparkSession | str | None, progress: Progress | None
) -> tuple[list[dict[str, Any]], SparkSession | None]:
    """What the shares hold, read by Spark, or right here if that takes less time than starting it; and the session."""
    total = sum(share.size for share in shares)
    if spark is None and total <= READ_HERE:
        from workbench.engine.partition_writer import read_shares, streams

        results: list[dict[str, Any]] = []
        ordered = [share for stream in streams(shares) for share in stream]
        for result in read_shares(ordered, staging):
            results.append(result)
            if progress:
                done = sum(share.size for share in ordered[: len(results)])
                progress(done, total, sum(one["rows"] for one in results))
        return results, None
    from workbench.engine.evidence import read_files
    from workbench.engine.session import spark_session

    if spark is None or isinstance(spark, str):
        spark = spark_session(spark, size="large" if total > LARGE else "small")
    watch = (lambda done, rows: progress(done, total, rows)) if progress else None
    return read_files(spark, shares, staging, watch), spark


def _write_coverage(new: list[Input], staging: Path) -> None:
    from workbench.engine.partition_writer import write_part

    for one in new:
        span = one.facts.get("time", {})
        row = {
            "format": one.format,
            "bytes": one.bytes,
            "sha256": one.sha256 or None,
            "rows": one.rows,
            "accepted": one.accepted,
            "rejected": one.rejected,
            "first_at": _time(span.get("min")),
            "last_at": _time(span.get("max")),
        }
        one.parts.append(write_part(staging, "coverage", [row], one.source))
        if one.why:
            reject = {"offset": 0, "reason": one.why, "excerpt": ""}
            one.parts.append(write_part(staging, "rejects", [reject], one.source))


def _one_digest(one: Input, staging: Path) -> None:
    """Fold the digests of a file's parts into one part: a bucket may lie across the border of two ranges."""
    from workbench.engine.digests import fold
    from workbench.engine.partition_writer import write_part

    mine = [part for part in one.parts if part["table"] == "digests"]
    if len(mine) > 1:
        columns = [name for name in SCHEMAS["digests"].names if name not in ("snapshot", "server", "suffix", "file")]
        tables = [pq.read_table(staging / "digests" / part["name"], columns=columns) for part in mine]
        folded = fold(pa.concat_tables(tables))
        one.parts = [part for part in one.parts if part["table"] != "digests"]
        one.parts.append(write_part(staging, "digests", folded, one.source))


def _assembled(one: Input, staging: Path, spark: SparkSession | None) -> None:
    """Put the segments of a stream together; of each origin its facts tell what was committed, and between which positions."""
    segments = [part for part in one.parts if part["table"] == "segments"]
    if not segments:
        return
    from workbench.engine.assembling import assemble

    # What a cut end will hold is not there yet; before it nothing is lost.
    torn = one.facts.get("end_of_file", {}).get("state") == "truncated"
    made = assemble(segments, staging, one.source, one.rejected > torn, spark)
    one.parts += made["parts"]
    one.facts["by_origin"] = made["by_origin"]


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
