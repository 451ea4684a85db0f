"""What a report says: the sentences, made of data in which names are replaced already. The one source of page, Markdown, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.diagnosis.causes import told_without_code
from workbench.diagnosis.codes import all_codes
from workbench.diagnosis.diagnosis_text import NOT_TOLD, links_say, no_link_leads, open_questions, verdict_line
from workbench.diagnosis.failing_links import LINK_FAILING
from workbench.diagnosis.precedence import DECIDED_BY_A_PERSON
from workbench.model import System, listed
from workbench.repair.plan_progress import FINISHED, GIVEN_UP, HALF_DONE
from workbench.replication.stream.rules.streams import WHY_UNKNOWN
from workbench.report.glossary import glossary
from workbench.report.report_data import (
    ALONE,
    CUT,
    EARLIER,
    NO_VECTOR,
    NOT_COLLECTED,
    NOT_JUDGED,
    NOTHING_SINCE,
    THIS,
    TOO_EARLY,
)
from workbench.report.streamed import stream_worded
from workbench.report.tiered import trees_worded
from workbench.rules.verdicts import SAYS
from workbench.views.mesh_text import link_says, server_says
from workbench.views.verdict_style import PRESENT

Row = Mapping[str, Any]


def worded(told: Row, system: System) -> dict[str, Any]:
    """The whole report, of what `gathered` found, redacted or not.

    report      1: the version of these keys
    headline    the verdict in one sentence; `verdict` is its colour
    case        name, system (title), snapshots, snapshot (the one that the report is about)
    plain       sentences for somebody who does not know the system: what, why, does it come by itself, what next
    timeline    from, to, events: `at`, `kind` (missed, replaced, message, collected, repair), `server`, `says`,
                `count`, `snapshot` (of a collection)
    topology    of each suffix: servers and links, with verdicts
    missing     of each server and origin: counts, who holds how many, the first changes, and of some the proof, server by server
    stream      where servers replicate a stream of transactions: its logs, what each lacks of its source's, and more
    trees       where nodes pull a physical log from each other: each tree, its nodes in order, how far each is, who could help it
    open        what is stranded, on its way, or cannot be told
    causes      why changes were missed, a row for each cause: its proof, the sessions played again, the records around
    findings    as in findings.json, without rows of evidence
    plan        the plan that the case keeps (null: none), `of`: this snapshot, an earlier or an other one; journal: what was done
    verification  of each server what was promised and what is found (null: not known, for the reason in `why`)
    half_done   a repair was begun and has not ended
    inventory   every file: snapshot, server, format, bytes, rows, rejected, sha256
    glossary    words, each in a sentence, with the word of the system
    run         at, version: the only part that differs from one report to the next
    """
    says = {code: about.says for codes in all_codes().values() for code, about in codes.items()}
    several = len(told["topology"]) > 1
    kept = {key: one for key, one in told.items() if key not in ("summary", "kept_by")}
    return {
        "report": 1,
        "headline": verdict_line(told["summary"]),
        **kept,
        "plain": list(_plain(told, says, several, system)),
        "timeline": {**told["timeline"], "events": [_event(one, several) for one in told["timeline"]["events"]]},
        "topology": [_drawn(one) for one in told["topology"]],
        "missing": [{**one, "about": _about(one, several)} for one in told["missing"]],
        "stream": stream_worded(told["stream"]),
        "trees": trees_worded(told["trees"]),
        "open": _open(told["open"]),
        "verification": [{**one, "why": _UNTOLD.get(one["why"], "")} for one in told["verification"]],
        "causes": [{**one, "about": _about(one, several), **_cause(one, says)} for one in told["causes"]],
        "glossary": glossary(system),
    }


def _about(group: Row, several: bool) -> str:
    """Which server and origin; where a server holds several suffixes, of which."""
    of = f", {group['suffix'] or 'suffix not named'}" if several else ""
    return f"{group['server']}{of}, origin {group['origin']}"


# --- in plain words


def _plain(told: Row, says: Mapping[str, str], several: bool, system: System) -> Iterator[str]:
    if told["half_done"]:
        yield _half_done(told["plan"])
    for one in told["kept_by"]:
        names, data = one["servers"], one["suffix"] if several and one["suffix"] else "the same data"
        if len(names) > 1:
            many = "the other" if len(names) == 2 else "all others"
            yield f"{_names(names)} keep copies of {data}. A change that is made on one of them has to arrive on {many}."
        else:
            yield f"Only {_names(names)} was collected of those that keep copies of {data}."
    roots = told["summary"].get("roots", [])
    for root in roots:
        yield f"{root[0].upper()}{root[1:]}."
    of: dict[tuple[str, str | None], list[Row]] = {}
    for one in told["missing"]:
        of.setdefault((one["server"], one["suffix"]), []).append(one)
    for groups in of.values():
        yield from _missed(groups, says, several, system)
    yield from _coming(told["summary"])
    if count := told["open"]["counts"]["stranded"]:
        on = _names(told["summary"]["stranded"]["on"])
        they = "it" if count == 1 else "they"
        unsure = told["summary"]["stranded"].get("unsure")
        end = (
            f", and no session with these brings {they if count == 1 else 'them'} on"
            if unsure
            else f", and {they} will go nowhere from there"
        )
        yield f"{_changes(count)} {_are(count)} on {on} alone{' of the collected servers' if unsure else ''}{end}."
    if count := told["open"]["counts"]["unknown"]:
        what = "1 stretch" if count == 1 else f"{count:,} stretches"
        yield f"Of {what} of changes the collected files do not tell whether they arrived; more logs or exports would."
    counts = told["summary"]
    if not any(counts[name]["count"] for name in ("missing", "stranded", *_COMING, "unknown")):
        if counts["nothing_to_compare"]["why"]:
            yield "With so little nothing can be compared: collect the same files of the other servers."
        elif not any(open_questions(counts)) and not counts.get("doubted") and not counts.get("failing"):
            yield "As far as the collected files show, all of them did."
    yield from _silent(counts)
    yield from _next(told, system)


def _silent(counts: Row) -> Iterator[str]:
    """Of whom nothing tells what they have, and why."""
    for name, which, what in (
        ("no_vector", "", "neither a vector nor a log of changes{} was collected"),
        ("not_answering", "", "nothing{} was collected, for no answer came"),
        ("not_collected", "", "nothing{} was collected"),
        ("not_all", "at least one of ", "nothing{} was collected"),
    ):
        for one in counts[name]:
            has = "they have" if len(one["on"]) > 1 and not which else "it has"
            why = what.format(f" of {one['suffix']}" if one["suffix"] else "")
            yield f"Of {which}{_names(one['on'])} {why}: what {has}, these files do not tell."


def _missed(groups: Sequence[Row], says: Mapping[str, str], several: bool, system: System) -> Iterator[str]:
    """What one server misses of one suffix, why, and who has it."""
    where = "" if system.pulling else " in the log"
    server, suffix = groups[0]["server"], groups[0]["suffix"]
    count, listed = sum(one["count"] for one in groups), sum(one["listed"] for one in groups)
    it, was = ("it", "was") if count == 1 else ("them", "were")
    least = "at least " if any(one["at_least"] for one in groups) else ""
    what = f"{least}{_changes(count)}{f' of {suffix}' if several and suffix else ''}"
    made = [f"{_made_on(one)}{_when(one)}" for one in groups]
    if len(groups) > 1:
        each = (f"{one['count']:,} made{where}" for one, where in zip(groups, made, strict=True))
        what += f": {'; '.join(each)}"
    elif made[0]:
        what += f" that {was} made{made[0]}"
    passed = f"Its log goes on behind {it}" if system.streaming else f"It reports having seen {it}"
    yield f"{server} does not have {what}. {passed}, so the other servers will not send {it} again: this does not heal by itself."
    yield _why(groups, says)
    of = "it" if count == 1 else "all of them" if listed == count and not least else f"the first {listed:,} of them"
    held: dict[str, int] = {}
    for row in (row for one in groups for row in one["holders"]):
        held[row["server"]] = held.get(row["server"], 0) + row["count"]
    whole = [name for name, number in held.items() if number == listed]
    parts = []
    for number in sorted({*held.values()} - {listed}, reverse=True):
        some = [name for name, count in held.items() if count == number]
        parts.append(f"{_names(some)} {'each have' if len(some) > 1 else 'has'} {number:,} of them")
    if whole:
        parts.insert(0, f"{_names(whole)} still {'have' if len(whole) > 1 else 'has'} {of}{where}")
    if parts:
        yield f"{'; '.join(parts)}."
    if none := sum(one["held_by_none"] for one in groups):
        gone = "Nobody can still supply it" if count == 1 else f"{none:,} of them nobody can still supply"
        yield f"{gone}: {'it has' if none == 1 else 'they have'} to be taken from the data itself."


def _made_on(one: Row) -> str:
    """Where changes were made; of an origin that no collected server has, its name."""
    if not one["made_on"]:
        return f" by origin {one['origin']}"
    return f" on {one['made_on']}{' itself' if one['made_on'] == one['server'] else ''}"


def _changes(count: int) -> str:
    return f"{count:,} {'change' if count == 1 else 'changes'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def holders(group: Row) -> str:
    """Who holds how many of the changes that a server misses."""
    listed = group["listed"]
    held = [
        row["server"] if row["count"] == listed else f"{row['server']} ({row['count']:,} of {listed:,})"
        for row in group["holders"]
    ]
    return f"Held by {', '.join(held)}." if held else "Nobody can still supply them."


LISTED = "`workbench diagnose CASE --csv FILE --limit NUMBER` lists them"


def absence(one: Row) -> Iterator[str]:
    """Of a server without the change, or of which nobody can tell: where it claims it, and where it was looked for."""
    if one["verdict"] == PRESENT:
        return
    if claimed := one["claimed"]:
        yield f"{claimed['snapshot']}/{claimed['file']}:{claimed['offset']} claims all up to {claimed['position']}"
    if one["searched"]:
        files = (f"{row['snapshot']}/{row['file']} ({row['rows']:,} rows)" for row in one["searched"])
        yield f"looked for in {', '.join(files)}{'' if one['rows'] else ': no row there names it'}"


def judged_otherwise(rows: Sequence[Row]) -> str:
    """Where the plan and the diagnosis count differently; empty where they agree."""
    other = [row for row in rows if row["judged"] is not None and row["judged"] != row["before"]]
    told = "; ".join(f"{row['server']} {row['judged']:,} instead of {row['before']:,}" for row in other)
    why = "The plan counts what its model of the servers can play through, the diagnosis what the evidence proves"
    return f"{why}, which here is: {told}." if told else ""


def _when(one: Row) -> str:
    if not one["first_at"]:
        return ""
    if one["last_at"] is None:
        return f" from {one['first_at']} UTC on"
    if one["first_at"] == one["last_at"]:
        return f" at {one['first_at']} UTC"
    return f" between {one['first_at']} and {one['last_at']} UTC"


def _why(groups: Sequence[Row], says: Mapping[str, str]) -> str:
    """Why a server misses changes, as far as it is known, and when it lost them, as far as the files tell."""
    counts: dict[str, int] = {}
    for row in (row for one in groups for row in one["causes"] if row["code"]):
        counts[row["code"]] = counts.get(row["code"], 0) + row["count"]
    for row in (row for one in groups for row in one["causes"] if not row["code"]):
        if reason := told_without_code(row["reasons"], says):
            counts[reason] = counts.get(reason, 0) + row["count"]
    listed, known = sum(one["listed"] for one in groups), sum(counts.values())
    apart = len(counts) > 1 or known < listed
    told = []
    for cause, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        what = _in_general(says[cause]) if cause in says else cause
        told.append(f"{what}{f' ({count:,} of {listed:,})' if apart else ''}")
    if known < listed:
        told.append(f"{'for the others ' if counts else ''}the collected files do not tell the cause")
    spans = list(dict.fromkeys(_span(row["after"], row["by"]) for one in groups for row in one["replaced"]))[:2]
    when = f" Its data was replaced {', and again '.join(spans)}." if spans else ""
    if not spans and not counts:
        when = f" When {'it was' if listed == 1 else 'they were'} lost, no collected file tells."
    return f"Why: {'; '.join(told)}.{when}"


def _in_general(says: str) -> str:
    """A code's sentence without what it adds about how grave it is."""
    return says.partition(";")[0]


