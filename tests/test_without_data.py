"""Servers without data: what only their logs have, who is being filled, who shows nothing, and what nobody fills from."""

from __future__ import annotations

from pathlib import Path

import pytest
from detector_samples import of, plain_line, zulu
from entry_samples import answered, logged
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica
from test_initialisations import emptied
from test_silent_servers import _with_failed
from test_without_effect import Files

from workbench.diagnosis import verdicts
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.left_in_logs import note_left_in_logs
from workbench.repair.planner import plan
from workbench.systems.ds389.rules.initialisations import outcome_of

BOTH = [*(csn(second, 1) for second in range(1, 10)), *(csn(second, 2) for second in range(1, 6))]
CLEANED = "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 9): Successfully cleaned rid(9)"
OFFLINE = (
    "NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica dc=example,dc=com is going offline; "
    "disabling replication"
)
ONLINE = OFFLINE.replace("going offline; disabling", "coming online; enabling")
REFUSED = "the search below dc=example,dc=com was refused, {} (ldap://s2). look at its errors log"


# --- what only a log has


def stranded(files: Files, tmp_path: Path) -> list[tuple[str, str]]:
    found = diagnose(case_of(tmp_path, files))
    return [(row["server"], row["position"]) for row in found["stranded"] if row.get("log_only")]


def test_changes_of_an_origin_that_the_others_cleaned_are_no_loss(tmp_path: Path) -> None:
    files = emptied()
    files["s2.changelog.ldif"] = changelog([*BOTH, csn(3, 9), csn(4, 9)])
    files |= {f"{name}.errors.log": plain_line(10, CLEANED) for name in ("s1", "s3")}
    assert stranded(files, tmp_path) == []


def test_a_change_in_a_hole_of_all_others_is_saved(tmp_path: Path) -> None:
    """The log of s1, which goes back further, does not have 3 of s2."""
    files = emptied()
    files["s1.changelog.ldif"] = changelog([one for one in BOTH if one != csn(3, 2)])
    files["s2.changelog.ldif"] = changelog(BOTH)
    assert stranded(files, tmp_path / "hole") == [("s2", csn(3, 2))]
    assert [step.repair for step in plan(case_of(tmp_path / "plan", files)).steps][:2] == ["save", "initialise"]
    files["s1.changelog.ldif"] = changelog([one for one in BOTH if one > csn(3, 2)])  # it may have been trimmed
    assert stranded(files, tmp_path / "trimmed") == []


def test_of_two_servers_without_data_neither_counts_as_one_that_has_changes(tmp_path: Path) -> None:
    files = emptied()
    files["s4.replica.ldif"] = files["s2.replica.ldif"].replace("ReplicaId: 2", "ReplicaId: 4")
    files["s4.changelog.ldif"] = files["s2.changelog.ldif"]
    assert {server for server, _ in stranded(files, tmp_path)} == {"s2", "s4"}


def test_where_the_list_is_cut_no_plan_fills_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "note_left_in_logs", lambda *args: note_left_in_logs(*args[:-1], 1))
    case = case_of(tmp_path, emptied())
    found = diagnose(case)
    assert found["run"]["truncated"]["stranded"] == 2 and "throws away 1 change and more" in headline(found)
    made = plan(case)
    assert not made.steps
    assert any("has more changes than the list holds" in course.refused for course in made.courses)


def test_of_two_servers_the_one_with_data_is_not_the_odd_one(tmp_path: Path) -> None:
    files = emptied()
    del files["s3.replica.ldif"]
    head, _, tail = files["s1.agreements.ldif"].partition("dn: cn=s1-to-s2")
    files["s1.agreements.ldif"] = f"dn: cn=s1-to-s2{tail}"
    assert head
    for number, ends in enumerate(("777700000000", "000000000000")):
        mine = files | {"s2.replica.ldif": files["s2.replica.ldif"].replace("777700000000", ends)}
        made = plan(case_of(tmp_path / str(number), mine))
        assert [step.repair for step in made.steps][:2] == ["save", "initialise"]
        assert not any("initialise s1" in line for line in made.open)


