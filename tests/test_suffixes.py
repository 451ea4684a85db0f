"""Servers that hold two suffixes: what is found of each is what is found of it alone, whatever the other one's evidence says."""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fleet_files import write_suffixes
from fleet_histories import Fleet, History, origin_of
from mesh_samples import agreement, case_of, changelog, claims, csn, elements, replica
from slow_verdicts import MISSING, PRESENT, UNKNOWN, named
from test_clean_tasks import waits

from workbench import Case
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.verdicts import verdicts
from workbench.replication.changelog.diagnosis.pair_matrix import pair_matrix
from workbench.rules.verdicts import ENTRIES_LACK
from workbench.topology.topology import logs_of, topology

Row = dict[str, Any]
Judged = dict[tuple[str, str], tuple[str, str]]
"""(server, change) -> verdict and rule."""

_OF_VERDICTS = {
    *("MISSED_CHANGE", "OWN_CHANGES_HIDDEN", "STRANDED_CHANGE", "REINIT_REQUIRED", "APPLY_SKIPPED", "PENDING_CHANGES"),
    "CHANGES_THROWN_AWAY",  # where a line says which initialisation threw them away
    *("PERHAPS_WRITTEN_OVER", "PERHAPS_MADE_AGAIN"),
    "ENTRIES_DIFFER",  # of entries alone, where no log tells
}
"""Findings about what is missing: where a verdict is open they say less."""
OF_AN_IMPORT = re.compile(r"; the data of \S+ came from a backup or a file at .{19} UTC \(its errors log says so\)")
_OF_SUPPLIERS: Row = {"passed_over": 0, "may_pass_over": {}}
"""What is said of pending changes that their suppliers lack themselves: it goes by the verdicts on these."""


def two_fleets(size: int, number: int) -> list[Fleet]:
    """What two suffixes of the same servers went through. Of each server both are told by the same logs."""
    random = Random(f"two of {size} {number}")
    one = History(number, size, random).play()
    other = History(number, size, random, beside=one).play()
    other.suffix, other.backend = random.choice(["dc=other", "o=ipaca", "ou=below,dc=fleet"]), "ipaca"
    other.links = random.choice(["to-", "other-to-"])
    one.tells_backend = other.tells_backend = random.random() < 0.5
    for name in one.shown:
        shown = [fleet.shown[name] for fleet in (one, other)]
        if any(of.lines is None for of in shown):
            for of in shown:
                of.lines = None
        else:
            begin = max((of.lines[0].at for of in shown if of.lines), default=0)
            for of in shown:
                of.lines = [line for line in of.lines or () if line.at >= begin]
        if any(of.notes is not None for of in shown):
            for fleet, of in zip((one, other), shown, strict=True):
                server = next(server for server in fleet.servers if server.name == name)
                of.notes = list(server.notes) if of.notes is None else of.notes
    return [one, other]


def diagnosed(folder: Path, chosen: list[Fleet], every: list[Fleet]) -> Row:
    case = Case.create(folder / "case")
    case.load(write_suffixes(folder / "files", chosen, every))
    return diagnose(case)


def of_suffix(found: Row, fleet: Fleet) -> Row:
    """What a diagnosis says of one suffix, and of none."""
    lists = ("missing", "stranded", "pending", "unknown", "pairs", "links", "servers", "findings")
    rows = {name: [row for row in found[name] if row["suffix"] == fleet.suffix] for name in lists}
    for finding in rows["findings"]:
        for row in finding["evidence"]:
            row.pop("offset", None)  # in a log of both a line stands elsewhere
    return rows


def judged(found: Row, fleet: Fleet, known: set[str]) -> Judged:
    """The verdicts on all changes that anything of the suffix names; those that are still to come are left out."""
    verdicts: Judged = {(row["server"], row["position"]): (MISSING, row["rule"]) for row in found["missing"]}
    assert verdicts.keys() <= {(server, csn) for server in fleet.shown for csn in known}
    for row in found["unknown"]:
        held = set(fleet.shown[row["server"]].log or ())
        some = [csn for csn in known - held if origin_of(csn) == row["origin"] and row["from"] <= csn <= row["to"]]
        assert len(some) == row["count"] and not verdicts.keys() & {(row["server"], csn) for csn in some}, row
        verdicts |= {(row["server"], csn): (UNKNOWN, row["why"]) for csn in some}
    return verdicts


