"""States of entries held against each other: by numbers of many at once, as the rule says of each."""

from __future__ import annotations

import uuid
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine import states
from workbench.engine.partition_writer import write_part
from workbench.engine.spark_entry_missing import Claimant, add_to, lacked_rows, summed
from workbench.engine.states import (
    CHANGED,
    CREATED,
    DELETED,
    EntryStates,
    differing,
    digest_of,
    held_together,
    numbered,
    states_in,
    unlike,
)
from workbench.model import Source
from workbench.replication.entry.rules.entries import NOT_SHOWN, Cid, Kept, Lacking, Ranges, lacking, settled
from workbench.tables import table

ORIGINS = ("a", "b", "c")
ATTRIBUTES = ("mail", "name")

cids = st.tuples(st.integers(0, 6), st.sampled_from(ORIGINS))
alive = st.builds(Kept, at=cids, changes=st.dictionaries(st.sampled_from(ATTRIBUTES), cids))
kept = st.one_of(st.just(NOT_SHOWN), alive, st.builds(Kept, gone=cids))
ranges = st.dictionaries(st.sampled_from(ORIGINS), st.tuples(st.just(0), st.integers(0, 6)))
fleets = st.integers(1, 3).flatmap(
    lambda servers: st.lists(st.tuples(*[kept] * servers), min_size=1, max_size=5)
)  # entry by entry, what each server shows


def rows_of(entry: str, one: Kept) -> list[dict[str, object]]:
    """The rows of the table `states` that a server's file has of an entry."""

    def row(kind: str, cid: Cid, attribute: str | None = None) -> dict[str, object]:
        return {"offset": 0, "kind": kind, "entry": entry, "attribute": attribute, "origin": cid[1], "hi": cid[0]}

    found = [row(CREATED, one.at)] if one.at else []
    found += [row(CHANGED, cid, attribute) for attribute, cid in one.changes.items()]
    return found + ([row(DELETED, one.gone)] if one.gone else [])


def in_memory(fleet: list[tuple[Kept, ...]]) -> EntryStates:
    """The fleet as the engine sees it, entries called by their place."""
    found = []
    for server in range(len(fleet[0])):
        rows = [row for entry, kept in enumerate(fleet) for row in rows_of(f"entry-{entry}", kept[server])]
        made = table("states", rows).select(["entry", "kind", "attribute", "origin", "hi", "number"])
        found.append(made.append_column("server", pa.array([server] * len(made), pa.int8())))
    return EntryStates.of(pa.concat_tables(found), len(fleet[0]))


def told(shown: EntryStates, found: states.Lacked) -> set[tuple[str, Lacking]]:
    """What the engine found, in the words of the rule."""
    return {
        (
            shown.entries[found.entry[at]],
            Lacking(
                None if found.attribute[at] < 0 else shown.attributes[found.attribute[at]],
                shown.cid(found, at),
                states.WHYS[int(found.why[at])],
            ),
        )
        for at in range(len(found))
    }


@settings(max_examples=400)
@given(fleets, ranges, st.integers(0, 6), st.booleans())
def test_what_is_lacked_is_what_the_rule_says_of_each_entry(
    fleet: list[tuple[Kept, ...]], seen: Ranges, forgotten: int, whole: bool
) -> None:
    shown = in_memory(fleet)
    for server in range(len(fleet[0])):
        slowly = {
            (f"entry-{entry}", one)
            for entry, kept in enumerate(fleet)
            for one in lacking(kept[server], kept[:server] + kept[server + 1 :], seen, forgotten, whole)
        }
        found = shown.lacked_by(server, seen, forgotten, whole)
        assert told(shown, found) == slowly
        assert len(found) == len(slowly), "each once"
        held = shown.holders(found)
        for at in range(len(found)):
            entry = int(shown.entries[found.entry[at]].removeprefix("entry-"))
            cid, attribute = shown.cid(found, at), found.attribute[at]
            name = None if attribute < 0 else shown.attributes[attribute]
            who = [(one.gone if name is None else one.changes.get(name)) == cid for one in fleet[entry]]
            assert held[:, at].tolist() == who