def test_own_changes_that_only_the_log_of_operations_shows_went_with_the_data(tmp_path: Path) -> None:
    files = emptied()
    files["s2.changelog.ldif"] = changelog([])
    files["s2.access.log"] = "".join(answered(second, "uid=u,ou=people", csn(second, 2)) for second in (4, 12, 13))
    found = diagnose(case_of(tmp_path, files))
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert f"shows 2 changes, {csn(12, 2)} to {csn(13, 2)}, that no other collected server has" in aborted["summary"]
    assert "2 changes of s2 went with the old data" in headline(found)
    assert aborted["fix"][-1]["repair"].startswith("make 2 changes of s2 again on another supplier")


def test_own_changes_of_which_no_other_server_has_any_went_with_the_data(tmp_path: Path) -> None:
    """Its links out never ran."""
    files = emptied()
    files["s2.changelog.ldif"] = changelog([])
    ruv = elements({**claims(r1=(1, 9)), 2: None})
    files |= {"s1.replica.ldif": replica(1, ruv), "s3.replica.ldif": replica(65535, ruv, flags=0)}
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in range(1, 10)])
    files["s2.access.log"] = "".join(answered(second, "uid=u,ou=people", csn(second, 2)) for second in (4, 12))
    assert "2 changes of s2 went with the old data" in headline(diagnose(case_of(tmp_path, files)))


def test_lines_about_entries_of_another_suffix_are_no_loss_of_this_one(tmp_path: Path) -> None:
    files = emptied()
    files["s2.changelog.ldif"] = changelog([])
    files["s2.access.log"] = "".join(
        answered(second, "uid=u,ou=people", csn(second, 2)).replace("dc=example,dc=com", suffix)
        for second, suffix in ((12, "dc=example,dc=com"), (13, "o=two"))
    )
    assert "1 change of s2 went with the old data" in headline(diagnose(case_of(tmp_path, files)))


@pytest.mark.parametrize("left_out", [False, True])
def test_what_no_other_server_need_have_is_no_loss(left_out: bool, tmp_path: Path) -> None:
    """The log of s2 alone has a change of memberOf, which the agreements leave out or not."""
    files = emptied()
    made = [(csn(second, 1), "x") for second in range(1, 10)] + [(csn(second, 2), "y") for second in range(1, 6)]
    own = logged(csn(4, 2), 1, "uid=anna,ou=people", "add: memberOf\nmemberOf: cn=g\n-\n")
    for name in ("s1", "s2"):
        records = {at: logged(at, 9, "uid=else,ou=people", f"replace: sn\nsn: {value}\n-\n") for at, value in made}
        records = {at: text for at, text in records.items() if at != csn(4, 2)} | (
            {csn(4, 2): own} if name == "s2" else {}
        )
        files[f"{name}.changelog.ldif"] = "".join(text for _, text in sorted(records.items()))
        rule = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE memberOf\n" if left_out else ""
        kept = files[f"{name}.agreements.ldif"].replace("nsds5ReplicaEnabled", f"{rule}nsds5ReplicaEnabled")
        files[f"{name}.agreements.ldif"] = kept
    assert stranded(files, tmp_path) == ([] if left_out else [("s2", csn(4, 2))])


@pytest.mark.parametrize("collected", [True, False])
def test_what_the_vector_of_before_claims_alone_is_saved_before_anything_is_filled(
    collected: bool, tmp_path: Path
) -> None:
    """s2 shows its vector of before, refuses to be searched, and alone claims 13; its changelog is in the folder or not."""
    files = emptied()
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(1, 6), r2=(1, 13))))
    if not collected:
        del files["s2.changelog.ldif"]
    case = case_of(tmp_path, _with_failed(files, "s2", REFUSED.format("operationsError (1)")))
    found = diagnose(case)
    assert headline(found).startswith("The initialisation of s2 by s1 was aborted")
    (aborted,) = of("INITIALISATION_ABORTED", found["findings"])
    assert aborted["fix"][0]["repair"].startswith("save the changelog of s2 first")
    made = plan(case)
    assert not made.steps
    refused = [course.refused for course in made.courses]
    assert collected or any(f"may have its changes up to {csn(13, 2)}: save it first" in one for one in refused)


# --- data that are arriving, or are not shown


def behind() -> Files:
    """s2 waits for 8 and 9 of s1, whose log begins behind what s2 has."""
    files: Files = dict(pair_of_servers(9, 4))
    files["s1.changelog.ldif"] = changelog([csn(second, 1) for second in (8, 9)])
    return files


