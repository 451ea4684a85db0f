"""Servers whose data were replaced: what their logs from before and from then on still prove, at the default log levels."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from case_samples import INCIDENT
from detector_samples import BEGAN, listening, of, plain_line, stamp
from entry_samples import entry
from entry_samples import mesh as shown_by
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica

from workbench import diagnose
from workbench.diagnosis.diagnosis_text import headline
from workbench.rules.verdicts import REPLACED, TOTAL
from workbench.systems.ds389.rules.proving import resets
from workbench.topology.topology import topology

NOW = INCIDENT / "2-during"

TITLE = "\t389-Directory/2.3.1 B2025\n\tlocalhost.localdomain:38905 (/etc/dirsrv/slapd-c1)\n\n"

PLUGIN, IMPORT = (
    "NSMMReplicationPlugin - multisupplier_be_state_change",
    "bdb_public_bdb_import_main - import userroot:",
)
OFFLINE = f"- NOTICE - {PLUGIN} - Replica dc=example,dc=com is going offline; disabling replication\n"
BEGIN = f"- INFO - {IMPORT} Beginning import job...\n"
END = f"- INFO - {IMPORT} Import complete.  Processed 9 entries in 1 seconds. (9.00 entries/sec)\n"

INITIALISED = f"{TITLE}{stamp(10)} {OFFLINE}{stamp(12)} {END}"
IMPORTED = f"{TITLE}{stamp(10)} {BEGIN}{stamp(12)} {END}"


def applied(seconds: list[int]) -> str:
    """An access log that begins with the others' changes, and names those of these seconds."""
    lines = f'{stamp(0)} conn=1 op=0 BIND dn="" method=128 version=3\n'
    for number, second in enumerate(seconds):
        at = f"{stamp(second)} conn=9 op={number}"
        lines += f'{at} MOD dn="cn=1,dc=example,dc=com"\n'
        lines += f"{at} RESULT err=0 tag=103 nentries=0 wtime=0.1 optime=0.1 etime=0.2 csn={csn(second, 1)}\n"
    return lines


def consumer(errors: str, seconds: list[int]) -> dict[str, Any]:
    """A supplier with a change in every second from 1 to 30, and a read-only server that claims them all."""
    return {
        "s1.replica.ldif": replica(1, elements(claims(r1=(1, 30)))),
        "s1.changelog.ldif": changelog([csn(second, 1) for second in range(1, 31)]),
        "s1.agreements.ldif": agreement("to-c1", 38905),
        "c1.replica.ldif": replica(65535, elements(claims(r1=(1, 30))), flags=0),
        "c1.access.log": applied(seconds),
        "c1.errors.log": errors,
    }


def missed(tmp_path: Path, *snapshots: dict[str, Any]) -> list[str]:
    return [row["position"] for row in diagnose(case_of(tmp_path, *snapshots))["missing"]]


def test_what_came_with_a_total_initialisation_was_never_logged(tmp_path: Path) -> None:
    whole = consumer(INITIALISED, [*range(13, 31)])
    holed = consumer(INITIALISED, [*range(13, 20), *range(21, 31)])
    assert missed(tmp_path / "whole", whole) == []
    assert missed(tmp_path / "holed", holed) == [csn(20, 1)]
    assert missed(tmp_path / "told-twice", holed, holed) == [csn(20, 1)]


@pytest.mark.parametrize(("seen", "runs"), [(5, False), (15, False), (5, True)], ids=["closed", "newer", "on the way"])
def test_that_a_server_was_filled_from_one_that_lacked_what_it_waits_for_is_said(
    seen: int, runs: bool, tmp_path: Path
) -> None:
    """The data that came from second 10 to 12 have the changes up to `seen`; the link to it is switched off."""
    online = f"- NOTICE - {PLUGIN} - Replica dc=example,dc=com is coming online; enabling replication\n"
    files = consumer(f"{INITIALISED}{stamp(12)} {online}", [])
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(1, seen))), flags=0)
    files["s1.agreements.ldif"] = agreement("to-c1", 38905, enabled=runs)
    (waits,) = of("PENDING_CHANGES", diagnose(case_of(tmp_path, files))["findings"])
    told = "; it was initialised at 2024-03-24 10:27:24 UTC, and these data lack the first of them"
    assert waits["overruled_by"] is None and (told in waits["summary"]) is (seen == 5 and not runs)


