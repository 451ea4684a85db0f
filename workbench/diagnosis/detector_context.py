"""What a detector may look at: the case, who replicates with whom, what would be sent, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.changes_thrown_away import ThrownAway, thrown_away
from workbench.diagnosis.closed_ways import LinkedPairs
from workbench.diagnosis.unseen_suppliers import unseen_rows
from workbench.diagnosis.verdict_rows import Verdicts
from workbench.engine.parquet_read import stream_part
from workbench.engine.selective_read import highest
from workbench.intake.files import EMPTY
from workbench.intake.inputs import Input
from workbench.intake.links import ASKS, address_in, not_deleted
from workbench.replication.entry.diagnosis.retention_horizon import Floors, floors_of
from workbench.replication.entry.diagnosis.server_files import not_again
from workbench.systems import format_with
from workbench.topology.suffix_evidence import newest_times
from workbench.topology.topology import NOT_COLLECTED, Replica, Row, Topology, not_collected, topology

T = TypeVar("T")

LinkKey = tuple[str, str | None, str]
"""Supplier, suffix and name: one link."""


@dataclass(frozen=True)
class DetectorContext:
    """What a detector may look at.

    case       all that was collected
    topology   the replicas and links of the last snapshot, of which the findings speak
    pairs      the rows of the pair matrix
    verdicts   which changes are missing, stranded, pending, unknown
    """

    case: Case
    topology: Topology
    pairs: Sequence[Row]
    verdicts: Verdicts
    _topologies: dict[str, Topology | None] = field(default_factory=dict, init=False, repr=False)
    _once: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, compute: Callable[[DetectorContext], T]) -> T:
        """What a function gives for this context, computed once: several detectors ask for it."""
        if compute not in self._once:
            self._once[compute] = compute(self)
        found: T = self._once[compute]
        return found

    @cached_property
    def floors(self) -> Floors:
        """What all servers have seen, and what each may forget; empty where servers keep logs."""
        return floors_of(self.case, self.topology, self.verdicts, self.pairs)

    @cached_property
    def linked(self) -> LinkedPairs:
        """The pairs with a link between them."""
        return LinkedPairs(self.pairs)

    def not_collected(self, suffix: str | None) -> list[str]:
        """The servers of a suffix, or their addresses, of which nothing tells what they have seen."""
        return [row["server"] for row in self.all_not_collected if row["suffix"] in (None, suffix)]

    @cached_property
    def all_not_collected(self) -> list[dict[str, Any]]:
        """The rows of `not_collected`, with the suppliers of which nothing but their changes tells, or earlier files alone."""
        rows = [*not_collected(self.topology), *unseen_rows(self)]
        known = {row["server"] for row in rows}
        again = (one for one in not_again(self.case, self.topology) if one[0] not in known)
        return [*rows, *({"server": server, "suffix": suffix, "why": NOT_COLLECTED} for server, suffix in again)]

    @cached_property
    def without_data(self) -> Mapping[tuple[str, str | None], bool]:
        """The servers and suffixes that can fill nobody, and from which nothing comes -> are they just empty?

        Of the others the data are gone, or are being replaced.
        """
        tells = self.topology.system.without_data
        return tells()(self) if tells else {}

    @cached_property
    def unrecorded(self) -> Mapping[tuple[str, str | None], str]:
        """The servers and suffixes that took changes which no log recorded -> what happened, in a clause."""
        tells = self.topology.system.unrecorded
        return tells()(self) if tells else {}

    @cached_property
    def thrown_away(self) -> list[ThrownAway]:
        """Missing changes that no collected server holds, for the data of their maker were replaced."""
        return thrown_away(self)

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        where: pc.Expression | None = None,
        *,
        snapshot: str | None = None,
        server: str | None = None,
        suffix: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table for which `where` holds, of one snapshot, server or suffix or of all, batch by batch.

        A row that names no suffix is of the server's only one; of a server with several it is of none.
        """
        for one in self.case.inputs:
            mine = suffix is None or one.may_tell_of(suffix)
            if mine and snapshot in (None, one.snapshot) and server in (None, one.server):
                fitting = where
                if suffix is not None:
                    of = pc.field("suffix") == suffix
                    of = of if one.suffixes else of | pc.field("suffix").is_null()
                    fitting = of if where is None else where & of
                for part in self.case.parts(table, one):
                    yield from stream_part(part["path"], [*columns], fitting)

    def of_several(self, server: str) -> bool:
        """True if the server holds several suffixes: few lines of its messages name theirs."""
        return len({one.suffix for one in self.topology.replicas if one.server == server}) > 1

    def only_link(self, supplier: str, suffix: str | None, name: str | None) -> bool:
        """True if no link of another suffix leads away from the server under that name: then the name alone tells which it is."""
        return all(one.suffix == suffix for one in self.topology.links if (one.supplier, one.name) == (supplier, name))

    def highest(self, table: str, column: str, one: Input) -> Any:
        """The highest value that one file gave a column, by statistics: no row is read. None: there is none.

        The tool that wrote the file tells it everywhere, or nowhere.
        """
        parts = self.case.parts(table, one)
        return highest(parts, column) if highest(parts[:1], column) is not None else None

    @property
    def inputs(self) -> list[Input]:
        """The files of the last snapshot that hold evidence."""
        return [one for one in self.case.inputs if one.kind and one.snapshot == self.topology.snapshot]

    @property
    def empty_inputs(self) -> list[Input]:
        """Files of the snapshot that should hold a document, and are empty."""
        return [one for one in self.case.inputs if one.why == EMPTY and one.snapshot == self.topology.snapshot]

    @property
    def earlier(self) -> Topology | None:
        """The topology of the snapshot before; None if there is one snapshot only, or that one holds nothing."""
        labels = list(self.case.snapshots)
        at = labels.index(self.topology.snapshot)
        return self.at(labels[at - 1]) if at else None

    def at(self, label: str) -> Topology | None:
        """The topology of a snapshot; None if it holds nothing."""
        if label not in self._topologies:
            known = any(one.kind for one in self.case.inputs if one.snapshot == label)
            self._topologies[label] = topology(self.case, label) if known else None
        return self._topologies[label]

    def replica(self, server: str | None, suffix: str | None) -> Replica | None:
        """One suffix of one server in the last snapshot."""
        return replica_in(self.topology, server, suffix)

    def has_no_entries(self, server: str, suffix: str | None) -> bool:
        """True if the server was asked for its entries, and there are none: it was never filled, or not to the end.

        One that was made anew has the entry of its suffix, and has seen no change.
        """
        if self.without_data.get((server, suffix)):
            return True
        exports = [
            one
            for one in self.inputs
            if one.server == server and one.suffix in (None, suffix) and format_with(one.kind).evidence == "entry_state"
        ]
        if not exports or not all(one.whole for one in exports):
            return False
        if not any(self.case.parts("entry_states", one) for one in exports):
            return True
        replica = self.replica(server, suffix)
        if replica is None or suffix is None or not replica.empty:
            return False
        there, spelled = pc.field("state") == "present", self.topology.system.spelled
        rows = self.rows(
            "entry_states", ["target"], there, server=server, snapshot=self.topology.snapshot, suffix=suffix
        )
        names = (name for batch in rows for name in pc.unique(batch.column("target")).to_pylist())
        return all(spelled(name) == spelled(suffix) for name in names)

    def statuses(self, snapshot: str | None = None) -> dict[LinkKey, dict[str, Any]]:
        """What the files of a snapshot, by default the last, say together of each link: the columns of the table `links`."""
        label = snapshot or self.topology.snapshot
        asked = {(one.consumer, one.name, one.address): one.supplier for one in getattr(self.at(label), "links", ())}
        found: dict[LinkKey, dict[str, Any]] = {}
        for row in not_deleted(self.case.inputs, self.case.arrow("links").to_pylist()):
            if row["snapshot"] == label:
                theirs = (row["server"], row["name"], address_in(row, "supplier"))
                supplier = asked.get(theirs, theirs[2]) if row["role"] == ASKS else row["server"]
                mine = found.setdefault((supplier, row["suffix"], row["name"]), {})
                mine |= {key: value for key, value in row.items() if value is not None}
        return found

    def newest(self, snapshot: str | None = None) -> dict[str, datetime]:
        """Server -> the latest time that its own files of a snapshot, by default the last, tell by its own clock."""
        return newest_times(self.case, snapshot or self.topology.snapshot)


def replica_in(shown: Topology, server: str | None, suffix: str | None) -> Replica | None:
    """One suffix of one server in a topology."""
    return next((one for one in shown.replicas if (one.server, one.suffix) == (server, suffix)), None)
