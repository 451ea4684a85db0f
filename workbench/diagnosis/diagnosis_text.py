"""A diagnosis as text, to be read from the top: the verdict in one line, the findings with what to do, then the details."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.diagnosis.closed_ways import LinkedPairs, disabled_rows, disabled_say, in_no_log
from workbench.diagnosis.dropped_changes import dropped_say, is_sent, perhaps_restarted
from workbench.diagnosis.failing_links import all_behind, delivering, failing_rows, failing_say
from workbench.diagnosis.findings_text import findings_text
from workbench.diagnosis.first_line import (
    but_for_those_filled,
    by_suffix,
    doubts,
    gone_say,
    most_of,
    of_gone_entries,
    on_which,
    root_of,
    several_suffixes,
    which_change,
    with_nouns,
)
from workbench.diagnosis.pair_matrix_text import matrix_text, outside_text
from workbench.diagnosis.precedence import roots_of
from workbench.diagnosis.refusals import refused_say
from workbench.diagnosis.relayed_changes import (
    ANSWERED_NOT_APPLIED,
    DATA_GONE,
    STOPPED_BECAUSE,
    Wait,
    held_up,
)
from workbench.model import System, listed
from workbench.replication.entry.diagnosis.state_comparison import OWN_SINCE, own_since_say
from workbench.replication.stream.diagnosis.queued_changes import (
    BEHIND_SAY,
    behind_kind,
    held_by,
    in_a_queue,
    no_session_say,
)
from workbench.rules.verdicts import MISSING, UNKNOWN
from workbench.text_table import aligned, one_cell
from workbench.topology.topology import IS_DOWN, NO_VECTOR, NOT_ALL, NOT_COLLECTED

Row = Mapping[str, Any]

_LISTED = 10
"""Missing changes that are named; all of them are in the JSON."""
_NAMED = 5
"""Servers of which nothing tells what they have seen, and that are named."""


def diagnosis_text(system: System, found: Row, matrix: bool = True) -> str:
    """All of it; without the matrix of the pairs, and the floors, where these are not asked for."""
    labels = found["case"]["snapshots"]
    title = f"{system.title}, snapshot {one_cell(labels[-1])}" + (
        f" (the last of {len(labels)})" if len(labels) > 1 else ""
    )
    several = several_suffixes(found["servers"])
    parts = [
        title,
        headline(found),
        findings_text(found["findings"], several),
        _changes(but_for_those_filled(found), several),
    ]
    own = system.replication().sections(system, found)
    parts += [own.tables]
    if matrix and own.pairs_shown:
        parts += [matrix_text(system, found["pairs"])]
    if matrix:
        parts += [outside_text(found), own.outlook]
    return "\n\n".join(filter(None, parts))


_ROOTS = 3
"""Clauses of the first line that name what other findings follow from."""

NOT_TOLD = "nothing tells who follows whom"

ONE_SERVER, ONE_OF_EACH = "one_server", "one_of_each"


def summed(found: Row) -> dict[str, Any]:
    """What a headline says, as data: of each verdict how many changes, and `on` which servers.

    Of what a server lacks each change counts once, wherever it is lacking. Changes that have not arrived may be the same on
    several servers, and their rows do not name them: of these the count is what the server lacks that lacks most.
    """
    cut, found = found["run"].get("truncated", {}), but_for_those_filled(found)
    several = several_suffixes(found["servers"])

    def told(name: str, rows: Sequence[Row]) -> dict[str, Any]:
        unseen = beyond_the_cut(found, name)
        places = {
            *((row["suffix"], row["server"]) for row in rows),
            *((suffix, server) for server, _, suffix in unseen),
        }
        about = {"by_suffix": by_suffix(places)} if several else {}
        return {"count": cut.get(name) or len(rows), "on": sorted({server for _, server in places}), **about}

    counted = {name: told(name, found[name]) for name in ("missing", "stranded", "unknown")}
    if "missing" not in cut:
        counted["missing"]["count"] = len({which_change(row) for row in found["missing"]})
        counted["missing"]["gone"] = of_gone_entries(found["missing"])
    counted["missing"]["exact"] = "missing" not in cut or len(counted["missing"]["on"]) == 1
    grave = {one["severity"] for one in found.get("findings", ()) if one["code"] == "STRANDED_CHANGE"}
    counted["stranded"]["unsure"] = grave == {"warning"}
    arrives: dict[str, list[Row]] = {"waiting": [], "held": [], "stuck": [], "dropped": [], "refused": [], "passed": []}
    arrives |= {"behind_gap": [], "behind_unlike": [], "behind_part": [], "own": [], "lost": []}
    made_by = {row["name"]: row.get("origin") for row in found.get("servers", ())}
    unapplied, stopped = _unapplied(found), _stopped(found)
    held = held_up({_wait(row): row["suppliers"] or row.get("through") or () for row in found["pending"]}, stopped)
    for number, row in enumerate(found["pending"]):
        lost = row.get("lost") or 0  # CHANGES_THROWN_AWAY says so
        if row["count"] > unapplied[number] + lost:
            left = {"count": row["count"] - unapplied[number] - lost, "gone": max(in_no_log(row) - lost, 0)}
            how = how_it_arrives(row)
            own = row.get("may_refuse") == OWN_SINCE and row["origin"] == made_by.get(row["server"])
            if how in ("waiting", "stuck") and (own or (row.get("lost_by") and how == "stuck")):
                how = "own" if own else "lost"
            notes = ("passed", "passed_over"), (behind_kind(row), "behind_gap"), ("held", "held")
            noted = {"refused": len(row.get("refused") or ())} | {name: row.get(key) or 0 for name, key in notes}
            for name, count in noted.items():
                if some := min(count, left["count"]) if how == "waiting" else 0:
                    arrives[name].append({**row, "count": some, "gone": 0})
                    left["count"] -= some
            if not left["count"]:
                continue
            empty = stopped.get(row["server"]) in DATA_GONE
            how = "held" if _wait(row) in held and (how == "waiting" or (how == "stuck" and empty)) else how
            arrives[how].append({**row, **left})
    for name, rows in arrives.items():
        lacks: dict[str, int] = {}
        gone: dict[str, int] = {}
        for row in rows:
            lacks[row["server"]] = lacks.get(row["server"], 0) + row["count"]
            gone[row["server"]] = gone.get(row["server"], 0) + in_no_log(row)
        counted[name] = {
            "count": max(lacks.values(), default=0),
            "on": sorted(lacks),
            **({"by_suffix": by_suffix((row["suffix"], row["server"]) for row in rows)} if several else {}),
            "same": len(set(lacks.values())) < 2,
            "in_no_log": max(gone.values(), default=0),
            "unread_log": any(row.get("unread_log") for row in rows),
        }
    counted["waiting"]["not_given"] = any(row.get("not_given") for row in arrives["waiting"])
    counted["held"]["stopped_servers"] = [
        f"{server} {STOPPED_BECAUSE[code]}" for server, code in sorted(stopped.items())
    ] + [held_by(row) for row in arrives["held"] if row.get("held")]
    counted["stuck"]["uncovered"] = bool(arrives["stuck"]) and all(row.get("uncovered") for row in arrives["stuck"])
    counted["lost"]["by"] = sorted({row["lost_by"] for row in arrives["lost"]})
    if guessed := _guessed_source(found):
        counted["stuck"]["if_source"] = guessed
    counted["stuck"]["without_link"] = _without_link(arrives["stuck"], found)
    counted["dropped"]["unsure"] = bool(perhaps_restarted(arrives["dropped"]))
    counted["dropped"]["task"] = all(row["dropped_by_task"] for row in arrives["dropped"])
    failing, links, linked = failing_rows(found), found.get("links", ()), LinkedPairs(found.get("pairs", ()))
    ways = [linked.closed_ways(row) for row in arrives["stuck"]]
    open_ways = [row for row, mine in zip(arrives["stuck"], ways, strict=True) if not mine]
    on_the_way = {(one["supplier"], one["link"], one["suffix"]): one for mine in ways for one in mine}
    disabled = disabled_rows(on_the_way.values(), links)
    for row in (*failing, *disabled):
        row["several"] = several
    for row in failing:
        # Of a consumer that no file names it is not known what waits behind the link.
        row["holds"] = bool(open_ways) or (row["supplier"], row["name"], row["suffix"]) in on_the_way
    return {
        **counted,
        "also": _not_named(found.get("findings", ()), failing, disabled),
        "roots": roots_of((one["code"], root_of(one, several)) for one in found.get("findings", ())),
        "thrown_away": any(one["code"] == "CHANGES_THROWN_AWAY" for one in found.get("findings", ())),
        "doubted": bool(guessed) or any(map(doubts, found.get("findings", ()))),
        "failing": failing,
        "disabled": disabled,
        "stuck_behind_links": bool(arrives["stuck"])
        and (
            not open_ways or all_behind(open_ways, delivering(failing, found.get("pairs", ()), found["pending"]), links)
        ),
        "pending_cut": "pending" in cut or any(row.get("counted") is False for row in found["pending"]),
        "nothing_to_compare": _nothing_to_compare(found),
        "alone": _alone(found),
        "names": sorted({one["server"] for one in found.get("findings", ()) if one.get("server")}),
        "not_answering": _not_collected(found, IS_DOWN),
        "not_collected": _not_collected(found, NOT_COLLECTED),
        "not_all": _not_collected(found, NOT_ALL),
        "no_vector": _no_vector(found),
        "tiered": bool(found.get("trees")),
        "silent": any(row.get("silent") for row in found["pending"]),
    }


def _unapplied(found: Row) -> dict[int, int]:
    """The number of a row of what waits -> how many of its changes do not come, as a finding says that is named first.

    A server that answered a change and did not apply it passes it on to no other.
    """
    stuck = {
        (one["suffix"], one["origin"], position, one["server"])
        for one in found.get("findings", ())
        for position in (one["items"] if one["code"] == ANSWERED_NOT_APPLIED and one.get("root") else ())
    }
    changes = {about[:3] for about in stuck}
    rows = list(enumerate(found["pending"]))
    before = -1
    while len(stuck) > before:
        before = len(stuck)
        for _, row in rows:
            through = row.get("through") or ()
            if through and not row["suppliers"]:
                about = (one for one in changes if one[:2] == (row["suffix"], row["origin"]))
                stuck |= {(*one, row["server"]) for one in about if all((*one, name) in stuck for name in through)}
    return {
        number: sum(
            (suffix, origin, server) == (row["suffix"], row["origin"], row["server"])
            and row["first"] <= position <= row["last"]
            for suffix, origin, position, server in stuck
        )
        for number, row in rows
    }


def _guessed_source(found: Row) -> str | None:
    """What is only taken for the source of a tree, for nothing tells who follows whom; None: all sources are known."""
    return next((one["source"] for one in found.get("trees", ()) if not one["source_is_known"]), None)


def _without_link(stuck: Iterable[Row], found: Row) -> list[str]:
    """The servers that wait for what no session brings, and to which no link of the collected files leads.

    None is named where some link may lead there, for no file says where it leads; nor is a node of the source of a tree, to
    which none needs to, or one of which a row says from whom it pulls.
    """
    nodes = [node for tree in found.get("trees", ()) for node in tree["nodes"]]
    fed = {node["node"] for node in nodes if node["tier"] == 0 or node["parent"]}
    links = [one for one in found.get("links", ()) if one["supplier"] not in (one["consumer"], one["means"])]
    led = {(one["consumer"] or one["means"], one["suffix"]) for one in links}
    blind = {suffix for consumer, suffix in led if consumer is None}
    about = sorted(
        {(row["server"], row["suffix"]) for row in stuck if row["suffix"] not in blind and row["server"] not in fed}
        - led,
        key=str,
    )
    several = several_suffixes(found["servers"])
    if not links:  # a file may say that a server has none
        pairs = found.get("pairs", ())
        ends = {(one["consumer"], one["suffix"]) for one in pairs}
        open_ = {(one["consumer"], one["suffix"]) for one in pairs if not one.get("leads_elsewhere")}
        about = [key for key in about if key in ends - open_]
    return [f"{server} in {suffix}" if several else server for server, suffix in about]


def no_link_leads(told: Row, names: Callable[[Sequence[str]], str] = ", ".join) -> str:
    """That no link leads to the servers that wait, as the end of a sentence; empty: one leads there, or may."""
    links = "no link of a server that answered" if told["not_answering"] else "no link in the collected files"
    return f": {links} leads to {names(apart)}" if (apart := told["stuck"].get("without_link")) else ""


def _stopped(found: Row) -> dict[str, str]:
    """Server -> the code that says why it takes or sends nothing."""
    findings = found.get("findings", ())
    return {one["server"]: one["code"] for one in findings if one["code"] in STOPPED_BECAUSE and one.get("root")}


def _wait(row: Row) -> Wait:
    return row["server"], row["suffix"], row["origin"]


def how_it_arrives(row: Row) -> str:
    """Of what a server waits for: `waiting` for a session that brings it, `dropped` when it comes, or `stuck`, sent by nobody."""
    if row.get("dropped_since"):
        return "dropped" if is_sent(row) else "stuck"
    return "waiting" if is_sent(row) or in_a_queue(row) else "stuck"


_IN_FIRST_LINE = frozenset(
    {
        *("MISSED_CHANGE", "OWN_CHANGES_HIDDEN", "STRANDED_CHANGE", "PENDING_CHANGES", "REINIT_REQUIRED"),
        *("LINK_FAILING", "LINK_DISABLED", "STALLED_BUT_GREEN"),
    }
)
"""Codes of what the counts of the first line tell."""


_OF_ENTRIES = frozenset({"CONFLICT_ENTRIES"})


def _not_named(findings: Iterable[Row], failing: Sequence[Row], disabled: Sequence[Row]) -> list[str]:
    """The codes of errors that the first line neither counts nor names: a link that fails tells why it does. Without errors, of
    warnings; and always of those on what entries hold (`_OF_ENTRIES`), and on links that are off, which no count tells.
    """
    findings = [one for one in findings if not one.get("overruled_by")]
    gravest = "error" if any(one["severity"] == "error" for one in findings) else "warning"
    clocks = {"CLOCK_AHEAD", "CLOCK_BEHIND"} & {one["code"] for one in findings if one.get("root")}
    grave = [one for one in findings if one["severity"] == gravest and not one.get("root")]
    # Of a node that stands still, and of no link, the counts tell nothing: what it waits for may be called on its way.
    still = {
        one["code"] for one in grave if one["code"] == "STALLED_BUT_GREEN" and one.get("origin") and not one.get("link")
    }
    of_entries = {one["code"] for one in findings if one["code"] in _OF_ENTRIES and one["severity"] == "warning"}
    off = [row for row in findings if (row["code"], row["severity"]) == ("LINK_DISABLED", "warning")]
    unnamed = {"LINK_DISABLED"} if off and not disabled else set()
    return sorted(
        ({one["code"] for one in grave if one["code"] not in _IN_FIRST_LINE} | still | of_entries | unnamed)
        - clocks
        - ({"APPLY_RETRY_LOOP"} if failing else set())
    )


def what_changed(row: Row) -> str:
    """The operation, or which attribute was changed; `?` if nothing tells."""
    return " ".join(
        filter(None, (row["operation"] or ("change" if row.get("attribute") else "?"), row.get("attribute")))
    )


_TOLD_BY = {"MISSED_CHANGE": "missing", "STRANDED_CHANGE": "stranded", "PENDING_CHANGES": "pending"}
"""Findings that are made whatever rows are shown: where a list was cut, they still tell of which servers it spoke."""


def beyond_the_cut(found: Row, name: str) -> set[tuple[str, str, str | None]]:
    """Server, origin and suffix of what a list that was cut spoke of as well, and no shown row is of; empty of a whole one."""
    if name not in found["run"].get("truncated", {}):
        return set()
    shown = {(row["server"], row["origin"], row["suffix"]) for row in found[name]}
    told = [one for one in found["findings"] if _TOLD_BY.get(one["code"]) == name and one["origin"]]
    return {(one["server"], one["origin"], one["suffix"]) for one in told} - shown


def collected(found: Row) -> list[tuple[str, str | None]]:
    """Server and suffix of each that tells, by its vector, its log or what it says that it applied, what it has seen."""
    applying = {one["server"] for one in found.get("appliers", ()) if one["source"] and one["commit"] is not None}
    return [
        (one["name"], one["suffix"])
        for one in found["servers"]
        if one["vector"] or one["changes"] or one["name"] in applying
    ]


def _nothing_to_compare(found: Row) -> dict[str, Any]:
    telling = set(collected(found))
    names = sorted({name for name, _ in telling})
    if not telling:
        return {"why": NO_VECTOR, "on": []}
    if len(telling) == len({suffix for _, suffix in telling}):
        others = {one["server"] for one in found.get("coverage", ()) if one.get("server")} - {*names}
        return {"why": ONE_SERVER if len(telling) == 1 else ONE_OF_EACH, "on": names, "others": sorted(others)}
    return {"why": "", "on": []}


def _alone(found: Row) -> list[dict[str, Any]]:
    """Suffixes of which one server alone tells what it has seen: nobody can say what it misses."""
    of: dict[str | None, list[str]] = {}
    for name, suffix in sorted(set(collected(found)), key=lambda one: (one[0], one[1] or "")):
        of.setdefault(suffix, []).append(name)
    return [{"suffix": suffix, "on": names} for suffix, names in of.items() if len(names) == 1]


def _no_vector(found: Row) -> list[dict[str, Any]]:
    """Servers that do not tell what they have seen: of one suffix, or of any (suffix None)."""
    telling = {name for name, _ in collected(found)}
    logs = {
        one["server"] for one in found.get("streams", ())
    }  # of one that numbers no messages and is damaged nothing is sure
    of: dict[str | None, list[str]] = {}
    for one in found["not_collected"]:
        if one["why"] == NO_VECTOR and one["server"] not in logs:
            of.setdefault(one["suffix"] if one["server"] in telling else None, []).append(one["server"])
    return [{"suffix": suffix, "on": sorted({*names})} for suffix, names in of.items()]


def _not_collected(found: Row, *whys: str) -> list[dict[str, Any]]:
    """Servers of which nothing was collected, or addresses: of one suffix, or of all that there are (suffix None)."""
    suffixes = {one["suffix"] for one in found["servers"]} - {None}
    lacking: dict[str, set[str | None]] = {}
    for one in found["not_collected"]:
        if one["why"] in whys:
            lacking.setdefault(one["server"], set()).add(one["suffix"])
    of: dict[str | None, list[str]] = {}
    for name, its in sorted(lacking.items()):
        for suffix in {None} if None in its or its >= suffixes else its:
            of.setdefault(suffix, []).append(name)
    return [{"suffix": suffix, "on": of[suffix]} for suffix in sorted(of, key=lambda suffix: suffix or "")]


def untold(found: Row) -> list[dict[str, Any]]:
    """Why a diagnosis without findings is no clean one, beside stretches that are unknown: server, suffix (None: any), why.

    What one server alone tells of a suffix cannot be compared, and of some nothing tells what they have seen.
    """
    told = [{"server": one["on"][0], "suffix": one["suffix"], "why": ONE_SERVER} for one in _alone(found)]
    if not collected(found):
        told.append({"server": None, "suffix": None, "why": NO_VECTOR})
    return [*told, *found["not_collected"]]


def _not_compared(told: Row) -> str:
    """Why nothing can be said of missing changes; empty if two servers of a suffix tell what they have seen."""
    return {
        "": "",
        NO_VECTOR: "no vector was collected",
        ONE_SERVER: f"only {''.join(told['on'][:1])} {'tells what it has' if told.get('others') else 'was collected'}",
        ONE_OF_EACH: "only one server of each suffix was collected",
    }[told["why"]]


def headline(found: Row) -> str:
    """The verdict in one line."""
    return verdict_line(summed(found))


def verdict_line(told: Row) -> str:
    """The verdict in one line, of what `summed` counted."""
    missing, stranded = told["missing"], told["stranded"]
    roots = told.get("roots", [])[:_ROOTS]
    if more := len(told.get("roots", [])) - len(roots):
        roots.append(f"{more:,} more such {'finding' if more == 1 else 'findings'}")
    said: list[str] = []
    if count := missing["count"]:
        least, where = "" if missing["exact"] else "up to ", on_which(missing)
        are, themselves = ("change is", "itself") if count == 1 else ("changes are", "themselves")
        said.append(f"{least}{count:,} {are} MISSING on {where} and will not come by {themselves}{gone_say(missing)}")
    if count := stranded["count"]:
        how = "on {} alone, of the collected servers" if stranded.get("unsure") else "stranded on {}"
        said.append(f"{count:,} {'is' if count == 1 else 'are'} {how.replace('{}', on_which(stranded))}")
    if told["dropped"]["count"]:
        unsure, task = told["dropped"]["unsure"], told["dropped"]["task"]
        said.append(dropped_say(*most_of(told["dropped"], told["pending_cut"]), unsure, task))
    fails, waits, gone = links_say(told), [], 0
    if told["waiting"]["count"]:
        count, on, least = most_of(told["waiting"], told["pending_cut"])
        after = ", some behind what the log of their source cannot give" if told["waiting"].get("not_given") else ""
        waits.append(f"{least}{count:,} {'is' if count == 1 else 'are'} on the way to {on}{after}")
    if told["refused"]["count"]:
        waits.append(refused_say(*most_of(told["refused"], told["pending_cut"])))
    if told["passed"]["count"]:
        count, on, least = most_of(told["passed"], told["pending_cut"])
        have = "has" if count == 1 else "have"
        waits.append(
            f"{least}{count:,} {have} not arrived at {on}, and the next session passes over {'it' if count == 1 else 'them'}"
        )
    for name, says in (("own", own_since_say), *BEHIND_SAY):
        if told[name]["count"]:
            waits.append(says(*most_of(told[name], told["pending_cut"])))
    if told["held"]["count"]:
        count, on, least = most_of(told["held"], told["pending_cut"])
        are, why = "is" if count == 1 else "are", no_session_say(told["held"]["stopped_servers"])
        waits.append(f"{least}{count:,} {are} waiting for {on}{why}")
    if told["stuck"]["count"]:
        unread = told["not_answering"] or told["not_collected"] or told["not_all"] or told["no_vector"]
        who = "no node that answered" if told["silent"] else "no collected server" if unread else "nobody"
        log = "no collected log" if unread or told["stuck"]["unread_log"] else "no log"
        count, on, least = most_of(told["stuck"], told["pending_cut"])
        has, it = ("has", "it") if count == 1 else ("have", "them")
        if told["stuck_behind_links"]:
            what = "change" if count == 1 else "changes"
            said.append(f"{least}{count:,} {what} {has} not arrived at {on}: {fails}")
            said += filter(
                None, [failing_say([row for row in told["failing"] if not row["holds"] and not row["follows"]])]
            )
        elif source := told["stuck"].get("if_source"):
            waits.append(f"{least}{count:,} {has} not arrived at {on}, if {source} is the source: {NOT_TOLD}")
        elif told["stuck"].get("uncovered"):
            newer = "change is newer" if count == 1 else "changes are newer"
            waits.append(f"{least}{count:,} {newer} than every collected vector and had not arrived at {on}")
        else:
            waits.append(
                f"{least}{count:,} {has} not arrived at {on}, and {who} would send {it} now{no_link_leads(told)}"
            )
        if gone := told["stuck"]["in_no_log"]:
            # In tiers logs may have them, and what comes before them is gone.
            has = "that can be asked brings" if told["tiered"] else "has"
            there = " there" if told["tiered"] else ""
            waits.append(f"{log} {has} {'it' if count == 1 else f'{gone:,} of them'}{there}")
    if told["lost"]["count"]:
        count, on, least = most_of(told["lost"], told["pending_cut"])
        has, it = ("has", "it") if count == 1 else ("have", "them")
        makers = listed(told["lost"]["by"], "and", _NAMED)
        waits.append(
            f"{least}{count:,} {has} not arrived at {on}, and {makers}, which made {it}, lost {it} with its old data"
        )
    if fails and not told["stuck_behind_links"]:
        said.append(fails)
    first = len(said) if fails or told["dropped"]["count"] else 0  # what fails is graver than that nothing is missing
    said += waits
    open_ = list(open_questions(told))
    if reason := _not_compared(told["nothing_to_compare"]):
        said.insert(
            0, f"{reason}: of which changes are missing, {'no more' if missing['count'] else 'nothing'} can be said"
        )
    elif not missing["count"]:
        unsure = open_ or gone or told["lost"]["count"] or told.get("doubted") or told.get("thrown_away")
        other = "other " if told.get("thrown_away") else ""
        said.insert(first, f"no {other}change is known to be missing" if unsure else "no change is missing")
    also = [f"see also {', '.join(told['also'])}"] if told.get("also") else []
    line = one_cell("; ".join(with_nouns([*roots, *said, *open_, *also])) + ".")
    begins = line.split(maxsplit=1)[0].rstrip(",:;")
    return line if begins in told.get("names", ()) else line[0].upper() + line[1:]


def links_say(told: Row) -> str:
    """The links that fail, and those that are disabled where something waits behind them alone.

    Where all that is stuck waits behind links, only these. One that fails because of a root is named for no other reason.
    """
    stuck = told["stuck_behind_links"]
    failing = [row for row in told["failing"] if (row["holds"] if stuck else not row["follows"])]
    return "; ".join(filter(None, [failing_say(failing), disabled_say(told["disabled"])]))


def open_questions(told: Row) -> Iterator[str]:
    """What nobody can tell, and why, of what `summed` counted."""
    if count := told["unknown"]["count"]:
        yield f"{count:,} {'stretch' if count == 1 else 'stretches'} cannot be judged by what was collected"
    if not told["nothing_to_compare"]["why"]:
        for one in told["alone"]:
            yield f"of {one['suffix'] or 'a suffix without a name'} only {one['on'][0]} was collected"
    for one in told["no_vector"] if told["nothing_to_compare"]["why"] != NO_VECTOR else ():
        of = f" of {one['suffix']}" if one["suffix"] else ""
        yield f"of {_named_few(one['on'])} neither a vector nor a log of changes{of} was collected"
    for one in told["not_answering"]:
        of = f"of {one['suffix']} " if one["suffix"] else ""
        yield f"{of}{_named_few(one['on'])} could not be read"
    for one in told["not_collected"]:
        of = f"of {one['suffix']} " if one["suffix"] else ""
        yield f"{of}{_named_few(one['on'])} {'was' if len(one['on']) == 1 else 'were'} not collected"
    for one in told["not_all"]:
        of = f"of {one['suffix']} " if one["suffix"] else ""
        yield f"{of}not all of {_named_few(one['on'])} were collected"


def _named_few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    few = [*names[:_NAMED], *([f"{more} other {'server' if more == 1 else 'servers'}"] if more > 0 else [])]
    return " and ".join(filter(None, [", ".join(few[:-1]), few[-1]]))


def _changes(found: Row, suffixes: bool) -> str:
    """What each server misses, waits for, and what nobody knows of it: numbers, and the first missing changes by name."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    uncounted: set[tuple[str, str, str]] = set()

    def cell(row: Row) -> list[int]:
        return counts.setdefault((row["suffix"] or "", row["server"], row["origin"]), [0, 0, 0])

    for row in found["missing"]:
        cell(row)[0] += 1
    for row in found["pending"]:
        cell(row)[1] += row["count"]
    for row in found["unknown"]:
        cell(row)[2] += row["count"] or 0
        if row["count"] is None:
            uncounted.add((row["suffix"] or "", row["server"], row["origin"]))
    if not counts:
        return ""
    heads = [*(["SUFFIX"] if suffixes else []), "SERVER", "ORIGIN", MISSING.upper(), "PENDING", UNKNOWN.upper()]
    rows = [
        [
            *key[0 if suffixes else 1 :],
            *(f"{number:,}" for number in numbers[:2]),
            "all" if key in uncounted else f"{numbers[2]:,}",
        ]
        for key, numbers in sorted(counts.items())
    ]
    texts = [aligned([heads, *rows], right=tuple(range(len(heads) - 3, len(heads))))]
    if found["missing"]:
        total = found["run"].get("truncated", {}).get("missing", 0)
        texts.append("\n".join(_named(found["missing"], total)))
    return "\n\n".join(texts)


def _named(missing: Sequence[Row], total: int) -> Iterator[str]:
    """`total`: how many there are in all, where the list was cut; else 0."""
    heads = ["SERVER", "POSITION", "WHAT", "TARGET", "HELD BY", "CAUSE", "BECAUSE"]
    rows = [
        [
            row["server"],
            row["position"],
            what_changed(row),
            row["target"] or "?",
            held_say(row),
            row["cause"] or "?",
            row["says"],
        ]
        for row in missing[:_LISTED]
    ]
    yield aligned([heads, *rows])
    if len(missing) > _LISTED:
        yield f"and {len(missing) - _LISTED:,} more: `--json FILE` or `--csv FILE` lists them"
    if total:
        yield f"The list was cut: {total:,} are missing in all, and `--limit {total}` lists them"


def held_say(row: Row) -> str:
    """Who has a missing change: by its log, or by what its entries show of it."""
    shown = ", ".join(row.get("shown_by") or ())
    return ", ".join(row["held_by"]) or (f"entries of {shown}" if shown else "nobody")
