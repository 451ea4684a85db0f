"""Which findings leave others without meaning, as data: the root is said first, what only follows from it is not counted.

Positions are compared everywhere in a diagnosis. Where they do not mean the same on two servers (other data, one origin used
twice), whatever was concluded from comparing them is void, however many rows prove it.

    s1  UNRELATED_DATA                        said first, counted
    s1  ROLLED_BACK, "others hold more"       shown, not counted: overruled_by UNRELATED_DATA
    s2  MISSED_CHANGE, found among equals     stays: another server
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.diagnosis.relayed_changes import (
    ANSWERED_NOT_APPLIED,
    DATA_GONE,
    DATABASE_FAILING,
    DISK_LOW,
    INITIALISATION_ABORTED,
    INITIALISATION_RUNNING,
    SEARCH_REFUSED,
    SENDS_NOTHING,
    STOPPED_BECAUSE,
    Wait,
    held_up,
)
from workbench.diagnosis.set_back_evidence import by_earlier_file
from workbench.model import Finding, listed, step
from workbench.rules.link_failures import (
    BUSY,
    CLOCK_REFUSED,
    CONSUMER_READ_ONLY,
    LOG_CLOSED,
    REFUSED,
    REPLICATION_OFF,
    UNREACHABLE,
)

if TYPE_CHECKING:
    from workbench.topology.topology import Link

_BY_POSITION = (
    *(
        "ROLLED_BACK",
        "OWN_CHANGES_HIDDEN",
        "MISSED_CHANGE",
        "CHANGES_THROWN_AWAY",
        "STRANDED_CHANGE",
        "VECTOR_AHEAD_OF_LOG",
        "PENDING_CHANGES",
    ),
    *("REINIT_REQUIRED", "STALLED_BUT_GREEN", "NEVER_CONTACTED", "ANCHOR_PURGED", "ANCHOR_MISSING", "ANCHOR_DISAGREES"),
)
"""Concluded from comparing the positions of two servers."""


_AMONG_ALIKE = ("OWN_CHANGES_HIDDEN", "MISSED_CHANGE", "CHANGES_THROWN_AWAY", "STRANDED_CHANGE", "PENDING_CHANGES")
"""Of these, what is said of servers that are compared with each other."""

_STANDS_STILL = "VECTOR_STANDS_STILL"


@dataclass(frozen=True)
class Precedence:
    """A root, the codes that it leaves without meaning, and in what both must be about the same for that.

    Where the root names no server (or origin), it holds for every one of its suffix.
    """

    root: str
    overrules: tuple[str, ...]
    about: tuple[str, ...]


PRECEDENCE = (
    # What a server claims whose new data did not arrive whole is of no data.
    Precedence(INITIALISATION_ABORTED, ("UNRELATED_DATA", SEARCH_REFUSED, *_BY_POSITION), ("suffix", "server")),
    Precedence(INITIALISATION_RUNNING, ("UNRELATED_DATA", SEARCH_REFUSED, *_BY_POSITION), ("suffix", "server")),
    Precedence(SEARCH_REFUSED, ("UNRELATED_DATA", *_BY_POSITION), ("suffix", "server")),
    Precedence("UNRELATED_DATA", (*_BY_POSITION, "DEAD_ORIGIN"), ("suffix", "server")),
    Precedence("REPLICA_ID_CHANGED", (), ("suffix", "server")),
    Precedence("DUPLICATE_ORIGIN", (*_BY_POSITION, "BROKEN_VECTOR"), ("suffix", "origin")),
    Precedence("WRONG_ENTRY_DELETED", (), ("suffix", "server")),
    Precedence("CLOCK_AHEAD", ("STALLED_BUT_GREEN",), ("suffix", "server")),
    Precedence("CLOCK_BEHIND", (), ("suffix", "server")),
    Precedence("DATABASE_FAILING", ("ANCHOR_MISSING", "VECTOR_AHEAD_OF_LOG"), ("server",)),
    Precedence(DISK_LOW, (), ("server",)),
    Precedence("CLEAN_HANGING", (), ("suffix", "origin")),
    Precedence("CLEANED_ORIGIN_ALIVE", (), ("suffix", "origin")),
    Precedence("REPLICATION_OFF", ("CHANGELOG_CLOSED",), ("suffix", "server")),
    Precedence("CHANGELOG_CLOSED", (), ("suffix", "server")),
    Precedence(_STANDS_STILL, (), ("suffix", "server")),
    Precedence("NO_ANSWER_IN_TIME", (), ("server",)),
    Precedence("STOPPED_MEANWHILE", (), ("server",)),
    Precedence("REPLICATION_WAS_OFF", (), ("suffix", "server")),
    # What only one server still holds comes before whatever advises to fill a server.
    Precedence("OWN_CHANGES_HIDDEN", (), ("suffix", "server")),
    Precedence("ROLLED_BACK", (), ("suffix", "server")),
    Precedence("LISTS_DIFFER", (), ("suffix", "server")),
)
"""Gravest first: the order of the first line."""

EXPLAINS = {"DUPLICATE_ORIGIN": ("ENTRIES_DIFFER", "MISSED_CHANGE", "APPLY_SKIPPED")}
"""Roots, and findings of the same suffix that stay true and have no repair of their own: that of the root is meant."""

STOPS = {
    "CLOCK_AHEAD": CLOCK_REFUSED,
    "CLOCK_BEHIND": CLOCK_REFUSED,
    "REPLICATION_OFF": REPLICATION_OFF,
    "CHANGELOG_CLOSED": LOG_CLOSED,
}
"""Roots, and the reason for which links of their servers fail because of them."""

MENDED_BY = {
    "CONTRADICTING_MOVES": ("APPLY_RETRY_LOOP", "LINK_FAILING"),
    ANSWERED_NOT_APPLIED: ("PENDING_CHANGES",),
}
"""Roots, and findings that end with them where they speak of a change of the root."""

DECIDED_BY_A_PERSON = frozenset({"UNRELATED_DATA", "DUPLICATE_ORIGIN"})
"""Where these are roots, no evidence tells which data is right."""

_FILLS = ("REINIT_REQUIRED", "ANCHOR_PURGED", "ANCHOR_MISSING")
"""Findings that advise to initialise a server."""

_SENDS = (*_FILLS, "MISSED_CHANGE", "PENDING_CHANGES", "ENTRIES_DIFFER", "UNRELATED_DATA")
"""Findings whose repair sends changes or data to a server."""

_CLOCKS_DIFFER = 60
"""Seconds by which clocks differ that agree."""

_PLACE = {one.root: place for place, one in enumerate(PRECEDENCE)}


def in_precedence(findings: Iterable[Finding], links: Iterable[Link] = (), within: bool = False) -> list[Finding]:
    """The findings, roots with what they overrule, and the overruled ones as such: their severity falls to info.

    `links` tell at which servers links end of which a finding says that they fail.
    within  True where what servers lack was judged among those of the same data alone: other data beside them change nothing
    """
    rules = [_of_others_only(rule) if within else rule for rule in PRECEDENCE]
    ends = {
        (link.supplier, link.suffix, link.name): link.consumer or (link.failure.means if link.failure else None)
        for link in links
    }
    found = list(findings)
    slow = {one.server: _seconds_behind(one) for one in found if one.code == "CLOCK_BEHIND" and not one.assumes}
    roots = [(rule, one) for rule in rules for one in found if one.code == rule.root and one.root]
    roots = [
        (rule, one) for rule, one in roots if not any(_void(by, root, one) for by, root in roots if root is not one)
    ]
    stopped = {root.server: root.code for _, root in roots if root.code in STOPPED_BECAUSE and root.server}
    held = held_up(
        {_wait(one): one.evidence[0].get("senders", ()) for one in found if one.code == "PENDING_CHANGES"}, stopped
    )
    said: list[Finding] = []
    for one in found:
        rule = next((rule for rule, root in roots if root is not one and _void(rule, root, one)), None)
        without = next((root.code for _, root in roots if _to_no_data(root, one, ends)), None)
        void = rule.root if rule else "CLOCK_BEHIND" if _told_by_slow(one, slow) else without
        if void:
            one = replace(
                one,
                severity="info",
                overruled_by=void,
                root="",
                fix=(),
                summary=f"not concluded, because of {void}; by positions alone it would be: {one.summary}",
            )
        elif cause := next((root for _, root in roots if _explained(root, one)), None):
            one = replace(one, root="", fix=(_of_root(cause.code),))
        elif cause := next((root for _, root in roots if _stops(root, one, ends)), None):
            before = f"it runs again once that is mended, and not before: {cause.root}"
            one = replace(
                one, follows_from=cause.code, fix=(step(f"do what {cause.code} says first", before), *one.fix[1:])
            )
        elif cause := next((root for _, root in roots if _for_want_of_room(root, one, ends)), None):
            first = step(
                f"do what {cause.code} says of {cause.server}{'' if _refused_all(one) else ' first'}", cause.root
            )
            after = cause.code if one.code == "LINK_FAILING" and _refused_all(one) else one.follows_from
            one = replace(one, follows_from=after, fix=(first,) if _refused_all(one) else (first, *one.fix))
        elif any(root.code == "CHANGELOG_CLOSED" and _of_supplier(root, one) for _, root in roots):
            first = step("do what CHANGELOG_CLOSED says first", "a session passes over what no log holds, for good")
            one = replace(one, fix=(first, *one.fix))
        elif cause := next((root for _, root in roots if _closed_at(root, one, ends)), None):
            first = step("do what CHANGELOG_CLOSED says first", f"{cause.server} may hold what is in no log")
            one = replace(one, fix=(first, *one.fix))
        elif cause := next((root for _, root in roots if _wakes(root, one, ends)), None):
            first = step(
                f"first stop all writes on {cause.server}, and be quick (ROLLED_BACK): what it lost has to come back before its "
                "own next change",
                "that change hides what it lost, and the server makes one by itself soon after its start",
            )
            one = replace(one, fix=(first, *one.fix))
        elif cause := next((root for _, root in roots if _lets_clean(root, one)), None):
            why = f"the task on {cause.server} goes on as soon as the servers that it waits for answer"
            rest = (fix for fix in one.fix if not str(fix["repair"]).startswith(f"do what {cause.code} says"))
            one = replace(one, fix=(step(f"do what {cause.code} says first", why), *rest))
        elif cause := next((root for root in found if _refuses(root, one)), None):
            one = replace(one, fix=(step(f"do what {cause.code} says", "it is about that change"),))
        elif cause := next((root for _, root in roots if _sends_data_to(root, one, ends)), None):
            before = (
                "what is sent there before may be lost"
                if cause.code == DATABASE_FAILING
                else "nothing arrives there before"
            )
            why = f"{cause.server} {STOPPED_BECAUSE[cause.code]}: {before}"
            one = replace(one, fix=(step(f"do what {cause.code} says first", why), *one.fix))
        elif cause := next((root for _, root in roots if _leads_from_no_data(root, one)), None):
            why = f"{cause.server} {STOPPED_BECAUSE[cause.code]}: nothing comes from there before"
            one = replace(one, fix=(step(f"do what {cause.code} says first", why), *one.fix))
        elif one.code == "PENDING_CHANGES" and any(_of_its_server(root, one) for _, root in roots):
            why = "its RUV does not tell what of them has arrived"
            one = replace(one, fix=(step(f"do what {_STANDS_STILL} says of {one.server}", why),))
        elif one.code == "PENDING_CHANGES" and _wait(one) in held:
            silent = [f"{code} says of {server}" for server, code in sorted(stopped.items()) if code in SENDS_NOTHING]
            first = step(f"do what {listed(silent)} first", "before that nothing comes from there")
            one = replace(one, fix=(first, *one.fix))
        elif cause := next((root for _, root in roots if _clock_at(root, one, ends)), None):
            also = step(f"then do what {cause.code} says of {cause.server}", "the clock may stop this link next")
            one = replace(one, fix=(*one.fix, also))
        elif one.code in ("DEAD_ORIGIN", "BROKEN_VECTOR") and (
            cause := next((root for root in found if _cleans(root, one)), None)
        ):
            first = step("let the task end that cleans it: see CLEAN_HANGING", "a second one would wait for the same")
            if cause.root:  # its server lives
                first = step(
                    f"do what CLEAN_HANGING says of {cause.server}", "a cleaning takes the element out of the RUV"
                )
            one = replace(one, fix=(first,))
        elif cause := next((root for root in found if _pulled_along(root, one)), None):
            why = "its clock was ahead, which pulls the positions of all others along, and was set right since"
            one = replace(one, fix=(step(f"do what {cause.code} says of {cause.server}", why),))
        elif one.root and one.code in _PLACE:
            one = replace(one, overrules=rules[_PLACE[one.code]].overrules)
        said.append(one)
    return said


def _stops(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True for a link that fails for the reason of the root, and begins or ends at the server that the root is about."""
    if one.code != "LINK_FAILING" or root.suffix not in (None, one.suffix):
        return False
    if one.reason != STOPS.get(root.code):
        return False
    if root.link is not None:
        return (root.server, root.link) == (one.server, one.link)
    if one.reason == LOG_CLOSED:
        return root.server == one.server
    return root.server in (None, one.server, ends.get((one.server, one.suffix, one.link)))


