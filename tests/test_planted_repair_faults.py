"""Faults planted into the model of repairs, into what fills it and into planning, one at a time: each must be noticed.

The checks are those of the other tests. The cases are loaded and diagnosed once.
"""

from __future__ import annotations

from functools import cache
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from mending_checks import check_achieved, check_effects, follow
from mending_files import case_of, lots_as_changes, model_from
from planning_checks import PLANS, a_folder, check_plan
from planted import Check, Fault, check_noticed, name_of, run_checks
from slow_mending import World
from test_mending import shown_world

from workbench.diagnosis.case_diagnosis import context_of

MENDING, RESULT, MISSED, PLANNING = (
    "workbench.rules.repair_model",
    "workbench.rules.repair_result",
    "workbench.diagnosis.missed_lots",
    "workbench.repair.planner",
)
FILLING, STYLE = "workbench.replication.changelog.plan_model", "workbench.replication.changelog.style"
OUTCOMES = "workbench.repair.outcomes"

FAULTS = [
    # the model
    Fault(MENDING, "return lot.origin in self.dead or covers(", "return covers(", "a cleaned origin is never sent"),
    Fault(
        MENDING, "moved |= self.session(link)",
        "self.session(link)",
        "until nothing moves",
    ),
    Fault(
        MENDING, "if server.origin is not None and server.works:",
        "if server.origin is not None:",
        "who is down writes nothing",
    ),
    Fault(MENDING, "if not link.runs or supplier is None", "if supplier is None", "disabled links"),
    Fault(MENDING, " or not (supplier.works and consumer.works):", ":", "servers that are down"),
    Fault(MENDING, "or self.refuses(supplier.generation, consumer.generation)", "", "generations"),
    Fault(MENDING, "if maxima(supplier.vector) == link.waits:", "if False:", "links that wait"),
    Fault(
        MENDING,
        "        server.vector = advanced(server.vector, self.origin_of(position), position)\n",
        "",
        "the vector moves",
    ),
    Fault(
        MENDING, "and self._absent(server, lot.entry)\n",
        "and False\n",
        "refusals",
    ),
    Fault(
        MENDING, "lot.entry is not None and not lot.creates and",
        "lot.entry is not None and",
        "additions are not refused",
    ),
    Fault(MENDING, "if lot.entry is not None and lot.creates:", "if lot.entry is not None:", "what creates an entry"),
    Fault(
        MENDING, "            server.holds |= {number, *self.lots[number].mends}",
        "            server.holds |= {number}",
        "mended lots",
    ),
    Fault(
        MENDING,
        "        if server.log is not None and (taken or not lots):\n            server.log.add(position)\n",
        "",
        "what is passed on",
    ),
    Fault(
        MENDING, "server.vector, server.holds = dict(server.vector), set(server.holds)",
        "server.vector = dict(server.vector)",
        "copies",
    ),
    Fault(MENDING, "[span.max for span in by.vector.values() if span.max])", "[])", "marks of a log made anew"),
    Fault(MENDING, "to.holds, to.generation = set(by.holds), by.generation", "to.holds = set(by.holds)",
          "generation of new data"),
    Fault(MENDING, "        server.vector.pop(origin, None)\n", "", "cleaned vectors"),
    Fault(MENDING, "model.losing())", "model.rules())", "going on behind what is gone"),
    Fault(RESULT, "    after.go_on()\n", "", "life goes on behind a repair"),
    Fault(RESULT, "    without.go_on()\n", "", "what would be hidden anyway"),
    Fault(RESULT, "after.missing() if lack.lot in known}", "after.missing()}", "what the repair wrote itself"),
    Fault(RESULT, "if lack.lot in somewhere and lack.lot not in after.saved", "if lack.lot in somewhere", "saved"),
    Fault(RESULT, "set(known) if before.more else {", "set(known) if True else {", "held by nobody"),
    Fault(RESULT, "set(known) if before.more else {", "{", "held by somebody else"),
    Fault(RESULT, "(missing - doomed) | taken if", "missing - doomed if", "taken from it"),
    Fault(RESULT, "lacking & there if", "lacking & now if", "restored when the repair is done"),
    Fault(MENDING, "range(len(self.lots) - self.made)", "range(len(self.lots))", "given lots"),
    # what fills it
    Fault(MISSED, "not in lacking\n", "is not None\n", "who misses a change"),
    Fault(FILLING, "sorted({*tops.values(), *cuts})", "sorted({*tops.values()})", "where logs begin and end"),
    Fault(
        FILLING, "                yield hi, lo - 1\n",
        "                yield hi, lo\n",
        "what a log begins with",
    ),
    Fault(FILLING, '                yield self._place(shown["max"])\n', "                pass\n", "where a log ends"),
    Fault(FILLING, "if claimed and span.high != end:", "if False:", "claimed and not collected"),
    Fault(
        FILLING, "        count -= sum(span.low < place <= span.high for place in single)\n",
        "",
        "counted twice",
    ),
    Fault(FILLING, "        while end in single:", "        while False:", "a last that is not of the lot"),
    Fault(FILLING, "if top >= span.high}", "if top >= span.low}", "who holds a stretch"),
    Fault(FILLING, "if position in stored.marks:", "if False:", "marks are no changes"),
    Fault(FILLING, "                ends.add(lot.last)\n", "                pass\n", "records of lots"),
    Fault(FILLING, "link.enabled is not False, claims", "True, claims", "disabled agreements"),
    Fault(FILLING, 'row.get("would_contact") is False and row', "False and row", "who believes its consumer up to date"),
    Fault(FILLING, "waits = link.consumer in back or any(", "waits = any(", "rolled back"),
    Fault(FILLING, "if link.suffix != self.suffix or", "if", "agreements of another suffix"),
    # planning
    Fault(PLANNING, "lack.lot in now.given and lack.lot not in gone", "lack.lot in now.given", "what nobody has"),
    Fault(
        PLANNING, "lack.lot in now.given and lack.lot not in gone",
        "lack.lot not in gone",
        "lacking what the plan wrote",
    ),
    Fault(
        PLANNING, "found = (one for one in view.findings if one.suffix in (None, view.suffix) and not one.overruled_by)",
        "found = view.findings",
        "codes by suffix",
    ),
    Fault(PLANNING, "                depth,\n", "                -depth,\n", "a hub before its consumers"),
    Fault(
        PLANNING, "if course.proven and not course.refused",
        "if course.proven or course.restored",
        "only the proven",
    ),
    Fault(PLANNING, "                tried[place][0].way not in self.ways,\n", "", "a way that was asked for"),
    Fault(
        PLANNING, "                -_restores(view.model, need, tried[place][1], tried[place][3]),\n",
        "",
        "what restores most",
    ),
    Fault(PLANNING, "                bool(tried[place][0].costs),\n", "", "what costs nothing"),
    Fault(OUTCOMES, "    if thrown:", "    if False:", "thrown away unsaved"),
    Fault(OUTCOMES, "    elif result.unsaid:", "    elif False:", "missing afterwards"),
    Fault(OUTCOMES, "    elif need.lacks and left == need.lacks:", "    elif False:", "nothing arrives"),
    Fault(OUTCOMES, "    elif left & result.left:", "    elif False:", "stays missing"),
    Fault(OUTCOMES, "elif not draft.refused and (worse :=", "elif False and (worse :=", "every order of sessions"),
    Fault(PLANNING, "changes_by_origin(model, whole.restored,", "changes_by_origin(model, model.pending(),", "the promise"),
    Fault(PLANNING, "                self.unmended += 1\n", "", "what is left"),
    Fault(
        PLANNING, "return replace(need, lacks=frozenset())",
        "return replace(need, lacks=frozenset(), server=None)",
        "needs of one name",
    ),
]  # fmt: skip

