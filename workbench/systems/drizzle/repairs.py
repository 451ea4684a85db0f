"""The repairs of Drizzle: the transactions that a replica lacks applied in the order of commits, or all data copied anew.

A replica asks for later commits only, so what it lacks before its last one never comes by itself. Rows are read from a log
that holds the transaction whole; the server's log has them, the evidence has not. Everything is read before anything is
planned: a row that cannot be read safely stops the plan at its transaction, and what follows waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.model import Problem, counted, listed
from workbench.repair.plan_types import ALL, SENT, Need, ProposedRepair, Repairs, Step, View
from workbench.replication.stream.diagnosis.contents import left_out
from workbench.replication.stream.diagnosis.log_comparison import Streams
from workbench.replication.stream.diagnosis.not_given import NotGiven, not_given
from workbench.replication.stream.diagnosis.sources import perhaps_lacking
from workbench.replication.stream.plan_model import ONLY_ON
from workbench.replication.stream.plan_records import (
    Record,
    committed_between,
    committed_elsewhere,
    not_understood,
    reached_before,
    records_of,
)
from workbench.replication.stream.rules.repair_model import StreamModel
from workbench.replication.stream.rules.segments import ABORTED, COMMITTED, NUMBER_REUSED, ROLLED_BACK
from workbench.rules.repair_model import MissingAt, Model
from workbench.safety import printable
from workbench.systems.drizzle.confirmation import had_before, thrown_away, was_source
from workbench.systems.drizzle.definitions import defined
from workbench.systems.drizzle.overtaken import Read, overtaken
from workbench.systems.drizzle.rows import Logs, Operation, Place
from workbench.systems.drizzle.sql import changes, opening, parts, script
from workbench.systems.drizzle.start_applier import GAP, StartApplier, is_filled

LOGS = frozenset({"drizzle.transaction-log", "drizzle.replication-log:lines"})
"""The files that rows are read from."""

APPLY, PROVISION = "apply", "provision"

SHOWN = 200
"""So many lines of SQL are shown in the plan; `workbench apply` runs all of them, read from the log once more."""

_NAMED = 5
"""Transactions that a sentence names."""

STOPPED = "APPLIER_STOPPED"

_PREAMBLE = """\
# How a file of SQL is run on a server: change this line where it is not this; the client stops at the first error.
sql() { mariadb --host="$1" --default-character-set=utf8mb4 <"$2"; }
"""


@dataclass(frozen=True)
class Wanted:
    """A transaction to be applied, and where its rows stand. `content` is what counts of it, as the evidence has it."""

    lot: int
    origin: str
    position: str
    content: str
    file: str
    records: tuple[Record, ...]
    rows: str

    def details(self) -> dict[str, Any]:
        """What the hands need of it."""
        records = [[at, length, list(numbers), str(content)] for at, length, numbers, content in self.records]
        about = {"origin": self.origin, "position": self.position, "content": self.content, "file": self.file}
        return about | {"records": records, "rows": self.rows}


def places_of(records: Sequence[Sequence[Any]]) -> list[Place]:
    """The places of a transaction, as the details of a step have them."""
    return [Place(at, length, tuple(numbers), int(content)) for at, length, numbers, content in records]


def operations_of(details: Mapping[str, Any], logs: Logs) -> Iterator[Operation]:
    """What a transaction of a step does, read from its log. Raises Problem if the log is not what it was."""
    yield from logs.at(Path(details["file"])).operations(places_of(details["records"]))


class ApplyTransactions:
    """Apply what a replica lacks, in the order in which its source committed it."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For whatever a replica lacks, as long as a log holds it whole and it can be read."""
        model = view.model
        assert isinstance(model, StreamModel)
        if need.server is None or not need.lacks:
            return
        # What its own applier will bring, it must bring: it does not know what others applied, and would do it again.
        comes = any(link.consumer == need.server for link in model.links)
        lacks = {
            lack.lot for lack in model.missing() | (set() if comes else model.pending()) if lack.server == need.server
        }
        lots = sorted(lacks - model.gone(), key=lambda number: (model.lots[number].origin, model.places[number]))
        if why := _too_early(view, need.server, lots):
            certain = [number for number in lots if MissingAt(need.server, number) in model.missing()]
            if lots and not certain:
                yield ProposedRepair(APPLY, _says(lots, need.server), (), refused=why)
            lots = certain
        if _kept_back(view, need.server, lots)[0]:  # what it is past does not wait for that
            lots = [number for number in lots if MissingAt(need.server, number) in model.missing()] or lots
        steps, why = [], ""
        with Logs() as logs:
            for origin in dict.fromkeys(model.lots[number].origin for number in lots):
                mine = [number for number in lots if model.lots[number].origin == origin]
                wanted, why = _wanted(view, need.server, origin, mine, logs)
                why = why or _overtaken(view, need.server, origin, wanted, logs)
                if wanted:
                    steps.append(_step(view, need.server, origin, wanted, logs))
                if why:
                    break
        if lots:
            load = f"the rows of {counted(len(lots), 'transaction')} on {need.server}"
            asked = had_before(view, need.server, lots) or was_source(view, need.server, lots)
            yield ProposedRepair(APPLY, _says(lots, need.server), tuple(steps), load=load, refused=why, unasked=asked)


