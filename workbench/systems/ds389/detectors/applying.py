"""What becomes of changes at the consumer: one on which it fails again and again, and entries that carry marks of conflict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import EVIDENCE_SHOWN, ITEMS_SHOWN, Finding, counted, first_few, step
from workbench.rules.vectors import covers
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.detectors.database import wrote_after
from workbench.systems.ds389.detectors.schema import Unknown, unknown_to
from workbench.systems.ds389.detectors.shown import Row, only_suffix
from workbench.systems.ds389.rules.applying import loops_from, skipped_for_good
from workbench.systems.ds389.rules.ldap_results import REFUSES_ALL, in_words
from workbench.systems.ds389.rules.link_reasons import SCHEMA_REFUSED
from workbench.systems.ds389.session_log.change_fixes import make_room, take_the_change, take_the_schema, writable_again
from workbench.systems.ds389.session_log.lines import WITH_TEXT, last_start, line_shown, session_logs
from workbench.systems.ds389.session_log.refusals import (
    LOGIN_NOTES,
    NOT_SAID,
    NOTES_REFUSED,
    READ_ONLY,
    no_room,
    reason_for_53,
    result_in,
    said_at,
    taken_since,
    too_large,
)

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link, Replica

_COUNTED = 10_000
"""Changes that are counted at once; of more, those seen once are forgotten, for what loops comes again."""

Key = tuple[str, str | None, str]
"""Consumer, suffix and position."""


class _Attempts:
    """How often each change failed, with which result, and where the first failures stand. `where`: the log that tells it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.counts: Counter[Key] = Counter()
        self.rows: dict[Key, list[dict[str, Any]]] = {}
        self.results: dict[Key, int] = {}
        """The result of the last failure, where the log names it; below 0 only if each time the connection ended without one."""
        self.firsts: dict[Key, datetime] = {}
        self.lasts: dict[Key, datetime] = {}

    def loops_from(self, key: Key) -> int:
        """From how many attempts on a change counts as one on which the server fails again and again."""
        return loops_from(self.results.get(key, 0))

    def add(self, key: Key, row: dict[str, Any], result: int | None = None, at: datetime | None = None) -> None:
        self.counts[key] += 1
        if at is not None:
            self.firsts.setdefault(key, at)
            self.lasts[key] = at
        if result is not None and (result > 0 or key not in self.results):
            self.results[key] = result
        kept = self.rows.setdefault(key, [])
        if len(kept) < EVIDENCE_SHOWN:
            kept.append(row)
        if len(self.counts) > _COUNTED:
            self.counts = Counter({one: number for one, number in self.counts.items() if number > 1})
            self.rows = {one: self.rows[one] for one in self.counts}


