"""Logs that are not alike: in the middle, at the ends of files, and at the end of what was collected."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from comdb2_samples import DIGEST, TABS, digest, printed
from hypothesis import given, settings
from hypothesis import strategies as st
from test_comdb2_diagnosis import R1, codes, diagnosed, dumps, lines_of

from workbench import Case
from workbench.repair.plan_text import plan_text
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan

SOURCE, COPY = "shopdb@src1", R1


@pytest.fixture
def lines() -> list[bytes]:
    return lines_of("shopdb.src1.digest.tsv")


def both(folder: Path, source: Sequence[bytes], *copies: Sequence[bytes], head: str = "") -> dict[str, Any]:
    """Diagnosed; `head`: the last place that the source told when it was asked itself."""
    of_copies = {f"shopdb_ro__r{at}": lines for at, lines in enumerate(copies, 1)}
    made = dumps(folder / "now", shopdb__src1=source, **of_copies)
    rows = (f"shopdb_ro\tr{at}\tshopdb\tsrc1\n" for at in range(1, len(copies) + 1))
    (made / "comdb2_physrep_connections.tsv").write_text("".join(rows))
    if head:
        told = f"{{9:28}}\t{head}\tNULL\tNULL\t{head}\t4\t1795186774\t0\n"
        (made / "positions.tsv").write_text(f"2026-11-20T15:00:08.000Z\tshopdb\tsrc1\t{told}")
    return diagnosed(folder, made)


def place(line: bytes) -> str:
    return line.split(b"\t")[0].decode()


def other(line: bytes) -> bytes:
    fields = line.split(b"\t")
    fields[5] = b"0" * 32
    return b"\t".join(fields)


def of_code(found: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["code"] == code]


def test_a_record_that_differs_in_the_middle_is_never_come_back_to(lines: list[bytes], tmp_path: Path) -> None:
    """Who connects cuts its log back to the newest commit that both have: that one stands behind the record."""
    found = both(tmp_path, lines, [*lines[:2000], other(lines[2000]), *lines[2001:]], lines)
    (one,) = of_code(found, "LOG_DIVERGED")
    assert (one["severity"], one["server"], one["items"]) == ("error", COPY, [place(lines[2000])])
    assert "alike again" in one["summary"] and "would be cut off" not in one["summary"]
    said = [step["repair"] for step in one["fix"]]
    assert said[1].startswith(f"rebuild {COPY} from a copy of ") and "connect anew" not in str(one["fix"])
    assert one["fix"][0]["caution"] is None


def test_where_all_copies_differ_from_the_source_its_own_log_is_doubted(lines: list[bytes], tmp_path: Path) -> None:
    found = both(tmp_path, [*lines[:2000], other(lines[2000]), *lines[2001:]], lines, lines)
    told = of_code(found, "LOG_DIVERGED")
    assert [one["server"] for one in told] == [COPY, "shopdb_ro@r2"]
    assert all(f"look at the log of {SOURCE} first" in one["fix"][0]["caution"] for one in told)


def test_an_end_that_differs_is_cut_off_on_connecting(lines: list[bytes], tmp_path: Path) -> None:
    found = both(tmp_path, lines, [*lines[:3500], *map(other, lines[3500:])])
    (one,) = of_code(found, "LOG_DIVERGED")
    assert one["fix"][0]["repair"].startswith(f"let {COPY} connect anew") and "would be cut off" in one["summary"]


@pytest.mark.parametrize("end", [3520, 3577])
def test_who_cuts_its_end_off_waits_for_all_behind_the_last_common_commit(
    end: int, lines: list[bytes], tmp_path: Path
) -> None:
    """Not only for what stands behind its own end, of which there may be nothing."""
    found = both(tmp_path, lines, [*lines[:3500], *map(other, lines[3500:end])])
    commit = max(at for at in range(3500) if lines[at].split(b"\t")[1].strip(b'"') in (b"2151", b"2011"))
    (row,) = found["pending"]
    waits = (row["server"], row["count"], row["counted"], row["first"])
    assert waits == (COPY, len(lines) - 1 - commit, True, place(lines[commit + 1]))


def test_of_another_history_nothing_is_missing(lines: list[bytes], tmp_path: Path) -> None:
    """The node holds other records there; those of its source it gets when it has cut its own off."""
    longer = []
    for line in lines[3500:3503]:
        file, _, start = place(line)[1:-1].partition(":")
        fields = other(line).split(b"\t")
        longer.append(b"\t".join([f"{{{file}:{int(start) + 4}}}".encode(), *fields[1:]]))
    found = both(tmp_path, lines, [*lines[:3500], *longer])
    assert not found["missing"] and not of_code(found, "MISSED_CHANGE")
    assert [one["severity"] for one in of_code(found, "LOG_DIVERGED")] == ["error"]


def ends_file(lines: Sequence[bytes]) -> int:
    """The number of a record that is the last one of its file."""
    files = [place(line)[1:].partition(":")[0] for line in lines]
    return next(at for at in range(len(lines) - 1) if files[at] != files[at + 1])


@pytest.mark.parametrize("count", [1, 3])
def test_the_last_record_of_a_file_is_missed_for_a_gap(count: int, lines: list[bytes], tmp_path: Path) -> None:
    """Its own records do not show where the file ends: the log of the source proves it."""
    last = ends_file(lines)
    first = last - count + 1
    found = both(tmp_path, lines, [*lines[:first], *lines[last + 1 :]])
    assert codes(found, "error") == {("LOG_GAP", COPY), ("MISSED_CHANGE", COPY)}
    assert [one["position"] for one in found["missing"]] == [place(line) for line in lines[first : last + 1]]
    (gap,) = of_code(found, "LOG_GAP")
    assert gap["items"] == [place(lines[first])] and gap["evidence"][0]["held_by"] == SOURCE
    assert "1 place:" in gap["summary"] and f"goes on with {place(lines[last + 1])}" in gap["summary"]


def test_the_source_may_lack_the_last_record_of_a_file(lines: list[bytes], tmp_path: Path) -> None:
    last = ends_file(lines)
    found = both(tmp_path, [*lines[:last], *lines[last + 1 :]], lines)
    assert codes(found, "error") == {("LOG_GAP", SOURCE)}
    assert of_code(found, "LOG_GAP")[0]["evidence"][0]["held_by"] == COPY


@pytest.mark.parametrize("head", [3576, 3300])
def test_what_a_dump_of_the_source_does_not_show_is_nothing_that_it_lacks(
    head: int, lines: list[bytes], tmp_path: Path
) -> None:
    """The source told how far it is: only what its copies have behind that is more than it has."""
    found = both(tmp_path, lines[:3000], lines, head=place(lines[head]))
    beyond = len(lines) - 1 - head
    told = of_code(found, "LOG_DIVERGED")
    assert [one["severity"] for one in told] == (["warning"] if beyond else [])
    assert not told or (
        f"{beyond:,} records behind the end" in told[0]["summary"] and told[0]["items"][0] == place(lines[3301])
    )
    early = [one for one in of_code(found, "LOG_GAP") if one["severity"] == "info"]
    assert [(one["server"], one["items"]) for one in early] == [(SOURCE, [place(lines[2999])])]
    assert not told or ("would be cut off" not in told[0]["summary"] and "at least" in told[0]["summary"])
    assert not codes(found, "error")


def test_a_dump_of_a_copy_that_ended_early_is_no_lag(lines: list[bytes], tmp_path: Path) -> None:
    """The node itself answered that it has all there is: what its dump does not show is not waited for."""
    made = dumps(tmp_path / "now", shopdb__src1=lines, shopdb_ro__r1=lines[:1000])
    (made / "comdb2_physrep_connections.tsv").write_text("shopdb_ro\tr1\tshopdb\tsrc1\n")
    head = place(lines[-2])
    told = f"{{9:28}}\t{head}\tNULL\tNULL\t{head}\t4\t1795186774\t0\n"
    (made / "positions.tsv").write_text(f"2026-11-20T15:00:08.000Z\tshopdb_ro\tr1\t{told}")
    found = diagnosed(tmp_path, made)
    (waits,) = found["pending"]
    assert (waits["first"], waits["count"]) == (place(lines[-1]), 1)
    assert [(one["severity"], one["server"]) for one in of_code(found, "LOG_GAP")] == [("info", COPY)]


def test_a_node_whose_log_is_spoilt_is_nothing_to_copy(lines: list[bytes], tmp_path: Path) -> None:
    spoilt = [*lines[:2000], other(lines[2000]), *lines[2001:]]
    found = both(tmp_path, lines, spoilt, [*lines[:1000], other(lines[1000]), *lines[1001:]], lines)
    for one in of_code(found, "LOG_DIVERGED"):
        assert "from a copy of shopdb_ro@r3" in one["fix"][1]["repair"]


def planned(folder: Path, source: Sequence[bytes], *copies: Sequence[bytes]) -> Plan:
    both(folder, source, *copies)
    return plan(Case.open(folder / "case"))


def steps_of(made: Plan) -> list[tuple[str, str]]:
    return [(step.repair, step.server) for step in made.steps]


def test_a_log_that_is_spoilt_inside_is_replaced_by_a_copy_of_one_that_is_not(
    lines: list[bytes], tmp_path: Path
) -> None:
    """With a hole, or with another record in the middle, no connection mends it; and whoever lacks its end gets no donor."""
    hole = [*lines[:1000], *lines[1001:]]
    unlike = [*lines[:2000], other(lines[2000]), *lines[2001:3000]]
    made = planned(tmp_path, lines, hole, unlike, lines)
    assert sorted(steps_of(made)) == [
        *[("rebuild", COPY), ("rebuild", "shopdb_ro@r2")],
        *[("reset", COPY), ("reset", "shopdb_ro@r2")],
    ]
    assert all("from-shopdb_ro@r3" in step.key for step in made.steps if step.repair == "rebuild")
    assert made.unmended == 0 and not any(row["pending"] or row["missing"] for row in made.after)
    assert not {course.way for course in made.courses} & {"force-registration", "restart"}


def test_a_log_that_parts_at_its_end_is_cut_by_connecting(lines: list[bytes], tmp_path: Path) -> None:
    made = planned(tmp_path, lines, [*lines[:3500], *map(other, lines[3500:])], lines)
    assert steps_of(made) == [("force_registration", COPY)]
    assert "cuts off" in made.steps[0].says and "dump its log first" in made.steps[0].cannot_undo
    assert any(course.way == "rebuild-from-shopdb_ro@r2" for course in made.courses)


def test_a_plan_shows_the_numbers_of_the_diagnosis_and_what_goes_with_an_end(
    lines: list[bytes], tmp_path: Path
) -> None:
    """r1 has 50 records of another history; r2 misses 4 records, and everything behind the end of its log."""
    parted = [*lines[:3500], *map(other, lines[3500:3550])]
    found = both(tmp_path, lines, parted, [*lines[:1000], *lines[1004:3000]])
    made = plan(Case.open(tmp_path / "case"))
    waits = {row["server"]: row["count"] for row in found["pending"]}
    assert {row["server"]: (row["missing"], row["pending"]) for row in made.before} == {
        SOURCE: (0, 0),
        COPY: (0, waits[COPY]),
        "shopdb_ro@r2": (4, waits["shopdb_ro@r2"]),
    }
    assert not any(row["missing"] or row["pending"] for row in made.after)
    chosen = {course.way: course for course in made.courses if course.chosen}
    anew = chosen["force-registration"]
    assert f"50 records that only the log of {COPY} has, from {place(lines[3500])} on, are thrown away" in anew.costs
    assert anew.restored == waits[COPY] and "loses no change beside what it costs" in anew.why
    assert "only the log" not in chosen["rebuild-from-shopdb@src1"].costs


@pytest.mark.parametrize("kind", ["gap", "contradiction"])
def test_what_a_log_proves_by_itself_takes_no_source_for_granted(kind: str, lines: list[bytes], tmp_path: Path) -> None:
    """The only log that was collected, without a registry: it lacks records, or has two contents at one place."""
    shown = [*lines[:1000], *lines[1004:]] if kind == "gap" else [*lines[:1000], other(lines[999]), *lines[1000:]]
    found = diagnosed(tmp_path, dumps(tmp_path / "now", shopdb__src1=shown))
    (tree,) = found["trees"]
    assert not tree["source_is_known"]
    (own,) = of_code(found, "LOG_GAP" if kind == "gap" else "LOG_DIVERGED")
    assert not own["assumes"] and own["fix"][0]["repair"].startswith(f"read the log of {SOURCE} once more")
    assert "goes furthest" not in str(own["fix"])


def test_what_another_log_proves_takes_the_source_for_granted(lines: list[bytes], tmp_path: Path) -> None:
    """Where a file ends the records of a log do not tell: that its last ones are missing only the other log shows."""
    turn = next(at for at, (one, next_) in enumerate(pairwise(lines)) if one.split(b":")[0] != next_.split(b":")[0])
    found = diagnosed(
        tmp_path,
        dumps(tmp_path / "now", shopdb__src1=lines, shopdb_ro__r1=[*lines[: turn - 3], *lines[turn + 1 :]]),
    )
    (gap,) = of_code(found, "LOG_GAP")
    assert gap["server"] == COPY and gap["assumes"] == ["furthest_log_is_source"]


def test_without_a_registry_no_step_stands_on_a_log_that_is_taken_for_the_source(
    lines: list[bytes], tmp_path: Path
) -> None:
    """The log of the copy may as well be the right one."""
    parted = [*lines[:3500], *map(other, lines[3500:3550])]
    found = diagnosed(tmp_path, dumps(tmp_path / "now", shopdb__src1=lines, shopdb_ro__r1=parted))
    (tree,) = found["trees"]
    assert not tree["source_is_known"]
    assert {tuple(finding["assumes"]) for finding in found["findings"] if finding["server"] == COPY} == {
        ("furthest_log_is_source",)
    }
    made = plan(Case.open(tmp_path / "case"))
    assert not made.steps and made.courses
    assert all("nothing tells which of these logs is the source" in course.refused for course in made.courses)


def test_what_no_plan_mends_is_said(lines: list[bytes], tmp_path: Path) -> None:
    """The log of the source itself has a hole: nobody copies a node that follows over it."""
    made = planned(tmp_path, [*lines[:1000], *lines[1001:]], lines)
    assert not made.steps and any(one.startswith("LOG_GAP shopdb@src1") for one in made.left)
    assert "Nothing needs mending" not in plan_text(made)


def test_over_a_source_whose_log_has_a_gap_no_node_below_is_copied(lines: list[bytes], tmp_path: Path) -> None:
    found = both(tmp_path, [*lines[:2000], *lines[2004:]], lines)
    (gap,) = (finding for finding in of_code(found, "LOG_GAP") if finding["server"] == SOURCE)
    last = gap["fix"][-1]
    assert last["repair"].startswith("if it is still there: rebuild the nodes below")
    assert f"copy no node below over {SOURCE}" in last["caution"]


def test_a_rebuild_counts_the_records_inside_that_it_brings(lines: list[bytes], tmp_path: Path) -> None:
    made = planned(tmp_path, lines, [*lines[:2000], *lines[2004:]], lines)
    (course,) = (way for way in made.courses if way.chosen)
    assert course.way.startswith("rebuild-from-") and course.restored == 4
    assert not made.left, "the step replaces the log in which the gap is"


def test_without_a_registry_nothing_is_promised_to_a_node_of_the_same_database(
    lines: list[bytes], tmp_path: Path
) -> None:
    """That nodes of one database are one cluster, which brings its own nodes up to date, nothing tells."""
    case = Case.create(tmp_path / "case")
    case.load([dumps(tmp_path / "now", shopdb__src1=lines, shopdb__src2=lines[:3000])])
    made = plan(case)
    waits = {row["server"]: row["pending"] for row in made.before}
    assert waits["shopdb@src2"] > 0 and {row["server"]: row["pending"] for row in made.after} == waits
    assert "on their way" not in plan_text(made)


def made_log(payloads: Sequence[bytes], ends: Sequence[bool]) -> list[tuple[bytes, str]]:
    """Lines of a dump with their places: each record begins where the last one ends, or at 28 of the next file."""
    file, start, found = 9, 28, []
    for payload, end in zip(payloads, ends, strict=True):
        row = digest((file, start, 2151, payload))
        found.append((printed(DIGEST, [row], TABS).rstrip(b"\n"), f"{{{file}:{start}}}"))
        file, start = (file + 1, 28) if end else (file, start + len(payload) + 12)
    return found


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_record_that_lacks_is_found_and_no_other(data: st.DataObject) -> None:
    """Wherever it stood in its file: the oracle knows which were taken out between the first and the last that are there."""
    count = data.draw(st.integers(3, 20))
    payloads = data.draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
    log = made_log(payloads, data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    gone = data.draw(st.sets(st.integers(1, count - 2), max_size=4))
    of_source = data.draw(st.booleans())
    whole, holed = [line for line, _ in log], [line for at, (line, _) in enumerate(log) if at not in gone]
    with TemporaryDirectory() as folder:
        found = both(Path(folder), *((holed, whole) if of_source else (whole, holed)))
    lacking = SOURCE if of_source else COPY
    assert {server for code, server in codes(found) if code == "LOG_GAP"} == ({lacking} if gone else set())
    assert sorted(one["position"] for one in found["missing"]) == sorted(log[at][1] for at in gone if not of_source)
    assert not of_code(found, "LOG_DIVERGED")