def test_of_several_fillings_the_one_is_told_that_brought_the_data_of_today(tmp_path: Path) -> None:
    online = f"- NOTICE - {PLUGIN} - Replica dc=example,dc=com is coming online; enabling replication\n"
    again = f"{stamp(12)} {online}{stamp(20)} {OFFLINE}{stamp(22)} {END}{stamp(22)} {online}"
    files = consumer(INITIALISED + again, [])
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(1, 5))), flags=0)
    files["s1.agreements.ldif"] = agreement("to-c1", 38905, enabled=False)
    (waits,) = of("PENDING_CHANGES", diagnose(case_of(tmp_path, files))["findings"])
    assert "; it was initialised at 2024-03-24 10:27:34 UTC, and these data lack the first of them" in waits["summary"]


def test_a_log_that_ends_while_data_come_does_not_prove_that_they_lack_anything(tmp_path: Path) -> None:
    cut = consumer(f"{TITLE}{stamp(10)} {OFFLINE}", [*range(13, 20), *range(21, 31)])
    assert missed(tmp_path, cut) == [csn(20, 1)]


FILLED = 'EXT oid="2.16.840.1.113730.3.5.6" name="replication-multisupplier-extop"'


def test_the_log_of_operations_tells_of_a_filling_of_which_no_other_line_does(tmp_path: Path) -> None:
    """The errors log begins after it."""
    files = consumer(f"{TITLE}{stamp(14)} - INFO - slapd_daemon - slapd started.\n", [*range(13, 20), *range(21, 31)])
    assert csn(12, 1) in missed(tmp_path / "without", files)
    first, *others = files["c1.access.log"].splitlines(keepends=True)
    entries = "".join(f"{stamp(second)} conn=7 op={second} {FILLED}\n" for second in (10, 11, 12))
    files["c1.access.log"] = first + entries + "".join(others)
    assert missed(tmp_path / "with", files) == [csn(20, 1)]


def test_where_a_log_could_not_be_read_whole_nothing_is_lost_for_that(tmp_path: Path) -> None:
    """The log of s1 ends in the middle of the record of 21; what follows, its vector claims, and c1 has yet to get it."""
    files = consumer("", [])
    files["c1.replica.ldif"] = replica(65535, elements(claims(r1=(1, 15))), flags=0)
    whole, text = files["s1.changelog.ldif"], changelog([csn(second, 1) for second in range(1, 22)])
    del files["c1.errors.log"], files["c1.access.log"]
    for about, log in (("whole", whole), ("cut", text[: text.index(csn(21, 1)) + 6])):
        (row,) = diagnose(case_of(tmp_path / about, files | {"s1.changelog.ldif": log}))["pending"]
        assert row["gone"] == 0, about
        assert (row["count"] > row["available"]) is (about == "cut")


def test_what_was_logged_before_an_import_is_not_proven_and_not_missing(tmp_path: Path) -> None:
    seconds = [*range(1, 6), *range(7, 31)]
    assert missed(tmp_path / "imported", consumer(IMPORTED, seconds)) == [csn(6, 1)]
    found = diagnose(case_of(tmp_path / "again", consumer(IMPORTED, seconds)))
    assert {row["why"] for row in found["unknown"]} == {"not_shown"}
    assert sum(row["count"] for row in found["unknown"]) == 10  # of the seconds before its end


def test_an_import_behind_an_initialisation_makes_what_came_with_the_latter_unknown(tmp_path: Path) -> None:
    errors = f"{INITIALISED}{stamp(20)} {BEGIN}{stamp(21)} {END}"
    assert missed(tmp_path, consumer(errors, [*range(13, 18), *range(19, 31)])) == [csn(18, 1)]


def test_a_log_made_anew_after_an_initialisation_is_not_of_it(tmp_path: Path) -> None:
    """The import stands in a log that was not collected; it was 16 seconds after the initialisation."""
    left_out = ("errors", "access", "export-replication")
    files: dict[str, Any] = {
        path.name: path.read_bytes() for path in NOW.iterdir() if path.name.split(".")[1] not in left_out
    }
    unknown = [
        row for row in diagnose(case_of(tmp_path, files))["unknown"] if (row["server"], row["origin"]) == ("s3", "1")
    ]
    assert [(row["to"], row["why"]) for row in unknown] == [("6b006176000f00010000", "not_shown")]


