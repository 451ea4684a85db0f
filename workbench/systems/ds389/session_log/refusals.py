"""Why a consumer refuses changes, as far as the evidence shows it: by its result, its own log, and what it takes all the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from workbench.rules.link_failures import CLOCK_REFUSED, FILLED_LAST, LAST_SESSION
from workbench.rules.vectors import covers
from workbench.systems.ds389.csn import origin_of
from workbench.systems.ds389.rules.own_attributes import OWN_NOTES
from workbench.systems.ds389.rules.proving import touched

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.rules.link_failures import LinkFailure, LinkKey
    from workbench.topology.topology import Link, Replica, Topology

NOTES_REFUSED = "login_notes_refused"
"""The code of the lines in which a consumer says that it refuses what another server noted of failed logins."""

LOGIN_NOTES_SAY = "passwordIsGlobalPolicy is off there, as it is by default, and nothing else is refused"
LOGIN_NOTES, READ_ONLY, NOT_SAID = "login_notes", "read_only", "not_said"
"""Why a consumer answers 53: as it does to each change of notes of failed logins alone; because it takes no change at all; or the
collected files do not say."""

_VECTOR_UNWRITTEN, _WITH_53 = "Failed to update replication update vector for replica", "LDAP error - 53"
_MINUTE = timedelta(minutes=1)
"""A server writes its vector twice a minute."""
_JUST_BEFORE, _LINES = timedelta(seconds=1), 2
_LOOKED_AT = 8
"""Lines of one moment among which a cause is looked for that stands before the last of them."""
_WRITING = re.compile(r"changelog|[Dd][Bb] error|[Dd]atabase|txn|transaction|flush")
"""What a line has behind such a cause: it says what was not written for it."""
_FAILED = "apply_failed"
_SCHEMA, _BACKTRACE = "schema_violation", "slapi_log_backtrace"
DATABASE_FULL, DISK_FULL = "its database is full", "its disk is full"
_FULL = {"MDB_MAP_FULL": DATABASE_FULL, "No space left on device": DISK_FULL, "No enough space left": DISK_FULL}
"""What an errors log says, and what that means."""
_MESSAGE_LIMIT = "nsslapd-maxbersize"
_TOO_LARGE = re.compile(
    r"(?:log_ber_too_big_error - )?(?:conn=[0-9]+ fd=[0-9]+ )?"
    r"Incoming BER Element was (?:([0-9]{1,15}) bytes|too long), max allowable is ([0-9]{1,15}) bytes"
)
_AGAIN_AND_AGAIN = 3
_OF_DATA = (16, 17, 19, 20, 21, 32, 64, 65, 66, 67, 68, 69)
"""Results by which a server refuses a change for what its data and its schema are."""
_NOT_FOUND = ("(-12797)", "(-30988)", "(-30798)")
"""What a line of its errors log has that tells of an entry that is not there."""
_BROKEN = re.compile(r"libdb|BDB\d{4}|MDB_(?!NOTFOUND)|database error|[Ii]nput/output|[Ll]ock table|dblayer")
"""What it has that tells of its database, which a filling does not mend."""


def reason_for_53(
    case: Case, shown: Topology, consumer: Replica | None, refused: Collection[str], since: datetime | None
) -> tuple[str, set[str]]:
    """Why the consumer answered these changes with 53, the first time at `since`; and those of them that no notes explain.

    A supplier that sends on before it has the answers is refused several changes in one session:

        refused: notes of failed logins           -> login_notes, nothing else is refused
        refused: notes, and a change of `mail`    -> read_only if the consumer took no change since, and not_said otherwise
        refused: one change of `mail`             -> not_said: what holds of one change need not hold of every change
        the same, and its own vector as well      -> read_only: it cannot write what no client sends it
    """
    shut = consumer is not None and _writes_nothing(case, consumer, since)
    takes = consumer is not None and _takes_changes(case, shown, consumer, since, by_log_alone=shut)
    says = consumer is not None and any(
        one.facts.get("codes", {}).get(NOTES_REFUSED) for one in case.inputs if one.server == consumer.server
    )
    others = set(refused) - only_notes(case, refused) if takes or says else set(refused)
    if not others:
        return LOGIN_NOTES, others
    return (READ_ONLY if consumer and not takes and (shut or len(others) > 1) else NOT_SAID), others


def closed_with(links: Iterable[Link], found: Mapping[LinkKey, LinkFailure]) -> dict[LinkKey, LinkFailure]:
    """Links whose own last attempt failed for a while, and that run no better than another one that fails:

    b -> h  where a -> h shows that h takes no change at all
    a -> c  where c -> a shows that the clocks of both are too far apart
    """
    failing = [(link, told) for link in links if (told := found.get(_key(link))) and told.blocks]
    closed = {(link.consumer, link.suffix): (link, told) for link, told in failing if told.refuses_all}
    apart = {
        (link.supplier, link.consumer, link.suffix): (link, told)
        for link, told in failing
        if told.reason == CLOCK_REFUSED
    }
    more: dict[LinkKey, LinkFailure] = {}
    for link in links:
        own = found.get(_key(link))
        if own is None or own.blocks or link.enabled is False:
            continue
        other = closed.get((link.consumer, link.suffix))
        if other and not _ran_since(own, other[1]):
            says = f"{link.consumer} takes no change of any supplier, as {other[0].name} shows: "
            says += other[1].short if other[1].to_all else "it answers like a backend with nsslapd-readonly: on"
            proof = (*own.evidence, *other[1].evidence)
            more[_key(link)] = replace(other[1], says=says, attempts=None, since=None, evidence=proof)
        elif (other := apart.get((str(link.consumer), link.supplier, link.suffix))) and not _ran_since(own, other[1]):
            says = f"the clocks are too far apart, as {other[0].name} shows"
            proof = (*own.evidence, *other[1].evidence)
            more[_key(link)] = replace(
                other[1], says=says, attempts=None, since=None, fix=other[1].fix[:1], evidence=proof
            )
    return more


def _ran_since(own: LinkFailure, other: LinkFailure) -> bool:
    """True if a link held a session that ended well after the other one began to fail."""
    return bool(own.since_is in (LAST_SESSION, FILLED_LAST) and own.since and other.since and own.since > other.since)


def _key(link: Link) -> LinkKey:
    return link.supplier, link.suffix, link.name


def only_notes(case: Case, positions: Collection[str]) -> set[str]:
    """Those of some changes that touch nothing but what a server notes of failed logins, as the changelogs show them."""
    where = pc.field("position").isin(pa.array(sorted(positions), pa.string()))
    rows = _rows(case, "changes", ["position", "operation", "body"], where)
    names = {row["position"]: touched(row["body"] or "") for row in rows if row["operation"] == "modify"}
    return {position for position, mine in names.items() if mine and mine <= OWN_NOTES}


def _takes_changes(case: Case, shown: Topology, consumer: Replica, since: datetime | None, by_log_alone: bool) -> bool:
    """True if it has changes that were made later than `since`, or its access log shows one that it took since.

    by_log_alone  the times of positions do not count: they may run ahead of its clock
    """
    if since is None:
        return False
    tops = [span.max for span in consumer.seen().values() if span.max and not by_log_alone]
    if any(made > since for made in map(shown.system.moment, tops) if made):
        return True
    took = (pc.field("server") == consumer.server) & (pc.field("outcome") == "applied") & (pc.field("at") > since)
    return any(True for _ in _rows(case, "applied", ["outcome"], took))


def _writes_nothing(case: Case, consumer: Replica, since: datetime | None) -> bool:
    """True if its errors log says since then that even its own vector could not be written, with 53."""
    where = (pc.field("server") == consumer.server) & (pc.field("severity") == "error")
    where &= pc.match_substring(pc.field("text"), _VECTOR_UNWRITTEN) & pc.match_substring(pc.field("text"), _WITH_53)
    rows = _rows(case, "messages", ["at", "text"], where)
    return any(
        (consumer.suffix or "") in row["text"].lower()
        and (since is None or (row["at"] and row["at"] >= since - _MINUTE))
        for row in rows
    )


def _rows(case: Case, table: str, columns: list[str], where: pc.Expression) -> Iterator[dict[str, Any]]:
    for part in case.parts(table):
        found = ds.dataset(part["path"], format="parquet", partitioning=None)
        for batch in found.to_batches(columns=columns, filter=where, batch_readahead=1, use_threads=False):
            yield from batch.to_pylist()


def said_at(case: Case, server: str, moments: Collection[datetime]) -> tuple[dict[str, str], ...]:
    """The last errors that the server wrote just before the latest of these moments, in the words of its log: quotes.

    Lines that tell of replication itself are left out: they say that a change was refused, and not why.
    """
    if not moments:
        return ()
    moment = max(moments)
    where = (pc.field("server") == server) & (pc.field("severity") == "error")
    where &= pc.field("code").is_null() | pc.field("code").isin(pa.array([_SCHEMA, _FAILED]))
    where &= (pc.field("at") > moment - _JUST_BEFORE) & (pc.field("at") <= moment)
    columns = ["at", "offset", "code", "text"]
    found = sorted(_rows(case, "messages", columns, where), key=lambda row: (row["at"], row["offset"]))
    rows = [row for row in found if row["code"] != _FAILED]
    texts = [row["text"] for row in rows if row["text"] and not row["text"].startswith(_BACKTRACE)]
    lines = list(dict.fromkeys(texts))[-_LINES:]
    refusals = [number for number, row in enumerate(found) if row["code"] == _FAILED]
    mine = [row for row in found[refusals[-2] + 1 if len(refusals) > 1 else 0 :] if row["code"] != _FAILED]
    return tuple({"server": server, "text": text} for text in (*_cause_before(mine, lines), *lines))


def _cause_before(rows: Iterable[Mapping[str, Any]], shown: Sequence[str]) -> list[str]:
    """What is full, as a line before the shown ones says, where all behind it only say what was not written for it.

    rows  the lines of one moment behind the refusal before, in order
    """
    lines = [row for row in rows if row["text"] and not row["text"].startswith(_BACKTRACE)][-_LOOKED_AT:]
    causes = [number for number, row in enumerate(lines) if no_room([{"text": row["text"]}])]
    if not causes or lines[causes[-1]]["text"] in shown:
        return []
    behind = lines[causes[-1] + 1 :]
    follow = all(row["code"] is None and _WRITING.search(row["text"]) for row in behind)
    return [lines[causes[-1]]["text"]] if follow and not any(map(_tells_of_no_entry, shown)) else []


def _tells_of_no_entry(line: str) -> bool:
    return any(sign in line for sign in _NOT_FOUND)


def no_room(said: Iterable[Mapping[str, str]]) -> str:
    """What is full, if the server says so; empty: it does not."""
    lines = [quote["text"] for quote in said]
    return next((full for sign, full in _FULL.items() if any(sign in line for line in lines)), "")


def full_at(case: Case, server: str, moment: datetime | None) -> str:
    """What was full at a server, as its errors log says within a minute before; empty: it does not say that of anything."""
    if moment is None:
        return ""
    where = (pc.field("server") == server) & (pc.field("severity") == "error")
    where &= (pc.field("at") > moment - timedelta(minutes=1)) & (pc.field("at") <= moment)
    return no_room({"text": row["text"] or ""} for row in _rows(case, "messages", ["text"], where))


def too_large(case: Case, server: str, since: datetime | None) -> str:
    """What a server says of messages that it does not take, if its errors log says so again and again since then; else empty.

    It ends the connection at once, so no result tells of it, and the supplier sends the same change again.
    """
    where = (pc.field("server") == server) & (pc.field("severity") == "error")
    where &= pc.match_substring(pc.field("text"), _MESSAGE_LIMIT)
    count, size, limit = 0, "", ""
    for row in _rows(case, "messages", ["at", "text"], where):
        told = _TOO_LARGE.match(row["text"])
        if told and row["at"] and (since is None or row["at"] >= since - _JUST_BEFORE):
            count, (size, limit) = count + 1, told.groups("")
    if count < _AGAIN_AND_AGAIN:
        return ""
    last = f", the last of {int(size):,} bytes" if size else ""
    return f"its limit for a message ({_MESSAGE_LIMIT}) is {int(limit):,} bytes, and larger ones came {count:,} times{last}"


def of_data(error: int, said: Iterable[Mapping[str, str]]) -> bool:
    """True if a server refuses a change for what its data or its schema are, as it says itself: other data would end that."""
    lines = [quote["text"] for quote in said]
    tells = bool(lines) and (error in _OF_DATA or any(map(_tells_of_no_entry, lines)))
    return tells and not any(map(_BROKEN.search, lines))


def refused_by(
    case: Case, snapshot: str, server: str, positions: Collection[str], since: datetime | None
) -> dict[tuple[str, int], list[datetime]]:
    """When the server's own errors log says that it could not apply these changes, after `since`, by position and result."""
    where = (pc.field("server") == server) & (pc.field("code") == "apply_failed") & (pc.field("snapshot") == snapshot)
    where &= pc.field("position").isin(pa.array(sorted(positions), pa.string()))
    found: dict[tuple[str, int], list[datetime]] = {}
    for row in _rows(case, "messages", ["at", "position", "numbers"], where):
        if row["at"] and (since is None or row["at"] > since) and (result := result_in(row)):
            found.setdefault((row["position"], result), []).append(row["at"])
    return found


