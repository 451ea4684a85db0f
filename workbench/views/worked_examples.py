"""Worked examples of small fleets, step by step: what each server claims and holds after each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.incident import Incident
from workbench.model import NotOfThisSystem, Problem
from workbench.views.verdict_style import MISSING, PENDING, PRESENT

if TYPE_CHECKING:
    from workbench.replication.entry.rules.entries import Example, Moment


def walks(incident: Incident) -> Mapping[str, Example]:
    """The examples of the system by name; none of one that has none."""
    found: Mapping[str, Example] = incident.system.walks()
    return found


def walk(incident: Incident, name: str, at: int = 0) -> dict[str, Any]:
    """One example after one of its steps, counted from 0; a step beyond its ends is the first or the last.

    Keys: name, title, shows, at, steps (says, refused, back, verdict), servers (name, vector, values, each with `new` where
    this step made it), agree (all servers that hold entries hold the same).
    """
    known = walks(incident)
    if not known:
        raise NotOfThisSystem(
            f"there are no worked examples of fleets of {incident.system.title}",
            incident.case.name,
            f"{incident.system.notebook} shows how its servers work"
            if incident.system.notebook
            else "21_anchor, 22_stop_csn and 24_pending_list show how its servers work",
        )
    if name not in known:
        raise Problem(f"there is no example {name}", "", f"there are {', '.join(known)}")
    moments = list(known[name].play())
    at = max(0, min(at, len(moments) - 1))
    before = moments[at - 1] if at else None
    held = [one for one in moments[at].contents.values() if one]
    return {
        "name": name,
        "title": known[name].title,
        "shows": known[name].shows,
        "at": at,
        "steps": [_step(one) for one in moments],
        "servers": [_server(server, moments[at], before) for server in moments[at].vectors],
        "agree": len(held) == len(moments[at].contents) and all(one == held[0] for one in held),
    }


def _step(one: Moment) -> dict[str, Any]:
    verdict = MISSING if one.back else PENDING if one.refused else PRESENT
    back = ", ".join(f"{attribute} of {entry}" if attribute else entry for entry, attribute in one.back)
    return {"says": one.says, "refused": one.refused, "back": back, "verdict": verdict}


def _server(name: str, now: Moment, before: Moment | None) -> dict[str, Any]:
    then = before.vectors.get(name, {}) if before else {}
    had = before.contents.get(name, {}) if before else {}
    return {
        "name": name,
        "concerned": name in now.servers,
        "vector": [
            {"origin": origin, "text": f"{origin} {first}/{last}", "new": then.get(origin) != (first, last)}
            for origin, (first, last) in sorted(now.vectors[name].items())
        ],
        "values": [
            {
                "text": f"{entry}: {attribute} = {', '.join(map(str, values))}",
                "new": had.get(entry, {}).get(attribute) != values,
            }
            for entry, attributes in now.contents[name].items()
            for attribute, values in attributes.items()
        ],
    }
