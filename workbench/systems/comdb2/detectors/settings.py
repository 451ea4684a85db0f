"""Settings that make loss, or a false tree, likely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from workbench.model import Finding, first_few, step
from workbench.systems.comdb2.detectors.shown import each, is_files_behind, not_stopped_before, some, tiers_of
from workbench.systems.comdb2.rules import V2023
from workbench.systems.comdb2.sql import set_state
from workbench.systems.comdb2.tiering import named_in_file

if TYPE_CHECKING:
    from workbench.diagnosis.detector_context import DetectorContext
    from workbench.replication.tier.diagnosis.node_verdicts import Tiers

Unsafe = tuple[str, str, str, str, Callable[[str], bool]]
"""Severity, setting, what it does, what to do, and which values are meant."""


def _off(value: str) -> bool:
    return value.upper() in ("OFF", "N", "NO", "FALSE", "0")


def _on(value: str) -> bool:
    return value.upper() in ("ON", "Y", "YES", "TRUE", "1")


UNSAFE: tuple[Unsafe, ...] = (
    (
        "warning",
        "physrep_verify_source_range",
        "a node is offered sources that have deleted the files it needs",
        "switch it on",
        _off,
    ),
    (
        "warning",
        "physrep_filter_by_class",
        "a node of production may pull from one of a test class",
        "switch it on",
        _off,
    ),
    (
        "warning",
        "revsql_allow_command_execution",
        "whoever connects in reverse may run commands; it is meant for tests",
        "switch it off",
        _on,
    ),
    (
        "warning",
        "blocking_physrep",
        "a replicant asks again and again instead of waiting for the next record",
        "switch it on",
        _off,
    ),
    (
        "info",
        "physrep_max_rollback",
        "a source may be chosen that is that many files behind, and the node cuts its own log back to it",
        "set 0 if that is not meant",
        lambda value: value.isdigit() and int(value) > 0,
    ),
)


def unsafe_settings(context: DetectorContext) -> Iterator[Finding]:
    """Settings of nodes by which something can be lost or looks other than it is."""
    tiers = tiers_of(context)
    nodes = sorted(tiers.seen.settings)
    for severity, setting, does, do, meant in UNSAFE:
        set_so = [name for name in nodes if (value := tiers.seen.tunable(name, setting)) is not None and meant(value)]
        if set_so:
            value = tiers.seen.tunable(set_so[0], setting)
            yield Finding(
                "UNSAFE_SETTING",
                severity,
                f"{setting} is {value} on {some(set_so)}: {does}",
                server=set_so[0],
                evidence=first_few(
                    {"node": name, "setting": setting, "value": tiers.seen.tunable(name, setting)} for name in set_so
                ),
                fix=(step(f"{do}: put tunable {setting}, and in the configuration file", does),),
            )
    yield from _fanout_of_one(tiers)
    yield from _reports(tiers)
    yield from _donors(tiers)
    yield from _two_sources(tiers)
    yield from _source_lists(tiers)
    yield from _spelled(tiers)
    yield from _versions(tiers)
    yield from _lacking_lines(tiers)


def _fanout_of_one(tiers: Tiers) -> Iterator[Finding]:
    """A fanout that nobody is ever below, as the server has it that answers who registers."""
    rules = tiers.told.rules
    for source in tiers.sources:
        if rules.fanout_of(source) != 1 or not rules.least_count:
            continue
        nodes = [name for name in sorted(tiers.seen.settings) if tiers.seen.tunable(name, "physrep_fanout") == "1"]
        does = "none and one child both count as one, and so no node is below it: " + (
            "the registry's first look never finds a candidate, and its second one has regard neither to the fanout nor to the "
            "age of a report"
            if rules.second_pass
            else "whoever registers is offered nobody"
        )
        yield Finding(
            "UNSAFE_SETTING",
            "warning",
            f"the fanout below {source} is 1: {does}",
            server=nodes[0] if nodes else None,
            origin=source,
            evidence=first_few({"node": name, "setting": "physrep_fanout", "value": "1"} for name in nodes),
            fix=(
                step(
                    "set 2: put tunable physrep_fanout where the registry is held, and in the configuration file there",
                    "children are counted so that a node without any counts as one with one",
                ),
            ),
        )


def _reports(tiers: Tiers) -> Iterator[Finding]:
    """Nodes that report themselves less often than others take them for hung."""
    late = []
    for name in sorted(tiers.seen.settings):
        every, limit = (
            tiers.seen.tunable(name, one) or ""
            for one in ("physrep_keepalive_freq_sec", "physrep_hung_replicant_threshold")
        )
        if every.isdigit() and limit.isdigit() and int(every) > int(limit):
            late.append({"node": name, "physrep_keepalive_freq_sec": every, "physrep_hung_replicant_threshold": limit})
    if late:
        yield Finding(
            "UNSAFE_SETTING",
            "info",
            f"{some([row['node'] for row in late])} report themselves less often than others take them for "
            "hung: the warnings of stuck "
            "replicants are false",
            server=late[0]["node"],
            evidence=first_few(late),
            fix=(
                step(
                    "set physrep_keepalive_freq_sec below physrep_hung_replicant_threshold",
                    "a node that is well is as old as that",
                ),
            ),
        )


def _donors(tiers: Tiers) -> Iterator[Finding]:
    """Nodes that are told to follow another copy: right while that one alone had the files that they needed, and wrong after."""
    rows = [
        {"node": name, "told": "@".join((told[0], ",".join(told[1]))), "source": source}
        for source, name in each(tiers)
        if (told := tiers.told.sources.get(name)) is not None and told[0] != source and told[0] not in tiers.sources
    ]
    if rows:
        yield Finding(
            "UNSAFE_SETTING",
            "info",
            f"{some([row['node'] for row in rows])} {'is' if len(rows) == 1 else 'are'} told to follow {rows[0]['told']}, which "
            f"is itself a copy of {rows[0]['source']}: nothing else is ever offered to {'it' if len(rows) == 1 else 'them'}",
            server=rows[0]["node"],
            origin=rows[0]["source"],
            evidence=first_few(rows),
            fix=(
                step(
                    f"write the source back into replicate_from once the node is up to date, and restart it: "
                    f"replicate_from {rows[0]['source']}",
                    "the query for candidates begins at the database and hosts that it names, and looks below them alone",
                    "where the source has deleted the files that the node needs, that has to wait",
                ),
            ),
        )


def _two_sources(tiers: Tiers) -> Iterator[Finding]:
    """Nodes that one thing says to follow this source and another one that: a false tree makes a false lag."""
    for name, doubt in sorted(tiers.doubts.items()):
        source, parent = tiers.source_of(name), tiers.parent(name)
        row = f"by its row in comdb2_physrep_connections it pulls from {parent}, which is of the tree of {source}"
        other = (
            f"{doubt.kin}, which is of the same database, hangs on {doubt.source}"
            if doubt.kin
            else f"its settings name {'@'.join((doubt.source, ','.join(tiers.told.sources[name][1])))} as its source"
        )
        yield Finding(
            "UNSAFE_SETTING",
            "warning",
            f"{name}: {row if parent else f'it is taken to follow {source}'}, and {other}: which of these two sources it "
            "follows nothing tells, nor what it lacks",
            server=name,
            origin=source,
            evidence=({"node": name, "pulls_from": parent or "-", "other_source": doubt.source},),
            fix=(
                step(
                    f"ask {name} whom it follows (physrep_source_dbname, physrep_repl_name, physrep_repl_host), collect both "
                    "tables of the registry once more, and diagnose anew",
                    "a row of the registry may be of an older connection",
                    f"until then copy nothing over {name}, and point it at no other node",
                ),
            ),
        )


STATES = frozenset({"Active", "Pending", "Inactive", "InActive"})
"""As the program writes them; the last one at the start of a replicant."""


def _spelled(tiers: Tiers) -> Iterator[Finding]:
    """States that the program never writes: it compares them letter by letter. A finding for each spelling."""
    spelled: dict[str, list[dict[str, str | int | None]]] = {}
    for name, row in sorted(tiers.seen.nodes.items()):
        if row["state"] is not None and row["state"] not in STATES:
            shown = {"node": name, "state": row["state"], "file": row["file"], "offset": row["offset"]}
            spelled.setdefault(row["state"], []).append(shown)
    for state, rows in spelled.items():
        names = [str(row["node"]) for row in rows]
        meant = {one.lower(): one for one in ("Active", "Pending", "Inactive")}.get(state.lower(), "Inactive")
        statements = "; ".join(set_state(name, meant) for name in names[:_WRITTEN_OUT])
        more = f"; and so for {len(names) - _WRITTEN_OUT:,} more" if len(names) > _WRITTEN_OUT else ""
        yield Finding(
            "UNSAFE_SETTING",
            "warning",
            f"the state of {some(names)} is spelled {state}, as the program never writes it: "
            "whatever is not exactly Pending or Inactive may be offered to others",
            server=names[0],
            evidence=first_few(rows),
            fix=(
                step(
                    f"in the registry's database: {statements}{more}",
                    "a row that was written by hand as `inactive` does not take the node out",
                    f"not before {some(names)} {'is' if len(names) == 1 else 'are'} up to date: this version keeps log files "
                    f"only for rows that say {state}"
                    if state == tiers.told.rules.holding
                    else None,
                ),
            ),
        )


_WRITTEN_OUT = 3
"""Nodes for which the statement is written out."""


def _source_lists(tiers: Tiers) -> Iterator[Finding]:
    """Nodes that name fewer hosts of the source than there are, or than their configuration file does."""
    for source in tiers.sources:
        hosts = sorted(name.partition("@")[2] for name in tiers.roots(source))
        rows = []
        for name in tiers.members[source]:
            told = tiers.told.sources.get(name)
            if told is None or not told[1] or told[0] != source:
                continue
            written = named_in_file(tiers.seen.settings[name])
            lacks = sorted({*written} - {*told[1]}) or sorted({*hosts} - {*told[1]})
            # A name that is no host may be that of a tier or a cluster, which stands for all of them.
            if lacks and set(told[1]) <= {*hosts, *written}:
                rows.append(
                    {
                        "node": name,
                        "names": ",".join(told[1]),
                        "lacks": ",".join(lacks),
                        "cut": bool({*written} - {*told[1]}),
                    }
                )
        if not rows:
            continue
        cut = [row["node"] for row in rows if row["cut"]]
        lists = tiers.seen.lists_pulls and not tiers.seen.lost_pulls
        unused = [one for one in tiers.roots(source) if lists and not getattr(tiers.place(one), "children", ())]
        yield Finding(
            "UNSAFE_SETTING",
            "warning" if cut else "info",
            f"{some([str(row['node']) for row in rows])} name{'s' if len(rows) == 1 else ''} {rows[0]['names']} "
            "alone as the source, not "
            f"{rows[0]['lacks']}"
            + (
                "; their configuration files name it: the program cuts the list after the first registration"
                if cut
                else ""
            )
            + (f"; nobody pulls from {some(unused)}, and the tree is uneven" if unused else ""),
            origin=source,
            server=str(rows[0]["node"]),
            evidence=first_few(rows),
            fix=(
                step(
                    "name the tier or the cluster in replicate_from instead of a list of hosts, or restart the "
                    "nodes before they register anew",
                    "with one host of the source named they find no source at all when that one is down",
                ),
            ),
        )


def _versions(tiers: Tiers) -> Iterator[Finding]:
    """Versions of the program that keep no log for anybody although it seems so; and fleets of several versions."""
    told = tiers.told.versions
    if len(told) > 1:
        yield Finding(
            "UNSAFE_SETTING",
            "info",
            "the nodes run several versions: "
            + ", ".join(f"{some(names)} {version}" for version, names in told.items()),
            evidence=first_few({"version": version, "nodes": ", ".join(names)} for version, names in told.items()),
            fix=(
                step("bring all to one version", "the registry answers by its own version, and nodes report by theirs"),
            ),
        )
    if "2023" in told:
        holding = V2023.holding or ""
        late = [name for _, name in each(tiers) if is_files_behind(tiers, name) and not tiers.kept_for(name)]
        needs = f"; {some(late)} need{'s' if len(late) == 1 else ''} files older than the newest" if late else ""
        yield Finding(
            "UNSAFE_SETTING",
            "warning",
            f"{some(told['2023'])} keep no log files for replicants: this version asks for the "
            f"state {holding}, and {_rows_say(tiers, holding)}{needs}"
            + (
                ""
                if all(map(tiers.told.local, tiers.sources))
                else "; besides, the tables are in another database, where it does not look"
            ),
            server=told["2023"][0],
            evidence=first_few({"node": name, "version": "2023"} for name in told["2023"]),
            fix=(
                step(
                    "keep more files on the source: MIN_KEEP_LOGS, MIN_KEEP_LOGS_AGE",
                    "the document says that the registry pauses log deletion; it does not",
                ),
            ),
        )


def _rows_say(tiers: Tiers, holding: str) -> str:
    """What the rows of nodes say in place of the state that holds log files, in words."""
    spelled = [name for name, row in sorted(tiers.seen.nodes.items()) if row["state"] == holding]
    return f"the rows say Active, but for {some(spelled)}" if spelled else "the rows say Active"


NEEDED = ("nonames", "elect_highest_committed_gen")


def _lacking_lines(tiers: Tiers) -> Iterator[Finding]:
    """Configuration files without a line that physical replication needs to work."""
    for line in NEEDED:
        lacking = [
            name
            for name in sorted(tiers.seen.settings)
            if "replicate_from" in tiers.seen.settings[name].get("line", {})
            and line not in tiers.seen.settings[name]["line"]
        ]
        if lacking:
            yield Finding(
                "UNSAFE_SETTING",
                "warning",
                f"the configuration files of {some(lacking)} do not have the line {line}, which physical replication needs",
                server=lacking[0],
                evidence=first_few({"node": name, "line": line} for name in lacking),
                fix=(
                    step(
                        f"add {line} to the configuration file and restart the node",
                        "the document of the program calls it required",
                        not_stopped_before(tiers, lacking),
                    ),
                ),
            )