def _span(after: str | None, by: str | None) -> str:
    if after == by or not after or not by:
        at = after or by
        return f"at {at} UTC" if after and by else f"after {at} UTC" if after else f"before {at} UTC"
    return f"between {after} and {by} UTC"


_COMING = ("waiting", "own", "refused", "passed", "behind_gap", "held", "dropped", "stuck", "lost")
"""Keys of what has not arrived yet."""


def _coming(counts: Row) -> Iterator[str]:
    """What has not arrived yet. Several servers may wait for the same changes, so these are counted for each of them."""
    for name, one_does, many_do, then in (
        ("waiting", "is on its way to", "are on their way to", ""),
        (
            "own",
            "is newer than the files of",
            "are newer than the files of",
            ", which made {} after that, or was restored and refuses {}",
        ),
        ("refused", "was refused at every attempt by", "were refused at every attempt by", ""),
        ("passed", "has not arrived at", "have not arrived at", ", and the next session passes over {}"),
        (
            "behind_gap",
            "waits behind what is lacking in the queue of",
            "wait behind what is lacking in the queue of",
            "",
        ),
        ("held", "waits for", "wait for", ""),
        (
            "dropped",
            "does not arrive at",
            "do not arrive at",
            ", which cleaned the origin and drops {} until a restart",
        ),
        ("stuck", "has not arrived at", "have not arrived at", ", and none of the collected servers would send {} now"),
        ("lost", "has not arrived at", "have not arrived at", ""),
    ):
        count, on, same = counts[name]["count"], counts[name]["on"], counts[name]["same"]
        if name == "held":
            then = f"; {' and '.join(counts[name]['stopped_servers'])}"
        if name == "lost" and counts[name]["by"]:
            then = f", and {listed(counts[name]['by'])} lost {{}} with its old data"
        if name == "stuck" and counts["stuck_behind_links"]:
            then = f": {links_say(counts)}".replace("{", "{{").replace("}", "}}")
        elif name == "stuck" and (source := counts[name].get("if_source")):
            then = f", if {source} is the source: {NOT_TOLD}"
        elif name == "stuck" and counts[name].get("uncovered"):
            one_does, many_do = (
                "is newer than every collected vector and had not arrived at",
                "are newer than every collected vector and had not arrived at",
            )
            then = ""
        elif name == "stuck":
            then += no_link_leads(counts, _names).replace("{", "{{").replace("}", "}}")
        if name == "dropped" and counts[name]["unsure"]:
            then = ", which cleaned the origin and drops {} unless restarted since"
        if name == "dropped" and counts[name]["task"]:
            then = ", where a task cleans the origin and {} is dropped until that has ended"
            then = then if count == 1 else then.replace("is", "are")
        if count:
            what = _changes(count)
            each = " each" if len(on) > 1 and count > 1 else ""
            does, it = (one_does, "it") if count == 1 else (many_do, "them")
            yield f"{'' if same else 'Up to '}{what}{each} {does} {_names(on)}{then.format(it, it)}."


