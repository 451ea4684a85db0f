"""What the files of one server say of each other, on the real mesh in ../shared where it lies beside the checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from collected import SHARED, needs_collected_files

from workbench.intake.files import inspect_file, pieces, plain_name, recognise
from workbench.model import Reject, Source

ROOT = Path(__file__).parent.parent
BASE = SHARED / "base"
INCIDENT = Path(__file__).parent / "incidents" / "missed_behind_equal_vectors"

pytestmark = needs_collected_files

REFUSED_AT_ITS_ORIGIN = {16, 20}
"""noSuchAttribute, attributeOrValueExists: the operation took a CSN and failed, so it was never a change."""

KEEP_ALIVE_OF_1 = "6b005930000200010000"
"""Made before s1 initialised s2 and s3: it came to them with the data, and again by replication into an empty changelog."""


@cache
def rows(path: Path) -> dict[str, list[dict]]:
    kind, _, _ = recognise(path)
    assert kind is not None
    reader, found = kind.reader(), {}
    for piece in pieces(path, Source(path.name, "base", path.name.split(".")[0]), kind.unit):
        assert not isinstance(piece, Reject)
        for name, table in reader(piece).tables.items():
            found.setdefault(name, []).extend(table.to_pylist())
    return found


@pytest.mark.parametrize("server", ["s1", "s2", "s3"])
def test_the_changelog_holds_what_the_access_log_shows_and_the_reverse(server: str) -> None:
    own = server[1]
    changes = {
        row["position"]: row for row in rows(BASE / f"{server}.changelog.ldif.gz")["changes"] if row["kind"] == "change"
    }
    results = {row["position"]: row for row in rows(BASE / f"{server}.access.log.gz")["applied"] if row["position"]}
    # In the log and not in the changelog: refused where they were made, or older than the changelog.
    for position in results.keys() - changes.keys():
        row = results[position]
        refused = row["code"] in REFUSED_AT_ITS_ORIGIN and row["origin"] == own and row["outcome"] == "refused"
        assert refused or (position == KEEP_ALIVE_OF_1 and server != "s1"), row
    # In the changelog and not in the log: own changes only. Internal operations (memberOf, keep-alive) log no result at
    # their origin; every change that came by replication has one.
    assert {changes[position]["origin"] for position in changes.keys() - results.keys()} == {own}
    assert len(changes.keys() & results.keys()) > 5000
    assert all(results[position]["outcome"] == "applied" for position in changes.keys() & results.keys())


def test_three_forms_of_one_changelog_say_the_same() -> None:
    exports = [
        rows(BASE / f"s1.changelog.{form}.gz")["changes"] for form in ("ldif", "decoded.ldif", "dbscan-stopped.txt")
    ]
    whole = ("position", "operation", "target", "entry", "rename", "body")
    plain, decoded, dbscan = ([tuple(row[key] for key in whole) for row in export] for export in exports)
    assert plain == decoded
    # dbscan loses what is done with the values, so of the rest only.
    assert [row[:4] for row in plain] == [row[:4] for row in dbscan]
    details = [
        inspect_file(BASE / f"s1.changelog.{form}.gz")["detail"]
        for form in ("ldif", "decoded.ldif", "dbscan-stopped.txt")
    ]
    for detail in details[1:]:
        assert {k: v for k, v in detail.items() if k != "helpers"} == {
            k: v for k, v in details[0].items() if k != "helpers"
        }
    assert [detail["helpers"] for detail in details] == [0, 0, 3]


def expected_format(name: str) -> str:
    """The table of FORMATS.md."""
    endings = {
        ".changelog.ldif": "changelog-ldif", ".changelog.decoded.ldif": "changelog-decoded",
        "BROKEN-2.3.1.txt": "changelog-decoded", ".changelog.dbscan-stopped.txt": "dbscan", ".get-ruv.txt": "ruv",
        ".replica.ldif": "replica", ".ruv-tombstone.ldif": "replica", ".agreements.ldif": "agreements",
        ".access.log": "access-log", ".errors.log": "errors-log", ".excerpt.log": "errors-log", ".audit.log": "audit-log",
        ".status.json": "status",
    }  # fmt: skip
    for ending, kind in endings.items():
        if name.endswith(ending):
            return f"ds389.{kind}"
    parts = {"db2ldif-r": "entries", "export-replication": "entries", "replication-monitor": "monitor",
             "ds-replcheck": "replcheck", "lag-report": "lag-report"}  # fmt: skip
    return next((f"ds389.{kind}" for part, kind in parts.items() if part in name), "text")


def test_every_file_is_what_formats_md_says() -> None:
    count = 0
    for path in sorted(SHARED.rglob("*")):
        if path.is_file():
            seen = inspect_file(path)
            assert seen["format"] == expected_format(plain_name(path)), path
            assert seen["rows"] == seen["accepted"] + seen["rejected"], path
            assert seen["rejected"] == (path.name == "lag-report.head.json.txt"), path
            count += 1
    assert count > 700
