"""The report as Markdown, for tickets and chats. What comes from data is text in every viewer: no markup, link or picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.diagnosis.diagnosis_text import held_say, what_changed
from workbench.report.redaction import LEFT_OUT
from workbench.report.report_text import LISTED, absence, holders, judged_otherwise
from workbench.safety import printable

Row = Mapping[str, Any]

_SIGNS = re.compile(r"[\\`*_{}\[\]()#+!|~$^=<>&\"'@:/]|(?<=www)\.|-(?=-)|^-|^[0-9]+\.(?=\s|$)")
_ENTITIES = frozenset("<>&\"'@$:/.|`\\")
_HARMLESS = re.compile(r"(?<=[0-9]):(?=[0-9]{2})|(?<=[\w)])[:/](?=\s)")
"""Times, and the end of a word: no viewer makes a link of those."""


def markdown(report: Row) -> str:
    """The whole report; the same report gives the same text."""
    return "\n".join(_parts(report)).rstrip() + "\n"


def escaped(value: Any) -> str:
    """Text of data on one line of Markdown."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = " ".join(printable(str(value)).split())
    kept = {found.start() for found in _HARMLESS.finditer(text)}
    return _SIGNS.sub(lambda found: found[0] if found.start() in kept else _escape(found[0]), text)


def _escape(sign: str) -> str:
    # Most viewers take a backslash for what it is meant; for links, quotes and tables only an entity is safe in all.
    # Digits stand here before a point alone, which would begin a list.
    return "".join(one if one.isdecimal() else f"&#{ord(one)};" if one in _ENTITIES else f"\\{one}" for one in sign)


def _code(value: Any) -> str:
    """A position or a hash: hexadecimal digits need no escape, and anything else is no code."""
    text = str(value or "")
    return f"`{text}`" if re.fullmatch(r"[0-9A-Za-z.-]+", text) else escaped(text)


def _at(position: Any, when: Any) -> str:
    return f"{_code(position)} ({escaped(when)})" if when else _code(position)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    rows = list(rows)
    if rows:
        yield ""
        yield f"| {' | '.join(heads)} |"
        yield f"|{'---|' * len(heads)}"
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""


def _parts(report: Row) -> Iterator[str]:
    about = report["case"]
    yield f"# {escaped(report['headline'])}"
    yield ""
    shown = "Names are replaced by pseudonyms." if report["redacted"] else "All names are shown."
    of = f" (of {_listed(about['snapshots'])})" if len(about["snapshots"]) > 1 else ""
    named = ", ".join((escaped(about["name"]), escaped(about["system"]), f"snapshot {escaped(about['snapshot'])}{of}"))
    yield f"Incident report: {named}. Times are UTC, by the clock of the server concerned. {shown}"
    yield ""
    yield from (f"> {escaped(one)}\n>" for one in report["plain"])
    yield "\n## What happened when"
    events = [
        (*_cells(one["at"], one["server"]), f"{escaped(one['says'])}{_aside(one['snapshot'])}")
        for one in report["timeline"]["events"]
    ]
    yield from _table(("when", "server", "what"), events)
    if more := report["timeline"]["more"]:
        yield f"{more:,} lesser events are left out.\n"
    yield "## Servers and links"
    for drawn in report["topology"]:
        yield f"\n### {escaped(drawn['suffix'] or 'suffix not named')}"
        servers = [_cells(one["name"], one["origin"], one["verdict"], one["says"]) for one in drawn["servers"]]
        yield from _table(("server", "origin", "verdict", "says"), servers)
        links = [_cells(one["supplier"], one["consumer"], one["name"], one["says"]) for one in drawn["links"]]
        yield from _table(("from", "to", "link", "what goes over it now"), links)
    yield from _missed(report)
    yield from _stream(report["stream"])
    for tree in report["trees"]:
        yield from _tree(tree)
    yield from _open(report["open"])
    yield from _causes(report)
    yield from _findings(report)
    yield from _plan(report["plan"])
    yield from _applied(report)
    yield "\n## What all this rests on"
    heads = ("file", "server", "format", "bytes", "rows", "set aside", "SHA-256")
    files = [
        (
            escaped(f"{one['snapshot']}/{one['file']}"),
            *_cells(one["server"], one["format"], one["bytes"], one["rows"], one["rejected"]),
            _code(one["sha256"]),
        )
        for one in report["inventory"]
    ]
    yield from _table(heads, files)
    yield "## Glossary"
    words = [_cells(one["word"], one["means"], one["there"]) for one in report["glossary"]]
    yield from _table(("word", "means", f"{escaped(about['system'])} calls it"), words)
    yield f"Made {escaped(report['run']['at'])} by the replication workbench {escaped(report['run']['version'])}."


