"""Time travel: what each server knew of each origin when, how far the links were behind, since when vectors differ.

Every answer says what proves it. Knowing an origin up to a position is what a vector claims: the position was seen, not that
every change below it is there. Times without a zone are UTC; each server's evidence bears the times of its own clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.engine.observation_queries import ObservationQuery, Sighting, by_steps, highest, lowest_above, whole
from workbench.model import Problem
from workbench.safety import printable
from workbench.tables import INT, TEXT, TIME
from workbench.topology.timeline import EVER, OWN_TIME, SNAPSHOT, Key, Timeline
from workbench.topology.topology import VECTOR

if TYPE_CHECKING:
    from workbench.case.case import Case
    from workbench.topology.topology import Link

EXACT, BETWEEN, AT_LEAST, UNKNOWN = "exact", "between", "at_least", "unknown"
DIFFER, EQUAL = "differ", "equal"
REPLACED = "replaced"
"""Evidence of a point in the past after which nothing of before holds."""


VECTORS = pa.schema({"at": TIME, **dict.fromkeys(("server", "suffix", "origin", "position", "evidence"), TEXT)})
LAGS = pa.schema(
    {
        "at": TIME,
        **dict.fromkeys(("supplier", "consumer", "suffix", "link", "origin"), TEXT),
        **dict.fromkeys(("supplier_position", "consumer_position"), TEXT),
        "at_least": INT,
        "at_most": INT,
        "seconds": pa.float64(),
    }
)
DISAGREEMENTS = pa.schema(
    {
        **dict.fromkeys(("server", "other", "suffix", "origin", "state"), TEXT),
        "since": TIME,
        "agreed": TIME,
        **dict.fromkeys(("ahead", "server_position", "other_position"), TEXT),
        "changes": INT,
    }
)

_POINTS, _MOST_POINTS = 1_000, 10_000
"""Steps of time in a table: as many as it has at most by itself, and on demand."""
_FINEST = 60


@dataclass(frozen=True)
class KnownThen:
    """What a server knew of an origin at a time.

    at_least  the highest position that it had by then, and what proves it; None: nothing reaches there
    at_most   what it had not gone beyond: with `included` false it did not have this one yet; None: nothing tells
    changes   how many changes lie between the two, as far as a log shows them; None: no log does
    why       a sentence where nothing is known
    """

    server: str
    suffix: str | None
    origin: str
    when: datetime
    at_least: Sighting | None = None
    at_most: Sighting | None = None
    changes: int | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """`exact`: it had `at_least` and nothing above; `between` the two; `at_least`; `unknown`: nothing shows what it had."""
        if self.at_least is None:
            return UNKNOWN
        return EXACT if self.changes == 0 else BETWEEN if self.at_most else AT_LEAST


def moment_of(when: datetime | str) -> datetime:
    """A time as given: ISO text or a datetime; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(when) if isinstance(when, str) else when
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Problem(f"{printable(str(when))[:60]} is not a time", "", "give it as 2026-11-20T10:42:00Z") from None


def known_at(case: Case, server: str, origin: str, when: datetime | str, suffix: str | None = None) -> KnownThen:
    """What did this server know of that origin at that time? With the two observations between which that is certain.

    >>> known_at(case, "s2", "3", "2026-11-20T10:42:00Z").at_least.position  # doctest: +SKIP
    '6b005bcb000600030000'
    """
    line = Timeline(case)
    line.check_origin(origin)
    keys = line.chosen(server, suffix)
    if len(keys) > 1:
        suffixes = ", ".join(printable(one or "one without a name") for _, one in keys)
        raise Problem(f"{printable(server)} holds several suffixes", case.name, f"choose one of {suffixes}")
    return _as_written(line, _known(line, keys[0], origin, moment_of(when)))


def all_known_at(
    case: Case,
    when: datetime | str,
    server: str | None = None,
    origin: str | None = None,
    suffix: str | None = None,
) -> list[KnownThen]:
    """What each server knew of each origin at that time, by suffix, server and origin; of one server or origin if named."""
    line, at = Timeline(case), moment_of(when)
    line.check_origin(origin)
    keys = line.chosen(server, suffix)
    return [_as_written(line, _known(line, key, one, at)) for key in keys for one in _asked(line, origin)]


def _as_written(line: Timeline, known: KnownThen) -> KnownThen:
    """With the positions as the system writes them."""
    least, most = (
        one and replace(one, position=line.system.show(one.position)) for one in (known.at_least, known.at_most)
    )
    return replace(known, at_least=least, at_most=most)


