"""Parts of the first line of a diagnosis: which servers and suffixes a clause is about, and what it counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.diagnosis.gone_entries import ENTRY_GONE
from workbench.diagnosis.made_itself import MADE_ITSELF
from workbench.diagnosis.relayed_changes import INITIALISATION_ABORTED, WITHOUT_DATA
from workbench.diagnosis.set_back_evidence import by_earlier_file

Row = Mapping[str, Any]

_COUNTS = re.compile(r"((?:up to |at least )?([\d,]+)) (?=(?:is|are|has|have|waits?) )")


_DOUBTS = frozenset(
    {
        *("QUEUE_GAP", "TXN_CONFLICT", "TXN_ABORTED", "CONTENT_NOT_COMPARED", "MASTER_NOT_MATCHED"),
        "GONE_FROM_LOG",
        "ERRANT_CHANGE",
    }
)
"""Codes of what may be missing, and stands in no count."""


def doubts(finding: Row) -> bool:
    """True if after a finding nobody can say that no change is missing."""
    if finding["code"] in _DOUBTS and finding["severity"] != "info":
        return True
    if finding["code"] == "ROLLED_BACK" and by_earlier_file(finding["evidence"]):
        return True
    return bool(finding.get("root")) and finding["severity"] == "error"


def with_nouns(clauses: Iterable[str]) -> list[str]:
    """The clauses; a bare number is one of changes, and says so where nothing just before it does.

    >>> with_nouns(["4 entries of c differ", "5 are stranded on c", "3 are waiting for a"])
    ['4 entries of c differ', '5 changes are stranded on c', '3 are waiting for a']
    """
    said: list[str] = []
    named = False
    for clause in clauses:
        bare = _COUNTS.match(clause)
        if bare and not named:
            clause = f"{bare[1]} {'change' if bare[2] == '1' else 'changes'} {clause[bare.end() :]}"
        named = bool(bare) or "change is " in clause or "changes are " in clause or "changes have " in clause
        said.append(clause)
    return said


def by_suffix(places: Iterable[tuple[str | None, str]]) -> list[dict[str, Any]]:
    """Suffixes and servers, suffix by suffix."""
    of: dict[str | None, set[str]] = {}
    for suffix, server in places:
        of.setdefault(suffix, set()).add(server)
    return [{"suffix": suffix, "on": sorted(of[suffix])} for suffix in sorted(of, key=lambda suffix: suffix or "")]


def on_which(told: Row) -> str:
    """The servers that a count is about; where a case has several suffixes, with the suffix.

    >>> on_which({"on": ["a", "b"]})
    'a, b'
    >>> on_which({"on": ["a", "b"], "by_suffix": [{"suffix": "o=x", "on": ["a", "b"]}, {"suffix": "o=y", "on": ["a"]}]})
    'a, b in o=x and a in o=y'
    """
    if not told.get("by_suffix"):
        return ", ".join(told["on"])
    parts = (f"{', '.join(one['on'])} in {one['suffix'] or 'a suffix without a name'}" for one in told["by_suffix"])
    return " and ".join(parts)


def most_of(told: Row, cut: bool) -> tuple[int, str, str]:
    """Of several servers each may wait for another number, and for the same changes as another one."""
    return told["count"], on_which(told), "at least " if cut else "" if told["same"] else "up to "


def of_gone_entries(missing: Iterable[Row]) -> int:
    """How many missing changes are of entries that were deleted since, wherever they are missing."""
    of: dict[tuple[str | None, ...], bool] = {}
    for row in missing:
        of[which_change(row)] = of.get(which_change(row), True) and bool(row.get(ENTRY_GONE))
    return sum(of.values())


def gone_say(missing: Row) -> str:
    """What of the missing changes leaves nothing to mend, as the end of a clause.

    >>> gone_say({"count": 2, "gone": 2}), gone_say({"count": 5, "gone": 1}), gone_say({"count": 5})
    (' (their entries were deleted since: there is nothing to mend)', ' (the entry of 1 was deleted since)', '')
    """
    if not (gone := missing.get("gone")):
        return ""
    if gone == missing["count"]:
        return f" ({'its entry was' if gone == 1 else 'their entries were'} deleted since: there is nothing to mend)"
    return (
        f" ({'the entry' if gone == 1 else 'the entries'} of {gone:,} {'was' if gone == 1 else 'were'} deleted since)"
    )


def root_of(finding: Row, several: bool) -> str:
    """What a finding says at the beginning of the first line, with its suffix where there are several; empty: nothing."""
    root, suffix = finding.get("root") or "", finding.get("suffix")
    return f"of {suffix}: {root}" if root and several and suffix and suffix not in root else root


def several_suffixes(servers: Sequence[Row]) -> bool:
    """True if the servers of a diagnosis hold more than one suffix."""
    return len({one["suffix"] for one in servers} - {None}) > 1


def which_change(row: Row) -> tuple[str | None, ...]:
    """What tells one change from another: one position may stand for changes of several entries and attributes."""
    return tuple(row.get(key) for key in ("suffix", "position", "entry", "attribute"))


def but_for_those_filled(found: Row) -> Row:
    """Return the diagnosis without the missing and stranded rows of servers without data: an initialisation decides them.

    Nor with changes that a server made itself, as an origin that it is no more: it waits for them by the vectors alone.
    """
    if any(row.get(MADE_ITSELF) for row in found["pending"]):
        found = {**found, "pending": [row for row in found["pending"] if not row.get(MADE_ITSELF)]}
    filled = {
        (finding["server"], finding["suffix"])
        for finding in found.get("findings", ())
        if finding["code"] in WITHOUT_DATA
        or (finding["code"], finding["severity"]) == (INITIALISATION_ABORTED, "error")
    }
    if not filled or "missing" in found["run"].get("truncated", {}):
        return found
    lacking: dict[Any, set[bool]] = {}
    for row in found["missing"]:
        lacking.setdefault(which_change(row), set()).add((row["server"], row["suffix"]) in filled)
    missing = [row for row in found["missing"] if (row["server"], row["suffix"]) not in filled]
    stranded = [row for row in found["stranded"] if lacking.get(which_change(row)) != {True}]
    return {**found, "missing": missing, "stranded": stranded}