def apply_retry_loop(context: DetectorContext) -> Iterator[Finding]:
    """Changes that a consumer failed on again and again, with a result that is tried again, and does not have yet.

    What its vector covers it got over in the end. Of the two sides' logs and the access log the one with most attempts
    counts: they tell of the same ones.
    """
    sources = (_told_by_suppliers(context), _told_by_consumers(context), _refused(context))
    looping: dict[Key, _Attempts] = {}
    for attempts in sources:
        for key, count in attempts.counts.items():
            if count >= attempts.loops_from(key) and (key not in looping or count > looping[key].counts[key]):
                looping[key] = attempts
    looping |= _refused_elsewhere(sources, looping)
    taken = _taken(context, sources, looping)
    looping = {key: attempts for key, attempts in looping.items() if key not in taken}
    alike: dict[tuple[str, str | None, int | None], list[Key]] = {}
    for key in sorted(looping, key=str):
        results = [one.results[key] for one in (looping[key], *sources) if key in one.results]
        result = next((result for result in results if result > 0), next(iter(results), None))
        alike.setdefault((key[0], key[1], result), []).append(key)
    for (server, suffix, result), keys in alike.items():
        why = NOT_SAID
        if result == REFUSES_ALL:
            why, keys = _unwilling(context, sources, keys)
            if why == LOGIN_NOTES:
                continue
        most = max(keys, key=lambda key: looping[key].counts[key])
        told, origins = looping[most], sorted({origin_of(csn) for _, _, csn in keys})
        answered = result is None or result > 0
        answer = "" if result is None else f" with {in_words(result)}" if answered else f" ({in_words(result)})"
        what, more = _what_it_does(context, keys[0])
        changes = f"the change {keys[0][2]}" if len(keys) == 1 else f"{len(keys):,} changes, the first {keys[0][2]},"
        changes += f"{',' * (len(keys) == 1)} {what}," if what else ""
        it = "it" if len(keys) == 1 else "them"
        own = [one.lasts[key] for one in sources[1:] for key in keys if key in one.lasts]
        said = said_at(context.case, server, own) if why == NOT_SAID else ()
        first = min((one.firsts[key] for one in sources for key in keys if key in one.firsts), default=None)
        full = no_room(said) if answered else too_large(context.case, server, first)
        again = last_start(session_logs(context.case), server)
        tried = max((one.lasts[key] for one in sources for key in keys if key in one.lasts), default=None)
        began_anew = bool(again and tried and again > tried)
        # Where it refuses all, one change that it took since shows that it does not any more.
        refuses_all = result == REFUSES_ALL and not context.of_several(server)
        over = began_anew or bool(refuses_all and tried and wrote_after(context, server, tried))
        schema = any(
            link.failure and link.failure.short == SCHEMA_REFUSED for link in _links_to(context, server, suffix)
        )
        ends = (
            take_the_schema(server)
            if schema and not answered
            else writable_again(server, suffix or "SUFFIX")
            if why == READ_ONLY
            else make_room(server, full)
            if full
            else take_the_change(server, suffix or "SUFFIX", result if answered else None)
        )
        if over:
            refuses = f"{server} refused" if answered else f"sessions with {server} broke off at"
            since = (
                f"it started again at {again:%Y-%m-%d %H:%M:%S} UTC" if began_anew else "it took other changes since"
            )
            then = f"{since}, and no log shows an attempt {'since' if began_anew else 'after that'}"
            then += f"; {full.replace(' is ', ' was ')} before" if full else ""
            ends = step(
                f"collect again in some minutes; if it goes on, {ends['repair']}",
                "the supplier tries again by itself, at the latest every five minutes",
                ends["caution"],
            )
        else:
            refuses = f"{server} refuses" if answered else f"sessions with {server} break off at"
            then = f"nothing behind arrives on that link{f'; {full}' if full else ''}"
            then += f"; {server} refuses the schema that comes first in each session" if schema and not answered else ""
        lacks = f"does not have {it}" if answered else f"{server} does not have {it}"
        yield Finding(
            "APPLY_RETRY_LOOP",
            "warning" if over else "error",
            f"{refuses} {changes}{answer}, {counted(told.counts[most], 'time')} so far by {told.where}, and {lacks}: {then}"
            f"{more}",
            server=server,
            origin=origins[0] if len(origins) == 1 else None,
            suffix=suffix,
            items=tuple(csn for _, _, csn in keys)[:ITEMS_SHOWN],
            evidence=first_few(told.rows[most], told.counts[most]),
            quotes=said,
            fix=(ends,),
        )


def _refused_elsewhere(sources: Sequence[_Attempts], looping: Mapping[Key, _Attempts]) -> dict[Key, _Attempts]:
    """The changes that another server fails on again and again, and that a server answered with the same error, even once."""
    again = {(key[1], key[2], one.results[key]) for key, one in looping.items() if one.results.get(key, 0) > 0}
    return {
        key: one
        for one in sources
        for key, result in one.results.items()
        if key not in looping and key in one.counts and (key[1], key[2], result) in again
    }


