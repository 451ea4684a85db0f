"""What the plan of each made-up or real case must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import planning_samples as made
from planning_samples import Files

from workbench import Case
from workbench.diagnosis.case_diagnosis import context_of

HERE = Path(__file__).parent / "incidents"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OTHER = "LINK_DISABLED s2-to-s3"


@dataclass(frozen=True)
class Must:
    """What the plan must say.

    source    a folder of the incidents, or what writes the files of the snapshots
    chosen    (need, way) in this order; `steps` are the keys; `refused` way -> words of the reason
    promise   (server, origin) -> how many; `lacks` and `then` (server) -> (missing, pending), zeros left out
    """

    source: str | Callable[[], Files | tuple[Files, ...]]
    chosen: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    promise: dict[tuple[str, str], int] = field(default_factory=dict)
    lacks: dict[str, tuple[int, int]] = field(default_factory=dict)
    then: dict[str, tuple[int, int]] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    unmended: int = 0
    only: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()


BY_HAND = {"add-on-consumer": "naming conflict"}
NOWHERE = {"s2": (0, 1)}
"""A change that exports of s1 and s3 show and no log holds: no plan brings it."""
OVERTAKEN = {"recreate": "never gets the deletion, and the entry is gone elsewhere"}
PLANS = {
    "dead origin": Must(
        "dead_origin/1-server_gone",
        (("DEAD_ORIGIN 3", "clean"),),
        ("1-clean-3",),
        {"clean-by-force": "without force is enough"},
        only=("3",),
        ways=("clean",),
    ),
    "dead origin, not asked for": Must(
        "dead_origin/1-server_gone",
        refused={
            "clean": "clean it only if that server is gone for good, then plan with --for 3 --way clean",
            "clean-by-force": "without force is enough",
        },
        open=("DEAD_ORIGIN 3: its newest change reached s1 only ",),
        unmended=1,
    ),
    "cleaned": Must("dead_origin/2-cleaned"),
    "lag": Must(
        "lag_behind_disabled_links/during",
        (("LINK_DISABLED s2", "enable"),),
        ("1-enable-s1-to-s2", "2-enable-s3-to-s2"),
        {},
        {("s2", "1"): 79, ("s2", "3"): 77},  # what waits for s1 comes by itself, and is nobody's promise
        {"s1": (0, 1), "s2": (0, 156)},
        open=("1 change is on its way to s1",),
    ),
    "missed": Must(
        "missed_behind_equal_vectors/2-during",
        (("MISSED_CHANGE s3", "initialise-from-s1"),),
        ("1-initialise-s3-from-s1",),
        {
            **BY_HAND,
            **OVERTAKEN,
            "modify-missing": "refuses a change of an entry that it lacks",
            "initialise-from-s3-backwards": "lacks 12 changes afterwards that it did not lack, on s1",
        },
        {("s3", "1"): 12},
        {"s2": (0, 1), "s3": (12, 0)},
        NOWHERE,
    ),
    "missed, a way that is refused because s3 feeds others": Must(
        "missed_behind_equal_vectors/2-during",
        (("MISSED_CHANGE s3", "initialise-from-s1"),),
        ("1-initialise-s3-from-s1",),
        {**BY_HAND, **OVERTAKEN},
        {("s3", "1"): 12},
        {"s2": (0, 1), "s3": (12, 0)},
        NOWHERE,
        ways=("recreate",),
    ),
    "missed, another way": Must(
        "missed_behind_equal_vectors/2-during",
        (("MISSED_CHANGE s3", "initialise-from-s2"),),
        ("1-initialise-s3-from-s2",),
        {**BY_HAND, **OVERTAKEN},
        {("s3", "1"): 12},
        {"s2": (0, 1), "s3": (12, 0)},
        NOWHERE,
        ways=("initialise-from-s2",),
    ),
    "missed, a refused way": Must(
        "missed_behind_equal_vectors/2-during",
        (("MISSED_CHANGE s3", "initialise-from-s1"),),
        ("1-initialise-s3-from-s1",),
        {**BY_HAND, **OVERTAKEN},
        {("s3", "1"): 12},
        {"s2": (0, 1), "s3": (12, 0)},
        NOWHERE,
        ways=("initialise-from-s3-backwards",),
    ),
    "purged": Must(
        "purged_changelog/purged",
        (("REINIT_REQUIRED s3", "initialise-from-s1"), (OTHER, "enable")),
        ("1-enable-s1-to-s3", "2-initialise-s3-from-s1", "3-enable-s2-to-s3"),
        {
            "enable": "the record at which a session has to begin is not in its changelog",
            "ignore-missing": "lacks 35 changes afterwards that it did not lack, on s3",
            "import-changelog": "crashed",
        },
        {("s3", "1"): 30, ("s3", "2"): 31},
        {"s3": (0, 61)},
    ),
    "refused": Must(
        "refused_by_a_consumer/last",
        refused={"add-on-consumer": "read-only"},
        lacks={"c2": (2, 1)},
        then={"c2": (2, 1)},
        open=(
            "MISSED_CHANGE c2: no proven way",
            "PENDING_CHANGES c2: no proven way",
            "the consumers of h1-to-c1, s1-to-c2",
        ),
        unmended=2,
    ),
    "restored": Must(
        "restored_from_own_backup/2-after",
        (("OWN_CHANGES_HIDDEN s3", "initialise-from-s2"),),  # the agreement from s1 leaves an attribute out
        ("1-save-s3", "2-initialise-s3-from-s2"),
        {**BY_HAND, "initialise-from-s3-backwards": "lacks 45 changes afterwards that it did not lack, on s1"},
        {("s3", "1"): 2, ("s3", "2"): 2, ("s3", "3"): 41},
        {"s1": (0, 16), "s2": (0, 16), "s3": (45, 0)},
    ),
    "behind a hub": Must(
        made.behind_a_hub,
        (("MISSED_CHANGE h1", "initialise-from-s1"), ("MISSED_CHANGE c1", "initialise-from-h1")),
        ("1-initialise-h1-from-s1", "2-initialise-c1-from-h1"),
        {"initialise-from-h1-backwards": "nothing of what is lacking arrives"},
        {("c1", "1"): 1, ("h1", "1"): 1},
        {"c1": (1, 0), "h1": (1, 0)},
    ),
    "behind a hub, the consumer alone": Must(
        made.behind_a_hub,
        refused={"initialise-from-h1": "nothing of what is lacking arrives"},
        lacks={"c1": (1, 0), "h1": (1, 0)},
        then={"c1": (1, 0), "h1": (1, 0)},
        open=("MISSED_CHANGE h1: not planned for, as you asked", "MISSED_CHANGE c1: no proven way"),
        unmended=1,
        only=("c1",),
    ),
    "stranded and saved": Must(
        lambda: made.stranded(True),
        (("MISSED_CHANGE s2", "initialise-from-s1"),),
        ("1-save-s2", "2-initialise-s2-from-s1"),
        {},
        {("s2", "1"): 1},
        {"s1": (0, 3), "s2": (1, 0)},
    ),
    "stranded and not all known": Must(
        lambda: made.stranded(False),
        refused={"initialise-from-s1": "throws away 1 change unsaved"},
        lacks={"s1": (0, 3), "s2": (1, 0)},
        then={"s1": (0, 3), "s2": (1, 0)},
        open=("MISSED_CHANGE s2: no proven way", "PENDING_CHANGES s1: no proven way"),
        unmended=2,
    ),
    "trimmed here and kept there": Must(
        made.purged_here_kept_there,
        (("PENDING_CHANGES s3", "temporary-agreement"),),
        ("1-feed-s3-from-s2", "2-unfeed-s3-from-s2"),
        {"ignore-missing": "still lacks 3 changes, for good", "import-changelog": "crashed"},
        {("s3", "1"): 6},
        {"s3": (0, 6)},
    ),
    "asleep": Must(
        made.asleep,
        (("PENDING_CHANGES s3", "wake"), ("PENDING_CHANGES s4", "wake")),
        ("1-wake-s1", "2-wake-s2"),
        {},
        {("s3", "1"): 6, ("s4", "1"): 6},
        {"s3": (0, 6), "s4": (0, 6)},
    ),
    "asleep, one of two": Must(
        made.asleep,
        (("PENDING_CHANGES s3", "wake"),),
        ("1-wake-s1",),
        {},
        {("s3", "1"): 6},
        {"s3": (0, 6), "s4": (0, 6)},
        open=("PENDING_CHANGES s4: not planned for, as you asked",),
        only=("s3",),
    ),
    "rolled back": Must(
        made.rolled_back,
        (("ROLLED_BACK s2", "rescue"),),
        ("1-start-s2", "2-enable-s1-to-s2", "3-wake-s1"),
        {},
        {("s2", "2"): 3},
        {"s2": (0, 3)},
    ),
    "rolled back behind an agreement that is on": Must(
        lambda: made.rolled_back(True),
        (("ROLLED_BACK s2", "rescue"),),
        ("1-start-s2", "2-wake-s1"),
        {},
        {("s2", "2"): 3},
        {"s2": (0, 3)},
    ),
    "the newest dropped": Must(
        made.newest_dropped,
        (("MISSED_CHANGE s2", "initialise-from-s1"), ("LINK_DISABLED s3", "enable")),
        ("1-initialise-s2-from-s1", "2-enable-s1-to-s3"),
        {"temporary-agreement": "nothing of what is lacking arrives"},
        {("s2", "1"): 1, ("s3", "1"): 6},
        {"s2": (1, 0), "s3": (0, 6)},
    ),
    "half by itself": Must(
        made.half_by_itself,
        (("LINK_DISABLED s3", "initialise-from-s1"), (OTHER, "enable")),
        ("1-initialise-s3-from-s1", "2-enable-s2-to-s3"),
        {"ignore-missing": "lacks 3 changes afterwards", "import-changelog": "crashed"},
        {("s3", "1"): 6},
        {"s2": (0, 3), "s3": (0, 6)},
        {"s2": (0, 3)},
        open=("REINIT_REQUIRED s2: no proven way",),
        unmended=1,
    ),
    "two suffixes": Must(
        made.two_suffixes,
        (("PENDING_CHANGES s2 in o=one", "wake"), ("LINK_DISABLED s2 in o=two", "enable")),
        ("1-wake-s1", "2-enable-s1-to-s2"),
        {},
        {("s2", "1"): 12},
        {"s2": (0, 12)},
    ),
    "one name for all": Must(
        made.one_name_for_all,
        (("LINK_DISABLED peer", "enable"), ("LINK_DISABLED peer", "enable")),
        ("1-enable-s1-to-s2", "2-enable-s2-to-s1"),
    ),
}


_FOLDERS: list[TemporaryDirectory[str]] = []


def a_folder() -> Path:
    """A folder that stays as long as the process."""
    _FOLDERS.append(TemporaryDirectory(prefix="plans-"))
    return Path(_FOLDERS[-1].name)


@cache
def loaded(source: str | Callable[[], Any]) -> Case:
    """The case of a plan."""
    folder = a_folder()
    if isinstance(source, str):
        case = Case.create(folder / "case")
        case.load([HERE / source])
        return case
    files = source()
    return made.case_of(folder, *(files if isinstance(files, tuple) else (files,)))


@cache
def _found(folder: Path) -> Any:
    return context_of(Case.open(folder))


@contextmanager
def diagnosed_once(planning: Any) -> Iterator[None]:
    """What was found in a case is looked for once, and not for each plan that is made of it."""
    before = planning.context_of
    planning.context_of = lambda case: _found(case.folder)
    yield
    planning.context_of = before


@cache
def planned(planning: Any, name: str) -> Any:
    """The plan of a case by a planning module."""
    must = PLANS[name]
    with diagnosed_once(planning):
        return planning.plan(loaded(must.source), must.only, must.ways, made_at=AT)


def models(planning: Any, name: str) -> Any:
    """The models on which it was proven."""
    with diagnosed_once(planning):
        return planning.models_of(loaded(PLANS[name].source))


def check_plan(planning: Any, name: str) -> None:
    """The plan says what it must."""
    must, plan = PLANS[name], planned(planning, name)
    assert tuple((one.need, one.way) for one in plan.courses if one.chosen) == must.chosen
    assert tuple(step.key for step in plan.steps) == must.steps
    refused: dict[str, str] = {}
    for one in plan.courses:
        refused.setdefault(one.way, one.refused)
    for way, words in must.refused.items():
        assert words in refused[way], f"{way}: {refused[way]}"
    assert {way for way, why in refused.items() if why} <= must.refused.keys() | {
        "initialise-from-s3-backwards",
        "modify-missing",
    }
    promise: dict[tuple[str, str], int] = {}
    for row in plan.promise:
        key = row["server"], row["origin"]
        promise[key] = promise.get(key, 0) + row["count"]
    assert promise == must.promise
    assert (_lacks(plan.before), _lacks(plan.after)) == (must.lacks, must.then)
    told = [one for one in plan.open if "cannot be judged" not in one]
    assert len(told) == len(must.open) and all(map(str.startswith, told, must.open)), told
    assert plan.unmended == must.unmended
    for course in plan.courses:
        assert not (course.proven and course.refused) and (course.proven or not course.chosen), course


def _lacks(rows: Any) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        before = found.get(row["server"], (0, 0))
        found[row["server"]] = before[0] + row["missing"], before[1] + row["pending"]
    return {server: counts for server, counts in found.items() if any(counts)}
