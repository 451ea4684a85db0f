"""Replication that was switched off on a server and on again: what clients wrote meanwhile is recorded nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from detector_samples import findings, of, plain_line, stamp
from entry_samples import answered, entry, export, mesh
from hand_plans import rewrite
from log_samples import read, rows, same_in_pieces
from memory_servers import MemorySite, dn_of
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica
from planning_samples import MADE, Files, server, stamps
from test_thrown_away import verdicts

from workbench.diagnosis import older_state_put_back as put_back_module
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text, headline
from workbench.repair.planner import plan
from workbench.safety import to_yaml
from workbench.systems import system_named
from workbench.systems.ds389.formats.access_log import ACCESS_LOG
from workbench.systems.ds389.formats.errors_log import ERRORS_LOG

REPLICA = r"cn=replica,cn=dc\3Dexample\2Cdc\3Dcom,cn=mapping tree,cn=config"
REMOVED = (
    f"replica_config_delete - The changelog for replica {SUFFIX} is no longer valid since the replica config is being deleted.  "
    "Removing the changelog."
)


def said(second: float, conn: int, operation: str, target: str, tag: int, more: str = "") -> str:
    """The two lines of an operation."""
    where = f"{stamp(second)} conn={conn} op=1"
    return f'{where} {operation} dn="{target}"\n{where} RESULT err=0 tag={tag} nentries=0 etime=0.006{more}\n'


def switched(off: float = 20, on: float = 26, written: int = 2) -> str:
    """The access log of a server while its replica was deleted and made anew: what clients wrote has no CSN."""
    wrote = [said(off + 1 + number, 10 + number, "DEL", f"uid=u{number},{SUFFIX}", 107) for number in range(written)]
    other = said(off + 3, 30, "MOD", "cn=changelog,cn=userroot,cn=ldbm database,cn=plugins,cn=config", 103)
    gone = said(off, 3, "DEL", REPLICA, 107) + "".join(wrote) + other + said(on, 4, "ADD", REPLICA, 105)
    before = said(5, 5, "DEL", f"uid=early,{SUFFIX}", 107, f" csn={csn(2, 3)}")
    return before + gone + said(30, 6, "DEL", f"uid=late,{SUFFIX}", 107, f" csn={csn(30, 3)}")


def off_and_on(access: str | None) -> Files:
    """s3 removed its changelog, and made a change of its own since, which s1 and s2 wait for: no session can begin."""
    links = dict.fromkeys(("s1", "s2", "s3"), "")
    for name in links:
        others = [other for other in links if other != name]
        links[name] = "".join(agreement(f"{name}-to-{other}", 38900 + int(other[1:])) for other in others)
    own, theirs = stamps(2, 0), stamps(3, 1, 2, 3)
    has = claims(r1=(0, 9), r2=(0, 0), r3=(1, 3))
    files = {
        **server("s1", 1, has, [*MADE, *own, *theirs], links["s1"]),
        **server("s2", 2, has, [*MADE, *own, *theirs], links["s2"]),
        **server("s3", 3, {**has, **claims(r3=(1, 30))}, stamps(3, 30), links["s3"]),
    }
    files["s3.errors.log"] += plain_line(20, REMOVED)
    return files if access is None else {**files, "s3.access.log": access}


def test_the_line_of_a_removed_changelog_is_a_message_of_its_own() -> None:
    (row,) = rows(ERRORS_LOG, plain_line(20, REMOVED).rstrip("\n"), table="messages")
    assert (row["code"], row["suffix"]) == ("replica_removed", SUFFIX)


def test_the_access_log_tells_what_was_written_without_a_csn_meanwhile() -> None:
    assert same_in_pieces(ACCESS_LOG, switched(), 100, 900, 5000)
    _, parsed = read(ACCESS_LOG, switched())
    ((off, told),) = parsed.facts["unrecorded"][SUFFIX].items()
    assert (off[11:19], told["max"][11:19], told["count"]) == ("10:27:32", "10:27:38", 2)
    assert told["names"] == [f"uid=u0,{SUFFIX}", f"uid=u1,{SUFFIX}"]


def test_what_was_written_while_replication_was_off_is_told_and_spread_by_no_step(tmp_path: Path) -> None:
    case = case_of(tmp_path, off_and_on(switched()))
    found = diagnose(case)
    (off,) = of("REPLICATION_WAS_OFF", found["findings"])
    assert (off["server"], off["severity"]) == ("s3", "error")
    assert "from 2024-03-24 10:27:32 to 2024-03-24 10:27:38 UTC" in off["summary"]
    assert f"2 operations without a CSN (uid=u0,{SUFFIX}; uid=u1,{SUFFIX})" in off["summary"]
    assert "2 operations of clients on s3 went unrecorded while replication was off there" in headline(found)
    for one in of("REINIT_REQUIRED", found["findings"]):
        assert one["fix"][0]["repair"] == (
            "do what REPLICATION_WAS_OFF says of s3; then save 1 change from the changelog of s3, initialise s3 from another "
            "server, and write it again"
        )
        assert one["fix"][0]["caution"].startswith(f"do not initialise {one['server']} from s3")
    assert off["fix"][0]["repair"].startswith("collect with the entries (`workbench collect --entries`)")
    planned = plan(case)
    assert not [step for step in planned.steps if step.repair == "initialise"]
    refused = [course.refused for course in planned.courses if course.way == "initialise-from-s3"]
    assert refused and all(
        "s3 took changes without recording them while replication was off there: collect with --entries" in why
        for why in refused
    )


@pytest.mark.parametrize(
    ("access", "severity", "word"),
    [
        (None, "warning", "nothing tells whether they wrote"),
        (
            said(5, 5, "DEL", f"uid=early,{SUFFIX}", 107, f" csn={csn(2, 3)}"),
            "warning",
            "nothing tells whether they wrote",
        ),
        (  # it ends before replication was switched on again
            switched(written=0).partition(said(26, 4, "ADD", REPLICA, 105))[0],
            "warning",
            "nothing tells whether they wrote",
        ),
        (switched(written=0), "info", "its access log shows that no client wrote there meanwhile"),
    ],
)
def test_only_an_access_log_of_that_time_shows_that_nothing_was_written(
    access: str | None, severity: str, word: str, tmp_path: Path
) -> None:
    files = off_and_on(access)
    (off,) = of("REPLICATION_WAS_OFF", findings(tmp_path / "found", files))
    assert off["severity"] == severity and word in off["summary"]
    steps = [step for step in plan(case_of(tmp_path / "plan", files)).steps if step.repair == "initialise"]
    assert bool(steps) is (severity == "info")


TOTAL_UPDATE = (
    'INFO - NSMMReplicationPlugin - repl5_tot_run - {} total update of replica "agmt="cn={}-to-{}" (localhost:{})".{}'
)


@pytest.mark.parametrize(
    ("filled", "by", "told"),
    [
        ("s3", "", ["warning"]),
        ("s1 s2", "s3 s3", []),
        ("s1 s2", "s3 s1", []),
        ("s1 s2", "s2 s3", ["error"]),
        ("s1 s2", "", ["error"]),
        ("s1 s3", "s3 s1", ["error"]),
    ],
    ids=["itself", "from it", "in a chain", "in the wrong order", "from an unknown server", "one from it, and back"],
)
def test_servers_that_were_filled_since_have_nothing_to_do_with_it(
    filled: str, by: str, told: list[str], tmp_path: Path
) -> None:
    """A server that is filled itself loses what was written there; all others have it only if their data came from it."""
    files = off_and_on(switched())
    for number, (to, source) in enumerate(zip(filled.split(), by.split(), strict=False)):
        for second, word, end in ((40, "Beginning", ""), (42, "Finished", " Sent 9 entries.")):
            line = TOTAL_UPDATE.format(word, source, to, f"3890{to[1]}", end)
            files[f"{source}.errors.log"] += plain_line(second + 5 * number, line)
    for number, name in enumerate(filled.split()):
        lines = [
            f'conn=5 op=4 repl="{SUFFIX}": Begin total protocol',
            "import userroot: Import complete.  Processed 9 entries in 3 seconds.",
        ]
        files[f"{name}.errors.log"] += "".join(
            plain_line(40 + 5 * number + at, f"total_update - {text}") for at, text in enumerate(lines)
        )
    off = of("REPLICATION_WAS_OFF", findings(tmp_path, files))
    assert [row["severity"] for row in off] == told
    assert all(("what nobody repeated since is lost" in row["summary"]) is (filled == "s3") for row in off)


def test_a_lost_anchor_is_told_to_have_gone_with_the_changelog(tmp_path: Path) -> None:
    lost = of("ANCHOR_PURGED", findings(tmp_path / "line", off_and_on(switched())))
    assert lost
    for one in lost:
        assert "which was removed at 2024-03-24 10:27:32 UTC, when replication was switched off there" in one["summary"]
        assert "assumed" not in one["summary"] and not one["assumes"]
    files = off_and_on(None)
    files["s3.errors.log"] = files["s3.errors.log"].replace(plain_line(20, REMOVED), "")
    assert all("assumed" in one["summary"] for one in of("ANCHOR_PURGED", findings(tmp_path / "none", files)))


# --- a supplier without an open changelog, whose vector stands still


@pytest.mark.parametrize("closed", [True, False])
def test_what_a_supplier_without_changelog_took_is_not_on_its_way(closed: bool, tmp_path: Path) -> None:
    has, behind = claims(r1=(0, 9), r2=(0, 0)), {**claims(r1=(0, 4), r2=(0, 0)), 3: None}
    own = stamps(2, 0)
    files = {
        **server("s1", 1, has, [*MADE, *own], agreement("s1-to-s3", 38903)),
        **server("s2", 2, has, [*MADE, *own], agreement("s2-to-s1", 38901)),
        **server("s3", 3, behind, None),
    }
    files["s3.replica.ldif"] = files["s3.replica.ldif"].replace("nsDS5Flags: 0", "nsDS5Flags: 1")
    files["s3.errors.log"] += f"{stamp(0)} - INFO - main - 389-Directory/2.3.1 B2022.300.0000 starting up\n"
    files["s3.errors.log"] += (
        plain_line(60, "replica_execute_cl2ldif_task - Changelog is not open") if closed else plain_line(60, "x")
    )
    files["s3.access.log"] = "".join(answered(second, f"uid=u{second}", csn(second, 1), True) for second in range(5, 9))
    at = {"from": "2024-03-24T10:28:10Z", "until": "2024-03-24T10:28:11Z"}
    servers = [
        {"name": name, "files": sorted(one for one in files if one.startswith(f"{name}."))}
        for name in ("s1", "s2", "s3")
    ]
    about = [{"server": name, "role": "supplier", **at} for name in ("s1", "s2", "s3")]
    files["case.yaml"] = to_yaml({"system": "ds389", "servers": servers, "collected": about})
    found = diagnose(case_of(tmp_path, files))
    assert bool(of("CHANGELOG_CLOSED", found["findings"])) is closed
    (waits,) = (row for row in found["pending"] if row["server"] == "s3")
    assert waits["count"] == (1 if closed else 5)


# --- a server whose files were put back before its changelog was removed


def put_back(*, entries: bool = False, removed: bool = True) -> dict[str, Any]:
    """s3 made 5 and was started with older files; all have its 8, none has 5, and its changelog was removed later."""
    has = claims(r1=(1, 9), r3=(3, 8))
    known = [*(csn(second, 1) for second in range(1, 10)), csn(3, 3), csn(8, 3)]
    links = agreement("to-s3", 38903) + agreement("to-s2", 38902)
    files = {
        **server("s1", 1, has, known, links),
        **server("s2", 2, has, known, agreement("to-s1", 38901) + agreement("to-s3", 38903)),
        **server("s3", 3, has, known[-2:] if not removed else known[-1:], agreement("to-s1", 38901)),
    }
    files["s3.access.log"] = answered(5, "uid=five", csn(5, 3), operation="ADD") + answered(8, "uid=eight", csn(8, 3))
    starts = f"{stamp(7)} - INFO - main - 389-Directory/2.3.1 B2022.300.0000 starting up\n"
    files["s3.errors.log"] += starts + (plain_line(20, REMOVED) if removed else "")
    if entries:
        vector = elements(has)
        for name in ("s1", "s2", "s3"):
            files[f"{name}.entries.ldif"] = export(vector, [entry("uid=anna", 1)])
    return files


def test_lines_of_before_prove_nothing_where_others_have_only_what_was_made_since(tmp_path: Path) -> None:
    case = case_of(tmp_path, put_back())
    found = diagnose(case)
    lacking = {(row["server"], row["position"]) for row in found["missing"]}
    assert ("s1", csn(5, 3)) in lacking and ("s2", csn(5, 3)) in lacking
    assert [row["server"] for row in found["unknown"] if row["origin"] == "3"] == ["s3"]
    planned = plan(case)
    assert not [step for step in planned.steps if (step.repair, step.on) == ("initialise", "s3")]


def trimmed(access: Mapping[str, str] | None = None) -> Files:
    """s3 made 5 and 8 and was started in between; s1 and s2 trimmed their changelogs up to 7: nothing of it is lost."""
    files = put_back()
    purge = [f"{{replica {rid} ldap://localhost:3890{rid}}} {csn(6, rid)}" for rid in (3, 1)]
    known = [*(csn(second, 1) for second in range(7, 10)), csn(8, 3)]
    for name in ("s1", "s2"):
        files[f"{name}.changelog.ldif"] = changelog(sorted(known), own_entries=True, purge=purge)
    return files | {f"{name}.access.log": text for name, text in (access or {}).items()}


TOOK = "".join(answered(at, f"uid=u{at}", csn(at, 3), True) for at in (3, 8))
EARLIER = "".join(answered(at, f"uid=u{at}", csn(at, 1)) for at in (1, 4))


@pytest.mark.parametrize(
    ("access", "lost"),
    [
        ({}, False),
        ({"s1": TOOK}, True),
        ({"s1": EARLIER + TOOK, "s2": answered(5, "uid=five", csn(5, 3), True, "ADD")}, False),
        ({"s1": answered(8, "uid=eight", csn(8, 3), True)}, False),
    ],
    ids=["trimmed", "lines lack it", "lines of another have it", "lines begin later"],
)
def test_what_lies_before_the_logs_of_others_is_not_lost(access: Mapping[str, str], lost: bool, tmp_path: Path) -> None:
    told = verdicts(tmp_path, trimmed(access), csn(5, 3))
    assert told["s3"] == (("unknown", "not_shown") if lost else ("present", "applied"))


@pytest.mark.parametrize("kind", ["hole", "imported"])
def test_a_log_that_others_cannot_be_asked_by_proves_nothing(kind: str, tmp_path: Path) -> None:
    """What could not be read of their changelogs may be this change; data that were imported since may hold it."""
    files = put_back()
    for name in ("s1", "s2"):
        log = files[f"{name}.changelog.ldif"]
        at = log.index(f"csn: {csn(5, 1)}")
        begin, end = log.rindex("\n\n", 0, at) + 2, log.index("\n\n", at) + 2
        if kind == "hole":
            files[f"{name}.changelog.ldif"] = log[:begin] + "changetype: add\ncsn: ?\n\n" + log[end:]
        else:
            imported = "bdb_import_main - import userroot: Import complete.  Processed 9 entries in 1 seconds."
            files[f"{name}.errors.log"] += f"{stamp(6)} - INFO - {imported}\n"
    assert verdicts(tmp_path, files, csn(5, 3))["s3"] == ("present", "applied")


def test_what_replaced_the_data_of_others_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, asked = put_back(), list[str]()
    own = "".join(
        answered(5, f"uid=u{number}", f"{csn(5, 3)[:8]}{number:04x}{csn(5, 3)[12:]}", operation="ADD")
        for number in range(1, 9)
    )
    files["s3.access.log"] = own + files["s3.access.log"]
    read = put_back_module.resets_of

    def counted(evidence: Any, replica: Any, *more: Any) -> Any:
        asked.append(replica.server)
        return read(evidence, replica, *more)

    monkeypatch.setattr(put_back_module, "resets_of", counted)
    found = diagnose(case_of(tmp_path, files))
    (row,) = (row for row in found["unknown"] if (row["server"], row["origin"]) == ("s3", "3"))
    assert row["count"] == 10 and sorted(asked) == ["s1", "s2"]


# --- content is the last word


def test_an_added_entry_that_no_entry_carries_is_missing_whatever_the_log_says(tmp_path: Path) -> None:
    entries = [entry("uid=anna", 1)]
    files: dict[str, Any] = mesh({"r1": (1, 9), "r2": (1, 2)}, {"s1": entries, "s2": entries}, {})
    files["s1.access.log"] = answered(5, "uid=five", csn(5, 1), operation="ADD")
    case = case_of(tmp_path, files)
    (row,) = (row for row in diagnose(case)["missing"] if row["position"] == csn(5, 1))
    assert (row["server"], row["rule"]) == ("s1", "entries_lack")
    # Somebody may have deleted it while nothing was recorded.
    off: dict[str, Any] = {**files, "s1.errors.log": plain_line(20, REMOVED)}
    assert not diagnose(case_of(tmp_path / "off", off))["missing"]
    # One that carries it has it, also where the entry was deleted later.
    there = f"dn: uid=five,{SUFFIX}\nobjectClass;vucsn-{csn(5, 1)}: person\nnsUniqueId: 2-2-2-5\n\n"
    for name in ("s1", "s2"):
        files[f"{name}.entries.ldif"] = export(elements(claims(r1=(1, 9), r2=(1, 2))), [*entries, there])
    assert not diagnose(case_of(tmp_path / "there", files))["missing"]


def test_two_servers_that_lack_an_entry_are_alike_and_the_promise_is_not_kept(tmp_path: Path) -> None:
    repair = rewrite()
    row = {"server": "s3", "suffix": SUFFIX, "origin": "1", "count": 1, "first": csn(90, 1), "last": csn(90, 1)}
    promise = {**row, "targets": [dn_of("nobody")], "created": [dn_of("nobody")]}
    told = MemorySite(replace(repair.plan, promise=(promise,)), repair.fleet, tmp_path).kept()[-1]
    assert told["kept"] is False and told["says"].endswith(f"does not show {dn_of('nobody')} either")
    gone = {**promise, "created": []}  # what a deletion is about is gone on both
    told = MemorySite(replace(repair.plan, promise=(gone,)), repair.fleet, tmp_path / "gone").kept()[-1]
    assert told["kept"] is True


def test_what_only_a_read_only_server_still_shows_is_written_on_a_supplier(tmp_path: Path) -> None:
    """Seen on 2.3.1: clients removed an entry while replication was off, and the others were filled from there."""
    entries, there = [entry("uid=anna", 1)], entry("uid=base-1", 2)
    files: dict[str, Any] = mesh(
        {"r1": (1, 9), "r2": (1, 2)}, {"s1": entries, "s2": entries, "s3": [*entries, there]}, {}
    )
    files["s3.replica.ldif"] = replica(65535, elements(claims(r1=(1, 9), r2=(1, 2))), flags=0)
    del files["s3.agreements.ldif"]
    files["s1.access.log"] = switched()
    for one in ("s1", "s2"):
        files[f"{one}.changelog.ldif"] = changelog([csn(9, 1)])
    case = case_of(tmp_path, files)
    found = diagnose(case)
    assert {(row["server"], *row["shown_by"]) for row in found["missing"]} == {("s1", "s3"), ("s2", "s3")}
    assert "entries of s3" in diagnosis_text(system_named("ds389"), found)
    for one in of("MISSED_CHANGE", found["findings"]):
        *first, last = one["fix"]
        assert (
            last["repair"]
            == "save the present values of the entries concerned from s3 and write them again on s1 or s2"
        )
        assert last["caution"].startswith("do not initialise s3 before the values are saved")
        assert "no log has it, and only the entries of s3 show what it did" in last["why"]
        assert [step["repair"] for step in first] == ["do what REPLICATION_WAS_OFF says of s1 first"] * (
            one["server"] == "s1"
        )


def test_a_server_that_took_changes_unrecorded_is_filled_only_if_asked_for_by_name(tmp_path: Path) -> None:
    """s3 misses changes of s1 behind its vector, and clients wrote there: to fill it brings the one and loses the other."""
    files = off_and_on(switched())
    entries = [entry("uid=anna", 1), entry("uid=base-1", 2).replace(csn(1, 1), csn(2, 1))]
    for name in ("s1", "s2"):  # their changelogs begin later
        files[f"{name}.changelog.ldif"] = changelog([*stamps(1, *range(3, 10)), *stamps(2, 0), *stamps(3, 1, 2, 3)])
    for name in ("s1", "s2"):
        files[f"{name}.entries.ldif"] = export(elements(claims(r1=(0, 9), r2=(0, 0), r3=(1, 3))), entries)
    files["s3.entries.ldif"] = export(elements(claims(r1=(0, 9), r2=(0, 0), r3=(1, 30))), entries[:1])
    case = case_of(tmp_path, files)
    (missed,) = of("MISSED_CHANGE", diagnose(case)["findings"])
    assert missed["server"] == "s3" and missed["fix"][0]["repair"] == "do what REPLICATION_WAS_OFF says of s3 first"
    made = plan(case)
    assert not made.steps and made.unmended
    ask = "see first what of it is right (REPLICATION_WAS_OFF), then plan with --for {0} --way initialise-from-{1}"
    refused = {(course.need.split()[-1], course.way): course.refused for course in made.courses}
    assert ask.format("s3", "s1") in refused["s3", "initialise-from-s1"]
    assert "what clients did there is thrown away" in refused["s3", "initialise-from-s1"]
    backwards = [why for (_, way), why in refused.items() if way.endswith("-backwards")]
    assert backwards and not any("--way" in why for why in backwards)
    # What s2 alone shows then is written to a file first: nothing is thrown away unsaved, and nothing is done unasked.
    (course,) = (one for one in made.courses if (one.need, one.way) == ("REINIT_REQUIRED s1", "initialise-from-s3"))
    assert "what clients did there comes to s1, too" in course.unasked and not course.chosen
    assert "to have the entries concerned written to a file first" in course.unasked
    asked = plan(case, only=["s3"], ways=["initialise-from-s1"])
    (course,) = (one for one in asked.courses if one.chosen)
    assert course.way == "initialise-from-s1" and "whatever clients wrote on s3 then is thrown away" in course.costs


def test_no_server_is_filled_from_there_although_its_entries_were_collected(tmp_path: Path) -> None:
    """What clients did there without a record stands in its entries, and would come along."""
    files = off_and_on(switched())
    for name, claimed in (("s1", 3), ("s2", 3), ("s3", 30)):
        more = [entry("uid=hid", 3).replace(csn(1, 1), csn(1, 3))] if name == "s3" else []
        vector = elements(claims(r1=(0, 9), r2=(0, 0), r3=(1, claimed)))
        files[f"{name}.entries.ldif"] = export(vector, [entry("uid=anna", 1), *more])
    case = case_of(tmp_path, files)
    made = plan(case)
    assert not made.steps and made.unmended
    (course,) = (one for one in made.courses if (one.need, one.way) == ("REINIT_REQUIRED s1", "initialise-from-s3"))
    assert "what clients did there comes to s1, too" in course.unasked
    asked = plan(case, only=["s1"], ways=["initialise-from-s3"])
    assert [step.repair for step in asked.steps][:1] == ["initialise"]


def repeated() -> Files:
    """s3 took one entry and a value unrecorded; both were written again on s1, so the entry has two unique IDs by now."""
    files = off_and_on(switched())
    anna = entry("uid=anna", 1)
    there = f"dn: uid=new,{SUFFIX}\nobjectClass: person\nnsUniqueId: 9-9-9-9\n\n"
    again = entry("uid=new", 4).replace(csn(1, 1), csn(9, 1))
    renamed = again.replace("dn: uid=new", "dn: nsuniqueid=4-4-4-4+uid=new")
    vector = elements(claims(r1=(0, 9), r2=(0, 0), r3=(1, 3)))
    for name in ("s1", "s2"):
        files[f"{name}.entries.ldif"] = export(vector, [anna, again])
    files["s3.entries.ldif"] = export(elements(claims(r1=(0, 9), r2=(0, 0), r3=(1, 30))), [anna, there, renamed])
    return files


def test_an_entry_of_the_same_name_is_told_as_another_one(tmp_path: Path) -> None:
    found = findings(tmp_path, repeated())
    (open_,) = (one for one in of("ENTRIES_DIFFER", found) if one["server"] is None)
    says = f"1 entry is not on all of them (uid=new,{SUFFIX} (on s3 only, and another one of that name on s1 and s2))"
    assert says in open_["summary"]
    assert open_["fix"][0]["repair"] == "do what REPLICATION_WAS_OFF says of s3 first"


def test_a_way_to_fill_it_is_shown_although_it_lacks_no_change(tmp_path: Path) -> None:
    """What clients did there is repeated by hand: then the server is filled, by whoever asks for it."""
    case = case_of(tmp_path, repeated())
    assert not diagnose(case)["missing"]
    made = plan(case)
    assert not made.steps
    courses = [one for one in made.courses if one.need == "REPLICATION_WAS_OFF s3"]
    assert courses[0].unasked.endswith("then plan with --for s3 --way initialise-from-s1")
    asked = plan(case, only=["s3"], ways=["initialise-from-s1"])
    assert [(one.repair, one.server) for one in asked.steps] == [("save", "s3"), ("initialise", "s3")]
    assert not [line for line in asked.left if line.startswith("REPLICATION_WAS_OFF")]


def test_it_is_told_of_a_server_on_which_it_is_off_still(tmp_path: Path) -> None:
    """Seen on 2.3.1: s3 shows no replica, so it could not be read; its access log tells since when, and what clients wrote."""
    files = off_and_on(switched().partition(said(26, 4, "ADD", REPLICA, 105))[0])
    for kind in ("replica", "changelog", "agreements"):
        del files[f"s3.{kind}.ldif"]
    found = diagnose(case_of(tmp_path, files | {"s3.DOWN": "no replica of that suffix\n"}))
    assert headline(found).startswith("2 operations of clients on s3 went unrecorded while replication was off there; ")
    (off,) = of("REPLICATION_WAS_OFF", found["findings"])
    assert "at 2024-03-24 10:27:32 UTC, and is off still. Meanwhile clients wrote there" in off["summary"]
    assert off["fix"][0]["repair"].startswith(f"restart s3, then switch replication of {SUFFIX} on again there")
    assert off["fix"][0]["caution"].startswith("do not initialise s3")
