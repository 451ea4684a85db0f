"""The finding ENTRIES_DIFFER: collected entries that are not the same on all servers, although no vector and no log tells why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.diagnosis.adding_again import apart_meanwhile
from workbench.diagnosis.contents import LOOKED_AT, Contents, Difference
from workbench.diagnosis.former_suppliers import compare_unsent, unsent_of
from workbench.diagnosis.fractional import alike_first
from workbench.diagnosis.left_out_changes import left_out_by_links
from workbench.diagnosis.missed_renames import left_by_missed_renames
from workbench.diagnosis.one_name_twice import restart_first, shown_twice, told_of_twice
from workbench.diagnosis.repair_sources import a_supplier, lacking_what_it_has, sources_for_writing, sources_that_fill
from workbench.diagnosis.replaced_data import replaced_after
from workbench.diagnosis.shown_by_entries import clients_first
from workbench.engine.selective_read import rows_where
from workbench.model import ITEMS_SHOWN, Finding, counted, first_few, listed, step
from workbench.rules.contents import LIVE, name_of
from workbench.systems import format_with

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext

_NAMED = 3
"""Entries that a sentence names."""

_MISSING, _LEFT, _VALUES, _NAME, _SOME = "missing", "not deleted", "values", "name", "on some"
_SAYS = {
    _SOME: ("entry is not on all of them", "entries are not on all of them"),
    _MISSING: ("entry is missing there", "entries are missing there"),
    _LEFT: ("entry is still there although it was deleted", "entries are still there although they were deleted"),
    _VALUES: ("entry has other values", "entries have other values"),
    _NAME: ("entry has another name", "entries have other names"),
}

_DELETED_OR_LOST = (
    "; servers remember a deletion for less time than has gone by: either an entry was lost where it is missing, or it was "
    "deleted, and whoever has it lost the deletion"
)


def entries_differ(context: DetectorContext) -> Iterator[Finding]:
    """Entries that differ between servers of one beginning: a finding for each server that stands alone, one for what is open."""
    lost, left = _lost_deletions(context), left_by_missed_renames(context)
    left |= left_out_by_links(context.verdicts.missing)
    show = context.topology.system.show
    for contents in context.verdicts.contents:
        alone: dict[str, list[Difference]] = {}
        open_: list[Difference] = []
        spelt: list[Difference] = []
        for one in contents.unexplained():
            if one.spelt:
                spelt.append(one)
                continue
            if not one.others and not _deletion_lost(contents, one, lost):
                open_.append(one)
            for server in one.servers if one.others else ():
                if (server, contents.suffix, show(one.position) if one.position else "") not in left:
                    alone.setdefault(server, []).append(one)
        for server, differences in sorted(alone.items()):
            together = [differences]
            if not _alike(differences):
                by_others: dict[tuple[str, ...], list[Difference]] = {}
                for one in differences:
                    by_others.setdefault(one.others, []).append(one)
                together = list(by_others.values())
            for some in together:
                yield _on(context, contents, server, some)
        if open_:
            yield _open(context, contents, open_)
        if spelt:
            yield _spelt(contents, spelt)


def _lost_deletions(context: DetectorContext) -> dict[tuple[str, str | None, str], str]:
    """Server, suffix and name of an entry -> the deletion that it missed, which some log names."""
    return {
        (row["server"], row["suffix"], name_of(row["target"])): row["position"]
        for row in context.verdicts.missing
        if row["operation"] == "delete" and row["target"]
    }


def _deletion_lost(contents: Contents, one: Difference, lost: Mapping[tuple[str, str | None, str], str]) -> bool:
    """True if each server that has a whole entry alone missed its deletion: then it is known who is right."""
    having = {name: held for name, held in contents.held[one.entry].items() if held.status == LIVE}
    missed = {name: lost.get((name, contents.suffix, name_of(held.target)), "") for name, held in having.items()}
    known = all(missed[name] > min(held.made(), default="~") for name, held in having.items())
    return known and bool(having) and not one.attribute


def _alike(differences: Iterable[Difference]) -> set[str]:
    """The servers that share none of the differences."""
    return set[str].intersection(*({*one.others} for one in differences))


def _on(context: DetectorContext, contents: Contents, server: str, differences: Sequence[Difference]) -> Finding:
    """What one server has otherwise than the others."""
    refill = context.topology.system.refill
    others = sorted(_alike(differences))
    writer, feeder = _sources(context, contents, server, others)
    entries = {one.entry for one in differences}
    them = "that" if len(others) == len(entries) == 1 else "those"
    root = f"{counted(len(entries), 'entry', 'entries')} of {server} {_differ(entries)} from {them} of {listed(others)}"
    replaced = replaced_after(
        context, server, contents.suffix, _marks_of_others(contents, server, differences), whole=False
    )
    root += f" ({replaced})" if replaced else ""
    every = {one.entry for one in contents.differences if server in one.servers and not one.spelt}
    root += f", beside {len(every - entries):,} by changes that it missed" if every - entries else ""
    twice = shown_twice(contents, server, differences)
    write = _again(context, contents, differences, server, writer, others[0])
    movable = not _takes_a_name(contents, server, differences)
    deletable = movable and bool(_deletes(contents, differences, server))
    if not deletable:
        write = f"{refill} {server}, over an agreement from {others[0]}"
    # A server that lacks an entry refuses its deletion (32) and passes on what follows: who gets it from there first never gets
    # the deletion, and what is added again becomes a conflict.
    passes_on = any((link.supplier, link.suffix) == (server, contents.suffix) for link in context.topology.links)
    lacks_entries = any(_kind(contents, one, [server]) == _MISSING for one in differences)
    bring = f"{write}, or {refill} {server} from {feeder}" if feeder else write
    bring = f"{refill} {server} from {feeder}" if feeder and (not deletable or (passes_on and lacks_entries)) else bring
    writes = any(one.server == server and one.origin for one in contents.alike.replicas)
    where = "there" if writes else "on a supplier"
    own = f"if the data of {server} is the right one, write it {where} as ordinary changes instead"
    unnamed = _unnamed(contents, server, differences)
    unsent = unsent_of(context, server, contents.suffix)
    covers = f"although the vector of {server} covers what the others show"
    if unsent:
        covers = f"and {server} made changes of origin {listed(unsent)} that others wait for, as an origin that it had before"
    if unnamed:
        covers = f"and the vector of {server} does not name origin {listed(unnamed)}, of which the others show changes"
    cleaned = _cleaned(contents, server, unnamed)
    if cleaned:
        when = " and ".join(f"{origin} at {at:%Y-%m-%d %H:%M:%S} UTC" for origin, at in cleaned.items())
        covers = f"and {server} cleaned origin {when}, of which the others show changes"
    return Finding(
        "ENTRIES_DIFFER",
        "error" if any(_lost(contents, server, one) for one in differences) else "warning",
        f"{root}, {covers}: "
        f"{_told(contents, differences, [server])}{told_of_twice(contents, server, twice) if twice else ''}{_cut(contents)}",
        server=server,
        suffix=contents.suffix,
        items=tuple(sorted({one.position for one in differences if one.position}))[:ITEMS_SHOWN],
        evidence=first_few(_row(contents, one, server) for one in differences),
        root=root,
        fix=(restart_first(server),)
        if twice
        else _after_cleaning(server, write, feeder, others, refill)
        if cleaned
        else (_named_again(context, contents.suffix, server, unnamed),)
        if unnamed
        else (compare_unsent(server, unsent),)
        if unsent
        else (
            *alike_first(context, server, contents.suffix),
            *clients_first(context, server, contents.suffix),
            *_lacked_first(server, sorted(lacking_what_it_has(context, server, contents.suffix).intersection(others))),
            step(
                bring,
                f"{replaced or f'the data of {server} was changed or lost past replication, or a link left attributes out'}; no "
                "session sends it again: the vector says that it is there",
                f"{own}; to {refill} {server} throws away what only it has" if feeder else own,
            ),
        ),
    )


def _takes_a_name(contents: Contents, server: str, differences: Iterable[Difference]) -> bool:
    """True if an entry has a name on the server that is another living entry's elsewhere: what is written to that name is that
    one's, and the two names have to change places in the right order on all servers.
    """
    return any(
        mine and _namesakes(contents, replace(one, target=mine)) - {server}
        for one in differences
        for mine, _ in [_names(contents, server, one)]
    )


def _names(contents: Contents, server: str, one: Difference) -> tuple[str, str]:
    """The name of an entry on the server, and the one that it has on the others; both empty where they are the same."""
    held = contents.held[one.entry]
    mine = held[server].target if held[server].status == LIVE else ""
    there = next((held[name].target for name in one.others if held[name].status == LIVE), "")
    return (mine, there) if mine and there and name_of(mine) != name_of(there) else ("", "")


def _marks_of_others(contents: Contents, server: str, differences: Iterable[Difference]) -> Iterator[str]:
    """What others show as made last of each of what differs."""
    change_of = contents.evidence.system.change_of
    for one in differences:
        there = [held for name, held in contents.held[one.entry].items() if name != server]
        marks = {mark for held in there for mark in (held.positions(one.attribute) if one.attribute else held.made())}
        if marks:
            yield change_of(max(marks))


def _unnamed(contents: Contents, server: str, differences: Sequence[Difference]) -> list[str]:
    """The origins of changes that others show in these entries, and that the RUV of the server does not name: it was cleaned."""
    system = contents.evidence.system
    mine = next(one for one in contents.alike.replicas if one.server == server)
    known, found = {*mine.vector, *contents.exports[server].claimed, mine.origin}, set[str]()
    for one in differences if mine.claims else ():
        for other in one.others:
            there = contents.held[one.entry][other]
            shown = there.positions(one.attribute) if one.attribute and one.attribute != "dn" else there.changes
            found |= {system.origin_of(position) for position in shown}
    return sorted(found - known)


def _cleaned(contents: Contents, server: str, unnamed: Sequence[str]) -> dict[str, datetime]:
    """When a server cleaned these origins last, as its log tells; empty if it does not tell that of each, or a server has one."""
    evidence = contents.evidence
    if any(one.origin in unnamed for one in contents.alike.replicas):
        return {}
    told = pc.field("code") == evidence.shown.proving.cleaned
    where = told & pc.field("origin").isin(pa.array(unnamed, pa.string())) & pc.field("at").is_valid()
    rows = rows_where(evidence.parts("messages", server) if unnamed else [], ["at", "origin"], where).to_pylist()
    found = {row["origin"]: row["at"] for row in sorted(rows, key=lambda row: row["at"])}
    return found if len(found) == len(unnamed) else {}


def _after_cleaning(
    server: str, write: str, feeder: str, others: Sequence[str], refill: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What brings a server what others show of an origin that it cleaned."""
    return (
        step(
            f"restart {server}, unless it was restarted since the cleaning",
            "before that it drops what comes of an origin that it cleaned",
        ),
        step(
            f"{write}, or {refill} {server} from {feeder}" if feeder else write,
            "no session sends changes of an origin that was cleaned",
            f"do not {refill} {listed(others)} before that: what only {listed(others)} {'has' if len(others) == 1 else 'have'} "
            "would go",
        ),
    )