def _what_it_does(context: DetectorContext, key: Key) -> tuple[str, str]:
    """The operation of a refused change, and another renaming of its entry that the server has; empty: no log tells.

    bern renamed ou=sub, alba renamed it a moment later and knew nothing of that: bern refuses the renaming of alba
    """
    server, suffix, position = key
    of = {"snapshot": context.topology.snapshot, "suffix": suffix}
    columns = ["position", "operation", "target", "entry"]
    logged = (pc.field("kind") == "change") & (pc.field("position") == position)
    row = next((one for batch in context.rows("changes", columns, logged, **of) for one in batch.to_pylist()), None)
    if row is None or not row["operation"] or not row["target"]:
        return "", ""
    what = f"a {_OPERATIONS.get(row['operation'], row['operation'])} of {row['target']}"
    if row["operation"] != "modrdn" or not row["entry"]:
        return what, ""
    renamed = (pc.field("operation") == "modrdn") & (pc.field("entry") == row["entry"])
    others = context.rows(
        "changes", ["position", "target"], renamed & (pc.field("position") != position), server=server, **of
    )
    last = max(((one["position"], one["target"]) for batch in others for one in batch.to_pylist()), default=None)
    return what, f"; {server} has another renaming of that entry, {last[0]}, of {last[1]}" if last else ""


_OPERATIONS = {"add": "creation", "modify": "modification", "delete": "deletion", "modrdn": "renaming"}


def _taken(context: DetectorContext, sources: Iterable[_Attempts], keys: Iterable[Key]) -> set[Key]:
    """Of refused changes, those that the server answered with success after the last refusal, as its access log shows."""
    last: dict[str, dict[str, datetime]] = {}
    for key in keys:
        if moments := [one.lasts[key] for one in sources if key in one.lasts]:
            last.setdefault(key[0], {})[key[2]] = max(moments)
    taken = {name: taken_since(context.case, context.topology.snapshot, name, some) for name, some in last.items()}
    return {key for key in keys if key[2] in taken.get(key[0], ())}


def _unwilling(context: DetectorContext, sources: Iterable[_Attempts], keys: Sequence[Key]) -> tuple[str, list[Key]]:
    """Why a server refuses changes with 53, and those of its changes that are refused again and again and are no login notes."""
    server, suffix, _ = keys[0]
    refused = {
        key[2] for one in sources for key, code in one.results.items() if code == REFUSES_ALL and key[:2] == keys[0][:2]
    }
    since = min((one.firsts[key] for one in sources for key in keys if key in one.firsts), default=None)
    replica = context.replica(server, suffix)
    why, others = reason_for_53(context.case, context.topology, replica, refused, since)
    left = [key for key in keys if key[2] in others]
    return (why, left) if left else (LOGIN_NOTES, [])


def login_notes_refused(context: DetectorContext) -> Iterator[Finding]:
    """Servers that refuse what others note of failed logins: as they are set by default, and no fault."""
    for log in session_logs(context.case):
        rows: list[dict[str, Any]] = []
        count = 0
        for row, place in log.lines((NOTES_REFUSED,), WITH_TEXT):
            count += 1
            if len(rows) < EVIDENCE_SHOWN:
                rows.append(line_shown(row, place))
        if count:
            yield Finding(
                "LOGIN_NOTES_REFUSED",
                "info",
                f"{log.server} refuses changes of its suppliers that only note failed logins (passwordRetryCount, "
                "retryCountResetTime, accountUnlockTime), for passwordIsGlobalPolicy is off there (its errors log says so). This "
                "is the default: each server counts failed logins for itself, and nothing that a client wrote is refused for it",
                server=log.server,
                suffix=only_suffix(context, log.server),
                evidence=first_few(rows, count),
                fix=(
                    step(
                        "leave it; or, if all servers are to count failed logins together, on each of them, `dsconf INSTANCE "
                        "config replace passwordIsGlobalPolicy=on`",
                        "a session in which such a change is refused ends there and begins again seconds later, so other changes "
                        "may arrive later",
                    ),
                ),
            )


