"""When each server of a collected folder was read, and what its vectors had moved to by the end (`collected` in its case.yaml).

Servers are read one after the other while they go on working. What one of them claims later than its files show is no loss,
and a change that was made while servers were being read cannot be expected in files that were read before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from workbench.intake.inputs import Collected
from workbench.safety import strict_yaml

NO_ANSWER = "no answer within the time-out"
"""What `collect` writes down of a question that a server did not answer in time."""


NO_SUFFIX = "it shows no replicated suffix"
"""What `collect` writes down of a server that answers, and on which nothing is replicated, or may be seen to be."""


@dataclass(frozen=True)
class Reading:
    """How one server was read.

    began, ended  by the clock of the machine that collected
    files         name of each file -> when reading it began, where that was written down
    moved         suffix -> origin -> the position that the vector claimed at the end of the whole collection, where that was no
                  longer what it had claimed before the server was read
    failed        what could not be read, each with the reason
    down          why nothing was read of it; empty: it answered
    """

    server: str
    began: datetime
    ended: datetime
    files: Mapping[str, datetime] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    down: str = ""

    @property
    def unanswered(self) -> tuple[str, ...]:
        """What was written down of questions that the server did not answer in time."""
        return tuple(text for text in (self.down, *self.failed) if NO_ANSWER in text)


Stored = dict[str, Any]
"""A reading as the manifest of a case keeps it, and as `workbench collect` writes it."""


def readings_in(collected: Collected) -> list[Stored]:
    """What the folder's case.yaml says of the collection, as it stands there; empty if a person put the files together."""
    about = collected.folder / "case.yaml"
    if not about.is_file():
        return []
    content = strict_yaml(about.read_text(encoding="utf-8", errors="replace"), str(about))
    listed = content.get("collected") if isinstance(content, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def readings_of(stored: Iterable[Stored]) -> Iterator[Reading]:
    """The readings that tell when they were made; others say nothing that can be used."""
    for one in stored:
        began, ended = _time(one.get("from")), _time(one.get("until"))
        if isinstance(one.get("server"), str) and began and ended:
            read, moved = one.get("read_at"), one.get("moved_to")
            files = {str(file): _time(at) for file, at in read.items()} if isinstance(read, dict) else {}
            yield Reading(
                one["server"],
                began,
                ended,
                {file: at for file, at in files.items() if at},
                {
                    str(suffix): {str(origin): str(position) for origin, position in vector.items()}
                    for suffix, vector in (moved.items() if isinstance(moved, dict) else ())
                    if isinstance(vector, dict)
                },
                tuple(map(str, failed)) if isinstance(failed := one.get("failed"), list) else (),
                down if isinstance(down := one.get("down"), str) else "",
            )


def _time(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