def _half_done(plan: Row | None) -> str:
    standing = plan.get("standing_state") if plan else None
    how = f" ({plan['standing']})" if plan and standing == HALF_DONE else ""
    return (
        f"A repair was begun and is not finished{how}: before anything else, go on with it by “workbench resume”, or "
        "end it by “workbench resume --give-up”. What follows shows the servers as they were collected."
    )


def _next(told: Row, system: System) -> Iterator[str]:
    plan = told["plan"] or {}
    ways = [course for need in plan.get("needs", ()) for course in need["courses"] if course["verdict"] == "chosen"]
    state, of = plan.get("standing_state"), plan.get("of", THIS)
    lacking = any(told["summary"][name]["count"] for name in ("missing", "stranded"))
    if told["half_done"]:
        return
    if told["journal_problem"]:  # what was done is not known, and a step done twice may do harm
        yield f"Before anything else: {told['journal_problem']}."
        return
    if state == FINISHED:
        yield _held(told["verification"])
    if of != THIS and plan.get("steps") and lacking:
        which = "an earlier" if of == EARLIER else "another"
        yield f"The plan of repair is of {which} snapshot: plan again, by “workbench plan”, before anything is applied."
    elif state == GIVEN_UP and of == THIS:
        yield f"The plan of repair was {plan['standing']}. What to do next: collect anew, and plan from there."
    elif state == FINISHED:
        return
    elif of == THIS and ways:
        yield f"What to do next: {'; '.join(dict.fromkeys(one['says'] for one in ways))}. The exact steps are under “Plan”."
    else:
        first = next((one for one in told["findings"] if one["severity"] != "info" and one["fix"]), None)
        if first:
            plans = "" if first["code"] == LINK_FAILING else " The command “workbench plan” makes the exact steps."
            if first["code"] in DECIDED_BY_A_PERSON and not system.pulling:
                plans = " The command “workbench plan” says what each choice throws away."
            yield f"What to do next: {first['fix'][0]['repair']}.{plans}"