@pytest.mark.parametrize("sent", [True, False])
def test_who_cancelled_what_somebody_refused_may_not_have_it(sent: bool, tmp_path: Path) -> None:
    """No file tells to which server the link leads over which the change was skipped."""
    debug = f"{stamp(20)} - DEBUG - NSMMReplicationPlugin - "
    files = consumer(f"{debug}process postop - conn=1 op=1 csn={csn(20, 1)} canceling operation csn\n", [])
    del files["c1.access.log"]
    if sent:
        files["s1.errors.log"] = (
            f'{debug}repl5_inc_update_from_op_result - agmt="cn=to-c1" (localhost:38905): Receiver failed to replay change '
            f"(uniqueid 1, CSN {csn(20, 1)}): No such object (32). Skipping.\n"
        )
    found = diagnose(case_of(tmp_path, files))
    covered = [row for row in found["unknown"] if row["server"] == "c1" and row["from"] <= csn(20, 1) <= row["to"]]
    assert (bool(covered), found["missing"]) == (sent, [])


@pytest.mark.parametrize(
    ("codes", "kinds"),
    [
        (["replica_offline", "import_end"], [TOTAL]),
        (["replica_offline", "total_receive", "import_end"], [TOTAL]),
        (["import_begin", "replica_offline", "import_end"], [REPLACED]),
        (["replica_offline", "import_begin", "import_end"], [REPLACED]),
        (["import_end"], [REPLACED]),
        (["replica_offline", "restore", "import_end"], [REPLACED, REPLACED]),
        (["replica_offline", "import_failed"], [REPLACED]),
        (["replica_offline", "import_end", "import_begin", "import_end"], [TOTAL, REPLACED]),
        (["replica_offline"], [TOTAL]),
        (["replica_offline", "import_begin"], [REPLACED]),
        (["replica_offline", "replica_online"], []),
        (["replica_offline", "starting"], [TOTAL]),
        (["replica_offline", "starting", "import_end"], [TOTAL, REPLACED]),
        (["total_receive", "replica_offline", "import_end"], [TOTAL]),
    ],
)
def test_what_replaced_the_data(codes: list[str], kinds: list[str]) -> None:
    rows = [{"at": _at(number), "code": code, "numbers": None} for number, code in enumerate(codes)]
    found = resets(rows)
    assert [reset.kind for reset in found] == kinds
    unended = "starting" in codes or codes[-1] in ("replica_offline", "import_begin")
    assert all(reset.sure for reset in found) is not unended


def _at(second: int) -> datetime:
    return BEGAN.replace(second=second)


def test_a_read_only_server_is_known_by_the_address_in_its_log(tmp_path: Path) -> None:
    files = consumer(INITIALISED, [])
    assert [link.consumer for link in topology(case_of(tmp_path / "known", files)).links] == ["c1"]
    files["c1.errors.log"] = files["c1.errors.log"].removeprefix(TITLE)
    assert [link.consumer for link in topology(case_of(tmp_path / "unknown", files)).links] == [None]
    files["c1.errors.log"] = TITLE + files["c1.errors.log"]
    files["c2.errors.log"] = TITLE.replace("localdomain", "example") + f"{stamp(1)} {OFFLINE}"
    assert [link.consumer for link in topology(case_of(tmp_path / "two", files)).links] == [None]


def test_a_filling_during_which_the_log_of_operations_was_switched_is_one(tmp_path: Path) -> None:
    """The rotated file has the first entries that came, the log itself the last ones."""
    errors = f"{TITLE}{stamp(29)} - INFO - slapd_daemon - slapd started.\n"
    files = consumer(errors, [*range(25, 31)])
    first, *others = files.pop("c1.access.log").splitlines(keepends=True)
    entries = [f"{stamp(second)} conn=7 op={second} {FILLED}\n" for second in range(10, 25)]
    files["c1.access.20240324-102730.log"] = first + "".join(entries[:8])
    files["c1.access.log"] = "".join(entries[8:]) + "".join(others)
    assert missed(tmp_path, files) == []


