"""Changes of entries that stand for each other: what a server sends, lacks and loses of them, and what a plan counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kanidm_samples import DOMAIN, Entry, as_file, backup, origin, text_of
from test_kanidm_repairs import BASE, RUV, case_of

from workbench import Case
from workbench.diagnosis.case_diagnosis import context_of, diagnose
from workbench.engine.state_fates import Fate
from workbench.repair.planner import models_of, plan
from workbench.replication.entry.rules.repair_model import PullModel
from workbench.rules.repair_model import ChangeGroup, Link, MissingAt, Server
from workbench.rules.vectors import Span
from workbench.systems.kanidm.pulling import PULLING


def position(time: int, name: str) -> str:
    return text_of(time, name)


def span(first: int, last: int, name: str) -> Span:
    return Span(position(first, name), position(last, name))


OLD, NEW = range(2)
"""Two changes of one attribute: OLD, made by `a`, and NEW, made by `b`."""


def model_of(
    servers: Mapping[str, tuple[int, int, set[int], set[int]]], lots: list[ChangeGroup], *links: str
) -> PullModel:
    """Servers by letter: up to where each has seen origins a and b, the lots that it holds, and those that it shows."""
    made = {}
    for name, (a, b, holds, _) in servers.items():
        vector = {origin("a"): span(0, a, "a"), origin("b"): span(0, b, "b")}
        made[name] = Server(name, origin(name), "one", vector, None, set(holds))
    return PullModel(
        lots,
        made,
        [Link(one[0], one[1], True) for one in links],
        lambda text: text[33:],
        lambda of, number: f"{10**30 + number:032d}-{of}",
        pulling=PULLING,
        now=dict.fromkeys(made, int(position(500, "a")[:32])),
        time_of=lambda text: int(text[:32]),
        order_key=lambda of, time: f"{time:032d}-{of}",
        shows={name: set(shows) for name, (_, _, _, shows) in servers.items()},
    )


REPLACED = [
    ChangeGroup(origin("a"), *[position(100, "a")] * 2),
    ChangeGroup(origin("b"), *[position(200, "b")] * 2, mends=frozenset({OLD})),
]


def test_a_change_brings_what_it_replaces_and_the_older_one_is_sent_by_none_that_shows_the_later_one() -> None:
    model = model_of({"b": (100, 200, {OLD, NEW}, {NEW}), "c": (0, 0, set(), set())}, REPLACED, "bc")
    model.settle()
    assert model.servers["c"].holds == {OLD, NEW} and model.shows["c"] == {NEW}
    missed = model_of({"b": (100, 200, {OLD, NEW}, {NEW}), "c": (0, 200, set(), set())}, REPLACED, "bc")
    missed.settle()
    assert missed.servers["c"].holds == set(), "c claims the later change, so neither comes"
    assert missed.missing() == {MissingAt("c", NEW)}, "what no server shows any more is lacked by none"


def test_of_two_deletions_of_an_entry_the_earlier_one_stays_and_either_settles_the_other() -> None:
    first = ChangeGroup(origin("a"), *[position(100, "a")] * 2, mends=frozenset({1}))
    second = ChangeGroup(origin("b"), *[position(200, "b")] * 2, mends=frozenset({0}), yields_to=frozenset({0}))
    servers = {"a": (100, 0, {0, 1}, {0}), "b": (0, 200, {0, 1}, {1}), "c": (0, 0, set[int](), set[int]())}
    for links in (("ac", "bc", "ab"), ("bc", "ac", "ab")):
        model = model_of(servers, [first, second], *links)
        model.settle()
        assert model.shows == {"a": {0}, "b": {0}, "c": {0}}, links
        assert model.servers["c"].holds == {0, 1}


def test_what_a_server_may_refuse_is_not_kept_there_and_passed_on_in_doubt_until_it_is_filled() -> None:
    """B has changes of A that are younger than A's files: A made them since, or was restored and refuses all of B."""
    lots = [ChangeGroup(origin("b"), *[position(200, "b")] * 2)]
    model = model_of({"b": (150, 200, {0}, {0}), "a": (100, 0, set(), set())}, lots, "ba")
    model.now["a"] = int(position(120, "a")[:32])
    model.settle()
    assert model.held() == {MissingAt("a", 0), MissingAt("b", 0)} and model.kept() == {MissingAt("b", 0)}
    assert model.copy().unsure == model.unsure
    model.do([{"do": "initialise", "source": "a", "server": "b"}])
    assert model.thrown_away(model) == {0}
    model = model_of({"b": (100, 200, {0}, {0}), "a": (100, 0, set(), set())}, lots, "ba")
    model.settle()
    assert model.kept() == model.held() == {MissingAt("a", 0), MissingAt("b", 0)}