def _lacking(context: DetectorContext, server: str | None, suffix: str | None, csn: str | None) -> bool:
    """True if the server's vector was collected and does not cover the change, and somebody might still send it."""
    one = context.replica(server, suffix)
    if not (csn and one and one.claims) or covers(one.vector, origin_of(csn), csn):
        return False
    sent = _sent_to(context, one)
    return sent is None or origin_of(csn) in sent


def _links_to(context: DetectorContext, server: str, suffix: str | None) -> list[Link]:
    return [link for link in context.topology.links if (link.consumer, link.suffix) == (server, suffix)]


def _sent_to(context: DetectorContext, one: Replica) -> set[str] | None:
    """The replica IDs that the suppliers of a server know: changes of one that was cleaned come no more. None: not known."""
    feeding = {link.supplier for link in _links_to(context, one.server, one.suffix)}
    others = [x for x in context.topology.replicas if x.suffix == one.suffix and x.server in feeding and x.claims]
    return {origin for x in others for origin in x.vector} if others and len(others) == len(feeding) else None


def _of_these_data(context: DetectorContext, server: str, suffix: str | None, at: datetime | None) -> bool:
    """False for what a log tells of the time before the server's data was replaced."""
    resets = context.verdicts.resets.get((server, suffix), [])
    ended = max((reset.ended for reset in resets), default=None)
    return not (at and ended and at < ended)


def _told_by_suppliers(context: DetectorContext) -> _Attempts:
    links: dict[tuple[str, str], list[Any]] = {}
    for link in context.topology.links:
        links.setdefault((link.supplier, link.name), []).append(link)
    attempts = _Attempts("the errors logs of its suppliers")
    for log in session_logs(context.case):
        for row, place in log.lines(("retry_later",), WITH_TEXT):
            mine = links.get((log.server, row["link"] or ""), [])
            if len(mine) == 1 and _lacking(context, mine[0].consumer, mine[0].suffix, row["position"]):
                key = (mine[0].consumer, mine[0].suffix, row["position"])
                if _of_these_data(context, key[0], key[1], place.at):
                    attempts.add(key, line_shown(row, place), result_in(row), place.at)
    return attempts


def _told_by_consumers(context: DetectorContext) -> _Attempts:
    attempts = _Attempts("its errors log")
    for log in session_logs(context.case):
        suffix = only_suffix(context, log.server)
        for row, place in log.lines(("apply_failed",), WITH_TEXT):
            lacking = _lacking(context, log.server, suffix, row["position"])
            if lacking and _of_these_data(context, log.server, suffix, place.at):
                attempts.add((log.server, suffix, row["position"]), line_shown(row, place), result_in(row), place.at)
    return attempts


def _refused(context: DetectorContext) -> _Attempts:
    """Results in the access logs of the last snapshot that name a change and are neither success nor skipped for good."""
    attempts = _Attempts("its access log")
    columns = ["file", "offset", "at", "position", "code", "connection", "target"]
    for one in context.topology.replicas:
        if not one.claims:
            continue
        where = (pc.field("outcome") == "refused") & _above(one)
        if (sent := _sent_to(context, one)) is not None:
            where &= pc.field("origin").isin(pa.array(sorted(sent), pa.string()))
        of = {"snapshot": context.topology.snapshot, "server": one.server, "suffix": one.suffix}
        for batch in context.rows("applied", columns, where, **of):
            for row in batch.to_pylist():
                fresh = _of_these_data(context, one.server, one.suffix, row["at"])
                if row["code"] and not skipped_for_good(row["code"]) and fresh:
                    about = {**row, "at": row["at"].isoformat() if row["at"] else None}
                    attempts.add((one.server, one.suffix, row["position"]), about, row["code"], row["at"])
    return attempts


