"""How changes were lost: refused and passed over for good, or of a replica ID that was cleaned away."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.adding_again import apart_meanwhile
from workbench.diagnosis.gone_entries import nothing_again, without_gone
from workbench.diagnosis.repair_sources import sources_that_fill
from workbench.model import ITEMS_SHOWN, Finding, counted, ends, first_few, listed, step
from workbench.systems.ds389.rules.applying import skipped_for_good
from workbench.systems.ds389.rules.ldap_results import in_words
from workbench.systems.ds389.session_log.log_ends import logs_end
from workbench.systems.ds389.session_log.refusals import said_at

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_HARMLESS = "a delete of an entry that the server does not have: nothing is lost by it"
_NO_SUCH_OBJECT, _REFUSED = 32, "refused"


def apply_skipped(context: DetectorContext) -> Iterator[Finding]:
    """Changes that a consumer refused with a code after which the supplier goes on."""
    found: dict[tuple[str, str | None, str], list[dict[str, object]]] = {}
    for row in context.verdicts.missing:
        if row["rule"] == "skipped":
            found.setdefault((row["server"], row["suffix"], row["origin"]), []).append(row)
    for (server, suffix, origin), rows in found.items():
        csns = [str(row["position"]) for row in rows]
        answers = _answers(context, server, suffix, csns)
        refused = [answers.get(str(row["position"]), {}).get("code") for row in rows]
        deletes = (
            code == _NO_SUCH_OBJECT and row["operation"] == "delete" for code, row in zip(refused, rows, strict=True)
        )
        harmless = sum(deletes)
        note = f"; {harmless} of them {_HARMLESS}" if harmless else ""
        alone = len(rows) == 1
        some = "one change" if alone else f"{len(rows):,} changes"
        results = " and ".join(in_words(code) for code in sorted({code for code in refused if isinstance(code, int)}))
        own = [one["at"] for one in answers.values() if one["outcome"] == _REFUSED]
        said = said_at(context.case, server, [at for at in own if isinstance(at, datetime)])
        yield Finding(
            "APPLY_SKIPPED",
            "error",
            f"{server} refused {some} of replica ID {origin}{f' with {results}' if results else ''}, and the supplier went on"
            f"{note}",
            server=server,
            origin=origin,
            suffix=suffix,
            items=tuple(csns[:ITEMS_SHOWN]),
            evidence=first_few(
                {
                    "position": csn,
                    "operation": row["operation"],
                    "target": row["target"],
                    **_shown(answers.get(csn, {})),
                }
                for csn, row in zip(csns, rows, strict=True)
            ),
            quotes=said,
            fix=(
                nothing_again(server)
                if not without_gone(rows)
                else step(
                    "repair the reason first (the missing entry or parent, the schema); then "
                    f"{_deleted_and_added(context, suffix, rows)}, or initialise this server again",
                    f"the next change of the replica ID moved the vector over "
                    f"{'it: no session sends it' if alone else 'them: no session sends them'} again",
                    "a modify of an entry that the server lacks is refused and skipped like the first one; "
                    "delete and add loses the entry's old unique ID and its memberships",
                ),
            ),
        )


def _deleted_and_added(context: DetectorContext, suffix: str | None, rows: Sequence[Mapping[str, object]]) -> str:
    """How an entry is added once more; servers that lack it are apart meanwhile, each that lacks one of these changes."""
    does = "delete and add the entry on a supplier that has it"
    added = {row["position"] for row in rows if row["operation"] == "add"}
    lacking = {x["server"] for x in context.verdicts.missing if x["suffix"] == suffix and x["position"] in added}
    off, on = apart_meanwhile(context, lacking, suffix)
    return f"{off}, {does}, and {on}" if off else does


def refused_without_vector(context: DetectorContext) -> Iterator[Finding]:
    """The same of servers of which nothing tells what they have seen: their logs alone show what they refused.

    What a server took in the end is not among it.
    """
    telling = {replica.server for replica in context.topology.replicas if replica.tells}
    arrived = (pc.field("replicated") == pa.scalar(True)) & pc.field("position").is_valid()
    for server in sorted({one.server for one in context.inputs} - telling):
        refused = _lines(context, server, arrived & (pc.field("outcome") == _REFUSED))
        refused = refused.filter(
            pa.array([skipped_for_good(code or 0) for code in refused["code"].to_pylist()], pa.bool_())
        )
        if not len(refused):
            continue
        positions = pc.unique(refused["position"])
        taken = _lines(context, server, (pc.field("outcome") == "applied") & pc.field("position").isin(positions))
        left = refused.filter(pc.invert(pc.is_in(refused["position"], value_set=pc.unique(taken["position"]))))
        rows = left.sort_by("position").to_pylist()
        csns = list(dict.fromkeys(row["position"] for row in rows))
        if not csns:
            continue
        results = listed([in_words(code) for code in sorted({row["code"] for row in rows})])
        yield Finding(
            "APPLY_SKIPPED",
            "warning",
            f"{server} refused {counted(len(csns))} of its suppliers with {results}, {ends(csns[0], csns[-1])}, and its log does "
            "not show that it took them later; without its vector nothing tells whether they are sent again",
            server=server,
            items=tuple(csns[:ITEMS_SHOWN]),
            evidence=first_few(
                {
                    "server": server,
                    "file": row["file"],
                    "offset": row["offset"],
                    "position": row["position"],
                    "code": row["code"],
                }
                for row in rows
            ),
            fix=(
                step(
                    f"collect {server} and its suppliers with `workbench collect`, or add the entries of their replicas and "
                    "their changelogs, and diagnose again",
                    "a supplier goes on behind a change that was refused so, and its next change hides the refused one",
                ),
            ),
        )


def _lines(context: DetectorContext, server: str, where: pc.Expression) -> pa.Table:
    """What the logs of a server in the last snapshot say of changes."""
    columns = ["file", "offset", "position", "code"]
    found = [*context.rows("applied", columns, where, snapshot=context.topology.snapshot, server=server)]
    tables = [pa.table({name: _plain(batch[name]) for name in columns}) for batch in found]
    kinds = [pa.string(), pa.int64(), pa.string(), pa.int64()]
    empty = pa.table({name: pa.array([], kind) for name, kind in zip(columns, kinds, strict=True)})
    return pa.concat_tables([empty, *tables])


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _answers(
    context: DetectorContext, server: str, suffix: str | None, csns: list[str]
) -> dict[str, dict[str, object]]:
    """CSN -> the line that shows the refusal: the server's own, or else that of a supplier which went on."""
    own = (pc.field("server") == server) & (pc.field("outcome") == _REFUSED)
    suppliers = [pc.field("server") == one.supplier for one in context.topology.links if one.consumer == server]
    theirs = (pc.field("outcome") == "skipped") & reduce(or_, suppliers, pc.scalar(False))
    where = pc.field("position").isin(csns) & (own | theirs)
    where &= pc.field("suffix").is_null() | (pc.field("suffix") == suffix)
    columns = ["snapshot", "file", "offset", "at", "code", "position", "outcome"]
    answers: dict[str, dict[str, object]] = {}
    for batch in context.rows("applied", columns, where):
        for row in batch.to_pylist():
            if row["position"] not in answers or row["outcome"] == _REFUSED:
                answers[row["position"]] = row
    return answers


