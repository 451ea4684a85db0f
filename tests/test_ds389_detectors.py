"""What is looked for in 389 Directory Server alone: for each finding a mesh that has it, and the ones beside it that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from collected import SHARED, needs_collected_files
from detector_samples import agreement_line, findings, listening, of, plain_line, stamp, status, with_status
from entry_samples import answered, export, mesh
from link_samples import refused_change
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, pair_of_servers, replica

from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.diagnosis.findings_text import together

Files = dict[str, Any]


def equal_servers() -> Files:
    return pair_of_servers(4, 4)


# --- anchors


def trimmed(*, missing: bool = False) -> Files:
    """s2 is behind, and s1 no longer has the record that s2 ends with; its log says how far it was trimmed."""
    files = pair_of_servers(9, 4)
    kept = (
        [csn(second, 1) for second in range(10) if second != 4]
        if missing
        else [csn(second, 1) for second in range(7, 10)]
    )
    purge = [f"{{replica 1 ldap://x:1}} {csn(0, 1)} {csn(2 if missing else 7, 1)} 00000000", "{replica 2 ldap://x:1}"]
    files["s1.changelog.ldif"] = changelog([*kept, csn(1, 2), csn(2, 2)], purge=purge)
    return files


def not_located(second: float, position: str, link: str = "to-s2") -> str:
    return agreement_line(
        second, link, f"Can't locate CSN {position} in the changelog (DB rc=-12797).", "clcache_load_buffer"
    )


@pytest.mark.parametrize("missing", [False, True])
def test_an_anchor_that_is_gone(missing: bool, tmp_path: Path) -> None:
    files = trimmed(missing=missing)
    files["s1.errors.log"] = (
        not_located(10, csn(4, 1)) + not_located(13, csn(4, 1)) + not_located(14, csn(4, 1), "other")
    )
    found = findings(tmp_path, files)
    (one,) = of("ANCHOR_MISSING" if missing else "ANCHOR_PURGED", found)
    assert not of("ANCHOR_PURGED" if missing else "ANCHOR_MISSING", found)
    assert (one["severity"], one["server"], one["link"], one["items"]) == ("error", "s1", "to-s2", [csn(4, 1)])
    assert [row["code"] for row in one["evidence"] if "code" in row] == ["anchor_not_located"] * 2
    assert one["evidence"][-1] == {"failures": 2}
    # Both servers were collected, and only s1 has what waits: no third one could send it.
    assert [fix["repair"].startswith("look for a supplier") for fix in one["fix"]] == [False]


def test_another_supplier_that_can_serve_makes_it_a_warning(tmp_path: Path) -> None:
    files = trimmed() | {
        "s3.changelog.ldif": changelog([csn(second, 1) for second in range(10)]),
        "s3.replica.ldif": replica(3, elements(claims(r1=(0, 9)))),
        "s3.agreements.ldif": agreement("s3-to-s2", 38902),
    }
    (one,) = of("ANCHOR_PURGED", findings(tmp_path / "on", files))
    assert (one["severity"], one["fix"][0]["repair"]) == ("warning", "let s3 serve s2, then look again")
    files["s3.agreements.ldif"] = agreement("s3-to-s2", 38902, enabled=False)
    assert [one["severity"] for one in of("ANCHOR_PURGED", findings(tmp_path / "off", files))] == ["error"]


@pytest.mark.parametrize(("restored", "filled", "told"), [(5, None, True), (5, 6, False), (None, None, False)])
def test_an_anchor_may_be_gone_with_the_data_that_a_backup_replaced(
    restored: float | None, filled: float | None, told: bool, tmp_path: Path
) -> None:
    done = f"{stamp(restored)} - INFO - bdb_restore - Restore finished.\n" if restored else ""
    if filled:
        done += plain_line(
            filled, f"multisupplier_be_state_change - Replica {SUFFIX} is going offline; disabling replication"
        )
        imported = "bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
        done += f"{stamp(filled)} - INFO - {imported}\n"
        done += plain_line(
            filled, f"multisupplier_be_state_change - Replica {SUFFIX} is coming online; enabling replication"
        )
    (one,) = of(
        "ANCHOR_MISSING", findings(tmp_path, trimmed(missing=True) | {"s1.errors.log": done or not_located(1, "x")})
    )
    assert ("the data of s1 came from a backup or a file at 2024-03-24 10:27:17 UTC" in one["summary"]) is told


def test_servers_without_a_link_need_no_anchor(tmp_path: Path) -> None:
    files = trimmed() | {"s1.agreements.ldif": ""}
    assert not of("ANCHOR_PURGED", findings(tmp_path, files))


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        ([], "error"),
        ([("lost", 3)], "info"),  # another anchor each time: it moves
        ([("lost", 3), ("lost", 4), ("lost", 4)], "error"),
        ([("lost", 4), ("found", 4)], None),  # it was found since
        ([("found", 4), ("lost", 4)], "error"),
    ],
)
def test_a_missing_anchor_may_be_a_matter_of_a_moment(lines: Any, severity: str | None, tmp_path: Path) -> None:
    text = {
        "lost": "Can't locate CSN {} in the changelog (DB rc=-12797).",
        "found": "CSN {} found, position set for replay",
    }
    told = [
        agreement_line(10 + number, "to-s2", text[what].format(csn(second, 1)), "clcache_load_buffer")
        for number, (what, second) in enumerate(lines)
    ]
    found = of("ANCHOR_MISSING", findings(tmp_path, trimmed(missing=True) | {"s1.errors.log": "".join(told)}))
    assert [one["severity"] for one in found] == ([severity] if severity else [])


def test_a_vector_that_was_read_before_its_changelog_asks_for_no_lost_anchor(tmp_path: Path) -> None:
    files = trimmed()
    files["s2.changelog.ldif"] = changelog([*(csn(second, 1) for second in range(9)), csn(1, 2), csn(2, 2)])
    assert not of("ANCHOR_PURGED", findings(tmp_path, files))


def test_a_changelog_made_anew_is_no_reason_for_what_was_trimmed_later(tmp_path: Path) -> None:
    """The record that s2 needs is of second 4."""
    for second, severity in ((2, "info"), (6, "warning")):
        files = trimmed() | {"s1.errors.log": plain_line(second, f"replica_check_for_data_reload - {RECREATED}")}
        (one,) = of("CHANGELOG_RECREATED", findings(tmp_path / severity, files))
        assert (one["severity"], "it cannot serve s2" in one["summary"]) == (severity, severity == "warning")


RECREATED = f"Data for replica {SUFFIX} does not match the data in the changelog. Recreating the changelog file."


def test_a_changelog_that_was_made_anew(tmp_path: Path) -> None:
    files = equal_servers()
    files["s1.changelog.ldif"] = changelog([], marks=[csn(4, 1), csn(2, 2)])
    (one,) = of("CHANGELOG_RECREATED", findings(tmp_path / "marks", files))
    assert (one["severity"], one["evidence"][0]["dummy_records"]) == ("info", 2)
    told = equal_servers() | {"s1.errors.log": plain_line(5, f"replica_check_for_data_reload - {RECREATED}")}
    (one,) = of("CHANGELOG_RECREATED", findings(tmp_path / "told", told))
    assert (one["severity"], one["server"]) == ("info", "s1")
    files = trimmed()
    files["s1.changelog.ldif"] = changelog([], marks=[csn(9, 1), csn(2, 2)])
    (one,) = of("CHANGELOG_RECREATED", findings(tmp_path / "needed", files))
    assert (one["severity"], one["summary"].endswith("it cannot serve s2")) == ("warning", True)


def dbscan(*records: tuple[str, int]) -> str:
    """A dump of the changelog: position and the day on which it was logged."""
    lines = []
    for position, day in records:
        lines += [
            f"dbid: {position}",
            "\tencrypted: no",
            f"\treplgen: {0x66000000 + day * 86400} x",
            f"\tcsn: {position}",
        ]
        lines += ["\tuniqueid: 00000001-00000000-00000000-00000001", f"\tdn: uid=u,{SUFFIX}", "\toperation: delete", ""]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("newest", "held", "due"),
    [
        (29, False, 0),  # not old enough
        (40, False, 2),  # the newest of replica ID 2 stays for ever
        (40, True, 0),  # the consumer still needs them
    ],
)
def test_trimming_that_stopped(newest: int, held: bool, due: int, tmp_path: Path) -> None:
    files = equal_servers()
    records = [(csn(0, 1), 0), (csn(1, 2), 0), (csn(2, 1), 1), (csn(3, 1), newest), (csn(4, 1), newest)]
    files["s1.changelog.ldif"] = dbscan(*records)
    remembered = elements(claims(r1=(0, 0 if held else 4), r2=(1, 1)))
    files["s1.replica.ldif"] = replica(1, elements(claims(r1=(0, 4), r2=(1, 1))))
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, remembered=remembered)
    found = of("TRIM_STOPPED", findings(tmp_path, files))
    assert len(found) == bool(due)
    for one in found:
        assert (one["severity"], one["origin"], one["items"]) == ("warning", "1", [csn(0, 1)])
        assert [row["position"] for row in one["evidence"]] == [csn(0, 1), csn(2, 1)]


# --- who is who


@pytest.mark.parametrize(
    ("value", "broken"),
    [
        (f"{{replica 3 ldap://x:1}} {csn(0, 3)}", "not two CSNs"),
        (f"{{replica 3}} {csn(0, 3)} {csn(1, 3)}", "CSNs without a URL"),
        ("{replica 3 ldap://x:1}", None),  # known, nothing of it seen
        (
            f"{{replica 3 ldap://localhost.localdomain:38901}} {csn(0, 3)} {csn(1, 3)}",
            "one host under the replica IDs 1, 3",
        ),
        (f"{{replica 2 ldap://localhost.localdomain:38902}} {csn(0, 2)} {csn(1, 2)}", "a second element"),
    ],
)
def test_a_vector_with_a_broken_element(value: str, broken: str | None, tmp_path: Path) -> None:
    files = equal_servers()
    files["s1.replica.ldif"] = replica(1, [*elements(claims(r1=(0, 4), r2=(1, 2))), value])
    found = of("BROKEN_VECTOR", findings(tmp_path, files))
    assert [one["severity"] for one in found] == ["warning"] * (broken is not None)
    assert all(str(broken) in one["summary"] and value in [row["raw"] for row in one["evidence"]] for one in found)


def test_a_server_whose_own_element_is_broken_is_restarted_and_not_cleaned(tmp_path: Path) -> None:
    files = equal_servers()
    files["s1.replica.ldif"] = replica(1, [*elements(claims(r2=(1, 2))), f"{{replica 1 ldap://x:1}} {csn(0, 1)}"])
    (one,) = of("BROKEN_VECTOR", findings(tmp_path, files))
    assert one["fix"][0]["repair"].startswith("restart s1") and "clean" not in one["fix"][0]["repair"]


def test_an_element_whose_address_the_server_does_not_know_yet_stands_in_its_export_alone(tmp_path: Path) -> None:
    """Seen on a hub of 3.1.2: it had the change of replica ID 2, and a search for its RUV left the element out."""
    files: Files = mesh({"r1": (1, 4), "r2": (2, 2)}, {"s1": [], "s2": []}, {})
    files["s1.changelog.ldif"] = files["s2.changelog.ldif"] = changelog([csn(1, 1), csn(4, 1), csn(2, 2)])
    behind = elements(claims(r1=(1, 4)))
    unnamed = f"{{replica 2}} {csn(2, 2)} {csn(2, 2)}"
    for name, rid in (("s3", 3), ("s4", 4)):
        files[f"{name}.replica.ldif"] = replica(rid, behind)
        files[f"{name}.entries.ldif"] = export([*behind, unnamed], [])
    found = diagnose(case_of(tmp_path, files))
    assert headline(found) == "No change is missing."
    told = of("BROKEN_VECTOR", found["findings"])
    assert [(one["server"], one["severity"]) for one in told] == [("s3", "info"), ("s4", "info")]
    assert all(one["fix"][0]["repair"].startswith("wait for the next changes") for one in told)


def test_of_two_replica_ids_of_one_host_the_one_that_nobody_has_is_cleaned_and_no_restart_is_promised(
    tmp_path: Path,
) -> None:
    files = equal_servers()
    value = f"{{replica 3 ldap://localhost.localdomain:38901}} {csn(0, 3)} {csn(1, 3)}"
    files["s1.replica.ldif"] = replica(1, [*elements(claims(r1=(0, 4), r2=(1, 2))), value])
    (one,) = of("BROKEN_VECTOR", findings(tmp_path, files))
    (fix,) = one["fix"]
    assert (
        fix["repair"].startswith("clean replica ID 3, which no collected server has")
        and "--replica-id 3`" in fix["repair"]
    )
    assert "restart the server" not in fix["repair"]


@pytest.mark.parametrize("version", ["2.3.1", "3.1.2"])
def test_a_cleaning_is_kept_from_a_consumer_that_it_crashes(version: str, tmp_path: Path) -> None:
    """Seen on 2.3.1: the read-only server was down as soon as the advised cleaning reached it."""
    ruv = [
        *elements(claims(r1=(0, 4), r2=(1, 2))),
        f"{{replica 3 ldap://localhost.localdomain:38901}} {csn(0, 3)} {csn(1, 3)}",
    ]
    files = equal_servers() | {"s1.replica.ldif": replica(1, ruv)}
    files["r5.replica.ldif"] = replica(65535, elements(claims(r1=(0, 4), r2=(1, 2))), flags=0)
    files["s1.agreements.ldif"] += agreement("s1-to-r5", 38905)
    starts = plain_line(1, f"INFO - main - 389-Directory/{version} B2026.125.0709 starting up")
    files["r5.errors.log"] = listening("r5")["r5.errors.log"].replace("2.3.1", version) + starts
    (one,) = of("BROKEN_VECTOR", findings(tmp_path, files))
    *first, clean = (fix["repair"] for fix in one["fix"])
    assert clean.startswith("clean replica ID 3, which no collected server has")
    off = ["first switch s1-to-r5 off until the task that cleans has ended"]
    assert first == (off if version == "2.3.1" else [])


@pytest.mark.parametrize(("number", "code"), [(11, "DUPLICATE_ORIGIN"), (2, "CLOCK_AHEAD"), (1, None), (0, None)])
def test_the_status_of_an_agreement_tells_of_identity_and_clocks(number: int, code: str | None, tmp_path: Path) -> None:
    told = status(number, "Replication error acquiring replica: x", "red", 5, 6)
    files = equal_servers() | {"s1.agreements.ldif": with_status(agreement("to-s2", 38902), told)}
    if code == "DUPLICATE_ORIGIN":
        # Where both were collected, their own entries tell which IDs they have, and a status may be old.
        assert not of(code, findings(tmp_path / "both", files))
        files = {name: text for name, text in files.items() if name.startswith("s1.")}
    found = findings(tmp_path, files)
    assert [(one["code"], one["severity"], one["link"]) for one in found] == (
        [(code, "error", "to-s2"), ("LINK_FAILING", "error", "to-s2")] if code else []
    )


# --- applying


def retry(second: float, position: str) -> str:
    text = f"Receiver failed to replay change (uniqueid 1, CSN {position}): Busy (51). Will retry later."
    return agreement_line(second, "to-s2", text, "repl5_inc_update_from_op_result")


def failed(second: float, position: str) -> str:
    text = f"process_postop - Failed to apply update ({position}) error (1).  Aborting replication session(conn=4 op=2)"
    return f"{stamp(second)} - ERR - NSMMReplicationPlugin - {text}\n"


def refused(second: float, position: str, code: int = 1) -> str:
    line = f'{stamp(second)} conn=7 op={second} MOD dn="uid=u,{SUFFIX}"\n'
    return line + f"{stamp(second)} conn=7 op={second} RESULT err={code} tag=103 nentries=0 etime=0.1 csn={position}\n"


@pytest.mark.parametrize(
    ("name", "line", "times", "second", "loops"),
    [
        ("s1.errors.log", retry, 3, 5, True),
        ("s1.errors.log", retry, 2, 5, False),
        ("s1.errors.log", retry, 5, 4, False),  # it has it: it got over it
        ("s2.errors.log", failed, 4, 5, True),
        ("s2.access.log", refused, 3, 5, True),
        ("s2.access.log", lambda second, position: refused(second, position, 32), 5, 5, False),  # skipped for good
    ],
)
def test_one_change_again_and_again(name: str, line: Any, times: int, second: int, loops: bool, tmp_path: Path) -> None:
    lines = "".join(line(10 + number, csn(second, 1)) for number in range(times))
    found = of("APPLY_RETRY_LOOP", findings(tmp_path, pair_of_servers(9, 4) | {name: lines}))
    assert [(one["severity"], one["server"], one["items"]) for one in found] == [("error", "s2", [csn(5, 1)])] * loops


def test_two_servers_that_refuse_one_change_are_told_in_one_sentence(tmp_path: Path) -> None:
    """The sentence is of each of them, and no name is replaced by words that do not fit there."""
    files: dict[str, Any] = dict(pair_of_servers(9, 4))
    files["s1.agreements.ldif"] += agreement("to-s3", 38903)
    behind = elements(claims(r1=(0, 4), r2=(1, 2)))
    files["s3.replica.ldif"] = replica(3, behind)
    lines = "".join(refused(10 + number, csn(5, 1)) for number in range(3))
    found = findings(tmp_path, files | {f"{name}.access.log": lines for name in ("s2", "s3")})
    (told,) = together(of("APPLY_RETRY_LOOP", found))
    says = f"s2 and s3: each refuses the change {csn(5, 1)}, a deletion of uid=u5,dc=example,dc=com, with 1 (operations error), "
    says += "3 times so far by its access log"
    assert told["summary"].startswith(f"{says}, and does not have it: nothing behind arrives")


def test_a_name_within_a_sentence_of_several_servers_is_replaced_by_a_word_that_fits() -> None:
    rows = [
        {"code": "X", "severity": "info", "server": name, "link": None, "origin": None, "suffix": None, "fix": []}
        | {"summary": f"{name} waits, and the log of {name} says so"}
        for name in ("s1", "s2")
    ]
    assert [one["summary"] for one in together(rows)] == ["s1 and s2: each waits, and the log of it says so"]


def test_a_loop_ends_with_a_start_of_the_consumer_until_it_is_tried_again(tmp_path: Path) -> None:
    """The disk of s2 was full; s2 was started again with room, and no supplier has come since."""
    full = "bdb_map_error - bdb_public_db_op failed with db error 28 : No space left on device"
    lines = "".join(f"{stamp(second)} - ERR - {full}\n{failed(second, csn(5, 1))}" for second in (10, 11, 12))
    begun = (
        f"{stamp(20)} - INFO - slapd_daemon - slapd started.  Listening on All Interfaces port 389 for LDAP requests\n"
    )
    told = {}
    for name, more in (("before", ""), ("started", begun), ("again", begun + failed(30, csn(5, 1)))):
        (told[name],) = of(
            "APPLY_RETRY_LOOP", findings(tmp_path / name, pair_of_servers(9, 4) | {"s2.errors.log": lines + more})
        )
    assert {name: one["severity"] for name, one in told.items()} == {
        "before": "error",
        "started": "warning",
        "again": "error",
    }
    assert told["before"]["summary"].endswith("nothing behind arrives on that link; its disk is full")
    assert "s2 refused the change" in told["started"]["summary"]
    assert told["started"]["summary"].endswith(
        "it started again at 2024-03-24 10:27:32 UTC, and no log shows an attempt since; its disk was full before"
    )
    assert told["started"]["fix"][0]["repair"].startswith(
        "collect again in some minutes; if it goes on, free room on the disk"
    )


@pytest.mark.parametrize(("second", "severity"), [(8, "error"), (20, "warning")])
def test_a_server_that_took_a_change_since_does_not_refuse_all_any_more(
    second: int, severity: str, tmp_path: Path
) -> None:
    """s2 was read-only in the seconds 10 to 12; before and afterwards it took what clients wrote."""
    refused = "".join(refused_change(moment, csn(5, 1)) for moment in (10, 11, 12))
    files = pair_of_servers(9, 4) | {
        "s1.errors.log": refused,
        "s2.access.log": answered(second, "uid=x", csn(second, 2)),
    }
    (one,) = of("APPLY_RETRY_LOOP", findings(tmp_path, files))
    assert one["severity"] == severity
    assert one["summary"].endswith("took other changes since, and no log shows an attempt after that") is (second == 20)


def test_a_loop_on_a_change_of_a_replica_that_was_cleaned_is_over(tmp_path: Path) -> None:
    """s1 and s2 forgot the replica ID 3, so nobody sends its change any more."""
    lines = "".join(refused(10 + number, csn(5, 3)) for number in range(4))
    files = pair_of_servers(9, 4) | {"s2.access.log": lines}
    assert not of("APPLY_RETRY_LOOP", findings(tmp_path / "cleaned", files))
    known = "\n".join(f"nsds50ruv: {value}" for value in elements(claims(r3=(1, 5)), None)) + "\n\n"
    files["s1.replica.ldif"] = files["s1.replica.ldif"].rstrip("\n") + "\n" + known
    assert of("APPLY_RETRY_LOOP", findings(tmp_path / "known", files))


def exported(*marks: str) -> str:
    entries = [f"dn: {SUFFIX}\nobjectClass: top\nnsUniqueId: 1-1-1-1\nentryid: 1\n"]
    for number, mark in enumerate(marks):
        name = f"uid=u{number},{SUFFIX}"
        entries.append(
            f"dn: {name}\nobjectClass;vucsn-{csn(1, 1)}: top\nnsUniqueId: 2-2-2-{number}\n"
            f"nsds5ReplConflict;vucsn-{csn(2, 1)};mdcsn-{csn(3, 1)}: {mark}\nentryid: {number + 2}\n"
        )
    return "\n".join(entries) + "\n"


def test_entries_with_a_mark_of_conflict(tmp_path: Path) -> None:
    marks = ["namingConflict (ADD) uid=a", "missingEntry", "Schema violation", *["namingConflict (ADD) uid=b"] * 12]
    (one,) = of(
        "CONFLICT_ENTRIES", findings(tmp_path / "marked", equal_servers() | {"s1.export.ldif": exported(*marks)})
    )
    assert (one["severity"], one["server"]) == ("warning", "s1")
    assert "15 entries" in one["summary"]
    assert "13 of two entries of one name" in one["summary"]
    assert one["evidence"][-1] == {"more": 5}
    assert not of("CONFLICT_ENTRIES", findings(tmp_path / "none", equal_servers() | {"s1.export.ldif": exported()}))


def test_conflicts_that_only_a_log_tells_of_are_an_information(tmp_path: Path) -> None:
    line = f"{stamp(5)} - NOTICE - NSMMReplicationPlugin - urp_fixup_add - Naming conflict ADD. Renamed existing entry to x\n"
    files = equal_servers() | {"s1.errors.log": line}
    (one,) = of("CONFLICT_ENTRIES", findings(tmp_path / "told", files))
    assert (one["severity"], one["evidence"][0]["code"]) == ("info", "naming_conflict")
    assert not of("CONFLICT_ENTRIES", findings(tmp_path / "resolved", files | {"s1.export.ldif": exported()}))


@needs_collected_files
def test_the_conflicts_of_an_incident(tmp_path: Path) -> None:
    """c2 made up a parent that it lacked, and has an entry of a class that its schema does not know; s1 has neither."""
    exports = {path.name: path.read_bytes() for path in (SHARED / "incidents" / "viii_skipped_apply").glob("*.export*")}
    (one,) = of("CONFLICT_ENTRIES", findings(tmp_path, exports))
    assert (one["server"], one["severity"]) == ("c2", "warning")
    assert {row["value"].split()[0] for row in one["evidence"]} == {"missingEntry", "Schema"}


# --- sessions


def rolled_back(*, far: bool = True, new: bool = False) -> Files:
    """s2 is behind in its own vector, and s1 remembers it as having everything, or all but the last change."""
    top = 100 if far else 9
    files = pair_of_servers(9, 4)
    spans = {**claims(r1=(0, 9)), 2: (csn(1, 2), csn(top, 2))}
    files["s1.replica.ldif"] = replica(1, elements(spans))
    files["s2.replica.ldif"] = replica(2, elements({**claims(r1=(0, 4)), 2: spans[2]}))
    remembered = elements({1: (csn(0, 1), csn(8 if new else 9, 1)), 2: spans[2]})
    files["s1.agreements.ldif"] = agreement("to-s2", 38902, remembered=remembered)
    return files


def test_a_consumer_that_was_rolled_back_is_not_contacted(tmp_path: Path) -> None:
    (one,) = of("NEVER_CONTACTED", findings(tmp_path / "far", rolled_back()))
    assert (one["severity"], one["server"], one["link"]) == ("warning", "s2", "to-s2")
    assert one["evidence"] == [{"origin": "1", "supplier": csn(9, 1), "remembered": csn(9, 1), "consumer": csn(4, 1)}]
    assert not of("NEVER_CONTACTED", findings(tmp_path / "contacted", rolled_back(new=True)))
    assert not of("NEVER_CONTACTED", findings(tmp_path / "moments", rolled_back(far=False)))
    before = rolled_back(far=False)
    before["s2.replica.ldif"] = replica(2, elements(claims(r1=(0, 7), r2=(1, 9))))
    assert of("NEVER_CONTACTED", findings(tmp_path / "went_back", before, rolled_back(far=False)))


def restored_since(*, session: float = 20, newest: int = 9) -> Files:
    """s2 was restored 40 s after the beginning, and s1, which runs, tells no RUV of it: its last session ended before that."""
    files: Files = pair_of_servers(newest, 4)
    acquired = status(0, "Replica acquired successfully", "green", session - 1, session)
    files["s1.agreements.ldif"] = with_status(agreement("to-s2", 38902), acquired)
    files["s1.errors.log"] = plain_line(90, "x")
    files["s2.errors.log"] = (
        f"{stamp(40)} - INFO - bdb_restore - Restoring file 20 (/var/lib/dirsrv/slapd-s2/db/DBVERSION)\n"
    )
    return files


def test_a_consumer_that_was_restored_since_the_last_session(tmp_path: Path) -> None:
    """It is not called on its way what nothing shows a session for; a session since, or a newer change, would be one."""
    found = findings(tmp_path / "rests", restored_since())
    (one,) = of("NEVER_CONTACTED", found)
    assert (one["severity"], one["server"], one["link"]) == ("warning", "s2", "to-s2")
    assert one["summary"].startswith("nothing shows that s1 opens a session with s2: the last one over to-s2 ended at ")
    (waits,) = of("PENDING_CHANGES", found)
    assert "s1 has them, and nothing shows that a session is begun over to-s2" in waits["summary"]
    assert waits["fix"][0]["repair"] == "do what NEVER_CONTACTED says of to-s2"
    diagnosed = diagnose(case_of(tmp_path / "again", restored_since()))
    (pair,) = (row for row in diagnosed["pairs"] if row["link"] == "to-s2")
    assert pair["would_contact"] is None
    assert "5 are waiting for s2, and nothing shows that s1 begins a session with s2" in headline(diagnosed)
    assert not of("NEVER_CONTACTED", findings(tmp_path / "since", restored_since(session=50)))
    assert not of("NEVER_CONTACTED", findings(tmp_path / "newer", restored_since(newest=45)))


def test_a_fractional_agreement_that_sends_nothing(tmp_path: Path) -> None:
    entry = agreement("to-s2", 38902).rstrip("\n")
    entry += "\nnsDS5ReplicatedAttributeList: (objectclass=*) $ EXCLUDE memberOf\n\n"
    lines = "".join(
        agreement_line(
            20 + second,
            "to-s2",
            f"Skipping update operation with no message_id (uniqueid 1, CSN {csn(second, 1)}):",
            "send_updates",
        )
        for second in range(3, 10)
    )
    files = pair_of_servers(9, 4) | {"s1.agreements.ldif": entry, "s1.errors.log": lines}
    (one,) = of("FRACTIONAL_SILENCE", findings(tmp_path / "silent", files))
    assert (one["severity"], one["link"], len(one["evidence"])) == ("info", "to-s2", 5)
    sending = f'Sending modify operation (dn="uid=u,{SUFFIX}" csn={csn(9, 1)})'
    files["s1.errors.log"] = lines + agreement_line(40, "to-s2", sending, "replay_update")
    assert not of("FRACTIONAL_SILENCE", findings(tmp_path / "sends", files))
    whole = files | {"s1.agreements.ldif": agreement("to-s2", 38902), "s1.errors.log": lines}
    assert not of("FRACTIONAL_SILENCE", findings(tmp_path / "whole", whole))


def turned_away(second: float) -> str:
    return agreement_line(
        second,
        "to-s2",
        "Unable to acquire replica: the replica is currently being updated by another supplier. Will try later",
    )


def three_suppliers() -> Files:
    """s1 and s3 both serve s2."""
    return equal_servers() | {
        "s3.replica.ldif": replica(3, elements(claims(r1=(0, 4), r2=(1, 2), r3=(0, 1)))),
        "s3.agreements.ldif": agreement("s3-to-s2", 38902),
    }


@pytest.mark.parametrize(
    ("away", "then", "severity"),
    [
        (range(0, 400, 50), "", "warning"),
        (range(0, 200, 20), "", None),  # not for long
        (range(0, 400, 200), "", None),  # not often
        (range(0, 400, 50), agreement_line(401, "to-s2", "Replica was successfully acquired."), "info"),
    ],
)
def test_a_supplier_that_does_not_get_to_its_turn(away: range, then: str, severity: str | None, tmp_path: Path) -> None:
    files = three_suppliers() | {"s1.errors.log": "".join(map(turned_away, away)) + then}
    found = of("BUSY_STARVATION", findings(tmp_path, files))
    assert [(one["severity"], one["server"]) for one in found] == ([(severity, "s1")] if severity else [])


@pytest.mark.parametrize(("until", "monopoly"), [(390, True), (100, False)])
def test_the_supplier_that_has_the_consumer_all_the_while(until: float, monopoly: bool, tmp_path: Path) -> None:
    session = agreement_line(1, "s3-to-s2", "Replica was successfully acquired.") + agreement_line(
        until, "s3-to-s2", "Successfully released consumer", "release_replica"
    )
    logs = {"s1.errors.log": "".join(map(turned_away, range(0, 400, 50))), "s3.errors.log": session}
    found = of("SESSION_MONOPOLY", findings(tmp_path, three_suppliers() | logs))
    assert [(one["severity"], one["server"], one["link"]) for one in found] == [
        ("warning", "s3", "s3-to-s2")
    ] * monopoly


@pytest.mark.parametrize(("later", "starves"), [(400, True), (20, False)])
def test_busy_in_two_snapshots(later: float, starves: bool, tmp_path: Path) -> None:
    def snapshot(second: float) -> Files:
        told = status(1, "Can't acquire busy replica", "amber", second, second)
        return pair_of_servers(9, 4) | {"s1.agreements.ldif": with_status(agreement("to-s2", 38902), told)}

    found = of("BUSY_STARVATION", findings(tmp_path, snapshot(10), snapshot(10 + later)))
    assert [(one["severity"], one["link"]) for one in found] == [("warning", "to-s2")] * starves
