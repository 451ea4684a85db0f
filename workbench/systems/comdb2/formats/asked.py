"""What nodes answered when they were asked themselves: how far each is, which files its log has, what its cluster says of it.

A row of comdb2_cluster or comdb2_repl_stats names a host and no database. The database is the one that the name of the file
tells (`shopdb.src1.comdb2_cluster.tsv`); without one the server of the row is `@src2`: some database of that host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.systems.comdb2.formats.listed import Column, Listing, Row, listing_format
from workbench.systems.comdb2.formats.values import (
    at_seconds,
    decimal,
    flag,
    lsn,
    lsn_key,
    moment,
    moment_of,
    number,
    place,
    seconds,
    word,
)
from workbench.systems.comdb2.lsn import order_key
from workbench.systems.comdb2.naming import database_in, node_name

_NODE = (Column("dbname", word), Column("host", word))
_SILENT = "UNREACHABLE"


def _silent(text: str) -> str:
    if text != _SILENT:
        raise ValueError(f"is not {_SILENT}")
    return text


_ASKED = (Column("time", moment), *_NODE)
_LAST = (Column("last_lsn", lsn, null=True), Column("generation", number, null=True))
_COMMIT = (Column("commit_lsn", lsn, null=True), Column("commit_generation", number, null=True))
_ANSWER = (
    *_ASKED,
    Column("first_lsn", lsn, null=True),
    *_LAST,
    Column("timestamp", seconds, null=True),
    *_COMMIT,
    Column("commit_timestamp", seconds, null=True),
    Column("logcgen", number, null=True),
)


def _nothing(text: str) -> str:
    raise ValueError("has a value though the node did not answer")


_SILENCE = (*_ASKED, Column("first_lsn", _silent))
_PADDED = (*_SILENCE, *(Column(column.name, _nothing, null=True) for column in _ANSWER[len(_SILENCE) :]))


def _probes(row: Row, server: str) -> Iterator[tuple[str, Row]]:
    about = {"server": node_name(row["dbname"], row["host"]), "at": moment_of(row["time"])}
    if row["first_lsn"] == _SILENT:
        yield "probes", {**about, "answered": False}
        return
    yield (
        "probes",
        {
            **about,
            "answered": True,
            "first": lsn_key(row["first_lsn"]),
            "last": lsn_key(row["last_lsn"]),
            "generation": row["generation"],
            "logged_at": at_seconds(row["timestamp"]),
            "commit": lsn_key(row["commit_lsn"]),
            "commit_generation": row["commit_generation"],
            "committed_at": at_seconds(row["commit_timestamp"]),
            "cuts": row["logcgen"],
        },
    )


POSITIONS = listing_format("comdb2.positions", Listing((_ANSWER, _SILENCE, _PADDED), _probes, alike=False))

_CLUSTER = (
    Column("host", word),
    Column("port", number, null=True),
    Column("is_master", flag),
    Column("coherent_state", str, null=True),
    Column("logfile", number, null=True),
    Column("logoffset", number, null=True),
)


def _members(row: Row, server: str) -> Iterator[tuple[str, Row]]:
    last = place(row["logfile"], row["logoffset"])
    yield (
        "probes",
        {
            "server": node_name(database_in(server), row["host"]),
            "answered": True,
            "last": order_key("", *last) if last else None,
            "leads": row["is_master"] == "Y",
            "coherence": row["coherent_state"],
        },
    )


CLUSTER = listing_format("comdb2.positions", Listing((_CLUSTER,), _members), variant="cluster", empty="comdb2_cluster")

_BARE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}", re.ASCII)


def _bare(text: str) -> str:
    if not _BARE.fullmatch(text):
        raise ValueError("is no place in the log, file:offset")
    lsn(f"{{{text}}}")
    return text


_TIMES = ("avg_wait_over_10secs", "max_wait_over_10secs", "avg_wait_over_1min", "max_wait_over_1min")
_STATS = (
    Column("host", word),
    *(Column(name, number, null=True) for name in ("bytes_written", "bytes_read", "throttle_waits", "reorders")),
    *(Column(name, decimal, null=True) for name in _TIMES),
    Column("lsn", _bare, null=True),
    Column("lsn_bytes_behind_master", number, null=True),
)


def _statistics(row: Row, server: str) -> Iterator[tuple[str, Row]]:
    last = lsn_key(f"{{{row['lsn']}}}") if row["lsn"] else None
    yield "probes", {"server": node_name(database_in(server), row["host"]), "answered": True, "last": last}


STATISTICS = listing_format(
    "comdb2.positions", Listing((_STATS,), _statistics), variant="repl_stats", empty="comdb2_repl_stats"
)

_LOG_FILE = re.compile(r"log\.([0-9]{10})", re.ASCII)


def _log_file(text: str) -> str:
    if not _LOG_FILE.fullmatch(text):
        raise ValueError("is no name of a log file, log.NNNNNNNNNN")
    return text


_FILES = (*_NODE, Column("name", _log_file), Column("bytes", number), Column("modified", seconds, null=True))


def _log_files(row: Row, server: str) -> Iterator[tuple[str, Row]]:
    if row["bytes"] < 0:
        raise ValueError("bytes is no size")
    yield (
        "log_files",
        {
            "server": node_name(row["dbname"], row["host"]),
            "number": int(row["name"][4:]),
            "bytes": row["bytes"],
            "modified_at": at_seconds(row["modified"]),
        },
    )


LOG_FILES = listing_format("comdb2.logfiles", Listing((_FILES,), _log_files))
