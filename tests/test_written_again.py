"""Entries that differ although no change is missing: what a plan writes once more, and what it leaves and says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from entry_samples import entry, logged, mesh
from mesh_samples import SUFFIX, case_of, csn

from workbench.cli import main, repair
from workbench.repair.case_plan import keep
from workbench.repair.plan_types import Plan
from workbench.repair.planner import plan

MADE = csn(1, 1)
MAIL = f"mail;adcsn-{MADE};vucsn-{MADE}: anna@example.com"
SAYS = "write the values of these entries once more on s1, or initialise s3 from s1"


def three(entries: dict[str, list[str]], log: str = "") -> dict[str, str | bytes]:
    """Files of servers that have all changes and send them to each other."""
    log += "".join(logged(csn(9, rid), 99, "uid=other", "replace: sn\nsn: x\n-\n") for rid in (1, 2, 3))
    return mesh({"r1": (1, 9), "r2": (2, 9), "r3": (3, 9)}, entries, dict.fromkeys(entries, log))


def planned(tmp_path: Path, *there: str, all_have: str = MAIL, both: bool = True) -> Plan:
    """s1 and s2 have the mail of anna, with the change that added her; s3 has `there` in its place.

    both  False: the entries of s2 were not collected
    """
    entries = {name: [entry("uid=anna", 17, all_have)] for name in ("s1", "s2")} | {
        "s3": [entry("uid=anna", 17, *there)]
    }
    files = three(entries)
    if not both:
        del files["s2.entries.ldif"]
    return plan(case_of(tmp_path, files))


def test_a_value_that_an_added_entry_lacks_is_written_once_more(tmp_path: Path) -> None:
    """A link left the mail out when anna was added: no log and no mark of s3 tells of it."""
    made = planned(tmp_path)
    (step,) = made.steps
    assert (step.repair, step.on, step.details["level"]) == ("rewrite", "s1", ["s1", "s3"])
    assert step.sends.endswith("changetype: modify\nreplace: mail\nmail: anna@example.com\n-\n")
    assert "comes back" in step.risk
    assert (made.unmended, made.left, made.open) == (0, (), ())


def test_what_would_throw_a_value_away_is_left_and_said(tmp_path: Path) -> None:
    made = planned(tmp_path, "mail: other@example.com")
    assert (made.steps, made.open) == ((), ())
    assert made.left == (f"ENTRIES_DIFFER s3: no step of this plan mends it; what to do: {SAYS}",)


def test_where_a_server_may_have_other_values_nothing_is_written(tmp_path: Path) -> None:
    assert planned(tmp_path / "all").steps
    assert not planned(tmp_path / "some", both=False).steps


def test_what_a_plan_mends_in_part_is_said_with_what_is_left(tmp_path: Path) -> None:
    entries = {
        name: [entry("uid=anna", 17, *mine), entry("uid=bert", 18, f"mail: {mail}@example.com")]
        for name, mine, mail in (("s1", [MAIL], "b"), ("s2", [MAIL], "b"), ("s3", [], "x"))
    }
    made = plan(case_of(tmp_path, three(entries)))
    assert [step.repair for step in made.steps] == ["rewrite"]
    assert made.left == (
        f"ENTRIES_DIFFER s3: 1 of these entries still differs when all steps are done; what to do: {SAYS}",
    )


def test_a_change_that_is_written_again_mends_no_other_entry(tmp_path: Path) -> None:
    """s3 lost a modification of bert, which its entry proves, and has another value in anna."""
    by = csn(5, 1)
    new = f"mail;adcsn-{by};vucsn-{by}: new@example.com"
    entries = {
        name: [entry("uid=anna", 17, f"sn: {sn}"), entry("uid=bert", 18, mail)]
        for name, sn, mail in (("s1", "a", new), ("s2", "a", new), ("s3", "x", f"mail;vucsn-{MADE}: old@example.com"))
    }
    log = logged(by, 18, "uid=bert", "replace: mail\nmail: new@example.com\n-\n")
    made = plan(case_of(tmp_path, three(entries, log)))
    assert len(made.steps) == 1 and "bert" in made.steps[0].says
    assert [one.partition(":")[0] for one in made.left] == ["ENTRIES_DIFFER s3"]


def test_verify_says_again_what_the_plan_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was promised is kept, and entries differ all the same."""
    made = planned(tmp_path, "mail: other@example.com")
    keep(made, tmp_path / "case")
    rows = [{"server": "s1", "suffix": SUFFIX, "says": "has what others have", "kept": True}]
    site = SimpleNamespace(kept=lambda: rows)
    monkeypatch.setattr(repair, "reach_of", lambda options: SimpleNamespace(site=lambda *about: site))
    ran = CliRunner().invoke(main, ["verify", str(tmp_path / "case")])
    assert ran.exit_code == 0, ran.output
    assert (
        f"Not mended by this plan, and not looked at here:\n  ENTRIES_DIFFER s3: {made.left[0].partition(': ')[2]}"
        in ran.output
    )
