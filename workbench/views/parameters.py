"""What was chosen in a case, kept with it: a notebook that is run again shows the same, and a run without a person can be
made of it.

    CASE/parameters.yaml   name: value, as chosen last, of all notebooks of the case

A name that a notebook is given outright counts more than what is kept; what is kept counts more than a suggestion. A run
without a person neither reads nor writes it: what it finds depends on the evidence and on its own parameters alone.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.diagnosis.incident import ALL, RECORD, Incident
from workbench.diagnosis.pair_matrix_text import stuck_of
from workbench.journal import write_whole
from workbench.model import Problem
from workbench.safety import printable, strict_yaml, to_yaml
from workbench.topology.history import moment_of
from workbench.views.pending_operations import examples
from workbench.views.stream_lanes import AXES, WHICH
from workbench.views.tier_changes import FORMS
from workbench.views.worked_examples import walks

NAME = "parameters.yaml"
READ_ONLY = "WORKBENCH_READ_ONLY"
"""In the environment: pages that many people look at; what one chooses there is not kept."""

_HEAD = "# What was chosen in the notebooks of this case. Written by them; an empty or absent file is no loss.\n"


@dataclass(frozen=True)
class Offer:
    """What may be chosen for a parameter, out of the evidence.

    options  the choices; empty: any text
    first    what is taken where nobody chose
    says     a hint: the time span seen, what the choice does
    labels   option -> how it is shown, where not as it is
    """

    options: tuple[str, ...] = ()
    first: str = ""
    says: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


NUMBERS = frozenset({"per_load"})
"""Parameters that are numbers; all others are text, also an origin that looks like a number."""


def as_given(name: str, value: Any) -> str | int:
    """A parameter as the notebook was given it, whoever gave it: `-p origin 1` makes a number of a text."""
    if name in NUMBERS and isinstance(value, str) and re.fullmatch("-?[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int if name in NUMBERS else (str, int)):
        wanted = "a whole number" if name in NUMBERS else "text"
        raise Problem(f"{name} is {printable(repr(value))[:60]}", "parameters", f"give {wanted}")
    return value if name in NUMBERS else str(value)


def number_chosen(name: str, given: int, kept: Mapping[str, str], first: int = 0) -> int:
    """The same for a number: one below zero means that nobody chose."""
    before = kept.get(name, "")
    return given if given >= 0 else int(before) if re.fullmatch("[0-9]{1,9}", before) else first


def offers(incident: Incident) -> dict[str, Offer]:
    """Parameter name -> what the evidence of the case offers for it."""
    shown, found = incident.topology, incident.found
    servers = tuple(dict.fromkeys(one.server for one in shown.replicas))
    origins = tuple(
        dict.fromkeys(
            origin
            for one in sorted(shown.replicas, key=lambda one: one.server)
            for origin in sorted({*one.vector, *one.log_claims, *_logged(one)}, key=natural)
        )
    )
    replicas = [one for one in shown.replicas if one.claims] or shown.replicas
    suffix = next((one.suffix for one in replicas), None)
    pair = _suggested_pair(found, suffix)
    lacking: dict[str, Any] = next(
        (row for name in ("missing", "unknown", "pending") for row in found[name] if row["suffix"] == suffix), {}
    )
    others = [name for name in servers if name != lacking.get("server")]
    system = incident.system
    rules = tuple(system.supplying().rule_sets if system.supplying else shown.pulling.answers if shown.pulling else ())
    begin, end = span_of(incident)
    shown_walks = {name: f"{name}: {one.title}" for name, one in walks(incident).items()}
    worked = {"": "the collected logs", **{name: f"{name}: {title}" for name, title in examples(incident).items()}}
    return {
        "server": Offer((ALL, *servers), ALL, "whose changes; * is all"),
        "origin": Offer((ALL, *origins), ALL, "who made the changes; * is all"),
        "supplier": Offer(servers, pair[0], "who sends"),
        "consumer": Offer(servers, pair[1], "who receives"),
        "other": Offer(servers, others[0] if others else "", "the server to compare with"),
        "suffix": Offer(tuple(dict.fromkeys(one.suffix or "" for one in shown.replicas)), suffix or ""),
        "link": Offer((ALL, *dict.fromkeys(one.name for one in shown.links)), ALL),
        "rules": Offer(rules, rules[0] if rules else "", "by which rules the session is played"),
        "as_of": Offer(tuple(incident.case.snapshots), incident.then_label, "as of this snapshot"),
        "per_load": Offer((), "5", "records in a buffer; 0: all in one load"),
        "example": Offer(tuple(worked), "", "a worked example instead of the logs", worked),
        "walk": Offer(
            tuple(shown_walks) or ("",), next(iter(shown_walks), ""), "a worked example of a small fleet", shown_walks
        ),
        "which": Offer(
            tuple(WHICH),
            next(iter(WHICH)),
            "which transactions",
            {name: f"{name}: {says}" for name, says in WHICH.items()},
        ),
        "by": Offer(tuple(AXES), next(iter(AXES)), "what goes from left to right", AXES),
        "transaction": Offer((), "", "those around this one"),
        "what_if": Offer((), "", FORMS),
        "position": Offer(
            (), str(lacking.get("position") or lacking.get("from") or lacking.get("first") or ""), "one change"
        ),
        "target": Offer((), "", "the entry, or a part of its name"),
        "since": Offer((), "", f"{begin} UTC"),
        "until": Offer((), "", f"{end} UTC"),
    }


def _logged(replica: Any) -> Mapping[str, Any]:
    seen: Mapping[str, Any] = replica.log.facts.get("by_origin", {}) if replica.log else {}
    return seen


def natural(name: str) -> tuple[int, str]:
    """Numbers by their size, names behind them; only an order, the text stays what it is."""
    return (len(name), name) if name.isdecimal() else (1 << 30, name)


_TELLING = ("anchor_not_found", "refused", "unknown", "send", "nothing_to_send")


def _suggested_pair(found: Mapping[str, Any], suffix: str | None) -> tuple[str, str]:
    """The pair of which most is to be told: one that is stuck, linked ones before others."""
    pairs = sorted(
        (row for row in found["pairs"] if row["suffix"] == suffix),
        key=lambda row: (
            not stuck_of(row),
            _TELLING.index(row["decision"]) if row["decision"] in _TELLING else 9,
            row["link"] is None,
        ),
    )
    return (pairs[0]["supplier"], pairs[0]["consumer"]) if pairs else ("", "")


def span_of(incident: Incident) -> tuple[str, str]:
    """First and last time that the evidence speaks of, as text (UTC)."""
    times: list[datetime] = []
    for row in incident.case.arrow("coverage").select(["first_at", "last_at"]).to_pylist():
        times += [at for at in row.values() if at]
    for one in incident.case.inputs:
        for seen in one.facts.get("by_origin", {}).values():
            made = [incident.system.moment(seen[end]) for end in ("min", "max") if seen.get(end)]
            times += [at for at in made if at]
    if not times:  # no log: as far as the vectors go, but for time 0, which is before every change
        ends = (
            end for one in incident.topology.replicas for span in one.vector.values() for end in (span.min, span.max)
        )
        made = [incident.system.moment(end) for end in ends if end and incident.system.halves(end)[0] > 0]
        times = [at for at in made if at]
    if not times:
        return "no time seen,", "no time seen,"
    first, last = (f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for at in (min(times), max(times)))
    return first, last


def chosen(offer: Offer, name: str, given: str, kept: Mapping[str, str], incident: Incident) -> str:
    """The value of a parameter: as given, else as kept if that may still be chosen, else as suggested.

    An empty text means that nobody chose; that somebody chose nothing in particular is written `*`, see `as_written`.
    Raises Problem for a given value that the evidence does not have: an empty view would look like a clean one.
    """
    if given:
        return checked(offer, name, _as_chosen(offer, given), incident)
    if kept.get(name):
        with suppress(Problem):  # it was possible when it was chosen
            return checked(offer, name, _as_chosen(offer, kept[name]), incident)
    return offer.first


def checked(offer: Offer, name: str, value: str, incident: Incident) -> str:
    """The value, if it can be chosen; Problem says what can be."""
    if offer.options and value not in offer.options:
        there = ", ".join(one for one in offer.options if one) or "nothing: none was found"
        raise Problem(f"{name} is {printable(value)}", "parameters", f"it can be {there}")
    if value and name in ("since", "until"):
        moment_of(value)
    if value and name == "position" and incident.system.typed(value) is None:
        raise Problem(f"{printable(value)[:60]} is not a position", "parameters", "give one as the tables show it")
    return value


def _as_chosen(offer: Offer, written: str) -> str:
    return "" if written == ALL and ALL not in offer.options else written


def as_written(value: Any) -> Any:
    """A choice as it is kept and copied: an empty one as `*`, because an empty parameter means that nobody chose."""
    return ALL if value == "" else value


def kept_in(folder: Path) -> dict[str, str]:
    """What is kept with a case; a file that cannot be read keeps nothing, and the next choice replaces it."""
    if os.environ.get(RECORD):
        return {}
    path = folder / NAME
    try:
        said = strict_yaml(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else {}
    except (OSError, ValueError, Problem):
        return {}
    return {name: value for name, value in said.items() if isinstance(value, str)} if isinstance(said, dict) else {}


def keep(folder: Path, choices: Mapping[str, str]) -> None:
    """Keep these choices with the case, beside the others. Raises Problem if the case cannot be written."""
    if os.environ.get(READ_ONLY) or os.environ.get(RECORD):
        return
    path = folder / NAME
    try:
        with _alone_in(folder):
            write_whole(path, _HEAD + to_yaml(dict(sorted({**kept_in(folder), **choices}.items()))))
    except OSError as error:
        raise Problem(
            f"the choice is not kept: {error.strerror}", str(path), "it holds until the notebook ends"
        ) from None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two notebooks of one case that choose in one moment: each takes up what the other has kept."""
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders have no locks: the later of two choices counts there
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def as_parameters_file(notebook: str, parameters: Mapping[str, str | int | Sequence[str]]) -> str:
    """The parameters file of a run without a person that shows exactly this."""
    head = f"# The parameters of the notebook {notebook}, as it was shown when this was copied.\n"
    return head + to_yaml({"notebook": notebook, "parameters": dict(parameters)})
