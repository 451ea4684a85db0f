"""The evidence tables: the one place that says which columns they have and what these mean.

Every table begins with the source columns, added by the engine: of these a parser writes `suffix` at most.
`position`, `min` and `max` hold order keys (`workbench.model`). Times are UTC. A null means "the file does not say".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, Any]

TIME = pa.timestamp("us", tz="UTC")
TEXT, INT = pa.string(), pa.int64()

SOURCE: dict[str, tuple[pa.DataType, str]] = {
    "snapshot": (TEXT, "label of the snapshot: the name of the collected folder"),
    "server": (TEXT, "server whose state or log this is"),
    "suffix": (TEXT, "replicated suffix or domain"),
    "file": (TEXT, "file as named in the case"),
}
OFFSET = {"offset": (INT, "first byte of the unit in the (decompressed) file")}

COLUMNS: dict[str, dict[str, tuple[pa.DataType, str]]] = {
    "changes": {
        **OFFSET,
        "kind": (TEXT, "change, or anchor: a dummy record that marks a starting point and is never sent"),
        "origin": (TEXT, "who made the change"),
        "position": (TEXT, "which change"),
        "hi": (INT, "order of the position, first half"),
        "lo": (INT, "order of the position, second half"),
        "operation": (TEXT, "add, modify, modrdn, delete, in the words of the system"),
        "target": (TEXT, "what was changed, as named at that time"),
        "entry": (TEXT, "lasting id of the target"),
        "parent": (TEXT, "lasting id of the target's parent, for adds"),
        "rename": (TEXT, "where the target went, in the words of the system"),
        "body": (TEXT, "the modifications, in the words of the system; secrets removed"),
        "logged_at": (TIME, "when the record was written to the changelog"),
    },
    "positions": {  # sorted by (hi, lo) inside each part; the digests and the exact comparison read only this
        "origin": (TEXT, "who made the change"),
        "hi": (INT, "order of the position, first half"),
        "lo": (INT, "order of the position, second half"),
    },
    "alike": {  # of the changes of one part of `changes`, sorted: two of different numbers are no twins
        "number": (INT, "of the entry and of how the text of the modifications begins"),
    },
    "named": {  # like `positions`, of what is no log of changes: results of operations, and states of entries
        "origin": (TEXT, "who made the change"),
        "hi": (INT, "order of the position, first half"),
        "lo": (INT, "order of the position, second half"),
    },
    "vectors": {
        **OFFSET,
        "kind": (
            TEXT,
            "server, link (what the supplier remembers of the consumer), log_max, or log_purge (trimmed up to)",
        ),
        "holder": (TEXT, "the server, or the name of the link"),
        "generation": (TEXT, "which initialisation of the data this vector belongs to"),
        "origin": (TEXT, "null: the vector has a generation only"),
        "url": (TEXT, "address of the origin"),
        "min": (TEXT, "first position seen of the origin since the vector began"),
        "max": (TEXT, "last position held of the origin"),
        "modified_at": (TIME, "when max last moved"),
        "problem": (TEXT, "why the element is malformed; min and max are null then"),
        "raw": (TEXT, "the element as written"),
    },
    "listed": {
        **OFFSET,
        "origin": (TEXT, "who made the change, if there was one"),
        "position": (TEXT, "a position that the server's vector is made of, where it lists them one by one"),
    },
    "states": {  # of systems that keep no log of changes, but of each attribute of an entry its last one
        **OFFSET,
        "kind": (TEXT, "created, changed, or deleted: the whole entry is gone, and this is its tombstone"),
        "entry": (TEXT, "lasting id of the entry"),
        "attribute": (TEXT, "which attribute changed; null: the entry as a whole"),
        "origin": (TEXT, "who made the change"),
        "hi": (INT, "order of the position, first half"),
        "number": (INT, "of the entry: the rows of each part are in its order"),
    },
    "segments": {  # of systems that replicate a stream of transactions: what one record of it holds of one statement
        **OFFSET,
        "length": (INT, "bytes of the message in the record"),
        "sound": (pa.bool_(), "the checksum is right; false: it is wrong; null: the record carries none"),
        "content": (INT, "64-bit hash of the message: two of different hashes are different"),
        "origin": (TEXT, "who made the transaction; null: the message cannot be read"),
        "position": (TEXT, "which transaction"),
        "commit": (
            INT,
            "place of the transaction in the order of commits, on its last message, where the source tells it",
        ),
        "segment": (INT, "which message of its transaction this is, from 1; null: the stream does not number them"),
        "ended": (pa.bool_(), "the transaction ends with this message; null: the stream does not say"),
        "event": (TEXT, "what happened to the server, in place of statements: STARTUP, SHUTDOWN"),
        "number": (INT, "which statement of the message, from 0; null: it has none"),
        "operation": (TEXT, "kind of the statement, in the words of the system"),
        "target": (TEXT, "table, as schema.table, or schema"),
        "piece": (INT, "which piece of the statement this is, from 1; null: a statement that is never cut"),
        "piece_ended": (pa.bool_(), "the statement ends with this piece"),
        "rows": (INT, "rows in this piece"),
        "ragged": (INT, "rows of it that cannot be read safely: another number of values than the header has columns"),
        "unknown": (TEXT, "what of it this reader does not know: fields and kinds, as path and number"),
        "started_at": (TIME, "when the message was begun"),
        "ended_at": (TIME, "when the message was closed"),
    },
    "transactions": {  # put together from `segments`: a row for each transaction, or event, of a stream
        **OFFSET,
        "origin": (TEXT, "who made the transaction"),
        "position": (TEXT, "which transaction"),
        "life": (
            INT,
            "how often its origin had started before, as the stream shows it: numbers may be used again then",
        ),
        "outcome": (TEXT, "what became of it: a word of `workbench.replication.stream.rules.segments.OUTCOMES`"),
        "why": (TEXT, "why it is no plain commit: a word of `workbench.replication.stream.rules.segments.SAYS`"),
        "event": (TEXT, "STARTUP or SHUTDOWN; null: a transaction"),
        "ddl": (TEXT, "statements that change no rows, joined by +"),
        "messages": (INT, "records of it, repeated ones included"),
        "repeated": (INT, "of these, records that were there before"),
        "ended": (pa.bool_(), "its last message says that it is the last; null: the stream does not say"),
        "missing": (TEXT, "numbers of messages that are not there, separated by blanks; tail: its end"),
        "bytes": (INT, "of its messages"),
        "rows": (TEXT, "rows that count, as JSON: table -> operation -> number; null: nothing tells which count"),
        "seen": (INT, "rows in all its messages"),
        "kept": (INT, "of these, rows that count"),
        "ragged": (INT, "of these, rows that cannot be read safely"),
        "content": (INT, "64-bit hash of what counts of it; equal on servers that hold the same"),
        "commit": (INT, "place in the order of commits, where the source tells it"),
        "last": (INT, "first byte of its last record that is no repetition: transactions were committed in this order"),
        "started_at": (TIME, "its first message was begun"),
        "ended_at": (TIME, "its last message was closed"),
    },
    "appliers": {  # what a consumer of such a stream says of itself
        **OFFSET,
        "master": (TEXT, "the supplier, as the consumer numbers it"),
        "part": (TEXT, "io: it fetches; applier: it applies; queue: a row of its queue, at this place"),
        "status": (TEXT, "RUNNING, STOPPED, as written"),
        "error": (TEXT, "the last error; values removed"),
        "commit": (INT, "the last commit that it applied"),
        "origin_uuid": (TEXT, "server on which that was made first"),
        "origin_commit": (INT, "the place of that commit there"),
    },
    "nodes": {  # of systems whose nodes pull a physical log in tiers: what the registry says of one, which is the `server`
        **OFFSET,
        "position": (TEXT, "the last position that it reported; null: it reported none"),
        "first_file": (
            INT,
            "number of the oldest file of its log, as it reported; null: the registry does not keep it",
        ),
        "reported_at": (TIME, "when it last reported itself; null: never"),
        "state": (TEXT, "what the registry takes it for, as written"),
    },
    "pulls": {  # who pulls from whom, as the registry says; the `server` is the node that pulls
        **OFFSET,
        "source": (TEXT, "node, or nodes, that it pulls from"),
        "awaited": (pa.bool_(), "it does not connect itself, but waits until the source does"),
    },
    "probes": {  # what a node answered when it was asked itself
        **OFFSET,
        "at": (TIME, "when it was asked"),
        "answered": (pa.bool_(), "false: it gave no answer in time"),
        "first": (TEXT, "the oldest position that it still has"),
        "last": (TEXT, "the newest one"),
        "generation": (INT, "of that record; null: it carries none"),
        "logged_at": (TIME, "when that record was written; null: it carries no time"),
        "commit": (TEXT, "position of its newest commit"),
        "commit_generation": (INT, "generation of that commit"),
        "committed_at": (TIME, "when that commit was made, by the clock of its origin"),
        "cuts": (INT, "a counter of the node that rises whenever it cuts the end of its log off"),
        "leads": (pa.bool_(), "it is the master of its cluster; null: the file does not say"),
        "coherence": (TEXT, "what its cluster says of it, as written"),
    },
    "log_files": {
        **OFFSET,
        "number": (INT, "number of the file in the log"),
        "bytes": (INT, "its size: where its last record ends"),
        "modified_at": (TIME, "when it was last written"),
    },
    "settings": {
        **OFFSET,
        "kind": (TEXT, "tunable: how it is set now; metric: what it counts; line: of its configuration file"),
        "name": (TEXT, "name of the setting"),
        "value": (TEXT, "as written; null: none. Secrets removed"),
    },
    "clocks": {
        **OFFSET,
        "at": (TIME, "the clock of the registry while the snapshot was collected"),
    },
    "records": {  # of a physical log; each part is in the order of (hi, lo)
        **OFFSET,
        "hi": (INT, "number of the file in the log"),
        "lo": (INT, "place in that file"),
        "length": (INT, "bytes of its content; what follows begins behind these and the head of a record"),
        "kind": (INT, "kind of the record, as the system numbers it"),
        "generation": (INT, "of the master that wrote it; on commits and checkpoints only"),
        "at": (TIME, "when it was written; on commits and checkpoints only"),
        "content": (INT, "64-bit hash of its content: two of different hashes are different"),
        "transaction": (INT, "number of its transaction; null: none"),
    },
    "entries": {
        **OFFSET,
        "entry": (TEXT, "lasting id of the entry"),
        "target": (TEXT, "name of the entry"),
        "class": (TEXT, "what it is beside an ordinary entry: conflict, recycled, tombstone; null: nothing"),
        "source": (TEXT, "of a conflict entry the entry that it was to be"),
    },
    "links": {
        **OFFSET,
        "name": (TEXT, "name of the link"),
        "role": (
            TEXT,
            "what the server of the row does: null, it supplies over the link; asks, as a consumer that fetches; allows, as the "
            "supplier of a consumer that fetches",
        ),
        "supplier_host": (TEXT, "where the server of the row asks: host of the supplier, as it is told to reach it"),
        "supplier_port": (INT, "port of the supplier"),
        "consumer_host": (TEXT, "host of the consumer, as the supplier is told to reach it"),
        "consumer_port": (INT, "port of the consumer"),
        "consumer_origin": (TEXT, "origin of the consumer as the supplier knows it; null for a read-only one"),
        "enabled": (pa.bool_(), "the link is switched on; false: nothing is sent over it"),
        "automatic": (
            pa.bool_(),
            "a consumer that cannot be brought up to date takes all data anew without being told to",
        ),
        "schedule": (TEXT, "null: always"),
        "state": (TEXT, "green, amber, red: the system's own judgement of the last event, not of the data"),
        "status_code": (INT, "the system's code of the last event"),
        "status": (TEXT, "the system's sentence on the last event"),
        "busy": (pa.bool_(), "a session is running"),
        "started_at": (TIME, "last session began"),
        "ended_at": (TIME, "last session ended"),
        "init_started_at": (TIME, "last total initialisation of the consumer over this link began"),
        "init_ended_at": (TIME, "last total initialisation ended"),
        "init_status": (TEXT, "the system's sentence on the last total initialisation"),
        "init_outcome": (
            TEXT,
            "how it ended: succeeded, aborted (while data was sent), failed (before); null: it goes on, or nothing tells",
        ),
        "sent": (TEXT, "changes sent and skipped since the start, as written"),
        "position": (TEXT, "last position sent or known to be there"),
        "excluded": (TEXT, "attributes that the link leaves out, separated by blanks"),
        "excluded_by_filling": (TEXT, "those that an initialisation over it leaves out; null: the same ones"),
        "transport": (TEXT, "how the supplier reaches the consumer, in the words of the system"),
        "method": (TEXT, "how the supplier logs in there, in the words of the system"),
        "login": (TEXT, "as whom it logs in there"),
    },
    "certificates": {  # of a server: its own, and those of the authorities that it knows
        **OFFSET,
        "nickname": (TEXT, "its name in the database of the server"),
        "trust": (TEXT, "what the server trusts it for, in the words of the system"),
        "in_use": (pa.bool_(), "the server shows it to whoever connects; null: the file does not say"),
        "subject": (TEXT, "whose certificate it is"),
        "issuer": (TEXT, "who signed it"),
        "not_before": (TIME, "valid from then on"),
        "not_after": (TIME, "valid until then"),
        "hosts": (TEXT, "host names and addresses that it is for, separated by blanks"),
        "encoded": (TEXT, "the certificate (DER) in base64; it is public, and holds no key that is secret"),
    },
    "applied": {
        **OFFSET,
        "evidence": (TEXT, "evidence kind of the contract: access_log, errors_log, entry_state"),
        "outcome": (
            TEXT,
            "applied, refused, dropped (acknowledged, not applied), cancelled, skipped (the supplier gave up), received "
            "(answered with success as the newest of its origin so far: applied, unless it is the server's own), acknowledged "
            "(answered with success: applied, or had before)",
        ),
        "origin": (TEXT, "who made the change; null where the log line does not name its position"),
        "position": (TEXT, "which change; null where the log line does not name it"),
        "at": (TIME, "when the log line was written"),
        "code": (INT, "result code"),
        "operation": (TEXT, "add, modify, modrdn, delete, in the words of the system"),
        "target": (TEXT, "what the operation was about, as named in the log"),
        "connection": (TEXT, "connection and operation of the log line"),
        "replicated": (pa.bool_(), "arrived on a replication connection; null where the log does not show it"),
        "link": (TEXT, "link that the line speaks of"),
    },
    "operations": {
        **OFFSET,
        "origin": (TEXT, "who made the change"),
        "position": (TEXT, "which change the server worked on"),
        "step": (TEXT, "begin, commit, abort, rolled_up"),
        "at": (TIME, "when the step was logged"),
        "connection": (TEXT, "connection and operation of the log line"),
    },
    "entry_states": {
        **OFFSET,
        "entry": (TEXT, "lasting id of the entry"),
        "target": (TEXT, "name of the entry"),
        "attribute": (TEXT, "attribute, with its real options"),
        "value": (TEXT, "the value; null for a removed secret, base64 with the prefix `base64:` if it is not text"),
        "state": (TEXT, "present, deleted (value), attribute_deleted, or tombstone for a value of a deleted entry"),
        "mark": (TEXT, "what the position did, in the words of the system (389: vucsn, vdcsn, adcsn, mdcsn)"),
        "origin": (TEXT, "null: the value carries no position"),
        "position": (TEXT, "the change that made the value what it is; null: the value carries no position"),
    },
    "messages": {
        **OFFSET,
        "at": (TIME, "when the line was written"),
        "severity": (TEXT, "debug, info, notice, warning, error, critical"),
        "code": (TEXT, "what the line says, as a word of the system's registry; null for an error that has no word"),
        "function": (TEXT, "part of the program that wrote it"),
        "link": (TEXT, "link it speaks of"),
        "origin": (TEXT, "origin it speaks of"),
        "position": (TEXT, "position it speaks of"),
        "numbers": (pa.map_(TEXT, TEXT), "further values the line names"),
        "text": (TEXT, "the line, shortened; secrets removed"),
    },
    "rejects": {
        **OFFSET,
        "reason": (TEXT, "why the unit could not be read"),
        "excerpt": (TEXT, "first characters, harmless to print; secrets removed"),
    },
    "coverage": {  # one row per file
        "format": (TEXT, "what the file is, told by its content"),
        "bytes": (INT, "size as collected"),
        "sha256": (TEXT, "of the file as collected; null if it changed while it was read"),
        "rows": (INT, "rows = accepted + rejected"),
        "accepted": (INT, "rows that were read"),
        "rejected": (INT, "rows that are in `rejects`"),
        "first_at": (TIME, "first time stamp of a log"),
        "last_at": (TIME, "last time stamp of a log"),
    },
    # Per changelog file, origin and bucket of hi. Files of one server repeat each other (several exports of one changelog):
    # of each server and origin one file is compared, as in `Case.holdings`, never the sum of several.
    "digests": {
        "origin": (TEXT, "who made the changes"),
        "bucket": (INT, "hi >> the system's bucket_shift"),
        "count": (INT, "number of positions"),
        "xor_hi": (INT, "exclusive or of all hi; of two digests that differ by one position it is that position's hi"),
        "xor_lo": (INT, "exclusive or of all lo"),
        "mix": (INT, "sum modulo 2^64 of a 64-bit mix of (hi, lo), as a signed integer"),
    },
}

SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([(column, kind) for column, (kind, _) in {**SOURCE, **columns}.items()])
    for name, columns in COLUMNS.items()
}


def joined(parts: list[pa.Table]) -> pa.Table:
    """The parts of one table as one; a column that is a dictionary in one part and plain in another becomes plain."""
    if all(other.schema == parts[0].schema for other in parts):
        return pa.concat_tables(parts).unify_dictionaries()
    names = parts[0].column_names
    plain = pa.schema([(name, _plain_type([part.schema.field(name).type for part in parts])) for name in names])
    return pa.concat_tables([part.select(names).cast(plain) for part in parts])


def _plain_type(types: list[pa.DataType]) -> pa.DataType:
    if len(set(types)) == 1:
        return types[0]
    return next(kind for kind in types if not pa.types.is_dictionary(kind))


def table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an evidence table without the source columns; keys that are absent become null, unknown keys are an error.

    A row may name its `suffix` or `server`, where one file speaks of several; the engine fills in that of the file elsewhere.
    """
    schema = pa.schema([(column, kind) for column, (kind, _) in COLUMNS[name].items()])
    rows = list(rows)
    for own in ("suffix", "server"):
        if any(own in row for row in rows):
            schema = schema.insert(0, pa.field(own, TEXT))
    if unknown := {key for row in rows for key in row} - set(schema.names):
        raise KeyError(f"table {name} has no column {sorted(unknown)}")
    return pa.table({field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in schema})


def order_of(hi: Numbers, lo: Numbers) -> Numbers:
    """The numbers of the positions (hi, lo) in ascending order: 0, 1, 2 ... if they stand in order, as in most exports."""
    if bool(((hi[1:] > hi[:-1]) | ((hi[1:] == hi[:-1]) & (lo[1:] >= lo[:-1]))).all()):
        return np.arange(len(hi))
    return np.lexsort((lo, hi))