def _named_again(
    context: DetectorContext, suffix: str | None, server: str, unnamed: Sequence[str]
) -> Mapping[str, Any]:
    telling = {one.server for one in context.inputs if one.kind and format_with(one.kind).tells_links}
    sending = {link.supplier for link in context.topology.links if link.suffix == suffix}
    makers = [one for one in context.topology.replicas if one.suffix == suffix and one.origin in unnamed]
    apart = sorted(one.server for one in makers if one.server in telling - sending)
    if apart and len(apart) == len(unnamed):
        of = listed(apart)
        return step(
            f"make an agreement from {of} to another supplier, or make {of} read-only again and write on another supplier "
            f"what it alone has",
            f"no link leads from {of}: nothing that is made there reaches {server}",
            f"do not {context.topology.system.refill} {of} before that: what only it has would go",
        )
    return step(
        f"find out first why the RUV of {server} does not name origin {listed(unnamed)}: if it was cleaned of that, it drops "
        "what comes of it until it is restarted",
        f"as long as {server} drops the changes of an origin, a change that is written there does not arrive",
        f"write nothing again, and fill nothing, before that; save what only the server of origin {listed(unnamed)} has",
    )


def _deletes(contents: Contents, differences: Sequence[Difference], server: str) -> str:
    """Where entries that were deleted elsewhere are to be deleted: on the server, or on a supplier that has them under that name.

    Empty: on none. Another entry may bear the name on the suppliers, and a deletion would be that one's.
    """
    left = [one for one in differences if _kind(contents, one, [server]) == _LEFT]
    if not left:
        return server
    suppliers = {one.server for one in contents.alike.replicas if one.origin}
    for name in sorted(suppliers, key=lambda other: (other != server, other)):
        there = [contents.held[one.entry].get(name) for one in left]
        if all(
            held and held.status == LIVE and name_of(held.target) == name_of(one.target)
            for held, one in zip(there, left, strict=True)
        ):
            return name
    return ""


