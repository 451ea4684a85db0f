"""The way of one change: on made-up meshes with clocks that disagree, against captured logs and the tool of the system."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from collected import SHARED, needs_collected_files
from history_samples import Seen, at, results, server_files
from mesh_samples import case_of, claims, csn

from workbench import Case, Problem
from workbench.diagnosis.propagation import APPLIED, COVERED, IN_LOG, MADE, ONLY_HOLDER, SENT, UNKNOWN, arrivals

CHANGE = csn(3, 1)


def chain(tmp_path: Path, *seen: Seen, sends: dict[int, list[int]] | None = None, knows: bool = True) -> Case:
    """s1, s2 and s3; by default s1 sends to s2 and s2 to s3. `knows`: the vector of s3 covers the change."""
    links = {1: [2], 2: [3], 3: []} if sends is None else sends
    files: dict[str, str] = {}
    for rid in (1, 2, 3):
        covers = rid < 3 or knows
        vector = {2: None, 3: None, **(claims(r1=(0, 3)) if covers else claims(r1=(0, 2)))}
        logged = [csn(second, 1) for second in range(4)] if rid == 1 else []
        files |= server_files(f"s{rid}", rid, vector, seen, logged=logged, links=links[rid])
    return case_of(tmp_path, files)


def test_a_hop_needs_a_link_not_just_an_earlier_arrival(tmp_path: Path) -> None:
    case = chain(tmp_path, Seen(4000, "s2", CHANGE), Seen(5500, "s3", CHANGE))
    way = arrivals(case, CHANGE.upper())
    assert (way.position, way.origin, way.made_at) == (CHANGE, "1", at(3))
    assert [(one.server, one.outcome, one.at) for one in way.arrivals] == [
        ("s1", MADE, at(3)),
        ("s2", APPLIED, at(4)),
        ("s3", APPLIED, at(5.5)),
    ]
    assert [(hop.supplier, hop.consumer, hop.link, hop.by, hop.seconds) for hop in way.hops] == [
        ("s1", "s2", "s1-to-s2", ONLY_HOLDER, 1.0),
        ("s2", "s3", "s2-to-s3", ONLY_HOLDER, 1.5),
    ]
    assert not any(hop.clocks_disagree for hop in way.hops)


def test_of_two_that_may_have_sent_it_none_is_chosen(tmp_path: Path) -> None:
    seen = (Seen(4000, "s2", CHANGE), Seen(5500, "s3", CHANGE))
    way = arrivals(chain(tmp_path, *seen, sends={1: [2, 3], 2: [3], 3: []}), CHANGE)
    assert [(hop.consumer, hop.supplier, hop.candidates) for hop in way.hops] == [
        ("s2", "s1", ()),
        ("s3", None, ("s1", "s2")),
    ]


def test_clocks_that_disagree_are_told(tmp_path: Path) -> None:
    way = arrivals(chain(tmp_path, Seen(9000, "s2", CHANGE), Seen(1000, "s3", CHANGE)), CHANGE)
    assert [one.server for one in way.arrivals] == ["s3", "s1", "s2"]
    hops = {hop.consumer: hop for hop in way.hops}
    assert (hops["s3"].supplier, hops["s3"].seconds, hops["s3"].clocks_disagree) == ("s2", -8.0, True)
    assert (hops["s2"].supplier, hops["s2"].clocks_disagree) == ("s1", False)


def test_without_a_link_there_is_no_hop_to_name(tmp_path: Path) -> None:
    way = arrivals(chain(tmp_path, Seen(4000, "s2", CHANGE), sends={1: [], 2: [], 3: []}), CHANGE)
    (hop,) = way.hops
    assert (hop.consumer, hop.supplier, hop.by, hop.candidates) == ("s2", None, None, ())


@pytest.mark.parametrize(("knows", "outcome"), [(True, COVERED), (False, UNKNOWN)])
def test_a_vector_that_covers_a_change_is_no_arrival(tmp_path: Path, knows: bool, outcome: str) -> None:
    way = arrivals(chain(tmp_path, Seen(4000, "s2", CHANGE), knows=knows), CHANGE)
    assert {one.server: one.outcome for one in way.arrivals}["s3"] == outcome
    assert "s3" not in {hop.consumer for hop in way.hops}


def test_what_nobody_shows_and_what_is_no_position_is_refused(tmp_path: Path) -> None:
    case = chain(tmp_path, Seen(4000, "s2", CHANGE))
    for wrong, says in (
        ("\x1b[2Jx", "is not a position"),
        (csn(2, 9), "origins: 1, 2, 3"),
        (csn(7, 1), "no server shows"),
    ):
        with pytest.raises(Problem, match=re.escape(says)) as told:
            arrivals(case, wrong)
        assert "\x1b" not in str(told.value)


# --- captured

BASE = SHARED / "base"
SENDING = re.compile(r"^\[(.{26}).* - replay_update - agmt=\"cn=(\S+)\" .*Sending .* csn=([0-9a-f]{20})\)")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The healthy mesh, without the files that tell nothing of arrivals."""
    folder = tmp_path_factory.mktemp("base") / "base"
    folder.mkdir()
    for file in sorted(BASE.glob("s?.*")):
        if re.search(r"\.(access\.log|replica\.ldif|agreements\.ldif|changelog\.ldif)", file.name):
            (folder / file.name).symlink_to(file)
    case = Case.create(folder.parent / "case")
    case.load([folder])
    return case


