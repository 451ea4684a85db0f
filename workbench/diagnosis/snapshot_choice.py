"""Which snapshot of a case is asked: the last one, or an earlier one by its label or by a time."""

from __future__ import annotations

from workbench.case.case import Case
from workbench.model import Problem
from workbench.topology.history import moment_of
from workbench.topology.timeline import Timeline


def case_at(case: Case, as_of: str | None) -> Case:
    """The case up to the snapshot of that label, else up to the last one of which all evidence is as old as that time."""
    if as_of is None:
        return case
    if as_of in case.snapshots:
        return case.until(as_of)
    when, line = moment_of(as_of), Timeline(case)
    fitting = None
    for label in case.snapshots:
        times = [line.about(label, given.server) for given in case.inputs if given.snapshot == label and given.kind]
        known = [at for at in times if at is not None]
        if known and max(known) <= when:
            fitting = label
    if fitting is None:
        labels = ", ".join(case.snapshots)
        raise Problem(f"no snapshot is as old as {as_of}", case.name, f"give a later time, or one of: {labels}")
    return case.until(fitting)
