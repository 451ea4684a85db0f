"""What looks as if it were missing on a server that lacks nothing without it: each reason is a module of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.diagnosis.deleted_since import note_deleted_since
from workbench.diagnosis.never_added import note_never_added, with_never_added
from workbench.diagnosis.removed_nothing import note_removed_nothing, with_removed_nothing
from workbench.diagnosis.repeated_deletions import note_repeats
from workbench.intake.inputs import Input
from workbench.rules.verdicts import Verdict

if TYPE_CHECKING:
    from workbench.diagnosis.data_sources import JudgedServer
    from workbench.diagnosis.verdict_rows import Verdicts
    from workbench.topology.suffix_evidence import Evidence


def note_lacking_nothing(
    found: Verdicts, evidence: Evidence, servers: Sequence[JudgedServer], logs: Sequence[Input]
) -> None:
    """Take such changes out of what is missing."""
    for note in (note_removed_nothing, note_never_added, note_deleted_since, note_repeats):
        note(found, evidence, servers, logs)


def with_lacking_nothing(
    evidence: Evidence,
    position: str,
    told: Mapping[str, Verdict],
    servers: Sequence[JudgedServer],
    logs: Sequence[Input],
) -> dict[str, Verdict]:
    """The verdicts on one change, by server, with those that such a change is missing on as present in effect."""
    return with_never_added(evidence, position, with_removed_nothing(evidence, position, told, logs), servers, logs)
