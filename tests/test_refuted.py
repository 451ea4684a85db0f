"""What real servers did that a second person chose: each fault as small files, with what has to be said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of, plain_line, status, with_status
from entry_samples import TOMBSTONE, answered, entry, export, logged, mesh
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis import dropped_changes
from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.diagnosis.change_explanation import story
from workbench.diagnosis.contents import Contents
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.incident import Incident
from workbench.diagnosis.output_keys import undocumented
from workbench.repair.planner import plan
from workbench.report.markdown import markdown
from workbench.report.report_pipeline import whole_report

OTHER = "66000fff0000ffff0000"


# --- a consumer that was killed while it was filled


def not_filled() -> dict[str, Any]:
    """s3 is read-only, has a RUV of another beginning without any element, and no entry; s2 feeds it."""
    spans = {"r1": (1, 9), "r2": (1, 2)}
    files = mesh(spans, {"s1": [entry("uid=anna", 1)], "s2": [entry("uid=anna", 1)]}, {})
    log = changelog([*(csn(second, 1) for second in range(1, 10)), csn(1, 2), csn(2, 2)], own_entries=True)
    files |= {f"{name}.changelog.ldif": log for name in ("s1", "s2")}
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901) + agreement("s2-to-s3", 38903)
    files["s3.replica.ldif"] = replica(65535, elements({}, OTHER), flags=0)
    ruv = f"nsds50ruv: {{replicageneration}} {OTHER}"
    files["s3.entries.ldif"] = (
        f"dn: nsuniqueid={TOMBSTONE},{SUFFIX}\nobjectClass: nsTombstone\nnsUniqueId: {TOMBSTONE}\n{ruv}\n\n"
    )
    return files | listening("s3")


def test_a_server_without_entries_is_filled_and_never_fills_others(tmp_path: Path) -> None:
    case = case_of(tmp_path, not_filled())
    found = diagnose(case)
    (one,) = of("UNRELATED_DATA", found["findings"])
    assert one["server"] == "s3" and "it has no entries" not in one["summary"]
    assert headline(found).startswith("Server s3 has no entries: it has to be filled")
    assert one["fix"][0]["repair"] == "initialise s3 from s2"
    said = "\n".join(plan(case).open)
    assert "initialise s3 from s2" in said
    assert "only a person can tell" not in said and "to keep the data of s3" not in said


def test_one_that_was_made_anew_with_the_entry_of_its_suffix_is_filled_too(tmp_path: Path) -> None:
    """Also of two servers, of which the names do not tell which is the right one."""
    files = not_filled()
    files["s3.entries.ldif"] = f"dn: {SUFFIX}\nobjectClass: domain\nnsUniqueId: 1-1-1-9\n\n{files['s3.entries.ldif']}"
    two = {name: text for name, text in files.items() if not name.startswith("s1.")}
    two = {name.replace("s3.", "a3."): text for name, text in two.items()}
    for number, (given, name) in enumerate(((files, "s3"), (two, "a3"))):
        case = case_of(tmp_path / str(number), given)
        assert headline(diagnose(case)).startswith(f"Server {name} has no entries: it has to be filled")
        assert f"to keep the data of {name}" not in "\n".join(plan(case).open)


def test_of_two_sides_with_entries_a_person_decides(tmp_path: Path) -> None:
    files = not_filled()
    files["s3.entries.ldif"] += entry("uid=otto", 2)
    said = "\n".join(plan(case_of(tmp_path, files)).open)
    assert "only a person can tell" in said and "to keep the data of s3" in said


# --- a supplier that was made a read-only consumer, and has its agreements still


def test_agreements_of_a_read_only_consumer_are_to_be_deleted(tmp_path: Path) -> None:
    files: dict[str, Any] = pair_of_servers(4, 4)
    told = status(15, "Unable to read changelog", "red", 5, 6)
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0)
    del files["s2.changelog.ldif"]
    files["s2.agreements.ldif"] = with_status(agreement("to-s1", 38901), told)
    found = findings(tmp_path, files)
    (one,) = of("LINK_FAILING", found)
    assert "s2 is a read-only consumer now, and sends nothing" in one["summary"]
    assert "repl-agmt delete" in str(one["fix"][0]["repair"]) and "poke" not in str(one["fix"])


def test_a_supplier_whose_changelog_was_switched_off_is_no_read_only_consumer(tmp_path: Path) -> None:
    """Seen on 3.1.2: nsDS5Flags was set to 0 while it took writes; promote answered that the role cannot be determined."""
    files: dict[str, Any] = pair_of_servers(4, 4)
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0)
    del files["s2.changelog.ldif"]
    files["s2.agreements.ldif"] = with_status(
        agreement("to-s1", 38901), status(15, "Unable to read changelog", "red", 5, 6)
    )
    (one,) = of("LINK_FAILING", findings(tmp_path, files))
    assert "s2 is a supplier that keeps no changelog (nsDS5Flags is 0)" in one["summary"]
    assert "set nsDS5Flags to 1" in str(one["fix"][0]["repair"]) and "delete" not in str(one["fix"])


# --- who is fed by nobody


def test_what_waits_where_no_link_leads_is_a_warning(tmp_path: Path) -> None:
    files: dict[str, Any] = pair_of_servers(9, 4)
    files |= listening("s3")
    files["s3.replica.ldif"] = replica(3, elements(claims(r1=(0, 9), r2=(1, 2))))
    files["s3.changelog.ldif"] = files["s1.changelog.ldif"]
    files["s1.agreements.ldif"] = agreement("to-s3", 38903)
    files["s3.agreements.ldif"] = agreement("to-s1", 38901)
    (one,) = of("PENDING_CHANGES", findings(tmp_path / "known", files))
    assert (one["server"], one["severity"]) == ("s2", "warning")
    assert "no link leads to s2" in one["summary"]
    # A server that was not collected may feed it.
    files["s3.agreements.ldif"] += agreement("to-far", 636, host="far")
    (one,) = of("PENDING_CHANGES", findings(tmp_path / "far", files))
    assert one["severity"] == "info"


# --- a replica that was cleaned while one server was down


def test_a_plan_cleans_what_only_one_server_still_knows(tmp_path: Path) -> None:
    """All have the entry that replica 3 made; s1 and s2 have forgotten the replica, s3 has not."""
    made = [entry("uid=anna", 1).replace(csn(1, 1), csn(3, 3))]
    log = changelog([csn(1, 1), csn(2, 1), csn(1, 2)], own_entries=True)
    files = mesh({"r1": (1, 2), "r2": (1, 1)}, dict.fromkeys(("s1", "s2", "s3"), made), {"s1": log, "s2": log})
    more = elements(claims(r1=(1, 2), r2=(1, 1), r3=(3, 3)))
    files |= {"s3.replica.ldif": replica(65535, more, flags=0), "s3.entries.ldif": export(more, made)}
    files |= listening("s1") | listening("s2") | listening("s3")
    del files["s3.agreements.ldif"]
    case = case_of(tmp_path, files)
    assert diagnose(case)["pending"] == []
    planned = plan(case, only=["3"], ways=["clean"])
    assert [(one.way, one.proven) for one in planned.courses if one.chosen] == [("clean", True)]
    assert not any("does not bring" in one for one in planned.open)
    assert [step.repair for step in planned.steps] == ["clean"] and not planned.steps[0].details["behind"]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("version", ["3.1.2", "2.3.1", ""])
def test_a_clean_that_crashes_a_read_only_server_is_not_planned(version: str, on: bool, tmp_path: Path) -> None:
    """s1 feeds the read-only s3: 2.3.1 was seen to crash there as the cleaning came, and again at each start."""
    ruv = elements(claims(r1=(1, 2), r9=(0, 0)))
    changes = [csn(1, 1), csn(2, 1)]
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog(changes),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903, enabled=on),
        "s2.replica.ldif": replica(2, ruv),
        "s2.changelog.ldif": changelog(changes),
        "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        "s3.replica.ldif": replica(65535, ruv, flags=0),
    }
    files |= listening("s1") | listening("s2") | listening("s3")
    files["s3.errors.log"] += (
        plain_line(1, f"INFO - main - 389-Directory/{version} B2026 starting up") if version else ""
    )
    made = plan(case_of(tmp_path, files), only=["9"], ways=["clean"])
    (course,) = (one for one in made.courses if one.way == "clean")
    if version == "2.3.1" and on:
        assert not [step for step in made.steps if step.repair == "clean"]
        assert course.refused.startswith("s3 would crash: 2.3.1 was seen to crash")
        assert "switch off s1-to-s3 before, clean by hand, and switch it on when the task has ended" in course.refused
    else:
        (clean,) = (step for step in made.steps if step.repair == "clean")
        assert ("s3 may crash, as no file tells the version" in clean.risk) is (on and not version)


@pytest.mark.parametrize("version", ["3.1.2", "2.3.1", ""])
def test_a_server_that_only_a_hub_feeds_is_cleaned_by_a_step_of_its_own(version: str, tmp_path: Path) -> None:
    """s1 feeds the hub s2, s2 feeds s3: a hub passes no cleaning on, and s3 alone still knows replica 9.

    2.3.1 crashes without a changelog when it is told to clean itself: where it is not known to be a later one, nothing is risked.
    """
    ruv, more = elements(claims(r1=(1, 2))), elements(claims(r1=(1, 2), r9=(3, 3)))
    files = {
        "s1.replica.ldif": replica(1, ruv),
        "s1.changelog.ldif": changelog([csn(1, 1), csn(2, 1)]),
        "s1.agreements.ldif": agreement("s1-to-s2", 38902),
        "s2.replica.ldif": replica(65535, ruv, flags=1),
        "s2.changelog.ldif": changelog([csn(1, 1), csn(2, 1)]),
        "s2.agreements.ldif": agreement("s2-to-s3", 38903),
        "s3.replica.ldif": replica(65535, more, flags=0),
    }
    claimed = tuple("".join(f"nsds50ruv: {element}\n" for element in vector) for vector in (ruv, more))
    made = [entry("uid=anna", 1).replace(csn(1, 1), csn(3, 9))]
    files |= {f"s{number}.entries.ldif": export(more if number == 3 else ruv, made) for number in (1, 2, 3)}
    files |= listening("s1") | listening("s2") | listening("s3")
    files["s3.errors.log"] += (
        plain_line(1, f"INFO - main - 389-Directory/{version} B2026 starting up") if version else ""
    )
    planned = plan(case_of(tmp_path / "s3", files), only=["9"], ways=["clean"])
    everywhere = files | {
        f"s{number}.replica.ldif": str(files[f"s{number}.replica.ldif"]).replace(*claimed) for number in (1, 2)
    }
    all_name_it = plan(case_of(tmp_path / "all", everywhere), only=["9"], ways=["clean"])
    assert all_name_it.steps[0].expects == "no RUV names 9 any more, but for s3"
    (chosen,) = (course for course in all_name_it.courses if course.chosen)
    if version == "3.1.2":
        assert planned.steps[0].details["behind"] == ["s3"]
        assert [(step.repair, step.server) for step in planned.steps] == [("clean", "s1"), ("clean-here", "s3")]
        assert "CLEANRUV9" in planned.steps[1].sends and not chosen.costs and not all_name_it.left
    else:
        assert not planned.steps and planned.unmended
        assert "only s3 names it, which only an initialisation ends" in str(
            [course.refused for course in planned.courses]
        )
        assert [(step.repair, step.server) for step in all_name_it.steps] == [("clean", "s1")]
        assert chosen.costs.startswith("s3 keeps 9 in the RUV until the next initialisation")
        assert all_name_it.left == (
            "DEAD_ORIGIN origin 9: s3 keeps it when all steps are done, until the next initialisation",
        )


# --- a replica that was cleaned, and comes back


CLEANED = (
    "INFO - NSMMReplicationPlugin - multisupplier_extop_cleanruv - CleanAllRUV Task - Successfully cleaned rid(1)."
)
RELEASED = "INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid 1): Successfully cleaned rid(1)"
STARTED = "INFO - main - 389-Directory/2.3.1 B2024.211.1531 starting up"


def comes_back(*lines: tuple[float, str], had: tuple[int, int] | None = None) -> dict[str, Any]:
    """s1 makes changes as replica ID 1 up to second 9; c, which is read-only, has forgotten it, or claims the span `had`."""
    own = {"r2": (1, 2)}
    files: dict[str, Any] = pair_of_servers(9, 9)
    files |= listening("c3") | {
        "c3.replica.ldif": replica(65535, elements(claims(**own, **({"r1": had} if had else {}))), flags=0),
        "s1.agreements.ldif": agreement("to-s2", 38902) + agreement("to-c3", 38903),
    }
    files["c3.errors.log"] += "".join(plain_line(second, line) for second, line in lines)
    return files


def test_a_replica_that_comes_back_after_it_was_cleaned(tmp_path: Path) -> None:
    """s1 comes back: c3 has forgotten its replica ID, and drops what it makes until it is restarted."""
    found = diagnose(case_of(tmp_path, comes_back((5, CLEANED))))
    (one,) = of("CLEANED_ORIGIN_BACK", found["findings"])
    assert (one["server"], one["origin"], one["severity"]) == ("s1", "1", "error")
    assert one["root"] == "replica ID 1 was cleaned, and s1 makes changes as it again"
    assert one["fix"][0]["repair"].startswith("restart c3, if s1 is meant to take part")
    (row,) = found["pending"]
    assert (row["server"], row["count"], row["suppliers"], row["through"]) == ("c3", 4, ["s1"], [])
    assert (
        row["dropped_since"].startswith("2024-03-24T")
        and row["restart_unknown_after"] is None
        and not undocumented(found)
    )
    assert headline(found) == (
        "Replica ID 1 was cleaned, and s1 makes changes as it again; 4 changes do not arrive at c3, which drops them until it "
        "is restarted; no change is known to be missing; 2 stretches cannot be judged by what was collected."
    )
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert "c3 cleaned this origin at 2024-03-24" in waits["summary"] and "would send" not in waits["summary"]
    assert waits["fix"][0]["repair"] == "do what CLEANED_ORIGIN_BACK says on c3"


@pytest.mark.parametrize(
    ("about", "files"),
    [
        ("a supplier releases the ID", comes_back((5, RELEASED))),
        ("it was restarted since", comes_back((5, CLEANED), (7, STARTED))),
        ("it took a change since: nobody saw it start", comes_back((5, CLEANED), had=(6, 7))),
    ],
)
def test_who_takes_changes_again_drops_none(about: str, files: dict[str, Any], tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, files))
    assert not of("CLEANED_ORIGIN_BACK", found["findings"]), about
    assert {row["dropped_since"] for row in found["pending"]} == {None}
    assert "on the way to c3" in headline(found)


@pytest.mark.parametrize(("cleaned", "back"), [(8, False), (4, True)])
def test_positions_that_are_ahead_are_no_sign_that_a_cleaned_id_is_in_use(
    cleaned: int, back: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: positions lay 15 minutes ahead of all clocks; s2 answered the last change before it cleaned the ID."""
    files = comes_back((5, CLEANED))
    files["s2.access.log"] = answered(7, "uid=u", csn(9, 1), replicated=True)
    files["s2.errors.log"] = plain_line(cleaned, RELEASED)
    found = diagnose(case_of(tmp_path, files))
    assert bool(of("CLEANED_ORIGIN_BACK", found["findings"])) is back


