"""A report of a case, redacted or whole: from the incident to data that may be drawn, written and sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.boundary import Secrets
from workbench.codes import all_codes
from workbench.incident import Incident
from workbench.journal import Journal, owned
from workbench.model import Problem
from workbench.report.contents import contents, names_in
from workbench.report.redaction import (
    DOMAIN,
    HOST,
    SERVER,
    TARGET,
    Pseudonyms,
    keep,
    kept_pseudonyms,
    parts_of,
    without_secrets,
)
from workbench.standing import by_whom

REPORTS = "reports.jsonl"
"""Reports with all names are written down here: by whom, where to, and why. The journal of repairs speaks of plans alone."""
UNREDACTED = "unredacted"


def pseudonyms_of(incident: Incident) -> Pseudonyms:
    """The pseudonyms of the case, with all names that it has few of."""
    system, codes = incident.system, (code for codes in all_codes().values() for code in codes)
    names = kept_pseudonyms(incident.case.folder, system.common_names, system.typed, codes)
    found: dict[str, set[str]] = {}
    for kind, name in names_in(incident):
        if kind == TARGET:
            found.setdefault(DOMAIN, set()).update(
                part for attribute, part in parts_of(name) if attribute.lower() == "dc"
            )
        elif kind == "url":
            names.learn_from(name)
        else:
            found.setdefault(kind, set()).add(name)
    for kind in (SERVER, *sorted(found)):
        names.learn(kind, found.pop(kind, ()))
    for kind, name in names_in(incident):
        if kind == TARGET:
            names.learn_from({"target": name})
    names.learn(HOST, _below(incident, names))
    return names


def _below(incident: Incident, names: Pseudonyms) -> set[str]:
    """Servers are called by their first name, too: of `ldap1.example.com` also `ldap1`."""
    hosts = [host for host in names.numbered.get(HOST, {}) if "." in host and not host.replace(".", "").isdigit()]
    return {host.partition(".")[0] for host in hosts}


def secrets_of(incident: Incident) -> Secrets | None:
    """The rules of the system for what is a secret."""
    return incident.system.secrets() if incident.system.secrets else None


def whole_report(incident: Incident) -> dict[str, Any]:
    """The report with all names, without secrets."""
    made = without_secrets(contents(incident), secrets_of(incident))
    return {**made, "redacted": False}


def redacted_report(incident: Incident, names: Pseudonyms) -> dict[str, Any]:
    """The report without names. Raises Problem rather than to leave one in."""
    return {**redacted(without_secrets(contents(incident), secrets_of(incident)), names), "redacted": True}


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
            journal = Journal(folder / REPORTS, (UNREDACTED,))
            journal.append(UNREDACTED, "", reason=reason, files=files, **by_whom(None))
    except OSError as error:
        do = "copy the case to a place where you may write"
        raise Problem(
            f"a report with all names has to be written down first: {error.strerror}", str(folder), do
        ) from None
