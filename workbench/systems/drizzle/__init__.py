"""Drizzle: a stream of transactions in protobuf messages, and how its positions read as order keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.model import Detectors, Naming, System
from workbench.systems.drizzle.codes import CODES
from workbench.systems.drizzle.formats import FORMATS
from workbench.systems.drizzle.ids import halves, order_key, origin_of, query_at_source, shown, typed

if TYPE_CHECKING:
    from workbench.contracts.replication import Replication


def _naming() -> Naming:
    from workbench.systems.drizzle.naming import NAMING  # readers of files need no names

    return NAMING


def _detectors() -> Detectors:
    from workbench.systems.drizzle.detectors import DETECTORS

    return DETECTORS


def _repairs() -> Any:
    from workbench.systems.drizzle.repairs import REPAIRS  # readers of files need no repairs

    return REPAIRS


def _site() -> Callable[..., Any]:
    from workbench.systems.drizzle.live.site import StreamSite  # readers of files need no servers

    return StreamSite


def _replication() -> Replication:
    from workbench.replication.stream.style import StreamReplication

    return StreamReplication()


SYSTEM = System(
    name="drizzle",
    title="Drizzle",
    formats=FORMATS,
    order_key=lambda origin, hi, lo: order_key(origin, hi << 32 | lo),
    halves=halves,
    origin_of=origin_of,
    typed=typed,
    show=shown,
    moment=lambda key: None,  # the number of a transaction tells no time
    instant=lambda at: 0,
    replication=_replication,
    bucket_shift=0,
    log_words=frozenset({"transaction"}),
    sides={"sys_replication_log*": "master", "slave_queue*": "slave", "slave_state*": "slave"},
    streaming=True,
    settling=query_at_source,
    detectors=_detectors,
    codes=CODES,
    repairs=_repairs,
    site=_site,
    notebook="32_transactions",
    words={
        "origin": "server id; 1 on every server that was not told otherwise",
        "position": "transaction id: unique on one server, until its data directory is made anew",
        "vector": "what a replica has applied of each master",
        "change": "a transaction, all its messages together",
        "link": "master of a slave",
        "log": "transaction.log, or the table SYS_REPLICATION_LOG",
        "session": "one look of a slave into its master's log",
        "anchor": "the last commit that a slave has seen",
        "initialisation": "a copy of the data",
    },
    naming=_naming,
    refill="provision",
)
