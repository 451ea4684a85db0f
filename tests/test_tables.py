"""Tables of files and rejects: text of logs stays text, positions in one width, numbers on the right."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from widgets import Table
from workbench.case.loading import recognised
from workbench.model import Problem

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "\x1b[31m", "\u202egnp", "a\nb"]


def test_what_a_terminal_or_a_page_would_obey_is_escaped() -> None:
    table = Table([{"name": text, "n": 1} for text in HOSTILE])
    cells = [row[0] for row in json.loads(table.get_state()["_dt_args"]["data_json"])]
    # Markup is escaped where the page is made, or here: in neither case may it come to life.
    assert [html.unescape(one) for one in cells[:2]] == HOSTILE[:2]
    assert cells[2:] == ["\\x1b[31m", "\\u202egnp", "a\\nb"]
    assert not {"\x1b", "\u202e"} & set(table.text()) and len(table.text().splitlines()) == 6
    head = table.get_state()["_dt_args"]["table_html"]
    assert "<script" not in head and "<img" not in head
    assert table.get_state()["_dt_args"].get("allow_html") in (None, False)


def test_numbers_stand_on_the_right_and_positions_in_one_width() -> None:
    table = Table([{"file": "a", "rows": 12, "position": "6b00618f000a00010000", "true": True}])
    looks = {one["targets"][0]: one["className"] for one in table.get_state()["_dt_args"]["columnDefs"]}
    assert "dt-right" in looks[1] and "wb-position" in looks[2] and "dt-right" not in looks[3]
    assert ".wb-position" in table.get_state()["_css"]
    assert table.text().splitlines() == [
        "file  rows  position              true",
        "a       12  6b00618f000a00010000  True",
    ]


def test_no_rows_are_no_error() -> None:
    assert Table([]).text() == "(no rows)"
    assert Table([], ["file", "reason"]).text() == "file  reason"
    assert Table([{"a": 1}], ["a", "b"]).text().splitlines()[1].strip() == "1"


def test_what_is_in_collected_folders_is_told_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "s1.ldif").write_text("clpurgeruv: {replicageneration} 6b00592d000000010000\n\nchangetype: modify\n")
    (tmp_path / "s1.png").write_bytes(b"\x89PNG\0\0")
    rows = {row["file"]: row for row in recognised([tmp_path])}
    assert rows["s1.ldif"]["format"] == "ds389.changelog-ldif" and rows["s1.ldif"]["why"] == ""
    assert "binary" in rows["s1.png"]["why"] and rows["s1.png"]["bytes"] == 6
    assert rows["below"]["why"] and rows["below"]["bytes"] is None
    with pytest.raises(Problem, match="does not exist"):
        recognised([tmp_path / "gone"])