def _above(one: Replica) -> pc.Expression:
    """The rows whose change the server's vector does not cover."""
    held = {origin: span.max for origin, span in one.vector.items() if span.max}
    position, origin = pc.field("position"), pc.field("origin")
    return position.is_valid() & reduce(
        or_,
        ((origin == rid) & (position > top) for rid, top in sorted(held.items())),
        ~origin.isin(pa.array([*held], pa.string())),
    )


_NAMED = 5
"""Entries of each kind that a sentence names."""
_REMEMBERED = 100_000
"""Entries that are kept in mind, so that their further lines in a log are not counted."""
_SCHEMA = "an entry that does not fit the schema"
_MARK = "nsds5replconflict"
_KINDS = {
    "namingconflict": "two entries of one name",
    "missingentry": "a parent that was made up, or a child of one that is missing",
    "deletedentryhaschildren": "a deleted entry that has children",
    "schema violation": _SCHEMA,
}
_BROUGHT_BACK = "a parent that was made up or brought back"
_GLUE = {_KINDS["missingentry"], _KINDS["deletedentryhaschildren"], _BROUGHT_BACK}
"""What `repl-conflict list-glue` shows, and `repl-conflict list` does not."""


def conflict_entries(context: DetectorContext) -> Iterator[Finding]:
    """Entries with nsds5ReplConflict in the latest export of a server; where none was collected, what its log says of such."""
    exported = set()
    for server in sorted({one.server for one in context.case.inputs}):
        snapshot = _latest_export(context, server)
        if snapshot is None:
            continue
        exported.add(server)
        marked = (pc.utf8_lower(pc.field("attribute")) == _MARK) & (pc.field("state") == "present")
        columns = ["suffix", "snapshot", "file", "offset", "target", "value", "position"]
        marks: dict[str | None, _Marks] = {}
        before = None
        for batch in context.rows("entry_states", columns, marked, snapshot=snapshot, server=server):
            for row in batch.to_pylist():
                entry = row["file"], row["offset"]
                if entry == before:
                    continue  # of an entry with several marks, or with several CSNs on one, the rows follow each other
                before = entry
                marks.setdefault(row["suffix"], _Marks()).add(_kind(row["value"]), row["target"], row)
        for suffix, mine in sorted(marks.items(), key=lambda item: item[0] or ""):
            sentence = f"{server} has {counted(mine.total, 'entry', 'entries')} with a mark of conflict: {mine.told()}"
            classes = list(unknown_to(context, server)) if _SCHEMA in mine.counts else []
            if classes:
                sentence += f"; its schema lacked {', '.join(one.told() for one in classes)}"
            yield _conflicts("warning", sentence, server, suffix, mine, classes)
    yield from _conflicts_told(context, exported)


class _Marks:
    """Conflicts of one server by kind: how many, the first entries of each by name, the first rows."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.entries: dict[str, list[str]] = {}
        self.rows: list[Row] = []
        self._seen: set[tuple[str, str]] = set()

    @property
    def total(self) -> int:
        """Of all kinds."""
        return sum(self.counts.values())

    def add_line(self, kind: str, entry: str | None, row: Row) -> None:
        """A line of a log: an entry is told once, however many lines name it."""
        told = (kind, (entry or "").lower())
        if entry and told in self._seen:
            return
        if len(self._seen) < _REMEMBERED:
            self._seen.add(told)
        self.add(kind, entry, row)

    def add(self, kind: str, entry: str | None, row: Row) -> None:
        """One more entry."""
        self.counts[kind] += 1
        if entry and entry not in (known := self.entries.setdefault(kind, [])):
            # The first by name, so that servers with the same conflicts say the same.
            known[:] = sorted([*known, entry])[:_NAMED]
        if len(self.rows) < EVIDENCE_SHOWN:
            self.rows.append(row)

    def told(self) -> str:
        """Kind by kind, with the first entries by name."""
        texts = []
        for kind, number in sorted(self.counts.items()):
            names = self.entries.get(kind, [])
            more = ", …" if names and number > len(names) else ""
            texts.append(f"{number:,} of {kind}" + (f" ({', '.join(names)}{more})" if names else ""))
        return "; ".join(texts)


def _kind(value: str | None) -> str:
    text = (value or "").strip().lower()
    return next((kind for word, kind in _KINDS.items() if text.startswith(word)), "another mark")


def _latest_export(context: DetectorContext, server: str) -> str | None:
    """The last snapshot with an export of the server's entries."""
    labels = {
        one.snapshot
        for one in context.case.inputs
        if one.server == server and any(part["table"] == "entry_states" for part in one.parts)
    }
    return next((label for label in reversed(list(context.case.snapshots)) if label in labels), None)