_UNTOLD = {
    NOTHING_SINCE: "nothing was collected since",
    TOO_EARLY: "what was collected since is not in this report, which is of an earlier snapshot",
    NOT_COLLECTED: "it was not collected",
    NO_VECTOR: "neither a vector nor a log of changes of it was collected",
    ALONE: "no other server was collected to compare it with",
    CUT: "the list of missing changes was cut",
    NOT_JUDGED: "of some changes the collected files do not tell whether it has them",
}


def _held(rows: Sequence[Row]) -> str:
    """Whether a plan that was carried out did what it promised, or why that is not known."""
    of: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None:
            of.setdefault(_UNTOLD[row["why"]], []).append(row["server"])
    for why in (NOTHING_SINCE, TOO_EARLY):
        if of.keys() == {_UNTOLD[why]}:
            return f"The plan of repair was carried out; whether it held is not known: {_UNTOLD[why]}."
    told = "; ".join(f"of {_names(servers)} it is not known: {why}" for why, servers in of.items())
    return f"The plan of repair was carried out; whether it held is under “Applied and verified”{f'; {told}' if told else ''}."


def _names(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) > 8:
        return f"{len(names)} servers"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


# --- when


def _event(one: Row, several: bool) -> dict[str, Any]:
    return {
        **{key: one[key] for key in ("at", "kind", "server", "count")},
        "says": _happened(one, several),
        "snapshot": one.get("snapshot"),
    }


