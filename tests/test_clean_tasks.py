"""Tasks that clean a replica ID: those that do not end, and those that clean the one of a server that lives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, listening, of, plain_line, stamp, status, with_status, zulu
from entry_samples import answered, entry, export
from link_samples import NO_CONNECTION, not_connected
from link_samples import mesh as failing_mesh
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.repair.planner import plan


def equal_servers() -> dict[str, str]:
    return pair_of_servers(4, 4)


def waits(second: float, wait: int, rid: int = 7) -> str:
    return plain_line(second, f"CleanAllRUV Task (rid {rid}): Not all replicas online, retrying in {wait} seconds...")


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ([waits(0, 10), waits(10, 20)], "info"),
        ([waits(0, 10), waits(10, 20), waits(310, 40)], "warning"),
        ([waits(0, 7200)], "warning"),
        ([waits(0, 7200), plain_line(9, "CleanAllRUV Task (rid 7): Successfully cleaned rid(7)")], None),
        ([waits(0, 7200), plain_line(9, "CleanAllRUV Task (rid 8): Successfully cleaned rid(8)")], "warning"),
    ],
)
def test_a_clean_task_that_has_not_ended(lines: list[str], severity: str | None, tmp_path: Path) -> None:
    found = of("CLEAN_HANGING", findings(tmp_path, equal_servers() | {"s1.errors.log": "".join(lines)}))
    told = [(severity, "s1", "7", "")] if severity else []
    assert [(one["severity"], one["server"], one["origin"], one["root"]) for one in found] == told


def test_a_clean_task_for_the_replica_id_of_a_server_is_to_be_ended_first(tmp_path: Path) -> None:
    found = diagnose(case_of(tmp_path, equal_servers() | {"s1.errors.log": waits(0, 10, rid=2)}))
    (one,) = of("CLEAN_HANGING", found["findings"])
    assert headline(found).startswith("A task on s1 is to clean replica ID 2, which is that of s2; ")
    assert one["severity"] == "error" and "abort-cleanallruv" in one["fix"][0]["repair"]


@pytest.mark.parametrize("remembered", [3, 4])
def test_the_replica_id_of_a_server_that_is_down_is_its_own(remembered: int, tmp_path: Path) -> None:
    """Seen on 3.1.2: the advice was to start s3, and the task went on as soon as s3 ran."""
    files: dict[str, Any] = equal_servers() | listening("s3") | {"s3.DOWN": ""}
    ruv = elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 3)))
    last = f"s1-to-s3;localhost;38903;{remembered};{csn(3, 1)}"
    files["s1.replica.ldif"] = replica(1, ruv, sends_to=[last])
    files["s1.errors.log"] = waits(0, 10, rid=3)
    files["s1.agreements.ldif"] += with_status(agreement("s1-to-s3", 38903), status(-1, "down", "red", 5, 6))
    (hanging,) = of("CLEAN_HANGING", findings(tmp_path, files))
    own = remembered == 3
    assert hanging["severity"] == ("error" if own else "info")
    assert hanging["root"] == ("a task on s1 is to clean replica ID 3, which is that of s3" if own else "")
    assert ("abort-cleanallruv" in hanging["fix"][0]["repair"]) is own


@pytest.mark.parametrize("restarted", [False, True])
def test_who_cleaned_the_replica_id_of_a_server_already_is_restarted(restarted: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: the others drop what the server writes until each was restarted, whether the last task is ended or not."""
    done = plain_line(8, "CleanAllRUV Task (rid 2): Successfully cleaned rid(2)")
    done += f"{stamp(9)} - INFO - main - 389-Directory/2.3.1 B2025.016.1616 starting up\n" if restarted else ""
    (hanging,) = of(
        "CLEAN_HANGING",
        findings(tmp_path, equal_servers() | {"s1.errors.log": waits(0, 10, rid=2), "s2.errors.log": done}),
    )
    assert (
        "; s2 cleaned it already, and was not started since (by its errors log)" in hanging["summary"]
    ) is not restarted
    assert ("then restart s2" in hanging["fix"][0]["repair"]) is not restarted


