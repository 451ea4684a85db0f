"""Servers that a broken total initialisation left without whole data, as the agreements that lead to them tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.left_in_logs import claimed_alone, gone_with_the_data, make_again, save_first
from workbench.diagnosis.repair_sources import best_links_to, failing_links_to, waits_for
from workbench.diagnosis.resets import CLOCKS_APART
from workbench.diagnosis.restart_order import own_first
from workbench.model import Finding, counted, ends, listed, step
from workbench.rules.initialisations import ABORTED, Initialisation
from workbench.systems import format_with
from workbench.systems.ds389.detectors.schema import know_first
from workbench.systems.ds389.detectors.silent import empty_ones, refused_searches
from workbench.systems.ds389.formats.directory import status_code
from workbench.systems.ds389.rules.ldap_results import in_words
from workbench.systems.ds389.session_log.addresses import addresses_of
from workbench.systems.ds389.session_log.change_fixes import take_the_schema
from workbench.systems.ds389.session_log.fillings_begun import fillers, tried_again
from workbench.systems.ds389.session_log.initialisations import (
    BrokenOff,
    broken_off,
    filled_at,
    filled_from_a_file,
    goes_on,
    left_unfilled,
    still_offline,
)
from workbench.systems.ds389.session_log.lines import line_shown, session_logs
from workbench.systems.ds389.session_log.link_fixes import initialise
from workbench.systems.ds389.session_log.refusals import full_at
from workbench.topology.topology import not_collected

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.topology.topology import Link


def initialisation_aborted(context: DetectorContext) -> Iterator[Finding]:
    """Consumers whose last initialisation broke off or did not begin, where nothing tells that they were filled since.

    The server itself need not have been collected: the status of the agreement alone tells it. One whose own vector was
    collected is whole if it exchanges changes with the others.
    """
    told_by_itself = broken_off(context.case, context.topology)
    yield from (_with_what_is_left(context, _by_its_own_log(context, one)) for one in told_by_itself)
    statuses = context.statuses()
    for (consumer, suffix), one in unfilled(context).items():
        unrelated = _is_unrelated(context, consumer, suffix)
        row = statuses[one.supplier, suffix, one.link]
        about: Any = {key: row.get(key) for key in ("file", "offset", "name")}
        about |= {key: row[key].isoformat() for key in ("init_started_at", "init_ended_at") if row.get(key)}
        about["text"] = row["init_status"]  # what another program wrote may name anybody
        link = next(
            x for x in context.topology.links if (x.supplier, x.suffix, x.name) == (one.supplier, suffix, one.link)
        )
        known = link.consumer or (link.failure.means if link.failure else None)
        told: Any = {"server": known, "link": one.link, "suffix": suffix, "evidence": (about,)}
        who = one.consumer if known else f"the server at {one.consumer}"
        found = (_aborted if one.outcome == ABORTED else _not_begun)(context, one, who, _code(row["init_status"]), told)
        # Of one with data of its own UNRELATED_DATA is the root, and this is why. One that claims nothing has none to keep.
        found = (
            replace(found, severity="warning", root="") if unrelated and _has_data(context, consumer, suffix) else found
        )
        yield _with_what_is_left(context, found)


def unfilled(context: DetectorContext) -> dict[tuple[str, str | None], Initialisation]:
    """Server and suffix -> the initialisation that broke off or did not begin, as the agreements that lead there tell."""
    own = {(one.server, one.suffix) for one in broken_off(context.case, context.topology)}
    empty, refusing = (
        left_unfilled(context.once(addresses_of), context.statuses()),
        refused_searches(context),
    )
    found = {}
    for key, one in sorted(empty.items(), key=lambda item: (item[0][1] or "", item[0][0])):
        replica = context.replica(*key)
        gone = _is_unrelated(context, *key) or (replica and replica.empty) or key in refusing
        whole = replica and replica.claims and not (one.outcome == ABORTED and gone)
        if key not in own and not whole:
            found[key] = one
    return found


def _is_unrelated(context: DetectorContext, consumer: str, suffix: str | None) -> bool:
    """True if a pair of servers shows that the data of the consumer are of another beginning."""
    return any(row["unrelated"] and (row["consumer"], row["suffix"]) == (consumer, suffix) for row in context.pairs)


def without_data(context: DetectorContext) -> dict[tuple[str, str | None], bool]:
    """The servers and suffixes without data -> do they show that they have no entry? Of the others, data are gone or coming."""
    broken = {(one.server, one.suffix) for one in broken_off(context.case, context.topology)}
    left = unfilled(context)
    aborted = {
        key
        for key, one in left.items()
        if one.outcome == ABORTED and not (_is_unrelated(context, *key) and _has_data(context, *key))
    }
    gone = {*broken, *aborted, *refused_searches(context), *being_filled(context)}
    return dict.fromkeys(gone, False) | dict.fromkeys(empty_ones(context), True)


def _has_data(context: DetectorContext, server: str, suffix: str | None) -> bool:
    """True if the server shows positions of its own. One that claims nothing has no data to keep."""
    replica = context.replica(server, suffix)
    return replica is not None and not replica.empty


def initialisation_running(context: DetectorContext) -> Iterator[Finding]:
    """Replicas to which new data were coming when all was read, as their own logs or the agreements that lead to them tell."""
    for filling in being_filled(context).values():
        if _is_told_as_aborted(context, filling):
            continue
        down = filling.server in context.topology.down
        yield _with_what_is_left(context, _cut_short(context, filling) if down else _running(filling))


def _is_told_as_aborted(context: DetectorContext, filling: Filling) -> bool:
    """True if the agreement over which the data came tells that it was aborted, and nobody begins it again."""
    aborted = unfilled(context).get((filling.server, filling.suffix))
    if aborted is None or aborted.outcome != ABORTED or not (filling.began and aborted.began and aborted.ended):
        return False
    same = aborted.began - CLOCKS_APART <= filling.began <= aborted.ended + CLOCKS_APART
    return same and not _fillers(context, filling)


@dataclass(frozen=True)
class Filling:
    """New data that were coming to a server.

    by     the links over which they came, each with what its agreement says
    log    what the log of the server says of it; None: nothing
    began  when it began, by that log, else by the agreement
    """

    server: str
    suffix: str | None
    by: Sequence[tuple[Link, Mapping[str, Any]]]
    log: BrokenOff | None
    began: datetime | None

    @property
    def what(self) -> str:
        """The suffix, in words."""
        return self.suffix or "the suffix"

    def told(self) -> tuple[str, tuple[Mapping[str, Any], ...]]:
        """What tells of it, in words and as evidence."""
        at = f" at {self.began:%Y-%m-%d %H:%M:%S} UTC" if self.began else ""
        lines = (line_shown(row, place) for row, place in (self.log.lines if self.log else ()))
        agreements = ({key: row.get(key) for key in ("file", "offset", "name", "init_status")} for _, row in self.by)
        says = (
            f"its errors log says that {self.what} went offline for that{at}, and does not say that it came back"
            if self.log
            else f"that began{at}, and the agreement says that it goes on"
        )
        return says, (*lines, *agreements)


def being_filled(context: DetectorContext) -> dict[tuple[str, str | None], Filling]:
    """The fillings that went on when all was read, by server and suffix."""
    offline = {(one.server, one.suffix): one for one in still_offline(context.case, context.topology)}
    statuses = context.statuses()
    sending: dict[tuple[str, str | None], list[tuple[Link, Mapping[str, Any]]]] = {}
    for link in context.topology.links:
        row = statuses.get((link.supplier, link.suffix, link.name), {})
        if link.consumer and goes_on(context.once(addresses_of), link, row):
            sending.setdefault((link.consumer, link.suffix), []).append((link, row))
    broken = {(one.server, one.suffix) for one in broken_off(context.case, context.topology)}
    found = {}
    for server, suffix in sorted({*offline, *sending} - broken, key=lambda key: (key[0], key[1] or "")):
        by, log = sending.get((server, suffix), []), offline.get((server, suffix))
        began = log.at if log else by[0][1].get("init_started_at")
        replica = context.replica(server, suffix)
        tops = [span.max for span in replica.vector.values() if span.max] if replica else []
        if began and any(made > began for made in map(context.topology.system.moment, tops) if made):
            continue  # it took changes since: the end of a log was not collected
        back = filled_at(session_logs(context.case), server, suffix) if by else None
        if not log and began and back and back >= began:
            continue  # the agreement was read before it had ended, and the server tells that it has
        found[server, suffix] = Filling(server, suffix, by, log, began)
    return found


def _running(filling: Filling) -> Finding:
    server, what, by = filling.server, filling.what, filling.by
    whom = f" by {by[0][0].supplier}, over {by[0][0].name}" if len(by) == 1 else ""
    proof, evidence = filling.told()
    return Finding(
        "INITIALISATION_RUNNING",
        "warning",
        f"{server} was being initialised{whom} when it was read: {proof}",
        server=server,
        suffix=filling.suffix,
        evidence=evidence,
        root=f"new data for {server} were arriving when it was read: it answers nobody for {what} until that ends",
        fix=(
            step(
                f"wait until it has ended, and collect again: the errors log of {server} says that {what} is coming online",
                f"until then {server} answers neither clients nor suppliers for {what}, and what it lacks nothing tells",
                "if that takes far longer than all data need, see nsds5replicaLastInitStatus of the agreement that fills it",
            ),
        ),
    )


def _fillers(context: DetectorContext, filling: Filling) -> list[str]:
    """The suppliers that were filling a server, as their agreements or logs tell, or that go on trying after it went offline."""
    statuses, key = context.statuses(), (filling.server, filling.suffix)
    links = [link for link in context.topology.links if (link.consumer, link.suffix) == key] if filling.log else []
    trying = {link.supplier for link in links if tried_again(statuses.get((link.supplier, link.suffix, link.name), {}))}
    sending = {link.supplier for link, _ in filling.by}
    return sorted(sending | trying | {*fillers(context.once(addresses_of), *key)})


def _cut_short(context: DetectorContext, filling: Filling) -> Finding:
    """The same of a server that could not be read: no data arrive there now."""
    server, what = filling.server, filling.what
    proof, evidence = filling.told()
    names = _fillers(context, filling)
    whom = f" by {listed(names)}" if names else ""
    stopped = [name for name in names if name in context.topology.down]
    starts = listed([server, *stopped])
    why = f"its old data of {what} are gone"
    if names:
        why = f"{listed(names)} {'begins' if len(names) == 1 else 'begin'} that again as soon as both ends answer"
    return Finding(
        "INITIALISATION_RUNNING",
        "warning",
        f"{server} was being initialised{whom} when it stopped, or answered no more: {proof}",
        server=server,
        suffix=filling.suffix,
        evidence=evidence,
        root=f"{server} answers nobody since new data for it were arriving: it has no whole data of {what}",
        fix=(
            *([own] if (own := own_first(context, server, filling.suffix)) else ()),
            step(
                f"start {starts}, and collect again when {server} has been filled"
                + (
                    ""
                    if names
                    else f"; if no supplier begins that again, initialise {server} from one that has all data"
                ),
                why,
                None
                if own
                else f"what only the changelog of {server} has goes when it is filled: copy its database folder first if "
                "clients wrote there",
            ),
        ),
    )


def _with_what_is_left(context: DetectorContext, found: Finding) -> Finding:
    """The same with the changes that only the changelog of the server still has, or only its log of operations tells of."""
    if gone := gone_with_the_data(context, found.server, found.suffix):
        again = make_again(found.server, gone)
        found = replace(
            found,
            summary=f"{found.summary}; its access log shows {counted(len(gone))}, {ends(gone[0], gone[-1])}, that no other "
            "collected server has",
            root=f"{found.root}; {counted(len(gone))} of {found.server} went with the old data, and no other collected server "
            f"has {'it' if len(gone) == 1 else 'them'}"
            if found.root
            else "",
            fix=(*found.fix, again),
        )
    if only := claimed_alone(context, found.server, found.suffix):
        first = step(
            f"save the changelog of {found.server} first, by a copy of its database folder: it may be the last that has its "
            f"changes up to {only}",
            f"no other server that keeps a changelog claims them, and an initialisation makes that of {found.server} anew",
        )
        found = replace(found, fix=(first, *found.fix))
    if not (left := save_first(context.verdicts, found.server, found.suffix)):
        return found
    these, saving = left
    them = "it" if these.startswith("1 ") else "them"
    return replace(
        found,
        summary=f"{found.summary}; its changelog still has {these}, which no other collected server has",
        root=f"{found.root}, which throws away {these.split(', ')[0]} that only its changelog has: save {them} first"
        if found.root
        else "",
        fix=(saving, *found.fix),
    )


def _by_its_own_log(context: DetectorContext, one: BrokenOff) -> Finding:
    """Of a replica that is offline: its RUV may be that of before, and its entries are gone."""
    at = f" at {one.at:%Y-%m-%d %H:%M:%S} UTC" if one.at else ""
    broke = f"new data for {one.server} did not arrive whole{at}"
    open_ways = best_links_to(context, one.server, one.suffix)
    ways = open_ways or failing_links_to(context, one.server, one.suffix)
    suffix = one.suffix or "SUFFIX"
    full = full_at(context.case, one.server, one.at)
    room = "give it more room, then " if full else ""
    first = "" if open_ways or not ways else f"do what LINK_FAILING says of {ways[0].name}, then "
    first += _get_first(context, ways[0].supplier, one.suffix) if ways else ""
    first = know_first(context, one.server, one.suffix) + first
    how = (
        f" from {ways[0].supplier}, {initialise(ways[0].supplier, suffix, ways[0].name)}"
        if ways
        else " from a server that has all data"
    )
    return Finding(
        "INITIALISATION_ABORTED",
        "error",
        f"{broke}: its errors log says that {suffix} went offline for it and that the import failed, and not that it came back. "
        f"Its old data is gone; what its RUV and its changelog say is of before{f'. By the same log {full}' if full else ''}",
        server=one.server,
        suffix=one.suffix,
        evidence=tuple(line_shown(row, place) for row, place in one.lines),
        root=f"{broke}: {one.server} has to be initialised again",
        fix=(
            *_schema_first(context, one.server, one.suffix, one.at),
            step(
                f"{room}{first}initialise {one.server}{how}",
                f"until then {one.server} answers neither clients nor suppliers for {suffix}",
                f"{'' if full else 'find out first why that ended; '}an initialisation whose supplier was stopped may begin "
                "again when that one starts",
            ),
        ),
    )


def _code(sentence: str) -> str:
    """The number that the agreement keeps, in words if it is one of LDAP; empty: there is none, or it says nothing."""
    code = status_code(sentence)
    of_ldap = "LDAP error" in sentence or "connection error" in sentence
    return f" (code {in_words(code) if of_ldap else code})" if code else ""


def _aborted(context: DetectorContext, one: Initialisation, who: str, code: str, told: dict[str, Any]) -> Finding:
    broke = f"the initialisation of {who} by {one.supplier} was aborted{_at(one)}"
    down = one.consumer in context.topology.down
    silent = f"; {who} could not be read when servers were collected, and to start it does not fill it" if down else ""
    fillers = [
        *(["another server"] if _suppliers_unread(context, one.consumer, told["suffix"]) else []),
        *(["a file"] if filled_from_a_file(context.case, one.consumer, told["suffix"], one) is None else []),
    ]
    unless = f", unless {listed(fillers, 'or')} filled it since" if fillers else ""
    first = f"see whether {listed(fillers, 'or')} filled {who} since; if not, " if fillers else ""
    return Finding(
        "INITIALISATION_ABORTED",
        "error",
        f"{broke}{code}: it had replaced the old data of "
        f"{who}, and the new data did not arrive whole; no later initialisation is known to have succeeded{silent}",
        **told,
        root=f"{broke}: {who} has to be initialised again{unless}",
        fix=(
            *_schema_first(context, one.consumer, told["suffix"], one.at),
            _again(context, one, who, told["suffix"], (f"start {who}, then " if down else "") + first),
        ),
    )


def _suppliers_unread(context: DetectorContext, consumer: str, suffix: str | None) -> bool:
    """True if a server may have an agreement with the consumer that was not collected: it may have filled it since."""
    replicas = [one for one in context.topology.replicas if one.suffix == suffix and one.server != consumer]
    telling = {one.server for one in context.inputs if one.kind and format_with(one.kind).tells_links}
    if any(one.server not in telling and one.keeps_log for one in replicas):
        return True
    if any(row["server"] != consumer and row["suffix"] in (None, suffix) for row in not_collected(context.topology)):
        return True
    # One origin that no collected server has is that of the consumer itself.
    unknown = {origin for one in replicas for origin in one.vector} - {one.origin for one in replicas}
    return len(unknown) > 1


def _get_first(context: DetectorContext, source: str, suffix: str | None) -> str:
    """What comes before a server fills another one, with the words that lead on; empty: it waits for nothing."""
    left = waits_for(context, source, suffix)
    return f"let {source} get the {counted(left)} that it waits for (PENDING_CHANGES), then " if left else ""


def _schema_first(
    context: DetectorContext, server: str | None, suffix: str | None, ended: datetime | None
) -> Iterator[Mapping[str, Any]]:
    """What comes before a server is filled again that refused the schema of its supplier: that is sent first each time."""
    since = ended - CLOCKS_APART if ended else datetime.min.replace(tzinfo=UTC)
    for link in context.topology.links if server else ():
        if (link.consumer, link.suffix) == (server, suffix):
            refused = (pc.field("code") == "schema_refused") & (pc.field("link") == link.name)
            refused &= pc.field("at") >= pa.scalar(since, pa.timestamp("us", "UTC"))
            here = context.topology.snapshot
            if any(
                len(rows) for rows in context.rows("messages", ["at"], refused, snapshot=here, server=link.supplier)
            ):
                yield take_the_schema(str(server))
                return


def _not_begun(context: DetectorContext, one: Initialisation, who: str, code: str, told: dict[str, Any]) -> Finding:
    fix = _again(context, one, who, told["suffix"], f"see whether {who} still has to be initialised; if so, ")
    return Finding(
        "INITIALISATION_ABORTED",
        "warning",
        f"{one.supplier} was to initialise {who} and could not begin{_at(one)}{code}; no later initialisation is "
        f"known to have succeeded, and whether {who} has whole data was not collected",
        **told,
        fix=(fix,),
    )


def _at(one: Initialisation) -> str:
    return f" at {one.at:%Y-%m-%d %H:%M:%S} UTC" if one.at else ""


def _again(context: DetectorContext, one: Initialisation, who: str, suffix: str | None, first: str) -> dict[str, Any]:
    what, source, name = suffix or "SUFFIX", one.supplier, one.link
    ways = best_links_to(context, one.consumer, suffix)
    fails = any(
        (link.supplier, link.name) == (source, name) for link in failing_links_to(context, one.consumer or "", suffix)
    )
    if ways and (fails or waits_for(context, source, suffix)):
        source, name = ways[0].supplier, ways[0].name
    elif fails:
        first += f"do what LINK_FAILING says of {name}, then "
    first += know_first(context, one.consumer or "", suffix)
    first += _get_first(context, source, suffix)
    return step(
        f"{first}initialise {who} from {source}, {initialise(source, what, name)}",
        f"{who} takes no changes until an initialisation succeeds; no session delivers the data that did not arrive"
        if one.outcome == ABORTED
        else "an initialisation that did not begin is not tried again by itself",
        f"an initialisation replaces all data of {what} on {who}; find out first why this one ended",
    )
