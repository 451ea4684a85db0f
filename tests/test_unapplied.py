"""Changes that a server answered with success and did not apply, as was seen of 2.3.1 and 3.1.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, plain_line, read_at, stamp
from entry_samples import entry, export, logged, mesh
from mesh_samples import case_of, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.plan_text import plan_text
from workbench.repair.planner import plan

GONE = csn(9, 1)


def deleted(times: int, *, live: bool, read: float | None = 60) -> dict[str, Any]:
    """s1 deleted an entry; s2 answered that so many times with success, and its RUV does not cover it.

    `live`: it still has the entry. `read`: when it was read.
    """
    files: dict[str, Any] = mesh({"r1": (1, 9), "r2": (2, 2)}, {"s1": [], "s2": []}, {})
    grave = entry("uid=v,ou=moved", 8, f"objectClass;vucsn-{GONE}: nsTombstone", f"nstombstonecsn: {GONE}")
    files["s1.entries.ldif"] = export(
        elements(claims(r1=(1, 9), r2=(2, 2))), [grave.replace("dn: uid=v", "dn: nsuniqueid=2-2-2-8,uid=v")]
    )
    both = logged(csn(8, 1), 7, "uid=u", "", "delete")
    files["s1.changelog.ldif"], files["s2.changelog.ldif"] = both + logged(GONE, 8, "uid=v", "", "delete"), both
    behind = elements(claims(r1=(1, 8), r2=(2, 2)))
    files["s2.replica.ldif"] = replica(2, behind)
    files["s2.entries.ldif"] = export(behind, [entry("uid=v,ou=moved", 8)] if live else [])
    files["s2.errors.log"] = plain_line(3, "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up")
    session = f'{stamp(9)} conn=1 op=1 EXT oid="2.16.840.1.113730.3.5.12" name="x"\n'
    files["s2.access.log"] = session + "".join(
        f'{stamp(10 + n)} conn=1 op={n + 2} DEL dn="uid=v,dc=example,dc=com"\n'
        f"{stamp(10 + n)} conn=1 op={n + 2} RESULT err=0 tag=107 nentries=0 etime=0.006 csn={GONE}\n"
        for n in range(times)
    )
    if read is None:
        return files
    return read_at(files, read)


def test_a_deletion_whose_entry_is_still_there_is_said_first_and_never_on_the_way(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, deleted(1, live=True)))
    assert headline(found) == (
        f"s2 answered the delete {GONE} of uid=v,dc=example,dc=com with success and did not apply it; "
        "no change is known to be missing."
    )
    (one,) = of("ANSWERED_NOT_APPLIED", found["findings"])
    assert (one["severity"], one["server"], one["items"]) == ("error", "s2", [GONE])
    assert one["fix"][0]["repair"] == "delete uid=v,ou=moved,dc=example,dc=com on s2"
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert waits["fix"][0]["repair"] == "do what ANSWERED_NOT_APPLIED says"


def test_the_plan_fills_no_server_for_it_and_does_not_call_it_on_its_way(tmp_path: Path) -> None:
    made = plan(case_of(tmp_path, deleted(1, live=True)))
    assert made.steps == ()
    said = plan_text(made)
    assert "1 change does not arrive at s2: s2 answered it with success and did not apply it" in said
    assert "way to" not in said and "Nothing needs mending" not in said
    before, after = (next(row for row in rows if row["server"] == "s2") for rows in (made.before, made.after))
    assert (before["missing"], before["pending"]) == (0, 1)
    assert (after["missing"], after["pending"]) == (1, 0), "the next change of the origin goes past it"


def test_on_a_server_that_takes_no_changes_of_clients_nobody_is_told_to_delete_it(tmp_path: Path) -> None:
    files = deleted(1, live=True)
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(1, 8), r2=(2, 2))), flags=1)
    files["s2.replica.ldif"] += (
        "dn: cn=config\ncn: config\nnsslapd-localhost: localhost.localdomain\nnsslapd-port: 38902\n\n"
    )
    (one,) = of("ANSWERED_NOT_APPLIED", diagnose(case_of(tmp_path, files))["findings"])
    assert one["fix"][0]["repair"] == (
        "delete uid=v,ou=moved,dc=example,dc=com on a supplier that has it; if none has it, initialise s2 from one of them"
    )


def test_a_change_that_came_while_the_server_was_read_is_none(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, deleted(1, live=True, read=12)))
    assert of("ANSWERED_NOT_APPLIED", found["findings"]) == []
    assert headline(found) == "No change is missing."


@pytest.mark.parametrize(("times", "told"), [(2, 0), (3, 1)])
def test_what_is_answered_several_times_without_a_trace_is_an_information(
    times: int, told: int, tmp_path: Path
) -> None:
    found = diagnose(case_of(tmp_path, deleted(times, live=False, read=None)))
    assert [one["severity"] for one in of("ANSWERED_NOT_APPLIED", found["findings"])] == ["info"] * told
