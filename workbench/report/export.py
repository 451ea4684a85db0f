"""What is made of a report besides text: the PDF, by a browser of this machine, and the archive for a support ticket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.diagnosis.incident import Incident
from workbench.journal import DRAFT, umask
from workbench.model import Problem
from workbench.report.redaction import (
    DROPPED,
    ENTRY,
    FILE,
    HOST,
    KEPT,
    LINK,
    ORIGIN,
    SERVER,
    SNAPSHOT,
    TARGET,
    URL,
    Pseudonyms,
    without_secrets,
)
from workbench.report.report_pipeline import redacted, secrets_of
from workbench.safety import printable
from workbench.tables import COLUMNS, SCHEMAS, SOURCE

# --- paper

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120


def browser() -> str:
    """A browser that prints. Raises Problem if there is none."""
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    do = "install chromium, or open the HTML in any browser and print it"
    raise Problem("no browser that makes a PDF is here", ", ".join(_BROWSERS), do)


def write_pdf(page: str, path: Path) -> None:
    """Print the page. The browser sees a file of its own and no network."""
    program = browser()
    with _drafted(path) as draft, tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        source = Path(folder) / "report.html"
        source.write_text(page, encoding="utf-8")
        words = [
            program,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--proxy-server=127.0.0.1:9",  # the page asks for nothing; the browser itself might
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # its sandbox does not start as root
            f"--print-to-pdf={draft}",
            source.as_uri(),
        ]
        try:
            ended = subprocess.run(words, capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Problem("the browser did not make the PDF", program, printable(str(error))[:200]) from None
        if ended.returncode or not draft.read_bytes().startswith(b"%PDF"):
            said = printable(ended.stderr.decode(errors="replace").strip()[-200:])
            raise Problem("the browser did not make the PDF", program, said or "print the HTML by hand")


@contextmanager
def _drafted(path: Path) -> Iterator[Path]:
    """A file that takes its name when it is whole; a device or a pipe is written to, not replaced. `-` is standard output.

    A link is followed, and the mode is that of any file that this user makes: others may be kept from reading.
    """
    to = None if str(path) == "-" else path.resolve()
    beside = to is not None and (to.is_file() or not to.exists())
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        descriptor, name = tempfile.mkstemp(
            dir=to.parent if to and beside else folder, prefix=f".{path.name}.", suffix=DRAFT
        )
        os.close(descriptor)
        draft = Path(name)
        try:
            yield draft
            if to is None:
                _copy(draft, sys.stdout.buffer)
            elif not beside:
                with open(to, "wb") as device:
                    _copy(draft, device)
            else:
                with open(draft, "rb") as file:
                    os.fsync(file.fileno())
                draft.chmod(0o666 & ~umask())
                os.replace(draft, to)
        finally:
            draft.unlink(missing_ok=True)


def _copy(draft: Path, to: IO[bytes]) -> None:
    with open(draft, "rb") as file:
        shutil.copyfileobj(file, to)
    to.flush()


# --- a case for others

COLUMN_RULES: Mapping[str, str] = {
    **dict.fromkeys(("nickname", "trust", "subject", "issuer", "hosts", "encoded"), DROPPED),  # of certificates
    "snapshot": SNAPSHOT,
    "server": SERVER,
    "suffix": TARGET,
    "file": FILE,
    "kind": KEPT,
    "origin": ORIGIN,
    "position": KEPT,
    "operation": KEPT,
    "target": TARGET,
    "entry": ENTRY,
    "parent": ENTRY,
    "rename": DROPPED,
    "body": DROPPED,
    "holder": LINK,  # or a server: what is known keeps its pseudonym
    "generation": KEPT,
    "url": URL,
    "min": KEPT,
    "max": KEPT,
    "problem": DROPPED,
    "raw": DROPPED,
    "name": LINK,
    "consumer_host": HOST,
    "supplier_host": HOST,
    "role": KEPT,
    "consumer_origin": ORIGIN,
    "schedule": KEPT,
    "state": KEPT,
    "status": DROPPED,
    "init_status": DROPPED,
    "init_outcome": KEPT,
    "sent": KEPT,
    "excluded": KEPT,
    "excluded_by_filling": KEPT,
    "transport": KEPT,
    "method": KEPT,
    "login": DROPPED,
    "evidence": KEPT,
    "outcome": KEPT,
    "code": KEPT,
    "connection": KEPT,
    "link": LINK,
    "step": KEPT,
    "attribute": KEPT,
    "class": KEPT,
    "source": ENTRY,
    "pulls.source": SERVER,
    "value": DROPPED,
    "mark": KEPT,
    "severity": KEPT,
    "function": KEPT,
    "text": DROPPED,
    "numbers": DROPPED,
    "number": DROPPED,  # a hash without a key of an id that has a pseudonym
    "log_files.number": KEPT,
    "first": KEPT,
    "last": KEPT,
    "commit": KEPT,
    "coherence": KEPT,
    "settings.name": KEPT,
    "event": KEPT,
    "why": KEPT,
    "ddl": KEPT,
    "missing": KEPT,
    "unknown": KEPT,
    "content": DROPPED,  # a hash of all values without a key: who guesses them can prove it
    "transactions.rows": DROPPED,  # JSON, by table; elsewhere it is a number
    "master": KEPT,
    "part": KEPT,
    "error": DROPPED,
    "origin_uuid": ORIGIN,
    "reason": DROPPED,
    "excerpt": DROPPED,
    "format": KEPT,
    "sha256": KEPT,
    "consumer_port": DROPPED,  # no pseudonym fits into a number
    "supplier_port": DROPPED,
}
"""Column, or table.column -> what becomes of it in an export. What is not here: text is dropped, a number kept."""

TABLE_RULES: Mapping[str, str] = {
    "changes": KEPT,
    "positions": KEPT,
    "alike": DROPPED,  # a hash without a key of what a change did: who guesses a value that was left out can prove it
    "named": KEPT,
    "vectors": KEPT,
    "listed": KEPT,
    "states": KEPT,
    "entries": KEPT,
    "segments": KEPT,
    "transactions": KEPT,
    "appliers": KEPT,
    "nodes": KEPT,
    "pulls": KEPT,
    "probes": KEPT,
    "log_files": KEPT,
    "settings": KEPT,
    "clocks": KEPT,
    "records": KEPT,
    "links": KEPT,
    "certificates": DROPPED,  # they name hosts and organisations, also within their encoded form
    "applied": KEPT,
    "operations": KEPT,
    "entry_states": KEPT,
    "messages": KEPT,
    "rejects": KEPT,
    "coverage": KEPT,
    "digests": KEPT,  # of positions, which are there themselves
}
"""Table -> kept in an export, or dropped. A table that is not here is dropped."""

_OWN_WORDS = frozenset({"position", "min", "max", "generation", "sha256"})
"""Kept columns that hold no words, of which every value differs: only what is no number is looked through."""
_NUMBER = r"^[0-9A-Fa-f]{12,}(?::[0-9]+)?$"

_ROWS = 65_536
_THEN = (1980, 1, 1, 0, 0, 0)


@contextmanager
def case_export(incident: Incident, report: Mapping[str, Any], names: Pseudonyms, path: Path) -> Iterator[None]:
    """Pack the report's data, the diagnosis and the evidence tables, all without names; no input file goes along.

    The archive is there when the block ends: what is done in it, as to keep the pseudonyms, has to succeed first.
    The same case gives the same bytes: names in order, times fixed.
    """
    found = without_secrets({**incident.found, "run": {}}, secrets_of(incident))
    texts = {
        "README.txt": _ABOUT,
        "findings.json": json.dumps(redacted(found, names), indent=1) + "\n",
        "report.json": json.dumps({**report, "run": {}}, indent=1) + "\n",
    }
    with _drafted(path) as draft:
        _pack(incident, texts, names, draft)
        yield


def _pack(incident: Incident, texts: Mapping[str, str], names: Pseudonyms, to: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="workbench-") as folder,
        zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in sorted(texts):
            with archive.open(_member(name), "w") as member:
                member.write(texts[name].encode())
        made = Path(folder) / "part.parquet"
        for table in sorted(table for table in COLUMNS if TABLE_RULES.get(table) == KEPT):
            for number, part in enumerate(incident.then.parts(table)):
                _write_redacted(part["path"], table, names, made)
                about = _member(f"evidence/{table}/{number:05}.parquet")
                with archive.open(about, "w", force_zip64=True) as member, open(made, "rb") as file:
                    shutil.copyfileobj(file, member)


_ABOUT = """A case of the replication workbench without names, for a support ticket.