def unclear(fleets: list[Fleet], fleet: Fleet) -> tuple[set[tuple[str, str]], set[str]]:
    """Of a fleet: (server, change) of which a line speaks that does not tell its suffix, and servers whose data may be replaced.

    Such a line may be of either suffix, for the origins are known in both.
    """
    one_name = fleets[0].links == fleets[1].links
    changes: set[tuple[str, str]] = set()
    servers: set[str] = set()
    for of in fleets:
        for shown in of.shown.values():
            for note in shown.notes or ():
                if note.kind in ("dropped", "cancelled"):
                    changes.add((shown.name, note.about))
                elif note.kind == "skipped" and one_name:
                    changes.add((note.to, note.about))
                elif note.kind in ("import_begin", "import_end") and not fleet.tells_backend:
                    servers.add(shown.name)
    return changes, servers


def log_reaches_further(server: str, fleet: Fleet, fleets: list[Fleet]) -> bool:
    """Whether the log has earlier lines about the other suffix: they prove that the server has kept its data since then."""
    begins = {of.suffix: min((note.at for note in of.shown[server].notes or ()), default=None) for of in fleets}
    begin = begins.pop(fleet.suffix)
    return any(other is not None and (begin is None or other < begin) for other in begins.values())


def named_clearly(fleet: Fleet) -> set[str]:
    """The changes that something names which tells its suffix: of others nobody knows that they were made there."""
    silent = deepcopy(fleet)
    for shown in silent.shown.values():
        shown.notes = None
    return named(silent)


def weakened(finding: Row) -> Row:
    """A finding without its action, and without the import that explains it: the line of the import may be of either suffix.

    `servers` goes as well: findings of two servers are grouped if their sentences are equal.
    """
    return {**finding, "fix": None, "servers": None, "summary": OF_AN_IMPORT.sub("", finding["summary"])}


def check(folder: Path, fleets: list[Fleet]) -> None:
    """Both fleets together against each alone."""
    both = diagnosed(folder / "both", fleets, fleets)
    for fleet in fleets:
        alone = of_suffix(diagnosed(folder / fleet.suffix, [fleet], fleets), fleet)
        joint = of_suffix(both, fleet)
        for name in ("pairs", "servers", "links"):
            assert joint[name] == alone[name], name
        known = named_clearly(fleet)
        dim = set(map(origin_of, named(fleet) - known))
        waits = [[row for row in found["pending"] if row["origin"] not in dim] for found in (joint, alone)]
        longer = {str(server.rid) for server in fleet.servers if log_reaches_further(server.name, fleet, fleets)}
        apart = {row["origin"] for row in waits[0] + waits[1] if row not in waits[0] or row not in waits[1]}
        waits = [[row for row in rows if row["origin"] not in longer & apart] for rows in waits]
        assert [{**row, **_OF_SUPPLIERS} for row in waits[0]] == [{**row, **_OF_SUPPLIERS} for row in waits[1]]
        mine, theirs = judged(joint, fleet, known), judged(alone, fleet, named(fleet))
        changes, servers = unclear(fleets, fleet)
        told = len(theirs)
        theirs = {key: said for key, said in theirs.items() if key[1] in known}
        for key in mine.keys() | theirs.keys():
            said, expected = mine.get(key, (PRESENT, "")), theirs.get(key, (PRESENT, ""))
            # What a line says that may be of either suffix, the entries of one may say as well.
            if said not in (expected, (expected[0], ENTRIES_LACK)):
                assert said[0] == UNKNOWN, (fleet.suffix, key, said, expected)
                # Its data may have come from a server of which such a line speaks.
                assert servers or key[1] in {csn for _, csn in changes}, (fleet.suffix, key, said, expected)
        weaker = mine != theirs or told != len(theirs) or bool(longer & apart)
        causes = {(row["server"], row["position"]): (row["cause"], row["rule"]) for row in alone["missing"]}
        for row in joint["missing"]:
            cause, rule = causes[row["server"], row["position"]]
            by_entries_only = row["rule"] == ENTRIES_LACK != rule
            # That its maker hid it stays true where a line on who threw it away may be of either suffix.
            less = {None, "OWN_CHANGES_HIDDEN"} if cause == "CHANGES_THROWN_AWAY" else {None}
            assert row["cause"] == cause or (row["cause"] in less and (servers or by_entries_only)), row
        if not weaker and not servers:
            assert waits[0] == waits[1]
            assert joint["missing"] == alone["missing"]
            assert joint["stranded"] == alone["stranded"]
        shown = [found["findings"] for found in (joint, alone)]
        if weaker or servers:  # what is to be done goes by the verdicts as well
            shown = [[weakened(row) for row in some if row["code"] not in _OF_VERDICTS] for some in shown]
        assert shown[0] == shown[1]