def _says(lots: Sequence[int], server: str) -> str:
    return f"apply {counted(len(lots), 'transaction')} to {server} in the order of commits"


def _too_early(view: View, server: str, lots: Iterable[int]) -> str:
    """Why nothing is written to a server that follows all that it has: it may have it by now; empty: it has not.

    What a server is past, it lacks for sure. What follows the end of its log may be there: the log was read earlier than the
    others, and where nobody knows the source, it may be that of the source.
    """
    streams, model = view.context.verdicts.streams, view.model
    assert streams is not None
    if server in streams.torn:
        return (
            f"the log of {server} is cut in its last record, which it may have applied by now: collect it again first"
        )
    passed = {model.lots[lack.lot].origin for lack in model.missing() if lack.server == server}
    mine = sorted({model.lots[number].origin for number in lots} - passed)
    if guessed := [origin for origin in mine if streams.is_open(origin)]:
        return f"{_names_first(guessed)}: {server} may be that server, read before the others"
    return ""


def _kept_back(view: View, server: str, lots: Iterable[int], donor: str | None = None) -> tuple[str, str]:
    """Why what comes before something on its way keeps a server from it; and why a person has to ask for all data of a donor.

    The data of the source have what its log has damaged: a copy of all of them does not go through its log. Whether they have
    what only an earlier log of it shows, nothing tells.
    """
    streams, model, show = view.context.verdicts.streams, view.model, view.context.topology.system.show
    assert streams is not None
    asked = ""
    for origin in sorted({model.lots[number].origin for number in lots}):
        source = streams.source_of(origin)
        for lost in not_given(streams, server, origin):
            if lost.holders and donor in (None, source, *lost.holders):
                continue
            if donor != source or lost.snapshot is not None:
                return _first(streams, origin, lost, "what is on its way", show), ""
            what = "what it lost there" if lost.position is None else show(lost.position)
            asked = asked or (
                f"{lost.says(source or '', what)}, and a copy of all data does not go through that log: first see whether the "
                f"applier of {server} brings it; if not, plan with --for {server} --way {PROVISION}"
            )
    return "", asked


