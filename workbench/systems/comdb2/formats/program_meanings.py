"""What the lines of a program's log say: the closed list of codes, each with the sentence and the pattern it stands for.

Texts of 2023 to 2026. A pattern is searched behind the time and the level of a line. Its groups: `file` and `offset` of a
place in the log, or `lsn`, are the position; `database` and `host` the other node, which is the link; all else are numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """One code: the sentence for the documentation, words that stand in each such line, and its pattern."""

    says: str
    sign: str
    pattern: re.Pattern[str]


def _meaning(says: str, sign: str, pattern: str = "") -> Meaning:
    return Meaning(says, sign, re.compile(pattern or re.escape(sign)))


_LSN = r"[\[({](?P<lsn>[0-9]{1,10}:[0-9]{1,10})[\])}]"
_ASKS = (
    r"dbname = '(?P<node_database>[^']*)', hostname = '(?P<node_host>[^']*)', file = (?P<file>[0-9]{1,10}), "
    r"offset = (?P<offset>[0-9]{1,10}), source_dbname = '(?P<source_database>[^']*)', source_hosts = '(?P<sources>.*)'"
)
_NOBODY = r"found no candidates for '(?P<source_database>[^']*)' source-hosts '(?P<sources>.*)' "

MEANINGS: dict[str, Meaning] = {
    # --- a replicant
    "no_candidates": _meaning("the registry offers no source; asked again each second", "No candidate leaders"),
    "inactive": _meaning(
        "nothing was applied for so long; file and offset are compared each by itself, so `ahead` = true is a false alarm",
        "Physical replicant has been inactive",
        rf"inactive for last (?P<seconds>[0-9]+) seconds \(my lsn: {_LSN} source lsn: "
        r"[\[({](?P<source_lsn>[0-9]{1,10}:[0-9]{1,10})[\])}]",
    ),
    "attached": _meaning(
        "connected to this source",
        "Attached to '",
        r"Attached to '(?P<host>[^']*)' db '(?P<database>[^']*)' for replication",
    ),
    "replicating": _meaning(
        "it pulls from this source now",
        "is now replicating from",
        r"is now replicating from (?P<database>[^\s@]+)@(?P<host>\S+)",
    ),
    "disconnected": _meaning("the connection to the source is gone", "Physical replicant has disconnected"),
    "worker_started": _meaning("replication was started", "orker thread has started"),
    "worker_stopped": _meaning("replication was stopped", "orker thread has stopped"),
    "worker_not_started": _meaning("not a replicant: nothing is pulled here", "Not starting worker thread"),
    "watcher_started": _meaning("the watch over sources and children was started", "Watcher thread has started"),
    "watcher_stopped": _meaning("the watch over sources and children was stopped", "Watcher thread has stopped"),
    "reverse_manager_started": _meaning(
        "the thread that makes connections to waiting nodes was started", "'reverse connections' manager thread"
    ),
    "no_viable_source": _meaning("no source that was tried still has the next record", "PHYSREP NO VIABLE SOURCE"),
    "source_unreachable": _meaning(
        "a source did not answer",
        "Couldn't execute '",
        r"Couldn't execute '.*' against (?P<database>[^\s@]+)@(?P<host>[^\s(]+)",
    ),
    "query_failed": _meaning("a query of another database failed", "Couldn't query the database"),
    "out_of_order": _meaning(
        "a record came that does not follow the last one", "ut of order", r"(?i)out[ -]of[ -]order"
    ),
    # --- a source
    "hung_children": _meaning(
        "so many of its children have not reported themselves for a minute",
        "either stuck or unresponsive",
        r"(?P<count>[0-9]+) replicants are either stuck or unresponsive",
    ),
    "cut_while_read": _meaning("the log was cut off while somebody read it", "log truncated while reading tranlog"),
    # --- the end of the log is cut off
    "truncate": _meaning("the log is being cut back to here", "calling truncate with lsn", rf"with lsn {_LSN}"),
    "truncate_place": _meaning("the record behind which it was cut", "trunclsnp is", rf"trunclsnp is {_LSN}"),
    "truncate_starts": _meaning(
        "the cut begins at this node, as MASTER or REPLICANT of its cluster",
        "_replicated_truncate starting",
        rf"starting for {_LSN} as (?P<role>[A-Z]+)",
    ),
    "truncated": _meaning("the cut is done", "_replicated_truncate complete", rf"complete {_LSN}"),
    # --- the registry
    "critical_no_candidates": _meaning(
        "nobody has what this node needs, also without regard to the fanout",
        "critical error: found no candidates",
        rf"{_NOBODY}file (?P<file>[0-9]{{1,10}}) offset (?P<offset>[0-9]{{1,10}})",
    ),
    "second_pass": _meaning(
        "nobody below the fanout could serve it: asked again without that limit",
        "running without fanout",
        r"running without fanout '(?P<source_database>[^']*)' source-hosts '(?P<sources>.*)'",
    ),
    "registered": _meaning(
        "a node asked for a source: how far it is, and which hosts of the source it knows (a list that gets shorter was cut)",
        "physrep_register_replicant: dbname = ",
        _ASKS,
    ),
    "registry_query": _meaning("the query for candidates; its text is left out", "physrep_register_replicant: sql = "),
}
"""Code -> what a line of it says."""