def play_and_check(folder: Path, size: int, number: int) -> None:
    fleets = two_fleets(size, number)
    try:
        check(folder, fleets)
    except AssertionError as error:
        told = [(fleet.suffix, fleet.links, fleet.tells_backend, fleet.planted) for fleet in fleets]
        raise AssertionError(f"fleets {number} of {size}: {told}\n{error}") from error


def test_positions_of_two_suffixes_are_often_equal() -> None:
    one, other = two_fleets(4, 0)
    assert len(one.changes.keys() & other.changes.keys()) > 10
    assert {server.rid for server in one.servers} == {server.rid for server in other.servers}


def test_two_fleets(tmp_path: Path) -> None:
    for number in range(4):
        play_and_check(tmp_path / str(number), 4, number)


def test_no_server_has_a_change_by_its_data_if_another_one_may_have_lost_it(tmp_path: Path) -> None:
    """Pair 1007: s3 skipped a change, by a line that may be of either suffix; s0 was filled later."""
    play_and_check(tmp_path, 8, 1007)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 4, 8])
def test_many_pairs_of_fleets(size: int, tmp_path: Path) -> None:
    for number in range(80):
        play_and_check(tmp_path / str(number), size, 1000 + number)


# --- one thing at a time

A, B = "dc=a", "o=b"
"""Two suffixes of the servers s1 and s2, which make changes as 1 and 2 in both."""
ZONE = "ffffffff-ffffffff-ffffffff-ffffffff"


def of(suffix: str, held: range = range(10), lacks: tuple[int, ...] = (), mark: int | None = None) -> dict[str, str]:
    """s1 made a change in every second; s2 has them all, by its vector. `lacks`: those that its log does not hold.

    `mark`: its log was made anew when the change of that second was the last one.
    """
    made = [csn(second, 1) for second in held]
    ruv = elements({1: (made[0], made[-1]), 2: (csn(0, 2), csn(0, 2))})
    logged = [one for second, one in enumerate(made) if second not in lacks and second > (-1 if mark is None else mark)]
    marks = [] if mark is None else [made[mark], csn(0, 2)]
    return {
        f"s1.{suffix}.replica.ldif": replica(1, ruv, suffix=suffix),
        f"s1.{suffix}.agreements.ldif": agreement("to-s2", 38902, suffix=suffix),
        f"s1.{suffix}.changelog.ldif": changelog([*made, csn(0, 2)], suffix=suffix, own_entries=True),
        f"s2.{suffix}.replica.ldif": replica(2, ruv, suffix=suffix),
        f"s2.{suffix}.changelog.ldif": changelog(
            [*logged, *([csn(0, 2)] if mark is None else [])], marks=marks, suffix=suffix, own_entries=True
        ),
    }


def stamp(second: int) -> str:
    return f"[{datetime.fromtimestamp(0x66000000 + second, UTC):%d/%b/%Y:%H:%M:%S}.000000000 +0000]"


def access(*lines: tuple[int, str, str]) -> str:
    """The access log of a supplier's connection: second, target (empty: the line of the request is gone), CSN."""
    told = [
        f"{stamp(-99)} conn=1 fd=64 slot=64 connection from 10.0.0.1 to 10.0.0.2",
        f'{stamp(-99)} conn=1 op=3 EXT oid="2.16.840.1.113730.3.5.12" name="x"',
    ]
    for number, (second, target, position) in enumerate(lines, 4):
        told += [f'{stamp(second)} conn=1 op={number} MOD dn="{target}"'] if target else []
        told.append(f"{stamp(second)} conn=1 op={number} RESULT err=0 tag=103 nentries=0 etime=0.000389 csn={position}")
    return "\n".join(told) + "\n"