def _cells(*values: Any) -> tuple[str, ...]:
    return tuple(escaped(one) for one in values)


def _listed(names: Iterable[str]) -> str:
    return escaped(", ".join(names))


def _aside(value: Any) -> str:
    return f" ({escaped(value)})" if value else ""


def _changes(count: int) -> str:
    return f"{count:,} {'change' if count == 1 else 'changes'}"


def _stream(stream: Row) -> Iterator[str]:
    if not stream["logs"]:
        return
    yield "\n## The stream of transactions"
    heads = (
        "server",
        "origin",
        "committed",
        "others",
        "rows seen",
        "rows kept",
        "rows taken back",
        "behind",
    )
    keys = ("server", "origin", "committed", "others", "rows_seen", "rows_kept", "rows_cancelled", "behind")
    yield from _table(heads, [_cells(*(one[key] for key in keys)) for one in stream["logs"]])
    if stream["lacks"]:
        yield "\n### What each log lacks of its source's"
        lacks = [
            (*_cells(one["server"], one["source"], one["says"], one["count"]), _positions(one))
            for one in stream["lacks"]
        ]
        yield from _table(("server", "source", "what", "transactions", "which, in the order of commits"), lacks)
    if stream["odd"]:
        yield "\n### Transactions that are no plain commits, and the biggest ones"
        said = ("outcome", "messages", "seen", "kept", "cancelled", "says")
        odd = [
            (escaped(one["server"]), _code(one["position"]), *_cells(*(one[key] for key in said)))
            for one in stream["odd"]
        ]
        yield from _table(("server", "transaction", "outcome", "messages", "rows", "count", "taken back", "why"), odd)
        if stream["more"]:
            yield f"and {stream['more']:,} more: `workbench diagnose CASE --json FILE` has them.\n"


def _tree(tree: Row) -> Iterator[str]:
    yield f"\n## The tree of {escaped(tree['origin'])}"
    yield f"\nIts head is at {_code(tree['head'])}, the fanout is {tree['fanout']}.\n"
    heads = (
        "node",
        "state",
        "tier",
        "serves",
        "reported before",
        "at",
        "bytes behind",
        "is",
        "needs file",
        "who has it",
    )
    keys = ("state", "tier", "children", "age", "position", "behind", "condition", "needs_file")
    rows = [
        (f"{'· ' * one['depth']}{escaped(one['server'])}", *_cells(*(one[key] for key in keys)), escaped(one["helped"]))
        for one in tree["nodes"]
    ]
    yield from _table(heads, rows)
    if tree["more"]:
        yield f"and {tree['more']:,} more nodes that are well.\n"


def _positions(one: Row) -> str:
    more = f" and {one['more']:,} more" if one["more"] else ""
    return f"{', '.join(map(_code, one['positions']))}{more}"


def _missed(report: Row) -> Iterator[str]:
    yield "\n## What was missed, and the proof"
    if not report["missing"]:
        yield "\nNo change is known to be missing on any server.\n"
    for group in report["missing"]:
        least = "at least " if group["at_least"] else ""
        made = f", made on {escaped(group['made_on'])}" if group["made_on"] else ""
        yield f"\n### {escaped(group['about'])}: {least}{_changes(group['count'])} missing{made}\n"
        upto = f" to {_at(group['last'], group['last_at'])}" if group["last"] else " on; the list was cut"
        yield f"From {_at(group['first'], group['first_at'])}{upto}. {escaped(holders(group))}"
        rows = [
            (
                _at(one["position"], one["at"]),
                escaped(what_changed(one)),
                escaped(one["target"] or "?"),
                escaped(held_say(one)),
                escaped(one["says"]),
            )
            for one in group["changes"]
        ]
        yield from _table(("change", "what", "target", "held by", "known because"), rows)
        if group["more"]:
            yield f"and {least}{group['more']:,} more: {escaped(LISTED)}"
        for proof in group["proofs"]:
            yield f"\nProof for {_at(proof['position'], proof['at'])}:\n"
            for one in proof["servers"]:
                yield f"- {escaped(one['server'])}: **{escaped(one['verdict'])}**, {escaped(one['says'])}"
                yield from (f"  - {_row(row)}" for row in one["rows"])
                if one["more"]:
                    yield f"  - and {one['more']:,} more rows"
                yield from (f"  - {escaped(line)}" for line in absence(one))