@settings(max_examples=200)
@given(fleets, ranges, st.integers(0, 6))
def test_what_is_pending_is_what_others_show_beyond_the_claim(
    fleet: list[tuple[Kept, ...]], seen: Ranges, forgotten: int
) -> None:
    shown = in_memory(fleet)
    for server in range(len(fleet[0])):
        slowly = set()
        for entry, kept in enumerate(fleet):
            for one in kept[:server] + kept[server + 1 :]:
                changes = [*one.changes.items(), *([(None, one.gone)] if one.gone else [])]
                slowly |= {
                    (f"entry-{entry}", attribute, cid)
                    for attribute, cid in changes
                    if cid[0] > (seen[cid[1]][1] if cid[1] in seen else forgotten - 1)
                    and not settled(kept[server], one, attribute)
                }
        found = told(shown, shown.pending_at(server, seen, forgotten))
        assert {(entry, one.attribute, one.cid) for entry, one in found} == slowly


def written(folder: Path, fleet: list[tuple[Kept, ...]], names: list[str]) -> tuple[list[list[dict[str, object]]], ...]:
    """Parts of the tables `states` and `digests` of each server, two parts of each."""
    parts: tuple[list[list[dict[str, object]]], ...] = ([], [])
    for server in range(len(fleet[0])):
        mine: tuple[list[dict[str, object]], ...] = ([], [])
        for half in (0, 1):
            some = [(names[at], kept[server]) for at, kept in enumerate(fleet) if at % 2 == half]
            rows = numbered(table("states", [row for name, one in some for row in rows_of(name, one)]))
            for kind, made, to in (("states", rows, mine[0]), ("digests", digest_of(rows), mine[1])):
                about = write_part(folder, kind, made, Source("file", "now", str(server)))
                to.append({**about, "path": str(folder / kind / about["name"])})
        for all_, ours in zip(parts, mine, strict=True):
            all_.append(ours)
    return parts


def test_only_entries_that_differ_are_read_and_all_of_them(tmp_path: Path, monkeypatch: object) -> None:
    names = [str(uuid.UUID(int=number << 96 | number * 7919)) for number in range(1, 400)]
    same = [(Kept(at=(1, "a"), changes={"mail": (number % 5, "b")}),) * 3 for number in range(len(names))]
    fleet = list(same)
    for number in (3, 77, 200):
        fleet[number] = (*same[number][:2], Kept(at=(1, "a"), changes={"name": (number % 5, "b")}))
    parts, digests = written(tmp_path, fleet, names)
    found = differing(digests)
    assert 1 <= len(found) <= 3 and sum(count for _, count in found) < 60
    numbers = unlike(parts, [bucket for bucket, _ in found])
    shown = states_in(parts, [number for number, _ in numbers])
    assert set(shown.entries) == {names[3], names[77], names[200]}
    assert sum(count for _, count in numbers) == 3 * 3 * 2 == len(shown.server) + shown.at.size
    lacked = told(shown, shown.lacked_by(2, {"b": (0, 9)}, 0))
    assert {entry for entry, _ in lacked} == {names[3], names[77], names[200]}
    assert {one.attribute for _, one in lacked} == {"mail"}
    assert differing([digests[0], digests[1]]) == []


def test_buckets_are_held_in_groups() -> None:
    assert list(held_together([])) == []
    assert list(held_together([(1, 900_000), (2, 900_000), (3, 100), (5, 2_000_000), (6, 1)])) == [
        [1],
        [2, 3],
        [5],
        [6],
    ]


# --- the same by Spark


def claimed(groups: list[list[Claimant]], folder: Path, fleets: list[list[tuple[Kept, ...]]]) -> list[str]:
    """The parts of `states` of all servers of all fleets; every fleet is a group."""
    paths = []
    for group, fleet in enumerate(fleets):
        for server in range(len(groups[group])):
            rows = [row for at, one in enumerate(fleet) for row in rows_of(f"entry-{at}", one[server])]
            if rows:
                about = write_part(
                    folder, "states", numbered(table("states", rows)), Source(f"{group}-{server}", "now", "s")
                )
                paths.append(str(folder / "states" / about["name"]))
    return paths


