"""Physical logs of any size: checked, and held against each other, in one pass. `workbench.replication.tier.rules.physical_log`
by the column.

The work is cut between files of the log, so that each worker sees whole files and little has to be carried over. A worker goes
through its files some hundred thousand records at a time and reads each row group once; dumps that overlap or repeat each other
are merged as they come. What is kept are counts, and the first of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.engine.parquet_read import Part
from workbench.engine.physical_rows import BITS, UNTOLD, Rows, SortedPart, merged, places
from workbench.replication.tier.rules.physical_log import (
    COMMIT_LISTS,
    FORM,
    LIMIT,
    Checked,
    Compared,
    Form,
    Gap,
    Listed,
    Place,
    between,
)
from workbench.tables import Numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 250_000
"""Records of all logs together that a worker looks at, at once."""

HERE = 2_000_000
"""Records that are looked at in this process."""

_FEWEST_TASKS = 4
_PLACE = np.uint64(0xFFFFFFFF)
_END_BITS = 34
"""A place and a length together need no more."""

_TASK_ROWS = 10_000_000

Sizes = Mapping[int, int]
"""Number of a file -> its bytes, as far as these are known."""

Pair = tuple[str, str]
"""Names of a reference and of its copy."""


@dataclass(frozen=True)
class Looked:
    """What was found: of each log, and of each pair of them."""

    logs: dict[str, Checked]
    pairs: dict[Pair, Compared]


def checked_log(parts: Sequence[Part], spark: SparkSession | None = None, sizes: Sizes | None = None) -> Checked:
    """What the dumps of one log show; `parts` are those of `records`, of as many dumps as there are of it."""
    return looked_at({"log": parts}, (), {"log": sizes or {}}, spark).logs["log"]


def compared_logs(reference: Sequence[Part], copy: Sequence[Part], spark: SparkSession | None = None) -> Compared:
    """What the dumps of two logs show beside each other."""
    pair = ("reference", "copy")
    return looked_at({"reference": reference, "copy": copy}, [pair], {}, spark).pairs[pair]


def looked_at(
    logs: Mapping[str, Sequence[Part]],
    pairs: Sequence[Pair] = (),
    sizes: Mapping[str, Sizes] | None = None,
    spark: SparkSession | None = None,
    form: Form = FORM,
    limit: int = LIMIT,
) -> Looked:
    """Each of the logs by itself, and pairs of them beside each other, by their names. Every record is read once.

    With a session given, and many records, Spark does it. Lists are no longer than the limit; the counts tell of all.
    """
    asked = _Asked({name: list(parts) for name, parts in logs.items()}, tuple(pairs), dict(sizes or {}), form, limit)
    rows = sum(part["rows"] for parts in logs.values() for part in parts)
    if spark is None or rows <= HERE:
        results = [asked.within(*files) for files in asked.shares(1)]
    else:
        results = _by_spark(spark, asked, asked.shares(max(_FEWEST_TASKS, -(-rows // _TASK_ROWS))))
    found = asked.nothing()
    for result in results:  # in the order of the log
        for name, log in result.logs.items():
            found.logs[name].go_on(log, asked.sizes.get(name), form, limit)
        for pair, both in result.pairs.items():
            found.pairs[pair].go_on(both, limit)
    return found


def _by_spark(spark: SparkSession, asked: _Asked, shares: Sequence[tuple[int, int]]) -> list[Looked]:
    from workbench.engine.evidence import on_workers

    def work(task: int) -> Iterator[dict[str, Any]]:
        found = asked.within(*shares[task])
        logs = [[name, asdict(log)] for name, log in found.logs.items()]
        yield {"task": task, "logs": logs, "pairs": [[*pair, asdict(both)] for pair, both in found.pairs.items()]}

    one = next(part for parts in asked.logs.values() for part in parts)
    told = on_workers(spark, len(shares), work, Path(one["path"]).parent, doing="check the logs")
    return [
        Looked(
            {name: _checked(log) for name, log in one["logs"]},
            {(reference, copy): _compared(both) for reference, copy, both in one["pairs"]},
        )
        for one in sorted(told, key=lambda one: one["task"])
    ]


def _place(told: Any) -> Place | None:
    return (told[0], told[1]) if told else None


def _listed(told: Mapping[str, Any], kind: Any = _place) -> Listed:
    return Listed(told["count"], [kind(one) for one in told["first"]])


def _checked(told: dict[str, Any]) -> Checked:
    """As a worker told it."""
    found = {name: _place(told[name]) for name in ("first", "last", "commit")}
    lists = {
        "gaps": _listed(told["gaps"], lambda one: Gap(*(tuple(place) for place in one))),
        "overlaps": _listed(told["overlaps"], lambda one: tuple(tuple(place) for place in one)),
        "contradictions": _listed(told["contradictions"]),
        "unproven": _listed(told["unproven"]),
    }
    return Checked(**{**told, **found, **lists})


def _compared(told: dict[str, Any]) -> Compared:
    """As a worker told it."""
    found = {name: _place(told[name]) for name in ("last_same", "parts", "match")}
    names = ("differing", "only_reference", "only_copy", "behind", "ahead", "after_match", *COMMIT_LISTS)
    lists = {name: _listed(told[name]) for name in names}
    return Compared(**{**told, **found, **lists})


@dataclass(frozen=True)
class _Asked:
    """What is asked of which logs."""

    logs: dict[str, list[Part]]
    pairs: tuple[Pair, ...]
    sizes: dict[str, Sizes]
    form: Form
    limit: int

    @cached_property
    def spans(self) -> dict[str, tuple[Place, Place]]:
        """The first and the last record of each log that has any."""
        return {
            name: (_least(part["first"] for part in log), _most(part["last"] for part in log))
            for name, log in self.logs.items()
            if log
        }

    def nothing(self) -> Looked:
        """What no record tells."""
        return Looked({name: Checked() for name in self.logs}, {pair: Compared() for pair in self.pairs})

    def shares(self, count: int) -> list[tuple[int, int]]:
        """Ranges of files, without the last one, which hold about as many records each."""
        parts = [part for log in self.logs.values() for part in log]
        if not parts:
            return []
        ends = np.array([(part["first"][0], part["last"][0] + 1) for part in parts], np.int64)
        rows = np.array([part["rows"] for part in parts], float) / (ends[:, 1] - ends[:, 0])
        files = np.unique(ends)
        # As if the records of a part were spread evenly over its files.
        slope = np.zeros(len(files))
        np.add.at(slope, np.searchsorted(files, ends[:, 0]), rows)
        np.add.at(slope, np.searchsorted(files, ends[:, 1]), -rows)
        before = np.append(0, np.cumsum(np.cumsum(slope)[:-1] * np.diff(files)))
        inner = np.interp(np.linspace(0, before[-1], count + 1)[1:-1], before, files).round().astype(np.int64)
        return list(pairwise(np.unique(np.concatenate([files[[0, -1]], inner])).tolist()))

    def within(self, low: int, high: int) -> Looked:
        """What these files of the logs hold."""
        found = self.nothing()
        sizes = {name: _Sizes(self.sizes.get(name, {})) for name in self.logs}
        for rows in self._cuts(low, high):
            for name, some in rows.items():
                if len(some):
                    _check(some, found.logs[name], sizes[name], self.form, self.limit)
            for (reference, copy), both in found.pairs.items():
                if self.logs[reference] and self.logs[copy]:
                    spans = self.spans[reference], self.spans[copy]
                    both.go_on(_compare(rows[reference], rows[copy], spans, self.form, self.limit), self.limit)
        return found

    def _cuts(self, low: int, high: int) -> Iterator[dict[str, Rows]]:
        """The records of all logs, some at once; of each log those of the same range of places."""
        parts = {
            name: [
                SortedPart(part, low, high, self.form.head)
                for part in log
                if part["first"][0] < high and part["last"][0] >= low
            ]
            for name, log in self.logs.items()
        }
        groups = sorted(group[:2] for log in parts.values() for part in log for group in part.groups)
        borders: list[int | None] = []
        held = 0
        for lowest, count in groups:
            if held and held + count > AT_ONCE:
                borders.append(lowest)
                held = 0
            held += count
        for border in [*borders, None]:
            yield {name: merged([rows for one in log if (rows := one.until(border))]) for name, log in parts.items()}


def _least(ends: Any) -> Place:
    return min((hi, lo) for hi, lo in ends)


def _most(ends: Any) -> Place:
    return max((hi, lo) for hi, lo in ends)


@dataclass
class _Sizes:
    """How long files are, by the column; those that are not known are -1."""

    known: Sizes
    files: Numbers = field(init=False)
    bytes: Numbers = field(init=False)

    def __post_init__(self) -> None:
        pairs = sorted(self.known.items())
        self.files = np.array([file for file, _ in pairs] or [-1], np.int64)
        self.bytes = np.array([size for _, size in pairs] or [-1], np.int64)

    def of(self, files: Numbers) -> Numbers:
        """The bytes of each."""
        at = np.minimum(np.searchsorted(self.files, files), len(self.files) - 1)
        return np.where(self.files[at] == files, self.bytes[at], -1)


def _check(rows: Rows, found: Checked, sizes: _Sizes, form: Form, limit: int) -> None:
    """Take records that follow those that were looked at; `workbench.replication.tier.rules.physical_log.checked` of all of
    them.
    """
    file, place = (rows.key >> BITS).astype(np.int64), (rows.key & _PLACE).astype(np.int64)
    end = _ends(file, place, rows.length, found)
    (first, last) = places(rows.key[[0, -1]])
    if found.last is not None:
        found.neighbours(*between(found.last, found.end, first, sizes.known, form), first, limit)
        found.borders += found.last[0] != first[0]
    same = file[1:] == file[:-1]
    found.borders += int((~same).sum())
    _judge_neighbours(rows.key, end, np.flatnonzero((place[1:] != end[:-1]) | ~same), found, sizes, form, limit)
    if rows.at_odds is not None:
        at_odds = rows.key[rows.at_odds]
        found.contradictions.add(places(at_odds[:limit]), len(at_odds), limit)
    commits = rows.key[_among(rows.kind, form.commits)]
    found.rows, found.duplicates = found.rows + rows.rows, found.duplicates + rows.repeated
    found.records, found.commits = found.records + len(rows), found.commits + len(commits)
    found.bytes += _bytes(rows.length)
    found.commit = places(commits[-1:])[0] if len(commits) else found.commit
    found.first, found.last = found.first or first, last
    found.end = None if end[-1] == UNTOLD else int(end[-1])


def _ends(file: Numbers, place: Numbers, length: Numbers, before: Checked) -> Numbers:
    """Where each file ends as far as each record, and those before it, tell; UNTOLD behind one that does not."""
    told = length != UNTOLD
    own = np.where(told, place + length, 0)
    if before.last is not None and before.last[0] == file[0] and before.end is not None and told[0]:
        own[0] = max(int(own[0]), before.end)
    if told.all() and not ((own[1:] < own[:-1]) & (file[1:] == file[:-1])).any():
        return own  # as in every log in which no record reaches over another one
    afresh = np.append(1, (file[1:] != file[:-1]) | ~told[:-1])
    furthest = np.maximum.accumulate((np.cumsum(afresh) << _END_BITS) | own) & ((1 << _END_BITS) - 1)
    return np.where(told, furthest, UNTOLD)


def _judge_neighbours(
    key: Numbers, end: Numbers, at: Numbers, found: Checked, sizes: _Sizes, form: Form, limit: int
) -> None:
    """Of records which the next one does not simply follow:

    `workbench.replication.tier.rules.physical_log.between` by the column.
    """
    file, place = (key[at] >> BITS).astype(np.int64), (key[at + 1] & _PLACE).astype(np.int64)
    next_file, end = (key[at + 1] >> BITS).astype(np.int64), end[at]
    same, told, size = next_file == file, end != UNTOLD, sizes.of(file)
    tail = ~same & told & (size >= 0) & (end < size)
    follows = (next_file == file + 1) & (place == form.begins)
    within = (next_file == file + 1) & (place < form.begins)
    gap = np.where(same, told & (place > end), tail | ~(follows | within))
    overlap = np.where(same, told & (place < end), within & ~tail)
    unproven = np.where(same, ~told, follows & ~tail & ~(told & (end == size)))
    here = same | tail
    in_file, at_place = np.where(here, file, file + 1), np.where(here, end, form.begins)
    expected = in_file.astype(np.uint64) << BITS | at_place.astype(np.uint64)

    def named(which: Numbers, *of: Numbers) -> tuple[list[Any], int]:
        some = np.flatnonzero(which)[:limit]
        return list(zip(*(places(one[some]) for one in of), strict=True)), int(which.sum())

    gaps, count = named(gap, key[at], key[at + 1], expected)
    found.gaps.add([Gap(*one) for one in gaps], count, limit)
    found.overlaps.add(*named(overlap, key[at], key[at + 1]), limit)
    lost, count = named(unproven, key[at])
    found.unproven.add([one for (one,) in lost], count, limit)


def _compare(theirs: Rows, mine: Rows, spans: tuple[tuple[Place, Place], ...], form: Form, limit: int) -> Compared:
    """`workbench.replication.tier.rules.physical_log.compared` of a range of places; `spans` are the first and the last of
    both logs.
    """
    found = Compared()
    here, there, lacks, has = _both(theirs.key, mine.key)
    unlike = np.zeros(len(theirs.key[here]), bool)
    for name in ("length", "generation", "content"):
        one, other = getattr(theirs, name)[here], getattr(mine, name)[there]
        unlike |= (one != other) & (one != UNTOLD) & (other != UNTOLD)
    unclear = np.zeros(len(unlike), bool)
    for at_odds, which in ((theirs.at_odds, here), (mine.at_odds, there)):
        unclear |= at_odds[which] if at_odds is not None else False
    keys, alike = theirs.key[here], ~(unlike | unclear)
    differing = keys[unlike & ~unclear]
    found.same, found.unclear = int(alike.sum()), int(unclear.sum())
    found.differing.add(places(differing[:limit]), len(differing), limit)
    first_parts = [differing]
    for rows, which, span, inside, beyond, earlier in (
        (theirs, lacks, spans[1], "only_reference", "behind", "earlier_reference"),
        (mine, has, spans[0], "only_copy", "ahead", "earlier_copy"),
    ):
        alone, (low, high) = rows.key[which], (np.uint64((hi << 32) + lo) for hi, lo in span)
        before, after = int(np.searchsorted(alone, low)), int(np.searchsorted(alone, high, "right"))
        setattr(found, earlier, before)
        getattr(found, inside).add(places(alone[before:after][:limit]), after - before, limit)
        getattr(found, beyond).add(places(alone[after:][:limit]), len(alone) - after, limit)
        setattr(found, f"{beyond}_bytes", _bytes(rows.length[which][after:]))
        # Of a copy those before and beyond the reference, too: a third log may lack them.
        begin, until = (before, after) if rows is theirs else (0, len(alone))
        commits = alone[begin:until][_among(rows.kind[which][begin:until], form.commits)]
        of = found.commits_reference if rows is theirs else found.commits_copy
        of.add(places(commits[:limit]), len(commits), limit)
        first_parts.append(alone[before:after])
    same = keys[alike]
    last_same = int(same[-1]) if len(same) else -1
    found.last_same = places(same[-1:])[0] if len(same) else None
    apart = [one[np.searchsorted(one, np.uint64(last_same), "right") if len(same) else 0 :] for one in first_parts]
    found.parts = min((places(one[:1])[0] for one in apart if len(one)), default=None)
    anchors = keys[alike & (_among(theirs.kind[here], form.anchors) | _among(mine.kind[there], form.anchors))]
    found.match = places(anchors[-1:])[0] if len(anchors) else None
    behind = int(np.searchsorted(mine.key, anchors[-1], "right")) if len(anchors) else 0
    found.cut, found.cut_commits = len(mine) - behind, int(_among(mine.kind[behind:], form.commits).sum())
    start = int(np.searchsorted(theirs.key, anchors[-1], "right")) if len(anchors) else 0
    found.after_match.add(places(theirs.key[start : start + limit]), len(theirs) - start, limit)
    return found


def _both(theirs: Numbers, mine: Numbers) -> tuple[Any, Any, Any, Any]:
    """Where both have a key: in the one, in the other; where only the one has it; where only the other. Keys ascend."""
    if len(theirs) == len(mine) and bool((theirs == mine).all()):
        return slice(None), slice(None), slice(0, 0), slice(0, 0)
    at = np.searchsorted(mine, theirs)
    shared = np.zeros(len(theirs), bool)
    shared[at < len(mine)] = mine[at[at < len(mine)]] == theirs[at < len(mine)]
    only_mine = np.ones(len(mine), bool)
    only_mine[at[shared]] = False
    return shared, at[shared], ~shared, only_mine


def _among(kinds: Numbers, some: frozenset[int]) -> Numbers:
    found = np.zeros(len(kinds), bool)
    for kind in some:
        found |= kinds == kind
    return found


def _bytes(length: Numbers) -> int:
    return int(length.sum(where=length != UNTOLD))
