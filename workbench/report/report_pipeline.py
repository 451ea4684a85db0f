"""A report of a case, redacted or whole: from the incident to data that may be drawn, written and sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from workbench.diagnosis.codes import all_codes
from workbench.diagnosis.incident import Incident
from workbench.journal import Journal, owned
from workbench.model import Problem
from workbench.repair.plan_progress import by_whom
from workbench.replication.stream.diagnosis.log_comparison import EVIDENT
from workbench.replication.stream.rules.streams import WHY_UNKNOWN
from workbench.replication.tier.rules.conditions import SAYS as CONDITIONS
from workbench.report.glossary import OF_STREAMS, OF_TIERS, WORDS
from workbench.report.redaction import (
    CODED,
    HOST,
    SERVER,
    TARGET,
    URL,
    Pseudonyms,
    keep,
    kept_pseudonyms,
    without_secrets,
)
from workbench.report.report_data import gathered, names_in
from workbench.report.report_text import worded
from workbench.rules.verdicts import NOT_COVERED, SAYS
from workbench.safety import Secrets

REPORTS = "reports.jsonl"
"""Reports with all names are written down here: by whom, where to, and why. The journal of repairs speaks of plans alone."""
UNREDACTED = "unredacted"


def pseudonyms_of(incident: Incident) -> Pseudonyms:
    """The pseudonyms of the case, with all names that it has few of."""
    system = incident.system
    naming = system.naming() if system.naming else None
    names = kept_pseudonyms(incident.case.folder, naming, system.typed, _ours(incident))
    found: dict[str, dict[str, None]] = {}
    targets: list[str] = []
    urls: list[str] = []
    for kind, name in names_in(incident):
        if kind == TARGET:
            targets.append(name)
        elif kind == URL:
            urls.append(name)
        else:
            found.setdefault(kind, {})[name] = None
    for of, name in (part for target in targets for part in names.parts_of(target)):
        if of not in CODED:
            found.setdefault(of, {})[name] = None
    for kind in (SERVER, *sorted(found)):
        names.learn(kind, found.pop(kind, ()))
    for one in incident.case.inputs:
        names.learn_file(one.file, one.server, one.format.rpartition(".")[2])
    names.learn_from([{TARGET: target} for target in targets])
    names.learn_from([{URL: url} for url in urls])
    names.learn(HOST, _below(names))
    return names


def _below(names: Pseudonyms) -> set[str]:
    """Servers are called by their first name, too: of `ldap1.example.com` also `ldap1`."""
    hosts = [host for host in names.numbered.get(HOST, {}) if "." in host and not host.replace(".", "").isdigit()]
    return {host.partition(".")[0] for host in hosts}


def _ours(incident: Incident) -> Iterator[str]:
    """Words and sentences of the program: no name is in them, even where a server is called like a word of one."""
    for codes in all_codes().values():
        yield from codes
    system = incident.system
    rule_sets = incident.topology.supplying.rule_sets.values() if system.supplying else ()
    sentences = [system.title, *system.milestones.values(), *SAYS.values(), *WORDS.values(), NOT_COVERED]
    if system.streaming:
        sentences += [*OF_STREAMS.values(), *WHY_UNKNOWN.values(), *EVIDENT.values()]
    if system.tiering:
        sentences += [*OF_TIERS.values(), *CONDITIONS.values()]
    sentences += [says for make in rule_sets for says in make().says.values()]
    yield from (one for one in sentences if one.count(" ") > 1)


def secrets_of(incident: Incident) -> Secrets | None:
    """The rules of the system for what is a secret."""
    return incident.system.secrets() if incident.system.secrets else None


def whole_report(incident: Incident) -> dict[str, Any]:
    """The report with all names, without secrets."""
    told = without_secrets(gathered(incident), secrets_of(incident))
    return {**worded(told, incident.system), "redacted": False}


def _nothing(made: dict[str, Any], names: Pseudonyms) -> AbstractContextManager[None]:
    return nullcontext()


def report_without_names(
    incident: Incident, pack: Callable[[dict[str, Any], Pseudonyms], AbstractContextManager[None]] = _nothing
) -> tuple[dict[str, Any], str]:
    """The report with pseudonyms, which are kept before a page is written that has them, and what went wrong with keeping them.

    `pack` makes what needs the pseudonyms themselves: it may add some, and publishes what it made after they are kept.
    """
    names = pseudonyms_of(incident)
    made = redacted_report(incident, names)
    with pack(made, names):
        return made, keep_pseudonyms(names, incident.case.folder)


def redacted_report(incident: Incident, names: Pseudonyms) -> dict[str, Any]:
    """The report without names. Raises Problem rather than to leave one in."""
    told = redacted(without_secrets(gathered(incident), secrets_of(incident)), names)
    return {**worded(told, incident.system), "redacted": True}


def redacted(data: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """Any data of a case without names; what it names is learned first."""
    names.learn_from(data)
    made: dict[str, Any] = names.redacted(data)
    names.check(made)
    return made


def keep_pseudonyms(names: Pseudonyms, folder: Path) -> str:
    """Keep them in the case, so that the next report has the same ones; where that cannot be, a sentence that says so."""
    try:
        keep(names, folder)
    except OSError as error:
        return f"the pseudonyms could not be kept in the case ({error.strerror}): the next report will have others"
    return ""


def note_unredacted(incident: Incident, reason: str, files: list[str]) -> None:
    """Write down that a report with all names is made, before it is. Raises Problem if that cannot be written."""
    folder = incident.case.folder
    reason = without_secrets(reason, secrets_of(incident))
    try:
        with owned(folder):
            journal = _reports(folder / REPORTS)
            journal.append(UNREDACTED, "", reason=reason, files=files, **by_whom(None))
    except OSError as error:
        do = "copy the case to a place where you may write"
        raise Problem(
            f"a report with all names has to be written down first: {error.strerror}", str(folder), do
        ) from None


def _reports(path: Path) -> Journal:
    """What was written down of earlier reports. Raises Problem if it is damaged: who saw which names must stay known."""
    try:
        return Journal(path, (UNREDACTED,))
    except Problem as problem:
        what = problem.what.partition(": ")[2]
        do = "keep a copy of it, move it out of the case, and start again: a new one is begun then"
        raise Problem(f"the list of reports with all names is damaged: {what}", problem.where, do) from None