def drawn(random: Random) -> tuple[list[tuple[Kept, ...]], list[tuple[Ranges, int, bool]]]:
    """A fleet, and what each of its servers claims and remembers, and whether its file was read whole."""

    def cid() -> Cid:
        return random.randrange(5), random.choice(ORIGINS)

    def kept() -> Kept:
        how = random.random()
        if how < 0.2:
            return NOT_SHOWN
        if how < 0.35:
            return Kept(gone=cid())
        at = (random.randrange(2), "a")
        return Kept(at=at, changes={name: cid() for name in ATTRIBUTES if random.random() < 0.8})

    servers = random.randrange(1, 4)
    fleet = []
    for _ in range(random.randrange(1, 6)):
        one = kept()
        fleet.append(tuple(one if random.random() < 0.5 else kept() for _ in range(servers)))
    seen = [{one: (0, random.randrange(6)) for one in ORIGINS if random.random() < 0.9} for _ in range(servers)]
    return fleet, [(one, random.randrange(4), random.random() < 0.7) for one in seen]


def test_spark_numpy_and_the_rule_agree(spark: Any, tmp_path: Path) -> None:
    made = [drawn(Random(seed)) for seed in range(400)]
    fleets = [fleet for fleet, _ in made]
    groups = [
        [Claimant("now", f"{group}-{server}", *claim) for server, claim in enumerate(claims)]
        for group, (_, claims) in enumerate(made)
    ]
    paths = claimed(groups, tmp_path, fleets)
    by_rule, by_numbers = set(), {}
    for group, (fleet, claims) in enumerate(made):
        shown = in_memory(fleet)
        for server, claim in enumerate(claims):
            add_to(by_numbers, group, server, shown, shown.lacked_by(server, *claim))
            for entry, kept in enumerate(fleet):
                for one in lacking(kept[server], kept[:server] + kept[server + 1 :], *claim):
                    by_rule.add((group, server, f"entry-{entry}", one.attribute, tuple(one.cid), one.why))
    rows = lacked_rows(spark, groups, paths).collect()
    assert len(by_rule) > 500 and len(rows) == len(by_rule)
    assert {(row.group, row.me, row.entry, row.attribute, tuple(row.cid), row.why) for row in rows} == by_rule
    assert summed(spark, groups, paths) == by_numbers
    assert summed(spark, groups, []) == {}


def test_of_an_entry_that_a_file_shows_twice_the_later_one_counts(spark: Any, tmp_path: Path) -> None:
    first = rows_of("e", Kept(at=(1, "a"), changes={"mail": (1, "a"), "name": (1, "a")}))
    twice = [*first, *({**row, "offset": 9} for row in rows_of("e", Kept(at=(2, "b"), changes={"mail": (3, "b")})))]
    other = rows_of("e", Kept(at=(2, "b"), changes={"mail": (2, "c"), "name": (2, "b")}))
    parts = []
    for server, rows in enumerate((twice, other)):
        about = write_part(tmp_path, "states", numbered(table("states", rows)), Source(str(server), "now", "s"))
        parts.append([{**about, "path": str(tmp_path / "states" / about["name"])}])
    everything = dict.fromkeys(ORIGINS, (0, 9))
    groups = [[Claimant("now", str(server), everything, 0) for server in (0, 1)]]
    shown = states_in(parts, [number for number, _ in unlike(parts, range(-2048, 2048))])
    sums: dict[Any, Any] = {}
    for server in (0, 1):
        add_to(sums, 0, server, shown, shown.lacked_by(server, everything, 0))
    assert {key[1:3]: count for key, (count, _) in sums.items()} == {(0, "b"): 1, (1, "b"): 1}
    assert summed(spark, groups, [part["path"] for one in parts for part in one]) == sums