def test_what_was_made_before_the_cleaning_does_not_wait_for_who_still_drops_the_id(tmp_path: Path) -> None:
    """c3 would drop it once more; whether it had it before, nothing tells."""
    found = diagnose(case_of(tmp_path, comes_back((30, CLEANED))))
    assert not found["pending"] and not of("CLEANED_ORIGIN_BACK", found["findings"])
    assert ("c3", "1", "cleaned_here") in {(row["server"], row["origin"], row["why"]) for row in found["unknown"]}
    assert "on the way" not in headline(found)


def test_an_initialisation_does_not_make_a_server_take_a_cleaned_id_again(tmp_path: Path) -> None:
    """c3 was initialised while it ran: its vector has the ID again, and what was made since is dropped all the same."""
    offline = f"NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - Replica {SUFFIX} is going offline; "
    offline += "disabling replication"
    filled = "INFO - bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
    found = diagnose(case_of(tmp_path, comes_back((5, CLEANED), (7, offline), (8, filled), had=(0, 7))))
    (row,) = found["pending"]
    assert row["count"] == 2 and row["dropped_since"] and of("CLEANED_ORIGIN_BACK", found["findings"])


@pytest.mark.parametrize("live", [False, True])
def test_a_log_that_ends_too_early_hides_a_restart(live: bool, tmp_path: Path) -> None:
    """c3 went on working for an hour after the end of its errors log: only a collection that says when it read it covers that."""
    files = comes_back((5, CLEANED))
    files["c3.access.log"] = answered(3600, "uid=u", csn(2, 2), replicated=True)
    if live:
        times = "from: '2024-03-24T12:30:00Z', until: '2024-03-24T12:30:01Z'"
        files["case.yaml"] = f"collected: [{{server: c3, {times}}}]\n"
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (row,) = found["pending"]
    assert row["dropped_since"] and bool(row["restart_unknown_after"]) is not live
    unless = "unless it was restarted since"
    assert (unless in headline(found)) is not live and ("until it is restarted" in headline(found)) is live
    (waits,) = of("PENDING_CHANGES", found["findings"])
    assert ("where its errors log ends" in waits["summary"]) is not live
    (back,) = of("CLEANED_ORIGIN_BACK", found["findings"])
    assert ("ends too early" in back["summary"]) is not live
    told = story(case, csn(9, 1))
    assert any("unless it was restarted after" in one["says"] for one in told["servers"]) is not live
    assert any("unless restarted since" in one for one in plan(case).open) is not live
    said = markdown(whole_report(Incident(case)))
    assert ("unless restarted since" in said) is not live and ("until a restart" in said) is live


