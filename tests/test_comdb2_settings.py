"""The settings of physical replication: defaults as the document and both programs have them, delays, and who waits for whom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_comdb2_diagnosis import diagnosed
from tier_files import Made, written

from workbench.replication.tier.rules.tiers import Pull
from workbench.systems.comdb2.rules import V2023, V2026, VERSIONS
from workbench.systems.comdb2.rules.tunables import TUNABLES, Machine, applied_at, applies, awaits, default, dials

SAMPLES = Path(__file__).parent / "samples"


def test_the_document_names_these_defaults() -> None:
    text = (SAMPLES / "comdb2" / "defaults-document.txt").read_text("utf-8")
    told = dict(re.findall(r"^\* (\w+) ?:(.*)$", text, re.MULTILINE))
    assert len(told) == 23
    for name, says in told.items():
        found = re.search(r"\(Default: `?(\w+?)(?:secs)?`?\)", says)
        value = "off" if found and found[1] == "false" else found[1] if found else ""
        assert default(name, "seed") == value, name


@pytest.mark.parametrize("version", ["2023", "2026"])
def test_the_program_has_these_tunables_with_these_defaults(version: str) -> None:
    """A few were set where the list was taken; of these the description tells the default."""
    rows = [
        line.split("\t") for line in (SAMPLES / "comdb2" / f"defaults-{version}.tsv").read_text("utf-8").splitlines()
    ]
    for name, says, _, value, _ in rows:
        written = {"NULL": "", "ON": "on", "OFF": "off"}.get(value, value)
        told = re.search(r"\(Default: (\w+)\)", says)
        assert default(name, version) in (written, told and told[1].lower()), name
    listed = {row[0] for row in rows}
    mine = {name for name, one in TUNABLES.items() if not one.line and default(name, version) is not None}
    assert listed <= mine
    assert {name for name in mine - listed if not name.startswith("revsql_")} == set()


def test_the_rules_have_the_same_defaults() -> None:
    for version, rules in VERSIONS.items():
        assert default("physrep_fanout", version) == str(rules.fanout)
        assert default("physrep_max_candidates", version) == str(rules.most_offered)
        assert default("physrep_keepalive_freq_sec", version) == str(rules.keepalive_s)
        most = default("physrep_max_pending_replicants", version)
        assert most == (None if rules.most_pending is None else str(rules.most_pending))
        again = default("physrep_register_interval", version) or default("physrep_reconnect_interval", version)
        assert again == str(rules.register_s)
    assert V2023.register_s != V2026.register_s


@given(st.lists(st.integers(0, 100)))
def test_of_all_waits_on_the_way_the_longest_counts(waits: list[int]) -> None:
    at = 1000.0
    for wait in waits:  # tier by tier: each applies when it has the record, and when that is old enough
        at = max(at, 1000.0 + wait)
    assert applied_at(1000.0, waits) == at


def test_an_ignored_table_is_left_as_it_is() -> None:
    assert not applies("audit", ["audit", "log"])
    assert applies("Audit", ["audit"])
    assert applies("orders", [])


def test_a_row_may_name_a_host_a_tier_or_a_cluster_in_newer_versions_only() -> None:
    rows = (Pull("r", "dev", "s", "prod"), Pull("r", "r1", "s", "s1"), Pull("x", "r1", "s", "s1"))
    replicant, source = Machine("r", "r1", "dev", "r-cluster"), Machine("s", "s1", "prod")
    assert awaits(rows, replicant) == rows[:2]
    assert awaits(rows, replicant, "2023") == rows[1:2]
    assert dials(rows, source) == rows
    assert dials(rows, source, "2023") == rows[1:]
    assert awaits((Pull("r", "", "s", "s1"),), Machine("r", "r1")) == ()


def test_a_fanout_that_was_not_collected_is_said_to_be_the_default(tmp_path: Path) -> None:
    nodes = [Made("S@s1"), Made("A@a1", at=(9, 900), source="S@s1", age=900, answers=False)]
    for label in ("told", "untold"):
        folder = written(tmp_path / label / "in", nodes)
        if label == "untold":
            (folder / "nodes" / "tunables.tsv").unlink()
        (hung,) = (x for x in diagnosed(tmp_path / label, folder)["findings"] if x["code"] == "REPLICANT_HUNG")
        text, assumed = ("(fanout 2)", []) if label == "told" else ("(fanout 8, the default, as", ["default_setting"])
        assert text in hung["summary"] and hung["assumes"] == assumed