def _for_want_of_room(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True for changes that a server refuses, or a link that does not reach it, whose disk is low."""
    if root.code != DISK_LOW or one.severity != "error":
        return False
    if one.code == "APPLY_RETRY_LOOP":
        return root.server == one.server and _refused_all(one)
    link = one.code == "LINK_FAILING" and one.reason in (CONSUMER_READ_ONLY, REFUSED, UNREACHABLE)
    return link and root.server == ends.get((one.server, one.suffix, one.link))


def _refused_all(one: Finding) -> bool:
    """True for changes that a server refuses as one that takes none."""
    return one.reason == CONSUMER_READ_ONLY or "with 53 (" in one.summary


def _of_supplier(root: Finding, one: Finding) -> bool:
    """True for a link that fails, of the server that the root is about."""
    return one.code == "LINK_FAILING" and (root.server, root.suffix) == (one.server, one.suffix)


def _closed_at(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True if the one finding would have the server filled that the root is about."""
    if root.code != "CHANGELOG_CLOSED" or one.code not in _FILLS or root.suffix != one.suffix:
        return False
    return root.server == (ends.get((one.server, one.suffix, one.link)) if one.link else one.server)


def _wait(one: Finding) -> Wait:
    return one.server, one.suffix, one.origin


def _sends_data_to(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True if the one finding would have data sent to the server that the root is about."""
    restarts = (root.code, one.code, one.severity) == (DATABASE_FAILING, "LINK_FAILING", "error")
    if root.code not in STOPPED_BECAUSE or not (one.code in _SENDS or restarts):
        return False
    return root.server == (ends.get((one.server, one.suffix, one.link)) if one.link else one.server)


def _to_no_data(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True if the one finding is about what a server does not take, or would not be sent, that has no data at the moment."""
    if root.code not in DATA_GONE or root.suffix not in (None, one.suffix):
        return False
    if one.code == "LINK_FAILING" and one.reason not in (REFUSED, BUSY):
        return False
    server = one.server if one.code == "APPLY_RETRY_LOOP" else ends.get((one.server, one.suffix, one.link))
    return one.code in ("LINK_FAILING", "APPLY_RETRY_LOOP", "ANCHOR_PURGED", "ANCHOR_MISSING") and root.server == server


def _leads_from_no_data(root: Finding, one: Finding) -> bool:
    """True for a link that is switched off and leads away from a server without data."""
    without = root.code in DATA_GONE and root.suffix in (None, one.suffix)
    return without and one.code == "LINK_DISABLED" and root.server == one.server


def _clock_at(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True for a link that fails for another reason, and at one end of which a clock is wrong."""
    if (root.code, one.code, one.severity) != ("CLOCK_AHEAD", "LINK_FAILING", "error"):
        return False
    return root.server is not None and root.server in (one.server, ends.get((one.server, one.suffix, one.link)))


def _wakes(root: Finding, one: Finding, ends: Mapping[Any, str | None]) -> bool:
    """True if the one finding would have changes sent to the restored server that the root is about."""
    if (
        root.code != "ROLLED_BACK"
        or by_earlier_file(root.evidence)
        or one.code not in ("LINK_DISABLED", "LINK_FAILING", "PENDING_CHANGES")
    ):
        return False
    return root.suffix == one.suffix and root.server == (
        ends.get((one.server, one.suffix, one.link)) if one.link else one.server
    )


def _of_its_server(root: Finding, one: Finding) -> bool:
    same = (root.server, root.suffix) == (one.server, one.suffix)
    return root.code == _STANDS_STILL and same and one.origin in {row["origin"] for row in root.evidence}


def _lets_clean(root: Finding, one: Finding) -> bool:
    """True if mending the one finding would let a task go on that cleans a replica ID which a server makes changes with."""
    lets = one.code in ("LINK_FAILING", *_SENDS) and one.code != "UNRELATED_DATA"
    return root.code == "CLEAN_HANGING" and lets and root.suffix in (None, one.suffix)


def _cleans(root: Finding, one: Finding) -> bool:
    raw = [row.get("raw") or "" for row in one.evidence if one.code == "BROKEN_VECTOR"]
    same = root.origin == one.origin or any(f"{{replica {root.origin} " in text for text in raw)
    return root.code == "CLEAN_HANGING" and same and root.suffix in (None, one.suffix)


def _pulled_along(root: Finding, one: Finding) -> bool:
    """True for positions that are ahead, where the log of a server shows that its clock was ahead and was set back."""
    ahead = (root.code, one.code) == ("CLOCK_AHEAD", "CLOCK_AHEAD") and root.origin is None and one.origin is not None
    return ahead and any("set_back_to" in row for row in root.evidence)


def _seconds_behind(one: Finding) -> float:
    return max((float(row["seconds_before"]) for row in one.evidence if "seconds_before" in row), default=0.0)


def _told_by_slow(one: Finding, slow: Mapping[str | None, float]) -> bool:
    """True where positions are ahead of no clock but those of servers that are behind themselves, and no further than these."""
    rows = [row for row in one.evidence if "more" not in row]
    by_others = (
        one.code == "CLOCK_AHEAD" and bool(rows) and all("seconds_ahead" in row and "position" in row for row in rows)
    )
    return by_others and all(
        row["server"] in slow and row["seconds_ahead"] <= slow[row["server"]] + _CLOCKS_DIFFER for row in rows
    )


def _explained(root: Finding, one: Finding) -> bool:
    return one.code in EXPLAINS.get(root.code, ()) and root.suffix in (None, one.suffix)


def _refuses(root: Finding, one: Finding) -> bool:
    """True if the one finding is about a change that the root names."""
    about = one.code in MENDED_BY.get(root.code, ()) and root.suffix == one.suffix
    return about and any(position in one.summary or position in _refused(one) for position in root.items)


def _refused(one: Finding) -> tuple[str, ...]:
    return () if one.code == "LINK_FAILING" else one.items  # of a link these are what waits behind it


def _of_root(code: str) -> dict[str, str | None]:
    return step(
        f"decide what {code} asks first: `workbench plan` says what each choice throws away",
        f"{code} may explain the difference, and which side is right only a person can tell",
    )


def _of_others_only(rule: Precedence) -> Precedence:
    """The rule without what was judged among servers of the same data."""
    if rule.root != "UNRELATED_DATA":
        return rule
    return replace(rule, overrules=tuple(code for code in rule.overrules if code not in _AMONG_ALIKE))


def _void(rule: Precedence, root: Finding, one: Finding) -> bool:
    """True if the root leaves the other finding without meaning."""
    if one.code not in rule.overrules:
        return False
    for about in rule.about:
        of_root, mine = getattr(root, about), getattr(one, about)
        if of_root is not None and mine is not None and of_root != mine:
            return False
        if about == "origin" and mine is None:
            return False  # about more than one origin
    return True


def roots_of(findings: Iterable[tuple[str, str]]) -> list[str]:
    """The clauses of the first line: of (code, clause), the gravest first, each once."""
    known = [(code, clause) for code, clause in findings if clause]
    return list(dict.fromkeys(clause for _, clause in sorted(known, key=lambda one: _PLACE.get(one[0], len(_PLACE)))))
