"""Entries of which a server has lost the name or a value that others show, and what may be written where."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of
from entry_samples import entry, export
from mesh_samples import SUFFIX, agreement, changelog, claims, csn, elements, replica

from workbench.rules.contents import LIVE, Held, compared

Files = dict[str, str | bytes]


def mesh(entries: dict[str, list[str]]) -> Files:
    """Three suppliers with the same vectors and these entries; s1 feeds the others."""
    ruv = elements(claims(r1=(0, 9), r2=(1, 2), r3=(1, 2)))
    files: Files = {}
    for number, (name, shown) in enumerate(entries.items(), 1):
        files[f"{name}.replica.ldif"] = replica(number, ruv)
        files[f"{name}.changelog.ldif"] = changelog([csn(8, 1), csn(9, 1)])
        files[f"{name}.entries.ldif"] = export(ruv, shown)
    return files | {"s1.agreements.ldif": agreement("to-s2", 38902) + agreement("to-s3", 38903)}


def test_a_name_that_is_another_entry_elsewhere_is_told_with_both_names(tmp_path: Path) -> None:
    """On s2 the second entry is called what the first is on the others: who writes to that name there writes to the first."""
    others = [entry("uid=free", 1), entry("uid=second", 2)]
    moved = [entry("uid=lost", 1), entry("uid=free", 2)]
    found = of("ENTRIES_DIFFER", findings(tmp_path, mesh({"s1": others, "s2": moved, "s3": others})))
    (one,) = (one for one in found if one["server"] == "s2")
    assert f"uid=second,{SUFFIX}, which is uid=free,{SUFFIX} on s2" in one["summary"]
    repair = one["fix"][0]["repair"]
    assert repair.startswith("initialise s2 from s1") and "rename" not in repair and "write" not in repair


def value(position: str, text: str, made: bool = True) -> str:
    """A value of an attribute that a change replaced; not `made`: a client wrote over it past replication."""
    mark = f"adcsn-{position}" + (f";vucsn-{position}" if made else "")
    return f"description;{mark}: {text}"


@pytest.mark.parametrize("came", [8, 0])
def test_a_value_that_was_written_over_past_replication_is_no_change_that_was_missed(came: int, tmp_path: Path) -> None:
    """The mark of the change, or a later one, tells that it came to s2: what stands there now came behind it."""
    anna = entry("uid=anna", 1, value(csn(8, 1), "right"))
    lines = [value(csn(came, 1), "past", made=False)] if came else ["description: past"]
    found = findings(tmp_path, mesh({"s1": [anna], "s2": [entry("uid=anna", 1, *lines)], "s3": [anna]}))
    assert [one["server"] for one in of("ENTRIES_DIFFER", found)] == ["s2"]
    assert [one["server"] for one in of("MISSED_CHANGE", found)] == ["s2"] * (not came)


def test_a_later_removal_that_the_others_wait_for_tells_the_same() -> None:
    """s2 removed all values by 12, which has not come to the others yet, and a client wrote there past replication."""
    right = Held(LIVE, "uid=anna", present={"mail": {"right": "10"}}, cleared={"mail": "10"})
    past = Held(LIVE, "uid=anna", present={"mail": {"past": None}}, cleared={"mail": "12"})
    held = {"s1": right, "s2": past, "s3": right}

    def expected(server: str, position: str) -> bool:
        return position <= "10" or server == "s2"

    assert not compared(held, expected, lambda *_: False, {}, names=False).lacks