def _again(
    context: DetectorContext,
    contents: Contents,
    differences: Sequence[Difference],
    server: str,
    writer: str,
    shows: str,
) -> str:
    """What brings entries once more to a server, and takes from it what others have deleted.

    Values alone move no entry, and a server refuses what is written to an entry that it does not have.

    writer  who has the right data and takes writes; empty: all that have it (`shows` is one of them) are read-only
    """
    kinds = {_kind(contents, one, [server]) for one in differences}
    at = writer or a_supplier(context, contents.suffix)
    as_shown = "" if writer else f", as {shows} shows them,"
    if kinds == {_NAME}:
        return (
            f"give the topmost of these entries another name or parent and then its right one{as_shown} again on {at}"
        )
    on = _deletes(contents, differences, server)
    if kinds == {_LEFT}:
        return f"delete these entries on {on} if they are meant to be gone"
    done = []
    if _MISSING in kinds:
        again = "save those entries that are missing, delete them and add them again"
        done.append(again if writer else f"add those entries that are missing{as_shown.rstrip(',')}")
    if kinds - {_MISSING, _NAME, _LEFT}:
        these = "those that have other values" if _MISSING in kinds else "these entries"
        done.append(f"write the values of {these}{as_shown} once more")
    if _NAME in kinds:
        done.append("rename those of another name away and back")
    left = f"; on {on}, delete those that are meant to be gone" if _LEFT in kinds else ""
    missing = {difference.entry for difference in differences if _kind(contents, difference, [server]) == _MISSING}
    absent = {name for entry in missing for name, held in contents.held[entry].items() if held.status != LIVE}
    off, again = apart_meanwhile(context, absent, contents.suffix, writer) if absent and writer else ("", "")
    return (
        f"{off and f'{off}; '}on {at}, {listed(done, most=len(done))}{left}{again and f'; then {again}'}"
        if done[1:] or _MISSING in kinds
        else f"{done[0]} on {at}{left}"
    )


