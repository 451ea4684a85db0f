"""Changes that a server answered with success and did not apply: its RUV stays below them, so each session sends them again.

Seen with the deletion of an entry that was renamed, or whose parent was moved, at the same time: the server goes on having it.
The next change of the same origin moves the RUV past the deletion, and from then on it is missing there for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from workbench.diagnosis.evidence_grounds import ANSWERED_BEFORE
from workbench.diagnosis.former_suppliers import was_maker
from workbench.model import Finding, first_few, listed, step
from workbench.rules.send_session import SEND
from workbench.rules.verdicts import LOG_REPLACED
from workbench.systems.ds389.detectors.shown import Row
from workbench.topology.suffix_evidence import makes_none, readings_began

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_AGAIN = 3
"""Times that a change is answered with success before it is told. Two suppliers may send one at the same time."""


class _Sent(NamedTuple):
    """A change that a session with a consumer would begin with."""

    consumer: str
    suffix: str | None
    origin: str
    position: str


def answered_not_applied(context: DetectorContext) -> Iterator[Finding]:
    """Told of a deletion whose entry is still there long after the answer, and of what was answered several times."""
    asked = _asked(context)
    answers = _answers(context, {one.position for one in asked})
    answered = {
        one: rows
        for one in asked
        if (rows := _with_present_data(context, one, answers.get((one.consumer, one.position), [])))
    }
    began = readings_began(context.case, context.topology) if answered else {}
    deletes = {one: rows for one, rows in answered.items() if rows[-1]["operation"] == "delete"}
    live = _still_there(context, deletes)
    keep: dict[tuple[str | None, str], list[str]] = {}
    for sent in sorted(live, key=str):
        if _long_before(answered[sent][-1], began.get(sent.consumer)):
            keep.setdefault((sent.suffix, sent.position), []).append(sent.consumer)
    for sent, rows in sorted(answered.items(), key=str):
        last, show = rows[-1], context.topology.system.show
        read, name = began.get(sent.consumer), live.get(sent)
        late = _long_before(last, read)
        if not (late and name) and len({row["at"] for row in rows}) < _AGAIN:
            continue
        name = name if late else None  # what came while the server was read, its entries need not show
        if not name and was_maker(context, sent.consumer, sent.suffix, sent.origin):
            continue  # it made the change itself, and its vector stands still since it is no supplier any more
        what = f"the {last['operation'] or 'change'} {show(sent.position)} of {last['target'] or 'an entry'}"
        still = f" and still has {name}" if name else ", and its RUV does not cover it"
        yield Finding(
            "ANSWERED_NOT_APPLIED",
            "error" if name else "info",
            f"{sent.consumer} answered {what} with success{still}: each session sends it once more",
            server=sent.consumer,
            origin=sent.origin,
            suffix=sent.suffix,
            items=(show(sent.position),),
            evidence=first_few({**row, "at": row["at"].isoformat() if row["at"] else None} for row in rows),
            root=f"{listed(keep[sent.suffix, sent.position])} answered {what} with success and did not apply it"
            if name
            else "",
            fix=(
                _gone(context, name, sent, keep[sent.suffix, sent.position])
                if name
                else step(
                    f"compare {last['target'] or 'the entry'} on the servers, then wait for the next change of replica ID "
                    f"{sent.origin}, or make one there",
                    "an answer of success may have changed nothing; the RUV moves on with the next change",
                ),
            ),
        )


def _gone(context: DetectorContext, name: str, sent: _Sent, keep: list[str]) -> Mapping[str, str | None]:
    """What takes the entry from the servers that still have it: who makes changes deletes it, who does not is filled again."""
    logging = {one.server for one in context.topology.replicas if one.suffix == sent.suffix and one.origin}
    on = [server for server in keep if server in logging]
    unread = context.not_collected(sent.suffix)
    caution = (
        "find out first whether it is meant to be gone: somebody moved or renamed it while somebody else deleted it"
    )
    if not on and not unread and makes_none(context.case, context.topology, sent.consumer, sent.suffix):
        return step(
            f"delete {name} on a supplier that has it; if none has it, initialise {sent.consumer} from one of them",
            f"{sent.consumer} takes no changes of clients",
            f"{caution}. An initialisation replaces all data of {sent.suffix} on {sent.consumer}",
        )
    return step(
        f"delete {name} on {listed(on, 'or') if on else 'a supplier that has it'}",
        "the next change of the same origin moves the RUV past the deletion, and then no session sends it any more",
        caution,
    )


def _long_before(answer: Row, read: datetime | None) -> bool:
    """True if the answer was given so long before the server was read that its RUV would cover the change."""
    return read is not None and answer["at"] is not None and bool(read - answer["at"] >= ANSWERED_BEFORE)


def _asked(context: DetectorContext) -> list[_Sent]:
    """What sessions over links would begin with, each once."""
    typed = context.topology.system.typed
    return list(
        dict.fromkeys(
            _Sent(row["consumer"], row["suffix"], origin, typed(sent["first"]) or "")
            for row in context.pairs
            if row["link"] and row["decision"] == SEND and not row.get("link_failing")
            for origin, sent in row["to_send"].items()
        )
    )


def _answers(context: DetectorContext, positions: set[str]) -> dict[tuple[str, str], list[Row]]:
    """(server, position) -> the lines that tell of a success, in the order of time."""
    found: dict[tuple[str, str], list[Row]] = {}
    where = (pc.field("outcome") == "applied") & pc.field("position").isin(sorted(positions))
    columns = ["server", "snapshot", "file", "offset", "at", "operation", "target", "position"]
    here = context.topology.snapshot
    for batch in context.rows("applied", columns, where, snapshot=here) if positions else ():
        for row in batch.to_pylist():
            found.setdefault((row["server"], row["position"]), []).append(row)
    return {key: sorted(rows, key=lambda row: str(row["at"])) for key, rows in found.items()}


def _with_present_data(context: DetectorContext, sent: _Sent, answers: list[Row]) -> list[Row]:
    """The answers that the server gave with the data that it has: what it had applied before, a backup may have undone."""
    resets = context.verdicts.resets.get((sent.consumer, sent.suffix), ())
    since = max((one.ended for one in resets if one.kind != LOG_REPLACED), default=None)
    return [row for row in answers if since is None or (row["at"] is not None and row["at"] > since)]


def _still_there(context: DetectorContext, deletes: dict[_Sent, list[Row]]) -> dict[_Sent, str]:
    """Of deletions, the name of the entry that the consumer's export still shows."""
    here = context.topology.snapshot
    entries: dict[tuple[str | None, str], str] = {}
    where = pc.field("position").isin(sorted({one.position for one in deletes})) & pc.field("entry").is_valid()
    where &= pc.field("kind") == "change"
    for suffix in {one.suffix for one in deletes}:
        for batch in context.rows("changes", ["position", "entry"], where, snapshot=here, suffix=suffix):
            entries |= {(suffix, row["position"]): row["entry"] for row in batch.to_pylist()}
    found: dict[_Sent, str] = {}
    for sent in deletes:
        if not (entry := entries.get((sent.suffix, sent.position))):
            continue
        there = (pc.field("entry") == entry) & (pc.field("state") == "present")
        for batch in context.rows("entry_states", ["target"], there, snapshot=here, server=sent.consumer):
            for name in batch.column("target").to_pylist():
                found[sent] = name
    return found
