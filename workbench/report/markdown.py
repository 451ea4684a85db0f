"""The report as Markdown, for tickets and chats. What comes from data is text in every viewer: no markup, link or picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.boundary import printable
from workbench.report.wording import LISTED, absence, holders, judged_otherwise

Row = Mapping[str, Any]

_SIGNS = re.compile(r"[\\`*_{}\[\]()#+!|~$^=<>&\"'@:/]|(?<=www)\.|-(?=-)|^-|^[0-9]+\.(?=\s|$)")
_ENTITIES = frozenset("<>&\"'@$:/.|`\\")
_HARMLESS = re.compile(r"(?<=[0-9]):(?=[0-9]{2})|(?<=[\w)])[:/](?=\s)")
"""Times, and the end of a word: no viewer makes a link of those."""
_LINES = 60


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
    named = ", ".join((escaped(about["name"]), escaped(about["system"]), f"snapshot {escaped(about['snapshot'])}"))
    yield f"Incident report: {named}. Times are UTC. {shown}"
    yield ""
    yield from (f"> {escaped(one)}\n>" for one in report["plain"])
    yield "\n## What happened when"
    events = report["timeline"]["events"]
    yield from _table(("when", "server", "what"), [_cells(one["at"], one["server"], one["says"]) for one in events])
    yield "## Servers and links"
    for drawn in report["topology"]:
        yield f"\n### {escaped(drawn['suffix'] or 'suffix not named')}"
        servers = [_cells(one["name"], one["origin"], one["verdict"], one["says"]) for one in drawn["servers"]]
        yield from _table(("server", "origin", "verdict", "says"), servers)
        links = [_cells(one["supplier"], one["consumer"], one["name"], one["says"]) for one in drawn["links"]]
        yield from _table(("from", "to", "link", "what goes over it now"), links)
    yield from _missed(report)
    yield from _causes(report)
    yield "\n## Findings\n"
    for one in report["findings"]:
        yield f"- **{escaped(one['severity'])}** {escaped(one['code'])}: {escaped(one['summary'])}"
        yield from (f"  - {escaped(fix['repair'])} ({escaped(fix['why'])})" for fix in one["fix"])
    yield from _plan(report)
    yield "\n## What all this rests on"
    files = [
        (
            *_cells(
                f"{one['snapshot']}/{one['file']}",
                one["server"],
                one["format"],
                one["bytes"],
                one["rows"],
                one["rejected"],
            ),
            _code(one["sha256"]),
        )
        for one in report["inventory"]
    ]
    yield from _table(("file", "server", "format", "bytes", "rows", "set aside", "SHA-256"), files)
    yield "## Glossary"
    words = [_cells(one["word"], one["means"], one["there"]) for one in report["glossary"]]
    yield from _table(("word", "means", f"{escaped(about['system'])} calls it"), words)
    yield f"Made {escaped(report['run']['at'])} by the replication workbench {escaped(report['run']['version'])}."


def _cells(*values: Any) -> tuple[str, ...]:
    return tuple(escaped(one) for one in values)


def _changes(count: int) -> str:
    return f"{count:,} {'change' if count == 1 else 'changes'}"


def _missed(report: Row) -> Iterator[str]:
    yield "\n## What was missed, and the proof"
    if not report["missing"]:
        yield "\nNo change is known to be missing on any server.\n"
    for group in report["missing"]:
        least = "at least " if group["at_least"] else ""
        yield f"\n### {escaped(group['about'])}: {least}{_changes(group['count'])}\n"
        upto = f" to {_at(group['last'], group['last_at'])}" if group["last"] else " on; the list was cut"
        yield f"From {_at(group['first'], group['first_at'])}{upto}. {escaped(holders(group))}"
        rows = [
            (_at(one["position"], one["at"]), *_cells(one["operation"] or "?", one["target"] or "?", one["says"]))
            for one in group["changes"]
        ]
        yield from _table(("change", "what", "target", "known because"), rows)
        if group["more"]:
            more = "at least " if group["at_least"] else ""
            yield f"and {more}{group['more']:,} more: {escaped(LISTED)}"
        for proof in group["proofs"]:
            yield f"\nProof for {_at(proof['position'], proof['at'])}:\n"
            for one in proof["servers"]:
                yield f"- {escaped(one['server'])}: **{escaped(one['verdict'])}**, {escaped(one['says'])}"
                for row in one["rows"]:
                    where = escaped(f"{row['snapshot']}/{row['file']}:{row['offset']}")
                    yield f"  - {where}: {escaped(row['says'])}"
                yield from (f"  - {escaped(line)}" for line in absence(one))
    pending = [
        (
            *_cells(one["server"], one["origin"], one["count"]),
            _at(one["first"], one["first_at"]),
            _at(one["last"], one["last_at"]),
        )
        for one in report["open"]["pending"]
    ]
    if pending:
        yield "\n### Not arrived yet"
        yield from _table(("server", "origin", "changes", "first", "last"), pending)
    unknown = [
        (
            *_cells(one["server"], one["origin"]),
            _at(one["from"], one["from_at"]),
            _at(one["to"], one["to_at"]),
            escaped(one["why"]),
        )
        for one in report["open"]["unknown"]
    ]
    if unknown:
        yield "\n### What nobody can tell from the collected files"
        yield from _table(("server", "origin", "from", "to", "why"), unknown)


def _causes(report: Row) -> Iterator[str]:
    yield "\n## Cause, and the replay that shows it"
    if not report["causes"]:
        yield "\nNothing is missing, so there is no cause to tell.\n"
    for one in report["causes"]:
        of = f" ({one['count']:,} of {one['of']:,})" if one["count"] < one["of"] else ""
        yield f"\n### {escaped(one['about'])}: {escaped(one['code'] or 'open')}{of}\n"
        yield f"{escaped(one['says'])}\n"
        yield from (f"- {escaped(reason)}" for reason in one["reasons"])
        yield from (f"- {escaped(proof['summary'])}" for proof in one["proofs"])
        records = [
            (_at(row["position"], row["at"]), *_cells(row["origin"], row["verdict"], row["says"]))
            for row in one["records"]
        ]
        yield from _table(("record", "origin", "there", "because"), records)
        for session in one["sessions"]:
            judged = escaped(session["outcome"]) if session["outcome"] else "not read"
            pair = f"{escaped(session['supplier'])} with {escaped(session['consumer'])}"
            yield f"Replayed, {pair}: {escaped(session['does'])}; the first of these changes is {judged}.\n"
            yield from (f"- {escaped(why['says'])} {escaped(why['compared'])}".rstrip() for why in session["why"])
            yield ""


def _plan(report: Row) -> Iterator[str]:
    plan = report["plan"]
    yield "\n## Plan"
    if not plan or "problem" in plan:
        yield f"\n{escaped(plan['problem']) if plan else 'No plan was made yet.'}\n"
    else:
        yield f"\nPlan {escaped(plan['id'])} on snapshot {escaped(plan['snapshot'])}: {escaped(plan['standing'])}."
        for need in plan["needs"]:
            yield f"\n### {escaped(need['need'])}"
            ways = [_cells(one["way"], one["verdict"], one["says"], one["why"]) for one in need["courses"]]
            yield from _table(("way", "verdict", "what", "why"), ways)
        for step in plan["steps"]:
            yield f"\n### Step {escaped(step['key'])}\n"
            yield f"{escaped(step['says'])}\n"
            for word in ("stands_on", "expects", "risk", "undo", "cannot_undo"):
                if step[word]:
                    yield f"- {word.replace('_', ' ')}: {escaped(step[word])}"
            for line in [*step["commands"], *step["sends"].splitlines()][:_LINES]:
                yield f"- command: {escaped(line)}"
        yield from (f"- not mended: {escaped(one)}" for one in plan["open"])
    yield "\n## Applied and verified"
    if report["journal_problem"]:
        yield f"\n{escaped(report['journal_problem'])}"
    elif not report["journal"]:
        yield "\nThe journal of the case is empty.\n"
    journal = [_cells(one["at"], one["what"], one["step"], one["says"]) for one in report["journal"]]
    yield from _table(("when", "what", "step", "says"), journal)
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
    yield from _table(("server", "suffix", "missing when planned", "promised", "found"), rows)
    if told := judged_otherwise(report["verification"]):
        yield f"{escaped(told)}\n"