def test_the_element_of_a_live_replica_id_goes_by_its_cleaning(tmp_path: Path) -> None:
    """s2 lives, and replica ID 2 was cleaned: its element is back with one CSN, behind that of s1, and s1 names it no more."""
    files: dict[str, Any] = equal_servers() | {"s1.errors.log": waits(0, 10, rid=2)}
    first, *_ = elements(claims(r1=(0, 9)))[1:]
    generation = elements({})
    files["s1.replica.ldif"] = replica(1, [*generation, first])
    files["s2.replica.ldif"] = replica(
        2, [*generation, first, f"{{replica 2 ldap://localhost.localdomain:38902}} {csn(20, 2)}"]
    )
    told = status(11, "Unable to acquire replica: the replica has the same Replica ID as this one", "red", 5, 6)
    files["s2.agreements.ldif"] = with_status(agreement("to-s1", 38901), told)
    anna = entry("uid=anna", 1)
    files["s1.entries.ldif"] = export([*generation, first], [anna])
    new = entry("uid=new", 5).replace(csn(1, 1), csn(20, 2))
    files["s2.entries.ldif"] = export([*generation, first], [anna, new])
    found = findings(tmp_path, files)
    (broken,) = (finding for finding in of("BROKEN_VECTOR", found) if finding["server"] == "s2")
    assert broken["fix"][0]["repair"] == "do what CLEAN_HANGING says of s1"
    (failing,) = of("LINK_FAILING", found)
    assert "where its own, of replica ID 2, should stand" in failing["summary"]
    assert [step["repair"].partition(",")[0] for step in failing["fix"]][1:] == [
        "restart s2",
        "then start the agreement again",
    ]
    (differs,) = of("ENTRIES_DIFFER", found)
    assert "and the vector of s1 does not name origin 2" in differs["summary"]
    assert "write" not in str([step["repair"] for step in differs["fix"]])


@pytest.mark.parametrize(("had", "cleaned", "lost"), [(5, 30, True), (20, 30, False), (5, 15, False)])
def test_changes_that_logs_show_of_a_cleaned_replica_id_are_lost_to_who_lacked_them(
    had: int, cleaned: int, lost: bool, tmp_path: Path
) -> None:
    """Seen on 2.3.1: s3, which alone has the last change of replica ID 7, is down, and nothing was said of it."""
    done = plain_line(cleaned, "CleanAllRUV Task (rid 7): Successfully cleaned rid(7)")
    files: dict[str, Any] = equal_servers() | {"s1.errors.log": done, "s3.DOWN": ""}
    for name, seconds in (("s1", (5, had)), ("s3", (5, 20))):
        files[f"{name}.access.log"] = "".join(
            answered(at, "uid=u", csn(at, 7), replicated=True) for at in dict.fromkeys(seconds)
        ) + answered(40, "uid=u", csn(40, 1))
    found = diagnose(case_of(tmp_path, files))
    losses = of("CLEAN_FORCED_LOSS", found["findings"])
    assert [one["items"] for one in losses] == [[csn(5, 7), csn(20, 7)]] * lost
    if lost:
        assert "while s1 had its changes up to" in losses[0]["summary"] and "and s3 up to" in losses[0]["summary"]
        assert "as the entries of s3 show them" in losses[0]["fix"][0]["repair"]
        assert headline(found).startswith("Replica ID 7 was cleaned while s1 lacked changes of it; ")


def cleaned_beside_s3(**more: str) -> dict[str, Any]:
    """s1 cleaned replica ID 7 at 30, and its log ends with the change of 5; s3 applied the one of 20, too, and is down."""
    done = plain_line(30, "CleanAllRUV Task (rid 7): Successfully cleaned rid(7)")
    files: dict[str, Any] = equal_servers() | {"s1.errors.log": done, "s3.DOWN": ""}
    logs = {"s1": [(5, 7), (40, 1)], "s3": [(5, 7), (20, 7)]}
    for name, applied in logs.items():
        lines = (answered(at, "uid=u", csn(at, rid), replicated=True) for at, rid in applied)
        files[f"{name}.access.log"] = "".join(lines)
    return files | more


@pytest.mark.parametrize("gone", ["nothing", "the end of the log", "what the holder had"])
def test_silence_of_a_log_that_ends_before_a_cleaning_proves_no_loss(gone: str, tmp_path: Path) -> None:
    """Nor does an answer of before a filling prove that the server still has the change."""
    files = cleaned_beside_s3()
    if gone == "the end of the log":
        files["s1.access.log"] = answered(5, "uid=u", csn(5, 7), replicated=True)
    if gone == "what the holder had":
        begun = f"nsds5replicaLastInitStart: {zulu(25)}\nnsds5replicaLastInitEnd: {zulu(26)}\n"
        files["s1.agreements.ldif"] += agreement("s1-to-s3", 38903).rstrip("\n") + f"\n{begun}\n"
        del files["s3.DOWN"]
        files |= listening("s3") | {"s3.replica.ldif": replica(65535, elements(claims(r1=(0, 9), r2=(1, 2))), flags=0)}
    losses = of("CLEAN_FORCED_LOSS", findings(tmp_path, files))
    assert bool(losses) is (gone == "nothing")


