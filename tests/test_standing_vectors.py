"""A server that applies what it is sent while its RUV stands still, as was seen on 2.3.1 after its role was changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import of, plain_line, read_at, stamp
from entry_samples import export
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline


def standing(*, answered: int = 20, started: float = 3, read: float = 60, covered: int = 9) -> dict[str, Any]:
    """s2 is read-only, got the changes of s1 up to `covered`, and answered so many later ones, one a second, with success."""
    made = [csn(second, 1) for second in range(10 + answered)]
    top = claims(r1=(0, 9 + answered))
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements(top)),
        "s1.changelog.ldif": changelog(made, own_entries=True),
        "s1.agreements.ldif": agreement("to-s2", 38902),
        "s2.replica.ldif": replica(65535, elements(claims(r1=(0, covered))), flags=0)
        + "dn: cn=config\ncn: config\nnsslapd-localhost: localhost\nnsslapd-port: 38902\n\n",
        "s2.errors.log": plain_line(started, "INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up"),
    }
    files["s2.access.log"] = f'{stamp(9)} conn=1 op=1 EXT oid="2.16.840.1.113730.3.5.12" name="x"\n' + "".join(
        f'{stamp(10 + number)} conn=1 op={number + 2} DEL dn="uid=u{number},dc=example,dc=com"\n'
        f"{stamp(10 + number)} conn=1 op={number + 2} RESULT err=0 tag=107 nentries=0 etime=0.006 csn={csn(10 + number, 1)}\n"
        for number in range(answered)
    )
    return read_at(files, read)


def test_it_is_said_first_and_what_waits_is_not_said_to_need_a_link(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, standing()))
    assert headline(found).startswith("The RUV of s2 stands still for origin 1 while it applies changes; ")
    (standing_still,) = of("VECTOR_STANDS_STILL", found["findings"])
    assert (standing_still["severity"], standing_still["server"]) == ("warning", "s2")
    assert "s2 answered 20 changes with success" in standing_still["summary"]
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert [step["repair"] for step in waits["fix"]] == ["do what VECTOR_STANDS_STILL says of s2"]


@pytest.mark.parametrize(
    "about",
    [
        {"answered": 9},  # so few may be answers that changed nothing
        {"started": 40},  # it was started since, perhaps with older data
        {"read": 28},  # read moments after the answers
        {"covered": 29},
    ],
    ids=["few", "started since", "just now", "covered"],
)
def test_it_is_not_said_of(about: dict[str, Any], tmp_path: Path) -> None:
    assert not of("VECTOR_STANDS_STILL", diagnose(case_of(tmp_path, standing(**about)))["findings"])


def test_the_ruv_in_an_export_of_entries_is_of_an_earlier_moment(tmp_path: Path) -> None:
    files = standing()
    del files["s2.replica.ldif"], files["case.yaml"]
    files["s2.entries.ldif"] = export(elements(claims(r1=(0, 9))), [])
    assert not of("VECTOR_STANDS_STILL", diagnose(case_of(tmp_path, read_at(files, 60)))["findings"])