def _shown(answer: Mapping[str, object]) -> dict[str, object]:
    """As a row of evidence."""
    at = answer.get("at")
    kept = {key: answer[key] for key in ("snapshot", "file", "offset", "at", "code") if key in answer}
    return {**kept, "at": at.isoformat()} if isinstance(at, datetime) else kept


def clean_forced_loss(context: DetectorContext) -> Iterator[Finding]:
    """A replica ID is in no vector any more, and a server had not got all of its changes before.

    What servers had, the vectors of earlier snapshots tell, and the access logs of this one.
    """
    now = {(one.suffix, origin) for one in context.topology.replicas for origin in one.vector}
    labels = list(context.case.snapshots)
    before = labels[: labels.index(context.topology.snapshot)]
    seen: dict[tuple[str | None, str], dict[str, str]] = {}
    for label in before:
        shown = context.at(label)
        for one in shown.replicas if shown else ():
            for origin, span in one.seen().items():
                if (one.suffix, origin) not in now and span.max:
                    mine = seen.setdefault((one.suffix, origin), {})
                    mine[one.server] = max(span.max, mine.get(one.server, ""))
    for key, logged in _had_by_logs(context).items():
        if key not in now:
            mine = seen.setdefault(key, {})
            mine |= {server: max(position, mine.get(server, "")) for server, position in logged.items()}
    there = {(one.server, one.suffix) for one in context.topology.replicas if one.claims}
    for (suffix, origin), known in sorted(seen.items(), key=lambda one: (one[0][0] or "", one[0][1])):
        if not any(one.suffix == suffix and one.claims for one in context.topology.replicas):
            continue
        top = max(known.values())
        holders = sorted(server for server, position in known.items() if position == top)
        unlike = {server: _unlike(context, server, suffix, holders) for server in known}
        behind = [
            server
            for server, position in sorted(known.items())
            if position < top and (server, suffix) in there and unlike[server] is not False
        ]
        for server in behind:
            known_now = [name for name in holders if (name, suffix) in there]
            sources = sources_that_fill(context, known_now, server, suffix)
            again = "write the values that the lost changes set once more"
            yield Finding(
                "CLEAN_FORCED_LOSS",
                "error",
                f"replica ID {origin} was cleaned away while {server} had its changes up to {known[server]}, and "
                f"{listed(holders)} up to {top}",
                server=server,
                origin=origin,
                suffix=suffix,
                items=(known[server], top),
                evidence=first_few({"server": name, "had": at} for name, at in sorted(known.items())),
                root=f"replica ID {origin} was cleaned while {listed(behind)} lacked changes of it",
                fix=(
                    step(
                        f"do what ENTRIES_DIFFER says of {server}",
                        "it names what the lost changes made, and what has to be saved first",
                    )
                    if unlike[server]
                    else step(
                        f"{again}, or initialise {server} from {listed(sources, 'or')}"
                        if sources
                        else f"{again} on a supplier, as the entries of {listed(holders)} show them",
                        "a cleaned replica ID is never sent again, and its records leave every changelog",
                        "an initialisation throws away what only this server holds"
                        if sources
                        else f"do not initialise {listed(holders)} before that: what it shows would go",
                    ),
                ),
            )