def export(suffix: str, top: int, *carried: int) -> str:
    """Entries of s2 that carry changes of s1, with a vector up to that second."""
    texts = [f"# entry-id: 1\ndn: {suffix}\nobjectClass: domain\nnsUniqueId: 99999999-00000000-00000000-00000001\n"]
    ruv = [f"nsds50ruv: {value}" for value in elements({1: (csn(0, 1), csn(top, 1))})]
    grave = [f"dn: nsuniqueid={ZONE},{suffix}", "objectClass: nsTombstone", f"nsUniqueId: {ZONE}", *ruv]
    texts.append("# entry-id: 2\n" + "\n".join(grave) + "\n")
    for second in carried:
        texts.append(
            f"# entry-id: {second + 3}\ndn: uid=u{second},{suffix}\nobjectClass: person\n"
            f"nsUniqueId: {second:08x}-00000000-00000000-00000001\ndescription;vucsn-{csn(second, 1)}: x\n"
        )
    return "version: 1\n\n" + "\n".join(texts) + "\n"


def said_of(tmp_path: Path, suffix: str, files: dict[str, str]) -> tuple[list[str], set[str]]:
    """Which changes of s1 are missing at s2, by their second, and why others are unknown."""
    found = diagnose(case_of(tmp_path, dict(files)))
    seconds = [
        int(row["position"][:8], 16) - 0x66000000
        for row in found["missing"]
        if (row["suffix"], row["server"]) == (suffix, "s2")
    ]
    why = {row["why"] for row in found["unknown"] if (row["suffix"], row["server"]) == (suffix, "s2")}
    return seconds, why


def test_a_result_in_one_suffix_does_not_show_that_the_change_of_the_other_came(tmp_path: Path) -> None:
    applied = access(*((second, f"uid=u{second},{B}", csn(second, 1)) for second in range(10)))
    assert said_of(tmp_path, A, {**of(A, lacks=(4,)), **of(B), "s2.access.log": applied}) == ([4], set())


def test_an_entry_of_one_suffix_does_not_carry_the_change_of_the_other(tmp_path: Path) -> None:
    files = {**of(A, lacks=(4,)), **of(B), f"s2.{B}.entries.ldif": export(B, 9, 4)}
    assert said_of(tmp_path, A, files) == ([4], set())


def test_a_later_result_in_one_suffix_does_not_show_that_the_log_passed_over_the_other(tmp_path: Path) -> None:
    """The log of s2 was made anew behind both, so that only its results could tell."""
    later = access((6, f"uid=u6,{B}", csn(6, 1)))
    assert said_of(tmp_path, A, {**of(A, mark=7), **of(B), "s2.access.log": later}) == ([], {"not_shown"})
    told = access((5, f"uid=u5,{A}", csn(5, 1)), (6, f"uid=u6,{B}", csn(6, 1)), (7, f"uid=u7,{A}", csn(7, 1)))
    (tmp_path / "more").mkdir()
    assert said_of(tmp_path / "more", A, {**of(A, mark=7), **of(B), "s2.access.log": told})[0] == [0, 1, 2, 3, 4, 6]


def test_a_result_without_a_target_proves_neither_presence_nor_absence_in_either(tmp_path: Path) -> None:
    nameless = access((4, "", csn(4, 1)), (9, f"uid=u9,{A}", csn(9, 1)))
    files = {**of(A, lacks=(4, 5)), **of(B, lacks=(4,)), "s2.access.log": nameless}
    assert said_of(tmp_path, A, files) == ([5], {"unclear"})
    assert said_of(tmp_path, B, files) == ([], {"unclear"})


def test_a_result_without_a_target_is_of_the_suffix_that_alone_can_have_the_change(tmp_path: Path) -> None:
    """What s1 made of B about then is shown, and is not it."""
    nameless = access((14, "", csn(14, 1)))
    files = {**of(A, range(20), lacks=(14, 15)), **of(B), "s2.access.log": nameless}
    assert said_of(tmp_path, A, files) == ([15], set())


def test_a_tree_that_nobody_collected_names_no_missing_change(tmp_path: Path) -> None:
    """`workbench collect` of one suffix gathers the logs of the whole server all the same."""
    applied = access(*((second, f"uid=u{second},{B}", csn(second, 1, 7)) for second in range(10)))
    assert said_of(tmp_path, A, {**of(A, lacks=(4,)), "s2.access.log": applied}) == ([4], set())
    spaces = access((4, f"uid=u4 , {A.upper()}", csn(4, 1)))
    (tmp_path / "more").mkdir()
    assert said_of(tmp_path / "more", A, {**of(A, lacks=(4,)), "s2.access.log": spaces}) == ([], set())


