"""Changes that went with old data, of which entries of another server, or of another time, still show something."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import findings, of, plain_line, read_at
from entry_samples import answered, entry, export
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica
from test_thrown_away import LATER, LOST, folder, held_back

from workbench import diagnose


def test_what_only_an_earlier_export_shows_is_not_there_any_more(tmp_path: Path) -> None:
    """Seen on 3.1.2: of one collection three lost changes were told, of the same behind an earlier one none."""
    ruv, before = elements(claims(r1=(1, 40), r2=(1, 2))), elements(claims(r1=(1, 11), r2=(1, 2)))
    shown = f"description;adcsn-{LOST[0]};vucsn-{LOST[0]}: a\nmail;vucsn-{LOST[1][:16]}0001: a@example.com"
    first = {
        "s1.replica.ldif": replica(1, before),
        "s2.replica.ldif": replica(2, elements(claims(r1=(1, 5), r2=(1, 2)))),
    }
    first |= {"s1.entries.ldif": export(before, [entry("uid=u,ou=people", 17, shown)])}
    files = folder(20)
    for name in ("s1", "s2"):
        files[f"{name}.entries.ldif"] = export(ruv, [entry("uid=u,ou=people", 17)])
    alone, behind = (
        diagnose(case_of(tmp_path / name, *some)) for name, some in (("alone", [files]), ("behind", [first, files]))
    )
    missing = [{(row["server"], row["position"]) for row in found["missing"]} for found in (alone, behind)]
    assert missing[0] == missing[1] and ("s2", LOST[0]) in missing[0]


def test_own_changes_that_only_a_consumer_shows_are_no_reason_to_fill_their_maker(tmp_path: Path) -> None:
    """Seen on 2.3.1: "initialise c from the server with the most complete data", where only read-only r shows what it lost."""
    ruv = elements(claims(r1=(1, 40), r2=(1, 2)))
    shown = f"description;adcsn-{LOST[0]};vucsn-{LOST[0]}: a\nmail;vucsn-{LOST[1][:16]}0001: a@example.com"
    files = folder(20) | {"c5.replica.ldif": replica(65535, ruv, flags=0)}
    for name in ("s1", "s2", "c5"):
        files[f"{name}.entries.ldif"] = export(ruv, [entry("uid=u,ou=people", 17, *([shown] if name == "c5" else []))])
    (hidden,) = of("OWN_CHANGES_HIDDEN", findings(tmp_path, files))
    assert [fix["repair"] for fix in hidden["fix"]] == ["do what MISSED_CHANGE says of s1"]
    assert "only entries of c5 show what they did" in hidden["fix"][0]["why"]


def test_an_entry_that_nothing_changed_since_lacks_what_went_with_the_old_data(tmp_path: Path) -> None:
    """Its values are older than the lost changes, or a later change only added one: nothing of them was replaced."""
    ruv = elements(claims(r1=(1, 40), r2=(1, 2)))
    for number, mark in enumerate((f"adcsn-{csn(5, 1)};vucsn-{csn(5, 1)}", f"vucsn-{LATER}")):
        shown = export(ruv, [entry("uid=u,ou=people", 1, f"telephoneNumber;{mark}: 117")])
        files = folder(20) | {f"{name}.entries.ldif": shown for name in ("s1", "s2")}
        found = diagnose(case_of(tmp_path / str(number), files))
        (one,) = of("CHANGES_THROWN_AWAY", found["findings"])
        assert (one["items"], one["severity"]) == (LOST, "error")
        assert {row["position"] for row in found["missing"]} == {*LOST}


AHEAD = [csn(200_000 + second, 1) for second in (10, 11)]


@pytest.mark.parametrize(
    ("about", "last_line", "lost"),
    [("its clock is right again", 50, 2), ("its clock may still be ahead: they may be of since", 200_050, 0)],
)
def test_what_its_maker_made_with_a_clock_that_was_ahead_and_claims_no_more(
    about: str, last_line: int, lost: int, tmp_path: Path
) -> None:
    """Seen on 2.3.1: the positions are of later than what replaced the data. The others were said to wait for them."""
    files = held_back()
    name = "uid=u,ou=people"
    ahead = "".join(answered(200_000 + second, name, one) for second, one in zip((10, 11), AHEAD, strict=True))
    files["s1.access.log"] = answered(5, name, csn(5, 1)) + ahead + answered(40, name, LATER)
    files["s1.errors.log"] = "".join(
        plain_line(second, "INFO - slapd_daemon - slapd started.  Listening on x") for second in (200_000, last_line)
    )
    files |= {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 40), r2=(1, 2)))),
        "s1.changelog.ldif": changelog([LATER], marks=[csn(5, 1)]),
    }
    found = diagnose(case_of(tmp_path, read_at(files, 60)))
    thrown = of("CHANGES_THROWN_AWAY", found["findings"])
    assert [one["items"] for one in thrown] == [AHEAD] * bool(lost), about
    assert [row["lost"] for row in found["pending"] if row["server"] == "s2"] == [lost]


@pytest.mark.parametrize(("began", "lost"), [(20, LOST), (11, LOST), (8, [])])
def test_what_its_maker_covers_since_and_its_data_never_had(began: int, lost: list[str], tmp_path: Path) -> None:
    """Seen on 3.1.2: s1 took its data from a file, in the second of its last change, and wrote again: its vector covers all."""
    files = held_back()
    offline = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
    ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    begun = "INFO - bdb_import_main - import userroot: Beginning import job..."
    files |= {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 40), r2=(1, 2)))),
        "s1.changelog.ldif": changelog([LATER], marks=[csn(5, 1)]),
        "s1.errors.log": plain_line(began, f"{offline}; disabling replication")
        + plain_line(began, begun)
        + plain_line(began + 2, ended),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
    }
    found = diagnose(case_of(tmp_path, files))
    thrown = of("CHANGES_THROWN_AWAY", found["findings"])
    assert [one["items"] for one in thrown] == ([lost] if lost else [])
    assert [row["lost"] for row in found["pending"] if row["server"] == "s2"] == [len(lost)]