def test_entries_decide_whether_anything_is_lost_by_a_cleaning(tmp_path: Path) -> None:
    ruv, anna = elements(claims(r1=(0, 9), r2=(1, 2))), entry("uid=anna", 1)
    new = entry("uid=new", 5).replace(csn(1, 1), csn(20, 7))
    for number, mine in enumerate(([anna], [anna, new])):
        shown = {"s1.entries.ldif": export(ruv, mine), "s3.entries.ldif": export(ruv, [anna, new])}
        files = cleaned_beside_s3(**shown)
        del files["s3.DOWN"]
        files["s3.replica.ldif"] = replica(65535, ruv, flags=0)
        found = findings(tmp_path / str(number), files)
        losses = of("CLEAN_FORCED_LOSS", found)
        assert [one["server"] for one in losses] == ["s1"] * (not number)
        if losses:
            assert losses[0]["fix"][0]["repair"] == "do what ENTRIES_DIFFER says of s1"
            assert [one["server"] for one in of("ENTRIES_DIFFER", found)] == ["s1"]


@pytest.mark.parametrize("rid", [3, 7])
def test_a_server_whose_replica_id_was_cleaned_is_not_just_started(rid: int, tmp_path: Path) -> None:
    """Seen on 3.1.2: "start c" was the advice, and as it made changes again: "stop c, and delete its agreements"."""
    files: dict[str, Any] = equal_servers() | listening("s3") | {"s3.DOWN": ""}
    files["s1.errors.log"] = plain_line(9, f"CleanAllRUV Task (rid {rid}): Successfully cleaned rid({rid})")
    ruv = elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 3)))
    files["s2.replica.ldif"] = replica(2, [one.replace("localhost.localdomain", "localhost") for one in ruv])
    told = status(-1, "Can't contact LDAP server", "red", 5, 6)
    files["s1.agreements.ldif"] += with_status(agreement("s1-to-s3", 38903), told)
    (failing,) = (one for one in of("LINK_FAILING", findings(tmp_path, files)) if one["link"] == "s1-to-s3")
    asked = failing["fix"][0]["repair"].startswith(
        "first find out whether s3 is to take part again: s1 cleaned origin 3"
    )
    assert asked is (rid == 3)


@pytest.mark.parametrize("told", [True, False])
def test_what_is_shown_of_a_dead_replica_id_that_was_cleaned_is_written_again(told: bool, tmp_path: Path) -> None:
    """Seen on 2.3.1: "find out first why the RUV does not name it", where the errors log of the same folder tells."""
    files: dict[str, Any] = equal_servers()
    done = plain_line(30, "CleanAllRUV Task (rid 7): Successfully cleaned rid(7)") if told else ""
    files |= {"s1.errors.log": plain_line(0, "INFO - slapd_daemon - slapd started.") + done}
    generation, *named = elements(claims(r1=(0, 9), r2=(1, 2)))
    for rid in (1, 2):
        files[f"s{rid}.replica.ldif"] = replica(rid, [generation, *named])
    files["s3.replica.ldif"] = replica(65535, [generation, *named], flags=0)
    anna, new = entry("uid=anna", 1), entry("uid=new", 5).replace(csn(1, 1), csn(20, 7))
    files["s1.entries.ldif"] = export([generation, *named], [anna])
    files["s3.entries.ldif"] = export([generation, *named], [anna, new])
    (differs,) = (one for one in of("ENTRIES_DIFFER", findings(tmp_path, files)) if one["server"] == "s1")
    steps = [step["repair"] for step in differs["fix"]]
    if not told:
        assert steps[0].startswith("find out first why the RUV of s1 does not name origin 7") and len(steps) == 1
        return
    assert (
        ", and s1 cleaned origin 7 at 2024-03-24 10:27:42 UTC, of which the others show changes" in differs["summary"]
    )
    assert steps[0] == "restart s1, unless it was restarted since the cleaning"
    assert "as s3 shows them" in steps[1] and differs["fix"][1]["caution"].startswith(
        "do not initialise s3 before that"
    )


def test_nothing_that_lets_such_a_task_go_on_is_advised_before(tmp_path: Path) -> None:
    """s2 is behind, and a link to it fails: once it is mended, the task goes on."""
    logs = waits(0, 10, rid=2) + not_connected(9, "localhost:38902")
    case = case_of(tmp_path, failing_mesh(NO_CONNECTION, logs))
    told = diagnose(case)["findings"]
    for code in ("LINK_FAILING", "PENDING_CHANGES"):
        (one,) = of(code, told)
        assert one["fix"][0]["repair"] == "do what CLEAN_HANGING says first"