def behind_a_hub(**had: tuple[int, int]) -> dict[str, Any]:
    """The hub c3 cleaned replica ID 1, and c4 is behind it; `had` of this ID is what c4 claims of it."""
    files = comes_back((5, CLEANED)) | listening("c4")
    files["c4.replica.ldif"] = replica(65535, elements(claims(r2=(1, 2), **had)), flags=0)
    files["c3.replica.ldif"] = replica(65535, elements(claims(r2=(1, 2))), flags=1)
    files["c3.changelog.ldif"] = changelog([csn(1, 2), csn(2, 2)])
    files["c3.agreements.ldif"] = agreement("to-c4", 38904)
    return files


def test_what_a_hub_drops_does_not_come_through_it(tmp_path: Path) -> None:
    """s1 would send to the hub c3, which drops it: c4, behind the hub, gets nothing of it through the hub."""
    found = diagnose(case_of(tmp_path, behind_a_hub()))
    assert {row["server"]: (row["suppliers"], row["through"]) for row in found["pending"]} == {
        "c3": (["s1"], []),
        "c4": ([], []),
    }
    assert "on the way" not in headline(found)


def test_no_server_is_filled_from_a_hub_that_cleaned_an_id_and_may_lack_its_changes(tmp_path: Path) -> None:
    """c4 claims replica ID 1 up to second 2: whether the hub had what came up to the cleaning, nothing tells."""
    files = behind_a_hub(r1=(0, 2))
    left = [csn(1, 2), csn(2, 2), *(csn(second, 1) for second in range(6, 10))]  # what was made before it is in no log
    files |= {f"{name}.changelog.ldif": changelog(left) for name in ("s1", "s2")}
    files["s1.access.log"] = "".join(answered(second, "uid=u,ou=people", csn(second, 1)) for second in range(10))
    planned = plan(case_of(tmp_path, files))
    waits = {(row["server"], row["pending"]) for row in planned.before}
    assert not planned.steps and waits == {("s1", 0), ("s2", 0), ("c3", 4), ("c4", 7)}
    assert {(row["server"], row["pending"]) for row in planned.after} == waits
    assert any("4 changes do not arrive at c3, for c3 drops them" in line for line in planned.open)
    assert any("REINIT_REQUIRED c4" in line and "does not bring 7 changes" in line for line in planned.open)