def _conflicts_told(context: DetectorContext, exported: Iterable[str]) -> Iterator[Finding]:
    for log in session_logs(context.case):
        if log.server in exported:
            continue
        mine = _Marks()
        for row, place in log.lines(("naming_conflict", "glue_entry", "schema_violation"), WITH_TEXT):
            named = _ENTRY.search(row["text"] or "")
            kind = _LOGGED[row["code"] or ""]
            mine.add_line(kind, (named["quoted"] or named["plain"]) if named else None, line_shown(row, place))
        if mine.total:
            sentence = (
                f"the errors log of {log.server} tells of conflicts: {mine.told()}; no export shows whether they are "
                "still there"
            )
            classes = list(unknown_to(context, log.server)) if _SCHEMA in mine.counts else []
            if classes:
                sentence += f"; the schema of {log.server} lacked {', '.join(one.told() for one in classes)}"
            yield _conflicts("info", sentence, log.server, only_suffix(context, log.server), mine, classes)


_LOGGED = {
    "naming_conflict": "two entries of one name",
    "glue_entry": _BROUGHT_BACK,
    "schema_violation": _SCHEMA,
}
_ENTRY = re.compile(
    r"""Entry "(?P<quoted>[^"]{1,300})"|(?:glue entry|tombstone) (?P<plain>\S.{0,300}?)(?: uniqueid=| to glue | reason )"""
)


def _conflicts(
    severity: str, sentence: str, server: str, suffix: str | None, marks: _Marks, classes: Sequence[Unknown]
) -> Finding:
    positions = sorted({row["position"] for row in marks.rows if row["position"]})
    fixes = []
    if classes:
        fixes.append(
            step(
                f"see whether {server} has {', '.join(one.name for one in classes)} by now; if not, put the schema file of the "
                "servers that know it there, and `dsconf INSTANCE schema reload`",
                "an unknown class is taken over with the entry, but its attributes are not checked, and the mark stays",
                "on a read-only server the mark goes with an initialisation only",
            )
        )
    if set(marks.counts) - {_SCHEMA} or not classes:
        kinds = set(marks.counts)
        lists = ["list"] * bool(kinds - _GLUE - {_SCHEMA}) + ["list-glue"] * bool(kinds & _GLUE)
        shown = " and ".join(
            f"`dsconf INSTANCE repl-conflict {word} {suffix or 'SUFFIX'}`" for word in lists or ["list"]
        )
        fixes.append(
            step(
                f"compare the entries with those of the other servers, and resolve the conflicts on a supplier: {shown}",
                "servers with equal RUVs may hold different entries, and the marks stay when the cause is gone",
                "what is resolved on a supplier reaches hubs and consumers by replication; only a mark that no supplier has "
                "needs an initialisation there",
            )
        )
    return Finding(
        "CONFLICT_ENTRIES",
        severity,
        sentence,
        server=server,
        suffix=suffix,
        items=tuple(positions[:ITEMS_SHOWN]),
        evidence=first_few([*marks.rows, *(one.shown() for one in classes)], marks.total + len(classes)),
        fix=tuple(fixes),
    )
