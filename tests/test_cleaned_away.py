"""A replica ID that some servers cleaned and another one still claims: who cleaned it waits for none of its changes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from detector_samples import of, plain_line
from entry_samples import answered, entry, export
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica

from workbench import Case, diagnose
from workbench.diagnosis.case_diagnosis import context_of
from workbench.diagnosis.repair_sources import not_judged_on
from workbench.diagnosis.verdicts import verdicts_on
from workbench.systems.ds389.rules.cleaning import behind_hubs
from workbench.topology.topology import logs_of, topology

HAD, NOT_NAMED = csn(3, 9), csn(4, 9)


def folder(*, cleaned: bool = True, imported: int | None = None, again: bool = False) -> dict[str, Any]:
    """s1 took one of the two changes of replica ID 9 that the read-only s2 claims and has, and cleaned the ID at 20 s.

    imported  in that second data was imported on s1, whose vector ends at 1 s before the cleaning or at 30 s behind it
    again     s2 has a change of the ID that was made after the cleaning
    """
    last = csn(40, 9) if again else NOT_NAMED
    task = "NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"
    lines = plain_line(20, f"INFO - {task}") if cleaned else ""
    if imported is not None:
        begun = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline"
        ended = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
        lines += plain_line(35, f"{begun}; disabling replication") + plain_line(36, ended)
    mine = elements(claims(r1=(1, 50), r2=(1, 50)))
    named = [NOT_NAMED, *([last] if again else [])]
    return {
        "s1.replica.ldif": replica(1, mine),
        "s1.changelog.ldif": changelog([csn(50, 1), csn(50, 2)], marks=[csn(imported, 1)] if imported else []),
        "s1.access.log": answered(3, "uid=u,ou=people", HAD, replicated=True),
        "s1.errors.log": lines or plain_line(1, "INFO - main - 389-Directory/2.3.1 B2022.272.1534 starting up"),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(65535, elements({**claims(r1=(1, 50), r2=(1, 50)), 9: (HAD, last)}), flags=0),
        "s2.access.log": "".join(answered(5, "uid=u,ou=people", one, replicated=True) for one in (HAD, *named)),
    }


@pytest.mark.parametrize(
    ("about", "more", "waits"),
    [
        ("it cleaned the ID", {}, 0),
        ("it never did", {"cleaned": False}, 2),
        ("data of before were imported since", {"imported": 1}, 2),
        ("data of later were imported since", {"imported": 30}, 0),
        ("the ID makes changes again", {"again": True}, 1),
    ],
)
def test_who_cleaned_a_replica_id_waits_for_no_change_of_before(
    about: str, more: dict[str, Any], waits: int, tmp_path: Path
) -> None:
    case = case_of(tmp_path, folder(**more))
    found = diagnose(case)
    mine = [row["count"] for row in found["pending"] if (row["server"], row["origin"]) == ("s1", "9")]
    assert mine == ([waits] if waits else []), about
    assert not of("REINIT_REQUIRED", found["findings"])  # s2 alone has them, keeps no log, and can fill nobody


@pytest.mark.parametrize(("named", "waits"), [((1,), []), ((1, 9), [2])], ids=["of one suffix", "of both"])
def test_of_two_suffixes_a_cleaning_is_of_the_one_that_names_the_id(
    named: tuple[int, ...], waits: list[int], tmp_path: Path
) -> None:
    """Seen on 3.1.2: a server of two suffixes was said to wait for 4 changes, of which its logs and entries show 3."""
    spans = {rid: (csn(1, rid), csn(2, rid)) for rid in named}
    files = folder() | {
        f"s{number}.two.replica.ldif": replica(number, elements(spans), suffix="o=two") for number in (1, 2)
    }
    found = diagnose(case_of(tmp_path, files))
    mine = [row["count"] for row in found["pending"] if (row["server"], row["origin"]) == ("s1", "9")]
    assert mine == waits


def told(case: Case, position: str) -> tuple[str, str]:
    shown = topology(case)
    (one,) = (one for one in verdicts_on(case, shown, logs_of(case, shown), position) if one.server == "s1")
    return one.verdict, one.rule


def test_what_a_server_may_not_have_had_of_an_origin_that_it_cleaned_cannot_be_judged(tmp_path: Path) -> None:
    """Nor does it wait for what was made in the second in which it cleaned."""
    files, at_once = folder(), csn(20, 9, 1)
    files["s2.replica.ldif"] = files["s2.replica.ldif"].replace(NOT_NAMED, at_once)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (row,) = (row for row in found["unknown"] if row["server"] == "s1")
    assert (row["origin"], row["why"], row["count"]) == ("9", "cleaned_here", 2)
    assert (row["from"], row["to"]) == (NOT_NAMED, at_once)
    assert not found["pending"] and told(case, at_once) == ("unknown", "cleaned_here")


def test_what_it_took_before_its_data_was_replaced_proves_nothing(tmp_path: Path) -> None:
    assert told(case_of(tmp_path, folder(imported=30)), HAD) == ("unknown", "cleaned_here")


def test_the_story_of_a_change_says_that_its_origin_was_cleaned(tmp_path: Path) -> None:
    case = case_of(tmp_path / "cleaned", folder())
    assert told(case, HAD) == ("present", "applied")
    assert told(case, NOT_NAMED) == ("unknown", "cleaned_here")
    case = case_of(tmp_path / "not", folder(cleaned=False))
    assert told(case, NOT_NAMED) == ("pending", "not_covered")


def test_whom_no_cleaning_reaches_is_known_by_the_links() -> None:
    """a feeds hub h, h feeds r; where the link of h leads nowhere that is known, or h was not read, r is one of them as well."""

    def shown(names: str, *feeds: tuple[str, str | None]) -> Any:
        links = [SimpleNamespace(supplier=by, consumer=to, suffix=SUFFIX, enabled=True) for by, to in feeds]
        replicas = [
            SimpleNamespace(server=name, suffix=SUFFIX, origin="1" if name == "a" else None, claims=True)
            for name in names
        ]
        return SimpleNamespace(replicas=replicas, links=links)

    assert behind_hubs(shown("ahr", ("a", "h"), ("h", "r")), SUFFIX) == ["r"]
    assert behind_hubs(shown("ahr", ("a", "h"), ("h", None)), SUFFIX) == ["r"]
    assert behind_hubs(shown("ar", ("a", "h"), ("h", "r")), SUFFIX) == ["r"]
    assert behind_hubs(shown("ahgr", ("a", "h"), ("h", "g"), ("g", "r")), SUFFIX) == ["g", "r"]
    assert behind_hubs(shown("ah", ("a", "h")), SUFFIX) == []


def test_what_its_entries_show_it_had(tmp_path: Path) -> None:
    """The access log names one of the two, the collected entries of s1 carry the other one."""
    files = folder()
    mine = elements(claims(r1=(1, 50), r2=(1, 50)))
    files["s1.entries.ldif"] = export(mine, [entry("uid=u,ou=people", 1, f"mail;vucsn-{NOT_NAMED}: a@example.com")])
    case = case_of(tmp_path, files)
    assert told(case, HAD) == told(case, NOT_NAMED) == ("present", "applied")
    assert not [row for row in diagnose(case)["unknown"] if row["server"] == "s1"]


def test_records_of_an_origin_that_all_others_cleaned_are_stranded_on_nobody(tmp_path: Path) -> None:
    """Of the read-only s2 only its changelog as a hub still has them: every server had them."""
    files = folder()
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(1, 50), r2=(1, 50))), flags=1)
    files["s2.changelog.ldif"] = changelog([csn(1, 1), HAD, NOT_NAMED, csn(50, 1), csn(50, 2)])
    found = diagnose(case_of(tmp_path, files))
    assert not found["stranded"] and not of("STRANDED_CHANGE", found["findings"])


def test_where_all_that_took_changes_of_a_cleaned_origin_were_filled_since(tmp_path: Path) -> None:
    """Seen on 3.1.2: no server was left that was known to have had any, and the diagnosis ended in an error."""
    files = folder(imported=30)
    del files["s2.access.log"]
    found = diagnose(case_of(tmp_path, files))
    assert not of("CLEAN_FORCED_LOSS", found["findings"])


@pytest.mark.parametrize(("entries", "doubted"), [(False, {"9": 1}), (True, {})])
def test_who_cleaned_an_origin_may_lack_what_another_server_has_of_it(
    entries: bool, doubted: dict[str, int], tmp_path: Path
) -> None:
    """Filled from s1, s2 might lose the change that nothing shows on s1; with its entries it is known to be there."""
    files = folder()
    if entries:
        mine = elements(claims(r1=(1, 50), r2=(1, 50)))
        files["s1.entries.ldif"] = export(mine, [entry("uid=u,ou=people", 1, f"mail;vucsn-{NOT_NAMED}: a@example.com")])
    context, _ = context_of(case_of(tmp_path, files))
    assert not_judged_on(context, "s1", "s2", SUFFIX) == doubted


@pytest.mark.parametrize(("took", "stranded"), [(False, 2), (True, 0)])
def test_what_a_server_took_before_it_cleaned_the_origin_is_not_held_by_its_maker_alone(
    took: bool, stranded: int, tmp_path: Path
) -> None:
    """Seen on 2.3.1: "only s9 holds 2 changes", of which the log of s1, which cleaned the origin, shows both."""
    spans = {**claims(r1=(1, 50), r2=(1, 50)), 9: (HAD, NOT_NAMED)}
    logged = [csn(1, 1), csn(50, 1), csn(50, 2)]
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 50), r2=(1, 50)))),
        "s1.changelog.ldif": changelog(logged),
        "s1.access.log": "".join(
            answered(6, "uid=u,ou=people", one, replicated=True) for one in (HAD, NOT_NAMED) * took
        )
        or answered(1, "uid=u,ou=people", csn(1, 1)),
        "s1.errors.log": plain_line(
            20, "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"
        ),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(2, elements({**claims(r1=(1, 50), r2=(1, 50)), 9: None})),
        "s2.changelog.ldif": changelog(logged),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s9.replica.ldif": replica(9, elements(spans)),
        "s9.changelog.ldif": changelog([*logged, HAD, NOT_NAMED]),
    }
    found = diagnose(case_of(tmp_path, files))
    assert len(found["stranded"]) == stranded


DROPS = "NSMMReplicationPlugin - multisupplier_extop_cleanruv - CleanAllRUV Task - Successfully cleaned rid(9)."


def test_only_what_was_made_since_the_cleaning_waits_for_a_server_that_drops_the_origin(tmp_path: Path) -> None:
    """The replica came back, and makes changes; s1, which is read-only and cleaned the ID, has what it took before."""
    last = csn(40, 9)
    own = {"r2": (1, 2)}
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(65535, elements(claims(**own)), flags=0),
        "s1.errors.log": plain_line(20, f"INFO - {DROPS}"),
        "s1.access.log": answered(3, "uid=u,ou=people", HAD, replicated=True),
        "s2.replica.ldif": replica(2, elements({**claims(**own), 9: (HAD, last)})),
        "s2.changelog.ldif": changelog([csn(1, 2), csn(2, 2), HAD, NOT_NAMED, last]),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s9.replica.ldif": replica(9, elements({**claims(**own), 9: (HAD, last)})),
        "s9.changelog.ldif": changelog([HAD, NOT_NAMED, last]),
    }
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (row,) = (row for row in found["pending"] if (row["server"], row["origin"]) == ("s1", "9"))
    assert (row["count"], bool(row["dropped_since"])) == (1, True)
    assert told(case, HAD) == ("present", "applied")
    assert told(case, NOT_NAMED) == ("unknown", "cleaned_here") and told(case, last)[0] == "pending"
