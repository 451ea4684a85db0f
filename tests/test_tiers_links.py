"""Rows that say who pulls from whom, and who waits for a connection: what is told of them, and what nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_comdb2_diagnosis import AHEAD, codes, diagnosed, node
from tier_files import Made, written


@pytest.mark.parametrize(
    ("row", "says", "server"),
    [
        ("ro@r1 shopdb@s1", "", None),
        ("ro@r2 shopdb@s1", "ro@r2 waits for a connection", "ro@r2"),
        ("ro@east shopdb@west", "ro@r2 waits, where east names its tier or cluster", "ro@r2"),
        ("ro@r3 shopdb@s1", "does not wait for it: it pulls from ro@r1", "ro@r3"),
        ("ro@r3 ro@r1", "", None),
        ("shopdb@s1 ro@r1", "a node of the source itself waits for nobody", "shopdb@s1"),
    ],
)
def test_rows_for_connections_in_reverse(row: str, says: str, server: str | None, tmp_path: Path) -> None:
    """One node of a tier that is connected says nothing of the others; one that was taken out waits for nobody."""
    made = [AHEAD, Made("ro@r1", source=AHEAD.name), Made("ro@r2", state="Pending", at=(9, 500))]
    made += [Made("ro@r3", source="ro@r1"), Made("ro@r4", state="Inactive", age=9e5, answers=None)]
    found = diagnosed(tmp_path, written(tmp_path / "made", made, [row]))
    told = [one for one in found["findings"] if one["code"] == "REVERSE_LINK_MISSING"]
    assert [one["server"] for one in told] == ([server] if says else [])
    assert not says or says in told[0]["summary"]


def test_an_older_version_knows_no_names_of_tiers(tmp_path: Path) -> None:
    made = [AHEAD, Made("ro@r1", source=AHEAD.name)]
    folder = written(tmp_path / "made", made, ["ro@east shopdb@s1"], physrep_register_interval="600")
    table = folder / "nodes" / "tunables.tsv"
    kept = [line for line in table.read_text().splitlines() if "physrep_reconnect_interval" not in line]
    table.write_text("\n".join(kept) + "\n")
    told = [one for one in diagnosed(tmp_path, folder)["findings"] if one["code"] == "REVERSE_LINK_MISSING"]
    assert [one["server"] for one in told] == ["ro@r1"] and "nobody waits" in told[0]["summary"]


def test_without_the_table_of_connections_nobody_is_said_to_wait(tmp_path: Path) -> None:
    folder = written(tmp_path / "made", [AHEAD, Made("ro@r1", source=AHEAD.name)], ["ro@r1 shopdb@s1"])
    (folder / "meta" / "comdb2_physrep_connections.tsv").unlink()
    assert "REVERSE_LINK_MISSING" not in {code for code, _ in codes(diagnosed(tmp_path, folder))}


def test_a_row_that_was_not_read_may_be_that_of_a_node_without_one(tmp_path: Path) -> None:
    made = [AHEAD, Made("ro@r1", source=AHEAD.name), Made("ro@r2", source=AHEAD.name)]
    folder = written(tmp_path / "made", made, ["ro@r2 shopdb@s1"])
    table = folder / "meta" / "comdb2_physrep_connections.tsv"
    table.write_text(table.read_text()[:-4])
    found = diagnosed(tmp_path, folder)
    assert {code for code, _ in codes(found)} == {"PENDING_CHANGES", "UNREADABLE_INPUT"}


def test_a_node_that_pulls_from_itself_is_told_so(tmp_path: Path) -> None:
    made = [AHEAD, Made("ro@r1", source="ro@r1"), Made("ro@r2", source=AHEAD.name)]
    found = diagnosed(tmp_path, written(tmp_path / "made", made))
    assert node(found, "ro@r1")["says"].startswith("it pulls from itself")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"physrep_fanout": "1"}, "the registry's first look never finds"),
        ({"physrep_fanout": "1", "physrep_register_interval": "600"}, "whoever registers is offered nobody"),
        ({}, None),
    ],
)
def test_what_a_fanout_of_one_does(more: dict[str, str], says: str | None, tmp_path: Path) -> None:
    folder = written(tmp_path / "made", [AHEAD, Made("ro@r1", source=AHEAD.name)], **more)
    if len(more) > 1:
        table = folder / "nodes" / "tunables.tsv"
        kept = [line for line in table.read_text().splitlines() if "physrep_reconnect_interval" not in line]
        table.write_text("\n".join(kept) + "\n")
    told = [one["summary"] for one in diagnosed(tmp_path, folder)["findings"] if "fanout below" in one["summary"]]
    assert [says in one for one in told if says] == ([True] if says else [])