def _wanted(view: View, server: str, origin: str, lots: Sequence[int], logs: Logs) -> tuple[list[Wanted], str]:
    """The transactions of these lots that can be applied, up to the first that cannot; and why that one cannot."""
    streams, show = view.context.verdicts.streams, view.context.topology.system.show
    model = view.model
    assert isinstance(model, StreamModel) and streams is not None
    found: list[Wanted] = []
    lost = not_given(streams, server, origin)
    holders, odd = _readable(view), dict[str, frozenset[str]]()
    without = left_out(streams, server, origin)
    for number in lots:
        position = model.lots[number].last
        name = f"transaction {show(position)} of {origin}"
        before = [one for one in lost if one.place < model.places[number]]
        left = (
            one for one in before if one.position is None or show(one.position) not in {had.position for had in found}
        )
        if first := next(left, None):
            return found, _first(streams, origin, first, name, show)
        if any(one.changed and one.position == position for one in lost):
            return (
                found,
                f"{name} has another content in an earlier log: nothing tells which one was committed (TXN_CONFLICT)",
            )
        if (server, number) in model.unlike:
            return found, f"{name} is there with another content: no row tells which of the two is right"
        held = [one for one in holders if one in model.servers and number in model.servers[one].holds]
        if (server, number) in model.taken:
            held = [name for one in lost if one.position == position for name in one.holders if name in holders]
        source = next(iter(sorted(held, key=lambda one: one != streams.source_of(origin))), None)
        if source is None:
            return found, f"no log that rows can be read from holds {name}"
        row = streams.logs[source].rows_of(origin, [position]).get(position)
        if row is None or row["outcome"] != COMMITTED:
            return found, f"the log of {source} does not hold {name} whole"
        at_source = source == streams.source_of(origin) and row[streams.logs[source].order] == model.places[number]
        if row["why"] == NUMBER_REUSED and not at_source:
            return (
                found,
                f"{name} is one of several that had this number (ID_REUSED): no log tells which one by its number",
            )
        if row["ragged"]:
            return found, (
                f"{name} has {row['ragged']:,} rows that cannot be read safely: whoever applies what follows, to these "
                "tables or others, applies it to other rows than its source did"
            )
        if source not in odd:
            odd[source] = not_understood(streams, source, [model.lots[one].last for one in lots])
        if position in odd[source]:
            return (
                found,
                f"{name} holds what this tool does not know (RECORD_UNKNOWN): it may change what the rest means",
            )
        records = records_of(streams, source, {position: row}, without).get(position, [])
        rows = {table: changed for table, changed in json.loads(row["rows"] or "{}").items() if table not in without}
        one = Wanted(
            number, origin, show(position), str(row["content"]), holders[source], tuple(records), json.dumps(rows)
        )
        kept = sum(sum(changed.values()) for changed in rows.values()) if without else row["kept"]
        if why := _unfit(one, kept, logs):
            return found, f"{name}: {why}"
        found.append(one)
    return found, ""


def _first(streams: Streams, origin: str, lost: NotGiven, name: str, show: Callable[[str], str]) -> str:
    """What has to be done before a transaction (`name`): what the log of the source cannot give comes before it."""
    source = streams.source_of(origin) or ""
    what = "what it lost" if lost.position is None else show(lost.position)
    says = f"{what} comes before {name}, and {lost.says(source, 'it')}"
    after = "whoever goes on behind that misses it for good: "
    if lost.holders:
        return f"{says}; {after}first apply {what} from there"
    if lost.changed:
        return f"{says}; nothing tells which one was committed: first compare the rows of {source} with both (TXN_CONFLICT)"
    if lost.snapshot is not None:
        return f"{says}; {after}first see whether {source} has its rows (GONE_FROM_LOG), and take {what} from {lost.earlier}"
    if lost.earlier:
        return f"{says}; {after}let the applier bring it, or first apply {what} from {lost.earlier}"
    return f"{says}; {after}let the applier bring it, or first take it from a log that has it whole"


