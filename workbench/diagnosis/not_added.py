"""Additions that a server's entries do not carry, although its vector claims them: content is the last word.

An added entry carries its change for good, also as a tombstone, until that is cleared away:

    log of operations of c    ADD uid=ann, err=0, 7      its files were put back since: no entry of c carries 7
    entries of c              claim 9, none carries 7    c lacks 7, whatever its log says
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.contents import Contents
from workbench.diagnosis.evidence_grounds import Proofs
from workbench.diagnosis.older_state_put_back import last_removed
from workbench.engine.positions import Positions
from workbench.engine.selective_read import changes_of
from workbench.tables import Numbers

_FEW = 10_000
"""So many changes are looked up one by one."""

Described = Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]]
"""Changes -> what logs say of them, `operation` among it."""


def not_added(contents: Contents, proofs: Proofs, some: Positions, described: Described) -> Numbers:
    """For each change: did it add an entry, and does no entry of the server carry it, although all that it had would?"""
    server, keys = proofs.replica.server, some.keys(proofs.system, proofs.names)
    about = described(keys)
    added = [about.get(key, {}).get("operation") == "add" and contents.keeps(server, key) for key in keys]
    return np.array(added, bool) & ~proofs.in_entries(some)


def logged_and_nowhere(
    contents: Contents, proofs: Proofs, some: Positions, logged: Numbers, described: Described
) -> Numbers:
    """For each change: is it an addition of these (`logged`: of which its log of operations tells) that entries nowhere carry?

    Where another server has the entry, or a tombstone of it, that is compared with what this one has. Where the log of changes
    was removed since, a client may have deleted the entry while nothing was recorded there.
    """
    removed = proofs.evidence.once(proofs.replica.server, last_removed)
    since = some.hi > proofs.system.instant(removed) if removed else np.ones(len(some), bool)
    found, which = np.zeros(len(some), bool), np.flatnonzero(logged & since)
    if proofs.replica.server not in contents.exports or not 0 < len(which) <= _FEW:
        return found
    asked = some[which]
    which = which[not_added(contents, proofs, asked, described)]
    if not len(which):
        return found
    asked, evidence = some[which], proofs.evidence
    rows = evidence.told("entry_states", ["position"], evidence.between(asked))
    carried = pa.array(sorted({*changes_of(evidence.system, rows["position"]).to_pylist()}), pa.string())
    keys = pa.array(asked.keys(proofs.system, proofs.names), pa.string())
    found[which] = ~np.asarray(pc.is_in(keys, value_set=carried))
    return found