def test_logs_are_read_once_for_what_a_server_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(evidence: Any, server: str) -> Any:
        asked.append(server)
        return read(evidence, server)

    read = dropped_changes._remembered
    monkeypatch.setattr(dropped_changes, "_remembered", counted)
    files = comes_back((5, CLEANED))
    files["c3.replica.ldif"] = replica(65535, elements({}), flags=0)
    assert len(diagnose(case_of(tmp_path, files))["pending"]) == 2
    assert asked.count("c3") == 1


def test_a_plan_does_not_take_dropped_changes_for_coming(tmp_path: Path) -> None:
    planned = plan(case_of(tmp_path, comes_back((5, CLEANED))))
    said = "\n".join(planned.open)
    assert "4 changes do not arrive at c3, for c3 drops them: restart c3" in said and "way to c3" not in said
    assert not planned.steps
    assert [row["pending"] for row in planned.after if row["server"] == "c3"] == [4]


def test_no_plan_refills_a_server_because_it_drops_changes(tmp_path: Path) -> None:
    """The link is switched off, and whether s1 is meant to take part a person decides. To initialise c3 would not end that."""
    files = comes_back((5, CLEANED))
    files["s1.agreements.ldif"] = agreement("to-s2", 38902) + agreement("to-c3", 38903, enabled=False)
    planned = plan(case_of(tmp_path, files))
    said = "\n".join(planned.open)
    assert "4 changes do not arrive at c3, for c3 drops them" in said and "restart c3" in said
    assert not planned.steps and any(line.startswith("LINK_DISABLED to-c3") for line in planned.left)
    assert planned.unmended == 1
    assert [row["pending"] for row in planned.after if row["server"] == "c3"] == [4]