def _overtaken(view: View, server: str, origin: str, wanted: Sequence[Wanted], logs: Logs) -> str:
    """Why these would undo what the replica has by now; empty: they would not."""
    streams, model = view.context.verdicts.streams, view.model
    assert isinstance(model, StreamModel) and streams is not None
    source, both = streams.source_of(origin), streams.differences[server, origin]
    files, late = _readable(view), [one for one in wanted if both.shared and model.places[one.lot] < both.shared.covers]
    if not late or source is None or both.shared is None:
        return ""
    first = model.places[late[0].lot]
    counted = [json.loads(one.rows) for one in late]
    # What changes a table or schema as a whole has no rows that would tell its name.
    tables = {table for rows in counted for table in rows} if all(counted) else None
    found = committed_between(streams, source, origin, first, both.shared.covers, tables)
    lacked = {lack.position for lack in (*both.difference.inside, *both.difference.behind)}
    there = {position: row for position, row in found.items() if position not in lacked}
    if there and source not in files:
        return (
            f"the log of {source} cannot be read again: nobody can say whether later transactions changed the same rows"
        )
    records = records_of(streams, source, there)
    show = view.context.topology.system.show

    def read(name: str, place: int, file: str, some: Sequence[Record]) -> Read:
        details = {"file": file, "records": [[*one[:2], list(one[2]), str(one[3])] for one in some]}
        return Read(f"transaction {name}", place, lambda: operations_of(details, logs))

    def mine(places: Iterable[int]) -> list[Read]:
        return [read(one.position, place, one.file, one.records) for one, place in zip(late, places, strict=True)]

    try:
        by_source = overtaken(
            mine(model.places[one.lot] for one in late),
            [read(show(at), row["place"], files[source], records.get(at, [])) for at, row in there.items()],
        )
        if by_source or server not in files:
            return by_source
        # What the source does not know of, the replica's own log tells: its own transactions, and those of other origins.
        since = reached_before(streams, source, server, origin, [model.places[one.lot] for one in late])
        own = committed_elsewhere(streams, server, origin, min(since), tables)
        records = records_of(streams, server, own)
        others = [
            read(f"{show(at)} of {row['origin']}", row["place"], files[server], records.get(at, []))
            for at, row in own.items()
        ]
        return overtaken(mine(since), others)
    except Problem as problem:
        return f"what was committed later cannot be read: {problem}"


def _readable(view: View) -> dict[str, str]:
    """Server -> the log file of it that rows can be read from."""
    replicas = view.context.topology.replicas
    return {one.server: one.log.path for one in replicas if one.log and one.log.kind in LOGS}


def _unfit(one: Wanted, rows: int, logs: Logs) -> str:
    """Why it cannot be applied; empty if it can. All of it is read, and each statement made as it would be run."""
    try:
        definition, changed = parts(operations_of(one.details(), logs))
        if definition:
            defined(definition)
            return ""
        found = sum(change.rows for change in changes(changed))
    except Problem as problem:
        return str(problem)
    return "" if found == rows else f"{found:,} rows of it were found in the log, and {rows:,} were loaded"


def _step(view: View, server: str, origin: str, wanted: Sequence[Wanted], logs: Logs) -> Step:
    show = view.context.topology.system.show
    streams = view.context.verdicts.streams
    assert streams is not None
    undecided = {
        at: streams.at_source(server, origin, at) for at in streams.differences[server, origin].difference.undecided
    }
    void = {show(at): outcome for at, outcome in undecided.items() if outcome in (ROLLED_BACK, ABORTED)}
    unknown = streams.differences[server, origin].counts["unknown"]
    given = {one.position for one in wanted}
    numbers = ", ".join(one.position for one in wanted[:20]) + (
        f" and {len(wanted) - 20:,} more" if len(wanted) > 20 else ""
    )
    says = f"{server} gets {len(wanted):,} transactions of origin {origin}, in the order of commits: {numbers}"
    if without := sorted(left_out(streams, server, origin)):
        says += f", without what they did to {', '.join(without)}: {server} has nothing of that in others (CONTENT_NOT_COMPARED)"
    source = streams.source_of(origin) or ""
    taken = [one for one in not_given(streams, server, origin) if one.position and show(one.position) in given]
    says += "".join(f"; {show(one.position or '')} comes from another log: {one.says(source, 'it')}" for one in taken)
    unknown -= len(taken)
    still_to_come = {show(one.position or "") for one in taken}
    still_to_come |= {show(lack.position) for lack in streams.differences[server, origin].difference.behind}
    behind = [change.position for change in wanted if change.position in still_to_come]
    if void:
        told = ", ".join(f"{position} ({outcome.replace('_', ' ')})" for position, outcome in void.items())
        says += f"; what it has of {told} is discarded, as at the source"
    return Step(
        key=f"apply-{origin}-to-{server}",
        repair=APPLY,
        server=server,
        on=server,
        suffix=view.suffix,
        says=says,
        stands_on=f"the applier of {server} stands still, nobody writes there, and the logs are those that were loaded",
        expects=f"{server} notes all of them in replication_workbench.applied, each written together with its rows",
        risk="a row that is not as it has to be stops it before its transaction, and nothing of that one is done. Of an update "
        "whose rows changed other columns than its header lists, but as many and of the same types, no reader can tell"
        + (f". The log of {server} does not prove the arrival of {counted(unknown, 'transaction')}" if unknown else "")
        + (_applied_twice(server, behind) if behind else "")
        + _passes_over(streams, server, origin, wanted, show),
        cannot_undo="the stream has no rows as they were before: take a copy of the tables first",
        commands=(("sql", server, SENT),),
        sends=_preview(wanted, logs),
        changes=len(wanted),
        effects=({"do": "give", "server": server, "lots": [one.lot for one in wanted]},),
        details={"transactions": [one.details() for one in wanted], "discard": void},
        assumes=streams.assumes(origin),
    )