def running(files: Files, asked: bool = True) -> Files:
    status = f"nsds5replicaLastInitStatus: Error (0) Total update in progress\nnsds5replicaLastInitStart: {zulu(30)}\n"
    status += "nsds5BeginReplicaRefresh: start\n" if asked else ""
    return files | {"s1.agreements.ldif": agreement("s1-to-s2", 38902).rstrip("\n") + f"\n{status}\n"}


@pytest.mark.parametrize("by_log", [True, False])
def test_nobody_fills_a_server_to_which_data_are_arriving(by_log: bool, tmp_path: Path) -> None:
    files = behind() | {"s2.errors.log": plain_line(20, OFFLINE)} if by_log else running(behind())
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert headline(found).startswith("New data for s2 were arriving") and "MISSING" not in headline(found)
    (purged,) = of("ANCHOR_PURGED", found["findings"])
    assert (purged["severity"], purged["overruled_by"]) == ("info", "INITIALISATION_RUNNING")
    made = plan(case)
    assert not made.steps and any(line.startswith("INITIALISATION_RUNNING s2") for line in made.left)


def test_what_a_server_lacked_before_its_new_data_is_in_no_first_line(tmp_path: Path) -> None:
    files = dict(pair_of_servers(9, 9)) | {"s2.errors.log": plain_line(20, OFFLINE)}
    kept = [*(csn(second, 1) for second in range(10) if second != 5), csn(1, 2), csn(2, 2)]
    files["s2.changelog.ldif"] = changelog(kept, own_entries=True)
    files["s1.changelog.ldif"] = changelog(sorted([*kept, csn(5, 1)]), own_entries=True)
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert found["missing"] and "MISSING" not in headline(found) and "stranded" not in headline(found)
    assert not plan(case).steps


def test_nothing_comes_from_a_server_that_is_being_filled(tmp_path: Path) -> None:
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 9)), **claims(r2=(1, 7))}))
    files["s2.changelog.ldif"] = changelog(
        [*(csn(second, 1) for second in range(10)), *(csn(n, 2) for n in range(1, 8))]
    )
    files["s2.errors.log"] = plain_line(20, OFFLINE)
    case = case_of(tmp_path, files)
    assert "on the way to s1" not in headline(diagnose(case)) and "5 are waiting for s1" in headline(diagnose(case))


def test_what_the_server_says_of_the_end_counts_more_than_an_agreement_read_before(tmp_path: Path) -> None:
    files = running(dict(pair_of_servers(9, 9)))
    assert of("INITIALISATION_RUNNING", diagnose(case_of(tmp_path / "goes on", files))["findings"])
    files["s2.errors.log"] = plain_line(30, OFFLINE) + plain_line(33, ONLINE)
    assert not of("INITIALISATION_RUNNING", diagnose(case_of(tmp_path / "ended", files))["findings"])


def test_a_sentence_that_stayed_behind_is_no_filling_that_goes_on(tmp_path: Path) -> None:
    assert outcome_of("Error (0) Total update in progress", asked=False) == "aborted"
    files = running(emptied(), asked=False)
    found = diagnose(case_of(tmp_path, files))
    assert not of("INITIALISATION_RUNNING", found["findings"]) and of("INITIALISATION_ABORTED", found["findings"])


@pytest.mark.parametrize(
    ("said", "told"),
    [("operationsError (1)", True), ("insufficientAccessRights (50)", False), ("noSuchObject (32)", True)],
)
def test_a_server_that_does_not_show_its_data_is_named_and_fills_nobody(said: str, told: bool, tmp_path: Path) -> None:
    """s2 claims an own change that s1 lacks: the way from s2 must not be taken."""
    files: Files = dict(pair_of_servers(9, 9))
    files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 9)), **claims(r2=(1, 7))}))
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901, enabled=False)
    case = case_of(tmp_path, _with_failed(files, "s2", REFUSED.format(said)))
    found = diagnose(case)
    named = of("SEARCH_REFUSED", found["findings"])
    assert [(finding["server"], finding["severity"]) for finding in named] == [("s2", "error")] * told
    assert headline(found).startswith("A search of the data of s2") is told
    made = plan(case)
    assert not told or not made.steps
    assert bool([step for step in made.steps if step.on == "s2"]) is not told
