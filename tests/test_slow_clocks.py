"""A clock that is behind: access logs show changes before they were made, and two other clocks agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, of, status, with_status
from entry_samples import answered
from mesh_samples import agreement, changelog, claims, csn, elements, replica

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


@pytest.mark.parametrize(
    ("off", "severity", "much"),
    [(-120, "info", "119 s"), (-601, "warning", "10 min"), (-90001, "error", "25 h")],
)
def test_a_server_that_gets_changes_before_two_others_made_them(
    off: int, severity: str, much: str, tmp_path: Path
) -> None:
    found = findings(tmp_path, logs({3: off}))
    (one,) = of("CLOCK_BEHIND", found)
    assert (one["server"], one["severity"]) == ("s3", severity)
    assert f"the clock of s3 was at least {much} behind" in one["summary"] and "taken to be right" in one["summary"]
    assert [row["made_by"] for row in one["evidence"]] == ["s1", "s2"]
    assert one["root"] == (f"the clock of s3 is {much} behind" if severity == "error" else "")
    assert not of("CLOCK_AHEAD", found)


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
    found = findings(tmp_path, files)
    (one,) = of("LINK_FAILING", found)
    assert one["follows_from"] == "CLOCK_BEHIND" and not of("CLOCK_AHEAD", found)
