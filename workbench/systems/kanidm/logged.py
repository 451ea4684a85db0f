"""What logs tell of servers of which no vector says more: findings out of messages alone.

Of a server that stands in the pair matrix the vectors tell how it is now; its log may be of a time before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.model import EVIDENCE_SHOWN, Finding, step
from workbench.replication.entry.diagnosis.state_comparison import CHANGE_STATE

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

UNWILLING, PULLED, CLOCK_AHEAD, UNREACHED, REFRESHED = (
    *("unwilling", "pulled", "clock_ahead", "unreached", "refreshed"),
)

_COLUMNS = ["server", "file", "offset", "at", "code", "origin", "text"]


_MEANINGS: Mapping[str, Finding] = {
    "refresh_required": Finding(
        "REFRESH_REQUIRED",
        "warning",
        "{server} tells a consumer that it is too far behind, and supplies nothing to it",
        fix=(
            step(
                "find out which of its consumers that is, and refresh it",
                "what it lacks is in no changelog any more, only in the entries themselves",
                "a refresh throws away whatever only the refreshed server holds",
            ),
        ),
    ),
    "must_refresh": Finding(
        "REFRESH_REQUIRED",
        "error",
        "{server} is told by a supplier that it is too far behind, and gets nothing from it",
        fix=(
            step(
                "refresh {server} from the server with the most complete data",
                "what it lacks is in no changelog any more, only in the entries themselves",
                "a refresh throws away whatever only {server} holds",
            ),
        ),
    ),
    "refresh_failed": Finding(
        "REFRESH_REQUIRED",
        "error",
        "{server} was to be refreshed, and could not take in the data of its supplier",
        fix=(
            step(
                "verify the database of the supplier (`kanidmd database verify`), mend it, and refresh {server} again",
                "data that are not whole are refused: references to entries that are gone, entries that break the schema",
            ),
        ),
    ),
    "other_domain": Finding(
        "UNRELATED_DATA",
        "error",
        "{server} asks a supplier of another domain: nothing may be exchanged between them",
        fix=(
            step(
                "refresh {server} from that supplier, if it is to join it",
                "a server begins as a domain of its own",
                "a refresh throws away everything that {server} holds",
            ),
        ),
    ),
    "supplier_behind": Finding(
        "SUPPLIER_BEHIND",
        "warning",
        "{server} is behind what a consumer of it still remembers, and supplies nothing to it",
        fix=(
            step(
                "collect backups of all servers, then refresh {server} from the one with the most complete data",
                "as long as it is behind, nothing goes from it to that consumer",
                "a refresh throws away whatever only {server} holds",
            ),
        ),
    ),
    "diverged": Finding(
        "DIVERGED",
        "error",
        "{server} and a consumer of it are each behind what the other remembers: nothing goes between them",
        fix=(
            step(
                "collect backups of all servers, find out which of the two has the right data, and refresh the other one",
                "no session can bring them together: each has forgotten what the other one lacks",
                "a refresh throws away whatever only the refreshed server holds",
            ),
        ),
    ),
    "no_overlap": Finding(
        "NO_OVERLAP",
        "error",
        "{server} has no origin in common with a consumer of it: nothing goes between them",
        fix=(
            step(
                "collect backups of all servers, find out which of the two has the right data, and refresh the other one",
                "no session can bring them together: each has forgotten what the other one lacks",
                "a refresh throws away whatever only the refreshed server holds",
            ),
        ),
    ),
    "domain_mismatch": Finding(
        "UNRELATED_DATA",
        "error",
        "{server} was asked by a consumer of another domain: nothing may be exchanged between them",
        fix=(
            step(
                "refresh the consumer from {server}, if it is to join it",
                "a server begins as a domain of its own",
                "a refresh throws away everything that the consumer holds",
            ),
        ),
    ),
    "split_data": Finding(
        "ROLLED_BACK",
        "error",
        "{server} refuses what is supplied to it, for that holds later own changes of it: it was restored from an older state",
        fix=(
            step(
                "let nobody write on {server}, and refresh it from the server with the most complete data",
                "its next own change moves its vector over those that it lost, and hides them",
                "a refresh throws away whatever only {server} holds",
            ),
        ),
    ),
}
"""Code of a message -> what it says, of `{server}` whose log it stands in."""

_OF_CONSUMERS = frozenset({"refresh_required"})
"""Those that say something of a consumer, of which no line tells the name."""


@dataclass
class _Said:
    """Lines of one server that say one thing: how many, and the last few."""

    count: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        self.count += 1
        self.lines = sorted([*self.lines, row], key=lambda one: (one["file"], one["offset"]))[-EVIDENCE_SHOWN:]

    @property
    def evidence(self) -> tuple[dict[str, Any], ...]:
        """The lines, and how many more there are."""
        more = self.count - len(self.lines)
        return (*map(_line, self.lines), *([{"more": more}] if more else []))


def _line(row: dict[str, Any]) -> dict[str, Any]:
    at = row["at"].isoformat() if row["at"] else None
    return {"file": row["file"], "offset": row["offset"], "at": at, "text": row["text"]}


def said_in(context: DetectorContext) -> dict[tuple[str, str, str | None], _Said]:
    """Server, code of a message and the origin that it names -> the lines of the last snapshot."""
    codes = pa.array([*_MEANINGS, UNWILLING, PULLED, CLOCK_AHEAD, UNREACHED, REFRESHED])
    found: dict[tuple[str, str, str | None], _Said] = {}
    where = pc.field("code").isin(codes)
    for batch in context.rows("messages", _COLUMNS, where, snapshot=context.topology.snapshot):
        for row in batch.to_pylist():
            found.setdefault((row["server"], row["code"], row["origin"]), _Said()).add(row)
    return found


def green_lines(context: DetectorContext) -> dict[str, tuple[dict[str, Any], ...]]:
    """Server -> the line that says that nothing was supplied, and the one behind it that calls this a success."""
    said = said_in(context)
    found = {}
    for (server, code, _), one in said.items():
        successes = said.get((server, PULLED, None))
        if code == UNWILLING and successes:
            last = one.lines[-1]
            behind = [row for row in successes.lines if row["file"] == last["file"] and row["offset"] > last["offset"]]
            found[server] = tuple(map(_line, (last, *behind[:1])))
    return found


def told_by_logs(context: DetectorContext) -> Iterator[Finding]:
    """What the log of a server says of which the pair matrix says nothing."""
    # A vector out of a log is of the moment of its last line, and tells no more than the log.
    of_log = {one.server for one in context.topology.replicas if CHANGE_STATE not in one.evidence}
    paired = {row[end] for row in context.pairs for end in ("supplier", "consumer")} - of_log
    claimed = {origin for one in context.topology.replicas for origin in one.vector}
    own: dict[str | None, str] = {one.origin: one.server for one in context.topology.replicas if one.origin}
    said = said_in(context)
    for (server, code, origin), one in sorted(said.items(), key=lambda item: (*item[0][:2], item[0][2] or "")):
        if code in _MEANINGS and server not in paired and _still(one, said.get((server, REFRESHED, None))):
            about = _MEANINGS[code]
            fix = [{key: text and text.format(server=server) for key, text in given.items()} for given in about.fix]
            yield replace(
                about,
                summary=f"the log of {server} says: {about.summary.format(server=server)}",
                server=None if code in _OF_CONSUMERS else server,
                evidence=one.evidence,
                fix=tuple(fix),
            )
        elif code == CLOCK_AHEAD and origin not in claimed:
            yield Finding(
                "CLOCK_AHEAD",
                "warning",
                f"the log of {server} says: changes of origin {origin or 'another server'} come from its future",
                server=own.get(origin),
                origin=origin,
                evidence=one.evidence,
                fix=(
                    step("set the clocks right", "changes of a clock that is ahead win over later ones of the others"),
                ),
            )
        elif code == UNREACHED and _still(one, said.get((server, PULLED, None))):
            links = [link for link in context.topology.links if link.consumer == server and link.enabled]
            yield Finding(
                "LINK_DISABLED",
                "warning",
                f"the log of {server} ends without a pull behind its trouble to reach a partner: no link to it is known to run",
                server=server,
                link=links[0].name if len(links) == 1 else None,
                evidence=one.evidence,
                fix=(
                    step(
                        "look at addresses, names and certificates of both ends: each holds the certificate of the other",
                        "a certificate that was renewed has to be given to the partners, and a name may have got another address",
                    ),
                ),
            )
    for server, lines in sorted(green_lines(context).items()):
        if server not in paired:
            yield Finding(
                "STALLED_BUT_GREEN",
                "warning",
                f"the log of {server} calls a pull a success to which nothing was supplied",
                server=server,
                evidence=lines,
                fix=(
                    step(
                        f"collect backups of {server} and its partners: their vectors tell why nothing is supplied",
                        "an answer that supplies nothing is taken for one that had nothing to supply",
                    ),
                ),
            )


def _still(trouble: _Said, well: _Said | None) -> bool:
    """True if no line that says that all is well again stands behind the last such line, in its file."""
    last = trouble.lines[-1]
    ends = [row["offset"] for row in well.lines if row["file"] == last["file"]] if well else []
    return not ends or max(ends) < last["offset"]
