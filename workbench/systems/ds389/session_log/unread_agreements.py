"""Agreements that their supplier passed over as it started, because they name a suffix that it does not replicate.

cn=s1-to-s2,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,...   nsDS5ReplicaRoot: dc=example,dc=com    it is read
cn=s1-to-s3,cn=replica,cn=dc\\3Dexample\\2Cdc\\3Dcom,...   nsDS5ReplicaRoot: dc=exampel,dc=com    nothing is ever sent to s3
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.model import step
from workbench.rules.link_failures import WRONG_SUFFIX, LinkFailure
from workbench.systems.ds389.session_log.lines import SessionLog, last_start, line_shown, session_logs

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link, Topology

MISPLACED = "misplaced"
"""Fact of a file of agreements: suffix and name of an agreement -> the other suffix that it names."""
_PASSED_OVER = "agreement_passed_over"


def passed_over(case: Case, shown: Topology) -> dict[tuple[str, str | None, str], LinkFailure]:
    """The agreements of a snapshot that name another suffix than that below whose replica they stand."""
    roots = {
        (one.server, place): root
        for one in case.inputs
        if one.snapshot == shown.snapshot
        for place, root in one.facts.get(MISPLACED, {}).items()
    }
    logs = session_logs(case.until(shown.snapshot)) if roots else ()
    return {
        (link.supplier, link.suffix, link.name): _failure(link, root, logs)
        for link in shown.links
        if link.enabled is not False and (root := roots.get((link.supplier, f"{link.suffix or ''} {link.name}")))
    }


def _failure(link: Link, root: str, logs: Iterable[SessionLog]) -> LinkFailure:
    supplier = link.supplier
    said = [
        (row, place)
        for log in logs
        if log.server == supplier
        for row, place in log.lines((_PASSED_OVER,), ["offset", "at", "code", "link", "position", "text"])
        if f"cn={link.name},".lower() in row["text"].lower()
    ]
    log_says = ", as its errors log says" if said else ""
    return LinkFailure(
        WRONG_SUFFIX,
        f"the agreement {link.name} stands below the replica of {link.suffix} and names {root} as its suffix "
        f"(nsDS5ReplicaRoot): {supplier} passes over it when it starts{log_says}, and sends nothing over it",
        "wrong suffix in the agreement",
        last_start(logs, supplier) if said else None,
        f"{supplier} was started" if said else "",
        evidence=tuple(line_shown(*one) for one in said[-1:]),
        fix=(
            step(
                f"stop {supplier}, write `nsDS5ReplicaRoot: {link.suffix}` into the entry {link.name} of its dse.ldif, start it",
                "a server reads its agreements when it starts, and does not take another nsDS5ReplicaRoot while it runs",
                f"do not change this entry while {supplier} runs, nor poke the agreement: 3.1.2 crashed at both",
            ),
        ),
    )
