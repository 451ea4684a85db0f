"""What the evidence of 389 Directory Server means for the question whether a server has a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.model import REMOVED
from workbench.rules.verdicts import LOG_REPLACED, REPLACED, TOTAL, Proving, Reset
from workbench.systems.ds389.rules.applying import skipped_for_good
from workbench.systems.ds389.rules.causes import causes


def resets(messages: Iterable[Mapping[str, Any]]) -> list[Reset]:
    """The total initialisations, imports, restores and changelog imports that the errors log of one server tells of.

    A total initialisation ends with `Import complete` as an import does, but only an import says that it begins. At the
    default level of the log nothing else tells of a total initialisation than that the replica goes offline for it.
    """
    found: list[Reset] = []
    receiving = importing = logging = None
    for row in messages:
        at, code, step = row["at"], row["code"], dict(row["numbers"] or ()).get("step", "")
        if code == "total_receive":
            receiving, importing = at, None
        elif code == "replica_offline":
            receiving = receiving or at
        elif code == "import_begin":
            importing = at
        elif code in ("import_end", "import_failed"):
            if importing is not None or code == "import_failed":
                found.append(Reset(REPLACED, importing or receiving or at, at))
            elif receiving is not None:
                found.append(Reset(TOTAL, receiving, at))
            else:
                found.append(Reset(REPLACED, at, at))  # of an unknown kind: the log begins in the middle of it
            receiving = importing = None
        elif code == "restore":
            receiving = None
            if found and found[-1].kind == REPLACED and (at - found[-1].ended).total_seconds() < 60:
                found[-1] = found[-1]._replace(ended=at)
            else:
                found.append(Reset(REPLACED, at, at))
        elif code == "changelog_task" and dict(row["numbers"] or ()).get("task") == "import":
            if step == "Beginning":
                logging = at
            else:
                found.append(Reset(LOG_REPLACED, logging or at, at))
                logging = None
    return found


_OF_THE_WRITER = frozenset(
    {"modifiersname", "modifytimestamp", "internalmodifiersname", "internalcreatorsname", "entryusn"}
)


def modification(operation: str, body: str, rename: str) -> str | None:
    """What two servers write alike when each makes the same change under a CSN of its own: all but who did it, and when."""
    if operation == "add" or REMOVED in body:
        return None  # a name that is added twice is a conflict, and two new passwords look the same
    kept: list[str] = []
    group: list[str] = []
    for line in [*body.split("\n"), "-"]:
        if line == "-":
            attribute = group[0].partition(":")[2].strip().lower() if group else ""
            if attribute not in _OF_THE_WRITER:
                kept.append("\n".join(group))
            group = []
        elif line:
            name, colon, value = line.partition(":")
            group.append(f"{name.lower()}{colon}{value if group else value.lower()}")
    return "\n-\n".join([operation, rename, *filter(None, kept)])


PROVING = Proving(
    goes_on=skipped_for_good,
    reset_codes=frozenset(
        {"total_receive", "replica_offline", "import_begin", "import_end", "import_failed", "restore", "changelog_task"}
    ),
    resets=resets,
    modification=modification,
    causes=causes,
    passed_over="alternative_start",
    cleaned="clean_done",
    log_written="changelog_task",
    of_the_writer=frozenset(f"{how}: {name}" for how in ("add", "delete", "replace") for name in _OF_THE_WRITER),
)
