"""Floors: what every server has seen, and what may be forgotten, held against a slow count and against the rules themselves."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from incident_samples import case_of
from kanidm_samples import DAY, START, Cid, Entry, backup, case_of_graves, collected, entry_id, origin, text_of

from workbench import Case
from workbench.cli import main
from workbench.diagnosis.case_diagnosis import diagnose
from workbench.diagnosis.diagnosis_text import diagnosis_text
from workbench.diagnosis.output_keys import undocumented
from workbench.replication.entry.rules.entries import Ranges, trim
from workbench.systems import system_named
from workbench.systems.kanidm.rules.ranges import Compared, ranges_of, reply

NAMES = "abcd"
NAMED = ("oslo-office", "bergen-office", "tromso-office")
NOW, CUT = 20 * DAY, 13 * DAY


def diagnosed(folder: Path, *backups: dict[str, Any], case: str = "case") -> dict[str, Any]:
    made = Case.create(folder / case)
    made.load([collected(folder / f"{case}-in", *backups)])
    found = diagnose(made)
    assert not undocumented(found)
    return found


def floor_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in found["floors"] if row["origin"] == origin(name))


def at(found: dict[str, Any], name: str, server: str) -> dict[str, Any]:
    return next(one for one in floor_of(found, name)["servers"] if one["server"] == server)


def graves(found: dict[str, Any], server: str) -> dict[str, Any]:
    return next(one for one in found["tombstones"] if one["server"] == server)


class Fleet:
    """Some servers, what each lists of each origin, and what each keeps of deleted entries."""

    def __init__(self, seed: int) -> None:
        luck = random.Random(seed)
        self.names = NAMES[: luck.choice((2, 3, 4))]
        marks = [0, DAY, 5 * DAY, 12 * DAY, CUT - 1, CUT, CUT + 1, 15 * DAY, NOW - 5]
        self.lists: dict[str, list[Cid]] = {}
        for name in self.names:
            some = [(time, made) for made in self.names for time in luck.sample(marks, luck.randint(0, 6))]
            self.lists[name] = some or [(NOW - 5, name)]
        self.dead = {number: (luck.choice(marks[1:]), luck.choice(self.names)) for number in range(8)}
        self.alive = {name: set(luck.sample(range(8), luck.randint(0, 3))) for name in self.names}

    def backups(self) -> list[dict[str, Any]]:
        live = {number: Entry((0, "a"), {"mail": (0, "a")}) for number in (*range(8), 90)}
        return [
            backup(
                name,
                NOW,
                self.lists[name],
                {n: live[n] if n not in self.dead or n in self.alive[name] else Entry(gone=self.dead[n]) for n in live},
            )
            for name in self.names
        ]

    def last(self, server: str, made: str) -> int | None:
        return max((time for time, one in self.lists[server] if one == made), default=None)

    def ranges(self, server: str) -> dict[str, tuple[int, int]]:
        return {
            made: (min(times), max(times))
            for made in self.names
            if (times := [time for time, one in self.lists[server] if one == made])
        }

    def known(self, server: str, made: str) -> bool:
        """Does anybody know how far the server has seen the origin?"""
        highest = max(self.last(one, made) or 0 for one in self.names)
        return self.last(server, made) is not None or highest >= CUT

    def lacks(self, server: str, cid: Cid) -> bool:
        last = self.last(server, cid[1])
        return cid[0] > last if last is not None else cid[0] >= CUT

    def owed(self, supplier: Ranges, consumer: str) -> Compared:
        """What the consumer hears of a supplier with these ranges."""
        told = reply(("", ""), self.ranges(consumer), supplier, CUT, -START).compared
        assert told is not None
        return told

    def leaves_behind(self, supplier: str, consumer: str, made: str) -> bool:
        """Can the consumer be supplied with changes of the origin now, and not behind the purge, for what that forgets of it?"""
        if supplier == consumer:
            return False
        now = self.owed(self.ranges(supplier), consumer)
        # One origin out of step stops the whole session, and so do own changes that the consumer does not know.
        if now.status != "Ok" or made not in now.owed or (consumer in now.owed and consumer in self.ranges(consumer)):
            return False
        mine = [*(cid for cid in self.lists[supplier] if cid[0] >= CUT), (NOW, supplier)]
        then = self.owed(ranges_of(mine), consumer)
        if then.lag:
            return made in then.lag
        # A mark without an entry is no change: what is forgotten of it is lacked by no newcomer.
        shown = {(0, "a"), *(cid for number, cid in self.dead.items() if number not in self.alive[supplier])}
        first, (after, _) = self.ranges(supplier)[made][0], now.owed[made]
        return then.status != "Ok" or any(by == made and max(first, after + 1) <= time < CUT for time, by in shown)


@pytest.mark.parametrize("seed", range(12))
def test_floors_are_what_a_slow_count_says(seed: int, tmp_path: Path) -> None:
    fleet = Fleet(seed)
    found = diagnosed(tmp_path, *fleet.backups())
    listed = {made for some in fleet.lists.values() for _, made in some}
    assert {row["origin"] for row in found["floors"]} == {origin(made) for made in listed}
    for made in listed:
        row = floor_of(found, made)
        known = {name: fleet.last(name, made) for name in fleet.names if fleet.known(name, made)}
        floor = min(-1 if last is None else last for last in known.values())
        highest = max(-1 if last is None else last for last in known.values())
        assert row["floor"] == (text_of(floor, made) if floor >= 0 else None)
        assert row["held_by"] == [
            name.upper() for name, last in known.items() if (-1 if last is None else last) == floor < highest
        ]
        assert row["certain"] is (len(known) == len(fleet.names))
        assert [one["who"] for one in row["unsure"]] == [name.upper() for name in fleet.names if name not in known]
        for name in fleet.names:
            one, mine = at(found, made, name.upper()), sorted(time for time, by in fleet.lists[name] if by == made)
            below = [time for time in mine if time < floor]
            old = [time for time in mine if time < CUT]
            assert one["listed"] == len(mine)
            assert one["safe"] == (len(below) if row["certain"] or not below else None)
            assert one["forgets"] == len(old)
            lowest = min(-1 if last is None else last for last in known.values())
            assert one["needed"] == len([time for time in old if time > lowest])
            assert one["shows"] is bool(mine and mine[-1] >= CUT)
            left = [other.upper() for other in fleet.names if fleet.leaves_behind(name, other, made)]
            assert one["leaves_behind"] == left, (made, name)
            if made == name and row["certain"]:
                peers = [other for other in fleet.names if other != name]
                rule = trim(fleet.ranges(name), name, {o: fleet.ranges(o) for o in peers}, peers, fleet.lists[name])
                if mine and max(fleet.last(o, made) or -1 for o in peers) <= mine[-1]:
                    assert one["safe"] == len(rule.removed)
    for name in fleet.names:
        row, kept = graves(found, name.upper()), {n: cid for n, cid in fleet.dead.items() if n not in fleet.alive[name]}
        others = [one for one in fleet.names if one != name]
        # Whoever claims the deletion and still shows the entry has missed it.
        lacks = {
            n: [
                o
                for o in others
                if fleet.lacks(o, cid) or (n in fleet.alive[o] and (fleet.last(o, cid[1]) or -1) >= cid[0])
            ]
            for n, cid in kept.items()
        }
        unsure = {n for n, cid in kept.items() if any(fleet.last(o, cid[1]) is None and cid[0] < CUT for o in others)}
        old = {n for n, cid in kept.items() if cid[0] < CUT}
        assert row["kept"] == len(kept)
        assert row["safe"] == len([n for n in kept if not lacks[n] and n not in unsure])
        assert (row["forgets"], row["needed"]) == (len(old), len([n for n in old if lacks[n]]))
        counts = {o.upper(): len([n for n in old if o in lacks[n]]) for o in others}
        assert row["lacked_by"] == [{"server": o, "count": count} for o, count in counts.items() if count]
        assert row["still_needed"] == [
            {"position": text_of(*kept[n]), "entry": entry_id(n)}
            for n in sorted((n for n in old if lacks[n]), key=lambda n: (text_of(*kept[n]), entry_id(n)))
        ]


RUV: list[Cid] = [(time, name) for time in (5, 10, NOW - 10) for name in "ab"]
ENTRIES = {1: Entry((5, "a"), {"mail": (5, "a")}), 2: Entry(gone=(10, "a"))}


def test_what_all_have_seen_is_safe_and_the_floor_itself_stays(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, backup("a", NOW, RUV, ENTRIES), backup("b", NOW, RUV, ENTRIES))
    row = floor_of(found, "a")
    assert (row["floor"], row["held_by"], row["certain"]) == (text_of(NOW - 10, "a"), [], True)
    one = at(found, "a", "A")
    assert (one["listed"], one["safe"], one["forgets"], one["needed"], one["leaves_behind"]) == (3, 2, 2, 0, [])
    assert (graves(found, "A")["safe"], graves(found, "A")["forgets"], graves(found, "A")["needed"]) == (1, 1, 0)


@pytest.mark.parametrize("recent", [True, False])
def test_an_origin_of_no_collected_server_leaves_no_floor_certain_while_it_is_heard_of(
    recent: bool, tmp_path: Path
) -> None:
    ruv = [*RUV, (NOW - 20 if recent else 20, "z")]
    found = diagnosed(tmp_path, backup("a", NOW, ruv, ENTRIES), backup("b", NOW, ruv, ENTRIES))
    assert {row["certain"] for row in found["floors"]} == {not recent}
    assert at(found, "a", "A")["safe"] == (None if recent else 2)
    assert graves(found, "A")["safe"] == (None if recent else 1)
    text = diagnosis_text(system_named("kanidm"), found)
    told = f"No floor is certain: {origin('z')} was heard of within the window"
    assert (told in text) is recent
    assert ("at most" in text) is recent


def test_a_server_without_a_vector_leaves_no_floor_certain(tmp_path: Path) -> None:
    silent = backup("c", NOW, [], ENTRIES)
    del silent["repl_meta"]
    found = diagnosed(tmp_path, backup("a", NOW, RUV, ENTRIES), backup("b", NOW, RUV, ENTRIES), silent)
    assert floor_of(found, "a")["unsure"] == [{"who": "C", "why": "no_vector"}]
    assert at(found, "a", "A")["safe"] is None


def test_whom_a_purge_by_age_leaves_behind_is_said(tmp_path: Path) -> None:
    """B has seen A up to 10, which A still lists; behind its next purge A begins later than that."""
    behind = [(5, "a"), (10, "a"), (5, "b"), (NOW - 10, "b")]
    found = diagnosed(tmp_path, backup("a", NOW, RUV, ENTRIES), backup("b", NOW, behind, ENTRIES))
    one = at(found, "a", "A")
    assert (floor_of(found, "a")["held_by"], one["safe"], one["forgets"], one["needed"]) == (["B"], 1, 2, 0)
    assert one["leaves_behind"] == ["B"]
    text = diagnosis_text(system_named("kanidm"), found)
    assert f"A cannot supply B behind its next purge: it forgets what is needed of {origin('a')}" in text


def test_a_position_at_time_0_is_none_but_a_first_one(tmp_path: Path) -> None:
    """A newcomer is given one: it is no change, and as long as it is listed nobody is too far behind."""
    listed = [(-START, "z"), (NOW - 10, "z"), (NOW - 10, "b")]
    older = [(10, "z"), (NOW - 10, "b")]
    found = diagnosed(tmp_path, backup("b", NOW, listed, ENTRIES), backup("a", NOW, older, ENTRIES))
    one = at(found, "z", "B")
    assert (one["listed"], one["forgets"], one["gap"]) == (1, 0, None)
    assert one["leaves_behind"] == ["A"]


def test_several_domains_have_floors_of_their_own(tmp_path: Path) -> None:
    other = "11111111-af6d-414c-8a6f-188a424e617b"
    found = diagnosed(
        tmp_path, backup("a", NOW, RUV, ENTRIES), backup("c", NOW, [(9, "c"), (NOW, "c")], ENTRIES, other)
    )
    assert {(row["generation"], tuple(one["server"] for one in row["servers"])) for row in found["floors"]} == {
        (row["generation"], ("C",) if row["generation"] == other else ("A",)) for row in found["floors"]
    }
    assert len({row["generation"] for row in found["floors"]}) == 2


def test_a_server_that_does_not_tell_its_data_is_no_reason_to_call_a_floor_certain(tmp_path: Path) -> None:
    behind = backup("c", NOW, [(5, "a"), (5, "b"), (NOW - 10, "b")], ENTRIES)
    del behind["db_d_uuid"]
    of_one = [backup(name, NOW, RUV, ENTRIES) for name in "ab"]
    found = diagnosed(tmp_path, *of_one, behind, case="one")
    row = floor_of(found, "a")
    assert (row["floor"], row["held_by"], len(row["servers"])) == (text_of(5, "a"), ["C"], 3)
    other = backup("d", NOW, [(NOW, "d")], ENTRIES, "11111111-af6d-414c-8a6f-188a424e617b")
    found = diagnosed(tmp_path, *of_one, behind, other, case="two")
    told = {(row["origin"], row["certain"], tuple(one["who"] for one in row["unsure"])) for row in found["floors"]}
    assert {who for _, _, whos in told for who in whos} >= {"C"} and not any(certain for _, certain, _ in told)
    assert "C does not tell to which of these data it belongs" in diagnosis_text(system_named("kanidm"), found)


def test_servers_that_keep_logs_have_no_floors() -> None:
    found = diagnose(case_of("missed_behind_equal_vectors"))
    assert found["floors"] == found["tombstones"] == []


def test_no_name_of_a_server_leaves_the_case_with_its_floors(tmp_path: Path) -> None:
    folder = collected(tmp_path / "in", *(json.loads(Path(one.path).read_bytes()) for one in case_of_graves().inputs))
    for letter, name in zip("ABC", NAMED, strict=True):
        (folder / f"{letter}.json").rename(folder / f"{name}.json")
    case = Case.create(tmp_path / "case")
    case.load([folder])
    found = diagnose(case)
    assert {one["server"] for row in found["tombstones"] for one in row["lacked_by"]} == {"tromso-office"}
    made = CliRunner().invoke(main, ["report", str(case.folder), "--case-export", str(tmp_path / "case.zip")])
    assert made.exit_code == 0, made.output
    told = zipfile.ZipFile(tmp_path / "case.zip").read("findings.json").decode()
    assert len(json.loads(told)["floors"]) == len(found["floors"]) > 0
    assert [name for name in NAMED if name in told] == []