def _open(context: DetectorContext, contents: Contents, differences: Sequence[Difference]) -> Finding:
    """What differs so that nothing tells which server is right."""
    servers = sorted({server for one in differences for server in one.servers})
    entries = {one.entry for one in differences}
    whole = {one.entry for one in differences if not one.attribute}
    root = f"{counted(len(entries), 'entry', 'entries')} {_differ(entries)} between {listed(servers)}"
    alone = _alone_with(contents, whole) if whole == entries else ""
    if alone:
        root = f"{counted(len(entries), 'entry', 'entries')} {'is' if len(entries) == 1 else 'are'} on {alone} only"
    old = any(there.made() for entry in whole for there in contents.held[entry].values())
    return Finding(
        "ENTRIES_DIFFER",
        "error" if any(_lost(contents, server, one) for one in differences for server in one.servers) else "warning",
        f"{root}, and neither a vector nor a log tells which is right: {_told(contents, differences, servers)}"
        f"{_DELETED_OR_LOST if old else ''}{_cut(contents)}",
        suffix=contents.suffix,
        evidence=first_few(_row(contents, one, server) for one in differences for server in one.servers),
        root=root,
        fix=(
            *(first for server in servers for first in clients_first(context, server, contents.suffix)),
            _on_one_only(context, alone)
            if alone
            else step(
                "compare these entries (the page Entries of `workbench lab` shows both sides), find out which data is right, and "
                "write it once more on a server that has it",
                "no session sends it again: the vectors say that it is there",
                f"do not {context.topology.system.refill} a server before it is known which one is right",
            ),
        ),
    )


def _alone_with(contents: Contents, entries: Iterable[str]) -> str:
    """The one server that has all these entries; empty: there is none."""
    holders = {name for entry in entries for name, held in contents.held[entry].items() if held.status == LIVE}
    return holders.pop() if len(holders) == 1 else ""


def _on_one_only(context: DetectorContext, server: str) -> Mapping[str, Any]:
    """What to do about entries that one server has, and of which nothing is known elsewhere."""
    return step(
        f"find out whether clients added these entries on {server} while it did not replicate, or whether they were deleted "
        f"elsewhere. If they are to stay, save them, delete them on {server} and add them again on a supplier; if not, delete "
        f"them on {server}",
        "no session sends them as they are: the vectors say that all is there; what is added again is sent",
        f"do not {context.topology.system.refill} {server} before they are saved: no other server has them; an entry that is "
        "added again has another unique ID",
    )


def _spelt(contents: Contents, differences: Sequence[Difference]) -> Finding:
    """Values that one change made, and that servers spell in two ways."""
    entries = {one.entry for one in differences}
    names = sorted({f"{one.target} ({one.attribute})" for one in differences})
    few = "; ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
    return Finding(
        "ENTRIES_DIFFER",
        "info",
        f"values of {counted(len(entries), 'entry', 'entries')} differ between servers only in letter case, spaces or hyphens, "
        f"and the same change made them: {few}; each server keeps the spelling of equal values that came to it first",
        suffix=contents.suffix,
        evidence=first_few(_row(contents, one, server) for one in differences for server in one.servers),
    )