WORLDS = range(90)
SHOWN = [8, 335, 397, *range(100, 104)]


@cache
def shown(number: int) -> tuple[World, Any]:
    """A world, and what is found in its files."""
    world = shown_world(Random(number))
    return world, context_of(case_of(a_folder(), world))


def check_model(modules: dict[str, ModuleType]) -> None:
    house = SimpleNamespace(mending=modules[MENDING], result=modules[RESULT])
    for number in WORLDS:
        check_achieved(house, Random(number))
        check_effects(house, Random(number))


def check_filling(modules: dict[str, ModuleType]) -> None:
    house = SimpleNamespace(filling=modules[FILLING], mending=modules[MENDING])
    for number in SHOWN:
        world, (context, findings) = shown(number)
        model = model_from(house, context, findings)
        again = world.copy()
        follow(again, model, lots_as_changes(again, model), Random(number))


def check_plans(modules: dict[str, ModuleType]) -> None:
    for name in PLANS:
        check_plan(modules[PLANNING], name)


CAUGHT_BY: dict[str, list[Check]] = {
    MENDING: [check_model, check_plans],
    RESULT: [check_model],
    MISSED: [check_filling, check_plans],
    FILLING: [check_filling, check_plans],
    STYLE: [check_plans],
    OUTCOMES: [check_plans],
    PLANNING: [check_plans],
}


@pytest.mark.parametrize("module", CAUGHT_BY)
def test_without_a_fault_nothing_is_noticed(module: str) -> None:
    run_checks(module, CAUGHT_BY)


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_planted_fault_is_noticed(fault: Fault) -> None:
    check_noticed(fault, CAUGHT_BY)
