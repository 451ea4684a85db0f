"""Servers that go on working while they are read: a log read before the vector, vectors read once more at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import listening, of, plain_line
from entry_samples import answered
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica
from test_field_truth import Files, read

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.pair_matrix_text import told
from workbench.repair.planner import plan

NOT_LOCATED = (
    "[02/Apr/2024:02:40:13.000000000 +0000] - ERR - NSMMReplicationPlugin - changelog program - repl_plugin_name_cl - "
    'agmt="cn=s1-to-s2" (localhost:38902): CSN {anchor} not found, we aren\'t as up to date, or we purged\n'
)


def _no_time(_: str) -> None:
    """The time of a position, for texts that need none."""


def two(s1: tuple[int, int], s2: int, said: int = 13) -> Files:
    """s1 claims its own changes up to a second, its log ends earlier, its files go on to `said`; s2 is at another second."""
    claimed, written = s1
    files: Files = {}
    for name, at, last in (("s1", claimed, written), ("s2", s2, s2)):
        files |= {f"{name}.replica.ldif": replica(int(name[1]), elements(claims(r1=(1, at))))}
        files |= {f"{name}.changelog.ldif": changelog([csn(second, 1) for second in range(1, last + 1)])} | listening(
            name
        )
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902)
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
    files["s1.access.log"] = "".join(
        answered(second, "uid=u,ou=people", csn(second, 1)) for second in range(1, min(claimed, 20) + 1)
    )
    files["s1.errors.log"] += plain_line(said, "slapd_daemon - slapd started.  Listening on All Interfaces port 38901")
    return files


@pytest.mark.parametrize("s2", [9, 10, 11])
def test_an_anchor_made_after_the_log_was_read_is_not_missing_there(s2: int, tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, two((12, 10), s2)))
    assert [finding["code"] for finding in found["findings"] if finding["severity"] != "info"] == []
    assert f"{12 - s2} {'is' if s2 == 11 else 'are'} on the way to s2" in headline(found)
    (row,) = (row for row in found["pending"] if row["server"] == "s2")
    assert (row["suppliers"], row["gone"]) == (["s1"], 0)
    (pair,) = (pair for pair in found["pairs"] if pair["consumer"] == "s2")
    assert pair["decision"] == ("send" if s2 == 9 else "nothing_to_send")
    if s2 != 9:
        assert "its log was read before its vector" in " ".join(told(pair, _no_time, always=True))
    planned = plan(case_of(tmp_path / "again", two((12, 10), s2)))
    assert not planned.steps and not any("REINIT" in line for line in planned.open)


@pytest.mark.parametrize("s2", [10, 11])
def test_an_anchor_that_the_log_had_time_to_show_is_missing(s2: int, tmp_path: Path) -> None:
    """The files of s1 go on for five minutes behind the changes that its log lacks."""
    found = diagnose(case_of(tmp_path, two((12, 10), s2, said=300)))
    assert of("ANCHOR_MISSING", found["findings"]) and of("REINIT_REQUIRED", found["findings"])


def test_an_anchor_inside_the_log_is_missing_however_young_it_is(tmp_path: Path) -> None:
    files = two((12, 10), 8)
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in (*range(1, 8), 9, 10)])
    assert of("ANCHOR_MISSING", diagnose(case_of(tmp_path, files))["findings"])


def test_an_old_anchor_of_a_log_made_anew_is_missing(tmp_path: Path) -> None:
    """The log shows nothing of the origin any more; that the last change is young does not bring the anchor back."""
    files = two((1200, 1), 100, said=1200)
    files["s1.changelog.ldif"] = changelog([csn(3, 2)])
    assert of("REINIT_REQUIRED", diagnose(case_of(tmp_path, files))["findings"])


def test_what_the_server_itself_logged_of_its_anchor_counts(tmp_path: Path) -> None:
    files = two((12, 10), 11)
    files["s1.errors.log"] += NOT_LOCATED.format(anchor=csn(11, 1))
    assert of("ANCHOR_MISSING", diagnose(case_of(tmp_path, files))["findings"])


def test_a_position_of_the_end_of_the_reading_is_a_place_to_begin_at(tmp_path: Path) -> None:
    """s3 was at 6 when it was read and at 11 at the end; the log of s1, read before, ends at 10, and that of s2 at 12."""
    seen = {"s1": (10, 10), "s3": (6, 6), "s2": (12, 12)}
    files: Files = {}
    for name, (claimed, written) in seen.items():
        made = [csn(second, 1) for second in range(1, written + 1)]
        files |= {f"{name}.replica.ldif": replica(int(name[1]), elements(claims(r1=(1, claimed))))}
        files |= {f"{name}.changelog.ldif": changelog(made)} | listening(name)
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903)
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901)
    times = {"s1": (10.0, 11.0), "s3": (11.0, 12.0), "s2": (12.0, 13.0)}
    moved = {"s1": {"1": csn(12, 1)}, "s3": {"1": csn(11, 1)}}
    planned = plan(case_of(tmp_path, read(files, times, moved)))
    assert not planned.steps, [step.key for step in planned.steps]


def test_pairs_of_servers_with_data_of_another_beginning_are_left_to_these(tmp_path: Path) -> None:
    """s3 and s4 have other data, and the changelog of s3 lacks what s4 would begin at."""
    files = two((12, 10), 11)
    for name, rid in (("s3", 3), ("s4", 4)):
        at = 12 if name == "s3" else 8
        claimed = [element.replace("65ffabcd0000", "65ffabce0000") for element in elements(claims(r3=(1, at)))]
        files |= {f"{name}.replica.ldif": replica(rid, claimed)} | listening(name)
    files["s3.changelog.ldif"] = changelog([csn(second, 3) for second in (1, 2, 3, 9, 10)])
    files["s4.changelog.ldif"] = changelog([csn(second, 3) for second in range(1, 9)])
    files["s3.agreements.ldif"] = agreement("s3-to-s4", 38904)
    found = diagnose(case_of(tmp_path, files))
    assert [finding["server"] for finding in of("ANCHOR_MISSING", found["findings"])] == ["s3"]