def _known(line: Timeline, key: Key, origin: str, when: datetime) -> KnownThen:
    epoch = line.epoch(*key, when)
    if epoch is None:
        return KnownThen(*key, origin, when, why="its data was being replaced about then: restored or initialised")
    after, upto = epoch
    parts = line.parts(*key)
    own = [(log.around(when), one) for log, one in line.own_logs(*key)] if line.replicas[key] == origin else []
    claims = line.claims(*key, origin)
    found = [highest(parts, ObservationQuery(key[1], origin, after, when))]
    for (before, _), log in own:
        if before and (made := _made(line, before)) and (after is None or made > after):
            found.append(Sighting(before, made, OWN_TIME, log.snapshot, log.file))
    found += [
        one.seen(stamped)
        for one in claims
        if one.moved and (stamped := whole(one.moved)) <= when and (after is None or stamped > after)
    ]
    if not any(found):
        abouts = ((one, line.about(one.snapshot, key[0])) for one in claims)
        found += [
            one.seen(at, SNAPSHOT)
            for one, at in abouts
            if at and not one.moved and at <= when and (after is None or at > after)
        ]
    least = max(filter(None, found), key=lambda one: (one.position, -(one.at or EVER).timestamp()), default=None)
    low = least.position if least else ""
    bounds = [lowest_above(parts, ObservationQuery(key[1], origin, when, upto), low)]
    for (_, later), log in own:
        made = line.system.moment(later) if later else None
        if later and made and when < made and (upto is None or made <= upto):
            bounds.append(Sighting(later, made, OWN_TIME, log.snapshot, log.file, included=False))
    for one in claims:
        if one.own and one.moved and when < one.moved and (upto is None or one.moved <= upto):
            bounds.append(one.seen(one.moved, included=False))
        elif one.own and one.read_after and when <= one.read_after and (upto is None or one.read_after <= upto):
            bounds.append(one.seen(one.read_after))
    fitting = [one for one in bounds if one and (one.position > low or (one.included and one.position == low))]
    most = min(fitting, key=lambda one: (one.position, one.included), default=None)
    if least is None:
        why = "no evidence of the case reaches back to that time" if most else "the case holds no evidence of it"
        return KnownThen(*key, origin, when, at_most=most, why=why)
    return KnownThen(*key, origin, when, least, most, _changes(line, key, origin, least, most))


def _changes(line: Timeline, key: Key, origin: str, least: Sighting, most: Sighting | None) -> int | None:
    if most is None or most.position == least.position:
        return 0 if most else None
    count = line.between(key[1], origin, least.position, most.position, key[0])
    return None if count is None else count - (not most.included)


def _made(line: Timeline, position: str) -> datetime | None:
    moment = line.system.moment(position)
    return whole(moment) if moment else None


# --- over time


@dataclass(frozen=True)
class _Point:
    """A server came to a position: by `at` it had it; before `since` it had nothing from `low` on (None: that is not shown).

    Without a position: its data began to be replaced, and nothing is known until the next point.
    """

    at: datetime
    position: str
    evidence: str
    low: str | None = None
    since: datetime | None = None


_Series = dict[tuple[str, str | None, str], list[_Point]]
"""Server, suffix and origin -> its points in the order of time; a position below the one before: the data was replaced."""


