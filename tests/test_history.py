"""Time travel: against a replay by hand of random evidence, on made-up meshes, and on captured incidents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from collected import SHARED, needs_collected_files
from history_samples import Seen, at, replayed, server_files
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mesh_samples import SUFFIX, case_of, claims, csn

from workbench import Case, Problem
from workbench.topology.history import (
    AT_LEAST,
    BETWEEN,
    EXACT,
    UNKNOWN,
    all_known_at,
    disagreement,
    known_at,
    lag,
    moment_of,
    vectors_over_time,
)

INCIDENTS = SHARED / "incidents"


def incident(tmp_path: Path, name: str, *points: str) -> Case:
    case = Case.create(tmp_path / "case")
    case.load([INCIDENTS / name / point for point in points])
    return case


def mesh(
    tmp_path: Path,
    *seen: Seen,
    made: int = 9,
    stamps: dict[int, float] | None = None,
    unseen: Iterable[str] = (),
) -> Case:
    """s1 makes a change every second, s2 applies what `seen` says, and `unseen`; the vectors are read when all is over."""
    own = [csn(second, 1) for second in range(made + 1)]
    held = [one.position for one in seen if one.server == "s2"]
    of_s2 = {1: (own[0], max(held))} if held else {}
    first = server_files("s1", 1, claims(r1=(0, made)), seen, logged=own, links=[2])
    second = server_files("s2", 2, {**of_s2, 2: None}, seen, logged=sorted([*held, *unseen]), links=[1], stamps=stamps)
    return case_of(tmp_path, {**first, **second})


# --- at one time


def test_what_a_server_knew_lies_between_two_lines_of_its_log(tmp_path: Path) -> None:
    case = mesh(tmp_path, *(Seen(5000 + 100 * second, "s2", csn(second, 1)) for second in range(6)))
    known = known_at(case, "s2", "1", at(5.25))
    assert (known.verdict, known.changes, known.why) == (EXACT, 0, "")
    assert known.at_least
    assert known.at_most
    assert (known.at_least.position, known.at_least.at) == (csn(2, 1), at(5.2))
    assert (known.at_most.position, known.at_most.at, known.at_most.included) == (csn(3, 1), at(5.3), False)
    assert {known.at_least.evidence, known.at_most.evidence} == {"access_log"}
    lines = (tmp_path / "1" / "s2.access.log").read_bytes()
    for one in (known.at_least, known.at_most):
        assert (one.snapshot, one.file) == ("1", "s2.access.log")
        assert one.position in lines[one.offset :].split(b"\n")[0].decode(), "the proof is not where it is said to be"


def test_a_hole_in_the_log_is_counted_not_guessed(tmp_path: Path) -> None:
    hole = [csn(second, 1) for second in (2, 3, 4, 5)]
    case = mesh(tmp_path, Seen(5000, "s2", csn(1, 1)), Seen(9000, "s2", csn(6, 1)), unseen=hole)
    known = known_at(case, "s2", "1", at(7))
    assert (known.verdict, known.changes) == (BETWEEN, 4)


def test_changes_that_the_server_never_got_are_no_hole(tmp_path: Path) -> None:
    case = mesh(tmp_path, Seen(5000, "s2", csn(1, 1)), Seen(9000, "s2", csn(6, 1)))
    assert known_at(case, "s2", "1", at(7)).verdict == EXACT, "its own log shows that it went from one to the other"


def test_before_the_first_evidence_all_is_unknown_and_after_the_last_one_there_is_a_floor(tmp_path: Path) -> None:
    case = mesh(tmp_path, Seen(5000, "s2", csn(1, 1)))
    before, after = known_at(case, "s2", "1", at(4.9)), known_at(case, "s2", "1", at(500))
    assert (before.verdict, before.at_least, before.at_most and before.at_most.position) == (UNKNOWN, None, csn(1, 1))
    assert "reaches back" in before.why
    assert (after.verdict, after.at_least and after.at_least.position, after.at_most) == (AT_LEAST, csn(1, 1), None)
    nothing = known_at(case, "s1", "2", at(5))
    assert (nothing.verdict, nothing.at_most) == (UNKNOWN, None)


def test_own_changes_are_known_by_the_time_in_them_from_the_end_of_their_second(tmp_path: Path) -> None:
    case = mesh(tmp_path, Seen(5000, "s2", csn(1, 1)))
    for when, position, verdict in ((4.5, csn(3, 1), BETWEEN), (5.0, csn(4, 1), BETWEEN), (0.5, None, UNKNOWN)):
        known = known_at(case, "s1", "1", at(when))
        assert (known.at_least and known.at_least.position, known.verdict) == (position, verdict)
        assert known.at_most
        assert known.at_most.evidence == "position_time"


def test_a_vector_without_a_stamp_counts_only_for_about_the_end_of_its_snapshot(tmp_path: Path) -> None:
    case = case_of(tmp_path, server_files("s1", 1, claims(r1=(0, 3), r2=(0, 7)), [Seen(9000, "s1", csn(3, 1))]))
    known = known_at(case, "s1", "2", at(10))
    assert known.at_least
    assert (known.at_least.evidence, known.at_least.at, known.at_least.position) == ("snapshot", at(9), csn(7, 2))
    assert known_at(case, "s1", "2", at(8.9)).verdict == UNKNOWN


def test_a_vector_that_went_back_is_not_taken_for_what_was_before(tmp_path: Path) -> None:
    first = server_files("s1", 1, claims(r1=(0, 1), r2=(0, 7)), stamps={1: 1, 2: 8})
    later = server_files("s1", 1, claims(r1=(0, 1), r2=(0, 3)), [Seen(50_000, "s1", csn(4, 2))], stamps={1: 1})
    case = case_of(tmp_path, first, later)
    assert (known_at(case, "s1", "2", at(8)).at_most or known_at(case, "s1", "1", at(0))).position == csn(7, 2)
    during = known_at(case, "s1", "2", at(20))
    assert (during.verdict, "replaced" in during.why) == (UNKNOWN, True)
    grown = vectors_over_time(case, "s1", "2").to_pylist()
    assert [row["position"] for row in grown] == []  # at 9 s the stamp of the first vector ends, and the doubt begins


def test_who_or_what_is_unknown_is_answered_with_what_there_is(tmp_path: Path) -> None:
    case = mesh(tmp_path, Seen(5000, "s2", csn(1, 1)))
    for wrong, says in (
        (lambda: known_at(case, "s\x1b9", "1", at(1)), "servers: s1, s2"),
        (lambda: known_at(case, "s2", "9", at(1)), "origins: 1, 2"),
        (lambda: known_at(case, "s2", "1", at(1), "dc=nowhere"), SUFFIX),
        (lambda: known_at(case, "s2", "1", "yesterday"), "is not a time"),
        (lambda: vectors_over_time(case, step=0), "a step of 0 seconds"),
        (lambda: lag(case, server="s7"), "servers: s1, s2"),
        (lambda: disagreement(case, origin="7"), "origins: 1, 2"),
    ):
        with pytest.raises(Problem) as told:
            wrong()
        assert says in str(told.value)
        assert "\x1b" not in str(told.value)


def test_a_time_without_a_zone_is_utc() -> None:
    assert (
        moment_of("2026-11-20T10:42:00")
        == moment_of("2026-11-20T11:42:00+01:00")
        == at(0).replace(year=2026, month=11, day=20, hour=10, minute=42, second=0)
    )
    assert moment_of(datetime(2026, 1, 1)).tzinfo is UTC  # noqa: DTZ001


# --- against a replay by hand

MOMENTS = st.integers(0, 12_000)


@st.composite
def pasts(draw: st.DrawFn) -> tuple[list[Seen], list[int], dict[int, float]]:
    """What s2 applied of origins 1 and 3, which changes it made itself, and the stamps of its vector."""
    seen = []
    for origin in (1, 3):
        seconds = sorted(draw(st.sets(st.integers(0, 9), max_size=6)))
        times = sorted(draw(st.lists(MOMENTS, min_size=len(seconds), max_size=len(seconds))))
        seen += [Seen(ms, "s2", csn(second, origin)) for ms, second in zip(times, seconds, strict=True)]
    own = sorted(draw(st.sets(st.integers(0, 11), max_size=4)))
    moved = {
        one: max(ms.ms for ms in seen if ms.position == max(_of(seen, one))) // 1000 for one in (1, 3) if _of(seen, one)
    }
    stamps = {origin: second for origin, second in moved.items() if draw(st.booleans())}
    return sorted(seen), own, stamps


def _of(seen: list[Seen], origin: int) -> list[str]:
    return [one.position for one in seen if one.position[12:16] == f"{origin:04x}"]


def past_case(folder: Path, seen: list[Seen], own: list[int], stamps: dict[int, float]) -> Case:
    made = [csn(second, 2) for second in own]
    spans = {origin: (min(held), max(held)) for origin in (1, 3) if (held := _of(seen, origin))}
    mine = {2: (made[0], made[-1]) if made else None}
    logged = sorted([*made, *(one.position for one in seen)])
    return case_of(folder, server_files("s2", 2, {**mine, **spans}, seen, logged=logged, stamps=stamps))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pasts(), st.lists(MOMENTS, min_size=1, max_size=3))
@example(([Seen(1000, "s2", csn(0, 1)), Seen(1000, "s2", csn(1, 1))], [0], {1: 1}), [999, 1000, 1001, 2000])
def test_known_at_is_what_a_replay_by_hand_finds(
    past: tuple[list[Seen], list[int], dict[int, float]], moments: list[int]
) -> None:
    seen, own, stamps = past
    with TemporaryDirectory() as folder:
        case = past_case(Path(folder), seen, own, stamps)
        for moment in {*moments, *(one.ms for one in seen[:3])}:
            when = at(moment / 1000)
            for known in all_known_at(case, when, "s2"):
                origin = int(known.origin)
                held = _of(seen, origin)
                expected = replayed(
                    seen,
                    "s2",
                    known.origin,
                    when,
                    own=[csn(second, 2) for second in own] if origin == 2 else [],
                    claimed=(max(held), stamps.get(origin))
                    if held
                    else (csn(own[-1], 2), None)
                    if own and origin == 2
                    else None,
                    newest=max(stamps.values(), default=None),
                )
                least, most = known.at_least, known.at_most
                if least and least.evidence == "snapshot":
                    assert expected.low is None
                    continue
                assert (least.position if least else None) == expected.low, (moment, known)
                assert (most.position if most else None, bool(most and most.included)) == expected[1:], (moment, known)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pasts(), st.sampled_from([0.5, 1.0, 3.0, 60.0]))
def test_vectors_over_time_are_the_last_sightings_of_each_step(
    past: tuple[list[Seen], list[int], dict[int, float]], step: float
) -> None:
    seen, own, stamps = past
    with TemporaryDirectory() as folder:
        rows = vectors_over_time(past_case(Path(folder), seen, own, stamps), step=step).to_pylist()
    for origin in ("1", "3"):
        highest: list[str] = []
        by_step: dict[int, list[Seen]] = {}
        for one in seen:
            if one.position in _of(seen, int(origin)):
                by_step.setdefault(int(one.ms / 1000 // step + at(0).timestamp() // step), []).append(one)
        for number in sorted(by_step):
            top = max(one.position for one in by_step[number])
            if not highest or top > highest[-1]:
                highest.append(top)
        mine = [row for row in rows if row["origin"] == origin]
        assert [
            row["position"] for row in mine if row["evidence"] == "access_log" or row["position"] in highest
        ] == highest
        for one, other in pairwise(mine):
            assert one["at"] <= other["at"]
            assert one["position"] < other["position"]
        for row in mine:
            first = min(at(one.ms / 1000) for one in seen if one.position == row["position"])
            assert first <= row["at"], "known before it came"


# --- links and pairs


def test_a_link_lags_by_what_its_consumer_lacked(tmp_path: Path) -> None:
    case = mesh(tmp_path, *(Seen(20_000 + 10 * second, "s2", csn(second, 1)) for second in range(10)), stamps={1: 20})
    (row,) = (
        lag(case, "s2", "1", when=at(15)).filter_supplier("s1")
        if False
        else [row for row in lag(case, "s2", "1", when=at(15)).to_pylist() if row["supplier"] == "s1"]
    )
    assert (row["supplier_position"], row["consumer_position"], row["link"]) == (csn(9, 1), None, "s1-to-s2")
    assert (row["at_least"], row["at_most"]) == (10, None)
    assert row["seconds"] == 15.0
    kept = [row for row in lag(case, "s2", "1", step=1).to_pylist() if row["supplier"] == "s1"]
    assert [row["at_most"] for row in kept][-1] == 0
    assert kept[-1]["at"] == at(21)


def test_what_a_consumer_knew_before_its_data_was_replaced_does_not_count_after_it(tmp_path: Path) -> None:
    own = [csn(second, 2) for second in (*range(10), 15)]
    supplier = server_files("s2", 2, {**claims(r2=(0, 15)), 1: None}, logged=own, links=[1], stamps={2: 15})
    full = server_files("s1", 1, claims(r1=(0, 1), r2=(0, 7)), stamps={1: 12, 2: 8})
    late = [Seen(60_000, "s1", csn(4, 2))]
    restored = server_files("s1", 1, claims(r1=(0, 1), r2=(0, 3)), late, stamps={1: 1})
    case = case_of(tmp_path, {**supplier, **full}, {**supplier, **restored})
    held = {
        row["at"]: row["consumer_position"]
        for row in lag(case, "s2", "2", step=4).to_pylist()
        if row["consumer"] == "s1"
    }
    assert held[at(12)] == csn(7, 2)
    assert held[max(held)] is None
    assert disagreement(case, origin="2").num_rows == 0, "what s1 holds now is not shown"


def test_vectors_that_differ_say_since_when_and_equal_ones_too(tmp_path: Path) -> None:
    seen = [Seen(1000 * second + 1500, "s2", csn(second, 1)) for second in range(4)]
    case = mesh(tmp_path, *seen, Seen(30_000, "s2", csn(0, 2)), made=9)
    (row,) = disagreement(case, origin="1", step=1).to_pylist()
    assert (row["server"], row["other"], row["state"], row["ahead"], row["changes"]) == ("s1", "s2", "differ", "s1", 6)
    assert (row["server_position"], row["other_position"]) == (csn(9, 1), csn(3, 1))
    assert row["since"] <= at(6)
    whole = mesh(tmp_path / "equal", *seen, made=3)
    (row,) = disagreement(whole, origin="1", step=1).to_pylist()
    assert (row["state"], row["since"], row["changes"]) == ("equal", at(4.5), 0)


# --- captured


@needs_collected_files
def test_what_s2_knew_while_it_was_cut_off(tmp_path: Path) -> None:
    case = incident(tmp_path, "i_lag", "before", "during", "after")
    known = known_at(case, "s2", "1", "2026-11-20T14:40:35Z")
    assert (known.verdict, known.at_least and known.at_least.position) == (EXACT, "6b005bc9000400010000")
    assert known.at_most
    assert (known.at_most.position, known.at_most.included) == ("6b005bdb000000010000", False)
    late = {
        (row["supplier"], row["origin"]): (row["at_least"], row["at_most"], row["seconds"])
        for row in lag(case, "s2", when="2026-11-20T14:40:35Z").to_pylist()
        if row["consumer"] == "s2" and row["at_most"]
    }
    # TRUTH.md: 79 changes of origin 1 and 77 of origin 3 were pending on s2.
    assert late == {
        (supplier, origin): (count, count, 8.0) for supplier in ("s1", "s3") for origin, count in (("1", 79), ("3", 77))
    }
    assert {row["state"] for row in disagreement(case).to_pylist()} == {"equal"}


@needs_collected_files
def test_a_server_that_was_restored_goes_back_and_only_then(tmp_path: Path) -> None:
    case = incident(tmp_path, "ii_restored_backup", "before", "restored", "after")
    grown = vectors_over_time(case, step=5).to_pylist()
    back = set()
    last: dict[tuple[str, str], str] = {}
    for row in grown:
        key = row["server"], row["origin"]
        if row["position"] < last.get(key, ""):
            back.add((*key, row["position"], row["at"]))
        last[key] = row["position"]
    # TRUTH.md: bak2db of s3 took its own origin back; it ended at 14:41:53 by its errors log.
    assert {row[:3] for row in back} >= {("s3", "3", "6b005bea000e00030000")}
    assert {row[0] for row in back} == {"s3"}
    restored = datetime(2026, 11, 20, 14, 41, 53, tzinfo=UTC)
    assert all(timedelta(0) <= row[3] - restored < timedelta(seconds=20) for row in back)
    for when, position in (("14:41:40", "6b005c17001300030000"), ("14:42:00", "6b005bea000e00030000")):
        known = known_at(case, "s3", "3", f"2026-11-20T{when}Z")
        assert known.at_least
        assert known.at_least.position == position, when
