"""Faults planted into the rules, one at a time: each must be noticed.

The checks are those of the other tests, over the given cases and a fixed number of seeded random inputs. To add a module:
give it its checks in `CAUGHT_BY`, behind those that it imports, and list its faults.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import slow_sessions
from given_cases import given_cases
from pending_checks import check_pending
from planted import Check, Fault, check_noticed, name_of, run_checks
from session_checks import ORACLES, check, check_expected
from session_samples import CORNERS, random_session
from test_vectors import check_vectors

VECTORS, SENDING, DS389 = (
    "workbench.rules.vectors",
    "workbench.rules.send_session",
    "workbench.systems.ds389.rules.sending",
)
PENDING = "workbench.replication.changelog.rules.pending"
RANDOM_SESSIONS = 2_500


FAULTS = [
    # vectors
    Fault(VECTORS, "self.min <= self.max else", "self.min < self.max else", "state"),
    Fault(VECTORS, "self.min is None and self.max is None", "self.min is None or self.max is None", "state"),
    Fault(VECTORS, "held is not None and position <= held", "held is not None and position < held", "covers"),
    Fault(VECTORS, 'span.max > (last(behind, origin) or "")', 'span.max >= (last(behind, origin) or "")', "newer"),
    Fault(VECTORS, "span.min is None or position < span.min", "span.min is None", "advanced: min"),
    Fault(
        VECTORS, "span.max is None or position > span.max", "span.max is None or position < span.max", "advanced: max"
    ),
    Fault(
        VECTORS, "return {**vector, origin: Span(low, high)}", "return {origin: Span(low, high)}", "advanced: others"
    ),
    Fault(VECTORS, "min(last(vector, origin)", "max(last(vector, origin)", "floor"),
    Fault(VECTORS, 'last(vector, origin) or "" for', 'last(vector, origin) or "~" for', "floor: nothing held"),
    Fault(VECTORS, "BEHIND if theirs < mine else AHEAD", "AHEAD if theirs < mine else BEHIND", "compare"),
    Fault(VECTORS, "ONLY_RIGHT if mine is None else ONLY_LEFT", "ONLY_LEFT if mine is None else ONLY_RIGHT", "compare"),
    Fault(VECTORS, "dict.fromkeys((*left, *right))", "dict.fromkeys(left)", "compare: origins of one side"),
    # the machine
    Fault(SENDING, "DELIVERED = frozenset({SENT, PROMOTED})", "DELIVERED = frozenset({SENT})", "promotions not sent"),
    Fault(SENDING, "    log = log.copy() if events else log\n", "", "the given log"),
    Fault(SENDING, "        session.loads += 1\n", "        session.loads += bool(session.steps)\n", "loads"),
    Fault(SENDING, "                continue\n            yield step", "            yield step", "marks sent"),
    Fault(
        SENDING,
        "            step = talk.judge(position)\n            if position in log.marks:",
        "            if position in log.marks:\n                continue\n"
        "            step = talk.judge(position)\n            if False:",
        "marks not judged",
    ),
    Fault(SENDING, "        if here in passed:", "        if False:", "endless"),
    Fault(
        SENDING, "here = (start.bound, len(delivered), len(waiting))", "here = (start.bound, 0, 0)", "ended too early"
    ),
    Fault(SENDING, "                sent += 1\n", "                sent = len(delivered) + 1\n", "count of events"),
    Fault(SENDING, "talk.reload(supplier, read)", "talk.reload(supplier, max(delivered, default=read))", "last read"),
    Fault(SENDING, "start.end if passed else None", "start.end", "the end of what never began"),
    Fault(SENDING, "            log.delete(event.position)", "            pass", "deletions"),
    Fault(SENDING, "            log.add(event.position)", "            pass", "additions"),
    Fault(SENDING, "            session.reasons += seen.start.reasons\n", "", "reasons of a load"),
    Fault(SENDING, "            session.reasons += seen.reasons\n", "", "reasons of the end"),
    Fault(SENDING, "(bisect_left if self.included else bisect_right)", "(bisect_right)", "inclusive start"),
    Fault(SENDING, "(bisect_left if self.included else bisect_right)", "(bisect_left)", "exclusive start"),
    Fault(SENDING, "self.marks = set(marks) - changes", "self.marks = set(marks)", "a change where a mark was"),
    Fault(SENDING, "            self.marks.discard(position)\n", "", "a deleted mark"),
    # plan
    Fault(SENDING, "band.upto < low.position", "band.upto <= low.position", "plan: a band of one record"),
    Fault(SENDING, "low = Bound(band.upto, False)", "low = Bound(band.upto, True)", "plan: border counted twice"),
    Fault(SENDING, "if band.outcome in DELIVERED:", "if band.outcome == SENT:", "plan: promotions"),
    Fault(SENDING, "one.changes + more.changes", "more.changes", "plan: tallies"),
    Fault(SENDING, "one.first or more.first", "more.first", "plan: first"),
    Fault(SENDING, "dict(talk.stops) if start.bound else {}", "dict(talk.stops)", "plan: stops of nothing"),
    Fault(SENDING, "len(mine) if high is None else bisect_right(mine, high)", "len(mine)", "tally: upper end"),
    Fault(SENDING, "else bisect_right(mine, high)", "else bisect_left(mine, high)", "tally: last included"),
    # design
    Fault(
        SENDING,
        'consumer_origin if self.own == "ignore" else None',
        'consumer_origin if self.own != "ignore" else None',
        "policy",
    ),
    Fault(SENDING, "            if origin == self._left_out:\n                continue\n", "", "policy forgotten"),
    Fault(SENDING, "has is not None and has < high", "has is not None and has <= high", "csnMax"),
    Fault(SENDING, "elif origin not in self._consumer:", "elif has is None:", "element without positions"),
    Fault(SENDING, "        self._consumer[origin] = position\n", "", "consumer not moved"),
    Fault(
        SENDING,
        "        self._consumer[origin] = position\n",
        "        if has is not None:\n            self._consumer[origin] = position\n",
        "known origins",
    ),
    Fault(SENDING, "min(anchor1, has)", "max(anchor1, has)", "anchor1"),
    Fault(SENDING, "min(anchor2, first)", "first", "anchor2"),
    Fault(SENDING, "anchor1 is None or anchor2 < anchor1", "anchor1 is None or anchor2 <= anchor1", "equal anchors"),
    Fault(SENDING, "Start(Bound(anchor2, True)", "Start(Bound(anchor2, False)", "anchor2 included"),
    Fault(
        SENDING,
        "before, self._copy = self._copy, _maxima(supplier)",
        "before = _maxima(supplier)",
        "copy not refreshed",
    ),
    Fault(SENDING, "if before != self._copy:", "if True:", "case 1"),
    Fault(SENDING, "if before != self._copy:", "if False:", "cases 2 and 3"),
    Fault(SENDING, "if before != self._copy:", "if set(before) != set(self._copy):", "case 3"),
    Fault(
        SENDING,
        "found = self._log.after(read)",
        "found = self._log.after(max(self._consumer.values(), default=read))",
        "case 1 from last sent",
    ),
    Fault(
        SENDING, "return [*covered, Band(stop, SENT)", "return [Band(stop, SENT), *covered", "design: order of bands"
    ),
    # the real server: who takes part
    Fault(DS389, 'or "") <= (last(consumer', 'or "") < (last(consumer', "own changes of the consumer"),
    Fault(
        DS389,
        "self._ignored = consumer_origin if ignored else None",
        "self._ignored = consumer_origin",
        "own changes of a restored consumer",
    ),
    Fault(
        DS389,
        "self._ignored = consumer_origin if ignored else None",
        "self._ignored = None",
        "own changes of the consumer",
    ),
    Fault(
        DS389,
        "        self._take(supplier)\n        candidates = list(self._again(read))",
        "        self._ignored = None\n        self._take(supplier)\n        candidates = list(self._again(read))",
        "ignoreConsumer anew at a reload",
    ),
    Fault(DS389, "rid in self._rules.cleaned or span.min", "span.min", "cleaned replica IDs"),
    Fault(DS389, "or span.min is None or span.max is None", "or span.max is None", "element without first"),
    Fault(
        DS389,
        "span.max if span and span.min is not None else None",
        "span.max if span else None",
        "consumer without first",
    ),
    # the first load
    Fault(
        DS389,
        'Bound(block.first, True), Reason("from_first", values)',
        'Bound(block.first, False), Reason("from_first", values)',
        "first change left out",
    ),
    Fault(
        DS389,
        "elif block.stop > block.consumer:",
        "elif block.stop >= block.consumer:",
        "a consumer that is up to date",
    ),
    Fault(
        DS389, "if not self._log.holds(bound.position):", "if self._log.after(bound.position) is None:", "exact look-up"
    ),
    Fault(DS389, "not bound.included and self._log.after", "self._log.after", "one record, included"),
    Fault(
        DS389,
        "if not bound.included and self._log.after(bound.position) is None:",
        "if False:",
        "nothing behind the anchor",
    ),
    Fault(DS389, "self._rules.ignore_missing != NEVER", "self._rules.ignore_missing == ALWAYS", "once"),
    Fault(
        DS389,
        "bound.position if there else self._log.after(bound.position)",
        "self._log.after(bound.position)",
        "alternative excluded",
    ),
    Fault(
        DS389,
        "return Start(Bound(following, True), bound.position",
        "return Start(Bound(following, False), bound.position",
        "alternative excluded",
    ),
    Fault(
        DS389,
        "return Start(Bound(following, True), bound.position",
        "return Start(Bound(following, True), following",
        "anchor of an alternative",
    ),
    # each record
    Fault(
        DS389,
        "        if position.startswith(HELPER_TIMES):\n            return Step",
        "        if False:\n            return Step",
        "helper records",
    ),
    Fault(
        DS389,
        'HELPER_TIMES = ("0000006f", "000000de")',
        'HELPER_TIMES = ("0000006f", "000000de", "0000014d")',
        "helper times",
    ),
    Fault(DS389, "        if block.blocked:", "        if False:", "blocking"),
    Fault(DS389, "        block.blocked = True\n", "", "blocking"),
    Fault(DS389, "                block.blocked = False\n", "", "blocked for ever"),
    Fault(DS389, "position <= has:", "position < has:", "covered"),
    Fault(DS389, "if position <= stop:", "if position < stop:", "stop included"),
    Fault(
        DS389,
        "            block.consumer = position\n            return Step(position, SENT",
        "            return Step(position, SENT",
        "sent and not noted",
    ),
    Fault(DS389, "        if _next_in_second(stop, position):", "        if False:", "promotion"),
    Fault(DS389, "            block.stop = position\n", "", "chain of promotions"),
    Fault(
        DS389, "            if has is not None:\n                block.consumer = position\n", "", "promotion not noted"
    ),
    Fault(
        DS389,
        "            if has is not None:\n                block.consumer = position\n",
        "            block.consumer = position\n",
        "promotion without a consumer",
    ),
    Fault(DS389, "position[:8] == stop[:8] and int", "int", "promotion: same second"),
    Fault(DS389, "int(position[8:12], 16) ==", "int(position[8:12]) ==", "promotion: hex"),
    Fault(DS389, "int(stop[8:12], 16) + 1", "int(stop[8:12], 16) + 2", "promotion: next"),
    # the reload
    Fault(
        DS389,
        "block.before, block.stop = span.min, block.stop, span.max",
        "block.before, block.stop = span.min, span.max, span.max",
        "stop before",
    ),
    Fault(
        DS389,
        "block.first, block.before, block.stop = span.min,",
        "block.first, block.before, block.stop = block.first,",
        "first that moves",
    ),
    Fault(DS389, "block.before > read):", "block.before >= read):", "prev > current"),
    Fault(DS389, "block.stop == block.before or block.before > read", "block.stop == block.before", "prev > current"),
    Fault(DS389, "block.stop == block.before or block.before > read", "block.before > read", "stop unchanged"),
    Fault(DS389, "yield _Candidate(Bound(read, False)", "yield _Candidate(Bound(read, True)", "read again"),
    Fault(
        DS389,
        "yield _Candidate(Bound(read, False)",
        "yield _Candidate(Bound(block.consumer or read, False)",
        "reload from the consumer",
    ),
    Fault(
        DS389,
        'Bound(block.first, True), Reason("from_first", {**',
        'Bound(read, False), Reason("from_first", {**',
        "new replica ID at a reload",
    ),
    Fault(DS389, "block.stop <= block.consumer:", "block.stop < block.consumer:", "up to date at a reload"),
    Fault(DS389, "if self._began > bound.position:", "if self._began >= bound.position:", "session start"),
    Fault(DS389, "if self._began > bound.position:", "if False:", "session start"),
    Fault(
        DS389,
        '        if found.rule != "anchor_found":\n            return Start(None, end=RELOAD_NOT_FOUND',
        '        if found.rule != "anchor_found" and self._rules.ignore_missing == NEVER:\n'
        "            return Start(None, end=RELOAD_NOT_FOUND",
        "alternative at a reload",
    ),
    Fault(
        DS389,
        "self._blocks[rid] = _Block(span.min, span.max, self._claimed(rid))",
        "self._blocks[rid] = _Block(span.min, span.max, span.min if hasattr(self, '_began') else self._claimed(rid))",
        "ORIGINAL consumer RUV for new replica IDs",
    ),
    # its bands, and the class of an anchor
    Fault(
        DS389,
        "        if origin == self._ignored:\n            return [Band(None, CONSUMERS_OWN)]\n",
        "",
        "plan: own changes",
    ),
    Fault(DS389, "self.start.bound.position > beyond.position:", "False:", "plan: before the start"),
    Fault(DS389, 'max(block.stop, block.consumer or "")', "block.stop", "plan: covered changes promoted"),
    Fault(
        DS389,
        "            sent = position\n",
        "            sent = position\n            break\n",
        "plan: chain of promotions",
    ),
    Fault(
        DS389,
        "f\"{int(time, 16) - 1:08x}{'f' * 12}\"",
        "f\"{int(time, 16) - 2:08x}{'f' * 12}\"",
        "plan: before a helper time",
    ),
    Fault(
        DS389, "return _around_helpers([Band(None, UNKNOWN)])", "return [Band(None, UNKNOWN)]", "plan: helper of nobody"
    ),
    Fault(DS389, "anchor < purge_point:", "anchor <= purge_point:", "purge point"),
    Fault(DS389, "    if anchor > local_max:", "    if anchor >= local_max:", "not seen"),
    Fault(DS389, "return PURGED if purge_point is None else MISSING", "return MISSING", "without a purge point"),
    # the pending list
    Fault(
        PENDING, "int(csn[12:16], 16)", "int(csn[12:16], 10 if csn[12:16].isdecimal() else 16) % 9", "whose a CSN is"
    ),
    Fault(
        PENDING,
        '"before_359", by_context=False, stops=True',
        '"before_359", by_context=False, stops=False',
        "before 359",
    ),
    Fault(
        PENDING, '"since_359", by_context=False, stops=False', '"since_359", by_context=False, stops=True', "since 359"
    ),
    Fault(
        PENDING, '"primary_csn", by_context=True, stops=True', '"primary_csn", by_context=True, stops=False', "stops"
    ),
    Fault(PENDING, '"primary_csn", by_context=True', '"primary_csn", by_context=False', "nested commits count"),
    Fault(PENDING, "replica == self.prim_replica and csn", "csn", "primary in another replica"),
    Fault(PENDING, "and csn == self.prim_csn", "", "every CSN is primary"),
    Fault(PENDING, "in (entry.csn, entry.prim_csn)", "in (entry.csn,)", "owns: nested ones"),
    Fault(PENDING, "in (entry.csn, entry.prim_csn)", "in (entry.prim_csn,)", "owns: by its CSN"),
    Fault(PENDING, "entry.prim_replica == self.prim_replica and self", "self", "owns: the replica"),
    Fault(PENDING, "csn <= element.max:", "csn < element.max:", "covered by the RUV"),
    Fault(PENDING, "csn <= element.pending[-1].csn:", "csn < element.pending[-1].csn:", "covered by the list"),
    Fault(PENDING, "            self.contexts.pop(thread, None)\n", "", "the context goes"),
    Fault(
        PENDING,
        "        if context is None:\n            context = self",
        "        if True:\n            context = self",
        "context",
    ),
    Fault(PENDING, "            context.secondaries.append(replica)", "            pass", "secondary replicas"),
    Fault(
        PENDING, "for place in (replica, *context.secondaries):", "for place in (replica,):", "cancel of secondaries"
    ),
    Fault(
        PENDING,
        "for place in (replica, *context.secondaries):",
        "for place in context.secondaries:",
        "cancel of the local list",
    ),
    Fault(PENDING, "            if local == READ_ONLY:", "            if False:", "read-only replica"),
    Fault(PENDING, "return NOT_FOUND if removed is None else OK", "return OK", "cancel without an element"),
    Fault(PENDING, "lambda entry: entry.csn == csn)", "lambda entry: entry.csn >= csn)", "cancel of one CSN"),
    Fault(
        PENDING,
        "kept = tuple(entry for entry in element.pending if not goes(entry))",
        "kept = element.pending",
        "cancel",
    ),
    Fault(
        PENDING,
        "if rid == local else [(replica, rid), (replica, local)]",
        "if True else []",
        "commit of the local list",
    ),
    Fault(
        PENDING,
        "        places += [(place, self._local[place]) for place in context.secondaries]\n",
        "",
        "commit of secondaries",
    ),
    Fault(
        PENDING,
        "            return NOT_FOUND\n        return self._update",
        "            return OK\n        return self._update",
        "commit of an absent CSN",
    ),
    Fault(
        PENDING,
        "_replace(committed=True) if context.owns(entry)",
        "_replace(committed=True) if entry.csn == context.prim_csn",
        "commit of nested ones",
    ),
    Fault(PENDING, "if low is None and rid != self._local[replica]:", "if low is None:", "min of the local rid"),
    Fault(PENDING, "low = popped[0]", "low = popped[-1]", "which min"),
    Fault(PENDING, "high = popped[-1]", "high = popped[0]", "which max"),
    Fault(
        PENDING,
        "takewhile(lambda entry: entry.committed, pending)",
        "filter(lambda entry: entry.committed, pending)",
        "roll-up",
    ),
    Fault(PENDING, "[entry for entry in pending if not entry.committed]", "list(pending)", "roll-up of 359"),
    Fault(PENDING, "        self.contexts.pop(step.thread, None)", "        pass", "the end of a thread"),
]


@cache
def sessions() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(kind, inputs, what must come out): the given cases and the random ones."""
    given = [
        (case["kind"], case["inputs"], case["expected"])
        for name in ("ds389-sessions", "design-sessions")
        for case in given_cases(name)
    ]
    random = Random(1)
    drawn = [*CORNERS.values(), *(random_session(random) for _ in range(RANDOM_SESSIONS))]
    return [(kind, inputs, oracle(inputs)) for inputs in drawn for kind, oracle in ORACLES.items()] + given


def check_sessions(modules: dict[str, ModuleType]) -> None:
    house = SimpleNamespace(vectors=modules[VECTORS], sending=modules[SENDING], real=modules[DS389])
    for kind, inputs, expected in sessions():
        if "stops" in expected:
            check(house, kind, inputs, expected)
        else:
            check_expected(house, kind, inputs, expected)


def check_classes(modules: dict[str, ModuleType]) -> None:
    for row in product("abcd", [None, *"abcd"], [None, *"abcd"]):
        assert modules[DS389].missing_anchor_class(*row) == slow_sessions.missing_anchor_class(*row)


CAUGHT_BY: dict[str, list[Check]] = {
    VECTORS: [lambda modules: check_vectors(modules[VECTORS]), check_sessions],
    SENDING: [check_sessions],
    DS389: [check_classes, check_sessions],
    PENDING: [lambda modules: check_pending(modules[PENDING])],
}


@pytest.mark.parametrize("module", CAUGHT_BY)
def test_without_a_fault_nothing_is_noticed(module: str) -> None:
    run_checks(module, CAUGHT_BY)


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_planted_fault_is_noticed(fault: Fault) -> None:
    check_noticed(fault, CAUGHT_BY)