def _sources(context: DetectorContext, contents: Contents, server: str, others: Sequence[str]) -> tuple[str, str]:
    """Who has the right data: one that it can be written on, and one that a link leads from; empty: there is none."""
    writers = sources_for_writing(context, others, server, contents.suffix)
    lacking = lacking_what_it_has(context, server, contents.suffix)
    whole = [name for name in others if name not in lacking]
    feeders = sources_that_fill(context, whole, server, contents.suffix)
    return next(iter(writers), ""), next(iter(feeders), "")


def _lacked_first(server: str, lacking: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """What comes first where the others lack changes: the difference may be of these."""
    if lacking:
        yield step(
            f"do what MISSED_CHANGE says of {listed(lacking, most=_NAMED)} first, then collect and diagnose again",
            f"these servers miss changes that {server} has or may have, and the difference may come from that",
        )


def _differ(entries: Iterable[str]) -> str:
    return "differs" if len({*entries}) == 1 else "differ"


def _kind(contents: Contents, one: Difference, servers: Iterable[str]) -> str:
    """In what an entry differs."""
    if one.attribute == "dn":
        return _NAME
    if one.attribute:
        return _VALUES
    there = all(contents.held[one.entry][server].status == LIVE for server in servers)
    return _LEFT if there else _MISSING


def _lost(contents: Contents, server: str, one: Difference) -> bool:
    """True if the server lacks an entry, a deletion or a value that another one has."""
    if one.position or not one.attribute:
        return True
    held = contents.held[one.entry]
    mine = held[server].present.get(one.attribute, {})
    if one.attribute in held[server].secret and "" in mine:
        return False  # without a position: lost, or made anew by the server itself
    others = (
        value
        for name, there in held.items()
        for value in there.present.get(one.attribute, {})
        if name != server and (value or one.attribute not in there.secret)
    )
    return any(value not in mine for value in others)


def _told(contents: Contents, differences: Sequence[Difference], servers: Sequence[str]) -> str:
    """How many entries differ in what, the first of them by name."""
    kinds: dict[str, dict[str, tuple[str, set[str]]]] = {}
    for one in differences:
        mine = [server for server in one.servers if server in servers]
        kind = _kind(contents, one, mine) if one.attribute or one.others else _SOME
        here, there = _names(contents, mine[0], one) if mine else ("", "")
        name = f"{there}, which is {here} on {mine[0]}" if here else one.target
        _, names = kinds.setdefault(kind, {}).setdefault(one.entry, (name, set()))
        names.update({one.attribute} - {"", "dn"})
        if not one.attribute and not one.others:
            having = [name for name, held in sorted(contents.held[one.entry].items()) if held.status == LIVE]
            namesakes = sorted(_namesakes(contents, one) - {*having})
            names.add(
                f"on {listed(having)} only{f', and another one of that name on {listed(namesakes)}' if namesakes else ''}"
            )
    said = []
    for kind, says in _SAYS.items():
        if entries := sorted(kinds.get(kind, {}).values(), key=lambda entry: entry[0]):
            few = [f"{target} ({', '.join(sorted(names))})" if names else target for target, names in entries[:_NAMED]]
            more = ["…"] if len(entries) > _NAMED else []
            said.append(f"{counted(len(entries), *says)} ({'; '.join([*few, *more])})")
    return ", ".join(said)


def _namesakes(contents: Contents, one: Difference) -> set[str]:
    """The servers on which another entry has the name of an entry: it was added there, too, and has a unique ID of its own."""
    return {server for entry, server in contents.bearers.get(name_of(one.target), ()) if entry != one.entry}


def _cut(contents: Contents) -> str:
    if contents.unequal.whole:
        return ""
    return f"; {contents.unequal.total:,} entries are unequal, and only {LOOKED_AT:,} of them were looked into"


def _row(contents: Contents, one: Difference, server: str) -> Mapping[str, Any]:
    """A row of evidence: names and positions; values are data."""
    held = contents.held[one.entry]
    made = {
        other: ", ".join(sorted({position or "no position" for position in there.present[one.attribute].values()}))
        for other, there in held.items()
        if one.attribute in there.present
    }
    return {
        "server": server,
        "entry": one.entry,
        "target": one.target,
        "attribute": one.attribute or None,
        "what": _kind(contents, one, [server]),
        "position": one.position,
        "here": made.get(server) or (held[server].status if not one.attribute else "no value"),
        "there": "; ".join(
            f"{other}: {made.get(other) or ('no value' if one.attribute else held[other].status)}"
            for other in sorted(held)
            if other != server
        ),
    }