def test_an_initialisation_of_one_suffix_brings_nothing_to_the_other(tmp_path: Path) -> None:
    told = (
        f"{stamp(90)} - NOTICE - NSMMReplicationPlugin - multisupplier_be_state_change - "
        f"Replica {B} is going offline; disabling replication\n"
        f"{stamp(95)} - INFO - bdb_import_main - import ipaca: Import complete.  Processed 12 entries in 5 seconds.\n"
    )
    lost = {**of(A, lacks=(4,)), "s2.errors.log": told}
    assert said_of(tmp_path, A, lost) == ([4], set())  # B is there, and was not collected
    began, ended = (f"{datetime.fromtimestamp(0x66000000 + at, UTC):%Y%m%d%H%M%SZ}" for at in (90, 95))
    link = agreement("to-s2", 38902, suffix=B).replace(
        "nsds5ReplicaEnabled: on",
        f"nsds5ReplicaEnabled: on\nnsds5replicaLastInitStart: {began}\nnsds5replicaLastInitEnd: {ended}",
    )
    both = {**of(A, lacks=(4,)), **of(B, lacks=(4,)), "s2.errors.log": told, f"s1.{B}.agreements.ldif": link}
    (tmp_path / "more").mkdir()
    assert said_of(tmp_path / "more", B, both) == ([], set())
    (tmp_path / "last").mkdir()
    assert said_of(tmp_path / "last", A, both) == ([4], set())


def test_agreements_of_one_name_in_two_suffixes_are_two(tmp_path: Path) -> None:
    files = {}
    for suffix in (A, B):
        made = [csn(second, 1) for second in range(5, 9)]
        mine, theirs = elements(claims(r1=(0, 8), r2=(0, 0))), elements(claims(r1=(0, 2), r2=(0, 0)))
        files |= {
            f"s1.{suffix}.replica.ldif": replica(1, mine, suffix=suffix),
            f"s1.{suffix}.agreements.ldif": agreement("to-s2", 38902, suffix=suffix),
            f"s1.{suffix}.changelog.ldif": changelog([*made, csn(0, 2)], suffix=suffix, own_entries=True),
            f"s2.{suffix}.replica.ldif": replica(2, theirs, suffix=suffix),
        }
    found = diagnose(case_of(tmp_path, files))
    told = {(one["suffix"], one["link"]) for one in found["findings"] if one["code"].startswith("ANCHOR_")}
    assert told == {(A, "to-s2"), (B, "to-s2")}


def test_many_missing_changes_of_one_suffix_leave_room_for_those_of_the_other(tmp_path: Path) -> None:
    case = case_of(tmp_path, {**of(A, lacks=(3, 4, 5)), **of(B, lacks=(6, 7))})
    shown = topology(case)
    logs = logs_of(case, shown)
    found = verdicts(case, shown, logs, pair_matrix(shown, logs), limit=1)
    assert [(row["suffix"], row["position"]) for row in found.missing] == [(A, csn(3, 1)), (B, csn(6, 1))]
    assert found.cut()["missing"] == 5


def test_tasks_that_clean_one_origin_in_two_suffixes_are_two(tmp_path: Path) -> None:
    task = f"nsds5ReplicaCleanRUV: 7:{csn(0, 7)}:no:1\n"
    files = {name: text for suffix in (A, B) for name, text in of(suffix).items()}
    for suffix in (A, B):
        files[f"s1.{suffix}.replica.ldif"] = files[f"s1.{suffix}.replica.ldif"].rstrip("\n") + f"\n{task}\n"
    found = diagnose(case_of(tmp_path, dict(files), dict(files)))
    told = {(one["server"], one["suffix"]) for one in found["findings"] if one["code"] == "CLEAN_HANGING"}
    assert told == {("s1", A), ("s1", B)}


def test_a_task_that_a_log_alone_tells_of_is_of_the_suffix_that_knows_its_origin(tmp_path: Path) -> None:
    """Only suffix A has a server with ID 7: the command names it."""
    files = {name: text for suffix in (A, B) for name, text in of(suffix).items()}
    files[f"s2.{A}.replica.ldif"] = replica(2, elements(claims(r1=(0, 8), r7=(0, 0))), suffix=A)
    found = diagnose(case_of(tmp_path, {**files, "s1.errors.log": waits(0, 10) + waits(310, 40)}))
    (task,) = [one for one in found["findings"] if one["code"] == "CLEAN_HANGING"]
    assert task["suffix"] == A and "SUFFIX" not in str(task["fix"])