def _passes_over(
    streams: Streams, server: str, origin: str, wanted: Sequence[Wanted], show: Callable[[str], str]
) -> str:
    """What only other copies have among what a server is given: if the source made it, the server misses it then."""
    both = streams.differences[server, origin]
    last = both.shared.last if both.shared else None
    positions = {one.position for one in wanted}
    having: dict[str, set[str]] = {}
    for (name, of), other in sorted(streams.differences.items()):
        if of != origin or name == server or not other.difference.errant or streams.is_open(origin):
            continue
        log = streams.logs[name]
        rows = log.rows_of(origin, [*other.difference.errant, *([last] if last else [])])
        given = [row[log.order] for row in log.commits(-1, None, origin) if show(row["position"]) in positions]
        begins = rows[last][log.order] if last in rows else -1
        for at in other.difference.errant:
            if at in rows and begins < rows[at][log.order] < max(given, default=-1):
                having.setdefault(show(at), set()).add(name)
    if not having:
        return ""
    names, them = sorted({name for of in having.values() for name in of}), "it" if len(having) == 1 else "them"
    return (
        f". The log of {listed(names)} has {listed([*having], 'and', _NAMED)} among these, which the log of "
        f"{streams.source_of(origin)} lacks (STRANDED_CHANGE): if {streams.source_of(origin)} made {them}, {server} misses "
        f"{them} for good once it is past {them}"
    )


def _applied_twice(server: str, behind: Sequence[str]) -> str:
    """What the own applier of a server does with transactions that it has yet to come to."""
    them, those = ("it", "1 transaction") if len(behind) == 1 else ("them", f"{len(behind):,} transactions")
    return (
        f". The applier of {server} has {those} still before it (from {behind[0]} on), and does not know what was done here: "
        f"started as it stands, it applies {them} once more and stops at a row that is there. If it can be started, start it "
        f"instead of this step; else tell it first to go on behind {behind[-1]}"
    )


def _preview(wanted: Sequence[Wanted], logs: Logs) -> str:
    """The first lines of the SQL."""
    lines = list(islice(_sql([one.details() for one in wanted], logs), SHOWN + 1))
    more = "-- and so on: all of it is read from the log once more, by `workbench apply` and for a bundle\n"
    return "".join([*lines[:SHOWN], *([more] if len(lines) > SHOWN else [])])


def _sql(transactions: Iterable[Mapping[str, Any]], logs: Logs) -> Iterator[str]:
    yield from opening()
    for one in transactions:
        yield f"-- transaction {one['position']} of {one['origin']}: {printable(one['rows'])}\n"
        yield from script(operations_of(one, logs), one["origin"], one["position"], one["content"])


def _whole(step: Step) -> Iterator[str]:
    """All that a step sends, read from the log."""
    if step.repair != APPLY:
        yield step.sends
        return
    with Logs() as logs:
        yield from _sql(step.details["transactions"], logs)


def _names_first(origins: Sequence[str]) -> str:
    """Why nothing may be copied over what differs as long as nobody knows which log is the source."""
    options = " ".join(f"--source {origin}=SERVER" for origin in origins)
    return f"nobody knows which of two contents is right: name the server that makes these transactions ({options})"


def _also(view: View, model: Model) -> Iterator[Need]:
    """Appliers that stand still, and commits that no queue will ever ask for again."""
    for link in model.links:
        if not link.runs:
            yield Need(STOPPED, view.suffix, link.consumer)
    for server in dict.fromkeys(one.server for one in view.about(GAP)):  # several findings may be about one queue
        if server is not None and not is_filled(model, server):
            yield Need(GAP, view.suffix, server)


