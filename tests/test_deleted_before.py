"""A modification of an entry that an older change had deleted is lacking nowhere: what has to be known before that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from detector_samples import stamp
from entry_samples import answered, entry, export, logged
from mesh_samples import SUFFIX, agreement, case_of, changelog, claims, csn, elements, replica
from test_says_what_is_known import ANNA, changed_after_its_deletion
from test_thrown_away import verdicts

from workbench import diagnose
from workbench.topology.suffix_evidence import Evidence

Files = dict[str, Any]

NOTHING, LACKING = ("present", "deleted_before"), ("missing", "log_lacks")


def with_lines(server: str, lines: str) -> Files:
    """s3 deleted anna at 8 s and changed anna at 12 s; the log of operations of a server has these lines, too."""
    files = changed_after_its_deletion("deleted")
    log = files[f"{server}.access.log"]
    at = log.index(stamp(15 if lines.startswith(stamp(10)) else 8))
    return {**files, f"{server}.access.log": log[:at] + lines + log[at:]}


def with_record(record: str) -> Files:
    """The same, but all changelogs have this record, too."""
    files = changed_after_its_deletion("deleted")
    for name in ("s1", "s2", "s3"):
        log = files[f"{name}.changelog.ldif"]
        at = log.index("changetype: modify")
        files[f"{name}.changelog.ldif"] = log[:at] + record + log[at:]
    return files


def renaming(name: str, to: str, second: int = 10) -> str:
    return logged(csn(second, 3), 7, name, f"newrdn: {to}\ndeleteoldrdn: true\n", "modrdn")


def line(operation: str, name: str, second: int = 10, known: bool = True) -> str:
    """A line of a log of operations; one on a connection of replication may name no change."""
    told = answered(second, name, csn(second, 3), replicated=not known, operation=operation)
    return told if known else told.replace(f" csn={csn(second, 3)}", "")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (line("MODRDN", "uid=bob,ou=people"), LACKING),
        (line("MODRDN", "uid=bob,ou=people", known=False), LACKING),
        (line("MODRDN", "uid=bob,ou=people", 7), NOTHING),
        (line("ADD", ANNA), LACKING),
        (line("ADD", f"cn=x,ou=y,{ANNA}"), LACKING),
        (line("ADD", ANNA, known=False), LACKING),
        (line("ADD", ANNA, 7), NOTHING),
        (line("ADD", "uid=joanna,ou=people"), NOTHING),
    ],
    ids=[
        *("renamed", "renamed by no known change", "renamed before"),
        *("added", "added below", "added by no known change", "added before", "another one added"),
    ],
)
@pytest.mark.parametrize("server", ["s1", "s3"])
def test_lines_that_may_have_brought_the_name_back(
    server: str, lines: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    """No changelog tells to what name an entry was renamed: it may have been that of the deleted one."""
    told = verdicts(tmp_path, with_lines(server, lines), csn(12, 3))
    assert told["s2"] == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (renaming("uid=bob,ou=people", "uid=Anna"), LACKING),
        (renaming("ou=old", "ou=people"), LACKING),
        (renaming("uid=bob,ou=people", r"uid=a\6ena"), LACKING),
        (renaming("uid=bob,ou=people", "uid=joanna"), NOTHING),
        (renaming("uid=bob,ou=people", "uid=Anna", 7), NOTHING),
        (logged(csn(10, 3), 7, f"cn=x,{ANNA}", "add: sn\nsn: x\n-\n", "add"), LACKING),
    ],
    ids=["its name", "the name above", "spelt otherwise", "another name", "before", "added below"],
)
def test_records_that_may_have_brought_the_name_back(record: str, expected: tuple[str, str], tmp_path: Path) -> None:
    assert verdicts(tmp_path, with_record(record), csn(12, 3))["s1"] == expected


def test_a_renaming_counts_by_its_record_where_a_changelog_has_it(tmp_path: Path) -> None:
    files = with_record(renaming("uid=bob,ou=people", "uid=new"))
    files["s3.access.log"] = with_lines("s3", line("MODRDN", "uid=bob,ou=people"))["s3.access.log"]
    assert verdicts(tmp_path, files, csn(12, 3))["s1"] == NOTHING


def test_a_log_of_operations_that_begins_behind_the_deletion_may_hide_what_brought_the_name_back(
    tmp_path: Path,
) -> None:
    files = changed_after_its_deletion("deleted")
    log = files["s3.access.log"]
    files["s3.access.log"] = log[log.index(stamp(12)) :]
    assert verdicts(tmp_path, files, csn(12, 3))["s1"] == LACKING


@pytest.mark.parametrize(("alive", "lacking"), [("s1", "s1"), ("s1 s2 s3", "s1 s2"), ("", "")])
def test_a_server_whose_entries_show_the_entry_alive_has_not_deleted_it(
    alive: str, lacking: str, tmp_path: Path
) -> None:
    files = changed_after_its_deletion("deleted")
    ruv = elements(claims(r1=(1, 20), r3=(1, 15)))
    anna = f"dn: {ANNA},{SUFFIX}\nobjectClass;vucsn-{csn(1, 1)}: person\nnsUniqueId: 2-2-2-1\n\n"
    gone = anna.replace("dn: ", "dn: nsuniqueid=2-2-2-1,").replace(
        "nsUniqueId", f"objectClass;vucsn-{csn(8, 3)}: nsTombstone\nnsUniqueId"
    )
    for name in ("s1", "s2", "s3"):
        mine = anna if name in alive else gone
        files[f"{name}.entries.ldif"] = export(ruv, [entry("uid=other", 3), mine])
    told = verdicts(tmp_path, files, csn(12, 3))
    assert {name for name, (verdict, _) in told.items() if verdict == "missing"} == {*lacking.split()}


def test_a_server_that_lacks_the_deletion_lacks_the_change(tmp_path: Path) -> None:
    files = changed_after_its_deletion("deleted")
    deletion, line_of = logged(csn(8, 3), 1, ANNA, "", "delete"), answered(8, ANNA, csn(8, 3), True, "DEL")
    files["s2.changelog.ldif"] = files["s2.changelog.ldif"].replace(deletion, "")
    files["s2.access.log"] = files["s2.access.log"].replace(line_of, "")
    told = verdicts(tmp_path, files, csn(12, 3))
    assert (told["s1"], told["s2"]) == (NOTHING, LACKING)


def many(number: int) -> Files:
    """s3 deleted so many entries, and changed them all later; no changelog has these changes."""
    end = 3 * number + 20
    ruv = elements(claims(r1=(1, end), r3=(1, end - 5)))
    gone = "".join(logged(csn(8 + at, 3), 100 + at, f"uid=u{at},ou=people", "", "delete") for at in range(number))
    own = logged(csn(end - 5, 3), 8, "uid=some,ou=people", "replace: sn\nsn: x\n-\n")
    last = logged(csn(end, 1), 9, "uid=else,ou=people", "replace: sn\nsn: x\n-\n")
    files: Files = {}
    for rid in (1, 2, 3):
        name = f"s{rid}"
        files[f"{name}.replica.ldif"] = replica(rid, ruv)
        links = (agreement(f"{name}-to-s{to}", 38900 + to) for to in (1, 2, 3) if to != rid)
        files[f"{name}.agreements.ldif"] = "".join(links)
        files[f"{name}.changelog.ldif"] = changelog([csn(1, 1), csn(1, 3)]) + gone + own + last
        took = [(1, "uid=some,ou=people", "ADD")]
        took += [(8 + at, f"uid=u{at},ou=people", "DEL") for at in range(number)]
        took += [(number + 9 + at, f"uid=u{at},ou=people", "MOD") for at in range(number)] if rid == 3 else []
        files[f"{name}.access.log"] = "".join(
            answered(at, of, csn(at, 3), replicated=rid != 3, operation=what) for at, of, what in took
        )
    return files


def test_the_logs_of_operations_are_read_as_often_for_many_changes_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    told = Evidence.told

    def counted(self: Evidence, table: str, *more: Any, **named: Any) -> Any:
        asked.append(table)
        return told(self, table, *more, **named)

    monkeypatch.setattr(Evidence, "told", counted)
    times = {}
    for number in (4, 16):
        asked.clear()
        found = diagnose(case_of(tmp_path / str(number), many(number)))
        assert not found["missing"]
        times[number] = len(asked)
    assert times[4] == times[16]


def test_a_renaming_gives_one_of_many_deleted_entries_its_name_back(tmp_path: Path) -> None:
    files = many(12)
    for name in ("s1", "s2", "s3"):
        log = files[f"{name}.changelog.ldif"]
        at = log.index("changetype: modify")
        files[f"{name}.changelog.ldif"] = log[:at] + renaming("uid=bob,ou=people", "uid=u10", 20) + log[at:]
    found = diagnose(case_of(tmp_path, files))
    assert {(row["server"], row["position"]) for row in found["missing"]} == {("s1", csn(31, 3)), ("s2", csn(31, 3))}


def test_of_many_changes_those_count_whose_deletion_the_log_of_operations_goes_back_to(tmp_path: Path) -> None:
    files = many(8)
    log = files["s3.access.log"]
    files["s3.access.log"] = log[log.index(stamp(12)) :]
    found = diagnose(case_of(tmp_path, files))
    assert {row["position"] for row in found["missing"]} == {csn(17 + at, 3) for at in range(4)}
