"""The session that a supplier would hold with a consumer now, change by change, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.case.case import Case
from workbench.diagnosis.snapshot_choice import case_at
from workbench.engine.logs import StoredLog, Stretch
from workbench.engine.positions import place
from workbench.model import Problem
from workbench.replication.changelog.diagnosis.pair_matrix import Pair, pair_row, rule_sets
from workbench.rules.send_session import SEND, Bound, Rules, SendSession
from workbench.topology.topology import Topology, topology


def session_of(
    case: Case,
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
    as_of: str | None = None,
) -> PlannedSession:
    """The session that this supplier would hold with this consumer now, change by change, a page at a time."""
    case = case_at(case, as_of)
    shown = topology(case)
    logs = {one.log.file: case.log(one.log) for one in shown.replicas if one.log and one.server == supplier}
    return session_in(shown, logs, supplier, consumer, suffix, rules)


def session_in(
    shown: Topology,
    logs: Mapping[str, StoredLog],
    supplier: str,
    consumer: str,
    suffix: str | None = None,
    rules: str | None = None,
) -> PlannedSession:
    """The same of a topology that is known, with its logs: they remember what they read."""
    named = suffix and shown.system.spelled(suffix)
    fitting = [
        pair
        for pair in shown.pairs()
        if (pair[0].server, pair[1].server) == (supplier, consumer) and named in (None, pair[0].suffix)
    ]
    if not fitting:
        known = ", ".join(sorted({replica.server for replica in shown.replicas if replica.claims}))
        do = f"servers with a vector: {known}" if known else "no server has a vector: collect the vectors"
        of = f" of {suffix}" if suffix else ""
        raise Problem(f"there is no pair {supplier} -> {consumer}{of}", shown.snapshot, do)
    if len(fitting) > 1:
        suffixes = ", ".join(pair[0].suffix or "one without a name" for pair in fitting)
        raise Problem(
            f"{supplier} -> {consumer} replicate several suffixes", shown.snapshot, f"choose one of {suffixes}"
        )
    (pair,) = fitting
    log = logs[pair[0].log.file] if pair[0].log else StoredLog(shown.system, [], [])
    return PlannedSession(shown, log, rule_sets(shown, rules)[0], pair)


COLUMNS = ["position", "origin", "outcome"]
"""Of a page of changes."""


class PlannedSession:
    """What a session of one pair would do, and what becomes of each change that it reads.

    row    the pair's row of the matrix: decision, anchor, counts, reasons
    pair   the supplier, the consumer, and the link if there is one
    log    the supplier's; empty if none was collected
    rules  the rule set
    Of the changes nothing is held but the page that is asked for.
    """

    def __init__(self, shown: Topology, log: StoredLog, rules: Rules, pair: Pair) -> None:
        supplier = pair[0]
        self._topology, self._system = shown, shown.system
        self.pair, self.log, self.rules = pair, log, rules
        self.row = pair_row(shown, rules, [], pair, {supplier.log.file: log} if supplier.log else {})
        self._talk = self.open()

    def open(self) -> SendSession:
        """The session as it begins, to be played once."""
        supplier, consumer, _ = self.pair
        return self.rules.open(self.log, supplier.vector, consumer.vector, consumer.origin or "")

    def under(self, rules: str) -> PlannedSession:
        """The session of the same pair under another rule set, out of the same log."""
        return PlannedSession(self._topology, self.log, rule_sets(self._topology, rules)[0], self.pair)

    def page(self, after: str | None = None, limit: int = 1000) -> pa.Table:
        """The next changes behind the position `after` (None: from the anchor on): position, origin, outcome."""
        behind = self._system.typed(after) if after is not None else None
        if after is not None and behind is None:
            raise Problem(f"{after} is not a position", "", "give one as the table shows it")
        bound = self._talk.start.bound if self.row["decision"] == SEND else None
        if bound is None or limit < 1:
            return pa.table({name: pa.array([], pa.string()) for name in COLUMNS})
        if behind is not None and behind >= bound.position:
            bound = Bound(behind, False)
        found = self.log.page(bound, limit)
        origins = found.origin.cast(pa.string())
        return pa.table([self._shown(found), origins, self._judged(found)], COLUMNS)

    def outcome_of(self, position: str) -> str | None:
        """What becomes of one change of the log, by its order key; None: the session does not read it."""
        bound = self._talk.start.bound if self.row["decision"] == SEND else None
        if bound is None or position < bound.position or (position == bound.position and not bound.included):
            return None
        if not self.log.holds(position):
            return None
        bands = self._talk.bands(self._system.origin_of(position))
        return next((band.outcome for band in bands if band.upto is None or position <= band.upto), None)

    def _shown(self, found: Stretch) -> pa.Array:
        keys = map(self._system.order_key, found.origin.to_pylist(), found.hi.tolist(), found.lo.tolist())
        return pa.array([self._system.show(key) for key in keys], pa.string())

    def _judged(self, found: Stretch) -> pa.Array:
        """The bands of each origin laid over its positions of the page."""
        outcome = np.full(len(found.hi), "", object)
        for origin in pc.unique(found.origin).to_pylist():
            mine = np.flatnonzero(np.asarray(pc.equal(found.origin, origin)))
            hi, lo, begin = found.hi[mine], found.lo[mine], 0
            for band in self._talk.bands(origin):
                end = len(mine) if band.upto is None else place(hi, lo, self._system.halves(band.upto), "right")
                outcome[mine[begin:end]] = band.outcome
                begin = max(begin, end)
        return pa.array(outcome, pa.string())