class Provision:
    """Copy all data of a server that has everything."""

    def propose(self, view: View, need: Need) -> Iterator[ProposedRepair]:
        """For what no log tells, or tells in two ways; from a server that lacks nothing."""
        model = view.model
        assert isinstance(model, StreamModel)
        if need.server is None or not need.lacks:
            return
        streams = view.context.verdicts.streams
        assert streams is not None
        lots = {lack.lot for lack in need.lacks}
        sure = model.missing() & need.lacks or any((need.server, lot) in model.unlike for lot in lots)
        early = "" if sure else _too_early(view, need.server, lots)
        # Whoever copies from a server with transactions of its own spreads them.
        own = {
            name
            for name, one in model.servers.items()
            if any((model.lots[number].within or "").startswith(ONLY_ON) for number in one.holds)
        }
        whole = (name for name, one in model.servers.items() if name not in {need.server, *own} and lots <= one.holds)
        origins = sorted({model.lots[number].origin for number in lots})
        guessed = [origin for origin in origins if streams.is_open(origin)]
        made = [code for origin in origins for code in streams.assumes(origin)]
        inside = [one for one in sorted(lots) if MissingAt(need.server, one) in model.missing()]
        compared = inside and not any((need.server, lot) in model.unlike for lot in lots)
        for source in sorted(whole)[:2]:
            says = f"copy all data of {source} to {need.server}"
            kept, asked = ("", "") if sure or early else _kept_back(view, need.server, lots, source)
            todo = f"on {source}: write a consistent copy of all schemas; on {need.server}: replace all data by it, and tell its "
            todo += "applier from which commit to go on, with an empty queue\n"
            step = Step(
                key=f"provision-{need.server}",
                repair=PROVISION,
                server=need.server,
                on=need.server,
                suffix=view.suffix,
                says=f"{need.server} gets all data of {source} in place of its own",
                stands_on=f"{source} has all that {need.server} has, or that is to be thrown away"
                + (_not_alike(view, model, inside, source, need.server) if compared else ""),
                expects="`workbench diagnose` of new logs shows nothing missing",
                risk=f"what only {need.server} has is thrown away",
                cannot_undo=f"the data of {need.server} is replaced: keep a copy of it",
                sends=printable(todo.rstrip()) + "\n",
                changes=ALL,
                effects=({"do": "initialise", "source": source, "server": need.server},),
                assumes=tuple(dict.fromkeys([*made, *streams.assumes_of_queue(need.server)])),
            )
            yield ProposedRepair(
                PROVISION,
                says,
                (step,),
                "all data, once",
                f"{need.server} until it is done",
                "it is done by hand",
                early
                or kept
                or perhaps_lacking(view.context, view.suffix, source, need.server)
                or (
                    _names_first(guessed) if guessed and any((need.server, lot) in model.unlike for lot in lots) else ""
                ),
                asked or thrown_away(view, need.server) or was_source(view, need.server, lots),
            )


def _not_alike(view: View, model: StreamModel, lots: Sequence[int], source: str, server: str) -> str:
    """What is to be compared before all data are copied: a later transaction may have written the same rows on both servers."""
    show = view.context.topology.system.show
    names = listed([show(model.lots[one].last) for one in lots], "and", _NAMED)
    differ = f"the rows that {names} changed differ between {source} and {server}"
    return f"; and {differ}: where they are alike, nothing is to be done"


def _checks(servers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    yield from ()


REPAIRS = Repairs(
    ladder=(ApplyTransactions(), StartApplier(), Provision()),
    checks=_checks,
    ending="sql",
    by_hand="The SQL runs in the client of the server, which has to stop at the first error; it notes each transaction that it "
    "applies in replication_workbench.applied, and applies none twice.",
    checked="replication_workbench.applied on each replica shows what was applied.",
    stuck=(STOPPED,),
    conflict="TXN_CONFLICT",
    also=_also,
    preamble=_PREAMBLE,
    whole=_whole,
)