# --- the fates of changes, out of files


def changed(**names: tuple[int, str]) -> dict[int, Entry]:
    return {**BASE, 3: Entry((0, "a"), {"mail": (0, "a"), **names})}


def fates_of(folder: Path, *backups: dict[str, Any]) -> list[Fate]:
    context, _ = context_of(case_of(folder, *backups))
    return context.verdicts.fates[context.topology.replicas[0].suffix]


def test_fates_say_who_shows_a_change_and_what_stands_for_it(tmp_path: Path) -> None:
    ruv = [(0, name) for name in "abc"]
    found = fates_of(
        tmp_path,
        backup("a", 300, [*ruv, (100, "a")], changed(mail=(100, "a"))),
        backup("b", 300, [*ruv, (200, "b")], changed(mail=(200, "b"))),
        backup("c", 300, ruv, changed()),
    )
    old, new = sorted(found, key=lambda one: one.first)
    assert (old.shown, old.holders, old.count) == ({"A"}, {"A", "B"}, 1)
    assert (new.shown, new.holders, new.count) == ({"B"}, {"B"}, 1)
    assert [found[number] for number in old.settled_by] == [new] and not new.settled_by
    assert old.awaited_by("C") and not old.awaited_by("B") and new.awaited_by("A")


def test_fates_of_two_deletions_stand_for_each_other_and_for_all_changes_of_the_entry(tmp_path: Path) -> None:
    ruv = [(0, name) for name in "abcd"]
    found = fates_of(
        tmp_path,
        backup("a", 300, [*ruv, (200, "a")], {**BASE, 3: Entry(gone=(200, "a"))}),
        backup("b", 300, [*ruv, (250, "b")], {**BASE, 3: Entry(gone=(250, "b"))}),
        backup("c", 300, [*ruv, (100, "c")], changed(mail=(100, "c"))),
        backup("d", 300, ruv, BASE),
    )
    mail, first, second = sorted(found, key=lambda one: one.first)
    assert {found[number].first for number in mail.settled_by} == {first.first, second.first}
    assert [found[number] for number in second.yields_to] == [first] and not first.yields_to
    assert [found[number] for number in first.settled_by] == [second]
    assert [found[number] for number in second.settled_by] == [first]


def test_a_missed_change_has_a_fate_of_its_own_as_long_as_the_list_is_not_cut(tmp_path: Path) -> None:
    both = {**changed(mail=(100, "a")), 4: Entry((0, "a"), {"mail": (100, "a")})}
    case = case_of(tmp_path, backup("a", 200, RUV, both), backup("b", 200, RUV, BASE))
    found = plan(case)
    assert sum(one.restored for one in found.courses if one.chosen) == 2
    context, _ = context_of(case)
    (fates,) = context.verdicts.fates.values()
    assert [(one.count, one.missed) for one in fates] == [(1, {"B"})] * 2
    assert len({one.change for one in fates}) == 2


# --- what is said of them


def lost(found: Any, way: str) -> tuple[int, int]:
    ((lost, saved),) = {(one.lost, one.saved) for one in found.courses if one.way == way}
    return lost, saved


def test_a_refresh_throws_away_what_its_source_may_have_refused(tmp_path: Path) -> None:
    """B's mail is on its way to A, which may be restored: others have a change of A that is younger than A's files."""
    ruv = [(0, "a"), (0, "b"), (100, "b")]
    own = {**changed(mail=(300, "b")), 5: BASE[5]}
    del own[6]
    case = case_of(
        tmp_path,
        backup("a", 200, [*ruv, (200, "a")], changed()),
        backup("b", 300, [*ruv, (250, "a"), (300, "b")], own),
    )
    found = plan(case)
    assert lost(found, "refresh-from-A") == (1, 1)


def named(folder: Path, **files: dict[str, Any]) -> Case:
    """A case of files that are called by the names of their servers."""
    (folder / "in").mkdir()
    for name, one in files.items():
        as_file(folder / "in" / f"{name}.json", one)
    case = Case.create(folder / "case")
    case.load([folder / "in"])
    return case