def _unlike(context: DetectorContext, server: str, suffix: str | None, holders: Collection[str]) -> bool | None:
    """True if the entries of the server differ from those of others, as ENTRIES_DIFFER says; None: nothing tells.

    Nothing does where no holder of the changes is among those whose entries were collected.
    """
    for contents in context.verdicts.contents:
        if contents.suffix == suffix and server in contents.exports and not contents.exports.keys().isdisjoint(holders):
            return any(server in one.servers for one in contents.differences)
    return None


def _had_by_logs(context: DetectorContext) -> dict[tuple[str | None, str], dict[str, str]]:
    """Suffix and replica ID that a log says was cleaned -> up to where each server had applied its changes, by its access log.

    Left out is who was filled since, and who did not clean it, by its log, after the newest one was made.
    """
    moment, snapshot = context.topology.system.moment, context.topology.snapshot
    suffixes = {one.suffix for one in context.topology.replicas if one.claims}
    cleaned = pc.field("code") == context.topology.proving.cleaned
    cleaned &= pc.field("origin").is_valid() & pc.field("at").is_valid()
    done: dict[tuple[str, str], datetime] = {}
    for server in sorted({one.server for one in context.inputs}):
        for batch in context.rows("messages", ["origin", "at"], cleaned, snapshot=snapshot, server=server):
            for row in batch.to_pylist():
                done[server, row["origin"]] = max(row["at"], done.get((server, row["origin"]), row["at"]))
    origins = sorted({origin for _, origin in done})
    if not origins or len(suffixes) != 1:
        return {}
    (suffix,) = suffixes
    had: dict[str, dict[str, str]] = {}
    where = (pc.field("outcome") == "applied") & pc.field("link").is_null() & pc.field("position").is_valid()
    where &= pc.field("origin").isin(pa.array(origins, pa.string()))
    for server in sorted({one.server for one in context.inputs}):
        for batch in context.rows("applied", ["origin", "position"], where, snapshot=snapshot, server=server):
            for row in pa.table(batch).group_by("origin").aggregate([("position", "max")]).to_pylist():
                mine = had.setdefault(row["origin"], {})
                mine[server] = max(row["position_max"], mine.get(server, ""))
    # Behind the end of a log silence proves nothing.
    ends = logs_end(context, "access_log")
    found: dict[tuple[str | None, str], dict[str, str]] = {}
    for origin, applied in had.items():
        # Who was filled since may have lost what it had, and may have got what it lacked.
        known = {
            server: position
            for server, position in applied.items()
            if (last := moment(position))
            and not any(one.ended >= last for one in context.verdicts.resets.get((server, suffix), ()))
        }
        top = max(known.values(), default="")
        newest = moment(top) if top else None
        for server, position in known.items():
            gone, end = done.get((server, origin)), ends.get(server)
            if position == top or (newest and gone and end and newest < gone <= end):
                found.setdefault((suffix, origin), {})[server] = position
    return found