@pytest.mark.parametrize("damaged", [False, True])
def test_a_record_that_cannot_be_read_hides_nothing_of_a_server_that_claims_more(damaged: bool, tmp_path: Path) -> None:
    """s1 claims 20 and its log, written long after it, ends at 10: no log has it, whatever that of s3 hides."""
    files: dict[str, Any] = {}
    for number, (claimed, written) in enumerate(((20, 10), (5, 5), (5, 5)), 1):
        files[f"s{number}.replica.ldif"] = replica(number, elements(claims(r1=(1, claimed))))
        files[f"s{number}.changelog.ldif"] = changelog([csn(second, 1) for second in range(1, written + 1)])
        files |= listening(f"s{number}")
    files["s1.errors.log"] = TITLE + plain_line(100, "INFO - slapd_daemon - slapd started.")
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903)
    files["s3.changelog.ldif"] += "\ndn: changenumber=x\nreplgen: abc" if damaged else ""
    found = diagnose(case_of(tmp_path, files))
    assert {(row["count"], row["available"], row["gone"]) for row in found["pending"]} == {(6, 5, 1)}


@pytest.mark.parametrize("bad", ["", "dn:: !!!\nfoo\n\n"])
def test_an_entry_that_was_read_whole_lacks_what_it_does_not_show(bad: str, tmp_path: Path) -> None:
    """Behind it stands a record that cannot be read."""
    made = csn(5, 1)
    there = [entry("uid=anna", 1, f"mail;vucsn-{made}: a@example.com"), entry("uid=bert", 2)]
    files: dict[str, Any] = shown_by(
        {"r1": (1, 9)},
        {"s1": there, "s2": [entry("uid=anna", 1), entry("uid=bert", 2)]},
        {"s1": changelog([csn(second, 1) for second in range(1, 10)])},
    )
    files["s2.replica.ldif"] = replica(65535, elements(claims(r1=(1, 9))), flags=0)
    files["s2.entries.ldif"] += bad
    assert missed(tmp_path, files) == [made]


@pytest.mark.parametrize(("flags", "says"), [(1, "no collected log has it"), (0, "no log has it")])
def test_what_the_log_of_its_maker_may_have_is_not_said_to_be_in_none(flags: int, says: str, tmp_path: Path) -> None:
    """s1 claims 20 and s2 has 5; the log of s1 was not collected, or s1 keeps none."""
    files: dict[str, Any] = {}
    for number, claimed in enumerate((20, 5, 5), 1):
        kept = flags if number == 1 else 1
        files[f"s{number}.replica.ldif"] = replica(number, elements(claims(r1=(1, claimed))), flags=kept)
        files |= listening(f"s{number}")
        if number > 1:
            files[f"s{number}.changelog.ldif"] = changelog([csn(second, 1) for second in range(1, 6)])
    files["s1.agreements.ldif"] = agreement("s1-to-s2", 38902) + agreement("s1-to-s3", 38903)
    found = diagnose(case_of(tmp_path, files))
    waiting = {(row["server"], row["gone"], row["unread_log"]) for row in found["pending"]}
    assert waiting == {(server, 1, flags == 1) for server in ("s2", "s3")}
    assert f"; {says}" in headline(found)
    told = [one["summary"] for one in found["findings"] if one["code"] == "PENDING_CHANGES"]
    assert len(told) == 2 and all(("in no collected log" in text) == (flags == 1) for text in told)


def test_the_log_of_a_maker_may_have_what_it_made_since_its_vector_was_read(tmp_path: Path) -> None:
    """s1 was read first, at 18, and its log was not collected; s3 was read later, and claims 20."""
    files: dict[str, Any] = {}
    for number, claimed in enumerate((18, 18, 20), 1):
        files[f"s{number}.replica.ldif"] = replica(number, elements(claims(r1=(0, claimed))))
        files[f"s{number}.agreements.ldif"] = "".join(
            agreement(f"s{number}-to-s{other}", 38900 + other) for other in (1, 2, 3) if other != number
        )
        if number > 1:
            files[f"s{number}.changelog.ldif"] = changelog([csn(second, 1) for second in range(19)])
    found = diagnose(case_of(tmp_path, files))
    assert {(row["server"], row["unread_log"]) for row in found["pending"]} == {("s1", True), ("s2", True)}
    assert "no collected log has it" in headline(found)
    steps = [fix["repair"] for one in found["findings"] if one["code"] == "PENDING_CHANGES" for fix in one["fix"]]
    assert steps and not [text for text in steps if text.startswith("save what")]