report.json      what the report says
findings.json    the diagnosis
evidence/        the tables it rests on (Parquet), without values, modifications, ports and free text; also without the
                 table `alike` and the hashes of messages, by which values could be guessed

Servers, hosts, links and files have numbers, entries have codes; the same name has the same one everywhere. What they
stand for stays with those who have the case. Names of attributes, positions and times are as they were.
"""


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _THEN)
    member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    return member


def _write_redacted(source: str, table: str, names: Pseudonyms, to: Path) -> None:
    """A part of a table, batch by batch."""
    schema = SCHEMAS[table]
    with pq.ParquetFile(source) as read, pq.ParquetWriter(to, schema, compression="zstd") as writer:
        for batch in read.iter_batches(_ROWS):
            columns = [
                _redacted(batch.column(name), table, name, schema.field(name).type, names) for name in schema.names
            ]
            for name, column in zip(schema.names, columns, strict=True):
                _check(column, name, f"{table}.{name}", names)
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _check(column: pa.Array, name: str, where: str, names: Pseudonyms) -> None:
    """Raises Problem if a known name is in a column of text that is about to leave; a batch at a time."""
    if not pa.types.is_string(column.type):
        return
    if name in _OWN_WORDS:
        column = column.filter(pc.invert(pc.match_substring_regex(column, _NUMBER)))
    for text in pc.unique(column.drop_null()).to_pylist():
        names.check(text, where=where)


def _redacted(column: pa.Array, table: str, name: str, kind: pa.DataType, names: Pseudonyms) -> pa.Array:
    texts = pa.types.is_string(kind) or pa.types.is_map(kind)
    rule = COLUMN_RULES.get(f"{table}.{name}") or COLUMN_RULES.get(name, DROPPED if texts else KEPT)
    if rule == DROPPED or pa.types.is_map(kind):
        return pa.nulls(len(column), kind)
    if not texts:
        return column.cast(kind)
    plain = column.cast(pa.string())
    if rule == KEPT and name in _OWN_WORDS:
        return plain
    words = plain.dictionary_encode()
    mapped = [_of(rule, one, names) for one in words.dictionary.to_pylist()]
    return pc.take(pa.array(mapped, pa.string()), words.indices)


def _of(rule: str, text: str, names: Pseudonyms) -> str:
    if rule == TARGET:
        return names.target(text)
    if rule == FILE:
        return str(names.redacted(text, FILE))
    if rule == URL:
        return names.url(text)
    if rule in (SERVER, SNAPSHOT, LINK, HOST, ENTRY):
        return names.of(rule, text)
    return names.text(text)


assert set(SOURCE) <= COLUMN_RULES.keys()