@needs_collected_files
def test_arrivals_are_those_of_the_captured_access_logs(base: Case) -> None:
    logged = {
        name: results(gzip.decompress((BASE / f"{name}.access.log.gz").read_bytes()).decode())
        for name in ("s1", "s2", "s3")
    }
    everywhere = sorted(set.intersection(*(set(found) for found in logged.values())))
    assert len(everywhere) > 3000
    for position in everywhere[:: len(everywhere) // 25]:
        way = arrivals(base, position)
        assert {one.server: one.at for one in way.arrivals} == {name: found[position] for name, found in logged.items()}
        (maker,) = (one.server for one in way.arrivals if one.outcome == MADE)
        assert maker == f"s{way.origin}"
        assert {hop.consumer for hop in way.hops} == set(logged) - {maker}
        for hop in way.hops:
            assert hop.supplier or len(hop.candidates) == 2


@needs_collected_files
def test_the_lag_is_that_of_the_lag_report_of_the_system(base: Case) -> None:
    """Its global lag is from the first to the last server that logged a result; its table names each server's time."""
    text = gzip.decompress((SHARED / "formats" / "lag-report.first2500.csv.gz").read_bytes()).decode()
    rows = list(csv.DictReader(io.StringIO(text)))[:-10]  # the file was cut: of the last change servers may be missing
    report: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        report.setdefault(row["CSN"], []).append(row)
    compared = 0
    for position in list(report)[:: len(report) // 25]:
        timed = [one for one in arrivals(base, position).arrivals if one.evidence == "access_log" and one.at]
        seen = {one.server: one.at for one in timed if one.at}
        mine = {row["Server"]: datetime.fromisoformat(f"{row['Timestamp']}+00:00") for row in report[position]}
        assert {server: when.replace(microsecond=0) for server, when in seen.items()} == mine
        lag = (max(seen.values()) - min(seen.values())).total_seconds()
        assert abs(lag - float(report[position][0]["Global Lag (s)"])) < 0.002
        compared += 1
    assert compared >= 25
    head = (SHARED / "formats" / "lag-report.head.json.txt").read_text()
    points = [json.loads("{" + point + "}") for point in re.findall(r'"name": "s\d",[^{}]*"csnId": "\w+"', head)]
    assert points
    for point in points:
        found = {one.server: one.at for one in arrivals(base, point["csnId"]).arrivals}
        assert found[point["name"]] == datetime.fromisoformat(point["x"])


@needs_collected_files
def test_hops_are_those_that_the_suppliers_logs_tell(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case")
    points = [SHARED / "incidents" / "i_lag" / name for name in ("before", "during", "after")]
    case.load(points)
    sent: dict[tuple[str, str], set[str]] = {}
    for file in (file for point in points for file in point.glob("*.errors.log.gz")):
        for line in gzip.decompress(file.read_bytes()).decode(errors="replace").splitlines():
            if found := SENDING.match(line):
                sent.setdefault((found[3], found[2].rpartition("-to-")[2]), set()).add(found[2])
    assert len(sent) > 300
    for position, consumer in sorted(sent)[:: len(sent) // 12]:
        way = arrivals(case, position)
        hops = {hop.consumer: hop for hop in way.hops}
        if consumer in hops:
            assert hops[consumer].by == SENT
            assert hops[consumer].link in sent[position, consumer]
            assert hops[consumer].supplier == str(hops[consumer].link).partition("-to-")[0]
            assert not hops[consumer].clocks_disagree
    late = arrivals(case, "6b005bdb000000010000")
    hop = next(hop for hop in late.hops if hop.consumer == "s2")
    assert (hop.link, hop.seconds and hop.seconds > 14) == ("s1-to-s2", True)
    dropped = arrivals(case, "6b005bdc000b00010000")  # TRUTH.md: s2 logged "canceling operation csn" for it
    assert {one.server: one.outcome for one in dropped.arrivals} == {"s1": MADE, "s2": "cancelled", "s3": APPLIED}
    assert IN_LOG not in {one.outcome for one in dropped.arrivals}