def test_a_clean_task_that_two_snapshots_show(tmp_path: Path) -> None:
    task = f"nsds5ReplicaCleanRUV: 7:{csn(0, 7)}:no:1\n"
    before, now = equal_servers(), equal_servers()
    before["s1.replica.ldif"] = before["s1.replica.ldif"].rstrip("\n") + f"\n{task}\n"
    assert not of("CLEAN_HANGING", findings(tmp_path / "gone", before, now))
    now["s1.replica.ldif"] = before["s1.replica.ldif"]
    (one,) = of("CLEAN_HANGING", findings(tmp_path / "there", before, now))
    assert (one["server"], one["origin"], one["suffix"]) == ("s1", "7", SUFFIX)


def sends(second: float, rid: int = 2, step: str = "Sending cleanAllRUV task to all the replicas...") -> str:
    return plain_line(second, f"INFO - NSMMReplicationPlugin - CleanAllRUV Task (rid {rid}): {step} ")


DONE, ABORTED = "Successfully cleaned rid(2).", "Successfully aborted task for all replicas"


@pytest.mark.parametrize(
    ("log", "drops"),
    [
        (sends(2), True),
        (sends(2) + sends(3, step="Cleaning local ruv's..."), True),
        (sends(2) + sends(3, step=DONE), False),
        (sends(2) + sends(3, step=ABORTED), False),
        (sends(2) + f"{stamp(3)} - INFO - main - 389-Directory/3.1.2 B2025.016.1616 starting up\n", False),
        (sends(2, step="Waiting for all the replicas to be online..."), False),
        (sends(2, rid=7), False),
    ],
)
def test_while_a_task_cleans_a_replica_id_its_server_drops_the_changes_of_it(
    log: str, drops: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: such a task hung, and 179 changes were "on the way", which the server answered and dropped."""
    files: dict[str, Any] = equal_servers() | {"s1.errors.log": log}
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(0, 4))))
    files["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 4), r2=(3, 9))))
    files["s2.changelog.ldif"] = changelog([*(csn(at, 1) for at in range(5)), *(csn(at, 2) for at in range(3, 10))])
    case = case_of(tmp_path, files)
    found = diagnose(case)
    (row,) = (row for row in found["pending"] if row["server"] == "s1")
    hanging = of("CLEAN_HANGING", found["findings"])
    assert (row["dropped_by_task"], bool(row["dropped_since"])) == (drops, drops)
    assert bool(hanging) is drops and not of("CLEANED_ORIGIN_BACK", found["findings"])
    if drops:
        assert "do not arrive at s1, which drops them until the cleaning there has ended" in headline(found)
        assert headline(found).startswith("A task on s1 is to clean replica ID 2, which is that of s2; ")
        (waiting,) = of("PENDING_CHANGES", found["findings"])
        assert [fix["repair"] for fix in waiting["fix"]] == ["do what CLEAN_HANGING says first"]
        planned = plan(case)
        assert not planned.steps and any("do what CLEAN_HANGING says on s1" in line for line in planned.open)


def test_a_task_that_the_entry_names_is_told_where_its_replica_id_is_in_use(tmp_path: Path) -> None:
    """The value has no CSN on the versions of today."""
    files = equal_servers()
    task = f"nsds5ReplicaCleanRUV: 2:yes:0:{SUFFIX}\n"
    files["s1.replica.ldif"] = files["s1.replica.ldif"].replace("nsDS5Flags", f"{task}nsDS5Flags")
    (hanging,) = of("CLEAN_HANGING", findings(tmp_path / "live", files))
    assert (hanging["severity"], hanging["server"], hanging["origin"], hanging["suffix"]) == (
        "error",
        "s1",
        "2",
        SUFFIX,
    )
    files["s1.replica.ldif"] = files["s1.replica.ldif"].replace("RUV: 2:", "RUV: 7:")
    assert not of("CLEAN_HANGING", findings(tmp_path / "dead", files))


@pytest.mark.parametrize(("cleaned", "named"), [(True, False), (True, True), (False, False)])
def test_a_server_whose_replica_id_others_cleaned_is_named_as_it_takes_part_again(
    cleaned: bool, named: bool, tmp_path: Path
) -> None:
    """Seen on 3.1.2: it was started again, and only links without a record were told. `named`: s1 got a change of it since."""
    both = claims(r1=(0, 9), r2=(0, 9))
    done = plain_line(30, "CleanAllRUV Task (rid 2): Successfully cleaned rid(2)") if cleaned else ""
    files: dict[str, Any] = {
        "s1.replica.ldif": replica(1, elements(both if named else claims(r1=(0, 9)))),
        "s1.errors.log": plain_line(0, "INFO - slapd_daemon - slapd started.") + done,
        "s2.replica.ldif": replica(2, elements(both)),
    }
    found = diagnose(case_of(tmp_path, files))
    told = of("CLEANED_ORIGIN_ALIVE", found["findings"])
    assert [one["server"] for one in told] == ["s2"] * (cleaned and not named)
    if told:
        assert headline(found).startswith("Replica ID 2 was cleaned on s1, and s2 has it")