def vectors_over_time(
    case: Case,
    server: str | None = None,
    origin: str | None = None,
    suffix: str | None = None,
    step: float | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pa.Table:
    """How the vector of each server grew: at, server, suffix, origin, position, evidence; a row where it had moved.

    In each `step` of so many seconds the last position counts; without `step` it is chosen so that a long time gives no more
    rows than a short one. A position goes down only where the server's data was replaced: restored or initialised.

    `progress` is told how many rows of how many are read, and may raise to end it.
    """
    line, window = Timeline(case), _window(since, until)
    line.check_origin(origin)
    keys = line.chosen(server, suffix)
    if progress:
        total, read = line.rows(keys), 0

        def count(rows: int) -> None:
            nonlocal read
            read += rows
            progress(min(read, total), total)  # what lies around a restore is read twice

        line.told = count
    series = _series(line, keys, origin, _step(line, keys, step, window), window)
    rows = [
        {"at": one.at, **dict(zip(VECTORS.names[1:4], key, strict=True)), "position": one.position}
        | {"evidence": one.evidence}
        for key, points in series.items()
        for one in points
        if one.position
    ]
    rows.sort(key=lambda row: (row["at"], row["suffix"] or "", row["server"], row["origin"]))
    return _shown(line, pa.Table.from_pylist(rows, VECTORS), ["position"])


def _shown(line: Timeline, table: pa.Table, columns: Iterable[str]) -> pa.Table:
    for name in columns:
        shown = [one and line.system.show(one) for one in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(shown, TEXT))
    return table


def _window(since: datetime | str | None, until: datetime | str | None) -> tuple[datetime | None, datetime | None]:
    return (None if since is None else moment_of(since), None if until is None else moment_of(until))


def _series(
    line: Timeline,
    keys: Iterable[Key],
    origin: str | None,
    width: timedelta,
    window: tuple[datetime | None, datetime | None],
) -> _Series:
    found: _Series = {}
    for server, suffix in keys:
        begun: datetime | None = None
        for after, upto in line.epochs(server, suffix):
            if begun:
                for known in found.keys() & {(server, suffix, one) for one in line.origins}:
                    found[known].append(_Point(begun, "", REPLACED))
            begun = upto
            points: dict[str, list[_Point]] = {}
            for name, point in _points(line, (server, suffix), origin, _within((after, upto), window), width):
                points.setdefault(name, []).append(point)
            for name, some in sorted(points.items()):
                found.setdefault((server, suffix, name), []).extend(_rising(some))
    return found


def _within(
    one: tuple[datetime | None, datetime | None], other: tuple[datetime | None, datetime | None]
) -> tuple[datetime | None, datetime | None]:
    return (
        max(filter(None, (one[0], other[0])), default=None),
        min(filter(None, (one[1], other[1])), default=None),
    )


def _points(
    line: Timeline,
    key: Key,
    origin: str | None,
    window: tuple[datetime | None, datetime | None],
    width: timedelta,
) -> Iterator[tuple[str, _Point]]:
    """All that is seen of the server between two times, unsorted, with the origin of each."""
    after, upto = window
    if after and upto and after >= upto:
        return
    asked = ObservationQuery(key[1], origin, after, upto)
    for row in by_steps(line.in_turn(line.parts(*key)), asked, width):
        if row["suffix"] in (None, key[1]):
            yield row["origin"], _Point(row["last"], row["high"], row["evidence"], row["low"], row["first"])
    own = line.replicas[key]
    if own and origin in (None, own):
        begin, end = _within(window, _dated_span(line, line.replicas))
        for log, _ in line.own_logs(*key):
            start = log.around(begin)[0] if begin and begin != after else None
            made = _made(line, start) if start else None
            if start and made and (after is None or made > after):
                yield own, _Point(made, start, OWN_TIME)
            for at, position in log.by_steps(begin, end, width):
                yield own, _Point(at, position, OWN_TIME)
    for claim in line.claims(*key, origin):
        had_at = whole(claim.moved) if claim.moved else line.about(claim.snapshot, key[0])
        if had_at and (after is None or had_at > after) and (upto is None or had_at <= upto):
            if claim.moved:
                yield claim.origin, _Point(had_at, claim.position, VECTOR, claim.position, claim.moved)
            else:
                yield claim.origin, _Point(had_at, claim.position, SNAPSHOT)


def _rising(points: Iterable[_Point]) -> Iterator[_Point]:
    """The points at which the position rose, in the order of time."""
    last = ""
    highest_first = sorted(points, key=lambda one: (one.position, one.low is not None, one.evidence), reverse=True)
    for one in sorted(highest_first, key=lambda one: one.at):
        if one.position > last:
            yield one if one.low is None or one.low > last else _Point(one.at, one.position, one.evidence)
            last = one.position


def _dated_span(line: Timeline, keys: Iterable[Key]) -> tuple[datetime | None, datetime | None]:
    """First and last time that logs and stamps speak of: changes of other times are not followed step by step."""
    times: list[datetime] = []
    for key in keys:
        times += [at for part in line.parts(*key) for at in part.between or ()]
        times += [claim.moved for claim in line.claims(*key) if claim.moved]
    return (min(times) - timedelta(seconds=1), max(times) + timedelta(seconds=1)) if times else (None, None)


def _told_span(line: Timeline, keys: list[Key]) -> tuple[datetime | None, datetime | None]:
    """First and last time that anything speaks of; without logs and stamps, those of the positions."""
    span = _dated_span(line, keys)
    if span[0]:
        return span
    seen = [one for file in line.case.inputs for one in file.facts.get("by_origin", {}).values()]
    made = [_made(line, one[end]) for one in seen for end in ("min", "max") if one.get(end)]
    times = [at for at in made if at]
    return (min(times), max(times)) if times else span


def _step(
    line: Timeline, keys: list[Key], step: float | None, window: tuple[datetime | None, datetime | None]
) -> timedelta:
    low, high = _within(_told_span(line, keys), window)
    span = (high - low).total_seconds() if low and high and high > low else 0.0
    if step is None:
        return timedelta(seconds=max(_FINEST, -(-span // (_POINTS * _FINEST)) * _FINEST))
    if not 0.001 <= step <= 10**9:
        raise Problem(f"a step of {step:g} seconds", "", "give one from 0.001 to a billion")
    if span / step > _MOST_POINTS:
        least = -(-span // _MOST_POINTS)
        raise Problem(
            f"{span / step:,.0f} steps of {step:g} s in {span:,.0f} s", "", f"give a step of {least:,.0f} s or more"
        )
    return timedelta(seconds=step)


# --- links and pairs


def lag(
    case: Case,
    server: str | None = None,
    origin: str | None = None,
    suffix: str | None = None,
    step: float | None = None,
    when: datetime | str | None = None,
) -> pa.Table:
    """How far the consumer of each link was behind its supplier, per origin: `at_least` and `at_most` so many changes.

    The two differ where the consumer's evidence has holes; null: it has none, or no log shows the stretch. `seconds` is the
    age of the oldest change that it certainly lacked. A row for the end of each step in which something moved; with `when`
    one row for exactly that time. `server` is an end of the link.
    """
    line = Timeline(case)
    line.check_origin(origin)
    keys = line.chosen(None, suffix)
    if server is not None:
        line.chosen(server, suffix)
    links = [
        link
        for link in line.links
        if link.consumer
        and server in (None, link.supplier, link.consumer)
        and {(link.supplier, link.suffix), (link.consumer, link.suffix)} <= set(keys)
    ]
    ends = sorted({end for link in links for end in _ends(link)}, key=str)
    origins = _asked(line, origin)
    if when is not None:
        at = moment_of(when)
        states = {(*key, one): _state(_known(line, key, one, at)) for key in ends for one in origins}
        rows = [
            row
            for link in links
            for one in origins
            for row in _behind(line, link, one, at, *(states[(*end, one)] for end in _ends(link)))
        ]
    else:
        width = _step(line, ends, step, (None, None))
        series = _series(line, ends, origin, width, (None, None))
        pairs = [(link, one, [series.get((*end, one), []) for end in _ends(link)]) for link in links for one in origins]
        rows = [row for link, one, (ahead, behind) in pairs for row in _moving(line, link, one, ahead, behind, width)]
    rows.sort(key=lambda row: (row["at"], row["suffix"] or "", row["supplier"], row["consumer"], row["origin"]))
    return _shown(line, pa.Table.from_pylist(rows, LAGS), ["supplier_position", "consumer_position"])


def _ends(link: Link) -> tuple[Key, Key]:
    return (link.supplier, link.suffix), (link.consumer or "", link.suffix)


def _moving(
    line: Timeline, link: Link, origin: str, ahead: list[_Point], behind: list[_Point], width: timedelta
) -> Iterator[dict[str, Any]]:
    """The rows of one link and origin; of a consumer that keeps up only the first one."""
    kept_up = False
    for at in _edges([*ahead, *behind], width):
        for row in _behind(line, link, origin, at, _state_of(ahead, at), _state_of(behind, at)):
            keeps_up = (row["at_least"], row["at_most"]) == (0, 0)
            if not (keeps_up and kept_up):
                yield row
            kept_up = keeps_up


_State = tuple[str | None, str | None, bool]
"""What a server had at a time at least, what it did not have yet, and whether it had at most the first."""


def _asked(line: Timeline, origin: str | None) -> list[str]:
    return [origin] if origin is not None else sorted(line.origins, key=lambda one: (len(one), one))


def _state(known: KnownThen) -> _State:
    least, most = known.at_least.position if known.at_least else None, known.at_most
    return least, most.position if most and not most.included else None, known.verdict == EXACT


def _state_of(points: list[_Point], at: datetime) -> _State:
    index = bisect_left(points, at, key=lambda one: one.at)
    least = points[index - 1].position or None if index else None
    following = points[index] if index < len(points) else None
    fits = following and following.low and following.since and following.since >= at and following.low > (least or "")
    return least, following.low if following and fits else None, False


def _edges(points: Iterable[_Point], width: timedelta) -> list[datetime]:
    """The ends of the steps in which something was seen: what was seen before such an end counts."""
    micro = width // timedelta(microseconds=1)
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    steps = {(one.at - zero) // timedelta(microseconds=1) // micro for one in points}
    return [zero + timedelta(microseconds=(number + 1) * micro) for number in sorted(steps)]


def _behind(
    line: Timeline, link: Link, origin: str, at: datetime, supplier: _State, consumer: _State
) -> Iterator[dict[str, Any]]:
    """The row of one link, origin and time; none where nothing is known of the supplier."""
    ahead, (had, lacked, exact) = supplier[0], consumer
    if ahead is None:
        return
    least: int | None = 0
    most: int | None = 0
    oldest = None
    if had is None or had < ahead:
        most = None if had is None else line.between(link.suffix, origin, had, ahead, link.supplier)
        if exact and had:
            least, oldest = most, line.first_above(link.suffix, origin, had)
        elif lacked and lacked <= ahead:
            beyond = line.between(link.suffix, origin, lacked, ahead, link.supplier)
            least, oldest = None if beyond is None else beyond + 1, lacked
    made = line.system.moment(oldest) if oldest else None
    yield {
        "at": at,
        "supplier": link.supplier,
        "consumer": link.consumer,
        "suffix": link.suffix,
        "link": link.name,
        "origin": origin,
        "supplier_position": ahead,
        "consumer_position": had,
        "at_least": least,
        "at_most": most,
        "seconds": max(0.0, (at - made).total_seconds()) if made else 0.0 if most == 0 else None,
    }


def disagreement(
    case: Case,
    server: str | None = None,
    origin: str | None = None,
    suffix: str | None = None,
    step: float | None = None,
) -> pa.Table:
    """Per two servers and origin: since when their vectors differ, or since when they are equal.

    `since` is the first time after which they never agreed again, as far as steps of time show it (`agreed`: the end of the
    last one in which they did). Of equal ones it is when the later of the two came to the position.
    """
    line = Timeline(case)
    line.check_origin(origin)
    keys = line.chosen(None, suffix)
    if server is not None:
        line.chosen(server, suffix)
    width = _step(line, keys, step, (None, None))
    series = _series(line, keys, origin, width, (None, None))
    rows = []
    for one, other in combinations(keys, 2):
        if one[1] == other[1] and server in (None, one[0], other[0]):
            for name in _asked(line, origin):
                mine, theirs = (series.get((*key, name), []) for key in (one, other))
                if mine and theirs and mine[-1].position and theirs[-1].position:
                    row = _agreement(mine, theirs, width)
                    low, high = sorted([mine[-1].position, theirs[-1].position])
                    names = {"server": one[0], "other": other[0], "suffix": one[1], "origin": name}
                    ahead = one[0] if mine[-1].position > theirs[-1].position else other[0]
                    differs = row["state"] == DIFFER
                    row |= {"ahead": ahead if differs else None}
                    row |= {"changes": line.between(one[1], name, low, high, ahead) if differs else 0}
                    rows.append({**names, **row})
    table = pa.Table.from_pylist(rows, DISAGREEMENTS)
    return _shown(line, table, ["server_position", "other_position"])


def _agreement(mine: list[_Point], theirs: list[_Point], width: timedelta) -> dict[str, Any]:
    ends = {"server_position": mine[-1].position, "other_position": theirs[-1].position}
    if mine[-1].position == theirs[-1].position:
        return {"state": EQUAL, "since": max(mine[-1].at, theirs[-1].at), "agreed": None, **ends}
    agreed = None
    for at in _edges([*mine, *theirs], width):
        held = _state_of(mine, at)[0]
        if held and held == _state_of(theirs, at)[0]:
            agreed = at
    both = max(mine[0].at, theirs[0].at)  # before that one of them had nothing to compare
    later = [one.at for one in (*mine, *theirs) if one.at >= both and (agreed is None or one.at >= agreed)]
    return {"state": DIFFER, "since": min(later, default=both), "agreed": agreed, **ends}