def test_a_plan_that_cannot_begin_still_names_what_is_dropped(tmp_path: Path) -> None:
    """Data of two beginnings: only a person can decide, and of what c3 drops the plan has no sentence of its own."""
    files = comes_back((5, CLEANED)) | listening("s4")
    files["s4.replica.ldif"] = replica(4, elements(claims(r4=(1, 2)), OTHER))
    files["s4.changelog.ldif"] = changelog([csn(1, 4), csn(2, 4)], own_entries=True)
    planned = plan(case_of(tmp_path, files))
    assert any("only a person can tell" in one for one in planned.open), planned.open
    (line,) = (one for one in planned.left if one.startswith("CLEANED_ORIGIN_BACK"))
    assert "restart c3" in line


def test_the_story_of_a_dropped_change_says_so(tmp_path: Path) -> None:
    told = story(case_of(tmp_path, comes_back((5, CLEANED))), csn(9, 1))
    (one,) = (one for one in told["servers"] if one["server"] == "c3")
    assert (one["verdict"], one["rule"]) == ("pending", "dropped_here")
    assert "drops its changes until it is restarted" in one["says"]


# --- one of two links to a server leaves attributes out

FRACTIONAL = "nsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE mail\n\n"


def by_luck(*, other: bool) -> dict[str, Any]:
    """s3 lacks a mail; s1 leaves mail out on the way there, and s2 sends it, or has no link there."""
    right, wrong = [entry("uid=anna", 1, f"mail;vucsn-{csn(2, 1)}: a@example.com")], [entry("uid=anna", 1)]
    files = mesh({"r1": (1, 9), "r2": (1, 2)}, {"s1": right, "s2": right, "s3": wrong}, {})
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(1, 9), r2=(1, 2))), flags=0)
    del files["s3.agreements.ldif"]
    left = agreement("s1-to-s3", 38903).rstrip("\n") + f"\n{FRACTIONAL}"
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + left
    files["s2.agreements.ldif"] = agreement("s2-to-s1", 38901) + (agreement("s2-to-s3", 38903) if other else "")
    return files | listening("s3")


