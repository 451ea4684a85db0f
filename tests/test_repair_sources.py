"""Where missing changes can come from: no advice to write on a hub, or to initialise a server over a link that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import Finding, findings, listening, of
from entry_samples import logged
from mesh_samples import SUFFIX, agreement, case_of, claims, csn, elements, replica
from test_replication_was_off import off_and_on, switched

from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.repair_sources import best_links_to, can_fill, sources_that_fill, whole_of

LOST, LATER = csn(10, 2), csn(20, 2)
HUB = 65535


def folder(holders: tuple[str, ...], hub_feeds: tuple[int, ...] = (), operation: str = "modify") -> dict[str, Any]:
    """s1, s2 and s3 make changes and send to each other, but for s3 to s1; s4 is a hub. `holders` have the lost change of s2."""
    ruv = elements(claims(r1=(1, 1), r2=(5, 20), r3=(1, 1)))
    kept = [logged(csn(5, 2), 5, "uid=a", "replace: sn\nsn: a\n"), logged(LATER, 6, "uid=b", "replace: sn\nsn: b\n")]
    body = "objectClass: person\nsn: x\n" if operation == "add" else "replace: sn\nsn: x\n"
    lost = logged(LOST, 7, "uid=c", body if operation != "delete" else "", operation)
    files = {f"s{number}.replica.ldif": replica(number if number < 4 else HUB, ruv) for number in (1, 2, 3, 4)}
    for number in (1, 2, 3, 4):
        mine = [kept[0], *([lost] if f"s{number}" in holders else []), kept[1]]
        files[f"s{number}.changelog.ldif"] = "".join(mine)
    leads = {1: (2, 3, 4), 2: (1, 3, 4), 3: (2,), 4: (5, *hub_feeds)}
    for number, consumers in leads.items():
        files[f"s{number}.agreements.ldif"] = "".join(agreement(f"s{number}-to-s{x}", 38900 + x) for x in consumers)
    return files | listening("s4")


def missed(tmp_path: Path, files: dict[str, Any]) -> dict[str, Finding]:
    """Server -> its finding of missed changes."""
    found = of("MISSED_CHANGE", findings(tmp_path, files))
    return {name: one for one in found for name in one.get("servers") or [one["server"]]}


def test_what_a_hub_alone_holds_is_saved_and_written_on_a_supplier(tmp_path: Path) -> None:
    found = findings(tmp_path, folder(("s4",)))
    for one in of("MISSED_CHANGE", found):
        (fix,) = one["fix"]
        assert (
            fix["repair"]
            == "save the present values of the entries concerned from s4 and write them again on s1, s2 or s3"
        )
        assert "no agreement leads from there" in fix["why"]
        assert fix["caution"].startswith("do not initialise s4 before the values are saved")
        assert "unique ID" not in fix["caution"]
    (hidden,) = of("OWN_CHANGES_HIDDEN", found)
    assert hidden["fix"][0]["repair"] == "do what MISSED_CHANGE says of s2"


@pytest.mark.parametrize(
    ("operation", "says"),
    [("add", "initialise s4 from a supplier afterwards"), ("delete", "delete the entries concerned")],
)
def test_an_entry_that_a_hub_alone_has_makes_it_differ_when_it_is_added_again(
    operation: str, says: str, tmp_path: Path
) -> None:
    fix = missed(tmp_path, folder(("s4",), operation=operation))["s1"]["fix"][0]
    assert says in f"{fix['repair']} {fix['caution']}"


def test_a_holder_without_a_link_initialises_no_server(tmp_path: Path) -> None:
    """s3 may be written to, and only s4 has a link to s1 beside it."""
    told = missed(tmp_path / "link", folder(("s3", "s4"), hub_feeds=(1,)))
    assert told["s1"]["fix"][0]["repair"] == (
        "write the present values of the entries concerned once more on s3, or initialise s1 from s4"
    )
    told = missed(tmp_path / "none", folder(("s3", "s4")))
    assert told["s1"]["fix"][0]["repair"] == (
        "write the present values of the entries concerned once more on s3, or initialise s1 from s2 as soon as s2 has it"
    )
    assert told["s2"]["fix"][0]["repair"].endswith("once more on s3, or initialise s2 from there")
    told = missed(tmp_path / "added", folder(("s3", "s4"), operation="add"))
    assert told["s1"]["fix"][0]["repair"] == "initialise s1 from s2 as soon as s2 has it"


def test_a_hub_that_feeds_a_server_initialises_it(tmp_path: Path) -> None:
    told = missed(tmp_path, folder(("s4",), hub_feeds=(1,)))
    assert told["s1"]["fix"][0]["repair"] == "initialise s1 from s4"


def test_a_server_behind_a_hub_is_filled_after_the_hub(tmp_path: Path) -> None:
    """s5 is behind s4, which lacks the change, too, and no holder has a link to s5."""
    files = folder(("s1", "s3"))
    files["s5.replica.ldif"] = files["s4.replica.ldif"]
    files["s5.changelog.ldif"] = files["s4.changelog.ldif"]
    files["s5.agreements.ldif"] = ""
    told = missed(tmp_path, files | listening("s5"))
    assert told["s5"]["fix"][0]["repair"] == (
        "write the present values of the entries concerned once more on s1, or initialise s5 from s4 as soon as s4 has it"
    )
    assert told["s4"]["fix"][0]["repair"].endswith("once more on s1, or initialise s4 from there")


@pytest.mark.parametrize("written", [2, 0])
def test_a_server_that_took_changes_unrecorded_is_no_source(written: int, tmp_path: Path) -> None:
    """Replication was off on s3; the access log shows whether clients wrote there meanwhile. s3 has links to s1 and s2."""
    context, _ = context_of(case_of(tmp_path, off_and_on(switched(written=written))))
    may = not written
    assert can_fill(context, "s3", "s1", SUFFIX) is may
    assert sources_that_fill(context, ["s2", "s3"], "s1", SUFFIX) == (["s2", "s3"] if may else ["s2"])
    names = [link.name for link in best_links_to(context, "s1", SUFFIX)]
    assert sorted(names) == (["s2-to-s1", "s3-to-s1"] if may else ["s2-to-s1"])
    row = {"server": "s1", "suffix": SUFFIX, "origin": "3", "position": csn(30, 3), "held_by": ["s2", "s3"]}
    assert whole_of(context, [row], ["s2", "s3"]) == (["s2", "s3"] if may else ["s2"])
