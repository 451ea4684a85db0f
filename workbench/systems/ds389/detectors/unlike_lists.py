"""Agreements to one server that do not exclude the same attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.diagnosing.fractional import unlike_lists
from workbench.model import Finding, step

if TYPE_CHECKING:
    from workbench.diagnosing.situation import Situation


def lists_differ(situation: Situation) -> Iterator[Finding]:
    """A server that gets a value of some attributes or not, by which of its suppliers sends the change first."""
    for contents in situation.verdicts.contents:
        for server in sorted(one.server for one in contents.alike.replicas):
            if unlike := contents.fractional.by_luck(server):
                which = "on the ways to" if any(one.by for one in unlike) else "to"
                yield Finding(
                    "LISTS_DIFFER",
                    "warning",
                    f"the agreements {which} {server} exclude different attributes: {unlike_lists(unlike)}. What a change "
                    f"does to such an attribute does not reach {server} if it comes over that agreement first",
                    server=server,
                    suffix=contents.suffix,
                    evidence=tuple(
                        {"server": one.link.supplier, "link": one.link.name, "left_out": sorted(one.left_out)}
                        for one in unlike
                    ),
                    fix=(
                        step(
                            f"set one list of excluded attributes in all agreements {which} {server}: "
                            "nsDS5ReplicatedAttributeList, and nsDS5ReplicatedAttributeListTotal where it is set",
                            f"else what {server} gets depends on which of them comes first",
                        ),
                    ),
                )