def _happened(one: Row, several: bool) -> str:
    of = f" of {one['suffix']}" if several and one.get("suffix") else ""
    match one["kind"]:
        case "missed" if "last_of" in one:
            return f"the last of {one['last_of']:,} changes{of} by origin {one['origin']} that {one['server']} misses was made"
        case "missed":
            what = f"{one['operation'] or 'change'} of {one['target'] or 'an unknown target'}"
            if one["count"] == 1:
                return f"{what} was made by origin {one['origin']}; {one['server']} misses it"
            changes = f"{one['count']:,} changes{of} were made by origin {one['origin']}; {one['server']} misses them"
            return f"{changes} (the first: {what})"
        case "replaced":
            return f"its data{of} was replaced, {_span(one['after'], one['by'])}"
        case "collected":
            return f"files of {_names(one['servers'])} were collected, then or later"
        case "repair":
            return " ".join(filter(None, (f"repair: {one['what']}", one["step"], one["told"])))
    return str(one["message"])


# --- who


def _drawn(drawn: Row) -> dict[str, Any]:
    servers = [{**_without(one, "counts", "claims"), "says": server_says(one)} for one in drawn["servers"]]
    links = [{**_without(one, "over"), **link_says(one)} for one in drawn["links"]]
    return {"suffix": drawn["suffix"], "servers": servers, "links": links}


def _without(row: Row, *keys: str) -> dict[str, Any]:
    return {key: one for key, one in row.items() if key not in keys}


# --- why


def _cause(cause: Row, says: Mapping[str, str]) -> dict[str, Any]:
    """What a cause says: of the named one what happened, of an open one what was tried."""
    code = cause["code"]
    because = [reason.partition(": ")[2] or reason for reason in cause["reasons"]]
    if code:
        general = _in_general(says.get(code, ""))
        said = f"{_sentence(general)} Here: {'; '.join(because)}." if because else _sentence(general)
        return {"says": said, "open": False}
    if alone := told_without_code(cause["reasons"], says):
        return {"says": _sentence(alone), "open": False}
    several = "several things would explain it, each alone"
    said = several if len(because) > 1 else "nothing that the collected files show explains it alone"
    return {"says": f"The cause is open: {said}.", "open": True}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


# --- what is open


def _open(told: Row) -> dict[str, Any]:
    unknown: Sequence[Row] = told["unknown"]
    return {**told, "unknown": [{**one, "why": {**SAYS, **WHY_UNKNOWN}[one["why"]]} for one in unknown]}
