"""References from one finding to another: none of them names a finding that another one leaves without meaning.

SEARCH_REFUSED b                           shown
CHANGES_THROWN_AWAY b                      not concluded, because of SEARCH_REFUSED
MISSED_CHANGE a "(CHANGES_THROWN_AWAY)"    the cause is left out
    "do what CHANGES_THROWN_AWAY of b says"    becomes "do what SEARCH_REFUSED of b says"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.model import Finding, step

_CODE = r"[A-Z]+(?:_[A-Z]+)+"
_CAUSES = re.compile(rf" \(((?:[\d,]+ by )?{_CODE}(?:, (?:[\d,]+ by )?{_CODE})*)\)")
_NAMED = re.compile(rf"\b({_CODE})(?: of ([\w.-]+))?( says)?(?: (?:of|on) ([\w.-]+))?")
_NOT_BEFORE = "before that, the rest cannot be judged"


@dataclass(frozen=True)
class FindingReferences:
    """What the findings say of each other."""

    findings: Sequence[Finding]

    def void(self, code: str, suffix: str | None, places: Sequence[str] = ()) -> Finding | None:
        """The finding that leaves the one of this code without meaning; None: that one is shown, or there is none.

        `places`: servers or links, where the finding of one of them is meant
        """
        meant = [one for one in self.findings if one.code == code and (not suffix or one.suffix in (None, suffix))]
        if places and (near := [one for one in meant if one.server in places or one.link in places]):
            meant = near
        if not meant or not all(one.overruled_by for one in meant):
            return None
        roots = [one for one in self.findings if one.code == meant[0].overruled_by and not one.overruled_by]
        near = [one for one in roots if one.server in places or one.server == meant[0].server]
        return next(iter(near or roots), None)

    def without_causes(self, text: str, suffix: str | None) -> str:
        """A sentence without the codes in brackets whose findings are not shown."""

        def kept(match: re.Match[str]) -> str:
            named = [one for one in match[1].split(", ") if not self.void(one.rpartition(" ")[2], suffix)]
            return f" ({', '.join(named)})" if named else ""

        return _CAUSES.sub(kept, text)

    def renamed(self, text: str, suffix: str | None) -> str:
        """A sentence that names the overruling finding in place of each that is not shown."""

        def by(match: re.Match[str]) -> str:
            server = match[2] or match[4]
            root = self.void(match[1], suffix, [server.rstrip(".")] if server else ())
            if root is None:
                return match[0]
            return f"{root.code}{f' of {root.server}' if root.server else ''}{match[3] or ''}"

        return _NAMED.sub(by, text)

    def fixed(self, fix: Mapping[str, Any], suffix: str | None) -> Mapping[str, Any]:
        """A step of a repair that names no finding which is not shown."""
        told = {key: self.without_causes(text, suffix) if text else text for key, text in fix.items()}
        repair = self.renamed(told["repair"], suffix)
        if repair == told["repair"]:
            return {key: self.renamed(text, suffix) if text else text for key, text in told.items()}
        return step(repair, _NOT_BEFORE)  # why, and what to beware of, is what the overruled finding would say


def with_shown_references(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those that are shown refer to none that another one leaves without meaning."""
    if not any(one.overruled_by for one in findings):
        return [*findings]
    shown = FindingReferences(findings)
    return [
        one
        if one.overruled_by
        else replace(
            one,
            summary=shown.without_causes(one.summary, one.suffix),
            fix=tuple(shown.fixed(fix, one.suffix) for fix in one.fix),
        )
        for one in findings
    ]


def drop_void_causes(missing: Sequence[dict[str, Any]], findings: Sequence[Finding]) -> None:
    """Leave the cause of missing changes open where its finding is not concluded."""
    shown = FindingReferences(findings)
    for row in missing:
        if row["cause"] and (root := shown.void(row["cause"], row["suffix"])):
            row["reasons"] = [f"{row['cause']}: not concluded, because of {root.code}"]
            row["cause"] = None


def name_what_tells(pairs: Sequence[dict[str, Any]], findings: Sequence[Finding]) -> None:
    """Write into the rows of links that fail which finding tells of it: `link_told_by`, None where none is shown."""
    for row in pairs:
        if not row.get("link_failing"):
            continue
        ends = (row["supplier"], row["consumer"])
        row["link_told_by"] = None
        for code in ("UNRELATED_DATA", "LINK_FAILING") if row["unrelated"] else ("LINK_FAILING",):
            mine = [
                one
                for one in findings
                if one.code == code
                and one.suffix in (None, row["suffix"])
                and ((one.server, one.link) == (row["supplier"], row["link"]) if one.link else one.server in ends)
            ]
            if mine:
                row["link_told_by"] = min((one.overruled_by or "", one.overruled_by or code) for one in mine)[1]
                break