def test_a_pull_that_comes_first_and_passes_over_changes_is_named(tmp_path: Path) -> None:
    """A waits for two changes of B. C missed the first of them, and would send the second."""
    ruv = [(0, "a"), (0, "b"), (0, "c"), (100, "a"), (100, "b"), (100, "c")]
    full = [*ruv, (200, "b"), (250, "b")]
    second = {4: Entry((0, "a"), {"mail": (250, "b")})}
    found = diagnose(
        case_of(
            tmp_path,
            backup("a", 300, ruv, BASE),
            backup("b", 300, full, {**changed(mail=(200, "b")), **second}),
            backup("c", 300, full, {**BASE, **second}),
        )
    )
    (row,) = found["pending"]
    assert (row["server"], row["count"], row["available"], row["suppliers"]) == ("A", 2, 2, ["B", "C"])
    assert row["may_pass_over"] == {"C": 1} and row["passed_over"] == 0
    (told,) = (one for one in found["findings"] if one["code"] == "PENDING_CHANGES")
    assert told["severity"] == "warning"
    assert "a session of C that comes first passes over 1 of them for good" in told["summary"]


def test_a_pull_from_one_of_two_that_share_an_origin_may_pass_over_changes_of_the_other(tmp_path: Path) -> None:
    ruv = [(0, "a"), (0, "b"), (100, "a"), (100, "b")]
    mine, theirs = changed(mail=(200, "b")), {**BASE, 4: Entry((0, "a"), {"mail": (250, "b")})}
    found = diagnose(
        named(
            tmp_path,
            a=backup("a", 300, ruv, BASE),
            b=backup("b", 300, [*ruv, (200, "b")], mine),
            c=backup("b", 300, [*ruv, (250, "b")], theirs),
        )
    )
    (row,) = (one for one in found["pending"] if one["server"] == "a")
    assert (row["count"], row["available"], row["may_pass_over"]) == (2, 2, {"c": 1})


def test_a_deletion_is_passed_over_by_a_pull_from_a_server_that_does_not_have_the_entry(tmp_path: Path) -> None:
    """B deleted entry 3, which A does not have at all, and C changed it meanwhile: A lacks nothing until it gets that change."""
    ruv = [(0, "a"), (0, "b"), (0, "c"), (100, "a"), (100, "b"), (100, "c")]
    less = {number: one for number, one in BASE.items() if number != 3}
    case = case_of(
        tmp_path,
        backup("a", 300, [*ruv, (200, "b")], less),
        backup("b", 300, [*ruv, (200, "b")], {**less, 3: Entry(gone=(200, "b"))}),
        backup("c", 300, [*ruv, (210, "c")], changed(mail=(210, "c"))),
    )
    (row,) = (one for one in diagnose(case)["pending"] if one["server"] == "C")
    assert (row["count"], row["available"], row["suppliers"], row["may_pass_over"]) == (1, 1, ["B"], {"A": 1})
    (model,) = models_of(case).values()
    (deletion,) = (number for number, lot in enumerate(model.lots) if lot.mends)
    assert not model.missing()
    model.links = [Link("C", "A", True)]
    model.settle()
    assert model.missing() == {MissingAt("A", deletion)}


def test_of_two_domains_each_change_that_the_servers_of_one_show_counts_once(tmp_path: Path) -> None:
    """A's mail of entry 3 replaces that of C, C has an entry of its own, and D is of another domain."""
    other = "11111111-2222-4333-8444-555555555555"
    ruv = [(0, "a"), (0, "c")]
    own = {**changed(mail=(100, "c")), 50: Entry((120, "c"), {"mail": (120, "c")})}
    case = case_of(
        tmp_path,
        backup("a", 200, [*ruv, (150, "a")], changed(mail=(150, "a"))),
        backup("c", 200, [*ruv, (100, "c"), (120, "c")], own),
        backup("d", 200, [(50, "d")], {9: Entry((50, "d")), 10: Entry((50, "d"))}, domain=other),
    )
    (model,) = models_of(case).values()
    counts: Counter[tuple[str | None, tuple[str, ...]]] = Counter()
    for number, lot in enumerate(model.lots):
        counts[lot.within, tuple(sorted(name for name, one in model.servers.items() if number in one.holds))] += (
            lot.changes
        )
    assert counts == {
        (DOMAIN, ("A", "C")): 19 * 2 + 1 + 1,  # what is alike, the class of entry 3, and the mail that A's stands for
        (DOMAIN, ("A",)): 1,
        (DOMAIN, ("C",)): 2,
        (other, ("D",)): 2,
    }