def contents_of(tmp_path: Path, files: dict[str, Any]) -> Contents:
    (contents,) = context_of(case_of(tmp_path, files))[0].verdicts.contents
    return contents


def test_an_attribute_that_one_way_lets_through_has_to_be_there(tmp_path: Path) -> None:
    alone = contents_of(tmp_path / "alone", by_luck(other=False))
    assert (alone.excluded["s3"], alone.fractional.by_luck("s3")) == ({"mail"}, [])
    both = contents_of(tmp_path / "both", by_luck(other=True))
    (unlike,) = both.fractional.by_luck("s3")
    assert (both.excluded["s3"], unlike.link.name, unlike.left_out) == (frozenset(), "s1-to-s3", {"mail"})
    (one,) = of("MISSED_CHANGE", findings(tmp_path / "found", by_luck(other=True)))
    assert one["fix"][0]["repair"].startswith(
        "first let all agreements to s3 exclude the same attributes: s1-to-s3 of s1"
    )
    assert not of("MISSED_CHANGE", findings(tmp_path / "healthy", by_luck(other=False)))


def test_nothing_is_written_or_sent_over_a_link_that_leaves_out_what_another_one_sends(tmp_path: Path) -> None:
    """What is written again on s1 may come over s1-to-s3 first, and is passed over there."""
    files = by_luck(other=True)
    log = logged(csn(2, 1), 1, "uid=anna", "add: mail\nmail: a@example.com\n-\n")
    last = logged(csn(9, 1), 9, "uid=end", "replace: sn\nsn: x\n-\n")
    planned = plan(case_of(tmp_path, files | {f"{name}.changelog.ldif": log + last for name in ("s1", "s2")}))
    ways = {one.way: one.refused for one in planned.courses}
    why = "s1-to-s3 of s1 excludes mail, which another one sends to s3: they have to exclude the same first"
    # Filled from s2 it would have all, and lose the next value again.
    assert [ways[way] for way in ("rewrite", "initialise-from-s1", "initialise-from-s2")] == [why] * 3
    assert [one["left_out"] for one in planned.servers] == [[], [], []]


