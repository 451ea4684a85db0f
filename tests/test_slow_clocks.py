"""A clock that is behind: access logs show changes before they were made, and two other clocks agree."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from detector_samples import BEGAN, findings, listening, of, plain_line, status, with_status, zulu
from entry_samples import answered, entry, export
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica
from test_field_truth import with_a_clock

from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.rules.verdicts import REPLACED
from workbench.safety import to_yaml
from workbench.systems.ds389.detectors import slow_clocks
from workbench.topology.suffix_evidence import readings_began
from workbench.topology.topology import topology

MADE = {1: (1000, 1200), 2: (1100, 1300)}
"""When s1 and s2 made their changes."""


def logs(offsets: dict[int, int], *, delay: int = 1, silent: tuple[int, ...] = ()) -> dict[str, Any]:
    """Three servers, of which s1 and s2 make changes; each logs all of them by a clock that is off by so many seconds."""
    changes = sorted(csn(second, rid) for rid, seconds in MADE.items() for second in seconds)
    files: dict[str, Any] = {}
    for number in (1, 2, 3):
        name, off = f"s{number}", offsets.get(number, 0)
        files[f"{name}.replica.ldif"] = replica(number, elements({**claims(r1=(1000, 1200), r2=(1100, 1300)), 3: None}))
        files[f"{name}.changelog.ldif"] = changelog(changes, own_entries=True)
        files[f"{name}.agreements.ldif"] = "".join(
            agreement(f"{name}-to-s{other}", 38900 + other) for other in (1, 2, 3) if other != number
        )
        lines = sorted(
            (second + (off if rid == number else off + delay), rid, csn(second, rid))
            for rid, seconds in MADE.items()
            for second in seconds
        )
        if number not in silent:
            files[f"{name}.access.log"] = "".join(
                answered(at, "uid=u", position, replicated=rid != number) for at, rid, position in lines
            )
    return files


_ENDS = (("from", 0), ("until", 1))


def read_at(files: dict[str, Any], times: dict[str, float]) -> dict[str, Any]:
    """The same as `workbench collect` leaves it: when each server was read, in seconds."""
    collected = [
        {"server": name, **{key: (BEGAN + timedelta(seconds=second + more)).isoformat() for key, more in _ENDS}}
        for name, second in times.items()
    ]
    return files | {"case.yaml": to_yaml({"collected": collected})}


RIGHT = {"s1": 1301.0, "s2": 1302.0, "s3": 1303.0}
"""When servers were read of which s1 and s2 have a clock that is right."""


@pytest.mark.parametrize(
    ("off", "severity", "much"),
    [(-120, "info", "119 s"), (-601, "warning", "10 min"), (-90001, "error", "25 h")],
)
def test_a_server_that_gets_changes_before_two_others_made_them(
    off: int, severity: str, much: str, tmp_path: Path
) -> None:
    found = findings(tmp_path, read_at(logs({3: off}), RIGHT))
    (one,) = of("CLOCK_BEHIND", found)
    assert (one["server"], one["severity"]) == ("s3", severity)
    assert f"the clock of s3 was at least {much} behind" in one["summary"] and "were right when" in one["summary"]
    assert one["assumes"] == [] and one["fix"][0]["repair"].startswith("set the clock of s3 right")
    assert [row["made_by"] for row in one["evidence"]] == ["s1", "s2"]
    assert one["root"] == (f"the clock of s3 is {much} behind" if severity == "error" else "")
    assert {row["overruled_by"] for row in of("CLOCK_AHEAD", found)} <= {"CLOCK_BEHIND"}


@pytest.mark.parametrize("off", [-601, -90001])
def test_without_the_time_of_the_reading_either_side_may_be_wrong(off: int, tmp_path: Path) -> None:
    (one,) = of("CLOCK_BEHIND", findings(tmp_path, logs({3: off})))
    assert (one["severity"], one["root"], one["assumes"]) == ("warning", "", ["clocks_agree"])
    assert "either s3 was behind, or all of these were ahead" in one["summary"]
    assert one["fix"][0]["repair"].startswith("compare the clocks of s3, s1, s2")


def test_two_clocks_that_agree_may_be_wrong_together(tmp_path: Path) -> None:
    """s1 and s2 are 25 h ahead; s3 is right, which the time of the reading tells."""
    files = logs({3: -90001})
    times = {"s1": 1301 - 90001.0, "s2": 1302 - 90001.0, "s3": 1303 - 90001.0}
    assert not of("CLOCK_BEHIND", findings(tmp_path, read_at(files, times)))


def test_a_clock_that_was_set_back_is_not_right_again(tmp_path: Path) -> None:
    """Seen on 2.3.1: prompt changes of before stand at later times of its log than the early ones of after."""
    files = logs({3: -601})
    before = [(990, 1), (995, 2)]
    prompt = "".join(answered(at + 1, "uid=u", csn(at, rid), replicated=True) for at, rid in before)
    files["s3.access.log"] = prompt + files["s3.access.log"]
    (one,) = of("CLOCK_BEHIND", findings(tmp_path, read_at(files, RIGHT)))
    assert one["severity"] == "warning" and "agree again" not in one["summary"]


@pytest.mark.parametrize("off", [-601, -90001])
def test_a_clock_that_was_set_right_since(off: int, tmp_path: Path) -> None:
    files = logs({3: off})
    later = [(5000 + number, 1 + number % 2) for number in range(6)]
    for server in (1, 2, 3):
        files[f"s{server}.replica.ldif"] = replica(
            server, elements({**claims(r1=(1000, 5004), r2=(1100, 5005)), 3: None})
        )
        made = [csn(second, rid) for rid, seconds in MADE.items() for second in seconds]
        files[f"s{server}.changelog.ldif"] = changelog(
            sorted([*made, *(csn(second, rid) for second, rid in later)]), own_entries=True
        )
        for second, rid in later:
            own = rid == server
            files[f"s{server}.access.log"] += answered(
                second + (not own), "uid=u", csn(second, rid), replicated=not own
            )
    for name, some in (("unknown", files), ("read", read_at(files, {"s1": 5005, "s2": 5006, "s3": 5007}))):
        (one,) = of("CLOCK_BEHIND", findings(tmp_path / name, some))
        assert (one["severity"], one["root"]) == ("info", "")
        assert "later changes arrived promptly" in one["summary"] and "set the clock of s3" not in str(one["fix"])


DAYS = 2 * 86400


@pytest.mark.parametrize(
    ("lines", "refused", "told"),
    [
        ([(1000, "slapd started."), (1303 - DAYS, "slapd started.")], True, "2 days"),
        ([(1303 - DAYS, "slapd started.")], True, "2 days"),
        ([(1303 - DAYS, "slapd started.")], False, ""),
        ([(1303 - DAYS, "slapd started."), (1000, "slapd started.")], True, ""),
        ([(1100, "slapd started."), (1303 - 3600, "slapd started.")], False, "60 min"),
        ([(1303 - 3600, "slapd started.")], False, ""),
        ([(1303 - 3600, "slapd started."), (1302, "slapd started.")], False, ""),
    ],
    ids=["set back", "always behind", "no session refused", "right again", "an hour", "nothing to say", "set forward"],
)
def test_a_read_only_server_shows_a_slow_clock_by_its_log_alone(
    lines: list[tuple[float, str]], refused: bool, told: str, tmp_path: Path
) -> None:
    """Seen on 2.3.1: two links failed, "compare the clocks of h and r", and nothing said which of them was 2 days behind."""
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements({**claims(r1=(1000, 1200)), 3: None})),
        "s1.changelog.ldif": changelog([csn(1000, 1), csn(1200, 1)], own_entries=True),
        "s1.errors.log": plain_line(1301, "slapd started."),
        "s1.agreements.ldif": agreement("s1-to-s3", 38903),
        "s3.replica.ldif": replica(65535, elements(claims(r1=(1000, 1000))), flags=0),
    } | listening("s3")
    title = files["s3.errors.log"].rpartition("[")[0]
    files["s3.errors.log"] = title + "".join(plain_line(second, text) for second, text in lines)
    if refused:
        skew = status(2, "Replication error acquiring replica: excessive clock skew", "red", 1300, 1300)
        files["s1.agreements.ldif"] = with_status(files["s1.agreements.ldif"], skew)
    found = findings(tmp_path, read_at(files, {"s1": 1301.0, "s3": 1303.0}))
    slow = [one for one in of("CLOCK_BEHIND", found) if one["server"] == "s3"]
    assert [one["root"] for one in slow] == [f"the clock of s3 is {told} behind"] * bool(told)
    if told and refused:
        (failing,) = of("LINK_FAILING", found)
        assert failing["fix"][0]["repair"] == "do what CLOCK_BEHIND says first"


@pytest.mark.parametrize("ahead", [50, 70000])
def test_what_lies_further_ahead_than_the_clock_is_behind_stays(ahead: int, tmp_path: Path) -> None:
    files = logs({3: -40001})
    far = csn(1400 + 40000 + ahead, 9)
    for server in (1, 2, 3):
        spans = {**claims(r1=(1000, 1200), r2=(1100, 1300)), 3: None, 9: (csn(1400, 9), far)}
        files[f"s{server}.replica.ldif"] = replica(server, elements(spans))
    files["s3.access.log"] += answered(1401, "uid=u", far, replicated=True)
    read = read_at(files, RIGHT)
    for name, some, known in (("unknown", files, False), ("read", read, True)):
        rows = [one for one in of("CLOCK_AHEAD", findings(tmp_path / name, some)) if one["origin"] == "9"]
        void = known and ahead < 60000
        assert {one["overruled_by"] for one in rows} == {"CLOCK_BEHIND" if void else None}, "in doubt both are told"


def test_clocks_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    looked = slow_clocks._leads

    def leads(context: Any, server: str, maker: Any) -> Any:
        asked.append(server)
        return looked(context, server, maker)

    monkeypatch.setattr(slow_clocks, "_leads", leads)
    findings(tmp_path, logs({3: -601}))
    assert sorted(asked) == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("about", "files"),
    [
        ("all agree", logs({})),
        ("less than a minute", logs({3: -50})),
        ("changes come late", logs({}, delay=5000)),
        ("late by more than the clock is off", logs({3: -600}, delay=700)),
        ("it is ahead", logs({3: 600})),
        ("the two others disagree", logs({2: 600, 3: -600})),
        ("one of the others logged nothing: nobody knows whether they agree", logs({3: -600}, silent=(2,))),
        ("both makers logged nothing", logs({3: -600}, silent=(1, 2))),
    ],
)
def test_no_clock_is_called_behind_where(about: str, files: dict[str, Any], tmp_path: Path) -> None:
    assert not of("CLOCK_BEHIND", findings(tmp_path, files)), about


def test_a_link_that_refuses_the_slow_clock_follows_from_it(tmp_path: Path) -> None:
    files = logs({3: -90001})
    told = (
        "Replication error acquiring replica: fatal error - too much time skew between replicas (excessive clock skew)"
    )
    entry = with_status(agreement("s1-to-s3", 38903), status(2, told, "red", 5, 6))
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + entry
    found = findings(tmp_path / "read", read_at(files, RIGHT))
    (one,) = of("LINK_FAILING", found)
    assert one["follows_from"] == "CLOCK_BEHIND"
    assert {row["overruled_by"] for row in of("CLOCK_AHEAD", found)} <= {"CLOCK_BEHIND"}
    # Where nothing tells whose clock is wrong, the link says so: set the clocks right on every server.
    found = findings(tmp_path / "unknown", files)
    assert "the clocks of s1 and s3 are too far apart" in {row["root"] for row in of("CLOCK_AHEAD", found)}


def test_a_log_that_goes_back_tells_the_time_by_its_last_line(tmp_path: Path) -> None:
    """The clock of s1 was two days ahead, and is right now."""
    files = {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 5)))),
        "s1.errors.log": plain_line(DAYS, "slapd started.") + plain_line(60, "slapd started."),
        "s2.replica.ldif": replica(2, elements(claims(r1=(1, 5)))),
        "s2.errors.log": plain_line(60, "slapd started.") + plain_line(DAYS, "slapd started."),
    }
    case = case_of(tmp_path, read_at(files, {"s1": 70.0, "s2": 70.0}))
    began = readings_began(case, topology(case))
    assert began["s1"] == BEGAN + timedelta(seconds=70)
    assert began["s2"] > BEGAN + timedelta(days=1)


def test_what_a_clock_ahead_made_and_lost_is_made_again_where_its_entry_is_there(tmp_path: Path) -> None:
    """Seen on 2.3.1 and 3.1.2: the steps of CLOCK_AHEAD were followed, all was equal, and it was still "has not arrived"."""
    far, name = csn(DAYS, 1), "uid=v,ou=people"
    ruv = elements(claims(r1=(1, 40), r2=(1, 60)))
    begun = f"nsds5replicaLastInitStart: {zulu(30)}\nnsds5replicaLastInitEnd: {zulu(31)}\n"
    for there in (True, False):
        shown = export(ruv, [entry("uid=v,ou=people", 17).replace(csn(1, 1), csn(60, 2))] if there else [])
        files = {
            "s1.replica.ldif": replica(1, ruv),
            "s1.changelog.ldif": changelog([csn(40, 1)], marks=[csn(9, 1), csn(1, 2)]),
            "s1.access.log": answered(DAYS, name, far, operation="ADD") + answered(40, "uid=u", csn(40, 1)),
            "s1.errors.log": plain_line(DAYS, "slapd started.") + plain_line(65, "slapd started."),
            "s1.agreements.ldif": agreement("s1-to-s2", 38902),
            "s2.replica.ldif": replica(2, ruv),
            "s2.changelog.ldif": changelog([csn(1, 1), csn(40, 1), csn(1, 2), csn(60, 2)], own_entries=True),
            "s2.access.log": answered(60, name, csn(60, 2), operation="ADD"),
            "s2.agreements.ldif": agreement("s2-to-s1", 38901).rstrip("\n") + f"\n{begun}\n",
            **{f"{server}.entries.ldif": shown for server in ("s1", "s2")},
        }
        found = diagnose(case_of(tmp_path / str(there), read_at(files, {"s1": 70.0, "s2": 71.0})))
        lost = [row for row in (*found["missing"], *found["pending"]) if row["origin"] == "1"]
        again = {row["server"] for row in found["unknown"] if row["why"] == "made_again"}
        assert (bool(lost), bool(again)) == (not there, there)


@pytest.mark.parametrize(("mark", "replaced"), [(40, True), (36_000, False)])
def test_a_mark_of_a_time_to_come_tells_no_time_at_which_a_log_was_made_anew(
    mark: int, replaced: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: a clock was 10 hours ahead, and a filled hub was said to have been replaced the next morning."""
    files: dict[str, Any] = {}
    for name, rid in (("s1", 1), ("s2", 2)):
        files[f"{name}.replica.ldif"] = replica(rid, elements(claims(r1=(1, mark), r2=(1, 2))))
    files["s1.changelog.ldif"] = changelog([csn(mark, 1)])
    files["s2.changelog.ldif"] = changelog([], marks=[csn(mark, 1)])
    found, *_ = context_of(case_of(tmp_path, read_at(files, {"s1": 60, "s2": 60})))
    kinds = {reset.kind for reset in found.verdicts.resets["s2", "dc=example,dc=com"]}
    assert (REPLACED in kinds) is replaced


STARTED = "slapd_daemon - slapd started.  Listening on All Interfaces port 389"


def test_a_server_that_was_started_with_a_wrong_clock_moments_before_it_was_read_is_still_ahead(tmp_path: Path) -> None:
    """Seen on 2.3.1: its log had lines of the right time of before that start, and it was said to be right again."""
    files = with_a_clock(3 * 86400, 58)
    files["s1.errors.log"] += plain_line(3 * 86400 + 60, STARTED)
    (found,) = of("CLOCK_AHEAD", findings(tmp_path, files))
    assert found["summary"].startswith("the clock of s1 is 3.0 days ahead of the moment at which it was read")
    files["s1.errors.log"] += plain_line(60, STARTED)
    (found,) = of("CLOCK_AHEAD", findings(tmp_path / "right", files))
    assert "is no longer" in found["summary"] or "when it was set right" in found["summary"]
