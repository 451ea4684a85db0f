"""What logs of Kanidm tell where they are all that there is, and beside the vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kanidm_samples import DAY, START, backup, origin
from test_kanidm_diagnosis import BASE, RUV, of, pair

TASK = "7f0c2c57-0000-4000-8000-000000000001"

LAGS = "Replication - Consumer is lagging and must be refreshed."
OUTDATED = (
    "Unable to proceed with consumer incremental - the supplier has indicated that our RUV is outdated, and replication "
    "would introduce data corruption."
)
AHEAD = OUTDATED.replace("outdated", "ahead")
SPLIT = "The incoming data contains changes matching this server's UUID, and those changes are newer than the local version."
PULLED = "Incremental Replication Success"
REFRESHED = "Replication refresh was successful."
NOT_APPLIED = "Consumer was not able to apply refresh. | err: ReplDomainUuidMismatch"
UNREACHED = "Unable to connect to supplier, tried to connect to [10.0.0.9:8444]"


def line(text: str, level: str = "ERROR", second: int = 0) -> str:
    return f"2026-01-05T00:00:{second:02}Z {TASK} {level:<8} ┝━ 🚨 [{level.lower()}]: {text}"


def collected(folder: Path, lines: list[str], **backups: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "A.log").write_text("\n".join(line(text, second=at) for at, text in enumerate(lines)) + "\n")
    for name, one in backups.items():
        (folder / f"{name}.json").write_text(json.dumps(one))
    return folder


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([LAGS], ("REFRESH_REQUIRED", None)),
        ([OUTDATED], ("REFRESH_REQUIRED", "A")),
        ([OUTDATED, NOT_APPLIED], ("REFRESH_REQUIRED", "A")),
        ([SPLIT], ("ROLLED_BACK", "A")),
        (["Replication - Supplier is lagging and must be investigated."], ("SUPPLIER_BEHIND", "A")),
        (["Replication Critical - Consumers are advanced of us, and also lagging!"], ("DIVERGED", "A")),
        (["Replication Critical - Consumers RUV has desynchronised and diverged!"], ("NO_OVERLAP", "A")),
        (["Replication - Consumer Domain UUID does not match our local domain uuid."], ("UNRELATED_DATA", "A")),
        ([AHEAD, PULLED], ("STALLED_BUT_GREEN", "A")),
        ([PULLED, UNREACHED], ("LINK_DISABLED", "A")),
    ],
)
def test_what_a_log_alone_tells(lines: list[str], wanted: tuple[str, str | None], tmp_path: Path) -> None:
    found = of(collected(tmp_path / "in", lines), case=tmp_path / "case")
    assert {(one["code"], one["server"]) for one in found["findings"]} == {wanted}
    for one in found["findings"]:
        assert one["evidence"][0]["file"] == "A.log" and one["evidence"][0]["text"] in "\n".join(lines)


@pytest.mark.parametrize("lines", [[OUTDATED, REFRESHED], [SPLIT, REFRESHED], [UNREACHED, PULLED], [AHEAD], [PULLED]])
def test_what_is_over_is_no_finding(lines: list[str], tmp_path: Path) -> None:
    assert of(collected(tmp_path / "in", lines), case=tmp_path / "case")["findings"] == []


def test_the_lines_of_a_success_that_was_none_stand_beside_the_vectors(tmp_path: Path) -> None:
    now = 20 * DAY
    kept = [(now - 7 * DAY + 60, "a"), (now, "a"), (now - 7 * DAY + 60, "b"), (now, "b")]
    stale = backup("b", 100, [(0, "a"), (0, "b"), (90, "b")], BASE)
    folder = collected(tmp_path / "in", [LAGS, AHEAD, PULLED], A=backup("a", now, kept, BASE), B=stale)
    found = of(folder, case=tmp_path / "case")
    (one,) = (one for one in found["findings"] if one["code"] == "STALLED_BUT_GREEN")
    assert one["server"] == "A"
    assert [row["text"] for row in one["evidence"] if "text" in row] == [AHEAD, PULLED]
    # Of a server whose vector is known that tells how it is now.
    assert {one["server"] for one in found["findings"] if one["code"] == "REFRESH_REQUIRED"} == {"B"}


def test_a_clock_ahead_is_told_with_its_origin(tmp_path: Path) -> None:
    told = f"Incoming changes from {origin('d')} are further than 600 seconds in the future."
    (one,) = of(collected(tmp_path / "in", [told]), case=tmp_path / "case")["findings"]
    assert (one["code"], one["origin"], one["server"]) == ("CLOCK_AHEAD", origin("d"), None)


def ranges(last: int) -> str:
    ends = f"{START * 10**9:032d} -> {(START + last) * 10**9:032d}"
    return f" | supplier_ranges: {{{', '.join(f'{origin(name)}: {ends}' for name in 'abc')}}}"


def test_ranges_of_a_log_are_the_vector_of_its_server_where_no_backup_tells_it(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", [ranges(50), ranges(80)], B=backup("b", 200, RUV, BASE))
    found = of(folder, case=tmp_path / "case")
    assert {span["max"][:32] for span in found["servers"][0]["vector"].values()} == {f"{(START + 80) * 10**9:032d}"}
    assert pair(found, "B", "A")["message"] == "V1"
    assert {(row["server"], row["why"]) for row in found["unknown"]} == {("A", "no_entries")}
    assert found["missing"] == []


def test_a_backup_tells_the_vector_better_than_a_log(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", [ranges(500)], A=backup("a", 200, RUV, BASE), B=backup("b", 200, RUV, BASE))
    found = of(folder, case=tmp_path / "case")
    assert found["findings"] == found["unknown"] == []
    assert pair(found, "A", "B")["message"] == "NoChangesAvailable"