def _row(row: Row) -> str:
    """One row of evidence: where it stands, and what it says."""
    told = [row["says"], row["target"], f"link {row['link']}" if row["link"] else "", row["at"]]
    if row["text"] != LEFT_OUT:
        told.append(row["text"])
    said = ", ".join(filter(None, told))
    return escaped(f"{row['snapshot']}/{row['file']}:{row['offset']}: {said}")


def _dropped(row: Row) -> str:
    if row["dropped_by_task"]:
        return "dropped until a task of cleaning ends"
    return "dropped unless restarted since" if row["perhaps_restarted"] else "dropped until a restart"


def _senders(row: Row) -> str:
    """Who would send what waits, and how many of it the server refused."""
    refused = f"; {row['refused']:,} refused" if row["refused"] else ""
    return (_listed(row["suppliers"]) or "nobody now") + refused


def _open(found: Row) -> Iterator[str]:
    pending = [
        (
            *_cells(one["server"], one["origin"], one["count"]),
            _at(one["first"], one["first_at"]),
            _at(one["last"], one["last_at"]),
            _dropped(one) if one["dropped"] else _senders(one),
        )
        for one in found["pending"]
    ]
    if pending:
        yield "\n### Not arrived yet"
        yield from _table(("server", "origin", "changes", "first", "last", "would be sent by"), pending)
    stranded = [
        (*_cells(one["server"], one["origin"]), _at(one["position"], one["at"]), escaped(one["target"] or "?"))
        for one in found["stranded"]
    ]
    if stranded:
        yield "\n### Stranded"
        yield from _table(("held by", "origin", "change", "target"), stranded)
        yield f"{found['counts']['stranded']:,} in all."
    unknown = [
        (
            *_cells(one["server"], one["origin"], "not known" if one["count"] is None else one["count"]),
            _at(one["from"], one["from_at"]),
            _at(one["to"], one["to_at"]),
            escaped(one["why"]),
        )
        for one in found["unknown"]
    ]
    if unknown:
        yield "\n### What nobody can tell from the collected files"
        yield from _table(("server", "origin", "changes", "from", "to", "why"), unknown)
        yield f"{found['counts']['unknown']:,} in all."


def _causes(report: Row) -> Iterator[str]:
    yield "\n## Cause, and the replay that shows it"
    if not report["causes"]:
        yield "\nNothing is missing, so there is no cause to tell; the findings say what else is wrong.\n"
    for one in report["causes"]:
        of = f" ({one['count']:,} of {one['of']:,}, from {_code(one['first'])} on)" if one["count"] < one["of"] else ""
        yield f"\n### {escaped(one['about'])}: {escaped(one['code'] or ('open' if one['open'] else 'known'))}{of}\n"
        yield f"{escaped(one['says'])}\n"
        if one["open"]:
            yield from (f"- {escaped(reason)}" for reason in one["reasons"])
        for proof in one["proofs"]:
            yield f"- {escaped(proof['summary'])}"
            for row in proof["rows"]:
                said = (f"{key.replace('_', ' ')}: {told}" for key, told in row.items() if told != LEFT_OUT)
                yield f"  - {escaped(', '.join(said))}"
        records = [
            (_at(row["position"], row["at"]), *_cells(row["origin"], row["verdict"], row["says"]))
            for row in one["records"]
        ]
        if records:
            yield f"\nThe records around the first of them, in the log of {escaped(one['records'][0]['supplier'])}:"
        yield from _table(("record", "origin", f"and {escaped(one['server'])}", "because"), records)
        for session in one["sessions"]:
            yield from _session(session)


def _session(session: Row) -> Iterator[str]:
    judged = escaped(session["outcome"].replace("_", " ")) if session["outcome"] else "not read"
    pair = f"{escaped(session['supplier'])} with {escaped(session['consumer'])}"
    begins = f", beginning at {_at(session['anchor'], session['anchor_at'])}" if session["anchor"] else ""
    yield f"\nReplayed, {pair}: {escaped(session['does'])}{begins}; the first of these changes is {judged}.\n"
    yield from (f"- {escaped(why['says'])}{_aside(why['compared'])}" for why in session["why"])
    yield from (f"- {one['count']:,} records: {escaped(one['outcome'])}" for one in session["counts"])
    yield from (
        f"- By the rule set {escaped(one['rules'])} it would differ: {escaped(one['does'])}."
        for one in session["others"]
    )


