"""How long does a click take in the kernel, with a hundred million changes? `python -m benchmarks.clicks`.

Four servers with so many changes each, of which each lacks some. A click is what the page says; measured is the answer,
from the message to the data that goes back, of two kinds: those that digests and memory answer (promised: 95 of 100 in 50
ms), and those for which rows have to be read (promised: 2 s). Views are asked in turn, in random order, as people click.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.mesh_data import SERVERS, SUFFIX, made, up_to_date
from benchmarks.missed import OUTAGE, SCATTERED, lost
from widgets import Inputs, MeshMap, MissedChanges, Stepper, TimeLine, VectorGrid, View
from workbench.diagnosis.incident import Incident

ROOT = Path(__file__).parent.parent
TOPOLOGY = (
    "workbench.diagnosis.case_diagnosis.topology",
    "workbench.diagnosis.incident.topology",
    "workbench.diagnosis.change_explanation.topology",
)
AT_ONCE, READING = 0.050, 2.0


def clicks(incident: Incident, dice: random.Random) -> dict[str, tuple[float, Callable[[], None]]]:
    """Name -> what is promised, and a click."""
    inputs = Inputs(incident, "clicks", server="", origin="", supplier="s1", consumer="s2", rules="", per_load=0)
    mesh, grid, missed, line = (kind(incident, inputs) for kind in (MeshMap, VectorGrid, MissedChanges, TimeLine))
    stepper = Stepper(incident, inputs)

    def say(view: View, **message: Any) -> None:
        view._heard(view, message, [])
        assert not view.notice, view.notice

    def choose() -> None:
        inputs.choose(server=dice.choice(["*", *(f"s{n + 1}" for n in range(SERVERS))]))

    def bar() -> None:
        lane = dice.randrange(SERVERS)
        say(
            line,
            what="pick",
            lane=lane,
            bin=dice.choice([at for at, n in enumerate(line.data["lanes"][lane]["counts"]) if n]),
        )

    return {
        "another server for all views": (AT_ONCE, choose),
        "a cell of the grid": (
            AT_ONCE,
            lambda: say(grid, what="pick", row=dice.randrange(SERVERS), column=dice.randrange(SERVERS)),
        ),
        "a page of missing changes": (AT_ONCE, lambda: say(missed, what="page", by=dice.choice([1, -1]))),
        "a step of a session": (AT_ONCE, lambda: say(stepper, what="step", by=dice.choice([1, -1]))),
        "the reasons of a link": (AT_ONCE, lambda: mesh.reasons("s1", "s2")),
        "the story of a change": (
            READING,
            lambda: say(missed, what="pick", index=dice.randrange(len(missed.data["rows"]))),
        ),
        "the changes of a bar": (READING, bar),
    }


def main() -> None:
    """Click, and print how long it took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--changes", type=int, default=25_000_000, help="of each of four servers")
    options.add_argument("--clicks", type=int, default=60, help="of each kind")
    options.add_argument("--kind", choices=[SCATTERED, OUTAGE], default=SCATTERED)
    options.add_argument("--data", type=Path, default=ROOT / "bench-data", help="where the generated tables are kept")
    asked = options.parse_args()
    case = made(
        asked.data / f"{asked.kind}-{asked.changes}-details", asked.changes, lost(asked.kind, asked.changes), True
    )
    with ExitStack() as stack:
        for where in TOPOLOGY:
            stack.enter_context(patch(where, lambda case, *_: up_to_date(case)))
        stack.enter_context(patch("widgets.inputs.keep"))
        began = time.perf_counter()
        incident = Incident(case)
        assert incident.found["missing"]
        asked_for = clicks(incident, random.Random(7))
        print(
            f"{SERVERS} servers x {asked.changes:,} changes of {SUFFIX}: opened in {time.perf_counter() - began:.1f} s\n"
        )
        report(asked_for, asked.clicks)


def report(asked_for: dict[str, tuple[float, Callable[[], None]]], count: int) -> None:
    """Click in random order, each kind so often."""
    taken: dict[str, list[float]] = {name: [] for name in asked_for}
    order = [name for name in asked_for for _ in range(count)]
    random.Random(11).shuffle(order)
    for name in order:
        began = time.perf_counter()
        asked_for[name][1]()
        taken[name].append(time.perf_counter() - began)
    print(f"{'milliseconds':32}{'median':>9}{'95 of 100':>11}{'longest':>9}{'promised':>10}")
    for name, times in taken.items():
        half, most, longest = _of(times, 0.5), _of(times, 0.95), max(times)
        kept = "" if most <= asked_for[name][0] else "   NOT KEPT"
        print(f"{name:32}{half * 1e3:9.1f}{most * 1e3:11.1f}{longest * 1e3:9.0f}{asked_for[name][0] * 1e3:10.0f}{kept}")
    print(json.dumps({name: _of(times, 0.95) for name, times in taken.items()}))


def _of(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


if __name__ == "__main__":
    main()