def refused_no_more(
    case: Case,
    shown: Topology,
    consumer: Replica,
    refusals: Iterable[tuple[str, int]],
    refused_at: Mapping[tuple[str, int], datetime],
) -> set[tuple[str, int]]:
    """Of refused changes, by position and result, those that the consumer has, or took later by its access log."""
    last: dict[str, datetime] = {}
    for (csn, _), at in refused_at.items():
        last[csn] = max(at, last.get(csn, at))
    taken = taken_since(case, shown.snapshot, consumer.server, last)
    return {(csn, error) for csn, error in refusals if csn in taken or covers(consumer.vector, origin_of(csn), csn)}


def taken_since(case: Case, snapshot: str, server: str, last: Mapping[str, datetime]) -> set[str]:
    """Of changes, those that a server answered with success after a moment, as its access log shows: position -> moment."""
    where = (pc.field("server") == server) & (pc.field("snapshot") == snapshot)
    where &= pc.field("outcome").isin(["applied", "received", "acknowledged"])
    where &= pc.field("position").isin(pa.array(sorted(last), pa.string()))
    rows = _rows(case, "applied", ["at", "position"], where) if last else ()
    return {row["position"] for row in rows if row["at"] and row["at"] > last[row["position"]]}


def result_in(row: Any) -> int | None:
    """The result that a line of the errors log names."""
    error = dict(row["numbers"] or ()).get("error")
    return int(error) if error else None