def test_what_was_made_after_a_log_was_read_is_on_its_way(tmp_path: Path) -> None:
    """The vector of s1 was read after its log, and its results after that: s2 waits for 7 changes, two of them in no log."""
    made = changelog([csn(second, 1) for second in range(1, 11)])
    files = (
        {
            "s1.replica.ldif": replica(1, elements(claims(r1=(1, 12)))),
            "s1.changelog.ldif": made,
            "s1.access.log": "".join(answered(second, "uid=u,ou=people", csn(second, 1)) for second in range(1, 13)),
            "s1.agreements.ldif": agreement("s1-to-s2", 38902),
            "s2.replica.ldif": replica(2, elements(claims(r1=(1, 5)))),
            "s2.changelog.ldif": changelog([csn(second, 1) for second in range(1, 6)]),
            "s2.agreements.ldif": agreement("s2-to-s1", 38901),
        }
        | listening("s1")
        | listening("s2")
    )
    case = case_of(tmp_path, files)
    (row,) = diagnose(case)["pending"]
    assert (row["count"], row["available"], row["gone"], row["suppliers"]) == (7, 5, 0, ["s1"])
    planned = plan(case)
    assert not planned.steps
    assert any(one.startswith("7 changes are on their way to s2") for one in planned.open), planned.open


@pytest.mark.parametrize("back", [True, False])
def test_on_a_busy_mesh_a_link_is_switched_on_and_nobody_is_filled(back: bool, tmp_path: Path) -> None:
    """s1 -> s3 -> s2, and back or not: the first link is off, and s1 made 11 and 12 after its log had been read."""
    seen = {"s1": (12, 10), "s3": (8, 8), "s2": (5, 5)}
    files: dict[str, Any] = {}
    for name, (claimed, written) in seen.items():
        made = [csn(second, 1) for second in range(1, written + 1)]
        files |= {f"{name}.replica.ldif": replica(int(name[1]), elements(claims(r1=(1, claimed))))}
        files |= {f"{name}.changelog.ldif": changelog(made)} | listening(name)
    files["s1.access.log"] = "".join(answered(second, "uid=u,ou=people", csn(second, 1)) for second in range(1, 13))
    files["s1.agreements.ldif"] = agreement("s1-to-s3", 38903, enabled=False)
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902) + agreement("s3-to-s1", 38901)
    if back:
        files["s2.agreements.ldif"] = agreement("s2-to-s3", 38903)
    planned = plan(case_of(tmp_path, files))
    assert [step.repair for step in planned.steps] == ["enable"]
    on_the_way = [one.partition(" over links")[0] for one in planned.open if "on their way" in one]
    assert on_the_way == ["3 changes are on their way to s2,"]


def test_who_gets_nothing_behind_a_closed_link_is_sent_to_that_link(tmp_path: Path) -> None:
    """s1 -> s3 runs, and s3 has yet to get what s1 made; s3 -> s2 is off."""
    files: dict[str, Any] = {
        "s1.agreements.ldif": agreement("s1-to-s3", 38903),
        "s3.agreements.ldif": agreement("s3-to-s2", 38902, enabled=False) + agreement("s3-to-s1", 38901),
    }
    for name, last in (("s1", 10), ("s3", 5), ("s2", 5)):
        files |= {f"{name}.replica.ldif": replica(int(name[1]), elements(claims(r1=(1, last))))} | listening(name)
        files[f"{name}.changelog.ldif"] = changelog([csn(second, 1) for second in range(1, last + 1)])
    (waits,) = (one for one in of("PENDING_CHANGES", findings(tmp_path, files)) if one["server"] == "s2")
    assert [fix["repair"] for fix in waits["fix"]] == ["first do what is said of s3-to-s2"]
