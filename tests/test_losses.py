"""Findings about changes, each with a small case in which it must come and one in which it must not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT
from detector_samples import findings, of, plain_line, stamp
from entry_samples import answered
from mesh_samples import SUFFIX, agreement, changelog, claims, csn, elements, pair_of_servers, replica

Files = dict[str, Any]


def made(rid: int, *seconds: int) -> list[str]:
    return [csn(second, rid) for second in seconds]


def apart(log: str) -> str:
    """Each change of an entry of its own, the same in every log: else one of them would be the twin of another."""
    return re.sub(r"(csn: (\w{8})(\w{8})0000\nnsuniqueid: )\w{8}-\w{8}", r"\1\2-\3", log)


def server(rid: int, changes: list[str], *, vector: Any = None, **header: Any) -> Files:
    """A server of two, with its files; `vector` like `claims`."""
    other = 3 - rid
    return {
        f"s{rid}.changelog.ldif": apart(changelog(sorted(changes), **header)),
        f"s{rid}.replica.ldif": replica(rid, elements(vector)),
        f"s{rid}.agreements.ldif": agreement(f"to-s{other}", 38900 + other),
    }


def two(first: list[str], second: list[str], one: Any, other: Any) -> Files:
    return server(1, first, vector=one) | server(2, second, vector=other)


FIVE = [*made(1, 0, 1, 2, 3, 4), *made(2, 1, 2)]


# --- MISSED_CHANGE, OWN_CHANGES_HIDDEN


def test_a_change_behind_the_vector(tmp_path: Path) -> None:
    lacking = [change for change in FIVE if change != csn(2, 1)]
    spans = claims(r1=(0, 4), r2=(1, 2))
    (one,) = of("MISSED_CHANGE", findings(tmp_path / "lacks", two(FIVE, lacking, spans, spans)))
    assert (one["severity"], one["server"], one["origin"], one["items"]) == ("error", "s2", "1", [csn(2, 1)])
    assert not of("MISSED_CHANGE", findings(tmp_path / "has", two(FIVE, FIVE, spans, spans)))
    late = two(FIVE, [*made(1, 0, 1), *made(2, 1, 2)], spans, claims(r1=(0, 1), r2=(1, 2)))
    assert not of("MISSED_CHANGE", findings(tmp_path / "late", late))


@pytest.mark.parametrize("wrote", [True, False])
def test_own_changes_are_hidden_by_the_next_write(wrote: bool, tmp_path: Path) -> None:
    """s1 lost its changes of the seconds 3 and 4; s2 has them."""
    kept = [*made(1, 0, 1, 2), *made(2, 1, 2), *(made(1, 90) if wrote else [])]
    mine = claims(r1=(0, 90 if wrote else 2), r2=(1, 2))
    found = findings(tmp_path, two(kept, FIVE, mine, claims(r1=(0, 4), r2=(1, 2))))
    hidden = of("OWN_CHANGES_HIDDEN", found)
    assert [(one["server"], one["origin"], one["items"]) for one in hidden] == (
        [("s1", "1", list(made(1, 3, 4)))] if wrote else []
    )
    assert all(one["severity"] == "error" for one in hidden)


@pytest.mark.parametrize(
    ("lines", "maker"),
    [({"s2": False}, "s2"), ({"s2": True}, "")],
)
def test_what_another_server_made_as_this_origin_is_no_own_change(
    lines: dict[str, bool], maker: str, tmp_path: Path
) -> None:
    """`lines`: the servers with lines of the changes in their access logs, and whether a supplier sent them."""
    kept = [*made(1, 0, 1, 2), *made(2, 1, 2), *made(1, 90)]
    files = two(kept, FIVE, claims(r1=(0, 90), r2=(1, 2)), claims(r1=(0, 4), r2=(1, 2)))
    for name, sent in lines.items():
        connected = "".join(
            f"{stamp(1)} conn={number} fd=64 slot=64 connection from 10.0.0.1 to 10.0.0.2\n" for number in (1, 2)
        )
        files[f"{name}.access.log"] = connected + "".join(
            answered(second, "uid=x", csn(second, 1), sent) for second in (3, 4)
        )
    found = findings(tmp_path, files)
    assert bool(of("OWN_CHANGES_HIDDEN", found)) == (not maker)
    (missed,) = (row for row in of("MISSED_CHANGE", found) if row["server"] == "s1")
    assert (f"; {maker} made 2 of them when it had this origin" in missed["summary"]) == bool(maker)
    assert ("OWN_CHANGES_HIDDEN" in missed["summary"]) == (not maker)


@pytest.mark.parametrize(("open_", "own"), [(3, False), (4, True)])
def test_a_connection_without_a_beginning_is_of_whoever_made_the_others(open_: int, own: bool, tmp_path: Path) -> None:
    """Seen on 3.1.2 after a crash. `own`: the log of s1 names a change of that position, of another entry."""
    kept = [*made(1, 0, 1, 2), *made(2, 1, 2), *made(1, 90)]
    files = two(kept, FIVE, claims(r1=(0, 90), r2=(1, 2)), claims(r1=(0, 4), r2=(1, 2)))
    begun = "".join(f"{stamp(1)} conn={n} fd=64 slot=64 connection from 10.0.0.1 to 10.0.0.2\n" for n in (1, 2))
    lines = [answered(second, "uid=x", csn(second, 1), False) for second in (3, 4)]
    files["s2.access.log"] = begun + "".join(
        line.replace("conn=2 ", "conn=7 ") if second == open_ and not own else line
        for second, line in zip((3, 4), lines, strict=True)
    )
    if own:
        files["s1.access.log"] = begun + answered(open_, "uid=y", csn(open_, 1), False)
    found = findings(tmp_path, files)
    assert not of("OWN_CHANGES_HIDDEN", found)
    (missed,) = (row for row in of("MISSED_CHANGE", found) if row["server"] == "s1")
    assert f"; s2 made {1 if own else 2} of them when it had this origin" in missed["summary"]


@pytest.mark.parametrize("shared", [True, False])
def test_what_only_the_log_of_another_server_of_the_same_origin_had_is_not_said_to_be_lost(
    shared: bool, tmp_path: Path
) -> None:
    """s2 had replica ID 1 when it was read before, and two changes that the log of s1 did not have then."""
    kept, now = [*made(1, 0, 1, 2), *made(2, 1, 2)], claims(r1=(0, 4), r2=(1, 2))
    before = two(kept, FIVE, claims(r1=(0, 2), r2=(1, 2)), now)
    if shared:
        before["s2.replica.ldif"] = replica(1, elements(now))
    found = findings(tmp_path, before, two([*kept, *made(1, 90)], FIVE, claims(r1=(0, 90), r2=(1, 2)), now))
    assert bool(of("OWN_CHANGES_HIDDEN", found)) == (not shared)
    (missed,) = (row for row in of("MISSED_CHANGE", found) if row["server"] == "s1")
    assert ("; s2 made 2 of them when it had this origin" in missed["summary"]) == shared


# --- ROLLED_BACK


def restored(alive: int | None) -> Files:
    """s2 holds changes of s1 up to second 400, s1 its own up to 2; a line of its log says how long it ran."""
    later = made(1, 0, 1, 2, 400)
    files = two(made(1, 0, 1, 2), later, claims(r1=(0, 2)), claims(r1=(0, 400)))
    if alive is not None:
        files["s1.errors.log"] = plain_line(alive, "anything")
    return files


@pytest.mark.parametrize(("alive", "rolled"), [(900, True), (401, True), (399, False), (None, False)])
def test_back_in_time_or_only_read_earlier(alive: int | None, rolled: bool, tmp_path: Path) -> None:
    found = of("ROLLED_BACK", findings(tmp_path, restored(alive)))
    assert [(one["severity"], one["server"], one["items"]) for one in found] == (
        [("error", "s1", [csn(400, 1)])] if rolled else []
    )


def test_a_server_that_knew_more_in_the_snapshot_before(tmp_path: Path) -> None:
    before = two(made(1, 0, 1, 2, 400), made(1, 0, 1, 2, 400), claims(r1=(0, 400)), claims(r1=(0, 400)))
    assert of("ROLLED_BACK", findings(tmp_path / "back", before, restored(None)))
    as_ever = two(made(1, 0, 1, 2), made(1, 0), claims(r1=(0, 2)), claims(r1=(0, 0)))
    assert not of("ROLLED_BACK", findings(tmp_path / "moved", as_ever, restored(None)))


# --- STRANDED_CHANGE


def test_a_change_that_one_server_holds_behind_the_vector_of_the_other(tmp_path: Path) -> None:
    spans = claims(r1=(0, 4), r2=(1, 2))
    lacking = [change for change in FIVE if change != csn(2, 1)]
    (one,) = of("STRANDED_CHANGE", findings(tmp_path / "hidden", two(FIVE, lacking, spans, spans)))
    assert (one["severity"], one["server"], one["items"]) == ("error", "s1", [csn(2, 1)])
    assert not of("STRANDED_CHANGE", findings(tmp_path / "pending", pair_of_servers(9, 4)))


def test_a_change_that_a_third_server_has_is_not_stranded(tmp_path: Path) -> None:
    spans = claims(r1=(0, 4), r2=(1, 2))
    files = two(FIVE, [change for change in FIVE if change != csn(2, 1)], spans, spans)
    files |= {"s3.changelog.ldif": apart(changelog(FIVE)), "s3.replica.ldif": replica(3, elements(spans))}
    found = findings(tmp_path, files)
    assert of("MISSED_CHANGE", found)
    assert not of("STRANDED_CHANGE", found)


# --- PENDING_CHANGES


def test_what_is_on_its_way_is_an_information_while_somebody_can_send_it(tmp_path: Path) -> None:
    (one,) = of("PENDING_CHANGES", findings(tmp_path / "lag", pair_of_servers(9, 4)))
    assert (one["severity"], one["server"], one["items"]) == ("info", "s2", [csn(5, 1), csn(9, 1)])
    waits = {"count": 5, "available": 5, "first": csn(5, 1), "last": csn(9, 1), "senders": ["s1"]}
    assert one["evidence"] == [waits]
    gone = pair_of_servers(9, 4)
    gone["s1.changelog.ldif"] = changelog([*made(1, 7, 8, 9), *made(2, 1, 2)])
    gone["s1.access.log"] = "".join(
        f"{stamp(second)} conn=7 op={second} RESULT err=0 tag=103 nentries=0 etime=0.1 csn={csn(second, 1)}\n"
        for second in range(10)
    )
    (one,) = of("PENDING_CHANGES", findings(tmp_path / "gone", gone))
    assert (one["severity"], one["evidence"][0]["count"], one["evidence"][0]["available"]) == ("warning", 5, 3)
    assert not of("PENDING_CHANGES", findings(tmp_path / "none", pair_of_servers(4, 4)))


# --- REINIT_REQUIRED


@pytest.mark.parametrize(("trimmed", "needed"), [(7, True), (4, False)])
def test_nobody_can_bring_the_consumer_up_to_date(trimmed: int, needed: bool, tmp_path: Path) -> None:
    """s2 stands at second 4; the log of s1 begins at second 7, or holds second 4 still."""
    files = pair_of_servers(9, 4)
    purge = elements(claims(r1=(0, trimmed - 1)), None)
    files["s1.changelog.ldif"] = changelog([*made(1, *range(trimmed, 10)), *made(2, 1, 2)], purge=purge)
    found = of("REINIT_REQUIRED", findings(tmp_path, files))
    assert [(one["severity"], one["server"]) for one in found] == [("error", "s2")] * needed


def test_nobody_is_to_be_filled_for_what_only_a_server_without_a_log_has(tmp_path: Path) -> None:
    """Seen on 2.3.1: the last changes of s3, which is gone, are on the consumer c1 alone, and it can fill nobody."""
    files: dict[str, Any] = {}
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 3))))
        files[f"s{rid}.changelog.ldif"] = changelog([*made(1, *range(5)), *made(2, 1, 2), *made(3, *range(4))])
        files[f"s{rid}.agreements.ldif"] = agreement(f"s{rid}-to-s{3 - rid}", 38900 + 3 - rid)
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 9))), flags=0)
    found = findings(tmp_path, files)
    assert len(of("PENDING_CHANGES", found)) == 2 and not of("REINIT_REQUIRED", found)


def test_a_server_that_lacks_changes_is_no_source(tmp_path: Path) -> None:
    restored = INCIDENT.parent / "restored_from_own_backup" / "2-after"
    found = of("REINIT_REQUIRED", findings(tmp_path, {path.name: path.read_bytes() for path in restored.iterdir()}))
    assert {one["server"] for one in found} == {"s1", "s2"}  # only the log of s3 has what they wait for
    (fix,) = {one["fix"][0]["repair"] for one in found}
    assert fix == (
        "save 16 changes from the changelog of s3, initialise s3 from a server that has what s3 lacks, then write them again"
    )
    assert all("do not initialise" in one["fix"][0]["caution"] for one in found)


# --- VECTOR_AHEAD_OF_LOG


def ahead(exported: int | None, *, later: bool = False) -> Files:
    """The vector of s1 claims its change of second 9; its log ends at 8, and was written at that second if a line says so."""
    files = pair_of_servers(9, 8)
    files["s1.changelog.ldif"] = changelog([*made(1, *range(9)), *made(2, 1, 2, *([600] if later else []))])
    if exported is not None:
        done = f'changelog_export - Finished changelog export of replica "{SUFFIX}"'
        files["s1.errors.log"] = plain_line(exported, done)
    return files


@pytest.mark.parametrize(
    ("exported", "later", "told"),
    [
        (None, False, False),  # read moments apart
        (None, True, True),  # the log goes on behind it
        (20, False, True),  # written after the change was made
        (5, True, False),  # written before it
    ],
)
def test_a_vector_that_promises_more_than_the_log(
    exported: int | None, later: bool, told: bool, tmp_path: Path
) -> None:
    found = of("VECTOR_AHEAD_OF_LOG", findings(tmp_path, ahead(exported, later=later)))
    assert [(one["severity"], one["server"], one["items"]) for one in found] == [("warning", "s1", [csn(9, 1)])] * told


def test_a_log_that_was_made_anew_is_no_broken_promise(tmp_path: Path) -> None:
    files = pair_of_servers(9, 9)
    files["s1.changelog.ldif"] = changelog([csn(600, 2)], marks=[csn(9, 1), csn(2, 2)])
    assert not of("VECTOR_AHEAD_OF_LOG", findings(tmp_path, files))


def test_a_stuck_server_is_filled_from_one_that_gets_the_rest_itself(tmp_path: Path) -> None:
    """While clients write, no server has the newest of all others."""
    made = {
        "s1": claims(r1=(1, 21), r2=(1, 19)),
        "s2": claims(r1=(1, 20), r2=(1, 20)),
        "s3": claims(r1=(1, 5), r2=(1, 5)),
    }
    tops = {"s1": (21, 19), "s2": (20, 20)}
    files: dict[str, Any] = {}
    for name, spans in made.items():
        files[f"{name}.replica.ldif"] = replica(int(name[1]), elements(spans))
        others = [other for other in made if other != name]
        files[f"{name}.agreements.ldif"] = "".join(agreement(f"{name}-to-{one}", 38900 + int(one[1])) for one in others)
    for name, upto in tops.items():
        kept = [csn(at, rid) for rid, top in enumerate(upto, 1) for at in range(15, top + 1)]
        purge = [f"{{replica {rid}}} {csn(14, rid)}" for rid in (1, 2)]
        files[f"{name}.changelog.ldif"] = changelog(kept, purge=purge, own_entries=True)
    (stuck,) = of("REINIT_REQUIRED", findings(tmp_path, files))
    assert stuck["server"] == "s3" and stuck["fix"][-1]["repair"].startswith("initialise s3 from s2, or ")