def _findings(report: Row) -> Iterator[str]:
    yield "\n## Findings\n"
    if not report["findings"]:
        yield "None."
    for one in report["findings"]:
        where = "".join((f", {escaped(one['server'])}" if one["server"] else "", _link(one["link"])))
        yield f"- **{escaped(one['severity'])}** {escaped(one['code'])}{where}: {escaped(one['summary'])}"
        for quote in one["quotes"]:
            yield f"  - the errors log of {escaped(quote['server'])} says just before: {escaped(quote['text'])}"
        for fix in one["fix"]:
            beware = f"; **beware**: {escaped(fix['caution'])}" if fix["caution"] else ""
            yield f"  - {escaped(fix['repair'])} ({escaped(fix['why'])}{beware})"


def _link(name: Any) -> str:
    return f", link {escaped(name)}" if name else ""


def _plan(plan: Row | None) -> Iterator[str]:
    yield "\n## Plan"
    if not plan:
        yield "\nNo plan was made yet: `workbench plan CASE` makes one, and writes to no server.\n"
        return
    if "problem" in plan:
        yield f"\nThe plan of the case cannot be read: {escaped(plan['problem'])}\n"
        return
    made = escaped(plan["made_at"].replace("T", " ").replace("Z", " UTC"))
    on = f"made {made} on snapshot {escaped(plan['snapshot'])}"
    yield f"\nPlan {escaped(plan['id'])}, {on}: {escaped(plan['standing'])}."
    for need in plan["needs"]:
        yield f"\n### {escaped(need['need'])}: the ways compared"
        ways = [
            (
                *_cells(one["way"], one["verdict"]),
                escaped(". ".join(filter(None, (one["says"], one["why"], *one["also"])))),
                *_cells(one["restored"], one["lost"]),
            )
            for one in need["courses"]
        ]
        yield from _table(("way", "verdict", "what, and why", "restores", "loses"), ways)
    for step in plan["steps"]:
        yield f"\n### Step {escaped(step['key'])}{' — done' if step['key'] in plan['done'] else ''}\n"
        yield f"{escaped(step['says'])}\n"
        loses = f"; **{escaped(step['loses'])}**" if step["loses"] else ""
        yield f"- changes: {escaped(step['server'])}, done on {escaped(step['on'])}{loses}"
        yield from (f"- {word.replace('_', ' ')}: {escaped(step[word])}" for word in ("stands_on", "expects", "risk"))
        if step["assumes"]:
            yield f"- taken for granted: {escaped(step['assumes'])}"
        yield f"- undo: {escaped(step['undo'] or 'cannot be undone: ' + step['cannot_undo'])}"
        yield from (f"- command: {escaped(line)}" for line in step["commands"])
        if step["sends"]:
            yield "- sends:"
            yield from (f"  - {escaped(line)}" for line in step["sends"].splitlines() if line.strip())
    if plan["open"]:
        yield "\n### Not mended by this plan\n"
        yield from (f"- {escaped(one)}" for one in plan["open"])


def _applied(report: Row) -> Iterator[str]:
    yield "\n## Applied and verified"
    if report["journal_problem"]:
        yield f"\n{escaped(report['journal_problem'])}"
    elif not report["journal"]:
        yield "\nNothing was applied: the journal of the case is empty.\n"
    journal = [_cells(one["at"], one["plan"], one["what"], one["step"], one["says"]) for one in report["journal"]]
    yield from _table(("when", "plan", "what", "step", "says"), journal)
    rows = [
        _cells(
            one["server"],
            one["suffix"],
            one["before"],
            one["promised"],
            f"not known: {one['why']}" if one["found"] is None else one["found"],
        )
        for one in report["verification"]
    ]
    if rows:
        yield "\n### Verification: changes missing on each server"
    yield from _table(("server", "suffix", "when planned", "promised", "found in this snapshot"), rows)
    if told := judged_otherwise(report["verification"]):
        yield f"{escaped(told)}\n"
