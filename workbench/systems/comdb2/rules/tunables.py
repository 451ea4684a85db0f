"""Every setting of physical replication, what it is by version if nobody sets it, and what it does; and who waits for whom.

The document and the program of the same time do not agree everywhere: `seed` is what the one says, `then` what the other does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from workbench.replication.tier.rules.tiers import Pull


@dataclass(frozen=True)
class Tunable:
    """A setting; a default is None where that version has no such setting, and empty where it has none by itself.

    seed    by the document
    then    of the program of 2023
    now     of that of 2026
    effect  what it does
    line    it is a line of the configuration file, and no tunable: no table shows it
    """

    seed: str | None
    then: str | None
    now: str | None
    effect: str
    line: bool = False


TUNABLES: Mapping[str, Tunable] = {
    "blocking_physrep": Tunable("off", "on", "on", "a replicant's query waits on its source for the next record"),
    "physrep_check_minlog_freq_sec": Tunable(
        "10", "10", None, "how often a source asks which log file is still needed; gone with the hold itself"
    ),
    "physrep_debug": Tunable("off", "off", "off", "more lines in the program's log"),
    "physrep_exit_on_invalid_logstream": Tunable(
        "off", "off", "off", "the process exits, but only where the record that matches has no generation"
    ),
    "physrep_fanout": Tunable(
        "8", "8", "8", "how many may pull from a node; 1 is never met, and from 2026 on a second look ignores it"
    ),
    "physrep_filter_by_class": Tunable(
        None, None, "on", "a replicant pulls from machines of its own or a higher class"
    ),
    "physrep_find_new_repl_db_timeout": Tunable(
        None, None, "60", "seconds after which a search for a source is given up"
    ),
    "physrep_hung_replicant_check_freq_sec": Tunable("10", "10", "60", "how often a source looks for late replicants"),
    "physrep_hung_replicant_threshold": Tunable("60", "60", "60", "seconds without a keepalive that make one late"),
    "physrep_i_am_metadb": Tunable("off", "off", "off", "this database holds the registry"),
    "physrep_ignore_queues": Tunable(None, None, "on", "queues are not replicated"),
    "physrep_keepalive_freq_sec": Tunable("10", "10", "60", "how often a node reports its position"),
    "physrep_keepalive_v2": Tunable(
        None, None, "off", "it reports its first file too: the table needs the column firstfile before"
    ),
    "physrep_max_candidates": Tunable("6", "6", "6", "rows of an answer of the registry"),
    "physrep_max_pending_replicants": Tunable(
        "10", "10", None, "where more wait for a source the registry answers nobody, and does not record who asks"
    ),
    "physrep_max_rollback": Tunable(
        None, None, "0", "log files that a replicant may give up to match its source; 0: any"
    ),
    "physrep_metadb_host": Tunable("", "", "", "hosts of the database that holds the registry"),
    "physrep_metadb_name": Tunable("", "", "", "the database that holds the registry; then no version holds back logs"),
    "physrep_no_source_alarm_threshold": Tunable(
        None, None, "10", "rounds without a source that serves until the alarm; nothing offered at all is no such round"
    ),
    "physrep_pollms": Tunable(None, None, "50", "milliseconds between two looks of a replicant"),
    "physrep_reconnect_interval": Tunable(None, None, "3600", "seconds after which a replicant registers anew"),
    "physrep_reconnect_penalty": Tunable("5", "0", "0", "seconds before the same node is tried again"),
    "physrep_register_interval": Tunable("3600", "600", None, "the former name of physrep_reconnect_interval"),
    "physrep_repl_host": Tunable(None, None, "", "the host that this node pulls from now"),
    "physrep_repl_name": Tunable(None, None, "", "the database that this node pulls from now"),
    "physrep_revconn_check_interval": Tunable(None, None, "60", "how often a replicant looks whether it has to wait"),
    "physrep_shuffle_host_list": Tunable("off", "off", "off", "a replicant tries what it is offered in random order"),
    "physrep_slow_replicant_check_freq_sec": Tunable(None, None, "60", "how often a source looks for slow replicants"),
    "physrep_source_dbname": Tunable("", "", "", "the source database, from replicate_from"),
    "physrep_source_host": Tunable(
        "", "", "", "its hosts; from 2026 on only the first one is left after the first registration"
    ),
    "physrep_source_dbnum": Tunable(None, None, "0", "the number of the source database"),
    "physrep_update_registry_interval": Tunable(None, None, "60", "how often a connected node confirms its row"),
    "physrep_verify_source_range": Tunable(
        None, None, "on", "a replicant asks a candidate for its range before it connects"
    ),
    "revsql_allow_command_execution": Tunable(
        "off", "off", "off", "commands come over a reverse connection; for tests"
    ),
    "revsql_cdb2_debug": Tunable("off", "off", "off", "more lines about reverse connections"),
    "revsql_connect_freq_sec": Tunable("5", "5", "5", "how often a source tries to connect to those that wait"),
    "revsql_debug": Tunable("off", "off", "off", "more lines about reverse connections"),
    "revsql_force_rte": Tunable(None, None, "on", "reverse connections go by the routing of the port multiplexer"),
    "revsql_host_refresh_freq_sec": Tunable("5", "5", "60", "how often a source reads who waits"),
    "tranlog_default_timeout": Tunable(
        None, None, "30", "seconds after which a query of the log ends, without saying so"
    ),
    "tranlog_incoherent_timeout": Tunable(
        None, None, "10", "seconds for which a node that is not coherent serves its log"
    ),
    "tranlog_maxpoll": Tunable(None, None, "60", "seconds for which a query waits for the next record"),
    "elect_highest_committed_gen": Tunable(
        "", "", "", "must be set: the newest commit decides who becomes master", True
    ),
    "nonames": Tunable("", "", "", "must be set: names of files are the same on all nodes", True),
    "physrep_fanout_override": Tunable(None, None, "", "another fanout for one source database, in the registry", True),
    "physrep_ignore": Tunable("", "", "", "tables whose records a replicant does not apply", True),
    "physrep_metadb": Tunable("", "", "", "the database that holds the registry, in place of the source", True),
    "replicate_from": Tunable("", "", "", "the source database, and its hosts, tier or cluster", True),
    "replicate_wait": Tunable(
        "", "", "", "seconds that a replicant waits before it applies; all below it inherit them", True
    ),
}
"""Name -> the setting."""


def default(name: str, version: str) -> str | None:
    """What a setting is by itself in a version (`seed`, `2023`, `2026`); None: that version has none of this name.

    >>> default("physrep_register_interval", "seed"), default("physrep_register_interval", "2023")
    ('3600', '600')
    """
    one = TUNABLES[name]
    return {"seed": one.seed, "2023": one.then, "2026": one.now}[version]


def applies(table: str, ignored: Collection[str]) -> bool:
    """Whether a replicant applies records of a table, by its lines physrep_ignore; names are compared as they are spelled.

    The records are in its log all the same: only what they would change is left as it is.
    """
    return table not in ignored


def applied_at(made_at: float, waits: Iterable[float]) -> float:
    """When a transaction that was committed then is applied at a node, at the earliest: each replicate_wait on the way counts.

    Each waits for the age of the commit, not from its arrival on: the longest wait decides, they do not add up.
    """
    return made_at + max(waits, default=0)


@dataclass(frozen=True)
class Machine:
    """A node as the rows for reverse connections may name it: by its host, its tier, or its cluster."""

    database: str
    host: str
    tier: str = ""
    cluster: str = ""

    def is_called(self, name: str, by_group: bool) -> bool:
        """Whether that name means it; older versions know hosts alone."""
        return name == self.host or (by_group and name in {self.tier, self.cluster} - {""})


def awaits(awaited: Iterable[Pull], node: Machine, version: str = "2026") -> tuple[Pull, ...]:
    """The rows of comdb2_physrep_sources for which a node waits until a source connects to it; none: it connects itself."""
    by_group = version == "2026"
    return tuple(row for row in awaited if row.database == node.database and node.is_called(row.host, by_group))


def dials(awaited: Iterable[Pull], source: Machine, version: str = "2026") -> tuple[Pull, ...]:
    """The rows for which a source connects to others. The row of the connection afterwards does not show who made it."""
    by_group = version == "2026"
    return tuple(
        row for row in awaited if row.source_database == source.database and source.is_called(row.source_host, by_group)
    )
